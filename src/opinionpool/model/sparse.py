"""Pooling forecasts cell by cell, without an array of events x experts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError
from opinionpool.forecasts import BLOCK, Forecasts
from opinionpool.model.contrasts import Batch, base_rate_shift, contrasts
from opinionpool.model.panel import Panel
from opinionpool.model.pooling_panel import PoolingPanel
from opinionpool.names import places
from opinionpool.priors import spread_prior


def pool_cells(
    panel: PoolingPanel, forecasts: Forecasts, prior: npt.ArrayLike = 0.5, base_rate: npt.ArrayLike | None = None
) -> Array:
    """Pooled probability of every event, as `Panel.pool` gives it for the dense array of forecasts.

    Parameters
    ----------
    panel : PoolingPanel
    forecasts : Forecasts
        By experts of the panel, in any order; their own priors are not looked at.
    prior, base_rate : float or array_like, shape (T,), or (K,), (T, K) when K > 2
        As for `Panel.pool`.

    Returns
    -------
    ndarray, shape (T,), or (T, K) when K > 2

    Raises
    ------
    ExpertError, ArgumentError
        If an expert is not in the panel, or events have options of their own and the panel has biases.

    Examples
    --------
    >>> panel = Panel.exchangeable(3, correlation=0.5, names=["ann", "bob", "cat"])
    >>> f = Forecasts.from_array([[0.7, 0.8], [float("nan"), 0.6]], experts=["cat", "ann"])
    >>> pool_cells(panel, f).round(4)
    array([0.8159, 0.6   ])
    """
    experts = places(forecasts.experts, panel.names)[forecasts.expert_index]
    if forecasts.options is not None:
        panel = for_options(panel, forecasts.classes)
    event = forecasts.event_index
    informative = panel.informative[experts]
    weights = panel.parts.cell_weights(event[informative], experts[informative], len(forecasts.events))
    if weights is None:
        return _pool_blocks(panel, forecasts, experts, prior, base_rate)
    return _pool_by_cell(panel, forecasts, experts, weights, prior, base_rate)


def for_options(panel: PoolingPanel, slots: tuple[object, ...]) -> Panel:
    """The same weights for events with other numbers of options.

    Raises
    ------
    ArgumentError
        If the panel has biases, which are those of classes that all events share.
    """
    if not isinstance(panel, Panel) or panel.bias.any():
        raise ArgumentError(
            f"this panel has biases for the classes {panel.classes}, and these events have options of their own"
        )
    if slots == panel.classes:
        return panel
    settings = panel.settings._replace(extremes=replace(panel.settings.extremes, centre=None))
    return Panel.from_parts(panel.parts, 0.0, panel.names, slots, settings)


def _pool_by_cell(
    panel: PoolingPanel,
    forecasts: Forecasts,
    experts: npt.NDArray[np.intp],
    weights: Array,
    prior: npt.ArrayLike,
    base_rate: npt.ArrayLike | None,
) -> Array:
    """In time linear in the number of forecasts; weights are of those of informative experts."""
    t, k = len(forecasts.events), len(panel.classes)
    p = spread_prior(prior, (t,), k)
    batch = Batch(np.empty((t, 0)), p, logodds.prior_log_ratios(p), (t,))
    floor, pool_floor, extremes = panel.settings
    informative = panel.informative[experts]
    event, expert = forecasts.event_index[informative], experts[informative]
    forecast = contrasts(forecasts.probabilities[informative], p[event], floor, batch.reference[event])
    absent = logodds.no_options(p)
    believed = extremes.subset(expert).believed(forecast, None if absent is None else absent[event])
    beyond = believed - panel.bias_ratios[expert]
    added = np.stack([np.bincount(event, weights=weights * column, minlength=t) for column in beyond.T], axis=-1)
    ratios = batch.reference + added + base_rate_shift(base_rate, batch)
    return batch.shape_answers(logodds.pooled_probabilities(ratios, p, pool_floor))


def _pool_blocks(
    panel: PoolingPanel,
    forecasts: Forecasts,
    experts: npt.NDArray[np.intp],
    prior: npt.ArrayLike,
    base_rate: npt.ArrayLike | None,
) -> Array:
    """Dense blocks of few events, with only those experts who answered one of them."""
    t, k = len(forecasts.events), len(panel.classes)
    p = spread_prior(prior, (t,), k)
    rate = None if base_rate is None else spread_prior(base_rate, (t,), k, "base rate")
    answers = np.empty(t if k == 2 else (t, k))
    for first, last in _spans(forecasts.event_index, t):
        cells = slice(*np.searchsorted(forecasts.event_index, (first, last)))
        present, column = np.unique(experts[cells], return_inverse=True)
        rows = slice(first, last)
        if len(present) == 0:
            present, column = np.zeros(1, dtype=np.intp), np.zeros(0, dtype=np.intp)
        dense = np.full((last - first, len(present), *forecasts.probabilities.shape[1:]), np.nan)
        dense[forecasts.event_index[cells] - first, column.ravel()] = forecasts.probabilities[cells]
        own = p[rows, 1] if k == 2 else p[rows]
        wanted = None if rate is None else rate[rows, 1] if k == 2 else rate[rows]
        answers[rows] = panel.subset(present.tolist()).pool(dense, own, wanted)
    return answers


def _spans(event_index: npt.NDArray[np.intp], events: int) -> Iterator[tuple[int, int]]:
    """Runs of events with at most about `BLOCK` numbers each."""
    crowd = np.bincount(event_index, minlength=events)
    first = width = 0
    for event in range(events):
        width += int(crowd[event])
        if (event + 1 - first) * width > BLOCK and event > first:
            yield first, event
            first, width = event, int(crowd[event])
    if events:
        yield first, events
