"""Resolved events as rows, one per forecast, with the estimates of `Statistics` in time linear in the forecasts.

Memory and time are linear in the number of forecasts, however many different sets of experts answered. Forecasts on
events with options of their own become rows of one coordinate each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.estimation.statistics import Marginals, MeanDesign, Statistics
from opinionpool.labels import UNRESOLVED
from opinionpool.logodds import whitened


@dataclass(frozen=True, eq=False)
class ForecastRows:
    """Log-ratios of M forecasts by N experts on T events, in the order of events; a row for each forecast."""

    # event, expert: (M,)
    event: Index
    expert: Index
    ratios: Array  # (M, K - 1); less the prior's
    outcomes: Index  # (T,); -1 where not resolved
    weight: Array  # (T,); frequencies
    experts: int  # N
    groups: MeanDesign | None = None  # the groups that `outcomes` number, if these are not the K classes

    @classmethod
    def of_array(cls, ratios: Array, outcomes: Index, weight: Array) -> ForecastRows:
        """Rows from an array of log-ratios (T, N, K - 1), NaN where missing; `outcomes` are -1 where not resolved."""
        event, expert = np.nonzero(~np.isnan(ratios[..., 0]))
        return cls(event, expert, ratios[event, expert], outcomes, weight, ratios.shape[1])

    @property
    def classes(self) -> int:
        """Number of classes, K."""
        return int(self.ratios.shape[1]) + 1

    @cached_property
    def design(self) -> MeanDesign:
        """Model of an expert's mean log-ratios: bias + contrast · the outcome's signature (±1 for two classes)."""
        return self.groups or MeanDesign.by_outcome(self.classes)

    @property
    def events(self) -> Array:
        """Number of resolved events by outcome, weighted, (K,)."""
        return self._by_outcome(self.outcomes != UNRESOLVED)

    @cached_property
    def crowd(self) -> Index:
        """Number of forecasts on each event, (T,)."""
        return np.bincount(self.event, minlength=len(self.outcomes))

    @cached_property
    def answered(self) -> Array:
        """Number of resolved events with a forecast by outcome, weighted, (K,)."""
        return self._by_outcome((self.outcomes != UNRESOLVED) & (self.crowd > 0))

    def _by_outcome(self, known: Mask) -> Array:
        counts = np.bincount(self.outcomes[known], weights=self.weight[known], minlength=len(self.design.signature))
        return np.asarray(counts, dtype=np.float64)

    @property
    def complete(self) -> bool:
        """Return True if every expert answered every resolved event with at least one forecast."""
        counted = (self.outcomes != UNRESOLVED) & (self.crowd > 0) & (self.weight > 0)
        return bool((self.crowd[counted] == self.experts).all())

    @cached_property
    def _cell(self) -> Index:
        """Outcome and expert of each forecast as one number; unresolved events have the outcome K."""
        group = np.where(self.outcomes == UNRESOLVED, len(self.design.signature), self.outcomes)
        return np.asarray(group[self.event] * self.experts + self.expert)

    @cached_property
    def marginals(self) -> Marginals:
        """Number, mean and sum of squared deviations of each expert's log-ratios by outcome."""
        # The mean of a group without signature is known to be 0 where there is no bias.
        fixed = np.append((self.design.squares == 0) & (not self.design.biased), False)
        weight, d = self.weight[self.event], self.classes - 1
        count = self._sum(weight)
        safe, mean = np.where(fixed[:, None] | (count == 0), np.inf, count), np.zeros((*count.shape, d))
        residual = self.ratios
        for _ in range(2):
            # The residuals' own mean is what rounding left out of the mean.
            mean += np.stack([self._sum(weight * column) / safe for column in residual.T], axis=-1)
            residual = self.ratios - mean.reshape(-1, d)[self._cell]
        square = self._sum(weight * _squares(whitened(residual)))
        return Marginals(count, mean, np.stack([square[:-1].sum(axis=0), square[-1]]))

    def _sum(self, values: Array) -> Array:
        """Weighted sums of `values` (M,), one for each forecast, by outcome and expert, (K + 1, N)."""
        shape = (len(self.design.signature) + 1, self.experts)
        return np.asarray(np.bincount(self._cell, weights=values, minlength=shape[0] * shape[1]).reshape(shape), float)

    def scatter(self) -> Array:
        """Sums of products of experts' deviations from means by outcome, (N, N), if all experts answered all events."""
        counted = np.flatnonzero((self.outcomes[self.event] != UNRESOLVED) & (self.weight[self.event] > 0))
        d = self.classes - 1
        residual = whitened(self.ratios[counted] - self.marginals.mean.reshape(-1, d)[self._cell[counted]])
        weight = np.sqrt(self.weight[self.event[counted]])[:, None]
        rows = np.swapaxes((residual * weight).reshape(-1, self.experts, d), 1, 2).reshape(-1, self.experts)
        return np.asarray(rows.T @ rows)

    def products(self, expected: Array, spread: Array) -> tuple[Array, Array]:
        """By event: sum over pairs of experts of products of (log-ratio − `expected`)/`spread`; number of pairs."""
        known = (self.outcomes[self.event] != UNRESOLVED) & (spread > 0)[self.expert] & np.isfinite(spread)[self.expert]
        event, expert = self.event[known], self.expert[known]
        scaled = (self.ratios[known] - expected[self.outcomes[event], expert]) / spread[expert][:, None]
        return pair_products(event, whitened(scaled), len(self.outcomes))

    def shared(self, expected: Array, spread: Array) -> tuple[float, float]:
        """Sums over events of what `products` returns: products of standardised log-ratios, and number of pairs."""
        products, pairs = self.products(expected, spread)
        return float(self.weight @ products), float(self.weight @ pairs)


