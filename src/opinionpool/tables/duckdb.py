"""DuckDB: files into columns. The one place that knows it.

Everything of a text file comes in as text, under the dialect that `files` decided, into a table inside the engine;
columns are then taken from it as they are needed. The engine may open the one file and nothing else, and loads
no extensions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.errors import LayoutError, Note, TableError
from opinionpool.tables.coded import Different, spellings
from opinionpool.tables.contents import Contents
from opinionpool.tables.delimited import with_line_feeds
from opinionpool.tables.faults import csv_fault, csv_short_rows, json_fault, lines_of
from opinionpool.tables.files import expand, prepare
from opinionpool.tables.frames import BETWEEN, FrameTable, Numbers, Words, encode, tidied
from opinionpool.tables.layout import WIDE
from opinionpool.tables.recognise import recognise
from opinionpool.tables.sources import FileSource, Workspace, check_cells, check_columns
from opinionpool.tables.where import parse_where
from opinionpool.text import APOSTROPHE, counted, listed, shown, without_apostrophe

if TYPE_CHECKING:
    import duckdb

Progress = Callable[[float], None]

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
# White space around names.
SPACE = "chr(32) || chr(9) || chr(10) || chr(11) || chr(12) || chr(13)"
# Rows from which on the engine finds the words of a column, and reads times of this form.
_MANY = 20_000
_ISO = r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?Z?)?"
# What the engine may hold of a table that is on disk.
MEMORY = "400MB"
_WHOLE = ("VARCHAR", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_NUMERIC = (*_WHOLE, "FLOAT", "DOUBLE", "DECIMAL")


@dataclass(frozen=True)
class FileTable:
    """A file inside the engine, or some rows of it that follow each other; see `opinionpool.tables.frames.Table`."""

    source: FileSource
    connection: duckdb.DuckDBPyConnection
    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: int
    first: int = 0  # rows before these
    part: bool = False  # whether there are others
    copied: bool = True  # whether the engine has the rows in a table of its own, and does not read the file again
    moved: bool = False  # whether rows are not those of the file in its order, their places in it kept beside them
    keys: tuple[tuple[int, ...], ...] = ()  # columns beyond those of the file: each is several of them together
    # files that hold the rows, and where in the table each begins, if there are several
    pieces: tuple[tuple[FileSource, int], ...] = ()
    # all the words of some columns, of which a part has some
    known: Mapping[int, Sequence[str]] = field(default_factory=dict)
    different: Mapping[int, Different] = field(default_factory=dict)
    hashes: dict[int, npt.NDArray[np.uint64]] = field(default_factory=dict)
    seen: dict[int, Words] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The file, as the user called it."""
        return self.source.name

    @property
    def notes(self) -> tuple[Note, ...]:
        """How the file was read."""
        return self.source.notes

    def numbers(self, columns: Sequence[int], missing: frozenset[str]) -> list[Numbers | None]:
        """Columns as plain numbers; None for a column with a cell that is neither that nor among `missing`."""
        found: dict[int, Numbers | None] = {}
        own = [i for i in columns if i < len(self.types)]
        able = [i for i in own if self.types[i].removeprefix("U").startswith(_NUMERIC) and "[" not in self.types[i]]
        for i in [each for each in able if self.is_text(each)] if self.rows > _MANY else []:
            # Of many rows it is worth a try whether there is nothing but numbers.
            cell = f"CASE WHEN contains(c{i}, '_') THEN NULL ELSE c{i} END"
            values = self.select(f"TRY_CAST({cell} AS DOUBLE) AS c")["c"]
            if not np.ma.is_masked(values) and np.isfinite(plain := np.asarray(values)).all():
                found[i] = Numbers(plain)
                able.remove(i)
        words = f"[{', '.join(map(_literal, sorted(missing)))}]"
        # The time to plan a query grows with the square of what it selects.
        for start in range(0, len(able), 32):
            some = able[start : start + 32]
            query = ", ".join(f"{_number(i, words if self.is_text(i) else None)} AS c{i}" for i in some)
            fetched = self.select(query)
            for i in some:
                found[i] = _distinguished(np.ma.filled(fetched[f"c{i}"], np.nan))
        return [found.get(i) for i in columns]

    def words(self, column: int) -> Words:
        """A column as text; whole numbers without a decimal point, so that ids look as they did."""
        if column not in self.seen:
            self.seen[column] = self._fetch(column)
        return self.seen[column]

    def _fetch(self, column: int) -> Words:
        if self.rows > _MANY:
            words = self._found(column)
        else:
            words = encode(self.select(f"{self.text(column)} AS c")["c"].tolist())
        return words if column not in self.known else words.among(self.known[column])

    def _found(self, column: int) -> Words:
        """A column of many rows as text."""
        with _readable(self.source):
            hashes = self._hashes(column) if self.different else None
            found, place = spellings(
                self.connection, *self._cells(column), self._which, self.different.get(column), hashes
            )
        if self.source.format == "csv" and column < len(self.types):
            # The engine sees them all as they stand: cheaper for each word than for each cell.
            found = [None if word is None else without_apostrophe(word) for word in found]
        return tidied(found, place)

    def _cells(self, column: int) -> tuple[str, str]:
        """What to select for the cells of a column, and for their text; of CSV, as it stands."""
        own = column < len(self.types)
        # Different numbers with a fraction may be one text.
        cell = f"c{column}" if own and self.types[column].removeprefix("U").startswith(_WHOLE) else self.text(column)
        return cell, cell if self.source.format == "csv" and own else self.text(column)

    def _hashes(self, column: int) -> npt.NDArray[np.uint64]:
        """Of the cells of a column of a part; those of others come with them, which takes no longer."""
        if column not in self.hashes:
            wanted = {column, *self.different}
            query = ", ".join(f"hash({self._cells(each)[0]}) AS h{each}" for each in wanted)
            found = self.select(query)
            self.hashes.update({each: np.asarray(found[f"h{each}"]) for each in wanted})
        return self.hashes.pop(column)

    def knowing(self, columns: Sequence[int]) -> FileTable:
        """The table with what its parts need not find again: the different cells of some columns."""
        found = {column: Different.of(self.connection, *self._cells(column)) for column in columns}
        return replace(self, different=found)

    def iso_times(self, column: int) -> npt.NDArray[np.datetime64] | None:
        """A column as times in UTC, if each cell is blank or a date or time in UTC, year first; else None."""
        if column >= len(self.types) or self.types[column] != "VARCHAR" or self.rows < _MANY:
            return None
        cell = f"trim(c{column})"
        few = self.select(f"approx_count_distinct(c{column}) AS n")["n"][0] < self.rows / 8
        if few:
            # Each different word is read once then.
            return None
        able = self.select(f"bool_and({cell} = '' OR regexp_full_match({cell}, '{_ISO}')) AS able")["able"]
        if not np.ma.filled(able, True)[0]:
            return None
        try:
            times = self._select(f"CAST(nullif(rtrim({cell}, 'Z'), '') AS TIMESTAMP) AS c")["c"]
        except _engine().Error:
            return None
        return np.asarray(np.ma.filled(times, np.datetime64("NaT")), dtype="datetime64[us]")

    def select(self, what: str) -> dict[str, npt.NDArray[Any]]:
        """Columns that are computed from those of these rows.

        Raises
        ------
        TableError
            If the file turns out to be damaged.
        """
        with _readable(self.source):
            return self._select(what)

    def _select(self, what: str) -> dict[str, npt.NDArray[Any]]:
        some = f" WHERE {self._which}" if self.part else ""
        found: dict[str, npt.NDArray[Any]] = self.connection.execute(f"SELECT {what} FROM t{some}").fetchnumpy()
        return found

    @property
    def _which(self) -> str:
        """Which rows these are, as a condition; empty for all."""
        return f"rowid >= {self.first} AND rowid < {self.first + self.rows}" if self.part else ""

    def text(self, column: int) -> str:
        """What to select for a column as text."""
        if column >= len(self.types):
            parts = [f"trim({self.text(part)}, {SPACE})" for part in self.keys[column - len(self.types)]]
            blank = " OR ".join(f"coalesce({part}, '') = ''" for part in parts)
            return f"CASE WHEN {blank} THEN NULL ELSE concat_ws({_literal(BETWEEN)}, {', '.join(parts)}) END"
        cell = f"c{column}"
        if self.source.format == "csv":
            formula = f"{cell}[1] = '''' AND regexp_matches({cell}, '{APOSTROPHE}')"
            cell = f"CASE WHEN {formula} THEN {cell}[2:] ELSE {cell} END"
        elif self.types[column] in {"DOUBLE", "FLOAT"}:
            cell = f"CASE WHEN isnan({cell}) THEN NULL ELSE regexp_replace({cell}::VARCHAR, '\\.0$', '') END"
        return f"CAST({cell} AS VARCHAR)"

    def changed(self, query: str, parameters: object = None) -> None:
        """Put what a query makes of the rows in their place."""
        self.connection.execute(f"CREATE TABLE s AS {query}", parameters)
        self.connection.execute(f"DROP {'TABLE' if self.copied else 'VIEW'} t; ALTER TABLE s RENAME TO t")

    def rows_from(self, first: int, rows: int, known: Mapping[int, Sequence[str]] | None = None) -> FileTable:
        """Some rows of the whole, to be used in a thread of its own."""
        return replace(
            self, connection=self.connection.cursor(), rows=rows, first=first, part=True, known=known or {}, seen={},
            hashes={},
        )  # fmt: skip

    def with_key(self, columns: Sequence[int]) -> FileTable:
        """The table with one more column: several columns together."""
        name = BETWEEN.join(self.names[column] for column in columns)
        return replace(self, names=(*self.names, name), keys=(*self.keys, tuple(columns)), seen={})

    def is_text(self, column: int) -> bool:
        """Whether the cells of a column are text, whatever they look like, and not numbers of some type."""
        return column >= len(self.types) or self.types[column] == "VARCHAR"

    def place(self, rows: Sequence[int]) -> str:
        """Where rows stand, for people: the lines of a text file, the rows of another."""
        rows = [self.first + int(row) for row in rows]
        if self.moved:
            places = ", ".join(map(str, rows))
            query = f"SELECT rowid, place FROM t WHERE rowid IN ({places})"
            place = dict(self.connection.execute(query).fetchall())
            rows = [place[row] for row in rows]
        found = []
        starts = [start for _, start in self.pieces]
        for number, (source, start) in enumerate(self.pieces or ((self.source, 0),)):
            end = starts[number + 1] if number + 1 < len(starts) else None
            own = [row - start for row in rows if row >= start and (end is None or row < end)]
            if own:
                lines = source.format in {"csv", "json"} and not source.sheet
                unit, numbers = ("line", lines_of(source, own)) if lines else ("row", [row + 1 for row in own])
                found.append(f"{source.name}, {unit}{'s' if len(own) > 1 else ''} {', '.join(map(str, numbers))}")
        return "; ".join(found)


