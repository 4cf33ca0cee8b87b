"""The default pool: what is believed of a panel, moved by resolved events as far as they bear.

The answer is a log pool, L* = L° + Σ w_i (C_i − b_i), whose coefficients are the most probable ones given the outcomes
(model.md, section 2.7) and what is believed beforehand: of any panel, and as a decision maker says
(`opinionpool.learning.prior`, `opinionpool.learning.prior`). Extremes, differences between experts and, unless it was
said, how dependent they are, are averaged by how well each value predicts the outcomes (evidence). A prior that is
Laplace's estimate is itself believed only in proportion T / (T + `PRIOR_WORTH`) of the T resolved events, and so are
biases. With one outcome, or none, this still has one answer. It is then written as a Gaussian panel with the same
weights: spreads and correlations are those of the data held to the panel (`opinionpool.learning.shrinkage`), contrasts
follow from the weights (10). The values come from reasoning and from simulated panels of many kinds
(`benchmarks/default_pool.py`), where the result is flat around them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError, Note
from opinionpool.estimation.evidence import Evidence, evidence_of, option_rows
from opinionpool.estimation.posterior import Coefficients, Regression, WeightBeliefs, chances, harmonic_mean
from opinionpool.estimation.sampling import spread_evenly
from opinionpool.labels import UNRESOLVED
from opinionpool.learning.fitted import Uncertainty
from opinionpool.learning.prior import (
    ACCURACY,
    CALIBRATION,
    CORRELATION,
    CORRELATION_CHANCES,
    CORRELATIONS,
    LIMIT_CHANCES,
    LIMITS,
    SPREAD_CHANCES,
    SPREADS,
    Believed,
    weight_beliefs,
)
from opinionpool.learning.screening import Voices
from opinionpool.learning.shrinkage import HeldFeatures, believed_features, held_dependence, held_features
from opinionpool.logodds import metric
from opinionpool.model.contrasts import Extremes
from opinionpool.model.features import Parts
from opinionpool.model.pooling import fill_missing


def believed_limit(believed: Believed) -> float:
    """How far extremes are believed: entirely where all else was assessed."""
    if believed.limit is not None:
        return believed.limit
    return np.inf if believed.assessed else harmonic_mean(LIMITS, LIMIT_CHANCES)


def believed_doubt(believed: Believed, d: int, *, options: bool) -> Uncertainty:
    """What is open about intercept and weights, for d = K - 1; nothing where all was assessed.

    Where events have options of their own there is no intercept.
    """
    n = len(believed)
    covariance = np.zeros((d + n, d + n))
    if not believed.assessed:
        beliefs = weight_beliefs(believed, believed.rho, 1 if options else d)
        if options:
            beliefs = replace(beliefs, intercept_spread=0.0)
        for apart, chance in zip(SPREADS, SPREAD_CHANCES, strict=True):
            root = beliefs.root(apart, d)
            covariance += chance * root @ root.T
    return Uncertainty(covariance)


def nothing_learned(resolved: bool, constant: bool, believed: Believed, silent: bool) -> Note:
    """Why outcomes had no part in the answer, and what it rests on."""
    what = "no resolved event has a forecast" if resolved else "no event is resolved"
    if constant:
        what = "whoever forecast resolved events always says the same"
    if constant and silent:
        return Note("nothing-learned", f"{what}, so nothing was learned, and the answers are the prior")
    if believed.assessed:
        text = "all was assessed, so nothing is learned and the weights follow from what was said, without an interval"
        return Note("assessed", text)
    if believed.stated:
        open_ = {
            "no bias": (believed.bias.worth == 0).any(),
            f"calibration {CALIBRATION:g}": (believed.calibration.worth == 0).any(),
            f"accuracy {ACCURACY:g}, which is an AUC of 0.84": (believed.accuracy.worth == 0).any(),
            f"correlation {CORRELATION:g}": believed.correlation is None and len(believed) > 1,
        }
        assumed = "; ".join(text for text, unsaid in open_.items() if unsaid)
        text = f"{what}, so the weights follow from what is believed"
        return Note("nothing-learned", text + f" and, where nothing was said, assumed: {assumed}" * bool(assumed))
    limit = 1.0 / (1.0 + np.exp(-harmonic_mean(LIMITS, LIMIT_CHANCES)))
    text = (
        f"{what}, so nothing was learned: the experts are assumed to be unbiased, about calibrated ({CALIBRATION:g}), "
        f"equally accurate, correlated at {CORRELATION:g}, and extreme statements are believed as far as {limit:.1%} "
        "where the prior is 50%"
    )
    return Note("nothing-learned", text)


PRIOR_WORTH, BIAS_WORTH = 20.0, 20.0
# Values are chosen on this many events; more would hardly change the choice.
CHOOSING = 4096
# Of more experts than this, how sure their weights are is not kept: it would be an array of experts x experts.
MOST_DOUBTED = 1000
# A spread of weights less probable than this is left out of the average.
NEGLIGIBLE = 1e-3
# Weights this small say nothing, and carry no intercept.
LEAST_WEIGHT = 1e-6
# From so many events on, weights that point the wrong way are worth a warning; but not a sum as close to 0 as that of
# experts who know nothing, which is below 0 by chance.
CONTRARY, TURNED = 10, 0.1


@dataclass(frozen=True, eq=False)
class DefaultFit:
    """A panel in parts.

    Attributes
    ----------
    parts : Parts
    bias : ndarray, shape (N, K - 1)
    extremes : Extremes
    alone : HeldFeatures or None
        What the data say of each expert by itself, extremes believed; if nothing was learned, what was said of it.
    doubt : Uncertainty or None
        What is still open; None for more than `MOST_DOUBTED` experts.
    learned : bool
        Whether outcomes had a part in it.
    notes : tuple of Note
    """

    parts: Parts
    bias: Array
    extremes: Extremes
    alone: HeldFeatures | None
    doubt: Uncertainty | None
    learned: bool
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, eq=False)
class _Rows:
    """Resolved events with a forecast, and how far Laplace's estimate is from what is believed of the prior."""

    contrasts: Array
    reference: Array
    outcomes: npt.NDArray[np.intp]
    weight: Array
    lean: Array
    sizes: npt.NDArray[np.intp] | None = None

    @property
    def free(self) -> int:
        """K - 1; 1 where events have options of their own, as then a belief is worth binary events."""
        return self.contrasts.shape[2] if self.sizes is None else 1

    @property
    def absent(self) -> npt.NDArray[np.bool_] | None:
        """Classes that are no options of their event, (T, 1, K - 1); None if events share their classes."""
        if self.sizes is None:
            return None
        return np.asarray(np.arange(1, self.contrasts.shape[2] + 1) >= self.sizes[:, None])[:, None, :]

    def thinned(self) -> _Rows:
        """So many events that more would hardly change a choice."""
        if self.weight.sum() <= CHOOSING:
            return self
        inner = metric(self.contrasts.shape[2] + 1)
        size = np.nansum((self.contrasts @ inner) * self.contrasts, axis=(1, 2))
        kept, weight = spread_evenly(size, self.weight, CHOOSING)
        sizes = None if self.sizes is None else self.sizes[kept]
        return _Rows(self.contrasts[kept], self.reference[kept], self.outcomes[kept], weight, self.lean, sizes)

    def evidence(self, contrasts: Array) -> Evidence:
        if self.sizes is not None:
            event, expert = np.nonzero(~np.isnan(contrasts[..., 0]))
            said = contrasts[event, expert]
            return option_rows(event, expert, said, self.outcomes, self.weight, self.sizes, contrasts.shape[1])
        names = tuple(str(i) for i in range(contrasts.shape[1]))
        return evidence_of(contrasts, self.outcomes, self.weight, names)

    def regression(self, spread: Array, fill: float, extremes: Extremes, beliefs: WeightBeliefs) -> Regression:
        """Where forecasts are missing, experts are taken to be correlated by `fill`."""
        full = fill_missing(extremes.apart(self.contrasts, self.absent), spread, fill)
        if self.sizes is not None:
            # Nobody can lean to one of the options where each event has its own.
            beliefs = replace(beliefs, intercept_spread=0.0)
        return Regression(full, self.reference - self.lean, self.outcomes, self.weight, beliefs)


