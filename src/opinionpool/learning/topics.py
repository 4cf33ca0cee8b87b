"""Topics: an intercept and a slope for the events of each topic, as far as outcomes show that topics differ.

To the common answer of an event on topic g comes a_g + s_g (L* − L°), L* the answer if topics did not differ, and in
pools of release 0.1 Σ v_gi u_i, u_i the debiased contrast of expert i: L° stays the reference, so that the pool is
externally Bayesian within each topic. `opinionpool.learning.quadratic` describes how they are learned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Index
from opinionpool.display import Tabular
from opinionpool.errors import Note
from opinionpool.text import counted, shown

# So many topics are named in a note.
MOST_NAMED = 6


class TopicShift(NamedTuple):
    """Effects of topics on the answers about T events."""

    effects: TopicEffects  # of all topics that were learned
    at: Index  # (T,); position of each event's topic; G for a new topic, G + 1 for an event without a topic
    beyond: Array  # (T, K - 1); L* − L°, which slopes multiply
    contrasts: Array | None = None  # (T, N, K - 1); debiased, none missing; None where effects need none

    @property
    def ratios(self) -> Array:
        """What topics add to the log-ratios of the answers without topics, (T, K - 1)."""
        effects, at, none = self.effects, self.at, np.zeros((2, self.beyond.shape[1]))
        slope = np.append(effects.slope, [0.0, 0.0])[at]
        added = np.concatenate([effects.intercept, none])[at] + slope[:, None] * self.beyond
        if self.contrasts is None or effects.weights is None:
            return np.asarray(added)
        weights = np.concatenate([effects.weights, np.zeros((2, effects.weights.shape[1]))])[at]
        return np.asarray(added + np.einsum("tn,tnd->td", weights, self.contrasts))

    def moved(self, p: Array, prior: Array, pool_floor: float) -> Array:
        """Return the answers (T, K) with topic effects, from those without, `p`; exactly `p` where effects are 0."""
        added = self.ratios
        answers = logodds.pooled_probabilities(logodds.prior_log_ratios(p) + added, prior, pool_floor)
        return np.where((added == 0).all(axis=1)[:, None], p, answers)

    def factors(self, rows: slice) -> Array:
        """Derivatives (t,) of log-ratios with topic effects by those without: 1 plus the slope of an event's topic."""
        effects, at = self.effects, self.at[rows]
        # Learned together with what is common, slopes multiply something else.
        slope = effects.slope if effects.cross is None else np.zeros_like(effects.slope)
        return np.asarray(1.0 + np.append(slope, [0.0, 0.0])[at])

    def spread(self, rows: slice, covariance: Array) -> Array:
        """Posterior covariance of answers' log-ratios, (t, K - 1, K - 1); `covariance` is without topic effects."""
        effects, at, d = self.effects, self.at[rows], self.beyond.shape[1]
        gradient = [np.broadcast_to(np.eye(d), (len(at), d, d)), self.beyond[rows][:, :, None]]
        if self.contrasts is not None and effects.weights is not None:
            gradient.append(np.swapaxes(self.contrasts[rows], 1, 2))
        both = np.concatenate(gradient, axis=2)
        found = covariance * self.factors(rows)[:, None, None] ** 2
        for g in np.unique(at[at <= len(effects.topics)]).tolist():
            mine = at == g
            own = effects.new if g == len(effects.topics) else effects.covariance[g]
            found[mine] += np.einsum("tai,ij,tbj->tab", both[mine], own, both[mine], optimize=True)
            if g < len(effects.topics) and effects.cross is not None and self.contrasts is not None:
                common = np.concatenate([both[mine][:, :, :d], np.swapaxes(self.contrasts[rows][mine], 1, 2)], axis=2)
                beside = np.einsum("tai,ij,tbj->tab", both[mine], effects.cross[g], common, optimize=True)
                found[mine] += beside + np.swapaxes(beside, 1, 2)
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class TopicEffects(Tabular):
    """Effects of G topics on answers: intercept and slope and, in pools saved by release 0.1, changes of weights.

    P is the number of effects of a topic: K, or K + N with weights.
    """

    topics: tuple[str, ...]  # G names, sorted
    events: Array  # (G,); weight of the resolved events of each
    intercept: Array  # (G, K - 1); what is added to log-ratios of classes against the first, beyond what is common
    slope: Array  # (G,); what is added to a slope of 1 on L* − L°, where L* is the answer without topics
    covariance: Array  # (G, P, P); of intercept, slope and weights, given the outcomes
    new: Array  # (P, P); prior covariance of a topic without resolved events, whose means are 0
    levels: Array  # (4,); posterior probabilities of `constants.TOPICS`; the first is that topics do not differ
    weights: Array | None = None  # (G, N); what is added to the weight of each expert, in pools of release 0.1
    deviations: Array | None = None  # (3,); posterior probabilities of three spreads of these, the first of which is 0
    # (G, P, K - 1 + N); covariance with the common intercept and weights, None where these were learned before
    cross: Array | None = None
    # (K - 1 + N,); intercept and weights if topics do not differ, less the common ones; None if both are the same
    plain: Array | None = None

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
    def needs_contrasts(self) -> bool:
        """True if topic effects depend on each expert's forecast, and not only on the answers without topics."""
        return self.weights is not None or self.plain is not None

    def spread_over(self, column: Index, part: Array) -> TopicEffects:
        """The effects for all experts; covariances with weights are those at `column`, times `part` (a share)."""
        return self if self.cross is None else replace(self, cross=self.cross[..., column] * part)

    def shift(self, topics: npt.ArrayLike, common: Array, contrasts: Array | None = None) -> TopicShift:
        """Return the effects of the events' topics on T answers, whose log-ratios are L° + `common` (T, K - 1).

        A topic that was not learned has effects with a mean of 0 and their prior variance; the topic "" has no effects.
        `contrasts` (T, N, K - 1), debiased and without gaps, are needed if `needs_contrasts`.
        """
        place = {name: g for g, name in enumerate(self.topics)}
        labels = np.broadcast_to(np.asarray(topics, dtype=object), len(common))
        known = len(place)
        at = np.array([place.get(label, known) if label else known + 1 for label in labels.tolist()], dtype=np.intp)
        if self.plain is None or contrasts is None:
            return TopicShift(self, at, common, contrasts)
        d = common.shape[1]
        beyond = common + self.plain[:d] + np.einsum("n,tnd->td", self.plain[d:], contrasts)
        return TopicShift(self, at, beyond, contrasts)

    def note(self) -> Note:
        """Note for users on how far topics differ, the most different topics first."""
        size = np.abs(self.intercept).max(axis=1) + np.abs(self.slope)
        order = np.argsort(-size, kind="stable")[:MOST_NAMED].tolist()
        binary = self.intercept.shape[1] == 1

        def words(g: int) -> str:
            intercept = f"intercept {round(float(self.intercept[g, 0]), 2) + 0.0:+.2f}, " if binary else ""
            return f"{shown(self.topics[g])} {intercept}slope {1.0 + self.slope[g]:.2f}"

        more = f"; and {len(self.topics) - MOST_NAMED} more" if len(self.topics) > MOST_NAMED else ""
        what = f"{counted(len(self.topics), 'topic')}, which differ{'s' if len(self.topics) == 1 else ''}"
        text = (
            f"{what} in intercept and slope with probability {1.0 - self.levels[0]:.0%}: "
            f"{'; '.join(map(words, order))}{more}"
        )
        return Note("topics", text, len(self.topics))
