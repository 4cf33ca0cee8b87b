"""What levels say: two of them do not tell how certain a judge is, and a scale may stand anywhere.

Votes. Judge i votes for an event where z_i = √ρ f + √(1 − ρ) e_i exceeds its threshold; f is common to the judges of
it, and all are standard normal over events. A vote counts as the mean of two log-odds: those of ¼ or ¾, and
location + spread · E[z_i | all votes]. Thresholds are those of a judge's own frequencies, pulled to the panel's;
location and spread are those of the log-odds of ¼ and ¾ over the votes.

Scores. Level l of M counts as the log-odds of (l + ½)/M less a shift that is common to all who use the scale, 0 with
probability 1 − `ARBITRARY`, else normal. Its posterior mean, by how far the mean log-odds of all scores is from those
of the base rate as outcomes show it, is subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.forecasts import Forecasts
from opinionpool.learning.constants import (
    ARBITRARY,
    BASE_RATE,
    CORRELATION,
    PANEL_WORTH,
    SHIFT,
)
from opinionpool.learning.problem import Problem
from opinionpool.logodds import expit, logit

# Values of the common error.
NODES = np.linspace(-4.0, 4.0, 61)
# Steps of Newton's method for the base rate.
STEPS = 30


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
    shift : ndarray, shape (N,)
        What is subtracted from log-odds; 0 for experts who give no scores.
    """

    experts: tuple[str, ...]
    thresholds: Array
    location: float
    spread: float
    shift: Array

    @classmethod
    def learned(cls, problem: Problem) -> LatentLevels | None:
        """Levels fitted to all forecasts, resolved or not; None without scales, or for more than two classes."""
        forecasts = problem.forecasts
        if len(forecasts.classes) > 2 or not forecasts.scales:
            return None
        from scipy.special import ndtri

        scales = [forecasts.scales.get(name) for name in forecasts.experts]
        voters = np.array([scale is not None and len(scale.levels) == 2 for scale in scales])
        positive = np.bincount(forecasts.expert_index, forecasts.probabilities > 0.5, len(voters))
        # Several votes by one judge, as samples, are no single vote.
        several = ~np.isclose(np.abs(forecasts.probabilities - 0.5), 0.25)
        voters &= (np.bincount(forecasts.expert_index, several, len(voters)) == 0) & (positive > 0)
        voters &= positive < forecasts.counts
        panel = (positive[voters].sum() + 0.5) / (forecasts.counts[voters].sum() + 1.0)
        share = (positive + PANEL_WORTH * panel) / (forecasts.counts + PANEL_WORTH)
        weight, location, spread = float(logit(0.75)), 0.0, 0.0
        if voters.any():
            location = weight * float((2.0 * share[voters] - 1.0).mean())
            spread = 2.0 * weight * float(np.sqrt((share * (1.0 - share))[voters].mean()))
        shift = np.zeros(len(scales))
        for scale in {each for each in scales if each is not None and len(each.levels) > 2}:
            own = np.array([each == scale for each in scales])
            scores = forecasts.probabilities[own[forecasts.expert_index]]
            if len(scores):
                shift[own] = _shift(float(logit(scores).mean()), problem)
        return cls(forecasts.experts, np.where(voters, ndtri(1.0 - share), np.nan), location, spread, shift)

    def array(self, q: npt.ArrayLike) -> Array:
        """Probabilities (..., N) of all experts, with levels replaced by their probabilities; NaN where missing."""
        given = np.asarray(q, dtype=np.float64)
        found = given.reshape(-1, len(self.thresholds)).copy()
        moved = self.shift != 0
        found[:, moved] = expit(logit(found[:, moved]) - self.shift[moved])
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

    def forecasts(self, forecasts: Forecasts) -> Forecasts:
        """Forecasts by some of the experts, with levels replaced by probabilities and without scales."""
        place = {name: i for i, name in enumerate(self.experts)}
        experts = np.array([place[name] for name in forecasts.experts], dtype=np.intp)
        if np.isnan(self.thresholds).all():
            shift = self.shift[experts[forecasts.expert_index]]
            q = forecasts.probabilities.copy()
            np.copyto(q, expit(logit(np.where(shift == 0, 0.5, q)) - shift), where=shift != 0)
            return replace(forecasts, probabilities=q, scales={})
        values = np.empty_like(forecasts.probabilities)
        starts = forecasts.starts
        for rows, q, _ in forecasts.dense_blocks(self.experts):
            first, last, _ = rows.indices(len(forecasts.events))
            cells = slice(starts[first], starts[last])
            row = forecasts.event_index[cells] - first
            values[cells] = self.array(q)[row, experts[forecasts.expert_index[cells]]]
        return replace(forecasts, probabilities=values, scales={})


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
