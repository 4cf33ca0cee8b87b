"""Maximum likelihood of a normal regression with missing responses, by EM (model.md, sections 2.5 and 3).

The responses of N variables have means B z, z being regressors, and one covariance Σ; every row counts with the
variables that it has, so nothing is filled in. With K = Σ_oo⁻¹ of a set of variables, placed in zeros, and
v = K (x − B z), EM's step needs only the sums of v vᵀ − K and of v zᵀ (Dempster, Laird and Rubin, JRSS B 39, 1977).
Steps are combined by Anderson's acceleration, and EM's own is taken where that would lower the likelihood, so that it
never falls (Walker and Ni, SIAM J. Numer. Anal. 49, 2011; Henderson and Varadhan, J. Comput. Graph. Stat. 28, 2019).

It is assumed that who answers does not depend on missing forecasts, given those made and the outcome (missing at
random). If experts choose the questions that they know about, as in tournaments, what is learned about an expert holds
for the questions of that choice. If answering depends on the outcome, a missing forecast is evidence, which the pool
leaves unused; if it depends on the missing forecast itself, b and mu are biased with the mean of the forecasts made.
`benchmarks/missing.py` shows how far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.blocks import blocks
from opinionpool.errors import LearningError, Note
from opinionpool.estimation.rows import ForecastRows, ResolvedEvents
from opinionpool.estimation.statistics import PatternMoments, Statistics
from opinionpool.labels import UNRESOLVED
from opinionpool.logodds import unwhitened, whitened
from opinionpool.model.contrasts import padded_cells
from opinionpool.model.correlation import least_pivot, patterns

# Of the largest change in a step of EM, in coordinates in which Σ is 1; and steps.
TOLERANCE, LIMIT = 1e-9, 2000
# Steps that are combined.
MEMORY = 10
# A fall of the log-likelihood that is rounding, relative to it.
ROUNDING = 1e-13
# A variable with so little variance beyond the others is determined by them: nearer to a singular covariance, where the
# likelihood may be highest, steps are as short as `TOLERANCE`.
SINGULAR = 1e-6
# Experts up to which a covariance is looked at.
MOST = 2000


class Patterns(NamedTuple):
    """P sets of n observed variables, and for each set the moments of the rows that have exactly these variables."""

    columns: Index  # (P, n)
    weight: Array  # (P, G)
    mean: Array  # (P, G, n)
    scatter: Array  # (P, n, n), or (1, n, n) if it is 0; about those means, summed over groups


class NormalFit(NamedTuple):
    """Fit of a normal regression of maximum likelihood: coefficients and residual covariance."""

    coefficients: Array  # (N, q)
    covariance: Array  # (N, N); of the residuals
    log_likelihood: tuple[float, ...]  # after each step
    note: Note  # note that forecasts are missing, and on the steps


class NoMaximumError(Exception):
    """Error for a likelihood without a maximum, as it rises towards a singular covariance."""

    def __init__(self, covariance: Array) -> None:
        super().__init__("the likelihood has no maximum")
        self.covariance = covariance


@dataclass(frozen=True, eq=False)
class NormalRegression:
    """Normal regression of N responses, some of them missing, on q regressors; rows in a group share regressors."""

    patterns: tuple[Patterns, ...]
    regressors: Array  # (G, q)
    size: int  # N

    @classmethod
    def of(cls, evidence: ResolvedEvents, kept: Index, regressors: Array) -> NormalRegression:
        """Regression of log-ratios by the experts `kept`; rows with one outcome and coordinate make a group."""
        found = _of_statistics(evidence, kept) if isinstance(evidence, Statistics) else _of_rows(evidence, kept)
        return cls(tuple(found), regressors, len(kept))

    @cached_property
    def weight(self) -> Array:
        """Number of rows in each group, weighted, (G,)."""
        return np.asarray(sum(part.weight.sum(axis=0) for part in self.patterns))

    def overlaps(self) -> Array:
        """Number of rows, weighted, in which both variables of a pair are observed, (N, N)."""
        total = np.zeros(self.size**2)
        for part in self.patterns:
            for rows in blocks(len(part.columns), part.columns.shape[1] ** 2):
                place = _places(part.columns[rows], self.size)
                weight = np.repeat(part.weight[rows].sum(axis=1), place[0].size)
                total += np.bincount(place.ravel(), weight, len(total))
        return total.reshape(self.size, self.size)

    def start(self) -> Array:
        """Initial model, coefficients beside covariance, (N, q + N): least squares for each variable separately."""
        n, groups = self.size, len(self.regressors)
        count, total, square = np.zeros((n, groups)), np.zeros((n, groups)), np.zeros(n)
        for columns, weight, mean, scatter in self.patterns:
            weighed = np.swapaxes(weight[:, :, None] * mean, 1, 2)
            np.add.at(count, columns, weight[:, None, :])
            np.add.at(total, columns, weighed)
            np.add.at(square, columns, np.einsum("png,pgn->pn", weighed, mean) + np.einsum("pnn->pn", scatter))
        design = np.einsum("ng,gi,gj->nij", count, self.regressors, self.regressors)
        coefficients = np.linalg.solve(design, (total @ self.regressors)[..., None])[..., 0]
        fitted = coefficients @ self.regressors.T
        square += (count * fitted**2 - 2.0 * total * fitted).sum(axis=1)
        return np.concatenate([coefficients, np.diag(square / count.sum(axis=1))], axis=1)

    def sums(self, model: Array) -> tuple[Array, Array, float]:
        """Return two derivatives of the log-likelihood at `model` (N, q + N), and its value there.

        The first, (N, N), is twice the derivative by the covariance; the second, (N, q), is by the coefficients.
        """
        n, z = self.size, self.regressors
        coefficients, covariance = model[:, : z.shape[1]], np.ascontiguousarray(model[:, z.shape[1] :]).ravel()
        curvature, score, value = np.zeros(n * n), np.zeros_like(coefficients), 0.0
        for part in self.patterns:
            for rows in blocks(len(part.columns), part.columns.shape[1] ** 2):
                columns, weight = part.columns[rows], part.weight[rows]
                place, total = _places(columns, n), weight.sum(axis=1)
                sigma = covariance[place]
                pivots, inverse = np.linalg.cholesky(sigma).diagonal(axis1=1, axis2=2), np.linalg.inv(sigma)
                off = part.mean[rows] - np.swapaxes(coefficients[columns] @ z.T, 1, 2)
                solved = off @ inverse
                weighed = np.swapaxes(weight[..., None] * solved, 1, 2)
                products = weighed @ solved - total[:, None, None] * inverse
                value -= float(total @ np.log(pivots).sum(axis=1)) + float(np.vdot(weighed, np.swapaxes(off, 1, 2))) / 2
                if len(part.scatter) > 1 or part.scatter.any():
                    within = part.scatter[rows]
                    products += inverse @ within @ inverse
                    value -= float(np.vdot(inverse, within)) / 2.0
                curvature += np.bincount(place.ravel(), products.ravel(), n * n)
                for j, column in enumerate(np.moveaxis(weighed @ z, 2, 0)):
                    score[:, j] += np.bincount(columns.ravel(), column.ravel(), n)
        return curvature.reshape(n, n), score, value

    def step(self, model: Array, curvature: Array, score: Array) -> Array:
        """EM's next model (N, q + N) after `model`, from the derivatives `curvature` and `score` given by `sums`."""
        q, rows = self.regressors.shape[1], self.weight.sum()
        covariance, design = model[:, q:], (self.regressors.T * self.weight) @ self.regressors
        change = covariance @ np.linalg.solve(design, score.T).T
        sigma = covariance + covariance @ (curvature / rows) @ covariance - change @ (design / rows) @ change.T
        return np.concatenate([model[:, :q] + change, (sigma + sigma.T) / 2.0], axis=1)

    def fit(self) -> NormalFit:
        """Maximum-likelihood fit; a NoMaximumError if steps lead to a singular covariance, or do not end."""
        model, q = self.start(), self.regressors.shape[1]
        (curvature, score, value), values, history = self.sums(model), list[float](), list[tuple[Array, Array]]()
        while True:
            values.append(value)
            if len(values) > LIMIT or least_pivot(model[:, q:]) < SINGULAR:
                raise NoMaximumError(model[:, q:])
            after = self.step(model, curvature, score)
            history = [*history[-MEMORY:], (model, after)]
            left = _relative(history)
            if np.abs(left[-1]).max() <= TOLERANCE:
                return NormalFit(after[:, :q], after[:, q:], tuple(values), self._note(len(values)))
            # Anderson's combination of steps, that which would change least.
            share = np.linalg.lstsq(np.diff(left, axis=0).T, left[-1], rcond=1e-10)[0]
            model = after - np.tensordot(share, np.diff([each for _, each in history], axis=0), 1)
            sums = self._if_higher(model, value)
            if sums is None:
                history, model = history[-1:], after
                sums = self.sums(model)
            curvature, score, value = sums

    def _if_higher(self, model: Array, value: float) -> tuple[Array, Array, float] | None:
        """Return `sums(model)` if the model is possible and its log-likelihood at least `value`; else None."""
        if not least_pivot(model[:, self.regressors.shape[1] :]) > 0:
            return None
        sums = self.sums(model)
        return sums if sums[2] >= value - ROUNDING * (1.0 + abs(value)) else None

    def _note(self, steps: int) -> Note:
        """Note that forecasts are missing, with the number of EM's steps and the assumption made."""
        text = (
            f"forecasts are missing, so this is maximum likelihood on those that are there, found in {steps} steps"
            "; it assumes that who answers does not depend on what happens"
        )
        return Note("maximum-likelihood", text)


