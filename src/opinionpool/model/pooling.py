"""Weights and contributions of a Gaussian panel (10), (11), for whichever experts are present."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from opinionpool import logodds
from opinionpool.arrays import Array, Floats, Index, Mask, has_boolean
from opinionpool.blocks import Bounds, blocks_of, floored_log_odds, in_order, pieces, rows_of_block, within
from opinionpool.errors import ProbabilityError
from opinionpool.logodds import FLOOR, POOL_FLOOR, check_probabilities
from opinionpool.model.contrasts import Batch, Extremes, Rows, blocks, contrasts, even_share
from opinionpool.model.correlation import Dependence
from opinionpool.model.features import Parts

# Experts up to whom numbers are quicker than arrays, log-odds that overflow nothing, priors that are remembered.
FEW, FAR, PRIORS = 48, 150.0, 256


class Settings(NamedTuple):
    """How statements are taken: the floors, and how far extremes are believed."""

    floor: float = FLOOR
    pool_floor: float = POOL_FLOOR
    extremes: Extremes = Extremes()

    def contrasts(self, batch: Batch, rows: Rows = slice(None)) -> Array:
        """L − L° of some events as far as extremes count, NaN where missing, (T, N, K - 1)."""
        absent = logodds.no_options(batch.prior[rows][:, None, :])
        return self.extremes.believed(batch.contrasts(rows, self.floor), absent)


class Solver(Protocol):
    """How those present weigh: `Parts` of the class-symmetric model, `Discriminant` of the full one."""

    @property
    def informative(self) -> Mask:
        """False for experts who say nothing, (N,)."""

    def weights_for(self, present: Mask) -> Array:
        """Weights of the exact sub-panels of those present, (T, N), 0 where absent (model.md, section 2.3)."""

    def cell_weights(self, event: Index, expert: Index, events: int) -> Array | None:
        """The same, forecast by forecast of informative experts, (M,); None where this takes a matrix."""

    def added(self, debiased: Array) -> Array:
        """What contrasts (T, N, K - 1), NaN where missing, add to the log-ratios, in the same shape; 0 there."""

    def drawn(self, outcomes: Index, classes: int, rng: np.random.Generator) -> Array:
        """Contrasts (T, N, K - 1) without bias, given the outcomes (T,)."""

    def subset(self, positions: Index) -> Self:
        """The same among some of the experts."""


def pooled(solver: Solver, bias: Array, batch: Batch, shift: Array, settings: Settings) -> Array:
    """Probabilities of the classes, (T, K), from what experts add to L° and a shift."""
    answers = np.empty(batch.prior.shape)
    for rows in blocks(batch):
        ratios = batch.reference[rows] + _added(solver, bias, batch, rows, settings).sum(axis=1) + shift[rows]
        answers[rows] = logodds.pooled_probabilities(ratios, batch.prior[rows], settings.pool_floor)
    return answers


def recalibrated(
    q: Array, prior: Array, calibration: Array, bias: Array, floor: float = FLOOR, pool_floor: float = POOL_FLOOR
) -> Array:
    """Binary forecasts (...) debiased and recalibrated, (...): L° + kappa (L − L° − b), equation (14)."""
    reference = logodds.prior_log_ratios(prior)
    beyond = contrasts(q, prior, floor, reference) - np.asarray(bias)[..., None]
    updated = reference + np.asarray(calibration)[..., None] * beyond
    return np.asarray(logodds.pooled_probabilities(updated, prior, pool_floor)[..., 1])


def contributions(solver: Solver, bias: Array, batch: Batch, settings: Settings) -> Array:
    """What each expert adds to the log-ratios of all events, 0 where missing, (T, N, K - 1)."""
    added = np.empty((len(batch.prior), len(bias), batch.classes - 1))
    for rows in blocks(batch):
        added[rows] = _added(solver, bias, batch, rows, settings)
    return added


def _added(solver: Solver, bias: Array, batch: Batch, rows: slice, settings: Settings) -> Array:
    return solver.added(settings.contrasts(batch, rows) - bias)


class Plan(NamedTuple):
    """What all events have in common."""

    parts: Parts
    bias: Array  # (N, 1)
    settings: Settings
    weights: Array  # (N,); with every expert present
    total: float  # their sum
    offset: float  # wᵀb
    singly: dict[float, _Singly | None]  # by prior, what one event takes; None where arrays are better

    @classmethod
    def of(cls, parts: Parts, bias: Array, settings: Settings) -> Plan:
        """The plan of a panel.

        Raises
        ------
        PanelError
            If its weights have no limit.
        """
        weights = parts.weights_for(np.ones((1, len(bias)), dtype=bool))[0]
        return cls(parts, bias, settings, weights, float(weights.sum()), float(weights @ bias[:, 0]), {})


class _Singly(NamedTuple):
    """What the log-odds of one event are summed up from, forecast by forecast: arrays of few numbers take longer."""

    start: float
    even: float  # odds of what extremes are mixed with, see `Extremes`
    cells: tuple[tuple[float, float, float], ...]  # weight; odds of the prior and of the centre, and of both and even
    odds: tuple[float, float]  # the least and the largest
    low: float  # the probabilities with these odds
    high: float

    @classmethod
    def of(cls, plan: Plan, given: _Given) -> _Singly | None:
        """The same for a panel and a prior; None for many experts, and for numbers that are very far out."""
        extremes, n, exp = plan.settings.extremes, len(plan.weights), math.exp
        share = even_share(extremes.limit)
        centre = np.zeros(n)
        if extremes.centre is not None and share:
            centre = extremes.centre[:, 0]
        far = max(abs(given.reference), -given.bounds.low, given.bounds.high, np.abs(centre).max(initial=0.0))
        if n > FEW or far > FAR:
            return None
        even, own = share / (1.0 - share), np.exp(given.reference + centre)
        cells = zip(plan.weights.tolist(), own.tolist(), (even * own).tolist(), strict=True)
        start = given.reference - plan.offset + float(plan.weights @ centre)
        low, high = (1.0 / (1.0 + exp(-end)) for end in given.bounds)
        return cls(start, even, tuple(cells), (exp(given.bounds.low), exp(given.bounds.high)), low, high)

    def log_odds(self, q: Floats) -> float:
        """Of forecasts by all experts; NaN where one is missing or no probability."""
        total, log, even, low, high = self.start, math.log, self.even, self.low, self.high
        for (weight, own, mixed), p in zip(self.cells, q.ravel().tolist(), strict=True):
            if low < p < high:
                odds = p / (1.0 - p)
            elif 0.0 <= p <= 1.0:
                odds = self.odds[p >= high]
            else:
                return math.nan
            # How far the contrast from the centre is believed is the logarithm of this.
            total += weight * log((odds + mixed) / (even * odds + own))
        return total


class _Given(NamedTuple):
    """A prior, its log-odds, bounds of the forecasts, and the least and largest answer."""

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
    """A single number, None for anything else."""
    if type(value) is np.ndarray and value.ndim == 0 and value.dtype == np.float64:
        return float(value)
    return value if isinstance(value, float) else None


def binary_forecasts(probabilities: object, experts: int) -> Floats | None:
    """The forecasts as an array, (..., N), not copied if they are one; None if they need a closer look."""
    if isinstance(probabilities, list):
        if has_boolean(probabilities):
            return None
        try:
            array: Floats = np.asarray(probabilities)
        except ValueError:
            return None
    elif isinstance(probabilities, np.ndarray) and not isinstance(probabilities, np.ma.MaskedArray):
        array = probabilities
    else:
        return None
    fits = array.ndim > 0 and array.shape[-1] == experts and array.size > 0
    return array if fits and array.dtype.char in "df" else None


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
        total = shift + _one_event(plan, given, prior, q)
        if not math.isnan(total):
            p = 1.0 / (1.0 + math.exp(-total)) if total > -700.0 else 0.0
            p = min(max(p, given.low), given.high)
            one: Any = np.float64(p) if q.ndim == 1 else np.full(q.shape[:-1], p)
            return one  # type: ignore[no-any-return]
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


def _one_event(plan: Plan, given: _Given, prior: float, q: Floats) -> float:
    """What `_log_odds` gives for one event."""
    if prior not in plan.singly:
        if len(plan.singly) >= PRIORS:
            plan.singly.clear()
        plan.singly[prior] = _Singly.of(plan, given)
    singly = plan.singly.get(prior)
    if singly is None:
        return float(_log_odds(plan, given, q.reshape(1, -1), np.empty((1, q.size)))[0])
    return singly.log_odds(q)


def _log_odds(plan: Plan, given: _Given, q: Floats, buffer: Array) -> Array:
    """Pooled log-odds without the shift, NaN where a forecast is missing or no probability."""
    forecast = floored_log_odds(q, given.bounds, buffer[: len(q)])
    if math.isinf(plan.settings.extremes.limit):
        return forecast @ plan.weights + (given.reference * (1.0 - plan.total) - plan.offset)
    forecast -= given.reference
    believed = plan.settings.extremes.believed(forecast[:, :, None])[:, :, 0]
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
        batch = Batch(check_probabilities(q[gaps]), prior, reference, (t,))
        answers[gaps] = pooled(plan.parts, plan.bias, batch, np.full((t, 1), shift), plan.settings)[:, 1]


def fill_missing(contrasts: Array, spread: Array, dependence: Dependence) -> Array:
    """E[C | the contrasts present] under covariance Sigma alone, whatever the outcome.

    With weights w for the whole panel, w'E[C | C_S] is the pool of the sub-panel S, whose weights are
    2 Sigma_SS⁻¹ mu_S, for mu = Sigma w / 2. So a regression on these learns weights that hold for every sub-panel;
    nothing is made up that the exact sub-panel does not imply. That is so for contrasts without bias. An intercept that
    stands for a bias common to all counts in full in the regression, and in the sub-panel only with the sum of its
    weights; with forecasts missing, the two agree the better the less of such a bias is left.

    Parameters
    ----------
    contrasts : ndarray, shape (T, N, K - 1)
        NaN where missing.
    spread : ndarray, shape (N,)
        sigma of the contrasts, above 0.
    dependence : Dependence
        Their correlation.
    """
    present = ~np.isnan(contrasts[..., 0])
    if present.all():
        return contrasts
    scaled = np.where(present[..., None], contrasts, 0.0) / spread[:, None]
    full = np.stack([dependence.expected(column, present) for column in np.moveaxis(scaled, 2, 0)], axis=2)
    return np.asarray(np.where(present[..., None], contrasts, full * spread[:, None]))


def fill_as_expected(contrasts: Array, parts: Parts) -> Array:
    """The same under the covariance of any panel, whoever says nothing missing everywhere, (T, N, K - 1)."""
    informative = parts.informative
    if informative.all():
        return fill_missing(contrasts, parts.spread, parts.dependence)
    known = np.flatnonzero(informative)
    full = np.zeros_like(contrasts)
    if not len(known):
        return full
    full[:, known] = fill_missing(contrasts[:, known], parts.spread[known], parts.dependence.subset(known))
    return full