def _number(column: int, missing: str | None) -> str:
    """SQL for a column of numbers; in text, -inf for a word that stands for no answer, inf for what is no number."""
    cell = f"c{column}"
    if missing is None:
        return f"CAST({cell} AS DOUBLE)"
    # The engine reads 1_000 as a number, too. It makes a join of a long IN, which may give rows in another order.
    value = f"CASE WHEN contains({cell}, '_') THEN NULL ELSE TRY_CAST({cell} AS DOUBLE) END"
    missing_case = f"WHEN list_contains({missing}, lower(trim({cell}))) THEN '-inf'"
    other = f"CASE WHEN {cell} IS NULL THEN 'nan' {missing_case} ELSE 'inf' END"
    return f"CASE WHEN isfinite({value}) OR isnan({value}) THEN {value} ELSE CAST({other} AS DOUBLE) END"


def _distinguished(values: Array) -> Numbers | None:
    if not np.isinf(values).any():
        return Numbers(values)
    if np.isposinf(values).any():
        return None
    words = np.isneginf(values)
    return Numbers(np.where(words, np.nan, values), int(words.sum()))


@contextmanager
def open_file(
    source: object,
    encoding: str | None,
    progress: Progress | None,
    on_disk: bool = False,
    name_experts: bool | None = False,
) -> Iterator[FileTable]:
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
            table = _read(prepare(each, encoding, workspace), workspace, progress, on_disk)
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


