"""Arguments of scikit-learn's methods: X as columns of experts and classes, y as labels, and times.

Columns are matched by name, rows of pandas objects by their index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from opinionpool.arguments import labels_given
from opinionpool.arrays import Array, NotANumberError, as_array, as_numbers, frequencies, times_of_cells, unmasked
from opinionpool.errors import ArgumentError, ExpertError, Note, OpinionPoolError, OutcomeError, ShapeError
from opinionpool.findings import finding
from opinionpool.forecasts import Forecasts
from opinionpool.labels import Labels, classes_of, label_text, read_labels
from opinionpool.logodds import SUM_TOLERANCE, normalised
from opinionpool.names import numbered, repeated, unknown_names
from opinionpool.scales import Scale, coded, scale_texts
from opinionpool.text import listed

# Arrays, lists, series and data frames of any library that scikit-learn takes; where it says so, also `Forecasts`.
Given: TypeAlias = Any
# More events than this are answered in parts.
EVENTS = 1 << 17


def column_names(X: object) -> tuple[str, ...] | None:
    """Return a data frame's column names or a series' name as text, else None; an ExpertError if one is repeated."""
    columns = getattr(X, "columns", None)
    if columns is not None:
        if not hasattr(columns, "get_indexer"):  # not pandas; pyarrow has the names elsewhere
            columns = getattr(X, "column_names", columns)
        names = tuple(str(name) for name in columns)
        twice = repeated(names)
        if twice is not None:
            raise ExpertError(f"the columns of X must have different names, and {twice!r} stands twice")
        return names
    name = getattr(X, "name", None)
    return (name,) if isinstance(name, str) and name and np.ndim(X) == 1 else None  # type: ignore[arg-type]


def row_keys(values: object) -> Given:
    """Return the index of a pandas object; None for anything else."""
    index = getattr(values, "index", None)
    return index if hasattr(index, "get_indexer") else None


def aligned(values: Given, keys: Given, what: str) -> Given:
    """Return `values` with rows in the order of `keys`, if both have an index; a ShapeError if their keys differ."""
    own = None if keys is None else row_keys(values)
    if own is None or own.equals(keys):
        return values
    if len(own) == len(keys) and own.is_unique and keys.is_unique:
        order = own.get_indexer(keys)
        if (order >= 0).all():
            return values.iloc[order]
    strange = keys.difference(own).append(own.difference(keys))
    text = f"{strange.tolist()[0]!r} is in one of them only" if len(strange) else "some keys are repeated"
    raise ShapeError(
        f"the index of X and the index of {what} must hold the same keys, and {text}; "
        f"reset both, or pass {what} as an array to pair rows by position"
    )


def event_weights(sample_weight: npt.ArrayLike | None, events: int) -> Array:
    """Return the weights of the events of a fit, (T,), the number of times that each counts; 1 if not given.

    Raises ShapeError or ArgumentError unless there is a weight for each event, finite, from 0, and one is above 0.
    """
    weight = frequencies(sample_weight, events)
    if events and not weight.any():
        raise ArgumentError("sample_weight must contain at least one weight above zero, and all are zero")
    return weight


@dataclass(frozen=True)
class ExpertColumns:
    """Layout of the columns of X: the experts, and their classes if each class has a column."""

    experts: tuple[str, ...]  # N names
    # names of the columns, expert by expert, the classes of each in the order of `classes`; None if they have no names
    columns: tuple[str, ...] | None
    classes: tuple[str, ...]  # K labels, as text
    width: int  # number of columns of each expert: K, or 1 if a column has the probability of the second of two classes
    # whether events have options of their own, of which classes are the positions, so that K may differ
    own: bool = False
    scales: Mapping[str, str] | None = None  # scales, as text, of experts who gave levels

    @classmethod
    def of_columns(cls, names: tuple[str, ...] | None, count: int, labels: Labels, deep: bool) -> ExpertColumns:
        """Return the layout of `count` columns; if `deep`, experts and classes were two axes of the array X.

        Raises ShapeError if the number of columns is not a multiple of the number of classes.
        """
        classes = tuple(label_text(label) for label in labels.tolist())
        k = len(classes)
        if names is not None:
            named, found = experts_by_class(names)
            if {*found} == {*classes}:
                return cls(named, tuple(f"{expert}:{label}" for expert in named for label in classes), classes, k)
        if k == 2 and not deep:
            return cls(numbered(count) if names is None else names, names, classes, 1)
        if count % k:
            raise ShapeError(
                f"forecasts on {k} classes need {k} columns for each expert, and X has {count} columns; give X of "
                "shape (events, experts, classes), or flatten it expert by expert"
            )
        return cls(numbered(count // k), names, classes, k)

    @classmethod
    def of_forecasts(cls, forecasts: Forecasts) -> ExpertColumns:
        """Return the layout of the dense array of `forecasts`."""
        classes, experts = tuple(label_text(label) for label in forecasts.classes), forecasts.experts
        own, scales = forecasts.options is not None, scale_texts(forecasts.scales) or None
        if len(classes) == 2:
            return cls(experts, experts, classes, 1, own, scales)
        columns = tuple(f"{expert}:{label}" for expert in experts for label in classes)
        return cls(experts, columns, classes, len(classes), own, scales)

    def widened(self, experts: tuple[str, ...]) -> ExpertColumns:
        """Return the layout with columns for the new ones among `experts`."""
        if experts == self.experts:
            return self
        columns = experts if self.width == 1 else tuple(f"{e}:{label}" for e in experts for label in self.classes)
        return replace(self, experts=experts, columns=columns)

    @property
    def count(self) -> int:
        """Number of columns of X."""
        return len(self.experts) * self.width

    def arrange(self, q: Array, names: tuple[str, ...] | None, who: str) -> Array:
        """Return columns `q` (T, C) with `names` in this layout's order, NaN for absent ones; unchanged if not named.

        Raises ExpertError for a column of an unknown expert, and ShapeError for a wrong number of columns without
        names.
        """
        if names is None or self.columns is None:
            if q.shape[1] != self.count:
                raise ShapeError(f"X has {q.shape[1]} features, but {who} is expecting {self.count} features as input")
            return q
        position = {name: i for i, name in enumerate(names)}
        unknown = unknown_names(names, self.columns)
        if unknown:
            raise ExpertError(
                f"the columns of X must be those of fit, or some of them, and column {unknown[0]!r} was not there in "
                "fit; leave it out"
            )
        if names == self.columns:
            return q
        placed = np.full((len(q), self.count), np.nan)
        for i, name in enumerate(self.columns):
            if name in position:
                placed[:, i] = q[:, position[name]]
        return placed

    def forecasts(self, columns: Array) -> tuple[Array, int]:
        """Arranged `columns` as forecasts (T, N), or (T, N, K) if K > 2, and how many were rescaled to sum to 1."""
        if self.width == 1:
            return columns, 0
        q, rounded = normalised(columns.reshape(len(columns), len(self.experts), self.width))
        return (q[..., 1] if self.width == 2 else q), rounded

    def check(self, forecasts: Forecasts) -> None:
        """Raise an ExpertError or an OutcomeError if `forecasts` are by other experts or have other classes."""
        classes, own = tuple(label_text(label) for label in forecasts.classes), forecasts.options is not None
        if own != self.own:
            which = "events that share their classes", "events with options of their own"
            raise OutcomeError(f"these forecasts are on {which[own]}, and the pool was fitted to {which[self.own]}")
        if classes != self.classes and not own:
            raise OutcomeError(f"these forecasts are about the classes {classes}, and the pool about {self.classes}")
        unknown = unknown_names(forecasts.experts, self.experts)
        if unknown:
            raise ExpertError(f"expert {unknown[0]!r} was not there in fit; leave them out with select_experts()")

    def dense(self, forecasts: Forecasts) -> Array:
        """Return the forecasts as an array, (T, N) or (T, N, K), by this layout's experts, after `check`."""
        if forecasts.experts == self.experts:
            return forecasts.X
        return forecasts.dense(experts=self.experts)


