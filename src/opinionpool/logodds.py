"""Conversion of probabilities to log-ratios and back, with the floors (model.md, sections 3 and 4).

Inside opinionpool a forecast is its K - 1 log-ratios ``log(q_k / q_0)``, k = 1 .. K - 1, on a last axis of
that length. Binary forecasts are K = 2: one log-odds. Inner products use the metric 2 (I - 11'/K), which
makes them independent of the reference class and is 1 when K = 2.
"""

from __future__ import annotations

from functools import lru_cache
from numbers import Real

import numpy as np
import numpy.typing as npt

from opinionpool.arguments import brief
from opinionpool.arrays import Array, as_numbers, read_only
from opinionpool.errors import ProbabilityError, ShapeError

FLOOR = 1e-4
POOL_FLOOR = 1e-8
# Deviation from a sum of 1 up to which class probabilities are normalised.
SUM_TOLERANCE = 1e-4
# The least prior or floor: a hundredth of it is still an ordinary float, and so is one over that.
LEAST = 1e-300
# Positive number in place of 0 for a class that is no option.
TINY = float(np.finfo(np.float64).tiny)


def expit(x: npt.ArrayLike) -> Array:
    """Return the probability with log-odds `x`, computed without overflow.

    >>> expit([-1000.0, 0.0])
    array([0. , 0.5])
    """
    x = np.asarray(x, dtype=np.float64)
    small = np.exp(-np.abs(x))
    found = np.maximum(small, x >= 0)
    small += 1.0
    found /= small
    return np.asarray(found)


def logit(p: npt.ArrayLike) -> Array:
    """Return the log-odds of probability `p`: infinite for 0 and 1, NaN for NaN.

    >>> logit([0.5, 0.0])
    array([  0., -inf])
    """
    p = np.asarray(p, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p / (1.0 - p)))


def check_probabilities(q: npt.ArrayLike, what: str = "probability") -> Array:
    """Return `q` as float64, checked to be NaN or in [0, 1]; masked values become NaN.

    A ProbabilityError names the first value outside [0, 1] and its position.
    """
    q = as_numbers(q, what)
    if q.size and q.min() >= 0 and q.max() <= 1:
        # The least is NaN where one is.
        return q
    bad = (q < 0) | (q > 1)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        value = float(q[where])
        hint = "; a percentage must be divided by 100 first" if 1 < value <= 100 else ""
        if hint and what == "probability" and (q[q > 1] % 1 == 0).all():
            hint += ", and levels of a scale be declared: scale='1-5'"
        if value < 0 and what == "probability":
            hint = "; log-odds x are the probability 1 / (1 + exp(-x))"
        place = f" at position {where if len(where) > 1 else where[0]}" if where else ""
        raise ProbabilityError(f"each {what} must lie in [0, 1], and{place} it is {value:.15g}{hint}")
    return q


def check_all_or_none(q: Array) -> npt.NDArray[np.bool_]:
    """Return the mask (...) of forecasts `q` (..., K) that are NaN for all classes; a ShapeError if only for some."""
    blank = np.isnan(q)
    missing = blank.all(axis=-1)
    if (blank.any(axis=-1) != missing).any():
        raise ShapeError("a forecast must give a probability for every class or for none")
    return np.asarray(missing)


