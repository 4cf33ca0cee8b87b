"""What a default fit leaves open: among candidates, by alternatives to them, and by how far extremes are believed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array
from opinionpool.estimation.coefficients import Coefficients, covariance_rows, left_open
from opinionpool.estimation.likelihood import softmax
from opinionpool.estimation.regression import Observations
from opinionpool.learning.candidates import Candidates
from opinionpool.learning.uncertainty import OtherLimits, OtherSums, Uncertainty

# Values that are looked at: so many, and so many standard deviations to both sides, the closer the nearer. Of a normal
# posterior they give the variance of either half to 1%.
VALUES, REACH, CLOSENESS = 15, 8.0, 3.0
# A value less probable than this is left out.
LEAST = 1e-4


class Sums(NamedTuple):
    """Coefficients along the sum of the weights, M values of it."""

    values: Array  # (M, K - 1 + N); intercept and weights
    probability: Array  # (M,)


def along_sum(observed: Observations, found: Coefficients) -> Sums:
    """Return the posterior of the sum as weights move in proportion, all else being most probable given the sum."""
    covariance, d = found.mode.covariance, observed.free
    error = np.sqrt(float(covariance[0, 0]))
    direction = covariance[:, 0] / error
    step = REACH * np.sinh(np.linspace(-CLOSENESS, CLOSENESS, VALUES)) / np.sinh(CLOSENESS)
    along = found.root @ direction
    theta = found.mode.coefficients + step[:, None] * direction
    start, slope = (observed.contributions(each) for each in (found.values, along))
    ratios = (observed.offset + start).T + step[:, None, None] * slope.T
    happened = observed.outcomes == np.arange(1, d + 1)[:, None]
    likelihood = -softmax(ratios, happened)[0] @ observed.weight
    log_density = likelihood - (theta**2).sum(axis=1) / 2.0
    density = np.exp(log_density - log_density.max()) * np.gradient(step)
    kept = density > LEAST * density.sum()
    return Sums(found.values + step[kept, None] * along, density[kept] / density[kept].sum())


def given_sum(found: Coefficients) -> Array:
    """Covariance of intercept and weights given the sum, as they move in proportion, (K - 1 + N, K - 1 + N)."""
    covariance = found.mode.covariance
    given = covariance[1:, 1:] - np.outer(covariance[1:, 0], covariance[1:, 0]) / covariance[0, 0]
    # As the product of rows no variance is below 0, however little is left.
    rows = covariance_rows(given) @ found.root[:, 1:].T
    return np.asarray(rows.T @ rows)


class Average(NamedTuple):
    """Coefficients of several candidates, and what each counts for."""

    found: list[Coefficients]
    share: Array

    @property
    def mean(self) -> Array:
        """Intercept and weights, (K - 1 + N,)."""
        return np.asarray(self.share @ np.array([each.values for each in self.found]))

    def uncertainty(self, candidates: Candidates, observed: Observations) -> Uncertainty:
        """What is open about them; `observed` is what they are fits of."""
        mean, unlike = self.mean, np.array(candidates.kind) == 1
        covariance = np.zeros((len(mean), len(mean)))
        like = float(self.share[~unlike].sum())
        for share, each in zip(self.share[~unlike], self._some(~unlike), strict=True):
            off = each.values - mean
            covariance += share / like * (each.covariance() + np.outer(off, off))
        if not unlike.any():
            return Uncertainty(covariance)
        other = _other_sums(observed, self._some(unlike), self.share[unlike], mean)
        return Uncertainty(covariance, sums=((other,),))

    def _some(self, which: Array) -> list[Coefficients]:
        return [self.found[i] for i in np.flatnonzero(which).tolist()]


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Coefficients if weights are equal, for some beliefs, and how probable each is.

    Attributes
    ----------
    found : list of Coefficients
        Of the last one, the sum of the weights is nothing like what is believed.
    probability : ndarray
    observed : Observations
        What they are fits of.
    """

    found: list[Coefficients]
    probability: Array
    observed: Observations

    def beyond(self, open_: Uncertainty, answer: Coefficients, share: float) -> Uncertainty:
        """With what they leave open beyond the answer if weights are equal; of the others `share` of what they do."""
        rows = left_open(answer, self.found[:-1], self.probability[:-1])
        other = _other_sums(self.observed, self.found[-1:], self.probability[-1:], answer.values)
        return replace(open_, covariance=open_.covariance + share * rows.T @ rows, sums=(*open_.sums, (other,)))


def _other_sums(observed: Observations, found: list[Coefficients], probability: Array, answer: Array) -> OtherSums:
    """How the sum may be anything, by fits that differ in how far weights do: along the most probable one's sums."""
    total, best = float(probability.sum()), found[int(probability.argmax())]
    share, values = probability / total, np.array([each.values for each in found])
    mean = share @ values
    sums = along_sum(observed, best)
    moves = np.sqrt(sums.probability)[:, None] * (sums.values + (mean - best.values - answer))
    covariance = np.einsum("s,si,sj->ij", share, values - mean, values - mean)
    for part, each in zip(share, found, strict=True):
        covariance += part * given_sum(each)
    return OtherSums(min(total, 1.0), moves, covariance)


def with_limits(
    open_: Uncertainty, answer: Array, limits: tuple[float, ...], probability: Array, found: list[Array]
) -> Uncertainty:
    """With what is open of extremes: intercept and weights of the answer and with each limit, (K - 1 + N,).

    The answer's limit is the harmonic mean, and its missing forecasts are filled in as is known only then. What that
    changes is no part of what is open: coefficients at its limit are those of the polynomial in the limit's inverse.
    """
    if len(limits) == 1:
        return open_
    inverse, each = 1.0 / np.array(limits), np.array(found)
    at, powers = float(probability @ inverse), np.arange(len(limits))
    each += answer - np.linalg.solve(inverse ** powers[:, None], at**powers) @ each
    return replace(open_, limits=(OtherLimits(np.array(limits), probability, np.array([answer, *each])),))
