"""Which answers are in-sample: the event's own outcome had a part in them."""

from __future__ import annotations

import numpy as np

from opinionpool.arrays import Array, Mask
from opinionpool.errors import Note
from opinionpool.forecasts import Forecasts
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.pools.registry import POOLS


def in_sample(known: Mask, forecasts: Forecasts, pool: str, state: Fitted, prior: float | Array | None) -> Mask:
    """Events whose outcome had a part in their answer, (T,).

    Parameters
    ----------
    known : ndarray of bool, shape (T,)
        Events whose outcome the pool has seen.
    forecasts : Forecasts
    pool : str
        One of `opinionpool.pools.registry.POOLS`.
    state : Fitted
        The pool, fitted.
    prior : float or ndarray, or None
        As it was given; without one, and without priors of the events' own, it is estimated from the outcomes.
    """
    answered = np.asarray(forecasts.crowd > 0)
    taught = answered & state.learned
    if prior is None and forecasts.options is None:
        # Where options are an event's own, they are equally probable.
        t = len(answered)
        own = np.full((t, 1), np.nan) if forecasts.prior is None else forecasts.prior.reshape(t, -1)
        blank = np.asarray(np.isnan(own).any(axis=1))
        taught = taught | (blank & (~answered | POOLS[pool].uses_prior))
    return np.asarray(known & taught)


def in_sample_note() -> Note:
    """On one answer."""
    return Note("in-sample", "this answer is in-sample: the pool has learned from its outcome")
