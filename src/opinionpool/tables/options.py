"""Options for reading a table, defined once for Python, the command line, files of options and printed commands.

Their kinds, help texts and the stages of reading that they affect are in ``options.toml``.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from opinionpool.arguments import brief, expect_type, labels_given, one_of
from opinionpool.errors import ArgumentError, Remedy
from opinionpool.findings import option_name, typed_options
from opinionpool.tables.roles import BETWEEN, KEYED, Columns, check_columns
from opinionpool.text import shown, suggestion, toml

if TYPE_CHECKING:
    import numpy as np

    from opinionpool.tables.classes import ClassOptions, NoOutcome
    from opinionpool.tables.units import NumberRules

# What numbers of an expert or column without a per cent sign are.
UNITS = ("percent", "fraction")

# Stages of reading a table, in their order.
STAGES = ("opening", "columns", "roles", "cells", "times")

# A command-line option in the text of a message, with its value.
_FLAG = re.compile(r"--([a-z][a-z-]*)(?: '([^']*)'| (?!-)(\S+))?")

Values: TypeAlias = Sequence[str]
Documented = TypeVar("Documented", bound=Callable[..., object])


@dataclass(frozen=True)
class Option:
    """Description of an option of `ReadOptions`, from ``options.toml``."""

    name: str
    help: str
    kind: str = "text"  # {"text", "flag", "list", "classes", "pairs"}: the options list and pairs may be repeated
    metavar: str | None = None  # placeholder of the value in the help text
    choices: Sequence[str] = ()
    stage: str = "cells"  # first of `STAGES` that the option affects
    flag: str | None = None  # name on the command line of an option that only `compare` has, as it is about scores

    @property
    def repeated(self) -> bool:
        """Whether the option may be given several times."""
        return self.kind in {"list", "pairs"}

    @property
    def typed(self) -> str:
        """Name of the option on the command line, without dashes."""
        return option_name(self.name, self.repeated)

    def value(self, given: Any) -> Any:  # noqa: ANN401 - of the type of the option
        """Return `given`, a value of the option, checked and in the type of the field."""
        if self.kind == "flag":
            given = bool(given) if type(given).__name__ == "bool_" else given
            expect_type(given, bool, self.name)
        elif self.kind in {"list", "classes"}:
            texts = () if given is None else (given,) if isinstance(given, str) else labels_given(given, self.name)
            given = tuple(map(str, texts))
        elif self.kind == "pairs":
            given = {} if given is None else given
        elif given is not None and self.choices:
            one_of(given, self.name, self.choices)
        return _CHECKS[self.name](given) if self.name in _CHECKS and given is not None else given

    def from_words(self, words: Sequence[str]) -> Any:  # noqa: ANN401 - of the type of the option
        """Return the option's value from `words`, one for each time that it is on the command line."""
        if self.kind == "classes":
            return _classes(words[0])
        return _pairs(words, str(self.metavar)) if self.kind == "pairs" else tuple(words)


def _units(units: Mapping[object, object]) -> dict[str, str]:
    expect_type(units, Mapping, "units")
    for name, unit in units.items():
        if unit not in UNITS:
            raise ArgumentError(f"a unit is {' or '.join(UNITS)}, and that of {shown(name)} is {shown(unit)}")
    return {str(name): str(unit) for name, unit in units.items()}


def _scales(given: object) -> dict[str, str]:
    from opinionpool.scales import scale_texts

    return scale_texts(given)


def _grade(value: object) -> str:
    from opinionpool.labels import label_text

    return label_text(value).strip()


def _probability(value: object) -> float:
    text = str(value).strip()
    try:
        p = float(text[:-1]) / 100.0 if text.endswith("%") else float(text)
    except ValueError:
        raise ArgumentError(f"silence is a probability such as 0.1 or 10%, and not {value!r}") from None
    if not 0.0 <= p <= 1.0:
        raise ArgumentError(f"silence is a probability from 0 to 1, and not {value!r}")
    return p


