"""Posterior of the share of events that happen, by group, from one score an event: a mixture of two densities.

Of an event with score h the log-likelihood ratio of happening is a + c h; the density of scores of events that do not
happen is unknown and profiled out (Qin 1999, "Empirical likelihood ratio based confidence intervals for mixture
proportions", Annals of Statistics 27). Given a and c, groups with shares π_g then have the log-likelihood
Σ_g Σ_t log(1 − π_g + π_g e^(a + c h_t)) − max_λ Σ_t log(1 − λ + λ e^(a + c h_t)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.logodds import expit

# Bins of scores, and of events' own priors.
BINS, LEVELS = 160, 12
# Log-odds of shares are looked at between these bounds, in steps that are fine beside their standard error.
BOUND, STEP = 9.0, 0.2
# Groups' log-odds of shares are normal with a mean N(0, 1.5²) and a half-normal(1.5) standard deviation.
MEANS, DEVIATIONS, WIDTH = np.linspace(-5.0, 5.0, 41), np.array([0.15, 0.3, 0.5, 0.8, 1.2, 1.8, 2.7]), 1.5
# Points of intercept and slope, in standard deviations, and how often they are laid around the last posterior.
POINTS = np.array([(x, y) for x in range(-3, 4) for y in range(-3, 4) if x * x + y * y <= 11], dtype=np.float64)
ROUNDS = 3
# Fewer scores than this are not tested.
ENOUGH = 10
# Nodes and weights that stand for a normal deviate (Gauss and Hermite).
NORMAL = ((-np.sqrt(3.0), 1 / 6), (0.0, 2 / 3), (np.sqrt(3.0), 1 / 6))


class Binned(NamedTuple):
    """Events of G groups in B bins by score and by prior; an event counts in the two bins next to its score."""

    scores: Array  # (B,)
    answered: Array  # (B,); 0 where nobody says anything, else 1
    offsets: Array  # (B,); log-odds of the events' own priors, less their mean
    counts: Array  # (3, G, B); of open events, of those that did not happen and of those that did

    @classmethod
    def of(cls, score: Array, group: Index, outcome: Index, answered: Mask, offset: Array, groups: int) -> Binned:
        """Events by score, group, outcome (0, 1 or -1), whether anybody answered, and prior log-odds, (T,) each."""
        low, high = (float(end(score, initial=0.0)) for end in (np.min, np.max))
        place = (score - low) / max(high - low, 1e-9) * (BINS - 1)
        left = np.where(answered, np.minimum(place.astype(np.intp), BINS - 2), BINS)
        offset = offset - offset.mean()
        levels, level = np.unique(offset.round(6), return_inverse=True)
        if len(levels) > LEVELS:
            cuts = np.quantile(offset, np.arange(1, LEVELS) / LEVELS)
            level = np.searchsorted(cuts, offset)
            levels = np.bincount(level, offset, LEVELS) / np.maximum(np.bincount(level, minlength=LEVELS), 1)
        # A last bin of each level is of events that nobody answered.
        width = len(levels) * (BINS + 1)
        row = ((outcome + 1) * groups + group) * width + level * (BINS + 1)
        counts = np.bincount(row + left, np.where(answered, 1.0 - place + left, 1.0), 3 * groups * width).astype(
            np.float64
        )
        counts += np.bincount((row + left + 1)[answered], (place - left)[answered], len(counts))
        scores = np.append(np.linspace(low, max(high, low + 1e-9), BINS), 0.0)
        some = np.append(np.ones(BINS), 0.0)
        repeats = len(levels)
        table = counts.reshape(3, groups, width)
        return cls(np.tile(scores, repeats), np.tile(some, repeats), np.repeat(levels, BINS + 1), table)

    @property
    def outcomes(self) -> Array:
        """Resolved events by outcome, (2, G)."""
        return np.asarray(self.counts[1:].sum(axis=2))

    @property
    def sizes(self) -> Array:
        """Events of each group, (G,)."""
        return np.asarray(self.counts.sum(axis=(0, 2)))

    def by_score(self) -> tuple[Array, Array]:
        """Scores (BINS,) and counts (3, G, BINS) of answered events whatever their priors."""
        table = self.counts.reshape(*self.counts.shape[:2], -1, BINS + 1).sum(axis=2)
        return self.scores[:BINS], table[..., :BINS]


class Conditional(NamedTuple):
    """The posterior given intercept and slope, at J log-odds of the base rates."""

    evidence: float  # logarithm, up to a constant
    probability: Array  # (G, J)
    # mean, variance: (G, J); of the shares among the events
    mean: Array
    variance: Array


@dataclass(frozen=True, eq=False)
class Shares:
    """Posterior of the shares of G groups, at F points of intercept and slope, given which groups are independent."""

    line: Array  # (2,); posterior mean of intercept and slope
    weight: Array  # (F,)
    mean: Array  # (F, G)
    variance: Array  # (F, G)
    points: tuple[Index, Array, Array]  # group, weight and share of points that stand for all

    def interval(self, level: float) -> tuple[Array, Array]:
        """Equal-tailed intervals of the groups' shares, (G,) each."""
        group, weight, share = self.points
        order = np.lexsort((share, group))
        group, weight, share = group[order], weight[order], share[order]
        total = np.bincount(group, weight)
        # Where each point's weight is half used, with the number of its group before the decimal point.
        used = (np.cumsum(weight) - weight / 2 - (np.cumsum(total) - total)[group]) / total[group] + group
        ends = (np.arange(len(total)) + tail for tail in ((1 - level) / 2, (1 + level) / 2))
        low, high = (np.interp(end, used, share) for end in ends)
        return low, high

    def of_sum(self, factor: Array, correlation: float, level: float) -> tuple[float, float, float, float]:
        """Mean, interval and probability above 0 of Σ_g factor_g share_g; `correlation` is of two given the line."""
        from scipy.special import ndtr

        mean, part = self.mean @ factor, factor * np.sqrt(self.variance)
        error = (
            np.sqrt(np.square(part).sum(axis=1) + correlation * 2.0 * part.prod(axis=1) * (len(factor) == 2)) + 1e-12
        )
        x = np.linspace((mean - 6 * error).min(), (mean + 6 * error).max(), 2001)
        below = self.weight @ ndtr((x - mean[:, None]) / error[:, None])
        low, high = np.interp([(1 - level) / 2, (1 + level) / 2], below, x)
        return float(self.weight @ mean), float(low), float(high), float(self.weight @ ndtr(mean / error))


