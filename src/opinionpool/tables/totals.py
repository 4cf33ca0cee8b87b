"""Rows and columns of a wide table that sum up the others, by their names: no events, and no experts."""

from __future__ import annotations

from collections.abc import Sequence

from opinionpool.findings import Remedy, fault
from opinionpool.labels import FAMILIES
from opinionpool.tables.cells import looks_numeric
from opinionpool.tables.classes import key
from opinionpool.tables.distinguishing import condition
from opinionpool.tables.layout import Layout
from opinionpool.tables.roles import names_total, normal
from opinionpool.tables.table import BLANK, Table, Words, place
from opinionpool.text import typed

# What may be an event, unless its outcome is a number such as only sums are.
_COUNTS = frozenset({"n", "count", "number"})


def refuse_totals(table: Table, layout: Layout, events: Words, outcomes: Sequence[Words]) -> None:
    """Refuse a wide table that ends with rows of totals or averages, which would be pooled as events.

    A row that has an outcome is an event, unless that is a number other than 0 and 1 that no other row has.
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
    """Return True if a row's outcome may be a total: a number other than 0 and 1 that no other row has."""
    code = int(outcomes.codes[row])
    word = outcomes.values[code]
    return looks_numeric(word) and key(word) not in FAMILIES[0] and int(outcomes.counts[code]) == 1
