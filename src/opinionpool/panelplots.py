"""Drawings of what was learned about a panel, on Matplotlib's Axes: tables in, Axes out; nothing is computed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opinionpool.consistency import ReliabilityCurve
from opinionpool.learningcurve import LearningCurve
from opinionpool.logodds import Array
from opinionpool.paneltables import WeightTable
from opinionpool.plots import LOOKS, styled
from opinionpool.sharederrors import SharedErrors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["correlation_plot", "learning_plot", "reliability_plot", "weights_plot"]

POOL, OTHER, QUIET = LOOKS[0][0], LOOKS[1][0], "#777777"
# Fewer experts than this leave room for numbers in the cells of a heat map.
LEGIBLE = 13


def weights_plot(axes: Axes, table: WeightTable) -> Axes:
    """Weights with their intervals, the largest on top.

    Parameters
    ----------
    axes : Axes
    table : WeightTable
        From `opinionpool.paneltables.weight_table`.

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
        From `opinionpool.sharederrors.shared_errors`, which puts the experts in cluster order.
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
    """How often it happened by what was stated, with the band of chance.

    Parameters
    ----------
    axes : Axes
    curve : ReliabilityCurve
        From `opinionpool.consistency.reliability_curve`.
    model : pair of ndarray, shape (P,), optional
        Stated probabilities, and what to believe on hearing them (14), from `opinionpool.paneltables.recalibrated`.
    """
    with styled():
        axes.fill_between(
            100 * curve.stated, 100 * curve.low, 100 * curve.high, color=POOL, alpha=0.15, linewidth=0,
            label=f"what chance allows ({curve.level:.0%})",
        )  # fmt: skip
        axes.plot([0, 100], [0, 100], color=QUIET, linewidth=0.8, linestyle=":", label="as stated")
        marker = "o" if len(curve.stated) == 1 else None
        label = "what happened (isotonic)"
        axes.plot(100 * curve.stated, 100 * curve.frequency, color=POOL, linewidth=1.8, marker=marker, label=label)
        if model is not None:
            axes.plot(100 * model[0], 100 * model[1], color=OTHER, linestyle="--", label="equation 14")
        axes.set(xlim=(0, 100), ylim=(0, 100), xlabel="Stated (%)", ylabel="Happened (%)", aspect="equal")
        axes.grid(visible=True, color="#e4e4e4", linewidth=0.5)
        axes.legend(loc="best")
    return axes


def learning_plot(axes: Axes, curve: LearningCurve) -> Axes:
    """Mean scores out of sample by how many resolved events were learned from, beside the simple average.

    Parameters
    ----------
    axes : Axes
    curve : LearningCurve
        From `opinionpool.learningcurve.learning_curve`.
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
        axes.set_ylabel("Mean log score\n(0 = even chances, 1 = perfect)")
        axes.grid(visible=True, color="#e4e4e4", linewidth=0.5)
        axes.legend(loc="best")
    return axes


def _plain(name: str) -> str:
    """A name that is not read as a formula."""
    return name.replace("$", r"\$")
