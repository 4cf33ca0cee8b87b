"""Share of a group's events that happen: its posterior, from a pool's likelihood ratios and known outcomes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.analysis.shares import LARGEST, Binned, Shares, dependence, posterior
from opinionpool.arguments import brief, number, one_of
from opinionpool.arrays import Array, Index, Mask
from opinionpool.clusters import by_group, by_settlement
from opinionpool.display import Tabular
from opinionpool.errors import ArgumentError, LearningError, Note
from opinionpool.forecasts import Forecasts
from opinionpool.labels import event_labels
from opinionpool.learning.fitted import FittedPanel, LeftOut
from opinionpool.learning.posterior import answer_rows
from opinionpool.logodds import all_classes, softmax, uncentred
from opinionpool.pools.fitted_pool import FittedPool
from opinionpool.pools.verdicts import votes
from opinionpool.priors import own_priors, spread_prior
from opinionpool.text import counted, listed

LABELS = ("random", "selected")
# Rows of the table that are shown.
SHOWN = 20
# A group is called unlike the others below this p-value, over the number of groups.
UNLIKE = 0.05
# A number of events this close to a whole one is that.
ROUNDING = 1e-6
ASSUMPTION = "experts are taken to err in every group as in the others, given the outcome"


class RateDifference(NamedTuple):
    """Difference between the shares of events that happen in two groups, with an interval."""

    difference: float
    low: float
    high: float
    above: float  # probability that the first group's share is larger, or that the share is above 0


@dataclass(frozen=True, eq=False, repr=False)
class Rates(Tabular):
    """Shares of events that happen, by group; arrays are (G,), about ``classes[1]``, or (G, K) when K > 2.

    Attributes
    ----------
    groups_ : tuple of str
        G groups, sorted.
    classes : tuple
    rate_ : ndarray
        Posterior mean of each share.
    interval_ : tuple of two ndarrays
        Equal-tailed credible intervals, whose ends are whole numbers of events.
    total_ : RateDifference
        The share among all events, or None when K > 2.
    events_, resolved_ : ndarray, shape (G,)
        Number of all events, and of resolved events.
    rivals_ : dict of str to Rate
        Other estimates with confidence intervals: mean of answers, majority, Rogan-Gladen, PPI++.
    unlike_ : ndarray, shape (G,)
        P-value of a test of the assumption that experts err in the group as in the other groups, given the outcome.
    by_outcomes_ : float
        Probability that this assumption does not hold, so that base rates follow from resolved events only.
    level : float
    notes : tuple of Note
    """

    groups_: tuple[str, ...]
    classes: tuple[object, ...]
    rate_: Array
    interval_: tuple[Array, Array]
    total_: RateDifference | None
    events_: Index
    resolved_: Index
    rivals_: dict[str, Rate]
    unlike_: Array
    by_outcomes_: float
    level: float
    notes: tuple[Note, ...]
    shares: tuple[Shares, ...]  # by class; of two, of the second

    def __repr__(self) -> str:
        table = self._table()
        names = ["group", *(["class"] if "class" in table else []), "rate", "low", "high", "events", "resolved"]
        rows = list(zip(*(table[name] for name in names), strict=True))
        shown = [[f"{x:.3f}" if isinstance(x, float) else brief(x) for x in row] for row in rows[:SHOWN]]
        width = [max(map(len, column)) for column in zip(names, *shown, strict=True)]
        lines = ["  ".join(x.rjust(w) for x, w in zip(row, width, strict=True)) for row in (names, *shown)]
        more = [f"... {len(rows) - SHOWN:,} more rows"] if len(rows) > SHOWN else []
        return "\n".join([f"Rates of {counted(len(self.groups_), 'group')}, {self.level:.0%} intervals", *lines, *more])

    def difference(self, a: str, b: str, of: object = None) -> RateDifference:
        """Difference between the shares of groups `a` and `b`, of class `of` when K > 2.

        Events of both groups that are dependent, such as events on one item, are paired.

        Raises
        ------
        ArgumentError
            If there is no such group or class.
        """
        factor = np.zeros((1, len(self.groups_)))
        for name, sign in ((a, 1.0), (b, -1.0)):
            factor[0, self.groups_.index(one_of(name, "the group", self.groups_))] += sign
        *classes, plain = (each.item() if isinstance(each, np.generic) else each for each in (*self.classes, of))
        known = [c for c, each in enumerate(classes) if each is plain or (type(each) is type(plain) and each == plain)]
        if of is not None and not known:
            raise ArgumentError(f"of must be one of the classes {tuple(classes)}, and it is {brief(of)}")
        c = known[0] if known else len(classes) - 1
        if len(self.classes) == 2 and c == 0:
            factor = -factor
        share = self.shares[0 if len(self.classes) == 2 else c]
        return RateDifference(*(float(each[0]) for each in share.sums(factor, self.level)))

    def _table(self) -> dict[str, Sequence[Any]]:
        k = len(self.classes) if self.rate_.ndim > 1 else 1
        table: dict[str, Sequence[Any]] = {"group": [name for name in self.groups_ for _ in range(k)]}
        if k > 1:
            table["class"] = list(self.classes) * len(self.groups_)
        numbers: dict[str, Any] = dict(zip(("rate", "low", "high"), (self.rate_, *self.interval_), strict=True))
        numbers |= {"events": np.repeat(self.events_, k), "resolved": np.repeat(self.resolved_, k)}
        for name, each in self.rivals_.items():
            numbers |= {
                f"{rival_key(name)}{end}": value for end, value in zip(("", "_low", "_high"), each, strict=True)
            }
        return table | {name: values.ravel().tolist() for name, values in numbers.items()}


def rival_key(name: str) -> str:
    """Column name for the estimates by the method `name`, such as rogan_gladen for Rogan-Gladen."""
    return re.sub(r"\W+", "_", name.lower()).strip("_")


def rates(
    pool: Any,  # noqa: ANN401 - estimators too
    forecasts: Any,  # noqa: ANN401 - what can be read, too
    by: object = None,
    *,
    labels: str = "random",
    level: float = 0.9,
    prior: npt.ArrayLike | None = None,
) -> Rates:
    """Share of events that happen, by group: resolved events are counted, open ones go by the pool's likelihood ratios.

    A pool's answers contain the prior of its fit. Here this prior is removed, and each group has its own base rate,
    estimated from the likelihood ratios and shrunken towards the other groups' as far as groups are alike. Intervals
    include the uncertainty of base rates, outcomes, and the pool's intercept and slope, which are estimated from the
    events of the fit, however these were selected: with few events of one class, intervals are wide.

    Parameters
    ----------
    pool : fitted GaussianPool, its `state_`, or a loaded pool
    forecasts : Forecasts, or a file or table as `read_forecasts` takes it
    by : str or sequence of str, optional
        With forecasts "topic" or "group", or a label for each event, (T,); with a file or table the name of a column,
        or of several. All events are one group if not given.
    labels : {"random", "selected"}
        Whether the resolved events are a random sample of their group, or selected, so that they tell nothing about
        how many of the open events happen.
    level : float, default 0.9
        Level of the intervals.
    prior : float or array_like, optional
        Prior of all events, if the pool was fitted with a prior for each event.

    Returns
    -------
    Rates

    Raises
    ------
    ArgumentError, LearningError
        If there are no such groups, events have options of their own, or the pool has no posterior.

    Notes
    -----
    Given the outcome, experts are assumed to err alike in all groups; a note says where forecasts or outcomes speak
    against that. The more outcomes contradict it, the less base rates follow from the forecasts on open events.
    Events with one label in `forecasts.groups`, such as one item judged for several systems, are dependent: intervals
    are wider, and differences of two groups are paired.

    Examples
    --------
    >>> import opinionpool as op
    >>> x, y = op.Panel.exchangeable(5, correlation=0.3, accuracy=1.0).simulate(600, seed=1)
    >>> f = op.Forecasts.from_array(x, [*y[:200], *[None] * 400])
    >>> found = op.rates(op.GaussianPool().fit(f), f, ["old"] * 300 + ["new"] * 300)
    >>> found.groups_, bool(found.difference("new", "old").low < y[300:].mean() - y[:300].mean())
    (('new', 'old'), True)
    """
    one_of(labels, "labels", LABELS)
    level = number(level, "level", 0, 1, between=True)
    state = learned_panel(pool)
    if not isinstance(forecasts, Forecasts):
        forecasts, by = _of_table(pool, forecasts, by)
    names, group = _groups(forecasts, by)
    k, outcome, size = len(forecasts.classes), forecasts.outcomes, np.bincount(group, minlength=len(names))
    events = Likelihoods.of(state, replace(forecasts, topics=None), prior)
    clusters = by_group(forecasts) or by_settlement(forecasts)
    share = np.full((len(names), k), 1.0 / k)
    if k > 2 or clusters is not None:
        share = _class_shares(events.ratios, group, outcome, len(names))
    mixed = softmax(uncentred(np.log(share)[group] + events.ratios))
    each = np.where((outcome >= 0)[:, None], np.eye(k)[outcome], mixed)
    worth = _separate(each, share, group, (labels == "random") | (outcome < 0))
    usual, score = size @ share / size.sum(), class_scores(events.ratios, share[group])
    shares = []
    for c in range(k) if k > 2 else (1,):
        design, together = dependence((each[:, c] - share[group, c]) * (outcome < 0), group, clusters, len(names))
        happened = np.where(outcome < 0, -1, outcome == c)
        offset = events.base[:, c] - np.log1p(-np.exp(events.base[:, c]))
        data = Binned.of(score[:, c], group, happened, len(names), answered=events.answered, offset=offset)
        data, believed = with_fit(data, state.left_out, usual, c)
        shares.append(posterior(data, believed, design, worth[:, c], together, random=labels == "random"))
    resolved = np.bincount(group[outcome >= 0], minlength=len(names))
    others = rivals(forecasts, events.answers, group, len(names), level)
    return rates_of(names, forecasts.classes, shares, (size, resolved), others, level)


def rates_of(
    names: tuple[str, ...],
    classes: tuple[object, ...],
    shares: Sequence[Shares],
    sizes: tuple[Index, Index],
    others: dict[str, Rate],
    level: float,
) -> Rates:
    """Rates of groups called `names`, from each class's posterior `shares`; `sizes` counts all, and resolved events."""
    several, size = len(shares) > 1, sizes[0]
    rate, low, high = (
        np.stack(part, axis=-1)
        for part in zip(*(each.sums(np.eye(len(names)), level)[:3] for each in shares), strict=True)
    )
    rate = rate / rate.sum(axis=1, keepdims=True) if several else rate
    rate, low, high = (part if several else part[:, 0] for part in (rate, *_whole(rate, low, high, size[:, None])))
    unlike = np.min([each.unlike for each in shares], axis=0)
    all_ = None
    if not several:
        mean, least, most, above = shares[0].sums(size[None] / size.sum(), level)
        all_ = RateDifference(*(float(part[0]) for part in (mean, *_whole(mean, least, most, size.sum()), above)))
    return Rates(
        groups_=names, classes=classes, rate_=rate, interval_=(low, high), total_=all_, events_=size,
        resolved_=sizes[1], rivals_=others, unlike_=unlike, level=level,
        by_outcomes_=max(each.by_outcomes for each in shares), notes=_notes(names, unlike), shares=tuple(shares),
    )  # fmt: skip


