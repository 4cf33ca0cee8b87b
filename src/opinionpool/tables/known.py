"""Forecasts, outcomes and void events as known at a given time, or at every moment until an event closed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import ArgumentError, Note
from opinionpool.findings import Finding, Place, fault, finding
from opinionpool.forecasts import Forecasts
from opinionpool.labels import UNRESOLVED
from opinionpool.tables.engine import check_cells
from opinionpool.tables.event_facts import Facts
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.outcomes import Settled
from opinionpool.tables.statements import Distinctions, LongRows, active_until
from opinionpool.tables.times import Times, span_text, time_text


def in_time(long_rows: LongRows, request: ReadOptions, facts: Facts, by: Distinctions) -> tuple[LongRows, list[Note]]:
    """Forecasts made before their event ended, and by --as-of and --horizon; and notes on those left out."""
    table, made = long_rows.table.name, long_rows.time
    asked = request.history or request.as_of is not None or request.horizon is not None
    if asked and made is None and by.names:
        raise by.wanted()
    if request.as_of is not None and made is None:
        raise fault("no-times-for-as-of", table=table)
    long_rows, notes = drop_late(long_rows, request.as_of, facts.closes, facts.resolved_at)
    for option in ["--time-averaged"] * request.history + ["--horizon"] * (request.horizon is not None):
        if long_rows.time is None:
            raise fault("no-times", table=table, option=option)
        if np.isnat(facts.ends).all():
            raise fault("no-closing-times", table=table, option=option)
    if request.horizon is None or long_rows.time is None:
        return long_rows, notes
    # A time that is unknown is before nothing.
    early = long_rows.time <= (facts.ends - request.horizon)[long_rows.event]
    if not early.any():
        raise fault("none-so-early", Place(table), span=span_text(request.horizon))
    late = len(np.unique(long_rows.pair)) - len(np.unique(long_rows.pair[early]))
    notes += [finding("horizon", count=late, span=span_text(request.horizon))] if late else []
    return long_rows.select(early), notes


def drop_late(
    long_rows: LongRows, as_of: np.datetime64 | None, closes: Times, resolved_at: Times
) -> tuple[LongRows, list[Note]]:
    """Return `long_rows` without late forecasts, and notes with their numbers.

    Late are forecasts made after the event closed or was resolved, or after `as_of`; then also those without a time.
    """
    made, event, late = long_rows.time, long_rows.event, list[tuple[Mask, Finding]]()
    if made is None:
        return long_rows, []
    if as_of is not None:
        late.append((np.isnat(made), finding("no-time", count=1)))
        late.append((made > as_of, finding("as-of", count=1, time=time_text(as_of))))
    late.append((made > closes[event], finding("after-close", count=1)))
    late.append((made > resolved_at[event], finding("after-resolution", count=1)))
    return _without(long_rows, late)


def drop_expired(long_rows: LongRows, as_of: np.datetime64 | None, ends: Times) -> tuple[LongRows, list[Note]]:
    """Forecasts that had not expired when their event ended or, if earlier, at `as_of`; and a note on the others."""
    if long_rows.expires is None:
        return long_rows, []
    until = ends if as_of is None else np.fmin(ends, as_of)
    return _without(long_rows, [(long_rows.expires < until[long_rows.event], finding("expired", count=1))])


def _without(long_rows: LongRows, masks: Sequence[tuple[Mask, Finding]]) -> tuple[LongRows, list[Note]]:
    """Return the rows that no mask marks, and each mask's note, with the number of forecasts that it left out."""
    kept, notes = np.ones(len(long_rows.value), dtype=bool), list[Note]()
    for mask, one in masks:
        out = kept & mask
        if out.any():
            count = len(np.unique(long_rows.pair[out])) if long_rows.classes else int(out.sum())
            notes.append(finding(one.code, **{**one.params, "count": count}))
            kept &= ~mask
    return (long_rows if kept.all() else long_rows.select(kept)), notes


