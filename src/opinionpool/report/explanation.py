"""Answers about open events and their explanation, as a view and as sections of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from opinionpool.analysis.explanation import Explanation, by_effect, explain_event, of_class
from opinionpool.arrays import Array
from opinionpool.errors import OpinionPoolError
from opinionpool.logodds import logit
from opinionpool.report.answers import about, closing_times, coverage_words, event_columns, plain, plain_time
from opinionpool.report.blocks import (
    Block,
    Card,
    Html,
    Section,
    Table,
    beside,
    cards,
    details,
    figure,
    joined,
    markup,
    missing,
    name,
    note,
    sentence,
    words,
)
from opinionpool.report.charts import interval_bar, legend, waterfall
from opinionpool.report.findings import Missing, ReportData
from opinionpool.report.listing import Column, as_is, brief, decimal, finite, percent, printable, signed, whole
from opinionpool.scoring.compare import DEFAULT
from opinionpool.text import are, counted, listed


class _Field(NamedTuple):
    """Number that an explanation has for each forecast: CSV key, attribute of `Explanation`, title, and its format."""

    key: str
    attribute: str
    title: str
    show: Callable[[Any], str]
    spare: int
    log_odds: bool  # whether the pool must add up log-odds for it


_FIELDS = (
    _Field("level", "given_levels", "level", str, 0, False),
    _Field("probability", "probabilities", "says", percent, 0, False),
    _Field("age", "ages", "days old", decimal, 3, False),
    _Field("bias", "bias", "offset", signed, 2, True),
    _Field("contrast", "contrast", "contrast", signed, 1, True),
    _Field("weight", "weights", "weight", decimal, 0, False),
    _Field("adds", "contributions", "adds", signed, 0, False),
    _Field("without", "without", "without", percent, 0, False),
)
# Keys of the numbers of an expert that are equal for all classes.
_ONE = {"age", "weight"}


def _fields(why: Explanation) -> list[_Field]:
    """Return the numbers that are shown for each forecast (entries of `_FIELDS`) and that `why` has."""
    there = [each for each in _FIELDS if getattr(why, each.attribute) is not None]
    adding = [each for each in there if why.scale == "log-odds" or not each.log_odds]
    return [each for each in adding if each.key != "bias" or why.pool == "gaussian"]


def forecast_rows(why: Explanation, at: int) -> list[dict[str, Any]]:
    """Dict for each forecast: probability, weight, effect on class `at` and so on, the largest effect first."""
    binary = why.probability.ndim == 0

    def value(field: _Field, i: int) -> float | str | None:
        values = getattr(why, field.attribute)[i]
        if isinstance(values, str):
            return values or None
        if field.key in _ONE:
            return finite(float(values))
        if field.key in {"probability", "without"}:
            return of_class(values, at)
        if binary:
            return float(values) if at else -float(values)
        return float(values[at])

    fields = _fields(why)
    return [
        {"part": "expert", "name": why.experts[i]} | {field.key: value(field, i) for field in fields}
        for i in by_effect(why)
    ]


def forecast_columns(why: Explanation, at: int, titles: dict[str, str], most: int | None = None) -> list[Column]:
    """Columns for a page of the first `most` rows of `forecast_rows`; `titles` has a title for each column wanted."""
    rows = forecast_rows(why, at)[:most]
    shows = {field.key: field.show for field in _fields(why)} | {"probability": brief, "without": brief}
    return [
        Column(key, [row[key] for row in rows], title, str if key == "name" else shows[key])
        for key, title in titles.items()
        if key == "name" or key in shows
    ]


def _sum_rows(why: Explanation, at: int | None) -> list[dict[str, Any]]:
    """Return dicts of the terms (prior, experts, ...) whose sum is the answer about class `at`, and of the sum."""

    def row(part: str, adds: Array, probability: Array | None = None, name: str = "") -> dict[str, Any]:
        def of(values: Array) -> float:
            return float(values if at is None else values[at])

        shown = {} if probability is None else {"probability": of(probability)}
        return {"part": part, "name": name or part, "adds": of(adds)} | shown

    rows = []
    if why.scale == "log-odds" or not why.experts:
        rows.append(row("prior", why.start, why.prior))
    if np.any(why.intercept != 0):
        rows.append(row("intercept", why.intercept))
    rows += forecast_rows(why, 1 if at is None else at)
    if why.topic_shift is not None:
        rows.append(row("topic", why.topic_shift, name=f"topic {why.topic}"))
    if np.any(why.shift != 0):
        rows.append(row("base rate", why.shift))
    if why.members_shift is not None:
        rows.append(row("members", why.members_shift, name=f"average and single experts ({why.members_share:.0%})"))
    return [*rows, row("pooled", why.total, why.probability)]


def explanation_columns(why: Explanation) -> list[Column]:
    """Return columns with a row for each term of the sum that gives the answer; if K > 2, for each class in turn."""
    several = why.probability.ndim == 1
    sums = [_sum_rows(why, at) for at in (range(len(why.classes)) if several else (None,))]
    rows = [row for each in sums for row in each]

    def column(key: str) -> list[Any]:
        return [row.get(key) for row in rows]

    experts = [row["name"] if row["part"] == "expert" else None for row in rows]
    columns = [Column("part", column("part"), "", table=column("name")), Column("expert", experts, None)]
    for field in _fields(why):
        title = "share" if field.key == "weight" and why.scale != "log-odds" else field.title
        columns.append(Column(field.key, column(field.key), title, field.show, spare=field.spare))
    if several:
        labels = [(plain(label), i) for label, each in zip(why.classes, sums, strict=True) for i in range(len(each))]
        once = [label if i == 0 else None for label, i in labels]
        columns.insert(0, Column("class", [label for label, _ in labels], "class", table=once))
    return columns


def explanation_records(why: Explanation) -> Iterator[dict[str, object]]:
    """Return a record for JSON for each expert with a forecast, the largest effect on the answer first."""
    for i in by_effect(why):
        record: dict[str, object] = {"expert": why.experts[i]}
        for field in _FIELDS:
            values = getattr(why, field.attribute)
            if values is None and field.key in {"age", "level"}:
                continue
            one = None if values is None else values[i]
            if isinstance(one, str):
                record[field.key] = one or None
                continue
            record[field.key] = finite(float(one)) if one is not None and field.key in _ONE else by_class(why, one)
        yield record


def explanation_facts(why: Explanation) -> dict[str, object]:
    """Facts on an answer for JSON, without its forecasts: probability, interval, prior, intercept and shifts."""
    low, high = why.interval or (None, None)
    names = ("probability", "start", "intercept", "topic_shift", "shift", "members_shift", "total")
    parts = {"prior_probability": why.prior} | {key: getattr(why, key) for key in names}
    own = {key: getattr(why, key) for key in ("event", "scale", "level", "topic", "members_share")}
    return own | {"low": low, "high": high} | {key: by_class(why, value) for key, value in parts.items()}


def by_class(why: Explanation, value: Array | None) -> object:
    """Return `value` for JSON: a number as it is, an array as a dict by class label, and None as None."""
    if value is None or np.ndim(value) == 0:
        return None if value is None else float(value)
    return {str(label): float(x) for label, x in zip(why.classes, value, strict=True)}


def most_moved(why: Explanation, at: int | None = None) -> tuple[int, int] | None:
    """Positions of the expert who moves the log-odds most, and of the class (`at`, if given); None if nobody does."""
    if not why.experts:
        return None
    moved = np.abs(logit(why.without.reshape(len(why.experts), -1)) - logit(np.atleast_1d(why.probability)))
    if at is not None and moved.shape[1] > 1:
        moved = np.where(np.arange(moved.shape[1]) == at, moved, 0.0)
    i, where = (int(x) for x in np.unravel_index(moved.argmax(), moved.shape))
    return (i, where) if moved[i, where] > 0 else None


def explanation_lines(why: Explanation) -> list[str]:
    """Return sentences with the answer and the expert whose forecast changes it most."""
    name = "the answer" if why.event is None else printable(why.event)
    plain_event = why.probability.ndim == 0 and why.classes[1] in (1, True, "1")
    labels = ["" if plain_event else f"{printable(str(label))} " for label in why.classes]
    labels = labels if why.probability.ndim else labels[1:]
    answer = np.atleast_1d(why.probability).tolist()
    text = ", ".join(f"{label}{percent(p)}" for label, p in zip(labels, answer, strict=True))
    if why.interval is not None:
        low, high = map(percent, why.interval)
        text += f" ({why.level:.0%} credible interval {low} to {high})"
    most = most_moved(why)
    if most is None:
        return [f"{name}: {text}"]
    without = why.without.reshape(len(why.experts), -1)[most]
    changed = f"{printable(why.experts[most[0]])} matters most: without it, {labels[most[1]]}{percent(float(without))}"
    return [f"{name}: {text}", changed]


# Rows that a table shows at once, and that it holds at most; open events that are explained, and shown as cards.
FIRST, MOST = 25, 500
EXPLAINED, CARDS = 5, 3
NAMED = 6
ORDERS = {
    "probability": "with the most probable first",
    "interval": "with the least certain first",
    "disagreement": "with those first on which the experts disagree most",
    "event": "by name",
    "file": "in the order of the file",
    "closes": "with the first to close first",
}


def answers_section(f: ReportData, verdict: Sequence[str] = ()) -> Section:
    """Return the section with the answers about open events, after `verdict`, sentences on the pool's score."""
    title = "The answers"
    rows = f.open_rows
    if not rows:
        blank = int((~f.forecasts.resolved).sum())
        why = f"{counted(blank, 'event')} {are(blank)} open, and nobody forecast one"
        return Section(
            "open", title, [missing(why if blank else "every event is resolved, so none is left to forecast")]
        )
    parts: list[Block] = [_lead(f, rows)]
    parts += [words(*verdict)] if verdict else []
    if f.binary and len(rows) <= CARDS:
        parts += [legend(_marks(f)), cards([_card(f, t) for t in rows])]
    else:
        parts += _tables(f, rows)
    parts += _interval_note(f)
    unanswered = np.flatnonzero(~f.forecasts.resolved & (f.forecasts.crowd == 0)).tolist()
    if unanswered:
        names = listed([f.forecasts.events[t] for t in unanswered], NAMED)
        parts.append(note(f"Without a forecast, and so with no answer but the prior: {names}."))
    return Section("open", title, parts)


