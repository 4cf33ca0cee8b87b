"""Forecasts from files and data frames, which are opened, loaded into the engine, and read with the user's options.

Cells of text and JSON files are loaded as text, with the separator and header that `files` found; columns are taken
from the engine when they are needed, those of Parquet from the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from opinionpool.errors import LayoutError, Note, OpinionPoolError
from opinionpool.findings import Place, fault, finding
from opinionpool.forecasts import Forecasts
from opinionpool.progress import Progress, advancing
from opinionpool.tables.engine import (
    FileSource,
    Workspace,
    check_cells,
    check_columns,
    connect,
    engine_errors,
    interrupted,
    is_large,
    literal,
    readable,
    unreadable,
    watch,
)
from opinionpool.tables.files import expand, prepare, text_fault, with_line_feeds
from opinionpool.tables.layout import find_layout
from opinionpool.tables.options import ReadOptions, documented, in_python, options_given
from opinionpool.tables.parse import TableReader
from opinionpool.tables.profile import Profile
from opinionpool.tables.roles import BETWEEN, UserRoles, position, unnumbered
from opinionpool.tables.table import Table, read_frame
from opinionpool.tables.times import are_times
from opinionpool.tables.units import MISSING, looks_numeric
from opinionpool.tables.where import conjuncts, parse_where

if TYPE_CHECKING:
    import duckdb

# Rows below the header that may describe columns, and rows that are looked at for that.
_DESCRIBING, _LOOKED = 3, 50


@documented
def read_forecasts(
    source: object,
    *,
    outcomes: object = None,
    progress: Progress = None,
    **options: Any,  # noqa: ANN401 - the fields of ReadOptions, each with its type there
) -> Forecasts:
    """Read forecasts from a table.

    A long table has a row per forecast: columns event, expert and probability, and where there are more than two
    classes a column class with a row for each. A wide table has a row per event and a column per expert, called
    ``expert:class`` for K classes. Further columns in both: outcome, time, closes, resolved_at, prior, group, topic.
    They are recognised by their names and the usual synonyms.

    Parameters
    ----------
    source : path, ``"-"``, binary file object, data frame, Arrow table, dict of columns, or array
        Files are CSV (fields between commas, semicolons, tabs or bars), Parquet, or JSON lines; gzip too. ``"-"`` is
        standard input. Arrays are events x experts.
    outcomes : like `source`, optional
        A table with an event and an outcome column, joined by event id; may hold closes and resolved_at.
    {options}
    progress : callable or bool, optional
        Called now and then, from another thread, with the share of the file that is read; True shows a bar on standard
        error once there is something to wait for.

    Returns
    -------
    Forecasts
        Every event of the table in order of first appearance, with or without forecasts. Its `notes` say what was
        recognised, coerced and left out. `times` are resolved_at, else closes, else the latest forecast.

    Raises
    ------
    TableError
        If the table cannot be read: `LayoutError` for its columns, `CellError` for a cell, `DuplicateError`.
    ExpertError
        If `include` or `exclude` names an expert who is not in the table.
    ArgumentError
        If an option is unknown or has a wrong value.

    Notes
    -----
    Units are decided for a column, never for a cell: a column has per cent signs on all numbers or on none. Times
    without a zone are UTC, dates are midnight. Probabilities over classes may be off a sum of 1 by half a unit of the
    last digit written for each class, or 1e-4; then they are normalised.

    Errors and notes name options as the command line has them, and errors end with what these are in Python (a note of
    the exception): ``--column ROLE=NAME`` is ``columns={"ROLE": "NAME"}``, ``--column ROLE=`` is
    ``columns={"ROLE": None}``, and ``--missing-value V`` is ``missing_values=["V"]``.

    Examples
    --------
    >>> table = {"event": ["q1", "q2"], "ann": ["90%", "35%"], "bob": ["70 %", None], "outcome": ["yes", ""]}
    >>> f = read_forecasts(table)
    >>> f.X
    array([[0.9 , 0.7 ],
           [0.35,  nan]])
    >>> f.classes, f.outcomes.tolist()
    (('no', 'yes'), [1, -1])
    """
    return read_with(source, outcomes, options_given(options), progress)


def read_with(source: object, outcomes: object, options: ReadOptions, progress: Progress = None) -> Forecasts:
    """Return the forecasts in `source`, read with `options`; errors name these as they are in Python."""
    try:
        with ExitStack() as stack:
            advance = stack.enter_context(advancing(progress, "reading forecasts"))
            table, other = stack.enter_context(open_tables(source, outcomes, options, advance))
            return TableReader(table, other, options).forecasts
    except OpinionPoolError as error:
        if python := in_python(str(error)):
            error.add_note(python)
        raise


@contextmanager
def open_tables(
    source: object,
    outcomes: object,
    options: ReadOptions,
    progress: Callable[[float], None] | None = None,
    on_disk: bool = False,
) -> Iterator[tuple[Table, Table | None]]:
    """Open the tables of forecasts and outcomes; a --where condition selects rows of the first that has its columns.

    `on_disk` is as for `open_file`.
    """
    with ExitStack() as stack:
        table, other = stack.enter_context(open_file(source, options, progress, on_disk)), None
        wheres, others = [] if options.where is None else conjuncts(options.where), list[str]()
        if outcomes is not None:
            other = stack.enter_context(open_file(outcomes, ReadOptions(encoding=options.encoding)))
            others = [where for where in wheres if _applies(where, other) and not _applies(where, table)]
            other = _keyed(_matching(other, others), options, table, optional=True)
        wheres = [where for where in wheres if where not in others]
        yield _keyed(_matching(table, wheres), options, other), other


def _applies(where: str, table: Table) -> bool:
    """Whether a table has all columns that the condition `where` names."""
    try:
        return bool(parse_where(where, table.name, table.names, table.text))
    except LayoutError:
        return False


def _keyed(table: Table, options: ReadOptions, other: Table | None = None, optional: bool = False) -> Table:
    """Return the table with a column for each composite key, whose columns may in part be in the table `other`.

    If `optional`, a key is left out where some of its columns are in neither table.
    """
    for parts in options.several.values():
        own = [name for name in parts if name in table.names]
        rest = set() if other is None else {name for name in parts if name in other.names}
        split = bool(own) and rest == {*parts} - {*own}
        if split or not optional or len(own) == len(parts):
            places = [position(table.name, table.names, name) for name in (own if split else parts)]
            table = table.with_key(places, BETWEEN.join(parts))
    return table


@contextmanager
def open_file(
    source: object,
    options: ReadOptions,
    progress: Callable[[float], None] | None = None,
    on_disk: bool = False,
) -> Iterator[Table]:
    """Open a file, several files as one table, or a data frame, for the time of a with statement.

    `on_disk` is whether the engine keeps the table in a file of its own, and in memory no more than `MEMORY`.
    """
    paths = isinstance(source, list | tuple) and all(isinstance(each, str | PathLike) for each in source)
    with ExitStack() as stack:
        if not (paths or isinstance(source, str | PathLike) or hasattr(source, "read")):
            table = read_frame(source)
            stack.callback(table.connection.close)
            yield table
            return
        tables = []
        for each in expand(source):
            workspace = Workspace()
            stack.callback(workspace.close)
            table = _read_file(prepare(each, options.encoding, workspace), workspace, progress, on_disk)
            stack.callback(table.connection.close)
            if table.rows == 0:
                raise fault("only-a-header", file=table.name)
            tables.append(table)
        if len(tables) == 1 and not options.expert_from_name:
            yield _without_descriptions(tables[0])
            return
        roles = UserRoles(options.keys, options.parts)
        together = _concatenated(tables, options.expert_from_name or _experts_are_files(tables, roles))
        stack.callback(together.connection.close)
        yield together


def _concatenated(tables: Sequence[Table], by_name: bool) -> Table:
    """Return the rows of several tables as one table; if `by_name`, a column of experts has the name of each file."""
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
    note = finding("pieces", count=len(tables), what=what, names=[table.name for table in tables])
    source = replace(
        first.source, name=first.name if len(tables) == 1 else f"{len(tables)} files", notes=(note, *notes)
    )
    return Table(source, connection, tuple(columns), ("VARCHAR",) * len(columns), start, pieces=tuple(pieces))


def _experts_are_files(tables: Sequence[Table], roles: UserRoles) -> bool:
    """Return True if each file has a row per event and one column of forecasts, and all have the same header."""
    for table in tables:
        try:
            layout = find_layout(Profile(table), roles)
        except LayoutError:
            return False
        if not layout.wide or len(layout.forecasts) != 1:
            return False
    return len({table.names for table in tables}) == 1


def _matching(table: Table, wheres: Sequence[str]) -> Table:
    """Return the rows of a table that meet all conditions in `wheres`."""
    if not wheres:
        return table
    where = " and ".join(wheres)
    found = _kept(table, *parse_where(where, table.name, table.names, table.text), lambda **of: finding("where", **of))
    if found.rows == 0:
        raise fault("no-row-left", table=table.name, where=where)
    return found


def _kept(table: Table, query: str, parameters: object, note: Callable[..., Note]) -> Table:
    """Return the table's rows that meet the SQL condition `query`, with `note(count, total)` on those left out."""
    place = "t.place" if table.moved else "t.rowid"
    columns = ", ".join(f"c{i}" for i in range(len(table.types)))
    with readable(table.source):
        table.changed(f"SELECT {columns}, {place} AS place FROM t WHERE {query}", parameters)
    number = table.connection.execute("SELECT count(*) FROM t").fetchone()
    rows = int(number[0]) if number else 0
    left = [note(count=table.rows - rows, total=table.rows)] if rows < table.rows else []
    source = replace(table.source, notes=(*table.notes, *left))
    return replace(table, source=source, rows=rows, copied=True, moved=True, seen={})


