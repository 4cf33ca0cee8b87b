"""Answers by believed panels, forecast by forecast."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opinionpool.arrays import Array
from opinionpool.learning.crowd_cells import Cells
from opinionpool.learning.hierarchy import Features
from opinionpool.model.correlation import CommonCorrelation
from opinionpool.model.features import cell_weights
from opinionpool.model.nested import NestedCorrelation


@dataclass(frozen=True)
class Model:
    """Model of how experts depend on each other."""

    nested: (
        bool  # whether what the weaker of two knows is a blurred copy of what the stronger knows; else one correlation
    )
    rho: float  # the correlation of experts who are equally accurate

    def among(self, signal: Array) -> CommonCorrelation | NestedCorrelation:
        """The correlation of experts with these signals."""
        if not self.nested:
            return CommonCorrelation(len(signal), self.rho if len(signal) > 1 else 0.0)
        return NestedCorrelation(signal, self.rho)


@dataclass(frozen=True, eq=False)
class Pooled:
    """Forecasts on T events pooled with a slope of 1."""

    contrasts: Array  # (T, K - 1)
    weights: Array  # (T,); their sum

    @classmethod
    def by(cls, model: Model, cells: Cells, features: Features, root: Array) -> Pooled:
        """Forecasts pooled by a model, with features (M,) of the expert of each forecast; `root` whitens."""
        contrast, spread = features.contrast, features.spread
        each, dependence = np.arange(len(contrast)), model.among(contrast / spread)
        weights = cell_weights(cells.event, each, contrast, spread, dependence, cells.events)
        columns = (cells.contrasts - features.bias).T
        pooled = np.stack([cells.by_event(weights * column) for column in columns], axis=-1)
        return cls(pooled @ np.linalg.inv(root), cells.by_event(weights))

    @classmethod
    def by_others(cls, model: Model, cells: Cells, features: Features, root: Array) -> Pooled:
        """For each of M forecasts, the pool of the other forecasts on its event, under one common correlation."""
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

    def times(self, factor: float) -> Pooled:
        """Pooled forecasts with contrasts and weights multiplied by `factor`."""
        return Pooled(factor * self.contrasts, factor * self.weights)
