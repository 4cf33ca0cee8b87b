"""How many of a group's events happen: the posterior of the share, from a pool's likelihoods and what is resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.analysis.rate_rivals import Rate, rivals
from opinionpool.analysis.shares import Binned, Shares, posterior, unlike
from opinionpool.arguments import expect_type, number, one_of
from opinionpool.arrays import Array, Index, Mask
from opinionpool.clusters import by_group, by_settlement
from opinionpool.display import Tabular
from opinionpool.errors import ArgumentError, LearningError, Note
from opinionpool.forecasts import Forecasts
from opinionpool.labels import event_labels
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.posterior import answer_rows
from opinionpool.logodds import softmax, uncentred
from opinionpool.pools.fitted_pool import FittedPool
from opinionpool.priors import own_priors, spread_prior
from opinionpool.text import counted, listed

LABELS = ("random", "selected")
# A group is called unlike the others below this p-value, over the number of groups.
UNLIKE = 0.05
# Log-likelihood ratios beyond this are taken as this.
LARGEST = 30.0
# Differences of so many groups are paired.
PAIRED = 100
ASSUMPTION = "experts are taken to err in every group as in the others, given the outcome"


class Difference(NamedTuple):
    """How much larger one group's share is than another's."""

    difference: float
    low: float
    high: float
    above: float  # probability that it is larger


@dataclass(frozen=True, eq=False)
class Rates(Tabular):
    """Shares of events that happen, by group. Arrays are (G,), about ``classes[1]``, or (G, K) when K > 2.

    Attributes
    ----------
    groups_ : tuple of str
        G groups, sorted.
    classes : tuple
    rate_ : ndarray
        Posterior means.
    interval_ : tuple of two ndarrays
        Equal-tailed credible intervals.
    total_ : Difference
        The share among all events, or None when K > 2.
    events_, resolved_ : ndarray, shape (G,)
        How many events there are, and how many of them are resolved.
    rivals_ : dict of str to Rate
        Other estimates with confidence intervals: mean of answers, majority, Rogan-Gladen, PPI++.
    unlike_ : ndarray, shape (G,)
        P-value of a test of the assumption that experts err in the group as in the others, given the outcome.
    level : float
    notes : tuple of Note
    """

    groups_: tuple[str, ...]
    classes: tuple[object, ...]
    rate_: Array
    interval_: tuple[Array, Array]
    total_: Difference | None
    events_: Index
    resolved_: Index
    rivals_: dict[str, Rate]
    unlike_: Array
    level: float
    notes: tuple[Note, ...]
    shares: tuple[Shares, ...]  # by class; of two, of the second
    together: Array  # (G, G); sums over what events share of the products of two groups' scores

    def difference(self, a: str, b: str, of: object = None) -> Difference:
        """How much larger the share of group `a` is than that of `b`; of class `of` when K > 2.

        Events of both that share a group of dependent events, such as an item, are paired.

        Raises
        ------
        ArgumentError
            If there is no such group or class.
        """
        places = [self.groups_.index(one_of(name, "the group", self.groups_)) for name in (a, b)]
        factor, pair = np.array([1.0, -1.0]), self.together[np.ix_(places, places)]
        of = self.classes[-1] if of is None else of
        if of not in self.classes:
            raise ArgumentError(f"of must be one of the classes {self.classes}")
        share = self.shares[0 if len(self.classes) == 2 else self.classes.index(of)]
        some = replace(share, mean=share.mean[:, places], variance=share.variance[:, places])
        scale = np.sqrt(pair[0, 0] * pair[1, 1])
        found = Difference(*some.of_sum(factor, pair[0, 1] / scale if scale > 0 else 0.0, self.level))
        if len(self.classes) == 2 and of == self.classes[0]:
            return Difference(-found.difference, -found.high, -found.low, 1.0 - found.above)
        return found

    def _table(self) -> dict[str, Sequence[Any]]:
        several = self.rate_.ndim > 1
        k = len(self.classes) if several else 1
        table: dict[str, Sequence[Any]] = {"group": [name for name in self.groups_ for _ in range(k)]}
        if several:
            table["class"] = list(self.classes) * len(self.groups_)
        own = {"": Rate(self.rate_, *self.interval_)} | {f"{name} ": each for name, each in self.rivals_.items()}
        table |= {"events": np.repeat(self.events_, k).tolist(), "resolved": np.repeat(self.resolved_, k).tolist()}
        for name, each in own.items():
            table |= {f"{name}{part}": value.ravel().tolist() for part, value in each._asdict().items()}
        return table


def rates(
    pool: Any,  # noqa: ANN401 - estimators too
    forecasts: Any,  # noqa: ANN401 - what can be read, too
    by: object = None,
    *,
    labels: str = "random",
    level: float = 0.9,
    prior: npt.ArrayLike | None = None,
) -> Rates:
    """Shares of events that happen, by group: resolved ones counted, open ones by the pool's likelihoods.

    A pool's answer starts from the prior that it was learned with. Here that is taken out again, and each group has a
    base rate of its own, which follows from the likelihoods and is pulled towards that of the other groups as far as
    these are alike. Intervals hold what is unknown about base rates, outcomes, and the pool's intercept and slope.

    Parameters
    ----------
    pool : fitted GaussianPool, what its fit leaves, or a loaded pool
    forecasts : Forecasts, or a file or table as `read_forecasts` takes it
    by : str or sequence of str, length T, optional
        "topic" or "group", the column of a table, or a label for each event. All events are one group if not given.
    labels : {"random", "selected"}
        Whether the resolved events are a random sample of their group; else they say nothing about how many of the
        open ones happen.
    level : float, default 0.9
        Of intervals.
    prior : float or array_like, optional
        Of all events, where the pool has learned with one for each.

    Returns
    -------
    Rates

    Raises
    ------
    ArgumentError, LearningError
        If there are no such groups, events have options of their own, or the pool does not say how sure it is.

    Notes
    -----
    Experts are taken to err in every group as in the others, given the outcome; a note says where forecasts or
    outcomes speak against that. Events of a group of dependent events, such as one item judged for several systems,
    are those of `forecasts.groups`: intervals are wider for them, and differences of two groups are paired.

    Examples
    --------
    >>> from opinionpool.learning.learn import learn
    >>> from opinionpool.model.panel import Panel
    >>> x, y = Panel.exchangeable(5, correlation=0.3, accuracy=1.0).simulate(600, seed=1)
    >>> f = Forecasts.from_array(x, [*y[:200], *[None] * 400])
    >>> found = rates(learn(f), f, ["old"] * 300 + ["new"] * 300)
    >>> found.groups_, bool(found.difference("new", "old").low < y[300:].mean() - y[:300].mean())
    (('new', 'old'), True)
    """
    one_of(labels, "labels", LABELS)
    level = number(level, "level", 0, 1, between=True)
    if not isinstance(forecasts, Forecasts):
        from opinionpool.tables.read import read_forecasts

        named: dict[str, Any] = {} if by is None or by in ("topic", "group") else {"columns": {"topic": by}}
        forecasts, by = read_forecasts(forecasts, **named), "topic" if named else by
    # A pool from a file has a stream and what it learned; a stream is fitted as it stands.
    state = pool.learned if hasattr(pool, "stream") else getattr(pool, "state_", pool)
    state = state.fit() if hasattr(state, "resolve") else state
    if isinstance(state, FittedPool):
        raise LearningError(f"the {state.rule} pool does not say how sure it is; the default pool does")
    expect_type(state, FittedPanel, "pool")
    names, group = _groups(forecasts, by)
    events = _Likelihoods.of(state, replace(forecasts, topics=None), prior)
    k, outcome = len(forecasts.classes), forecasts.outcomes
    shared = by_group(forecasts) or by_settlement(forecasts)
    start, design, together = np.full((len(names), k), 1.0 / k), np.ones(len(names)), np.eye(len(names))
    if k > 2 or shared is not None:
        start = _class_shares(events.ratios, group, outcome, len(names))
    if shared is not None:
        design, together = _dependence(events.ratios, start, group, outcome, shared.member)
    worth = _separate(events.ratios, start, group, outcome, random=labels == "random")
    shares, tests, sizes = [], [], np.bincount(group, minlength=len(names))
    for c in range(k) if k > 2 else (1,):
        score, line = events.against_others(c, start[group])
        offset = events.offsets[:, c] - np.log1p(-np.exp(events.offsets[:, c]))
        happened = np.where(outcome < 0, -1, outcome == c)
        data = Binned.of(score, group, happened, events.answered, offset, len(names))
        shares.append(posterior(data, line, design, worth[:, c], random=labels == "random"))
        tests.append(unlike(data, shares[-1], design))
    unlikely = np.min(tests, axis=0)
    mean = np.stack([each.weight @ each.mean for each in shares], axis=-1)
    ends = [np.stack(end, axis=-1) for end in zip(*(each.interval(level) for each in shares), strict=True)]
    if k > 2:
        mean = mean / mean.sum(axis=1, keepdims=True)
    total = None if k > 2 else Difference(*shares[0].of_sum(sizes / sizes.sum(), 0.0, level))
    low, high = (end if k > 2 else end[:, 0] for end in ends)
    rate = mean if k > 2 else mean[:, 0]
    return Rates(
        groups_=names, classes=forecasts.classes, rate_=rate, interval_=(np.minimum(low, rate), np.maximum(high, rate)),
        total_=total, events_=sizes, resolved_=np.bincount(group[outcome >= 0], minlength=len(names)),
        rivals_=rivals(forecasts, events.answers, group, len(names), level), unlike_=unlikely, level=level,
        notes=_notes(names, unlikely), shares=tuple(shares), together=together,
    )  # fmt: skip


def _groups(forecasts: Forecasts, by: object) -> tuple[tuple[str, ...], Index]:
    """Names of the groups, sorted, and the group of each event, (T,)."""
    t = len(forecasts.events)
    if by is None:
        return ("all",), np.zeros(t, dtype=np.intp)
    found = {"topic": forecasts.topics, "group": forecasts.groups}.get(by) if isinstance(by, str) else by
    if found is None or isinstance(found, str):
        raise ArgumentError(
            f"these forecasts have no column {by!r} to go by; by is 'topic' or 'group' where events have these, or a "
            "label for each event"
        )
    plain = isinstance(found, np.ndarray) and found.dtype.kind == "U" and found.shape == (t,)
    labels: npt.NDArray[np.str_] = found if plain else event_labels(found, t, "by")  # type: ignore[assignment]
    words = [label or "(none)" for label in labels.tolist()]
    names = sorted(set(words))
    code = {name: g for g, name in enumerate(names)}
    return tuple(names), np.fromiter(map(code.__getitem__, words), np.intp, t)


@dataclass(frozen=True, eq=False)
class _Likelihoods:
    """What a pool's answers say about T events beyond the prior."""

    state: FittedPanel
    forecasts: Forecasts  # as they count by their ages
    prior: npt.ArrayLike
    answers: Array  # (T, K); pooled probabilities
    ratios: Array  # (T, K); their logarithms without the prior, less those of the first class; 0 where nobody answered
    offsets: Array  # (T, K); logarithms of the events' own priors
    answered: Mask  # (T,)

    @classmethod
    def of(cls, state: FittedPanel, forecasts: Forecasts, prior: npt.ArrayLike | None) -> _Likelihoods:
        """The likelihoods by what a fit learned."""
        if forecasts.options is not None:
            raise ArgumentError("events have options of their own, so no class has a share of them all")
        if state.posterior is None:
            raise LearningError(
                f"a panel learned as {state.structure!r} does not say how sure it is; the default pool does"
            )
        forecasts = forecasts.by_experts(state.experts)
        prior = state.reference(prior if forecasts.prior is None else own_priors(forecasts, prior))
        answers = answer_rows(state.pool_forecasts(forecasts, prior), len(state.classes))
        informative = state.panel.informative[forecasts.expert_index]
        answered = np.bincount(forecasts.event_index, informative, len(answers)) > 0
        base = np.log(spread_prior(prior, (len(answers),), len(state.classes)))
        ratios = np.log(answers) - base
        ratios = np.where(answered[:, None], np.clip(ratios - ratios[:, :1], -LARGEST, LARGEST), 0.0)
        return cls(state, state.aged(forecasts, prior), prior, answers, ratios, base, answered)

    def against_others(self, c: int, share: Array) -> tuple[Array, Array]:
        """Log-likelihood ratios of class c to the others mixed as `share`, (T,), and covariance of the line, (2, 2)."""
        others = np.arange(self.ratios.shape[1]) != c
        part = self.ratios[:, others] + np.log(share[:, others] / share[:, others].sum(axis=1, keepdims=True))
        score = np.where(self.answered, self.ratios[:, c] - np.logaddexp.reduce(part, axis=1), 0.0)
        slope = np.zeros_like(self.ratios)
        slope[:, c] = 1.0
        slope[:, others] = -softmax(uncentred(part))
        line = np.stack([np.ones(len(score)), score], axis=1) * self.answered[:, None]
        posterior = self.state.posterior
        assert posterior is not None
        covariance = posterior.whole_covariance
        moments = np.zeros((2, len(covariance)))
        for rows, q, (own,) in self.forecasts.dense_blocks(self.state.experts, self.prior):
            assert own is not None
            gradient = posterior.gradient(self.state.panel, q, own)
            moments += np.einsum("tl,tpk,tk->lp", line[rows], gradient, slope[rows, 1:], optimize=True)
        turn = np.linalg.pinv(line.T @ line) @ moments
        return score, turn @ covariance @ turn.T


