"""Recency: how fast forecasts go stale, and how much an old forecast counts beside newer ones.

A forecast of age t, when the event is answered, has kept the share f = 2^(−t/h) of what it knew, h the half-life. It
counts as f of itself and 1 − f of what the others say, each by its own share, and n forecasts are worth no more than
the sum of their shares, as dependent as the experts are. Ages count from the newest forecast on the event, or from when
it is answered: then all of them lie nearer to the prior. Duplicates count as one, as old as the first of them.

No decay, and a few half-lives of either kind, each with a few correlations, are averaged by how well they predict the
outcomes with the weights of experts who are alike; beforehand they are moved by agreement (`Pairs`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Index, Mask
from opinionpool.display import Tabular
from opinionpool.errors import Note
from opinionpool.estimation.likelihood import Design
from opinionpool.estimation.newton import Prior, posterior_modes, posterior_probabilities
from opinionpool.estimation.regression import intercept_root
from opinionpool.forecasts import Forecasts
from opinionpool.learning.agreement import limited
from opinionpool.learning.constants import (
    AGREEMENT,
    CORRELATION,
    CORRELATION_PROBABILITIES,
    CORRELATIONS,
    HALF_LIVES,
    INTERCEPT,
    SLOPE,
    STEADY,
    TOGETHER,
)
from opinionpool.learning.duplicates import Duplicates, counted_once
from opinionpool.learning.prior import believed_slope
from opinionpool.logodds import FLOOR
from opinionpool.model.contrasts import contrasts

# From so many events on, and so many forecasts with an age above 0; without outcomes, from pairs worth so many.
FEWEST = 10
# How far lags vary is looked at by 2^(−lag/h), for h of so many median lags; at one, agreement counts fully from half
# the variance of exponential lags on, which is 1/12.
SCALES = (4.0, 1.0, 0.25)
VARIED = 1.0 / 24.0
# Sums of weights are that exact.
ROUNDING = 1e-9
# Forecasts are written to about so many log-odds.
WRITTEN = 0.05


@dataclass(frozen=True, eq=False)
class Recency(Tabular):
    """Posterior of the half-life of forecasts: the age at which half of what they knew is left.

    Examples
    --------
    >>> fast = Recency(np.array([1.0]), np.array([False]), np.array([0.6]), np.array([[1.0]]))
    >>> fast.contrasts(np.array([0, 0]), np.array([[1.0], [-1.0]]), np.array([0.0, 50.0]), 1).round(3).ravel()
    array([0.8, 0.8])
    """

    half_lives: Array  # (C,); in days, infinite where nothing decays
    # (C,); whether ages count from when the event is answered, and not from its newest forecast
    absolute: npt.NDArray[np.bool_]
    correlations: Array  # (R,); how dependent the experts may be
    probabilities: Array  # (C, R); of each half-life with each correlation, given the outcomes
    experts: tuple[str, ...] | None = None  # experts in the fit; None if every expert counts as distinct
    source: Index | None = None  # (N,); the distinct expert behind each expert in the fit, as in `Duplicates`
    # (C,); probability of each half-life, given only how old forecasts agree with the newest ones by other experts;
    # None if there are no such pairs
    by_agreement: Array | None = None

    def _table(self) -> dict[str, list[Any]]:
        return {
            "half_life": self.half_lives.tolist(),
            "ages_from": ["answer" if each else "newest forecast" for each in self.absolute.tolist()],
            "probability": self.by_half_life.tolist(),
        }

    @property
    def steady(self) -> float:
        """Posterior probability that forecasts do not lose value with age."""
        return float(self.by_half_life[np.isinf(self.half_lives)].sum())

    @property
    def by_half_life(self) -> Array:
        """Posterior probability of each half-life, (C,)."""
        return np.asarray(self.probabilities.sum(axis=1))

    @property
    def half_life(self) -> float:
        """Geometric mean of the half-lives in days, if forecasts lose value with age."""
        return self._half_life(self.by_half_life)

    def _half_life(self, probabilities: Array) -> float:
        decays = np.isfinite(self.half_lives)
        total = probabilities[decays].sum()
        if not total > 0:
            return np.inf
        return float(np.exp(probabilities[decays] / total @ np.log(self.half_lives[decays])))

    def contrasts(self, event: Index, contrast: Array, age: Array, events: int, count: Array | None = None) -> Array:
        """Log-ratios less the prior's, `contrast` (M, K - 1), discounted by `age` (M,) in days (NaN: as the newest).

        They are averaged over the posterior of half-lives and correlations; with a `count` (M,) of 0 they are
        unchanged.
        """
        count = np.ones(len(age)) if count is None else count
        found = np.zeros_like(contrast)
        for half_life, absolute, each in zip(self.half_lives, self.absolute, self.probabilities, strict=True):
            if np.isinf(half_life):
                found += each.sum() * contrast
            else:
                by_age = ByAge.of(event, contrast, age, events, float(half_life), count, absolute=bool(absolute))
                worth = sum(p * by_age.worth(rho) for rho, p in zip(self.correlations, each, strict=True))
                found += by_age.contrasts * np.asarray(worth)[event, None]
        return np.where(count[:, None] > 0, found, contrast)

    def forecasts(self, forecasts: Forecasts, reference: Array, floor: float = FLOOR) -> Forecasts:
        """Return the forecasts discounted by age, given each event's prior `reference` (T, K), and without times."""
        if forecasts.made is None:
            return forecasts
        plain = replace(forecasts, made=None, asked=None)
        count, age = Counted.of(forecasts, self._source(forecasts))
        if not (age > 0).any():
            return plain
        event = forecasts.event_index
        prior = reference[event]
        contrast = contrasts(forecasts.probabilities, prior, floor)
        moved = self.contrasts(event, contrast, age, len(forecasts.events), count)
        p = logodds.pooled_probabilities(logodds.prior_log_ratios(prior) + moved, prior, logodds.LEAST)
        changed = (moved != contrast).any(axis=1)
        own = logodds.public_probabilities(p)
        same = forecasts.probabilities
        return replace(plain, probabilities=np.where(changed if same.ndim == 1 else changed[:, None], own, same))

    def _source(self, forecasts: Forecasts) -> Index:
        """First expert with the same forecasts, for each expert, (N,); experts not learned from are distinct."""
        distinct = np.arange(len(forecasts.experts))
        if self.experts is None or self.source is None:
            return distinct
        learned = dict(zip(self.experts, self.source.tolist(), strict=True))
        beyond = len(self.experts) + distinct
        found = [learned.get(name, int(other)) for name, other in zip(forecasts.experts, beyond, strict=True)]
        return np.array(found, dtype=np.intp)

    def note(self) -> Note:
        """Note for users on how fast forecasts lose value, with the probability that they do."""
        text = (
            f"forecasts go stale with probability {1.0 - self.steady:.0%}; if they do, to half of what they knew in "
            f"about {self.half_life:.3g} days"
        )
        if self.by_agreement is None:
            return Note("recency", text)
        stale = f"{self.by_agreement[np.isfinite(self.half_lives)].sum():.0%}"
        days = "" if stale == "0%" else f", {self._half_life(self.by_agreement):.3g} days"
        return Note("recency", f"{text} (by agreement only: {stale}{days})")


