"""The command line: ``opinionpool pool``, ``experts``, ``explain``, ``compare``, ``report``, ``paper`` and ``check``.

A command reads, asks the layers below and hands the answer to `opinionpool.report.listing`. Results go to standard
output, everything else to standard error. The exit status is 0 when done, 1 when the data do not allow it, 2 when the
command line is wrong, and 130 when interrupted.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

import click

from opinionpool.cli import stopping
from opinionpool.cli.open import open_page
from opinionpool.cli.options import (
    Comparing,
    Keeping,
    Pooling,
    PriorOption,
    Reading,
    Writing,
    comparing,
    keeping,
    panel_option,
    pooling,
    prior_option,
    read_prior,
    reading,
    writing,
)
from opinionpool.cli.streams import (
    conclude,
    contest,
    destination,
    error_line,
    find,
    hush,
    open_closed_streams,
    progress,
    read,
    read_for,
    speak_utf8,
    tell,
)
from opinionpool.cli.value import value
from opinionpool.errors import ArgumentError, Note, OpinionPoolError
from opinionpool.report.listing import printable, write_json, write_listing, write_topics
from opinionpool.version import __version__

if TYPE_CHECKING:
    from opinionpool.report.check import Findings
    from opinionpool.report.findings import Source


@click.command(short_help="Why the pool answers what it answers on one event.")
@reading
@click.argument("event")
@pooling
@click.option(
    "--base-rate",
    metavar="P",
    callback=read_prior,
    multiple=True,
    help="How frequent the event is where the answer is used, if that differs from the prior.",
)
@click.option(
    "--model",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Explain the pool that pool --save has written, as it is.",
)
@writing
def explain(
    reading: Reading, event: str, pooling: Pooling, writing: Writing, base_rate: PriorOption, model: str | None
) -> None:
    """Show why the pool answers what it answers on one EVENT: every forecast, and what it counted for.

    \b
    bias      how far from the prior the expert’s forecasts are when it knows nothing, in log-odds
    contrast  the forecast less prior and bias, in log-odds, with extremes moderated
    weight    among those who answered this event; share, in the average and linear pools
    adds      weight times contrast; from prior to base rate these add up to the pooled log-odds
    without   what the answer would be had this expert not answered

    "all experts" is the intercept: what the pool adds whatever the forecasts, for a bias that all share and for a prior
    that few events can only estimate; every bias then changes about as much. The median,
    trimmed and beta-linear pools are no such sums. With more than two classes, log-odds are log-probabilities less
    their mean over the classes.
    """  # noqa: D301 - click reads the character
    keeping = Keeping(model, None)
    inputs = [*reading.inputs, *pooling.inputs, *keeping.inputs]
    writing.check(inputs)
    keeping.check(inputs, writing, pooling)
    belief_file, trained = pooling.belief_file(), keeping.read(pooling)
    forecasts = read_for(reading, trained)
    prior, rate = prior_option("--prior", pooling.prior, forecasts), prior_option("--base-rate", base_rate, forecasts)
    from opinionpool.analysis.explanation import event_position, explain_event
    from opinionpool.cli.pool import keep
    from opinionpool.report import answers, explanation as explained, summary

    try:
        t = event_position(forecasts, event)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    kept = keep(forecasts, pooling.pool, prior, belief_file.options, trained, learning=False)
    why = explain_event(kept.forecasts, t, kept.state, prior=kept.reference, base_rate=rate)
    in_sample = bool(kept.pooled(rate).in_sample[t])
    notes = [*kept.state.notes, *why.notes, *summary.base_rate_notes(kept.state, kept.given, rate)]
    if in_sample:
        notes.append(Note("in-sample", "this answer is in-sample: the pool has learned from its outcome"))
    kind = writing.chosen()
    with destination(writing.output) as out:
        if kind == "json":
            facts = summary.pool_facts(forecasts, kept.name, kept.answered_with, rate, (*forecasts.notes, *notes))
            facts |= summary.belief_facts(belief_file.beliefs) | kept.facts(None) | explained.explanation_facts(why)
            facts |= {"outcome": answers.happened(forecasts)[t], "in_sample": in_sample}
            write_json("experts", explained.explanation_records(why), facts, out)
        else:
            write_listing(explained.explanation_columns(why), kind, out)
    conclude(
        kind,
        *explained.explanation_lines(why),
        summary.pool_line(forecasts, kept.name, kept.answered_with, kept.given, rate),
        *kept.lines(None),
        *summary.belief_lines(belief_file.file, belief_file.beliefs),
        *summary.note_lines(forecasts, notes),
    )


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
    type=click.Choice(["probability", "interval", "disagreement", "event", "file"]),
    default="probability",
    help="Open events: the most probable (default), least certain or most disputed first, by name, or as in the file.",
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


SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=SETTINGS, invoke_without_command=True)
@click.version_option(__version__, prog_name="opinionpool", message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context) -> None:
    """Turn several probabilities for the same event into one, learning whom to believe.

    FILE is CSV, TSV, Parquet, JSON or a spreadsheet, text as gzip too, several files, a folder, or - for standard
    input. Either a row per forecast, with columns event, expert, probability, and outcome where it is known; or a row
    per event, with a column per expert. check FILE says how a file is read, what stands in the way, and what to type.
    """
    if context.invoked_subcommand is None:
        tell(context.get_help())
        context.exit(2)


@app.command(short_help="A probability for every event, learned from the resolved ones.")
@reading
@pooling
@click.option(
    "--base-rate",
    metavar="P",
    callback=read_prior,
    multiple=True,
    help="How frequent the event is where the answers are used, if that differs from the prior.",
)
@keeping
@writing
def pool(reading: Reading, pooling: Pooling, keeping: Keeping, writing: Writing, base_rate: PriorOption) -> None:
    """Learn from the resolved events and print a probability for every event."""
    inputs = [*reading.inputs, *pooling.inputs, *keeping.inputs]
    writing.check(inputs)
    keeping.check(inputs, writing, pooling)
    from opinionpool.cli.pool import pool_files

    pool_files(reading, pooling, keeping, writing, base_rate)


@app.command(short_help="What was learned about each expert.")
@reading
@pooling
@writing
def experts(reading: Reading, pooling: Pooling, writing: Writing) -> None:
    """Print what was learned about each expert, the largest weight first.

    \b
    bias         how far the expert is above (+) or below (-) where it should be, in log-odds
    calibration  1 = take as is, below 1 = overconfident, above 1 = underconfident
    accuracy     how much the expert knows, once bias and calibration are corrected
    AUC          how well its own forecasts discriminate: 0.5 = not at all, 1 = perfectly
    weight       its part in the pooled log-odds when every expert is present
    from, to     its 90% credible interval, given beliefs and outcomes
    CLASS        where weights differ between classes: of what it says of that one; the weight is their mean

    Narrow terminals leave out the weights by class, then the interval, then the accuracy, then the number of all
    forecasts.
    """  # noqa: D301 - click reads the character
    writing.check([*reading.inputs, *pooling.inputs])
    belief_file, forecasts = pooling.belief_file(), read(reading)
    prior = prior_option("--prior", pooling.prior, forecasts)
    from opinionpool.pools.registry import fit_pool
    from opinionpool.report import answers, summary, summary as worth

    state = fit_pool(pooling.pool, forecasts, prior=prior, **belief_file.options)
    columns = answers.expert_columns(forecasts, state)
    alike = answers.one_outcome_notes(forecasts, pooling.pool)
    notes = (*forecasts.notes, *state.notes, *alike, *answers.expert_notes(state))
    whole = worth.together(state)
    kind = writing.chosen()
    with destination(writing.output) as out:
        if kind == "json":
            facts = summary.pool_facts(forecasts, pooling.pool, state, None, notes) | summary.belief_facts(
                belief_file.beliefs
            )
            write_json("experts", answers.records(columns), facts | worth.together_facts(whole), out)
        else:
            write_listing(columns, kind, out)
    conclude(
        kind,
        summary.size_line(forecasts),
        summary.pool_line(forecasts, pooling.pool, state, prior is not None, None),
        *worth.together_lines(whole),
        *summary.belief_lines(belief_file.file, belief_file.beliefs),
        *summary.note_lines(forecasts, notes),
    )


app.add_command(explain)
app.add_command(report)
app.add_command(open_page)
app.add_command(value)


@app.command(short_help="Which pool does best on events it has not learned from.")
@reading
@comparing
@writing
def compare(reading: Reading, comparing: Comparing, writing: Writing) -> None:
    """Score every pool on events that it has not learned from, and say which differences are real.

    \b
    score      normalised log score: 0 = uninformed, 1 = perfect
    in-sample  the same on events that the pool has learned from, for pools that learn
    gain       its score less that of the simple average, with an interval

    Events are dealt into folds at random; each is scored by pools fitted to the other folds. Pools are compared on the
    same events, an expert and the pool on the events that both answered. Forecasts must not have been made from the
    outcomes, as those of a model about the data that it was fitted to are.

    Intervals hold for all rows of a table at once, so fewer pools are compared more sharply. The verdict on the
    best pool holds for every pair of pools at once, because which one is best is known only in hindsight. CSV holds
    the pools, JSON the experts too.
    """  # noqa: D301 - click reads the character
    writing.check([*reading.inputs, *comparing.inputs])
    belief_file, forecasts = comparing.belief_file(), read(reading)
    prior = prior_option("--prior", comparing.prior, forecasts)
    from opinionpool.report import comparison as compared, summary

    found = contest(forecasts, comparing, prior, belief_file)
    notes = (*forecasts.notes, *found.notes)
    kind = writing.chosen()
    with destination(writing.output) as out:
        if kind == "json":
            facts = (
                summary.facts(forecasts) | summary.belief_facts(belief_file.beliefs) | compared.comparison_facts(found)
            )
            write_json("pools", compared.comparison_records(found), facts | {"notes": summary.note_records(notes)}, out)
        elif kind == "csv":
            write_listing(compared.pool_columns(found), kind, out)
        else:
            compared.write_comparison(found, out)
    verdict = [] if kind == "table" else compared.verdict_lines(found)
    assumed = summary.belief_lines(belief_file.file, belief_file.beliefs)
    conclude(kind, summary.size_line(forecasts), *assumed, *verdict, *summary.note_lines(forecasts, notes))


@app.command(short_help="Reproduce the paper that the model is from.")
@click.option("-o", "--output", "folder", required=True, metavar="DIR", help="Where to write; made if it is not there.")
@click.option("--seed", type=click.IntRange(0), default=0, metavar="N", help="Random seed. Default: 0.")
@click.option(
    "--iterations",
    type=click.IntRange(1),
    default=30,
    metavar="N",
    help="Draws of experts and halves for each number of experts. Default: 30, as in the paper.",
)
def paper(folder: str, seed: int, iterations: int) -> None:
    """Reproduce the paper that the model is from, and say which of its claims hold.

    Writes every figure as SVG and PNG, the numbers as CSV, and index.html, which shows all of it with what the paper
    says beside what is found. The same seed gives the same files. Needs pip install 'opinionpool[paper]'.
    """
    if not folder:
        raise click.UsageError("-o needs the name of a folder, and it is empty; . is the one you are in")
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise click.UsageError(f"{folder} is not a directory")
    from pathlib import Path

    from opinionpool.paper.reproduce import available_processors, reproduce

    with progress("reproducing the paper") as advance:
        done = reproduce(Path(folder), seed, iterations, available_processors(), advance)
    with destination(None) as out:
        out.write(f"{done.page}\n")
    assumed = sum(claim.holds for claim in done.claims)
    count = len(done.claims)
    missing = [] if done.missing is None else [f"{done.missing}; then run this again"]
    tell(
        f"{done.figures} figures; of {count} claims that can be checked {assumed} hold, {count - assumed} do not",
        *missing,
    )


@app.command(short_help="What is in the file, and what stands in the way.")
@reading
@click.option("--write-options", metavar="FILE.toml", help="Write the options that read the file to this one.")
@panel_option
@writing
def check(reading: Reading, writing: Writing, write_options: str | None, panel: str | None) -> int:
    """Describe the file: what is in it, what was coerced, what stands in the way of pooling it.

    Prints a table wherever it goes, unless --format or the name of the output says otherwise; CSV holds its second
    part, the experts. With --panel, beliefs are checked too. The exit status is 1 if something stands in the way.
    """
    writing.check([*reading.inputs, *([] if panel is None else [panel])])
    Writing(write_options, "table").check(reading.inputs)
    from opinionpool.report import answers, check as describe, summary

    findings = find(reading, panel)
    forecasts = findings.forecasts
    columns = [] if forecasts is None else describe.duplicate_columns(forecasts)
    kind = writing.chosen(people=True)
    with destination(writing.output) as out:
        if kind == "json":
            write_json("experts", answers.records(columns), describe.finding_facts(findings), out)
        else:
            if kind == "table":
                write_topics(describe.topics(findings, reading.name), out)
            if columns:
                out.write("\n" if kind == "table" else "")
                write_listing(columns, kind, out)
            if kind == "table" and findings.commands:
                choice = "To read it, type one of these:" if len(findings.commands) > 1 else "To read it, type"
                out.write("\n".join(["", choice, *(f"  {printable(command)}" for command in findings.commands)]) + "\n")
    if write_options is not None:
        _write_options(write_options, findings)
    size = [] if forecasts is None else [summary.size_line(forecasts)]
    obstacles = [*map(error_line, findings.obstacles)]
    if obstacles and kind == "table" and writing.output is None:
        # The table says what it is; on a terminal it has just done so.
        obstacles = [] if sys.stdout.isatty() else [error_line("something stands in the way; see above")]
    conclude(kind, *size, *obstacles)
    return 1 if findings.obstacles else 0


def _write_options(path: str, findings: Findings) -> None:
    """Write the options that read a file to another one."""
    if findings.options is None:
        tell(f"nothing written to {printable(path)}: no options read the file")
        return
    with destination(path) as out:
        out.write(findings.options.toml())
    tell(f"options written to {printable(path)}")


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    open_closed_streams()
    speak_utf8()
    # Before NumPy is loaded, whatever else is set: the matrices here are small, threads that wait for each other cost
    # ten times the work, and sums in another order end in other digits.
    for library in ("OPENBLAS", "MKL", "OMP"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    status = run(arguments)
    if stopping.stopped():
        # A library may have noted the interruption for the end of the process, which would change the status.
        hush(sys.stdout)
        os._exit(status)
    sys.exit(status)


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit status."""
    # What was typed is known to commands that write it down.
    typed = sys.argv[1:] if arguments is None else arguments
    try:
        return app.main(arguments, prog_name="opinionpool", standalone_mode=False, obj=typed) or 0
    except click.UsageError as error:
        context = error.ctx.command_path if error.ctx else "opinionpool"
        tell(error_line(error.format_message()), f"Try '{context} --help'.")
        return 2
    except OpinionPoolError as error:
        tell(error_line(str(error)))
        return 1
    except (click.Abort, KeyboardInterrupt):
        tell("opinionpool: interrupted")
        return stopping.status()
    except BrokenPipeError:
        # Whoever read the messages has gone.
        hush(sys.stdout)
        hush(sys.stderr)
        return 0
    except OSError as error:
        hush(sys.stdout)
        place = f"{error.filename}: " if error.filename else ""
        tell(error_line(f"{place}{error.strerror or error}"))
        return 1
    except Exception as error:
        if stopping.stopped():
            # A library turned the interruption into an error of its own.
            tell("opinionpool: interrupted")
            return stopping.status()
        frame = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__}: {error} ({os.path.basename(frame.filename)}, line {frame.lineno})"
        tell(error_line(f"a fault of opinionpool itself, please report it: {fault}"))
        return 1
