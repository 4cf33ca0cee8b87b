"""Weights that differ between classes, averaged with equal ones by posterior probability.

The prior probability that weights differ is one half, and both models are averaged. What the full model adds to the
symmetric panel's answers has coefficients with normal priors (`opinionpool.learning.class_weights`); evidence is
averaged over the prior's standard deviations of differences, and an intercept is always included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import partial, reduce
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.blocks import in_order
from opinionpool.errors import LearningError, Note
from opinionpool.estimation.likelihood import Design
from opinionpool.estimation.newton import posterior_probabilities
from opinionpool.learning.class_weights import ClassPosterior, ClassWeights
from opinionpool.learning.constants import CLASS_PROBABILITIES, CLASS_SPREADS
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.laplace import SMALL, TINY, about_mean
from opinionpool.learning.quadratic import Arrow, Quadratic
from opinionpool.learning.rows import Blocks, DenseContrasts
from opinionpool.learning.topics import TopicEffects
from opinionpool.model.panel import Panel

# Posterior probability that weights differ below which they do not.
LEAST = 0.05
# Coefficients up to which the data are asked, and up to which they are learned.
ASKED, MOST = 600, 2000
# How notes begin that say why they do not differ.
ONE = "experts have one weight for all classes"


class Fitted(NamedTuple):
    """Posterior of P coefficients under one prior: independent normals with standard deviations `roots` (P,)."""

    roots: Array
    mean: Array  # (P,)
    precision: Array  # (P, P); posterior precision in units of `roots`
    evidence: float  # log marginal likelihood

    @classmethod
    def of(cls, about: Quadratic, roots: Array) -> Fitted:
        """Posterior from a quadratic log-likelihood, `about`, and the prior standard deviations `roots`."""
        precision, slope = roots[:, None] * about.curvature * roots + np.eye(len(roots)), roots * about.slope
        mean = np.linalg.solve(precision, slope)
        evidence = about.constant + float(slope @ mean - np.linalg.slogdet(precision)[1]) / 2.0
        return cls(roots, roots * mean, precision, evidence)

    @property
    def covariance(self) -> Array:
        """Posterior covariance of the coefficients, (P, P)."""
        return self.roots[:, None] * np.linalg.inv(self.precision) * self.roots


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Fits for several prior sds (`CLASS_SPREADS`, the first is 0) of differences between classes in weight."""

    found: list[Fitted]  # one fit for each prior standard deviation

    @property
    def centre(self) -> Array:
        """Posterior mean of the coefficients, averaged over all fits."""
        return np.asarray(self.probability @ np.array([each.mean for each in self.found]))

    @property
    def probability(self) -> Array:
        """Posterior probability of each fit, by its marginal likelihood."""
        return posterior_probabilities([each.evidence for each in self.found], CLASS_PROBABILITIES)

    def average(self, *, differ: bool = False) -> tuple[Array, Array]:
        """Posterior mean and covariance of coefficients, averaged over all fits, or, if `differ`, all but the first."""
        probability, found = self.probability[differ:], self.found[differ:]
        share, values = probability / probability.sum(), np.array([each.mean for each in found])
        away = values - share @ values
        within = sum(part * each.covariance for part, each in zip(share, found, strict=True))
        return share @ values, within + away.T * share @ away


