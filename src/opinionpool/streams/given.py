"""Events as they are given to a stream, one by one or as a batch: checked, and entered by expert."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError, ShapeError
from opinionpool.forecasts import Forecasts
from opinionpool.labels import UNRESOLVED
from opinionpool.names import check_distinct
from opinionpool.streams.events import Record, event_key
from opinionpool.streams.state import StreamState
from opinionpool.tables.times import as_time, last_moments, midnights, time_text
from opinionpool.text import listed, shown

# By expert: the probability of the second of two classes, or those of all classes; None withdraws it.
ExpertForecasts: TypeAlias = Mapping[str, npt.ArrayLike | None]


class About(NamedTuple):
    """What is known of an event beside its forecasts; as in `Record`."""

    time: np.datetime64 | None = None
    settled: bool = False
    group: str | None = None
    topic: str | None = None

    @classmethod
    def of(cls, ended: object, what: str, group: str | None, topic: str | None) -> About:
        """The same from arguments; `what` is the name of the time at which the event ended."""
        if ended is None:
            if not group and not topic:
                return NOTHING
            return cls(group=group or None, topic=topic or None)
        return cls(as_time(ended, what), settled=True, group=group or None, topic=topic or None)


NOTHING = About()


def event_record(
    state: StreamState,
    seed: int,
    event: str,
    forecasts: ExpertForecasts,
    prior: npt.ArrayLike | None,
    about: About = NOTHING,
    time: object = None,
    *,
    key: int | None = None,
) -> Record:
    """An event that is not resolved; experts are entered in the stream. `key` is the event's, if that is known.

    Raises
    ------
    ArgumentError, ShapeError, ProbabilityError, ExpertError
        If forecasts or the prior are not what they should be.
    """
    if not isinstance(forecasts, (dict, Mapping)):
        raise ArgumentError(
            f"forecasts on an event are probabilities by the names of experts, as in {{'ann': 0.8}}, and not a "
            f"{type(forecasts).__name__}"
        )
    k = len(state.classes)
    array = _given(forecasts.values(), k)
    shape = array.shape[1:]
    own = None
    if prior is not None:
        own = logodds.public_probabilities(logodds.class_probabilities(prior, k))
        if own.shape != shape:
            raise ShapeError(f"an event has one prior, and the shape of this is {own.shape}")
    experts = state.together(tuple(forecasts))
    if experts is None:
        names = tuple(map(str, forecasts))
        if len(set(names)) < len(names):
            check_distinct(names)
        experts = state.join(names)
    made = None if time is None else np.full(len(experts), as_time(time, "time"))
    when, settled, group, topic = about
    key = event_key(str(event), seed) if key is None else key
    return Record(str(event), key, experts, array, own, UNRESOLVED, 1.0, 0.0, when, group, settled, topic, made)


def _given(forecasts: Iterable[npt.ArrayLike | None], k: int) -> Array:
    """The forecasts on an event by as many experts, checked, (n,) or (n, K)."""
    values: list[Any] = list(forecasts)
    shape = () if k == 2 else (k,)
    # A NaN is none of the two, wherever it stands, and stays what it is.
    if k == 2 and set(map(type, values)) == {float} and min(values) >= 0.0 and max(values) <= 1.0:
        return np.array(values, dtype=np.float64)
    given = [np.full(shape, np.nan) if p is None else logodds.check_probabilities(p) for p in values]
    if any(each.shape != shape for each in given):
        raise ShapeError(f"a forecast on {k} classes is {'one probability' if k == 2 else f'{k} probabilities'}")
    array = np.array(given).reshape((len(given), *shape))
    return logodds.normalised(array)[0] if k > 2 and len(array) else array


def check_in_time(record: Record, experts: Sequence[str]) -> None:
    """Refuse forecasts that were made after the event ended; a day without a time of day ends at midnight.

    Raises
    ------
    ArgumentError
        With the experts whose forecasts are late.
    """
    end = record.time
    if record.made is None or end is None or not record.settled:
        return
    late = record.made > (last_moments(end) if midnights(end) else end)
    if late.any():
        names = [experts[i] for i in record.experts[late].tolist()]
        raise ArgumentError(
            f"forecasts on event {shown(record.event)} by {listed(names)} were made after it ended ({time_text(end)}), "
            "and what comes later is no forecast: leave them out, and withdraw those that the stream has, "
            f"forecast({shown(record.event)}, {{{names[0]!r}: None}})"
        )


def batch_records(state: StreamState, seed: int, forecasts: Forecasts) -> Iterator[Record]:
    """The events of a batch; experts are entered in the stream."""
    t = len(forecasts.events)
    experts = state.join(forecasts.experts)[forecasts.expert_index]
    ends = np.searchsorted(forecasts.event_index, np.arange(t + 1)).tolist()
    outcomes = forecasts.outcomes.tolist()
    blank = np.ones(t, dtype=bool)
    if forecasts.prior is not None:
        blank = np.asarray(np.isnan(forecasts.prior.reshape(t, -1)).any(axis=1))
    never = np.ones(t, dtype=bool) if forecasts.times is None else np.asarray(np.isnat(forecasts.times))
    unasked = np.ones(t, dtype=bool) if forecasts.asked is None else np.asarray(np.isnat(forecasts.asked))
    for i, event in enumerate(forecasts.events):
        cells = slice(ends[i], ends[i + 1])
        yield Record(
            event,
            event_key(event, seed),
            experts[cells],
            forecasts.probabilities[cells],
            None if forecasts.prior is None or blank[i] else np.asarray(forecasts.prior[i]),
            outcomes[i],
            time=None if forecasts.times is None or never[i] else forecasts.times[i],
            group=None if forecasts.groups is None else str(forecasts.groups[i]),
            settled=forecasts.settled is not None and bool(forecasts.settled[i]),
            topic=None if forecasts.topics is None else str(forecasts.topics[i]) or None,
            made=None if forecasts.made is None else forecasts.made[cells],
            asked=None if unasked[i] or forecasts.asked is None else forecasts.asked[i],
            earlier=None if forecasts.earlier is None else forecasts.earlier.select(cells).or_none(),
        )
