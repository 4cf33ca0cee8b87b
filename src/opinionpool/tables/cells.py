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

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import ArgumentError, CellError, Note, Remedy
from opinionpool.scales import Scale, scale_of
from opinionpool.tables.table import Numbers, Table, Words, cell_error, place
from opinionpool.text import listed, quoted, shown

MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "-", "--", "–", "—", "."})

# No-break and thin blanks stand before per cent signs in French and German.
_GAP = r"\s\u00a0\u2007-\u2009\u202f"
_NUMBER = re.compile(rf"([+-]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][+-]?[0-9]{{1,5}})?)[{_GAP}]*(%?)", re.ASCII)
_NUMERIC_LOOK = re.compile(rf"[{_GAP}<>~≈=+\-−]*[.,]?[0-9][0-9.,:/%<>~≈+\-−eE{_GAP}]*(?:inf(?:inity)?)?", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_ODDS = re.compile(r"\d+(?:[.,]\d+)?\s*[:/]\s*\d+(?:[.,]\d+)?")
# Where a number stands before the sign, it is what an event is about: "10%-20%".
_PERCENT_NAME = re.compile(r"(?<!\d)%|(?:^|[\W_])(?:percent|percentage|pct)(?:$|[\W_])", re.IGNORECASE)

# What rounding to single precision may add to 1: softmax outputs say 1.0000001.
_OVERSHOOT = 1e-6


@dataclass(frozen=True)
class NumberRules:
    """How numbers are written, as far as the user specified."""

    percent: bool = False  # whether unmarked numbers are percentages
    decimal: str | None = None  # {None, ".", ","}; the decimal mark; None to decide by column
    missing: tuple[str, ...] = ()  # words or numbers that mean "no answer", besides `MISSING`
    units: Mapping[str, str] = field(default_factory=dict)  # "percent" or "fraction" by expert or column
    scales: Mapping[str, Scale] = field(default_factory=dict)  # by expert or column, or "*" for all

    def __post_init__(self) -> None:
        if self.decimal not in {None, ".", ","}:
            raise ArgumentError(f"the decimal mark is '.' or ',', and not {self.decimal!r}")

    @property
    def scale(self) -> Scale | None:
        """The one scale that is given, None if there is none or several."""
        found = {*self.scales.values()}
        return found.pop() if len(found) == 1 else None

    @property
    def missing_words(self) -> frozenset[str]:
        """Every word that means "no answer", in lower case."""
        return MISSING | {word.strip().lower() for word in self.missing}

    @property
    def missing_numbers(self) -> list[float]:
        """Those of `missing` that are numbers."""
        matches = (_NUMBER.fullmatch(word.strip()) for word in self.missing)
        return [float(match[1].replace(",", ".")) for match in matches if match]


@dataclass
class Coerced:
    """What was done to the cells of many columns, to be reported once."""

    percent: list[str] = field(default_factory=list)
    comma: list[str] = field(default_factory=list)
    missing: int = 0
    overshoot: int = 0
    tiny: list[str] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)  # columns whose numbers have per cent signs

    def notes(self) -> list[Note]:
        """One note for each kind of thing done."""
        found = []
        if self.percent:
            found.append(Note("percent", f"{_columns(self.percent)} read as percentages", len(self.percent)))
        if self.comma:
            found.append(Note("decimal-comma", f"{_columns(self.comma)} read with decimal commas", len(self.comma)))
        if self.missing:
            template = "{count:cell} with a word or number that means no answer"
            found.append(Note.of("missing-words", template, self.missing))
        if self.overshoot:
            template = "{count} probabilities outside [0, 1] by rounding (1e-6 at most) taken as 0 or 1"
            found.append(Note.of("overshoot", template, self.overshoot))
        if self.tiny:
            text = f"no number in {_columns(self.tiny)} is above 1, so nothing there is above 1%: is --percent right?"
            found.append(Note("percent-tiny", text, len(self.tiny), serious=True))
        return found


def _columns(names: Sequence[str]) -> str:
    return f"{'column' if len(names) == 1 else 'columns'} {listed(names, 5)}"


