"""What a page holds: a question, the experts' forecasts, and what is assessed or assumed of the experts.

An assessment never changes; an action makes a new one, so that undoing is going back to an old one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from opinionpool.analysis.value import expected_auc
from opinionpool.errors import ArgumentError
from opinionpool.learning.beliefs import Belief, Beliefs, ExpertBeliefs, beliefs_of_mapping
from opinionpool.learning.constants import ACCURACY, CALIBRATION
from opinionpool.report.listing import printable
from opinionpool.report.view import belief_facts
from opinionpool.text import toml_value

# The ways to say how accurate an expert is; one at a time.
ACCURACIES = ("auc", "hit_rate", "score", "accuracy", "relative_accuracy")
MOST_EXPERTS, MOST_LETTERS, MOST_CLASSES = 200, 200, 20


@dataclass(frozen=True)
class Expert:
    """An expert on the page: its name, its forecast and the beliefs about it."""

    key: int  # what the page's controls call it
    name: str
    # the probability of the second class, or of each of K > 2 classes; None without an answer
    forecast: tuple[float, ...] | None = None
    beliefs: ExpertBeliefs = field(default_factory=ExpertBeliefs)  # what is assessed of it


@dataclass(frozen=True)
class Stakes:
    """Cost of acting, and loss if the event happens and nobody acted; None until entered."""

    action: float | None = None
    loss: float | None = None

    @property
    def threshold(self) -> float | None:
        """Probability above which acting costs less; None while a cost is unknown."""
        return None if self.action is None or self.loss is None else self.action / self.loss


class Features(NamedTuple):
    """Accuracy, calibration and bias that are used for an expert, assessed or assumed."""

    accuracy: float  # absolute, μ*
    calibration: float
    bias: float


@dataclass(frozen=True)
class Candidate:
    """An expert who may be asked in addition: its AUC, and its correlation with the others."""

    auc: float = 0.8
    correlation: float = 0.3


@dataclass(frozen=True)
class Assessment:
    """Everything that a user has entered on the page."""

    question: str  # the event's name
    classes: tuple[object, ...] = (0, 1)  # K labels
    experts: tuple[Expert, ...] = ()
    # beliefs about all experts, with their correlation; those about experts by name stand with these
    everyone: Beliefs = field(default_factory=Beliefs)
    # prior, base_rate: as for an expert's forecast. A prior of None is the one that the pool has.
    prior: tuple[float, ...] | None = None
    base_rate: tuple[float, ...] | None = None
    assessor: str = ""  # who made the assessment
    stakes: Stakes = field(default_factory=Stakes)
    candidate: Candidate = field(default_factory=Candidate)

    @property
    def binary(self) -> bool:
        """Whether there are two classes, so that a forecast is one number."""
        return len(self.classes) == 2

    @cached_property
    def assumed(self) -> dict[str, Any]:
        """AUC and calibration κ for experts without an assessment, from assessed experts; empty if nobody is assessed.

        Such an expert counts like the average of those who are assessed, and no more than one of any panel: weights
        with a common correlation are κ(1 − c/√μ*), so κ and κ/√μ* are their means.
        """
        assessed = [each for each in self.experts if each.beliefs.absolute() or each.beliefs.get("calibration")]
        if not assessed:
            return {}
        kappa = [self.features(each).calibration for each in assessed]
        ratio = [self.features(each).calibration / math.sqrt(self.features(each).accuracy) for each in assessed]
        root = math.fsum(kappa) / math.fsum(ratio)
        accurate = ("relative_accuracy" in each.beliefs.given or each.beliefs.absolute() for each in self.experts)
        found: dict[str, Any] = {}
        if self.everyone.absolute() is None and not all(accurate):
            found["auc"] = Belief(float(expected_auc(min(root**2, ACCURACY))))
        if self.everyone.get("calibration") is None and not all(
            each.beliefs.get("calibration") for each in self.experts
        ):
            found["calibration"] = Belief(min(math.fsum(kappa) / len(kappa), CALIBRATION))
        return found

    @cached_property
    def common(self) -> Beliefs:
        """Beliefs about all experts: assessed, else assumed."""
        return replace(self.everyone, **self.assumed)

    @cached_property
    def beliefs(self) -> Beliefs:
        """Beliefs for the pool: those about all experts, and those about each."""
        own = {each.name: each.beliefs for each in self.experts if each.beliefs.given}
        return replace(self.common, experts=own)

    def features(self, expert: Expert, common: ExpertBeliefs | None = None) -> Features:
        """Return an expert's features, by its own beliefs, else by those about all, else by the default assumptions."""
        own, everyone = expert.beliefs, self.everyone if common is None else common
        level, accuracy, relative = everyone.absolute(), own.absolute(), own.get("relative_accuracy")
        base = (ACCURACY if level is None else level.value) * (1.0 if relative is None else relative.value)
        calibration = own.get("calibration") or everyone.get("calibration") or Belief(CALIBRATION)
        bias = own.get("bias") or everyone.get("bias") or Belief(0.0)
        return Features(base if accuracy is None else accuracy.value, calibration.value, bias.value)

    def expert(self, key: object) -> Expert:
        """Return the expert with a key; an ArgumentError if there is none, as when it was removed on another page."""
        for each in self.experts:
            if each.key == key:
                return each
        raise ArgumentError("this expert is no longer in the panel")

    def with_expert(self, new: Expert) -> Assessment:
        """Return a copy with the expert of the same key replaced by `new`."""
        return replace(self, experts=tuple(new if each.key == new.key else each for each in self.experts))


EXAMPLE = "Will the acquisition close by the end of June?"


