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
from opinionpool.learning.learn import learn_from, learn_problem
from opinionpool.learning.problem import Problem
from opinionpool.learning.request import Request
from opinionpool.model.pooling import Settings
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
    settings = Settings(state.tally.floor, pool_floor)
    request = Request(structure, beliefs, settings=settings, **options).about(len(state.classes))
    state.flush()
    tally, found = state.tally, None
    if not state.experts:
        raise LearningError("nothing has been added yet, so there is nothing to learn from")
    if request.by_moments:
        found = tally.evidence(laplace_prior(tally.events) if tally.prior is None else tally.prior)
        if found is not None and request.kind == "full" and not found[0].complete:
            found = None
    if found is not None:
        learned = learn_from(*found, state.experts, state.classes, request)
        phrase = (*leakage_note(state.experts, state.always_right()), *one_outcome_notes(state.classes, tally.events))
    else:
        forecasts, weight, prior = _rows(state)
        learned = learn_problem(Problem.of(forecasts, prior, weight), request)
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
