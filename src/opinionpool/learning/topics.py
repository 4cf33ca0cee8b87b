"""Topics: an intercept, a slope and weights for the events of each, as far as outcomes show that topics differ.

The common answer L* of an event on topic g becomes L° + a_g + (1 + s_g)(L* − L°) + Σ v_gi u_i, u_i the debiased
contrast of expert i: L° stays the reference, so that the pool is externally Bayesian within each topic. Intercepts a_g,
slopes s_g and the experts' further weights v_gi, which add up to 0, are normal about 0, the common values, with spreads
that are the same for all topics and are averaged over a few levels by how well each predicts the outcomes (evidence).
One level is that topics do not differ. Outcomes are compared with answers that have not learned from them (approximate
leave-one-out as in Rad & Maleki 2020), as fitted answers would overstate what is certain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Index
from opinionpool.display import Tabular
from opinionpool.errors import Note
from opinionpool.estimation.coefficients import intercept_root
from opinionpool.estimation.posterior import Mode, posterior_mode, posterior_probabilities
from opinionpool.text import counted, shown

# How far intercepts and slopes of topics spread, in log-odds and as a factor, and how probable each level is. Chosen by
# simulation (benchmarks/topics.py): where topics do not differ this costs .001 at most from 20 events a topic on.
LEVELS = ((0.0, 0.0), (0.2, 0.15), (0.4, 0.3), (0.8, 0.6))
LEVEL_PROBABILITIES = (0.6, 0.29, 0.1, 0.01)
# How far experts' weights differ between topics, chosen in the same way.
DEVIATIONS, DEVIATION_PROBABILITIES = (0.0, 0.1, 0.25), (0.8, 0.14, 0.06)
# Of so many experts, and numbers in the covariances of all topics, weights by topic are looked at.
MOST_EXPERTS, MOST_NUMBERS = 200, 1 << 20
# Levels less probable than the first say nothing of what is open, and those less probable than the second without
# weights are not looked at with them.
NEGLIGIBLE, HOPELESS = 1e-3, 1e-5
# An event takes at most this share of what its own answer rests on.
MOST_OWN = 0.9
_STEPS, _TOLERANCE = 50, 1e-12
# So many topics are named in a note.
MOST_NAMED = 6


class TopicShift(NamedTuple):
    """What topics do to the answers on T events."""

    effects: TopicEffects
    at: Index  # (T,); the place of each event's topic, the number of topics for a new one, and one more for none
    beyond: Array  # (T, K - 1); how far the common answer is from the reference, L* - L°
    contrasts: Array | None = None  # (T, N, K - 1); debiased, none missing; None where weights do not differ

    @property
    def ratios(self) -> Array:
        """What is added to the log-ratios of the common answers, (T, K - 1)."""
        effects, at, none = self.effects, self.at, np.zeros((2, self.beyond.shape[1]))
        slope = np.append(effects.slope, [0.0, 0.0])[at]
        added = np.concatenate([effects.intercept, none])[at] + slope[:, None] * self.beyond
        if self.contrasts is None or effects.weights is None:
            return np.asarray(added)
        weights = np.concatenate([effects.weights, np.zeros((2, effects.weights.shape[1]))])[at]
        return np.asarray(added + np.einsum("tn,tnd->td", weights, self.contrasts))

    def moved(self, p: Array, prior: Array, pool_floor: float) -> Array:
        """The answers, (T, K), from the common ones; exactly these where nothing is added."""
        added = self.ratios
        answers = logodds.pooled_probabilities(logodds.prior_log_ratios(p) + added, prior, pool_floor)
        return np.where((added == 0).all(axis=1)[:, None], p, answers)

    def spread(self, rows: slice, covariance: Array) -> Array:
        """Covariance of the log-ratios, (t, K - 1, K - 1), from that of the common answers on some of the events."""
        effects, at, d = self.effects, self.at[rows], self.beyond.shape[1]
        gradient = [np.broadcast_to(np.eye(d), (len(at), d, d)), self.beyond[rows][:, :, None]]
        if self.contrasts is not None and effects.weights is not None:
            gradient.append(np.swapaxes(self.contrasts[rows], 1, 2))
        both = np.concatenate(gradient, axis=2)
        slope = np.append(effects.slope, [0.0, 0.0])[at]
        found = (1.0 + slope[:, None, None]) ** 2 * covariance
        for g in np.unique(at[at <= len(effects.topics)]).tolist():
            mine = at == g
            own = effects.new if g == len(effects.topics) else effects.covariance[g]
            found[mine] += np.einsum("tai,ij,tbj->tab", both[mine], own, both[mine], optimize=True)
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class TopicEffects(Tabular):
    """Intercepts, slopes and weights of G topics.

    P is K, or K + N where weights differ: intercept, slope and weights.

    Attributes
    ----------
    topics : tuple of str
        G names, sorted.
    events : ndarray, shape (G,)
        Weight of the resolved events of each.
    intercept : ndarray, shape (G, K - 1)
        What is added to log-ratios of classes against the first, beyond what is common.
    slope : ndarray, shape (G,)
        By how much more of L* − L° is believed: 0 as in common.
    covariance : ndarray, shape (G, P, P)
        Of intercept, slope and weights, given the outcomes.
    new : ndarray, shape (P, P)
        The same of a topic without resolved events, whose values are 0.
    levels : ndarray, shape (4,)
        Posterior probabilities of `LEVELS`; the first is that intercepts and slopes do not differ.
    weights : ndarray, shape (G, N), or None
        What is added to the weight of each expert; None where that was not looked at.
    deviations : ndarray, shape (3,), or None
        Posterior probabilities of `DEVIATIONS`; the first is that weights do not differ.
    """

    topics: tuple[str, ...]
    events: Array
    intercept: Array
    slope: Array
    covariance: Array
    new: Array
    levels: Array
    weights: Array | None = None
    deviations: Array | None = None

    def _table(self) -> dict[str, list[Any]]:
        half = NormalDist().inv_cdf(0.95) * np.sqrt(np.diagonal(self.covariance, axis1=1, axis2=2))
        d = self.intercept.shape[1]
        table: dict[str, list[Any]] = {"topic": list(self.topics), "resolved": self.events.tolist()}
        for k in range(d):
            name = "intercept" if d == 1 else f"intercept_{k + 1}"
            table[name] = self.intercept[:, k].tolist()
            table[f"{name}_low"] = (self.intercept[:, k] - half[:, k]).tolist()
            table[f"{name}_high"] = (self.intercept[:, k] + half[:, k]).tolist()
        table["slope"] = (1.0 + self.slope).tolist()
        table["slope_low"], table["slope_high"] = (
            (1.0 + self.slope + sign * half[:, d]).tolist() for sign in (-1.0, 1.0)
        )
        return table

    @property
    def weights_differ(self) -> float:
        """The probability that experts' weights differ between topics."""
        return 0.0 if self.deviations is None else 1.0 - float(self.deviations[0])

    @property
    def weights_shown(self) -> bool:
        """Whether outcomes speak for weights that differ."""
        return self.weights_differ > 1.0 - DEVIATION_PROBABILITIES[0]

    def shift(self, topics: npt.ArrayLike, beyond: Array, contrasts: Array | None = None) -> TopicShift:
        """What they do to the answers on T events.

        Parameters
        ----------
        topics : array_like of str, shape () or (T,)
            Topics that were not there when learning have the common values; of "" nothing more is open than in common.
        beyond : ndarray, shape (T, K - 1)
            L* − L°.
        contrasts : ndarray, shape (T, N, K - 1), optional
            Debiased, none missing; needed where weights differ.
        """
        place = {name: g for g, name in enumerate(self.topics)}
        labels = np.broadcast_to(np.asarray(topics, dtype=object), len(beyond))
        known = len(place)
        at = np.array([place.get(label, known) if label else known + 1 for label in labels.tolist()], dtype=np.intp)
        return TopicShift(self, at, beyond, contrasts)

    def note(self) -> Note:
        """How far topics differ, those that do so most first."""
        size = np.abs(self.intercept).max(axis=1) + np.abs(self.slope)
        order = np.argsort(-size, kind="stable")[:MOST_NAMED].tolist()
        binary = self.intercept.shape[1] == 1

        def words(g: int) -> str:
            intercept = f"intercept {self.intercept[g, 0]:+.2f}, " if binary else ""
            return f"{shown(self.topics[g])} {intercept}slope {1.0 + self.slope[g]:.2f}"

        more = f"; and {len(self.topics) - MOST_NAMED} more" if len(self.topics) > MOST_NAMED else ""
        what = f"{counted(len(self.topics), 'topic')}, which differ{'s' if len(self.topics) == 1 else ''}"
        text = (
            f"{what} in intercept and slope with probability {1.0 - self.levels[0]:.0%}: "
            f"{'; '.join(map(words, order))}{more}"
        )
        if self.deviations is not None:
            text += f"; experts' weights differ between them with probability {self.weights_differ:.0%}"
        return Note("topics", text, len(self.topics))


