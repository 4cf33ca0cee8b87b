"""Bias, contrast and spread of each expert of a crowd, shrunken towards the crowd's bias, contrast and spread.

How far experts differ is itself learned from how their forecasts scatter (empirical Bayes), so an expert with few
forecasts has nearly the crowd's features, and one with many its own. Experts are compared with those who answered the
same events: what all on an event share is taken out first, as far as their correlation says. Time and memory are linear
in the number of forecasts: everything is sums by expert and sums by event. Log-ratios are whitened over the classes
(model.md, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.estimation.rows import pair_products
from opinionpool.learning.constants import ACCURACY, CALIBRATION, CORRELATION, CROWD_EXPERTS, CROWD_WORTH, PANEL_WORTH
from opinionpool.learning.crowd_cells import Cells, Regressions, products
from opinionpool.learning.prior import Believed
from opinionpool.model.nested import NestedCorrelation

# A correlation is kept between these.
LOWEST, HIGHEST = 0.0, 0.99
# Rounds in which what is shared, experts and the crowd are made to fit each other, fewer where they nearly do, and
# steps of EM in each.
ROUNDS, FEWER_ROUNDS, STEPS = 6, 3, 30
# Squares scatter at least so much.
LEAST_SCATTER = 0.5
# How far experts differ is at least 1 / this of their forecasts' variance.
MOST_WORTH, LEAST_WORTH = 1e4, 2.0


@dataclass(frozen=True, eq=False)
class Differences:
    """Differences of experts from the crowd, in bias, contrast and log spread."""

    bias: Array  # (..., K - 1)
    contrast: Array  # (...)
    log_spread: Array  # (...)
    variance: Array  # (...); what is open about bias and contrast adds so much to the variance of a forecast

    def among(self, rows: Index | slice) -> Differences:
        """Differences in the given rows."""
        return Differences(self.bias[rows], self.contrast[rows], self.log_spread[rows], self.variance[rows])


@dataclass(frozen=True, eq=False)
class Features:
    """Bias (..., K - 1), contrast and spread of experts, whitened; the spread is of a new forecast (predictive)."""

    bias: Array
    contrast: Array
    spread: Array

    def among(self, rows: Index | slice) -> Features:
        """Features in the given rows."""
        return Features(self.bias[rows], self.contrast[rows], self.spread[rows])


@dataclass(frozen=True, eq=False)
class Centre:
    """Prior means of a crowd's features, and the prior events of beliefs about them beyond the defaults."""

    bias: float = 0.0
    contrast: float = ACCURACY / CALIBRATION
    variance: float = 2.0 * ACCURACY / CALIBRATION**2
    correlation: float = CORRELATION
    worth: tuple[float, float, float] = (0.0, 0.0, 0.0)  # of bias, of contrast and variance, and of the correlation

    @classmethod
    def of(cls, believed: Believed) -> Centre:
        """Return the prior means of the crowd that beliefs about its experts imply."""
        kappa, accuracy = (float(each.value.mean()) for each in (believed.calibration, believed.accuracy))
        worth = float(np.minimum(believed.calibration.worth, believed.accuracy.worth).min())
        worths = float(believed.bias.worth.min()), worth, believed.correlation_worth
        bias = float(believed.bias.value.mean())
        return cls(bias, accuracy / kappa, 2.0 * accuracy / kappa**2, believed.rho, worths)

    def drawn(self, found: float, events: float) -> float:
        """Return the correlation `found` on a number of events, shrunken towards the believed correlation."""
        worth = PANEL_WORTH + self.worth[2]
        return float(np.clip((worth * self.correlation + events * found) / (worth + events), LOWEST, HIGHEST))


ANYBODY = Centre()


