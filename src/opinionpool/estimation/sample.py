"""A bounded sample of weighted events by outcome, which does not depend on the events' order or batches.

Each has a priority, the logarithm of an exponential time whose rate is its weight, drawn by a hash of its contents.
Those of least priority are kept, as many as there is room for, and nothing else matters, so that samples merge exactly
(bottom-k sketches, Cohen and Kaplan 2007). Fits to arrays, files and parts of them learn from
such a sample of different events; streams and partitions of Spark keep one of events with their ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from opinionpool.arrays import Array, Index, Mask

# Parts beyond which a sample is thinned.
PARTS = 64


class Items(Protocol):
    """Columns of M events, or of groups of events that are drawn together."""

    @property
    def stratum(self) -> Index:
        """Outcome of each item, (M,)."""

    @property
    def taking(self) -> Index:
        """Room of each of L kinds that each item takes, (M, L); at least 1 of the first kind."""

    def take(self, rows: Index | Mask, /) -> Self:
        """The items `rows`."""

    @classmethod
    def joined(cls, parts: Sequence[Self], /) -> Self:
        """Concatenation of `parts`."""


Drawn = TypeVar("Drawn", bound=Items)


@dataclass(frozen=True, eq=False)
class Sample(Generic[Drawn]):
    """The items with the smallest priorities in each of G strata, as many as there is room for."""

    room: Index  # (G, L)
    beyond: Array  # (G,); the least priority of each stratum that found no room
    parts: tuple[tuple[Array, Drawn], ...] = ()  # priorities and items, of which some may find no room
    tidy: bool = True  # whether there is one part at most, by priority, and all of it found room

    def __len__(self) -> int:
        return sum(len(priority) for priority, _ in self.parts)

    @property
    def complete(self) -> bool:
        """True if there was room for every event."""
        return bool(np.isinf(self.beyond).all())

    def add(self, priority: Array, stratum: Index, items: Callable[[Index], Drawn]) -> Self:
        """The sample with further candidates; `items(rows)` makes the items of those candidates that may find room."""
        beyond = self.beyond.copy()
        for group, most in enumerate(self.room[:, 0].tolist()):
            mine = priority[stratum == group]
            if len(mine) > most:
                beyond[group] = min(beyond[group], np.partition(mine, most)[most])
        rows = np.flatnonzero(priority < beyond[stratum])
        found = replace(self, beyond=beyond, tidy=False)
        return found.with_part(priority[rows], items(rows)) if len(rows) else found

    def with_part(self, priority: Array, items: Drawn) -> Self:
        """The sample with the further `items`, whose priorities are `priority`."""
        found = replace(self, parts=(*self.parts, (priority, items)), tidy=False)
        few = len(found) <= 2 * int(self.room[:, 0].sum()) and len(found.parts) <= PARTS
        return found if few else found.thinned()

    def only(self, kept: Callable[[Drawn], Mask]) -> Self:
        """The sample with the items for which the mask `kept(items)` is true."""
        left = [(priority, items, kept(items)) for priority, items in self.parts]
        return replace(
            self, parts=tuple((p, items) if some.all() else (p[some], items.take(some)) for p, items, some in left)
        )

    def merged(self, other: Self, moved: Callable[[Drawn], Drawn]) -> Self:
        """The sample joined with the sample `other`, whose items `moved` converts."""
        found = replace(self, beyond=np.minimum(self.beyond, other.beyond), tidy=not self.parts)
        for priority, items in other.parts:
            found = found.with_part(priority, moved(items))
        return found.thinned()

    def thinned(self) -> Self:
        """The sample in one part, ordered by priority, without the items for which there is no room."""
        if self.tidy or not self.parts:
            return self
        priority, items = np.concatenate([each for each, _ in self.parts]), [each for _, each in self.parts]
        whole, beyond = type(items[0]).joined(items), self.beyond.copy()
        order, kept = np.argsort(priority, kind="stable"), np.zeros(len(priority), dtype=bool)
        stratum, taking = whole.stratum, whole.taking
        for group, room in enumerate(self.room):
            mine = order[(stratum[order] == group) & (priority[order] < beyond[group])]
            fit = max(1, int((np.cumsum(taking[mine], axis=0) <= room).all(axis=1).sum()))
            beyond[group] = min(beyond[group], priority[mine[fit:]].min(initial=np.inf))
            # Of copies that came in several parts all are kept, or none.
            kept[mine[priority[mine] < beyond[group]]] = True
        rows = order[kept[order]]
        return replace(self, beyond=beyond, parts=((priority[rows], whole.take(rows)),), tidy=True)

    def standing_for(self, own: Array, log_rate: Array, stratum: Index, totals: Array) -> Array:
        """Weight that each of S items represents, (S,), with a sum of `totals` (G,) in each stratum.

        `own` is the weight of each itself, and `log_rate` the logarithm of its rate. It counts by the inverse of the
        probability with which it is kept.
        """
        found = own.copy()
        for group in np.flatnonzero(~np.isinf(self.beyond)).tolist():
            mine = stratum == group
            with np.errstate(over="ignore"):
                share = own[mine] / -np.expm1(-np.exp(log_rate[mine] + self.beyond[group]))
            found[mine] = share * (totals[group] / share.sum()) if share.any() else share
        return found
