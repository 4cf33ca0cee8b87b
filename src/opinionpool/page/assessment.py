"""Inputs of a page: a question, the experts' forecasts, and beliefs assessed or assumed about the experts.

An assessment never changes; an action of a control makes a new one, so that undoing is going back to an old one.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from opinionpool.analysis.value import expected_auc
from opinionpool.errors import ArgumentError, OpinionPoolError
from opinionpool.learning.beliefs import Belief, Beliefs, ExpertBeliefs, beliefs_of_mapping
from opinionpool.learning.constants import ACCURACY, CALIBRATION, CORRELATION, WORTH
from opinionpool.report.listing import printable
from opinionpool.report.view import belief_facts
from opinionpool.text import toml_value

# Beliefs that give an expert's accuracy, of which an expert can have one.
ACCURACIES = ("auc", "hit_rate", "score", "accuracy", "relative_accuracy")
MOST_EXPERTS, MOST_LETTERS, MOST_CLASSES = 200, 200, 20


@dataclass(frozen=True)
class Expert:
    """Expert on the page: a name, a forecast on the event, and the user's beliefs about the expert."""

    key: int  # number that identifies the expert in the page's controls
    name: str
    # the probability of the second class, or of each of K > 2 classes; None without an answer
    forecast: tuple[float, ...] | None = None
    beliefs: ExpertBeliefs = field(default_factory=ExpertBeliefs)  # beliefs assessed by the user


@dataclass(frozen=True)
class Stakes:
    """Cost of acting, and the loss if the event happens and nobody has acted; both are None until they are entered."""

    action: float | None = None
    loss: float | None = None

    @property
    def threshold(self) -> float | None:
        """Probability of the event above which acting costs less than waiting; None while a cost is unknown."""
        return None if self.action is None or self.loss is None else self.action / self.loss


class Features(NamedTuple):
    """Accuracy, calibration and bias of an expert with which the page computes the answer, assessed or assumed."""

    accuracy: float  # absolute, μ*
    calibration: float
    bias: float


@dataclass(frozen=True)
class Candidate:
    """An additional expert whom the user might ask: AUC, and correlation of errors with those of the other experts."""

    auc: float = 0.8
    correlation: float = 0.3


@dataclass(frozen=True)
class Assessment:
    """Everything that a user has entered on the page: question, classes, experts, beliefs and costs."""

    question: str  # the event's name
    classes: tuple[object, ...] = (0, 1)  # K labels
    experts: tuple[Expert, ...] = ()
    # beliefs about all experts, with their correlation; beliefs about one expert are in `Expert.beliefs`
    everyone: Beliefs = field(default_factory=Beliefs)
    # prior, base_rate: as an expert's forecast; a prior of None stands for the pool's own
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
        """AUC and calibration κ that experts without an assessment get from the others; empty if nobody is assessed.

        Such an expert has the mean weight of assessed experts, and is no more accurate than by default. As experts with
        one common correlation have weights κ(1 − c/√μ*), with the same c for all, the assumed κ and κ/√μ* are means
        over assessed experts.
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
        """Beliefs about all experts: assessed ones, completed by the AUC and calibration in `assumed`."""
        return replace(self.everyone, **self.assumed)

    @cached_property
    def beliefs(self) -> Beliefs:
        """Beliefs to fit the pool with: those about all experts, and those about each one by name."""
        own = {each.name: each.beliefs for each in self.experts if each.beliefs.given}
        return replace(self.common, experts=own)

    def features(self, expert: Expert, common: ExpertBeliefs | None = None) -> Features:
        """An expert's features, each as believed of this expert, else as believed of all (`common`), else default."""
        own, everyone = expert.beliefs, self.everyone if common is None else common
        level, accuracy, relative = everyone.absolute(), own.absolute(), own.get("relative_accuracy")
        base = (ACCURACY if level is None else level.value) * (1.0 if relative is None else relative.value)
        calibration = own.get("calibration") or everyone.get("calibration") or Belief(CALIBRATION)
        bias = own.get("bias") or everyone.get("bias") or Belief(0.0)
        return Features(base if accuracy is None else accuracy.value, calibration.value, bias.value)

    def expert(self, key: object) -> Expert:
        """Return the expert with this key; an ArgumentError if there is none, as after a removal on another page."""
        for each in self.experts:
            if each.key == key:
                return each
        raise ArgumentError("this expert is no longer in the panel")

    def with_expert(self, new: Expert) -> Assessment:
        """Return a copy of the assessment in which `new` replaces the expert with the same key."""
        return replace(self, experts=tuple(new if each.key == new.key else each for each in self.experts))


