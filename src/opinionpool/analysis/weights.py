"""Weights of a fitted pool with their credible intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opinionpool.arrays import Array
from opinionpool.pools.fitted_pool import Fitted


@dataclass(frozen=True, eq=False)
class WeightTable:
    """Weights of N experts, the largest first, and bounds of each weight's interval; NaN where unknown."""

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
