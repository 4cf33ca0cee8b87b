"""Experiments of the paper's section 5: pools compared as more experts are drawn from a data set.

For each number N of experts, and in each of 30 iterations, N experts and half of the events are drawn without
replacement; the pools learn from that half and are scored (26) on the other, with a uniform scoring prior and the
floors of section 5.3. Covariates become log-odds by section 4.1, learned from the training half only.

The five pools of the paper are fitted by `opinionpool.paper.batch_fits`, all iterations at once; the default pool is a
sixth one. The draws depend only on the seed, the data set and N.
"""

from __future__ import annotations

import multiprocessing
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Mask
from opinionpool.forecasts import Forecasts
from opinionpool.learning.problem import Problem
from opinionpool.logodds import FLOOR, expit
from opinionpool.paper import batch_fits
from opinionpool.paper.datasets import DataSet
from opinionpool.pools.fit import fit_from

ITERATIONS = 30
METHODS = ("gaussian", "logistic", "independent", "linear", "average")
DEFAULT = "default"


class Draw(NamedTuple):
    """Data of B random iterations: floored log-odds (B, T, N) and outcomes (B, T) for training, and for tests."""

    train: Array
    y: Mask  # outcomes of the training data
    test: Array
    truth: Mask  # outcomes of the test data


@dataclass(frozen=True, eq=False)
class Point:
    """Scores of the methods with N experts in B iterations, each with a random draw of experts and events."""

    scores: Array  # (6, B); mean score on the test half, by `METHODS` and, last, the default pool
    separated: Mask  # (B,); True if the logistic likelihood of the training half has no maximum
    limit: Array  # (B,); the score, if so, in the limit of infinite coefficients; else NaN


@dataclass(frozen=True, eq=False)
class Curves:
    """Scores of the pools on a data set, for each of P numbers of experts and in each of B iterations."""

    data: DataSet
    numbers: npt.NDArray[np.intp]  # (P,); numbers of experts N
    scores: Array  # (6, P, B)
    separated: Mask  # (P, B)
    limit: Array  # (P, B)

    def of(self, method: str) -> Array:
        """Return the scores of `method` by number of experts and iteration, (P, B)."""
        return np.asarray(self.scores[(*METHODS, DEFAULT).index(method)])

    def mean(self, method: str) -> Array:
        """Return the mean score of `method` over the iterations, by number of experts, (P,)."""
        return np.asarray(self.of(method).mean(axis=1))

    def error(self, method: str) -> Array:
        """Standard error of `mean(method)` over the random draws of experts and of training halves, (P,)."""
        return standard_error(self.of(method))

    def gain(self, method: str, over: str) -> tuple[Array, Array]:
        """Mean score of `method` less that of `over`, by number of experts, and its standard error, (P,) each."""
        difference = self.of(method) - self.of(over)
        return np.asarray(difference.mean(axis=1)), standard_error(difference)


def standard_error(values: Array) -> Array:
    """Return the standard error of the mean over the last axis; 0 for a single value."""
    count = values.shape[-1]
    return np.asarray(values.std(axis=-1, ddof=1) / np.sqrt(count)) if count > 1 else np.zeros(values.shape[:-1])


def draw(data: DataSet, n: int, iterations: int, seed: int) -> Draw:
    """Return `n` random experts and a random half of the events to train on, for each iteration.

    >>> from opinionpool.paper.datasets import simulated
    >>> [part.shape for part in draw(simulated(0.2, 1.0), n=3, iterations=2, seed=0)]
    [(2, 250, 3), (2, 250), (2, 250, 3), (2, 250)]
    """
    rng = np.random.default_rng([seed, zlib.crc32(data.name.encode()), n])
    events, experts = data.values.shape
    half = events // 2
    columns = rng.permuted(np.tile(np.arange(experts), (iterations, 1)), axis=1)[:, :n]
    rows = rng.permuted(np.tile(np.arange(events), (iterations, 1)), axis=1)
    train, test = (data.values[part[:, :, None], columns[:, None, :]] for part in (rows[:, :half], rows[:, half:]))
    y, truth = data.outcomes[rows[:, :half]], data.outcomes[rows[:, half:]]
    if data.covariates:
        train, test = batch_fits.recalibrated(train, y, test)
    edge = float(np.log((1.0 - FLOOR) / FLOOR))
    return Draw(np.clip(train, -edge, edge), y, np.clip(test, -edge, edge), truth)


