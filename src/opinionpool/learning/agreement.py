"""Accuracy of experts by their agreement with each other, before any event is resolved.

If experts agree mostly because they are right, an expert who agrees more with the others is more accurate (Romney,
Weller & Batchelder, *American Anthropologist* 88, 1986; a model of one factor). This holds for open events, too. The
correlation r_i of an expert's contrasts with the mean contrasts of the others is shrunken towards the panel's, which
counts as `AGREEMENT_WORTH` events; it implies an accuracy m_i ∝ (r²/(1 − r²))^`GUIDE`, r² being the posterior mean of
r_i². Of the exponent the share (N − 2)/(N + 4) is used, as two experts agree equally with each other.

Another guide is sharpness: calibrated experts with more extreme forecasts are more accurate. And nearly perfect
agreement comes from shared errors, unless all experts are nearly certain of the truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.learning.cells import Cells, inner
from opinionpool.learning.constants import AGREEMENT_WORTH, CORRELATIONS, FURTHEST, GUIDE, PANEL_WORTH
from opinionpool.logodds import inner_products, whitened

# Agreement on fewer events says nothing.
LEAST_EVENTS = 3
# No correlation is taken to be higher.
HIGHEST = 0.97
# A standard deviation below this is none.
STILL = 1e-9


@dataclass(frozen=True, eq=False)
class Agreement:
    """How much each of N experts agrees with the others, and the relative accuracy that this implies."""

    correlation: Array  # (N,); of an expert with the mean of the others, shrunken towards the panel's
    accuracy: Array  # (N,); relative, with a geometric mean of 1
    sharpness: Array  # (N,); relative accuracy of calibrated experts with forecasts as extreme, geometric mean 1
    events: float  # weight of the events with forecasts by several experts
    least: float  # lower bound of the correlation of errors

    @classmethod
    def among(
        cls, event: Index, expert: Index, contrasts: Array, weight: Array, experts: int, *, options: bool = False
    ) -> Agreement:
        """Agreement by the contrasts (M, K - 1) of M forecasts; `options`: whether events have options of their own."""
        sums = _Sums.of(event, expert, contrasts, weight, experts, options=options)
        count = np.maximum(sums.count, 1.0)
        spread = np.sqrt(np.maximum(sums.own / count, 0.0))
        others = np.sqrt(np.maximum(sums.others / count, 0.0))
        moves = (spread > STILL) & (others > STILL)
        together = np.divide(sums.product, count * spread * others, out=np.zeros_like(spread), where=moves)
        seen = np.where(sums.count >= LEAST_EVENTS, sums.count, 0.0)
        correlation = _shrunken(together, seen, AGREEMENT_WORTH)
        n = len(spread)
        believed = max(n - 2.0, 0.0) / (n + 4.0)
        # Its mean square, which is never 0: noise does not distinguish experts who agree with nobody.
        squared = np.clip(correlation, 0.0, HIGHEST) ** 2 + 1.0 / (seen + AGREEMENT_WORTH)
        level = np.log(squared / (1.0 + 1.0 / AGREEMENT_WORTH - squared))
        accuracy = np.exp(GUIDE * believed * (level - level.mean()))
        square = _shrunken(spread**2, seen, PANEL_WORTH)
        sharpness = _calibrated_accuracy(square, sums.free)
        sharpness /= np.exp(np.log(sharpness).mean())
        return cls(correlation, accuracy, sharpness, sums.events, _least_correlation(sums, spread * (seen > 0), square))

    @property
    def tells(self) -> bool:
        """True if agreement changes the prior: implied accuracies differ, or errors correlate more than is believed."""
        differ = max(np.ptp(self.accuracy), np.ptp(self.sharpness)) > STILL
        return bool(differ or self.least > CORRELATIONS[0])


def _calibrated_accuracy(square: npt.ArrayLike, d: int) -> Array:
    """Accuracies μ* at which calibrated log-ratios less the prior's have mean square `square`; d = K - 1."""
    half = (d + 1.0) / 2.0
    return np.asarray(half * (np.sqrt(1.0 + np.maximum(square, STILL) / (d * half)) - 1.0))


