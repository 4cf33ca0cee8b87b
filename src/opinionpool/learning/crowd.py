"""Learning from a crowd: thousands of experts with a handful of forecasts each.

A weight per expert, as in `opinionpool.learning.default`, or a covariance, would need an array of events x experts.
Here each node of the prior is a believed panel, and outcomes decide between them by the same likelihood and with the
same prior of the sum of the weights (docs/model.md, section 10): panels whose weights go with agreement, as in the
default pool, and panels whose weights follow from features that are shrunken towards the crowd's
(`opinionpool.learning.hierarchy`), with one correlation or nested evidence. The latter are judged on contrasts pooled
with each expert's features as other forecasts show them, so an expert does not look good for having been learned
from the event. Weights follow for whoever is present (model.md, sections 2.2, 2.3 and 8). Every step is linear in the
number of forecasts.

Open events are used to learn features, too (EM, Dempster, Laird and Rubin, JRSS B 39, 1977, `OPEN_ROUNDS` rounds): an
open event counts as one event of every class, weighted by the answered probabilities. As the panel then answers the
same events, its slope is lowered by the factor by which answers are larger than answers with features that are learned
from experts' other forecasts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np

from opinionpool import logodds
from opinionpool.arrays import Array, Index
from opinionpool.estimation.newton import posterior_probabilities
from opinionpool.estimation.regression import Observations
from opinionpool.learning.cells import Cells
from opinionpool.learning.constants import (
    CROWD_WORTH,
    FEATURES,
    LIMIT_PROBABILITIES,
    LIMITS,
    UNKNOWN,
    WORTH_PROBABILITIES,
    WORTHS,
    Dependent,
)
from opinionpool.learning.crowd_posterior import CrowdPosterior
from opinionpool.learning.duplicates import Duplicates
from opinionpool.learning.hierarchy import Features, Hierarchy, MarginalFeatures, nested_correlation
from opinionpool.learning.laplace import Fit, evidence, fit_nodes
from opinionpool.learning.members import Members
from opinionpool.learning.nodes import Nodes, prior_nodes
from opinionpool.learning.prior import OPEN, Believed, harmonic_mean
from opinionpool.learning.rows import SparseContrasts
from opinionpool.learning.unlearned import DefaultFit
from opinionpool.model.contrasts import Extremes
from opinionpool.model.correlation import CommonCorrelation, MixedCorrelation
from opinionpool.model.features import Parts, cell_weights
from opinionpool.model.nested import NestedCorrelation

# A model that is less probable has no part in the answer.
NEGLIGIBLE = 1e-3
# Rounds in which what is shared, experts and the crowd are made to fit each other, fewer where they nearly do.
ROUNDS, FEWER_ROUNDS = 7, 3
# Rounds in which open events count as what is answered of them.
OPEN_ROUNDS = 2
# An outcome also decides what open events stand for. Up to so many resolved events, panels are therefore judged with
# features learned without the event's fold, of so many; beyond, one outcome decides hardly anything.
FOLDED, FOLDS = 1000, 5
# So many forecasts, all the same, say nothing. With fewer, as most in a crowd give, that may be chance, but for those
# that repeat the prior.
CONSTANT = 10, 1


# Function of signal-to-noise ratios (contrast over spread), (N,), that returns the correlation of N experts' errors.
Model: TypeAlias = Callable[[Array], CommonCorrelation | NestedCorrelation]


def correlated(signal: Array, *, nested: bool, rho: float) -> CommonCorrelation | NestedCorrelation:
    """Correlation of errors: `rho` for all pairs, or `nested` evidence, where experts of equal `signal` have `rho`."""
    return NestedCorrelation(signal, rho) if nested else CommonCorrelation(len(signal), rho if len(signal) > 1 else 0.0)


@dataclass(frozen=True, eq=False)
class Pooled:
    """Weighted sum of the experts' contrasts on each of T events, and the sum of their weights on that event."""

    contrasts: Array  # (T, K - 1)
    weights: Array  # (T,); sum of the experts' weights

    @classmethod
    def by(cls, model: Model, cells: Cells, features: Features) -> Pooled:
        """Pool each event's forecasts under `model`; `features` (M,) are their experts' bias, contrast and spread."""
        contrast, spread = features.contrast, features.spread
        each, dependence = np.arange(len(contrast)), model(contrast / spread)
        weights = cell_weights(cells.event, each, contrast, spread, dependence, cells.events)
        columns = (cells.contrasts - features.bias).T
        pooled = np.stack([cells.by_event(weights * column) for column in columns], axis=-1)
        return cls(logodds.unwhitened(pooled), cells.by_event(weights))

    def times(self, factor: float) -> Pooled:
        """Return a copy with contrasts and weights multiplied by `factor`."""
        return Pooled(factor * self.contrasts, factor * self.weights)


