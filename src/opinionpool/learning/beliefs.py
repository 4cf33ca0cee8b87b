"""Beliefs of a decision maker about a panel before any outcome, each with its worth in resolved events.

A belief of worth n counts as n resolved events on which the panel was found to be as believed, in addition to the
assumptions about any panel (`opinionpool.learning.prior`), which also hold for features without a belief.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from opinionpool.arguments import file_path, one_of
from opinionpool.errors import ArgumentError, OpinionPoolError
from opinionpool.learning.constants import WORTH
from opinionpool.model.accuracy import ELICITED
from opinionpool.text import shown, suggestion


@dataclass(frozen=True)
class Belief:
    """A believed value, and its worth: the number of resolved events that the belief counts as.

    Attributes
    ----------
    value : float
    worth : float, default 20
        Above 0; infinite for a value that is assessed, and not learned.

    Raises
    ------
    ArgumentError
        If value or worth is not a number, or the worth is not above 0.
    """

    value: float
    worth: float = WORTH

    def __post_init__(self) -> None:
        for name in ("value", "worth"):
            object.__setattr__(self, name, _number(getattr(self, name), f"a {name}"))
        if not self.worth > 0:
            raise ArgumentError(
                f"a worth must be above 0 events, and it is {self.worth:g}; leave out a belief that is worth nothing, "
                "or say inf for one that nothing can change"
            )

    @classmethod
    def of(cls, given: object, what: str) -> Belief:
        """A belief from a number, a pair (value, worth) or a mapping with these keys; `what` names it in errors."""
        try:
            if isinstance(given, Belief):
                return given
            if isinstance(given, Mapping):
                _check_keys(given, ("value", "worth"))
                if "value" not in given:
                    raise ArgumentError("there is a worth and no value; write { value = 0.6, worth = 20 }")
                return cls(**given)
            if isinstance(given, tuple | list):
                if len(given) != 2:
                    raise ArgumentError(f"a pair of value and worth has two numbers, and this has {len(given)}")
                return cls(*given)
            return cls(_number(given, "a belief"))
        except ArgumentError as error:
            raise type(error)(f"{what}: {error}") from None

    def __str__(self) -> str:
        return f"{self.value:g} (assessed)" if math.isinf(self.worth) else f"{self.value:g} (worth {self.worth:g})"


# Bytes; what people believe of a thousand experts takes a tenth of it.
LARGEST = 1_000_000
# What stands for a belief: a number, a pair (value, worth), or a mapping with these keys.
Given: TypeAlias = Belief | float | tuple[float, float] | Mapping[str, float] | None


class _Range(NamedTuple):
    """Possible values of a feature (such as the bias): above `least` (from `least` on, if `closed`), up to `most`."""

    least: float
    most: float
    closed: bool = False

    def check(self, what: str, value: float) -> None:
        inside = self.least <= value if self.closed else self.least < value
        if not (inside and value <= self.most):
            raise ArgumentError(
                f"{what}: a value must be {'at least' if self.closed else 'above'} {self.least:g} and at most "
                f"{self.most:g}, and it is {value:g}{_as_share(value) if self.most == 1.0 else ''}"
            )


_RANGES: Mapping[str, _Range] = MappingProxyType(
    {
        "bias": _Range(-20.0, 20.0, closed=True),
        "calibration": _Range(0.01, 100.0, closed=True),
        "relative_accuracy": _Range(1e-4, 1e4, closed=True),
        "accuracy": _Range(1e-4, 100.0, closed=True),
        "correlation": _Range(-1.0, 1.0),
        "extremes": _Range(0.1, math.inf, closed=True),
    }
)
# Ways of saying how accurate somebody is, of which one is enough.
_ACCURACIES = ("accuracy", *ELICITED, "relative_accuracy")


@dataclass(frozen=True, kw_only=True)
class ExpertBeliefs:
    """Beliefs about one expert; for a feature that is not given, the belief about the panel holds.

    Parameters
    ----------
    bias : float, Belief, pair or mapping, optional
        b in log-odds (paper, equation 6); only 0 for more than two classes.
    calibration : same, optional
        kappa (equation 13): 1 if forecasts can be taken as they are, below 1 if they are overconfident.
    relative_accuracy : same, optional
        m (equation 16), relative to an expert of whom no accuracy is given by name.
    accuracy, auc, score, hit_rate : same, optional
        The absolute accuracy mu* (equation 15), or a measure of forecasts with bias and calibration corrected: area
        under the ROC curve, expected normalised log score (equation 26), or share of events whose outcome is the
        likelier one, the last two on events of probability 1/2. At most one of these four and `relative_accuracy`.

    Raises
    ------
    ArgumentError, PanelError
        If a value is outside its range, or accuracy is given in two ways.
    """

    bias: Given = None
    calibration: Given = None
    relative_accuracy: Given = None
    accuracy: Given = None
    auc: Given = None
    score: Given = None
    hit_rate: Given = None

    def __post_init__(self) -> None:
        for name in _names(self):
            given = getattr(self, name)
            if given is None:
                continue
            belief = Belief.of(given, name)
            object.__setattr__(self, name, belief)
            if name in _RANGES:
                _RANGES[name].check(name, belief.value)
            else:
                _converted(name, belief)
        accuracies = [name for name in _ACCURACIES if getattr(self, name) is not None]
        if len(accuracies) > 1:
            raise ArgumentError(
                f"{accuracies[0]} and {accuracies[1]} both say how accurate an expert is; keep one of them"
            )

    def get(self, name: str) -> Belief | None:
        """Return the belief about the feature `name`, such as "bias" or "calibration"; None if there is none."""
        if type(name) is not str or name not in _names(self):
            one_of(name, "name", _names(self))
        found = getattr(self, name)
        return found if isinstance(found, Belief) else None

    def absolute(self) -> Belief | None:
        """Belief about the absolute accuracy, converted from the measure that was given; None if none was given."""
        own = self.get("accuracy")
        if own is not None:
            return own
        for name in ELICITED:
            belief = self.get(name)
            if belief is not None:
                return _converted(name, belief)
        return None

    @property
    def given(self) -> dict[str, Belief]:
        """Beliefs that were given, by name of the feature, such as "bias"."""
        found = ((name, self.get(name)) for name in _names(self))
        return {name: belief for name, belief in found if belief is not None}

    def __str__(self) -> str:
        return ", ".join(f"{name.replace('_', ' ')} {belief}" for name, belief in self.given.items())


@dataclass(frozen=True, kw_only=True)
class Beliefs(ExpertBeliefs):
    """Beliefs about a panel, and about experts by name; ``Beliefs()`` has the defaults for any panel.

    Each belief is a number, which is worth 20 events, a pair (value, worth) or ``{"value": value, "worth": worth}``.
    With everything that matters (calibration, accuracies, correlation and bias) assessed at worth inf, nothing is
    learned, and the pool is that of `Panel.from_features`.

    Parameters
    ----------
    bias, calibration, accuracy, auc, score, hit_rate : float, Belief, pair or mapping, optional
        Belief about every expert of whom nothing else is given by name; see `ExpertBeliefs`.
    relative_accuracy : same, optional
        Only 1 makes sense for all: they are equally accurate.
    correlation : same, optional
        The common correlation of the experts' contrasts within an outcome, above -1/(N-1).
    extremes : float, optional
        Limit in log-odds beyond the prior to which extreme forecasts are moderated (`opinionpool.model.contrasts`);
        inf moderates nothing. The limit is learned, unless it is given.
    experts : mapping of str to ExpertBeliefs, or to mapping, optional

    Raises
    ------
    ArgumentError, PanelError
        If a value is outside its range, or accuracy is given in two ways.

    Examples
    --------
    >>> beliefs = Beliefs(correlation=(0.6, 50), experts={"alice": {"auc": 0.8}})
    >>> print(beliefs)
    correlation 0.6 (worth 50); 'alice': auc 0.8 (worth 20)
    """

    correlation: Given = None
    extremes: Given = None
    experts: Mapping[str, ExpertBeliefs] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "extremes", _assessed("extremes", self.extremes))
        super().__post_init__()
        relative = self.get("relative_accuracy")
        if relative is not None and relative.value != 1.0:
            raise ArgumentError(
                f"relative_accuracy: of all experts it can only be 1, and it is {relative.value:g}; give it by expert"
            )
        object.__setattr__(self, "experts", MappingProxyType(_of_experts(self.experts)))

    @property
    def any_panel(self) -> bool:
        """Whether no belief is given, so that only the defaults for any panel apply."""
        return not self.given and not any(own.given for own in self.experts.values())

    def to_dict(self) -> dict[str, Any]:
        """Beliefs as a dictionary of plain values, from which `beliefs_of_mapping` makes them again."""
        return _plain(self) | {"experts": {name: _plain(own) for name, own in self.experts.items()}}

    def __reduce__(self) -> tuple[object, ...]:
        return beliefs_of_mapping, (self.to_dict(),)

    def __str__(self) -> str:
        parts = [super().__str__()] if self.given else []
        parts += [f"{shown(name)}: {own}" for name, own in self.experts.items() if own.given]
        return "; ".join(parts)


def beliefs_of_mapping(given: Mapping[str, Any]) -> Beliefs:
    """Return beliefs from nested mappings, such as the content of a TOML file.

    Raises
    ------
    ArgumentError, PanelError
        If a key is unknown, or a value breaks a rule.

    Examples
    --------
    >>> print(beliefs_of_mapping({"calibration": 0.9, "experts": {"bob": {"bias": {"value": 0.2, "worth": 5}}}}))
    calibration 0.9 (worth 20); 'bob': bias 0.2 (worth 5)
    """
    _check_keys(given, tuple(each.name for each in fields(Beliefs)))
    return Beliefs(**given)


def read_beliefs(path: str | os.PathLike[str]) -> Beliefs:
    """Return the beliefs in a TOML file.

    An example of such a file ::

        correlation = { value = 0.6, worth = 20 }
        calibration = 0.9

        [experts.alice]
        relative_accuracy = 2.0
        bias = 0.2

    The keys are those of `Beliefs`, and below ``experts`` those of `ExpertBeliefs`.

    Raises
    ------
    ArgumentError, PanelError
        If the file is not TOML, has an unknown key, or a value that breaks a rule.
    OSError
        If the file cannot be read.
    """
    # Most beliefs are in no file.
    import tomllib

    name = file_path(path)
    with open(name, "rb") as file:
        raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise ArgumentError(f"{name}: a file of beliefs has at most {LARGEST:,} bytes, and this has more")
    try:
        given = tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ArgumentError(f"{name}, line {line}: a TOML file is UTF-8, and this is not; save it as UTF-8") from None
    except RecursionError:
        raise ArgumentError(f"{name}: brackets are nested too deeply; beliefs need one pair at most") from None
    except ValueError as error:
        raise ArgumentError(f"{name}: this is not TOML: {error}; {_toml_advice(raw, str(error))}") from None
    try:
        return beliefs_of_mapping(given)
    except OpinionPoolError as error:
        raise type(error)(f"{name}: {error}") from None


def _toml_advice(raw: bytes, error: str) -> str:
    """Advice on how to correct the line of a file that is not TOML; `error` is the parser's message."""
    found = re.search(r"at line (\d+)", error)
    lines = raw.decode("utf-8-sig").splitlines()
    line = lines[int(found[1]) - 1].strip() if found and int(found[1]) <= len(lines) else ""
    header = re.fullmatch(r"\[experts\.([^\"']+)\]", line)
    if header:
        return f'a name with a space or a special letter stands in quotes: [experts."{header[1].strip()}"]'
    share = re.search(r"=\s*(\d+(?:\.\d+)?)\s*%", line)
    if share:
        return f"write {float(share[1]) / 100:g} for {share[1]}%"
    return "a line looks like calibration = 0.9"


