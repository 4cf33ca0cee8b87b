"""Weights of the linear opinion pool by maximum likelihood on the simplex (model.md, section 6).

With q_ti > 0 the probability that expert i gave to what happened in event t, and frequency weights u_t that
sum to U, the weights maximise (1/U) Σ_t u_t log(Σ_i w_i q_ti) over w ≥ 0, Σ w = 1. That is concave, and
max_i (1/U) Σ_t u_t q_ti / p_t − 1, with p = Qw, certifies how far from the maximum it is: 0 there, and nowhere
less than what is still to be gained.

The method is Newton's with the exact Hessian, the quadratic problem of each step solved on the simplex by an active
set, as in mixsqp (Kim, Carbonetto, Stephens & Anitescu 2020). One read of the array, in blocks that stay in the
cache, gives objective, gradient and Hessian. A long array is first solved on every 16th row; the Hessian found
there, of the experts who can still get weight, serves for the whole, corrected by the curvature that the steps meet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask
from opinionpool.estimation.contents import some_rows
from opinionpool.estimation.mixture import BLOCK, Complete, Likelihood, Partial, Point
from opinionpool.estimation.quadratic import least_quadratic, shortest

# A long array is first solved on a 16th of its rows, or on a smaller part that leaves 16 rows per expert.
STRIDE = 16
ROWS_PER_EXPERT = 16
# An expert whose derivative is below 0 by this many times what it may change is left out of a long array's Hessian.
NEAR = 20.0
# A Hessian serves again while it shrinks the gap by this, and, where it costs little, once the gap is below that.
FAST = 0.4
CLOSE = 1e-4
# Part of the predicted gain that a step must bring, and what rounding may hide of it.
GAIN = 1e-4
ROUNDING = 1e-14
# Derivatives of either sign towards experts with weight are this many tolerances at most.
SLACK = 100.0
# About how far weights move per unit of derivative, to guess which of them end above 0.
GUESS = 8.0
# Directions of the Hessian below this are ties; experts whose derivative is at least this may take part in them.
TIED = 1e-10
TIED_SCORE = -1e-6


@dataclass(frozen=True, eq=False)
class SimplexFit:
    """Weights on the simplex, and how far from the best they can be."""

    weights: Array  # (N,); at least 0, and 1 together to a rounding. 0 is exact.
    gap: float  # the certificate: the largest derivative of the mean log-likelihood from here towards a single expert
    iterations: int  # Newton steps on the whole array
    passes: float  # reads of the array. Reading every k-th row counts 1/k.
    converged: bool  # whether `gap` is within the tolerance. If it is not, whoever uses the weights must say so.


def simplex_weights(
    q: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    present: npt.ArrayLike | None = None,
    tolerance: float = 1e-8,
    max_iterations: int = 100,
) -> SimplexFit:
    """Maximum-likelihood weights of a linear pool.

    Complete forecasts. The likelihood is concave and the certificate proves the answer. Where several weights are
    equally likely the one with the least sum of squares is returned, so that it is unique: experts who always say
    the same share equally, and what any mixture of others could replace is spread over them. Differences between
    experts that move the certificate by less than about 1e-10 count as none.

    Missing forecasts. p_t = Σ_present w_i q_ti / Σ_present w_i is not concave in log p. Guaranteed is a stationary
    point (no derivative towards an expert above the tolerance) that is at least as likely as equal weights, reached
    along steps that never lose likelihood; not that it is the best of several. Each weight is at least 1e-6 / N:
    without that, where everybody with weight is absent, p would be 0 / 0 and the likelihood would have no maximum.
    Such an event is pooled by the weights of those who are present, however small. Events with a single forecast
    tell nothing about weights. An expert who shares no event with another has no evidence for or against, and
    gets 1 / N. Experts who always say the same share equally.

    Parameters
    ----------
    q : array_like, shape (T, N)
        Probability that each expert gave to what happened, floored: above 0 and finite. Rows may be scaled.
    sample_weight : array_like, shape (T,), optional
        Frequency of each event, at least 0; one of an event with a forecast above it.
    present : array_like of bool, shape (T, N), optional
        Where `q` holds a forecast; the rest of `q` is ignored.
    tolerance : float, default 1e-8
        The largest gap that counts as converged.
    max_iterations : int, default 100
        Newton steps on the whole array.

    Returns
    -------
    SimplexFit

    Examples
    --------
    >>> fit = simplex_weights([[0.0001, 0.0001], [0.8, 0.7], [0.7, 0.6]])
    >>> fit.weights, fit.converged
    (array([1., 0.]), True)
    """
    array, share, mask = _arrays(q, sample_weight, present)
    if mask is not None:
        return _with_missing(array, share, mask, tolerance, max_iterations)
    likelihood = Complete(array, share)
    v, curved, read = _start(array, share)
    here = likelihood.read(v, curved is None)
    here, curved, iterations = _maximise(likelihood, here, curved, tolerance, max_iterations)
    if here.gap <= tolerance:
        here = _shared(likelihood, here, curved, tolerance)
    return SimplexFit(here.v, here.gap, iterations, likelihood.passes + read, here.gap <= tolerance)


def _arrays(
    q: npt.ArrayLike, sample_weight: npt.ArrayLike | None, present: npt.ArrayLike | None
) -> tuple[Array, Array, Mask | None]:
    """The array, the share of each event, and the mask if anything is missing."""
    array = np.asarray(q, dtype=np.float64)
    mask = None if present is None else np.asarray(present, dtype=bool)
    if mask is not None and mask.all():
        mask = None
    share = np.ones(len(array)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if mask is not None:
        share = np.where(mask.any(axis=1), share, 0.0)
    return array, share / share.sum(), mask


def _stride(events: int, size: int) -> int | None:
    """One in how many rows of a long array is solved first; None for a short one."""
    stride = min(STRIDE, events // (ROWS_PER_EXPERT * size))
    return stride if stride >= STRIDE // 2 and events * size > BLOCK else None


def _few(q: Array, stride: int | None) -> Index:
    """Rows of a long array that are solved first, in whatever order they come; none where many of them are the same."""
    rows = np.arange(0) if stride is None else some_rows(q, stride)
    return rows if 2 * len(rows) < len(q) else rows[:0]


def _rough(rows: int) -> float:
    """A gap well inside what a sample of rows can tell."""
    return 0.1 / float(np.sqrt(rows))


def _start(q: Array, share: Array) -> tuple[Array, Point | None, float]:
    """Where to start, the Hessian there if it is known, and the reads that it took."""
    events, size = q.shape
    stride = _stride(events, size)
    rows = _few(q, stride)
    part = share[rows]
    if stride is None or not part.any():
        return np.full(size, 1.0 / size), None, 0.0
    thin = Complete(q[rows], part / part.sum())
    v, curved, read = _start(thin.q, thin.share)
    here, _, _ = _maximise(thin, thin.read(v, curved is None), curved, _rough(len(part)), STRIDE)
    curved = thin.read(here.v, True, _near(here, NEAR * _rough(len(part))))
    return here.v, curved, (read + thin.passes) / stride


def _near(here: Point, margin: float) -> Index | None:
    """The experts with weight, or with a derivative less than `margin` below 0; None if they are many."""
    (near,) = ((here.v > 0) | (here.score > -margin)).nonzero()
    return near if 2 * len(near) <= len(here.v) else None


def _with_missing(q: Array, share: Array, present: Mask, tolerance: float, max_iterations: int) -> SimplexFit:
    """The fit with missing forecasts, on the events with two or more."""
    size = q.shape[1]
    rows = (present.sum(axis=1) > 1) & (share > 0)
    answered = present[rows].any(axis=0)
    weights = np.full(size, 1.0 / size)
    if not rows.any():
        return SimplexFit(weights, 0.0, 0, 1.0, True)
    if not (rows.all() and answered.all()):
        q, share, present = q[np.ix_(rows, answered)], share[rows], present[np.ix_(rows, answered)]
    likelihood = Partial(q, share, present)
    experts = q.shape[1]
    here, read = likelihood.read(np.full(experts, 1.0 / experts)), 0.0
    stride = _stride(*q.shape)
    chosen = _few(np.where(present, q, np.nan), stride)
    if stride is not None and len(chosen):
        part = share[chosen] / share[chosen].sum()
        rough = _with_missing(q[chosen], part, present[chosen], _rough(len(part)), STRIDE)
        there = likelihood.read(likelihood.position(rough.weights))
        here, read = min(here, there, key=lambda point: point.objective), rough.passes / stride
    here, _, iterations = _maximise(likelihood, here, None, tolerance, max_iterations)
    v = _averaged(likelihood, here.v, np.arange(experts))
    weights[answered] = likelihood.weights(v) * (experts / size)
    return SimplexFit(weights, here.gap, iterations, likelihood.passes + read, here.gap <= tolerance)


def _maximise(
    likelihood: Likelihood, here: Point, curved: Point | None, tolerance: float, max_iterations: int
) -> tuple[Point, Point, int]:
    """Newton steps from a point, with another's Hessian if it has none: the last, that of the Hessian, the number."""
    before = 0.0 if curved is None else np.inf
    curved = here if curved is None else curved
    for step in range(max_iterations):
        if here.gap <= tolerance and here.slack <= SLACK * tolerance:
            return here, curved, step
        if curved.columns is not None and np.delete(here.score, curved.columns).max() > tolerance:
            here = curved = likelihood.read(here.v, True, _near(here, NEAR * here.gap))
        fast = here.gap <= FAST * before and (here.gap <= CLOSE or not likelihood.short)
        x = _step(likelihood, here, curved)
        there = likelihood.read(x, not fast, curved.columns)
        if not _better(likelihood, here, there):
            x = _shorter(likelihood, here, there)
            if x is here.v and curved is here:
                return here, curved, step
            there = likelihood.read(x, True, curved.columns)
        if there.hessian is None and (there.gap > tolerance or there.slack > SLACK * tolerance):
            _learn(curved, there.v - here.v, here.score - there.score)
        elif there.hessian is not None:
            curved = there
        before, here = here.gap, there
    return here, curved, max_iterations


