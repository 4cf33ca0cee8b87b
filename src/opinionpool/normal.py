"""The normal distribution function of arrays, without SciPy."""

from __future__ import annotations

from math import erfc

import numpy as np
import numpy.typing as npt

from opinionpool.logodds import Array


def normal_cdf(x: npt.ArrayLike) -> Array:
    """Φ(x), to the last digits in the lower tail too.

    >>> normal_cdf([-40.0, 0.0, 1.96]).round(4)
    array([0.   , 0.5  , 0.975])
    """
    scaled = -np.asarray(x, dtype=np.float64) / np.sqrt(2.0)
    flat = np.array([0.5 * erfc(each) for each in scaled.ravel().tolist()])
    return np.asarray(flat.reshape(scaled.shape)[()])
