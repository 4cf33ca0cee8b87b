"""Stages between two states of a stream: events corrected and annulled, then outcomes, then open events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opinionpool import logodds
from opinionpool.errors import ArgumentError
from opinionpool.labels import UNRESOLVED
from opinionpool.names import places
from opinionpool.streams.block import Event
from opinionpool.streams.state import Change, StreamState
from opinionpool.streams.stream import Stream


@dataclass(frozen=True, eq=False)
class Stages:
    """Intermediate streams between an old and a new stream, and the ids of the events in which the two differ."""

    # the old one with outcomes, forecasts, weights, dates, topics and groups of resolved events as the new one has
    # them, and without events that the new one does not have; None where nothing of this kind happened
    corrected: Stream | None
    learned: Stream | None  # the same with the events resolved since, as the new one has them; None without any
    corrections: tuple[str, ...]  # events with corrections
    gone: tuple[str, ...]  # events that the new stream does not have
    outcomes: tuple[str, ...]  # events that were resolved since
    opened: tuple[str, ...]  # open events that the old stream does not have


def stages_between(old: Stream, new: Stream) -> Stages | None:
    """Stages between two streams; None if a sample is incomplete, or only one stream has priors for each event.

    Raises ArgumentError if they are about other classes.
    """
    if tuple(map(str, old.classes)) != tuple(map(str, new.classes)):
        raise ArgumentError(f"the classes of one pool are {old.classes}, and those of the other {new.classes}")
    before, after = old._settled(), new._settled()
    together = before.sample.complete and after.sample.complete
    if not together or _own_priors(before) != _own_priors(after):
        return None
    names = list(dict.fromkeys((*before.experts, *after.experts)))
    (was, was_open), (now, now_open) = _events(before, names), _events(after, names)
    resolved, corrections, gone = {}, [], []
    opened = {event: each for event, each in was_open.items() if event in now_open or event in now}
    gone += [event for event in was_open if event not in opened]
    for event, each in was.items():
        if event in now:
            resolved[event] = now[event]
            if not _same(each, now[event]):
                corrections.append(event)
        elif event in now_open:
            opened[event] = each._replace(outcome=UNRESOLVED)
            corrections.append(event)
        else:
            gone.append(event)
    since = {event: each for event, each in now.items() if event not in was}
    first = None
    if corrections or gone:
        first = _stream(old, [*resolved.values(), *opened.values()], names, len(before.experts))
    second = None
    if since:
        still = [each for event, each in opened.items() if event not in since]
        second = _stream(old, [*resolved.values(), *since.values(), *still], names, len(before.experts))
    fresh = [event for event in now_open if event not in was_open and event not in was]
    return Stages(first, second, *(tuple(map(str, events)) for events in (corrections, gone, since, fresh)))


def _events(state: StreamState, names: Sequence[str]) -> tuple[dict[object, Event], dict[object, Event]]:
    """Resolved and open events by id, or by a hash of contents without ids; experts are positions in `names`."""
    columns = places(state.experts, names)
    resolved: dict[str, Event] = {}
    for priority, block in state.sample.parts:
        for each, event in zip(priority, block, strict=True):
            name = event.id or f"row {each:.17g}"
            while name in resolved:  # a copy of a row
                name += " again"
            resolved[name] = event
    resolved = {name: resolved[name] for name in sorted(resolved)}
    return tuple(  # type: ignore[return-value]
        {name: event._replace(experts=columns[event.experts]) for name, event in found.items()}
        for found in (resolved, state.open)
    )


def _own_priors(state: StreamState) -> bool:
    """Return True if events have priors of their own and the stream has no shared one."""
    return state.totals.prior is None and bool(state.own_priors())


def with_settings(settings: Stream, events: Stream) -> Stream | None:
    """Stream of the events of `events` with the settings of `settings`; None if the former did not keep all events."""
    state = events._settled()
    if not state.sample.complete:
        return None
    found = [event for events in _events(state, state.experts) for event in events.values()]
    return _stream(settings, found, list(state.experts), len(state.experts))


def _same(one: Event, other: Event) -> bool:
    """Return True if two versions of an event are equal in everything that a fit uses."""
    if (one.outcome, one.weight, len(one.experts)) != (other.outcome, other.weight, len(other.experts)):
        return False
    mine, theirs = np.argsort(one.experts), np.argsort(other.experts)
    same = np.array_equal(one.experts[mine], other.experts[theirs])
    same = same and np.array_equal(one.probabilities[mine], other.probabilities[theirs])
    same = same and np.array_equal(one.times_made()[mine], other.times_made()[theirs], equal_nan=True)
    return bool(same and np.array_equal(_numbers(one.prior), _numbers(other.prior)) and _facts(one) == _facts(other))


def _facts(event: Event) -> tuple[object, ...]:
    """Facts of an event that a fit uses: date and time of asking if it has ended, group and topic."""
    end = (event.time, event.asked) if event.settled else (None, None)
    return *end, event.group or "", event.topic or ""


def _numbers(prior: object) -> np.ndarray:
    return np.empty(0) if prior is None else np.atleast_1d(np.asarray(prior))


def _stream(like: Stream, events: list[Event], names: list[str], known: int) -> Stream:
    """Stream with the settings of `like`, of the given events and the experts who forecast these."""
    made = Stream(
        like.classes,
        prior=None if like.prior is None else logodds.public_probabilities(like.prior),
        half_life=like.half_life, capacity=max(like.capacity, len(like.classes) * (len(events) + 1)), seed=like.seed,
        floor=like.floor, pool_floor=like.pool_floor,
    )  # fmt: skip
    there = np.zeros(len(names), dtype=bool)
    there[:known] = True
    for event in events:
        there[event.experts] = True
    state, _ = made._state.joined([name for name, present in zip(names, there.tolist(), strict=True) if present])
    columns = np.cumsum(there) - 1
    changes = [
        Change(event.id or f"row {i}", None, event._replace(experts=columns[event.experts]))
        for i, event in enumerate(events)
    ]
    made._state = state.changed(changes)
    return made
