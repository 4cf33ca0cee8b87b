"""The posterior by a quadratic expansion of the log-likelihood about a point (docs/model.md, 10.5).

Given the node of the prior and the sum of the weights, intercept and weights θ then have a closed form. Events on topic
g have an intercept and a slope besides, η_t = L°_t + a + Σ_i w_i u_ti + a_g + s_g z_t, z_t the common L* − L° there
(10.7). These φ_g are normal about 0 with the same standard deviations for all topics, a few levels of which are
averaged by evidence; one is that topics do not differ. Given θ topics are independent of each other, so φ is integrated
out one topic after the other, and what is left is a quadratic function of θ, as without topics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.estimation.likelihood import Design, softmax, value
from opinionpool.estimation.newton import posterior_probabilities
from opinionpool.estimation.regression import Observations, intercept_root
from opinionpool.learning.constants import TOPIC_PROBABILITIES, TOPICS
from opinionpool.learning.nodes import Nodes

# Numbers in the Hessians of all pairs of a node and a sum that are kept.
FITTED = 1 << 19


class Quadratic(NamedTuple):
    """Quadratic expansion of a log-likelihood: constant + l'θ − θ'Hθ/2, l being `slope` and H `curvature`."""

    constant: float
    slope: Array  # (Q,)
    curvature: Array  # (Q, Q)

    def and_of(self, other: Quadratic) -> Quadratic:
        """Return the sum of this log-likelihood and `other`, that of other events."""
        return Quadratic(self.constant + other.constant, self.slope + other.slope, self.curvature + other.curvature)

    @classmethod
    def at(cls, design: Design, point: Array) -> Quadratic:
        """Return the quadratic expansion of a log-likelihood about the coefficients `point` (Q,)."""
        found = value(design, point[None])
        loss, gradient, hessian = float(found.loss[0]), found.gradient[0], found.hessian[0]
        bent = hessian @ point
        return cls(float(-loss + gradient @ point - bent @ point / 2.0), bent - gradient, hessian)


class Arrow(NamedTuple):
    """Quadratic expansion of a log-likelihood in Q common coefficients θ and P coefficients φ_g of each of G topics."""

    common: Quadratic  # where φ is 0
    slope: Array  # (G, P)
    cross: Array  # (G, P, Q); −∂²/∂φ∂θ'
    curvature: Array  # (G, P, P)
    events: Array  # (G,); weight of the events of each topic

    @classmethod
    def plain(cls, common: Quadratic, d: int) -> Arrow:
        """Return `common`, an expansion in the common coefficients, as an expansion with no topics; d = K - 1."""
        p, q = d + 1, len(common.slope)
        return cls(common, np.empty((0, p)), np.empty((0, p, q)), np.empty((0, p, p)), np.empty(0))

    @classmethod
    def at(cls, observed: Observations, design: Design, point: Array) -> Arrow:
        """Return the expansion about `point`, which has Q coefficients of the design, then those of topics, if any."""
        d, q, t = observed.free, design.size, len(observed.weight)
        if len(point) == q:
            return cls.plain(Quadratic.at(design, point), d)
        assert observed.topics is not None
        member, point, effects = observed.topics.member, point[:q], point[q:].reshape(-1, d + 1)
        beyond = beyond_prior(observed, design, point)
        # The last row is for events without a topic.
        own = np.vstack([effects, np.zeros(d + 1)])[member]
        design = replace(design, offset=design.offset + (own[:, :d] + own[:, d:] * beyond).T)
        about, happened = Quadratic.at(design, point), design.happened()
        p, weight, one = (
            softmax(design.ratios(point[None]))[0][0].T,
            observed.weight,
            np.broadcast_to(np.eye(d), (t, d, d)),
        )
        bent = weight[:, None, None] * p[:, :, None] * (np.eye(d) - p[:, None, :])
        seen = np.concatenate([one] * len(design.features) + [np.transpose(design.columns, (2, 1, 0))], axis=2)
        mine = np.concatenate([one, beyond[:, :, None]], axis=2)
        turned = np.swapaxes(mine, 1, 2)
        among = (member == np.arange(len(effects))[:, None]).astype(np.float64)

        def by_topic(values: Array) -> Array:
            return np.asarray((among @ values.reshape(t, -1)).reshape(len(effects), *values.shape[1:]))

        pull = by_topic((turned @ (weight[:, None] * (happened.T - p))[..., None])[..., 0])
        cross, curvature = by_topic(turned @ (bent @ seen)), by_topic(turned @ (bent @ mine))
        inner = np.einsum("gij,gj->gi", curvature, effects)
        beside = np.einsum("gij,gi->j", cross, effects)
        constant = -float((effects * (pull + inner / 2.0)).sum() + beside @ point)
        common = Quadratic(about.constant + constant, about.slope + beside, about.curvature)
        return cls(common, pull + inner + cross @ point, cross, curvature, among @ weight)

    def and_of(self, other: Arrow) -> Arrow:
        """Return the sum of this log-likelihood and `other`, that of other events."""
        return Arrow(self.common.and_of(other.common), *(a + b for a, b in zip(self[1:], other[1:], strict=True)))

    def square(self, step: Array) -> float:
        """Return the squared length of a `step` in the common coefficients, in standard deviations."""
        common = step[: len(self.common.slope)]
        return float(common @ self.common.curvature @ common)

    def without_topics(self, root: Array) -> tuple[Quadratic, Array]:
        """Expansion in θ only, averaged over topics' φ_g ~ N(0, root root'); covariances of φ_g given θ, (G, P, P)."""
        if not len(self.slope):
            return self.common, self.curvature
        inner = root.T @ self.curvature @ root + np.eye(len(root))
        gain = root @ np.linalg.solve(inner, np.broadcast_to(root.T, inner.shape))
        moved = np.einsum("gij,gj->gi", gain, self.slope)
        constant = ((self.slope * moved).sum() - np.linalg.slogdet(inner)[1].sum()) / 2.0
        less = np.einsum("gip,gij,gjq->pq", self.cross, gain, self.cross, optimize=True)
        about, slope = self.common, np.einsum("gij,gi->j", self.cross, moved)
        return Quadratic(about.constant + float(constant), about.slope - slope, about.curvature - less), gain


def beyond_prior(observed: Observations, design: Design, point: Array) -> Array:
    """Log-ratios of answers without topic effects less the prior's, (T, K - 1), to which topics' slopes apply."""
    assert observed.topics is not None
    return np.asarray((design.ratios(point[None])[0] - design.offset).T + observed.topics.base)


def topic_roots(d: int) -> Array:
    """Return a root of the prior covariance of a topic's intercept and slope, for each of L `TOPICS`, (L, P, P)."""
    root = np.zeros((len(TOPICS), d + 1, d + 1))
    for own, (intercept, slope) in zip(root, TOPICS, strict=True):
        own[:d, :d], own[d, d] = intercept_root(intercept, d), slope
    return root


