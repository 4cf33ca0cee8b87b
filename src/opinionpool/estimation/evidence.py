"""What learning may ask of resolved events, answered from moments or from rows.

Moments answer in memory that does not grow with the number of events; rows answer in time linear in the
number of forecasts, however many patterns of missing forecasts there are. Both give the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.estimation.moments import RESOLVED, Marginals, Moments
from opinionpool.labels import UNRESOLVED
from opinionpool.logodds import inner_products, metric, signature

# Cross-products of so many experts are never large.
FEW_EXPERTS = 500


@dataclass(frozen=True, eq=False)
class Design:
    """What a contrast mean of 1 looks like in each of G groups of events that are alike in this."""

    signature: Array  # (G, K - 1); log-ratios. Where events share their classes, groups are the outcomes.
    biased: bool = True  # whether experts may be biased towards one class

    @classmethod
    def by_outcome(cls, classes: int) -> Design:
        """For events that share K classes."""
        return cls(signature(classes))

    @property
    def coefficients(self) -> int:
        """How many numbers an expert's mean has: bias, if any, and contrast."""
        return int(self.signature.shape[1]) + 1 if self.biased else 1

    @property
    def length(self) -> Array:
        """Squared lengths of the signatures, (G,)."""
        return inner_products(self.signature, self.signature)

    def events(self, weight: Array) -> float:
        """How many events there are by the weights of the groups, (G,): each is in one group with a signature."""
        return float(weight.sum() if self.biased else weight[self.length > 0].sum())

    def mean_length(self, weight: Array) -> float:
        """Of the signatures that an event has."""
        return float(self.length[0] if self.biased else self.length @ weight / max(self.events(weight), 1e-300))


class Evidence(Protocol):
    """Resolved events, as far as the estimates of model.md, section 2.5, need them.

    "Outcome" means a group of `design` here.
    """

    @property
    def classes(self) -> int:
        """K."""

    @property
    def design(self) -> Design:
        """What is expected by outcome."""

    @property
    def events(self) -> Array:
        """Weight of the resolved events by outcome, (K,)."""

    @property
    def answered(self) -> Array:
        """The same for events with at least one forecast, (K,)."""

    @property
    def complete(self) -> bool:
        """Whether every expert answered on every one of those."""

    @property
    def marginals(self) -> Marginals:
        """Moments of each expert by itself."""

    def scatter(self) -> Array:
        """Cross-products about the means of the outcomes, (N, N); complete evidence only."""

    def shared(self, expected: Array, spread: Array) -> tuple[float, float]:
        """Products of residuals over pairs of different experts on the same event: their sum, and the number.

        Parameters
        ----------
        expected : ndarray, shape (K, N, K - 1)
            Log-ratios expected given each outcome.
        spread : ndarray, shape (N,)
            What to divide each expert's residuals by; infinite for experts to be left out.
        """


@dataclass(frozen=True, eq=False)
class MomentEvidence:
    """Evidence as moments."""

    moments: Moments

    @property
    def classes(self) -> int:
        """K."""
        return self.moments.classes

    @property
    def design(self) -> Design:
        """What is expected by outcome."""
        return Design.by_outcome(self.classes)

    @property
    def events(self) -> Array:
        """Weight of the resolved events by outcome, (K,)."""
        return self.moments.events[:-1]

    @cached_property
    def answered(self) -> Array:
        """The same for events with at least one forecast, (K,)."""
        parts = [part.weight[:-1] for part in self.moments.patterns.values()]
        return np.asarray(np.sum(parts, axis=0) if parts else np.zeros(self.classes))

    @property
    def complete(self) -> bool:
        """Whether every expert answered on every one of those."""
        everyone = len(self.moments.experts)
        return all(len(key) == everyone or not part.weight[:-1].any() for key, part in self.moments.patterns.items())

    @cached_property
    def marginals(self) -> Marginals:
        """Moments of each expert by itself."""
        return self.moments.marginals()

    def scatter(self) -> Array:
        """Cross-products about the means of the outcomes, (N, N); complete evidence only."""
        n = len(self.moments.experts)
        parts = [part.scatter[RESOLVED] for key, part in self.moments.patterns.items() if len(key) == n]
        return parts[0].copy() if parts else np.zeros((n, n))

    def shared(self, expected: Array, spread: Array) -> tuple[float, float]:
        """Products of residuals over pairs of different experts on the same event: their sum, and the number."""
        scale, finite = np.where(np.isfinite(spread), 1.0 / spread, 0.0), np.isfinite(spread)
        total = pairs = 0.0
        for key, part in self.moments.patterns.items():
            columns = np.array(key)
            size, weight = scale[columns], part.weight[:-1]
            off = (part.mean[:-1] - expected[:, columns]) * size[:, None]
            within = part.scatter[RESOLVED] * np.outer(size, size)
            summed, each = off.sum(axis=1), inner_products(off, off).sum(axis=1)
            total += within.sum() - np.trace(within)
            total += float(weight @ (inner_products(summed, summed) - each))
            present = int(finite[columns].sum())
            pairs += float(weight.sum()) * present * (present - 1)
        return total, pairs


