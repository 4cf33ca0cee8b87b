"""``opinionpool rate``: which share of a group's events happens."""

from __future__ import annotations

from dataclasses import replace

import click

from opinionpool.cli.arguments import Pooling, Reading, Writing
from opinionpool.cli.help import SectionedCommand
from opinionpool.cli.options import model_option, pooling, writing
from opinionpool.cli.output import present
from opinionpool.cli.reading_options import reading


@click.command(cls=SectionedCommand, short_help="Which share of the events of each group happens.")
@reading
@click.option(
    "--by",
    metavar="COLUMN[,COLUMN]",
    help="The column, or columns, of groups, such as system or system,language. Default: all events are one group.",
)
@click.option(
    "--labels",
    type=click.Choice(("random", "selected")),
    default="random",
    help="Whether the resolved events are a random sample of their group (default), or were selected in some way and "
    "say nothing about how many of the open ones happen.",
)
@pooling
@model_option
@writing
def rate(reading: Reading, by: str | None, labels: str, pooling: Pooling, writing: Writing, model: str | None) -> None:
    """Estimate which share of the events of each group happens, such as how many of a system's outputs are good.

    Resolved events are counted. Open ones count by what the forecasts say, with a base rate of the group's own that is
    estimated from them, not the one that the pool was learned with. Intervals hold what is unknown about that, about
    the outcomes and about the experts. Events that share a column group, such as one item judged for two systems, are
    paired in differences.

    \b
    happens, from, to  the share of the group's events, and its 90% credible interval
    mean of answers    the mean of what the command pool answers
    majority           the share on which more experts are for it than against it
    Rogan-Gladen       that share, corrected by the majority's hits and false alarms on resolved events
    PPI++              the mean forecast, corrected by its mean error on the group's resolved events

    JSON and CSV have the intervals of all. What is assumed is that experts err in each group as in the others, given
    the outcome; a note says where forecasts speak against that.
    """  # noqa: D301 - click reads the character
    from opinionpool.analysis.rates import rates
    from opinionpool.cli.kept import PooledFile
    from opinionpool.report import rates as report
    from opinionpool.report.view import View

    if by is not None:
        columns = [name.strip() for name in by.split(",")]
        own = {"topic": columns[0] if len(columns) == 1 else columns}
        reading = replace(reading, options=replace(reading.options, columns={**reading.options.columns, **own}))
    file = PooledFile.of(reading, pooling, writing, model, topics=False)
    kept, groups = file.kept, None if by is None else file.forecasts.topics
    found = rates(kept.state, kept.forecasts, groups, labels=labels, prior=kept.reference)
    facts, differences = file.facts() | report.rate_facts(found, labels), report.difference_columns(found)
    lines = [*report.rate_lines(found), *file.lines()]
    notes = (*file.forecasts.notes, *kept.notes, *found.notes)
    view = View("rates", report.rate_columns(found), facts, lines, notes, [differences], forecasts=file.forecasts)
    present(view, writing)
