"""The multinomial likelihood of outcomes whose log-ratios are linear in coefficients: loss, gradient and Hessian.

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

# Numbers in a block of events, so that temporaries stay in the cache.
_BLOCK = 1 << 17
# Terms of a product of matrices from which BLAS wakes its threads, which costs more than they bring; and events in a
# block at least.
_TERMS, _FEWEST = 380_000, 32


@dataclass(frozen=True, eq=False)
class Design:
    """T events, and what their log-ratios are made of.

    There are Q = F (K - 1) + N coefficients: those of the features first, class by class, then those of the columns.

    Attributes
    ----------
    columns : ndarray, shape (N, K - 1, T) or (S, N, K - 1, T)
        With S in front, each of S vectors of coefficients has columns of its own.
    features : ndarray, shape (F, T)
    offset : ndarray, shape (K - 1, T) or (S, K - 1, T)
    outcomes : ndarray of int, shape (T,)
        0 .. K - 1.
    weight : ndarray, shape (T,)
        Frequencies.
    """

    columns: Array
    features: Array
    offset: Array
    outcomes: Index
    weight: Array

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
        """Return the design of contrasts (T, N, K - 1) and log-ratios (T, K - 1) to which they are added."""
        t, _, d = contrasts.shape
        features = np.ones((1, t)) if intercept else np.empty((0, t))
        offset = np.zeros((d, t)) if offset is None else np.broadcast_to(offset, (t, d)).T
        weight = np.ones(t) if weight is None else weight
        return cls(np.moveaxis(contrasts, 0, -1), features, offset, outcomes, weight)

    @property
    def size(self) -> int:
        """Q."""
        return int(len(self.features) * self.columns.shape[-2] + self.columns.shape[-3])

    def through(self, mean: Array, root: Array) -> Design:
        """Return the design of coefficients θ (S, P) that make these as mean (S, Q) + root (S, Q, P) θ."""
        first, (n, d, t) = len(self.features) * self.columns.shape[-2], self.columns.shape[-3:]
        flat = self.columns.reshape(*self.columns.shape[:-3], n, d * t)
        columns = (np.swapaxes(root[:, first:], 1, 2) @ flat).reshape(len(root), root.shape[2], d, t)
        offset = self.offset + (mean[:, None, first:] @ flat).reshape(len(root), d, t)
        if first:
            columns += np.einsum(
                "sfdp,ft->spdt", root[:, :first].reshape(len(root), -1, d, root.shape[2]), self.features
            )
            offset += np.swapaxes(mean[:, :first].reshape(len(root), -1, d), 1, 2) @ self.features
        return replace(self, columns=columns, offset=offset, features=self.features[:0])

    @property
    def sets(self) -> int:
        """S; 1 where nothing is different for each."""
        return len(self.columns) if self.columns.ndim == 4 else len(self.offset) if self.offset.ndim == 3 else 1

    def of_some(self, which: Index) -> Design:
        """Return the design of some of S vectors of coefficients."""
        if len(which) == self.sets or self.sets == 1:
            return self
        columns = self.columns[which] if self.columns.ndim == 4 else self.columns
        return replace(self, columns=columns, offset=self.offset[which] if self.offset.ndim == 3 else self.offset)


class Value(NamedTuple):
    """The loss −Σ_t v_t log p_t(outcome) at S vectors of coefficients, with its derivatives."""

    loss: Array  # (S,)
    gradient: Array  # (S, Q)
    hessian: Array  # (S, Q, Q)

    def some(self, which: Mask | Index) -> Value:
        """Return the values at some of the vectors."""
        return Value(*(part[which] for part in self))


def value(design: Design, coefficients: Array) -> Value:
    """Return loss, gradient and Hessian at coefficients (S, Q).

    Examples
    --------
    >>> design = Design.of(np.array([[[1.0]], [[-1.0]]]), np.array([1, 0]))
    >>> [part.round(4).tolist() for part in value(design, np.array([[1.0]]))]
    [[0.6265], [[-0.5379]], [[[0.3932]]]]
    """
    s, d = len(coefficients), design.columns.shape[-2]
    first = len(design.features) * d
    by_class = np.swapaxes(coefficients[:, :first].reshape(s, -1, d), 1, 2)
    found = Value(np.zeros(s), np.zeros(coefficients.shape), np.zeros((s, design.size, design.size)))
    for rows in _blocks(design, s):
        z, features, weight = design.columns[..., rows], design.features[:, rows], design.weight[rows]
        t = len(weight)
        flat = z.reshape(*z.shape[:-2], d * t)
        ratios = (coefficients[:, None, first:] @ flat).reshape(s, d, t) + design.offset[..., rows]
        if first:
            ratios += by_class @ features
        happened = design.outcomes[rows] == np.arange(1, d + 1)[:, None]
        loss, p, rest = softmax(ratios, happened)
        found.loss[:] += loss @ weight
        slope = (p - happened) * weight
        found.gradient[:, first:] += (flat @ slope.reshape(s, d * t, 1))[..., 0]
        if first:
            found.gradient[:, :first] += np.swapaxes(slope @ features.T, 1, 2).reshape(s, first)
        _add_curvature(found.hessian, z, features, p, rest, weight)
    return found


def products(design: Design, size: Array) -> Array:
    """Return Σ_t size_t Z_t M Z_t' for the metric M of log-ratios and several sizes (S, T), (S, Q, Q)."""
    k, found = design.columns.shape[-2] + 1, np.zeros((len(size), design.size, design.size))
    for rows in _blocks(design, len(size)):
        # The covariance of equally probable classes is the metric over 2 K.
        weight = 2.0 * k * size[:, None, rows]
        even = np.full((len(size), k - 1, weight.shape[2]), 1.0 / k)
        _add_curvature(found, design.columns[..., rows], design.features[:, rows], even, even[:, 0], weight)
    return found