def left_out(ratios: Array, outcomes: Index, covariance: Array) -> Array:
    """Log-ratios of answers as they would be had each event's own outcome not been learned from, (T, K - 1).

    Parameters
    ----------
    ratios : ndarray, shape (T, K - 1)
        Of the fitted answers.
    outcomes : ndarray of int, shape (T,)
    covariance : ndarray, shape (T, K - 1, K - 1)
        Of these log-ratios, given all outcomes.
    """
    d = ratios.shape[1]
    p = logodds.softmax(ratios)[:, 1:]
    surprise = np.equal(outcomes[:, None], np.arange(1, d + 1)) - p
    curvature = np.einsum("ta,ab->tab", p, np.eye(d)) - p[:, :, None] * p[:, None, :]
    own = np.einsum("tab,tba->t", curvature, covariance)
    covariance = covariance * np.minimum(1.0, MOST_OWN / np.maximum(own, MOST_OWN))[:, None, None]
    step = np.linalg.solve(np.eye(d) - curvature @ covariance, surprise[..., None])
    return np.asarray(ratios - (covariance @ step)[..., 0])


def weights_looked_at(experts: int, topics: int, d: int) -> bool:
    """Whether so many experts may have weights by topic, for d = K - 1."""
    return 1 < experts <= MOST_EXPERTS and topics * (d + 1 + experts) ** 2 <= MOST_NUMBERS


