"""Bias, contrast and spread of each expert, shrunken towards those common to all, which are shrunken towards beliefs.

One model for panels and crowds (model.md, section 9). The common features count as a number of forecasts beside each
expert's own, so that an expert with few forecasts has nearly the common ones; the believed features count as
`PANEL_WORTH` events beside the common ones. A belief about an expert adds its worth to the former, and its difference
from the other beliefs to the centre. In a crowd, the errors that forecasts on an event share, given their correlation,
are subtracted first. Time and memory are linear in the number of forecasts: everything is sums by expert and sums by
event. Log-ratios are in orthonormal coordinates (model.md, section 3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.estimation.averages import Effects, Regressions
from opinionpool.learning.cells import Cells, inner, products, without_forecast
from opinionpool.learning.constants import COMMON_BIAS_EVENTS, EXPERT_WORTH, PANEL_WORTH
from opinionpool.learning.prior import Believed
from opinionpool.logodds import unwhitened, whitened
from opinionpool.model.correlation import CommonCorrelation, Dependence
from opinionpool.model.nested import NestedCorrelation

# A correlation learned from few pairs is not believed beyond these.
LOWEST, HIGHEST = 0.0, 0.99
# Relative difference of prior means or worths that is rounding.
SAME = 1e-12


@dataclass(frozen=True, eq=False)
class Features:
    """Experts' bias (..., K - 1), contrast (...) and spread of a new forecast (...), in orthonormal coordinates."""

    bias: Array
    # contrast, spread: mu and sigma of the contrasts
    contrast: Array
    spread: Array

    def among(self, rows: Index | slice) -> Features:
        """Features at the positions `rows`, of experts or, if each forecast has features of its own, of forecasts."""
        return Features(self.bias[rows], self.contrast[rows], self.spread[rows])

    @classmethod
    def averaged(cls, each: list[Features], probability: Array) -> Features:
        """Mean of the features `each`, weighted by `probability`; of spreads, the root mean square."""
        found = zip(*(vars(one).values() for one in each), strict=True)
        bias, contrast, spread = (np.stack(one, axis=-1) for one in found)
        return cls(bias @ probability, contrast @ probability, np.sqrt(spread**2 @ probability))


@dataclass(frozen=True, eq=False)
class MarginalFeatures(Features):
    """Bias, contrast and spread of each expert by its own forecasts (marginal), and the common correlation."""

    correlation: float

    @classmethod
    def of(cls, features: Features, correlation: float) -> MarginalFeatures:
        """Marginal features, with biases as log-ratios, from `features` with biases in orthonormal coordinates."""
        return cls(unwhitened(features.bias), features.contrast, features.spread, correlation)

    def mapped(self, rows: Callable[[Array], Array]) -> MarginalFeatures:
        """Return the features of all experts; `rows` maps values of the experts without duplicates to values of all."""
        return MarginalFeatures(rows(self.bias), rows(self.contrast), rows(self.spread), self.correlation)

    @property
    def calibration(self) -> Array:
        """Calibration kappa = 2 mu / sigma² (paper, equation 13), (N,)."""
        return np.asarray(2.0 * self.contrast / np.where(self.spread > 0, self.spread, np.inf) ** 2)

    @property
    def accuracy(self) -> Array:
        """Accuracy mu* = kappa mu (paper, equation 15), (N,)."""
        return np.asarray(self.calibration * self.contrast)


