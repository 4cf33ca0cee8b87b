"""``opinionpool report``: a page to hand on."""

from __future__ import annotations

import hashlib
import os
import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from opinionpool.cli.arguments import SORTS, Pooling, Reading, Writing, prior_option
from opinionpool.cli.options import pooling, reading
from opinionpool.cli.streams import (
    destination,
    progress,
    read,
    tell,
)
from opinionpool.errors import ArgumentError
from opinionpool.report.listing import printable

if TYPE_CHECKING:
    from opinionpool.report.findings import Source


# What the name of a page may end in.
PAGES = ("", ".html", ".htm")


@click.command(short_help="A page to hand on: answers, why, experts, evidence.")
@reading
@pooling
@click.option("--by-time", is_flag=True, help="Score each event by a pool that learned only from its past.")
@click.option("--by-group", is_flag=True, help="Never score events by what was learned from their own groups.")
@click.option(
    "--repeats",
    type=click.IntRange(1),
    metavar="N",
    help="How often events are dealt anew for scores. Default: until it hardly matters, at most 20 times.",
)
@click.option("--title", metavar="TEXT", help="Heading of the page. Default: the name of the file.")
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default="probability",
    help="Open events: the most probable (default), least certain, most disputed or first to close first, by name, or "
    "as in the file.",
)
@click.option("-o", "--output", required=True, metavar="PAGE.html", help="Where to write; - is standard output.")
@click.pass_context
def report(
    context: click.Context,
    reading: Reading,
    pooling: Pooling,
    by_time: bool,
    by_group: bool,
    repeats: int | None,
    title: str | None,
    sort: str,
    output: str,
) -> None:
    """Write a page that can be handed on: the answers, why they are what they are, and how far to trust them.

    The page needs no other file and no network. It begins with the open events, shows what each expert says and counts
    for, measures the pool on events that it has not learned from, and ends with details for statisticians. The same
    file and options give the same page on the same day.
    """
    writing = Writing(None if output == "-" else output, "page")
    if os.path.splitext(output)[1].lower() not in PAGES and not (os.path.exists(output) and not os.path.isfile(output)):
        raise click.UsageError(f"{output}: the report is a page of HTML; give it a name that ends in .html")
    writing.check([*reading.inputs, *pooling.inputs])
    if by_time and by_group:
        raise click.UsageError("--by-time and --by-group exclude each other")
    belief_file, forecasts = pooling.belief_file(), read(reading)
    prior = prior_option("--prior", pooling.prior, forecasts)
    from opinionpool.report import summary
    from opinionpool.report.findings import find
    from opinionpool.report.page import report_page

    inputs = [*reading.inputs, *pooling.inputs]
    try:
        with progress("computing the report") as advance:
            found = find(
                forecasts,
                pooling.pool,
                prior=prior,
                beliefs=belief_file.beliefs,
                by="time" if by_time else "group" if by_group else None,
                repeats=repeats,
                source=_source(title, reading, [*inputs, output], inputs, context.obj),
                sort=sort,
                progress=advance,
            )
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    page = report_page(found)
    with destination(writing.output) as out:
        out.write(page)
    where = "" if writing.output is None else f"; the report is in {printable(output)}"
    tell(f"{summary.size_line(forecasts)}{where}")


def _source(title: str | None, reading: Reading, paths: list[str], inputs: list[str], arguments: list[str]) -> Source:
    """What the page says about where its numbers come from; folders are nobody's business."""
    from opinionpool.report.findings import Source

    words = [os.path.basename(word) if word in paths else word for word in arguments]
    named = "standard input" if reading.files == ("-",) else os.path.basename(os.path.normpath(reading.files[0]))
    today = datetime.now(tz=UTC).astimezone()
    date = f"{today.day} {today:%B %Y}"
    digests = tuple((os.path.basename(name), _digest(name)) for name in inputs if os.path.isfile(name))
    return Source(title or named, date, shlex.join(["opinionpool", *words]), digests)


def _digest(name: str) -> str:
    with open(name, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
