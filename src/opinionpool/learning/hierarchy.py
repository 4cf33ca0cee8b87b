"""Bias, contrast and spread of each expert of a crowd, as deviations from the crowd's, shrunken towards it.

How far experts differ is itself learned from how their forecasts scatter (empirical Bayes), so an expert with few
forecasts has nearly the crowd's features, and one with many its own. Experts are compared with those who answered the
same events: what all on an event share is taken out first, as far as their correlation says. Time and memory are linear
in the number of forecasts: everything is sums by expert and sums by event. Log-ratios are whitened over the classes
(model.md, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from opinionpool.arrays import Array, Index

CONTRAST, VARIANCE, CORRELATION = 1.0, 2.0, 0.65
# What these count, in resolved events.
PANEL_WORTH = 10.0
LOWEST, HIGHEST = 0.0, 0.99
# Rounds in which what is shared, experts and the crowd are made to fit each other, and steps of EM in each.
ROUNDS, STEPS = 6, 10
# Squares scatter at least so much.
LEAST_SCATTER = 0.5
# How far experts differ is at least 1 / this of their forecasts' variance.
MOST_WORTH, LEAST_WORTH = 1e4, 2.0
# As if so many experts had been seen who differ as a worth of `WORTH` forecasts says.
PRIOR_EXPERTS, WORTH = 10.0, 40.0


@dataclass(frozen=True, eq=False)
class Cells:
    """M forecasts on T resolved events, ordered by event."""

    # event, expert: (M,)
    event: Index
    expert: Index
    contrasts: Array  # (M, K - 1); whitened
    signs: Array  # (M, K - 1); whitened signature of what happened
    weight: Array  # (M,); frequencies
    # events, experts: T and N
    events: int
    experts: int
    # (T,); where events have options of their own, towards which nobody can be biased, how many of the K - 1
    # coordinates each has
    own: Array | None = None

    @property
    def biased(self) -> bool:
        """Whether experts may be biased towards a class."""
        return self.own is None

    @property
    def free(self) -> Array:
        """How many coordinates each event has, (T,)."""
        return np.full(self.events, float(self.contrasts.shape[1])) if self.own is None else self.own

    @property
    def rows(self) -> float:
        """Coordinates of all forecasts."""
        return float(self.weight @ self.free[self.event])

    def squares(self, values: Array) -> Array:
        """Mean squares over the coordinates of each forecast, (M,)."""
        return np.asarray((values**2).sum(axis=1) / self.free[self.event])

    def by_expert(self, values: Array) -> Array:
        """Weighted sums, (N,)."""
        return np.bincount(self.expert, weights=self.weight * values, minlength=self.experts).astype(np.float64)

    @property
    def event_weight(self) -> Array:
        """Frequency of each event, (T,)."""
        weight = np.zeros(self.events)
        weight[self.event] = self.weight
        return weight

    def by_event(self, values: Array) -> Array:
        """Sums without weights, (T,)."""
        return np.bincount(self.event, weights=values, minlength=self.events).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Regressions:
    """Sums for a ridge regression each: count, signature, value, and their products; arrays of one shape (...)."""

    count: Array
    signs: Array
    value: Array
    length: Array
    cross: Array
    square: Array

    @classmethod
    def by_expert(cls, cells: Cells, values: Array) -> Regressions:
        """Of each expert's values (M, K - 1)."""
        signs = np.stack([cells.by_expert(column) for column in cells.signs.T], axis=-1)
        value = np.stack([cells.by_expert(column) for column in values.T], axis=-1)
        return cls(
            cells.by_expert(np.ones(len(values))),
            signs,
            value,
            cells.by_expert((cells.signs**2).sum(axis=1)),
            cells.by_expert((cells.signs * values).sum(axis=1)),
            cells.by_expert((values**2).sum(axis=1)),
        )

    def without(self, cells: Cells, values: Array) -> Regressions:
        """For each forecast, the sums of its expert's other forecasts, (M,)."""
        # An event that stands for several is left out once.
        own, weight = cells.expert, np.minimum(cells.weight, 1.0)
        return Regressions(
            self.count[own] - weight,
            self.signs[own] - weight[:, None] * cells.signs,
            self.value[own] - weight[:, None] * values,
            self.length[own] - weight * (cells.signs**2).sum(axis=1),
            self.cross[own] - weight * (cells.signs * values).sum(axis=1),
            self.square[own] - weight * (values**2).sum(axis=1),
        )

    def solve(self, worth: tuple[float, float], length: float) -> tuple[Array, Array, Array, Array]:
        """Bias (..., K - 1), contrast (...), residual squares (...), and the pivot of the contrast (...)."""
        count = self.count + worth[0]
        pivot = self.length + worth[1] * length - (self.signs**2).sum(axis=-1) / count
        contrast = (self.cross - (self.signs * self.value).sum(axis=-1) / count) / pivot
        bias = (self.value - contrast[..., None] * self.signs) / count[..., None]
        fitted = (bias * self.value).sum(axis=-1) + contrast * self.cross
        size = self.count * (bias**2).sum(axis=-1) + self.length * contrast**2
        both = 2.0 * contrast * (bias * self.signs).sum(axis=-1)
        return bias, contrast, np.maximum(self.square - 2.0 * fitted + size + both, 0.0), pivot


