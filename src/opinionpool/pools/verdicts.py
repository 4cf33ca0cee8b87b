"""Pools of verdicts and scores: share of votes, majority, Dawid-Skene, calibrated mean score.

An expert votes for the class with the largest probability in its forecast; ties divide the vote.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import number
from opinionpool.arrays import Array, as_numbers
from opinionpool.errors import ArgumentError, Note
from opinionpool.model.contrasts import Contrasts
from opinionpool.pools.logarithmic import Recalibrated
from opinionpool.pools.rule import NO_INTERCEPT, Parameters, Pool
from opinionpool.pools.training import TrainingEvents

# A vote is right so often before anything is known, as in so many events.
RIGHT, EVENTS = 0.75, 4.0
# Steps of EM, and the change of an answer at which it ends.
STEPS, TOLERANCE = 1000, 1e-9
# Log-ratios of probabilities are equal where they differ by no more than rounding.
ROUNDING = 1e-12


def votes(p: Array) -> Array:
    """Return votes (..., K) of forecasts `p` (..., K): 1 for the most probable class, divided equally in ties."""
    most = np.asarray(p >= p.max(axis=-1, keepdims=True) - ROUNDING)
    return np.asarray(most / most.sum(axis=-1, keepdims=True))


def _counts(contrast: Contrasts) -> Array:
    """Return the number of votes for each class on each event, (T, K)."""
    return np.asarray((votes(contrast.probabilities) * contrast.present[..., None]).sum(axis=1))


class VoteShare(Pool):
    """Share of the experts present who vote for a class; the prior counts as one expert's vote.

    Examples
    --------
    >>> VoteShare().pool([[0.9, 0.6, 0.1], [0.9, float("nan"), 0.6]]).round(3)
    array([0.625, 0.833])
    """

    title = "Share of votes"
    of_levels = True

    def combine(self, contrast: Contrasts) -> Array:
        """Return log-ratios of the shares of votes, (T, K - 1)."""
        shares = (_counts(contrast) + logodds.softmax(contrast.reference)) / (contrast.count[:, None] + 1.0)
        return logodds.prior_log_ratios(shares)


class Majority(Pool):
    """Majority vote: the class with most votes gets probability `right`, the others the rest, in the prior's ratio.

    Parameters
    ----------
    right : float, default 0.75
        How often a majority is right, between 0 and 1.

    Examples
    --------
    >>> Majority().pool([[0.9, 0.6, 0.1], [0.9, float("nan"), 0.1]], right=0.8).round(3)
    array([0.8, 0.5])
    """

    title = "Majority"
    learns = True
    of_levels = True

    def check(self, classes: int, right: float = RIGHT) -> Parameters:  # noqa: ARG002
        """Return the parameters of the pool: the probability `right` that a majority is right, checked."""
        return {"right": number(right, "how often a majority is right", 0, 1)}

    def combine(self, contrast: Contrasts, right: float) -> Array:
        """Return log-ratios of the pooled probabilities, (T, K - 1): `right` for the class with most votes."""
        first = votes(_counts(contrast))
        others = np.where(first > 0, 0.0, logodds.softmax(contrast.reference))
        rest = others.sum(axis=1, keepdims=True)
        tied = rest < ROUNDING
        answers = np.where(tied, first, right * first + (1.0 - right) * others / np.where(tied, 1.0, rest))
        return logodds.prior_log_ratios(answers)

    def fit(self, sample: TrainingEvents) -> Parameters:
        """Share of events with a right majority, after adding `EVENTS` events with a right one in a share `RIGHT`."""
        if sample.nothing(f"a majority is taken to be right in {RIGHT:.0%}"):
            return {"right": RIGHT}
        hit = sample.collect(lambda c, y: np.take_along_axis(votes(_counts(c)), y[:, None], axis=1)[:, 0])
        return {"right": float((sample.weight @ hit + RIGHT * EVENTS) / (sample.weight.sum() + EVENTS))}


class DawidSkene(Pool):
    """Votes that are independent given the outcome: L* = logit(rate) + Σ log P(vote_i | happens)/P(vote_i | not).

    Dawid & Skene (1979), "Maximum likelihood estimation of observer error-rates using the EM algorithm", Applied
    Statistics 28, for two classes: each expert has a sensitivity and a specificity. Their estimates are posterior modes
    given all votes and known outcomes, with a Beta(2, 2) prior for each.

    Parameters
    ----------
    sensitivity, specificity : array_like, shape (N,), optional
        Shares of an expert's votes that are right if the event happens, and if it does not; 0.75 if not given.
    rate : float, default 0.5
        Share of events that happen.

    Examples
    --------
    >>> DawidSkene().pool([[0.9, 0.6, 0.1]], sensitivity=[0.9, 0.6, 0.6], specificity=[0.9, 0.6, 0.6]).round(3)
    array([0.9])
    """

    title = "Dawid-Skene"
    uses_prior = False
    learns = True
    of_levels = True

    def check(
        self,
        classes: int,
        sensitivity: npt.ArrayLike | None = None,
        specificity: npt.ArrayLike | None = None,
        rate: float = 0.5,
    ) -> Parameters:
        """Return checked sensitivity, specificity and rate, each in (0, 1); an `ArgumentError` if K > 2."""
        if classes != 2:
            raise ArgumentError(f"the dawid-skene pool is for two classes, and there are {classes}")
        found = [np.array([RIGHT]) if given is None else as_numbers(given) for given in (specificity, sensitivity)]
        if any(each.ndim != 1 or not ((each > 0) & (each < 1)).all() for each in found):
            raise ArgumentError("sensitivity and specificity must be between 0 and 1, one for each expert")
        return {"specificity": found[0], "sensitivity": found[1], "rate": number(rate, "rate", 0, 1)}

    def combine(self, contrast: Contrasts, specificity: Array, sensitivity: Array, rate: float) -> Array:
        """Log-odds that the event happens given the experts' votes, (T, 1); `rate` is the share that happens."""
        voted = votes(contrast.probabilities)[..., 1]
        each = _log_likelihood_ratio(voted, sensitivity, specificity)
        return np.asarray(logodds.logit(rate) + np.where(contrast.present, each, 0.0).sum(axis=1, keepdims=True))

    def fit(self, sample: TrainingEvents) -> Parameters:
        """Sensitivities, specificities and the rate of events that happen, by EM over resolved and open events."""
        sample.check_binary("dawid-skene")
        f, n = sample.forecasts, len(sample.experts)
        weight = sample.problem.weight
        event, expert, voted = f.event_index, f.expert_index, votes(logodds.all_classes(f.probabilities, 2))[:, 1]
        known, used = f.resolved, (f.crowd > 0) & (weight > 0)
        p = np.where(known, f.outcomes, np.bincount(event, voted, len(weight)) / np.maximum(f.crowd, 1))
        for step in range(STEPS + 1):
            happens, not_ = (weight * p)[event], (weight * (1.0 - p))[event]
            sensitivity = (np.bincount(expert, happens * voted, n) + 1.0) / (np.bincount(expert, happens, n) + 2.0)
            specificity = (np.bincount(expert, not_ * (1.0 - voted), n) + 1.0) / (np.bincount(expert, not_, n) + 2.0)
            rate = float(((weight * p)[used].sum() + 1.0) / (weight[used].sum() + 2.0))
            each = _log_likelihood_ratio(voted, sensitivity[expert], specificity[expert])
            before, p = p, logodds.expit(logodds.logit(rate) + np.bincount(event, each, len(weight)))
            p = np.where(known, f.outcomes, p)
            if not np.abs(p - before)[used].max(initial=0.0) > TOLERANCE:
                break
            if step == STEPS:
                sample.notes.append(Note("not-converged", f"EM has not ended after {STEPS:,} steps", serious=True))
        return {"sensitivity": sensitivity, "specificity": specificity, "rate": rate}


