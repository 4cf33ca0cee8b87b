"""The middle of the report: who the experts are and how much each counts, and how good the pool is."""

from __future__ import annotations

import math

import numpy as np

from opinionpool.analysis.weights import WeightTable, weight_table
from opinionpool.report.answers import expert_columns, signed
from opinionpool.report.charts import Gain, gain_chart, legend, weight_bar
from opinionpool.report.comparison import how_line
from opinionpool.report.findings import Findings, Missing, best_expert
from opinionpool.report.html import Html, columns, folded, joined, markup, missing, name, section, sentence, table
from opinionpool.report.listing import decimal, percent, printable, whole
from opinionpool.report.waterfall import brief
from opinionpool.scoring.comparison import AVERAGE, DEFAULT, LEVEL, Comparison, Difference, ExpertScore
from opinionpool.scoring.reliability import auc
from opinionpool.scoring.scores import brier_score, brier_sum
from opinionpool.text import counted

# Rows that a table shows at once, and that it has at most; open events whose forecasts stand beside the weights.
FIRST, MOST = 25, 500
BESIDE = 3


def gains_section(f: Findings) -> Html:
    """The pool beside the simple average and the best single expert."""
    title = "How good the pool is"
    if isinstance(f.comparison, Missing):
        why = f.comparison.reason
        if not f.forecasts.resolved.any():
            why = "no event is resolved, so the answers rest on what is assumed of the experts"
        return section("gains", title, missing("It cannot be measured yet.", why))
    found, best = f.comparison, best_expert(f.comparison)
    own = next(pool for pool in found.pools if pool.pool == f.pool)
    words = [_scores(f, found, best)]
    gains = [] if f.pool == AVERAGE else [Gain("the simple average", *_numbers(own.over_average))]
    caption = f"How much better the pool scored, with {LEVEL:.0%} intervals"
    if best is not None:
        over = best.over_pool
        gains.append(Gain(printable(best.expert), 0.0 - over.mean, 0.0 - over.high, 0.0 - over.low))
        words.insert(0, markup("<p>{}</p>", _beside_best(best, found)))
        caption += "; that over the expert allows for picking the best expert after the scores were known"
    figure = (
        markup("<figure>{}<figcaption>{}.</figcaption></figure>", gain_chart(gains), caption) if gains else Html("")
    )
    meaning = f"{_meaning(f)} {how_line(found)}."
    if own.over_average.verdict in {"better", "worse"}:
        meaning += (
            " The interval is for this one comparison; opinionpool compare looks at many pools at once, with wider "
            "intervals, and may call the same difference unclear."
        )
    verdict = _verdict(f.pool, own.over_average, found)
    if found.base is not None:
        same = "Answering every event with the share of the other events that happened (the base rate) would score {}."
        if not f.binary:
            same = "Answering every event with the outcomes’ shares of the other events (base rates) would score {}."
        verdict.append(markup(same, decimal(found.base.score)))
    lead = markup('<p class="lead">{}</p>', joined(verdict, " "))
    caveats = [markup('<p class="note"><b>Mind:</b> {}</p>', sentence(note.text)) for note in f.caveats]
    if own.over_average.verdict == "too few events":
        # Large numbers and intervals would promise more than so few events can show.
        return section("gains", title, lead, markup('<p class="note">{}</p>', meaning), *caveats)
    return section(
        "gains",
        title,
        lead,
        _cards(f, found, best),
        columns(words, figure),
        markup('<p class="note">{}</p>', meaning),
        *caveats,
    )


def _meaning(f: Findings) -> str:
    """What a score is."""
    k = len(f.forecasts.classes)
    worst, unit = f"saying {'50%' if k == 2 else f'{100 / k:.3g}% for each of the {k} classes'} every time", f"ln {k}"
    if f.forecasts.options is not None:
        worst, unit = "equal probabilities for all options of an event", "the logarithm of the number of options"
    return f"Score: the log score, scaled as 1 − log loss / {unit}, so that {worst} scores 0 and perfect forecasts 1."


