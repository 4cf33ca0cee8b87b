"""What numbers are: fractions, percentages, levels of a scale or odds, by one rule, and whose are which."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.errors import ArgumentError, Note, OpinionPoolError
from opinionpool.findings import Place, Remedy, fault, finding
from opinionpool.scales import ALL, Scale
from opinionpool.tables.table import Table, Words, cell_fault
from opinionpool.text import listed, quoted, shown

MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "-", "--", "–", "—", ".", "n.a.", "k.a.", "k. a."})

# No-break and thin blanks stand before per cent signs in French and German.
GAP = r"\s\u00a0\u2007-\u2009\u202f"
NUMBER = re.compile(rf"([+-]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][+-]?[0-9]{{1,5}})?)[{GAP}]*(%?)", re.ASCII)
# What rounding to single precision may add to 1: softmax outputs say 1.0000001.
OVERSHOOT = 1e-6
# So many numbers of exactly 1, and none above, are no percentages where those of others are.
_ONES = 3
# Few of the odds in a column are above this.
_LONG_ODDS = 20
# The last levels of usual scales.
_TOPS = (1, 2, 3, 4, 5, 7, 10)
# A level written with the last one, such as 4/5.
_OF = re.compile(r"([0-9]{1,2})\s*(?:/|of|out of)\s*([0-9]{1,2})", re.ASCII | re.IGNORECASE)


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
        """The numbers in `missing`."""
        matches = (NUMBER.fullmatch(word.strip()) for word in self.missing)
        return [float(match[1].replace(",", ".")) for match in matches if match]


@dataclass(frozen=True)
class Spread:
    """Summary of written numbers: their count, how many are above 1, within 0 and 1 and long odds, and their range."""

    every: int = 0
    above: int = 0
    inside: int = 0
    long: int = 0
    low: float = np.inf
    high: float = -np.inf
    whole: bool = True  # whether all are integers
    levels: tuple[int, ...] = (0,) * 11  # how many are 0, 1, ... 10
    none: int = 0  # how many are -1, which stands for no answer in many tables

    @classmethod
    def of(cls, values: Array) -> Spread:
        """Return the spread of numbers, (N,); NaN where there is none."""
        known = values[~np.isnan(values)]
        if not len(known):
            return cls()
        above, inside = int((known > 1 + OVERSHOOT).sum()), int(((known > 0) & (known < 1)).sum())
        integers = known[known == np.round(known)]
        small = integers[(integers >= 0) & (integers <= 10)].astype(np.intp)
        levels, none = tuple(np.bincount(small, minlength=11).tolist()), int((known == -1).sum())
        whole, long = len(integers) == len(known), int((known > _LONG_ODDS).sum())
        return cls(len(known), above, inside, long, float(known.min()), float(known.max()), whole, levels, none)

    def __add__(self, other: Spread) -> Spread:
        low, high = min(self.low, other.low), max(self.high, other.high)
        every, above = self.every + other.every, self.above + other.above
        inside, long = self.inside + other.inside, self.long + other.long
        levels = tuple(a + b for a, b in zip(self.levels, other.levels, strict=True))
        return Spread(every, above, inside, long, low, high, self.whole and other.whole, levels, self.none + other.none)

    @property
    def kind(self) -> str:
        """Kind of numbers, by their spread.

        {"none", "fractions", "scale": levels from 0 or 1 to 10 at most but for strays, "odds": decimal ones,
        "percentages": more than half of those that are not whole fractions are above 1, "fractions and more": some are
        beyond 1, "other"}
        """
        if not self.above:
            return "none" if not self.every else "fractions" if self.low >= 0 else "other"
        if self._strays <= self._few and any(self.levels[2:]):
            return "scale"
        if self.every > 1 and not self.whole and self.low >= 1 and self.long <= 0.1 * self.every:
            return "odds"
        if self.low < 0 or self.high > 100:
            return "other"
        return "percentages" if self.above > self.inside else "fractions and more"

    @property
    def _strays(self) -> int:
        """How many numbers are no levels."""
        return self.every - self.none - sum(self.levels)

    @property
    def _few(self) -> int:
        """How many numbers may be mistakes."""
        return min(self.every // 20, max(1, self.every // 100))

    @property
    def ends(self) -> tuple[int, int]:
        """The lowest and the highest level, without a few beyond one that nobody uses."""
        used = [level for level, count in enumerate(self.levels) if count]
        left = [each for each in used if sum(self.levels[each:]) + self._strays > self._few]
        last = max(left, default=used[0])
        return used[0], next((level - 1 for level in range(last, used[-1]) if level not in used), used[-1])

    @property
    def scale(self) -> str:
        """The shortest usual scale that has all levels."""
        low, high = self.ends
        return f"{min(low, 1)}-{next(top for top in _TOPS if top >= high and top > low)}"


def shared_scales(spreads: Mapping[str, Spread]) -> dict[str, str]:
    """The scale of each judge: the shortest usual one of all who use a level beyond its middle.

    >>> spreads = {"ann": Spread.of(np.array([1.0, 5.0])), "bob": Spread.of(np.array([2.0, 3.0]))}
    >>> shared_scales({**spreads, "cyd": Spread.of(np.array([2.0, 9.0]))})
    {'ann': '1-5', 'bob': '1-5', 'cyd': '1-10'}
    """
    found: dict[str, str] = {}
    left = dict(spreads)
    while left:
        scale = sum(left.values(), Spread()).scale
        own = [name for name, each in left.items() if 2 * each.ends[1] > int(scale.partition("-")[2])]
        found |= dict.fromkeys(own or list(left), scale)
        left = {name: each for name, each in left.items() if name not in found}
    return {name: found[name] for name in spreads}


def beyond_bounds(table: Table, column: int, values: Array, percent: bool, named: str | None) -> OpinionPoolError:
    """The error for numbers beyond 0 and 1, with the ways out that their kind leaves.

    `percent` is whether they were read as percentages; `named` is the expert that the column is, if it is one's.
    """
    far = (values < -OVERSHOOT) | (values > 1 + OVERSHOOT)
    row, count, words, name = int(far.argmax()), int(far.sum()), table.words(column), table.names[column]
    known, codes = Spread.of(values), words.codes[far]
    cell = words.values[codes[0]]
    kind = "other" if percent else known.kind
    place = (table, row, column)
    if kind == "scale":
        return a_scale(*place, {named or ALL: known.scale}, known.ends, named is not None)
    if kind == "odds":
        return cell_fault("decimal-odds", *place)
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


def a_scale(
    table: Table, row: int, column: int, of: Mapping[str, str], ends: tuple[int, int], columns: bool
) -> OpinionPoolError:
    """The error for levels of scales, by expert or of all as "*"; `columns` is whether each expert has a column."""
    scales = list(dict.fromkeys(of.values()))
    who = {scale: listed([name for name, own in of.items() if own == scale], 4) for scale in scales}
    levels = scales[0] if len(scales) == 1 else " and ".join(f"{scale} ({who[scale]})" for scale in scales)
    out = f"; {exclude_way(table.names[column], next(iter(of)))}" if columns and ALL not in of else ""
    return cell_fault("a-scale", table, row, column, [{"scale": of}], low=ends[0], high=ends[1], scale=levels, out=out)


def out_of(table: Table, column: int, named: str | None) -> OpinionPoolError | None:
    """The error for a column most of whose cells are a level with the last one, such as 4/5; None for another."""
    words = table.words(column)
    found = {code: each for code, word in enumerate(words.values) if (each := _OF.fullmatch(word))}
    tops, levels = {int(each[2]) for each in found.values()}, {int(each[1]) for each in found.values()}
    top = tops.pop() if len(tops) == 1 and len(levels) > 1 else 0
    if 2 * len(found) < len(words.values) or not max(2, *levels, 2) <= top <= 10:
        return None
    low, row = min(*levels, 1), int(words.rows(next(iter(found)))[0])
    ends = min(levels), max(levels)
    return a_scale(table, row, column, {named or ALL: f"{low}-{top}"}, ends, named is not None)


def exclude_way(column: str, expert: str) -> str:
    """Return the advice to exclude a column that has no forecasts."""
    return f"if column {shown(column)} is not an expert's, say --exclude {quoted(expert)}"


def _counts(values: Array) -> bool:
    """Whether a column with numbers outside [0, 1] numbers or counts something, so that these are no codes in it."""
    present = values[~np.isnan(values)]
    outside = (present < 0) | (present > 1)
    if (present != np.round(present)).any():
        return False
    numbered = len(present) > 2 and outside.mean() > 0.5 and len(np.unique(present)) == len(present)
    return bool(numbered or (present.min() > 1 and present.max() > 100))


def units_of_rows(experts: Sequence[str], codes: Index, rules: NumberRules) -> npt.NDArray[np.int8] | None:
    """Whether the number in each row is a percentage, 1, or a fraction, 0, by its expert, -1 where nobody says it.

    None if that is so in all rows; codes of experts are -1 for nobody.
    """
    if not set(experts) & set(rules.units):
        return None
    of = [int(rules.units[name] == "percent") if name in rules.units else -1 for name in experts]
    return np.append(np.array(of, dtype=np.int8), np.int8(-1))[codes]


class Written:
    """Spread of the numbers of each expert or column as they are written, before units are known."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._first: dict[str, tuple[int, int]] = {}  # the cell of the first number above 1
        self._spreads: dict[str, Spread] = {}

    def add(self, name: str, values: Array, column: int, rows: Index | None = None) -> None:
        """Take in numbers of a column, NaN where there is none, in some rows, or in all."""
        self._spreads[name] = self._spreads.get(name, Spread()) + Spread.of(values)
        above = np.flatnonzero(values > 1 + OVERSHOOT)
        if len(above):
            self._first.setdefault(name, (int(above[0] if rows is None else rows[above].min()), column))

    def check(self, *, columns: bool, every: bool = True) -> None:
        """Refuse levels of scales, and percentages of some beside fractions of others.

        `columns` is whether each expert has a column, `every` whether these are all that the table has.
        """
        kinds = {name: each.kind for name, each in self._spreads.items()}
        if "percentages" not in kinds.values() and "scale" in kinds.values():
            own = {name: self._spreads[name] for name, kind in kinds.items() if kind == "scale"}
            of, ends, first = shared_scales(own), sum(own.values(), Spread()).ends, next(iter(own))
            if every and len(own) == len(kinds) and len({*of.values()}) == 1:
                of = {ALL: of[first]}
            raise a_scale(self._table, *self._first[first], of, ends, columns)
        able = {name: each for name, each in self._spreads.items() if each.low >= 0 and each.high <= 100}
        large = [name for name, each in able.items() if each.above > each.inside]
        small = [name for name, each in able.items() if each.inside and not each.above]
        if not large or not small:
            return
        few = large if len(large) <= len(small) else small
        ways: list[Mapping[str, object]] = [{"units": dict.fromkeys(large, "percent")}]
        if few is small:
            ways = [{"percent": True, "units": dict.fromkeys(small, "fraction")}]
        unit = f"--unit {_one(large)}=percent" if few is large else f"--percent --unit {_one(small)}=fraction"
        exclude = ""
        if columns and few is large:
            exclude = f", or --exclude {_one(large)} if that is no expert"
            ways.append({"exclude": tuple(large)})
        raise cell_fault(
            "units-differ",
            self._table,
            *self._first[large[0]],
            ways,
            small=small,
            large=large,
            unit=unit,
            exclude=exclude,
        )


