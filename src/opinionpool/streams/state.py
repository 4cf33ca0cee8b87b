"""Immutable states of a stream, between which changes lead, and the source for fits to a state."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, takewhile
from typing import Any, NamedTuple

import numpy as np

from opinionpool import logodds
from opinionpool.arrays import LEAST, Array, Index, Mask
from opinionpool.blocks import blocks
from opinionpool.errors import ArgumentError, LearningError, Note, ProbabilityError
from opinionpool.forecasts import Forecasts
from opinionpool.labels import UNRESOLVED
from opinionpool.learning.leakage import SURE, SURE_EVENTS
from opinionpool.learning.problem import Problem, Request, Seen, Sums
from opinionpool.priors import laplace_prior
from opinionpool.scales import Scale, scale_of
from opinionpool.streams.block import Event, EventBlock, Times, event_key
from opinionpool.streams.ledger import Columns, Entry, Ledger
from opinionpool.streams.sample import EventSample
from opinionpool.streams.totals import BLOCK, Clock, Totals
from opinionpool.text import counted, shown

# So many events that changed wait before they are added up together.
WAITING = 512


class Change(NamedTuple):
    """Change of one event: its `old` version, if it was learned from, is removed, and its `new` version is added."""

    id: str  # id of the event
    old: Event | None  # version learned from; None if the event was not
    new: Event | None  # None for an annulled event

    @property
    def resolves(self) -> bool:
        """True if the event is resolved by this change and was not before."""
        return self.old is None and self.new is not None and self.new.outcome != UNRESOLVED


class _Rows(NamedTuple):
    """Resolved events without ids, given as an array of forecasts, and not yet added to the stream's totals."""

    q: Array  # (T, N), or (T, N, K) when K > 2; NaN where missing
    columns: Index  # (N,), positions of the experts
    facts: EventBlock  # the events, without their forecasts
    made: Times | None  # (T, N)

    def goes_with(self, other: _Rows) -> bool:
        """True if `other` can be concatenated: the same experts by column, and priors and times in both or neither."""
        alike = (self.made is None) == (other.made is None) and (self.facts.priors is None) == (
            other.facts.priors is None
        )
        return alike and (self.columns is other.columns or np.array_equal(self.columns, other.columns))

    @classmethod
    def joined(cls, parts: Sequence[_Rows]) -> _Rows:
        """Return the concatenation of `parts`, all pairs of which satisfy `goes_with`."""
        if len(parts) == 1:
            return parts[0]
        q, made = np.concatenate([part.q for part in parts]), None
        if parts[0].made is not None:
            made = np.concatenate([part.made for part in parts if part.made is not None])
        return cls(q, parts[0].columns, EventBlock.joined([part.facts for part in parts]), made)


