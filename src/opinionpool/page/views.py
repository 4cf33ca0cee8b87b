"""Views of the page and its report: the answer, its reasons and sensitivity, the decision, and the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from opinionpool.analysis.sensitivity import Effect
from opinionpool.analysis.value import expected_auc
from opinionpool.errors import OpinionPoolError
from opinionpool.learning.constants import CORRELATION
from opinionpool.page import answer as answers
from opinionpool.page.answer import Answer
from opinionpool.page.assessment import UNITS, Assessment, Expert
from opinionpool.page.panel import accuracy_words, attributes, button, choice, field, helped, slider
from opinionpool.page.session import VIEWS, PageInputs
from opinionpool.report.answers import Pooled
from opinionpool.report.blocks import (
    Block,
    Html,
    Table,
    details,
    event_name,
    figure,
    grid,
    joined,
    markup,
    missing,
    name,
    note,
    paragraph,
    rendered,
    sentence,
)
from opinionpool.report.charts import Mark, effect_name, legend, share_bar, strip, tornado, waterfall
from opinionpool.report.explanation import forecast_columns
from opinionpool.report.listing import brief, decimal, percent, printable, whole
from opinionpool.report.panel import belief_worth, effect_columns
from opinionpool.report.view import levels_words, ranked
from opinionpool.text import counted

# Largest numbers of contributions listed, and of events that a list shows at once.
ROWS, PAGE = 60, 50
# Number of notes that are not folded.
NOTES = 2
ORDERS = {
    "file": "as in the file",
    "high": "most likely first",
    "low": "least likely first",
    "open": "open ones first",
    "few": "fewest forecasts first",
    "name": "by name",
}


def top(inputs: PageInputs) -> Html:
    """Return the top of the page: the event's question, undo and redo, and buttons of the views."""
    a, f = inputs.a, inputs.data.forecasts
    if f is None:
        question = markup(
            '<h1>{}<textarea rows="1"{}>{}</textarea></h1>',
            Html('<label class="unseen" for="question">Question</label>'),
            attributes(id="question", data_do="question", maxlength=200, spellcheck="false"),
            a.question,
        )
    else:
        question = markup("<h1>{}</h1>", event_name(a.question, inputs.question))
    steps = joined(
        [
            button("Undo", "undo", id="undo", disabled=not inputs.undo, aria_keyshortcuts="Control+Z"),
            button("Redo", "redo", id="redo", disabled=not inputs.redo, aria_keyshortcuts="Control+Shift+Z"),
        ]
    )
    shown = ((view, "page" if inputs.look.view == view else None) for view in inputs.views)
    links = joined(
        markup("<li>{}</li>", button(VIEWS[view], "view", id=f"view-{view}", data_value=view, aria_current=current))
        for view, current in shown
    )
    # The answer in one line stays in sight on narrow screens.
    now = markup('<p class="now"><a href="#answer">No answer yet</a></p>')
    if inputs.shown is not None:
        p, ends = inputs.shown
        between = "" if ends is None else markup(" <span>{} to {}</span>", *ends)
        now = markup('<p class="now"><a href="#answer"><b>{}</b>{}</a></p>', p, between)
    return markup(
        '<div class="title">{}<div class="history">{}</div></div><nav aria-label="Views"><ul>{}</ul></nav>{}',
        question, steps, links, now,
    )  # fmt: skip


def live(inputs: PageInputs) -> str:
    """Return the answer as a text that screen readers speak after each action."""
    if inputs.shown is None:
        return inputs.trouble
    p, ends = inputs.shown
    between = "" if ends is None else f", between {ends[0]} and {ends[1]}"
    return f"{'The answer' if inputs.a.binary else printable(str(inputs.a.classes[inputs.at]))}: {p}{between}"


def trouble(inputs: PageInputs) -> Html:
    """Return the reason why the last action was not done; empty if it was done."""
    return paragraph(sentence(inputs.trouble)) if inputs.trouble else Html("")