@dataclass(frozen=True, eq=False)
class Differences:
    """From the crowd, of experts: bias (..., K - 1), contrast (...) and logarithm of the spread (...)."""

    bias: Array
    contrast: Array
    log_spread: Array


@dataclass(frozen=True, eq=False)
class Features:
    """Bias (..., K - 1), contrast and spread of experts, whitened."""

    bias: Array
    contrast: Array
    spread: Array


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A crowd and how far its experts differ."""

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

    @classmethod
    def learn(cls, cells: Cells) -> Hierarchy:
        """Learn it from the forecasts, each in turn of what is shared, of experts, and of the crowd."""
        length = float((cells.signs**2).sum(axis=1).mean())
        rho, spread, of_expert = CORRELATION, np.ones(cells.experts), np.zeros_like(cells.contrasts)
        for _ in range(ROUNDS):
            bias, contrast = _crowd(cells, rho, length)
            residual = cells.contrasts - bias - contrast * cells.signs
            values = residual - _shared(cells, residual - of_expert, spread, rho)
            sums = Regressions.by_expert(cells, values)
            worth = _worths(cells, sums, length, min(int(cells.event_weight.sum()), cells.experts))
            own_bias, own_contrast = sums.solve(worth, length)[:2]
            of_expert = own_bias[cells.expert] + own_contrast[cells.expert][:, None] * cells.signs
            squares = cells.squares(residual - of_expert)
            variance = _variance(cells, squares)
            spread_worth = _spread_worth(cells, squares, sums.count, min(int(cells.event_weight.sum()), cells.experts))
            found = cls(
                bias,
                contrast,
                variance,
                rho,
                worth,
                spread_worth,
                values,
                sums,
                squares,
                cells.by_expert(squares),
                length,
            )
            spread = found.features(found.deviation, 1.0).spread
            rho = _correlation(cells, residual - of_expert, spread)
        return replace(found, correlation=rho)

    @property
    def deviation(self) -> Differences:
        """How each expert (N,) differs from the crowd."""
        return self._differences(self.sums, self.experts_squares)

    def deviation_otherwise(self, cells: Cells) -> Differences:
        """For each forecast (M,), how its expert differs by what its other forecasts show."""
        squares = self.experts_squares[cells.expert] - np.minimum(cells.weight, 1.0) * self.squares
        return self._differences(self.sums.without(cells, self.values), np.maximum(squares, 0.0))

    def features(self, deviation: Differences, share: float) -> Features:
        """Features with a share of the differences."""
        spread = np.sqrt(self.variance) * np.exp(share * deviation.log_spread)
        return Features(self.bias + share * deviation.bias, self.contrast + share * deviation.contrast, spread)

    def _differences(self, sums: Regressions, squares: Array) -> Differences:
        bias, contrast = sums.solve(self.worth, self.length)[:2]
        own = (self.spread_worth * self.variance + squares) / (self.spread_worth + sums.count)
        return Differences(bias, contrast, np.log(own / self.variance) / 2.0)


def _crowd(cells: Cells, rho: float, length: float) -> tuple[Array, float]:
    """Generalised least squares: the n forecasts on an event count as n/(1 + (n − 1) rho)."""
    number = cells.by_event(np.ones(len(cells.event)))
    alike = cells.weight / (1.0 + (number[cells.event] - 1.0) * rho)
    off = cells.contrasts - CONTRAST * cells.signs
    sums = Regressions(
        np.asarray(alike.sum()),
        alike @ cells.signs,
        alike @ off,
        np.asarray(alike @ (cells.signs**2).sum(axis=1)),
        np.asarray(alike @ (cells.signs * off).sum(axis=1)),
        np.asarray(alike @ (off**2).sum(axis=1)),
    )
    worth = PANEL_WORTH * float(alike.sum()) / float(cells.event_weight.sum())
    bias, contrast, _, _ = sums.solve((worth if cells.biased else np.inf, worth), length)
    return bias, CONTRAST + float(contrast)


def _shared(cells: Cells, residual: Array, spread: Array, rho: float) -> Array:
    """What is expected of each residual from all on the same event, itself included, for what they share."""
    scale = spread[cells.expert]
    number = cells.by_event(np.ones(len(scale)))
    totals = np.stack([cells.by_event(column / scale) for column in residual.T], axis=-1)
    level = rho * totals / (1.0 + (number - 1.0) * rho)[:, None]
    return np.asarray(scale[:, None] * level[cells.event])


def _worths(cells: Cells, sums: Regressions, length: float, independent: int) -> tuple[float, float]:
    """What the crowd's bias and contrast count for an expert, by EM; infinitely much where there is no bias."""
    counted, d = sums.count > 0, sums.signs.shape[-1]
    experts, rows = float(counted.sum()), cells.rows
    # Experts on the same few events do not tell independently how far experts differ.
    prior = PRIOR_EXPERTS * experts / independent
    variance, worth = float(sums.square.sum()) / rows, (WORTH if cells.biased else np.inf, WORTH)
    for _ in range(STEPS):
        bias, contrast, square, pivot = sums.solve(worth, length)
        count = sums.count + worth[0]
        of_contrast = variance / pivot
        of_bias = variance * (1.0 / count + (sums.signs**2).sum(axis=-1) / (d * count**2 * pivot))
        biases = ((bias**2).sum(axis=-1) / d + of_bias)[counted].sum()
        contrasts = (contrast**2 + of_contrast)[counted].sum()
        # Coefficients are determined by the data in so far as their uncertainty is less than it was.
        unused = (d * worth[0] * of_bias / variance if cells.biased else d) + worth[1] * length * of_contrast / variance
        free = rows - (d + 1 - unused)[counted].sum()
        believed = prior * variance / WORTH
        worth = (
            _within(variance * (experts + prior) / (biases + believed)) if cells.biased else np.inf,
            _within(variance * (experts + prior) / (contrasts + believed) / length),
        )
        variance = float(square.sum()) / max(free, 1.0)
    return worth


