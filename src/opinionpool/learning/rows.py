"""What the default pool learns from: resolved events with a forecast, as an array of contrasts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask
from opinionpool.estimation.coefficients import WeightBeliefs
from opinionpool.estimation.regression import Observations
from opinionpool.estimation.rows import ResolvedEvents, option_rows, resolved_events
from opinionpool.estimation.sampling import spread_evenly
from opinionpool.learning.prior import SLOPE, Believed
from opinionpool.learning.problem import DenseContrasts
from opinionpool.learning.topic_fit import together
from opinionpool.learning.unlearned import MOST_UNCERTAIN
from opinionpool.learning.weight_beliefs import weight_beliefs
from opinionpool.logodds import expit, logit, whitened
from opinionpool.model.contrasts import Extremes
from opinionpool.model.correlation import Dependence
from opinionpool.model.features import Parts

PRIOR_WORTH = 20.0
# No log pool is quite right, so T outcomes count (T + `COUNTED`) / (T + `ALL`) times: too much would be learned from
# the first ones, as where they happen to be easy.
COUNTED, ALL = 185.0, 300.0
# Values are chosen on so many events of so many experts, and of fewer on more, as the products of their forecasts are
# what takes time; and on no more forecasts than these.
CHOOSING, CHOOSING_EXPERTS, CHOOSING_FORECASTS = 4096, 20, 1 << 20


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows(DenseContrasts):
    """Resolved events with a forecast, and how far Laplace's estimate is from what is believed of the prior."""

    base_intercept: Array
    expected: Array | None = None  # (N,); the weights that are believed

    def beliefs(self, believed: Believed, rho: float, slope: float = SLOPE) -> WeightBeliefs:
        """Beliefs about weights of experts as dependent as that."""
        return weight_beliefs(believed, rho, self.free, slope, options=self.absent is not None)

    def thinned(self) -> Rows:
        """So many events that more would hardly change a choice."""
        n = self.contrasts.shape[1]
        more = max(1.0, CHOOSING_EXPERTS / (n * self.free**2)) ** 2
        count = min(int(more * CHOOSING), max(1, CHOOSING_FORECASTS // n))
        if self.weight.sum() <= count:
            return self
        moved = whitened(np.where(np.isnan(self.contrasts), 0.0, self.contrasts))
        size = np.einsum("tnd,tnd->t", moved, moved)
        kept, weight = spread_evenly(size, self.weight, count)
        return replace(
            self,
            contrasts=self.contrasts[kept],
            reference=self.reference[kept],
            outcomes=self.outcomes[kept],
            weight=weight,
            absent=None if self.absent is None else self.absent[kept],
            topics=None if self.topics is None else self.topics[kept],
            certain=None if self.certain is None else self.certain[kept],
        )

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

    def observed(self, spread: Array, fill: Dependence, extremes: Extremes) -> Observations:
        """What a regression sees; where forecasts are missing, experts are taken to be correlated as `fill` says."""
        parts = Parts(np.zeros(len(spread)), spread, fill)
        full = parts.fill(extremes.deviation(self.contrasts, each_expert(self.absent)))
        offset, events = self.reference - self.base_intercept, float(self.weight.sum())
        counted = (events + COUNTED) / (events + ALL)
        return Observations(full, offset, self.outcomes, counted * self.weight, self.expected)


def each_expert(absent: Mask | None) -> Mask | None:
    """The same for every expert, (T, 1, K - 1)."""
    return None if absent is None else absent[:, None, :]


def rows_of(data: DenseContrasts, distinct: Array, first: Index, used: Mask) -> Rows:
    """What distinct experts, the `first` of their groups, forecast of the events that are learned from."""
    base_intercept = np.zeros(data.free)
    if data.estimated:
        base_intercept = data.reference[0] * PRIOR_WORTH / (data.weight[data.resolved].sum() + PRIOR_WORTH)
    return Rows(
        distinct if used.all() else distinct[used],
        data.reference[used],
        data.outcomes[used],
        data.weight[used],
        data.experts,
        None if data.absent is None else data.absent[used],
        topics=_topics(data, used),
        certain=None if data.certain is None else data.certain[np.ix_(used, first)],
        base_intercept=base_intercept,
    )


def _topics(data: DenseContrasts, used: Mask) -> npt.NDArray[np.str_] | None:
    """Topics of the events that are learned from, where they are learned together with the weights."""
    if data.topics is None or data.absent is not None or len(data.experts) > MOST_UNCERTAIN:
        return None
    found = data.topics[used]
    return found if together(found, len(data.experts), data.free) else None
