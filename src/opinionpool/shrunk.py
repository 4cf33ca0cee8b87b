"""Features of experts by themselves, each held to the panel and the panel to what is believed of any.

The panel's values leave the believed ones as resolved events arrive, which count against `PANEL_WORTH` events;
each expert's leave the panel's against `EXPERT_WORTH` of its own forecasts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from opinionpool import estimates
from opinionpool.dependence import CommonCorrelation, Dependence, MatrixCorrelation
from opinionpool.evidence import Evidence
from opinionpool.logodds import Array

CONTRAST, VARIANCE, CORRELATION = 1.0, 2.0, 0.6
PANEL_WORTH, EXPERT_WORTH = 10.0, 40.0
# A correlation learned from few pairs is not believed beyond these.
LOWEST, HIGHEST = 0.0, 0.99
# A correlation for each pair is held to the common one by as many events as there are experts, and this many.
PAIR_WORTH = 40.0
MOST_PAIRED = 200


@dataclass(frozen=True, eq=False)
class HeldFeatures:
    """What is known of each expert by itself, and of their dependence.

    Attributes
    ----------
    bias : ndarray, shape (N, K - 1)
    contrast, spread : ndarray, shape (N,)
        mu and sigma of the contrasts.
    correlation : float
        The common one.
    """

    bias: Array
    contrast: Array
    spread: Array
    correlation: float

    @property
    def calibration(self) -> Array:
        """Calibration kappa = 2 mu / sigma² (13), (N,)."""
        return np.asarray(2.0 * self.contrast / np.where(self.spread > 0, self.spread, np.inf) ** 2)

    @property
    def accuracy(self) -> Array:
        """Accuracy mu* = kappa mu (15), (N,)."""
        return np.asarray(self.calibration * self.contrast)

    def spread_over(self, rows: Callable[[Array], Array]) -> HeldFeatures:
        """The same for more experts, by a function that repeats rows."""
        return HeldFeatures(rows(self.bias), rows(self.contrast), rows(self.spread), self.correlation)


def held_features(evidence: Evidence) -> HeldFeatures:
    """Features from resolved contrasts."""
    marginals, n = evidence.marginals, evidence.marginals.count.shape[1]
    each, variance = _held_means(evidence)
    own = (evidence.classes - 1) * marginals.count[:-1].sum(axis=0)
    spread = np.sqrt((EXPERT_WORTH * variance + each.square) / (EXPERT_WORTH + own))
    return HeldFeatures(each.bias, each.contrast, spread, _common(evidence, each, spread, n))


def held_dependence(evidence: Evidence, features: HeldFeatures) -> Dependence:
    """Between the common correlation and one for each pair, as far as complete evidence goes."""
    n = len(features.spread)
    common = CommonCorrelation(n, features.correlation)
    if not evidence.complete or not 2 < n <= MOST_PAIRED:
        return common
    each, _ = _held_means(evidence)
    found = estimates.correlations(estimates.residual_products(evidence, each, np.zeros(evidence.classes - 1)))
    events = float(evidence.answered.sum())
    share = events / (events + PAIR_WORTH + n)
    return MatrixCorrelation(share * found + (1.0 - share) * common.matrix())


def _held_means(evidence: Evidence) -> tuple[estimates.Means, float]:
    """Means of each expert, held to the panel's, and the panel's variance."""
    marginals, events = evidence.marginals, evidence.answered
    count, mean, square = estimates.pooled_cells(evidence)
    # The forecasts on one event count as one: they are dependent.
    share = np.where(count > 0, events[:, None] / np.where(count > 0, count, 1.0), 0.0)
    of_one = square * (events.sum() / count.sum())
    panel = estimates.fit_means(count * share, mean, of_one, contrast=CONTRAST, worth=(PANEL_WORTH, PANEL_WORTH))
    freedom = (evidence.classes - 1) * events.sum()
    variance = float((PANEL_WORTH * VARIANCE + panel.square[0]) / (PANEL_WORTH + freedom))
    each = estimates.fit_means(
        marginals.count[:-1],
        marginals.mean[:-1],
        marginals.square[0],
        bias=panel.bias,
        contrast=panel.contrast,
        worth=(EXPERT_WORTH, EXPERT_WORTH),
    )
    return each, variance


def _common(evidence: Evidence, each: estimates.Means, spread: Array, n: int) -> float:
    if n == 1:
        return 0.0
    total, pairs = evidence.shared(each.expected(np.zeros(evidence.classes - 1)), spread)
    worth = float(evidence.answered.sum()) if pairs else 0.0
    found = total / ((evidence.classes - 1) * pairs) if pairs else 0.0
    return float(np.clip((PANEL_WORTH * CORRELATION + worth * found) / (PANEL_WORTH + worth), LOWEST, HIGHEST))
