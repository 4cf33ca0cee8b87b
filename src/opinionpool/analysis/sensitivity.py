"""Sensitivity of one answer to each belief about the experts, over the range that the belief's worth allows.

A belief worth n events is as uncertain as after n resolved events: the logarithms of calibration and accuracy have the
variances (2/μ* + 2)/n and (8/μ* + 2)/n, and a common correlation 2(1 − ρ)²(1 + (N − 1)ρ)²/(nN(N − 1)) (model.md, 2.5).
Features without a belief are varied over the range that is assumed for any panel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, TypeVar

import numpy.typing as npt

from opinionpool.analysis.explanation import explain_event
from opinionpool.analysis.value import expected_auc
from opinionpool.errors import ArgumentError, OpinionPoolError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Belief, Beliefs, ExpertBeliefs
from opinionpool.learning.constants import CALIBRATION, SLOPE_SD, WORTH
from opinionpool.learning.learn import learn
from opinionpool.model.accuracy import ELICITED

# Ranges hold what they are of with this probability.
LEVEL = 0.9
WIDTH = NormalDist().inv_cdf((1.0 + LEVEL) / 2.0)
# Where no correlation is assessed, it may be so low or so high; a prior that nobody gave may be so far off.
CORRELATIONS, PRIORS = (0.2, 0.85), (0.3, 0.7)


@dataclass(frozen=True)
class Effect:
    """Effect of one belief on an answer: the answers if the believed quantity is at either end of its 90% range."""

    what: str  # "forecast", "accuracy", "relative accuracy", "calibration", "bias", "correlation" or "prior"
    expert: str  # empty for a belief about all experts
    assessed: bool  # whether the belief was given; else it is the default for any panel
    values: tuple[float, float]  # the ends of the range, as areas under the ROC curve for an accuracy
    answers: tuple[float, float]  # the pooled probabilities at these ends

    @property
    def size(self) -> float:
        """Absolute difference between the two answers, in log-odds."""
        low, high = (math.log(max(p, 1e-12) / max(1.0 - p, 1e-12)) for p in self.answers)
        return abs(high - low)


def sensitivity(
    forecasts: Forecasts, event: str | int, beliefs: Beliefs | None = None, prior: npt.ArrayLike | None = None
) -> list[Effect]:
    """Effects of each belief on one binary answer, at both ends of the belief's range, the largest effect first.

    The prior is varied, too, if none is given and no event is resolved.

    >>> f = Forecasts.from_array([[0.7, 0.6, 0.8]], [None])
    >>> effects = sensitivity(f, 0, prior=0.5)
    >>> [(effect.what, [round(p, 2) for p in effect.answers]) for effect in effects]
    [('calibration', [0.68, 0.84]), ('correlation', [0.85, 0.71])]
    """
    if len(forecasts.classes) > 2 or forecasts.options is not None:
        raise ArgumentError("sensitivity is that of one probability, of two classes that all events share")
    given = beliefs or Beliefs()

    def answer(changed: tuple[Beliefs, npt.ArrayLike | None]) -> float:
        state = learn(forecasts, prior=changed[1], beliefs=changed[0])
        return float(explain_event(forecasts, event, state, prior=changed[1]).probability)

    found = [
        (*which, tuple((each, prior) for each in changed)) for *which, changed in _variations(given, forecasts.experts)
    ]
    if prior is None and forecasts.prior is None and not forecasts.resolved.any():
        found.append(("prior", "", False, PRIORS, tuple((given, p) for p in PRIORS)))
    return effects_of(found, answer)


Changed = TypeVar("Changed")


def effects_of(variations: Iterable[tuple[Any, ...]], answer: Callable[[Changed], float]) -> list[Effect]:
    """Effects of `variations` of an input, the largest first; the function `answer` gives the probability for an input.

    Each variation has the name of what is varied, the expert concerned, whether a user assessed it, its range, and the
    pair of inputs with the lowest and with the highest value.
    """
    found = []
    for what, expert, assessed, values, changed in variations:
        # An end of the range that these experts cannot have says nothing about the others.
        with suppress(OpinionPoolError):
            low, high = map(answer, changed)
            found.append(Effect(what, expert, assessed, values, (low, high)))
    return sorted(found, key=lambda effect: -effect.size)


_Variation = tuple[str, str, bool, tuple[float, float], tuple[Beliefs, Beliefs]]


def _variations(given: Beliefs, experts: tuple[str, ...]) -> Iterator[_Variation]:
    """Yield, for each uncertain belief: feature, expert, whether assessed, range, and all beliefs at both ends."""
    n, accuracy = len(experts), given.absolute()
    correlation, calibration = given.get("correlation"), given.get("calibration")
    ends, level = _factor_range(CALIBRATION, SLOPE_SD), 1.0 if accuracy is None else accuracy.value
    either = [("calibration", calibration, ends if calibration is None else calibration_range(calibration, level))]
    if n > 1:
        ends = CORRELATIONS if correlation is None else correlation_range(correlation, n)
        either.insert(0, ("correlation", correlation, ends))
    for what, belief, ends in either:
        worth = WORTH if belief is None else belief.worth
        if math.isfinite(worth):
            changes: list[dict[str, Any]] = [{what: Belief(value, worth)} for value in ends]
            low, high = (replace(given, **each) for each in changes)
            yield what, "", belief is not None, ends, (low, high)
    for what, ends, (low, high) in feature_ranges(given):
        if what != "calibration":
            yield what, "", True, ends, (low, high)
    for name, own in given.experts.items():
        if name in experts:
            for what, ends, changed in feature_ranges(own, given):
                low, high = (replace(given, experts={**given.experts, name: each}) for each in changed)
                yield what, name, True, ends, (low, high)


SomeBeliefs = TypeVar("SomeBeliefs", bound=ExpertBeliefs)


def feature_ranges(
    own: SomeBeliefs, everyone: ExpertBeliefs | None = None
) -> Iterator[tuple[str, tuple[float, float], tuple[SomeBeliefs, SomeBeliefs]]]:
    """Yield for each uncertain belief in `own`: its name, its 90% range, and copies of `own` with it at both ends."""
    accuracy, calibration, common = own.absolute(), own.get("calibration"), everyone or ExpertBeliefs()
    relative = None if isinstance(own, Beliefs) else own.get("relative_accuracy")
    level = next((each.value for each in (accuracy, common.absolute()) if each is not None), 1.0)
    level *= 1.0 if relative is None else relative.value
    kappa = next((each.value for each in (calibration, common.get("calibration")) if each is not None), CALIBRATION)
    ranges: tuple[tuple[str, Belief | None, Callable[[Belief], tuple[float, float]], dict[str, None]], ...] = (
        ("auc", accuracy, accuracy_range, dict.fromkeys(("accuracy", *ELICITED))),
        ("relative_accuracy", relative, lambda belief: relative_range(belief, level), {}),
        ("calibration", calibration, lambda belief: calibration_range(belief, level), {}),
        ("bias", own.get("bias"), lambda belief: bias_range(belief, level, kappa), {}),
    )
    for name, belief, range_of, none in ranges:
        if belief is not None and math.isfinite(belief.worth):
            ends = range_of(belief)
            changed: list[dict[str, Any]] = [none | {name: Belief(value, belief.worth)} for value in ends]
            low, high = (replace(own, **each) for each in changed)
            yield "accuracy" if name == "auc" else name.replace("_", " "), ends, (low, high)


def accuracy_range(accuracy: Belief) -> tuple[float, float]:
    """90% range of an expert's accuracy, as areas under the ROC curve, by a belief that is worth a number of events."""
    spread = math.sqrt((8.0 / accuracy.value + 2.0) / accuracy.worth)
    # Above 50 an AUC is 1 to the last digits.
    value = min(accuracy.value, 50.0)
    low, high = _factor_range(value, spread, (0.0, 50.0))
    low, centre, high = (float(auc) for auc in expected_auc([low, value, high]))
    return _clipped(low, centre, high, (0.505, 0.995))


