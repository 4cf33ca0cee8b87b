"""Weights and contributions of a Gaussian panel (10), (11), for whichever experts are present."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from opinionpool import logodds
from opinionpool.extremes import Extremes
from opinionpool.features import Parts
from opinionpool.logodds import FLOOR, POOL_FLOOR, Array
from opinionpool.patterns import Mask, Positions
from opinionpool.stated import Stated, blocks


class Settings(NamedTuple):
    """How statements are taken: the floors, and how far extremes are believed."""

    floor: float = FLOOR
    pool_floor: float = POOL_FLOOR
    extremes: Extremes = Extremes()


def heard(parts: Parts) -> Mask:
    """False for experts who say nothing: calibration assessed as 0, or forecasts that never move, (N,)."""
    return np.asarray(parts.spread > 0)


def signal(parts: Parts) -> Array:
    """Mu / sigma, 0 for experts who say nothing, (N,)."""
    return np.asarray(parts.contrast / np.where(heard(parts), parts.spread, 1.0))


def weights_for(parts: Parts, present: Mask) -> Array:
    """W = 2 Sigma_SS^-1 mu_S for the experts S present in each row, 0 elsewhere, (T, N)."""
    audible = heard(parts)
    solved = parts.dependence.solve_present(signal(parts), present & audible)
    return np.asarray(2.0 * solved / np.where(audible, parts.spread, 1.0))


def cell_weights(event: Positions, contrast: Array, spread: Array, rho: float, events: int) -> Array:
    """Weights as `weights_for`, cell by cell, where all experts have one correlation; in time linear in M, (M,).

    Parameters
    ----------
    event : ndarray of int, shape (M,)
    contrast, spread : ndarray, shape (M,)
        Of the expert of each forecast.
    rho : float
        Below 1.
    events : int

    Examples
    --------
    Two experts on the first event, one on the second:

    >>> cell_weights(np.array([0, 0, 1]), np.ones(3), np.full(3, 2**0.5), 0.5, 2).round(4)
    array([0.6667, 0.6667, 1.    ])
    """
    signal = contrast / spread
    number = np.bincount(event, minlength=events)[event]
    total = np.bincount(event, weights=signal, minlength=events)[event]
    shared = rho * total / (1.0 + (number - 1.0) * rho)
    return np.asarray(2.0 * np.where(number > 1, (signal - shared) / (1.0 - rho), signal) / spread)


def pooled(parts: Parts, bias: Array, stated: Stated, shift: Array, settings: Settings) -> Array:
    """Probabilities of the classes, (T, K), from L° + Σ w_i C_i + shift."""
    answers = np.empty(stated.prior.shape)
    for rows in blocks(stated):
        ratios = stated.reference[rows] + _contributions(parts, bias, stated, rows, settings).sum(axis=1) + shift[rows]
        answers[rows] = logodds.pooled_probabilities(ratios, stated.prior[rows], settings.pool_floor)
    return answers


def contributions(parts: Parts, bias: Array, stated: Stated, settings: Settings) -> Array:
    """w_i C_i of all events, 0 where missing, (T, N, K - 1)."""
    added = np.empty((len(stated.prior), len(parts.contrast), stated.classes - 1))
    for rows in blocks(stated):
        added[rows] = _contributions(parts, bias, stated, rows, settings)
    return added


def _contributions(parts: Parts, bias: Array, stated: Stated, rows: slice, settings: Settings) -> Array:
    """w_i C_i of a block of events, 0 where missing, (T, N, K - 1)."""
    prior, reference = stated.prior[rows][:, None, :], stated.reference[rows][:, None, :]
    said = logodds.log_ratios(stated.q[rows], prior, settings.floor) - reference
    absent = logodds.no_options(prior)
    contrasts = settings.extremes.believed(said, absent) - bias
    present = ~np.isnan(contrasts[..., 0])
    if present.all():
        # One pattern needs one solution.
        return np.asarray(weights_for(parts, present[:1])[:, :, None] * contrasts)
    return weights_for(parts, present)[..., None] * np.where(present[..., None], contrasts, 0.0)