def _without_descriptions(table: Table) -> Table:
    """Return a table without the rows below the header that describe columns, as exports of surveys have them.

    Such a row has a different word in each column that otherwise holds only numbers or times, of which there are
    three or more.
    """
    names = [*filter(None, unnumbered(table.names))]
    if table.source.format != "csv" or table.rows <= _DESCRIBING or len({*names}) < len(names):
        return table
    head = table.connection.execute(f"SELECT * FROM t WHERE rowid < {_LOOKED} ORDER BY rowid").fetchall()
    columns = [[(cell or "").strip() for cell in column] for column in zip(*head, strict=True)]
    for count in range(1, _DESCRIBING + 1):
        below = [[word for word in column[count:] if word.lower() not in MISSING] for column in columns]
        measured = [
            i for i, words in enumerate(below) if words and (all(map(looks_numeric, words)) or are_times(words))
        ]
        rows = [[columns[i][row] for i in measured] for row in range(count)]
        if len(measured) > 2 and all(_describes(words) for words in rows):
            return _kept(table, f"rowid >= {count}", None, lambda **of: finding("descriptions", **of))
    return table


def _describes(words: Sequence[str]) -> bool:
    """Whether `words`, a row, may describe columns: all are different, and none is a number, time or blank."""
    plain = [word for word in words if word.lower() in MISSING or looks_numeric(word) or are_times([word])]
    return not plain and len(set(words)) == len(words)


