"""The report of one assessed event: the answer, why, who assessed what, and what would change it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from opinionpool.analysis.sensitivity import Effect
from opinionpool.analysis.steps import by_effect, of_class
from opinionpool.errors import OpinionPoolError
from opinionpool.learning.beliefs import Belief
from opinionpool.page import charts, what_if
from opinionpool.page.answer import Answer, Material
from opinionpool.page.assessment import Assessment, Candidate, Expert, Stakes
from opinionpool.page.charts import Bar
from opinionpool.report.blocks import Section, Table, Text, grid
from opinionpool.report.charts import shortened
from opinionpool.report.explanation import forecast_columns
from opinionpool.report.html import STYLE, Html, document, joined, markup, name, sentence
from opinionpool.report.listing import printable
from opinionpool.report.numbers import brief, decimal, percent
from opinionpool.report.waterfall import waterfall
from opinionpool.text import counted
from opinionpool.version import __version__

# The marks of the page's figures, beside those of the report.
MARKS = """
.span { fill: var(--shade); fill-opacity: .2; }
.mean { fill: var(--average); stroke: var(--paper); stroke-width: 1; }
.mean.open { fill: var(--paper); stroke: var(--average); stroke-width: 2; }
.answer { stroke: var(--ink); stroke-width: 1.5; }
.threshold { stroke: var(--average); stroke-width: 1.5; stroke-dasharray: 5 3; }
"""


def event_report(a: Assessment, material: Material, found: Answer, record: str, line: str) -> str:
    """The page about one event.

    Parameters
    ----------
    a, material, found
        What is assessed, what it is pooled with, and the answer.
    record : str
        Who assessed, and when.
    line : str
        The command line with the same answer.
    """
    header = markup(
        '<header><p class="kicker">Pooled forecast</p><h1>{}</h1><p>Assessed {}.</p></header>', name(a.question), record
    )
    sections = [_answer(a, found), _why(a, found), _panel(a, found), _changes(a, material, found), _method(found, line)]
    body = markup(
        "{}\n<main>\n{}\n</main>\n<footer>Made by opinionpool {}.</footer>", header, joined(sections, "\n"), __version__
    )
    return document(f"Pooled forecast: {printable(a.question)}", STYLE + MARKS, body)


def _classes(a: Assessment, found: Answer) -> list[tuple[int, str, float]]:
    """Position, label and probability of each class; of the second alone where there are two."""
    if a.binary:
        label = a.classes[1]
        return [(1, "yes" if label in {1, "1"} else str(label), float(found.why.probability))]
    return [(i, str(c), float(p)) for i, (c, p) in enumerate(zip(a.classes, found.why.probability, strict=True))]


def _interval(found: Answer, at: int) -> tuple[float, float] | None:
    """Of the probability of one class."""
    if found.interval is None:
        return None
    low, high = (of_class(end, at) for end in found.interval)
    return low, high


def _answer(a: Assessment, found: Answer) -> Html:
    why = found.why
    cards = []
    for at, label, p in _classes(a, found):
        ends = _interval(found, at)
        between = "" if ends is None else f"{brief(ends[0])} to {brief(ends[1])} ({why.level:.0%} interval)"
        title = "The panel" if a.binary else printable(label)
        average, geometric = (brief(of_class(p, at)) for p in (found.average, found.geometric))
        beside = f"simple average {average}, geometric mean of odds {geometric}"
        cards.append(
            markup(
                '<li class="own"><span>{}</span><b>{}</b>'
                '<span class="quiet">{}</span><span class="quiet">{}</span></li>',
                title, brief(p), between, beside,
            )
        )  # fmt: skip
    n = len(why.experts)
    words = f"{counted(n, 'expert')}, together as good as {found.effective:.1f} independent ones."
    notes = joined(markup('<p class="note">{}</p>', sentence(note.text)) for note in found.notes)
    return Section(
        "answer", "The answer", [markup('<ul class="cards">{}</ul><p>{}</p>{}', joined(cards), words, notes)]
    ).html()


def _why(a: Assessment, found: Answer) -> Html:
    why = found.why
    if not why.experts:
        return Section("why", "Why", ["Nobody gave a forecast, so the answer is the prior."]).html()
    figures = [
        markup(
            "<figure>{}<figcaption>From the prior to the answer{}: each bar is what one forecast adds."
            "</figcaption></figure>",
            waterfall(why, at, f"Probability of {label}", _interval(found, at)),
            "" if a.binary else f", for {printable(label)}",
        )
        for at, label, _ in _classes(a, found)
    ]  # fmt: skip
    if a.binary:
        titles = {
            "name": "expert", "probability": "forecast", "weight": "weight", "contrast": "contrast", "adds": "adds",
            "without": "answer without it",
        }  # fmt: skip
        return Section("why", "Why", [*figures, Table(forecast_columns(why, 1, titles))]).html()
    rows = []
    for i in by_effect(why):
        weight = "–" if why.weights is None else decimal(float(why.weights[i]))
        shares, without = (
            " / ".join(brief(of_class(p[i], at)) for at, *_ in _classes(a, found))
            for p in (why.probabilities, why.without)
        )
        rows.append([name(why.experts[i]), shares, weight, without])
    listing = grid(["expert", "forecast", "weight", "answer without it"], rows)
    return Section("why", "Why", [*figures, listing]).html()


def _panel(a: Assessment, found: Answer) -> Html:
    """Who assessed what."""
    rows = [[name(each.name), *_features(each)] for each in a.experts if each.beliefs.given]
    parts = []
    if rows:
        header = ["expert", "AUC", "calibration", "bias", "worth"]
        parts.append(grid(header, rows, "What is assessed of each").html())
    own = a.everyone.given
    if own:
        listed = "; ".join(f"{key.replace('_', ' ')} {belief}" for key, belief in own.items())
        parts.append(markup("<p>Of all of them: {}.</p>", listed))
    if not rows and not own:
        parts.append(markup("<p>Nothing is assessed, so what stands here is learned, or assumed of any panel.</p>"))
    prior = " / ".join(percent(of_class(found.why.prior, at)) for at, *_ in _classes(a, found))
    parts.append(markup("<p>Prior: {}.</p>", prior))
    if a.base_rate is not None:
        shares = a.base_rate if a.binary else tuple(x / math.fsum(a.base_rate) for x in a.base_rate)
        parts.append(
            markup("<p>Where the answer is used, the event is this frequent: {}.</p>", " / ".join(map(percent, shares)))
        )
    return Section("panel", "What is assessed", parts).html()


def _features(each: Expert) -> list[str]:
    beliefs = each.beliefs
    accuracy, relative = beliefs.absolute(), beliefs.get("relative_accuracy")
    good = "–"
    if accuracy is not None:
        good = f"{charts.area(accuracy.value):.2f}"
    elif relative is not None:
        good = f"{relative.value:g} × as accurate"
    worths = {_events(belief) for belief in beliefs.given.values()}
    shown = [_value(beliefs.get("calibration")), _value(beliefs.get("bias"))]
    return [good, *shown, " / ".join(sorted(worths))]


def _value(belief: Belief | None) -> str:
    return "–" if belief is None else f"{belief.value:g}"


def _events(belief: Belief) -> str:
    return "certain" if math.isinf(belief.worth) else counted(round(belief.worth), "event")


def _changes(a: Assessment, material: Material, found: Answer) -> Html:
    """What moves the answer, and the decision; what the page begins with is nobody's assessment."""
    decided, asked = a.binary and a.stakes != Stakes(), a.binary and a.candidate != Candidate()
    parts: list[Html] = []
    at = 1 if a.binary else int(np.argmax(found.why.probability))
    moves = what_if.effects(a, material, found, at)
    if moves:
        threshold = a.stakes.action / a.stakes.loss if decided else None
        label = _classes(a, found)[0 if a.binary else at][1]
        figure = charts.tornado(
            bars_of(moves), of_class(found.why.probability, at), threshold, f"Probability of {label}"
        )
        words = "Each bar is the answer while one assessment goes over its range, where it lies with 90% probability."
        parts.append(markup("<figure>{}<figcaption>{}</figcaption></figure>", figure, words))
    sentences = [_decision(a, found)] if decided else []
    sentences += _one_more(a, found) if asked else []
    parts += [markup("<p>{}</p>", words) for words in sentences]
    return Section("changes", "What would change it", parts).html() if parts else Html("")


