"""Forecasts as rows for regressions of contrasts on outcomes by expert, with or without one of the forecasts."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.estimation.averages import Regressions


@dataclass(frozen=True, eq=False)
class Cells:
    """Forecasts of a crowd on T events as M rows, ordered by event, each with a known or an imputed outcome.

    A forecast on an open event has a row for each class that may happen, and the weights of these rows add up to one.
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
        """Return these rows and those of `others`, each of which has all open forecasts with one assumed outcome."""
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
        """True if experts may be biased towards a class, which they cannot be if events have options of their own."""
        return self.own is None

    @property
    def free(self) -> Array:
        """Number of log-ratios of each event, (T,): K - 1, or its number of options less 1."""
        return np.full(self.events, float(self.contrasts.shape[1])) if self.own is None else self.own

    def squares(self, values: Array) -> Array:
        """Return the mean square of the log-ratios `values` (M, K - 1) of each row, (M,)."""
        free = self.contrasts.shape[1] if self.own is None else self.own[self.event]
        return np.asarray(inner(values, values) / free)

    def with_contrasts(self, contrasts: Array) -> Cells:
        """Return a copy with other `contrasts`, (M, K - 1), which reuses the sums that do not depend on contrasts."""
        found, kept = copy(self), ("counted", "lengths", "length", "number", "event_weight")
        vars(found).update({name: getattr(self, name) for name in kept}, contrasts=contrasts)
        return found

    def by_expert(self, values: Array) -> Array:
        """Sums (N, ...) of `values` (M, ...) over the rows of each expert, each row weighted."""
        if self._complete:
            return np.asarray(self.weight[:: self.experts] @ values.reshape(self.events, -1)).reshape(
                -1, *values.shape[1:]
            )
        if values.ndim > 1:
            return np.stack([self.by_expert(column) for column in values.T], axis=-1)
        return np.bincount(self.expert, weights=self.weight * values, minlength=self.experts).astype(np.float64)

    @cached_property
    def _complete(self) -> bool:
        """True if every expert has a row on every event, so that rows are an array of events x experts."""
        return 0 < len(self.event) == self.events * self.experts

    @cached_property
    def lengths(self) -> Array:
        """Squared length of the signature of each row's outcome (a vector of log-ratios, ±1 for two classes), (M,)."""
        return inner(self.signs, self.signs)

    @cached_property
    def length(self) -> float:
        """Mean squared length of the signatures of the rows' outcomes (vectors of log-ratios, ±1 for two classes)."""
        return float(self.lengths.mean())

    @cached_property
    def counted(self) -> tuple[Array, Array, Array]:
        """Sums over each expert's weighted rows: of 1, of signatures (N, K - 1), of signatures' squared lengths."""
        return self.by_expert(np.ones(len(self.event))), self.by_expert(self.signs), self.by_expert(self.lengths)

    def regressions(self, values: Array) -> Regressions:
        """Sums over each expert's rows to regress log-ratios (M, K - 1) on outcomes' signatures (±1 if K = 2)."""
        count, signature, square = self.counted
        return Regressions(count, signature, self.by_expert(values), square, self.by_expert(inner(self.signs, values)))

    @cached_property
    def sums(self) -> Regressions:
        """Sums over each expert's rows to regress contrasts on outcomes' signatures (±1 if K = 2)."""
        return self.regressions(self.contrasts)

    @cached_property
    def number(self) -> Array:
        """Number of rows on each event, (T,)."""
        return self.by_event(np.ones(len(self.event)))

    @cached_property
    def event_weight(self) -> Array:
        """Mean weight of the rows on each event, (T,)."""
        return self.by_event(self.weight) / np.maximum(self.number, 1.0)

    def by_event(self, values: Array) -> Array:
        """Sums (T,) of `values` (M,) over the rows of each event, unweighted."""
        if self._complete:
            return np.asarray(values.reshape(self.events, -1).sum(axis=1))
        return np.bincount(self.event, weights=values, minlength=self.events).astype(np.float64)

    def of_forecast(self, values: Array) -> Array:
        """For each row, the sum of `values` (M, ...) over all rows of its forecast (several if the event is open)."""
        if self.forecast is None:
            return values
        columns = values.reshape(len(values), -1).T
        summed = [np.bincount(self.forecast, column)[self.forecast] for column in columns]
        return np.asarray(np.stack(summed, axis=-1).reshape(values.shape), dtype=np.float64)

    @property
    def lost_weight(self) -> Array:
        """Weight that each row loses when its forecast is left out, (M,); all rows of a forecast lose at most 1."""
        return np.asarray(self.weight / np.maximum(self.of_forecast(self.weight), 1.0))


def inner(a: Array, b: Array) -> Array:
    """Return the inner product of each row of `a` (M, K - 1) with the same row of `b`, (M,)."""
    return np.asarray(np.einsum("md,md->m", a, b))


def products(cells: Cells, values: Array) -> tuple[Array, ...]:
    """Return, for each row and its log-ratios, `values` (M, K - 1), the terms that the fields of `Regressions` sum."""
    return np.ones(len(values)), cells.signs, values, cells.lengths, inner(cells.signs, values)


def without_forecast(sums: Regressions, cells: Cells, values: Array) -> Regressions:
    """Return sums for M regressions: for each row, `sums` of the row's expert less the terms of the row's forecast."""
    own, lost_weight = cells.expert, cells.lost_weight

    def less(total: Array, each: Array) -> Array:
        weight = lost_weight if each.ndim == 1 else lost_weight[:, None]
        return np.asarray(total[own] - cells.of_forecast(weight * each))

    return Regressions(*map(less, vars(sums).values(), products(cells, values)))
