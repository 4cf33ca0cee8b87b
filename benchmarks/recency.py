"""What is gained by learning how fast forecasts go stale, and what it costs where they do not.

    python benchmarks/recency.py [--draws N]

Simulated: five calibrated experts whose errors correlate by .6. What each knows grows until the event is answered: a
forecast of age t has the share 2^(-t/h) of what one made last has, and is a blurred copy of it, also beside others.
Ages are exponential with a mean of 30 days. A gain is the expected log loss of the default pool that does not see times
less that of the one that does, in nats, on 2,000 new events. Beside it stands the gain of a pool that is given the true
half-life, by the newest forecast, with correlations as learned: whatever else might tell it, such as revisions of a
forecast, would gain no more than that.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from opinionpool.forecasts import Forecasts
from opinionpool.learning.learn import learn
from opinionpool.logodds import expit

Array = npt.NDArray[np.float64]

EXPERTS, CORRELATION, ACCURACY, AGE, NEW = 5, 0.6, 1.5, 30.0, 2000
HALF_LIVES, EVENTS = (np.inf, 120.0, 30.0, 10.0), (20, 50, 200, 800)


def drawn(events: int, half_life: float, rng: np.random.Generator) -> Forecasts:
    """Resolved events, forecasts and their times."""
    y = rng.random(events) < 0.5
    age = rng.exponential(AGE, (events, EXPERTS))
    known = ACCURACY * 0.5 ** (age / half_life)
    # Each knows what a Brownian motion has become by its time, and so do those who know as much.
    order = np.argsort(known, axis=1)
    steps = np.diff(np.take_along_axis(known, order, axis=1), axis=1, prepend=0.0)
    common = np.empty_like(known)
    np.put_along_axis(common, order, np.cumsum(np.sqrt(steps) * rng.normal(size=known.shape), axis=1), axis=1)
    noise = np.sqrt(CORRELATION) * common
    noise = noise + np.sqrt(1.0 - CORRELATION) * np.sqrt(known) * rng.normal(size=known.shape)
    q = expit(np.where(y, 1.0, -1.0)[:, None] * known + np.sqrt(2.0) * noise)
    made = np.datetime64("2025-06-01", "us") - (age * 86_400e6).astype("timedelta64[us]")
    asked = np.full(events, np.datetime64("2025-06-01", "us"))
    return replace(Forecasts.from_array(q, y.astype(int)), made=made.ravel(), asked=asked)


def losses(forecasts: Forecasts, events: int, half_life: float) -> tuple[float, float, float, float, float]:
    """Without times, with them and with the half-life known; the probability that nothing decays, and the half-life."""
    train, test = forecasts.select_events(np.arange(events)), forecasts.select_events(np.arange(events, events + NEW))
    plain, timed = learn(replace(train, made=None), prior=0.5), learn(train, prior=0.5)
    found = timed.recency
    assert found is not None
    by_correlation = found.probabilities.sum(axis=0)[None]
    known = replace(found, half_lives=np.array([half_life]), absolute=np.array([False]), probabilities=by_correlation)
    informed = learn(known.forecasts(train, np.full((events, 2), 0.5)), prior=0.5)
    y, pools = test.outcomes, (plain, timed, replace(informed, recency=known))
    loss = [-np.log(np.where(y == 1, p, 1.0 - p)).mean() for p in (pool.pool_forecasts(test) for pool in pools)]
    return float(loss[0]), float(loss[1]), float(loss[2]), found.steady, found.half_life


def main() -> None:
    """Print the rows of the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=40)
    draws = parser.parse_args().draws
    warnings.filterwarnings("ignore")
    for half_life in HALF_LIVES:
        for events in EVENTS:
            rng = np.random.default_rng([events, 0 if np.isinf(half_life) else round(half_life)])
            found = np.array([losses(drawn(events + NEW, half_life, rng), events, half_life) for _ in range(draws)])
            gain, most = found[:, 0] - found[:, 1], found[:, 0] - found[:, 2]
            name = "none" if np.isinf(half_life) else f"{half_life:g} days"
            print(
                f"| {name} | {events} | {gain.mean():+.4f} ± {gain.std() / np.sqrt(draws):.4f} "
                f"| {most.mean():+.4f} | {found[:, 3].mean():.0%} | {np.median(found[:, 4]):.3g} days |",
                flush=True,
            )


if __name__ == "__main__":
    main()