@dataclass(frozen=True, eq=False)
class Centre:
    """Prior means of experts' biases, contrasts and variances; worths of beliefs, in events; N = 1 if all are alike."""

    bias: Array  # (N, K - 1); whitened
    # contrast, variance, bias_worth, worth: (N,); `worth` is that of the beliefs about contrast and variance
    contrast: Array
    variance: Array
    bias_worth: Array
    worth: Array

    @classmethod
    def of(cls, believed: Believed, d: int) -> Centre:
        """Return the prior means that `believed` implies, and how many events each counts as; `d` is K - 1."""
        parts, worth = believed.parts(believed.rho), np.minimum(believed.calibration.worth, believed.accuracy.worth)
        found = cls(whitened(believed.biases(d)), parts.contrast, parts.spread**2, believed.bias.worth, worth)
        alike = all(np.ptp(each, axis=0).max() <= SAME * np.abs(each).max() for each in vars(found).values())
        return found.common if alike else found

    @property
    def common(self) -> Centre:
        """Prior means averaged over experts, which count as many events as the beliefs that count least; N = 1."""
        means = (each.mean(axis=0, keepdims=True) for each in (self.bias, self.contrast, self.variance))
        return Centre(*means, *(each.min(keepdims=True) for each in (self.bias_worth, self.worth)))

    def about(self, bias: Array, contrast: Array) -> Centre:
        """Prior means of experts' features given the `bias` (1, K - 1) and `contrast` (1,) that all experts share."""
        common = self.common
        moved = self.bias - common.bias + bias, self.contrast * (contrast / common.contrast)
        return replace(self, bias=moved[0], contrast=moved[1])

    def ridge(self, worth: float, length: float, *, biased: bool) -> tuple[Array | float, Array]:
        """Ridge penalties of bias and contrast: the prior mean counts as `worth` forecasts plus the belief's worth."""
        return (worth + self.bias_worth if biased else np.inf), (worth + self.worth) * length


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Hierarchical fit: the centre towards which experts' bias, contrast and spread shrink, and sums over forecasts."""

    centre: Centre
    correlation: float  # of the errors of forecasts on an event
    values: Array  # (M, K - 1); contrasts less, from the second round on, the part that forecasts on an event share
    sums: Regressions  # of `values` less the centre's expectations, by expert
    own_squares: Array  # (N,); sums of squared residuals by expert
    length: float  # squared length of the signature of one event
    squares: Array  # (M,); squared residuals, including the shared part
    errors: Array  # (M, K - 1); standardised residuals, including the shared part
    biased: bool  # whether experts may be biased

    @classmethod
    def learn(
        cls, cells: Cells, believed: Believed, worth: float, rounds: int = 1, start: Hierarchy | None = None
    ) -> Hierarchy:
        """Fit the hierarchy: update, in turn, errors that an event's forecasts share, the centre, experts' features.

        The centre counts as `worth` forecasts beside each expert's own. In the first round, no errors are shared,
        unless `start` is the hierarchy for nearly the same forecasts.
        """
        prior = Centre.of(believed, cells.contrasts.shape[1])
        for _ in range(rounds):
            found = cls._after(start, cells, prior, worth, believed.rho)
            errors = found.errors / found.features(worth).spread[cells.expert][:, None]
            start = found = replace(found, errors=errors, correlation=_correlation(cells, errors, believed))
        return found

    @classmethod
    def _after(cls, start: Hierarchy | None, cells: Cells, prior: Centre, worth: float, rho: float) -> Hierarchy:
        """The hierarchy (biases, contrasts, spreads and their centre) after one more round of updates."""
        rho = rho if start is None else start.correlation
        centre, length = prior.about(*_of_all(cells, rho, prior.common)), cells.length
        values = cells.contrasts
        if start is not None:
            own = start.effects(worth)
            others = cells.contrasts - _expected(cells, centre.bias + own.bias, centre.contrast + own.contrast)
            values = cells.contrasts - _shared(cells, others, start.features(worth).spread, rho)
        sums = (cells.sums if start is None else cells.regressions(values)).about(centre.bias, centre.contrast)
        own = sums.solve(centre.ridge(worth, length, biased=cells.biased))
        errors = cells.contrasts - _expected(cells, centre.bias + own.bias, centre.contrast + own.contrast)
        squares = cells.squares(errors)
        centre = replace(centre, variance=centre.variance * _variance_ratio(cells, squares, prior.common))
        return cls(centre, rho, values, sums, cells.by_expert(squares), length, squares, errors, cells.biased)

    def effects(self, worth: float) -> Effects:
        """Experts' biases and contrasts less the centre's, if the centre counts as `worth` forecasts."""
        return self.sums.solve(self.centre.ridge(worth, self.length, biased=self.biased))

    def features(self, worth: float) -> Features:
        """Bias, contrast and spread of all experts, shrunken to the centre, which counts as `worth` forecasts."""
        own, variance = self.effects(worth), self._variance(worth)
        # What all on an event share is taken out before bias and contrast are found.
        open_ = own.bias_variance + own.contrast_variance * self.length / self.sums.signature.shape[-1]
        spread = np.sqrt(variance * (1.0 + (1.0 - self.correlation) * open_))
        return Features(self.centre.bias + own.bias, self.centre.contrast + own.contrast, spread)

    def _variance(self, worth: float) -> Array:
        """Variance of each expert's errors, (N,), shrunken to the centre, which counts as `worth` forecasts."""
        worths = worth + self.centre.worth
        return np.asarray((worths * self.centre.variance + self.own_squares) / (worths + self.sums.count))

    def otherwise(self, cells: Cells) -> Hierarchy:
        """Return a hierarchy of M experts: for each forecast, its expert as learned without this forecast."""
        squares = self.own_squares[cells.expert] - cells.of_forecast(cells.lost_weight * self.squares)
        values = self.values - _expected(cells, self.centre.bias, self.centre.contrast)
        sums = without_forecast(self.sums, cells, values)
        return replace(self, sums=sums, own_squares=np.maximum(squares, 0.0))

    def among(self, rows: Index | slice) -> Hierarchy:
        """Return the hierarchy of only the experts, or forecasts, at the positions `rows`; they share one centre."""
        return replace(self, sums=self.sums.among(rows), own_squares=self.own_squares[rows])

    def open_variances(self, worth: float) -> Array:
        """Posterior variances of each expert's bias, contrast and log spread, (3, N); `worth` as in `features`."""
        own, variance = self.effects(worth), (1.0 - self.correlation) * self._variance(worth)
        # A variance has been seen so often as its worth and its forecasts say, each time with one of twice its square.
        of_spread = 0.5 / (worth + self.centre.worth + self.sums.count)
        return np.array([variance * own.bias_variance, variance * own.contrast_variance, of_spread])


