"""The penalised likelihood of outcomes given contrasts, and its maximum by Newton's method.

The method ends when the gradient is small and the maximum is known to exist. One pass over the events, in blocks,
serves each step. Where neither data nor penalty determine a direction, no step has a part in it, so that what starts
from 0 ends with the shortest coefficients, in units of the contrasts' spread.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from opinionpool.logodds import Array, metric
from opinionpool.multinomial import Likelihood, Value
from opinionpool.separation import separating_direction

# After so many steps without proof that the coefficients are finite, it is found out whether they are.
_PATIENCE = 8
# Events from which a first guess is made when there are many times more.
_SAMPLE = 1 << 15
# Of a matrix with unit diagonal: a squared pivot below the first is worth a closer look at the data; a direction
# with an eigenvalue below the second counts as undetermined by them.
_DOUBTFUL, _SINGULAR = 1e-9, 1e-12
# After a step that was too long, the reach of the next at most.
_FAR = 100.0
# Curvature that is no better than none.
_NOTHING = 1e-100
# Values that differ by less than this share of the largest contrast do so by rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Belief:
    """The quadratic penalty: λ, λ₀ and c."""

    weights: Array
    intercept: float
    center: Array

    def completed(self, penalty: float) -> Belief:
        """The same, and where there is none a penalty on the intercept and N times as much on each weight."""
        weights = np.where(self.weights > 0, self.weights, penalty * len(self.weights))
        return replace(self, weights=weights, intercept=self.intercept or penalty)


class Found(NamedTuple):
    """Where Newton's method ended."""

    norm: float
    iterations: int
    converged: bool = False
    separated: bool = False


@dataclass(frozen=True, eq=False)
class Problem:
    """The penalised loss per event, by the coefficients of the shifted contrasts."""

    data: Likelihood
    belief: Belief

    @cached_property
    def from_raw(self) -> Array:
        """The matrix that turns coefficients of unshifted contrasts into those here, (P, P)."""
        return np.asarray(2.0 * np.eye(self.data.size) - self.data.to_raw)

    @cached_property
    def penalty(self) -> Array:
        """The matrix of the quadratic form, per event."""
        n = len(self.belief.weights)
        raw = np.zeros((self.data.size, self.data.size))
        raw[:n, :n] = np.diag(self.belief.weights)
        if self.data.intercept:
            raw[n:, n:] = self.belief.intercept * metric(self.data.classes)
        return np.asarray(self.data.to_raw.T @ raw @ self.data.to_raw / (self.data.events or 1.0))

    @cached_property
    def center(self) -> Array:
        """Where the penalty is 0, (P,)."""
        raw = np.zeros(self.data.size)
        raw[: len(self.belief.center)] = self.belief.center
        return np.asarray(self.from_raw @ raw)

    @cached_property
    def unpenalised(self) -> Array:
        """A basis of the directions that the penalty leaves alone, (P, F)."""
        n = self.data.size - len(self.belief.weights)
        free = np.concatenate([self.belief.weights == 0, np.full(n, self.belief.intercept == 0)])
        return np.asarray(self.from_raw[:, free])

    @cached_property
    def determined(self) -> tuple[Array, Array]:
        """A basis of the directions that data or penalty determine, and its dual, (P, R) each."""
        return _scaled_basis(self._gram + self.penalty, self._constant)

    @cached_property
    def _gram(self) -> Array:
        return self.data.gram()

    @property
    def _constant(self) -> float:
        """A mean square below which contrasts do not vary beyond rounding."""
        return (_ROUNDING * float(self.data.extents.max(initial=0.0))) ** 2

    def value(self, phi: Array) -> Value:
        """Penalised loss per event, gradient and Hessian."""
        value, pull = self.data.value(phi), self.penalty @ (phi - self.center)
        return Value(
            value.loss + 0.5 * float((phi - self.center) @ pull), value.gradient + pull, value.hessian + self.penalty
        )

    def reach(self, step: Array) -> float:
        """A bound on how far apart a step can move the log-ratios of two classes."""
        return 2.0 * float(self.data.extents @ np.abs(step))

    def separated(self) -> bool:
        """Whether the data separate the outcomes along a direction without penalty.

        Independent gains, as when there are more experts than events, can all be positive at once.
        """
        free = self.unpenalised
        basis = free @ _scaled_basis(free.T @ self._gram @ free, self._constant)[0]
        if basis.shape[1] == self.data.gains_count:
            return True
        longest = 2.0 * float((self.data.extents @ np.abs(basis)).max(initial=0.0))
        direction = separating_direction(
            lambda d: self.data.gains(basis @ d),
            lambda i: self.data.gain_row(i) @ basis,
            self.data.mean_gain() @ basis,
            longest,
        )
        return direction is not None

    def step(self, value: Value) -> tuple[Array, Array, bool]:
        """The gradient in determined directions, Newton's step, and whether the Hessian bears it out.

        The Hessian does not if it vanishes, beside its other directions, in one that the data determine: where the
        outcomes are separated, its decay leaves the step to rounding.
        """
        scale = np.sqrt(np.diag(value.hessian))
        if (scale > _DOUBTFUL * self.data.extents).all():
            step = _definite_solution(value.hessian / np.outer(scale, scale), value.gradient / scale)
            if step is not None:
                return value.gradient, -step / scale, True
        directions, duals, curvature = self._principal(value)
        along, least = directions.T @ value.gradient, _SINGULAR * curvature.max(initial=_NOTHING)
        step = -directions @ (along / np.maximum(curvature, least))
        return duals @ along, step, bool(curvature.min(initial=np.inf) > least)

    def limited_step(self, value: Value, limit: float) -> Array:
        """Newton's step on the loss plus so much of a quadratic in units of spread that its reach is within limits."""
        directions, _, curvature = self._principal(value)
        along, damping = directions.T @ value.gradient, _SINGULAR
        while True:
            step = -directions @ (along / (curvature + damping))
            if self.reach(step) <= limit:
                return np.asarray(step)
            damping *= 4.0

    def _principal(self, value: Value) -> tuple[Array, Array, Array]:
        """Principal directions of the Hessian in units of spread, their duals, (P, R) each, and curvatures, (R,)."""
        basis, dual = self.determined
        values, vectors = np.linalg.eigh(basis.T @ value.hessian @ basis)
        return basis @ vectors, dual @ vectors, np.maximum(values, 0.0)


