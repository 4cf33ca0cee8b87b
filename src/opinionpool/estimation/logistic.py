"""Logistic regression of outcomes on contrasts: LogOps and the recalibrated pool (model.md, section 6).

The log-ratios of the pooled forecast are a_k + L°_k + Σ_i w_i C_ik, k = 1 .. K − 1: one weight per expert and
one intercept per class but the first. With K = 2 this is binary logistic regression with an offset. The
coefficients minimise

    −Σ_t v_t log p*_t(Y_t) + ½ Σ_i λ_i (w_i − c_i)² + ½ λ₀ aᵀ 2(I − 11ᵀ/K) a,

v_t the frequency of event t, by Newton's method with limited steps, one pass over the contrasts in blocks for
each. Where the data leave a direction undetermined, as between clones, the weights, in units of their
contrasts' spread, are the shortest possible.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.estimation.blockwise import Likelihood, Value
from opinionpool.estimation.dual import binary_mode
from opinionpool.estimation.separation import separating_direction
from opinionpool.logodds import expit, metric

# After so many steps without proof that the coefficients are finite, it is found out whether they are.
_PATIENCE = 8
# Events from which a first guess is made when there are many times more.
_SAMPLE = 1 << 15
# Of a matrix with unit diagonal: a squared pivot below the first is worth a closer look at the data; a direction
# with an eigenvalue below the second counts as undetermined by them.
_NEARLY_SINGULAR, _SINGULAR = 1e-9, 1e-12
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
        """A basis of the directions without penalty, (P, F)."""
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
        """A bound on how much a step can change the difference between the log-ratios of two classes."""
        return 2.0 * float(self.data.extents @ np.abs(step))

    def separated(self) -> bool:
        """Whether the data separate the outcomes along a direction without penalty.

        Independent gains, as when there are more experts than events, can all be positive at once.
        """
        free = self.unpenalised
        if self.data.gains_count <= self.data.size == free.shape[1] and _independent(self.data, self._constant):
            return True
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
        if (scale > _NEARLY_SINGULAR * self.data.extents).all():
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
    """The solution of a system with unit diagonal if it is safely positive definite."""
    if not _definite(matrix):
        return None
    return np.asarray(np.linalg.solve(matrix, vector), dtype=np.float64)


def _definite(matrix: Array) -> bool:
    """Whether a matrix with unit diagonal is safely positive definite."""
    try:
        pivots = np.diag(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        return False
    return bool(pivots.min(initial=1.0) ** 2 > _NEARLY_SINGULAR)


def _binary_design(data: Likelihood, shift: Array) -> Array:
    """What multiplies intercept and weights in the log-odds of two classes, after a shift (N,), (T, P)."""
    design = np.ones((len(data.s), data.size))
    np.subtract(data.x[..., 0], shift, out=design[:, : len(shift)])
    return design


def _independent(data: Likelihood, constant: float) -> bool:
    """Whether the gains of two classes are safely independent; if not, they may be so all the same."""
    if data.classes > 2:
        return False
    rows = _binary_design(data, data.shift[:, 0])
    square = (rows**2).sum(axis=0)
    varying = square > constant * len(rows)
    rows = rows[:, varying] / np.sqrt(square[varying])
    length = np.sqrt((rows**2).sum(axis=1))
    if not length.all():
        return False
    rows /= length[:, None]
    return _definite(rows @ rows.T)


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
    (see `Problem.separated`).
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


def minimum_by_events(data: Likelihood, belief: Belief, tolerance: float) -> tuple[Array, Found]:
    """The same where two classes have fewer events than coefficients, each of which has a penalty."""
    design = _binary_design(data, np.zeros(len(data.shift)))
    penalty = np.append(belief.weights, [belief.intercept] * data.intercept)
    center = np.append(belief.center, [0.0] * data.intercept)
    offset = data.offset[:, 0] + design @ center
    frequency = np.ones(len(design)) if data.frequency is None else data.frequency
    scaled = design / np.sqrt(penalty)
    found = binary_mode(scaled @ scaled.T, data.s, offset, frequency)
    moved = (found.amounts @ design) / penalty
    surprise = frequency * (expit(offset + design @ moved) - (data.s == 1))
    norm = float(np.abs((surprise + found.amounts) @ design).max()) / data.events
    phi = moved + center
    phi[len(data.shift) :] += data.shift[:, 0] @ phi[: len(data.shift)]
    return phi, Found(norm, 1, converged=norm <= tolerance)


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


TOLERANCE = 1e-8
MAX_ITERATIONS = 100
# What keeps the coefficients finite where maximum likelihood would make them infinite; see `logistic_fit`.
SEPARATED_PENALTY = 1.0


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients of a logistic regression, and how they came about."""

    intercept: Array  # (K - 1,); log-ratios that are added to the prior's; 0 where none was asked for
    weights: Array  # (N,); one per expert
    # largest component of the gradient of the mean loss per event, penalty included, in the directions that the data
    # determine
    gradient_norm: float
    iterations: int  # passes over all events in the search that ended here
    converged: bool  # whether `gradient_norm` is within the tolerance and a minimum is known to exist
    separated: bool  # whether the coefficients asked for are infinite, and these are the finite ones given instead
    penalty: Array  # (N,); the penalty used, per weight
    intercept_penalty: float  # the penalty used on the intercept
    center: Array  # (N,); what the penalty drew the weights to

    def log_ratios(self, x: npt.ArrayLike, offset: npt.ArrayLike | None = None) -> Array:
        """Pooled log-ratios (T, K - 1) of contrasts (T, N), or (T, N, K - 1), and the prior's log-ratios."""
        x, offset = _contrasts(x), _offsets(offset, len(self.intercept))
        return np.asarray(np.einsum("tnk,n->tk", x, self.weights) + self.intercept + offset)


