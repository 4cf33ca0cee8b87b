"""Commands that read options, compute one result and print it as one view."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from opinionpool.cli.options import (
    EXISTING,
    Answering,
    Comparing,
    Listing,
    Pooling,
    SectionedCommand,
    Writing,
    beliefs_of,
    check_output,
    given,
    load_pool,
    panel_option,
    prior_option,
)
from opinionpool.cli.output import conclude, destination, error_line, present, progress, tell
from opinionpool.cli.reading import InputFiles, examine_files, optional_reading, pair_reading, read, reading, scored
from opinionpool.errors import ArgumentError
from opinionpool.report.listing import printable

if TYPE_CHECKING:
    from opinionpool.analysis.sensitivity import Effect
    from opinionpool.forecasts import Forecasts
    from opinionpool.learning.beliefs import Beliefs
    from opinionpool.report.check import Examination


@click.command(cls=SectionedCommand, short_help="A probability for every event, learned from the resolved ones.")
@reading
@given(Listing, "listing")
@given(Writing, "writing")
def pool(reading: InputFiles, listing: Listing, writing: Writing) -> None:
    """Learn from the resolved events and print a probability for every event.

    The default pool learns a little from open events too: who agrees with the others there is more likely to be good.
    """
    from opinionpool.cli.pool import pool_files

    pool_files(reading, listing, writing)


@click.command(cls=SectionedCommand, short_help="What was learned about each expert.")
@reading
@given(Pooling, "pooling")
@click.option(
    "--scores",
    is_flag=True,
    help="A leaderboard instead: how well each expert's own forecasts did, on the resolved events that it answered.",
)
@given(Writing, "writing")
def experts(reading: InputFiles, pooling: Pooling, writing: Writing, scores: bool) -> None:
    """Print what was learned about each expert, the largest weight first.

    Log-odds are the logarithm of p / (1 - p).

    \b
    bias         how far the expert's log-odds are too high (+) or too low (-)
    calibration  slope on log-odds: 1 = calibrated, below 1 overconfident, above 1 underconfident
    accuracy     how much the expert knows: half the difference between the mean log-odds, corrected for bias
                 and calibration, of events that happened and of others; it is no percentage
    AUC          how often, of two events, the one that happened had the higher forecast
    weight       what the expert's log-odds count for if every expert gives a forecast: a factor on them,
                 after prior and bias are subtracted and large ones are pulled in
    from, to     the weight's 90% credible interval, given beliefs and outcomes
    CLASS        where weights differ between classes: the weight for that one; "weight" is then their mean

    Where events have topics, a second table has what differs by topic: how many independent events its resolved ones
    count as (fewer than there are where outcomes may be dependent), the intercept, which is added to the pooled
    log-odds, and the slope, by which their distance from the prior is multiplied. JSON has it too.

    Where the terminal is too narrow, columns are left out: the weights by class first, then the accuracy, the number
    of all forecasts, the bias and the number of those on resolved events. The interval stays.
    """  # noqa: D301 - click reads the character
    from opinionpool.cli.pool import PooledFile
    from opinionpool.report import answers, evidence, groups, panel, view as views
    from opinionpool.scoring.leaderboard import leaderboard

    found = PooledFile.of(reading, pooling, writing)
    forecasts, kept, state = found.forecasts, found.kept, found.kept.answered_with
    size, used = views.size_line(forecasts), found.lines()
    about, whole = groups.topic_columns(state), panel.together(state)
    facts = found.facts() | views.agreement_facts(forecasts)
    facts |= panel.together_facts(whole) | groups.topic_facts(about)
    notes = (*forecasts.notes, *kept.notes, *answers.expert_notes(state))
    if scores:
        columns, below = evidence.leaderboard_columns(leaderboard(forecasts)), []
        lines = [size, *evidence.leaderboard_lines(), *used[1:]]
    else:
        columns, below = answers.expert_columns(kept.forecasts, state), [about]
        lines = [size, *used, *panel.together_lines(whole)]
    present(views.View("experts", columns, facts, lines, notes, below, forecasts=forecasts), writing)


def _meant(typed: str, events: Sequence[str]) -> str:
    """Id in `events` that equals `typed` but for line breaks, else the only one that begins with it; else `typed`."""
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
@given(Answering, "answering")
@given(Writing, "writing")
def explain(reading: InputFiles, event: str, answering: Answering, writing: Writing) -> None:
    """Explain the answer about one EVENT: every forecast, and what it adds.

    Log-odds are the logarithm of p / (1 - p): they add up where probabilities do not.

    \b
    offset     how far from the prior this expert's log-odds are when it knows nothing; not the bias that
               the command experts shows, which is measured by itself
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
    from opinionpool.cli.pool import PooledFile
    from opinionpool.pools.fit import in_sample_note
    from opinionpool.report import answers, explanation as explained, view as views

    found = PooledFile.of(reading, answering, writing)
    forecasts, kept, rate = found.forecasts, found.kept, found.rate
    try:
        t = event_position(forecasts, _meant(event, forecasts.events))
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    why = explain_event(kept.forecasts, t, kept.state, prior=kept.reference, base_rate=rate)
    inside = bool(kept.pooled(rate).in_sample[t])
    notes = [*forecasts.notes, *kept.state.notes, *why.notes, *views.base_rate_notes(kept.state, kept.given, rate)]
    notes += [in_sample_note(kept.state)] if inside else []
    facts = found.facts() | explained.explanation_facts(why)
    facts |= {"outcome": answers.happened(forecasts)[t], "in_sample": inside}
    lines = [*explained.explanation_lines(why), *found.lines()]
    columns, rows = explained.explanation_columns(why), explained.explanation_records(why)
    present(views.View("experts", columns, facts, lines, notes, nested=rows, forecasts=forecasts), writing)


