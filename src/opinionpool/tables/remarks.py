"""Remarks on numbers and names: counts of extreme forecasts, names that hardly differ, and rows of totals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from unicodedata import normalize

import numpy as np

from opinionpool.arrays import Index, Mask
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
    # (6, experts); all numbers; those of 0; of 1; beyond 5% or 95% but not 0; with --percent up to 1%, and exactly 1%
    numbers: Index

    @classmethod
    def of(cls, long_rows: LongRows, percent: bool = False, marked: Sequence[str] = ()) -> ForecastCounts:
        """Return the counts of `long_rows`; if `percent`, also of numbers up to 1%, except in the columns `marked`."""
        size, halves = len(long_rows.experts), 0
        signed = [i for i, name in enumerate(long_rows.table.names) if name in marked]
        numbers = np.zeros((6, size), dtype=np.intp)
        for start in range(0, len(long_rows.value), _BLOCK):
            value, expert, column = (
                of[start : start + _BLOCK] for of in (long_rows.value, long_rows.expert, long_rows.column)
            )
            halves += int(np.count_nonzero(value == 0.5))
            numbers[0] += np.bincount(expert, minlength=size)
            far = np.flatnonzero((value < 0.05) | (value > 0.95))
            value, expert = value[far], expert[far]
            kinds = [value == 0, value == 1, value != 0]
            if percent:
                tiny = (value > 0) & (value <= _LOW) & ~np.isin(column[far], signed)
                one = np.abs(value - 0.01) <= _LOW - 0.01
                kinds += [tiny & ~one, tiny & one]
            for kind, mask in enumerate(kinds, 1):
                numbers[kind] += np.bincount(expert[mask], minlength=size)
        return cls(long_rows.experts, bool(long_rows.classes), halves, numbers)

    def __add__(self, other: ForecastCounts) -> ForecastCounts:
        """Return the sum of the counts for two sets of events that have the same experts."""
        return replace(self, halves=self.halves + other.halves, numbers=self.numbers + other.numbers)

    def _names(self, mask: Mask) -> list[str]:
        """Experts in the `mask`, (experts,)."""
        return [self.experts[i] for i in np.flatnonzero(mask).tolist()]

    def notes(self, rules: NumberRules) -> list[Note]:
        """Return notes on percentages below 1%, many forecasts of exactly 0, 1 or ½, and zeros as "no answer".

        Raises CellError if all percentages of an expert are at most 1%, and those of another are not: these may be
        fractions.
        """
        every, zeros, ones, extreme, inside, exact = self.numbers
        notes, above, total = list[Note](), every - zeros - exact - inside, int(every.sum())
        if rules.percent and (above > 0).any():
            tiny = (every > 0) & (above == 0) & ((inside > 0) | (exact >= _ONES))
            mixed = (above > 0) & (inside >= above)
            odd, small = ([name for name in self._names(some) if name not in rules.units] for some in (tiny, mixed))
            if odd:
                ways = [Remedy({"units": dict.fromkeys(odd, unit)}) for unit in ("fraction", "percent")]
                raise fault("tiny-percentages", None, ways, names=odd, one=quoted(odd[0]) if len(odd) == 1 else "NAME")
            notes += [finding("small-percentages", names=small)] if small else []
        counts = {"zeros": int(zeros.sum()), "ones": int(ones.sum())}
        # A level in the middle of a scale is ½.
        counts |= {} if self.by_class or rules.scales else {"halves": self.halves}
        often = max(5, 0.01 * total)
        notes += [finding(code, count=count, total=total) for code, count in counts.items() if count >= often]
        suspect = self._names((zeros >= 3) & (zeros >= 0.1 * every) & (zeros < every) & (extreme == 0))
        return [*notes, finding("zeros-as-missing", names=suspect)] if suspect and not self.by_class else notes


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


def name_notes(experts: Sequence[str], events: Sequence[str]) -> list[Note]:
    """Return notes on experts, and events, whose names hardly differ, and on names like formulas of a spreadsheet."""
    notes: list[Note] = []
    few = events if len(events) <= _EVENTS else ()
    for code, groups in {"similar-names": alike(experts), "similar-events": alike(few, _event_key)}.items():
        names = "; ".join(" and ".join(map(shown, group[:4])) for group in groups[:3]) + "; ..." * (len(groups) > 3)
        notes += [finding(code, names=names, count=sum(map(len, groups)))] if groups else []
    lines = "\n".join(["", *events, *experts])
    if any(sign in lines and "\n" + sign in lines for sign in FORMULAS):
        odd = [name for name in (*events, *experts) if is_formula(name)]
        notes += [finding("formulas", names=odd)] if odd else []
    return notes


# Names of rows of sums, if the outcome in the row is a number that only a sum can be.
_COUNTS = frozenset({"n", "count", "number"})


def refuse_summaries(table: Table, layout: Layout, experts: Sequence[str], included: Sequence[object]) -> None:
    """Raise an error if an expert is named as a summary of others, such as "mean", or as the right answers.

    Nothing is refused if the user names the experts to include.
    """
    others = [i for i in layout.unused if "expert" in roles_of(table.names[i])]
    kinds = {"totals-of-experts": names_total, "key-of-answers": names_key}
    for code, called in kinds.items() if not (layout.wide or included) else ():
        names = list(filter(called, experts))
        way: dict[str, object] = {"exclude": tuple(names)}
        for column in () if names else others:
            names += filter(called, table.words(column).values)
            way = {"where": condition(table.names[column], "<>", names[0])} if names else way
        if names:
            raise fault(code, None, [Remedy(way)], names=names, way=f"--{next(iter(way))}", count=len(names))


def refuse_totals(table: Table, layout: Layout, events: Words, outcomes: Sequence[Words]) -> None:
    """Raise an error if a wide table ends with rows of totals or averages, which would be pooled as events.

    A row that has an outcome is an event, unless the outcome is a number other than 0 and 1 that no other row has.
    """
    rows: list[int] = []
    named = layout.wide and "event" in layout.roles
    for row in reversed(np.flatnonzero(events.codes[1:] != BLANK) + 1) if named else ():
        name = events.values[events.codes[row]]
        summed = [_sums_up(words, row) for words in outcomes if words.codes[row] != BLANK]
        counted_up = bool(summed) and all(summed) and normal(name.rstrip(" :=")) in _COUNTS
        if not names_total(name) and not counted_up:
            break
        if all(summed):
            rows.insert(0, row)
    if rows:
        names = list(dict.fromkeys(events.values[events.codes[row]] for row in rows))
        column = table.names[layout.roles["event"]]
        many = len(names) > 1
        where = f"not {condition(column, 'in', *names)}" if many else condition(column, "<>", names[0])
        about = {"names": names, "places": place(table, *rows), "condition": typed(where), "count": len(rows)}
        raise fault("totals", None, [Remedy({"where": where})], **about)


def _sums_up(outcomes: Words, row: int) -> bool:
    """Return True if the outcome in `row` may be a total: neither 0 nor 1, and a number that no other row has."""
    code = int(outcomes.codes[row])
    word = outcomes.values[code]
    return looks_numeric(word) and key(word) not in FAMILIES[0] and int(outcomes.counts[code]) == 1
