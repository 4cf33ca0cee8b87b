"""Maximum likelihood where forecasts are missing, by EM on the forecasts that are there (model.md, section 2.5).

The model is D_i = b_i + mu_i [k = Y] + noise with a full covariance Sigma between experts, and every event counts
with the experts who answered it: nothing is filled in, and no covariance is computed pair by pair, which need not
give a covariance at all. `opinionpool.estimation.e_step` says what a step needs. Steps are those by Fisher's
information of the observed forecasts (`opinionpool.estimation.em`), which unlike EM's do not get shorter the more is
missing; where such a step would lower the likelihood or leave the covariances, EM's own is taken, so that it never
falls. Sigma is then multiplied by (K − 1)T/((K − 1)T − K), as from complete events.

It is assumed that who answers does not depend on missing forecasts, given those made and the outcome (missing at
random). Where experts answer when they know, as in tournaments with a free choice of questions, what is learned about
an expert holds for the questions of that choice. Where answering depends on the outcome, that somebody is silent is
evidence, which the pool leaves unused; and where it depends on the missing forecast itself, b and mu are off by what
that does to the mean of the forecasts. `benchmarks/missing.py` shows how far.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.errors import LearningError, Note
from opinionpool.estimation.averages import Means, common_correlation
from opinionpool.estimation.e_step import Model, Sample, Sums, gathered
from opinionpool.estimation.rows import ResolvedEvents
from opinionpool.estimation.statistics import Statistics
from opinionpool.labels import UNRESOLVED
from opinionpool.logodds import metric

# Numbers in the inverses that are kept.
BUDGET = 1 << 20
# How exactly a step is solved for, and in how many products at most.
PRECISION, PRODUCTS = 0.01, 40


@dataclass(frozen=True, eq=False)
class _Inverse:
    """Inverses K of some events: (T, n, n), their places in an N x N array, and their weights by outcome (K, T)."""

    inverse: Array
    place: Index
    weight: Array


@dataclass(frozen=True, eq=False)
class Information:
    """Information at a model."""

    sigma: Array  # (N, N)
    terms: float  # rows of the regression
    inverses: tuple[_Inverse, ...]
    scale: Array  # (N, N); root of how much rarer a pair is than an event; makes few products enough
    design: Array  # (N, K, N, K); information on coefficients

    @classmethod
    def of(cls, sample: Sample, model: Model, sums: Sums) -> Information:
        """The information of a sample, or of part of a long one, at a model whose sums are known."""
        n, (k, d) = len(model.sigma), sample.shape.shape
        inverses = tuple(_inverses(sample, model, sums))
        by_outcome, together = np.zeros((k, n * n)), np.zeros(n * n)
        for part in inverses:
            for c in range(k):
                gathered(part.place, part.inverse * part.weight[c][:, None, None], by_outcome[c])
            count = np.broadcast_to(part.weight.sum(axis=0)[:, None, None], part.inverse.shape)
            gathered(part.place, count, together)
        scale = np.sqrt(sample.events.sum() / np.maximum(together, 1.0)).reshape(n, n)
        outer = np.zeros((k, d + 1, d + 1))
        outer[:, :d, :d] = np.eye(d)
        outer[:, :d, d] = outer[:, d, :d] = sample.biased * sample.shape
        outer[:, d, d] = (sample.shape**2).sum(axis=1)
        design = np.einsum("cnm,cij->nimj", by_outcome.reshape(k, n, n), outer, optimize=True)
        return cls(model.sigma, sample.terms, inverses, scale, design)

    def step(self, sums: Sums) -> Model:
        """Changes of coefficients and Sigma."""
        n, k = sums.score.shape
        system = self.design.reshape(n * k, n * k)
        coefficients = np.linalg.solve(system, sums.score.ravel()).reshape(n, k)
        return Model(np.asarray(coefficients, dtype=np.float64), self._solve(sums.curvature, k - 1))

    def _solve(self, target: Array, d: int) -> Array:
        """U with sum of K_t U K_t = target, by preconditioned conjugate gradients."""
        found, left = np.zeros_like(target), target.copy()
        near = self._nearly(left)
        way, size = near, float((left * near).sum())
        first = size
        for _ in range(PRODUCTS):
            if size <= PRECISION**2 * first:
                break
            product = d * self._times(way)
            length = size / float((way * product).sum())
            found += length * way
            left -= length * product
            near = self._nearly(left)
            after = float((left * near).sum())
            way = near + after / size * way
            size = after
        return (found + found.T) / 2.0

    def _nearly(self, target: Array) -> Array:
        """What U would be were the experts' answers independent of each other."""
        return np.asarray(self.scale * (self.sigma @ (self.scale * target) @ self.sigma) / self.terms)

    def _times(self, u: Array) -> Array:
        """Sum of K_t U K_t."""
        n, flat = len(u), u.ravel()
        total = np.zeros(n * n)
        for part in self.inverses:
            product = part.inverse @ flat[part.place] @ part.inverse
            product *= part.weight.sum(axis=0)[:, None, None]
            gathered(part.place, product, total)
        return total.reshape(n, n)


