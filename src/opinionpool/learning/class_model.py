"""Whether weights differ between classes: the choice between the class-symmetric and the full model, by the data.

Both are judged by events that were left out, each set with its date or group, if there is one. What the full model
would have learned without them takes one step of Newton's method: from the symmetric model, to see whether weights are
worth learning at all, and from what was learned, to see whether it holds (Rad and Maleki, JRSS B 82, 2020). The
symmetric model has seen these events, which favours it a little, and it is believed to be right about some more
(`opinionpool.learning.class_model`). The full model is taken where its mean log score is better by more than twice its
standard error; weights are then averaged over how far they may differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.blocks import blocks
from opinionpool.clusters import by_date, by_group
from opinionpool.errors import LearningError, Note
from opinionpool.estimation.left_out import LeftOut
from opinionpool.estimation.likelihood import Design, row_basis
from opinionpool.estimation.newton import Mode, posterior_modes, posterior_probabilities
from opinionpool.estimation.sampling import size_ranks, spread_evenly
from opinionpool.forecasts import Forecasts
from opinionpool.learning.class_weights import ClassUncertainty, ClassWeights, Spreads
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.problem import DenseContrasts
from opinionpool.model.panel import Panel

# How many of its standard errors a gain must be.
CLEAR = 2.0
# What the symmetric panel is believed to know of events, as if so many had been seen that happened as it says. Without
# it, weights that are too sure seem better as long as no event has come out against them.
WORTH = 15.0


class Gain(NamedTuple):
    """By how much the log score of events that were left out is better, each, and its standard error."""

    mean: float
    error: float

    @property
    def clear(self) -> bool:
        """Whether this is more than chance."""
        return self.mean > CLEAR * self.error


class Found(NamedTuple):
    """The most probable coefficients (P,), the last of which may be 0, and the mode that they are by a scale."""

    coefficients: Array
    mode: Mode
    scale: Array

    def covariance(self) -> Array:
        """Of the coefficients given the outcomes, (P, P)."""
        p, kept = len(self.coefficients), len(self.scale)
        found = np.zeros((p, p))
        found[:kept, :kept] = self.scale[:, None] * self.mode.covariance * self.scale
        return found


@dataclass(frozen=True, eq=False)
class ClassEvidence:
    """What resolved events say of differences between classes; P coefficients of F features for K - 1 log-ratios.

    Attributes
    ----------
    design : Design
        Of T events, each of which counts for so many independent ones; offsets are log-ratios by the symmetric panel.
    member : ndarray of int, shape (T,)
        The set of events, 0 to S - 1, that is left out with it.
    """

    design: Design
    member: Index

    @cached_property
    def sets(self) -> list[Index]:
        """The events of each set, S of them."""
        order = np.argsort(self.member, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.member))[:-1])

    def near(self, coefficients: Array) -> LeftOut:
        """The likelihood without each set near some coefficients."""
        return LeftOut(self.design, self.sets, coefficients)

    def gain(self, roots: Array, near: LeftOut) -> Gain:
        """What weights learned without the events that they predict gain, by a step of Newton's.

        `roots` are standard deviations of the coefficients, 0 for none but the last ones that are no part of this.
        """
        after = near.moved(roots[: np.count_nonzero(roots)] ** -2.0)
        before, after = _log_probabilities(self.design.offset.T), _log_probabilities(after)
        happened, weight = self.design.outcomes[:, None], self.design.weight
        gained = self._sums(weight * np.take_along_axis(after - before, happened, axis=1)[:, 0])
        lost = float(np.einsum("t,tk,tk->", weight, np.exp(before), before - after))
        events, total = self._sums(weight), weight.sum()
        mean = (gained.sum() - WORTH * lost / total) / (total + WORTH)
        deviation = gained - gained.sum() / total * events
        error = np.sqrt(np.square(deviation).sum() * len(events) / (len(events) - 1)) / (total + WORTH)
        return Gain(float(mean), float(error))

    def fit(self, roots: Array, start: Array | None = None) -> Found:
        """The most probable coefficients, which do not depend on where to start."""
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

    def _sums(self, values: Array) -> Array:
        """Sums over each set, (S,)."""
        return np.asarray(np.bincount(self.member, weights=values))


# How far weights may differ between classes; averaged by how well each predicts the outcomes.
SPREADS = (Spreads(0.1, 0.0), Spreads(0.3, 0.1), Spreads(0.3, 0.3), Spreads(1.0, 0.3), Spreads(1.0, 1.0))
# The first ones say whether weights are worth learning: where they gain most with larger ones, they gain clearly with
# these too. Of 1,090 simulated panels one was decided otherwise than by all, and rightly.
FIRST = 3
# One that is less probable than this is left out of the average.
NEGLIGIBLE = 1e-3
# Sets of events to leave out: so many, and not fewer than that, as a standard error is estimated from them.
SETS, FEWEST = 20, 10
# Numbers in the largest array; more events are thinned.
LARGE = 1 << 23
# Coefficients up to which the data are asked, and up to which they are learned.
ASKED, MOST = 600, 2000


def with_class_model(
    learned: FittedPanel, panel: Panel, forecasts: Forecasts, data: DenseContrasts, class_model: str
) -> FittedPanel:
    """What was learned, with weights that differ between classes if the data, or `class_model`, ask for it.

    Parameters
    ----------
    learned : FittedPanel
        The default pool.
    panel : Panel
        Its panel.
    forecasts : Forecasts
    data : DenseContrasts
        Theirs; weights say how many independent events each is worth.
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
    worth, needed = float(data.weight[used].sum()), len(weights.first) * weights.free**2
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
    elif worth < needed or weights.size > ASKED:
        return _with(learned, _too_few(worth, needed) if worth < needed else _too_many(needed))
    elif (data.outcomes[used] == data.outcomes[used][0]).all():
        return _with(learned, _one_outcome())
    evidence = _evidence(weights, forecasts, data, used)
    if class_model == "auto":
        return _chosen(learned, weights, evidence)
    return _differing(learned, weights, *_average(*_fits(weights, evidence)))


