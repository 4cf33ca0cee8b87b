"""The figures of the page, drawn with the report's own marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opinionpool.analysis.value import expected_auc
from opinionpool.report.charts import Scale, drawing, label, line, number, rect, titled
from opinionpool.report.html import Html, joined
from opinionpool.report.numbers import brief, percent
from opinionpool.report.waterfall import axis, odds, probability_scale

WIDTH, BROAD = 400.0, 470.0


def area(accuracy: float) -> float:
    """The area under the ROC curve of an expert of this accuracy."""
    return float(expected_auc(max(accuracy, 0.0)))


class Mark(NamedTuple):
    """A place on the scale of probabilities: the shape of its mark, and what it is."""

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


class Bar(NamedTuple):
    """How far the answer moves while one assessment goes over its range."""

    name: str
    low: float
    high: float
    at_low: str
    at_high: str


def tornado(bars: Sequence[Bar], answer: float, threshold: float | None, what: str) -> Html:
    """One bar for each assessment, the longest first, around the answer."""
    ends = [answer, *(bar.low for bar in bars), *(bar.high for bar in bars)]
    shown = threshold is not None and abs(odds(threshold) - odds(answer)) < 4
    if shown and threshold is not None:
        ends.append(threshold)
    left = min(26.0 + 6.4 * max(len(bar.name) for bar in bars), 196.0)
    x = probability_scale(min(ends), max(ends), left, BROAD - 22)
    height = 25.0
    bottom = height * len(bars) + 20
    parts = axis(x, bottom)
    if shown and threshold is not None:
        parts.append(line(x(threshold), 14, x(threshold), bottom, "threshold"))
        turned = x(threshold) > BROAD - 90
        parts.append(
            label(
                x(threshold) + (-4 if turned else 4),
                11,
                f"act above {brief(threshold)}",
                anchor="end" if turned else "start",
                kind="tick halo",
            )
        )
    for place, bar in enumerate(bars):
        top = height * place + 18
        a, b = sorted((x(bar.low), x(bar.high)))
        parts.append(
            titled(
                f"{bar.name}: {percent(bar.low)} at {bar.at_low}, {percent(bar.high)} at {bar.at_high}",
                joined(
                    [
                        label(left - 10, top + 16, bar.name, anchor="end"),
                        rect(a, top + 5, max(b - a, 1), height - 10, "range"),
                    ]
                ),
            )
        )
    parts.append(line(x(answer), 14, x(answer), bottom, "answer"))
    says = f"{what}, at present {percent(answer)}. " + "; ".join(
        f"{bar.name}: from {percent(min(bar.low, bar.high))} to {percent(max(bar.low, bar.high))}" for bar in bars
    )
    return drawing(BROAD, bottom + 22, parts, says)


def share_bar(p: float) -> Html:
    """A probability as a bar from 0 to 1; decoration beside a number, so silent."""
    bar_, frame = rect(0, 4, 120 * p, 10, "range"), rect(0, 4, 120, 10, "frame")
    return joined([Html('<svg class="bar-cell" viewBox="0 0 120 18" aria-hidden="true">'), bar_, frame, Html("</svg>")])
