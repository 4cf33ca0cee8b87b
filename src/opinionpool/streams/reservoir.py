"""A bounded sample of resolved events, the same whatever the order and the batches in which they came."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from copy import copy
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.estimation.sampling import priorities, priority_of
from opinionpool.streams.events import Record
from opinionpool.streams.journal import Journal
from opinionpool.streams.rows import Rows

# Events of all outcomes together, and probabilities in their forecasts, that are kept by default.
CAPACITY, MOST_NUMBERS = 20_000, 4_000_000
# A block is kept as long as one in so many of its rows may find room; the rows of more blocks than this are joined.
SPARE, MOST_PARTS = 4, 64


class _Loose(NamedTuple):
    """Some rows of a block, of one outcome, that may find room."""

    priority: Array  # (T,)
    sizes: Array  # (T,); probabilities in the forecasts on each
    place: Index  # (T,); in the block
    block: Rows

    def below(self, bound: float) -> _Loose:
        """Those of a lower priority."""
        within = np.flatnonzero(self.priority < bound)
        if len(within) == len(self.priority):
            return self
        return _Loose(self.priority[within], self.sizes[within], self.place[within], self.block)

    def rows(self) -> Rows:
        """The rows in arrays of their own."""
        return self.block.taken(self.place)

    def compact(self) -> _Loose:
        """The same without the rest of the block where that is large."""
        if SPARE * len(self.place) >= len(self.block):
            return self
        return _Loose(self.priority, self.sizes, np.arange(len(self.place)), self.rows())


class Reservoir:
    """Resolved events, at most `capacity` / K of each outcome with at most `MOST_NUMBERS` / K probabilities.

    Each event has a priority that depends on its id, its weight and the seed only
    (`opinionpool.estimation.sampling.priorities`). Those of least priority are kept, as many as there is room for;
    nothing else matters, so that samples merge exactly. Rows without ids stay in their arrays until somebody asks for
    the events.

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
        # The least priority of each outcome that found no room; never changed, only replaced.
        self.beyond = np.full(classes, np.inf)
        self._kept: list[dict[int, tuple[float, Record]]] = [{} for _ in range(classes)]
        self._sizes = [0] * classes
        self._last: list[list[tuple[float, int]]] = [[] for _ in range(classes)]
        # Never changed, only replaced.
        self._loose: tuple[tuple[_Loose, ...], ...] = ((),) * classes

    def copy(self, journal: Journal) -> Reservoir:
        """A copy that can change independently."""
        other = copy(self)
        other.journal = journal
        other._sizes = self._sizes.copy()
        other._kept, other._last = [kept.copy() for kept in self._kept], [last.copy() for last in self._last]
        return other

    @property
    def before(self) -> tuple[Array, list[dict[int, tuple[float, Record]]], tuple[tuple[_Loose, ...], ...]]:
        """What `restore` takes; changes of the dictionaries are in the journal."""
        return self.beyond, self._kept, self._loose

    def restore(
        self, before: tuple[Array, list[dict[int, tuple[float, Record]]], tuple[tuple[_Loose, ...], ...]]
    ) -> None:
        """Be what it was, after changes to the events kept were taken back."""
        self.beyond, self._kept, self._loose = before
        self._sizes = [sum(record.probabilities.size for _, record in kept.values()) for kept in self._kept]
        self._last = [[(-priority, key) for key, (priority, _) in kept.items()] for kept in self._kept]
        for last in self._last:
            heapq.heapify(last)

    def __len__(self) -> int:
        self.settle()
        return sum(map(len, self._kept))

    def __iter__(self) -> Iterator[Record]:
        self.settle()
        return (record for kept in self._kept for _, record in kept.values())

    @property
    def complete(self) -> bool:
        """Whether every event found room."""
        for outcome in range(len(self._loose)):
            self._limit(outcome)
        return bool(np.isinf(self.beyond).all())

    @property
    def example(self) -> Record | None:
        """One of the events, None if there is none."""
        first = next((record for kept in self._kept for _, record in kept.values()), None)
        row = next((part.block.record(int(part.place[0])) for parts in self._loose for part in parts), None)
        return row if first is None else first

    def loose(self) -> Iterator[tuple[int, Rows]]:
        """Outcomes, and those rows without ids that are in the sample and still stand in arrays."""
        for outcome, parts in enumerate(self._loose):
            self._limit(outcome)
            yield from ((outcome, part.below(self.beyond[outcome]).rows()) for part in parts)

    def settled(self) -> Iterator[Record]:
        """The other events that are kept, in any order."""
        return (record for kept in self._kept for _, record in kept.values())

    def find(self, key: int) -> Record | None:
        """The event with this key, None if it is not kept, or a row without an id."""
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

    def put_rows(self, rows: Rows) -> None:
        """Keep some of many rows without ids, whose arrays are not changed any more."""
        assert rows.keys is not None
        if not all(part.block.joins(rows) for parts in self._loose for part in parts[:1]):
            self.settle()
        grown: Array | float = 0.0
        if not (rows.weight == 1.0).all():
            grown = np.log(np.where(rows.weight > 0, rows.weight, 1.0))
        if rows.at is not None:
            grown = grown + self.pace * rows.at
        priority = np.where(rows.weight > 0, priorities(rows.keys, grown), np.inf)
        sizes, parts = rows.sizes, list(self._loose)
        for outcome in range(len(parts)):
            mine = np.flatnonzero((rows.outcomes == outcome) & (priority < self.beyond[outcome]))
            if len(mine):
                parts[outcome] = (*parts[outcome], _Loose(priority[mine], sizes[mine], mine, rows).compact())
        self._loose = tuple(parts)
        for outcome, loose in enumerate(parts):
            count, numbers = (sum(len(part.place) for part in loose), sum(float(part.sizes.sum()) for part in loose))
            if count > 2 * self.room or numbers > 2 * self.numbers:
                self._tidy(outcome)

    def _limit(self, outcome: int) -> None:
        """Find the least priority of an outcome for which there is no room."""
        loose, kept = self._loose[outcome], self._kept[outcome].values()
        if not loose or sum(len(part.priority) for part in loose) + len(kept) <= self.room:
            # As long as there is room, nothing needs to be put in order.
            numbers = sum(float(part.sizes.sum()) for part in loose) + self._sizes[outcome]
            if not loose or numbers <= self.numbers:
                return
        priority = np.concatenate([*(part.priority for part in loose), [priority for priority, _ in kept]])
        sizes = np.concatenate([*(part.sizes for part in loose), [record.probabilities.size for _, record in kept]])
        most = min(self.room, int(self.numbers // max(sizes.max(), 1.0)))
        if most == self.room or (sizes == sizes[0]).all():
            bound = np.partition(priority, most)[most] if most < len(priority) else np.inf
        else:
            order = np.argsort(priority)
            fits = (np.cumsum(sizes[order]) <= self.numbers) & (np.arange(len(order)) < self.room)
            bound = np.inf if fits.all() else priority[order[fits.argmin()]]
        self._bound(outcome, bound)

    def _bound(self, outcome: int, priority: float) -> None:
        """There is no room from this priority on."""
        self.beyond = self.beyond.copy()
        self.beyond[outcome] = min(self.beyond[outcome], priority)

    def _tidy(self, outcome: int) -> None:
        """Leave out the loose rows of an outcome for which there is no room."""
        self._limit(outcome)
        left = (part.below(self.beyond[outcome]).compact() for part in self._loose[outcome])
        parts = tuple(part for part in left if len(part.place))
        if len(parts) > MOST_PARTS:
            priority, sizes = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
            parts = (_Loose(priority, sizes, np.arange(len(priority)), Rows.joined([part.rows() for part in parts])),)
        self._loose = (*self._loose[:outcome], parts, *self._loose[outcome + 1 :])

    def settle(self) -> None:
        """Make events of loose rows; what is kept stays the same."""
        if not any(self._loose):
            return
        for outcome in range(len(self._loose)):
            self._tidy(outcome)
        other = self.copy(Journal())
        for part in (part for parts in self._loose for part in parts):
            for row, priority in zip(part.place.tolist(), part.priority.tolist(), strict=True):
                other.put(part.block.record(row), priority)
        self.__dict__.update(
            _kept=other._kept, _sizes=other._sizes, _last=other._last, beyond=other.beyond,
            _loose=((),) * len(self._loose),
        )  # fmt: skip

    def remove(self, record: Record) -> None:
        """Forget an event that has an id, if it is kept."""
        current = self.journal.pop(self._kept[record.outcome], record.key)
        if current is not None:
            self._sizes[record.outcome] -= current[1].probabilities.size

    def merge(self, other: Reservoir, moved: Callable[[Record], Record]) -> None:
        """Take in another sample; `moved` gives its events this one's positions of experts."""
        self.settle()
        other.settle()
        self.beyond = np.minimum(self.beyond, other.beyond)
        for outcome, beyond in enumerate(self.beyond):
            for record in [r for priority, r in self._kept[outcome].values() if priority >= beyond]:
                self.remove(record)
            for _, record in other._kept[outcome].values():
                self.put(moved(record))

    def records(self) -> Iterator[Record]:
        """The events kept, in an order that depends on nothing but which ones they are."""
        self.settle()
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
        return priority_of(record.key, grown)

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
                self._bound(outcome, -negative)
