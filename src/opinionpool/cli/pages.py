"""The commands that make pages: ``report``, ``open`` and ``paper``."""

from __future__ import annotations

import hashlib
import os
import threading
import webbrowser
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from opinionpool.cli.options import (
    EXISTING,
    OWN,
    Pooling,
    SectionedCommand,
    Splitting,
    check_output,
    file_option,
    given,
    load_pool,
    option,
)
from opinionpool.cli.output import destination, progress, tell
from opinionpool.cli.reading import InputFiles, optional_reading, read, reading, typed_again
from opinionpool.errors import ArgumentError
from opinionpool.extras import install
from opinionpool.report import SORTS
from opinionpool.report.listing import printable
from opinionpool.text import typed

if TYPE_CHECKING:
    from opinionpool.analysis.diff import Diff
    from opinionpool.cli.pool import PoolRequest
    from opinionpool.forecasts import Forecasts
    from opinionpool.page.answer import PageData
    from opinionpool.page.assessment import Assessment
    from opinionpool.pools.fit import Configured, FitOptions
    from opinionpool.report.findings import Saved, Source
    from opinionpool.streams.trained import TrainedPool


# Endings that file names of pages may have.
PAGES = ("", ".html", ".htm")


@dataclass(frozen=True)
class Reporting(Pooling):
    """Options of the command report: title, order of events, the pool, and an earlier saved pool to compare with."""

    since: str | None = file_option(
        "--since",
        type=EXISTING,
        metavar="OLD.json",
        help="A pool that pool --save wrote earlier: add what changed since then, and why answers moved.",
    )
    title: str | None = option(
        OWN, "--title", metavar="TEXT", help="Heading of the page. Default: the name of the file."
    )
    sort: str = option(
        OWN,
        "--sort",
        type=click.Choice(SORTS),
        default="probability",
        help="Open events: the most probable (default), least certain, most disputed or first to close first, by name, "
        "or as in the file.",
    )


@click.command(cls=SectionedCommand, short_help="A page to hand on: answers, why, experts, evidence.")
@reading
@given(Reporting, "pooling")
@given(Splitting, "splitting")
@click.option("-o", "--output", required=True, metavar="PAGE.html", help="Where to write; - is standard output.")
def report(reading: InputFiles, pooling: Reporting, splitting: Splitting, output: str) -> None:
    """Write a page that can be handed on: the answers, why they are what they are, and how far to trust them.

    The page needs no other file and no network. It begins with the open events, shows what each expert says and counts
    for, measures the pool on events that it has not learned from, and ends with details for statisticians. The same
    file and options give the same page on the same day.
    """
    from opinionpool.cli.pool import PoolRequest
    from opinionpool.pools.fit import Configured, FitOptions
    from opinionpool.report.findings import ReportOptions, find
    from opinionpool.report.page import report_page
    from opinionpool.report.view import size_line
    from opinionpool.scoring.splits import Splits

    if os.path.splitext(output)[1].lower() not in PAGES and not (os.path.exists(output) and not os.path.isfile(output)):
        raise click.UsageError(f"{output}: the report is a page of HTML; give it a name that ends in .html")
    path, inputs = None if output == "-" else output, [*reading.inputs, *pooling.inputs]
    check_output(path, inputs)
    beliefs, model = pooling.begin()
    forecasts = read(reading, model)
    asked, since = PoolRequest.of(pooling, forecasts, beliefs, model), None
    if pooling.since is not None:
        since = os.path.basename(pooling.since), _changes(pooling.since, forecasts, asked)
    chosen, fit, saved = Configured(asked.name, asked.options), FitOptions(asked.prior, beliefs), None
    if model is not None:
        forecasts, chosen, fit, saved = _saved_pool(forecasts, asked, *model)
    options = ReportOptions(_source(pooling.title, reading, [*inputs, output], inputs), pooling.sort, saved, since)
    try:
        with progress("computing the report", log=True) as advance:
            splits = Splits.of(splitting.by, repeats=splitting.repeats)
            found = find(forecasts, chosen, fit=fit, splits=splits, options=options, progress=advance)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    page = report_page(found)
    with destination(path) as out:
        out.write(page)
    tell(size_line(forecasts) + ("" if path is None else f"; the report is in {printable(path)}"))