def _chosen(learned: FittedPanel, weights: ClassWeights, evidence: ClassEvidence) -> FittedPanel:
    """The full model, if it is clearly better, at first sight and for good."""
    if len(evidence.sets) < FEWEST:
        return _with(learned, _few_sets())
    roots = [weights.feature_roots(spreads) for spreads in SPREADS]
    symmetric = evidence.near(np.zeros(evidence.design.size))
    gain = max(evidence.gain(each, symmetric) for each in roots[:FIRST])
    if gain.clear:
        found, probability = _fits(weights, evidence)
        best = int(np.argmax(probability))
        gain = evidence.gain(roots[best], evidence.near(found[best].coefficients))
        if gain.clear:
            return _with(_differing(learned, weights, *_average(found, probability)), _gained(gain))
    return _with(learned, _no_gain(gain))


def _fits(weights: ClassWeights, evidence: ClassEvidence) -> tuple[list[Found], Array]:
    """What is most probable for each spread, and how probable that is."""
    found: list[Found] = []
    for spreads in SPREADS:
        found.append(evidence.fit(weights.feature_roots(spreads), found[-1].coefficients if found else None))
    score = [each.mode.log_marginal_likelihood for each in found]
    return found, posterior_probabilities(score, (1.0 / len(SPREADS),) * len(SPREADS))


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
    """The full model by coefficients of features."""
    turn, common, uncertainty = weights.from_features, learned.uncertainty, None
    if common is not None:
        differences = turn @ covariance @ turn.T
        uncertainty = ClassUncertainty(common.covariance, weights, differences, sums=common.sums, limits=common.limits)
    # What topics add to the symmetric panel's answers was learned together with that.
    return replace(learned, panel=weights.full_panel(turn @ coefficients), uncertainty=uncertainty, topics=None)