class Pairs(NamedTuple):
    """M pairs of an alternative prior (node) and a normal of the weights' sum, with posterior moments of each."""

    level: Index  # (M,)
    node: Index  # (M,)
    total: Index  # (M,); which normal of the sum
    score: Array  # (M,); log of the prior probability times the marginal likelihood
    mean: Array  # (M, Q), or (M, Q + G P) if topics' coefficients are included
    covariance: Array | None  # (M, Q, Q), or (M, Q + G P, Q + G P)

    def some(self, which: Mask | Index) -> Pairs:
        """Return the pairs at the positions, or in the mask, `which`."""
        covariance = None if self.covariance is None else self.covariance[which]
        pair = self.level[which], self.node[which], self.total[which]
        return Pairs(*pair, self.score[which], self.mean[which], covariance)

    @property
    def probability(self) -> Array:
        """Posterior probability of each pair, (M,)."""
        return posterior_probabilities(self.score, 1.0)


@dataclass(frozen=True, eq=False)
class Deviations:
    """Posterior covariances of the weights, given the intercept and the sum of weights, under B alternative priors."""

    vectors: Array  # (B or 1, N, P); V
    gain: Array  # (B, P); g
    less: Array  # (B, N); c
    half_log_determinant: Array  # (B,); of the precision in units of the prior's

    @classmethod
    def of(cls, curvature: Array, nodes: Nodes) -> Deviations:
        """Return the covariances under all alternative priors `nodes`; `curvature` (N, N) is the log-likelihood's."""
        if nodes.own is not None:
            turned = np.swapaxes(nodes.own, 1, 2)
            factor = np.linalg.cholesky(turned @ (curvature @ nodes.own) + np.eye(len(turned[0])))
            vectors = np.swapaxes(np.linalg.solve(factor, turned), 1, 2)
            size = np.log(np.einsum("bpp->bp", factor)).sum(axis=1)
            return cls(vectors, np.ones((len(vectors), len(turned[0]))), np.zeros(vectors.shape[:2]), size)
        # Given the sum, h'w is known: of A = (H + I/τ²)⁻¹ what is left is A − Ahh'A / h'Ah.
        (h, tau), (value, vector) = nodes.across(), np.linalg.eigh(curvature)
        precision = 1.0 + tau[:, None] ** 2 * value
        gain, seen = tau[:, None] ** 2 / precision, h @ vector
        part = (seen**2 / precision).sum(axis=1)
        less = (gain * seen) @ vector.T / np.maximum(tau * np.sqrt(part), 1e-300)[:, None]
        return cls(vector[None], gain, less, (np.log(precision).sum(axis=1) + np.log(part)) / 2.0)

    def times(self, x: Array) -> Array:
        """Return the covariance under each prior times `x` (B, Q, M), of which only the last N rows are for weights."""
        own, found = x[:, -self.vectors.shape[1] :], np.zeros(x.shape)
        inner = self.gain[..., None] * _each_times(np.swapaxes(self.vectors, 1, 2), own)
        found[:, -own.shape[1] :] = _each_times(self.vectors, inner) - self.less[..., None] * (self.less[:, None] @ own)
        return found

    def whole(self, nodes: Index, size: int) -> Array:
        """Return covariances of Q = `size` coefficients under the priors `nodes` (M,), 0 except between weights."""
        node, place = np.unique(nodes, return_inverse=True)
        vectors, less = self.vectors[node if len(self.vectors) > 1 else [0]], self.less[node]
        found = np.zeros((len(node), size, size))
        own = found[:, -vectors.shape[1] :, -vectors.shape[1] :]
        own[:] = (vectors * self.gain[node, None]) @ np.swapaxes(vectors, 1, 2) - less[:, :, None] * less[:, None]
        return found[place]


