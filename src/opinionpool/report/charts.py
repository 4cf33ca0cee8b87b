"""Figures of reports and pages as SVG; everything shown by colour is also shown by shape or dashes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from unicodedata import east_asian_width

from opinionpool import logodds
from opinionpool.analysis.explanation import Explanation, Step, of_class, steps
from opinionpool.analysis.residuals import SharedErrors
from opinionpool.analysis.sensitivity import Effect
from opinionpool.arrays import Array
from opinionpool.report.blocks import Html, joined, markup, text
from opinionpool.report.listing import brief, decimal, gained, percent
from opinionpool.scoring.intervals import Difference
from opinionpool.scoring.learning_curve import LearningCurve
from opinionpool.scoring.reliability import ReliabilityCurve


@dataclass(frozen=True)
class Scale:
    """Map from values to positions, in pixels, in a drawing."""

    # low, high: the range of values
    low: float
    high: float
    # start, end: the positions of `low` and `high`
    start: float
    end: float
    shape: Callable[[float], float] = float  # the function of a value in which positions are linear

    def __call__(self, value: float) -> float:
        """Return the position of a value; a value outside of the range has the position of the nearer end."""
        low, high = self.shape(self.low), self.shape(self.high)
        share = (self.shape(min(max(value, self.low), self.high)) - low) / ((high - low) or 1.0)
        return self.start + share * (self.end - self.start)


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return about `count` round numbers from `low` to `high`.

    >>> nice_ticks(-0.03, 0.11, 4)
    [0.0, 0.05, 0.1]
    """
    if not high > low:
        return [low]
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * power >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def number(x: float) -> str:
    """Return a coordinate as text with no more digits than a drawing needs.

    >>> number(12.0), number(0.126), number(-0.001)
    ('12', '0.13', '0')
    """
    return f"{round(x, 2) + 0.0:.2f}".rstrip("0").rstrip(".")


def drawing(width: float, height: float, parts: Iterable[Html], says: str, kind: str = "") -> Html:
    """Return an SVG figure, of the CSS class `kind`, from SVG `parts`; `says` describes it for screen readers."""
    label = f' class="{kind}"' if kind else ""
    label += f' width="{number(width)}"' if kind == "broad" else ""
    size = f'viewBox="0 0 {number(width)} {number(height)}"'
    return markup(f'<svg{label} role="img" {size} aria-label="{{}}">{{}}</svg>', says, joined(parts))


def label(x: float, y: float, content: str, *, anchor: str = "start", kind: str = "", turned: bool = False) -> Html:
    """Return the text `content` as SVG that starts, is centred or ends (`anchor`) at (x, y); vertical if `turned`."""
    style = f' class="{kind}"' if kind else ""
    turn = f' transform="rotate(-90 {number(x)} {number(y)})"' if turned else ""
    at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return markup(f'<text x="{number(x)}" y="{number(y)}"{at}{style}{turn}>{{}}</text>', content)


def shortened(content: str, most: int) -> str:
    """Return a name, cut if it is wider than `most` Latin letters.

    >>> shortened("logistic_regression", 12)
    'logistic_re…'
    """
    room = most - 1
    for place, character in enumerate(content):
        room -= 2 if east_asian_width(character) in "WF" else 1
        if room < 0 and place + 1 < len(content):
            return content[:place] + "…"
    return content


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Html:
    """Return a straight SVG line, of the CSS class `kind`, from (x1, y1) to (x2, y2)."""
    ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
    return Html(f'<line class="{kind}" {ends}/>')


def rect(x: float, y: float, width: float, height: float, kind: str) -> Html:
    """Return an SVG rectangle of the CSS class `kind`, whose upper left corner is at (x, y)."""
    size = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    return Html(f'<rect class="{kind}" {size}/>')


def path(points: Sequence[tuple[float, float]], kind: str) -> Html:
    """Return an SVG line, of the CSS class `kind`, that connects `points`."""
    steps = "L".join(f"{number(x)} {number(y)}" for x, y in points)
    return Html(f'<path class="{kind}" d="M{steps}"/>')


