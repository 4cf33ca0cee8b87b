"""What keeps one outcome from moving all answers: every event is also weak evidence that it is as was believed.

An outcome that was thought unlikely weighs most where the others say little, as after a hundred events that all went as
everybody expected: nothing but that one outcome then says how far forecasts can be relied on. So each event counts, by
a normal distribution of its log-ratios about those that are believed beforehand, which is like outcomes made up from a
simpler model (Huang, Stell, Rubin and Kou, PNAS 117, 2020, *catalytic priors*), but for its curvature: that of the
logarithmic loss vanishes for extreme answers, which are those that this is for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.logodds import softmax

# Each event says with this precision that its log-ratios are those of the mean coefficients, and the less the more
# events there are beside so many: differences between experts are learned a little later.
PRECISION, EVENTS = 0.005, 80.0
# An outcome tells p(1 − p) about the log-odds of its event. Where the believed p makes that less than this, the rest
# is taken to say what is believed of any panel; this too fades as events become many, and soon beyond hundreds, where
# extreme answers may be right and their outcomes together say so.
INFORMATION, INFORMED = 0.045, 400.0


@dataclass(frozen=True, eq=False)
class Anchor:
    """Normal distributions of the log-ratios of T events, weighted by their frequencies.

    Attributes
    ----------
    own : ndarray, shape (T,)
        Precision about the log-ratios of the mean coefficients.
    common : ndarray, shape (T,)
        Precision about those that are believed of any panel.
    distance : ndarray, shape (T, K - 1)
        How far the former are beyond the latter.
    """

    own: Array
    common: Array
    distance: Array

    @classmethod
    def at(cls, believed: Array, mean: Array, weight: Array) -> Anchor:
        """The anchor of events of some weight, from log-ratios (T, K - 1) believed of any panel, and the mean's.

        Examples
        --------
        >>> anchor = Anchor.at(np.array([[0.0], [6.0]]), np.array([[0.0], [7.0]]), np.ones(2))
        >>> anchor.own.round(4), anchor.common.round(4), anchor.distance.ravel()
        (array([0.0048, 0.0048]), array([0.    , 0.0421]), array([0., 1.]))
        """
        ratios = np.concatenate([np.zeros((len(believed), 1)), believed], axis=1)
        likeliest = softmax(ratios[:, 1:]).max(axis=1, initial=0.0)
        events = float(weight.sum())
        own = np.full(len(weight), PRECISION * (EVENTS / (EVENTS + events)) ** 2)
        fading = (INFORMED / (INFORMED + events)) ** 2 / (1.0 + (events / INFORMED) ** 4)
        common = fading * np.maximum(INFORMATION - likeliest * (1.0 - likeliest), 0.0)
        return cls(own * weight, common * weight, mean - believed)

    def among(self, rows: Index) -> Anchor:
        """That of some of the events."""
        return Anchor(self.own[rows], self.common[rows], self.distance[rows])
