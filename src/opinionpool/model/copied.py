"""Experts who repeat each other: of each group one counts, and those of it who are present share its weight."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import PanelError
from opinionpool.model.correlation import CellWise, Dependence


@dataclass(frozen=True, eq=False)
class CopiedCorrelation:
    """The correlation of N experts behind whom there are V distinct ones; copies are perfectly dependent.

    Everything is what it is among the distinct ones, in time linear in N beyond that.

    Attributes
    ----------
    distinct : Dependence
        Among the V distinct experts.
    source : ndarray of int, shape (N,)
        Which of them is behind each.

    Examples
    --------
    >>> from opinionpool.model.correlation import CommonCorrelation
    >>> CopiedCorrelation(CommonCorrelation(2, 0.0), np.array([0, 1, 1])).solve(np.ones(3))
    array([1. , 0.5, 0.5])
    """

    distinct: Dependence
    source: Index

    def __post_init__(self) -> None:
        source = self.source
        if source.ndim != 1 or len(source) == 0 or source.min() < 0 or source.max() >= self.distinct.size:
            raise PanelError(f"behind each expert should be one of {self.distinct.size} distinct ones")

    @property
    def size(self) -> int:
        """N."""
        return len(self.source)

    @property
    def groups(self) -> list[Index]:
        """Experts who repeat each other, by group of at least two."""
        order = np.argsort(self.source, kind="stable")
        ends = np.flatnonzero(np.diff(self.source[order])) + 1
        return [group for group in np.split(order, ends) if len(group) > 1]

    def matrix(self) -> Array:
        """The correlation matrix R, (N, N)."""
        return np.asarray(self.distinct.matrix()[np.ix_(self.source, self.source)])

    def times(self, v: Array) -> Array:
        """R v."""
        return np.asarray(self.distinct.times(self._summed(v))[self.source])

    def solve(self, v: Array) -> Array:
        """R⁺ v, by which copies share."""
        return np.asarray(self.solve_present(v, np.ones((1, self.size), dtype=bool))[0])

    def solve_present(self, v: Array, present: Mask) -> Array:
        """R_SS⁺ v_S row by row, (T, N)."""
        order, starts = self._by_source
        number = np.zeros((len(present), self.distinct.size))
        number[:, self.source[order[starts]]] = np.add.reduceat(present[:, order].astype(np.float64), starts, axis=1)
        solved = self.distinct.solve_present(self._mean(v), number > 0)
        return np.asarray(np.where(present, (solved / np.maximum(number, 1.0))[:, self.source], 0.0))

    def solve_cells(self, event: Index, expert: Index, v: Array, events: int) -> Array:
        """The same by forecast, (M,), where the distinct ones have it."""
        size = self.distinct.size
        kept, first, group, number = np.unique(
            event * size + self.source[expert], return_index=True, return_inverse=True, return_counts=True
        )
        solved = cast(CellWise, self.distinct).solve_cells(kept // size, kept % size, v[first], events)
        return np.asarray((solved / number)[group.ravel()])

    def subset(self, positions: Index) -> Dependence:
        """The same among some of the experts."""
        kept, source = np.unique(self.source[positions], return_inverse=True)
        if len(kept) == len(source):
            return self.distinct.subset(self.source[positions])
        return CopiedCorrelation(self.distinct.subset(kept), source.ravel())

    def expected(self, values: Array, present: Mask) -> Array:
        """Values (T, N) where present, and what is expected of the others; of a copy, what the other says."""
        order, starts = self._by_source
        number, total = (
            np.add.reduceat(each[:, order], starts, axis=1)
            for each in (present.astype(np.float64), np.where(present, values, 0.0))
        )
        known, full = self.source[order[starts]], np.zeros((2, len(values), self.distinct.size))
        full[0][:, known], full[1][:, known] = number, total / np.maximum(number, 1.0)
        found = self.distinct.expected(full[1], full[0] > 0)
        return np.where(present, values, found[:, self.source])

    def correlate(self, z: Array) -> Array:
        """Independent standard normals (..., N) to correlated ones."""
        order, starts = self._by_source
        own = np.zeros((*z.shape[:-1], self.distinct.size))
        own[..., self.source[order[starts]]] = z[..., order[starts]]
        return np.asarray(self.distinct.correlate(own)[..., self.source])

    @cached_property
    def _by_source(self) -> tuple[Index, Index]:
        """Experts ordered by who is behind them, and where those of the next begin."""
        order = np.argsort(self.source, kind="stable")
        return order, np.concatenate([[0], np.flatnonzero(np.diff(self.source[order])) + 1])

    def _summed(self, v: Array) -> Array:
        return np.asarray(np.bincount(self.source, v, self.distinct.size), dtype=np.float64)

    def _mean(self, v: Array) -> Array:
        return self._summed(v) / np.maximum(self._summed(np.ones(self.size)), 1.0)