def _encoding(name: str) -> str:
    expect_type(name, str, "encoding")
    try:
        "".encode(name)
    except (LookupError, ValueError):
        raise ArgumentError(f"no text encoding is called {shown(name)}; cp1252 and utf-16 are usual") from None
    return name


def _dates(dates: str) -> str:
    from opinionpool.tables.times import ORDERS

    expect_type(dates, str, "dates")
    if dates not in ORDERS and "%" not in dates:
        raise ArgumentError(
            f"--dates can be dmy (days first), mdy (months first) or a format such as %d.%m.%Y, and not {dates!r}"
        )
    return dates


def _span(horizon: object) -> np.timedelta64:
    from opinionpool.tables.times import as_span

    return as_span(horizon, "a horizon")


def _condition(where: str) -> str:
    expect_type(where, str, "where")
    return _unicode([where])[0]


def _unicode(words: Sequence[str]) -> Sequence[str]:
    """Return `words`; raise an error if one has characters, such as lone surrogates, that UTF-8 cannot have."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise ArgumentError(f"{brief(word)} has characters that no text can have, so no table has them") from None
    return words


# Functions from a value of an option to the one that `ReadOptions` holds; they may raise an `ArgumentError`.
_CHECKS: dict[str, Callable[[Any], Any]] = {
    "columns": check_columns,
    "positive": str,
    "at_least": _grade,
    "units": _units,
    "scale": _scales,
    "dates": _dates,
    "missing_values": _unicode,
    "void_values": _unicode,
    "where": _condition,
    "encoding": _encoding,
    "silence": _probability,
    "horizon": _span,
}
# The options by their names in Python, in order.
OPTIONS: Mapping[str, Option] = {
    name: Option(name, **row)
    for name, row in tomllib.loads(
        files("opinionpool.tables").joinpath("options.toml").read_text(encoding="utf-8")
    ).items()
}


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a table of forecasts; ``options.toml`` says what each means.

    Raises
    ------
    ArgumentError
        If an option has a wrong type or an unknown value, or two options contradict each other.

    Examples
    --------
    >>> options = ReadOptions(percent=True, columns={"event": "race"})
    >>> options.revised({"columns": {"class": "party"}}).arguments()
    ['--column', 'event=race', '--column', 'class=party', '--percent']
    """

    columns: Columns = field(default_factory=dict)
    options: str | None = None
    positive: str | None = None
    classes: Values = ()
    at_least: str | None = None
    percent: bool = False
    units: Mapping[str, str] = field(default_factory=dict)
    scale: Mapping[str, str] = field(default_factory=dict)
    decimal: str | None = None
    dates: str | None = None
    duplicates: str | None = None
    as_of: Any = None  # a time in any form that is read, then a datetime64
    drop_incomplete: bool = False
    normalise: bool = False
    missing_values: Values = ()
    void_values: Values = ()
    where: str | None = None
    encoding: str | None = None
    include: Values = ()
    exclude: Values = ()
    merge_names: bool = False
    silence: float | None = None
    expert_from_name: bool = False
    horizon: Any = None  # a number of days or a text, then a timedelta64
    history: bool = False

    # Experts that a saved pool learned from, who need not be in the table, and their scales.
    known_experts: tuple[str, ...] = ()
    known_scales: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, option in OPTIONS.items():
            object.__setattr__(self, name, option.value(getattr(self, name)))
        if self.horizon is not None and self.history:
            raise ArgumentError("a horizon is one moment, and time-averaged scores are of all: give one of the two")
        if self.percent and "*" in self.scale:
            raise ArgumentError(
                "percent says that numbers are percentages, and scale that they are levels: leave one away, or name "
                "the judges who give levels, as in --scale judge_a=1-5 (in Python scale={'judge_a': '1-5'})"
            )
        if self.columns.get("order") and self.duplicates is None:
            object.__setattr__(self, "duplicates", "samples")
        if self.as_of is not None:
            from opinionpool.tables.times import as_time

            object.__setattr__(self, "as_of", as_time(self.as_of, "--as-of (as_of)", self.dates))

    @property
    def asked(self) -> ClassOptions:
        """What the user says of classes: the positive class, and all classes in order."""
        from opinionpool.tables.classes import ClassOptions

        return ClassOptions(self.positive, tuple(self.classes))

    @property
    def several(self) -> dict[str, tuple[str, ...]]:
        """Names of the columns that together (a composite key) identify an event or expert, by role."""
        return {role: of for role, of in self.columns.items() if isinstance(of, tuple) and role in KEYED}

    @property
    def keys(self) -> dict[str, str | tuple[str, ...] | None]:
        """Name of each role's column, None for no column; the names of a composite key are joined to one name."""
        return {**self.columns, **{role: BETWEEN.join(of) for role, of in self.several.items()}}  # type: ignore[dict-item]

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of all columns that are part of a composite key of events or experts."""
        return tuple(name for of in self.several.values() for name in of)

    @property
    def rules(self) -> NumberRules:
        """Rules for reading numbers: per cent or not, decimal mark, missing values, units and scales."""
        from opinionpool.scales import scales_given
        from opinionpool.tables.units import NumberRules

        scales = scales_given({**self.known_scales, **self.scale})
        return NumberRules(self.percent, self.decimal, tuple(self.missing_values), self.units, scales)

    @property
    def no_outcome(self) -> NoOutcome:
        """Words for a missing or void outcome; with scales of levels, n/a means missing, not void."""
        from opinionpool.tables.classes import NoOutcome

        missing = (*self.missing_values, *["n/a"] * bool(self.rules.scales))
        return NoOutcome.of(missing, self.void_values, [*self.classes, *filter(None, [self.positive])])

    def revised(self, remedy: Remedy) -> ReadOptions:
        """Return a copy changed by `remedy`: it adds to options that may repeat and to `where`, and replaces others."""
        changes: dict[str, Any] = {}
        for name, value in remedy.items():
            kind, before = OPTIONS[name].kind, getattr(self, name)
            if kind == "pairs":
                changes[name] = {**before, **value}  # type: ignore[dict-item] # a mapping
            elif kind == "list":
                changes[name] = tuple(dict.fromkeys((*before, *value)))  # type: ignore[misc] # a sequence
            else:
                changes[name] = f"({before}) and {value}" if name == "where" and before else value
        return replace(self, **changes)

    def arguments(self) -> list[str]:
        """Return the options as words of a command line."""
        return typed_options(self.given())

    def given(self) -> dict[str, Any]:
        """Options that are not at their default, by name; those on scores (horizon, history) are left out."""
        values = {name: getattr(self, name) for name, option in OPTIONS.items() if option.flag is None}
        return {
            name: of for name, of in values.items() if of or not (of is None or isinstance(of, bool | tuple | dict))
        }

    def toml(self, outcomes: str | None = None) -> str:
        """Return the options as text of an options file; `outcomes` is a table's path relative to the file."""
        given: dict[str, Any] = {} if outcomes is None else {"outcomes": outcomes}
        given |= {OPTIONS[name].typed: value for name, value in self.given().items()}
        if "as-of" in given:
            given["as-of"] = self.as_of.item().isoformat()
        if "column" in given:
            given["column"] = {role: name or "" for role, name in self.columns.items()}
        return toml(given)