def normalised(q: Array) -> tuple[Array, int]:
    """Return forecasts (..., K) scaled to sum to 1 over classes, and how many of them were off by more than 1e-4.

    A row may be off by half a unit of its last written digit per class, or by 1e-4. Raises ShapeError if a row gives a
    probability for some classes only. Raises ProbabilityError if a row is off by more.

    >>> import numpy as np
    >>> normalised(np.array([[0.33, 0.33, 0.33]]))[0].round(4)
    array([[0.3333, 0.3333, 0.3333]])
    """
    check_all_or_none(q)
    total = q.sum(axis=-1)
    off = np.abs(total - 1.0) > SUM_TOLERANCE
    if off.any():
        rows = q[off]
        allowed = np.full(len(rows), SUM_TOLERANCE)
        for digits in (3, 2, 1):
            written = (np.abs(rows - rows.round(digits)) < 1e-9).all(axis=-1)
            allowed[written] = 0.5 * q.shape[-1] * 10.0**-digits
        bad = np.abs(total[off] - 1.0) > allowed + 1e-12
        if bad.any() or not (total[off] > 0).all():
            worst = float(total[off][bad][0]) if bad.any() else 0.0
            raise ProbabilityError(
                f"the probabilities of {q.shape[-1]} classes must sum to 1 up to rounding, and in one row they sum to "
                f"{worst:.15g}; the classes of an expert stand side by side, in the order of the classes"
            )
    return np.asarray(q / total[..., None]), int(off.sum())


def class_probabilities(p: npt.ArrayLike, classes: int = 2, what: str = "prior") -> Array:
    """Return a prior `p`, in the form in which users give it, as checked probabilities of all classes, (..., K).

    Raises ProbabilityError unless 1e-300 <= p < 1 everywhere and, for K > 2, the rows sum to 1 within 1e-4 (then
    normalised). Raises ShapeError if the last axis of a K > 2 prior is not K long.

    `p` has the probability of the second of two classes, (...), or of each of K > 2 classes, (..., K). In a prior of
    one event, a 0 for a class other than the first means that the class is no option of the event.
    """
    p = as_numbers(p, what)
    outside = ~((p >= LEAST) & (p < 1))
    if classes > 2 and p.ndim > 1 and p.shape[-1] == classes:
        outside[..., 1:] &= p[..., 1:] != 0
    if outside.any():
        value = float(p[outside].flat[0])
        rule = f"be at least {LEAST:g}" if 0 < value < LEAST else "lie strictly between 0 and 1"
        raise ProbabilityError(f"the {what} must {rule}, and it is {value:.15g}")
    if classes == 2:
        return all_classes(p, 2)
    if p.ndim == 0 or p.shape[-1] != classes:
        raise ShapeError(f"the {what} of {classes} classes needs {classes} values on its last axis, not {p.shape}")
    total = p.sum(axis=-1, keepdims=True)
    off = np.abs(total - 1) > SUM_TOLERANCE
    if off.any():
        raise ProbabilityError(f"the {what} must sum to 1 over the classes, and it sums to {total[off].flat[0]:.15g}")
    return np.asarray(p / total)


def prior_log_ratios(p: Array) -> Array:
    """Return log(p_k / p_0) (..., K - 1) of class probabilities (..., K) with p_0 > 0; finite even where p_k = 0."""
    return np.asarray(np.log(np.maximum(p[..., 1:] / p[..., :1], TINY)))


def no_options(prior: Array) -> npt.NDArray[np.bool_] | None:
    """Return the mask (..., K - 1) of classes after the first whose `prior` (..., K) is 0; None if no class has 0.

    >>> no_options(np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]))
    array([[False,  True],
           [False, False]])
    """
    absent = prior[..., 1:] == 0
    return absent if absent.any() else None


def levelled(ratios: Array, absent: npt.NDArray[np.bool_]) -> Array:
    """Return `ratios` with the options' mean in place of those of classes that are `absent` among the event's options.

    The `ratios`, (..., K - 1), are log-ratios less the prior's. If they are centred over the options, they are then
    centred over all classes too, so that inner products are as if there were only the options.

    >>> levelled(np.array([[0.3, 99.0], [0.3, 0.6]]), np.array([[False, True], [False, False]]))
    array([[0.3 , 0.15],
           [0.3 , 0.6 ]])
    """
    options = 1 + (~absent).sum(axis=-1)
    level = np.where(absent, 0.0, ratios).sum(axis=-1) / options
    return np.where(absent, level[..., None], ratios)


