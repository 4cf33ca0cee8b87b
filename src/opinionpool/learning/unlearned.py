"""The default pool before any outcome: fits by beliefs only, and notes on what was assumed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from opinionpool.arrays import Array
from opinionpool.errors import Note
from opinionpool.learning.agreement import Agreement
from opinionpool.learning.constants import ACCURACY, CALIBRATION, CORRELATION
from opinionpool.learning.duplicates import Duplicates
from opinionpool.learning.hierarchy import MarginalFeatures, believed_features
from opinionpool.learning.laplace import prior_fit
from opinionpool.learning.members import Members
from opinionpool.learning.nodes import prior_nodes
from opinionpool.learning.posterior import Posterior, coefficients_of_all
from opinionpool.learning.prior import USUAL_LIMIT, Believed
from opinionpool.learning.topics import TopicEffects
from opinionpool.model.contrasts import Extremes
from opinionpool.model.features import Parts
from opinionpool.text import shown

# Of more experts than this, how sure their weights are is not kept: it would be an array of experts x experts.
MOST_UNCERTAIN = 1000
# Weights this small say nothing, and carry no intercept.
LEAST_WEIGHT = 1e-6
# So many experts are named with what agreement says of them.
MOST_NAMED = 8


@dataclass(frozen=True, eq=False)
class DefaultFit:
    """Fit of the default pool: the panel's parameters, posterior, other pools in the mixture, and notes."""

    parts: Parts
    bias: Array  # (N, K - 1)
    extremes: Extremes
    # Features of each expert from its own forecasts, extremes not moderated; if nothing was learned, believed ones.
    marginal: MarginalFeatures | None
    posterior: Posterior | None  # of intercept and weights; None for more than `MOST_UNCERTAIN` experts
    learned: bool  # whether outcomes were used
    notes: tuple[Note, ...] = ()
    members: Members | None = None  # None if beliefs are given, or events have options of their own
    topics: TopicEffects | None = None

    def with_duplicates(self, duplicates: Duplicates, believed: Believed) -> DefaultFit:
        """Return a fit for all experts, with the beliefs `believed`; here, a group of duplicates is one expert."""
        new, first, (n, d) = duplicates.new, duplicates.first, (len(duplicates.source), self.bias.shape[1])
        bias, centre, parts, marginal = believed.biases(d), self.extremes.centre, duplicates.parts(self.parts), None
        bias = np.where(new[:, None], bias - bias[first].sum(axis=0) / max(len(first), 1), 0.0)
        if self.marginal is not None:
            marginal = _as_believed(self.marginal.mapped(duplicates.rows), duplicates, believed)
        posterior, members = self.posterior, self.members and self.members.spread_over(duplicates)
        if posterior is not None:
            # With nobody who says anything, all weights are 0.
            empty = Posterior(np.ones(1), np.zeros((1, d + n)), np.zeros((1, d + n, d + n)))
            posterior = (posterior.with_duplicates(duplicates) if len(first) else empty).mixed_with(members)
        topics = self.topics and self.topics.spread_over(*coefficients_of_all(duplicates.source, d + len(first)))
        return replace(
            self,
            parts=_as_believed(parts, duplicates, believed),
            bias=duplicates.rows(self.bias) + bias,
            extremes=self.extremes if centre is None else replace(self.extremes, centre=duplicates.rows(centre) + bias),
            marginal=marginal,
            posterior=posterior,
            notes=duplicates.notes + self.notes,
            members=members,
            topics=topics,
        )


Features = TypeVar("Features", Parts, MarginalFeatures)


def _as_believed(features: Features, duplicates: Duplicates, believed: Believed) -> Features:
    """Return `features`; those of experts without forecasts are scaled by the prior beliefs about these experts."""
    if not duplicates.new.any():
        return features
    centre = believed.parts(believed.rho)
    return replace(
        features,
        contrast=duplicates.as_believed(features.contrast, centre.contrast),
        spread=duplicates.as_believed(features.spread, centre.spread),
    )


