"""Scores of each expert's own forecasts on resolved events, compared with the panel's average on the same events.

Agreement is Krippendorff's alpha and kappa, 1 if perfect and 0 as by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.clusters import by_group, by_settlement
from opinionpool.forecasts import Forecasts
from opinionpool.logodds import FLOOR
from opinionpool.priors import laplace_prior
from opinionpool.scoring.intervals import LEVEL, Difference, difference_intervals
from opinionpool.scoring.scores import brier, event_scores


@dataclass(frozen=True)
class Standing:
    """Scores of one expert's own forecasts on resolved events, and their gain over the panel's average."""

    expert: str
    events: int
    score: float  # mean normalised log score (26): 0 for equal probabilities, 1 for perfect forecasts
    brier: float  # mean Brier score; K > 2: summed over the classes
    skill: float  # 1 - log loss / log loss of the base rate on the same events: 0 is the base rate, 1 perfect
    gain: Difference  # log score less that of the panel's average on the same events; intervals are simultaneous


def leaderboard(forecasts: Forecasts) -> list[Standing]:
    """Return the scores of experts with forecasts on resolved events, largest gain over the panel's average first.

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
    """Return normalised log scores of each expert's own forecasts, (T, N), NaN where there is none."""
    each = (event_scores(forecasts.X[:, i], forecasts, FLOOR) for i in range(len(forecasts.experts)))
    return np.stack(list(each), axis=1)


def _base_rate(some: Forecasts) -> Array:
    """Return the share of each class among the resolved events, repeated for each event, (T,) or (T, K)."""
    shares = laplace_prior(np.bincount(some.outcomes, minlength=len(some.classes)).astype(np.float64))
    rows = np.tile(shares, (len(some.events), 1))
    return rows[:, 1] if len(some.classes) == 2 else rows


class RaterAgreement(NamedTuple):
    """Agreement of judges on events that at least two of them judged; NaN if all judgements are equal."""

    alpha: float  # Krippendorff's alpha, for ordered levels
    kappa: float  # for unordered levels: Cohen's if two judges judged all these events, else Fleiss'
    events: int


def rater_agreement(forecasts: Forecasts) -> RaterAgreement | None:
    """Return the agreement of experts who give levels of one scale; None unless two of them judged the same event.

    >>> f = Forecasts.from_array([[1, 1], [2, 2], [3, 3], [3, 2]], scale="1-3")
    >>> found = rater_agreement(f)
    >>> round(found.alpha, 3), round(found.kappa, 3), found.events
    (0.79, 0.636, 4)
    """
    scales = list(dict.fromkeys(forecasts.scales.values()))
    judges = np.array([name in forecasts.scales for name in forecasts.experts])
    if len(scales) != 1 or judges.sum() < 2:
        return None
    some = judges[forecasts.expert_index]
    event, judge = forecasts.event_index[some], forecasts.expert_index[some]
    size = len(scales[0].levels)
    p = forecasts.probabilities[some]
    level = np.clip((p * size).astype(np.intp), 0, size - 1) if p.ndim == 1 else p.argmax(axis=1)
    several = np.bincount(event, minlength=len(forecasts.events))[event] > 1
    if not several.any():
        return None
    event, judge, level = event[several], judge[several], level[several]
    _, event = np.unique(event, return_inverse=True)
    count = np.zeros((int(event.max()) + 1, size))
    np.add.at(count, (event, level), 1.0)
    names, judge = np.unique(judge, return_inverse=True)
    pair = len(names) == 2 and len(judge) == 2 * len(count)
    kappa = _cohen(judge, level, size) if pair else _fleiss(count)
    return RaterAgreement(_alpha(count), kappa, len(count))


def _alpha(count: Array) -> float:
    """Krippendorff's (2011) ordinal alpha, agreement: 0 chance, 1 perfect; `count` (T, levels) of judges by level."""
    total = count.sum(axis=0)
    rank = np.cumsum(total) - total / 2.0
    judges, number = count.sum(axis=1), count.sum()
    first, second = count @ rank, count @ rank**2
    observed = float(((judges * second - first**2) / (judges - 1.0)).sum() / number)
    expected = float((number * (total @ rank**2) - (total @ rank) ** 2) / (number * (number - 1.0)))
    return 1.0 - observed / expected if expected > 0 else float("nan")


def _fleiss(count: Array) -> float:
    """Fleiss' (1971) kappa, agreement: 0 chance, 1 perfect, from numbers of judges by event and level (T, levels)."""
    judges = count.sum(axis=1)
    agree = float((((count**2).sum(axis=1) - judges) / (judges * (judges - 1.0))).mean())
    random = float(np.square(count.sum(axis=0) / count.sum()).sum())
    return (agree - random) / (1.0 - random) if random < 1 else float("nan")


def _cohen(judge: Index, level: Index, size: int) -> float:
    """Cohen's (1960) kappa, two judges' agreement: 0 chance, 1 perfect; each rating has a `judge` and a `level`."""
    one, two = level[judge == 0], level[judge == 1]
    random = float(np.bincount(one, minlength=size) @ np.bincount(two, minlength=size)) / len(one) ** 2
    return (float((one == two).mean()) - random) / (1.0 - random) if random < 1 else float("nan")
