"""The pools that practitioners and the literature use, as plain functions of probabilities (model.md, section 6).

What they have in common:

* A forecast that is missing is NaN; on each event the rule is applied to those present, and with none the answer
  is the prior. Only the logarithmic pool treats a missing expert otherwise, see `log_pool`.
* An expert's probability of a class is kept at least ``min(floor, prior / 100)``, an answer at least
  ``min(pool_floor, prior)``.
* Where a rule has a place for the prior, in `independent_pool`, `log_pool`, `extremized_pool` and
  `recalibrated_pool`, contrasts with its log-odds L° are combined, and the answer is L° + g(L − L°): changing the
  prior before or after pooling agrees. Elsewhere the prior matters only for the floors and where nobody answered.
* A base rate adds logit(base_rate) − L° to the pooled log-odds of every pool, and changes nothing else.

The keyword arguments that all of them take are in `Settings`. Probabilities have shape (..., N), or (..., N, K) with
K > 2 classes, and answers (...), or (..., K).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, as_numbers
from opinionpool.errors import ArgumentError, ExpertError, ShapeError
from opinionpool.logodds import FLOOR, POOL_FLOOR
from opinionpool.model.contrasts import Contrasts, base_rate_shift, contrasts_in, read_batch
from opinionpool.pools.beta_linear import beta_transform

Weights: TypeAlias = Mapping[str, float] | npt.ArrayLike


def matched_weights(weights: Weights, experts: tuple[str, ...]) -> tuple[Array, tuple[str, ...]]:
    """Weights that a user gave, in the experts' order, and the names among them that are not used.

    Parameters
    ----------
    weights : mapping of str to float, or array_like, shape (N,)
        By name; names of experts who are not here are allowed. Or in the order of `experts`.
    experts : tuple of str

    Raises
    ------
    ExpertError
        If an expert has no weight, or a list is not as long as the experts are many.

    Examples
    --------
    >>> matched_weights({"ann": 0.5, "bob": 0.3, "cat": 0.2}, ("cat", "ann"))
    (array([0.2, 0.5]), ('bob',))
    """
    if isinstance(weights, Mapping):
        without = [name for name in experts if name not in weights]
        if without:
            raise ExpertError(f"weights by name need one for each expert, and {without[0]!r} has none; 0 leaves it out")
        unused = tuple(str(name) for name in weights if name not in set(experts))
        return as_numbers([weights[name] for name in experts], "weight", ArgumentError), unused
    array = as_numbers(weights, "weight", ArgumentError)
    if array.shape != (len(experts),):
        raise ExpertError(
            f"there are {len(experts)} experts ({', '.join(experts[:10])}), and {array.size} weights; "
            "give one for each, or weights by name"
        )
    return array, ()


def check_weights(weights: npt.ArrayLike) -> Array:
    """Weights as a finite vector."""
    w = as_numbers(weights, "weight", ArgumentError)
    if w.ndim != 1 or not np.isfinite(w).all():
        raise ArgumentError(f"weights must be finite numbers, one for each expert, not {w}")
    return w


def check_shares(weights: npt.ArrayLike) -> Array:
    """Weights as shares: at least 0, and 1 together."""
    w = check_weights(weights)
    if (w < 0).any() or not w.any():
        raise ArgumentError(f"weights of this pool must be at least 0, and one of them above it, not {w}")
    shares: Array = w / w.sum()
    return shares


TRIM = 0.1
FACTOR = 3.0**0.5


class Settings(TypedDict, total=False):
    """Keyword arguments of every pool.

    Attributes
    ----------
    prior : float or array_like, shape (...), or (K,), (..., K) when K > 2, default 0.5 (1/K)
        The reference that the experts share.
    base_rate : same as `prior`, optional
        How frequent the event is where the answer is used.
    classes : int, default 2
        K. More than 2 need a last axis of that length.
    floor, pool_floor : float
        Floors (model.md, section 4).
    """

    prior: npt.ArrayLike | None
    base_rate: npt.ArrayLike | None
    classes: int
    floor: float
    pool_floor: float


# From what is said to pooled log-ratios, (T, K - 1).
Rule: TypeAlias = Callable[[Contrasts], Array]


def _pool(
    q: npt.ArrayLike,
    rule: Rule,
    weights: npt.ArrayLike | None = None,
    *,
    prior: npt.ArrayLike | None = None,
    base_rate: npt.ArrayLike | None = None,
    classes: int = 2,
    floor: float = FLOOR,
    pool_floor: float = POOL_FLOOR,
) -> Array:
    """Pool by a rule; `weights` are here to be counted only."""
    axes = 1 if classes == 2 else 2
    shape = np.shape(q)
    if len(shape) < axes or shape[-axes] == 0:
        raise ShapeError(f"forecasts need an axis of experts, at least one of them, and their shape is {shape}")
    experts = shape[-axes]
    if weights is not None and len(np.atleast_1d(weights)) != experts:
        raise ShapeError(f"{experts} experts need as many weights, and there are {len(np.atleast_1d(weights))}")
    if prior is None:
        prior = 0.5 if classes == 2 else np.full(classes, 1.0 / classes)
    batch = read_batch(q, prior, experts, classes)
    pooled = batch.reference.copy()
    for rows, contrast in contrasts_in(batch, floor):
        pooled[rows] = rule(contrast)
    pooled += base_rate_shift(base_rate, batch)
    return batch.shape_answers(logodds.pooled_probabilities(pooled, batch.prior, pool_floor))


def average_pool(q: npt.ArrayLike, **settings: Unpack[Settings]) -> Array:
    """AvgOps: the mean probability.

    >>> average_pool([[0.9, 0.6, 0.1], [0.9, float("nan"), 0.1]]).round(5)
    array([0.53333, 0.5    ])
    """
    return linear_pool(q, **settings)


def linear_pool(q: npt.ArrayLike, weights: npt.ArrayLike | None = None, **settings: Unpack[Settings]) -> Array:
    """LinOps (1): a weighted mean of probabilities.

    Parameters
    ----------
    q : array_like, shape (..., N), or (..., N, K)
    weights : array_like, shape (N,), optional
        At least 0, and one above it; their sum does not matter. Equal if not given. Where experts are missing, those
        present are renormalised; where all who are present have weight 0, they count equally.
    **settings : Settings

    Raises
    ------
    ArgumentError, ShapeError, ProbabilityError
        If a weight is negative or none positive, or arguments do not fit together or are out of range.

    Examples
    --------
    >>> float(linear_pool([0.8, float("nan"), 0.6], [0.5, 0.3, 0.2]).round(5))
    0.74286
    """
    shares = None if weights is None else check_shares(weights)

    def rule(contrast: Contrasts) -> Array:
        return logodds.prior_log_ratios(_weighted(contrast.shares(shares), contrast.probabilities))

    return _pool(q, rule, shares, **settings)


def geometric_pool(q: npt.ArrayLike, weights: npt.ArrayLike | None = None, **settings: Unpack[Settings]) -> Array:
    """The geometric mean of odds: a weighted mean of log-odds.

    For K > 2 it is the normalised geometric mean of probabilities. Unlike the geometric mean of the probabilities of
    one class, it answers complements with the complement.

    Parameters
    ----------
    q, weights, **settings
        As for `linear_pool`.

    Examples
    --------
    >>> geometric_pool([[0.9, 0.6, 0.1], [0.1, 0.4, 0.9]]).round(5)
    array([0.53374, 0.46626])
    """
    shares = None if weights is None else check_shares(weights)

    def rule(contrast: Contrasts) -> Array:
        return contrast.reference + _weighted(contrast.shares(shares), contrast.contrasts)

    return _pool(q, rule, shares, **settings)


def median_pool(q: npt.ArrayLike, **settings: Unpack[Settings]) -> Array:
    """The median probability; of an even number of forecasts, the mean of the middle two.

    For K > 2 the medians of the classes are rescaled to sum to 1.

    >>> median_pool([[0.9, 0.6, 0.1], [0.9, 0.6, float("nan")]]).round(5)
    array([0.6 , 0.75])
    """
    return trimmed_pool(q, 0.5, **settings)


def trimmed_pool(q: npt.ArrayLike, trim: float = TRIM, **settings: Unpack[Settings]) -> Array:
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
    >>> float(trimmed_pool([0.9, 0.6, 0.1]).round(5))
    0.54167
    """
    if not 0 <= trim <= 0.5:
        raise ArgumentError(f"trim is the fraction cut off at each end, from 0 to 0.5, and it is {trim!r}")

    def rule(contrast: Contrasts) -> Array:
        p = np.where(contrast.present[..., None], contrast.probabilities, np.inf)
        p.sort(axis=1)
        p = p[:, : contrast.count.max(initial=0)]
        shares = _rank_shares(contrast.count, trim)
        return logodds.prior_log_ratios(_weighted(shares, np.where(np.isinf(p), 0.0, p)))

    return _pool(q, rule, **settings)