def default_fit(
    contrasts: Array,
    reference: Array,
    outcomes: npt.NDArray[np.intp],
    weight: Array,
    experts: tuple[str, ...],
    believed: Believed,
    *,
    estimated: bool,
    sizes: npt.NDArray[np.intp] | None = None,
) -> DefaultFit:
    """Learn from contrasts, whatever there is of them.

    Parameters
    ----------
    contrasts : ndarray, shape (T, N, K - 1)
        L − L°, NaN where missing.
    reference : ndarray, shape (T, K - 1)
        L°.
    outcomes : ndarray of int, shape (T,)
        -1 where not resolved.
    weight : ndarray, shape (T,)
        Frequencies.
    experts : tuple of str
        N names.
    believed : Believed
        Beforehand, of these experts.
    estimated : bool
        Whether the reference is Laplace's estimate from these outcomes.
    sizes : ndarray of int, shape (T,), optional
        How many options each event has, where these are its own; nobody then has a bias.

    Raises
    ------
    ArgumentError
        If a bias is believed that these classes, or options, cannot have.
    """
    if sizes is not None and believed.bias.value.any():
        raise ArgumentError("bias: each event has options of its own, and nobody can lean to one of them; leave it out")
    voices, of_all = Voices.among(contrasts, experts), believed
    heard = contrasts[:, voices.first]
    used = (outcomes != UNRESOLVED) & (weight > 0) & ~np.isnan(heard[..., 0]).all(axis=1)
    silent = len(voices.first) == 0
    believed = believed if silent else believed.among(voices.source, len(voices.first))
    if believed.assessed or not used.any() or silent:
        found = _assumed(believed, contrasts.shape[2], options=sizes is not None)
        known = outcomes != UNRESOLVED
        constant = bool((~np.isnan(contrasts[known & (weight > 0), :, 0])).any()) and not used.any()
        found = replace(found, notes=(nothing_learned(bool(known.any()), constant, believed, silent),))
    else:
        lean = np.zeros(contrasts.shape[2])
        if estimated:
            lean = reference[0] * PRIOR_WORTH / (weight[outcomes != UNRESOLVED].sum() + PRIOR_WORTH)
        own = None if sizes is None else sizes[used]
        found = _learned(_Rows(heard[used], reference[used], outcomes[used], weight[used], lean, own), believed)
    centre, newcomers = found.extremes.centre, _newcomers(voices, of_all, contrasts.shape[2])
    return DefaultFit(
        _as_believed(voices.parts(found.parts), voices, of_all),
        voices.rows(found.bias) + newcomers,
        found.extremes if centre is None else replace(found.extremes, centre=voices.rows(centre) + newcomers),
        None if found.alone is None else _as_believed(found.alone.spread_over(voices.rows), voices, of_all),
        _doubt_of_all(found.doubt, voices, contrasts),
        found.learned,
        voices.notes + found.notes,
    )