EXAMPLE = "Will the acquisition close by the end of June?"


def example() -> Assessment:
    """Return the assessment that a page without a file begins with: three invented advisers on an acquisition."""
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
    """Return an assessment of experts called `names`, with nothing assessed and no forecasts."""
    return Assessment("Will it happen?", tuple(classes), tuple(Expert(key, each) for key, each in enumerate(names, 1)))


def uniform(classes: Sequence[object]) -> tuple[float, ...]:
    """Return equal probabilities as a forecast: one number for two classes, else one number for each class.

    >>> uniform((0, 1)), uniform("abcd")
    ((0.5,), (0.25, 0.25, 0.25, 0.25))
    """
    return (0.5,) if len(classes) == 2 else (1.0 / len(classes),) * len(classes)


def one_line(value: object, what: str, most: int = MOST_LETTERS) -> str:
    """Return a typed text in one line; an ArgumentError if it has invisible characters, or more letters than `most`.

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
    """Return a control's value as a number; an ArgumentError if it is none, or not from `least` to `most`."""
    try:
        found = float(value.replace(",", ".") if isinstance(value, str) else value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{what} must be a number, and it is {printable(str(value))[:40]!r}") from None
    if not least <= found <= most:
        raise ArgumentError(f"{what} must lie between {least:g} and {most:g}, and it is {found:g}")
    return found


def to_dict(assessment: Assessment) -> dict[str, Any]:
    """Return an assessment as a dict that JSON can hold and `from_dict` reads."""
    a, own = assessment, {each.name: each.beliefs for each in assessment.experts}
    everyone: Any = belief_facts(replace(a.everyone, experts=own))["beliefs"]
    assessed = everyone.pop("experts")
    experts = [vars(each) | {"beliefs": assessed.get(each.name, {})} for each in a.experts]
    found = {each.name: getattr(a, each.name) for each in fields(a)} | {"experts": experts, "everyone": everyone}
    return found | {name: [*vars(found[name]).values()] for name in ("stakes", "candidate")}


def from_dict(given: Mapping[str, Any]) -> Assessment:
    """Return the assessment of which `to_dict` made this dict; an ArgumentError if it did not."""
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
    """Return beliefs as the text of a panel file, from which `read_beliefs` reads equal beliefs.

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
    """Return the shortest text of a number that is read as exactly this number."""
    return f"{x:.0f}" if x == round(x, 0) and abs(x) < 1e15 else repr(x)


# Message of a control: `do` is the action, `value` its value, `expert` and `class` the key and position concerned.
Action: TypeAlias = Mapping[str, Any]
# Units of accuracy that the page offers, with their ranges.
UNITS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"auc": (0.51, 0.99), "hit_rate": (0.51, 0.99), "score": (0.01, 0.95)}
)
# Worths of an assessment that can be chosen, in resolved events.
WORTHS = (5, 10, 20, 50, 100, 200)
# Smallest probability of a class after another class's is set.
LEAST = 1e-4


def acted(assessment: Assessment, action: Action) -> Assessment:
    """Return the assessment after a control's `action`; an OpinionPoolError that says why if it cannot be done."""
    do = str(action.get("do"))
    if do in _NUMBERS:
        entry = _NUMBERS[do]
        value = action.get("value")
        given = None if entry.blank and value in {None, ""} else number(value, entry.what, entry.least, entry.most)
        return entry.put(assessment, action, given)
    if do in _OF_EXPERTS:
        own = assessment.expert(action.get("expert"))
        return assessment.with_expert(_OF_EXPERTS[do](assessment, own, action))
    if do not in _ACTIONS:
        raise ArgumentError("the page asked for something that this server does not know; load it again")
    return _ACTIONS[do](assessment, action)


def _question(a: Assessment, action: Action) -> Assessment:
    text = one_line(action.get("value"), "a question")
    if not text:
        raise ArgumentError("a question needs a text, by which the files that you take away name it")
    return replace(a, question=text)


def _outcomes(a: Assessment, action: Action) -> Assessment:
    """Assessment with the classes in `action`, and without forecasts, prior and base rate about the old classes."""
    labels = [one_line(part, "an outcome") for part in str(action.get("value", "")).split(",")]
    labels = [label for label in labels if label]
    if len(labels) > MOST_CLASSES or len(set(labels)) < len(labels):
        raise ArgumentError(f"outcomes are up to {MOST_CLASSES} different names, separated by commas")
    classes = _as_read(labels) if len(labels) > 2 else (0, 1)
    if len(labels) in {1, 2}:
        raise ArgumentError("name three or more outcomes, separated by commas, or none for yes and no")
    experts = tuple(replace(each, forecast=None) for each in a.experts)
    if len(classes) > 2:
        # A bias in log-odds is that of two classes.
        experts = tuple(replace(each, beliefs=replace(each.beliefs, bias=None)) for each in experts)
    return replace(a, classes=classes, experts=experts, prior=None, base_rate=None)


def _as_read(labels: list[str]) -> tuple[object, ...]:
    """Return labels as classes, in the order in which `read_forecasts` puts them."""
    from opinionpool.tables.read import read_forecasts

    rows = [{"event": "e", "expert": "x", "class": label, "probability": 1.0 / len(labels)} for label in labels]
    return read_forecasts({key: [row[key] for row in rows] for key in rows[0]}).classes


def _named(a: Assessment, own: Expert, value: object) -> Expert:
    """Expert `own` with the name `value`; an ArgumentError if it is empty, or another expert has it."""
    name = one_line(value, "a name")
    if not name:
        raise ArgumentError("an expert needs a name")
    if any(each.name == name and each.key != own.key for each in a.experts):
        raise ArgumentError(f"there is already an expert called {name!r}")
    return replace(own, name=name)


# A name with a number behind it, unlike "Expert 1" with a sign between them or a per cent sign.
_NUMBER = re.compile(r"^(.*?)(?:\s*[,;:=|\t]\s*([0-9][0-9.,]*)\s*(%?)|\s+([0-9][0-9.,]*)\s*(%))\s*$")


def _add(a: Assessment, action: Action) -> Assessment:
    """Assessment with one more expert for each line of text in `action`: a name, perhaps with a probability."""
    lines = [line for line in str(action.get("value", "")).splitlines() if line.strip()]
    if not lines:
        raise ArgumentError("type a name, or paste names, one in a line")
    if len(a.experts) + len(lines) > MOST_EXPERTS:
        raise ArgumentError(f"the page has room for {MOST_EXPERTS} experts; more belong in a file")
    for line in lines:
        name, forecast, found = line, None, _NUMBER.match(line)
        if found and a.binary:
            name = found[1]
            value = number(found[2] or found[4], f"the probability of {name.strip()!r}", 0.0, 100.0)
            forecast = (value / 100.0 if found[3] or found[5] or value > 1.0 else value,)
        new = Expert(1 + max((each.key for each in a.experts), default=0), "", forecast)
        a = replace(a, experts=(*a.experts, _named(a, new, name)))
    return a


def _remove(a: Assessment, action: Action) -> Assessment:
    own = a.expert(action.get("expert"))
    return replace(a, experts=tuple(each for each in a.experts if each is not own))


def _include(a: Assessment, action: Action) -> Assessment:
    """Assessment in which the expert whom `action` names by key gets a forecast, equal to the prior."""
    key = int(number(action.get("value"), "an expert", 0, 1e9))
    return a.with_expert(replace(a.expert(key), forecast=a.prior or uniform(a.classes)))


def _strict(what: str, p: tuple[float, ...] | None) -> tuple[float, ...] | None:
    if p is not None and not all(0 < x < 1 for x in p):
        raise ArgumentError(f"{what} must lie strictly between 0% and 100%")
    return p


def _shares(a: Assessment, old: tuple[float, ...] | None, action: Action, what: str) -> tuple[float, ...] | None:
    """Probabilities `old` with one class's set to that typed in `action`, others rescaled; None for an empty field."""
    if action.get("value") in {None, ""}:
        return None
    p = number(action["value"], f"{what} in per cent", 0.0, 100.0) / 100.0
    if a.binary:
        return (p,)
    k = len(a.classes)
    at = int(number(action.get("class"), "a class", 0, k - 1))
    before = [max(x, LEAST) for x in (old or (1.0 / k,) * k)]
    p = min(max(p, LEAST), 1.0 - (k - 1) * LEAST)
    rest = math.fsum(before) - before[at]
    return tuple(p if i == at else x * (1.0 - p) / rest for i, x in enumerate(before))


def _accurate(own: Expert, action: Action) -> Expert:
    unit = str(action.get("unit"))
    if unit not in UNITS:
        raise ArgumentError("there is no such way to say how good an expert is")
    value = number(action.get("value"), "how good an expert is", *UNITS[unit])
    given: dict[str, Any] = dict.fromkeys(ACCURACIES)
    return _believed(own, given | {unit: value})


def _believed(own: Expert, values: Mapping[str, float | None], worth: float | None = None) -> Expert:
    """Expert `own` with these `values` as beliefs, each worth `worth` events, by default as many as the old beliefs."""
    worth = worth or next((belief.worth for belief in own.beliefs.given.values()), WORTH)
    given: dict[str, Any] = {name: None if value is None else Belief(value, worth) for name, value in values.items()}
    return replace(own, beliefs=replace(own.beliefs, **given))


def _worth(a: Assessment, own: Expert, worth: float | None) -> Expert:
    """Return the expert `own` with beliefs that count as `worth` events, or without beliefs if `worth` is None."""
    if worth is None:
        return replace(own, beliefs=ExpertBeliefs())
    values = {name: old.value for name, old in own.beliefs.given.items()}
    if not values:
        features = a.features(own, a.common)
        values["auc"] = round(float(expected_auc(features.accuracy)), 2)
        values["calibration"] = float(f"{features.calibration:.3g}")
    return _believed(own, values, worth)


def _events(action: Action) -> float | None:
    """Return the number of events that a belief is to be worth, from `action`; None if the field is empty."""
    value = action.get("value")
    return {"": None, "inf": math.inf}[str(value)] if value in {"", "inf"} else number(value, "a worth", 1e-3, 1e9)


def _of(a: Assessment, action: Action, values: Mapping[str, float | None]) -> Assessment:
    return a.with_expert(_believed(a.expert(action.get("expert")), values))


def _correlation(a: Assessment, _: Action, value: float | None) -> Assessment:
    old = a.everyone.get("correlation")
    assert value is not None
    return replace(a, everyone=replace(a.everyone, correlation=Belief(value, WORTH if old is None else old.worth)))


def _correlation_worth(a: Assessment, action: Action) -> Assessment:
    worth, old = _events(action), a.everyone.get("correlation")
    new = None if worth is None else Belief(CORRELATION if old is None else old.value, worth)
    return replace(a, everyone=replace(a.everyone, correlation=new))


def _stakes(a: Assessment, **given: float | None) -> Assessment:
    stakes = replace(a.stakes, **given)
    if stakes.action == 0 or (stakes.threshold is not None and not 0 < stakes.threshold < 1):
        raise ArgumentError(
            "acting must cost something, and less than the loss that it prevents; else one should always or never act"
        )
    return replace(a, stakes=stakes)


def _panel(a: Assessment, action: Action) -> Assessment:
    """Assessment with the beliefs in the panel file that `action` has, and with experts whom only the file names."""
    try:
        given = tomllib.loads(str(action.get("value", "")))
    except (ValueError, RecursionError):
        raise ArgumentError("this is no panel file: opinionpool pool FILE --panel says what is wrong with it") from None
    try:
        return with_beliefs(a, beliefs_of_mapping(given))
    except OpinionPoolError as error:
        # What to write instead is the business of who wrote the file.
        raise ArgumentError(f"the panel file cannot be taken over: {str(error).partition(';')[0]}") from None


def with_beliefs(a: Assessment, beliefs: Beliefs) -> Assessment:
    """Assessment with `beliefs` in place of its own, and with experts whom only `beliefs` name."""
    everyone = replace(beliefs, experts={})
    experts = [replace(each, beliefs=beliefs.experts.get(each.name, ExpertBeliefs())) for each in a.experts]
    known, key = {each.name for each in experts}, max((each.key for each in experts), default=0)
    for name, own in beliefs.experts.items():
        if name not in known:
            key += 1
            experts.append(Expert(key, one_line(name, "a name"), None, own))
    if len(experts) > max(MOST_EXPERTS, len(a.experts)):
        raise ArgumentError(f"the page has room for {MOST_EXPERTS} experts, and these are {len(experts):,}")
    return replace(a, everyone=everyone, experts=tuple(experts))


class _Number(NamedTuple):
    """Control for a number: what it is called, its range, a function that stores it, and whether it may be empty."""

    what: str
    least: float
    most: float
    put: Callable[[Assessment, Action, float | None], Assessment]
    blank: bool = False


_NUMBERS: Mapping[str, _Number] = MappingProxyType(
    {
        # The control moves on a logarithmic scale, so that half and double are equally far from 1.
        "calibration": _Number(
            "calibration as a power of two", -3.0, 3.0,
            lambda a, action, x: _of(a, action, {"calibration": float(f"{2.0 ** (x or 0.0):.3g}")}),
        ),
        "bias": _Number("a bias in log-odds", -5.0, 5.0, lambda a, action, x: _of(a, action, {"bias": x})),
        "correlation": _Number("a correlation", 0.0, 0.99, _correlation),
        "action": _Number("what acting costs", 0.0, 1e15, lambda a, _, x: _stakes(a, action=x), blank=True),
        "loss": _Number("what not to act costs", 0.0, 1e15, lambda a, _, x: _stakes(a, loss=x), blank=True),
        "candidate_auc": _Number(
            "an AUC", *UNITS["auc"], lambda a, _, x: replace(a, candidate=replace(a.candidate, auc=x or 0.0))
        ),
        "candidate_correlation": _Number(
            "a correlation", 0.0, 0.99, lambda a, _, x: replace(a, candidate=replace(a.candidate, correlation=x or 0.0))
        ),
    }
)  # fmt: skip
# Actions on one expert: functions that return the changed expert.
_OF_EXPERTS: Mapping[str, Callable[[Assessment, Expert, Action], Expert]] = MappingProxyType(
    {
        "name": lambda a, own, action: _named(a, own, action.get("value")),
        "forecast": lambda a, own, action: replace(own, forecast=_shares(a, own.forecast, action, "a forecast")),
        "clear": lambda _a, own, _: replace(own, forecast=None),
        "accuracy": lambda _a, own, action: _accurate(own, action),
        "worth": lambda a, own, action: _worth(a, own, _events(action)),
    }
)
_ACTIONS: Mapping[str, Callable[[Assessment, Action], Assessment]] = MappingProxyType(
    {
        "question": _question,
        "assessor": lambda a, action: replace(a, assessor=one_line(action.get("value"), "the name of who assessed")),
        "blank": lambda _a, _: blank(),
        "outcomes": _outcomes,
        "add": _add,
        "remove": _remove,
        "include": _include,
        "prior": lambda a, action: replace(a, prior=_strict("a prior", _shares(a, a.prior, action, "a prior"))),
        "base_rate": lambda a, action: replace(
            a, base_rate=_strict("a base rate", _shares(a, a.base_rate, action, "a base rate"))
        ),
        "correlation_worth": _correlation_worth,
        "panel": _panel,
    }
)