class ByAge(NamedTuple):
    """Forecasts discounted by their age at one given half-life."""

    contrasts: Array  # (M, K - 1); means of each contrast and its event's, weighted by the share that is still valid
    number: Array  # (T,); number of forecasts
    total: Array  # (T,); sum of the valid shares of forecasts
    left: Array  # (T,); factor on the newest forecast

    @classmethod
    def of(
        cls, event: Index, contrast: Array, age: Array, events: int, half_life: float, count: Array, *, absolute: bool
    ) -> ByAge:
        """Return forecasts discounted at `half_life`; arguments as for `Recency.contrasts`."""
        known = ~np.isnan(age)
        newest = np.full(events, np.inf)
        np.minimum.at(newest, event[known], age[known])
        newest[np.isinf(newest)] = 0.0
        share = 0.5 ** ((np.where(known, age, newest[event]) - newest[event]) / half_life)
        total = np.asarray(np.bincount(event, count * share, events), dtype=np.float64)
        number = np.asarray(np.bincount(event, count, events), dtype=np.float64)
        sums = np.stack([np.bincount(event, count * share * c, events) for c in contrast.T], axis=1)
        common = (sums / np.maximum(total, 1.0)[:, None])[event]
        left = 0.5 ** (newest / half_life) if absolute else np.ones(events)
        return cls(share[:, None] * contrast + (1.0 - share[:, None]) * common, number, total, left)

    def worth(self, correlation: float) -> Array:
        """Factor on discounted contrasts, (T,): how much old forecasts say together, if experts have `correlation`."""
        count = np.maximum(self.number, 1.0)
        return self.left * believed_slope(np.maximum(self.total, 1.0), correlation) / believed_slope(count, correlation)


