"""Experts who are right as nobody can be who does not know what happened."""

from __future__ import annotations

import numpy as np

from opinionpool.errors import Note
from opinionpool.forecasts import Forecasts
from opinionpool.logodds import FLOOR, logit
from opinionpool.wording import listed

# An expert who is right and this sure, in log-odds, on each of at least so many events has perhaps seen them.
SURE, SURE_EVENTS = 4.0, 10


def knowing_notes(forecasts: Forecasts) -> tuple[Note, ...]:
    """Experts who were never wrong and nearly certain: perhaps their forecasts were made from the outcomes.

    Examples
    --------
    >>> y = [0, 1] * 5
    >>> f = Forecasts.from_array([[0.001 + 0.998 * each, 0.5] for each in y], y, experts=["model", "ann"])
    >>> [note.code for note in knowing_notes(f)]
    ['leakage']
    """
    known = forecasts.resolved[forecasts.event_index]
    outcome, expert = forecasts.outcomes[forecasts.event_index[known]], forecasts.expert_index[known]
    q = forecasts.probabilities[known]
    said = np.where(outcome == 1, q, 1.0 - q) if q.ndim == 1 else q[np.arange(len(q)), outcome]
    sure = logit(np.clip(said, FLOOR, 1.0 - FLOOR)) > SURE
    count, right = (np.bincount(each, minlength=len(forecasts.experts)) for each in (expert, expert[sure]))
    names = [forecasts.experts[i] for i in np.flatnonzero((count >= SURE_EVENTS) & (right == count)).tolist()]
    if not names:
        return ()
    text = (
        f"{listed(names, 3)}: right and nearly certain on every resolved event. If a model made these forecasts, were "
        "they about events that it was fitted to? Then they and all that is learned from them look better than new "
        "events will"
    )
    return (Note("leakage", text, len(names), serious=True),)