def band(x: Sequence[float], low: Sequence[float], high: Sequence[float], kind: str) -> Html:
    """Return the SVG area, of the CSS class `kind`, between the lines from (x, low) to (x, high), in pixels."""
    there, back = list(zip(x, low, strict=True)), list(zip(x, high, strict=True))[::-1]
    steps = "L".join(f"{number(a)} {number(b)}" for a, b in [*there, *back])
    return Html(f'<path class="{kind}" d="M{steps}Z"/>')


def dot(x: float, y: float, kind: str, radius: float = 3.5) -> Html:
    """Return an SVG circle, of the CSS class `kind`, at (x, y)."""
    return Html(f'<circle class="{kind}" cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"/>')


def titled(content: str, part: Html) -> Html:
    """Return an SVG part that shows `content` as a tooltip."""
    return markup("<g><title>{}</title>{}</g>", text(content), part)


WIDTH = 400.0
# Largest number of forecasts drawn as ticks; more are drawn as a solid bar.
TICKED = 60
# More experts than this leave no room for numbers in the cells of a heat map, or make it as wide as the page.
LEGIBLE, BESIDE = 9, 14
# Exponent of a shade as a function of the correlation, as most correlations are above a half.
STEEP = 1.7


def gain_chart(gains: Mapping[str, Difference]) -> Html:
    """Return a chart of score differences with intervals around a line at 0; `gains` has them by the rival's name."""
    ends = [0.0, *(x for gain in gains.values() for x in (gain.mean, gain.low, gain.high) if math.isfinite(x))]
    room = 0.06 * ((max(ends) - min(ends)) or 1.0)
    x = Scale(min(ends) - room, max(ends) + room, 8, WIDTH - 8)
    step, bottom = 46.0, 46.0 * len(gains) + 4
    rows = [step * place + 34 for place in range(len(gains))]
    # Lines stand beside the intervals only, clear of the labels above them.
    parts = list[Html]()
    for tick in nice_ticks(x.low, x.high, 5):
        parts += [line(x(tick), y - 9, x(tick), y + 9, "grid") for y in rows]
        parts.append(label(x(tick), bottom + 15, f"{tick:+g}" if tick else "0", anchor="middle", kind="tick"))
    for y, (over, gain) in zip(rows, gains.items(), strict=True):
        parts.append(line(x(0), y - 9, x(0), y + 9, "zero"))
        phrase = gained(gain.mean, gain.low, gain.high)
        parts.append(label(8, y - 16, f"over {shortened(over, 26)}", kind="strong halo"))
        parts.append(label(WIDTH - 8, y - 16, phrase, anchor="end", kind="figures halo"))
        if math.isfinite(gain.low):
            parts.append(line(x(gain.low), y, x(gain.high), y, "interval"))
        parts.append(dot(x(gain.mean), y, "point", 5))
    parts.append(label(x.start, bottom + 34, "← the pool is worse", kind="quiet"))
    parts.append(label(x.end, bottom + 34, "the pool is better →", anchor="end", kind="quiet"))
    says = "; ".join(f"over {over} {gained(g.mean, g.low, g.high)}" for over, g in gains.items())
    return drawing(WIDTH, bottom + 42, parts, f"Gains in score. {says}")


