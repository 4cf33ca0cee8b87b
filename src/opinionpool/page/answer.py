"""The pool's answer to an assessment, its sensitivity to the inputs, and its value for a decision.

Without a file the panel is what is assessed. With one, it is learned from the file's resolved events, beginning with
what is assessed; with a saved pool, it is that pool.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np

from opinionpool.analysis.explanation import Explanation, explain_event, of_class
from opinionpool.analysis.selection import Gain, gain_from
from opinionpool.analysis.sensitivity import CORRELATIONS, PRIORS, Effect, correlation_range, effects_of, feature_ranges
from opinionpool.analysis.value import (
    Decision,
    PanelValue,
    decision_value,
    effective_number,
    expected_auc,
    known_panel,
    learned_value,
)
from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError, Note, OpinionPoolError
from opinionpool.forecasts import Forecasts
from opinionpool.labels import UNRESOLVED
from opinionpool.learning.beliefs import Belief, Beliefs, ExpertBeliefs
from opinionpool.learning.constants import WORTH
from opinionpool.learning.fitted import FittedPanel
from opinionpool.logodds import expit, logit, public_probabilities
from opinionpool.model.accuracy import accuracy_of_auc
from opinionpool.names import unknown_names
from opinionpool.page.assessment import Assessment, Expert, to_toml
from opinionpool.pools.fit import fit_pool, in_sample, in_sample_note
from opinionpool.priors import event_priors
from opinionpool.report.answers import Pooled, pool_events
from opinionpool.report.charts import odds

# Number of fits kept, so that undoing needs no new fit.
KEPT = 64
# Change in log-odds by which forecasts and priors are varied, as if asked for again.
AGAIN = 0.5
# Largest number of experts whose forecasts and beliefs are varied: those who add most to the answer.
MOST = 20


@dataclass(frozen=True)
class Source:
    """Names of files and command-line options with which the page was opened, to repeat them in a command."""

    files: tuple[str, ...] = ()  # names of the files of forecasts
    reading: tuple[str, ...] = ()  # options on reading the files
    model: str | None = None  # file of a saved pool


@dataclass(eq=False)
class PageData:
    """What the page computes answers from, beside the user's assessment: a file's forecasts, a saved pool, or both."""

    forecasts: Forecasts | None = None  # of the file; with the experts of the saved pool, if there is one
    trained: FittedPanel | None = None  # the saved pool
    # the prior for answers of the saved pool, if some events have priors of their own
    reference: float | Array | None = None
    source: Source = field(default_factory=Source)

    def __post_init__(self) -> None:
        self._fits: OrderedDict[object, FittedPanel] = OrderedDict()
        self._lock = threading.Lock()
        self._pooled: Pooled | None = None

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the experts in the saved pool; without a pool, those in the file; () if there is neither."""
        if self.trained is not None:
            return self.trained.experts
        return () if self.forecasts is None else self.forecasts.experts

    @property
    def classes(self) -> tuple[object, ...]:
        """Classes of the saved pool; without a pool, of the file; with neither, 0 and 1 for no and yes."""
        if self.trained is not None:
            return self.trained.panel.classes
        return (0, 1) if self.forecasts is None else self.forecasts.classes

    @property
    def own_priors(self) -> bool:
        """Whether each event of the file has a prior of its own."""
        return self.forecasts is not None and event_priors(self.forecasts, None) is not None

    def learned(self, a: Assessment, believed: Beliefs | None = None) -> FittedPanel:
        """Saved pool or, without one, the default pool fitted with `believed`, or else with the beliefs of `a`."""
        beliefs = a.beliefs if believed is None else believed
        if self.trained is not None:
            return self.trained
        if self.forecasts is None:
            return _fit(answered(a), beliefs, as_given(a.prior))
        prior = None if self.own_priors else as_given(a.prior)
        added = tuple(unknown_names((each.name for each in a.experts), self.experts))
        key = (to_toml(beliefs), None if prior is None else np.asarray(prior).tobytes(), added)
        with self._lock:
            if key in self._fits:
                self._fits.move_to_end(key)
                return self._fits[key]
        found = _fit(replace(self.forecasts, experts=self.forecasts.experts + added), beliefs, prior)
        with self._lock:
            self._fits[key] = found
            while len(self._fits) > KEPT:
                self._fits.popitem(last=False)
        return found

    def pooled(self) -> Pooled:
        """Return the pool's answers about all events of the file, as if nothing were assessed."""
        assert self.forecasts is not None
        if self._pooled is None:
            state = self.trained if self.trained is not None else _fit(self.forecasts, Beliefs(), None)
            self._pooled = pool_events(self.forecasts, "gaussian", state, self.reference, None)
        return self._pooled

    def before(self, a: Assessment) -> Array | None:
        """Experts' weights (N,) by beliefs, before outcomes are learned; None for a saved pool, or without a file."""
        if self.trained is not None or self.forecasts is None:
            return None
        added = tuple(unknown_names((each.name for each in a.experts), self.experts))
        one = self.forecasts.select_events(np.flatnonzero(self.forecasts.crowd == self.forecasts.crowd.max())[:1])
        unresolved = replace(one, experts=one.experts + added, outcomes=np.full(1, UNRESOLVED))
        state = _fit(unresolved, a.beliefs, None)
        return np.asarray(state.panel.weights)

    def assessment_of(self, event: int, old: Assessment | None = None) -> Assessment:
        """Return an assessment of the file's event at position `event`; beliefs and costs are those in `old`, if given.

        If the event has options of its own, these are the classes of the assessment.
        """
        assert self.forecasts is not None
        f = self.forecasts
        rows = f.X[event]
        classes = f.classes if f.options is None else f.options[event]
        if f.options is not None and rows.ndim == 2:
            rows = rows[:, 1] if len(classes) == 2 else rows[:, : len(classes)]
        rows = rows.reshape(len(f.experts), -1)
        known = {each.name: each for each in (old.experts if old else ())}
        experts = []
        for i, name in enumerate(f.experts):
            forecast = None if np.isnan(rows[i, 0]) else tuple(rows[i].tolist())
            own = known.get(name)
            experts.append(Expert(i + 1, name, forecast) if own is None else replace(own, forecast=forecast))
        added = [replace(each, forecast=None) for name, each in known.items() if name not in set(f.experts)]
        base = Assessment("", classes) if old is None else old
        own_prior = old is not None and old.prior is not None and self.own_priors
        return replace(
            base,
            question=f.events[event],
            classes=classes,
            experts=(*experts, *added),
            prior=None if own_prior else base.prior,
            base_rate=base.base_rate if old is not None and old.classes == classes else None,
        )


