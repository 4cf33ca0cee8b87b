"""Differences between two saved pools, and the reasons why answers moved.

A move is split by going from the old pool to the new one in steps, in an order that is always the same: corrections and
annulled events, outcomes learned, agreement on open events, new or revised forecasts, beliefs and settings. After each
step the answer is computed again, so the parts add up to the move exactly. Where a pool was fitted by another release,
what this one makes of the same is computed too, and the difference is a part of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from opinionpool import logodds
from opinionpool.arguments import expect_type
from opinionpool.arrays import Array
from opinionpool.display import Tabular
from opinionpool.errors import ArgumentError, ExpertError, LearningError, Note
from opinionpool.forecasts import Forecasts
from opinionpool.labels import UNRESOLVED
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.fitted import FittedPanel
from opinionpool.logodds import public_log_odds, public_probabilities
from opinionpool.names import places
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.priors import event_priors
from opinionpool.streams.block import Event
from opinionpool.streams.state import Change, StreamState
from opinionpool.streams.stream import Stream
from opinionpool.streams.trained import TrainedPool, matched
from opinionpool.text import counted, listed

# The parts of a move, in the order in which they are made.
STEPS = ("corrections", "outcomes", "agreement", "forecasts", "beliefs", "software")
# What is compared of each expert.
FEATURES = ("weight", "calibration", "accuracy", "bias")


class Move(NamedTuple):
    """Change of one answer between two pools: the sum of changes due to each of `STEPS` (corrections, outcomes ...)."""

    event: str
    label: object | None  # the class that it is about; None for binary events
    old: float
    new: float
    parts: tuple[float, ...]  # changes due to each of `STEPS`, which add up to new - old

    @property
    def moved(self) -> float:
        """Change of the probability, new less old."""
        return self.new - self.old


class ExpertChange(NamedTuple):
    """Features (weight, accuracy, ...) of one expert in two pools; NaN where a pool does not know the expert."""

    expert: str
    old: dict[str, float]  # values of `FEATURES` by name
    new: dict[str, float]

    def change(self, feature: str) -> float:
        """Value of `feature` in the new pool less its value in the old pool."""
        return self.new[feature] - self.old[feature]


class Resolved(NamedTuple):
    """An event that was resolved between the two pools, and the old pool's answer about it."""

    event: str
    outcome: object  # the label of its class
    probability: float  # the old pool's probability of that class


@dataclass(frozen=True, eq=False, repr=False)
class Diff(Tabular):
    """Differences between two pools: priors, features of experts, events, and answers about open events.

    Attributes
    ----------
    prior : pair of ndarray or None
        Class probabilities of the old and of the new prior; None where events had their own.
    events : pair of float
        Weight of the resolved events behind each pool.
    experts : tuple of ExpertChange
        The experts, those whose weights changed most first.
    moves : tuple of Move
        Answers about events that are open in both, the largest move first; one for each class where there are more than
        two. Empty where there are no forecasts.
    corrections, gone, outcomes, opened : tuple of str
        Events that were corrected; that were annulled or are missing; that were resolved since; and new open events.
    resolved : tuple of Resolved
        The events in `outcomes` whose forecasts the old pool keeps.
    notes : tuple of Note
    """

    prior: tuple[Array | None, Array | None]
    events: tuple[float, float]
    experts: tuple[ExpertChange, ...]
    moves: tuple[Move, ...]
    corrections: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    resolved: tuple[Resolved, ...] = ()
    notes: tuple[Note, ...] = field(default=())

    def _table(self) -> dict[str, list[Any]]:
        """Columns with a row for each move or, if no answer moved, for each expert."""
        if not self.moves:
            table: dict[str, list[Any]] = {"expert": [each.expert for each in self.experts]}
            for feature in FEATURES:
                table[f"{feature}_old"] = [each.old[feature] for each in self.experts]
                table[feature] = [each.new[feature] for each in self.experts]
            return table
        table = {"event": [move.event for move in self.moves]}
        if any(move.label is not None for move in self.moves):
            table["class"] = [move.label for move in self.moves]
        table |= {name: [getattr(move, name) for move in self.moves] for name in ("old", "new", "moved")}
        return table | {step: [move.parts[i] for move in self.moves] for i, step in enumerate(STEPS)}

    def __repr__(self) -> str:
        events = len({move.event for move in self.moves})
        words = [f"{counted(len(self.outcomes), 'outcome')} learned", f"{counted(events, 'answer')} compared"]
        if self.moves:
            first = self.moves[0]
            words.append(f"{first.event!r} moved most, from {first.old:.3f} to {first.new:.3f}")
        return f"<Diff: {', '.join(words)}>"


