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
from typing import TYPE_CHECKING, Any, TypeAlias

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

_Advance: TypeAlias = Callable[[float], None] | None

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
    """Read who gave which probability for which event, and what happened, from a file, a data frame or an array.

    A wide table has a row per event and a column per expert, called ``expert:class`` for K classes. A long table has a
    row per forecast: columns event, expert and probability, and where there are more than two classes a column class
    with a row for each. Further columns in both: outcome, time, closes, resolved_at, prior, group, topic. They are
    recognised by their names and usual synonyms, such as question, forecaster and result. Where names do not decide,
    an error shows the columns and what to give: ``columns={"outcome": "correct"}`` says that the column ``correct``
    has the outcomes. A blank outcome is an open event, a blank forecast stays missing.

    Of two outcomes, probabilities are about 1, yes, true or `positive`; `classes` of the result says which, last.

    Parameters
    ----------
    source : path, ``"-"``, binary file object, data frame, Arrow table, dict of columns, or array
        Files are CSV (fields between commas, semicolons, tabs or bars), spreadsheets, Parquet, or JSON; text may be
        compressed by gzip. ``"-"`` is standard input. Arrays are events x experts.
    outcomes : like `source`, optional
        A table with an event and an outcome column, joined by event id; may hold closes and resolved_at.
    {options}
    progress : callable or bool, optional
        Called now and then, from another thread, with the share of the file that is read; True shows a bar on standard
        error once there is something to wait for.

    Returns
    -------
    Forecasts
        To be given to `GaussianPool().fit`, `compare_pools` and `make_report`. It has every event of the table in order
        of first appearance, with or without forecasts. Its `notes` say what was recognised, coerced and left out.
        `times` are resolved_at, else closes, else the latest forecast.

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
    without a zone are UTC; beside times of day, an event that closes on a date closes at its end. Probabilities over
    classes may be off a sum of 1 by half a unit of the last digit written for each class, or 1e-4; then they are
    normalised.

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
    >>> named = {"item": ["a", "b"], "judge_1": [0.7, 0.2], "judge_2": [0.6, 0.1], "correct": [1, 0]}
    >>> read_forecasts(named, columns={"outcome": "correct"}).experts
    ('judge_1', 'judge_2')
    """
    return read_with(source, outcomes, options_given(options), progress)


def read_with(source: object, outcomes: object, options: ReadOptions, progress: Progress = None) -> Forecasts:
    """Return the forecasts in `source`, read with `options`; errors name these as they are in Python."""
    try:
        with (
            advancing(progress, "reading forecasts") as advance,
            open_tables(source, outcomes, options, advance) as (table, other),
        ):
            return TableReader(table, other, options).forecasts
    except OpinionPoolError as error:
        if python := in_python(str(error)):
            error.add_note(python)
        raise


@contextmanager
def open_tables(
    source: object, outcomes: object, options: ReadOptions, progress: _Advance = None, on_disk: bool = False
) -> Iterator[tuple[Table, Table | None]]:
    """Open the tables of forecasts and outcomes; a --where condition selects rows of the first that has its columns.

    `on_disk` is as for `open_file`.
    """
    with ExitStack() as stack:
        table, other = stack.enter_context(open_file(source, options, progress, on_disk)), None
        wheres, others = [] if options.where is None else conjuncts(options.where), list[str]()
        if outcomes is not None:
            other = stack.enter_context(open_file(outcomes, ReadOptions(encoding=options.encoding)))
            others = [where for where in wheres if _has_columns(other, where) and not _has_columns(table, where)]
            other = _with_keys(_where(other, others), options, table, optional=True)
        wheres = [where for where in wheres if where not in others]
        yield _with_keys(_where(table, wheres), options, other), other


def _has_columns(table: Table, where: str) -> bool:
    """Whether a table has all columns that the condition `where` names."""
    try:
        parse_where(where, table.name, table.names, table.text)
    except LayoutError:
        return False
    return True


def _where(table: Table, wheres: Sequence[str]) -> Table:
    """Return the rows of a table that meet all conditions in `wheres`."""
    if not wheres:
        return table
    where = " and ".join(wheres)
    found = _rows(table, *parse_where(where, table.name, table.names, table.text), lambda **of: finding("where", **of))
    if found.rows == 0:
        raise fault("no-row-left", table=table.name, where=where)
    return found


