"""A bounded sample of resolved events, the same whatever the order and the batches in which they came."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.blocks import blocks
from opinionpool.estimation.sampling import GOLDEN, Keys, cell_keys, mixed, priorities
from opinionpool.streams.block import Event, EventBlock, Times, event_key

# Events of all outcomes together, and probabilities in their forecasts, that are kept by default.
CAPACITY, MOST_NUMBERS = 20_000, 4_000_000


@dataclass(frozen=True, eq=False)
class Sample:
    """Resolved events, at most `capacity` / K of each outcome with at most `MOST_NUMBERS` / K probabilities.

    Each event has a priority that depends on its forecasts, not on whose they are, its outcome, its weight and the seed
    (`opinionpool.estimation.sampling.priorities`). Of events that agree in these, all but the first of a block are
    drawn by their ids, or, without ids, by their numbers, as are events without forecasts. Events of least priority are
    kept, as many as there is room for; nothing else matters, so that samples merge exactly.
    """

    room: int  # events of each outcome
    numbers: int  # probabilities in the forecasts on events of each outcome
    pace: float  # how fast the weight of an event grows with the time of its resolution: log 2 / half-life, or 0
    seed: int
    beyond: Array  # (K,); the least priority of each outcome that found no room
    parts: tuple[tuple[Array, EventBlock], ...] = ()  # priorities and events, of which some may find no room
    tidy: bool = True  # whether there is one part at most, by priority, and all of it found room

    @classmethod
    def empty(cls, classes: int, capacity: int, pace: float, seed: int) -> Sample:
        """A sample of no events."""
        room, numbers = max(1, capacity // classes), max(1, MOST_NUMBERS // classes)
        return cls(room, numbers, pace, seed, np.full(classes, np.inf))

    def add(self, block: EventBlock, first: int = 0) -> Sample:
        """The sample with further resolved events; the number of the first one is `first`."""
        found = np.zeros(len(block), dtype=np.uint64)
        np.add.at(found, np.repeat(np.arange(len(block)), block.sizes), _cell_keys(block.probabilities, 1))
        return self._join(found, block, first, block.take)

    def add_rows(self, q: Array, columns: Index, facts: EventBlock, made: Times | None, first: int) -> Sample:
        """The sample with the resolved events `facts`, whose forecasts are in an array, (T, N) or (T, N, K)."""
        found = np.empty(len(q), dtype=np.uint64)
        # Small enough for the cache.
        for rows in blocks(len(q), 4 * int(q[:1].size)):
            found[rows] = np.einsum("tn->t", _cell_keys(q[rows], 2))

        def chosen(rows: Index) -> EventBlock:
            return facts.take(rows).with_rows(q[rows], columns, None if made is None else made[rows])

        return self._join(found, facts, first, chosen)

    def _join(
        self, contents: Keys, facts: EventBlock, first_number: int, chosen: Callable[[Index], EventBlock]
    ) -> Sample:
        """Sample with those events of a batch for which there is room; `contents` are hashes of their forecasts."""
        with np.errstate(over="ignore"):
            keys = mixed(contents + (facts.outcomes + 2).astype(np.uint64) * GOLDEN)
            keys = mixed(keys + np.uint64(self.seed))
            again = contents == 0
            if (np.diff(np.sort(keys)) == 0).any():
                first = np.zeros(len(keys), dtype=bool)
                first[np.unique(keys, return_index=True)[1]] = True
                again |= ~first
            for row in np.flatnonzero(again).tolist():
                name = facts.ids[row]
                keys[row] += np.uint64(first_number + row if name is None else event_key(name, self.seed))
            keys[again] = mixed(keys[again])
        grown = np.log(np.where(facts.weights > 0, facts.weights, 1.0)) + self.pace * facts.at
        priority = np.where(facts.weights > 0, priorities(keys, grown), np.inf)
        beyond = self.beyond.copy()
        for outcome in range(len(beyond)):
            mine = priority[facts.outcomes == outcome]
            if len(mine) > self.room:
                beyond[outcome] = min(beyond[outcome], np.partition(mine, self.room)[self.room])
        rows = np.flatnonzero(priority < beyond[facts.outcomes])
        found = replace(self, beyond=beyond, tidy=False)
        return found.with_part(priority[rows], chosen(rows)) if len(rows) else found

    def with_part(self, priority: Array, block: EventBlock) -> Sample:
        """The sample with further events of known priorities."""
        found = replace(self, parts=(*self.parts, (priority, block)), tidy=False)
        most = 2 * self.room * len(self.beyond)
        few = sum(len(part) for _, part in found.parts) <= most and len(found.parts) <= 64
        return found if few else found.thinned()

    def remove(self, ids: Collection[str]) -> Sample:
        """The sample without some events, as far as they are in it."""
        if not ids:
            return self
        kept = []
        for priority, block in self.parts:
            left = np.array([name not in ids for name in block.ids.tolist()], dtype=bool)
            kept.append((priority, block) if left.all() else (priority[left], block.take(left)))
        return replace(self, parts=tuple(kept))

    def merge(self, other: Sample, columns: Index) -> Sample:
        """The sample with the events of another one, whose experts have the positions `columns` here."""
        found = replace(self, beyond=np.minimum(self.beyond, other.beyond), tidy=not self.parts)
        for priority, block in other.parts:
            found = found.with_part(priority, replace(block, experts=columns[block.experts]))
        return found.thinned()

    def thinned(self) -> Sample:
        """Sample in one part, ordered by priority, without the events for which there is no room."""
        if self.tidy or not self.parts:
            return self
        priority = np.concatenate([each for each, _ in self.parts])
        block, beyond = EventBlock.joined([part for _, part in self.parts]), self.beyond.copy()
        order, kept = np.argsort(priority, kind="stable"), np.zeros(len(priority), dtype=bool)
        numbers, outcomes = block.sizes * (block.probabilities[:1].size or 1), block.outcomes
        for outcome in range(len(beyond)):
            mine = order[(outcomes[order] == outcome) & (priority[order] < beyond[outcome])]
            fit = min(self.room, int(np.searchsorted(np.cumsum(numbers[mine]), self.numbers, side="right")))
            beyond[outcome] = min(beyond[outcome], priority[mine[fit:]].min(initial=np.inf))
            # Of copies that came in several blocks all are kept, or none.
            kept[mine[priority[mine] < beyond[outcome]]] = True
        rows = order[kept[order]]
        return replace(self, beyond=beyond, parts=((priority[rows], block.take(rows)),), tidy=True)

    @cached_property
    def by_id(self) -> dict[str, Event]:
        """Events of the sample with ids, by id."""
        return {event.id: event for _, block in self.parts for event in block if event.id is not None}

    def __len__(self) -> int:
        return sum(len(block) for _, block in self.parts)

    @property
    def complete(self) -> bool:
        """True if there was room for every event."""
        return bool(np.isinf(self.beyond).all())

    def stands_for(self, block: EventBlock, totals: Array, now: float) -> tuple[Array, Array]:
        """Number of events that each event of the sample stands for, (T,), and its own weight as of `now`, (T,).

        Those of one outcome add up to the weight of all its events, `totals`, (K,).
        """
        own = block.weights * np.exp(self.pace * (block.at - now)) if self.pace else block.weights
        stands = own.copy()
        for c in np.flatnonzero(~np.isinf(self.beyond)).tolist():
            mine = block.outcomes == c
            with np.errstate(over="ignore"):
                rate = np.exp(np.log(block.weights[mine]) + self.pace * block.at[mine] + self.beyond[c])
            share = own[mine] / -np.expm1(-rate)
            stands[mine] = share * (totals[c] / share.sum()) if share.any() else share
        return stands, own


def _cell_keys(probabilities: Array, axes: int) -> Keys:
    """Hash of each forecast over the first `axes` axes, 0 where missing; a further axis has the classes."""
    if probabilities.ndim == axes:
        return cell_keys(probabilities, 1.0)
    # Rows that were normalised differ in their last digits by the order of the classes.
    found = cell_keys(np.round(probabilities, 9), np.arange(1.0, probabilities.shape[-1] + 1.0))
    return np.asarray(np.einsum("...k->...", found))
