"""How well each expert tells events that happen from events that do not, all experts at once."""

from __future__ import annotations

import numpy as np

from opinionpool.errors import ArgumentError
from opinionpool.forecasts import Forecasts
from opinionpool.logodds import Array


def areas(forecasts: Forecasts) -> Array:
    """Area under the curve of each expert's own forecasts on resolved events, ties counting half, (N,).

    Parameters
    ----------
    forecasts : Forecasts
        Of binary events.

    Returns
    -------
    ndarray, shape (N,)
        NaN for experts whose events all had one outcome.

    Raises
    ------
    ArgumentError
        For more than two classes.

    Examples
    --------
    >>> f = Forecasts.from_array([[0.2, 0.9], [0.4, 0.5], [0.4, 0.4], [0.7, 0.1]], [0, 0, 1, 1])
    >>> areas(f)
    array([0.875, 0.   ])
    """
    if len(forecasts.classes) != 2:
        raise ArgumentError(f"the area under the curve is of two classes, and there are {len(forecasts.classes)}")
    n = len(forecasts.experts)
    known = forecasts.resolved[forecasts.event_index]
    expert, said = forecasts.expert_index[known], forecasts.probabilities[known]
    happened = forecasts.outcomes[forecasts.event_index[known]] == 1
    order = np.lexsort((said, expert))
    expert, said, happened = expert[order], said[order], happened[order]
    # A tie is a run of equal forecasts by one expert; all of it has the mean of its ranks.
    first = np.append(True, (np.diff(expert) != 0) | (np.diff(said) != 0)) if len(said) else np.zeros(0, dtype=bool)
    run = np.cumsum(first) - 1
    size = np.bincount(run)
    before = np.concatenate([[0], np.cumsum(size)[:-1]]) if len(size) else np.zeros(0)
    middle = (before + (size + 1) / 2.0)[run] if len(size) else np.zeros(0)
    start = np.searchsorted(expert, np.arange(n))
    ranks = np.bincount(expert[happened], weights=(middle - start[expert])[happened], minlength=n)
    ones = np.bincount(expert[happened], minlength=n).astype(float)
    zeros = np.bincount(expert[~happened], minlength=n).astype(float)
    pairs = ones * zeros
    return np.asarray(np.where(pairs > 0, (ranks - ones * (ones + 1) / 2) / np.where(pairs > 0, pairs, 1), np.nan))
