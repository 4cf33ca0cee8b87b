"""Probabilities that levels stand for: votes do not show how certain a judge is, and a scale may be shifted.

Level l of M counts as the mean log-odds of probabilities from (l - 1)/M to l/M, M (H((l - 1)/M) - H(l/M)) with
H(u) = -u ln u - (1 - u) ln(1 - u), less a shift that is common to all who use the scale, 0 with probability
1 - `ARBITRARY`, else normal. Its posterior mean, by how far the mean log-odds of all scores is from those of the base
rate as outcomes show it, is subtracted. So is, on each event, the mean leniency of those who gave a score there: how
far their scores are above those of others on the same events, normal with the variance that is most likely. So an
event's scores do not depend on who happened to judge it; where all judge everything, nothing is subtracted.
Who says 0 and 1 and nothing else votes, as by a scale of two levels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import LEAST, Array, Index, Mask
from opinionpool.forecasts import Forecasts
from opinionpool.learning.constants import ARBITRARY, BASE_RATE, SHIFT
from opinionpool.learning.problem import Problem
from opinionpool.logodds import expit, logit
from opinionpool.names import places

# Steps of Newton's method for the base rate; rounds in which leniency is found, and the change that ends them.
STEPS, ROUNDS, TOLERANCE = 30, 20, 1e-10


@dataclass(frozen=True, eq=False)
class LatentLevels:
    """Model that turns the votes and scores of N experts into probabilities.

    Attributes
    ----------
    experts : tuple of str
    levels : ndarray of int, shape (N,)
        Number of levels of each expert who gives some, else 0.
    votes : ndarray of bool, shape (N,)
        Who says 0 and 1, without a scale.
    scale : ndarray of int, shape (N,)
        Number of the scale of each expert who gives levels, else -1.
    shift, leniency : ndarray, shape (N,)
        In log-odds; 0 for experts who give no levels.
    """

    experts: tuple[str, ...]
    levels: Index
    votes: Mask
    scale: Index
    shift: Array
    leniency: Array

    @classmethod
    def learned(cls, problem: Problem) -> LatentLevels | None:
        """Model fitted to all forecasts, resolved or not; None if nobody gave levels, or for more than two classes."""
        forecasts, expert = problem.forecasts, problem.forecasts.expert_index
        if len(forecasts.classes) > 2:
            return None
        scales = [forecasts.scales.get(name) for name in forecasts.experts]
        given = np.array([0 if scale is None else len(scale.levels) for scale in scales])
        against, for_ = (np.bincount(expert, forecasts.probabilities == each, len(given)) for each in (0.0, 1.0))
        votes = (given == 0) & (against > 0) & (for_ > 0) & (against + for_ == forecasts.counts)
        levels = np.where(votes, 2, given)
        if not levels.any():
            return None
        number = {scale: i for i, scale in enumerate(dict.fromkeys(scales))}
        scale = np.where(levels > 0, [number[each] for each in scales], -1)
        found = cls(forecasts.experts, levels, votes, scale, *np.zeros((2, len(levels))))
        for i in np.unique(scale[scale >= 0]).tolist():
            cells = scale[expert] == i
            if cells.any():
                scores = found._log_odds(forecasts.probabilities[cells], expert[cells])
                found.shift[scale == i] = _shift(float(scores.mean()), problem)
                judges, judge = np.unique(expert[cells], return_inverse=True)
                found.leniency[judges] = _leniency(forecasts.event_index[cells], judge, scores)
        return found

    def array(self, q: npt.ArrayLike) -> Array:
        """Probabilities (..., N) of all experts, with levels replaced by their probabilities; NaN where missing."""
        given = np.asarray(q, dtype=np.float64)
        found = given.reshape(-1, len(self.levels)).copy()
        event, expert = np.nonzero(~np.isnan(found))
        found[event, expert] = self._counted(event, expert, found[event, expert])
        return found.reshape(given.shape)

    def forecasts(self, forecasts: Forecasts) -> Forecasts:
        """Forecasts by some of the experts, with levels replaced by probabilities and without scales."""
        experts = places(forecasts.experts, self.experts)[forecasts.expert_index]
        counted = self._counted(forecasts.event_index, experts, forecasts.probabilities)
        return replace(forecasts, probabilities=counted, scales={})

    def _counted(self, event: Index, expert: Index, p: Array) -> Array:
        """Probabilities `p` (M,) with each level replaced by the probability that it counts as."""
        found, levels = p.copy(), np.flatnonzero(self.levels[expert])
        if len(levels):
            event, expert = event[levels], expert[levels]
            place = event * (int(self.scale.max()) + 1) + self.scale[expert]
            lenient = np.bincount(place, self.leniency[expert]) / np.maximum(np.bincount(place), 1)
            found[levels] = expit(self._log_odds(p[levels], expert) - self.shift[expert] - lenient[place])
        return found

    def _log_odds(self, p: Array, expert: Index) -> Array:
        """Log-odds averaged over the interval of each of M levels; `p` may be a mean of several levels."""
        levels = self.levels[expert]
        inside = np.clip(p, 0.5 / levels, 1.0 - 0.5 / levels)
        mean = levels * (_entropy(inside - 0.5 / levels) - _entropy(inside + 0.5 / levels))
        return np.asarray(mean + logit(np.where(self.votes[expert], inside, p)) - logit(inside))


def _entropy(u: Array) -> Array:
    """-u ln u - (1 - u) ln(1 - u), by element."""
    from scipy.special import entr

    u = np.clip(u, 0.0, 1.0)
    return np.asarray(entr(u) + entr(1.0 - u))


def _leniency(event: Index, judge: Index, scores: Array) -> Array:
    """Posterior means, (J,), of how far the scores of each judge are above other judges' on the same events."""
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
    """Posterior mean of a scale's shift, given `mean`, the mean log-odds of scores on the scale."""
    events, happened = float(problem.events.sum()), float(problem.events[1])
    centre = 0.0 if problem.estimated else float(problem.expected.mean())
    base = centre
    for _ in range(STEPS):
        p = float(expit(base))
        information = events * p * (1.0 - p) + BASE_RATE**-2
        base -= (events * p - happened + (base - centre) / BASE_RATE**2) / information
    gap, own, both = mean - base, 1.0 / information, 1.0 / information + SHIFT**2
    # Of the probability that the scale stands anywhere, the log-odds.
    arbitrary = logit(ARBITRARY) + 0.5 * (np.log(own / both) + gap**2 * (1.0 / own - 1.0 / both))
    return float(expit(arbitrary) * gap * SHIFT**2 / both)
