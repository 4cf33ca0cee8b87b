"""Plots of panels, answers and comparisons on Matplotlib's Axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from opinionpool.analysis.explanation import Explanation, WeightTable, of_class, steps, weight_table
from opinionpool.analysis.rates import Rates
from opinionpool.analysis.residuals import SharedErrors
from opinionpool.analysis.selection import Dendrogram
from opinionpool.arguments import brief, expect_type
from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError
from opinionpool.labels import UNRESOLVED
from opinionpool.logodds import expit, logit
from opinionpool.model.panel import Panel
from opinionpool.plots.figures import OTHER, POOL, QUIET, styled
from opinionpool.report.charts import Scale, legible, odds
from opinionpool.scoring.compare import AVERAGE, Comparison
from opinionpool.scoring.intervals import LEVEL
from opinionpool.scoring.learning_curve import LearningCurve
from opinionpool.scoring.reliability import ReliabilityCurve, reliability_curve
from opinionpool.scoring.scores import checked

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Fewer experts than this leave room for numbers in the cells of a heat map.
LEGIBLE = 13
GRID: Any = {"visible": True, "color": "#e4e4e4", "linewidth": 0.5}


def _axes(ax: Axes | None, height: float) -> Axes:
    """Return the given Axes, or else Axes of a new figure of `height` inches."""
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(5.2, height), layout="constrained")[1]
    ax.set_axisbelow(True)
    return ax


def weights(fitted: Any, ax: Axes | None = None, *, level: float = 0.9) -> Axes:  # noqa: ANN401 - estimators too
    """Plot the weights with their credible intervals, the largest at the top.

    Parameters
    ----------
    fitted : fitted estimator, its ``state_``, Panel, or WeightTable
        Result of a pool with weights.
    ax : Axes, optional
        Drawn on a new figure if not given.
    level : float, default 0.9
        Probability of each interval; a panel that was not fitted has no intervals.

    Returns
    -------
    Axes

    Raises
    ------
    ArgumentError
        If the pool has no weights.
    OpinionPoolError
        If Matplotlib is not installed.

    Examples
    --------
    >>> from opinionpool.model.panel import Panel
    >>> ax = weights(Panel.exchangeable(3, correlation=0.5, names=["ann", "bob", "cy"]))
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['ann', 'bob', 'cy']
    """
    table = _weight_table(fitted, level)
    with styled():
        ax = _axes(ax, 1.0 + 0.24 * len(table.experts))
        known = _rows(ax, [_plain(name) for name in table.experts], table.weight, table.low, table.high)
        ax.set_xlabel(f"Weight and {table.level:.0%} credible interval" if known else "Weight")
    return ax


def _rows(ax: Axes, names: Sequence[str], value: Array, low: Array, high: Array) -> bool:
    """Draw a row for each name, from the top: a point and its interval; return True if an interval is known."""
    y = np.arange(len(names))[::-1]
    known = np.isfinite(low)
    ax.hlines(y[known], low[known], high[known], color=POOL, alpha=0.5, linewidth=2)
    ax.plot(value, y, "o", color=POOL, markersize=4.5)
    ax.axvline(0.0, color=QUIET, linewidth=0.8, zorder=0)
    ax.set_yticks(y, names)
    ax.grid(axis="x", **GRID)
    ax.set_ylim(-0.7, len(y) - 0.3)
    return bool(known.any())


def _weight_table(fitted: Any, level: float) -> WeightTable:  # noqa: ANN401
    if isinstance(fitted, WeightTable):
        return fitted
    if isinstance(fitted, Panel):
        order = np.argsort(-fitted.weights, kind="stable")
        unknown = np.full(len(fitted), np.nan)
        names = tuple(fitted.names[i] for i in order.tolist())
        return WeightTable(names, fitted.weights[order], unknown, unknown, level)
    state = getattr(fitted, "state_", fitted)
    table = weight_table(state, level) if hasattr(state, "weights") else None
    if table is None:
        raise ArgumentError(f"{type(fitted).__name__} has no weights: it treats all experts alike, or is not fitted")
    return table


def correlation(panel: Any, ax: Axes | None = None) -> Axes:  # noqa: ANN401
    """Plot correlations of experts' errors given the outcome, from -1 (red) to 1 (blue), similar experts together.

    Parameters
    ----------
    panel : Panel, fitted GaussianPool, its ``state_``, or SharedErrors
    ax : Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    ArgumentError
        If there is no panel of two or more experts.
    """
    errors = _errors(panel)
    with styled():
        n = len(errors.experts)
        ax = _axes(ax, 2.4 + 0.2 * n)
        image = ax.imshow(errors.correlation, cmap="RdBu", vmin=-1.0, vmax=1.0)
        names = [_plain(name) for name in errors.experts]
        ax.set_xticks(range(n), names, rotation=90)
        ax.set_yticks(range(n), names)
        ax.tick_params(length=0)
        if n < LEGIBLE:
            for i, j in np.ndindex(n, n):
                r = float(errors.correlation[i, j])
                colour = "white" if abs(r) > 0.6 else "black"
                ax.text(j, i, f"{r:.2f}".replace("-", "−"), ha="center", va="center", fontsize=7, color=colour)
        ax.figure.colorbar(image, ax=ax, label="Correlation of errors", shrink=0.8)
    return ax


def _errors(panel: Any) -> SharedErrors:  # noqa: ANN401
    if isinstance(panel, SharedErrors):
        return panel
    state = getattr(panel, "state_", panel)
    own = getattr(state, "panel", state)
    if not isinstance(own, Panel) or len(own) < 2:
        raise ArgumentError(
            "correlations are those of a panel of two or more experts, such as a fitted GaussianPool has"
        )
    matrix = np.asarray(own.parts.matrix())
    order = Dendrogram.of(matrix).order.tolist()
    names = tuple(own.names[i] for i in order)
    off = matrix[~np.eye(len(matrix), dtype=bool)]
    return SharedErrors(experts=names, correlation=matrix[np.ix_(order, order)], common=float(off.mean()), left_out=0)


def reliability(
    probabilities: npt.ArrayLike | ReliabilityCurve, outcomes: npt.ArrayLike | None = None, ax: Axes | None = None
) -> Axes:
    """Plot observed frequencies by forecast probability (isotonic regression), with a band for calibrated forecasts.

    Parameters
    ----------
    probabilities : array_like, shape (T,), or (T, K) for K > 2; or ReliabilityCurve
        Out-of-sample probabilities of events, such as ``comparison.answers["gaussian"]``; NaN where missing.
    outcomes : array_like of int, shape (T,)
        Positions of the classes that happened, such as ``forecasts.outcomes``; -1 where not resolved.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    if isinstance(probabilities, ReliabilityCurve):
        curve = probabilities
    else:
        _check_order(np.asarray(probabilities), np.asarray(outcomes))
        forecasts, given = checked(probabilities, outcomes)  # type: ignore[arg-type]
        codes = np.where(np.isnan(given), UNRESOLVED, given).astype(np.intp)
        curve = reliability_curve(forecasts, codes)
    p = 100 * curve.probability
    with styled():
        ax = _axes(ax, 4.6)
        band = f"consistency band ({curve.level:.0%})"
        ax.fill_between(p, 100 * curve.low, 100 * curve.high, color=POOL, alpha=0.15, linewidth=0, label=band)
        ax.plot([0, 100], [0, 100], color=QUIET, linewidth=0.8, linestyle=":", label="perfect calibration")
        marker = "o" if len(p) == 1 else None
        ax.plot(p, 100 * curve.frequency, color=POOL, linewidth=1.8, marker=marker, label="observed (isotonic)")
        ax.set(xlim=(0, 100), ylim=(0, 100), xlabel="Forecast (%)", ylabel="Observed frequency (%)", aspect="equal")
        ax.grid(**GRID)
        ax.legend(loc="best")
    return ax