def independent_pool(q: npt.ArrayLike, **settings: Unpack[Settings]) -> Array:
    """IndOps (23): experts whose evidence is independent given the outcome; L* = L° + Σ (L_i − L°).

    The sum is over those present, so the prior is counted once however many they are.

    >>> independent_pool([[0.2, 0.2, 0.2], [0.2, 0.2, float("nan")]], prior=0.1).round(5)
    array([0.55862, 0.36   ])
    """
    return _pool(q, lambda contrast: contrast.reference + contrast.contrasts.sum(axis=1), **settings)


def log_pool(
    q: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    intercept: npt.ArrayLike = 0.0,
    **settings: Unpack[Settings],
) -> Array:
    """LogOps (2): L* = L° + a + Σ w_i (L_i − L°).

    That is w₀ + Σ w_i L_i with w₀ = a + (1 − Σ w_i) L°. A missing expert contributes a contrast of 0, as if
    repeating the prior; the weights of the others stay what they are.

    Parameters
    ----------
    q : array_like, shape (..., N), or (..., N, K)
    weights : array_like, shape (N,), optional
        Any numbers; 1/N each if not given.
    intercept : float, or array_like, shape (K,), when K > 2, default 0.0
        a, in log-odds; K > 2: in log-probabilities, of which only differences between classes count.
    **settings : Settings

    Raises
    ------
    ArgumentError, ShapeError, ProbabilityError
        If a weight is not finite, or arguments do not fit together or are out of range.

    Examples
    --------
    >>> float(log_pool([0.8, 0.7], [0.5, 0.8], prior=0.6).round(4))
    0.7772
    """
    w = None if weights is None else check_weights(weights)
    a = _intercept(intercept, settings.get("classes", 2))

    def rule(contrast: Contrasts) -> Array:
        n = contrast.contrasts.shape[1]
        return contrast.reference + a + _weighted(np.full(n, 1.0 / n) if w is None else w, contrast.contrasts)

    return _pool(q, rule, w, **settings)


