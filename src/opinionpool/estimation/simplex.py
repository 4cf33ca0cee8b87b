"""Weights of the linear opinion pool by maximum likelihood on the simplex (model.md, section 6).

With q_ti > 0 the probability that expert i gave to what happened in event t, and u_t the share of the event, the
weights minimise −Σ_t u_t log(Σ_i w_i q_ti / Σ_i w_i) over w ≥ 0, Σ w = 1; both sums are over the experts present.
The largest derivative of the log-likelihood from w towards a single expert is the gap: 0 at a maximum and, where no
forecast is missing, nowhere less than what is still to be gained.

The method is Newton's, as in mixsqp (Kim, Carbonetto, Stephens & Anitescu 2020); each step is a problem of nonnegative
least squares. A Hessian is kept while steps with it are fast. On a long array a sample of the events gives the start,
and the first Hessian.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Floats, Index, Mask
from opinionpool.blocks import blocks
from opinionpool.estimation.sampling import some_rows

# Of more cells than these, one in `STRIDE` events is a sample, or as many as leave 16 events per expert.
SHORT, STRIDE, EVENTS_PER_EXPERT = 1 << 17, 16, 16
# A fast step leaves less of the gap than this.
FAST = 0.1
# Derivatives of either sign towards experts with weight are this many tolerances at most: where a weight tends to 0
# and its derivative too, the gap is quadratic in it.
SLACK = 100.0
# Part of the predicted gain that a step must bring, and rounding of the mean log-likelihood.
GAIN, ROUNDING = 1e-4, 1e-14
# Added to the diagonal of the Hessian in units of its diagonal, and its least eigenvalue where it is not convex.
RIDGE, FLAT = 1e-10, 1e-8
# What the least possible weights add up to when forecasts are missing.
LEAST = 1e-6
# Directions of the Hessian below this are ties; experts whose derivative is at least this may take part in them.
TIED, TIED_SCORE = 1e-10, -1e-6
# How much more a change of pooled forecasts counts than the length of the weights among ties.
FAITH = 1e5


@dataclass(frozen=True, eq=False)
class SimplexFit:
    """Weights on the simplex (at least 0, with sum 1), and a bound on how much the log-likelihood can still rise."""

    weights: Array  # (N,); at least 0 (which is exact), with a sum of 1 up to rounding
    gap: float  # the certificate: largest derivative of the mean log-likelihood from `weights` towards a single expert
    passes: float  # number of reads of the array; a read of every k-th row counts as 1/k
    converged: bool  # whether `gap` is within the tolerance; if not, a caller has to warn


def simplex_weights(
    q: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    present: npt.ArrayLike | None = None,
    tolerance: float = 1e-8,
    max_iterations: int = 100,
) -> SimplexFit:
    """Maximum-likelihood weights of a linear pool, from the probabilities of the outcomes, `q` (T, N), above 0.

    Complete forecasts: the likelihood is concave, and the `gap` (the most that it could still rise) proves the answer.
    Of several equally likely weights it is those with the least sum of squares: experts who always say the same share
    equally. Differences between experts that move the gap by less than about 1e-10 count as none.

    Missing forecasts (`present`): p_t = Σ_present w_i q_ti / Σ_present w_i is not concave in log p. The answer is a
    stationary point that is at least as likely as equal weights, not the best of several. Each weight is at least 1e-6
    / N: without that, where everybody with weight is absent, p would be 0 / 0. Events with a single forecast do not
    count, and an expert who shares no event with another gets 1 / N.

    >>> import numpy as np
    >>> fit = simplex_weights([[0.9, 0.2], [0.8, 0.7], [0.7, 0.6]])
    >>> fit.weights, fit.converged
    (array([1., 0.]), True)
    """
    q = np.asarray(q, dtype=np.float64)
    share = np.ones(len(q)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    mask = None if present is None else np.asarray(present, dtype=bool)
    if mask is None or mask.all():
        likelihood = _Likelihood(q, share / share.sum(), None)
        here = _maximum(likelihood, tolerance, max_iterations)
        if here.gap <= tolerance:
            here = _shortest(likelihood, here, tolerance)
        return SimplexFit(here.v, here.gap, likelihood.passes, here.gap <= tolerance)
    size, total = q.shape[1], share[mask.any(axis=1)].sum()
    rows = (mask.sum(axis=1) > 1) & (share > 0)
    answered = mask[rows].any(axis=0)
    weights = np.full(size, 1.0 / size)
    if not rows.any():
        return SimplexFit(weights, 0.0, 1.0, converged=True)
    cells = np.ix_(rows, answered)
    likelihood = _Likelihood(q[cells], share[rows] / total, mask[cells])
    here = _maximum(likelihood, tolerance, max_iterations)
    v = _averaged(likelihood, here.v)
    weights[answered] = likelihood.spread(v) * (answered.sum() / size)
    return SimplexFit(weights, here.gap, likelihood.passes, here.gap <= tolerance)


class _Point(NamedTuple):
    """Weights v that a search has reached, with the loss, its gradient and the bound `gap` there."""

    v: Array  # (N,)
    pooled: Array  # (2, T); sums over experts of w q, and of w
    score: Array  # (N,); negative gradient of the loss
    loss: float
    gap: float  # the largest derivative of the mean log-likelihood towards one expert

    def within(self, tolerance: float) -> bool:
        """True if the weights are nearly best: shifting weight to an expert gains at most about `tolerance`."""
        return self.gap <= tolerance and float(np.abs(self.score[self.v > 0]).max()) <= SLACK * tolerance


@dataclass(eq=False)
class _Likelihood:
    """Log loss −Σ_t u_t log(Σ_i w_i q_ti / Σ_i w_i) of a linear pool: weights w, outcomes' probabilities q, shares u.

    w = (1 − ε)v + ε mean(v) at a point v; ε = 1e-6, or 0 if no q is missing. The loss is the same for any multiple of
    v, so v'∇ = 0, and the quadratic with ∇² + 11' has its minimum on v ≥ 0 at Σv = 1. With e = q/Σwq − [present]/Σw and
    g = [present]/Σw, the score is Σ u e, and ∇² is Σ u (ee' + eg' + ge').
    """

    q: Array  # (T, N); probabilities that forecasts gave to the outcomes
    share: Array  # (T,); weights of the events, with sum 1
    present: Mask | None  # (T, N); None if no forecast is missing
    passes: float = 0.0  # number of reads of the array so far

    @cached_property
    def sample(self) -> tuple[_Likelihood, Index | slice]:
        """Likelihood of a sample of the events, and the sample's positions; of all events if they are few."""
        events, size = self.q.shape
        stride = min(STRIDE, events // (EVENTS_PER_EXPERT * size))
        if stride < STRIDE // 2 or events * size <= SHORT:
            return self, slice(None)
        rows = some_rows(self.forecasts, stride)
        share, present = self.share[rows], None if self.present is None else self.present[rows]
        # Where many events are the same, a sample may be none or all of them.
        usable = share.any() and 2 * len(rows) < events
        return (_Likelihood(self.q[rows], share / share.sum(), present), rows) if usable else (self, slice(None))

    @property
    def forecasts(self) -> Array:
        """The forecasts, NaN where missing, (T, N)."""
        return self.q if self.present is None else np.where(self.present, self.q, np.nan)

    def spread(self, x: Array, mean: Array | None = None) -> Array:
        """Mixture (1 − ε) x + ε mean(x): weights w of a point v = `x`, or derivatives by v of those by w, `x`."""
        if self.present is None:
            return x
        return np.asarray((1.0 - LEAST) * x + LEAST * (x.mean() if mean is None else mean))

    def cells(self, rows: slice, near: Mask | slice) -> tuple[Array, Array]:
        """Forecasts of the events `rows` by the experts `near`, 0 where missing; and presence as 1 or 0."""
        q = self.q[rows][:, near]
        if self.present is None:
            return q, q
        here = self.present[rows][:, near]
        return np.where(here, q, 0.0), here.astype(np.float64)

    def read(self, v: Array) -> _Point:
        """Return loss and gradient at the weights `v`, from one pass over the array of forecasts."""
        w, pooled, score = self.spread(v), np.ones((2, len(self.q))), np.zeros(len(v))
        for rows in blocks(*self.q.shape):
            q, here = self.cells(rows, slice(None))
            share, (num, den) = self.share[rows], pooled[:, rows]
            score += (share / np.dot(q, w, out=num)) @ q
            if self.present is not None:
                score -= (share / np.dot(here, w, out=den)) @ here
        self.passes += 1
        score = self.spread(score - (self.present is None))
        return _Point(v, pooled, score, self.loss(pooled), float(score.max()))

    def loss(self, pooled: Array) -> float:
        """Mean negative log-likelihood; `pooled` are sums over experts of w q and of w, (2, T)."""
        return -float(self.share @ np.log(pooled[0] / pooled[1]))

    def hessian(self, pooled: Array, near: Mask) -> tuple[Array, Array]:
        """Hessian + 11' among the experts `near`, and a positive semidefinite approximation of this matrix."""
        # To copy most columns takes longer than to multiply all.
        every = slice(None)
        columns, kept = (every, near) if 2 * np.count_nonzero(near) > len(near) else (near, every)
        convex = np.zeros((len(near[columns]),) * 2)
        cross = convex.copy()
        for rows in blocks(*self.q.shape):
            q, here = self.cells(rows, columns)
            root, num, den = np.sqrt(self.share[rows, None]), pooled[0, rows, None], pooled[1, rows, None]
            if self.present is None:
                # Here g = 1, and ∇² + 11' = Σ u (1 + e)(1 + e)'.
                row = q * (root / num)
                convex += row.T @ row
                continue
            mean, part = self._means[rows, :1], self._means[rows, 1:]
            e = self.spread((q / num - here / den) * root, (mean / num - part / den) * root)
            convex += e.T @ e
            cross += e.T @ self.spread(here * (root / den), part * (root / den))
        self.passes += 1
        if self.present is None:
            return (convex[kept][:, kept],) * 2
        return (convex + cross + cross.T + 1.0)[kept][:, kept], (convex + 1.0)[kept][:, kept]

    @cached_property
    def _means(self) -> Array:
        """Means over all experts of forecasts (0 where missing) and of presence (1 or 0), (T, 2)."""
        q = self.forecasts
        return np.asarray(np.column_stack([np.nansum(q, axis=1), np.isfinite(q).sum(axis=1)]) / q.shape[1])


def _start(likelihood: _Likelihood) -> _Point:
    """Start of the search: the better of equal weights and, for many events, the best weights for a sample."""
    size, (some, _) = likelihood.q.shape[1], likelihood.sample
    if some is likelihood:
        return likelihood.read(np.full(size, 1.0 / size))
    found = _maximum(some, 0.1 / float(np.sqrt(len(some.q))), STRIDE)
    likelihood.passes += some.passes * len(some.q) / len(likelihood.q)
    there = likelihood.read(found.v)
    equal = there if likelihood.present is None else likelihood.read(np.full(size, 1.0 / size))
    return min(there, equal, key=lambda point: point.loss)


def _maximum(likelihood: _Likelihood, tolerance: float, max_iterations: int) -> _Point:
    """Maximum of the likelihood by Newton's method; the last point reached if `max_iterations` do not suffice."""
    here, (some, rows) = _start(likelihood), likelihood.sample
    seen, (exact, convex) = np.zeros(len(here.v), dtype=bool), np.empty((2, 0, 0))
    for _ in range(max_iterations):
        if here.within(tolerance):
            return here
        near = (here.v > 0) | (here.score > 0)
        fresh = bool((near & ~seen).any())
        if fresh:
            seen, (exact, convex) = near, some.hessian(here.pooled[:, rows], near)
        target, own = np.zeros(len(near)), np.ix_(near[seen], near[seen])
        target[near] = _cone_minimum(exact[own], convex[own], here.v[near], here.score[near])
        if not here.score @ target >= -10 * ROUNDING:
            target = np.eye(len(near))[here.score.argmax()]
        there = _search(likelihood, here, target)
        if there is here and some is likelihood and fresh:
            return here
        if there.gap > FAST * here.gap:
            some, rows, seen = likelihood, slice(None), np.zeros_like(seen)
        here = there
    return here


def _cone_minimum(exact: Array, convex: Array, v: Array, score: Array) -> Array:
    """Next weights of a Newton search from `v`: minimum over x ≥ 0 of the expansion of the loss, rescaled to sum 1."""
    scale = np.sqrt(convex.diagonal())
    matrix = exact / scale / scale[:, None]
    matrix.flat[:: len(v) + 1] += RIDGE
    try:
        root = np.linalg.cholesky(matrix).T
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(matrix)
        root = np.sqrt(np.maximum(np.abs(values), FLAT))[:, None] * vectors.T
    x = _nonnegative(root, root @ (scale * v) + np.linalg.solve(root.T, score / scale)) / scale
    return np.asarray(x / x.sum())


def _nonnegative(matrix: Floats, aim: Floats) -> Array:
    """The x ≥ 0 that minimises |matrix x − aim| (Lawson & Hanson 1974, chapter 23); NaN if SciPy does not find it."""
    from scipy.optimize import nnls

    try:
        return np.asarray(nnls(matrix, aim, maxiter=20 * matrix.shape[1])[0])
    except RuntimeError:
        return np.full(matrix.shape[1], np.nan)


def _search(likelihood: _Likelihood, here: _Point, target: Array) -> _Point:
    """First point with enough decrease of the loss at 1, ½, ¼, ... of the way to `target`, or beyond; else `here`."""
    there, promised = likelihood.read(target), GAIN * float(here.score @ target)
    length, change, move = 0.5, there.pooled - here.pooled, target - here.v
    enough = here.loss - promised + ROUNDING * (1.0 + abs(here.loss))
    if there.loss <= enough or (likelihood.present is None and there.gap <= 0.5 * here.gap):
        furthest = float((here.v[move < 0] / -move[move < 0]).min(initial=np.inf))
        if there.gap <= FAST * here.gap or furthest < 2.0:
            return there
        best = there.loss
        while 4.0 * length < furthest and (further := likelihood.loss(here.pooled + 4.0 * length * change)) < best:
            length, best = 2.0 * length, further
        beyond = here.v + 2.0 * length * move
        return there if length < 1.0 else likelihood.read(beyond / beyond.sum())
    while likelihood.loss(here.pooled + length * change) > here.loss - length * promised:
        length *= 0.5
        if length < ROUNDING:
            return here
    return likelihood.read(here.v + length * move)


def _shortest(likelihood: _Likelihood, here: _Point, tolerance: float) -> _Point:
    """Of all weights with the same pooled forecasts as `here`, those with least sum of squares; `here` if unique."""
    tied = (here.v > 0) | (here.score > TIED_SCORE)
    some, events = likelihood.sample
    if np.linalg.eigvalsh(some.hessian(here.pooled[:, events], tied)[0])[0] > TIED:
        return here
    values, vectors = np.linalg.eigh(likelihood.hessian(here.pooled, tied)[0])
    rows = FAITH * vectors[:, values > TIED].T
    matrix, aim, none = np.vstack([rows, np.eye(len(values))]), rows @ here.v[tied], np.zeros(len(values))
    found = _nonnegative(matrix, np.append(aim, none))
    # What the first solution misses is asked for once more.
    found = _nonnegative(matrix, np.append(2.0 * aim - rows @ found, none))
    v = np.zeros(len(here.v))
    v[tied] = found / found.sum()
    there = likelihood.read(_averaged(likelihood, v))
    return there if there.gap <= tolerance else here


def _averaged(likelihood: _Likelihood, v: Array) -> Array:
    """Return the weights `v`, averaged within each group of experts whose forecasts are identical."""
    columns = np.ascontiguousarray(likelihood.forecasts[likelihood.share > 0].T)
    groups: dict[bytes, list[int]] = {}
    for place, column in enumerate(columns):
        groups.setdefault(column.tobytes(), []).append(place)
    v = v.copy()
    for same in groups.values():
        v[same] = v[same].mean()
    return v