def answer(inputs: PageInputs) -> Html:
    """Return the part of the page that shows the answer: chart, reasons and notes."""
    heading = markup("<h2>Answer</h2>")
    if inputs.found is None:
        return rendered([heading, missing(inputs.trouble or "there is no answer yet")])
    chosen: list[Block] = []
    if not inputs.a.binary:
        options = [(str(i), printable(str(label))) for i, label in enumerate(inputs.a.classes)]
        chosen = [choice("about", "Figures are about", options, str(inputs.at))]
    parts = [*headline(inputs, inputs.found), *chosen, *beside(inputs, inputs.found)]
    return rendered([heading, *parts, *reasons(inputs, inputs.found), *notes(inputs, inputs.found)])


def notes(inputs: PageInputs, found: Answer) -> list[Block]:
    """Return the most important notes on the answer, and the other notes folded."""
    first, rest = ranked(found.notes, inputs.data.forecasts, NOTES)
    more = details(counted(len(rest), "more note"), [note(sentence(each.text)) for each in rest], "notes")
    return [*(note(sentence(each.text)) for each in first), *([more] if rest else [])]


def _help(inputs: PageInputs, term: str) -> Html:
    return helped(term) if inputs.helps else Html("")


def headline(inputs: PageInputs, found: Answer) -> list[Block]:
    """Blocks with the answer, its interval, and how many independent experts would be as good as the panel."""
    why, parts, shown = found.why, list[Block](), inputs.shown
    assert shown is not None
    if not inputs.a.binary:
        rows = [
            [name(str(label)), share_bar(float(x)), brief(float(x))]
            for label, x in zip(inputs.a.classes, np.atleast_1d(why.probability).tolist(), strict=True)
        ]
        parts.append(grid(["outcome", "from 0% to 100%", "probability"], rows, words=2))
    parts.append(markup('<p class="big" id="probability">{}</p>', shown[0]))
    if shown[1] is not None:
        level = markup("<span>({} interval)</span> {}", f"{why.level:.0%}", _help(inputs, "interval"))
        parts.append(paragraph(markup("{} to {} {}", *shown[1], level), "between"))
    if len(why.experts) > 1:
        words = f"{counted(len(why.experts), 'expert')}, as good as {found.effective:.1f} independent ones."
        parts.append(paragraph(markup("{} {}", words, _help(inputs, "independent")), "quiet"))
    return parts


def beside(inputs: PageInputs, found: Answer) -> list[Block]:
    """Chart of the answer, all forecasts and their averages on one line, and its legend."""
    why = found.why
    average, geometric = inputs.probability(found.average), inputs.probability(found.geometric)
    p = inputs.probability(why.probability)
    says = zip(why.experts, why.probabilities, strict=True)
    marks = [Mark("expert", inputs.probability(q), printable(who)) for who, q in says]
    marks += [
        Mark("average", average, "simple average"),
        Mark("geometric", geometric, "geometric mean of odds"),
        Mark("pool", p, "answer"),
    ]
    words = f"The answer is {percent(p)}, the simple average {percent(average)}, the geometric mean of the odds "
    both = ("average", "average", average), ("geometric", "geometric mean of odds", geometric)
    means = [(kind, markup("{} {} {}", what, brief(p), _help(inputs, kind))) for kind, what, p in both]
    entries = legend([("pool", "answer"), *means, ("expert", "each expert")])
    return [figure(strip(marks, inputs.interval, words + percent(geometric)), kind="strip"), entries]


def reasons(inputs: PageInputs, found: Answer) -> list[Block]:
    """Return the chart of steps from the prior to the answer, and the table of forecasts with their weights."""
    why, parts = found.why, list[Block]()
    if why.scale == "log-odds":
        title = "From the prior to the answer" + ("" if inputs.a.binary else f", for {inputs.event}")
        drawn = waterfall(why, inputs.at, f"Probability of {inputs.event}", inputs.interval)
        parts += [markup("<h3>{}</h3>", title), figure(drawn)]
    if why.experts:
        titles = {"name": "expert", "probability": "forecast", "weight": "weight", "without": "without it"}
        caption = markup("Each forecast, its weight {} and the answer without it", _help(inputs, "weight"))
        parts.append(Table(forecast_columns(why, inputs.at, titles, ROWS), caption))
    if inputs.data.forecasts is not None:
        levels = levels_words(inputs.data.forecasts, why.experts[:ROWS])
        parts += [paragraph(" ".join(levels), "quiet")] if levels else []
    return parts


