"""The default pool before any outcome: what is believed of a panel as it is, and what the answer says of that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opinionpool.arrays import Array
from opinionpool.errors import Note
from opinionpool.learning.agreement import Agreement
from opinionpool.learning.prior import (
    ACCURACY,
    CALIBRATION,
    CORRELATION,
    LIMIT_PROBABILITIES,
    LIMITS,
    SPREAD_PROBABILITIES,
    SPREADS,
    Believed,
    harmonic_mean,
)
from opinionpool.learning.shrinkage import (
    MarginalFeatures,
    believed_features,
)
from opinionpool.learning.topics import TopicEffects
from opinionpool.learning.uncertainty import Uncertainty
from opinionpool.learning.weight_beliefs import weight_beliefs
from opinionpool.model.contrasts import Extremes
from opinionpool.model.features import Parts
from opinionpool.text import shown

# Of more experts than this, how sure their weights are is not kept: it would be an array of experts x experts.
MOST_UNCERTAIN = 1000
# So many experts are named with what agreement says of them.
MOST_NAMED = 8


@dataclass(frozen=True, eq=False)
class DefaultFit:
    """A panel in parts.

    Attributes
    ----------
    parts : Parts
    bias : ndarray, shape (N, K - 1)
    extremes : Extremes
    marginal : MarginalFeatures or None
        What the data say of each expert by itself, extremes believed; if nothing was learned, what is believed of it.
    uncertainty : Uncertainty or None
        What is still open; None for more than `MOST_UNCERTAIN` experts.
    learned : bool
        Whether outcomes had a part in it.
    notes : tuple of Note
    topics : TopicEffects or None
        How topics differ, where that was learned together with the weights.
    """

    parts: Parts
    bias: Array
    extremes: Extremes
    marginal: MarginalFeatures | None
    uncertainty: Uncertainty | None
    learned: bool
    notes: tuple[Note, ...] = ()
    topics: TopicEffects | None = None


def assumed(believed: Believed, d: int, *, options: bool) -> DefaultFit:
    """What is believed, for d = K - 1."""
    marginal = believed_features(believed, d) if believed.given else None
    bias = believed.biases(d)
    return DefaultFit(
        believed.parts(believed.rho),
        bias,
        Extremes(believed_limit(believed), bias if bias.any() else None),
        marginal,
        None if len(believed) > MOST_UNCERTAIN else prior_uncertainty(believed, d, options=options),
        learned=False,
    )


def believed_limit(believed: Believed) -> float:
    """How far extremes are believed: entirely where all else was assessed."""
    if believed.limit is not None:
        return believed.limit
    return np.inf if believed.assessed else harmonic_mean(LIMITS, LIMIT_PROBABILITIES)


def prior_uncertainty(believed: Believed, d: int, *, options: bool) -> Uncertainty:
    """What is open about intercept and weights, for d = K - 1; nothing where all was assessed.

    Where events have options of their own there is no intercept.
    """
    n = len(believed)
    covariance = np.zeros((d + n, d + n))
    if not believed.assessed:
        beliefs = weight_beliefs(believed, believed.rho, d, options=options)
        for deviation, probability in zip(SPREADS, SPREAD_PROBABILITIES, strict=True):
            root = beliefs.root(deviation, d)
            covariance += probability * root @ root.T
    return Uncertainty(covariance)


def nothing_learned(resolved: bool, constant: bool, believed: Believed, nobody: bool) -> Note:
    """Why outcomes had no part in the answer, and what it rests on."""
    what = "no resolved event has a forecast" if resolved else "no event is resolved"
    if constant:
        what = "every expert who forecast a resolved event always gave the same forecast"
    if constant and nobody:
        return Note("nothing-learned", f"{what}, so nothing was learned, and the answers are the prior")
    if believed.assessed:
        text = "all was assessed, so nothing is learned and the weights follow from the beliefs, without an interval"
        return Note("assessed", text)
    limit = 1.0 / (1.0 + np.exp(-harmonic_mean(LIMITS, LIMIT_PROBABILITIES)))
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
    """What agreement says of each expert, best first."""
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
