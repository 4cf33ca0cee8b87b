"""A bounded sample of resolved events, the same whatever the order and the batches in which they came."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from copy import copy

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.estimation.sampling import priorities
from opinionpool.streams.events import Record
from opinionpool.streams.journal import Journal

# Events of all outcomes together, and probabilities in their forecasts, that are kept by default.
CAPACITY, MOST_NUMBERS = 20_000, 4_000_000


class Reservoir:
    """Resolved events, at most `capacity` / K of each outcome with at most `MOST_NUMBERS` / K probabilities.

    Each event has a priority that depends on its id, its weight and the seed only
    (`opinionpool.estimation.sampling.priorities`). Those of least priority are kept, as many as there is room for;
    nothing else matters, so that samples merge exactly.

    Parameters
    ----------
    classes : int
        K.
    capacity : int
    pace : float
        How fast the weight of an event grows with the time at which it was resolved: log 2 / half-life, or 0.
    journal : Journal, optional
        Where changes are written down.
    """

    def __init__(self, classes: int, capacity: int, pace: float, journal: Journal | None = None) -> None:
        self.journal = Journal() if journal is None else journal
        self.room = max(1, capacity // classes)
        self.numbers = max(1, MOST_NUMBERS // classes)
        self.pace = pace
        # The least priority of each outcome that found no room.
        self.beyond = np.full(classes, np.inf)
        self._kept: list[dict[int, tuple[float, Record]]] = [{} for _ in range(classes)]
        self._sizes = [0] * classes
        self._last: list[list[tuple[float, int]]] = [[] for _ in range(classes)]

    def copy(self, journal: Journal) -> Reservoir:
        """A copy that can change independently."""
        other = copy(self)
        other.journal = journal
        other.beyond, other._sizes = self.beyond.copy(), self._sizes.copy()
        other._kept, other._last = [kept.copy() for kept in self._kept], [last.copy() for last in self._last]
        return other

    def restore(self, beyond: Array) -> None:
        """Make bounds, sizes and order fit the events kept, after changes to these were taken back."""
        self.beyond = beyond
        self._sizes = [sum(record.probabilities.size for _, record in kept.values()) for kept in self._kept]
        self._last = [[(-priority, key) for key, (priority, _) in kept.items()] for kept in self._kept]
        for last in self._last:
            heapq.heapify(last)

    def __len__(self) -> int:
        return sum(map(len, self._kept))

    def __iter__(self) -> Iterator[Record]:
        return (record for kept in self._kept for _, record in kept.values())

    @property
    def complete(self) -> bool:
        """Whether every event found room."""
        return bool(np.isinf(self.beyond).all())

    def find(self, key: int) -> Record | None:
        """The event with this key, None if it is not kept."""
        return next((kept[key][1] for kept in self._kept if key in kept), None)

    def put(self, record: Record, priority: float | None = None) -> None:
        """Keep an event if there is room, or the last one gives way; its priority follows from the record."""
        outcome = record.outcome
        priority = self._priority(record) if priority is None else priority
        if priority >= self.beyond[outcome] or record.weight <= 0:
            return
        self.journal.put(self._kept[outcome], record.key, (priority, record))
        self._sizes[outcome] += record.probabilities.size
        heapq.heappush(self._last[outcome], (-priority, record.key))
        self._make_room(outcome)

    def put_rows(
        self,
        keys: npt.NDArray[np.uint64],
        outcome: int,
        weight: Array | None,
        at: Array | None,
        make: Callable[[int], Record],
    ) -> None:
        """Keep some of many rows of one outcome; `make` makes a record of a row."""
        grown = np.zeros(len(keys)) if weight is None else np.log(weight)
        if at is not None:
            grown = grown + self.pace * at
        priority = priorities(keys, grown)
        limit = self.beyond[outcome]
        if len(self._kept[outcome]) >= self.room:
            limit = min(limit, self._longest(outcome))
        found = np.flatnonzero(priority < limit)
        # What is left out here would have found no room.
        self.beyond[outcome] = min(self.beyond[outcome], np.min(priority[priority >= limit], initial=np.inf))
        if len(found) > self.room:
            order = np.argpartition(priority[found], self.room)
            self.beyond[outcome] = min(self.beyond[outcome], priority[found[order[self.room :]]].min())
            found = found[order[: self.room]]
        for row in found:
            self.put(make(int(row)), float(priority[row]))

    def remove(self, record: Record) -> None:
        """Forget an event, if it is kept."""
        current = self.journal.pop(self._kept[record.outcome], record.key)
        if current is not None:
            self._sizes[record.outcome] -= current[1].probabilities.size

    def merge(self, other: Reservoir, moved: Callable[[Record], Record]) -> None:
        """Take in another sample; `moved` gives its events this one's positions of experts."""
        self.beyond = np.minimum(self.beyond, other.beyond)
        for outcome, beyond in enumerate(self.beyond):
            for record in [r for priority, r in self._kept[outcome].values() if priority >= beyond]:
                self.remove(record)
            for _, record in other._kept[outcome].values():
                self.put(moved(record))

    def kept(self) -> Iterator[Record]:
        """The events kept, in any order."""
        return (record for kept in self._kept for _, record in kept.values())

    def records(self) -> Iterator[Record]:
        """The events kept, in an order that depends on nothing but which ones they are."""
        everything = {key: record for kept in self._kept for key, (_, record) in kept.items()}
        return (everything[key] for key in sorted(everything))

    def weights(self, records: list[Record], totals: Array, now: float) -> tuple[Array, Array]:
        """What each event stands for, so that those of each outcome add up to the total of all its events; and its own.

        Parameters
        ----------
        records : list of Record
            Those that are kept.
        totals : ndarray, shape (K,)
        now : float
            The time at which an event's weight is its frequency.
        """
        outcome = np.array([record.outcome for record in records], dtype=np.intp)
        weight = np.array([record.weight for record in records])
        at = np.array([record.at for record in records])
        own = weight * np.exp(self.pace * (at - now)) if self.pace else weight
        stands = own.copy()
        for c in np.flatnonzero(~np.isinf(self.beyond)).tolist():
            mine = outcome == c
            with np.errstate(over="ignore"):
                rate = np.exp(np.log(weight[mine]) + self.pace * at[mine] + self.beyond[c])
            share = own[mine] / -np.expm1(-rate)
            stands[mine] = share * (totals[c] / share.sum()) if share.any() else share
        return stands, own

    def _priority(self, record: Record) -> float:
        grown = math.log(record.weight) + self.pace * record.at if record.weight > 0 else -math.inf
        return float(priorities(np.array([record.key], dtype=np.uint64), grown)[0])

    def _longest(self, outcome: int) -> float:
        """The largest priority that is kept."""
        last = self._last[outcome]
        while not self._current(outcome, *last[0]):
            heapq.heappop(last)
        return -last[0][0]

    def _current(self, outcome: int, negative: float, key: int) -> bool:
        """Whether a mark on the heap is that of an event that is kept."""
        current = self._kept[outcome].get(key)
        return current is not None and current[0] == -negative

    def _make_room(self, outcome: int) -> None:
        kept = self._kept[outcome]
        while len(kept) > self.room or self._sizes[outcome] > self.numbers:
            negative, key = heapq.heappop(self._last[outcome])
            if self._current(outcome, negative, key):
                self._sizes[outcome] -= self.journal.pop(kept, key)[1].probabilities.size
                self.beyond[outcome] = min(self.beyond[outcome], -negative)
