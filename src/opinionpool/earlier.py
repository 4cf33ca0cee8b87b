"""Revisions: what experts forecast before the forecasts that count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask

_NEVER = np.datetime64("NaT", "us")


@dataclass(frozen=True, eq=False)
class Earlier:
    """Superseded forecasts: for each of M forecasts, the expert's last one before it on the event.

    Attributes
    ----------
    probabilities : ndarray, shape (M,), or (M, K) when K > 2
        NaN where there is none.
    made : ndarray of datetime64, shape (M,)
        When it was made; NaT where there is none.

    Examples
    --------
    >>> earlier = Earlier(np.array([0.6]), np.array(["2025-03-01"], dtype="datetime64[us]"))
    >>> earlier.placed(np.array([1]), 3).probabilities
    array([nan, 0.6, nan])
    """

    probabilities: Array
    made: npt.NDArray[np.datetime64]

    @classmethod
    def none(cls, like: Array) -> Earlier:
        """Return a record without superseded forecasts."""
        return cls(np.full(like.shape, np.nan), np.full(len(like), _NEVER))

    @classmethod
    def joined(cls, parts: Sequence[tuple[Earlier | None, Array]]) -> Earlier | None:
        """Return the concatenation of several records; None if no part has superseded forecasts."""
        if all(earlier is None for earlier, _ in parts):
            return None
        each = [cls.none(forecasts) if earlier is None else earlier for earlier, forecasts in parts]
        together = np.concatenate([one.probabilities for one in each]), np.concatenate([one.made for one in each])
        return cls(*together).or_none()

    @property
    def known(self) -> Mask:
        """Mask of the forecasts that have a superseded forecast, (M,)."""
        return np.asarray(~np.isnat(self.made))

    def select(self, cells: Index | Mask | slice) -> Earlier:
        """Return the record of some of the forecasts."""
        return Earlier(self.probabilities[cells], self.made[cells])

    def or_none(self) -> Earlier | None:
        """Return the record, or None if it has no superseded forecast."""
        return self if self.known.any() else None

    def placed(self, cells: Index, count: int) -> Earlier:
        """Return the record among `count` forecasts, of which the present ones are at `cells`."""
        wide = Earlier.none(np.empty((count, *self.probabilities.shape[1:])))
        wide.probabilities[cells], wide.made[cells] = self.probabilities, self.made
        return wide

    def before(self, made: npt.NDArray[np.datetime64], *others: Earlier) -> Earlier | None:
        """Record of the newest superseded forecast in this or other records made before `made`, (M,); None if empty."""
        times = np.stack([each.made for each in (self, *others)])
        stamp = np.where(times < made, times, _NEVER).astype(np.int64)
        # The smallest integer is NaT.
        newest, rows = stamp.argmax(axis=0), np.arange(len(made))
        time = stamp[newest, rows].astype("datetime64[us]")
        probabilities = np.stack([each.probabilities for each in (self, *others)])[newest, rows]
        probabilities[np.isnat(time)] = np.nan
        return Earlier(probabilities, time).or_none()
