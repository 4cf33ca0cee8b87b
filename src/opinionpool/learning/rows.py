"""What the default pool learns from: resolved events with a forecast, as an array of contrasts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.estimation.regression import Observations
from opinionpool.estimation.rows import ResolvedEvents, option_rows, resolved_events
from opinionpool.learning.prior import PRIOR_EVENTS
from opinionpool.learning.problem import DenseContrasts
from opinionpool.logodds import expit, logit
from opinionpool.model.contrasts import Extremes
from opinionpool.model.features import Parts


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows(DenseContrasts):
    """Resolved events with a forecast, and how far Laplace's estimate is from what is believed of the prior."""

    base_intercept: Array

    def evidence(self, contrasts: Array) -> ResolvedEvents:
        """What contrasts of these events (T, N, K - 1), NaN where missing, say of experts."""
        sizes = self.sizes
        if sizes is not None:
            event, expert = np.nonzero(~np.isnan(contrasts[..., 0]))
            forecast = contrasts[event, expert]
            return option_rows(event, expert, forecast, self.outcomes, self.weight, sizes, contrasts.shape[1])
        names = tuple(str(i) for i in range(contrasts.shape[1]))
        return resolved_events(contrasts, self.outcomes, self.weight, names)

    def by_steps(self) -> Array:
        """The contrasts, in which forecasts of 0 and 1 are a fourth of the expert's smallest step away from these.

        Who rounds to tenths means less than one in twenty by 0, not one in ten thousand, as the floor has it.
        """
        if self.certain is None:
            return self.contrasts
        ratios = (self.contrasts + self.reference[:, None, :])[..., 0]
        step = np.where(self.certain | np.isnan(ratios), 1.0, expit(-np.abs(ratios))).min(axis=0)
        least = np.where(step < 1.0, logit(1.0 - step / 4.0), np.inf)
        rounded = np.clip(ratios, -least, least)[..., None] - self.reference[:, None, :]
        return np.where(self.certain[..., None], rounded, self.contrasts)

    def observed(self, fill: Parts, extremes: Extremes) -> Observations:
        """What a regression sees, with forecasts that are missing as `fill` expects them."""
        full = fill.fill(extremes.deviation(self.contrasts, each_expert(self.absent)))
        return Observations(full, self.reference - self.base_intercept, self.outcomes, self.weight)


def each_expert(absent: Mask | None) -> Mask | None:
    """The same for every expert, (T, 1, K - 1)."""
    return None if absent is None else absent[:, None, :]


def rows_of(data: DenseContrasts, distinct: Array, first: Index, used: Mask) -> Rows:
    """What distinct experts, the `first` of their groups, forecast of the events that are learned from."""
    base_intercept = np.zeros(data.free)
    if data.estimated:
        base_intercept = data.reference[0] * PRIOR_EVENTS / (data.weight[data.resolved].sum() + PRIOR_EVENTS)
    return Rows(
        distinct if used.all() else distinct[used],
        data.reference[used],
        data.outcomes[used],
        data.weight[used],
        data.experts,
        None if data.absent is None else data.absent[used],
        certain=None if data.certain is None else data.certain[np.ix_(used, first)],
        base_intercept=base_intercept,
    )
