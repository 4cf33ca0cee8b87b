"""Regressions of the outcomes of events on what experts contribute to them, many at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.estimation.anchor import Anchor
from opinionpool.estimation.coefficients import Coefficients, WeightBeliefs, moves
from opinionpool.estimation.likelihood import Design, products, row_basis
from opinionpool.estimation.newton import Mode, Prior, Quadratic, posterior_modes

# Numbers in the Hessians of regressions that are fitted together.
_HESSIANS = 1 << 22


@dataclass(frozen=True, eq=False)
class Observations:
    """T events and what N experts contribute to them.

    Attributes
    ----------
    contrasts : ndarray, shape (T, N, K - 1)
        u, none missing.
    offset : ndarray, shape (T, K - 1)
        L°.
    outcomes : ndarray of int, shape (T,)
    weight : ndarray, shape (T,)
        Frequencies.
    expected : ndarray, shape (N,), optional
        The weights that are believed of any panel, where one outcome is to move little (`Anchor`).
    """

    contrasts: Array
    offset: Array
    outcomes: npt.NDArray[np.intp]
    weight: Array
    expected: Array | None = None

    @property
    def free(self) -> int:
        """K - 1."""
        return int(self.contrasts.shape[2])

    def answers(self, weights: Array) -> Array:
        """Return log-ratios by weights (N,) and no intercept, (T, K - 1)."""
        return np.asarray(self.offset + np.einsum("tnd,n->td", self.contrasts, weights))

    def contributions(self, coefficients: Array) -> Array:
        """Return what an intercept and weights (K - 1 + N,) add to the log-ratios, (T, K - 1)."""
        return np.asarray(coefficients[: self.free] + np.einsum("tnd,n->td", self.contrasts, coefficients[self.free :]))

    def anchor(self, mean: Array) -> Anchor | None:
        """Return what keeps one outcome from moving much where mean weights (N,) are believed of this panel."""
        if self.expected is None:
            return None
        return Anchor.at(self.answers(self.expected), self.answers(mean), self.weight)

    @cached_property
    def basis(self) -> Array | None:
        """An orthonormal basis of equal weights and what contrasts span, (N, M); None where that is everything."""
        t, n, d = self.contrasts.shape
        if n <= t * d + 1:
            return None
        rows = np.swapaxes(self.contrasts, 1, 2).reshape(t * d, n)
        return row_basis(np.concatenate([np.ones((1, n)), rows]))

    def along(self, weights: Array) -> Array:
        """Return weights (..., N) in coordinates of the basis, (..., M)."""
        return weights if self.basis is None else weights @ self.basis

    @cached_property
    def design(self) -> Design:
        """Intercept and weights, these along the basis; of two classes, the intercept is a column."""
        t, _, d = self.contrasts.shape
        seen = np.transpose(self.along(np.swapaxes(self.contrasts, 1, 2)), (2, 1, 0))
        one = np.ones((1, t))
        columns, features = (np.concatenate([one[:, None], seen]), one[:0]) if d == 1 else (seen, one)
        offset = np.ascontiguousarray(self.offset.T)
        return Design(np.ascontiguousarray(columns), features, offset, self.outcomes, self.weight)

    @cached_property
    def _precisions(self) -> Array:
        """Precisions of intercept and weights by the anchor, in all and about the expected ones, (2, Q, Q)."""
        assert self.expected is not None
        anchor = Anchor.at(*(2 * (self.answers(self.expected),)), self.weight)
        return products(self.design, np.stack([anchor.own + anchor.common, anchor.common]))

    def pull(self, mean: Array, anchored: npt.NDArray[np.bool_]) -> Quadratic | None:
        """Return what anchors intercepts and weights about means (S, K - 1 + M), for some of S regressions."""
        if self.expected is None or not anchored.any():
            return None
        both, common = self._precisions
        beyond = mean.copy()
        beyond[:, self.free :] -= self.along(self.expected)
        return Quadratic(anchored[:, None, None] * both, anchored[:, None] * (beyond @ common))


@dataclass(frozen=True, eq=False)
class Regression:
    """Outcomes of events by what experts contribute to them.

    Attributes
    ----------
    observed : Observations
    beliefs : WeightBeliefs
    deviation : float
        How much weights differ from each other.
    anchored : bool
        Whether one outcome is to move little.
    start : Coefficients or float, optional
        Where to begin, or the sum of the weights there; the answer does not depend on it.
    """

    observed: Observations
    beliefs: WeightBeliefs
    deviation: float = 0.0
    anchored: bool = True
    start: Coefficients | float | None = None

    @property
    def several(self) -> bool:
        """Whether weights differ."""
        return moves(self.beliefs.deviation(self.deviation), len(self.beliefs.mean))

    def begin(self, size: int) -> Array:
        """Return coefficients (P,) to begin with: those of the start, or with its intercept and sum of weights."""
        theta, beliefs, start = np.zeros(size), self.beliefs, self.start
        if start is None:
            return theta
        if isinstance(start, Coefficients):
            d = self.observed.free
            if len(start.mode.coefficients) == size:
                theta[:] = start.mode.coefficients
            if beliefs.intercept_spread > 0:
                theta[beliefs.shared : beliefs.shared + d] = beliefs.of_intercept(start.values[:d])
        if beliefs.slope_spread > 0:
            total = start if isinstance(start, float) else start.total
            theta[0] = (total - beliefs.total) / beliefs.slope_spread
        return theta


def fit_batch(regressions: Sequence[Regression]) -> list[Coefficients]:
    """Return the most probable coefficients of regressions of the same observations."""
    found: dict[int, Coefficients] = {}
    for several in (False, True):
        alike = [i for i, each in enumerate(regressions) if each.several == several]
        size = regressions[0].observed.design.size if several else 1
        most = max(1, _HESSIANS // size**2)
        for some in (alike[first : first + most] for first in range(0, len(alike), most)):
            found.update(zip(some, _fit_alike([regressions[i] for i in some]), strict=True))
    return [found[i] for i in range(len(regressions))]


def _fit_alike(regressions: Sequence[Regression]) -> list[Coefficients]:
    """Return the fits of regressions with as many coefficients each."""
    observed, d = regressions[0].observed, regressions[0].observed.free
    mean = np.zeros((len(regressions), observed.design.size))
    mean[:, d:] = observed.along(np.array([each.beliefs.mean for each in regressions]))
    root = np.array([each.beliefs.root(each.deviation, d, observed.basis) for each in regressions])
    bases = [_basis(each) for each in regressions]
    start = np.array(
        [
            each.begin(root.shape[2]) if basis is None else each.begin(len(basis)) @ basis
            for each, basis in zip(regressions, bases, strict=True)
        ]
    )
    pull = observed.pull(mean, np.array([each.anchored for each in regressions]))
    modes = posterior_modes(observed.design, Prior(mean, root), start, pull)
    return [
        _coefficients(each, mode if basis is None else mode.among(basis))
        for each, basis, mode in zip(regressions, bases, modes, strict=True)
    ]


def _basis(regression: Regression) -> Array | None:
    """Return an orthonormal basis of the standard normal coefficients that events see, (P, R); None if they see all."""
    observed, beliefs = regression.observed, regression.beliefs
    if observed.basis is None or not regression.several:
        return None
    own, first = beliefs.basis_of(regression.deviation, observed.basis), beliefs.common(observed.free)
    basis = np.zeros((first + own.shape[0], first + own.shape[1]))
    basis[:first, :first], basis[first:, first:] = np.eye(first), own
    return basis


def _coefficients(regression: Regression, mode: Mode) -> Coefficients:
    """Return intercept and weights by the coefficients at a mode."""
    beliefs, deviation = regression.beliefs, regression.deviation
    values = beliefs.values(mode.coefficients, deviation, regression.observed.free)
    return Coefficients(values, mode.log_marginal_likelihood, mode, beliefs, deviation)