def _rows(table: Table, condition: str, parameters: object, note: Callable[..., Note]) -> Table:
    """Return the rows of a table that meet an SQL condition, with `note(count, total)` on those left out."""
    with readable(table.source):
        found = table.rearranged(f"WHERE {condition}", parameters)
    left = [note(count=table.rows - found.rows, total=table.rows)] if found.rows < table.rows else []
    return replace(found, source=replace(table.source, notes=(*table.notes, *left)))


def _with_keys(table: Table, options: ReadOptions, other: Table | None = None, optional: bool = False) -> Table:
    """Return the table with a column for each composite key, whose columns may in part be in the table `other`.

    If `optional`, a key is left out where some of its columns are in neither table.
    """
    for parts in options.several.values():
        own = [name for name in parts if name in table.names]
        divided = own and other is not None and {*parts} & {*other.names} == {*parts} - {*own}
        if divided or not optional or len(own) == len(parts):
            places = [position(table.name, table.names, name) for name in (own if divided else parts)]
            table = table.with_key(places, BETWEEN.join(parts))
    return table


@contextmanager
def open_file(
    source: object, options: ReadOptions, progress: _Advance = None, on_disk: bool = False
) -> Iterator[Table]:
    """Open a file, several files as one table, or a data frame, for the time of a with statement.

    `on_disk` is whether the engine keeps the table in a file of its own, and in memory no more than `MEMORY`.
    """
    paths = isinstance(source, list | tuple) and all(isinstance(each, str | PathLike) for each in source)
    with ExitStack() as stack:

        def opened(table: Table) -> Table:
            stack.callback(table.connection.close)
            return table

        if not (paths or isinstance(source, str | PathLike) or hasattr(source, "read")):
            yield opened(read_frame(source))
            return
        tables = []
        for each in expand(source):
            workspace = Workspace()
            stack.callback(workspace.close)
            file = prepare(each, options.encoding, workspace)
            tables.append(opened(_read_file(file, workspace, progress, on_disk)))
            if tables[-1].rows == 0:
                raise fault("only-a-header", file=file.name)
        if len(tables) == 1 and not options.expert_from_name:
            yield _without_descriptions(tables[0])
        else:
            roles = UserRoles(options.keys, options.parts)
            alike = len({table.names for table in tables}) == 1
            by_name = options.expert_from_name or (alike and all(_is_of_one(table, roles) for table in tables))
            yield opened(_concatenated(tables, by_name))


def _is_of_one(table: Table, roles: UserRoles) -> bool:
    """Return True if a table has a row per event and one column of forecasts, as the file of one expert may have."""
    try:
        layout = find_layout(Profile(table), roles)
    except LayoutError:
        return False
    return layout.wide and len(layout.forecasts) == 1


def _concatenated(tables: Sequence[Table], by_name: bool) -> Table:
    """Return the rows of several tables as one table; if `by_name`, a column of experts has the name of each file."""
    names = list(dict.fromkeys(name for table in tables for name in table.names))
    number, size = {name: i for i, name in enumerate(names)}, len(names) + by_name
    connection = connect()
    connection.execute(f"CREATE TABLE t ({', '.join(f'c{i} VARCHAR' for i in range(size))})")
    starts = np.cumsum([0, *(table.rows for table in tables)]).tolist()
    for table in tables:
        own = {number[name]: table.text(i) for i, name in enumerate(table.names)}
        cells = table.select(", ".join(f"{cell} AS c{i}" for i, cell in own.items()))
        connection.register("w", {name: np.array(column.tolist(), dtype=object) for name, column in cells.items()})
        expert = literal(os.path.basename(table.name).partition(".")[0])
        also = f", {expert} AS c{len(names)}" if by_name else ""
        connection.execute(f"INSERT INTO t BY NAME SELECT *{also} FROM w")
        connection.unregister("w")
    what = "a file per expert, named after it" if by_name else "one table in pieces"
    note = finding("pieces", count=len(tables), what=what, names=[table.name for table in tables])
    notes = (note, *(note for table in tables for note in table.notes if note.code != "format"))
    name = tables[0].name if len(tables) == 1 else f"{len(tables)} files"
    source = replace(tables[0].source, name=name, notes=notes)
    pieces = tuple((table.source, start) for table, start in zip(tables, starts, strict=False))
    columns = (*names, *["expert"] * by_name)
    return Table(source, connection, columns, ("VARCHAR",) * size, starts[-1], pieces=pieces)


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
    kinds = [[_kind(cell) for cell in column] for column in columns]
    for count in range(1, _DESCRIBING + 1):
        measured = [i for i, kind in enumerate(kinds) if {"", *kind[count:]} == {"", "measured"}]
        described = all(kinds[i][row] == "word" for i in measured for row in range(count))
        distinct = all(len({columns[i][row] for i in measured}) == len(measured) for row in range(count))
        if len(measured) > 2 and described and distinct:
            return _rows(table, f"rowid >= {count}", None, lambda **of: finding("descriptions", **of))
    return table


