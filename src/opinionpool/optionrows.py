"""Resolved events with options of their own as rows of a regression that are alike in all events (model.md, section 3).

In the class-symmetric model a contrast over the K options of an event is mu_i ([k = Y] − 1/K) and isotropic noise. In
coordinates of which the first points from the other options to the outcome, it is mu_i √(2 (1 − 1/K)) plus noise in the
first and noise alone in the other K − 2, all of covariance Sigma between experts and independent of each other. So an
event counts as K − 1 rows, options and their order have gone, and events of any number of options go together. Where
K = 2, the one row is s times the log-odds.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opinionpool.evidence import Design, RowEvidence
from opinionpool.logodds import Array

__all__ = ["option_rows", "turned"]

Index = npt.NDArray[np.intp]


def turned(contrasts: Array, outcome: Index) -> Array:
    """Contrasts over all K options in coordinates of which the first points to the outcome.

    Parameters
    ----------
    contrasts : ndarray, shape (M, K - 1)
        Log-ratios.
    outcome : ndarray of int, shape (M,)

    Returns
    -------
    ndarray, shape (M, K - 1)
        Its plain inner products are those of log-ratios by the metric.

    Examples
    --------
    >>> turned(np.array([[1.5], [1.5]]), np.array([1, 0])).ravel()
    array([ 1.5, -1.5])
    """
    m, k = len(contrasts), contrasts.shape[1] + 1
    full = np.concatenate([np.zeros((m, 1)), contrasts], axis=1)
    place = np.arange(1, k) - (np.arange(1, k) <= outcome[:, None])
    others = np.take_along_axis(full, place, axis=1)
    own = np.take_along_axis(full, outcome[:, None], axis=1)
    first = (own - others.mean(axis=1, keepdims=True)) * np.sqrt(2.0 * (k - 1) / k)
    return np.concatenate([first, others @ _helmert(k - 1) * np.sqrt(2.0)], axis=1)


def _helmert(k: int) -> Array:
    """Orthonormal columns of k numbers that add up to 0, (k, k - 1)."""
    j = np.arange(1, k)
    below = np.arange(k)[:, None]
    basis = np.where(below < j, 1.0, np.where(below == j, -j, 0.0))
    return np.asarray(basis / np.sqrt(j * (j + 1.0)))


def option_rows(
    event: Index, expert: Index, contrasts: Array, outcomes: Index, weight: Array, sizes: Index, experts: int
) -> RowEvidence:
    """The forecasts on resolved events as evidence without bias, a row for each coordinate.

    Parameters
    ----------
    event, expert : ndarray of int, shape (M,)
    contrasts : ndarray, shape (M, K - 1)
        Of the options, which come first.
    outcomes, sizes : ndarray of int, shape (T,)
        What happened, -1 where not resolved; and how many options there are.
    weight : ndarray, shape (T,)
        Frequencies.
    experts : int
    """
    known = (outcomes >= 0) & (weight > 0)
    counts = np.unique(sizes[known])
    free = np.where(known, sizes - 1, 0)
    first = np.concatenate([[0], np.cumsum(free)[:-1]]) if len(free) else free
    rows, columns, values = [], [], []
    for size in counts.tolist():
        cells = np.flatnonzero(known[event] & (sizes[event] == size))
        own = turned(contrasts[cells, : size - 1], outcomes[event[cells]])
        rows.append((first[event[cells], None] + np.arange(size - 1)).ravel())
        columns.append(np.repeat(expert[cells], size - 1))
        values.append(own.ravel())
    blank = np.empty(0, dtype=np.intp)
    row, column = np.concatenate([blank, *rows]), np.concatenate([blank, *columns])
    order = np.lexsort((column, row))
    # Groups: coordinates of noise, then those that point to the outcome, by the number of options.
    owner = np.repeat(np.arange(len(free)), free)
    leading = np.arange(len(owner)) == first[owner]
    group = np.where(leading, 1 + np.searchsorted(counts, sizes[owner]), 0)
    signature = np.concatenate([[0.0], np.sqrt(2.0 * (1.0 - 1.0 / counts))])
    return RowEvidence(
        row[order],
        column[order],
        np.concatenate([np.empty(0), *values])[order, None],
        group,
        weight[owner],
        experts,
        Design(signature[:, None], biased=False),
    )
