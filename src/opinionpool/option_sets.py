"""Options of an event's own, where events do not share their classes: their positions, and outcomes among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, is_blank
from opinionpool.errors import OutcomeError, ProbabilityError, ShapeError
from opinionpool.labels import UNRESOLVED, says_open
from opinionpool.text import counted, listed, shown

Options: TypeAlias = tuple[tuple[object, ...], ...]


def option_slots(options: Options) -> tuple[str, ...]:
    """Names of the positions that options take, as many as the largest set has, and two at least.

    >>> option_slots((("yes", "no"), ("red", "blue", "green")))
    ('option 1', 'option 2', 'option 3')
    """
    return tuple(f"option {i + 1}" for i in range(max([2, *map(len, options)])))


def check_options(options: Options, events: Sequence[str]) -> None:
    """Refuse sets that are no options of events.

    Raises ShapeError unless there are two different labels or more for each event.
    """
    if len(options) != len(events):
        raise ShapeError(f"{len(events)} events need as many sets of options, not {len(options)}")
    for event, labels in zip(events, options, strict=True):
        if len(labels) < 2:
            one = f" only, {shown(labels[0])}," if labels else ""
            raise ShapeError(f"event {shown(event)} has {counted(len(labels), 'option')}{one} and needs two or more")
        if len(set(labels)) < len(labels):
            raise ShapeError(f"event {shown(event)} has an option twice among {listed(labels)}")


def uniform_probabilities(sizes: Index, classes: int) -> Array:
    """Equal probabilities of each event's first so many options, and 0 for the other positions, (T, K).

    >>> uniform_probabilities(np.array([2, 3]), 3).round(3)
    array([[0.5  , 0.5  , 0.   ],
           [0.333, 0.333, 0.333]])
    """
    return np.where(np.arange(classes) < sizes[:, None], 1.0 / sizes[:, None], 0.0)


def padded(q: Array, sizes: Index, events: Sequence[str]) -> Array:
    """Forecasts (T, N, K) with 0 in positions that an event does not use, where they may come as NaN too.

    Raises ProbabilityError if a position that the event does not use has more.
    """
    beyond = (np.arange(q.shape[2]) >= sizes[:, None])[:, None, :]
    strange = beyond & (q > 0)
    if strange.any():
        event, _, slot = (int(i) for i in np.argwhere(strange)[0])
        raise ProbabilityError(
            f"event {shown(events[event])} has {sizes[event]} options, and a forecast gives something to a {slot + 1}th"
        )
    missing = np.isnan(np.where(beyond, np.nan, q)).all(axis=2, keepdims=True)
    return np.where(beyond, np.where(missing, np.nan, 0.0), q)


def encode_among(outcomes: Sequence[object] | npt.ArrayLike | None, options: Options, events: Sequence[str]) -> Index:
    """Outcomes as positions among each event's options, -1 where None, NaN or, where it is no option, -1.

    An OutcomeError names the event whose outcome is none of its options. Raises ShapeError if there are not as many as
    events.
    """
    encoded = np.full(len(options), UNRESOLVED)
    if outcomes is None:
        return encoded
    if len(outcomes) != len(options):  # type: ignore[arg-type]
        raise ShapeError(f"{len(options)} events need as many outcomes, not {len(outcomes)}")  # type: ignore[arg-type]
    for i, (outcome, labels) in enumerate(zip(outcomes, options, strict=True)):  # type: ignore[arg-type]
        if is_blank(outcome) or says_open(outcome, labels):
            continue
        if outcome not in labels:
            raise not_an_option(events[i], outcome, labels)
        encoded[i] = labels.index(outcome)
    return encoded


def not_an_option(event: str, outcome: object, labels: Sequence[object]) -> OutcomeError:
    """The error for an outcome that is none of its event's options."""
    return OutcomeError(
        f"the outcome of event {shown(event)} is {shown(outcome)}, and its options are {listed(labels, 10)}"
    )
