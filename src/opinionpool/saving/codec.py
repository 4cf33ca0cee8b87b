"""Conversion of objects to JSON values and back, exact to every bit, with checks of all that is read.

Each type is registered once (`Kind`), with the types of its fields, by which values are written and read. Numbers are
written so that the same bits are read back; those that JSON lacks are written as "inf", "-inf" or "nan".
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from opinionpool.arrays import Array
from opinionpool.errors import OpinionPoolError, SavedPoolError
from opinionpool.text import listed, shown


def demand(right: object, otherwise: str) -> None:
    """Raise a SavedPoolError with the text `otherwise` unless `right` is true."""
    if not right:
        raise SavedPoolError(otherwise)


def shaped(array: Array, shape: tuple[int, ...], what: str, *, least: float | None = None) -> None:
    """Raise a SavedPoolError unless `array`, named `what`, has the shape `shape`, is finite and at least `least`."""
    demand(array.shape == shape, f"{what} should have the shape {shape}, and has {array.shape}")
    demand(np.isfinite(array).all(), f"{what} should be finite")
    demand(least is None or (array >= least).all(), f"{what} should be at least {least}")


def sized(value: object, shapes: str, **sizes: int) -> dict[str, int]:
    """Check the axes of `value`'s fields against `shapes`, and return their sizes by letter.

    In "mean m s, weight m +" a mean has the shape (M, S). Arrays must be finite, and with a + at least 0. Fields that
    are None are not checked.
    """
    for each in shapes.split(", "):
        name, *axes = each.split()
        array, least = getattr(value, name), 0.0 if axes[-1] == "+" else None
        axes = axes[: -1 if axes[-1] == "+" else None]
        if array is not None:
            sizes = dict(zip(axes, array.shape, strict=False)) | sizes
            shape = tuple(int(axis) if axis.isdigit() else sizes.get(axis, -1) for axis in axes)
            shaped(array, shape, f"the {name}", least=least)
    return sizes


# An axis of an array without values may be so long.
MOST_EMPTY = 1_000_000
_ODD = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
# Labels of classes.
Label = str | bool | int | float


@dataclass(frozen=True)
class Kind:
    """Description of a type that can be saved: its name, its fields, and functions between an object and the fields."""

    name: str  # name of the type in files
    python: type
    fields: Mapping[str, Any]  # type of each field, by name
    take: Callable[[Any], Mapping[str, Any]]  # from an object to its fields
    # from the fields, as keyword arguments, to an object; raises an `OpinionPoolError` if they do not fit together
    make: Callable[..., Any]
    optional: tuple[str, ...] = ()  # fields that files of older releases lack; None then
    retired: tuple[str, ...] = ()  # fields of files of older releases, which are passed over

    @classmethod
    def of(
        cls, name: str, kind: type, check: Callable[[Any], object] | str = "", spelled: Mapping[str, str] = {},
        **narrower: Any,  # noqa: ANN401 - types
    ) -> Kind:  # fmt: skip
        """Return the kind of a dataclass or named tuple.

        `check` raises an error if the fields of an instance do not fit together, or is a text of shapes as for `sized`.
        `spelled` has the names in files of fields that have another name in the code, and `narrower` the types of
        fields that are more special than those in the code.
        """

        def make(**given: Any) -> Any:  # noqa: ANN401 - whatever the fields are
            made = kind(**{each: given[spelled.get(each, each)] for each in names})
            if check:
                sized(made, check) if isinstance(check, str) else check(made)
            return made

        hints = get_type_hints(kind)
        names = getattr(kind, "_fields", None) or [each.name for each in fields(kind)]
        types_of = {spelled.get(each, each): narrower.get(each, hints[each]) for each in names}
        return cls(
            name, kind, types_of, lambda value: {spelled.get(each, each): getattr(value, each) for each in names}, make
        )


class Kinds:
    """Registry of the types that can be saved, by name and by Python type."""

    def __init__(self, *kinds: Kind) -> None:
        self._by_name = {kind.name: kind for kind in kinds}
        self._by_type = {kind.python: kind for kind in kinds}

    def of(self, value: object) -> Kind | None:
        """Return the kind of the object `value`; None if it cannot be saved."""
        return self._by_type.get(type(value))

    def encode(self, value: Any) -> Any:  # noqa: ANN401 - anything that can be saved
        """Return `value` in types of JSON; a SavedPoolError if it has a part whose type cannot be saved."""
        kind = self.of(value)
        if kind is not None:
            own = {name: self.encode(part) for name, part in kind.take(value).items()}
            return {"type": kind.name, **own}
        if isinstance(value, np.ndarray):
            return _array(value)
        if isinstance(value, np.generic):
            return self.encode(value.item())
        if value is None or isinstance(value, str | bool | int):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if isinstance(value, tuple | list):
            return [self.encode(part) for part in value]
        if isinstance(value, Mapping):
            return {"by_name": {str(name): self.encode(part) for name, part in value.items()}}
        raise SavedPoolError(f"no way is known to save {type(value).__name__} ({shown(str(value)[:60])})")

    def decode(self, given: Any, wanted: Any, place: str) -> Any:  # noqa: ANN401 - anything that can be saved
        """Value of type `wanted` from the JSON value `given`; a SavedPoolError names its `place` in the file."""
        wanted = _spelled_out(wanted)
        origin, arguments = get_origin(wanted), get_args(wanted)
        if origin in {Union, types.UnionType}:
            return self._either(given, arguments, place)
        if isinstance(given, dict) and "type" in given:
            return self._object(given, wanted, place)
        if origin is np.ndarray or (wanted is Any and isinstance(given, dict) and "shape" in given):
            return _of_array(given, np.dtype(get_args(arguments[1])[0]) if arguments else None, place)
        if origin is tuple:
            if not isinstance(given, list):
                raise _wrong(place, "a list", given)
            return tuple(self.decode(part, arguments[0], f"{place}[{i}]") for i, part in enumerate(given))
        if wanted is Any and isinstance(given, list):
            return tuple(self.decode(part, Any, f"{place}[{i}]") for i, part in enumerate(given))
        if isinstance(given, dict) and (wanted is Any or (isinstance(origin, type) and issubclass(origin, Mapping))):
            parts = given.get("by_name")
            if not isinstance(parts, dict):
                raise _wrong(place, "values by name", given)
            inner = arguments[1] if arguments else Any
            return {name: self.decode(part, inner, f"{place}.{name}") for name, part in parts.items()}
        return _plain(given, wanted, place)

    def _either(self, given: Any, wanted: tuple[Any, ...], place: str) -> Any:  # noqa: ANN401
        if given is None and type(None) in wanted:
            return None
        choices = [each for each in wanted if each is not type(None)]
        named = self._by_name.get(given["type"]) if isinstance(given, dict) and _text(given.get("type")) else None
        choices = [each for each in choices if named is not None and named.python is each] or choices
        # A whole number that is too large is not taken for another one.
        choices = [int] if type(given) is int and int in choices else choices
        for each in choices[:-1]:
            try:
                return self.decode(given, each, place)
            except SavedPoolError:
                continue
        return self.decode(given, choices[-1], place)

    def _object(self, given: dict[str, Any], wanted: Any, place: str) -> Any:  # noqa: ANN401
        name = given["type"]
        kind = self._by_name.get(name) if _text(name) else None
        if kind is None:
            raise SavedPoolError(f"{place}: there is no type {shown(name)}")
        # A protocol says what an object can do, and that is checked where it is used.
        free = wanted is Any or not isinstance(wanted, type) or getattr(wanted, "_is_protocol", False)
        fits = free or issubclass(kind.python, wanted)
        if not fits:
            raise _wrong(place, wanted.__name__, name)
        given = dict.fromkeys(kind.optional) | {key: part for key, part in given.items() if key not in kind.retired}
        missing = [each for each in kind.fields if each not in given]
        demand(not missing, f"{place}: {kind.name} has no {', '.join(missing)}")
        strange = [each for each in given if each not in kind.fields and each != "type"]
        demand(not strange, f"{place}: {kind.name} has a {listed(strange)}, which is unknown")
        parts = {each: self.decode(given[each], type_, f"{place}.{each}") for each, type_ in kind.fields.items()}
        try:
            return kind.make(**parts)
        except SavedPoolError as error:
            if str(error).startswith(place):
                raise
            raise SavedPoolError(f"{place}: {error}") from None
        except OpinionPoolError as error:
            raise SavedPoolError(f"{place}: {error}") from None


def _spelled_out(wanted: Any) -> Any:  # noqa: ANN401 - a type
    """Return the type `wanted` with type aliases resolved (NumPy's array types are aliases since 2.5)."""
    named = get_origin(wanted) or wanted
    meant = getattr(named, "__value__", None)
    if meant is None:
        return wanted
    arguments = get_args(wanted)
    return _spelled_out(meant[arguments] if arguments else meant)


def _text(value: object) -> bool:
    return isinstance(value, str)


def _wrong(place: str, wanted: str, given: object) -> SavedPoolError:
    what = {dict: "a table", list: "a list", type(None): "nothing"}.get(type(given)) or str(shown(given))[:70]
    return SavedPoolError(f"{place}: should be {wanted}, and is {what}")


def _plain(given: Any, wanted: Any, place: str) -> Any:  # noqa: ANN401
    """JSON value `given`, checked to be a text, boolean or number, as `wanted`; `place` in the file is for errors."""
    if wanted is float or (wanted is Any and given in _ODD):
        return _number(given, place)
    names = {str: "text", int: "a whole number", bool: "true or false", Any: "a value"}
    right = type(given) is wanted if wanted is not Any else given is None or isinstance(given, str | bool | int | float)
    # Where any value may stand, labels of classes may be long numbers, but still numbers for all purposes.
    large = type(given) is int and abs(given) >= (2**63 if wanted is int else 2**1000)
    demand(not large, f"{place}: a whole number is too large")
    if not right:
        raise _wrong(place, names.get(wanted) or str(getattr(wanted, "__name__", wanted)), given)
    return given


def _number(given: Any, place: str) -> float:  # noqa: ANN401
    if isinstance(given, str) and given in _ODD:
        return _ODD[given]
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise _wrong(place, "a number", given)
    try:
        number = float(given)
    except OverflowError:
        number = math.inf
    demand(math.isfinite(number), f"{place}: a number is too large")
    return number


def _array(array: np.ndarray) -> dict[str, Any]:
    """Return an array as a JSON value, its shape and numbers; of a symmetric matrix, only the lower triangle."""
    kept, key = array, "values"
    if array.ndim == 2 and len(array) > 1 and array.shape[0] == array.shape[1] and _symmetric(array):
        kept, key = array[np.tril_indices(len(array))], "lower"
    values = kept.ravel().tolist()
    if array.dtype.kind == "f" and not np.isfinite(kept).all():
        values = [value if math.isfinite(value) else str(value) for value in values]
    demand(array.dtype.kind in "fbiu", f"arrays of {array.dtype} cannot be saved")
    return {"shape": list(array.shape), key: values}


def _symmetric(array: np.ndarray) -> bool:
    """Return True if a square matrix equals its transpose, including the signs of zeros."""
    same = array == array.T
    return (
        bool((same & (np.signbit(array) == np.signbit(array.T))).all()) if array.dtype.kind == "f" else bool(same.all())
    )


def _of_array(given: Any, dtype: np.dtype[Any] | None, place: str) -> np.ndarray:  # noqa: ANN401
    """Return the array of a JSON value with its shape and numbers; `place` in the file is for errors."""
    if not isinstance(given, dict) or set(given) not in ({"shape", "values"}, {"shape", "lower"}):
        raise _wrong(place, "an array, with its shape and values", given)
    shape, lower = given["shape"], "lower" in given
    values = given["lower" if lower else "values"]
    whole = isinstance(shape, list) and len(shape) <= 4 and all(type(n) is int and 0 <= n < 1 << 40 for n in shape)
    if not whole or not isinstance(values, list):
        raise SavedPoolError(f"{place}: an array needs a shape of whole numbers and a list of values")
    square = len(shape) == 2 and shape[0] == shape[1]
    demand(square or not lower, f"{place}: a lower triangle needs a square shape, not {shape}")
    size = shape[0] * (shape[0] + 1) // 2 if lower else math.prod(shape)
    fits = len(values) == size and max(shape, default=0) <= max(size, MOST_EMPTY)
    demand(fits, f"{place}: an array of shape {shape} needs {size} values here, and there are {len(values)}")
    flat = _of_values(values, dtype, place)
    if not lower:
        return flat.reshape(shape)
    array = np.zeros(shape, dtype=flat.dtype)
    rows, columns = np.tril_indices(shape[0])
    array[rows, columns] = flat
    array[columns, rows] = flat
    return array


def _of_values(values: list[Any], dtype: np.dtype[Any] | None, place: str) -> np.ndarray:
    kinds = set(map(type, values))
    if dtype is None:
        dtype = np.dtype(bool if kinds == {bool} else np.int64 if kinds == {int} else np.float64)
    if dtype.kind == "b" and kinds <= {bool}:
        return np.array(values, dtype=bool)
    if dtype.kind in "iu" and kinds <= {int}:
        try:
            return np.array(values, dtype=dtype)
        except OverflowError:
            raise SavedPoolError(f"{place}: a whole number is too large") from None
    if dtype.kind == "f" and kinds <= {float, int, str}:
        if kinds <= {float}:
            array = np.array(values, dtype=np.float64)
            demand(np.isfinite(array).all(), f"{place}: a number is too large")
            return array
        return np.array([_number(value, f"{place}[{i}]") for i, value in enumerate(values)], dtype=np.float64)
    names = {"b": "true or false", "i": "whole numbers", "u": "whole numbers"}
    raise SavedPoolError(f"{place}: the values of this array should be {names.get(dtype.kind, 'numbers')}")