def relative_range(relative: Belief, accuracy: float) -> tuple[float, float]:
    """90% range of a believed relative accuracy of an expert with the absolute `accuracy` μ*, in log-odds."""
    return _factor_range(relative.value, math.sqrt((8.0 / accuracy + 2.0) / relative.worth), (1e-4, 1e4))


def calibration_range(calibration: Belief, accuracy: float) -> tuple[float, float]:
    """90% range of the believed calibration of an expert with the given `accuracy` μ*, in log-odds."""
    return _factor_range(calibration.value, math.sqrt((2.0 / accuracy + 2.0) / calibration.worth))


def _factor_range(centre: float, spread: float, limits: tuple[float, float] = (0.01, 100.0)) -> tuple[float, float]:
    """90% range about `centre`, clipped to `limits`, of a positive number whose logarithm has the sd `spread`."""
    # Any factor above e^50 goes beyond all limits, and those above e^709 overflow.
    factor = math.exp(min(WIDTH * spread, 50.0))
    return _clipped(centre / factor, centre, centre * factor, limits)


def _clipped(low: float, centre: float, high: float, limits: tuple[float, float]) -> tuple[float, float]:
    """Range from `low` to `high` clipped to `limits`, but always including `centre`."""
    return max(low, min(centre, limits[0])), min(high, max(centre, limits[1]))


def bias_range(bias: Belief, accuracy: float, calibration: float) -> tuple[float, float]:
    """90% range of the believed bias of an expert with `accuracy` μ* and `calibration`; bias and μ* in log-odds."""
    spread = WIDTH * math.sqrt(2.0 * accuracy / calibration**2 / bias.worth)
    return _clipped(bias.value - spread, bias.value, bias.value + spread, (-20.0, 20.0))


def correlation_range(correlation: Belief, n: int) -> tuple[float, float]:
    """90% range, within 0 to 0.99, of the believed common correlation of `n` experts."""
    rho = correlation.value
    level = (1.0 - rho) * (1.0 + (n - 1) * rho)
    spread = WIDTH * math.sqrt(2.0 * level**2 / (correlation.worth * n * (n - 1)))
    return _clipped(rho - spread, rho, rho + spread, (0.0, 0.99))
