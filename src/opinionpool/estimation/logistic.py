"""Logistic regression of outcomes on contrasts: LogOps and the recalibrated pool (model.md, section 6).

The log-ratios of the pooled forecast are a_k + L°_k + Σ_i w_i C_ik, k = 1 .. K − 1: one weight per expert and
one intercept per class but the first. With K = 2 this is binary logistic regression with an offset. The
coefficients minimise

    −Σ_t v_t log p*_t(Y_t) + ½ λ Σ_i (w_i − c)² + ½ λ₀ aᵀ 2(I − 11ᵀ/K) a,

v_t the frequency of event t. Where the data leave a direction undetermined, as between clones, the weights, in units of
their contrasts' spread, are the shortest possible. Whether there is a minimum is asked of a linear programme (Konis,
Computational algorithms for detecting separated data in binary logistic regression models, Oxford, 2007).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Mask
from opinionpool.estimation.likelihood import Design, row_basis, value
from opinionpool.estimation.newton import STEPS, Optimum, Prior, loss_along, newton
from opinionpool.logodds import metric

# Events from which a first guess is made with some of them, and each which.
_MANY, _EACH = 1 << 18, 16
# A direction with a curvature below this share of the largest counts as undetermined; contrasts that differ by less
# than this share of the largest do so by rounding.
_SINGULAR, _ROUNDING = 1e-12, 1e-12
# What is added to the curvature where it is too little to go by.
_RIDGES = (1e-2, 1e-4, 1e-6, 1e-8, 0.0)
# How often there are so many steps before separation is looked for.
_TRIES, _STEPS = 5, 10
# A curvature below this share of the largest proves nothing.
_UNSOUND = 1e-10
# Gains that a linear programme is given at a time; how little its constraints are met by, as its least tolerance is.
_GAINS, _MET = 2000, 1e-10
# A loss below this share of the largest gain is none, and a gain in all below this either.
_LOSS, _GAIN = 1e-9, 1e-7
# What keeps the coefficients finite where maximum likelihood would make them infinite; see `logistic_fit`.
SEPARATED_PENALTY = 1.0


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients of a logistic regression: log-ratios are offset + intercept + Σ weight · contrast."""

    intercept: Array  # (K - 1,); log-ratios that are added to the prior's; 0 where none was asked for
    weights: Array  # (N,); one per expert
    converged: bool  # whether a further step would change nothing
    separated: bool  # whether outcomes are separated, so that coefficients are infinite without the penalty used here


