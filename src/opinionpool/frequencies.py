"""How often each event counts: scikit-learn's ``sample_weight``, which is a frequency wherever it is taken."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opinionpool.errors import ArgumentError, ShapeError
from opinionpool.logodds import Array


def frequencies(sample_weight: npt.ArrayLike | None, events: int) -> Array:
    """Frequencies of events, checked, (T,); 1 each if not given.

    Raises
    ------
    ShapeError, ArgumentError
        If there is not one for each event, or one is negative or not finite.
    """
    if sample_weight is None:
        return np.ones(events)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (events,):
        raise ShapeError(f"{events} events need as many sample weights, and their shape is {weight.shape}")
    bad = ~((weight >= 0) & (weight < np.inf))
    if bad.any():
        where = int(bad.argmax())
        raise ArgumentError(
            f"sample weights are frequencies, finite and at least 0, and weight {where} is {weight[where]:.15g}"
        )
    return weight
