"""Fisher information of a multivariate normal whose observations are partly missing, and steps by it.

Expected information weighs a change U of Sigma by tr(K_t U K_t U)/2, summed over events. Few thousand events, evenly
spread, stand in for all: a step by their information is a good step, and what makes it exact is the E-step over all.
The system is solved by conjugate gradients, so that no array is larger than N x N.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opinionpool.estep import Model, Positions, Sample, Sums
from opinionpool.logodds import Array

# Numbers in the inverses that are held.
BUDGET = 1 << 20
# How exactly a step is solved for, and in how many products at most.
PRECISION, PRODUCTS = 0.05, 40


@dataclass(frozen=True, eq=False)
class _Held:
    """Inverses K of some events: (T, n, n), their places in an N x N array, and their weights by outcome (K, T)."""

    inverse: Array
    place: Positions
    weight: Array


@dataclass(frozen=True, eq=False)
class Information:
    """Information at a model.

    Attributes
    ----------
    sigma : ndarray, shape (N, N)
    terms : float
        Rows of the regression.
    held : tuple of _Held
    scale : ndarray, shape (N, N)
        Root of how much rarer a pair is than an event; makes few products enough.
    design : ndarray, shape (N, K, N, K)
        Information on coefficients.
    """

    sigma: Array
    terms: float
    held: tuple[_Held, ...]
    scale: Array
    design: Array

    @classmethod
    def of(cls, sample: Sample, model: Model) -> Information:
        """The information of a sample, or of part of a long one."""
        n, (k, d) = len(model.sigma), sample.shape.shape
        held = tuple(_held(sample, model))
        by_outcome, together = np.zeros((k, n * n)), np.zeros(n * n)
        for part in held:
            for c in range(k):
                np.add(by_outcome[c], _placed(part, part.inverse * part.weight[c][:, None, None], n), out=by_outcome[c])
            count = np.broadcast_to(part.weight.sum(axis=0)[:, None, None], part.inverse.shape)
            together += _placed(part, count, n)
        scale = np.sqrt(sample.events.sum() / np.maximum(together, 1.0)).reshape(n, n)
        outer = np.zeros((k, d + 1, d + 1))
        outer[:, :d, :d] = np.eye(d)
        outer[:, :d, d] = outer[:, d, :d] = sample.biased * sample.shape
        outer[:, d, d] = (sample.shape**2).sum(axis=1)
        design = np.einsum("cnm,cij->nimj", by_outcome.reshape(k, n, n), outer, optimize=True)
        return cls(model.sigma, sample.terms, held, scale, design)

    def step(self, sums: Sums) -> Model:
        """Changes of coefficients and Sigma."""
        n, k = sums.score.shape
        system = self.design.reshape(n * k, n * k)
        coefficients = np.linalg.solve(system, sums.score.ravel()).reshape(n, k)
        return Model(np.asarray(coefficients, dtype=np.float64), self._solve(sums.curvature, k - 1))

    def _solve(self, target: Array, d: int) -> Array:
        """U with sum of K_t U K_t = target, by preconditioned conjugate gradients."""
        found, left = np.zeros_like(target), target.copy()
        near = self._nearly(left)
        way, size = near, float((left * near).sum())
        first = size
        for _ in range(PRODUCTS):
            if size <= PRECISION**2 * first:
                break
            product = d * self._times(way)
            length = size / float((way * product).sum())
            found += length * way
            left -= length * product
            near = self._nearly(left)
            after = float((left * near).sum())
            way = near + after / size * way
            size = after
        return (found + found.T) / 2.0

    def _nearly(self, target: Array) -> Array:
        """What U would be were the experts' answers independent of each other."""
        return np.asarray(self.scale * (self.sigma @ (self.scale * target) @ self.sigma) / self.terms)

    def _times(self, u: Array) -> Array:
        """Sum of K_t U K_t."""
        n, flat = len(u), u.ravel()
        total = np.zeros(n * n)
        for part in self.held:
            product = part.inverse @ flat[part.place] @ part.inverse
            product *= part.weight.sum(axis=0)[:, None, None]
            total += _placed(part, product, n)
        return total.reshape(n, n)


def _placed(part: _Held, values: Array, n: int) -> Array:
    return np.bincount(part.place.ravel(), weights=values.ravel(), minlength=n * n).astype(np.float64, copy=False)


def _held(sample: Sample, model: Model) -> list[_Held]:
    n, k = len(model.sigma), len(sample.events)
    size = sum(batch.columns.shape[1] * len(batch.columns) ** 2 for batch in sample.batches)
    share = min(1.0, BUDGET / max(size, 1))
    held = []
    for batch in sample.batches:
        t = batch.columns.shape[1]
        rows = np.linspace(0, t - 1, max(1, round(share * t))).astype(np.intp)
        weight = np.zeros((k, len(rows)))
        weight[batch.outcomes[rows], np.arange(len(rows))] = batch.weight[rows] * (t / len(rows))
        held.append(_inverted(batch.columns[:, rows].T, weight, model.sigma, n))
    held += [_inverted(group.columns[None], group.weight[:, None], model.sigma, n) for group in sample.groups]
    return held


def _inverted(columns: Positions, weight: Array, sigma: Array, n: int) -> _Held:
    place = columns[:, :, None] * n + columns[:, None, :]
    return _Held(np.linalg.inv(sigma.ravel()[place]), place, weight)