def _lead(f: ReportData, rows: Sequence[int]) -> Html:
    event, total = about(f.forecasts), len(f.forecasts.events)
    start = f"{whole(len(rows))} of {counted(total, 'event')} {are(len(rows))} open."
    what = "class" if f.forecasts.options is None else "option"
    of = f"of {event}" if event else "that the event happens"
    answer = f"The answer is the probability {of}." if f.binary else f"The answer is a probability for each {what}."
    return words(start, answer, f"Events are listed {ORDERS[f.options.sort]}." if len(rows) > 1 else "")


def _interval_note(f: ReportData) -> list[Block]:
    """Note on what the answers' intervals mean, and how often they contain the truth; empty without intervals."""
    if f.pooled.interval is None:
        return []
    measured = coverage_words(int(f.forecasts.resolved.sum()), len(f.forecasts.experts))
    signs = 0 if isinstance(f.checks, Missing) else sum(check.serious for check in f.checks)
    checked = f"; there {are(signs)} {counted(signs, 'sign')} of that" if signs else ""
    meaning = (
        "How much each expert should count is known only roughly; the 90% interval says how roughly. It leaves out the "
        f"risk that the method itself does not suit these forecasts{checked} (see Checks). {sentence(measured)}"
    )
    return [note(meaning)]