def _numbers(d: Difference) -> tuple[float, float, float]:
    return d.mean, d.low, d.high


def _between(d: Difference) -> str:
    return f"{signed(d.low)} to {signed(d.high)}"


def _verdict(pool: str, gain: Difference, found: Comparison) -> list[Html]:
    """What was gained over the average, and how sure that is."""
    others = {"time": "earlier outcomes", "group": "other groups"}.get(found.by or "", "other events")
    on = f"each of {counted(found.scored, 'resolved event')} was answered by a pool that had learned only from {others}"
    scores = {p.pool: decimal(p.score) for p in found.pools}
    if pool == AVERAGE:
        return [
            markup("The pool is the simple average. On {} it scored {}.", counted(found.scored, "event"), scores[pool])
        ]
    beside = markup("In a test, {}. It scored {}, the simple average {}", on, scores[pool], scores[AVERAGE])
    if gain.verdict != "too few events" and found.pools:
        k = found.answers[pool].ndim
        means = {p.pool: math.exp(-p.log_loss) for p in found.pools}
        beside = markup(
            "In a test, {}. It gave the actual outcome a probability of {} on average (geometric mean), the simple "
            "average gave it {}. That is a score of {} against {} (0 is {}, 1 is perfect)",
            on, percent(means[pool]), percent(means[AVERAGE]), scores[pool], scores[AVERAGE],
            "saying 50% every time" if k == 1 else "saying the same of every class",
        )  # fmt: skip
    if gain.verdict == "too few events":
        return [
            markup("<b>There are too few events to measure what pooling gains.</b>"),
            markup("{}.", beside),
        ]
    span = f"{abs(gain.mean):.3f}"
    limits = f"({LEVEL:.0%} interval {_between(gain)})"
    if gain.verdict == "better":
        return [
            markup("<b>The pool, the combined forecast above, did better than the simple average.</b>"),
            markup("{}, a statistically significant gain of {} {}.", beside, span, limits),
        ]
    if gain.verdict == "worse":
        return [
            markup("<b>The simple average did better than the pool, the combined forecast above.</b>"),
            markup("{}, a statistically significant loss of {} {}. Use the average.", beside, span, limits),
        ]
    if gain.verdict == "the same":
        return [markup("<b>The pool and the simple average do the same.</b>"), markup("{}.", beside)]
    direction = "ahead" if gain.mean > 0 else "behind"
    return [
        markup("<b>Whether the pool, the combined forecast above, is better than the simple average is unclear.</b>"),
        markup("{}, {} by {} {}, which is not statistically significant.", beside, direction, span, limits),
    ]


def _beside_best(best: ExpertScore, found: Comparison) -> Html:
    """The best expert beside the pool, in words."""
    over = best.over_pool
    same = "" if best.events == found.scored else f" on the {counted(best.events, 'event')} that it answered"
    start = markup(
        "The best single expert, <b>{}</b>, scored {}{}; the pool scored {} on the same events.",
        name(best.expert), decimal(best.score), same, decimal(best.pool_score),
    )  # fmt: skip
    phrase = {
        "better": "That expert is better than the pool, significantly so.",
        "worse": "The pool is better, significantly so.",
        "the same": "They do the same.",
        "unclear": f"The difference is not significant: these {best.events} events do not show which is better.",
        "too few events": "Those are too few events to compare the two.",
    }[over.verdict]
    hindsight = ""
    if len(found.experts) > 1:
        hindsight = "It was picked as the best expert after the scores were known, which flatters it."
    return joined([start, phrase, hindsight], " ")


def _typical(score: float, classes: int) -> str:
    """The geometric mean of the probabilities of what happened."""
    return percent(math.exp((score - 1.0) * math.log(classes)))


