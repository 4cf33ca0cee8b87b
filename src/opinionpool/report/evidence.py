"""Sections of the report on experts, shared errors, calibration, learning, model checks, and the method."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version

import numpy as np

from opinionpool.analysis.checks import Check
from opinionpool.analysis.explanation import WeightTable, shared_by, weight_table
from opinionpool.arrays import Array
from opinionpool.learning.constants import CORRELATION
from opinionpool.learning.members import Members
from opinionpool.logodds import expit, logit
from opinionpool.model.panel import Panel
from opinionpool.report.answers import about, expert_columns
from opinionpool.report.blocks import (
    Block,
    Html,
    Section,
    beside,
    definitions,
    details,
    figure,
    grid,
    joined,
    listing,
    long_table,
    markup,
    missing,
    name,
    note,
    paragraph,
    rendered,
    sentence,
    typed_code,
    words,
)
from opinionpool.report.charts import (
    BESIDE,
    LEGIBLE,
    heat_map,
    learning_chart,
    legend,
    reliability_chart,
    shades,
    two,
    weight_bar,
)
from opinionpool.report.comparison import difference_columns, how_line
from opinionpool.report.findings import Missing, ReportData
from opinionpool.report.listing import Column, as_is, brief, decimal, finite, percent, whole
from opinionpool.report.panel import terms
from opinionpool.report.view import levels_by_outcome, levels_words, pool_line, remarkable
from opinionpool.scoring.compare import DEFAULT
from opinionpool.scoring.intervals import FEWEST_CLUSTERS, LEVEL
from opinionpool.scoring.leaderboard import Standing, leaderboard
from opinionpool.scoring.learning_curve import LearningCurve
from opinionpool.scoring.reliability import ReliabilityCurve, reliability_curve
from opinionpool.text import are, counted
from opinionpool.version import __version__

# Largest number of experts whose calibration is drawn.
CURVES = 8
# Names in a list before it is cut; findings of one kind that are shown at once, and of all kinds at most.
NAMED, SHOWN, MOST = 6, 3, 200


def evidence_sections(f: ReportData) -> list[Section]:
    """Return sections on calibration, learning and shared errors; empty if no forecast is of a resolved event."""
    if not f.measured:
        return []
    return [_calibration(f), _learning(f), _errors(f)]


def _errors(f: ReportData) -> Section:
    title = "Shared errors"
    if isinstance(f.errors, Missing):
        why = "there is one expert only" if len(f.forecasts.experts) == 1 else f.errors.reason
        return Section("errors", title, [missing(why, "There is nothing to compare.")])
    errors, n = f.errors, len(f.errors.experts)
    lead = (
        "The more the errors of two equally good experts correlate, the less the second adds. An error is the log-odds "
        "minus their mean over events with the same outcome. Correlation 0: unrelated; 1: perfectly correlated. The "
        f"average correlation is {two(errors.common)}"
    )
    if errors.common > 0:
        lead += f", at which two equally good experts are worth {2.0 / (1.0 + errors.common):.1f} independent ones"
    lead += "."
    if f.learned.marginal is not None:
        lead += (
            f" The answers rest on {two(f.learned.marginal.correlation)} between equally good experts: this is "
            f"not measured alone, but drawn towards what is believed of panels, {two(CORRELATION)} unless assessed, as "
            "the spread of each expert’s errors is towards the panel’s."
        )
    caption = (
        "Rows and columns are the experts in the order of their clusters, so that blocks are groups with shared errors."
    )
    caption += " A dash marks what is below 0." if n > LEGIBLE and (errors.correlation < -0.025).any() else ""
    caption += " Correlations of pairs with few events in common are shrunken towards the average."
    texts: list[Block] = [lead, shades(), note(caption)]
    if errors.left_out:
        others = f"{counted(errors.left_out, 'other expert')} {are(errors.left_out)}"
        texts.append(note(f"These {n} have the largest weights; {others} left out."))
    if n > BESIDE:
        drawn = figure(markup('<div class="wide">{}</div>', heat_map(errors)), kind="large")
        return Section("errors", title, [*texts, drawn])
    return Section("errors", title, [beside(texts, figure(heat_map(errors)))])


def _calibration(f: ReportData) -> Section:
    title, resolved = "Calibration", int(f.forecasts.resolved.sum())
    if resolved < FEWEST_CLUSTERS:
        why = f"{counted(resolved, 'resolved event')} cannot show it; from {FEWEST_CLUSTERS} on it is drawn here"
        why = why if resolved else "no event is resolved"
        return Section("calibration", title, [missing(why, "Whether probabilities mean what they say is not known.")])
    shown = _shown_experts(f)
    lead = (
        "Of the events that are called 70% likely, 70% should happen: the curve of observed frequencies should follow "
        "the diagonal, except for random variation. If forecasts are calibrated, it lies in the shaded band with 90% "
        f"probability at each point.{'' if f.binary else ' Probabilities of all classes are taken together.'}"
    )
    entries = [
        ("observed", "observed frequency (isotonic regression)"),
        ("band", "90% consistency band, point by point"),
        ("diagonal", "perfect calibration"),
        ("bar", "how many forecasts"),
    ]
    if f.binary and shown:
        corrected = (
            "in the charts of single experts: the forecast corrected for bias and calibration, as if nobody else had "
            "given one (Kahn 2004, equation 14)"
        )
        entries.append(("model", corrected))
    texts: list[Block] = [lead, legend(entries)]
    drawn = Html("")
    if isinstance(f.comparison, Missing):
        texts.append(missing(f.comparison.reason, "The pool’s own calibration is not known."))
    else:
        curve = reliability_curve(
            f.options_of(f.comparison.answers[f.pool]), np.where(f.forecasts.resolved, f.forecasts.outcomes, np.nan)
        )
        phrase = f"on the {counted(curve.events, 'event')} of the test described above. {_band_words(curve)}"
        drawn = figure(reliability_chart(curve, _says("the pool", curve)), markup("<b>The pool</b>, {}", phrase))
    return Section("calibration", title, [beside(texts, drawn), *_expert_curves(f, shown)])


def _expert_curves(f: ReportData, shown: Sequence[int]) -> list[Block]:
    """Return reliability charts of the experts at positions `shown`, and a note on how many others there are."""
    if not shown:
        return []
    left = len(f.forecasts.experts) - len(shown)
    figures = rendered([_expert_figure(f, i) for i in shown])
    parts: list[Block] = [
        markup("<h3>{}</h3>", "The experts that count most" if left else "Each expert"),
        markup('<div class="curves">{}</div>', figures),
    ]
    if left:
        phrase = (
            f"{counted(left, 'other expert')} {are(left)} not drawn, with fewer than {FEWEST_CLUSTERS} resolved events "
            "or less weight; the calibration of each is under Experts in detail."
        )
        parts.append(note(phrase))
    if f.binary and f.own_priors is not None:
        phrase = "Events have priors of their own; what the model makes of an expert is drawn for the middle"
        parts.append(note(f"{phrase}, {percent(_middle_prior(f))}."))
    return parts


def _shown_experts(f: ReportData) -> list[int]:
    """Return positions of up to `CURVES` experts with enough resolved forecasts, the largest absolute weight first."""
    weights = f.learned.weights if f.state.weights is None else f.state.weights
    order = np.argsort(-np.abs(weights), kind="stable").tolist()
    forecasts = f.forecasts
    made = forecasts.expert_index[forecasts.resolved[forecasts.event_index]]
    counts = np.bincount(made, minlength=len(forecasts.experts))
    return [i for i in order if counts[i] >= FEWEST_CLUSTERS][:CURVES]


def _middle_prior(f: ReportData) -> float:
    """Return the prior probability of class 1; if events have different priors, the one with the mean log-odds."""
    if f.own_priors is None:
        return float(f.learned.prior[1]) if f.learned.prior is not None else 0.5
    return float(expit(logit(f.own_priors[:, 1]).mean()))


def _expert_figure(f: ReportData, i: int) -> Html:
    forecasts = f.forecasts
    curve = reliability_curve(f.options_of(forecasts.X[:, i]), forecasts.outcomes)
    model: tuple[Array, Array] | None = None
    phrase = counted(curve.events, "event")
    if f.binary:
        q = expit(np.linspace(-6.0, 6.0, 61))
        features, (floor, pool_floor, _) = f.learned.features, f.learned.panel.settings
        kappa, bias = features.calibration[i], np.ravel(features.bias[i])
        single = Panel([kappa / 2.0], [[1.0]], bias, floor=floor, pool_floor=pool_floor)
        model = q, single.pool(q[:, None], _middle_prior(f))
        phrase = f"calibration {decimal(float(features.calibration[i]))}, {phrase}"
    who = forecasts.experts[i]
    drawn = reliability_chart(curve, _says(who, curve), model, small=True)
    return figure(drawn, markup("<b>{}</b>: {}", name(who), phrase))


def _says(who: str, curve: ReliabilityCurve) -> str:
    low, high = float(curve.probability[0]), float(curve.probability[-1])
    return (
        f"Reliability of {who}: forecasts from {percent(low)} to {percent(high)}, observed frequencies from "
        f"{percent(float(curve.frequency[0]))} to {percent(float(curve.frequency[-1]))}"
    )


def _band_words(curve: ReliabilityCurve) -> str:
    expected_share = 1.0 - curve.level
    large = f"with {counted(curve.events, 'event')} only large departures could be seen"
    if curve.outside == 0:
        return f"The curve stays in the band: no sign of miscalibration. This is no formal test, and {large}."
    if curve.outside <= expected_share:
        return (
            f"At {curve.outside:.0%} of the forecasts the curve lies outside the band, where {expected_share:.0%} are "
            "expected on average if they are calibrated: no sign of miscalibration. This is no formal test, and "
            f"{large}."
        )
    return (
        f"At {curve.outside:.0%} of the forecasts the curve lies outside the band, where {expected_share:.0%} are "
        "expected if they are calibrated: there the probabilities are not calibrated."
    )


def _learning(f: ReportData) -> Section:
    title = "Learning curve"
    if isinstance(f.curve, Missing):
        return Section("learning", title, [missing(f.curve.reason)])
    curve = f.curve
    if curve.scored < FEWEST_CLUSTERS:
        why = f"{counted(curve.scored, 'event')} to score are too few; from {FEWEST_CLUSTERS} on it is drawn here"
        return Section("learning", title, [missing(why, "How the pool learns cannot be seen yet.")])
    entries = [("observed", "the pool"), ("average", "the simple average")]
    if math.isfinite(float(curve.low[-1])):
        phrase = f"pointwise {curve.level:.0%} interval of the gain, drawn around the pool’s score"
        entries.append(("band", phrase))
    caption = (
        f"Mean score on the same {counted(curve.scored, 'event')}, by the number of other resolved events that the "
        f"pool was fitted to (mean over {counted(curve.rounds, 'random division')} into folds"
    )
    known = not isinstance(f.comparison, Missing) and f.comparison.by != "time"
    caption += "; the last point is from the test described above)." if known else ")."
    texts: list[Block] = [words(*_learning_words(f, curve)), legend(entries), note(caption)]
    return Section("learning", title, [beside(texts, figure(learning_chart(curve)))])


def _learning_words(f: ReportData, curve: LearningCurve) -> list[str]:
    sizes, score = curve.sizes.tolist(), curve.score.tolist()
    last = float(curve.average[-1])
    start = "no outcome known" if sizes[0] == 0 else counted(sizes[0], "resolved event")
    words = [
        f"With {start} the pool scores {decimal(score[0])}, with {counted(sizes[-1], 'resolved event')} "
        f"{decimal(score[-1])}; the simple average scores {decimal(last)}."
    ]
    # Where a split is by time, the curve is of other events than the headline.
    found = None if isinstance(f.comparison, Missing) or f.comparison.by == "time" else f.score_of(f.comparison)
    if found is not None and found.over_average.verdict == "better":
        ahead = [bool(x) for x in curve.low > 0]
        since = int(curve.sizes[len(ahead) - ahead[::-1].index(False)]) if not all(ahead) else int(curve.sizes[0])
        since_then = f"From about {since:,} events on" if since else "Even with no outcome known"
        words.append(f"{since_then}, the pool is significantly ahead of the average.")
    if not math.isfinite(float(curve.low[-1])):
        return words
    step = score[-1] - score[-2]
    changed = "did not change the score"
    if abs(step) >= 5e-4:
        changed = f"{'raised' if step > 0 else 'lowered'} the score by {abs(step):.3f}"
    words.append(f"Going from {sizes[-2]:,} to {sizes[-1]:,} resolved events {changed}.")
    return words


def checks_section(f: ReportData) -> Section:
    """Return the section with the results of model checks, and with notes on the data and the fit."""
    notes = [each.text for each in f.notes if remarkable(f.forecasts, each) and each not in f.caveats]
    parts: list[Block] = []
    if isinstance(f.checks, Missing):
        parts.append(missing(f.checks.reason, "The model could not be checked."))
    elif f.checks:
        parts += _findings(f.checks)
    if notes:
        parts += [markup("<h3>{}</h3>", "Notes on the data and the fit"), listing([sentence(each) for each in notes])]
    return Section("checks", "Checks", parts or [missing("there is nothing to remark")])


def _findings(checks: Sequence[Check]) -> list[Block]:
    """Return paragraphs with the results of model checks: `SHOWN` serious ones of each kind, others folded."""
    serious = [check for check in checks if check.serious]
    if all(check.statistic is None and not check.serious for check in checks):
        return ["There are too few forecasts or outcomes to check the model."]
    tested = sum(check.statistic is not None or check.serious for check in checks)
    idle = len(checks) - tested
    lead = (
        f"{counted(tested, 'check')} looked for signs that the method does not suit these forecasts, and found none; "
        "with few events only serious problems would show."
    )
    if serious:
        lead = (
            f"{counted(len(serious), 'warning sign')}: the data depart from what the method assumes. The scores above "
        )
        lead += "do not rest on these assumptions; what is found says where the pool may be improved or misled."
    if idle:
        lead += f" {counted(idle, 'check')} could not be made."
    first: list[Check] = []
    for check in serious:
        if sum(other.code == check.code for other in first) < SHOWN:
            first.append(check)
    fine = [check for check in checks if not check.serious]
    parts: list[Block] = [lead, _listed([*first, *fine])]
    rest = [check for check in serious if check not in first]
    if rest:
        phrase = "One more finding" if len(rest) == 1 else f"The other {len(rest):,} findings"
        phrase += " of these kinds"
        phrase += f", the first {MOST} of them" if len(rest) > MOST else ""
        parts.append(details(phrase, [_listed(rest[:MOST])]))
    return parts


def _listed(checks: Sequence[Check]) -> Html:
    items = []
    for check in checks:
        kind, mark = (' class="serious"', "⚠ look at this") if check.serious else ("", "✓ no problem seen")
        if check.statistic is None and not check.serious:
            kind, mark = ' class="idle"', "– not testable"
        items.append(markup(f'<li{kind}><span class="mark">{{}}</span>{{}}</li>', mark, sentence(check.text)))
    return markup('<ul class="checks">{}</ul>', joined(items, "\n"))


def method_section(f: ReportData) -> Section:
    """Return the section on how the report was made: command, pool, cross-validation, software versions."""
    parts: list[Block] = [typed_code(f.options.source.command)] if f.options.source.command else []
    parts.append(paragraph(method_words(f.pool)))
    if f.pool == DEFAULT and f.learned.members is not None:
        parts.append(shares_words(f.learned.members, shared_by(f.learned)))
    if f.options.saved is not None:
        parts.append(
            f"Answers, weights and features are those of the pool saved in {f.options.saved.file}, as it is; scores "
            "are those of pools fitted anew to parts of these forecasts."
        )
    event = about(f.forecasts)
    used = [sentence(pool_line(f.forecasts, f.pool, f.state, f.given, None))]
    used += [f"Probabilities are of {event}."] if event else []
    if not isinstance(f.comparison, Missing):
        of = counted(f.comparison.units, f.comparison.unit)
        used.append(
            f"{how_line(f.comparison)}; 95% intervals of score differences are confidence intervals (Student’s, "
            f"allowing for skewed differences and for all rows of a table at once), based on at most {of}."
        )
    parts.append(words(*used))
    rows = [
        ("opinionpool", __version__), ("Python", platform.python_version()), ("NumPy", np.__version__),
        ("SciPy", version("scipy")),
        *((markup("SHA-256 of {}", name(file)), markup('<code class="hash">{}</code>', digest))
          for file, digest in f.options.source.digests),
    ]  # fmt: skip
    return Section("method", "Method", [*parts, replace(grid(["", "version"], rows, words=2), kind="plain")])


def shares_words(members: Members, by: str) -> str:
    """Return the sentence on the shares of the weighted pool, the simple average and single experts in each answer."""
    pool, average, follow = (f"{share:.0%}" for share in members.shares)
    return (
        f"Of every answer, as a probability, {pool} is that of the weighted pool, {average} the simple average and "
        f"{follow} the forecasts of single experts, {by}."
    )


def method_words(pool: str) -> Html:
    """Return the sentences on how the pool called `pool` combines probabilities."""
    if pool == DEFAULT:
        return markup(
            "The answer’s log-odds are those of the prior plus, for each forecast, a weight times its distance from "
            "the prior. Weights follow from how accurate, how well calibrated and how dependent the experts are: from "
            "what is believed of any panel, from resolved events and, a little, from agreement on open ones. A missing "
            "forecast is never filled in. Model: Kahn (UAI 2004); <code>docs/how-it-works.md</code> explains it."
        )
    return markup(
        "Probabilities are combined by the {} pool (<code>docs/choosing.md</code>). Features of experts, their "
        "correlations and corrections are those of the default pool. A missing forecast is never filled in.", pool,
    )  # fmt: skip


# Rows that a table shows at once, and that it has at most; open events whose forecasts stand beside the weights.
FIRST, ROWS = 25, 500
FORECASTS = 3


def experts_section(f: ReportData) -> Section:
    """Return the section on experts' weights, with each expert's forecasts if few events are open."""
    weights = weight_table(f.state)
    columns = _columns(f, weights)
    parts: list[Block] = [words(*_lead(f, weights))]
    if weights is not None and np.isfinite(weights.low).any():
        meaning = f"weight with its {weights.level:.0%} interval; the vertical line is 0"
        parts.append(legend([("interval", meaning)]))
    return Section("experts", "The experts", [*parts, *long_table(columns, "expert", FIRST, ROWS)])


def _columns(f: ReportData, weights: WeightTable | None) -> list[Column]:
    """Return columns of experts' names, weights and, if few events are open, forecasts, by decreasing weight."""
    names, counts = f.forecasts.experts, f.learned.counts.tolist()
    order = [names.index(expert) for expert in weights.experts] if weights is not None else [*range(len(names))]
    columns = [Column("expert", [name(names[i]) for i in order], "expert")]
    if weights is not None:
        # The scale that all weights share, with room at both ends.
        every = np.concatenate([[0.0], weights.weight, weights.low, weights.high])
        every = every[np.isfinite(every)]
        room = 0.04 * (float(np.ptp(every)) or 1.0)
        ends = float(every.min()) - room, float(every.max()) + room
        bounds = list(zip(weights.weight.tolist(), weights.low.tolist(), weights.high.tolist(), strict=True))
        between = [f"{low:.2f} to {high:.2f}" if math.isfinite(low) else None for _, low, high in bounds]
        title = f"axis {decimal(ends[0], 1)} to {decimal(ends[1], 1)}"
        columns += [
            Column("picture", [weight_bar(*each, ends) for each in bounds], title),
            Column("weight", weights.weight.tolist(), "weight", decimal),
            Column("between", between, f"{weights.level:.0%} interval", as_is),
        ]
    levels = levels_by_outcome(f.forecasts)
    for i, title in enumerate(("says where it happens", "where not") if levels else ()):
        columns.append(Column("level", [levels.get(names[j], (None, None))[i] for j in order], title, as_is))
    shown = f.open_rows if f.binary and len(f.open_rows) <= FORECASTS else []
    for t in shown:
        title = f"forecast: {f.forecasts.events[t]}" if len(shown) > 1 else "forecast"
        columns.append(Column("forecast", [finite(p) for p in f.forecasts.X[t][order].tolist()], title, brief))
    return [*columns, Column("resolved", [counts[i] for i in order], "resolved", whole)]


