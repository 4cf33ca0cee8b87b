"""Posterior of the share of events that happen, by group, from one score an event: a mixture of two densities.

Of an event with score h the log-likelihood ratio of happening is a + c h; the density of scores of events that do not
happen is unknown and profiled out (Qin 1999, "Empirical likelihood ratio based confidence intervals for mixture
proportions", Annals of Statistics 27). Given a and c, groups with shares π_g then have the log-likelihood
Σ_g Σ_t log(1 − π_g + π_g e^(a + c h_t)) − max_λ Σ_t log(1 − λ + λ e^(a + c h_t)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.logodds import expit

BINS = 160
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
    """Events of G groups by score, in B bins; an event's weight is split between the two that are next to its score."""

    scores: Array  # (B,)
    open_: Array  # (G, B)
    resolved: Array  # (2, G, B); by outcome
    silent: Array  # (G,); open events about which nobody says anything
    outcomes: Array  # (2, G); all resolved events, by outcome

    @classmethod
    def of(cls, score: Array, group: Index, outcome: Index, said: Array, groups: int) -> Binned:
        """Events with a score, a group, an outcome of 0 or 1 or -1, and whether anybody says anything, (T,) each."""
        low, high = (float(end(score, initial=0.0)) for end in (np.min, np.max))
        place = (score - low) / max(high - low, 1e-9) * (BINS - 1)
        left = np.minimum(place.astype(np.intp), BINS - 2)
        # Open events, those that did not happen and those that did.
        row = (outcome + 1) * groups + group
        tables = np.zeros(3 * groups * BINS)
        for at, weight in ((left, 1.0 - place + left), (left + 1, place - left)):
            tables += np.bincount(row * BINS + at, weight * said, len(tables))
        counts = np.bincount(row, minlength=3 * groups).reshape(3, groups)
        table = tables.reshape(3, groups, BINS)
        silent = np.bincount(group, (outcome < 0) & ~said, groups)
        return cls(np.linspace(low, max(high, low + 1e-9), BINS), table[0], table[1:], silent, counts[1:])

    @property
    def sizes(self) -> Array:
        """Events of each group, (G,)."""
        return np.asarray(self.open_.sum(axis=1) + self.silent + self.outcomes.sum(axis=0))


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
        """Mean, interval and probability above 0 of Σ_g factor_g share_g, a mixture of F normals.

        `correlation` is that of two groups given intercept and slope, where there are two.
        """
        from scipy.special import ndtr

        mean, part = self.mean @ factor, factor * np.sqrt(self.variance)
        error = np.sqrt(np.square(part).sum(axis=1) + correlation * 2.0 * part.prod(axis=1) * (len(factor) == 2)) + 1e-12
        x = np.linspace((mean - 6 * error).min(), (mean + 6 * error).max(), 2001)
        below = self.weight @ ndtr((x - mean[:, None]) / error[:, None])
        low, high = np.interp([(1 - level) / 2, (1 + level) / 2], below, x)
        return float(self.weight @ mean), float(low), float(high), float(self.weight @ ndtr(mean / error))


def posterior(data: Binned, covariance: Array, design: Array, *, random: bool) -> Shares:
    """Posterior of the groups' shares.

    Parameters
    ----------
    data : Binned
    covariance : ndarray, shape (2, 2)
        Of intercept and slope, which are N((0, 1), covariance) given the resolved events.
    design : ndarray, shape (G,)
        Events of each group for one independent event.
    random : bool
        Whether the resolved events are a random sample of their group; else they say nothing about the open ones.
    """
    step = min(STEP, 3.0 / np.sqrt(data.sizes.max()))
    nodes = np.linspace(-BOUND, BOUND, 2 * int(np.ceil(BOUND / step)) + 1)
    prior, log_hyper = _prior(nodes)
    open_, known = data.open_ / design[:, None], data.resolved.sum(axis=(0, 1))
    sampled = data.outcomes / design * random
    said = sampled[1][:, None] * np.log(expit(nodes)) + sampled[0][:, None] * np.log(expit(-nodes))
    everybody = np.stack([open_.sum(axis=0) + known, known])
    size = data.sizes[:, None]

    def at(line: Array) -> tuple[float, Array, Array, Array]:
        """Log evidence, (G, J) probabilities of the shares' log-odds, and mean and variance of shares given these."""
        ratio = line[0] + line[1] * data.scores
        mixed = np.logaddexp(0.0, ratio[:, None] + nodes) - np.logaddexp(0.0, nodes)
        likelihood = open_ @ mixed + said
        most = likelihood.max(axis=1, keepdims=True)
        relative = np.exp(likelihood - most)
        evidence = relative @ prior.T + 1e-300
        by_hyper = np.log(evidence).sum(axis=0) + log_hyper
        top = by_hyper.max()
        hyper = np.exp(by_hyper - top)
        found = relative * ((hyper / evidence) @ prior)
        found /= found.sum(axis=1, keepdims=True)
        together, apart = map(_peak, everybody @ mixed)
        share, happens = expit(nodes), expit(ratio[:, None] + nodes)
        mean = (data.outcomes[1][:, None] + data.open_ @ happens + data.silent[:, None] * share) / size
        spread = data.open_ @ (happens * (1.0 - happens)) + data.silent[:, None] * share * (1.0 - share)
        value = top + np.log(hyper.sum()) + most.sum() - together + apart
        return float(value), found, mean, spread * design[:, None] / size**2

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


def _summary(
    line: Array, weight: Array, found: list[tuple[float, Array, Array, Array]], data: Binned
) -> Shares:
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


def _peak(values: Array) -> float:
    """The maximum of a smooth function on a grid, by the parabola through the three largest values."""
    i = int(np.clip(values.argmax(), 1, len(values) - 2))
    before, here, after = values[i - 1 : i + 2]
    bend = before - 2.0 * here + after
    return float(here - 0.125 * (after - before) ** 2 / bend if bend < 0 else values.max())


def unlike(data: Binned, shares: Shares, design: Array) -> Array:
    """P-value of each group's scores being those of all events with the same outcomes, (G,).

    A score test (Rao) with two degrees of freedom, means and squares of scores, for open events, beside their share,
    and for resolved ones of each outcome.
    """
    from scipy.special import chdtrc

    odds = np.exp(shares.line[0] + shares.line[1] * data.scores)
    everybody = data.open_.sum(axis=0) + data.resolved.sum(axis=(0, 1))
    base = everybody / (1.0 + _root(everybody, odds - 1.0) * (odds - 1.0))
    z = (data.scores - everybody @ data.scores / everybody.sum()) / max(float(np.ptp(data.scores)), 1e-9)
    told = data.outcomes[1]
    share = np.clip((shares.weight @ shares.mean * data.sizes - told) / np.maximum(data.sizes - told, 1), 0.0, 1.0)
    statistic, freedom = np.zeros(len(share)), np.zeros(len(share))
    for seen, p in ((data.open_, share), (data.resolved[0], np.zeros(len(share))), (data.resolved[1], np.ones(len(share)))):
        mixed = 1.0 + p[:, None] * (odds - 1.0)
        expected = base * mixed
        expected /= expected.sum(axis=1, keepdims=True)
        own = np.broadcast_to((z, z * z), (len(p), 2, len(z)))
        own = own - np.einsum("gqb,gb->gq", own, expected)[:, :, None]
        if seen is data.open_:
            free = (odds - 1.0) / mixed
            free -= (free * expected).sum(axis=1, keepdims=True)
            joint = np.einsum("gqb,gb->gq", own, free * expected) / (free**2 * expected).sum(axis=1)[:, None]
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
