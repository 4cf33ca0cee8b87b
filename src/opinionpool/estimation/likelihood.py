"""Multinomial likelihood of outcomes with log-ratios linear in coefficients: loss, gradient and Hessian.

The log-ratios of T events against the first of K classes are η = offset + Σ_f B_f f + Σ_n w_n z_n: a feature f has
K − 1 coefficients, one for each class but the first (an intercept is the feature 1), and a column z, one number for
each class, has one. With p the probabilities of the classes but the first, the gradient by η is p − [k = outcome],
and the Hessian diag(p) − pp'. Binary outcomes are K − 1 = 1. A class that is no option of an event has the log-ratio
−∞, or one so low that its probability is 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.logodds import TINY

# Numbers in a block of events, so that temporaries stay in the cache.
_BLOCK = 1 << 17
# Terms of a product of matrices from which BLAS wakes its threads, which costs more than they bring; and events in a
# block at least.
_TERMS, _FEWEST = 380_000, 32
# Arrays of log-ratios of a gradient that are in the cache at a time.
_PASSES = 8
# A log-ratio whose exponential is still far from the largest number.
LARGEST = 600.0


@dataclass(frozen=True, eq=False)
class Design:
    """Regressors and offsets of the log-ratios of T events, for S vectors of coefficients at once.

    There are Q = F (K - 1) + N coefficients: K - 1 for each feature, class by class, then one for each of N columns.
    """

    columns: Array  # (N, K - 1, T), or (S, N, K - 1, T)
    features: Array  # (F, T)
    offset: Array  # (K - 1, T), or (S, K - 1, T)
    outcomes: Index  # (T,); 0 .. K - 1
    weight: Array  # (T,); frequencies
    basis: Array | None = None  # (K - 1, K - 1); maps a feature's coefficients to those of classes; None: the identity

    @classmethod
    def of(
        cls,
        contrasts: Array,
        outcomes: Index,
        offset: Array | None = None,
        weight: Array | None = None,
        *,
        intercept: bool = False,
    ) -> Design:
        """The design with a coefficient for each expert, on `contrasts` (T, N, K - 1), and `offset` (T, K - 1)."""
        t, _, d = contrasts.shape
        features = np.ones((1, t)) if intercept else np.empty((0, t))
        offset = np.zeros((d, t)) if offset is None else np.broadcast_to(offset, (t, d)).T
        weight = np.ones(t) if weight is None else weight
        return cls(np.moveaxis(contrasts, 0, -1), features, offset, outcomes, weight)

    @property
    def free(self) -> int:
        """Number of log-ratios of an event, K - 1."""
        return int(self.columns.shape[-2])

    @property
    def size(self) -> int:
        """Number of coefficients, Q."""
        return len(self.features) * self.free + int(self.columns.shape[-3])

    def ratios(self, coefficients: Array, rows: slice = slice(None)) -> Array:
        """Return the log-ratios (S, K - 1, T) of the events `rows` at `coefficients` (S, Q)."""
        s, d, first = len(coefficients), self.free, len(self.features) * self.free
        z, own = self.columns[..., rows], coefficients[:, :first].reshape(s, len(self.features), d)
        t = z.shape[-1]
        found = (coefficients[:, None, first:] @ z.reshape(*z.shape[:-2], d * t)).reshape(s, d, t)
        found += self.offset[..., rows]
        if first:
            found += np.swapaxes(own if self.basis is None else own @ self.basis, 1, 2) @ self.features[:, rows]
        return found

    def happened(self, rows: slice = slice(None)) -> Mask:
        """Return a mask of the class that happened, among all classes but the first, (K - 1, T)."""
        return np.asarray(self.outcomes[rows] == np.arange(1, self.free + 1)[:, None])

    def thinned(self, each: int) -> Design:
        """Return the design of every `each`-th event."""
        rows = slice(None, None, each)
        columns, offset = (np.ascontiguousarray(part[..., rows]) for part in (self.columns, self.offset))
        features, outcomes, weight = self.features[:, rows], self.outcomes[rows], self.weight[rows]
        return Design(columns, features, offset, outcomes, weight, self.basis)

    @property
    def sets(self) -> int:
        """Number S of coefficient vectors with their own regressors (`columns`) or offsets; 1 if all share them."""
        return len(self.columns) if self.columns.ndim == 4 else len(self.offset) if self.offset.ndim == 3 else 1

    def of_some(self, which: Index) -> Design:
        """Return the design for only the coefficient vectors `which`, of S."""
        if len(which) == self.sets or self.sets == 1:
            return self
        columns = self.columns[which] if self.columns.ndim == 4 else self.columns
        return replace(self, columns=columns, offset=self.offset[which] if self.offset.ndim == 3 else self.offset)


class Value(NamedTuple):
    """The loss −Σ_t v_t log p_t(outcome), for events' weights v, at S vectors of coefficients, with its derivatives."""

    loss: Array  # (S,)
    gradient: Array  # (S, Q)
    hessian: Array  # (S, Q, Q)

    def some(self, which: Mask | Index) -> Value:
        """Return loss and derivatives at only the coefficient vectors `which`, of S."""
        return Value(*(part[which] for part in self))


