"""``opinionpool explain``: why the pool answers what it answers on one event."""

from __future__ import annotations

from collections.abc import Sequence

import click

from opinionpool.cli.arguments import Pooling, PriorOption, Reading, Writing, prior_option
from opinionpool.cli.help import SectionedCommand
from opinionpool.cli.options import base_rate_option, model_option, pooling, writing
from opinionpool.cli.output import present
from opinionpool.cli.reading_options import reading
from opinionpool.errors import ArgumentError


def _meant(typed: str, events: Sequence[str]) -> str:
    """The event id that a typed text identifies: exactly, in one line, or by a unique beginning of whole words."""
    if typed in events:
        return typed
    plain = " ".join(typed.replace("\\n", " ").split())
    lines = {event: " ".join(event.split()) for event in events}
    same = [event for event, line in lines.items() if line == plain]
    begins = [event for event, line in lines.items() if line.startswith(plain) and not line[len(plain) :][:1].isalnum()]
    found = same or begins
    return found[0] if plain and len(found) == 1 else typed


@click.command(cls=SectionedCommand, short_help="Why the pool answers what it answers on one event.")
@reading
@click.argument("event")
@pooling
@base_rate_option
@model_option
@writing
def explain(
    reading: Reading, event: str, pooling: Pooling, writing: Writing, base_rate: PriorOption, model: str | None
) -> None:
    """Explain the answer about one EVENT: every forecast, and what it adds.

    Log-odds are the logarithm of p / (1 - p): they add up where probabilities do not.

    \b
    offset     how far from the prior this expert's log-odds are when it knows nothing; not the bias that
               experts shows, which is measured by itself
    contrast   how far the forecast is from the prior, less the offset, in log-odds; pulled in, the more
               the larger it is
    weight     what the contrast is multiplied by, given who made a forecast here
    adds       weight times contrast; the rows above "pooled" add up to the pooled log-odds
    without    the answer if this forecast were missing: the others then count for more
    intercept  depends only on who gave a forecast: it corrects answers that are too high or too low on average

    In the average and linear pools the weight is the forecast's share in the mean, and what it adds is in probability.
    Answers of the median, trimmed and beta-linear pools are no sums. With more than two classes, log-odds are
    log-probabilities less their mean over the classes.
    """  # noqa: D301 - click reads the character
    from opinionpool.analysis.explanation import event_position, explain_event
    from opinionpool.cli.kept import PooledFile
    from opinionpool.pools.fit import in_sample_note
    from opinionpool.report import answers, explanation as explained, summary
    from opinionpool.report.view import View

    found = PooledFile.of(reading, pooling, writing, model)
    forecasts, kept, rate = found.forecasts, found.kept, prior_option("--base-rate", base_rate, found.forecasts)
    try:
        t = event_position(forecasts, _meant(event, forecasts.events))
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    why = explain_event(kept.forecasts, t, kept.state, prior=kept.reference, base_rate=rate)
    inside = bool(kept.pooled(rate).in_sample[t])
    notes = [*forecasts.notes, *kept.state.notes, *why.notes, *summary.base_rate_notes(kept.state, kept.given, rate)]
    notes += [in_sample_note(kept.state)] if inside else []
    facts = found.facts(rate) | explained.explanation_facts(why)
    facts |= {"outcome": answers.happened(forecasts)[t], "in_sample": inside}
    lines = [*explained.explanation_lines(why), *found.lines(rate)]
    columns, rows = explained.explanation_columns(why), explained.explanation_records(why)
    present(View("experts", columns, facts, lines, notes, nested=rows, forecasts=forecasts), writing)
