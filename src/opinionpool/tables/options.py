"""Options for reading a table, defined once for Python, the command line, files of options and printed commands."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from opinionpool.arguments import brief, expect_type, labels_given, one_of
from opinionpool.errors import ArgumentError, Remedy
from opinionpool.findings import option_name, typed_options
from opinionpool.tables.roles import BETWEEN, KEYED, Columns, check_columns
from opinionpool.text import shown, suggestion, toml

if TYPE_CHECKING:
    import numpy as np

    from opinionpool.tables.classes import ClassOptions, NoOutcome
    from opinionpool.tables.units import NumberRules

# Rules for which of several forecasts by one expert on one event counts.
RULES = ("last", "last-row", "mean", "time-weighted", "samples")
# What numbers of an expert or column without a per cent sign are.
UNITS = ("percent", "fraction")

# Stages of reading a table, in their order.
STAGES = ("opening", "columns", "roles", "cells", "times", "choice")

# A command-line option in the text of a message, with its value.
_FLAG = re.compile(r"--([a-z][a-z-]*)(?: '([^']*)'| (?!-)(\S+))?")

Values: TypeAlias = Sequence[object]
Documented = TypeVar("Documented", bound=Callable[..., object])


class Option(NamedTuple):
    """Description of an option of `ReadOptions`: its kind, help text, choices and check."""

    kind: str  # {"text", "flag", "list", "classes", "pairs"}: the options list and pairs may be repeated
    help: str
    metavar: str | None = None  # placeholder of the value in the help text
    choices: tuple[str, ...] = ()
    check: Callable[[Any], Any] | None = None  # function from a value to the one stored; may raise `ArgumentError`
    stage: str = "cells"  # first of `STAGES` that the option affects
    flag: str | None = None  # name on the command line of an option that only `compare` has, as it is about scores

    @property
    def repeated(self) -> bool:
        """Whether the option may be given several times."""
        return self.kind in {"list", "pairs"}

    def value(self, given: Any, name: str) -> Any:  # noqa: ANN401 - of the type of the option
        """Return `given`, the value of the option called `name`, checked and in the type of the field."""
        if self.kind == "flag":
            given = bool(given) if type(given).__name__ == "bool_" else given
            expect_type(given, bool, name)
        elif self.kind in {"list", "classes"}:
            given = _texts(given, name)
        elif given is None and self.kind == "pairs":
            given = {}
        elif given is not None and self.choices:
            one_of(given, name, self.choices)
        return given if self.check is None or given is None else self.check(given)

    def from_words(self, words: Sequence[str]) -> Any:  # noqa: ANN401 - of the type of the option
        """Return the option's value from `words`, one for each time that it is on the command line."""
        if self.kind == "classes":
            return _classes(words[0])
        if self.metavar == "[NAME=]SCALE":
            words = [word if "=" in word else f"*={word}" for word in words]
        return _pairs(words, str(self.metavar)) if self.kind == "pairs" else tuple(words)


def _option(kind: str, text: str, **more: Any) -> Any:  # noqa: ANN401 - the default of a field
    """Return the dataclass field of an option in `ReadOptions`; the arguments describe the option, as in `Option`."""
    metadata = {"option": Option(kind, text, **more)}
    if kind == "pairs":
        return field(default_factory=dict, metadata=metadata)
    return field(default={"flag": False, "list": (), "classes": ()}.get(kind), metadata=metadata)


def _units(units: object) -> dict[str, str]:
    expect_type(units, Mapping, "units")
    found = dict(units if isinstance(units, Mapping) else {})
    for name, unit in found.items():
        if unit not in UNITS:
            raise ArgumentError(f"a unit is {' or '.join(UNITS)}, and that of {shown(name)} is {shown(unit)}")
    return {str(name): str(unit) for name, unit in found.items()}


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


def _encoding(name: object) -> str:
    expect_type(name, str, "encoding")
    try:
        "".encode(str(name))
    except (LookupError, ValueError):
        raise ArgumentError(f"no text encoding is called {shown(name)}; cp1252 and utf-16 are usual") from None
    return str(name)


def _dates(dates: object) -> str:
    from opinionpool.tables.times import ORDERS

    expect_type(dates, str, "dates")
    if dates not in ORDERS and "%" not in str(dates):
        raise ArgumentError(
            f"--dates can be dmy (days first), mdy (months first) or a format such as %d.%m.%Y, and not {dates!r}"
        )
    return str(dates)


def _span(horizon: object) -> np.timedelta64:
    from opinionpool.tables.times import as_span

    return as_span(horizon, "a horizon")


def _condition(where: object) -> str:
    expect_type(where, str, "where")
    return _unicode((str(where),))[0]


