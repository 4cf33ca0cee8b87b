"""The engine that reads files, DuckDB: it may open one file and nothing else, and loads no extensions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from opinionpool.errors import OpinionPoolError
from opinionpool.findings import fault
from opinionpool.tables.sources import FileSource, Workspace

if TYPE_CHECKING:
    import duckdb

Progress = Callable[[float], None]

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
# White space around names.
SPACE = "chr(32) || chr(9) || chr(10) || chr(11) || chr(12) || chr(13)"
# What the engine may hold of a table that is on disk.
MEMORY = "400MB"


def engine() -> ModuleType:
    """Return the engine's compiled module, else the whole package, which takes longer to import."""
    try:
        return import_module("_duckdb")
    except ImportError:
        return import_module("duckdb")


def connect(path: str, disk: Workspace | None, again: bool) -> duckdb.DuckDBPyConnection:
    """Return a connection to an engine that can read one file, with its database in memory or on disk."""
    database = ":memory:" if disk is None else disk.path("again.db" if again else "table.db")
    connection: duckdb.DuckDBPyConnection = engine().connect(database, config=_CONFIG)
    if disk is not None:
        connection.execute(f"SET memory_limit = '{MEMORY}'; SET temp_directory = {literal(disk.path('spill'))}")
    # The engine would draw a bar of its own on standard output.
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET allowed_paths = [{literal(path)}]")
    connection.execute("SET enable_external_access = false")
    return connection


def literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def engine_errors() -> tuple[type[Exception], ...]:
    """Return the exception types that the engine raises, with plain ones for damaged Parquet files."""
    return (engine().Error, RuntimeError, UnicodeError)


def interrupted(error: Exception) -> bool:
    """Whether the engine was interrupted, which it says by an error of its own or by a plain one."""
    return isinstance(error, engine().InterruptException) or "query interrupted" in str(error).lower()


def unreadable(source: FileSource, error: Exception) -> OpinionPoolError:
    """The error for a file that the engine does not understand."""
    kinds = {"csv": "CSV", "parquet": "Parquet", "json": "JSON lines", "json array": "a JSON array"}
    kind = kinds.get(source.format, "JSON")
    reason = str(error).strip().partition("\n")[0].removeprefix("Invalid Input Error: ").replace(source.path, "it")
    return fault("unreadable", file=source.name, kind=kind, reason=reason)


@contextmanager
def readable(source: FileSource) -> Iterator[None]:
    """Translate the engine's errors, as some files prove damaged when their columns are read."""
    try:
        yield
    except engine_errors() as error:
        if interrupted(error):
            raise KeyboardInterrupt from None
        raise unreadable(source, error) from None


@contextmanager
def watch(connection: duckdb.DuckDBPyConnection, progress: Progress | None) -> Iterator[None]:
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
