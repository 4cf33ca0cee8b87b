"""The views that a file brings: its events to choose from, and what their outcomes say of the experts."""

from __future__ import annotations

import numpy as np

from opinionpool.page import charts
from opinionpool.page.answer import Answer
from opinionpool.page.controls import button, choice, field
from opinionpool.page.scene import Scene
from opinionpool.report.answers import Pooled
from opinionpool.report.blocks import grid
from opinionpool.report.html import Html, joined, markup, name
from opinionpool.report.listing import printable
from opinionpool.report.numbers import brief, whole
from opinionpool.text import counted

# Events that a list shows at once.
PAGE = 50
ORDERS = {
    "file": "as in the file",
    "high": "most likely first",
    "low": "least likely first",
    "open": "open ones first",
    "few": "fewest forecasts first",
    "name": "by name",
}


def evidence_view(scene: Scene) -> Html:
    """What the file's outcomes say beside what is assessed."""
    assert scene.material.forecasts is not None
    resolved = int(scene.material.forecasts.resolved.sum())
    parts = [markup("<h2>What the outcomes say of the experts</h2>")]
    if resolved == 0:
        parts.append(markup('<p class="missing">No event of the file is resolved, so there is no evidence yet.</p>'))
        return joined(parts)
    if scene.found is not None:
        parts.append(_beside(scene, scene.found))
    parts.append(
        markup('<div id="findings" data-later="findings"><p class="quiet">Computing what stands below …</p></div>')
    )
    return joined(parts)


def _beside(scene: Scene, found: Answer) -> Html:
    """Beliefs beside data, and the weights before and after."""
    state, forecasts = found.state, scene.material.forecasts
    assert forecasts is not None
    before = scene.material.before(scene.a)
    weights = np.asarray(state.weights)
    marginal = state.marginal
    own = {each.name: each.beliefs for each in scene.a.experts}
    rows = []
    order = np.argsort(-np.abs(weights), kind="stable")[:PAGE].tolist()
    for i in order:
        who = state.experts[i]
        beliefs = own.get(who)
        accuracy = None if beliefs is None else beliefs.absolute()
        kappa = None if beliefs is None else beliefs.get("calibration")
        area = None if accuracy is None else charts.area(accuracy.value)
        learned: tuple[float | None, float | None] = (None, None)
        if marginal is not None:
            learned = charts.area(float(marginal.accuracy[i])), float(marginal.calibration[i])
        rows.append(
            [
                name(who),
                whole(float(state.counts[i])),
                _change(area, learned[0]),
                _change(None if kappa is None else kappa.value, learned[1]),
                _change(None if before is None else float(before[i]), float(weights[i])),
            ]
        )
    header = ["expert", "events", "AUC", "calibration", "weight"]
    caption = "As assessed → after the outcomes: each expert by itself, and its weight in the answer"
    return grid(header, rows, caption).html()


def _change(before: float | None, after: float | None) -> str:
    """A value before and after the outcomes."""
    return " → ".join("–" if x is None else f"{x:.2f}" for x in (before, after))


def events_view(scene: Scene, pooled: Pooled) -> Html:
    """The file's events, to choose from."""
    forecasts, look = pooled.forecasts, scene.look
    chosen = matching(pooled, look.search, look.order)
    shown = chosen[look.start : look.start + PAGE]
    controls = joined(
        [
            field("search", "Search events", look.search, kind="search", data_do="search"),
            choice("order", "Order", list(ORDERS.items()), look.order, data_do="order"),
        ]
    )
    binary = pooled.probabilities.ndim == 1 and forecasts.options is None
    crowd = forecasts.crowd
    rows = []
    for t in shown.tolist():
        label = button(
            printable(forecasts.events[t]) or "(no name)", "event", id=f"event-{t}", data_value=t, class_="link",
            aria_current="true" if forecasts.events[t] == scene.a.question else None,
        )  # fmt: skip
        p = brief(float(pooled.probabilities[t])) if binary else _likeliest(pooled, t)
        rows.append([label, "resolved" if forecasts.resolved[t] else "open", p, whole(int(crowd[t]))])
    listing = grid(["event", "status", "answer", "forecasts"], rows, words=2).html()
    words = f"{counted(len(chosen), 'event')}" + (
        "" if len(chosen) == len(forecasts.events) else f" of {whole(len(forecasts.events))}"
    )
    if len(chosen) > PAGE:
        words += f", {look.start + 1} to {look.start + len(shown)} shown"
    pages = joined(
        [
            button("Earlier", "start", id="earlier", data_value=max(look.start - PAGE, 0), disabled=look.start == 0),
            button(
                "Later", "start", id="later", data_value=look.start + PAGE, disabled=look.start + PAGE >= len(chosen)
            ),
        ]
    )
    return joined(
        [
            markup('<h2>Events</h2><div class="common">{}</div>', controls),
            markup('<p class="note" aria-live="polite">{}</p>', words),
            listing,
            markup('<div class="pages">{}</div>', pages) if len(chosen) > PAGE else Html(""),
        ]
    )


def _likeliest(pooled: Pooled, t: int) -> str:
    """The likeliest class and its probability."""
    f = pooled.forecasts
    labels = f.classes if f.options is None else f.options[t]
    p = np.atleast_1d(pooled.probabilities[t])
    p = np.array([1.0 - p[0], p[0]]) if len(p) == 1 else p
    best = int(np.argmax(p[: len(labels)]))
    return f"{printable(str(labels[best]))} {brief(float(p[best]))}"


def matching(pooled: Pooled, search: str, order: str) -> np.ndarray:
    """Index of the events whose names have all words of a search, in an order."""
    events = pooled.forecasts.events
    words = search.casefold().split()
    found = np.arange(len(events))
    if words:
        found = np.flatnonzero([all(word in event.casefold() for word in words) for event in events])
    p = pooled.probabilities if pooled.probabilities.ndim == 1 else pooled.probabilities.max(axis=-1)
    if order == "name":
        return np.array(sorted(found.tolist(), key=lambda t: events[t].casefold()), dtype=np.intp)
    keys = {"high": -p, "low": p, "open": pooled.forecasts.resolved, "few": pooled.forecasts.crowd}
    return found[np.argsort(keys[order][found], kind="stable")] if order in keys else found
