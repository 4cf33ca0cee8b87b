"""From resolved events to a panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import brief, one_of
from opinionpool.arrays import Array, frequencies
from opinionpool.blocks import blocks
from opinionpool.errors import ArgumentError, LearningError, Note, PanelError, ShapeError
from opinionpool.estimation.evidence import Evidence, MomentEvidence, RowEvidence, few_enough, option_rows
from opinionpool.estimation.moments import Moments
from opinionpool.estimation.sampling import (
    bounded_sample,
    sample_note,
)
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.default import default_fit
from opinionpool.learning.dependent_events import independent_weight
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.leakage import leakage_notes
from opinionpool.learning.prior import Believed, belief_notes
from opinionpool.learning.recency import learn_recency
from opinionpool.logodds import FLOOR, POOL_FLOOR, public_probabilities
from opinionpool.model.contrasts import contrasts
from opinionpool.model.full_panel import FullPanel
from opinionpool.model.panel import Panel
from opinionpool.model.pooling import Settings
from opinionpool.priors import event_priors, one_outcome_notes, outcome_counts, shared_prior

# Experts with resolved forecasts beyond which they are a crowd, if less than this share of the forecasts is there, and
# from so many events on, or if a dense array would be so large.
CROWD, SPARSE, SEVERAL, LARGE = 500, 0.25, 40, 1 << 26

STRUCTURES = ("auto", "full", "common", "exchangeable", "independent")
CLASS_MODELS = ("auto", "symmetric", "full")


def learn(
    forecasts: Forecasts,
    *,
    prior: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    structure: str = "auto",
    beliefs: Beliefs | str | None = "default",
    class_model: str = "auto",
    floor: float = FLOOR,
    pool_floor: float = POOL_FLOOR,
) -> FittedPanel:
    """Learn a panel from the resolved events among some forecasts.

    Parameters
    ----------
    forecasts : Forecasts
        Its own priors win over `prior`, which fills their blanks.
    prior : float or array_like, shape (T,), or (K,), (T, K) when K > 2, optional
        The reference that the experts share; Laplace's estimate if not given.
    sample_weight : array_like, shape (T,), optional
        Frequencies.
    structure : {"auto", "full", "common", "exchangeable", "independent"}
        "auto" is the default pool (see `opinionpool.learning.default`); many experts, few of whose forecasts are there,
        are learned as a crowd (see `is_crowd` and `opinionpool.learning.crowd`), and a note says so. Of more than
        20,000 events it learns from a sample (see `opinionpool.estimation.sampling`), and a note says so too. With
        `beliefs` None it is "full". Where forecasts are missing, "full" is maximum likelihood (see
        `opinionpool.estimation.em`), and the other structures are estimated from each expert's own forecasts and from
        pairs on the same event.
    beliefs : Beliefs, "default" or None
        What is believed beforehand; "default" is ``Beliefs()``, what is assumed of any panel, and None the data alone
        (5.4). Beliefs that say anything need the structure "auto", and no crowd.
    class_model : {"auto", "symmetric", "full"}
        K > 2: one weight per expert for all classes, or weights that differ between them (model.md, section 3). "auto"
        is "full" where the default pool predicts clearly better with it (see `opinionpool.learning.class_model`), and a
        note says so; with `beliefs` None or another structure it is "symmetric". With `beliefs` None, "full" is linear
        discriminant analysis (see `opinionpool.estimation.lda`). For two classes both are the same.
    floor, pool_floor : float
        Floors (model.md, section 4).

    Raises
    ------
    LearningError
        If the data do not determine the panel.
    ArgumentError
        If the beliefs do not fit the experts.

    Examples
    --------
    >>> f = Forecasts.from_array([[0.2], [0.3], [0.6], [0.4], [0.7], [0.8]], [0, 0, 0, 1, 1, 1])
    >>> learned = learn(f, prior=0.5, beliefs=None)
    >>> learned.weights.round(5), float(learned.pool([0.7]).round(5))
    (array([1.44221]), 0.77241)
    """
    check_options(structure, beliefs)
    class_model = checked_class_model(class_model, structure, forecasts)
    found = _learn(forecasts, prior, sample_weight, structure, beliefs, class_model, Settings(floor, pool_floor))
    notes = found.notes + leakage_notes(forecasts)
    if forecasts.options is None:
        notes += one_outcome_notes(forecasts.classes, found.events)
    return replace(found, notes=notes)


def _learn(
    forecasts: Forecasts,
    prior: npt.ArrayLike | None,
    sample_weight: npt.ArrayLike | None,
    structure: str,
    beliefs: Beliefs | str | None,
    class_model: str,
    settings: Settings,
) -> FittedPanel:
    """The panel, by whatever way its options ask for; arguments as for `learn`."""
    t, k = len(forecasts.events), len(forecasts.classes)
    weight = frequencies(sample_weight, t)
    own = event_priors(forecasts, prior)
    if own is None:
        shared = shared_prior(forecasts, prior, weight)
        reference = np.broadcast_to(shared, (t, k))
    else:
        shared, reference = None, own
    if structure == "auto" and beliefs is not None:
        given = beliefs if isinstance(beliefs, Beliefs) else Beliefs()
        estimated = own is None and prior is None
        return _learn_auto(forecasts, reference, weight, shared, given, class_model, settings, estimated=estimated)
    if class_model == "full":
        return _learn_full(forecasts, reference, weight, shared, settings)
    evidence = _evidence(forecasts, reference, weight, shared, settings.floor)
    found = learn_from(
        evidence,
        shared,
        forecasts.experts,
        forecasts.classes,
        structure=structure,
        floor=settings.floor,
        pool_floor=settings.pool_floor,
    )
    if forecasts.options is None:
        return found
    # There, an event is several rows.
    events, counts = outcome_counts(forecasts, weight), _counts(forecasts, weight)
    return replace(found, events=events, counts=counts, present=np.asarray(forecasts.counts > 0))


def _learn_auto(
    forecasts: Forecasts,
    reference: Array,
    weight: Array,
    shared: Array | None,
    beliefs: Beliefs,
    class_model: str,
    settings: Settings,
    *,
    estimated: bool,
) -> FittedPanel:
    """The default pool, or a crowd, with recency and topics."""
    recency = None
    if forecasts.made is not None and not Believed.of(beliefs, forecasts.experts).assessed:
        kept, each = bounded_sample(forecasts, weight) or (np.arange(len(weight)), np.ones(len(weight)))
        recency = learn_recency(forecasts.select_events(kept), reference[kept], weight[kept] * each, settings.floor)
    if recency is not None:
        forecasts = recency.forecasts(forecasts, reference, settings.floor)
    reduced, notes = independent_weight(forecasts, reference, weight, settings.floor)
    if is_crowd(forecasts, weight):
        _check_crowd(beliefs, class_model)
        found = _learn_crowd(forecasts, reference, reduced, shared, settings)
        found = found.with_topics(forecasts, reference, reduced)
    else:
        few, given, full = forecasts, reference, weight
        sample = bounded_sample(forecasts, weight)
        if sample is not None:
            kept, each = sample
            few, given, estimated = forecasts.select_events(kept), given[kept], False
            reduced, full = reduced[kept] * each, full[kept] * each
            used = int(few.resolved.sum())
            notes = (*notes, sample_note(used, int(forecasts.resolved.sum())))
        found = _learn_default(
            few, given, reduced, shared, beliefs, settings, estimated=estimated, class_model=class_model
        )
        if (reduced < full).any():
            independent = _learn_default(
                few, given, full, shared, beliefs, settings, estimated=estimated, class_model="symmetric"
            )
            found = found.at_least_as_uncertain_as(independent, few, public_probabilities(given))
        found = found.with_topics(few, given, reduced)
        found = replace(found, present=np.asarray(forecasts.counts > 0))
    # Counts are of events as they came.
    counts = _counts(forecasts, weight)
    notes = (*found.notes, *notes, *(() if recency is None else (recency.note(),)))
    events = outcome_counts(forecasts, weight)
    return replace(found, events=events, counts=counts, recency=recency, notes=notes)


def is_crowd(forecasts: Forecasts, weight: Array) -> bool:
    """Whether there are so many experts, and so few forecasts of each, that a weight of its own makes no sense.

    That is so for more than `CROWD` experts with forecasts on resolved events, less than `SPARSE` of whose forecasts
    are there, from `SEVERAL` events on; below, the default predicts no worse on real forecasts. With fewer events it is
    so if an array of events x experts would have more than `LARGE` numbers.
    """
    counted = (forecasts.resolved & (weight > 0))[forecasts.event_index]
    experts = np.count_nonzero(np.bincount(forecasts.expert_index[counted]))
    events = np.count_nonzero(np.bincount(forecasts.event_index[counted]))
    if not experts > CROWD or not counted.sum() < SPARSE * events * experts:
        return False
    return bool(events >= SEVERAL) or _dense_size(forecasts) > LARGE


def _dense_size(forecasts: Forecasts) -> int:
    t, n = forecasts.shape
    return t * n * (len(forecasts.classes) - 1)


def _evidence(forecasts: Forecasts, reference: Array, weight: Array, shared: Array | None, floor: float) -> Evidence:
    """Moments where every expert answered everything; else rows, without an array of cells."""
    event, expert = forecasts.event_index, forecasts.expert_index
    t, n = forecasts.shape
    order = np.lexsort((expert, event))

    def ratios_of(cells: npt.NDArray[np.intp]) -> Array:
        own = reference[:1] if shared is not None else reference[event[cells]]
        ratios = logodds.log_ratios if shared is not None else contrasts
        return ratios(forecasts.probabilities[cells], own, floor)

    outcomes = forecasts.outcomes
    if forecasts.options is not None:
        return option_rows(event[order], expert[order], ratios_of(order), outcomes, weight, forecasts.sizes, n)
    if len(event) < t * n or not few_enough(n, t):
        return RowEvidence(event[order], expert[order], ratios_of(order), outcomes, weight, n)
    d = len(forecasts.classes) - 1
    moments = Moments.empty(forecasts.experts, d + 1)
    for rows in blocks(t, n * d):
        ratios = ratios_of(order[rows.start * n : rows.stop * n]).reshape(-1, n, d)
        moments = moments.add(ratios, outcomes[rows], weight[rows])
    return MomentEvidence(moments)


def _learn_default(
    forecasts: Forecasts,
    reference: Array,
    weight: Array,
    shared: Array | None,
    beliefs: Beliefs,
    settings: Settings,
    *,
    estimated: bool,
    class_model: str,
) -> FittedPanel:
    """The default pool, for any number of resolved events."""
    events, present = outcome_counts(forecasts, weight), np.asarray(forecasts.counts > 0)
    if _dense_size(forecasts) > LARGE:
        # Open events tell little here, and may be too many for an array.
        kept = forecasts.resolved
        forecasts, reference, weight = forecasts.select_events(kept), reference[kept], weight[kept]
    prior = shared if shared is not None else reference[:, None, :]
    expected = logodds.prior_log_ratios(reference)
    beyond = contrasts(forecasts.X, prior, settings.floor, expected[:, None, :])
    believed = Believed.of(beliefs, forecasts.experts)
    sizes = None if forecasts.options is None else forecasts.sizes
    found = default_fit(
        beyond, expected, forecasts.outcomes, weight, forecasts.experts, believed, estimated=estimated, sizes=sizes
    )
    counts = _counts(forecasts, weight)
    bias = logodds.public_log_odds(found.bias)
    settings = settings._replace(extremes=found.extremes)
    panel = Panel.from_parts(found.parts, bias, forecasts.experts, forecasts.classes, settings)
    kind = "default" if counts.any() and not believed.assessed else "assumed"
    notes = found.notes + belief_notes(beliefs, forecasts.experts)
    learned = FittedPanel(panel, shared, kind, events, counts, present, notes, found.marginal, found.uncertainty)
    if class_model == "symmetric":
        return learned
    # Loaded where there are more than two classes.
    from opinionpool.learning.class_model import with_class_model

    return with_class_model(learned, panel, forecasts, beyond, expected, weight, class_model)


def _learn_full(
    forecasts: Forecasts, reference: Array, weight: Array, shared: Array | None, settings: Settings
) -> FittedPanel:
    """The full model from the data alone."""
    from opinionpool.estimation.lda import full_fit

    events, counts = outcome_counts(forecasts, weight), _counts(forecasts, weight)
    present = np.asarray(forecasts.counts > 0)
    kept = forecasts.resolved
    sample, reference = forecasts.select_events(kept), reference[kept][:, None, :]
    found = full_fit(
        contrasts(sample.X, reference, settings.floor),
        sample.outcomes,
        weight[kept],
        forecasts.experts,
        forecasts.classes,
    )
    panel = FullPanel.from_parts(found.parts, found.bias, forecasts.experts, forecasts.classes, settings)
    return FittedPanel(panel, shared, "full", events, counts, present, tuple(found.notes))


def _counts(forecasts: Forecasts, weight: Array) -> Array:
    """Weight of each expert's forecasts on resolved events, (N,)."""
    counted = np.where(forecasts.resolved, weight, 0.0)[forecasts.event_index]
    counts = np.bincount(forecasts.expert_index, weights=counted, minlength=len(forecasts.experts))
    return counts.astype(np.float64, copy=False)


