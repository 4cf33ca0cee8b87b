"""Which experts err together: correlations of what they say beyond the prior, within an outcome, in cluster order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.errors import LearningError
from opinionpool.forecasts import Forecasts
from opinionpool.fullpanel import FullPanel
from opinionpool.learn import LearnedPanel
from opinionpool.logodds import Array, metric, signature
from opinionpool.panel import Panel
from opinionpool.redundancy import clusters
from opinionpool.shrunk import PAIR_WORTH

__all__ = ["SharedErrors", "shared_errors"]

# More experts would not be legible.
MOST = 40


@dataclass(frozen=True, eq=False)
class SharedErrors:
    """Correlations of the errors of N experts.

    Attributes
    ----------
    experts : tuple of str
        In an order that puts those who err together next to each other.
    correlation : ndarray, shape (N, N)
        Each held to the mean of all pairs as far as the pair has few events in common.
    common : float
        That mean.
    left_out : int
        Experts with forecasts on resolved events who are not shown, because others weigh more.
    """

    experts: tuple[str, ...]
    correlation: Array
    common: float
    left_out: int


def shared_errors(
    forecasts: Forecasts, learned: LearnedPanel, prior: npt.ArrayLike | None = None, most: int = MOST
) -> SharedErrors:
    """Correlations of the errors of the experts, at most `most` of them, those with the largest weights.

    Parameters
    ----------
    forecasts : Forecasts
        What the panel was learned from.
    learned : LearnedPanel
    prior : ndarray or None, shape (T, K)
        Class probabilities of each event's own prior; None if all share that of `learned`.
    most : int

    Raises
    ------
    LearningError
        If fewer than two experts have forecasts on resolved events that ever differ.

    Examples
    --------
    >>> from opinionpool.learn import learn
    >>> rng = np.random.default_rng(0)
    >>> shared, own = rng.normal(size=(2, 400, 1)), rng.normal(size=(400, 3))
    >>> y = np.arange(400) % 2
    >>> L = 2 * y[:, None] - 1 + np.hstack([3 * shared[0], 3 * shared[0], 0 * shared[0]]) + own
    >>> f = Forecasts.from_array(1 / (1 + np.exp(-L)), y, experts=["ann", "bob", "cat"])
    >>> found = shared_errors(f, learn(f))
    >>> found.experts.index("cat") != 1, bool(found.correlation.min() < 0.2)
    (True, True)
    """
    residuals = _residuals(forecasts, learned, prior)
    moving = np.flatnonzero(np.nansum(residuals**2, axis=(0, 2)) > 0)
    if len(moving) < 2:
        raise LearningError("errors are shared by two experts at least who are heard on resolved events")
    size = np.abs(learned.weights[moving])
    kept = np.sort(moving[np.argsort(-size, kind="stable")[:most]])
    found, shared = _pairs(residuals[:, kept], len(forecasts.classes))
    off = ~np.eye(len(kept), dtype=bool)
    total = shared[off].sum()
    common = float((found * shared)[off].sum() / total) if total > 0 else 0.0
    worth = PAIR_WORTH + len(kept)
    held = (shared * found + worth * common) / (shared + worth)
    np.fill_diagonal(held, 1.0)
    order = clusters(held).order.tolist()
    experts = tuple(forecasts.experts[kept[i]] for i in order)
    return SharedErrors(experts, held[np.ix_(order, order)], common, len(moving) - len(kept))


def _residuals(forecasts: Forecasts, learned: LearnedPanel, prior: npt.ArrayLike | None) -> Array:
    """Contrasts less what was expected given the outcome, (T, N, K - 1) of the resolved events, NaN where missing."""
    known = forecasts.resolved
    sample, outcomes = forecasts.select_events(known), forecasts.outcomes[known]
    k = len(forecasts.classes)
    if prior is None:
        prior = learned.prior if learned.prior is not None else np.full(k, 1.0 / k)
    p = np.broadcast_to(np.asarray(prior, dtype=np.float64), (len(forecasts.events), k))[known][:, None, :]
    contrasts = logodds.log_ratios(sample.X, p, learned.panel.settings.floor) - logodds.prior_log_ratios(p)
    # The mean of every expert and outcome is the least that a residual can be measured from.
    apart = contrasts - _signal(learned, k)[outcomes]
    count = np.maximum((~np.isnan(apart[..., 0])).sum(axis=0), 1)[:, None]
    return np.asarray(apart - np.nansum(apart, axis=0) / count)


def _signal(learned: LearnedPanel, k: int) -> Array:
    """What each outcome adds to contrasts, (K, N, K - 1), up to what is the same for all outcomes."""
    if learned.alone is not None:
        contrast = learned.alone.contrast
    elif isinstance(learned.panel, Panel):
        contrast = learned.panel.parts.contrast
    else:
        assert isinstance(learned.panel, FullPanel)
        return learned.panel.parts.means
    return np.asarray(contrast[:, None] * signature(k)[:, None, :])


def _pairs(residuals: Array, classes: int) -> tuple[Array, Array]:
    """Correlation of each pair on the events that both answered, and how many these are."""
    present = ~np.isnan(residuals[..., 0])
    held = np.where(present[..., None], residuals, 0.0)
    inner = metric(classes)
    products = np.einsum("tnd,de,tme->nm", held, inner, held, optimize=True)
    own = np.einsum("tnd,de,tne->tn", held, inner, held)
    seen = present.astype(np.float64)
    square = own.T @ seen
    scale = np.sqrt(square * square.T)
    found = np.where(scale > 0, products / np.where(scale > 0, scale, 1.0), 0.0)
    return np.clip(found, -1.0, 1.0), seen.T @ seen
