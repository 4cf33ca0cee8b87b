"""Posterior of the share of events that happen, by group, from one score per event (a two-component mixture).

Of an event with score h the log-likelihood ratio of happening is a + c h; the density of scores of events that do not
happen is unknown and profiled out (Qin 1999, "Empirical likelihood ratio based confidence intervals for mixture
proportions", Annals of Statistics 27). Given a and c, groups with shares π_g and the events s that the pool was learned
from, whatever share of these happened and however they were selected, then have the log-likelihood
Σ_g Σ_t log(1 − π_g + π_g e^(a + c h_t)) + Σ_s y_s (a + c h_s) − max_λ Σ_t,s log(1 − λ + λ e^(a + c h)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.clusters import Clusters
from opinionpool.logodds import expit

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Scores lie within ±LARGEST, in bins that are finer where they are small; events' own priors have so many levels.
LARGEST, BINS, LEVELS = 30.0, 160, 12
# Log-odds of shares are looked at between these bounds, in steps that are fine beside their standard error.
BOUND, STEP = 9.0, 0.2
# Groups' log-odds of shares are normal with a mean N(0, 1.5²) and a half-normal(1.5) standard deviation.
MEANS, DEVIATIONS, WIDTH = np.linspace(-5.0, 5.0, 41), np.array([0.15, 0.3, 0.5, 0.8, 1.2, 1.8, 2.7]), 1.5
# Beforehand the line at the score of an event on which nobody says anything has a t distribution about 0, with so many
# degrees of freedom and this scale, and its slope a log-normal one about what is believed of any panel.
FREEDOM, INTERCEPT, SLOPE = 2.0, 1.0, 0.5
# Points of intercept and slope, in standard deviations: a few while these are sought, and those of the posterior.
SEARCH = 1.5 * np.array([(x, y) for x in range(-1, 2) for y in range(-1, 2)], dtype=np.float64)
POINTS = np.array([(x, y) for x in range(-3, 4) for y in range(-3, 4) if x * x + y * y <= 11], dtype=np.float64)
# Rounds of the search at most, and how little its centre and its width may change, in standard deviations, at its end.
ROUNDS, NEAR = 25, 0.3
# Log-odds beforehand that scores say what base rates are; less probable ways than the second number have no part.
DISBELIEF, LEAST = np.log(100.0), 0.01
# Fewer scores than this are not tested; sums of shares are rounded to so many digits.
ENOUGH, DIGITS = 10, 15


class Binned(NamedTuple):
    """Numbers of events in G groups and B bins of score and prior; an event between two bins counts in part in each.

    An event's score is the log-likelihood ratio of its forecasts.
    """

    scores: Array  # (B,)
    answered: Array  # (B,); 1, or 0 for events that nobody forecast
    offsets: Array  # (B,); log-odds of the events' own priors, less their mean
    counts: Array  # (3, G, B); of open events, of those that did not happen and of those that did

    @classmethod
    def of(
        cls, score: Array, group: Index, outcome: Index, groups: int, *,
        answered: Mask | None = None, offset: Array | None = None, weight: Array | None = None,
    ) -> Binned:  # fmt: skip
        """Count events in bins, by score, group, outcome (0, 1, or -1: open), log-odds of the prior and weight, (T,).

        `answered` is the mask of events with a forecast; by default all have one.
        """
        answered = np.ones(len(score), dtype=bool) if answered is None else answered
        offset = np.zeros(len(score)) if offset is None else offset
        weight = np.ones(len(score)) if weight is None else weight
        grid = np.sinh(np.linspace(-1.0, 1.0, BINS) * np.arcsinh(LARGEST))
        left = np.clip(np.searchsorted(grid, score, side="right") - 1, 0, BINS - 2)
        part = np.where(answered, np.clip((score - grid[left]) / np.diff(grid)[left], 0.0, 1.0), 0.0)
        left = np.where(answered, left, BINS)
        cuts = np.unique(np.quantile(offset, np.arange(1, LEVELS) / LEVELS))
        level, size = np.searchsorted(cuts, offset), len(cuts) + 1
        middle = np.bincount(level, offset - offset.mean(), size) / np.maximum(np.bincount(level, minlength=size), 1)
        # A last bin of each level is of events that nobody answered.
        place = (((outcome + 1) * groups + group) * size + level) * (BINS + 1) + left
        number = 3 * groups * size * (BINS + 1)
        counts = np.bincount(np.append(place, place + 1), np.append(weight * (1.0 - part), weight * part), number + 1)
        scores, some = np.tile(np.append(grid, 0.0), size), np.tile(np.arange(BINS + 1) < BINS, size)
        table = np.asarray(counts[:number], dtype=np.float64).reshape(3, groups, -1)
        used = table.any(axis=(0, 1))
        return cls(scores[used], some[used] / 1.0, np.repeat(middle, BINS + 1)[used], table[..., used])

    @classmethod
    def joined(cls, parts: Sequence[tuple[Binned, Index]], groups: int) -> Binned:
        """Bins of several `parts` as one; each part has the positions of its groups among all `groups`."""
        keys = np.concatenate([np.stack([each.scores, each.answered, each.offsets], axis=1) for each, _ in parts])
        columns, place = np.unique(keys, axis=0, return_inverse=True)
        counts = np.zeros((3, groups, len(columns)))
        for (each, rows), at in zip(
            parts, np.split(place, np.cumsum([len(b.scores) for b, _ in parts])[:-1]), strict=True
        ):
            counts[:, rows[:, None], at] += each.counts
        return cls(columns[:, 0], columns[:, 1], columns[:, 2], counts)

    def log_odds(self, line: Array) -> Array:
        """Log-likelihood ratio that an event in each bin happens, (B,): a + c · score, where `line` is (a, c)."""
        return np.asarray(np.clip(line[0] + line[1] * self.scores, -LARGEST, LARGEST))

    @property
    def limits(self) -> tuple[Array, Array]:
        """Smallest and largest possible share of each group, (G,) each: no open event happens, or all do."""
        _, failed, happened = self.counts.sum(axis=2) / self.counts.sum(axis=(0, 2))
        return happened, 1.0 - failed


@dataclass(frozen=True, eq=False)
class Shares:
    """Posterior of the shares of events that happen in G groups.

    An event with score h has a log-likelihood ratio a + c h of happening; the posterior is a mixture over F pairs (a,
    c), intercept and slope.
    """

    line: Array  # (2,); posterior mean of intercept and slope, by scores
    weight: Array  # (F,); posterior probability of each value
    mean: Array  # (F, G)
    deviation: Array  # (G,); standard deviations given intercept and slope
    limits: tuple[Array, Array]
    # (Q, G), columns of length 1, whose inner products are the groups' correlations given intercept and slope
    together: csr_array
    by_outcomes: float  # probability that base rates follow from outcomes given scores alone
    unlike: Array  # (G,); p-values of tests that scores are distributed as all groups' with the same outcome

    def sums(self, factor: Array, level: float) -> tuple[Array, Array, Array, Array]:
        """Mean, lower and upper bound, and probability of being above 0, (S,) each, of weighted sums of the shares.

        A row of `factor` (S, G) has the weights of one sum. Each sum has a beta distribution on its possible range,
        with the posterior's mean and variance. A sum that is known exactly is above 0 with probability 0 or 1, or 1/2
        if it is 0.
        """
        from scipy.sparse import csr_array, diags_array
        from scipy.special import betainc, betaincinv

        sparse = csr_array(factor)
        each = sparse @ self.mean.T
        within = self.together @ (sparse @ diags_array(self.deviation)).T
        (low, high), up, down = self.limits, sparse.maximum(0), sparse.minimum(0)
        least, most = up @ low + down @ high, up @ high + down @ low
        mean = np.clip(each @ self.weight, least, most)
        variance = np.square(each - mean[:, None]) @ self.weight + within.power(2).sum(axis=0)
        width = np.maximum(most - least, 1e-300)
        place = np.clip((mean - least) / width, 1e-9, 1.0 - 1e-9)
        size = np.maximum(place * (1.0 - place) * width**2 / np.maximum(variance, 1e-24) - 1.0, 1e-3)
        a, b = place * size, (1.0 - place) * size
        above = 1.0 - betainc(a, b, np.clip(-least / width, 0.0, 1.0))
        mean, least, width = (np.round(part, DIGITS) + 0.0 for part in (mean, least, width))
        below, beyond = (least + width * betaincinv(a, b, tail) for tail in ((1 - level) / 2, (1 + level) / 2))
        above = np.where(width > 0, above, np.sign(mean) / 2.0 + 0.5)
        return mean, np.minimum(below, mean), np.maximum(beyond, mean), above


def dependence(score: Array, group: Index, clusters: Clusters | None, groups: int) -> tuple[Array, csr_array]:
    """Design effect of each group (events per independent event), (G,), and a matrix R (Q, G).

    R'R has the correlations between the groups' shares. `score` (T,) is an open event's probability less its group's
    share, and 0 for a resolved event.
    """
    from scipy.sparse import coo_array, diags_array, eye_array, vstack

    if clusters is None:
        return np.ones(groups), eye_array(groups).tocsr()
    some = np.flatnonzero(score)
    table = coo_array(
        (score[some], (clusters.member[some], group[some])), (int(clusters.member.max()) + 1, groups)
    ).tocsc()
    number, single, joint = np.diff(table.indptr), np.bincount(group, score**2, groups), table.power(2).sum(axis=0)
    ratio = np.divide(joint, single, out=np.ones(groups), where=(single > 0) & (number > 1))
    unit = table @ diags_array(1.0 / np.sqrt(np.where(joint > 0, joint, 1.0)))
    together = vstack([unit, diags_array((joint <= 0) / 1.0)]).tocsr()
    return np.maximum(1.0, ratio * number / np.maximum(number - 1, 1)), together


class _Groups:
    """Likelihoods of base rates of G groups, on a grid of J log-odds, from scores and outcomes of binned events."""

    def __init__(
        self, data: Binned, believed: tuple[float, float], design: Array, worth: Array, *, random: bool
    ) -> None:
        self.seen, data = data.counts[1:, -1], data._replace(counts=data.counts[:, :-1])
        (self.null, self.slope), self.size = believed, data.counts.sum(axis=(0, 2))
        self.data, self.design = data, design
        step = min(STEP, 3.0 / np.sqrt(self.size.max()))
        nodes = np.linspace(-BOUND, BOUND, 2 * int(np.ceil(BOUND / step)) + 1)
        self.prior, self.log_hyper = _prior(nodes)
        self.open, self.failed, self.happened = data.counts * (worth / design)[:, None]
        self.moved = data.offsets[:, None] + nodes
        failed, happened = np.logaddexp(0.0, self.moved), np.logaddexp(0.0, -self.moved)
        self.sampled = -random * (self.failed @ failed + self.happened @ happened)

    def bin_ratios(self, line: Array) -> Array:
        """Log-likelihood ratio that an event in each bin happens, (B, 1), by `line` = (intercept, slope)."""
        return (self.data.answered * self.data.log_odds(line))[:, None]

    def scores_say(self, ratio: Array) -> Array:
        """Log-probability of open events' scores by group and base rate, (G, J); `ratio`: result of `bin_ratios`."""
        mixed = np.logaddexp(0.0, ratio + self.moved) - np.logaddexp(0.0, self.moved)
        return np.asarray(self.open @ mixed)

    def outcomes_say(self, ratio: Array) -> Array:
        """Log-probability of outcomes given scores by group and base rate, (G, J); `ratio`: result of `bin_ratios`."""
        failed, happened = np.logaddexp(0.0, ratio + self.moved), np.logaddexp(0.0, -ratio - self.moved)
        return np.asarray(-self.failed @ failed - self.happened @ happened)

    def base_rates(self, likelihood: Array) -> tuple[float, Array]:
        """Log-probability of the data, and posterior of each group's base rate, (G, J), from log-likelihoods (G, J)."""
        most = likelihood.max(axis=1, keepdims=True)
        relative = np.exp(likelihood - most)
        evidence = relative @ self.prior.T + 1e-300
        by_hyper = np.log(evidence).sum(axis=0) + self.log_hyper
        hyper = np.exp(by_hyper - by_hyper.max())
        found = relative * ((hyper / evidence) @ self.prior)
        return float(by_hyper.max() + np.log(hyper.sum()) + most.sum()), found / found.sum(axis=1, keepdims=True)

    def log_posterior(self, line: Array, *, by_scores: bool, evidence: float | None = None) -> float:
        """Log posterior density of (intercept, slope), plus a constant; open events count only if `by_scores`."""
        if line[1] <= 0:
            return -np.inf
        ratio, seen = self.bin_ratios(line), self.seen.sum(axis=0)
        away = np.array([line[0] + line[1] * self.null, np.log(line[1] / self.slope)]) / (INTERCEPT, SLOPE)
        before = (FREEDOM + 1.0) / 2.0 * np.log1p(away[0] ** 2 / FREEDOM) + away[1] ** 2 / 2.0
        value = float(self.seen[1] @ ratio[:, 0] - before)
        if not by_scores:
            return value - _profile(seen, ratio[:, 0])
        evidence = self.base_rates(self.scores_say(ratio) + self.sampled)[0] if evidence is None else evidence
        return value + evidence - _profile(self.open.sum(axis=0) + seen, ratio[:, 0])

    def at(self, line: Array, *, by_scores: bool) -> tuple[float, Array, Array]:
        """Log posterior density of `line` (intercept, slope); mean and variance of each share, (G,), if it is true."""
        ratio, open_ = self.bin_ratios(line), self.data.counts[0]
        say = self.scores_say(ratio) + self.sampled if by_scores else self.outcomes_say(ratio)
        evidence, found = self.base_rates(say)
        happens = expit(ratio + self.moved)
        mean = self.data.limits[0][:, None] + open_ @ happens / self.size[:, None]
        spread = open_ @ (happens * (1.0 - happens)) * (self.design / self.size**2)[:, None]
        centre = (found * mean).sum(axis=1)
        variance = (found * (spread + np.square(mean - centre[:, None]))).sum(axis=1)
        return self.log_posterior(line, by_scores=by_scores, evidence=evidence), centre, variance

    def lines(self, *, by_scores: bool) -> Array:
        """Pairs (intercept, slope), (F, 2), on a lattice about the posterior's mean, scaled to its covariance."""
        centre = self.slope * np.array([-self.null, 1.0])
        width = (self.slope * SLOPE) ** 2 * np.diag(np.square([1.0 + abs(self.null), 1.0]))
        for _ in range(ROUNDS):
            root = _root_of(width)
            lines = centre + SEARCH @ root.T
            weight = _shares_of([self.log_posterior(line, by_scores=by_scores) for line in lines])
            off = SEARCH * weight[:, None]
            # About the old centre, so that it grows where the posterior is outside.
            spread, moved = SEARCH.T @ off + np.eye(2) / 9.0, off.sum(axis=0)
            centre, width = weight @ lines, np.asarray(root @ spread @ root.T)
            if np.abs(moved).max() < NEAR and np.abs(spread - np.eye(2)).max() < NEAR:
                break
        return np.asarray(centre + POINTS @ _root_of(width).T)

    def shares(self, *, by_scores: bool) -> tuple[Array, Array, Array, Array]:
        """Mean of all `lines`, their probabilities (F,), and means and variances of shares if each is true, (F, G)."""
        lines = self.lines(by_scores=by_scores)
        value, mean, variance = zip(*(self.at(line, by_scores=by_scores) for line in lines), strict=True)
        weight = _shares_of(value)
        return weight @ lines, weight, np.array(mean), np.array(variance)

    def log_bayes_factor(self, line: Array, by_fit: Array) -> float:
        """Log Bayes factor of base rates by outcomes alone, with `by_fit`, against those by scores too, with `line`."""
        scores, outcomes = self.scores_say(self.bin_ratios(line)), self.outcomes_say(self.bin_ratios(line))
        without = self.base_rates(self.outcomes_say(self.bin_ratios(by_fit)))[0]
        return without - (self.base_rates(scores + outcomes)[0] - self.base_rates(scores)[0])


