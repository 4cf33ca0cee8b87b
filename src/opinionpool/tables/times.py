"""Cells that hold times: ISO, days or months first, month names, Unix times, and days as spreadsheets number them.

How a column is written is decided for the column, from all its cells: days or months come first where only one of
the two is possible, and else the user is asked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.errors import ArgumentError, Note
from opinionpool.findings import finding
from opinionpool.tables.table import Table, cell_fault
from opinionpool.tables.units import MISSING
from opinionpool.text import quoted

Times: TypeAlias = npt.NDArray[np.datetime64]

_CLOCK = r"(?P<clock>\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)\s*(?P<half>[AaPp])?\.?(?:[Mm]\.?)?"
# Hours from UTC of zones by name: those of RFC 5322 and of Europe. Other names have several meanings.
_ZONES = {"Z": 0, "UT": 0, "UTC": 0, "GMT": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6}
_ZONES |= {"PST": -8, "PDT": -7, "WEST": 1, "WET": 0, "CET": 1, "MEZ": 1, "CEST": 2, "MESZ": 2, "EET": 2, "EEST": 3}
_NAME = "|".join(_ZONES)
_ZONE = rf"(?P<zone>(?:UTC|GMT)?(?P<sign>[+-])(?P<hours>\d{{1,2}})(?::?(?P<minutes>\d{{2}}))?|{_NAME})"
# How a day is written: year y, month m and day d, or two numbers, a and b, of which one is the day.
_DAYS = (
    r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})",
    r"(?P<a>\d{1,2})[-/.](?P<b>\d{1,2})[-/.](?P<y>\d{4}|\d{2})",
    r"(?:[A-Z]{2,9},?\s+)?(?P<d>\d{1,2})[- ](?P<m>[A-Z]{3,9})\.?,?[- ](?P<y>\d{4}|\d{2})",
    r"(?:[A-Z]{2,9},?\s+)?(?P<m>[A-Z]{3,9})\.?\s+(?P<d>\d{1,2})(?:st|nd|rd|th)?,?[- ](?P<y>\d{4})",
)
_FORMS = [re.compile(rf"{day}(?:[T, ]\s*{_CLOCK})?\s*{_ZONE}?", re.ASCII | re.IGNORECASE) for day in _DAYS]
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d(?::?\d\d)*(?:[.,]\d+)?(Z|[+-]\d\d(?::?\d\d)*)?)?", re.ASCII)
_COMPACT = re.compile(r"(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])", re.ASCII)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
ORDERS = ("dmy", "mdy")

# Numbers that are times: from, below, units in a second or None for days, and what they are called.
_COUNTS: tuple[tuple[float, float, float | None, str], ...] = (
    (20_000, 80_000, None, "days as spreadsheets number them"),
    (1e8, 1e10, 1, "Unix times in seconds"),
    (1e11, 1e13, 1e3, "Unix times in milliseconds"),
    (1e14, 1e16, 1e6, "Unix times in microseconds"),
    (1e17, 1e19, 1e9, "Unix times in nanoseconds"),
)
_ORIGIN = datetime(1970, 1, 1)
_SHEETS = datetime(1899, 12, 30)


def _moment(text: str, order: str = "") -> datetime:
    """Return the time in `text`, in UTC; `order` says whether days ("dmy") or months ("mdy") come first in 3/4/2025.

    Raise a ValueError or OverflowError if `text` is no time, or can be read in two ways.
    """
    if _ISO.fullmatch(text):
        return _in_utc(datetime.fromisoformat(text))
    of = {name: part or "" for name, part in _match(text).items()}
    if "a" in of:
        of |= dict(zip(order, (of["a"], of["b"]), strict=False))
    if not {"y", "m", "d"} <= {*of}:
        raise ValueError(text)
    month = int(of["m"]) if of["m"].isdigit() else _MONTHS.index(of["m"][:3].lower()) + 1
    hour, _, rest = (of["clock"] or "0:00").partition(":")
    if of["half"]:
        if not 1 <= int(hour) <= 12:
            raise ValueError(text)
        hour = str(int(hour) % 12 + (12 if of["half"] in "pP" else 0))
    year = int(of["y"]) + (2000 if len(of["y"]) == 2 else 0)
    zone = f"{of['sign']}{of['hours']:0>2}:{of['minutes'] or '00'}"
    if not of["sign"]:
        zone = f"{_ZONES[of['zone'].upper()]:+03d}:00" if of["zone"] else ""
    clock = f"{hour:0>2}:{rest.replace(',', '.')}{zone}"
    return _in_utc(datetime.fromisoformat(f"{year:04d}-{month:02d}-{int(of['d']):02d}T{clock}"))


def _match(text: str) -> dict[str, str | None]:
    """Parts of a time (day, month, hour, ...) by name, if `text` has one of the `_FORMS`; else empty."""
    return next((match.groupdict() for form in _FORMS if (match := form.fullmatch(text))), {})


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _times(read: Callable[[str], datetime], words: Iterable[str]) -> Times:
    """Return the times that `read` finds in `words`; NaT where it finds none."""
    found: list[datetime | None] = []
    for word in words:
        try:
            found.append(read(word))
        except (ValueError, OverflowError):
            found.append(None)
    return np.array(found, dtype="datetime64[us]")


def read_times(
    table: Table,
    column: int,
    missing: frozenset[str] = MISSING,
    role: str = "time",
    dates: str | None = None,
    notes: list[Note] | None = None,
) -> Times:
    """Return the times in UTC that a column of a table holds, (rows,), with NaT for blank cells.

    `missing` are the words for no value, in lower case. `dates` is how dates are written: "dmy" if the day comes first,
    "mdy" if the month comes first, a format such as "%d.%m.%Y", or None to infer it from the column. Error messages
    call the column by `role`. If the times are written in an unusual form, a note on the form is added to `notes`.
    """
    words = table.words(column)
    places = [i for i, word in enumerate(words.values) if word.lower() not in missing and word != "NaT"]
    cells = [words.values[i] for i in places]
    values = np.full(len(words.values), "NaT", dtype="datetime64[us]")
    plain = [match for match in map(_ISO.fullmatch, cells) if match and match[1] in {None, "Z"}]
    with suppress(ValueError):
        if dates is None and len(plain) == len(cells):
            # Most columns are written so, and many have a different time in each row.
            values[places] = [cell.rstrip("Z") for cell in cells]
            return words.expand(values, "NaT")
    form = _form(cells, dates)
    if isinstance(form, str):
        row = int(words.rows(words.values.index(form))[0])
        raise cell_fault("two-dates", table, row, column, [{"dates": order} for order in ORDERS], role=role)
    read, how = form
    values[places] = found = _times(read, cells)
    bad = np.array(places, dtype=np.intp)[np.isnat(found)]
    if len(bad):
        wrong = tuple(words.values[i] for i in bad)
        few = len(bad) <= 5 and 2 * len(bad) <= len(cells)
        blank = f"; if it stands for no time, say --missing-value {quoted(wrong[0])}" if few else ""
        way: Mapping[str, object] = {"missing_values": wrong} if few else {"columns": {role: None}}
        row, count = int(words.rows(int(bad[0]))[0]), int(words.counts[bad].sum())
        raise cell_fault("no-time-there", table, row, column, [way], count, role=role, blank=blank)
    ends = {word.rpartition(" ")[2].upper() for word in cells if word[-1:].isalpha()}
    named = " and ".join(f"{zone} as UTC{_ZONES[zone]:+d}" for zone in sorted(ends) if _ZONES.get(zone))
    how = f"{how or 'times'} with {named}" if named else how
    if how and notes is not None and cells:
        notes.append(finding("dates", column=table.names[column], how=how))
    return words.expand(values, "NaT")


def are_times(words: Sequence[str]) -> bool:
    """Whether all words are dates with their year, with or without a time of day.

    >>> are_times(["17.11.2026 09:00", "2026-11-03T10:00Z"]), are_times(["1 May 2026", "soon"]), are_times([])
    (True, False, False)
    """
    return bool(words) and all(_match(word) or _COMPACT.fullmatch(word) for word in words)


def moments(words: Sequence[str]) -> Times:
    """Return the time in each word, days before months where both are possible; NaT where a word is no time."""
    return _times(partial(_moment, order="dmy"), words)


def _form(cells: Sequence[str], dates: str | None) -> tuple[Callable[[str], datetime], str] | str:
    """Function that reads the cells of a column as times, and the name of the form, "" for the usual one.

    If days or months may come first, a cell that shows no order.
    """
    if dates is not None and "%" in dates:
        return partial(_formatted, form=dates), f"dates written as {dates}"
    numbers = [word for word in cells if _NUMBER.fullmatch(word)]
    if cells and 2 * len(numbers) > len(cells):
        return _counted(numbers)
    either = list(filter(_FORMS[1].fullmatch, cells))
    if not either:
        return _moment, ""
    order = dates or _order(either)
    if order not in ORDERS:
        return order
    return partial(_moment, order=order), f"dates with {'days' if order == 'dmy' else 'months'} first"


def _order(either: Sequence[str]) -> str:
    """Return "dmy" or "mdy", whichever all the dates allow; if both are possible, a date that differs by the order."""
    parts = [re.split(r"[-/.]", word, maxsplit=2)[:2] for word in either]
    firsts, seconds = ([int(part[i]) for part in parts] for i in (0, 1))
    if all(word[len(first)] == "." for word, (first, _) in zip(either, parts, strict=True)) and max(seconds) <= 12:
        # Months stand first with slashes or hyphens, and never with dots.
        return "dmy"
    if max(seconds) <= 12 and max(firsts) <= 12 and firsts != seconds:
        return next(word for word, first, second in zip(either, firsts, seconds, strict=True) if first != second)
    return "mdy" if max(seconds) > 12 >= max(firsts) else "dmy"


def _formatted(word: str, form: str) -> datetime:
    """Time in `word`, read by the format `form`, as of `strptime`; a zone may follow it."""
    zone = re.search(rf"\s*({_NAME})$", word)
    if zone is not None and form.endswith(("%Z", zone[1])):
        form = form.removesuffix("%Z").removesuffix(zone[1]).rstrip()
        return datetime.strptime(word[: zone.start()], form) - timedelta(hours=_ZONES[zone[1]])
    return _in_utc(datetime.strptime(word, form))


def _counted(numbers: Sequence[str]) -> tuple[Callable[[str], datetime], str]:
    """Return a function that turns numbers (counts of days or seconds, or 20250301) into times, and the form's name."""
    if all(len(word) == 8 and "19000101" <= word <= "21001231" for word in numbers):
        return partial(_formatted, form="%Y%m%d"), "dates written as year, month, day"
    middle = sorted(map(float, numbers))[len(numbers) // 2]
    low, high, units, what = next((each for each in _COUNTS if each[0] <= middle < each[1]), (0, 0, None, ""))

    def read(word: str) -> datetime:
        value = float(word)
        if not low <= value < high:
            raise ValueError(word)
        return _of_days(word) if units is None else _ORIGIN + timedelta(seconds=value / units)

    return (read if what else _moment), what


def _of_days(word: str) -> datetime:
    """Return the time of a spreadsheet's day number, rounded to minutes, seconds or milliseconds by its decimals.

    >>> _of_days("46040.958333"), _of_days("46040.5")
    (datetime.datetime(2026, 1, 18, 23, 0), datetime.datetime(2026, 1, 18, 12, 0))
    """
    digits = len(word.partition(".")[2])
    units = 1440 if digits <= 4 else 86_400 if digits <= 7 else 86_400_000
    return _SHEETS + timedelta(milliseconds=round(float(word) * units) * (86_400_000 // units))


def span(times: Times) -> tuple[str, str] | None:
    """Return first and last time in UTC, as dates if all are midnights; None if no time is known.

    >>> span(np.array(["2025-03-02", "NaT", "2025-03-01"], dtype="datetime64[us]"))
    ('2025-03-01', '2025-03-02')
    """
    known = times[~np.isnat(times)]
    if not len(known):
        return None
    dates = bool(midnights(known).all())
    return time_text(known.min(), dates), time_text(known.max(), dates)


def midnights(times: Times | np.datetime64) -> npt.NDArray[np.bool_]:
    """Return the mask of the times that are midnight or NaT."""
    return np.asarray(np.isnat(times) | (times == times.astype("datetime64[D]")))


def last_moments(days: Times | np.datetime64) -> Times:
    """Return the last microsecond of each of `days`, which are midnights."""
    return np.asarray(days + np.timedelta64(86_400_000_000 - 1, "us"))


def time_text(time: np.datetime64, as_date: bool | None = None) -> str:
    """Return one time in UTC as text: only its date if `as_date`, by default if it is midnight.

    >>> time_text(np.datetime64("2025-03-01T00:00", "us")), time_text(np.datetime64("2025-02-28T22:30", "us"))
    ('2025-03-01', '2025-02-28T22:30:00Z')
    """
    whole = time == time.astype("datetime64[D]") if as_date is None else as_date
    return str(time.astype("datetime64[D]")) if whole else f"{time.astype('M8[s]')}Z"


def as_time(value: object, what: str, dates: str | None = None) -> np.datetime64:
    """Return the argument `value` (text, date, datetime or datetime64) as a time in UTC.

    `what` is the argument's name, for errors; `dates` is as for `read_times`.
    """
    text = value.isoformat() if isinstance(value, date) else str(value).strip()
    if isinstance(value, (date, np.datetime64)):
        dates = None
    if isinstance(value, (str, date, np.datetime64)):
        form = _form([text], dates)
        if isinstance(form, str):
            raise ArgumentError(
                f"{what} can be read in two ways, and it is {value!r}: say --dates dmy if days come first, or --dates "
                "mdy if months do"
            )
        found: np.datetime64 = _times(form[0], [text])[0]
        if not np.isnat(found):
            return found
        if dates is not None:
            return as_time(value, what)
    raise ArgumentError(f"{what} must be a time, and {value!r} is not: write times as 2025-03-01 or 2025-03-01T14:30Z")


# Seconds of each unit of time.
_UNITS = {"": 86400, "d": 86400, "w": 604800, "h": 3600, "min": 60, "s": 1}
_SPAN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*?)\s*", re.IGNORECASE)
# In microseconds: longer than all of history, and far from what 64 bits hold.
_LONGEST = 10.0**17


def as_span(value: object, what: str) -> np.timedelta64:
    """Return the length of time in `value`: a number of days, or a text such as ``"4w"``, ``"36h"``, ``"90min"``."""
    seconds = _seconds(value)
    if not seconds >= 0:
        raise ArgumentError(
            f"{what} is a span of time, at least 0, such as 28 (days), 4w or 36h, and {str(value)!r} is not"
        )
    return np.timedelta64(round(min(seconds * 1e6, _LONGEST)), "us")


def _seconds(value: object) -> float:
    """Return the length of a span in seconds; NaN if `value` is no span of time."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, np.timedelta64):
        # Months and years are of no fixed length.
        exact = np.can_cast(value.dtype, "m8[us]", "same_kind")
        return float(value / np.timedelta64(1, "s")) if exact else math.nan
    match = None if isinstance(value, bool) else _SPAN.fullmatch(str(value))
    unit = _UNITS.get(match[2].lower()) if match else None
    return math.nan if match is None or unit is None else float(match[1]) * unit


def span_text(length: np.timedelta64) -> str:
    """Return a span of time as text, in the largest unit that divides it.

    >>> span_text(np.timedelta64(7, "D")), span_text(np.timedelta64(36, "h")), span_text(np.timedelta64(90, "m"))
    ('7 days', '36 hours', '90 minutes')
    """
    seconds = float(length / np.timedelta64(1, "s"))
    sizes = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
    size, unit = next((each for each in sizes if seconds >= each[0] and seconds % each[0] == 0), (1, "second"))
    number = seconds / size
    return f"{number:,.6g} {unit}{'' if number == 1 else 's'}"