class StreamState(NamedTuple):
    """State of a stream: open events; totals, a sample and a ledger of resolved events; changes not yet made in these.

    States are immutable, so that a stream changes from one to the next by one assignment.
    """

    classes: tuple[object, ...]  # K labels
    seed: int  # seed of the sample and of hashes of ids
    clock: Clock  # times of resolution
    totals: Totals  # sums over resolved events
    sample: EventSample
    columns: Columns  # positions of experts by name
    ledger: Ledger = Ledger()  # entries of resolved events with an id
    open: Mapping[str, Event] = {}  # unresolved events by id, without pending changes
    pending: Mapping[str, Change] = {}  # by id, changes that are not yet in the other fields
    waiting: tuple[_Rows, ...] = ()  # events without ids that are not yet in the other fields
    rows: int = 0  # number of resolved events without ids, except waiting ones
    version: int = 0  # number that differs after each change

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the N experts, in order of first appearance."""
        return self.columns.names

    @property
    def resolved(self) -> int:
        """Number of resolved events, including pending changes."""
        waiting = sum((c.new is not None and c.new.outcome >= 0) - (c.old is not None) for c in self.pending.values())
        return int(self.totals.number.sum()) + waiting + sum(len(part.q) for part in self.waiting)

    @property
    def opened(self) -> Mapping[str, Event]:
        """Unresolved events with forecasts, by id, after pending changes."""
        if not self.pending:
            return self.open
        found = dict(self.open)
        for name, change in self.pending.items():
            if change.new is None or change.new.outcome != UNRESOLVED:
                found.pop(name, None)
            else:
                found[name] = change.new
        return found

    def find_open(self, event: str) -> Event | None:
        """Return the unresolved event with the id `event`; None if there is none."""
        change = self.pending.get(event)
        if change is None:
            return self.open.get(event)
        return None if change.new is None or change.new.outcome != UNRESOLVED else change.new

    def entry(self, event: str) -> Entry | None:
        """Return the ledger entry of the resolved event with the id `event`; None if there is none."""
        change = self.pending.get(event)
        if change is None:
            return self.ledger.find(event_key(event, self.seed))
        return None if change.new is None or change.new.outcome == UNRESOLVED else self._entry_of(change.new)

    def learned(self, event: str) -> Event | None:
        """Return the resolved event with the id `event` and its forecasts; None if these are no longer known."""
        change = self.pending.get(event)
        if change is None:
            return self.sample.by_id.get(event)
        return None if change.new is None or change.new.outcome == UNRESOLVED else change.new

    def joined(self, names: Sequence[str]) -> tuple[StreamState, Index]:
        """Return a state that includes the experts `names`, and the experts' column numbers (not to be modified)."""
        try:
            return self, self.columns.of(names)
        except KeyError:
            state = self._replace(columns=self.columns.joined(names))
            return state, state.columns.of(names)

    def changed(self, changes: Sequence[Change]) -> StreamState:
        """Return the state after `changes`; a ProbabilityError if only some events have a prior of their own."""
        pending = dict(self.pending)
        state = self._replace(pending=pending, version=self.version + 1)
        for change in changes:
            if change.new is not None:
                state._check_prior(change.id, own=change.new.prior is not None)
            before = pending.get(change.id)
            pending[change.id] = change if before is None else Change(change.id, before.old, change.new)
        return state.added_up() if len(pending) >= WAITING else state

    def added_up(self) -> StreamState:
        """Return the state after adding pending changes and rows without ids to totals, sample and ledger."""
        experts, k = self.columns.names, len(self.classes)
        if not self.pending and not self.waiting and self.totals.experts == experts:
            return self
        changes = self.pending.values()
        old = EventBlock.of_events([change.old for change in changes if change.old is not None], k)
        fresh = [change.new for change in changes if change.new is not None and change.new.outcome != UNRESOLVED]
        new, gone = EventBlock.of_events(fresh, k), [str(name) for name in old.ids.tolist()]
        totals = self.totals.over(experts)
        totals = totals.add(old, -1) if len(old) else totals
        state = self._replace(
            totals=totals.add(new) if len(new) else totals,
            sample=self.sample.remove(set(gone)).add_block(new),
            ledger=self.ledger.without(event_key(name, self.seed) for name in gone).added(
                [self._entry_of(event) for event in fresh]
            ),
            open=self.opened,
            pending={},
            waiting=(),
        )
        left = self.waiting
        while left:
            alike = tuple(takewhile(left[0].goes_with, left))
            state, left = state._with_rows(_Rows.joined(alike)), left[len(alike) :]
        return state

    def _with_rows(self, rows: _Rows) -> StreamState:
        """Return the state with the events `rows` added to totals and sample, but not to the ledger."""
        q, columns, facts, made = rows
        totals, wide = self.totals.over(self.experts), q
        if len(columns) < len(self.experts) or (columns[1:] < columns[:-1]).any():
            wide = np.full((len(q), len(self.experts), *q.shape[2:]), np.nan)
            wide[:, columns] = q
        at = facts.at if totals.pace else None
        return self._replace(
            totals=totals.add_rows(wide, facts.outcomes, facts.weights, facts.priors, at),
            sample=self.sample.add_rows(q, columns, facts, made, self.rows),
            rows=self.rows + len(q),
        )

    def settled(self) -> StreamState:
        """Return the state without pending changes, and with a sample that is cut down to its greatest size."""
        state = self.added_up()
        return state if state.sample.tidy else state._replace(sample=state.sample.thinned())

    def with_rows(self, q: Array, experts: Sequence[str], facts: EventBlock, made: Times | None) -> StreamState:
        """Return the state with further resolved events without ids, with forecasts `q`, (T, N) or (T, N, K).

        `facts` has outcomes, weights and other facts of the events, of which unresolved ones are left out; `made` (T,
        N) has the times of the forecasts.
        """
        state, columns = self.joined(experts)
        state = state._replace(version=self.version + 1)
        known = np.flatnonzero(facts.outcomes != UNRESOLVED)
        if not len(known):
            return state
        # Copies, as what waits may be an array of the caller's.
        if len(known) < len(q):
            q, facts, made = q[known], facts.take(known), None if made is None else made[known]
        else:
            q, made = q.copy(), None if made is None else made.copy()
        rows = _Rows(q, columns, facts, made)
        state._check_prior(facts.ids[0], own=facts.priors is not None)
        state = state._replace(waiting=(*self.waiting, rows))
        return state if sum(part.q.size for part in state.waiting) < BLOCK else state.added_up()

    def own_priors(self, event: str | None = None) -> bool | None:
        """True if events (other than `event`) have their own priors, False if not, None if there are no events."""
        waiting = ((change.id, change.new) for change in self.pending.values())
        for name, other in chain(waiting, self.open.items()):
            if other is not None and name != event:
                return other.prior is not None
        if self.waiting:
            return self.waiting[0].facts.priors is not None
        blocks = [block for _, block in self.sample.parts for name in block.ids[:2].tolist() if name != (event or "")]
        return blocks[0].priors is not None if blocks else None

    def _check_prior(self, event: str | None, *, own: bool) -> None:
        """Raise a ProbabilityError if the event has its own prior (`own`) and other events do not, or vice versa."""
        have = self.own_priors(event) if self.totals.prior is None else None
        if have is None or have == own:
            return
        name = "a row" if event is None else f"event {shown(event)}"
        mine, others = ("a prior of its own", "have none") if own else ("no prior of its own", "have one")
        raise ProbabilityError(
            f"{name} has {mine}, and the events before it in this stream {others}; give every event one, or none, or "
            "begin the stream with prior=, which fills the blanks"
        )

    def merge(self, other: StreamState) -> StreamState:
        """Return the state with the events of two streams, neither of which has pending changes.

        Raises ArgumentError if an event is resolved in both, or open in one and resolved in the other.
        """
        for mine, theirs in ((self, other), (other, self)):
            half = next((name for name in mine.open if theirs.entry(name) is not None), None)
            if half is not None:
                raise ArgumentError(
                    f"event {half!r} is resolved in one stream and open in the other: merge before it is resolved"
                )
        state, columns = self.joined(other.experts)
        moved = {name: event._replace(experts=columns[event.experts]) for name, event in other.open.items()}
        both = {name: state.open.get(name, event).revised(event, by_time=True) for name, event in moved.items()}
        own = other.own_priors()
        if own is not None:
            state._check_prior(None, own=own)
        state = state.changed([Change(name, None, event) for name, event in both.items()]).added_up()
        return state._replace(
            clock=self.clock.merged(other.clock, both=bool(self.resolved and other.resolved)),
            totals=state.totals.merge(other.totals),
            sample=state.sample.merge(other.sample, columns),
            ledger=state.ledger.merge(other.ledger),
            rows=self.rows + other.rows,
        )

    def always_right(self) -> Mask:
        """Return True for experts whose forecasts in the sample were all right and nearly certain, (N,)."""
        suspect = self.totals.cells >= SURE_EVENTS
        count = np.zeros(len(suspect), dtype=np.intp)
        for _, block in self.sample.parts:
            outcomes = np.repeat(block.outcomes, block.sizes)
            for cells in blocks(len(outcomes), 1):
                if not suspect.any():
                    return suspect
                outcome, q, experts = outcomes[cells], block.probabilities[cells], block.experts[cells]
                given = q[np.arange(len(q)), outcome] if q.ndim > 1 else np.where(outcome == 1, q, 1.0 - q)
                count += np.bincount(experts, minlength=len(count))
                suspect[experts[given <= SURE]] = False
        return np.asarray(suspect & (count >= SURE_EVENTS))

    def present(self) -> Mask:
        """Return True for experts with a forecast on a resolved or open event, (N,)."""
        found = self.totals.cells > 0
        for event in self.open.values():
            found[event.experts] = True
        return np.asarray(found)

    def content(self, event: Event) -> int:
        """Return a hash (64 bits) of an event's forecasts and prior, independent of the forecasts' order."""
        return int.from_bytes(self._digest(event)[:8], "little")

    def _digest(self, event: Event) -> bytes:
        order, labels = self.columns.sorted(event.experts)
        own = b"" if event.prior is None else np.asarray(event.prior).tobytes()
        name = "" if event.id is None else event.id
        parts = name.encode("utf-8", "surrogatepass"), labels, event.probabilities[order].tobytes(), own
        sized = (piece for part in parts for piece in (len(part).to_bytes(8, "little"), part))
        return hashlib.sha256(b"".join(sized)).digest()

    def _entry_of(self, event: Event) -> Entry:
        key = event_key(str(event.id), self.seed)
        return Entry(key, self.content(event), event.outcome, event.weight, event.at)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the resolved and open events with ids, independent of their order, in hex digits."""
        found = hashlib.sha256(self.ledger.array().tobytes())
        for name, event in sorted({**self.sample.by_id, **self.open}.items()):
            facts = self._facts(event)
            if facts if event.outcome >= 0 else len(event.experts):
                found.update(self._digest(event) + json.dumps([name, facts], default=str).encode())
        return found.hexdigest()

    def _facts(self, event: Event) -> dict[str, Any]:
        """Return the known facts of an event other than forecasts and outcome, by name."""
        stamps = zip(event.experts.tolist(), event.times_made(), strict=True)
        facts = {
            "made": sorted((self.experts[i], str(time)) for i, time in stamps if not np.isnat(time)),
            **{name: getattr(event, name) for name in ("settled", "group", "topic")},
            **{name: str(getattr(event, name) or "") for name in ("time", "asked")},
        }
        return {name: fact for name, fact in facts.items() if fact}


@dataclass(frozen=True, eq=False)
class StreamSource:
    """Source of a fit: the events of a stream, from a state without pending changes."""

    state: StreamState
    scales: Mapping[str, Scale] = field(default_factory=dict)  # of experts who give levels
    has_options: bool = False

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the N experts."""
        return self.state.experts

    @property
    def classes(self) -> tuple[object, ...]:
        """Labels of the K classes."""
        return self.state.classes

    @property
    def _filled(self) -> StreamState:
        """State of the stream; a LearningError if the stream has never had an event."""
        if not self.state.experts:
            raise LearningError("nothing has been added yet, so there is nothing to learn from")
        return self.state

    def rows(self) -> tuple[Forecasts, Array, float]:
        """Return sampled and open events, how many events each represents, (T,), and the least number represented.

        The least number is divided by the sampled event's own weight; it is 1 if the sample has all resolved events.
        """
        state = self._filled.settled()
        opened = EventBlock.of_events([state.open[name] for name in sorted(state.open)], len(state.classes))
        kept = [block for _, block in state.sample.parts]
        stands, own = np.ones((2, 0))
        if kept:
            stands, own = state.sample.stands_for(kept[0], state.totals.events, state.totals.origin)
        counts = own > 0
        least = 1.0 if state.sample.complete else float((stands[counts] / own[counts]).min(initial=np.inf))
        found = EventBlock.joined([*kept, opened]).forecasts(state.experts, state.classes)
        found = replace(found, scales={name: of for name in state.experts if (of := scale_of(self.scales, name))})
        return found, np.concatenate([stands, opened.weights]), least

    def _seen(self, *notes: Note) -> Seen:
        totals = self.state.totals
        return Seen(totals.events.copy(), totals.counts.copy(), self.state.present(), notes)

    def sums(self, request: Request) -> Sums | None:
        """Return sums over all events; None if they have other floors than the fit, or lack moments that it needs."""
        totals = self._filled.totals
        found = totals.evidence(laplace_prior(totals.events) if totals.prior is None else totals.prior)
        if found is None or (request.kind == "full" and not found[0].complete):
            return None
        return Sums(*found, self._seen(), self.state.always_right())

    def problem(self) -> Problem:
        """Return the problem of learning from the sampled and the open events.

        Weights are in proportion to the number of events represented, but the event that represents the fewest
        keeps its own weight: so outcomes are as frequent as among all events, and posteriors as wide as the sample's.
        """
        forecasts, weight, least = self.rows()
        sample, prior = self.state.sample.thinned(), self.state.totals.prior
        if not sample.complete:
            weight = np.where(forecasts.resolved, weight / least, weight)
            if prior is None and forecasts.prior is None:
                prior = laplace_prior(self.state.totals.events)
        # Weights that have decayed below a frequency are 0.
        weight = np.where(weight < LEAST, 0.0, weight)
        problem = Problem.of(forecasts, None if prior is None else logodds.public_probabilities(prior), weight)
        return replace(
            problem, whole=self._seen(*(() if sample.complete else (_sampled(len(sample), self.state.totals),)))
        )


def _sampled(kept: int, totals: Totals) -> Note:
    """Return a note that only `kept` of the events in `totals` are in the sample."""
    text = (
        f"learned from {kept:,} of {counted(int(totals.number.sum()), 'resolved event')}, which stand for all of them; "
        "more would be kept with a larger capacity"
    )
    return Note("sampled", text, kept)
