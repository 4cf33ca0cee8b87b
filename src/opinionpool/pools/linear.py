"""The linear pool: rule, fit and contributions (model.md, section 6)."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from opinionpool.errors import Note
from opinionpool.pools.rule import LEARNED_WEIGHTS, Parameters, ProbabilityPool, check_shares
from opinionpool.pools.training import TrainingEvents, Weights


class Linear(ProbabilityPool):
    """Linear pool (1): weighted mean of probabilities, weights at least 0, renormalised over the experts present.

    Where all who are present have weight 0, they count equally.
    """

    title = "Linear pool"
    options = MappingProxyType({"weights": LEARNED_WEIGHTS})
    learns = weighs = True
    fixed_by = "weights"

    def fit(self, sample: TrainingEvents, weights: Weights | None) -> Parameters:
        """Weights by maximum likelihood on the simplex, renormalised over the experts present on each event."""
        n, equally = len(sample.experts), "the experts count equally"
        if weights is not None:
            return {"weights": check_shares(sample.given_weights(weights))}
        if sample.nothing(equally) or not (used := sample.informative(equally)).any():
            return {"weights": np.full(n, 1.0 / n)}
        from opinionpool.estimation.simplex import simplex_weights

        happened = sample.collect(lambda contrast, y: contrast.probabilities[np.arange(len(y)), :, y], n)
        fit = simplex_weights(happened[:, used], sample.weight, sample.present[:, used])
        # Who never answered counts as much as the others on average.
        found = np.where(sample.constant, 0.0, 1.0)
        found[used] = fit.weights * used.sum()
        sample.note_constant("and got weight 0")
        sample.note_unused(f"got weight 1/{int((~sample.constant).sum())}, as nothing speaks for or against")
        if not fit.converged:
            text = f"the weights of the linear pool may fall short of the best log score by {fit.gap:.2g} an event"
            sample.notes.append(Note("not-converged", text, serious=True))
        return {"weights": found / found.sum()}