def _places(columns: Index, size: int) -> Index:
    """For each row of `columns` (P, n): positions (P, n, n) of its pairs in a flattened `size` × `size` array."""
    return np.asarray(columns[:, :, None] * size + columns[:, None, :])


def _relative(history: list[tuple[Array, Array]]) -> Array:
    """Changes of the model in past EM steps, flattened, in units in which the latest covariance is the identity."""
    n = len(history[-1][0])
    inverse = np.linalg.inv(np.linalg.cholesky(history[-1][0][:, -n:]))
    change = inverse @ np.array([after - before for before, after in history])
    change[..., -n:] = change[..., -n:] @ inverse.T
    return np.asarray(change.reshape(len(history), -1))


def _of_statistics(statistics: Statistics, kept: Index) -> Iterator[Patterns]:
    """Yield moments of the experts `kept` on resolved events, for each set of experts who answered together."""
    position = np.full(len(statistics.experts), -1)
    position[kept] = np.arange(len(kept))
    for key, part in statistics.patterns.items():
        columns = position[np.array(key, dtype=np.intp)]
        active = np.flatnonzero(columns >= 0)
        if len(active) and part.weight[:-1].any():
            yield _pattern(part, columns[active], active)


def _pattern(part: PatternMoments, columns: Index, active: Index | slice) -> Patterns:
    """Moments, by outcome and coordinate, of the experts `active` in `part`, the regression's variables `columns`."""
    mean = np.moveaxis(whitened(part.mean[:-1, active]), 2, 1).reshape(-1, len(columns))
    weight = np.repeat(part.weight[:-1], part.mean.shape[2])
    return Patterns(columns[None], weight[None], mean[None], part.scatter[:1, active][:, :, active])