def _together(tables: Sequence[FileTable], by_name: bool) -> FileTable:
    """Several tables as one, with a column that names the expert after the file where each is one expert's."""
    names = list(dict.fromkeys(name for table in tables for name in table.names))
    first, columns = tables[0], [*names, "expert"] if by_name else names
    connection = _connect("", None, False)
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
    return FileTable(source, connection, tuple(columns), ("VARCHAR",) * len(columns), start, pieces=tuple(pieces))


def _experts_are_files(tables: Sequence[FileTable]) -> bool:
    """Whether each of several files has a single column of forecasts, and none that says whose they are."""
    for table in tables:
        try:
            layout = recognise(Contents(table))
        except LayoutError:
            return False
        if layout.shape != WIDE or len(layout.experts) != 1:
            return False
    return len({table.names for table in tables}) == 1


def matching(table: FileTable | FrameTable, where: str) -> FileTable | FrameTable:
    """The rows of a table that meet a condition."""
    if isinstance(table, FileTable):
        found = parse_where(where, table.name, table.names, table.text)
        place = "t.place" if table.moved else "t.rowid"
        columns = ", ".join(f"c{i}" for i in range(len(table.types)))
        with _readable(table.source):
            table.changed(f"SELECT {columns}, {place} AS place FROM t WHERE {found.query}", found.parameters)
        counted = table.connection.execute("SELECT count(*) FROM t").fetchone()
        return replace(table, rows=int(counted[0]) if counted else 0, copied=True, moved=True, seen={})
    used: dict[int, str] = {}
    found = parse_where(where, table.name, table.names, lambda i: used.setdefault(i, f"c{i}"))
    cells = {name: np.array([cell or "" for cell in table.words(i).texts()], dtype=object) for i, name in used.items()}
    connection = _connect("", None, False)
    connection.register("w", {**cells, "place": np.arange(table.rows)})
    query = f"SELECT place FROM w WHERE {found.query} ORDER BY place"
    places = connection.execute(query, found.parameters).fetchnumpy()["place"]
    connection.close()
    return table.at_rows(np.asarray(places, dtype=np.intp))


