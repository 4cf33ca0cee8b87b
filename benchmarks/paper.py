"""The fits of the paper's section 5 against the straightforward script: scikit-learn, SLSQP and a loop.

Both draw experts and halves, fit the five methods and score them, 30 times for every number of experts of every data
set: the three simulated ones, and Pima and BUPA where the package that holds them is installed.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt
from row import Row
from scipy.optimize import minimize
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits
from timing import interleave, once

from opinionpool.paper.datasets import CORRELATIONS, DataSet, MissingDataError, bupa, pima, simulated
from opinionpool.paper.experiments import ITERATIONS, draw, fit_five

Array = npt.NDArray[np.float64]
FASTER = 20.0
ROUNDS = 3
SECONDS = 15.0


def rows() -> Iterator[Row]:
    """Measure the fits, then the whole command."""
    sets = [simulated(rho, 2.0) for rho in CORRELATIONS]
    with suppress(MissingDataError):
        sets += [pima(), bupa()]
    fits = sum(ITERATIONS * len(data.experts) for data in sets)
    for gradient, needed in ((False, FASTER), (True, None)):
        with threadpool_limits(1):
            seconds = interleave(lambda: stacked(sets), lambda g=gradient: looped(sets, g), ROUNDS)
        ratio = 1 / seconds.ratio
        kind = "scikit-learn and SLSQP, its gradient written out" if gradient else "scikit-learn and SLSQP"
        peer = f"{kind}: {seconds.second:.1f} s, here {seconds.first:.2f} s, one thread"
        promise = "" if needed is None else f">= {needed:g} x"
        kept = needed is None or ratio >= needed
        yield Row(f"section 5, {fits} x 5 fits", promise, f"{ratio:.1f} x", peer, kept=kept)
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).with_name("opinionpool")), "paper", "-o", folder]
        whole = once(command)
        yield Row("opinionpool paper", f"<= {SECONDS:g} s", f"{whole:.1f} s", "", kept=whole <= SECONDS)


def stacked(sets: list[DataSet]) -> Array:
    """Return the scores of the five methods, all iterations of a point at once, (5, fits)."""
    found = [
        fit_five(draw(data, n, ITERATIONS, 0)).scores[:5] for data in sets for n in range(1, len(data.experts) + 1)
    ]
    return np.concatenate(found, axis=1)


def looped(sets: list[DataSet], gradient: bool) -> Array:
    """Return the same by one fit after the other."""
    rng = np.random.default_rng(0)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for data in sets:
            for n in range(1, len(data.experts) + 1):
                found += [iteration(data, n, rng, gradient) for _ in range(ITERATIONS)]
    return np.array(found).T


def iteration(data: DataSet, n: int, rng: np.random.Generator, gradient: bool) -> list[float]:
    """Draw, fit and score once."""
    columns = rng.permutation(len(data.experts))[:n]
    order = rng.permutation(len(data.values))
    half = len(order) // 2
    train, test = data.values[order[:half]][:, columns], data.values[order[half:]][:, columns]
    y, truth = data.outcomes[order[:half]], data.outcomes[order[half:]]
    prior = (y.sum() + 1) / (len(y) + 2)
    reference = np.log(prior / (1 - prior))
    if data.covariates:
        train, test = recalibrated(train, y, test, reference)
    edge = np.log((1 - 1e-4) / 1e-4)
    train, test = np.clip(train, -edge, edge), np.clip(test, -edge, edge)
    gaussian = LinearDiscriminantAnalysis(solver="lsqr").fit(train, y)
    logistic = LogisticRegression(C=np.inf, max_iter=1000).fit(train, y)
    happened = np.where(y[:, None], sigmoid(train), sigmoid(-train))
    weights = linear_weights(happened, gradient)
    answers = (
        gaussian.predict_proba(test)[:, 1],
        logistic.predict_proba(test)[:, 1],
        sigmoid(reference + (test - reference).sum(axis=1)),
        sigmoid(test) @ weights,
        sigmoid(test).mean(axis=1),
    )
    return [score(p, truth) for p in answers]


def recalibrated(train: Array, y: npt.NDArray[np.bool_], test: Array, reference: float) -> tuple[Array, Array]:
    """Return covariates as log-odds, column by column."""
    updated = [np.empty_like(train), np.empty_like(test)]
    for i in range(train.shape[1]):
        zero, one = train[~y, i], train[y, i]
        variance = (((zero - zero.mean()) ** 2).sum() + ((one - one.mean()) ** 2).sum()) / (len(y) - 2)
        slope = (one.mean() - zero.mean()) / variance
        for part, x in zip(updated, (train, test), strict=True):
            part[:, i] = reference + slope * (x[:, i] - (one.mean() + zero.mean()) / 2)
    return updated[0], updated[1]


def linear_weights(q: Array, gradient: bool) -> Array:
    """Return the weights of the linear pool by SLSQP."""
    n = q.shape[1]

    def slope(w: Array) -> Array:
        return -(1 / (q @ w)) @ q / len(q)

    found = minimize(
        lambda w: -np.log(q @ w).mean(),
        np.full(n, 1 / n),
        jac=slope if gradient else None,
        method="SLSQP",
        bounds=[(0, 1)] * n,
        constraints=[{"type": "eq", "fun": lambda w: w.sum() - 1}],
    )
    return np.clip(found.x, 0, 1) / np.clip(found.x, 0, 1).sum()


def sigmoid(x: Array) -> Array:
    """Return the probability of log-odds."""
    return 1 / (1 + np.exp(-x))


def score(p: Array, truth: npt.NDArray[np.bool_]) -> float:
    """Return the mean log score (26)."""
    given = np.clip(np.where(truth, p, 1 - p), 1e-8, 1 - 1e-8)
    return float(1 + np.log2(given).mean())
