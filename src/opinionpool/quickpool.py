"""Binary events that share one prior, pooled in blocks: the usual case, in few passes over what was said.

With every expert present the pooled log-odds are a constant and one product with the weights, L* = const + wᵀL.
Events with missing forecasts show as NaN and go the general way of `opinionpool.gaussian`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from opinionpool import logodds
from opinionpool.blockwise import Bounds, Floats, blocks_of, floored_log_odds, pieces, rows_of_block, within
from opinionpool.errors import ProbabilityError
from opinionpool.features import Parts
from opinionpool.gaussian import Settings, pooled, weights_for
from opinionpool.logodds import Array, check_probabilities
from opinionpool.stated import Stated
from opinionpool.threads import in_order

__all__ = ["Plan", "binary_forecasts", "one_number", "pool_alike"]


class Plan(NamedTuple):
    """What all events have in common.

    Attributes
    ----------
    parts : Parts
    bias : ndarray, shape (N, 1)
    settings : Settings
    weights : ndarray, shape (N,)
        With every expert present.
    total : float
        Their sum.
    offset : float
        wᵀb.
    """

    parts: Parts
    bias: Array
    settings: Settings
    weights: Array
    total: float
    offset: float

    @classmethod
    def of(cls, parts: Parts, bias: Array, settings: Settings) -> Plan:
        """The plan of a panel.

        Raises
        ------
        PanelError
            If its weights have no limit.
        """
        weights = weights_for(parts, np.ones((1, len(bias)), dtype=bool))[0]
        return cls(parts, bias, settings, weights, float(weights.sum()), float(weights @ bias[:, 0]))


class _Given(NamedTuple):
    """A prior, its log-odds, bounds of what is said, and the least and largest answer."""

    prior: Array
    reference: float
    bounds: Bounds
    low: float
    high: float


@lru_cache(maxsize=256)
def _given(prior: float, floor: float, pool_floor: float) -> _Given:
    p = logodds.class_probabilities(prior)
    floors = logodds.class_floors(pool_floor, p, 1.0)
    reference = float(logodds.prior_log_ratios(p)[0])
    return _Given(p, reference, Bounds.of(p, floor), float(floors[1]), float(1.0 - floors[0]))


@lru_cache(maxsize=256)
def _shift(base_rate: float | None, reference: float) -> float:
    if base_rate is None:
        return 0.0
    return float(logodds.prior_log_ratios(logodds.class_probabilities(base_rate, what="base rate"))[0]) - reference


def one_number(value: object) -> float | None:
    """A number that stands alone, None for anything else."""
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype == np.float64:
        return float(value)
    return value if isinstance(value, float) else None


def binary_forecasts(probabilities: object, experts: int) -> Floats | None:
    """The forecasts as an array, (..., N), not copied if they are one; None if they need a closer look."""
    if isinstance(probabilities, list):
        try:
            array: Floats = np.asarray(probabilities)
        except ValueError:
            return None
    elif isinstance(probabilities, np.ndarray) and not isinstance(probabilities, np.ma.MaskedArray):
        array = probabilities
    else:
        return None
    fits = array.ndim > 0 and array.shape[-1] == experts and array.size > 0
    return array if fits and array.dtype in (np.float64, np.float32) else None


def pool_alike(plan: Plan, q: Floats, prior: float, base_rate: float | None) -> Array:
    """Pooled probabilities (...) of forecasts (..., N).

    Raises
    ------
    ProbabilityError
        If a forecast is outside [0, 1], or prior or base rate outside (0, 1).
    """
    given = _given(prior, plan.settings.floor, plan.settings.pool_floor)
    shift = _shift(base_rate, given.reference)
    n = len(plan.weights)
    if q.size == n:
        rows = q.reshape(1, n)
        total = float(_log_odds(plan, given, rows, np.empty((1, n)))[0]) + shift
        if not math.isnan(total):
            p = 1.0 / (1.0 + math.exp(-total)) if total > -700.0 else 0.0
            return np.full(q.shape[:-1], min(max(p, given.low), given.high))[()]
    rows = q.reshape(-1, n)
    answers = np.empty(len(rows))

    def answer(piece: slice) -> None:
        buffer = np.empty((min(rows_of_block(n), piece.stop - piece.start), n))
        for block in blocks_of(piece, n):
            _answer(plan, given, shift, rows[block], answers[block], buffer)

    try:
        work = [*pieces(len(rows), n)]
        for _ in map(answer, work) if len(work) == 1 else in_order(answer, work):
            pass
    except ProbabilityError:
        check_probabilities(q)
        raise
    return answers.reshape(q.shape[:-1])


def _log_odds(plan: Plan, given: _Given, q: Floats, buffer: Array) -> Array:
    """Pooled log-odds without the shift, NaN where a forecast is missing or no probability."""
    said = floored_log_odds(q, given.bounds, buffer[: len(q)])
    if math.isinf(plan.settings.extremes.limit):
        return said @ plan.weights + (given.reference * (1.0 - plan.total) - plan.offset)
    said -= given.reference
    believed = plan.settings.extremes.believed(said[:, :, None])[:, :, 0]
    return np.asarray(believed @ plan.weights + (given.reference - plan.offset))


def _answer(plan: Plan, given: _Given, shift: float, q: Floats, answers: Array, buffer: Array) -> None:
    """Fill in the answers of a block of events."""
    total = _log_odds(plan, given, q, buffer)
    total += shift
    with np.errstate(over="ignore"):
        np.exp(np.negative(total, out=total), out=answers)
    answers += 1.0
    np.reciprocal(answers, out=answers)
    within(answers, given.low, given.high)
    gaps = np.flatnonzero(np.isnan(total))
    if len(gaps):
        t = len(gaps)
        prior, reference = np.broadcast_to(given.prior, (t, 2)), np.full((t, 1), given.reference)
        stated = Stated(check_probabilities(q[gaps]), prior, reference, (t,))
        answers[gaps] = pooled(plan.parts, plan.bias, stated, np.full((t, 1), shift), plan.settings)[:, 1]