def logistic_fit(
    x: npt.ArrayLike,
    s: npt.ArrayLike,
    offset: npt.ArrayLike | None = None,
    *,
    sample_weight: npt.ArrayLike | None = None,
    intercept: bool = True,
    penalty: float = 0.0,
    center: float | None = None,
    intercept_penalty: float = 0.0,
) -> LogisticFit:
    """Fit weights and intercept for outcomes `s` to regressors `x` (T, N) or (T, N, K - 1) by (penalised) likelihood.

    If the outcomes are separated, so that the likelihood has no maximum, the answer is the most probable one under
    normal beliefs: each weight has mean `center` and variance 1/N, so that their sum, like the slope of the
    recalibrated pool, has variance 1; the intercept has mean 0 and variance 1. In terms of the penalty: λ = N on the
    weights and λ₀ = 1 on the intercept, wherever no penalty was asked for. N clones are then worth one expert. Offsets
    are (), (T,), or (K - 1,), (T, K - 1); `center` is 1/N, the geometric mean of odds, if not given.

    >>> import numpy as np
    >>> fit = logistic_fit([[-2.2], [-0.8], [0.4], [2.2]], [0, 0, 1, 1])
    >>> fit.weights.round(3).item(), fit.separated
    (1.492, True)
    """
    contrasts, outcomes = np.asarray(x, dtype=np.float64), np.asarray(s, dtype=np.intp)
    contrasts = contrasts[..., None] if contrasts.ndim == 2 else contrasts
    t, n, d = contrasts.shape
    weight = np.ones(t) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    start = np.zeros(d) if offset is None else np.asarray(offset, dtype=np.float64)
    start = np.broadcast_to(start.reshape(-1, 1) if d == 1 and start.ndim < 2 else start, (t, d))
    kept = slice(None) if weight.all() else weight > 0
    design = Design.of(contrasts[kept], outcomes[kept], start[kept], weight[kept], intercept=intercept)
    center = 1.0 / max(n, 1) if center is None else float(center)
    problem = _Problem(design, float(penalty), float(intercept_penalty), center)
    found, separated = problem.minimum(), False
    if found is None:
        separated, full = True, SEPARATED_PENALTY
        problem = _Problem(design, penalty or full * n, intercept_penalty or full, center)
        found = problem.newton()
    values = problem.mean + problem.root @ found.theta[0]
    first = len(values) - n
    return LogisticFit(
        values[:first] if intercept else np.zeros(d), values[first:], bool(found.converged[0]), separated
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """Penalised likelihood as a function of Q coefficients: of the intercept, if there is one, and the weights."""

    design: Design
    penalty: float  # λ, on the weights
    intercept_penalty: float  # λ₀
    center: float  # c, value to which the penalty draws the weights

    @cached_property
    def _first(self) -> int:
        """Number of coefficients that belong to the intercept."""
        return len(self.design.features) * self.design.free

    @cached_property
    def _free(self) -> Mask:
        """Mask of the coefficients without a penalty, (Q,)."""
        penalties = np.full(self.design.size, self.penalty)
        penalties[: self._first] = self.intercept_penalty
        return np.asarray(penalties == 0)

    @cached_property
    def mean(self) -> Array:
        """Values to which the penalty draws the coefficients, (Q,); 0 where there is no penalty."""
        mean = np.zeros(self.design.size)
        mean[self._first :] = self.center if self.penalty else 0.0
        return mean

    @cached_property
    def _curvature(self) -> Array:
        """Matrix Λ of the penalty ½ (θ − c)ᵀ Λ (θ − c) on coefficients θ with centre c, (Q, Q)."""
        found = self.penalty * np.eye(self.design.size)
        if self._first:
            found[: self._first, : self._first] = self.intercept_penalty * metric(self.design.free + 1)
        return found

    @cached_property
    def _extents(self) -> Array:
        """Largest absolute value of each expert's regressors, after `_shift` is subtracted, (N, K - 1)."""
        x = np.moveaxis(self.design.columns, -1, 0)
        return np.asarray(np.maximum(x.max(axis=0) - self._shift, self._shift - x.min(axis=0)))

    @cached_property
    def _shift(self) -> Array:
        """Each expert's mean regressors, (N, K - 1), to subtract if the intercept has no penalty; else 0."""
        columns = self.design.columns
        if not self._free[: self._first].any():
            return np.zeros(columns.shape[:2])
        return np.asarray(columns.mean(axis=2))

    @cached_property
    def _shifted_root(self) -> Array:
        """Basis like `root`, (Q, R), but of the coefficients of regressors from which `_shift` is subtracted."""
        design, first = self.design, self._first
        few = len(design.outcomes) * design.free < design.size
        if not self._free.any():
            basis = np.linalg.cholesky(np.linalg.inv(self._curvature))
            return basis @ row_basis(self._rows(basis)) if few else basis
        # The covariance of equally probable classes is the metric over 2 K.
        even = value(replace(design, offset=np.zeros_like(design.offset)), np.zeros((1, design.size))).hessian[0]
        gram = self._turn.T @ (2.0 * (design.free + 1) * even) @ self._turn
        varies = np.diag(gram + self._curvature) > 0
        varies[first:] &= (self._extents > _ROUNDING * np.abs(self._shift)).any(axis=1)
        spread = np.sqrt(np.diag(gram + self._curvature)[varies])
        basis = np.zeros((design.size, int(varies.sum())))
        basis[varies, np.arange(basis.shape[1])] = 1.0 / spread
        if few and self._free.all():
            basis = basis @ row_basis(self._rows(self._turn @ basis))
        size, vector = np.linalg.eigh(basis.T @ (gram + self._curvature) @ basis)
        kept = size > _SINGULAR * len(size)
        return np.asarray(basis @ (vector[:, kept] / np.sqrt(size[kept])))

    @cached_property
    def _turn(self) -> Array:
        """Matrix (Q, Q) from coefficients of regressors less `_shift` to coefficients of the regressors themselves."""
        turn = np.eye(self.design.size)
        if self._first:
            turn[: self._first, self._first :] = -self._shift.T
        return turn

    @cached_property
    def root(self) -> Array:
        """Basis of the R directions of coefficients that data or penalty determine, (Q, R)."""
        return np.asarray(self._turn @ self._shifted_root)

    def _rows(self, basis: Array) -> Array:
        """Derivatives of all log-ratios, (T (K - 1), R), along each direction of coefficients in `basis` (Q, R)."""
        found = replace(self.design, offset=np.zeros((self.design.free, 1))).ratios(basis.T)
        return found.reshape(basis.shape[1], -1).T

    def minimum(self) -> Optimum | None:
        """Return the minimum of the penalised loss, or None if there is none (the outcomes are separated)."""
        if not self._free.any():
            return self.newton()
        rows = len(self.design.outcomes) * self.design.free
        if not rows or (self._free.all() and self.root.shape[1] == rows):
            # Nothing, or nothing that the coefficients could not make certain, is against it.
            return None
        try:
            start = None
            if len(self.design.outcomes) >= _MANY:
                found = self.newton(design=self.design.thinned(_EACH))
                start = found.theta if self._proven(found) else None
            for _ in range(_TRIES):
                found = self.newton(start, steps=_STEPS)
                if found.converged.all():
                    break
                if self._free.all() and (self._gains(self.root) @ found.theta[0] > 0).all():
                    # All that happened gains along the way.
                    return None
                start = found.theta
            if self._proven(found):
                return found
        except np.linalg.LinAlgError:
            pass
        if self._separated():
            return None
        # Curvatures that vanish on the way make steps too long: by way of minima that are nearer.
        start = None
        for ridge in _RIDGES:
            found = self.newton(start, ridge=ridge)
            start = found.theta
        return found

    def newton(
        self, start: Array | None = None, design: Design | None = None, ridge: float = 0.0, steps: int = STEPS
    ) -> Optimum:
        """Minimise by Newton's method from θ = `start` (1, R), for the full design or a `design` with fewer events."""
        root, size = self.root, self.root.shape[1]
        curvature = (root.T @ self._curvature @ root + ridge * np.eye(size))[None]
        loss = loss_along(design or self.design, Prior(self.mean[None], root[None]))
        return newton(loss, curvature, np.zeros((1, size)) if start is None else start, steps)

    def _proven(self, found: Optimum) -> bool:
        """Return True if Newton's last step proves a minimum: it moved no difference of log-ratios by 1 or more.

        Let p_k be the probability of class k, z_k its regressors, u > 0 the probabilities of what did not happen, so
        that the gradient is −Σ u_r r over the rows r of `_gains`, and Δ that step. Then u can be corrected to a sum of
        exactly 0 and stays positive: p_k (1 + z_kᵀΔ − Σ_l p_l z_lᵀΔ), and no direction separates. With the Hessian H
        and ΔᵀHΔ = δ, |Δ_j| is at most √(δ (H⁻¹)_jj).
        """
        hessian = found.hessian[0] + self.root.T @ self._curvature @ self.root
        value, vector = np.linalg.eigh(hessian)
        if not len(value):
            return True
        if not value[0] > _UNSOUND * value[-1]:
            return False
        extent = np.ones(self.design.size)
        extent[self._first :] = self._extents.max(axis=1)
        reach = np.linalg.norm(self._shifted_root @ (vector / np.sqrt(value)), axis=1) * np.sqrt(
            max(found.decrement[0], 0.0)
        )
        return bool(2.0 * extent @ reach < 1.0)

    def _separated(self) -> bool:
        """True if a direction without penalty separates outcomes: no outcome's log-ratio falls, and one rises."""
        from scipy.optimize import linprog

        value, vector = np.linalg.eigh(self.root.T @ self._curvature @ self.root)
        gains = self._gains(self.root @ vector[:, value <= _ROUNDING])
        if not len(gains):
            return False
        total, given = gains.sum(axis=0), np.arange(0, len(gains), -(-len(gains) // _GAINS))
        options = {"primal_feasibility_tolerance": _MET, "dual_feasibility_tolerance": _MET}
        while True:
            direction = linprog(-total, -gains[given], np.zeros(len(given)), bounds=(-1.0, 1.0), options=options).x
            if float(total @ direction) <= _GAIN:
                return False
            each = gains @ direction
            losing = np.argsort(each)[:_GAINS]
            losing = losing[each[losing] < -_LOSS * each.max()]
            more = np.setdiff1d(losing, given)
            if not len(more):
                return not len(losing)
            given = np.concatenate([given, more])

    def _gains(self, basis: Array) -> Array:
        """Derivatives along `basis` (Q, F) of each outcome's log-ratio less another class's, as unit vectors (M, F)."""
        f, t, outcomes = basis.shape[1], len(self.design.outcomes), self.design.outcomes
        ratios = np.zeros((t, self.design.free + 1, f))
        ratios[:, 1:] = np.swapaxes(self._rows(basis).reshape(self.design.free, t, f), 0, 1)
        gains = (ratios[np.arange(t), outcomes][:, None] - ratios).reshape(-1, f)
        length = np.linalg.norm(gains, axis=1)
        some = length > _ROUNDING * length.max(initial=0.0)
        return np.asarray(gains[some] / length[some, None])
