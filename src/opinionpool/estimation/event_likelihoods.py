"""Likelihoods of several candidates for each of several sets of events, by what each makes of the same coefficients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.estimation.posterior import Values

Events = TypeVar("Events")


@dataclass(frozen=True, eq=False)
class EventLikelihoods(ABC, Generic[Events]):
    """S likelihoods by P coefficients each, which make Q of the events' as centre + root'coefficients.

    Attributes
    ----------
    events : sequence
        G sets of events.
    group : ndarray of int, shape (S,)
        Which of them each is about, in ascending order.
    centre : ndarray, shape (S, Q)
        Where events have fewer coefficients, the last are 0.
    root : ndarray, shape (S, Q, P)
    """

    events: Sequence[Events]
    group: Index
    centre: Array
    root: Array

    def values(self, which: Index, at: Array) -> Values:
        """Those of s of them, in ascending order."""
        centre, root = self.centre, self.root
        if len(which) < len(root):
            centre, root = centre[which], root[which]
        loss, slope, product = self._plain(self._parts(which), centre + (root @ at[..., None])[..., 0])
        return Values(loss, (slope[:, None] @ root)[:, 0], np.swapaxes(root, 1, 2) @ product @ root)

    @abstractmethod
    def _plain(self, parts: Sequence[tuple[Events, slice]], along: Array) -> Values:
        """The same by the coefficients of the events, (s, Q), which are about each set by parts."""

    def _parts(self, which: Index) -> list[tuple[Events, slice]]:
        """The sets of events that some are about, and which of these are about each."""
        if len(self.events) == 1:
            return [(self.events[0], slice(None))]
        ends = np.searchsorted(self.group[which], np.arange(len(self.events) + 1)).tolist()
        return [
            (events, slice(first, end))
            for events, first, end in zip(self.events, ends[:-1], ends[1:], strict=True)
            if end > first
        ]
