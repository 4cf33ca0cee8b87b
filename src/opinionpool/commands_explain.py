"""The command ``opinionpool explain``."""

from __future__ import annotations

import click

from opinionpool.arguments import Chances, Keeping, Pooling, Reading, Writing, chances
from opinionpool.errors import ArgumentError, Note
from opinionpool.options import pooling, read_chances, reading, writing
from opinionpool.render import write_json, write_listing
from opinionpool.steps import conclude, read_for
from opinionpool.streams import destination


@click.command(short_help="Why the pool answers what it answers on one event.")
@reading
@click.argument("event")
@pooling
@click.option(
    "--base-rate",
    metavar="P",
    callback=read_chances,
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
    reading: Reading, event: str, pooling: Pooling, writing: Writing, base_rate: Chances, model: str | None
) -> None:
    """Say why the pool answers what it answers on one EVENT: who said what, and what it counted for.

    \b
    bias      how far from the prior the expert is taken to be when it knows nothing, in log-odds
    contrast  what is said beyond prior and bias, as far as extremes are believed
    weight    among those who answered this event; share, in the average and linear pools
    adds      weight times contrast; from prior to base rate these add up to the pooled log-odds
    without   what the answer would be had this expert not answered

    "all experts" is what the pool adds on its own account: what it holds to be common to all, and how far it does not
    believe a prior that was estimated from few events; then every bias is about as far off that prior. The median,
    trimmed and beta-linear pools are no such sums. With more than two classes, log-odds are log-probabilities less
    their mean over the classes.
    """  # noqa: D301 - click reads the character
    keeping = Keeping(model, None)
    inputs = [*reading.inputs, *pooling.inputs, *keeping.inputs]
    writing.check(inputs)
    keeping.check(inputs, writing, pooling)
    told, trained = pooling.told(), keeping.read(pooling)
    forecasts = read_for(reading, trained)
    prior, rate = chances("--prior", pooling.prior, forecasts), chances("--base-rate", base_rate, forecasts)
    from opinionpool import answers, explained, summary
    from opinionpool.explanation import event_position, explain_event
    from opinionpool.kept import keep

    try:
        t = event_position(forecasts, event)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    kept = keep(forecasts, pooling.pool, prior, told.options, trained, learning=False)
    why = explain_event(kept.forecasts, t, kept.state, prior=kept.reference, base_rate=rate)
    in_sample = bool(kept.pooled(rate).in_sample[t])
    notes = [*kept.state.notes, *why.notes, *summary.base_rate_notes(kept.state, kept.given, rate)]
    if in_sample:
        notes.append(Note("in-sample", "this answer is in-sample: the pool has learned from what happened there"))
    kind = writing.chosen()
    with destination(writing.output) as out:
        if kind == "json":
            facts = summary.pool_facts(forecasts, kept.name, kept.answered_with, rate, (*forecasts.notes, *notes))
            facts |= summary.belief_facts(told.beliefs) | kept.facts(None) | explained.explanation_facts(why)
            facts |= {"outcome": answers.happened(forecasts)[t], "in_sample": in_sample}
            write_json("experts", explained.explanation_records(why), facts, out)
        else:
            write_listing(explained.explanation_columns(why), kind, out)
    conclude(
        kind,
        *explained.explanation_lines(why),
        summary.pool_line(forecasts, kept.name, kept.answered_with, kept.given, rate),
        *kept.lines(None),
        *summary.belief_lines(told.file, told.beliefs),
        *summary.note_lines(forecasts, notes),
    )