def _unicode(words: Sequence[str]) -> Sequence[str]:
    """Return `words`; raise an error if one has characters, such as lone surrogates, that UTF-8 cannot have."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise ArgumentError(f"{brief(word)} has characters that no text can have, so no table has them") from None
    return words


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a table of forecasts, in the order of the harm that a wrong value does, most harmful first.

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

    columns: Columns = _option(
        "pairs",
        "The column that holds the event, expert, probability, class, verdict (which of two outcomes the probability "
        "is of), outcome, time (of the forecast), closes (when the event does), resolved_at (when the outcome was "
        "known), expires (when the forecast does), prior (of the event), group (of events whose outcomes are related), "
        "topic, text (the question) or order (in which two things were shown: both are one statement), where its name "
        "does not say so. Nothing after = means: no column. Repeatable; event or expert named twice: the columns "
        "together are the name; probability: each holds forecasts; verdict: of each of these.",
        metavar="ROLE=NAME",
        check=check_columns,
        stage="roles",
    )
    options: str | None = _option(
        "text",
        "Which outcomes there are to choose from: a list of its own for each event (event), or the same classes for "
        "all (shared). Default: as the file shows; if the lists overlap in part, an error asks.",
        choices=("event", "shared"),
        stage="times",
    )
    positive: object = _option(
        "text",
        "Of two outcomes, the one that the probabilities are about, such as yes.",
        metavar="CLASS",
        stage="roles",
    )
    classes: Values = _option(
        "classes",
        "All classes in their order, where the file does not show them all or their order matters; of two, "
        "probabilities are about the last.",
        metavar="CLASS,CLASS,...",
        stage="roles",
    )
    at_least: str | None = _option(
        "text",
        "Outcomes are grades, such as 0 to 3, and an event happened from this one on: a number, or a level of a scale.",
        metavar="GRADE",
        check=_grade,
    )
    percent: bool = _option("flag", "Probabilities are percentages, 0 to 100.")
    units: Mapping[str, str] = _option(
        "pairs",
        "What the numbers of one expert, or in one column, are, where others differ. Repeatable.",
        metavar="NAME=percent|fraction",
        check=_units,
    )
    scale: Any = _option(
        "pairs",
        "Forecasts are levels of a scale, as votes and scores are: a range such as 1-10, or the levels in order, such "
        "as no,unsure,yes; of one expert or column, as in judge_a=1-5. Repeatable.",
        metavar="[NAME=]SCALE",
        check=_scales,
        stage="roles",
    )
    decimal: str | None = _option("text", "The decimal mark. Default: as each column shows.", choices=(".", ","))
    dates: str | None = _option(
        "text",
        "Whether days or months come first in dates such as 3/4/2025, or a format such as %d.%m.%Y.",
        metavar="dmy|mdy|FORMAT",
        check=_dates,
    )
    duplicates: str | None = _option(
        "text",
        "Which of several forecasts by one expert on one event counts: the last (by time; in the order of the file if "
        "there are no times), the same and of several at one time the last row, their mean, their mean over the time "
        "that each stood, or all as samples of one statement, by their mean and spread. Default: an error.",
        choices=RULES,
        stage="times",
    )
    as_of: Any = _option(
        "text",
        "Leave out forecasts and outcomes from after this time, such as 2025-03-01T12:00Z.",
        metavar="TIME",
        stage="times",
    )
    drop_incomplete: bool = _option(
        "flag", "Leave out forecasts that lack a class or option, such as one added later.", stage="choice"
    )
    normalise: bool = _option(
        "flag", "Divide probabilities over classes that do not add up to 1, as 0.95, by their sum.", stage="choice"
    )
    missing_values: Values = _option(
        "list",
        "A word or number in the file that stands for no answer. Repeatable.",
        metavar="V",
        check=_unicode,
        stage="columns",
    )
    void_values: Values = _option(
        "list",
        "A word among outcomes that says that the event is void, besides annulled, withdrawn and the like. Repeatable.",
        metavar="WORD",
        check=_unicode,
        stage="roles",
    )
    where: str | None = _option(
        "text",
        "Rows to read, such as \"type <> 'bot' and rating >= 3\": columns, values in single quotes, = <> < <= > >=, "
        "in (...), is blank, and, or, not, parentheses.",
        metavar="CONDITION",
        check=_condition,
        stage="opening",
    )
    encoding: str | None = _option(
        "text",
        "The text's encoding if not UTF-8, such as cp1252.",
        metavar="NAME",
        check=_encoding,
        stage="opening",
    )
    include: Values = _option("list", "Use only this expert. Repeatable.", metavar="EXPERT", stage="roles")
    exclude: Values = _option("list", "Leave this expert out. Repeatable.", metavar="EXPERT", stage="roles")
    merge_names: bool = _option("flag", "Take experts whose names differ only in case, spaces or Unicode form for one.")
    silence: object = _option(
        "text",
        "Treat a missing forecast as this probability, such as 10%. Default: missing.",
        metavar="P",
        check=_probability,
        stage="choice",
    )
    expert_from_name: bool = _option(
        "flag",
        "Each FILE is one expert's, named after it. Default for several files with one column of forecasts and none "
        "for the expert.",
        stage="opening",
    )
    horizon: Any = _option(
        "text",
        "Take forecasts as they stood so long before their event closed or was resolved: a number of days, such as 7, "
        "or with a unit, such as 4w or 36h.",
        metavar="SPAN",
        check=_span,
        flag="--horizon",
        stage="times",
    )
    history: bool = _option(
        "flag",
        "Keep what was forecast at every moment until the events closed, and average scores over that time.",
        flag="--time-averaged",
        stage="times",
    )

    # Experts that a saved pool learned from, who need not be in the table, and their scales.
    known_experts: tuple[str, ...] = ()
    known_scales: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, option in OPTIONS.items():
            object.__setattr__(self, name, option.value(getattr(self, name), name))
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

        return ClassOptions(None if self.positive is None else str(self.positive), tuple(map(str, self.classes)))

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

        missing = tuple(map(str, self.missing_values))
        scales = scales_given({**self.known_scales, **self.scale})
        return NumberRules(self.percent, self.decimal, missing, self.units, scales)

    @property
    def no_outcome(self) -> NoOutcome:
        """Words for a missing or void outcome; with scales of levels, n/a means missing, not void."""
        from opinionpool.tables.classes import NoOutcome

        rules = self.rules
        classes = [*self.asked.classes, *([] if self.asked.positive is None else [self.asked.positive])]
        missing = (*rules.missing, *(["n/a"] if rules.scales else []))
        return NoOutcome.of(missing, tuple(map(str, self.void_values)), classes)

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
            name: value
            for name, value in values.items()
            if not ((isinstance(value, bool | tuple | dict) and not value) or value is None)
        }

    def toml(self, outcomes: str | None = None) -> str:
        """Return the options as text of an options file; `outcomes` is a table's path relative to the file."""
        given = {option_name(name, OPTIONS[name].repeated): value for name, value in self.given().items()}
        plain = {name: value.item().isoformat() if name == "as-of" else value for name, value in given.items()}
        if "column" in plain:
            plain["column"] = {role: name or "" for role, name in plain["column"].items()}
        return toml(({} if outcomes is None else {"outcomes": outcomes}) | plain)