def _read(
    source: FileSource, workspace: Workspace, progress: Progress | None, on_disk: bool, again: bool = False
) -> FileTable:
    connection = _connect(source.path, workspace if on_disk else None, again or source.padded)
    try:
        with _watch(connection, progress):
            return _LOADERS[source.format](source, connection, on_disk)
    except _engine_errors() as error:
        connection.close()
        if isinstance(error, _engine().InterruptException):
            raise KeyboardInterrupt from None
        short = csv_short_rows(source) if source.format == "csv" and not source.padded else 0
        if short:
            text = f"{source.name}: {counted(short, 'row')} shorter than the header, the cells that lack taken as blank"
            padded = replace(source, padded=True, notes=(*source.notes, Note("short-rows", text, short)))
            return _read(padded, workspace, progress, on_disk, again)
        fault = {"csv": csv_fault, "json": json_fault}.get(source.format, lambda _: None)(source)
        if fault is None and source.format == "csv" and not again:
            # Well formed after all: its lines do not all end in the same way.
            return _read(with_line_feeds(source, workspace), workspace, progress, on_disk, again=True)
        raise fault or _unreadable(source, error) from None


def _unreadable(source: FileSource, error: Exception) -> TableError:
    """The error for a file that the engine does not understand."""
    kinds = {"csv": "CSV", "parquet": "Parquet", "json": "JSON lines", "json array": "a JSON array"}
    kind = kinds.get(source.format, "JSON")
    reason = str(error).strip().partition("\n")[0].removeprefix("Invalid Input Error: ").replace(source.path, "it")
    return TableError(f"{source.name} cannot be read as {kind}: {reason}")


