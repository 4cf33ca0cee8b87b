"""Proper scores of forecasts against outcomes: one value per event, then a mean with its standard error.

Forecasts are (T,) or (T, K) and outcomes class numbers, in the forms of `opinionpool.scoring.checked`. A score is NaN
where an event is not resolved or has no forecast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, as_numbers, frequencies
from opinionpool.errors import ArgumentError, OutcomeError, ShapeError
from opinionpool.logodds import (
    POOL_FLOOR,
    TINY,
    class_floors,
    class_probabilities,
    raise_to_floors,
)
from opinionpool.scoring.checked import (
    Outcomes,
    check_binary,
    checked,
    number_of_classes,
    of_outcome,
    unresolved,
)

# Sums of squares of what is larger have no limit.
LARGEST = 1e100


@dataclass(frozen=True)
class MeanScore:
    """A mean over resolved events.

    Attributes
    ----------
    mean : float
        NaN without any resolved event.
    standard_error : float
        Of the mean, taking the events as independent; NaN with fewer than two.
    count : float
        How many resolved events, each as often as its weight says.
    """

    mean: float
    standard_error: float
    count: float


def log_score(
    p: npt.ArrayLike,
    y: npt.ArrayLike,
    scoring_prior: npt.ArrayLike | None = None,
    floor: float = POOL_FLOOR,
) -> Array:
    """Normalised log score: 0 for repeating the scoring prior, 1 expected for perfect knowledge. Higher is better.

    S = log(q(Y) / p(Y)) / H(p), with p the scoring prior and H its entropy (equation 26; model.md, section 5).

    Parameters
    ----------
    p, y : array_like
        Forecasts, (T,) or (T, K), and class numbers, (T,); NaN where there is none.
    scoring_prior : array_like, optional
        One, or one per event: binary, a probability of class 1 or (T,) of them; K > 2, shape (K,) or (T, K), where
        0 says that a class is no option of the event. Uniform if not given.
    floor : float
        A forecast is kept at least min(floor, prior of the class) for every class.

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
    classes = number_of_classes(forecasts)
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
    """Minus the natural logarithm of what the outcome was given, in nats. Lower is better.

    Parameters
    ----------
    p, y : array_like
        Forecasts, (T,) or (T, K), and class numbers, (T,); NaN where there is none.
    floor : float
        A forecast is kept at least this for every class.

    Returns
    -------
    ndarray, shape (T,)

    Examples
    --------
    >>> log_loss([0.8, 0.0], [1, 1]).round(5).tolist()
    [0.22314, 18.42068]
    """
    forecasts, outcomes = checked(p, y)
    floors = class_floors(floor, np.ones(number_of_classes(forecasts)), 1.0)
    return np.asarray(-np.log(_floored(forecasts, outcomes, floors)))


