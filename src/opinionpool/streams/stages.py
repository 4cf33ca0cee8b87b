"""What lies between two states of a stream: events corrected and annulled first, then outcomes, then open events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from opinionpool import logodds
from opinionpool.errors import ArgumentError
from opinionpool.labels import UNRESOLVED
from opinionpool.names import places
from opinionpool.streams.events import Record, event_key
from opinionpool.streams.state import StreamState
from opinionpool.streams.stream import Stream


@dataclass(frozen=True, eq=False)
class Stages:
    """Two streams, and those between them.

    Attributes
    ----------
    corrected : Stream or None
        The old one with outcomes, forecasts, weights, dates, topics and groups of resolved events as the new one has
        them, and without events that the new one does not have. None where nothing of this kind happened.
    learned : Stream or None
        The same with the events that were resolved since, as the new one has them. None where there are none.
    corrections, gone, outcomes : tuple of str
        Events with corrections, events that the new stream does not have, and events that were resolved since.
    opened : tuple of str
        Open events that the old stream does not have.
    """

    corrected: Stream | None
    learned: Stream | None
    corrections: tuple[str, ...]
    gone: tuple[str, ...]
    outcomes: tuple[str, ...]
    opened: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Contents:
    """The events of a stream by their ids, with experts by position among those of both streams."""

    resolved: dict[str | int, Record]
    open: dict[str | int, Record]

    @classmethod
    def of(cls, state: StreamState, names: Sequence[str]) -> _Contents:
        columns = places(state.experts, names)

        def by_id(records: Iterable[Record]) -> dict[str | int, Record]:
            return {record.event: record._replace(experts=columns[record.experts]) for record in records}

        return cls(by_id(state.reservoir.records()), by_id(state.open.values()))


def stages_between(old: Stream, new: Stream) -> Stages | None:
    """The streams between two; None where one has learned from more events than it keeps, or they do not go together.

    Raises
    ------
    ArgumentError
        If they are about other classes.
    """
    if tuple(map(str, old.classes)) != tuple(map(str, new.classes)):
        raise ArgumentError(f"the classes of one pool are {old.classes}, and those of the other {new.classes}")
    before, after = old.copy()._state, new.copy()._state
    before.flush()
    after.flush()
    if not (before.reservoir.complete and after.reservoir.complete) or _own_priors(before) != _own_priors(after):
        return None
    names = list(dict.fromkeys((*before.experts, *after.experts)))
    was, now = _Contents.of(before, names), _Contents.of(after, names)
    resolved, corrections, gone = {}, [], []
    opened = {event: record for event, record in was.open.items() if event in now.open or event in now.resolved}
    gone += [event for event in was.open if event not in opened]
    for event, record in was.resolved.items():
        if event in now.resolved:
            resolved[event] = now.resolved[event]
            if not _same(record, now.resolved[event]):
                corrections.append(event)
        elif event in now.open:
            opened[event] = record._replace(outcome=UNRESOLVED)
            corrections.append(event)
        else:
            gone.append(event)
    since = {event: record for event, record in now.resolved.items() if event not in was.resolved}
    first = None
    if corrections or gone:
        first = _stream(old, [*resolved.values(), *opened.values()], names, len(before.experts))
    second = None
    if since:
        still = [record for event, record in opened.items() if event not in since]
        second = _stream(old, [*resolved.values(), *since.values(), *still], names, len(before.experts))
    fresh = [event for event in now.open if event not in was.open and event not in was.resolved]
    return Stages(first, second, *(tuple(map(str, events)) for events in (corrections, gone, since, fresh)))


def _own_priors(state: StreamState) -> bool:
    """Whether events have priors of their own and the stream has none for all."""
    records = (*state.open.values(), *state.reservoir.records())
    return state.tally.prior is None and any(record.prior is not None for record in records)


def with_settings(settings: Stream, events: Stream) -> Stream | None:
    """The events of one stream with the settings of another; None where it has more than it keeps."""
    state = events.copy()._state
    state.flush()
    if not state.reservoir.complete:
        return None
    return _stream(settings, [*state.reservoir.records(), *state.open.values()], state.experts, len(state.experts))


def _same(one: Record, other: Record) -> bool:
    """Whether two streams have learned the same of an event."""
    if (one.outcome, one.weight, len(one.experts)) != (other.outcome, other.weight, len(other.experts)):
        return False
    mine, theirs = np.argsort(one.experts), np.argsort(other.experts)
    same = np.array_equal(one.experts[mine], other.experts[theirs])
    same = same and np.array_equal(one.probabilities[mine], other.probabilities[theirs])
    same = same and np.array_equal(one.times_made()[mine], other.times_made()[theirs], equal_nan=True)
    return bool(same and np.array_equal(_numbers(one.prior), _numbers(other.prior)) and _facts(one) == _facts(other))


def _facts(record: Record) -> tuple[object, ...]:
    """What of an event plays a part in learning, beside forecasts and outcome."""
    end = (record.time, record.asked) if record.settled else (None, None)
    return *end, record.group or "", record.topic or ""


def _numbers(prior: object) -> np.ndarray:
    return np.empty(0) if prior is None else np.atleast_1d(np.asarray(prior))


def _stream(like: Stream, records: list[Record], names: list[str], known: int) -> Stream:
    """A stream with the settings of another one, of these events; experts who have no part in them stay away."""
    made = Stream(
        like.classes,
        prior=None if like.prior is None else logodds.public_probabilities(like.prior),
        half_life=like.half_life, capacity=max(like.capacity, len(like.classes) * (len(records) + 1)), seed=like.seed,
        floor=like.floor, pool_floor=like.pool_floor,
    )  # fmt: skip
    state = made._state
    there = np.zeros(len(names), dtype=bool)
    there[:known] = True
    for record in records:
        there[record.experts] = True
    columns = np.cumsum(there) - 1
    with state.all_or_nothing():
        state.join([name for name, present in zip(names, there.tolist(), strict=True) if present])
        for record in records:
            key = event_key(record.event, like.seed) if isinstance(record.event, str) else record.key
            moved = record._replace(key=key, experts=columns[record.experts])
            if moved.outcome == UNRESOLVED:
                state.put_open(moved)
            else:
                state.learn(moved)
    return made
