"""``opinionpool experts``: what was learned about each expert."""

from __future__ import annotations

from dataclasses import replace

import click

from opinionpool.cli.arguments import Pooling, Reading, Writing
from opinionpool.cli.help import SectionedCommand
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
    from opinionpool.cli.kept import PooledFile
    from opinionpool.report import agreement, answers, panel, summary, topics
    from opinionpool.report.view import View

    found = PooledFile.of(reading, pooling, writing, model)
    forecasts, kept, state = found.forecasts, found.kept, found.kept.answered_with
    about, by_topic, whole = topics.topic_columns(state), topics.weight_columns(state), panel.together(state)
    facts = (
        found.facts()
        | agreement.agreement_facts(forecasts)
        | panel.together_facts(whole)
        | topics.topic_facts(about, by_topic)
    )
    lines = [summary.size_line(forecasts), *found.lines(), *panel.together_lines(whole)]
    notes = (*forecasts.notes, *kept.notes, *answers.expert_notes(state))
    columns = answers.expert_columns(kept.forecasts, state)
    view = View("experts", columns, facts, lines, notes, [about, by_topic], forecasts=forecasts)
    if scores:
        from opinionpool.report.leaderboard import leaderboard_columns, leaderboard_lines
        from opinionpool.scoring.leaderboard import leaderboard

        lines = [lines[0], *leaderboard_lines(), *found.lines()[1:]]
        view = replace(view, columns=leaderboard_columns(leaderboard(forecasts)), lines=lines, below=())
    present(view, writing)
