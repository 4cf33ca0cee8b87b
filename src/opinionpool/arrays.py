"""Types of arrays, events grouped by who is present, and frequencies of events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.errors import ArgumentError, ShapeError

Array: TypeAlias = npt.NDArray[np.float64]
Floats: TypeAlias = npt.NDArray[Any]  # float32 or float64
Index: TypeAlias = npt.NDArray[np.intp]
Mask: TypeAlias = npt.NDArray[np.bool_]


def group_patterns(present: Mask) -> tuple[Mask, Index]:
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


def each_pattern(present: Mask) -> Iterator[tuple[Index, Index]]:
    """Pairs (rows, columns): the events that share a pattern, and the experts present in it."""
    if len(present) == 0:
        return
    patterns, index = group_patterns(present)
    order = np.argsort(index, kind="stable")
    ends = np.cumsum(np.bincount(index, minlength=len(patterns)))
    for pattern, rows in zip(patterns, np.split(order, ends[:-1]), strict=True):
        yield rows, np.flatnonzero(pattern)


# Beyond this one event more cannot be told from none.
MOST = 1e15


def frequencies(sample_weight: npt.ArrayLike | None, events: int) -> Array:
    """Frequencies of events, checked, (T,); 1 each if not given.

    Raises
    ------
    ShapeError, ArgumentError
        If there is not one for each event, or one is negative, not finite or above 1e15.
    """
    if sample_weight is None:
        return np.ones(events)
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"sample weights must be numbers: {error}") from None
    if weight.shape != (events,):
        raise ShapeError(f"{events} events need as many sample weights, and their shape is {weight.shape}")
    bad = ~((weight >= 0) & (weight <= MOST))
    if bad.any():
        where = int(bad.argmax())
        rule = f"at most {MOST:g}" if MOST < weight[where] < np.inf else "finite and at least 0"
        raise ArgumentError(f"sample weights are frequencies, {rule}, and weight {where} is {weight[where]:.15g}")
    return weight