def _saved_pool(
    forecasts: Forecasts, asked: PoolRequest, file: str, trained: TrainedPool
) -> tuple[Forecasts, Configured, FitOptions, Saved]:
    """What a report on the pool saved in `file` needs: forecasts by its experts, pool, fit options and answers."""
    from opinionpool.logodds import public_probabilities
    from opinionpool.pools.fit import Configured, FitOptions
    from opinionpool.report.findings import Saved

    kept, options = asked.on(forecasts), dict(trained.options)
    reference = kept.reference
    if reference is None and kept.given and kept.state.prior is not None:
        reference = public_probabilities(kept.state.prior)
    saved = Saved(os.path.basename(file), kept.state, kept.pooled(None), kept.given)
    return kept.forecasts, Configured(trained.name, options), FitOptions(reference, options.get("beliefs")), saved


def _changes(since: str, forecasts: Forecasts, asked: PoolRequest) -> Diff:
    """Differences between the pool saved in the file `since` and the pool that the report is about."""
    from opinionpool.analysis.diff import diff
    from opinionpool.estimators.files import load
    from opinionpool.streams.trained import TrainedPool

    if forecasts.options is not None:
        raise click.UsageError("--since compares pools of events that share their classes, and these have options")
    if asked.model is not None:
        return diff(load(since), asked.model[1])
    return diff(load(since), TrainedPool.fit(asked.name, forecasts, prior=asked.prior, **asked.options))


def _source(title: str | None, reading: InputFiles, paths: list[str], inputs: list[str]) -> Source:
    """Title, date, command line and digests of the files `inputs`; folders are left out of names in `paths`."""
    from opinionpool.report.findings import Source

    # With every option spelled out, also those that a file of options gave.
    words = [os.path.basename(word) if word in paths else word for word in typed_again(reading, reading.options)]
    named = "standard input" if reading.files == ("-",) else os.path.basename(os.path.normpath(reading.files[0]))
    today = datetime.now(tz=UTC).astimezone()
    digests = []
    for name in filter(os.path.isfile, inputs):
        with open(name, "rb") as stream:
            digests.append((os.path.basename(name), hashlib.file_digest(stream, "sha256").hexdigest()))
    return Source(title or named, f"{today.day} {today:%B %Y}", " ".join(map(typed, words)), tuple(digests))


# Packages that the page in the browser needs.
NEEDED = ("starlette", "uvicorn")