def assessed(a: Assessment, found: Answer | None) -> list[Block]:
    """Table of the beliefs about each expert, assessed or assumed, and sentences on the beliefs about all experts."""

    def shown(value: float, assumed: bool) -> str:
        return f"{value:.2f} (assumed)" if assumed else f"{value:.2f}"

    rows = []
    for each in a.experts:
        own, taken = each.beliefs, a.features(each, a.common)
        accurate = own.absolute() or own.get("relative_accuracy") or a.everyone.absolute()
        kappa, bias = (own.get(what) or a.everyone.get(what) for what in ("calibration", "bias"))
        worths = sorted({belief_worth(belief) for belief in own.given.values()})
        cells = [shown(float(expected_auc(taken.accuracy)), not accurate), shown(taken.calibration, not kappa)]
        cells += [shown(taken.bias, not bias)] if a.binary else []
        rows.append([name(each.name), *cells, " / ".join(worths) or "–"])
    header = ["expert", "AUC", "calibration", *(["bias"] if a.binary else []), "counts as"]
    learned = found is not None and bool(found.state.counts.any())
    caption = "Assessed of each, or assumed where nobody assessed it"
    caption += "; outcomes are learned from beside it" if learned else ""
    parts: list[Block] = [replace(grid(header, rows, caption), kind="stack")] if rows else []
    correlation = a.everyone.get("correlation")
    alike = (
        f"{CORRELATION:.2f}, assumed"
        if correlation is None
        else f"{correlation.value:.2f}, assessed and counting as {belief_worth(correlation)}"
    )
    parts += [f"Correlation of the experts' errors: {alike}."] if len(a.experts) > 1 else []
    if found is not None:
        prior = " / ".join(percent(float(p)) for p in np.atleast_1d(found.why.prior))
        source = "" if a.prior is not None else ", estimated from the outcomes" if learned else ", assumed"
        parts.append(f"Prior: {prior}{source}.")
    if a.base_rate is not None:
        shares = np.array(a.base_rate) / (1.0 if a.binary else sum(a.base_rate))
        rate = " / ".join(map(percent, shares.tolist()))
        parts.append(f"Where the answer is used, the event is this frequent: {rate}.")
    return parts


RANGES = (
    "What is believed of experts varies over the range in which it lies with 90% probability, as sure as you are of "
    "it; what is assumed, over what is usual for panels. Forecasts, and a prior that was given, vary as from 50% to "
    "38% or 62%."
)


def what_if(inputs: PageInputs) -> Html:
    """Return the "What if" view: effects on the answer, the decision whether to act, and one more expert."""
    if inputs.found is None:
        return rendered([markup("<h2>What if</h2>"), missing(inputs.trouble or "there is no answer yet")])
    lead = f"Each bar shows how the answer changes when one thing varies and all else stays. {RANGES}"
    return rendered(
        [
            markup("<h2>What moves the answer most</h2>"),
            note(lead),
            Html('<div id="effects" data-later="effects"><p class="quiet">Computing …</p></div>'),
            markup("<h2>A decision</h2>"),
            *_decision(inputs, inputs.found),
            markup("<h2>One more expert</h2>"),
            *_candidate(inputs, inputs.found),
        ]
    )


def effects(inputs: PageInputs) -> list[Block]:
    """Tornado chart, sentence and table on how far each forecast or belief moves the answer."""
    if inputs.found is None:
        return []
    found = answers.effects(inputs.a, inputs.data, inputs.found, inputs.at)
    if not found:
        return [missing("nothing is assessed that could be otherwise")]
    p = inputs.probability(inputs.found.why.probability)
    threshold = inputs.a.stakes.threshold if inputs.a.binary else None
    drawn = tornado(found, p, threshold, f"Probability of {inputs.event}")
    table = details(f"All {len(found)} in numbers", [Table(effect_columns(found, p))], "effects-table")
    return [figure(drawn, kind="tornado"), _most(inputs, found, p, threshold), table]


