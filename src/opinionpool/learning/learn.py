"""Learning of a panel from resolved events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError, LearningError, Note, PanelError
from opinionpool.estimation.sampling import sample_of
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.constants import CROWD, SEVERAL, SPARSE
from opinionpool.learning.default import default_fit
from opinionpool.learning.dependent_events import independent_weight
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.leakage import leakage_notes
from opinionpool.learning.levels import Coding, rounded_zeros
from opinionpool.learning.prior import Believed, belief_notes
from opinionpool.learning.problem import Problem, Request, Source, Sums
from opinionpool.learning.recency import Recency, learn_recency
from opinionpool.learning.rows import DenseContrasts
from opinionpool.learning.unlearned import MOST_UNCERTAIN, DefaultFit
from opinionpool.logodds import FLOOR, POOL_FLOOR
from opinionpool.model.contrasts import contrasts
from opinionpool.model.full_panel import FullPanel
from opinionpool.model.panel import Panel
from opinionpool.model.pooling import Settings
from opinionpool.priors import one_outcome_notes

# Numbers in a dense array beyond which experts are a crowd, however many forecasts are there.
LARGE = 1 << 26
# What is less probable is not named.
LEAST = 0.01


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
        Events' own priors are used before `prior`, which replaces missing ones.
    prior : float or array_like, shape (T,), or (K,), (T, K) when K > 2, optional
        The reference that the experts share; Laplace's estimate if not given.
    sample_weight : array_like, shape (T,), optional
        How often each event counts.
    structure : {"auto", "full", "common", "exchangeable", "independent"}
        How experts' errors depend: "full" any covariance, "common" one correlation, "exchangeable" one correlation of
        equal experts, "independent" no correlation; "auto" is the default pool (`opinionpool.learning.default`), or
        "full" if `beliefs` is None. Many experts with few forecasts each are learned as a crowd by "auto" (`is_crowd`,
        `opinionpool.learning.crowd`). From more than 20,000 events, "auto" learns hyperparameters by a sample
        (`opinionpool.estimation.sampling`), weights and covariances by all. Notes mention both. If forecasts are
        missing, "full" is maximum likelihood (`opinionpool.estimation.em`), and the other structures are estimated
        from each expert's own forecasts and from pairs on the same event.
    beliefs : Beliefs, "default" or None
        Beliefs before any outcome; "default" is ``Beliefs()``, the assumptions about any panel, and None uses only the
        data (paper, section 5.4). Other beliefs than the default need the structure "auto"; with beliefs about experts
        by name, experts are not learned as a crowd.
    class_model : {"auto", "symmetric", "full"}
        For K > 2: "symmetric", one weight per expert for all classes, or "full", weights that differ between classes
        (model.md, section 3). "auto" averages both by posterior probability (`opinionpool.learning.class_model`), which
        a note tells; with `beliefs` None or another structure it is "symmetric". With `beliefs` None, "full" is linear
        discriminant analysis (`opinionpool.estimation.lda`). For two classes both are the same.
    floor, pool_floor : float
        Lower bounds of forecasts and of answers (model.md, section 4).

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
    request = Request(structure, beliefs, class_model, Settings(floor, pool_floor))
    return learn_from(Problem.of(forecasts, prior, sample_weight), request)


def learn_from(source: Source, request: Request) -> FittedPanel:
    """Learn a panel from the resolved events of a source, by the method that `request` asks for.

    The panel's counts of events and forecasts are those of the source; notes say what is unusual about the forecasts.
    """
    request = request.about(len(source.classes), options=source.has_options)
    learned: Sums | Problem
    if request.by_moments:
        learned = source.sums(request) or source.problem().sums(request)
        found = _learn_averages(learned, source, request)
    else:
        learned = source.problem()
        if request.believed is None:
            found = _learn_full(learned, request.settings)
        else:
            found = _learn_by_beliefs(learned, request.believed, request)
    seen = learned.seen
    notes = found.notes + leakage_notes(source.experts, learned.leaked)
    if not source.has_options:
        notes += one_outcome_notes(source.classes, seen.events)
    if isinstance(learned, Problem) and not request.answers_only:
        notes += learned.contrary_notes
    if all(note.code != "hyperparameters" for note in notes):
        notes += seen.notes
    return replace(found, events=seen.events, counts=seen.counts, present=seen.present, notes=notes)


def _learn_by_beliefs(problem: Problem, beliefs: Beliefs, request: Request) -> FittedPanel:
    """Learn a panel by the default pool, or as a crowd, with decay of forecasts by age and with topics."""
    problem = replace(problem, topics=problem.learnable_topics)
    floor, recency, assessed = request.settings.floor, None, Believed.of(beliefs, problem.experts).assessed
    crowd = not assessed and is_crowd(problem.forecasts, problem.weight) and _by_features(problem, beliefs, request)
    timed = problem.forecasts.made is not None and not assessed
    drawn = sample_of(problem.forecasts, problem.weight) if problem.whole is None and (timed or not crowd) else None
    some = problem if drawn is None else problem.sampled(drawn)
    zero = rounded_zeros(some.forecasts, floor)
    coding = Coding.of(problem, zero * (not (crowd or assessed)))
    problem = replace(problem, forecasts=coding.forecasts(problem.forecasts))
    if timed:
        some = problem if drawn is None else problem.sampled(drawn)
        recency = learn_recency(some.forecasts, some.reference, some.weight, floor)
    if recency is not None:
        problem = replace(problem, forecasts=recency.forecasts(problem.forecasts, problem.reference, floor))
    reduced, compared, notes = independent_weight(problem.forecasts, problem.reference, problem.weight, floor)
    some = replace(problem, weight=reduced, compared=compared)
    found = _learn_crowd(some, beliefs, request.settings) if crowd else None
    if found is None:
        if drawn is not None:
            some = some.sampled(drawn)
        elif problem.parts is not None and (reduced == problem.weight).all():
            # How much dependent events tell shows where all are in memory only.
            some = replace(problem, blocks=partial(_all_blocks, problem, coding, recency))
        if some.blocks is not None:
            resolved = problem.forecasts.resolved if drawn is not None else problem.seen.events
            notes = (*notes, _hyperparameters_note(int(some.forecasts.resolved.sum()), int(resolved.sum())))
        found = _learn_default(some, beliefs, request)
    if found.posterior is not None and not request.answers_only:
        found = replace(found, known=replace(some, blocks=None, parts=None))
    about = () if found.topics is None else (found.topics.note(),)
    notes = (*found.notes, *about, *notes, *(() if recency is None else (recency.note(),)))
    return replace(found, recency=recency, coding=coding if coding.changes else None, notes=notes)


def _all_blocks(problem: Problem, coding: Coding, recency: Recency | None, floor: float) -> Iterator[DenseContrasts]:
    """Yield the events of all parts in blocks; votes and scores become probabilities, old forecasts are discounted."""
    assert problem.parts is not None
    for part in problem.parts():
        forecasts = coding.forecasts(part.forecasts)
        forecasts = forecasts if recency is None else recency.forecasts(forecasts, part.reference, floor)
        yield from replace(part, forecasts=forecasts, topics=problem.topics).in_blocks(floor)


def _hyperparameters_note(used: int, resolved: int) -> Note:
    text = (
        f"weights are from all {resolved:,} resolved events, how experts depend on each other and how far extremes are "
        f"believed from {used:,} of them"
    )
    return Note("hyperparameters", text, used)


def is_crowd(forecasts: Forecasts, weight: Array) -> bool:
    """Return True if experts are too many, with too few forecasts each, to learn a weight for each expert.

    A crowd has more than `CROWD` experts, who made less than the share `SPARSE` of all possible forecasts, and at least
    `SEVERAL` resolved events, as a crowd's features are too uncertain with fewer. With fewer resolved events it is
    still a crowd if an array of events x experts would have more than `LARGE` numbers, and any forecast is on a
    resolved event. `weight` (T,) is how often each event counts.
    """
    if len(forecasts.experts) <= CROWD:
        return False
    counted = (weight > 0)[forecasts.event_index]
    experts = np.count_nonzero(np.bincount(forecasts.expert_index[counted]))
    events = np.count_nonzero(np.bincount(forecasts.event_index[counted]))
    if not (experts > CROWD and counted.sum() < SPARSE * events * experts):
        return False
    known = counted & forecasts.resolved[forecasts.event_index]
    resolved = np.count_nonzero(np.bincount(forecasts.event_index[known]))
    return bool(resolved >= SEVERAL or (resolved > 0 and _dense_size(forecasts) > LARGE))


def _dense_size(forecasts: Forecasts) -> int:
    t, n = forecasts.shape
    return t * n * (len(forecasts.classes) - 1)


def _dense(problem: Problem, floor: float) -> DenseContrasts:
    """Return log-ratios less the prior's as an array; of resolved events only, if all would be too large."""
    some = problem.select(problem.forecasts.resolved) if _dense_size(problem.forecasts) > LARGE else problem
    return some.dense(floor)