def _kind(cell: str) -> str:
    """Return "measured" for a number or time, "" for a blank or a word for no answer, and "word" for other text."""
    if cell.lower() in MISSING:
        return ""
    return "measured" if looks_numeric(cell) or are_times([cell]) else "word"


def _read_file(
    source: FileSource, workspace: Workspace, progress: _Advance, on_disk: bool, again: bool = False
) -> Table:
    """Return the file as a table; `again` is True for its second reading, with its lines' ends unified."""
    disk = on_disk or (source.format != "parquet" and is_large(source.path))
    connection = connect(source.path, workspace if disk else None)
    load = {"csv": _load_csv, "parquet": _load_parquet}.get(source.format, _load_json)
    try:
        with watch(connection, progress):
            return load(source, connection, on_disk)
    except engine_errors() as error:
        connection.close()
        if interrupted(error):
            raise KeyboardInterrupt from None
        wrong = None if source.format == "parquet" else text_fault(source)
        if not isinstance(wrong, int) or (again and (source.padded or not wrong)):
            raise wrong if isinstance(wrong, OpinionPoolError) else unreadable(source, error) from None
    if wrong and not source.padded:
        notes = (*source.notes, finding("short-rows", Place(source.name), count=wrong))
        return _read_file(replace(source, padded=True, notes=notes), workspace, progress, on_disk, again)
    # Well formed after all: its lines do not all end in the same way.
    return _read_file(with_line_feeds(source, workspace), workspace, progress, on_disk, again=True)


def _create(connection: duckdb.DuckDBPyConnection, query: str, *parameters: object) -> int:
    """Make t the table of the rows that the SQL `query` returns, and return their number; `query` may read t."""
    created = connection.execute(f"CREATE OR REPLACE TABLE t AS {query}", parameters).fetchone()
    return int(created[0]) if created else 0


def _load_csv(source: FileSource, connection: duckdb.DuckDBPyConnection, _: bool) -> Table:
    columns = ", ".join(f"c{i}: 'VARCHAR'" for i in range(len(source.header)))
    options = (
        f"auto_detect = false, delim = {literal(source.delimiter)}, quote = '\"', escape = '\"', header = true, "
        f"{'null_padding = true, ' if source.padded else ''}"
        f"skip = {source.skip}, compression = 'none', hive_partitioning = false, "
        f"columns = {{{columns}}}"
    )
    rows = _create(connection, f"SELECT * FROM read_csv(?, {options})", source.path)
    return Table(source, connection, source.header, ("VARCHAR",) * len(source.header), rows)


def _load_parquet(source: FileSource, connection: duckdb.DuckDBPyConnection, copied: bool) -> Table:
    """Return the table in a Parquet file; its rows are `copied` to the engine, or else read when they are needed."""
    scan = f"read_parquet({literal(source.path)}, binary_as_string = true, hive_partitioning = false"
    described = connection.execute(f"SELECT * FROM {scan}) LIMIT 0").description or []
    check_columns(source.name, len(described))
    # The engine calls a column otherwise whose name stands there before, in whatever case.
    schema = connection.execute("SELECT name, num_children FROM parquet_schema(?)", [source.path]).fetchall()
    names = _outermost(schema)
    counted = connection.execute("SELECT num_rows FROM parquet_file_metadata(?)", [source.path]).fetchone()
    rows = int(counted[0]) if counted else 0
    check_cells(source.name, rows, len(names), os.path.getsize(source.path))
    aliases = ", ".join(f"c{i}" for i in range(len(names)))
    if copied:
        _create(connection, f"SELECT * FROM {scan}) AS x({aliases})")
    else:
        view = f"SELECT * FROM {scan}, file_row_number = true) AS x({aliases}, rowid)"
        # Rows leave the engine one after the other, and threads that wait to hand them over only cost time.
        connection.execute(f"CREATE VIEW t AS {view}; SET threads = 1")
    return Table(source, connection, names, tuple(str(column[1]) for column in described), rows, copied=copied)


