"""Learning from a dense array where it is, and from a sample of its events where there are many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Floats, axes
from opinionpool.blocks import blocks
from opinionpool.estimation.dense import DenseOutcomes, dense_moments
from opinionpool.estimation.evidence import FEW_EXPERTS, MomentEvidence
from opinionpool.estimation.sampling import (
    content_keys,
    least,
    name_keys,
    rooms,
    row_contents,
    sample_note,
    stands_for,
)
from opinionpool.forecasts import Forecasts
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.leakage import dense_leakage_notes
from opinionpool.learning.learn import learn_from, learn_problem
from opinionpool.learning.problem import Problem
from opinionpool.learning.request import Request
from opinionpool.logodds import check_probabilities, class_probabilities, public_probabilities
from opinionpool.names import numbered
from opinionpool.priors import laplace_prior, one_outcome_notes


def learn_sample(
    q: Floats, outcomes: DenseOutcomes, prior: Array, classes: list[object], request: Request
) -> FittedPanel | None:
    """What `learn` learns from the same sample of events; None if there is room for all of them.

    Parameters
    ----------
    q : ndarray, shape (T, N)
        NaN where missing.
    outcomes : DenseOutcomes
    prior : ndarray, shape (2,)
    classes : list
        Labels of the outcomes.
    request : Request

    Raises
    ------
    ProbabilityError
        Names the first value outside [0, 1] and its position.
    """
    n = q.shape[1]
    room = rooms(n, 2)
    if (outcomes.counts[:2] <= room[:2]).all():
        return None
    counts, present = _counted(q, outcomes)
    kept = _drawn(q, outcomes, room)
    codes = outcomes.codes(kept)
    few = replace(Forecasts.from_array(q[kept], experts=numbered(n), classes=classes), outcomes=codes)
    weight = stands_for(codes, outcomes.counts[:2])
    found = learn_problem(Problem.of(few, public_probabilities(prior), weight), request)
    resolved = int(outcomes.counts[:2].sum())
    notes = (*found.notes, sample_note(int((codes >= 0).sum()), resolved))
    return replace(found, events=outcomes.counts[:2].copy(), counts=counts, present=present, notes=notes)


def _counted(q: Floats, outcomes: DenseOutcomes) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Forecasts of each expert on resolved events, and who made one on any; every value is looked at."""
    counts, anywhere = np.zeros(q.shape[1]), np.zeros(q.shape[1], dtype=bool)
    for rows in blocks(len(q), q.shape[1]):
        block = q[rows]
        # NaN is neither.
        if not (block.min() >= 0 and block.max() <= 1):
            if ((block < 0) | (block > 1)).any():
                check_probabilities(q)
            answered_cells = ~np.isnan(block)
            counts += answered_cells[outcomes.codes(rows) >= 0].sum(axis=0)
            anywhere |= answered_cells.any(axis=0)
        else:
            counts += np.count_nonzero(outcomes.codes(rows) >= 0)
            anywhere[:] = True
    return counts, anywhere


def _drawn(q: Floats, outcomes: DenseOutcomes, room: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Index of the events of the sample, by key."""
    codes = outcomes.codes(slice(0, len(q)))
    keys = content_keys(row_contents(q, name_keys(numbered(q.shape[1]))), codes)
    kept = np.flatnonzero(least(keys, np.where(codes < 0, len(room) - 1, codes), room)[0])
    return np.asarray(kept[np.argsort(keys[kept])])


def learn_dense(
    q: npt.NDArray[np.generic],
    y: npt.NDArray[Any],
    request: Request,
    *,
    classes: Sequence[object] | None = None,
    prior: npt.ArrayLike | None = None,
) -> FittedPanel | None:
    """What `opinionpool.learning.learn.learn` learns, without a copy of the forecasts; None where that needs one.

    It takes what moments decide, where not too many different sets of experts answered; and the default pool of so many
    binary events that it learns from a sample. There is one prior for all events.

    Parameters
    ----------
    q : ndarray, shape (T, N); (T, N, K) for K > 2 classes
        float64, or binary float32, which is worked on as it is.
    y : ndarray, shape (T,)
        0 and 1, or NaN where not resolved; with `classes` their positions, or -1.
    request : Request
    classes : sequence, optional
        K labels.
    prior : float or array_like, shape (K,), optional
        As for `learn`.

    Examples
    --------
    >>> q, y = np.array([[0.2], [0.3], [0.6], [0.4], [0.7], [0.8]]), np.array([0, 0, 0, 1, 1, 1])
    >>> learn_dense(q, y, Request(beliefs=None), prior=0.5).weights.round(5)
    array([1.44221])
    """
    k = 2 if classes is None else len(classes)
    request = request.about(k)
    if not (request.by_moments or (request.believed is not None and k == 2)) or not _fits(q, y, k):
        return None
    if prior is not None and axes(prior, "prior") > (0 if k == 2 else 1):
        return None
    outcomes = DenseOutcomes.of(y) if classes is None else DenseOutcomes.of_codes(y, k)
    if outcomes is None:
        return None
    shared = laplace_prior(outcomes.counts[:-1]) if prior is None else class_probabilities(prior, k)
    labels = np.array([0, 1], dtype=y.dtype).tolist() if classes is None else list(classes)
    if not request.by_moments:
        return learn_sample(q, outcomes, shared, labels, request)
    experts = numbered(q.shape[1])
    moments = dense_moments(q, outcomes, shared, request.settings.floor, experts)
    if moments is None:
        return None
    found = learn_from(MomentEvidence(moments), shared, experts, labels, request)
    return replace(
        found, notes=found.notes + dense_leakage_notes(q, outcomes, experts) + one_outcome_notes(labels, found.events)
    )


def _fits(q: Floats, y: Floats, classes: int) -> bool:
    """Whether these are forecasts of many events and their outcomes."""
    if q.shape[2:] != (() if classes == 2 else (classes,)) or q.ndim < 2 or y.shape != q.shape[:1]:
        return False
    if q.dtype not in ((np.float64, np.float32) if classes == 2 else (np.float64,)):
        return False
    return 0 < q.shape[1] <= max(len(q), FEW_EXPERTS) and len(q) > 0
