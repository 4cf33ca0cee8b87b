"""The posterior of intercept and weights: nodes of the prior, each by Laplace's approximation (docs/model.md, 10).

About one point the logarithm of the likelihood is a quadratic function of the coefficients, and then every node's
posterior and marginal likelihood have a closed form (10.5): that finds the nodes that matter. Of few events these are
then fitted, each to its own mode; of many, where all modes are near the point, the quadratic function is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.estimation.likelihood import Design, value
from opinionpool.estimation.newton import Near, Prior, modes_near, posterior_modes
from opinionpool.estimation.regression import Observations
from opinionpool.learning.nodes import Nodes
from opinionpool.learning.topics import TopicEffects

# Logarithm of a posterior probability, relative to the largest, below which a pair of node and sum is left out; and how
# far off the quadratic function may be about that.
NEGLIGIBLE, MARGIN = -7.0, 3.0
# Log-ratios, each as often as it counts, from which on the quadratic function about the mean is enough.
MANY = 1000
# What the cost would fall by in the last step to the point of the quadratic function, which is a step itself.
ROUGH = 1e-9
# Standard deviations that the last step of the mean may have, where events are at hand, and where each step reads all
# of them again: the next one would have about 0.000001, and 0.003. How many steps are made.
TINY, SMALL, STEPS = 0.01, 1.0, 10
# Numbers in the Hessians of all pairs that are fitted.
FITTED = 1 << 19
# Numbers in the covariances that are kept.
_KEPT = 1 << 20


class Normals(NamedTuple):
    """A mixture of M normals of intercept and weights."""

    probability: Array  # (M,)
    mean: Array  # (M, K - 1 + N)
    covariance: Array  # (M, K - 1 + N, K - 1 + N)


@dataclass(frozen=True, eq=False)
class Fit:
    """Posterior over the nodes of a prior, with the mean and covariances of intercept and weights.

    Attributes
    ----------
    mean : ndarray, shape (K - 1 + N,)
        Of intercept and weights.
    joint : ndarray, shape (B, J)
        Posterior probabilities of nodes and sums.
    normals : Normals or None
    evidence : float
        Log marginal likelihood.
    topics : TopicEffects or None
    """

    mean: Array
    joint: Array
    normals: Normals | None = None
    evidence: float = 0.0
    topics: TopicEffects | None = None


class Quadratic(NamedTuple):
    """Quadratic expansion of a log-likelihood about a point, constant + l'θ − θ'Hθ/2."""

    constant: float
    slope: Array  # (Q,)
    curvature: Array  # (Q, Q)

    def and_of(self, other: Quadratic) -> Quadratic:
        """Return the sum of two log-likelihoods, of these events and of others."""
        return Quadratic(self.constant + other.constant, self.slope + other.slope, self.curvature + other.curvature)

    @classmethod
    def at(cls, design: Design, point: Array) -> Quadratic:
        """Return the quadratic expansion of a log-likelihood about some coefficients (Q,)."""
        found = value(design, point[None])
        loss, gradient, hessian = float(found.loss[0]), found.gradient[0], found.hessian[0]
        bent = hessian @ point
        return cls(float(-loss + gradient @ point - bent @ point / 2.0), bent - gradient, hessian)


# Returns the quadratic function about a point (Q,).
Likelihood: TypeAlias = Callable[[Array], Quadratic]


class Centred(Protocol):
    """A posterior that has a mean."""

    @property
    def centre(self) -> Array:
        """Its mean."""
        ...


P = TypeVar("P", bound=Centred)


class Pairs(NamedTuple):
    """M pairs of a node and a sum."""

    node: Index  # (M,)
    total: Index  # (M,); which sum
    score: Array  # (M,); log of the prior probability times the marginal likelihood
    mean: Array  # (M, Q)
    covariance: Array | None  # (M, Q, Q)
    level: Index  # (M,); how far topics differ, 0 where there are none

    def some(self, which: Mask | Index) -> Pairs:
        """Return some of the pairs."""
        covariance = None if self.covariance is None else self.covariance[which]
        known = self.node[which], self.total[which], self.score[which], self.mean[which]
        return Pairs(*known, covariance, self.level[which])


@dataclass(frozen=True, eq=False)
class Deviations:
    """Posterior covariances of coefficients given intercept and sum at B nodes, V diag(g) V' − cc' of the weights."""

    vectors: Array  # (B or 1, N, P); V
    gain: Array  # (B, P); g
    less: Array  # (B, N); c
    half_log_determinant: Array  # (B,); of the precision in units of the prior's

    @classmethod
    def of(cls, curvature: Array, nodes: Nodes) -> Deviations:
        """Return the covariances at all nodes, for the curvature of a log-likelihood, (N, N)."""
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
        """Return the products with x (B, Q, M), of which the last N rows are of weights; 0 in the others."""
        own, found = x[:, -self.vectors.shape[1] :], np.zeros(x.shape)
        inner = self.gain[..., None] * _each_times(np.swapaxes(self.vectors, 1, 2), own)
        found[:, -own.shape[1] :] = _each_times(self.vectors, inner) - self.less[..., None] * (self.less[:, None] @ own)
        return found

    def whole(self, nodes: Index, size: int) -> Array:
        """Return the covariances at M nodes, (M, Q, Q), 0 beside the weights."""
        node, place = np.unique(nodes, return_inverse=True)
        vectors, less = self.vectors[node if len(self.vectors) > 1 else [0]], self.less[node]
        found = np.zeros((len(node), size, size))
        own = found[:, -vectors.shape[1] :, -vectors.shape[1] :]
        own[:] = (vectors * self.gain[node, None]) @ np.swapaxes(vectors, 1, 2) - less[:, :, None] * less[:, None]
        return found[place]


def _each_times(matrices: Array, x: Array) -> Array:
    """Return the products of matrices (B, P, N), or one that is theirs, (1, P, N), with x (B, N, M), (B, P, M)."""
    if len(matrices) > 1:
        return matrices @ x
    b, n, m = x.shape
    return np.swapaxes((matrices[0] @ np.swapaxes(x, 0, 1).reshape(n, b * m)).reshape(-1, b, m), 0, 1)


@dataclass(frozen=True, eq=False)
class Approximation:
    """The posterior of B nodes with J sums by a quadratic function of Q coefficients."""

    score: Array  # (B, J); log of the prior probability times the marginal likelihood
    mean: Array  # (B, J, Q)
    deviations: Deviations  # covariances given intercept and sum
    along: Array  # (B, Q, K); how coefficients go with these
    left: Array  # (B, J, K, K); covariance of these
    about: Quadratic

    @property
    def log_marginal_likelihood(self) -> float:
        """Log marginal likelihood, over all nodes and sums."""
        return float(np.logaddexp.reduce(self.score, axis=None))

    @property
    def centre(self) -> Array:
        """The posterior mean, (Q,)."""
        share = np.exp(self.score - self.score.max())
        return np.asarray(np.einsum("bj,bjq->q", share / share.sum(), self.mean))

    def likely(self, least: float, *, covariances: bool) -> Pairs:
        """Return the pairs of a node and a sum whose log probability, relative to the largest, is above this."""
        node, total = np.nonzero(self.score > self.score.max() + least)
        most = max(8, FITTED // self.mean.shape[2] ** 2)
        order = np.argsort(-self.score[node, total], kind="stable")[:most]
        node, total = node[order], total[order]
        covariance = self.covariances(node, total) if covariances else None
        return Pairs(node, total, self.score[node, total], self.mean[node, total], covariance, np.zeros_like(node))

    def covariances(self, node: Index, total: Index) -> Array:
        """Return the covariances of coefficients of M pairs of a node and a sum, (M, Q, Q)."""
        along = self.along[node]
        found = along @ self.left[node, total] @ np.swapaxes(along, 1, 2)
        found += self.deviations.whole(node, along.shape[1])
        return found


def by_quadratic(about: Quadratic, nodes: Nodes, d: int) -> Approximation:
    """Return the posterior of nodes by a quadratic function: deviations given intercept and sum, then these (10.5)."""
    deviations, v = Deviations.of(about.curvature[d:, d:], nodes), nodes.direction
    b, q, sums = len(v), len(about.slope), nodes.sums
    fixed = np.zeros((b, q, d + 1))
    fixed[:, :d, :d] = nodes.intercept(d)
    fixed[:, d:, d] = v
    seen = about.curvature @ fixed
    along = fixed - deviations.times(seen)
    slope = np.einsum("bqk,q->bk", along, about.slope)
    curvature = np.swapaxes(along, 1, 2) @ seen
    pulled = deviations.times(np.tile(about.slope[:, None], (b, 1, 1)))[..., 0]
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
    return Approximation(score, mean, deviations, along, scale[:, :, None] * left * scale[:, None, :], about)


def approximate(design: Design, nodes: Nodes, start: Array | None = None) -> Approximation:
    """Return the posterior by a quadratic function about the mode under a normal prior like the mixture.

    Where the search starts changes nothing.
    """
    d = design.columns.shape[-2]
    middle, sd, vector = nodes.moments
    mean, root = np.concatenate([np.zeros(d), middle]), np.zeros((design.size, design.size))
    root[:d, :d], root[d:, d:] = nodes.intercept_sd * nodes.intercept(d), vector * sd
    begun = np.zeros((1, design.size))
    if start is not None:
        begun[0, d:] = vector.T @ (start[d:] - middle) / sd
    (mode,) = posterior_modes(design, Prior(mean[None], root[None]), begun, ROUGH)
    return by_quadratic(Quadratic.at(design, mean + root @ mode.coefficients), nodes, d)


def evidence(observed: Observations, nodes: Nodes, start: Array | None = None) -> tuple[float, Array]:
    """Return the log marginal likelihood of observed events and the mean of coefficients, by the quadratic function."""
    basis = _basis(observed, nodes)
    start = _along(start, basis, observed.free)
    found = approximate(observed.design_along(basis), nodes.along(basis), start)
    return found.log_marginal_likelihood, _whole(found.centre, basis, observed.free)


def fit_nodes(observed: Observations, nodes: Nodes, *, covariances: bool = True, start: Array | None = None) -> Fit:
    """Return the posterior of the coefficients of observed events."""
    d, basis = observed.free, _basis(observed, nodes)
    design, among, start = observed.design_along(basis), nodes.along(basis), _along(start, basis, d)
    if float(observed.weight.sum()) * d >= MANY:
        near = approximate(design, among).centre if start is None else start
        found = about_mean(partial(Quadratic.at, design), partial(by_quadratic, nodes=among, d=d), near, TINY)
        return averaged(found.likely(NEGLIGIBLE, covariances=covariances), nodes, basis)
    found = approximate(design, among, start)
    pairs = found.likely(NEGLIGIBLE - MARGIN, covariances=True)
    prior = prior_means(among, pairs)
    return averaged(modes_of(design, found.about, prior, pairs, covariances=covariances), nodes, basis)


def fit_all(likelihood: Likelihood, nodes: Nodes, d: int, start: Array, *, covariances: bool = True) -> Fit:
    """Return the posterior by the likelihood of many events, from a mean that is near, such as that of a sample."""
    found = about_mean(likelihood, partial(by_quadratic, nodes=nodes, d=d), start, SMALL)
    return averaged(found.likely(NEGLIGIBLE, covariances=covariances), nodes, None)


def about_mean(likelihood: Likelihood, posterior: Callable[[Quadratic], P], start: Array, small: float) -> P:
    """Return the posterior by a quadratic function about its centre, by Newton's method to a step below `small`."""
    for _ in range(STEPS):
        about = likelihood(start)
        found = posterior(about)
        step, start = found.centre - start, found.centre
        if step @ about.curvature @ step < small**2:
            break
    return found


