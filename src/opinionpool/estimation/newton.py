"""Newton's method for many regressions of the same outcomes at once: modes, and what their posteriors are by Laplace.

A cost is the loss of a multinomial likelihood plus a quadratic function of the coefficients: nothing for maximum
likelihood, a ridge, or the logarithm of a normal prior. Steps that do not lower it are halved, and the method ends one
whole step after the cost would fall by less than a tolerance, when that step squares what is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask
from opinionpool.estimation.likelihood import Design, Value, value

# What the cost would fall by in a last step; losses and Hessians are as of one step before the end, and off by about
# the root of this. Then what rounding may hide of a cost that falls, and how many steps are made.
_TOLERANCE, _ROUNDING, _STEPS = 1e-16, 1e-13, 50

# Values at vectors of coefficients (s, P) of some of the searches, by their number.
Loss: TypeAlias = Callable[[Index, Array], Value]


class Quadratic(NamedTuple):
    """Functions θ'Cθ/2 + g'θ of P coefficients."""

    curvature: Array  # (S, P, P)
    slope: Array  # (S, P)

    def some(self, which: Mask | Index) -> Quadratic:
        """Return some of the functions."""
        return Quadratic(self.curvature[which], self.slope[which])

    def at(self, theta: Array) -> tuple[Array, Array]:
        """Return values (S,) and gradients (S, P) at coefficients (S, P)."""
        bent = (self.curvature @ theta[..., None])[..., 0]
        return ((bent / 2.0 + self.slope) * theta).sum(axis=-1), bent + self.slope

    def through(self, root: Array) -> Quadratic:
        """Return the functions of coefficients from which root (S, P, R) makes these."""
        turned = np.swapaxes(root, 1, 2)
        return Quadratic(turned @ self.curvature @ root, (turned @ self.slope[..., None])[..., 0])


class Optimum(NamedTuple):
    """Where S searches ended."""

    theta: Array  # (S, P)
    loss: Array  # (S,); of the likelihood alone
    hessian: Array  # (S, P, P); of the likelihood alone
    decrement: Array  # (S,); twice what the last step lowered the cost by

    @property
    def converged(self) -> Mask:
        """Which of the searches ended, (S,)."""
        return np.asarray(self.decrement < _TOLERANCE)


def newton(loss: Loss, penalty: Quadratic, start: Array) -> Optimum:
    """Minimise S convex losses plus quadratic penalties from coefficients (S, P); the answer does not depend on them.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a Hessian is singular: directions without curvature must be left out beforehand.

    Examples
    --------
    >>> design = Design.of(np.ones((4, 1, 1)), np.array([1, 1, 1, 0]))
    >>> none = Quadratic(np.zeros((1, 1, 1)), np.zeros((1, 1)))
    >>> newton(lambda _, theta: value(design, theta), none, np.zeros((1, 1))).theta.round(4)
    array([[1.0986]])
    """
    s = len(start)
    found = Optimum(start.copy(), np.zeros(s), np.zeros(penalty.curvature.shape), np.zeros(s))
    at = _Point.of(loss, penalty, np.arange(s), start)
    for _ in range(_STEPS):
        precision = at.value.hessian + at.penalty.curvature
        step = np.asarray(np.linalg.solve(precision, at.gradient[..., None])[..., 0], dtype=np.float64)
        decrement = np.asarray((at.gradient * step).sum(axis=1))
        near = decrement < _TOLERANCE
        if near.all():
            at.end(found, step, decrement)
            return found
        if near.any():
            at.some(near).end(found, step[near], decrement[near])
            at, step, decrement = at.some(~near), step[~near], decrement[~near]
        at = _moved(loss, at, step, decrement)
    at.end(found, np.zeros(at.theta.shape), decrement)
    return found


class _Point(NamedTuple):
    """Where some of several searches are, and what they have found there."""

    which: Index  # (s,); of the searches
    penalty: Quadratic  # of each
    theta: Array  # (s, P)
    value: Value  # of the likelihood
    cost: Array  # (s,)
    gradient: Array  # (s, P); of the cost

    @classmethod
    def of(cls, loss: Loss, penalty: Quadratic, which: Index, theta: Array) -> _Point:
        """Return what there is at coefficients (s, P)."""
        found, (paid, slope) = loss(which, theta), penalty.at(theta)
        return cls(which, penalty, theta, found, found.loss + paid, found.gradient + slope)

    def some(self, which: Mask | Index) -> _Point:
        """Return some of the searches."""
        return _Point(
            self.which[which],
            self.penalty.some(which),
            self.theta[which],
            self.value.some(which),
            self.cost[which],
            self.gradient[which],
        )

    def put(self, which: Index, others: _Point) -> None:
        """Put others in the place of some of the searches."""
        ours = (self.theta, *self.value, self.cost, self.gradient)
        theirs = (others.theta, *others.value, others.cost, others.gradient)
        for whole, part in zip(ours, theirs, strict=True):
            whole[which] = part

    def end(self, found: Optimum, step: Array, decrement: Array) -> None:
        """Write down where last steps (s, P) lead."""
        found.theta[self.which] = self.theta - step
        found.loss[self.which] = self.cost - decrement / 2.0 - self.penalty.at(self.theta - step)[0]
        found.hessian[self.which], found.decrement[self.which] = self.value.hessian, decrement


def _moved(loss: Loss, at: _Point, step: Array, decrement: Array) -> _Point:
    """Return where whole steps lead, or shorter ones where these do not help."""
    length = np.ones(len(step))
    tried = _Point.of(loss, at.penalty, at.which, at.theta - step)
    while True:
        enough = tried.cost <= at.cost - 1e-4 * length * decrement + _ROUNDING * np.abs(at.cost)
        (short,) = np.nonzero(~enough & (length >= 1e-6))
        if not len(short):
            return tried
        length[short] /= 2.0
        some = at.some(short)
        again = _Point.of(loss, some.penalty, some.which, some.theta - length[short, None] * step[short])
        tried.put(short, again)


class Prior(NamedTuple):
    """Normal priors of the coefficients of a design: mean + root θ, and θ ~ N(0, I)."""

    mean: Array  # (S, Q)
    root: Array  # (S, Q, P)


@dataclass(frozen=True, eq=False)
class Mode:
    """A posterior mode under independent standard normal priors, by Laplace's approximation.

    Attributes
    ----------
    coefficients : ndarray, shape (P,)
    log_marginal_likelihood : float
        Logarithm of the probability of the outcomes.
    precision : ndarray, shape (R, R)
        Posterior precision of the coefficients in `basis`; outside it they are as in the prior.
    basis : ndarray or None, shape (P, R)
        Orthonormal; None if it is the identity.
    """

    coefficients: Array
    log_marginal_likelihood: float
    precision: Array
    basis: Array | None = None

    @property
    def covariance(self) -> Array:
        """Posterior covariance of the coefficients, (P, P)."""
        within = np.linalg.inv(self.precision)
        if self.basis is None:
            return np.asarray(within)
        return np.eye(len(self.basis)) + self.basis @ (within - np.eye(len(within))) @ self.basis.T

    def among(self, basis: Array) -> Mode:
        """Return the mode of coefficients (P,) of which events see those along an orthonormal basis, (P, R), alone."""
        return Mode(basis @ self.coefficients, self.log_marginal_likelihood, self.precision, basis)


def posterior_modes(
    design: Design,
    prior: Prior | None = None,
    start: Array | None = None,
    pull: Quadratic | None = None,
) -> list[Mode]:
    """Return the modes of S regressions of the same outcomes on standard normal coefficients θ.

    Parameters
    ----------
    design : Design
        With Q coefficients.
    prior : Prior, optional
        What θ (S, P) makes of them; they are θ unless given.
    start : ndarray, shape (S, P), optional
        Where to begin; the answers do not depend on it.
    pull : Quadratic, optional
        S functions of the design's coefficients less their prior mean: moves the modes, and is left out of marginal
        likelihoods and precisions.

    Examples
    --------
    >>> design = Design.of(np.ones((1, 1, 1)), np.array([1]))
    >>> (mode,) = posterior_modes(design)
    >>> mode.coefficients.round(4), round(mode.log_marginal_likelihood, 4)
    (array([0.4011]), -0.7007)
    """
    if prior is not None:
        pull = None if pull is None else pull.through(prior.root)
        if min(2 * prior.root.shape[2], len(design.outcomes) * design.free / 2) <= design.size:
            # Few coefficients, or few events: a design for each takes less than products of each Hessian with roots.
            design, prior = design.through(prior.mean, prior.root), None
    size, s = (design.size, design.sets) if prior is None else (prior.root.shape[2], len(prior.root))
    pull = Quadratic(np.zeros((s, size, size)), np.zeros((s, size))) if pull is None else pull
    begun = np.zeros((s, size)) if start is None else start
    found = newton(loss_along(design, prior), Quadratic(pull.curvature + np.eye(size), pull.slope), begun)
    precision = found.hessian + np.eye(size)
    half_log_determinant = np.log(np.einsum("spp->sp", np.linalg.cholesky(precision))).sum(axis=1)
    score = -found.loss - (found.theta**2).sum(axis=1) / 2.0 - half_log_determinant
    return [Mode(*each) for each in zip(found.theta, score.tolist(), precision, strict=True)]


def loss_along(design: Design, prior: Prior | None) -> Loss:
    """Return the losses by θ."""
    if prior is None:
        return lambda which, theta: value(design.of_some(which), theta)

    def loss(which: Index, theta: Array) -> Value:
        mean, root = prior if len(which) == len(prior.root) else (part[which] for part in prior)
        found = value(design.of_some(which), mean + (root @ theta[..., None])[..., 0])
        turned = np.swapaxes(root, 1, 2)
        return Value(found.loss, (turned @ found.gradient[..., None])[..., 0], turned @ found.hessian @ root)

    return loss


def posterior_probabilities(log_marginal_likelihood: npt.ArrayLike, prior: npt.ArrayLike, rate: float = 1.0) -> Array:
    """Return posterior probabilities of alternatives, proportional to prior · exp(rate · log marginal likelihood)."""
    score = rate * np.asarray(log_marginal_likelihood) + np.log(prior)
    posterior = np.exp(score - score.max())
    return np.asarray(posterior / posterior.sum())