def heat_map(errors: SharedErrors) -> Html:
    """Heat map of the correlations of experts' errors; if there is no room for numbers, dashes mark negative ones."""
    n = len(errors.experts)
    numbers = n <= LEGIBLE
    side = 232.0 / max(n, 7) if n <= BESIDE else 13.5
    left, top = 160.0, 18.0
    shades: dict[int, list[str]] = {}
    below: list[str] = []
    texts: list[Html] = []
    for i, row in enumerate(errors.correlation.tolist()):
        y = top + side * i
        texts.append(label(left - 24, y + side / 2 + 4, shortened(errors.experts[i], 18), anchor="end", kind="small"))
        texts.append(label(left - 6, y + side / 2 + 4, f"{i + 1}", anchor="end", kind="tick"))
        if numbers or i == 0 or (i + 1) % 5 == 0:
            texts.append(label(left + side * (i + 0.5), top - 6, f"{i + 1}", anchor="middle", kind="tick"))
        for j, r in enumerate(row):
            x = left + side * j
            cell = f"M{number(x)} {number(y)}h{number(side)}v{number(side)}h-{number(side)}z"
            shades.setdefault(round(20 * r), []).append(cell)
            if r < -0.025:
                below.append(f"M{number(x + side * 0.3)} {number(y + side / 2)}h{number(side * 0.4)}")
            if numbers and i != j:
                kind = "cell inverse" if abs(r) > 0.86 else "cell"
                texts.append(label(x + side / 2, y + side / 2 + 4, two(r), anchor="middle", kind=kind))
    parts = []
    for shade, cells in sorted(shades.items()):
        kind = "warm" if shade < 0 else "cool"
        parts.append(Html(f'<path class="{kind}" fill-opacity="{_opacity(shade / 20)}" d="{"".join(cells)}"/>'))
    if below and not numbers:
        parts.append(Html(f'<path class="dash" d="{"".join(below)}"/>'))
    parts.append(
        Html(f'<rect class="frame" x="{left}" y="{top}" width="{number(side * n)}" height="{number(side * n)}"/>')
    )
    off = [r for i, row in enumerate(errors.correlation.tolist()) for j, r in enumerate(row) if i != j]
    says = (
        f"Correlations of the errors of {n} experts, from {two(min(off))} to {two(max(off))}; experts in the order "
        "of their clusters"
    )
    width = max(WIDTH, left + side * n + 8) if n <= BESIDE else left + side * n + 8
    return drawing(width, top + side * n + 6, [*parts, *texts], says, "broad" if n > BESIDE else "")


def _opacity(r: float) -> str:
    return f"{abs(r) ** STEEP:.2f}"


def shades() -> Html:
    """Return the legend of a heat map: shades with the correlations that they stand for."""
    samples = []
    for r in (-0.5, 0.0, 0.25, 0.5, 0.75, 1.0):
        mark = Html(
            f'<rect class="{"warm" if r < 0 else "cool"}" fill-opacity="{_opacity(r)}" width="28" height="16"/>'
        )
        frame = Html('<rect class="frame" x=".5" y=".5" width="27" height="15"/>')
        samples.append(markup('<li><svg viewBox="0 0 28 16" aria-hidden="true">{}{}</svg>{}</li>', mark, frame, two(r)))
    return markup('<ul class="legend">{}</ul>', joined(samples))


def two(r: float) -> str:
    """Return a correlation with two decimals and without the zero before the decimal point.

    >>> two(0.5), two(-0.031), two(0.001), two(1.0)
    ('.50', '−.03', '.00', '1')
    """
    if abs(r) >= 0.995:
        return "1" if r > 0 else "−1"
    shown = f"{r:.2f}".replace("-0.00", "0.00")
    return shown.replace("0.", ".").replace("-", "−")


