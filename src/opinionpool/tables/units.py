"""Numbers in cells, as they are written, and their units: fractions, percentages, levels of a scale or odds.

The unit is decided for a column, never for a cell. A per cent sign marks its column as percentages, and then
every number in the column must carry one. A column without marks is read as fractions; if it has numbers above 1
they may be percentages or codes for no answer, and only the user knows which. Decimal commas are recognised
when no cell of the column has a decimal point. Odds are refused, since odds for and odds against look the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import ArgumentError, Note, OpinionPoolError, Remedy as Options
from opinionpool.findings import Place, Remedy, fault, finding
from opinionpool.names import name_key
from opinionpool.scales import ALL, OVERSHOOT, Scale, Spread, scale_of, shared_scales
from opinionpool.tables.table import Numbers, Table, Words, cell_fault, place
from opinionpool.text import listed, quoted, shown

MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "-", "--", "–", "—", ".", "n.a.", "k.a.", "k. a."})

# No-break and thin blanks stand before per cent signs in French and German.
GAP = r"\s\u00a0\u2007-\u2009\u202f"
NUMBER = re.compile(rf"([+-]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][+-]?[0-9]{{1,5}})?)[{GAP}]*(%?)", re.ASCII)
# Up to so many numbers may be small percentages as well as levels of a scale.
_FEW = 4
# A level of a scale written with the highest level, such as 4/5.
_OF = re.compile(r"([0-9]{1,2})\s*(?:/|of|out of)\s*([0-9]{1,2})", re.ASCII | re.IGNORECASE)
# Most that a sum over classes may differ from 1 by rounding, and least share of sums that do not.
_OFF, _MOST = 0.02, 0.9


@dataclass(frozen=True)
class NumberRules:
    """What the user says of numbers: units, decimal mark, words for no answer, and scales."""

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
        """The scale, if one and only one is given; else None."""
        found = {*self.scales.values()}
        return found.pop() if len(found) == 1 else None

    @property
    def missing_words(self) -> frozenset[str]:
        """All words that mean "no answer", usual ones and the user's, in lower case."""
        return MISSING | {word.strip().lower() for word in self.missing}

    @property
    def missing_numbers(self) -> list[float]:
        """The numbers among the words in `missing`, which stand for no answer."""
        matches = (NUMBER.fullmatch(word.strip()) for word in self.missing)
        return [float(match[1].replace(",", ".")) for match in matches if match]


def beyond_bounds(table: Table, column: int, values: Array, percent: bool, named: str | None) -> OpinionPoolError:
    """Return the error for numbers outside [0, 1], with the remedies that fit their kind.

    `percent` is whether they were read as percentages; `named` is the expert, if the column is one expert's.
    """
    far = (values < -OVERSHOOT) | (values > 1 + OVERSHOOT)
    row, count, words, name = int(far.argmax()), int(far.sum()), table.words(column), table.names[column]
    known, codes = Spread.of(values), words.codes[far]
    cell, kind, place = words.values[codes[0]], "other" if percent else known.kind, (table, row, column)
    outs: list[str] = []
    # A column most of whose numbers are probabilities is an expert's, a few cells of which are wrong.
    most, single = 2 * count > known.every, count == 1 < known.every - 1
    found: list[Mapping[str, object]] = [{"exclude": (named,)}] if most and named is not None else []
    if kind in {"percentages", "fractions and more"} and not single:
        outs.append("if the column holds percentages, say --percent")
        found = [{"percent": True}] if kind == "percentages" else []
    others = np.unique(codes)
    again = len(others) < count < known.every - count
    # A code comes again, or is the only number out of range: many different ones are no code.
    if np.isfinite(values[row]) and (again or len(others) == 1) and (percent or not _counts(values)):
        outs.append(f"if {cell} stands for no answer, say --missing-value {quoted(cell)}")
        missing = tuple(words.values[code] for code in others.tolist()[:5])
        found = [{"missing_values": missing}] if again or (most and not found) else found
    outs += [exclude_way(name, named)] if named is not None else []
    if single:
        # An option for one number would change all like it: the cell is what is wrong.
        outs, found = [f"correct the cell, or {outs[0]}" if outs else "correct the cell", *outs[1:]], []
    bounds = "0% and 100%" if percent else "0 and 1"
    return cell_fault("out-of-range", *place, found, count=count, bounds=bounds, out="; ".join(["", *outs]))