def _whole(rate: Array, low: Array, high: Array, size: npt.NDArray[Any]) -> tuple[Array, Array]:
    """Ends of intervals (`low`, `high`) about `rate`, moved outwards to whole numbers of events in `size`."""
    low, high = np.floor(low * size + ROUNDING) / size, np.ceil(high * size - ROUNDING) / size
    return np.minimum(low, rate), np.maximum(high, rate)


def _of_table(pool: Any, table: Any, by: object) -> tuple[Forecasts, object]:  # noqa: ANN401
    """Forecasts in a table, with the columns `by` as their topics; and by what to group them, as `rates` takes it."""
    from opinionpool.scales import scales_given
    from opinionpool.tables.options import ReadOptions
    from opinionpool.tables.read import read_with

    names: list[Any] = []
    named: dict[str, Any] = {}
    if not (by is None or (isinstance(by, str) and by in ("topic", "group"))):
        names = [by] if isinstance(by, str) else list(by) if isinstance(by, list | tuple) else []
        if not names or not all(isinstance(name, str) for name in names):
            raise ArgumentError(
                f"by of a table is the name of a column, or a list of names, and it is {brief(by)}; a label for each "
                "event goes with forecasts: op.rates(pool, op.read_forecasts(table), labels)"
            )
        named["columns"], by = {"topic": by}, "topic"
    own = pool._scales(pool._known()) if hasattr(pool, "_scales") else getattr(pool, "scales", None)
    scales, state = scales_given(own), learned_panel(pool)
    forecasts = read_with(table, None, ReadOptions(**named, known_experts=state.experts, known_scales=scales))
    check_groups(forecasts, names)
    return forecasts, by