def with_class_model(
    learned: FittedPanel,
    data: DenseContrasts,
    class_model: str,
    every: Blocks | None,
) -> FittedPanel:
    """Return `learned` with weights that differ between classes, if `class_model` is "full" or outcomes favour this.

    Parameters
    ----------
    learned : FittedPanel
        The default pool.
    data : DenseContrasts
        The data of `learned`; weights are the numbers of independent events that each event counts as.
    class_model : {"auto", "full"}
    every : callable or None
        Returns all resolved events in blocks where the data are a sample.

    Raises
    ------
    LearningError
        If "full" would have too many weights.
    """
    assert isinstance(learned.panel, Panel)
    weights = ClassWeights(learned.panel)
    if not len(weights.informative):
        return learned
    used = data.resolved & (data.weight > 0) & ~np.isnan(data.contrasts[:, weights.informative, 0]).all(axis=1)
    nothing = learned.structure == "assumed" or not used.any()
    needed = len(weights.first) * weights.free**2
    if class_model == "full":
        if weights.size > MOST:
            raise LearningError(
                f"weights that differ between classes would be {needed:,} numbers, and this learns them for up to "
                f"about {MOST:,}; use class_model='symmetric', or choose experts"
            )
        if nothing:
            size = weights.size
            return _differing(learned, weights, np.zeros(size), np.zeros((size, size)))
    elif nothing:
        return learned
    elif weights.size > ASKED:
        return _with(learned, f"{ONE}: {needed:,} that differ between classes would be too many to learn")
    elif (data.outcomes[used] == data.outcomes[used][0]).all():
        # Otherwise weights would be preferred that call this class the likeliest whatever the forecasts.
        return _with(learned, f"{ONE}: every resolved event has the same outcome")
    found = _alternatives(weights, data, np.flatnonzero(used), every, learned.topics)
    differ = 1.0 - float(found.probability[0])
    if class_model == "full":
        return _differing(learned, weights, *found.average(differ=True))
    if differ < LEAST:
        return _with(learned, f"{ONE}: that weights differ has a probability of {differ:.0%}")
    text = f"weights differ between classes with a probability of {differ:.0%}, and count with that"
    return _with(_differing(learned, weights, *found.average()), text)


def _differing(learned: FittedPanel, weights: ClassWeights, coefficients: Array, covariance: Array) -> FittedPanel:
    """Copy of `learned` with a panel whose weights differ between classes by the `coefficients`."""
    posterior = learned.posterior
    if posterior is not None:
        common = {each.name: getattr(posterior, each.name) for each in fields(posterior)}
        posterior = ClassPosterior(**common, weights=weights, differences=covariance)
    return replace(learned, panel=weights.full_panel(coefficients), posterior=posterior)


def _alternatives(
    weights: ClassWeights,
    data: DenseContrasts,
    rows: Index,
    every: Blocks | None,
    topics: TopicEffects | None,
) -> Alternatives:
    """Fits for each of `CLASS_SPREADS`, to the events `rows` of `data`, or to all blocks of `every` if given."""
    roots = [weights.roots(*each) for each in CLASS_SPREADS]
    one = None if every else _design(weights, data, rows, topics)

    def designs() -> Iterator[Design]:
        if one is not None:
            yield one
        for block in every() if every else ():
            # An array of many events has two classes.
            assert isinstance(block, DenseContrasts)
            yield _design(weights, block, np.flatnonzero(block.answered), topics)

    def likelihood(point: Array) -> Arrow:
        about = reduce(Quadratic.and_of, in_order(partial(Quadratic.at, point=point), designs()))
        return Arrow.plain(about, weights.free)

    def posterior(about: Arrow) -> Alternatives:
        return Alternatives([Fitted.of(about.common, each) for each in roots])

    return about_mean(likelihood, posterior, np.zeros(len(roots[0])), SMALL if every else TINY)[0]


def _design(weights: ClassWeights, data: DenseContrasts, rows: Index, topics: TopicEffects | None) -> Design:
    """Regression of outcomes of the events `rows`, whose offsets are answers by equal weights for all classes."""
    believed = weights.panel.settings.extremes.believed(data.contrasts[rows])
    beyond = weights.pooled(believed)
    if topics is not None and data.topics is not None:
        labels = np.array([*topics.topics, ""], dtype=object)[data.topics.member[rows]]
        beyond = beyond + topics.shift(labels, beyond).ratios
    offset = data.reference[rows] + beyond
    design = Design.of(np.empty((len(rows), 0, weights.free)), data.outcomes[rows], offset, data.weight[rows])
    features = np.ascontiguousarray(weights.features(believed).T)
    return replace(design, features=features, basis=weights.turn)


def _with(learned: FittedPanel, text: str) -> FittedPanel:
    """Return `learned` with the note `text` on whether weights differ between classes."""
    return replace(learned, notes=(*learned.notes, Note("class-model", text)))
