"""Means of those present that learn nothing: average, geometric mean of odds, median and trimmed mean (model.md, 6)."""

from __future__ import annotations

from types import MappingProxyType
from typing import Unpack

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import number
from opinionpool.arrays import Array, Mask, as_numbers
from opinionpool.model.contrasts import AnswerParts, Contrasts
from opinionpool.pools.rule import (
    EQUAL_WEIGHTS,
    Option,
    Pool,
    Settings,
    apply_rule,
    check_shares,
    contrast_parts,
    shared_parts,
    weighted_sums,
)

TRIM = 0.1
# How far from a half the weights below a median may be by rounding.
ROUNDING = 1e-12


class Average(Pool):
    """AvgOps: the mean probability."""

    title = "Average"
    uses_prior = False
    scale = "probability"

    def pool(self, q: npt.ArrayLike, **settings: Unpack[Settings]) -> Array:
        """The mean of those present.

        >>> Average().pool([[0.9, 0.6, 0.1], [0.9, float("nan"), 0.1]]).round(5)
        array([0.53333, 0.5    ])
        """

        def rule(contrast: Contrasts) -> Array:
            return logodds.prior_log_ratios(weighted_sums(contrast.shares(None), contrast.probabilities))

        return apply_rule(q, rule, **settings)

    def parts(self, contrast: Contrasts) -> AnswerParts:
        """Equal shares of the answer."""
        return shared_parts(contrast, None)


class Geometric(Pool):
    """The geometric mean of odds: a weighted mean of log-odds."""

    title = "Geometric mean of odds"
    options = MappingProxyType({"weights": EQUAL_WEIGHTS})
    uses_prior = False
    scale = "log-odds"

    def pool(self, q: npt.ArrayLike, weights: npt.ArrayLike | None = None, **settings: Unpack[Settings]) -> Array:
        """The weighted mean of the log-odds of those present.

        For K > 2 it is the normalised geometric mean of probabilities. Unlike the geometric mean of the probabilities
        of one class, it answers complements with the complement.

        Parameters
        ----------
        q, weights, **settings
            As for `opinionpool.pools.linear.Linear`.

        Examples
        --------
        >>> Geometric().pool([[0.9, 0.6, 0.1], [0.1, 0.4, 0.9]]).round(5)
        array([0.53374, 0.46626])
        """
        shares = None if weights is None else check_shares(weights)

        def rule(contrast: Contrasts) -> Array:
            return contrast.reference + weighted_sums(contrast.shares(shares), contrast.contrasts)

        return apply_rule(q, rule, shares, **settings)

    def parts(self, contrast: Contrasts, weights: Array | None = None) -> AnswerParts:
        """Shares of the mean contrast."""
        return contrast_parts(contrast, contrast.shares(weights)[0])


class Trimmed(Pool):
    """The mean of what is left when a part of the forecasts is cut off at either end."""

    title = "Trimmed mean"
    options = MappingProxyType({"trim": Option(TRIM, "fraction of the forecasts cut off at each end, up to 0.5")})
    uses_prior = False

    def pool(self, q: npt.ArrayLike, trim: float = TRIM, **settings: Unpack[Settings]) -> Array:
        """The mean of what is left when a part of the forecasts is cut off at either end.

        Of n forecasts on an event, ``trim * n`` are cut off at each end, a fraction of a forecast counted as that
        fraction: it is the mean of the quantile function between `trim` and 1 − `trim`. So a few forecasts are trimmed
        too: at 0.1, the lowest and the highest of three count 0.7 each beside the middle one's 1, and one or two
        forecasts are averaged as they are. Where ``trim * n`` is a whole number, this is the usual trimmed mean.

        Parameters
        ----------
        q : array_like, shape (..., N), or (..., N, K)
            For K > 2 the trimmed means of the classes are rescaled to sum to 1.
        trim : float, default 0.1
            The fraction cut off at each end, from 0 (the average) to 0.5 (the median). Jose & Winkler (2008), "Simple
            robust averages of forecasts", Int. J. Forecasting 24, find moderate trimming of 10-30% best; this
            default takes off 20% in all.
        **settings : Settings

        Raises
        ------
        ArgumentError, ShapeError, ProbabilityError
            If `trim` is not in [0, 0.5], or arguments do not fit together or are out of range.

        Examples
        --------
        >>> float(Trimmed().pool([0.9, 0.6, 0.1]).round(5))
        0.54167
        """
        trim = number(trim, "trim, the fraction cut off at each end,", 0, 0.5)

        def rule(contrast: Contrasts) -> Array:
            p = np.where(contrast.present[..., None], contrast.probabilities, np.inf)
            p.sort(axis=1)
            p = p[:, : contrast.count.max(initial=0)]
            shares = _rank_shares(contrast.count, trim)
            return logodds.prior_log_ratios(weighted_sums(shares, np.where(np.isinf(p), 0.0, p)))

        return apply_rule(q, rule, **settings)