def mean_log_score(
    p: npt.ArrayLike,
    y: npt.ArrayLike,
    scoring_prior: npt.ArrayLike | None = None,
    floor: float = POOL_FLOOR,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Mean of `log_score` over the resolved events, for when that number is all that is wanted.

    The same as ``mean_score(log_score(p, y, scoring_prior, floor), sample_weight).mean``, NaN without any
    resolved event.

    Examples
    --------
    >>> round(mean_log_score([0.8, 0.8, 0.8, 0.3], [1, 1, 0, None]), 5)
    0.01141
    """
    return mean_score(log_score(p, y, scoring_prior, floor), sample_weight).mean


def at_floor(p: npt.ArrayLike, y: npt.ArrayLike, floor: float = POOL_FLOOR) -> npt.NDArray[np.bool_]:
    """Which events happened although the forecast left them `floor` or less, so that the floor sets their score.

    >>> at_floor([1.0, 0.0, 0.0], [1, 0, 1]).tolist()
    [False, False, True]
    """
    return np.asarray(_outcome_probability(*checked(p, y)) <= floor)


def brier_score(p: npt.ArrayLike, y: npt.ArrayLike) -> Array:
    """Squared error of the probability of class 1, from 0 to 1; binary events only. Lower is better.

    Two columns give the same as one. `brier_sum` adds up over the classes and is twice as large.

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
    """Squared errors added up over all K classes, from 0 to 2. Lower is better.

    Returns
    -------
    ndarray, shape (T,)

    Examples
    --------
    >>> brier_sum([0.7], [1]).round(2), brier_sum([[0.2, 0.7, 0.1]], [1]).round(2)
    (array([0.18]), array([0.14]))
    """
    forecasts, outcomes = checked(p, y)
    if forecasts.ndim == 1:
        return np.asarray(2 * (forecasts - outcomes) ** 2)
    happened = outcomes[:, None] == np.arange(forecasts.shape[1])
    return np.where(unresolved(outcomes), np.nan, ((forecasts - happened) ** 2).sum(axis=1))


def spherical_score(p: npt.ArrayLike, y: npt.ArrayLike) -> Array:
    """What the outcome was given, divided by the length of the forecast as a vector; 0 to 1. Higher is better.

    Returns
    -------
    ndarray, shape (T,)

    Examples
    --------
    >>> spherical_score([0.8], [1]).round(6)
    array([0.970143])
    """
    forecasts, outcomes = checked(p, y)
    binary = forecasts.ndim == 1
    length = np.hypot(forecasts, 1 - forecasts) if binary else np.linalg.norm(forecasts, axis=1)
    return np.asarray(_outcome_probability(forecasts, outcomes) / length)


def ranked_probability_score(p: npt.ArrayLike, y: npt.ArrayLike) -> Array:
    """Squared errors of the cumulative probabilities of ordered classes, added up; 0 to K - 1. Lower is better.

    The binary case is `brier_score`. Some authors divide by K - 1.

    Returns
    -------
    ndarray, shape (T,)

    Examples
    --------
    >>> ranked_probability_score([[0.2, 0.7, 0.1], [0.2, 0.7, 0.1]], [1, 2]).round(2)
    array([0.05, 0.85])
    """
    forecasts, outcomes = checked(p, y)
    if forecasts.ndim == 1:
        return np.asarray((forecasts - outcomes) ** 2)
    reached = outcomes[:, None] <= np.arange(forecasts.shape[1] - 1)
    errors = forecasts.cumsum(axis=1)[:, :-1] - reached
    return np.where(unresolved(outcomes), np.nan, (errors**2).sum(axis=1))


def mean_score(scores: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> MeanScore:
    """Mean of scores over the resolved events, with its standard error and their number.

    Parameters
    ----------
    scores : array_like, shape (T,)
        NaN where not resolved.
    sample_weight : array_like, shape (T,), optional
        Frequencies: weight 2 counts as the event twice, weight 0 as never.

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


def _outcome_probability(forecasts: Array, outcomes: Outcomes) -> Array:
    """The probability that each outcome was given, without floors; NaN where there is none."""
    if forecasts.ndim == 2:
        return of_outcome(forecasts, outcomes)
    given = np.abs(forecasts - (outcomes == 0))
    absent = unresolved(outcomes)
    if absent.any():
        given[absent] = np.nan
    return np.asarray(given)


def _floored(forecasts: Array, outcomes: Outcomes, floors: Array) -> Array:
    """The probability that each outcome was given after floors (K,) or (T, K); NaN where there is none."""
    if forecasts.ndim == 2:
        return of_outcome(raise_to_floors(forecasts, floors), outcomes)
    low, high = floors[..., 0], 1.0 - floors[..., 1]
    if floors.ndim > 1 or floors[0] != floors[1]:
        low, high = of_outcome(floors, outcomes), 1.0 - of_outcome(floors[..., ::-1], outcomes)
    return np.clip(_outcome_probability(forecasts, outcomes), low, high)