def _conditional(data: Binned, design: Array, worth: Array, *, random: bool) -> Callable[[Array], Conditional]:
    """The posterior of shares given intercept and slope, as a function of these; arguments as for `posterior`."""
    step = min(STEP, 3.0 / np.sqrt(data.sizes.max()))
    nodes = np.linspace(-BOUND, BOUND, 2 * int(np.ceil(BOUND / step)) + 1)
    prior, log_hyper = _prior(nodes)
    each = (worth / design)[:, None]
    counts = data.counts * each
    known = data.counts[1:].sum(axis=(0, 1))
    everybody = np.stack([counts[0].sum(axis=0) + known, known])
    size, moved = data.sizes[:, None], data.offsets[:, None] + nodes
    failed, happened = counts[1:] * random
    sampled = -failed @ np.logaddexp(0.0, moved) - happened @ np.logaddexp(0.0, -moved)

    def at(line: Array) -> Conditional:
        ratio = (data.answered * (line[0] + line[1] * data.scores))[:, None]
        mixed = np.logaddexp(0.0, ratio + moved) - np.logaddexp(0.0, moved)
        likelihood = counts[0] @ mixed + sampled
        most = likelihood.max(axis=1, keepdims=True)
        relative = np.exp(likelihood - most)
        evidence = relative @ prior.T + 1e-300
        by_hyper = np.log(evidence).sum(axis=0) + log_hyper
        top = by_hyper.max()
        hyper = np.exp(by_hyper - top)
        found = relative * ((hyper / evidence) @ prior)
        found /= found.sum(axis=1, keepdims=True)
        odds = np.expm1(ratio[:, 0])
        together, resolved = (float(each @ np.log1p(_root(each, odds) * odds)) for each in everybody)
        happens = expit(ratio + moved)
        mean = (data.outcomes[1][:, None] + data.counts[0] @ happens) / size
        spread = data.counts[0] @ (happens * (1.0 - happens))
        value = top + np.log(hyper.sum()) + most.sum() - together + resolved
        return Conditional(float(value), found, mean, spread * design[:, None] / size**2)

    return at


def posterior(data: Binned, covariance: Array, design: Array, worth: Array, *, random: bool) -> Shares:
    """Posterior of the groups' shares; intercept and slope are N((0, 1), covariance) given the resolved events.

    `design` is the number of events for one independent event, `worth` how much of a log-likelihood counts where shares
    of further classes are unknown too; if not `random`, resolved events say nothing about the open ones.
    """
    at = _conditional(data, design, worth, random=random)
    covariance = covariance + 1e-10 * np.eye(2)
    centre, width = np.array([0.0, 1.0]), covariance
    for _ in range(ROUNDS):
        lines = centre + POINTS @ np.linalg.cholesky(width + 1e-10 * np.eye(2)).T
        found = [at(line) for line in lines]
        off = lines - (0.0, 1.0)
        log = np.array([each[0] for each in found]) - 0.5 * (off * np.linalg.solve(covariance, off.T).T).sum(axis=1)
        weight = np.exp(log - log.max())
        weight /= weight.sum()
        centre = weight @ lines
        width = (lines - centre).T @ (weight[:, None] * (lines - centre))
    return _summary(centre, weight, found, data)