class Start(NamedTuple):
    """Start of a fit: the crowd's correlation, and N experts' differences in bias and contrast, and spreads."""

    correlation: float
    bias: Array
    contrast: Array
    spread: Array


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Features of a crowd, variances of its experts' features, and the sums from which each expert's follow."""

    bias: Array  # (K - 1,)
    # contrast, variance, correlation: the crowd's
    contrast: float
    variance: float
    correlation: float
    worth: tuple[float, float]  # what the crowd's bias and contrast count for an expert, in forecasts
    spread_worth: float  # the same for the variance
    values: Array  # (M, K - 1); forecasts less what is expected of the crowd and what all on that event share
    sums: Regressions  # of those by expert
    squares: Array  # (M,); squared residuals, with what is shared
    experts_squares: Array  # (N,); their sums by expert
    length: float  # squared length of the signature of one event
    errors: Array  # (M, K - 1); standardised residuals, with what is shared

    @classmethod
    def learn(cls, cells: Cells, start: Start | None = None, centre: Centre = ANYBODY) -> Hierarchy:
        """Fit the hierarchy by rounds that update shared residuals, experts' features and the crowd's features in turn.

        `start` is what was found in nearly the same forecasts.
        """
        if start is None:
            n = cells.experts
            start = Start(centre.correlation, np.zeros((n, cells.contrasts.shape[1])), np.zeros(n), np.ones(n))
            rounds = ROUNDS
        else:
            rounds = FEWER_ROUNDS
        for _ in range(rounds):
            found = cls._after(start, cells, centre)
            errors = found.errors / found.start.spread[cells.expert][:, None]
            start = found.start._replace(correlation=_correlation(cells, errors, centre))
        return replace(found, correlation=start.correlation, errors=errors)

    @classmethod
    def _after(cls, start: Start, cells: Cells, centre: Centre) -> Hierarchy:
        """Hierarchy after one round of updates; `errors` are not yet divided by the spread of their expert."""
        length = float((cells.signs**2).sum(axis=1).mean())
        # Rounding of a sum that is whole must not take one off.
        independent = min(int(cells.event_weight.sum() * (1.0 + 1e-12)), cells.experts)
        bias, contrast = _crowd(cells, start.correlation, length, centre)
        residual = cells.contrasts - bias - contrast * cells.signs
        before = residual - _of_expert(cells, start.bias, start.contrast)
        values = residual - _shared(cells, before, start.spread, start.correlation)
        sums = Regressions.by_expert(cells, values)
        worth = _worths(cells, sums, length, independent)
        errors = residual - _of_expert(cells, *sums.solve(worth, length)[:2])
        squares = cells.squares(errors)
        return cls(
            bias=bias,
            contrast=contrast,
            variance=_variance(cells, squares, centre),
            correlation=start.correlation,
            worth=worth,
            spread_worth=_spread_worth(cells, squares, sums.count, independent),
            values=values,
            sums=sums,
            squares=squares,
            experts_squares=cells.by_expert(squares),
            length=length,
            errors=errors,
        )

    @property
    def start(self) -> Start:
        """Start of the search for a fit to similar forecasts."""
        found = self.deviation
        return Start(self.correlation, found.bias, found.contrast, self.features(found, 1.0).spread)

    @property
    def deviation(self) -> Differences:
        """Differences of each expert (N,) from the crowd."""
        return self._differences(self.sums, self.experts_squares)

    def deviation_otherwise(self, cells: Cells) -> Differences:
        """Differences from the crowd of each forecast's expert, (M,), estimated without that forecast."""
        squares = self.experts_squares[cells.expert] - cells.of_forecast(cells.once * self.squares)
        return self._differences(self.sums.without(cells, self.values), np.maximum(squares, 0.0))

    def features(self, deviation: Differences, share: float) -> Features:
        """Features of experts, with `share` of their differences from the crowd, `deviation`."""
        variance = self.variance * np.exp(2.0 * share * deviation.log_spread) + share * deviation.variance
        bias, contrast = self.bias + share * deviation.bias, self.contrast + share * deviation.contrast
        return Features(bias, contrast, np.sqrt(variance))

    def open_variances(self, deviation: Differences) -> Array:
        """Posterior variances of a coordinate of the bias, of the contrast and of the log spread, (3, N)."""
        _, _, _, pivot = self.sums.solve(self.worth, self.length)
        own = (1.0 - self.correlation) * self.variance * np.exp(2.0 * deviation.log_spread)
        of_bias, of_contrast = self.sums.uncertain(self.worth, pivot)
        # A variance has been seen so often as its worth and its forecasts say, each time with one of twice its square.
        return np.array([own * of_bias, own * of_contrast, 0.5 / (self.spread_worth + self.sums.count)])

    def _differences(self, sums: Regressions, squares: Array) -> Differences:
        bias, contrast, _, pivot = sums.solve(self.worth, self.length)
        own = (self.spread_worth * self.variance + squares) / (self.spread_worth + sums.count)
        # What all on an event share is taken out before bias and contrast are found.
        of_bias, of_contrast = sums.uncertain(self.worth, pivot)
        open_ = of_bias + of_contrast * self.length / sums.signs.shape[-1]
        return Differences(bias, contrast, np.log(own / self.variance) / 2.0, (1.0 - self.correlation) * own * open_)


def _crowd(cells: Cells, rho: float, length: float, centre: Centre) -> tuple[Array, float]:
    """Bias and contrast of the crowd by generalised least squares: n forecasts of an event count n/(1 + (n − 1)rho)."""
    number = cells.number
    alike = cells.weight / (1.0 + (number[cells.event] - 1.0) * rho)
    off = cells.contrasts - centre.bias - centre.contrast * cells.signs
    sums = Regressions(*(np.asarray(alike @ each) for each in products(cells, off)))
    each = float(alike.sum()) / float(cells.event_weight.sum())
    of_bias, worth = ((PANEL_WORTH + own) * each for own in centre.worth[:2])
    bias, contrast, _, _ = sums.solve((of_bias if cells.biased else np.inf, worth), length)
    return centre.bias + bias, centre.contrast + float(contrast)


