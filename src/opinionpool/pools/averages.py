"""Means of the forecasts present: average, linear pool, trimmed mean, medians (model.md, section 6)."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import number
from opinionpool.arrays import Array, Mask
from opinionpool.errors import Note
from opinionpool.model.contrasts import Contrasts
from opinionpool.pools.rule import (
    LEARNED_WEIGHTS,
    Option,
    Parameters,
    Pool,
    ProbabilityPool,
    check_shares,
    weighted_sums,
)
from opinionpool.pools.training import TrainingEvents, Weights

TRIM = 0.1
# How far from a half the weights below a median may be by rounding.
ROUNDING = 1e-12


class Average(ProbabilityPool):
    """Simple average (AvgOps in the paper): mean of the probabilities of the experts present."""

    title = "Average"


class Linear(ProbabilityPool):
    """Linear pool (paper, equation 1): weighted mean of the probabilities of the experts present, weights >= 0.

    Weights are rescaled to sum to 1 over the experts present, and equal if the weights of all experts present are 0.
    """

    title = "Linear pool"
    options = MappingProxyType({"weights": LEARNED_WEIGHTS})
    learns = weighs = True
    fixed_by = "weights"

    def fit(self, sample: TrainingEvents, weights: Weights | None) -> Parameters:
        """Return weights of highest likelihood, or `weights` if given, as shares that sum to 1."""
        n, equally = len(sample.experts), "the experts count equally"
        if weights is not None:
            return {"weights": check_shares(sample.given_weights(weights))}
        if sample.nothing(equally) or not (used := sample.informative(equally)).any():
            return {"weights": np.full(n, 1.0 / n)}
        from opinionpool.estimation.simplex import simplex_weights

        happened = sample.collect(lambda contrast, y: contrast.probabilities[np.arange(len(y)), :, y], n)
        fit = simplex_weights(happened[:, used], sample.weight, sample.present[:, used])
        # Who never answered counts as much as the others on average.
        found = np.where(sample.constant, 0.0, 1.0)
        found[used] = fit.weights * used.sum()
        sample.note_constant("and got weight 0")
        sample.note_unused(f"got weight 1/{int((~sample.constant).sum())}, as nothing speaks for or against")
        if not fit.converged:
            text = f"the weights of the linear pool may fall short of the best log score by {fit.gap:.2g} an event"
            sample.notes.append(Note("not-converged", text, serious=True))
        return {"weights": found / found.sum()}


class Trimmed(Pool):
    """Trimmed mean of probabilities: the mean without a fraction `trim` at either end; for K > 2 rescaled to sum to 1.

    Of n forecasts, ``trim * n`` are cut off at each end; a cut fraction lowers a forecast's weight. This is the mean of
    the quantile function between `trim` and 1 − `trim`. Jose & Winkler (2008), "Simple robust averages of forecasts",
    Int. J. Forecasting 24, find moderate trimming of 10-30% best; the default cuts off 20% in all.
    """

    title = "Trimmed mean"
    options = MappingProxyType({"trim": Option(TRIM, "fraction of the forecasts cut off at each end, up to 0.5")})
    uses_prior = False

    def check(self, classes: int, trim: float = TRIM) -> Parameters:  # noqa: ARG002
        """Return the pool's only parameter, the fraction `trim` to cut off at each end, after checking it."""
        return {"trim": number(trim, "trim, the fraction cut off at each end,", 0, 0.5)}

    def combine(self, contrast: Contrasts, trim: float) -> Array:
        """Return log-ratios of the trimmed means, (T, K - 1)."""
        p = np.where(contrast.present[..., None], contrast.probabilities, np.inf)
        p.sort(axis=1)
        p = p[:, : contrast.count.max(initial=0)]
        means = weighted_sums(_rank_shares(contrast.count, trim), np.where(np.isinf(p), 0.0, p))
        return logodds.prior_log_ratios(means)


class Median(Trimmed):
    """Median of the probabilities; for an even number, mean of the middle two; for K > 2 rescaled to sum to 1."""

    title = "Median"
    options = MappingProxyType({})

    def check(self, classes: int, trim: float = 0.5) -> Parameters:  # noqa: ARG002
        """Return the pool's only parameter, `trim` = 0.5; with this fraction the trimmed mean is the median."""
        return {"trim": 0.5}


class RecentMedian(Pool):
    """Median weighted by recency: the n-th oldest of N forecasts has weight e^(√n − √N), as on Metaculus.

    A forecast of unknown age is treated as the newest. Forecasts of one time get the mean of their weights. Where half
    of the weight lies on either side, the median is half-way between two forecasts. If K > 2, the classes' medians are
    rescaled to a sum of 1.
    """

    title = "Recency-weighted median"
    uses_prior = False
    timed = True

    def combine(self, contrast: Contrasts, ages: Array | None = None) -> Array:
        """Return log-ratios of the weighted medians, (T, K - 1); `ages` (T, N) are 0 if None."""
        age = np.zeros(contrast.present.shape) if ages is None else np.where(np.isnan(ages), 0.0, ages)
        weight = _recency_weights(age, contrast.present)
        return logodds.prior_log_ratios(_weighted_medians(contrast.probabilities, weight))


def _recency_weights(age: Array, present: Mask) -> Array:
    """Return the weight e^(√n − √N) of the n-th oldest of N forecasts, (T, N), 0 if absent; ties get their mean."""
    key = np.where(present, -age, np.inf)
    order = np.argsort(key, axis=1, kind="stable")
    oldest = np.take_along_axis(key, order, axis=1)
    count = present.sum(axis=1, keepdims=True)
    rank = np.arange(1, age.shape[1] + 1)
    weight = np.where(rank <= count, np.exp(np.sqrt(rank) - np.sqrt(count)), 0.0)
    fresh = np.ones(age.shape, dtype=bool)
    fresh[:, 1:] = oldest[:, 1:] != oldest[:, :-1]
    group = np.cumsum(fresh.ravel()) - 1
    mean = (np.bincount(group, weight.ravel()) / np.bincount(group))[group].reshape(age.shape)
    found = np.empty(age.shape)
    np.put_along_axis(found, order, mean, axis=1)
    return found


def _weighted_medians(values: Array, weight: Array) -> Array:
    """Return weighted medians over experts of `values` (T, N, K), rescaled to a sum of 1 over the K classes, (T, K)."""
    order = np.argsort(values, axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=1)
    share = np.cumsum(np.take_along_axis(np.broadcast_to(weight[..., None], values.shape), order, axis=1), axis=1)
    share = share / share[:, -1:]
    low, high = ((share >= half).argmax(axis=1)[:, None] for half in (0.5 - ROUNDING, 0.5 + ROUNDING))
    middle = (np.take_along_axis(ordered, low, axis=1) + np.take_along_axis(ordered, high, axis=1))[:, 0] / 2
    return np.asarray(middle / middle.sum(axis=1, keepdims=True))


def _rank_shares(count: npt.NDArray[np.intp], trim: float) -> Array:
    """Return the weights of sorted forecasts in a trimmed mean of `count` (T,) forecasts, (T, most forecasts)."""
    n = count[:, None]
    # Beyond half of the others, only the middle one or two are left, and they count equally.
    cut = np.minimum(trim * n, np.maximum(n - 1, 0) // 2)
    rank = np.arange(count.max(initial=0))
    kept: Array = np.clip(np.minimum(rank + 1, n - cut) - np.maximum(rank, cut), 0.0, None)
    shares: Array = kept / np.maximum(n - 2.0 * cut, 1.0)
    return shares