def _a_scale(
    place: tuple[Table, int, int], of: Mapping[str, str], ends: tuple[int, int], *ways: Options, out: str = ""
) -> OpinionPoolError:
    """Error for levels in the cell `place`; `of` has the scale by expert ("*": all), `ends` the extreme levels."""
    scales = list(dict.fromkeys(of.values()))
    who = {scale: listed([name for name, own in of.items() if own == scale], 4) for scale in scales}
    levels = scales[0] if len(scales) == 1 else " and ".join(f"{scale} ({who[scale]})" for scale in scales)
    halves, say = " and halves" if any("." in scale for scale in scales) else "", str(Remedy(ways[-1]))
    low, high = ends
    return cell_fault("a-scale", *place, ways, low=low, high=high, halves=halves, scale=levels, say=say, out=out)


def out_of(table: Table, column: int, named: str | None) -> OpinionPoolError | None:
    """Return the error for a column most of whose cells are levels such as 4/5; None for any other column."""
    words = table.words(column)
    found = {code: each for code, word in enumerate(words.values) if (each := _OF.fullmatch(word))}
    tops, levels = {int(each[2]) for each in found.values()}, {int(each[1]) for each in found.values()}
    top = tops.pop() if len(tops) == 1 and len(levels) > 1 else 0
    if 2 * len(found) < len(words.values) or not max(2, *levels, 2) <= top <= 10:
        return None
    low, row = min(*levels, 1), int(words.rows(next(iter(found)))[0])
    of = {named or ALL: f"{low}-{top}"}
    out = "" if named is None else f"; {exclude_way(table.names[column], named)}"
    return _a_scale((table, row, column), of, (min(levels), max(levels)), {"scale": of}, out=out)


def exclude_way(column: str, expert: str) -> str:
    """Return the advice to leave out `column` with --exclude if it is not an expert's."""
    return f"if column {shown(column)} is not an expert's, say --exclude {quoted(expert)}"


def _counts(values: Array) -> bool:
    """Whether values number rows, or count something, so that those above 1 are no codes for "no answer"."""
    present = values[~np.isnan(values)]
    outside = (present < 0) | (present > 1)
    if (present != np.round(present)).any():
        return False
    numbered = len(present) > 2 and outside.mean() > 0.5 and len(np.unique(present)) == len(present)
    return bool(numbered or (present.min() > 1 and present.max() > 100))


def units_of_rows(experts: Sequence[str], codes: Index, rules: NumberRules) -> npt.NDArray[np.int8] | None:
    """Return the unit of each row's expert, (rows,): 1 for per cent, 0 for fractions, -1 if none is given.

    None if no expert has a unit; `codes`, (rows,), are positions in `experts`, -1 for nobody.
    """
    if not set(experts) & set(rules.units):
        return None
    of = [int(rules.units[name] == "percent") if name in rules.units else -1 for name in experts]
    return np.append(np.array(of, dtype=np.int8), np.int8(-1))[codes]