def check_experts(table: Table, column: int, written: Array, experts: Words, rules: NumberRules) -> None:
    """Refuse percentages by some experts beside fractions by others in one column, (rows,) as it is written."""
    if not (written > 1).any():
        return
    found = Written(table)
    order = np.argsort(experts.codes, kind="stable")
    bounds = np.searchsorted(experts.codes[order], np.arange(len(experts.values) + 1))
    for i, name in enumerate(experts.values):
        if name not in rules.units:
            rows = order[bounds[i] : bounds[i + 1]]
            found.add(name, written[rows], column, rows)
    found.check(columns=False)


def check_percent(
    experts: Sequence[str], above: Index, inside: Index, ones: Index, every: Index, rules: NumberRules
) -> None:
    """Raise if an expert's percentages are all at most 1% and another expert's are not.

    Numbers above 1%, within 0 and 1%, of exactly 1%, and all, by expert.
    """
    if not rules.percent or not (above > 0).any():
        return
    tiny = (every > 0) & (above == 0) & ((inside > 0) | (ones >= _ONES))
    odd = [experts[i] for i in np.flatnonzero(tiny).tolist() if experts[i] not in rules.units]
    if odd:
        ways = [Remedy({"units": dict.fromkeys(odd, unit)}) for unit in ("fraction", "percent")]
        raise fault("tiny-percentages", None, ways, names=odd, one=_one(odd))