def fit_five(drawn: Draw) -> Point:
    """Return the scores of the paper's five methods on the test data; NaN in place of the package's default pool."""
    train, y, test, truth = drawn
    gaussian = batch_fits.gaussian_pools(train, y)
    logistic = batch_fits.logistic_pools(train, y, gaussian)
    average = np.full((len(train), train.shape[2]), 1.0 / train.shape[2])
    forecast = expit(test)
    answers = (
        gaussian.pool(test),
        logistic.pools.pool(test),
        batch_fits.independent_pools(train, y).pool(test),
        batch_fits.linear_log_odds(batch_fits.linear_weights(train, y), forecast),
        batch_fits.linear_log_odds(average, forecast),
    )
    scores = batch_fits.mean_scores(np.array(answers), truth)
    endless = np.where(logistic.limit.pool(test) > 0, np.inf, -np.inf)
    limit = np.where(logistic.separated, batch_fits.mean_scores(endless, truth), np.nan)
    return Point(np.array([*scores, np.full(len(train), np.nan)]), logistic.separated, limit)


def default_scores(drawn: Draw) -> Array:
    """Return the scores of the package's default pool in each of the B iterations, (B,)."""
    scores = []
    for train, y, test, truth in zip(*drawn, strict=True):
        problem = Problem.of(Forecasts.from_array(expit(train), y.astype(np.int64)), None, None)
        given = np.asarray(fit_from(problem, "gaussian", answers_only=True).pool(expit(test)))
        scores.append(1.0 + np.log2(np.where(truth, given, 1.0 - given)).mean())
    return np.array(scores)


def run_point(task: tuple[DataSet, int, int, int]) -> Point:
    """Return scores of all six methods for one `task`: data set, N, number of iterations and seed."""
    drawn = draw(*task)
    point = fit_five(drawn)
    point.scores[-1] = default_scores(drawn)
    return point


def run(
    sets: Sequence[DataSet],
    iterations: int = ITERATIONS,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[float], None] | None = None,
) -> list[Curves]:
    """Return the scores of all six methods on each data set, with N from 1 to all of its experts.

    The same seed gives the same scores for any number of processes, `workers`. `progress` is called with the share of
    the work that is done.
    """
    tasks = [(data, n, iterations, seed) for data in sets for n in range(1, len(data.experts) + 1)]
    points: list[Point] = []
    with _mapped(workers) as apply:
        for point in apply(run_point, tasks):
            points.append(point)
            if progress is not None:
                progress(len(points) / len(tasks))
    curves, rest = [], iter(points)
    for data in sets:
        found = [next(rest) for _ in data.experts]
        curves.append(
            Curves(
                data,
                np.arange(1, len(found) + 1),
                np.stack([point.scores for point in found], axis=1),
                np.array([point.separated for point in found]),
                np.array([point.limit for point in found]),
            )
        )
    return curves


Task: TypeAlias = tuple[DataSet, int, int, int]


@contextmanager
def _mapped(workers: int) -> Iterator[Callable[[Callable[[Task], Point], Iterable[Task]], Iterable[Point]]]:
    """Context manager that gives a function like map, which works in this process or in `workers` processes."""
    if workers <= 1:
        yield map
        return
    # Fresh processes: a copy of one whose linear algebra has threads may hang.
    executor = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    try:
        yield executor.map
    finally:
        # After an interruption, what has not begun is not waited for.
        executor.shutdown(cancel_futures=True)
