"""Where results go: standard output, which may be closed early, or a file, which is complete or not there."""

from __future__ import annotations

import io
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

import click

from opinionpool.atomic import replacing
from opinionpool.cli.options import BeliefFile, Comparing, Reading
from opinionpool.errors import ArgumentError, DuplicateError, TableError
from opinionpool.report.listing import folded, printable

if TYPE_CHECKING:
    from rich.progress import Progress

    from opinionpool.arrays import Array
    from opinionpool.forecasts import Forecasts
    from opinionpool.report.check import Findings
    from opinionpool.scoring.comparison import Comparison
    from opinionpool.streams.trained import TrainedPool

# Seconds before a progress bar appears.
PATIENCE = 1.0


def speak_utf8() -> None:
    """Make the standard streams write UTF-8 whatever the locale, and escape what even that cannot say."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def open_closed_streams() -> None:
    """Put the null device where a standard stream was closed, as daemons do, so that no file takes its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - stays open


def hush(stream: TextIO) -> None:
    """Send what is still to be written to a stream nowhere, so that closing it at exit cannot fail."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextmanager
def destination(path: str | None) -> Iterator[TextIO]:
    """The stream to write results to; `path` None is standard output.

    Nobody ever sees half of a file, and a failure leaves what was there (`opinionpool.atomic.replacing`). Links are
    followed; devices and pipes are written to as they are.
    """
    if path is None:
        with _standard_output() as stream:
            yield stream
        return
    with replacing(path) as raw:
        stream = io.TextIOWrapper(raw, "utf-8", "backslashreplace", newline="")
        try:
            yield stream
        finally:
            stream.detach()


@contextmanager
def _standard_output() -> Iterator[TextIO]:
    """Standard output; that its reader, such as ``head``, has seen enough is no fault."""
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        hush(sys.stdout)


def tell(*lines: str) -> None:
    """Say something on standard error, after what is on its way to standard output; nobody need be listening."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    room = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    try:
        for line in lines:
            for number, part in enumerate(folded(line, room - 2) if room else [line]):
                sys.stderr.write(f"{'  ' if number else ''}{part}\n")
        sys.stderr.flush()
    except BrokenPipeError:
        hush(sys.stderr)


@contextmanager
def progress(what: str) -> Iterator[Callable[[float], None] | None]:
    """A function that shows which share of something long is done; None unless a person is watching."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(printable(what))
    try:
        yield bar
    finally:
        bar.stop()


class _Bar:
    """A progress bar that appears once it is clear that it is needed."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._since = time.monotonic()
        self._shown: Progress | None = None

    def __call__(self, share: float) -> None:
        if self._shown is None:
            if share >= 1.0 or time.monotonic() - self._since < PATIENCE:
                return
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

            columns = TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn()
            self._shown = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
            self._shown.add_task(self._what, total=1.0)
            self._shown.start()
        self._shown.update(self._shown.task_ids[0], completed=share)

    def stop(self) -> None:
        """Remove the bar."""
        if self._shown is not None:
            self._shown.stop()


def read(reading: Reading, duplicates: str | None = None, classes: Sequence[object] | None = None) -> Forecasts:
    """The forecasts in a file, about these classes if they are known; what is wrong with the options is wrong usage."""
    from opinionpool.tables.read import read_forecasts

    try:
        keywords = asked(reading, classes)
        with progress(f"reading {reading.file}") as advance:
            return read_forecasts(
                reading.file,
                outcomes=reading.outcomes,
                encoding=reading.encoding,
                progress=advance,
                **(keywords if duplicates is None else keywords | {"duplicates": duplicates}),
            )
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None


def asked(reading: Reading, classes: Sequence[object] | None) -> dict[str, Any]:
    """What the command line says about the table, as `opinionpool.tables.read.Request.of` takes it.

    Raises
    ------
    ArgumentError
        If --as-of is no time.
    """
    from opinionpool.tables.cells import as_time

    return {
        "positive": reading.positive,
        "classes": classes,
        "columns": {role: name or None for role, name in reading.column},
        "options": reading.options,
        "duplicates": reading.duplicates,
        "as_of": None if reading.as_of is None else as_time(reading.as_of, "--as-of"),
        "percent": reading.percent,
        "decimal": reading.decimal,
        "missing_values": reading.missing_value,
        "include": reading.include,
        "exclude": reading.exclude,
    }


def read_for(reading: Reading, model: tuple[str, TrainedPool] | None) -> Forecasts:
    """The forecasts in a file, about the classes of a pool from another file, if there is one."""
    if model is None:
        return read(reading)
    from opinionpool.labels import label_text
    from opinionpool.streams.trained import matched

    file, trained = model
    return matched(read(reading, classes=[label_text(label) for label in trained.classes]), trained, file)


def contest(
    forecasts: Forecasts, comparing: Comparing, prior: float | Array | None, belief_file: BeliefFile
) -> Comparison:
    """The comparison that the command line asked for."""
    from opinionpool.scoring.comparison import compare_pools

    try:
        with progress("comparing") as advance:
            return compare_pools(
                forecasts,
                comparing.pools,
                folds=comparing.folds,
                repeats=comparing.repeats,
                by=comparing.by,
                gap=comparing.gap,
                prior=prior,
                beliefs=belief_file.beliefs,
                seed=comparing.seed,
                progress=advance,
            )
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None


def find(reading: Reading) -> Findings:
    """What is known about a file, duplicates or not."""
    from opinionpool.report.check import Findings, examine

    try:
        return examine(read(reading))
    except DuplicateError as error:
        if reading.file == "-":
            return Findings(None, obstacles=(str(error),))
        forecasts = read(reading, "last")
        unruled = tuple(note for note in forecasts.notes if note.code != "duplicates")
        return examine(replace(forecasts, notes=unruled), [str(error)])
    except TableError as error:
        return Findings(None, obstacles=(str(error),))


def conclude(kind: str, *lines: str) -> None:
    """End a command with its summary, after an empty line if table and summary are on a terminal."""
    blank = kind == "table" and sys.stdout.isatty() and sys.stderr.isatty()
    tell(*[""] * blank, *lines)


def error_line(message: str) -> str:
    """An error as it is shown."""
    return f"opinionpool: error: {printable(message)}"
