"""The correlation between experts, and the linear algebra that depends on it.

Two forms behind one interface: a correlation that all pairs share, where everything is linear in the number
of experts (model.md, section 2.2), and a correlation matrix; `opinionpool.model.nested` has a third. Where a
correlation is singular, as between duplicates, the pseudo-inverse shares the weight (section 2.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from opinionpool.arrays import Array, Index, Mask, each_pattern
from opinionpool.errors import PanelError

# Below this share of its own variance an expert is taken to be determined by the others: sums over many events,
# rounded, tell no less. A correlation that somebody states is good to the last digit of its entries.
SINGULAR = 1e-10
GIVEN = 4.0 * float(np.finfo(np.float64).eps)
# How much of the contrasts may lie where the experts have no variance, relative to their size.
CONSISTENT = 1e-6

NO_LIMIT = (
    "perfectly dependent experts must be equally accurate, and these are not: their weights have no limit; "
    "lower the correlation or leave one of them out"
)


class Dependence(Protocol):
    """The correlation of N experts' contrasts within an outcome."""

    @property
    def size(self) -> int:
        """N."""

    def matrix(self) -> Array:
        """The correlation matrix R, (N, N)."""

    def solve(self, v: Array) -> Array:
        """R⁻¹ v for v of shape (N,)."""

    def times(self, v: Array) -> Array:
        """R v for v of shape (N,)."""

    def solve_present(self, v: Array, present: Mask) -> Array:
        """Row t: R_SS⁻¹ v_S for the experts S present in that row, 0 elsewhere, (T, N)."""

    def subset(self, positions: Index) -> Dependence:
        """The correlation among some of the experts."""

    def correlate(self, z: Array) -> Array:
        """Independent standard normals (..., N) to correlated ones."""

    def expected(self, values: Array, present: Mask) -> Array:
        """Values (T, N) where present, and their conditional expectation given these elsewhere."""


class CellWise(Protocol):
    """A correlation by which weights follow forecast by forecast, without a matrix."""

    def solve_cells(self, event: Index, expert: Index, v: Array, events: int) -> Array:
        """R_SS⁻¹ v_S for the experts S of each event, by forecast, (M,)."""


@dataclass(frozen=True)
class CommonCorrelation:
    """One correlation for all pairs of experts."""

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
        """The correlation matrix R, (N, N)."""
        return np.asarray(np.where(np.eye(self.size, dtype=bool), 1.0, self.rho))

    def solve(self, v: Array) -> Array:
        """R⁻¹ v, in O(N)."""
        return np.asarray(self.solve_present(v, np.ones((1, self.size), dtype=bool))[0])

    def times(self, v: Array) -> Array:
        """R v, in O(N)."""
        return np.asarray((1.0 - self.rho) * v + self.rho * v.sum())

    def solve_present(self, v: Array, present: Mask) -> Array:
        """R_SS⁻¹ v_S row by row, in O(TN)."""
        filled = np.asarray(np.where(present, v, 0.0))
        number = present.sum(axis=1, keepdims=True)
        total = filled.sum(axis=1, keepdims=True)
        if self.rho == 1.0:
            mean = total / np.maximum(number, 1)
            if (np.abs(filled - mean)[present] > CONSISTENT * np.abs(v).max(initial=0.0)).any():
                raise PanelError(NO_LIMIT)
            return np.asarray(np.where(present, mean / np.maximum(number, 1), 0.0))
        shared = self.rho * total / (1.0 + (number - 1.0) * self.rho)
        solved = (filled - shared) / np.where(number > 1, 1.0 - self.rho, 1.0)
        # A single expert is not correlated with anybody.
        return np.asarray(np.where(present, np.where(number > 1, solved, filled), 0.0))

    def subset(self, positions: Index) -> CommonCorrelation:
        """The same correlation among fewer experts."""
        return CommonCorrelation(len(positions), self.rho)

    def correlate(self, z: Array) -> Array:
        """Independent standard normals (..., N) to correlated ones, by R^(1/2)."""
        if self.size == 1:
            return z
        own, all_ = np.sqrt(1.0 - self.rho), np.sqrt(1.0 + (self.size - 1) * self.rho)
        return np.asarray(own * z + (all_ - own) * z.mean(axis=-1, keepdims=True))

    def expected(self, values: Array, present: Mask) -> Array:
        """Values (T, N) where present, and their conditional expectation given these elsewhere, in O(TN)."""
        total = np.where(present, values, 0.0).sum(axis=1, keepdims=True)
        number = present.sum(axis=1, keepdims=True)
        return np.asarray(np.where(present, values, self.rho * total / (1.0 + (number - 1.0) * self.rho)))

    def solve_cells(self, event: Index, expert: Index, v: Array, events: int) -> Array:
        """R_SS⁻¹ v_S for the experts S of each event, by forecast, (M,); for a correlation below 1."""
        del expert
        number = np.bincount(event, minlength=events)[event]
        total = np.bincount(event, weights=v, minlength=events)[event]
        shared = self.rho * total / (1.0 + (number - 1.0) * self.rho)
        return np.asarray(np.where(number > 1, (v - shared) / (1.0 - self.rho), v))