def marginal_features(cells: Cells, believed: Believed) -> MarginalFeatures:
    """Each expert's bias, contrast and spread from resolved events, shrunken towards what is believed."""
    found = Hierarchy.learn(cells, believed, EXPERT_WORTH)
    features = found.features(EXPERT_WORTH)
    contrast = _pulled(features, believed, found.centre.worth, found.sums.count)
    return MarginalFeatures.of(replace(features, contrast=contrast), found.correlation)


def marginal_bias(cells: Cells, believed: Believed) -> Array:
    """Biases of the experts, (N, K - 1), from resolved events, as in `marginal_features`."""
    prior = Centre.of(believed, cells.contrasts.shape[1])
    centre = prior.about(*_of_all(cells, believed.rho, prior.common))
    sums = cells.sums.about(centre.bias, centre.contrast)
    return unwhitened(centre.bias + sums.solve(centre.ridge(EXPERT_WORTH, cells.length, biased=cells.biased)).bias)


def marginal_dependence(features: MarginalFeatures, believed: Believed) -> Dependence:
    """Correlation of errors: one for all pairs, or nested evidence (model.md, section 8) if accuracies are unequal."""
    n, rho, accuracy = len(features.spread), features.correlation, believed.accuracy.value
    if rho < 0 or np.ptp(accuracy) == 0:
        return CommonCorrelation(n, rho)
    size = np.sort(np.sqrt(accuracy))
    mean = float((np.cumsum(size)[:-1] / size[1:]).sum()) / (n * (n - 1) / 2)
    return NestedCorrelation(np.sqrt(accuracy), min(rho / mean, HIGHEST))


def believed_features(believed: Believed, d: int) -> MarginalFeatures:
    """Bias, contrast and spread of each expert as believed beforehand; `d` is K - 1."""
    parts = believed.parts(believed.rho)
    return MarginalFeatures(believed.biases(d), parts.contrast, parts.spread, believed.rho)


def _pulled(features: Features, believed: Believed, counted: Array, own: Array) -> Array:
    """Contrasts (N,), shrunken again, to beliefs worth more than `counted` events; `own` are numbers of forecasts."""
    found = features.contrast
    for belief, size in (
        (believed.calibration, believed.calibration.value * features.spread**2 / 2.0),
        (believed.accuracy, features.spread * np.sqrt(believed.accuracy.value / 2.0)),
    ):
        rest = belief.worth - counted
        share = np.where(rest > 0, rest / (EXPERT_WORTH + counted + own + rest), 0.0)
        found = found + share * (size - features.contrast)
    return np.asarray(found)