def _learn(curved: Point, step: Array, change: Array) -> None:
    """Give the Hessian the curvature that was met along a step (Broyden, Fletcher, Goldfarb & Shanno)."""
    assert curved.hessian is not None
    if curved.columns is not None:
        step, change = step[curved.columns], change[curved.columns]
    met = float(step @ change)
    expected = curved.hessian @ step
    known = float(step @ expected)
    if met > ROUNDING * known > 0:
        curved.hessian += np.outer(change / met, change) - np.outer(expected / known, expected)


def _step(likelihood: Likelihood, here: Point, curved: Point) -> Array:
    """Where the quadratic model is least; the single best expert if rounding keeps that from being downhill."""
    matrix, columns = likelihood.model(here, curved)
    v, score = (here.v, here.score) if columns is None else (here.v[columns], here.score[columns])
    x = least_quadratic(matrix, matrix @ v + score, v + GUESS * score > 0)
    if x is None or score @ x < -10 * ROUNDING:
        x, columns = np.ones(1), np.array([here.score.argmax()])
    x /= x.sum()
    if columns is None:
        return x
    target = np.zeros(len(here.v))
    target[columns] = x
    return target


def _better(likelihood: Likelihood, here: Point, there: Point) -> bool:
    """Whether a step brings what it must; if the likelihood is concave, halving the certificate will do too."""
    promised = GAIN * float(here.score @ there.v)
    if there.objective <= here.objective - promised + ROUNDING * (1.0 + abs(here.objective)):
        return True
    return likelihood.concave and there.gap <= 0.5 * here.gap


