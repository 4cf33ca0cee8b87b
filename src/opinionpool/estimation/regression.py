"""The outcomes of events as a regression on what experts contribute, and its fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.estimation.anchor import Anchor
from opinionpool.estimation.binary import BinaryEvents
from opinionpool.estimation.class_events import ClassEvents
from opinionpool.estimation.coefficients import Coefficients, WeightBeliefs, moves
from opinionpool.estimation.dual import binary_mode
from opinionpool.estimation.posterior import Mode, posterior_mode

# Of up to so many binary events for each coefficient, a mode is found faster in terms of the events.
FEWER = 2


@dataclass(frozen=True, eq=False)
class Observations:
    """T events and what N experts contribute to them.

    Attributes
    ----------
    contrasts : ndarray, shape (T, N, K - 1)
        u, none missing.
    offset : ndarray, shape (T, K - 1)
        L°.
    outcomes : ndarray of int, shape (T,)
    weight : ndarray, shape (T,)
        Frequencies.
    expected : ndarray, shape (N,), optional
        The weights that are believed of any panel, where one outcome is to move little (`Anchor`).
    """

    contrasts: Array
    offset: Array
    outcomes: npt.NDArray[np.intp]
    weight: Array
    expected: Array | None = None

    def answers(self, weights: Array) -> Array:
        """Log-ratios by weights (N,) and no intercept, (T, K - 1)."""
        if self.contrasts.shape[2] == 1:
            return self.offset + (self.contrasts[..., 0] @ weights)[:, None]
        return np.asarray(self.offset + np.einsum("tnd,n->td", self.contrasts, weights))

    def anchor(self, mean: Array) -> Anchor | None:
        """What keeps one outcome from moving much where mean weights (N,) are believed of this panel."""
        if self.expected is None:
            return None
        return Anchor.at(self.answers(self.expected), self.answers(mean), self.weight)

    @cached_property
    def precisions(self) -> Array:
        """By that, of intercept and weights: in all, and about the expected ones, (2, K - 1 + N, K - 1 + N)."""
        assert self.expected is not None
        anchor = Anchor.at(*(2 * (self.answers(self.expected),)), self.weight)
        return self.events.products(np.stack([anchor.own + anchor.common, anchor.common]))

    @cached_property
    def events(self) -> BinaryEvents | ClassEvents:
        """The same, whose coefficients are the intercept and the weights."""
        if self.contrasts.shape[2] > 1:
            return ClassEvents(self.contrasts, self.offset, self.outcomes, self.weight)
        design = np.ones((1 + self.contrasts.shape[1], len(self.contrasts)))
        design[1:] = self.contrasts[..., 0].T
        return BinaryEvents(design, self.offset[:, 0], np.where(self.outcomes == 1, 1.0, -1.0), self.weight)

    @cached_property
    def products(self) -> Array:
        """Inner products of the contrasts of binary events about their means, (T, T)."""
        plain = self.contrasts[..., 0]
        centred = plain - plain.mean(axis=1, keepdims=True)
        return np.asarray(centred @ centred.T)


@dataclass(frozen=True, eq=False)
class Regression:
    """Outcomes of events by what experts contribute to them.

    Attributes
    ----------
    observed : Observations
    beliefs : WeightBeliefs
    anchored : bool
        Whether one outcome is to move little.
    """

    observed: Observations
    beliefs: WeightBeliefs
    anchored: bool = True

    def fit(self, deviation: float, start: Coefficients | None = None) -> Coefficients:
        """The most probable coefficients if weights differ from each other by about `deviation`."""
        t, _, d = self.observed.contrasts.shape
        several, root = self.several(deviation), self.beliefs.intercept_root(d)
        free, first = root.shape[1], self._first(deviation, start)
        if d == 1 and several and not self.side_by_side:
            return self.found(deviation, self._by_events(deviation, start))
        columns = self._columns(deviation)
        columns.insert(1, np.broadcast_to(root.T, (t, free, d)))
        outcomes, weight = self.observed.outcomes, self.observed.weight
        mode = posterior_mode(np.concatenate(columns, axis=1), outcomes, self.mean_answers, weight, first, self.anchor)
        return self.found(deviation, mode)

    @property
    def side_by_side(self) -> bool:
        """Whether it is fitted together with others (`opinionpool.estimation.side_by_side`), not in terms of events."""
        t, n, d = self.observed.contrasts.shape
        size = self.beliefs.common(d) + n
        return bool(FEWER * size <= t if d == 1 else size <= t * d)

    def several(self, deviation: float) -> bool:
        """Whether weights differ."""
        return moves(self.beliefs.deviation(deviation), self.observed.contrasts.shape[1])

    def _first(self, deviation: float, start: Coefficients | None) -> Array | None:
        """Coefficients of another fit to begin with, if they are as many."""
        _, n, d = self.observed.contrasts.shape
        size = self.beliefs.common(d) + (n if self.several(deviation) else 0)
        return None if start is None or len(start.mode.coefficients) != size else start.mode.coefficients

    @cached_property
    def mean_answers(self) -> Array:
        """Log-ratios by the weights that are believed on average, (T, K - 1)."""
        return self.observed.answers(self.beliefs.mean)

    @cached_property
    def anchor(self) -> Anchor | None:
        """What keeps one outcome from moving much."""
        return self.observed.anchor(self.beliefs.mean) if self.anchored else None

    def found(self, deviation: float, mode: Mode) -> Coefficients:
        """Intercept and weights by the coefficients at a mode."""
        beliefs, own, theta = self.beliefs, self.beliefs.deviation(deviation), mode.coefficients
        root, shared = beliefs.intercept_root(self.observed.contrasts.shape[2]), beliefs.shared
        before = shared + root.shape[1]
        weights = beliefs.mean + beliefs.together @ theta[:shared]
        if isinstance(own, np.ndarray):
            weights = weights + own @ theta[before:]
        elif moves(own, len(beliefs.mean)):
            found = own * theta[before:]
            weights = weights + (found - found.mean())
        values = np.concatenate([root @ theta[shared:before], weights])
        return Coefficients(values, mode.evidence, mode, beliefs, deviation)

    def _columns(self, deviation: float) -> list[Array]:
        """What multiplies the coefficients but the intercept's, (T, P, K - 1) in parts."""
        beliefs, own = self.beliefs, self.beliefs.deviation(deviation)
        columns = [np.swapaxes(np.swapaxes(self.observed.contrasts, 1, 2) @ beliefs.together, 1, 2)]
        if isinstance(own, np.ndarray):
            columns.append(np.swapaxes(np.swapaxes(self.observed.contrasts, 1, 2) @ own, 1, 2))
        elif moves(own, self.observed.contrasts.shape[1]):
            columns.append(own * (self.observed.contrasts - self.observed.contrasts.mean(axis=1)[:, None, :]))
        return columns

    def _by_events(self, deviation: float, start: Coefficients | None) -> Mode:
        """The mode of more coefficients than binary events, without a design, which is as large as the forecasts."""
        own, root = self.beliefs.deviation(deviation), self.beliefs.intercept_root(1)
        if isinstance(own, np.ndarray):
            design = self._binary_design(deviation)
            products = design @ design.T
        else:
            along = self.observed.contrasts[..., 0] @ self.beliefs.together
            shared = np.column_stack([along, np.full(len(along), np.sqrt((root**2).sum()))])
            products = own**2 * self.observed.products
            products += shared @ shared.T
        before = None if start is None else self._beyond_mean(start.values)
        dual = binary_mode(
            products, self.observed.outcomes, self.mean_answers[:, 0], self.observed.weight, before, self.anchor
        )
        if isinstance(own, np.ndarray):
            theta = design.T @ dual.amounts
        else:
            free = own * (dual.amounts @ self.observed.contrasts[..., 0])
            level = np.full(root.shape[1], dual.amounts.sum() * root.sum())
            theta = np.concatenate([dual.amounts @ along, level, free - free.mean()])
        design_again = partial(self._binary_design, deviation)
        return Mode(theta, dual.evidence, np.empty((0, 0)), dual=dual, design=design_again)

    def _beyond_mean(self, values: Array) -> Array:
        """Log-odds of two classes by an intercept and weights, (1 + N,), beyond those by the mean weights, (T,)."""
        return np.asarray(values[0] + self.observed.contrasts[..., 0] @ (values[1:] - self.beliefs.mean))

    def _binary_design(self, deviation: float) -> Array:
        """The design of two classes, (T, P)."""
        columns, root = self._columns(deviation), self.beliefs.intercept_root(1)
        columns.insert(1, np.broadcast_to(root.T, (len(self.observed.contrasts), root.shape[1], 1)))
        return np.concatenate(columns, axis=1)[..., 0]
