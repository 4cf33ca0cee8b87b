"""Proper scores of forecasts against outcomes: one value per event, then a mean with its standard error.

Forecasts are (T,) or (T, K) and outcomes class numbers, in the forms of `opinionpool.scoring.checked`. A score is NaN
where an event is not resolved or has no forecast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, as_numbers, frequencies
from opinionpool.errors import ArgumentError, OutcomeError, ShapeError
from opinionpool.logodds import (
    POOL_FLOOR,
    TINY,
    check_probabilities,
    class_floors,
    class_probabilities,
    raise_to_floors,
)
from opinionpool.scoring.checked import (
    Outcomes,
    check_binary,
    check_classes,
    checked,
    number_of_classes,
    of_outcome,
    shaped,
    unresolved,
)

_BLOCK = 65536  # 512 KB of float64: the passes over a block find it in the cache


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
    forecasts, outcomes = shaped(p, y)
    classes = number_of_classes(forecasts)
    if scoring_prior is None:
        floors = class_floors(floor, np.full(classes, 1 / classes), 1.0)
        return _score_outcomes(forecasts, outcomes, floors, lambda forecast: _normalised(forecast, classes))
    prior = class_probabilities(scoring_prior, classes, "scoring prior")
    if prior.ndim > 2 or (prior.ndim == 2 and len(prior) != len(forecasts)):
        raise ShapeError(f"{len(forecasts)} events need one scoring prior or as many, not shape {prior.shape[:-1]}")
    score = _floored(*checked(forecasts, outcomes), class_floors(floor, prior, 1.0))
    believed = of_outcome(prior, outcomes)
    if (believed == 0).any():
        where = int(np.flatnonzero(believed == 0)[0])
        raise OutcomeError(f"what happened has a scoring prior of 0, so it was no option: outcome {where}")
    score /= believed
    np.log(score, out=score)
    score /= -(prior * np.log(np.maximum(prior, TINY))).sum(axis=-1)
    return score


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
    forecasts, outcomes = shaped(p, y)
    floors = class_floors(floor, np.ones(number_of_classes(forecasts)), 1.0)
    return _score_outcomes(forecasts, outcomes, floors, _nats)


def mean_log_score(
    p: npt.ArrayLike,
    y: npt.ArrayLike,
    scoring_prior: npt.ArrayLike | None = None,
    floor: float = POOL_FLOOR,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Mean of `log_score` over the resolved events, for when that number is all that is wanted.

    The same as ``mean_score(log_score(p, y, scoring_prior, floor), sample_weight).mean``, NaN without any
    resolved event; faster for binary forecasts with the uniform scoring prior.

    Examples
    --------
    >>> round(mean_log_score([0.8, 0.8, 0.8, 0.3], [1, 1, 0, None]), 5)
    0.01141
    """
    forecasts, outcomes = shaped(p, y)
    if scoring_prior is None and sample_weight is None and forecasts.ndim == 1 and len(forecasts):
        floors = class_floors(floor, np.full(2, 0.5), 1.0)
        # One logarithm for the product of as many probabilities as cannot underflow.
        width = max(int(-300 / math.log10(floors[0])), 1)
        total = 0.0
        for forecast in _outcome_probability_in_blocks(forecasts, outcomes, floors[0]):
            even = len(forecast) - len(forecast) % width
            products = np.multiply.reduce(forecast[:even].reshape(width, -1), axis=0)
            total += float(np.log2(np.abs(products)).sum() + np.log2(np.abs(forecast[even:])).sum())
        if not math.isnan(total):
            return 1.0 + total / len(forecasts)
    return mean_score(log_score(forecasts, outcomes, scoring_prior, floor), sample_weight).mean


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
    return np.where(unresolved(outcomes), np.nan, np.abs(forecasts - (outcomes == 0)))


def _floored(forecasts: Array, outcomes: Outcomes, floors: Array) -> Array:
    """The probability that each outcome was given after floors (K,) or (T, K); NaN where there is none."""
    if forecasts.ndim == 2:
        return of_outcome(raise_to_floors(forecasts, floors), outcomes)
    low, high = of_outcome(floors, outcomes), 1 - of_outcome(floors[..., ::-1], outcomes)
    return np.clip(_outcome_probability(forecasts, outcomes), low, high)


def _normalised(forecast: Array, classes: int) -> None:
    """1 + log_K q, in place: the normalised score for the uniform scoring prior."""
    if classes == 2:
        np.log2(forecast, out=forecast)
    else:
        np.log(forecast, out=forecast)
        forecast /= math.log(classes)
    forecast += 1.0


def _nats(forecast: Array) -> None:
    """-log q, in place."""
    np.log(forecast, out=forecast)
    np.negative(forecast, out=forecast)


def _score_outcomes(forecasts: Array, outcomes: Outcomes, floors: Array, score: Callable[[Array], None]) -> Array:
    """What `score` makes, in place, of the probability that each outcome was given; one floor for all classes."""
    if forecasts.ndim == 2:
        check_classes(outcomes, forecasts.shape[1])
        result = _floored(forecasts, outcomes, floors)
        score(result)
    else:
        result = np.empty(len(forecasts))
        for forecast in _outcome_probability_in_blocks(forecasts, outcomes, floors[0], result):
            score(np.abs(forecast, out=forecast))
    return result


def _outcome_probability_in_blocks(
    forecasts: Array, outcomes: Outcomes, floor: float, into: Array | None = None
) -> Iterator[Array]:
    """The probability that each binary outcome was given after the floor, up to its sign; checks the values.

    Block by block, in parts of `into` or in one buffer again and again. Few passes, all in the cache: the sign is
    left to whoever has fewer numbers to take it from, and what a block should not have (NaN, values out of range)
    only sends the whole to slower checks after the last one.
    """
    if outcomes.dtype == np.bool_:
        outcomes = outcomes.view(np.int8)  # NumPy compares these without a conversion
    buffer = np.empty(min(_BLOCK, len(forecasts)))
    clean = True
    for start in range(0, len(forecasts), _BLOCK):
        block = slice(start, start + _BLOCK)
        p, y = forecasts[block], outcomes[block]
        forecast = buffer[: len(p)] if into is None else into[block]
        failed, happened = y == 0, y == 1
        np.subtract(p, failed.view(np.int8), out=forecast)
        low, high = p.min(), p.max()
        if not (low >= floor and 1 - high >= floor):
            clean = clean and low >= 0 and high <= 1
            np.clip(np.abs(forecast, out=forecast), floor, 1 - floor, out=forecast)
        if np.count_nonzero(failed) + np.count_nonzero(happened) < len(y):
            clean = False
            forecast[~(failed | happened)] = np.nan
        yield forecast
    if not clean:
        check_probabilities(forecasts, "forecast")
        check_classes(outcomes, 2)