def _of_all(cells: Cells, rho: float, prior: Centre) -> tuple[Array, Array]:
    """Bias (1, K - 1) and contrast (1,) common to experts; n forecasts on an event count as n/(1 + (n - 1)rho)."""
    if np.ptp(cells.number) == 0:
        # All count alike, and a factor that sums and penalties share changes nothing.
        every = [each.sum(axis=0) for each in vars(cells.sums).values()]
    else:
        alike = cells.weight * (1.0 / (1.0 + (cells.number - 1.0) * rho))[cells.event]
        every = [alike @ each for each in products(cells, cells.contrasts)]
    sums = Regressions(*(np.asarray(each)[None] for each in every))
    each = float(sums.count[0]) / float(cells.event_weight.sum())
    of_bias = COMMON_BIAS_EVENTS + prior.bias_worth if cells.biased else np.inf
    worth = of_bias * each, (PANEL_WORTH + prior.worth) * each * cells.length
    found = sums.about(prior.bias, prior.contrast).solve(worth)
    return prior.bias + found.bias, prior.contrast + found.contrast


def _expected(cells: Cells, bias: Array, contrast: Array) -> Array:
    """Expected log-ratios of each forecast, (M, K - 1), by `bias` and `contrast` of its expert, or common to all."""
    if len(contrast) == 1:
        return np.asarray(bias + contrast * cells.signs)
    return np.asarray(bias[cells.expert] + contrast[cells.expert][:, None] * cells.signs)


def _shared(cells: Cells, residual: Array, spread: Array, rho: float) -> Array:
    """Error that each forecast shares with its event's other forecasts, (M, K - 1), expected from their `residual`."""
    scale = spread[cells.expert]
    others = cells.number[cells.event] - 1.0
    z = residual / scale[:, None]
    totals = np.stack([cells.by_event(column)[cells.event] - column for column in z.T], axis=-1)
    return np.asarray(scale[:, None] * (rho / (1.0 + np.maximum(others - 1.0, 0.0) * rho))[:, None] * totals)


def _variance_ratio(cells: Cells, squares: Array, prior: Centre) -> Array:
    """Variance of errors divided by the believed variance, (1,), shrunken to 1; an event's forecasts count as one."""
    events = float(cells.event_weight.sum())
    found = float(cells.weight @ squares / cells.weight.sum())
    worth = PANEL_WORTH + prior.worth
    return np.asarray((worth + events * found / prior.variance) / (worth + events))


def shrunken_correlation(found: float, events: float, believed: Believed) -> float:
    """Correlation `found`, from a number of `events`, shrunken towards the believed correlation."""
    if len(believed) == 1:
        return 0.0
    worth, rho = PANEL_WORTH + believed.correlation_worth, believed.rho
    return float(np.clip((worth * rho + events * found) / (worth + events), min(LOWEST, rho), HIGHEST))


def _correlation(cells: Cells, errors: Array, believed: Believed) -> float:
    """Common correlation of errors, from pairs of forecasts on one event, shrunken towards the believed one."""
    total = np.stack([cells.by_event(column) for column in errors.T], axis=-1)
    among = (inner(total, total) - cells.by_event(inner(errors, errors))) / cells.free
    weight, number = cells.event_weight, cells.number * (cells.number - 1.0)
    pairs, events = float(weight @ number), float(weight[number > 0].sum())
    return shrunken_correlation(float(weight @ among) / pairs if pairs else 0.0, events, believed)


def nested_correlation(cells: Cells, errors: Array, signal: Array, believed: Believed) -> float:
    """Correlation of nested evidence, from pairs of forecasts on an event; `signal` (N,) is contrast over spread."""
    among = NestedCorrelation(signal, 0.0)
    weight = cells.event_weight
    products, squares = among.pairs(cells.event, cells.expert, errors, cells.events)
    total, events = float(weight @ squares), float(weight[cells.number > 1].sum())
    return shrunken_correlation(float(weight @ (products / cells.free)) / total if total else 0.0, events, believed)
