"""Weights of experts that a user gives: by name or in their order, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.errors import ArgumentError, ExpertError
from opinionpool.logodds import Array

Weights: TypeAlias = Mapping[str, float] | npt.ArrayLike


def matched_weights(weights: Weights, experts: tuple[str, ...]) -> tuple[Array, tuple[str, ...]]:
    """Weights that a user gave, in the experts' order, and the names among them that are not used.

    Parameters
    ----------
    weights : mapping of str to float, or array_like, shape (N,)
        By name; names of experts who are not here are allowed. Or in the order of `experts`.
    experts : tuple of str

    Raises
    ------
    ExpertError
        If an expert has no weight, or a list is not as long as the experts are many.

    Examples
    --------
    >>> matched_weights({"ann": 0.5, "bob": 0.3, "cat": 0.2}, ("cat", "ann"))
    (array([0.2, 0.5]), ('bob',))
    """
    if isinstance(weights, Mapping):
        without = [name for name in experts if name not in weights]
        if without:
            raise ExpertError(f"weights by name need one for each expert, and {without[0]!r} has none; 0 leaves it out")
        unused = tuple(str(name) for name in weights if name not in set(experts))
        return np.array([weights[name] for name in experts], dtype=np.float64), unused
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (len(experts),):
        raise ExpertError(
            f"there are {len(experts)} experts ({', '.join(experts[:10])}), and {array.size} weights; "
            "give one for each, or weights by name"
        )
    return array, ()


def check_weights(weights: npt.ArrayLike) -> Array:
    """Weights as a finite vector."""
    w = np.asarray(weights, dtype=np.float64)
    if w.ndim != 1 or not np.isfinite(w).all():
        raise ArgumentError(f"weights must be finite numbers, one for each expert, not {w}")
    return w


def check_shares(weights: npt.ArrayLike) -> Array:
    """Weights as shares: at least 0, and 1 together."""
    w = check_weights(weights)
    if (w < 0).any() or not w.any():
        raise ArgumentError(f"weights of this pool must be at least 0, and one of them above it, not {w}")
    shares: Array = w / w.sum()
    return shares
