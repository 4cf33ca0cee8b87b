"""Memory of a stream: positions of its experts, and 44 bytes for each event that it learned from."""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Index
from opinionpool.errors import ArgumentError

# Sets of experts who answered together that are remembered.
_SETS = 256


class Columns:
    """Column number of each expert, by name in the order of appearance, and hashes of the names; immutable.

    >>> columns = Columns().joined(["ann", "bob"])
    >>> columns.of(["bob", "ann"])
    array([1, 0])
    """

    def __init__(self, names: tuple[str, ...] = (), digests: npt.NDArray[np.void] | None = None) -> None:
        self.names = names
        self._digests = np.empty(0, dtype="V8") if digests is None else digests
        self._place = {name: i for i, name in enumerate(names)}
        # Different experts who answered together, and their positions.
        self.sets: dict[tuple[object, ...], Index] = {}
        self._sorted: dict[bytes, tuple[Index, bytes]] = {}

    def joined(self, names: Sequence[str]) -> Columns:
        """Return a copy in which those of the experts `names` that are new are appended."""
        fresh = [name for name in dict.fromkeys(names) if name not in self._place]
        hashes = [hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8] for name in fresh]
        return Columns((*self.names, *fresh), np.append(self._digests, np.array(hashes, dtype="V8")))

    def of(self, names: Sequence[str]) -> Index:
        """Return column numbers of the experts `names`, an array not to be modified; a KeyError for an unknown name."""
        together = tuple(names)
        found = self.sets.get(together)
        if found is None:
            found = np.array([self._place[name] for name in together], dtype=np.intp)
            if len(self.sets) >= _SETS:
                self.sets.clear()
            self.sets[together] = found
        return found

    def sorted(self, experts: Index) -> tuple[Index, bytes]:
        """Return the positions that sort `experts` by the hashes of their names, and the hashes so sorted."""
        key = experts.tobytes()
        found = self._sorted.get(key)
        if found is None:
            labels = self._digests[experts]
            # Bytes are compared as numbers with the first one foremost.
            order = labels.view(">u8").argsort(kind="stable")
            if len(self._sorted) >= _SETS:
                self._sorted.clear()
            found = self._sorted[key] = order, labels[order].tobytes()
        return found


ENTRY = np.dtype([("key", "<u8"), ("content", "<u8"), ("outcome", "<i4"), ("weight", "<f8"), ("at", "<f8")])


class Entry(NamedTuple):
    """Ledger entry of a resolved event: hash of its id, hash of its forecasts and prior, outcome, weight and time."""

    key: int  # hash of the id
    content: int  # hash of forecasts and prior
    outcome: int
    weight: float
    at: float  # when it was resolved, in the unit of the half-life


class _Run(NamedTuple):
    """Part of a ledger: entries ordered by key, and an array of the keys, in which a key is found by bisection."""

    keys: array[int]
    entries: np.ndarray

    @classmethod
    def of(cls, entries: np.ndarray) -> _Run:
        ordered = entries[np.argsort(entries["key"], kind="stable")]
        return cls(array("Q", ordered["key"].tobytes()), ordered)


@dataclass(frozen=True)
class Ledger:
    """Record of the resolved events learned from, in parts sorted by key, each at least twice as long as the next.

    >>> ledger = Ledger().added([Entry(7, 1, 0, 1.0, 0.0), Entry(3, 2, 1, 1.0, 0.0)])
    >>> ledger.find(7).outcome, ledger.without([7]).find(7), len(ledger)
    (0, None, 2)
    """

    runs: tuple[_Run, ...] = ()

    def __len__(self) -> int:
        return sum(len(run.keys) for run in self.runs)

    def find(self, key: int) -> Entry | None:
        """Return the entry with the key `key`; None if there is none."""
        for keys, entries in self.runs:
            place = bisect_left(keys, key)
            if place < len(keys) and keys[place] == key:
                return Entry(*entries[place].item())
        return None

    def array(self) -> np.ndarray:
        """Return all entries in one array, ordered by key."""
        return _Run.of(np.concatenate([np.empty(0, ENTRY), *(run.entries for run in self.runs)])).entries

    def added(self, entries: Sequence[Entry] | np.ndarray) -> Ledger:
        """Return the ledger with `entries` of further events added."""
        if not len(entries):
            return self
        runs = [*self.runs, _Run.of(np.asarray(entries, dtype=ENTRY))]
        while len(runs) > 1 and len(runs[-2].keys) < 2 * len(runs[-1].keys):
            runs[-2:] = [_Run.of(np.concatenate([run.entries for run in runs[-2:]]))]
        return Ledger(tuple(runs))

    def without(self, keys: Iterable[int]) -> Ledger:
        """Return the ledger without the entries that have the keys `keys`."""
        gone = np.array(list(keys), dtype=np.uint64)
        if not len(gone):
            return self
        # By sorting: NumPy 2.0 cannot look up numbers above 2**63 in a table.
        left = (run.entries[~np.isin(run.entries["key"], gone, kind="sort")] for run in self.runs)
        return Ledger(tuple(_Run.of(entries) for entries in left if len(entries)))

    def merge(self, other: Ledger) -> Ledger:
        """Return the ledger with the entries of `other` too; an ArgumentError if an event is in both."""
        mine, theirs = self.array(), other.array()
        both = int(np.isin(theirs["key"], mine["key"], kind="sort").sum())
        if both:
            raise ArgumentError(
                f"{both} of {len(theirs)} resolved events were learned from by both streams; only streams of different "
                "events can be merged, as none may count twice"
            )
        return self.added(theirs)