def reliability_chart(
    curve: ReliabilityCurve, says: str, model: tuple[Array, Array] | None = None, *, small: bool = False
) -> Html:
    """Chart of how often events happen, by forecast probability, with a band for calibrated forecasts, and `model`.

    The curve `model` is the calibration that the model estimates. `says` describes the chart for screen readers; a
    `small` chart is one of several, side by side.
    """
    side, strip = (158.0, 16.0) if small else (320.0, 30.0)
    x, y = Scale(0.0, 1.0, 46, 46 + side), Scale(0.0, 1.0, 8 + side, 8)
    foot = y.start + 8 + strip
    parts = []
    for tick in (0.0, 0.5, 1.0) if small else (0.0, 0.25, 0.5, 0.75, 1.0):
        parts += [line(x(tick), y(0), x(tick), y(1), "grid"), line(x(0), y(tick), x(1), y(tick), "grid")]
        parts.append(label(x(tick), foot + 15, f"{100 * tick:.0f}", anchor="middle", kind="tick"))
        parts.append(label(x.start - 6, y(tick) + 4, f"{100 * tick:.0f}", anchor="end", kind="tick"))
    at = [x(v) for v in curve.probability.tolist()]
    if len(at) > 1:
        parts.append(band(at, [y(v) for v in curve.low.tolist()], [y(v) for v in curve.high.tolist()], "band"))
    else:
        parts.append(line(at[0], y(float(curve.low[0])), at[0], y(float(curve.high[0])), "band-line"))
    parts.append(line(x(0), y(0), x(1), y(1), "diagonal"))
    if model is not None:
        parts.append(path([(x(a), y(b)) for a, b in zip(*(v.tolist() for v in model), strict=True)], "model"))
    points = [(a, y(v)) for a, v in zip(at, curve.frequency.tolist(), strict=True)]
    parts.append(path(points, "observed") if len(points) > 1 else dot(*points[0], "point"))
    tallest = max(int(curve.counts.max()), 1)
    width = side / len(curve.counts)
    for i, count in enumerate(curve.counts.tolist()):
        if count:
            height = max(1.0, strip * count / tallest)
            parts.append(rect(x.start + width * i + 1, foot - height, width - 2, height, "bar"))
    parts.append(label(x.start + side / 2, foot + 32, "forecast, %", anchor="middle", kind="quiet"))
    parts.append(label(12, y.end + side / 2, "happened, %", anchor="middle", kind="quiet", turned=True))
    return drawing(x.end + 16, foot + 38, parts, says, "mini" if small else "")


def learning_chart(curve: LearningCurve) -> Html:
    """Chart of scores by number of resolved events: of the pool, with an interval, and of the simple average."""
    low, high = curve.average + curve.low, curve.average + curve.high
    values = [v for row in (curve.score, curve.average, low, high) for v in row.tolist() if math.isfinite(v)]
    room = 0.06 * ((max(values) - min(values)) or 0.1)
    x = Scale(0.0, float(curve.sizes[-1]), 62, WIDTH - 20, lambda n: math.log1p(n / 4.0))
    y = Scale(min(values) - room, max(values) + room, 208, 8)
    parts = []
    for tick in nice_ticks(y.low, y.high, 5):
        parts.append(line(x.start, y(tick), x.end, y(tick), "grid"))
        parts.append(label(x.start - 7, y(tick) + 4, f"{tick:g}", anchor="end", kind="tick"))
    last = -math.inf
    for size in curve.sizes.tolist():
        crowded = size != curve.sizes[-1] and x.end - x(size) < 30
        if x(size) - last > 26 and not crowded:
            parts.append(line(x(size), y.start, x(size), y.end, "grid"))
            parts.append(label(x(size), y.start + 16, f"{size:,}", anchor="middle", kind="tick"))
            last = x(size)
    at = [x(float(n)) for n in curve.sizes.tolist()]
    if math.isfinite(float(low[-1])):
        parts.append(band(at, [y(v) for v in low.tolist()], [y(v) for v in high.tolist()], "band"))
    parts.append(path([(a, y(v)) for a, v in zip(at, curve.average.tolist(), strict=True)], "average"))
    pool = [(a, y(v)) for a, v in zip(at, curve.score.tolist(), strict=True)]
    parts.append(path(pool, "observed"))
    parts += [dot(a, b, "point", 3.5) for a, b in pool]
    parts.append(label((x.start + x.end) / 2, 244, "resolved events learned from", anchor="middle", kind="quiet"))
    parts.append(label(12, (y.start + y.end) / 2, "score on other events", anchor="middle", kind="quiet", turned=True))
    phrase = ", ".join(f"{n:,}: {decimal(s)}" for n, s in zip(curve.sizes.tolist(), curve.score.tolist(), strict=True))
    average = decimal(float(curve.average[-1]))
    says = f"Mean score by number of resolved events learned from. Pool {phrase}; simple average {average}"
    return drawing(WIDTH, 252, parts, says)