def crowd_fit(data: SparseContrasts, believed: Believed) -> DefaultFit | None:
    """Fit the default pool to a crowd's forecasts; None if no informative expert forecast a resolved event."""
    duplicates = Duplicates.among_cells(data.event, data.expert, data.contrasts, data.experts, CONSTANT)
    if len(duplicates.first) < len(data.experts):
        distinct = believed.among(duplicates.source, len(duplicates.first))
        found = crowd_fit(_distinct(data, duplicates), distinct)
        return found and found.with_duplicates(duplicates, believed)
    resolved, used = data.resolved[data.event], data.weight[data.event] > 0
    if not (used & resolved).any():
        return None
    data = data.believing(data.distrust())
    task, unresolved = data.among(used & resolved), data.among(used & ~resolved)
    prior = _prior(data.among(used), believed), believed
    extremes, start = _extremes(task, prior, believed.limit)
    fitted = _with_open(task, unresolved, extremes.limit, prior, start)
    if len(unresolved.outcomes) and len(task.outcomes) <= FOLDED:
        fitted = replace(fitted, without=tuple(_without_folds(fitted, unresolved, prior)))
    parts, bias, posterior = fitted.panel()
    members = None if data.absent is not None else Members.prior(believed)
    if members is not None:
        alike = fitted if task.compared is None else replace(fitted, task=task.in_comparison)
        members = members.learned(alike.task.log_likelihoods(), alike.fit[0].evidence)
        # Other members' answers need an array of events x experts.
        members = None if members.shares[0] > 1.0 - OPEN else members
    about = fitted.marginal, posterior.mixed_with(members)
    return DefaultFit(parts, bias, extremes, *about, learned=True, topics=fitted.fit[0].topics, members=members)


def _with_open(
    task: SparseContrasts,
    unresolved: SparseContrasts,
    limit: float,
    prior: tuple[Nodes, Believed],
    start: Hierarchy | None,
) -> _AtLimit:
    """Crowd fitted to resolved events `task` and to open events `unresolved`, with forecasts moderated to `limit`."""
    fitted = _AtLimit.at(task, limit, prior, start)
    for _ in range(OPEN_ROUNDS if len(unresolved.outcomes) else 0):
        fitted = _AtLimit.at(task, limit, prior, fitted.crowd, fitted.imputed(unresolved))
    return fitted


def _without_folds(
    fitted: _AtLimit, unresolved: SparseContrasts, prior: tuple[Nodes, Believed]
) -> Iterator[tuple[Index, Hierarchy]]:
    """Yield, for each of `FOLDS` folds of resolved events, the numbers of its forecasts, and a fit to other folds."""
    task, fold = fitted.task, np.empty(len(fitted.task.outcomes), dtype=np.intp)
    fold[np.argsort(_sizes(fitted.cells), kind="stable")] = np.arange(len(fold)) % FOLDS
    for each in range(FOLDS):
        within = (fold == each)[task.event]
        if within.any() and not within.all():
            some = _with_open(task.among(~within), unresolved, fitted.extremes.limit, prior, fitted.crowd)
            yield np.flatnonzero(within), some.crowd


def _prior(some: SparseContrasts, believed: Believed) -> Nodes:
    """Alternative priors (nodes) of the weights, with the accuracies that agreement on the events `some` implies."""
    believed = believed.agreeing(some.agreement())
    return prior_nodes(believed, some.free, options=some.absent is not None)


def _extremes(
    task: SparseContrasts, prior: tuple[Nodes, Believed], limit: float | None
) -> tuple[Extremes, Hierarchy | None]:
    """Limit to which extremes are moderated: `limit`, if None a mean over `LIMITS`; and where to start the next fit."""
    if limit is not None:
        return Extremes(limit), None
    start, score = None, []
    for tried in LIMITS:
        fitted = _AtLimit.at(task, tried, prior, start)
        start = fitted.crowd
        score.append(evidence(*fitted.of_worths((False,)))[0])
    return Extremes(harmonic_mean(LIMITS, posterior_probabilities(score, LIMIT_PROBABILITIES))), start