def pair_products(event: Index, values: Array, events: int) -> tuple[Array, Array]:
    """For each event, the sum of v_i · v_j over pairs i ≠ j of `values` (M, d), and the number of pairs, (T,) each.

    >>> pair_products(np.array([0, 0, 1]), np.array([[1.0], [2.0], [5.0]]), 2)
    (array([4., 0.]), array([2., 0.]))
    """
    summed = np.stack([np.bincount(event, column, events).astype(np.float64) for column in values.T], axis=-1)
    number = np.bincount(event, minlength=events).astype(np.float64)
    return _squares(summed) - np.bincount(event, _squares(values), events), number * (number - 1.0)


def _squares(values: Array) -> Array:
    """Return sums of squares over the last axis of `values`."""
    return np.asarray(np.einsum("...d,...d->...", values, values))


# Resolved events, as far as the estimates of model.md, section 2.5, need them.
ResolvedEvents: TypeAlias = Statistics | ForecastRows


def helmert(contrasts: Array, outcome: Index) -> Array:
    """Log-ratios `contrasts` (M, K - 1) in orthonormal coordinates, the first of which points towards `outcome`.

    >>> helmert(np.array([[1.5], [1.5]]), np.array([1, 0])).ravel()
    array([ 1.5, -1.5])
    """
    m, k = len(contrasts), contrasts.shape[1] + 1
    full = np.concatenate([np.zeros((m, 1)), contrasts], axis=1)
    place = np.arange(1, k) - (np.arange(1, k) <= outcome[:, None])
    others = np.take_along_axis(full, place, axis=1)
    own = np.take_along_axis(full, outcome[:, None], axis=1)
    first = (own - others.mean(axis=1, keepdims=True)) * np.sqrt(2.0 * (k - 1) / k)
    j, below = np.arange(1, k - 1), np.arange(k - 1)[:, None]
    # Orthonormal columns of numbers that add up to 0.
    basis = np.where(below < j, 1.0, np.where(below == j, -j, 0.0)) / np.sqrt(j * (j + 1.0))
    return np.concatenate([first, others @ basis * np.sqrt(2.0)], axis=1)


def option_rows(
    event: Index, expert: Index, contrasts: Array, outcomes: Index, weight: Array, sizes: Index, experts: int
) -> ForecastRows:
    """Rows for events with `sizes` (T,) options of their own: one row for each coordinate of each forecast."""
    known = (outcomes >= 0) & (weight > 0)
    counts, free = np.unique(sizes[known]), np.where(known, sizes - 1, 0)
    first = np.cumsum(free) - free
    rows, columns, values = [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.intp)], [np.empty(0)]
    for size in counts.tolist():
        cells = np.flatnonzero(known[event] & (sizes[event] == size))
        rows.append((first[event[cells], None] + np.arange(size - 1)).ravel())
        columns.append(np.repeat(expert[cells], size - 1))
        values.append(helmert(contrasts[cells, : size - 1], outcomes[event[cells]]).ravel())
    row, column = np.concatenate(rows), np.concatenate(columns)
    order = np.lexsort((column, row))
    # Groups: coordinates of noise, then those that point to the outcome, by the number of options.
    owner = np.repeat(np.arange(len(free)), free)
    leading = np.arange(len(owner)) == first[owner]
    group = np.where(leading, 1 + np.searchsorted(counts, sizes[owner]), 0)
    signature = np.concatenate([[0.0], np.sqrt(2.0 * (1.0 - 1.0 / counts))])
    design = MeanDesign(signature[:, None], biased=False)
    ratios = np.concatenate(values)[order, None]
    return ForecastRows(row[order], column[order], ratios, group, weight[owner], experts, design)