def _inverses(sample: Sample, model: Model, sums: Sums) -> list[_Inverse]:
    n, k = len(model.sigma), len(sample.events)
    size = sum(batch.columns.shape[1] * len(batch.columns) ** 2 for batch in sample.batches)
    share = min(1.0, BUDGET / max(size, 1))
    inverses = []
    for batch in sample.batches:
        t = batch.columns.shape[1]
        rows = np.linspace(0, t - 1, max(1, round(share * t))).astype(np.intp)
        weight = np.zeros((k, len(rows)))
        weight[batch.outcomes[rows], np.arange(len(rows))] = batch.weight[rows] * (t / len(rows))
        inverses.append(_inverted(batch.columns[:, rows].T, weight, model.sigma, n))
    known = zip(sample.groups, sums.inverses, strict=True)
    return inverses + [_Inverse(inverse, group.place(n), group.weight.T) for group, inverse in known]


def _inverted(columns: Index, weight: Array, sigma: Array, n: int) -> _Inverse:
    place = columns[:, :, None] * n + columns[:, None, :]
    return _Inverse(np.linalg.inv(sigma.ravel()[place]), place, weight)


# Of the largest change in a step, in units of each expert's spread.
TOLERANCE = 1e-7
LIMIT = 200
# A fall of the log-likelihood that is rounding, relative to it.
ROUNDING = 1e-13
# How much of a step is tried before EM's own is taken.
LENGTHS = (1.0, 0.5, 0.25, 0.125)
# Steps this short that do not raise the likelihood are at its maximum to rounding.
STALLED = 1e-4
# An expert with so little variance beyond the others is determined by them.
SINGULAR = 1e-8
# Experts up to which a covariance is looked at.
MOST = 2000
# Where the iteration starts, correlations are no closer to their bounds than this.
CAUTIOUS = 0.95


@dataclass(frozen=True, eq=False)
class Report:
    """How the iteration went."""

    values: tuple[float, ...]  # log-likelihood after each step, without its constant; never falling but by rounding
    passes: int  # E-steps over all events
    step: float  # the largest change that the last step made, in units of each expert's spread
    converged: bool

    @property
    def gain(self) -> float:
        """What the log-likelihood gained in the last step."""
        return self.values[-1] - self.values[-2] if len(self.values) > 1 else 0.0


@dataclass(frozen=True, eq=False)
class Likeliest:
    """Maximum-likelihood estimates of N experts."""

    bias: Array  # (N, K - 1)
    contrast: Array  # (N,)
    covariance: Array  # (N, N); with the divisor (K − 1)T − K
    report: Report

    @property
    def notes(self) -> list[Note]:
        """What a user must know."""
        text = (
            "forecasts are missing, so this is maximum likelihood on those that are there, found in "
            f"{len(self.report.values) - 1} steps ({self.report.passes} passes over the forecasts); it assumes that "
            "who answers does not depend on what happens"
        )
        return [Note("maximum-likelihood", text)]


