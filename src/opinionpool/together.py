"""How many independent events are worth as much as those that share a group or a date.

Fifty places in one week, or all matches of a day, do not tell fifty times as much as one: what surprised the experts
about one of them surprised them about the others. Learning counts such events for less, by the variance that sharing
adds to what they say about the pool (the design effect of survey sampling: Kish, Survey Sampling, 1965, section 5.4),
and, by date, by how much of it lasts until the next date.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.believed import LIMIT_CHANCES, LIMITS, believed_slope
from opinionpool.clusters import Clusters, by_date, by_group
from opinionpool.errors import Note
from opinionpool.extremes import Extremes
from opinionpool.forecasts import Forecasts
from opinionpool.logodds import Array
from opinionpool.regression import harmonic_mean
from opinionpool.wording import counted

# Events that share a group or date are believed to be correlated so far, which is worth so many groups or dates.
CORRELATION, CORRELATION_WORTH = 0.2, 3.0
# And what surprised at one date to last until the next one so far, which is worth so many dates.
LASTING, LASTING_WORTH, MOST_LASTING = 0.3, 5.0, 0.9
# From this loss on, it is said.
WORTH_SAYING = 0.95


class _Shared(NamedTuple):
    """What events that belong together have in common: their correlation, and what of it lasts from date to date."""

    correlation: float
    lasting: float

    def effect(self, size: npt.ArrayLike) -> Array:
        """How many events are worth one independent event, where `size` of them belong together."""
        serial = (1.0 + self.lasting) / (1.0 - self.lasting)
        return np.asarray((1.0 + (np.asarray(size) - 1.0) * self.correlation) * serial)


def independent_weight(
    forecasts: Forecasts, reference: Array, weight: Array, floor: float
) -> tuple[Array, tuple[Note, ...]]:
    """Frequencies of the events, (T,), those of events that belong together reduced to what they tell; and a note.

    Parameters
    ----------
    forecasts : Forecasts
        Its groups are looked at; without any, its dates.
    reference : ndarray, shape (T, K)
        Prior of each event.
    weight : ndarray, shape (T,)
        Frequencies.
    floor : float
        Least probability taken from an expert.
    """
    found = by_group(forecasts) or by_date(forecasts)
    if found is None:
        return weight, ()
    used = forecasts.resolved & (weight > 0) & (forecasts.crowd > 0)
    labels, member = np.unique(found.member[used], return_inverse=True)
    if len(labels) == 0:
        return weight, ()
    surprise = _surprises(forecasts, reference, used, floor)
    size = np.bincount(member, weights=weight[used])
    shared = _shared(surprise, member, weight[used], in_order=found.unit == "date")
    reduced = weight.copy()
    reduced[used] /= shared.effect(np.maximum(size, 1.0))[member]
    return reduced, _notes(found, shared, len(labels), float(weight[used].sum()), float(reduced[used].sum()))


def _surprises(forecasts: Forecasts, reference: Array, used: npt.NDArray[np.bool_], floor: float) -> tuple[Array, ...]:
    """What each event says about the intercept and the slope of the believed pool: gradients, (T, K) and (T, 1).

    Where events have options of their own, there is no intercept.
    """
    cells = used[forecasts.event_index]
    event = forecasts.event_index[cells]
    expected = logodds.prior_log_ratios(reference)
    contrasts = logodds.log_ratios(forecasts.probabilities[cells], reference[event], floor) - expected[event]
    absent = logodds.no_options(reference[event])
    believed = Extremes(harmonic_mean(LIMITS, LIMIT_CHANCES)).believed(contrasts, absent)
    number = np.bincount(event, minlength=len(used))[used]
    total = np.stack([np.bincount(event, weights=column, minlength=len(used))[used] for column in believed.T], axis=-1)
    level = logodds.centred(total / number[:, None])
    slope = np.array([believed_slope(n) for n in range(1, number.max() + 1)])[number - 1]
    answer = logodds.softmax(expected[used] + slope[:, None] * logodds.uncentred(level))
    happened = np.eye(len(forecasts.classes))[forecasts.outcomes[used]] - answer
    of_slope = (happened * level).sum(axis=1, keepdims=True)
    return (happened, of_slope) if forecasts.options is None else (of_slope,)


def _shared(surprises: tuple[Array, ...], member: npt.NDArray[np.intp], weight: Array, *, in_order: bool) -> _Shared:
    """What costs most, of what is shared about one or the other coefficient."""
    size = np.bincount(member, weights=weight)
    typical = float((size @ size) / size.sum())
    return max(
        (_of_one(each, member, weight, in_order) for each in surprises), key=lambda one: float(one.effect(typical))
    )


def _of_one(values: Array, member: npt.NDArray[np.intp], weight: Array, in_order: bool) -> _Shared:
    """Correlation within clusters by the analysis of variance, and between the means of one cluster and the next."""
    size = np.bincount(member, weights=weight)
    groups, total = len(size), float(size.sum())
    means = np.stack([np.bincount(member, weights=weight * column) for column in values.T], axis=-1) / size[:, None]
    apart = means - (size / total) @ means
    between = float(size @ np.square(apart).sum(axis=1)) / max(groups - 1, 1)
    inside = float(weight @ np.square(values - means[member]).sum(axis=1))
    correlation = 0.0
    if 1 < groups < total and inside + between > 0:
        inside /= total - groups
        typical = (total - float(size @ size) / total) / (groups - 1)
        correlation = min(max((between - inside) / (between + (typical - 1.0) * inside), 0.0), 1.0)
    lasting = _lasting(apart) if in_order else 0.0
    held = (CORRELATION_WORTH * CORRELATION + (groups - 1) * correlation) / (CORRELATION_WORTH + groups - 1)
    return _Shared(held, lasting)


def _lasting(apart: Array) -> float:
    """Correlation of deviations from the mean, (G, p), with the next ones, held to what is believed of it."""
    dates, square = len(apart), float(np.square(apart).sum())
    found = float((apart[1:] * apart[:-1]).sum()) / square if square > 0 else 0.0
    # In short series it comes out too small: by about (1 + 3 r)/G because the mean is estimated (Kendall, Biometrika
    # 41, 1954), and by r/G because there is one product less than there are squares.
    found = min(max((found + 1.0 / dates) / (1.0 - 4.0 / dates), 0.0), MOST_LASTING) if dates > 4 else LASTING
    return (dates * found + LASTING_WORTH * LASTING) / (dates + LASTING_WORTH)


def _notes(found: Clusters, shared: _Shared, clusters: int, events: float, worth: float) -> tuple[Note, ...]:
    if worth >= WORTH_SAYING * events:
        return ()
    told = []
    if clusters < round(events):
        told.append(f"surprises in common (correlation {shared.correlation:.2f})")
    if shared.lasting > 0:
        told.append(f"surprises that last from one date to the next (correlation {shared.lasting:.2f})")
    text = (
        f"{events:,.6g} resolved events fall on {counted(clusters, found.unit)} and have {' and '.join(told)}, so in "
        f"learning they count as {worth:,.3g} independent events"
    )
    return (Note("shared-events", text),)
