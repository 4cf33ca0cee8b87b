"""What commands read: forecasts, and where they cannot be read, all that stands in the way."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from opinionpool.cli.arguments import BeliefFile, Reading
from opinionpool.cli.help import READING
from opinionpool.cli.output import progress
from opinionpool.errors import ArgumentError, OpinionPoolError, TableError
from opinionpool.text import typed

if TYPE_CHECKING:
    from opinionpool.forecasts import Forecasts
    from opinionpool.report.check import Findings
    from opinionpool.streams.trained import TrainedPool
    from opinionpool.tables.options import ReadOptions


def options_for(reading: Reading, model: tuple[str, TrainedPool] | None) -> ReadOptions:
    """Read options, with the classes and scales of a saved pool if there is one."""
    if model is None:
        return reading.options
    options = replace(reading.options, scale={**(model[1].scales or {}), **reading.options.scale})
    if model[1].unnamed:
        return options
    from opinionpool.labels import label_text

    return replace(options, classes=[label_text(label) for label in model[1].classes])


def read(reading: Reading, model: tuple[str, TrainedPool] | None = None) -> Forecasts:
    """The forecasts in files, about the classes of a pool from another file, if there is one.

    What is wrong with the options is wrong usage.

    Raises
    ------
    TableError
        If they cannot be read: with all that stands in the way.
    """
    from opinionpool.tables.parse import read_table
    from opinionpool.tables.read import open_tables

    options = options_for(reading, model)
    try:
        with ExitStack() as stack:
            with progress(f"reading {reading.name}") as advance:
                table, other = stack.enter_context(open_tables(reading.source, reading.outcomes, options, advance))
            forecasts = read_table(table, other, options)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    except TableError as error:
        raise _all_faults(reading, options, error) from None
    if model is None:
        return forecasts
    from opinionpool.streams.trained import matched

    return matched(forecasts, model[1], model[0])


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
    from opinionpool.tables.sources import is_large

    return any(map(is_large, reading.files))


def command_lines(reading: Reading, ways: Sequence[ReadOptions], *, again: bool = False) -> list[str]:
    """The command lines that pool the files with each of the read options, or that repeat the present command."""
    return [" ".join(map(typed, command_words(reading, way, again=again))) for way in ways]


def command_words(reading: Reading, way: ReadOptions, *, again: bool) -> list[str]:
    """Words of a command line that reads the files in one way, with every option explicit."""
    from opinionpool.tables.options import command_words as reading_words

    name, arguments, options = _typed() if again else ("pool", [], [])
    return [*reading_words(name, [*reading.files, *arguments], reading.outcomes, way), *options]


def find(reading: Reading, panel: str | None = None, model: tuple[str, TrainedPool] | None = None) -> Findings:
    """Result of examining the files, with the beliefs or the saved pool, and all obstacles to pooling."""
    from opinionpool.report.check import examine
    from opinionpool.tables.diagnosis import diagnose

    try:
        with progress(f"reading {reading.name}") as advance:
            diagnosis = diagnose(reading.source, reading.outcomes, options_for(reading, model), advance)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    classes = reading.options.classes
    commands = command_lines(reading, [replace(way.options, classes=classes) for way in diagnosis.readable])
    beside = {"--panel": panel, "--model": None if model is None else model[0]}
    commands = [
        command + "".join(f" {name} {typed(file)}" for name, file in beside.items() if file) for command in commands
    ]
    try:
        beliefs = BeliefFile.of(panel).beliefs
    except OpinionPoolError as error:
        found = examine(diagnosis, commands)
        return replace(found, obstacles=(*found.obstacles, str(error)))
    return examine(diagnosis, commands, beliefs, model)


def _typed() -> tuple[str, list[str], list[str]]:
    """The present command as it was typed: its name, and its arguments and options that do not say how to read FILE."""
    context = click.get_current_context()
    line = list(context.find_root().obj or [])
    raw, _, _ = context.command.make_parser(context).parse_args(line[1:])
    arguments, options = [], []
    for parameter in context.command.params:
        value = raw.get(parameter.name or "")
        if value is None or getattr(parameter, "section", None) == READING or not isinstance(value, str | bool | list):
            continue
        if isinstance(parameter, click.Argument):
            arguments += [value] if isinstance(value, str) and parameter.name != "files" else []
            continue
        given = value if isinstance(value, list) else [value]
        for each in given:
            options += [parameter.opts[-1]] if isinstance(each, bool) else [parameter.opts[-1], str(each)]
    return context.info_name or "pool", arguments, options