def check_groups(forecasts: Forecasts, columns: Sequence[str]) -> None:
    """Raise an ArgumentError if one of the `columns` that define groups holds outcomes, and no event is resolved."""
    from opinionpool.tables.roles import roles_of

    taken = [] if forecasts.resolved.any() else [name for name in columns if "outcome" in roles_of(name)]
    if taken:
        raise ArgumentError(
            f"the column {brief(taken[0])} says what happened, so events cannot be grouped by it: without it none is "
            "resolved"
        )


def learned_panel(pool: Any) -> FittedPanel:  # noqa: ANN401
    """Fitted panel of a loaded pool, stream or estimator; a LearningError if it has no posterior of the weights."""
    state: Any = pool.learned if hasattr(pool, "stream") else getattr(pool, "state_", pool)
    state = state.learn() if hasattr(state, "learn") else state
    if hasattr(state, "fit"):
        raise LearningError(f"this {type(state).__name__} is not fitted yet; pool.fit(forecasts) does that")
    if isinstance(state, FittedPool):
        raise LearningError(f"the {state.rule} pool does not say how sure it is; the default pool does")
    if not isinstance(state, FittedPanel):
        raise ArgumentError(
            f"pool must be a fitted GaussianPool, or a loaded one, and this is a {type(state).__name__}"
        )
    if state.posterior is None:
        raise LearningError(
            f"a panel learned as {state.structure!r} does not say how sure it is; the default pool does"
        )
    return state