def _each_times(matrices: Array, x: Array) -> Array:
    """Return the products `matrices` @ `x`, (B, P, M); `matrices` are (B, P, N), or (1, P, N) if all are one."""
    if len(matrices) > 1:
        return matrices @ x
    b, n, m = x.shape
    return np.swapaxes((matrices[0] @ np.swapaxes(x, 0, 1).reshape(n, b * m)).reshape(-1, b, m), 0, 1)


@dataclass(frozen=True, eq=False)
class Approximation:
    """Posterior of Q coefficients under B alternative priors (nodes), each with J normals of the sum of weights."""

    score: Array  # (B, J); log of the prior probability times the marginal likelihood
    mean: Array  # (B, J, Q)
    deviations: Deviations  # covariances given intercept and sum
    along: Array  # (B, Q, K); derivatives of coefficients by intercept and sum
    left: Array  # (B, J, K, K); covariance of intercept and sum

    @property
    def log_marginal_likelihood(self) -> float:
        """Log probability of the outcomes, averaged over alternative priors and over normals of the weights' sum."""
        return float(np.logaddexp.reduce(self.score, axis=None))

    @property
    def centre(self) -> Array:
        """Posterior mean of the coefficients, (Q,)."""
        return np.asarray(np.einsum("bj,bjq->q", posterior_probabilities(self.score, 1.0), self.mean))

    def covariances(self, node: Index, total: Index) -> Array:
        """Covariances of coefficients, (M, Q, Q), under priors `node` (M,) and normals `total` (M,) of the sum."""
        along = self.along[node]
        found = along @ self.left[node, total] @ np.swapaxes(along, 1, 2)
        found += self.deviations.whole(node, along.shape[1])
        return found


def by_quadratic(about: Quadratic, nodes: Nodes) -> Approximation:
    """Posterior by the expansion `about` in closed form: of intercept and weights' sum, and of weights given these."""
    d, v = nodes.free, nodes.direction
    deviations = Deviations.of(about.curvature[d:, d:], nodes)
    b, q, sums = len(v), len(about.slope), nodes.sums
    fixed = np.zeros((b, q, d + 1))
    fixed[:, :d, :d] = nodes.intercept
    fixed[:, d:, d] = v
    seen = about.curvature @ fixed
    inward = deviations.times(np.concatenate([seen, np.tile(about.slope[:, None], (b, 1, 1))], axis=2))
    along, pulled = fixed - inward[..., :-1], inward[..., -1]
    slope = np.einsum("bqk,q->bk", along, about.slope)
    curvature = np.swapaxes(along, 1, 2) @ seen
    constant = about.constant + pulled @ about.slope / 2.0 - deviations.half_log_determinant
    j = len(sums.value)
    start, scale = np.zeros((j, d + 1)), np.ones((j, d + 1))
    start[:, d], scale[:, :d], scale[:, d] = sums.value, sums.intercept[:, None], sums.sd
    precision = scale[:, :, None] * curvature[:, None] * scale[:, None, :] + np.eye(d + 1)
    right = scale * (slope[:, None] - start @ curvature)
    left = np.linalg.inv(precision)
    moved = (left @ right[..., None])[..., 0]
    score = constant[:, None] + slope @ start.T - np.einsum("ja,bac,jc->bj", start, curvature, start) / 2.0
    score += (right * moved).sum(axis=2) / 2.0 - np.linalg.slogdet(precision)[1] / 2.0
    score += np.log(np.outer(nodes.probability, sums.probability))
    mean = (start + scale * moved) @ np.swapaxes(along, 1, 2) + pulled[:, None]
    return Approximation(score, mean, deviations, along, scale[:, :, None] * left * scale[:, None, :])


