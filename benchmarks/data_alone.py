"""Log loss of the default pool beside the data alone and logistic regression: ``python benchmarks/data_alone.py``.

Twenty unlike experts with several shared sources of error, asked about the same fresh events.
"""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from scipy.special import logit
from sklearn.linear_model import LogisticRegression

import opinionpool as op

Array = npt.NDArray[np.float64]

FRESH = 20_000
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


def losses(pool: op.GaussianPool, q: Array, y: npt.NDArray[np.intp]) -> Array:
    """The log loss on each event."""
    return -np.log(pool.predict_proba(q)[np.arange(len(y)), y])


def main() -> None:
    """Print the table."""
    q, y = drawn(FEW, FRESH, 2)
    print("| learned from | default pool | full, data alone | logistic regression |")
    print("| --- | --- | --- | --- |")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", op.OpinionPoolWarning)
        for events in LEARNED:
            seen, happened = drawn(FEW, events, 1)
            pools = op.GaussianPool(), op.GaussianPool("full", beliefs=None)
            found = [losses(pool.fit(seen, happened), q, y).mean() for pool in pools]
            answers = LogisticRegression(C=10.0, max_iter=3000).fit(logit(seen), happened).predict_log_proba(logit(q))
            found.append(-answers[np.arange(len(y)), y].mean())
            print(f"| {events:,} | " + " | ".join(f"{loss:.4f}" for loss in found) + " |", flush=True)


if __name__ == "__main__":
    main()
