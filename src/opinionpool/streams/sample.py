"""Random sample, of bounded size, of the resolved events of a stream."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.blocks import blocks
from opinionpool.estimation.sampling import GOLDEN, Keys, cell_keys, least, mixed, priorities, standing_for
from opinionpool.streams.block import Event, EventBlock, Times, event_key

# Events of all outcomes together, and probabilities in their forecasts, that are kept by default.
CAPACITY, MOST_NUMBERS = 20_000, 4_000_000
# Parts beyond which a sample is thinned.
PARTS = 64


@dataclass(frozen=True, eq=False)
class EventSample:
    """Random sample of resolved events: for each of K outcomes at most `capacity` / K events.

    It has at most `MOST_NUMBERS` / K probabilities of each outcome. Each event has a random priority, the logarithm of
    an exponentially distributed number whose rate is the event's weight; the sample has the events of least priority,
    so that samples merge exactly (bottom-k sketches, Cohen and Kaplan 2007). The random number follows from the seed
    and a hash of the event's outcome and forecasts (whoever made them). Of events in a block with the same hash, all
    but the first have it from their ids, or if they have none from their numbers in the stream; so have events without
    forecasts.
    """

    room: Index  # (K, 2); greatest numbers of events, and of their probabilities, for each outcome
    beyond: Array  # (K,); least priority, by outcome, of events left out; infinite if there are none
    parts: tuple[tuple[Array, EventBlock], ...] = ()  # priorities and events; may have more than there is room for
    tidy: bool = True  # whether there is at most one part, ordered by priority, with no more than there is room for
    pace: float = 0.0  # rate at which an event's weight grows with its time of resolution: log 2 / half-life, or 0
    seed: int = 0

    @classmethod
    def empty(cls, classes: int, capacity: int, pace: float, seed: int) -> EventSample:
        """Return a sample without events."""
        room = np.full((classes, 2), [max(1, capacity // classes), max(1, MOST_NUMBERS // classes)])
        return cls(room, np.full(classes, np.inf), pace=pace, seed=seed)

    def __len__(self) -> int:
        return sum(len(priority) for priority, _ in self.parts)

    @property
    def complete(self) -> bool:
        """True if the sample has every resolved event."""
        return bool(np.isinf(self.beyond).all())

    def add_block(self, block: EventBlock, first: int = 0) -> EventSample:
        """Return the sample with the resolved events of `block`, which are numbered in the stream from `first`."""
        found = np.zeros(len(block), dtype=np.uint64)
        np.add.at(found, np.repeat(np.arange(len(block)), block.sizes), _cell_keys(block.probabilities, 1))
        return self._join(found, block, first, block.take)

    def add_rows(self, q: Array, columns: Index, facts: EventBlock, made: Times | None, first: int) -> EventSample:
        """Sample with resolved events `facts` added; forecasts `q`, (T, N) or (T, N, K), are by experts `columns`."""
        found = np.empty(len(q), dtype=np.uint64)
        # Small enough for the cache.
        for rows in blocks(len(q), 4 * int(q[:1].size)):
            found[rows] = np.einsum("tn->t", _cell_keys(q[rows], 2))

        def chosen(rows: Index) -> EventBlock:
            return facts.take(rows).with_rows(q[rows], columns, None if made is None else made[rows])

        return self._join(found, facts, first, chosen)

    def _join(
        self, hashes: Keys, facts: EventBlock, first_number: int, events_at: Callable[[Index], EventBlock]
    ) -> EventSample:
        """Sample with those of the events `facts` that find room; `hashes` are of forecasts, `events_at` loads."""
        with np.errstate(over="ignore"):
            keys = mixed(hashes + (facts.outcomes + 2).astype(np.uint64) * GOLDEN)
            keys = mixed(keys + np.uint64(self.seed))
            again = hashes == 0
            if (np.diff(np.sort(keys)) == 0).any():
                first = np.zeros(len(keys), dtype=bool)
                first[np.unique(keys, return_index=True)[1]] = True
                again |= ~first
            for row in np.flatnonzero(again).tolist():
                name = facts.ids[row]
                keys[row] += np.uint64(first_number + row if name is None else event_key(name, self.seed))
            keys[again] = mixed(keys[again])
        grown = np.log(np.where(facts.weights > 0, facts.weights, 1.0)) + self.pace * facts.at
        priority, beyond = np.where(facts.weights > 0, priorities(keys, grown), np.inf), self.beyond.copy()
        for outcome, most in enumerate(self.room[:, 0].tolist()):
            mine = priority[facts.outcomes == outcome]
            if len(mine) > most:
                beyond[outcome] = min(beyond[outcome], np.partition(mine, most)[most])
        rows = np.flatnonzero(priority < beyond[facts.outcomes])
        found = replace(self, beyond=beyond, tidy=False)
        return found.with_part(priority[rows], events_at(rows)) if len(rows) else found

    def with_part(self, priority: Array, events: EventBlock) -> EventSample:
        """Return the sample with further `events` added; `priority` has the priority of each of them."""
        found = replace(self, parts=(*self.parts, (priority, events)), tidy=False)
        few = len(found) <= 2 * int(self.room[:, 0].sum()) and len(found.parts) <= PARTS
        return found if few else found.thinned()

    def thinned(self) -> EventSample:
        """Return the sample as one block ordered by priority, after dropping events for which there is no room."""
        if self.tidy or not self.parts:
            return self
        priority, whole = np.concatenate([p for p, _ in self.parts]), EventBlock.joined([b for _, b in self.parts])
        beyond, drawn = self.beyond.copy(), list[Index]()
        for outcome, room in enumerate(self.room):
            mine = np.flatnonzero((whole.outcomes == outcome) & (priority < beyond[outcome]))
            kept, further = least(priority, whole.room_taken, mine, room)
            beyond[outcome] = min(beyond[outcome], further)
            drawn.append(kept)
        rows = np.sort(np.concatenate(drawn))
        rows = rows[np.argsort(priority[rows], kind="stable")]
        return replace(self, beyond=beyond, parts=((priority[rows], whole.take(rows)),), tidy=True)

    def remove(self, ids: Collection[str]) -> EventSample:
        """Return the sample without the events `ids`; ids that are not in it are ignored."""
        left = [
            (p, block, np.array([name not in ids for name in block.ids.tolist()], dtype=bool))
            for p, block in self.parts
        ]
        parts = ((p, block) if some.all() else (p[some], block.take(some)) for p, block, some in left)
        return replace(self, parts=tuple(parts)) if ids else self

    def merge(self, other: EventSample, columns: Index) -> EventSample:
        """Return the sample joined with `other`, whose experts have the positions `columns` in this sample."""
        found = replace(self, beyond=np.minimum(self.beyond, other.beyond), tidy=not self.parts)
        for priority, block in other.parts:
            found = found.with_part(priority, replace(block, experts=columns[block.experts]))
        return found.thinned()

    @cached_property
    def by_id(self) -> dict[str, Event]:
        """Events of the sample that have ids, by id."""
        return {event.id: event for _, block in self.parts for event in block if event.id is not None}

    def stands_for(self, block: EventBlock, totals: Array, now: float) -> tuple[Array, Array]:
        """Number of events that each sampled event in `block` represents, and the event's weight at `now`, (T,) each.

        The numbers for one outcome add up to the weight of all events with it, `totals` (K,).
        """
        own = block.weights * np.exp(self.pace * (block.at - now)) if self.pace else block.weights
        with np.errstate(divide="ignore"):
            rate = np.log(block.weights) + self.pace * block.at
        return standing_for(self.beyond, own, rate, block.outcomes, totals), own


def _cell_keys(probabilities: Array, axes: int) -> Keys:
    """Return a hash of each forecast, 0 if missing; with more than `axes` axes, a forecast is K numbers on the last."""
    if probabilities.ndim == axes:
        return cell_keys(probabilities, 1.0)
    # Rows that were normalised differ in their last digits by the order of the classes.
    found = cell_keys(np.round(probabilities, 9), np.arange(1.0, probabilities.shape[-1] + 1.0))
    return np.asarray(np.einsum("...k->...", found))