@contextmanager
def _readable(source: FileSource) -> Iterator[None]:
    """Errors of the engine as ours, as some files turn out to be damaged when their columns are read."""
    try:
        yield
    except _engine_errors() as error:
        if isinstance(error, _engine().InterruptException):
            raise KeyboardInterrupt from None
        raise _unreadable(source, error) from None


def _engine() -> ModuleType:
    """The engine's compiled half, where it can be had: the whole package takes longer to import than a file to read."""
    try:
        return import_module("_duckdb")
    except ImportError:
        return import_module("duckdb")


def _connect(path: str, disk: Workspace | None, again: bool) -> duckdb.DuckDBPyConnection:
    """An engine that can open one file, and one of its own on disk."""
    database = ":memory:" if disk is None else disk.path("again.db" if again else "table.db")
    connection: duckdb.DuckDBPyConnection = _engine().connect(database, config=_CONFIG)
    if disk is not None:
        connection.execute(f"SET memory_limit = '{MEMORY}'; SET temp_directory = {_literal(disk.path('spill'))}")
    # The engine would draw a bar of its own on standard output.
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET allowed_paths = [{_literal(path)}]")
    connection.execute("SET enable_external_access = false")
    return connection


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _engine_errors() -> tuple[type[Exception], ...]:
    """What the engine raises; for damaged Parquet files, also errors that are none of its own."""
    return (_engine().Error, RuntimeError, UnicodeError)


def _create(connection: duckdb.DuckDBPyConnection, query: str, path: str) -> int:
    created = connection.execute(f"CREATE TABLE t AS {query}", [path]).fetchone()
    return int(created[0]) if created else 0


def _load_csv(source: FileSource, connection: duckdb.DuckDBPyConnection, _: bool) -> FileTable:
    columns = ", ".join(f"c{i}: 'VARCHAR'" for i in range(len(source.header)))
    options = (
        f"auto_detect = false, delim = {_literal(source.delimiter)}, quote = '\"', escape = '\"', header = true, "
        f"{'null_padding = true, ' if source.padded else ''}"
        f"skip = {source.skip}, compression = '{'gzip' if source.gzip else 'none'}', hive_partitioning = false, "
        f"columns = {{{columns}}}"
    )
    query = f"SELECT * FROM read_csv(?, {options})"
    rows = _create(connection, query, source.path)
    return FileTable(source, connection, source.header, ("VARCHAR",) * len(source.header), rows)


def _load_parquet(source: FileSource, connection: duckdb.DuckDBPyConnection, copied: bool) -> FileTable:
    """Columns of a Parquet file are read when they are needed, unless its rows are to be copied."""
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
        return FileTable(source, connection, names, types, rows)
    file = f"read_parquet({_literal(source.path)}, {options}, file_row_number = true)"
    connection.execute(f"CREATE VIEW t AS SELECT * FROM {file} AS x({aliases}, rowid)")
    return FileTable(source, connection, names, types, int(counted[0]) if counted else 0, copied=False)


