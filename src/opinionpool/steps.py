"""What commands do with their options: read a file, compare pools, conclude with a summary."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from opinionpool.arguments import BeliefFile, Comparing, Reading
from opinionpool.errors import ArgumentError, DuplicateError, TableError
from opinionpool.render import printable
from opinionpool.streams import progress, tell

if TYPE_CHECKING:
    from opinionpool.compare import Comparison
    from opinionpool.describe import Findings
    from opinionpool.forecasts import Forecasts
    from opinionpool.logodds import Array
    from opinionpool.trained import TrainedPool


def read(reading: Reading, duplicates: str | None = None, classes: Sequence[object] | None = None) -> Forecasts:
    """The forecasts in a file, about these classes if they are known; what is wrong with the options is wrong usage."""
    from opinionpool.tables import read_forecasts

    try:
        said = asked(reading, classes)
        with progress(f"reading {reading.file}") as advance:
            return read_forecasts(
                reading.file,
                outcomes=reading.outcomes,
                encoding=reading.encoding,
                progress=advance,
                **(said if duplicates is None else said | {"duplicates": duplicates}),
            )
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None


def asked(reading: Reading, classes: Sequence[object] | None) -> dict[str, Any]:
    """What the command line says about the table, as `opinionpool.tables.Request.of` takes it.

    Raises
    ------
    ArgumentError
        If --as-of is no time.
    """
    from opinionpool.times import as_time

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
    from opinionpool.kept import matched
    from opinionpool.labels import label_text

    file, trained = model
    return matched(read(reading, classes=[label_text(label) for label in trained.classes]), trained, file)


def contest(forecasts: Forecasts, comparing: Comparing, prior: float | Array | None, told: BeliefFile) -> Comparison:
    """The comparison that the command line asked for."""
    from opinionpool.compare import compare_pools

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
                beliefs=told.beliefs,
                seed=comparing.seed,
                progress=advance,
            )
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None


def find(reading: Reading) -> Findings:
    """What is known about a file, duplicates or not."""
    from opinionpool.describe import Findings, examine

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
    """End a command with its summary, apart from the table if both are on a terminal."""
    apart = kind == "table" and sys.stdout.isatty() and sys.stderr.isatty()
    tell(*[""] * apart, *lines)


def error_line(message: str) -> str:
    """An error as it is told."""
    return f"opinionpool: error: {printable(message)}"
