"""The linear pool: rule, fit and contributions (model.md, section 6)."""

from __future__ import annotations

from types import MappingProxyType
from typing import Unpack

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array
from opinionpool.errors import Note
from opinionpool.model.contrasts import AnswerParts, Contrasts
from opinionpool.pools.rule import (
    LEARNED_WEIGHTS,
    Parameters,
    Pool,
    Sample,
    Settings,
    Weights,
    apply_rule,
    check_shares,
    given_weights,
    shared_parts,
    weighted_sums,
)


class Linear(Pool):
    """LinOps (1): a weighted mean of probabilities."""

    title = "Linear pool"
    options = MappingProxyType({"weights": LEARNED_WEIGHTS})
    learns = weighs = True
    fixed_by = "weights"
    uses_prior = False
    scale = "probability"

    def pool(self, q: npt.ArrayLike, weights: npt.ArrayLike | None = None, **settings: Unpack[Settings]) -> Array:
        """LinOps (1): a weighted mean of probabilities.

        Parameters
        ----------
        q : array_like, shape (..., N), or (..., N, K)
        weights : array_like, shape (N,), optional
            At least 0, and one above it; their sum does not matter. Equal if not given. Where experts are missing,
            those present are renormalised; where all who are present have weight 0, they count equally.
        **settings : Settings

        Raises
        ------
        ArgumentError, ShapeError, ProbabilityError
            If a weight is negative or none positive, or arguments do not fit together or are out of range.

        Examples
        --------
        >>> float(Linear().pool([0.8, float("nan"), 0.6], [0.5, 0.3, 0.2]).round(5))
        0.74286
        """
        shares = None if weights is None else check_shares(weights)

        def rule(contrast: Contrasts) -> Array:
            return logodds.prior_log_ratios(weighted_sums(contrast.shares(shares), contrast.probabilities))

        return apply_rule(q, rule, shares, **settings)

    def fit(self, sample: Sample, weights: Weights | None) -> Parameters:
        """Weights by maximum likelihood on the simplex, renormalised over those present on each event."""
        n = len(sample.experts)
        if weights is not None:
            return {"weights": check_shares(given_weights(sample, weights))}
        if sample.nothing("the experts count equally"):
            return {"weights": np.full(n, 1.0 / n)}
        used = sample.answered & ~sample.constant
        if not used.any():
            sample.note_constant("as all who answered did, so the experts count equally")
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

    def parts(self, contrast: Contrasts, weights: Array | None = None) -> AnswerParts:
        """Shares of the answer."""
        return shared_parts(contrast, weights)
