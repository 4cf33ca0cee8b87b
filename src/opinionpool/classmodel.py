"""Whether weights differ between classes: the choice between the class-symmetric and the full model, by the data.

Both are judged by events that were left out, each set with its date or group, if there is one. What the full model
would have learned without them takes one step of Newton's method: from the symmetric model, to see whether weights are
worth learning at all, and from what was learned, to see whether it holds (Rad and Maleki, JRSS B 82, 2020). The
symmetric model has seen these events, which favours it a little, and it is believed to be right about some more
(`opinionpool.classevidence`). The full model is taken where its mean log score is better by more than twice its
standard error; weights are then averaged over how far they may differ.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from opinionpool.blockwise import blocks
from opinionpool.classdoubt import ClassDoubt
from opinionpool.classevidence import ClassEvidence, Found, Gain
from opinionpool.classweights import ClassWeights, Spreads
from opinionpool.clusters import by_date, by_group
from opinionpool.errors import LearningError, Note
from opinionpool.forecasts import Forecasts
from opinionpool.learned import LearnedPanel
from opinionpool.logodds import Array
from opinionpool.panel import Panel
from opinionpool.patterns import Mask, Positions
from opinionpool.regression import chances
from opinionpool.thinning import spread_evenly

# How far weights may differ between classes; averaged by how well each predicts the outcomes.
SPREADS = (Spreads(0.1, 0.0), Spreads(0.3, 0.1), Spreads(0.3, 0.3), Spreads(1.0, 0.3), Spreads(1.0, 1.0))
# One that is less probable than this is left out of the average.
NEGLIGIBLE = 1e-3
# Sets of events to leave out: so many, and not fewer than that, as an error is told from them.
SETS, FEWEST = 20, 10
# Numbers in the largest array; more events are thinned.
LARGE = 1 << 23
# Coefficients up to which the data are asked, and up to which they are learned.
ASKED, MOST = 600, 2000


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

    Raises
    ------
    LearningError
        If "full" would have too many weights.
    """
    weights = ClassWeights(panel)
    if not len(weights.audible):
        return learned
    used = forecasts.resolved & (weight > 0) & ~np.isnan(contrasts[:, weights.audible, 0]).all(axis=1)
    nothing = learned.structure == "assumed" or not used.any()
    worth, needed = float(weight[used].sum()), len(weights.first) * weights.free**2
    if class_model == "full":
        if weights.size > MOST:
            raise LearningError(
                f"weights that differ between classes would be {needed:,} numbers, and this learns them for up to "
                f"about {MOST:,}; use class_model='symmetric', or choose experts"
            )
        if nothing:
            return _differing(learned, weights, Found(np.zeros(weights.size), np.zeros((weights.size,) * 2), 0.0))
    elif nothing:
        return learned
    elif worth < needed or weights.size > ASKED:
        return _with(learned, _too_few(worth, needed) if worth < needed else _too_many(needed))
    elif (forecasts.outcomes[used] == forecasts.outcomes[used][0]).all():
        return _with(learned, _one_outcome())
    evidence = _evidence(weights, forecasts, contrasts, reference, weight, used)
    if class_model == "auto":
        return _chosen(learned, evidence)
    return _differing(learned, weights, _average(*_fits(evidence)))


def _chosen(learned: LearnedPanel, evidence: ClassEvidence) -> LearnedPanel:
    """The full model, if it is clearly better, at first sight and for good."""
    if evidence.sets < FEWEST:
        return _with(learned, _few_sets())
    start = np.zeros(evidence.weights.size)
    gain = max(evidence.gain(spreads, start, evidence.at_symmetry) for spreads in SPREADS)
    if gain.clear:
        found, chance = _fits(evidence)
        best = int(np.argmax(chance))
        likeliest = found[best].coefficients
        gain = evidence.gain(SPREADS[best], likeliest, evidence.slopes(likeliest))
        if gain.clear:
            return _with(_differing(learned, evidence.weights, _average(found, chance)), _gained(gain))
    return _with(learned, _no_gain(gain))


def _fits(evidence: ClassEvidence) -> tuple[list[Found], Array]:
    """What is most probable for each spread, and how probable that is."""
    found = [evidence.fit(spreads) for spreads in SPREADS]
    return found, chances([each.evidence for each in found], (1.0 / len(SPREADS),) * len(SPREADS))


def _average(found: list[Found], chance: Array) -> Found:
    """Coefficients averaged over how far weights differ."""
    kept = np.flatnonzero(chance > NEGLIGIBLE)
    share = chance[kept] / chance[kept].sum()
    values = np.array([found[i].coefficients for i in kept])
    mean = share @ values
    covariance = np.einsum("s,si,sj->ij", share, values - mean, values - mean)
    for part, i in zip(share, kept, strict=True):
        covariance += part * found[i].covariance
    return Found(mean, covariance, float(np.max([each.evidence for each in found])))


def _differing(learned: LearnedPanel, weights: ClassWeights, found: Found) -> LearnedPanel:
    doubt = None if learned.doubt is None else ClassDoubt(learned.doubt.covariance, weights, found.covariance)
    return replace(learned, panel=weights.full_panel(found.coefficients), doubt=doubt)


def _with(learned: LearnedPanel, note: Note) -> LearnedPanel:
    return replace(learned, notes=(*learned.notes, note))


def _evidence(
    weights: ClassWeights, forecasts: Forecasts, contrasts: Array, reference: Array, weight: Array, used: Mask
) -> ClassEvidence:
    """Of events that are spread evenly where there are too many."""
    rows = np.flatnonzero(used)
    size, worth = _sizes(contrasts, rows), weight[rows]
    member = _sets(forecasts, rows, size, worth)
    most = max(1, LARGE // (weights.size * weights.free))
    if len(rows) > most:
        kept, parts = spread_evenly(size, worth, most)
        worth = parts * (worth.sum() / most)
        rows, member = rows[kept], np.unique(member[kept], return_inverse=True)[1]
    believed = weights.panel.settings.extremes.believed(contrasts[rows])
    offset = reference[rows] + weights.pooled(believed)
    return ClassEvidence(weights, weights.design(believed), offset, forecasts.outcomes[rows], worth, member)


def _sizes(contrasts: Array, rows: Positions) -> Array:
    """Sum of squares of what was said of each event beyond the prior, centred over the classes."""
    size = np.empty(len(rows))
    for block in blocks(len(rows), int(np.prod(contrasts.shape[1:]))):
        part = np.nan_to_num(contrasts[rows[block]])
        mean = np.square(part.sum(axis=2)).sum(axis=1) / (part.shape[2] + 1)
        size[block] = np.square(part).sum(axis=(1, 2)) - mean
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
        f"experts have one weight for all classes: {worth:.3g} independent events are too few to learn {needed:,} that "
        "differ between classes"
    )
    return Note("class-model", text)


def _few_sets() -> Note:
    text = "experts have one weight for all classes: too few different events, dates or groups to judge others by"
    return Note("class-model", text)


def _one_outcome() -> Note:
    # Otherwise weights would be preferred that call this class the likeliest whatever is said.
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
