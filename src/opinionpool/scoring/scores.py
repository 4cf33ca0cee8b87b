"""Proper scores of forecasts against outcomes: one value per event, then a mean with its standard error.

Forecasts are (T,) for two classes or (T, K), and outcomes class numbers, (T,). A score is NaN for an event that is not
resolved or has no forecast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Mask, as_array, as_numbers, frequencies, is_blank, unmasked
from opinionpool.errors import ArgumentError, LearningError, OutcomeError, ProbabilityError, ShapeError
from opinionpool.forecasts import Forecasts
from opinionpool.labels import UNRESOLVED
from opinionpool.logodds import (
    POOL_FLOOR,
    SUM_TOLERANCE,
    TINY,
    all_classes,
    check_all_or_none,
    check_probabilities,
    class_floors,
    class_probabilities,
    public_probabilities,
    raise_to_floors,
)
from opinionpool.text import listed

Outcomes: TypeAlias = npt.NDArray[Any]

# Sums of squares of what is larger have no limit.
LARGEST = 1e100


@dataclass(frozen=True)
class MeanScore:
    """Mean of scores over resolved events, with its standard error.

    Attributes
    ----------
    mean : float
        Mean score; NaN without any resolved event.
    standard_error : float
        Standard error of the mean for independent events; NaN with fewer than two events.
    count : float
        Sum of the weights of resolved events.
    """

    mean: float
    standard_error: float
    count: float


def log_score(
    p: npt.ArrayLike, y: npt.ArrayLike, scoring_prior: npt.ArrayLike | None = None, floor: float = POOL_FLOOR
) -> Array:
    """Normalised log score: 0 for repeating the scoring prior, 1 expected for perfect knowledge. Higher is better.

    S = log(q(Y) / p(Y)) / H(p), with p the scoring prior and H its entropy (equation 26; model.md, section 5).

    Parameters
    ----------
    p, y : array_like
        Forecasts, (T,) or (T, K), and class numbers, (T,); NaN where there is none.
    scoring_prior : array_like, optional
        Prior p, one for all events or one for each: if K = 2 the probability of class 1, a number or (T,); if K > 2,
        (K,) or (T, K), where 0 marks a class that is no option of the event. Uniform if not given.
    floor : float
        Forecasts below min(floor, prior of the class) are raised to it.

    Returns
    -------
    ndarray, shape (T,)

    Raises
    ------
    ShapeError, ProbabilityError, OutcomeError
        If the arguments do not fit together or are out of range.

    Examples
    --------
    >>> log_score([0.8, 0.5, 0.8, 0.3], [1, 1, 0, None]).round(5).tolist()
    [0.67807, 0.0, -1.32193, nan]
    """
    forecasts, outcomes = checked(p, y)
    classes = _number_of_classes(forecasts)
    prior = np.full(classes, 1 / classes)
    if scoring_prior is not None:
        prior = class_probabilities(scoring_prior, classes, "scoring prior")
    if prior.ndim > 2 or (prior.ndim == 2 and len(prior) != len(forecasts)):
        raise ShapeError(f"{len(forecasts)} events need one scoring prior or as many, not shape {prior.shape[:-1]}")
    believed = of_outcome(prior, outcomes)
    if (believed == 0).any():
        where = int(np.flatnonzero(believed == 0)[0])
        raise OutcomeError(f"what happened has a scoring prior of 0, so it was no option: outcome {where}")
    entropy = -(prior * np.log(np.maximum(prior, TINY))).sum(axis=-1)
    return np.asarray(np.log(_floored(forecasts, outcomes, class_floors(floor, prior, 1.0)) / believed) / entropy)


def log_loss(p: npt.ArrayLike, y: npt.ArrayLike, floor: float = POOL_FLOOR) -> Array:
    """Minus the natural logarithm of the outcome's probability, in nats. Lower is better.

    Parameters
    ----------
    p, y : array_like
        Forecasts, (T,) or (T, K), and class numbers, (T,); NaN where there is none.
    floor : float
        Forecasts below this probability are raised to it.

    Returns
    -------
    ndarray, shape (T,)

    Examples
    --------
    >>> log_loss([0.8, 0.0], [1, 1]).round(5).tolist()
    [0.22314, 18.42068]
    """
    forecasts, outcomes = checked(p, y)
    floors = class_floors(floor, np.ones(_number_of_classes(forecasts)), 1.0)
    return np.asarray(-np.log(_floored(forecasts, outcomes, floors)))


def mean_log_score(
    p: npt.ArrayLike,
    y: npt.ArrayLike,
    scoring_prior: npt.ArrayLike | None = None,
    floor: float = POOL_FLOOR,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Return the mean of `log_score` over the resolved events, a number.

    Equal to ``mean_score(log_score(p, y, scoring_prior, floor), sample_weight).mean``; NaN without any resolved event.

    Examples
    --------
    >>> round(mean_log_score([0.8, 0.8, 0.8, 0.3], [1, 1, 0, None]), 5)
    0.01141
    """
    return mean_score(log_score(p, y, scoring_prior, floor), sample_weight).mean