def _of_rows(rows: ForecastRows, kept: Index) -> Iterator[Patterns]:
    """Yield moments of the experts `kept` by set of experts who answered; many sets with one event are in one item."""
    position, groups, d = np.full(rows.experts, -1), len(rows.design.signature), rows.classes - 1
    position[kept] = np.arange(len(kept))
    counted = (rows.outcomes != UNRESOLVED) & (rows.weight > 0)
    cells = np.flatnonzero(counted[rows.event] & (position[rows.expert] >= 0))
    cells = cells[np.lexsort((position[rows.expert[cells]], rows.event[cells]))]
    for events, place, present in padded_cells(rows.event[cells], len(rows.outcomes)):
        for which, here, who in patterns(present, position[rows.expert[cells[place]]]):
            alike, (several, n) = events[which], who.shape
            ratios = rows.ratios[cells[place[which[:, :, None], here[:, None, :]]]]
            outcomes, weight = rows.outcomes[alike], rows.weight[alike]
            if which.shape[1] > 1:
                for part, y, v, columns in zip(ratios, outcomes, weight, who, strict=True):
                    yield _pattern(PatternMoments.of_rows(part, y, v, groups), columns, slice(None))
                continue
            counts, mean = np.zeros((several, groups, d)), np.zeros((several, groups, d, n))
            at = np.arange(several), outcomes[:, 0]
            counts[at], mean[at] = weight, np.swapaxes(whitened(ratios[:, 0]), 1, 2)
            shape = several, groups * d
            yield Patterns(who, counts.reshape(shape), mean.reshape(*shape, n), np.zeros((1, n, n)))