def small_percent_notes(experts: Sequence[str], above: Index, inside: Index, rules: NumberRules) -> list[Note]:
    """A note on experts no more of whose percentages are above 1% than between 0 and 1%; arguments as above."""
    mixed = np.flatnonzero((above > 0) & (inside >= above)).tolist() if rules.percent else []
    names = [experts[i] for i in mixed if experts[i] not in rules.units]
    return [finding("small-percentages", names=names)] if names else []


def check_prior(table: Table, column: int, written: Array) -> None:
    """Refuse priors that are percentages beside forecasts that have been read as they are; NaN where there is none."""
    known = Spread.of(written)
    if known.above > known.inside and known.high <= 100:
        name = table.names[column]
        way = Remedy({"units": {name: "percent"}})
        raise fault("prior-beyond-1", Place(table.name), [way], name=name, count=known.above)


def tiny_column(table: Table, column: int, by_name: bool) -> OpinionPoolError:
    """The error for a column of percentages, by its name or by --percent, that holds nothing above 1."""
    place, name = Place(table.name), table.names[column]
    fraction = Remedy({"units": {name: "fraction"}})
    if by_name:
        return fault("percent-by-name", place, [Remedy({"percent": True}), fraction], name=name)
    return fault("tiny-prior", place, [fraction, Remedy({"units": {name: "percent"}})], name=name)


def _one(names: Sequence[str]) -> str:
    return quoted(names[0]) if len(names) == 1 else "NAME"
