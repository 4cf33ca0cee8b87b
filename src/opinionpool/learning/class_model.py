"""Weights that differ between classes, averaged with equal ones by posterior probability (model.md, 2.7 and 3).

Around a class-symmetric panel, what expert i says adds C_iᵀ A_i to the log-ratios, with A_i = w_i I + s B/n + B_i: its
weight in the symmetric panel; what weights have in common between classes, in proportion to the sum s of the weights
that is believed of any panel; and what is the expert's own (Σ B_i = 0). B and the B_i have coefficients that are normal
around 0 in coordinates in which no class is special; an intercept is always included. Evidence is averaged over the
prior's standard deviations, and the prior probability that weights differ is one half. Missing contrasts are taken as Σ
expects them, which is what exact sub-panels imply. All of this is then one Gaussian panel: Ω is Σ for any two classes,
and the means follow from the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial, reduce
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.blocks import in_order
from opinionpool.errors import LearningError, Note
from opinionpool.estimation.likelihood import Design
from opinionpool.estimation.newton import posterior_probabilities
from opinionpool.learning.constants import BIASES, CLASS_PROBABILITIES, CLASS_SPREADS
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.laplace import SMALL, TINY, about_mean
from opinionpool.learning.posterior import Posterior
from opinionpool.learning.prior import believed_slope
from opinionpool.learning.quadratic import Arrow, Quadratic
from opinionpool.learning.rows import Blocks, DenseContrasts
from opinionpool.learning.topics import TopicEffects
from opinionpool.logodds import metric, uncentred, unwhitened, whitened
from opinionpool.model.contrasts import Batch
from opinionpool.model.full_panel import Discriminant, FullPanel
from opinionpool.model.panel import Panel, PoolingPanel

# Posterior probability that weights differ below which they do not.
LEAST = 0.05
# Coefficients up to which the data are asked, and up to which they are learned.
ASKED, MOST = 600, 2000
# How notes begin that say why they do not differ.
ONE = "experts have one weight for all classes"


@dataclass(frozen=True, eq=False)
class ClassWeights:
    """Coefficients by which each expert's weight may differ between classes from its one weight for all classes.

    There are P coefficients: K - 1 for each of the F `features`, which are made from the contrasts (log-ratios less the
    prior's) of V experts: the informative ones without duplicates.
    """

    panel: Panel  # with one weight for each expert

    @property
    def free(self) -> int:
        """Number of log-ratios, K - 1."""
        return len(self.panel.classes) - 1

    @cached_property
    def informative(self) -> Index:
        """Positions of the n informative experts, (n,)."""
        return np.flatnonzero(self.panel.informative)

    @cached_property
    def bias(self) -> Array:
        """Biases of the informative experts as log-ratios, (n, K - 1)."""
        return uncentred(self.panel.bias[self.informative])

    @cached_property
    def source(self) -> Index:
        """Group, 0 .. V - 1, of experts with equal forecasts that each informative expert belongs to, (n,)."""
        source = self.panel.parts.source
        return np.unique(self.informative if source is None else source[self.informative], return_inverse=True)[1]

    @cached_property
    def first(self) -> Index:
        """Position, among the informative experts, of the first expert of each group of duplicates, (V,)."""
        return np.unique(self.source, return_index=True)[1]

    @property
    def size(self) -> int:
        """Number of coefficients, P: K - 1 for each of the F features."""
        return (1 + len(self.first) * self.free) * self.free

    def pooled(self, contrasts: Array) -> Array:
        """Return the answers by weights that are equal for all classes, as log-ratios less the prior's, (T, K - 1)."""
        own = contrasts[:, self.informative]
        weights = self.panel.weights_for(~np.isnan(contrasts[..., 0]))[:, self.informative]
        deviation = np.where(np.isnan(own), 0.0, own - self.bias)
        return np.asarray(np.einsum("tn,tnd->td", weights, deviation))

    def prior_sds(self, together: float, deviation: float) -> Array:
        """Prior sds, (P,): of the intercept 1, the mean forecast `together`, experts' differences `deviation`."""
        d, own = self.free, (len(self.first) - 1) * self.free
        return np.repeat([1.0, together, deviation], [d, d * d, own * d])

    def features(self, contrasts: Array) -> Array:
        """Regressors (T, F) in which the answers' log-ratios are linear; 0 for events that nobody answered.

        The first is an intercept, the next are the experts' mean forecast, then differences between the forecasts of
        experts in V - 1 orthonormal directions. Log-ratios are regressors times a matrix (F, K - 1) of coefficients,
        times `turn`.
        """
        own = contrasts[:, self.informative]
        full = self.panel.parts.subset(self.informative).fill(own - self.bias)[:, self.first]
        answered = np.asarray(~np.isnan(own[..., 0]).all(axis=1))
        (t, n, d), moved = full.shape, whitened(full)
        features = np.empty((t, 1 + n * d))
        features[:, 0] = BIASES[0]
        features[:, 1 : d + 1] = believed_slope(n) * moved.mean(axis=1)
        np.matmul(self.between.T, moved, out=features[:, d + 1 :].reshape(t, n - 1, d))
        return features if answered.all() else features * answered[:, None]

    @cached_property
    def turn(self) -> Array:
        """Matrix (K - 1, K - 1) that maps orthonormal coordinates, in which no class is special, to log-ratios."""
        return unwhitened(np.eye(self.free))

    @cached_property
    def between(self) -> Array:
        """Orthonormal basis of differences between the V distinct (not duplicate) experts, (V, V - 1)."""
        return np.linalg.qr(np.eye(len(self.first))[:, 1:] - 1.0 / len(self.first))[0]

    def matrices(self, coefficients: Array) -> Array:
        """Matrices A_i (V, K - 1, K - 1): expert i adds to the answer's log-ratios the expert's contrasts times A_i."""
        n, d = len(self.first), self.free
        blocks = coefficients[d:].reshape(n, d, d)
        beyond = believed_slope(n) / n * blocks[0] + np.tensordot(self.between, blocks[1:], 1)
        weights = np.bincount(self.source, weights=self.panel.weights[self.informative])
        return np.asarray(weights[:, None, None] * np.eye(d) + whitened(np.eye(d)) @ beyond @ self.turn)

    def full_panel(self, coefficients: Array) -> FullPanel:
        """Return the panel whose weights differ between classes by the `coefficients` (P,)."""
        k, d, n = self.free + 1, self.free, len(self.first)
        sigma = self.panel.subset(self.informative[self.first].tolist()).covariance
        covariance = np.einsum("nm,ab->namb", sigma, np.linalg.inv(metric(k)))
        weights = self.matrices(coefficients).reshape(n * d, d)
        ratios = covariance.reshape(n * d, n * d) @ weights
        means = np.concatenate([np.zeros((1, n * d)), ratios.T])
        parts = Discriminant((means - means.mean(axis=0)).reshape(k, n, d), covariance)
        # Contrasts are measured from where they make up for the constant and leave the intercept.
        owed = BIASES[0] * coefficients[:d] @ self.turn + uncentred(parts.rule(np.arange(n)).constant.sum(axis=0))
        shift = ratios @ np.linalg.pinv(weights.T @ ratios, hermitian=True) @ owed
        return self._among_all(parts.subset(self.source), self.bias - shift.reshape(n, d)[self.source])

    def _among_all(self, parts: Discriminant, bias: Array) -> FullPanel:
        """Full panel of all N experts; `parts` and `bias` are for informative experts, others get weight 0."""
        n, d, kept = len(self.panel), self.free, self.informative
        means, covariance = np.zeros((d + 1, n, d)), np.zeros((n, d, n, d))
        means[:, kept] = parts.means
        covariance[kept[:, None], :, kept] = parts.covariance.transpose(0, 2, 1, 3)
        biases = uncentred(self.panel.bias)
        biases[kept] = bias
        names, classes, settings = self.panel.names, self.panel.classes, self.panel.settings
        return FullPanel.from_parts(Discriminant(means, covariance), biases, names, classes, settings)


@dataclass(frozen=True, eq=False, repr=False)
class ClassPosterior(Posterior):
    """Posterior of weights that differ between classes: of means over classes and, independently, of differences.

    Attributes
    ----------
    weights : ClassWeights
    differences : ndarray, shape (P, P)
        Covariance of the coefficients.
    """

    weights: ClassWeights = field(kw_only=True)
    differences: Array = field(kw_only=True)

    def _symmetric(self, panel: PoolingPanel) -> Panel:
        assert isinstance(panel, FullPanel)
        return self.weights.panel

    def _differences(self, panel: PoolingPanel, batch: Batch, rows: slice) -> Array:
        features = self.weights.features(panel.settings.contrasts(batch.some(rows)))
        (t, f), d, turn = features.shape, self.weights.free, self.weights.turn
        half = (features @ self._by_features).reshape(t, d * d, f)
        return np.asarray(turn.T @ np.matmul(half, features[:, :, None]).reshape(t, d, d) @ turn)

    @cached_property
    def _by_features(self) -> Array:
        """Covariance of the F x (K - 1) coefficients, arranged as (F, (K - 1)² F) for products with regressors."""
        d = self.weights.free
        found = self.differences.reshape(len(self.differences) // d, d, -1, d)
        return np.ascontiguousarray(found.transpose(0, 1, 3, 2)).reshape(len(found), -1)


class Fitted(NamedTuple):
    """Posterior of P coefficients under a prior of independent normals with standard deviations `roots` (P,)."""

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
    """Fits under several priors, with the sds in `CLASS_SPREADS` (first 0) of weights' differences between classes."""

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
    """Return `learned` with weights that differ between classes, if `class_model` is "full" or outcomes support that.

    `data` are the forecasts behind `learned`; if they are only a sample, `every` returns all resolved events in blocks.

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
    roots = [weights.prior_sds(*each) for each in CLASS_SPREADS]
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
    """Regression of outcomes of events `rows` on features; offsets are the answers if weights are equal by class."""
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
