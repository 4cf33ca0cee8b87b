"""What the default pool learns from: resolved events with a forecast, as an array of contrasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import TypeAlias

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.blocks import blocks, in_order
from opinionpool.estimation.regression import Observations
from opinionpool.estimation.rows import DenseEvents, ResolvedEvents, option_rows
from opinionpool.estimation.sampling import Draw
from opinionpool.learning.constants import PRIOR_EVENTS
from opinionpool.learning.laplace import Likelihood
from opinionpool.learning.problem import Block, Blocks, DenseContrasts, Problem, SparseContrasts
from opinionpool.learning.quadratic import Arrow
from opinionpool.logodds import expit, logit, softmax
from opinionpool.model.contrasts import Extremes
from opinionpool.model.features import Parts

# Returns all events in blocks, of which `Rows` are a sample.
AllRows: TypeAlias = Callable[[], Iterator[Block]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows(DenseContrasts):
    """Resolved events with a forecast, and how far Laplace's estimate is from the believed prior."""

    base_intercept: Array

    def evidence(self, contrasts: Array) -> ResolvedEvents:
        """Resolved events as statistics or rows, given their contrasts (T, N, K - 1), NaN where missing."""
        sizes = self.sizes
        if sizes is not None:
            event, expert = np.nonzero(~np.isnan(contrasts[..., 0]))
            forecast = contrasts[event, expert]
            return option_rows(event, expert, forecast, self.outcomes, self.weight, sizes, contrasts.shape[1])
        return DenseEvents(contrasts, self.outcomes, self.weight)

    def by_steps(self) -> Array:
        """Contrasts in which forecasts of 0 and 1 are moved inwards by a fourth of the expert's smallest step.

        Who rounds to tenths means less than one in twenty by 0, not one in ten thousand, as the floor has it.
        """
        if self.certain is None:
            return self.contrasts
        ratios = (self.contrasts + self.reference[:, None, :])[..., 0]
        step = np.where(self.certain | np.isnan(ratios), 1.0, expit(-np.abs(ratios))).min(axis=0)
        least = np.where(step < 1.0, logit(1.0 - step / 4.0), np.inf)
        rounded = np.clip(ratios, -least, least)[..., None] - self.reference[:, None, :]
        return np.where(self.certain[..., None], rounded, self.contrasts)

    def log_likelihoods(self) -> Array:
        """Log-likelihoods of what happened by the average and by each expert, (1 + N,)."""
        ratios, t = self.contrasts + self.reference[:, None, :], np.arange(len(self.weight))
        if self.free == 1:
            given = expit(ratios[..., 0] * np.where(self.outcomes == 1, 1.0, -1.0)[:, None])
        else:
            given = softmax(ratios)[t, :, self.outcomes]
        return by_average_and_expert(given, self.weight)

    def observed(self, fill: Parts, extremes: Extremes) -> Observations:
        """Observations for the logistic regression, with missing contrasts imputed by `fill`."""
        full = fill.fill(extremes.deviation(self.contrasts, each_expert(self.absent)))
        topics = self.topics and self.topics._replace(base=-self.base_intercept)
        return Observations(full, self.reference - self.base_intercept, self.outcomes, self.weight, topics)


def by_average_and_expert(given: Array, weight: Array) -> Array:
    """Log-likelihoods of the average and of each expert, (1 + N,), from probabilities of the outcomes, (T, N)."""
    average = np.nanmean(given, axis=1, keepdims=True)
    each = np.where(np.isnan(given), average, given)
    return np.asarray(weight @ np.log(np.concatenate([average, each], axis=1)))


def likelihood(every: AllRows, fill: Parts, extremes: Extremes) -> Likelihood:
    """Return the likelihood of all events, as a function that expands it about a point."""

    def about(point: Array) -> Arrow:
        def some(rows: Block) -> Arrow:
            observed = rows.observed(fill, extremes)
            return Arrow.at(observed, observed.design(), point)

        return reduce(Arrow.and_of, in_order(some, every()))

    return about