def _fit(forecasts: Forecasts, beliefs: Beliefs, prior: float | Array | None) -> FittedPanel:
    options: dict[str, Any] = {} if beliefs.any_panel else {"beliefs": beliefs}
    found = fit_pool("gaussian", forecasts, prior=prior, **options)
    assert isinstance(found, FittedPanel)
    return found


def as_given(p: tuple[float, ...] | None) -> float | Array | None:
    """Assessed probabilities as pools take them: one number, or an array (K,) that sums to 1; None if `p` is None."""
    if p is None:
        return None
    return p[0] if len(p) == 1 else np.array(p) / math.fsum(p)


def answered(a: Assessment) -> Forecasts:
    """Return the forecasts on the assessed event, by the experts who gave one; an ArgumentError if nobody did."""
    there = [each for each in a.experts if each.forecast is not None]
    if not there:
        raise ArgumentError("nobody has given a forecast yet, so the answer is the prior")
    return one_event(a, tuple(each.name for each in there))


def one_event(a: Assessment, experts: tuple[str, ...], own_prior: Array | float | None = None) -> Forecasts:
    """Forecasts on the assessed event, by `experts` in this order, with `own_prior` as the event's prior."""
    own = {each.name: each.forecast for each in a.experts}
    width = 1 if a.binary else len(a.classes)
    rows = [own.get(name) or (math.nan,) * width for name in experts]
    q = np.array(rows, dtype=np.float64)
    return Forecasts.from_array(
        q[None, :, 0] if a.binary else q[None],
        events=[a.question],
        experts=experts,
        classes=a.classes,
        prior=None if own_prior is None else np.asarray(own_prior)[None],
    )