def _read_file(
    source: FileSource,
    workspace: Workspace,
    progress: Callable[[float], None] | None,
    on_disk: bool,
    again: bool = False,
) -> Table:
    """Return the file as a table; `again` is True for its second reading, with its lines' ends unified."""
    disk = on_disk or (source.format != "parquet" and is_large(source.path))
    connection = connect(source.path, workspace if disk else None, again or source.padded)
    try:
        with watch(connection, progress):
            return _LOADERS.get(source.format, _load_json)(source, connection, on_disk)
    except engine_errors() as error:
        connection.close()
        if interrupted(error):
            raise KeyboardInterrupt from None
        wrong = None if source.format == "parquet" else text_fault(source)
        if isinstance(wrong, int) and wrong and not source.padded:
            note = finding("short-rows", Place(source.name), count=wrong)
            padded = replace(source, padded=True, notes=(*source.notes, note))
            return _read_file(padded, workspace, progress, on_disk, again)
        if isinstance(wrong, int) and not again:
            # Well formed after all: its lines do not all end in the same way.
            return _read_file(with_line_feeds(source, workspace), workspace, progress, on_disk, again=True)
        raise wrong if isinstance(wrong, OpinionPoolError) else unreadable(source, error) from None


def _create(connection: duckdb.DuckDBPyConnection, query: str, path: str) -> int:
    created = connection.execute(f"CREATE TABLE t AS {query}", [path]).fetchone()
    return int(created[0]) if created else 0


