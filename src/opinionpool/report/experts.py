"""The experts: how much each counts, what each forecast, and how good the forecasts of each are by themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from opinionpool.analysis.weights import WeightTable, weight_table
from opinionpool.report.answers import expert_columns
from opinionpool.report.blocks import (
    Block,
    Html,
    Section,
    definitions,
    long_table,
    name,
    note,
    sentence,
    words,
)
from opinionpool.report.charts import legend, weight_bar
from opinionpool.report.comparison import difference_columns
from opinionpool.report.findings import Findings
from opinionpool.report.listing import Column, as_is, brief, decimal, finite, hundredths, whole
from opinionpool.report.panel import terms
from opinionpool.report.view import levels_by_outcome, levels_words
from opinionpool.scoring.comparison import DEFAULT, LEVEL
from opinionpool.scoring.leaderboard import Standing, leaderboard
from opinionpool.text import are, counted

# Rows that a table shows at once, and that it has at most; open events whose forecasts stand beside the weights.
FIRST, MOST = 25, 500
BESIDE = 3


def experts_section(f: Findings) -> Section:
    """Return the section with each expert's weight as a picture, and its forecasts if few events are open."""
    weights = weight_table(f.state)
    columns = _columns(f, weights)
    parts: list[Block] = [words(*_lead(f, weights))]
    if weights is not None and np.isfinite(weights.low).any():
        meaning = f"weight with its {weights.level:.0%} interval; the vertical line is 0"
        parts.append(legend([("interval", meaning)]))
    return Section("experts", "The experts", [*parts, *long_table(columns, "expert", FIRST, MOST)])


def _columns(f: Findings, weights: WeightTable | None) -> list[Column]:
    """Return columns with name, weight and forecasts of each expert, the largest weight first."""
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
            Column("weight", weights.weight.tolist(), "weight", hundredths),
            Column("between", between, f"{weights.level:.0%} interval", as_is),
        ]
    levels = levels_by_outcome(f.forecasts)
    for i, title in enumerate(("says where it happens", "where not") if levels else ()):
        columns.append(Column("level", [levels.get(names[j], (None, None))[i] for j in order], title, as_is))
    shown = f.open_rows if f.binary and len(f.open_rows) <= BESIDE else []
    for t in shown:
        title = f"forecast: {f.forecasts.events[t]}" if len(shown) > 1 else "forecast"
        columns.append(Column("forecast", [finite(p) for p in f.forecasts.X[t][order].tolist()], title, brief))
    return [*columns, Column("resolved", [counts[i] for i in order], "resolved", whole)]


def _lead(f: Findings, weights: WeightTable | None) -> list[str]:
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


def _sum_words(f: Findings, weights: WeightTable) -> str:
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
    """Return sentences on how many weights are clearly above or below 0, and on what a negative weight means."""
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


def features_section(f: Findings) -> Section:
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
    parts: list[Block] = [lead, *long_table(shown, "expert", FIRST, MOST), meanings]
    if not f.binary and f.forecasts.options is None:
        parts.append(Html('<p class="note">Biases by class: <code>opinionpool experts FILE -o experts.csv</code>.</p>'))
    return Section("features", "Experts in detail", parts)


# Rows of the leaderboard that a page shows at once.
LEADERS = 10


def leaderboard_columns(found: Sequence[Standing]) -> list[Column]:
    """Return columns with a row for each expert with a forecast on a resolved event, the largest gain first."""
    return [
        Column("expert", [each.expert for each in found], "expert"),
        Column("events", [each.events for each in found], "events", whole),
        Column("score", [each.score for each in found], "score", decimal),
        Column("brier", [each.brier for each in found], "Brier", decimal, spare=2),
        Column("skill", [finite(each.skill) for each in found], "skill", decimal, spare=1),
        *difference_columns("over_average", "gain", [each.gain for each in found]),
        Column("verdict", [each.gain.verdict for each in found], "verdict", spare=3),
    ]


def leaderboard_section(f: Findings) -> Section | None:
    """Return the section on the scores of each expert's own forecasts; None if no event is resolved."""
    found = leaderboard(f.forecasts) if f.measured else []
    if not found:
        return None
    lead = (
        "How well each expert's own forecasts did, on the resolved events that it answered. Experts who answered "
        "different events are compared by the last columns: what each gained over the panel's average on its own ones."
    )
    columns, meaning = leaderboard_columns(found), note(" ".join(map(sentence, leaderboard_lines())))
    return Section("scores", "Leaderboard", [lead, *long_table(columns, "expert", LEADERS, MOST), meaning])


def leaderboard_lines() -> list[str]:
    """Return sentences that explain the leaderboard's columns."""
    return [
        "score: 1 - log loss / ln 2 of the expert's own forecasts, on the events that it answered (0 = saying 50%)",
        "skill: the same with 0 = the base rate; Brier: lower is better",
        f"gain: score less that of the panel's average on the same events; {LEVEL:.0%} intervals for all at once",
    ]