def check_floor(floor: object, name: str = "a floor") -> None:
    """Raise a ProbabilityError, which calls it `name`, unless `floor` is a number from 1e-300 to below 1."""
    if not isinstance(floor, Real) or not LEAST <= float(floor) < 1:
        raise ProbabilityError(
            f"{name} must lie strictly between 0 and 1, at {LEAST:g} or above, and it is {brief(floor)}"
        )


def class_floors(floor: float, prior: Array, divisor: float) -> Array:
    """Return the floor of each class's probability, min(floor, prior / divisor), (..., K)."""
    check_floor(floor)
    floors = np.minimum(floor, prior / divisor)
    total = floors.sum(axis=-1)
    if (total >= 1).any():
        raise ProbabilityError(f"floors must sum to less than 1 over the classes: {floor!r} is too large")
    return np.asarray(floors)


def raise_to_floors(q: Array, floors: Array) -> Array:
    """Return max(floor_k, lambda q_k), (..., K), with lambda such that they sum to 1 (model.md, section 4)."""
    floors = np.broadcast_to(floors, q.shape)
    low = q < floors
    rows = low.any(axis=-1)
    if not rows.any():
        return q
    part, floor, fixed = q[rows], floors[rows], low[rows]
    while True:
        free = np.where(fixed, 0.0, part)
        scale = (1 - np.where(fixed, floor, 0.0).sum(axis=-1)) / free.sum(axis=-1)
        raised = np.where(fixed, floor, part * scale[..., None])
        lower = raised < floor
        if not lower.any():
            break
        fixed = fixed | lower
    q = q.copy()
    q[rows] = raised
    return q


def log_ratios(q: Array, prior: Array, floor: float = FLOOR) -> Array:
    """Return log-ratios (..., K - 1) of `q`, (..., K) or (...) if K = 2, raised to floors min(floor, prior / 100).

    NaN where a forecast is missing. `prior` (..., K) is 0 for classes that are no options of an event; their log-ratios
    less the prior's are the mean of those of the options.

    >>> import numpy as np
    >>> log_ratios(np.array([0.8, 0.0, np.nan]), np.array([0.5, 0.5])).ravel().round(4)
    array([ 1.3863, -9.2102,     nan])
    """
    floors = class_floors(floor, prior, 100.0)
    if prior.shape[-1] == 2:
        ratios, ends = logit(q), np.log(floors) - np.log1p(-floors)
        return np.asarray(np.clip(ratios, ends[..., 1], -ends[..., 0], out=ratios if ratios.ndim else None))[..., None]
    q = q / q.sum(axis=-1, keepdims=True)
    ratios = prior_log_ratios(raise_to_floors(q, floors))
    absent = no_options(prior)
    if absent is None:
        return ratios
    reference = prior_log_ratios(prior)
    return reference + levelled(ratios - reference, absent)


def pooled_probabilities(ratios: Array, prior: Array, floor: float = POOL_FLOOR) -> Array:
    """Return class probabilities (..., K) of pooled log-ratios (..., K - 1), each at least min(floor, prior).

    >>> import numpy as np
    >>> pooled_probabilities(np.array([[-900.0], [0.0]]), np.array([0.5, 0.5])).tolist()
    [[0.99999999, 1e-08], [0.5, 0.5]]
    """
    floors = class_floors(floor, prior, 1.0)
    if prior.shape[-1] == 2:
        return np.asarray(np.clip(softmax(ratios), floors, 1.0 - floors[..., ::-1]))
    p = softmax(ratios)
    if no_options(prior) is not None:
        p = np.where(prior > 0, p, 0.0)
    return raise_to_floors(p, floors)


def softmax(ratios: Array) -> Array:
    """Return class probabilities (..., K) of finite log-ratios (..., K - 1), without floors."""
    if ratios.shape[-1] == 1:
        p = np.empty((*ratios.shape[:-1], 2))
        p[..., 0], p[..., 1] = expit(-ratios[..., 0]), expit(ratios[..., 0])
        return p
    full = np.concatenate([np.zeros((*ratios.shape[:-1], 1)), ratios], axis=-1)
    full -= full.max(axis=-1, keepdims=True)
    np.exp(full, out=full)
    return np.asarray(full / full.sum(axis=-1, keepdims=True))


