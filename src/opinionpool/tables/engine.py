"""DuckDB, the engine that reads files: connections to it, the files it opens, temporary copies, and limits of size.

The engine may open one file and nothing else, and loads no extensions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, TextIO

from opinionpool.atomic import abandoned, own_name
from opinionpool.errors import Note, OpinionPoolError
from opinionpool.findings import fault

if TYPE_CHECKING:
    import duckdb


# What to do with a file that it cannot read.
SAVE_AS = "save it as CSV in the program that made it (File, Save As, CSV UTF-8), and read that file"
# Most columns and classes of a table: the engine's work for a column is that for thousands of cells.
COLUMNS = 10_000
CLASSES = 1_000
# Most characters of one cell: the csv module's limit, and more than any name or number has.
CELL = 1 << 17
# Bytes that any gzip file may unpack to, and most for each packed byte: tables shrink to a hundredth at most.
SMALL, RATIO = 1 << 26, 300
# Cells that any table may have, and most for each one written, as blanks are many where JSON objects differ in keys.
CELLS, SPARSE = 5_000_000, 20


# Bytes of text from which on a file is large; bytes of text for each byte of a gzip or Parquet file, by its first two.
LARGE, UNPACKED = 200_000_000, {b"\x1f\x8b": 5, b"PA": 6}


def is_large(source: object) -> bool:
    """Whether `source` is a file of more than `LARGE` bytes of text, which stays on disk while it is read."""
    if not isinstance(source, str | os.PathLike) or source == "-" or not os.path.isfile(source):
        return False
    size = os.path.getsize(source)
    with open(source, "rb") as file:
        head = file.read(2)
        file.seek(max(0, size - 4))
        # A gzip file ends with how much it holds.
        packed = int.from_bytes(file.read(4), "little") if head == b"\x1f\x8b" else 0
    return max(size * UNPACKED.get(head, 1), packed) > LARGE


def check_columns(name: str, columns: int) -> None:
    """Raise an error if the table in the file `name` has more than `COLUMNS` columns.

    >>> check_columns("forecasts.csv", 2000)
    """
    if columns > COLUMNS:
        raise fault("too-many-columns", file=name, columns=columns, most=COLUMNS)


def check_cells(name: str, rows: int, columns: int, written: int) -> None:
    """Raise an error if `rows` x `columns` is far more than `written`: the cells or bytes that the file `name` has."""
    if rows * columns > max(CELLS, SPARSE * written):
        raise fault("too-many-cells", file=name, rows=rows, columns=columns)


@dataclass
class Workspace:
    """Temporary directory for copies of files, made when it is first needed."""

    directory: str | None = None

    def path(self, name: str) -> str:
        """Return the path of a file called `name` in the directory, which is made if it is not there yet."""
        if self.directory is None:
            import shutil
            import tempfile

            for left in abandoned(tempfile.gettempdir()):
                shutil.rmtree(left, ignore_errors=True)
            self.directory = tempfile.mkdtemp(prefix=own_name())
        return os.path.join(self.directory, name)

    def close(self) -> None:
        """Remove the directory with its files."""
        if self.directory is not None:
            import shutil

            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory = None


@dataclass(frozen=True)
class FileSource:
    """A file as the engine (DuckDB) can read it: its path, format, separator and header."""

    name: str  # for messages, as the user gave it
    path: str  # of the file that the engine opens, which may be a copy
    format: str  # {"csv", "parquet", "json", "json array", "json rows", "frame"}
    delimiter: str = ","  # character between the fields of a CSV file
    header: tuple[str, ...] = ()  # column names of a CSV file, trimmed
    skip: int = 0  # lines before the header
    notes: tuple[Note, ...] = field(default=())
    sheet: bool = False  # whether it is the copy of a spreadsheet, of which users see rows and not lines
    padded: bool = False  # whether rows may have fewer fields than the header

    def lines(self) -> TextIO:
        """Return the file's text as a stream, its line ends unchanged."""
        return open(self.path, encoding="utf-8-sig", newline="")


Progress = Callable[[float], None]

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
# White space around names.
SPACE = "chr(32) || chr(9) || chr(10) || chr(11) || chr(12) || chr(13)"
# Bytes of a file up to which the engine reads it with one thread.
_LITTLE = 1 << 20
# Most memory that the engine takes for a table on disk.
MEMORY = "400MB"


def engine() -> ModuleType:
    """Return DuckDB's compiled module, which loads fast; if it cannot be imported, the whole package."""
    try:
        return import_module("_duckdb")
    except ImportError:
        return import_module("duckdb")


def connect(path: str = "", disk: Workspace | None = None) -> duckdb.DuckDBPyConnection:
    """Return a connection that may read only `path`, if any; its database is in memory or in a file on `disk`."""
    database = ":memory:" if disk is None else disk.path("table.db")
    config = _CONFIG
    if path and os.path.getsize(path) <= _LITTLE:
        # A second thread costs more than it saves.
        config = {**config, "threads": 1}
    connection: duckdb.DuckDBPyConnection = engine().connect(database, config=config)
    if disk is not None:
        connection.execute(f"SET memory_limit = '{MEMORY}'; SET temp_directory = {literal(disk.path('spill'))}")
    # The engine would draw a bar of its own on standard output.
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET allowed_paths = [{literal(path)}]")
    connection.execute("SET enable_external_access = false")
    return connection


def literal(text: str) -> str:
    """Return a text as an SQL string: in single quotes, with the quotes in it doubled."""
    return "'" + text.replace("'", "''") + "'"


def number(cell: str) -> str:
    """SQL for a cell as a number; NULL if it is none: 1_000 is one for the engine only."""
    return f"CASE WHEN contains(CAST({cell} AS VARCHAR), '_') THEN NULL ELSE TRY_CAST({cell} AS DOUBLE) END"


def engine_errors() -> tuple[type[Exception], ...]:
    """Return the exception types that DuckDB raises: its own, and built-in ones for damaged Parquet files."""
    return (engine().Error, RuntimeError, UnicodeError)


def interrupted(error: Exception) -> bool:
    """Whether `error` says that the engine was interrupted, by Ctrl-C."""
    return isinstance(error, engine().InterruptException) or "query interrupted" in str(error).lower()


def unreadable(source: FileSource, error: Exception) -> OpinionPoolError:
    """Return the error for a file that the engine cannot read, with the reason in `error`."""
    kinds = {"csv": "CSV", "parquet": "Parquet", "json": "JSON lines", "json array": "a JSON array"}
    kind = kinds.get(source.format, "JSON")
    reason = str(error).strip().partition("\n")[0].removeprefix("Invalid Input Error: ").replace(source.path, "it")
    return fault("unreadable", file=source.name, kind=kind, reason=reason)


@contextmanager
def readable(source: FileSource) -> Iterator[None]:
    """Context that turns the engine's errors in reading `source` into errors of this package."""
    try:
        yield
    except engine_errors() as error:
        if interrupted(error):
            raise KeyboardInterrupt from None
        raise unreadable(source, error) from None


@contextmanager
def watch(connection: duckdb.DuckDBPyConnection, progress: Progress | None) -> Iterator[None]:
    """Context that calls `progress` with the share of the engine's query that is done, from a thread of its own."""
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
