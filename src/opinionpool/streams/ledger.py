"""Which events a stream has learned from: a few bytes for each, so that none counts twice."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from copy import copy
from typing import NamedTuple

import numpy as np

from opinionpool.errors import ArgumentError
from opinionpool.streams.journal import Journal

ENTRY = np.dtype([("key", "<u8"), ("content", "<u8"), ("outcome", "<i4"), ("weight", "<f8"), ("at", "<f8")])
# So many new entries are sorted in at once, or a share of those that are there.
FEW, SHARE = 4096, 8


class Entry(NamedTuple):
    """What is remembered of an event that was learned from: a digest of its forecasts, what happened, its weight."""

    key: int
    content: int
    outcome: int
    weight: float
    at: float


class Ledger:
    """Entries by key, 44 bytes each.

    The array of old ones is never changed, only replaced; new ones stand beside it, None for one that was removed.

    Parameters
    ----------
    entries : ndarray, optional
    journal : Journal, optional
        Where changes are written down.
    """

    def __init__(self, entries: np.ndarray | None = None, journal: Journal | None = None) -> None:
        self.journal = Journal() if journal is None else journal
        self._old: np.ndarray
        self._keys: array[int]
        self._new: dict[int, Entry | None]
        self._count: int
        self._hold(np.empty(0, ENTRY) if entries is None else entries)

    def copy(self, journal: Journal) -> Ledger:
        """A copy that can change independently."""
        other = copy(self)
        other.journal, other._new = journal, self._new.copy()
        return other

    @property
    def entries(self) -> tuple[np.ndarray, array[int], dict[int, Entry | None], int]:
        """All that it consists of, so that it can be what it was; changes of the dictionary are in the journal."""
        return self._old, self._keys, self._new, self._count

    @entries.setter
    def entries(self, entries: tuple[np.ndarray, array[int], dict[int, Entry | None], int]) -> None:
        self.__dict__.update(zip(("_old", "_keys", "_new", "_count"), entries, strict=True))

    def __len__(self) -> int:
        return self._count

    def find(self, key: int) -> Entry | None:
        """The entry of a key, None if there is none."""
        if key in self._new:
            return self._new[key]
        place = self._place(key) if self._keys else None
        return None if place is None else Entry(*self._old[place].item())

    def put(self, entry: Entry) -> None:
        """Remember an event, in place of what was remembered of it."""
        self._count += self.find(entry.key) is None
        self.journal.put(self._new, entry.key, entry)
        if len(self._new) > FEW and len(self._new) > len(self._old) // SHARE:
            self._sort_in()

    def remove(self, key: int) -> None:
        """Forget an event that is there."""
        if self._place(key) is None:
            self.journal.pop(self._new, key)
        else:
            self.journal.put(self._new, key, None)
        self._count -= 1

    def array(self) -> np.ndarray:
        """All entries, by key."""
        self._sort_in()
        return self._old

    def merge(self, other: Ledger) -> None:
        """Take in another ledger.

        Raises
        ------
        ArgumentError
            If an event is in both.
        """
        mine, theirs = self.array(), other.array()
        # By sorting: NumPy 2.0 cannot look up numbers above 2**63 in a table.
        both = int(np.isin(theirs["key"], mine["key"], kind="sort").sum())
        if both:
            raise ArgumentError(
                f"{both} of {len(theirs)} resolved events were learned from by both streams; only streams of different "
                "events can be merged, as none may count twice"
            )
        self._hold(np.concatenate([mine, theirs]))

    def _hold(self, entries: np.ndarray) -> None:
        """Sort entries; their keys stand side by side, as they are searched."""
        old = entries[np.argsort(entries["key"], kind="stable")]
        # All of it at once, or nothing.
        self.__dict__.update(_old=old, _keys=array("Q", old["key"].tobytes()), _count=len(old), _new={})

    def _place(self, key: int) -> int | None:
        place = bisect_left(self._keys, key)
        return place if place < len(self._keys) and self._keys[place] == key else None

    def _sort_in(self) -> None:
        if self._new:
            fresh = np.array([entry for entry in self._new.values() if entry is not None], dtype=ENTRY)
            kept = np.ones(len(self._old), dtype=bool)
            kept[[place for place in map(self._place, self._new) if place is not None]] = False
            self._hold(np.concatenate([self._old[kept], fresh]))
