"""Likelihoods of the same outcomes among several classes, at many weights and intercepts at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.estimation.event_likelihoods import EventLikelihoods
from opinionpool.estimation.posterior import Values

# Contrasts of so many numbers stay in the cache, beside their products with probabilities; fewer events are slow.
_BLOCK, _ROWS = 1 << 14, 32


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
        # Those that begin at the same place are the same there.
        place = np.cumsum([i > 0 and bool((along[i] != along[i - 1]).any()) for i in range(len(along))])
        if len(along) and place[-1] < len(along) - 1:
            found = self.values(along[np.unique(place, return_index=True)[1]])
            return Values(*(part[place] for part in found))
        d = self.contrasts.shape[2]
        loss, gradient, hessian = np.zeros(len(along)), np.zeros(along.shape), np.zeros((*along.shape, along.shape[1]))
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
            _add_curvature(hessian, block, p, block.weight[None])
        return Values(loss, gradient, hessian)

    def products(self, size: Array) -> Array:
        """Inner products of what multiplies each coefficient, (F, Q, Q), if events count by several sizes, (F, T)."""
        q, k = self.size, self.contrasts.shape[2] + 1
        found, first = np.zeros((len(size), q, q)), 0
        for block in self._blocks:
            # The covariance of equally probable classes is the metric over 2 K.
            own = 2.0 * k * size[:, None, first : first + len(block.weight)]
            even = np.full((len(size), *block.offset.shape), 1.0 / k)
            _add_curvature(found, block, even, own)
            first += len(block.weight)
        return found

    @cached_property
    def _blocks(self) -> list[_Block]:
        return list(self._cut())

    def _cut(self) -> Iterator[_Block]:
        t, n, d = self.contrasts.shape
        step = max(_ROWS, _BLOCK // max(1, n * d))
        for start in range(0, t, step):
            rows = slice(start, start + step)
            outcomes = self.outcomes[rows]
            contrasts = np.ascontiguousarray(self.contrasts[rows].transpose(1, 2, 0)).reshape(n, -1)
            happened = (outcomes == np.arange(1, d + 1)[:, None]).astype(np.float64)
            offset = np.ascontiguousarray(self.offset[rows].T)
            yield _Block(contrasts, offset, happened, (outcomes == 0) * 1.0, self.weight[rows])


def _add_curvature(hessian: Array, block: _Block, p: Array, own: Array) -> None:
    """Add the covariance over classes of what multiplies coefficients, where these are so probable, (F, K - 1, t).

    `own` is how much events count, (F, 1, t) or (1, t).
    """
    f, d, t = p.shape
    n = len(block.contrasts)
    contrasts, likely = block.contrasts.reshape(n, d, t), p * own
    each = contrasts * likely[:, None]
    # The mean times how much the event counts, and the mean.
    counted = each.sum(axis=2)
    mean = counted / np.where(own > 0, own, 1.0)
    hessian[:, d:, d:] += (each.reshape(f * n, -1) @ block.contrasts.T).reshape(f, n, n)
    hessian[:, d:, d:] -= counted @ mean.swapaxes(1, 2)
    across = np.matmul(contrasts.transpose(1, 0, 2), likely.transpose(1, 2, 0)).transpose(2, 0, 1)
    across = across - p @ counted.swapaxes(1, 2)
    hessian[:, :d, d:] += across
    hessian[:, d:, :d] += across.swapaxes(1, 2)
    hessian[:, :d, :d] -= likely @ p.swapaxes(1, 2)
    np.einsum("fii->fi", hessian[:, :d, :d])[:] += likely.sum(axis=2)


class ClassLikelihoods(EventLikelihoods[ClassEvents]):
    """Likelihoods of outcomes among several classes."""

    def _plain(self, parts: Sequence[tuple[ClassEvents, slice]], along: Array) -> Values:
        found = Values(np.empty(len(along)), np.zeros(along.shape), np.zeros((len(along), *(2 * along.shape[1:]))))
        for events, rows in parts:
            q = events.size
            found.loss[rows], found.gradient[rows, :q], found.hessian[rows, :q, :q] = events.values(along[rows, :q])
        return found