def experts_by_class(names: tuple[str, ...] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return experts and classes of columns ``expert:class``; () unless each expert has all, two or more, classes.

    >>> experts_by_class(("ann:no", "ann:yes", "bob:no", "bob:yes")), experts_by_class(("ann", "bob"))
    ((('ann', 'bob'), ('no', 'yes')), ((), ()))
    """
    split = [name.rpartition(":") for name in names or ()]
    experts, classes = (tuple(dict.fromkeys(each[i] for each in split)) for i in (0, 2))
    if len(classes) < 2 or "" in experts or len(split) != len(experts) * len(classes):
        return (), ()
    return experts, classes


def settled_classes(labels: Labels, given: Given, names: tuple[str, ...] | None, q: Array) -> Labels:
    """Return the sorted classes of a fit: `given`, else those in column names, else the labels of resolved events.

    Raises OutcomeError if the outcomes do not determine the classes, or the forecasts `q` have more classes.
    """
    columns = experts_by_class(names)[1]
    if given is not None:
        return _given_classes(given, q.ndim == 2 and bool(columns))
    typed = _typed(columns, labels)
    if typed is not None:
        return typed
    classes = classes_of(labels, coded=_minus_one_is_missing(labels, q))
    if q.ndim == 2 and not columns:
        number = classes_by_sums(q, len(classes))
        if number is not None:
            raise OutcomeError(
                f"the columns of X add up to 1 in every row by {number}, as forecasts on {number} classes do, and y "
                f"has {len(classes)}: {listed(classes.tolist())}; say which there are, fit(..., classes=[...])"
            )
    return classes


def _given_classes(given: Given, named: bool) -> Labels:
    """Return the classes that the user gave; if columns have no names, an error unless the classes are sorted."""
    labels_given(given, "classes", OutcomeError)
    values = np.asarray(given, dtype=object if isinstance(given, (list, tuple)) else None).ravel()
    labels, known = read_labels(values, values.tolist())
    classes = np.unique(labels)
    if not known.all() or len(classes) < 2 or len(classes) < len(values):
        raise OutcomeError(f"classes must be two or more different labels, and they are {values.tolist()}")
    if len(classes) > 2 and not named and classes.tolist() != labels.tolist():
        raise OutcomeError(
            f"the columns of an expert stand in the sorted order of the classes, {listed(classes.tolist())}, and these "
            "are given in another; give them in that order, or call the columns expert:class"
        )
    return classes


def _typed(columns: tuple[str, ...], labels: Labels) -> Labels | None:
    """Return the classes in column names, converted to the type of `labels`; None if these have other classes."""
    texts = {label_text(label) for label in np.unique(labels).tolist()}
    if not columns or not texts <= set(columns):
        return None
    if labels.dtype.kind == "O":
        return np.unique(np.array(columns, dtype=object))
    try:
        found = np.unique(np.array(columns).astype(labels.dtype if labels.dtype.kind in "US" else np.float64))
    except ValueError:
        return None
    return found if labels.dtype.kind in "USf" else found.astype(labels.dtype)


def _minus_one_is_missing(labels: Labels, q: Array) -> bool:
    """Whether the label -1 means no outcome: it is a class if `q` has forecasts for as many classes as labels."""
    count = len(np.unique(labels))
    return not (count > 2 and (q.shape[2] == count if q.ndim == 3 else classes_by_sums(q, 2) == count))


# Rows that show by their sums how many classes there are, and how many are looked at first.
FEWEST, FIRST = 3, 64


def classes_by_sums(q: Array, seen: int) -> int | None:
    """Return the least K above `seen` such that every K adjacent columns add up to 1 in complete rows, or None.

    >>> classes_by_sums(np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.6, 0.2, 0.2]]), 2)
    3
    """
    return next((number for number in range(seen + 1, q.shape[1] + 1) if _add_up(q, number)), None)


def _add_up(q: Array, number: int) -> bool:
    """Return True if every `number` adjacent columns add up to 1 in every complete row."""
    if q.shape[1] % number or (len(q) > FIRST and not _add_up(q[:FIRST], number)):
        return False
    rows = q[~np.isnan(q).any(axis=1)]
    if len(rows) < FEWEST:
        return False
    totals = rows.reshape(len(rows), -1, number).sum(axis=2)
    return bool((np.abs(totals - 1.0) <= max(SUM_TOLERANCE, 0.005 * number)).all())


def pair_notes(q: Array) -> tuple[Note, ...]:
    """Note that columns, each read as an expert, may be pairs of two classes; () unless each pair sums to 1."""
    if q.ndim != 2 or not _add_up(q, 2):
        return ()
    return (finding("pairs", count=q.shape[1] // 2),)


def flattened(q: Array, classes: int) -> tuple[Array, bool]:
    """Return X with experts and classes on one axis, and True if these had two axes."""
    if q.ndim == 2:
        return q, False
    if q.ndim != 3 or q.shape[2] != classes:
        raise ShapeError(
            f"X of {classes} classes needs {classes} probabilities on a third axis, if it has one, and its shape is "
            f"{q.shape}; where y lacks a class, say which there are, fit(..., classes=[...])"
        )
    return q.reshape(len(q), -1), True


def without(**given: Given) -> None:
    """Raise an ArgumentError if an argument in `given` is not None, as X, an `op.Forecasts`, already contains it."""
    for name, value in given.items():
        if value is not None:
            raise ArgumentError(f"op.Forecasts bring their own {'outcomes' if name == 'y' else name}; leave out {name}")


@contextmanager
def in_our_terms(name: str, error: type[OpinionPoolError] = ShapeError) -> Iterator[None]:
    """Context manager that converts scikit-learn's errors about the argument `name` to `error`, with the same text."""
    try:
        yield
    except OpinionPoolError:
        raise
    except TypeError as problem:
        raise NotANumberError(f"{name}: {problem}") from None
    except ValueError as problem:
        raise error(f"{name}: {problem}") from None