class Counted(NamedTuple):
    """How many forecasts each of M forecasts counts as (fewer than 1 for duplicates), and its age."""

    each: Array  # (M,); duplicates on an event count for one together, constant experts for none
    age: Array  # (M,); in days, NaN if unknown or if the forecast counts as 0

    @classmethod
    def of(cls, forecasts: Forecasts, source: Index) -> Counted:
        """Return counts and ages of forecasts with times; `source` is the first expert with the same forecasts.

        Duplicates are as old as the first of them.
        """
        assert forecasts.made is not None
        count, which = counted_once(forecasts.event_index, forecasts.expert_index, source)
        made = np.where(count > 0, forecasts.made, np.datetime64("NaT", "us"))
        first = np.full(len(made), np.datetime64("NaT", "us"))
        np.fmin.at(first, which, made)
        made = first[which]
        return cls(count, replace(forecasts, made=made).ages)


def learn_recency(forecasts: Forecasts, reference: Array, weight: Array, floor: float = FLOOR) -> Recency | None:
    """Posterior of half-lives from outcomes and agreement; None if both tell little, or few forecasts have an age."""
    if forecasts.made is None or forecasts.options is not None:
        return None
    beyond = contrasts(forecasts.probabilities, reference[forecasts.event_index], floor)
    source = Duplicates.among_cells(forecasts.event_index, forecasts.expert_index, beyond, forecasts.experts).source
    count, age = Counted.of(forecasts, source)
    beside = agreement(forecasts.event_index, source[forecasts.expert_index], beyond, age, count, weight)
    answered = np.bincount(forecasts.event_index, count, len(forecasts.events)) > 0
    used = forecasts.resolved & answered & (weight > 0)
    typical = _typical_age(forecasts.event_index, age, count, weight * used)
    if typical is None and beside.varied * beside.worth >= FEWEST * (1.0 - ROUNDING):
        typical = _typical_age(forecasts.event_index, age, count, weight)
    if typical is None:
        return None
    half_lives = np.array([np.inf, *(typical * each for _ in range(2) for each in HALF_LIVES)])
    absolute = np.repeat([False, True], [1 + len(HALF_LIVES), len(HALF_LIVES)])
    believed = np.full(len(half_lives), (1.0 - STEADY) / (len(half_lives) - 1))
    believed[0] = STEADY
    seen = beside.evidence(half_lives)
    by_agreement = informed(believed, seen, beside.varied) if beside.worth > 0 else None
    believed = informed(believed, seen, beside.varied * AGREEMENT)
    some = np.flatnonzero(used)
    found = _evidence(forecasts.select_events(some), source, reference[some], weight[some], half_lives, absolute, floor)
    posterior = posterior_probabilities(found.ravel(), np.outer(believed, CORRELATION_PROBABILITIES).ravel())
    probabilities = posterior.reshape(found.shape)
    return Recency(half_lives, absolute, np.array(CORRELATIONS), probabilities, forecasts.experts, source, by_agreement)


def _typical_age(event: Index, age: Array, count: Array, weight: Array) -> float | None:
    """Weighted median of the ages above 0; None if too few forecasts have such an age."""
    often = weight[event] * count
    aged = (age > 0) & (often > 0)
    if min(often[aged].sum(), weight.sum()) < FEWEST * (1.0 - ROUNDING):
        return None
    return weighted_median(age[aged], often[aged])


