"""Figures of one answer: from the prior to it, beside the forecasts, and how far it moves, on scales of probability."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from opinionpool import logodds
from opinionpool.analysis.explanation import Explanation, Step, of_class, steps
from opinionpool.analysis.sensitivity import Effect
from opinionpool.report.charts import Scale, bar_cell, drawing, label, line, nice_ticks, number, rect, shortened, titled
from opinionpool.report.effects import LABELS, effect_ends, effect_name
from opinionpool.report.html import Html, joined, markup
from opinionpool.report.numbers import brief, percent

WIDTH, BROAD = 400.0, 470.0
# Bars that a tornado has at most.
BARS = 12
# Where the names of rows end.
LEFT = 128.0
TICKS = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999)


def odds(p: float) -> float:
    """Log-odds of a probability that may be 0 or 1."""
    return math.log(max(p, 1e-12) / max(1.0 - p, 1e-12))


def probability_scale(low: float, high: float, start: float = LEFT, end: float = WIDTH - 18) -> Scale:
    """Places on a scale that is even in log-odds, with room on either side."""
    a, b = odds(low), odds(high)
    room = max(0.08 * (b - a), 0.25)
    return Scale(float(logodds.expit(a - room)), float(logodds.expit(b + room)), start, end, odds)


def axis(x: Scale, bottom: float) -> list[Html]:
    """Ticks in per cent below a drawing, as many as there is room for, with lines across it."""
    parts, last = list[Html](), -math.inf
    ticks = [tick for tick in TICKS if x.low <= tick <= x.high]
    for tick in ticks if len(ticks) > 2 else nice_ticks(x.low, x.high, 4):
        if not x.low <= tick <= x.high or x(tick) - last < 34:
            continue
        last = x(tick)
        parts.append(line(x(tick), 0, x(tick), bottom, "grid"))
        parts.append(label(x(tick), bottom + 15, f"{100 * tick:g}%", anchor="middle", kind="tick"))
    return parts


MOST_STEPS = 16


def waterfall(why: Explanation, at: int, what: str, interval: tuple[float, float] | None) -> Html:
    """From the prior to the answer, a bar for each expert."""
    found = steps(why, at)
    answer = of_class(why.probability, at)
    start = found[0].before if found else answer
    rest = found[MOST_STEPS:]
    if len(rest) > 1:
        found = [*found[:MOST_STEPS], Step(f"{len(rest)} others", rest[0].before, rest[-1].after)]
    ends = [start, answer, *(s.after for s in found)]
    ends += interval or ()
    x = probability_scale(min(ends), max(ends))
    height, parts = 24.0, list[Html]()
    bottom = height * (len(found) + 2) + 4
    parts += axis(x, bottom)
    parts += _level(x, start, 0, height, "prior")
    for place, step in enumerate(found, 1):
        parts.append(_bar(x, step, place, height))
    last = height * (len(found) + 1)
    if interval is not None:
        parts.append(line(x(interval[0]), last + 12, x(interval[1]), last + 12, "interval"))
    parts += _level(x, answer, last, height, "answer", "strong")
    says = (
        f"{what}: from a prior of {percent(start)} "
        + ", ".join(f"{s.name} to {percent(s.after)}" for s in found)
        + f"; answer {percent(answer)}"
    )
    return drawing(WIDTH, bottom + 22, parts, says)


def _level(x: Scale, p: float, top: float, height: float, name: str, kind: str = "quiet") -> Iterable[Html]:
    middle = top + height / 2
    yield label(LEFT - 8, middle + 4, name, anchor="end", kind=kind)
    yield Html(f'<path class="level" d="M{number(x(p))} {number(top + 3)}v{number(height - 6)}"/>')
    right = x(p) < WIDTH - 70
    yield label(
        x(p) + (7 if right else -7), middle + 4, brief(p), anchor="start" if right else "end", kind=f"{kind} halo"
    )


def _bar(x: Scale, step: Step, place: int, height: float) -> Html:
    top = height * place
    a, b = x(step.before), x(step.after)
    up = b >= a
    kind = "up" if up else "down"
    low, width = min(a, b), max(abs(b - a), 1.0)
    points = f"{abs(100 * (step.after - step.before)):.1f}"
    shown = points if points == "0.0" else ("+" if up else "−") + points
    outside = b + 6 if up else b - 6
    anchor = "start" if up else "end"
    if up and outside > WIDTH - 34:
        outside, anchor = a - 6, "end"
    elif not up and outside < LEFT + 30:
        outside, anchor = a + 6, "start"
    arrow = 5.0 if up else -5.0
    tip = "" if width < 8 else f"M{number(b - arrow)} {number(top + 6)}l{number(arrow)} 6l{number(-arrow)} 6"
    return titled(
        f"{step.name}: from {percent(step.before)} to {percent(step.after)}",
        joined(
            [
                label(LEFT - 8, top + 16, shortened(step.name, 17), anchor="end"),
                rect(low, top + 5, width, height - 10, kind),
                Html(f'<path class="tip" d="{tip}"/>') if tip else Html(""),
                Html(f'<path class="link" d="M{number(a)} {number(top - 5)}v10"/>'),
                label(outside, top + 16, shown, anchor=anchor, kind="tick halo"),
            ]
        ),
    )


class Mark(NamedTuple):
    """A probability to draw on the scale, with the kind of its mark and its name."""

    shape: str
    p: float
    name: str


def strip(marks: Sequence[Mark], interval: tuple[float, float] | None, says: str) -> Html:
    """Experts, averages and the answer on one line from 0% to 100%."""
    x = Scale(0.0, 1.0, 16, WIDTH - 20)
    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(line(x(tick), 6, x(tick), 42, "grid"))
        parts.append(label(x(tick), 58, f"{100 * tick:.0f}%", anchor="middle", kind="tick"))
    parts.append(line(x(0), 24, x(1), 24, "zero"))
    if interval is not None:
        parts.append(rect(x(interval[0]), 17, max(x(interval[1]) - x(interval[0]), 1), 14, "span"))
    parts += [titled(f"{mark.name}: {percent(mark.p)}", shape(mark.shape, x(mark.p), 24)) for mark in marks]
    return drawing(WIDTH, 64, parts, says)


def shape(kind: str, x: float, y: float) -> Html:
    """A mark: every kind has a form of its own beside its colour."""
    if kind == "expert":
        return Html(f'<path class="one" d="M{number(x)} {number(y - 13)}v26"/>')
    if kind == "average":
        return Html(f'<path class="mean" d="M{number(x)} {number(y - 7)}l6.5 12h-13z"/>')
    if kind == "geometric":
        return Html(f'<path class="mean open" d="M{number(x)} {number(y - 8)}l7 8l-7 8l-7 -8z"/>')
    return Html(f'<circle class="point" cx="{number(x)}" cy="{number(y)}" r="7"/>')


def tornado(effects: Sequence[Effect], answer: float, threshold: float | None, what: str) -> Html:
    """One bar for each forecast or belief that varies, the longest first, around the answer; open if assumed."""
    shown = effects[:BARS]
    features = [LABELS.get(each.what, each.what) for each in shown]
    names = [
        f"{shortened(e.expert, 14)}: {what}" if e.expert else what for e, what in zip(shown, features, strict=True)
    ]
    names = [name if each.assessed else f"{name} (assumed)" for name, each in zip(names, shown, strict=True)]
    ends = [answer, *(end for each in shown for end in each.answers)]
    near = threshold is not None and abs(odds(threshold) - odds(answer)) < 4
    left = min(26.0 + 6.4 * max(map(len, names)), 212.0)
    x = probability_scale(
        min([*ends, threshold] if near and threshold is not None else ends),
        max([*ends, threshold] if near and threshold is not None else ends), left, BROAD - 22,
    )  # fmt: skip
    height = 25.0
    bottom = height * len(shown) + 20
    parts = axis(x, bottom)
    if near and threshold is not None:
        turned = x(threshold) > BROAD - 90
        words = f"act above {brief(threshold)}"
        at = x(threshold) + (-4 if turned else 4)
        parts.append(line(x(threshold), 14, x(threshold), bottom, "threshold"))
        parts.append(label(at, 11, words, anchor="end" if turned else "start", kind="tick halo"))
    for place, (name, effect) in enumerate(zip(names, shown, strict=True)):
        top = height * place + 18
        a, b = sorted(map(x, effect.answers))
        low, high = effect_ends(effect)
        bar = rect(a, top + 5, max(b - a, 1), height - 10, "range" if effect.assessed else "range assumed")
        answers = [f"{percent(p)} at {end}" for p, end in zip(effect.answers, (low, high), strict=True)]
        both = joined([label(left - 10, top + 16, name, anchor="end"), bar])
        parts.append(titled(f"{effect_name(effect)}: {', '.join(answers)}", both))
    parts.append(line(x(answer), 14, x(answer), bottom, "answer"))
    says = f"{what}, at present {percent(answer)}. " + "; ".join(
        f"{effect_name(each)}: from {percent(min(each.answers))} to {percent(max(each.answers))}" for each in shown
    )
    return drawing(BROAD, bottom + 22, parts, says)


def share_bar(p: float) -> Html:
    """A probability as a bar from 0 to 1."""
    return bar_cell([rect(0, 4, 120 * p, 10, "range"), rect(0, 4, 120, 10, "frame")], 18)


def sample(kind: str) -> Html:
    """A mark as a legend shows it."""
    return markup('<svg viewBox="0 0 20 28" class="sample" aria-hidden="true">{}</svg>', shape(kind, 10, 14))