def _groups(forecasts: Forecasts, by: object) -> tuple[tuple[str, ...], Index]:
    """Sorted names of the groups that `by` makes of the events, and the position of each event's group, (T,)."""
    t = len(forecasts.events)
    if by is None:
        return ("all",), np.zeros(t, dtype=np.intp)
    found = {"topic": forecasts.topics, "group": forecasts.groups}.get(by) if isinstance(by, str) else by
    if found is None or np.asarray(found, dtype=object).ndim == 0:
        raise ArgumentError(
            f"these forecasts have no column {brief(by)} to go by; by is 'topic' or 'group' where events have these, "
            "or a label for each event"
        )
    plain = isinstance(found, np.ndarray) and found.dtype.kind == "U" and found.shape == (t,)
    labels: npt.NDArray[np.str_] = found if plain else event_labels(found, t, "by")  # type: ignore[assignment]
    words = [label or "(none)" for label in labels.tolist()]
    names = sorted(set(words))
    code = {name: g for g, name in enumerate(names)}
    return tuple(names), np.fromiter(map(code.__getitem__, words), np.intp, t)


@dataclass(frozen=True, eq=False)
class Likelihoods:
    """Likelihood ratios of the classes on T events: pooled probabilities divided by the events' priors."""

    answers: Array  # (T, K); pooled probabilities
    base: Array  # (T, K); logarithms of the events' own priors
    ratios: Array  # (T, K); log answers less `base`, less the first class's; 0 where nobody answered
    answered: Mask  # (T,)

    @classmethod
    def of(cls, state: FittedPanel, forecasts: Forecasts, prior: npt.ArrayLike | None) -> Likelihoods:
        """Likelihood ratios of the events of `forecasts` by the fitted panel `state`; `prior` as for `rates`."""
        if forecasts.options is not None:
            raise ArgumentError("events have options of their own, so no class has a share of them all")
        if len(forecasts.classes) != len(state.classes):
            raise ArgumentError(
                f"forecasts are of the classes {listed(forecasts.classes)}, and the pool is of {listed(state.classes)}"
            )
        forecasts = forecasts.by_experts(state.experts)
        prior = state.reference(prior if forecasts.prior is None else own_priors(forecasts, prior))
        k = len(state.classes)
        forecasts = state.aged(forecasts, prior)
        p = state.panel.pool_forecasts(forecasts, prior)
        answers, by_panel = (answer_rows(each, k) for each in (state.completed(p, forecasts, prior), p))
        informative = state.panel.informative[forecasts.expert_index]
        answered = np.bincount(forecasts.event_index, informative, len(answers)) > 0
        reference = spread_prior(prior, (len(answers),), k)
        if state.prior is not None and not np.allclose(reference, state.prior):
            raise ArgumentError(
                "a prior is where experts start from, and not how often events of a group happen, which rates "
                f"estimate; this pool was fitted with {brief(np.round(state.prior, 4).tolist())} for all events, and "
                "the given prior is another: leave out --prior (--column prior= for a column), or fit the pool with it"
            )
        base = np.log(reference)
        ratios = np.log(by_panel) - base
        ratios = np.where(answered[:, None], np.clip(ratios - ratios[:, :1], -LARGEST, LARGEST), 0.0)
        return cls(answers, base, ratios, answered)


