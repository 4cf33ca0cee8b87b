"""The likelihood of a linear pool's weights, read from the array of forecasts in blocks that stay in the cache.

Both classes give the mean negative log-likelihood as a function of v on the simplex that is the same for any
multiple of v. So v'∇ = 0, and the matrix ∇² + 11' has the minimiser of the likelihood on the cone v ≥ 0 at Σv = 1.
"""

from __future__ import annotations

from collections.abc import Iterator
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
# Of a matrix up to so large all eigenvalues are found.
SMALL = 100
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
    # the largest derivative, of either sign, towards an expert with weight: the gap is quadratic in a weight that
    # tends to 0 where nothing speaks against it, and this is linear
    slack: float = field(init=False)

    def __post_init__(self) -> None:
        self.gap = float(self.score.max())
        self.slack = float(np.abs(self.score[self.v > 0]).max())


class Likelihood(Protocol):
    """What the method needs to know of a likelihood: whether it is concave, and whether a Hessian costs little."""

    concave: bool
    short: bool
    passes: float

    def read(self, v: Array, curved: bool, columns: Index | None = None) -> Point:
        """Read the array once, for the Hessian too if `curved`, of all experts or of `columns`.

        Where every point has a Hessian of its own, it is that of the experts with weight or about to get it.
        """

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


def _reversed(matrix: Array) -> Array:
    """A symmetric matrix whose eigenvalues are replaced by their absolute values, `FLAT` at least."""
    if len(matrix) <= SMALL:
        values, vectors = np.linalg.eigh(matrix)
        return np.asarray((vectors * np.maximum(np.abs(values), FLAT)) @ vectors.T)
    from scipy.linalg import eigh

    # Few are not as they should be.
    values, vectors = eigh(matrix, subset_by_value=(-np.inf, FLAT), driver="evr", check_finite=False)
    return np.asarray(matrix + (vectors * (np.maximum(np.abs(values), FLAT) - values)) @ vectors.T)


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
        self.least = LEAST / q.shape[1]
        # Over the experts present: of q, and how many they are.
        self.sums = np.stack([q.sum(axis=1, where=present), present.sum(axis=1)])
        self.passes = 0.0
        self.pairs = _pairs(present)

    def weights(self, v: Array) -> Array:
        """The w of a v."""
        return np.asarray(self.least + (1.0 - LEAST) * v)

    def position(self, w: Array) -> Array:
        """The v of a w."""
        v = np.maximum(w - self.least, 0.0)
        return np.asarray(v / v.sum())

    def _by_v(self, x: Array, total: Array, out: Array | None = None) -> Array:
        """Derivatives by w, on the last axis, as derivatives by v, from those by some weights and the sum of all."""
        by_v = np.multiply(x, 1.0 - LEAST, out=out)
        by_v += self.least * total
        return by_v

    def read(self, v: Array, curved: bool = True, columns: Index | None = None) -> Point:  # noqa: ARG002
        """See `Likelihood`; always with a Hessian of its own.

        With e = q/num − [present]/den and g = [present]/den, all of them rows, the score is Σ e, and ∇² is
        Σ (ee' + eg' + ge'): what cancels between the two logarithms, when den is small, is never formed.
        """
        events, size = self.q.shape
        w, pooled = self.weights(v), np.empty((2, events))
        score, scale = np.zeros(size), np.zeros(size)
        for rows, q, here in self._blocks():
            num = np.dot(q, w, out=pooled[0, rows])
            den = np.dot(here, w, out=pooled[1, rows])
            share = self.share[rows]
            score += (share / num) @ q - (share / den) @ here
            scale += (share / den**2) @ here
        score = self._by_v(score, score.sum())
        (active,) = ((v > 0) | (score > 0)).nonzero()
        every = len(active) == size
        half = self._half(pooled, None if every else active)
        hessian = 0.5 * (half + half.T) + 1.0
        scale = np.sqrt(scale[active] + hessian.diagonal())
        self.passes += 1
        return Point(v, self.objective(pooled), score, pooled, hessian, None if every else active, scale)

    def _blocks(self, columns: Index | None = None) -> Iterator[tuple[slice, Array, Array]]:
        """Rows, with `q` of all experts or of `columns`, 0 where missing, and 1 where not."""
        events, size = self.q.shape
        rows = max(1, COPIED // (size if columns is None else len(columns)))
        for start in range(0, events, rows):
            block = slice(start, start + rows)
            q, here = self.q[block], self.present[block]
            if columns is not None:
                q, here = q[:, columns], here[:, columns]
            yield block, np.where(here, q, 0.0), here.astype(np.float64)

    def _half(self, pooled: Array, columns: Index | None) -> Array:
        """Σ e(e + 2g)' by v, of all experts or of `columns`."""
        width = self.q.shape[1] if columns is None else len(columns)
        pairs = self.pairs if columns is None else None
        half, cells = np.zeros((width, width)), []
        for rows, q, here in self._blocks(columns):
            num, den = pooled[:, rows, None]
            root, (total, number) = self.root[rows, None], self.sums[:, rows, None]
            e = q - num / den * here
            e *= root / num
            g = here * (2.0 * root / den)
            g += e
            if pairs is not None:
                present = self.present[rows]
                cells.append((e[present], g[present]))
                continue
            of_e = (total - num / den * number) * (root / num)
            of_g = 2.0 * root / den * number + of_e
            half += self._by_v(e, of_e, out=e).T @ self._by_v(g, of_g, out=g)
        if pairs is None:
            return half
        left, right = (np.concatenate(part) for part in zip(*cells, strict=True))
        products = left[pairs.left] * right[pairs.right]
        half += np.bincount(pairs.place, weights=products, minlength=width * width).reshape(width, width)
        half = self._by_v(half, half.sum(axis=1, keepdims=True)).T
        return self._by_v(half, half.sum(axis=1, keepdims=True)).T

    def model(self, here: Point, curved: Point) -> tuple[Array, Index | None]:  # noqa: ARG002
        """See `Likelihood`: the Hessian with negative curvature reversed."""
        assert curved.hessian is not None
        assert curved.scale is not None
        scale = np.outer(curved.scale, curved.scale)
        return _reversed(curved.hessian / scale) * scale, curved.columns

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
