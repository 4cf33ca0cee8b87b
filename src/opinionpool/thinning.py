"""Fewer events in place of many, spread evenly from the least to the most telling."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opinionpool.logodds import Array


def spread_evenly(size: Array, weight: Array, count: int) -> tuple[npt.NDArray[np.intp], Array]:
    """Positions of events that stand for all, in order, and how many of `count` equal parts each stands for.

    Which events they are does not depend on the order and the frequencies in which these came.

    Parameters
    ----------
    size : ndarray, shape (T,)
        How telling each is.
    weight : ndarray, shape (T,)
        Frequencies.
    count : int
        How many there may be; they are drawn at equal steps of the sum of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> spread_evenly(np.array([3.0, 1.0, 2.0, 4.0]), np.ones(4), 2)
    (array([0, 1]), array([1., 1.]))
    """
    order = np.argsort(size, kind="stable")
    behind = np.cumsum(weight[order])
    places = (np.arange(count) + 0.5) / count * behind[-1]
    drawn = np.bincount(order[np.searchsorted(behind, places)], minlength=len(order))
    kept = np.flatnonzero(drawn)
    return kept, drawn[kept].astype(np.float64)
