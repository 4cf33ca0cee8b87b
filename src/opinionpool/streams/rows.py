"""A block of events without ids, by column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Index, Mask, as_array, as_numbers, frequencies, times_of_cells
from opinionpool.errors import ArgumentError, ShapeError
from opinionpool.estimation.sampling import row_keys
from opinionpool.labels import UNRESOLVED, event_labels
from opinionpool.streams.events import Record
from opinionpool.text import shown


@dataclass(frozen=True, eq=False)
class Rows:
    """T events without ids, and forecasts on them by N experts."""

    forecasts: Array  # (T, N), or (T, N, K) when K > 2; NaN where missing
    outcomes: Index  # (T,), -1 where not resolved
    weight: Array  # (T,), frequencies
    prior: Array | None = None  # (T,), or (T, K) when K > 2; the events' own references, if they have any
    at: Array | None = None  # (T,), when each was resolved, in the unit of the stream's half-life
    keys: npt.NDArray[np.uint64] | None = None  # (T,), what decides which are in the sample
    numbers: Index | None = None  # (T,), what stands for ids
    topics: npt.NDArray[np.str_] | None = None  # (T,), what the events are about
    made: npt.NDArray[np.datetime64] | None = None  # (T, N), when each forecast was made
    extent: tuple[float, float] | None = None  # the least and the greatest of the forecasts, as far as it is known

    @classmethod
    def of(
        cls,
        probabilities: npt.ArrayLike,
        outcomes: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None,
        prior: npt.ArrayLike | None,
        classes: int,
        topics: object = None,
        times: object = None,
    ) -> Rows:
        """What a user gave, checked.

        Raises
        ------
        ShapeError, ProbabilityError, ArgumentError
            If arguments do not fit together or are out of range.
        """
        given, codes = as_numbers(probabilities, "probability"), _positions(outcomes, classes)
        extent = _extent(given)
        if not (extent[0] >= 0 and extent[1] <= 1):
            logodds.check_probabilities(given)
        fits = given.ndim == 2 if classes == 2 else given.ndim == 3 and given.shape[2] == classes
        if not fits or codes.shape != given.shape[:1]:
            raise ShapeError(
                f"rows of {classes} classes and their outcomes do not fit: shapes {given.shape}, {codes.shape}"
            )
        own = None
        if prior is not None:
            own = logodds.public_probabilities(logodds.class_probabilities(prior, classes))
            if own.shape != given.shape[:1] + given.shape[2:]:
                raise ShapeError(f"{len(given)} rows need as many priors, and their shape is {own.shape}")
        about = None if topics is None else event_labels(topics, len(given), "topics")
        made = None if times is None else times_of_cells(times, given.shape[:2])
        weight = frequencies(sample_weight, len(given))
        return cls(given, codes, weight, own, topics=about, made=made, extent=extent)

    def __len__(self) -> int:
        return len(self.outcomes)

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest of the forecasts, NaN where one is missing; 0 and 1 if there are none."""
        return _extent(self.forecasts) if self.extent is None else self.extent

    @property
    def complete(self) -> bool:
        """Whether no forecast is missing."""
        return not math.isnan(self.bounds[0])

    @property
    def answered(self) -> Mask:
        """Where there is a forecast, (T, N)."""
        return np.asarray(~np.isnan(self.forecasts if self.forecasts.ndim == 2 else self.forecasts[..., 0]))

    @property
    def sizes(self) -> Array:
        """Probabilities in the forecasts on each, (T,)."""
        classes = math.prod(self.forecasts.shape[2:])
        if not self.complete:
            return np.asarray(self.answered.sum(axis=1) * classes, dtype=np.float64)
        return np.full(len(self), float(self.forecasts.shape[1] * classes))

    def placed(self, columns: Index, experts: int) -> Rows:
        """The same by so many experts, of whom those here are at `columns`."""
        wide = np.full((len(self), experts, *self.forecasts.shape[2:]), np.nan)
        wide[:, columns] = self.forecasts
        made = None
        if self.made is not None:
            made = np.full((len(self), experts), np.datetime64("NaT", "us"))
            made[:, columns] = self.made
        return replace(self, forecasts=wide, made=made, extent=None)

    def resolved(self, first: int, memory: Memory | None = None) -> Rows:
        """Those that are, in arrays of their own, with numbers; `first` is that of the first row here.

        Forecasts go to this memory, if all are resolved.
        """
        numbers = np.arange(first, first + len(self))
        if self.outcomes.min(initial=0) == UNRESOLVED:
            return replace(self, numbers=numbers).taken(np.flatnonzero(self.outcomes != UNRESOLVED))
        columns = zip(_COLUMNS, self._columns(), strict=True)
        copied = {name: of.copy() for name, of in columns if of is not None and name != "forecasts"}
        forecasts = self.forecasts.copy() if memory is None else memory.copy(self.forecasts)
        return Rows(forecasts, **copied | {"numbers": numbers, "extent": self.extent})

    def taken(self, rows: Index) -> Rows:
        """Some of them, in arrays of their own."""
        # By number, which is much faster than by mask.
        return Rows(*(None if each is None else each.take(rows, axis=0) for each in self._columns()))  # type: ignore[arg-type]

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Several together, which all have the same columns."""
        if len(parts) == 1:
            return parts[0]
        columns = zip(*(part._columns() for part in parts), strict=True)
        least, most = np.transpose([part.bounds for part in parts])
        together = [None if each[0] is None else _together(each) for each in columns]
        return replace(cls(*together), extent=(float(least.min()), float(most.max())))  # type: ignore[arg-type]

    def _columns(self) -> list[Any]:
        """All of them, in the order in which they are given."""
        return [getattr(self, name) for name in _COLUMNS]

    def joins(self, other: Rows) -> bool:
        """Whether another block has the same columns."""
        mine, theirs = (
            (each.prior is None, each.at is None, each.topics is None, each.made is None, each.forecasts.shape[1:])
            for each in (self, other)
        )
        return mine == theirs

    def keyed(self, seed: int) -> Rows:
        """The same with keys, which follow from the numbers."""
        assert self.numbers is not None
        return replace(self, keys=row_keys(self.numbers, seed))

    def record(self, t: int) -> Record:
        """One of them."""
        assert self.numbers is not None
        experts = np.flatnonzero(self.answered_on(t))
        own = None if self.prior is None else np.asarray(self.prior[t])
        when, forecasts = 0.0 if self.at is None else float(self.at[t]), self.forecasts[t, experts]
        number, outcome = int(self.numbers[t]), int(self.outcomes[t])
        key = 0 if self.keys is None else int(self.keys[t])
        topic = None if self.topics is None else str(self.topics[t]) or None
        made = None if self.made is None else self.made[t, experts]
        weight = float(self.weight[t])
        return Record(number, key, experts, forecasts, own, outcome, weight, when, topic=topic, made=made)

    def answered_on(self, t: int) -> Mask:
        """Who made a forecast on one of them, (N,)."""
        row = self.forecasts[t]
        return np.asarray(~np.isnan(row if row.ndim == 1 else row[:, 0]))


class Memory:
    """Memory in which copies of arrays stand behind each other, so that several are one without another copy."""

    def __init__(self, numbers: int) -> None:
        self.numbers, self._free = numbers, np.empty((0, 0))

    def copy(self, values: Array) -> Array:
        """A copy of rows, behind the last one where these are as long and there is room."""
        if self._free.shape[1:] != values.shape[1:] or len(self._free) < len(values):
            size = max(math.prod(values.shape[1:]), 1)
            self._free = np.empty((self.numbers // size + len(values), *values.shape[1:]))
        found, self._free = self._free[: len(values)], self._free[len(values) :]
        found[:] = values
        return found


def _together(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Several arrays as one, which is no copy if they stand behind each other in memory."""
    whole, places = parts[0].base, [part.ctypes.data for part in parts]
    ends = [place + part.nbytes for place, part in zip(places, parts, strict=True)]
    if whole is None or places[1:] != ends[:-1] or any(part.base is not whole for part in parts):
        return np.concatenate(parts)
    first = (places[0] - whole.ctypes.data) // whole.strides[0]
    return np.asarray(whole[first : first + sum(map(len, parts))])