class Likeliest(NamedTuple):
    """Parameters of maximum likelihood: bias (N, K - 1), contrast (N,), covariance (N, N), and the regression's fit."""

    bias: Array
    contrast: Array
    covariance: Array
    fit: NormalFit


def maximum_likelihood(evidence: ResolvedEvents, bias: Array, varies: Mask, experts: tuple[str, ...]) -> Likeliest:
    """Fit the experts' mean log-ratios by outcome and a full covariance, where forecasts are missing.

    The regression is bias + contrast · signature + noise. Experts who do not vary keep their `bias`, (N, K - 1), and
    get a contrast of 0 and no covariance. A LearningError says that two experts never, or hardly, answered the same
    event, or that the likelihood has no maximum.
    """
    kept: Index = np.flatnonzero(varies)
    if len(experts) > MOST:
        raise LearningError(
            f"a full covariance is learned for up to {MOST} experts, and there are {len(experts)}; use "
            "structure='common' or structure='auto'"
        )
    d, (design, names) = evidence.classes - 1, (evidence.design, tuple(experts[i] for i in kept))
    regressors = whitened(design.signature).reshape(-1, 1)
    if design.biased:
        regressors = np.concatenate([np.tile(np.eye(d), (len(design.signature), 1)), regressors], axis=1)
    regression = NormalRegression.of(evidence, kept, regressors)
    # A row for each coordinate.
    together = regression.overlaps() / d
    needed = -(-(3 + d) // d)
    check_overlaps(together, needed, names, "a full covariance", "use structure='common' or structure='auto'")
    try:
        fit = regression.fit()
    except NoMaximumError as error:
        raise LearningError(_no_maximum(error.covariance, together, names)) from None
    n, rows = len(experts), float(regression.weight.sum())
    bias, contrast, covariance = bias.copy(), np.zeros(n), np.zeros((n, n))
    if design.biased:
        bias[kept] = unwhitened(fit.coefficients[:, :d])
    contrast[kept] = fit.coefficients[:, -1]
    covariance[np.ix_(kept, kept)] = fit.covariance * rows / (rows - design.coefficients)
    return Likeliest(bias, contrast, covariance, fit)


def check_overlaps(together: Array, needed: int, names: Sequence[str], what: str, remedy: str) -> None:
    """Raise a LearningError unless each pair of experts has `needed` common events, of `together` (N, N)."""
    few = np.argwhere(np.triu(together < needed, 1))
    if len(few):
        i, j = few[np.argmin(together[few[:, 0], few[:, 1]])]
        met = f"only on {together[i, j]:g}" if together[i, j] else "never"
        more = f"; {len(few)} pairs of {len(names)} experts are such" if len(few) > 1 else ""
        raise LearningError(
            f"{what} needs at least {needed} resolved events for every pair of experts, and {names[i]!r} and "
            f"{names[j]!r} met {met}{more}; {remedy}, or leave experts out"
        )


def _no_maximum(sigma: Array, together: Array, names: tuple[str, ...]) -> str:
    """Return the error message if numbers of shared events, `together`, are too small for the covariance `sigma`."""
    spread = np.sqrt(np.diag(sigma))
    r = sigma / np.outer(spread, spread)
    i, j = np.unravel_index(int(np.argmax(np.abs(np.triu(r, 1)))), r.shape)
    met = together[np.triu_indices(len(r), 1)]
    return (
        f"forecasts are missing, and those that are there do not determine a covariance of {len(names)} experts: its "
        f"likelihood rises towards a singular one; {names[i]!r} and {names[j]!r} come to a correlation of "
        f"{r[i, j]:.3f} on {together[i, j]:g} shared events (pairs share {met.min():g} to {met.max():g}); use "
        "structure='common' or structure='auto', or leave one of them out"
    )
