"""A bounded sample of the resolved events of a stream, with their ids."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.blocks import blocks
from opinionpool.estimation.sample import Sample
from opinionpool.estimation.sampling import GOLDEN, Keys, cell_keys, mixed, priorities
from opinionpool.streams.block import Event, EventBlock, Times, event_key

# Events of all outcomes together, and probabilities in their forecasts, that are kept by default.
CAPACITY, MOST_NUMBERS = 20_000, 4_000_000


@dataclass(frozen=True, eq=False)
class EventSample(Sample[EventBlock]):
    """Resolved events, at most `capacity` / K of each outcome with at most `MOST_NUMBERS` / K probabilities.

    Each event has a priority that depends on its forecasts, not on whose they are, its outcome, its weight and the
    seed. Of events that agree in these, all but the first of a block are drawn by their ids, or, without ids, by their
    numbers, as are events without forecasts.
    """

    pace: float = 0.0  # how fast the weight of an event grows with the time of its resolution: log 2 / half-life, or 0
    seed: int = 0

    @classmethod
    def empty(cls, classes: int, capacity: int, pace: float, seed: int) -> EventSample:
        """A sample of no events."""
        room = np.full((classes, 2), [max(1, capacity // classes), max(1, MOST_NUMBERS // classes)])
        return cls(room, np.full(classes, np.inf), pace=pace, seed=seed)

    def add_block(self, block: EventBlock, first: int = 0) -> EventSample:
        """The sample with further resolved events; the number of the first one is `first`."""
        found = np.zeros(len(block), dtype=np.uint64)
        np.add.at(found, np.repeat(np.arange(len(block)), block.sizes), _cell_keys(block.probabilities, 1))
        return self._join(found, block, first, block.take)

    def add_rows(self, q: Array, columns: Index, facts: EventBlock, made: Times | None, first: int) -> EventSample:
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
    ) -> EventSample:
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
        return self.add(np.where(facts.weights > 0, priorities(keys, grown), np.inf), facts.outcomes, chosen)

    def remove(self, ids: Collection[str]) -> EventSample:
        """The sample without the events `ids`, those of them that are in it."""
        if not ids:
            return self
        return self.only(lambda block: np.array([name not in ids for name in block.ids.tolist()], dtype=bool))

    def merge(self, other: EventSample, columns: Index) -> EventSample:
        """The sample joined with the sample `other`, whose experts have the positions `columns` here."""
        return self.merged(other, lambda block: replace(block, experts=columns[block.experts]))

    @cached_property
    def by_id(self) -> dict[str, Event]:
        """Events of the sample with ids, by id."""
        return {event.id: event for _, block in self.parts for event in block if event.id is not None}

    def stands_for(self, block: EventBlock, totals: Array, now: float) -> tuple[Array, Array]:
        """Number of events that each sampled event represents, (T,), and the event's own weight as of `now`, (T,).

        Those of one outcome add up to the weight of all its events, `totals`, (K,).
        """
        own = block.weights * np.exp(self.pace * (block.at - now)) if self.pace else block.weights
        with np.errstate(divide="ignore"):
            rate = np.log(block.weights) + self.pace * block.at
        return self.standing_for(own, rate, block.outcomes, totals), own


def _cell_keys(probabilities: Array, axes: int) -> Keys:
    """Hash of each forecast, in the first `axes` axes of `probabilities`, 0 where missing; any last axis is classes."""
    if probabilities.ndim == axes:
        return cell_keys(probabilities, 1.0)
    # Rows that were normalised differ in their last digits by the order of the classes.
    found = cell_keys(np.round(probabilities, 9), np.arange(1.0, probabilities.shape[-1] + 1.0))
    return np.asarray(np.einsum("...k->...", found))
