"""Coefficients of a log pool that favour no class."""

from __future__ import annotations

from functools import cache

import numpy as np

from opinionpool.arrays import Array


def intercept_root(spread: float, d: int) -> Array:
    """Root of the covariance of an intercept about 0, (K - 1, K - 1): independent log-probabilities favour no class."""
    return np.asarray(spread * _unit_root(d))


@cache
def _unit_root(d: int) -> Array:
    """Root of the covariance of an intercept for a spread of 1, (K - 1, K - 1)."""
    return np.asarray(np.linalg.cholesky((np.eye(d) + 1.0) / 2.0), dtype=np.float64)