def _class_shares(ratios: Array, group: Index, outcome: Index, groups: int) -> Array:
    """Most probable shares of the classes in each group, (G, K), a little towards equal ones, by EM."""
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


def _separate(ratios: Array, share: Array, group: Index, outcome: Index, *, random: bool) -> Array:
    """Information about each class's share if the mix of the others is unknown, as a part of that if known, (G, K)."""
    groups, k = share.shape
    if k == 2:
        return np.ones((groups, k))
    each = np.where((outcome >= 0)[:, None], np.eye(k)[outcome], softmax(uncentred(np.log(share)[group] + ratios)))
    # The derivative of an event's log-likelihood with respect to each share.
    slope = each / share[group] * (random | (outcome < 0))[:, None]
    found = np.ones((groups, k))
    for g in range(groups):
        product = slope[group == g].T @ slope[group == g]
        for c in range(k):
            others = np.delete(np.arange(k), c)
            turn = np.zeros((k, k - 1))
            # The class against the others as they are mixed, and those against each other.
            turn[c, 0], turn[others, 0] = 1.0, -share[g, others] / share[g, others].sum()
            turn[others[1:], range(1, k - 1)], turn[others[0], 1:] = 1.0, -1.0
            matrix = turn.T @ product @ turn
            explained = matrix[0, 1:] @ np.linalg.pinv(matrix[1:, 1:], hermitian=True) @ matrix[1:, 0]
            found[g, c] = np.clip(1.0 - explained / max(matrix[0, 0], 1e-300), 0.01, 1.0)
    return found