def _check_order(given: npt.NDArray[Any], outcomes: npt.NDArray[Any]) -> None:
    """Raise an ArgumentError if outcomes are fractions: then the arguments are in scikit-learn's order."""
    known = outcomes[~np.isnan(outcomes)] if outcomes.dtype.kind == "f" else np.zeros(1)
    if not (known % 1).any():
        return
    what = f"outcomes are positions of classes, 0, 1, ..., and one is {known[known % 1 != 0][0]:g}"
    if np.isin(given, (0, 1)).all():
        what += "; all probabilities are 0 or 1: they stand first here, reliability(probabilities, outcomes)"
    raise ArgumentError(what)


def learning(curve: LearningCurve, ax: Axes | None = None) -> Axes:
    """Plot mean out-of-sample scores by the number of resolved events in the fit, beside the simple average's.

    Parameters
    ----------
    curve : LearningCurve
        From `opinionpool.scoring.learning_curve.learning_curve`.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    expect_type(curve, LearningCurve, "curve")
    with styled():
        ax = _axes(ax, 3.6)
        low, high = curve.average + curve.low, curve.average + curve.high
        band = f"average plus the pool's gain ({curve.level:.0%} band)"
        ax.fill_between(curve.sizes, low, high, color=POOL, alpha=0.15, linewidth=0, label=band)
        ax.plot(curve.sizes, curve.score, color=POOL, marker="o", markersize=4, label=curve.pool)
        ax.plot(curve.sizes, curve.average, color=OTHER, linestyle="--", label="simple average")
        ax.set_xscale("symlog", linthresh=5.0)
        last = int(curve.sizes[-1])
        ticks = [size for size in curve.sizes.tolist() if size == last or size <= last / 1.8]
        ax.set_xticks(ticks, [f"{size:,}" for size in ticks])
        ax.minorticks_off()
        ax.set_xlabel("Resolved events learned from")
        ax.set_ylabel("Mean log score\n(0 = uninformed, 1 = perfect)")
        ax.grid(**GRID)
        ax.legend(loc="best")
    return ax


def gains(comparison: Comparison, ax: Axes | None = None) -> Axes:
    """Plot each pool's mean score less that of the simple average, with intervals.

    Parameters
    ----------
    comparison : Comparison
        From `opinionpool.compare_pools`.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    expect_type(comparison, Comparison, "comparison")
    shown = [pool for pool in comparison.pools if pool.pool != AVERAGE]
    with styled():
        ax = _axes(ax, 1.0 + 0.28 * len(shown))
        low, mean, high = (np.array([getattr(p.over_average, k) for p in shown]) for k in ("low", "mean", "high"))
        known = _rows(ax, [pool.pool for pool in shown], mean, low, high)
        ax.set_xlabel(f"Gain over the simple average{f', {LEVEL:.0%} intervals' if known else ''}")
    return ax


