"""The posterior of intercept and weights, by Laplace's approximation at each node of the prior (docs/model.md, 10).

A quadratic expansion about one point finds the probable nodes (`opinionpool.learning.quadratic`). With little
information each of these nodes is then expanded about its own mode; with much, all modes are near the mean, and the
expansion about the mean is used. Intercepts and slopes of topics are further coefficients of the same fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.estimation.likelihood import Design, softmax
from opinionpool.estimation.newton import Near, Prior, modes_near, posterior_modes
from opinionpool.estimation.regression import Observations
from opinionpool.learning.nodes import Nodes
from opinionpool.learning.quadratic import (
    FITTED,
    Arrow,
    Levels,
    Pairs,
    Quadratic,
    beyond_prior,
    block_diagonal,
    topic_roots,
)
from opinionpool.learning.topics import TopicEffects

# Logarithm of a posterior probability, relative to the largest, below which a pair of node and sum is left out; and how
# far off the quadratic function may be about that.
NEGLIGIBLE, MARGIN = -7.0, 3.0
# What outcomes tell, in log-ratios at even odds, from which on the quadratic function about the mean is enough: by
# simulation its answers are then within .01 of those by modes, usually within .002.
MANY = 400.0
# What the cost would fall by in the last step to the point of the quadratic function, which is a step itself.
ROUGH = 1e-9
# Standard deviations that the last step of the mean may have, where events are at hand, and where each step reads all
# of them again: the next one would have about 0.000001, and 0.003. How many steps are made.
TINY, SMALL, STEPS = 0.01, 1.0, 10
# Pairs that are fitted to modes where there are topics, or else none is.
FEWEST = 32
# Numbers in the covariances that are kept.
_KEPT = 1 << 20


class Normals(NamedTuple):
    """Mixture of M normal distributions of intercept and weights."""

    probability: Array  # (M,)
    mean: Array  # (M, K - 1 + N)
    covariance: Array  # (M, K - 1 + N, K - 1 + N)


@dataclass(frozen=True, eq=False)
class Fit:
    """Posterior of intercept and weights, averaged over the alternatives (nodes) of the prior."""

    mean: Array  # (K - 1 + N,); posterior mean of intercept and weights
    joint: Array  # (B, J); posterior probability of each node with each normal of the weights' sum
    normals: Normals | None = None
    evidence: float = 0.0  # log marginal likelihood
    topics: TopicEffects | None = None
    # Coefficients about which the log-likelihood was expanded, in coordinates of the fit.
    point: Array | None = None
    by_quadratic: float = 0.0  # log marginal likelihood by the quadratic expansion


# Returns the quadratic function about a point (Q,), or with coefficients of topics (Q + G P,).
Likelihood: TypeAlias = Callable[[Array], Arrow]


class Centred(Protocol):
    """Protocol of a posterior that knows its mean, for expansions of a likelihood about that mean."""

    @property
    def centre(self) -> Array:
        """Posterior mean of the coefficients."""
        ...


P = TypeVar("P", bound=Centred)


def approximate(design: Design, nodes: Nodes, start: Array | None = None) -> tuple[Levels, Array]:
    """Return the posterior by a quadratic expansion of the log-likelihood about an approximate mode, and this mode.

    The approximate mode is that under one normal prior, with the mean and covariance of the prior `nodes`. The search
    for it begins at `start`, which does not change the result.
    """
    d, (middle, sd, vector) = nodes.free, nodes.moments
    mean, root = np.concatenate([np.zeros(d), middle]), np.zeros((design.size, design.size))
    root[:d, :d], root[d:, d:] = nodes.intercept_sd * nodes.intercept, vector * sd
    begun = np.zeros((1, design.size))
    if start is not None:
        begun[0, d:] = vector.T @ (start[d:] - middle) / sd
    (mode,) = posterior_modes(design, Prior(mean[None], root[None]), begun, ROUGH)
    point = mean + root @ mode.coefficients
    return Levels.of(Arrow.plain(Quadratic.at(design, point), d), nodes), point


def evidence(observed: Observations, nodes: Nodes, start: Array | None = None) -> tuple[float, Array]:
    """The log marginal likelihood and the posterior mean of intercept and weights, by one quadratic expansion."""
    basis = _basis(observed, nodes)
    start = _along(start, basis, observed.free)
    found, _ = approximate(observed.design_along(basis), nodes.along(basis), start)
    return found.log_marginal_likelihood, _whole(found.centre, basis, observed.free)


def fit_nodes(observed: Observations, nodes: Nodes, *, covariances: bool = True, start: Array | None = None) -> Fit:
    """Return the posterior of intercept and weights, from observed events and the alternative priors `nodes`."""
    d, basis = observed.free, _basis(observed, nodes)
    design, among, start = observed.design_along(basis), nodes.along(basis), _along(start, basis, d)
    names = () if observed.topics is None else observed.topics.names
    first = None
    if start is None:
        first = approximate(design, among)
        start = first[0].centre
    few = _information(observed, design, start) < MANY
    if few and not names:
        found, point = first or approximate(design, among, start)
    else:
        likelihood, start = partial(Arrow.at, observed, design), np.append(start, np.zeros(len(names) * (d + 1)))
        found, point = about_mean(likelihood, partial(Levels.of, nodes=among), start, TINY)
    size = len(found.centre)
    if few and (not names or FITTED // size**2 >= FEWEST):
        likely = found.likely(NEGLIGIBLE - MARGIN, size, covariances=True)
        pairs = _by_modes(found, likely, (observed, design), among, covariances=covariances)
    else:
        pairs = found.likely(NEGLIGIBLE, design.size, covariances=covariances)
    return replace(_averaged(found, pairs, nodes, basis, names), point=point)


def fit_all(
    likelihood: Likelihood,
    nodes: Nodes,
    start: Array,
    names: tuple[str, ...] = (),
    *,
    covariances: bool = True,
) -> Fit:
    """Return the posterior by the likelihood of many events; `start` is near its mean, such as that by a sample."""
    start = np.append(start, np.zeros(len(names) * (nodes.free + 1)))
    found, point = about_mean(likelihood, partial(Levels.of, nodes=nodes), start, SMALL)
    pairs = found.likely(NEGLIGIBLE, len(start) - found.about.slope.size, covariances=covariances)
    return replace(_averaged(found, pairs, nodes, None, names), point=point)


def evidence_near(fit: Fit, events: Observations | Likelihood, nodes: Nodes) -> float:
    """Return the log marginal likelihood of `events`: those of the fit, but with other frequencies.

    The fit's log marginal likelihood is changed by the difference between two quadratic expansions about one point.
    """
    assert fit.point is not None
    if isinstance(events, Observations):
        basis = _basis(events, nodes)
        about, nodes = Arrow.at(events, events.design_along(basis), fit.point), nodes.along(basis)
    else:
        about = events(fit.point)
    return fit.evidence + Levels.of(about, nodes).log_marginal_likelihood - fit.by_quadratic


def about_mean(likelihood: Likelihood, posterior: Callable[[Arrow], P], start: Array, small: float) -> tuple[P, Array]:
    """Return the posterior by an expansion of the likelihood about the posterior mean; and this mean, by Newton steps.

    `posterior` makes a posterior from an expansion; `small` is the length of the last step in standard deviations.
    """
    for _ in range(STEPS):
        about, point = likelihood(start), start
        found = posterior(about)
        step, start = found.centre - start, found.centre
        if about.square(step) < small**2:
            break
    return found, point


def _averaged(found: Levels, pairs: Pairs, nodes: Nodes, basis: Array | None, names: tuple[str, ...]) -> Fit:
    """Posterior averaged over `pairs` (each a node and a sum of weights); their weights are coordinates in `basis`."""
    q, probability, node, total = found.about.cross.shape[2], pairs.probability, pairs.node, pairs.total
    d, means, whole = found.about.slope.shape[1] - 1, pairs.mean[:, :q], pairs.covariance
    joint = np.zeros((len(nodes.probability), len(nodes.sums.value)))
    np.add.at(joint, (node, total), probability)
    fit = Fit(
        _whole(probability @ means, basis, d),
        joint,
        evidence=float(np.logaddexp.reduce(pairs.score)),
        topics=_topic_effects(found, pairs, names, basis) if names else None,
        by_quadratic=found.log_marginal_likelihood,
    )
    if whole is None:
        return fit
    label = node if nodes.sums.certain else nodes.sums.value[total]
    group = _groups(probability, label, max(1, _KEPT // len(fit.mean) ** 2))
    normals = _merged(probability, means, whole[:, :q, :q], group)
    beyond = np.bincount(group, probability * nodes.weight_sd[node] ** 2) / normals.probability
    return replace(fit, normals=_expanded(normals, beyond, basis, d))


def _topic_effects(found: Levels, pairs: Pairs, names: tuple[str, ...], basis: Array | None) -> TopicEffects:
    """Return the posterior of the intercepts and slopes of topics; covariances are NaN if `pairs` have none."""
    (g, size, q), p, whole, each = found.about.cross.shape, pairs.probability, pairs.covariance, np.arange(len(names))
    share, roots = np.bincount(pairs.level, p, len(found.each)), topic_roots(size - 1)
    mean, within, cross = p @ pairs.mean, np.zeros((g, size, size)), np.zeros((g, size, q))
    if whole is None:
        within[:] = cross[:] = np.nan
    elif whole.shape[1] > q:
        mixed = np.einsum("m,mij->ij", p, whole)
        within = mixed[q:, q:].reshape(g, size, g, size)[each, :, each]
        cross = mixed[q:, :q].reshape(g, size, q)
    else:
        for i, level in enumerate(found.each):
            own = pairs.level == i
            beside = level.follow @ np.einsum("m,mqr->qr", p[own], whole[own])
            within += share[i] * level.gain + beside @ np.swapaxes(level.follow, 1, 2)
            cross += beside
    away = pairs.mean - mean
    effects, beyond, common = mean[q:].reshape(g, size), away[:, q:].reshape(-1, g, size), away[:, :q]
    cross = cross + np.einsum("m,mgi,mq->giq", p, beyond, common, optimize=True)
    return TopicEffects(
        topics=names,
        events=found.about.events,
        intercept=effects[:, :-1],
        slope=effects[:, -1],
        covariance=within + np.einsum("m,mgi,mgj->gij", p, beyond, beyond, optimize=True),
        new=np.einsum("l,lpr,lqr->pq", share, roots, roots),
        levels=share.astype(np.float64),
        cross=_whole(cross, basis, size - 1),
    )


def prior_fit(nodes: Nodes, *, covariances: bool = True) -> Fit:
    """Return the prior of intercept and weights in the form of a posterior, for a panel without any outcome."""
    joint, sums, v = np.outer(nodes.probability, nodes.sums.probability), nodes.sums, nodes.direction
    n, d = v.shape[1], nodes.free
    mean = np.concatenate([np.zeros(d), nodes.mean])
    if not covariances:
        return Fit(mean, joint)
    intercept = nodes.intercept_sd * nodes.intercept
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


def _by_modes(
    found: Levels, pairs: Pairs, seen: tuple[Observations, Design], nodes: Nodes, *, covariances: bool
) -> Pairs:
    """Return the posteriors `pairs`, each by an expansion about its own mode instead of one point for all pairs.

    A topic's slope multiplies the answer without topics at the mean coefficients.
    """
    assert pairs.covariance is not None
    (observed, design), arrow, (g, size, q) = seen, found.about, found.about.cross.shape
    about, covariance = arrow.common, pairs.covariance
    if g:
        assert observed.topics is not None
        wide = arrow.cross.reshape(g * size, q)
        curvature = np.block([[about.curvature, wide.T], [wide, block_diagonal(arrow.curvature)]])
        about = Quadratic(about.constant, np.append(about.slope, arrow.slope), curvature)
        covariance = np.empty((len(pairs.mean), *curvature.shape))
        for i, level in enumerate(found.each):
            covariance[pairs.level == i] = level.covariances(pairs.covariance[pairs.level == i])
        beyond, there = (
            beyond_prior(observed, design, found.centre[:q]),
            observed.topics.member == np.arange(g)[:, None],
        )
        one = np.broadcast_to(np.eye(size - 1)[..., None], (size - 1, size - 1, len(beyond)))
        columns = there[:, None, None] * np.concatenate([one, beyond.T[None]])
        columns = np.concatenate([design.columns, columns.reshape(g * size, size - 1, -1)])
        design = replace(design, columns=columns)
    prior = np.zeros_like(pairs.mean)
    prior[:, q - nodes.direction.shape[1] : q] = nodes.sums.value[pairs.total, None] * nodes.direction[pairs.node]
    pull = about.slope - pairs.mean @ about.curvature
    # Log-likelihood and log prior at the start, by the quadratic function, and at the mode.
    start = about.constant + ((about.slope + pull) * pairs.mean - pull * (pairs.mean - prior)).sum(axis=1) / 2.0
    modes = modes_near(design, Near(pairs.mean, pull, covariance, about.curvature))
    end = -modes.loss - (modes.pull * (modes.theta - prior)).sum(axis=1) / 2.0
    score = pairs.score + end - start - modes.half_log_determinant
    likely = score > score.max() + NEGLIGIBLE
    own = modes.covariance(likely) if covariances else None
    return pairs._replace(score=score, mean=modes.theta, covariance=None).some(likely)._replace(covariance=own)


def _information(observed: Observations, design: Design, point: Array) -> float:
    """Information in outcomes at coefficients `point`: K Σ_t v_t (1 − Σ_k p_tk²), weights v and probabilities p."""
    p = softmax(design.ratios(point[None]))[0][0]
    unlike = 1.0 - (p**2).sum(axis=0) - (1.0 - p.sum(axis=0)) ** 2
    return float((observed.free + 1) * observed.weight @ unlike)


def _basis(observed: Observations, nodes: Nodes) -> Array | None:
    """Basis of directions of weights that data or prior distinguish; None if all, or if beliefs differ by expert."""
    return observed.basis_with(nodes.direction) if nodes.own is None else None


def _groups(probability: Array, label: Array | Index, most: int) -> Index:
    """Group of each of M labels, (M,): the `most` - 1 most probable labels have their own, all others share one."""
    _, group = np.unique(label, return_inverse=True)
    order = np.argsort(-np.bincount(group, probability), kind="stable")
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.minimum(np.arange(len(order)), most - 1)
    return np.asarray(place[group])


def _merged(probability: Array, mean: Array, covariance: Array, group: Index) -> Normals:
    """Return one normal distribution for each group of normals, with the group's mean and covariance."""
    share = np.zeros((int(group.max()) + 1, len(group)))
    share[group, np.arange(len(group))] = probability
    total = share.sum(axis=1)
    share /= total[:, None]
    means = share @ mean
    away = mean - means[group]
    found = np.tensordot(share, covariance + away[:, :, None] * away[:, None, :], 1)
    return Normals(total, means, found)


def _expanded(normals: Normals, beyond: Array, basis: Array | None, d: int) -> Normals:
    """Return normals of all N weights from those along `basis`; `beyond` (M,) is the variance in other directions."""
    if basis is None:
        return normals
    n, r = basis.shape
    turn = np.zeros((d + n, d + r))
    turn[:d, :d], turn[d:, d:] = np.eye(d), basis
    covariance = turn @ normals.covariance @ turn.T
    covariance[:, d:, d:] += beyond[:, None, None] * (np.eye(n) - basis @ basis.T)
    return Normals(normals.probability, normals.mean @ turn.T, covariance)


def _along(values: Array | None, basis: Array | None, d: int) -> Array | None:
    """Return intercept and weights, `values`, with coordinates in `basis` for weights; unchanged without `basis`."""
    return values if values is None or basis is None else np.concatenate([values[:d], values[d:] @ basis])


def _whole(values: Array, basis: Array | None, d: int) -> Array:
    """Intercept and all weights, (..., K - 1 + N), from `values`: intercept, and coordinates of weights in `basis`."""
    if basis is None:
        return values
    return np.concatenate([values[..., :d], values[..., d:] @ basis.T], axis=-1)
