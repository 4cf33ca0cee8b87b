"""Forecasts that look as if they were made from outcomes, or as if they were about the other class."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, lgamma, sqrt

import numpy as np

from opinionpool.arrays import Array, Floats, Index, Mask
from opinionpool.blocks import blocks
from opinionpool.errors import Note
from opinionpool.estimation.statistics import Codes
from opinionpool.forecasts import Forecasts
from opinionpool.logodds import expit
from opinionpool.text import listed, shown

# An expert who is right and this sure, on each of at least so many events, has perhaps seen them: log-odds of 4.
SURE, SURE_EVENTS = float(expit(np.array(4.0))), 10
# Forecasts that are looked at first, and events that are looked at together; and events of an array that are first.
FIRST, FEW = 1 << 14, 64
# From so many events on, forecasts may be taken to speak against what happened.
LEAST_EVENTS = 4


def leaked_experts(forecasts: Forecasts) -> Mask:
    """Mask of experts who were right and nearly certain on every resolved event, (N,), perhaps by leakage.

    Examples
    --------
    >>> y = [0, 1] * 5
    >>> f = Forecasts.from_array([[0.001 + 0.998 * each, 0.5] for each in y], y, experts=["model", "ann"])
    >>> leaked_experts(f).tolist()
    [True, False]
    """
    # Hardly anybody is always right on the first of the events.
    first = np.flatnonzero(forecasts.resolved[forecasts.event_index[:FIRST]])
    count, right = _right(forecasts, first)
    suspects = np.asarray(right == count)
    if not suspects.any():
        return suspects
    known = np.flatnonzero(forecasts.resolved[forecasts.event_index])
    count, right = _right(forecasts, known[suspects[forecasts.expert_index[known]]])
    return np.asarray(suspects & (count >= SURE_EVENTS) & (right == count))


def _right(forecasts: Forecasts, cells: Index) -> tuple[Index, Index]:
    """Number of each expert's forecasts among `cells`, and of those that were right and nearly certain, (N,) each."""
    outcome, expert = forecasts.outcomes[forecasts.event_index[cells]], forecasts.expert_index[cells]
    q, n = forecasts.probabilities, len(forecasts.experts)
    given = np.where(outcome == 1, q[cells], 1.0 - q[cells]) if q.ndim == 1 else q[cells, outcome]
    return np.bincount(expert, minlength=n), np.bincount(expert[given > SURE], minlength=n)


def leaked_columns(q: Floats, outcomes: Codes) -> Mask:
    """Mask (N,) of experts who were right and nearly certain on every resolved event, from an array of forecasts."""
    n = q.shape[1]
    suspects, count = np.arange(n), np.zeros(n)
    for rows in (slice(0, FEW), *blocks(slice(FEW, len(q)), q[0].size)):
        if not len(suspects):
            break
        codes = outcomes[rows].astype(np.intp)
        known = codes >= 0
        block, happened = q[rows][known][:, suspects], codes[known][:, None]
        if q.ndim == 2:
            given = np.where(happened == 1, block, 1.0 - block)
        else:
            given = np.take_along_axis(block, happened[..., None], axis=2)[..., 0]
        absent = np.isnan(given)
        count[suspects] += (~absent).sum(axis=0)
        suspects = suspects[((given > SURE) | absent).all(axis=0)]
    return np.asarray(np.isin(np.arange(n), suspects) & (count >= SURE_EVENTS))


def leakage_notes(experts: Sequence[str], found: Mask) -> tuple[Note, ...]:
    """Note that names the experts in the mask `found` (N,); an empty tuple if there are none."""
    names = [experts[i] for i in np.flatnonzero(found).tolist()]
    if not names:
        return ()
    text = (
        f"{listed(names, 3)}: right and nearly certain on every resolved event. If a model made these forecasts, were "
        "they about events that it was fitted to? Then they look better than its forecasts of new events will; use "
        "out-of-fold forecasts"
    )
    return (Note("leakage", text, len(names), serious=True),)


# Forecasts are taken to point the wrong way where this is so improbable otherwise.
IMPROBABLE = 1e-3
# Numbers that agree in so many digits are the same.
DIGITS = 9


