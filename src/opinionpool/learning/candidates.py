"""What may be believed of weights: how far their sum may be off, and how far they differ; chosen by evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from opinionpool.arrays import Array
from opinionpool.estimation.coefficients import Coefficients, WeightBeliefs
from opinionpool.estimation.newton import posterior_probabilities
from opinionpool.estimation.regression import Observations, Regression, fit_batch
from opinionpool.learning.prior import (
    SPREAD_PROBABILITIES,
    SPREADS,
    UNLIKE_PROBABILITY,
    UNLIKE_WORTH,
)

# A candidate less probable than this is left out of the average, or of what something else is chosen by.
NEGLIGIBLE, MINOR = 4e-3, 0.05


def unlike_probability(events: float) -> float:
    """How probable a sum of weights that is nothing like what is believed is taken to be after so many events."""
    return UNLIKE_PROBABILITY / (1.0 + (UNLIKE_WORTH / events) ** 2)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Beliefs about weights that are averaged, C of them.

    Attributes
    ----------
    beliefs : tuple of two WeightBeliefs
        About the sum of the weights as it is believed to be, and as one that is nothing like it.
    kind, deviation : tuple of int and of float, length C
        Which of these, and how far weights differ.
    probability : ndarray, shape (C,)
        Beforehand.
    """

    beliefs: tuple[WeightBeliefs, WeightBeliefs]
    kind: tuple[int, ...]
    deviation: tuple[float, ...]
    probability: Array

    @classmethod
    def of(cls, beliefs: tuple[WeightBeliefs, WeightBeliefs], events: float) -> Candidates:
        """All that are believed possible once there are so many events."""
        several = len(SPREADS) if len(beliefs[0].mean) > 1 else 1
        unlike = unlike_probability(events)
        spreads = np.array(SPREAD_PROBABILITIES[:several])
        probability = np.concatenate([(1.0 - unlike) * spreads, unlike * spreads])
        return cls(beliefs, (0,) * several + (1,) * several, SPREADS[:several] * 2, probability)

    def fit(self, observed: Observations, starts: Sequence[Coefficients]) -> list[Coefficients]:
        """Return the fit of each, which begins at a start of its own, or at the only one that there is."""
        starts = starts if len(starts) > 1 else [starts[0]] * len(self.kind)
        return fit_batch(
            [
                Regression(observed, self.beliefs[k], deviation, start=start)
                for k, deviation, start in zip(self.kind, self.deviation, starts, strict=True)
            ]
        )

    def posterior(self, found: list[Coefficients]) -> Array:
        """Their probabilities given the outcomes, (C,)."""
        return posterior_probabilities([each.log_marginal_likelihood for each in found], self.probability)

    def mean(self, found: list[Coefficients]) -> Array:
        """Intercept and weights on average, (K - 1 + N,)."""
        return np.asarray(self.posterior(found) @ np.array([each.values for each in found]))

    def score(self, found: list[Coefficients]) -> float:
        """Log evidence of all together."""
        return float(np.logaddexp.reduce(np.log(self.probability) + [each.log_marginal_likelihood for each in found]))

    def kept(self, found: list[Coefficients], least: float = NEGLIGIBLE) -> tuple[Candidates, list[Coefficients]]:
        """Those that are more probable than this, and their fits."""
        which = np.flatnonzero(self.posterior(found) > least).tolist()
        some = replace(
            self,
            kind=tuple(self.kind[i] for i in which),
            deviation=tuple(self.deviation[i] for i in which),
            probability=self.probability[which],
        )
        return some, [found[i] for i in which]

    def roots(self, d: int) -> list[Array]:
        """Roots of their covariances of intercept and weights, for d = K - 1."""
        return [self.beliefs[k].root(deviation, d) for k, deviation in zip(self.kind, self.deviation, strict=True)]
