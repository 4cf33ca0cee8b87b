"""What outcomes leave open about a pool: the covariance of its intercept and weights, and intervals of its answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from statistics import NormalDist
from typing import Self

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import number
from opinionpool.arrays import Array
from opinionpool.estimation.coefficients import covering
from opinionpool.learning.topics import TopicShift
from opinionpool.model.contrasts import Batch, Extremes
from opinionpool.model.panel import Panel, PoolingPanel


@dataclass(frozen=True, eq=False)
class OtherSums:
    """A sum of weights that is nothing like what is believed, with M values that it may have instead.

    Attributes
    ----------
    probability : float
        That it is so.
    moves : ndarray, shape (M, K - 1 + N)
        How far intercept and weights are then from those of the answer, times the root of each value's probability.
    covariance : ndarray, shape (K - 1 + N, K - 1 + N)
        What is open given each value.
    """

    probability: float
    moves: Array
    covariance: Array

    def widened(self, down: Array, up: Array, variance: Array, moves: Array) -> tuple[Array, Array]:
        """Variances downwards and upwards, (...), where it may be so, from those where it is not.

        There, numbers have a variance besides, (...), and move so far, (..., M). Where these are less uncertain than
        without them, nothing is narrowed.
        """
        p, (below, above) = self.probability, _both_ways(moves)
        return (
            down + p * np.maximum(variance + below - down, 0.0),
            up + p * np.maximum(variance + above - up, 0.0),
        )

    def moved(self, share: Array) -> OtherSums:
        """The same of other coefficients, which are (R, K - 1 + N) times these."""
        return replace(self, moves=self.moves @ share.T, covariance=share @ self.covariance @ share.T)


@dataclass(frozen=True, eq=False)
class OtherLimits:
    """How far extremes may be believed instead.

    Attributes
    ----------
    limits, probability : ndarray, shape (M,)
    coefficients : ndarray, shape (1 + M, K - 1 + N)
        Intercept and weights of the answer, and with each limit.
    """

    limits: Array
    probability: Array
    coefficients: Array


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """What is not known of L* = L° + a + Σ w_i u_i, u_i the contrasts as far as they are believed.

    Attributes
    ----------
    covariance : ndarray, shape (K - 1 + N, K - 1 + N)
        Of the intercept a and the weights w, given the outcomes.
    sums : tuple of tuple of OtherSums
        One after the other; of several in one place, the one that leaves most open counts.
    limits : tuple of OtherLimits
        Of several, the one that leaves most open counts.
    """

    covariance: Array
    sums: tuple[tuple[OtherSums, ...], ...] = field(default=(), kw_only=True)
    limits: tuple[OtherLimits, ...] = field(default=(), kw_only=True)

    def weight_errors(self, experts: int) -> Array:
        """Standard errors of the weights downwards and upwards, (2, N)."""
        low = high = np.diag(self.covariance)[-experts:]
        for some in self.sums:
            low, high = _widest(
                each.widened(low, high, np.diag(each.covariance)[-experts:], each.moves[:, -experts:].T)
                for each in some
            )
        return np.sqrt([low, high])

    def spread_over(self, source: npt.NDArray[np.intp]) -> Uncertainty:
        """The same for duplicates; `source` is the distinct expert behind each, -1 for uninformative ones."""
        copies = np.bincount(source[source >= 0], minlength=int(source.max(initial=-1)) + 1)
        d = len(self.covariance) - len(copies)
        share = np.zeros((d + len(source), d + len(copies)))
        share[:d, :d] = np.eye(d)
        for i in np.flatnonzero(source >= 0):
            share[d + i, d + source[i]] = 1.0 / copies[source[i]]
        return replace(
            self,
            covariance=share @ self.covariance @ share.T,
            sums=tuple(tuple(each.moved(share) for each in some) for some in self.sums),
            limits=tuple(replace(each, coefficients=each.coefficients @ share.T) for each in self.limits),
        )

    def interval(
        self,
        panel: PoolingPanel,
        probabilities: npt.ArrayLike,
        prior: npt.ArrayLike = 0.5,
        base_rate: npt.ArrayLike | None = None,
        level: float = 0.9,
        shift: TopicShift | None = None,
    ) -> tuple[Array, Array]:
        """Interval for each pooled probability, as `Panel.pool`; of each class by itself when K > 2.

        `shift` is what topics do to these answers.

        Returns
        -------
        low, high : ndarray, shape (...), or (..., K) when K > 2
            Symmetric around the answer in log-odds of the class against the others, inside the floors.

        Raises
        ------
        ArgumentError
            For a level outside (0, 1).
        """
        level = number(level, "level", 0, 1, between=True)
        k = len(panel.classes)
        batch = panel.read(probabilities, prior)
        p, error = self._errors(panel, batch, panel.pool(probabilities, prior, base_rate), shift)
        width = NormalDist().inv_cdf((1.0 + level) / 2.0)
        ends = np.empty((2, *p.shape))
        for rows in batch.blocks():
            with np.errstate(divide="ignore"):
                odds = np.log(p[rows]) - np.log(p[rows] @ (1.0 - np.eye(k)))
            floors = logodds.class_floors(panel.settings.pool_floor, batch.prior[rows], 1.0)
            most = 1.0 - floors @ (1.0 - np.eye(k))
            for end, own, sign in zip(ends, error, (-1.0, 1.0), strict=True):
                end[rows] = np.clip(logodds.expit(odds + sign * width * own[rows]), floors, most)
        low, high = (batch.as_asked(logodds.public_probabilities(end)) for end in ends)
        return low, high

    def errors(
        self,
        panel: PoolingPanel,
        probabilities: npt.ArrayLike,
        prior: npt.ArrayLike,
        shift: TopicShift | None = None,
    ) -> Array:
        """Standard errors of each class's log-odds against the others, down and up, (2, T, K); 0 if nobody answered."""
        batch = panel.read(probabilities, prior)
        return self._errors(panel, batch, panel.pool(probabilities, prior), shift)[1]

    def gradient(self, panel: PoolingPanel, probabilities: npt.ArrayLike, prior: npt.ArrayLike) -> Array:
        """How the log-ratios of T events go with intercept and weights, (T, K - 1 + N, K - 1); 0 if nobody answered."""
        symmetric, batch = self._symmetric(panel), panel.read(probabilities, prior)
        parts = [self._gradient(symmetric, batch, rows, symmetric.settings.extremes) for rows in batch.blocks()]
        return np.concatenate(parts)

    def at_least(self, other: Uncertainty) -> Self:
        """No combination of intercept and weights is less uncertain than here or there."""
        both = zip_longest(self.sums[::-1], other.sums[::-1], fillvalue=())
        return replace(
            self,
            covariance=covering(self.covariance, other.covariance),
            sums=tuple((*mine, *its) for mine, its in both)[::-1],
            limits=(*self.limits, *other.limits),
        )

    def scaled(self, factor: float) -> Self:
        """The same with variances that are so many times as large."""
        turn = np.sqrt(factor) * np.eye(len(self.covariance))
        return replace(
            self,
            covariance=self.covariance * factor,
            sums=tuple(tuple(each.moved(turn) for each in some) for some in self.sums),
            limits=tuple(replace(each, probability=each.probability * factor) for each in self.limits),
        )

    def _errors(
        self, panel: PoolingPanel, batch: Batch, answers: npt.ArrayLike, shift: TopicShift | None = None
    ) -> tuple[Array, Array]:
        """Pooled probabilities of all classes, (T, K), and errors of their log-odds, down and up, (2, T, K)."""
        k, symmetric = batch.classes, self._symmetric(panel)
        p = answer_rows(answers, k)
        p = p if shift is None else shift.moved(p, batch.prior, panel.settings.pool_floor)
        error = np.empty((2, *p.shape))
        for rows in batch.blocks():
            slope = _slopes(p[rows], p[rows] @ (1.0 - np.eye(k)))
            gradient = self._gradient(symmetric, batch, rows, symmetric.settings.extremes)
            factor = np.ones(len(slope)) if shift is None else shift.factors(rows)
            covariance = self._covariance(gradient, panel, batch, rows)
            down = up = _of_classes(slope, covariance if shift is None else shift.spread(rows, covariance))
            for some in self.sums:
                down, up = _widest(
                    each.widened(
                        down,
                        up,
                        _of_classes(slope, _of_ratios(gradient, each.covariance)) * factor[:, None] ** 2,
                        slope @ ((each.moves @ gradient).swapaxes(1, 2) * factor[:, None, None]),
                    )
                    for each in some
                )
            if self.limits:
                below, above = _widest(
                    _both_ways(slope @ (moves * factor[:, None, None]))
                    for moves in self._limit_moves(symmetric, batch, rows, gradient)
                )
                down, up = down + below, up + above
            # Of two classes, one's log-odds rise as the other's fall.
            error[0, rows] = np.sqrt(down if k > 2 else np.concatenate([up, down], axis=1))
            error[1, rows] = np.sqrt(up if k > 2 else np.concatenate([down, up], axis=1))
        return p, error

    def _symmetric(self, panel: PoolingPanel) -> Panel:
        """The panel whose weights these are."""
        assert isinstance(panel, Panel)
        return panel

    def _gradient(self, panel: Panel, batch: Batch, rows: slice, extremes: Extremes) -> Array:
        """How log-ratios of some events go with intercept and weights, (T, K - 1 + N, K - 1); 0 if nobody answered."""
        d, full = batch.classes - 1, debiased(panel, batch, rows, extremes)
        intercept = np.broadcast_to(np.eye(d)[:, None, :], (d, len(full), d)).swapaxes(0, 1)
        answered = batch.some(rows).answered_by(panel.informative)
        return np.where(answered[:, None, None], np.concatenate([intercept, full], axis=1), 0.0)

    def _covariance(self, gradient: Array, panel: PoolingPanel, batch: Batch, rows: slice) -> Array:  # noqa: ARG002
        """Covariance of the log-ratios of some events, (T, K - 1, K - 1)."""
        return _of_ratios(gradient, self.covariance)

    def _limit_moves(self, panel: Panel, batch: Batch, rows: slice, gradient: Array) -> Iterator[Array]:
        """How far other limits move the log-ratios of some events, times roots of probabilities, (T, K - 1, M)."""
        extremes = panel.settings.extremes
        for each in self.limits:
            own, *others = each.coefficients
            found = [
                values @ self._gradient(panel, batch, rows, replace(extremes, limit=limit))
                for limit, values in zip(each.limits.tolist(), others, strict=True)
            ]
            yield (np.stack(found, axis=-1) - (own @ gradient)[..., None]) * np.sqrt(each.probability)