def _load_csv(source: FileSource, connection: duckdb.DuckDBPyConnection, _: bool) -> Table:
    columns = ", ".join(f"c{i}: 'VARCHAR'" for i in range(len(source.header)))
    options = (
        f"auto_detect = false, delim = {literal(source.delimiter)}, quote = '\"', escape = '\"', header = true, "
        f"{'null_padding = true, ' if source.padded else ''}"
        f"skip = {source.skip}, compression = '{'gzip' if source.gzip else 'none'}', hive_partitioning = false, "
        f"columns = {{{columns}}}"
    )
    query = f"SELECT * FROM read_csv(?, {options})"
    rows = _create(connection, query, source.path)
    return Table(source, connection, source.header, ("VARCHAR",) * len(source.header), rows)


def _load_parquet(source: FileSource, connection: duckdb.DuckDBPyConnection, copied: bool) -> Table:
    """Return the table in a Parquet file; its rows are `copied` to the engine, or else read when they are needed."""
    options = "binary_as_string = true, hive_partitioning = false"
    scan = f"SELECT * FROM read_parquet(?, {options})"
    described = connection.execute(f"{scan} LIMIT 0", [source.path]).description or []
    check_columns(source.name, len(described))
    # The engine calls a column otherwise whose name stands there before, in whatever case.
    names = _outermost(connection.execute("SELECT name, num_children FROM parquet_schema(?)", [source.path]).fetchall())
    counted = connection.execute("SELECT num_rows FROM parquet_file_metadata(?)", [source.path]).fetchone()
    check_cells(source.name, int(counted[0]) if counted else 0, len(names), os.path.getsize(source.path))
    aliases = ", ".join(f"c{i}" for i in range(len(names)))
    types = tuple(str(column[1]) for column in described)
    if copied:
        rows = _create(connection, f"SELECT * FROM ({scan}) AS x({aliases})", source.path)
        return Table(source, connection, names, types, rows)
    file = f"read_parquet({literal(source.path)}, {options}, file_row_number = true)"
    connection.execute(f"CREATE VIEW t AS SELECT * FROM {file} AS x({aliases}, rowid)")
    # Rows leave the engine one after the other, and threads that wait to hand them over only cost time.
    connection.execute("SET threads = 1")
    return Table(source, connection, names, types, int(counted[0]) if counted else 0, copied=False)


def _outermost(schema: Sequence[tuple[str, int | None]]) -> tuple[str, ...]:
    """Return the names of the top-level columns of a schema that is listed depth first.

    >>> _outermost([("root", 2), ("a", 1), ("within a", None), ("b", None)])
    ('a', 'b')
    """
    names, skipped = [], 0
    for name, children in schema[1:]:
        if skipped:
            skipped -= 1
        else:
            names.append(name.strip())
        skipped += children or 0
    return tuple(names)