def _learn_default(problem: Problem, beliefs: Beliefs, request: Request) -> FittedPanel:
    """Learn a panel by the default pool, for any number of resolved events."""
    data, believed = _dense(problem, request.settings.floor), Believed.of(beliefs, problem.experts)
    every = problem.blocks and partial(problem.blocks, request.settings.floor)
    found = default_fit(data, believed, answers_only=request.answers_only, every=every)
    kind = "default" if problem.counts.any() and not believed.assessed else "assumed"
    learned = _with_fit(problem, kind, found, request.settings, belief_notes(beliefs, problem.experts))
    if request.class_model == "symmetric":
        return learned
    # Loaded where there are more than two classes.
    from opinionpool.learning.class_model import with_class_model

    return with_class_model(learned, data, request.class_model, every)


def _with_fit(
    problem: Problem, kind: str, found: DefaultFit, settings: Settings, notes: tuple[Note, ...]
) -> FittedPanel:
    """Return the fitted panel of structure `kind` from the fit `found`, with weights that are equal for all classes."""
    settings = settings._replace(extremes=found.extremes)
    panel = Panel.from_parts(found.parts, found.bias, problem.experts, problem.classes, settings)
    totals = problem.events, problem.counts, problem.present
    about = found.marginal, found.posterior, found.topics
    return FittedPanel(panel, problem.shared, kind, *totals, (*found.notes, *notes), *about, members=found.members)