def _widest(variances: Iterable[tuple[Array, Array]]) -> tuple[Array, Array]:
    """The largest variances downwards, and upwards."""
    down, up = zip(*variances, strict=True)
    return np.maximum.reduce(down), np.maximum.reduce(up)


def _both_ways(moves: Array) -> tuple[Array, Array]:
    """Twice the squares of moves (..., M) downwards and upwards, summed, (...): each is the variance of that half."""
    low = np.minimum(moves, 0.0)
    below = np.einsum("...m,...m->...", low, low)
    return 2.0 * below, 2.0 * np.maximum(np.einsum("...m,...m->...", moves, moves) - below, 0.0)


def _of_ratios(gradient: Array, covariance: Array) -> Array:
    """Covariance of log-ratios, (T, K - 1, K - 1), from that of coefficients; how they go with these, (T, P, K - 1)."""
    return np.asarray(np.einsum("tia,ij,tjb->tab", gradient, covariance, gradient, optimize=True))


def _of_classes(slope: Array, covariance: Array) -> Array:
    """Variances of each class's log-odds, (T, K), from the covariance of log-ratios."""
    return np.asarray(np.maximum(np.einsum("tca,tab,tcb->tc", slope, covariance, slope, optimize=True), 0.0))


def debiased(panel: Panel, batch: Batch, rows: slice, extremes: Extremes) -> Array:
    """Debiased contrasts of some events, as far as extremes are believed, those missing as expected, (T, N, K - 1)."""
    some = batch.some(rows)
    return panel.parts.fill(extremes.deviation(some.contrasts(), some.base.absent))


def answer_rows(answers: npt.ArrayLike, k: int) -> Array:
    """Pooled probabilities of all classes, (T, K), whatever axes they have."""
    return logodds.all_classes(np.asarray(answers).reshape((-1,) if k == 2 else (-1, k)), k)


def _slopes(p: Array, others: Array) -> Array:
    """How each class's log-odds against the others go with the log-ratios, (T, K, K - 1); of two, only the second's."""
    if p.shape[1] == 2:
        return np.ones((len(p), 1, 1))
    # Entry c, j: how the log-odds of class c against the others go with the log-probability of class j.
    return np.where(np.eye(p.shape[1], dtype=bool), 1.0, -p[:, None, :] / others[:, :, None])[:, :, 1:]
