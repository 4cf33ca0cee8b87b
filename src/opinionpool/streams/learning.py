"""Pools from what a stream holds: from its sums where these decide, else from its sample."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from opinionpool import logodds
from opinionpool.arguments import chosen_name
from opinionpool.arrays import Array
from opinionpool.errors import LearningError, Note
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.leakage import leakage_note
from opinionpool.learning.learn import check_options, learn, learn_from
from opinionpool.pools.fit import fit_pool
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.pools.registry import POOLS
from opinionpool.priors import laplace_prior, one_outcome_notes
from opinionpool.streams.state import StreamState
from opinionpool.text import counted


def learn_stream(
    state: StreamState,
    pool_floor: float,
    structure: str,
    beliefs: Beliefs | str | None,
    **options: Any,  # noqa: ANN401 - those of `learn`
) -> FittedPanel:
    """A Gaussian panel; options as for `opinionpool.learning.learn.learn`."""
    check_options(structure, beliefs)
    state.flush()
    tally, k = state.tally, len(state.classes)
    if not state.experts:
        raise LearningError("nothing has been added yet, so there is nothing to learn from")
    found = None
    full = k > 2 and options.get("class_model") == "full"
    if not full and (beliefs is None or (structure != "auto" and beliefs == "default")):
        found = tally.evidence(laplace_prior(tally.events) if tally.prior is None else tally.prior)
        if found is not None and structure in {"full", "auto"} and not found[0].complete:
            found = None
    floors: dict[str, Any] = {"floor": tally.floor, "pool_floor": pool_floor}
    if found is not None:
        learned = learn_from(*found, state.experts, state.classes, structure=structure, **floors)
        phrase = (*leakage_note(state.experts, state.always_right()), *one_outcome_notes(state.classes, tally.events))
    else:
        forecasts, weight, prior = _rows(state)
        options |= {"structure": structure, "beliefs": beliefs}
        learned = learn(forecasts, prior=prior, sample_weight=weight, **floors, **options)
        phrase = _sampled(state)
    return replace(
        learned,
        events=tally.events.copy(),
        counts=tally.counts.copy(),
        present=state.present(),
        notes=(*learned.notes, *phrase),
    )


def fit_stream(state: StreamState, pool_floor: float, pool: str, **options: Any) -> Fitted:  # noqa: ANN401
    """Any pool; options are its own."""
    if chosen_name(pool, "pool", tuple(POOLS)) == "gaussian":
        return learn_stream(
            state, pool_floor, options.pop("structure", "auto"), options.pop("beliefs", "default"), **options
        )
    forecasts, weight, prior = _rows(state)
    learned = fit_pool(
        pool, forecasts, prior=prior, sample_weight=weight, floor=state.tally.floor, pool_floor=pool_floor, **options
    )
    notes = (*learned.notes, *_sampled(state))
    return replace(learned, events=state.tally.events.copy(), counts=state.tally.counts.copy(), notes=notes)


def _rows(state: StreamState) -> tuple[Forecasts, Array, Array | None]:
    """The sample, its weights for learning, and the prior.

    As outcomes are as frequent as among all events, and those that stand for least count by themselves, no posterior is
    narrower than the sample allows.
    """
    if not state.experts:
        raise LearningError("nothing has been added yet, so there is nothing to learn from")
    forecasts, weight, least = state.sample()
    prior = state.tally.prior
    if not state.reservoir.complete:
        weight = np.where(forecasts.resolved, weight / least, weight)
        if prior is None and forecasts.prior is None:
            prior = laplace_prior(state.tally.events)
    return forecasts, weight, None if prior is None else logodds.public_probabilities(prior)


def _sampled(state: StreamState) -> tuple[Note, ...]:
    """That not all events are in the sample."""
    if state.reservoir.complete:
        return ()
    number = int(state.tally.number.sum())
    text = (
        f"learned from {len(state.reservoir):,} of {counted(number, 'resolved event')}, which stand for all of them; "
        "more would be kept with a larger capacity"
    )
    return (Note("sampled", text, len(state.reservoir)),)
