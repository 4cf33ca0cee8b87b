"""How the default pool does on simulated panels of many kinds, against the other pools.

    python benchmarks/default_pool.py [REPEATS]
    python benchmarks/default_pool.py --hard [REPEATS]

A cell is one kind of panel, number of experts and number of resolved events. Every pool learns from the same events
and is scored, in nats, on 400 others. Regret is its mean log loss less that of the best rival in the cell, picked in
hindsight; excess is its log loss less that of the simple average. With --hard, the kinds are six that contradict what
is believed of most panels, and every pool has the forecasts on the 100 events that it is scored on as open events.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

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
HEAVY = 3
POOLS = ("gaussian", "average", "median", "geometric", "extremized", "recalibrated", "linear", "log")
REPEATS = 10
HARD_KINDS = ("misled majority", "lay crowd", "overconfident together", "professionals", "star", "base rate")
HARD_SIZES, OPEN, HARD_REPEATS = (0, 5, 10, 20, 80), 100, 40


def drawn(kind: str, rng: np.random.Generator, t: int, n: int) -> tuple[Array, Array, Array]:
    """Forecasts (t, n), outcomes (t,) and true log-odds (t,) of a panel of some kind, its other features at random."""
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
        z = z * np.sqrt(HEAVY / rng.chisquare(HEAVY, size=(t, 1)))
    log_prior, mean, spread = np.log(base / (1 - base)), accuracy / kappa, np.sqrt(2 * accuracy) / kappa
    contrasts = (2 * y - 1)[:, None] * mean + spread * z
    x = expit(log_prior + bias + contrasts)
    _coarsen(x, kind, rng)
    covariance = np.outer(spread, spread) * common_correlation(n, rho)
    if kind == "heavy tails":
        return x, y, log_prior + log_ratios_of_t(contrasts, mean, covariance, HEAVY)
    return x, y, log_prior + log_ratios(np.where(np.isnan(x), np.nan, contrasts), mean, covariance)


def _coarsen(x: Array, kind: str, rng: np.random.Generator) -> None:
    """Round forecasts, or lose some, in place, if the kind is one of that sort."""
    match kind:
        case "zeros and ones":
            np.round(x, 1, out=x)
        case "missing":
            x[rng.random(x.shape) < 0.6] = np.nan
        case "many halves":
            x[rng.random(x.shape) < 0.15] = 0.5


def panel(kind: str, rng: np.random.Generator, t: int, n: int) -> tuple[Array, Array]:
    """Forecasts (t, n) and outcomes (t,) of a panel of some kind, its other features drawn at random."""
    return drawn(kind, rng, t, n)[:2]


def common_correlation(n: int, rho: float) -> Array:
    """Correlation matrix of n experts of whom each pair has the same."""
    return np.asarray((1 - rho) * np.eye(n) + rho)


def log_ratios(contrasts: Array, mean: Array, covariance: Array) -> Array:
    """Log-likelihood ratios (t,) of normal contrasts (t, n), those missing integrated out."""
    known, found = ~np.isnan(contrasts), np.zeros(len(contrasts))
    for pattern in np.unique(known, axis=0):
        rows = np.flatnonzero((known == pattern).all(axis=1))
        weights = 2 * np.linalg.solve(covariance[np.ix_(pattern, pattern)], mean[pattern])
        found[rows] = contrasts[np.ix_(rows, pattern)] @ weights
    return found


def log_ratios_of_t(contrasts: Array, mean: Array, scale: Array, freedom: float) -> Array:
    """Log-likelihood ratios (t,) of contrasts (t, n) that follow a multivariate t distribution."""
    inverse = np.linalg.inv(scale)

    def distance(center: Array) -> Array:
        return np.einsum("ti,ij,tj->t", contrasts - center, inverse, contrasts - center)

    ratio = np.log1p(distance(-mean) / freedom) - np.log1p(distance(mean) / freedom)
    return np.asarray((freedom + len(mean)) / 2 * ratio)


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


def hard_panel(kind: str, rng: np.random.Generator, t: int) -> tuple[Array, Array]:
    """Forecasts (t, n) and outcomes (t,) of a panel that contradicts what is believed of most panels."""
    y = (rng.random(t) < (0.15 if kind == "base rate" else 0.5)).astype(float)
    sign, noise = (2 * y - 1)[:, None], rng.normal(size=(t, 1))

    def judge(areas: Array, correlation: float) -> Array:
        """Standard normal signals (t, n) of experts with these areas under the curve, sharing noise."""
        own = rng.normal(size=(t, len(areas)))
        return sign * ndtri(areas) / np.sqrt(2) + np.sqrt(correlation) * noise + np.sqrt(1 - correlation) * own

    match kind:
        case "misled majority":
            # Calibrated each: a signal of mean ± m and variance 1 has the log-odds 2 m times it.
            areas = np.array([0.65] * 10 + [0.9] * 2)
            signals = np.hstack([judge(areas[:10], 0.9), judge(areas[10:], 0.0)])
            return expit(np.sqrt(2) * ndtri(areas) * signals), y
        case "lay crowd":
            cues = judge(np.full(2, 0.65), 0.0)
            read = cues.mean(axis=1, keepdims=True) + rng.normal(size=(t, 300))
            x = expit(rng.lognormal(0.3, 0.5, 300) * read)
            x[rng.random(x.shape) >= 0.15] = np.nan
            return x, y
        case "overconfident together":
            areas = rng.uniform(0.65, 0.85, 20)
            x = expit(np.sqrt(2) * ndtri(areas) * judge(areas, 0.4) / 0.3)
            bound = np.quantile(np.abs(x - 0.5), 2 / 3)
            return np.where(np.abs(x - 0.5) > bound, np.round(x), x), y
        case "professionals":
            areas = np.full(8, 0.8)
            signals = judge(areas, 0.94)  # contrasts correlate 0.95, events included
            slope = np.sqrt(2) * ndtri(0.8) / 0.65
            return expit(slope * signals), y
        case "star":
            areas = np.array([0.99] + [0.6] * 50)
            signals = np.hstack([judge(areas[:1], 0.0), judge(areas[1:], 0.5)])
            return expit(np.sqrt(2) * ndtri(areas) * signals), y
        case _:
            areas = rng.uniform(0.65, 0.85, 10)
            log_prior = np.log(0.15 / 0.85)
            return expit(log_prior - 0.8 + np.sqrt(2) * ndtri(areas) * judge(areas, 0.4)), y


def hard_losses(kind: str, size: int, repeats: int, pools: tuple[str, ...] = POOLS) -> Array:
    """Mean loss of each pool on open events of panels of one hard kind, `size` events being resolved."""
    total = np.zeros(len(pools))
    for repeat in range(repeats):
        x, y = hard_panel(kind, np.random.default_rng([0, HARD_KINDS.index(kind), repeat]), max(HARD_SIZES) + OPEN)
        test, truth = x[-OPEN:], y[-OPEN:]
        given = Forecasts.from_array(np.vstack([x[:size], test]), np.append(y[:size], np.full(OPEN, np.nan)))
        for i, name in enumerate(pools):
            p = fit_pool(name, given).pool(test)
            total[i] -= np.log(np.where(truth == 1, p, 1 - p)).mean()
    return total / repeats


def hard(repeats: int) -> None:
    """Print regret, and excess over the average, by hard kind and number of resolved events."""
    warnings.simplefilter("ignore")
    print("| kind of panel | " + " | ".join(map(str, HARD_SIZES)) + " | worst excess |\n" + "| --- " * 7 + "|")
    regret, worst = [], []
    for kind in HARD_KINDS:
        mean = np.array([hard_losses(kind, size, repeats) for size in HARD_SIZES])
        found, excess = [regrets(each)[0] for each in mean], (mean[:, 0] - mean[:, 1]).max()
        regret.append(found)
        worst.append(excess)
        print(f"| {kind} | " + " | ".join(f"{value:+.3f}" for value in found) + f" | {excess:+.3f} |", flush=True)
    by_kind = np.mean(regret, axis=1)
    print(f"mean {by_kind.mean():.4f}, worst kind {by_kind.max():.3f}, worst over the average {max(worst):.3f}")


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
    counts = [int(each) for each in sys.argv[1:] if each != "--hard"]
    if "--hard" in sys.argv:
        hard(*counts or (HARD_REPEATS,))
    else:
        main(*counts or (REPEATS,))