_COLUMNS = [each.name for each in fields(Rows) if each.name != "extent"]


def _extent(forecasts: Array) -> tuple[float, float]:
    return (float(forecasts.min()), float(forecasts.max())) if forecasts.size else (0.0, 1.0)


def _positions(outcomes: npt.ArrayLike, classes: int) -> npt.NDArray[np.intp]:
    """Outcomes of rows, checked: whole numbers from -1 to K - 1, not rounded to them."""
    given = as_array(outcomes, "outcomes")
    if given.dtype.kind in "biu" and given.size and given.min() >= UNRESOLVED and given.max() < classes:
        return given.astype(np.intp)
    if given.dtype.kind in "biuf":
        numbers = given.astype(np.float64)
    else:
        each_number = [float(each) if isinstance(each, Real) else np.nan for each in given.ravel().tolist()]
        numbers = np.reshape(each_number, given.shape)
    bad = ~((numbers >= UNRESOLVED) & (numbers < classes) & (numbers == np.floor(numbers)))
    if bad.any():
        where = int(np.flatnonzero(bad)[0])
        raise ArgumentError(
            f"outcomes of rows are positions among {classes} classes, or -1 where not resolved, and outcome {where} is "
            f"{shown(given.ravel().tolist()[where])}"
        )
    return numbers.astype(np.intp)
