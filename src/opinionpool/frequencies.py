"""How often each event counts: scikit-learn's ``sample_weight``, which is a frequency wherever it is taken."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opinionpool.errors import ArgumentError, ShapeError
from opinionpool.logodds import Array

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
