"""Events as they are given to a stream, one by one or as a batch: checked, and entered by expert."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Index, as_array, as_numbers, frequencies, times_of_cells
from opinionpool.errors import ArgumentError, ShapeError
from opinionpool.labels import UNRESOLVED, event_labels
from opinionpool.names import check_distinct
from opinionpool.streams.block import Event, EventBlock, Times
from opinionpool.streams.state import StreamState
from opinionpool.tables.times import as_time, last_moments, midnights, time_text
from opinionpool.text import listed, shown

# By expert: the probability of the second of two classes, or those of all classes; None withdraws it.
ExpertForecasts: TypeAlias = Mapping[str, npt.ArrayLike | None]


class About(NamedTuple):
    """Facts about an event other than its forecasts: time, whether it ended then, group and topic, as in `Event`."""

    time: np.datetime64 | None = None
    settled: bool = False
    group: str | None = None
    topic: str | None = None

    @classmethod
    def of(cls, ended: object, what: str, group: str | None, topic: str | None) -> About:
        """Facts from arguments; `what` is the name of the argument `ended`, the time at which the event ended."""
        if ended is None:
            if not group and not topic:
                return NOTHING
            return cls(group=group or None, topic=topic or None)
        return cls(as_time(ended, what), settled=True, group=group or None, topic=topic or None)


NOTHING = About()


def event_given(
    state: StreamState,
    event: str,
    forecasts: ExpertForecasts,
    prior: npt.ArrayLike | None,
    about: About = NOTHING,
    time: object = None,
) -> tuple[StreamState, Event]:
    """State with the experts of `forecasts` among its own, and the event, checked and not resolved.

    Raises ArgumentError, ShapeError, ProbabilityError or ExpertError if forecasts or the prior are not what they should
    be.
    """
    if not isinstance(forecasts, (dict, Mapping)):
        raise ArgumentError(
            f"forecasts on an event are probabilities by the names of experts, as in {{'ann': 0.8}}, and not a "
            f"{type(forecasts).__name__}"
        )
    k = len(state.classes)
    array = _given(forecasts.values(), k)
    own = None
    if prior is not None:
        own = logodds.public_probabilities(logodds.class_probabilities(prior, k))
        if own.shape != array.shape[1:]:
            raise ShapeError(f"an event has one prior, and the shape of this is {own.shape}")
    columns = state.columns.sets.get(tuple(forecasts))
    if columns is None:
        names = tuple(map(str, forecasts))
        if len(set(names)) < len(names):
            check_distinct(names)
        state, columns = state.joined(names)
    made = None if time is None else np.full(len(columns), as_time(time, "time"))
    when, settled, group, topic = about
    return state, Event(event, columns, array, own, UNRESOLVED, 1.0, 0.0, when, group, settled, topic, made)


def _given(forecasts: Iterable[npt.ArrayLike | None], k: int) -> Array:
    """Validated forecasts on an event by n experts, (n,) or (n, K); NaN where None."""
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


def check_in_time(event: Event, experts: Sequence[str]) -> None:
    """Refuse forecasts that were made after the event ended; a day without a time of day ends at midnight.

    The ArgumentError names the experts whose forecasts are late.
    """
    end = event.time
    if event.made is None or end is None or not event.settled:
        return
    late = event.made > (last_moments(end) if midnights(end) else end)
    if late.any():
        names = [experts[i] for i in event.experts[late].tolist()]
        raise ArgumentError(
            f"forecasts on event {shown(event.id)} by {listed(names)} were made after it ended ({time_text(end)}), "
            "and what comes later is no forecast: leave them out, and withdraw those that the stream has, "
            f"forecast({shown(event.id)}, {{{names[0]!r}: None}})"
        )


def facts_of_rows(
    probabilities: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
    prior: npt.ArrayLike | None,
    classes: int,
    topics: object,
    times: object,
) -> tuple[Array, EventBlock, Times | None]:
    """Forecasts of events without ids, (T, N) or (T, N, K), a block with their facts, and times of forecasts, (T, N).

    Raises ShapeError, ProbabilityError or ArgumentError if arguments do not fit together or are out of range.
    """
    q, codes = logodds.check_probabilities(as_numbers(probabilities, "probability")), _positions(outcomes, classes)
    fits = q.ndim == 2 if classes == 2 else q.ndim == 3 and q.shape[2] == classes
    if not fits or codes.shape != q.shape[:1]:
        raise ShapeError(f"rows of {classes} classes and their outcomes do not fit: shapes {q.shape}, {codes.shape}")
    own = None
    if prior is not None:
        own = logodds.public_probabilities(logodds.class_probabilities(prior, classes))
        if own.shape != q.shape[:1] + q.shape[2:]:
            raise ShapeError(f"{len(q)} rows need as many priors, and their shape is {own.shape}")
    t, about = len(q), None
    if topics is not None:
        about = np.array([topic or None for topic in event_labels(topics, t, "topics").tolist()], dtype=object)
    weight = frequencies(sample_weight, t).copy()
    facts = EventBlock.facts(np.full(t, None, dtype=object), codes, weight, q, priors=own, topics=about)
    return q, facts, None if times is None else times_of_cells(times, q.shape[:2])


def _positions(outcomes: npt.ArrayLike, classes: int) -> Index:
    """Outcomes of rows as class positions, (T,); ArgumentError unless whole numbers from -1 to K - 1."""
    given = as_array(outcomes, "outcomes")
    if given.dtype.kind in "biu" and given.size and given.min() >= UNRESOLVED and given.max() < classes:
        return given.astype(np.intp)
    if given.dtype.kind in "biuf":
        numbers = given.astype(np.float64)
    else:
        each_number = [float(each) if isinstance(each, Real) else np.nan for each in given.ravel().tolist()]
        numbers = np.reshape(each_number, given.shape)
    bad = ~((numbers >= UNRESOLVED) & (numbers < classes) & (numbers == np.floor(numbers)))
    if bad.any():
        where = int(np.flatnonzero(bad)[0])
        raise ArgumentError(
            f"outcomes of rows are positions among {classes} classes, or -1 where not resolved, and outcome {where} is "
            f"{shown(given.ravel().tolist()[where])}"
        )
    return numbers.astype(np.intp)