def first_stage(remedy: Remedy) -> int:
    """Position in `STAGES` of the first stage of reading that `remedy` affects; 0 if the file must be opened again."""
    columns: Any = remedy.get("columns", {})
    if any(isinstance(columns.get(role), tuple) for role in KEYED):
        # The columns of a composite key are joined where the file is opened.
        return 0
    return min(STAGES.index(OPTIONS[name].stage) for name in remedy)


def in_python(text: str) -> str:
    """Return how the command-line options in a message are written in Python, each once; "" if there are none.

    >>> in_python("say --scale gpt=1-5, --percent or --exclude 'no judge'; --column ROLE=NAME gives a role")
    "In Python: scale={'gpt': '1-5'}, percent=True, exclude=['no judge'], columns={'ROLE': 'NAME'}"
    """
    options, found = {option.typed: option for option in OPTIONS.values()}, dict[str, str]()
    for typed, quoted, plain in _FLAG.findall(text):
        option, value = options.get(typed), quoted or plain.rstrip(".,;:)")
        if option is not None and option.name not in found and (value or option.kind == "flag"):
            key, sign, of = value.partition("=") if option.name == "columns" else value.rpartition("=")
            given = {"flag": True, "list": [value], "pairs": {key: of or None} if sign else value}
            found[option.name] = f"{option.name}={given.get(option.kind, value)!r}"
    return f"In Python: {', '.join(found.values())}" if found else ""


