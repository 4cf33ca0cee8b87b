"""``opinionpool experts``: what was learned about each expert."""

from __future__ import annotations

from dataclasses import replace

import click

from opinionpool.cli.arguments import Keeping, Pooling, Reading, Writing, prior_option
from opinionpool.cli.help import SectionedCommand
from opinionpool.cli.inputs import read
from opinionpool.cli.options import model_option, pooling, writing
from opinionpool.cli.output import present
from opinionpool.cli.reading_options import reading


@click.command(cls=SectionedCommand, short_help="What was learned about each expert.")
@reading
@pooling
@model_option
@click.option(
    "--scores",
    is_flag=True,
    help="A leaderboard instead: how well each expert's own forecasts did, on the resolved events that it answered.",
)
@writing
def experts(reading: Reading, pooling: Pooling, writing: Writing, model: str | None, scores: bool) -> None:
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

    Where the terminal is too narrow, columns are left out: the weights by class first, then the accuracy, the number
    of all forecasts, the bias and the number of those on resolved events. The interval stays.
    """  # noqa: D301 - click reads the character
    belief_file, trained = Keeping(model, None).begin(reading, pooling, writing)
    forecasts = read(reading, trained)
    prior = prior_option("--prior", pooling.prior, forecasts)
    from opinionpool.cli.kept import keep
    from opinionpool.report import answers, panel, summary, topics
    from opinionpool.report.view import View

    kept = keep(forecasts, pooling.pool, prior, pooling.options(belief_file.beliefs), trained, learning=False)
    state = kept.answered_with
    about, by_topic = topics.topic_columns(state), topics.weight_columns(state)
    whole = panel.together(state)
    facts = summary.pool_facts(forecasts, kept.name, state, None) | summary.belief_facts(belief_file.beliefs)
    facts |= kept.facts(None) | panel.together_facts(whole) | topics.topic_facts(about, by_topic)
    size, assumed = summary.size_line(forecasts), summary.belief_lines(belief_file.file, belief_file.beliefs)
    used = summary.pool_line(forecasts, kept.name, state, kept.given, None)
    lines = [size, used, *kept.lines(None), *panel.together_lines(whole), *assumed]
    notes = (*forecasts.notes, *kept.notes, *answers.expert_notes(state))
    columns = answers.expert_columns(kept.forecasts, state)
    view = View("experts", columns, facts, lines, notes, [about, by_topic], forecasts=forecasts)
    if scores:
        from opinionpool.report.leaderboard import leaderboard_columns, leaderboard_lines
        from opinionpool.scoring.leaderboard import leaderboard

        lines = [size, *leaderboard_lines(), *kept.lines(None), *assumed]
        view = replace(view, columns=leaderboard_columns(leaderboard(forecasts)), lines=lines, below=())
    present(view, writing)
