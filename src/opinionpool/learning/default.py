"""The default pool: what is believed of a panel, moved by resolved events as far as they bear.

The answer is a log pool, L* = L° + Σ w_i (C_i − b_i), whose coefficients are the most probable ones given the outcomes
(model.md, section 2.7) and what is believed beforehand, of any panel or by a decision maker
(`opinionpool.learning.prior`), but that no single outcome moves them far (`opinionpool.estimation.anchor`). Extremes,
differences between experts and, unless it is believed, how dependent they are, are averaged by how well each value
predicts the outcomes (evidence). A prior that is Laplace's estimate is itself believed only in proportion T / (T +
`PRIOR_WORTH`) of the T resolved events, and biases T / (T + `BIAS_WORTH`). With one outcome, or none, this still has
one answer. It is then written as a Gaussian panel with the same weights: spreads and correlations are those of the data
shrunken towards the panel (`opinionpool.learning.shrinkage`), contrasts follow from the weights (10). The values come
from reasoning and from simulated panels of many kinds (`benchmarks/default_pool.py`), where the result is flat around
them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Mask
from opinionpool.errors import ArgumentError
from opinionpool.estimation.coefficients import Coefficients, WeightBeliefs, left_open
from opinionpool.estimation.dense_evidence import evidence_of
from opinionpool.estimation.evidence import Evidence, option_rows
from opinionpool.estimation.posterior import harmonic_mean, posterior_probabilities
from opinionpool.estimation.regression import Regression, fit_each
from opinionpool.estimation.sampling import spread_evenly
from opinionpool.learning.agreement import Agreement
from opinionpool.learning.candidates import MINOR, Candidates, unlike_probability
from opinionpool.learning.duplicates import Duplicates
from opinionpool.learning.leakage import contrary_notes
from opinionpool.learning.prior import (
    CORRELATION,
    CORRELATIONS,
    LIMIT_PROBABILITIES,
    LIMITS,
    SLOPE,
    UNLIKE,
    Believed,
)
from opinionpool.learning.problem import DenseContrasts
from opinionpool.learning.shrinkage import (
    MarginalFeatures,
    common_dependence,
    marginal_dependence,
    marginal_features,
)
from opinionpool.learning.topic_fit import Common, TopicEvents, learn_topics, together, weights_looked_at
from opinionpool.learning.topics import TopicEffects
from opinionpool.learning.uncertainty import Uncertainty
from opinionpool.learning.unlearned import MOST_UNCERTAIN, DefaultFit, agreement_note, assumed, nothing_learned
from opinionpool.learning.weight_beliefs import weight_beliefs
from opinionpool.logodds import whitened
from opinionpool.model.contrasts import Extremes
from opinionpool.model.correlation import CommonCorrelation, Dependence
from opinionpool.model.features import Parts
from opinionpool.model.pooling import fill_missing

PRIOR_WORTH, BIAS_WORTH = 20.0, 60.0
# No log pool is quite right, so T outcomes count (T + `COUNTED`) / (T + `ALL`) times: too much would be learned from
# the first ones, as where they happen to be easy.
COUNTED, ALL = 185.0, 300.0
# How dependent experts are is learned at this rate, as no alternative is quite right and one outcome should not decide
# between them (Grünwald and van Ommen, Bayesian Analysis 12, 2017); how far extremes are believed, of which few
# outcomes tell, once there are many more events than these.
RATE, EXTREMES_EVENTS = 0.5, 40.0
# How dependent experts are says what sum of the weights is believed, which the same outcomes then move again: for the
# first they count as no more events than these, and from many more than the second number on as all that there are.
DEPENDENCE_EVENTS, DEPENDENCE_LEARNED = 20.0, 2000.0
# That much of the variance that is left by dependence is open of the sum of the weights: most of that variance is owed
# to independent experts, who are rare.
UNDECIDED = 0.25
# Values are chosen on this many events, and no more forecasts than these; more would hardly change the choice.
CHOOSING, CHOOSING_FORECASTS = 4096, 1 << 20
# Weights this small say nothing, and carry no intercept.
LEAST_WEIGHT = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class _Rows(DenseContrasts):
    """Resolved events with a forecast, and how far Laplace's estimate is from what is believed of the prior."""

    base_intercept: Array
    expected: Array | None = None  # (N,); the weights that are believed

    def beliefs(self, believed: Believed, rho: float, slope: float = SLOPE) -> WeightBeliefs:
        """Beliefs about weights of experts as dependent as that."""
        return weight_beliefs(believed, rho, self.free, slope, options=self.absent is not None)

    def thinned(self) -> _Rows:
        """So many events that more would hardly change a choice."""
        count = min(CHOOSING, max(1, CHOOSING_FORECASTS // self.contrasts.shape[1]))
        if self.weight.sum() <= count:
            return self
        moved = whitened(np.where(np.isnan(self.contrasts), 0.0, self.contrasts))
        size = np.einsum("tnd,tnd->t", moved, moved)
        kept, weight = spread_evenly(size, self.weight, count)
        return replace(
            self,
            contrasts=self.contrasts[kept],
            reference=self.reference[kept],
            outcomes=self.outcomes[kept],
            weight=weight,
            absent=None if self.absent is None else self.absent[kept],
            topics=None if self.topics is None else self.topics[kept],
        )

    def evidence(self, contrasts: Array) -> Evidence:
        sizes = self.sizes
        if sizes is not None:
            event, expert = np.nonzero(~np.isnan(contrasts[..., 0]))
            forecast = contrasts[event, expert]
            return option_rows(event, expert, forecast, self.outcomes, self.weight, sizes, contrasts.shape[1])
        names = tuple(str(i) for i in range(contrasts.shape[1]))
        return evidence_of(contrasts, self.outcomes, self.weight, names)

    def regression(self, spread: Array, fill: Dependence, extremes: Extremes, beliefs: WeightBeliefs) -> Regression:
        """Where forecasts are missing, experts are taken to be correlated as `fill` says."""
        full = fill_missing(extremes.deviation(self.contrasts, each_expert(self.absent)), spread, fill)
        offset, events = self.reference - self.base_intercept, float(self.weight.sum())
        counted = (events + COUNTED) / (events + ALL)
        return Regression(full, offset, self.outcomes, counted * self.weight, beliefs, self.expected)


def each_expert(absent: Mask | None) -> Mask | None:
    """The same for every expert, (T, 1, K - 1)."""
    return None if absent is None else absent[:, None, :]


def default_fit(data: DenseContrasts, believed: Believed, *, answers_only: bool = False) -> DefaultFit:
    """Learn from contrasts, whatever there is of them.

    Parameters
    ----------
    data : DenseContrasts
        Where events have options of their own, nobody has a bias.
    believed : Believed
        Beforehand, of these experts.
    answers_only : bool, default False
        Whether neither what is still open nor what each expert is like by itself is found out.

    Raises
    ------
    ArgumentError
        If a bias is believed that these classes, or options, cannot have.
    """
    contrasts, experts, options = data.contrasts, data.experts, data.absent is not None
    if options and believed.bias.value.any():
        raise ArgumentError(
            "bias: each event has options of its own, and nobody can be biased towards one of them; leave it out"
        )
    duplicates, of_all = Duplicates.among(contrasts, experts), believed
    distinct = contrasts if len(duplicates.first) == contrasts.shape[1] else contrasts[:, duplicates.first]
    used = data.resolved & (data.weight > 0) & ~np.isnan(distinct[..., 0]).all(axis=1)
    nobody = len(duplicates.first) == 0
    believed = believed if nobody else believed.among(duplicates.source, len(duplicates.first))
    if len(duplicates.first) > 2:
        believed = believed.agreeing(Agreement.among(distinct, data.weight, each_expert(data.absent)))
    if believed.assessed or not used.any() or nobody:
        found = assumed(believed, data.free, options=options)
        known = data.resolved
        constant = bool((~np.isnan(contrasts[known & (data.weight > 0), :, 0])).any()) and not used.any()
        notes = [nothing_learned(bool(known.any()), constant, believed, nobody)]
        if believed.agreement is not None:
            notes.append(agreement_note(believed.agreement, [experts[i] for i in duplicates.first.tolist()]))
        found = replace(found, notes=tuple(notes))
    else:
        found = _learned(_rows(data, distinct, used), believed, answers_only=answers_only)
    centre, newcomers = found.extremes.centre, _newcomers(duplicates, of_all, contrasts.shape[2])
    return DefaultFit(
        _as_believed(duplicates.parts(found.parts), duplicates, of_all),
        duplicates.rows(found.bias) + newcomers,
        found.extremes if centre is None else replace(found.extremes, centre=duplicates.rows(centre) + newcomers),
        None
        if found.marginal is None
        else _as_believed(found.marginal.spread_over(duplicates.rows), duplicates, of_all),
        _uncertainty_of_all(found.uncertainty, duplicates, contrasts),
        found.learned,
        duplicates.notes + found.notes,
        found.topics and found.topics.spread_over(duplicates.shares),
    )


Features = TypeVar("Features", Parts, MarginalFeatures)


def _as_believed(features: Features, duplicates: Duplicates, believed: Believed) -> Features:
    """The same, in which experts without any forecast yet differ from the others as they are believed to."""
    centre = believed.parts(believed.rho)
    return replace(
        features,
        contrast=duplicates.as_believed(features.contrast, centre.contrast),
        spread=duplicates.as_believed(features.spread, centre.spread),
    )


def _newcomers(duplicates: Duplicates, believed: Believed, d: int) -> Array:
    """How far their biases are believed to be from those of the others, (N, K - 1); 0 for others."""
    bias = believed.biases(d)
    return np.where(
        duplicates.new[:, None], bias - bias[duplicates.first].sum(axis=0) / max(len(duplicates.first), 1), 0.0
    )


def _rows(data: DenseContrasts, distinct: Array, used: Mask) -> _Rows:
    """What the distinct experts forecast of the events that are learned from."""
    base_intercept = np.zeros(data.free)
    if data.estimated:
        base_intercept = data.reference[0] * PRIOR_WORTH / (data.weight[data.resolved].sum() + PRIOR_WORTH)
    return _Rows(
        distinct if used.all() else distinct[used],
        data.reference[used],
        data.outcomes[used],
        data.weight[used],
        data.experts,
        None if data.absent is None else data.absent[used],
        topics=_topics(data, used),
        base_intercept=base_intercept,
    )


def _topics(data: DenseContrasts, used: Mask) -> npt.NDArray[np.str_] | None:
    """Topics of the events that are learned from, where they are learned together with the weights."""
    if data.topics is None or data.absent is not None or len(data.experts) > MOST_UNCERTAIN:
        return None
    found = data.topics[used]
    return found if together(found, len(data.experts), data.free) else None


def _uncertainty_of_all(
    uncertainty: Uncertainty | None, duplicates: Duplicates, contrasts: Array
) -> Uncertainty | None:
    """What is open about all experts; nothing where nobody has a weight."""
    n, d = contrasts.shape[1:]
    if uncertainty is None or n > MOST_UNCERTAIN:
        return None
    return (
        uncertainty.spread_over(duplicates.source) if len(duplicates.first) else Uncertainty(np.zeros((d + n, d + n)))
    )


def _learned(rows: _Rows, believed: Believed, *, answers_only: bool) -> DefaultFit:
    rows = replace(rows, expected=rows.beliefs(believed, believed.rho).mean)
    few, n = rows.thinned(), rows.contrasts.shape[1]
    # Biases too are believed in so far as there are events behind them.
    events = float(rows.weight.sum())
    share = events / (events + BIAS_WORTH + believed.bias.worth)[:, None]
    plain, bias = np.tile(-rows.base_intercept, (n, 1)), believed.biases(rows.contrasts.shape[2])
    limits, limit_probabilities = (
        (LIMITS, LIMIT_PROBABILITIES) if believed.limit is None else ((believed.limit,), (1.0,))
    )
    centre = plain + bias
    if rows.absent is None:
        typical = Extremes(harmonic_mean(limits, limit_probabilities), centre).deviation(rows.contrasts)
        typical += bias
        centre = centre + share * (marginal_features(rows.evidence(typical), believed).bias - bias)
        del typical
    spread = believed.parts(believed.rho).spread
    # To choose by, it is enough to fill in by one correlation.
    fill = CommonCorrelation(n, believed.rho if n > 1 else 0.0)
    middle = len(limits) // 2
    beliefs, likeliest, alternatives = _alternatives(few, spread, fill, Extremes(limits[middle], centre), believed)
    candidates = Candidates.of(beliefs, events)
    found = candidates.fits(few.regression(spread, fill, Extremes(limits[middle], centre), beliefs[0]), [likeliest])
    equal, (some, fitted) = found[0], candidates.kept(found, MINOR)
    candidates, found = candidates.kept(found)
    regressions = [few.regression(spread, fill, Extremes(limit, centre), beliefs[0]) for limit in limits]
    scores = [some.score(fitted if i == middle else some.fits(each, fitted)) for i, each in enumerate(regressions)]
    probability = posterior_probabilities(scores, limit_probabilities, RATE * events / (EXTREMES_EVENTS + events))
    extremes = Extremes(harmonic_mean(limits, probability), centre)
    evidence = rows.evidence(extremes.believed(rows.contrasts, each_expert(rows.absent)))
    shrunken = marginal_features(evidence, believed)
    values, uncertainty, topics = _coefficients(
        rows, few, shrunken, believed, extremes, candidates, found, answers_only=answers_only
    )
    if uncertainty is not None:
        open_ = left_open(equal, *alternatives)
        uncertainty = Uncertainty(uncertainty.covariance + open_.T @ open_)
    intercept, weights = values[: rows.contrasts.shape[2]], values[rows.contrasts.shape[2] :]
    dependence = marginal_dependence(evidence, shrunken, believed)
    contrast = shrunken.spread * dependence.times(shrunken.spread * weights) / 2.0
    # L* = L° − base intercept + intercept + Σ w_i u_i: what no forecast changes becomes bias.
    bias = centre + _shares(weights)[:, None] * (rows.base_intercept - intercept)
    notes = contrary_notes(events, float(weights.sum()))
    marginal = None if answers_only else marginal_features(rows.evidence(rows.contrasts), believed)
    parts = Parts(contrast, shrunken.spread, dependence)
    return DefaultFit(parts, bias, extremes, marginal, uncertainty, True, notes, topics)


def _shares(weights: Array) -> Array:
    """Biases (N,) of all that move the answer by 1 together.

    They are much the same for everybody, as sums of weights are for those who are present, whoever that is; where
    weights add up to nothing, they go along these.
    """
    total, size = float(weights.sum()), float(weights @ weights)
    if size <= LEAST_WEIGHT**2:
        return np.zeros(len(weights))
    return np.asarray((total + weights) / (total**2 + size))


class _Alternatives(NamedTuple):
    """Coefficients if weights are equal, for some beliefs, and how probable each is."""

    found: list[Coefficients]
    probability: Array


def _alternatives(
    rows: _Rows, spread: Array, fill: Dependence, extremes: Extremes, believed: Believed
) -> tuple[tuple[WeightBeliefs, WeightBeliefs], Coefficients, _Alternatives]:
    """Beliefs about weights of experts as dependent as they turn out to be; the likeliest; and what may be instead.

    The former are two, see `Candidates`. Intervals allow for each correlation, and for a sum of weights that is nothing
    like what is believed while weights are equal. There, nothing keeps single outcomes from moving answers, so that
    intervals reach to where they would lead.
    """
    correlations, prior = believed.correlations
    beliefs = [rows.beliefs(believed, rho) for rho in correlations]
    beliefs.append(rows.beliefs(believed, believed.rho, UNLIKE))
    regression = rows.regression(spread, fill, extremes, beliefs[0])
    regressions = [replace(regression, beliefs=each) for each in beliefs]
    regressions[-1] = replace(regressions[-1], expected=None)
    found = [each for (each,) in fit_each(regressions, (0.0,))]
    evidence = np.array([each.evidence for each in found])
    events = float(rows.weight.sum())
    rate = min(RATE, max(DEPENDENCE_EVENTS / (DEPENDENCE_EVENTS + events), events / (DEPENDENCE_LEARNED + events)))
    probability = posterior_probabilities(evidence[:-1], prior, rate)
    rho, slope = believed.rho, SLOPE
    if believed.correlation is None:
        rho, variance = _mean_correlation(probability, rows.contrasts.shape[1])
        slope = float(np.hypot(SLOPE, np.sqrt(UNDECIDED * variance)))
    learned = rows.beliefs(believed, rho, slope), rows.beliefs(believed, rho, UNLIKE)
    unlike = unlike_probability(events)
    among_all = posterior_probabilities(evidence, np.append((1.0 - unlike) * np.array(prior), unlike))
    return learned, found[int(probability.argmax())], _Alternatives(found, among_all)


def _mean_correlation(probability: Array, n: int) -> tuple[float, float]:
    """The correlation at which the sum of n equal weights is its geometric mean, and the variance of its logarithm."""
    if n == 1:
        return CORRELATION, 0.0
    level = np.log1p((n - 1) * np.array(CORRELATIONS))
    mean = float(probability @ level)
    return float(np.expm1(mean)) / (n - 1), float(probability @ (level - mean) ** 2)


class _Average(NamedTuple):
    """Coefficients of several candidates, and what each counts for."""

    found: list[Coefficients]
    share: Array

    @property
    def mean(self) -> Array:
        """Intercept and weights, (K - 1 + N,)."""
        return np.asarray(self.share @ np.array([each.values for each in self.found]))

    def covariance(self) -> Array:
        """What is open about them, (K - 1 + N, K - 1 + N)."""
        off = np.array([each.values for each in self.found]) - self.mean
        covariance = np.einsum("s,si,sj->ij", self.share, off, off)
        for share, each in zip(self.share, self.found, strict=True):
            covariance += share * each.covariance()
        return np.asarray(covariance)


def _coefficients(
    rows: _Rows,
    few: _Rows,
    shrunken: MarginalFeatures,
    believed: Believed,
    extremes: Extremes,
    candidates: Candidates,
    starts: list[Coefficients],
    *,
    answers_only: bool,
) -> tuple[Array, Uncertainty | None, TopicEffects | None]:
    """Intercept and weights, (K - 1 + N,), averaged over candidates; what is open about them; topics."""
    fill = common_dependence(shrunken, believed, float(rows.weight.sum()))
    regression = few.regression(shrunken.spread, fill, extremes, candidates.beliefs[0])
    candidates, found = candidates.kept(candidates.fits(regression, starts))
    share, among = candidates.posterior(found), regression
    if few is not rows:
        regression = rows.regression(shrunken.spread, fill, extremes, candidates.beliefs[0])
        if rows.topics is None:
            found = candidates.fits(regression, found)
    average = _Average(found, share)
    if rows.topics is not None:
        return _by_topic(rows, regression, few, among, average.mean, candidates)
    if answers_only or rows.contrasts.shape[1] > MOST_UNCERTAIN:
        return average.mean, None, None
    return average.mean, Uncertainty(average.covariance()), None


def _by_topic(
    rows: _Rows,
    regression: Regression,
    few: _Rows,
    among: Regression,
    plain: Array,
    candidates: Candidates,
) -> tuple[Array, Uncertainty, TopicEffects]:
    """The same where events have topics; slopes multiply what `plain` coefficients add to the prior."""
    d, beliefs = rows.free, regression.beliefs

    def events(some: _Rows, its: Regression) -> TopicEvents:
        assert some.topics is not None
        # What is common to topics counts with them, in full.
        return TopicEvents.of(replace(its, weight=some.weight), some.topics, plain, some.base_intercept)

    common = Common(candidates.roots(d), candidates.probability.tolist())
    weights = rows.contrasts.shape[1] > 1 and weights_looked_at(len(rows.experts), rows.topics, d)
    chosen_by = None if few is rows else events(few, among)
    found = learn_topics(events(rows, regression), common, weights=weights, few=chosen_by)
    values = found.values.copy()
    values[d:] += beliefs.mean
    return values, Uncertainty(found.covariance), replace(found.effects, plain=plain - values)