def _within(worth: float) -> float:
    return float(np.clip(worth, LEAST_WORTH, MOST_WORTH))


def _variance(cells: Cells, squares: Array) -> float:
    """The crowd's, shrunken towards the believed one; the forecasts on one event count as one event."""
    events = float(cells.event_weight.sum())
    found = float(cells.weight @ squares / cells.weight.sum())
    return (PANEL_WORTH * VARIANCE + events * found) / (PANEL_WORTH + events)


def _spread_worth(cells: Cells, squares: Array, count: Array, independent: int) -> float:
    """What the crowd's variance counts for an expert, from how far experts' variances scatter."""
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
    prior = PRIOR_EXPERTS * experts / independent
    excess = (experts * max(excess, 0.0) + prior * inside / WORTH) / (experts + prior)
    return _within(inside / excess)


def _correlation(cells: Cells, residual: Array, spread: Array) -> float:
    """The common correlation, from pairs on the same event."""
    off = residual / spread[cells.expert][:, None]
    number = cells.by_event(np.ones(len(off)))
    summed = np.sum([cells.by_event(column) ** 2 for column in off.T], axis=0)
    products = (summed - cells.by_event((off**2).sum(axis=1))) / cells.free
    weight = cells.event_weight
    pairs, events = float(weight @ (number * (number - 1.0))), float(weight[number > 1].sum())
    found = float(weight @ products) / pairs if pairs else 0.0
    return float(np.clip((PANEL_WORTH * CORRELATION + events * found) / (PANEL_WORTH + events), LOWEST, HIGHEST))