def class_scores(ratios: Array, share: Array) -> Array:
    """Log-likelihood ratio of each class to the mean of all others, which are weighted by `share`; all are (T, K).

    Of each class, `ratios` has the log-likelihood ratio to the first class.
    """
    others = 1.0 - np.eye(ratios.shape[1])
    most = ratios.max(axis=1, keepdims=True)
    rest = np.log((np.exp(ratios - most) * share) @ others + 1e-300) - np.log(share @ others)
    return np.asarray(np.clip(ratios - most - rest, -LARGEST, LARGEST))


def with_fit(data: Binned, seen: LeftOut | None, share: Array, c: int) -> tuple[Binned, tuple[float, float]]:
    """Add the events of the fit, `seen`, to `data` as a last group; and return two prior beliefs for `posterior`.

    The beliefs are the score of an event without information, and the median of the slope's prior. The score of an
    event is the log-likelihood ratio of class `c` to the other classes, which are weighted by `share` (K,).
    """
    groups = data.counts.shape[1]
    parts = [(data, np.arange(groups))]
    if seen is None:
        return Binned.joined(parts, groups + 1), (0.0, 1.0)
    score = class_scores(np.pad(np.append(seen.ratios, seen.null[None], axis=0), ((0, 0), (1, 0))), share[None])[:, c]
    last = np.zeros(len(seen.weight), dtype=np.intp)
    own = Binned.of(score[:-1], last, (seen.outcomes == c).astype(np.intp), 1, weight=seen.weight)
    return Binned.joined([*parts, (own, np.array([groups]))], groups + 1), (float(score[-1]), seen.slope)