@click.command(cls=SectionedCommand, short_help="What the panel, each expert and one more expert are worth.")
@optional_reading
@panel_option
@click.option(
    "--prior",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="P",
    help="Probability of an event before any expert is asked. Default: that of the file, else 0.5.",
)
@click.option(
    "--experts",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="How many experts there are, where no FILE is given, such as 5.",
)
@given(Writing, "writing")
def value(
    reading: InputFiles | None, panel: str | None, prior: float | None, experts: int | None, writing: Writing
) -> None:
    """Print what the panel, each of its experts and one more expert are worth.

    \b
    implied AUC        of the expert by itself, as the model implies it; the command experts has the measured one
    expected score     the score that the model implies for it, after its bias and calibration are corrected:
                       0 = saying 50% every time, 1 = perfect
    measured score     that of its forecasts as they are, on the resolved events that it answered
    adds to the panel  how much lower the panel's expected score would be without it

    It needs no data: without FILE, the panel is that of --panel, or of --experts N about whom nothing is known. With
    FILE it is what was learned from resolved events. If no event is resolved, it also shows how far the answer about
    the first open event moves as each belief varies over its 90% range, which is wider the fewer events the
    belief counts for. A belief that you did not give varies over what is usual for panels.
    """  # noqa: D301 - click reads the character
    if reading is None and panel is None and experts is None:
        raise click.UsageError("give a FILE of forecasts, a PANEL.toml with --panel, or a number with --experts")
    if reading is not None and experts is not None:
        raise click.UsageError("--experts says how many there are without FILE, and there is one")
    writing.check([*(reading.inputs if reading else []), panel])
    beliefs = beliefs_of(panel)
    forecasts = _nobody(beliefs, experts) if reading is None else read(reading)
    from opinionpool.learning.beliefs import Beliefs
    from opinionpool.learning.learn import learn
    from opinionpool.report import panel as panels, view as views

    state = learn(forecasts, prior=prior, beliefs=beliefs or Beliefs())
    found = panels.expert_worth(state, prior)
    event, effects = ("", []) if reading is None else _effects(forecasts, beliefs, prior)
    facts = views.facts(forecasts) | panels.worth_facts(found) | {"sensitivity": panels.effect_facts(effects)}
    lines = [*panels.worth_lines(found), *panels.effect_lines(effects, event), *views.belief_lines(panel, beliefs)]
    notes = (*forecasts.notes, *state.notes)
    present(
        views.View("experts", panels.worth_columns(found, forecasts), facts, lines, notes, forecasts=forecasts), writing
    )


def _nobody(beliefs: Beliefs | None, experts: int | None) -> Forecasts:
    """Return one event without forecasts, by the experts in `beliefs` and numbered ones, `experts` in all."""
    import numpy as np

    from opinionpool.forecasts import Forecasts

    names = [] if beliefs is None else list(beliefs.experts)
    n = max(len(names), experts or 0)
    if n == 0:
        raise ArgumentError("the panel file names no expert; say how many there are with --experts N")
    names += [f"expert_{i}" for i in range(len(names) + 1, n + 1)]
    return Forecasts.from_array(np.full((1, n), np.nan), [None], experts=names)


