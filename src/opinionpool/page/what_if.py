"""What if: which assessment moves the answer most, what one more expert would add, and what a decision costs.

How far an assessment might be off follows from what it is worth. A value worth n events counts as n resolved events on
which the panel showed just that, and from n events the logarithms of calibration and accuracy are known to variances
(2/μ* + 2)/n and (8/μ* + 2)/n, bias to 2μ*/κ²/n, and a common correlation to 2(1 − ρ)²(1 + (N − 1)ρ)²/(nN(N − 1))
(model.md, section 2.5).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from opinionpool.analysis.selection import Gain, gain_from
from opinionpool.analysis.sensitivity import Effect, correlation_range, feature_ranges
from opinionpool.analysis.steps import of_class
from opinionpool.analysis.value import Decision, PanelValue, decision_value, expected_auc, known_panel, learned_value
from opinionpool.errors import OpinionPoolError
from opinionpool.learning.beliefs import Belief
from opinionpool.model.accuracy import accuracy_of_auc
from opinionpool.page.answer import Answer, Material, as_given, event_forecasts, given_prior, own_prior
from opinionpool.page.assessment import Assessment

# A forecast may be so far off in log-odds, if asked for again.
AGAIN = 0.5
# Experts whose assessments are varied, those who add most to the answer; bars that are shown.
MOST, BARS = 20, 12


def effects(a: Assessment, material: Material, found: Answer, at: int) -> list[Effect]:
    """What each assessment does to the probability of class `at`, the largest effect first.

    Left out is what cannot be off, as its worth is infinite, and what nobody assessed.
    """
    measured = []
    for expert, what, values, changed in _variations(a, found):
        try:
            low, high = (_probability(each, material, at) for each in changed)
        except OpinionPoolError:
            # A value at the end of its range that these experts cannot have says nothing about the others.
            continue
        measured.append(Effect(what, expert, True, values, (low, high)))
    return sorted(measured, key=lambda effect: -effect.size)


def _probability(a: Assessment, material: Material, at: int) -> float:
    state = material.learned(a)
    event = event_forecasts(a, material, state)
    prior = own_prior(a, material) if material.own_priors else given_prior(a, material)
    topic = None if event.topics is None else str(event.topics[0])
    return of_class(np.asarray(state.pool(event.X[0], prior, as_given(a.base_rate), topic)), at)


def _variations(a: Assessment, found: Answer) -> Iterator[tuple[str, str, tuple[float, float], tuple[Assessment, ...]]]:
    why = found.why
    size = np.abs(why.contributions).reshape(len(why.experts), -1).sum(axis=1) if why.experts else np.zeros(0)
    chosen = {why.experts[i] for i in np.argsort(-size, kind="stable")[:MOST].tolist()}
    for each in a.experts:
        if each.name not in chosen:
            continue
        if a.binary and each.forecast is not None:
            ends = _again(each.forecast[0])
            yield each.name, "forecast", ends, tuple(a.with_expert(replace(each, forecast=(p,))) for p in ends)
        for what, ends, beliefs in feature_ranges(each.beliefs, a.everyone):
            yield each.name, what, ends, tuple(a.with_expert(replace(each, beliefs=own)) for own in beliefs)
    correlation = a.everyone.get("correlation")
    if correlation is not None and math.isfinite(correlation.worth) and len(chosen) > 1:
        ends = correlation_range(correlation, len(why.experts))
        yield (
            "",
            "correlation",
            ends,
            tuple(
                replace(a, everyone=replace(a.everyone, correlation=Belief(value, correlation.worth))) for value in ends
            ),
        )
    if a.binary and a.prior is not None:
        ends = _again(a.prior[0])
        yield "", "prior", ends, tuple(replace(a, prior=(p,)) for p in ends)


def _again(p: float) -> tuple[float, float]:
    """A probability that may be off by `AGAIN`; 0 and 1 are so whatever is added."""
    if not 0 < p < 1:
        return p, p
    centre = math.log(p / (1.0 - p))
    low, high = (1.0 / (1.0 + math.exp(-(centre + step))) for step in (-AGAIN, AGAIN))
    return low, high


@dataclass(frozen=True, eq=False)
class Stake:
    """The decision at hand, and what the panel is worth in many like it; costs in the user's own units."""

    threshold: float  # it pays to act above this probability
    act: bool
    # acting, waiting: what either costs, expected: the action's price, and the probability times the loss
    acting: float
    waiting: float
    decision: Decision | None  # over events like this one; None where the panel's accuracy has no one number


def stake(a: Assessment, found: Answer, probability: float) -> Stake:
    """What acting costs, and what not to act."""
    threshold = a.stakes.action / a.stakes.loss
    decision = None
    value = worth(found)
    if value is not None and found.why.probability.ndim == 0:
        decision = decision_value(value.joint_accuracy, threshold, event_prior(a, found))
    return Stake(threshold, probability > threshold, a.stakes.action, probability * a.stakes.loss, decision)


def event_prior(a: Assessment, found: Answer) -> float:
    """How frequent events like this one are where the answer is used."""
    return a.base_rate[0] if a.base_rate is not None else float(found.why.prior)


def worth(found: Answer) -> PanelValue | None:
    """What the panel is worth on events of this prior, if its model holds; None where that is not known."""
    binary = found.why.probability.ndim == 0
    try:
        return learned_value(found.state, float(found.why.prior) if binary else 0.5)
    except OpinionPoolError:
        return None


@dataclass(frozen=True, eq=False)
class OneMore:
    """What one more expert would add, before anybody knows what it says."""

    gain: Gain
    auc: float  # of the panel with it
    saving: float | None  # what it saves for a decision, in the user's own units; None for more than two classes


def one_more(a: Assessment, found: Answer) -> OneMore:
    """Ask an expert of the kind that is described as well.

    Raises
    ------
    OpinionPoolError
        If no expert can be so dependent on these, or the panel's accuracy is not known.
    """
    panel = known_panel(found.state).subset(found.why.experts) if found.why.experts else known_panel(found.state)
    binary = found.why.probability.ndim == 0
    prior = event_prior(a, found) if binary else 0.5
    gain = gain_from(panel, accuracy_of_auc(a.candidate.auc), a.candidate.correlation, prior=prior)
    saving = None
    if binary:
        threshold = a.stakes.action / a.stakes.loss
        before, after = (float(decision_value(level, threshold, prior).expense) for level in (gain.before, gain.after))
        saving = (before - after) * a.stakes.loss
    return OneMore(gain, float(expected_auc(gain.after)), saving)
