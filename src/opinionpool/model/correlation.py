"""Correlation matrices of experts, and the linear algebra with them.

Two classes with one interface: one correlation that all pairs share, for which all work is linear in the number of
experts (model.md, section 2.2), and a matrix; `opinionpool.model.nested` has a third class, and several can be
averaged. Where a matrix is singular, as with duplicates, its pseudo-inverse divides the weight (section 2.5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from opinionpool.arrays import Array, Index, Mask, distinct_rows, read_only
from opinionpool.errors import PanelError

# Below this share of its own variance an expert is taken to be determined by the others: sums over many events,
# rounded, tell no less. A correlation that somebody states is good to the last digit of its entries.
SINGULAR = 1e-10
GIVEN = 4.0 * float(np.finfo(np.float64).eps)
# How much of the contrasts may lie where the experts have no variance, relative to their size.
CONSISTENT = 1e-6
# Numbers in matrices that are solved together, 2 MB of float64.
STACKED = 1 << 18

NO_LIMIT = (
    "perfectly dependent experts must be equally accurate, and these are not: their weights have no limit; "
    "lower the correlation or leave one of them out"
)


class Dependence(Protocol):
    """Interface of a correlation matrix R: of N experts' contrasts (log-odds less the prior's), given the outcome."""

    @property
    def size(self) -> int:
        """Number of experts, N."""

    def matrix(self) -> Array:
        """Return the correlation matrix R, (N, N)."""

    def times(self, v: Array) -> Array:
        """Return R v for `v` of shape (..., N)."""

    def solve(self, v: Array, present: Mask, experts: Index | None = None, *, strict: bool = True) -> Array:
        """Solve R_SS x = v_S for the experts S that each row of `present` (T, m) marks; x is (T, m), 0 for others.

        `v` has a value for each expert, (N,), or for each row and column, (T, m); `experts` (T, m) says which expert
        each column of a row is (if None, column i is expert i). If R_SS is singular, there may be no solution: a
        `PanelError` if `strict`, else the least-squares solution.
        """

    def subset(self, positions: Index) -> Dependence:
        """Return the correlation among the experts at `positions`."""

    def correlate(self, z: Array) -> Array:
        """Turn independent standard normals `z` (..., N) into normals with the correlation R."""


def in_rows(v: Array, present: Mask, experts: Index | None) -> Array:
    """`v`, a number for each expert, (N,), or each cell, (T, m), as rows (T, m), with 0 where an expert is absent."""
    return np.where(present, v if experts is None or v.ndim == 2 else v[experts], 0.0)


@dataclass(frozen=True)
class CommonCorrelation:
    """Correlation matrix with one correlation `rho` for all pairs of `size` experts."""

    size: int
    rho: float

    def __post_init__(self) -> None:
        if self.size <= 1:
            return
        low = -1.0 / (self.size - 1)
        if not low < self.rho <= 1:
            raise PanelError(
                f"a common correlation of {self.size} experts must lie above -1/(N-1) = {low:.6g} and be at most 1, "
                f"and it is {self.rho:.15g}"
            )

    def matrix(self) -> Array:
        """Return the correlation matrix R, (N, N)."""
        return np.asarray(np.where(np.eye(self.size, dtype=bool), 1.0, self.rho))

    def times(self, v: Array) -> Array:
        """Return R v for `v` of shape (..., N), in O(N) for each row."""
        return np.asarray((1.0 - self.rho) * v + self.rho * v.sum(axis=-1, keepdims=True))

    def solve(self, v: Array, present: Mask, experts: Index | None = None, *, strict: bool = True) -> Array:
        """Solve R_SS x = v_S for the n experts S present in each row: x = (v − ρ Σv / (1 + (n − 1)ρ)) / (1 − ρ)."""
        own, number = in_rows(v, present, experts), present.sum(axis=1, keepdims=True)
        total = own.sum(axis=1, keepdims=True)
        if self.rho == 1.0:
            mean = total / np.maximum(number, 1)
            if strict and (np.abs(own - mean)[present] > CONSISTENT * np.abs(v).max(initial=0.0)).any():
                raise PanelError(NO_LIMIT)
            return np.asarray(np.where(present, mean / np.maximum(number, 1), 0.0))
        # A single expert is not correlated with anybody.
        several, shared = number > 1, self.rho * total / (1.0 + (number - 1.0) * self.rho)
        return np.asarray(np.where(present & several, (own - shared) / (1.0 - self.rho), own))

    def subset(self, positions: Index) -> CommonCorrelation:
        """Return the correlation among the experts at `positions`, with the same rho."""
        return CommonCorrelation(len(positions), self.rho)

    def correlate(self, z: Array) -> Array:
        """Turn independent standard normals `z` (..., N) into normals with the correlation R, by R^(1/2)."""
        if self.size == 1:
            return z
        own, all_ = np.sqrt(1.0 - self.rho), np.sqrt(1.0 + (self.size - 1) * self.rho)
        return np.asarray(own * z + (all_ - own) * z.mean(axis=-1, keepdims=True))


@dataclass(frozen=True, eq=False)
class MatrixCorrelation:
    """Correlation matrix with its own correlation for each pair of experts."""

    array: Array  # (N, N); symmetric, with ones on its diagonal
    least: float = SINGULAR  # eigenvalues below this times N are taken for 0

    @property
    def size(self) -> int:
        """Number of experts, N."""
        return len(self.array)

    def matrix(self) -> Array:
        """Return a copy of the correlation matrix R, (N, N)."""
        return self.array.copy()

    def times(self, v: Array) -> Array:
        """Return R v for `v` of shape (..., N)."""
        return np.asarray(v @ self.array)

    @cached_property
    def _regular(self) -> bool:
        """True if R_SS has an inverse for every set S of experts: the least pivot of R is above `SINGULAR`."""
        return least_pivot(self.array) >= SINGULAR

    def solve(self, v: Array, present: Mask, experts: Index | None = None, *, strict: bool = True) -> Array:
        """Solve R_SS x = v_S for the experts S present in each row, by LU; by the pseudoinverse if R_SS is singular."""
        solved = np.zeros(present.shape)
        for rows, columns, who in patterns(present, experts):
            among, cells = self.array[who[:, :, None], who[:, None, :]], (rows[:, None, :], columns[:, :, None])
            of_cells = v[who][..., None] if v.ndim == 1 else v[cells]
            if self._regular:
                solved[cells] = np.linalg.solve(among, of_cells)
            else:
                pairs = zip(among, of_cells, strict=True)
                solved[cells] = np.stack([solve_matrix(r, x, self.least, strict=strict) for r, x in pairs])
        return solved

    def subset(self, positions: Index) -> MatrixCorrelation:
        """Return the correlation among the experts at `positions`."""
        return MatrixCorrelation(self.array[np.ix_(positions, positions)], self.least)

    def correlate(self, z: Array) -> Array:
        """Turn independent standard normals `z` (..., N) into normals with the correlation R, by R^(1/2)."""
        values, vectors = np.linalg.eigh(self.array)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return np.asarray(z @ root)


def patterns(present: Mask, experts: Index | None = None) -> Iterator[tuple[Index, Index, Index]]:
    """Group the rows of `present` (T, m) by the set of experts present; sets of the same size come together.

    Each item is of P sets of n experts, each set in q rows: positions of the rows, (P, q); columns of the experts
    present, (P, n); and these experts' positions in the panel, (P, n), by `experts` (T, m) or, if None, the columns.
    """
    first, index = distinct_rows(present if experts is None else np.where(present, experts, -1))
    size, number, by_pattern = present[first].sum(axis=1), np.bincount(index), np.argsort(index, kind="stable")
    start = np.cumsum(number) - number
    for n, q in sorted({pair for pair in zip(size.tolist(), number.tolist(), strict=True) if pair[0]}):
        alike, step = np.flatnonzero((size == n) & (number == q)), max(STACKED // (n * (n + q)), 1)
        for some in (alike[at : at + step] for at in range(0, len(alike), step)):
            columns = np.nonzero(present[first[some]])[1].reshape(-1, n)
            who = columns if experts is None else np.take_along_axis(experts[first[some]], columns, axis=1)
            yield by_pattern[start[some, None] + np.arange(q)], columns, who


def matrix_correlation(array: Array, what: str = "correlation") -> MatrixCorrelation:
    """Return `array` as a correlation matrix; a `PanelError` unless symmetric, semi-definite and with diagonal 1."""
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise PanelError(f"a {what} must be a square matrix, not of shape {array.shape}")
    if not np.isfinite(array).all():
        raise PanelError(f"a {what} must be finite, and it has {array[~np.isfinite(array)][0]}")
    if not np.allclose(array, array.T, rtol=0, atol=1e-8):
        i, j = np.argwhere(np.abs(array - array.T) > 1e-8)[0]
        raise PanelError(
            f"a {what} must be symmetric, and [{i}, {j}] is {array[i, j]:.9g}, [{j}, {i}] {array[j, i]:.9g}"
        )
    if not np.allclose(np.diag(array), 1.0, rtol=0, atol=1e-8):
        raise PanelError(f"a {what} must have ones on its diagonal, and it has {np.diag(array)}")
    if (np.abs(array) > 1 + 1e-8).any():
        raise PanelError(f"a {what} must lie in [-1, 1], and it has {array[np.abs(array) > 1 + 1e-8][0]:.9g}")
    array = np.clip((array + array.T) / 2, -1.0, 1.0)
    np.fill_diagonal(array, 1.0)
    smallest = float(np.linalg.eigvalsh(array)[0])
    if smallest < -len(array) * 1e-9:
        raise PanelError(f"a {what} must be positive definite, and its smallest eigenvalue is {smallest:.3g}")
    return MatrixCorrelation(read_only(array), GIVEN)


def least_pivot(covariance: Array) -> float:
    """Smallest squared pivot of the Cholesky root of `covariance` scaled to correlations; 0 if that is not definite."""
    variance = np.diag(covariance)
    if not (variance > 0).all():
        return 0.0
    spread = np.sqrt(variance)
    try:
        return float((np.diag(np.linalg.cholesky(covariance / np.outer(spread, spread))) ** 2).min())
    except np.linalg.LinAlgError:
        return 0.0


def solve_matrix(r: Array, v: Array, least: float, *, strict: bool = True) -> Array:
    """Solve R x = v, by the pseudoinverse R⁺ if R is singular; eigenvalues up to `least` · N are taken to be 0.

    `v` is (N,) or (N, P). If there is no solution, a `PanelError` if `strict`, else R⁺ v.
    """
    if least_pivot(r) >= SINGULAR:
        return np.asarray(np.linalg.solve(r, v))
    values, vectors = np.linalg.eigh(r)
    filled = values > least * len(r)
    if filled.all():
        return np.asarray(np.linalg.solve(r, v))
    parts = vectors.T @ v
    if strict and np.linalg.norm(parts[~filled]) > CONSISTENT * np.linalg.norm(v):
        raise PanelError(NO_LIMIT)
    return np.asarray(vectors[:, filled] @ (parts[filled].T / values[filled]).T)


@dataclass(frozen=True, eq=False)
class MixedCorrelation:
    """Correlation matrices of N experts by several models, and the share of each model in the answer.

    Where data do not decide which model is right, the answer is the average of the models' answers in log-odds, so
    weights are averages over the models (model.md, section 8), which the average correlation would not give.
    """

    models: tuple[Dependence, ...]  # each for the same N experts
    share: Array  # (models,); at least 0; they add up to 1
    signal: Array | None = None  # (models, N); experts' signals in each model over those in the panel; 1 if None

    def __post_init__(self) -> None:
        shaped = self.share.shape == (len(self.models),) and len(self.models) > 0
        if not shaped or not (self.share >= 0).all() or abs(float(self.share.sum()) - 1.0) > 1e-9:
            raise PanelError("models of dependence need one share each, at least 0, and these should add up to 1")
        sizes = {each.size for each in self.models}
        if len(sizes) > 1 or (self.signal is not None and self.signal.shape != (len(self.models), *sizes)):
            raise PanelError("models of dependence should be about the same experts")

    @property
    def size(self) -> int:
        """Number of experts, N."""
        return self.models[0].size

    def average(self, of: Callable[[Dependence], Array]) -> Array:
        """Return the average of `of(model)` over the models, weighted by their shares."""
        pairs = zip(self.share.tolist(), self.models, strict=True)
        return np.asarray(sum(own * of(each) for own, each in pairs if own > 0))

    def matrix(self) -> Array:
        """Return the average over the models of the correlation matrices, (N, N)."""
        return self.average(lambda each: each.matrix())

    def times(self, v: Array) -> Array:
        """Return the average correlation matrix times `v` (..., N)."""
        return self.average(lambda each: each.times(v))

    def solve(self, v: Array, present: Mask, experts: Index | None = None, *, strict: bool = True) -> Array:
        """Mean over models of the solution x of R_SS x = v_S, where v is `v` times the model's relative `signal`."""
        if self.signal is None:
            return self.average(lambda each: each.solve(v, present, experts, strict=strict))
        total = np.zeros(present.shape)
        for own, each, signal in zip(self.share.tolist(), self.models, self.signal, strict=True):
            relative = signal if experts is None or v.ndim == 1 else signal[experts]
            total += own * each.solve(v * relative, present, experts, strict=strict)
        return total

    def subset(self, positions: Index) -> MixedCorrelation:
        """Return the mixture of the models, each for the experts at `positions` only."""
        signal = None if self.signal is None else self.signal[:, positions]
        return MixedCorrelation(tuple(each.subset(positions) for each in self.models), self.share, signal)

    def correlate(self, z: Array) -> Array:
        """Turn independent standard normals `z` (..., N) into normals with the average correlation."""
        return MatrixCorrelation(self.matrix()).correlate(z)