# The options by their names in Python, in order.
OPTIONS: dict[str, Option] = {
    each.name: option for each in fields(ReadOptions) if (option := each.metadata.get("option"))
}


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
    names, found = {option_name(name, option.repeated): name for name, option in OPTIONS.items()}, dict[str, str]()
    for flag, quoted, plain in _FLAG.findall(text):
        name, value = names.get(flag, ""), quoted or plain.rstrip(".,;:)")
        if name and name not in found and (value or OPTIONS[name].kind == "flag"):
            key, sign, of = value.partition("=") if name == "columns" else value.rpartition("=")
            given: object = {key: of or None} if sign and OPTIONS[name].kind == "pairs" else value
            given = [value] if OPTIONS[name].kind == "list" else True if OPTIONS[name].kind == "flag" else given
            found[name] = f"{name}={given!r}"
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
    lines = []
    for name, option in OPTIONS.items():
        kind = {"flag": "bool, default False", "pairs": "mapping, optional"}.get(option.kind, "optional")
        kind = "sequence, optional" if option.kind in {"list", "classes"} else kind
        if option.choices:
            kind = "{" + ", ".join(f'"{word}"' for word in option.choices) + "}, optional"
        lines += [f"    {name} : {kind}", f"        {option.help}"]
    if function.__doc__:
        function.__doc__ = function.__doc__.replace("    {options}", "\n".join(lines))
    return function


def read_options(path: str) -> dict[str, Any]:
    """Options in a TOML file as arguments of `ReadOptions`, and `outcomes`, the path of a table, if given."""
    import tomllib

    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ArgumentError(f"{path} cannot be read as a file of options: {reason}") from None
    names = {option_name(name, option.repeated): name for name, option in OPTIONS.items() if option.flag is None}
    names |= {name.replace("_", "-"): name for name in names.values()} | {"outcomes": "outcomes"}
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


def _texts(values: object, name: str) -> tuple[str, ...]:
    """Return `values` as a tuple of texts; a single text is one value, and None is an empty tuple."""
    if values is None:
        return ()
    return (values,) if isinstance(values, str) else tuple(map(str, labels_given(values, name)))


def _classes(text: str) -> tuple[str, ...]:
    """Return the classes in a text, separated by commas; a class with a comma stands in double quotes."""
    import csv

    found = tuple(each.strip() for each in next(csv.reader([text], skipinitialspace=True), []))
    if len(found) < 2 or "" in found or len(set(found)) < len(found):
        raise ArgumentError(f"two or more different classes between commas are wanted, not {text!r}")
    return found


def _pairs(words: Sequence[str], form: str) -> dict[str, Any]:
    """Values by name from words of the `form` NAME=VALUE: a tuple if a name is repeated, None for an empty value."""
    found: dict[str, list[str]] = {}
    for word in words:
        name, sign, value = word.partition("=") if form.startswith("ROLE") else word.rpartition("=")
        if not sign or not name.strip():
            raise ArgumentError(f"{word!r} is not of the form {form}")
        found.setdefault(name.strip(), []).append(value.strip())
    for name, values in found.items():
        if len(values) > 1 and "" in values:
            raise ArgumentError(f"{name} is given no column, and one too")
    return {name: (values[0] or None) if len(values) == 1 else tuple(values) for name, values in found.items()}
