"""The first half of the report: what pooling gains, what it says about open events, and who the experts are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from opinionpool.analysis.weights import WeightTable, weight_table
from opinionpool.report.answers import about, expert_columns, signed
from opinionpool.report.charts import Gain, gain_chart, interval_bar, legend, weights_chart
from opinionpool.report.comparison import how_line
from opinionpool.report.findings import Findings, Missing, best_expert
from opinionpool.report.html import Html, columns, folded, joined, markup, missing, name, section, sentence, table
from opinionpool.report.listing import decimal, percent, printable, whole
from opinionpool.scoring.comparison import AVERAGE, DEFAULT, LEVEL, Comparison, Difference, ExpertScore
from opinionpool.scoring.reliability import auc
from opinionpool.scoring.scores import brier_score, brier_sum
from opinionpool.text import counted

# Rows that a table shows at once, and that it holds at most; experts in the figure of weights.
FIRST, MOST = 25, 500
DRAWN = 24


def answer_sections(f: Findings) -> list[Html]:
    """The sections, in order."""
    weights = weight_table(f.state)
    return [_gains(f), _open_events(f), _experts(f, weights), _weights(f, weights)]


def _gains(f: Findings) -> Html:
    """The pool beside the simple average and the best single expert."""
    title = "What pooling gains"
    if isinstance(f.comparison, Missing):
        return section("gains", title, missing("How good the pool is cannot be measured yet.", f.comparison.reason))
    found, best = f.comparison, best_expert(f.comparison)
    own = next(pool for pool in found.pools if pool.pool == f.pool)
    words = [_scores(f, found, best)]
    gains = [] if f.pool == AVERAGE else [Gain("the simple average", *_numbers(own.over_average))]
    caption = f"Gain of the pool in score, with {LEVEL:.0%} intervals"
    if best is not None:
        over = best.over_pool
        gains.append(Gain(printable(best.expert), 0.0 - over.mean, 0.0 - over.high, 0.0 - over.low))
        words.insert(0, markup("<p>{}</p>", _beside_best(best, found)))
        caption += "; the one over the expert allows for all experts at once"
    figure = (
        markup("<figure>{}<figcaption>{}.</figcaption></figure>", gain_chart(gains), caption) if gains else Html("")
    )
    meaning = (
        f"Score: 0 is as good as {_uniform_probabilities(f)}, 1 is perfect, and below 0 is worse "
        "than saying "
        f"nothing. {how_line(found)}."
    )
    return section(
        "gains",
        title,
        markup('<p class="lead">{}</p>', joined(_verdict(f.pool, own.over_average, found), " ")),
        _cards(f, found, best),
        columns(words, figure),
        markup('<p class="note">{}</p>', meaning),
        *(markup('<p class="note"><b>Mind:</b> {}</p>', sentence(note.text)) for note in f.caveats),
    )


def _uniform_probabilities(f: Findings) -> str:
    """What a score of 0 is."""
    k = len(f.forecasts.classes)
    if f.forecasts.options is not None:
        return "equal probabilities for all options of an event"
    return f"saying {'50%' if k == 2 else f'{100 / k:.3g}% for each of the {k} classes'} every time"


def _numbers(d: Difference) -> tuple[float, float, float]:
    return d.mean, d.low, d.high


def _between(d: Difference) -> str:
    return f"{signed(d.low)} to {signed(d.high)}"


def _verdict(pool: str, gain: Difference, found: Comparison) -> list[Html]:
    """What was gained over the average, and how sure that is."""
    on = f"{counted(found.scored, 'event')} that it had not learned from"
    scores = {p.pool: decimal(p.score) for p in found.pools}
    if pool == AVERAGE:
        return [
            markup("The pool is the simple average. On {} it scored {}.", counted(found.scored, "event"), scores[pool])
        ]
    beside = markup("On {} it scored {}, the simple average {}", on, scores[pool], scores[AVERAGE])
    if gain.verdict == "too few":
        return [
            markup("<b>There are too few events to measure what pooling gains.</b>"),
            markup("{}.", beside),
        ]
    span = f"{abs(gain.mean):.3f}"
    limits = f"({LEVEL:.0%} interval {_between(gain)})"
    if gain.verdict == "better":
        return [
            markup("<b>The pool beats the simple average.</b>"),
            markup("{}: a gain of {} {}, more than chance explains.", beside, span, limits),
        ]
    if gain.verdict == "worse":
        return [
            markup("<b>The simple average beats the pool.</b>"),
            markup("{}: a loss of {} {}, more than chance explains. Use the average.", beside, span, limits),
        ]
    if gain.verdict == "same":
        return [markup("<b>The pool and the simple average do the same.</b>"), markup("{}.", beside)]
    direction = "ahead" if gain.mean > 0 else "behind"
    return [
        markup("<b>The pool and the simple average cannot be distinguished.</b>"),
        markup("{}: {} by {} {}, which may be chance.", beside, direction, span, limits),
    ]


def _beside_best(best: ExpertScore, found: Comparison) -> Html:
    """The best expert beside the pool, in words."""
    over = best.over_pool
    same = "" if best.events == found.scored else f" on the {counted(best.events, 'event')} that it answered"
    start = markup(
        "The best single expert, {}, scored {}{}; the pool scored {} on the same events.",
        name(best.expert), decimal(best.score), same, decimal(best.pool_score),
    )  # fmt: skip
    phrase = {
        "better": "That expert is better than the pool by more than chance explains.",
        "worse": "The pool is better by more than chance explains.",
        "same": "They do the same.",
        "undecided": "The two cannot be distinguished.",
        "too few": "Those are too few events to compare the two.",
    }[over.verdict]
    hindsight = "Who would be best was not known beforehand." if len(found.experts) > 1 else ""
    return joined([start, phrase, hindsight], " ")


def _typical(score: float, classes: int) -> str:
    """The geometric mean of the probability given to what happened."""
    return percent(math.exp((score - 1.0) * math.log(classes)))


def _cards(f: Findings, found: Comparison, best: ExpertScore | None) -> Html:
    """Three scores, large."""
    k = len(f.forecasts.classes)

    def card(kind: str, title: str, score: float, more: str = "") -> Html:
        typically = f"typically {_typical(score, k)} on the actual outcome{more}"
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
    header = ["", "log loss", "Brier", *(["AUC"] if binary else [])]
    rows: list[list[str]] = []
    for pool in found.pools:
        title = "simple average" if pool.pool == AVERAGE else "the pool"
        area = [decimal(pool.auc) if math.isfinite(pool.auc) else "–"] if binary else []
        rows.append([title, decimal(pool.log_loss), decimal(pool.brier), *area])
    rows.sort(key=lambda row: row[0] != "the pool")
    if best is not None:
        rows.append([name(best.expert), *_expert_scores(f, found, best)])
    caption = "Log loss and Brier score: lower is better"
    if binary:
        caption += "; AUC, the area under the ROC curve: higher is better"
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


def _open_events(f: Findings) -> Html:
    """Answers about events that are not resolved."""
    title = "Forecasts of open events"
    rows = np.flatnonzero(~f.forecasts.resolved).tolist()
    total = len(f.forecasts.events)
    everything = markup(
        "<code>opinionpool pool FILE -o pooled.csv</code> writes the answers about all {}.", counted(total, "event")
    )
    if not rows:
        phrase = "The only event is" if total == 1 else f"All {counted(total, 'event')} are"
        return section("open", title, missing("", f"{phrase} resolved, so none is left to forecast"))
    # A table is as long with more classes, so it has fewer events.
    classes = 1 if f.binary else len(f.forecasts.classes)
    first, most = max(FIRST * 2 // (classes + 1), 5), max(MOST * 2 // (classes + 1), 5)
    parts = [markup("<p>{}</p>", _open_words(f, len(rows))), _event_table(f, rows[:first])]
    if len(rows) > first:
        more = rows[first : first + most]
        parts.append(folded(f"The next {counted(len(more), 'open event')}", _event_table(f, more)))
        left = len(rows) - first - len(more)
        phrase = f"Events are in the order of the file; the first {first} stand in the table"
        phrase += f", and {whole(left)} are left out of this page. " if left else ". "
        parts.append(markup('<p class="note">{}{}</p>', phrase, everything))
    return section("open", title, *parts)


def _open_words(f: Findings, number: int) -> str:
    event = about(f.forecasts)
    lead = (
        f"{counted(number, 'event')} of {whole(len(f.forecasts.events))} {'is' if number == 1 else 'are'} not resolved."
    )
    if f.pooled.interval is not None:
        of = f" of {event}" if event else ""
        return (
            f"{lead} Beside the pooled probability{of} stands its 90% credible interval, as "
            "far as the outcomes so far leave open how to weigh the experts."
        )
    return f"{lead} This way of pooling does not say how sure it is of a probability."


def _event_table(f: Findings, rows: Sequence[int]) -> Html:
    events, crowd = f.forecasts.events, f.forecasts.crowd.tolist()
    if not f.binary:
        return _class_table(f, rows)
    low, high = f.pooled.ends()
    known = f.pooled.interval is not None
    lines: list[list[str]] = []
    for i in rows:
        p, a, b = float(f.pooled.probabilities[i]), low[i], high[i]
        between = [_range(a, b)] if known else []
        lines.append([name(events[i]), interval_bar(p, a, b), percent(p), *between, whole(crowd[i])])
    header = ["event", "from 0% to 100%", "probability", *(["90% interval"] if known else []), "experts"]
    return table(header, lines, numbers=[False, False, *[True] * (len(header) - 2)], kind="bars")


def _class_table(f: Findings, rows: Sequence[int]) -> Html:
    """A row for each class, or for each of an event's own options."""
    forecasts, crowd = f.forecasts, f.forecasts.crowd.tolist()
    low, high = f.pooled.class_ends()
    p = f.options_of(f.pooled.probabilities).tolist()
    known = f.pooled.interval is not None
    lines: list[list[str]] = []
    for i in rows:
        labels = forecasts.classes if forecasts.options is None else forecasts.options[i]
        for place, label in enumerate(labels):
            first = [name(forecasts.events[i]), whole(crowd[i])] if place == 0 else ["", ""]
            share, a, b = p[i][place], low[i][place], high[i][place]
            between = [_range(a, b)] if known else []
            lines.append([first[0], name(str(label)), interval_bar(share, a, b), percent(share), *between, first[1]])
    what = "class" if forecasts.options is None else "option"
    interval = ["90% interval"] if known else []
    header = ["event", what, "from 0% to 100%", "probability", *interval, "experts"]
    return table(header, lines, numbers=[False] * 3 + [True] * (len(header) - 3), kind="bars classes")


