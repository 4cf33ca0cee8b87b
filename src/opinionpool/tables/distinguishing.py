"""Columns that distinguish rows which say several things of one event, and the options that keep one of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from opinionpool.arrays import Index
from opinionpool.findings import Remedy
from opinionpool.tables.cells import written_numbers
from opinionpool.tables.engine import literal
from opinionpool.tables.roles import BETWEEN, normal, roles_of, words_of
from opinionpool.tables.table import BLANK, Table, Words
from opinionpool.tables.times import are_times
from opinionpool.text import listed

# Values of which a condition is offered for each, groups of rows that are looked at, and the share that has a value.
_VALUES, _GROUPS, _SHARE = 3, 200, 0.5


def condition(name: str, sign: str, *values: str) -> str:
    r"""Return a comparison of a column with a text, or with several, as ``--where`` takes it.

    >>> condition("quantile", "=", "0.5"), condition("round no", "in", "1", "2")
    ("quantile = '0.5'", '"round no" in (\'1\', \'2\')')
    """
    column = name if re.fullmatch(r"[^\W\d]\w*", name) else '"' + name.replace('"', '""') + '"'
    several = ", ".join(map(literal, values))
    return f"{column} {sign} {f'({several})' if sign == 'in' else several}"


def distinguishing(table: Table, columns: Sequence[int], groups: Sequence[Index]) -> tuple[list[str], list[Remedy]]:
    """Return the columns that differ in all rows of each group, and the options that make use of the first of them.

    A column of classes is named as one; of others, whose values come again in most groups, one value is kept. What
    numbers the rows says nothing, and an id is for the user to place: it may be part of what an event is called.
    """
    able = [
        (table.names[column], words)
        for column in columns
        if _comes_again(table.names[column], words := table.words(column))
        and all(len(np.unique(words.codes[rows])) == len(rows) for rows in groups[:_GROUPS])
        and BETWEEN not in table.names[column]
    ]
    found: list[Remedy] = []
    for name, words in able[:1]:
        if normal(name).endswith("_id"):
            break
        if "class" in roles_of(name) or (np.isnan(written_numbers(words)).all() and "never" not in words_of(name)):
            found = [Remedy({"columns": {"class": name}})]
        else:
            found = [Remedy({"where": condition(name, "=", value)}) for value in _kept(words, groups[:_GROUPS])]
    return [name for name, _ in able], found


def distinguishing_text(names: Sequence[str]) -> str:
    """Return what a message says of columns that distinguish rows."""
    return f"; {listed(names, 3)} distinguish{'es' if len(names) == 1 else ''} them" if names else ""


def _comes_again(name: str, words: Words) -> bool:
    """Return whether values come again, but for those of classes, and are no times."""
    again = "class" in roles_of(name) or len(words.values) < int((words.codes != BLANK).sum())
    return again and bool(words.values) and not are_times(words.values[:50])


def _kept(words: Words, groups: Sequence[Index]) -> list[str]:
    """Return the values, in most groups of rows, that may be kept: the middle one first, the only one of many."""
    counts = np.bincount(np.concatenate([np.unique(words.codes[rows]) for rows in groups]), minlength=len(words.values))
    able = [value for value, count in zip(words.values, counts, strict=True) if count >= _SHARE * len(groups)]
    numbers = written_numbers(Words(np.arange(len(able)), able))
    able = [able[i] for i in np.argsort(numbers, kind="stable").tolist()]
    middle = able[(len(able) - 1) // 2 : (len(able) + 1) // 2]
    return middle + [value for value in able if value not in middle and len(able) <= _VALUES]
