"""``opinionpool compare``: which pool does best on events that it has not learned from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from opinionpool.cli.arguments import BeliefFile, Comparing, Reading, Writing, prior_option
from opinionpool.cli.help import SectionedCommand
from opinionpool.cli.inputs import read
from opinionpool.cli.options import comparing, writing
from opinionpool.cli.output import present, progress
from opinionpool.cli.reading_options import reading
from opinionpool.errors import ArgumentError

if TYPE_CHECKING:
    from opinionpool.arrays import Array
    from opinionpool.forecasts import Forecasts
    from opinionpool.scoring.comparison import Comparison


@click.command(cls=SectionedCommand, short_help="Which pool does best, by cross-validation.")
@reading
@comparing
@writing
def compare(reading: Reading, comparing: Comparing, writing: Writing) -> None:
    """Score every pool by cross-validation, and say which differences are statistically significant.

    \b
    score      1 - log loss / ln 2: 0 = saying 50% every time, 1 = perfect
    ±          standard error of the score (where the terminal is wide enough)
    skill      like the score, but 0 = the base rate: how often the events learned from happened
    in-sample  the score on events that the pool has learned from, for pools that learn
    gain       its score less that of the simple average
    from … to  95% interval of the gain
    verdict    better or worse: the interval excludes 0; unclear: it includes 0

    Each event is scored by pools that were fitted to other events (the other folds). Pools are compared on the same
    events; a second table compares each expert with the default pool (or the last of --pools, if that is not among
    them) on the events that both answered. Leave out forecasts that were made with knowledge of the outcome, such as a
    model's about the data that it was fitted to.

    Intervals hold for all rows of a table at once (simultaneous), so they are narrower where fewer pools are
    compared. The sentence below the table, on whether the best pool beats the others, allows for all pairs of pools,
    as the best was picked after the scores were seen. CSV and JSON hold all pools and all experts.
    """  # noqa: D301 - click reads the character
    writing.check([*reading.inputs, *comparing.inputs])
    belief_file = comparing.belief_file()
    forecasts, rivals = comparing.without_rivals(read(reading))
    prior = prior_option("--prior", comparing.prior, forecasts)
    from opinionpool.report import comparison as compared, summary

    found = _contest(forecasts, comparing, prior, belief_file, rivals)
    view = compared.comparison_view(found, table=writing.chosen() == "table")
    assumed = summary.belief_lines(belief_file.file, belief_file.beliefs)
    facts = summary.facts(forecasts) | summary.belief_facts(belief_file.beliefs) | dict(view.facts)
    lines = [summary.size_line(forecasts), *assumed, *view.lines]
    notes = (*forecasts.notes, *found.notes)
    present(replace(view, facts=facts, lines=lines, notes=notes, forecasts=forecasts), writing)


def _contest(
    forecasts: Forecasts,
    comparing: Comparing,
    prior: float | Array | None,
    belief_file: BeliefFile,
    rivals: dict[str, Array],
) -> Comparison:
    """The comparison that the command line asked for."""
    from opinionpool.scoring.compare import compare_pools

    try:
        with progress("comparing", log=True) as advance:
            return compare_pools(
                forecasts,
                comparing.pools,
                folds=comparing.folds,
                repeats=comparing.repeats,
                by=comparing.by,
                gap=comparing.gap,
                prior=prior,
                beliefs=belief_file.beliefs,
                rivals=rivals,
                seed=comparing.seed,
                progress=advance,
            )
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