def learn_topics(
    topics: Sequence[str] | npt.NDArray[np.str_],
    ratios: Array,
    reference: Array,
    outcomes: Index,
    weight: Array,
    contrasts: Array | None = None,
    shares: Array | None = None,
) -> TopicEffects:
    """Intercepts, slopes and weights of the topics of T resolved events.

    Parameters
    ----------
    topics : sequence of str, length T
    ratios : ndarray, shape (T, K - 1)
        Log-ratios of answers that have not learned from the event's own outcome.
    reference : ndarray, shape (T, K - 1)
        L°.
    outcomes : ndarray of int, shape (T,)
    weight : ndarray, shape (T,)
        Frequencies.
    contrasts : ndarray, shape (T, N, K - 1), optional
        Debiased, none missing; without them weights do not differ.
    shares : ndarray, shape (N, V), optional
        The share of each expert in the weight of each of V distinct ones; needed with contrasts.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> topics = np.repeat(["fair", "high"], 200)
    >>> y = (rng.random(400) < np.repeat([0.5, 0.75], 200)).astype(int)
    >>> found = learn_topics(topics, np.zeros((400, 1)), np.zeros((400, 1)), y, np.ones(400))
    >>> (found.intercept.round(1) + 0.0).ravel().tolist(), bool(found.levels[0] < 0.01)
    ([0.0, 1.1], True)
    """
    names, member = np.unique(np.asarray(topics, dtype=np.str_), return_inverse=True)
    d, beyond = ratios.shape[1], ratios - reference
    data = _Events(member, len(names), beyond, ratios, outcomes, weight)
    several = contrasts is not None and shares is not None and shares.shape[1] > 1
    size = d + 1 + (contrasts.shape[1] if several and contrasts is not None else 0)
    fits = [_modes(data, _root(intercept, slope, d)) for intercept, slope in LEVELS]
    cells = [(level, 0) for level in range(len(LEVELS))]
    if several and contrasts is not None and shares is not None:
        likely = posterior_probabilities([each.evidence for each in fits], LEVEL_PROBABILITIES) > HOPELESS
        # Weights differ about what is common to the distinct experts.
        about = shares - shares.mean(axis=1, keepdims=True)
        for level, at in np.argwhere(np.outer(likely, np.array(DEVIATIONS) > 0)).tolist():
            root = np.zeros((size, d + 1 + about.shape[1]))
            root[: d + 1, : d + 1], root[d + 1 :, d + 1 :] = _root(*LEVELS[level], d), DEVIATIONS[at] * about
            fits.append(_modes_with_weights(data, contrasts, root))
            cells.append((level, at))
    prior = np.outer(LEVEL_PROBABILITIES, DEVIATION_PROBABILITIES if several else [1.0])
    posterior = posterior_probabilities([each.evidence for each in fits], [prior[cell] for cell in cells])
    mean, new = np.zeros((len(names), size)), np.zeros((size, size))
    for share, each in zip(posterior, fits, strict=True):
        p = len(each.root)
        mean[:, :p] += share * each.values
        new[:p, :p] += share * each.root @ each.root.T
    covariance, found = np.zeros((len(names), size, size)), np.zeros(prior.shape)
    for share, each, cell in zip(posterior, fits, cells, strict=True):
        found[cell] = share
        deviation, p = -mean, len(each.root)
        deviation[:, :p] += each.values
        covariance += share * deviation[:, :, None] * deviation[:, None, :]
        if share > NEGLIGIBLE:
            covariance[:, :p, :p] += share * each.covariance()
    return TopicEffects(
        topics=tuple(names.tolist()),
        events=np.asarray(np.bincount(member, weight, len(names)), dtype=np.float64),
        intercept=mean[:, :d],
        slope=mean[:, d],
        covariance=covariance,
        new=new,
        levels=found.sum(axis=1),
        weights=mean[:, d + 1 :] if several else None,
        deviations=found.sum(axis=0) if several else None,
    )