def extremized_pool(q: npt.ArrayLike, factor: float = FACTOR, **settings: Unpack[Settings]) -> Array:
    """The mean log-odds of those present moved away from the prior: L* = L° + factor · mean(L_i − L°).

    Away from the prior, not from 50%: what all experts share is not evidence.

    Parameters
    ----------
    q : array_like, shape (..., N), or (..., N, K)
    factor : float, default √3
        At least 0; above 1 to extremise. √3 is what the factor of Neyman & Roughgarden (2021), "Are you smarter than
        a random expert?", tends to with many forecasters; Satopää et al. (2014), "Combining multiple probability
        predictions using a simple logit model", Int. J. Forecasting 30, estimated 1.16 to 3.92.
    **settings : Settings

    Raises
    ------
    ArgumentError, ShapeError, ProbabilityError
        If the factor is negative, or arguments do not fit together or are out of range.

    Examples
    --------
    >>> float(extremized_pool([0.3, 0.2], prior=0.1).round(4))
    0.4192
    """
    if not 0 <= factor < np.inf:
        raise ArgumentError(f"the extremising factor must be a finite number, at least 0, and it is {factor!r}")
    return recalibrated_pool(q, slope=factor, **settings)


def recalibrated_pool(
    q: npt.ArrayLike, intercept: npt.ArrayLike = 0.0, slope: float = 1.0, **settings: Unpack[Settings]
) -> Array:
    """The mean log-odds of those present, recalibrated: L* = L° + a + b · mean(L_i − L°).

    Parameters
    ----------
    q : array_like, shape (..., N), or (..., N, K)
    intercept : float, or array_like, shape (K,), when K > 2, default 0.0
        a, in log-odds; K > 2: in log-probabilities, of which only differences between classes count.
    slope : float, default 1.0
        b.
    **settings : Settings

    Raises
    ------
    ArgumentError, ShapeError, ProbabilityError
        If the slope is not finite, or arguments do not fit together or are out of range.

    Examples
    --------
    >>> float(recalibrated_pool([0.8, 0.8], intercept=-0.1, slope=0.9).round(5))
    0.75908
    """
    if not np.isfinite(slope):
        raise ArgumentError(f"the slope of a recalibration must be finite, and it is {slope!r}")
    a = _intercept(intercept, settings.get("classes", 2))
    return _pool(q, lambda contrast: contrast.reference + a + slope * contrast.mean_contrast, **settings)


