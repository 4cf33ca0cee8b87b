"""Bias, spread and correlation of experts, each held to the panel and the panel to what is believed of any.

The panel's values leave the believed ones as resolved events arrive, which count against `PANEL_WORTH` events;
each expert's leave the panel's against `EXPERT_WORTH` of its own forecasts.
"""

from __future__ import annotations

import numpy as np

from opinionpool import estimates
from opinionpool.dependence import CommonCorrelation, Dependence, MatrixCorrelation
from opinionpool.evidence import Evidence
from opinionpool.logodds import Array

CONTRAST, VARIANCE, CORRELATION = 1.0, 2.0, 0.65
PANEL_WORTH, EXPERT_WORTH = 10.0, 40.0
# A correlation learned from few pairs is not believed beyond these.
LOWEST, HIGHEST = 0.0, 0.99
# A correlation for each pair is held to the common one by as many events as there are experts, and this many.
PAIR_WORTH = 40.0
MOST_PAIRED = 200


def shrunk_features(evidence: Evidence) -> tuple[Array, float, Array]:
    """Spread (N,), common correlation, and bias (N, K - 1) relative to the panel's, of resolved contrasts."""
    marginals, n = evidence.marginals, evidence.marginals.count.shape[1]
    each, variance = _held_means(evidence)
    own = (evidence.classes - 1) * marginals.count[:-1].sum(axis=0)
    spread = np.sqrt((EXPERT_WORTH * variance + each.square) / (EXPERT_WORTH + own))
    return spread, _common(evidence, each, spread, n), each.bias - each.bias.mean(axis=0)


def shrunk_dependence(evidence: Evidence, rho: float) -> Dependence:
    """Between the common correlation and one for each pair, as far as complete evidence goes."""
    n = evidence.marginals.count.shape[1]
    common = CommonCorrelation(n, rho)
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
    found = total / pairs if pairs else 0.0
    return float(np.clip((PANEL_WORTH * CORRELATION + worth * found) / (PANEL_WORTH + worth), LOWEST, HIGHEST))