def example() -> Assessment:
    """Return an example: three invented advisers on an acquisition, for a page that is opened without a file."""
    advisers = (
        ("Ana, lawyer", 0.8, 0.80, 0.8),
        ("Ben, banker", 0.7, 0.75, 0.7),
        ("Cleo, engineer", 0.45, 0.70, 1.0),
    )
    experts = tuple(
        Expert(key, name, (forecast,), ExpertBeliefs(auc=(area, 20), calibration=(calibration, 20), bias=(0.0, 20)))
        for key, (name, forecast, area, calibration) in enumerate(advisers, 1)
    )
    return Assessment(EXAMPLE, (0, 1), experts, Beliefs(correlation=(0.5, 20)), (0.5,))


def blank(names: Sequence[str] = (), classes: Sequence[object] = (0, 1)) -> Assessment:
    """Return an assessment of `names` without beliefs or forecasts, and with a question that is still to be typed."""
    return Assessment("Will it happen?", tuple(classes), tuple(Expert(key, each) for key, each in enumerate(names, 1)))


def uniform(classes: Sequence[object]) -> tuple[float, ...]:
    """Return equal probabilities in the form of a forecast: one number for two classes, else one for each.

    >>> uniform((0, 1)), uniform("abcd")
    ((0.5,), (0.25, 0.25, 0.25, 0.25))
    """
    return (0.5,) if len(classes) == 2 else (1.0 / len(classes),) * len(classes)


def one_line(value: object, what: str, most: int = MOST_LETTERS) -> str:
    """Return a typed text in one line with single spaces; raise if it has invisible characters or too many letters.

    >>> one_line("  Ann   Lee ", "a name")
    'Ann Lee'
    """
    if not isinstance(value, str):
        raise ArgumentError(f"{what} must be text")
    text = " ".join(value.split())
    if printable(text) != text:
        raise ArgumentError(f"{what} has characters that cannot be shown: {printable(text)[:60]}")
    if len(text) > most:
        raise ArgumentError(f"{what} may have {most} letters, and this has {len(text):,}")
    return text


def number(value: object, what: str, least: float, most: float) -> float:
    """Return a number from a control; an ArgumentError if it is no number, or outside of `least` to `most`."""
    try:
        found = float(value.replace(",", ".") if isinstance(value, str) else value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{what} must be a number, and it is {printable(str(value))[:40]!r}") from None
    if not least <= found <= most:
        raise ArgumentError(f"{what} must lie between {least:g} and {most:g}, and it is {found:g}")
    return found


def to_dict(assessment: Assessment) -> dict[str, Any]:
    """Return an assessment as a dict for JSON."""
    a, own = assessment, {each.name: each.beliefs for each in assessment.experts}
    everyone: Any = belief_facts(replace(a.everyone, experts=own))["beliefs"]
    assessed = everyone.pop("experts")
    experts = [vars(each) | {"beliefs": assessed.get(each.name, {})} for each in a.experts]
    found = {each.name: getattr(a, each.name) for each in fields(a)} | {"experts": experts, "everyone": everyone}
    return found | {name: [*vars(found[name]).values()] for name in ("stakes", "candidate")}


def from_dict(given: Mapping[str, Any]) -> Assessment:
    """Return the assessment from a dict that `to_dict` made; an ArgumentError if the dict is of another form."""
    try:
        experts = tuple(
            Expert(int(key), str(name), _numbers(forecast), ExpertBeliefs(**_infinite(beliefs)))
            for key, name, forecast, beliefs in map(itemgetter("key", "name", "forecast", "beliefs"), given["experts"])
        )
        return Assessment(
            str(given["question"]), tuple(given["classes"]), experts, beliefs_of_mapping(_infinite(given["everyone"])),
            _numbers(given["prior"]), _numbers(given["base_rate"]), str(given["assessor"]),
            Stakes(*(None if cost is None else float(cost) for cost in given["stakes"])),
            Candidate(*map(float, given["candidate"])),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(f"this is no assessment that a page has kept: {error}") from None


def _infinite(beliefs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {name: {key: float(value) for key, value in own.items()} for name, own in beliefs.items()}


def _numbers(given: Sequence[Any] | None) -> tuple[float, ...] | None:
    return None if given is None else tuple(map(float, given))


def to_toml(beliefs: Beliefs, assumed: Mapping[str, object] = MappingProxyType({})) -> str:
    """Return the beliefs as the text of a panel file that `read_beliefs` reads back exactly.

    Comments mark the beliefs that are `assumed` of all experts.

    >>> print(to_toml(Beliefs(correlation=0.6, experts={"Ann Lee": {"auc": (0.8, 50)}})), end="")
    correlation = { value = 0.6, worth = 20 }
    <BLANKLINE>
    [experts."Ann Lee"]
    auc = { value = 0.8, worth = 50 }
    """
    lines = [
        _line(name, belief) + ("  # assumed where nobody assessed it" if name in assumed else "")
        for name, belief in beliefs.given.items()
    ]
    for name, own in beliefs.experts.items():
        if own.given:
            lines += ["", f"[experts.{toml_value(name)}]", *(_line(key, belief) for key, belief in own.given.items())]
    return "".join(f"{line}\n" for line in lines)


def _line(name: str, belief: Belief) -> str:
    return f"{name} = {{ value = {_exact(belief.value)}, worth = {_exact(belief.worth)} }}"


def _exact(x: float) -> str:
    """Return the shortest text that is read back as exactly the same number."""
    return f"{x:.0f}" if x == round(x, 0) and abs(x) < 1e15 else repr(x)