def maximum_likelihood(
    evidence: ResolvedEvents,
    means: Means,
    reference: Array,
    experts: tuple[str, ...],
    *,
    tolerance: float = TOLERANCE,
    limit: int = LIMIT,
    plain: bool = False,
) -> Likeliest:
    """Estimates for the experts with a residual sum of squares above 0 in `means`; others get 0, and no covariance.

    Parameters
    ----------
    evidence : ResolvedEvents
    means : Means
        Least squares of each expert by itself; where the iteration starts.
    reference : ndarray, shape (K - 1,)
        What is subtracted from log-ratios.
    experts : tuple of str
        N names, for messages.
    tolerance : float
        Of the largest change in a step, in units of each expert's spread.
    limit : int
        E-steps.
    plain : bool
        Whether to take only EM's steps, to compare with.

    Raises
    ------
    LearningError
        If two experts never, or hardly, answered the same event, or if the likelihood has no maximum.

    Examples
    --------
    Two experts, the second of whom did not answer the last event of either outcome:

    >>> from opinionpool.estimation.averages import sample_means
    >>> x = np.array([[2, 1], [0, 1], [1, 2], [3, np.nan], [0, -1], [-2, -2], [-1, -1], [-2, np.nan]])[..., None]
    >>> event, expert = np.nonzero(~np.isnan(x[..., 0]))
    >>> outcomes = np.array([1, 1, 1, 1, 0, 0, 0, 0])
    >>> from opinionpool.estimation.rows import ForecastRows
    >>> evidence = ForecastRows(event, expert, x[event, expert], outcomes, np.ones(8), 2)
    >>> zero = np.zeros(1)
    >>> found = maximum_likelihood(evidence, sample_means(evidence, zero), zero, ("ann", "bob"))
    >>> found.contrast.round(3), found.report.converged
    (array([1.375, 1.427]), True)
    """
    kept: Index = np.flatnonzero(means.square > 0)
    if len(means.square) > MOST:
        raise LearningError(
            f"a full covariance is learned for up to {MOST} experts, and there are {len(means.square)}; use "
            "structure='common' or structure='auto'"
        )
    names = tuple(experts[i] for i in kept)
    classes = evidence.classes
    together = overlaps(evidence)[np.ix_(kept, kept)]
    _check_overlaps(together, names, classes)
    sample = Sample.of(evidence, kept)
    root = np.asarray(np.linalg.cholesky(metric(classes)), dtype=np.float64)
    found, report = _climb(sample, _start(evidence, sample, means, reference, kept, root), tolerance, limit, plain)
    if not report.converged or _least_pivot(found.sigma) < SINGULAR:
        # Steps that do not end lead along a ridge to a singular covariance, or along a plain.
        raise LearningError(_no_maximum(found.sigma, together, names))
    n, d = len(means.contrast), classes - 1
    bias, contrast, covariance = means.bias.copy(), np.zeros(n), np.zeros((n, n))
    bias[kept] = found.coefficients[:, :d] @ np.linalg.inv(root) - reference
    contrast[kept] = found.coefficients[:, d]
    covariance[np.ix_(kept, kept)] = found.sigma * sample.terms / (sample.terms - means.design.coefficients)
    return Likeliest(bias, contrast, covariance, report)


