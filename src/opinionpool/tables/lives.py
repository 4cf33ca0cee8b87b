"""Forecasts over the life of a question: as they stood some time before it closed, and at every moment until then."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.errors import Note
from opinionpool.findings import Place, fault, finding
from opinionpool.tables.statements import LongRows
from opinionpool.tables.times import Times, span_text

# So many numbers are what forecasts stand at, at most, when every moment is looked at.
MOST = 20_000_000
_NEVER = np.iinfo(np.int64).max


def check_timed(long_rows: LongRows, ends: Times, option: str) -> None:
    """Refuse a table that does not say when forecasts were made, or when any event ended."""
    if long_rows.time is None:
        raise fault("no-times", table=long_rows.table.name, option=option)
    if np.isnat(ends).all():
        raise fault("no-closing-times", table=long_rows.table.name, option=option)


def before_horizon(long_rows: LongRows, ahead: np.timedelta64, ends: Times) -> tuple[LongRows, list[Note]]:
    """Return the forecasts made at least `ahead` before the known end of their event, and a note on the rest."""
    assert long_rows.time is not None
    # A time that is unknown is before nothing.
    made = long_rows.time <= (ends - ahead)[long_rows.event]
    if not made.any():
        raise fault("none-so-early", Place(long_rows.table.name), span=span_text(ahead))
    late = int(len(np.unique(long_rows.pair)) - len(np.unique(long_rows.pair[made])))
    if not late:
        return long_rows.select(made), []
    return long_rows.select(made), [finding("horizon", count=late, span=span_text(ahead))]


def coverage_note(resolved: npt.NDArray[np.bool_], crowd: Index, ahead: np.timedelta64) -> Note:
    """On how many resolved events there was a forecast at a horizon."""
    number, there = int(resolved.sum()), int((resolved & (crowd > 0)).sum())
    return finding("coverage", count=there, total=number, span=span_text(ahead))


@dataclass(frozen=True, eq=False)
class Standing:
    """Active forecasts in each of S intervals, from one change on an event to the next."""

    long_rows: LongRows  # one number for each expert, stretch and class; the events are the stretches
    event: Index  # (S,)
    share: Array  # (S,); which part of the event's life each is: from its first forecast until it closed
    begin: Times
    middle: Times


def standing(long_rows: LongRows, ends: Times) -> Standing:
    """Return the active forecasts in every interval of the events whose end is known."""
    assert long_rows.time is not None
    # A time that is unknown is before nothing.
    known = ~np.isnat(long_rows.time) & (long_rows.time <= ends[long_rows.event])
    if not known.any():
        raise fault("none-in-time", Place(long_rows.table.name))
    until = _until(long_rows.select(known), ends)
    given = ~np.isnan(long_rows.value[known])
    # A blank ends what stood before it, and is nothing itself.
    rows, until = long_rows.select(np.flatnonzero(known)[given]), until[given]
    assert rows.time is not None
    begin = rows.time.astype(np.int64)
    event, starts, stops = _stretches(rows.event, begin, until, ends)
    # Stretches of one event stand together, in order: those that begin within a forecast's time are its own.
    low, high = (_places(event, starts, rows.event, moments) for moments in (begin, until))
    counts = np.maximum(high - low, 0)
    total = int(counts.sum())
    if total > MOST:
        raise fault("too-many-standing", Place(long_rows.table.name), total=total, most=MOST)
    source = np.repeat(np.arange(len(counts)), counts)
    offset = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    spread = replace(
        rows.select(source),
        event=np.repeat(low, counts) + offset,
        events=[str(number) for number in range(len(event))],
        expires=None,
    )
    length = (stops - starts).astype(np.float64)
    whole = np.bincount(event, weights=length, minlength=len(ends))[event]
    number = np.bincount(event, minlength=len(ends))[event]
    share = np.where(whole > 0, length / np.where(whole > 0, whole, 1.0), 1.0 / number)
    middle = starts + (stops - starts) // 2
    return Standing(spread, event, share, starts.astype("datetime64[us]"), middle.astype("datetime64[us]"))


def _until(rows: LongRows, ends: Times) -> Index:
    """Return the time until which each number is active: the expert's next forecast, its expiry, or the event's end."""
    assert rows.time is not None
    begin = rows.time.astype(np.int64)
    order = np.lexsort((begin, rows.pair))
    pair, start = rows.pair[order], begin[order]
    # The first later time of the same pair; numbers of one time stand side by side.
    change = np.flatnonzero(np.append(True, (np.diff(pair) != 0) | (np.diff(start) != 0)))
    group = np.cumsum(np.append(False, (np.diff(pair) != 0) | (np.diff(start) != 0)))
    later = np.append(start[change][1:], _NEVER)
    later = np.where(np.append(pair[change][1:], -1) == pair[change], later, _NEVER)
    until = np.empty(len(begin), dtype=np.int64)
    until[order] = later[group]
    # The last moment counts too, so that a forecast made when the event closes stands for one.
    until = np.minimum(until, ends.astype(np.int64)[rows.event] + 1)
    if rows.expires is not None:
        expires = rows.expires.astype(np.int64)
        until = np.where(np.isnat(rows.expires), until, np.minimum(until, expires))
    return np.maximum(until, begin)


def _stretches(event: Index, begin: Index, until: Index, ends: Times) -> tuple[Index, Index, Index]:
    """Return event, start and stop of each interval between two changes of the forecasts on an event."""
    end = ends.astype(np.int64)
    moments = np.concatenate([begin, until])
    of = np.concatenate([event, event])
    inside = moments <= end[of]
    pairs = np.unique(np.stack([of[inside], moments[inside]], axis=1), axis=0)
    of, starts = pairs[:, 0], pairs[:, 1]
    stops = np.append(starts[1:], _NEVER)
    last = np.append(np.diff(of) != 0, True)
    stops = np.where(last, end[of], stops)
    # What changes at the very end lasts no time, unless there was nothing before.
    first = np.append(True, np.diff(of) != 0)
    kept = (stops > starts) | first
    return of[kept].astype(np.intp), starts[kept], stops[kept]


def _places(event: Index, starts: Index, of: Index, moments: Index) -> Index:
    """The first stretch of an event that begins at a moment or later; stretches are in order of both."""
    known = np.unique(starts)
    keys = event * (len(known) + 1) + np.searchsorted(known, starts)
    return np.searchsorted(keys, of * (len(known) + 1) + np.searchsorted(known, moments)).astype(np.intp)