def beta_linear_pool(
    q: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    a: float = 1.0,
    b: float = 1.0,
    **settings: Unpack[Settings],
) -> Array:
    """The linear pool transformed by the distribution function of a beta distribution, for two classes.

    Ranjan & Gneiting (2010), "Combining probability forecasts", J. R. Stat. Soc. B 72: a linear pool of calibrated
    forecasts is underconfident, and a = b > 1 moves it away from ½.

    Parameters
    ----------
    q : array_like, shape (..., N)
    weights : array_like, shape (N,), optional
        As for `linear_pool`.
    a, b : float, default 1.0
        Parameters of the beta distribution, above 0. 1 and 1 leave the linear pool as it is.
    **settings : Settings

    Raises
    ------
    ArgumentError, ShapeError, ProbabilityError
        If there are more than two classes, a parameter is not above 0, or as for `linear_pool`.

    Examples
    --------
    >>> float(beta_linear_pool([0.7, 0.9], a=2, b=2).round(3))
    0.896
    """
    if settings.get("classes", 2) != 2:
        raise ArgumentError(f"the beta-linear pool is for two classes, and there are {settings['classes']}")
    shares = None if weights is None else check_shares(weights)

    def rule(contrast: Contrasts) -> Array:
        p = _weighted(contrast.shares(shares), contrast.probabilities)
        # By both tails: neither is lost to rounding.
        tails = np.stack([beta_transform(p[:, 0], b, a), beta_transform(p[:, 1], a, b)], axis=-1)
        return logodds.prior_log_ratios(np.maximum(tails, np.finfo(np.float64).tiny))

    return _pool(q, rule, shares, **settings)


def _intercept(intercept: npt.ArrayLike, classes: int) -> Array:
    """An intercept as log-ratios, (K - 1,)."""
    a = as_numbers(intercept, "intercept", ArgumentError)
    if a.shape not in {(), (classes,) if classes > 2 else ()} or not np.isfinite(a).all():
        raise ShapeError(f"the intercept of {classes} classes must be finite and of shape {(classes,)}, not {a}")
    return a.reshape(1) if classes == 2 else logodds.uncentred(np.broadcast_to(a, classes))


def _weighted(weights: Array, values: Array) -> Array:
    """Sums over the experts: (N,) or (T, N) weights, (T, N, D) values."""
    shares = np.broadcast_to(weights, values.shape[:2])
    return np.asarray(np.einsum("tn,tnd->td", shares, values))


def _rank_shares(count: npt.NDArray[np.intp], trim: float) -> Array:
    """The shares of (T,) numbers of forecasts by rank, 0 behind the last, (T, max n)."""
    n = count[:, None]
    # Beyond half of the others, only the middle one or two are left, and they count equally.
    cut = np.minimum(trim * n, np.maximum(n - 1, 0) // 2)
    rank = np.arange(count.max(initial=0))
    kept: Array = np.clip(np.minimum(rank + 1, n - cut) - np.maximum(rank, cut), 0.0, None)
    shares: Array = kept / np.maximum(n - 2.0 * cut, 1.0)
    return shares
