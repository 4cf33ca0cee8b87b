"""Posterior modes under standard normal beliefs, of one likelihood or several, and the evidence for the beliefs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask
from opinionpool.estimation.anchor import Anchor, Quadratic
from opinionpool.estimation.blockwise import Likelihood, Value
from opinionpool.estimation.dual import DualMode, binary_mode

_STEPS = 50
# The evidence is as of one step before the end, and off by about the root of this.
_TOLERANCE = 1e-16
# What rounding may hide of a cost that falls.
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Mode:
    """A posterior mode under independent standard normal beliefs.

    Attributes
    ----------
    coefficients : ndarray, shape (P,)
    evidence : float
        Laplace's approximation to the log probability of the outcomes.
    precision : ndarray, shape (R, R)
        Of the coefficients in `basis` by beliefs and outcomes; outside it they are as they were believed.
    basis : ndarray or None, shape (P, R)
        Orthonormal; None if it is the identity.
    dual, design : DualMode and callable, or None
        Where there are more coefficients than binary events, the mode in terms of these, and no precision; and what
        makes the design, (T, P).
    """

    coefficients: Array
    evidence: float
    precision: Array
    basis: Array | None = None
    dual: DualMode | None = None
    design: Callable[[], Array] | None = None

    @property
    def covariance(self) -> Array:
        """Covariance of the coefficients given the outcomes, by Laplace's approximation, (P, P)."""
        if self.dual is not None and self.design is not None:
            reduction = self.dual.reduction(self.design())
            return np.eye(reduction.shape[1]) - reduction.T @ reduction
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
    anchor: Anchor | None = None,
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
    anchor : Anchor, optional
        Makes the mode steadier; evidence and precision are without it.
    """
    t, p, d = design.shape
    if p > t and d == 1:
        plain = design[..., 0]
        begun = None if start is None else plain @ start
        dual = binary_mode(plain @ plain.T, outcomes, offset[:, 0], weight, begun, anchor)
        return Mode(plain.T @ dual.amounts, dual.evidence, np.empty((0, 0)), dual=dual, design=lambda: plain)
    if p > t * d:
        # Coefficients that no event sees stay at 0: solve among the others.
        rows = np.swapaxes(design, 1, 2).reshape(t * d, p)
        basis = np.linalg.qr(rows.T)[0]
        seen = (rows @ basis).reshape(t, d, -1).swapaxes(1, 2)
        found = posterior_mode(seen, outcomes, offset, weight, anchor=anchor)
        return Mode(basis @ found.coefficients, found.evidence, found.precision, basis)
    pull = None if anchor is None else anchor.quadratic(design)
    return newton_mode(Likelihood.of(design, outcomes, offset, weight, intercept=False), start, pull)


class _Likelihood(Protocol):
    """A likelihood of outcomes."""

    @property
    def size(self) -> int:
        """How many coefficients there are."""

    @property
    def events(self) -> float:
        """The sum of the frequencies."""

    def value(self, coefficients: Array) -> Value:
        """Loss, gradient and Hessian per event."""


@dataclass(frozen=True, eq=False)
class _Single:
    """A likelihood by itself."""

    likelihood: _Likelihood

    def values(self, which: Index, at: Array) -> Values:
        """Of all events."""
        assert len(which) == 1
        value, events = self.likelihood.value(at[0]), self.likelihood.events
        return Values(np.array([events * value.loss]), events * value.gradient[None], events * value.hessian[None])


def newton_mode(likelihood: _Likelihood, start: Array | None, pull: Quadratic | None) -> Mode:
    """The mode under standard normal beliefs; `pull` moves it, and says nothing for beliefs."""
    begun = np.zeros(likelihood.size) if start is None else start
    pulls = None if pull is None else Quadratic(pull.curvature[None], pull.slope[None])
    return modes(_Single(likelihood), begun[None], pulls)[0]


class Values(NamedTuple):
    """Losses of s likelihoods, summed over events, with their derivatives by P coefficients."""

    loss: Array  # (s,)
    gradient: Array  # (s, P)
    hessian: Array  # (s, P, P)


class Likelihoods(Protocol):
    """S likelihoods with P coefficients each."""

    def values(self, which: Index, at: Array) -> Values:
        """Those of s of them, each at coefficients of its own, (s, P)."""


def modes(likelihoods: Likelihoods, starts: Array, pulls: Quadratic | None = None) -> list[Mode]:
    """The modes of S likelihoods under standard normal beliefs, by Newton's method.

    Parameters
    ----------
    likelihoods : Likelihoods
    starts : ndarray, shape (S, P)
        Where to begin; the answers do not depend on it.
    pulls : Quadratic, optional
        With curvatures (S, P, P) and slopes (S, P): they move the modes, and say nothing for or against beliefs.
    """
    s, p = starts.shape
    if pulls is None:
        pulls = Quadratic(np.zeros((s, p, p)), np.zeros((s, p)))
    theta, cost, hessian = np.empty((s, p)), np.empty(s), np.empty((s, p, p))
    at = _Point.of(likelihoods, Quadratic(pulls.curvature + np.eye(p), pulls.slope), np.arange(s), starts)
    for _ in range(_STEPS):
        step = np.asarray(np.linalg.solve(at.hessian, at.gradient[..., None])[..., 0], dtype=np.float64)
        decrease = np.asarray((at.gradient * step).sum(axis=1))
        near = decrease < _TOLERANCE
        if near.any():
            # So close, a whole step squares what is left.
            ended = at.which[near]
            theta[ended], cost[ended] = at.theta[near] - step[near], at.cost[near] - decrease[near] / 2.0
            hessian[ended] = at.hessian[near]
            at, step, decrease = at.some(~near), step[~near], decrease[~near]
        if not len(step):
            break
        at = _moved(likelihoods, at, step, decrease)
    theta[at.which], cost[at.which], hessian[at.which] = at.theta, at.cost, at.hessian
    precision = hessian - pulls.curvature
    spread = np.log(np.einsum("spp->sp", np.linalg.cholesky(precision))).sum(axis=1)
    # A pull differs between beliefs, and says nothing for or against them.
    evidence = (pulls.at(theta) - cost - spread).tolist()
    return [Mode(*each) for each in zip(theta, evidence, precision, strict=True)]


class _Point(NamedTuple):
    """Where some of several searches are, and what their coefficients cost there by outcomes and beliefs."""

    which: Index  # (s,); of the searches
    own: Quadratic  # of s functions; what beliefs, and pulls, cost
    theta: Array  # (s, P)
    cost: Array  # (s,)
    gradient: Array  # (s, P)
    hessian: Array  # (s, P, P)

    @classmethod
    def of(cls, likelihoods: Likelihoods, own: Quadratic, which: Index, theta: Array) -> _Point:
        loss, gradient, hessian = likelihoods.values(which, theta)
        slope = own.gradient(theta)
        cost = loss + ((slope + own.slope) * theta).sum(axis=1) / 2.0
        return cls(which, own, theta, cost, gradient + slope, hessian + own.curvature)

    def some(self, which: Mask | Index) -> _Point:
        """Some of them."""
        return _Point(self.which[which], self.own.some(which), *(part[which] for part in self[2:]))


def _moved(likelihoods: Likelihoods, at: _Point, step: Array, decrease: Array) -> _Point:
    """Where whole steps lead, or shorter ones where these do not help."""
    length = np.ones(len(step))
    tried = _Point.of(likelihoods, at.own, at.which, at.theta - step)
    while True:
        enough = tried.cost <= at.cost - 1e-4 * length * decrease + _ROUNDING * np.abs(at.cost)
        if enough.all():
            return tried
        (short,) = np.nonzero(~enough & (length >= 1e-6))
        if not len(short):
            return tried
        length[short] /= 2.0
        some = at.some(short)
        again = _Point.of(likelihoods, some.own, some.which, some.theta - length[short, None] * step[short])
        for whole, part in zip(tried[2:], again[2:], strict=True):
            whole[short] = part


def harmonic_mean(values: npt.ArrayLike, posterior: npt.ArrayLike) -> float:
    """The harmonic mean of positive values of given probabilities; infinite if all are."""
    inverse = float(np.asarray(posterior) @ (1.0 / np.asarray(values, dtype=np.float64)))
    return 1.0 / inverse if inverse > 0 else np.inf


def posterior_probabilities(evidence: npt.ArrayLike, prior: npt.ArrayLike, rate: float = 1.0) -> Array:
    """Posterior probabilities of alternatives from prior ones and their log evidence, which counts `rate` times."""
    score = rate * np.asarray(evidence) + np.log(prior)
    posterior = np.exp(score - score.max())
    return np.asarray(posterior / posterior.sum())
