"""Conversion of scikit-learn's arguments: forecasts as columns, labels of outcomes, and times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from opinionpool.arrays import Array, NotANumberError, as_array, as_numbers, times_of_cells, unmasked
from opinionpool.errors import OpinionPoolError, OutcomeError, ShapeError
from opinionpool.estimators.inputs import ExpertColumns, column_names
from opinionpool.forecasts import Forecasts
from opinionpool.labels import Labels, read_labels
from opinionpool.names import numbered
from opinionpool.scales import Scale, coded

# Arrays, lists, series and data frames of any library that scikit-learn takes; where it says so, also `Forecasts`.
Given: TypeAlias = Any
# More events than this are answered in parts.
EVENTS = 1 << 17


@contextmanager
def in_our_terms(name: str, error: type[OpinionPoolError] = ShapeError) -> Iterator[None]:
    """Context manager that converts scikit-learn's errors about the argument `name` into `error`, with their text."""
    try:
        yield
    except OpinionPoolError:
        raise
    except TypeError as problem:
        raise NotANumberError(f"{name}: {problem}") from None
    except ValueError as problem:
        raise error(f"{name}: {problem}") from None


def experts_of(X: Given, fitted: ExpertColumns | None) -> tuple[str, ...]:
    """Names of the experts in the columns of X: the columns' names, else the names of the fit by position."""
    width = np.shape(X)[1] if np.ndim(X) == 2 else 1
    by_place = fitted.experts if fitted is not None and len(fitted.experts) == width else numbered(width)
    return column_names(X) or by_place


def columns_of(
    X: Given, estimator: BaseEstimator, scales: Mapping[str, Scale], fitted: ExpertColumns | None = None
) -> Array:
    """X as float64, (T, C) or (T, N, K), with levels as probabilities; a vector becomes one column for one expert.

    `fitted` are the columns of the fit, where X is to be answered. Raises ShapeError or NotANumberError if X is no
    array of numbers, or lacks an axis.
    """
    if scales and not hasattr(X, "toarray"):
        X = coded(X, experts_of(X, fitted), scales)
    if type(X) is np.ndarray and X.ndim == 2:
        if fitted is not None and X.dtype in (np.float64, np.float32) and X.size > EVENTS:
            # What `check_array` would look for, whoever pools finds too.
            return X
        if X.dtype == np.float64 and X.size and X.min() >= 0 and X.max() <= 1:
            # Nothing of it is here; the least is NaN where one is.
            return X
    # What scikit-learn says of sparse matrices is what its users know.
    given = X if hasattr(X, "toarray") else as_numbers(X)
    with in_our_terms("X"):
        array = check_array(
            given,
            dtype=np.float64,
            ensure_all_finite="allow-nan",
            ensure_2d=False,
            allow_nd=True,
            ensure_min_samples=1 if fitted is None else 0,
            estimator=estimator,
            input_name="X",
        )
    if array.ndim == 1:
        if fitted is not None and fitted.count > 1:
            raise ShapeError(
                f"X has one axis, and there are {len(fitted.experts)} experts. Reshape your data: "
                "array.reshape(1, -1) if it is a single event"
            )
        array = array.reshape(-1, 1)
    return np.asarray(array)


def labels_of(y: Given, events: int, who: str, classes: Given = None) -> tuple[Labels, npt.NDArray[np.bool_]]:
    """Labels of the resolved events, and mask of the resolved events, (T,).

    Raises OutcomeError if `y` is not a column of labels, one for each event.
    """
    if y is None:
        raise OutcomeError(f"This {who} estimator requires y to be passed, but the target y is None.")
    if type(y) is np.ndarray and y.dtype.kind in "biuf" and y.shape == (events,):
        # What scikit-learn would look for is not there.
        column = y
    else:
        with in_our_terms("y", OutcomeError):
            y = unmasked(y, None)
            column = column_or_1d(np.asarray(y, dtype=object if isinstance(y, (list, tuple)) else None), warn=True)
            check_consistent_length(np.empty((events, 0)), column)
    return read_labels(column, () if classes is None else as_array(classes, "classes").ravel().tolist())


def timed(
    forecasts: Forecasts, layout: ExpertColumns, names: tuple[str, ...] | None, times: Given, who: str
) -> Forecasts:
    """The forecasts with the time at which each was made."""
    by_expert = times_by_expert(times, np.empty((len(forecasts.events), 0)), layout, names, who)
    return replace(forecasts, made=by_expert[forecasts.event_index, forecasts.expert_index])


def times_by_expert(
    times: Given, forecasts: Array, layout: ExpertColumns, names: tuple[str, ...] | None, who: str
) -> npt.NDArray[np.datetime64]:
    """Time at which each forecast was made, (T, N), from columns like those of X or a column per expert.

    Raises ShapeError or ArgumentError if there is not one for each.
    """
    given = np.asarray(times)
    read = times_of_cells(given, (len(forecasts), given.shape[1] if given.ndim == 2 else len(layout.experts)))
    # Columns are arranged as numbers, NaN where nothing is known.
    numbers = np.where(np.isnat(read), np.nan, read.astype(np.int64))
    if layout.width == 1:
        numbers = layout.arrange(numbers, names, who)
    elif numbers.shape[1] != len(layout.experts):
        raise ShapeError(f"{len(layout.experts)} experts need as many columns of times, not {numbers.shape[1]}")
    return np.where(np.isnan(numbers), np.iinfo(np.int64).min, np.nan_to_num(numbers)).astype("datetime64[us]")


def label_array(labels: tuple[object, ...]) -> Labels:
    """Labels as an array of their own type if they share one, else of objects."""
    same = len({type(label) for label in labels}) == 1
    return np.array(labels) if same else np.array(labels, dtype=object)
