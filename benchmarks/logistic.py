"""Logistic regression by Newton's method in blocks, against scikit-learn's lbfgs without penalty.

Both with the threads that they take by themselves, and on one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from row import Row, at_most
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits
from timing import interleave

from opinionpool.estimation.logistic import logistic_fit

Array = npt.NDArray[np.float64]
Outcomes = npt.NDArray[np.int64]

EVENTS, EXPERTS = 1_000_000, 20
GRADIENT = 1e-8
ROUNDS = 5


def rows() -> Iterator[Row]:
    """Measure experts who speak alike, and experts with biases and scales of their own, who do not."""
    for name, alike in (("alike", True), ("unlike", False)):
        x, s = panel(alike)
        for threads in (None, 1):
            with threadpool_limits(threads):
                yield measured(f"log pool, {EVENTS:,} x {EXPERTS}, {name}{', 1 thread' if threads else ''}", x, s)


def panel(alike: bool) -> tuple[Array, Outcomes]:
    """Return contrasts with a correlation of one half, and outcomes."""
    rng = np.random.default_rng(20041)
    s = rng.integers(0, 2, EVENTS)
    x = rng.normal(size=(EVENTS, EXPERTS)) + rng.normal(size=(EVENTS, 1)) + 0.7 * (2 * s[:, None] - 1)
    if not alike:
        x = x * np.exp(0.7 * rng.normal(size=EXPERTS)) + 0.5 * rng.normal(size=EXPERTS)
    return x, s


def measured(what: str, x: Array, s: Outcomes) -> Row:
    """Return the row of one array."""
    peer = LogisticRegression(C=np.inf, tol=GRADIENT, max_iter=10_000)
    pair = interleave(lambda: logistic_fit(x, s), lambda: peer.fit(x, s), ROUNDS)
    fit = logistic_fit(x, s)
    theirs, ours = gradient(x, s, peer.coef_[0], peer.intercept_), gradient(x, s, fit.weights, fit.intercept)
    told = (
        f"lbfgs {pair.second:.2f} s, {peer.n_iter_[0]} steps, |gradient| {theirs:.0e}; "
        f"here {pair.first:.2f} s, {ours:.0e}"
    )
    row = at_most(what, 1.0, pair.ratio, told)
    return row if ours <= GRADIENT else Row(row.what, row.needed, row.got, told, kept=False)


def gradient(x: Array, s: Outcomes, weights: Array, intercept: Array) -> float:
    """Return the largest component of the gradient of the mean loss."""
    residual = 1 / (1 + np.exp(-(x @ weights + intercept))) - s
    return float(max(np.abs(residual @ x).max(), abs(residual.sum())) / len(s))
