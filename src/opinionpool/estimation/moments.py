"""What resolved events say, in a form that adds up: counts, means and centred cross-products.

One kind of sufficient statistic serves batch, stream and distributed learning (model.md, section 2.5). It is
kept for each set of experts that answered together, so that adding, merging and removing are exact when
experts are absent, join or leave; complete data are one set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Floats, each_pattern, frequencies
from opinionpool.blocks import Bounds, blocks, blocks_of, floored_log_odds, in_order, pieces, rows_of_block
from opinionpool.errors import ArgumentError, ShapeError
from opinionpool.labels import UNRESOLVED
from opinionpool.logodds import check_probabilities, metric
from opinionpool.names import expert_names

RESOLVED, OPEN = 0, 1


@dataclass(frozen=True, eq=False)
class PatternMoments:
    """Moments of events on which the same n experts answered."""

    weight: Array  # (K + 1,); events by outcome; the last entry is the unresolved ones
    mean: Array  # (K + 1, n, K - 1); mean log-ratios by outcome
    # (2, n, n); centred cross-products, contracted over the classes by the metric: [0] about the mean of each outcome,
    # over resolved events; [1] of unresolved events
    scatter: Array

    @classmethod
    def of_rows(cls, ratios: Array, group: npt.NDArray[np.intp], weight: Array, classes: int) -> PatternMoments:
        """Moments of (t, n, K - 1) log-ratios in groups 0 .. K."""
        t, n, d = ratios.shape
        member = np.zeros((classes + 1, t))
        member[group, np.arange(t)] = weight
        total = member.sum(axis=1)
        share = member / np.where(total > 0, total, 1.0)[:, None]
        flat = ratios.reshape(t, n * d)
        # A first row as origin keeps large offsets out of the sums.
        origin = flat[0]
        mean = share @ (flat - origin)
        residual = (flat - origin) - mean[group]
        slip = share @ residual
        residual -= slip[group]
        mean = np.where(total[:, None] > 0, mean + slip + origin, 0.0)
        scatter = np.stack(
            [
                _scatter(residual.reshape(t, n, d), np.where(part, weight, 0.0))
                for part in (group < classes, group == classes)
            ]
        )
        return cls(total, mean.reshape(classes + 1, n, d), scatter)

    def combine(self, other: PatternMoments, sign: int = 1) -> PatternMoments:
        """Both together, or with `sign` -1 the first without the second."""
        added = sign * other.weight
        total = self.weight + added
        # What rounding leaves of a group that was emptied.
        empty = np.abs(total) <= 1e-9 * np.maximum(self.weight, other.weight)
        total = np.where(empty, 0.0, total)
        share = added / np.where(empty, 1.0, total)
        delta = other.mean - self.mean
        mean = self.mean + share[:, None, None] * delta
        mean = np.where(empty[:, None, None], 0.0, mean)
        between = np.where(empty, 0.0, self.weight * share)
        scatter = self.scatter + sign * other.scatter
        scatter[RESOLVED] += _scatter(delta[:-1], between[:-1])
        scatter[OPEN] += _scatter(delta[-1:], between[-1:])
        if not total[:-1].any():
            scatter[RESOLVED] = 0.0
        if not total[-1]:
            scatter[OPEN] = 0.0
        return PatternMoments(total, mean, scatter)


def _scatter(rows: Array, weight: Array) -> Array:
    """Sum of weight times the outer products of (t, n, K - 1) rows over experts, contracted over classes."""
    t, n, d = rows.shape
    if d == 1:
        flat = rows[:, :, 0]
        return np.asarray((flat.T * weight) @ flat)
    left = np.swapaxes(rows @ metric(d + 1), 1, 2).reshape(t * d, n)
    right = np.swapaxes(rows, 1, 2).reshape(t * d, n)
    return np.asarray((left.T * np.repeat(weight, d)) @ right)


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of N experts' log-ratios on events of K classes, by outcome.

    Immutable: `add`, `merge` and `remove` return new moments. `Moments.empty` is the identity of `merge`.

    Examples
    --------
    >>> import numpy as np
    >>> ratios = np.array([[[1.0]], [[3.0]], [[-2.0]]])
    >>> moments = Moments.empty(["ann"]).add(ratios, np.array([1, 1, 0]))
    >>> moments.events, moments.marginals().mean[:2, 0, 0]
    (array([1., 2., 0.]), array([-2.,  2.]))
    """

    experts: tuple[str, ...]  # N names; merging matches them
    classes: int  # K
    # (K + 1,); weight of the events by outcome, those without any forecast too; the last entry is the unresolved ones
    events: Array
    patterns: Mapping[tuple[int, ...], PatternMoments]  # keyed by the positions of the experts who answered together

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled, (self.experts, self.classes, self.events, dict(self.patterns))

    @classmethod
    def empty(cls, experts: Iterable[object] = (), classes: int = 2) -> Moments:
        """Moments of no events."""
        names = tuple(str(name) for name in experts)
        return cls(expert_names(names, len(names)), classes, np.zeros(classes + 1), MappingProxyType({}))

    def add(self, ratios: Array, outcomes: npt.NDArray[np.intp], sample_weight: npt.ArrayLike | None = None) -> Moments:
        """These moments and further events.

        Parameters
        ----------
        ratios : ndarray, shape (T, N, K - 1)
            Log-ratios of the forecasts, less their reference where it differs from event to event; NaN where
            missing.
        outcomes : ndarray of int, shape (T,)
            0 .. K - 1, -1 where not resolved.
        sample_weight : array_like, shape (T,), optional
            Frequencies: 2 is the event twice, 0 is no event.

        Raises
        ------
        ShapeError
            If the arguments do not fit together.
        ArgumentError
            If a weight is negative or not finite.
        """
        n, d = len(self.experts), self.classes - 1
        if ratios.shape != (len(outcomes), n, d):
            raise ShapeError(
                f"{len(outcomes)} outcomes and {n} experts need log-ratios of shape {(len(outcomes), n, d)}"
            )
        weight = frequencies(sample_weight, len(outcomes))
        used = weight > 0
        group = np.where(outcomes == UNRESOLVED, self.classes, outcomes)
        events = np.asarray(np.bincount(group, weights=weight, minlength=self.classes + 1), dtype=np.float64)
        found: dict[tuple[int, ...], PatternMoments] = {}
        for rows, columns in each_pattern(~np.isnan(ratios[:, :, 0])[used]):
            if len(columns) and len(rows):
                kept = np.flatnonzero(used)[rows]
                part = ratios[kept] if len(columns) == n else ratios[np.ix_(kept, columns)]
                found[tuple(columns.tolist())] = PatternMoments.of_rows(part, group[kept], weight[kept], self.classes)
        return self._with(Moments(self.experts, self.classes, events, found), 1)

    def merge(self, other: Moments) -> Moments:
        """Both together, over the experts of either; exact, and in any order to rounding."""
        self._check_classes(other)
        experts = self.experts + tuple(name for name in other.experts if name not in set(self.experts))
        return self._over(experts)._with(other._over(experts), 1)

    def remove(self, other: Moments) -> Moments:
        """These moments without events that were added before (a downdate).

        Raises
        ------
        ArgumentError
            If they do not hold that many events.
        """
        self._check_classes(other)
        strange = [name for name in other.experts if name not in set(self.experts)]
        if strange:
            raise ArgumentError(
                f"only events that were added can be removed, and expert {strange[0]!r} was never added"
            )
        return self._with(other._over(self.experts), -1)

    def marginals(self) -> Marginals:
        """Each expert by itself, whoever else answered."""
        total = _no_marginals(len(self.experts), self.classes)
        for columns, part in self.patterns.items():
            inner = np.stack([np.diag(part.scatter[RESOLVED]), np.diag(part.scatter[OPEN])])
            total.include(np.array(columns), part.weight, part.mean, inner)
        return total

    def _with(self, other: Moments, sign: int) -> Moments:
        events = self.events + sign * other.events
        if (events < -1e-9 * (1 + self.events)).any():
            raise ArgumentError("only events that were added can be removed, and there are fewer of some outcome")
        patterns = dict(self.patterns)
        for key, part in other.patterns.items():
            if key in patterns:
                patterns[key] = patterns[key].combine(part, sign)
            elif sign > 0:
                patterns[key] = part
            else:
                raise ArgumentError(
                    "only events that were added can be removed, and these experts never answered together"
                )
            if (patterns[key].weight < -1e-9).any():
                raise ArgumentError("only events that were added can be removed, and these experts have fewer")
            if not patterns[key].weight.any():
                del patterns[key]
        return Moments(self.experts, self.classes, np.maximum(events, 0.0), MappingProxyType(patterns))

    def _over(self, experts: tuple[str, ...]) -> Moments:
        """The same moments with the experts in another order, or more of them."""
        if experts == self.experts:
            return self
        position = {name: i for i, name in enumerate(experts)}
        moved: dict[tuple[int, ...], PatternMoments] = {}
        for columns, part in self.patterns.items():
            new = np.array([position[self.experts[i]] for i in columns])
            order = np.argsort(new)
            scatter = part.scatter[:, order][:, :, order]
            moved[tuple(new[order].tolist())] = PatternMoments(part.weight, part.mean[:, order], scatter)
        return Moments(experts, self.classes, self.events, moved)

    def _check_classes(self, other: Moments) -> None:
        if self.classes != other.classes:
            raise ArgumentError(f"moments of {self.classes} and of {other.classes} classes do not go together")


