"""What new forecasts and outcomes change in a stream: planned first, so that a batch changes all or nothing."""

from __future__ import annotations

from typing import NamedTuple

from opinionpool.errors import ArgumentError, Note
from opinionpool.forecasts import UNRESOLVED
from opinionpool.ledger import Entry
from opinionpool.records import Record
from opinionpool.streamstate import StreamState
from opinionpool.wording import counted, shown

__all__ = ["Change", "Changes", "corrected"]


class Change(NamedTuple):
    """What was learned of an event is taken back, if anything was, and what is known now takes its place."""

    old: Record | None
    new: Record

    @property
    def fresh(self) -> bool:
        """Whether the event was not resolved before, and is now."""
        return self.old is None and self.new.outcome != UNRESOLVED

    def made(self, state: StreamState) -> None:
        """Make the change."""
        if self.old is not None:
            state.unlearn(self.old)
        if self.new.outcome == UNRESOLVED:
            state.open[self.new.key] = self.new
        else:
            state.learn(self.new)


def corrected(state: StreamState, record: Record, entry: Entry, weight: float | None, *, complete: bool) -> Change:
    """Another outcome or weight for an event that was learned from; outcome -1 takes the outcome back.

    Parameters
    ----------
    state : StreamState
    record : Record
        With the new outcome.
    entry : Entry
        What is remembered of the event.
    weight : float or None
        None keeps the one it had.
    complete : bool
        Whether the record has all forecasts that were learned, as far as the caller knows.

    Raises
    ------
    ArgumentError
        If the forecasts are needed and not those that were learned.
    """
    old = state.reservoir.find(record.key)
    if old is None and complete and state.content(record) == entry.content:
        old = record._replace(outcome=entry.outcome, weight=entry.weight, at=entry.at)
    if old is None:
        what = "came with other ones" if complete else "must come with them"
        raise ArgumentError(
            f"event {shown(record.event)} is corrected, its forecasts are no longer in the sample, and it {what}: give "
            "all forecasts on it as they were when it was learned"
        )
    return Change(old, old._replace(outcome=record.outcome, weight=old.weight if weight is None else weight))


class Changes:
    """The changes that a batch makes.

    Attributes
    ----------
    made : list of Change
    """

    def __init__(self, state: StreamState) -> None:
        self._state = state
        self.made: list[Change] = []
        self._known = self._corrected = self._late = 0

    def plan(self, record: Record, weight: float | None) -> None:
        """Plan for one event, with all that is said of it; `weight` None keeps the one it has, or is 1.

        Raises
        ------
        ArgumentError
            If it is corrected, and cannot be.
        """
        state, weigh = self._state, 1.0 if weight is None else weight
        entry = state.ledger.find(record.key)
        if entry is None:
            held = state.open.get(record.key)
            new = (record if held is None else held.revised(record))._replace(weight=weigh)
            if weigh > 0 and (new.outcome != UNRESOLVED or len(new.experts) or held is not None):
                self.made.append(Change(None, new))
            return
        same = state.content(record) == entry.content
        self._late += not same
        if record.outcome == UNRESOLVED or (record.outcome == entry.outcome and weight in {None, entry.weight}):
            self._known += 1
            return
        self._corrected += 1
        self.made.append(corrected(state, record, entry, weight, complete=True))

    def notes(self) -> tuple[Note, ...]:
        """What a user should know about the batch."""
        notes = []
        if self._known:
            text = f"{counted(self._known, 'resolved event')} learned from before, and not again"
            notes.append(Note("known", text, self._known))
        if self._corrected:
            text = f"{counted(self._corrected, 'outcome')} corrected"
            notes.append(Note("corrected", text, self._corrected))
        if self._late:
            text = (
                f"{counted(self._late, 'event')} with other forecasts than when they were learned from: the earlier "
                "ones count, as what is said after the outcome is no forecast"
            )
            notes.append(Note("late-forecasts", text, self._late))
        return tuple(notes)
