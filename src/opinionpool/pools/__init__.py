"""Pools by name: a rule, what a fit learns, and what every expert adds to an answer; each is a row of `rows.md`."""

import os
from typing import NamedTuple


class Row(NamedTuple):
    """A pool, told without loading it, so that a command's help need not wait for NumPy."""

    name: str
    place: str  # module and class, as in "averages:Average"
    text: str  # what it does
    take_if: str
    leave_if: str
    weighted: bool  # whether a user can say what each expert counts for


def read_table(text: str) -> tuple[Row, ...]:
    """Rows of a table of pools in Markdown."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    cells = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    return tuple(Row(name.strip("`"), *told, weighted == "yes") for name, *told, weighted in cells)


with open(os.path.join(os.path.dirname(__file__), "rows.md"), encoding="utf-8") as _table:
    ROWS = read_table(_table.read())
NAMES = tuple(row.name for row in ROWS)
# Those in which a user can say what each expert counts for.
WEIGHTED = tuple(row.name for row in ROWS if row.weighted)
