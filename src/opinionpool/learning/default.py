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

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError
from opinionpool.estimation.coefficients import Coefficients
from opinionpool.estimation.newton import posterior_probabilities
from opinionpool.estimation.regression import Observations, Regression, fit_batch
from opinionpool.learning.agreement import Agreement
from opinionpool.learning.candidates import MINOR, Candidates, unlike_probability
from opinionpool.learning.duplicates import Duplicates
from opinionpool.learning.left_open import Alternatives, Average, with_limits
from opinionpool.learning.prior import (
    CORRELATION,
    CORRELATIONS,
    LIMIT_PROBABILITIES,
    LIMITS,
    SLOPE,
    UNLIKE,
    Believed,
    harmonic_mean,
)
from opinionpool.learning.problem import DenseContrasts
from opinionpool.learning.rows import Rows, each_expert, rows_of
from opinionpool.learning.shrinkage import (
    MarginalFeatures,
    common_dependence,
    marginal_bias,
    marginal_dependence,
    marginal_features,
)
from opinionpool.learning.topic_fit import Common, TopicEvents, learn_topics, weights_looked_at
from opinionpool.learning.topics import TopicEffects
from opinionpool.learning.uncertainty import Uncertainty
from opinionpool.learning.unlearned import MOST_UNCERTAIN, DefaultFit, agreement_note, assumed, nothing_learned
from opinionpool.model.contrasts import Extremes
from opinionpool.model.correlation import CommonCorrelation
from opinionpool.model.features import Parts

BIAS_WORTH = 60.0
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
# What another dependence leaves open counts in intervals in full from many more events than these on: before, outcomes
# hardly decide between them, and a normal interval reaches beyond what is as rare as independent experts are.
OPEN_EVENTS = 10.0
# Weights this small say nothing, and carry no intercept.
LEAST_WEIGHT = 1e-6


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
    duplicates, of_all = Duplicates.among(contrasts, experts, believed.named), believed
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
        found = _learned(rows_of(data, distinct, duplicates.first, used), believed, answers_only=answers_only)
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
    if not duplicates.new.any():
        return features
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