def logistic_fit(
    x: npt.ArrayLike,
    s: npt.ArrayLike,
    offset: npt.ArrayLike | None = None,
    *,
    sample_weight: npt.ArrayLike | None = None,
    intercept: bool = True,
    penalty: npt.ArrayLike | None = None,
    center: npt.ArrayLike | None = None,
    intercept_penalty: float = 0.0,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> LogisticFit:
    """Fit weights and intercept by maximum likelihood, penalised or not.

    If the outcomes are separated, so that the likelihood has no maximum (one direction of the coefficients
    never contradicts an outcome and sometimes favours one; with one outcome only the intercept is such a
    direction), the finite answer is the most probable one under normal beliefs: each weight has mean `center`
    and variance 1/N, so that their sum, like the slope of the recalibrated pool, has variance 1; the intercept
    has mean 0 and variance 1. In terms of the penalty: λ_i = N on the weights and λ₀ = 1 on the intercept,
    wherever no penalty was asked for. N clones are then worth one expert.

    Parameters
    ----------
    x : array_like, shape (T, N), or (T, N, K - 1)
        Contrasts L − L°, finite.
    s : array_like of int, shape (T,)
        Outcomes 0 .. K - 1.
    offset : array_like, shape (), (T,), or (K - 1,), (T, K - 1) when K > 2, optional
        Log-ratios of the prior; 0 if not given.
    sample_weight : array_like, shape (T,), optional
        Frequencies.
    intercept : bool, default True
        Whether there is one.
    penalty : array_like, shape () or (N,), optional
        λ, in units of events; none if not given.
    center : array_like, shape () or (N,), optional
        c; 1/N, which is the geometric mean of odds, if not given.
    intercept_penalty : float, default 0
        λ₀.
    tolerance : float
        What the largest component of the gradient of the mean loss may be.
    max_iterations : int
        Passes over the data; the result says if they were not enough.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.log([[0.25], [0.25], [0.25], [0.25], [4], [4], [4], [4]])
    >>> fit = logistic_fit(x, [1, 0, 0, 0, 1, 1, 1, 0])
    >>> fit.weights.round(5).item(), fit.separated
    (0.79248, False)
    >>> fit = logistic_fit([[-2.2], [-0.8], [0.4], [2.2]], [0, 0, 1, 1])
    >>> fit.weights.round(3).item(), fit.separated
    (1.492, True)
    """
    contrasts = _contrasts(x)
    experts, free = contrasts.shape[1:]
    data = Likelihood.of(contrasts, s, _offsets(offset, free), sample_weight, intercept)
    belief = Belief(
        _per_expert(0.0 if penalty is None else penalty, experts),
        float(intercept_penalty),
        _per_expert(1.0 / max(experts, 1) if center is None else center, experts),
    )
    problem = Problem(data, belief)
    separated = data.events == 0 and problem.unpenalised.size > 0
    if not separated:
        phi, found = minimise(problem, first_guess(problem), tolerance, max_iterations)
        separated = found.separated
    if separated:
        belief = belief.completed(SEPARATED_PENALTY)
        if data.classes == 2 and 0 < len(data.s) < data.size:
            phi, found = minimum_by_events(data, belief, tolerance)
        else:
            phi, found = minimise(Problem(data, belief), np.zeros(data.size), tolerance, max_iterations)
    coefficients = data.to_raw @ phi
    return LogisticFit(
        intercept=coefficients[experts:] if intercept else np.zeros(free),
        weights=coefficients[:experts],
        gradient_norm=found.norm,
        iterations=found.iterations,
        converged=found.converged,
        separated=separated,
        penalty=belief.weights,
        intercept_penalty=belief.intercept,
        center=belief.center,
    )


def _contrasts(x: npt.ArrayLike) -> Array:
    """Contrasts as (T, N, K - 1)."""
    x = np.asarray(x, dtype=np.float64)
    if x.ndim == 2:
        x = x[..., None]
    return x


def _offsets(offset: npt.ArrayLike | None, free: int) -> Array:
    """Offsets as (1, K - 1) or (T, K - 1)."""
    array = np.zeros(free) if offset is None else np.asarray(offset, dtype=np.float64)
    if free == 1 and array.ndim < 2:
        return array.reshape(-1, 1)
    return np.atleast_2d(array)


def _per_expert(value: npt.ArrayLike, experts: int) -> Array:
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (experts,)).copy()