def looks_numeric(word: str) -> bool:
    """Whether a word was meant as a number, readable or not.

    >>> [looks_numeric(word) for word in ("0.5", "3:1", "<1%", "rain", "Q1", "2 goals")]
    [True, True, True, False, False, False]
    """
    return bool(_NUMERIC_LOOK.fullmatch(word) or _INFINITE.fullmatch(word))


def read_probabilities(
    table: Table,
    column: int,
    plain: Numbers | None,
    rules: NumberRules,
    log: Coerced,
    hint: str = "",
    remedies: Sequence[Remedy] = (),
    units: npt.NDArray[np.int8] | None = None,
) -> Array:
    """One column as fractions in [0, 1].

    Parameters
    ----------
    table : Table
    column : int
        Its position.
    plain : Numbers or None
        The column as `Table.numbers` gives it.
    rules : NumberRules
    log : Coerced
        Takes what was done to the cells.
    hint, remedies : str and sequence of mapping
        Further ways out, in words and as options, for errors about cells that hold no probability.
    units : ndarray of int, shape (rows,), optional
        1 where a number without a per cent sign is a percentage, 0 where it is a fraction, -1 where it is as all are.

    Returns
    -------
    ndarray, shape (rows,)
        NaN where there is no answer.

    Raises
    ------
    CellError
        Names the row, the column, the cell, and the ways out.
    """
    if plain is None or (rules.decimal == "," and table.is_text(column)):
        values, marked = _read_words(table, column, rules, log, hint, remedies)
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
                raise _ambiguous_percent(table, name)
            log.tiny.append(name)
        values = values / 100.0
        log.percent.append(name)
    return _within_bounds(table, column, values, percent, log, hint, remedies)


def read_levels(
    table: Table, column: int, experts: Sequence[str], codes: Index, rules: NumberRules
) -> tuple[Array, Mask] | None:
    """What levels of experts' scales in one column are taken as, (rows,), and which rows hold some; None if none do.

    Parameters
    ----------
    experts : sequence of str
    codes : ndarray of int, shape (rows,)
        The expert of each row, -1 for nobody.

    Raises
    ------
    CellError
        Names the cell, whose it is, and the scale that it is no level of.
    """
    scales = [scale_of(rules.scales, name) for name in experts]
    if not any(scales):
        return None
    words, missing = table.words(column), rules.missing_words
    values, scaled = np.full(table.rows, np.nan), np.zeros(table.rows, dtype=bool)
    for scale in dict.fromkeys(each for each in scales if each is not None):
        own = np.append(np.array([each == scale for each in scales]), False)[codes]
        absent = [word.strip().lower() in missing for word in words.values]
        places = np.array([-1 if none else scale.place(word) for word, none in zip(words.values, absent, strict=True)])
        wrong = own & words.expand((places < 0) & ~np.array(absent, dtype=bool), False)
        if wrong.any():
            row = int(wrong.argmax())
            cell, name = words.values[words.codes[row]], experts[int(codes[row])]
            problem = (
                f"{shown(cell)} is no level of the scale {scale} of {shown(name)}; say --scale {quoted(name)}=SCALE if "
                f"it has another, or --missing-value {quoted(cell)} if that is no answer"
            )
            raise cell_error(table, row, column, problem, count=int(wrong.sum()))
        values = np.where(own, words.expand(scale.probability(places), np.nan), values)
        scaled |= own
    return values, scaled


def unmarked_percent(name: str, rules: NumberRules) -> bool:
    """Whether unmarked numbers in a column of this name are percentages."""
    if name in rules.units:
        return rules.units[name] == "percent"
    return rules.percent or bool(_PERCENT_NAME.search(name))


def _ambiguous_percent(table: Table, name: str) -> CellError:
    return CellError(
        f"{table.name}: column {shown(name)} is about per cent by its name, and no number in it is above 1; "
        f"say --percent if 0.5 means 0.5%, --unit {quoted(name)}=fraction if it means 50%",
        remedies=[{"percent": True}, {"units": {name: "fraction"}}],
    )


