"""Probabilities that forecasts stand for: votes hide how certain a judge is, scales are shifted, and zeros are rounded.

Level l of M counts as the mean log-odds of probabilities from (l - 1)/M to l/M, M (H((l - 1)/M) - H(l/M)) with
H(u) = -u ln u - (1 - u) ln(1 - u), less a shift that is common to all who use the scale, 0 with probability
1 - `ARBITRARY`, else normal. Its posterior mean, by how far the mean log-odds of all scores is from those of the base
rate as outcomes show it, is subtracted. So is, on each event, the mean leniency of those who gave a score there: how
far their scores are above those of others on the same events, normal with the variance that is most likely. So an
event's scores do not depend on who happened to judge it; where all judge everything, nothing is subtracted.
Who says 0 and 1 and nothing else votes, as by a scale of two levels.

A 0 by who rounds is a level, too: that of what is below h/2, h the least that the expert ever says but 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import LEAST, Array, Index, Mask
from opinionpool.estimation.likelihood import Design
from opinionpool.estimation.newton import posterior_modes
from opinionpool.forecasts import Forecasts
from opinionpool.learning.constants import ARBITRARY, BASE_RATE, SHIFT
from opinionpool.learning.problem import Problem
from opinionpool.logodds import check_floor, expit, logit
from opinionpool.names import places

# Rounds in which leniency is found, and the change that ends them.
ROUNDS, TOLERANCE = 20, 1e-10


@dataclass(frozen=True, eq=False)
class Coding:
    """Rules that replace the forecasts of N experts by the probabilities that they stand for.

    Attributes
    ----------
    experts : tuple of str
    levels : ndarray of int, shape (N,)
        Number of levels of the scale of each expert who gives levels, else 0.
    votes : ndarray of bool, shape (N,)
        Which experts say only 0 and 1, without a scale.
    scale : ndarray of int, shape (N,)
        Number of the scale of each expert who gives levels, else -1.
    shift, leniency : ndarray, shape (N,)
        In log-odds; 0 for experts who give no levels.
    zero : ndarray, shape (N,), or (N, 1) when K > 2
        Probability that a 0 counts as; 0 for experts who do not round.
    """

    experts: tuple[str, ...]
    levels: Index
    votes: Mask
    scale: Index
    shift: Array
    leniency: Array
    zero: Array

    @classmethod
    def of(cls, problem: Problem, zero: Array) -> Coding:
        """The rules for votes and levels (of two classes) in all forecasts; probabilities `zero` replace zeros."""
        forecasts, expert = problem.forecasts, problem.forecasts.expert_index
        scales, n = [forecasts.scales.get(name) for name in forecasts.experts], len(forecasts.experts)
        votes, given = np.zeros(n, dtype=bool), np.zeros(n, dtype=np.intp)
        if len(forecasts.classes) == 2:
            given = np.array([0 if scale is None else len(scale.levels) for scale in scales], dtype=np.intp)
            against, for_ = (np.bincount(expert, forecasts.probabilities == each, n) for each in (0.0, 1.0))
            votes = (given == 0) & (against > 0) & (for_ > 0) & (against + for_ == forecasts.counts)
        levels, number = np.where(votes, 2, given), {scale: i for i, scale in enumerate(dict.fromkeys(scales))}
        scale = np.where(levels > 0, [number[each] for each in scales], -1)
        found = cls(forecasts.experts, levels, votes, scale, np.zeros(n), np.zeros(n), zero)
        for i in np.unique(scale[scale >= 0]).tolist():
            cells = scale[expert] == i
            if cells.any():
                scores = found._log_odds(forecasts.probabilities[cells], expert[cells])
                found.shift[scale == i] = _shift(float(scores.mean()), problem)
                judges, judge = np.unique(expert[cells], return_inverse=True)
                found.leniency[judges] = _leniency(forecasts.event_index[cells], judge, scores)
        return found

    @property
    def changes(self) -> bool:
        """True if any forecast stands for another probability."""
        return bool(self.levels.any() or self.zero.any())

    def array(self, q: npt.ArrayLike) -> Array:
        """Return the probabilities that the forecasts `q`, (..., N) or (..., N, K), stand for."""
        found = np.asarray(q, dtype=np.float64)
        if found.shape[-self.zero.ndim :][:1] != self.zero.shape[:1]:
            return found
        if self.levels.any():
            rows = found.reshape(-1, len(self.levels)).copy()
            event, expert = np.nonzero(~np.isnan(rows))
            rows[event, expert] = self._counted(event, expert, rows[event, expert])
            found = rows.reshape(found.shape)
        return raised(found, self.zero)

    def forecasts(self, forecasts: Forecasts) -> Forecasts:
        """Return a copy of `forecasts` without scales, each forecast replaced by the probability that it stands for."""
        if not self.changes:
            return forecasts
        expert = places(forecasts.experts, self.experts)[forecasts.expert_index]
        counted = forecasts.probabilities
        if self.levels.any():
            counted, forecasts = self._counted(forecasts.event_index, expert, counted), replace(forecasts, scales={})
        return replace(forecasts, probabilities=raised(counted, self.zero[expert]))

    def _counted(self, event: Index, expert: Index, p: Array) -> Array:
        """Return the probabilities `p` (M,) with each level of a scale replaced by what it counts as."""
        found, levels = p.copy(), np.flatnonzero(self.levels[expert])
        if len(levels):
            event, expert = event[levels], expert[levels]
            place = event * (int(self.scale.max()) + 1) + self.scale[expert]
            lenient = np.bincount(place, self.leniency[expert]) / np.maximum(np.bincount(place), 1)
            found[levels] = expit(self._log_odds(p[levels], expert) - self.shift[expert] - lenient[place])
        return found

    def _log_odds(self, p: Array, expert: Index) -> Array:
        """Log-odds that levels `p` of scales stand for, averaged over a level's interval; `p` may be mean levels."""
        levels = self.levels[expert]
        inside = np.clip(p, 0.5 / levels, 1.0 - 0.5 / levels)
        mean = levels * (_entropy(inside - 0.5 / levels) - _entropy(inside + 0.5 / levels))
        return np.asarray(mean + logit(np.where(self.votes[expert], inside, p)) - logit(inside))