def bar_cell(parts: Iterable[Html], height: int = 22) -> Html:
    """Return a drawing for a table cell, hidden from screen readers, as the number in the cell beside it is read."""
    return markup(f'<svg class="bar-cell" viewBox="0 0 120 {height}" aria-hidden="true">{{}}</svg>', joined(parts))


def interval_bar(p: float, low: float | None, high: float | None, forecasts: Sequence[float] = ()) -> Html:
    """Return a small chart, from 0 to 1, of `p`, its interval from `low` to `high`, and the experts' forecasts."""
    x = Scale(0.0, 1.0, 6, 114)
    parts = [line(x(0), 11, x(1), 11, "grid"), line(x(0.5), 7, x(0.5), 15, "grid")]
    parts += [line(x(q), 4, x(q), 18, "one") for q in sorted(set(forecasts))[:TICKED]]
    if low is not None and high is not None:
        parts.append(line(x(low), 11, x(high), 11, "interval"))
    parts.append(dot(x(p), 11, "point", 4.5))
    return bar_cell(parts)


def range_bar(p: float, low: float, high: float) -> Html:
    """Return a small chart, from 0 to 1, of a probability and the range from `low` to `high` around it."""
    x = Scale(0.0, 1.0, 6, 114)
    a, b = sorted((x(low), x(high)))
    bar, level = rect(a, 6, max(b - a, 1.0), 10, "range"), line(x(p), 2, x(p), 20, "level")
    return bar_cell([line(x(0), 11, x(1), 11, "grid"), bar, level])


def weight_bar(weight: float, low: float, high: float, ends: tuple[float, float]) -> Html:
    """Return a small chart of a weight and its interval; `ends` is the range that all weights' charts share."""
    x = Scale(*ends, 6, 114)
    parts = [line(x.start, 11, x.end, 11, "grid"), line(x(0), 3, x(0), 19, "zero")]
    if math.isfinite(low):
        parts.append(line(x(low), 11, x(high), 11, "interval"))
    parts.append(dot(x(weight), 11, "point", 4.5))
    return bar_cell(parts)


def legend(entries: Sequence[tuple[str, str]]) -> Html:
    """Return the legend of a figure; `entries` pairs the kind of a mark with its meaning."""
    items = []
    for kind, meaning in entries:
        if kind == "band":
            mark = Html('<rect class="band" x="1" y="3" width="26" height="10"/>')
        elif kind == "bar":
            mark = joined([rect(4, 8, 6, 6, "bar"), rect(11, 3, 6, 11, "bar"), rect(18, 6, 6, 8, "bar")])
        elif kind == "interval":
            mark = joined([line(1, 8, 27, 8, "interval"), dot(14, 8, "point", 4)])
        elif kind == "dot":
            mark = dot(14, 8, "point", 4)
        elif kind in SHAPES:
            mark = shape(kind, 14, 8)
        else:
            mark = line(1, 8, 27, 8, kind)
        sample = markup('<svg viewBox="0 0 28 16" aria-hidden="true">{}</svg>', mark)
        items.append(markup("<li>{}{}</li>", sample, meaning))
    return markup('<ul class="legend">{}</ul>', joined(items))


LABELS = {"auc": "AUC", "accuracy": "AUC", "correlation": "correlation of errors"}


def effect_name(effect: Effect) -> str:
    """Return, as text, what an effect varies: the belief or forecast, and the expert whom it is about."""
    what = LABELS.get(effect.what, effect.what)
    what += f" of {effect.expert}" if effect.expert else ""
    return what if effect.assessed else f"{what} (assumed)"


def effect_ends(effect: Effect) -> tuple[str, str]:
    """Return, as two texts, the lowest and highest value between which an effect varies a belief or forecast."""
    low, high = (brief(x) if effect.what in {"forecast", "prior"} else f"{x:.2f}" for x in effect.values)
    return low, high


BROAD = 470.0
# Largest number of bars in a tornado chart.
BARS = 12
# Position at which the names of rows end.
LEFT = 128.0
TICKS = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999)


def odds(p: float) -> float:
    """Return the log-odds of a probability, finite also for 0 and 1."""
    return math.log(max(p, 1e-12) / max(1.0 - p, 1e-12))