def _class_shares(ratios: Array, group: Index, outcome: Index, groups: int) -> Array:
    """Most probable shares of the classes in each group, (G, K): by outcomes and, for open events, by `ratios`."""
    k = ratios.shape[1]
    share = np.full((groups, k), 1.0 / k)
    known = np.eye(k)[outcome] * (outcome >= 0)[:, None]
    for _ in range(100):
        each = np.where((outcome >= 0)[:, None], known, softmax(uncentred(np.log(share)[group] + ratios)))
        count = np.stack([np.bincount(group, column, groups) for column in each.T], axis=-1) + 0.5
        before, share = share, count / count.sum(axis=1, keepdims=True)
        if np.abs(share - before).max() < 1e-4:
            break
    return share


def _separate(each: Array, share: Array, group: Index, counted: Mask) -> Array:
    """Share, (G, K), of the information about each class that remains as other classes' shares are unknown, too."""
    groups, k = share.shape
    if k == 2:
        return np.ones((groups, k))
    # Derivatives of events' log-likelihoods with respect to the shares, and the information of each group.
    slope = each / share[group] * counted[:, None]
    ends = np.cumsum(np.bincount(group, minlength=groups))[:-1]
    information = np.array([s.T @ s for s in np.split(slope[np.argsort(group, kind="stable")], ends)])
    free = np.eye(k) - 1.0 / k
    variance = np.linalg.pinv(free @ information @ free, rcond=1e-10, hermitian=True)
    known = (np.eye(k) - share[:, None, :]) / (1.0 - share[:, :, None])
    both = np.einsum("gca,gab,gcb,gcc->gc", known, information, known, variance)
    return np.asarray(np.clip(1.0 / np.maximum(both, 1e-300), 0.01, 1.0))


def _notes(names: Sequence[str], unlikely: Array) -> tuple[Note, ...]:
    """Note on groups in which experts seem to err differently than in others (p-values `unlikely`); empty if none."""
    found = [name for name, p in zip(names, unlikely, strict=True) if p < UNLIKE / len(names)]
    if not found:
        return ()
    text = (
        f"{ASSUMPTION}, and what they say in {counted(len(found), 'group')} ({listed(found, 4)}) speaks against that: "
        "shares there may be further off than their intervals say; resolve some events of them, and learn from these"
    )
    return (Note("unlike-groups", text, len(found), serious=True),)


class Rate(NamedTuple):
    """Estimates of the shares of G groups, (G,), or (G, K) if K > 2, with bounds of confidence intervals."""

    rate: Array
    low: Array
    high: Array


def rivals(forecasts: Forecasts, answers: Array, group: Index, groups: int, level: float) -> dict[str, Rate]:
    """Estimates of the groups' shares by four other methods, by name; `answers` (T, K) are pooled probabilities."""
    k, event, outcome = len(forecasts.classes), forecasts.event_index, forecasts.outcomes
    experts = all_classes(forecasts.probabilities, k)
    crowd, unanswered = np.maximum(forecasts.crowd, 1), (forecasts.crowd == 0) / k
    best = (experts >= experts.max(axis=1, keepdims=True)).T / 1.0
    majority = votes(np.stack([np.bincount(event, each, len(outcome)) + unanswered for each in best], axis=-1))
    size, known = np.bincount(group, minlength=groups), outcome >= 0
    found: dict[str, list[tuple[Array, Array]]] = {}
    for c in range(k) if k > 2 else (1,):
        happened = np.where(known, outcome == c, 0.0)
        answer = np.where(known, happened, answers[:, c])
        mean = _mean(answer, group, size)
        unsure = _mean(answer * (1.0 - answer), group, size) / size
        vote = _mean(majority[:, c], group, size)
        opinion = np.bincount(event, experts[:, c], len(outcome)) / crowd + unanswered
        each = {
            "mean of answers": (mean, unsure),
            "majority": (vote, vote * (1.0 - vote) / size),
            "Rogan-Gladen": _rogan_gladen(vote, size, majority[:, c], happened, known),
            "PPI++": _prediction_powered(opinion, happened, known, group, groups),
        }
        for name, pair in each.items():
            found.setdefault(name, []).append(pair)
    width = NormalDist().inv_cdf((1.0 + level) / 2.0)
    return {name: _rate(parts, width) for name, parts in found.items()}


