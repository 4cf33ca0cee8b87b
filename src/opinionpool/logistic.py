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

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.errors import ArgumentError, ShapeError
from opinionpool.logodds import Array
from opinionpool.multinomial import Likelihood
from opinionpool.newton import Belief, Problem, first_guess, minimise

TOLERANCE = 1e-8
MAX_ITERATIONS = 100
# What holds the coefficients once the data alone would make them infinite; see `logistic_fit`.
SEPARATED_PENALTY = 1.0


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients of a logistic regression, and how they came about.

    Attributes
    ----------
    intercept : ndarray, shape (K - 1,)
        Log-ratios that are added to the prior's; 0 where none was asked for.
    weights : ndarray, shape (N,)
        One per expert.
    gradient_norm : float
        Largest component of the gradient of the mean loss per event, penalty included, in the directions that
        the data determine.
    iterations : int
        Passes over all events in the search that ended here.
    converged : bool
        Whether `gradient_norm` is within the tolerance and a minimum is known to exist.
    separated : bool
        Whether the coefficients asked for are infinite, and these are the finite ones given instead.
    penalty : ndarray, shape (N,)
        The penalty used, per weight.
    intercept_penalty : float
        The penalty used on the intercept.
    center : ndarray, shape (N,)
        What the penalty drew the weights to.
    """

    intercept: Array
    weights: Array
    gradient_norm: float
    iterations: int
    converged: bool
    separated: bool
    penalty: Array
    intercept_penalty: float
    center: Array

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

    Raises
    ------
    ShapeError, OutcomeError, ArgumentError
        If arrays do not fit together, an outcome is not a class, or a number is not finite or negative.

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
    ridge = _per_expert(0.0 if penalty is None else penalty, experts, "penalty")
    for value in (float(ridge.min(initial=0.0)), intercept_penalty):
        if not 0 <= value < np.inf:
            raise ArgumentError(f"a penalty must be finite and at least 0, and it is {value!r}")
    middle = _per_expert(1.0 / max(experts, 1) if center is None else center, experts, "center")
    belief = Belief(ridge, float(intercept_penalty), middle)
    problem = Problem(data, belief)
    separated = data.events == 0 and problem.unpenalised.size > 0
    if not separated:
        phi, found = minimise(problem, first_guess(problem), tolerance, max_iterations)
        separated = found.separated
    if separated:
        belief = belief.completed(SEPARATED_PENALTY)
        problem = Problem(data, belief)
        phi, found = minimise(problem, np.zeros(data.size), tolerance, max_iterations)
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
    if x.ndim != 3 or x.shape[2] == 0:
        raise ShapeError(f"contrasts must be events x experts, or x (classes - 1) as well, not of shape {x.shape}")
    return x


def _offsets(offset: npt.ArrayLike | None, free: int) -> Array:
    """Offsets as (1, K - 1) or (T, K - 1)."""
    array = np.zeros(free) if offset is None else np.asarray(offset, dtype=np.float64)
    if free == 1 and array.ndim < 2:
        return array.reshape(-1, 1)
    return np.atleast_2d(array)


def _per_expert(value: npt.ArrayLike, experts: int, what: str) -> Array:
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in {(), (experts,)}:
        raise ShapeError(f"{what} must be one number or one for each of {experts} experts, not of shape {array.shape}")
    if not np.isfinite(array).all():
        raise ArgumentError(f"{what} must be finite, not {array}")
    return np.broadcast_to(array, (experts,)).copy()