def _of_expert(cells: Cells, bias: Array, contrast: Array) -> Array:
    """Difference of each forecast's expectation from the crowd's, by bias and contrast of its expert, (M, K - 1)."""
    return np.asarray(bias[cells.expert] + contrast[cells.expert][:, None] * cells.signs)


def _shared(cells: Cells, residual: Array, spread: Array, rho: float) -> Array:
    """Expectation of each residual given the residuals of the other forecasts on its event, (M, K - 1)."""
    scale = spread[cells.expert]
    others = cells.number[cells.event] - 1.0
    z = residual / scale[:, None]
    totals = np.stack([cells.by_event(column)[cells.event] - column for column in z.T], axis=-1)
    return np.asarray(scale[:, None] * (rho / (1.0 + np.maximum(others - 1.0, 0.0) * rho))[:, None] * totals)


def _worths(cells: Cells, sums: Regressions, length: float, independent: int) -> tuple[float, float]:
    """Prior weights, in forecasts, of the crowd's bias (inf if biases are 0) and contrast for an expert, by EM."""
    counted, d = sums.count > 0, sums.signs.shape[-1]
    experts, rows = float(counted.sum()), cells.rows
    # Experts on the same few events do not tell independently how far experts differ.
    prior = CROWD_EXPERTS * experts / independent
    variance, worth = float(sums.square.sum()) / rows, (CROWD_WORTH if cells.biased else np.inf, CROWD_WORTH)
    for _ in range(STEPS):
        bias, contrast, square, pivot = sums.solve(worth, length)
        of_bias, of_contrast = (variance * each for each in sums.uncertain(worth, pivot))
        biases = ((bias**2).sum(axis=-1) / d + of_bias)[counted].sum()
        contrasts = (contrast**2 + of_contrast)[counted].sum()
        # Coefficients are determined by the data in so far as their uncertainty is less than it was.
        unused = (d * worth[0] * of_bias / variance if cells.biased else d) + worth[1] * length * of_contrast / variance
        free = rows - (d + 1 - unused)[counted].sum()
        believed = prior * variance / CROWD_WORTH
        worth = (
            _within(variance * (experts + prior) / (biases + believed)) if cells.biased else np.inf,
            _within(variance * (experts + prior) / (contrasts + believed) / length),
        )
        variance = float(square.sum()) / max(free, 1.0)
    return worth


def _within(worth: float) -> float:
    return float(np.clip(worth, LEAST_WORTH, MOST_WORTH))


def _variance(cells: Cells, squares: Array, centre: Centre) -> float:
    """Variance of the crowd, shrunken towards the believed variance; all forecasts on one event count as one."""
    events = float(cells.event_weight.sum())
    found = float(cells.weight @ squares / cells.weight.sum())
    worth = PANEL_WORTH + centre.worth[1]
    return (worth * centre.variance + events * found) / (worth + events)


def _spread_worth(cells: Cells, squares: Array, count: Array, independent: int) -> float:
    """Prior weight, in forecasts, of the crowd's variance for an expert, from the scatter of the experts' variances."""
    counted = count > 0
    experts, forecasts = float(counted.sum()), float(count.sum())
    mean = float(cells.weight @ squares) / forecasts
    level = cells.by_expert(squares) / np.where(counted, count, 1.0)
    # How far squares scatter within an expert relative to their mean: 2 for two classes and a normal distribution.
    # The rows that one forecast on an open event stands for add up to 1 but for rounding.
    several = count > 1.5
    within = cells.by_expert((squares - level[cells.expert]) ** 2)[several] / (count[several] - 1.0)
    base = (level**2)[several]
    inside = float(count[several] @ within) / float(count[several] @ base) if several.any() else 2.0
    inside = max(inside, LEAST_SCATTER)
    excess = float(count @ (level / mean - 1.0) ** 2 - inside * experts) / forecasts
    prior = CROWD_EXPERTS * experts / independent
    excess = (experts * max(excess, 0.0) + prior * inside / CROWD_WORTH) / (experts + prior)
    return _within(inside / excess)


def _correlation(cells: Cells, errors: Array, centre: Centre) -> float:
    """Common correlation of errors, from pairs of forecasts on an event, shrunken towards the believed correlation."""
    products, number = pair_products(cells.event, errors, cells.events)
    weight = cells.event_weight
    pairs, events = float(weight @ number), float(weight[number > 0].sum())
    return centre.drawn(float(weight @ (products / cells.free)) / pairs if pairs else 0.0, events)


def nested_correlation(cells: Cells, errors: Array, signal: Array, centre: Centre = ANYBODY) -> float:
    """Correlation of nested evidence, from pairs of forecasts on an event; `signal` (N,) is each expert's mu/sigma."""
    among = NestedCorrelation(signal, 0.0)
    weight = cells.event_weight
    products, squares = among.pairs(cells.event, cells.expert, errors, cells.events)
    total, events = float(weight @ squares), float(weight[cells.number > 1].sum())
    return centre.drawn(float(weight @ (products / cells.free)) / total if total else 0.0, events)
