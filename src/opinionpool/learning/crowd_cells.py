"""Forecasts of a crowd as rows, and each expert's regression of contrasts on outcomes, with or without one forecast."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from opinionpool.arrays import Array, Index


@dataclass(frozen=True, eq=False)
class Cells:
    """Forecasts of a crowd on T events as M rows, ordered by event, each with a known or an imputed outcome.

    A forecast on an open event has a row for each class that it may be, and the weights of these add up to one.
    """

    # event, expert: (M,)
    event: Index
    expert: Index
    contrasts: Array  # (M, K - 1); whitened
    signs: Array  # (M, K - 1); whitened signature of what happened
    weight: Array  # (M,); frequencies
    # events, experts: T and N
    events: int
    experts: int
    # (T,); number of the K - 1 coordinates that each event has, if events have options of their own, towards which
    # nobody can be biased
    own: Array | None = None
    forecast: Index | None = None  # (M,); number of the forecast that each row is of; None if all rows differ in it

    def and_then(self, *others: Cells) -> Cells:
        """Return these rows, then those of `others`, each with all open forecasts and another assumed outcome."""
        every, rows, size = (self, *others), len(self.event), len(others[0].event)
        events = np.cumsum([0, *(each.events for each in every)]).tolist()
        return replace(
            self,
            event=np.concatenate([each.event + first for each, first in zip(every, events, strict=False)]),
            expert=np.concatenate([each.expert for each in every]),
            contrasts=np.concatenate([each.contrasts for each in every]),
            signs=np.concatenate([each.signs for each in every]),
            weight=np.concatenate([each.weight for each in every]),
            events=events[-1],
            own=None if self.own is None else np.concatenate([each.free for each in every]),
            forecast=np.concatenate([np.arange(rows), *(rows + np.arange(size) for _ in others)]),
        )

    @property
    def biased(self) -> bool:
        """True if experts may be biased towards a class: not if events have options of their own."""
        return self.own is None

    @property
    def free(self) -> Array:
        """Number of log-ratios of each event, (T,): K - 1, or its number of options less 1."""
        return np.full(self.events, float(self.contrasts.shape[1])) if self.own is None else self.own

    @property
    def rows(self) -> float:
        """Number of log-ratios of all forecasts, each weighted."""
        return float(self.weight @ self.free[self.event])

    def squares(self, values: Array) -> Array:
        """Return the mean square of the log-ratios `values` (M, K - 1) of each row, (M,)."""
        return np.asarray((values**2).sum(axis=1) / self.free[self.event])

    def by_expert(self, values: Array) -> Array:
        """Return the weighted sum over each expert's rows of `values` (M,), (N,)."""
        return np.bincount(self.expert, weights=self.weight * values, minlength=self.experts).astype(np.float64)

    @cached_property
    def number(self) -> Array:
        """Number of rows on each event, (T,)."""
        return self.by_event(np.ones(len(self.event)))

    @cached_property
    def event_weight(self) -> Array:
        """Mean weight of the rows on each event, (T,)."""
        return self.by_event(self.weight) / np.maximum(self.number, 1.0)

    def by_event(self, values: Array) -> Array:
        """Return the unweighted sum over each event's rows of `values` (M,), (T,)."""
        return np.bincount(self.event, weights=values, minlength=self.events).astype(np.float64)

    def of_forecast(self, values: Array) -> Array:
        """For each row, the sum of `values` (M, ...) over all rows of the row's forecast."""
        if self.forecast is None:
            return values
        columns = values.reshape(len(values), -1).T
        summed = [np.bincount(self.forecast, column)[self.forecast] for column in columns]
        return np.asarray(np.stack(summed, axis=-1).reshape(values.shape), dtype=np.float64)

    @property
    def lost_weight(self) -> Array:
        """Weight that each row loses when its forecast is left out, (M,); the rows of one forecast lose at most 1."""
        return np.asarray(self.weight / np.maximum(self.of_forecast(self.weight), 1.0))


@dataclass(frozen=True, eq=False)
class Regressions:
    """Sums for ridge regressions of log-ratios on signatures (log-ratios that point to the outcome), one per expert."""

    count: Array
    signs: Array
    value: Array
    length: Array
    cross: Array
    square: Array

    @classmethod
    def by_expert(cls, cells: Cells, values: Array) -> Regressions:
        """Sums for a regression per expert: of `values` (M, K - 1) on log-ratios that point to the outcome."""

        def summed(each: Array) -> Array:
            return cells.by_expert(each) if each.ndim == 1 else np.stack([summed(own) for own in each.T], axis=-1)

        return cls(*map(summed, products(cells, values)))

    def among(self, rows: Index | slice) -> Regressions:
        """Return the sums at the positions `rows`, of experts or of forecasts."""
        return Regressions(*(each[rows] for each in vars(self).values()))

    def without(self, cells: Cells, values: Array) -> Regressions:
        """Sums for one regression for each row, (M,), of its expert's other forecasts."""
        own, lost_weight = cells.expert, cells.lost_weight

        def less(total: Array, each: Array) -> Array:
            weight = lost_weight if each.ndim == 1 else lost_weight[:, None]
            return np.asarray(total[own] - cells.of_forecast(weight * each))

        return Regressions(*map(less, vars(self).values(), products(cells, values)))

    def solve(self, worth: tuple[float, float], length: float) -> tuple[Array, Array, Array, Array]:
        """Return bias (..., K - 1); contrast, sum of squared residuals, and precision of the contrast, (...) each.

        `worth` are the numbers of forecasts that bias 0 and contrast 0 count as, `length` the squared norm of a
        signature.
        """
        count = self.count + worth[0]
        pivot = self.length + worth[1] * length - (self.signs**2).sum(axis=-1) / count
        contrast = (self.cross - (self.signs * self.value).sum(axis=-1) / count) / pivot
        bias = (self.value - contrast[..., None] * self.signs) / count[..., None]
        fitted = (bias * self.value).sum(axis=-1) + contrast * self.cross
        size = self.count * (bias**2).sum(axis=-1) + self.length * contrast**2
        both = 2.0 * contrast * (bias * self.signs).sum(axis=-1)
        return bias, contrast, np.maximum(self.square - 2.0 * fitted + size + both, 0.0), pivot

    def uncertain(self, worth: tuple[float, float], pivot: Array) -> tuple[Array, Array]:
        """Posterior variances of bias and contrast, (...) each, relative to the residuals'; arguments as in `solve`."""
        count, d = self.count + worth[0], self.signs.shape[-1]
        return 1.0 / count + (self.signs**2).sum(axis=-1) / (d * count**2 * pivot), 1.0 / pivot


def products(cells: Cells, values: Array) -> tuple[Array, ...]:
    """Return each row's terms of the sums in `Regressions`, in the order of its fields, for `values` (M, K - 1)."""
    pairs = (cells.signs, cells.signs), (cells.signs, values), (values, values)
    return np.ones(len(values)), cells.signs, values, *((a * b).sum(axis=1) for a, b in pairs)