def _rate(parts: list[tuple[Array, Array]], width: float) -> Rate:
    """Estimates ± `width` standard errors; `parts` has, for each class, the groups' estimates and their variances."""
    mean, error = np.stack([m for m, _ in parts], axis=-1), np.sqrt(np.stack([v for _, v in parts], axis=-1))
    ends = (np.clip(mean + sign * error, 0.0, 1.0) for sign in (0.0, -width, width))
    return Rate(*(end if len(parts) > 1 else end[:, 0] for end in ends))


def _mean(values: Array, group: Index, size: Index) -> Array:
    """Mean of `values` (T,) in each group, (G,); `size` (G,) has the groups' numbers of events."""
    return np.asarray(np.bincount(group, values, len(size)) / size)


def _rogan_gladen(vote: Array, size: Index, majority: Array, happened: Array, known: Mask) -> tuple[Array, Array]:
    """Groups' shares and their variances: shares of majority votes, corrected by the errors of votes where `known`."""
    counts = np.array([[(known & (happened == y)).sum(), majority[known & (happened == y)].sum()] for y in (0.0, 1.0)])
    if not counts[:, 0].all():
        return np.full_like(vote, np.nan), np.full_like(vote, np.nan)
    false, true = (counts[:, 1] + 0.5) / (counts[:, 0] + 1.0)
    errors = np.array([false * (1.0 - false), true * (1.0 - true)]) / (counts[:, 0] + 1.0)
    gap = true - false
    if gap < 0.02:
        return np.full_like(vote, 0.5), np.full_like(vote, 1.0)
    rate = np.clip((vote - false) / gap, 0.0, 1.0)
    variance = vote * (1.0 - vote) / size + (1.0 - rate) ** 2 * errors[0] + rate**2 * errors[1]
    return rate, variance / gap**2


def _prediction_powered(opinion: Array, happened: Array, known: Mask, group: Index, groups: int) -> tuple[Array, Array]:
    """Groups' shares and their variances by PPI++ (Angelopoulos 2023): mean `opinion`, less its error where `known`."""
    if known.sum() < 3:
        return np.full(groups, np.nan), np.full(groups, np.nan)
    own = np.bincount(group[known], minlength=groups)
    total = _moments(opinion, happened, known, np.zeros_like(group), 1)
    n, f, y, ff, yy, fy = np.where(own >= 3, _moments(opinion, happened, known, group, groups), total)
    m, g, _, gg, _, _ = _moments(opinion, happened, ~known, group, groups)
    m = np.maximum(m, 1)
    spread = (n * ff + m * gg) / (n + m) + n * m / (n + m) ** 2 * (f - g) ** 2
    power = np.clip(fy * n / (n - 1) / np.maximum((1 + n / m) * spread, 1e-12), 0.0, 1.0)
    rate = np.where(m > 1, power * g + y - power * f, y)
    return np.clip(rate, 0.0, 1.0), power**2 * gg / m + np.maximum(yy - 2 * power * fy + power**2 * ff, 0.0) / n


def _moments(f: Array, y: Array, rows: Mask, group: Index, groups: int) -> Array:
    """Number of the events `rows`, means of `f` and of `y`, their variances and covariance, by group, (6, groups)."""
    n = np.bincount(group, rows, groups)
    size = np.maximum(n, 1)
    mean_f, mean_y, ff, yy, fy = (np.bincount(group, rows * x, groups) / size for x in (f, y, f * f, y * y, f * y))
    return np.stack([n, mean_f, mean_y, ff - mean_f**2, yy - mean_y**2, fy - mean_f * mean_y])
