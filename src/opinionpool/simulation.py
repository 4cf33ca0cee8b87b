"""Forecasts and outcomes drawn from the model (5), (9); model.md, section 3, for more than two classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.features import Parts
from opinionpool.logodds import Array


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
    """
    k, n = len(classes), len(parts.contrast)
    p = np.broadcast_to(logodds.class_probabilities(prior, k), (events, k))
    rng = np.random.default_rng(seed)
    happened = (rng.random(events)[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    noise = parts.dependence.correlate(rng.standard_normal((events, k, n))) * (parts.spread / np.sqrt(2.0))
    ratios = logodds.prior_log_ratios(p)[:, None, :] + bias
    ratios = ratios + parts.contrast[:, None] * logodds.signature(k)[happened][:, None, :]
    ratios = ratios + np.swapaxes(noise[:, 1:] - noise[:, :1], 1, 2)
    said = logodds.softmax(ratios)
    return (said[..., 1] if k == 2 else said), np.array(classes)[happened]