def _shorter(likelihood: Likelihood, here: Point, there: Point) -> Array:
    """The least objective on the way to a point too far, to 5% of the step, without a read; `here` if none is less."""
    low, high, least = 0.0, 1.0, here.objective
    step = there.pooled - here.pooled
    while high - low > 0.05 * high and high > ROUNDING:
        middle = 0.5 * (low + high)
        pooled = here.pooled + middle * step
        value = likelihood.objective(pooled)
        if value <= least and likelihood.slope(pooled, step) <= 0:
            low, least = middle, value
        else:
            high = middle
    return here.v + low * (there.v - here.v) if low else here.v


def _shared(likelihood: Complete, here: Point, curved: Point, tolerance: float) -> Point:
    """Of all weights with the same pooled forecasts, those with the least sum of squares."""
    tied = (here.v > 0) | (here.score > TIED_SCORE)
    if not _singular(curved, tied):
        return here
    (places,) = tied.nonzero()
    matrix = likelihood.read(here.v, True, places).hessian
    assert matrix is not None
    values, vectors = np.linalg.eigh(matrix)
    found = shortest(here.v[places], vectors[:, values > TIED].T) if values[0] <= TIED else None
    if found is None:
        return here
    v = here.v.copy()
    v[places] = found
    v = _averaged(likelihood, v / v.sum(), places)
    if np.abs(v - here.v).max() <= ROUNDING:
        here.v = v
        return here
    there = likelihood.read(v, False)
    return there if there.gap <= tolerance else here


def _singular(curved: Point, tied: Mask) -> bool:
    """Whether the Hessian of some experts may have a direction of no curvature, by its Cholesky pivots."""
    assert curved.hessian is not None
    (inside,) = (tied if curved.columns is None else tied[curved.columns]).nonzero()
    if len(inside) < 2:
        return False
    try:
        pivots = np.linalg.cholesky(curved.hessian[inside[:, None], inside]).diagonal()
    except np.linalg.LinAlgError:
        return True
    return float(pivots.min()) ** 2 < 1e3 * TIED


def _averaged(likelihood: Likelihood, v: Array, places: Index) -> Array:
    """`v` with the mean among those of some experts who always gave the same forecasts."""
    v = v.copy()
    for same in likelihood.alike(places):
        v[same] = v[same].mean()
    return v
