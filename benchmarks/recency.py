"""What is gained by learning how fast forecasts go stale, what it costs where they do not, and what may mislead.

    python benchmarks/recency.py [--draws N]

Simulated: five calibrated experts whose errors correlate by .6. What each knows grows until the event is answered: a
forecast of age t has the share 2^(-t/h) of what one made last has, and is a blurred copy of it, also beside others.
Ages are exponential with a mean of 30 days, and so is the time to the forecast before, which 70% have. A gain is the
expected log loss of the default pool that does not see times less that of the one that does, in nats, on 2,000 new
events. Beside it stands the gain of a pool that is given the true half-life, by the newest forecast, with correlations
as learned. Without any outcome there are 50 open events.

Then the same where something may mislead, in two sizes (see `WORLDS`).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.forecasts import Forecasts
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.learn import learn
from opinionpool.learning.recency import Recency
from opinionpool.logodds import expit

Array = npt.NDArray[np.float64]

EXPERTS, CORRELATION, ACCURACY, AGE, NEW = 5, 0.6, 1.5, 30.0, 2000
REVISED, OPEN = 0.7, 50
HALF_LIVES, EVENTS = (np.inf, 120.0, 30.0, 10.0), (0, 20, 50, 200, 800)
DAY, NOW = 86_400e6, np.datetime64("2025-06-01", "us")


class Drawn(NamedTuple):
    """Events: what happened, ages in days, what is forecast last and before that, as log-odds, NaN where nothing."""

    y: npt.NDArray[np.bool_]  # (T,)
    age: Array  # (T, N)
    lag: Array  # (T, N)
    last: Array  # (T, N)
    before: Array  # (T, N)

    def forecasts(self) -> Forecasts:
        """The last forecasts, with their times."""
        made = NOW - (self.age * DAY).astype("timedelta64[us]")
        found = Forecasts.from_array(expit(self.last), self.y.astype(int))
        return replace(found, made=made.ravel(), asked=np.full(len(self.y), NOW))


def walk(known: Array, rng: np.random.Generator) -> Array:
    """What a Brownian motion of each row has become by each time."""
    order = np.argsort(known, axis=1)
    steps = np.diff(np.take_along_axis(known, order, axis=1), axis=1, prepend=0.0)
    found = np.empty_like(known)
    np.put_along_axis(found, order, np.cumsum(np.sqrt(steps) * rng.normal(size=known.shape), axis=1), axis=1)
    return found


def of_knowledge(
    last: Array, before: Array, correlation: float, rng: np.random.Generator
) -> tuple[npt.NDArray[np.bool_], Array, Array]:
    """Outcomes, and the log-odds of calibrated experts who know so much when they forecast last, and before that."""
    y = rng.random(len(last)) < 0.5
    n = last.shape[1]
    # What they share and what each knows alone are Brownian motions in time that is measured by what is known.
    both = np.concatenate([last, before], axis=1)
    own = np.stack([walk(both[:, [i, n + i]], rng) for i in range(n)], axis=1)
    noise = np.sqrt(correlation) * walk(both, rng)
    noise = noise + np.sqrt(1.0 - correlation) * np.concatenate([own[..., 0], own[..., 1]], axis=1)
    found = np.where(y, 1.0, -1.0)[:, None] * both + np.sqrt(2.0) * noise
    return y, found[:, :n], found[:, n:]


def times(events: int, rng: np.random.Generator) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """Ages of the last forecasts, how long before those the earlier ones were made, and whether there is any."""
    shape = (events, EXPERTS)
    return rng.exponential(AGE, shape), rng.exponential(AGE, shape), rng.random(shape) < REVISED


def news(events: int, half_life: float, rng: np.random.Generator, correlation: float = CORRELATION) -> Drawn:
    """What experts know goes stale, and their revisions follow what they know."""
    age, lag, there = times(events, rng)
    known = ACCURACY * 0.5 ** (np.stack([age, age + lag]) / half_life)
    y, last, before = of_knowledge(known[0], known[1], correlation, rng)
    return Drawn(y, age, lag, last, np.where(there, before, np.nan))


def drawn(events: int, half_life: float, rng: np.random.Generator) -> Forecasts:
    """Resolved events, forecasts and their times."""
    return news(events, half_life, rng).forecasts()


def independent(events: int, half_life: float, rng: np.random.Generator) -> Drawn:
    """The same of experts who know different things, so that an old forecast is no copy."""
    return news(events, half_life, rng, 0.0)


def repeats(events: int, half_life: float, rng: np.random.Generator) -> Drawn:
    """Half of those who revise repeat what they forecast before, without a look at the news."""
    found = news(events, half_life, rng)
    same = ~np.isnan(found.before) & (rng.random(found.age.shape) < 0.5)
    return found._replace(last=np.where(same, found.before, found.last))


def attentive(events: int, half_life: float, rng: np.random.Generator) -> Drawn:
    """Who does not revise has missed nothing, so that no last forecast is stale; those before were."""
    age, lag, there = times(events, rng)
    known = np.full(age.shape, ACCURACY)
    y, last, before = of_knowledge(known, known * 0.5 ** (lag / half_life), CORRELATION, rng)
    return Drawn(y, age, lag, last, np.where(there, before, np.nan))


def noisy(events: int, half_life: float, rng: np.random.Generator) -> Drawn:
    """Every forecast has noise of its own."""
    found = news(events, half_life, rng)
    last, before = (each + 0.7 * rng.normal(size=each.shape) for each in (found.last, found.before))
    return found._replace(last=last, before=before)


def drifting(events: int, half_life: float, rng: np.random.Generator) -> Drawn:
    """Revisions are noise that grows with the time between them."""
    found = news(events, half_life, rng)
    moved = np.sqrt(0.03 * found.lag) * rng.normal(size=found.lag.shape)
    return found._replace(before=found.last, last=found.last + moved)


def herding(events: int, half_life: float, rng: np.random.Generator) -> Drawn:
    """Who revises goes half the way to the mean of the others."""
    found = news(events, half_life, rng)
    nearer = 0.5 * found.last + 0.5 * found.last.mean(axis=1, keepdims=True)
    there = ~np.isnan(found.before)
    return found._replace(before=np.where(there, found.last, np.nan), last=np.where(there, nearer, found.last))


def early(events: int, rng: np.random.Generator, accuracy: Array, scale: Array) -> Drawn:
    """Nothing goes stale, and experts who forecast earlier than others differ from them; nobody revises."""
    age = rng.exponential(np.array([5.0, 10.0, 20.0, 40.0, 80.0]), (events, EXPERTS))
    known = np.tile(ACCURACY * accuracy, (events, 1))
    y, last, before = of_knowledge(known, known, CORRELATION, rng)
    return Drawn(y, age, age, scale * last, np.full(before.shape, np.nan))


def weak_early(events: int, half_life: float, rng: np.random.Generator) -> Drawn:
    """Who forecasts early knows less."""
    del half_life
    return early(events, rng, np.array([1.6, 1.3, 1.0, 0.7, 0.4]), np.ones(EXPERTS))


def timid_early(events: int, half_life: float, rng: np.random.Generator) -> Drawn:
    """Who forecasts early is underconfident."""
    del half_life
    return early(events, rng, np.ones(EXPERTS), np.array([1.2, 1.1, 1.0, 0.8, 0.6]))


def bold_early(events: int, half_life: float, rng: np.random.Generator) -> Drawn:
    """Who forecasts early is overconfident."""
    del half_life
    return early(events, rng, np.ones(EXPERTS), np.array([0.6, 0.8, 1.0, 1.3, 1.6]))


def groups(events: int, rng: np.random.Generator, correlations: tuple[float, float]) -> Drawn:
    """Nothing goes stale; two experts are always early, three late, and errors are shared within either group only."""
    y, first = rng.random(events) < 0.5, np.arange(EXPERTS) < 2
    rho = np.where(first, *correlations)
    noise = np.sqrt(rho) * rng.normal(size=(events, 2))[:, first.astype(int)]
    noise = noise + np.sqrt(1.0 - rho) * rng.normal(size=(events, EXPERTS))
    age = np.where(first, 60.0, 5.0) + rng.exponential(5.0, (events, EXPERTS))
    last = np.where(y, ACCURACY, -ACCURACY)[:, None] + np.sqrt(2.0 * ACCURACY) * noise
    return Drawn(y, age, age, last, np.full(last.shape, np.nan))


def early_group(events: int, half_life: float, rng: np.random.Generator) -> Drawn:
    """Who forecasts early knows other things than who forecasts late."""
    del half_life
    return groups(events, rng, (0.8, 0.8))


def early_different(events: int, half_life: float, rng: np.random.Generator) -> Drawn:
    """The same, and those who are early know different things."""
    del half_life
    return groups(events, rng, (0.0, 0.9))


# What may mislead, with a half-life: of attentive experts that of their earlier forecasts.
WORLDS: tuple[tuple[str, Callable[[int, float, np.random.Generator], Drawn], float], ...] = (
    ("revisions without a look, half-life 30 days", repeats, 30.0),
    ("noise in every forecast, half-life 30 days", noisy, 30.0),
    ("noise in every forecast, none", noisy, np.inf),
    ("who does not revise has missed nothing", attentive, 10.0),
    ("revisions are drift", drifting, np.inf),
    ("revisions go to the mean", herding, np.inf),
    ("early forecasts by the weak, none", weak_early, np.inf),
    ("early forecasts by the timid, none", timid_early, np.inf),
    ("early forecasts by the bold, none", bold_early, np.inf),
    ("the early know other things than the late, none", early_group, np.inf),
    ("the same, and the early differ, none", early_different, np.inf),
    ("independent experts, half-life 10 days", independent, 10.0),
    ("independent experts, half-life 30 days", independent, 30.0),
    ("independent experts, none", independent, np.inf),
)


class Losses(NamedTuple):
    """Log loss without times, with ages, with the half-life known; and what was learned."""

    plain: float
    aged: float
    known: float
    steady: float
    half_life: float


def losses(forecasts: Forecasts, events: int, half_life: float) -> Losses:
    """Learned from the first events, resolved or, if that are 0, some open ones; scored on the others."""
    size = events or OPEN
    train, test = forecasts.select_events(np.arange(size)), forecasts.select_events(np.arange(size, size + NEW))
    if not events:
        train = replace(train, outcomes=np.full(size, -1))
    plain, aged = (learn(each, prior=0.5) for each in (replace(train, made=None), train))
    found = aged.recency
    y = test.outcomes

    def loss(pool: FittedPanel) -> float:
        p = pool.pool_forecasts(test)
        return float(-np.log(np.where(y == 1, p, 1.0 - p)).mean())

    assert found is not None
    sure = np.array([half_life]), np.array([False]), found.correlations, found.probabilities.sum(axis=0)[None]
    known = Recency(*sure, found.experts, found.source)
    informed = learn(known.forecasts(train, np.full((size, 2), 0.5)), prior=0.5)
    pools = plain, aged, replace(informed, recency=known)
    return Losses(*(loss(pool) for pool in pools), found.steady, found.half_life)


def gains(
    world: Callable[[int, float, np.random.Generator], Drawn], half_life: float, events: int, draws: int
) -> Array:
    """By draw: gains by ages, and were it known; the probability of none, and the half-life."""
    rng = np.random.default_rng([events, 0 if np.isinf(half_life) else round(half_life)])
    every = [losses(world((events or OPEN) + NEW, half_life, rng).forecasts(), events, half_life) for _ in range(draws)]
    return np.array([[f.plain - f.aged, f.plain - f.known, f.steady, f.half_life] for f in every])


def with_error(values: Array) -> str:
    """The mean and its standard error."""
    return f"{values.mean():+.4f} ± {values.std() / np.sqrt(len(values)):.4f}"


def main() -> None:
    """Print the rows of the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=16)
    draws = parser.parse_args().draws
    warnings.filterwarnings("ignore")
    for half_life in HALF_LIVES:
        for events in EVENTS:
            found = gains(news, half_life, events, draws)
            name = "none" if np.isinf(half_life) else f"{half_life:g} days"
            print(
                f"| {name} | {events} | {with_error(found[:, 0])} | {found[:, 1].mean():+.4f} "
                f"| {found[:, 2].mean():.0%} | {np.median(found[:, 3]):.3g} days |",
                flush=True,
            )
    for name, world, half_life in WORLDS:
        cells = []
        for events in (0, 20, 200):
            found = gains(world, half_life, events, draws)
            cells.append(with_error(found[:, 0]))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
