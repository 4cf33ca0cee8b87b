"""Residuals of forecasts on resolved events: contrasts less each expert's mean given the outcome."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.analysis.selection import Dendrogram
from opinionpool.arrays import Array
from opinionpool.errors import LearningError
from opinionpool.estimation.rows import helmert
from opinionpool.forecasts import Forecasts
from opinionpool.learning.constants import PAIR_WORTH
from opinionpool.learning.fitted import FittedPanel
from opinionpool.logodds import FLOOR
from opinionpool.model.contrasts import Extremes
from opinionpool.priors import event_priors, shared_prior

# How far extremes are believed, about, before any fit.
BELIEVED = Extremes(5.0)


@dataclass(frozen=True, eq=False)
class Residuals:
    """Log-odds of M forecasts on resolved events, less their mean by expert and outcome; ordered by expert."""

    forecasts: Forecasts
    # event, expert: (M,)
    event: npt.NDArray[np.intp]
    expert: npt.NDArray[np.intp]
    outcome: npt.NDArray[np.intp]  # (M,); 0 if events have options of their own, as these cannot be compared
    # (M, K - 1); in coordinates of equal variance, uncorrelated if the noise is the same for all classes. If events
    # have options of their own, (M, 1): the coordinate from the other options to the one that happened.
    values: Array
    confidence: Array  # (M,); log-odds given to what happened
    beyond: Array  # (M,); the same less the prior's log-odds
    starts: npt.NDArray[np.intp]  # (N + 1,); where each expert's residuals begin

    @classmethod
    def of(
        cls, forecasts: Forecasts, state: FittedPanel | None = None, prior: npt.ArrayLike | None = None
    ) -> Residuals:
        """Residuals of forecasts on resolved events, by the floors and default prior of the fit `state`, if given."""
        t, n = forecasts.shape
        k = len(forecasts.classes)
        cells = np.flatnonzero(forecasts.resolved[forecasts.event_index])
        cells = cells[np.argsort(forecasts.expert_index[cells], kind="stable")]
        event, expert = forecasts.event_index[cells], forecasts.expert_index[cells]
        outcome = forecasts.outcomes[event]
        own = event_priors(forecasts, prior)
        shared = state.prior if state is not None else None
        if own is None and shared is None:
            shared = shared_prior(forecasts, prior, np.ones(t))
        reference = shared[None] if own is None and shared is not None else own[event]  # type: ignore[index]
        floor = FLOOR if state is None else state.panel.settings.floor
        ratios = logodds.log_ratios(forecasts.probabilities[cells], reference, floor)
        p = logodds.softmax(ratios)
        here = np.arange(len(cells))
        started = np.broadcast_to(reference, p.shape)[here, outcome]
        given = p[here, outcome]
        confidence = np.log(given) - np.log1p(-given)
        extremes = BELIEVED if state is None else Extremes(state.panel.settings.extremes.limit)
        absent = logodds.no_options(reference)
        contrasts = extremes.believed(ratios - logodds.prior_log_ratios(reference), absent)
        if forecasts.options is None:
            values, kind, kinds = contrasts @ np.linalg.cholesky(logodds.metric(k)), outcome, k
        else:
            size = forecasts.sizes[event]
            values, kind, kinds = _leading(contrasts, outcome, size), size, k + 1
            outcome = np.zeros_like(outcome)
        cell = expert * kinds + kind
        count = np.bincount(cell, minlength=n * kinds)
        for axis in range(values.shape[1]):
            mean = np.bincount(cell, values[:, axis], n * kinds) / np.maximum(count, 1)
            values[:, axis] -= mean[cell]
        return cls(
            forecasts,
            event,
            expert,
            outcome,
            values,
            confidence,
            confidence - (np.log(started) - np.log1p(-started)),
            np.searchsorted(expert, np.arange(n + 1)),
        )

    def each(self, least: int) -> list[tuple[str, slice]]:
        """Return name and slice of the residuals of each expert with at least `least` resolved forecasts."""
        enough = np.flatnonzero(np.diff(self.starts) >= least)
        return [(self.forecasts.experts[i], slice(int(self.starts[i]), int(self.starts[i + 1]))) for i in enough]

    @property
    def classes(self) -> int:
        """Number of classes, K."""
        return len(self.forecasts.classes)


def _leading(contrasts: Array, outcome: npt.NDArray[np.intp], size: npt.NDArray[np.intp]) -> Array:
    """Contrast of the option that happened less the mean of the other options', scaled to the same variance, (M, 1)."""
    values = np.empty((len(contrasts), 1))
    for k in np.unique(size).tolist():
        rows = np.flatnonzero(size == k)
        values[rows] = helmert(contrasts[rows, : k - 1], outcome[rows])[:, :1]
    return values


# More experts would not be legible.
MOST = 40
# Residuals whose squares add up to less are rounding.
ROUNDING = 1e-16


@dataclass(frozen=True, eq=False)
class SharedErrors:
    """Correlations between the errors of N experts, given the outcome."""

    experts: tuple[str, ...]  # names, in an order in which experts with correlated errors are neighbours
    # (N, N); each shrunken towards the mean of all pairs, the more so the fewer events the pair has in common
    correlation: Array
    common: float  # mean correlation of all pairs
    left_out: int  # experts with forecasts on resolved events who are not shown, because others weigh more


def shared_errors(
    forecasts: Forecasts, learned: FittedPanel, prior: npt.ArrayLike | None = None, most: int = MOST
) -> SharedErrors:
    """Correlations between the errors of at most `most` experts, those with the largest absolute weights."""
    residuals = Residuals.of(forecasts, learned, prior)
    moving = np.bincount(residuals.expert, (residuals.values**2).sum(axis=1), len(forecasts.experts)) > ROUNDING
    informative = np.flatnonzero(moving & learned.panel.informative)
    if len(informative) < 2:
        raise LearningError("errors are shared by two experts at least whose forecasts of resolved events differ")
    kept = np.sort(informative[np.argsort(-np.abs(learned.weights[informative]), kind="stable")[:most]])
    found, shared = _pairs(residuals, kept)
    off = ~np.eye(len(kept), dtype=bool)
    total = shared[off].sum()
    common = float((found * shared)[off].sum() / total) if total > 0 else 0.0
    worth = PAIR_WORTH + len(kept)
    shrunken = (shared * found + worth * common) / (shared + worth)
    np.fill_diagonal(shrunken, 1.0)
    order = Dendrogram.of(shrunken).order
    experts = tuple(forecasts.experts[kept[i]] for i in order.tolist())
    return SharedErrors(experts, shrunken[np.ix_(order, order)], common, len(informative) - len(kept))


def _pairs(residuals: Residuals, kept: npt.NDArray[np.intp]) -> tuple[Array, Array]:
    """Correlation of residuals of each pair of the `kept` experts, (n, n), and number of events that both answered."""
    place = np.full(len(residuals.forecasts.experts), -1)
    place[kept] = np.arange(len(kept))
    column = place[residuals.expert]
    chosen = column >= 0
    shape = (len(residuals.forecasts.events), len(kept))
    values, seen = np.zeros((*shape, residuals.values.shape[1])), np.zeros(shape)
    values[residuals.event[chosen], column[chosen]] = residuals.values[chosen]
    seen[residuals.event[chosen], column[chosen]] = 1.0
    products = np.einsum("tnd,tmd->nm", values, values, optimize=True)
    square = (values**2).sum(axis=2).T @ seen
    scale = np.sqrt(square * square.T)
    found = np.where(scale > 0, products / np.where(scale > 0, scale, 1.0), 0.0)
    return np.clip(found, -1.0, 1.0), seen.T @ seen
