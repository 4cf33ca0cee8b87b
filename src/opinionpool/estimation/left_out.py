"""A step of Newton's method without each of several sets of events, which are few of all.

The Hessian without a set is that of all less a little. So the step is found by conjugate gradients that are
preconditioned by the inverse for all events: about ten products, where a factorization for each set takes the time of
the inverse for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.estimation.likelihood import Design, softmax, value

# Squared, relative to the step, in the norm that the Hessian makes.
_TOLERANCE = 1e-22
_STEPS = 200


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The likelihood near some coefficients, of all events but those of each of S sets.

    Attributes
    ----------
    design : Design
        With F features and their basis, and P = F (K - 1) coefficients.
    sets : sequence of S arrays of int
        The events of each.
    at : ndarray, shape (P,)
    """

    design: Design
    sets: Sequence[Index]
    at: Array

    @cached_property
    def _slopes(self) -> tuple[Array, Array, Array]:
        """Gradients without each set, (S, P), the Hessian of all, (P, P), and the curvature of each event by set."""
        design, basis = self.design, self._basis
        happened = design.happened()
        _, p, _ = softmax(design.ratios(self.at[None]), happened)
        surprise = basis @ ((p[0] - happened) * design.weight)
        each = np.stack([(design.features[:, rows] @ surprise[:, rows].T).ravel() for rows in self.sets])
        order = np.concatenate(self.sets)
        likely, weight = p[0].T[order], design.weight[order, None, None]
        mean = likely @ basis.T
        curvature = (basis * likely[:, None]) @ basis.T - mean[:, :, None] * mean[:, None]
        return each.sum(axis=0) - each, value(design, self.at[None]).hessian[0], weight * curvature

    @property
    def _basis(self) -> Array:
        assert self.design.basis is not None
        return self.design.basis

    def moved(self, precision: Array) -> Array:
        """Log-ratios of each event, (T, K - 1), after a step without its set.

        Parameters
        ----------
        precision : ndarray, shape (p,)
            Of the first p coefficients about 0; the others stay as they are.
        """
        design, kept = self.design, len(precision)
        gradient, hessian, curvature = self._slopes
        whole = hessian[:kept, :kept] + np.diag(precision)
        own = _Sets([design.features[: kept // design.free, rows].T for rows in self.sets], curvature)
        step = own.solve(whole, gradient[:, :kept] + precision * self.at[:kept])
        found = design.ratios(self.at[None])[0].T
        found[np.concatenate(self.sets)] -= own.along(step) @ self._basis
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class _Sets:
    """S sets of events: features (t, F) of each, and curvatures (T, D, D) of all by D coordinates of log-ratios."""

    features: Sequence[Array]
    curvature: Array

    def along(self, coefficients: Array) -> Array:
        """What each event's features make of the coefficients of its set, (S, F D), as (T, D)."""
        d = self.curvature.shape[1]
        each = coefficients.reshape(len(coefficients), -1, d)
        return np.concatenate([features @ own for features, own in zip(self.features, each, strict=True)])

    def solve(self, whole: Array, right: Array) -> Array:
        """Solutions (S, P) of equations with a matrix (P, P) less the Hessian of each set."""
        inverse = np.linalg.inv(whole)
        x = right @ inverse
        rest = right - self._times(whole, x)
        direction = near = rest @ inverse
        size, least = (rest * near).sum(axis=1), _TOLERANCE * (right * x).sum(axis=1)
        for _ in range(_STEPS):
            (left,) = np.nonzero(size > least)
            if not len(left):
                break
            turned = self._times(whole, direction)
            # Those that have been found move no more.
            length = np.zeros(len(size))
            length[left] = size[left] / (direction * turned).sum(axis=1)[left]
            x += length[:, None] * direction
            rest -= length[:, None] * turned
            near = rest @ inverse
            before, size = size, (rest * near).sum(axis=1)
            direction = near + (size / np.where(before > 0, before, 1.0))[:, None] * direction
        return np.asarray(x)

    def _times(self, whole: Array, x: Array) -> Array:
        """The products with those matrices, (S, P)."""
        found, first = x @ whole, 0
        turned = (self.curvature @ self.along(x)[:, :, None])[:, :, 0]
        for g, features in enumerate(self.features):
            found[g] -= (features.T @ turned[first : first + len(features)]).ravel()
            first += len(features)
        return np.asarray(found)