def _outermost(schema: Sequence[tuple[str, int | None]]) -> tuple[str, ...]:
    """Names of the columns from a list of all that a schema holds, each before what is within it.

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


def _load_json(source: FileSource, connection: duckdb.DuckDBPyConnection, _: bool) -> FileTable:
    layout = "array" if source.format == "json array" else "newline_delimited"
    scan = f"read_json_objects(?, format = '{layout}', compression = '{'gzip' if source.gzip else 'uncompressed'}')"
    rows = _create(connection, f"SELECT json FROM {scan}", source.path)
    kinds = "SELECT json_keys(json) AS keys, row_number() OVER () AS r FROM t WHERE json_type(json) = 'OBJECT'"
    lists = connection.execute(f"SELECT keys, min(r), count(*) FROM ({kinds}) GROUP BY keys ORDER BY 2").fetchall()
    if sum(count for *_, count in lists) < rows:
        raise TableError(
            f"{source.name}: every {'line' if layout[0] == 'n' else 'element'} must be one object, {{...}}"
        )
    for keys, row, _ in lists:
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise TableError(f"{source.name}: object {row} has the key {shown(twice)} twice, and one value is wanted")
    keys = list(dict.fromkeys(key for keys, *_ in lists for key in keys))
    check_columns(source.name, len(keys))
    nested = _may_hold_objects(connection)
    paths = [path for key in keys for path in (_paths(connection, key) if key in nested else [(key,)])]
    names = [".".join(path) for path in paths]
    if not names:
        raise TableError(f"{source.name}: every object in it is empty")
    check_columns(source.name, len(names))
    check_cells(source.name, rows, len(names), sum(len(keys) * count for keys, _, count in lists))
    # All paths at once: an object is parsed anew for each that is asked for alone.
    cells = f"json_extract_string(json, [{', '.join(map(_pointer, paths))}])"
    columns = ", ".join(f"cells[{i}] AS c{i - 1}" for i in range(1, len(paths) + 1))
    connection.execute(f"CREATE TABLE columns AS SELECT {columns} FROM (SELECT {cells} AS cells FROM t); DROP TABLE t")
    connection.execute("ALTER TABLE columns RENAME TO t")
    return FileTable(source, connection, tuple(map(str.strip, names)), ("VARCHAR",) * len(names), rows)


def _pointer(path: Sequence[str]) -> str:
    return _literal("".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path))


def _may_hold_objects(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """The keys that hold an object in some row, and those that hold values of several kinds."""
    row = connection.execute("SELECT json_group_structure(json) FROM t").fetchone()
    assert row is not None
    structure = json.loads(row[0])
    # Objects that are all empty have no structure.
    kinds = structure.items() if isinstance(structure, dict) else ()
    return {key for key, kind in kinds if isinstance(kind, dict) or kind == "JSON"}


def _paths(connection: duckdb.DuckDBPyConnection, key: str) -> list[tuple[str, ...]]:
    """Where the values of a key stand: at it, or one level below where it holds objects."""
    inner = f"json -> {_pointer([key])}"
    query = f"SELECT DISTINCT unnest(json_keys({inner})) FROM t WHERE json_type({inner}) = 'OBJECT' LIMIT 1000"
    below = [str(row[0]) for row in connection.execute(query).fetchall()]
    return [(key, each) for each in sorted(below)] if below else [(key,)]


_LOADERS = {
    "csv": _load_csv,
    "parquet": _load_parquet,
    "json": _load_json,
    "json array": _load_json,
    "json rows": _load_json,
}


@contextmanager
def _watch(connection: duckdb.DuckDBPyConnection, progress: Progress | None) -> Iterator[None]:
    """Report how far the engine is, from a thread beside it."""
    if progress is None:
        yield
        return
    import threading

    done = threading.Event()

    def report() -> None:
        while not done.wait(0.1):
            share = connection.query_progress()
            if share > 0:
                progress(min(share / 100.0, 1.0))

    connection.execute(
        "SET enable_progress_bar = true; SET enable_progress_bar_print = false; SET progress_bar_time = 0"
    )
    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    progress(1.0)