def _distinct(data: SparseContrasts, duplicates: Duplicates) -> SparseContrasts:
    """Return the forecasts in `data` without those by duplicates of other experts."""
    first = np.zeros(len(data.experts), dtype=bool)
    first[duplicates.first] = True
    found = data.among(first[data.expert])
    names = tuple(data.experts[i] for i in duplicates.first.tolist())
    return replace(found, expert=duplicates.source[found.expert], experts=names)


def _moderated(task: SparseContrasts, limit: float) -> Cells:
    """Rows to regress log-ratios less the prior's, moderated to `limit`, on outcomes' signatures (±1 if K = 2)."""
    absent = task.absent
    return task.regressed(Extremes(limit).believed(task.contrasts, None if absent is None else absent[task.event]))


@dataclass(frozen=True, eq=False)
class _Open:
    """Open events with imputed outcomes: the probabilities of their classes, (T, K)."""

    task: SparseContrasts
    cells: Cells
    probability: Array

    def of_every_class(self) -> list[Cells]:
        """For each class, rows of all open forecasts as if it had happened, weighted by its probability."""
        found = []
        for k, probability in enumerate(self.probability.T):
            signs, event = self.task.signatures(np.full(len(self.task.outcomes), k)), self.cells.event
            found.append(replace(self.cells, signs=signs[event], weight=self.cells.weight * probability[event]))
        return found


