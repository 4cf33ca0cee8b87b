"""Approximate leave-one-out answers of a pool to the events that it was learned from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.estimation.sampling import Draw, event_keys
from opinionpool.learning.posterior import Posterior, answer_rows
from opinionpool.learning.prior import believed_slope
from opinionpool.logodds import log_ratios, prior_log_ratios, public_probabilities
from opinionpool.model.panel import PoolingPanel

if TYPE_CHECKING:
    from opinionpool.learning.problem import Problem

# Events that are kept, the largest leverage of one, the log-odds to which extremes are clipped, and bounds of slopes.
MANY, LEVERAGE, EXTREME, SLOPES = 1000, 0.9, 4.0, (0.1, 10.0)


class LeftOut(NamedTuple):
    """Log-likelihood ratios of R resolved events, each by intercept and weights learned without that event."""

    ratios: Array  # (R, K - 1); of the log pool's answers without the prior
    outcomes: Index  # (R,)
    weight: Array  # (R,); frequencies
    null: Array  # (K - 1,); the ratios if every expert repeats the prior, or the uniform one if the prior is estimated
    slope: float  # regression slope, on `ratios`, of log-likelihood ratios by the weights assumed for any panel


def left_out(panel: PoolingPanel, posterior: Posterior, problem: Problem) -> LeftOut | None:
    """Approximate leave-one-out ratios of resolved events or a sample (Rad & Maleki 2020); None if there are none.

    Leaving out an event with probabilities p, curvature W = diag(p) − pp' and variance A = Z'VZ of its log-ratios
    changes its log-ratios by −A(y − p)/(1 − tr WA), y being its outcome as 0s and 1.
    """
    k, d = len(problem.classes), len(problem.classes) - 1
    problem = problem.select(problem.forecasts.resolved & (problem.weight > 0) & (problem.forecasts.crowd > 0))
    if problem.has_options or not len(problem.weight):
        return None
    if len(problem.weight) > MANY:
        room = np.array([*[MANY // k] * k, 1])
        sample = Draw.of(event_keys(problem.forecasts), problem.outcomes, problem.weight, room)
        problem = replace(problem.select(sample.positions), weight=sample.frequencies(problem.weight))
    found, believed = np.empty((2, len(problem.weight), d))
    for rows, q, (prior,) in problem.forecasts.dense_blocks(panel.names, public_probabilities(problem.reference)):
        assert prior is not None
        batch = panel.read(q, prior)
        gradient, p = posterior.gradient(panel, batch), answer_rows(panel.answers(batch), k)
        variance = np.einsum("tqa,qr,trb->tab", gradient, posterior.whole_covariance, gradient, optimize=True)
        curvature = p[:, 1:, None] * (np.eye(d) - p[:, None, 1:])
        leverage = np.minimum(np.einsum("tab,tba->t", curvature, variance), LEVERAGE)
        beyond = np.eye(k)[problem.outcomes[rows], 1:] - p[:, 1:]
        change = np.einsum("tab,tb->ta", variance, beyond) / (1.0 - leverage)[:, None]
        once = np.minimum(problem.weight[rows], 1.0)[:, None]
        clipped = np.clip(log_ratios(q, problem.reference[rows, None]), -EXTREME, EXTREME)
        count = np.count_nonzero(~np.isnan(clipped[..., 0]), axis=1)
        believed[rows] = np.nanmean(clipped, axis=1) * believed_slope(count.astype(np.float64))[:, None]
        found[rows] = prior_log_ratios(p) - prior_log_ratios(problem.reference[rows]) - once * change
    null = np.zeros(d)
    if problem.estimated and problem.shared is not None:
        even = public_probabilities(np.full((1, len(panel), k), 1.0 / k))
        prior = public_probabilities(problem.shared)
        null = (prior_log_ratios(answer_rows(panel.pool(even, prior), k)) - prior_log_ratios(problem.shared[None]))[0]
    away = found - problem.weight @ found / problem.weight.sum()
    slope = float(np.sum(problem.weight @ (away * believed)) / max(np.sum(problem.weight @ away**2), 1e-300))
    return LeftOut(found, problem.outcomes, problem.weight, null, float(np.clip(slope, *SLOPES)))