class Written:
    """Kind and range of each expert's numbers as they are written (a `Spread`), to check units and scales."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._first: dict[str, tuple[Table, int, int]] = {}  # the cell of the first number beyond -1 and 1
        self._spreads: dict[str, Spread] = {}
        self._spelled: dict[str, str] = {}
        self._every = True  # whether no expert was left out

    def add(self, column: int, values: Array, who: Words, own: Sequence[bool], percent: bool) -> None:
        """Add `values`, a column's numbers, NaN where blank: those of the experts in `who` whom the mask `own` marks.

        If `percent`, experts with more than 5% of their numbers above 10 are left out, as these are no levels of a
        scale.
        """
        if len(who.values) > 1 and not ((values > 1 + OVERSHOOT) | (values < -1 - OVERSHOOT)).any():
            return
        able, codes = np.array(own), who.codes.astype(np.intp) + 1
        if percent:
            above, every = (
                np.bincount(codes[mask], minlength=len(able) + 1) for mask in (values > 10, values == values)
            )
            able &= (20 * above <= every)[1:]
            self._every &= bool(able[np.array(own)].all())
        order = np.argsort(codes, kind="stable") if able.any() and len(able) > 1 else np.arange(len(values))
        for code in np.flatnonzero(able).tolist():
            rows = order[slice(*np.searchsorted(codes, (code + 1, code + 2), sorter=order))]
            name = self._spelled.setdefault(name_key(who.values[code]), who.values[code])
            self._spreads[name] = self._spreads.get(name, Spread()) + Spread.of(values[rows])
            beyond = rows[np.abs(values[rows]) > 1 + OVERSHOOT]
            if len(beyond):
                self._first.setdefault(name, (self._table, int(beyond.min()), column))

    def check(self, *, columns: bool, every: bool, percent: bool) -> None:
        """Raise an error if numbers are levels or odds, or percentages of some experts and fractions of others.

        `columns` is whether each expert has a column, `every` whether the table has no further columns, `percent`
        whether the user says that all are percentages; a few numbers are then not taken for levels.
        """
        kinds = {name: each.kind for name, each in self._spreads.items()}
        percentages = [name for name, kind in kinds.items() if kind == "percentages"]
        few = _FEW if percent or percentages else 0
        levels = {name: each for name, each in self._spreads.items() if kinds[name] == "scale" and each.every > few}
        if levels:
            of, ends, first = shared_scales(levels), sum(levels.values(), Spread()).ends, next(iter(levels))
            # A long table's column has one scale, even if some of its experts use few levels.
            same = len(of) == len(kinds) or (not columns and all(each.whole for each in self._spreads.values()))
            if every and self._every and same and len({*of.values()}) == 1:
                of = {ALL: of[first]}
            way: Options = {"scale": of}
            if percentages and not percent:
                way = {**way, "units": dict.fromkeys(percentages, "percent")}
            ways = [{"exclude": tuple(levels)}, way] if columns and (percentages or not self._every) else [way]
            column = self._table.names[self._first[first][2]]
            out = f"; {exclude_way(column, first)}" if columns and ALL not in of else ""
            raise _a_scale(self._first[first], of, ends, *ways, out=out)
        odds = next((name for name, kind in kinds.items() if kind == "odds"), None)
        if odds is not None and not (percent or percentages):
            raise cell_fault("decimal-odds", *self._first[odds])
        if not percent:
            self._check_units(columns)

    def _check_units(self, columns: bool) -> None:
        """Raise an error if some experts gave percentages, others fractions; `columns`: whether each has a column."""
        able = {name: each for name, each in self._spreads.items() if each.low >= 0 and each.high <= 100}
        large = [name for name, each in able.items() if each.above > each.inside]
        small = [name for name, each in able.items() if each.inside and not each.above]
        if not large or not small:
            return
        ways: list[Options] = [{"units": dict.fromkeys(large, "percent")}]
        unit, exclude = f"--unit {_one(large)}=percent", ""
        if len(large) > len(small):
            ways = [{"percent": True, "units": dict.fromkeys(small, "fraction")}]
            unit = f"--percent --unit {_one(small)}=fraction"
        elif columns:
            exclude = f", or --exclude {_one(large)} if that is no expert"
            ways.append({"exclude": tuple(large)})
        about: dict[str, Any] = {"small": small, "large": large, "unit": unit, "exclude": exclude}
        raise cell_fault("units-differ", *self._first[large[0]], ways, **about)


def check_prior(table: Table, column: int, written: Array) -> None:
    """Raise an error if most of `written`, (rows,), the priors in a column without a unit, are above 1 (up to 100)."""
    known = Spread.of(written)
    if known.above > known.inside and known.high <= 100:
        name = table.names[column]
        way = Remedy({"units": {name: "percent"}})
        raise fault("prior-beyond-1", Place(table.name), [way], name=name, count=known.above)


def tiny_column(table: Table, column: int, by_name: bool) -> OpinionPoolError:
    """Return the error that asks if numbers up to 1 are percentages, as the header (`by_name`) or --percent says."""
    place, name = Place(table.name), table.names[column]
    fraction = Remedy({"units": {name: "fraction"}})
    if by_name:
        return fault("percent-by-name", place, [Remedy({"percent": True}), fraction], name=name)
    return fault("tiny-prior", place, [fraction, Remedy({"units": {name: "percent"}})], name=name)


def _one(names: Sequence[str]) -> str:
    return quoted(names[0]) if len(names) == 1 else "NAME"


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
    """Log of conversions in the cells of several columns, from which notes are made."""

    percent: list[str] = field(default_factory=list)  # columns of percentages
    comma: list[str] = field(default_factory=list)  # columns with decimal commas
    missing: int = 0  # number of cells with a word for no answer
    overshoot: int = 0  # number of rounding errors beyond 0 and 1
    tiny: list[str] = field(default_factory=list)  # columns of percentages with none above 1
    marked: list[str] = field(default_factory=list)  # columns whose numbers have per cent signs

    def notes(self) -> list[Note]:
        """Return one note for each kind of conversion made to cells, for example from per cent to probabilities."""
        return [
            *([finding("percent", names=self.percent)] if self.percent else []),
            *([finding("decimal-comma", names=self.comma)] if self.comma else []),
            *([finding("missing-words", count=self.missing)] if self.missing else []),
            *([finding("overshoot", count=self.overshoot)] if self.overshoot else []),
            *([finding("percent-tiny", names=self.tiny)] if self.tiny else []),
        ]


def looks_numeric(word: str) -> bool:
    """Whether a word was meant as a number, even one that cannot be read, such as a range.

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
    """Return a column of probabilities, in any unit, as fractions in [0, 1], (rows,), NaN where missing.

    `plain` is the column as `Table.numbers` gives it, `units` 1 for rows of percentages, 0 of fractions, -1 of neither;
    `named` is the expert of the column, if each expert has one.
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


def read_levels(table: Table, column: int, experts: Sequence[str], codes: Index, rules: NumberRules) -> Array | None:
    """Return a column as probabilities, (rows,): levels by their expert's scale, other experts' numbers as fractions.

    None if nobody has a scale; `codes`, (rows,), are positions in `experts`, -1 for nobody.
    """
    ways = [(scale_of(rules.scales, name), rules.units.get(name)) for name in experts]
    if not any(scale for scale, _ in ways):
        return None
    words, found = table.words(column), np.full(table.rows, np.nan)
    absent = np.array([word.lower() in rules.missing_words for word in words.values], dtype=bool)
    numbers = written_numbers(Words(np.arange(len(absent)), words.values))
    signed = np.array([word.endswith("%") for word in words.values], dtype=bool)
    for way in dict.fromkeys([*ways, (None, None)]):
        scale, unit = way
        if scale is None:
            percent = unmarked_percent(table.names[column], rules) if unit is None else unit == "percent"
            p = np.where(signed | percent, numbers / 100.0, numbers)
            p = np.where((p >= 0) & (p <= 1), p, np.nan)
        else:
            p = scale.probability([scale.place(word) for word in words.values])
        own = np.append(np.array([each == way for each in ways]), way == (None, None))[codes]
        wrong = own & words.expand(np.isnan(p) & ~absent, False)
        if wrong.any():
            raise _no_level(table, column, wrong, scale, experts[int(codes[int(wrong.argmax())])])
        found = np.where(own, words.expand(np.where(absent, np.nan, p), np.nan), found)
    return found


def _no_level(table: Table, column: int, wrong: Mask, scale: Scale | None, name: str) -> OpinionPoolError:
    """Error for cells that are no levels; words, or a single number that recurs, can be declared missing."""
    words, row, count = table.words(column), int(wrong.argmax()), int(wrong.sum())
    if scale is None:
        return cell_fault("no-level-of-any", table, row, column, count=count)
    bad = np.unique(words.codes[wrong]).tolist()
    # A number between levels is an answer, as the mean of several.
    low, high, *written = written_numbers(
        Words(np.arange(len(bad) + 2), [scale.levels[0], scale.levels[-1], *(words.values[code] for code in bad)])
    )
    able = [words.values[code] for code, number in zip(bad, written, strict=True) if not low < number < high]
    none = [word for word in able if not looks_numeric(word) or len(bad) == 1 < count]
    few = len(none) == len(bad) <= 5 and 4 * count <= words.counts.sum()
    ways = [{"missing_values": tuple(none)}] if few else []
    return cell_fault("no-level", table, row, column, ways, count, scale=str(scale), name=name)


def unmarked_percent(name: str, rules: NumberRules) -> bool:
    """Whether numbers without a per cent sign, in a column called `name`, are percentages."""
    if name in rules.units:
        return rules.units[name] == "percent"
    return rules.percent or bool(_PERCENT_NAME.search(name))


def _within_bounds(table: Table, column: int, values: Array, percent: bool, log: Coerced, named: str | None) -> Array:
    """Return `values`, with rounding errors beyond 0 and 1 clipped; raise an error if a value is further outside."""
    outside = (values < 0) | (values > 1)
    if not outside.any():
        return values
    if ((values < -OVERSHOOT) | (values > 1 + OVERSHOOT)).any():
        raise beyond_bounds(table, column, values, percent, named)
    log.overshoot += int(outside.sum())
    return np.clip(values, 0.0, 1.0)


def _read_words(table: Table, column: int, rules: NumberRules, log: Coerced, named: str | None) -> tuple[Array, bool]:
    """Return the numbers in a column as they are written, and whether they have per cent signs."""
    words = table.words(column)
    missing = rules.missing_words
    numbers = np.full(len(words.values), np.nan)
    absent = np.zeros(len(words.values) + 1, dtype=bool)
    # The first word in each way of writing: with a per cent sign or without, with a comma, with a point.
    marks: dict[str, int] = {}
    for code, word in enumerate(words.values):
        if word.lower() in missing:
            absent[code] = True
            continue
        match = NUMBER.fullmatch(word)
        if match is None:
            raise _not_a_number(table, column, words, missing, named)
        for way in (match[2] or "plain", *{",", "."} & {*match[1]}):
            marks.setdefault(way, code)
        numbers[code] = float(match[1].replace(",", "."))
    _check_marks(table, column, words, marks, rules)
    unit = rules.units.get(table.names[column])
    percent = "%" in marks
    if unit == "fraction" and {"%", "plain"} <= {*marks}:
        signed = np.array([word.endswith("%") for word in words.values])
        numbers, percent = np.where(signed, numbers / 100.0, numbers), False
    if "," in marks:
        log.comma.append(table.names[column])
    log.missing += int(absent[words.codes].sum())
    return words.expand(numbers, np.nan), percent


def _not_a_number(
    table: Table, column: int, words: Words, missing: frozenset[str], named: str | None
) -> OpinionPoolError:
    """Return the error for cells that are not numbers; it quotes the first such cell and the number of cells."""
    if scored := out_of(table, column, named):
        return scored
    bad = [code for code, word in enumerate(words.values) if word.lower() not in missing and not NUMBER.fullmatch(word)]
    code, word = bad[0], words.values[bad[0]]
    what = "is not a number: write a fraction (0.45) or a percentage (45%)"
    if _INFINITE.fullmatch(word):
        what = "is not between 0 and 1"
    elif _ODDS.fullmatch(word):
        what = "looks like odds, which may be for or against: write the probability instead"
    # "<1%" and "about 40%" are answers.
    answers = any(looks_numeric(re.sub(r"^[^\W\d]+\.?\s+", "", words.values[each])) for each in bad)
    few = len(bad) <= 5 and 2 * len(bad) <= len(words.values)
    ways: list[Mapping[str, object]] = [] if named is None else [{"exclude": (named,)}]
    blank = {"missing_values": tuple(words.values[each] for each in bad)} if few else {}
    if few:
        ways = [] if answers else [blank]
    row, count = int(words.rows(code)[0]), int(words.counts[bad].sum())
    out = "" if answers else f"; if it stands for no answer, leave the cell empty or say --missing-value {quoted(word)}"
    out += "" if named is None else f"; {exclude_way(table.names[column], named)}"
    return cell_fault("no-number", table, row, column, ways, count, what=what, out=out, past=blank)


def _check_marks(table: Table, column: int, words: Words, marks: Mapping[str, int], rules: NumberRules) -> None:
    """Raise an error if only some numbers of a column have %, or decimal marks differ; `marks` has a code by mark."""
    name = table.names[column]

    def cells(*ways: str) -> dict[str, Any]:
        codes = [marks[way] for way in ways]
        places = [f"{shown(words.values[code])} ({place(table, int(words.rows(code)[0]))})" for code in codes]
        return {"name": name, "one": places[0], "other": places[1]}

    if {"%", "plain"} <= {*marks} and name not in rules.units:
        ways = [Remedy({"units": {name: unit}}) for unit in ("percent", "fraction")]
        raise fault("mixed-signs", None, ways, **cells("%", "plain"))
    if {",", "."} <= {*marks} and not _mark_by_file(table, words):
        raise fault("mixed-decimals", None, (), **cells(",", "."))
    wrong = marks.get({".": ",", ",": "."}.get(rules.decimal or "", ""))
    if wrong is not None:
        row = int(words.rows(wrong)[0])
        raise cell_fault("other-decimal", table, row, column, [{"decimal": None}], mark=rules.decimal)


def _mark_by_file(table: Table, words: Words) -> bool:
    """Whether each of several files has only decimal commas, or only decimal points."""
    files = table.files()
    if files is None:
        return False
    marked = [words.expand(np.array([mark in word for word in words.values]), False) for mark in ",."]
    return not {*files.codes[marked[0]].tolist()} & {*files.codes[marked[1]].tolist()}


def add_up(sums: Array, total: float = 1.0) -> bool:
    """Whether nearly all `sums` over classes (M,) are `total`, up to rounding; False if there are no sums."""
    return bool(len(sums)) and float((np.abs(sums / total - 1.0) <= _OFF).mean()) >= _MOST


def half_units(words: Words, percent: bool = False) -> Array:
    """Return half a unit of the last written digit of each cell, as a fraction; 0 for whole fractions and blanks.

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
    """Mask (rows,) of cells with a word or number that the user has declared missing; blanks are False."""
    if not rules.missing:
        return np.zeros(table.rows, dtype=bool)
    words, named = table.words(column), rules.missing_words - MISSING
    numbers = np.isin(written_numbers(words), rules.missing_numbers)
    own = np.array([word.lower() in named for word in words.values], dtype=np.bool_)
    return np.asarray(numbers | words.expand(own, False))
