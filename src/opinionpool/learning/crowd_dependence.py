"""How the experts of a crowd depend on each other: one correlation, or nested evidence, as outcomes tell.

Each has its own correlation, found from pairs of forecasts on the same event, and its own slope and intercept, and is
the more probable the better it predicts the outcomes (evidence). The answer's log-odds are averaged over both
(`opinionpool.model.mixed`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.estimation.coefficients import intercept_root
from opinionpool.estimation.likelihood import Design
from opinionpool.estimation.newton import Mode, Prior, posterior_modes
from opinionpool.learning.crowd_cells import Cells
from opinionpool.learning.hierarchy import Features
from opinionpool.model.correlation import CommonCorrelation, Dependence
from opinionpool.model.features import cell_weights
from opinionpool.model.mixed import MixedCorrelation
from opinionpool.model.nested import NestedCorrelation

BIAS = 0.4
# What is believed beforehand of one correlation and of nested evidence.
COMMON, NESTED = "common", "nested"
PROBABILITIES = {COMMON: 0.5, NESTED: 0.5}
# Neither is quite right, and one outcome should not decide between them, nor between shares of the differences between
# experts: as in the default pool.
RATE = 0.5
# A model that is less probable has no part in the answer.
NEGLIGIBLE = 1e-3
# Standard deviation of the slope.
SLOPE = 0.35
# What a fit may be divided by when a bias is read from an intercept.
LEAST_SLOPE = 0.3


@dataclass(frozen=True)
class Model:
    """One way in which experts may depend on each other."""

    kind: str
    rho: float  # the correlation of experts who are equally accurate

    def among(self, signal: Array) -> CommonCorrelation | NestedCorrelation:
        """The correlation of experts with these signals."""
        if self.kind == COMMON:
            return CommonCorrelation(len(signal), self.rho if len(signal) > 1 else 0.0)
        return NestedCorrelation(signal, self.rho)


@dataclass(frozen=True, eq=False)
class Pooled:
    """Forecasts on T events pooled with a slope of 1."""

    contrasts: Array  # (T, K - 1)
    weights: Array  # (T,); their sum

    @classmethod
    def by(cls, model: Model, cells: Cells, features: Features, root: Array) -> Pooled:
        """By a model, with features (M,) of the expert of each forecast; `root` whitens."""
        contrast, spread = features.contrast, features.spread
        each, dependence = np.arange(len(contrast)), model.among(contrast / spread)
        weights = cell_weights(cells.event, each, contrast, spread, dependence, cells.events)
        columns = (cells.contrasts - features.bias).T
        pooled = np.stack([cells.by_event(weights * column) for column in columns], axis=-1)
        return cls(pooled @ np.linalg.inv(root), cells.by_event(weights))

    @classmethod
    def by_others(cls, model: Model, cells: Cells, features: Features, root: Array) -> Pooled:
        """For each forecast (M,), those of the others on the same event; by one correlation."""
        signal, spread, rho = features.contrast / features.spread, features.spread[:, None], model.rho

        def others(values: Array) -> Array:
            return cells.by_event(values)[cells.event] - values

        # (R⁻¹ v)'z among the others, in closed form: v'z less what is common to all of them.
        number = others(np.ones(len(signal)))
        shared = rho * others(signal) / (1.0 + np.maximum(number - 1.0, 0.0) * rho)
        single = np.where(number > 1, 1.0 - rho, 1.0)
        shared = np.where(number > 1, shared, 0.0)
        moved = ((cells.contrasts - features.bias) / spread).T

        def summed(z: Array) -> Array:
            return np.asarray(2.0 * (others(signal * z) - shared * others(z)) / single)

        pooled = np.stack([summed(z) for z in moved], axis=-1)
        return cls(pooled @ np.linalg.inv(root), summed(1.0 / features.spread))

    def mode(self, outcomes: Index, reference: Array, weight: Array, *, biased: bool) -> Mode:
        """Return the mode of slope and, if experts may be biased, intercept, in standard deviations of their priors."""
        pooled, d = self.contrasts.T, self.contrasts.shape[1]
        features = self.weights[None] if biased else np.empty((0, len(outcomes)))
        design = Design(pooled[None], features, reference.T + pooled, outcomes, weight)
        root = np.zeros((1, design.size, design.size))
        root[:, -1, 0], root[:, :-1, 1:] = SLOPE, intercept_root(BIAS, d) if biased else 0.0
        return posterior_modes(design, Prior(np.zeros((1, design.size)), root))[0]


@dataclass(frozen=True, eq=False)
class Mixture:
    """Models with the probability of each, and the slope and intercept of its answers."""

    models: tuple[Model, ...]
    probability: Array  # (models,)
    slope: Array  # (models,)
    intercept: Array  # (models, K - 1)

    @classmethod
    def of(cls, models: tuple[Model, ...], probability: Array, modes: list[Mode], d: int) -> Mixture:
        """From modes of `Pooled.mode`, for d = K - 1; a model whose answers point the other way is left out."""
        theta = [each.coefficients for each in modes]
        slope = np.array([1.0 + SLOPE * float(each[0]) for each in theta])
        root = intercept_root(BIAS, d)
        intercept = np.array([root @ each[1:] if len(each) > 1 else np.zeros(d) for each in theta])
        kept = (slope > 0) if (slope > 0).any() else np.arange(len(slope)) == int(np.argmax(probability))
        part = np.where(kept, probability, 0.0)
        return cls(models, part / part.sum(), slope, intercept)

    @property
    def total(self) -> float:
        """The mean slope."""
        return float(self.probability @ self.slope)

    @property
    def share(self) -> Array:
        """The share of each model in the weights, (models,)."""
        return self.probability * self.slope / self.total if len(self.models) > 1 else np.ones(1)

    @property
    def shift(self) -> Array:
        """What intercepts say of the bias of all, (K - 1,)."""
        return np.asarray(-self.share @ (self.intercept / np.maximum(self.slope, LEAST_SLOPE)[:, None]))

    def answers(self, pooled: list[Pooled]) -> Array:
        """The mean answer, without the prior, (T, K - 1)."""
        each = [
            p * (slope * own.contrasts + own.weights[:, None] * intercept)
            for p, slope, intercept, own in zip(self.probability, self.slope, self.intercept, pooled, strict=True)
        ]
        return np.asarray(sum(each))

    def among(self, signal: Array) -> Dependence:
        """The dependence of experts with these signals."""
        found = [(model.among(signal), own) for model, own in zip(self.models, self.share, strict=True) if own > 0]
        if len(found) == 1:
            return found[0][0]
        return MixedCorrelation(tuple(each for each, _ in found), np.array([own for _, own in found]))
