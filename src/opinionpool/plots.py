"""Drawings of what was learned about a panel, on Matplotlib's Axes: tables in, Axes out; nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.analysis.residuals import SharedErrors
from opinionpool.analysis.weights import WeightTable
from opinionpool.arrays import Array
from opinionpool.atomic import replacing
from opinionpool.errors import OpinionPoolError
from opinionpool.scoring.calibration_band import ReliabilityCurve
from opinionpool.scoring.learning_curve import LearningCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Floats or whole numbers.
Numbers: TypeAlias = npt.NDArray[np.floating[Any] | np.integer[Any]]

# Half the width of a band, in standard errors.
BAND = 1.0
SIZE = (4.8, 4.3)
# The file is the same whenever it is drawn: ids from a fixed salt, no date.
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "lines.linewidth": 1.3,
    "svg.hashsalt": "opinionpool",
    "svg.fonttype": "path",
}
# Colour, line style, marker, filled, of at most seven lines; dark and light alternate.
LOOKS = (
    ("#0b3c8c", "-", "o", True),
    ("#d9730d", "--", "s", False),
    ("#1b7f5c", "-.", "^", True),
    ("#a3186b", ":", "D", False),
    ("#6b6b6b", (0, (5, 1, 1, 1, 1, 1)), "v", True),
    ("#000000", (0, (1, 0.8)), "x", True),
    ("#8a5a00", (0, (8, 2)), "P", False),
)


@dataclass(frozen=True, eq=False)
class Line:
    """One method in a figure of scores.

    Attributes
    ----------
    label : str
    mean : ndarray, shape (P,)
    error : ndarray, shape (P,)
        Standard errors.
    expected : ndarray or None, shape (P,)
        What it comes to with unlimited training data.
    """

    label: str
    mean: Array
    error: Array
    expected: Array | None = None


def figure() -> tuple[Figure, Axes]:
    """A new figure of one column, with its Axes.

    Raises
    ------
    OpinionPoolError
        If Matplotlib is not installed.
    """
    with styled():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        drawing = Figure(figsize=SIZE, layout="constrained")
        FigureCanvasAgg(drawing)
        return drawing, drawing.add_subplot()


def save(drawing: Figure, stem: Path) -> list[Path]:
    """Write a figure as SVG and PNG, the same bytes for the same drawing; their paths."""
    paths = [stem.with_name(f"{stem.name}.svg"), stem.with_name(f"{stem.name}.png")]
    with styled():
        with replacing(paths[0]) as file:
            drawing.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
        # Where things go has been worked out, and is the same for both.
        drawing.set_layout_engine("none")
        with replacing(paths[1]) as file:
            drawing.savefig(file, format="png", dpi=220, metadata={"Software": None})
    return paths


def family(
    axes: Axes,
    x: Numbers,
    curves: Sequence[tuple[str, Array]],
    *,
    labels: tuple[str, str],
    title: str,
    every: int = 1,
) -> Axes:
    """One curve for each value of a parameter, and what the parameter is as the legend's title.

    Parameters
    ----------
    axes : Axes
    x : ndarray, shape (P,)
    curves : sequence of (str, ndarray of shape (P,))
        Legend and values.
    labels : (str, str)
        Of the axes, with units.
    title : str
        Of the legend.
    every : int, default 1
        Points from one marker to the next; the lines start their markers at different points.
    """
    with styled():
        for place, (label, y) in enumerate(curves):
            shift = place * every // max(len(curves), 1)
            axes.plot(x, y, label=label, markevery=(shift, every), **_look(place))
        _finish(axes, labels, title)
    return axes


def scores(axes: Axes, numbers: Numbers, lines: Sequence[Line], *, labels: tuple[str, str]) -> Axes:
    """Mean scores by the number of experts, with bands of `BAND` standard errors and thin lines of expectations.

    Parameters
    ----------
    axes : Axes
    numbers : ndarray, shape (P,)
    lines : sequence of Line
    labels : (str, str)
        Of the axes, with units.
    """
    with styled():
        for place, line in enumerate(lines):
            colour = LOOKS[place][0]
            low, high = line.mean - BAND * line.error, line.mean + BAND * line.error
            axes.fill_between(numbers, low, high, color=colour, alpha=0.13, linewidth=0)
            if line.expected is not None:
                axes.plot(numbers, line.expected, color=colour, linestyle=LOOKS[place][1], linewidth=0.65)
            axes.plot(numbers, line.mean, label=line.label, **_look(place))
        if any(line.expected is not None for line in lines):
            axes.plot([], [], color="#444444", linewidth=0.65, label="thin: known parameters")
        if axes.get_ylim()[0] < 0.0:
            axes.axhline(0.0, color="#888888", linewidth=0.6, zorder=0)
        axes.set_xticks(numbers)
        _finish(axes, labels, None)
    return axes


@contextmanager
def styled() -> Iterator[None]:
    """The style that all drawings share, for as long as one is drawn.

    Raises
    ------
    OpinionPoolError
        If Matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context
    except ImportError:
        raise OpinionPoolError("drawing needs Matplotlib; get it with pip install 'opinionpool[paper]'") from None
    with rc_context(STYLE):
        yield


def _look(place: int) -> dict[str, Any]:
    colour, style, marker, filled = LOOKS[place]
    return {
        "color": colour,
        "linestyle": style,
        "marker": marker,
        "markersize": 4.6 if filled else 6.0,
        "markerfacecolor": colour if filled else "none",
        "markeredgewidth": 0.9,
    }