def _learn_full(problem: Problem, settings: Settings) -> FittedPanel:
    """Learn a panel by the full model (means for each class) from the data, without beliefs."""
    from opinionpool.estimation.lda import full_fit

    some = problem.select(problem.forecasts.resolved)
    beyond = contrasts(some.forecasts.X, some.reference[:, None, :], settings.floor)
    parts, bias, notes = full_fit(beyond, some.outcomes, some.weight, problem.experts, problem.classes)
    panel = FullPanel.from_parts(parts, bias, problem.experts, problem.classes, settings)
    totals = problem.events, problem.counts, problem.present
    return FittedPanel(panel, problem.shared, "full", *totals, tuple(notes))


def _learn_crowd(problem: Problem, beliefs: Beliefs, settings: Settings) -> FittedPanel | None:
    """Learn a crowd's panel without a dense array; None if no informative expert forecast a resolved event."""
    # Most panels are no crowd, and should not wait for its learner.
    from opinionpool.learning.crowd import crowd_fit

    found = crowd_fit(problem.sparse(settings.floor), Believed.of(beliefs, problem.experts))
    if found is None or found.posterior is None:
        return None
    answered, posterior = int((problem.counts > 0).sum()), found.posterior
    rows = zip(posterior.hyperparameter, posterior.value, posterior.posterior.tolist(), strict=True)
    shares = "; ".join(f"{value} ({p:.0%} probable)" for name, value, p in rows if name == "weights" and p > LEAST)
    text = (
        f"{answered:,} experts gave {problem.counts.sum() / answered:.3g} forecasts each on resolved events, so they "
        f"were learned as a crowd, whose weights go with {shares}"
    )
    return _with_fit(problem, "crowd", found, settings, (Note("crowd", text),))


def _learn_averages(sums: Sums, source: Source, request: Request) -> FittedPanel:
    """Learn a panel by sample averages over all events."""
    # The default pool is no sample average.
    from opinionpool.estimation.averages import sample_parts

    evidence, prior, experts, classes = sums.evidence, sums.prior, source.experts, source.classes
    parts, bias, notes = sample_parts(evidence, experts, classes, request.kind)
    panel = Panel.from_parts(parts, bias if evidence.design.biased else None, experts, classes, request.settings)
    _check_weights(panel, evidence.events.sum())
    seen = sums.seen
    return FittedPanel(panel, prior, request.kind, seen.events, seen.counts, seen.present, tuple(notes))


def _check_weights(panel: Panel, events: float) -> None:
    """Raise a LearningError if some experts' forecasts follow from others', so that weights are not determined."""
    try:
        _ = panel.weights
    except PanelError:
        raise LearningError(
            f"on {events:g} resolved events the forecasts of some experts follow from those of others, so the data "
            "alone leave their weights open; beliefs, as by default, or structure='exchangeable' settle them"
        ) from None


def _by_features(problem: Problem, beliefs: Beliefs | str, request: Request) -> bool:
    """True if a crowd's weights follow from its features: not if weights differ by class, or beliefs name experts.

    Raises
    ------
    ArgumentError
        If there are too many experts for that.
    """
    asked = (
        "weights that differ between classes" * (request.class_model == "full" and len(problem.classes) > 2),
        "beliefs about experts by name" * (isinstance(beliefs, Beliefs) and bool(beliefs.experts)),
    )
    if not any(asked):
        return True
    if len(problem.experts) > MOST_UNCERTAIN:
        raise ArgumentError(
            f"more than {MOST_UNCERTAIN:,} experts with few forecasts each are learned as a crowd, which has no "
            f"{' and no '.join(filter(None, asked))}; leave that out, or choose experts"
        )
    return False