def _summary(line: Array, weight: Array, found: list[Conditional], data: Binned) -> Shares:
    """The posterior from its parts at each point of intercept and slope."""
    mean = np.array([(p * m).sum(axis=1) for _, p, m, _ in found])
    variance = np.array([(p * (v + m * m)).sum(axis=1) for _, p, m, v in found]) - mean**2
    groups, weights, shares = [], [], []
    for w, (_, p, m, v) in zip(weight, found, strict=True):
        group, node = np.nonzero(w * p > 1e-6)
        for z, part in NORMAL:
            groups.append(group)
            weights.append(part * w * p[group, node])
            shares.append(m[group, node] + z * np.sqrt(v[group, node]))
    group, share = np.concatenate(groups), np.concatenate(shares)
    least, most = data.outcomes[1] / data.sizes, 1.0 - data.outcomes[0] / data.sizes
    share = np.clip(share, least[group], most[group])
    return Shares(line, weight, mean, np.maximum(variance, 0.0), (group, np.concatenate(weights), share))


def _prior(nodes: Array) -> tuple[Array, Array]:
    """Probabilities of the nodes for each mean and deviation of the groups' log-odds, (H, J), and log p of these."""
    mean, deviation = (each.ravel() for each in np.meshgrid(MEANS, DEVIATIONS))
    density = np.exp(-0.5 * np.square((nodes - mean[:, None]) / deviation[:, None]))
    log = np.log(deviation) - 0.5 * (np.square(mean / WIDTH) + np.square(deviation / WIDTH))
    return density / density.sum(axis=1, keepdims=True), log - np.log(np.exp(log).sum())


def unlike(data: Binned, shares: Shares, design: Array) -> Array:
    """P-value of a score test (Rao) of means and squares of each group's scores against all of the outcome, (G,)."""
    from scipy.special import chdtrc

    scores, counts = data.by_score()
    odds = np.exp(shares.line[0] + shares.line[1] * scores)
    everybody = counts.sum(axis=(0, 1))
    base = everybody / (1.0 + _root(everybody, odds - 1.0) * (odds - 1.0))
    z = (scores - everybody @ scores / max(everybody.sum(), 1e-9)) / max(float(np.ptp(scores)), 1e-9)
    happened = data.outcomes[1]
    share = np.clip(
        (shares.weight @ shares.mean * data.sizes - happened) / np.maximum(data.sizes - happened, 1), 0.0, 1.0
    )
    statistic, freedom = np.zeros(len(share)), np.zeros(len(share))
    for seen, p in zip(counts, (share, 0.0 * share, 1.0 + 0.0 * share), strict=True):
        mixed = 1.0 + p[:, None] * (odds - 1.0)
        expected = base * mixed
        expected /= np.maximum(expected.sum(axis=1, keepdims=True), 1e-300)
        own = np.broadcast_to((z, z * z), (len(p), 2, len(z)))
        own = own - np.einsum("gqb,gb->gq", own, expected)[:, :, None]
        if p is share:
            free = (odds - 1.0) / mixed
            free -= (free * expected).sum(axis=1, keepdims=True)
            joint = (
                np.einsum("gqb,gb->gq", own, free * expected)
                / np.maximum((free**2 * expected).sum(axis=1), 1e-300)[:, None]
            )
            own = own - joint[:, :, None] * free[:, None, :]
        number = seen.sum(axis=1)
        enough = number >= ENOUGH
        total = np.einsum("gqb,gb->gq", own, seen)
        spread = np.einsum("gqb,grb,gb->gqr", own, own, expected, optimize=True) * np.maximum(number, 1)[:, None, None]
        found = np.einsum("gq,gqr,gr->g", total, np.linalg.pinv(spread, rcond=1e-9, hermitian=True), total)
        statistic += np.where(enough, found / design, 0.0)
        freedom += 2 * enough
    return np.where(freedom > 0, chdtrc(np.maximum(freedom, 1), statistic), 1.0)


def _root(weight: Array, x: Array) -> float:
    """λ from 0 to 1 that maximises Σ weight log(1 + λ x), by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if weight @ (x / (1.0 + middle * x)) > 0 else (low, middle)
    return (low + high) / 2
