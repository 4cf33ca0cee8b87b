"""Observed frequencies beside forecast probabilities, with the band that they stay in if these are right.

The curve is the isotonic regression of outcomes on forecasts, and the band holds what it would look like if every
forecast meant what it says (Dimitriadis, Gneiting & Jordan 2021, "Stable reliability diagrams", PNAS 118).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opinionpool.arguments import number
from opinionpool.arrays import Array
from opinionpool.errors import LearningError

Starts = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Groups:
    """Events in G groups that follow one another in the order of their forecasts."""

    # low, high: (G,); the smallest and the largest forecast in each group
    low: Array
    high: Array
    count: Array  # (G,); how many events, each as often as its weight says
    # forecasts, outcomes: (G,); sums over the events of a group, weighted likewise
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
    from scipy.optimize import isotonic_regression

    groups = groups.merged(isotonic_regression(groups.frequency, weights=groups.count).blocks[:-1])
    while True:
        # Levels that are equal but for rounding are one.
        level = groups.frequency
        starts = np.flatnonzero(np.append(True, level[1:] > level[:-1]))
        if len(starts) == len(level):
            return groups
        groups = groups.merged(starts)


# Points at which curve and band are evaluated, and simulations of the outcomes.
POINTS, DRAWS = 60, 200
TENTHS = 10
SEED = 0


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Observed frequencies beside forecast probabilities, at P increasing points.

    Attributes
    ----------
    probability, frequency : ndarray, shape (P,)
        Forecast probabilities, and how often events happened at each, by isotonic regression.
    low, high : ndarray, shape (P,)
        Between what `frequency` would lie, at each point, if all forecasts meant what they say.
    counts : ndarray of int, shape (10,)
        Forecasts in each tenth of [0, 1].
    events : int
        Resolved events with a forecast.
    level : float
        Of the band.
    """

    probability: Array
    frequency: Array
    low: Array
    high: Array
    counts: npt.NDArray[np.intp]
    events: int
    level: float

    @property
    def outside(self) -> float:
        """The share of the points that lie outside the band."""
        return float(np.mean((self.frequency < self.low - 1e-9) | (self.frequency > self.high + 1e-9)))


def reliability_curve(
    p: npt.ArrayLike, y: npt.ArrayLike, *, level: float = 0.9, draws: int = DRAWS, seed: int = SEED
) -> ReliabilityCurve:
    """Observed frequencies beside forecast probabilities; with K > 2, those of every class together.

    Parameters
    ----------
    p : array_like, shape (T,), or (T, K) when K > 2
        Forecasts, NaN where there is none, and in positions of a row that are no option of the event.
    y : array_like of int, shape (T,)
        Class numbers, -1 where not resolved.
    level : float
        Of the band.
    draws : int
        Simulations behind the band.
    seed : int

    Raises
    ------
    ArgumentError
        If the level is out of range.
    LearningError
        Without a forecast of a resolved event.

    Examples
    --------
    >>> curve = reliability_curve([0.2, 0.2, 0.8, 0.8, 0.8], [0, 1, 0, 1, 1])
    >>> curve.probability.tolist(), curve.frequency.round(3).tolist(), curve.events
    ([0.2, 0.8], [0.5, 0.667], 5)
    """
    level = number(level, "level", 0, 1, between=True)
    probability, outcomes = np.asarray(p, dtype=np.float64), np.asarray(y)
    known = (outcomes >= 0) & ~np.isnan(probability.reshape(len(probability), -1)).all(axis=1)
    if not known.any():
        raise LearningError("a reliability curve needs a forecast of a resolved event, and there is none")
    probability, outcomes = probability[known], outcomes[known]
    contrast = ~np.isnan(probability).ravel()
    flat = probability.ravel()[contrast]
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    starts = changes(ordered)
    count = np.diff(np.append(starts, len(ordered))).astype(np.float64)
    low = ordered[starts]
    ties = Groups(low, low, count, low * count, np.zeros(len(low)))
    grid = _points(low)

    def curve(happened: Array) -> Array:
        summed = np.add.reduceat(happened.ravel()[contrast][order], starts)
        return _evaluated(isotonic(replace(ties, outcomes=summed)), grid)

    rng = np.random.default_rng(seed)
    simulated = np.stack([curve(_drawn(probability, rng)) for _ in range(draws)])
    band = np.quantile(simulated, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    tenth = np.minimum((flat * TENTHS + 1e-9).astype(np.intp), TENTHS - 1)
    return ReliabilityCurve(
        probability=grid,
        frequency=curve(_happened(probability, outcomes)),
        low=band[0],
        high=band[1],
        counts=np.bincount(tenth, minlength=TENTHS),
        events=len(outcomes),
        level=level,
    )


def _points(probability: Array) -> Array:
    """All distinct statements, or if they are many, some of them from the least to the greatest."""
    if len(probability) <= POINTS:
        return probability
    return probability[np.unique(np.linspace(0, len(probability) - 1, POINTS).round().astype(np.intp))]


def _evaluated(groups: Groups, grid: Array) -> Array:
    """The fit at some points; straight lines between its level sets."""
    ends = np.stack([groups.low, groups.high], axis=1).ravel()
    return np.interp(grid, ends, np.repeat(groups.frequency, 2))


def _happened(p: Array, y: npt.NDArray[np.intp]) -> Array:
    """1 where what a number is about happened, of the shape of `p`."""
    return np.asarray((y == 1) if p.ndim == 1 else (y[:, None] == np.arange(p.shape[1])), dtype=np.float64)


def _drawn(p: Array, rng: np.random.Generator) -> Array:
    """Outcomes drawn with the forecast probabilities."""
    uniform = rng.random(len(p))
    if p.ndim == 1:
        return np.asarray(uniform < p, dtype=np.float64)
    behind = np.nan_to_num(p).cumsum(axis=1)
    return _happened(p, (uniform[:, None] * behind[:, -1:] >= behind[:, :-1]).sum(axis=1))