Features = TypeVar("Features", Parts, HeldFeatures)


def _as_believed(features: Features, voices: Voices, believed: Believed) -> Features:
    """The same, in which experts who have not said anything yet differ from the others as they are believed to."""
    centre = believed.parts(believed.rho)
    return replace(
        features,
        contrast=voices.as_believed(features.contrast, centre.contrast),
        spread=voices.as_believed(features.spread, centre.spread),
    )


def _newcomers(voices: Voices, believed: Believed, d: int) -> Array:
    """How far their biases are believed to be from those of the others, (N, K - 1); 0 for others."""
    bias = believed.biases(d)
    return np.where(voices.new[:, None], bias - bias[voices.first].sum(axis=0) / max(len(voices.first), 1), 0.0)


def _assumed(believed: Believed, d: int, *, options: bool) -> DefaultFit:
    """What is believed, for d = K - 1."""
    alone = believed_features(believed, d) if believed.stated else None
    bias = believed.biases(d)
    return DefaultFit(
        believed.parts(believed.rho),
        bias,
        Extremes(believed_limit(believed), bias if bias.any() else None),
        alone,
        None if len(believed) > MOST_DOUBTED else believed_doubt(believed, d, options=options),
        learned=False,
    )


def _doubt_of_all(doubt: Uncertainty | None, voices: Voices, contrasts: Array) -> Uncertainty | None:
    """What is open about all experts; nothing where nobody has a weight."""
    n, d = contrasts.shape[1:]
    if doubt is None or n > MOST_DOUBTED:
        return None
    return doubt.spread_over(voices.source) if len(voices.first) else Uncertainty(np.zeros((d + n, d + n)))


