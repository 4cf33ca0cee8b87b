"""Topics as a block of the default pool's regression.

Beside what is common, events on topic g have an intercept and a slope, η_t = L°_t + a + Σ_i w_i u_ti + a_g + s_g z_t,
z_t the common L* − L° there (10.7). Intercepts and slopes are normal about 0 with standard deviations that are the same
for all topics, a few levels of which are averaged by evidence; one level is that topics do not differ. About a point
the log-likelihood is quadratic in all coefficients, so those of topics are integrated out, each topic by itself, and
what is left is a quadratic function of the common ones, as without topics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from opinionpool.arrays import Array
from opinionpool.estimation.likelihood import softmax
from opinionpool.estimation.newton import posterior_probabilities
from opinionpool.estimation.regression import Observations, intercept_root
from opinionpool.learning.constants import TOPIC_PROBABILITIES, TOPICS
from opinionpool.learning.laplace import (
    FITTED,
    MANY,
    MARGIN,
    NEGLIGIBLE,
    STEPS,
    Approximation,
    Fit,
    Pairs,
    Quadratic,
    averaged,
    by_quadratic,
    modes_of,
    prior_means,
)
from opinionpool.learning.nodes import Nodes
from opinionpool.learning.topics import TopicEffects

# Squared standard deviations that a last step may have.
SMALL = 1e-2
# Pairs that are fitted by themselves, or else none is.
FEWEST = 32


class Arrow(NamedTuple):
    """Quadratic expansion of a log-likelihood in Q common coefficients θ and P of each of G topics, φ_g."""

    common: Quadratic  # where φ is 0
    slope: Array  # (G, P)
    cross: Array  # (G, P, Q); −∂²/∂φ∂θ'
    curvature: Array  # (G, P, P)
    events: Array  # (G,); weight of the events of each topic

    @classmethod
    def at(cls, observed: Observations, point: Array, effects: Array) -> Arrow:
        """Expansion about common coefficients (Q,) and those of topics (G, P)."""
        assert observed.topics is not None
        d, design, (_, member, base) = observed.free, observed.design(), observed.topics
        t, beyond = len(member), design.ratios(point[None])[0].T - observed.offset + base
        # The last row is for events without a topic.
        own = np.vstack([effects, np.zeros(d + 1)])[member]
        added = own[:, :d] + own[:, d:] * beyond
        design = replace(observed, offset=observed.offset + added).design()
        about, happened = Quadratic.at(design, point), design.happened()
        _, p, _ = softmax(design.ratios(point[None]), happened)
        p, weight, one = p[0].T, observed.weight, np.broadcast_to(np.eye(d), (t, d, d))
        bent = weight[:, None, None] * p[:, :, None] * (np.eye(d) - p[:, None, :])
        seen = np.concatenate([one, np.swapaxes(observed.contrasts, 1, 2)], axis=2)
        mine = np.concatenate([one, beyond[:, :, None]], axis=2)
        turned = np.swapaxes(mine, 1, 2)
        among = (member == np.arange(len(effects))[:, None]).astype(np.float64)

        def by_topic(values: Array) -> Array:
            return np.asarray((among @ values.reshape(t, -1)).reshape(len(effects), *values.shape[1:]))

        residual = weight[:, None] * (happened.T - p)
        pull = by_topic((turned @ residual[..., None])[..., 0])
        cross, curvature = by_topic(turned @ (bent @ seen)), by_topic(turned @ (bent @ mine))
        inner = np.einsum("gij,gj->gi", curvature, effects)
        beside = np.einsum("gij,gi->j", cross, effects)
        constant = -float((effects * (pull + inner / 2.0)).sum() + beside @ point)
        common = Quadratic(about.constant + constant, about.slope + beside, about.curvature)
        return cls(common, pull + inner + cross @ point, cross, curvature, among @ weight)

    def and_of(self, other: Arrow) -> Arrow:
        """Expansion of the sum of two log-likelihoods, of these events and of others."""
        return Arrow(self.common.and_of(other.common), *(a + b for a, b in zip(self[1:], other[1:], strict=True)))

    def without_topics(self, root: Array) -> tuple[Quadratic, Array]:
        """Function of θ only, if φ_g ~ N(0, root root'), and the covariances of φ given θ, (G, P, P)."""
        inner = root.T @ self.curvature @ root + np.eye(len(root))
        gain = root @ np.linalg.solve(inner, np.broadcast_to(root.T, inner.shape))
        moved = np.einsum("gij,gj->gi", gain, self.slope)
        constant = ((self.slope * moved).sum() - np.linalg.slogdet(inner)[1].sum()) / 2.0
        less = np.einsum("gip,gij,gjq->pq", self.cross, gain, self.cross, optimize=True)
        about, slope = self.common, np.einsum("gij,gi->j", self.cross, moved)
        return Quadratic(about.constant + float(constant), about.slope - slope, about.curvature - less), gain


# Returns the expansion about common coefficients (Q,) and those of topics (G, P).
TopicLikelihood: TypeAlias = Callable[[Array, Array], Arrow]


class Level(NamedTuple):
    """Posterior if topics differ by one level."""

    found: Approximation
    gain: Array  # (G, P, P); covariances of topics' coefficients given the common ones
    at_zero: Array  # (G, P); their means where these are 0
    follow: Array  # (G, P, Q); how they go with these


class Expansion(NamedTuple):
    """A log-likelihood about a point (Q,), and the posterior at each level."""

    arrow: Arrow
    point: Array
    levels: list[Level]


class Joint(NamedTuple):
    """Pairs of a node and a sum at some level, with the coefficients of topics."""

    pairs: Pairs
    effects: Array  # (M, G, P); mean coefficients of topics
    within: Array  # (G, P, P); mean of their covariances in pairs
    cross: Array  # (G, P, Q); mean of those with the common coefficients


def topic_roots(d: int) -> Array:
    """Root of the prior covariance of intercept and slope of a topic at each level, (L, P, P), for d = K - 1."""
    root = np.zeros((len(TOPICS), d + 1, d + 1))
    for own, (intercept, slope) in zip(root, TOPICS, strict=True):
        own[:d, :d], own[d, d] = intercept_root(intercept, d), slope
    return root


def fit_topics(
    likelihood: TopicLikelihood,
    nodes: Nodes,
    d: int,
    start: Array,
    names: tuple[str, ...],
    *,
    covariances: bool = True,
    few: Observations | None = None,
) -> Fit:
    """Posterior of common coefficients and of topics' effects, from a mean of the former that is near.

    Newton's method about the mean; it ends with a step that is small, or larger than the last one. Then each pair of a
    node and a sum is fitted by itself, at each level, to all events if they are `few`.
    """
    effects, last = np.zeros((len(names), d + 1)), np.inf
    for _ in range(STEPS):
        about, before = likelihood(start, effects), start
        levels = [_level(about, root, nodes, d) for root in topic_roots(d)]
        share = posterior_probabilities([each.found.log_marginal_likelihood for each in levels], TOPIC_PROBABILITIES)
        start = share @ np.array([each.found.centre for each in levels])
        effects = np.einsum("l,lgp->gp", share, [each.follow @ each.found.centre + each.at_zero for each in levels])
        size = float((start - before) @ about.common.curvature @ (start - before))
        if size < SMALL or size > last:
            break
        last = size
    most = FITTED // (effects.size + len(start)) ** 2
    if few is None or float(few.weight.sum()) * d >= MANY or most < FEWEST:
        found = _joint(levels, _pairs(levels, NEGLIGIBLE, covariances=covariances))
    else:
        begun = _joint(levels, _pairs(levels, NEGLIGIBLE - MARGIN, covariances=True, most=most))
        found = _by_modes(Expansion(about, before, levels), few, begun, nodes, covariances=covariances)
    p, roots = _shares(found.pairs), topic_roots(d)
    share = np.bincount(found.pairs.level, p, len(levels)).astype(np.float64)
    effects = np.einsum("m,mgp->gp", p, found.effects)
    away, beside = found.effects - effects, found.pairs.mean - p @ found.pairs.mean
    topics = TopicEffects(
        topics=names,
        events=about.events,
        intercept=effects[:, :d],
        slope=effects[:, d],
        covariance=found.within + np.einsum("m,mgi,mgj->gij", p, away, away, optimize=True),
        new=np.einsum("l,lpr,lqr->pq", share, roots, roots),
        levels=share,
        cross=found.cross + np.einsum("m,mgi,mq->giq", p, away, beside, optimize=True) if covariances else None,
    )
    kept = found.pairs if covariances else found.pairs._replace(covariance=None)
    return replace(averaged(kept, nodes, None), topics=topics)


def _level(about: Arrow, root: Array, nodes: Nodes, d: int) -> Level:
    quadratic, gain = about.without_topics(root)
    own = np.einsum("gij,gj->gi", gain, about.slope)
    return Level(by_quadratic(quadratic, nodes, d), gain, own, -gain @ about.cross)


def _pairs(levels: list[Level], least: float, *, covariances: bool, most: int | None = None) -> Pairs:
    """The `most` likely pairs of all levels, with the logarithms of these levels' prior probabilities."""
    every = [each.found.likely(least, covariances=False) for each in levels]
    score = np.concatenate([each.score + np.log(p) for each, p in zip(every, TOPIC_PROBABILITIES, strict=True)])
    node, total, _, mean = (np.concatenate(part) for part in zip(*(each[:4] for each in every), strict=True))
    level = np.repeat(np.arange(len(levels)), [len(each.node) for each in every])
    found = Pairs(node, total, score, mean, None, level).some(score > score.max() + least)
    if most is not None:
        found = found.some(np.argsort(-found.score)[:most])
    if not covariances:
        return found
    covariance = np.empty((*found.mean.shape, mean.shape[1]))
    for i, each in enumerate(levels):
        (rows,) = np.nonzero(found.level == i)
        covariance[rows] = each.found.covariances(found.node[rows], found.total[rows])
    return found._replace(covariance=covariance)


def _shares(pairs: Pairs) -> Array:
    """Probabilities of the pairs, (M,)."""
    share = np.exp(pairs.score - pairs.score.max())
    return np.asarray(share / share.sum())


def _joint(levels: list[Level], pairs: Pairs) -> Joint:
    """Pairs by the quadratic function, with the coefficients of topics."""
    p, (g, size, q) = _shares(pairs), levels[0].follow.shape
    effects, within, cross = np.empty((len(p), g, size)), np.zeros((g, size, size)), np.zeros((g, size, q))
    for i, level in enumerate(levels):
        (rows,) = np.nonzero(pairs.level == i)
        effects[rows] = level.at_zero + np.einsum("giq,mq->mgi", level.follow, pairs.mean[rows])
        within += p[rows].sum() * level.gain
        if pairs.covariance is not None:
            beside = level.follow @ np.einsum("m,mqr->qr", p[rows], pairs.covariance[rows])
            within += beside @ np.swapaxes(level.follow, 1, 2)
            cross += beside
    return Joint(pairs, effects, within, cross)


def _by_modes(about: Expansion, few: Observations, start: Joint, nodes: Nodes, *, covariances: bool) -> Joint:
    """Pairs with their modes in all coefficients; slopes multiply the common answer at the expansion."""
    assert few.topics is not None
    assert start.pairs.covariance is not None
    arrow, d, (g, size, q), m = about.arrow, few.free, about.arrow.cross.shape, len(start.effects)
    wide = arrow.cross.reshape(g * size, q)
    curvature = np.block([[arrow.common.curvature, wide.T], [wide, _block_diagonal(arrow.curvature)]])
    slope = np.concatenate([arrow.common.slope, arrow.slope.ravel()])
    mean, covariance = np.hstack([start.pairs.mean, start.effects.reshape(m, -1)]), np.empty((m, *curvature.shape))
    for i, level in enumerate(about.levels):
        (rows,) = np.nonzero(start.pairs.level == i)
        follow, among = level.follow.reshape(g * size, q), start.pairs.covariance[rows]
        beside = follow @ among
        own = beside @ follow.T + _block_diagonal(level.gain)
        covariance[rows] = np.block([[among, np.swapaxes(beside, 1, 2)], [beside, own]])
    design, there = few.design(), few.topics.member == np.arange(g)[:, None]
    beyond = design.ratios(about.point[None])[0] - few.offset.T + few.topics.base[:, None]
    columns = np.concatenate([np.broadcast_to(np.eye(d)[..., None], (d, d, len(few.weight))), beyond[None]])
    columns = (there[:, None, None] * columns).reshape(g * size, d, -1)
    design = replace(design, columns=np.concatenate([design.columns, columns]))
    pairs, prior = start.pairs._replace(mean=mean, covariance=covariance), np.zeros_like(mean)
    prior[:, :q] = prior_means(nodes, start.pairs)
    quadratic = Quadratic(arrow.common.constant, slope, curvature)
    found = modes_of(design, quadratic, prior, pairs, covariances=covariances)
    effects, whole = found.mean[:, q:].reshape(-1, g, size), found.covariance
    if whole is None:
        return start._replace(pairs=found._replace(mean=found.mean[:, :q]), effects=effects)
    mixed = np.einsum("m,mij->ij", _shares(found), whole)
    within = mixed[q:, q:].reshape(g, size, g, size)[np.arange(g), :, np.arange(g)]
    pairs = found._replace(mean=found.mean[:, :q], covariance=whole[:, :q, :q])
    return Joint(pairs, effects, within, mixed[q:, :q].reshape(g, size, q))


def _block_diagonal(blocks: Array) -> Array:
    """Matrix with blocks (G, P, P) on its diagonal, (G P, G P)."""
    g, size = blocks.shape[:2]
    found = np.zeros((g, size, g, size))
    found[np.arange(g), :, np.arange(g)] = blocks
    return found.reshape(g * size, g * size)
