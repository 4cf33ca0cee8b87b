"""``opinionpool experts``: what was learned about each expert."""

from __future__ import annotations

import click

from opinionpool.cli.arguments import Keeping, Pooling, Reading, Writing, prior_option
from opinionpool.cli.help import SectionedCommand
from opinionpool.cli.inputs import read
from opinionpool.cli.options import model_option, pooling, writing
from opinionpool.cli.output import conclude, destination
from opinionpool.cli.reading_options import reading
from opinionpool.report.listing import write_json, write_listing


@click.command(cls=SectionedCommand, short_help="What was learned about each expert.")
@reading
@pooling
@model_option
@writing
def experts(reading: Reading, pooling: Pooling, writing: Writing, model: str | None) -> None:
    """Print what was learned about each expert, the largest weight first.

    Log-odds are the logarithm of p / (1 - p).

    \b
    bias         how far the expert's log-odds are too high (+) or too low (-)
    calibration  slope on log-odds: 1 = calibrated, below 1 overconfident, above 1 underconfident
    accuracy     how much the expert knows: half the difference between the mean log-odds, corrected for bias
                 and calibration, of events that happened and of others; it is no percentage
    AUC          how often, of two events, the one that happened had the higher forecast
    weight       what its log-odds, less prior and bias and large ones pulled in, are multiplied by if
                 every expert gives a forecast
    from, to     the weight's 90% credible interval, given beliefs and outcomes
    CLASS        where weights differ between classes: the weight for that one; "weight" is then their mean

    Where events have topics, a second table has what differs by topic: how many independent events its resolved ones
    count as (fewer than there are where outcomes may be dependent), the intercept, which is added to the pooled
    log-odds, and the slope, by which their distance from the prior is multiplied. Where outcomes speak for it, a third
    has the experts' weights on each topic. JSON has both too.

    Where the terminal is too narrow, columns are left out: the weights by class first, then the interval, the
    accuracy and the number of all forecasts.
    """  # noqa: D301 - click reads the character
    belief_file, trained = Keeping(model, None).begin(reading, pooling, writing)
    forecasts = read(reading, trained)
    prior = prior_option("--prior", pooling.prior, forecasts)
    from opinionpool.cli.kept import keep
    from opinionpool.report import answers, summary, topics

    kept = keep(forecasts, pooling.pool, prior, pooling.options(belief_file.beliefs), trained, learning=False)
    state = kept.answered_with
    columns, about = answers.expert_columns(kept.forecasts, state), topics.topic_columns(state)
    by_topic = topics.weight_columns(state)
    notes = (*forecasts.notes, *kept.notes, *answers.expert_notes(state))
    whole = summary.together(state)
    kind = writing.chosen()
    with destination(writing.output) as out:
        if kind == "json":
            facts = summary.pool_facts(forecasts, kept.name, state, None, notes) | summary.belief_facts(
                belief_file.beliefs
            )
            facts |= kept.facts(None) | summary.together_facts(whole) | topics.topic_facts(about, by_topic)
            write_json("experts", answers.records(columns), facts, out)
        else:
            write_listing(columns, kind, out)
            if kind == "table":
                topics.write_below(about, out)
                topics.write_below(by_topic, out)
    conclude(
        kind,
        summary.size_line(forecasts),
        summary.pool_line(forecasts, kept.name, state, kept.given, None),
        *kept.lines(None),
        *summary.together_lines(whole),
        *summary.belief_lines(belief_file.file, belief_file.beliefs),
        *summary.note_lines(forecasts, notes),
    )
