"""The most probable coefficients of a log pool under normal beliefs, and how well the beliefs predict (evidence)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.estimation.anchor import Anchor, Quadratic
from opinionpool.estimation.dual import DualMode, EventCosts, dual_mode, judged
from opinionpool.estimation.likelihood import MANY_CLASSES, Likelihood, ManyClasses, Value
from opinionpool.estimation.newton import BinaryLikelihoods, Values, modes

# Of up to so many binary events for each coefficient, a mode is found faster in terms of the events.
FEWER = 2


@dataclass(frozen=True, eq=False)
class Mode:
    """A posterior mode under independent standard normal beliefs.

    Attributes
    ----------
    coefficients : ndarray, shape (P,)
    evidence : float
        Laplace's approximation to the log probability of the outcomes.
    precision : ndarray, shape (R, R)
        Of the coefficients in `basis` by beliefs and outcomes; outside it they are as they were believed.
    basis : ndarray or None, shape (P, R)
        Orthonormal; None if it is the identity.
    dual, design : DualMode and callable, or None
        Where there are more coefficients than binary events, the mode in terms of these, and no precision; and what
        makes the design, (T, P).
    """

    coefficients: Array
    evidence: float
    precision: Array
    basis: Array | None = None
    dual: DualMode | None = None
    design: Callable[[], Array] | None = None

    @property
    def covariance(self) -> Array:
        """Covariance of the coefficients given the outcomes, by Laplace's approximation, (P, P)."""
        if self.dual is not None and self.design is not None:
            reduction = self.dual.reduction(self.design())
            return np.eye(reduction.shape[1]) - reduction.T @ reduction
        within = np.linalg.inv(self.precision)
        if self.basis is None:
            return np.asarray(within)
        return np.eye(len(self.basis)) + self.basis @ (within - np.eye(len(within))) @ self.basis.T


def posterior_mode(
    design: Array,
    outcomes: npt.NDArray[np.intp],
    offset: Array,
    weight: Array,
    start: Array | None = None,
    anchor: Anchor | None = None,
) -> Mode:
    """The mode of standard normal coefficients given outcomes whose log-ratios are offset + design'coefficients.

    Parameters
    ----------
    design : ndarray, shape (T, P, K - 1)
    outcomes : ndarray of int, shape (T,)
    offset : ndarray, shape (T, K - 1)
    weight : ndarray, shape (T,)
        Frequencies.
    start : ndarray, shape (P,), optional
        Where to begin; the answer does not depend on it.
    anchor : Anchor, optional
        Makes the mode steadier; evidence and precision are without it.
    """
    t, p, d = design.shape
    if p > t and d == 1:
        plain = design[..., 0]
        dual = _dual_mode(plain @ plain.T, outcomes, offset[:, 0], weight, anchor=anchor)
        return Mode(plain.T @ dual.amounts, dual.evidence, np.empty((0, 0)), dual=dual, design=lambda: plain)
    if p > t * d:
        # Coefficients that no event sees stay at 0: solve among the others.
        rows = np.swapaxes(design, 1, 2).reshape(t * d, p)
        basis = np.linalg.qr(rows.T)[0]
        seen = (rows @ basis).reshape(t, d, -1).swapaxes(1, 2)
        found = posterior_mode(seen, outcomes, offset, weight, anchor=anchor)
        return Mode(basis @ found.coefficients, found.evidence, found.precision, basis)
    pull = None if anchor is None else anchor.quadratic(design)
    return _mode(Likelihood.of(design, outcomes, offset, weight, intercept=False), start, pull)


