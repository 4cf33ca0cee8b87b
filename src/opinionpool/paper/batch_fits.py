"""Many fits at once: the five pools of the paper's section 5, each on B training samples of the same size.

Every array has the samples on its first axis, so that one call to the linear algebra serves all of them. Results equal
those of the pools of `opinionpool.pools.registry`, including floors and the rule for separated outcomes; the few
samples on which the search for all samples does not converge are fitted by those pools.

Log-odds are (B, T, N), outcomes (B, T) bool, and a pool that adds log-odds is a `LogPools`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.estimation.likelihood import Value
from opinionpool.estimation.logistic import SEPARATED_PENALTY, logistic_fit
from opinionpool.estimation.newton import Loss, newton
from opinionpool.estimation.simplex import simplex_weights
from opinionpool.logodds import POOL_FLOOR, expit

# A linear pool this close to the best, in mean log-likelihood, is the best.
GAP = 1e-8
STEPS = 40
# A curvature of the mean loss this small, in units of the log-odds' spread, leaves open if there is a maximum; what is
# added to it so that a search ends.
FLAT, RIDGE = 1e-7, 1e-13


@dataclass(frozen=True, eq=False)
class LogPools:
    """Pools that add log-odds, one for each of B samples: L° + a + Σ w_i (L_i − L°), L° being the prior's."""

    weights: Array  # (B, N)
    intercept: Array  # (B,)
    reference: Array  # (B,); prior log-odds L°

    def pool(self, ratios: Array) -> Array:
        """Return pooled log-odds (B, T) of the log-odds `ratios` (B, T, N)."""
        constant = self.intercept + self.reference * (1.0 - self.weights.sum(axis=1))
        return np.asarray((ratios @ self.weights[:, :, None])[:, :, 0] + constant[:, None])


@dataclass(frozen=True, eq=False)
class LogisticPools:
    """Logarithmic pools fitted by logistic regression, and which samples have perfectly separated outcomes."""

    pools: LogPools  # fitted to each sample
    separated: Mask  # (B,); True if the likelihood has no maximum
    # coefficients that separate the outcomes of such samples: the likelihood grows as they are multiplied
    limit: LogPools


def laplace_log_odds(y: Mask) -> Array:
    """Return prior log-odds L° by Laplace's estimate (paper, section 5.4, as corrected), (B,), of outcomes (B, T).

    >>> laplace_log_odds(np.array([[True, False, False, False]])).round(4)
    array([-0.6931])
    """
    happened = y.sum(axis=1)
    return np.asarray(np.log((happened + 1.0) / (y.shape[1] - happened + 1.0)))


def mean_scores(log_odds: Array, y: Mask) -> Array:
    """Mean log scores (equation 26), (..., B), of pooled log-odds (..., B, T) after floors; the scoring prior is ½.

    >>> mean_scores(np.array([[0.0, 1e9]]), np.array([[True, False]])).round(3)
    array([-12.788])
    """
    edge = np.log((1.0 - POOL_FLOOR) / POOL_FLOOR)
    against = np.clip(log_odds, -edge, edge) * np.where(y, -1.0, 1.0)
    return np.asarray(1.0 - np.log2(1.0 + np.exp(against)).mean(axis=-1))


def conditional_means(x: Array, y: Mask) -> tuple[Array, Array]:
    """Return the means of the columns of `x` (B, T, N) over events with Y = 0, and with Y = 1, (B, N) each."""
    happened = y[:, None, :].astype(np.float64)
    one = (happened @ x)[:, 0] / y.sum(axis=1)[:, None]
    zero = ((1.0 - happened) @ x)[:, 0] / (~y).sum(axis=1)[:, None]
    return zero, one