def _evidence(
    forecasts: Forecasts,
    source: Index,
    reference: Array,
    weight: Array,
    half_lives: Array,
    absolute: Mask,
    floor: float,
) -> Array:
    """Log marginal likelihood of the outcomes for each half-life and correlation, (C, R)."""
    event, t = forecasts.event_index, len(forecasts.events)
    if not t:
        return np.zeros((len(half_lives), len(CORRELATIONS)))
    count, age = Counted.of(forecasts, source)
    contrast = limited(contrasts(forecasts.probabilities, reference[event], floor))
    d = contrast.shape[1]
    pooled = np.empty((len(half_lives) * len(CORRELATIONS), d, t))
    for place, (half_life, from_answer) in enumerate(zip(half_lives, absolute, strict=True)):
        by_age = ByAge.of(event, contrast, age, t, float(half_life), count, absolute=bool(from_answer))
        sums = np.stack([np.bincount(event, count * c, t) for c in by_age.contrasts.T], axis=1)
        mean = sums / by_age.number[:, None]
        for r, rho in enumerate(CORRELATIONS):
            weights = believed_slope(by_age.number, rho) * by_age.worth(rho)
            pooled[place * len(CORRELATIONS) + r] = (weights[:, None] * mean).T
    offset = logodds.prior_log_ratios(reference).T + pooled
    design = Design(pooled[:, None], np.ones((1, t)), offset, forecasts.outcomes, weight)
    root = np.zeros((len(pooled), d + 1, d + 1))
    root[:, :d, :d], root[:, d, d] = intercept_root(INTERCEPT, d), SLOPE
    modes = posterior_modes(design, Prior(np.zeros((len(pooled), d + 1)), root))
    found = [mode.log_marginal_likelihood for mode in modes]
    return np.array(found).reshape(len(half_lives), len(CORRELATIONS))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of an old contrast and a newer contrast, by somebody else, on the same event.

    Given a contrast C' that was made d days later, C is normal with mean r f C' and variance
    v ((1 − r) + r f (1 − r f)), f = 2^(−d/h), r the share that two have in common when they are made together. If the
    same experts are always early, differences between experts look like decay, so pairs count by how much the time
    between forecasts of the same experts varies.
    """

    # old, new: (P, K - 1)
    old: Array
    new: Array
    days: Array  # (P,); how much later the newer one was made, above 0
    weight: Array  # (P,); for how many events each counts; pairs on one event count less, as experts are dependent
    varied: float = 1.0  # share, 0 to 1, of differences in days that is not due to which experts forecast

    @classmethod
    def of(cls, event: Index, old: Array, new: Array, days: Array, count: Array, weight: Array) -> Pairs:
        """Return the pairs that count, from `count` (P,) of each pair and `weight` (T,) of each event."""
        kept = np.flatnonzero((days > 0) & (count * weight[event] > 0))
        # In an order of their own, so that sums are the same to the last bit whatever order events have.
        kept = kept[np.lexsort((*new[kept].T, *old[kept].T, days[kept]))]
        event, count = event[kept], count[kept]
        n = np.maximum(np.bincount(event, count, len(weight))[event], 1.0)
        counts = weight[event] * count / (1.0 + (n - 1.0) * CORRELATION)
        return cls(old[kept], new[kept], days[kept], np.asarray(counts))

    @property
    def worth(self) -> float:
        """Number of independent events that the pairs count as."""
        return float(self.weight.sum())

    def evidence(self, half_lives: Array) -> Array:
        """Log marginal likelihood of the old contrasts at each of `half_lives`, (C,), up to a constant."""
        if not len(self.days):
            return np.zeros(len(half_lives))
        different, place = np.unique(half_lives, return_inverse=True)
        return np.array([self._likelihood(float(h)) for h in different])[place]

    def _likelihood(self, half_life: float) -> float:
        """Log-likelihood of the old contrasts at `half_life`, maximised over the contrasts' variance."""
        shared = np.array(TOGETHER)[:, None]
        f = shared * 0.5 ** (self.days / half_life)
        spread = (1.0 - shared) + f * (1.0 - f)
        off, d = self.old - f[..., None] * self.new, float(self.old.shape[1])
        variance = (logodds.inner_products(off, off) / spread) @ self.weight / (self.worth * d)
        found = -0.5 * d * (np.log(spread) @ self.weight + self.worth * np.log(variance + WRITTEN**2))
        return float(np.logaddexp.reduce(found))


