"""What resolved events say of weights that differ between classes: how well they predict, and which are likeliest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.logodds import Array, softmax
from opinionpool.mode import posterior_mode
from opinionpool.patterns import Positions


@dataclass(frozen=True, eq=False)
class ClassEvidence:
    """What resolved events say of differences between classes.

    Attributes
    ----------
    design : ndarray, shape (T, P, K - 1)
    offset : ndarray, shape (T, K - 1)
        Log-ratios by the symmetric panel.
    outcomes : ndarray of int, shape (T,)
    weight : ndarray, shape (T,)
        How many independent events each is worth.
    member : ndarray of int, shape (T,)
        The set of events that is left out with it.
    """

    design: Array
    offset: Array
    outcomes: npt.NDArray[np.intp]
    weight: Array
    member: npt.NDArray[np.intp]

    def gains(self, roots: Sequence[Array]) -> list[tuple[float, float]]:
        """Gain of log score by weights that differ, and its standard error, for standard deviations (P,) each."""
        sets = range(self.member.max() + 1)
        size = np.bincount(self.member, weights=self.weight)
        parts = [self._slopes(np.flatnonzero(self.member == g)) for g in sets]
        gradient, hessian = sum(part[0] for part in parts), sum(part[1] for part in parts)
        before = self._scores(np.arange(len(self.member)), np.zeros(self.design.shape[1]))
        found = []
        for root in roots:
            kept = root > 0
            scale, part = root[kept], np.ix_(kept, kept)
            gained = np.empty(len(size))
            for g in sets:
                left = np.eye(len(scale)) + scale[:, None] * (hessian - parts[g][1])[part] * scale
                step = np.zeros(len(root))
                step[kept] = scale * np.linalg.solve(left, scale * (gradient - parts[g][0])[kept])
                rows = np.flatnonzero(self.member == g)
                gained[g] = self.weight[rows] @ (self._scores(rows, step) - before[rows])
            mean = gained.sum() / size.sum()
            spread = np.square(gained - mean * size).sum() * len(size) / (len(size) - 1)
            found.append((float(mean), float(np.sqrt(spread) / size.sum())))
        return found

    def _slopes(self, rows: Positions) -> tuple[Array, Array]:
        """Gradient and Hessian of the likelihood at the symmetric panel."""
        design, p = self.design[rows], softmax(self.offset[rows])[:, 1:]
        surprise = (self.outcomes[rows, None] == np.arange(1, p.shape[1] + 1)) - p
        curvature = p[:, :, None] * (np.eye(p.shape[1]) - p[:, None, :]) * self.weight[rows, None, None]
        gradient = np.einsum("tpk,tk->p", design, surprise * self.weight[rows, None])
        flat = (design @ curvature).transpose(1, 0, 2).reshape(design.shape[1], -1)
        return gradient, flat @ design.transpose(1, 0, 2).reshape(design.shape[1], -1).T

    def _scores(self, rows: Positions, coefficients: Array) -> Array:
        """Log probability of what happened."""
        ratios = self.offset[rows] + np.einsum("tpk,p->tk", self.design[rows], coefficients)
        return np.asarray(np.log(softmax(ratios)[np.arange(len(rows)), self.outcomes[rows]]))

    def fit(self, root: Array) -> tuple[Array, Array]:
        """The most probable coefficients, (P,), and their covariance, (P, P)."""
        kept = root > 0
        scale = root[kept]
        mode = posterior_mode(self.design[:, kept] * scale[:, None], self.outcomes, self.offset, self.weight)
        coefficients, covariance = np.zeros(len(root)), np.zeros((len(root), len(root)))
        coefficients[kept] = scale * mode.coefficients
        covariance[np.ix_(kept, kept)] = scale[:, None] * mode.covariance * scale
        return coefficients, covariance