def options_given(given: Mapping[str, Any]) -> ReadOptions:
    """Return `ReadOptions` from the options in Python, by name; an ArgumentError for an unknown name."""
    for name in given:
        if name not in OPTIONS:
            near = suggestion(name, list(OPTIONS), "there are")
            raise ArgumentError(f"no option of reading is called {shown(name)}; {near}")
    return ReadOptions(**given)


def documented(function: Documented) -> Documented:
    """Return `function` with {options} in its docstring replaced by the help texts of all options."""
    kinds = {"flag": "bool, default False", "pairs": "mapping, optional"}
    kinds |= dict.fromkeys(("list", "classes"), "sequence, optional")
    lines = []
    for option in OPTIONS.values():
        choices = ", ".join(f'"{word}"' for word in option.choices)
        kind = f"{{{choices}}}, optional" if choices else kinds.get(option.kind, "optional")
        lines += [f"    {option.name} : {kind}", f"        {option.help.replace(' Repeatable.', '')}"]
    if function.__doc__:
        function.__doc__ = function.__doc__.replace("    {options}", "\n".join(lines))
    return function


def read_options(path: str) -> dict[str, Any]:
    """Options in a TOML file as arguments of `ReadOptions`, and `outcomes`, the path of a table, if given."""
    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ArgumentError(f"{path} cannot be read as a file of options: {reason}") from None
    options = [option for option in OPTIONS.values() if option.flag is None]
    names = {option.typed: option.name for option in options} | {"outcomes": "outcomes"}
    names |= {option.name.replace("_", "-"): option.name for option in options}
    given: dict[str, Any] = {}
    for key, value in found.items():
        name = names.get(key.replace("_", "-"))
        if name is None:
            near = suggestion(key, sorted(names), "there are")
            raise ArgumentError(f"{path}: no option of reading is called {key!r}; {near}")
        columns = name == "columns" and isinstance(value, dict)
        given[name] = {role: of or None for role, of in value.items()} if columns else value
    try:
        ReadOptions(**{name: value for name, value in given.items() if name != "outcomes"})
        if "outcomes" in given:
            expect_type(given["outcomes"], str, "outcomes")
            given["outcomes"] = os.path.join(os.path.dirname(path), given["outcomes"])
    except ArgumentError as error:
        raise ArgumentError(f"{path}: {error}") from None
    return given


def _classes(text: str) -> tuple[str, ...]:
    """Return the classes in a text, separated by commas; a class with a comma stands in double quotes."""
    import csv

    found = tuple(each.strip() for each in next(csv.reader([text], skipinitialspace=True), []))
    if len(found) < 2 or "" in found or len(set(found)) < len(found):
        raise ArgumentError(f"two or more different classes between commas are wanted, not {text!r}")
    return found


def _pairs(words: Sequence[str], form: str) -> dict[str, Any]:
    """Values by name from words of the `form` NAME=VALUE: a tuple if a name is repeated, None for an empty value.

    The name of a word of the form [NAME=]VALUE is "*" if it has none.
    """
    found: dict[str, list[str]] = {}
    for word in words:
        name, sign, value = word.partition("=") if form.startswith("ROLE") else word.rpartition("=")
        if form.startswith("[") and not sign:
            name, sign = "*", "="
        if not sign or not name.strip():
            raise ArgumentError(f"{word!r} is not of the form {form}")
        found.setdefault(name.strip(), []).append(value.strip())
    for name, values in found.items():
        if len(values) > 1 and "" in values:
            raise ArgumentError(f"{name} is given no column, and one too")
    return {name: (values[0] or None) if len(values) == 1 else tuple(values) for name, values in found.items()}
