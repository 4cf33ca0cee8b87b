"""Types of arrays, numbers as users give them, rows grouped by pattern, times, and dataclasses of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import UTC
from decimal import Decimal
from itertools import chain
from numbers import Real
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from opinionpool.arguments import whole_number
from opinionpool.errors import ArgumentError, ProbabilityError, ShapeError
from opinionpool.text import shown

Array: TypeAlias = npt.NDArray[np.float64]
Floats: TypeAlias = npt.NDArray[Any]  # float32 or float64
Index: TypeAlias = npt.NDArray[np.intp]
Mask: TypeAlias = npt.NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)
# Rows that are compared at once, so that they stay in the cache.
_ROWS = 1 << 14


class NotANumberError(ProbabilityError, TypeError):
    """Error for an object that is no number; also a TypeError, as scikit-learn expects for a dict in a cell."""


def unmasked(values: object, missing: float | None = np.nan) -> Any:  # noqa: ANN401 - what is given, in any form
    """Return `values` with `missing` in place of the entries that a masked array hides; other objects unchanged.

    >>> unmasked(np.ma.array([0.5, 99.0], mask=[False, True]))
    array([0.5, nan])
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    data = np.ma.getdata(values)
    data = data.astype(np.float64 if missing is not None and data.dtype.kind in "fiu" else object)
    data[np.ma.getmaskarray(values)] = missing
    return data


def is_blank(value: object) -> bool:
    """Return True if a value is missing: None, NaN, NaT, pandas' NA or masked.

    >>> [is_blank(value) for value in (None, float("nan"), np.ma.masked, 0, "")]
    [True, True, True, False, False]
    """
    if value is None or value is np.ma.masked or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(value, (Real, Decimal, np.generic)) and bool(value != value)


def as_numbers(values: object, what: str = "probability", error: type[ArgumentError] = ProbabilityError) -> Array:
    """Return numbers from any container as float64, NaN where missing: None, NaN, pandas' NA, or masked.

    True, False and text are not accepted as numbers. An exception of the class `error` names the first such value and
    its position, and calls it `what`. Raises ShapeError if rows have different lengths.

    >>> as_numbers([0.5, None])
    array([0.5, nan])
    """
    if type(values) is np.ndarray and values.dtype.kind == "f":
        return np.asarray(values, dtype=np.float64)
    if hasattr(values, "columns") and hasattr(values, "shape"):
        return _of_frame(values, what, error)
    values = unmasked(values)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as problem:
        if isinstance(values, (list, tuple)):
            raise ShapeError(f"rows must be of one length, with a number for each {what}: {problem}") from None
        raise error(f"each {what} must be a number, and this is a {type(values).__name__}") from None
    if array.dtype.kind in "fiu" and not has_boolean(values):
        return np.asarray(array, dtype=np.float64)
    cells = np.asarray(values, dtype=object)
    numbers = [_number(cell) for cell in cells.ravel().tolist()]
    if None in numbers:
        raise _not_a_number(cells, numbers.index(None), what, error)
    return np.array(numbers, dtype=np.float64).reshape(cells.shape)