def averaged(pairs: Pairs, nodes: Nodes, basis: Array | None) -> Fit:
    """Return the average over pairs of a node and a sum, with weights along a basis if there is one."""
    d = pairs.mean.shape[1] - (nodes.direction.shape[1] if basis is None else basis.shape[1])
    likely = pairs.some(pairs.score > pairs.score.max() + NEGLIGIBLE)
    node, total, score, means, covariance, _ = likely
    share = np.exp(score - score.max())
    probability, marginal = share / share.sum(), float(score.max() + np.log(share.sum()))
    joint = np.zeros((len(nodes.probability), len(nodes.sums.value)))
    joint[node, total] = probability
    mean = _whole(probability @ means, basis, d)
    if covariance is None:
        return Fit(mean, joint, evidence=marginal)
    label = node if nodes.sums.certain else nodes.sums.value[total]
    group = _groups(probability, label, max(1, _KEPT // len(mean) ** 2))
    normals = _merged(probability, means, covariance, group)
    beyond = np.bincount(group, probability * nodes.weight_sd[node] ** 2) / normals.probability
    return Fit(mean, joint, _expanded(normals, beyond, basis, d), marginal)


def prior_fit(nodes: Nodes, d: int, *, covariances: bool = True) -> Fit:
    """Return the prior as a fit, without any outcome."""
    joint, sums, v = np.outer(nodes.probability, nodes.sums.probability), nodes.sums, nodes.direction
    n = v.shape[1]
    mean = np.concatenate([np.zeros(d), nodes.mean])
    if not covariances:
        return Fit(mean, joint)
    intercept = nodes.intercept_sd * nodes.intercept(d)
    if not sums.certain:
        probability, weights = sums.probability, sums.value[:, None] * (nodes.probability @ v)
        second = (v.T * nodes.probability) @ v
        square = sums.value**2 + sums.sd**2
        covariance = nodes.spread() + square[:, None, None] * second - weights[:, :, None] * weights[:, None, :]
    else:
        probability, weights = nodes.probability, sums.value[0] * v
        covariance = nodes.deviations + sums.sd[0] ** 2 * v[:, :, None] * v[:, None, :]
    means, whole = np.zeros((len(weights), d + n)), np.zeros((len(weights), d + n, d + n))
    means[:, d:], whole[:, d:, d:], whole[:, :d, :d] = weights, covariance, intercept @ intercept.T
    group = _groups(probability, np.arange(len(weights)), max(1, _KEPT // len(mean) ** 2))
    return Fit(mean, joint, _merged(probability, means, whole, group))


def _basis(observed: Observations, nodes: Nodes) -> Array | None:
    """Return a basis of the identified directions of the weights; None if all are, or beliefs differ by expert."""
    return observed.basis_with(nodes.direction) if nodes.own is None else None


def prior_means(nodes: Nodes, pairs: Pairs) -> Array:
    """Return the prior means of the coefficients in pairs, (M, Q)."""
    found = np.zeros_like(pairs.mean)
    found[:, -nodes.direction.shape[1] :] = nodes.sums.value[pairs.total, None] * nodes.direction[pairs.node]
    return found


def modes_of(design: Design, about: Quadratic, prior: Array, pairs: Pairs, *, covariances: bool) -> Pairs:
    """Return the pairs with their modes, each by a search from its mean; `prior` (M, Q) are prior means."""
    assert pairs.covariance is not None
    pull = about.slope - pairs.mean @ about.curvature
    # Log-likelihood and log prior at the start, by the quadratic function, and at the mode.
    start = about.constant + ((about.slope + pull) * pairs.mean - pull * (pairs.mean - prior)).sum(axis=1) / 2.0
    found = modes_near(design, Near(pairs.mean, pull, pairs.covariance, about.curvature))
    end = -found.loss - (found.pull * (found.theta - prior)).sum(axis=1) / 2.0
    score = pairs.score + end - start - found.half_log_determinant
    likely = score > score.max() + NEGLIGIBLE
    covariance = found.covariance(likely) if covariances else None
    return pairs._replace(score=score, mean=found.theta, covariance=None).some(likely)._replace(covariance=covariance)


def _groups(probability: Array, label: Array | Index, most: int) -> Index:
    """Return 0 .. G - 1 for each different label, the less probable ones together where there are more than `most`."""
    _, group = np.unique(label, return_inverse=True)
    order = np.argsort(-np.bincount(group, probability), kind="stable")
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.minimum(np.arange(len(order)), most - 1)
    return np.asarray(place[group])


def _merged(probability: Array, mean: Array, covariance: Array, group: Index) -> Normals:
    """Return one normal for each group of normals, with the mean and covariance of the group."""
    share = np.zeros((int(group.max()) + 1, len(group)))
    share[group, np.arange(len(group))] = probability
    total = share.sum(axis=1)
    share /= total[:, None]
    means = share @ mean
    away = mean - means[group]
    found = np.tensordot(share, covariance + away[:, :, None] * away[:, None, :], 1)
    return Normals(total, means, found)


def _expanded(normals: Normals, beyond: Array, basis: Array | None, d: int) -> Normals:
    """Return normals of all N weights from normals along a basis; across it weights have variances (M,)."""
    if basis is None:
        return normals
    n, r = basis.shape
    turn = np.zeros((d + n, d + r))
    turn[:d, :d], turn[d:, d:] = np.eye(d), basis
    covariance = turn @ normals.covariance @ turn.T
    covariance[:, d:, d:] += beyond[:, None, None] * (np.eye(n) - basis @ basis.T)
    return Normals(normals.probability, normals.mean @ turn.T, covariance)


def _along(values: Array | None, basis: Array | None, d: int) -> Array | None:
    """Return coefficients along a basis from intercepts and weights, as far as they are along it."""
    return values if values is None or basis is None else np.concatenate([values[:d], values[d:] @ basis])


def _whole(values: Array, basis: Array | None, d: int) -> Array:
    """Return intercepts and weights (..., K - 1 + N) from coefficients along a basis."""
    if basis is None:
        return values
    return np.concatenate([values[..., :d], values[..., d:] @ basis.T], axis=-1)