def _log_likelihood_ratio(voted: Array, sensitivity: Array, specificity: Array) -> Array:
    """Return log P(vote | happens)/P(vote | not) of the votes `voted`, from 0 (no) to 1 (yes)."""
    yes, no = np.log(sensitivity) - np.log1p(-specificity), np.log1p(-sensitivity) - np.log(specificity)
    return np.asarray(voted * yes + (1.0 - voted) * no)


class MeanScore(Recalibrated):
    """Calibrated mean probability (or score) of the experts present: prior L° + a + b (logit(mean) − L°).

    Parameters
    ----------
    intercept, slope
        As for `opinionpool.pools.logarithmic.Recalibrated`.

    Examples
    --------
    >>> float(MeanScore().pool([0.9, 0.5], slope=0.5).round(3))
    0.604
    """

    title = "Calibrated mean score"
    scale = None
    of_levels = True

    def means(self, contrast: Contrasts) -> Array:
        """Return log-ratios of the mean probabilities less the prior's, (T, K - 1)."""
        mean = contrast.probabilities.sum(axis=1) / contrast.count[:, None]
        return np.asarray(logodds.prior_log_ratios(mean) - contrast.reference)

    def combine(self, contrast: Contrasts, intercept: Array = NO_INTERCEPT, **parameters: Any) -> Array:  # noqa: ANN401
        """Return the pooled log-ratios L* of each event, (T, K - 1)."""
        return np.asarray(contrast.reference + intercept + parameters.get("slope", 1.0) * self.means(contrast))