def _assessed(name: str, given: object) -> Belief | None:
    """Return `given` as a belief of infinite worth, which outcomes do not change; None if no value is given."""
    if given is None:
        return None
    belief = Belief.of(given, name)
    if isinstance(given, Belief | tuple | list) or (isinstance(given, Mapping) and "worth" in given):
        if not math.isinf(belief.worth):
            raise ArgumentError(
                f"{name}: are assessed, at worth inf, or left out and learned; their worth cannot be {belief.worth:g}"
            )
        return belief
    return Belief(belief.value, math.inf)


def _of_experts(given: object) -> dict[str, ExpertBeliefs]:
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"experts: must be beliefs by expert name, as in [experts.alice], and it is {_described(given)}"
        )
    return {str(name): _of_expert(str(name), own) for name, own in given.items()}


def _of_expert(name: str, given: object) -> ExpertBeliefs:
    if isinstance(given, ExpertBeliefs) and not isinstance(given, Beliefs):
        return given
    what = f"experts.{name if name.isprintable() and 0 < len(name) <= 60 else shown(name)}"
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"{what}: must be beliefs by their names, as in relative_accuracy = 2.0, and it is {_described(given)}"
        )
    try:
        _check_keys(given, tuple(each.name for each in fields(ExpertBeliefs)))
        return ExpertBeliefs(**given)
    except OpinionPoolError as error:
        raise type(error)(f"{what}: {error}") from None


