"""One answer as a picture: from the prior to the answer, a bar for each expert, on a scale that is even in log-odds."""

from __future__ import annotations

import math
from collections.abc import Iterable

from opinionpool import logodds
from opinionpool.analysis.explanation import Explanation
from opinionpool.analysis.steps import Step, of_class, steps
from opinionpool.report.charts import Scale, drawing, label, line, nice_ticks, number, rect, shortened, titled
from opinionpool.report.html import Html, joined
from opinionpool.report.numbers import brief, percent

WIDTH = 400.0
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
