"""What a stream is given, checked, as records and rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Real
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.errors import ArgumentError, ShapeError
from opinionpool.forecasts import UNRESOLVED, Forecasts
from opinionpool.logodds import Array
from opinionpool.names import check_distinct
from opinionpool.records import Record, event_key
from opinionpool.streamstate import StreamState
from opinionpool.wording import shown

__all__ = ["Said", "batch_records", "checked_rows", "event_record"]

# By expert: the probability of the second of two classes, or those of all classes; None withdraws it.
Said: TypeAlias = Mapping[str, npt.ArrayLike | None]


def event_record(state: StreamState, seed: int, event: str, forecasts: Said, prior: npt.ArrayLike | None) -> Record:
    """An event that is not resolved; experts are entered in the stream.

    Raises
    ------
    ArgumentError, ShapeError, ProbabilityError, ExpertError
        If forecasts or the prior are not what they should be.
    """
    if not isinstance(forecasts, Mapping):
        raise ArgumentError(
            f"forecasts on an event are probabilities by the names of experts, as in {{'ann': 0.8}}, and not a "
            f"{type(forecasts).__name__}"
        )
    k = len(state.classes)
    shape = () if k == 2 else (k,)
    said = [np.full(shape, np.nan) if p is None else logodds.check_probabilities(p) for p in forecasts.values()]
    if any(each.shape != shape for each in said):
        raise ShapeError(f"a forecast on {k} classes is {'one probability' if k == 2 else f'{k} probabilities'}")
    array = np.array(said).reshape((len(said), *shape))
    if k > 2 and len(array):
        array, _ = logodds.normalised(array)
    own = None
    if prior is not None:
        own = logodds.public_probabilities(logodds.class_probabilities(prior, k))
        if own.shape != shape:
            raise ShapeError(f"an event has one prior, and the shape of this is {own.shape}")
    names = [str(name) for name in forecasts]
    check_distinct(names)
    return Record(str(event), event_key(str(event), seed), state.join(names), array, own)


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
        )


def checked_rows(
    probabilities: npt.ArrayLike, outcomes: npt.ArrayLike, prior: npt.ArrayLike | None, classes: int
) -> tuple[Array, npt.NDArray[np.intp], Array | None]:
    """Rows without ids: what was said, what happened, and their own priors, (T,), or (T, K) when K > 2.

    Raises
    ------
    ShapeError, ProbabilityError, ArgumentError
        If they do not fit together or are out of range.
    """
    said, codes = logodds.check_probabilities(probabilities), _positions(outcomes, classes)
    fits = said.ndim == 2 if classes == 2 else said.ndim == 3 and said.shape[2] == classes
    if not fits or codes.shape != said.shape[:1]:
        raise ShapeError(f"rows of {classes} classes and their outcomes do not fit: shapes {said.shape}, {codes.shape}")
    if prior is None:
        return said, codes, None
    own = logodds.public_probabilities(logodds.class_probabilities(prior, classes))
    if own.shape != said.shape[:1] + said.shape[2:]:
        raise ShapeError(f"{len(said)} rows need as many priors, and their shape is {own.shape}")
    return said, codes, own


def _positions(outcomes: npt.ArrayLike, classes: int) -> npt.NDArray[np.intp]:
    """Outcomes of rows, checked: whole numbers from -1 to K - 1, not rounded to them."""
    given = np.asarray(outcomes)
    listed = given.ravel().tolist()
    if given.dtype.kind in "biuf":
        numbers = given.astype(np.float64)
    else:
        numbers = np.reshape([float(each) if isinstance(each, Real) else np.nan for each in listed], given.shape)
    bad = ~((numbers >= UNRESOLVED) & (numbers < classes) & (numbers == np.floor(numbers)))
    if bad.any():
        where = int(np.flatnonzero(bad)[0])
        raise ArgumentError(
            f"outcomes of rows are positions among {classes} classes, or -1 where not resolved, and outcome {where} is "
            f"{shown(listed[where])}"
        )
    return numbers.astype(np.intp)
