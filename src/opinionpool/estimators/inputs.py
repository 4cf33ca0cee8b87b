"""Forecasts as users of scikit-learn hand them over, X, in the terms of the container of forecasts.

Columns are matched by name, rows of pandas objects by their index. Nothing here knows scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, frequencies
from opinionpool.errors import ArgumentError, ExpertError, OutcomeError, ShapeError
from opinionpool.forecasts import Forecasts
from opinionpool.labels import Labels, label_text
from opinionpool.logodds import normalised
from opinionpool.names import numbered, repeated

# An object of pandas or of any other library, asked for what it has.
Anything: TypeAlias = Any


def column_names(X: object) -> tuple[str, ...] | None:
    """The names of the columns of a data frame, or of a named series, as text; None for anything else.

    Raises
    ------
    ExpertError
        If a name stands twice.
    """
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


def row_keys(values: object) -> Anything:
    """The index of a pandas object, None for anything else."""
    index = getattr(values, "index", None)
    return index if hasattr(index, "get_indexer") else None


def aligned(values: Anything, keys: Anything, what: str) -> Anything:
    """`values` with its rows in the order of `keys`, where both are labelled.

    Raises
    ------
    ShapeError
        If they do not hold the same keys.
    """
    own = row_keys(values)
    if keys is None or own is None or own.equals(keys):
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
    """Frequencies of the events of a fit, (T,); ones if not given.

    Raises
    ------
    ShapeError, ArgumentError
        If there is not one for each event, one is negative or not finite, or all are zero.
    """
    weight = frequencies(sample_weight, events)
    if events and not weight.any():
        raise ArgumentError("sample_weight must contain at least one weight above zero, and all are zero")
    return weight


@dataclass(frozen=True)
class ExpertColumns:
    """Which columns hold whose forecasts.

    Attributes
    ----------
    experts : tuple of str
        N names.
    columns : tuple of str or None
        Names of the columns, expert by expert, the classes of each in the order of `classes`; None if they have no
        names.
    classes : tuple of str
        K labels, as text.
    width : int
        Columns of each expert: K, or 1 where binary forecasts stand in one column.
    own : bool
        Whether events have options of their own, so that classes are positions of these, and K is of no account.
    """

    experts: tuple[str, ...]
    columns: tuple[str, ...] | None
    classes: tuple[str, ...]
    width: int
    own: bool = False

    @classmethod
    def of_columns(cls, names: tuple[str, ...] | None, count: int, labels: Labels, deep: bool) -> ExpertColumns:
        """The layout of `count` columns; `deep` if they were the last two axes of an array.

        Raises
        ------
        ShapeError
            If the columns do not make up whole experts.
        """
        classes = tuple(label_text(label) for label in labels.tolist())
        k = len(classes)
        if names is not None:
            named = _experts_by_class(names, classes)
            if named:
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
        """The layout that the dense view of some forecasts has."""
        classes, experts = tuple(label_text(label) for label in forecasts.classes), forecasts.experts
        own = forecasts.options is not None
        if len(classes) == 2:
            return cls(experts, experts, classes, 1, own)
        columns = tuple(f"{expert}:{label}" for expert in experts for label in classes)
        return cls(experts, columns, classes, len(classes), own)

    @property
    def count(self) -> int:
        """Number of columns."""
        return len(self.experts) * self.width

    def arrange(self, q: Array, names: tuple[str, ...] | None, who: str) -> Array:
        """Columns (T, C) in this layout's order, NaN for absent ones; by position unless both sides have names.

        Raises
        ------
        ExpertError
            If a column is none of these.
        ShapeError
            If there are more or fewer columns, and no names to tell which.
        """
        if names is None or self.columns is None:
            if q.shape[1] != self.count:
                raise ShapeError(f"X has {q.shape[1]} features, but {who} is expecting {self.count} features as input")
            return q
        position = {name: i for i, name in enumerate(names)}
        unknown = [name for name in names if name not in set(self.columns)]
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
        """Arranged columns as (T, N), or (T, N, K) when K > 2; and how many rows over classes were normalised."""
        if self.width == 1:
            return columns, 0
        q, rounded = normalised(columns.reshape(len(columns), len(self.experts), self.width))
        return (q[..., 1] if self.width == 2 else q), rounded

    def check(self, forecasts: Forecasts) -> None:
        """Refuse forecasts by other experts, or about other classes.

        Raises
        ------
        ExpertError, OutcomeError
            If there are any.
        """
        classes, own = tuple(label_text(label) for label in forecasts.classes), forecasts.options is not None
        if own != self.own:
            which = "events that share their classes", "events with options of their own"
            raise OutcomeError(f"these forecasts are on {which[own]}, and the pool was fitted to {which[self.own]}")
        if classes != self.classes and not own:
            raise OutcomeError(f"these forecasts are about the classes {classes}, and the pool about {self.classes}")
        known = set(self.experts)
        unknown = [name for name in forecasts.experts if name not in known]
        if unknown:
            raise ExpertError(f"expert {unknown[0]!r} was not there in fit; leave them out with select_experts()")

    def dense(self, forecasts: Forecasts) -> Array:
        """The dense view of checked forecasts, with this layout's experts."""
        if forecasts.experts == self.experts:
            return forecasts.X
        return forecasts.dense(experts=self.experts)


def _experts_by_class(names: tuple[str, ...], classes: tuple[str, ...]) -> tuple[str, ...]:
    """Experts, where the columns are called ``expert:class``, one for every class; else none."""
    split = [name.rpartition(":") for name in names]
    experts = tuple(dict.fromkeys(expert for expert, _, _ in split))
    if len(names) != len(experts) * len(classes) or any(not e or c not in classes for e, _, c in split):
        return ()
    return experts
