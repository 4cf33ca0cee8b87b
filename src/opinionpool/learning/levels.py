"""What levels say: two of them do not tell how certain a judge is, and a scale may stand anywhere.

Votes, by who has a scale of two levels, or says 0 and 1 and nothing else. Judge i votes for an event where
z_i = √ρ f + √(1 − ρ) e_i exceeds its threshold; f is common to the judges of it, and all are standard normal over
events. A vote counts as the mean of two log-odds: those of ¼ or ¾, and location + spread · E[z_i | all votes].
Thresholds are those of a judge's own frequencies, pulled to the panel's; location and spread are those of the log-odds
of ¼ and ¾ over the votes.

Scores. Level l of M counts as the log-odds of (l + ½)/M less a shift that is common to all who use the scale, 0 with
probability 1 − `ARBITRARY`, else normal. Its posterior mean, by how far the mean log-odds of all scores is from those
of the base rate as outcomes show it, is subtracted. So is, on each event, the mean leniency of those who gave a score
there: how far their scores are above those of others on the same events, normal with the variance that is most likely.
So an event's scores do not depend on who happened to judge it; where all judge everything, nothing is subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import LEAST, Array, Index
from opinionpool.forecasts import Forecasts
from opinionpool.learning.constants import ARBITRARY, BASE_RATE, CORRELATION, PANEL_WORTH, SHIFT
from opinionpool.learning.problem import Problem
from opinionpool.logodds import expit, logit

# Values of the common error.
NODES = np.linspace(-4.0, 4.0, 61)
# Steps of Newton's method for the base rate; rounds in which leniency is found, and the change that ends them.
STEPS, ROUNDS, TOLERANCE = 30, 20, 1e-10


@dataclass(frozen=True, eq=False)
class LatentLevels:
    """Model that turns the votes and scores of N experts into probabilities.

    Attributes
    ----------
    experts : tuple of str
    thresholds : ndarray, shape (N,)
        Standard normal quantiles; NaN for experts who do not vote, or always alike.
    location, spread : float
        Mean and standard deviation of the log-odds of votes.
    scale : ndarray of int, shape (N,)
        Number of the scale of each expert who gives scores, else -1.
    shift, leniency : ndarray, shape (N,)
        In log-odds; 0 for experts who give no scores.
    """

    experts: tuple[str, ...]
    thresholds: Array
    location: float
    spread: float
    scale: Index
    shift: Array
    leniency: Array

    @classmethod
    def learned(cls, problem: Problem) -> LatentLevels | None:
        """Levels fitted to all forecasts, resolved or not; None without scales, or for more than two classes."""
        forecasts, expert = problem.forecasts, problem.forecasts.expert_index
        if len(forecasts.classes) > 2:
            return None
        scales = [forecasts.scales.get(name) for name in forecasts.experts]
        size = np.array([0 if scale is None else len(scale.levels) for scale in scales])
        # Several votes by one judge, as samples, are no single vote.
        away = np.abs(forecasts.probabilities - 0.5)
        other = away != 0.5
        if forecasts.scales:
            other = np.where(size[expert] == 2, ~np.isclose(away, 0.25), other)
        positive = np.bincount(expert, forecasts.probabilities > 0.5, len(size))
        voters = (
            (np.bincount(expert, other, len(size)) == 0) & (size < 3) & (positive > 0) & (positive < forecasts.counts)
        )
        if not (voters.any() or forecasts.scales):
            return None
        from scipy.special import ndtri

        panel = (positive[voters].sum() + 0.5) / (forecasts.counts[voters].sum() + 1.0)
        share = (positive + PANEL_WORTH * panel) / (forecasts.counts + PANEL_WORTH)
        weight, location, spread = float(logit(0.75)), 0.0, 0.0
        if voters.any():
            location = weight * float((2.0 * share[voters] - 1.0).mean())
            spread = 2.0 * weight * float(np.sqrt((share * (1.0 - share))[voters].mean()))
        every = {
            scale: i for i, scale in enumerate(dict.fromkeys(scales)) if scale is not None and len(scale.levels) > 2
        }
        number = np.array([-1 if scale is None else every.get(scale, -1) for scale in scales])
        shift, leniency = np.zeros((2, len(scales)))
        for i in every.values():
            own, cells = number == i, number[expert] == i
            if cells.any():
                scores = logit(forecasts.probabilities[cells])
                shift[own] = _shift(float(scores.mean()), problem)
                judges, judge = np.unique(expert[cells], return_inverse=True)
                leniency[judges] = _leniency(forecasts.event_index[cells], judge, scores)
        thresholds = np.where(voters, ndtri(1.0 - share), np.nan)
        return cls(forecasts.experts, thresholds, location, spread, number, shift, leniency)

    def array(self, q: npt.ArrayLike) -> Array:
        """Probabilities (..., N) of all experts, with levels replaced by their probabilities; NaN where missing."""
        given = np.asarray(q, dtype=np.float64)
        found = given.reshape(-1, len(self.thresholds)).copy()
        event, expert = np.nonzero(~np.isnan(found) & (self.scale >= 0))
        found[event, expert] = self._scores(event, expert, found[event, expert])
        voters: Index = np.flatnonzero(~np.isnan(self.thresholds))
        if len(voters):
            found[:, voters] = self._votes(found[:, voters], voters)
        return found.reshape(given.shape)

    def _votes(self, votes: Array, voters: Index) -> Array:
        """Probabilities (T, V) that stand for the votes of some experts."""
        from scipy.special import ndtr

        present, positive = ~np.isnan(votes), votes > 0.5
        shared, own = np.sqrt(CORRELATION), np.sqrt(1.0 - CORRELATION)
        edge = (self.thresholds[voters, None] - shared * NODES) / own
        # Of votes against and for the event, (2, V, J): how probable they are, and the mean of e_i.
        probability = np.maximum(np.stack([ndtr(edge), ndtr(-edge)]), 1e-12)
        density = np.exp(-0.5 * np.square(edge)) / np.sqrt(2.0 * np.pi)
        mean = np.stack([-density, density]) / probability
        log = (present & ~positive) @ np.log(probability[0]) + positive @ np.log(probability[1])
        log -= 0.5 * np.square(NODES)
        weight = np.exp(log - log.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        e = np.where(positive, weight @ mean[1].T, weight @ mean[0].T)
        z = shared * (weight @ NODES)[:, None] + own * e
        found = expit((logit(np.where(positive, 0.75, 0.25)) + self.location + self.spread * z) / 2.0)
        return np.where(present, found, np.nan)

    def _scores(self, event: Index, expert: Index, p: Array) -> Array:
        """Probabilities of M cells that stand for scores, as given."""
        if not len(p):
            return p
        place = event * (int(self.scale.max()) + 1) + self.scale[expert]
        lenient = np.bincount(place, self.leniency[expert]) / np.maximum(np.bincount(place), 1)
        return np.asarray(expit(logit(p) - self.shift[expert] - lenient[place]))

    def forecasts(self, forecasts: Forecasts) -> Forecasts:
        """Forecasts by some of the experts, with levels replaced by probabilities and without scales."""
        place = {name: i for i, name in enumerate(self.experts)}
        experts = np.array([place[name] for name in forecasts.experts], dtype=np.intp)
        values = forecasts.probabilities.copy()
        if np.isnan(self.thresholds).all():
            expert = experts[forecasts.expert_index]
            scored = np.flatnonzero(self.scale[expert] >= 0)
            values[scored] = self._scores(forecasts.event_index[scored], expert[scored], values[scored])
            return replace(forecasts, probabilities=values, scales={})
        starts = forecasts.starts
        for rows, q, _ in forecasts.dense_blocks(self.experts):
            first, last, _ = rows.indices(len(forecasts.events))
            cells = slice(starts[first], starts[last])
            row = forecasts.event_index[cells] - first
            values[cells] = self.array(q)[row, experts[forecasts.expert_index[cells]]]
        return replace(forecasts, probabilities=values, scales={})


def _leniency(event: Index, judge: Index, scores: Array) -> Array:
    """Posterior means of how far the scores of J judges are above those of others on the same events, (J,)."""
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
    """The posterior mean of a scale's shift, given the mean log-odds of its scores."""
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