def _least_correlation(sums: _Sums, spread: Array, square: Array) -> float:
    """Lower bound of the correlation of experts' errors, (r − m)/(1 − m); r is the correlation of their contrasts.

    The share m = μ*/(μ* + K) of the contrasts' variance is due to the outcome if contrasts are calibrated and have mean
    squares `square`; the accuracy μ* is taken to be at least 2, as experts who agree little may just know little. The
    mean correlation r is by `sums` and by the standard deviations `spread` of contrasts.
    """
    size = float(spread * (spread.sum() - spread) @ sums.count) / max(len(spread) - 1, 1)
    found = float(sums.product @ (spread > 0)) / size if size > 0 else 0.0
    # Contrasts are looked at up to `FURTHEST`: near that, any accuracy may be behind them.
    reached = float(square.mean()) / (sums.free * FURTHEST**2)
    accuracy = max(2.0, float(_calibrated_accuracy(square.mean() / max(1.0 - reached, STILL), sums.free)))
    happened = accuracy / (accuracy + 1.0 + sums.free)
    seen = sums.events / (sums.events + PANEL_WORTH) * (1.0 - min(reached, 1.0) ** 2)
    return float(np.clip(seen * (found - happened) / (1.0 - happened), 0.0, HIGHEST))


def _shrunken(values: Array, seen: Array, worth: float) -> Array:
    """Shrink `values` (N,) towards their mean, which counts as `worth` events; values are from `seen` (N,) events."""
    total = seen.sum()
    mean = float(values @ seen / total) if total > 0 else 1.0
    return np.asarray((seen * values + worth * mean) / (seen + worth))


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over events to correlate each expert's contrasts with the mean contrasts of the other experts."""

    count: Array  # (N,); weight of the events
    # own, others, product: (N,); squares of the expert's contrasts, of the others' mean contrasts, and products of both
    own: Array
    others: Array
    product: Array
    events: float  # weight of the events with several forecasts
    free: int  # K - 1

    @classmethod
    def of(cls, event: Index, expert: Index, contrasts: Array, weight: Array, experts: int, *, options: bool) -> _Sums:
        number = np.bincount(event, minlength=len(weight))
        several = number[event] > 1
        if not several.all():
            event, expert, contrasts = event[several], expert[several], contrasts[several]
        own = whitened(limited(contrasts))
        cells = Cells(event, expert, own, own, weight[event], len(weight), experts)
        others = np.stack([cells.by_event(column)[event] - column for column in own.T], axis=-1)
        others /= (number[event] - 1.0)[:, None]
        means = np.array([cells.by_expert(each) for each in (own, others)])
        squares = np.array([cells.by_expert(inner(a, b)) for a, b in ((own, own), (others, others), (own, others))])
        count, events = cells.by_expert(np.ones(len(own))), float(weight[number > 1].sum())
        centres = [
            (means[a] * means[b] / np.maximum(count, 1.0)[:, None]).sum(axis=1) for a, b in ((0, 0), (1, 1), (0, 1))
        ]
        # Where events have options of their own, positions have no meaning, and neither has a mean by position.
        own_square, others_square, product = squares - (0.0 if options else np.array(centres))
        return cls(count, own_square, others_square, product, events, own.shape[1])


def limited(contrasts: Array) -> Array:
    """Log-ratios less the prior's, `contrasts` (..., K - 1), scaled down to the length `FURTHEST` if it is exceeded."""
    if contrasts.shape[-1] == 1:
        return np.clip(contrasts, -FURTHEST, FURTHEST)
    length = np.sqrt(inner_products(contrasts, contrasts) / contrasts.shape[-1])
    return np.asarray(contrasts * np.minimum(1.0, FURTHEST / np.maximum(length, FURTHEST))[..., None])
