"""Which experts are present: events grouped by their pattern of missing forecasts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Mask: TypeAlias = npt.NDArray[np.bool_]
Positions: TypeAlias = npt.NDArray[np.intp]


def group_patterns(present: Mask) -> tuple[Mask, Positions]:
    """Distinct rows of `present` and, for every row, which of them it is.

    Parameters
    ----------
    present : ndarray of bool, shape (T, N)

    Returns
    -------
    patterns : ndarray of bool, shape (P, N)
    index : ndarray of int, shape (T,)

    Examples
    --------
    >>> import numpy as np
    >>> patterns, index = group_patterns(np.array([[True, True], [True, False], [True, True]]))
    >>> patterns.tolist(), index.tolist()
    ([[True, False], [True, True]], [1, 0, 1])
    """
    if present.shape[1] == 0:
        return np.zeros((1, 0), dtype=bool), np.zeros(len(present), dtype=np.intp)
    packed = np.ascontiguousarray(np.packbits(present, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, index = np.unique(keys, return_index=True, return_inverse=True)
    return present[first], index.ravel()


def each_pattern(present: Mask) -> Iterator[tuple[Positions, Positions]]:
    """Pairs (rows, columns): the events that share a pattern, and the experts present in it."""
    if len(present) == 0:
        return
    patterns, index = group_patterns(present)
    order = np.argsort(index, kind="stable")
    ends = np.cumsum(np.bincount(index, minlength=len(patterns)))
    for pattern, rows in zip(patterns, np.split(order, ends[:-1]), strict=True):
        yield rows, np.flatnonzero(pattern)
