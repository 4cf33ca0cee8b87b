"""Calibration and discrimination of binary forecasts.

`reliability_table` compares mean forecasts with frequencies, `decompose` splits a mean score into miscalibration,
discrimination and uncertainty, `auc` is the area under the ROC curve. Only resolved events with a forecast are used;
a weight is the number of times that an event counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from opinionpool.arguments import number, one_of
from opinionpool.arrays import Array, Index, as_numbers
from opinionpool.display import Tabular
from opinionpool.errors import ArgumentError, LearningError, ShapeError
from opinionpool.forecasts import Forecasts
from opinionpool.logodds import POOL_FLOOR, check_floor
from opinionpool.scoring.scores import binary_events, brier_score, log_loss

_ENOUGH = 5.0  # events of either outcome to be expected in a bin, the usual limit of a comparison of counts
# Points at which curve and band are evaluated, and simulations of the outcomes.
POINTS, DRAWS = 60, 200
TENTHS = 10
SEED = 0


@dataclass(frozen=True, eq=False)
class Groups:
    """G groups of events with similar forecasts, in increasing order of the forecasts."""

    # low, high: (G,); the smallest and the largest forecast in each group
    low: Array
    high: Array
    count: Array  # (G,); sum of the events' weights
    # forecasts, outcomes: (G,); weighted sums over the events of a group
    forecasts: Array
    outcomes: Array

    @property
    def forecast(self) -> Array:
        """Mean forecast of each group, (G,); exactly the forecast where all in the group are equal."""
        return np.clip(self.forecasts / self.count, self.low, self.high)

    @property
    def frequency(self) -> Array:
        """Mean outcome of each group, (G,)."""
        return np.asarray(self.outcomes / self.count)

    def merged(self, starts: Index) -> Groups:
        """Return fewer groups: a group for all groups from one position in `starts` (increasing) to the next."""
        ends = np.append(starts[1:], len(self.low)) - 1
        return Groups(
            low=self.low[starts],
            high=self.high[ends],
            count=np.add.reduceat(self.count, starts),
            forecasts=np.add.reduceat(self.forecasts, starts),
            outcomes=np.add.reduceat(self.outcomes, starts),
        )


def tied(p: Array, y: Array, weight: Array) -> Groups:
    """Return one group for each distinct forecast, from forecasts `p`, outcomes `y` and positive weights, (T,) each."""
    order = np.argsort(p)
    p = p[order]
    each = Groups(low=p, high=p, count=weight[order], forecasts=p * weight[order], outcomes=(y * weight)[order])
    return each.merged(changes(p))


def changes(values: npt.NDArray[np.generic]) -> Index:
    """Return the position at which each run of equal `values` starts, (G,)."""
    return np.flatnonzero(np.append(True, values[1:] != values[:-1]))


def isotonic(groups: Groups) -> Groups:
    """Return `groups` merged until frequencies increase strictly: the level sets of the isotonic regression.

    Among all non-decreasing functions of the forecast, these frequencies minimise every proper score of the outcomes
    (Dimitriadis, Gneiting & Jordan 2021).
    """
    from scipy.optimize import isotonic_regression

    groups = groups.merged(isotonic_regression(groups.frequency, weights=groups.count).blocks[:-1])
    while True:
        # Levels that are equal but for rounding are one.
        level = groups.frequency
        starts = np.flatnonzero(np.append(True, level[1:] > level[:-1]))
        if len(starts) == len(level):
            return groups
        groups = groups.merged(starts)


@dataclass(frozen=True)
class Decomposition:
    """Mean score, equal to miscalibration - discrimination + uncertainty. Lower scores are better.

    Attributes
    ----------
    score : float
        Mean score of the forecasts.
    miscalibration : float
        Reduction of the score by the best increasing recalibration, 0 or more.
    discrimination : float
        Score of always forecasting the overall frequency less that of the recalibrated forecasts, 0 or more.
    uncertainty : float
        Mean score of always forecasting the overall frequency.
    count : float
        Sum of the events' weights.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    count: float


@dataclass(frozen=True)
class Area:
    """Area under the ROC curve: probability that a forecast is higher if the event happens than if it does not.

    Attributes
    ----------
    area : float
        1/2 if forecasts are independent of outcomes, 1 if they separate the outcomes.
    standard_error : float
        By DeLong, DeLong & Clarke-Pearson (1988); NaN with fewer than two events of an outcome, or an area of exactly
        0 or 1.
    happened, failed : float
        Sums of the weights of events that happened, and that did not.
    """

    area: float
    standard_error: float
    happened: float
    failed: float