def _cards(f: Findings, found: Comparison, best: ExpertScore | None) -> Html:
    """Three scores, large."""
    k = len(f.forecasts.classes)

    def card(kind: str, title: str, score: float, more: str = "") -> Html:
        typically = f"gave the actual outcome {_typical(score, k)} on average{more}"
        return markup(
            f'<li{kind}><span>{{}}</span><b>{{}}</b><span class="quiet">{{}}</span></li>',
            title,
            decimal(score),
            typically,
        )

    scores = {pool.pool: pool.score for pool in found.pools}
    cards = [] if f.pool == AVERAGE else [card(' class="own"', "The pool", scores[f.pool])]
    cards.append(card("", "Simple average", scores[AVERAGE]))
    if best is not None:
        same = best.events == found.scored
        more = "" if same else f"; on {counted(best.events, 'event')}, where the pool has {decimal(best.pool_score)}"
        cards.append(card("", markup("Best expert: {}", name(best.expert)), best.score, more))
    return markup('<ul class="cards">{}</ul>', joined(cards))


def _scores(f: Findings, found: Comparison, best: ExpertScore | None) -> Html:
    """Other measures of the same answers."""
    binary = f.binary
    header = ["", "skill", "log loss", "Brier", *(["AUC"] if binary else [])]
    rows: list[list[str]] = []
    for pool in found.pools:
        title = "simple average" if pool.pool == AVERAGE else "the pool"
        area = [decimal(pool.auc) if math.isfinite(pool.auc) else "–"] if binary else []
        rows.append([title, decimal(pool.skill), decimal(pool.log_loss), decimal(pool.brier), *area])
    rows.sort(key=lambda row: row[0] != "the pool")
    none = ["–"] if binary else []
    if found.base is not None:
        rows.append(["base rate alone", decimal(0.0), decimal(found.base.log_loss), decimal(found.base.brier), *none])
    if best is not None:
        answered = "" if best.events == found.scored else f" ({counted(best.events, 'event')})"
        rows.append([markup("{}{}", name(best.expert), answered), "–", *_expert_scores(f, found, best)])
    caption = "Skill: 0 is the base rate, the share of the other events that happened; 1 is perfect"
    caption += "; not computed for single experts" if best is not None else ""
    caption += ". Log loss and Brier score measure error: lower is better"
    if binary:
        caption += (
            ". AUC, the area under the ROC curve: of two events, how often the one that happened had the higher "
            "forecast"
        )
    return table(header, rows, numbers=[False, *[True] * (len(header) - 1)], caption=caption)


def _expert_scores(f: Findings, found: Comparison, best: ExpertScore) -> list[str]:
    """Log loss, Brier score and area of one expert on the scored events that it answered."""
    forecasts = f.forecasts
    forecast = forecasts.X[:, forecasts.experts.index(best.expert)]
    scored = ~np.isnan(found.scores[found.reference]) & ~np.isnan(forecast.reshape(len(forecast), -1)).any(axis=1)
    forecast, outcomes = forecast[scored], forecasts.outcomes[scored]
    brier = (brier_score if f.binary else brier_sum)(forecast, outcomes)
    phrase = [decimal((1.0 - best.score) * math.log(len(forecasts.classes))), decimal(float(np.mean(brier)))]
    if f.binary:
        phrase.append(decimal(auc(forecast, outcomes).area) if len(np.unique(outcomes)) == 2 else "–")
    return phrase