def probability_scale(low: float, high: float, start: float = LEFT, end: float = WIDTH - 18) -> Scale:
    """Scale for probabilities, linear in log-odds; `low` to `high`, with margins, takes pixels `start` to `end`."""
    a, b = odds(low), odds(high)
    room = max(0.08 * (b - a), 0.25)
    return Scale(float(logodds.expit(a - room)), float(logodds.expit(b + room)), start, end, odds)


def legible(x: Scale) -> list[float]:
    """Return round probabilities to mark on a scale, at least 34 pixels from each other."""
    ticks, found = [tick for tick in TICKS if x.low <= tick <= x.high], list[float]()
    for tick in ticks if len(ticks) > 2 else nice_ticks(x.low, x.high, 4):
        if x.low <= tick <= x.high and (not found or x(tick) - x(found[-1]) >= 34):
            found.append(tick)
    return found


def axis(x: Scale, bottom: float) -> list[Html]:
    """Return the axis below a drawing, at y = `bottom`: ticks in per cent, with vertical grid lines."""
    parts = list[Html]()
    for tick in legible(x):
        parts.append(line(x(tick), 0, x(tick), bottom, "grid"))
        parts.append(label(x(tick), bottom + 15, f"{100 * tick:g}%", anchor="middle", kind="tick"))
    return parts


MOST_STEPS = 16


def waterfall(why: Explanation, at: int, what: str, interval: tuple[float, float] | None) -> Html:
    """Waterfall chart of the probability of class `at`, called `what`: steps from the prior to the answer by expert."""
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
    """A probability to show in a chart, with the shape of its mark and a name."""

    shape: str
    p: float
    name: str


def strip(marks: Sequence[Mark], interval: tuple[float, float] | None, says: str) -> Html:
    """Return a chart of `marks` (experts, averages, the answer) on one line from 0% to 100%; `says` describes it."""
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


# Class, top and outline of the marks of a strip, which differ in shape as well as in colour.
SHAPES = {
    "expert": ("one", 13, "v26"),
    "average": ("mean", 7, "l6.5 12h-13z"),
    "geometric": ("mean open", 8, "l7 8l-7 8l-7 -8z"),
    "pool": ("point", 7, "a7 7 0 1 1 -.01 0z"),
}


def shape(kind: str, x: float, y: float) -> Html:
    """Return an SVG mark at (x, y); `kind` is a key of `SHAPES`."""
    style, top, outline = SHAPES[kind]
    return Html(f'<path class="{style}" d="M{number(x)} {number(y - top)}{outline}"/>')


def tornado(effects: Sequence[Effect], answer: float, threshold: float | None, what: str) -> Html:
    """Chart of effects on `answer`, called `what`, the largest first; `threshold`: a probability to mark, if given.

    A bar is not filled if the value that it varies is only assumed.
    """
    shown = effects[:BARS]
    names = [effect_name(replace(each, expert=shortened(each.expert, 14))) for each in shown]
    ends = [answer, *(end for each in shown for end in each.answers)]
    near = threshold is not None and abs(odds(threshold) - odds(answer)) < 4
    ends += [threshold] if near and threshold is not None else []
    x = probability_scale(min(ends), max(ends), min(26.0 + 6.4 * max(map(len, names)), 224.0), BROAD - 22)
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
        both = joined([label(x.start - 10, top + 16, name, anchor="end"), bar])
        parts.append(titled(f"{effect_name(effect)}: {', '.join(answers)}", both))
    parts.append(line(x(answer), 14, x(answer), bottom, "answer"))
    says = f"{what}, at present {percent(answer)}. " + "; ".join(
        f"{effect_name(each)}: from {percent(min(each.answers))} to {percent(max(each.answers))}" for each in shown
    )
    return drawing(BROAD, bottom + 22, parts, says)


def share_bar(p: float) -> Html:
    """Return a small bar that shows a probability between 0 and 1."""
    return bar_cell([rect(0, 4, 120 * p, 10, "range"), rect(0, 4, 120, 10, "frame")], 18)