@dataclass(frozen=True, eq=False)
class RowEvidence:
    """Evidence as rows: the log-ratios of M forecasts, ordered by event."""

    # event_index, expert_index: (M,)
    event_index: npt.NDArray[np.intp]
    expert_index: npt.NDArray[np.intp]
    ratios: Array  # (M, K - 1); less their reference where it differs from event to event
    outcomes: npt.NDArray[np.intp]  # (T,); -1 where not resolved
    weight: Array  # (T,); frequencies
    experts: int  # N
    groups: Design | None = None  # what `outcomes` number, if not K classes

    @property
    def classes(self) -> int:
        """K."""
        return int(self.ratios.shape[1]) + 1

    @cached_property
    def design(self) -> Design:
        """What is expected by outcome."""
        return self.groups or Design.by_outcome(self.classes)

    @cached_property
    def events(self) -> Array:
        """Weight of the resolved events by outcome, (K,)."""
        return self._by_outcome(self.outcomes != UNRESOLVED)

    @cached_property
    def _crowd(self) -> npt.NDArray[np.intp]:
        return np.bincount(self.event_index, minlength=len(self.outcomes))

    @cached_property
    def answered(self) -> Array:
        """The same for events with at least one forecast, (K,)."""
        return self._by_outcome((self.outcomes != UNRESOLVED) & (self._crowd > 0))

    def _by_outcome(self, known: npt.NDArray[np.bool_]) -> Array:
        counts = np.bincount(self.outcomes[known], weights=self.weight[known], minlength=len(self.design.signature))
        return np.asarray(counts, dtype=np.float64)

    @property
    def complete(self) -> bool:
        """Whether every expert answered on every one of those."""
        counted = (self.outcomes != UNRESOLVED) & (self._crowd > 0) & (self.weight > 0)
        return bool((self._crowd[counted] == self.experts).all())

    @cached_property
    def _cell(self) -> npt.NDArray[np.intp]:
        """Outcome and expert of each forecast as one number, the last outcome for unresolved."""
        group = np.where(self.outcomes == UNRESOLVED, len(self.design.signature), self.outcomes)
        return np.asarray(group[self.event_index] * self.experts + self.expert_index)

    @cached_property
    def marginals(self) -> Marginals:
        """Moments of each expert by itself."""
        k, n = self.classes, self.experts
        weight = self.weight[self.event_index]
        count = self._sum(weight)
        safe = np.where(count > 0, count, 1.0)
        moved = self._moved
        mean = moved * np.stack([self._sum(weight * column) / safe for column in self.ratios.T], axis=-1)
        residual = self.ratios - mean.reshape(-1, k - 1)[self._cell]
        # The residuals' own mean is what rounding left out of the mean.
        mean += moved * np.stack([self._sum(weight * column) / safe for column in residual.T], axis=-1)
        residual = self.ratios - mean.reshape(-1, k - 1)[self._cell]
        square = self._sum(weight * inner_products(residual, residual))
        return Marginals(count, mean, np.stack([square[:-1].sum(axis=0), square[-1]]).reshape(2, n))

    @property
    def _moved(self) -> Array:
        """0 for groups whose mean is known to be 0, whatever coordinates stand for the noise in it, (K + 1, 1, 1)."""
        moved = np.append((self.design.length > 0) | self.design.biased, True)
        return np.asarray(moved[:, None, None], dtype=np.float64)

    def _sum(self, values: Array) -> Array:
        """Sum over the forecasts of each expert by outcome, (K + 1, N)."""
        shape = (len(self.design.signature) + 1, self.experts)
        return np.asarray(np.bincount(self._cell, weights=values, minlength=shape[0] * shape[1]).reshape(shape), float)

    def scatter(self) -> Array:
        """Cross-products about the means of the outcomes, (N, N); complete evidence only."""
        counted = (self.outcomes[self.event_index] != UNRESOLVED) & (self.weight[self.event_index] > 0)
        d = self.classes - 1
        residual = (self.ratios - self.marginals.mean.reshape(-1, d)[self._cell])[counted].reshape(-1, self.experts, d)
        weight = self.weight[self.event_index[counted][:: self.experts]]
        inner = metric(self.classes)
        return np.asarray(np.einsum("t,tnd,de,tme->nm", weight, residual, inner, residual, optimize=True))

    def shared(self, expected: Array, spread: Array) -> tuple[float, float]:
        """Products of residuals over pairs of different experts on the same event: their sum, and the number."""
        known = (self.outcomes[self.event_index] != UNRESOLVED) & np.isfinite(spread)[self.expert_index]
        event, expert = self.event_index[known], self.expert_index[known]
        scaled = (self.ratios[known] - expected[self.outcomes[event], expert]) / spread[expert][:, None]
        size = len(self.outcomes)
        sums = [np.bincount(event, weights=column, minlength=size) for column in scaled.T]
        summed = np.stack(sums, axis=-1).astype(np.float64, copy=False)
        each = np.bincount(event, weights=inner_products(scaled, scaled), minlength=size)
        present = np.bincount(event, minlength=size)
        products = inner_products(summed, summed) - each
        return float(self.weight @ products), float(self.weight @ (present * (present - 1.0)))


