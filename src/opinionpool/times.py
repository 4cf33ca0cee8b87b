"""Points in time, as ISO 8601 writes them, in UTC.

A time without a zone is UTC, and a date alone is its midnight, so that a cutoff never depends on where the
program runs. Day-first and month-first dates are refused: nobody can tell them apart.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.cells import MISSING
from opinionpool.columns import Table, cell_error
from opinionpool.errors import ArgumentError
from opinionpool.wording import shown

Times: TypeAlias = npt.NDArray[np.datetime64]

_DAY = r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})"
_CLOCK = r"(\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)"
_SHAPE = re.compile(rf"{_DAY}(?:[T ]\s*{_CLOCK})?\s*(Z|[+-]\d{{2}}(?::?\d{{2}})?)?", re.ASCII | re.IGNORECASE)
_FORM = "write times as 2025-03-01 or 2025-03-01T14:30+02:00"


def _moment(text: str) -> datetime:
    """One time in UTC, without its zone; ValueError or OverflowError if there is none in `text`."""
    if text[4:5] == text[7:8] == "-" and text[10:11] in {"", "T", " "}:
        moment = datetime.fromisoformat(text.replace("UTC", "+00:00") if text.endswith("UTC") else text)
    else:
        match = _SHAPE.fullmatch(text)
        if match is None:
            raise ValueError(text)
        year, month, day, clock, zone = match.groups()
        hour, _, rest = (clock or "0:00").partition(":")
        moment = datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}T{hour:0>2}:{rest}{zone or ''}")
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def parse_time(text: str) -> np.datetime64:
    """One time in UTC, to the microsecond.

    Raises
    ------
    ValueError, OverflowError
        If `text` is not a time in one of the forms that are understood.

    Examples
    --------
    >>> parse_time("2025-03-01T00:30+02:00"), parse_time("2025/3/1")
    (np.datetime64('2025-02-28T22:30:00.000000'), np.datetime64('2025-03-01T00:00:00.000000'))
    """
    return np.datetime64(_moment(text.strip()), "us")


def span(times: Times) -> tuple[str | None, str | None]:
    """The first and the last of some times, in UTC, without the clock where all are midnights; None if none is known.

    >>> span(np.array(["2025-03-02", "NaT", "2025-03-01"], dtype="datetime64[us]"))
    ('2025-03-01', '2025-03-02')
    """
    known = times[~np.isnat(times)]
    if not len(known):
        return None, None
    dates = bool((known == known.astype("datetime64[D]")).all())
    ends = (known.min().astype("datetime64[s]"), known.max().astype("datetime64[s]"))
    first, last = (str(end.astype("datetime64[D]")) if dates else f"{end}Z" for end in ends)
    return first, last


def read_times(table: Table, column: int, missing: frozenset[str] = MISSING, role: str = "time") -> Times:
    """One column as times, shape (rows,), NaT where blank.

    Raises
    ------
    CellError
        Names the first cell that is not a time, and how to do without the column in its `role`.
    """
    words = table.words(column)
    parsed: list[datetime | None] = []
    for code, word in enumerate(words.values):
        if word.lower() in missing or word == "NaT":
            parsed.append(None)
            continue
        try:
            parsed.append(_moment(word))
        except (ValueError, OverflowError):
            row = int(words.rows(code)[0])
            way = f"or say --column {role}= to do without {role}, and so without all that depends on it"
            raise cell_error(table, row, column, f"{shown(word)} is not a time: {_FORM}, {way}") from None
    return words.expand(np.array(parsed, dtype="datetime64[us]"), "NaT")


def as_time(value: object, what: str) -> np.datetime64:
    """An argument as a time in UTC.

    Parameters
    ----------
    value : str, date, datetime or datetime64
    what : str
        Its name, for errors.

    Raises
    ------
    ArgumentError
        If it is none of these, or a text in another form.
    """
    text = value.isoformat() if isinstance(value, date) else str(value)
    if isinstance(value, (str, date, np.datetime64)):
        try:
            return parse_time(text)
        except (ValueError, OverflowError):
            pass
    raise ArgumentError(f"{what} must be a time, and {value!r} is not: {_FORM}")
