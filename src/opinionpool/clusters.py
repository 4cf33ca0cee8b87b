"""Clusters of events whose outcomes may be dependent: events of one group, or of one day."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.forecasts import Forecasts


@dataclass(frozen=True, eq=False)
class Clusters:
    """Partition of T events into clusters, whose events share a group or a day; their outcomes may be dependent."""

    unit: str  # what events of a cluster share: "group" or "date"
    # (T,); number of each event's cluster. An event without a group, or date, is a cluster of its own, numbered last.
    # Later dates have larger numbers.
    member: npt.NDArray[np.intp]
    shared: int  # number of different labels, or dates


def by_group(forecasts: Forecasts) -> Clusters | None:
    """Return the clusters of events by group; None if no event has a group."""
    if forecasts.groups is None:
        return None
    return Clusters("group", *_numbered(forecasts.groups, forecasts.groups == ""))


def by_date(forecasts: Forecasts) -> Clusters | None:
    """Return the clusters of events by the day in `forecasts.times`; None if the events have no times."""
    if forecasts.times is None:
        return None
    return Clusters("date", *_numbered(forecasts.times.astype("datetime64[D]"), np.isnat(forecasts.times)))


def by_settlement(forecasts: Forecasts) -> Clusters | None:
    """Return the clusters of events by the day on which they closed or were resolved; None if no such day is known."""
    if forecasts.times is None or forecasts.settled is None or not forecasts.settled.any():
        return None
    unknown = np.isnat(forecasts.times) | ~forecasts.settled
    return Clusters("date", *_numbered(forecasts.times.astype("datetime64[D]"), unknown))


def _numbered(labels: npt.NDArray[np.generic], single: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.intp], int]:
    distinct, member = np.unique(labels, return_inverse=True)
    return np.asarray(np.where(single, len(distinct) + np.arange(len(single)), member)), len(distinct)