def _within_bounds(
    table: Table, column: int, values: Array, percent: bool, log: Coerced, hint: str, remedies: Sequence[Remedy]
) -> Array:
    """Values in [0, 1], those beyond it by rounding moved to its ends."""
    outside = (values < 0) | (values > 1)
    if not outside.any():
        return values
    far = (values < -_OVERSHOOT) | (values > 1 + _OVERSHOOT)
    if far.any():
        row = int(far.argmax())
        words = table.words(column)
        cell = words.values[words.codes[row]]
        problem = f"{cell} is not between {'0% and 100%' if percent else '0 and 1'}"
        inside, count = values[~np.isnan(values)], int(far.sum())
        if not percent and _is_scale(inside):
            span = f"{inside.min():g} to {inside.max():g}"
            # The shortest usual scale that has them all.
            scale = f"{min(int(inside.min()), 1)}-{next(top for top in (2, 3, 4, 5, 7, 10) if top >= inside.max())}"
            own = scale if not hint else f"{table.names[column]}={scale}"
            text = f"{problem}: whole numbers from {span} are a scale, and no percentages"
            ways: list[Remedy] = [{"scale": {own.rpartition("=")[0] or "*": scale}}]
            raise cell_error(
                table, row, column, f"{text}; if levels are {scale}, say --scale {quoted(own)}", remedies=ways
            )
        if not percent and _are_odds(inside):
            odds = "numbers from 1 on, few of them above 20, may be decimal odds, which are not read: write 1/odds"
            raise cell_error(table, row, column, f"{problem}: {odds}; if they are percentages, say --percent")
        outs, single = [], count == 1 < len(inside) - 1
        # A column most of whose numbers are probabilities is an expert's, a few cells of which are wrong.
        found = [*remedies] if 2 * count > len(inside) else []
        if not percent and not single and 1 < inside.max() <= 100 and inside.min() >= 0:
            outs.append("if the column holds percentages, say --percent")
            found = [{"percent": True}] if _percentages(inside) else []
        if np.isfinite(values[row]) and (percent or not _counts(values)):
            outs.append(f"if {cell} stands for no answer, say --missing-value {quoted(cell)}")
            others = np.unique(words.codes[far])
            codes = tuple(words.values[code] for code in others.tolist()[:5])
            again = len(others) < count < len(inside) - count
            found = [{"missing_values": codes}] if again or (2 * count > len(inside) and not found) else found
        outs += [hint] if hint else []
        if single:
            # An option for one number would change all like it: the cell is what is wrong.
            outs, found = [f"correct the cell, or {outs[0]}" if outs else "correct the cell", *outs[1:]], []
        raise cell_error(table, row, column, "; ".join([problem, *outs]), remedies=found, count=count)
    log.overshoot += int(outside.sum())
    return np.clip(values, 0.0, 1.0)


def _is_scale(values: Array) -> bool:
    """Whether numbers are whole and within 0 to 10, some of them above 1: levels of a scale."""
    return bool((values == np.round(values)).all() and values.min() >= 0 and 1 < values.max() <= 10)


def _are_odds(values: Array) -> bool:
    """Whether numbers are all at least 1, broken, and few of them above 20, as decimal odds are."""
    broken = (values != np.round(values)).any()
    return bool(len(values) > 1 and broken and values.min() >= 1 and (values > 20).mean() <= 0.1)


def _percentages(values: Array) -> bool:
    """Whether numbers up to 100 are likely percentages, and no codes among fractions: more are above 1 than within."""
    return bool((values > 1).sum() > ((values > 0) & (values < 1)).sum())


def _counts(values: Array) -> bool:
    """Whether a column with numbers outside [0, 1] numbers or counts something, so that these are no codes in it."""
    present = values[~np.isnan(values)]
    outside = (present < 0) | (present > 1)
    if (present != np.round(present)).any():
        return False
    numbered = len(present) > 2 and outside.mean() > 0.5 and len(np.unique(present)) == len(present)
    return bool(numbered or (present.min() > 1 and present.max() > 100))


@dataclass
class _Marks:
    """A word with each way of writing numbers, where the column has one."""

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


