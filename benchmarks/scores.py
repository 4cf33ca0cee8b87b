"""The scores of a million binary forecasts, each against scikit-learn on the same arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from row import Row
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss, roc_auc_score
from timing import Comparison, interleave

from opinionpool.scoring.reliability import auc, decompose
from opinionpool.scoring.scores import log_score, mean_log_score, mean_score

ROUNDS = 11
EVENTS = 1_000_000


def rows() -> Iterator[Row]:
    """Measure the mean log score, then what else scores or sorts a million events."""
    rng = np.random.default_rng(0)
    p = rng.random(EVENTS)
    happened = rng.random(EVENTS) < p
    for kind, needed in ((np.int64, 15), (np.bool_, None), (np.float64, None)):
        y = happened.astype(kind)
        seconds = interleave(lambda y=y: mean_log_score(p, y), lambda y=y: log_loss(y, p), ROUNDS)
        yield faster(f"mean log score, 1e6 events, {y.dtype}", needed, seconds, "sklearn.metrics.log_loss")
    y = happened.astype(np.int64)
    for what, work, peer, name in (
        ("log score of each, 1e6 events", lambda: log_score(p, y), lambda: log_loss(y, p), "sklearn.metrics.log_loss"),
        ("its mean and standard error", lambda: mean_score(log_score(p, y)), lambda: log_loss(y, p), "the same"),
        (
            "decomposition, 1e6 events",
            lambda: decompose(p, y),
            lambda: IsotonicRegression().fit(p, y),
            "PAV of sklearn",
        ),
        (
            "area and standard error, 1e6 events",
            lambda: auc(p, y),
            lambda: roc_auc_score(y, p),
            "sklearn's, area alone",
        ),
    ):
        yield faster(what, None, interleave(work, peer, ROUNDS), name)


def faster(what: str, needed: float | None, seconds: Comparison, peer: str) -> Row:
    """Return the row of something that must be at least `needed` times as fast as its peer."""
    times = 1 / seconds.ratio
    row = f"{peer}: {seconds.second * 1000:.0f} ms, here {seconds.first * 1000:.1f} ms"
    if needed is None:
        return Row(what, "", f"{times:.1f} x", row)
    return Row(what, f">= {needed:g} x", f"{times:.1f} x", row, kept=times >= needed)
