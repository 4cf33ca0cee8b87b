"""Forecasts that are drawn for tests: experts who know something and share an error."""

import numpy as np

from opinionpool.forecasts import Forecasts


def panel(events=60, experts=4, *, seed=0, signal=1.3, shared=1.0, own=1.0, missing=0.0, unresolved=0, names=None):
    """Outcomes in turn, the first of them open."""
    rng = np.random.default_rng(seed)
    y = np.arange(events) % 2
    odds = signal * (2 * y[:, None] - 1) + shared * rng.normal(size=(events, 1))
    odds = odds + own * rng.normal(size=(events, experts))
    q = 1 / (1 + np.exp(-odds))
    q[rng.random(q.shape) < missing] = np.nan
    return Forecasts.from_array(q, [None if i < unresolved else int(c) for i, c in enumerate(y)], experts=names)


def drawn(events=60, experts=3, *, classes=(0, 1), seed=0, missing=0.0, unresolved=0.0):
    """Events of any number of classes, in an order that is not that of their names."""
    rng = np.random.default_rng(seed)
    k = len(classes)
    y = rng.integers(0, k, events)
    ratios = rng.normal(size=(events, 1, k)) + rng.normal(size=(events, experts, k))
    ratios += 1.3 * (np.arange(k) == y[:, None])[:, None]
    q = np.exp(ratios)
    q /= q.sum(axis=2, keepdims=True)
    q[rng.random((events, experts)) < missing] = np.nan
    outcomes = [None if rng.random() < unresolved else classes[c] for c in y]
    names, who = [f"q{i}" for i in rng.permutation(events)], ["ann", "bob", "cy", "dan"][:experts]
    return Forecasts.from_array(q[..., 1] if k == 2 else q, outcomes, events=names, experts=who, classes=tuple(classes))