def overlaps(evidence: ResolvedEvents) -> Array:
    """Weight of the resolved events that each pair of experts both answered, (N, N)."""
    if isinstance(evidence, Statistics):
        n = len(evidence.experts)
        total = np.zeros((n, n))
        for key, part in evidence.patterns.items():
            total[np.ix_(key, key)] += part.weight[:-1].sum()
        return total
    weight = np.where(evidence.outcomes != UNRESOLVED, evidence.weight, 0.0)
    total = np.zeros((evidence.experts, evidence.experts))
    size = max(1, (1 << 22) // evidence.experts)
    for first in range(0, len(weight), size):
        low, high = np.searchsorted(evidence.event, (first, first + size))
        present = np.zeros((min(size, len(weight) - first), evidence.experts))
        present[evidence.event[low:high] - first, evidence.expert[low:high]] = 1.0
        total += (present.T * weight[first : first + size]) @ present
    return total


def _check_overlaps(together: Array, names: tuple[str, ...], classes: int) -> None:
    """Every pair must have met on enough events for a covariance of two."""
    needed = -(-(2 + classes) // (classes - 1))
    few = np.argwhere(np.triu(together < needed, 1))
    if len(few):
        i, j = few[np.argmin(together[few[:, 0], few[:, 1]])]
        met = f"only on {together[i, j]:g}" if together[i, j] else "never"
        more = f"; {len(few)} pairs of {len(names)} experts are such" if len(few) > 1 else ""
        raise LearningError(
            f"a full covariance needs at least {needed} resolved events for every pair of experts, and {names[i]!r} "
            f"and {names[j]!r} met {met}{more}; use structure='common' or structure='auto', or leave experts out"
        )


def _start(evidence: ResolvedEvents, sample: Sample, means: Means, reference: Array, kept: Index, root: Array) -> Model:
    """Each expert by itself, and each pair; where those are no covariances, one correlation for all."""
    count = means.count.sum(axis=0)[kept] * (evidence.classes - 1)
    spread = np.sqrt(means.square[kept] / count)
    rho = float(np.clip(common_correlation(evidence, means, reference), 0.0, CAUTIOUS)) if len(kept) > 1 else 0.0
    sigma = np.outer(spread, spread) * np.where(np.eye(len(kept), dtype=bool), 1.0, rho)
    bias = (means.bias[kept] + reference) @ root
    model = Model(np.concatenate([bias, means.contrast[kept, None]], axis=1), sigma)
    pairs = sample.pairwise(model)
    # Not a number where a pair is met in no group.
    return replace(model, sigma=pairs) if _least_pivot(pairs) >= 1.0 - CAUTIOUS else model


def _climb(sample: Sample, model: Model, tolerance: float, limit: int, plain: bool) -> tuple[Model, Report]:
    """Up the likelihood until steps are short, or Sigma is as good as singular."""
    sums = sample.sums(model)
    values, passes, largest = [sums.log_likelihood], 1, np.inf
    while largest > tolerance and passes < limit and _least_pivot(model.sigma) > SINGULAR:
        after = None
        if not plain:
            change = Information.of(sample, model, sums).step(sums)
            for length in LENGTHS:
                trial = Model(model.coefficients + length * change.coefficients, model.sigma + length * change.sigma)
                passes += _least_pivot(trial.sigma) > 0
                after = _if_higher(sample, trial, sums.log_likelihood)
                if after is not None:
                    break
        if after is None:
            trial = _em_step(sample, model, sums)
            passes += 1
            after = _if_higher(sample, trial, sums.log_likelihood)
        if after is None:
            reached = _largest_change(model, trial) <= STALLED
            return model, Report(tuple(values), passes, largest, reached)
        largest = _largest_change(model, trial)
        model, sums = trial, after
        values.append(sums.log_likelihood)
    return model, Report(tuple(values), passes, largest, largest <= tolerance)


def _if_higher(sample: Sample, trial: Model, value: float) -> Sums | None:
    """The sums at a model, if it is one and its likelihood is no lower but by rounding."""
    if not _least_pivot(trial.sigma) > 0:
        return None
    try:
        sums = sample.sums(trial)
    except np.linalg.LinAlgError:
        return None
    return sums if sums.log_likelihood >= value - ROUNDING * (1.0 + abs(value)) else None


def _em_step(sample: Sample, model: Model, sums: Sums) -> Model:
    """The textbook's M-step, in terms of the model before."""
    design, terms = sample.design, sample.terms
    change = model.sigma @ np.linalg.solve(design, sums.score.T).T
    sigma = model.sigma + model.sigma @ (sums.curvature / terms) @ model.sigma - change @ (design / terms) @ change.T
    return Model(model.coefficients + change, (sigma + sigma.T) / 2.0)


def _largest_change(before: Model, after: Model) -> float:
    spread = np.sqrt(np.diag(before.sigma))
    moved = np.abs(after.coefficients - before.coefficients) / spread[:, None]
    return float(max(moved.max(), (np.abs(after.sigma - before.sigma) / np.outer(spread, spread)).max()))


def _least_pivot(sigma: Array) -> float:
    """The least share of its variance that an expert has beyond those before it; 0 if this is no covariance."""
    variance = np.diag(sigma)
    if not (variance > 0).all():
        return 0.0
    spread = np.sqrt(variance)
    try:
        return float((np.diag(np.linalg.cholesky(sigma / np.outer(spread, spread))) ** 2).min())
    except np.linalg.LinAlgError:
        return 0.0


def _no_maximum(sigma: Array, together: Array, names: tuple[str, ...]) -> str:
    """Why there is nothing to find, with the pair that comes nearest to being duplicates."""
    spread = np.sqrt(np.diag(sigma))
    r = sigma / np.outer(spread, spread)
    deviation = np.where(np.eye(len(r), dtype=bool), 0.0, np.abs(r))
    i, j = np.unravel_index(int(np.argmax(deviation)), r.shape)
    met = together[np.triu_indices(len(r), 1)]
    return (
        f"forecasts are missing, and those that are there do not determine a covariance of {len(names)} experts: its "
        f"likelihood rises towards a singular one; {names[i]!r} and {names[j]!r} come to a correlation of "
        f"{r[i, j]:.3f} on {together[i, j]:g} shared events (pairs share {met.min():g} to {met.max():g}); use "
        "structure='common' or structure='auto', or leave one of them out"
    )
