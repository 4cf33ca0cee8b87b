"""The outcomes of events as a regression on what experts contribute, and its fits, several of them side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.estimation.anchor import Anchor, Quadratic
from opinionpool.estimation.coefficients import Coefficients, WeightBeliefs, moves
from opinionpool.estimation.dual import binary_mode
from opinionpool.estimation.likelihood import MANY_CLASSES, ManyClasses
from opinionpool.estimation.posterior import BinaryLikelihoods, Mode, modes, newton_mode, posterior_mode

# Of up to so many binary events for each coefficient, a mode is found faster in terms of the events.
FEWER = 2


class BinaryParts(NamedTuple):
    """A design (T, Q) times a root (Q, P) multiplies P coefficients in log-odds; what pulls those of the design."""

    design: Array
    root: Array
    pull: Quadratic


@dataclass(frozen=True, eq=False)
class Regression:
    """Outcomes of T events and what N experts contribute to them.

    Attributes
    ----------
    contrasts : ndarray, shape (T, N, K - 1)
        u, none missing.
    offset : ndarray, shape (T, K - 1)
        L°.
    outcomes : ndarray of int, shape (T,)
    weight : ndarray, shape (T,)
        Frequencies.
    beliefs : WeightBeliefs
    expected : ndarray, shape (N,), optional
        The weights that are believed of any panel, where one outcome is to move little (`Anchor`).
    """

    contrasts: Array
    offset: Array
    outcomes: npt.NDArray[np.intp]
    weight: Array
    beliefs: WeightBeliefs
    expected: Array | None = None

    def fit(self, deviation: float, start: Coefficients | None = None) -> Coefficients:
        """The most probable coefficients if weights differ from each other by about `deviation`."""
        t, n, d = self.contrasts.shape
        several, root = self.several(deviation), self.beliefs.intercept_root(d)
        free, first = root.shape[1], self._first(deviation, start)
        if several and not self.many_events:
            return self.found(deviation, self._by_events(deviation, start))
        mean, anchor = self.mean_answers, self.anchor
        shared = self.beliefs.shared
        if free >= MANY_CLASSES and shared + free + n <= t * d:
            own_design = np.concatenate(self._columns(deviation), axis=1)
            pull = None if anchor is None else anchor.with_shared(own_design, root, shared)
            mode = newton_mode(ManyClasses(own_design, root, shared, self.outcomes, mean, self.weight), first, pull)
        else:
            columns = self._columns(deviation)
            columns.insert(1, np.broadcast_to(root.T, (t, free, d)))
            mode = posterior_mode(np.concatenate(columns, axis=1), self.outcomes, mean, self.weight, first, anchor)
        return self.found(deviation, mode)

    @property
    def many_events(self) -> bool:
        """Whether coefficients are found faster by themselves than in terms of the events."""
        t, n, d = self.contrasts.shape
        return d > 1 or bool(FEWER * (self.beliefs.shared + self.beliefs.intercept_root(d).shape[1] + n) <= t)

    def several(self, deviation: float) -> bool:
        """Whether weights differ."""
        return moves(self.beliefs.deviation(deviation), self.contrasts.shape[1])

    def _first(self, deviation: float, start: Coefficients | None) -> Array | None:
        """Coefficients of another fit to begin with, if they are as many."""
        _, n, d = self.contrasts.shape
        size = self.beliefs.shared + self.beliefs.intercept_root(d).shape[1] + (n if self.several(deviation) else 0)
        return None if start is None or len(start.mode.coefficients) != size else start.mode.coefficients

    @cached_property
    def mean_answers(self) -> Array:
        """Log-ratios by the weights that are believed on average, (T, K - 1)."""
        return self._answers(self.beliefs.mean)

    @cached_property
    def anchor(self) -> Anchor | None:
        """What keeps one outcome from moving much."""
        if self.expected is None:
            return None
        return Anchor.at(self._answers(self.expected), self.mean_answers, self.weight)

    def found(self, deviation: float, mode: Mode) -> Coefficients:
        """Intercept and weights by the coefficients at a mode."""
        beliefs, own, theta = self.beliefs, self.beliefs.deviation(deviation), mode.coefficients
        root, shared = beliefs.intercept_root(self.contrasts.shape[2]), beliefs.shared
        before = shared + root.shape[1]
        weights = beliefs.mean + beliefs.together @ theta[:shared]
        if isinstance(own, np.ndarray):
            weights = weights + own @ theta[before:]
        elif moves(own, len(beliefs.mean)):
            found = own * theta[before:]
            weights = weights + (found - found.mean())
        values = np.concatenate([root @ theta[shared:before], weights])
        return Coefficients(values, mode.evidence, mode, beliefs, deviation)

    def binary_parts(self, deviation: float) -> BinaryParts:
        """What a fit for two classes is made of."""
        root = self.beliefs.root(deviation, 1)
        if root.shape[1] < root.shape[0]:
            design = self.contrasts[..., 0] @ root[1:] + root[0]
            return BinaryParts(design, np.eye(root.shape[1]), self._pull(design))
        return BinaryParts(self._plain_design, root, self._plain_pull)

    def begin(self, size: int, beliefs: WeightBeliefs, start: Coefficients | None) -> Array:
        """So many coefficients to begin with for two classes: those of a start, or the sum of weights by beliefs."""
        intercept = self.beliefs.intercept_root(1)
        if start is not None and len(start.mode.coefficients) == size:
            begun = start.mode.coefficients.copy()
        else:
            begun = np.zeros(size)
        total = float(beliefs.mean.sum() if start is None else start.values[1:].sum())
        if self.beliefs.slope_spread > 0:
            begun[0] = (total - float(self.beliefs.mean.sum())) / self.beliefs.slope_spread
        if start is not None and intercept.size:
            begun[self.beliefs.shared] = start.values[0] / intercept[0, 0]
        return begun

    @cached_property
    def _plain_design(self) -> Array:
        """What multiplies intercept and weights in the log-odds of two classes, (T, 1 + N)."""
        design = np.ones((len(self.contrasts), 1 + self.contrasts.shape[1]))
        design[:, 1:] = self.contrasts[..., 0]
        return design

    @cached_property
    def _plain_pull(self) -> Quadratic:
        return self._pull(self._plain_design)

    def _pull(self, design: Array) -> Quadratic:
        """What pulls coefficients with a design (T, Q)."""
        if self.anchor is None:
            return Quadratic(np.zeros((design.shape[1], design.shape[1])), np.zeros(design.shape[1]))
        return self.anchor.quadratic(design[:, :, None])

    def _columns(self, deviation: float) -> list[Array]:
        """What multiplies the coefficients but the intercept's, (T, P, K - 1) in parts."""
        beliefs, own = self.beliefs, self.beliefs.deviation(deviation)
        columns = [np.swapaxes(np.swapaxes(self.contrasts, 1, 2) @ beliefs.together, 1, 2)]
        if isinstance(own, np.ndarray):
            columns.append(np.swapaxes(np.swapaxes(self.contrasts, 1, 2) @ own, 1, 2))
        elif moves(own, self.contrasts.shape[1]):
            columns.append(own * (self.contrasts - self.contrasts.mean(axis=1)[:, None, :]))
        return columns

    def _by_events(self, deviation: float, start: Coefficients | None) -> Mode:
        """The mode of more coefficients than binary events, without a design, which is as large as the forecasts."""
        own, root = self.beliefs.deviation(deviation), self.beliefs.intercept_root(1)
        if isinstance(own, np.ndarray):
            design = self._binary_design(deviation)
            products = design @ design.T
        else:
            along = self.contrasts[..., 0] @ self.beliefs.together
            products = own**2 * self._products + along @ along.T + float((root**2).sum())
        before = None if start is None else self._beyond_mean(start.values)
        dual = binary_mode(products, self.outcomes, self.mean_answers[:, 0], self.weight, before, self.anchor)
        if isinstance(own, np.ndarray):
            theta = design.T @ dual.amounts
        else:
            free = own * (dual.amounts @ self.contrasts[..., 0])
            level = np.full(root.shape[1], dual.amounts.sum() * root.sum())
            theta = np.concatenate([dual.amounts @ along, level, free - free.mean()])
        design_again = partial(self._binary_design, deviation)
        return Mode(theta, dual.evidence, np.empty((0, 0)), dual=dual, design=design_again)

    def _beyond_mean(self, values: Array) -> Array:
        """Log-odds of two classes by an intercept and weights, (1 + N,), beyond those by the mean weights, (T,)."""
        return np.asarray(values[0] + self.contrasts[..., 0] @ (values[1:] - self.beliefs.mean))

    @cached_property
    def _products(self) -> Array:
        """Inner products of the contrasts of binary events about their means, (T, T)."""
        plain = self.contrasts[..., 0]
        centred = plain - plain.mean(axis=1, keepdims=True)
        return np.asarray(centred @ centred.T)

    def _binary_design(self, deviation: float) -> Array:
        """The design of two classes, (T, P)."""
        columns, root = self._columns(deviation), self.beliefs.intercept_root(1)
        columns.insert(1, np.broadcast_to(root.T, (len(self.contrasts), root.shape[1], 1)))
        return np.concatenate(columns, axis=1)[..., 0]

    def _answers(self, weights: Array) -> Array:
        """Log-ratios by weights (N,) and no intercept, (T, K - 1)."""
        if self.contrasts.shape[2] == 1:
            return self.offset + (self.contrasts[..., 0] @ weights)[:, None]
        return np.asarray(self.offset + np.einsum("tnd,n->td", self.contrasts, weights))