def _load_json(source: FileSource, connection: duckdb.DuckDBPyConnection, _: bool) -> Table:
    layout = "array" if source.format == "json array" else "newline_delimited"
    scan = f"read_json_objects(?, format = '{layout}', compression = '{'gzip' if source.gzip else 'uncompressed'}')"
    rows = _create(connection, f"SELECT json FROM {scan}", source.path)
    structure = _structure(connection)
    inner = [key for key, kind in structure.items() if isinstance(kind, list) and kind and isinstance(kind[0], dict)]
    if len(inner) == 1:
        source, rows = _unnested(source, connection, inner[0])
        structure = _structure(connection)
    kinds = "SELECT json_keys(json) AS keys, row_number() OVER () AS r FROM t WHERE json_type(json) = 'OBJECT'"
    lists = connection.execute(f"SELECT keys, min(r), count(*) FROM ({kinds}) GROUP BY keys ORDER BY 2").fetchall()
    if sum(count for *_, count in lists) < rows:
        raise fault("no-objects", Place(source.name), unit="line" if layout[0] == "n" else "element")
    for keys, row, _ in lists:
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise fault("key-twice", Place(source.name), row=row, key=twice)
    keys = list(dict.fromkeys(key for keys, *_ in lists for key in keys))
    check_columns(source.name, len(keys))
    paths = [path for key in keys for path in _paths((key,), structure.get(key))]
    names = [".".join(path) for path in paths]
    if not names:
        raise fault("empty-objects", Place(source.name))
    check_columns(source.name, len(names))
    check_cells(source.name, rows, len(names), sum(len(keys) * count for keys, _, count in lists))
    # All paths at once: an object is parsed anew for each that is asked for alone.
    cells = f"json_extract_string(json, [{', '.join(map(_pointer, paths))}])"
    columns = ", ".join(f"cells[{i}] AS c{i - 1}" for i in range(1, len(paths) + 1))
    connection.execute(f"CREATE TABLE columns AS SELECT {columns} FROM (SELECT {cells} AS cells FROM t); DROP TABLE t")
    connection.execute("ALTER TABLE columns RENAME TO t")
    return Table(source, connection, tuple(map(str.strip, names)), ("VARCHAR",) * len(names), rows)


def _pointer(path: Sequence[str]) -> str:
    return literal("".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path))


def _structure(connection: duckdb.DuckDBPyConnection) -> dict[str, object]:
    """Return, by key, the type of the values in the JSON rows: a name, or an object or list of types."""
    row = connection.execute("SELECT json_group_structure(json) FROM t").fetchone()
    found = json.loads(row[0]) if row else None
    return found if isinstance(found, dict) else {}


def _unnested(source: FileSource, connection: duckdb.DuckDBPyConnection, key: str) -> tuple[FileSource, int]:
    """Replace each JSON row by one for each object in its list under `key`; return the source and number of rows."""
    at = f"json -> {_pointer([key])}"
    each = f"CASE WHEN json_array_length({at}) > 0 THEN CAST({at} AS JSON[]) ELSE [NULL] END"
    outer = f"json_merge_patch(json, json_object({literal(key)}, NULL))"
    connection.execute(
        f"CREATE TABLE s AS SELECT json_merge_patch(outside, json_object({literal(key)}, each)) AS json "
        f"FROM (SELECT {outer} AS outside, unnest({each}) AS each FROM t)"
    )
    connection.execute("DROP TABLE t; ALTER TABLE s RENAME TO t")
    number = connection.execute("SELECT count(*) FROM t").fetchone()
    note = finding("inner-rows", key=key)
    return replace(source, format="json rows", notes=(*source.notes, note)), int(number[0]) if number else 0


def _paths(path: tuple[str, ...], kind: object) -> Iterator[tuple[str, ...]]:
    """Yield the paths to all values in the object of type `kind` at `path`; only `path` if it is no object."""
    for key, inner in kind.items() if isinstance(kind, dict) else ():
        yield from _paths((*path, key), inner)
    if not kind or not isinstance(kind, dict):
        yield path


# Loaders of files by format; all other formats are of JSON.
_LOADERS = {"csv": _load_csv, "parquet": _load_parquet}
