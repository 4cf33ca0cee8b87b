"""Modes under standard normal beliefs, those of several likelihoods side by side, by Newton's method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.estimation.anchor import Quadratic
from opinionpool.estimation.likelihood import add_product

_STEPS = 50
_TOLERANCE = 1e-12
# Rows of a design that are weighted at once, in bytes, so that they stay in the cache.
_BLOCK_BYTES = 1 << 19


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
        buffer = np.empty(max(_rows_at_once(design) * design.shape[1] for design, _ in each))
        gram = np.empty((0, 0))
        for i, (design, root) in enumerate(each):
            # Those that begin at the same log-odds have the same products.
            if i == 0 or design is not each[i - 1][0] or not np.array_equal(size[i], size[i - 1]):
                gram = _weighted_products(design, size[i], buffer)
            gradient[i] = (slope[i] @ design) @ root
            hessian[i] = root.T @ gram @ root
        return Values(loss, gradient, hessian)


def _rows_at_once(design: Array) -> int:
    """Rows of a design that stay in the cache."""
    return int(min(max(1, _BLOCK_BYTES // (8 * max(design.shape[1], 1))), len(design)))


def _weighted_products(design: Array, size: Array, buffer: Array) -> Array:
    """Inner products of the columns of a design (T, Q), its rows multiplied by some size, (Q, Q)."""
    (t, q), rows = design.shape, _rows_at_once(design)
    gram, block = np.zeros((q, q)), buffer[: rows * q].reshape(rows, q)
    for start in range(0, t, rows):
        part = design[start : start + rows]
        add_product(gram, np.multiply(part, size[start : start + rows, None], out=block[: len(part)]))
    return gram


class Found(NamedTuple):
    """A mode, Laplace's approximation to the log probability of the outcomes, and the precision (P, P) there."""

    coefficients: Array
    evidence: float
    precision: Array


def modes(likelihoods: Likelihoods, starts: Array, pulls: Quadratic | None = None) -> list[Found]:
    """The modes of S likelihoods under standard normal beliefs.

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
    return [Found(theta[i], float(evidence[i]), precision[i]) for i in range(s)]


def _moved(
    likelihoods: Likelihoods, left: Index, theta: Array, step: Array, cost: Array, decrease: Array, away: Quadratic
) -> tuple[Array, Array, Values]:
    """Where whole steps lead, or shorter ones where these do not help; what that costs, and the values there."""
    length, trial = np.ones(len(left)), theta - step
    value = likelihoods.values(left, trial)
    tried = value.loss + away.some(left).at(trial)
    while True:
        (short,) = np.nonzero(~(tried <= cost - 1e-4 * length * decrease) & (length >= 1e-6))
        if not len(short):
            return trial, tried, value
        length[short] /= 2.0
        trial[short] = theta[short] - length[short, None] * step[short]
        again = likelihoods.values(left[short], trial[short])
        for whole, part in zip(value, again, strict=True):
            whole[short] = part
        tried[short] = again.loss + away.some(left[short]).at(trial[short])