def experts_section(f: Findings) -> Html:
    """Each expert's weight with a picture, and its forecasts where few events are open."""
    title, weights = "The experts", weight_table(f.state)
    names, counts = f.forecasts.experts, f.learned.counts.tolist()
    shown = f.open_rows if f.binary and len(f.open_rows) <= BESIDE else []
    order = [names.index(expert) for expert in weights.experts] if weights is not None else [*range(len(names))]
    ends = None if weights is None else _weight_ends(weights)
    header = ["expert"]
    if weights is not None and ends is not None:
        header += [
            f"axis {round(ends[0], 1) + 0.0:.1f} to {ends[1]:.1f}".replace("-", "−"),
            "weight",
            f"{weights.level:.0%} interval",
        ]
    header += [f"forecast: {f.forecasts.events[t]}" if len(shown) > 1 else "forecast" for t in shown]
    header += ["resolved"]
    given = [dict(zip(*_event_cells(f, t), strict=True)) for t in shown]
    lines: list[list[str]] = []
    for place, i in enumerate(order):
        cells: list[str] = [name(names[i])]
        if weights is not None and ends is not None:
            at = [float(v[place]) for v in (weights.weight, weights.low, weights.high)]
            cells += [weight_bar(at[0], at[1], at[2], ends), *_weight_cells(weights, place)]
        cells += [brief(each[i]) if i in each else "–" for each in given]
        lines.append([*cells, whole(counts[i])])
    words = 1 if weights is None else 2
    numbers = [False] * words + [True] * (len(header) - words)
    parts = [markup("<p>{}</p>", joined(_expert_lead(f, weights), " "))]
    if weights is not None and np.isfinite(weights.low).any():
        parts.append(
            legend([("interval", f"weight with its {weights.level:.0%} credible interval; the vertical line is 0")])
        )
    parts.append(table(header, lines[:FIRST], numbers=numbers, kind="stack"))
    more, left = lines[FIRST : FIRST + MOST], max(len(lines) - FIRST - MOST, 0)
    if more:
        which = "next" if left else "other"
        content = table(header, more, numbers=numbers, kind="stack")
        parts.append(folded(f"The {which} {counted(len(more), 'expert')}", content))
    if left:
        parts.append(
            markup(
                '<p class="note">{} are left out of this page; <code>opinionpool experts FILE -o experts.csv</code> '
                "has all.</p>",
                whole(left),
            )
        )
    return section("experts", title, *parts)


def _event_cells(f: Findings, t: int) -> tuple[list[int], list[float]]:
    """Who forecast an event, and what."""
    low, high = np.searchsorted(f.forecasts.event_index, [t, t + 1])
    return f.forecasts.expert_index[low:high].tolist(), f.forecasts.probabilities[low:high].tolist()


def _weight_ends(weights: WeightTable) -> tuple[float, float]:
    """The scale that all weights share, with room at both ends."""
    every = np.concatenate([[0.0], weights.weight, weights.low, weights.high])
    every = every[np.isfinite(every)]
    room = 0.04 * (float(np.ptp(every)) or 1.0)
    return float(every.min()) - room, float(every.max()) + room


def _weight_cells(weights: WeightTable, place: int) -> list[str]:
    low, high = float(weights.low[place]), float(weights.high[place])
    between = f"{low:.2f} to {high:.2f}" if math.isfinite(low) else "–"
    return [f"{round(float(weights.weight[place]), 2) + 0.0:.2f}", between.replace("-", "−")]


def _expert_lead(f: Findings, weights: WeightTable | None) -> list[str]:
    n = len(f.forecasts.experts)
    words = [f"{counted(n, 'expert')}{', the largest weight first' if weights is not None and n > 1 else ''}."]
    if weights is None:
        words.append(f"The {f.pool} pool has no weights: it treats all experts alike.")
    else:
        words.append(_weight_words(f, weights))
        words += ["They were given, and not learned."] if f.weighted else []
    if not f.measured:
        about = "believed of them" if str(f.beliefs or "") else "assumed of any panel"
        words.append(f"No forecast is of a resolved event, so the weights follow from what is {about}.")
    return words


