"""Events that belong together: to one group, or to one date."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.forecasts import Forecasts

__all__ = ["Clusters", "by_date", "by_group"]


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which of T events belong together.

    Attributes
    ----------
    unit : str
        What they share: "group" or "date".
    member : ndarray of int, shape (T,)
        A number for each event; those without a label, or date, are alone. Later dates have larger numbers.
    """

    unit: str
    member: npt.NDArray[np.intp]


def by_group(forecasts: Forecasts) -> Clusters | None:
    """Events by the group that they were given; None if none was."""
    if forecasts.groups is None:
        return None
    return Clusters("group", _numbered(forecasts.groups, forecasts.groups == ""))


def by_date(forecasts: Forecasts) -> Clusters | None:
    """Events by their day; None if they have no times."""
    if forecasts.times is None:
        return None
    return Clusters("date", _numbered(forecasts.times.astype("datetime64[D]"), np.isnat(forecasts.times)))


def _numbered(labels: npt.NDArray[np.generic], alone: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    distinct, member = np.unique(labels, return_inverse=True)
    return np.asarray(np.where(alone, len(distinct) + np.arange(len(alone)), member))
