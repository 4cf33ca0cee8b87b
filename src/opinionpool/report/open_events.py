"""The first part of the report: the answers about open events, and why the first of them is what it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opinionpool.analysis.explanation import Explanation, explain_event
from opinionpool.analysis.steps import by_effect, of_class
from opinionpool.arrays import Array
from opinionpool.errors import OpinionPoolError
from opinionpool.report.answers import about, signed
from opinionpool.report.charts import interval_bar, legend
from opinionpool.report.findings import Findings, Missing
from opinionpool.report.html import Html, columns, folded, joined, markup, missing, name, section, sentence, table
from opinionpool.report.listing import whole
from opinionpool.report.waterfall import brief, waterfall
from opinionpool.scoring.comparison import DEFAULT
from opinionpool.text import counted, listed

# Rows that a table shows at once, and that it holds at most; open events that are explained, and shown as cards.
FIRST, MOST = 25, 500
EXPLAINED, CARDS = 5, 3
NAMED = 6


def answers_section(f: Findings) -> Html:
    """The answers about events that are not resolved."""
    title = "The answers"
    rows, total = f.open_rows, len(f.forecasts.events)
    if not rows:
        unresolved = int((~f.forecasts.resolved).sum())
        if unresolved:
            why = f"{counted(unresolved, 'event')} {'is' if unresolved == 1 else 'are'} open, and nobody forecast one"
            return section("open", title, missing("", why))
        phrase = {1: "The only event is", 2: "Both events are"}.get(total, f"All {counted(total, 'event')} are")
        return section("open", title, missing("", f"{phrase} resolved, so none is left to forecast"))
    parts = [markup("<p>{}</p>", _lead(f, rows))]
    if f.binary and len(rows) <= CARDS:
        parts.append(legend(_marks(f)))
        parts.append(markup('<ul class="cards">{}</ul>', joined(_card(f, t) for t in rows)))
    else:
        parts += _tables(f, rows)
    unanswered = np.flatnonzero(~f.forecasts.resolved & (f.forecasts.crowd == 0)).tolist()
    if unanswered:
        names = listed([f.forecasts.events[t] for t in unanswered], NAMED)
        verb = "has" if len(unanswered) == 1 else "have"
        parts.append(markup('<p class="note">{} {} no forecast, and so no answer but the prior.</p>', names, verb))
    return section("open", title, *parts)


def _lead(f: Findings, rows: Sequence[int]) -> str:
    event, total = about(f.forecasts), len(f.forecasts.events)
    verb = "is" if len(rows) == 1 else "are"
    words = f"{whole(len(rows))} of {counted(total, 'event')} {verb} open."
    if len(rows) == total:
        words = {1: "The event is open.", 2: "Both events are open."}.get(total, f"All {whole(total)} events are open.")
    if not f.binary:
        words += f" The answer is a probability for each {'class' if f.forecasts.options is None else 'option'}"
        words += "."
    else:
        of = f"of {event}" if event else "that the event happens"
        words += f" The answer is the probability {of}"
        words += "."
    if f.pooled.interval is not None:
        words += (
            " How much each expert should count is known only roughly. If it were known exactly, the answer would lie "
            "in the 90% interval beside it with 90% probability (a credible interval). The interval leaves out the "
            f"risk that the method itself does not suit these forecasts{_checked(f)}."
        )
    order = {
        "probability": "with the most probable first",
        "interval": "with the least certain first",
        "disagreement": "with those first on which the experts disagree most",
        "event": "by name",
        "file": "in the order of the file",
        "closes": "with the first to close first",
    }[f.sort]
    return words + (f" Events are listed {order}." if len(rows) > 1 else "")


def _checked(f: Findings) -> str:
    """What the checks of the method found, in a few words."""
    if isinstance(f.checks, Missing):
        return ", which could not be checked"
    serious = sum(check.serious for check in f.checks)
    made = sum(check.serious or check.statistic is not None for check in f.checks)
    if not made:
        return ", for which there is too little to check"
    if serious:
        return f"; there {'is' if serious == 1 else 'are'} {counted(serious, 'sign')} of that, see Checks"
    idle = len(f.checks) - made
    left = f"; {whole(idle)} could not be made" if idle else ""
    return f"; {counted(made, 'check')} found no sign of that, though few events would only show serious problems{left}"


def event_forecasts(f: Findings, t: int) -> Array:
    """What experts gave for one event, (n,), or (n, K) where there are more than two classes."""
    low, high = np.searchsorted(f.forecasts.event_index, [t, t + 1])
    return f.forecasts.probabilities[low:high]


def _card(f: Findings, t: int) -> Html:
    """One answer, large, beside what the experts say."""
    low, high = f.pooled.ends()
    p, a, b = float(f.pooled.probabilities[t]), low[t], high[t]
    given = event_forecasts(f, t)
    between = "" if a is None or b is None else f"90% interval {brief(a)} to {brief(b)}"
    if len(given) == 1:
        experts = f"the one expert says {brief(float(given[0]))}"
    else:
        experts = (
            f"{len(given)} experts say {brief(float(given.min()))} to {brief(float(given.max()))}, on average "
            f"{brief(float(given.mean()))}"
        )
    return markup(
        '<li class="own"><span>{}</span><b>{}</b>{}<span class="quiet">{}</span><span class="quiet">{}</span></li>',
        f.event_name(t), brief(p), interval_bar(p, a, b, given.tolist()), between, experts,
    )  # fmt: skip


def _marks(f: Findings) -> list[tuple[str, str]]:
    """What the pictures of answers are made of."""
    known = f.pooled.interval is not None
    return [
        ("expert", "one expert’s forecast"),
        ("interval", "the answer and its 90% interval") if known else ("dot", "the answer"),
    ]


def _tables(f: Findings, rows: Sequence[int]) -> list[Html]:
    # A table is as long with more classes, so it has fewer events.
    classes = 1 if f.binary else len(f.forecasts.classes)
    first, most = max(FIRST * 2 // (classes + 1), 5), max(MOST * 2 // (classes + 1), 5)
    parts = [legend(_marks(f)), event_table(f, rows[:first])]
    if len(rows) > first:
        more = rows[first : first + most]
        parts.append(folded(f"The next {counted(len(more), 'open event')}", event_table(f, more)))
        left = len(rows) - first - len(more)
        out = f"{whole(left)} are left out of this page; " if left else ""
        parts.append(
            markup(
                '<p class="note">The first {} stand in the table. {}<code>opinionpool pool FILE -o pooled.csv</code> '
                "writes the answers about all {}.</p>",
                whole(first), out, counted(len(f.forecasts.events), "event"),
            )
        )  # fmt: skip
    return parts


def event_table(f: Findings, rows: Sequence[int]) -> Html:
    """A row for each event, or for each of its classes or options."""
    if not f.binary:
        return _class_table(f, rows)
    crowd = f.forecasts.crowd.tolist()
    low, high = f.pooled.ends()
    known = f.pooled.interval is not None
    lines: list[list[str]] = []
    for t in rows:
        p, a, b, given = float(f.pooled.probabilities[t]), low[t], high[t], event_forecasts(f, t)
        between = [_range(a, b)] if known else []
        bar = interval_bar(p, a, b, given.tolist())
        answer = markup("<b>{}</b>", brief(p))
        lines.append([f.event_name(t), bar, answer, *between, whole(crowd[t]), brief(float(given.mean()))])
    header = ["event", "0% to 100%", "answer", *(["90% interval"] if known else []), "experts", "their average"]
    return table(header, lines, numbers=[False, False, *[True] * (len(header) - 2)], kind="stack")


def _class_table(f: Findings, rows: Sequence[int]) -> Html:
    forecasts, crowd = f.forecasts, f.forecasts.crowd.tolist()
    low, high = f.pooled.class_ends()
    p = f.options_of(f.pooled.probabilities).tolist()
    known = f.pooled.interval is not None
    lines: list[list[str]] = []
    for t in rows:
        given = event_forecasts(f, t)
        labels = forecasts.classes if forecasts.options is None else forecasts.options[t]
        for place, label in enumerate(labels):
            first = [f.event_name(t), whole(crowd[t])] if place == 0 else ["", ""]
            share, a, b = p[t][place], low[t][place], high[t][place]
            between = [_range(a, b)] if known else []
            answer = markup("<b>{}</b>", brief(share))
            lines.append(
                [
                    first[0],
                    name(str(label)),
                    interval_bar(share, a, b, given[..., place].tolist()),
                    answer,
                    *between,
                    first[1],
                ]
            )
    what = "class" if forecasts.options is None else "option"
    header = ["event", what, "0% to 100%", "answer", *(["90% interval"] if known else []), "experts"]
    return table(header, lines, numbers=[False] * 3 + [True] * (len(header) - 3), kind="stack grouped")


def _range(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{brief(low)} to {brief(high)}"


def explanation_section(f: Findings) -> Html | None:
    """Why the first answers are what they are; None where there are too many to explain, or none."""
    rows = f.open_rows
    if not 0 < len(rows) <= EXPLAINED:
        return None
    try:
        whys = [explain_event(f.forecasts, t, f.state, prior=f.prior) for t in rows]
    except OpinionPoolError as error:
        return section("why", "Why", missing("", str(error)))
    parts = [_explained(f, rows[0], whys[0])]
    parts += [folded(f"Why: {f.question(t)}", _explained(f, t, why)) for t, why in zip(rows[1:], whys[1:], strict=True)]
    return section("why", "Why" if len(rows) == 1 else f"Why: {f.question(rows[0])}", *parts)


def _explained(f: Findings, t: int, why: Explanation) -> Html:
    at = 1 if why.probability.ndim == 0 else int(np.argmax(why.probability))
    label = "" if f.binary and about(f.forecasts) is None else f" of {why.classes[at]}"
    words = [markup("<p>{}</p>", joined(_in_words(f, why, at, label), " "))]
    words += [markup('<p class="note">{}</p>', sentence(note.text)) for note in why.notes]
    if why.scale != "log-odds" or len(why.experts) == 0:
        return joined([*words, _contributions(f, why, at)], "\n")
    intercept = ""
    if np.any(why.intercept != 0):
        intercept = (
            " The intercept does not depend on what the experts say, only on which of them gave a forecast: it "
            "corrects answers that would otherwise be too high or too low on average."
        )
    figure = markup(
        "<figure>{}<figcaption>From the prior to the answer{}: what each forecast adds, summed up from top to bottom "
        "with the weights of the table below, in percentage points. The scale is stretched near 0% and 100% "
        "(log-odds), as from 98% to 99% takes as much evidence as from 50% to 67%.{}</figcaption></figure>",
        waterfall(why, at, f"Probability{label} for {f.question(t)}", why.interval), label, intercept,
    )  # fmt: skip
    return joined([columns(words, figure), _contributions(f, why, at)], "\n")


def _in_words(f: Findings, why: Explanation, at: int, label: str) -> list[Html]:
    p, prior = of_class(why.probability, at), of_class(why.prior, at)
    words = [markup("The answer is a probability{} of {}{}.", label, brief(p), _beyond(f, why, at, p))]
    if why.scale == "log-odds":
        source = "as given" if f.given or f.own_priors is not None else "nothing is known of it"
        if f.measured and source != "as given":
            what = "resolved events that happened" if f.binary else "resolved events with this outcome"
            source = f"about the share of {what}"
        words.append(markup("Without any forecast it would be {} (the prior: {}).", brief(prior), source))
    if why.experts:
        without = np.array([of_class(q, at) for q in why.without])
        moved = np.abs(np.log(without / (1.0 - without)) - np.log(p / (1.0 - p)))
        i = int(moved.argmax())
        if moved[i] > 0:
            others = "" if len(why.experts) == 1 else ", with more weight on the others"
            words.append(
                markup("The forecast of <b>{}</b> matters most: without it the answer would be {}{}.",
                       name(why.experts[i]), brief(float(without[i])), others)
            )  # fmt: skip
    absent = [expert for expert in f.forecasts.experts if expert not in why.experts]
    if absent and len(absent) <= NAMED:
        who = joined((markup("<b>{}</b>", name(each)) for each in absent), ", ")
        words.append(markup("{} gave no forecast, so the others count for more.", who))
    return words


def _beyond(f: Findings, why: Explanation, at: int, p: float) -> str:
    """Why the answer is more extreme than every forecast, if it is."""
    given = [of_class(q, at) for q in why.probabilities]
    if len(given) < 2 or min(given) <= p <= max(given) or why.scale != "log-odds":
        return ""
    above = p > max(given)
    features = f.learned.panel if f.learned.marginal is None else f.learned.marginal
    towards = above == (of_class(why.prior, at) > max(given))
    if towards:
        reason = "closer to the prior, as the forecasts go further than they are worth"
    elif f.pool == DEFAULT and float(np.mean(features.calibration)) > 1.05:
        reason = (
            "judged by the outcomes, the experts were too cautious (their calibration is above 1), and they are "
            "estimated to have partly different information"
        )
    else:
        reason = (
            "the experts are estimated to have partly different information, so that together they say more than each"
        )
    where = "above" if above else "below"
    return f", {where} every single forecast ({brief(min(given))} to {brief(max(given))}): {reason}"


def _contributions(f: Findings, why: Explanation, at: int) -> Html:
    usual = None if f.state.weights is None else dict(zip(f.state.experts, f.state.weights.tolist(), strict=True))
    lines = []
    for i in by_effect(why)[:FIRST]:
        weight = []
        if why.weights is not None:
            here = f"{float(why.weights[i]):.2f}"
            often = "" if usual is None else f"{usual[why.experts[i]]:.2f}"
            weight = [here if often in {"", here} else f"{here} ({often})"]
        adds = why.contributions[i] if why.contributions.ndim == 1 else why.contributions[i, at]
        adds = -adds if why.contributions.ndim == 1 and at == 0 else adds
        lines.append(
            [
                name(why.experts[i]), brief(of_class(why.probabilities[i], at)), *weight, signed(float(adds)),
                brief(of_class(why.without[i], at)),
            ]
        )  # fmt: skip
    unit = "adds (log-odds)" if why.scale == "log-odds" else "adds"
    weight = (
        [] if why.weights is None else ["weight here (usual)" if any("(" in line[2] for line in lines) else "weight"]
    )
    header = ["expert", "forecast", *weight, unit, "answer without this forecast"]
    shown = table(header, lines, numbers=[False, *[True] * (len(header) - 1)], kind="stack")
    note = (
        "Where a forecast is left out, the others count for more. So leaving it out can change the answer by less than "
        "it adds, or even in the other direction."
    )
    if unit != "adds":
        note = (
            "Adds: weight times the distance of the forecast from the prior, in log-odds (the stretched scale of the "
            "chart, so not percentage points), after correction for the expert’s habit of forecasting too high or "
            f"too low (bias); large distances are made somewhat smaller. {note}"
        )
    if weight and "(" in weight[0]:
        note = f"Weight: among those who gave a forecast here; in brackets, when all do. {note}"
    first = why.event == f.forecasts.events[f.open_rows[0]]
    return joined([shown, markup('<p class="note">{}</p>', note)], "\n") if len(lines) > 1 and first else shown