@dataclass(frozen=True, eq=False)
class Reliability(Tabular):
    """Mean forecasts and frequencies of outcomes in B bins of events.

    Attributes
    ----------
    low, high : ndarray, shape (B,)
        Smallest and largest forecast in the bin.
    forecast, frequency, count : ndarray, shape (B,)
        Mean forecast, share that happened, and number of events.
    interval_low, interval_high : ndarray, shape (B,)
        Wilson interval of the frequency, for each bin by itself.
    too_few : ndarray of bool, shape (B,)
        True if there are too few events to judge: the interval contains the mean forecast, and the expected number of
        events of one of the outcomes is below five.
    level : float
        Confidence level of the intervals.
    """

    low: Array
    high: Array
    forecast: Array
    frequency: Array
    count: Array
    interval_low: Array
    interval_high: Array
    too_few: npt.NDArray[np.bool_]
    level: float

    @property
    def gap(self) -> float:
        """Mean absolute difference of forecast and frequency over events ("expected calibration error")."""
        return float(np.average(np.abs(self.forecast - self.frequency), weights=self.count))

    def _table(self) -> dict[str, list[Any]]:
        return {each.name: getattr(self, each.name).tolist() for each in fields(self) if each.name != "level"}


def reliability_table(
    p: npt.ArrayLike, y: npt.ArrayLike, level: float = 0.95, sample_weight: npt.ArrayLike | None = None
) -> Reliability:
    """Return mean forecasts and frequencies of outcomes by bins of events, with counts and intervals.

    Bins are the level sets of the isotonic regression of outcomes on forecasts, without a number of bins to choose
    (Dimitriadis, Gneiting & Jordan 2021); bins of equal widths or sizes are those of
    `sklearn.calibration.calibration_curve`. Equal forecasts are never split between bins.

    Parameters
    ----------
    p, y : array_like
        Forecasts, (T,) or (T, 2), and class numbers, (T,); NaN where there is none.
    level : float
        Confidence level of the intervals. As outcomes determine the bins, 95% intervals contain the mean forecast in
        92% to 99% of the bins in simulations of calibrated forecasts.
    sample_weight : array_like, shape (T,), optional
        Number of times that each event counts.

    Raises
    ------
    ArgumentError
        If the level is out of range.
    LearningError
        If no event can be judged.

    Examples
    --------
    >>> table = reliability_table([0.2, 0.3, 0.7, 0.7], [0, 1, 0, 1])
    >>> table.low.tolist(), table.forecast.round(3).tolist(), table.frequency.tolist(), table.count.tolist()
    ([0.2, 0.3], [0.2, 0.567], [0.0, 0.6666666666666666], [1.0, 3.0])
    """
    level = number(level, "level", 0, 1, between=True)
    groups = isotonic(tied(*binary_events(p, y, sample_weight)))
    interval_low, interval_high = wilson_interval(groups.outcomes, groups.count, level)
    forecast = groups.forecast
    inside = (interval_low <= forecast) & (forecast <= interval_high)
    too_few = inside & (groups.count * np.minimum(forecast, 1 - forecast) < _ENOUGH)
    means = forecast, groups.frequency, groups.count
    return Reliability(groups.low, groups.high, *means, interval_low, interval_high, too_few, level)


def wilson_interval(happened: Array, count: Array, level: float = 0.95) -> tuple[Array, Array]:
    """Return the confidence interval of a probability after `happened` of `count` events (Wilson 1927).

    The interval has a positive width even if all events or no events happened.

    Examples
    --------
    >>> low, high = wilson_interval(np.array([3.0]), np.array([3.0]))
    >>> low.round(4), high
    (array([0.4385]), array([1.]))
    """
    from statistics import NormalDist  # not at the top: slow to import

    level = number(level, "level", 0, 1, between=True)
    happened, count = as_numbers(happened, "happened", ArgumentError), as_numbers(count, "count", ArgumentError)
    if happened.shape != count.shape:
        raise ShapeError(f"happened and count must have one shape, not {happened.shape} and {count.shape}")
    wrong = ~((happened >= 0) & (happened <= count) & (count > 0) & np.isfinite(count))
    if wrong.any():
        first = happened[wrong].flat[0], count[wrong].flat[0]
        raise ArgumentError(
            f"happened must lie from 0 to count, and count above 0, and they are {first[0]:g} and {first[1]:g}"
        )
    z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2
    failed = count - happened
    centre = (happened + z2 / 2) / (count + z2)
    half = np.sqrt(z2 * (happened * failed / count + z2 / 4)) / (count + z2)
    return np.where(happened > 0, centre - half, 0.0), np.where(failed > 0, centre + half, 1.0)


