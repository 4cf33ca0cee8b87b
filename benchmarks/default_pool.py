"""How the default pool does on simulated panels of many kinds, against the other pools.

    python benchmarks/default_pool.py [REPEATS]

A cell is one kind of panel, number of experts and number of resolved events. Every pool learns from the same events
and is scored, in nats, on 400 others. Regret is its mean log loss less that of the best rival in the cell, picked in
hindsight; excess is its log loss less that of the simple average.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import numpy.typing as npt

from opinionpool.forecasts import Forecasts
from opinionpool.logodds import expit
from opinionpool.pools.fit import fit_pool

Array = npt.NDArray[np.float64]

KINDS = (
    "calibrated", "overconfident", "underconfident", "mixed", "biased", "one star", "near-identical",
    "rare", "heavy tails", "zeros and ones", "missing", "many halves",
)  # fmt: skip
EXPERTS = (3, 12)
SIZES = (0, 5, 20, 80)
TEST = 400
POOLS = ("gaussian", "average", "median", "geometric", "extremized", "recalibrated", "linear", "log")
REPEATS = 10


def panel(kind: str, rng: np.random.Generator, t: int, n: int) -> tuple[Array, Array]:
    """Forecasts (t, n) and outcomes (t,) of a panel of some kind, its other features drawn at random."""
    base, rho = rng.choice([0.5, 0.3, 0.15]), rng.choice([0.2, 0.5, 0.8])
    kappa, accuracy, bias = np.ones(n), np.full(n, rng.choice([0.3, 0.8, 2.0])), np.zeros(n)
    match kind:
        case "overconfident":
            kappa = rng.uniform(0.4, 0.8, n)
        case "underconfident":
            kappa = rng.uniform(1.3, 2.5, n)
        case "mixed":
            kappa, bias = rng.lognormal(0, 0.4, n), rng.normal(0, 0.5, n)
            accuracy = accuracy * rng.lognormal(0, 0.8, n)
        case "biased":
            bias = rng.normal(0, 0.7) + rng.normal(0, 0.3, n)
        case "one star":
            kappa, accuracy = rng.uniform(0.5, 1, n), np.where(np.arange(n) == 0, 2.5, 0.15)
        case "near-identical":
            rho, kappa = 0.97, rng.uniform(0.7, 1.3, n)
        case "rare":
            base = 0.04
    y = (rng.random(t) < base).astype(float)
    z = np.sqrt(rho) * rng.normal(size=(t, 1)) + np.sqrt(1 - rho) * rng.normal(size=(t, n))
    if kind == "heavy tails":
        z = z * np.sqrt(3 / rng.chisquare(3, size=(t, 1)))
    log_odds = np.log(base / (1 - base)) + bias + (2 * y - 1)[:, None] * accuracy / kappa
    x = expit(log_odds + np.sqrt(2 * accuracy) / kappa * z)
    match kind:
        case "zeros and ones":
            x = np.round(x, 1)
        case "missing":
            x[rng.random((t, n)) < 0.6] = np.nan
        case "many halves":
            x[rng.random((t, n)) < 0.15] = 0.5
    return x, y


def losses(x: Array, y: Array, size: int, pools: tuple[str, ...], *, open_events: bool = False) -> Array:
    """Mean log loss of each pool on the last events, learned from the first `size`, and from open events if so."""
    test, truth = x[-TEST:], y[-TEST:]
    known = Forecasts.from_array(x[:size], y[:size]) if size else Forecasts.from_array(test)
    if size and open_events:
        known = Forecasts.from_array(np.vstack([x[:size], test]), np.append(y[:size], np.full(TEST, np.nan)))
    found = []
    for name in pools:
        p = fit_pool(name, known).pool(test)
        found.append(-np.log(np.where(truth == 1, p, 1 - p)).mean())
    return np.array(found)


def mean_losses(kind: str, n: int, size: int, repeats: int = REPEATS, pools: tuple[str, ...] = POOLS) -> Array:
    """Mean loss of each pool over panels of one kind, learned from `size` events."""
    total = np.zeros(len(pools))
    for repeat in range(repeats):
        x, y = panel(kind, np.random.default_rng([KINDS.index(kind), n, repeat]), max(SIZES) + TEST, n)
        total += losses(x, y, size, pools)
    return np.asarray(total / repeats)


def main(repeats: int) -> None:
    """Print regret by kind and number of resolved events, and a summary of all pools."""
    warnings.simplefilter("ignore")
    table = {(kind, n, size): mean_losses(kind, n, size, repeats) for kind in KINDS for n in EXPERTS for size in SIZES}
    print("| kind of panel | " + " | ".join(map(str, SIZES)) + " |")
    for kind in KINDS:
        row = [np.mean([regrets(table[kind, n, size])[0] for n in EXPERTS]) for size in SIZES]
        print(f"| {kind} | " + " | ".join(f"{value:+.3f}" for value in row) + " |")
    print("\n| pool | mean regret | worst regret | worst excess over the average |")
    regret = np.array([regrets(mean) for mean in table.values()])
    excess = np.array([mean - mean[1] for mean in table.values()])
    for i, name in enumerate(POOLS):
        print(f"| {name} | {regret[:, i].mean():.3f} | {regret[:, i].max():.3f} | {excess[:, i].max():.3f} |")


def regrets(mean: Array) -> Array:
    """Mean losses less that of the best rival of the default pool."""
    return np.asarray(mean - mean[1:].min())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS)