class Level(NamedTuple):
    """Posterior of common and topics' coefficients, for one assumed variance between topics."""

    found: Approximation  # posterior of the common coefficients, times the prior probability of this variance
    gain: Array  # (G, P, P); covariances of topics' coefficients given the common coefficients
    at_zero: Array  # (G, P); means of topics' coefficients if the common ones are 0
    follow: Array  # (G, P, Q); derivatives of these means by the common coefficients

    def wide(self, common: Array) -> Array:
        """Append to `common` coefficients (..., Q) the topics' mean coefficients given these, (..., Q + G P)."""
        effects = self.at_zero.ravel() + common @ self.follow.reshape(-1, self.follow.shape[2]).T
        return np.concatenate([common, effects], axis=-1)

    def covariances(self, common: Array) -> Array:
        """Covariances of all coefficients: those of the common ones, `common` (M, Q, Q), extended by the topics'."""
        follow = self.follow.reshape(-1, self.follow.shape[2])
        if not len(follow):
            return common
        beside = follow @ common
        own = beside @ follow.T + block_diagonal(self.gain)
        return np.block([[common, np.swapaxes(beside, 1, 2)], [beside, own]])


@dataclass(frozen=True, eq=False)
class Levels:
    """Posteriors by a quadratic expansion, one for each assumed variance between topics; without topics only one."""

    about: Arrow  # expansion of the log-likelihood
    each: tuple[Level, ...]  # one for each of `TOPICS`

    @classmethod
    def of(cls, about: Arrow, nodes: Nodes) -> Levels:
        """Return the posterior by the expansion `about` of the log-likelihood."""
        found, roots, prior = [], topic_roots(nodes.free), np.log(TOPIC_PROBABILITIES)
        if not len(about.slope):
            roots, prior = roots[:1], np.zeros(1)
        for root, own in zip(roots, prior.tolist(), strict=True):
            common, gain = about.without_topics(root)
            common = common._replace(constant=common.constant + own)
            at_zero = np.einsum("gij,gj->gi", gain, about.slope)
            found.append(Level(by_quadratic(common, nodes), gain, at_zero, -gain @ about.cross))
        return cls(about, tuple(found))

    @property
    def log_marginal_likelihood(self) -> float:
        """Log marginal likelihood: log probability of the outcomes, averaged over assumed variances between topics."""
        return float(np.logaddexp.reduce([own.found.log_marginal_likelihood for own in self.each]))

    @property
    def centre(self) -> Array:
        """Posterior mean of the common coefficients and then of the topics' coefficients, (Q + G P,)."""
        share = posterior_probabilities([own.found.log_marginal_likelihood for own in self.each], 1.0)
        return np.asarray(share @ np.array([own.wide(own.found.centre) for own in self.each]))

    def likely(self, least: float, size: int, *, covariances: bool) -> Pairs:
        """Pairs (prior, sum of weights) with log probability over the highest plus `least`; few if `size` is large."""
        scores = np.array([own.found.score for own in self.each])
        level, node, total = np.nonzero(scores > scores.max() + least)
        order = np.argsort(-scores[level, node, total], kind="stable")[: max(8, FITTED // size**2)]
        level, node, total = level[order], node[order], total[order]
        g, p, q = self.about.cross.shape
        mean, covariance = np.empty((len(level), q + g * p)), np.empty((len(level) * covariances, q, q))
        for i, own in enumerate(self.each):
            (rows,) = np.nonzero(level == i)
            mean[rows] = own.wide(own.found.mean[node[rows], total[rows]])
            if covariances:
                covariance[rows] = own.found.covariances(node[rows], total[rows])
        return Pairs(level, node, total, scores[level, node, total], mean, covariance if covariances else None)


def block_diagonal(blocks: Array) -> Array:
    """Return the matrix (G P, G P) with `blocks` (G, P, P) on its diagonal and 0 elsewhere."""
    g, size = blocks.shape[:2]
    found = np.zeros((g, size, g, size))
    found[np.arange(g), :, np.arange(g)] = blocks
    return found.reshape(g * size, g * size)
