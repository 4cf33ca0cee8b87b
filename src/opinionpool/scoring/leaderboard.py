"""Scores of experts' own forecasts on the resolved events that each answered, compared with the panel's average."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opinionpool.arrays import Array
from opinionpool.clusters import by_group, by_settlement
from opinionpool.forecasts import Forecasts
from opinionpool.logodds import FLOOR
from opinionpool.priors import laplace_prior
from opinionpool.scoring.intervals import LEVEL, Difference, difference_intervals
from opinionpool.scoring.scores import brier, event_scores


@dataclass(frozen=True)
class Standing:
    """One expert's own forecasts, scored on the resolved events that it answered."""

    expert: str
    events: int
    score: float  # mean normalised log score (26): 0 for equal probabilities, 1 for perfect forecasts
    brier: float  # mean Brier score; K > 2: summed over the classes
    skill: float  # the part of the base rate's log loss on the same events that is saved: 0 is the base rate, 1 perfect
    gain: Difference  # over the panel's average forecast on the same events; intervals hold for all experts at once


def leaderboard(forecasts: Forecasts) -> list[Standing]:
    """The experts with a forecast on a resolved event, the largest gain over the panel's average first.

    >>> f = Forecasts.from_array([[0.9, 0.6], [0.2, 0.4], [0.8, float("nan")]], [1, 0, None], experts=["ann", "bob"])
    >>> [(each.expert, each.events, round(each.brier, 3), round(each.gain.mean, 3)) for each in leaderboard(f)]
    [('ann', 2, 0.025, 0.228), ('bob', 2, 0.16, -0.272)]
    """
    some = forecasts.select_events(forecasts.resolved & (forecasts.crowd > 0))
    t, n = some.shape
    scores = own_scores(some)
    briers = np.stack([brier(some.X[:, i], some.outcomes) for i in range(n)], axis=1)
    starts = some.starts[:-1]
    mean = np.add.reduceat(some.probabilities, starts) / np.diff(some.starts).reshape(-1, *[1] * (some.X.ndim - 2))
    base = np.zeros(t) if some.even is not None else event_scores(_base_rate(some), some, FLOOR)
    clusters = by_group(some) or by_settlement(some)
    member = np.arange(t) if clusters is None else clusters.member
    gains = difference_intervals(scores - event_scores(mean, some, FLOOR)[:, None], member, level=LEVEL)
    lost, worst = np.nansum(1.0 - scores, axis=0), np.where(np.isnan(scores), 0.0, (1.0 - base)[:, None]).sum(axis=0)
    events = (~np.isnan(scores)).sum(axis=0)
    found = [
        Standing(
            some.experts[i],
            int(events[i]),
            float(np.nanmean(scores[:, i])),
            float(np.nanmean(briers[:, i])),
            float(1.0 - lost[i] / worst[i]) if worst[i] > 0 else np.nan,
            gains[i],
        )
        for i in np.flatnonzero(events).tolist()
    ]
    return sorted(found, key=lambda each: -each.gain.mean)


def own_scores(forecasts: Forecasts) -> Array:
    """Normalised log scores of each expert's own forecasts, (T, N), NaN where there is none."""
    each = (event_scores(forecasts.X[:, i], forecasts, FLOOR) for i in range(len(forecasts.experts)))
    return np.stack(list(each), axis=1)


def _base_rate(some: Forecasts) -> Array:
    """Share of each class among the resolved events, repeated for each event."""
    shares = laplace_prior(np.bincount(some.outcomes, minlength=len(some.classes)).astype(np.float64))
    rows = np.tile(shares, (len(some.events), 1))
    return rows[:, 1] if len(some.classes) == 2 else rows