def assumed(believed: Believed, away: Array, *, options: bool, answers_only: bool = False) -> DefaultFit:
    """Return the default pool without outcomes; the believed prior has the log-ratios L° less `away`, (K - 1,)."""
    d = len(away)
    marginal = believed_features(believed, d) if believed.given else None
    bias, parts, posterior = believed.biases(d), believed.parts(believed.rho), None
    n = len(believed)
    if not believed.assessed and n:
        nodes = prior_nodes(believed, d, options=options)
        fit = prior_fit(nodes, covariances=not answers_only and n <= MOST_UNCERTAIN)
        parts = with_weights(parts, fit.mean[d:])
        posterior = None if fit.normals is None else Posterior.of(fit, nodes)
    elif n <= MOST_UNCERTAIN:
        posterior = Posterior(np.ones(1), np.zeros((1, d + n)), np.zeros((1, d + n, d + n)))
    bias = bias - away
    extremes = Extremes(believed_limit(believed), bias if bias.any() else None)
    if away.any():
        bias = bias + intercept_shares(parts.weights)[:, None] * away
    return DefaultFit(
        parts, bias, extremes, marginal, posterior, learned=False, members=None if options else Members.prior(believed)
    )


def intercept_shares(weights: Array) -> Array:
    """Biases b (N,) that act as an intercept of 1, Σ w_i b_i = 1 for `weights` w; 0 if all weights are about 0."""
    total, size = float(weights.sum()), float(weights @ weights)
    if size <= LEAST_WEIGHT**2:
        return np.zeros(len(weights))
    return np.asarray((total + weights) / (total**2 + size))


def with_weights(parts: Parts, weights: Array) -> Parts:
    """Return `parts` with contrasts that lead to the given `weights`, and the same covariance (paper, equation 10)."""
    return replace(parts, contrast=parts.spread * parts.dependence.times(parts.spread * weights) / 2.0)


def believed_limit(believed: Believed) -> float:
    """Limit to which extremes are moderated: the user's; without it, inf if all else is certain, else the default."""
    if believed.limit is not None:
        return believed.limit
    return np.inf if believed.assessed else USUAL_LIMIT


def nothing_learned(resolved: bool, constant: bool, believed: Believed, nobody: bool) -> Note:
    """Note for users on why nothing was learned from outcomes, and on what the answers assume."""
    what = "no resolved event has a forecast" if resolved else "no event is resolved"
    if constant:
        what = "every expert who forecast a resolved event always gave the same forecast"
    if constant and nobody:
        return Note("nothing-learned", f"{what}, so nothing was learned, and the answers are the prior")
    if believed.assessed:
        text = "all was assessed, so nothing is learned and the weights follow from the beliefs, without an interval"
        return Note("assessed", text)
    limit = 1.0 / (1.0 + np.exp(-USUAL_LIMIT))
    if believed.given:
        open_ = {
            "no bias": (believed.bias.worth == 0).any(),
            f"calibration {CALIBRATION:g}": (believed.calibration.worth == 0).any(),
            f"accuracy {ACCURACY:g} (an AUC of 0.84)": (believed.accuracy.worth == 0).any(),
            f"correlation {CORRELATION:g}": believed.correlation is None and len(believed) > 1,
            f"extremes moderated, to {limit:.1%} at most where the prior is 50%": believed.limit is None,
        }
        taken = "; ".join(text for text, missing in open_.items() if missing)
        text = f"{what}, so the weights follow from the beliefs"
        return Note("nothing-learned", text + f"; assumed where none is given: {taken}" * bool(taken))
    accurate = "equally accurate" if believed.agreement is None else "the more accurate the more they agree"
    text = (
        f"{what}, so nothing was learned: the experts are assumed to be unbiased, about calibrated ({CALIBRATION:g}), "
        f"{accurate}, correlated at {CORRELATION:g}, and extreme forecasts count as {limit:.1%} at most "
        "where the prior is 50%"
    )
    return Note("nothing-learned", text)


def agreement_note(agreement: Agreement, names: list[str]) -> Note:
    """Note for users on each expert's agreement with the others and the accuracy that it implies, best first."""
    order = np.argsort(-agreement.accuracy, kind="stable")
    each = [
        f"{shown(names[i])} {agreement.correlation[i]:.2f} (accuracy {agreement.accuracy[i]:.2f} of typical)"
        for i in order.tolist()
    ]
    more = f", and {len(each) - MOST_NAMED} more" if len(each) > MOST_NAMED else ""
    text = (
        f"agreement on {agreement.events:,.6g} events says who is likely to know more; correlation with the others' "
        f"mean: {', '.join(each[:MOST_NAMED])}{more}"
    )
    return Note("agreement", text, len(each))