def _lead(f: ReportData, weights: WeightTable | None) -> list[str]:
    n = len(f.forecasts.experts)
    texts = [f"{counted(n, 'expert')}{', the largest weight first' if weights is not None and n > 1 else ''}."]
    texts += levels_words(f.forecasts, f.forecasts.experts if weights is None else weights.experts)[:1]
    if weights is None:
        texts.append(f"The {f.pool} pool has no weights: it treats all experts alike.")
    else:
        texts += [_sum_words(f, weights), *_sign_words(weights)]
        texts += ["They were given, and not learned."] if f.weighted else []
    if not f.measured:
        about = "believed of them" if str(f.fit.beliefs or "") else "assumed of any panel"
        texts.append(f"No forecast is of a resolved event, so the weights follow from what is {about}.")
    return texts


def _sum_words(f: ReportData, weights: WeightTable) -> str:
    total = float(weights.weight.sum())
    phrase = (
        "An expert’s weight says how much its forecast counts: with weight 0 it changes nothing. The weights add up to "
        f"{total:.2f}; they are no shares of a whole and need not add up to 1"
    )
    if f.pool == DEFAULT and total > 1.05:
        phrase += ". Above 1, answers usually lie further than the experts’ average from the prior, which is what the "
        phrase += "answer would be without any forecast: the experts "
        phrase += "were too cautious on average and " if f.timid else ""
        phrase += "are estimated to have partly different information"
    elif f.pool == DEFAULT and total < 0.95:
        phrase += ". Below 1, answers are drawn towards the prior, which is what the answer would be without any "
        phrase += "forecast: the experts together were too sure of themselves"
    return f"{phrase}."


