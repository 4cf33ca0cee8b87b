"""``opinionpool report``: a page to hand on."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from opinionpool.cli.arguments import Earlier, Pooling, Reading, Writing, prior_option
from opinionpool.cli.help import SectionedCommand
from opinionpool.cli.inputs import command_words, read
from opinionpool.cli.options import earlier, pooling, repeats_option, split_by
from opinionpool.cli.output import destination, progress, tell
from opinionpool.cli.reading_options import reading
from opinionpool.errors import ArgumentError
from opinionpool.report import SORTS
from opinionpool.report.listing import printable
from opinionpool.text import typed

if TYPE_CHECKING:
    from opinionpool.analysis.diff import Diff
    from opinionpool.arrays import Array
    from opinionpool.forecasts import Forecasts
    from opinionpool.pools.fit import Configured, FitOptions
    from opinionpool.report.findings import Saved, Source
    from opinionpool.streams.trained import TrainedPool


# What the name of a page may end in.
PAGES = ("", ".html", ".htm")


@click.command(cls=SectionedCommand, short_help="A page to hand on: answers, why, experts, evidence.")
@reading
@pooling
@earlier
@split_by
@repeats_option
@click.option("--title", metavar="TEXT", help="Heading of the page. Default: the name of the file.")
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default="probability",
    help="Open events: the most probable (default), least certain, most disputed or first to close first, by name, or "
    "as in the file.",
)
@click.option("-o", "--output", required=True, metavar="PAGE.html", help="Where to write; - is standard output.")
def report(
    reading: Reading,
    pooling: Pooling,
    earlier: Earlier,
    by: str | None,
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
    from opinionpool.report import summary
    from opinionpool.report.findings import ReportOptions, Since, find
    from opinionpool.report.page import report_page
    from opinionpool.scoring.splits import Splits

    writing, inputs = _page(output), [*reading.inputs, *pooling.inputs, *earlier.inputs]
    writing.check(inputs)
    earlier.keeping.check(inputs, writing, pooling)
    model = earlier.keeping.read(pooling)
    forecasts = read(reading, model)
    prior = prior_option("--prior", pooling.prior, forecasts)
    since = None
    if earlier.since is not None:
        since = Since(os.path.basename(earlier.since), _changes(earlier.since, forecasts, pooling, prior, model))
    forecasts, pool, fit, saved = _answering(forecasts, prior, pooling, model)
    options = ReportOptions(_source(title, reading, [*inputs, output], inputs), sort, saved)
    try:
        with progress("computing the report", log=True) as advance:
            splits = Splits.of(by, repeats=repeats)
            found = find(forecasts, pool, fit=fit, splits=splits, options=options, progress=advance)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    page = report_page(replace(found, since=since))
    with destination(writing.output) as out:
        out.write(page)
    where = "" if writing.output is None else f"; the report is in {printable(output)}"
    tell(f"{summary.size_line(forecasts)}{where}")


def _page(output: str) -> Writing:
    """Output options for a page; refused if the file's name is no name of a page."""
    if os.path.splitext(output)[1].lower() not in PAGES and not (os.path.exists(output) and not os.path.isfile(output)):
        raise click.UsageError(f"{output}: the report is a page of HTML; give it a name that ends in .html")
    return Writing(None if output == "-" else output, "page")


def _answering(
    forecasts: Forecasts, prior: float | Array | None, pooling: Pooling, model: tuple[str, TrainedPool] | None
) -> tuple[Forecasts, Configured, FitOptions, Saved | None]:
    """The forecasts, the pool and its fit options, and the saved state if the pool is from a file."""
    from opinionpool.cli.kept import keep
    from opinionpool.logodds import public_probabilities
    from opinionpool.pools.fit import Configured, FitOptions
    from opinionpool.report.findings import Saved

    if model is None:
        beliefs = pooling.belief_file().beliefs
        return forecasts, Configured(pooling.pool, pooling.options(beliefs)), FitOptions(prior, beliefs), None
    file, trained = model
    kept, options = keep(forecasts, trained.name, prior, {}, model, learning=False), dict(trained.options)
    given = kept.reference
    if given is None and kept.given and kept.state.prior is not None:
        given = public_probabilities(kept.state.prior)
    saved = Saved(os.path.basename(file), kept.state, kept.pooled(None), kept.given)
    return kept.forecasts, Configured(trained.name, options), FitOptions(given, options.get("beliefs")), saved


def _changes(
    since: str,
    forecasts: Forecasts,
    pooling: Pooling,
    prior: float | Array | None,
    model: tuple[str, TrainedPool] | None,
) -> Diff:
    """Difference between the pool saved in `since` and the pool of the report."""
    from opinionpool.analysis.diff import diff
    from opinionpool.estimators.files import load
    from opinionpool.streams.trained import TrainedPool

    if forecasts.options is not None:
        raise click.UsageError("--since compares pools of events that share their classes, and these have options")
    new = model[1] if model is not None else None
    if new is None:
        new = TrainedPool.fit(pooling.pool, forecasts, prior=prior, **pooling.options(pooling.belief_file().beliefs))
    return diff(load(since), new)


def _source(title: str | None, reading: Reading, paths: list[str], inputs: list[str]) -> Source:
    """Title, date, command line and file digests for the page; folder names are removed for privacy."""
    from opinionpool.report.findings import Source

    # With every option spelled out, also those that a file of options gave.
    line = command_words(reading, reading.options, again=True)
    words = [os.path.basename(word) if word in paths else word for word in line]
    named = "standard input" if reading.files == ("-",) else os.path.basename(os.path.normpath(reading.files[0]))
    today = datetime.now(tz=UTC).astimezone()
    date = f"{today.day} {today:%B %Y}"
    digests = tuple((os.path.basename(name), _digest(name)) for name in inputs if os.path.isfile(name))
    return Source(title or named, date, " ".join(map(typed, words)), digests)


def _digest(name: str) -> str:
    with open(name, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