def _range(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{percent(low)} to {percent(high)}"


READ = (
    ("bias", "How far its log-odds lie above (+) or below (−) where they should be."),
    ("calibration", "1: take as is. Below 1: too sure of itself. Above 1: not sure enough."),
    ("accuracy", "How much it knows once bias and calibration are corrected, in log-odds."),
    ("AUC", "How well its own forecasts tell what happens from what does not: 0.5 is nothing, 1 is everything."),
    ("weight", "Its part in the pooled log-odds when every expert is present. Weights need not add up to 1."),
)


def _experts(f: Findings, weights: WeightTable | None) -> Html:
    """What was learned about each expert."""
    title = "The experts"
    columns = expert_columns(f.forecasts, f.learned)
    phrase = {column.key: column for column in columns if column.title is not None and "weight" not in column.key}
    own = {expert: i for i, expert in enumerate(weights.experts)} if weights is not None else {}
    names = phrase["expert"].values
    order = sorted(range(len(names)), key=lambda i: own.get(names[i], i))
    header = [column.title or "" for column in phrase.values()]
    lines: list[list[str]] = []
    for i in order:
        cells: list[str] = [name(names[i])]
        for column in list(phrase.values())[1:]:
            value = column.values[i]
            cells.append("–" if value is None else column.show(value))
        if weights is not None:
            place = own[names[i]]
            cells[-2:-2] = _weight_cells(weights, place)
        lines.append(cells)
    if weights is not None:
        header[-2:-2] = ["weight", f"{weights.level:.0%} interval"]
    numbers = [False, *[True] * (len(header) - 1)]
    parts = [_expert_lead(f, weights), table(header, lines[:FIRST], numbers=numbers)]
    more, left = lines[FIRST : FIRST + MOST], max(len(lines) - FIRST - MOST, 0)
    if more:
        which = "next" if left else "other"
        parts.append(folded(f"The {which} {counted(len(more), 'expert')}", table(header, more, numbers=numbers)))
    asked = "<code>opinionpool experts FILE -o experts.csv</code>"
    if left:
        parts.append(markup(f'<p class="note">{{}} are left out of this page; {asked} has all.</p>', whole(left)))
    entries = joined(markup("<dt>{}</dt><dd>{}</dd>", *entry) for entry in READ if entry[0] in header)
    parts.append(folded("How to read this table", markup("<dl>{}</dl>", entries)))
    if not f.binary and f.forecasts.options is None:
        parts.append(markup(f'<p class="note">Biases are by class; {asked} has them.</p>'))
    return section("experts", title, *parts)


def _weight_cells(weights: WeightTable, place: int) -> list[str]:
    low, high = float(weights.low[place]), float(weights.high[place])
    between = f"{decimal(low)} to {decimal(high)}" if math.isfinite(low) else "–"
    return [decimal(float(weights.weight[place])), between.replace("-", "−")]


def _expert_lead(f: Findings, weights: WeightTable | None) -> Html:
    n = len(f.forecasts.experts)
    count = counted(n, "expert")
    if not f.learned.counts.any():
        them = "it" if n == 1 else "them"
        known = f"Nothing is known about {them} yet, as no forecast is of a resolved event; "
        phrase = f"{count}. {known}the weights are what is assumed of any panel."
        if str(f.beliefs or ""):
            phrase = f"{count}. {known}what stands here is what is believed of {them}, and otherwise of any panel."
        return markup("<p>{}</p>", phrase)
    order = ", the largest weight first" if weights is not None and n > 1 else ""
    phrase = (
        f"{count}{order}. Each is judged by its own forecasts of resolved events, and where these "
        "are few, its numbers are shrunken towards the average of the panel."
    )
    return markup("<p>{}</p>", phrase)


def _weights(f: Findings, weights: WeightTable | None) -> Html:
    """The figure of weights."""
    title = "How much each expert counts"
    if weights is None:
        return section("weights", title, missing("", f"the {f.pool} pool has no weights: it treats all experts alike"))
    n = len(weights.experts)
    shown = [*range(n)] if n <= DRAWN + 4 else [*range(DRAWN // 2), *range(n - DRAWN // 2, n)]
    words = [markup("<p>{}</p>", _weight_words(f, weights))]
    if np.isfinite(weights.low).any():
        words.append(legend([("interval", f"weight and {weights.level:.0%} interval, each by itself")]))
    else:
        words.append(markup('<p class="note">This way of pooling does not say how sure its weights are.</p>'))
    if len(shown) < n:
        between = counted(n - DRAWN, "expert")
        phrase = (
            f"Drawn are the {DRAWN // 2} largest and the {DRAWN // 2} smallest weights; {between} lie between them."
        )
        words.append(markup('<p class="note">{}</p>', phrase))
    return section("weights", title, columns(words, markup("<figure>{}</figure>", weights_chart(weights, shown))))


def _weight_words(f: Findings, weights: WeightTable) -> str:
    total = float(weights.weight.sum())
    phrase = f"The weights add up to {decimal(total)}"
    if f.pool == DEFAULT and abs(total - 1.0) > 0.05:
        more = ": experts with different information justify more confidence together than each by itself"
        phrase += more if total > 1.0 else ""
        phrase += ": together they are overconfident" if total < 1.0 else ""
    phrase += "."
    negative = int((weights.weight < -5e-4).sum())
    if negative:
        phrase += (
            f" {counted(negative, 'weight')} {'is' if negative == 1 else 'are'} below 0, which is no mistake: most of "
            "what such an expert says is known from better ones, and subtracting it takes out errors that they share."
        )
    return phrase
