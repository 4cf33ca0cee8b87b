"""How the cost of a fit grows with events, experts, missing forecasts and classes.

Processor seconds on one thread, the least of a few runs, of the default pool and of the data alone. `rows` draws
docs/figures/growth.svg too, so ``python benchmarks/run.py growth`` does.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from row import Row
from threadpoolctl import threadpool_limits

import opinionpool as op

Array = npt.NDArray[np.float64]
Panel = tuple[Array, npt.NDArray[np.intp]]

# What grows, while the others are as in `USUAL`: events, experts, share missing, classes.
USUAL = (2_000, 20, 0.0, 2)
EVENTS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)
EXPERTS = (2, 5, 20, 50, 100, 200, 500, 1_000, 2_000)
MISSING = (0.0, 0.01, 0.1, 0.3, 0.5, 0.8, 0.9, 0.95, 0.99)
CLASSES = (2, 3, 5, 10, 20)
# Where the default pool begins to learn from a sample: events, and forecasts.
MOST_EVENTS, MOST_FORECASTS = 20_000, 2_000_000
BUDGET = 1.0
# The power with which seconds may grow, and how much longer than complete forecasts the default pool may take.
POWERS, INCOMPLETE = {"events": 1.1, "experts": 2.2, "classes": 2.0}, 3.0
FIGURE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "growth.svg"


def drawn(events: int, experts: int, missing: float, classes: int) -> Panel:
    """Forecasts by correlated experts, and outcomes."""
    rng = np.random.default_rng(events + experts + classes)
    y = rng.integers(0, classes, events)
    if classes == 2:
        q = rng.normal(size=(events, experts), scale=1.2)
        q += rng.normal(size=(events, 1))
        q += (0.6 * (2 * y - 1))[:, None]
        np.negative(q, out=q)
        np.exp(q, out=q)
        q += 1.0
        np.reciprocal(q, out=q)
    else:
        z = rng.normal(size=(events, experts, classes)) + rng.normal(size=(events, 1, classes))
        z += 1.2 * np.eye(classes)[y][:, None]
        q = np.exp(z)
        q /= q.sum(axis=2, keepdims=True)
    if missing:
        q[rng.random((events, experts)) < missing] = np.nan
    return q, y


def seconds(work: Callable[[], object]) -> float:
    """Processor seconds, the least of as many runs as are quick; NaN if it cannot be done."""
    found, begun = np.inf, time.perf_counter()
    for _ in range(5):
        start = time.process_time()
        try:
            work()
        except op.LearningError:
            return float("nan")
        found = min(found, time.process_time() - start)
        if time.perf_counter() - begun > BUDGET:
            break
    return found


def measured(panels: dict[float, tuple[int, int, float, int]], most: float) -> dict[str, list[float]]:
    """Seconds of both fits along one axis; a fit is left out once one took longer than `most`."""
    found: dict[str, list[float]] = {"default pool": [], "data alone": []}
    for shape in panels.values():
        panel = drawn(*shape)
        for name, beliefs in (("default pool", "default"), ("data alone", None)):
            before = found[name][-1:] or [0.0]
            took = float("nan") if before[0] > most else seconds(partial(fit, panel, beliefs))
            found[name].append(took)
    return found


def fit(panel: Panel, beliefs: str | None) -> op.GaussianPool:
    """Fit a pool."""
    return op.GaussianPool(beliefs=beliefs).fit(*panel)


def figures() -> dict[str, tuple[list[float], dict[str, list[float]]]]:
    """What the picture shows, by axis."""
    t, n, m, k = USUAL
    axes = {
        "events, with 20 experts": {float(e): (e, n, m, k) for e in EVENTS},
        "experts, on 2,000 events": {float(e): (t, e, m, k) for e in EXPERTS},
        "share missing, 2,000 x 20": {float(s): (t, n, s, k) for s in MISSING},
        "classes, 2,000 x 20": {float(c): (t, n, m, c) for c in CLASSES},
    }
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", op.OpinionPoolWarning)
        op.GaussianPool().fit(*drawn(100, 3, 0.0, 2))
        return {name: ([*panels], measured(panels, 5.0)) for name, panels in axes.items()}


def draw(found: dict[str, tuple[list[float], dict[str, list[float]]]]) -> None:
    """One picture of four panels with one scale of seconds."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(11, 3.4), layout="constrained")
    panels = drawing.subplots(1, len(found), sharey=True)
    for axes, (name, (at, lines)) in zip(panels, found.items(), strict=True):
        # What is present has a logarithm where nothing, or all, is missing.
        x = [1.0 - share for share in at] if name.startswith("share") else at
        for label, values in lines.items():
            axes.plot(x, values, marker="o", markersize=3, label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(3e-4, 10.0)
        axes.set_xlabel("share present, 2,000 x 20" if name.startswith("share") else name)
        axes.grid(alpha=0.3)
    panels[0].axvline(MOST_EVENTS, color="grey", linestyle=":")
    panels[0].text(MOST_EVENTS, panels[0].get_ylim()[1], " sample: 20,000 events", fontsize=7, va="top")
    panels[1].axvline(MOST_FORECASTS / USUAL[0], color="grey", linestyle=":")
    panels[1].text(MOST_FORECASTS / USUAL[0], 0.0005, "sample: 2,000,000 forecasts ", fontsize=7, ha="right", va="top")
    panels[3].set_xticks(CLASSES, [str(k) for k in CLASSES])
    panels[3].minorticks_off()
    panels[0].set_ylabel("processor seconds")
    panels[0].legend(fontsize=8)
    drawing.savefig(FIGURE, metadata={"Date": None})


def exponent(at: list[float], seconds: list[float]) -> float:
    """The power with which seconds grow over the upper half of what was measured, NaN where that is less than three."""
    known = [(np.log(x), np.log(s)) for x, s in zip(at, seconds, strict=True) if s == s]
    upper = known[len(known) // 2 :]
    return float(np.polyfit(*np.array(upper).T, 1)[0]) if len(upper) > 2 else float("nan")


def rows() -> Iterator[Row]:
    """Measure and draw; yield how seconds grow along each axis."""
    found = figures()
    draw(found)
    for name, (at, lines) in found.items():
        axis = name.partition(",")[0]
        for line, values in lines.items():
            known = [each for each in values if each == each]
            told = f"{known[0]:.3g} to {known[-1]:.3g} s"
            if axis in POWERS:
                power, most = exponent(at, values), POWERS[axis]
                yield Row(f"{line}, {name}: power", f"<= {most:g}", f"{power:.2f}", told, kept=power <= most)
            elif line == "default pool":
                times = max(known) / known[0]
                what = f"{line}, {name}: at most, of none missing"
                yield Row(what, f"<= {INCOMPLETE:g} x", f"{times:.2f} x", told, kept=times <= INCOMPLETE)