def _effects(forecasts: Forecasts, beliefs: Beliefs | None, prior: float | None) -> tuple[str, list[Effect]]:
    """Id of the first open event, and effects of beliefs on its answer; "" and [] if an outcome is known, or K > 2."""
    import numpy as np

    from opinionpool.analysis.sensitivity import sensitivity

    rows = np.flatnonzero(~forecasts.resolved & (forecasts.crowd > 0)).tolist()
    if not rows or forecasts.resolved.any() or len(forecasts.classes) > 2 or forecasts.options is not None:
        return "", []
    return forecasts.events[rows[0]], sensitivity(forecasts, rows[0], beliefs, prior)


@click.command(cls=SectionedCommand, short_help="Which share of the events of each group happens.")
@reading
@click.option(
    "--by",
    metavar="COLUMN[,COLUMN]",
    help="The column, or columns, of groups, such as system or system,language. Default: all events are one group.",
)
@click.option(
    "--labels",
    type=click.Choice(("random", "selected")),
    default="random",
    help="Whether the resolved events are a random sample of their group (default), or were selected in some way and "
    "say nothing about how many of the open ones happen.",
)
@given(Pooling, "pooling")
@given(Writing, "writing")
def rate(reading: InputFiles, by: str | None, labels: str, pooling: Pooling, writing: Writing) -> None:
    """Estimate which share of the events of each group happens, such as how many of a system's outputs are good.

    Resolved events are counted. Open ones count by their probability, for which each group has a base rate of its own,
    estimated from the forecasts, in place of the pool's prior. Intervals include the uncertainty about base rates,
    outcomes and experts. Events with the same value in the column group, such as one item judged for two systems, are
    paired in differences.

    \b
    happens, from, to  the share of the group's events, and its 90% credible interval
    mean of answers    the mean of what the command pool answers
    majority           the share of events that most experts expect to happen
    Rogan-Gladen       that share, corrected by the majority's hits and false alarms on resolved events
    PPI++              the mean forecast, corrected by its mean error on the group's resolved events

    JSON and CSV have the intervals of all, JSON the differences, too. What is assumed is that experts err in each group
    as in the others, given the outcome; a note says where forecasts speak against that.
    """  # noqa: D301 - click reads the character
    from opinionpool.analysis.rates import check_groups, rates
    from opinionpool.cli.pool import PooledFile
    from opinionpool.report import groups
    from opinionpool.report.view import View

    columns = [] if by is None else [name.strip() for name in by.split(",")]
    if columns:
        own = {"topic": columns[0] if len(columns) == 1 else columns}
        reading = replace(reading, options=replace(reading.options, columns={**reading.options.columns, **own}))
    file = PooledFile.of(reading, pooling, writing, topics=False)
    check_groups(file.forecasts, columns)
    kept, names = file.kept, None if by is None else file.forecasts.topics
    found = rates(kept.state, kept.forecasts, names, labels=labels, prior=kept.reference)
    facts, differences = file.facts() | groups.rate_facts(found, labels), groups.rate_differences(found)
    lines = [*groups.rate_lines(found), *file.lines()]
    notes = (*file.forecasts.notes, *kept.notes, *found.notes)
    shown = groups.rate_columns(found)
    present(View("rates", shown, facts, lines, notes, [differences], forecasts=file.forecasts), writing)


@click.command(cls=SectionedCommand, short_help="Which pool does best, by cross-validation.")
@reading
@given(Comparing, "comparing")
@scored
@given(Writing, "writing")
def compare(reading: InputFiles, comparing: Comparing, writing: Writing) -> None:
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
    beliefs = comparing.beliefs()
    forecasts, rivals = comparing.without_rivals(read(reading))
    prior = prior_option("--prior", comparing.prior, forecasts)
    from opinionpool.report import comparison as compared, view as views
    from opinionpool.scoring.compare import compare_pools

    try:
        with progress("comparing", log=True) as advance:
            found = compare_pools(
                forecasts, comparing.pools, folds=comparing.folds, repeats=comparing.repeats, by=comparing.by,
                gap=comparing.gap, prior=prior, beliefs=beliefs, rivals=rivals, seed=comparing.seed,
                progress=advance,
            )  # fmt: skip
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    view = compared.comparison_view(found, table=writing.kind() == "table")
    facts = views.facts(forecasts) | views.belief_facts(beliefs) | dict(view.facts)
    lines = [views.size_line(forecasts), *views.belief_lines(comparing.panel, beliefs), *view.lines]
    notes = (*forecasts.notes, *found.notes)
    present(replace(view, facts=facts, lines=lines, notes=notes, forecasts=forecasts), writing)