def decompose(
    p: npt.ArrayLike,
    y: npt.ArrayLike,
    score: Literal["brier", "log"] = "brier",
    sample_weight: npt.ArrayLike | None = None,
    floor: float = POOL_FLOOR,
) -> Decomposition:
    """Return the mean Brier score or log loss as miscalibration - discrimination + uncertainty.

    Forecasts are recalibrated by isotonic regression on the same outcomes, without bins to choose, so that
    miscalibration and discrimination are 0 or more and the sum is exact (Dimitriadis, Gneiting & Jordan 2021).

    Parameters
    ----------
    p, y : array_like
        Forecasts, (T,) or (T, 2), and class numbers, (T,); NaN where there is none.
    score : {"brier", "log"}
        `brier_score`, or `log_loss` in nats.
    sample_weight : array_like, shape (T,), optional
        Frequencies.
    floor : float
        For the log loss, least probability of either outcome, applied before recalibration. Recalibrated forecasts of
        0 and 1 need no floor, as all their events had the forecast outcome.

    Raises
    ------
    ArgumentError
        If there is no such score.
    LearningError
        If no event can be judged.

    Examples
    --------
    >>> parts = decompose([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> round(parts.score, 3), round(parts.miscalibration, 3), parts.discrimination, parts.uncertainty
    (0.2, 0.075, 0.125, 0.25)
    """
    one_of(score, "score", ("brier", "log"))
    check_floor(floor, "floor")
    forecasts, outcomes, weight = binary_events(p, y, sample_weight)
    each = log_loss(forecasts, outcomes, floor) if score == "log" else brier_score(forecasts, outcomes)
    if score == "log":
        forecasts = np.clip(forecasts, floor, 1 - floor)
    mean = float(np.average(each, weights=weight))
    levels = isotonic(tied(forecasts, outcomes, weight))
    recalibrated = _calibrated_loss(levels.outcomes, levels.count, score)
    happened = levels.outcomes.sum(keepdims=True)
    uncertainty = _calibrated_loss(happened, levels.count.sum(keepdims=True), score)
    return Decomposition(
        score=mean,
        miscalibration=max(mean - recalibrated, 0.0),  # never -1e-17
        discrimination=max(uncertainty - recalibrated, 0.0),
        uncertainty=uncertainty,
        count=float(weight.sum()),
    )


def _calibrated_loss(happened: Array, count: Array, score: str) -> float:
    """Mean score of forecasts equal to their group's frequency; `happened` and `count` are weights by group."""
    failed = count - happened
    if score == "brier":
        return float((happened * failed / count).sum() / count.sum())
    nats = 0.0
    for part in (happened, failed):  # 0 log 0 = 0: what never happened costs nothing
        seen = part > 0
        nats -= float((part[seen] * np.log(part[seen] / count[seen])).sum())
    return nats / float(count.sum())