def agreement(event: Index, source: Index, contrast: Array, age: Array, count: Array, weight: Array) -> Pairs:
    """Pair each older forecast with the mean of the newest forecasts by other experts on the same event.

    `source` (M,) is the distinct expert behind each forecast, `count` (M,) for how many each counts.
    """
    events, contrast = len(weight), limited(contrast)
    newest = np.full(events, np.inf)
    known = ~np.isnan(age)
    np.minimum.at(newest, event[known], age[known])
    first = age == newest[event]
    own = np.where(first, count, 0.0)
    number = np.bincount(event, own, events)
    sums = np.stack([np.bincount(event, own * c, events) for c in contrast.T], axis=1)
    mean = sums / np.maximum(number, np.finfo(np.float64).tiny)[:, None]
    # Copies of the newest agree with it at any age.
    key = _keys(event, source)
    others = np.where(np.isin(key, key[first]), 0.0, count)
    days = age - newest[event]
    pairs = Pairs.of(event, contrast, mean[event], days, others, weight)
    if not len(pairs.days):
        return pairs
    kept = np.flatnonzero((days > 0) & (others * weight[event] > 0))
    pair = _keys(_sets(event, source, own > 0, events)[event[kept]], source[kept])
    return replace(pairs, varied=_varied(pair, days[kept], others[kept] * weight[event[kept]]))


def _keys(first: Index, second: Index) -> Index:
    """One integer for each pair of `first` and `second`, (n,) each; different pairs have different ones."""
    return np.asarray(first * (second.max(initial=0) + 2) + second + 1)


def _sets(event: Index, source: Index, some: Mask, events: int) -> Index:
    """Label of the set of distinct experts who made each event's forecasts in the mask `some`, (T,)."""
    _, once = np.unique(np.where(some, _keys(event, source), -1), return_index=True)
    once = once[some[once]]
    # Sums of random integers of 64 bits distinguish sets.
    drawn = np.random.default_rng(0).integers(2**64, size=source.max() + 2, dtype=np.uint64)
    found = np.zeros(events, dtype=np.uint64)
    np.add.at(found, event[once], drawn[source[once] + 1])
    return np.asarray(np.unique(found, return_inverse=True)[1])


def _varied(pair: Index, days: Array, weight: Array) -> float:
    """Share, from 0 to 1, of the variance of the lags `days` (P,) that is within pairs of experts, not between."""
    # In an order of their own, so that sums are the same to the last bit whatever order events have.
    order = np.lexsort((weight, days))
    days, weight, group = days[order], weight[order], np.unique(pair, return_inverse=True)[1][order]
    often = np.bincount(group, weight)
    within = np.sort(np.maximum(often - 1.0, 0.0)).sum() + 1.0
    found, typical = 1.0, weighted_median(days, weight)
    for scale in SCALES:
        left = 0.5 ** (days / (scale * typical))
        mean = (np.bincount(group, weight * left) / often)[group]
        own = float(np.sort(weight * (left - mean) ** 2).sum()) / within
        of_all = float(weight @ (left - np.average(left, weights=weight)) ** 2) / float(weight.sum())
        found = min(found, own / max(of_all, ROUNDING), own / VARIED if scale == 1.0 else 1.0)
    return found


def informed(believed: Array, evidence: Array, relevant: float) -> Array:
    """Probabilities of half-lives, (C,): `believed`, updated by log-likelihoods `evidence`, to the power `relevant`."""
    return np.asarray((1.0 - relevant) * believed + relevant * posterior_probabilities(evidence, believed))


def weighted_median(values: Array, weight: Array) -> float:
    """Median of `values` (n,), each counted `weight` (n,) times; weights need not be whole numbers.

    >>> weighted_median(np.array([5.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]))
    2.0
    """
    order = np.argsort(values)
    share = np.cumsum(weight[order])
    low, high = np.searchsorted(share / share[-1], (0.5 - ROUNDING, 0.5 + ROUNDING))
    return float(values[order[low]] + values[order[high]]) / 2.0
