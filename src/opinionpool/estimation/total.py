"""The posterior of the sum of the weights as it is: where outcomes almost follow from forecasts, it is far from normal.

Larger sums then fit the outcomes as well as the most probable one, and smaller ones do not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array
from opinionpool.estimation.coefficients import Coefficients, covariance_rows
from opinionpool.estimation.regression import Observations, Regression

# Values that are looked at: so many, and so many standard deviations to both sides, the closer the nearer. Of a normal
# posterior they give the variance of either half to 1%.
VALUES, REACH, CLOSENESS = 15, 8.0, 3.0
# A value less probable than this is left out.
LEAST = 1e-4


class Sums(NamedTuple):
    """Coefficients along the sum of the weights, M values of it."""

    values: Array  # (M, K - 1 + N); intercept and weights
    probability: Array  # (M,)


def along_sum(regression: Regression, found: Coefficients) -> Sums:
    """The posterior of the sum as weights move in proportion, all else being most probable given the sum.

    Parameters
    ----------
    regression : Regression
        With the beliefs that coefficients were found with.
    found : Coefficients
        The most probable ones.
    """
    covariance, observed = found.mode.covariance, regression.observed
    d = observed.contrasts.shape[2]
    error = np.sqrt(float(covariance[0, 0]))
    direction = covariance[:, 0] / error
    step = REACH * np.sinh(np.linspace(-CLOSENESS, CLOSENESS, VALUES)) / np.sinh(CLOSENESS)
    along = found.root @ direction
    theta = found.mode.coefficients + step[:, None] * direction
    start, slope = (each[:d] + np.einsum("tnd,n->td", observed.contrasts, each[d:]) for each in (found.values, along))
    likelihood = _log_likelihoods(observed, observed.offset + start, slope, step)
    log_density = likelihood - (theta**2).sum(axis=1) / 2.0
    density = np.exp(log_density - log_density.max()) * np.gradient(step)
    kept = density > LEAST * density.sum()
    return Sums(found.values + step[kept, None] * along, density[kept] / density[kept].sum())


def given_sum(found: Coefficients) -> Array:
    """Covariance of intercept and weights given the sum, as they move in proportion, (K - 1 + N, K - 1 + N)."""
    covariance = found.mode.covariance
    given = covariance[1:, 1:] - np.outer(covariance[1:, 0], covariance[1:, 0]) / covariance[0, 0]
    # As the product of rows no variance is below 0, however little is left.
    rows = covariance_rows(given) @ found.root[:, 1:].T
    return np.asarray(rows.T @ rows)


def _log_likelihoods(observed: Observations, start: Array, slope: Array, step: Array) -> Array:
    """Of log-ratios start + step slope, (M,)."""
    found, rows = np.empty(len(step)), np.arange(len(start))
    # How far each class is from the one that happened, which adds 1 to the sum.
    start, slope = (np.concatenate([np.zeros((len(start), 1)), each], axis=1) for each in (start, slope))
    start, slope = (each - each[rows, observed.outcomes][:, None] for each in (start, slope))
    others = np.arange(start.shape[1]) != observed.outcomes[:, None]
    start, slope = start[others].reshape(len(start), -1), slope[others].reshape(len(start), -1)
    for i, far in enumerate(step.tolist()):
        found[i] = -(observed.weight @ np.logaddexp(0.0, _total(start + far * slope)))
    return found


def _total(ratios: Array) -> Array:
    """Logarithms of the sums of exponentials, (T,), of (T, D)."""
    if ratios.shape[1] == 1:
        return ratios[:, 0]
    top = ratios.max(axis=1)
    return np.asarray(top + np.log(np.exp(ratios - top[:, None]).sum(axis=1)))
