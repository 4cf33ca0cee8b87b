"""Bias, contrast and spread of each expert of a crowd, shrunken towards the crowd's bias, contrast and spread.

The crowd's features count as a number of forecasts beside each expert's own, so an expert with few forecasts has nearly
the crowd's features, and an expert with many has its own. The errors that forecasts on an event share, given their
correlation, are subtracted first. Time and memory are linear in the number of forecasts: everything is sums by expert
and sums by event. Log-ratios are whitened over the classes (model.md, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.estimation.rows import pair_products
from opinionpool.learning.constants import COMMON_BIAS_EVENTS, CROWD_WORTH, PANEL_WORTH
from opinionpool.learning.crowd_cells import Cells, Regressions, products
from opinionpool.learning.prior import Believed
from opinionpool.learning.shrinkage import Centre, shrunken_correlation
from opinionpool.model.nested import NestedCorrelation

# Rounds in which what is shared, experts and the crowd are made to fit each other, fewer where they nearly do.
ROUNDS, FEWER_ROUNDS = 6, 3


@dataclass(frozen=True, eq=False)
class Features:
    """Experts' bias (..., K - 1), contrast (...) and spread of a new forecast (...), in orthonormal coordinates."""

    bias: Array
    contrast: Array
    spread: Array

    def among(self, rows: Index | slice) -> Features:
        """Return bias, contrast and spread of the experts, or for the forecasts, at the positions `rows`."""
        return Features(self.bias[rows], self.contrast[rows], self.spread[rows])

    @classmethod
    def averaged(cls, each: list[Features], probability: Array) -> Features:
        """Mean of the features `each`, weighted by `probability`; of spreads, the root mean square."""
        found = zip(*(vars(one).values() for one in each), strict=True)
        bias, contrast, spread = (np.stack(one, axis=-1) for one in found)
        return cls(bias @ probability, contrast @ probability, np.sqrt(spread**2 @ probability))


class Start(NamedTuple):
    """Point from which a hierarchical fit starts: correlation, spreads, and biases and contrasts less the crowd's."""

    correlation: float
    bias: Array
    contrast: Array
    spread: Array


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Hierarchical fit of a crowd: its bias, contrast, spread, and sums from which each expert's own follow."""

    bias: Array  # (K - 1,)
    # contrast, variance, correlation: the crowd's
    contrast: float
    variance: float
    correlation: float
    values: Array  # (M, K - 1); contrasts less the crowd's expectation and the part shared by forecasts on the event
    sums: Regressions  # of `values`, by expert
    own_squares: Array  # (N,); sums of squared residuals by expert
    length: float  # squared length of the signature of one event
    squares: Array  # (M,); squared residuals, including the shared part
    errors: Array  # (M, K - 1); standardised residuals, including the shared part
    biased: bool  # whether experts may be biased

    @classmethod
    def learn(cls, cells: Cells, believed: Believed, start: Start | None = None) -> Hierarchy:
        """Fit the hierarchy by rounds that update errors shared on an event, the experts' features and the crowd's.

        `start` is the `start` of a hierarchy for nearly the same forecasts.
        """
        centre = Centre.of(believed, 1)
        if start is None:
            n = cells.experts
            start = Start(believed.rho, np.zeros((n, cells.contrasts.shape[1])), np.zeros(n), np.ones(n))
            rounds = ROUNDS
        else:
            rounds = FEWER_ROUNDS
        for _ in range(rounds):
            found = cls._after(start, cells, centre)
            errors = found.errors / found.start.spread[cells.expert][:, None]
            start = found.start._replace(correlation=_correlation(cells, errors, believed))
        return replace(found, correlation=start.correlation, errors=errors)

    @classmethod
    def _after(cls, start: Start, cells: Cells, centre: Centre) -> Hierarchy:
        """Return the hierarchy after one round of updates; `errors` are not yet divided by their experts' spreads."""
        length = float((cells.signs**2).sum(axis=1).mean())
        bias, contrast = _crowd(cells, start.correlation, length, centre)
        residual = cells.contrasts - bias - contrast * cells.signs
        before = residual - _of_expert(cells, start.bias, start.contrast)
        values = residual - _shared(cells, before, start.spread, start.correlation)
        sums, worth = Regressions.by_expert(cells, values), _worth(CROWD_WORTH, biased=cells.biased)
        errors = residual - _of_expert(cells, *sums.solve(worth, length)[:2])
        squares = cells.squares(errors)
        variance, by_expert = _variance(cells, squares, centre), cells.by_expert(squares)
        about = sums, by_expert, length, squares, errors, cells.biased
        return cls(bias, contrast, variance, start.correlation, values, *about)

    @property
    def start(self) -> Start:
        """Point from which a fit to similar forecasts starts."""
        found = self.features(CROWD_WORTH)
        return Start(self.correlation, found.bias - self.bias, found.contrast - self.contrast, found.spread)

    def features(self, worth: float) -> Features:
        """Bias, contrast and spread of all experts, shrunken to the crowd's, which count as `worth` forecasts."""
        bias, contrast, *_ = self.sums.solve(_worth(worth, biased=self.biased), self.length)
        own, of_bias, of_contrast = self._open(worth)
        open_ = own * (of_bias + of_contrast * self.length / self.sums.signs.shape[-1])
        return Features(self.bias + bias, self.contrast + contrast, np.sqrt(own / (1.0 - self.correlation) + open_))

    def otherwise(self, cells: Cells) -> Hierarchy:
        """Return a hierarchy with an entry for each forecast, (M,): its expert, learned without this forecast."""
        squares = self.own_squares[cells.expert] - cells.of_forecast(cells.lost_weight * self.squares)
        return replace(self, sums=self.sums.without(cells, self.values), own_squares=np.maximum(squares, 0.0))

    def among(self, rows: Index | slice) -> Hierarchy:
        """Return the hierarchy of only the experts, or forecasts, at the positions `rows`."""
        return replace(self, sums=self.sums.among(rows), own_squares=self.own_squares[rows])

    def open_variances(self, worth: float) -> Array:
        """Posterior variances, (3, N), of log-ratios of bias, of contrast and log spread; `worth` as in `features`."""
        own, of_bias, of_contrast = self._open(worth)
        # A variance has been seen so often as its worth and its forecasts say, each time with one of twice its square.
        return np.array([own * of_bias, own * of_contrast, 0.5 / (worth + self.sums.count)])

    def _open(self, worth: float) -> tuple[Array, Array, Array]:
        """Variance of each expert's own errors; variances of its bias and its contrast, relative to that, (N,) each."""
        ridge = _worth(worth, biased=self.biased)
        own = (worth * self.variance + self.own_squares) / (worth + self.sums.count)
        # What all on an event share is taken out before bias and contrast are found.
        return (1.0 - self.correlation) * own, *self.sums.uncertain(ridge, self.sums.solve(ridge, self.length)[3])


