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
    """Weights of N experts, the largest first.

    Attributes
    ----------
    experts : tuple of str
    weight : ndarray, shape (N,)
    low, high : ndarray, shape (N,)
        Between what each weight lies; NaN where that is not known.
    level : float
        Of these intervals, each by itself.
    """

    experts: tuple[str, ...]
    weight: Array
    low: Array
    high: Array
    level: float


def weight_table(state: Fitted, level: float = 0.9) -> WeightTable | None:
    """The weights that a pool learned; None if it has none.

    Examples
    --------
    >>> from opinionpool.forecasts import Forecasts
    >>> from opinionpool.learning.learn import learn
    >>> q = [[0.2, 0.5], [0.3, 0.6], [0.6, 0.3], [0.4, 0.7], [0.7, 0.2], [0.8, 0.4]]
    >>> table = weight_table(learn(Forecasts.from_array(q, [0, 0, 0, 1, 1, 1])))
    >>> table.experts, bool((table.low < table.weight).all())
    (('expert_1', 'expert_2'), True)
    """
    if state.weights is None:
        return None
    weight = np.asarray(state.weights, dtype=np.float64)
    low, high = weight_interval(state, level)
    order = np.argsort(-weight, kind="stable")
    return WeightTable(
        experts=tuple(state.experts[i] for i in order.tolist()),
        weight=weight[order],
        low=low[order],
        high=high[order],
        level=level,
    )


def weight_interval(state: Fitted, level: float = 0.9) -> tuple[Array, Array]:
    """Between what the weights of N experts lie, each by itself, (N,) twice; NaN where that is not known."""
    if isinstance(state, FittedPanel):
        return state.weight_interval(level)
    unknown = np.full(len(state.experts), np.nan)
    return unknown, unknown


def recalibrated_by(learned: FittedPanel, expert: int, q: npt.ArrayLike, prior: float) -> Array:
    """The recalibrated forecast of one expert (14), by what the data say of it: L* = L° + kappa (L - L° - b).

    Parameters
    ----------
    learned : FittedPanel
        Of two classes.
    expert : int
        Its position.
    q : array_like, shape (P,)
        Forecast probabilities.
    prior : float

    Returns
    -------
    ndarray, shape (P,)

    Examples
    --------
    >>> from opinionpool.forecasts import Forecasts
    >>> from opinionpool.learning.learn import learn
    >>> f = Forecasts.from_array([[0.2], [0.3], [0.6], [0.4], [0.7], [0.8]], [0, 0, 0, 1, 1, 1])
    >>> recalibrated_by(learn(f, prior=0.5, beliefs=None), 0, [0.5, 0.7], prior=0.5).round(4)
    array([0.5   , 0.7724])
    """
    if len(learned.panel.classes) != 2:
        raise ArgumentError(f"one curve is of two classes, and there are {len(learned.panel.classes)}")
    features = learned.panel if learned.marginal is None else learned.marginal
    floor, pool_floor, _ = learned.panel.settings
    p, bias = logodds.class_probabilities(prior), np.ravel(features.bias[expert])[0]
    return recalibrated(np.asarray(q, np.float64), p, features.calibration[expert], bias, floor, pool_floor)