def value(design: Design, coefficients: Array) -> Value:
    """Return loss, gradient and Hessian at coefficients (S, Q).

    Examples
    --------
    >>> design = Design.of(np.array([[[1.0]], [[-1.0]]]), np.array([1, 0]))
    >>> [part.round(4).tolist() for part in value(design, np.array([[1.0]]))]
    [[0.6265], [[-0.5379]], [[[0.3932]]]]
    """
    s, (n, _, t) = len(coefficients), design.columns.shape[-3:]
    alike = s >= n and design.free == 1 and not len(design.features) and design.columns.ndim == 3
    found = Value(np.zeros(s), np.zeros(coefficients.shape), np.zeros((s, design.size, design.size)))
    bends = np.empty((s, 1, t) if alike else (0, 1, t))
    for rows in _blocks(design, s, _PASSES if alike else n):
        p, rest = softmax(design.ratios(coefficients, rows))
        weight, up = design.weight[rows], design.happened(rows) * design.weight[rows]
        logs = np.log(np.maximum(p, TINY)).reshape(s, -1), np.log(np.maximum(rest, TINY))
        found.loss[:] -= logs[0] @ up.ravel() + logs[1] @ (weight - up.sum(axis=0))
        _add_gradient(found.gradient, design, rows, p, rest, up)
        if alike:
            bends[..., rows] = p * (rest * weight)[:, None]
        else:
            _add_curvature(found.hessian, design, rows, p, rest, weight)
    if alike:
        # The products of pairs of columns are made once for all.
        z, place, upper = design.columns[:, 0], np.zeros((n, n), dtype=np.intp), np.triu_indices(n)
        place[upper] = place.T[upper] = np.arange(len(upper[0]))
        found.hessian[:] = (bends[:, 0] @ np.concatenate([z[i:] * z[i] for i in range(n)]).T).take(place, axis=1)
    return found


def gradient(design: Design, coefficients: Array) -> Array:
    """Return the gradient (S, Q) of the loss at `coefficients` (S, Q)."""
    found = np.zeros(coefficients.shape)
    for rows in _blocks(design, len(coefficients), _PASSES):
        up = design.happened(rows) * design.weight[rows]
        _add_gradient(found, design, rows, *softmax(design.ratios(coefficients, rows)), up)
    return found


def row_basis(rows: Array) -> Array:
    """Return an orthonormal basis of the space that `rows` (M, N) span, (N, min(M, N))."""
    return np.asarray(np.linalg.qr(rows.T)[0])


def softmax(ratios: Array) -> tuple[Array, Array]:
    """Return probabilities of all classes but the first, (S, K - 1, T), and of the first, (S, T)."""
    first: Array | float = 1.0
    if ratios.max(initial=0.0) > LARGEST:
        top = np.maximum(ratios.max(axis=1), 0.0)
        ratios, first = ratios - top[:, None], np.exp(-top)
    p = np.exp(ratios)
    scale = p.sum(axis=1)
    scale += first
    np.divide(1.0, scale, out=scale)
    p *= scale[:, None]
    return p, np.asarray(scale * first)