def _finish(axes: Axes, labels: tuple[str, str], title: str | None) -> None:
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    axes.grid(visible=True, color="#e4e4e4", linewidth=0.5)
    count = len(axes.get_legend_handles_labels()[1])
    axes.figure.legend(loc="outside lower center", ncols=3 if count > 4 else 2, title=title)
    axes.margins(x=0.02)


POOL, OTHER, QUIET = LOOKS[0][0], LOOKS[1][0], "#777777"
# Fewer experts than this leave room for numbers in the cells of a heat map.
LEGIBLE = 13


def weights_plot(axes: Axes, table: WeightTable) -> Axes:
    """Weights with their intervals, the largest on top.

    Parameters
    ----------
    axes : Axes
    table : WeightTable
        From `opinionpool.report.answers.weight_table`.

    Returns
    -------
    Axes
    """
    with styled():
        y = np.arange(len(table.experts))[::-1]
        known = np.isfinite(table.low)
        axes.hlines(y[known], table.low[known], table.high[known], color=POOL, alpha=0.5, linewidth=2)
        axes.plot(table.weight, y, "o", color=POOL, markersize=4.5)
        axes.axvline(0.0, color=QUIET, linewidth=0.8, zorder=0)
        axes.set_yticks(y, [_plain(name) for name in table.experts])
        axes.set_xlabel(f"Weight and {table.level:.0%} interval" if known.any() else "Weight")
        axes.grid(visible=True, axis="x", color="#e4e4e4", linewidth=0.5)
        axes.set_ylim(-0.7, len(y) - 0.3)
    return axes


def correlation_plot(axes: Axes, errors: SharedErrors) -> Axes:
    """Correlations of errors as shades, from -1 (red) to 1 (blue), with numbers where there is room.

    Parameters
    ----------
    axes : Axes
    errors : SharedErrors
        From `opinionpool.analysis.residuals.shared_errors`, which puts the experts in cluster order.
    """
    with styled():
        n = len(errors.experts)
        image = axes.imshow(errors.correlation, cmap="RdBu", vmin=-1.0, vmax=1.0)
        names = [_plain(name) for name in errors.experts]
        axes.set_xticks(range(n), names, rotation=90)
        axes.set_yticks(range(n), names)
        axes.tick_params(length=0)
        if n < LEGIBLE:
            for i, j in np.ndindex(n, n):
                r = float(errors.correlation[i, j])
                colour = "white" if abs(r) > 0.6 else "black"
                axes.text(j, i, f"{r:.2f}".replace("-", "−"), ha="center", va="center", fontsize=7, color=colour)
        if axes.figure is not None:
            axes.figure.colorbar(image, ax=axes, label="Correlation of errors", shrink=0.8)
    return axes


def reliability_plot(axes: Axes, curve: ReliabilityCurve, model: tuple[Array, Array] | None = None) -> Axes:
    """How often events happened by forecast probability, with a consistency band.

    Parameters
    ----------
    axes : Axes
    curve : ReliabilityCurve
        From `opinionpool.scoring.calibration_band.reliability_curve`.
    model : pair of ndarray, shape (P,), optional
        Forecast probabilities, and what one expert's forecast makes of them (14), from
        `opinionpool.report.answers.recalibrated`.
    """
    with styled():
        axes.fill_between(
            100 * curve.probability, 100 * curve.low, 100 * curve.high, color=POOL, alpha=0.15, linewidth=0,
            label=f"consistency band ({curve.level:.0%})",
        )  # fmt: skip
        axes.plot([0, 100], [0, 100], color=QUIET, linewidth=0.8, linestyle=":", label="perfect calibration")
        marker = "o" if len(curve.probability) == 1 else None
        label = "observed (isotonic)"
        axes.plot(100 * curve.probability, 100 * curve.frequency, color=POOL, linewidth=1.8, marker=marker, label=label)
        if model is not None:
            axes.plot(100 * model[0], 100 * model[1], color=OTHER, linestyle="--", label="equation 14")
        axes.set(xlim=(0, 100), ylim=(0, 100), xlabel="Forecast (%)", ylabel="Observed frequency (%)", aspect="equal")
        axes.grid(visible=True, color="#e4e4e4", linewidth=0.5)
        axes.legend(loc="best")
    return axes


def learning_plot(axes: Axes, curve: LearningCurve) -> Axes:
    """Mean scores out of sample by how many resolved events were learned from, beside the simple average.

    Parameters
    ----------
    axes : Axes
    curve : LearningCurve
        From `opinionpool.scoring.learning_curve.learning_curve`.
    """
    with styled():
        low, high = curve.average + curve.low, curve.average + curve.high
        band = f"average plus the pool's gain ({curve.level:.0%} band)"
        axes.fill_between(curve.sizes, low, high, color=POOL, alpha=0.15, linewidth=0, label=band)
        axes.plot(curve.sizes, curve.score, color=POOL, marker="o", markersize=4, label=curve.pool)
        axes.plot(curve.sizes, curve.average, color=OTHER, linestyle="--", label="simple average")
        axes.set_xscale("symlog", linthresh=5.0)
        last = int(curve.sizes[-1])
        ticks = [size for size in curve.sizes.tolist() if size == last or size <= last / 1.8]
        axes.set_xticks(ticks, [f"{size:,}" for size in ticks])
        axes.minorticks_off()
        axes.set_xlabel("Resolved events learned from")
        axes.set_ylabel("Mean log score\n(0 = uninformed, 1 = perfect)")
        axes.grid(visible=True, color="#e4e4e4", linewidth=0.5)
        axes.legend(loc="best")
    return axes


def _plain(name: str) -> str:
    """A name that is not read as a formula."""
    return name.replace("$", r"\$")