def diff(
    old: object, new: object, old_forecasts: Forecasts | None = None, new_forecasts: Forecasts | None = None
) -> Diff:
    """Compare two pools: how priors and experts changed, and by which steps answers moved.

    Parameters
    ----------
    old, new
        Trained pools, streams, fitted estimators (all as returned by `load`), or results of a fit.
    old_forecasts, new_forecasts : Forecasts, optional
        Forecasts as they were pooled; by default, the open events that each pool keeps.

    Returns
    -------
    Diff
        How priors, weights and features of experts changed; and for each event that is open in both, how far its answer
        moved, split into the steps of `STEPS`.

    Raises
    ------
    ArgumentError
        If the pools have different classes, or only one of the two forecasts is given.
    ExpertError
        If a forecast is by an expert whom the pool does not know.
    LearningError
        If forecasts are given, and a pool was saved without what it learned from.

    Examples
    --------
    >>> from opinionpool.streams.stream import Stream
    >>> stream = Stream()
    >>> stream.forecast("rain", {"ann": 0.8, "bob": 0.4})
    >>> stream.forecast("snow", {"ann": 0.3, "bob": 0.2})
    >>> before = stream.copy()
    >>> stream.resolve("rain", 1)
    >>> stream.forecast("snow", {"bob": 0.1})
    >>> found = diff(before, stream)
    >>> move = found.moves[0]
    >>> move.event, abs(sum(move.parts) - move.moved) < 1e-12, found.outcomes
    ('snow', True, ('rain',))
    """
    if (old_forecasts is None) != (new_forecasts is None):
        raise ArgumentError("to compare answers, give the forecasts of both, as they were pooled by each")
    for forecasts in (old_forecasts, new_forecasts):
        if forecasts is not None:
            expect_type(forecasts, Forecasts, "forecasts")
    before, after = alike(TrainedPool.of(old), TrainedPool.of(new))
    if tuple(map(str, before.classes)) != tuple(map(str, after.classes)):
        raise ArgumentError(
            f"the old pool is about classes {listed(before.classes)}, and the new one about {listed(after.classes)}"
        )
    if before.stream is None or after.stream is None:
        if old_forecasts is not None:
            raise LearningError(
                "a pool was saved without what it learned from, so why answers moved is unknown; pools that "
                "pool --save writes have it"
            )
        return _changes(before, after)
    stages = stages_between(before.stream, after.stream)
    if old_forecasts is None or new_forecasts is None:
        old_forecasts, new_forecasts = before.stream.forecasts(), after.stream.forecasts()
    if not set(before.experts) & set(after.experts):
        raise ArgumentError("the pools have no expert in common, so their answers are not compared")
    old_known = _known(old_forecasts, before, "old")
    was, now = _open_in_both(old_known, _known(new_forecasts, after, "new"))
    found = _changes(before, after, _moves(before, after, stages, was, now), stages)
    resolved = _resolved(before, after, old_known, found.outcomes)
    notes = (*found.notes, *_order_notes(found, old_forecasts, new_forecasts))
    return replace(found, resolved=resolved, notes=notes)


def alike(old: TrainedPool, new: TrainedPool) -> tuple[TrainedPool, TrainedPool]:
    """Both pools with names of classes: a pool that has none takes the other pool's names."""
    return old.named(new.classes), new.named(old.classes)


def _order_notes(found: Diff, old: Forecasts, new: Forecasts) -> list[Note]:
    """Notes if the old pool or its forecasts seem later than the new ones; an empty list otherwise."""
    texts = []
    waiting = {event for event, resolved in zip(new.events, new.resolved.tolist(), strict=True) if not resolved}
    # Outcomes that are taken back are few; those that are not known yet are most of what differs.
    if len(waiting & set(found.corrections)) > len(found.outcomes):
        texts.append(
            f"the old pool has learned from {found.events[0]:,.6g} resolved events, and the new one from "
            f"{found.events[1]:,.6g}: are the two in the wrong order?"
        )
    counts = int(old.resolved.sum()), int(new.resolved.sum())
    if counts[0] > counts[1]:
        texts.append(
            f"the forecasts of the old pool have outcomes of {counts[0]:,} events, and those of the new one of "
            f"{counts[1]:,}: are the files in the wrong order?"
        )
    return [Note("order", text, serious=True) for text in texts]


def _known(forecasts: Forecasts, trained: TrainedPool, which: str) -> Forecasts:
    """Forecasts in the classes of the pool `trained`; an ExpertError, about the `which` pool, for an unknown expert."""
    found = matched(forecasts, trained, f"the {which} file")
    present = {found.experts[i] for i in np.unique(found.expert_index).tolist()}
    known = set(trained.experts)
    strange = sorted(present - known)
    if strange:
        verb = "is" if len(strange) == 1 else "are"
        raise ExpertError(f"{listed(strange)} {verb} unknown to the {which} pool, which has not pooled these forecasts")
    return found.select_experts([name for name in found.experts if name in known])