def _dual_mode(
    products: Array,
    outcomes: npt.NDArray[np.intp],
    offset: Array,
    weight: Array,
    start: Array | None = None,
    anchor: Anchor | None = None,
) -> DualMode:
    """The mode of more coefficients than binary events, with the products (T, T) of their design."""
    sign = np.where(outcomes == 1, 1.0, -1.0)

    def costs(ratios: Array) -> EventCosts:
        # Of what happened, and the probability of what did not, precise where it is small.
        margin = sign * (offset + ratios)
        small = np.exp(-np.abs(margin))
        other = np.where(margin >= 0, small, 1.0) / (1.0 + small)
        loss = np.log1p(small) + np.maximum(-margin, 0.0)
        return EventCosts(float(weight @ loss), -weight * sign * other, weight * other * (1.0 - other))

    if anchor is None:
        return dual_mode(products, costs, start)
    both, push = anchor.own + anchor.common, anchor.common * anchor.distance[:, 0]

    def anchored(ratios: Array) -> EventCosts:
        plain = costs(ratios)
        pulled, slope = float(both @ ratios**2 / 2.0 + push @ ratios), both * ratios + push
        return EventCosts(plain.total + pulled, plain.slope + slope, plain.curvature + both)

    return judged(products, costs, dual_mode(products, anchored, start).amounts)


class _Likelihood(Protocol):
    """A likelihood of outcomes."""

    @property
    def size(self) -> int:
        """How many coefficients there are."""

    @property
    def events(self) -> float:
        """The sum of the frequencies."""

    def value(self, coefficients: Array) -> Value:
        """Loss, gradient and Hessian per event."""


@dataclass(frozen=True, eq=False)
class _Single:
    """A likelihood by itself."""

    likelihood: _Likelihood

    def values(self, which: Index, at: Array) -> Values:
        """Of all events."""
        assert len(which) == 1
        value, events = self.likelihood.value(at[0]), self.likelihood.events
        return Values(np.array([events * value.loss]), events * value.gradient[None], events * value.hessian[None])


def _mode(likelihood: _Likelihood, start: Array | None, pull: Quadratic | None) -> Mode:
    """The mode under standard normal beliefs; `pull` moves it, and says nothing for beliefs."""
    begun = np.zeros(likelihood.size) if start is None else start
    pulls = None if pull is None else Quadratic(pull.curvature[None], pull.slope[None])
    return Mode(*modes(_Single(likelihood), begun[None], pulls)[0])


@dataclass(frozen=True, eq=False)
class WeightBeliefs:
    """Means and spreads of the coefficients.

    Attributes
    ----------
    mean : ndarray, shape (N,)
        Of the weights.
    slope_spread : float
        Standard deviation of the sum of the weights as they move in proportion.
    intercept_spread : float
        In log-odds, a class-symmetric spread when K > 2; 0 where there is no intercept.
    deviation : callable
        From how much weights would differ without beliefs to how they do: a number where all do so
        alike, about their mean; else a root of their covariance, (N, N).
    guide : ndarray or None, shape (N,)
        How weights move with how good a guide agreement is, for a standard deviation of what is believed of that.
    """

    mean: Array
    slope_spread: float
    intercept_spread: float
    deviation: Callable[[float], float | Array]
    guide: Array | None = None

    def root(self, deviation: float, d: int) -> Array:
        """Root of the covariance of intercept and weights, (K - 1 + N, P), for d = K - 1."""
        n, own, intercept = len(self.mean), self.deviation(deviation), self.intercept_root(d)
        columns = np.zeros((d + n, self.shared + intercept.shape[1]))
        columns[:d, self.shared :] = intercept
        columns[d:, : self.shared] = self.together
        if not moves(own, n):
            return columns
        free = np.zeros((d + n, n))
        free[d:] = own if isinstance(own, np.ndarray) else own * (np.eye(n) - 1.0 / n)
        return np.concatenate([columns, free], axis=1)

    @property
    def shared(self) -> int:
        """How many coefficients move all weights."""
        return 1 if self.guide is None else 2

    @cached_property
    def together(self) -> Array:
        """How each of these moves them: their sum, and how good a guide agreement is, (N, 1 or 2)."""
        share = self.mean / self.mean.sum() if self.slope_spread > 0 else np.zeros(len(self.mean))
        columns = [self.slope_spread * share, *(() if self.guide is None else (self.guide,))]
        return np.stack(columns, axis=1)

    def intercept_root(self, d: int) -> Array:
        """Root of the covariance of the intercept, (K - 1, K - 1), or (K - 1, 0) where there is none."""
        return intercept_root(self.intercept_spread, d)[:, : d if self.intercept_spread > 0 else 0]


