"""Changes of a stream by new forecasts and outcomes, all checked before the first is made, so all are made or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Index, as_array, as_numbers, frequencies, times_of_cells
from opinionpool.errors import ArgumentError, Note, ShapeError
from opinionpool.forecasts import Forecasts
from opinionpool.labels import UNRESOLVED, event_labels
from opinionpool.names import check_distinct, unknown_names
from opinionpool.scales import Scale, in_classes
from opinionpool.streams.block import Event, EventBlock, Times, event_key
from opinionpool.streams.ledger import Entry
from opinionpool.streams.state import Change, StreamState
from opinionpool.tables.times import as_time, last_moments, midnights, time_text
from opinionpool.text import counted, listed, shown

# By expert: the probability of the second of two classes, or those of all classes; None withdraws it.
ExpertForecasts: TypeAlias = Mapping[str, npt.ArrayLike | None]


class About(NamedTuple):
    """Facts about an event besides forecasts: a time, whether the event ended then (`settled`), group and topic."""

    time: np.datetime64 | None = None
    settled: bool = False
    group: str | None = None
    topic: str | None = None

    @classmethod
    def of(cls, ended: object, what: str, group: str | None, topic: str | None) -> About:
        """Return these facts; `ended` is when the event ended, `what` the name of the argument `ended` in errors."""
        if ended is None:
            if not group and not topic:
                return NOTHING
            return cls(group=group or None, topic=topic or None)
        return cls(as_time(ended, what), settled=True, group=group or None, topic=topic or None)


NOTHING = About()


def event_given(
    state: StreamState,
    event: str,
    forecasts: ExpertForecasts,
    prior: npt.ArrayLike | None,
    about: About = NOTHING,
    time: object = None,
    levels: Mapping[str, Scale] | None = None,
) -> tuple[StreamState, Event]:
    """Return `state` extended by the experts of `forecasts`, and the event with its checked forecasts, not resolved.

    Raises ArgumentError, ShapeError, ProbabilityError or ExpertError if forecasts or the prior are invalid.
    """
    if not isinstance(forecasts, (dict, Mapping)):
        raise ArgumentError(
            f"forecasts on an event are probabilities by the names of experts, as in {{'ann': 0.8}}, and not a "
            f"{type(forecasts).__name__}"
        )
    k = len(state.classes)
    values: Iterable[npt.ArrayLike | None] = forecasts.values()
    if levels:
        table = np.array([list(values)], dtype=object)
        values = in_classes(table, list(map(str, forecasts)), levels, state.classes)[0]
    array = _given(values, k)
    own = None
    if prior is not None:
        own = logodds.public_probabilities(logodds.class_probabilities(prior, k))
        if own.shape != array.shape[1:]:
            raise ShapeError(f"an event has one prior, and the shape of this is {own.shape}")
    columns = state.columns.sets.get(tuple(forecasts))
    if columns is None:
        names = tuple(map(str, forecasts))
        if len(set(names)) < len(names):
            check_distinct(names)
        state, columns = state.joined(names)
    made = None if time is None else np.full(len(columns), as_time(time, "time"))
    when, settled, group, topic = about
    return state, Event(event, columns, array, own, UNRESOLVED, 1.0, 0.0, when, group, settled, topic, made)


def _given(forecasts: Iterable[npt.ArrayLike | None], k: int) -> Array:
    """Return the forecasts of n experts for one event, checked, (n,) or (n, K) if `k` = K > 2; NaN where None."""
    values: list[Any] = list(forecasts)
    shape = () if k == 2 else (k,)
    # A NaN is none of the two, wherever it stands, and stays what it is.
    if k == 2 and set(map(type, values)) == {float} and min(values) >= 0.0 and max(values) <= 1.0:
        return np.array(values, dtype=np.float64)
    given = [np.full(shape, np.nan) if p is None else logodds.check_probabilities(p) for p in values]
    if any(each.shape != shape for each in given):
        raise ShapeError(f"a forecast on {k} classes is {'one probability' if k == 2 else f'{k} probabilities'}")
    array = np.array(given).reshape((len(given), *shape))
    return logodds.normalised(array)[0] if k > 2 and len(array) else array


def check_in_time(event: Event, experts: Sequence[str]) -> None:
    """Raise an ArgumentError, which names the experts, if a forecast was made after the event ended.

    An end that is a date without a time of day is the end of that day.
    """
    end = event.time
    if event.made is None or end is None or not event.settled:
        return
    late = event.made > (last_moments(end) if midnights(end) else end)
    if late.any():
        names = [experts[i] for i in event.experts[late].tolist()]
        raise ArgumentError(
            f"forecasts on event {shown(event.id)} by {listed(names)} were made after it ended ({time_text(end)}), "
            "and what comes later is no forecast: leave them out, and withdraw those that the stream has, "
            f"forecast({shown(event.id)}, {{{names[0]!r}: None}})"
        )


def facts_of_rows(
    probabilities: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
    prior: npt.ArrayLike | None,
    classes: int,
    topics: object,
    times: object,
) -> tuple[Array, EventBlock, Times | None]:
    """Return forecasts of events without ids, (T, N) or (T, N, K), their facts as a block, and times, (T, N).

    Raises ShapeError, ProbabilityError or ArgumentError if arguments do not fit together or are out of range.
    """
    q, codes = logodds.check_probabilities(as_numbers(probabilities, "probability")), _positions(outcomes, classes)
    fits = q.ndim == 2 if classes == 2 else q.ndim == 3 and q.shape[2] == classes
    if not fits or codes.shape != q.shape[:1]:
        raise ShapeError(f"rows of {classes} classes and their outcomes do not fit: shapes {q.shape}, {codes.shape}")
    own = None
    if prior is not None:
        own = logodds.public_probabilities(logodds.class_probabilities(prior, classes))
        if own.shape != q.shape[:1] + q.shape[2:]:
            raise ShapeError(f"{len(q)} rows need as many priors, and their shape is {own.shape}")
    t, about = len(q), None
    if topics is not None:
        about = np.array([topic or None for topic in event_labels(topics, t, "topics").tolist()], dtype=object)
    weight = frequencies(sample_weight, t).copy()
    facts = EventBlock.facts(np.full(t, None, dtype=object), codes, weight, q, priors=own, topics=about)
    return q, facts, None if times is None else times_of_cells(times, q.shape[:2])


def _positions(outcomes: npt.ArrayLike, classes: int) -> Index:
    """Return outcomes as class positions, (T,); an ArgumentError unless they are whole numbers from -1 to K - 1."""
    given = as_array(outcomes, "outcomes")
    if given.dtype.kind in "biu" and given.size and given.min() >= UNRESOLVED and given.max() < classes:
        return given.astype(np.intp)
    if given.dtype.kind in "biuf":
        numbers = given.astype(np.float64)
    else:
        each_number = [float(each) if isinstance(each, Real) else np.nan for each in given.ravel().tolist()]
        numbers = np.reshape(each_number, given.shape)
    bad = ~((numbers >= UNRESOLVED) & (numbers < classes) & (numbers == np.floor(numbers)))
    if bad.any():
        where = int(np.flatnonzero(bad)[0])
        raise ArgumentError(
            f"outcomes of rows are positions among {classes} classes, or -1 where not resolved, and outcome {where} is "
            f"{shown(given.ravel().tolist()[where])}"
        )
    return numbers.astype(np.intp)


def as_learned(state: StreamState, event: Event, entry: Entry, *, complete: bool) -> Event:
    """Return the version of an event from which the stream learned, given the present `event` and its ledger `entry`.

    Raises ArgumentError if the stream no longer has the forecasts, and those of `event` differ from them; `complete` is
    False if `event` may lack some of the forecasts.
    """
    old = state.learned(str(event.id))
    if old is None and complete and state.content(event) == entry.content:
        old = event._replace(outcome=entry.outcome, weight=entry.weight, at=entry.at)
    if old is None:
        what = "came with other ones" if complete else "must come with them"
        raise ArgumentError(
            f"event {shown(event.id)} is corrected, its forecasts are no longer in the sample, and it {what}: give "
            "all forecasts on it as they were when it was learned, or learn from the whole table anew, --save without "
            "--model"
        )
    return old


def annulled(state: StreamState, event: Event, *, complete: bool) -> Change | None:
    """Return the change that removes an annulled event; None if the stream does not know it. Raises as `as_learned`."""
    name = str(event.id)
    entry = state.entry(name)
    if entry is not None:
        return Change(name, as_learned(state, event, entry, complete=complete), None)
    return None if state.find_open(name) is None else Change(name, None, None)


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
    """Collector of the changes that a batch of events makes to a stream; `made` has them.

    `table` is the batch, if it is a full export of a table seen before: for each event in it, earlier forecasts that
    the table lacks are withdrawn, and an earlier outcome that the table lacks is taken back.
    """

    def __init__(self, state: StreamState, *, table: Forecasts | None = None) -> None:
        self._state, self._table = state, table
        # A table without any outcome has them elsewhere.
        self._settles = table is not None and (table.void is not None or bool(table.resolved.any()))
        self.made: list[Change] = []
        self._met: Counter[str] = Counter()  # how often what `_NOTES` tell was met
        self._again = 0  # events that were known, and come with forecasts
        self._ids: set[str] = set()
        self._known = len(state.totals.experts)
        # What the table tells of its events beside forecasts and outcomes.
        self._facts = () if table is None else _facts(table)

    def plan(self, event: Event, weight: float | None) -> None:
        """Plan the change of one event with all its forecasts; `weight` None keeps an old weight, or is 1 if new.

        Raises ArgumentError if the outcome is corrected and the old forecasts are unknown (see `as_learned`).
        """
        name = str(event.id)
        entry, current = self._state.entry(name), self._state.find_open(name)
        self._ids.add(name)
        self._again += len(event.experts) > 0 and (entry is not None or current is not None)
        if entry is None:
            self._plan_new(event, current, 1.0 if weight is None else weight)
            return
        if event.outcome == UNRESOLVED and self._settles:
            self._met["reopened"] += 1
            old = as_learned(self._state, event, entry, complete=True)
            again = old.without_forecasts().revised(event)
            kept = old.weight if weight is None else weight
            self.made.append(Change(name, old, again._replace(asked=event.asked, weight=kept)))
            return
        learned = self._state.learned(name)
        self._met["late-forecasts"] += self._state.content(event) != entry.content
        if event.outcome != UNRESOLVED and (event.outcome != entry.outcome or weight not in {None, entry.weight}):
            self._met["corrected"] += 1
            old = as_learned(self._state, event, entry, complete=True)
            new = old._replace(outcome=event.outcome, weight=old.weight if weight is None else weight)
            self.made.append(Change(name, old, new._replace(**self._changed(old, event))))
            return
        self._met["known"] += 1
        changed = {} if event.outcome == UNRESOLVED or learned is None else self._changed(learned, event)
        if learned is not None and changed:
            # Without an end, these are of --as-of and of the newest forecast.
            self._met["redescribed"] += event.settled or bool(changed.keys() - {"asked", "time"})
            self.made.append(Change(name, learned, learned._replace(**changed)))

    def _plan_new(self, event: Event, current: Event | None, weight: float) -> None:
        """Plan the change of an event that was not learned from; `current` is the open event with its id, or None."""
        known, whole = current is not None, self._table is not None
        if current is not None and whole and len(event.experts):
            gone = int((~np.isin(current.experts, event.experts)).sum())
            self._met["no-longer-there"] += gone
            current = current.without_forecasts() if gone else current
        # What a table has is what stands, whenever it was made.
        new = (current or event).revised(event, by_time=not whole)._replace(weight=weight)
        if "asked" in self._facts and len(event.experts):
            # Read without --as-of, events are answered as of their newest forecasts again.
            new = new._replace(asked=event.asked)
        if weight > 0 and (new.outcome != UNRESOLVED or len(new.experts) or known):
            self.made.append(Change(str(event.id), None, new))

    def _changed(self, old: Event, event: Event) -> dict[str, Any]:
        """Return facts of `event` for which the table has columns, and which differ from those of `old`, by name."""
        now = {name: getattr(event, name) for name in self._facts}
        return {name: value for name, value in now.items() if getattr(old, name) != value}

    def plan_void(self, event: Event) -> None:
        """Plan the removal of one annulled event, given with all its forecasts.

        Raises ArgumentError if it was learned from and the old forecasts are unknown (see `as_learned`).
        """
        self._ids.add(str(event.id))
        change = annulled(self._state, event, complete=True)
        if change is not None:
            self._met["taken-back"] += 1
            self.made.append(change)

    def notes(self) -> tuple[Note, ...]:
        """Return notes for the user on the batch: numbers of events by kind of change, absent events and experts."""
        notes = [Note(code, text.format(counted(n, noun)), n) for code, noun, text in _NOTES if (n := self._met[code])]
        return (*notes, *self._absent())

    def _absent(self) -> list[Note]:
        """Return notes on events and experts that are not in the table, but in the stream after the changes."""
        if self._table is None or not self._again:
            return []
        parts = [self._table] if self._table.void is None else [self._table, self._table.void]
        there = dict.fromkeys(part.experts[i] for part in parts for i in np.unique(part.expert_index).tolist())
        state, names = self._state.added_up(), self._state.experts
        before = [names[i] for i in np.flatnonzero(state.present()).tolist()]
        return [*_absent_events(state, self._ids), *absent_experts(before, names[: self._known], list(there))]


def _facts(table: Forecasts) -> tuple[str, ...]:
    """Return the names of the fields of an `Event` for which a table has columns."""
    columns = {"topic": table.topics, "group": table.groups, "time": table.times, "settled": table.times}
    # Where forecasts have times, they are answered as of the newest one if nothing else is known.
    columns["asked"] = table.made if table.asked is None else table.asked
    return tuple(name for name, column in columns.items() if column is not None)


# Names in a note before it is cut.
_NAMED = 4


def _absent_events(state: StreamState, ids: set[str]) -> list[Note]:
    """Return notes on the events of a stream that are not in a table; the table's event ids are `ids`."""
    notes, there = [], {event_key(name, state.seed) for name in ids}
    opened = [name for name in state.open if name not in ids]
    if opened:
        notes.append(Note("absent-open", _absent_text("open event", opened, len(opened)), len(opened)))
    learned = sum(key not in there for key in state.ledger.array()["key"].tolist())
    if learned:
        sampled = [name for name in state.sample.by_id if name not in ids]
        notes.append(Note("absent-resolved", _absent_text("resolved event", sampled, learned), learned))
    return notes


