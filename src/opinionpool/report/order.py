"""In which order events are listed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opinionpool.report.answers import Pooled


def ordered(pooled: Pooled, rows: Sequence[int], sort: str) -> list[int]:
    """Some events in one of the orders of `opinionpool.report.SORTS`; equal ones stay in the order of the file."""
    chosen, forecasts = np.asarray(rows, dtype=np.intp), pooled.forecasts
    if sort == "file" or (sort == "closes" and forecasts.closes is None) or not len(chosen):
        return [int(t) for t in chosen]
    if sort == "event":
        return sorted(chosen.tolist(), key=lambda t: (forecasts.events[t], t))
    if sort == "closes":
        assert forecasts.closes is not None
        # Unknown times come last.
        return [int(t) for t in chosen[np.argsort(forecasts.closes[chosen], kind="stable")]]
    p = pooled.probabilities[chosen]
    size = p if p.ndim == 1 else p.max(axis=1)
    if sort == "interval" and pooled.interval is not None:
        low, high = (end[chosen] for end in pooled.interval)
        size = (high - low).reshape(len(chosen), -1).max(axis=1)
    if sort == "disagreement":
        bounds = np.searchsorted(forecasts.event_index, [chosen, chosen + 1])
        given = [forecasts.probabilities[a:b] for a, b in bounds.T.tolist()]
        size = np.array([np.ptp(q, axis=0).max() if len(q) else -1.0 for q in given])
    return [int(t) for t in chosen[np.argsort(-size, kind="stable")]]


def open_rows(pooled: Pooled, sort: str) -> list[int]:
    """Positions of open events that somebody forecast, in one of the orders of `opinionpool.report.SORTS`."""
    forecasts = pooled.forecasts
    return ordered(pooled, np.flatnonzero(~forecasts.resolved & (forecasts.crowd > 0)).tolist(), sort)
