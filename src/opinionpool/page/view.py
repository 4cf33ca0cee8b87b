"""What stands on every view: the question, the ways to go, and the answer with its reasons."""

from __future__ import annotations

import numpy as np

from opinionpool.page import charts
from opinionpool.page.answer import Answer
from opinionpool.page.charts import Mark
from opinionpool.page.controls import attributes, button, choice
from opinionpool.page.scene import ROWS, VIEWS, Scene
from opinionpool.report.blocks import Table, grid
from opinionpool.report.explanation import forecast_columns
from opinionpool.report.html import Html, joined, markup, name, sentence
from opinionpool.report.listing import printable
from opinionpool.report.numbers import brief, percent
from opinionpool.report.waterfall import waterfall
from opinionpool.text import counted


def top(scene: Scene) -> Html:
    """Question, undo and redo, and the views."""
    a = scene.a
    if scene.material.forecasts is None:
        question = markup(
            '<h1>{}<textarea rows="1"{}>{}</textarea></h1>',
            markup('<label class="unseen" for="question">Question</label>'),
            attributes(id="question", data_do="question", maxlength=200, spellcheck="false"),
            a.question,
        )
    else:
        question = markup("<h1>{}</h1>", name(a.question))
    moves = joined(
        [
            button("Undo", "undo", id="undo", disabled=not scene.undo, aria_keyshortcuts="Control+Z"),
            button("Redo", "redo", id="redo", disabled=not scene.redo, aria_keyshortcuts="Control+Shift+Z"),
        ]
    )
    links = joined(
        markup(
            "<li>{}</li>",
            button(
                VIEWS[view],
                "view",
                id=f"view-{view}",
                data_value=view,
                aria_current="page" if scene.look.view == view else None,
            ),
        )
        for view in scene.views
    )
    return markup(
        '<div class="title">{}<div class="history">{}</div></div>'
        '<nav aria-label="Views"><ul>{}</ul></nav>{}',
        question, moves, links, bar(scene),
    )  # fmt: skip


def bar(scene: Scene) -> Html:
    """The answer in one line, which stays in sight on narrow screens."""
    if scene.found is None:
        return markup('<p class="now"><a href="#answer">No answer yet</a></p>')
    p, interval = scene.probability(scene.found.why.probability), scene.interval
    between = "" if interval is None else markup(" <span>{} to {}</span>", brief(interval[0]), brief(interval[1]))
    return markup('<p class="now"><a href="#answer"><b>{}</b>{}</a></p>', brief(p), between)


def live(scene: Scene) -> str:
    """What a screen reader says after a move."""
    if scene.found is None:
        return scene.trouble
    p, interval = scene.probability(scene.found.why.probability), scene.interval
    between = "" if interval is None else f", between {brief(interval[0])} and {brief(interval[1])}"
    return f"{'The answer' if scene.a.binary else printable(str(scene.a.classes[scene.at]))}: {brief(p)}{between}"


def trouble(scene: Scene) -> Html:
    """Why a move was not made."""
    return markup("<p>{}</p>", sentence(scene.trouble)) if scene.trouble else Html("")


def answer(scene: Scene) -> Html:
    """The answer, and why."""
    if scene.found is None:
        return markup('<h2>Answer</h2><p class="missing">{}</p>', sentence(scene.trouble or "there is no answer yet"))
    found, why = scene.found, scene.found.why
    parts = [markup("<h2>Answer</h2>"), _headline(scene, found)]
    average, geometric = scene.probability(found.average), scene.probability(found.geometric)
    marks = [
        Mark("expert", scene.probability(p), printable(who))
        for who, p in zip(why.experts, why.probabilities, strict=True)
    ]
    p = scene.probability(why.probability)
    marks += [
        Mark("average", average, "simple average"),
        Mark("geometric", geometric, "geometric mean of odds"),
        Mark("pool", p, "answer"),
    ]
    says = (
        f"The answer is {percent(p)}, the simple average {percent(average)}, the geometric mean of the odds "
        f"{percent(geometric)}"
    )
    parts.append(markup('<figure class="strip">{}</figure>', charts.strip(marks, scene.interval, says)))
    parts.append(
        markup(
            '<ul class="legend"><li>{} answer</li><li>{} average {}</li><li>{} geometric mean of odds {}</li>'
            "<li>{} each expert</li></ul>",
            _sample("pool"), _sample("average"), brief(average), _sample("geometric"), brief(geometric),
            _sample("expert"),
        )
    )  # fmt: skip
    if why.scale == "log-odds":
        parts.append(markup("<h3>From the prior to the answer</h3>"))
        parts.append(
            markup("<figure>{}</figure>", waterfall(why, scene.at, f"Probability of {scene.event}", scene.interval))
        )
    parts.append(_contributions(scene, found))
    parts += [markup('<p class="note">{}</p>', sentence(note.text)) for note in found.notes]
    return joined(parts)


def _sample(kind: str) -> Html:
    return markup('<svg viewBox="0 0 20 28" class="sample" aria-hidden="true">{}</svg>', charts.shape(kind, 10, 14))


def _headline(scene: Scene, found: Answer) -> Html:
    """The number, its interval, and who makes it."""
    why = found.why
    p = scene.probability(why.probability)
    parts = []
    if not scene.a.binary:
        options = [(str(i), printable(str(label))) for i, label in enumerate(scene.a.classes)]
        rows = [
            [name(str(label)), charts.share_bar(float(x)), brief(float(x))]
            for label, x in zip(scene.a.classes, np.atleast_1d(why.probability).tolist(), strict=True)
        ]
        parts.append(grid(["outcome", "from 0% to 100%", "probability"], rows, words=2).html())
        parts.append(choice("about", "Figures are about", options, str(scene.at), data_do="about"))
    parts.append(markup('<p class="big" id="probability">{}</p>', brief(p)))
    if scene.interval is not None:
        low, high = scene.interval
        parts.append(
            markup(
                '<p class="between">{} to {} <span class="quiet">({} credible interval)'
                "</span></p>",
                brief(low), brief(high), f"{why.level:.0%}",
            )
        )  # fmt: skip
    n = len(why.experts)
    if n > 1:
        words = f"{counted(n, 'expert')}, as good as {found.effective:.1f} independent ones."
        parts.append(markup('<p class="quiet">{}</p>', words))
    return joined(parts)


def _contributions(scene: Scene, found: Answer) -> Html:
    """What each says, its weight, and the answer without it."""
    why = found.why
    if not why.experts:
        return Html("")
    titles = {"name": "expert", "probability": "forecast", "weight": "weight", "without": "without it"}
    columns = forecast_columns(why, scene.at, titles, ROWS)
    return Table(columns, "Each forecast, and the answer without it").html()