class Median(Pool):
    """The median probability."""

    title = "Median"
    uses_prior = False

    def pool(self, q: npt.ArrayLike, **settings: Unpack[Settings]) -> Array:
        """The median probability; of an even number of forecasts, the mean of the middle two.

        For K > 2 the medians of the classes are rescaled to sum to 1.

        >>> Median().pool([[0.9, 0.6, 0.1], [0.9, 0.6, float("nan")]]).round(5)
        array([0.6 , 0.75])
        """
        return Trimmed().pool(q, 0.5, **settings)


class RecentMedian(Pool):
    """The median probability, newer forecasts counting for more."""

    title = "Recency-weighted median"
    uses_prior = False
    timed = True

    def pool(self, q: npt.ArrayLike, ages: npt.ArrayLike | None = None, **settings: Unpack[Settings]) -> Array:
        """The weighted median; the n-th of N forecasts in order of time has the weight e^(√n − √N), as on Metaculus.

        Forecasts of one time share the weights of their places, and the median lies half-way between two forecasts
        where these halve the weight. For K > 2 the medians of the classes are rescaled to sum to 1.

        Parameters
        ----------
        q : array_like, shape (..., N), or (..., N, K)
        ages : array_like, shape (..., N), optional
            How old each forecast is, in any unit, NaN where unknown, which counts as the newest. Without ages this is
            the median.
        **settings : Settings

        Examples
        --------
        >>> float(RecentMedian().pool([0.2, 0.5, 0.9]))
        0.5
        >>> float(RecentMedian().pool([0.9, 0.2, 0.3, 0.8], ages=[0.0, 90.0, 60.0, 1.0]).round(3))
        0.8
        """
        classes = settings.get("classes", 2)
        experts = np.shape(q)[-1 if classes == 2 else -2]
        age = np.zeros(experts) if ages is None else np.asarray(ages, dtype=np.float64)
        given = ~np.asarray(np.isnan(as_numbers(q))).reshape(-1, experts, 1 if classes == 2 else classes)
        answered = np.flatnonzero(given.any(axis=(1, 2)))
        age = np.broadcast_to(np.where(np.isnan(age), 0.0, age).reshape(-1, experts), (len(given), experts))
        # Those on which somebody answered come in order.
        left = age[answered]

        def rule(contrast: Contrasts) -> Array:
            nonlocal left
            mine, left = left[: len(contrast.present)], left[len(contrast.present) :]
            weight = _recency_weights(mine, contrast.present)
            return logodds.prior_log_ratios(_weighted_medians(contrast.probabilities, weight))

        return apply_rule(q, rule, **settings)


def _recency_weights(age: Array, present: Mask) -> Array:
    """e^(√n − √N) for the n-th of N forecasts in order of time, (T, N), 0 for absent ones; ties share theirs."""
    key = np.where(present, -age, np.inf)
    order = np.argsort(key, axis=1, kind="stable")
    oldest = np.take_along_axis(key, order, axis=1)
    count = present.sum(axis=1, keepdims=True)
    rank = np.arange(1, age.shape[1] + 1)
    weight = np.where(rank <= count, np.exp(np.sqrt(rank) - np.sqrt(count)), 0.0)
    fresh = np.ones(age.shape, dtype=bool)
    fresh[:, 1:] = oldest[:, 1:] != oldest[:, :-1]
    group = np.cumsum(fresh.ravel()) - 1
    mean = (np.bincount(group, weight.ravel()) / np.bincount(group))[group].reshape(age.shape)
    found = np.empty(age.shape)
    np.put_along_axis(found, order, mean, axis=1)
    return found


def _weighted_medians(values: Array, weight: Array) -> Array:
    """Of N values with weights (T, N), for each class, (T, K), scaled to sum to 1."""
    order = np.argsort(values, axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=1)
    share = np.cumsum(np.take_along_axis(np.broadcast_to(weight[..., None], values.shape), order, axis=1), axis=1)
    share = share / share[:, -1:]
    low, high = ((share >= half).argmax(axis=1)[:, None] for half in (0.5 - ROUNDING, 0.5 + ROUNDING))
    middle = (np.take_along_axis(ordered, low, axis=1) + np.take_along_axis(ordered, high, axis=1))[:, 0] / 2
    return np.asarray(middle / middle.sum(axis=1, keepdims=True))


def _rank_shares(count: npt.NDArray[np.intp], trim: float) -> Array:
    """The shares of (T,) numbers of forecasts by rank, 0 behind the last, (T, max n)."""
    n = count[:, None]
    # Beyond half of the others, only the middle one or two are left, and they count equally.
    cut = np.minimum(trim * n, np.maximum(n - 1, 0) // 2)
    rank = np.arange(count.max(initial=0))
    kept: Array = np.clip(np.minimum(rank + 1, n - cut) - np.maximum(rank, cut), 0.0, None)
    shares: Array = kept / np.maximum(n - 2.0 * cut, 1.0)
    return shares
