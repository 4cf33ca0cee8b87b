"""Newton's method for many regressions of the same outcomes at once, and Laplace's approximation about the modes.

A cost is the loss of a multinomial likelihood plus θ'Λθ/2, where Λ is 0 for maximum likelihood, a ridge, or the
precision of a normal prior. Steps that do not lower the cost are halved. The method ends with one whole step when the
cost would fall by less than a tolerance; this step squares the remaining error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask
from opinionpool.blocks import blocks
from opinionpool.estimation.likelihood import Design, Value, gradient, value

# What the cost would fall by in a last step; losses and Hessians are as of one step before the end, and off by about
# the root of this. Then what rounding may hide of a cost that falls, and how many steps are made.
_TOLERANCE, _ROUNDING, STEPS = 1e-16, 1e-13, 50
# The same tolerance of steps with a Hessian from elsewhere, and by how much each must bring the next down.
_NEAR, _FAST = 1e-16, 16.0

# Values at vectors of coefficients (s, P) of some of the searches, by their number.
Loss: TypeAlias = Callable[[Index, Array], Value]


class Optimum(NamedTuple):
    """Results of S searches by Newton's method, each for the minimum of a cost of its own."""

    theta: Array  # (S, P)
    loss: Array  # (S,); of the likelihood alone
    hessian: Array  # (S, P, P); of the likelihood alone
    decrement: Array  # (S,); twice the decrease of the cost in the last step

    @property
    def converged(self) -> Mask:
        """Mask of the searches that converged, (S,)."""
        return np.asarray(self.decrement < _TOLERANCE)


def newton(loss: Loss, penalty: Array, start: Array, steps: int = STEPS, tolerance: float = _TOLERANCE) -> Optimum:
    """Minimise S convex losses plus penalties θ'Λθ/2, Λ = `penalty` (S, P, P), from `start` (S, P).

    Raises a LinAlgError if a Hessian is singular: directions without curvature must be left out beforehand.
    """
    s = len(start)
    found = Optimum(start.copy(), np.zeros(s), np.zeros(penalty.shape), np.zeros(s))
    at = _Point.of(loss, penalty, np.arange(s), start)
    for _ in range(steps):
        precision = at.value.hessian + at.penalty
        step = np.asarray(np.linalg.solve(precision, at.gradient[..., None])[..., 0], dtype=np.float64)
        decrement = np.asarray((at.gradient * step).sum(axis=1))
        near = decrement < tolerance
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
    """State of s searches that are not finished: coefficients, cost, and the cost's derivatives."""

    which: Index  # (s,); numbers of the searches
    penalty: Array  # (s, P, P); Λ of each search
    theta: Array  # (s, P)
    value: Value  # of the likelihood
    cost: Array  # (s,)
    gradient: Array  # (s, P); of the cost

    @classmethod
    def of(cls, loss: Loss, penalty: Array, which: Index, theta: Array) -> _Point:
        """Return the state of the searches `which` at the coefficients `theta` (s, P), by evaluating `loss`."""
        found, slope = loss(which, theta), (penalty @ theta[..., None])[..., 0]
        return cls(which, penalty, theta, found, found.loss + (slope * theta).sum(axis=1) / 2.0, found.gradient + slope)

    def some(self, which: Mask | Index) -> _Point:
        """Return the state of only some of these searches, those in `which`."""
        penalty, theta, cost, gradient = (part[which] for part in (self.penalty, self.theta, self.cost, self.gradient))
        return _Point(self.which[which], penalty, theta, self.value.some(which), cost, gradient)

    def put(self, which: Index, others: _Point) -> None:
        """Replace the state of the searches `which` by that in `others`, in place."""
        ours = (self.theta, *self.value, self.cost, self.gradient)
        theirs = (others.theta, *others.value, others.cost, others.gradient)
        for whole, part in zip(ours, theirs, strict=True):
            whole[which] = part

    def end(self, found: Optimum, step: Array, decrement: Array) -> None:
        """Write results into `found`, after a last `step` (s, P) that saves half of `decrement` (s,) in cost."""
        theta = self.theta - step
        found.theta[self.which] = theta
        found.loss[self.which] = (
            self.cost - decrement / 2.0 - np.einsum("sp,spq,sq->s", theta, self.penalty, theta) / 2.0
        )
        found.hessian[self.which], found.decrement[self.which] = self.value.hessian, decrement


def _moved(loss: Loss, at: _Point, step: Array, decrement: Array) -> _Point:
    """Return the state after the steps `step` (s, P), each halved until the cost falls by a share of `decrement`."""
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
    """Normal priors of coefficients of S regressions: coefficients are mean + root θ, with θ ~ N(0, I)."""

    mean: Array  # (S, Q)
    root: Array  # (S, Q, P)


class Mode(NamedTuple):
    """Mode of one posterior, and Laplace's approximation about it."""

    coefficients: Array  # (P,)
    log_marginal_likelihood: float
    precision: Array  # (P, P)


def posterior_modes(
    design: Design, prior: Prior | None = None, start: Array | None = None, tolerance: float = _TOLERANCE
) -> list[Mode]:
    """The posterior modes of S regressions of the same outcomes, with coefficients prior mean + root θ, θ ~ N(0, I).

    Searches end where a step would lower the cost by at most `tolerance`; precisions and likelihoods then have errors
    of the size of the root of `tolerance`.

    >>> design = Design.of(np.ones((1, 1, 1)), np.array([1]))
    >>> (mode,) = posterior_modes(design)
    >>> mode.coefficients.round(4), round(mode.log_marginal_likelihood, 4)
    (array([0.4011]), -0.7007)
    """
    size, s = (design.size, design.sets) if prior is None else (prior.root.shape[2], len(prior.root))
    begun = np.zeros((s, size)) if start is None else start
    found = newton(loss_along(design, prior), np.tile(np.eye(size), (s, 1, 1)), begun, tolerance=tolerance)
    precision = found.hessian + np.eye(size)
    half_log_determinant = np.log(np.einsum("spp->sp", np.linalg.cholesky(precision))).sum(axis=1)
    score = -found.loss - (found.theta**2).sum(axis=1) / 2.0 - half_log_determinant
    return [Mode(*each) for each in zip(found.theta, score.tolist(), precision, strict=True)]