def rounded_zeros(forecasts: Forecasts, floor: float) -> Array:
    """Probability that replaces an expert's forecasts of 0, (N,), or (N, 1) if K > 2; 0 if the expert never rounds."""
    check_floor(floor, "floor")
    p, expert, least = forecasts.probabilities, forecasts.expert_index, np.full(len(forecasts.experts), np.inf)
    lower = np.minimum(p, 1.0 - p)[:, None] if p.ndim == 1 else p
    if forecasts.options is None:
        np.minimum.at(least, expert, np.where(lower > 0, lower, np.inf).min(axis=1))
        least[np.bincount(expert, (lower == 0).any(axis=1), len(least)) == 0] = np.inf
    half = np.where(least < np.inf, least / 2.0, LEAST)
    zero = np.where(half > floor, expit(-_entropy(half) / half), 0.0)
    return zero if p.ndim == 1 else zero[:, None]


def raised(p: Array, zero: Array) -> Array:
    """Return the probabilities `p` with at least `zero` for each class, and with unchanged sums over the classes."""
    if not zero.any():
        return p
    if zero.ndim == 1:
        return np.asarray(np.clip(p, zero, 1.0 - zero))
    found = np.maximum(p, zero)
    total = np.nansum(found, axis=-1, keepdims=True)
    return np.asarray(found * np.divide(np.nansum(p, axis=-1, keepdims=True), total, out=total.copy(), where=total > 0))


def _entropy(u: Array) -> Array:
    """Entropy of each element, -u ln u - (1 - u) ln(1 - u)."""
    u = np.clip(u, 0.0, 1.0)
    return np.asarray(sum(-each * np.log(np.where(each > 0, each, 1.0)) for each in (u, 1.0 - u)))


def _leniency(event: Index, judge: Index, scores: Array) -> Array:
    """Posterior mean of how far each judge's scores are above other judges' scores on the same events, (J,)."""
    judges, given = np.bincount(event), np.bincount(judge)
    own = np.zeros(len(given))
    for _ in range(ROUNDS):
        level = np.bincount(event, scores - own[judge]) / np.maximum(judges, 1)
        before, own = own, np.bincount(judge, scores - level[event]) / np.maximum(given, 1)
        own -= own.mean()
        if np.abs(own - before).max() < TOLERANCE:
            break
    left = np.square(scores - level[event] - own[judge]).sum()
    worth = np.bincount(judge, 1.0 - 1.0 / judges[event])
    error = left / max(float(worth.sum()) - len(given) + 1.0, 1.0) / np.maximum(worth, LEAST)
    compared = worth > 0
    variance = max(float((np.square(own) - error)[compared].mean()), 0.0) if compared.any() else 0.0
    return np.asarray(own * variance / np.maximum(variance + error, LEAST))


def _shift(mean: float, problem: Problem) -> float:
    """Posterior mean of how far a scale is shifted, given `mean`, the mean log-odds of all scores on it."""
    centre = 0.0 if problem.estimated else float(problem.expected.mean())
    outcomes = Design.of(np.full((2, 1, 1), BASE_RATE), np.arange(2), np.full((2, 1), centre), problem.events)
    (base,) = posterior_modes(outcomes)
    gap, own = mean - centre - BASE_RATE * float(base.coefficients[0]), BASE_RATE**2 / float(base.precision[0, 0])
    both = own + SHIFT**2
    # Of the probability that the scale stands anywhere, the log-odds.
    arbitrary = logit(ARBITRARY) + 0.5 * (np.log(own / both) + gap**2 * (1.0 / own - 1.0 / both))
    return float(expit(arbitrary) * gap * SHIFT**2 / both)