def _open_in_both(old: Forecasts, new: Forecasts) -> tuple[Forecasts, Forecasts]:
    """Old and new forecasts on the events that both answer and that are open in `new`, in the order of `new`."""
    places = {event: i for i, event in enumerate(old.events)}
    answered, before = new.crowd > 0, old.crowd > 0
    shared = [
        (places[event], i)
        for i, event in enumerate(new.events)
        if event in places and answered[i] and before[places[event]] and not new.resolved[i]
    ]
    first, second = np.array(shared, dtype=np.intp).reshape(-1, 2).T
    return old.select_events(first), new.select_events(second)


def _resolved(
    old: TrainedPool, new: TrainedPool, forecasts: Forecasts, outcomes: Sequence[str]
) -> tuple[Resolved, ...]:
    """The old pool's answers about `outcomes`, events resolved since; events without forecasts are left out."""
    learned, wanted = None if new.stream is None else new.stream.sample()[0], set(outcomes)
    rows = [t for t, event in enumerate(forecasts.events) if event in wanted and forecasts.crowd[t] > 0]
    if learned is None or not rows:
        return ()
    codes = {event: code for event, code in zip(learned.events, learned.outcomes.tolist(), strict=True) if code >= 0}
    answers = _answers(old.learned, forecasts.select_events(rows))
    found = []
    for t, p in zip(rows, answers, strict=True):
        code = codes.get(forecasts.events[t])
        if code is not None:
            shares = np.array([1.0 - p, p]) if p.ndim == 0 else p
            found.append(Resolved(forecasts.events[t], new.classes[code], float(shares[code])))
    return tuple(found)


def _moves(
    old: TrainedPool, new: TrainedPool, stages: Stages | None, was: Forecasts, now: Forecasts
) -> tuple[Move, ...]:
    """Changes of the answers about open events between two pools, each split into parts due to each of `STEPS`."""
    if not now.events:
        return ()
    # Where a pool was fitted by another release, what this one makes of the same shows which part is the release's.
    first, last = old.fitted_now(), new.fitted_now()
    corrected = learned = first
    if stages is not None:
        corrected = first if stages.corrected is None else stages.corrected.fit(old.name, **old.options)
        learned = corrected if stages.learned is None else stages.learned.fit(old.name, **old.options)
    final = last if _same_settings(old, new) else _refitted(old, new)
    # Who has left the panel says nothing to the new pool.
    there = set(new.experts)
    known = was.select_experts([name for name in was.experts if name in there])
    # A topic that an open event is given, or loses, is a correction too.
    described, known = (replace(some, topics=now.topics) for some in (was, known))
    chain = [(first, was), (corrected, described), (learned, described), (final, known), (final, now), (last, now)]
    answers = [_answers(*each) for each in chain]
    if stages is None:
        # Outcomes stand for all that was learned.
        answers[1] = answers[0]
        answers[2] = answers[3]
    before = answers[0] if first is old.learned else _answers(old.learned, was)
    after = answers[-1] if last is new.learned else _answers(new.learned, now)
    table = np.array([before, *answers[1:-1], after])
    parts = np.diff(np.array(answers), axis=0)
    parts = np.concatenate([parts, [(answers[0] - before) + (after - answers[-1])]])
    labels = (None,) if table.ndim == 2 else now.classes
    table, parts = (each.reshape(len(each), len(now.events), -1) for each in (table, parts))
    order = np.argsort(-np.abs(table[-1] - table[0]).max(axis=1), kind="stable").tolist()
    return tuple(
        Move(now.events[t], label, float(table[0, t, k]), float(table[-1, t, k]), tuple(parts[:, t, k].tolist()))
        for t in order
        for k, label in enumerate(labels)
    )


def _same_settings(old: TrainedPool, new: TrainedPool) -> bool:
    """Return True if both pools have the same rule, options, prior, floors and half-life."""

    def settings(trained: TrainedPool) -> tuple[object, ...]:
        stream = trained.stream
        assert stream is not None
        prior = None if stream.prior is None else stream.prior.tolist()
        return trained.name, _plain(trained), prior, stream.floor, stream.pool_floor, stream.half_life

    return settings(old) == settings(new)


def _plain(trained: TrainedPool) -> dict[str, str]:
    """Options of a pool's fit, each value as a string, so that options of two pools can be compared."""
    return {
        name: str(value.to_dict() if isinstance(value, Beliefs) else value) for name, value in trained.options.items()
    }