def _unpickled(
    experts: tuple[str, ...], classes: int, events: Array, patterns: dict[tuple[int, ...], PatternMoments]
) -> Moments:
    return Moments(experts, classes, events, MappingProxyType(patterns))


@dataclass(eq=False)
class Marginals:
    """Moments of each expert by itself."""

    count: Array  # (K + 1, N); weight of the expert's forecasts by outcome; last row: on unresolved events
    mean: Array  # (K + 1, N, K - 1); mean log-ratios by outcome
    square: Array  # (2, N); sum of squares about the means of the outcomes, over resolved and over unresolved events

    def include(self, columns: npt.NDArray[np.intp], weight: Array, mean: Array, square: Array) -> None:
        """Add the forecasts of some experts, of equal weight by outcome."""
        before = self.count[:, columns]
        total = before + weight[:, None]
        share = weight[:, None] / np.where(total > 0, total, 1.0)
        delta = mean - self.mean[:, columns]
        between = before * share * np.einsum("gnd,de,gne->gn", delta, metric(delta.shape[2] + 1), delta)
        self.square[:, columns] += square + np.stack([between[:-1].sum(axis=0), between[-1]])
        self.mean[:, columns] += share[..., None] * delta
        self.count[:, columns] = total


def _no_marginals(experts: int, classes: int) -> Marginals:
    groups = classes + 1
    return Marginals(np.zeros((groups, experts)), np.zeros((groups, experts, classes - 1)), np.zeros((2, experts)))