def _names(beliefs: ExpertBeliefs) -> tuple[str, ...]:
    kind: Any = type(beliefs)  # mypy takes no class for hashable
    return _names_of(kind)


@cache
def _names_of(kind: Any) -> tuple[str, ...]:  # noqa: ANN401 - a class of beliefs
    return tuple(each.name for each in fields(kind) if each.name != "experts")


def _plain(beliefs: ExpertBeliefs) -> dict[str, Any]:
    return {name: {"value": own.value, "worth": own.worth} for name, own in beliefs.given.items()}


def _converted(name: str, belief: Belief) -> Belief:
    """Belief about the accuracy mu* (paper, equation 15), from one about the measure `name`, such as an AUC."""
    try:
        return Belief(ELICITED[name](belief.value), belief.worth)
    except OpinionPoolError as error:
        raise type(error)(f"{name}: {error}{_as_share(belief.value)}") from None


def _as_share(value: float) -> str:
    """Advice for an error about a `value` that looks like a percentage; else an empty text."""
    return f"; if {value:g}% is meant, write {value / 100:g}" if 1 < value <= 100 else ""


def _number(value: object, what: str) -> float:
    """Return `value` as a float; an ArgumentError, which names `what`, for NaN, truth values and text."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(f"{what} must be a number, and it is {_described(value)}; write 0.6, without quotes")
    try:
        number = float(value)
    except OverflowError:
        raise ArgumentError(f"{what} must be a number of usual size, and it has hundreds of digits") from None
    if math.isnan(number):
        raise ArgumentError(f"{what} must be a number, and it is nan; leave out what is not known")
    return number


def _described(value: object) -> str:
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    return shown(value) if isinstance(value, str) else str(value)[:60].lower()


def _check_keys(given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key, value in given.items():
        if key in known:
            continue
        if key == "prior":
            raise ArgumentError(
                "the prior is no belief about experts; give it as --prior 0.3 (in Python prior=), or in a column prior"
            )
        if key == "worth":
            raise ArgumentError(
                "worth belongs to a belief, as in auc = { value = 0.8, worth = 50 }: it says how many resolved events "
                "that belief counts for"
            )
        meant = suggestion(str(key), known, "there are")
        if isinstance(value, Mapping) and meant.startswith("there are"):
            quoted = f'[experts."{key}"]' if "experts" in known else 'in quotes if it has a dot, as [experts."J. Doe"]'
            meant = f"if it is an expert, write its name {quoted}"
        raise ArgumentError(f"there is no key {shown(str(key))}; {meant}")
