"""How a table is to be read: one object for Python, the command line, files in parts and files of options."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

import numpy as np

from opinionpool.arguments import brief, expect_type, labels_given, one_of
from opinionpool.errors import ArgumentError, Remedy
from opinionpool.findings import typed_options
from opinionpool.tables.cells import NumberRules
from opinionpool.tables.classes import Asked
from opinionpool.tables.event_options import CHOICES
from opinionpool.tables.frames import BETWEEN
from opinionpool.tables.melt import Reading
from opinionpool.tables.no_outcome import NoOutcome
from opinionpool.tables.roles import Columns, check_columns
from opinionpool.tables.times import as_span, as_time, check_dates
from opinionpool.text import listed, shown, suggestion, typed

# What the command line calls fields whose options may be repeated.
_SINGULAR = {"columns": "column", "units": "unit", "missing_values": "missing-value", "void_values": "void-value"}
# Which of several forecasts counts.
RULES = ("last", "last-row", "mean", "time-weighted")
# What unmarked numbers of an expert or column are.
UNITS = ("percent", "fraction")
_LISTS = ("classes", "missing_values", "void_values", "include", "exclude")
_FLAGS = ("percent", "merge_names", "drop_incomplete", "normalise", "expert_from_name", "history")
# What scores are of; `compare` alone asks for it.
_SCORED = ("horizon", "history")

Values: TypeAlias = Sequence[object]


@dataclass(frozen=True)
class ReadOptions:
    """What a user says about a table of forecasts; `opinionpool.read_forecasts` has what each means.

    Raises
    ------
    ArgumentError
        If one is none of what it can be.

    Examples
    --------
    >>> options = ReadOptions(percent=True, columns={"event": "race"})
    >>> options.revised({"columns": {"class": "party"}}).arguments()
    ['--column', 'event=race', '--column', 'class=party', '--percent']
    """

    positive: object = None
    classes: Values = ()
    columns: Columns = field(default_factory=dict)
    options: str | None = None
    include: Values = ()
    exclude: Values = ()
    where: str | None = None
    duplicates: str | None = None
    as_of: object = None
    dates: str | None = None
    percent: bool = False
    units: Mapping[str, str] = field(default_factory=dict)
    decimal: str | None = None
    encoding: str | None = None
    missing_values: Values = ()
    void_values: Values = ()
    merge_names: bool = False
    silence: object = None
    drop_incomplete: bool = False
    normalise: bool = False
    expert_from_name: bool = False
    horizon: object = None
    history: bool = False

    def __post_init__(self) -> None:
        for name in _LISTS:
            object.__setattr__(self, name, _texts(getattr(self, name), name))
        object.__setattr__(self, "columns", check_columns(self.columns))
        object.__setattr__(self, "units", _units(self.units))
        self._check_types()
        check_dates(self.dates)
        if self.horizon is not None:
            object.__setattr__(self, "horizon", as_span(self.horizon, "a horizon"))
            if self.history:
                raise ArgumentError("a horizon is one moment, and time-averaged scores are of all: give one of the two")
        if self.as_of is not None:
            object.__setattr__(self, "as_of", as_time(self.as_of, "as_of", self.dates))
        if self.silence is not None:
            object.__setattr__(self, "silence", _probability(self.silence))
        _ = self.rules

    def _check_types(self) -> None:
        """Refuse values of other types, words that are none of those there are, and text that cannot be written."""
        for name, choices in (("duplicates", RULES), ("options", CHOICES)):
            if getattr(self, name) is not None:
                one_of(getattr(self, name), name, choices)
        for name in _FLAGS:
            expect_type(getattr(self, name), (bool, np.bool_), name)
        for name in ("where", "dates", "decimal", "encoding"):
            if getattr(self, name) is not None:
                expect_type(getattr(self, name), str, name)
        for word in (*self.missing_values, *self.void_values, self.where or ""):
            if not _is_unicode(str(word)):
                raise ArgumentError(f"{brief(word)} has characters that no text can have, so no table has them")

    @property
    def asked(self) -> Asked:
        """What is given about classes."""
        return Asked(None if self.positive is None else str(self.positive), tuple(map(str, self.classes)))

    @property
    def keys(self) -> dict[str, str | None]:
        """The column of each role; that of several together is called after all of them."""
        return {role: BETWEEN.join(of) if isinstance(of, tuple) else of for role, of in self.columns.items()}  # type: ignore[misc]

    @property
    def parts(self) -> tuple[str, ...]:
        """The columns that are keys together."""
        return tuple(name for of in self.columns.values() if isinstance(of, tuple) for name in of)

    @property
    def rules(self) -> NumberRules:
        """How numbers are written."""
        return NumberRules(self.percent, self.decimal, tuple(map(str, self.missing_values)), self.units)

    @property
    def no_outcome(self) -> NoOutcome:
        """Which words are no outcomes."""
        classes = [*self.asked.classes, *([] if self.asked.positive is None else [self.asked.positive])]
        return NoOutcome.of(self.rules.missing, tuple(map(str, self.void_values)), classes)

    @property
    def cutoff(self) -> np.datetime64 | None:
        """The time of --as-of."""
        return self.as_of if isinstance(self.as_of, np.datetime64) else None

    @property
    def ahead(self) -> np.timedelta64 | None:
        """How long before the end of an event forecasts count."""
        return self.horizon if isinstance(self.horizon, np.timedelta64) else None

    def reading(self) -> Reading:
        """How cells are read, nothing done so far."""
        return Reading(
            self.rules, _texts(self.include, "include"), _texts(self.exclude, "exclude"), self.dates, self.merge_names
        )

    def revised(self, remedy: Remedy) -> ReadOptions:
        """The same with a way out that an error names; what can be repeated is added to what is there."""
        changes: dict[str, Any] = dict(remedy)
        for name in ("columns", "units"):
            if name in changes:
                changes[name] = {**getattr(self, name), **changes[name]}
        for name in _LISTS:
            if name in changes:
                changes[name] = tuple(dict.fromkeys((*getattr(self, name), *changes[name])))
        if self.where and "where" in changes:
            changes["where"] = f"({self.where}) and {changes['where']}"
        return replace(self, **changes)

    def arguments(self) -> list[str]:
        """The options as they are typed."""
        return typed_options(self.given())

    def given(self) -> dict[str, Any]:
        """The options that are not what they are without a word, but for those of scores."""
        without = ReadOptions.__dataclass_fields__
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in _SCORED}
        return {
            name: value
            for name, value in values.items()
            if isinstance(value, np.datetime64) or value not in (without[name].default, (), {})
        }

    def toml(self, outcomes: str | None = None) -> str:
        """The options as a file that `read_options` reads, with the path of outcomes beside it."""
        lines = [] if outcomes is None else [f"outcomes = {_toml(outcomes)}"]
        tables: list[str] = []
        for name, value in self.given().items():
            key = _SINGULAR.get(name, name).replace("_", "-")
            if isinstance(value, Mapping):
                entries = (f"{_toml_key(name)} = {_toml(of or '')}" for name, of in value.items())
                tables += [f"\n[{key}]", *entries]
            else:
                plain = value.item().isoformat() if isinstance(value, np.datetime64) else value
                lines.append(f"{key} = {_toml(plain)}")
        return "\n".join([*lines, *tables]) + "\n"


def read_options(path: str) -> dict[str, Any]:
    """The options in a file, as arguments of `ReadOptions`, and `outcomes`, a path beside the file.

    Raises
    ------
    ArgumentError
        If it is no such file.
    """
    import tomllib

    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ArgumentError(f"{path} cannot be read as a file of options: {reason}") from None
    names = {name.replace("_", "-"): name for name in ReadOptions.__dataclass_fields__ if name not in _SCORED}
    names |= {option: name for name, option in _SINGULAR.items()} | {"outcomes": "outcomes"}
    given: dict[str, Any] = {}
    for key, value in found.items():
        name = names.get(key.replace("_", "-"))
        if name is None:
            near = suggestion(key, sorted(names), "there are")
            raise ArgumentError(f"{path}: no option of reading is called {key!r}; {near}")
        given[name] = _checked(path, key, name, value)
    if "outcomes" in given:
        given["outcomes"] = os.path.join(os.path.dirname(path), given["outcomes"])
    return given


def _checked(path: str, key: str, name: str, value: object) -> Any:  # noqa: ANN401 - what TOML holds
    """A value of the type that an option has; in a table of columns nothing, "", is None."""
    if name == "columns":
        if isinstance(value, dict):
            return {role: column or None for role, column in value.items()}
        raise ArgumentError(f'{path}: {key} is a table of roles and columns, such as [column] and event = "race"')
    if name == "units":
        if isinstance(value, dict):
            return value
        raise ArgumentError(f'{path}: {key} is a table of experts or columns, such as [unit] and ann = "percent"')
    wanted = (bool,) if name in _FLAGS else (list, str) if name in _LISTS else (str, int, float)
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        what = "true or false" if name in _FLAGS else "a list" if name in _LISTS else "a text or number"
        raise ArgumentError(f"{path}: {key} is {what}, and not {value!r}")
    return value


def command_line(command: str, files: Sequence[str], outcomes: object, options: ReadOptions) -> str:
    """What is typed to read files with these options."""
    words = ["opinionpool", command, *files]
    words += [] if outcomes is None else ["--outcomes", str(outcomes)]
    return " ".join(map(typed, [*words, *options.arguments()]))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _texts(values: object, name: str) -> tuple[str, ...]:
    """Values as text; a single one needs no list around it."""
    if values is None:
        return ()
    return (values,) if isinstance(values, str) else tuple(map(str, labels_given(values, name)))


def options_given(given: Mapping[str, Any]) -> ReadOptions:
    """Options of reading by their names in Python.

    Raises
    ------
    ArgumentError
        Names an option that there is not, and the one that was meant.
    """
    known = [each.name for each in fields(ReadOptions)]
    for name in given:
        if name not in known:
            raise ArgumentError(f"no option of reading is called {shown(name)}; {suggestion(name, known, 'there are')}")
    return ReadOptions(**given)


def _probability(value: object) -> float:
    """A probability from 0 to 1, as a number, or as text such as 0.2 or 20%."""
    text = str(value).strip()
    try:
        p = float(text[:-1]) / 100.0 if text.endswith("%") else float(text)
    except ValueError:
        raise ArgumentError(f"silence is a probability such as 0.1 or 10%, and not {value!r}") from None
    if not 0.0 <= p <= 1.0:
        raise ArgumentError(f"silence is a probability from 0 to 1, and not {value!r}")
    return p


def _units(units: object) -> dict[str, str]:
    """Units by the expert or column that has them."""
    found = dict(units if isinstance(units, Mapping) else {})
    expect_type(units, Mapping, "units")
    for name, unit in found.items():
        if unit not in UNITS:
            raise ArgumentError(f"a unit is {' or '.join(UNITS)}, and that of {shown(name)} is {shown(unit)}")
    return {str(name): str(unit) for name, unit in found.items()}


def _toml_key(name: str) -> str:
    """A name before an equals sign."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        import json

        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_toml, value))}]"
    raise ArgumentError(f"{listed([value])} is not written to a file of options")
