"""What the controls of the page do: each move makes a new assessment of the old one."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias

from opinionpool.analysis.value import expected_auc
from opinionpool.errors import ArgumentError
from opinionpool.learning.beliefs import WORTH, Belief, Beliefs, ExpertBeliefs, beliefs_of_mapping
from opinionpool.learning.prior import ACCURACY, CALIBRATION, CORRELATION
from opinionpool.page.assessment import (
    ACCURACIES,
    MOST_CLASSES,
    MOST_EXPERTS,
    Assessment,
    Candidate,
    Expert,
    Stakes,
    number,
    one_line,
)

# What a control sends: `do` names the move, `value` is what it says, `expert` and `class` whom it is about.
Move: TypeAlias = Mapping[str, Any]
# The ways to say how good an expert is that the page offers, and their ranges.
UNITS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"auc": (0.51, 0.99), "hit_rate": (0.51, 0.99), "score": (0.01, 0.95)}
)
# What an assessment may be worth, in resolved events.
WORTHS = (5, 10, 20, 50, 100, 200)
# Classes keep at least this probability when another one is set.
LEAST = 1e-4


def moved(assessment: Assessment, move: Move) -> Assessment:
    """The assessment after a move.

    Raises
    ------
    OpinionPoolError
        If it cannot be made; its message says why.
    """
    act = _MOVES.get(str(move.get("do")))
    if act is None:
        raise ArgumentError("the page asked for something that this server does not know; load it again")
    return act(assessment, move)


def _question(a: Assessment, move: Move) -> Assessment:
    text = one_line(move.get("value"), "a question")
    if not text:
        raise ArgumentError("a question needs a text, by which the files that you take away name it")
    return replace(a, question=text)


def _assessor(a: Assessment, move: Move) -> Assessment:
    return replace(a, assessor=one_line(move.get("value"), "the name of who assessed"))


def _outcomes(a: Assessment, move: Move) -> Assessment:
    """Other classes; forecasts about the old ones are dropped with them."""
    labels = [one_line(part, "an outcome") for part in str(move.get("value", "")).split(",")]
    labels = [label for label in labels if label]
    if len(labels) > MOST_CLASSES or len(set(labels)) < len(labels):
        raise ArgumentError(f"outcomes are up to {MOST_CLASSES} different names, separated by commas")
    classes = _as_read(labels) if len(labels) > 2 else (0, 1)
    if len(labels) in {1, 2}:
        raise ArgumentError("name three or more outcomes, separated by commas, or none for yes and no")
    even = (0.5,) if len(classes) == 2 else (1.0 / len(classes),) * len(classes)
    experts = tuple(replace(each, forecast=None) for each in a.experts)
    if len(classes) > 2:
        # A bias in log-odds is that of two classes.
        experts = tuple(replace(each, beliefs=replace(each.beliefs, bias=None)) for each in experts)
    return replace(a, classes=classes, experts=experts, prior=even, base_rate=None)


def _as_read(labels: list[str]) -> tuple[object, ...]:
    """The classes in the order in which a file about them is read."""
    from opinionpool.tables.read import read_forecasts

    rows = [{"event": "e", "expert": "x", "class": label, "probability": 1.0 / len(labels)} for label in labels]
    return read_forecasts({key: [row[key] for row in rows] for key in rows[0]}).classes


def _name(a: Assessment, move: Move) -> Assessment:
    own, name = a.expert(move.get("expert")), one_line(move.get("value"), "a name")
    _check_name(a, name, own.key)
    return a.with_expert(replace(own, name=name))


def _check_name(a: Assessment, name: str, key: int | None = None) -> None:
    if not name:
        raise ArgumentError("an expert needs a name")
    if any(each.name == name and each.key != key for each in a.experts):
        raise ArgumentError(f"there is already an expert called {name!r}")


# A name with a number behind it, unlike "Expert 1" with a sign between them or a per cent sign.
_NUMBER = re.compile(r"^(.*?)(?:\s*[,;:=|\t]\s*([0-9][0-9.,]*)\s*(%?)|\s+([0-9][0-9.,]*)\s*(%))\s*$")


def _add(a: Assessment, move: Move) -> Assessment:
    """Experts by their names, one in a line, each with a probability behind it if there is one; nothing is assessed."""
    lines = [line for line in str(move.get("value", "")).splitlines() if line.strip()]
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
        text = one_line(name, "a name")
        _check_name(a, text)
        key = 1 + max((each.key for each in a.experts), default=0)
        a = replace(a, experts=(*a.experts, Expert(key, text, forecast)))
    return a


def _remove(a: Assessment, move: Move) -> Assessment:
    own = a.expert(move.get("expert"))
    return replace(a, experts=tuple(each for each in a.experts if each is not own))


def _forecast(a: Assessment, move: Move) -> Assessment:
    own = a.expert(move.get("expert"))
    return a.with_expert(replace(own, forecast=_shares(a, own.forecast, move, "a forecast")))


def _clear(a: Assessment, move: Move) -> Assessment:
    """An expert who gives no forecast on this event."""
    return a.with_expert(replace(a.expert(move.get("expert")), forecast=None))


def _include(a: Assessment, move: Move) -> Assessment:
    """An expert who gives one after all, beginning at the prior."""
    key = int(number(move.get("value"), "an expert", 0, 1e9))
    k = len(a.classes)
    start = a.prior or ((0.5,) if k == 2 else (1.0 / k,) * k)
    return a.with_expert(replace(a.expert(key), forecast=start))


def _prior(a: Assessment, move: Move) -> Assessment:
    return replace(a, prior=_strict(_shares(a, a.prior, move, "a prior"), "a prior"))


def _base_rate(a: Assessment, move: Move) -> Assessment:
    return replace(a, base_rate=_strict(_shares(a, a.base_rate, move, "a base rate"), "a base rate"))


def _strict(p: tuple[float, ...] | None, what: str) -> tuple[float, ...] | None:
    if p is not None and not all(0 < x < 1 for x in p):
        raise ArgumentError(f"{what} must lie strictly between 0% and 100%")
    return p


def _shares(a: Assessment, old: tuple[float, ...] | None, move: Move, what: str) -> tuple[float, ...] | None:
    """Probabilities after one was set in per cent; where there are more than two, the others keep their ratios."""
    if move.get("value") in {None, ""}:
        return None
    p = number(move["value"], f"{what} in per cent", 0.0, 100.0) / 100.0
    if a.binary:
        return (p,)
    k = len(a.classes)
    at = int(number(move.get("class"), "a class", 0, k - 1))
    before = [max(x, LEAST) for x in (old or (1.0 / k,) * k)]
    p = min(max(p, LEAST), 1.0 - (k - 1) * LEAST)
    rest = math.fsum(before) - before[at]
    return tuple(p if i == at else x * (1.0 - p) / rest for i, x in enumerate(before))


def _accuracy(a: Assessment, move: Move) -> Assessment:
    unit = str(move.get("unit"))
    if unit not in UNITS:
        raise ArgumentError("there is no such way to say how good an expert is")
    value = number(move.get("value"), "how good an expert is", *UNITS[unit])
    own = a.expert(move.get("expert"))
    given: dict[str, Any] = dict.fromkeys(ACCURACIES)
    given[unit] = Belief(value, _worth_of(own))
    return a.with_expert(replace(own, beliefs=replace(own.beliefs, **given)))


def _calibration(a: Assessment, move: Move) -> Assessment:
    """The control moves on a logarithmic scale, so that half and double are equally far from 1."""
    power = number(move.get("value"), "calibration as a power of two", -3.0, 3.0)
    return _feature(a, move, "calibration", float(f"{2.0**power:.3g}"))


def _bias(a: Assessment, move: Move) -> Assessment:
    return _feature(a, move, "bias", number(move.get("value"), "a bias in log-odds", -5.0, 5.0))


def _feature(a: Assessment, move: Move, feature: str, value: float) -> Assessment:
    own = a.expert(move.get("expert"))
    given: dict[str, Any] = {feature: Belief(value, _worth_of(own))}
    return a.with_expert(replace(own, beliefs=replace(own.beliefs, **given)))


def _worth_of(expert: Expert) -> float:
    """What the assessments of one expert are worth, in events."""
    return next((belief.worth for belief in expert.beliefs.given.values()), WORTH)


def _worth(a: Assessment, move: Move) -> Assessment:
    own, worth = a.expert(move.get("expert")), _events(move)
    if worth is None:
        return a.with_expert(replace(own, beliefs=ExpertBeliefs()))
    if not own.beliefs.given:
        start = ExpertBeliefs(
            auc=Belief(round(float(expected_auc(ACCURACY)), 2), worth), calibration=(CALIBRATION, worth)
        )
        return a.with_expert(replace(own, beliefs=start))
    given: dict[str, Any] = {name: Belief(old.value, worth) for name, old in own.beliefs.given.items()}
    return a.with_expert(replace(own, beliefs=replace(own.beliefs, **given)))


def _events(move: Move) -> float | None:
    """A worth; None to leave it to the data and to what is assumed of any panel."""
    value = move.get("value")
    if value == "":
        return None
    if value == "inf":
        return math.inf
    return number(value, "a worth in events", 1e-3, 1e9)


def _correlation(a: Assessment, move: Move) -> Assessment:
    value = number(move.get("value"), "a correlation", 0.0, 0.99)
    old = a.everyone.get("correlation")
    return replace(a, everyone=replace(a.everyone, correlation=Belief(value, WORTH if old is None else old.worth)))


def _correlation_worth(a: Assessment, move: Move) -> Assessment:
    worth, old = _events(move), a.everyone.get("correlation")
    new = None if worth is None else Belief(CORRELATION if old is None else old.value, worth)
    return replace(a, everyone=replace(a.everyone, correlation=new))


def _action(a: Assessment, move: Move) -> Assessment:
    value = number(move.get("value"), "what acting costs", 0.0, 1e15)
    return replace(a, stakes=_checked(Stakes(value, a.stakes.loss)))


def _loss(a: Assessment, move: Move) -> Assessment:
    value = number(move.get("value"), "what it costs not to have acted", 0.0, 1e15)
    return replace(a, stakes=_checked(Stakes(a.stakes.action, value)))


def _checked(stakes: Stakes) -> Stakes:
    if not 0 < stakes.action < stakes.loss:
        raise ArgumentError(
            "acting must cost something, and less than the loss that it prevents; else one should always or never act"
        )
    return stakes


def _candidate_auc(a: Assessment, move: Move) -> Assessment:
    value = number(move.get("value"), "an AUC", *UNITS["auc"])
    return replace(a, candidate=replace(a.candidate, auc=value))


def _candidate_correlation(a: Assessment, move: Move) -> Assessment:
    value = number(move.get("value"), "a correlation", 0.0, 0.99)
    return replace(a, candidate=Candidate(a.candidate.auc, value))


def _panel(a: Assessment, move: Move) -> Assessment:
    """The beliefs of a panel file, in place of those there are; experts that it names are added."""
    try:
        given = tomllib.loads(str(move.get("value", "")))
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"this is not TOML: {error}; a line looks like calibration = 0.9") from None
    return with_beliefs(a, beliefs_of_mapping(given))


def with_beliefs(a: Assessment, beliefs: Beliefs) -> Assessment:
    """The assessment with these beliefs in place of its own; experts whom only they name are added.

    Raises
    ------
    ArgumentError
        If there are too many.
    """
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


_MOVES: Mapping[str, Callable[[Assessment, Move], Assessment]] = MappingProxyType(
    {
        "question": _question,
        "assessor": _assessor,
        "outcomes": _outcomes,
        "name": _name,
        "add": _add,
        "remove": _remove,
        "forecast": _forecast,
        "clear": _clear,
        "include": _include,
        "prior": _prior,
        "base_rate": _base_rate,
        "accuracy": _accuracy,
        "calibration": _calibration,
        "bias": _bias,
        "worth": _worth,
        "correlation": _correlation,
        "correlation_worth": _correlation_worth,
        "action": _action,
        "loss": _loss,
        "candidate_auc": _candidate_auc,
        "candidate_correlation": _candidate_correlation,
        "panel": _panel,
    }
)
