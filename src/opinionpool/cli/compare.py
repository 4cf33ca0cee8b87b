"""``opinionpool compare``: which pool does best on events that it has not learned from."""

from __future__ import annotations

import click

from opinionpool.cli.arguments import Comparing, Reading, Writing, prior_option
from opinionpool.cli.help import SectionedCommand
from opinionpool.cli.options import comparing, reading, writing
from opinionpool.cli.streams import (
    conclude,
    contest,
    destination,
    read,
)
from opinionpool.report.listing import write_json, write_listing


@click.command(cls=SectionedCommand, short_help="Which pool does best on events it has not learned from.")
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