def _decision(a: Assessment, found: Answer) -> str:
    stake = what_if.stake(a, found, float(found.why.probability))
    return (
        f"Acting costs {a.stakes.action:g}, and not having acted {a.stakes.loss:g} if the event happens, so acting "
        f"pays above {brief(stake.threshold)}. The expected cost of acting is {stake.acting:.3g}, of waiting "
        f"{stake.waiting:.3g}: {'act' if stake.act else 'do not act'}."
    )


def _one_more(a: Assessment, found: Answer) -> list[str]:
    """What one more expert would add, if any could be so dependent on these."""
    try:
        more = what_if.one_more(a, found)
    except OpinionPoolError:
        return []
    return [
        f"One more expert with an AUC of {a.candidate.auc:.2f} and a correlation of {a.candidate.correlation:.2f} with "
        f"each of these would raise the panel's AUC by {more.gain.auc:.3f}, to {more.auc:.3f}."
    ]


def named(effect: Effect) -> tuple[str, str, str]:
    """An effect's name, and both ends of its range, as they are shown."""
    low, high = (brief(x) if effect.what in {"forecast", "prior"} else f"{x:.2f}" for x in effect.values)
    return f"{effect.expert}: {effect.what}" if effect.expert else effect.what, low, high


def bars_of(effects: Sequence[Effect]) -> list[Bar]:
    """The largest effects as bars, names cut where they are long."""
    bars = []
    for effect in effects[: what_if.BARS]:
        _, low, high = named(effect)
        name_ = f"{shortened(effect.expert, 18)}: {effect.what}" if effect.expert else effect.what
        bars.append(Bar(name_, *effect.answers, low, high))
    return bars


def _method(found: Answer, line: str) -> Html:
    words = (
        "The answer's log-odds are those of the prior and, of each expert, weight times contrast: the forecast's "
        "log-odds beyond the prior and the expert's bias, of which large ones are made somewhat smaller. The weight "
        "follows from how good, how well calibrated and how dependent the experts are (Kahn, UAI 2004)."
    )
    exact = ", ".join(repr(float(p)) for p in np.atleast_1d(found.why.probability))
    same = markup("The same answer, {}, from the files that belong to this report:", exact)
    return Section("method", "Method", [words, Text(same), markup("<pre>{}</pre>", line)]).html()
