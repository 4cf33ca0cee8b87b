"""The default pool from an array of many forecasts: rows are drawn where they stand, without a copy of the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.blockwise import Floats, blocks
from opinionpool.dense import EVENTS, BinaryOutcomes
from opinionpool.forecasts import Forecasts
from opinionpool.learned import LearnedPanel
from opinionpool.logodds import Array, check_probabilities, public_probabilities
from opinionpool.names import numbered
from opinionpool.records import row_keys
from opinionpool.rules import fit_pool
from opinionpool.sampling import least, rooms, sample_note, stands_for

__all__ = ["learn_sample"]


def learn_sample(
    q: Floats, outcomes: BinaryOutcomes, prior: Array, classes: list[object], options: dict[str, Any]
) -> LearnedPanel | None:
    """What `opinionpool.learn.learn` learns from the same sample of events; None if there is room for all of them.

    Parameters
    ----------
    q : ndarray, shape (T, N)
        NaN where missing.
    outcomes : BinaryOutcomes
    prior : ndarray, shape (2,)
    classes : list
        Labels of the outcomes.
    options : dict
        Of `opinionpool.rules.fit_pool`.

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
    kept = _drawn(outcomes, room)
    codes = outcomes.codes(kept)
    told = np.array([*classes, None], dtype=object)[codes]
    few = Forecasts.from_array(q[kept], told.tolist(), experts=numbered(n), classes=classes)
    weight = stands_for(codes, outcomes.counts[:2])
    found = fit_pool("gaussian", few, prior=public_probabilities(prior), sample_weight=weight, **options)
    assert isinstance(found, LearnedPanel)
    resolved = int(outcomes.counts[:2].sum())
    notes = (*found.notes, sample_note(int((codes >= 0).sum()), resolved))
    return replace(found, events=outcomes.counts[:2].copy(), counts=counts, present=present, notes=notes)


def _counted(q: Floats, outcomes: BinaryOutcomes) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Forecasts of each expert on resolved events, and who made one on any; every value is looked at."""
    counts, anywhere = np.zeros(q.shape[1]), np.zeros(q.shape[1], dtype=bool)
    for rows in blocks(len(q), q.shape[1]):
        block = q[rows]
        # NaN is neither.
        if not (block.min() >= 0 and block.max() <= 1):
            if ((block < 0) | (block > 1)).any():
                check_probabilities(q)
            said = ~np.isnan(block)
            counts += said[outcomes.codes(rows) >= 0].sum(axis=0)
            anywhere |= said.any(axis=0)
        else:
            counts += np.count_nonzero(outcomes.codes(rows) >= 0)
            anywhere[:] = True
    return counts, anywhere


def _drawn(outcomes: BinaryOutcomes, room: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Positions of the events of the sample, in order."""
    places, keys, group = np.empty(0, np.intp), np.empty(0, np.uint64), np.empty(0, np.intp)
    limits = np.full(len(room), np.iinfo(np.uint64).max, dtype=np.uint64)
    for start in range(0, len(outcomes.y), EVENTS):
        codes = outcomes.codes(slice(start, start + EVENTS))
        own, mine = row_keys(start, len(codes), 0), np.where(codes < 0, len(room) - 1, codes)
        new = np.flatnonzero(own < limits[mine])
        places, keys, group = (
            np.concatenate(pair) for pair in ((places, new + start), (keys, own[new]), (group, mine[new]))
        )
        kept, beyond = least(keys, group, room)
        limits = np.minimum(limits, beyond)
        places, keys, group = places[kept], keys[kept], group[kept]
    return places
