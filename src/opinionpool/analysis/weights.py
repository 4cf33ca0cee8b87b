"""Weights of a fitted pool with their credible intervals, and what one expert says, recalibrated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError
from opinionpool.learning.fitted import FittedPanel
from opinionpool.model.pooling import recalibrated
from opinionpool.pools.fitted_pool import Fitted


@dataclass(frozen=True, eq=False)
class WeightTable:
    """Weights of N experts, the largest first, and the ends of an interval of each by itself; NaN where unknown."""

    experts: tuple[str, ...]
    # weight, low, high: (N,)
    weight: Array
    low: Array
    high: Array
    level: float


def weight_table(state: Fitted, level: float = 0.9) -> WeightTable | None:
    """Table of a fit's weights with intervals; None if the fit has no weights."""
    if state.weights is None:
        return None
    weight = np.asarray(state.weights, dtype=np.float64)
    low, high = state.weight_interval(level)
    order = np.argsort(-weight, kind="stable")
    names = tuple(state.experts[i] for i in order.tolist())
    return WeightTable(names, weight[order], low[order], high[order], level)


def recalibrated_by(learned: FittedPanel, expert: int, q: npt.ArrayLike, prior: float) -> Array:
    """Recalibrated forecasts (14) of one expert of two classes, (P,): L* = L° + kappa (L - L° - b)."""
    if len(learned.panel.classes) != 2:
        raise ArgumentError(f"one curve is of two classes, and there are {len(learned.panel.classes)}")
    features, (floor, pool_floor, _) = learned.features, learned.panel.settings
    p, bias = logodds.class_probabilities(prior), np.ravel(features.bias[expert])[0]
    return recalibrated(np.asarray(q, np.float64), p, features.calibration[expert], bias, floor, pool_floor)
