"""Learning from a crowd: thousands of experts with a handful of forecasts each.

A weight per expert, as in `opinionpool.learning.default`, or a covariance, would need an array of events x experts.
Here experts have a common correlation and features that are shrunken towards the crowd's
(`opinionpool.learning.hierarchy`), so their weights follow from the features, for whoever is present (model.md,
sections 2.2 and 2.3). What outcomes still decide are four numbers, as in the default pool: how far extreme statements
are believed, how much of the differences between experts to believe (`SHARES`), and a slope and an intercept for the
answer. They are judged on contrasts pooled with each expert's features as its other forecasts show them, so an expert
does not look good for having been learned from the event. Every step is linear in the number of forecasts.

Open events tell of features too: each then stands for one event of every class, as probable as the crowd says (EM,
Dempster, Laird and Rubin, JRSS B 39, 1977), for `ROUNDS` rounds. The four numbers are those of resolved events alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Index
from opinionpool.errors import Note
from opinionpool.estimation.coefficients import intercept_root
from opinionpool.estimation.posterior import Mode, harmonic_mean, posterior_mode, posterior_probabilities
from opinionpool.estimation.unused import constant_notes
from opinionpool.labels import UNRESOLVED
from opinionpool.learning.hierarchy import Cells, Differences, Hierarchy
from opinionpool.learning.prior import LIMIT_PROBABILITIES, LIMITS, SLOPE
from opinionpool.learning.problem import SparseContrasts
from opinionpool.model.contrasts import Extremes
from opinionpool.model.correlation import CommonCorrelation
from opinionpool.model.features import Parts, cell_weights

BIAS = 0.4
SHARES = (0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
SHARE_PROBABILITIES = (0.4, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03)
# What a fit may be divided by when a bias is read from an intercept.
LEAST_SLOPE = 0.3
# Rounds in which open events count as what the crowd says of them; outcomes less probable than `NEGLIGIBLE` do not.
# What it says rests on the same forecasts, and counts with so much of its log-odds.
ROUNDS, NEGLIGIBLE, CAUTION = 2, 1e-3, 0.5
# So many forecasts, all the same, say nothing. With fewer, as most in a crowd give, that may be chance.
CONSTANT = 10


@dataclass(frozen=True, eq=False)
class CrowdFit:
    """What was learned of N experts."""

    parts: Parts
    bias: Array  # (N, K - 1)
    extremes: Extremes
    share: float  # how much of the differences between experts is believed
    notes: tuple[Note, ...]


def crowd_fit(data: SparseContrasts) -> CrowdFit:
    """Learn from the forecasts of a crowd, at least one of which is on a resolved event.

    Where events have options of their own, nobody has a bias.
    """
    constant = _constant(data.expert, data.contrasts, len(data.experts))
    resolved = (data.outcomes != UNRESOLVED)[data.event]
    used = (data.weight[data.event] > 0) & ~constant[data.expert]
    task, unresolved = data.among(used & resolved), data.among(used & ~resolved)
    of_limits = posterior_probabilities([_AtLimit.at(task, limit).evidence() for limit in LIMITS], LIMIT_PROBABILITIES)
    extremes = Extremes(harmonic_mean(LIMITS, of_limits))
    fitted = _AtLimit.at(task, extremes.limit)
    if len(unresolved.outcomes):
        for _ in range(ROUNDS):
            fitted = _AtLimit.at(task, extremes.limit, fitted.supposed(unresolved))
    share = fitted.share
    parts, bias = fitted.panel(share)
    spread = np.where(constant, 0.0, parts.spread)
    contrast = np.where(constant, 0.0, parts.contrast)
    notes = constant_notes(data.experts, constant)
    return CrowdFit(Parts(contrast, spread, parts.dependence), bias, extremes, share, tuple(notes))


def _cells(task: SparseContrasts, limit: float, root: Array) -> Cells:
    """Forecasts as far as they are believed, whitened."""
    k, absent = task.contrasts.shape[1] + 1, task.absent
    signs, own = logodds.signature(k)[task.outcomes], None
    if absent is not None:
        signs, own = logodds.levelled(signs, absent), k - 1.0 - absent.sum(axis=1)
    believed = Extremes(limit).believed(task.contrasts, None if absent is None else absent[task.event])
    return Cells(
        task.event,
        task.expert,
        believed @ root,
        (signs @ root)[task.event],
        task.weight[task.event],
        len(task.outcomes),
        len(task.experts),
        own,
    )


@dataclass(frozen=True, eq=False)
class _AtLimit:
    """A task with extremes moderated to some limit, and the crowd as it then is."""

    task: SparseContrasts
    root: Array
    cells: Cells
    crowd: Hierarchy
    otherwise: Differences
    extremes: Extremes

    @classmethod
    def at(cls, task: SparseContrasts, limit: float, supposed: SparseContrasts | None = None) -> _AtLimit:
        """Learned from these events, and from those whose outcome is supposed."""
        root = np.asarray(np.linalg.cholesky(logodds.metric(task.contrasts.shape[1] + 1)), dtype=np.float64)
        cells = _cells(task, limit, root)
        every = cells if supposed is None else _cells(task.and_then(supposed), limit, root)
        crowd = Hierarchy.learn(every)
        found, m = crowd.deviation_otherwise(every), len(cells.event)
        otherwise = Differences(found.bias[:m], found.contrast[:m], found.log_spread[:m])
        return cls(task, root, cells, crowd, otherwise, Extremes(limit))

    @cached_property
    def share(self) -> float:
        """How much of the differences between experts is believed."""
        return SHARES[int(np.argmax(self.scores()))]

    def supposed(self, unresolved: SparseContrasts) -> SparseContrasts:
        """For each open event one of every class, as frequent as the crowd says it is probable."""
        parts, bias = self.panel(self.share)
        event, expert, absent = unresolved.event, unresolved.expert, unresolved.absent
        events, own = len(unresolved.outcomes), None if absent is None else absent[event]
        among = CommonCorrelation(len(parts.contrast), self.crowd.correlation)
        weights = cell_weights(event, expert, parts.contrast[expert], parts.spread[expert], among, events)
        believed = weights[:, None] * (self.extremes.believed(unresolved.contrasts, own) - bias[expert])
        pooled = np.stack([np.bincount(event, column, events) for column in believed.T], axis=-1)
        probability = logodds.softmax(unresolved.reference + CAUTION * pooled)
        copies = [
            replace(
                unresolved,
                outcomes=np.full(events, k),
                weight=unresolved.weight * probability[:, k],
            ).among(probability[event, k] > NEGLIGIBLE)
            for k in range(probability.shape[1])
        ]
        found = copies[0]
        for each in copies[1:]:
            found = found.and_then(each)
        return found

    def mode(self, share: float) -> Mode:
        """Slope and intercept with a share of the differences between experts."""
        features, cells = self.crowd.features(self.otherwise, share), self.cells
        dependence = CommonCorrelation(cells.experts, self.crowd.correlation)
        weights = cell_weights(cells.event, cells.expert, features.contrast, features.spread, dependence, cells.events)
        columns = (cells.contrasts - features.bias).T
        pooled = np.stack([cells.by_event(weights * column) for column in columns], axis=-1) @ np.linalg.inv(self.root)
        design = SLOPE * pooled[:, None, :]
        if cells.biased:
            shift = intercept_root(BIAS, pooled.shape[1]).T * cells.by_event(weights)[:, None, None]
            design = np.concatenate([design, shift], axis=1)
        return posterior_mode(design, self.task.outcomes, self.task.reference + pooled, self.task.weight)

    def scores(self) -> Array:
        """Log evidence of each share, with the log of what is believed of it."""
        return np.array([self.mode(share).evidence for share in SHARES]) + np.log(SHARE_PROBABILITIES)

    def evidence(self) -> float:
        """Log evidence, averaged over shares."""
        return float(np.logaddexp.reduce(self.scores()))

    def panel(self, share: float) -> tuple[Parts, Array]:
        """Parts and bias of all experts."""
        theta = self.mode(share).coefficients
        slope = 1.0 + SLOPE * float(theta[0])
        features = self.crowd.features(self.crowd.deviation, share)
        bias = features.bias @ np.linalg.inv(self.root)
        if self.cells.biased:
            bias -= intercept_root(BIAS, self.cells.contrasts.shape[1]) @ theta[1:] / max(slope, LEAST_SLOPE)
        n = len(self.task.experts)
        dependence = CommonCorrelation(n, self.crowd.correlation if n > 1 else 0.0)
        return Parts(slope * features.contrast, features.spread, dependence), bias


def _constant(expert: Index, contrasts: Array, n: int) -> npt.NDArray[np.bool_]:
    """Experts who gave one forecast at least `CONSTANT` times and no other, (N,)."""
    first = np.zeros(n, dtype=np.intp)
    first[expert[::-1]] = np.arange(len(expert))[::-1]
    differs = (contrasts != contrasts[first[expert]]).any(axis=1)
    count = np.bincount(expert, minlength=n)
    return np.asarray((count >= CONSTANT) & (np.bincount(expert, weights=differs, minlength=n) == 0))
