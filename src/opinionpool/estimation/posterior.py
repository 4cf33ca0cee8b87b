"""Posterior modes under standard normal beliefs, of one likelihood or several, and the evidence for the beliefs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.estimation.anchor import Anchor, Quadratic
from opinionpool.estimation.dual import DualMode, binary_mode
from opinionpool.estimation.likelihood import TERMS, Likelihood, Value, add_product

_STEPS = 50
# The evidence is as of one step before the end, and off by about the root of this.
_TOLERANCE = 1e-16
# What rounding may hide of a cost that falls.
_ROUNDING = 1e-13
# Rows of a design that are weighted at once, in bytes, so that they stay in the cache.
_BLOCK_BYTES = 1 << 19
# Up to so many columns, several products are faster together than each by its symmetry.
_NARROW = 32


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


@dataclass(frozen=True, eq=False)
class BinaryLikelihoods:
    """S likelihoods of the same T binary outcomes, whose log-odds are offset + design root coefficients."""

    designs: Sequence[Array]  # S times (T, Q), Q of each
    roots: Sequence[Array]  # S times (Q, P)
    offsets: Array  # (S, T)
    sign: Array  # (T,); 1 where the second class happened, else -1
    weight: Array  # (T,); frequencies

    def values(self, which: Index, at: Array) -> Values:
        """Those of s of them, by one exponential of an event each."""
        each = [(self.designs[i], self.roots[i]) for i in which.tolist()]
        margin = np.stack([design @ (root @ theta) for (design, root), theta in zip(each, at, strict=True)])
        margin += self.offsets[which]
        margin *= self.sign
        small = np.exp(-np.abs(margin))
        likelier = 1.0 / (1.0 + small)
        # The probability of what did not happen, precise where it is small.
        other = np.where(margin >= 0, small, 1.0) * likelier
        loss = (np.maximum(-margin, 0.0) - np.log(likelier)) @ self.weight
        slope, size = other * (-self.weight * self.sign), np.sqrt(small * self.weight) * likelier
        gradient, hessian = np.empty(at.shape), np.empty((*at.shape, at.shape[1]))
        places = [i for i, (design, _) in enumerate(each) if i == 0 or design is not each[i - 1][0]]
        for first, end in pairwise((*places, len(each))):
            design = each[first][0]
            products = _weighted_products(design, size[first:end])
            for i in range(first, end):
                root = each[i][1]
                gradient[i] = (slope[i] @ design) @ root
                hessian[i] = root.T @ products[i - first] @ root
        return Values(loss, gradient, hessian)


def _weighted_products(design: Array, size: Array) -> Array:
    """Inner products of the columns of a design (T, Q), its rows multiplied by several sizes, (F, T), as (F, Q, Q)."""
    (t, q), f = design.shape, len(size)
    # Those that begin at the same log-odds have the same products.
    if f > 1 and (size == size[0]).all():
        return np.broadcast_to(_weighted_products(design, size[:1]), (f, q, q))
    products, narrow = np.zeros((f, q, q)), f > 1 and q <= _NARROW
    rows = max(1, min(_BLOCK_BYTES // (8 * q * (f if narrow else 1)), TERMS // q**2 if narrow else t))
    for start in range(0, t, rows):
        part, own = design[start : start + rows], size[:, start : start + rows]
        if narrow:
            products += np.swapaxes((own**2)[..., None] * part, 1, 2) @ part
            continue
        for product, each in zip(products, own, strict=True):
            add_product(product, part * each[:, None])
    return products


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
    own = np.zeros((s, p, p)) if pulls is None else pulls.curvature
    away = Quadratic(np.eye(p) + own, np.zeros((s, p)) if pulls is None else pulls.slope)
    theta, left = np.array(starts, dtype=np.float64), np.arange(s)
    value = likelihoods.values(left, theta)
    cost, information = value.loss + away.at(theta), value.hessian.copy()
    for _ in range(_STEPS):
        away_left = away.some(left)
        gradient = value.gradient + away_left.gradient(theta[left])
        step = np.linalg.solve(value.hessian + away_left.curvature, gradient[..., None])[..., 0]
        decrease = np.einsum("sp,sp->s", gradient, step)
        information[left] = value.hessian
        near = decrease < _TOLERANCE
        # So close, a whole step squares what is left.
        theta[left[near]] -= step[near]
        cost[left[near]] -= decrease[near] / 2.0
        left, step, decrease = left[~near], step[~near], decrease[~near]
        if not len(left):
            break
        theta[left], cost[left], value = _moved(likelihoods, left, theta[left], step, cost[left], decrease, away)
    precision = information + np.eye(p)
    spread = np.log(np.einsum("spp->sp", np.linalg.cholesky(precision))).sum(axis=1)
    # A pull differs between beliefs, and says nothing for or against them.
    evidence = away.at(theta) - (theta**2).sum(axis=1) / 2.0 - cost - spread
    return [Mode(theta[i], float(evidence[i]), precision[i]) for i in range(s)]


def _moved(
    likelihoods: Likelihoods, left: Index, theta: Array, step: Array, cost: Array, decrease: Array, away: Quadratic
) -> tuple[Array, Array, Values]:
    """Where whole steps lead, or shorter ones where these do not help; what that costs, and the values there."""
    length, trial = np.ones(len(left)), theta - step
    value = likelihoods.values(left, trial)
    tried = value.loss + away.some(left).at(trial)
    while True:
        enough = tried <= cost - 1e-4 * length * decrease + _ROUNDING * np.abs(cost)
        (short,) = np.nonzero(~enough & (length >= 1e-6))
        if not len(short):
            return trial, tried, value
        length[short] /= 2.0
        trial[short] = theta[short] - length[short, None] * step[short]
        again = likelihoods.values(left[short], trial[short])
        for whole, part in zip(value, again, strict=True):
            whole[short] = part
        tried[short] = again.loss + away.some(left[short]).at(trial[short])


def harmonic_mean(values: npt.ArrayLike, posterior: npt.ArrayLike) -> float:
    """The harmonic mean of positive values of given probabilities; infinite if all are."""
    inverse = float(np.asarray(posterior) @ (1.0 / np.asarray(values, dtype=np.float64)))
    return 1.0 / inverse if inverse > 0 else np.inf


def posterior_probabilities(evidence: npt.ArrayLike, prior: npt.ArrayLike, rate: float = 1.0) -> Array:
    """Posterior probabilities of alternatives from prior ones and their log evidence, which counts `rate` times."""
    score = rate * np.asarray(evidence) + np.log(prior)
    posterior = np.exp(score - score.max())
    return np.asarray(posterior / posterior.sum())