def _sign_words(weights: WeightTable) -> list[str]:
    """Return sentences on how many weights are clearly positive or negative, and the meaning of negative ones."""
    known = np.isfinite(weights.low)
    unclear = int((known & (weights.low <= 0) & (weights.high >= 0)).sum())
    sure = int((known & (weights.high < 0)).sum())
    texts = []
    if unclear == len(weights.weight):
        texts.append("Whether an expert adds to the others is open for all of them: their intervals include 0.")
    elif unclear:
        clear = f"{whole(int((weights.low > 0).sum()))} of {whole(len(weights.weight))}"
        texts.append(
            f"That an expert adds to the others is clear for {clear}; for {whole(unclear)} the interval includes 0, so "
            "it is open."
        )
    if unclear and (weights.weight[known & (weights.high >= 0)] < 0).any():
        texts.append(
            "A weight below 0 means that, given what the others say, a higher forecast of this expert lowers the "
            "answer; where its interval includes 0, it cannot be distinguished from 0."
        )
    if sure:
        who = f"{counted(sure, 'weight')} {are(sure)}"
        texts.append(f"{who} clearly below 0: such an expert shares errors with better ones, and subtracting helps.")
    return texts


def features_section(f: ReportData) -> Section:
    """Return the section on each expert's bias, calibration and accuracy, for statisticians."""
    every = expert_columns(f.forecasts, f.learned)
    shown = [column for column in every if column.title is not None and "weight" not in column.key]
    lead = (
        "Each expert by itself, from the forecasts of resolved events. Bias, calibration and accuracy are shrunken "
        "towards the panel’s average: the fewer forecasts, the more."
    )
    if not f.measured:
        lead = "What is believed of each expert by itself, or assumed of any panel, as nothing is measured."
    titles = {column.title for column in shown}
    meanings = definitions([(what, detail) for what, _, detail in terms().values() if detail and what in titles])
    parts: list[Block] = [lead, *long_table(shown, "expert", FIRST, ROWS), meanings]
    if not f.binary and f.forecasts.options is None:
        parts.append(Html('<p class="note">Biases by class: <code>opinionpool experts FILE -o experts.csv</code>.</p>'))
    return Section("features", "Experts in detail", parts)