def _read_words(
    table: Table, column: int, rules: NumberRules, log: Coerced, hint: str, remedies: Sequence[Remedy]
) -> tuple[Array, bool]:
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
        match = _NUMBER.fullmatch(word)
        if match is None:
            raise _not_a_number(table, column, words, missing, hint, remedies)
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
    table: Table, column: int, words: Words, missing: frozenset[str], hint: str, remedies: Sequence[Remedy]
) -> CellError:
    """The error for the first word that is no number, and how many such cells there are."""
    bad = [
        code for code, word in enumerate(words.values) if word.lower() not in missing and not _NUMBER.fullmatch(word)
    ]
    code, word = bad[0], words.values[bad[0]]
    if _INFINITE.fullmatch(word):
        problems = [f"{shown(word)} is not between 0 and 1"]
    elif _ODDS.fullmatch(word):
        problems = [f"{shown(word)} looks like odds, which may be for or against: write the probability instead"]
    else:
        problems = [f"{shown(word)} is not a number: write a fraction (0.45) or a percentage (45%)"]
    problems.append(f"if it stands for no answer, leave the cell empty or say --missing-value {quoted(word[:60])}")
    problem = "; ".join([*problems, *([hint] if hint else [])])
    few = len(bad) <= 5 and 2 * len(bad) <= len(words.values) and not _ODDS.fullmatch(word)
    blank: tuple[Remedy, ...] = (
        ({"missing_values": tuple(words.values[each] for each in bad)},) if few else tuple(remedies)
    )
    count = int(words.counts[bad].sum())
    return cell_error(table, int(words.rows(code)[0]), column, problem, remedies=blank, count=count)


def _check_marks(table: Table, column: int, words: Words, marks: _Marks, rules: NumberRules) -> None:
    """Raise unless the column is written in one way."""

    def clash(first: int, second: int, rule: str, remedies: Sequence[Remedy] = ()) -> CellError:
        places = [f"{shown(words.values[code])} ({place(table, int(words.rows(code)[0]))})" for code in (first, second)]
        text = f"column {shown(table.names[column])} mixes {places[0]} and {places[1]}: {rule}"
        return CellError(text, remedies=remedies)

    name = table.names[column]
    if marks.percent is not None and marks.plain is not None and name not in rules.units:
        ways = f"say --unit {quoted(name)}=percent if what has no sign is per cent, too, --unit {quoted(name)}=fraction"
        remedies: list[Remedy] = [{"units": {name: unit}} for unit in ("percent", "fraction")]
        raise clash(marks.percent, marks.plain, f"{ways} if it is a fraction", remedies)
    if marks.comma is not None and marks.point is not None:
        raise clash(marks.comma, marks.point, "a column has decimal commas or decimal points, not both")
    wrong = {".": marks.comma, ",": marks.point, None: None}[rules.decimal]
    if wrong is not None:
        row = int(words.rows(wrong)[0])
        wording = f"{shown(words.values[wrong])} does not have the decimal mark {rules.decimal!r} that was named"
        raise cell_error(table, row, column, wording, remedies=[{"decimal": None}])


def half_units(words: Words, percent: bool = False) -> Array:
    """Half a unit of the last written digit of each cell, as a fraction; 0 for whole fractions and blanks.

    >>> from opinionpool.tables.table import encode
    >>> half_units(encode(["0.33", "1", "7.5%", "1e-3"]))
    array([0.005 , 0.    , 0.0005, 0.0005])
    """
    units = np.zeros(len(words.values))
    for code, word in enumerate(words.values):
        match = _NUMBER.fullmatch(word)
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
    """Words as the numbers that they write, whatever their units; NaN for others.

    >>> from opinionpool.tables.table import encode
    >>> written_numbers(encode(["0,5", "70 %", "x", None]))
    array([ 0.5, 70. ,  nan,  nan])
    """
    matches = [_NUMBER.fullmatch(word) for word in words.values]
    numbers = [float(match[1].replace(",", ".")) if match else np.nan for match in matches]
    return words.expand(np.array(numbers, dtype=np.float64), np.nan)


def named_missing(table: Table, column: int, rules: NumberRules) -> npt.NDArray[np.bool_]:
    """Where a column has a word or number that the user calls no answer, and no blank, (rows,)."""
    if not rules.missing:
        return np.zeros(table.rows, dtype=bool)
    words, named = table.words(column), rules.missing_words - MISSING
    numbers = np.isin(written_numbers(words), rules.missing_numbers)
    own = np.array([word.lower() in named for word in words.values], dtype=np.bool_)
    return np.asarray(numbers | words.expand(own, False))