@click.command(name="open", cls=SectionedCommand, short_help="A page to assess experts and watch the answer move.")
@optional_reading
@click.option("--panel", metavar="PANEL.toml", type=EXISTING, help="Begin with what this file says of the experts.")
@click.option(
    "--model", type=EXISTING, metavar="FILE", help="Answer by the pool that pool --save has written, as it is."
)
@click.option(
    "--keep", metavar="FILE", help="Keep what is assessed in this file (JSON), and offer it again at the next start."
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: one that is free.")
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
def open_page(
    reading: InputFiles | None, panel: str | None, model: str | None, keep: str | None, port: int, no_browser: bool
) -> None:
    """Open a page in the browser: assess experts, watch the answer move, and defend it.

    Without FILE the page begins with three example advisers. With FILE it begins with the file's events and forecasts,
    and learns from those that are resolved. It runs on this machine alone, at an address that is printed, and ends with
    Ctrl-C, or a minute after its last page was closed. It writes no file but that of --keep. Needs the extra page
    (python -m pip install '.[page]' in a copy of the repository).
    """
    if any(find_spec(name) is None for name in NEEDED):
        raise ArgumentError(f"the page needs Starlette and uvicorn: {install('page')}")
    check_output(keep, [*(reading.inputs if reading else []), panel, model])
    data, given = _data(reading, panel, model)
    from opinionpool.page.server import Server

    try:
        server = Server(data, given, keep=keep, port=port)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.UsageError(f"--port: {port} cannot be used: {error.strerror}") from None
    click.echo(server.address)
    tell("the page runs until Ctrl-C, or a minute after its last page was closed")
    if not no_browser:
        # Some browsers make the caller wait until they are closed.
        threading.Thread(target=webbrowser.open, args=(server.address,), daemon=True).start()
    server.run()


def _data(reading: InputFiles | None, panel: str | None, model: str | None) -> tuple[PageData, Assessment | None]:
    """What the page answers from (files or a saved pool), and its first assessment; None for a default assessment."""
    from opinionpool.learning.beliefs import read_beliefs
    from opinionpool.page.answer import PageData, Source
    from opinionpool.page.assessment import blank, with_beliefs
    from opinionpool.page.session import start_of

    if model is not None:
        data = _saved(reading, model, panel)
        return data, None if reading is not None else blank(data.experts, data.classes)
    source = Source() if reading is None else Source(reading.files, reading.words)
    data = PageData(None if reading is None else read(reading, None), source=source)
    if panel is None:
        return data, None
    beliefs = read_beliefs(panel)
    base = start_of(data, None) if reading is not None else blank()
    try:
        return data, with_beliefs(base, beliefs)
    except ArgumentError as error:
        raise click.UsageError(f"{printable(panel)}: {error}") from None


def _saved(reading: InputFiles | None, model: str, panel: str | None) -> PageData:
    """What the page answers from: the pool saved in the file `model`, and forecasts if files are given."""
    from opinionpool.cli.pool import PoolRequest
    from opinionpool.learning.fitted import FittedPanel
    from opinionpool.page.answer import PageData, Source

    trained = load_pool(model, panel)
    assert trained is not None
    state = trained[1].learned
    if not isinstance(state, FittedPanel):
        raise click.UsageError(
            f"--model: the page shows the gaussian pool, and the pool in {model} is {trained[1].name}"
        )
    if reading is None:
        return PageData(trained=state, source=Source(model=model))
    kept = PoolRequest("gaussian", None, {}, trained).on(read(reading, trained))
    return PageData(kept.forecasts, state, kept.reference, Source(reading.files, reading.words, model))


@click.command(cls=SectionedCommand, short_help="Reproduce the paper that the model is from.")
@click.option("-o", "--output", "folder", required=True, metavar="DIR", help="Where to write; made if it is not there.")
@click.option("--seed", type=click.IntRange(0), default=0, metavar="N", help="Random seed. Default: 0.")
@click.option(
    "--iterations",
    type=click.IntRange(1),
    default=30,
    metavar="N",
    help="Random draws of experts, and of the half of the events to learn from, for each number of experts. "
    "Default: 30, as in the paper.",
)
def paper(folder: str, seed: int, iterations: int) -> None:
    """Reproduce the paper that the model is from, and say which of its claims hold.

    Writes every figure as SVG and PNG, the numbers as CSV, and index.html, which shows all of it with what the paper
    says beside what is found. The same seed gives the same files. Needs the extra paper
    (python -m pip install '.[paper]' in a copy of the repository).
    """
    if not folder:
        raise click.UsageError("-o needs the name of a folder, and it is empty; . is the one you are in")
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise click.UsageError(f"{folder} is not a directory")
    from pathlib import Path

    from opinionpool.blocks import processors
    from opinionpool.paper.reproduce import reproduce

    with progress("reproducing the paper", log=True) as advance:
        done = reproduce(Path(folder), seed, iterations, processors(), advance)
    with destination(None) as out:
        out.write(f"{done.page}\n")
    assumed = sum(claim.holds for claim in done.claims)
    count = len(done.claims)
    missing = [] if done.missing is None else [f"{done.missing}; then run this again"]
    tell(
        f"{done.figures} figures; of {count} claims that can be checked {assumed} hold, {count - assumed} do not",
        *missing,
    )
