"""What was known at some time: forecasts made by then, outcomes that were out, and events that were annulled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Index
from opinionpool.errors import ArgumentError, Note
from opinionpool.findings import fault, finding
from opinionpool.forecasts import Forecasts
from opinionpool.labels import UNRESOLVED
from opinionpool.tables.distinguishing import UnnamedTimes
from opinionpool.tables.event_facts import Ends, Facts
from opinionpool.tables.lives import before_horizon, check_timed
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.outcomes import Settled, void_note
from opinionpool.tables.sources import check_cells
from opinionpool.tables.statements import LongRows, drop_late
from opinionpool.tables.times import Times


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
    """Return the outcomes known at the cutoff; undated ones are unknown if other resolutions have a time.

    Without any resolution times, outcomes of events that close after the cutoff are unknown.
    """
    if cutoff is None:
        return outcomes, []
    if not facts.dated:
        ahead = (facts.closes > cutoff) & (outcomes != UNRESOLVED)
        hidden = _counted(ahead, "closed after the time of --as-of, taken as not resolved")
        undated = finding("as-of-undated", other="other " if ahead.any() else "")
        return np.where(ahead, UNRESOLVED, outcomes), [*hidden, undated]
    later = (facts.resolved_at > cutoff) & (outcomes != UNRESOLVED)
    undated = np.isnat(facts.resolved_at) & (outcomes != UNRESOLVED)
    notes = _counted(later, "resolved after the time of --as-of, taken as not resolved")
    notes += _counted(
        undated,
        "resolved, nobody knows when, taken as not resolved at the time of --as-of; --column resolved_at= takes every "
        "outcome as known",
    )
    return np.where(later | undated, UNRESOLVED, outcomes), notes


def void_by(cutoff: np.datetime64 | None, settled: Settled, facts: Facts) -> tuple[npt.NDArray[np.bool_], list[Note]]:
    """Return the mask of events known to be void at the cutoff, and the notes on outcomes.

    What was annulled at an unknown time was open until it closed; if there are no times of resolution, and none of
    closing either, it was known.
    """
    if cutoff is None:
        return settled.void, list(settled.notes)
    later = settled.void & (facts.resolved_at > cutoff)
    closed = facts.closes <= cutoff if facts.dated else ~(facts.closes > cutoff)
    undated = settled.void & np.isnat(facts.resolved_at) & ~closed
    void = settled.void & ~later & ~undated
    notes = [note for note in settled.notes if note.code != "void"]
    notes += [void_note(int(void.sum()))] if void.any() else []
    notes += _counted(later, "annulled after the time of --as-of, taken as open")
    notes += _counted(undated, "annulled, nobody knows when, and not closed at the time of --as-of, taken as open")
    return void, notes


def _counted(events: npt.NDArray[np.bool_], what: str) -> list[Note]:
    """A note on some events; none if there are none."""
    return [finding("as-of-outcomes", count=int(events.sum()), what=what)] if events.any() else []


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
    """Return the time of each possible forecast, NaT where there is no forecast, (T N,)."""
    assert forecasts.made is not None
    made = np.full(forecasts.shape, np.datetime64("NaT", "us"))
    made[forecasts.event_index, forecasts.expert_index] = forecasts.made
    return made.ravel()