def _most(inputs: PageInputs, found: Sequence[Effect], p: float, threshold: float | None) -> str:
    """Sentences on the forecast or belief that moves the answer most, and on those that take it across `threshold`."""
    low, high = sorted(found[0].answers)
    words = f"The answer depends most on the {printable(effect_name(found[0]))}: it goes from {brief(low)} to "
    words += f"{brief(high)}."
    if threshold is None or inputs.at != 1:
        return words
    turning = [effect for effect in found if any((q > threshold) != (p > threshold) for q in effect.answers)]
    if not turning:
        return f"{words} None of these alone would take it across {brief(threshold)}, where acting begins to pay."
    names = ", ".join(printable(effect_name(effect)) for effect in turning[:4])
    return f"{words} Any of these could take it across {brief(threshold)}, where acting begins to pay: {names}."


def _decision(inputs: PageInputs, found: Answer) -> list[Block]:
    """Fields for the cost of acting and the loss if one does not, and what to do at these costs."""
    a = inputs.a
    if not a.binary:
        return [missing("costs of acting are about two outcomes, and this event has more")]
    fields = [
        field(
            each, label, "" if value is None else f"{value:.12g}", kind="number", min=0, step="any",
            inputmode="decimal", term=each,
        )
        for each, label, value in (
            ("action", "Acting costs", a.stakes.action), ("loss", "Loss if you do not act", a.stakes.loss)
        )
    ]  # fmt: skip
    hint = "Fill in both costs to see above which probability acting pays, and how sure it is that the answer is there."
    return [markup('<div class="common">{}</div>', joined(fields)), *(decision(a, found) or [note(hint)])]


def decision(a: Assessment, found: Answer) -> list[Block]:
    """Return sentences and a table on whether to act, how certain that is, and costs; empty if a cost is unknown."""
    stake, p = answers.stake(a, found), float(np.atleast_1d(found.why.probability)[-1])
    if stake is None:
        return []
    verdict = {"act": "Act.", "wait": "Do not act.", "open": "Not clear."}[stake.verdict]
    where = "above" if p > stake.threshold else "not above"
    words = f"{brief(p)} is {where} {brief(stake.threshold)}, where acting begins to pay"
    if stake.sure is not None:
        words += f"; {_in_100(stake.sure)} of 100 of the answer's posterior lie above it"
    if stake.verdict == "open":
        words += ". The interval lies on both sides, so who knew the experts better could decide otherwise"
    acting = stake.acting < stake.waiting
    better = abs(stake.waiting - stake.acting)
    cheaper, other = ("acting", "not acting") if acting else ("not acting", "acting")
    words += f". On average {cheaper} costs {_money(better)} less than {other}."
    loss = a.stakes.loss or 0.0
    rows = [
        ["act", *(_money(stake.acting),) * 3],
        ["do not act", _money(loss), "0", _money(stake.waiting)],
    ]
    parts: list[Block] = [
        paragraph(markup("<b>{}</b> {}", verdict, words), "lead"),
        grid(["choice", "it happens", "it does not", "expected"], rows, "What each way costs"),
    ]
    if stake.decision is not None:
        d = stake.decision
        parts.append(
            f"Over many such events, deciding by the prior alone costs {_money(float(d.climatology) * loss)} each, "
            f"deciding by this panel {_money(float(d.expense) * loss)}, and with every outcome known beforehand "
            f"{_money(float(d.perfect) * loss)}. The panel is worth {_money(float(d.saving) * loss)} an event, "
            f"{float(d.value):.0%} of what perfect foresight is worth."
        )
    return parts


