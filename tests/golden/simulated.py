"""Forecasts and outcomes that are the same on every machine: drawn, and rounded to four digits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import opinionpool as op

Array = np.ndarray


def panel(
    seed: int, t: int, n: int, k: int = 2, *, missing: float = 0.0, unresolved: float = 0.2
) -> tuple[Array, Array]:
    """Probabilities, (t, n) or (t, n, k), NaN where missing; and outcomes, (t,), NaN where not resolved."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, t).astype(float)
    signal = np.resize([1.0, 0.6, 1.5, 0.3], n)
    bias = rng.normal(0.0, 0.3, (n, k))
    x = 0.8 * rng.normal(size=(t, 1, k)) + rng.normal(size=(t, n, k)) + bias
    x += signal[:, None] * (np.arange(k) == y[:, None])[:, None]
    q = np.exp(x - x.max(axis=2, keepdims=True))
    q = np.clip(np.round(q / q.sum(axis=2, keepdims=True), 4), 0.0001, 0.9999)
    q = q[..., 1] if k == 2 else q / q.sum(axis=2, keepdims=True)
    q[rng.random((t, n)) < missing] = np.nan
    y[rng.random(t) < unresolved] = np.nan
    return q, y


def forecasts(q: Array, y: Array | None, **facts: object) -> op.Forecasts:
    """The container of them, with labels 0 to k - 1."""
    k = q.shape[2] if q.ndim == 3 else 2
    outcomes = None if y is None else [None if np.isnan(each) else int(each) for each in y]
    return op.Forecasts.from_array(q, outcomes, classes=tuple(range(k)), **facts)


def own_options(seed: int, t: int, n: int, *, missing: float = 0.0) -> op.Forecasts:
    """Events that have two, three or five options of their own."""
    q, y = panel(seed, t, n, 5, missing=missing)
    size = np.random.default_rng(seed).choice((2, 3, 5), size=t)
    size[0] = 5
    options, outcomes = [], []
    for i, count in enumerate(size):
        q[i, :, count:] = np.nan
        q[i] /= np.nansum(q[i], axis=1, keepdims=True)
        options.append([f"{i}-{j}" for j in range(count)])
        outcomes.append(None if np.isnan(y[i]) else options[-1][int(y[i]) % count])
    q[np.isnan(q[..., 0])] = np.nan
    return op.Forecasts.from_array(q, outcomes, options=options)


def crowd(seed: int, t: int, n: int, k: int = 2, *, each: float = 0.05, **facts: object) -> op.Forecasts:
    """Many experts with few forecasts each."""
    q, y = panel(seed, t, n, k, missing=1.0 - each, unresolved=0.15)
    return forecasts(q, y, **facts)


def days(seed: int, t: int, n: int) -> Array:
    """When each forecast was made, in days."""
    rng = np.random.default_rng(seed)
    return np.round(np.sort(rng.uniform(0, 400, t))[:, None] - rng.exponential(20.0, (t, n)), 2)


def long_table(q: Array, y: Array, times: Array, **columns: Sequence[object]) -> dict[str, list[object]]:
    """A table with a row per forecast, made at its time in days."""
    start = np.datetime64("2024-01-01T00:00")
    closes = np.ceil(times.max(axis=1)) + 1
    rows = []
    for i, j in np.argwhere(~np.isnan(q)):
        rows.append({
            "event": f"q{i:03}",
            "expert": f"e{j:02}",
            "probability": float(q[i, j]),
            "time": str(start + np.timedelta64(round(times[i, j] * 1440), "m")),
            "closes": str(start + np.timedelta64(int(closes[i]), "D")),
            "resolved_at": "" if np.isnan(y[i]) else str(start + np.timedelta64(int(closes[i]) + 2 + i % 5, "D")),
            "outcome": "" if np.isnan(y[i]) else str(int(y[i])),
        } | {name: values[i] for name, values in columns.items()})  # fmt: skip
    return {name: [row[name] for row in rows] for name in rows[0]}