class Near(NamedTuple):
    """Coefficients near the posterior modes of S regressions, where `modes_near` starts; priors have precisions Λ."""

    theta: Array  # (S, Q)
    pull: Array  # (S, Q); Λ (θ − prior mean)
    covariance: Array  # (S, Q, Q); (H + Λ)⁻¹
    hessian: Array  # (Q, Q), or (S, Q, Q); H of the likelihoods near `theta`


class Modes(NamedTuple):
    """Posterior modes of S regressions, and the posterior covariances there."""

    theta: Array  # (S, Q)
    pull: Array  # (S, Q); Λ (θ − prior mean)
    loss: Array  # (S,); of the likelihood alone
    half_log_determinant: Array  # (S,); of the posterior precision relative to the start's
    near: Array  # (S, Q, Q); posterior covariances with Hessians near the modes
    turn: Array  # (S, Q, Q); identity + `near` times the Hessians at the modes less those Hessians

    def covariance(self, some: Mask) -> Array:
        """Return posterior covariances of the regressions `some`, (s, Q, Q)."""
        return np.asarray(np.linalg.solve(self.turn[some], self.near[some]))


def modes_near(design: Design, start: Near) -> Modes:
    """Return the posterior modes of S regressions, by steps with the Hessian of `start`, which is overwritten."""
    (s, q), at, which = start.theta.shape, start, np.arange(len(start.theta))
    found = Modes(start.theta, start.pull, np.empty(s), np.zeros(s), start.covariance, np.empty((s, q, q)))
    for _ in range(STEPS):
        slow, made, before = ~_chords(design, at), [], np.broadcast_to(at.hessian, at.covariance.shape)
        found.theta[which], found.pull[which] = at.theta, at.pull
        for rows in blocks(len(which), q * q):
            now, some = value(design, at.theta[rows]), which[rows]
            turn = at.covariance[rows] @ (now.hessian - before[rows])
            turn.reshape(-1, q * q)[:, :: q + 1] += 1.0
            found.loss[some], found.turn[some] = now.loss, turn
            found.half_log_determinant[some] += np.linalg.slogdet(turn)[1] / 2.0
            made.append(now.hessian[slow[rows]])
        if not slow.any():
            break
        which = which[slow]
        found.near[which] = np.linalg.solve(found.turn[which], found.near[which])
        at = Near(found.theta[which], found.pull[which], found.near[which], np.concatenate(made))
    return found


def _chords(design: Design, at: Near) -> Mask:
    """Step in place, with unchanged Hessians, while steps converge fast; return a mask of the converged regressions."""
    theta, pull, length = at.theta, at.pull, np.ones((len(at.theta), 1))
    step, decrement, slow = np.zeros_like(theta), np.full(len(theta), np.inf), np.zeros(len(theta), dtype=bool)
    uphill = gradient(design, theta)
    while True:
        # A step is as long as the change of slopes along the last one asks for (Barzilai & Borwein 1988).
        slope, before = uphill + pull, np.maximum(decrement, _NEAR)
        length /= np.clip(1.0 + (step * slope).sum(axis=1) / before, 0.25, 4.0)[:, None]
        step = -(at.covariance @ slope[..., None])[..., 0]
        decrement = -(slope * step).sum(axis=1)
        # Λ times the step.
        stiff = -slope - (step[:, None] @ at.hessian)[:, 0]
        near = np.asarray(decrement < _NEAR)
        slow |= decrement > before / _FAST
        (rows,) = np.nonzero(~near & ~slow)
        if not len(rows):
            theta[near] += step[near]
            pull[near] += stiff[near]
            return near
        some = length[rows]
        while True:
            now = gradient(design, theta[rows] + some * step[rows])
            # The cost is convex: it has fallen unless it rises along the step by more than a part of its first fall.
            rise = (step[rows] * (now + pull[rows] + some * stiff[rows])).sum(axis=1)
            less = rise <= decrement[rows] / 2.0
            if (less | (some[:, 0] < 1e-6)).all():
                break
            some[~less] /= 2.0
        theta[rows] += some * step[rows]
        pull[rows] += some * stiff[rows]
        length[rows], uphill[rows] = some, now


def loss_along(design: Design, prior: Prior | None) -> Loss:
    """Loss as a function of θ, where coefficients are `prior.mean` + `prior.root` θ, or θ itself without a prior."""
    if prior is None:
        return lambda which, theta: value(design.of_some(which), theta)

    def loss(which: Index, theta: Array) -> Value:
        mean, root = prior if len(which) == len(prior.root) else (part[which] for part in prior)
        found = value(design.of_some(which), mean + (root @ theta[..., None])[..., 0])
        turned = np.swapaxes(root, 1, 2)
        return Value(found.loss, (turned @ found.gradient[..., None])[..., 0], turned @ found.hessian @ root)

    return loss


def posterior_probabilities(log_marginal_likelihood: npt.ArrayLike, prior: npt.ArrayLike) -> Array:
    """Return posterior probabilities of alternatives, in proportion to `prior` · exp(`log_marginal_likelihood`)."""
    score = np.asarray(log_marginal_likelihood) + np.log(prior)
    posterior = np.exp(score - score.max())
    return np.asarray(posterior / posterior.sum())