def _with(learned: FittedPanel, note: Note) -> FittedPanel:
    return replace(learned, notes=(*learned.notes, note))


def _evidence(weights: ClassWeights, forecasts: Forecasts, data: DenseContrasts, used: Mask) -> ClassEvidence:
    """Of events that are spread evenly where there are too many."""
    rows = np.flatnonzero(used)
    size, worth = _sizes(data.contrasts, rows), data.weight[rows]
    member = _sets(forecasts, rows, size, worth)
    most = max(1, LARGE // (weights.size * weights.free))
    if len(rows) > most:
        kept, parts = spread_evenly(size, worth, most)
        worth = parts * (worth.sum() / most)
        rows, member = rows[kept], np.unique(member[kept], return_inverse=True)[1]
    believed = weights.panel.settings.extremes.believed(data.contrasts[rows])
    offset = data.reference[rows] + weights.pooled(believed)
    design = Design.of(np.empty((len(rows), 0, weights.free)), data.outcomes[rows], offset, worth)
    features = np.ascontiguousarray(weights.features(believed).T)
    return ClassEvidence(replace(design, features=features, basis=weights.feature_turn), member)


def _log_probabilities(ratios: Array) -> Array:
    """Return log-probabilities (T, K) of log-ratios (T, K - 1)."""
    full = np.concatenate([np.zeros((len(ratios), 1)), ratios], axis=1)
    return np.asarray(full - np.logaddexp.reduce(full, axis=1, keepdims=True))


def _sizes(contrasts: Array, rows: Index) -> Array:
    """Sum of squares of the contrasts of each event, centred over the classes."""
    size = np.empty(len(rows))
    for block in blocks(len(rows), int(np.prod(contrasts.shape[1:]))):
        part = np.nan_to_num(contrasts[rows[block]])
        total = np.einsum("tnd->tn", part)
        mean = np.einsum("tn,tn->t", total, total) / (part.shape[2] + 1)
        size[block] = np.einsum("tnd,tnd->t", part, part) - mean
    return size


def _sets(forecasts: Forecasts, rows: Index, size: Array, weight: Array) -> Index:
    """Up to `SETS` sets of events that are left out together: neighbours in time, groups, or else dealt by size."""
    clusters = by_group(forecasts) or by_date(forecasts)
    if clusters is None:
        # Events that say the same stay together, so that it plays no part how often a row is repeated.
        return np.asarray(size_ranks(size) % SETS)
    _, member = np.unique(clusters.member[rows], return_inverse=True)
    reached = np.cumsum(np.bincount(member, weights=weight))
    block = np.minimum((reached / reached[-1] * SETS - 1e-9).astype(np.intp), SETS - 1)
    return np.asarray(np.unique(block[member], return_inverse=True)[1])


def _too_many(needed: int) -> Note:
    text = f"experts have one weight for all classes: {needed:,} that differ between classes would be too many to learn"
    return Note("class-model", text)


def _too_few(worth: float, needed: int) -> Note:
    text = (
        f"experts have one weight for all classes: {worth:.3g} independent events are too few to learn {needed:,} that "
        "differ between classes"
    )
    return Note("class-model", text)


def _few_sets() -> Note:
    text = "experts have one weight for all classes: too few different events, dates or groups to judge others by"
    return Note("class-model", text)


def _one_outcome() -> Note:
    # Otherwise weights would be preferred that call this class the likeliest whatever the forecasts.
    text = "experts have one weight for all classes: every resolved event has the same outcome"
    return Note("class-model", text)


def _no_gain(best: Gain) -> Note:
    text = (
        "experts have one weight for all classes: weights that differ between classes are not clearly better on "
        f"events left out (log score {best.mean:+.3f} each, standard error {best.error:.3f})"
    )
    return Note("class-model", text)


def _gained(best: Gain) -> Note:
    text = (
        "weights differ between classes, which is clearly better on events left out (log score "
        f"{best.mean:+.3f} each, standard error {best.error:.3f})"
    )
    return Note("class-model", text)