def at_floor(p: npt.ArrayLike, y: npt.ArrayLike, floor: float = POOL_FLOOR) -> npt.NDArray[np.bool_]:
    """Return True for events whose outcome had a probability of at most `floor`, which then sets the score, (T,)."""
    return np.asarray(_outcome_probability(*checked(p, y)) <= floor)


def brier_score(p: npt.ArrayLike, y: npt.ArrayLike) -> Array:
    """Squared error of the probability of class 1, from 0 to 1, for two classes only. Lower is better.

    `p` may have one column or two. `brier_sum` adds the squared errors of both classes, and is twice as large.

    Returns
    -------
    ndarray, shape (T,)

    Examples
    --------
    >>> brier_score([0.7], [1]).round(2), brier_score([[0.3, 0.7]], [1]).round(2)
    (array([0.09]), array([0.09]))
    """
    forecasts, outcomes = checked(p, y)
    check_binary(forecasts, "brier_sum adds up over the classes")
    return np.asarray((forecasts - outcomes) ** 2)


def brier_sum(p: npt.ArrayLike, y: npt.ArrayLike) -> Array:
    """Sum of the squared errors over all K classes, from 0 to 2. Lower is better.

    Returns
    -------
    ndarray, shape (T,)

    Examples
    --------
    >>> brier_sum([0.7], [1]).round(2), brier_sum([[0.2, 0.7, 0.1]], [1]).round(2)
    (array([0.18]), array([0.14]))
    """
    forecasts, outcomes = checked(p, y)
    forecasts = all_classes(forecasts, _number_of_classes(forecasts))
    happened = outcomes[:, None] == np.arange(forecasts.shape[1])
    return np.where(unresolved(outcomes), np.nan, ((forecasts - happened) ** 2).sum(axis=1))


def spherical_score(p: npt.ArrayLike, y: npt.ArrayLike) -> Array:
    """Spherical score: the outcome's probability over the forecast's Euclidean norm, from 0 to 1. Higher is better.

    Returns
    -------
    ndarray, shape (T,)

    Examples
    --------
    >>> spherical_score([0.8], [1]).round(6)
    array([0.970143])
    """
    forecasts, outcomes = checked(p, y)
    length = np.linalg.norm(all_classes(forecasts, _number_of_classes(forecasts)), axis=1)
    return np.asarray(_outcome_probability(forecasts, outcomes) / length)


def ranked_probability_score(p: npt.ArrayLike, y: npt.ArrayLike) -> Array:
    """Sum of squared errors of the cumulative probabilities of ordered classes; 0 to K - 1. Lower is better.

    Equal to `brier_score` for two classes. Some authors divide by K - 1.

    Returns
    -------
    ndarray, shape (T,)

    Examples
    --------
    >>> ranked_probability_score([[0.2, 0.7, 0.1], [0.2, 0.7, 0.1]], [1, 2]).round(2)
    array([0.05, 0.85])
    """
    forecasts, outcomes = checked(p, y)
    forecasts = all_classes(forecasts, _number_of_classes(forecasts))
    reached = outcomes[:, None] <= np.arange(forecasts.shape[1] - 1)
    errors = forecasts.cumsum(axis=1)[:, :-1] - reached
    return np.where(unresolved(outcomes), np.nan, (errors**2).sum(axis=1))


def event_scores(p: Array, events: Forecasts, floor: float = POOL_FLOOR) -> Array:
    """Log scores (equation 26) of answers `p` with uniform priors, (T,): NaN if unresolved, mean over tied outcomes."""
    even = None if events.even is None else public_probabilities(events.even)
    scores = log_score(p, np.where(events.resolved, events.outcomes, np.nan), even, floor)
    if events.ties is None:
        return scores
    either = [log_score(p, np.full(len(p), y), even, floor) for y in (0, 1)]
    return np.where(events.ties, np.mean(either, axis=0), scores)


def brier(p: Array, y: npt.ArrayLike) -> Array:
    """Return the Brier score of each event, (T,): `brier_score` for two classes, else `brier_sum`."""
    return (brier_score if p.ndim == 1 else brier_sum)(p, y)


