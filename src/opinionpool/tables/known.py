"""What was known at some time: forecasts made by then, outcomes that were out, and events that were annulled.

And at every moment until a question closed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.errors import ArgumentError, Note
from opinionpool.findings import Place, fault, finding
from opinionpool.forecasts import Forecasts
from opinionpool.labels import UNRESOLVED
from opinionpool.tables.engine import check_cells
from opinionpool.tables.event_facts import Ends, Facts
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.outcomes import Settled
from opinionpool.tables.statements import LongRows, UnnamedTimes, drop_late
from opinionpool.tables.times import Times, span_text


def in_time(
    long_rows: LongRows, request: ReadOptions, facts: Ends, unnamed: UnnamedTimes
) -> tuple[LongRows, list[Note]]:
    """Return the forecasts made before the end of their event, --as-of and --horizon, and notes on the rest."""
    asked = request.history or request.cutoff is not None or request.ahead is not None
    if asked and long_rows.time is None and unnamed.columns:
        raise unnamed.wanted()
    long_rows, notes = drop_late(long_rows, request.cutoff, facts.closes, facts.resolved_at)
    if request.cutoff is not None and long_rows.time is None:
        raise fault("no-times-for-as-of", table=long_rows.table.name)
    if request.history:
        check_timed(long_rows, facts.ends, "--time-averaged")
    if request.ahead is None:
        return long_rows, notes
    check_timed(long_rows, facts.ends, "--horizon")
    long_rows, early = before_horizon(long_rows, request.ahead, facts.ends)
    return long_rows, [*notes, *early]


def known_by(cutoff: np.datetime64 | None, outcomes: Index, facts: Facts) -> tuple[Index, list[Note]]:
    """Return outcomes as known at the cutoff; if there are resolution times, outcomes without one are unknown.

    Without any resolution times, outcomes of events that close after the cutoff are unknown.
    """
    if cutoff is None:
        return outcomes, []
    if not facts.dated:
        ahead = (facts.closes > cutoff) & (outcomes != UNRESOLVED)
        hidden = [finding("as-of-closes", count=int(ahead.sum()))] if ahead.any() else []
        undated = finding("as-of-undated", other="other " if ahead.any() else "")
        return np.where(ahead, UNRESOLVED, outcomes), [*hidden, undated]
    later = (facts.resolved_at > cutoff) & (outcomes != UNRESOLVED)
    undated = np.isnat(facts.resolved_at) & (outcomes != UNRESOLVED)
    notes: list[Note] = [finding("as-of-outcomes", count=int(later.sum()))] if later.any() else []
    notes += [finding("as-of-no-date", count=int(undated.sum()))] if undated.any() else []
    return np.where(later | undated, UNRESOLVED, outcomes), notes


def void_by(cutoff: np.datetime64 | None, settled: Settled, facts: Facts) -> tuple[npt.NDArray[np.bool_], list[Note]]:
    """Return the mask of events known to be void at the cutoff, and the notes on outcomes.

    An event annulled at an unknown time was open until it closed; without a column of resolution times and without a
    closing time it counts as void.
    """
    if cutoff is None:
        return settled.void, list(settled.notes)
    later = settled.void & (facts.resolved_at > cutoff)
    closed = facts.closes <= cutoff if facts.dated else ~(facts.closes > cutoff)
    undated = settled.void & np.isnat(facts.resolved_at) & ~closed
    void = settled.void & ~later & ~undated
    notes = [note for note in settled.notes if note.code != "void"]
    notes += [finding("void", count=int(void.sum()))] if void.any() else []
    notes += [finding("as-of-void", count=int(later.sum()))] if later.any() else []
    notes += [finding("as-of-void-no-date", count=int(undated.sum()))] if undated.any() else []
    return void, notes


def without_void(found: tuple[Forecasts, npt.NDArray[np.bool_]]) -> Forecasts:
    """Return the forecasts on events that are not void, with the forecasts on void events as `void`."""
    forecasts, void = found
    if not void.any():
        return forecasts
    return replace(forecasts.select_events(~void), void=replace(forecasts.select_events(void), notes=()))


def with_silence(forecasts: Forecasts, p: float) -> Forecasts:
    """Return the forecasts with the probability `p` for each missing forecast."""
    if len(forecasts.classes) > 2:
        raise ArgumentError("--silence is for events of two classes: who is silent says nothing of several")
    t, n = forecasts.shape
    check_cells("the table with --silence", t, n, t * n)
    x = np.full((t, n), p)
    x[forecasts.event_index, forecasts.expert_index] = forecasts.probabilities
    missing = t * n - len(forecasts.event_index)
    return replace(
        forecasts,
        event_index=np.repeat(np.arange(t), n),
        expert_index=np.tile(np.arange(n), t),
        probabilities=x.ravel(),
        made=None if forecasts.made is None else _spread_times(forecasts),
        notes=(*forecasts.notes, finding("silence", count=missing, p=p)),
    )


def _spread_times(forecasts: Forecasts) -> Times:
    """Return the times of all T N possible forecasts by event and expert, (T N,); NaT without a forecast."""
    assert forecasts.made is not None
    made = np.full(forecasts.shape, np.datetime64("NaT", "us"))
    made[forecasts.event_index, forecasts.expert_index] = forecasts.made
    return made.ravel()


# So many numbers are what forecasts stand at, at most, when every moment is looked at.
MOST = 20_000_000
_NEVER = np.iinfo(np.int64).max


def check_timed(long_rows: LongRows, ends: Times, option: str) -> None:
    """Raise if no forecast has a time, or no event a known end; `option` is the option that needs these times."""
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
    """Return the note on how many resolved events have a forecast made `ahead` of their end."""
    number, there = int(resolved.sum()), int((resolved & (crowd > 0)).sum())
    return finding("coverage", count=there, total=number, span=span_text(ahead))


@dataclass(frozen=True, eq=False)
class ActiveForecasts:
    """Active forecasts in each of S intervals, from one change on an event to the next."""

    long_rows: LongRows  # one number for each expert, interval and class; the events are the intervals
    event: Index  # (S,)
    share: Array  # (S,); which part of the event's life each is: from its first forecast until it closed
    begin: Times
    middle: Times


def active_rows(long_rows: LongRows, ends: Times) -> ActiveForecasts:
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
    event, starts, stops = _intervals(rows.event, begin, until, ends)
    # Intervals of one event stand together, in order: those that begin within a forecast's time are its own.
    low, high = (_first_intervals(event, starts, rows.event, moments) for moments in (begin, until))
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


def _until(rows: LongRows, ends: Times) -> Index:
    """Return the time until which each forecast is active: the expert's next one, its expiry, or the event's end."""
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


def _intervals(event: Index, begin: Index, until: Index, ends: Times) -> tuple[Index, Index, Index]:
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


def _first_intervals(event: Index, starts: Index, of: Index, moments: Index) -> Index:
    """Return the first interval of each event in `of` that starts at `moments` or later; intervals are sorted."""
    known = np.unique(starts)
    keys = event * (len(known) + 1) + np.searchsorted(known, starts)
    return np.searchsorted(keys, of * (len(known) + 1) + np.searchsorted(known, moments)).astype(np.intp)