def _absent_text(what: str, events: Sequence[str], count: int) -> str:
    """Return the text of a note that `count` events, some of them `events`, are in the pool and not in the table."""
    first = sorted(events)[:_NAMED]
    names = f": {listed(first)}" if first else ""
    more = f" and {count - len(first)} more" if names and count > len(first) else ""
    return (
        f"{counted(count, what)} of the pool not in this table, and kept{names}{more}; a row with outcome annulled "
        "takes an event back"
    )


def absent_experts(before: Sequence[str], names: Sequence[str], present: Sequence[str]) -> list[Note]:
    """Return notes on experts of the pool without a forecast in a new table, and on new names that may be theirs.

    >>> note = absent_experts(["ann lee", "bob"], ["ann lee", "bob"], ["ann lee-smith", "bob"])[0]
    >>> print(note.text.split(". ")[0])
    1 expert of the pool without a forecast in this table: 'ann lee'; new in it: 'ann lee-smith' (was 'ann lee'?)
    """
    gone = unknown_names(before, present)
    if not gone:
        return []
    text = f"{counted(len(gone), 'expert')} of the pool without a forecast in this table: {listed(gone, _NAMED)}"
    fresh = unknown_names(present, names)
    if fresh:
        text += (
            f"; new in it: {_beside(fresh, gone)}. Whoever was renamed begins anew; to go on, learn from the whole "
            "table: --save without --model"
        )
    return [Note("absent-experts", text, len(gone))]


def _beside(fresh: Sequence[str], gone: Sequence[str]) -> str:
    """Return the new experts' names `fresh` as text, each followed by similar names among the absent ones, `gone`."""
    from difflib import get_close_matches

    near = {name: get_close_matches(name, gone, 1, 0.5) for name in fresh}
    # Those who may have been renamed come first.
    first = sorted(fresh, key=lambda name: not near[name])[:_NAMED]
    words = [shown(name) + "".join(f" (was {shown(old)}?)" for old in near[name]) for name in first]
    return ", ".join(words) + (f" and {len(fresh) - len(first)} more" if len(fresh) > len(first) else "")
