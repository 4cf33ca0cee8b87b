"""Missing forecasts that are taken for a probability, as --silence says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from opinionpool.errors import ArgumentError
from opinionpool.findings import finding
from opinionpool.forecasts import Forecasts
from opinionpool.tables.sources import check_cells
from opinionpool.tables.times import Times


def with_silence(forecasts: Forecasts, p: float) -> Forecasts:
    """Forecasts in which who gave none is taken to have given a probability."""
    if len(forecasts.classes) > 2:
        raise ArgumentError("--silence is for events of two classes: who is silent says nothing of several")
    t, n = forecasts.shape
    check_cells("the table with --silence", t, n, t * n)
    x = np.full((t, n), p)
    x[forecasts.event_index, forecasts.expert_index] = forecasts.probabilities
    missing = t * n - len(forecasts.event_index)
    return replace(
        forecasts,
        event_index=np.repeat(np.arange(t), n),
        expert_index=np.tile(np.arange(n), t),
        probabilities=x.ravel(),
        made=None if forecasts.made is None else _spread_times(forecasts),
        earlier=forecasts.earlier
        and forecasts.earlier.placed(forecasts.event_index * n + forecasts.expert_index, t * n),
        notes=(*forecasts.notes, finding("silence", count=missing, p=p)),
    )


def _spread_times(forecasts: Forecasts) -> Times:
    """When each of all possible forecasts was made, NaT where nobody made it, (T N,)."""
    assert forecasts.made is not None
    made = np.full(forecasts.shape, np.datetime64("NaT", "us"))
    made[forecasts.event_index, forecasts.expert_index] = forecasts.made
    return made.ravel()