def experts_of(X: Given, fitted: ExpertColumns | None) -> tuple[str, ...]:
    """Return names of the experts in the columns of X: the columns' names, else the names of the fit by position."""
    width = np.shape(X)[1] if np.ndim(X) == 2 else 1
    by_place = fitted.experts if fitted is not None and len(fitted.experts) == width else numbered(width)
    return column_names(X) or by_place


def columns_of(
    X: Given, estimator: BaseEstimator, scales: Mapping[str, Scale], fitted: ExpertColumns | None = None
) -> Array:
    """Return X as float64, (T, C) or (T, N, K), with levels as probabilities; a vector becomes one column.

    `fitted` are the columns of the fit, if X is to be pooled. Raises ShapeError or NotANumberError if X is not an array
    of numbers with enough axes.
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
    """Return labels of the resolved events, and True for each resolved event, (T,).

    Raises OutcomeError if `y` is not a column of labels, one for each event.
    """
    if y is None:
        raise OutcomeError(
            f"This {who} estimator requires y to be passed, but the target y is None. "
            "An event without an outcome has None, or NaN, in y."
        )
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
    """Return the forecasts with the time at which each was made, `times`, whose columns are those of X."""
    by_expert = times_by_expert(times, np.empty((len(forecasts.events), 0)), layout, names, who)
    return replace(forecasts, made=by_expert[forecasts.event_index, forecasts.expert_index])


def times_by_expert(
    times: Given, forecasts: Array, layout: ExpertColumns, names: tuple[str, ...] | None, who: str
) -> npt.NDArray[np.datetime64]:
    """Return the time at which each forecast was made, (T, N), from columns like those of X or a column per expert.

    Raises ShapeError or ArgumentError unless there is a time for each forecast.
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
    """Return class labels as an array of their type if they all have one, else of Python objects."""
    same = len({type(label) for label in labels}) == 1
    return np.array(labels) if same else np.array(labels, dtype=object)
