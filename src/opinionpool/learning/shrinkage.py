"""Marginal features of experts, shrunken towards the panel's, which are shrunken towards the prior.

The panel's features are shrunken towards the believed ones, which count as `PANEL_WORTH` events; each expert's are
shrunken towards the panel's, which count as `EXPERT_WORTH` forecasts. A belief about an expert adds its worth to that
number, and its difference from the panel's belief to the centre.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from opinionpool.arrays import Array
from opinionpool.estimation import averages as estimates
from opinionpool.estimation.rows import ResolvedEvents
from opinionpool.learning.constants import COMMON_BIAS_EVENTS, EXPERT_WORTH, PANEL_WORTH
from opinionpool.learning.prior import Believed
from opinionpool.model.correlation import CommonCorrelation, Dependence
from opinionpool.model.nested import NestedCorrelation

# A correlation learned from few pairs is not believed beyond these.
LOWEST, HIGHEST = 0.0, 0.99


@dataclass(frozen=True, eq=False)
class MarginalFeatures:
    """Bias, contrast and spread of each expert by its own forecasts (marginal), and the common correlation."""

    bias: Array  # (N, K - 1)
    # contrast, spread: (N,); mu and sigma of the contrasts
    contrast: Array
    spread: Array
    correlation: float

    @property
    def calibration(self) -> Array:
        """Calibration kappa = 2 mu / sigma² (paper, equation 13), (N,)."""
        return np.asarray(2.0 * self.contrast / np.where(self.spread > 0, self.spread, np.inf) ** 2)

    @property
    def accuracy(self) -> Array:
        """Accuracy mu* = kappa mu (paper, equation 15), (N,)."""
        return np.asarray(self.calibration * self.contrast)

    def spread_over(self, rows: Callable[[Array], Array]) -> MarginalFeatures:
        """Return the features with duplicates; `rows` maps values of experts without duplicates to values of all."""
        return MarginalFeatures(rows(self.bias), rows(self.contrast), rows(self.spread), self.correlation)


def marginal_features(evidence: ResolvedEvents, believed: Believed) -> MarginalFeatures:
    """Each expert's bias, contrast and spread from resolved events, shrunken towards what is believed."""
    marginals, centre = evidence.marginals, Centre.of(believed, evidence.classes - 1)
    each, variance = _marginal_means(evidence, centre)
    own, free = marginals.count[:-1].sum(axis=0), evidence.classes - 1
    # An event tells of variances K - 1 times, one that is believed as well as one that is seen.
    worth = EXPERT_WORTH + free * centre.worth
    spread = np.sqrt((worth * variance + each.square) / (worth + free * own))
    contrast = _pulled(each.contrast, spread, believed, centre.worth, own)
    return MarginalFeatures(each.bias, contrast, spread, _common(evidence, each, spread, believed))


def marginal_bias(evidence: ResolvedEvents, believed: Believed) -> Array:
    """Biases of the experts, (N, K - 1), from resolved events, shrunken towards what is believed."""
    return _marginal_means(evidence, Centre.of(believed, evidence.classes - 1))[0].bias


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


@dataclass(frozen=True, eq=False)
class Centre:
    """Prior means of the experts' biases, contrasts and variances, and how many events each belief counts as."""

    bias: Array  # (N, K - 1)
    # contrast, variance, bias_worth, worth: (N,); `worth` is that of the beliefs about contrast and variance
    contrast: Array
    variance: Array
    bias_worth: Array
    worth: Array

    @classmethod
    def of(cls, believed: Believed, d: int) -> Centre:
        """Return the prior means that `believed` implies, and how many events each counts as; `d` is K - 1."""
        parts, worth = believed.parts(believed.rho), np.minimum(believed.calibration.worth, believed.accuracy.worth)
        return cls(believed.biases(d), parts.contrast, parts.spread**2, believed.bias.worth, worth)


def shrunken_correlation(found: float, events: float, believed: Believed) -> float:
    """Correlation `found`, from a number of `events`, shrunken towards the believed correlation."""
    worth, rho = PANEL_WORTH + believed.correlation_worth, believed.rho
    return float(np.clip((worth * rho + events * found) / (worth + events), min(LOWEST, rho), HIGHEST))


def _marginal_means(evidence: ResolvedEvents, centre: Centre) -> tuple[estimates.Means, Array]:
    """Bias and contrast of each expert, shrunken towards the panel's, and prior variances of their errors, (N,)."""
    marginals, events = evidence.marginals, evidence.answered
    count, mean, square = estimates.pooled_cells(evidence)
    # The forecasts on one event count as one: they are dependent.
    share = np.where(count > 0, events[:, None] / np.where(count > 0, count, 1.0), 0.0)
    of_one = square * (events.sum() / count.sum())
    bias, contrast, variance = centre.bias.mean(axis=0), float(centre.contrast.mean()), float(centre.variance.mean())
    # What is believed of all is believed of the panel; what is believed of some is not.
    worth = PANEL_WORTH + float(centre.worth.min())
    of_means = (COMMON_BIAS_EVENTS + float(centre.bias_worth.min()), worth)
    panel = estimates.fit_means(
        count * share, mean, of_one, evidence.design, bias=bias, contrast=contrast, worth=of_means
    )
    free = evidence.classes - 1
    counted = PANEL_WORTH + free * float(centre.worth.min())
    common = float((counted * variance + panel.square[0]) / (counted + free * events.sum()))
    each = estimates.fit_means(
        marginals.count[:-1],
        marginals.mean[:-1],
        marginals.square[0],
        evidence.design,
        bias=panel.bias + (centre.bias - bias),
        contrast=panel.contrast * (centre.contrast / contrast),
        worth=(EXPERT_WORTH + centre.bias_worth, EXPERT_WORTH + centre.worth),
    )
    return each, common * (centre.variance / variance)


def _pulled(contrast: Array, spread: Array, believed: Believed, counted: Array, own: Array) -> Array:
    """Contrasts (N,), shrunken further towards what beliefs worth more than `counted` events imply."""
    found = contrast
    for belief, size in (
        (believed.calibration, believed.calibration.value * spread**2 / 2.0),
        (believed.accuracy, spread * np.sqrt(believed.accuracy.value / 2.0)),
    ):
        rest = belief.worth - counted
        found = found + np.where(rest > 0, rest / (EXPERT_WORTH + counted + own + rest), 0.0) * (size - contrast)
    return np.asarray(found)


def _common(evidence: ResolvedEvents, each: estimates.Means, spread: Array, believed: Believed) -> float:
    if len(spread) == 1:
        return 0.0
    total, pairs = evidence.shared(each.expected, spread)
    events = evidence.design.events(evidence.answered) if pairs else 0.0
    found = total / ((evidence.classes - 1) * pairs) if pairs else 0.0
    return shrunken_correlation(found, events, believed)