def each_expert(absent: Mask | None) -> Mask | None:
    """Mask (T, K - 1) with an axis for the experts, (T, 1, K - 1)."""
    return None if absent is None else absent[:, None, :]


def rows_of(data: DenseContrasts, distinct: Array, first: Index, used: Mask, away: Array) -> Rows:
    """Rows of the used events, with contrasts of distinct experts, the `first` of their groups."""
    return Rows(
        distinct if used.all() else distinct[used],
        data.reference[used],
        data.outcomes[used],
        data.weight[used],
        data.experts,
        None if data.absent is None else data.absent[used],
        topics=data.topics and data.topics.select(used),
        certain=None if data.certain is None else data.certain[np.ix_(used, first)],
        base_intercept=away,
    )


def base_intercept(reference: Array, events: float, forecast: Array) -> Array:
    """Log-ratios L° (K - 1,) of Laplace's estimate from so many events less the believed prior's log-ratios.

    `forecast`, (K,), is the sum over events, resolved or not, of what experts say on average; for two classes.
    """
    number = float(forecast.sum())
    if number == 0 or len(forecast) > 2:
        return reference * PRIOR_EVENTS / (events + PRIOR_EVENTS)
    usual = np.log(forecast[1:] / forecast[0]) * number / (number + PRIOR_EVENTS)
    return np.asarray((reference - usual) * PRIOR_EVENTS / (events + PRIOR_EVENTS))


def frequencies_by_cells(data: SparseContrasts) -> Array:
    """Sum over events of the mean probabilities of the experts, (K,)."""
    number = np.bincount(data.event, minlength=len(data.weight))
    return (data.weight / np.maximum(number, 1))[data.event] @ softmax(data.contrasts + data.reference[data.event])


def forecast_frequencies(data: DenseContrasts, contrasts: Array) -> Array:
    """Sum over events of the mean probabilities of the experts with contrasts (T, N, K - 1), (K,)."""
    found = np.zeros(data.free + 1)
    for rows in blocks(len(contrasts), contrasts[0].size):
        each = contrasts[rows] + data.reference[rows, None]
        number = np.count_nonzero(~np.isnan(each[..., 0]), axis=1)
        total = np.nansum(expit(each) if data.free == 1 else softmax(each)[..., 1:], axis=1)
        share = data.weight[rows] / np.maximum(number, 1)
        found[1:] += share @ total
        found[0] += share @ (number - total.sum(axis=1))
    return found


def sampled(problem: Problem, sample: Draw, weight: Array) -> Problem:
    """Problem with a sample of the events, given the weights of all, (T,), and with blocks of all events."""
    total = float(weight[problem.forecasts.resolved].sum())
    every = replace(problem, weight=weight, total=total)
    return replace(
        problem.select(sample.positions),
        weight=sample.frequencies(weight),
        total=total,
        blocks=None if sample.complete else in_parts(lambda: iter([every])),
    )


def in_parts(
    parts: Callable[[], Iterator[Problem]], counted: Callable[[Problem], Problem] = lambda part: part
) -> Blocks:
    """Function that returns blocks of all resolved events, part by part, with forecasts changed by `counted`."""

    def blocks_of(floor: float, first: Index, away: Array) -> Iterator[Rows]:
        return chain.from_iterable(_in_blocks(counted(part), floor, first, away) for part in parts())

    return blocks_of


def _in_blocks(problem: Problem, floor: float, first: Index, away: Array) -> Iterator[Rows]:
    """The resolved events with a forecast of distinct experts, in blocks."""
    used = np.flatnonzero(problem.forecasts.resolved & (problem.weight > 0))
    numbers = problem.forecasts.shape[1] * (len(problem.classes) - 1)
    # A Hessian takes as much as so many events.
    for rows in blocks(len(used), numbers, numbers):
        data = problem.select(used[rows]).dense(floor)
        distinct = data.contrasts if len(first) == data.contrasts.shape[1] else data.contrasts[:, first]
        answered = np.asarray(~np.isnan(distinct[..., 0]).all(axis=1))
        yield rows_of(data, distinct, first, answered, away)
