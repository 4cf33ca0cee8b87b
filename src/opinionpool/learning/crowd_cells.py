"""The forecasts of a crowd row by row, and regressions of each expert's on outcomes, with or without one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from opinionpool.arrays import Array, Index


@dataclass(frozen=True, eq=False)
class Cells:
    """M rows on T events, ordered by event: forecasts with a known or an imputed outcome.

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
    # (T,); where events have options of their own, towards which nobody can be biased, how many of the K - 1
    # coordinates each has
    own: Array | None = None
    forecast: Index | None = None  # (M,); which forecast each row is of; None if each is of its own

    def and_then(self, *others: Cells) -> Cells:
        """These rows joined with `others`, on further events; all of the others have rows of the same forecasts."""
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

    def on_events(self, events: Index, weight: Array) -> tuple[Index, Cells]:
        """The rows on some events, in order, with other frequencies of these; and their positions."""
        place = np.full(self.events, -1)
        place[events] = np.arange(len(events))
        rows = np.flatnonzero(place[self.event] >= 0)
        row_event = place[self.event[rows]]
        return rows, replace(
            self,
            event=row_event,
            expert=self.expert[rows],
            contrasts=self.contrasts[rows],
            signs=self.signs[rows],
            weight=weight[row_event],
            events=len(events),
            own=None if self.own is None else self.own[events],
            forecast=None,
        )

    @property
    def biased(self) -> bool:
        """Whether experts may be biased towards a class."""
        return self.own is None

    @property
    def free(self) -> Array:
        """Number of coordinates of each event, (T,)."""
        return np.full(self.events, float(self.contrasts.shape[1])) if self.own is None else self.own

    @property
    def rows(self) -> float:
        """Weighted number of coordinates of all forecasts."""
        return float(self.weight @ self.free[self.event])

    def squares(self, values: Array) -> Array:
        """Mean squares over the coordinates of each row, (M,)."""
        return np.asarray((values**2).sum(axis=1) / self.free[self.event])

    def by_expert(self, values: Array) -> Array:
        """Weighted sums of values (M,) by expert, (N,)."""
        return np.bincount(self.expert, weights=self.weight * values, minlength=self.experts).astype(np.float64)

    @cached_property
    def number(self) -> Array:
        """Rows on each event, (T,)."""
        return self.by_event(np.ones(len(self.event)))

    @cached_property
    def event_weight(self) -> Array:
        """Mean weight of the rows on each event, (T,)."""
        return self.by_event(self.weight) / np.maximum(self.number, 1.0)

    def by_event(self, values: Array) -> Array:
        """Unweighted sums of values (M,) by event, (T,)."""
        return np.bincount(self.event, weights=values, minlength=self.events).astype(np.float64)

    def of_forecast(self, values: Array) -> Array:
        """Sums (M, ...) over the rows of the same forecast."""
        if self.forecast is None:
            return values
        columns = values.reshape(len(values), -1).T
        summed = [np.bincount(self.forecast, column)[self.forecast] for column in columns]
        return np.asarray(np.stack(summed, axis=-1).reshape(values.shape), dtype=np.float64)

    @property
    def once(self) -> Array:
        """Weight of each row that is left out with its forecast, at most 1 in total per forecast, (M,)."""
        return np.asarray(self.weight / np.maximum(self.of_forecast(self.weight), 1.0))


@dataclass(frozen=True, eq=False)
class Regressions:
    """Sums for a ridge regression each: count, signature, value, and their products; arrays of one shape (...)."""

    count: Array
    signs: Array
    value: Array
    length: Array
    cross: Array
    square: Array

    @classmethod
    def by_expert(cls, cells: Cells, values: Array) -> Regressions:
        """Regression sums of each expert, for values (M, K - 1)."""
        signs = np.stack([cells.by_expert(column) for column in cells.signs.T], axis=-1)
        value = np.stack([cells.by_expert(column) for column in values.T], axis=-1)
        return cls(
            cells.by_expert(np.ones(len(values))),
            signs,
            value,
            cells.by_expert((cells.signs**2).sum(axis=1)),
            cells.by_expert((cells.signs * values).sum(axis=1)),
            cells.by_expert((values**2).sum(axis=1)),
        )

    def without(self, cells: Cells, values: Array) -> Regressions:
        """For each row, the sums of its expert's other forecasts, (M,)."""
        own, once = cells.expert, cells.once

        def less(total: Array, each: Array) -> Array:
            weight = once if each.ndim == 1 else once[:, None]
            return np.asarray(total[own] - cells.of_forecast(weight * each))

        return Regressions(
            less(self.count, np.ones(len(own))),
            less(self.signs, cells.signs),
            less(self.value, values),
            less(self.length, (cells.signs**2).sum(axis=1)),
            less(self.cross, (cells.signs * values).sum(axis=1)),
            less(self.square, (values**2).sum(axis=1)),
        )

    def solve(self, worth: tuple[float, float], length: float) -> tuple[Array, Array, Array, Array]:
        """Bias (..., K - 1), contrast (...), residual squares (...), and the pivot of the contrast (...)."""
        count = self.count + worth[0]
        pivot = self.length + worth[1] * length - (self.signs**2).sum(axis=-1) / count
        contrast = (self.cross - (self.signs * self.value).sum(axis=-1) / count) / pivot
        bias = (self.value - contrast[..., None] * self.signs) / count[..., None]
        fitted = (bias * self.value).sum(axis=-1) + contrast * self.cross
        size = self.count * (bias**2).sum(axis=-1) + self.length * contrast**2
        both = 2.0 * contrast * (bias * self.signs).sum(axis=-1)
        return bias, contrast, np.maximum(self.square - 2.0 * fitted + size + both, 0.0), pivot

    def uncertain(self, worth: tuple[float, float], pivot: Array) -> tuple[Array, Array]:
        """Posterior variances of a coordinate of the bias and of the contrast, for a variance of 1 of the values."""
        count, d = self.count + worth[0], self.signs.shape[-1]
        return 1.0 / count + (self.signs**2).sum(axis=-1) / (d * count**2 * pivot), 1.0 / pivot
