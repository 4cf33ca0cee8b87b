"""Which events a stream has learned from: a few bytes for each, so that none counts twice."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from opinionpool.errors import ArgumentError

ENTRY = np.dtype([("key", "<u8"), ("content", "<u8"), ("outcome", "<i4"), ("weight", "<f8"), ("at", "<f8")])
# So many new entries are sorted in at once, or a share of those that are there.
FEW, SHARE = 4096, 8
_GONE = -2


class Entry(NamedTuple):
    """What is remembered of an event that was learned from: a digest of its forecasts, what happened, its weight."""

    key: int
    content: int
    outcome: int
    weight: float
    at: float


class Ledger:
    """Entries by key, 44 bytes each."""

    def __init__(self, entries: np.ndarray | None = None) -> None:
        self._new: dict[int, Entry] = {}
        self._hold(np.empty(0, ENTRY) if entries is None else entries)

    def copy(self) -> Ledger:
        """The same, to go on with alone."""
        return Ledger(self.array().copy())

    def __len__(self) -> int:
        return self._count

    def find(self, key: int) -> Entry | None:
        """The entry of a key, None if there is none."""
        if key in self._new:
            return self._new[key]
        place = self._place(key)
        return None if place is None else Entry(*self._old[place].item())

    def put(self, entry: Entry) -> None:
        """Remember an event, in place of what was remembered of it."""
        place = self._place(entry.key)
        if place is not None:
            self._old[place] = entry
            return
        self._count += entry.key not in self._new
        self._new[entry.key] = entry
        if len(self._new) > max(FEW, len(self._old) // SHARE):
            self._sort_in()

    def remove(self, key: int) -> None:
        """Forget an event."""
        place = self._place(key)
        if place is not None:
            self._old[place]["outcome"] = _GONE
        else:
            del self._new[key]
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
        self._old = entries[np.argsort(entries["key"], kind="stable")]
        self._keys = np.ascontiguousarray(self._old["key"])
        self._count = len(self._old)

    def _place(self, key: int) -> int | None:
        place = int(self._keys.searchsorted(np.uint64(key)))
        found = place < len(self._keys) and int(self._keys[place]) == key
        return place if found and self._old[place]["outcome"] != _GONE else None

    def _sort_in(self) -> None:
        if self._new or self._count < len(self._old):
            fresh = np.array(list(self._new.values()), dtype=ENTRY)
            self._new = {}
            self._hold(np.concatenate([self._old[self._old["outcome"] != _GONE], fresh]))