def _learned(rows: _Rows, believed: Believed) -> DefaultFit:
    few, n = rows.thinned(), rows.contrasts.shape[1]
    # Biases too are believed in so far as there are events behind them.
    events = float(rows.weight.sum())
    share = events / (events + BIAS_WORTH + believed.bias.worth)[:, None]
    plain, bias = np.tile(-rows.lean, (n, 1)), believed.biases(rows.contrasts.shape[2])
    limits, limit_chances = (LIMITS, LIMIT_CHANCES) if believed.limit is None else ((believed.limit,), (1.0,))
    typical = Extremes(harmonic_mean(limits, limit_chances), plain + bias).believed(rows.contrasts)
    centre = plain + bias
    if rows.sizes is None:
        centre = centre + share * (held_features(rows.evidence(typical - plain), believed).bias - bias)
    spread = believed.parts(believed.rho).spread
    rho, undecided = _correlation(few, spread, Extremes(limits[len(limits) // 2], centre), believed)
    beliefs, found = weight_beliefs(believed, rho, rows.free), list[Coefficients]()
    scores = []
    for limit in limits:
        regression = few.regression(spread, believed.rho, Extremes(limit, centre), beliefs)
        found = _over_spreads(regression, found)
        scores.append(_averaged(found))
    extremes = Extremes(harmonic_mean(limits, chances(scores, limit_chances)), centre)
    evidence = rows.evidence(extremes.believed(rows.contrasts, rows.absent))
    held = held_features(evidence, believed)
    values, doubt = _coefficients(rows, few, held, extremes, beliefs, found)
    if doubt is not None:
        doubt = Uncertainty(doubt.covariance + undecided.T @ undecided)
    intercept, weights = values[: rows.contrasts.shape[2]], values[rows.contrasts.shape[2] :]
    dependence = held_dependence(evidence, held, believed)
    contrast = held.spread * dependence.times(held.spread * weights) / 2.0
    # L* = L° − lean + intercept + Σ w_i u_i: what does not depend on the forecasts becomes bias, along the weights.
    size = float(weights @ weights)
    along = weights / size if size > LEAST_WEIGHT**2 else np.zeros(n)
    bias = centre + along[:, None] * (rows.lean - intercept)
    notes = (_contrary(),) if events >= CONTRARY and weights.sum() < -TURNED else ()
    alone = held_features(rows.evidence(rows.contrasts), believed)
    return DefaultFit(Parts(contrast, held.spread, dependence), bias, extremes, alone, doubt, True, notes)


def _correlation(rows: _Rows, spread: Array, extremes: Extremes, believed: Believed) -> tuple[float, Array]:
    """About how dependent the experts turn out to be, unless that was said.

    And how far intercept and weights depend on it: rows (R, K - 1 + N) whose outer product is their covariance.
    """
    if believed.correlation is not None:
        return believed.rho, np.zeros((0, rows.contrasts.shape[2] + rows.contrasts.shape[1]))
    found = [
        rows.regression(spread, CORRELATION, extremes, weight_beliefs(believed, rho, rows.free)).fit(0.0)
        for rho in CORRELATIONS
    ]
    chance = chances([each.evidence for each in found], CORRELATION_CHANCES)
    values = np.array([each.values for each in found])
    undecided = np.sqrt(chance)[:, None] * (values - chance @ values)
    # The mean of 1 / Σ w, which leans to small weights, is that of the correlations; squares lean to the likeliest one,
    # which is what holds without outcomes, so that a first event moves little.
    return float(np.square(chance) @ np.array(CORRELATIONS) / (chance @ chance)), undecided


def _coefficients(
    rows: _Rows,
    few: _Rows,
    held: HeldFeatures,
    extremes: Extremes,
    beliefs: WeightBeliefs,
    starts: list[Coefficients],
) -> tuple[Array, Uncertainty | None]:
    """Intercept and weights, (K - 1 + N,), averaged over how far weights differ; and what is open about them."""
    regression = few.regression(held.spread, held.correlation, extremes, beliefs)
    found = _over_spreads(regression, starts)
    chance = chances([each.evidence for each in found], SPREAD_CHANCES[: len(found)])
    kept = np.flatnonzero(chance > NEGLIGIBLE)
    if few is not rows:
        regression = rows.regression(held.spread, held.correlation, extremes, beliefs)
        found = [regression.fit(SPREADS[i], each) if i in kept else each for i, each in enumerate(found)]
    share = chance[kept] / chance[kept].sum()
    values = np.array([found[i].values for i in kept])
    mean = share @ values
    if rows.contrasts.shape[1] > MOST_DOUBTED:
        return mean, None
    covariance = np.einsum("s,si,sj->ij", share, values - mean, values - mean)
    for s, i in zip(share, kept, strict=True):
        covariance += s * found[i].covariance()
    return mean, Uncertainty(covariance)


def _over_spreads(regression: Regression, starts: list[Coefficients]) -> list[Coefficients]:
    """A fit for each spread of the weights, begun where a similar one ended."""
    found: list[Coefficients] = []
    for i, apart in enumerate(SPREADS if regression.contrasts.shape[1] > 1 else SPREADS[:1]):
        before = starts[i] if starts else found[-1] if found else None
        found.append(regression.fit(apart, before))
    return found


def _averaged(found: list[Coefficients]) -> float:
    """Log evidence, averaged over how far weights differ."""
    terms = [each.evidence + np.log(c) for each, c in zip(found, SPREAD_CHANCES, strict=False)]
    return float(np.logaddexp.reduce(terms))


def _contrary() -> Note:
    text = (
        "the forecasts point away from what happened, and the pool has turned them round: "
        "are they probabilities of the other outcome?"
    )
    return Note("contrary", text, serious=True)
