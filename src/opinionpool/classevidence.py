"""What resolved events say of weights that differ between classes: how well they predict, and which are likeliest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.classweights import ClassWeights, Spreads
from opinionpool.logodds import Array, softmax
from opinionpool.mode import posterior_mode
from opinionpool.patterns import Positions

# How many of its standard errors a gain must be.
CLEAR = 2.0
# What the symmetric panel is believed to know of events, as if so many had been seen that happened as it says. Without
# it, weights that are too sure seem better as long as no event has come out against them.
WORTH = 15.0


class Gain(NamedTuple):
    """By how much the log score of events that were left out is better, each, and its standard error."""

    mean: float
    error: float

    @property
    def clear(self) -> bool:
        """Whether this is more than chance."""
        return self.mean > CLEAR * self.error


class Slopes(NamedTuple):
    """Gradient (S, P) and Hessian (S, P, P) of the log-likelihood, by set of events."""

    gradient: Array
    hessian: Array


class Found(NamedTuple):
    """Coefficients (P,), their covariance (P, P), and the log probability of the outcomes."""

    coefficients: Array
    covariance: Array
    evidence: float


@dataclass(frozen=True, eq=False)
class ClassEvidence:
    """What resolved events say of differences between classes.

    Attributes
    ----------
    weights : ClassWeights
    design : ndarray, shape (T, P, K - 1)
    offset : ndarray, shape (T, K - 1)
        Log-ratios by the symmetric panel.
    outcomes : ndarray of int, shape (T,)
    weight : ndarray, shape (T,)
        How many independent events each is worth.
    member : ndarray of int, shape (T,)
        The set of events, 0 to S - 1, that is left out with it.
    """

    weights: ClassWeights
    design: Array
    offset: Array
    outcomes: npt.NDArray[np.intp]
    weight: Array
    member: Positions

    @property
    def sets(self) -> int:
        """S."""
        return int(self.member.max()) + 1

    @cached_property
    def at_symmetry(self) -> Slopes:
        """Slopes where no weights differ."""
        return self.slopes(np.zeros(self.design.shape[1]))

    def slopes(self, coefficients: Array) -> Slopes:
        """Slopes at some coefficients."""
        p = self.design.shape[1]
        found = Slopes(np.empty((self.sets, p)), np.empty((self.sets, p, p)))
        for g in range(self.sets):
            rows = np.flatnonzero(self.member == g)
            design, answer = self.design[rows], softmax(self._ratios(rows, coefficients))[:, 1:]
            surprise = (self.outcomes[rows, None] == np.arange(1, answer.shape[1] + 1)) - answer
            curvature = answer[:, :, None] * (np.eye(answer.shape[1]) - answer[:, None, :])
            found.gradient[g] = np.einsum("tpk,tk->p", design, surprise * self.weight[rows, None])
            flat = (design @ (curvature * self.weight[rows, None, None])).transpose(1, 0, 2).reshape(p, -1)
            found.hessian[g] = flat @ design.transpose(1, 0, 2).reshape(p, -1).T
        return found

    def gain(self, spreads: Spreads, start: Array, slopes: Slopes) -> Gain:
        """What weights learned without the events that they predict gain, by a step of Newton's from `start`."""
        kept, scale = self._kept(spreads)
        gradient, hessian = slopes.gradient.sum(axis=0), slopes.hessian.sum(axis=0)
        events, gained, lost = np.empty((3, self.sets))
        for g in range(self.sets):
            left = np.eye(len(kept)) + scale[:, None] * (hessian - slopes.hessian[g])[np.ix_(kept, kept)] * scale
            slope = scale * (gradient - slopes.gradient[g])[kept] - start[kept] / scale
            without = np.zeros(len(start))
            without[kept] = start[kept] + scale * np.linalg.solve(left, slope)
            rows = np.flatnonzero(self.member == g)
            before, after = log_chances(self.offset[rows]), log_chances(self._ratios(rows, without))
            events[g], happened = self.weight[rows].sum(), self.outcomes[rows, None]
            gained[g] = self.weight[rows] @ np.take_along_axis(after - before, happened, axis=1)[:, 0]
            lost[g] = self.weight[rows] @ (np.exp(before) * (before - after)).sum(axis=1)
        total = events.sum()
        mean = (gained.sum() - WORTH * lost.sum() / total) / (total + WORTH)
        apart = gained - gained.sum() / total * events
        error = np.sqrt(np.square(apart).sum() * self.sets / (self.sets - 1)) / (total + WORTH)
        return Gain(float(mean), float(error))

    def fit(self, spreads: Spreads) -> Found:
        """The most probable coefficients, and what is open about them."""
        kept, scale = self._kept(spreads)
        p = self.design.shape[1]
        mode = posterior_mode(self.design[:, kept] * scale[:, None], self.outcomes, self.offset, self.weight)
        found = Found(np.zeros(p), np.zeros((p, p)), mode.evidence)
        found.coefficients[kept] = scale * mode.coefficients
        found.covariance[np.ix_(kept, kept)] = scale[:, None] * mode.covariance * scale
        return found

    def _kept(self, spreads: Spreads) -> tuple[Positions, Array]:
        """Coefficients that may differ from 0, and their standard deviations."""
        roots = self.weights.roots(spreads)
        kept = np.flatnonzero(roots)
        return kept, roots[kept]

    def _ratios(self, rows: Positions, coefficients: Array) -> Array:
        return np.asarray(self.offset[rows] + np.einsum("tpk,p->tk", self.design[rows], coefficients))


def log_chances(ratios: Array) -> Array:
    """Log-probabilities (T, K) of log-ratios (T, K - 1)."""
    full = np.concatenate([np.zeros((len(ratios), 1)), ratios], axis=1)
    return np.asarray(full - np.logaddexp.reduce(full, axis=1, keepdims=True))
