"""Which experts err together: correlations of what they say beyond the prior, within an outcome, in cluster order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.errors import LearningError
from opinionpool.forecasts import Forecasts
from opinionpool.learn import LearnedPanel
from opinionpool.logodds import Array
from opinionpool.redundancy import clusters
from opinionpool.residuals import Residuals
from opinionpool.shrunk import PAIR_WORTH

__all__ = ["SharedErrors", "shared_errors"]

# More experts would not be legible.
MOST = 40
# Residuals whose squares add up to less are rounding.
ROUNDING = 1e-16


@dataclass(frozen=True, eq=False)
class SharedErrors:
    """Correlations of the errors of N experts.

    Attributes
    ----------
    experts : tuple of str
        In an order that puts those who err together next to each other.
    correlation : ndarray, shape (N, N)
        Each held to the mean of all pairs as far as the pair has few events in common.
    common : float
        That mean.
    left_out : int
        Experts with forecasts on resolved events who are not shown, because others weigh more.
    """

    experts: tuple[str, ...]
    correlation: Array
    common: float
    left_out: int


def shared_errors(
    forecasts: Forecasts, learned: LearnedPanel, prior: npt.ArrayLike | None = None, most: int = MOST
) -> SharedErrors:
    """Correlations of the errors of the experts, at most `most` of them, those with the largest weights.

    Parameters
    ----------
    forecasts : Forecasts
        What the panel was learned from.
    learned : LearnedPanel
    prior : optional
        As it was given to the fit, if there is one.
    most : int

    Raises
    ------
    LearningError
        If fewer than two experts have forecasts on resolved events that ever differ.

    Examples
    --------
    >>> from opinionpool.learn import learn
    >>> rng = np.random.default_rng(0)
    >>> shared, own = rng.normal(size=(2, 400, 1)), rng.normal(size=(400, 3))
    >>> y = np.arange(400) % 2
    >>> L = 2 * y[:, None] - 1 + np.hstack([3 * shared[0], 3 * shared[0], 0 * shared[0]]) + own
    >>> f = Forecasts.from_array(1 / (1 + np.exp(-L)), y, experts=["ann", "bob", "cat"])
    >>> found = shared_errors(f, learn(f))
    >>> found.experts.index("cat") != 1, bool(found.correlation.min() < 0.2)
    (True, True)
    """
    residuals = Residuals.of(forecasts, learned, prior)
    moving = np.bincount(residuals.expert, (residuals.values**2).sum(axis=1), len(forecasts.experts)) > ROUNDING
    heard = np.flatnonzero(moving & learned.panel.heard)
    if len(heard) < 2:
        raise LearningError("errors are shared by two experts at least whose forecasts of resolved events differ")
    kept = np.sort(heard[np.argsort(-np.abs(learned.weights[heard]), kind="stable")[:most]])
    found, shared = _pairs(residuals, kept)
    off = ~np.eye(len(kept), dtype=bool)
    total = shared[off].sum()
    common = float((found * shared)[off].sum() / total) if total > 0 else 0.0
    worth = PAIR_WORTH + len(kept)
    held = (shared * found + worth * common) / (shared + worth)
    np.fill_diagonal(held, 1.0)
    order = clusters(held).order
    experts = tuple(forecasts.experts[kept[i]] for i in order.tolist())
    return SharedErrors(experts, held[np.ix_(order, order)], common, len(heard) - len(kept))


def _pairs(residuals: Residuals, kept: npt.NDArray[np.intp]) -> tuple[Array, Array]:
    """Correlation of each pair of some experts on the events that both answered, and how many these are."""
    place = np.full(len(residuals.forecasts.experts), -1)
    place[kept] = np.arange(len(kept))
    column = place[residuals.expert]
    chosen = column >= 0
    shape = (len(residuals.forecasts.events), len(kept))
    values, seen = np.zeros((*shape, residuals.values.shape[1])), np.zeros(shape)
    values[residuals.event[chosen], column[chosen]] = residuals.values[chosen]
    seen[residuals.event[chosen], column[chosen]] = 1.0
    products = np.einsum("tnd,tmd->nm", values, values, optimize=True)
    square = (values**2).sum(axis=2).T @ seen
    scale = np.sqrt(square * square.T)
    found = np.where(scale > 0, products / np.where(scale > 0, scale, 1.0), 0.0)
    return np.clip(found, -1.0, 1.0), seen.T @ seen
