"""Where the experts of a stream stand, by name, and what stands for their names in digests of events."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# Sets of experts who answered together that are remembered.
_SETS = 256


class Columns:
    """Positions of experts, each with 64 bits that stand for the name.

    Parameters
    ----------
    names : list of str
        All experts.
    digests : ndarray, shape (N,)

    Examples
    --------
    >>> columns = Columns().renewed(["ann", "bob"])
    >>> columns.of(["bob", "ann"])
    array([1, 0])
    """

    def __init__(self, names: list[str] | None = None, digests: npt.NDArray[np.void] | None = None) -> None:
        self.names = [] if names is None else names
        self._digests = np.empty(0, dtype="V8") if digests is None else digests
        self._place = {name: i for i, name in enumerate(self.names)}
        # Different experts who answered together, and their positions.
        self.sets: dict[tuple[object, ...], npt.NDArray[np.intp]] = {}
        self._sorted: dict[bytes, tuple[npt.NDArray[np.intp], bytes]] = {}

    def renewed(self, names: list[str]) -> Columns:
        """Those of more experts, the new ones behind; of others if the first ones are not the same."""
        known = self._digests if names[: len(self.names)] == self.names else self._digests[:0]
        fresh = [hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8] for name in names[len(known) :]]
        return Columns(names, np.concatenate([known, np.array(fresh, dtype="V8")]))

    def of(self, names: Sequence[str]) -> npt.NDArray[np.intp]:
        """Positions of experts, not to be changed.

        Raises
        ------
        KeyError
            If one is not there.
        """
        together = tuple(names)
        found = self.sets.get(together)
        if found is None:
            found = np.array([self._place[name] for name in together], dtype=np.intp)
            if len(self.sets) >= _SETS:
                self.sets.clear()
            self.sets[together] = found
        return found

    def sorted(self, experts: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.intp], bytes]:
        """The order of some experts by what stands for their names, and that, in this order."""
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