def _learned(rows: Rows, believed: Believed, *, answers_only: bool) -> DefaultFit:
    rows = replace(rows, expected=believed.weights(believed.rho))
    few, n, events = rows.thinned(), rows.contrasts.shape[1], float(rows.weight.sum())
    limits, prior = (LIMITS, LIMIT_PROBABILITIES) if believed.limit is None else ((believed.limit,), (1.0,))
    centre = _centre(rows, believed, harmonic_mean(limits, prior))
    spread = believed.parts(believed.rho).spread
    # To choose by, it is enough to fill in by one correlation.
    fill = CommonCorrelation(n, believed.rho if n > 1 else 0.0)
    observed = partial(few.observed, spread, fill)
    middle = Extremes(limits[len(limits) // 2], centre)
    candidates, alternatives, found = _candidates(few, observed(middle), believed, events)
    equal, some = found[0], candidates.kept(found, MINOR)
    candidates, found = candidates.kept(found)
    limited = _by_limit([Extremes(limit, centre) for limit in limits], observed, *some)
    scores = [some[0].score(each) for each in limited]
    probability = posterior_probabilities(scores, prior, RATE * events / (EXTREMES_EVENTS + events))
    extremes = Extremes(harmonic_mean(limits, probability), centre)
    evidence = rows.evidence(extremes.believed(rows.contrasts, each_expert(rows.absent)))
    shrunken = marginal_features(evidence, believed)
    values, uncertainty, topics = _coefficients(
        rows, few, shrunken, believed, extremes, candidates, found, answers_only=answers_only
    )
    if uncertainty is not None:
        uncertainty = alternatives.beyond(uncertainty, equal, events / (events + OPEN_EVENTS))
        by_limit = [some[0].mean(each) for each in limited]
        uncertainty = with_limits(uncertainty, values, limits, probability, by_limit)
    intercept, weights = values[: rows.contrasts.shape[2]], values[rows.contrasts.shape[2] :]
    dependence = marginal_dependence(evidence, shrunken, believed)
    contrast = shrunken.spread * dependence.times(shrunken.spread * weights) / 2.0
    # L* = L° − base intercept + intercept + Σ w_i u_i: what no forecast changes becomes bias.
    bias = centre + _shares(weights)[:, None] * (rows.base_intercept - intercept)
    marginal = None if answers_only else marginal_features(rows.evidence(rows.by_steps()), believed)
    parts = Parts(contrast, shrunken.spread, dependence)
    return DefaultFit(parts, bias, extremes, marginal, uncertainty, True, (), topics)


def _by_limit(
    each: Sequence[Extremes], observed: Callable[[Extremes], Observations], some: Candidates, fitted: list[Coefficients]
) -> list[list[Coefficients]]:
    """Fits of some candidates for each belief in extremes, the middle one's being known."""
    middle = len(each) // 2
    return [fitted if i == middle else some.fit(observed(extremes), fitted) for i, extremes in enumerate(each)]


def _centre(rows: Rows, believed: Believed, limit: float) -> Array:
    """What experts say of events they know nothing about, (N, K - 1), extremes being believed up to about a limit."""
    plain = np.tile(-rows.base_intercept, (rows.contrasts.shape[1], 1))
    bias = believed.biases(rows.contrasts.shape[2])
    centre = plain + bias
    if rows.absent is not None:
        return centre
    typical = Extremes(limit, centre).deviation(rows.contrasts)
    typical += bias
    # Biases too are believed in so far as there are events behind them.
    events = float(rows.weight.sum())
    share = events / (events + BIAS_WORTH + believed.bias.worth)[:, None]
    return np.asarray(centre + share * (marginal_bias(rows.evidence(typical), believed) - bias))


def _shares(weights: Array) -> Array:
    """Biases (N,) of all that move the answer by 1 together.

    They are much the same for everybody, as sums of weights are for those who are present, whoever that is; where
    weights add up to nothing, they go along these.
    """
    total, size = float(weights.sum()), float(weights @ weights)
    if size <= LEAST_WEIGHT**2:
        return np.zeros(len(weights))
    return np.asarray((total + weights) / (total**2 + size))


def _candidates(
    rows: Rows, observed: Observations, believed: Believed, events: float
) -> tuple[Candidates, Alternatives, list[Coefficients]]:
    """Candidates for experts as dependent as they turn out to be; what may be instead; and the fit of each candidate.

    The rows may be some of more `events`. Intervals allow for each correlation, and for a sum of weights that is
    nothing like what is believed while weights are equal. There, nothing keeps single outcomes from moving answers, so
    that intervals reach to where they would lead.
    """
    correlations, prior = believed.correlations
    beliefs = [rows.beliefs(believed, rho) for rho in correlations]
    beliefs.append(rows.beliefs(believed, believed.rho, UNLIKE))
    # Independent experts are believed to add up to so much that their own mean is a bad start.
    begin, free = beliefs[0].total, len(correlations)
    found = fit_batch([Regression(observed, each, 0.0, i < free, begin) for i, each in enumerate(beliefs)])
    evidence = np.array([each.log_marginal_likelihood for each in found])
    seen = float(rows.weight.sum())
    rate = min(RATE, max(DEPENDENCE_EVENTS / (DEPENDENCE_EVENTS + seen), seen / (DEPENDENCE_LEARNED + seen)))
    probability = posterior_probabilities(evidence[:-1], prior, rate)
    rho, slope = believed.rho, SLOPE
    if believed.correlation is None:
        rho, variance = _mean_correlation(probability, rows.contrasts.shape[1])
        slope = float(np.hypot(SLOPE, np.sqrt(UNDECIDED * variance)))
    candidates = Candidates.of((rows.beliefs(believed, rho, slope), rows.beliefs(believed, rho, UNLIKE)), events)
    unlike = unlike_probability(seen)
    among_all = posterior_probabilities(evidence, np.append((1.0 - unlike) * np.array(prior), unlike))
    likeliest = found[int(probability.argmax())]
    return candidates, Alternatives(found, among_all, observed), candidates.fit(observed, [likeliest])


def _mean_correlation(probability: Array, n: int) -> tuple[float, float]:
    """The correlation at which the sum of n equal weights is its geometric mean, and the variance of its logarithm."""
    if n == 1:
        return CORRELATION, 0.0
    level = np.log1p((n - 1) * np.array(CORRELATIONS))
    mean = float(probability @ level)
    return float(np.expm1(mean)) / (n - 1), float(probability @ (level - mean) ** 2)


def _coefficients(
    rows: Rows,
    few: Rows,
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
    observed = among = few.observed(shrunken.spread, fill, extremes)
    candidates, found = candidates.kept(candidates.fit(observed, starts))
    share = candidates.posterior(found)
    uncertain = not answers_only and rows.topics is None and rows.contrasts.shape[1] <= MOST_UNCERTAIN
    uncertainty = Average(found, share).uncertainty(candidates, observed) if uncertain else None
    if few is not rows:
        observed = rows.observed(shrunken.spread, fill, extremes)
        if rows.topics is None:
            found = candidates.fit(observed, found)
    average = Average(found, share)
    if rows.topics is not None:
        return _by_topic(rows, observed, few, among, average.mean, candidates)
    return average.mean, uncertainty, None


def _by_topic(
    rows: Rows,
    observed: Observations,
    few: Rows,
    among: Observations,
    plain: Array,
    candidates: Candidates,
) -> tuple[Array, Uncertainty, TopicEffects]:
    """The same where events have topics; slopes multiply what `plain` coefficients add to the prior."""
    d, mean = rows.free, candidates.beliefs[0].mean

    def events(some: Rows, its: Observations) -> TopicEvents:
        assert some.topics is not None
        # What is common to topics counts with them, in full.
        return TopicEvents.of(replace(its, weight=some.weight), mean, some.topics, plain, some.base_intercept)

    common = Common(candidates.roots(d), candidates.probability.tolist())
    weights = rows.contrasts.shape[1] > 1 and weights_looked_at(len(rows.experts), rows.topics, d)
    chosen_by = None if few is rows else events(few, among)
    found = learn_topics(events(rows, observed), common, weights=weights, few=chosen_by)
    values = found.values.copy()
    values[d:] += mean
    return values, Uncertainty(found.covariance), replace(found.effects, plain=plain - values)
