"""Style of all drawings, and the figures of the paper, drawn on Axes from given numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.atomic import replacing
from opinionpool.errors import OpinionPoolError
from opinionpool.extras import install

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
    """Scores of one method by number of experts, as drawn in a figure of the paper."""

    label: str  # name in the legend
    mean: Array  # (P,); mean scores
    error: Array  # (P,); standard errors
    expected: Array | None = None  # (P,); expected scores with unlimited training data


def figure() -> tuple[Figure, Axes]:
    """Return a new figure of one column, with its Axes; an OpinionPoolError if Matplotlib is not installed."""
    with styled():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        drawing = Figure(figsize=SIZE, layout="constrained")
        FigureCanvasAgg(drawing)
        return drawing, drawing.add_subplot()


def save(drawing: Figure, stem: Path) -> list[Path]:
    """Write a figure, always the same byte for byte, as SVG and PNG to `stem` with these endings; return both paths."""
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
    """Draw curves (name, values (P,)) over `x`, with a marker at one in `every` points; `title` heads the legend."""
    with styled():
        for place, (label, y) in enumerate(curves):
            shift = place * every // max(len(curves), 1)
            axes.plot(x, y, label=label, markevery=(shift, every), **_look(place))
        _finish(axes, labels, title)
    return axes


def scores(axes: Axes, numbers: Numbers, lines: Sequence[Line], *, labels: tuple[str, str]) -> Axes:
    """Draw mean scores by number of experts, with bands of `BAND` standard errors; expected scores as thin lines."""
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
    """Context with the style of all drawings; an OpinionPoolError if Matplotlib is not installed."""
    try:
        from matplotlib import rc_context
    except ImportError:
        raise OpinionPoolError(
            f"drawing needs Matplotlib; get it with {install('plot')}, and for the paper with {install('paper')}"
        ) from None
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
