"""What the pool answers to an assessment: the library's own functions, asked about one event.

Without a file the panel is what is assessed. With one, it is learned from the file's resolved events, beginning with
what is assessed; with a saved pool, it is that pool.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from opinionpool.analysis.explanation import Explanation, explain_event
from opinionpool.analysis.value import effective_number
from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError, Note
from opinionpool.forecasts import Forecasts
from opinionpool.labels import UNRESOLVED
from opinionpool.learning.fitted import FittedPanel
from opinionpool.logodds import public_probabilities
from opinionpool.names import unknown_names
from opinionpool.page.assessment import Assessment, Expert, to_toml
from opinionpool.pools.fit import fit_pool, in_sample, in_sample_note
from opinionpool.priors import event_priors
from opinionpool.report.answers import Pooled, pool_events

# Fits that are kept, so that going back does not learn again.
KEPT = 64


@dataclass(frozen=True)
class Source:
    """The files that the page was opened with, as the command line named them."""

    files: tuple[str, ...] = ()  # of forecasts; none without any
    reading: tuple[str, ...] = ()  # the options that say how to read it
    model: str | None = None  # a saved pool


@dataclass(eq=False)
class Material:
    """What answers are made from."""

    forecasts: Forecasts | None = None  # of the file; by the experts of the saved pool, in its order, if there is one
    trained: FittedPanel | None = None  # the saved pool
    # the prior that the saved pool answers with, where the events have others than its own
    reference: float | Array | None = None
    source: Source = field(default_factory=Source)

    def __post_init__(self) -> None:
        self._fits: OrderedDict[object, FittedPanel] = OrderedDict()
        self._lock = threading.Lock()
        self._pooled: Pooled | None = None

    @property
    def experts(self) -> tuple[str, ...]:
        """Experts whom the page did not bring in."""
        if self.trained is not None:
            return self.trained.experts
        return () if self.forecasts is None else self.forecasts.experts

    @property
    def classes(self) -> tuple[object, ...]:
        """Those of the saved pool, of the file, or no and yes."""
        if self.trained is not None:
            return self.trained.panel.classes
        return (0, 1) if self.forecasts is None else self.forecasts.classes

    @property
    def own_priors(self) -> bool:
        """Whether each event of the file has a prior of its own."""
        return self.forecasts is not None and event_priors(self.forecasts, None) is not None

    def learned(self, a: Assessment) -> FittedPanel:
        """The pool that answers an assessment.

        Raises
        ------
        OpinionPoolError
            If what is assessed does not fit the experts, or the data do not allow it.
        """
        if self.trained is not None:
            return self.trained
        if self.forecasts is None:
            return _fit(answered(a), a, prior_of(a))
        prior = None if self.own_priors else prior_of(a)
        added = tuple(unknown_names((each.name for each in a.experts), self.experts))
        key = (to_toml(a.beliefs), None if prior is None else np.asarray(prior).tobytes(), added)
        with self._lock:
            if key in self._fits:
                self._fits.move_to_end(key)
                return self._fits[key]
        found = _fit(replace(self.forecasts, experts=self.forecasts.experts + added), a, prior)
        with self._lock:
            self._fits[key] = found
            while len(self._fits) > KEPT:
                self._fits.popitem(last=False)
        return found

    def pooled(self) -> Pooled:
        """The answers about all events of the file, as it is."""
        assert self.forecasts is not None
        if self._pooled is None:
            state = self.trained if self.trained is not None else _fit(self.forecasts, Assessment(""), None)
            self._pooled = pool_events(self.forecasts, "gaussian", state, self.reference, None)
        return self._pooled

    def before(self, a: Assessment) -> Array | None:
        """Weights of the panel as it is assessed, in the order of those that are learned; None for a saved pool."""
        if self.trained is not None or self.forecasts is None:
            return None
        added = tuple(unknown_names((each.name for each in a.experts), self.experts))
        one = self.forecasts.select_events(np.flatnonzero(self.forecasts.crowd == self.forecasts.crowd.max())[:1])
        unresolved = replace(one, experts=one.experts + added, outcomes=np.full(1, UNRESOLVED))
        state = _fit(unresolved, a, None)
        return np.asarray(state.panel.weights)

    def assessment_of(self, event: int, old: Assessment | None = None) -> Assessment:
        """The assessment of an event of the file as the file has it, with what `old` says of the experts.

        An event with options of its own has these as classes.
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


def _fit(forecasts: Forecasts, a: Assessment, prior: float | Array | None) -> FittedPanel:
    options: dict[str, Any] = {} if a.beliefs.any_panel else {"beliefs": a.beliefs}
    found = fit_pool("gaussian", forecasts, prior=prior, **options)
    assert isinstance(found, FittedPanel)
    return found


def as_given(p: tuple[float, ...] | None) -> float | Array | None:
    """Probabilities as pools take them, and as the command line makes them of its options: one number, or K of them."""
    if p is None:
        return None
    return p[0] if len(p) == 1 else np.array(p) / math.fsum(p)


def prior_of(a: Assessment) -> float | Array | None:
    """The prior that is assessed, None if none is."""
    return as_given(a.prior)