def _add_gradient(gradient: Array, design: Design, rows: slice, p: Array, rest: Array, up: Array) -> None:
    """Add the gradient on events `rows` to `gradient`, by probabilities `p`, `rest` and the outcomes' weights `up`."""
    s, d, t = p.shape
    z, first = design.columns[..., rows], len(design.features) * d
    # −Σ of the others, and not p − 1, of what happened: for what is nearly certain.
    others = rest if d == 1 else rest + (p * (up == 0)).sum(axis=1)
    slope = p * (design.weight[rows] - up)
    slope -= others[:, None] * up
    gradient[:, first:] += (z.reshape(*z.shape[:-2], d * t) @ slope.reshape(s, d * t, 1))[..., 0]
    if first:
        slope = slope if design.basis is None else design.basis @ slope
        gradient[:, :first] += np.swapaxes(slope @ design.features[:, rows].T, 1, 2).reshape(s, first)


def _add_curvature(hessian: Array, design: Design, rows: slice, p: Array, rest: Array, weight: Array) -> None:
    """Add second derivatives of the loss on events `rows` to `hessian` (S, Q, Q); `p`, `rest` as in `_add_gradient`."""
    (s, d, t), (f, n), z = p.shape, (len(design.features), design.columns.shape[-3]), design.columns[..., rows]
    first, features, likely = f * d, design.features[:, rows], p * weight
    if d == 1:
        # p (1 − p) z and not p (z − p z), for what is nearly certain.
        likely *= rest[:, None]
        # Products of a matrix with itself take half the time.
        half = np.sqrt(likely)
        bent = half[:, None] * z
        z, beyond = bent, np.asarray(half * features)
    else:
        bent, beyond = likely[:, None] * (z - (p[:, None] * z).sum(axis=2, keepdims=True)), features
    _add_products(hessian[:, first:, first:], bent.reshape(s, n, d * t), z.reshape(*z.shape[:-2], d * t))
    if not f:
        return
    beside: Array = (bent.reshape(s, n * d, t) @ np.swapaxes(beyond, -1, -2)).reshape(s, n, d, f)
    each, own = (likely[:, :, None] * features) @ features.T, np.zeros((s, f, d, f, d))
    if design.basis is None:
        np.einsum("sfjgj->sjfg", own)[:] = each
    else:
        beside, p = design.basis @ beside, design.basis @ p
        own += np.einsum("ij,kj,sjfg->sfigk", design.basis, design.basis, each, optimize=True)
    beside = np.swapaxes(beside, 2, 3).reshape(s, n, first)
    hessian[:, first:, :first] += beside
    hessian[:, :first, first:] += np.swapaxes(beside, 1, 2)
    if d > 1:
        mean = (features[:, None] * p[:, None]).reshape(s, first, t)
        own -= ((mean * weight) @ np.swapaxes(mean, 1, 2)).reshape(s, f, d, f, d)
    hessian[:, :first, :first] += own.reshape(s, first, first)


def _add_products(found: Array, left: Array, right: Array) -> None:
    """Add `left` (S, N, M) times the transpose of `right`, (N, M) or (S, N, M), to `found` (S, N, N)."""
    n, m = left.shape[1:]
    step = _TERMS // max(1, n * n)
    step = step if step >= _FEWEST else m
    for piece in (slice(begin, begin + step) for begin in range(0, m, step)):
        found += left[..., piece] @ np.swapaxes(right[..., piece], -1, -2)


def _blocks(design: Design, s: int, n: int) -> Iterator[slice]:
    """Yield the events in blocks so small that `s` vectors times `n` numbers per log-ratio fit into the cache."""
    (d, t), f = design.columns.shape[-2:], len(design.features)
    step = max(_FEWEST, _BLOCK // max(1, s * d * max(n, f)), n // d)
    return (slice(first, first + step) for first in range(0, t, step))