def fit_each(
    regressions: Iterable[Regression], deviations: Sequence[float], starts: Sequence[Coefficients] = ()
) -> Iterator[list[Coefficients]]:
    """Fits of several regressions for each deviation; those for two classes and many events side by side.

    Parameters
    ----------
    regressions : iterable of Regression
        Of the same outcomes and frequencies. Where they are not fitted side by side, there is one at a time.
    deviations : sequence of float
    starts : sequence of Coefficients
        For each deviation, where to begin, or for some and the last one for the others; answers do not depend on it.
    """
    each = iter(regressions)
    first = next(each)
    if first.contrasts.shape[2] == 1 and first.many_events:
        tasks = [(regression, deviation) for regression in (first, *each) for deviation in deviations]
        size = len(deviations)
        begun = [starts[min(i, len(starts) - 1)] for i in range(size if starts else 0)] * (len(tasks) // size)
        done = _side_by_side(tasks, begun)
        yield from (done[i : i + size] for i in range(0, len(done), size))
        return
    before = starts
    for regression in chain((first,), each):
        own: list[Coefficients] = []
        for i, deviation in enumerate(deviations):
            own.append(regression.fit(deviation, *(before[i : i + 1] or own[-1:])))
        yield own
        before = own


def fit_all(tasks: Sequence[tuple[Regression, float]], starts: Sequence[Coefficients]) -> list[Coefficients]:
    """Fits of regressions of the same outcomes with a deviation each, side by side as `fit_each` does.

    There is a start for each, or the last one is for the others.
    """
    begun = [starts[min(i, len(starts) - 1)] for i in range(len(tasks))]
    regression = tasks[0][0]
    if regression.contrasts.shape[2] == 1 and regression.many_events:
        return _side_by_side(tasks, begun)
    return [each.fit(deviation, start) for (each, deviation), start in zip(tasks, begun, strict=True)]


def _side_by_side(tasks: Sequence[tuple[Regression, float]], starts: Sequence[Coefficients]) -> list[Coefficients]:
    """Fits for two classes and many events; all have as many coefficients, of which some do nothing where fewer do."""
    parts, first = [regression.binary_parts(deviation) for regression, deviation in tasks], tasks[0][0]
    sizes = [part.root.shape[1] for part in parts]
    most = max(sizes)
    roots = [part.root if size == most else _widened(part.root, most) for part, size in zip(parts, sizes, strict=True)]
    pulls = [part.pull.of(root) for part, root in zip(parts, roots, strict=True)]
    begun = np.zeros((len(tasks), most))
    for i, ((regression, _), size) in enumerate(zip(tasks, sizes, strict=True)):
        begun[i, :size] = regression.begin(size, first.beliefs, starts[i] if starts else None)
    likelihoods = BinaryLikelihoods(
        [part.design for part in parts],
        roots,
        np.stack([regression.mean_answers[:, 0] for regression, _ in tasks]),
        np.where(first.outcomes == 1, 1.0, -1.0),
        first.weight,
    )
    pull = Quadratic(np.stack([each.curvature for each in pulls]), np.stack([each.slope for each in pulls]))
    return [
        regression.found(deviation, Mode(mode.coefficients[:size], mode.evidence, mode.precision[:size, :size]))
        for (regression, deviation), size, mode in zip(tasks, sizes, modes(likelihoods, begun, pull), strict=True)
    ]


def _widened(root: Array, columns: int) -> Array:
    """The same with columns of zeros behind its own."""
    wide = np.zeros((len(root), columns))
    wide[:, : root.shape[1]] = root
    return wide