def _outermost(schema: Sequence[tuple[str, int | None]]) -> tuple[str, ...]:
    """Return the names of the top-level columns of a schema that is listed depth first.

    >>> _outermost([("root", 2), ("a", 1), ("within a", None), ("b", None)])
    ('a', 'b')
    """
    names, inner = list[str](), 0
    for name, children in schema[1:]:
        names += [] if inner else [name.strip()]
        inner += (children or 0) - bool(inner)
    return tuple(names)


def _load_json(source: FileSource, connection: duckdb.DuckDBPyConnection, _: bool) -> Table:
    layout = "array" if source.format == "json array" else "newline_delimited"
    scan = f"read_json_objects(?, format = '{layout}', compression = 'uncompressed')"
    rows = _create(connection, f"SELECT json FROM {scan}", source.path)
    kinds = _structure(connection)
    inner = [key for key, kind in kinds.items() if isinstance(kind, list) and kind and isinstance(kind[0], dict)]
    if len(inner) == 1:
        # A row for each object in the list, with what stands beside the list.
        values = f"json -> {_pointer(inner)}"
        each = f"CASE WHEN json_array_length({values}) > 0 THEN CAST({values} AS JSON[]) ELSE [NULL] END"
        merged = f"json_merge_patch(json, json_object({literal(inner[0])}, each)) AS json"
        rows = _create(connection, f"SELECT {merged} FROM (SELECT json, unnest({each}) AS each FROM t)")
        source = replace(source, format="json rows", notes=(*source.notes, finding("inner-rows", key=inner[0])))
        kinds = _structure(connection)
    objects = "SELECT json_keys(json) AS keys, row_number() OVER () AS r FROM t WHERE json_type(json) = 'OBJECT'"
    lists = connection.execute(f"SELECT keys, min(r), count(*) FROM ({objects}) GROUP BY keys ORDER BY 2").fetchall()
    if sum(count for *_, count in lists) < rows:
        raise fault("no-objects", Place(source.name), unit="line" if layout[0] == "n" else "element")
    for keys, row, _ in lists:
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise fault("key-twice", Place(source.name), row=row, key=twice)
    paths = [
        path
        for key in dict.fromkeys(key for keys, *_ in lists for key in keys)
        for path in _paths((key,), kinds.get(key))
    ]
    check_columns(source.name, len(paths))
    if not paths:
        raise fault("empty-objects", Place(source.name))
    check_cells(source.name, rows, len(paths), sum(len(keys) * count for keys, _, count in lists))
    # All paths at once: an object is parsed anew for each that is asked for alone.
    cells = f"json_extract_string(json, [{', '.join(map(_pointer, paths))}])"
    columns = ", ".join(f"cells[{i}] AS c{i - 1}" for i in range(1, len(paths) + 1))
    _create(connection, f"SELECT {columns} FROM (SELECT {cells} AS cells FROM t)")
    names = tuple(".".join(path).strip() for path in paths)
    return Table(source, connection, names, ("VARCHAR",) * len(names), rows)


def _pointer(path: Sequence[str]) -> str:
    """SQL string of the JSON pointer to the value at `path`."""
    return literal("".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path))


def _structure(connection: duckdb.DuckDBPyConnection) -> dict[str, object]:
    """Return, by key, the type of the values in the JSON rows: a name, or an object or list of types."""
    row = connection.execute("SELECT json_group_structure(json) FROM t").fetchone()
    found = json.loads(row[0]) if row else None
    return found if isinstance(found, dict) else {}


def _paths(path: tuple[str, ...], kind: object) -> Iterator[tuple[str, ...]]:
    """Yield the paths to all values in the object of type `kind` at `path`; only `path` if it is no object."""
    for key, inner in kind.items() if isinstance(kind, dict) else ():
        yield from _paths((*path, key), inner)
    if not kind or not isinstance(kind, dict):
        yield path