def recalibrated(train: Array, y: Mask, test: Array) -> tuple[Array, Array]:
    """Return `train` (B, T, N) and `test` (B, S, N) as calibrated, unbiased log-odds, by the moments of `train`."""
    zero, one = conditional_means(train, y)
    within = train - np.where(y[:, :, None], one[:, None], zero[:, None])
    variance = (within**2).sum(axis=1) / (y.shape[1] - 2.0)
    slope, middle = (one - zero) / variance, (one + zero) / 2.0
    reference = laplace_log_odds(y)[:, None, None]
    updated = [reference + slope[:, None] * (x - middle[:, None]) for x in (train, test)]
    return updated[0], updated[1]


def gaussian_pools(x: Array, y: Mask) -> LogPools:
    """Gaussian pools with weights 2 Σ̂⁻¹ μ̂ by sample moments (5.4); a LinAlgError if a covariance is singular."""
    reference = laplace_log_odds(y)
    zero, one = conditional_means(x, y)
    contrast, bias = (one - zero) / 2.0, (one + zero) / 2.0 - reference[:, None]
    ratios = _by_expert(x)
    within = ratios - np.where(y[:, None, :], one[:, :, None], zero[:, :, None])
    covariance = within @ np.swapaxes(within, 1, 2) / (x.shape[1] - 2.0)
    weights = 2.0 * np.linalg.solve(covariance, contrast[:, :, None])[:, :, 0]
    return LogPools(weights, -(weights * bias).sum(axis=1), reference)


def independent_pools(x: Array, y: Mask) -> LogPools:
    """Return the independent pools (paper, equation 23) as log pools: weights 1, with Laplace's prior."""
    reference = laplace_log_odds(y)
    return LogPools(np.ones((len(x), x.shape[2])), np.zeros(len(x)), reference)


def logistic_pools(x: Array, y: Mask, gaussian: LogPools) -> LogisticPools:
    """Return log pools fitted by logistic regression to each sample, and coefficients that separate separable outcomes.

    The search starts from the Gaussian pools of the samples, which are near. A negligible ridge penalty lets it
    converge for separated samples too, at weights that separate the outcomes.
    """
    b, t, n = x.shape
    reference = laplace_log_odds(y)
    contrasts = _by_expert(x) - reference[:, None, None]
    centre, spread = contrasts.mean(axis=2), contrasts.std(axis=2)
    design = np.ones((b, n + 1, t))
    design[:, :n] = (contrasts - centre[:, :, None]) / spread[:, :, None]
    start = np.empty((b, n + 1))
    start[:, :n] = gaussian.weights * spread
    start[:, n] = gaussian.intercept + (gaussian.weights * centre).sum(axis=1)
    sign, offset = np.where(y, 1.0, -1.0), np.tile(reference[:, None], t)
    found = newton(_loss(design, sign, offset), np.tile(RIDGE * t * np.eye(n + 1), (b, 1, 1)), start)
    weights = found.theta[:, :n] / spread
    intercept = found.theta[:, n] - (weights * centre).sum(axis=1)
    separated = np.asarray((sign * (offset + (found.theta[:, None] @ design)[:, 0]) > 0).all(axis=1))
    limit = LogPools(weights.copy(), intercept.copy(), reference)
    unsure = ~separated & (~found.converged | (np.linalg.eigvalsh(found.hessian)[:, 0] <= FLAT * t))
    if separated.any():
        penalty = SEPARATED_PENALTY * np.diag(np.append(np.full(n, float(n)), 1.0))
        raw = np.concatenate([contrasts[separated], np.ones((separated.sum(), 1, t))], axis=1)
        near = offset[separated] + contrasts[separated].mean(axis=1)
        kept = newton(
            _loss(raw, sign[separated], near), np.tile(penalty, (len(raw), 1, 1)), np.zeros((len(raw), n + 1))
        )
        weights[separated], intercept[separated] = 1.0 / n + kept.theta[:, :n], kept.theta[:, n]
    for i in np.flatnonzero(unsure):
        fit = logistic_fit(contrasts[i].T, y[i].astype(np.int64), reference[i])
        weights[i], intercept[i], separated[i] = fit.weights, fit.intercept[0], fit.separated
    return LogisticPools(LogPools(weights, intercept, reference), separated, limit)