def auc(p: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Area:
    """Return the area under the ROC curve of forecasts of two classes; a tie has weight 1/2.

    Parameters
    ----------
    p, y : array_like
        Forecasts, (T,) or (T, 2), and class numbers, (T,); NaN where there is none.
    sample_weight : array_like, shape (T,), optional
        Frequencies.

    Raises
    ------
    LearningError
        Unless there are resolved events of both outcomes.

    Examples
    --------
    >>> auc([0.9, 0.6, 0.6, 0.2], [1, 1, 0, 0]).area
    0.875
    """
    ties = tied(*binary_events(p, y, sample_weight))
    happened, failed = ties.outcomes, ties.count - ties.outcomes
    positive, negative = float(happened.sum()), float(failed.sum())
    if not (positive > 0 and negative > 0):
        raise LearningError(
            f"an area under the curve needs events of both outcomes, and {positive:g} happened and {negative:g} did not"
        )
    area, beaten, beaten_by = _area(ties)
    error = math.nan
    if positive > 1 and negative > 1 and 0 < area < 1:
        variance = np.average((beaten - area) ** 2, weights=happened) / (positive - 1)
        variance += np.average((beaten_by - area) ** 2, weights=failed) / (negative - 1)
        error = math.sqrt(variance)
    return Area(area, error, positive, negative)


def areas(forecasts: Forecasts) -> Array:
    """Return the area under the ROC curve of each expert's own forecasts, (N,); NaN unless both outcomes occurred."""
    if len(forecasts.classes) != 2:
        raise ArgumentError(f"the area under the curve is of two classes, and there are {len(forecasts.classes)}")
    known = forecasts.resolved[forecasts.event_index]
    order = np.argsort(forecasts.expert_index[known], kind="stable")
    expert, values = forecasts.expert_index[known][order], forecasts.probabilities[known][order]
    happened = forecasts.outcomes[forecasts.event_index[known]][order] == 1
    ends = np.searchsorted(expert, np.arange(len(forecasts.experts) + 1))
    found = np.full(len(forecasts.experts), np.nan)
    for i, (start, end) in enumerate(pairwise(ends.tolist())):
        if 0 < happened[start:end].sum() < end - start:
            found[i] = _area(tied(values[start:end], happened[start:end], np.ones(end - start)))[0]
    return found


def _area(ties: Groups) -> tuple[float, Array, Array]:
    """Area under the ROC curve; by group, share of failed events forecast lower, of happened ones higher (tie: ½)."""
    happened, failed = ties.outcomes, ties.count - ties.outcomes
    beaten = (failed.cumsum() - failed / 2) / failed.sum()
    beaten_by = (happened.sum() - happened.cumsum() + happened / 2) / happened.sum()
    return float(np.average(beaten, weights=happened)), beaten, beaten_by


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Observed frequencies at P increasing forecast probabilities, with a band for calibrated forecasts."""

    # probability, frequency: (P,); forecasts, and the isotonic regression of outcomes at these
    probability: Array
    frequency: Array
    # low, high: (P,); limits of `frequency` at each point for simulated calibrated forecasts
    low: Array
    high: Array
    counts: npt.NDArray[np.intp]  # (10,); number of forecasts in each tenth of [0, 1]
    events: int  # number of resolved events with a forecast
    level: float  # share of simulations within the band at each point

    @property
    def outside(self) -> float:
        """Share of the points that lie outside the band."""
        return float(np.mean((self.frequency < self.low - 1e-9) | (self.frequency > self.high + 1e-9)))


def reliability_curve(
    p: npt.ArrayLike, y: npt.ArrayLike, *, level: float = 0.9, draws: int = DRAWS, seed: int = SEED
) -> ReliabilityCurve:
    """Reliability curve: how often events happen, by forecast probability; from forecasts (T,) or, by class, (T, K).

    The band shows where the curve would be, with the probability `level`, if forecasts were calibrated, by simulation.
    """
    level = number(level, "level", 0, 1, between=True)
    probability, outcomes = np.asarray(p, dtype=np.float64), np.asarray(y)
    known = (outcomes >= 0) & ~np.isnan(probability.reshape(len(probability), -1)).all(axis=1)
    if not known.any():
        raise LearningError("a reliability curve needs a forecast of a resolved event, and there is none")
    probability, outcomes = probability[known], outcomes[known]
    contrast = ~np.isnan(probability).ravel()
    flat = probability.ravel()[contrast]
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    starts = changes(ordered)
    count = np.diff(np.append(starts, len(ordered))).astype(np.float64)
    low = ordered[starts]
    ties = Groups(low, low, count, low * count, np.zeros(len(low)))
    # All distinct forecasts, or if they are many, some of them from the least to the greatest.
    grid = low[np.unique(np.linspace(0, len(low) - 1, min(len(low), POINTS)).round().astype(np.intp))]

    def curve(happened: Array) -> Array:
        """Return the frequency of the event at each forecast probability of the curve, for the outcomes `happened`.

        Frequencies are those of isotonic regression: the function of the forecast probability that never decreases and
        is closest to the outcomes.
        """
        fit = isotonic(replace(ties, outcomes=np.add.reduceat(happened.ravel()[contrast][order], starts)))
        return np.interp(grid, np.stack([fit.low, fit.high], axis=1).ravel(), np.repeat(fit.frequency, 2))

    rng = np.random.default_rng(seed)
    simulated = np.stack([curve(_drawn(probability, rng)) for _ in range(draws)])
    band = np.quantile(simulated, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    tenth = np.minimum((flat * TENTHS + 1e-9).astype(np.intp), TENTHS - 1)
    return ReliabilityCurve(
        probability=grid,
        frequency=curve(_happened(probability, outcomes)),
        low=band[0],
        high=band[1],
        counts=np.bincount(tenth, minlength=TENTHS),
        events=len(outcomes),
        level=level,
    )


def _happened(p: Array, y: npt.NDArray[np.intp]) -> Array:
    """Return 1 for the class that happened and 0 for others, in the shape of `p`."""
    return np.asarray((y == 1) if p.ndim == 1 else (y[:, None] == np.arange(p.shape[1])), dtype=np.float64)


def _drawn(p: Array, rng: np.random.Generator) -> Array:
    """Return outcomes, 1 or 0 in the shape of `p`, drawn with the forecast probabilities `p`."""
    uniform = rng.random(len(p))
    if p.ndim == 1:
        return np.asarray(uniform < p, dtype=np.float64)
    behind = np.nan_to_num(p).cumsum(axis=1)
    return _happened(p, (uniform[:, None] * behind[:, -1:] >= behind[:, :-1]).sum(axis=1))
