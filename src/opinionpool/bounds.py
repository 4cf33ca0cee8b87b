"""What a file may hold at most, so that a small one cannot fill the memory: looked at before the engine reads it."""

from __future__ import annotations

from opinionpool.errors import LayoutError, TableError

# The engine's work for a column is that for thousands of cells.
COLUMNS = 10_000
CLASSES = 1_000
# Characters of one cell: what the csv module takes, and more than any name or number has.
CELL = 1 << 17
# Tables of forecasts shrink to a tenth, and those with one forecast throughout to a hundredth.
SMALL, RATIO = 1 << 26, 300
# Cells of a table few of whose cells are there, as where every object has keys of its own; bytes of the file for each.
CELLS, SPARSE = 5_000_000, 20


def check_columns(name: str, columns: int) -> None:
    """Refuse a table that is too wide.

    Raises
    ------
    LayoutError
        With the way out.

    Examples
    --------
    >>> check_columns("forecasts.csv", 2000)
    """
    if columns > COLUMNS:
        raise LayoutError(
            f"{name} has {columns:,} columns, and at most {COLUMNS:,} are read; write a row for each forecast, with "
            "the columns event, expert and probability, which may be by any number of experts"
        )


def check_unpacked(name: str, packed: int, unpacked: int) -> None:
    """Refuse a compressed file that grows beyond all measure, as soon as it has."""
    if unpacked > SMALL and unpacked > RATIO * packed:
        raise TableError(
            f"{name} unpacks to more than {RATIO} times its {packed:,} bytes, which no table of forecasts does: it is "
            "damaged or meant to fill the memory; if it is neither, unpack it first"
        )


def check_cells(name: str, rows: int, columns: int, written: int) -> None:
    """Refuse a table that has many cells, and writes few of them: `written` cells or bytes."""
    if rows * columns > max(CELLS, SPARSE * written):
        raise TableError(
            f"{name} has {rows:,} rows and {columns:,} columns, nearly all of whose cells are empty or alike, and "
            "would fill the memory; write a row for each forecast, with the columns event, expert and probability"
        )


def check_classes(name: str, classes: int) -> None:
    """Refuse a table whose events have too many classes: what pools learn grows with their square."""
    if classes > CLASSES:
        raise LayoutError(
            f"{name} has {classes:,} classes, and at most {CLASSES:,} are pooled; if its column holds something else "
            "than classes, say --column class="
        )
