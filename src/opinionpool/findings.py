"""Findings: what was noticed, converted, left out or refused, each with a code; their texts are in messages.md.

A template quotes parameters: ``{name}`` in quotes, ``{name:raw}`` unchanged, ``{name:typed}`` as written on the command
line; ``{count:row}`` is "1 row" or "2,500 rows", ``{count:is/are}`` a verb; ``{names}`` a list that is cut if it is
long, ``{names:5}`` after 5 names, ``{names:column}`` after its noun; ``{more:raw}`` the number of cases like the one
shown. Advice quotes remedies by number, ``{0}``, or all as ``{ways:raw}``; a sentence about a remedy that is not
offered is left out. ``{names:, but not }`` is empty if there are no names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from string import Formatter
from typing import Any, NamedTuple

from opinionpool import errors
from opinionpool.errors import Note, OpinionPoolError, TableError
from opinionpool.text import counted, listed, quoted, shown


class Message(NamedTuple):
    """Row of the table in messages.md: the code of a note or error, and templates of its text and advice."""

    section: str
    code: str
    kind: str  # "" for a note, "serious" for one that is a Python warning, else the class of the error
    text: str  # template
    do: str  # template of the advice to the user, with which errors end


@cache
def messages() -> dict[str, Message]:
    """Return the rows of the table of messages, by code."""
    found, section = {}, ""
    with open(os.path.join(os.path.dirname(__file__), "messages.md"), encoding="utf-8") as file:
        table = file.read()
    for line in table.splitlines():
        section = line.removeprefix("## ") if line.startswith("## ") else section
        if line.startswith("| `"):
            code, kind, text, do = (cell.strip() for cell in line.split("|")[1:-1])
            found[code.strip("`")] = Message(section, code.strip("`"), kind, text, do)
    return found


@dataclass(frozen=True)
class Place:
    """Place in a table: file, rows, column and the value of the cell; `str` gives it as text."""

    file: str
    rows: tuple[int, ...] = ()  # from 1, as people count: lines of a text file, rows of other tables
    unit: str = "line"  # {"line", "row"}
    column: str | None = None
    value: str | None = None
    others: tuple[Place, ...] = ()  # rows in further files

    def __str__(self) -> str:
        numbers = ", ".join(map(str, self.rows))
        rows = f", {self.unit}{'s' if len(self.rows) > 1 else ''} {numbers}" if self.rows else ""
        further = "".join(f"; {other}" for other in self.others)
        return f"{self.file}{rows}{further}" + ("" if self.column is None else f", column {shown(self.column)}")


@dataclass(frozen=True)
class Remedy:
    """Remedy of a finding: options of `opinionpool.read_forecasts`, by name, that solve the problem."""

    options: Mapping[str, object]

    def __str__(self) -> str:
        return " ".join(map(quoted, typed_options(self.options)))


def typed_options(options: Mapping[str, object]) -> list[str]:
    """Return options of reading as words of a command line; repeatable options have their names in the singular.

    >>> typed_options({"percent": True, "columns": {"event": "race", "time": None}, "missing_values": ("x", "-1")})
    ['--percent', '--column', 'event=race', '--column', 'time=', '--missing-value', 'x', '--missing-value', '-1']
    """
    words: list[str] = []
    for name, value in options.items():
        flag = "--" + option_name(name, isinstance(value, Mapping | tuple | list) and name != "classes")
        if value is True:
            words.append(flag)
        elif name == "classes":
            words += [flag, ",".join(_between_commas(str(label)) for label in _several(value))]
        elif isinstance(value, Mapping):
            for key, of in value.items():
                words += [
                    word for each in _several(of) for word in (flag, str(each) if key == "*" else f"{key}={each or ''}")
                ]
        elif isinstance(value, tuple | list):
            words += [word for each in value for word in (flag, str(each))]
        else:
            words += [flag, str(value).removesuffix("T00:00:00.000000").removesuffix(".000000")]
    return words


def _several(value: object) -> Sequence[object]:
    """Return a tuple or list unchanged, and any other value as a tuple with this value only."""
    return value if isinstance(value, tuple | list) else (value,)


def option_name(name: str, repeated: bool) -> str:
    """Return an option's name on the command line, in the singular if the option can be repeated.

    >>> option_name("missing_values", True), option_name("include", True), option_name("classes", False)
    ('missing-value', 'include', 'classes')
    """
    name = name.replace("_", "-")
    return name.removesuffix("s") if repeated else name


def _between_commas(label: str) -> str:
    """Return a class label as written in a list between commas: in double quotes if needed."""
    doubled = label.replace('"', '""')
    return f'"{doubled}"' if doubled != label or "," in label or label != label.strip() else label


@dataclass(frozen=True)
class Finding(Note):
    """Note or error with one of the codes in the table of messages, and the parameters that its text quotes."""

    params: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    place: Place | None = None
    remedies: tuple[Remedy, ...] = field(default=(), hash=False)

    @property
    def kind(self) -> str:
        """Key that is equal for findings that `+` merges: the place, and the parameters that are text or booleans."""
        return repr([*((k, v) for k, v in self.params.items() if isinstance(v, str | bool)), str(self.place)])

    def __add__(self, other: Finding) -> Finding:
        """One finding for two parts of a table: the sums of integers, joined lists and the largest of two floats."""
        both = {name: _both(value, other.params[name]) for name, value in self.params.items()}
        return self if both == self.params else finding(self.code, self.place, self.remedies, **both)

    def out_of(self, total: int) -> Finding:
        """Return a copy of the finding whose text has `total` as the number of all cases."""
        return finding(self.code, self.place, self.remedies, **{**self.params, "total": total})

    def error(self) -> OpinionPoolError:
        """Return the error to raise, of the class that the table of messages names."""
        kind: type[OpinionPoolError] = getattr(errors, messages()[self.code].kind)
        made = kind(self.text)
        made.finding = self
        if isinstance(made, TableError):
            made.remedies, made.count = tuple(remedy.options for remedy in self.remedies), self.count
        return made


def finding(
    code: str,
    place: Place | None = None,
    remedies: Iterable[Remedy] = (),
    **params: Any,  # noqa: ANN401 - what a template quotes
) -> Finding:
    """Return the finding of a code, whose text begins with the place and quotes `params`.

    If reading goes on, the first remedy is assumed; ``count`` is the number of cells, rows or names concerned.

    >>> finding("where", count=3, total=10).text
    '3 of 10 rows left out by --where'
    """
    message, ways = messages()[code], tuple(remedies)
    count = _count(params)
    at = {} if place is None else {"column": place.column, "value": place.value}
    more = f" (and {count - 1:,} more like it)" if count > 1 else ""
    quoted = {**at, "more": more, "ways": ", or ".join(map(str, ways)), **params}
    text = _TEMPLATES.vformat(message.text, ways, quoted)
    if place is not None:
        text = f"{place}: {text}"
    if message.kind.endswith("Error"):
        text = " ".join([f"{text}.", *_advice(message.do, ways, quoted)]) if message.do else text
    return Finding(code, text, count, message.kind == "serious", params=params, place=place, remedies=ways)


def added_up(notes: Iterable[Note], **totals: int) -> tuple[Note, ...]:
    """Return the notes on a whole from those on its parts; `totals` has, by code, the number of all cases.

    >>> [note.text for note in added_up([finding("no-event", count=1), finding("no-event", count=3)])]
    ['4 rows without an event left out']
    """
    found: dict[tuple[str, str], Note] = {}
    for note in notes:
        key = note.code, note.kind if isinstance(note, Finding) else note.text
        before = found.get(key)
        found[key] = before + note if isinstance(note, Finding) and isinstance(before, Finding) else note
    return tuple(
        note.out_of(totals[note.code]) if isinstance(note, Finding) and note.code in totals else note
        for note in found.values()
    )


def _advice(template: str, ways: Sequence[Remedy], params: Mapping[str, object]) -> Iterator[str]:
    """Yield the sentences of the advice `template`, filled in; those about remedies that `ways` lacks are left out."""
    for sentence in template.split(". "):
        needed = [int(name) for _, name, _, _ in _TEMPLATES.parse(sentence) if name and name.isdigit()]
        if max(needed, default=-1) < len(ways) and (ways or "{ways" not in sentence):
            yield _TEMPLATES.vformat(sentence.removesuffix("."), ways, params) + "."


def fault(
    code: str,
    place: Place | None = None,
    remedies: Iterable[Remedy] = (),
    **params: Any,  # noqa: ANN401 - as above
) -> OpinionPoolError:
    """Return the error for a code, to be raised; arguments as for `finding`."""
    return finding(code, place, remedies, **params).error()


def _both(one: Any, other: Any) -> Any:  # noqa: ANN401 - numbers, names, or text that is the same
    """Return a parameter of a merged finding from its values in two findings, `one` and `other`."""
    if isinstance(one, int) and not isinstance(one, bool):
        return one + other
    if isinstance(one, float):
        return max(one, other)
    if isinstance(one, str | bool):
        return one
    return tuple(dict.fromkeys([*one, *other])) if isinstance(one, Sequence) else one + other


def _count(params: Mapping[str, object]) -> int:
    """Number of cases that a finding has: ``count`` in `params`, else the length of the first list, else 1."""
    given = params.get("count")
    if isinstance(given, int):
        return given
    lists = (value for value in params.values() if isinstance(value, Sequence) and not isinstance(value, str))
    return len(next(lists, [""]))


class _Templates(Formatter):
    """String formatter for the templates of messages, which also formats nouns, lists and quotes."""

    def format_field(self, value: Any, spec: str) -> str:  # noqa: ANN401 - what a template quotes
        """Return `value` as text, as `spec` in a template demands: quoted, counted with a noun, or as a list."""
        if isinstance(value, str):
            return value if spec == "raw" else quoted(value) if spec == "typed" else shown(value)
        if "/" in spec:
            one, _, many = spec.partition("/")
            return one if (value if isinstance(value, int) else len(value)) == 1 else many
        if isinstance(value, int):
            return counted(value, spec) if spec else f"{value:,}"
        if not isinstance(value, Sequence):
            return format(value, spec)
        if spec and not spec[0].isalnum():
            return f"{spec}{listed(value, 4)}" if value else ""
        noun, most = ("", int(spec)) if spec.isdigit() else (spec, 5 if spec else 8)
        names = listed(value, most)
        return f"{noun}{'' if len(value) == 1 else 's'} {names}" if noun else names


_TEMPLATES = _Templates()
