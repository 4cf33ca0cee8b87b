"""How the default pool does with more than two classes, on the shared panels that have them and on simulated ones.

    python benchmarks/classes.py [--draws N] [--data FOLDER] [--pool NAME] [NAME ...]

Of a panel's resolved events, as many as the head of the column says are drawn at random to learn from, once for each
draw; the mean log loss, in nats, is that of at most 400 others. Forecasts on the others are not given. The simulated
kinds, a new panel for each draw: classes alike, as the class-symmetric model has it; the same with unequal base rates,
one of .01; with experts biased by class; classes in order, of which each expert sees a blurred place; the same with
experts who are overconfident and round; experts who tell some classes better than others; and places that are seen by
twenty experts, unlike and off, week after week with a surprise in common, by ten in twelve classes of which many are
rare, and by two who are as coarse as they are sure.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.special import ndtr, ndtri

from opinionpool.arrays import Array
from opinionpool.forecasts import Forecasts
from opinionpool.logodds import softmax, uncentred
from opinionpool.pools.fit import fit_pool
from opinionpool.tables.read import read_forecasts

# Cuts between twelve classes whose frequencies fall from .3 to .01.
SPARSE = tuple(ndtri(np.cumsum([0.3, 0.2, 0.14, 0.1, 0.08, 0.06, 0.04, 0.03, 0.02, 0.01, 0.01])).tolist())
PANELS, SIZES, TEST, DRAWS = ("tampere_pop", "flusight"), (10, 40, 160), 400, 10


def symmetric(
    rng: np.random.Generator, t: int, *, base: Array, accuracy: Array | float = 1.0, bias: float = 0.0
) -> Forecasts:
    """Forecasts of eight experts by section 3 of docs/model.md, of classes with these base rates and accuracies."""
    k = len(base)
    y = rng.choice(k, size=t, p=base)
    own = np.exp(0.5 * rng.normal(size=(1, 8, 1))) * accuracy * ((np.arange(k) == y[:, None]) - 1.0 / k)[:, None]
    noise = np.sqrt(0.6) * rng.normal(size=(t, 1, k)) + np.sqrt(0.4) * rng.normal(size=(t, 8, k))
    off = bias * (rng.normal(size=(1, 1, k)) + rng.normal(size=(1, 8, k)))
    forecasts = softmax(uncentred(np.log(base) + own + noise + off))
    return Forecasts.from_array(forecasts, y, classes=range(k))


def ordered(
    rng: np.random.Generator,
    t: int,
    *,
    cuts: tuple[float, ...] = (-1.5, -0.5, 0.5, 1.5),
    experts: int = 8,
    narrow: float = 1.0,
    step: float = 0.0,
    off: float = 0.0,
    weeks: int = 0,
) -> Forecasts:
    """Forecasts of the place of a standard normal number between cuts; by weeks with surprises, a fifth is missing."""
    week = np.sort(rng.integers(weeks, size=t)) if weeks else np.arange(t)
    x, shared = rng.normal(size=t), rng.normal(size=(t, 1))
    if weeks:
        x, shared = (np.sqrt(0.5) * (each + rng.normal(size=(weeks, *each.shape[1:]))[week]) for each in (x, shared))
    sd = np.exp(0.3 * rng.normal(size=experts))
    seen = x[:, None] + 0.6 * shared + sd * rng.normal(size=(t, experts))
    variance = 0.36 + sd**2
    mean = seen / (1.0 + variance) + off * rng.normal(size=experts)
    spread = np.sqrt(variance / (1.0 + variance)) / (narrow * np.exp(off * rng.normal(size=experts)))
    under = ndtr((np.array(cuts) - mean[..., None]) / spread[:, None])
    forecasts = np.diff(under, axis=-1, prepend=0.0, append=1.0)
    if step:
        forecasts = np.round(forecasts / step) * step
        forecasts /= forecasts.sum(axis=-1, keepdims=True)
    if weeks:
        forecasts[rng.random((t, experts)) < 0.2] = np.nan
    found = Forecasts.from_array(forecasts, np.searchsorted(cuts, x), classes=range(len(cuts) + 1))
    if not weeks:
        return found
    times = np.datetime64("2025-01-01", "us") + week * np.timedelta64(7, "D")
    return replace(found, times=times, settled=np.ones(t, dtype=bool))


KINDS: dict[str, Callable[[np.random.Generator, int], Forecasts]] = {
    "alike": lambda rng, t: symmetric(rng, t, base=np.full(4, 0.25)),
    "rare": lambda rng, t: symmetric(rng, t, base=np.array([0.6, 0.25, 0.1, 0.04, 0.01])),
    "biased": lambda rng, t: symmetric(rng, t, base=np.full(4, 0.25), bias=0.35),
    "ordered": ordered,
    "overconfident": lambda rng, t: ordered(rng, t, narrow=1.6, step=0.05),
    "by class": lambda rng, t: symmetric(
        rng, t, base=np.array([0.4, 0.3, 0.2, 0.1]), accuracy=np.array([3.0, 1.0, 0.5, 0.2])
    ),
    "weeks": lambda rng, t: ordered(
        rng, t, cuts=(-1.1, -0.35, 0.4, 1.1), experts=20, narrow=1.4, step=0.01, off=0.2, weeks=40
    ),
    "sparse": lambda rng, t: ordered(rng, t, cuts=SPARSE, experts=10, narrow=1.3),
    "two": lambda rng, t: ordered(rng, t, cuts=(0.7, 1.6), experts=2, narrow=1.5, step=0.1, off=0.3),
}


def losses(
    found: Callable[[np.random.Generator], Forecasts], size: int, draws: int, pool: str = "gaussian"
) -> list[float]:
    """Mean log loss of the pool in each draw."""
    each = []
    for draw in range(draws):
        rng = np.random.default_rng([0, draw])
        forecasts = found(rng)
        order = rng.permutation(np.flatnonzero(forecasts.resolved & (forecasts.crowd > 0)))
        test = forecasts.select_events(order[size : size + TEST])
        answers = fit_pool(pool, forecasts.select_events(order[:size])).pool_forecasts(test)
        each.append(float(-np.log(answers[np.arange(len(test.outcomes)), test.outcomes]).mean()))
    return each


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=(*PANELS, *KINDS))
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--pool", default="gaussian")
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| panel | " + " | ".join(map(str, SIZES)) + " |\n" + "| --- " * (1 + len(SIZES)) + "|")
    for name in options.names:
        if name in KINDS:
            found = lambda rng, kind=KINDS[name]: kind(rng, SIZES[-1] + TEST)  # noqa: E731
        else:
            panel = read_forecasts(options.data / f"{name}.csv.gz")
            found = lambda rng, panel=panel: panel  # noqa: E731, ARG005
        means = [np.mean(losses(found, size, options.draws, options.pool)) for size in SIZES]
        print(f"| {name} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |", flush=True)


if __name__ == "__main__":
    main()