@dataclass(frozen=True, eq=False)
class MatrixCorrelation:
    """A correlation for each pair of experts; `array` is symmetric with ones on its diagonal.

    Eigenvalues below `least` times N are taken for 0.
    """

    array: Array
    least: float = SINGULAR

    @property
    def size(self) -> int:
        """N."""
        return len(self.array)

    def matrix(self) -> Array:
        """The correlation matrix R, (N, N)."""
        return self.array.copy()

    def solve(self, v: Array) -> Array:
        """R⁻¹ v, by Cholesky, or by the pseudo-inverse where R is singular."""
        return solve_matrix(self.array, v, self.least)

    def times(self, v: Array) -> Array:
        """R v."""
        return np.asarray(self.array @ v)

    def solve_present(self, v: Array, present: Mask) -> Array:
        """R_SS⁻¹ v_S, once for each distinct pattern of presence."""
        solved = np.zeros(present.shape)
        for rows, columns in each_pattern(present):
            if len(columns):
                solved[np.ix_(rows, columns)] = solve_matrix(
                    self.array[np.ix_(columns, columns)], v[columns], self.least
                )
        return solved

    def subset(self, positions: Index) -> MatrixCorrelation:
        """The correlation among some of the experts."""
        return MatrixCorrelation(self.array[np.ix_(positions, positions)], self.least)

    def expected(self, values: Array, present: Mask) -> Array:
        """Values (T, N) where present, and their conditional expectation given these elsewhere."""
        full = np.zeros(values.shape)
        for rows, columns in each_pattern(present):
            if len(columns):
                among = self.array[np.ix_(columns, columns)]
                onto = self.array[:, columns] @ np.linalg.pinv(among, rcond=SINGULAR, hermitian=True)
                full[rows] = values[np.ix_(rows, columns)] @ onto.T
        return np.where(present, values, full)

    def correlate(self, z: Array) -> Array:
        """Independent standard normals (..., N) to correlated ones, by R^(1/2)."""
        values, vectors = np.linalg.eigh(self.array)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return np.asarray(z @ root)


def matrix_correlation(array: Array, what: str = "correlation") -> MatrixCorrelation:
    """A checked correlation matrix.

    Raises
    ------
    PanelError
        If it is not square, symmetric, with ones on its diagonal, inside [-1, 1] and positive semi-definite.
    """
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
    array.flags.writeable = False
    return MatrixCorrelation(array, GIVEN)


def solve_matrix(r: Array, v: Array, least: float) -> Array:
    """R⁻¹ v, for v (N,) or (N, P), to the digits that the condition of R leaves, or R⁺ v where R is singular."""
    try:
        root = np.linalg.cholesky(r)
    except np.linalg.LinAlgError:
        return _pseudo_solve(r, v, least)
    if np.diag(root).min() ** 2 < SINGULAR:
        return _pseudo_solve(r, v, least)
    return np.asarray(np.linalg.solve(r, v))


def _pseudo_solve(r: Array, v: Array, least: float) -> Array:
    """R⁺ v, refused where v has a part that R cannot reach."""
    values, vectors = np.linalg.eigh(r)
    filled = values > least * len(r)
    if filled.all():
        return np.asarray(np.linalg.solve(r, v))
    parts = vectors.T @ v
    if np.linalg.norm(parts[~filled]) > CONSISTENT * np.linalg.norm(v):
        raise PanelError(NO_LIMIT)
    return np.asarray(vectors[:, filled] @ (parts[filled].T / values[filled]).T)