@dataclass(frozen=True, eq=False)
class _AtLimit:
    """Fit of a crowd in which extreme forecasts are moderated to one limit; several limits are compared."""

    task: SparseContrasts  # resolved events
    extremes: Extremes
    prior: Nodes  # prior nodes, with accuracies by agreement
    believed: Believed
    cells: Cells
    every: Cells  # rows of resolved and of open events
    crowd: Hierarchy
    otherwise: Hierarchy  # for each row of `every`, its expert, learned without the row's forecast
    opened: _Open | None = None
    without: tuple[tuple[Index, Hierarchy], ...] = ()  # rows of each fold, and the crowd without their events

    @classmethod
    def at(
        cls,
        task: SparseContrasts,
        limit: float,
        prior: tuple[Nodes, Believed],
        start: Hierarchy | None = None,
        imputed: _Open | None = None,
    ) -> _AtLimit:
        """Fit the crowd to resolved events, `task`, and to open events with imputed outcomes, `imputed`, if given."""
        every = cells = _moderated(task, limit)
        if imputed is not None:
            every = cells.and_then(*imputed.of_every_class())
        crowd = Hierarchy.learn(every, prior[1], CROWD_WORTH, ROUNDS if start is None else FEWER_ROUNDS, start)
        return cls(task, Extremes(limit), *prior, cells, every, crowd, crowd.otherwise(every), imputed)

    @property
    def sum(self) -> float:
        """Prior mean of the sum of the weights."""
        return float(self.prior.sums.probability @ self.prior.sums.value)

    def model(self, features: Features, *, nested: bool) -> Model:
        """Assumption on errors' correlation, `nested` or common, for experts with `features`; its size is learned."""
        if not nested:
            return partial(correlated, nested=False, rho=self.crowd.correlation)
        cells, signal = self.cells, features.contrast / features.spread
        return partial(
            correlated,
            nested=True,
            rho=nested_correlation(cells, self.crowd.errors[: len(cells.event)], signal, self.believed),
        )

    def by_features(self, model: Model, features: Features) -> Pooled:
        """Pool the forecasts on resolved events by weights that follow from the `features` of their experts."""
        return Pooled.by(model, self.cells, features).times(1.0 / self.sum)

    def features_otherwise(self, worth: float) -> Features:
        """Features (M,) of each forecast's expert, learned without the forecast or its fold; shrunken by `worth`."""
        cells = self.cells
        found = self.otherwise.among(slice(len(cells.event))).features(worth)
        for rows, crowd in self.without:
            own = crowd.among(cells.expert[rows]).features(worth)
            found.bias[rows], found.contrast[rows], found.spread[rows] = own.bias, own.contrast, own.spread
        return found

    def observed(self, panels: list[Pooled]) -> Observations:
        """Return data to regress outcomes on the log-ratios pooled by each of `panels`."""
        contrasts, by = np.stack([each.contrasts for each in panels], axis=1), self.task
        return Observations(contrasts, by.offset, by.outcomes, by.weight)

    def nodes(self, probability: Array, dependence: tuple[Dependent, ...] = ()) -> Nodes:
        """Prior of how much each of B alternative panels counts, by `probability` (B,); `dependence` names panels."""
        b = len(probability)
        prior, none = self.prior, np.zeros(b)
        return Nodes(probability, np.eye(b), none, prior.sums, dependence, none, prior.free)

    def of_worths(self, kinds: tuple[bool, ...]) -> tuple[Observations, Nodes]:
        """Data and prior to compare panels: one for each shrinkage in `WORTHS` and each of `kinds` (True: nested)."""
        otherwise = [(each, self.features_otherwise(each)) for each in WORTHS]
        panels = [
            self.by_features(self.model(self.crowd.features(worth), nested=kind), features)
            for kind in kinds
            for worth, features in otherwise
        ]
        prior = np.tile(WORTH_PROBABILITIES, len(kinds)) / len(kinds)
        return self.observed(panels), self.nodes(prior)

    def worths(self, kinds: tuple[bool, ...]) -> Array:
        """Posterior probability of each strength of shrinkage in `WORTHS`, (W,); `kinds` are as in `of_worths`."""
        fit = fit_nodes(*self.of_worths(kinds), covariances=False)
        return np.asarray(fit.joint.sum(axis=1).reshape(len(kinds), -1).sum(axis=0))

    @cached_property
    def chosen(self) -> tuple[Array, tuple[Model, ...], Features, Array]:
        """Probabilities of `WORTHS`, two correlation models, experts' features, contrasts implied by agreement."""
        worths = self.worths((False, True))
        features = averaged(self.crowd.features, worths)
        models = tuple(self.model(features, nested=each) for each in (False, True))
        distinct, spread = np.unique(self.prior.direction, axis=0), features.spread
        among = models[0](features.contrast / spread)
        return worths, models, features, spread * among.times(spread * distinct) / 2.0

    @property
    def panels(self) -> list[Pooled]:
        """Forecasts on resolved events pooled by each panel: some with accuracies by agreement, then two learned."""
        worths, models, features, agreeing = self.chosen
        otherwise, cells = averaged(self.features_otherwise, worths), self.cells
        own = [Features(otherwise.bias, each[cells.expert], features.spread[cells.expert]) for each in agreeing]
        found = [Pooled.by(models[0], cells, each) for each in own]
        return found + [self.by_features(model, otherwise) for model in models]

    @cached_property
    def fit(self) -> tuple[Fit, Nodes]:
        """Posterior of how much each alternative panel counts in the answer, and the prior of these panels."""
        direction, prior = self.prior.direction, self.prior.probability
        _, first, which = np.unique(direction, axis=0, return_index=True, return_inverse=True)
        agreeing = (1.0 - sum(FEATURES)) * np.bincount(which.ravel(), prior)
        kinds = tuple(self.prior.dependence[i] for i in first.tolist())
        more = (Dependent("common", 0.0, np.inf, FEATURES[0]), Dependent("nested", 0.0, np.inf, FEATURES[1]))
        nodes = self.nodes(np.append(agreeing, FEATURES), kinds + more)
        fit = fit_nodes(replace(self.observed(self.panels), topics=self.task.topics), nodes)
        if fit.topics is not None:
            fit = replace(fit, topics=replace(fit.topics, cross=None))
        return fit, nodes

    def imputed(self, unresolved: SparseContrasts) -> _Open:
        """Return the open events with the probabilities of their outcomes by this crowd's answers."""
        cells = _moderated(replace(unresolved, outcomes=np.zeros_like(unresolved.outcomes)), self.extremes.limit)
        worths, model = self.worths((False,)), partial(correlated, nested=False, rho=self.crowd.correlation)
        known = self.observed([self.by_features(model, averaged(self.features_otherwise, worths))])
        mean, d = fit_nodes(known, self.nodes(np.ones(1)), covariances=False).mean, cells.contrasts.shape[1]
        pooled = Pooled.by(model, cells, averaged(self.crowd.features, worths).among(cells.expert))
        answers = mean[:d] + mean[d] / self.sum * pooled.contrasts
        return _Open(unresolved, cells, logodds.softmax(unresolved.offset + answers))

    def reuse_correction(self) -> float:
        """Factor from 0 to 1 that shrinks answers on open events, whose forecasts were also used to judge experts."""
        if self.opened is None:
            return 1.0
        worths, models, features, _ = self.chosen
        task, cells, first = self.opened.task, self.opened.cells, len(self.cells.event)
        without = averaged(self.otherwise.among(slice(first, first + len(cells.event))).features, worths)
        mean = self.fit[0].mean
        answers = [
            mean[: cells.contrasts.shape[1]]
            + _mixed([Pooled.by(model, cells, each) for model in models], mean[-2:] / self.sum)
            for each in (without, features.among(cells.expert))
        ]
        # As a logistic regression of one on the other, its first step: weighted by what an outcome would tell.
        p = logodds.softmax(task.offset + answers[0])[:, 1:]
        information = p * answers[1] - p * (p * answers[1]).sum(axis=1, keepdims=True)
        both, own = (float(task.weight @ (information * each).sum(axis=1)) for each in answers)
        return float(np.clip(both / own, 0.0, 1.0)) if own > 0 else 1.0

    @property
    def marginal(self) -> MarginalFeatures:
        """Bias, contrast and spread of each expert by own forecasts, shrunken towards the crowd's mean features."""
        found = self.chosen[2]
        return MarginalFeatures.of(found, self.crowd.correlation)

    def panel(self) -> tuple[Parts, Array, CrowdPosterior]:
        """Return the panel's parameters, biases of all experts (N, K - 1), and the posterior of the pool."""
        (fit, nodes), (worths, models, features, agreeing) = self.fit, self.chosen
        d, slope = self.cells.contrasts.shape[1], self.reuse_correction() / self.sum
        among = tuple(model(features.contrast / features.spread) for model in models)
        contrast = np.vstack([agreeing, np.tile(slope * features.contrast, (2, 1))])
        mean, nested = fit.mean[d:], np.arange(len(contrast)) == len(contrast) - 1
        parts = tuple(
            Parts(mean[own] @ contrast[own], features.spread, each)
            for own, each in zip((~nested, nested), among, strict=True)
        )
        weights = sum(each.weights * own for each, own in zip(self.panels, mean.tolist(), strict=True))
        weight = self.task.weight
        total = float(weight @ weights) / float(weight.sum())
        shift = (self.task.away - fit.mean[:d]) * total / (total**2 + LEAST_SUM**2)
        unknown = UNKNOWN * np.array([1.0, (slope * mean.sum()) ** 2, 1.0])
        variance = unknown[:, None] * sum(
            p * self.crowd.open_variances(w) for w, p in zip(WORTHS, worths.tolist(), strict=True)
        )
        posterior = CrowdPosterior.by(
            fit, nodes, (contrast, nested, parts), shift, variance, logodds.unwhitened(np.eye(d))
        )
        return _together(*parts), logodds.unwhitened(features.bias) + shift, posterior


