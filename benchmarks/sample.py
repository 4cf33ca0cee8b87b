"""What the default pool loses by learning from a sample: ``python benchmarks/sample.py``.

Panels of unlike experts with several shared sources of error. Learned from all events and from samples of several
sizes, each is asked about the same fresh events: by how much the mean log loss is worse than that of the pool that
learned from all, on average over several samples, with their standard deviation, and the processor seconds of a fit, on
one thread.
Then the log loss of the default pool on fresh events beside those of the data alone.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

import opinionpool as op
from opinionpool.estimation import sampling

Array = npt.NDArray[np.float64]

# Events and experts; and the limits on events and forecasts, those of the package among them.
SHAPES = ((200_000, 20), (50_000, 100), (20_000, 500), (8_000, 1_000))
LIMITS = ((5_000, 500_000), (10_000, 1_000_000), (20_000, 2_000_000), (50_000, 5_000_000))
FRESH = 20_000
# Samples of each size: with its experts in another order, a panel has another one.
SAMPLES = 5
# Experts, and numbers of events, to compare with the data alone.
FEW, LEARNED = 20, (500, 2_000, 5_000, 20_000)


def drawn(experts: int, events: int, seed: int) -> tuple[Array, npt.NDArray[np.intp]]:
    """Forecasts by experts of unlike accuracy, calibration and bias, and outcomes; the experts are always the same."""
    own = np.random.default_rng(experts)
    signal, bias = own.lognormal(-0.7, 0.5, experts), own.normal(scale=0.3, size=experts)
    loadings, stretch = own.normal(scale=0.6, size=(3, experts)) + 0.3, own.lognormal(0.0, 0.3, experts)
    rng = np.random.default_rng((experts, seed))
    y = rng.integers(0, 2, events)
    z = rng.normal(size=(events, experts)) + rng.normal(size=(events, 3)) @ loadings
    z = stretch * (z + signal * (2 * y - 1)[:, None]) + bias
    return 1.0 / (1.0 + np.exp(-z)), y


def learned(q: Array, y: npt.NDArray[np.intp], limits: tuple[int, int]) -> tuple[op.GaussianPool, float]:
    """The default pool with other limits, and the processor seconds of its fit."""
    usual = sampling.EVENTS, sampling.FORECASTS
    sampling.EVENTS, sampling.FORECASTS = limits
    try:
        start = time.process_time()
        return op.GaussianPool().fit(q, y), time.process_time() - start
    finally:
        sampling.EVENTS, sampling.FORECASTS = usual


def losses(pool: op.GaussianPool, q: Array, y: npt.NDArray[np.intp]) -> Array:
    """The log loss on each event."""
    return -np.log(pool.predict_proba(q)[np.arange(len(y)), y])


def beside() -> None:
    """Print the log losses of the default pool, of the data alone and of logistic regression on log-odds."""
    from scipy.special import logit
    from sklearn.linear_model import LogisticRegression

    q, y = drawn(FEW, FRESH, 2)
    print("\n| learned from | default pool | full, data alone | logistic regression |")
    print("| --- | --- | --- | --- |")
    for events in LEARNED:
        seen, happened = drawn(FEW, events, 1)
        pools = op.GaussianPool(), op.GaussianPool("full", beliefs=None)
        found = [losses(pool.fit(seen, happened), q, y).mean() for pool in pools]
        answers = LogisticRegression(C=10.0, max_iter=3000).fit(logit(seen), happened).predict_log_proba(logit(q))
        found.append(-answers[np.arange(len(y)), y].mean())
        print(f"| {events:,} | " + " | ".join(f"{loss:.4f}" for loss in found) + " |", flush=True)


def main() -> None:
    """Print both tables."""
    print("| events x experts | learned from | worse by | seconds |")
    print("| --- | --- | --- | --- |")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", op.OpinionPoolWarning)
        for events, experts in SHAPES:
            q, y = drawn(experts, events, 1)
            fresh = drawn(experts, FRESH, 2)
            pool, seconds = learned(q, y, (10**9, 10**12))
            best = losses(pool, *fresh)
            print(f"| {events:,} x {experts:,} | all | | {seconds:.1f} |", flush=True)
            for limits in LIMITS:
                used = min(limits[0], limits[1] // experts)
                if used >= events:
                    continue
                worse, seconds = [], 0.0
                for seed in range(SAMPLES):
                    order = np.random.default_rng(seed).permutation(experts)
                    pool, once = learned(q[:, order], y, limits)
                    worse.append((losses(pool, fresh[0][:, order], fresh[1]) - best).mean())
                    seconds += once / SAMPLES
                print(
                    f"| {events:,} x {experts:,} | {used:,} | {np.mean(worse):.5f} ± {np.std(worse, ddof=1):.5f} | "
                    f"{seconds:.1f} |",
                    flush=True,
                )
        beside()


if __name__ == "__main__":
    main()