@dataclass(frozen=True, eq=False)
class Answer:
    """The pool's answer with its interval and explanation, and averages of the forecasts to compare it with."""

    why: Explanation
    state: FittedPanel  # the pool that answers
    interval: tuple[Array, Array] | None  # lower and upper ends, () or (K,) each; None without intervals
    # average, geometric: (), or (K,); the simple average of the forecasts, and the geometric mean of their odds
    average: Array
    geometric: Array
    effective: float  # number of independent experts who would be as good as the panel
    altered: bool  # whether the event's forecasts or prior differ from the file's
    notes: tuple[Note, ...]


def answer(a: Assessment, data: PageData) -> Answer:
    """Return the pool's answer for assessment `a`; an OpinionPoolError that says why if there is none."""
    state = data.learned(a)
    forecasts = data.forecasts
    rate, changed = as_given(a.base_rate), altered(a, data)
    # Events with priors of their own have them among their forecasts.
    prior = None if data.own_priors else prior_of(a, data)
    same = forecasts if forecasts is not None and not changed else event_forecasts(a, data, state)
    why = explain_event(same, a.question, state, prior=prior, base_rate=rate)
    notes = (*state.notes, *why.notes, *_in_sample(a, data, state))
    notes = tuple(note for note in notes if note.code not in {"nothing-learned", "believed-unknown"})
    average, geometric = _simple(a, "average", why), _simple(a, "geometric", why)
    return Answer(
        why, state, _interval(why, state, rate), average, geometric, effective_number(state.panel), changed, notes
    )


def _in_sample(a: Assessment, data: PageData, state: FittedPanel) -> tuple[Note, ...]:
    """Return a note if the pool learned from the outcome of the assessed event; empty otherwise."""
    forecasts = data.forecasts
    if forecasts is None or data.trained is not None or a.question not in forecasts.events:
        return ()
    prior = None if data.own_priors else prior_of(a, data)
    inside = in_sample(forecasts.ended, forecasts, "gaussian", state, prior)[forecasts.events.index(a.question)]
    return (in_sample_note(state),) if inside else ()


def _interval(why: Explanation, state: FittedPanel, rate: float | Array | None) -> tuple[Array, Array] | None:
    """Credible interval of the answer with base rate `rate`, by class; None if no forecast or no interval is known."""
    if why.interval is not None:
        return np.asarray(why.interval[0]), np.asarray(why.interval[1])
    if state.posterior is None or not why.experts or tuple(why.classes) != tuple(state.panel.classes):
        return None
    q = np.full((len(state.experts), len(why.classes)), np.nan)
    q[[state.experts.index(name) for name in why.experts]] = why.probabilities
    return state.interval(q, why.prior, rate, why.level, why.topic)


def _simple(a: Assessment, rule: str, why: Explanation) -> Array:
    """Answer of the pool `rule` (an average) to the same forecasts; the prior if no expert has a forecast."""
    if not why.experts:
        return why.prior
    plain = one_event(a, tuple(each.name for each in a.experts if each.forecast is not None))
    return np.asarray(fit_pool(rule, plain).pool(plain.X[0]))


def event_forecasts(a: Assessment, data: PageData, state: FittedPanel) -> Forecasts:
    """Forecasts on the assessed event, by the experts of pool `state`, with the event's topic if the file has it."""
    if data.forecasts is None and data.trained is None:
        return answered(a)
    own = prior_of(a, data) if data.own_priors else None
    event, known = one_event(a, state.experts, own), data.forecasts
    if known is None or known.topics is None or a.question not in known.events:
        return event
    return replace(event, topics=known.topics[[known.events.index(a.question)]])


def prior_of(a: Assessment, data: PageData) -> float | Array | None:
    """Return the event's prior: the assessed one, else the file's for this event, else that of the saved pool."""
    each = None if data.forecasts is None else event_priors(data.forecasts, None)
    if a.prior is not None or data.forecasts is None or each is None:
        return data.reference if a.prior is None else as_given(a.prior)
    return public_probabilities(each[data.forecasts.events.index(a.question), : len(a.classes)])


