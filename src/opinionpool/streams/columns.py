"""Where the experts of a stream stand, by name, and what stands for their names in digests of events."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Index

# Sets of experts who answered together that are remembered.
_SETS = 256


class Columns:
    """Positions of experts, with a hash of 64 bits for each name; immutable except for its caches.

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
        """The columns with further experts behind."""
        fresh = [name for name in dict.fromkeys(names) if name not in self._place]
        hashes = [hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8] for name in fresh]
        return Columns((*self.names, *fresh), np.append(self._digests, np.array(hashes, dtype="V8")))

    def of(self, names: Sequence[str]) -> Index:
        """Positions of experts, not to be changed. Raises KeyError if one is not there."""
        together = tuple(names)
        found = self.sets.get(together)
        if found is None:
            found = np.array([self._place[name] for name in together], dtype=np.intp)
            if len(self.sets) >= _SETS:
                self.sets.clear()
            self.sets[together] = found
        return found

    def sorted(self, experts: Index) -> tuple[Index, bytes]:
        """Order of some experts by the hashes of their names, and these hashes in this order."""
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