def moves(own: float | Array, n: int) -> bool:
    """Whether n weights differ."""
    return isinstance(own, np.ndarray) or (own > 0 and n > 1)


@dataclass(frozen=True, eq=False)
class Coefficients:
    """What a regression found.

    Attributes
    ----------
    values : ndarray, shape (K - 1 + N,)
        Intercept and weights.
    evidence : float
        Log probability of the outcomes under the beliefs.
    mode : Mode
        The standardised coefficients.
    beliefs : WeightBeliefs
    deviation : float
        How much weights were taken to differ.
    """

    values: Array
    evidence: float
    mode: Mode
    beliefs: WeightBeliefs
    deviation: float

    def covariance(self) -> Array:
        """Covariance of intercept and weights given the outcomes, (K - 1 + N, K - 1 + N)."""
        root = self._root()
        return np.asarray(root @ self.mode.covariance @ root.T)

    def rows(self) -> Array:
        """The same as the outer product of rows, (P, K - 1 + N)."""
        value, vector = np.linalg.eigh(self.mode.covariance)
        return np.asarray((self._root() @ (vector * np.sqrt(np.maximum(value, 0.0)))).T)

    def _root(self) -> Array:
        return self.beliefs.root(self.deviation, len(self.values) - len(self.beliefs.mean))


def left_open(answer: Coefficients, alternatives: list[Coefficients], probability: Array) -> Array:
    """What alternatives leave open beyond the covariance of an answer, as rows (R, K - 1 + N): see `Coefficients.rows`.

    They differ from the answer, and may be less certain than it is.
    """
    off = np.sqrt(probability)[:, None] * (np.array([each.values for each in alternatives]) - answer.values)
    more = np.concatenate([np.sqrt(p) * each.rows() for p, each in zip(probability, alternatives, strict=True)])
    less = answer.rows()
    basis = np.linalg.qr(np.concatenate([more, less]).T)[0]
    more, less = more @ basis, less @ basis
    value, vector = np.linalg.eigh(more.T @ more - less.T @ less)
    return np.concatenate([off, np.sqrt(np.maximum(value, 0.0))[:, None] * (basis @ vector).T])


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
            mode = _mode(ManyClasses(own_design, root, shared, self.outcomes, mean, self.weight), first, pull)
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
        before = None if start is None or start.mode.dual is None else start.mode.dual.amounts
        if before is not None and len(before) != len(products):
            # Found by a sample of these events.
            before = None
        dual = _dual_mode(products, self.outcomes, self.mean_answers[:, 0], self.weight, before, self.anchor)
        if isinstance(own, np.ndarray):
            theta = design.T @ dual.amounts
        else:
            free = own * (dual.amounts @ self.contrasts[..., 0])
            level = np.full(root.shape[1], dual.amounts.sum() * root.sum())
            theta = np.concatenate([dual.amounts @ along, level, free - free.mean()])
        design_again = partial(self._binary_design, deviation)
        return Mode(theta, dual.evidence, np.empty((0, 0)), dual=dual, design=design_again)

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


def intercept_root(spread: float, d: int) -> Array:
    """Root of the covariance of an intercept about 0, (K - 1, K - 1): independent log-probabilities favour no class."""
    return np.asarray(spread * _unit_root(d))


@cache
def _unit_root(d: int) -> Array:
    """The same for a spread of 1."""
    return np.asarray(np.linalg.cholesky((np.eye(d) + 1.0) / 2.0), dtype=np.float64)


def harmonic_mean(values: npt.ArrayLike, posterior: npt.ArrayLike) -> float:
    """The harmonic mean of positive values of given probabilities; infinite if all are."""
    inverse = float(np.asarray(posterior) @ (1.0 / np.asarray(values, dtype=np.float64)))
    return 1.0 / inverse if inverse > 0 else np.inf


def posterior_probabilities(evidence: npt.ArrayLike, prior: npt.ArrayLike, rate: float = 1.0) -> Array:
    """Posterior probabilities of alternatives from prior ones and their log evidence, which counts `rate` times."""
    score = rate * np.asarray(evidence) + np.log(prior)
    posterior = np.exp(score - score.max())
    return np.asarray(posterior / posterior.sum())