def _definite_solution(matrix: Array, vector: Array) -> Array | None:
    """The solution of a system with unit diagonal if it is positive definite beyond doubt."""
    try:
        pivots = np.diag(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        return None
    if pivots.min(initial=1.0) ** 2 <= _DOUBTFUL:
        return None
    return np.asarray(np.linalg.solve(matrix, vector), dtype=np.float64)


def _scaled_basis(gram: Array, constant: float) -> tuple[Array, Array]:
    """A basis of the directions that a Gram matrix determines, and its dual: what is orthogonal to all others.

    In units of each column's spread both are orthonormal, and the same.
    """
    varying = np.flatnonzero(np.diag(gram) > constant)
    scale = np.sqrt(np.diag(gram)[varying])
    values, vectors = np.linalg.eigh(gram[np.ix_(varying, varying)] / np.outer(scale, scale))
    kept = vectors[:, values > _SINGULAR * len(values)]
    basis, dual = np.zeros((len(gram), kept.shape[1])), np.zeros((len(gram), kept.shape[1]))
    basis[varying], dual[varying] = kept / scale[:, None], kept * scale[:, None]
    return basis, dual


def minimise(problem: Problem, phi: Array, tolerance: float, limit: int) -> tuple[Array, Found]:
    """Newton's method with limited steps, until the gradient is small and the minimum is known to exist.

    Let u > 0 be the probabilities of what did not happen, so that the gradient is −Σ u_r r over the rows r of
    gains, and Δ Newton's step. If no two log-ratios move by 1 or more relative to each other along Δ, u can be
    corrected to a sum of exactly 0 and stays positive: p_k (1 + z_kᵀΔ − Σ_l p_l z_lᵀΔ). Then no direction separates
    (see `separation`).
    """
    exists = problem.unpenalised.shape[1] == 0
    if not exists and problem.data.gains_count <= problem.data.size:
        if problem.separated():
            return phi, Found(np.inf, 0, separated=True)
        exists = True
    value, iterations, trust = problem.value(phi), 1, np.inf
    while True:
        gradient, step, sound = problem.step(value)
        norm, reach = float(np.abs(problem.from_raw.T @ gradient).max(initial=0.0)), problem.reach(step)
        exists = exists or (sound and reach < 1.0)
        if norm <= tolerance and exists:
            return phi, Found(norm, iterations, converged=True)
        if not exists and (iterations >= _PATIENCE or not sound):
            if problem.separated():
                return phi, Found(norm, iterations, separated=True)
            exists = True
            continue
        while iterations < limit and trust > _ROUNDING:
            if reach > trust:
                step = problem.limited_step(value, trust)
            trial, iterations = problem.value(phi + step), iterations + 1
            if _improves(value, trial, step):
                break
            reach = problem.reach(step)
            trust = min(_FAR, reach / 8.0)
        else:
            return phi, Found(norm, iterations, separated=not exists and problem.separated())
        phi, value, trust = phi + step, trial, 8.0 * trust


def _improves(value: Value, trial: Value, step: Array) -> bool:
    """Whether the loss falls enough or, where its change is lost in rounding, its slope does."""
    slope, left = float(value.gradient @ step), float(trial.gradient @ step)
    if trial.loss <= value.loss + 1e-4 * slope:
        return True
    return trial.loss <= value.loss + 1e-9 * (1.0 + value.loss) and abs(left) <= 0.1 * abs(slope)


def first_guess(problem: Problem) -> Array:
    """The fit to a sample of the events, if that is much cheaper and determines all coefficients; else 0."""
    start = np.zeros(problem.data.size)
    stride = len(problem.data.s) // _SAMPLE
    if stride < 8:
        return start
    sample = Problem(problem.data.thinned(stride), problem.belief)
    if sample.determined[0].shape[1] < len(start):
        return start
    phi, found = minimise(sample, start, 1e-4, _PATIENCE)
    return phi if found.converged else start
