"""The default pool: beliefs about a panel, updated by resolved events.

The answer is a log pool, L* = L° + Σ w_i (C_i − b_i), whose coefficients are the posterior mean of a hierarchical
logistic regression (docs/model.md, 10): a grid of nodes says what is believed of the weights beforehand, of any panel
or by a decision maker (`opinionpool.learning.nodes`), and is averaged by how well each node predicts the outcomes
(`opinionpool.learning.laplace`). A prior that is Laplace's estimate is itself believed only in proportion T / (T +
`PRIOR_EVENTS`) of the T resolved events, beside the mean of what is forecast of all events. With one outcome, or none,
this still has one answer. It is then written as a Gaussian panel with the same weights: spreads and their common
correlation are those of the data shrunken towards the panel (`opinionpool.learning.hierarchy`), contrasts follow from
the weights (10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce

import numpy as np

from opinionpool.arrays import Array
from opinionpool.blocks import in_order
from opinionpool.errors import ArgumentError
from opinionpool.estimation.newton import posterior_probabilities
from opinionpool.learning.constants import BIASES, COMMON_SHARE, LIMIT_PROBABILITIES, LIMITS
from opinionpool.learning.duplicates import Duplicates
from opinionpool.learning.hierarchy import marginal_bias, marginal_dependence, marginal_features
from opinionpool.learning.laplace import Likelihood, evidence, evidence_near, fit_all, fit_nodes
from opinionpool.learning.members import Members
from opinionpool.learning.nodes import Nodes, prior_nodes
from opinionpool.learning.posterior import Posterior
from opinionpool.learning.prior import OPEN, Believed, harmonic_mean
from opinionpool.learning.quadratic import Levels
from opinionpool.learning.rows import Block, Blocks, DenseContrasts, likelihood
from opinionpool.learning.unlearned import (
    MOST_UNCERTAIN,
    DefaultFit,
    agreement_note,
    assumed,
    intercept_shares,
    nothing_learned,
    with_weights,
)
from opinionpool.model.contrasts import Extremes
from opinionpool.model.features import Parts

# How often a centre is sought: extremes are those of statements about it.
CENTRED = 3


def default_fit(
    data: DenseContrasts,
    believed: Believed,
    *,
    answers_only: bool = False,
    every: Blocks | None = None,
) -> DefaultFit:
    """Fit the default pool to contrasts (log-ratios less the prior's), with or without resolved events.

    If `data` are a sample, dependence and biases are learned from it, weights from all resolved events, which `every`
    returns in blocks. With `answers_only`, neither posterior covariances nor the experts' marginal features are
    computed.

    Raises
    ------
    ArgumentError
        If a bias is believed where there are more than two classes, or events have options of their own.
    """
    whole, experts, options, of_all = data, data.experts, data.absent is not None, believed
    if options and believed.bias.value.any():
        raise ArgumentError(
            "bias: each event has options of its own, and nobody can be biased towards one of them; leave it out"
        )
    duplicates, data, believed, away = _distinct(data, believed, every)
    used, nobody = data.resolved & (data.weight > 0) & data.answered, len(duplicates.first) == 0
    if believed.assessed or not used.any() or nobody:
        found = assumed(believed, away, options=options, answers_only=answers_only)
        constant = bool((whole.answered & whole.resolved & (data.weight > 0)).any()) and not used.any()
        notes = [nothing_learned(bool(data.resolved.any()), constant, believed, nobody)]
        if believed.agreement is not None:
            notes.append(agreement_note(believed.agreement, [experts[i] for i in duplicates.first.tolist()]))
        found = replace(found, notes=tuple(notes))
    else:
        all_rows = every and (lambda: (block.among(duplicates.first, away) for block in every()))
        found = _learned(data.on(used).believing(away), believed, answers_only=answers_only, every=all_rows)
    return found.with_duplicates(duplicates, of_all)


def _distinct(
    data: DenseContrasts, believed: Believed, every: Blocks | None = None
) -> tuple[Duplicates, DenseContrasts, Believed, Array]:
    """Duplicates; forecasts and beliefs without them; the prior's log-ratios L° less the believed prior's, (K - 1,)."""
    blocks = (block.contrasts for block in every()) if every else ()
    duplicates = Duplicates.among(data.contrasts, data.experts, believed.named, blocks)
    data = data.by(duplicates.first)
    away = np.zeros(data.free) if believed.assessed or not data.contrasts.size else data.distrust()
    if len(duplicates.first):
        believed = believed.among(duplicates.source, len(duplicates.first))
    if len(duplicates.first) > 2:
        believed = believed.agreeing(data.cells.agreement())
    return duplicates, data, believed, away


def _learned(rows: DenseContrasts, believed: Believed, *, answers_only: bool, every: Blocks | None) -> DefaultFit:
    limits, prior = (LIMITS, LIMIT_PROBABILITIES) if believed.limit is None else ((believed.limit,), (1.0,))
    d, n = rows.free, rows.contrasts.shape[1]
    centre, nodes = _prior(rows, believed, harmonic_mean(limits, prior))
    fill = believed.parts(believed.rho)
    members = None if rows.absent is not None else Members.prior(believed)
    found = list[tuple[float, Array]]()
    for limit in limits:
        near = found[-1][1] if found else None
        found.append(evidence(rows.observed(fill, Extremes(limit, centre)), nodes, near))
    by_sample = float(np.logaddexp.reduce(np.log(prior) + np.array([score for score, _ in found])))
    if every is not None:
        found = _compared(found, prior, [likelihood(every, fill, Extremes(each, centre)) for each in limits], nodes)
    probability = posterior_probabilities([score for score, _ in found], prior)
    extremes = Extremes(harmonic_mean(limits, probability), centre)
    shrunken = marginal_features(rows.regressed(extremes.believed(rows.contrasts, rows.options)), believed)
    fill = Parts(np.zeros(n), shrunken.spread, marginal_dependence(shrunken, believed))
    uncertain = not answers_only and n <= MOST_UNCERTAIN
    by_topic = not answers_only and rows.topics is not None
    start = probability @ np.array([mean for _, mean in found])
    observed, names = rows.observed(fill, extremes), () if rows.topics is None else rows.topics.names
    if every is None:
        fit = fit_nodes(observed, nodes, covariances=uncertain or by_topic, start=start)
    else:
        fit = fit_all(likelihood(every, fill, extremes), nodes, start, names, covariances=uncertain or by_topic)
    if members is not None:

        def again(among: DenseContrasts, counted: Blocks | None) -> float:
            events = likelihood(counted, fill, extremes) if counted else replace(observed, weight=among.weight)
            return evidence_near(fit, events, nodes)

        members = _weighed(members, rows, every, again, (fit.evidence, fit.evidence if every is None else by_sample))
    intercept, weights = fit.mean[:d], fit.mean[d:]
    # L* = L° + base intercept + intercept + Σ w_i u_i: what no forecast changes becomes bias.
    bias = centre + intercept_shares(weights)[:, None] * (rows.away - intercept)
    marginal = None if answers_only else marginal_features(rows.regressed(rows.contrasts), believed)
    each = zip(limits, prior, probability.tolist(), strict=True)
    of_limits = [("limit of extremes", f"{limit:g}", before, after) for limit, before, after in each]
    posterior = Posterior.of(fit, nodes, of_limits) if uncertain else None
    parts = with_weights(fill, weights)
    return DefaultFit(parts, bias, extremes, marginal, posterior, learned=True, members=members, topics=fit.topics)


def _weighed(
    members: Members,
    rows: DenseContrasts,
    every: Blocks | None,
    again: Callable[[DenseContrasts, Blocks | None], float],
    known: tuple[float, float],
) -> Members:
    """Return the mixture `members` with posterior shares, by a sample's outcomes if they decide, else by all outcomes.

    `rows` are the sample; `every` returns all events, or is None. `known` has the log pool's log marginal likelihood by
    all events and by the sample; `again` computes it anew where events have other weights in comparisons.
    """
    among = rows.in_comparison
    of_all, of_sample = known if among is rows else (None, again(among, None))
    found = members.learned(among.log_likelihoods(), of_sample)
    if every is None or found.decided:
        return found

    def counted() -> Iterator[Block]:
        return (block.in_comparison for block in every())

    of_all = again(among, counted) if of_all is None else of_all
    return members.learned(reduce(np.add, in_order(lambda block: block.log_likelihoods(), counted())), of_all)


def _compared(
    found: list[tuple[float, Array]], prior: tuple[float, ...], likelihoods: list[Likelihood], nodes: Nodes
) -> list[tuple[float, Array]]:
    """Log marginal likelihood and mean weights at each limit, by all events; `found`, if only one limit is likely."""
    probability = posterior_probabilities([score for score, _ in found], prior)
    still = probability > OPEN
    if np.count_nonzero(still) == 1:
        return found
    again = [(-np.inf, mean) for _, mean in found]
    for i in np.flatnonzero(still).tolist():
        mean = found[i][1]
        by_all = Levels.of(likelihoods[i](mean), nodes)
        again[i] = by_all.log_marginal_likelihood, by_all.centre
    return again


def _prior(rows: DenseContrasts, believed: Believed, limit: float) -> tuple[Array, Nodes]:
    """Contrasts (N, K - 1) that the forecasts of an uninformed expert would have, and the prior of the weights.

    Extremes are moderated to `limit`. If classes are ordered or rare, all experts seem biased against classes that are
    far from the others: a share of their common bias is taken for an error, and the uncertainty of this share adds to
    the intercept's variance.
    """
    nodes = prior_nodes(believed, rows.free, options=rows.absent is not None)
    plain = np.tile(-rows.away, (rows.contrasts.shape[1], 1))
    bias = believed.biases(rows.contrasts.shape[2])
    centre = plain + bias
    if rows.absent is not None:
        return centre, nodes
    bias, share = np.zeros_like(centre), 1.0 if rows.free == 1 else COMMON_SHARE[0]
    for _ in range(CENTRED):
        typical = Extremes(limit, centre).deviation(rows.contrasts) + (centre - plain)
        bias = marginal_bias(rows.regressed(typical), believed)
        centre = plain + bias - (1.0 - share) * bias.mean(axis=0)
    common = None if rows.free == 1 else COMMON_SHARE[1] / BIASES[0] * bias.mean(axis=0)
    return centre, replace(nodes, common=common)