def _refitted(old: TrainedPool, new: TrainedPool) -> Fitted:
    """Fit to the new pool's events with the old pool's settings; the new pool's own fit if a pool keeps no events."""
    stream = None if old.stream is None or new.stream is None else with_settings(old.stream, new.stream)
    return new.learned if stream is None else stream.fit(old.name, **old.options)


def _answers(state: Fitted, forecasts: Forecasts) -> Array:
    """Pooled probabilities of all events; the prior of the fit `state` is used for events without their own."""
    fill = None
    if forecasts.prior is not None and state.prior is not None:
        fill = public_probabilities(state.prior)
    own = event_priors(forecasts, fill)
    return np.asarray(state.pool_forecasts(forecasts, None if own is None else public_probabilities(own)))


def _changes(old: TrainedPool, new: TrainedPool, moves: Sequence[Move] = (), stages: Stages | None = None) -> Diff:
    """Differences of two pools in priors and experts, with `moves` of answers and the events that `stages` names."""
    was, now = _features(old.learned), _features(new.learned)
    nothing = dict.fromkeys(FEATURES, float("nan"))
    names = dict.fromkeys((*new.experts, *old.experts))
    changes = [ExpertChange(name, was.get(name, nothing), now.get(name, nothing)) for name in names]
    # Those whom only one pool knows come first.
    changes.sort(key=lambda each: np.nan_to_num(abs(each.change("weight")), nan=np.inf), reverse=True)
    events: dict[str, Any] = {}
    if stages is not None:
        events = {name: getattr(stages, name) for name in ("corrections", "gone", "outcomes", "opened")}
    elif moves:
        text = (
            "a pool has learned from more events than it keeps, or only one of them from events with priors of their "
            "own, so the part of outcomes is that of all that was learned, corrections and agreement included"
        )
        events = {"notes": (Note("not-split", text),)}
    priors = old.learned.prior, new.learned.prior
    weights = float(old.learned.events.sum()), float(new.learned.events.sum())
    return Diff(priors, weights, tuple(changes), tuple(moves), **events)


def _features(state: Fitted) -> dict[str, dict[str, float]]:
    """Values of `FEATURES` (weight, accuracy, ...) by expert and name; NaN for a feature that the pool lacks."""
    n = len(state.experts)
    unknown = np.full(n, np.nan)
    columns = {"weight": unknown if state.weights is None else state.weights}
    if isinstance(state, FittedPanel):
        features = state.features
        bias = state.panel.bias if state.marginal is None else public_log_odds(state.marginal.bias)
        columns |= {"calibration": features.calibration, "accuracy": features.accuracy}
        columns["bias"] = bias if bias.ndim == 1 else unknown
    return {
        name: {feature: float(columns.get(feature, unknown)[i]) for feature in FEATURES}
        for i, name in enumerate(state.experts)
    }


@dataclass(frozen=True, eq=False)
class Stages:
    """Two streams on the way from an old to a new one (events corrected, then outcomes added), and changed events."""

    # the old stream, with outcomes, forecasts, weights, dates, topics and groups of resolved events as in the new one,
    # and without events that the new one does not have; None if there is no such difference
    corrected: Stream | None
    learned: Stream | None  # `corrected` with the events resolved since, as in the new one; None if there are none
    corrections: tuple[str, ...]  # events with corrections
    gone: tuple[str, ...]  # events that the new stream does not have
    outcomes: tuple[str, ...]  # events that were resolved since
    opened: tuple[str, ...]  # open events that the old stream does not have


def stages_between(old: Stream, new: Stream) -> Stages | None:
    """Return the steps by which the stream `old` becomes `new`: first corrected events, then events resolved since.

    None if a stream has not kept all its events, or if only one has a prior for each event. Raises an ArgumentError if
    the streams have different classes.
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
    """Two dicts by id (a hash if empty): resolved events and open events, with experts as positions in `names`."""
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
    """Return True if events have priors of their own and the stream has no prior for all events."""
    return state.totals.prior is None and bool(state.own_priors())


def with_settings(settings: Stream, events: Stream) -> Stream | None:
    """Stream with the settings of one stream and the events of another; None if `events` has not kept all of them."""
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
    """Facts of an event that a fit uses: its group and topic; if it has ended, also when, and when it was asked."""
    end = (event.time, event.asked) if event.settled else (None, None)
    return *end, event.group or "", event.topic or ""


def _numbers(prior: object) -> np.ndarray:
    return np.empty(0) if prior is None else np.atleast_1d(np.asarray(prior))


def _stream(like: Stream, events: list[Event], names: list[str], known: int) -> Stream:
    """Stream of `events` with the settings of `like`, by the first `known` experts of `names` and all who forecast."""
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