def _worth(worth: float, *, biased: bool) -> tuple[float, float]:
    """Numbers of forecasts that the crowd's bias and contrast count as, beside an expert's own; inf if not `biased`."""
    return (worth if biased else np.inf), worth


def _crowd(cells: Cells, rho: float, length: float, centre: Centre) -> tuple[Array, float]:
    """Bias and contrast of the crowd by least squares, where n forecasts on an event count as n/(1 + (n − 1)rho)."""
    number = cells.number
    alike = cells.weight / (1.0 + (number[cells.event] - 1.0) * rho)
    biased, believed = float(centre.bias.mean()), float(centre.contrast.mean())
    off = cells.contrasts - biased - believed * cells.signs
    sums = Regressions(*(np.asarray(alike @ each) for each in products(cells, off)))
    each = float(alike.sum()) / float(cells.event_weight.sum())
    of_bias = (COMMON_BIAS_EVENTS + float(centre.bias_worth.min())) * each
    worth = (PANEL_WORTH + float(centre.worth.min())) * each
    bias, contrast, _, _ = sums.solve((of_bias if cells.biased else np.inf, worth), length)
    return biased + bias, believed + float(contrast)


def _of_expert(cells: Cells, bias: Array, contrast: Array) -> Array:
    """What the expert's own `bias` and `contrast` add to the expected log-ratios of each forecast, (M, K - 1)."""
    return np.asarray(bias[cells.expert] + contrast[cells.expert][:, None] * cells.signs)


def _shared(cells: Cells, residual: Array, spread: Array, rho: float) -> Array:
    """Error that each forecast shares with the others on its event, (M, K - 1), expected from theirs by `rho`."""
    scale = spread[cells.expert]
    others = cells.number[cells.event] - 1.0
    z = residual / scale[:, None]
    totals = np.stack([cells.by_event(column)[cells.event] - column for column in z.T], axis=-1)
    return np.asarray(scale[:, None] * (rho / (1.0 + np.maximum(others - 1.0, 0.0) * rho))[:, None] * totals)


def _variance(cells: Cells, squares: Array, centre: Centre) -> float:
    """Variance of the crowd's errors, shrunken towards the believed one; all forecasts on an event count as one."""
    events = float(cells.event_weight.sum())
    found = float(cells.weight @ squares / cells.weight.sum())
    worth = PANEL_WORTH + float(centre.worth.min())
    return (worth * float(centre.variance.mean()) + events * found) / (worth + events)


def _correlation(cells: Cells, errors: Array, believed: Believed) -> float:
    """Common correlation of errors, from pairs of forecasts on one event, shrunken towards the believed one."""
    products, number = pair_products(cells.event, errors, cells.events)
    weight = cells.event_weight
    pairs, events = float(weight @ number), float(weight[number > 0].sum())
    return shrunken_correlation(float(weight @ (products / cells.free)) / pairs if pairs else 0.0, events, believed)


def nested_correlation(cells: Cells, errors: Array, signal: Array, believed: Believed) -> float:
    """Correlation of nested evidence, from pairs of forecasts on an event; `signal` (N,) is contrast over spread."""
    among = NestedCorrelation(signal, 0.0)
    weight = cells.event_weight
    products, squares = among.pairs(cells.event, cells.expert, errors, cells.events)
    total, events = float(weight @ squares), float(weight[cells.number > 1].sum())
    return shrunken_correlation(float(weight @ (products / cells.free)) / total if total else 0.0, events, believed)
