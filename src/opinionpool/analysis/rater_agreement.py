"""Agreement of judges who use one scale: Krippendorff's alpha and kappa, 1 if perfect and 0 as by chance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.forecasts import Forecasts


class RaterAgreement(NamedTuple):
    """Agreement of judges on events that at least two of them judged; NaN if all levels are equal."""

    alpha: float  # Krippendorff's, for ordered levels
    kappa: float  # Cohen's for two judges who have judged all of these, else Fleiss', for levels without an order
    events: int


def rater_agreement(forecasts: Forecasts) -> RaterAgreement | None:
    """Agreement of the judges who give levels of one scale; None unless two of them judged the same event.

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
    """Krippendorff's (2011) ordinal alpha, 1 − D_o/D_e, from counts by event and level."""
    total = count.sum(axis=0)
    rank = np.cumsum(total) - total / 2.0
    judges, number = count.sum(axis=1), count.sum()
    first, second = count @ rank, count @ rank**2
    observed = float(((judges * second - first**2) / (judges - 1.0)).sum() / number)
    expected = float((number * (total @ rank**2) - (total @ rank) ** 2) / (number * (number - 1.0)))
    return 1.0 - observed / expected if expected > 0 else float("nan")


def _fleiss(count: Array) -> float:
    """Fleiss' (1971) kappa, (P − P_e)/(1 − P_e), from counts by event and level, for any numbers of judges."""
    judges = count.sum(axis=1)
    agree = float((((count**2).sum(axis=1) - judges) / (judges * (judges - 1.0))).mean())
    random = float(np.square(count.sum(axis=0) / count.sum()).sum())
    return (agree - random) / (1.0 - random) if random < 1 else float("nan")


def _cohen(judge: Index, level: Index, size: int) -> float:
    """Cohen's kappa (1960) of two judges, each with its own frequencies of levels; cells are ordered by event."""
    one, two = level[judge == 0], level[judge == 1]
    random = float(np.bincount(one, minlength=size) @ np.bincount(two, minlength=size)) / len(one) ** 2
    return (float((one == two).mean()) - random) / (1.0 - random) if random < 1 else float("nan")