def altered(a: Assessment, data: PageData) -> bool:
    """Return True if the user changed the event's forecasts or prior, or if the event is not in a file."""
    f = data.forecasts
    if f is None or a.question not in f.events or (data.own_priors and a.prior is not None):
        return True
    original = data.assessment_of(f.events.index(a.question))
    own = {each.name: each.forecast for each in original.experts if each.forecast is not None}
    return own != {each.name: each.forecast for each in a.experts if each.forecast is not None}


def effects(a: Assessment, data: PageData, found: Answer, at: int) -> list[Effect]:
    """Return how far varying each forecast and belief moves the probability of class `at`, largest effect first.

    Certain beliefs (of infinite worth) are not varied, nor are assumptions if the pool learned from outcomes.
    """

    def probability(changed: tuple[Assessment, Beliefs]) -> float:
        state = data.learned(*changed)
        event, own = event_forecasts(changed[0], data, state), prior_of(changed[0], data)
        topic = None if event.topics is None else str(event.topics[0])
        return of_class(np.asarray(state.pool(event.X[0], own, as_given(a.base_rate), topic)), at)

    return effects_of(_variations(a, data, found), probability)


_Changed: TypeAlias = tuple[tuple[Assessment, Beliefs], ...]


def _variations(
    a: Assessment, data: PageData, found: Answer
) -> Iterator[tuple[str, str, bool, tuple[float, float], _Changed]]:
    """Yield what is varied: its name, expert, whether it is assessed, its range, and the inputs at both ends."""
    why, believed = found.why, a.beliefs
    size = np.abs(why.contributions).reshape(len(why.experts), -1).sum(axis=1) if why.experts else np.zeros(0)
    chosen = {why.experts[i] for i in np.argsort(-size, kind="stable")[:MOST].tolist()}
    # What outcomes teach is no assumption.
    assuming = data.trained is None and not found.state.counts.any()
    for each in a.experts:
        if each.name not in chosen:
            continue
        if a.binary and each.forecast is not None:
            ends = _both_ways(each.forecast[0])
            changed = tuple((a.with_expert(replace(each, forecast=(p,))), believed) for p in ends)
            yield "forecast", each.name, True, ends, changed
        for what, ends, own in feature_ranges(_assumed_too(a, each) if assuming else each.beliefs, a.common):
            assessed = what.replace(" ", "_") in each.beliefs.given
            assessed |= what == "accuracy" and each.beliefs.absolute() is not None
            both = tuple((a, replace(believed, experts={**believed.experts, each.name: one})) for one in own)
            yield what, each.name, assessed, ends, both
    correlation = a.everyone.get("correlation")
    if len(chosen) > 1 and (assuming if correlation is None else math.isfinite(correlation.worth)):
        ends = CORRELATIONS if correlation is None else correlation_range(correlation, len(why.experts))
        worth = WORTH if correlation is None else correlation.worth
        both = tuple((a, replace(believed, correlation=Belief(value, worth))) for value in ends)
        yield "correlation", "", correlation is not None, ends, both
    if a.binary and a.prior is not None:
        ends = _both_ways(a.prior[0])
        yield "prior", "", True, ends, tuple((replace(a, prior=(p,)), believed) for p in ends)
    elif a.binary and assuming and not data.own_priors:
        yield "prior", "", False, PRIORS, tuple((replace(a, prior=(p,)), believed) for p in PRIORS)


def _assumed_too(a: Assessment, expert: Expert) -> ExpertBeliefs:
    """Beliefs about an expert, with the assumed accuracy and calibration where these are not assessed."""
    own, taken = expert.beliefs, a.features(expert, a.common)
    if own.absolute() is None and own.get("relative_accuracy") is None:
        own = replace(own, auc=Belief(float(expected_auc(taken.accuracy))))
    return own if own.get("calibration") else replace(own, calibration=Belief(taken.calibration))


