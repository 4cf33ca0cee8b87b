"""The likelihood of a linear pool's weights, read from the array of forecasts in blocks that stay in the cache.

Both classes give the mean negative log-likelihood as a function of v on the simplex that is the same for any
multiple of v. So v'∇ = 0, and the matrix ∇² + 11' has the minimiser of the likelihood on the cone v ≥ 0 at Σv = 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from opinionpool.arrays import Array, Index, Mask

# Elements of the array in one block: 1 MB, or less where a block is copied several times.
BLOCK = 1 << 17
COPIED = 1 << 15
# A product of arrays most of whose cells are empty is made pair by pair where pairs are so many times fewer than
# products, and no more than this.
FEWER, MOST = 100, 1 << 24
# Keeps a step short where the Hessian says nothing. The Hessian's own scale is 1: v'Hv = 1.
RIDGE = 1e-10
# The same where the curvature is 0 within rounding and may have any sign.
FLAT = 1e-8
# What the least possible weights add up to when forecasts are missing.
LEAST = 1e-6


@dataclass(eq=False, slots=True)
class Point:
    """What one read of the array found about `v`."""

    v: Array  # (N,); a point of the simplex
    objective: float  # mean negative log-likelihood
    score: Array  # (N,); minus its gradient; v'score = 0
    pooled: Array  # (1, T), or (2, T) with missing forecasts; what `objective` takes logarithms of; linear in v
    # (C, C), or None; second derivatives plus 1, of all experts or of `columns`; None if not asked for
    hessian: Array | None
    columns: Index | None = None  # (C,), or None; the experts of `hessian`; None for all
    # (C,), or None; where `hessian` may be indefinite, the units to measure it in: the root of the diagonal of its
    # convex part
    scale: Array | None = None
    gap: float = field(init=False)  # the largest derivative of the mean log-likelihood towards one expert

    def __post_init__(self) -> None:
        self.gap = float(self.score.max())


class Likelihood(Protocol):
    """What the method needs to know of a likelihood: whether it is concave, and whether a Hessian costs little."""

    concave: bool
    short: bool
    passes: float

    def read(self, v: Array, curved: bool, columns: Index | None = None) -> Point:
        """Read the array once, for the Hessian too if `curved`, of all experts or of `columns`."""

    def model(self, here: Point, curved: Point) -> tuple[Array, Index | None]:
        """A positive-definite matrix for the step from `here`, and its experts, None for all."""

    def objective(self, pooled: Array) -> float:
        """Mean negative log-likelihood."""

    def slope(self, pooled: Array, step: Array) -> float:
        """Its derivative along `step`."""

    def alike(self, places: Index) -> list[Index]:
        """Which of some experts gave the same forecasts wherever it counts: groups of two or more."""


class Complete:
    """−(1/U) Σ_t u_t log(Σ_i v_i q_ti) + log Σv, which is convex.

    Parameters
    ----------
    q : ndarray, shape (T, N)
        Above 0.
    share : ndarray, shape (T,)
        u / U.
    """

    concave = True

    def __init__(self, q: Array, share: Array) -> None:
        self.q, self.share, self.root = q, share, np.sqrt(share)
        self.rows = max(1, BLOCK // q.shape[1])
        self.short = len(q) <= self.rows
        self.passes = 0.0

    def read(self, v: Array, curved: bool, columns: Index | None = None) -> Point:
        """See `Likelihood`."""
        events, size = self.q.shape
        pooled = np.empty((1, events))
        total = np.zeros(size)
        width = size if columns is None else len(columns)
        hessian = np.zeros((width, width)) if curved else None
        for start in range(0, events, self.rows):
            rows = slice(start, start + self.rows)
            q, root = self.q[rows], self.root[rows]
            scale = root / np.dot(q, v, out=pooled[0, rows])
            if hessian is None or columns is not None:
                total += (root * scale) @ q
            if hessian is not None:
                scaled = (q if columns is None else np.take(q, columns, axis=1)) * scale[:, None]
                hessian += scaled.T @ scaled
                if columns is None:
                    total += root @ scaled
        self.passes += 1
        return Point(v, self.objective(pooled), total - 1.0, pooled, hessian, columns)

    def model(self, here: Point, curved: Point) -> tuple[Array, Index | None]:  # noqa: ARG002
        """See `Likelihood`."""
        assert curved.hessian is not None
        matrix = curved.hessian.copy()
        matrix.flat[:: len(matrix) + 1] += RIDGE
        return matrix, curved.columns

    def objective(self, pooled: Array) -> float:
        """See `Likelihood`."""
        return -float(self.share @ np.log(pooled[0]))

    def slope(self, pooled: Array, step: Array) -> float:
        """See `Likelihood`."""
        return -float(self.share @ (step[0] / pooled[0]))

    def alike(self, places: Index) -> list[Index]:
        """See `Likelihood`."""
        self.passes += len(places) / self.q.shape[1]
        return _equal_columns(self.q[np.ix_(self.share > 0, places)], places)


def _equal_columns(values: Array, places: Index) -> list[Index]:
    """The places of columns (T, C) that are equal, in groups of two or more."""
    groups: dict[bytes, list[int]] = {}
    for place, column in zip(places.tolist(), np.ascontiguousarray(values.T), strict=True):
        groups.setdefault(column.tobytes(), []).append(place)
    return [np.array(group) for group in groups.values() if len(group) > 1]


class _Pairs(NamedTuple):
    """Pairs of cells of one event, in the order of the cells, and where their product belongs in an N x N array."""

    left: Index
    right: Index
    place: Index


def _pairs(present: Mask) -> _Pairs | None:
    """The pairs of an array most of whose cells are empty; None where there are too many."""
    events, size = present.shape
    count = present.sum(axis=1)
    number = int((count.astype(np.float64) ** 2).sum())
    if number > MOST or number * FEWER > events * size * size:
        return None
    starts = np.cumsum(count) - count
    # Each cell meets all cells of its event.
    left = np.repeat(np.arange(int(count.sum())), np.repeat(count, count))
    first = np.repeat(np.cumsum(count**2) - count**2, count**2)
    within, width = np.arange(number) - first, np.repeat(count, count**2)
    right = np.repeat(starts, count**2) + within % np.maximum(width, 1)
    expert = present.nonzero()[1]
    return _Pairs(left, right, expert[left] * size + expert[right])


class Partial:
    """−(1/U) Σ_t u_t log(Σ_present w_i q_ti / Σ_present w_i) with w = a + (1 − Na) v, Na = 1e-6; not convex.

    Parameters
    ----------
    q : ndarray, shape (T, N)
        Above 0 where present, anything elsewhere.
    share : ndarray, shape (T,)
        u / U.
    present : ndarray of bool, shape (T, N)
        Two or more in each row.
    """

    concave = False
    short = True

    def __init__(self, q: Array, share: Array, present: Mask) -> None:
        self.q, self.share, self.root, self.present = q, share, np.sqrt(share), present
        self.rows = max(1, COPIED // q.shape[1])
        self.least = LEAST / q.shape[1]
        self.passes = 0.0
        self.pairs = _pairs(present)

    def weights(self, v: Array) -> Array:
        """The w of a v."""
        return np.asarray(self.least + (1.0 - LEAST) * v)

    def position(self, w: Array) -> Array:
        """The v of a w."""
        v = np.maximum(w - self.least, 0.0)
        return np.asarray(v / v.sum())

    def _by_v(self, x: Array, columns: Index | None = None) -> Array:
        """Derivatives by w, on the last axis, as derivatives by v, all of them or those of `columns`."""
        some = x if columns is None else x[..., columns]
        return np.asarray((1.0 - LEAST) * some + self.least * x.sum(axis=-1, keepdims=True))

    def read(self, v: Array, curved: bool = True, columns: Index | None = None) -> Point:  # noqa: ARG002
        """See `Likelihood`; always with the Hessian.

        With e = q/num − [present]/den and g = [present]/den, all of them rows, the score is Σ e, and ∇² is
        Σ (ee' + eg' + ge'): what cancels between the two logarithms, when den is small, is never formed.
        """
        events, size = self.q.shape
        w, width = self.weights(v), size if columns is None else len(columns)
        pooled = np.empty((2, events))
        score, scale = np.zeros(size), np.zeros(size)
        half = np.zeros((width, width))
        cells: list[tuple[Array, Array]] = []
        for start in range(0, events, self.rows):
            rows = slice(start, start + self.rows)
            here, root = self.present[rows], self.root[rows]
            g = here.astype(np.float64)
            e = np.where(here, self.q[rows], 0.0)
            num = np.dot(e, w, out=pooled[0, rows])
            den = np.dot(g, w, out=pooled[1, rows])
            e -= (num / den)[:, None] * g
            e *= (root / num)[:, None]
            score += root @ e
            scale += (root / den) ** 2 @ g
            g *= (2.0 * root / den)[:, None]
            g += e
            if columns is None and self.pairs is not None:
                cells.append((e[here], g[here]))
            else:
                half += self._by_v(e, columns).T @ self._by_v(g, columns)
        if columns is None and self.pairs is not None:
            left, right = (np.concatenate(part) for part in zip(*cells, strict=True))
            products = left[self.pairs.left] * right[self.pairs.right]
            half += np.bincount(self.pairs.place, weights=products, minlength=size * size).reshape(size, size)
            half = self._by_v(self._by_v(half).T).T
        self.passes += 1
        hessian = 0.5 * (half + half.T) + 1.0
        scale = (scale if columns is None else scale[columns]) + hessian.diagonal()
        return Point(v, self.objective(pooled), self._by_v(score), pooled, hessian, columns, np.sqrt(scale))

    def model(self, here: Point, curved: Point) -> tuple[Array, Index | None]:
        """See `Likelihood`: the Hessian of those with weight or about to get it, negative curvature reversed."""
        assert curved.hessian is not None
        assert curved.scale is not None
        among = np.arange(len(here.v)) if curved.columns is None else curved.columns
        active = np.flatnonzero((here.v[among] > 0) | (here.score[among] > 0))
        scale = np.outer(curved.scale[active], curved.scale[active])
        values, vectors = np.linalg.eigh(curved.hessian[active[:, None], active] / scale)
        return (vectors * np.maximum(np.abs(values), FLAT)) @ vectors.T * scale, among[active]

    def objective(self, pooled: Array) -> float:
        """See `Likelihood`."""
        return -float(self.share @ np.log(pooled[0] / pooled[1]))

    def slope(self, pooled: Array, step: Array) -> float:
        """See `Likelihood`."""
        ratio = step / pooled
        return -float(self.share @ (ratio[0] - ratio[1]))

    def alike(self, places: Index) -> list[Index]:
        """See `Likelihood`."""
        self.passes += len(places) / self.q.shape[1]
        return _equal_columns(np.where(self.present, self.q, np.nan)[:, places], places)
