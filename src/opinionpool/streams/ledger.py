"""Which events a stream has learned from: a few bytes for each, so that none counts twice."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from opinionpool.errors import ArgumentError

ENTRY = np.dtype([("key", "<u8"), ("content", "<u8"), ("outcome", "<i4"), ("weight", "<f8"), ("at", "<f8")])


class Entry(NamedTuple):
    """Record of an event that was learned from: hashes of its id and forecasts, outcome, weight, time."""

    key: int
    content: int
    outcome: int
    weight: float
    at: float


class _Run(NamedTuple):
    """Entries ordered by key, and an array of their keys for bisection."""

    keys: array[int]
    entries: np.ndarray

    @classmethod
    def of(cls, entries: np.ndarray) -> _Run:
        ordered = entries[np.argsort(entries["key"], kind="stable")]
        return cls(array("Q", ordered["key"].tobytes()), ordered)


@dataclass(frozen=True)
class Ledger:
    """Entries by key, 44 bytes each, in few sorted runs, each at least twice as long as the next.

    >>> ledger = Ledger().added([Entry(7, 1, 0, 1.0, 0.0), Entry(3, 2, 1, 1.0, 0.0)])
    >>> ledger.find(7).outcome, ledger.without([7]).find(7), len(ledger)
    (0, None, 2)
    """

    runs: tuple[_Run, ...] = ()

    def __len__(self) -> int:
        return sum(len(run.keys) for run in self.runs)

    def find(self, key: int) -> Entry | None:
        """The entry of a key, None if there is none."""
        for keys, entries in self.runs:
            place = bisect_left(keys, key)
            if place < len(keys) and keys[place] == key:
                return Entry(*entries[place].item())
        return None

    def array(self) -> np.ndarray:
        """All entries in one array, ordered by key."""
        return _Run.of(np.concatenate([np.empty(0, ENTRY), *(run.entries for run in self.runs)])).entries

    def added(self, entries: Sequence[Entry] | np.ndarray) -> Ledger:
        """The ledger with entries of other events."""
        if not len(entries):
            return self
        runs = [*self.runs, _Run.of(np.asarray(entries, dtype=ENTRY))]
        while len(runs) > 1 and len(runs[-2].keys) < 2 * len(runs[-1].keys):
            runs[-2:] = [_Run.of(np.concatenate([run.entries for run in runs[-2:]]))]
        return Ledger(tuple(runs))

    def without(self, keys: Iterable[int]) -> Ledger:
        """The ledger without some events."""
        gone = np.array(list(keys), dtype=np.uint64)
        if not len(gone):
            return self
        # By sorting: NumPy 2.0 cannot look up numbers above 2**63 in a table.
        left = (run.entries[~np.isin(run.entries["key"], gone, kind="sort")] for run in self.runs)
        return Ledger(tuple(_Run.of(entries) for entries in left if len(entries)))

    def merge(self, other: Ledger) -> Ledger:
        """The ledger with all entries of another one. Raises ArgumentError if an event is in both."""
        mine, theirs = self.array(), other.array()
        both = int(np.isin(theirs["key"], mine["key"], kind="sort").sum())
        if both:
            raise ArgumentError(
                f"{both} of {len(theirs)} resolved events were learned from by both streams; only streams of different "
                "events can be merged, as none may count twice"
            )
        return self.added(theirs)
