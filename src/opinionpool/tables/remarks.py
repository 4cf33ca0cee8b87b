"""Remarks on numbers and names: counts of extreme forecasts, names that hardly differ, and rows of totals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from unicodedata import normalize

import numpy as np

from opinionpool.arrays import Index
from opinionpool.errors import Note
from opinionpool.findings import Remedy, fault, finding
from opinionpool.labels import FAMILIES
from opinionpool.names import alike
from opinionpool.tables.classes import key
from opinionpool.tables.layout import Layout
from opinionpool.tables.roles import names_key, names_total, normal, roles_of
from opinionpool.tables.statements import LongRows
from opinionpool.tables.table import BLANK, Table, Words, place
from opinionpool.tables.units import NumberRules, looks_numeric
from opinionpool.tables.where import condition
from opinionpool.text import FORMULAS, is_formula, quoted, shown, typed

# Size of the blocks in which numbers are counted, which stay in the cache.
_BLOCK = 1 << 16
# If an expert has so many numbers of exactly 1%, and none above, these may be no percentages.
_ONES = 3
# Largest value of a number up to 1 that was read as a percentage.
_LOW = 0.01 + 1e-9


@dataclass(frozen=True, eq=False)
class ForecastCounts:
    """Numbers of forecasts by each expert that are 0, 1 or extreme; the counts of two parts of a table can be added."""

    experts: Sequence[str]
    by_class: bool  # whether a forecast has a number for each class
    halves: int  # how many numbers are exactly one half
    # every, zeros, ones, extreme: (experts,); all numbers, those of 0, of 1, and those beyond 5% or 95% but not 0
    every: Index
    zeros: Index
    ones: Index
    extreme: Index
    # above, inside, exact: (experts,); with --percent, numbers above 1%, between 0 and 1%, and of exactly 1%
    above: Index
    inside: Index
    exact: Index

    @classmethod
    def of(cls, long_rows: LongRows, percent: bool = False, marked: Sequence[str] = ()) -> ForecastCounts:
        """Return the counts of `long_rows`; if `percent`, also of numbers up to 1%, except in the columns `marked`."""
        size, halves = len(long_rows.experts), 0
        signed = [i for i, name in enumerate(long_rows.table.names) if name in marked]
        every, zeros, ones, extreme, inside, exact = np.zeros((6, size), dtype=np.intp)
        for start in range(0, len(long_rows.value), _BLOCK):
            value, expert = (of[start : start + _BLOCK] for of in (long_rows.value, long_rows.expert))
            halves += int(np.count_nonzero(value == 0.5))
            every += np.bincount(expert, minlength=size)
            far = np.flatnonzero((value < 0.05) | (value > 0.95))
            value, expert = value[far], expert[far]
            zeros += np.bincount(expert[value == 0], minlength=size)
            ones += np.bincount(expert[value == 1], minlength=size)
            extreme += np.bincount(expert[value != 0], minlength=size)
            if percent:
                tiny = (value > 0) & (value <= _LOW) & ~np.isin(long_rows.column[start : start + _BLOCK][far], signed)
                one = np.abs(value - 0.01) <= _LOW - 0.01
                exact += np.bincount(expert[tiny & one], minlength=size)
                inside += np.bincount(expert[tiny & ~one], minlength=size)
        return cls(
            long_rows.experts,
            bool(long_rows.classes),
            halves,
            every,
            zeros,
            ones,
            extreme,
            every - zeros - exact - inside,
            inside,
            exact,
        )

    def __add__(self, other: ForecastCounts) -> ForecastCounts:
        """Return the sum of the counts for two sets of events that have the same experts."""
        own = ((each.name, getattr(self, each.name), getattr(other, each.name)) for each in fields(self))
        return replace(self, **{name: one + more for name, one, more in own if name not in {"experts", "by_class"}})

    def notes(self, rules: NumberRules) -> list[Note]:
        """Return the notes on small percentages and extreme forecasts; errors as for `check_percent`."""
        return [*self.check_percent(rules), *self.extreme_notes(levels=bool(rules.scales))]

    def check_percent(self, rules: NumberRules) -> list[Note]:
        """Return a note on experts with as many percentages below 1% as above, or more; they may be fractions.

        Raises CellError if all percentages of an expert are at most 1%, and those of another are not.
        """
        if not rules.percent or not (self.above > 0).any():
            return []
        tiny = (self.every > 0) & (self.above == 0) & ((self.inside > 0) | (self.exact >= _ONES))
        mixed = (self.above > 0) & (self.inside >= self.above)
        odd, small = (
            [name for name, has in zip(self.experts, some.tolist(), strict=True) if has and name not in rules.units]
            for some in (tiny, mixed)
        )
        if odd:
            ways = [Remedy({"units": dict.fromkeys(odd, unit)}) for unit in ("fraction", "percent")]
            raise fault("tiny-percentages", None, ways, names=odd, one=quoted(odd[0]) if len(odd) == 1 else "NAME")
        return [finding("small-percentages", names=small)] if small else []

    def extreme_notes(self, *, levels: bool) -> list[Note]:
        """Return notes on many forecasts of exactly 0, 1 or, without `levels`, ½, and on zeros as "no answer"."""
        notes: list[Note] = []
        total = int(self.every.sum())
        counts = [(int(self.zeros.sum()), 0, "zeros"), (int(self.ones.sum()), 1, "ones"), (self.halves, 0.5, "halves")]
        for count, value, code in counts:
            if count >= max(5, 0.01 * total) and not (value == 0.5 and (self.by_class or levels)):
                notes.append(finding(code, count=count, total=total))
        suspect = (self.zeros >= 3) & (self.zeros >= 0.1 * self.every) & (self.zeros < self.every) & (self.extreme == 0)
        odd = [self.experts[i] for i in np.flatnonzero(suspect).tolist()]
        if odd and not self.by_class:
            notes.append(finding("zeros-as-missing", names=odd))
        return notes


# Number of events up to which their names are compared.
_EVENTS = 50_000
_DASH = re.compile(r"\s*[-\u2010-\u2015\u2212]+\s*")


def _event_key(name: str) -> str:
    """Return an event's name in a form that is equal for names with other dashes, blanks, case and letters.

    >>> _event_key("Wird es \u2013  regnen?") == _event_key("wird es -\u00a0Regnen?")
    True
    >>> _event_key("1-1") == _event_key("11")
    False
    """
    folded = name if name.isascii() else normalize("NFKC", name)
    return _DASH.sub("-", " ".join(folded.casefold().split()))


def alike_notes(experts: Sequence[str], events: Sequence[str]) -> list[Note]:
    """Return notes on experts, and on events, whose names hardly differ."""
    groups: dict[str, list[str]] = {}
    for name in events if len(events) <= _EVENTS else ():
        groups.setdefault(_event_key(name), []).append(name)
    several = [group for group in groups.values() if len(group) > 1]
    notes: list[Note] = []
    if people := alike(experts):
        notes.append(finding("similar-names", names=_listed(people), count=sum(map(len, people))))
    if several:
        notes.append(finding("similar-events", names=_listed(several), count=sum(map(len, several))))
    return notes


def _listed(groups: Sequence[Sequence[str]]) -> str:
    """Return the first of several groups of similar names, as text."""
    phrase = "; ".join(" and ".join(map(shown, group[:4])) for group in groups[:3])
    return phrase + ("; ..." if len(groups) > 3 else "")


def formula_notes(names: Sequence[str]) -> list[Note]:
    """Return the note on names that a spreadsheet would take for formulas."""
    lines = "\n" + "\n".join(names)
    if not any(sign in lines and "\n" + sign in lines for sign in FORMULAS):
        return []
    odd = [name for name in names if is_formula(name)]
    return [finding("formulas", names=odd)] if odd else []


# Names of rows of sums, if the outcome in the row is a number that only a sum can be.
_COUNTS = frozenset({"n", "count", "number"})


def refuse_summaries(table: Table, layout: Layout, experts: Sequence[str], included: Sequence[object]) -> None:
    """Raise an error if an expert is named as a summary of others, such as "mean", or as the right answers.

    Nothing is refused if the user names the experts to include.
    """
    others = [i for i in layout.unused if "expert" in roles_of(table.names[i])]
    for called in () if layout.wide or included else (names_total, names_key):
        names = list(filter(called, experts))
        way: dict[str, object] = {"exclude": tuple(names)}
        for column in () if names else others:
            names += filter(called, table.words(column).values)
            way = {"where": condition(table.names[column], "<>", names[0])} if names else way
        about = {"names": names, "way": f"--{next(iter(way))}", "count": len(names)}
        if names and called is names_total:
            raise fault("totals-of-experts", None, [Remedy(way)], **about)
        if names:
            raise fault("key-of-answers", None, [Remedy(way)], **about)


def refuse_totals(table: Table, layout: Layout, events: Words, outcomes: Sequence[Words]) -> None:
    """Raise an error if a wide table ends with rows of totals or averages, which would be pooled as events.

    A row that has an outcome is an event, unless the outcome is a number other than 0 and 1 that no other row has.
    """
    if not layout.wide or "event" not in layout.roles:
        return
    rows: list[int] = []
    for row in range(len(events.codes) - 1, 0, -1):
        code = int(events.codes[row])
        if code == BLANK:
            continue
        summed = [_sums_up(words, row) for words in outcomes if words.codes[row] != BLANK]
        counted_up = bool(summed) and all(summed) and normal(events.values[code].rstrip(" :=")) in _COUNTS
        if not names_total(events.values[code]) and not counted_up:
            break
        if all(summed):
            rows.insert(0, row)
    if not rows:
        return
    names = list(dict.fromkeys(events.values[events.codes[row]] for row in rows))
    column = table.names[layout.roles["event"]]
    where = condition(column, "<>", names[0])
    if len(names) > 1:
        where = f"not {condition(column, 'in', *names)}"
    about = {"names": names, "places": place(table, *rows), "condition": typed(where), "count": len(rows)}
    raise fault("totals", None, [Remedy({"where": where})], **about)


def _sums_up(outcomes: Words, row: int) -> bool:
    """Return True if the outcome in `row` may be a total: neither 0 nor 1, and a number that no other row has."""
    code = int(outcomes.codes[row])
    word = outcomes.values[code]
    return looks_numeric(word) and key(word) not in FAMILIES[0] and int(outcomes.counts[code]) == 1