@click.command(cls=SectionedCommand, short_help="What changed since a pool was saved, and why answers moved.")
@click.argument("old", type=click.Path(exists=True, dir_okay=False))
@click.argument("new", type=click.Path(exists=True, dir_okay=False))
@pair_reading
@given(Writing, "writing")
def diff(old: str, new: str, reading: InputFiles | None, writing: Writing) -> None:
    """Say what changed from one pool that pool --save has written, OLD, to a later one, NEW.

    \b
    moved      new answer less old one, in percentage points
    corrected  change due to outcomes corrected and events annulled since
    outcomes   change due to events resolved since, from which the pool has learned
    agreement  change due to other open events: the pool also learns a little from who agrees with whom there
    forecasts  change due to new or revised forecasts on the event itself
    beliefs    change due to other beliefs or settings

    The changes are made in this order, one on top of the other, and the parts add up to the move; a part that is zero
    everywhere is left out of the table. Only events open in both are shown: those that the saved pools keep or, with
    --files, those in the two files, read as the options say. CSV holds the answers, JSON the experts too.
    """  # noqa: D301 - click reads the character
    from opinionpool.analysis.diff import alike, diff as difference
    from opinionpool.estimators.files import load
    from opinionpool.report import changes
    from opinionpool.streams.trained import TrainedPool

    writing.check([old, new, *(reading.inputs if reading else [])])
    before, after = alike(TrainedPool.of(load(old)), TrainedPool.of(load(new)))
    files: list[Forecasts] = []
    if reading is not None:
        for path, trained, name in zip(reading.files, (before, after), (old, new), strict=True):
            files.append(read(replace(reading, files=(path,)), (name, trained)))
    found = difference(before, after, *files)
    notes = tuple({note.text: note for each in files for note in each.notes}.values())
    view = changes.change_view(found, table=writing.kind() == "table")
    about = files[1] if files else None
    present(replace(view, notes=(*notes, *found.notes), forecasts=about), writing)


@click.command(cls=SectionedCommand, short_help="What is in the file, and what stands in the way.")
@reading
@click.option(
    "--write-options",
    metavar="FILE.toml",
    help="Save the settings (--column, --dates, ...) with which the data were read.",
)
@panel_option
@click.option(
    "--model",
    type=EXISTING,
    metavar="POOL.json",
    help="Also say what this pool, which pool --save wrote, would do with FILE.",
)
@given(Writing, "writing")
def check(
    reading: InputFiles, writing: Writing, write_options: str | None, panel: str | None, model: str | None
) -> int:
    """Describe the file: what is in it, what was converted, what stands in the way of pooling it.

    As CSV it has only the table of experts. With --panel, beliefs are checked too; with --model, what the
    pool that pool --save has written would do with the file. The exit status is 1 if something stands in the way.
    """
    inputs = [*reading.inputs, panel, model]
    writing.check(inputs)
    check_output(write_options, inputs)
    from opinionpool.report.check import check_view
    from opinionpool.report.view import write_view

    findings = examine_files(reading, panel, load_pool(model, panel))
    view, kind = check_view(findings, reading.name), writing.kind(people=True)
    with destination(writing.output) as out:
        write_view(view, kind, out)
    if write_options is not None:
        _write_options(write_options, findings, reading.outcomes)
    obstacles = [*map(error_line, findings.obstacles)]
    if obstacles and kind == "table" and writing.output is None:
        # The table says what it is; on a terminal it has just done so.
        obstacles = [] if sys.stdout.isatty() else [error_line("something stands in the way; see above")]
    conclude(kind, *view.lines, *obstacles)
    return 1 if findings.obstacles else 0


def _write_options(path: str, findings: Examination, outcomes: str | None) -> None:
    """Write the options that read the file to `path`; the path of outcomes is made relative to it."""
    if findings.options is None:
        tell(f"nothing written to {printable(path)}: no options read the file")
        return
    beside = None if outcomes in {None, "-"} else os.path.relpath(str(outcomes), os.path.dirname(path) or ".")
    with destination(path) as out:
        out.write(findings.options.toml(beside))
    tell(f"options written to {printable(path)}")
