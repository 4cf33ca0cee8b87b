"""``opinionpool check``: what is in a file, and what stands in the way."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from opinionpool.cli.arguments import Keeping, Reading, Writing
from opinionpool.cli.help import SectionedCommand
from opinionpool.cli.inputs import find
from opinionpool.cli.options import panel_option, writing_for_people
from opinionpool.cli.output import conclude, destination, error_line, tell
from opinionpool.cli.reading_options import reading
from opinionpool.report.listing import printable

if TYPE_CHECKING:
    from opinionpool.report.check import Findings


@click.command(cls=SectionedCommand, short_help="What is in the file, and what stands in the way.")
@reading
@click.option(
    "--write-options",
    metavar="FILE.toml",
    help="Save the settings (--column, --dates, ...) with which the data were read.",
)
@panel_option
@click.option(
    "--model",
    type=click.Path(exists=True, dir_okay=False),
    metavar="POOL.json",
    help="Also say what this pool, which pool --save wrote, would do with FILE.",
)
@writing_for_people
def check(reading: Reading, writing: Writing, write_options: str | None, panel: str | None, model: str | None) -> int:
    """Describe the file: what is in it, what was converted, what stands in the way of pooling it.

    As CSV it has only the table of experts. With --panel, beliefs are checked too; with --model, what the
    pool that pool --save has written would do with the file. The exit status is 1 if something stands in the way.
    """
    keeping = Keeping(model, None)
    inputs = [*reading.inputs, *keeping.inputs, *([] if panel is None else [panel])]
    writing.check(inputs)
    Writing(write_options, "table").check(inputs)
    if model is not None and panel is not None:
        raise click.UsageError("--panel says what to believe when learning begins, and --model has begun")
    from opinionpool.report.check import check_view
    from opinionpool.report.view import write_view

    findings = find(reading, panel, keeping.load())
    view, kind = check_view(findings, reading.name), writing.chosen(people=True)
    with destination(writing.output) as out:
        write_view(view, kind, out)
    if write_options is not None:
        _write_options(write_options, findings, reading.outcomes)
    obstacles = [*map(error_line, findings.obstacles)]
    if obstacles and kind == "table" and writing.output is None:
        # The table says what it is; on a terminal it has just done so.
        obstacles = [] if sys.stdout.isatty() else [error_line("something stands in the way; see above")]
    conclude(kind, *view.lines, *obstacles)
    return 1 if findings.obstacles else 0


def _write_options(path: str, findings: Findings, outcomes: str | None) -> None:
    """Write the options that read a file to another one, with where its outcomes are from there."""
    if findings.options is None:
        tell(f"nothing written to {printable(path)}: no options read the file")
        return
    beside = None if outcomes in {None, "-"} else os.path.relpath(str(outcomes), os.path.dirname(path) or ".")
    with destination(path) as out:
        out.write(findings.options.toml(beside))
    tell(f"options written to {printable(path)}")
