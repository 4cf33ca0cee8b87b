"""Whether weights differ between classes: the choice between the class-symmetric and the full model, by the data.

Both are judged by events that were left out, each set with its date or group, if there is one. What the full model
would have learned without them takes one step of Newton's method from the symmetric one (as in Rad and Maleki, JRSS B
82, 2020), the symmetric one has seen them; that favours the symmetric one a little. The full model is taken where its
mean log score is better by more than twice its standard error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.classdoubt import ClassDoubt
from opinionpool.classevidence import ClassEvidence
from opinionpool.classweights import ClassWeights, Spreads
from opinionpool.clusters import by_date, by_group
from opinionpool.errors import LearningError, Note
from opinionpool.forecasts import Forecasts
from opinionpool.learned import LearnedPanel
from opinionpool.logodds import Array
from opinionpool.panel import Panel
from opinionpool.patterns import Positions
from opinionpool.stated import BLOCK
from opinionpool.thinning import spread_evenly

# How far weights may differ between classes; of these, the one that predicts best.
SPREADS = (Spreads(0.1, 0.0), Spreads(0.3, 0.1), Spreads(0.3, 0.3), Spreads(1.0, 0.3), Spreads(1.0, 1.0))
# Sets of events to leave out: so many, and not fewer than that, as an error is told from them.
SETS, FEWEST = 20, 10
# How many of its standard errors a gain must be.
CLEAR = 2.0
# Numbers in the largest array; more events are thinned.
LARGE = 1 << 24
# Coefficients that are learned, at most.
MOST = 1000


class Gain(NamedTuple):
    """What some spreads of the weights are worth."""

    spreads: Spreads
    mean: float
    error: float

    @property
    def clear(self) -> bool:
        """Whether this is more than chance."""
        return self.mean > CLEAR * self.error


def with_class_model(
    learned: LearnedPanel,
    panel: Panel,
    forecasts: Forecasts,
    contrasts: Array,
    reference: Array,
    weight: Array,
    class_model: str,
) -> LearnedPanel:
    """What was learned, with weights that differ between classes if the data, or `class_model`, ask for it.

    Parameters
    ----------
    learned : LearnedPanel
        The default pool.
    panel : Panel
        Its panel.
    forecasts : Forecasts
    contrasts : ndarray, shape (T, N, K - 1)
        L − L°, NaN where missing.
    reference : ndarray, shape (T, K - 1)
        L°.
    weight : ndarray, shape (T,)
        How many independent events each is worth.
    class_model : {"auto", "full"}
    """
    weights = ClassWeights(panel)
    coefficients = len(weights.roots(SPREADS[0]))
    if not len(weights.audible):
        return learned
    used = forecasts.resolved & (weight > 0) & ~np.isnan(contrasts[:, weights.audible, 0]).all(axis=1)
    worth, needed = float(weight[used].sum()), len(weights.audible) * weights.free**2
    nothing = learned.structure == "assumed" or not used.any()
    if class_model == "auto" and nothing:
        return learned
    if class_model == "auto" and (worth < needed or coefficients > MOST):
        return _with(learned, _too_few(worth, needed) if worth < needed else _too_many(needed))
    if coefficients > 2 * MOST:
        raise LearningError(
            f"weights that differ between classes would be {needed:,} numbers, and this learns them for up to about "
            f"{2 * MOST:,}; use class_model='symmetric', or choose experts"
        )
    if nothing:
        return _differing(learned, weights, np.zeros(coefficients), np.zeros((coefficients, coefficients)))
    evidence = _evidence(weights, forecasts, contrasts, reference, weight, used)
    gains = _gains(weights, evidence)
    best = max(gains, key=lambda gain: gain.mean, default=Gain(SPREADS[0], 0.0, np.inf))
    if class_model == "auto" and not best.clear:
        return _with(learned, _no_gain(best) if gains else _few_sets())
    chosen = _differing(learned, weights, *evidence.fit(weights.roots(best.spreads)))
    return _with(chosen, _gained(best)) if class_model == "auto" else chosen


def _differing(learned: LearnedPanel, weights: ClassWeights, found: Array, covariance: Array) -> LearnedPanel:
    doubt = None if learned.doubt is None else ClassDoubt(learned.doubt.covariance, weights, covariance)
    return replace(learned, panel=weights.full_panel(found), doubt=doubt)


def _with(learned: LearnedPanel, note: Note) -> LearnedPanel:
    return replace(learned, notes=(*learned.notes, note))


def _gains(weights: ClassWeights, evidence: ClassEvidence) -> list[Gain]:
    """What each spread is worth; nothing where events are too few, or belong together too much, to tell."""
    if evidence.member.max() + 1 < FEWEST:
        return []
    found = evidence.gains([weights.roots(spreads) for spreads in SPREADS])
    return [Gain(spreads, *gain) for spreads, gain in zip(SPREADS, found, strict=True)]


def _evidence(
    weights: ClassWeights,
    forecasts: Forecasts,
    contrasts: Array,
    reference: Array,
    weight: Array,
    used: npt.NDArray[np.bool_],
) -> ClassEvidence:
    """Of events that are spread evenly where there are too many."""
    rows = np.flatnonzero(used)
    size, worth = _sizes(contrasts, rows), weight[rows]
    member = _sets(forecasts, rows, size, worth)
    most = max(1, LARGE // (len(weights.roots(SPREADS[0])) * weights.free))
    if len(rows) > most:
        kept, worth = spread_evenly(size, worth, most)
        rows, member = rows[kept], np.unique(member[kept], return_inverse=True)[1]
    believed = weights.panel.settings.extremes.believed(contrasts[rows])
    offset = reference[rows] + weights.pooled(believed)
    return ClassEvidence(weights.design(believed), offset, forecasts.outcomes[rows], worth, member)


def _sizes(contrasts: Array, rows: Positions) -> Array:
    """Sum of squares of what was said of each event beyond the prior, centred over the classes."""
    size, step = np.empty(len(rows)), max(1, BLOCK // max(1, int(np.prod(contrasts.shape[1:]))))
    for first in range(0, len(rows), step):
        part = np.nan_to_num(contrasts[rows[first : first + step]])
        mean = np.square(part.sum(axis=2)).sum(axis=1) / (part.shape[2] + 1)
        size[first : first + step] = np.square(part).sum(axis=(1, 2)) - mean
    return size


def _sets(forecasts: Forecasts, rows: Positions, size: Array, weight: Array) -> Positions:
    """Up to `SETS` sets of events that are left out together: neighbours in time, groups, or else dealt by size."""
    clusters = by_group(forecasts) or by_date(forecasts)
    if clusters is None:
        # Events that say the same stay together, so that it plays no part how often a row is repeated.
        return np.asarray(np.unique(size, return_inverse=True)[1] % SETS)
    _, member = np.unique(clusters.member[rows], return_inverse=True)
    reached = np.cumsum(np.bincount(member, weights=weight))
    block = np.minimum((reached / reached[-1] * SETS - 1e-9).astype(np.intp), SETS - 1)
    return np.asarray(np.unique(block[member], return_inverse=True)[1])


def _too_many(needed: int) -> Note:
    text = f"experts have one weight for all classes: {needed:,} that differ between classes would be too many to learn"
    return Note("class-model", text)


def _too_few(worth: float, needed: int) -> Note:
    text = (
        f"experts have one weight for all classes: {worth:.3g} independent events are too few to learn "
        f"{needed:,} that differ between classes"
    )
    return Note("class-model", text)


def _few_sets() -> Note:
    return Note(
        "class-model",
        "experts have one weight for all classes: too few different events, dates or groups to judge others by",
    )


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