def _in_100(share: float) -> str:
    """Return a share as a number out of 100; near 0 or 1 as "fewer than 1" or "more than 99".

    >>> _in_100(0.873), _in_100(0.9999), _in_100(0.0001)
    ('87', 'more than 99', 'fewer than 1')
    """
    return "more than 99" if share > 0.995 else "fewer than 1" if share < 0.005 else f"{100 * share:.0f}"


def _money(x: float) -> str:
    """Return an amount of money, in the user's unit, as text with three digits or more.

    >>> _money(12.3456), _money(1234567.0), _money(0.5)
    ('12.3', '1,234,567', '0.5')
    """
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}"


def _candidate(inputs: PageInputs, found: Answer) -> list[Block]:
    """Sliders for the AUC and correlation of one more expert, and the gain expected from asking."""
    auc, alike = inputs.a.candidate.auc, inputs.a.candidate.correlation
    ends, words = (0, 0.95, 0.01), f"correlation of errors {alike:.2f}"
    good = slider("candidate_auc", "How good", auc, (*UNITS["auc"], 0.01), accuracy_words("auc", auc), term="auc")
    other = slider("candidate_correlation", "How alike the others", alike, ends, words, term="correlation")
    lead = note("What asking somebody else is worth, before anybody knows what they say.")
    return [lead, markup('<div class="common">{}{}</div>', good, other), candidate(inputs.a, found)]


def candidate(a: Assessment, found: Answer) -> Block:
    """Return the sentence on the gain expected from one more expert."""
    try:
        more = answers.one_more(a, found)
    except OpinionPoolError as error:
        return missing(str(error))
    gain = more.gain
    words = f"With it, the panel would rank {100 * more.auc:.0f} of 100 pairs correctly instead of "
    words += f"{100 * (more.auc - gain.auc):.0f}"
    words += f", and its expected log score would rise by {decimal(gain.score)}." if gain.score is not None else "."
    return words + (f" For the decision above that is worth {_money(more.saving)} an event." if more.saving else "")


def evidence(inputs: PageInputs) -> Html:
    """Return the "Evidence" view: what the outcomes in the file show of the experts, and how the pool scores."""
    assert inputs.data.forecasts is not None
    parts: list[Block] = [markup("<h2>What the outcomes say of the experts</h2>")]
    if not inputs.data.forecasts.resolved.any():
        return rendered([*parts, missing("no event of the file is resolved, so there is no evidence yet")])
    if inputs.found is not None:
        parts.append(_before_and_after(inputs, inputs.found))
    later = '<div id="findings" data-later="findings"><p class="quiet">Computing what stands below …</p></div>'
    return rendered([*parts, Html(later)])


def _before_and_after(inputs: PageInputs, found: Answer) -> Table:
    """Table of each expert's AUC, calibration and weight, as assessed and after learning from outcomes."""
    state, a = found.state, inputs.a
    before, weights = inputs.data.before(a), np.asarray(state.weights)
    own = {each.name: each for each in a.experts}
    rows = []
    for i in np.argsort(-np.abs(weights), kind="stable")[:PAGE].tolist():
        each = own.get(state.experts[i], Expert(0, state.experts[i]))
        accuracy, kappa = each.beliefs.absolute(), each.beliefs.get("calibration")
        learned: tuple[float | None, float | None] = (None, None)
        if state.marginal is not None:
            learned = _area(float(state.marginal.accuracy[i])), float(state.marginal.calibration[i])
        rows.append(
            [
                name(each.name),
                whole(float(state.counts[i])),
                _change(None if accuracy is None else _area(accuracy.value), learned[0]),
                _change(None if kappa is None else kappa.value, learned[1]),
                _change(None if before is None else float(before[i]), float(weights[i])),
            ]
        )
    caption = "As assessed → after the outcomes: each expert by itself, and its weight in the answer"
    return grid(["expert", "events", "AUC", "calibration", "weight"], rows, caption)


def _area(accuracy: float) -> float:
    return float(expected_auc(max(accuracy, 0.0)))