def event_forecasts(f: ReportData, t: int) -> Array:
    """Return the forecasts on event `t`, (n,), or (n, K) if there are more than two classes."""
    low, high = np.searchsorted(f.forecasts.event_index, [t, t + 1])
    return f.forecasts.probabilities[low:high]


def _card(f: ReportData, t: int) -> Card:
    """Return a card with the answer on event `t`, its interval and the experts' forecasts."""
    p, a, b = (finite(float(share[t, 1])) for share in f.pooled.shares())
    assert p is not None
    given = event_forecasts(f, t)
    between = "" if a is None or b is None else f"90% interval {brief(a)} to {brief(b)}"
    experts = f"the one expert says {brief(float(given[0]))}"
    if len(given) > 1:
        least, most, mean = brief(float(given.min())), brief(float(given.max())), brief(float(given.mean()))
        experts = f"{len(given)} experts say {least} to {most}, on average {mean}"
    closes, topic = closing_times(f.forecasts)[t], "" if f.forecasts.topics is None else f.forecasts.topics[t]
    lines = [between, experts]
    if closes:
        lines.append(f"closes {plain_time(closes)}")
    if topic:
        lines.append(f"topic {topic}")
    return Card(f.event_name(t), brief(p), lines, interval_bar(p, a, b, given.tolist()), own=True)