def _loss(design: Array, sign: Array, offset: Array) -> Loss:
    """Loss Σ log(1 + exp(−s (offset + θ·z))) of each sample, with derivatives; s is `sign`, z (B, P, T) `design`."""

    def loss(which: Index, theta: Array) -> Value:
        z, s = (design, sign) if len(which) == len(design) else (design[which], sign[which])
        margin = s * (offset[which] + (theta[:, None, :] @ z)[:, 0])
        small = np.exp(-np.abs(margin))
        miss = np.where(margin >= 0, small, 1.0) / (1.0 + small)
        gradient = -(z @ (s * miss)[:, :, None])[:, :, 0]
        hessian = (z * (miss * (1.0 - miss))[:, None, :]) @ np.swapaxes(z, 1, 2)
        return Value((np.log1p(small) + np.maximum(-margin, 0.0)).sum(axis=1), gradient, hessian)

    return loss


def _by_expert(x: Array) -> Array:
    """Return a copy (B, N, T) of `x` (B, T, N), so that operations over events run along contiguous memory."""
    return np.ascontiguousarray(np.swapaxes(x, 1, 2))


def linear_weights(x: Array, y: Mask) -> Array:
    """Return weights of the linear pool (equation 1), (B, N), of maximum likelihood, by an interior-point method.

    The minimum of −mean log(q w) + Σ w over w ≥ 0 has Σ w = 1. The bound on its error is that of `simplex_weights`.
    """
    q = expit(_by_expert(x) * np.where(y, 1.0, -1.0)[:, None, :])
    b, n, t = q.shape
    if n == 1:
        return np.ones((b, 1))
    weights, gap, diagonal = np.full((b, n), 1.0 / n), np.full(b, np.inf), np.arange(n)
    rows, part, dual = np.arange(b), q, np.full((b, n), 0.005)
    for _ in range(STEPS):
        w = weights[rows]
        scaled = part / (w[:, None, :] @ part)
        score = scaled.sum(axis=2) / t - 1.0
        gap[rows] = (score.max(axis=1) + 1.0) * w.sum(axis=1) - 1.0
        on = gap[rows] > GAP
        if not on.all():
            rows, part, dual, w = rows[on], part[on], dual[on], w[on]
            scaled, score = scaled[on], score[on]
            if not len(rows):
                break
        level = (w * dual).mean(axis=1, keepdims=True)
        # Towards the end the barrier falls with the square of what is left.
        barrier = level * np.minimum(0.03, 10.0 * level)
        hessian = scaled @ np.swapaxes(scaled, 1, 2) / t
        hessian[:, diagonal, diagonal] += dual / w + 1e-14
        step = np.linalg.solve(hessian, (score + barrier / w)[:, :, None])[:, :, 0]
        turn = barrier / w - dual - dual / w * step
        weights[rows] = w + _within(w, step) * step
        dual = dual + _within(dual, turn) * turn
    weights /= weights.sum(axis=1, keepdims=True)
    for i in np.flatnonzero(gap > GAP):
        weights[i] = simplex_weights(q[i].T).weights
    return weights


def _within(value: Array, step: Array) -> Array:
    """For each sample the largest fraction, at most 1, of `step` that keeps a positive `value` positive, (B, 1)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(step < 0, -value / step, np.inf).min(axis=1, keepdims=True)
    return np.asarray(np.minimum(1.0, 0.995 * room))


def linear_log_odds(weights: Array, q: Array) -> Array:
    """Return log-odds (B, T) of the linear pool: floored probabilities `q` (B, T, N) averaged with `weights` (B, N)."""
    p = (q @ weights[:, :, None])[:, :, 0]
    return np.asarray(np.log(p / (1.0 - p)))
