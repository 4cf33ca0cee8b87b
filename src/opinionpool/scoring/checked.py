"""Forecasts and outcomes as scores take them: their forms, and what is refused."""

from __future__ import annotations

from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, as_array, as_numbers, frequencies, is_blank, unmasked
from opinionpool.errors import LearningError, OutcomeError, ProbabilityError, ShapeError
from opinionpool.logodds import (
    SUM_TOLERANCE,
    check_all_or_none,
    check_probabilities,
)
from opinionpool.text import listed

Outcomes: TypeAlias = npt.NDArray[Any]


def shaped(p: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Array, Outcomes]:
    """Forecasts and outcomes whose shapes fit; values are checked for forecasts in columns only.

    Returns
    -------
    forecasts : ndarray of float64, shape (T,) when binary, else (T, K) with rows that sum to 1
    outcomes : ndarray, shape (T,)
        Integers, floats or booleans, not copied where they came as an array. Labels that are text are numbered in
        sorted order, as scikit-learn has the columns of their probabilities.

    Raises
    ------
    ShapeError, ProbabilityError, OutcomeError
        If these are no forecasts, or the outcomes are not numbers, or there are more of one than of the other.
    """
    forecasts = np.atleast_1d(as_numbers(p, "forecast"))
    if forecasts.ndim > 1:
        forecasts = _columns(forecasts)
    outcomes = _numbers(unmasked(y, None), number_of_classes(forecasts))
    if outcomes.shape != forecasts.shape[:1]:
        raise ShapeError(f"{len(forecasts)} forecasts need as many outcomes, not shape {outcomes.shape}")
    return forecasts, outcomes


def checked(p: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Array, Outcomes]:
    """As `shaped`, with every forecast in [0, 1] or NaN and every outcome a class number or NaN."""
    forecasts, outcomes = shaped(p, y)
    check_probabilities(forecasts, "forecast")
    check_classes(outcomes, number_of_classes(forecasts))
    return forecasts, outcomes


def number_of_classes(forecasts: Array) -> int:
    """K of forecasts from `checked`."""
    return 2 if forecasts.ndim == 1 else forecasts.shape[1]


def check_binary(forecasts: Array, remedy: str) -> None:
    """Raise a `ShapeError` that ends in `remedy` unless there are two classes."""
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
        raise OutcomeError(
            f"each outcome must be a class number 0 to {classes - 1}, or NaN where not resolved, and outcome "
            f"{where} is {value:.15g}{hint}"
        )


def unresolved(outcomes: Outcomes) -> npt.NDArray[np.bool_]:
    """Which events have no outcome, (T,)."""
    return np.asarray(np.isnan(outcomes)) if outcomes.dtype.kind == "f" else np.zeros(outcomes.shape, dtype=bool)


def of_outcome(table: Array, outcomes: Outcomes) -> Array:
    """The entry of a (K,) or (T, K) table for each outcome; NaN where not resolved."""
    absent = unresolved(outcomes)
    codes = np.where(absent, 0, outcomes).astype(np.intp) if absent.any() else outcomes.astype(np.intp, copy=False)
    entries = table[codes] if table.ndim == 1 else np.take_along_axis(table, codes[:, None], axis=1)[:, 0]
    entries[absent] = np.nan
    return entries


def binary_events(
    p: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
) -> tuple[Array, Array, Array]:
    """Forecasts, outcomes and weights of the binary events that are resolved and have a forecast and a weight.

    Raises
    ------
    LearningError
        If there is no such event.
    """
    forecasts, outcomes = checked(p, y)
    check_binary(forecasts, "judge one class against the rest: p[:, k] and y == k")
    weight = frequencies(sample_weight, len(forecasts))
    kept = ~(np.isnan(forecasts) | unresolved(outcomes)) & (weight > 0)
    if not kept.any():
        raise LearningError("no event is resolved and has a forecast and a positive weight, so nothing can be judged")
    return forecasts[kept], np.asarray(outcomes[kept], dtype=np.float64), weight[kept]


def _columns(q: Array) -> Array:
    """Forecasts with a column per class, checked and normalised; (T,) when there are two."""
    if q.ndim != 2 or q.shape[1] < 2:
        raise ShapeError(f"forecasts need shape (T,), or (T, K) with a column per class, not {q.shape}")
    check_probabilities(q, "forecast")
    check_all_or_none(q)
    total = q.sum(axis=1)
    off = np.flatnonzero(np.abs(total - 1) > SUM_TOLERANCE)
    if len(off):
        raise ProbabilityError(
            f"each forecast must sum to 1 over the classes, and row {off[0]} sums to {total[off[0]]:.15g}; "
            "score several experts one at a time"
        )
    return np.asarray(q[:, 1] / total if q.shape[1] == 2 else q / total[:, None])


def _numbers(y: npt.ArrayLike, classes: int) -> Outcomes:
    """Outcomes as an array of numbers, NaN for None; text as positions in the sorted labels, if all are there."""
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
