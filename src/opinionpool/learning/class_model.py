"""Weights that differ between classes, as far as the outcomes make that more probable than one weight for all.

Both kinds have half of the prior probability, and are averaged where the outcomes speak for the first; members (10.6)
are then weighed by the evidence of both. What the full model adds to the symmetric panel's answers has normal
coefficients (`opinionpool.learning.class_weights`), whose evidence is averaged over how far weights may differ; that of
the symmetric panel is the likelihood of its own answers.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.blocks import blocks
from opinionpool.errors import LearningError, Note
from opinionpool.estimation.likelihood import Design, row_basis, value
from opinionpool.estimation.newton import Mode, posterior_modes, posterior_probabilities
from opinionpool.estimation.sampling import spread_evenly
from opinionpool.learning.class_weights import ClassPosterior, ClassWeights, Spreads
from opinionpool.learning.constants import CLASS_PROBABILITIES, CLASS_SPREADS, DIFFER
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.problem import DenseContrasts
from opinionpool.model.panel import Panel


class Found(NamedTuple):
    """Posterior mode: coefficients (P,), of which the last may be 0, and the mode in units of `scale`."""

    coefficients: Array
    mode: Mode
    scale: Array

    def covariance(self) -> Array:
        """Posterior covariance of the coefficients, (P, P)."""
        p, kept = len(self.coefficients), len(self.scale)
        found = np.zeros((p, p))
        found[:kept, :kept] = self.scale[:, None] * self.mode.covariance * self.scale
        return found


@dataclass(frozen=True, eq=False)
class ClassEvidence:
    """Likelihood of resolved events as a function of P coefficients, of F features for K - 1 log-ratios.

    Attributes
    ----------
    design : Design
        Of T events, each of which counts for so many independent ones; offsets are log-ratios by the symmetric panel.
    """

    design: Design

    @property
    def alike(self) -> float:
        """Log-likelihood without differences between classes."""
        return -float(value(self.design, np.zeros((1, self.design.size))).loss[0])

    def fit(self, roots: Array, start: Array | None = None) -> Found:
        """Posterior mode of the coefficients, whatever the start."""
        kept, d, coefficients = int(np.count_nonzero(roots)), self.design.free, np.zeros(len(roots))
        scale = roots[:kept]
        features = self.design.features[: kept // d] * scale[::d, None]
        begun, basis = np.zeros(kept) if start is None else start[:kept] / scale, None
        if len(features) > features.shape[1]:
            # Coefficients that no event sees stay at 0: solve among the others.
            own = row_basis(features.T)
            features, basis = own.T @ features, np.asarray(np.kron(own, np.eye(d)))
            begun = begun @ basis
        (mode,) = posterior_modes(replace(self.design, features=features), start=begun[None])
        mode = mode if basis is None else mode.among(basis)
        coefficients[:kept] = scale * mode.coefficients
        return Found(coefficients, mode, scale)


# How far weights may differ between classes; averaged by how well each predicts the outcomes.
SPREADS = tuple(Spreads(*each) for each in CLASS_SPREADS)
# Posterior probability from which on they do: else one weight is what is more probable, and all features are known.
PROBABLE = 0.5
# One that is less probable than this is left out of the average.
NEGLIGIBLE = 1e-3
# Numbers in the largest array; more events are thinned.
LARGE = 1 << 23
# Coefficients up to which the data are asked, and up to which they are learned.
ASKED, MOST = 600, 2000


def with_class_model(learned: FittedPanel, panel: Panel, data: DenseContrasts, class_model: str) -> FittedPanel:
    """Return the fit, with weights that differ between classes if the data, or `class_model`, ask for it.

    Parameters
    ----------
    learned : FittedPanel
        The default pool.
    panel : Panel
        Its panel.
    data : DenseContrasts
        What it was learned from; weights say how many independent events each is worth.
    class_model : {"auto", "full"}

    Raises
    ------
    LearningError
        If "full" would have too many weights.
    """
    weights = ClassWeights(panel)
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
            size = len(weights.feature_roots(SPREADS[0]))
            return _differing(learned, weights, np.zeros(size), np.zeros((size, size)))
    elif nothing:
        return learned
    elif weights.size > ASKED:
        return _with(learned, _too_many(needed))
    elif (data.outcomes[used] == data.outcomes[used][0]).all():
        return _with(learned, _one_outcome())
    evidence = _evidence(weights, data, used)
    if class_model == "auto":
        return _chosen(learned, weights, evidence)
    return _differing(learned, weights, *_average(*_fits(weights, evidence)))


def _chosen(learned: FittedPanel, weights: ClassWeights, evidence: ClassEvidence) -> FittedPanel:
    """Fit whose weights differ between classes as far as that is probable, with a note."""
    found, probability = _fits(weights, evidence)
    scores = [evidence.alike, *(each.mode.log_marginal_likelihood for each in found)]
    share = (1.0 - DIFFER, *(DIFFER * each for each in CLASS_PROBABILITIES))
    differ = 1.0 - float(posterior_probabilities(scores, share)[0])
    if differ < PROBABLE:
        return _with(learned, _not_found(differ))
    if learned.members is not None:
        gain = float(np.logaddexp.reduce(np.array(scores) + np.log(share))) - scores[0]
        members = learned.members.favoured(gain)
        posterior = learned.posterior and learned.posterior.mixed_with(members)
        learned = replace(learned, members=members, posterior=posterior)
    mean, covariance = _average(found, probability)
    covariance = differ * (covariance + (1.0 - differ) * np.outer(mean, mean))
    return _with(_differing(learned, weights, differ * mean, covariance), _found(differ))


def _fits(weights: ClassWeights, evidence: ClassEvidence) -> tuple[list[Found], Array]:
    """Posterior mode of the coefficients for each of `SPREADS`, and the posterior probabilities of these."""
    found: list[Found] = []
    for spreads in SPREADS:
        found.append(evidence.fit(weights.feature_roots(spreads), found[-1].coefficients if found else None))
    score = [each.mode.log_marginal_likelihood for each in found]
    return found, posterior_probabilities(score, CLASS_PROBABILITIES)


def _average(found: list[Found], probability: Array) -> tuple[Array, Array]:
    """Coefficients averaged over how far weights differ, and their covariance."""
    kept = np.flatnonzero(probability > NEGLIGIBLE)
    share = probability[kept] / probability[kept].sum()
    values = np.array([found[i].coefficients for i in kept])
    mean = share @ values
    covariance = np.einsum("s,si,sj->ij", share, values - mean, values - mean)
    for part, i in zip(share, kept, strict=True):
        covariance += part * found[i].covariance()
    return mean, np.asarray(covariance)


def _differing(learned: FittedPanel, weights: ClassWeights, coefficients: Array, covariance: Array) -> FittedPanel:
    """Fit with the full model that has these coefficients of features, and their covariance."""
    turn, posterior = weights.from_features, learned.posterior
    if posterior is not None:
        common = {each.name: getattr(posterior, each.name) for each in fields(posterior)}
        posterior = ClassPosterior(**common, weights=weights, differences=turn @ covariance @ turn.T)
    return replace(learned, panel=weights.full_panel(turn @ coefficients), posterior=posterior)


def _with(learned: FittedPanel, note: Note) -> FittedPanel:
    return replace(learned, notes=(*learned.notes, note))


def _evidence(weights: ClassWeights, data: DenseContrasts, used: Mask) -> ClassEvidence:
    """Likelihood of the used events, thinned to an evenly spread sample where there are too many."""
    rows = np.flatnonzero(used)
    size, worth = _sizes(data.contrasts, rows), data.weight[rows]
    most = max(1, LARGE // (weights.size * weights.free))
    if len(rows) > most:
        kept, parts = spread_evenly(size, worth, most)
        worth = parts * (worth.sum() / most)
        rows = rows[kept]
    believed = weights.panel.settings.extremes.believed(data.contrasts[rows])
    offset = data.reference[rows] + weights.pooled(believed)
    design = Design.of(np.empty((len(rows), 0, weights.free)), data.outcomes[rows], offset, worth)
    features = np.ascontiguousarray(weights.features(believed).T)
    return ClassEvidence(replace(design, features=features, basis=weights.feature_turn))


def _sizes(contrasts: Array, rows: Index) -> Array:
    """Sum of squares of the contrasts of each event, centred over the classes."""
    size = np.empty(len(rows))
    for block in blocks(len(rows), int(np.prod(contrasts.shape[1:]))):
        part = np.nan_to_num(contrasts[rows[block]])
        total = np.einsum("tnd->tn", part)
        mean = np.einsum("tn,tn->t", total, total) / (part.shape[2] + 1)
        size[block] = np.einsum("tnd,tnd->t", part, part) - mean
    return size


def _too_many(needed: int) -> Note:
    text = f"experts have one weight for all classes: {needed:,} that differ between classes would be too many to learn"
    return Note("class-model", text)


def _one_outcome() -> Note:
    # Otherwise weights would be preferred that call this class the likeliest whatever the forecasts.
    text = "experts have one weight for all classes: every resolved event has the same outcome"
    return Note("class-model", text)


def _not_found(differ: float) -> Note:
    text = f"experts have one weight for all classes: that weights differ has a probability of {differ:.0%}"
    return Note("class-model", text)


def _found(differ: float) -> Note:
    text = f"weights differ between classes with a probability of {differ:.0%}, and count with that"
    return Note("class-model", text)
