"""Sample averages in a structure (5.4): who is informative, what is not identified, and the panel's parts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.errors import LearningError, Note
from opinionpool.estimation import averages as estimates
from opinionpool.estimation.averages import constant_notes, no_forecast_notes
from opinionpool.estimation.rows import ResolvedEvents
from opinionpool.model.correlation import MatrixCorrelation
from opinionpool.model.features import Parts
from opinionpool.text import listed

if TYPE_CHECKING:
    from opinionpool.estimation.em import Likeliest


def sample_parts(
    evidence: ResolvedEvents, reference: Array, experts: tuple[str, ...], classes: tuple[object, ...], kind: str
) -> tuple[Parts, Array, list[Note]]:
    """Sample averages in a structure, for the informative experts."""
    _check_events(evidence, classes)
    if kind == "exchangeable":
        parts, bias = estimates.exchangeable_parts(evidence, reference)
        if not parts.spread[0] > 0:
            raise LearningError(
                "forecasts never vary within an outcome; more resolved events would show how far to trust them"
            )
        return parts, bias, []
    means = estimates.sample_means(evidence, reference)
    uninformative, notes = _uninformative(evidence, means, experts, classes)
    if uninformative.all():
        raise LearningError("no expert has forecasts that vary on resolved events, so there is nothing to learn from")
    means = replace(
        means, contrast=np.where(uninformative, 0.0, means.contrast), square=np.where(uninformative, 0.0, means.square)
    )
    if kind == "full" and not evidence.complete:
        # Loaded where forecasts are missing: nobody else should wait for it.
        from opinionpool.estimation.em import maximum_likelihood

        likeliest = maximum_likelihood(evidence, means, reference, experts)
        means = replace(means, bias=likeliest.bias, contrast=likeliest.contrast)
        parts = _parts_of(likeliest)
        notes.append(likeliest.fit.note)
    elif kind == "full":
        parts, r = estimates.full_parts(evidence, means, reference)
        notes += _duplicate_notes(r, experts, uninformative)
    elif kind == "common":
        parts = estimates.common_parts(evidence, means, reference)
    else:
        parts = estimates.independent_parts(means)
    unknown = means.count.sum(axis=0) == 0
    spread = np.where(unknown, np.nan, np.where(uninformative, 0.0, parts.spread))
    return Parts(parts.contrast, spread, parts.dependence), means.bias, notes


def _parts_of(likeliest: Likeliest) -> Parts:
    spread = np.sqrt(np.diag(likeliest.covariance))
    safe = np.where(spread > 0, spread, 1.0)
    r = likeliest.covariance / np.outer(safe, safe)
    np.fill_diagonal(r, 1.0)
    return Parts(likeliest.contrast, spread, MatrixCorrelation(np.clip(r, -1.0, 1.0)))


def _check_events(evidence: ResolvedEvents, classes: tuple[object, ...]) -> None:
    """At least two outcomes, and more events than means."""
    answered, k = evidence.answered, evidence.classes
    if not evidence.design.biased:
        _check_choices(evidence)
        return
    seen = np.flatnonzero(answered > 0)
    if len(seen) < 2:
        if len(seen) == 0:
            what = "there are no resolved events with forecasts"
        elif k == 2:
            what = f"there are no resolved events with outcome {classes[1 - seen[0]]!r}"
        else:
            what = f"every resolved event has outcome {classes[seen[0]]!r}"
        raise LearningError(
            f"{what}, so the experts' weights cannot be estimated from the data alone; use structure='auto' with "
            "beliefs='default'"
        )
    if (k - 1) * answered.sum() - k < 1:
        needed = -(-(k + 1) // (k - 1))
        raise LearningError(
            f"need at least {needed} resolved events and some variation within an outcome, and there are "
            f"{answered.sum():g}; use structure='auto' with beliefs='default'"
        )


def _check_choices(evidence: ResolvedEvents) -> None:
    """One event more than there are means, where events have options of their own."""
    if evidence.answered.sum() < 2:
        raise LearningError(
            "need at least 2 resolved events with forecasts, or one with 3 options, and there are "
            f"{evidence.answered.sum():g}; use structure='auto' with beliefs='default'"
        )


def _uninformative(
    evidence: ResolvedEvents, means: estimates.Means, experts: tuple[str, ...], classes: tuple[object, ...]
) -> tuple[npt.NDArray[np.bool_], list[Note]]:
    """Experts with nothing to say, and what to tell about them."""
    absent = means.count.sum(axis=0) == 0
    constant = estimates.still(evidence, means) & ~absent
    notes = no_forecast_notes(experts, absent) + constant_notes(experts, constant)
    uninformative = absent | constant
    few = means.terms < 1
    if means.design.biased:
        few = few | ((means.count > 0).sum(axis=0) < 2)
    if (few & ~uninformative).any():
        i = int((few & ~uninformative).argmax())
        need, phrase = "2", ""
        if means.design.biased:
            each = ", ".join(
                f"{n:g} with outcome {label!r}" for n, label in zip(means.count[:, i], classes, strict=True)
            )
            need, phrase = "3 and both outcomes", f" ({each})"
        raise LearningError(
            f"expert {experts[i]!r} has too few forecasts on resolved events for estimates of its own{phrase}: need at "
            "least "
            f"{need}; use structure='auto' with beliefs='default' or leave the expert out"
        )
    flat = estimates.without_spread(evidence, means) & ~uninformative
    if flat.any():
        raise LearningError(
            "need at least 3 resolved events and some within-outcome variation for expert "
            f"{listed([experts[i] for i in np.flatnonzero(flat)], 3)}, whose forecasts on resolved events differ "
            "only between outcomes; use structure='auto' with beliefs='default'"
        )
    return uninformative, notes


def _duplicate_notes(r: Array, experts: tuple[str, ...], uninformative: npt.NDArray[np.bool_]) -> list[Note]:
    notes = []
    for group in estimates.distinct(r):
        if len(group) > 1 and not uninformative[group].any():
            same = all(r[group[0], i] > 0 for i in group)
            what = "say the same" if same else "say the same or its complement"
            names = ", ".join(experts[i] for i in group)
            notes.append(
                Note("clones", f"{names} {what} on every resolved event; they share one weight", len(group), True)
            )
    return notes