# Rows of the leaderboard that a page shows at once.
LEADERS = 10


def leaderboard_columns(found: Sequence[Standing]) -> list[Column]:
    """Return columns with a row for each expert in `found`: scores, and the gain over the average of all experts."""
    return [
        Column("expert", [each.expert for each in found], "expert"),
        Column("events", [each.events for each in found], "events", whole),
        Column("score", [each.score for each in found], "score", decimal),
        Column("brier", [each.brier for each in found], "Brier", decimal, spare=2),
        Column("skill", [finite(each.skill) for each in found], "skill", decimal, spare=1),
        *difference_columns("over_average", "gain", [each.gain for each in found]),
        Column("verdict", [each.gain.verdict for each in found], "verdict", spare=3),
    ]


def leaderboard_section(f: ReportData) -> Section | None:
    """Return the section on the scores of experts' own forecasts; None if no event is resolved."""
    found = leaderboard(f.forecasts) if f.measured else []
    if not found:
        return None
    lead = (
        "How well each expert's own forecasts did, on the resolved events that it answered. Experts who answered "
        "different events are compared by the last columns: what each gained over the panel's average on its own ones."
    )
    columns, meaning = leaderboard_columns(found), note(" ".join(map(sentence, leaderboard_lines())))
    return Section("scores", "Leaderboard", [lead, *long_table(columns, "expert", LEADERS, ROWS), meaning])


def leaderboard_lines() -> list[str]:
    """Return sentences that explain the leaderboard's columns."""
    return [
        "score: 1 - log loss / ln 2 of the expert's own forecasts, on the events that it answered (0 = saying 50%)",
        "skill: the same with 0 = the base rate; Brier: lower is better",
        f"gain: score less that of the panel's average on the same events; {LEVEL:.0%} intervals for all at once",
    ]
