"""Evidence from an array of events x experts, a block of events at a time, without an index of its cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.blocks import blocks
from opinionpool.estimation.evidence import Design, Evidence, MomentEvidence, few_enough
from opinionpool.estimation.moments import Marginals, Moments
from opinionpool.labels import UNRESOLVED
from opinionpool.logodds import whitened


@dataclass(frozen=True, eq=False)
class DenseEvidence:
    """Evidence as an array that may have gaps."""

    ratios: Array  # (T, N, K - 1); less their reference where it differs from event to event; NaN where missing
    outcomes: Index  # (T,); -1 where not resolved
    weight: Array  # (T,); frequencies

    @property
    def classes(self) -> int:
        """K."""
        return int(self.ratios.shape[2]) + 1

    @property
    def design(self) -> Design:
        """What is expected by outcome."""
        return Design.by_outcome(self.classes)

    @cached_property
    def events(self) -> Array:
        """Weight of the resolved events by outcome, (K,)."""
        return self._by_outcome(self.outcomes != UNRESOLVED)

    @cached_property
    def _crowd(self) -> Index:
        """How many answered each event, (T,)."""
        found = np.empty(len(self.ratios), dtype=np.intp)
        for rows in self._blocks():
            found[rows] = self.ratios.shape[1] - np.isnan(self.ratios[rows, :, 0]).sum(axis=1)
        return found

    @cached_property
    def answered(self) -> Array:
        """The same for events with at least one forecast, (K,)."""
        return self._by_outcome((self.outcomes != UNRESOLVED) & (self._crowd > 0))

    def _by_outcome(self, known: Mask) -> Array:
        counts = np.bincount(self.outcomes[known], weights=self.weight[known], minlength=self.classes)
        return np.asarray(counts, dtype=np.float64)

    @cached_property
    def complete(self) -> bool:
        """Whether every expert answered on every one of those."""
        counted = (self.outcomes != UNRESOLVED) & (self._crowd > 0) & (self.weight > 0)
        return bool((self._crowd[counted] == self.ratios.shape[1]).all())

    @cached_property
    def marginals(self) -> Marginals:
        """Moments of each expert by itself."""
        k, n = self.classes, self.ratios.shape[1]
        group = np.where(self.outcomes == UNRESOLVED, k, self.outcomes)
        member = np.zeros((k + 1, len(group)))
        member[group, np.arange(len(group))] = self.weight
        count, mean = np.zeros((k + 1, n)), np.zeros((k + 1, n, k - 1))
        for rows in self._blocks():
            present = ~np.isnan(self.ratios[rows, :, 0])
            count += member[:, rows] @ present
            mean += np.tensordot(member[:, rows], np.where(present[..., None], self.ratios[rows], 0.0), 1)
        safe = np.where(count > 0, count, 1.0)
        mean /= safe[..., None]
        slip, square = np.zeros_like(mean), np.zeros_like(count)
        for rows in self._blocks():
            residual = self.ratios[rows] - mean[group[rows]]
            residual[np.isnan(residual)] = 0.0
            slip += np.tensordot(member[:, rows], residual, 1)
            square += member[:, rows] @ _squares(whitened(residual))
        # The residuals' own mean is what rounding left out of the mean.
        slip /= safe[..., None]
        square -= count * _squares(whitened(slip))
        return Marginals(count, mean + slip, np.stack([square[:-1].sum(axis=0), square[-1]]))

    def scatter(self) -> Array:
        """Cross-products about the means of the outcomes, (N, N); complete evidence only."""
        n, mean = self.ratios.shape[1], self.marginals.mean
        found = np.zeros((n, n))
        for rows in self._blocks():
            kept = (self.outcomes[rows] != UNRESOLVED) & (self.weight[rows] > 0) & (self._crowd[rows] > 0)
            residual = whitened(self.ratios[rows][kept] - mean[self.outcomes[rows][kept]])
            for column in np.moveaxis(residual, 2, 0):
                found += (column.T * self.weight[rows][kept]) @ column
        return found

    def shared(self, expected: Array, spread: Array) -> tuple[float, float]:
        """Products of residuals over pairs of different experts on the same event: their sum, and the number."""
        finite = np.isfinite(spread)
        total = pairs = 0.0
        for rows in self._blocks():
            known = np.flatnonzero(self.outcomes[rows] != UNRESOLVED) + rows.start
            scaled = (self.ratios[known] - expected[self.outcomes[known]]) / spread[:, None]
            absent = np.isnan(scaled[..., 0]) | ~finite
            scaled[absent] = 0.0
            scaled = whitened(scaled)
            products = _squares(scaled.sum(axis=1)) - _squares(scaled).sum(axis=1)
            present = self.ratios.shape[1] - absent.sum(axis=1)
            total += float(self.weight[known] @ products)
            pairs += float(self.weight[known] @ (present * (present - 1.0)))
        return total, pairs

    def _blocks(self) -> Iterator[slice]:
        return blocks(len(self.ratios), max(self.ratios[:1].size, 1))


def _squares(values: Array) -> Array:
    """Sums of squares over the last axis."""
    return np.asarray(values[..., 0] ** 2 if values.shape[-1] == 1 else np.einsum("...d,...d->...", values, values))


def evidence_of(ratios: Array, outcomes: Index, weight: Array, experts: tuple[str, ...]) -> Evidence:
    """Moments where every expert answered everything and they are smaller than the array, else the array."""
    if np.isnan(ratios).any() or not few_enough(len(experts), len(ratios)):
        return DenseEvidence(ratios, outcomes, weight)
    return MomentEvidence(Moments.empty(experts, ratios.shape[2] + 1).add(ratios, outcomes, weight))
