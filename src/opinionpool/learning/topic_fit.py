"""What outcomes say of topics, in one posterior with what all events share.

The log-ratios of an event on topic g are those of the mean coefficients, plus what the common coefficients c add, plus
a_g + s_g (L* − L°) + Σ v_gi u_i, where L* is the answer if topics did not differ and u_i the debiased contrast of
expert i. Intercepts a_g, slopes s_g and weights v_gi, which add up to 0, are normal about 0 with spreads that are the
same for all topics, and c is normal as it is believed to be. The most probable values of all of them, found together,
are averaged over how far the common weights differ between experts, and over a few levels of how far topics do, by how
well each predicts the outcomes (evidence). One level is that topics do not differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.estimation.anchor import Anchor
from opinionpool.estimation.coefficients import intercept_root
from opinionpool.estimation.grouped import Both, GroupedEvents, GroupedMode
from opinionpool.estimation.newton import posterior_probabilities
from opinionpool.estimation.regression import Observations
from opinionpool.learning.topics import (
    DEVIATION_PROBABILITIES,
    DEVIATIONS,
    LEVEL_PROBABILITIES,
    LEVELS,
    TopicEffects,
)

# Of so many experts, and numbers in the covariances of all topics, weights by topic are looked at.
MOST_EXPERTS, MOST_NUMBERS = 200, 1 << 20
# Alternatives less probable than the first are not looked at on all events where a choice was made on some, and those
# less probable than the second without weights by topic are not looked at with them.
NEGLIGIBLE, HOPELESS = 1e-3, 1e-5


Labels: TypeAlias = npt.NDArray[np.str_]


def weights_looked_at(experts: int, topics: Labels | None, d: int) -> bool:
    """Whether so many experts may have weights by topic, for d = K - 1."""
    different = 0 if topics is None else len(np.unique(topics))
    return 1 < experts <= MOST_EXPERTS and different * (d + 1 + experts) ** 2 <= MOST_NUMBERS


def together(topics: Labels, experts: int, d: int) -> bool:
    """Whether topics differ, and are learned together with the common coefficients of so many experts."""
    return 1 < len(np.unique(topics)) <= MOST_NUMBERS / ((d + 1) * (d + experts))


@dataclass(frozen=True, eq=False)
class TopicEvents:
    """T resolved events.

    Attributes
    ----------
    topics : ndarray of str, shape (T,)
        "" where an event has none.
    offset : ndarray, shape (T, K - 1)
        Log-ratios if all coefficients are 0.
    beyond : ndarray, shape (T, K - 1)
        L* − L° if topics do not differ: what slopes multiply.
    outcomes : ndarray of int, shape (T,)
    weight : ndarray, shape (T,)
        Frequencies.
    contrasts : ndarray, shape (T, N, K - 1), optional
        Debiased, none missing; of distinct experts. Needed for common coefficients, and for weights by topic.
    anchor : Anchor, optional
    """

    topics: Labels
    offset: Array
    beyond: Array
    outcomes: Index
    weight: Array
    contrasts: Array | None = None
    anchor: Anchor | None = None

    @classmethod
    def of(
        cls, observed: Observations, mean: Array, topics: Labels, plain: Array, base_intercept: Array
    ) -> TopicEvents:
        """Those of some topics, about mean weights (N,); if topics do not differ, coefficients are `plain`."""
        beyond = observed.contributions(plain) - base_intercept
        answers, anchor = observed.answers(mean), observed.anchor(mean)
        return cls(topics, answers, beyond, observed.outcomes, observed.weight, observed.contrasts, anchor)

    def ordered(self) -> TopicEvents:
        """By topic, those without one first."""
        labels = np.asarray(self.topics, dtype=np.str_)
        order = np.argsort(labels, kind="stable")
        return TopicEvents(
            labels[order],
            self.offset[order],
            self.beyond[order],
            self.outcomes[order],
            self.weight[order],
            None if self.contrasts is None else self.contrasts[order],
            None if self.anchor is None else self.anchor.among(order),
        )


class Common(NamedTuple):
    """What the common intercept and weights may be, about their mean: alternatives with prior probabilities."""

    roots: Sequence[Array]  # (K - 1 + N, P) each; of their covariance
    prior: Sequence[float]


class TopicPosterior(NamedTuple):
    """What was learned: effects of topics, and common intercept and weights beyond their mean."""

    effects: TopicEffects
    values: Array  # (K - 1 + N,)
    covariance: Array  # (K - 1 + N, K - 1 + N)


def learn_topics(
    events: TopicEvents, common: Common | None = None, *, weights: bool = False, few: TopicEvents | None = None
) -> TopicPosterior:
    """Intercepts, slopes and weights of topics, together with what is common.

    Parameters
    ----------
    events : TopicEvents
    common : Common, optional
        Without it nothing else is learned: offsets are the common answers.
    weights : bool
        Whether weights may differ between topics.
    few : TopicEvents, optional
        Some of the events, if that is enough to choose between alternatives.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> topics, nothing = np.repeat(["fair", "high"], 200), np.zeros((400, 1))
    >>> y = (rng.random(400) < np.repeat([0.5, 0.75], 200)).astype(int)
    >>> found = learn_topics(TopicEvents(topics, nothing, nothing, y, np.ones(400))).effects
    >>> (found.intercept.round(1) + 0.0).ravel().tolist(), bool(found.levels[0] < 0.01)
    ([0.0, 1.2], True)
    """
    if common is None:
        common = Common([np.zeros((events.offset.shape[1], 0))], [1.0])
    data = _Grouped(events.ordered(), common, weights)
    found = (data if few is None else _Grouped(few.ordered(), common, weights)).chosen()
    share = data.probabilities(found)
    if few is not None:
        kept = [cell for cell in found if share[cell] > NEGLIGIBLE]
        found = {cell: data.fit(cell, data.begin(cell, found[cell].coefficients.shared)) for cell in kept}
        total = sum(share[cell] for cell in kept)
        share = {cell: share[cell] / total for cell in kept}
    return data.averaged(found, share)


class _Cell(NamedTuple):
    """An alternative: which of the common ones, of `LEVELS` and of `DEVIATIONS`."""

    common: int
    level: int
    deviation: int


class _Shared(NamedTuple):
    """The common coefficients that events bear on."""

    design: Array  # (T, K - 1, R)
    root: Array  # (K - 1 + N, R); from them to intercept and weights
    rest: Array | None  # (K - 1 + N, K - 1 + N); covariance of what no event bears on


@dataclass(frozen=True, eq=False)
class _Grouped:
    """Events in order of their topics, and how their log-ratios go with the coefficients."""

    events: TopicEvents
    common: Common
    weights: bool

    @cached_property
    def _groups(self) -> tuple[Labels, Index]:
        """The topics, and where the events of each begin."""
        names, first = np.unique(np.asarray(self.events.topics, dtype=np.str_), return_index=True)
        return names[names != ""], first[names != ""]

    @property
    def free(self) -> int:
        """K - 1."""
        return int(self.events.offset.shape[1])

    @cached_property
    def _own(self) -> Array:
        """What intercept, slope and weights of a topic multiply, (T, K - 1, K or K + N)."""
        slope = self.events.beyond[:, :, None]
        level = np.broadcast_to(np.eye(self.free), (len(slope), self.free, self.free))
        columns = [level, slope]
        if self.weights and self.events.contrasts is not None:
            columns.append(np.swapaxes(self.events.contrasts, 1, 2))
        return np.concatenate(columns, axis=2)

    @cached_property
    def _shared(self) -> list[_Shared]:
        """The common coefficients of each alternative."""
        found, rows = [], len(self.events.offset) * self.free
        for root in self.common.roots:
            design = np.broadcast_to(root[: self.free], (len(self.events.offset), self.free, root.shape[1]))
            if self.events.contrasts is not None:
                design = design + np.swapaxes(self.events.contrasts, 1, 2) @ root[self.free :]
            if root.shape[1] > rows:
                # Coefficients that no event sees stay as they are believed to be.
                basis = np.linalg.qr(design.reshape(rows, -1).T)[0]
                seen = root @ basis
                found.append(_Shared(design @ basis, seen, root @ root.T - seen @ seen.T))
            else:
                found.append(_Shared(design, root, None))
        return found

    def _root(self, cell: _Cell) -> Array:
        """From standard normal coefficients of a topic to its intercept, slope and weights, (K or K + N, Q)."""
        d, size = self.free, self._own.shape[2]
        root = np.zeros((size, size))
        intercept, slope = LEVELS[cell.level]
        root[:d, :d], root[d, d] = intercept_root(intercept, d), slope
        n = size - d - 1
        if n:
            # Weights differ about what is common to the experts.
            root[d + 1 :, d + 1 :] = DEVIATIONS[cell.deviation] * (np.eye(n) - 1.0 / n)
        return root[:, root.any(axis=0)]

    def fit(self, cell: _Cell, start: Both) -> GroupedMode:
        """The most probable coefficients."""
        data = self.events
        own = self._own @ self._root(cell)
        shared = self._shared[cell.common].design
        grouped = GroupedEvents(shared, own, self._groups[1], data.outcomes, data.offset, data.weight, data.anchor)
        return grouped.mode(start)

    def begin(self, cell: _Cell, shared: Array | None = None) -> Both:
        """Coefficients to begin with."""
        size = self._shared[cell.common].design.shape[2]
        begun = np.zeros(size) if shared is None or len(shared) != size else shared
        return Both(begun, np.zeros((len(self._groups[0]), self._root(cell).shape[1])))

    def chosen(self) -> dict[_Cell, GroupedMode]:
        """Fits of all alternatives that are not hopeless."""
        found: dict[_Cell, GroupedMode] = {}

        def look(cells: Iterable[_Cell]) -> dict[_Cell, float]:
            for cell in cells:
                plain = found.get(_Cell(cell.common, 0, 0))
                begun = self.begin(cell, None if plain is None else plain.coefficients.shared)
                found[cell] = self.fit(cell, begun)
            return self.probabilities(found)

        share = look(_Cell(s, 0, 0) for s in range(len(self.common.roots)))
        best = max(share, key=lambda cell: share[cell]).common
        share = look(_Cell(best, level, 0) for level in range(1, len(LEVELS)))
        if self.weights:
            levels = [cell.level for cell in found if cell.common == best and share[cell] > HOPELESS]
            share = look(_Cell(best, level, each) for level in levels for each in range(1, len(DEVIATIONS)))
        likely = [cell for cell in found if cell.common == best and share[cell] > NEGLIGIBLE]
        others = (cell._replace(common=s) for cell in likely for s in range(len(self.common.roots)))
        look([cell for cell in others if cell not in found])
        return found

    def probabilities(self, found: dict[_Cell, GroupedMode]) -> dict[_Cell, float]:
        """How probable each of the alternatives is."""
        among = DEVIATION_PROBABILITIES if self.weights else (1.0,)
        prior = [
            self.common.prior[cell.common] * LEVEL_PROBABILITIES[cell.level] * among[cell.deviation] for cell in found
        ]
        share = posterior_probabilities([mode.evidence for mode in found.values()], prior)
        return dict(zip(found, share.tolist(), strict=True))

    def averaged(self, found: dict[_Cell, GroupedMode], share: dict[_Cell, float]) -> TopicPosterior:
        """Means and covariances over the alternatives."""
        (names, first), d, size = self._groups, self.free, self._own.shape[2]
        n = len(self.common.roots[0])
        values = {cell: self._shared[cell.common].root @ mode.coefficients.shared for cell, mode in found.items()}
        effects = {cell: mode.coefficients.own @ self._root(cell).T for cell, mode in found.items()}
        mean = np.sum([share[cell] * values[cell] for cell in found], axis=0)
        effect = np.sum([share[cell] * effects[cell] for cell in found], axis=0)
        covariance, cross, own = np.zeros((n, n)), np.zeros((len(names), size, n)), np.zeros((len(names), size, size))
        new, levels, deviations = np.zeros((size, size)), np.zeros(len(LEVELS)), np.zeros(len(DEVIATIONS))
        for cell, mode in found.items():
            part, off, away = share[cell], values[cell] - mean, effects[cell] - effect
            levels[cell.level] += part
            deviations[cell.deviation] += part
            root, shared = self._root(cell), self._shared[cell.common]
            new += part * root @ root.T
            covariance += part * np.outer(off, off)
            cross += part * away[:, :, None] * off
            own += part * away[:, :, None] * away[:, None, :]
            if part > NEGLIGIBLE:
                blocks = mode.precision.covariance
                covariance += part * (shared.root @ blocks[0] @ shared.root.T)
                covariance += 0.0 if shared.rest is None else part * shared.rest
                cross += part * (root @ blocks[1] @ shared.root.T)
                own += part * (root @ blocks[2] @ root.T)
        events = np.add.reduceat(self.events.weight, first)
        learned = TopicEffects(
            topics=tuple(names.tolist()),
            events=np.asarray(events, dtype=np.float64),
            intercept=effect[:, :d],
            slope=effect[:, d],
            covariance=own,
            new=new,
            levels=levels,
            weights=effect[:, d + 1 :] if self.weights else None,
            deviations=deviations if self.weights else None,
            cross=cross if self.events.contrasts is not None else None,
        )
        return TopicPosterior(learned, mean, covariance)