def _dependence(ratios: Array, share: Array, group: Index, outcome: Index, member: Index) -> tuple[Array, Array]:
    """Design effects (G,), and products of scores (outcome less share) summed over items that groups share, (G, G)."""
    groups, open_ = len(share), outcome < 0
    each = (softmax(uncentred(np.log(share)[group] + ratios)) - share[group])[:, 1:].sum(axis=1) * open_
    pair, place = np.unique(np.stack([member, group])[:, open_], axis=1, return_inverse=True)
    total = np.bincount(place.ravel(), each[open_], pair.shape[1])
    clusters = np.bincount(pair[1], minlength=groups)
    single, joint = np.bincount(group, each**2, groups), np.bincount(pair[1], total**2, groups)
    ratio = np.divide(joint, single, out=np.ones(groups), where=(single > 0) & (clusters > 1))
    design = np.maximum(1.0, ratio * clusters / np.maximum(clusters - 1, 1))
    _, item = np.unique(pair[0], return_inverse=True)
    if groups > PAIRED:
        return design, np.diag(joint)
    table = np.zeros((item.max(initial=-1) + 1, groups))
    table[item, pair[1]] = total
    return design, table.T @ table


def _notes(names: Sequence[str], unlikely: Array) -> tuple[Note, ...]:
    """A note on groups whose forecasts speak against the assumption."""
    found = [name for name, p in zip(names, unlikely, strict=True) if p < UNLIKE / len(names)]
    if not found:
        return ()
    text = (
        f"{ASSUMPTION}, and what they say in {counted(len(found), 'group')} ({listed(found, 4)}) speaks against that: "
        "shares there may be further off than their intervals say; resolve some events of them, and learn from these"
    )
    return (Note("unlike-groups", text, len(found), serious=True),)