def answered(a: Assessment) -> Forecasts:
    """The forecasts of those who answered, without a file.

    Raises
    ------
    ArgumentError
        If nobody did.
    """
    there = [each for each in a.experts if each.forecast is not None]
    if not there:
        raise ArgumentError("nobody has given a forecast yet, so the answer is the prior")
    return one_event(a, tuple(each.name for each in there))


def one_event(a: Assessment, experts: tuple[str, ...], own_prior: Array | float | None = None) -> Forecasts:
    """The forecasts on the assessed event, by experts in a given order."""
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
    """The pool's answer, explained, and what stands beside it."""

    why: Explanation
    state: FittedPanel  # the pool that answers
    interval: tuple[Array, Array] | None  # (), or (K,); between what each probability lies, as far as the pool knows
    # average, geometric: (), or (K,); the simple average of the forecasts, and the geometric mean of their odds
    average: Array
    geometric: Array
    effective: float  # so many independent experts would be as good as the panel
    altered: bool  # whether the event's forecasts are other ones than the file's
    notes: tuple[Note, ...]


def answer(a: Assessment, material: Material) -> Answer:
    """Answer an assessment.

    Raises
    ------
    OpinionPoolError
        If it cannot be answered; the message says why.
    """
    state = material.learned(a)
    forecasts = material.forecasts
    rate = as_given(a.base_rate)
    changed = altered(a, material)
    if forecasts is not None and not changed:
        t = forecasts.events.index(a.question)
        why = explain_event(forecasts, t, state, prior=given_prior(a, material), base_rate=rate)
    else:
        event = event_forecasts(a, material, state)
        why = explain_event(event, 0, state, prior=given_prior(a, material), base_rate=rate)
    notes = (*state.notes, *why.notes, *_in_sample(a, material, state))
    notes = tuple(note for note in notes if note.code not in {"nothing-learned", "believed-unknown"})
    average, geometric = _simple(a, "average", why), _simple(a, "geometric", why)
    return Answer(
        why, state, _interval(why, state, rate), average, geometric, effective_number(state.panel), changed, notes
    )


def _in_sample(a: Assessment, material: Material, state: FittedPanel) -> tuple[Note, ...]:
    """That the pool knows how this event ended."""
    forecasts = material.forecasts
    if forecasts is None or material.trained is not None or a.question not in forecasts.events:
        return ()
    prior = given_prior(a, material)
    inside = in_sample(forecasts.resolved, forecasts, "gaussian", state, prior)[forecasts.events.index(a.question)]
    return (in_sample_note(state),) if inside else ()


def _interval(why: Explanation, state: FittedPanel, rate: float | Array | None) -> tuple[Array, Array] | None:
    """Of the answer, by class; none where it is the prior, or the pool does not say, or options are the event's own."""
    if why.interval is not None:
        return np.asarray(why.interval[0]), np.asarray(why.interval[1])
    if state.uncertainty is None or not why.experts or tuple(why.classes) != tuple(state.panel.classes):
        return None
    q = np.full((len(state.experts), len(why.classes)), np.nan)
    q[[state.experts.index(name) for name in why.experts]] = why.probabilities
    return state.interval(q, why.prior, rate, why.level, why.topic)


def _simple(a: Assessment, rule: str, why: Explanation) -> Array:
    """What a pool that learns nothing makes of the forecasts; the prior if there are none."""
    if not why.experts:
        return why.prior
    plain = one_event(a, tuple(each.name for each in a.experts if each.forecast is not None))
    return np.asarray(fit_pool(rule, plain).pool(plain.X[0]))


def event_forecasts(a: Assessment, material: Material, state: FittedPanel) -> Forecasts:
    """The assessed event by itself, as the file has it or as it is assessed."""
    if material.forecasts is None and material.trained is None:
        return answered(a)
    own = own_prior(a, material) if material.own_priors else None
    event, known = one_event(a, state.experts, own), material.forecasts
    if known is None or known.topics is None or a.question not in known.events:
        return event
    return replace(event, topics=known.topics[[known.events.index(a.question)]])


def own_prior(a: Assessment, material: Material) -> float | Array:
    """The prior of an event of a file where each has its own: as assessed, else the file's."""
    given = prior_of(a)
    if given is not None:
        return given
    assert material.forecasts is not None
    each = event_priors(material.forecasts, None)
    assert each is not None
    t = material.forecasts.events.index(a.question)
    return public_probabilities(each[t, : len(a.classes)])


def given_prior(a: Assessment, material: Material) -> float | Array | None:
    """The prior that `explain` is asked with."""
    if material.own_priors:
        return None
    given = prior_of(a)
    return material.reference if given is None else given


def altered(a: Assessment, material: Material) -> bool:
    """Whether the event's forecasts, or its own prior, are other ones than the file's."""
    if material.forecasts is None:
        return True
    if a.question not in material.forecasts.events:
        return True
    if material.own_priors and a.prior is not None:
        return True
    original = material.assessment_of(material.forecasts.events.index(a.question))
    own = {each.name: each.forecast for each in original.experts if each.forecast is not None}
    return own != {each.name: each.forecast for each in a.experts if each.forecast is not None}
