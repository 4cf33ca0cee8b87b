"""The mode of coefficients that all events share, together with others that each group of events has for itself.

Under independent standard normal beliefs, coefficients of different groups meet in the precision only by way of the
shared ones, so that each group's are eliminated by themselves (Schur complement), as for random effects that are nested
(Bates, Mächler, Bolker and Walker, Journal of Statistical Software 67, 2015).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.estimation.anchor import Anchor
from opinionpool.logodds import metric

# Numbers in an array of products, of groups that are summed together.
_PRODUCTS = 1 << 20
_STEPS, _TOLERANCE = 50, 1e-12
# Groups of so many events are summed by a product each.
_EACH = 32


class Both(NamedTuple):
    """Shared coefficients, and those of G groups."""

    shared: Array  # (P,)
    own: Array  # (G, Q)

    def plus(self, length: float, step: Both) -> Both:
        """So much further."""
        return Both(self.shared + length * step.shared, self.own + length * step.own)

    def times(self, other: Both) -> float:
        """The inner product."""
        return float(self.shared @ other.shared + (self.own * other.own).sum())


class _Costs(NamedTuple):
    """What log-ratios cost: their sum over events, and its derivatives by the log-ratios of each."""

    total: float
    slope: Array  # (T, K - 1)
    curvature: Array  # (T, K - 1, K - 1)


@dataclass(frozen=True, eq=False)
class Arrow:
    """A precision I + H of shared coefficients and those of G groups.

    Attributes
    ----------
    root : ndarray, shape (G, Q, Q)
        Lower Cholesky factors of the precisions of the groups' coefficients.
    beside : ndarray, shape (G, Q, P)
        Their inverses times the precision between these and the shared coefficients.
    shared : ndarray, shape (P, P)
        What is left of the precision of the shared coefficients once the others are eliminated.
    """

    root: Array
    beside: Array
    shared: Array

    @classmethod
    def of(cls, shared: Array, beside: Array, own: Array) -> Arrow:
        """From the blocks of H: (P, P), (G, Q, P) and (G, Q, Q)."""
        root = np.linalg.cholesky(own + np.eye(own.shape[1]))
        beside = np.linalg.solve(root, beside)
        flat = beside.reshape(beside.shape[0] * beside.shape[1], len(shared))
        left = shared + np.eye(len(shared)) - flat.T @ flat
        return cls(np.asarray(root, dtype=np.float64), np.asarray(beside, dtype=np.float64), left)

    def solve(self, values: Both) -> Both:
        """The inverse times some values."""
        own = np.linalg.solve(self.root, values.own[..., None])
        shared = np.linalg.solve(self.shared, values.shared - np.einsum("gqp,gqi->p", self.beside, own))
        own = own - (self.beside @ shared)[..., None]
        return Both(np.asarray(shared), np.asarray(np.linalg.solve(np.swapaxes(self.root, 1, 2), own)[..., 0]))

    @property
    def half_log_determinant(self) -> float:
        """Half of the logarithm of the determinant."""
        own = np.log(np.einsum("gqq->gq", self.root)).sum()
        return float(own + np.linalg.slogdet(self.shared)[1] / 2.0)

    @property
    def covariance(self) -> tuple[Array, Array, Array]:
        """The blocks of the inverse: (P, P), (G, Q, P) and (G, Q, Q)."""
        shared = np.asarray(np.linalg.inv(self.shared), dtype=np.float64)
        turned = np.asarray(np.swapaxes(np.linalg.inv(self.root), 1, 2), dtype=np.float64)
        away = turned @ self.beside
        beside = -away @ shared
        return shared, np.asarray(beside), turned @ np.swapaxes(turned, 1, 2) - beside @ np.swapaxes(away, 1, 2)


class GroupedMode(NamedTuple):
    """A posterior mode.

    The evidence is Laplace's approximation to the log probability of the outcomes.
    """

    coefficients: Both
    evidence: float
    precision: Arrow


@dataclass(frozen=True, eq=False)
class GroupedEvents:
    """Outcomes of T events in order of their groups, whose log-ratios are offset + shared and own coefficients' parts.

    Attributes
    ----------
    shared : ndarray, shape (T, K - 1, P)
        The design of the coefficients that all events share.
    own : ndarray, shape (T, K - 1, Q)
        That of the coefficients of each event's group.
    first : ndarray of int, shape (G,)
        Where the events of each group begin; those before are in none.
    outcomes : ndarray of int, shape (T,)
    offset : ndarray, shape (T, K - 1)
    weight : ndarray, shape (T,)
        Frequencies.
    anchor : Anchor or None
        Makes the mode steadier; evidence and precision are without it.
    """

    shared: Array
    own: Array
    first: Index
    outcomes: Index
    offset: Array
    weight: Array
    anchor: Anchor | None = None

    @cached_property
    def sizes(self) -> Index:
        """Events of each group, (G,)."""
        return np.diff(self.first, append=len(self.outcomes))

    def mode(self, start: Both | None = None) -> GroupedMode:
        """The mode by Newton's method; it does not depend on where this begins.

        Examples
        --------
        One event that happened, with a coefficient that all share and one of its group:

        >>> one = np.ones((1, 1, 1))
        >>> events = GroupedEvents(one, one, np.array([0]), np.array([1]), np.zeros((1, 1)), np.ones(1))
        >>> events.mode().coefficients.shared.round(4), events.mode().coefficients.own.round(4)
        (array([0.3374]), array([[0.3374]]))
        """
        p, q = self.shared.shape[2], self.own.shape[2]
        theta = Both(np.zeros(p), np.zeros((len(self.first), q))) if start is None else start
        ratios = self._ratios(theta)
        value = self._costs(ratios, self.anchor)
        cost = value.total + theta.times(theta) / 2.0
        for _ in range(_STEPS):
            gradient = self._gradient(value.slope).plus(1.0, theta)
            step = self._arrow(value.curvature).solve(gradient)
            decrease, moved = gradient.times(step), self._ratios(step)
            if decrease < _TOLERANCE:
                # So close, a whole step squares what is left.
                theta, ratios = theta.plus(-1.0, step), ratios - moved
                break
            length = 1.0
            while True:
                trial, reached = theta.plus(-length, step), ratios - length * moved
                value = self._costs(reached, self.anchor)
                tried = value.total + trial.times(trial) / 2.0
                if tried <= cost - 1e-4 * length * decrease or length < 1e-6:
                    break
                length /= 2.0
            theta, ratios, cost = trial, reached, tried
        value = self._costs(ratios, None)
        precision = self._arrow(value.curvature)
        evidence = -value.total - theta.times(theta) / 2.0 - precision.half_log_determinant
        return GroupedMode(theta, evidence, precision)

    def _ratios(self, theta: Both) -> Array:
        """What coefficients add to the log-ratios, (T, K - 1)."""
        added = self.shared @ theta.shared
        before = int(self.first[0])
        added[before:] += np.einsum("tdq,tq->td", self.own[before:], np.repeat(theta.own, self.sizes, axis=0))
        return np.asarray(added)

    def _costs(self, ratios: Array, anchor: Anchor | None) -> _Costs:
        """What these log-ratios beyond the offset cost."""
        t, d = ratios.shape
        full = np.concatenate([np.zeros((t, 1)), self.offset + ratios], axis=1)
        log_p = full - np.logaddexp.reduce(full, axis=1, keepdims=True)
        p, happened = np.exp(log_p[:, 1:]), np.equal(self.outcomes[:, None], np.arange(1, d + 1))
        total = -float(self.weight @ log_p[np.arange(t), self.outcomes])
        slope = self.weight[:, None] * (p - happened)
        # p (1 - p) and not p - p², for what is nearly certain.
        curvature = -p[:, :, None] * p[:, None, :]
        curvature[:, np.arange(d), np.arange(d)] = p * -np.expm1(log_p[:, 1:])
        curvature *= self.weight[:, None, None]
        if anchor is None:
            return _Costs(total, slope, curvature)
        inner, both = metric(d + 1), anchor.own + anchor.common
        turned, away = ratios @ inner, anchor.distance @ inner
        total += float(both @ (ratios * turned).sum(axis=1) / 2.0 + anchor.common @ (ratios * away).sum(axis=1))
        slope += both[:, None] * turned + anchor.common[:, None] * away
        return _Costs(total, slope, curvature + both[:, None, None] * inner)

    def _gradient(self, slope: Array) -> Both:
        """By the coefficients, from that by the log-ratios."""
        own = np.einsum("tdq,td->tq", self.own, slope)
        return Both(np.einsum("tdp,td->p", self.shared, slope), np.add.reduceat(own, self.first))

    def _arrow(self, curvature: Array) -> Arrow:
        """The precision, from the curvatures (T, K - 1, K - 1) by the log-ratios."""
        p, q = self.shared.shape[2], self.own.shape[2]
        shared = curvature @ self.shared
        beside, own = np.empty((len(self.first), q, p)), np.empty((len(self.first), q, q))
        for groups, rows in self._parts():
            bent = curvature[rows] @ self.own[rows]
            for left, right, found in ((self.own, bent, own), (self.own, shared[rows], beside)):
                found[groups] = _sums(left[rows], right, self.first[groups] - rows.start)
        rows = shared.shape[0] * shared.shape[1]
        return Arrow.of(self.shared.reshape(rows, p).T @ shared.reshape(rows, p), beside, own)

    def _parts(self) -> Iterator[tuple[slice, slice]]:
        """Groups that are summed together, and their events."""
        _, d, q = self.own.shape
        most = max(1, _PRODUCTS // max(d * q * (q + self.shared.shape[2]), 1))
        ends = self.first + self.sizes
        start = 0
        while start < len(self.first):
            stop = max(start + 1, int(np.searchsorted(ends, self.first[start] + most, side="right")))
            yield slice(start, stop), slice(int(self.first[start]), int(ends[stop - 1]))
            start = stop


def _sums(left: Array, right: Array, first: Index) -> Array:
    """Sums of products over the events of each group, (G, Q, M), from (T, K - 1, Q) and (T, K - 1, M)."""
    if len(left) >= _EACH * len(first):
        ends = (*first[1:].tolist(), len(left))
        parts = [(_rows(left[i:j]), _rows(right[i:j])) for i, j in zip(first.tolist(), ends, strict=True)]
        return np.stack([one.T @ other for one, other in parts])
    return np.asarray(np.add.reduceat(np.swapaxes(left, 1, 2) @ right, first))


def _rows(design: Array) -> Array:
    """Events and classes of (T, K - 1, Q) below each other, (T (K - 1), Q)."""
    t, d, q = design.shape
    return design.reshape(t * d, q)
