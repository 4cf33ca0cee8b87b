"""The command ``opinionpool report``."""

from __future__ import annotations

import hashlib
import os
import shlex
from typing import TYPE_CHECKING

import click

from opinionpool.arguments import Pooling, Reading, Writing, chances
from opinionpool.errors import ArgumentError
from opinionpool.options import pooling, reading
from opinionpool.render import printable
from opinionpool.steps import read
from opinionpool.streams import destination, progress, tell

if TYPE_CHECKING:
    from opinionpool.reportdata import Source

# What the name of a page may end in.
PAGES = ("", ".html", ".htm")


@click.command(short_help="A page to hand on: gains, open events, experts, checks.")
@reading
@pooling
@click.option("--by-time", is_flag=True, help="Score events by what was learned from their past alone.")
@click.option("--by-group", is_flag=True, help="Never score events by what was learned from their own groups.")
@click.option(
    "--repeats",
    type=click.IntRange(1),
    metavar="N",
    help="How often events are dealt anew for scores. Default: until it hardly matters, at most 20 times.",
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
    output: str,
) -> None:
    """Write a page that can be handed on: what pooling gains, what it says, and why one may believe it.

    The page needs no other file and no network. It compares the pool with the simple average and the best expert on
    events that it has not learned from, forecasts the open events, describes the experts, and checks the model. The
    same file and options give the same page.
    """
    writing = Writing(None if output == "-" else output, "page")
    if os.path.splitext(output)[1].lower() not in PAGES and not (os.path.exists(output) and not os.path.isfile(output)):
        raise click.UsageError(f"{output}: the report is a page of HTML; give it a name that ends in .html")
    writing.check([*reading.inputs, *pooling.inputs])
    if by_time and by_group:
        raise click.UsageError("--by-time and --by-group exclude each other")
    told, forecasts = pooling.told(), read(reading)
    prior = chances("--prior", pooling.prior, forecasts)
    from opinionpool import summary
    from opinionpool.report import report_page
    from opinionpool.reportdata import find

    inputs = [*reading.inputs, *pooling.inputs]
    try:
        with progress("computing the report") as advance:
            found = find(
                forecasts,
                pooling.pool,
                prior=prior,
                beliefs=told.beliefs,
                by="time" if by_time else "group" if by_group else None,
                repeats=repeats,
                source=_source(reading.file, [*inputs, output], inputs, context.obj),
                progress=advance,
            )
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    page = report_page(found)
    with destination(writing.output) as out:
        out.write(page)
    where = "" if writing.output is None else f"; the report is in {printable(output)}"
    tell(f"{summary.size_line(forecasts)}{where}")


def _source(file: str, paths: list[str], inputs: list[str], arguments: list[str]) -> Source:
    """What the page says about where its numbers come from; folders are nobody's business."""
    from opinionpool.reportdata import Source

    words = [os.path.basename(word) if word in paths else word for word in arguments]
    title = "standard input" if file == "-" else os.path.basename(file)
    digests = tuple((os.path.basename(name), _digest(name)) for name in inputs if os.path.isfile(name))
    return Source(title, shlex.join(["opinionpool", *words]), digests)


def _digest(name: str) -> str:
    with open(name, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
