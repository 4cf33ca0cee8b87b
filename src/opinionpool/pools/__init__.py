"""Pools by name, one for each row of `rows.md`: rules that combine forecasts, fits and experts' contributions."""

import os
from typing import NamedTuple


class Row(NamedTuple):
    """Description of a pool, a row of the table in `rows.md`; readable without loading the pool's code (and NumPy)."""

    name: str  # name for users, such as "average"
    place: str  # module and class, as in "averages:Average"
    text: str  # what it does
    take_if: str  # when to use it
    leave_if: str  # when not to use it
    weighted: bool  # whether a user can give the experts' weights


def read_table(text: str) -> tuple[Row, ...]:
    """Return the rows of the Markdown table of pools in `text`."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    rows = []
    for line in lines:
        name, place, does, take_if, leave_if, weighted = (cell.strip() for cell in line.split("|")[1:-1])
        rows.append(Row(name.strip("`"), place, does, take_if, leave_if, weighted == "yes"))
    return tuple(rows)


with open(os.path.join(os.path.dirname(__file__), "rows.md"), encoding="utf-8") as _table:
    ROWS = read_table(_table.read())
NAMES = tuple(row.name for row in ROWS)
# Those in which a user can say what each expert counts for.
WEIGHTED = tuple(row.name for row in ROWS if row.weighted)
