"""DuckDB: files into columns.

Everything of a text file comes in as text, under the dialect that `files` decided, into a table inside the engine;
columns are then taken from it as they are needed, those of Parquet from the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np

from opinionpool.errors import LayoutError, Note, TableError
from opinionpool.findings import finding
from opinionpool.tables.choice import UserRoles
from opinionpool.tables.engine import (
    Progress,
    connect,
    readable,
)
from opinionpool.tables.files import expand, prepare
from opinionpool.tables.layout import find_layout
from opinionpool.tables.loading import read_file
from opinionpool.tables.profile import Profile
from opinionpool.tables.sources import Workspace
from opinionpool.tables.table import Table
from opinionpool.tables.where import parse_where
from opinionpool.text import listed


@contextmanager
def open_file(
    source: object,
    encoding: str | None,
    progress: Progress | None,
    on_disk: bool = False,
    name_experts: bool | None = False,
) -> Iterator[Table]:
    """A file, or several that are one table in pieces, as a table, for the time of a with statement.

    Parameters
    ----------
    source : str, path or binary file object, or a list of paths
    encoding : str or None
    progress : callable or None
        Called now and then with the share of the file that is read.
    on_disk : bool
        Whether the engine keeps the table in a file of its own, and in memory no more than `MEMORY`.
    name_experts : bool, optional
        Whether each file is one expert's, named after it; None where they say it by having one column of forecasts.

    Raises
    ------
    TableError
        If it is no table or has no rows; never an error of the engine's own.
    """
    sources = expand(source)
    with ExitStack() as stack:
        tables = []
        for each in sources:
            workspace = Workspace()
            stack.callback(workspace.close)
            table = read_file(prepare(each, encoding, workspace), workspace, progress, on_disk)
            stack.callback(table.connection.close)
            if table.rows == 0:
                raise TableError(f"{table.name} has column names and no rows below them")
            tables.append(table)
        if len(tables) == 1 and not name_experts:
            yield tables[0]
            return
        together = _together(tables, _experts_are_files(tables) if name_experts is None else name_experts)
        stack.callback(together.connection.close)
        yield together


def _together(tables: Sequence[Table], by_name: bool) -> Table:
    """Several tables as one, with a column that names the expert after the file where each is one expert's."""
    names = list(dict.fromkeys(name for table in tables for name in table.names))
    first, columns = tables[0], [*names, "expert"] if by_name else names
    connection = connect("", None, False)
    connection.execute(f"CREATE TABLE t ({', '.join(f'c{i} VARCHAR' for i in range(len(columns)))})")
    pieces, start = [], 0
    for table in tables:
        place = {name: i for i, name in enumerate(table.names)}
        own = [f"{table.text(place[name])} AS c{place[name]}" for name in names if name in place]
        cells = {name: values.tolist() for name, values in table.select(", ".join(own)).items()}
        stem = os.path.basename(table.name).partition(".")[0]
        added = [cells[f"c{place[name]}"] if name in place else [None] * table.rows for name in names]
        added += [[stem] * table.rows] if by_name else []
        connection.register("w", {f"c{i}": np.array(column, dtype=object) for i, column in enumerate(added)})
        connection.execute("INSERT INTO t SELECT * FROM w")
        connection.unregister("w")
        pieces.append((table.source, start))
        start += table.rows
    what = "a file per expert, named after it" if by_name else "one table in pieces"
    notes = [note for table in tables for note in table.notes if note.code != "format"]
    note = Note("pieces", f"{len(tables)} files, {what}: {listed([table.name for table in tables], 4)}", len(tables))
    source = replace(
        first.source, name=first.name if len(tables) == 1 else f"{len(tables)} files", notes=(note, *notes)
    )
    return Table(source, connection, tuple(columns), ("VARCHAR",) * len(columns), start, pieces=tuple(pieces))


def _experts_are_files(tables: Sequence[Table]) -> bool:
    """Whether each of several files has a single column of forecasts, and none that says whose they are."""
    for table in tables:
        try:
            layout = find_layout(Profile(table), UserRoles())
        except LayoutError:
            return False
        if not layout.wide or len(layout.forecasts) != 1:
            return False
    return len({table.names for table in tables}) == 1


def matching(table: Table, where: str) -> Table:
    """The rows of a table that meet a condition."""
    found = parse_where(where, table.name, table.names, table.text)
    place = "t.place" if table.moved else "t.rowid"
    columns = ", ".join(f"c{i}" for i in range(len(table.types)))
    with readable(table.source):
        table.changed(f"SELECT {columns}, {place} AS place FROM t WHERE {found.query}", found.parameters)
    number = table.connection.execute("SELECT count(*) FROM t").fetchone()
    rows = int(number[0]) if number else 0
    source = replace(table.source, notes=(*table.notes, *_left_out(table.rows - rows, table.rows)))
    return replace(table, source=source, rows=rows, copied=True, moved=True, seen={})


def _left_out(count: int, rows: int) -> tuple[Note, ...]:
    """A note on rows that do not meet a condition."""
    return (finding("where", count=count, total=rows),) if count else ()