def posterior(
    data: Binned, believed: tuple[float, float], design: Array, worth: Array, together: csr_array, *, random: bool
) -> Shares:
    """Posterior of the share of events that happen in each of G groups; the last group in `data` has the fit's events.

    Two models are averaged by their posterior probabilities: in one, base rates follow from the scores of open events,
    too, in the other only from outcomes given scores. `believed` has the score of an event without information, and the
    median of the slope's prior; `design` and `together` are what `dependence` returns; `worth` multiplies
    log-likelihoods, below 1 where other classes' shares are unknown. If resolved events are not a `random` sample, they
    tell nothing about open ones.
    """
    groups, by_outcomes = _Groups(data, believed, design, worth, random=random), 0.0
    line, weight, mean, variance = groups.shares(by_scores=True)
    first = weight @ mean
    if random and groups.data.counts[1:].any():
        by_fit = groups.lines(by_scores=False).mean(axis=0)
        by_outcomes = float(expit(groups.log_bayes_factor(line, by_fit) - DISBELIEF))
        if by_outcomes > LEAST:
            _, *other = groups.shares(by_scores=False)
            weight = np.append((1.0 - by_outcomes) * weight, by_outcomes * other[0])
            mean, variance = np.concatenate([mean, other[1]]), np.concatenate([variance, other[2]])
    unlike = _unlike(groups.data, line, first, design)
    limits = groups.data.limits
    return Shares(line, weight, mean, np.sqrt(weight @ variance), limits, together, by_outcomes, unlike)