def _learn_crowd(
    forecasts: Forecasts, reference: Array, weight: Array, shared: Array | None, settings: Settings
) -> FittedPanel:
    """The crowd's learner, without an array of cells."""
    # Most panels are no crowd, and should not wait for its learner.
    from opinionpool.learning.crowd import crowd_fit

    expected = logodds.prior_log_ratios(reference)
    event, expert = forecasts.event_index, forecasts.expert_index
    prior = reference[:1] if shared is not None else reference[event]
    known = expected[:1] if shared is not None else expected[event]
    beyond = contrasts(forecasts.probabilities, prior, settings.floor, known)
    absent = None if forecasts.options is None else np.asarray(reference[:, 1:] == 0)
    found = crowd_fit(event, expert, beyond, expected, forecasts.outcomes, weight, forecasts.experts, absent)
    counts, present = _counts(forecasts, weight), np.asarray(forecasts.counts > 0)
    panel = Panel.from_parts(
        found.parts,
        logodds.public_log_odds(found.bias),
        forecasts.experts,
        forecasts.classes,
        settings._replace(extremes=found.extremes),
    )
    answered = int((counts > 0).sum())
    text = (
        f"{answered:,} experts gave {counts.sum() / answered:.3g} forecasts each on resolved events, so they "
        "were learned as "
        f"a crowd: one correlation, features shrunken towards the crowd's, with {found.share:.0%} of their differences"
    )
    notes = (Note("crowd", text), *found.notes)
    return FittedPanel(panel, shared, "crowd", outcome_counts(forecasts, weight), counts, present, notes)