# Sums of weights about this small carry no intercept; contrasts about this small are 0.
LEAST_SUM, LEAST_CONTRAST = 0.1, 1e-9


def averaged(features: Callable[[float], Features], worths: Array) -> Features:
    """Mean of experts' `features(worth)` over shrinkage strengths `WORTHS`, whose probabilities are `worths`."""
    return Features.averaged([features(each) for each in WORTHS], worths)


def _mixed(panels: list[Pooled], slopes: Array) -> Array:
    """Return the sum over `panels` of pooled log-ratios (less the prior's) times each panel's slope, (T, K - 1)."""
    return np.asarray(sum(slope * each.contrasts for slope, each in zip(slopes.tolist(), panels, strict=True)))


def _together(common: Parts, nested: Parts) -> Parts:
    """Parameters whose weights are the sums of those of `common` and `nested`, and whose correlation mixes both."""
    whole, sizes = common.contrast + nested.contrast, [np.abs(each.contrast).sum() for each in (common, nested)]
    share = float(sizes[1] / sum(sizes)) if sum(sizes) > 0 else 0.0
    if min(share, 1.0 - share) < NEGLIGIBLE:
        return common if share < NEGLIGIBLE else nested
    safe = np.where(np.abs(whole) < LEAST_CONTRAST, LEAST_CONTRAST, whole)
    shares = np.array([1.0 - share, share])
    signal = np.array([common.contrast, nested.contrast]) / (shares[:, None] * safe)
    return Parts(safe, common.spread, MixedCorrelation((common.dependence, nested.dependence), shares, signal))


def _sizes(cells: Cells) -> Array:
    """Sum over each event's forecasts of squared contrasts, (T,), changed slightly by expert so that few sums tie."""
    square = (cells.contrasts**2).sum(axis=1)
    total = cells.by_expert(square)
    return cells.by_event(square * (1.0 + 1e-3 * total / max(float(total.max()), 1.0))[cells.expert])