def row_basis(rows: Array) -> Array:
    """Return an orthonormal basis of what rows (M, N) span, (N, min(M, N)): coefficients beyond it change nothing."""
    return np.asarray(np.linalg.qr(rows.T)[0])


def softmax(ratios: Array, happened: Mask) -> tuple[Array, Array, Array]:
    """Return losses (S, T), and probabilities of all classes but the first, (S, K - 1, T), and of the first, (S, T)."""
    top = np.maximum(ratios.max(axis=1), 0.0)
    p = ratios - top[:, None]
    loss = np.where(happened, ratios, 0.0).sum(axis=1)
    np.exp(p, out=p)
    rest = np.exp(-top)
    total = p.sum(axis=1) + rest
    p /= total[:, None]
    return np.log(total) + top - loss, p, rest / total


def _add_curvature(hessian: Array, z: Array, features: Array, p: Array, rest: Array, weight: Array) -> None:
    """Add Σ_t v_t Z_t (diag(p) − pp') Z_t' of a block of events to Hessians (S, Q, Q)."""
    (s, d, t), f = p.shape, len(features)
    first, likely = f * d, p * weight
    if d == 1:
        # p (1 − p) z and not p (z − p z), for what is nearly certain.
        likely *= rest[:, None]
        bent = likely[:, None] * z
    else:
        bent = likely[:, None] * (z - (p[:, None] * z).sum(axis=2, keepdims=True))
    flat = np.swapaxes(z.reshape(*z.shape[:-2], d * t), -1, -2)
    hessian[:, first:, first:] += bent.reshape(s, bent.shape[1], d * t) @ flat
    if not f:
        return
    beside = np.swapaxes(bent @ features.T, 2, 3).reshape(s, bent.shape[1], first)
    hessian[:, first:, :first] += beside
    hessian[:, :first, first:] += np.swapaxes(beside, 1, 2)
    spread = likely[:, None]
    if d > 1:
        spread = -spread * p[:, :, None]
        spread[:, np.arange(d), np.arange(d)] += likely
    own = (spread[:, :, :, None] * features).reshape(s, -1, t) @ features.T
    hessian[:, :first, :first] += own.reshape(s, d, d, f, f).transpose(0, 3, 1, 4, 2).reshape(s, first, first)


def _blocks(design: Design, s: int) -> Iterator[slice]:
    """Yield the events in blocks, for S vectors of coefficients."""
    (n, d, t), f = design.columns.shape[-3:], len(design.features)
    step = min(_BLOCK // max(1, s * d * max(n, d * f, 1)), _TERMS // max(1, n * n * d))
    step = max(_FEWEST, step)
    return (slice(first, first + step) for first in range(0, t, step))