def centred(ratios: Array) -> Array:
    """Return log-probabilities (..., K), less their mean over classes, for log-ratios (..., K - 1)."""
    full = np.concatenate([np.zeros((*ratios.shape[:-1], 1)), ratios], axis=-1)
    return np.asarray(full - full.mean(axis=-1, keepdims=True))


def public_probabilities(p: Array) -> Array:
    """Return class probabilities (..., K) in the form for users: only the second class's, (...), if K = 2."""
    return np.asarray(p[..., 1]) if p.shape[-1] == 2 else p


def all_classes(p: Array, classes: int) -> Array:
    """Probabilities of all classes, (..., K), from `p`, which has only the second class's, (...), if K = 2."""
    return np.stack([1.0 - p, p], axis=-1) if classes == 2 else p


def public_log_odds(ratios: Array) -> Array:
    """Return log-ratios in the form for users: log-odds (...) if K = 2, else centred log-probabilities (..., K)."""
    return np.asarray(ratios[..., 0]) if ratios.shape[-1] == 1 else centred(ratios)


def uncentred(full: Array) -> Array:
    """Return log-ratios log(q_k / q_0) (..., K - 1) of log-probabilities (..., K), to which a constant may be added."""
    return np.asarray(full[..., 1:] - full[..., :1])


@lru_cache(maxsize=16)
def metric(classes: int) -> Array:
    """Matrix M = 2 (I − 11'/K), (K - 1, K - 1), of the inner product a' M b of two forecasts' log-ratios a and b."""
    return read_only(2.0 * (np.eye(classes - 1) - 1.0 / classes))


def inner_products(a: Array, b: Array) -> Array:
    """Return a' M b, (...), of log-ratios `a` and `b` (..., K - 1), with M the `metric`, in time linear in K.

    >>> a, b = np.array([1.0, 2.0]), np.array([0.5, -1.0])
    >>> bool(np.isclose(inner_products(a, b), a @ metric(3) @ b))
    True
    """
    if a.shape[-1] == b.shape[-1] == 1:
        return np.asarray(a[..., 0] * b[..., 0])
    return np.asarray(2.0 * ((a * b).sum(axis=-1) - a.sum(axis=-1) * b.sum(axis=-1) / (a.shape[-1] + 1)))


def whitened(ratios: Array) -> Array:
    """Return coordinates (..., K - 1) whose ordinary inner products are those of the log-ratios under `metric`.

    >>> a = whitened(np.array([1.0, 2.0]))
    >>> bool(np.isclose(a @ a, inner_products(np.array([1.0, 2.0]), np.array([1.0, 2.0]))))
    True
    """
    # The metric of one log-odds is 1.
    return ratios if ratios.shape[-1] == 1 else np.asarray(ratios @ _metric_root(ratios.shape[-1] + 1))


def unwhitened(coordinates: Array) -> Array:
    """Return log-ratios (..., K - 1) from their `whitened` coordinates.

    >>> unwhitened(whitened(np.array([1.0, 2.0]))).round(9).tolist()
    [1.0, 2.0]
    """
    d = coordinates.shape[-1]
    return coordinates if d == 1 else np.asarray(coordinates @ np.linalg.inv(_metric_root(d + 1)))


@lru_cache(maxsize=16)
def _metric_root(classes: int) -> Array:
    return read_only(np.asarray(np.linalg.cholesky(metric(classes)), dtype=np.float64))


@lru_cache(maxsize=16)
def signature(classes: int) -> Array:
    """Return, in row c, the log-ratios of log-probabilities that are 1 for class c and 0 for others, (K, K - 1).

    A model's mean of a forecast's log-ratios less the prior's, given that class c happens, is a multiple of row c.

    >>> signature(2).ravel()
    array([-1.,  1.])
    """
    return read_only(uncentred(np.eye(classes)))