def few_enough(experts: int, events: int) -> bool:
    """Whether moments of so many experts are smaller than the rows of so many events, or small anyway."""
    return experts <= max(events, FEW_EXPERTS)


def turned(contrasts: Array, outcome: Index) -> Array:
    """Contrasts over all K options in coordinates of which the first points to the outcome.

    Parameters
    ----------
    contrasts : ndarray, shape (M, K - 1)
        Log-ratios.
    outcome : ndarray of int, shape (M,)

    Returns
    -------
    ndarray, shape (M, K - 1)
        Its plain inner products are those of log-ratios by the metric.

    Examples
    --------
    >>> turned(np.array([[1.5], [1.5]]), np.array([1, 0])).ravel()
    array([ 1.5, -1.5])
    """
    m, k = len(contrasts), contrasts.shape[1] + 1
    full = np.concatenate([np.zeros((m, 1)), contrasts], axis=1)
    place = np.arange(1, k) - (np.arange(1, k) <= outcome[:, None])
    others = np.take_along_axis(full, place, axis=1)
    own = np.take_along_axis(full, outcome[:, None], axis=1)
    first = (own - others.mean(axis=1, keepdims=True)) * np.sqrt(2.0 * (k - 1) / k)
    return np.concatenate([first, others @ _helmert(k - 1) * np.sqrt(2.0)], axis=1)


def _helmert(k: int) -> Array:
    """Orthonormal columns of k numbers that add up to 0, (k, k - 1)."""
    j = np.arange(1, k)
    below = np.arange(k)[:, None]
    basis = np.where(below < j, 1.0, np.where(below == j, -j, 0.0))
    return np.asarray(basis / np.sqrt(j * (j + 1.0)))


def option_rows(
    event: Index, expert: Index, contrasts: Array, outcomes: Index, weight: Array, sizes: Index, experts: int
) -> RowEvidence:
    """The forecasts on resolved events as evidence without bias, a row for each coordinate.

    Parameters
    ----------
    event, expert : ndarray of int, shape (M,)
    contrasts : ndarray, shape (M, K - 1)
        Of the options, which come first.
    outcomes, sizes : ndarray of int, shape (T,)
        What happened, -1 where not resolved; and how many options there are.
    weight : ndarray, shape (T,)
        Frequencies.
    experts : int
    """
    known = (outcomes >= 0) & (weight > 0)
    counts = np.unique(sizes[known])
    free = np.where(known, sizes - 1, 0)
    first = np.concatenate([[0], np.cumsum(free)[:-1]]) if len(free) else free
    rows, columns, values = [], [], []
    for size in counts.tolist():
        cells = np.flatnonzero(known[event] & (sizes[event] == size))
        own = turned(contrasts[cells, : size - 1], outcomes[event[cells]])
        rows.append((first[event[cells], None] + np.arange(size - 1)).ravel())
        columns.append(np.repeat(expert[cells], size - 1))
        values.append(own.ravel())
    blank = np.empty(0, dtype=np.intp)
    row, column = np.concatenate([blank, *rows]), np.concatenate([blank, *columns])
    order = np.lexsort((column, row))
    # Groups: coordinates of noise, then those that point to the outcome, by the number of options.
    owner = np.repeat(np.arange(len(free)), free)
    leading = np.arange(len(owner)) == first[owner]
    group = np.where(leading, 1 + np.searchsorted(counts, sizes[owner]), 0)
    signature = np.concatenate([[0.0], np.sqrt(2.0 * (1.0 - 1.0 / counts))])
    return RowEvidence(
        row[order],
        column[order],
        np.concatenate([np.empty(0), *values])[order, None],
        group,
        weight[owner],
        experts,
        Design(signature[:, None], biased=False),
    )
