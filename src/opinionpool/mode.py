"""The most probable coefficients of a log pool under normal beliefs, and how well the beliefs predict (evidence)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.logodds import Array
from opinionpool.multinomial import Likelihood

_STEPS = 50
_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Mode:
    """A posterior mode under independent standard normal beliefs.

    Attributes
    ----------
    coefficients : ndarray, shape (P,)
    evidence : float
        Laplace's approximation to the log probability of the outcomes.
    precision : ndarray, shape (R, R)
        Of the coefficients in `basis`; outside it they are as they were believed.
    basis : ndarray or None, shape (P, R)
        Orthonormal; None if it is the identity.
    """

    coefficients: Array
    evidence: float
    precision: Array
    basis: Array | None = None

    @property
    def covariance(self) -> Array:
        """Covariance of the coefficients given the outcomes, by Laplace's approximation, (P, P)."""
        within = np.linalg.inv(self.precision)
        if self.basis is None:
            return np.asarray(within)
        return np.eye(len(self.basis)) + self.basis @ (within - np.eye(len(within))) @ self.basis.T


def posterior_mode(
    design: Array,
    outcomes: npt.NDArray[np.intp],
    offset: Array,
    weight: Array,
    start: Array | None = None,
) -> Mode:
    """The mode of standard normal coefficients given outcomes whose log-ratios are offset + design'coefficients.

    Parameters
    ----------
    design : ndarray, shape (T, P, K - 1)
    outcomes : ndarray of int, shape (T,)
    offset : ndarray, shape (T, K - 1)
    weight : ndarray, shape (T,)
        Frequencies.
    start : ndarray, shape (P,), optional
        Where to begin; the answer does not depend on it.
    """
    t, p, d = design.shape
    if p > t * d:
        # Coefficients that no event sees stay at 0: solve among the others.
        rows = np.swapaxes(design, 1, 2).reshape(t * d, p)
        basis = np.linalg.qr(rows.T)[0]
        seen = (rows @ basis).reshape(t, d, -1).swapaxes(1, 2)
        found = posterior_mode(seen, outcomes, offset, weight)
        return Mode(basis @ found.coefficients, found.evidence, found.precision, basis)
    likelihood = Likelihood.of(design, outcomes, offset, weight, intercept=False)
    theta = np.zeros(p) if start is None else start
    value = likelihood.value(theta)
    cost = likelihood.events * value.loss + theta @ theta / 2
    for _ in range(_STEPS):
        precision = likelihood.events * value.hessian + np.eye(p)
        gradient = likelihood.events * value.gradient + theta
        step = np.linalg.solve(precision, gradient)
        decrease = float(gradient @ step)
        if decrease < _TOLERANCE:
            # So close, a whole step squares what is left.
            theta, cost = theta - step, cost - decrease / 2
            break
        length = 1.0
        while True:
            trial = theta - length * step
            value = likelihood.value(trial)
            tried = likelihood.events * value.loss + trial @ trial / 2
            if tried <= cost - 1e-4 * length * decrease or length < 1e-6:
                break
            length /= 2
        theta, cost = trial, tried
    spread = np.log(np.diag(np.linalg.cholesky(precision))).sum()
    return Mode(theta, float(-cost - spread), precision)