def learn_from(
    evidence: Evidence,
    prior: Array | None,
    experts: Sequence[str],
    classes: Sequence[object],
    *,
    structure: str = "full",
    floor: float = FLOOR,
    pool_floor: float = POOL_FLOOR,
) -> FittedPanel:
    """Learn a panel from evidence by sample averages; `prior` (K,) is subtracted now, None if it was before."""
    # The default pool is no sample average.
    from opinionpool.estimation.structures import sample_parts

    check_options(structure, None)
    if evidence.design.biased and len(classes) != evidence.classes:
        raise ShapeError(f"evidence of {evidence.classes} classes does not fit the labels {tuple(classes)}")
    reference = np.zeros(evidence.classes - 1) if prior is None else logodds.prior_log_ratios(prior)
    kind = "full" if structure == "auto" else structure
    parts, bias, notes = sample_parts(evidence, reference, tuple(experts), tuple(classes), kind)
    biases = logodds.public_log_odds(bias) if evidence.design.biased else 0.0
    panel = Panel.from_parts(parts, biases, experts, classes, Settings(floor, pool_floor))
    _check_weights(panel, evidence.events.sum())
    counts = evidence.marginals.count[:-1].sum(axis=0)
    present = evidence.marginals.count.sum(axis=0) > 0
    return FittedPanel(panel, prior, kind, evidence.events, counts, present, tuple(notes))