def read_only(values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Return the array after making it read-only."""
    values.flags.writeable = False
    return values


def as_array(values: object, what: str) -> npt.NDArray[Any]:
    """Return `values` as an array of any type; a ShapeError, which calls them `what`, if rows differ in length."""
    try:
        return np.asarray(unmasked(values))
    except ValueError:
        raise ShapeError(f"{what} must have rows of one length") from None


def axes(values: object, what: str) -> int:
    """Return the number of axes of `values`, 0 for one number; a ShapeError, about `what`, if rows differ in length."""
    try:
        return np.ndim(values)  # type: ignore[arg-type]
    except ValueError:
        raise ShapeError(f"{what} must have rows of one length") from None


def seeded(seed: object) -> np.random.Generator:
    """Return NumPy's generator for a seed: a whole number, a generator, or None; an ArgumentError for anything else."""
    if seed is None or isinstance(seed, np.random.Generator):
        return np.random.default_rng(seed)
    return np.random.default_rng(whole_number(seed, "seed", 0, 2**128))


def has_boolean(values: object) -> bool:
    """Return True if nested lists contain True or False, which an array of numbers would show as 1 or 0."""
    if not isinstance(values, (list, tuple)):
        return getattr(values, "dtype", None) == np.bool_
    kinds = set(map(type, values))
    if kinds & {bool, np.bool_}:
        return True
    return not kinds <= {float, int} and any(map(has_boolean, values))


def _number(cell: object) -> float | None:
    """Return the value of a cell as a number, NaN if blank; None if it is not a number."""
    if is_blank(cell):
        return float("nan")
    if isinstance(cell, (bool, np.bool_)) or not isinstance(cell, (Real, Decimal)):
        return None
    try:
        return float(cell)
    except OverflowError:
        return float("inf")


def _not_a_number(cells: npt.NDArray[Any], i: int, what: str, error: type[ArgumentError]) -> ArgumentError:
    cell = cells.ravel()[i]
    at = tuple(map(int, np.unravel_index(i, cells.shape)))
    place = f", and at position {at if len(at) > 1 else at[0]} it is" if at else ", not"
    text = f"each {what} must be a number{place} {shown(cell) if isinstance(cell, str) else repr(cell)[:60]}"
    if isinstance(cell, (bool, np.bool_)):
        return error(f"{text}; if True and False stand for 1 and 0, turn them into numbers first")
    if isinstance(cell, (complex, np.complexfloating)):
        return error(f"{text} (Complex data not supported)")
    if isinstance(cell, str) or error is not ProbabilityError:
        return error(text)
    return NotANumberError(f"{text} (the argument must be a string or a real number, not {type(cell).__name__!r})")


def _of_frame(frame: Any, what: str, error: type[ArgumentError]) -> Array:  # noqa: ANN401 - a frame of any library
    """Data frame as numbers, (rows, columns); raise `error`, which calls a cell `what`, if one is no number."""
    if hasattr(frame, "iloc"):
        array = np.asarray(frame)
        if array.dtype.kind in "fiu":
            return np.asarray(array, dtype=np.float64)
    names = [str(name) for name in getattr(frame, "column_names", frame.columns)]
    found = np.empty((frame.shape[0], len(names)))
    for i, name in enumerate(names):
        arrow = hasattr(frame, "column_names")
        column = frame.iloc[:, i] if hasattr(frame, "iloc") else frame.column(i) if arrow else frame[:, i]
        found[:, i] = as_numbers(np.asarray(column), f"{what} in column {shown(name)}", error)
    return found


def pairs_increase(first: Index, second: Index) -> bool:
    """Return True if each pair (first, second) is lexicographically greater than the pair before it.

    >>> pairs_increase(np.array([0, 0, 1]), np.array([2, 3, 0])), pairs_increase(np.array([0, 0]), np.array([3, 3]))
    (True, False)
    """
    for start in range(0, len(first) - 1, _ROWS):
        rows = slice(start, start + _ROWS + 1)
        a, b = first[rows], second[rows]
        new = a[1:] != a[:-1]
        if not np.where(new, a[1:] > a[:-1], b[1:] > b[:-1]).all():
            return False
    return True


def group_patterns(present: Mask) -> tuple[Mask, Index]:
    """Return the distinct rows (P, N) of a mask (T, N), and which of these P rows each row equals, (T,).

    >>> patterns, index = group_patterns(np.array([[True, True], [True, False], [True, True]]))
    >>> patterns.tolist(), index.tolist()
    ([[True, False], [True, True]], [1, 0, 1])
    """
    first, index = distinct_rows(present)
    return present[first], index


def distinct_rows(rows: npt.NDArray[Any]) -> tuple[Index, Index]:
    """Return the positions (P,) of the distinct rows of an array (T, N), and which of these P each row equals, (T,).

    >>> distinct_rows(np.array([[1, 2], [0, 2], [1, 2]]))[1]
    array([1, 0, 1])
    """
    if rows.shape[1] == 0 or (rows == rows[:1]).all():
        return np.arange(min(len(rows), 1)), np.zeros(len(rows), dtype=np.intp)
    bits = np.ascontiguousarray(np.packbits(rows, axis=1) if rows.dtype == bool else rows)
    keys = bits.view(np.dtype((np.void, bits.strides[0]))).ravel()
    _, first, index = np.unique(keys, return_index=True, return_inverse=True)
    return first, index.ravel()


def each_pattern(present: Mask) -> Iterator[tuple[Index, Index]]:
    """Yield, for each distinct row of `present` (T, N), positions of the events with this row and the experts in it."""
    if len(present) == 0:
        return
    patterns, index = group_patterns(present)
    order = np.argsort(index, kind="stable")
    ends = np.cumsum(np.bincount(index, minlength=len(patterns)))
    for pattern, rows in zip(patterns, np.split(order, ends[:-1]), strict=True):
        yield rows, np.flatnonzero(pattern)


# Largest and smallest frequency: beyond these, rounding in float64 would lose an event.
MOST, LEAST = 1e15, 1e-15


def frequencies(sample_weight: npt.ArrayLike | None, events: int) -> Array:
    """Return checked `sample_weight`, the number of times that each event counts, (T,); 1 if None, 0 where masked.

    Raises ShapeError or ArgumentError unless there is a weight for each event, 0 or from 1e-15 to 1e15.
    """
    if sample_weight is None:
        return np.ones(events)
    # Masked ones do not count, and here True and False can only mean one thing.
    given = unmasked(sample_weight, 0.0)
    given = np.asarray(given, dtype=np.float64) if as_array(given, "sample_weight").dtype == np.bool_ else given
    weight = as_numbers(given, "sample weight", ArgumentError)
    if weight.shape != (events,):
        raise ShapeError(f"{events} events need as many sample weights, and their shape is {weight.shape}")
    bad = ~(((weight >= LEAST) & (weight <= MOST)) | (weight == 0))
    if bad.any():
        where = int(bad.argmax())
        rule = f"0 or from {LEAST:g} to {MOST:g}" if 0 < weight[where] < np.inf else "finite and at least 0"
        raise ArgumentError(f"sample weights are frequencies, {rule}, and weight {where} is {weight[where]:.15g}")
    return weight


def _in_utc(time: Any) -> Any:  # noqa: ANN401 - whatever a user gives
    """Return a time in UTC, without time zone; None if blank."""
    if is_blank(time):
        return None
    return time.astimezone(UTC).replace(tzinfo=None) if getattr(time, "tzinfo", None) is not None else time


# Days since or before 1970 that 64 bits of microseconds can hold, rounded down.
_MOST_DAYS = 100_000_000


def times_of_cells(times: object, shape: tuple[int, ...]) -> npt.NDArray[np.datetime64]:
    """Return times at which forecasts were made, of `shape` (T, N), from times or days since 1970; NaT where unknown.

    Raises ArgumentError or ShapeError unless there is a time for each forecast.

    >>> times_of_cells([["2025-03-01", None]], (1, 2))
    array([['2025-03-01T00:00:00.000000',                        'NaT']],
          dtype='datetime64[us]')
    """
    given = np.asarray(times)
    if given.dtype.kind in "iuf" and (np.abs(given.astype(np.float64)) >= _MOST_DAYS).any():
        raise ArgumentError(f"a number of days that is no time: beyond {_MOST_DAYS:,}, or infinite; NaN where unknown")
    try:
        if given.dtype.kind in "iuf":
            days = given.astype(np.float64) * 86_400e6
            found = np.where(np.isnan(days), np.iinfo(np.int64).min, np.nan_to_num(days)).astype("datetime64[us]")
        else:
            plain = [_in_utc(each) for each in given.ravel().tolist()] if given.dtype.kind == "O" else given
            found = np.asarray(plain, dtype="datetime64[us]").reshape(given.shape)
    except (ValueError, TypeError):
        raise ArgumentError("times are datetime64, dates such as 2025-03-01, or numbers of days") from None
    if found.shape != shape:
        raise ShapeError(f"forecasts of shape {shape} need as many times, and the shape of these is {found.shape}")
    return found


# Value that means "missing", by kind of array.
_MISSING: dict[str, Any] = {"f": np.nan, "M": np.datetime64("NaT", "us"), "b": False, "U": "", "O": None}


EVENT, CELL = {"axis": "event"}, {"axis": "cell"}  # metadata of fields: along what they have their values


def cells_at(sizes: Index, events: Index) -> Index:
    """Return positions, in a list of all forecasts sorted by event, of those on the events at positions `events`.

    `sizes` (T,) has the number of forecasts on every event.

    >>> cells_at(np.array([2, 1, 3]), np.array([2, 0]))
    array([3, 4, 5, 0, 1])
    """
    chosen, starts = sizes[events], np.cumsum(sizes) - sizes
    return np.repeat(starts[events] - (np.cumsum(chosen) - chosen), chosen) + np.arange(chosen.sum())


def taken(block: Any, **index: Index | Mask) -> dict[str, Any]:  # noqa: ANN401 - a dataclass
    """Return a dataclass's fields as a dict, each array cut to the positions that `index` gives for the field's axis.

    A field's axis is "event" or "cell" in its metadata; fields without an axis in `index` are left out.
    """
    found = {}
    for each in fields(block):
        at, values = index.get(each.metadata.get("axis", "")), getattr(block, each.name)
        if at is None:
            continue
        if hasattr(values, "select"):
            values = values.select(at)
        elif isinstance(values, tuple):
            values = tuple(map(values.__getitem__, at.tolist()))
        elif values is not None:
            values = values[at]
        found[each.name] = values
    return found


def end_to_end(parts: Sequence[Any], **lengths: Sequence[int]) -> dict[str, Any]:
    """Return dataclasses' fields as a dict, each field's arrays joined along its axis, which its metadata names.

    For an axis, `lengths` has the length of every part. Arrays that are None in some parts are filled with missing
    values there; tuples that are None in a part become None.
    """
    found: dict[str, Any] = {}
    for each in fields(parts[0]):
        values = [getattr(part, each.name) for part in parts]
        like = next((value for value in values if value is not None), None)
        if "axis" not in each.metadata:
            continue
        if not isinstance(like, np.ndarray):
            whole = isinstance(like, tuple) and None not in values
            found[each.name] = tuple(chain.from_iterable(values)) if whole else None
            continue
        found[each.name] = np.concatenate(
            [
                np.full((length, *like.shape[1:]), _MISSING[like.dtype.kind], like.dtype) if value is None else value
                for value, length in zip(values, lengths[each.metadata["axis"]], strict=True)
            ]
        )
    return found
