"""Explanation of a pool's answer on one event: each forecast, its contribution, and the answer without it.

The Gaussian pool's answer is a sum (paper, equation 11): the prior's log-odds, the panel's intercept, and w_i C_i of
every expert who answered. Pools that are sums of log-odds or of probabilities are decomposed the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import chosen_name, expect_type, number
from opinionpool.arrays import Array, Index
from opinionpool.blocks import blocks
from opinionpool.display import Tabular
from opinionpool.errors import ArgumentError, Note
from opinionpool.forecasts import Forecasts
from opinionpool.learning.fitted import FittedPanel
from opinionpool.logodds import class_probabilities
from opinionpool.model.contrasts import Batch
from opinionpool.model.correlation import CommonCorrelation
from opinionpool.model.panel import Panel, PoolingPanel
from opinionpool.pools.fitted_pool import Fitted, FittedPool
from opinionpool.priors import event_priors
from opinionpool.scales import level_of
from opinionpool.text import counted, shown

LEVEL = 0.9
# So many weights below 0 are put in words one by one.
MOST_SHOWN = 3


@dataclass(frozen=True, eq=False)
class Explanation(Tabular):
    """The parts of an answer: start + intercept + sum of contributions + topic_shift + shift + members_shift = total.

    Values by class are numbers when K = 2, about ``classes[1]``; for K > 2 they have a last axis of K, and log-odds are
    log-probabilities centred over the classes. Where events have options of their own, classes are those of this event.
    The number of experts who answered is n.

    Attributes
    ----------
    event : str or None
        Name of the event, if it has one.
    pool : str
        The pool's name.
    scale : {"log-odds", "probability"}
        Unit of contributions, start, intercept, shift and total: probability for linear pools, else log-odds.
    classes : tuple
        Labels of the K classes.
    experts : tuple of str
        The n experts who answered, in the panel's order.
    probabilities : ndarray, shape (n,), or (n, K)
        Their forecasts.
    bias : ndarray, shape (n,), or (n, K)
        Contrast of an expert's forecasts without information: their log-odds less the prior's (paper, equation 6).
    contrast : ndarray, shape (n,), or (n, K)
        Log-odds of each forecast less the prior's and the bias, drawn towards 0 where extreme (equation 7).
    weights : ndarray, shape (n,), or None
        Weights among these n experts (equation 10), or shares in linear pools; None if a weight is not one number.
    contributions : ndarray, shape (n,), or (n, K)
        What each expert adds: weight times contrast, or share times probability.
    without : ndarray, shape (n,), or (n, K)
        Pooled probability without this expert's forecast.
    prior : ndarray, shape (), or (K,)
        Prior probability.
    start : ndarray, shape (), or (K,)
        First term of the sum: the prior's log-odds; 0 in linear pools.
    intercept : ndarray, shape (), or (K,)
        What the pool adds to every answer: the learned intercept (an error common to all experts), and the log-odds of
        the believed prior less those of the estimated prior.
    shift : ndarray, shape (), or (K,)
        What the base rate adds.
    total : ndarray, shape (), or (K,)
        The sum, before the floor on answers.
    probability : ndarray, shape (), or (K,)
        The answer.
    interval : tuple of float, or None
        The credible interval of the probability at `level`, from the posterior of the weights.
    level : float
    notes : tuple of Note
        Remarks, such as on weights below 0 or an answer at the floor.
    topic : str or None
        Topic of the event, if the pool has learned how topics differ.
    ages : ndarray, shape (n,), or None
        Age of each forecast in days, NaN if unknown, if the pool has learned how fast forecasts go stale; `contrast`
        is then discounted by age.
    given_levels : tuple of str or None, length n
        The levels of scales that experts chose, such as "4 of 1-5", where some gave levels; "" for the others.
    members_share : float or None
        Share of the answer that comes from the simple average and from single experts, which are mixed with the sum as
        probabilities; None if there are no such shares.
    members_shift : ndarray, shape (), or (K,), or None
        What these other members of the pool add to the sum.
    topic_shift : ndarray, shape (), or (K,), or None
        What the topic adds: its intercept, the effect of its slope on the distance of the answer from the prior, and
        the effect of the different weights that experts have in this topic.
    """

    event: str | None
    pool: str
    scale: str
    classes: tuple[object, ...]
    experts: tuple[str, ...]
    probabilities: Array
    bias: Array
    contrast: Array
    weights: Array | None
    contributions: Array
    without: Array
    prior: Array
    start: Array
    intercept: Array
    shift: Array
    total: Array
    probability: Array
    interval: tuple[float, float] | None = None
    level: float = LEVEL
    notes: tuple[Note, ...] = ()
    topic: str | None = None
    topic_shift: Array | None = None
    members_share: float | None = None
    members_shift: Array | None = None
    ages: Array | None = None
    given_levels: tuple[str, ...] | None = None

    def _table(self) -> dict[str, list[Any]]:
        """Columns with a row for each expert, or for each expert and class if K > 2."""
        n, k = len(self.experts), 1 if self.probability.ndim == 0 else len(self.classes)
        table: dict[str, list[Any]] = {"expert": [name for name in self.experts for _ in range(k)]}
        if k > 1:
            table["class"] = list(self.classes) * n
        table |= {"probability": self.probabilities.ravel().tolist(), "contrast": self.contrast.ravel().tolist()}
        if self.weights is not None:
            table["weight"] = np.repeat(self.weights, k).tolist()
        return table | {"adds": self.contributions.ravel().tolist(), "without": self.without.ravel().tolist()}


def explain_event(
    forecasts: Forecasts,
    event: str | int,
    state: Fitted,
    *,
    prior: npt.ArrayLike | None = None,
    base_rate: npt.ArrayLike | None = None,
    level: float = LEVEL,
) -> Explanation:
    """Explanation of a pool's answer about one event of `forecasts`.

    Parameters
    ----------
    forecasts : Forecasts
    event : str or int
        Name or position of the event.
    state : Fitted
        Result of a fit to forecasts by the same experts, in the same order
        (`opinionpool.pools.fit.fit_pool`).
    prior, base_rate : optional
        As given to the fit and to pooling; the event's own prior is used before `prior`.
    level : float, default 0.9
        Level of the interval.

    Raises
    ------
    ArgumentError
        If there is no such event (the error suggests the nearest name), or where `explain` raises it.

    Examples
    --------
    >>> from opinionpool.pools.fit import fit_pool
    >>> f = Forecasts.from_array([[0.7, 0.6], [0.2, 0.3], [0.9, None]], [1, 0, None], experts=["ann", "bob"])
    >>> why = explain_event(f, "event_3", fit_pool("average", f))
    >>> why.experts, why.contributions.round(3).tolist()
    (('ann',), [0.9])
    """
    expect_type(forecasts, Forecasts, "forecasts")
    expect_type(state, (FittedPanel, FittedPool), "state")
    t = event_position(forecasts, event)
    each = event_priors(forecasts, prior)
    own = prior if each is None else logodds.public_probabilities(each[t])
    one = forecasts.select_events([t])
    forecast, ages = one.X[0], None
    if isinstance(state, FittedPanel) and state.recency is not None and one.made is not None:
        ages = one.ages
        one, state = state.aged(one, state.reference(own)), replace(state, coding=None)
    given, forecast = forecast, one.X[0]
    if forecasts.options is not None and each is not None:
        # As if there were no other options than this event's.
        labels = forecasts.options[t]
        state, own = state.for_options(labels), logodds.public_probabilities(each[t, : len(labels)])
        if forecast.ndim == 2:
            forecast = forecast[:, 1] if len(labels) == 2 else forecast[:, : len(labels)]
    topic = None if forecasts.topics is None else str(forecasts.topics[t])
    why = explain(state, forecast, own, base_rate, event=forecasts.events[t], level=level, topic=topic)
    if forecasts.scales and len(forecasts.classes) == 2:
        named = zip(why.experts, given[one.expert_index].tolist(), strict=True)
        why = replace(why, given_levels=tuple(level_of(forecasts.scales, name, p) for name, p in named))
    if ages is None:
        return why
    # What counts is what remains of each forecast at its age; what is shown is the forecast as it was made.
    return replace(why, probabilities=given[one.expert_index], ages=ages)


def event_position(forecasts: Forecasts, event: str | int) -> int:
    """Position of the event called `event` or at position `event`; an ArgumentError if there is none."""
    if isinstance(event, (int, np.integer)) and not isinstance(event, bool):
        if not 0 <= event < len(forecasts.events):
            raise ArgumentError(f"there are events 0 to {len(forecasts.events) - 1}, and no {event}")
        return int(event)
    return forecasts.events.index(chosen_name(event, "event", forecasts.events))


def explain(
    state: Fitted | PoolingPanel,
    q: npt.ArrayLike,
    prior: npt.ArrayLike | None = None,
    base_rate: npt.ArrayLike | None = None,
    *,
    event: str | None = None,
    level: float = LEVEL,
    topic: str | None = None,
) -> Explanation:
    """Explanation of a pool's answer to forecasts `q` on one event.

    Parameters
    ----------
    state : Fitted or Panel
        Result of a fit, or an assessed panel.
    q : array_like, shape (N,), or (N, K) when K > 2
        Forecasts, NaN where an expert did not answer.
    prior : float, or array_like (K,) when K > 2, optional
        By default the prior of the fit; uniform for a panel.
    base_rate : float, or array_like (K,) when K > 2, optional
        How often such events really happen, if not as often as the prior says.
    event : str, optional
        Name of the event.
    level : float, default 0.9
        Level of the interval.
    topic : str, optional
        Topic of the event.

    Raises
    ------
    ArgumentError
        If the pool is not a sum over experts: median, trimmed and beta-linear.
    ProbabilityError, ShapeError
        If the forecasts do not fit.

    Examples
    --------
    >>> panel = Panel([1.0, 2.0], [[2.0, 1.0], [1.0, 4.0]], names=["ann", "bob"])
    >>> why = explain(panel, [0.8, 0.7])
    >>> why.contributions.round(3), float(why.total.round(3)), why.without.round(3)
    (array([0.792, 0.726]), 1.518, array([0.7, 0.8]))
    """
    expect_type(state, (FittedPanel, FittedPool, PoolingPanel), "state")
    level = number(level, "level", 0, 1, between=True)
    if isinstance(state, PoolingPanel):
        k = len(state.classes)
        state = FittedPanel(
            state, np.full(k, 1.0 / k), "assumed", np.zeros(k), np.zeros(len(state)), np.ones(len(state), dtype=bool)
        )
    names, prior = state.experts, state.reference(prior)
    given, learned = q, state
    if isinstance(state, FittedPanel) and state.coding is not None:
        q, state = state.taken(q), replace(state, coding=None)
    batch = state.read(q, prior, base_rate)
    if batch.lead:
        raise ArgumentError(f"one event is explained at a time, and forecasts of shape {np.shape(q)} are of several")
    parts = state.answer_parts(batch)
    present = np.flatnonzero(~np.isnan(batch.q[0].reshape(len(names), -1)[:, 0]))
    total = parts.start + parts.intercept + parts.contributions.sum(axis=0)
    added = _topic_part(state, batch, prior, topic)
    total = total if added is None else total + added
    probability = np.asarray(state.pool(batch.q[0], prior, base_rate, topic))
    show = logodds.public_probabilities if parts.scale == "probability" else logodds.public_log_odds
    shift = batch.shift[0]
    if parts.scale == "probability":
        shift = total - total if base_rate is None else class_probabilities(probability, batch.classes) - total
    beside = None
    share = _members_share(state, batch)
    if share is not None:
        beside = logodds.prior_log_ratios(class_probabilities(probability, batch.classes)) - (total + shift)
    found = Explanation(
        event=event,
        pool=state.rule,
        scale=parts.scale,
        classes=tuple(state.classes),
        experts=tuple(names[i] for i in present),
        probabilities=batch.q[0][present] if learned is state else np.asarray(given)[present],
        bias=logodds.public_log_odds(parts.bias[present]),
        contrast=logodds.public_log_odds(parts.contrast[present]),
        weights=None if parts.weights is None else parts.weights[present],
        contributions=show(parts.contributions[present]),
        without=_without(
            learned, batch.q[0] if learned is state else np.asarray(given), present, prior, base_rate, topic
        ),
        prior=logodds.public_probabilities(batch.prior[0]),
        start=show(parts.start),
        intercept=show(parts.intercept),
        shift=show(shift),
        total=show(total + shift if beside is None else total + shift + beside),
        probability=probability,
        level=level,
        topic=None if added is None else topic,
        topic_shift=None if added is None else show(added),
        members_share=share,
        members_shift=None if beside is None else show(beside),
    )
    if state.posterior is not None and batch.classes == 2 and len(present):
        low, high = state.interval(batch.q[0], prior, base_rate, level, topic)
        found = replace(found, interval=(float(low), float(high)))
    return replace(found, notes=(*_against(found, state, present), *_mixed(found, state), *_at_floor(found)))


def _mixed(found: Explanation, state: Fitted) -> list[Note]:
    """Note on the share of the answer that is due to the simple average and single experts; an empty list if none."""
    if found.members_share is None:
        return []
    text = (
        f"{1.0 - found.members_share:.0%} of the answer, as a probability, is that of the weighted pool; the rest is "
        f"the simple average and the forecasts of single experts, {shared_by(state)}"
    )
    return [Note("mixed", text)]


def shared_by(state: Fitted) -> str:
    """Return the clause on what decides about the shares of the pool, the average and single experts."""
    return "by how well each predicted the outcomes" if state.events.any() else "as is assumed of any panel"


def _members_share(state: Fitted, batch: Batch) -> float | None:
    """Share of the answer that comes from the simple average and single experts; None if there is no mixture."""
    members = state.members if isinstance(state, FittedPanel) else None
    if members is None or not batch.answered_by(members.count > 0)[0]:
        return None
    return float(1.0 - members.shares[0])


def _topic_part(state: Fitted, batch: Batch, prior: npt.ArrayLike, topic: str | None) -> Array | None:
    """What the topic adds to the log-ratios, (K - 1,); None if topics are not learned, or nobody informed answered."""
    if not topic or not isinstance(state, FittedPanel) or state.topics is None:
        return None
    if not batch.answered_by(state.panel.informative)[0]:
        return None
    common = class_probabilities(state.panel.pool(batch.q[0], prior), batch.classes)
    return np.asarray(state.topic_shift(common[None], batch.at_prior, topic).ratios[0])


def _against(found: Explanation, state: Fitted, present: Index) -> list[Note]:
    """Notes that say why experts who contribute have negative weights; `present`: positions of those who answered."""
    if found.weights is None:
        return []
    nonzero = (found.contributions != 0).reshape(len(found.experts), -1 if found.experts else 1).any(axis=1)
    below = np.flatnonzero((found.weights < 0) & nonzero)
    panel, contrast = state.panel, None
    if state.marginal is not None:
        contrast = state.marginal.contrast
    elif isinstance(panel, Panel):
        contrast = panel.parts.contrast
    notes = []
    low, high = state.weight_interval()
    for i in below[np.argsort(found.weights[below], kind="stable")][:MOST_SHOWN].tolist():
        name = f"{shown(found.experts[i])} (weight {found.weights[i]:.3f})"
        at = present[i]
        if high[at] >= 0:
            text = (
                f"the weight of {shown(found.experts[i])}, {found.weights[i]:.3f}, cannot be distinguished from 0 "
                f"(90% interval {low[at]:.2f} to {high[at]:.2f} when every expert answers): outcomes do not show that "
                "this forecast adds anything to the others. As the weight is below 0, a high forecast lowers the "
                "answer and a low one raises it"
            )
        elif contrast is None:
            text = f"{name} counts against its own forecast: given the others' forecasts, it pointed the other way"
        elif contrast[at] < 0:
            text = f"{name} is turned round: what this expert calls likely happens less often"
        else:
            text = (
                f"{name} corrects for shared errors: much of this forecast is known from {_nearest(found, panel, i)}, "
                "and subtracting some of it removes errors that both share"
            )
        notes.append(Note("negative-weights", text))
    if len(below) > MOST_SHOWN:
        text = f"{counted(len(below) - MOST_SHOWN, 'more weight')} below 0, by less"
        notes.append(Note("negative-weights", text, len(below) - MOST_SHOWN))
    return notes


def _nearest(found: Explanation, panel: PoolingPanel | None, i: int) -> str:
    """Name of the expert with positive weight who is most correlated with expert `i`; a phrase if nobody is."""
    assert found.weights is not None
    if isinstance(panel, Panel) and not isinstance(panel.parts.dependence, CommonCorrelation):
        here = [panel.names.index(name) for name in found.experts]
        unit = np.zeros(len(panel))
        unit[here[i]] = 1.0
        near = np.where(found.weights > 0, panel.parts.times(unit)[here], -np.inf)
        j = int(near.argmax())
        if near[j] > 0:
            return f"{shown(found.experts[j])} (correlation {near[j]:.2f})"
    return "those with larger weights"


def _at_floor(found: Explanation) -> list[Note]:
    """Note that the answer is not the sum of its parts, because of a floor; an empty list if it is the sum."""
    if found.scale == "log-odds":
        total = np.atleast_1d(found.total)
        raw = logodds.softmax(total if len(total) == 1 else logodds.uncentred(total))
    else:
        raw = found.total if found.total.ndim else class_probabilities(found.total)
    off = np.abs((raw if found.probability.ndim else logodds.public_probabilities(raw)) - found.probability)
    if (off <= 1e-12).all():
        return []
    return [Note("at-floor", "the answer is at its bound: no outcome is called impossible, whatever the sum")]


def _without(
    state: Fitted, q: Array, present: Index, prior: npt.ArrayLike, base_rate: npt.ArrayLike | None, topic: str | None
) -> Array:
    """Answers to forecasts `q` without each of the experts `present` in turn, (n,), or (n, K) if K > 2."""
    answers = []
    for block in blocks(len(present), q.size):
        left = present[block]
        rows = np.broadcast_to(q, (len(left), *q.shape)).copy()
        rows[np.arange(len(left)), left] = np.nan
        answers.append(np.asarray(state.pool(rows, prior, base_rate, topic)))
    return np.concatenate(answers) if answers else np.zeros((0, *q.shape[1:]))


def by_effect(why: Explanation) -> list[int]:
    """Positions in `why.experts` by decreasing absolute contribution (if K > 2, the largest over classes)."""
    size = np.abs(why.contributions)
    size = size if size.ndim == 1 else size.max(axis=1)
    return [int(i) for i in np.argsort(-size, kind="stable")]


class Step(NamedTuple):
    """One bar of a waterfall chart: the amount that it adds, and the probability before and after the addition."""

    name: str
    before: float
    after: float


def steps(why: Explanation, at: int) -> list[Step]:
    """Steps of the probability of class `at` from the prior to the answer; experts come by decreasing contribution."""
    parts = [why.contributions[i] for i in by_effect(why)]
    names = [why.experts[i] for i in by_effect(why)]
    if np.any(why.intercept != 0):
        parts, names = [why.intercept, *parts], ["intercept", *names]
    if why.topic_shift is not None:
        parts, names = [*parts, why.topic_shift], [*names, f"topic {why.topic}"]
    if np.any(why.shift != 0):
        parts, names = [*parts, why.shift], [*names, "base rate"]
    if why.members_shift is not None:
        parts, names = [*parts, why.members_shift], [*names, "average and single experts"]
    total, found = np.asarray(why.start), []
    before = _class_probability(total, at)
    for name, part in zip(names, parts, strict=True):
        total = total + part
        after = _class_probability(total, at)
        found.append(Step(name, before, after))
        before = after
    return found


def _class_probability(total: Array, at: int) -> float:
    """Probability of class `at` from `total`: log-odds if K = 2, else centred log-probabilities (K,)."""
    return of_class(
        np.asarray(logodds.expit(total) if total.ndim == 0 else logodds.softmax(logodds.uncentred(total))), at
    )


def of_class(p: Array, at: int) -> float:
    """Probability of class `at` from `p`: the second class's if `p` is a number, else an array (K,)."""
    if p.ndim == 0:
        return float(p) if at == 1 else 1.0 - float(p)
    return float(p[at])


@dataclass(frozen=True, eq=False)
class WeightTable:
    """Weights of N experts, the largest first, with the bounds of their intervals; NaN where unknown."""

    experts: tuple[str, ...]
    # weight, low, high: (N,)
    weight: Array
    low: Array
    high: Array
    level: float


def weight_table(state: Fitted, level: float = 0.9) -> WeightTable | None:
    """Weights of a fit, sorted, with intervals at `level`; None if the fit has no weights."""
    if state.weights is None:
        return None
    weight = np.asarray(state.weights, dtype=np.float64)
    low, high = state.weight_interval(level)
    order = np.argsort(-weight, kind="stable")
    names = tuple(state.experts[i] for i in order.tolist())
    return WeightTable(names, weight[order], low[order], high[order], level)
