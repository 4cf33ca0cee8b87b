"""Learning from a crowd: thousands of experts with a handful of forecasts each.

A weight per expert, as in `opinionpool.learning.default`, or a covariance, would need an array of events x experts.
Here features are shrunken towards the crowd's (`opinionpool.learning.hierarchy`), and weights follow from them, for
whoever is present (model.md, sections 2.2, 2.3 and 8). What outcomes still decide are a few numbers, as in the default
pool: how far extreme statements are believed, how much of the differences between experts to believe (`SHARES`),
whether experts have one correlation or nested evidence (`opinionpool.learning.crowd_dependence`), and a slope and an
intercept for the answer. They are judged on contrasts pooled with each expert's features as its other forecasts show
them, so an expert does not look good for having been learned from the event. Every step is linear in the number of
forecasts.

Open events tell of features too: for each expert such an event stands for one of every class, as probable as the others
on it say (EM, Dempster, Laird and Rubin, JRSS B 39, 1977), for `ROUNDS` rounds; without its own forecast, which would
agree with itself. The panel is then used for the same events, whose forecasts had a part in it: its slope is lowered as
far as answers are larger than they would be if experts were known from their other forecasts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import Note
from opinionpool.estimation.averages import constant_notes
from opinionpool.estimation.newton import Mode, posterior_probabilities
from opinionpool.estimation.sampling import spread_evenly
from opinionpool.labels import UNRESOLVED
from opinionpool.learning.crowd_cells import Cells
from opinionpool.learning.crowd_dependence import (
    COMMON,
    NEGLIGIBLE,
    NESTED,
    PROBABILITIES,
    RATE,
    Mixture,
    Model,
    Pooled,
)
from opinionpool.learning.duplicates import ROUNDING, Duplicates
from opinionpool.learning.hierarchy import Differences, Hierarchy, Start, nested_correlation
from opinionpool.learning.prior import LIMIT_PROBABILITIES, LIMITS, harmonic_mean
from opinionpool.learning.problem import SparseContrasts
from opinionpool.model.contrasts import Extremes
from opinionpool.model.features import Parts

SHARES = (0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
SHARE_PROBABILITIES = (0.4, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03)
# Rounds in which open events count as what the others on them say.
ROUNDS = 2
# Shares and dependence are judged by so many events; more would hardly change them.
JUDGING = 4096
# So many forecasts, all the same, say nothing. With fewer, as most in a crowd give, that may be chance, but for those
# that repeat the prior.
CONSTANT = 10


@dataclass(frozen=True, eq=False)
class CrowdFit:
    """What was learned of N experts."""

    parts: Parts
    bias: Array  # (N, K - 1)
    extremes: Extremes
    share: float  # how much of the differences between experts is believed
    common: float  # the probability that experts have one correlation, not nested evidence
    notes: tuple[Note, ...]
    # (T, K - 1); L* − L° of resolved events, with experts as their other forecasts show them; NaN elsewhere
    otherwise: Array


def crowd_fit(data: SparseContrasts) -> CrowdFit:
    """Learn from the forecasts of a crowd, at least one of which is on a resolved event.

    Where events have options of their own, nobody has a bias.
    """
    duplicates = Duplicates.in_crowd(data.event, data.expert, data.contrasts, data.experts)
    if len(duplicates.first) < len(data.experts):
        found = crowd_fit(_distinct(data, duplicates))
        parts, notes = duplicates.parts(found.parts), duplicates.notes + found.notes
        otherwise = _of_all(data, np.isin(data.expert, duplicates.first), found.otherwise)
        return replace(found, parts=parts, bias=duplicates.rows(found.bias), notes=notes, otherwise=otherwise)
    constant = _constant(data.expert, data.contrasts, len(data.experts))
    resolved = (data.outcomes != UNRESOLVED)[data.event]
    used = (data.weight[data.event] > 0) & ~constant[data.expert]
    task, unresolved = data.among(used & resolved), data.among(used & ~resolved)
    extremes, start = _extremes(task)
    fitted = _AtLimit.at(task, extremes.limit, start)
    if len(unresolved.outcomes):
        for _ in range(ROUNDS):
            start, supposed = fitted.crowd.start, fitted.supposed(unresolved)
            fitted = _AtLimit.at(task, extremes.limit, start, supposed)
    parts, bias = fitted.panel(fitted.used_again())
    spread = np.where(constant, 0.0, parts.spread)
    contrast = np.where(constant, 0.0, parts.contrast)
    notes = tuple(constant_notes(data.experts, constant))
    share, (common, _) = fitted.choice
    parts, otherwise = Parts(contrast, spread, parts.dependence), _of_all(data, used & resolved, fitted.answers)
    return CrowdFit(parts, bias, extremes, share, float(common), notes, otherwise)


def _of_all(data: SparseContrasts, used: Mask, values: Array) -> Array:
    """What was found of the events that have some of the forecasts, in rows of all, (T, K - 1); NaN elsewhere."""
    found = np.full(data.reference.shape, np.nan)
    found[np.unique(data.event[used])] = values
    return found


def dependence_in_words(common: float) -> str:
    """How experts depend on each other if one correlation is so probable, and not nested evidence.

    >>> dependence_in_words(0.97)
    'one correlation (97% probable; else nested evidence)'
    """
    if common > 1.0 - NEGLIGIBLE:
        return "one correlation"
    if common < NEGLIGIBLE:
        return "nested evidence"
    first, other = ("one correlation", "nested evidence") if common >= 1 / 2 else ("nested evidence", "one correlation")
    return f"{first} ({max(common, 1.0 - common):.0%} probable; else {other})"


def _extremes(task: SparseContrasts) -> tuple[Extremes, Start]:
    """How far extremes are believed, and the crowd as it then is, nearly."""
    start, evidence = None, []
    for limit in LIMITS:
        fitted = _AtLimit.at(task, limit, start)
        start = fitted.crowd.start
        evidence.append(np.logaddexp.reduce(fitted.common_evidence + np.log(SHARE_PROBABILITIES)))
    assert start is not None
    return Extremes(harmonic_mean(LIMITS, posterior_probabilities(evidence, LIMIT_PROBABILITIES))), start


def _distinct(data: SparseContrasts, duplicates: Duplicates) -> SparseContrasts:
    """The forecasts of distinct experts."""
    first = np.zeros(len(data.experts), dtype=bool)
    first[duplicates.first] = True
    found = data.among(first[data.expert])
    names = tuple(data.experts[i] for i in duplicates.first.tolist())
    return replace(found, expert=duplicates.source[found.expert], experts=names)


def _cells(task: SparseContrasts, limit: float, root: Array) -> Cells:
    """Forecasts as far as they are believed, whitened."""
    absent = task.absent
    believed = Extremes(limit).believed(task.contrasts, None if absent is None else absent[task.event])
    own = None if absent is None else np.asarray(task.contrasts.shape[1] - absent.sum(axis=1), dtype=np.float64)
    signs = _signs(task, task.outcomes) @ root
    weight, events = task.weight[task.event], len(task.outcomes)
    return Cells(task.event, task.expert, believed @ root, signs[task.event], weight, events, len(task.experts), own)


def _signs(task: SparseContrasts, outcomes: Index) -> Array:
    """The signature of what happens on each event, (T, K - 1)."""
    signs = logodds.signature(task.contrasts.shape[1] + 1)[outcomes]
    return signs if task.absent is None else logodds.levelled(signs, task.absent)


@dataclass(frozen=True, eq=False)
class _Open:
    """Open events: their forecasts, and what others say of each, (M, K)."""

    task: SparseContrasts
    cells: Cells
    probability: Array

    def of_every_class(self, root: Array) -> list[Cells]:
        """For each of these forecasts one of every class, as frequent as it is probable."""
        found = []
        for k, probability in enumerate(self.probability.T):
            signs = _signs(self.task, np.full(len(self.task.outcomes), k)) @ root
            found.append(replace(self.cells, signs=signs[self.cells.event], weight=self.cells.weight * probability))
        return found


@dataclass(frozen=True, eq=False)
class _Judged:
    """Resolved events by which answers are judged."""

    rows: Index | slice  # of the forecasts on them
    cells: Cells
    outcomes: Index
    reference: Array
    weight: Array


@dataclass(frozen=True, eq=False)
class _AtLimit:
    """Events with extremes moderated to some limit, and the crowd as it then is."""

    task: SparseContrasts  # resolved events
    extremes: Extremes
    root: Array
    cells: Cells
    every: Cells  # with those of open events
    crowd: Hierarchy
    otherwise: Differences  # of each row, for its expert by its other forecasts
    opened: _Open | None = None

    @classmethod
    def at(
        cls, task: SparseContrasts, limit: float, start: Start | None = None, supposed: _Open | None = None
    ) -> _AtLimit:
        """Learned from these events, and from those whose outcome is supposed; `start` is near what will be found."""
        root = np.asarray(np.linalg.cholesky(logodds.metric(task.contrasts.shape[1] + 1)), dtype=np.float64)
        every = cells = _cells(task, limit, root)
        if supposed is not None:
            every = cells.and_then(*supposed.of_every_class(root))
        crowd = Hierarchy.learn(every, start)
        return cls(task, Extremes(limit), root, cells, every, crowd, crowd.deviation_otherwise(every), supposed)

    @cached_property
    def judged(self) -> _Judged:
        """The resolved events by which shares and dependence are judged."""
        weight, cells = self.task.weight, self.cells
        if weight.sum() <= JUDGING:
            return self.all_resolved
        events, weight = spread_evenly(_sizes(cells), weight, JUDGING)
        rows, cells = cells.on_events(events, weight)
        return _Judged(rows, cells, self.task.outcomes[events], self.task.reference[events], weight)

    @property
    def all_resolved(self) -> _Judged:
        """All of them."""
        task = self.task
        return _Judged(slice(len(task.event)), self.cells, task.outcomes, task.reference, task.weight)

    def model(self, kind: str, share: float) -> Model:
        """A kind of dependence, with the correlation of pairs on the same event."""
        if kind == COMMON:
            return Model(kind, self.crowd.correlation)
        among, found = self.judged, self.crowd.features(self.crowd.deviation, share)
        signal = found.contrast / found.spread
        return Model(kind, nested_correlation(among.cells, self.crowd.errors[among.rows], signal))

    def mode(self, model: Model, share: float, by: _Judged) -> Mode:
        """Slope and intercept of the answers by a model with a share of the differences between experts.

        Each expert is taken to be as its other forecasts show it.
        """
        features = self.crowd.features(self.otherwise.among(by.rows), share)
        pooled = Pooled.by(model, by.cells, features, self.root)
        return pooled.mode(by.outcomes, by.reference, by.weight, biased=by.cells.biased)

    @cached_property
    def common_evidence(self) -> Array:
        """Log evidence of each share with one correlation, (shares,)."""
        model = self.model(COMMON, 0.0)
        return np.array([self.mode(model, share, self.judged).log_marginal_likelihood for share in SHARES])

    @cached_property
    def common_share(self) -> float:
        """How much of the differences between experts is believed with one correlation."""
        return float(posterior_probabilities(self.common_evidence, SHARE_PROBABILITIES, RATE) @ np.array(SHARES))

    @cached_property
    def choice(self) -> tuple[float, Array]:
        """How much of the differences between experts is believed, and how probable each kind of dependence is."""
        # Experts who do not differ have one correlation.
        others = [
            self.mode(self.model(NESTED, share), share, self.judged).log_marginal_likelihood for share in SHARES[1:]
        ]
        found = np.array([self.common_evidence, np.append(self.common_evidence[0], others)])
        believed = np.outer(list(PROBABILITIES.values()), SHARE_PROBABILITIES)
        posterior = posterior_probabilities(found, believed, RATE)
        return float(posterior.sum(axis=0) @ np.array(SHARES)), posterior.sum(axis=1)

    @cached_property
    def mixture(self) -> Mixture:
        """The models that have a part in the answer, and how."""
        share, probability = self.choice
        kinds = [(kind, p) for kind, p in zip(PROBABILITIES, probability.tolist(), strict=True) if p > NEGLIGIBLE]
        models = tuple(self.model(kind, share) for kind, _ in kinds)
        modes = [self.mode(model, share, self.all_resolved) for model in models]
        return Mixture.of(models, np.array([p for _, p in kinds]), modes, self.cells.contrasts.shape[1])

    @property
    def answers(self) -> Array:
        """Answers on resolved events without the prior, each expert as its other forecasts show it, (T, K - 1)."""
        features, cells = (
            self.crowd.features(self.otherwise.among(slice(len(self.task.event))), self.choice[0]),
            self.cells,
        )
        return self.mixture.answers([Pooled.by(model, cells, features, self.root) for model in self.mixture.models])

    def supposed(self, unresolved: SparseContrasts) -> _Open:
        """What the others on each open event say of it, by one correlation."""
        cells = _cells(replace(unresolved, outcomes=np.zeros_like(unresolved.outcomes)), self.extremes.limit, self.root)
        share, model = self.common_share, self.model(COMMON, 0.0)
        found = Mixture.of((model,), np.ones(1), [self.mode(model, share, self.all_resolved)], cells.contrasts.shape[1])
        features = self.crowd.features(self.crowd.deviation, share).among(cells.expert)
        pooled = Pooled.by_others(model, cells, features, self.root)
        return _Open(unresolved, cells, logodds.softmax(unresolved.reference[cells.event] + found.answers([pooled])))

    def used_again(self) -> float:
        """How large answers on open events are without a part in what is known of the experts, relative to with one."""
        if self.opened is None:
            return 1.0
        share, mixture = self.choice[0], self.mixture
        task, cells, first = self.opened.task, self.opened.cells, len(self.cells.event)
        without = self.crowd.features(self.otherwise.among(slice(first, first + len(cells.event))), share)
        again = self.crowd.features(self.crowd.deviation, share).among(cells.expert)
        answers = [
            mixture.answers([Pooled.by(model, cells, features, self.root) for model in mixture.models])
            for features in (without, again)
        ]
        # As a logistic regression of one on the other, its first step: weighted by what an outcome would tell.
        p = logodds.softmax(task.reference + answers[0])[:, 1:]
        information = p * answers[1] - p * (p * answers[1]).sum(axis=1, keepdims=True)
        both, own = (float(task.weight @ (information * each).sum(axis=1)) for each in answers)
        return float(np.clip(both / own, 0.0, 1.0)) if own > 0 else 1.0

    def panel(self, factor: float) -> tuple[Parts, Array]:
        """Parts and bias of all experts, with so much of the slope."""
        mixture, features = self.mixture, self.crowd.features(self.crowd.deviation, self.choice[0])
        bias = features.bias @ np.linalg.inv(self.root)
        if self.cells.biased:
            bias += mixture.shift
        dependence = mixture.among(features.contrast / features.spread)
        return Parts(factor * mixture.total * features.contrast, features.spread, dependence), bias


def _sizes(cells: Cells) -> Array:
    """Sums of squares of contrasts by event, (T,), a little more of experts who tell more, so that few are equal."""
    square = (cells.contrasts**2).sum(axis=1)
    total = cells.by_expert(square)
    return cells.by_event(square * (1.0 + 1e-3 * total / max(float(total.max()), 1.0))[cells.expert])


def _constant(expert: Index, contrasts: Array, n: int) -> npt.NDArray[np.bool_]:
    """Experts who gave one forecast at least `CONSTANT` times and no other, or only repeat the prior, (N,)."""
    first = np.zeros(n, dtype=np.intp)
    first[expert[::-1]] = np.arange(len(expert))[::-1]
    differs = (contrasts != contrasts[first[expert]]).any(axis=1)
    count = np.bincount(expert, minlength=n)
    alike = (count >= CONSTANT) & (np.bincount(expert, weights=differs, minlength=n) == 0)
    beyond = np.abs(contrasts).max(axis=1) > ROUNDING
    return np.asarray(alike | ((count > 0) & (np.bincount(expert, weights=beyond, minlength=n) == 0)))
