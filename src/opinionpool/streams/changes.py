"""What new forecasts and outcomes change in a stream: planned first, so that a batch changes all or nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from opinionpool.errors import ArgumentError, Note
from opinionpool.forecasts import Forecasts
from opinionpool.labels import UNRESOLVED
from opinionpool.streams.absent import absent_events, absent_experts, present_experts
from opinionpool.streams.events import Record
from opinionpool.streams.ledger import Entry
from opinionpool.streams.state import StreamState
from opinionpool.text import counted, shown


class Change(NamedTuple):
    """What was learned of an event is taken back, if anything was, and what is known now takes its place."""

    old: Record | None
    new: Record
    void: bool = False  # whether nothing takes its place

    @property
    def fresh(self) -> bool:
        """Whether the event was not resolved before, and is now."""
        return self.old is None and self.new.outcome != UNRESOLVED and not self.void

    def made(self, state: StreamState) -> None:
        """Make the change."""
        if self.old is not None:
            state.unlearn(self.old)
        if self.void:
            state.drop_open(self.new.key)
        elif self.new.outcome == UNRESOLVED:
            state.put_open(self.new)
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
    old = _as_learned(state, record, entry, complete=complete)
    return Change(old, old._replace(outcome=record.outcome, weight=old.weight if weight is None else weight))


def annulled(state: StreamState, record: Record, *, complete: bool) -> Change | None:
    """An event that is void: what was learned of it is taken back, and it is no longer open. None if it is unknown.

    Parameters and errors as for `corrected`.
    """
    entry = state.ledger.find(record.key)
    if entry is not None:
        old = _as_learned(state, record, entry, complete=complete)
        return Change(old, old, void=True)
    current = state.open.get(record.key)
    return None if current is None else Change(None, current, void=True)


def _as_learned(state: StreamState, record: Record, entry: Entry, *, complete: bool) -> Record:
    """An event with the forecasts that were learned from."""
    old = state.reservoir.find(record.key)
    if old is None and complete and state.content(record) == entry.content:
        old = record._replace(outcome=entry.outcome, weight=entry.weight, at=entry.at)
    if old is None:
        what = "came with other ones" if complete else "must come with them"
        raise ArgumentError(
            f"event {shown(record.event)} is corrected, its forecasts are no longer in the sample, and it {what}: give "
            "all forecasts on it as they were when it was learned, or learn from the whole table anew, --save without "
            "--model"
        )
    return old


# What a batch may have met: the code of the note, of what it counts, and the text.
_NOTES = (
    ("known", "resolved event", "{} learned from before, and not again"),
    ("corrected", "outcome", "{} corrected"),
    (
        "redescribed",
        "event",
        "{} with another topic, group or date than when they were learned from: those of this table count",
    ),
    ("taken-back", "event", "{} annulled since, and taken back"),
    ("reopened", "outcome", "{} taken back: not resolved in this table, and open again"),
    (
        "no-longer-there",
        "forecast",
        "{} on open events withdrawn: the pool had them, and they are not here any more",
    ),
    (
        "late-forecasts",
        "event",
        "{} with other forecasts than when they were learned from: the earlier ones count, as what comes after the "
        "outcome is no forecast",
    ),
)


class Changes:
    """The changes that a batch makes.

    Parameters
    ----------
    state : StreamState
    table : Forecasts, optional
        The batch, if it is a table that is exported again and again: an event that comes with forecasts comes with all
        of them, and with its outcome, so that what is not there any more is withdrawn and taken back.

    Attributes
    ----------
    made : list of Change
    """

    def __init__(self, state: StreamState, *, table: Forecasts | None = None) -> None:
        self._state, self._table = state, table
        # A table without any outcome has them elsewhere.
        self._settles = table is not None and (table.void is not None or bool(table.resolved.any()))
        # A table of current forecasts alone does not say what they superseded.
        self._revised = table is not None and table.earlier is not None
        self.made: list[Change] = []
        self._met: Counter[str] = Counter()  # how often what `_NOTES` tell was met
        self._again = 0  # events that were known, and come with forecasts
        self._keys: set[int] = set()
        self._experts = tuple(state.experts)
        # What the table tells of its events beside forecasts and outcomes.
        self._facts = () if table is None else _facts(table)
        self._present = [] if table is None else present_experts(state)

    def plan(self, record: Record, weight: float | None) -> None:
        """Plan for one event, with all its forecasts; `weight` None keeps the one it has, or is 1.

        Raises
        ------
        ArgumentError
            If it is corrected, and cannot be.
        """
        state, weigh = self._state, 1.0 if weight is None else weight
        entry, current = state.ledger.find(record.key), state.open.get(record.key)
        self._keys.add(record.key)
        self._again += len(record.experts) > 0 and (entry is not None or current is not None)
        if entry is None:
            if current is not None and self._table is not None and len(record.experts):
                gone = int((~np.isin(current.experts, record.experts)).sum())
                self._met["no-longer-there"] += gone
                current = current.without_forecasts() if gone else current
            # What a table has is what stands, whenever it was made.
            revise = current and (current.updated if self._table is None else current.revised)
            new = (revise(record) if revise else record)._replace(weight=weigh)
            if "asked" in self._facts and len(record.experts):
                # Read without --as-of, events are answered as of their newest forecasts again.
                new = new._replace(asked=record.asked)
            if weigh > 0 and (new.outcome != UNRESOLVED or len(new.experts) or current is not None):
                self.made.append(Change(None, new))
            return
        if record.outcome == UNRESOLVED and self._settles:
            self._met["reopened"] += 1
            old = _as_learned(state, record, entry, complete=True)
            again = old.without_forecasts().revised(record)._replace(asked=record.asked)
            self.made.append(Change(old, again._replace(weight=old.weight if weight is None else weight)))
            return
        learned = state.reservoir.find(record.key)
        others = state.content(record) != entry.content
        if self._revised and learned is not None and len(record.experts):
            others = others or not learned.supersedes_same(record)
        self._met["late-forecasts"] += others
        if record.outcome != UNRESOLVED and (record.outcome != entry.outcome or weight not in {None, entry.weight}):
            self._met["corrected"] += 1
            change = corrected(state, record, entry, weight, complete=True)
            self.made.append(change._replace(new=change.new._replace(**self._changed(change.new, record))))
            return
        self._met["known"] += 1
        if record.outcome == UNRESOLVED or learned is None:
            return
        changed = self._changed(learned, record)
        if changed:
            # Without an end, these are of --as-of and of the newest forecast.
            self._met["redescribed"] += record.settled or bool(changed.keys() - {"asked", "time"})
            self.made.append(Change(learned, learned._replace(**changed)))

    def _changed(self, old: Record, record: Record) -> dict[str, Any]:
        """Topic, group and dates of an event, where a table gives others than those that were learned from."""
        now = {name: getattr(record, name) for name in self._facts}
        return {name: value for name, value in now.items() if getattr(old, name) != value}

    def plan_void(self, record: Record) -> None:
        """Plan for one event that is void, with all its forecasts.

        Raises
        ------
        ArgumentError
            If it was learned from, and cannot be taken back.
        """
        self._keys.add(record.key)
        change = annulled(self._state, record, complete=True)
        if change is not None:
            self._met["taken-back"] += 1
            self.made.append(change)

    def notes(self) -> tuple[Note, ...]:
        """What a user should know about the batch."""
        notes = [Note(code, text.format(counted(n, noun)), n) for code, noun, text in _NOTES if (n := self._met[code])]
        return (*notes, *self._absent())

    def _absent(self) -> list[Note]:
        """What the stream has, once the changes are made, and a table that it knew has not."""
        if self._table is None or not self._again:
            return []
        parts = [self._table] if self._table.void is None else [self._table, self._table.void]
        there = dict.fromkeys(part.experts[i] for part in parts for i in np.unique(part.expert_index).tolist())
        return [*absent_events(self._state, self._keys), *absent_experts(self._present, self._experts, list(there))]


def _facts(table: Forecasts) -> tuple[str, ...]:
    """Which fields of a `Record` a table has columns for."""
    columns = {"topic": table.topics, "group": table.groups, "time": table.times, "settled": table.times}
    # Where forecasts have times, they are answered as of the newest one if nothing else is known.
    columns["asked"] = table.made if table.asked is None else table.asked
    return tuple(name for name, column in columns.items() if column is not None)