def _check_weights(panel: Panel, events: float) -> None:
    """Refuse what the data alone say of experts where no weights follow from it.

    Raises
    ------
    LearningError
        If some experts seem to determine each other, and not to be equally accurate.
    """
    try:
        _ = panel.weights
    except PanelError:
        raise LearningError(
            f"on {events:g} resolved events the forecasts of some experts follow from those of others, so the data "
            "alone leave their weights open; beliefs, as by default, or structure='exchangeable' settle them"
        ) from None


def check_options(structure: str, beliefs: object) -> None:
    """Refuse a structure or beliefs that do not exist, or not together."""
    one_of(structure, "structure", STRUCTURES)
    if isinstance(beliefs, Beliefs):
        if structure != "auto" and not beliefs.any_panel:
            raise ArgumentError(f"beliefs meet data with structure='auto', and it is {structure!r}")
    elif beliefs is not None and not (isinstance(beliefs, str) and beliefs == "default"):
        raise ArgumentError(
            f'beliefs must be Beliefs, "default" or None, and it is {brief(beliefs)}; op.Beliefs(correlation=0.6) '
            "makes some"
        )


def checked_class_model(class_model: str, structure: str, forecasts: Forecasts) -> str:
    """The class model that is to be learned, where there is a choice; "symmetric" is that of two classes.

    Raises
    ------
    ArgumentError
        If there is no such model, or not for this structure or these forecasts.
    """
    one_of(class_model, "class_model", CLASS_MODELS)
    if len(forecasts.classes) == 2:
        return "symmetric"
    if forecasts.even is not None:
        if class_model == "full":
            raise ArgumentError(
                "events have options of their own, which have no order, so no weight can be that of one of them; use "
                "class_model='symmetric'"
            )
        return "symmetric"
    if class_model == "full" and structure not in {"auto", "full"}:
        raise ArgumentError(
            f"class_model='full' learns a covariance over all classes, and the structure is {structure!r}; use "
            "structure='auto'"
        )
    return class_model


def _check_crowd(beliefs: Beliefs | str, class_model: str) -> None:
    if class_model == "full":
        raise ArgumentError(
            f"more than {CROWD} experts with few forecasts each are learned as a crowd, whose weights are the same for "
            "all classes; use class_model='auto', or choose experts"
        )
    if isinstance(beliefs, Beliefs) and not beliefs.any_panel:
        raise ArgumentError(
            f"beliefs are about panels, and more than {CROWD} experts with few forecasts each are learned as a crowd, "
            "which takes none; leave the beliefs out, or choose experts"
        )