def _prior(nodes: Array) -> tuple[Array, Array]:
    """Prior of the log-odds `nodes` (J,) of shares by H pairs (mean, sd), (H, J), and the log prior of each pair."""
    mean, deviation = (each.ravel() for each in np.meshgrid(MEANS, DEVIATIONS))
    density = np.exp(-0.5 * np.square((nodes - mean[:, None]) / deviation[:, None]))
    log = np.log(deviation) - 0.5 * (np.square(mean / WIDTH) + np.square(deviation / WIDTH))
    return density / density.sum(axis=1, keepdims=True), log - np.log(np.exp(log).sum())


def _unlike(data: Binned, line: Array, rate: Array, design: Array) -> Array:
    """P-value, (G,), of a score test: given the outcome, a group's scores are distributed as those of all groups."""
    from scipy.special import chdtrc

    counts, odds = data.counts * data.answered, np.exp(data.log_odds(line))
    everybody, (size, failed, happened) = counts.sum(axis=(0, 1)), data.counts.sum(axis=2)
    base = everybody / (1.0 + _root(everybody, odds - 1.0) * (odds - 1.0))
    open_ = (rate - data.limits[0]) * (size + failed + happened) / np.maximum(size, 1)
    statistic, freedom = np.zeros(len(design)), np.zeros(len(design))
    for seen, share in zip(counts, (open_, 0.0 * open_, 0.0 * open_ + 1.0), strict=True):
        mixed = 1.0 + share[:, None] * (odds - 1.0)
        expected = base * mixed / np.maximum(mixed @ base, 1e-300)[:, None]
        score = np.stack(np.broadcast_arrays((odds - 1.0) / mixed, data.scores, data.scores**2), axis=1)
        score = score - np.einsum("gqb,gb->gq", score, expected)[..., None]
        spread = np.einsum("gqb,grb,gb->gqr", score, score, expected, optimize=True)
        scale = 1.0 / np.sqrt(np.maximum(np.diagonal(spread, axis1=1, axis2=2), 1e-300))
        total, number = np.einsum("gqb,gb->gq", score, seen) * scale, seen.sum(axis=1)
        inverse = np.linalg.pinv(spread * scale[:, :, None] * scale[:, None, :], rcond=1e-9, hermitian=True)
        found = np.einsum("gq,gqr,gr->g", total, inverse, total) - total[:, 0] ** 2
        statistic += np.where(number >= ENOUGH, found / np.maximum(number, 1) / design, 0.0)
        freedom += 2.0 * (number >= ENOUGH)
    return np.where(freedom > 0, chdtrc(np.maximum(freedom, 1), np.maximum(statistic, 0.0)), 1.0)


def _shares_of(value: Sequence[float]) -> Array:
    """Probabilities that sum to 1, whose logarithms are `value` up to a common constant."""
    weight = np.exp(np.array(value) - max(value))
    return np.asarray(weight / weight.sum())


def _root_of(covariance: Array) -> Array:
    """Lower triangular Cholesky root of a covariance (2, 2)."""
    return np.asarray(np.linalg.cholesky(covariance + 1e-12 * np.eye(2)), dtype=np.float64)


def _profile(weight: Array, log_odds: Array) -> float:
    """Maximum over shares λ in [0, 1] of the log-likelihood Σ weight log(1 − λ + λ e^log_odds) of a mixture."""
    x = np.expm1(log_odds)
    return float(weight @ np.log1p(_root(weight, x) * x))


def _root(weight: Array, x: Array) -> float:
    """The λ in [0, 1] that maximises Σ weight log(1 + λ x), by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if weight @ (x / (1.0 + middle * x)) > 0 else (low, middle)
    return (low + high) / 2
