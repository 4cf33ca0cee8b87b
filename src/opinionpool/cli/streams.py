"""Where results go: standard output, which may be closed early, or a file, which is complete or not there."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO

import click

from opinionpool.atomic import replacing
from opinionpool.cli import stopping
from opinionpool.cli.arguments import BeliefFile, Comparing, Reading
from opinionpool.cli.help import READING
from opinionpool.errors import ArgumentError, OpinionPoolError, TableError
from opinionpool.progress import advancing
from opinionpool.report.listing import folded, printable

if TYPE_CHECKING:
    from opinionpool.arrays import Array
    from opinionpool.forecasts import Forecasts
    from opinionpool.report.check import Findings
    from opinionpool.scoring.comparison import Comparison
    from opinionpool.streams.trained import TrainedPool
    from opinionpool.tables.options import ReadOptions


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
            stopping.check()
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
    with advancing(sys.stderr.isatty(), printable(what)) as advance:
        yield advance


def read(reading: Reading, classes: Sequence[object] = ()) -> Forecasts:
    """The forecasts in files, about these classes if they are known; what is wrong with the options is wrong usage.

    Raises
    ------
    TableError
        If they cannot be read: with all that stands in the way.
    """
    from opinionpool.tables.read import open_outcomes, open_table, read_table

    options = replace(reading.options, classes=classes) if classes else reading.options
    try:
        with ExitStack() as stack:
            with progress(f"reading {reading.name}") as advance:
                table = stack.enter_context(open_table(reading.source, options, advance))
            other = None if reading.outcomes is None else stack.enter_context(open_outcomes(reading.outcomes, options))
            return read_table(table, other, options)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    except TableError as error:
        raise _all_faults(reading, options, error) from None


def _all_faults(reading: Reading, options: ReadOptions, error: TableError) -> TableError:
    """One error for all that stands in the way of reading files, ending with the command lines that read them."""
    from opinionpool.tables.diagnosis import diagnose

    if not reading.again or not error.remedies or _is_large(reading):
        return error
    found = diagnose(reading.source, reading.outcomes, options)
    faults = [fault.text for fault in found.faults if not fault.proposed]
    if str(error) in faults:
        faults.remove(str(error))
    lines = [str(error), *(f"further: {text}" for text in faults)]
    commands = command_lines(reading, [way.options for way in found.readable], again=True)
    lines += ["try one of these:" if len(commands) > 1 else "try:"] if commands else []
    return type(error)("\n".join([*lines, *(f"  {command}" for command in commands)]))


def _is_large(reading: Reading) -> bool:
    from opinionpool.tables.parts import is_large

    return any(map(is_large, reading.files))


def command_lines(reading: Reading, ways: Sequence[ReadOptions], *, again: bool = False) -> list[str]:
    """What is typed to pool files, read in each of these ways, or to run the present command once more."""
    from opinionpool.tables.options import command_line

    name, arguments, options = _typed() if again else ("pool", [], [])
    files = [*reading.files, *arguments]
    return [command_line(name, files, reading.outcomes, way) + "".join(options) for way in ways]


def _typed() -> tuple[str, list[str], list[str]]:
    """The present command as it was typed: its name, and its arguments and options that do not say how to read FILE."""
    context = click.get_current_context()
    typed = list(context.find_root().obj or [])
    raw, _, _ = context.command.make_parser(context).parse_args(typed[1:])
    arguments, options = [], []
    for parameter in context.command.params:
        value = raw.get(parameter.name or "")
        if value is None or getattr(parameter, "section", None) == READING or not isinstance(value, str | bool | list):
            continue
        if isinstance(parameter, click.Argument):
            arguments += [value] if isinstance(value, str) and parameter.name != "files" else []
            continue
        given = value if isinstance(value, list) else [value]
        words = ["" if isinstance(each, bool) else f" {shlex.quote(str(each))}" for each in given]
        options += [f" {parameter.opts[-1]}{word}" for word in words]
    return context.info_name or "pool", arguments, options


def read_for(reading: Reading, model: tuple[str, TrainedPool] | None) -> Forecasts:
    """The forecasts in a file, about the classes of a pool from another file, if there is one."""
    if model is None:
        return read(reading)
    from opinionpool.labels import label_text
    from opinionpool.streams.trained import matched

    file, trained = model
    return matched(read(reading, [label_text(label) for label in trained.classes]), trained, file)


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


def find(reading: Reading, panel: str | None = None, model: tuple[str, TrainedPool] | None = None) -> Findings:
    """What is known about files, with what is believed of their experts or learned, and all that stands in the way."""
    from opinionpool.labels import label_text
    from opinionpool.report.check import examine
    from opinionpool.tables.diagnosis import diagnose

    try:
        with progress(f"reading {reading.name}") as advance:
            options = reading.options
            if model is not None:
                options = replace(options, classes=[label_text(label) for label in model[1].classes])
            diagnosis = diagnose(reading.source, reading.outcomes, options, advance)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    classes = reading.options.classes
    commands = command_lines(reading, [replace(way.options, classes=classes) for way in diagnosis.readable])
    try:
        beliefs = BeliefFile.of(panel).beliefs
    except OpinionPoolError as error:
        found = examine(diagnosis, commands)
        return replace(found, obstacles=(*found.obstacles, str(error)))
    return examine(diagnosis, commands, beliefs, model)


def conclude(kind: str, *lines: str) -> None:
    """End a command with its summary, after an empty line if table and summary are on a terminal."""
    blank = kind == "table" and sys.stdout.isatty() and sys.stderr.isatty()
    tell(*[""] * blank, *lines)


def error_line(message: str) -> str:
    """An error as it is shown."""
    return "opinionpool: error: " + "\n".join(map(printable, message.split("\n")))