def _root(intercept: float, slope: float, d: int) -> Array:
    """Root of the covariance of intercept and slope, (K, K), for d = K - 1."""
    root = np.zeros((d + 1, d + 1))
    root[:d, :d], root[d, d] = intercept_root(intercept, d), slope
    return root


class _Modes(NamedTuple):
    """The most probable values at one level."""

    values: Array  # (G, P)
    covariance: Callable[[], Array]  # (G, P, P)
    evidence: float
    root: Array  # (P, C); of what is believed


@dataclass(frozen=True, eq=False)
class _Events:
    """Resolved events by topic."""

    member: Index  # (T,); topic of each
    topics: int  # G
    beyond: Array  # (T, K - 1)
    ratios: Array  # (T, K - 1)
    outcomes: Index  # (T,)
    weight: Array  # (T,)

    def sums(self, each: Array) -> Array:
        """Sums over the events of each topic, (G, ...)."""
        flat = each.reshape(len(each), -1)
        columns = [np.asarray(np.bincount(self.member, column, self.topics), np.float64) for column in flat.T]
        return np.stack(columns, axis=1).reshape(self.topics, *each.shape[1:])

    def cost(self, theta: Array, design: Array) -> tuple[Array, Array]:
        """What is to be least, (G,), and the probabilities of all classes, (T, K)."""
        ratios = self.ratios + np.einsum("tpd,tp->td", design, theta[self.member])
        p = logodds.softmax(ratios)
        loss = -np.log(np.maximum(p[np.arange(len(p)), self.outcomes], logodds.LEAST))
        return self.sums(self.weight * loss) + (theta**2).sum(axis=1) / 2, p


def _modes(data: _Events, root: Array) -> _Modes:
    """Newton's method for all topics at once, in coefficients that are standard normal beforehand."""
    t, d = data.beyond.shape
    # How log-ratios go with the coefficients, (T, K, K - 1).
    design = np.concatenate([np.broadcast_to(root[:d, :d].T, (t, d, d)), root[d, d] * data.beyond[:, None, :]], axis=1)
    theta = np.zeros((data.topics, d + 1))
    cost, p = data.cost(theta, design)
    for _ in range(_STEPS):
        surprise = np.equal(data.outcomes[:, None], np.arange(1, d + 1)) - p[:, 1:]
        gradient = data.sums(data.weight[:, None] * np.einsum("tpd,td->tp", design, surprise)) - theta
        precision = _precision(data, design, p)
        step = np.linalg.solve(precision, gradient[..., None])[..., 0]
        if float((gradient * step).sum(axis=1).max(initial=0.0)) < _TOLERANCE:
            break
        length = np.ones((data.topics, 1))
        while True:
            trial = theta + length * step
            tried, p = data.cost(trial, design)
            worse = tried > cost + 1e-12 * np.abs(cost)
            if not worse.any() or length.min() < 1e-6:
                break
            length[worse] /= 2
        theta, cost = trial, tried
    precision = _precision(data, design, p)
    spread = np.linalg.slogdet(precision)[1] / 2
    return _Modes(theta @ root.T, lambda: root @ np.linalg.inv(precision) @ root.T, float(-(cost + spread).sum()), root)


def _modes_with_weights(data: _Events, contrasts: Array, root: Array) -> _Modes:
    """The same with weights, topic by topic: there are more of these, and often more than events."""
    d = data.beyond.shape[1]
    level = np.broadcast_to(np.eye(d), (len(data.member), d, d))
    found: list[Mode] = []
    for g in range(data.topics):
        mine = np.flatnonzero(data.member == g)
        both = np.concatenate([level[mine], data.beyond[mine][:, None, :], contrasts[mine]], axis=1)
        design = np.einsum("tpd,pc->tcd", both, root, optimize=True)
        found.append(posterior_mode(design, data.outcomes[mine], data.ratios[mine], data.weight[mine]))
    values = np.array([root @ mode.coefficients for mode in found])

    def covariance() -> Array:
        return np.array([root @ mode.covariance @ root.T for mode in found])

    return _Modes(values, covariance, float(sum(mode.evidence for mode in found)), root)


def _precision(data: _Events, design: Array, p: Array) -> Array:
    """Curvature of the cost, (G, K, K)."""
    mean = np.einsum("tpd,td->tp", design, p[:, 1:])
    own = np.einsum("tpd,td,tqd->tpq", design, p[:, 1:], design) - mean[:, :, None] * mean[:, None, :]
    return data.sums(data.weight[:, None, None] * own) + np.eye(design.shape[1])
