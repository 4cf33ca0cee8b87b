"""Missing contrasts as the panel expects them from those present."""

from __future__ import annotations

import numpy as np

from opinionpool.dependence import CommonCorrelation
from opinionpool.features import Parts
from opinionpool.gaussian import heard
from opinionpool.logodds import Array
from opinionpool.patterns import each_pattern


def fill_missing(contrasts: Array, spread: Array, rho: float) -> Array:
    """E[C | the contrasts present] under covariance Sigma alone, whatever the outcome.

    With weights w for the whole panel, w'E[C | C_S] is the pool of the sub-panel S, whose weights are
    2 Sigma_SS⁻¹ mu_S, for mu = Sigma w / 2. So a regression on these learns weights that hold for every sub-panel;
    nothing is made up that the exact sub-panel does not imply. That is so for contrasts without bias. An intercept that
    stands for a bias common to all counts in full in the regression, and in the sub-panel only with the sum of its
    weights; with forecasts missing, the two agree the better the less of such a bias is left.

    Parameters
    ----------
    contrasts : ndarray, shape (T, N, K - 1)
        NaN where missing.
    spread : ndarray, shape (N,)
        sigma of the contrasts.
    rho : float
        Their common correlation.
    """
    present = ~np.isnan(contrasts[..., :1])
    if present.all():
        return contrasts
    scaled = np.where(present, contrasts, 0.0) / spread[:, None]
    number = present.sum(axis=1, keepdims=True)
    expected = rho * scaled.sum(axis=1, keepdims=True) / (1.0 + (number - 1.0) * rho)
    return np.asarray(np.where(present, contrasts, expected * spread[:, None]))


def fill_as_expected(contrasts: Array, parts: Parts) -> Array:
    """E[C | the contrasts present] under the covariance of any panel, (T, N, K - 1); see `fill_missing`."""
    audible = heard(parts)
    spread = np.where(audible, parts.spread, 1.0)
    if isinstance(parts.dependence, CommonCorrelation) and audible.all():
        return fill_missing(contrasts, spread, parts.dependence.rho)
    r, full = parts.dependence.matrix(), np.zeros_like(contrasts)
    for rows, columns in each_pattern(~np.isnan(contrasts[..., 0]) & audible):
        if len(columns) == 0:
            continue
        scaled = contrasts[np.ix_(rows, columns)] / spread[columns][:, None]
        onto = r[:, columns] @ np.linalg.pinv(r[np.ix_(columns, columns)], rcond=1e-10, hermitian=True)
        full[rows] = np.einsum("ns,tsd->tnd", onto * spread[:, None], scaled)
    full[:, ~audible] = 0.0
    return full
