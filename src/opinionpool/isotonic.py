"""Isotonic regression of outcomes on forecasts, by pooling adjacent violators.

Events with tied forecasts are pooled first, so that the answer never depends on the order of the events.
Everything after the sort is linear in the number of events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.logodds import Array

Starts = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Groups:
    """Events in G groups that follow one another in the order of their forecasts.

    Attributes
    ----------
    low, high : ndarray, shape (G,)
        The smallest and the largest forecast in each group.
    count : ndarray, shape (G,)
        How many events, each as often as its weight says.
    forecasts, outcomes : ndarray, shape (G,)
        Sums over the events of a group, weighted likewise.
    """

    low: Array
    high: Array
    count: Array
    forecasts: Array
    outcomes: Array

    @property
    def forecast(self) -> Array:
        """Mean forecast of each group; exactly the forecast where all are equal."""
        return np.clip(self.forecasts / self.count, self.low, self.high)

    @property
    def frequency(self) -> Array:
        """Mean outcome of each group."""
        return np.asarray(self.outcomes / self.count)

    def merged(self, starts: Starts) -> Groups:
        """Coarser groups, each from one of the groups `starts` (increasing, the first 0) to the next."""
        ends = np.append(starts[1:], len(self.low)) - 1
        return Groups(
            low=self.low[starts],
            high=self.high[ends],
            count=np.add.reduceat(self.count, starts),
            forecasts=np.add.reduceat(self.forecasts, starts),
            outcomes=np.add.reduceat(self.outcomes, starts),
        )


def tied(p: Array, y: Array, weight: Array) -> Groups:
    """One group for each distinct forecast.

    Parameters
    ----------
    p, y, weight : ndarray, shape (T,)
        Forecasts, outcomes and positive weights, T >= 1, nothing missing.
    """
    order = np.argsort(p)
    p = p[order]
    each = Groups(low=p, high=p, count=weight[order], forecasts=p * weight[order], outcomes=(y * weight)[order])
    return each.merged(changes(p))


def changes(values: npt.NDArray[np.generic]) -> Starts:
    """Where runs of equal values begin, (G,)."""
    return np.flatnonzero(np.append(True, values[1:] != values[:-1]))


def isotonic(groups: Groups) -> Groups:
    """The groups merged until their frequencies increase strictly: the isotonic fit and its level sets.

    The frequencies of the answer minimise the weighted squared error, and every other proper score, among
    all functions that do not decrease with the forecast (Dimitriadis, Gneiting & Jordan 2021).

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.1, 0.2, 0.4, 0.7, 0.9])
    >>> fit = isotonic(tied(p, y=np.array([0.0, 1.0, 0.0, 1.0, 1.0]), weight=np.ones(5)))
    >>> fit.frequency.tolist(), fit.count.tolist()
    ([0.0, 0.5, 1.0], [1.0, 2.0, 2.0])
    """
    while True:
        # Neighbours out of order share a level in the answer; so do all of an unbroken run of them.
        level = groups.frequency
        starts = np.flatnonzero(np.append(True, level[1:] > level[:-1]))
        before, after = len(level), len(starts)
        if after == before:
            return groups
        groups = groups.merged(starts)
        if after > 0.9 * before:  # few violators: one by one, or adverse data would take a pass for each
            return groups.merged(_one_by_one(groups))


def _one_by_one(groups: Groups) -> Starts:
    """Where the level sets begin, by the sequential algorithm: at most one merge per group."""
    starts: list[int] = []
    counts: list[float] = []
    sums: list[float] = []
    for start, (n, s) in enumerate(zip(groups.count.tolist(), groups.outcomes.tolist(), strict=True)):
        count, total, first = n, s, start
        while sums and sums[-1] / counts[-1] >= total / count:
            count, total, first = count + counts.pop(), total + sums.pop(), starts.pop()
        starts.append(first)
        counts.append(count)
        sums.append(total)
    return np.asarray(starts, dtype=np.intp)