def contrary_events(forecasts: Forecasts) -> int:
    """Number of resolved events, if their forecasts point the wrong way as with swapped labels; else 0.

    They do if the outcomes would be clearly likelier with the classes in another order, by Student's t-test on the
    events' mean log-probabilities less their average over events; forecasts that are merely biased do not count.

    Examples
    --------
    >>> q = [[0.1, 0.2], [0.9, 0.7], [0.2, 0.1], [0.8, 0.8]]
    >>> contrary_events(Forecasts.from_array(q, [1, 0, 1, 0])), contrary_events(Forecasts.from_array(q, [0, 1, 0, 1]))
    (4, 0)
    """
    answered = np.flatnonzero(forecasts.resolved & (forecasts.crowd > 0))
    if len(answered) < LEAST_EVENTS:
        return 0
    return len(answered) if _contrary(forecasts, answered) else 0


def _contrary(forecasts: Forecasts, events: Index) -> bool:
    """True if the forecasts would clearly suit the outcomes of `events` better with the classes in another order."""
    mean = np.concatenate([_mean_logs(forecasts, events[i : i + FIRST]) for i in range(0, len(events), FIRST)])
    outcome = forecasts.outcomes[events]
    beyond = mean - mean.mean(axis=0)
    other = _likeliest_order(beyond, outcome)[outcome]
    gain = beyond[np.arange(len(beyond)), other] - beyond[np.arange(len(beyond)), outcome]
    # One of K! orders was chosen, more than floats count where there are many classes.
    return _clearly_above_0(gain, IMPROBABLE * exp(-lgamma(mean.shape[1] + 1.0)))


def _mean_logs(forecasts: Forecasts, events: Index) -> Array:
    """Mean log-probability of each class over the forecasts on each event, (T, K)."""
    lengths = forecasts.crowd[events]
    ends = np.cumsum(lengths)
    cells = np.repeat(forecasts.starts[events] - (ends - lengths), lengths) + np.arange(ends[-1])
    q = forecasts.probabilities[cells]
    given = np.log(np.clip(np.stack([1.0 - q, q], axis=1) if q.ndim == 1 else q, 1.0 - SURE, SURE))
    return np.asarray(np.add.reduceat(given, ends - lengths, axis=0) / lengths[:, None])


def _likeliest_order(logs: Array, outcome: Index) -> Index:
    """Permutation of the classes, (K,), that gives the outcomes the largest sum of log-probabilities `logs` (T, K)."""
    k = logs.shape[1]
    total = np.stack([logs[outcome == y].sum(axis=0) for y in range(k)])
    if (total.argmax(axis=1) == np.arange(k))[np.bincount(outcome, minlength=k) > 0].all():
        return np.arange(k)
    if k == 2:
        return np.array([1, 0]) if total[0, 1] + total[1, 0] > total[0, 0] + total[1, 1] else np.arange(2)
    from scipy.optimize import linear_sum_assignment

    return np.asarray(linear_sum_assignment(total, maximize=True)[1])


def _clearly_above_0(gain: Array, level: float) -> bool:
    """True if a one-sided t-test of `gain` (T,) rejects a mean of 0 at `level`."""
    mean, error = float(gain.mean()), float(gain.std(ddof=1)) / sqrt(len(gain))
    if mean <= 0.0:
        return False
    # Where all of few values are above 0, their spread tells nothing, but that it is all of them.
    if error == 0.0 or (gain.min() > 0.0 and len(np.unique(gain.round(DIGITS))) <= 2):
        return bool(0.5 ** len(gain) < level)
    if mean <= 3.0 * error:
        # No t-test rejects this at `IMPROBABLE`, and nobody waits for SciPy.
        return False
    from scipy.special import stdtr

    return bool(stdtr(len(gain) - 1, -mean / error) < level)


def contrary_note(events: int, classes: Sequence[object]) -> Note:
    """Note that the forecasts on `events` resolved events speak against the outcomes."""
    if len(classes) == 2:
        ask = f"are they probabilities of {shown(classes[0])} rather than {shown(classes[1])}?"
    else:
        ask = f"are the probabilities in another order than {listed(list(classes), 5)}?"
    return Note(
        "contrary", f"the forecasts speak against what happened on {events:,} resolved events: {ask}", serious=True
    )