def mean_score(scores: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> MeanScore:
    """Return the mean of scores over the resolved events, with its standard error and the number of events.

    Parameters
    ----------
    scores : array_like, shape (T,)
        Scores of events; NaN where not resolved.
    sample_weight : array_like, shape (T,), optional
        Number of times that each event counts.

    Raises
    ------
    ShapeError, ArgumentError
        If the weights do not fit the scores, are negative or not finite.

    Examples
    --------
    >>> mean_score([0.25, 0.75, float("nan")])
    MeanScore(mean=0.5, standard_error=0.25, count=2.0)
    """
    values = np.atleast_1d(as_numbers(scores, "score", ArgumentError))
    huge = values[np.isfinite(values) & (np.abs(values) > LARGEST)]
    if huge.size:
        raise ArgumentError(f"each score must be at most {LARGEST:g}, and one is {huge[0]:g}")
    if values.ndim != 1:
        raise ShapeError(f"scores need shape (T,), one per event, not {values.shape}")
    weight = None if sample_weight is None else frequencies(sample_weight, len(values))
    kept = ~np.isnan(values) if weight is None else ~np.isnan(values) & (weight > 0)
    if not kept.all():
        values, weight = values[kept], None if weight is None else weight[kept]
    count = float(len(values) if weight is None else weight.sum())
    if not count:
        return MeanScore(math.nan, math.nan, 0.0)
    mean = float(np.average(values, weights=weight))
    spread = float(np.average((values - mean) ** 2, weights=weight))
    return MeanScore(mean, math.sqrt(spread / (count - 1)) if count > 1 else math.nan, count)


def checked(p: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Array, Outcomes]:
    """Return checked forecasts `p`, (T,) if K = 2 or (T, K), and outcomes `y` as class numbers, (T,); NaN if missing.

    Arrays of outcomes are not copied. Labels that are text are numbered in sorted order, as scikit-learn's columns.
    """
    given = np.atleast_1d(as_numbers(p, "forecast"))
    if given.ndim > 1 and (given.ndim != 2 or given.shape[1] < 2):
        raise ShapeError(f"forecasts need shape (T,), or (T, K) with a column per class, not {given.shape}")
    classes = 2 if given.ndim == 1 else given.shape[1]
    check_probabilities(given, "forecast")
    if given.ndim == 2:
        given = _sum_to_one(given)
    outcomes = _class_numbers(unmasked(y, None), classes)
    if outcomes.shape != given.shape[:1]:
        raise ShapeError(f"{len(given)} forecasts need as many outcomes, not shape {outcomes.shape}")
    # The outcomes of `Forecasts` are -1 where an event is open, and pools' scored answers are NaN there.
    open_ = (outcomes == UNRESOLVED) & np.isnan(given if given.ndim == 1 else given.sum(axis=1))
    outcomes = np.where(open_, np.nan, outcomes) if open_.any() else outcomes
    check_classes(outcomes, classes)
    return given, outcomes


def check_binary(forecasts: Array, remedy: str) -> None:
    """Raise a `ShapeError`, whose text ends in `remedy`, unless `forecasts` (T, K) have two classes."""
    if forecasts.ndim != 1:
        raise ShapeError(f"this is for binary events, and there are {forecasts.shape[1]} classes; {remedy}")


def check_classes(outcomes: Outcomes, classes: int) -> None:
    """Raise an `OutcomeError` unless every outcome is a class number or NaN."""
    if outcomes.dtype.kind in "biu" and (not len(outcomes) or (outcomes.min() >= 0 and outcomes.max() < classes)):
        return
    valid = (outcomes >= 0) & (outcomes < classes) & (outcomes == np.floor(outcomes))
    other = ~(valid | unresolved(outcomes))
    if other.any():
        where = int(np.flatnonzero(other)[0])
        value = float(outcomes[where])
        hint = "; an event that settled at a fraction has no outcome to score" if 0 < value < classes - 1 else ""
        hint = "; of Forecasts f, give np.where(f.resolved, f.outcomes, np.nan)" if value == -1 else hint
        raise OutcomeError(
            f"each outcome must be a class number 0 to {classes - 1}, or NaN where not resolved, and outcome "
            f"{where} is {value:.15g}{hint}"
        )


def unresolved(outcomes: Outcomes) -> Mask:
    """Return True for events without an outcome, (T,)."""
    return np.asarray(np.isnan(outcomes)) if outcomes.dtype.kind == "f" else np.zeros(outcomes.shape, dtype=bool)


def of_outcome(table: Array, outcomes: Outcomes) -> Array:
    """Return the entry of `table`, (K,) or (T, K), for each event's outcome, (T,); NaN if not resolved."""
    absent = unresolved(outcomes)
    codes = np.where(absent, 0, outcomes).astype(np.intp) if absent.any() else outcomes.astype(np.intp, copy=False)
    entries = table[codes] if table.ndim == 1 else np.take_along_axis(table, codes[:, None], axis=1)[:, 0]
    entries[absent] = np.nan
    return entries


def binary_events(
    p: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
) -> tuple[Array, Array, Array]:
    """Forecasts, outcomes and weights of the resolved events of two classes with a forecast and positive weight."""
    forecasts, outcomes = checked(p, y)
    check_binary(forecasts, "judge one class against the rest: p[:, k] and y == k")
    weight = frequencies(sample_weight, len(forecasts))
    kept = ~(np.isnan(forecasts) | unresolved(outcomes)) & (weight > 0)
    if not kept.any():
        raise LearningError("no event is resolved and has a forecast and a positive weight, so nothing can be judged")
    return forecasts[kept], np.asarray(outcomes[kept], dtype=np.float64), weight[kept]


def _number_of_classes(forecasts: Array) -> int:
    """Return the number of classes, K, of forecasts (T,) or (T, K)."""
    return 2 if forecasts.ndim == 1 else forecasts.shape[1]


def _sum_to_one(q: Array) -> Array:
    """Return forecasts (T, K) divided by their sums, which must be 1 within a tolerance; if K = 2, (T,)."""
    check_all_or_none(q)
    total = q.sum(axis=1)
    off = np.flatnonzero(np.abs(total - 1) > SUM_TOLERANCE)
    if len(off):
        raise ProbabilityError(
            f"each forecast must sum to 1 over the classes, and row {off[0]} sums to {total[off[0]]:.15g}; "
            "score several experts one at a time"
        )
    return np.asarray(q[:, 1] / total if q.shape[1] == 2 else q / total[:, None])


def _class_numbers(y: npt.ArrayLike, classes: int) -> Outcomes:
    """Return outcomes as numbers, NaN for None; text as positions among the sorted labels, if all labels occur."""
    outcomes = np.atleast_1d(as_array(y, "y, the outcomes,"))
    if outcomes.dtype.kind in "biuf":
        return outcomes
    cells = outcomes.ravel().tolist()
    if outcomes.dtype == object and all(is_blank(each) or isinstance(each, Real | np.bool_) for each in cells):
        return np.reshape([np.nan if is_blank(each) else float(each) for each in cells], outcomes.shape)
    # NumPy makes text of the numbers in a list that mixes them.
    known = [each for each in (y if isinstance(y, list | tuple) else cells) if not is_blank(each)]
    labels = sorted(set(known)) if all(isinstance(each, str) for each in known) else []
    if len(labels) == classes:
        return np.reshape([np.nan if is_blank(each) else float(labels.index(each)) for each in cells], outcomes.shape)
    if labels:
        raise OutcomeError(
            f"the outcomes are {listed(labels)}, and the forecasts are about {classes} classes; give the number of "
            "each outcome's class, [classes.index(label) for label in y]"
        )
    label = next(each for each in known if not isinstance(each, Real))
    raise OutcomeError(
        f"each outcome must be the number of a class or its label, or NaN or None where not resolved, not {label!r}"
    )


def _outcome_probability(forecasts: Array, outcomes: Outcomes) -> Array:
    """Return the forecast probability of the class that happened, (T,), without floors; NaN if missing."""
    if forecasts.ndim == 2:
        return of_outcome(forecasts, outcomes)
    given = np.abs(forecasts - (outcomes == 0))
    absent = unresolved(outcomes)
    if absent.any():
        given[absent] = np.nan
    return np.asarray(given)


def _floored(forecasts: Array, outcomes: Outcomes, floors: Array) -> Array:
    """The forecast probability of the class that happened, (T,), at least its floor, (K,) or (T, K); NaN if missing."""
    if forecasts.ndim == 2:
        return of_outcome(raise_to_floors(forecasts, floors), outcomes)
    low, high = floors[..., 0], 1.0 - floors[..., 1]
    if floors.ndim > 1 or floors[0] != floors[1]:
        low, high = of_outcome(floors, outcomes), 1.0 - of_outcome(floors[..., ::-1], outcomes)
    return np.clip(_outcome_probability(forecasts, outcomes), low, high)