def _weight_words(f: Findings, weights: WeightTable) -> str:
    total = float(weights.weight.sum())
    phrase = f"The weights add up to {total:.2f}; they are not percentages of a whole and need not add up to 1"
    if f.pool == DEFAULT and total > 1.05:
        features = f.learned.panel if f.learned.marginal is None else f.learned.marginal
        timid = float(np.mean(features.calibration)) > 1.05
        causes = ["the experts are underconfident on average (their mean calibration is above 1)"] if timid else []
        causes += (
            ["they are estimated to have partly different information"]
            if timid
            else ["the experts are estimated to have partly different information"]
        )
        phrase += ". A sum above 1 means that answers usually lie further from the prior than the experts' average does"
        phrase += f": {', and '.join(causes)}"
    elif f.pool == DEFAULT and total < 0.95:
        phrase += ". A sum below 1 means that the experts together are overconfident"
    return f"{phrase}.{_negative_words(weights)}"


def _negative_words(weights: WeightTable) -> str:
    """Of how many experts it is known that they add something beyond the others, and what a weight below 0 means."""
    known = np.isfinite(weights.low)
    open_ = int((known & (weights.low <= 0) & (weights.high >= 0)).sum())
    sure = int((known & (weights.high < 0)).sum())
    words = ""
    if open_:
        clear, all_ = int((weights.low > 0).sum()), len(weights.weight)
        if open_ == all_:
            words = " Whether an expert adds to the others is open for all of them: their intervals include 0."
        else:
            words = f" That an expert adds to the others is clear for {whole(clear)} of {whole(all_)}; for "
            words += f"{whole(open_)} the interval includes 0, so it is open."
        if (weights.weight[known & (weights.high >= 0)] < 0).any():
            words += (
                " A weight below 0 means that, given what the others say, a higher forecast of this expert lowers the "
                "answer; where its interval includes 0, it cannot be distinguished from 0."
            )
    if sure:
        who, verb = counted(sure, "weight"), "is" if sure == 1 else "are"
        words += f" {who} {verb} clearly below 0: such an expert shares errors with better ones, and subtracting helps."
    return words


READ = (
    ("bias", "How far the expert’s log-odds, the logarithms of p/(1 − p), are too high (+) or too low (−)."),
    (
        "calibration",
        "The slope on log-odds: 1 is calibrated, below 1 overconfident, above 1 underconfident.",
    ),
    (
        "accuracy",
        "How much the expert knows: half the difference between the mean log-odds, corrected for bias and calibration, "
        "of events that happened and of those that did not; not the share of correct answers.",
    ),
    ("AUC", "Of two events, one that happened and one that did not, how often the former had the higher forecast."),
)


def features_section(f: Findings) -> Html:
    """What was learned about each expert, for statisticians."""
    title = "Experts in detail"
    shown = [
        column
        for column in expert_columns(f.forecasts, f.learned)
        if column.title is not None and "weight" not in column.key
    ]
    header = [column.title or "" for column in shown]
    lines: list[list[str]] = []
    for i, expert in enumerate(shown[0].values[: FIRST + MOST]):
        values = [(column, column.values[i]) for column in shown[1:]]
        lines.append([name(expert), *("–" if value is None else column.show(value) for column, value in values)])
    numbers = [False, *[True] * (len(header) - 1)]
    words = (
        "Each expert by itself, from the forecasts of resolved events. Bias, calibration and accuracy are shrunken "
        "towards the panel’s average: the fewer forecasts, the more."
    )
    if not f.measured:
        words = "What is believed of each expert by itself, or assumed of any panel, as nothing is measured."
    parts = [markup("<p>{}</p>", words), table(header, lines[:FIRST], numbers=numbers, kind="stack")]
    if len(lines) > FIRST:
        content = table(header, lines[FIRST:], numbers=numbers, kind="stack")
        parts.append(folded(f"The other {counted(len(lines) - FIRST, 'expert')}", content))
    entries = joined(markup("<dt>{}</dt><dd>{}</dd>", *entry) for entry in READ if entry[0] in header)
    parts.append(markup("<dl>{}</dl>", entries))
    if not f.binary and f.forecasts.options is None:
        note = "Biases are by class; <code>opinionpool experts FILE -o experts.csv</code> has them."
        parts.append(Html(f'<p class="note">{note}</p>'))
    return section("features", title, *parts)