def _change(before: float | None, after: float | None) -> str:
    """Return a number before and after learning, as text with an arrow; a dash for None."""
    return " → ".join("–" if x is None else f"{x:.2f}" for x in (before, after))


def events(inputs: PageInputs, pooled: Pooled) -> Html:
    """Return the "Events" view: the file's events, with fields to search and order them and buttons to choose one."""
    forecasts, look = pooled.forecasts, inputs.look
    chosen = matching(pooled, look.search, look.order)
    shown = chosen[look.start : look.start + PAGE]
    binary = pooled.probabilities.ndim == 1 and forecasts.options is None
    rows = []
    for t in shown.tolist():
        event, question = forecasts.events[t], forecasts.question(t)
        current = "true" if event == inputs.a.question else None
        label = button(
            printable(question) or "(no name)", "event", id=f"event-{t}", data_value=t, class_="link",
            aria_current=current,
        )  # fmt: skip
        if question != event:
            label = markup('{} <small class="id">{}</small>', label, name(event))
        p = brief(float(pooled.probabilities[t])) if binary else _likeliest(pooled, t)
        rows.append([label, "resolved" if forecasts.resolved[t] else "open", p, whole(int(forecasts.crowd[t]))])
    words = counted(len(chosen), "event")
    words += "" if len(chosen) == len(forecasts.events) else f" of {whole(len(forecasts.events))}"
    controls = [
        field("search", "Search events", look.search, kind="search"),
        choice("order", "Order", list(ORDERS.items()), look.order),
    ]
    pages = ""
    if len(chosen) > PAGE:
        words += f", {look.start + 1} to {look.start + len(shown)} shown"
        end = look.start + PAGE
        back = button("Earlier", "start", id="earlier", data_value=max(look.start - PAGE, 0), disabled=look.start == 0)
        on = button("Later", "start", id="later", data_value=end, disabled=end >= len(chosen))
        pages = markup('<div class="pages">{}{}</div>', back, on)
    return rendered(
        [
            markup('<h2>Events</h2><div class="common">{}</div>', joined(controls)),
            markup('<p class="note" aria-live="polite">{}</p>', words),
            grid(["event", "status", "answer", "forecasts"], rows, words=2),
            Html(pages),
        ]
    )


def _likeliest(pooled: Pooled, t: int) -> str:
    """Return, as text, the most probable class of event `t` and its probability."""
    f = pooled.forecasts
    labels = f.classes if f.options is None else f.options[t]
    p = np.atleast_1d(pooled.probabilities[t])
    p = np.array([1.0 - p[0], p[0]]) if len(p) == 1 else p
    best = int(np.argmax(p[: len(labels)]))
    return f"{printable(str(labels[best]))} {brief(float(p[best]))}"


def matching(pooled: Pooled, search: str, order: str) -> np.ndarray:
    """Positions of events whose id or question has all words of `search`, sorted by `order`, a key of `ORDERS`."""
    f, words = pooled.forecasts, search.casefold().split()
    found = np.arange(len(f.events))
    if words:
        texts = f.events if not f.texts else [f"{event} {text}" for event, text in zip(f.events, f.texts, strict=True)]
        found = np.flatnonzero([all(word in text.casefold() for word in words) for text in texts])
    p = pooled.probabilities if pooled.probabilities.ndim == 1 else pooled.probabilities.max(axis=-1)
    if order == "name":
        return np.array(sorted(found.tolist(), key=lambda t: f.events[t].casefold()), dtype=np.intp)
    keys = {"high": -p, "low": p, "open": f.resolved, "few": f.crowd}
    return found[np.argsort(keys[order][found], kind="stable")] if order in keys else found


def every_class(inputs: PageInputs, found: Answer) -> list[PageInputs]:
    """Copies of `inputs`, each showing one class, the most probable first; if K = 2, only one, of the second class."""
    if inputs.a.binary:
        return [replace(inputs, look=replace(inputs.look, about=1))]
    order = np.argsort(-found.why.probability, kind="stable").tolist()
    return [replace(inputs, look=replace(inputs.look, about=i)) for i in order]
