"""Resolved events as a regression of their outcomes on contrasts, and the prior of its intercept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask
from opinionpool.estimation.likelihood import Design, row_basis


class ByTopic(NamedTuple):
    """Topic of each of T events; and log-ratios of answers less L° (the prior's) if all coefficients are 0."""

    names: tuple[str, ...]
    member: Index  # (T,); number of each event's topic, -1 for none
    base: Array  # (K - 1,); L* − L° if all contrasts and coefficients are 0

    def select(self, rows: Index | Mask) -> ByTopic:
        """Return the topics of the events `rows` only."""
        return self._replace(member=self.member[rows])


@dataclass(frozen=True, eq=False)
class Observations:
    """Outcomes, offsets and contrasts (moderated log-ratios less the prior's) of T events, for a regression."""

    contrasts: Array  # (T, N, K - 1); u, none missing
    offset: Array  # (T, K - 1); L°
    outcomes: npt.NDArray[np.intp]  # (T,)
    weight: Array  # (T,); frequencies
    topics: ByTopic | None = None

    @property
    def free(self) -> int:
        """Number of log-ratios of an event, K - 1."""
        return int(self.contrasts.shape[2])

    def basis_with(self, directions: Array) -> Array | None:
        """Orthonormal basis (N, M) of the span of experts' regressors and `directions` (B, N); None if M would be N."""
        t, n, d = self.contrasts.shape
        if n <= t * d + 1:
            return None
        distinct = np.unique(directions, axis=0)
        if n <= t * d + len(distinct):
            return None
        rows = np.swapaxes(self.contrasts, 1, 2).reshape(t * d, n)
        return row_basis(np.concatenate([distinct, rows]))

    def design(self) -> Design:
        """Return the regression of outcomes on an intercept and a column for each of N experts, without a copy."""
        columns, one = np.transpose(self.contrasts, (1, 2, 0)), np.ones((1, len(self.contrasts)))
        return Design(columns, one, self.offset.T, self.outcomes, self.weight)

    def design_along(self, basis: Array | None) -> Design:
        """Regression of outcomes on an intercept and M combinations `basis` (N, M) of experts; if None, each expert."""
        t, _, d = self.contrasts.shape
        seen = self.contrasts if basis is None else np.swapaxes(np.tensordot(self.contrasts, basis, (1, 0)), 1, 2)
        seen = np.transpose(seen, (1, 2, 0))
        one = np.ones((1, t))
        columns, features = (np.concatenate([one[:, None], seen]), one[:0]) if d == 1 else (seen, one)
        offset = np.ascontiguousarray(self.offset.T)
        return Design(np.ascontiguousarray(columns), features, offset, self.outcomes, self.weight)


def intercept_root(spread: float, d: int) -> Array:
    """Root of the prior covariance of an intercept, (K - 1, K - 1), by independent log-probabilities of sd `spread`."""
    return np.asarray(spread * _unit_root(d))


@cache
def _unit_root(d: int) -> Array:
    """Return `intercept_root` for a `spread` of 1, (d, d), cached."""
    return np.asarray(np.linalg.cholesky((np.eye(d) + 1.0) / 2.0), dtype=np.float64)