def _both_ways(p: float) -> tuple[float, float]:
    """Return `p` decreased and increased by `AGAIN` in log-odds; 0 and 1 stay as they are."""
    low, high = (float(expit(logit(p) + step)) for step in (-AGAIN, AGAIN))
    return low, high


@dataclass(frozen=True, eq=False)
class Stake:
    """Decision whether to act: the probability from which acting pays, expected costs, and what the panel saves."""

    threshold: float  # probability above which acting costs less than waiting
    sure: float | None  # posterior probability above the threshold; None without interval
    verdict: str  # "act" or "wait"; "open" while the interval spans the threshold
    # expected costs: of acting, its price; of waiting, the probability times the loss
    acting: float
    waiting: float
    decision: Decision | None  # value of the panel over such events; None if its accuracy is unknown


def stake(a: Assessment, found: Answer) -> Stake | None:
    """Return the decision whether to act, with its expected costs; None if a cost is unknown, or K > 2."""
    threshold, action, loss = a.stakes.threshold, a.stakes.action, a.stakes.loss
    if not a.binary or threshold is None or action is None or loss is None:
        return None
    p, value, interval = float(found.why.probability), worth(found), found.interval
    decision = None if value is None else decision_value(value.joint_accuracy, threshold, event_prior(a, found))
    ends = (p, p) if interval is None else (float(interval[0]), float(interval[1]))
    verdict = "act" if min(*ends, p) > threshold else "wait" if max(*ends, p) <= threshold else "open"
    sure = None if interval is None else share_above(threshold, p, ends, found.why.level)
    return Stake(threshold, sure, verdict, action, p * loss, decision)


def share_above(threshold: float, p: float, ends: tuple[float, float], level: float) -> float:
    """Posterior probability that an event is more probable than `threshold`, from the answer `p` and its interval.

    On each side of `p`, log-odds are taken as normal, so that the interval `ends` has the probability `level`.

    >>> round(share_above(0.2, 0.5, (0.2, 0.8), 0.9), 3), share_above(0.5, 0.5, (0.2, 0.8), 0.9)
    (0.95, 0.5)
    """
    normal = NormalDist()
    centre, at, low, high = map(odds, (p, threshold, *ends))
    spread = abs((low if at < centre else high) - centre) / normal.inv_cdf((1.0 + level) / 2.0)
    if spread == 0:
        return float(at < centre)
    return normal.cdf((centre - at) / spread)


def event_prior(a: Assessment, found: Answer) -> float:
    """Return the event's probability before any forecast: the assessed base rate if there is one, else the prior."""
    return a.base_rate[0] if a.base_rate is not None else float(found.why.prior)


def worth(found: Answer) -> PanelValue | None:
    """Return the value of the panel at the event's prior, if its model holds; None if accuracies are unknown."""
    binary = found.why.probability.ndim == 0
    try:
        return learned_value(found.state, float(found.why.prior) if binary else 0.5)
    except OpinionPoolError:
        return None


@dataclass(frozen=True, eq=False)
class OneMore:
    """Expected gain from asking one more expert, whose forecast is not known yet."""

    gain: Gain
    auc: float  # AUC of the panel with this expert
    saving: float | None  # expected cost saved, in the user's units; None if costs are unknown or K > 2


def one_more(a: Assessment, found: Answer) -> OneMore:
    """Return the expected gain from one more expert with the accuracy and the correlation of `a.candidate`."""
    panel = known_panel(found.state).subset(found.why.experts) if found.why.experts else known_panel(found.state)
    binary = found.why.probability.ndim == 0
    prior = event_prior(a, found) if binary else 0.5
    gain = gain_from(panel, accuracy_of_auc(a.candidate.auc), a.candidate.correlation, prior=prior)
    threshold, saving = a.stakes.threshold, None
    if binary and threshold is not None and a.stakes.loss is not None:
        before, after = (float(decision_value(level, threshold, prior).expense) for level in (gain.before, gain.after))
        saving = (before - after) * a.stakes.loss
    return OneMore(gain, float(expected_auc(gain.after)), saving)