def known_by(cutoff: np.datetime64 | None, settled: Settled, facts: Facts) -> tuple[Index, Mask, list[Note]]:
    """Return each event's outcome, and whether it is void (annulled), as known at `cutoff`, (events,) each, and notes.

    Known are outcomes resolved by `cutoff`; in tables without times of resolution, those of events that do not close
    after it. An event annulled at an unknown time was open until it closed.
    """
    if cutoff is None:
        return settled.outcomes, settled.void, list(settled.notes)
    known, later = settled.outcomes != UNRESOLVED, facts.resolved_at > cutoff
    hidden = np.isnat(facts.resolved_at) if facts.dated else facts.closes > cutoff
    open_yet = hidden & ~(facts.closes <= cutoff)
    void = settled.void & ~later & ~open_yet
    found = [
        finding("void", count=int(void.sum())),
        finding("as-of-void", count=int((settled.void & later).sum())),
        finding("as-of-void-no-date", count=int((settled.void & open_yet).sum())),
        finding("as-of-outcomes", count=int((known & later).sum())),
        finding("as-of-no-date", count=int((known & hidden & facts.dated).sum())),
        finding("as-of-closes", count=int((known & hidden & (not facts.dated)).sum())),
    ]
    notes = [note for note in settled.notes if note.code != "void"] + [note for note in found if note.count]
    if not facts.dated:
        notes.append(finding("as-of-undated", other="other " if found[-1].count else ""))
    return np.where(later | hidden, UNRESOLVED, settled.outcomes), void, notes


def with_silence(forecasts: Forecasts, p: float) -> Forecasts:
    """Return a copy of `forecasts` in which each missing forecast is the probability `p`."""
    if len(forecasts.classes) > 2:
        raise ArgumentError("--silence is for events of two classes: who is silent says nothing of several")
    t, n = forecasts.shape
    check_cells("the table with --silence", t, n, t * n)

    def of_all(values: npt.NDArray[Any], missing: object) -> npt.NDArray[Any]:
        """Values of all T N possible forecasts, (T N,), by event and expert; `missing` where there is no forecast."""
        found = np.full((t, n), missing, dtype=values.dtype)
        found[forecasts.event_index, forecasts.expert_index] = values
        return found.ravel()

    return replace(
        forecasts,
        event_index=np.repeat(np.arange(t), n),
        expert_index=np.tile(np.arange(n), t),
        probabilities=of_all(forecasts.probabilities, p),
        made=None if forecasts.made is None else of_all(forecasts.made, "NaT"),
        notes=(*forecasts.notes, finding("silence", count=t * n - len(forecasts.event_index), p=p)),
    )


# Most probabilities over all intervals between changes.
MOST = 20_000_000
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class ActiveForecasts:
    """Forecasts in force in each of S intervals, each from one change of an event's forecasts to the next."""

    long_rows: LongRows  # one number for each expert, interval and class; the events are the intervals
    event: Index  # (S,); the event of each interval
    share: Array  # (S,); length of each interval, divided by the time from the event's first forecast to its end
    begin: Times  # (S,); start of each interval
    middle: Times  # (S,)


def active_rows(long_rows: LongRows, ends: Times) -> ActiveForecasts:
    """Return the forecasts in force in each interval, for the events whose end in `ends` is known."""
    assert long_rows.time is not None
    # A time that is unknown is before nothing.
    known = ~np.isnat(long_rows.time) & (long_rows.time <= ends[long_rows.event])
    if not known.any():
        raise fault("none-in-time", Place(long_rows.table.name))
    until = active_until(long_rows.select(known), ends)
    given = ~np.isnan(long_rows.value[known])
    # A blank ends what stood before it, and is nothing itself.
    rows, until = long_rows.select(np.flatnonzero(known)[given]), until[given]
    assert rows.time is not None
    begin = rows.time.astype(np.int64)
    event, starts, stops = _intervals(rows.event, begin, until, ends)
    # Intervals of one event stand together, in order: those that begin within a forecast's time are its own.
    known_starts = np.unique(starts)
    keys = event * (len(known_starts) + 1) + np.searchsorted(known_starts, starts)
    low, high = (
        np.searchsorted(keys, rows.event * (len(known_starts) + 1) + np.searchsorted(known_starts, moments))
        for moments in (begin, until)
    )
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
    return ActiveForecasts(spread, event, share, starts.astype("datetime64[us]"), middle.astype("datetime64[us]"))


def _intervals(event: Index, begin: Index, until: Index, ends: Times) -> tuple[Index, Index, Index]:
    """Event, start and stop, (S,) each, of the intervals between changes; a forecast holds from `begin` to `until`."""
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
