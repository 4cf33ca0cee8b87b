"""Forecasts and outcomes drawn from the model (5), (9); model.md, section 3, for more than two classes."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.errors import ArgumentError
from opinionpool.features import Parts
from opinionpool.logodds import Array
from opinionpool.stated import spread_prior


def draw(
    parts: Parts,
    bias: Array,
    classes: Sequence[object],
    events: int,
    prior: npt.ArrayLike,
    seed: int | np.random.Generator | None,
) -> tuple[Array, npt.NDArray[np.generic]]:
    """Forecasts (T, N), or (T, N, K) when K > 2, and outcomes (T,), from contrasts on a known scale.

    Noise is drawn for each class and differenced, so that it does not depend on the reference class.

    Raises
    ------
    ArgumentError, ProbabilityError
        If there is no such number of events, or no such prior.
    """
    k, n = len(classes), len(parts.contrast)
    rng = np.random.default_rng(seed)
    p, happened = draw_outcomes(events, prior, k, rng)
    noise = parts.dependence.correlate(rng.standard_normal((len(p), k, n))) * (parts.spread / np.sqrt(2.0))
    ratios = logodds.prior_log_ratios(p)[:, None, :] + bias
    ratios = ratios + parts.contrast[:, None] * logodds.signature(k)[happened][:, None, :]
    ratios = ratios + np.swapaxes(noise[:, 1:] - noise[:, :1], 1, 2)
    said = logodds.softmax(ratios)
    return (said[..., 1] if k == 2 else said), np.array(classes)[happened]


def draw_outcomes(
    events: int, prior: npt.ArrayLike, classes: int, rng: np.random.Generator
) -> tuple[Array, npt.NDArray[np.intp]]:
    """The prior of each event, (T, K), and its outcome, (T,)."""
    try:
        count = operator.index(events)
    except TypeError:
        count = -1
    if count < 0:
        raise ArgumentError(f"the number of events must be a whole number, at least 0, and it is {events!r}")
    p = spread_prior(prior, (count,), classes)
    happened = (rng.random(count)[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    return p, happened
