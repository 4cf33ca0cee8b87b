"""Checks of arguments with one value: types, numbers, names from a list, paths.

Errors name the argument, the rule and the value.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from opinionpool.errors import ArgumentError
from opinionpool.text import listed, meant, shown, suggestion

_HINTS = {"state": "; of an estimator give pool.state_", "panel": "; of an estimator give pool.panel_"}
# Names in messages for base classes, which users do not know.
_PUBLIC = {"PoolingPanel": "Panel or FullPanel"}
_OF_FORECASTS = "; op.Forecasts.from_array(X, y) makes them of arrays, op.read_forecasts of tables"


def expect_type(value: object, kinds: type | tuple[type, ...], name: str) -> None:
    """Raise an ArgumentError if `value`, the argument called `name`, is of none of the types `kinds`."""
    if isinstance(value, kinds):
        return
    wanted = " or ".join(
        _PUBLIC.get(kind.__name__, kind.__name__) for kind in (kinds if isinstance(kinds, tuple) else (kinds,))
    )
    hint = _HINTS.get(name, "") if hasattr(type(value), "state_") else ""
    if name == "forecasts":
        hint = _OF_FORECASTS
    raise ArgumentError(f"{name} must be of type {wanted}, and this is a {type(value).__name__}{hint}")


def brief(value: object) -> str:
    """Return any value as a short text for messages, even if its own `repr` fails."""
    if isinstance(value, str):
        return shown(value)
    try:
        text = repr(value)
    except Exception:
        return f"of type {type(value).__name__}"
    return text if len(text) <= 60 and "\n" not in text else f"of type {type(value).__name__}"


def _scalar(value: object) -> Any:  # noqa: ANN401 - whatever is given
    """Return `value` as a plain number if it is an array without axes; other values unchanged."""
    item = getattr(value, "item", None)
    return item() if getattr(value, "shape", None) == () and callable(item) else value


def number(
    value: object,
    name: str,
    least: float = -math.inf,
    most: float = math.inf,
    *,
    between: bool = False,
    error: type[ArgumentError] = ArgumentError,
) -> float:
    """Return `value` as a finite number from `least` to `most`, strictly between them if `between`; else raise `error`.

    >>> number(1, "penalty", 0)
    1.0
    """
    given, found = _scalar(value), math.nan
    if not isinstance(given, bool) and isinstance(given, (Real, Decimal)):
        try:
            found = float(given)
        except (OverflowError, ValueError):
            found = math.inf
    if math.isfinite(found) and (least < found < most if between else least <= found <= most):
        return found
    if between:
        rule = f"strictly between {least:g} and {most:g}"
    elif math.isinf(most):
        rule = "" if math.isinf(least) else f", at least {least:g}"
    else:
        rule = f" from {least:g} to {most:g}"
    what = "lie " + rule if between else f"be a finite number{rule}"
    raise error(f"{name} must {what}, and it is {brief(value)}")


def whole_number(
    value: object, name: str, least: int = 0, most: int = 2**31, error: type[ArgumentError] = ArgumentError
) -> int:
    """Return `value` as an int from `least` to `most`, also if it is a float such as 3.0; otherwise raise `error`.

    >>> whole_number(3.0, "folds", 2)
    3
    """
    given = _scalar(value)
    whole = isinstance(given, (Integral, float)) and not isinstance(given, bool) and given % 1 == 0
    if whole and least <= given <= most:
        return int(given)
    rule = f"at least {least:,}" if most >= 1 << 31 else f"from {least:,} to {most:,}"
    raise error(f"{name} must be a whole number, {rule}, and it is {brief(value)}")


def one_of(value: object, name: str, choices: Iterable[str], error: type[ArgumentError] = ArgumentError) -> str:
    """Return `value` if it is one of the words `choices`; otherwise raise `error`, which calls the argument `name`.

    >>> one_of("log", "score", ("brier", "log"))
    'log'
    """
    known = tuple(choices)
    if isinstance(value, str) and value in known:
        return value
    hint = meant(value, known) if isinstance(value, str) else ""
    raise error(f"{name} must be one of {', '.join(known)}, and it is {brief(value)}{hint}")


def labels_given(values: object, name: str, error: type[ArgumentError] = ArgumentError) -> tuple[object, ...]:
    """Return `values` as a tuple of labels, a text as its letters; raise `error` for a set, which has no order."""
    if not isinstance(values, (bytes, set, frozenset)) and isinstance(values, Iterable):
        try:
            found = tuple(values)
            hash(found)
        except TypeError:
            pass
        else:
            return found
    raise _single(values, name, error)


def several(values: object, name: str, error: type[ArgumentError] = ArgumentError) -> tuple[object, ...]:
    """Return `values` as a tuple; raise `error`, which calls the argument `name`, for a text, set or single value."""
    if isinstance(values, str):
        raise _single(values, name, error)
    return labels_given(values, name, error)


def _single(value: object, name: str, error: type[ArgumentError]) -> ArgumentError:
    return error(f"{name} must be a sequence, such as ['a', 'b'], not a single {brief(value)}")


def names_given(values: object, name: str, error: type[ArgumentError] = ArgumentError) -> tuple[str, ...]:
    """Return `values` as a tuple of texts; raise `error`, which calls the argument `name`, if one is not text."""
    found = several(values, name, error)
    bad = [each for each in found if not isinstance(each, str)]
    if bad:
        raise error(f"{name} must be text, and one is {brief(bad[0])}")
    return tuple(str(each) for each in found)


def file_path(path: object, name: str = "path") -> str:
    """Return `path` as text; an ArgumentError, which calls the argument `name`, if it cannot be the name of a file."""
    given = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(given, str):
        raise ArgumentError(f"{name} must be the name of a file, as text or pathlib.Path, and it is {brief(path)}")
    if not given or "\0" in given:
        raise ArgumentError(f"{name} must be the name of a file, and it is {brief(given)}")
    return given


def expect_function(value: object, name: str) -> None:
    """Raise an ArgumentError, which calls the argument `name`, unless `value` is callable or None."""
    if value is not None and not callable(value):
        raise ArgumentError(f"{name} must be a function, or None, and it is {brief(value)}")


def chosen_name(value: object, what: str, names: Sequence[str]) -> str:
    """Return `value` if it is one of `names`; else an ArgumentError that calls it a `what` and suggests a name."""
    if isinstance(value, str) and value in names:
        return value
    if not isinstance(value, str):
        raise ArgumentError(f"{what} must be text, one of {listed(names)}, and it is {brief(value)}")
    raise ArgumentError(f"no {what} is called {shown(value)}; {suggestion(value, names, 'there are')}")