def rates(found: Rates, ax: Axes | None = None, *, rivals: bool = True) -> Axes:
    """Plot shares of events that happen, by group, with their credible intervals, beside other estimates.

    Parameters
    ----------
    found : Rates
        From `opinionpool.rates`, of two classes.
    ax : Axes, optional
    rivals : bool, default True
        Whether other estimates are marked too.

    Returns
    -------
    Axes

    Raises
    ------
    ArgumentError
        If there are more than two classes.
    """
    expect_type(found, Rates, "found")
    if len(found.classes) > 2:
        raise ArgumentError("rates of more than two classes have a share for each, and one is drawn")
    with styled():
        ax = _axes(ax, 1.2 + 0.28 * len(found.groups_))
        low, high = (100 * end for end in found.interval_)
        _rows(ax, [_plain(name) for name in found.groups_], 100 * found.rate_, low, high)
        y = np.arange(len(found.groups_))[::-1]
        for (name, each), mark in zip(found.rivals_.items() if rivals else (), "|x+2", strict=False):
            ax.plot(100 * each.rate, y, mark, color=OTHER, markersize=5, label=name)
        ax.set_xlim(0, 100)
        ax.set_xlabel(f"Events that happen (%), and {found.level:.0%} credible interval")
        if rivals:
            ax.legend(loc="best")
    return ax


def waterfall(explanation: Explanation, ax: Axes | None = None, *, of: object = None) -> Axes:
    """Plot the way from the prior to the answer: each expert's contribution, on an axis that is linear in log-odds.

    Parameters
    ----------
    explanation : Explanation
        From `opinionpool.explain` or `opinionpool.explain_event`, by a pool of log-odds.
    ax : Axes, optional
    of : class label, optional
        Class whose probability is drawn; if not given, the second of two classes, or the most probable of more.

    Returns
    -------
    Axes

    Raises
    ------
    ArgumentError
        If the pool averages probabilities, or there is no such class.
    """
    expect_type(explanation, Explanation, "explanation")
    at = _class_of(explanation, of)
    if explanation.scale != "log-odds":
        raise ArgumentError(f"a waterfall is of log-odds, and the {explanation.pool} pool adds up {explanation.scale}")
    found, answer = steps(explanation, at), of_class(explanation.probability, at)
    start = found[0].before if found else answer
    names = ["prior", *(_plain(step.name) for step in found), "answer"]
    with styled():
        ax = _axes(ax, 1.2 + 0.26 * len(names))
        for y, step in enumerate(found, 1):
            a, b = logit(np.array([step.before, step.after]))
            ax.barh(y, b - a, left=a, height=0.62, color=POOL if b >= a else OTHER)
            ax.plot([a, a], [y - 1, y], color=QUIET, linewidth=0.6, zorder=0)
        ends = logit(np.array([start, answer]))
        ax.plot(ends, [0, len(found) + 1], "|", color="black", markersize=13, markeredgewidth=2)
        if explanation.interval is not None:
            ax.hlines(len(found) + 1, *logit(np.array(explanation.interval)), color=POOL, alpha=0.5, linewidth=2)
        for p, y in ((start, 0), (answer, len(found) + 1)):
            ax.annotate(
                f"{p:.0%}", (float(logit(np.array(p))), y), xytext=(6, 0), textcoords="offset points", va="center"
            )
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        low, high = expit(ax.get_xlim()).tolist()
        ticks = legible(Scale(low, high, 0.0, 400.0, odds))
        ax.set_xticks(logit(np.array(ticks)).tolist(), [f"{100 * p:g}%" for p in ticks])
        ax.set_xlabel("Probability")
        ax.grid(axis="x", **GRID)
    return ax


def _class_of(explanation: Explanation, of: object) -> int:
    if of is None:
        return 1 if explanation.probability.ndim == 0 else int(np.argmax(explanation.probability))
    if not isinstance(of, (str, int, float)) or of not in explanation.classes:
        raise ArgumentError(f"of must be one of the classes {explanation.classes}, and it is {brief(of)}")
    return explanation.classes.index(of)


def _plain(name: str) -> str:
    """Return `name` with dollar signs escaped, so that Matplotlib does not parse it as a formula."""
    return name.replace("$", r"\$")
