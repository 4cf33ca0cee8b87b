"""Why a pool answers what it answers on one event: who said what, what it counted for, and what it would be without.

The Gaussian pool's answer is a sum (11): the prior's log-odds, what the panel adds on its own account, and w_i C_i of
every expert who answered. Pools that are sums of log-odds or of probabilities are taken apart the same way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.errors import ArgumentError, Note, ProbabilityError
from opinionpool.forecasts import Forecasts
from opinionpool.gaussian import weights_for
from opinionpool.learn import LearnedPanel
from opinionpool.logodds import Array
from opinionpool.panel import Panel
from opinionpool.priors import event_priors
from opinionpool.rules import Learned, LearnedPool
from opinionpool.said import Said
from opinionpool.stated import BLOCK, Stated, base_rate_shift, read_stated
from opinionpool.wording import shown, suggestion

__all__ = ["Explanation", "explain", "explain_event"]

LEVEL = 0.9
# Pools whose answer is the prior and a sum of contrasts, and those that are a sum of probabilities.
_RATIOS = ("log", "independent", "geometric", "extremized", "recalibrated")
_SHARES = ("average", "linear")


@dataclass(frozen=True, eq=False)
class Explanation:
    """The parts of one pooled answer. They add up: start + lean + sum of contributions + shift = total.

    Values by class are numbers when K = 2, about ``classes[1]``; for K > 2 they have a last axis of K, and log-odds are
    log-probabilities centred over the classes. n experts answered.

    Attributes
    ----------
    event : str or None
        Its name, where there is one.
    pool : str
        The pool's name.
    scale : {"log-odds", "probability"}
        What contributions, start, lean, shift and total are measured in. Probabilities in linear pools.
    classes : tuple
        K labels.
    experts : tuple of str
        The n who answered, in the panel's order.
    stated : ndarray, shape (n,), or (n, K)
        What they said.
    bias : ndarray, shape (n,), or (n, K)
        What is taken off as each one's bias, in log-odds (6).
    contrast : ndarray, shape (n,), or (n, K)
        What they say beyond prior and bias, as far as extremes are believed (7).
    weights : ndarray, shape (n,), or None
        In the sub-panel of these n (10); shares of the answer in linear pools. None where a weight is not one number.
    contributions : ndarray, shape (n,), or (n, K)
        What each adds: weight times contrast, or share times probability.
    without : ndarray, shape (n,), or (n, K)
        What the pooled probability would be had this one not answered.
    prior : ndarray, shape (), or (K,)
        The reference, a probability.
    start : ndarray, shape (), or (K,)
        What the rest is added to: the prior's log-odds; 0 in linear pools.
    lean : ndarray, shape (), or (K,)
        What the pool adds on its own account: an intercept, that is what it holds to be common to all experts, and how
        far it does not believe a prior that was estimated.
    shift : ndarray, shape (), or (K,)
        What the base rate adds.
    total : ndarray, shape (), or (K,)
        The sum, before the floor on answers.
    probability : ndarray, shape (), or (K,)
        The answer.
    interval : tuple of float, or None
        Between what the probability lies with a chance of `level`, as far as outcomes left the weights open.
    level : float
    notes : tuple of Note
        What needs words: weights below 0, answers at the floor.
    """

    event: str | None
    pool: str
    scale: str
    classes: tuple[object, ...]
    experts: tuple[str, ...]
    stated: Array
    bias: Array
    contrast: Array
    weights: Array | None
    contributions: Array
    without: Array
    prior: Array
    start: Array
    lean: Array
    shift: Array
    total: Array
    probability: Array
    interval: tuple[float, float] | None = None
    level: float = LEVEL
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, eq=False)
class _Parts:
    """An answer taken apart: (N, K - 1) and (K - 1,) log-ratios, or (N, K) and (K,) probabilities, 0 for the silent."""

    scale: str
    bias: Array
    contrast: Array
    weights: Array | None
    contributions: Array
    start: Array
    lean: Array


def explain_event(
    forecasts: Forecasts,
    event: str | int,
    state: Learned,
    *,
    prior: npt.ArrayLike | None = None,
    base_rate: npt.ArrayLike | None = None,
    level: float = LEVEL,
) -> Explanation:
    """Explain what a pool says about one event of some forecasts.

    Parameters
    ----------
    forecasts : Forecasts
    event : str or int
        Its name or its position.
    state : Learned
        What a fit learned from forecasts by the same experts, in the same order (`opinionpool.rules.fit_pool`).
    prior, base_rate : optional
        As they were given to the fit and to pooling; the event's own prior wins.
    level : float, default 0.9
        Of the interval.

    Raises
    ------
    ArgumentError
        If there is no such event (with the name that was meant), or as `explain` does.

    Examples
    --------
    >>> from opinionpool.rules import fit_pool
    >>> f = Forecasts.from_array([[0.7, 0.6], [0.2, 0.3], [0.9, None]], [1, 0, None], experts=["ann", "bob"])
    >>> why = explain_event(f, "event_3", fit_pool("average", f))
    >>> why.experts, why.contributions.round(3).tolist()
    (('ann',), [0.9])
    """
    t = event_position(forecasts, event)
    each = event_priors(forecasts, prior)
    own = prior if each is None else logodds.public_probabilities(each[t])
    one = forecasts.select_events([t])
    return explain(state, one.X[0], own, base_rate, event=forecasts.events[t], level=level)


def event_position(forecasts: Forecasts, event: str | int) -> int:
    """The position of an event given by name or position; a name wins over a number that looks like it."""
    if isinstance(event, (int, np.integer)) and not isinstance(event, bool):
        if not 0 <= event < len(forecasts.events):
            raise ArgumentError(f"there are events 0 to {len(forecasts.events) - 1}, and no {event}")
        return int(event)
    if event not in forecasts.events:
        raise ArgumentError(
            f"no event is called {shown(event)}; {suggestion(str(event), forecasts.events, 'there are')}"
        )
    return forecasts.events.index(event)


def explain(
    state: Learned | Panel,
    q: npt.ArrayLike,
    prior: npt.ArrayLike | None = None,
    base_rate: npt.ArrayLike | None = None,
    *,
    event: str | None = None,
    level: float = LEVEL,
) -> Explanation:
    """Explain what a pool says about forecasts on one event.

    Parameters
    ----------
    state : Learned or Panel
        What a fit learned, or a panel as it was assessed.
    q : array_like, shape (N,), or (N, K) when K > 2
        NaN where an expert did not answer.
    prior : float, or array_like (K,) when K > 2, optional
        Unless given, that of the fit; even chances for a panel.
    base_rate : float, or array_like (K,) when K > 2, optional
    event : str, optional
        Its name.
    level : float, default 0.9
        Of the interval.

    Raises
    ------
    ArgumentError
        If the pool is not a sum of what experts say: median, trimmed and beta-linear.
    ProbabilityError, ShapeError
        If the forecasts do not fit.

    Examples
    --------
    >>> panel = Panel([1.0, 2.0], [[2.0, 1.0], [1.0, 4.0]], names=["ann", "bob"])
    >>> why = explain(panel, [0.8, 0.7])
    >>> why.contributions.round(3), float(why.total.round(3)), why.without.round(3)
    (array([0.792, 0.726]), 1.518, array([0.7, 0.8]))
    """
    panel = state if isinstance(state, Panel) else getattr(state, "panel", None)
    names = panel.names if panel is not None else state.experts  # type: ignore[union-attr]
    classes = panel.classes if panel is not None else state.classes  # type: ignore[union-attr]
    k, prior = len(classes), _prior(state, prior, len(classes))
    stated = read_stated(q, prior, len(names), k)
    if stated.lead:
        raise ArgumentError(f"one event is explained at a time, and forecasts of shape {np.shape(q)} are of several")
    present = np.flatnonzero(~np.isnan(stated.q[0].reshape(len(names), -1)[:, 0]))
    if panel is not None:
        parts = _of_panel(panel, stated)
    else:
        assert isinstance(state, LearnedPool)
        parts = _of_rule(state, stated)
    added = parts.contributions.sum(axis=0)
    total = parts.start + parts.lean + added
    probability = np.asarray(state.pool(stated.q[0], prior, base_rate))
    if parts.scale == "log-odds":
        shift = base_rate_shift(base_rate, stated)[0]
    else:
        shift = total - total if base_rate is None else logodds.class_probabilities(probability, k) - total
    show = {"log-odds": logodds.public_log_odds, "probability": logodds.public_probabilities}[parts.scale]
    said = stated.q[0][present]
    weights = None if parts.weights is None else parts.weights[present]
    doubt = getattr(state, "doubt", None)
    interval = None
    if isinstance(state, LearnedPanel) and doubt is not None and k == 2:
        low, high = state.interval(stated.q[0], prior, base_rate, level)
        interval = float(low), float(high)
    return Explanation(
        event=event,
        pool="gaussian" if panel is not None else state.rule,  # type: ignore[union-attr]
        scale=parts.scale,
        classes=tuple(classes),
        experts=tuple(names[i] for i in present),
        stated=said,
        bias=logodds.public_log_odds(parts.bias[present]),
        contrast=logodds.public_log_odds(parts.contrast[present]),
        weights=weights,
        contributions=show(parts.contributions[present]),
        without=_without(state, stated.q[0], present, prior, base_rate),
        prior=logodds.public_probabilities(stated.prior[0]),
        start=show(parts.start),
        lean=show(parts.lean),
        shift=show(shift),
        total=show(total + shift),
        probability=probability,
        interval=interval,
        level=level,
    )


def _prior(state: Learned | Panel, prior: npt.ArrayLike | None, k: int) -> npt.ArrayLike:
    """The prior to use, in the form that pools take."""
    if prior is not None:
        return prior
    if isinstance(state, Panel):
        return 0.5 if k == 2 else np.full(k, 1.0 / k)
    if state.prior is None:
        raise ProbabilityError("this pool was learned with a prior for each event, so an explanation needs one too")
    return logodds.public_probabilities(state.prior)


def _without(
    state: Learned | Panel,
    q: Array,
    present: npt.NDArray[np.intp],
    prior: npt.ArrayLike,
    base_rate: npt.ArrayLike | None,
) -> Array:
    """The answer with each of those present left out, (n,), or (n, K)."""
    answers = []
    size = max(1, BLOCK // q.size)
    for start in range(0, len(present), size):
        left = present[start : start + size]
        rows = np.broadcast_to(q, (len(left), *q.shape)).copy()
        rows[np.arange(len(left)), left] = np.nan
        answers.append(np.asarray(state.pool(rows, prior, base_rate)))
    return np.concatenate(answers) if answers else np.zeros((0, *q.shape[1:]))


def _of_panel(panel: Panel, stated: Stated) -> _Parts:
    """L* = L° + lean + Σ w_i C_i; where extremes have a centre, it is each one's bias, and what is left the lean."""
    settings = panel.settings
    ratios = logodds.log_ratios(stated.q, stated.prior[:, None, :], settings.floor)[0]
    present = ~np.isnan(ratios[:, 0])
    believed = np.where(present[:, None], settings.extremes.believed(ratios - stated.reference), 0.0)
    inner = logodds.uncentred(panel.bias) if ratios.shape[1] > 1 else panel.bias[:, None]
    bias = inner if settings.extremes.centre is None else settings.extremes.centre
    weights = weights_for(panel.parts, present[None])[0]
    contrast = np.where(present[:, None], believed - bias, 0.0)
    return _Parts(
        "log-odds",
        bias,
        contrast,
        weights,
        weights[:, None] * contrast,
        stated.reference[0],
        np.asarray(weights @ (bias - inner)),
    )


