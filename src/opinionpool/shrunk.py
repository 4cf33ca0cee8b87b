"""The default rule: every expert held to the panel, the panel held to what is believed of any panel.

Without data the experts are taken to be unbiased, calibrated (kappa = 1), of accuracy 1 (alone, an area under the
curve of 0.84) and correlated at 0.7, which puts the answer near the average of their log-odds. The panel's
bias, contrast, spread and correlation leave these values as resolved events arrive, which count against a
worth of `PANEL_WORTH` events; each expert's features leave the panel's against `EXPERT_WORTH` of its own
forecasts. All pairs share one correlation.
"""

from __future__ import annotations

import numpy as np

from opinionpool import estimates
from opinionpool.dependence import CommonCorrelation
from opinionpool.errors import Note
from opinionpool.evidence import Evidence
from opinionpool.features import Parts
from opinionpool.logodds import Array

CONTRAST, VARIANCE, CORRELATION = 1.0, 2.0, 0.7
BIAS_WORTH, PANEL_WORTH, EXPERT_WORTH = 10.0, 10.0, 40.0
# A common correlation learned from few pairs is not believed beyond these.
LOWEST, HIGHEST = 0.0, 0.99


def shrunk_parts(evidence: Evidence, reference: Array, experts: tuple[str, ...]) -> tuple[Parts, Array, list[Note]]:
    """A panel for any number of resolved events, none at all too; and its bias, (N, K - 1)."""
    n, k = len(experts), evidence.classes
    events = evidence.answered
    count, mean, square = estimates.pooled_cells(evidence)
    # The forecasts on one event count as one: they are dependent.
    share = np.where(count > 0, events[:, None] / np.where(count > 0, count, 1.0), 0.0)
    cells = count.sum()
    panel = estimates.fit_means(
        count * share,
        mean - reference,
        square * (events.sum() / cells if cells else 0.0),
        contrast=CONTRAST,
        worth=(BIAS_WORTH, PANEL_WORTH),
    )
    freedom = (k - 1) * events.sum()
    variance = (PANEL_WORTH * VARIANCE + panel.square[0]) / (PANEL_WORTH + freedom)
    marginals = evidence.marginals
    each = estimates.fit_means(
        marginals.count[:-1],
        marginals.mean[:-1] - reference,
        marginals.square[0],
        bias=panel.bias,
        contrast=panel.contrast,
        worth=(EXPERT_WORTH, EXPERT_WORTH),
    )
    own = (k - 1) * each.count.sum(axis=0)
    spread = np.sqrt((EXPERT_WORTH * variance + each.square) / (EXPERT_WORTH + own))
    rho = _correlation(evidence, each, reference, spread, n)
    return Parts(each.contrast, spread, CommonCorrelation(n, rho)), each.bias, _notes(events)


def _correlation(evidence: Evidence, each: estimates.Means, reference: Array, spread: Array, n: int) -> float:
    if n == 1:
        return 0.0
    total, pairs = evidence.shared(each.expected(reference), spread)
    worth = float(evidence.answered.sum()) if pairs else 0.0
    found = total / pairs if pairs else 0.0
    rho = (PANEL_WORTH * CORRELATION + worth * found) / (PANEL_WORTH + worth)
    return float(np.clip(rho, LOWEST, HIGHEST))


def _notes(events: Array) -> list[Note]:
    if events.any():
        return []
    text = (
        "no event is resolved, so nothing was learned: the experts are assumed to be unbiased, calibrated, equally "
        f"accurate and correlated at {CORRELATION}"
    )
    return [Note("nothing-learned", text)]
