"""What is left of forecasts on resolved events when what experts say on average, given the outcome, is taken off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.extremes import Extremes
from opinionpool.forecasts import Forecasts
from opinionpool.learn import LearnedPanel
from opinionpool.logodds import FLOOR, Array
from opinionpool.optionrows import turned
from opinionpool.priors import event_priors, shared_prior

# How far extremes are believed, about, before any fit.
BELIEVED = Extremes(5.0)


@dataclass(frozen=True, eq=False)
class Residuals:
    """What experts said on resolved events, beyond what they say on average given what happened, ordered by expert.

    Extremes count as far as they are believed.

    Attributes
    ----------
    forecasts : Forecasts
    event, expert : ndarray of int, shape (M,)
    outcome : ndarray of int, shape (M,)
        Where events have options of their own, which cannot be compared, 0.
    values : ndarray, shape (M, K - 1)
        In coordinates of equal variance, uncorrelated where the noise is the same for all classes. Where events have
        options of their own, (M, 1): from the other options to the one that happened.
    confidence : ndarray, shape (M,)
        Log-odds given to what happened.
    beyond : ndarray, shape (M,)
        The same less the prior's.
    starts : ndarray of int, shape (N + 1,)
        Where each expert's begin.
    """

    forecasts: Forecasts
    event: npt.NDArray[np.intp]
    expert: npt.NDArray[np.intp]
    outcome: npt.NDArray[np.intp]
    values: Array
    confidence: Array
    beyond: Array
    starts: npt.NDArray[np.intp]

    @classmethod
    def of(
        cls, forecasts: Forecasts, state: LearnedPanel | None = None, prior: npt.ArrayLike | None = None
    ) -> Residuals:
        """Those of some forecasts; prior, floor and belief in extremes are those of `state` if there is one."""
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
        """Experts with so many forecasts on resolved events, and where these are."""
        enough = np.flatnonzero(np.diff(self.starts) >= least)
        return [(self.forecasts.experts[i], slice(int(self.starts[i]), int(self.starts[i + 1]))) for i in enough]

    @property
    def classes(self) -> int:
        """K."""
        return len(self.forecasts.classes)


def _leading(contrasts: Array, outcome: npt.NDArray[np.intp], size: npt.NDArray[np.intp]) -> Array:
    """The coordinate that points to what happened, (M, 1), of contrasts over the first so many options."""
    values = np.empty((len(contrasts), 1))
    for k in np.unique(size).tolist():
        rows = np.flatnonzero(size == k)
        values[rows] = turned(contrasts[rows, : k - 1], outcome[rows])[:, :1]
    return values