def _of_rule(state: LearnedPool, stated: Stated) -> _Parts:
    """The same for pools that are sums of contrasts, or of probabilities."""
    if state.rule not in _RATIOS + _SHARES:
        raise ArgumentError(
            f"the {state.rule} pool's answer is not a sum of what each expert adds; "
            f"explain one of gaussian, {', '.join(_RATIOS + _SHARES)}"
        )
    said = Said(logodds.log_ratios(stated.q, stated.prior[:, None, :], state.floor), stated.reference)
    n, d = said.contrasts.shape[1:]
    none, start = np.zeros((n, d)), stated.reference[0]
    if not said.present.any():
        if state.rule in _SHARES:
            return _Parts(
                "probability", none, none, np.zeros(n), np.zeros((n, d + 1)), stated.prior[0], np.zeros(d + 1)
            )
        return _Parts("log-odds", none, none, np.zeros(n), none, start, np.zeros(d))
    given = state.parameters
    if state.rule in _SHARES:
        shares = said.shares(given.get("weights"))[0]
        return _Parts(
            "probability",
            none,
            said.contrasts[0],
            shares,
            shares[:, None] * said.probabilities[0],
            np.zeros(d + 1),
            np.zeros(d + 1),
        )
    weights = _rule_weights(state, said)
    a = np.asarray(given.get("intercept", 0.0), dtype=np.float64)
    lean = np.broadcast_to(a, d) if d == 1 else logodds.uncentred(np.broadcast_to(a, d + 1))
    return _Parts("log-odds", none, said.contrasts[0], weights, weights[:, None] * said.contrasts[0], start, lean)


def _rule_weights(state: LearnedPool, said: Said) -> Array:
    """What each contrast is multiplied by, (N,), 0 where missing."""
    given, present = state.parameters, said.present[0]
    scale = float(given.get("factor", 1.0)) * float(given.get("slope", 1.0))
    if state.rule == "independent":
        return np.asarray(present, dtype=np.float64)
    if state.rule == "log":
        n = len(present)
        weights = given.get("weights")
        return np.asarray(np.where(present, np.full(n, 1.0 / n) if weights is None else weights, 0.0))
    return np.asarray(scale * said.shares(given.get("weights"))[0])
