"""Whether outcomes are separated, so that a likelihood has no maximum: a direction in which no event loses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from opinionpool.arrays import Array

Gains: TypeAlias = Callable[[Array], Array]
Row: TypeAlias = Callable[[int], Array]

# A row may fall short of 0 by this much of the longest row, and ρ is 0 below this much of what it is the sum of.
ROUNDING = 1e-10
# A direction separates only if some row gains this much of the longest row.
SEPARATES = 1e-7


def separating_direction(gains: Gains, row: Row, total: Array, longest: float) -> Array | None:
    """A direction in which no row loses and some row gains, or None if there is none.

    Parameters
    ----------
    gains : callable
        r'd of all rows, shape (M,), for a direction d of shape (P,).
    row : callable
        The row at one position, shape (P,).
    total : ndarray, shape (P,)
        Σ u⁰_r r for any positive u⁰. The smaller, the fewer steps: at a maximum of the likelihood it is 0.
    longest : float
        A bound on the length of the rows.

    Returns
    -------
    ndarray, shape (P,), or None
        Of length 1. What is returned has been verified on every row, up to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[1.0, 1.0], [1.0, -1.0]])
    >>> separating_direction(rows.dot, lambda i: rows[i], rows.sum(axis=0), 1.5)
    array([1., 0.])
    >>> rows = np.array([[1.0], [-0.1]])
    >>> separating_direction(rows.dot, lambda i: rows[i], rows.sum(axis=0), 1.0) is None
    True
    """
    size = len(total)
    active: list[int] = []
    rows, v = np.empty((0, size)), np.empty(0)
    for _ in range(10 * size + 50):
        rest = total + v @ rows
        length = float(np.linalg.norm(rest))
        if length <= ROUNDING * (float(np.linalg.norm(total)) + longest * float(v.sum())):
            return None
        direction = rest / length
        gain = gains(direction)
        worst = int(gain.argmin())
        if gain[worst] >= -ROUNDING * longest:
            return direction if gain.max() > SEPARATES * longest else None
        if worst in active:
            return None
        active.append(worst)
        rows = np.vstack([rows, row(worst)])
        kept, v = _non_negative(rows, -total, np.append(v, 0.0))
        active = [i for i, keep in zip(active, kept, strict=True) if keep]
        rows, v = rows[kept], v[kept]
    return None


def _non_negative(rows: Array, target: Array, v: Array) -> tuple[Array, Array]:
    """The inner loop of Lawson & Hanson: from a feasible v to the least squares of a subset that is positive."""
    kept = np.ones(len(v), dtype=bool)
    while True:
        best = np.zeros(len(v))
        best[kept] = np.linalg.lstsq(rows[kept].T, target, rcond=None)[0]
        bad = kept & (best <= 0)
        if not bad.any():
            return kept, best
        ratio = np.where(bad, v / np.where(bad, np.maximum(v - best, np.finfo(float).tiny), 1.0), np.inf)
        v = v + ratio.min() * (best - v)
        kept &= ratio > ratio.min()
        v[~kept] = 0.0