# Events whose outcomes are looked at together.
EVENTS = 1 << 16
# Up to so many experts a product with a copy is faster than the symmetric one.
FEW = 10
# The least share of a sum of squares that may lie about the means: below, too many digits are lost.
SAFE = {np.dtype(np.float64): 1e-3, np.dtype(np.float32): 0.05}
# A mean of log-odds so close to 0 costs no digits.
NEAR = 0.5


@dataclass(frozen=True, eq=False)
class BinaryOutcomes:
    """What happened, kept as it came: numbers 0 and 1, or booleans; NaN where not resolved."""

    y: Floats  # (T,)
    counts: Array  # (3,); events with outcome 0, with outcome 1, and unresolved ones

    @classmethod
    def of(cls, y: Floats) -> BinaryOutcomes | None:
        """None if these are other labels."""
        if y.dtype.kind not in "biuf":
            return None
        counts = np.zeros(3)
        for start in range(0, len(y), EVENTS):
            part = y[start : start + EVENTS]
            counts[0] += np.count_nonzero(part == 0)
            counts[1] += np.count_nonzero(part == 1)
            counts[2] += np.count_nonzero(part != part) if y.dtype.kind == "f" else 0
        return cls(y, counts) if counts.sum() == len(y) else None

    def codes(self, rows: slice | npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Of some events 0, 1 or -1."""
        part = self.y[rows]
        if self.y.dtype.kind == "f":
            return np.where(np.isnan(part), UNRESOLVED, part).astype(np.intp)
        return part.astype(np.intp)


class _GapError(Exception):
    """A forecast is missing, or is no probability."""


@dataclass(eq=False)
class _Sums:
    """Weight, sums and cross-products about an origin; of outcome 0, outcome 1 and unresolved events."""

    weight: Array
    total: Array
    cross: Array

    @classmethod
    def none(cls, n: int) -> _Sums:
        return cls(np.zeros(3), np.zeros((3, n)), np.zeros((2, n, n)))

    def include(self, other: _Sums) -> None:
        self.weight += other.weight
        self.total += other.total
        self.cross += other.cross

    def about_means(self, origin: float, least: float) -> PatternMoments | None:
        """Moments about the means, or None if less than this share of a sum of squares lies about them."""
        mean = self.total / np.where(self.weight > 0, self.weight, 1.0)[:, None]
        between = np.stack([self.total[:2].T @ mean[:2], self.total[2:].T @ mean[2:]])
        scatter = self.cross - between
        if (np.einsum("gii->gi", scatter) < least * np.einsum("gii->gi", self.cross)).any():
            return None
        mean = np.where(self.weight[:, None] > 0, mean + origin, 0.0)
        return PatternMoments(self.weight, mean[:, :, None], scatter)


def dense_moments(
    q: Floats,
    outcomes: BinaryOutcomes,
    prior: Array,
    floor: float,
    experts: tuple[str, ...],
    threads: int | None = None,
) -> Moments | None:
    """Moments of log-odds; None if a forecast is missing.

    Parameters
    ----------
    q : ndarray of float64 or float32, shape (T, N)
        float32 is worked on as it is, which changes weights by less than 1e-5.
    outcomes : BinaryOutcomes
    prior : ndarray, shape (2,)
        Sets only the floors: moments hold log-odds as they are.
    floor : float
    experts : tuple of str
        N names.
    threads : int, optional
        As many as there are processors if not given, and one for few forecasts; without influence on the result.

    Raises
    ------
    ProbabilityError
        Names the first value outside [0, 1] and its position.

    Examples
    --------
    >>> outcomes = BinaryOutcomes.of(np.array([1, 0, 1, 0]))
    >>> q = np.array([[0.6], [0.5], [0.7], [0.4]])
    >>> moments = dense_moments(q, outcomes, np.array([0.5, 0.5]), 1e-4, ("ann",))
    >>> moments.patterns[0,].mean[:2, 0, 0].round(4)
    array([-0.2027,  0.6264])
    """
    bounds = Bounds.of(prior, floor)
    try:
        for kind in dict.fromkeys((q.dtype, np.dtype(np.float64))):
            total, origin = _summed(q, outcomes, bounds, kind, threads)
            part = total.about_means(origin, SAFE[kind])
            if part is not None:
                patterns = MappingProxyType({tuple(range(len(experts))): part})
                return Moments(experts, 2, outcomes.counts, patterns)
    except _GapError:
        # What is missing goes another way, and what is wrong is reported here.
        check_probabilities(q)
        return None
    return _added_up(q, outcomes, prior, floor, experts)


def _summed(
    q: Floats, outcomes: BinaryOutcomes, bounds: Bounds, kind: np.dtype[Any], threads: int | None
) -> tuple[_Sums, float]:
    """Sums of log-odds less an origin, and the origin: about the panel's mean, where single precision needs it."""
    n, origin = q.shape[1], 0.0
    if kind == np.float32:
        few = q[:: len(q) // 64 + 1]
        origin = float(np.median(floored_log_odds(few, bounds, np.empty(few.shape))))
        origin = origin if abs(origin) > NEAR else 0.0

    def sums(piece: slice) -> _Sums:
        return _sums(q, outcomes, piece, bounds, kind, origin)

    work = [*pieces(len(q), n)]
    if len(work) == 1:
        return sums(work[0]), origin
    total = _Sums.none(n)
    for part in in_order(sums, work, threads):
        total.include(part)
    return total, origin


def _sums(
    q: Floats, outcomes: BinaryOutcomes, piece: slice, bounds: Bounds, kind: np.dtype[Any], origin: float
) -> _Sums:
    """Sums over a piece of the events."""
    n = q.shape[1]
    buffer = np.empty((min(rows_of_block(n), piece.stop - piece.start), n), kind)
    total = _Sums.none(n)
    for rows in blocks_of(piece, n):
        ratios = floored_log_odds(q[rows], bounds, buffer[: rows.stop - rows.start])
        if origin:
            ratios -= kind.type(origin)
        happened = outcomes.y[rows]
        member = np.empty((2, len(happened)), kind)
        for outcome in (0, 1):
            np.equal(happened, outcome, out=member[outcome])
        counts = member.sum(axis=1)
        left = len(happened) - counts.sum()
        if left:
            resolved = (member[0] + member[1]).astype(bool)
            _include(total, ratios[~resolved], np.ones((1, int(left)), kind), 1, slice(2, 3))
            ratios, member = ratios[resolved], member[:, resolved]
        _include(total, ratios, member, 0, slice(0, 2))
        total.weight += [*counts, left]
    if not np.isfinite(total.total).all():
        raise _GapError
    return total


def _include(total: _Sums, ratios: Floats, member: Floats, which: int, groups: slice) -> None:
    total.total[groups] += member @ ratios
    total.cross[which] += ratios.T @ (ratios.copy() if ratios.shape[1] <= FEW else ratios)


def _added_up(q: Floats, outcomes: BinaryOutcomes, prior: Array, floor: float, experts: tuple[str, ...]) -> Moments:
    """Moments of blocks about their own means, merged in order."""
    moments = Moments.empty(experts)
    for rows in blocks(len(q), len(experts)):
        ratios = logodds.log_ratios(np.asarray(q[rows], dtype=np.float64), prior, floor)
        moments = moments.merge(Moments.empty(experts).add(ratios, outcomes.codes(rows)))
    return moments
