"""Likelihoods of the same outcomes among several classes, at many weights and intercepts at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.estimation.posterior import Values

# Contrasts of so many numbers stay in the cache, beside their products with probabilities.
_BLOCK = 1 << 15


class _Block(NamedTuple):
    """Some of the events, classes before events."""

    contrasts: Array  # (N, (K - 1) t)
    offset: Array  # (K - 1, t)
    happened: Array  # (K - 1, t); 1 for the outcome
    first: Array  # (t,); 1 where that is the first class
    weight: Array  # (t,)


@dataclass(frozen=True, eq=False)
class ClassEvents:
    """T events, whose log-ratios are offset + intercept + Σ w_n u_n, with Q = K - 1 + N coefficients.

    An intercept needs no design, and all else that Newton's method takes is K times as much as for two classes.

    Attributes
    ----------
    contrasts : ndarray, shape (T, N, K - 1)
    offset : ndarray, shape (T, K - 1)
    outcomes : ndarray of int, shape (T,)
    weight : ndarray, shape (T,)
        Frequencies.
    """

    contrasts: Array
    offset: Array
    outcomes: npt.NDArray[np.intp]
    weight: Array

    @property
    def size(self) -> int:
        """Q."""
        return int(sum(self.contrasts.shape[1:]))

    def values(self, along: Array) -> Values:
        """Losses with their derivatives at F coefficients each, intercepts first, (F, Q)."""
        d = self.contrasts.shape[2]
        loss, gradient, hessian = np.zeros(len(along)), np.zeros(along.shape), np.zeros((*along.shape, along.shape[1]))
        again = [i > 0 and bool((along[i] == along[i - 1]).all()) for i in range(len(along))]
        for block in self._blocks:
            ratios = (along[:, d:] @ block.contrasts).reshape(len(along), d, -1)
            ratios += block.offset
            ratios += along[:, :d, None]
            top = np.maximum(ratios.max(axis=1), 0.0)
            ratios -= top[:, None]
            lost = block.first * top - (ratios * block.happened).sum(axis=1)
            p = np.exp(ratios, out=ratios)
            total = p.sum(axis=1) + np.exp(-top)
            loss += (lost + np.log(total)) @ block.weight
            p /= total[:, None]
            surprise = (p - block.happened) * block.weight
            gradient[:, :d] += surprise.sum(axis=2)
            gradient[:, d:] += surprise.reshape(len(along), -1) @ block.contrasts.T
            for i, (each, probable) in enumerate(zip(hessian, p, strict=True)):
                if not again[i]:
                    _add_curvature(each, block, probable)
        for i in np.flatnonzero(again).tolist():
            hessian[i] = hessian[i - 1]
        return Values(loss, gradient, hessian)

    def precision(self, weight: Array) -> Array:
        """Σ of weights (T,) times the metric of log-ratios, as a form of the coefficients, (Q, Q)."""
        q, k = self.size, self.contrasts.shape[2] + 1
        found, first = np.zeros((q, q)), 0
        for block in self._blocks:
            t = len(block.weight)
            # The covariance of equally probable classes is the metric over 2 K.
            own = block._replace(weight=2.0 * k * weight[first : first + t])
            _add_curvature(found, own, np.full(block.offset.shape, 1.0 / k))
            first += t
        return found

    @cached_property
    def _blocks(self) -> list[_Block]:
        return list(self._cut())

    def _cut(self) -> Iterator[_Block]:
        t, n, d = self.contrasts.shape
        step = max(1, _BLOCK // max(1, n * d))
        for start in range(0, t, step):
            rows = slice(start, start + step)
            outcomes = self.outcomes[rows]
            contrasts = np.ascontiguousarray(self.contrasts[rows].transpose(1, 2, 0)).reshape(n, -1)
            happened = (outcomes == np.arange(1, d + 1)[:, None]).astype(np.float64)
            offset = np.ascontiguousarray(self.offset[rows].T)
            yield _Block(contrasts, offset, happened, (outcomes == 0) * 1.0, self.weight[rows])


def _add_curvature(hessian: Array, block: _Block, p: Array) -> None:
    """Add the covariance over classes, which are so probable, (K - 1, t), of what multiplies the coefficients."""
    d, n = len(p), len(block.contrasts)
    likely = block.weight * p
    each = block.contrasts.reshape(n, d, -1) * likely
    mean = each.sum(axis=1)
    # Mean and square of the mean, both times the frequency.
    square = mean / np.where(block.weight > 0, block.weight, 1.0)
    hessian[d:, d:] += each.reshape(n, -1) @ block.contrasts.T - mean @ square.T
    across = each.sum(axis=2) - mean @ p.T
    hessian[d:, :d] += across
    hessian[:d, d:] += across.T
    hessian[:d, :d] -= likely @ p.T
    np.einsum("ii->i", hessian[:d, :d])[:] += likely.sum(axis=1)