def _marks(f: ReportData) -> list[tuple[str, str]]:
    """Return legend entries for the marks in the small charts of answers."""
    known = f.pooled.interval is not None
    return [
        ("expert", "one expert’s forecast"),
        ("interval", "the answer and its 90% interval") if known else ("dot", "the answer"),
    ]


def _tables(f: ReportData, rows: Sequence[int]) -> list[Block]:
    # A table is as long with more classes, so it has fewer events.
    classes = 1 if f.binary else len(f.forecasts.classes)
    first, most = max(FIRST * 2 // (classes + 1), 5), max(MOST * 2 // (classes + 1), 5)
    parts: list[Block] = [legend(_marks(f)), event_table(f, rows[:first])]
    if len(rows) > first:
        more = rows[first : first + most]
        parts.append(details(f"The next {counted(len(more), 'open event')}", [event_table(f, more)]))
        left = len(rows) - first - len(more)
        out = f"{whole(left)} are left out of this page; " if left else ""
        phrase = (
            "The first {} stand in the table. {}<code>opinionpool pool FILE -o pooled.csv</code> writes the answers "
            "about all {}."
        )
        parts.append(note(markup(phrase, whole(first), out, counted(len(f.forecasts.events), "event"))))
    return parts


def event_table(f: ReportData, rows: Sequence[int]) -> Table:
    """Return a table with a row for each event, or for each of its classes or options."""
    pooled, forecasts = f.pooled.select(rows), f.forecasts
    own = {column.key: column for column in event_columns(pooled, only_open=True)}
    at, places = (each.tolist() for each in pooled.listed())
    says = [event_forecasts(f, rows[t]).reshape(crowd, -1) for t, crowd in enumerate(pooled.forecasts.crowd.tolist())]
    given = [says[t][:, -1 if f.binary else i] for t, i in zip(at, places, strict=True)]
    p = own["probability"].values
    ends = [own[key].values if key in own else [None] * len(p) for key in ("low", "high")]
    shares = list(zip(p, *ends, strict=True))
    pictures = [interval_bar(q, low, high, each.tolist()) for (q, low, high), each in zip(shares, given, strict=True)]
    between = [None if low is None else f"{brief(low)} to {brief(high)}" for _, low, high in shares]
    first = [f.binary or place == 0 for place in places]

    def once(key: str, values: Sequence[Any], title: str | None, **shown: Any) -> Column:  # noqa: ANN401
        return Column(key, [values[t] if head else None for t, head in zip(at, first, strict=True)], title, **shown)

    topics = None if forecasts.topics is None else [forecasts.topics[t] or None for t in rows]
    columns = [
        once("event", [f.event_name(t) for t in rows], "event"),
        *([own["class"]] if "class" in own else []),
        *([once("topic", topics, "topic")] if topics else []),
        *([own["closes"]] if "closes" in own else []),
        Column("picture", pictures, "0% to 100%"),
        Column("answer", p, "answer", brief, page=lambda share: markup("<b>{}</b>", brief(share))),
        Column("between", between, "90% interval" if "low" in own else None, as_is),
        replace(own["experts"], spare=0),
        Column("average", [float(q.mean()) for q in given], "their average" if f.binary else None, brief),
    ]
    return Table(columns, kind="stack" if f.binary else "stack grouped")


def explanation_section(f: ReportData) -> Section | None:
    """Return the section that explains the answers on open events; None if there is no answer, or too many."""
    rows = f.open_rows
    if not 0 < len(rows) <= EXPLAINED:
        return None
    try:
        whys = [explain_event(f.forecasts, t, f.state, prior=f.fit.prior) for t in rows]
    except OpinionPoolError as error:
        return Section("why", "Why", [missing(str(error))])
    parts = _explained(f, rows[0], whys[0])
    parts += [
        details(f"Why: {f.question(t)}", _explained(f, t, why)) for t, why in zip(rows[1:], whys[1:], strict=True)
    ]
    return Section("why", "Why" if len(rows) == 1 else f"Why: {f.question(rows[0])}", parts)


def _explained(f: ReportData, t: int, why: Explanation) -> list[Block]:
    at = 1 if why.probability.ndim == 0 else int(np.argmax(why.probability))
    label = "" if f.binary and about(f.forecasts) is None else f" of {why.classes[at]}"
    texts: list[Block] = [words(*_in_words(f, why, at, label)), *(note(sentence(each.text)) for each in why.notes)]
    if why.scale != "log-odds" or not why.experts:
        return [*texts, *_contributions(f, why, at)]
    intercept = ""
    if np.any(why.intercept != 0):
        intercept = (
            " The intercept does not depend on what the experts say, only on which of them gave a forecast: it "
            "corrects answers that would otherwise be too high or too low on average."
        )
    caption = (
        f"From the prior to the answer{label}: what each forecast adds, summed up from top to bottom with the weights "
        "of the table below, in percentage points. The scale is stretched near 0% and 100%, as from 98% to 99% takes "
        f"as much evidence as from 50% to 67%.{intercept}"
    )
    drawn = waterfall(why, at, f"Probability{label} for {f.question(t)}", why.interval)
    return [beside(texts, figure(drawn, caption)), *_contributions(f, why, at)]


def _in_words(f: ReportData, why: Explanation, at: int, label: str) -> list[Html]:
    p, prior = of_class(why.probability, at), of_class(why.prior, at)
    texts = [markup("The answer is a probability{} of {}{}.", label, brief(p), _beyond(f, why, at, p))]
    if why.scale == "log-odds":
        source = "as given" if f.given or f.own_priors is not None else "nothing is known of it"
        if f.measured and source != "as given":
            what = "resolved events that happened" if f.binary else "resolved events with this outcome"
            source = f"about the share of {what}"
        texts.append(markup("Without any forecast it would be {} (the prior: {}).", brief(prior), source))
    most = most_moved(why, at)
    if most is not None:
        others = "" if len(why.experts) == 1 else ", with more weight on the others"
        without = brief(of_class(why.without[most[0]], at))
        phrase = "The forecast of <b>{}</b> matters most: without it the answer would be {}{}."
        texts.append(markup(phrase, name(why.experts[most[0]]), without, others))
    absent = [expert for expert in f.forecasts.experts if expert not in why.experts]
    if absent and len(absent) <= NAMED:
        who = joined((markup("<b>{}</b>", name(each)) for each in absent), ", ")
        texts.append(markup("{} gave no forecast, so the others count for more.", who))
    return texts


def _beyond(f: ReportData, why: Explanation, at: int, p: float) -> str:
    """Clause on why answer `p` (class `at`) lies above or below all forecasts; empty if it lies between two."""
    given = [of_class(q, at) for q in why.probabilities]
    if len(given) < 2 or min(given) <= p <= max(given) or why.scale != "log-odds":
        return ""
    above = p > max(given)
    towards = above == (of_class(why.prior, at) > max(given))
    reason = "the experts are estimated to have partly different information, so that together they say more than each"
    if towards:
        reason = "closer to the prior, as the forecasts go further than they are worth"
    elif f.pool == DEFAULT and f.timid:
        reason = (
            "judged by the outcomes, the experts were too cautious, and they are estimated to have partly different "
            "information"
        )
    where = "above" if above else "below"
    return f", {where} every single forecast ({brief(min(given))} to {brief(max(given))}): {reason}"


def _contributions(f: ReportData, why: Explanation, at: int) -> list[Block]:
    """Table of an event's forecasts, with weights and the answer (on class `at`) without each forecast; then a note."""
    if not why.experts:
        return []
    titles = {"name": "expert", "probability": "forecast", "weight": "weight", "without": "answer without it"}
    shown = Table(forecast_columns(why, at, titles, FIRST), kind="stack")
    if len(why.experts) == 1 or why.event != f.forecasts.events[f.open_rows[0]]:
        return [shown]
    phrase = (
        "Where a forecast is left out, the others count for more. So leaving it out can change the answer by less than "
        "it adds, or even in the other direction."
    )
    if why.weights is not None and len(why.experts) < len(f.forecasts.experts):
        phrase = f"Weights are among those who gave a forecast here. {phrase}"
    return [shown, note(phrase)]
