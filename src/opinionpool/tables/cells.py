"""Cells that hold numbers: probabilities and priors, as a person or a spreadsheet wrote them.

The unit is decided for a column, never for a cell. A per cent sign marks its column as percentages, and then
every number in the column must carry one. A column without marks is read as fractions; if it has numbers above 1
they may be percentages or codes for no answer, and only the user knows which. Decimal commas are recognised
when no cell of the column has a decimal point. Odds are refused, since nobody can tell those for from those against.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import Note, OpinionPoolError
from opinionpool.findings import Remedy, fault, finding
from opinionpool.scales import scale_of
from opinionpool.tables.table import Numbers, Table, Words, cell_fault, place
from opinionpool.tables.units import (
    GAP,
    MISSING,
    NUMBER,
    OVERSHOOT,
    NumberRules,
    beyond_bounds,
    exclude_way,
    out_of,
    tiny_column,
)
from opinionpool.text import shown

# A number, a bound, odds or a range; and not an address or a code of several numbers.
_DIGITS = rf"[.,]?[0-9]+(?:[.,{GAP}]?[0-9]+)*(?:[eE][+-]?[0-9]+)?[{GAP}]*%?"
_NUMERIC_LOOK = re.compile(
    rf"[{GAP}<>~≈=+\-−]*({_DIGITS})(?:[{GAP}]*([:/–\-−])[{GAP}]*({_DIGITS}))?[{GAP}<>~≈+]*", re.ASCII
)
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_ODDS = re.compile(r"\d+(?:[.,]\d+)?\s*[:/]\s*\d+(?:[.,]\d+)?")
# Where a number stands before the sign, it is what an event is about: "10%-20%".
_PERCENT_NAME = re.compile(r"(?<!\d)%|(?:^|[\W_])(?:percent|percentage|pct)(?:$|[\W_])", re.IGNORECASE)


@dataclass
class Coerced:
    """Conversions made in the cells of many columns, collected for one report."""

    percent: list[str] = field(default_factory=list)
    comma: list[str] = field(default_factory=list)
    missing: int = 0
    overshoot: int = 0
    tiny: list[str] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)  # columns whose numbers have per cent signs

    def notes(self) -> list[Note]:
        """Return one note for each kind of conversion."""
        found: list[Note] = []
        if self.percent:
            found.append(finding("percent", names=self.percent))
        if self.comma:
            found.append(finding("decimal-comma", names=self.comma))
        if self.missing:
            found.append(finding("missing-words", count=self.missing))
        if self.overshoot:
            found.append(finding("overshoot", count=self.overshoot))
        if self.tiny:
            found.append(finding("percent-tiny", names=self.tiny))
        return found


def looks_numeric(word: str) -> bool:
    """Whether a word was meant as a number, readable or not.

    >>> [looks_numeric(word) for word in ("0.5", "3:1", "<1%", "10-20%", "rain", "2 goals", "1001-0", "10.0.0.1")]
    [True, True, True, True, False, False, False, False]
    """
    match = _NUMERIC_LOOK.fullmatch(word)
    if match is None or word.count(".") > 2:
        return bool(_INFINITE.fullmatch(word))
    low, high = (NUMBER.fullmatch(part.strip()) for part in (match[1], match[3] or ""))
    return match[2] in {None, ":", "/"} or bool(low and high and float(low[1]) <= float(high[1]) <= 100)


def read_probabilities(
    table: Table,
    column: int,
    plain: Numbers | None,
    rules: NumberRules,
    log: Coerced,
    named: str | None = None,
    units: npt.NDArray[np.int8] | None = None,
) -> Array:
    """One column as fractions in [0, 1].

    `plain` is the column as `Table.numbers` gives it, `units` 1 for rows of percentages, 0 of fractions, -1 of neither;
    `named` is the expert whose column it is, where each has one.
    """
    if plain is None or (rules.decimal == "," and table.is_text(column)):
        values, marked = _read_words(table, column, rules, log, named)
    else:
        values, marked = plain.values, False
        log.missing += plain.words
    for number in rules.missing_numbers:
        coded = values == number
        log.missing += int(coded.sum())
        values = np.where(coded, np.nan, values)
    name = table.names[column]
    percent = marked or unmarked_percent(name, rules)
    present = values[~np.isnan(values)] if percent else values[:0]
    if marked:
        log.marked.append(name)
    if units is not None and not marked:
        scaled = (units == 1) | ((units == -1) & percent)
        values = np.where(scaled, values / 100.0, values)
        log.percent += [name] if scaled.any() else []
        percent = bool(scaled.all())
    elif len(present):
        if not marked and 0 < present.max() <= 1 and name not in rules.units:
            if not rules.percent:
                raise tiny_column(table, column, by_name=True)
            log.tiny.append(name)
        values = values / 100.0
        log.percent.append(name)
    return _within_bounds(table, column, values, percent, log, named)


def read_levels(
    table: Table, column: int, experts: Sequence[str], codes: Index, rules: NumberRules
) -> tuple[Array, Mask] | None:
    """Return probabilities of the levels in a column, and the mask of rows with a scale, (rows,); None without any.

    Codes are those of experts, -1 for nobody.
    """
    scales = [scale_of(rules.scales, name) for name in experts]
    if not any(scales):
        return None
    words, missing = table.words(column), rules.missing_words
    values, scaled = np.full(table.rows, np.nan), np.zeros(table.rows, dtype=bool)
    for scale in dict.fromkeys(each for each in scales if each is not None):
        own = np.append(np.array([each == scale for each in scales]), False)[codes]
        absent = [word.strip().lower() in missing for word in words.values]
        each = [-1 if none else scale.place(word) for word, none in zip(words.values, absent, strict=True)]
        places = np.array(each, dtype=np.intp)
        wrong = own & words.expand((places < 0) & ~np.array(absent, dtype=bool), False)
        if wrong.any():
            raise _no_level(table, column, wrong, str(scale), experts[int(codes[int(wrong.argmax())])])
        values = np.where(own, words.expand(scale.probability(places), np.nan), values)
        scaled |= own
    return values, scaled


def _no_level(table: Table, column: int, wrong: Mask, scale: str, name: str) -> OpinionPoolError:
    """The error for cells that are no levels; words among them, and a number that comes again, stand for no answer."""
    words, row, count = table.words(column), int(wrong.argmax()), int(wrong.sum())
    bad = np.unique(words.codes[wrong]).tolist()
    none = [words.values[code] for code in bad if not looks_numeric(words.values[code]) or len(bad) == 1 < count]
    few = len(none) == len(bad) <= 5 and 4 * count <= words.counts.sum()
    ways = [{"missing_values": tuple(none)}] if few else []
    return cell_fault("no-level", table, row, column, ways, count, scale=scale, name=name)


def unmarked_percent(name: str, rules: NumberRules) -> bool:
    """Whether unmarked numbers in a column of this name are percentages."""
    if name in rules.units:
        return rules.units[name] == "percent"
    return rules.percent or bool(_PERCENT_NAME.search(name))


def _within_bounds(table: Table, column: int, values: Array, percent: bool, log: Coerced, named: str | None) -> Array:
    """Return the values, rounding errors beyond 0 and 1 clipped; raise if a value is further outside."""
    outside = (values < 0) | (values > 1)
    if not outside.any():
        return values
    if ((values < -OVERSHOOT) | (values > 1 + OVERSHOOT)).any():
        raise beyond_bounds(table, column, values, percent, named)
    log.overshoot += int(outside.sum())
    return np.clip(values, 0.0, 1.0)


@dataclass
class _Marks:
    """Code of the first word in each number format: per cent sign, no sign, comma, point; None if there is none."""

    percent: int | None = None
    plain: int | None = None
    comma: int | None = None
    point: int | None = None

    def see(self, code: int, text: str, sign: str) -> None:
        if sign:
            self.percent = code if self.percent is None else self.percent
        else:
            self.plain = code if self.plain is None else self.plain
        if "," in text:
            self.comma = code if self.comma is None else self.comma
        if "." in text:
            self.point = code if self.point is None else self.point


def _read_words(table: Table, column: int, rules: NumberRules, log: Coerced, named: str | None) -> tuple[Array, bool]:
    """The numbers as written, and whether they carry per cent signs."""
    words = table.words(column)
    missing = rules.missing_words
    numbers = np.full(len(words.values), np.nan)
    absent = np.zeros(len(words.values) + 1, dtype=bool)
    marks = _Marks()
    for code, word in enumerate(words.values):
        if word.lower() in missing:
            absent[code] = True
            continue
        match = NUMBER.fullmatch(word)
        if match is None:
            raise _not_a_number(table, column, words, missing, named)
        marks.see(code, match[1], match[2])
        numbers[code] = float(match[1].replace(",", "."))
    _check_marks(table, column, words, marks, rules)
    unit = rules.units.get(table.names[column])
    if unit == "fraction" and marks.percent is not None and marks.plain is not None:
        signed = np.array([word.endswith("%") for word in words.values])
        numbers, marks.percent = np.where(signed, numbers / 100.0, numbers), None
    if marks.comma is not None:
        log.comma.append(table.names[column])
    log.missing += int(absent[words.codes].sum())
    return words.expand(numbers, np.nan), marks.percent is not None


def _not_a_number(
    table: Table, column: int, words: Words, missing: frozenset[str], named: str | None
) -> OpinionPoolError:
    """The error for the first word that is no number, and how many such cells there are."""
    if scored := out_of(table, column, named):
        return scored
    bad = [code for code, word in enumerate(words.values) if word.lower() not in missing and not NUMBER.fullmatch(word)]
    code, word = bad[0], words.values[bad[0]]
    what = "is not a number: write a fraction (0.45) or a percentage (45%)"
    if _INFINITE.fullmatch(word):
        what = "is not between 0 and 1"
    elif _ODDS.fullmatch(word):
        what = "looks like odds, which may be for or against: write the probability instead"
    few = len(bad) <= 5 and 2 * len(bad) <= len(words.values) and not _ODDS.fullmatch(word)
    ways: list[Mapping[str, object]] = [] if named is None else [{"exclude": (named,)}]
    ways = [{"missing_values": tuple(words.values[each] for each in bad)}] if few else ways
    row, count = int(words.rows(code)[0]), int(words.counts[bad].sum())
    out = "" if named is None else f"; {exclude_way(table.names[column], named)}"
    return cell_fault("no-number", table, row, column, ways, count, what=what, short=word[:60], out=out)


def _check_marks(table: Table, column: int, words: Words, marks: _Marks, rules: NumberRules) -> None:
    """Raise unless the column is written in one way."""
    name = table.names[column]

    def cells(*codes: int) -> dict[str, Any]:
        places = [f"{shown(words.values[code])} ({place(table, int(words.rows(code)[0]))})" for code in codes]
        return {"name": name, "one": places[0], "other": places[1]}

    if marks.percent is not None and marks.plain is not None and name not in rules.units:
        ways = [Remedy({"units": {name: unit}}) for unit in ("percent", "fraction")]
        raise fault("mixed-signs", None, ways, **cells(marks.percent, marks.plain))
    if marks.comma is not None and marks.point is not None:
        raise fault("mixed-decimals", None, (), **cells(marks.comma, marks.point))
    wrong = {".": marks.comma, ",": marks.point, None: None}[rules.decimal]
    if wrong is not None:
        row = int(words.rows(wrong)[0])
        raise cell_fault("other-decimal", table, row, column, [{"decimal": None}], mark=rules.decimal)


def half_units(words: Words, percent: bool = False) -> Array:
    """Half a unit of the last written digit of each cell, as a fraction; 0 for whole fractions and blanks.

    >>> from opinionpool.tables.table import encode
    >>> half_units(encode(["0.33", "1", "7.5%", "1e-3"]))
    array([0.005 , 0.    , 0.0005, 0.0005])
    """
    units = np.zeros(len(words.values))
    for code, word in enumerate(words.values):
        match = NUMBER.fullmatch(word)
        if match is None:
            continue
        mantissa, _, exponent = match[1].lower().replace(",", ".").partition("e")
        digits = len(mantissa.partition(".")[2]) - int(exponent or 0) + (2 if match[2] or percent else 0)
        units[code] = 0.5 * 10.0**-digits if digits > 0 else 0.0
    return words.expand(units, 0.0)


def is_text(words: Words) -> bool:
    """Whether a column holds words, none of which was meant as a number."""
    meant = [word for word in words.values if word.lower() not in MISSING]
    return bool(meant) and not any(map(looks_numeric, meant))


def written_numbers(words: Words) -> Array:
    """Return the number in each cell, (rows,), whatever its unit; NaN if it is not a number.

    >>> from opinionpool.tables.table import encode
    >>> written_numbers(encode(["0,5", "70 %", "x", None]))
    array([ 0.5, 70. ,  nan,  nan])
    """
    matches = [NUMBER.fullmatch(word) for word in words.values]
    numbers = [float(match[1].replace(",", ".")) if match else np.nan for match in matches]
    return words.expand(np.array(numbers, dtype=np.float64), np.nan)


def named_missing(table: Table, column: int, rules: NumberRules) -> npt.NDArray[np.bool_]:
    """Return the mask of cells with a word or number that the user declares missing, (rows,); False if blank."""
    if not rules.missing:
        return np.zeros(table.rows, dtype=bool)
    words, named = table.words(column), rules.missing_words - MISSING
    numbers = np.isin(written_numbers(words), rules.missing_numbers)
    own = np.array([word.lower() in named for word in words.values], dtype=np.bool_)
    return np.asarray(numbers | words.expand(own, False))
