"""The default pool where outcomes had no part in it: how far extremes are believed, what is open, and what to say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from opinionpool.believed import (
    ACCURACY,
    CALIBRATION,
    CORRELATION,
    LIMIT_CHANCES,
    LIMITS,
    SPREAD_CHANCES,
    SPREADS,
    Believed,
)
from opinionpool.errors import Note
from opinionpool.openweights import weight_beliefs
from opinionpool.regression import harmonic_mean
from opinionpool.uncertainty import Uncertainty


def believed_limit(believed: Believed) -> float:
    """How far extremes are believed: entirely where all else was assessed."""
    if believed.limit is not None:
        return believed.limit
    return np.inf if believed.assessed else harmonic_mean(LIMITS, LIMIT_CHANCES)


def believed_doubt(believed: Believed, d: int, *, options: bool) -> Uncertainty:
    """What is open about intercept and weights, for d = K - 1; nothing where all was assessed.

    Where events have options of their own there is no intercept.
    """
    n = len(believed)
    covariance = np.zeros((d + n, d + n))
    if not believed.assessed:
        beliefs = weight_beliefs(believed, believed.rho, 1 if options else d)
        if options:
            beliefs = replace(beliefs, intercept_spread=0.0)
        for apart, chance in zip(SPREADS, SPREAD_CHANCES, strict=True):
            root = beliefs.root(apart, d)
            covariance += chance * root @ root.T
    return Uncertainty(covariance)


def nothing_learned(resolved: bool, constant: bool, believed: Believed, silent: bool) -> Note:
    """Why outcomes had no part in the answer, and what it rests on."""
    what = "no resolved event has a forecast" if resolved else "no event is resolved"
    if constant:
        what = "whoever forecast resolved events always says the same"
    if constant and silent:
        return Note("nothing-learned", f"{what}, so nothing was learned, and the answers are the prior")
    if believed.assessed:
        text = "all was assessed, so nothing is learned and the weights follow from what was said, without an interval"
        return Note("assessed", text)
    if believed.stated:
        open_ = {
            "no bias": (believed.bias.worth == 0).any(),
            f"calibration {CALIBRATION:g}": (believed.calibration.worth == 0).any(),
            f"accuracy {ACCURACY:g}, which is an AUC of 0.84": (believed.accuracy.worth == 0).any(),
            f"correlation {CORRELATION:g}": believed.correlation is None and len(believed) > 1,
        }
        assumed = "; ".join(text for text, unsaid in open_.items() if unsaid)
        text = f"{what}, so the weights follow from what is believed"
        return Note("nothing-learned", text + f" and, where nothing was said, assumed: {assumed}" * bool(assumed))
    limit = 1.0 / (1.0 + np.exp(-harmonic_mean(LIMITS, LIMIT_CHANCES)))
    text = (
        f"{what}, so nothing was learned: the experts are assumed to be unbiased, about calibrated ({CALIBRATION:g}), "
        f"equally accurate, correlated at {CORRELATION:g}, and extreme statements are believed as far as {limit:.1%} "
        "where the prior is 50%"
    )
    return Note("nothing-learned", text)
