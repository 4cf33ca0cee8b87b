"""Sufficient statistics of resolved events: weights, means and centred cross-products by who answered (model.md, 2.5).

The same class serves batch, stream and distributed learning. Events are grouped by their pattern, the set of experts
who answered them, so that adding, merging and removing are exact when experts are absent, join or leave. Arrays of
forecasts are read in blocks: one logarithm and one product per forecast, and no copy. Forecasts over K classes are
K - 1 levels: log-ratios in coordinates in which inner products are plain; for two classes, the one level is log-odds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Floats, Index, Mask, each_pattern
from opinionpool.blocks import Bounds, blocks, floored_log_odds, in_order, pieces, rows_of_block
from opinionpool.errors import ArgumentError, ShapeError
from opinionpool.labels import UNRESOLVED
from opinionpool.logodds import (
    SUM_TOLERANCE,
    check_probabilities,
    class_floors,
    inner_products,
    metric,
    raise_to_floors,
    signature,
    unwhitened,
    whitened,
)
from opinionpool.names import expert_names, places, unknown_names

# The least share of a sum of squares that may lie about the means: below, too many digits are lost.
SAFE = 1e-3
# Up to so many experts a product with a copy is faster than the symmetric one.
FEW = 10
# Weights below this share of what was there are rounding.
ROUNDING = 1e-9
# Statistics of so many experts are never large.
FEW_EXPERTS = 500


@dataclass(frozen=True, eq=False)
class MeanDesign:
    """Model of an expert's mean log-ratios: bias + contrast · the outcome's signature (±1 for two classes).

    There are G groups of events, by default one for each outcome; each group has its signature.
    """

    signature: Array  # (G, K - 1)
    biased: bool = True  # whether experts may be biased towards one class

    @classmethod
    def by_outcome(cls, classes: int) -> MeanDesign:
        """Return the model for events that share K classes: a group of events for each outcome."""
        return cls(signature(classes))

    @property
    def coefficients(self) -> int:
        """Number of coefficients of an expert's mean log-ratios: K - 1 for bias, if any, and 1 for contrast."""
        return int(self.signature.shape[1]) + 1 if self.biased else 1

    @property
    def squares(self) -> Array:
        """Squared length of each group's signature (the outcome as log-ratios; ±1 for two classes), (G,)."""
        return inner_products(self.signature, self.signature)

    def events(self, weight: Array) -> float:
        """Number of events, from the `weight` (G,) of each group; an event that is in several groups counts once."""
        return float(weight.sum() if self.biased else weight[self.squares > 0].sum())


@dataclass(frozen=True, eq=False)
class Marginals:
    """Number, mean and sum of squared deviations of each expert's log-ratios by group of events (last: unresolved)."""

    count: Array  # (G + 1, N); weight of the forecasts
    mean: Array  # (G + 1, N, K - 1); mean log-ratios
    square: Array  # (2, N); squares about the means of the groups, over resolved and over unresolved events


class RawSums(NamedTuple):
    """Sums over events of experts' log-ratios by group, and of products of two experts' log-ratios."""

    weight: Array  # (G + 1,)
    total: Array  # (K - 1, G + 1, N)
    cross: Array  # (2, N, N); products over resolved and over unresolved events

    @classmethod
    def of(cls, levels: Floats, member: Floats, weight: Array | None) -> RawSums:
        """Return sums of the experts' log-ratios `levels` (K - 1, T, N), which are in orthonormal coordinates.

        Row g of `member` (G + 1, T) has the weights of the events of group g; `weight` (T,) are all weights, None if
        they are 1. Products stay 0 if a sum is not finite.
        """
        total, cross = member @ levels, np.zeros((2, levels.shape[2], levels.shape[2]))
        left = member[-1] > 0
        if not np.isfinite(total).all():
            pass
        elif left.any():
            for i, rows in enumerate((~left, left)):
                cross[i] = _products(levels[:, rows], None if weight is None else weight[rows])
        else:
            cross[0] = _products(levels, weight)
        return cls(member.sum(axis=1, dtype=np.float64), total.astype(np.float64, copy=False), cross)

    def include(self, other: RawSums) -> None:
        """Add the sums over other events, `other`, in place."""
        for sums, more in zip(self, other, strict=True):
            np.add(sums, more, out=sums)

    def among(self, columns: Index) -> RawSums:
        """Return the sums of only the experts at the positions `columns`."""
        return RawSums(self.weight, self.total[..., columns], self.cross[:, columns[:, None], columns])

    def scatter(self) -> Array:
        """Sums of products of two experts' deviations from group means, (2, N, N): resolved and unresolved events."""
        mean = self.total / np.where(self.weight > 0, self.weight, 1.0)[:, None]
        parts = (slice(-1), slice(-1, None))
        between = [np.einsum("dgn,dgm->nm", self.total[:, part], mean[:, part]) for part in parts]
        return np.asarray(self.cross - between)

    def moments(self, origin: float, ratios: Array) -> PatternMoments:
        """Moments of log-ratios: of the coordinates summed here, times the matrix `ratios`, plus `origin`."""
        scatter = self.scatter()  # first, as the means of many classes are large
        mean = np.einsum("dgn,de->gne", self.total / np.where(self.weight > 0, self.weight, 1.0)[:, None], ratios)
        return PatternMoments(self.weight, np.where(self.weight[:, None, None] > 0, mean + origin, 0.0), scatter)


def enough_digits(sums: Mapping[tuple[int, ...], RawSums], experts: int) -> bool:
    """Return True if no expert's variation about its means is so small beside the raw sums that rounding spoils it."""
    within, about = np.zeros((2, 2, experts))
    for columns, each in sums.items():
        within[:, columns] += np.einsum("gii->gi", each.scatter())
        about[:, columns] += np.einsum("gii->gi", each.cross)
    return bool((within >= SAFE * about).all())


def _products(levels: Floats, weight: Array | None) -> Floats:
    """Weighted sums over events and coordinates of products of two experts' log-ratios `levels`, (N, N)."""
    flat = levels.reshape(-1, levels.shape[2])
    if weight is None:
        return np.asarray(flat.T @ (flat.copy() if flat.shape[1] <= FEW else flat))
    return np.asarray((flat.T * np.tile(weight, len(levels))) @ flat)


@dataclass(frozen=True, eq=False)
class PatternMoments:
    """Weight, means and products of deviations of log-ratios, over events that exactly one set of experts answered."""

    weight: Array  # (K + 1,); of the events by outcome; the last entry is for unresolved events
    mean: Array  # (K + 1, n, K - 1); mean log-ratios by outcome
    # (2, n, n); centred cross-products, contracted over the classes by the metric: [0] about the mean of each outcome,
    # over resolved events; [1] of unresolved events
    scatter: Array

    @classmethod
    def of_rows(cls, ratios: Array, group: Index, weight: Array, groups: int) -> PatternMoments:
        """Return moments of `ratios` (t, n, K - 1) by `group` (t,), 0 to `groups`; the last are unresolved events."""
        (_, n, d), member = ratios.shape, np.zeros((groups + 1, len(ratios)))
        member[group, np.arange(len(ratios))] = weight
        back, alike = unwhitened(np.eye(d)), bool((weight == 1.0).all())

        def about(mean: Array | None) -> RawSums:
            total = RawSums(np.zeros(groups + 1), np.zeros((d, groups + 1, n)), np.zeros((2, n, n)))
            for rows in blocks(len(ratios), n * d):
                # A first row as origin keeps large offsets out of the sums.
                moved = ratios[rows] - ratios[0] - (0.0 if mean is None else mean[group[rows]])
                total.include(
                    RawSums.of(np.moveaxis(whitened(moved), 2, 0), member[:, rows], None if alike else weight[rows])
                )
            return total

        sums = about(None)
        found = sums.moments(0.0, back)
        if not enough_digits({tuple(range(n)): sums}, n):
            # The means are subtracted first.
            again = about(found.mean).moments(0.0, back)
            found = replace(again, mean=found.mean + again.mean)
        return replace(found, mean=np.where(found.weight[:, None, None] > 0, found.mean + ratios[0], 0.0))

    def combine(self, other: PatternMoments, sign: int = 1) -> PatternMoments:
        """Return moments of these events and the events of `other` or, if `sign` is -1, of these without the others."""
        added = sign * other.weight
        total = self.weight + added
        # What rounding leaves of a group that was emptied.
        empty = np.abs(total) <= ROUNDING * np.maximum(self.weight, other.weight)
        total = np.where(empty, 0.0, total)
        share = added / np.where(empty, 1.0, total)
        delta = other.mean - self.mean
        mean = np.where(empty[:, None, None], 0.0, self.mean + share[:, None, None] * delta)
        between, difference = np.where(empty, 0.0, self.weight * share), whitened(delta)
        del delta  # as large as the means, which are many where classes are
        scatter = self.scatter + sign * other.scatter
        for i, part in enumerate((slice(-1), slice(-1, None))):
            scatter[i] += np.einsum("g,gnd,gmd->nm", between[part], difference[part], difference[part], optimize=True)
            if not total[part].any():
                scatter[i] = 0.0
        return PatternMoments(total, mean, scatter)


@dataclass(frozen=True, eq=False)
class Statistics:
    """Means and covariances of N experts' log-ratios, as sums by outcome and by the set of experts who answered.

    Immutable: `add`, `merge`, `remove`, `decay` and `shift` return new ones. `Statistics.empty` is the identity of
    `merge`.

    Examples
    --------
    >>> import numpy as np
    >>> ratios = np.array([[[1.0]], [[3.0]], [[-2.0]]])
    >>> found = Statistics.empty(["ann"]).add(ratios, np.array([1, 1, 0]))
    >>> found.totals, found.marginals.mean[:2, 0, 0]
    (array([1., 2., 0.]), array([-2.,  2.]))
    """

    experts: tuple[str, ...]  # names of the N experts, by which `merge` matches experts
    classes: int  # K
    # (K + 1,); weight of the events by outcome, also of events without any forecast; the last entry is for unresolved
    totals: Array
    patterns: Mapping[tuple[int, ...], PatternMoments]  # keyed by the positions of the experts who answered together

    @classmethod
    def empty(cls, experts: Iterable[object] = (), classes: int = 2) -> Statistics:
        """Statistics of no events."""
        names = tuple(str(name) for name in experts)
        return cls(expert_names(names, len(names)), classes, np.zeros(classes + 1), {})

    def add(self, ratios: Array, outcomes: Index, weight: Array | None = None) -> Statistics:
        """Statistics of the events so far and of further ones.

        `ratios` (T, N, K - 1) are log-ratios, less the prior's if each event has its own, NaN where missing; `outcomes`
        (T,) are 0 .. K - 1, -1 if unresolved; `weight` (T,) are frequencies, not only integers; 0 leaves an event out.
        """
        shape = (len(outcomes), len(self.experts), self.classes - 1)
        if ratios.shape != shape:
            raise ShapeError(f"{shape[0]} outcomes and {shape[1]} experts need log-ratios of shape {shape}")
        weight = np.ones(len(outcomes)) if weight is None else weight
        used = np.flatnonzero(weight > 0)
        group = np.where(outcomes == UNRESOLVED, self.classes, outcomes)
        totals = np.asarray(np.bincount(group, weights=weight, minlength=self.classes + 1), dtype=np.float64)
        found: dict[tuple[int, ...], PatternMoments] = {}
        for rows, columns in each_pattern(~np.isnan(ratios[:, :, 0])[used]):
            if len(columns):
                whole, kept = len(rows) == len(ratios), used[rows]
                part = ratios if whole else ratios[kept]
                part = part if len(columns) == shape[1] else part[:, columns]
                found[tuple(columns.tolist())] = PatternMoments.of_rows(part, group[kept], weight[kept], self.classes)
        return self._with(replace(self, totals=totals, patterns=found), 1)

    def merge(self, other: Statistics) -> Statistics:
        """Statistics of the events of this one and of `other`, with all their experts; in any order, up to rounding."""
        self._check_classes(other)
        experts = self.experts + tuple(unknown_names(other.experts, self.experts))
        return self._over(experts)._with(other._over(experts), 1)

    def remove(self, other: Statistics) -> Statistics:
        """Statistics without the events of `other`, which were added before (a downdate)."""
        self._check_classes(other)
        strange = unknown_names(other.experts, self.experts)
        if strange:
            raise ArgumentError(
                f"only events that were added can be removed, and expert {strange[0]!r} was never added"
            )
        return self._with(other._over(self.experts), -1)

    def decay(self, share: float) -> Statistics:
        """Statistics with the weights of all events multiplied by `share`."""
        parts = {key: PatternMoments(p.weight * share, p.mean, p.scatter * share) for key, p in self.patterns.items()}
        return self if share == 1.0 else replace(self, totals=self.totals * share, patterns=parts)

    def shift(self, reference: Array) -> Statistics:
        """Statistics of the log-ratios less `reference`, (K - 1,)."""
        parts = {
            key: replace(part, mean=np.where(part.weight[:, None, None] > 0, part.mean - reference, 0.0))
            for key, part in self.patterns.items()
        }
        return replace(self, patterns=parts)

    def _with(self, other: Statistics, sign: int) -> Statistics:
        totals = self.totals + sign * other.totals
        if (totals < -ROUNDING * (1 + self.totals)).any():
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
            if (patterns[key].weight < -ROUNDING).any():
                raise ArgumentError("only events that were added can be removed, and these experts have fewer")
            if not patterns[key].weight.any():
                del patterns[key]
        return replace(self, totals=np.maximum(totals, 0.0), patterns=patterns)

    def _over(self, experts: tuple[str, ...]) -> Statistics:
        """Return the statistics with the experts in the order `experts`, who include all experts so far."""
        if experts == self.experts:
            return self
        place = places(self.experts, experts)
        moved: dict[tuple[int, ...], PatternMoments] = {}
        for columns, part in self.patterns.items():
            new = place[list(columns)]
            order = np.argsort(new)
            scatter = part.scatter[:, order][:, :, order]
            moved[tuple(new[order].tolist())] = PatternMoments(part.weight, part.mean[:, order], scatter)
        return replace(self, experts=experts, patterns=moved)

    def _check_classes(self, other: Statistics) -> None:
        if self.classes != other.classes:
            raise ArgumentError(f"statistics of {self.classes} and of {other.classes} classes do not go together")

    @property
    def design(self) -> MeanDesign:
        """Model of an expert's mean log-ratios: bias + contrast · the outcome's signature (±1 for two classes)."""
        return MeanDesign.by_outcome(self.classes)

    @property
    def events(self) -> Array:
        """Number of resolved events of each outcome, each event counted by its weight, (K,)."""
        return self.totals[:-1]

    @cached_property
    def answered(self) -> Array:
        """Number of resolved events with a forecast by outcome, weighted, (K,)."""
        return np.asarray(sum((part.weight[:-1] for part in self.patterns.values()), start=np.zeros(self.classes)))

    @property
    def complete(self) -> bool:
        """Return True if every expert answered every resolved event with at least one forecast."""
        everyone = len(self.experts)
        return all(len(key) == everyone or not part.weight[:-1].any() for key, part in self.patterns.items())

    @cached_property
    def marginals(self) -> Marginals:
        """Number, mean and sum of squared deviations of each expert's log-ratios by outcome."""
        groups, n = self.classes + 1, len(self.experts)
        count, mean, square = np.zeros((groups, n)), np.zeros((groups, n, self.classes - 1)), np.zeros((2, n))
        for columns, part in self.patterns.items():
            count[:, columns] += part.weight[:, None]
            mean[:, columns] += part.weight[:, None, None] * part.mean
        mean /= np.where(count > 0, count, 1.0)[..., None]
        for columns, part in self.patterns.items():
            off = part.mean - mean[:, columns]
            between = part.weight[:, None] * inner_products(off, off)
            square[:, columns] += np.einsum("gii->gi", part.scatter)
            square[:, columns] += [between[:-1].sum(axis=0), between[-1]]
        return Marginals(count, mean, square)

    def scatter(self) -> Array:
        """Sums of products of experts' deviations from means by outcome, (N, N), if all experts answered all events."""
        n = len(self.experts)
        everyone = self.patterns.get(tuple(range(n)))
        return np.zeros((n, n)) if everyone is None else everyone.scatter[0].copy()

    def shared(self, expected: Array, spread: Array) -> tuple[float, float]:
        """Sum over events and pairs of experts of products of (log-ratio − `expected`)/`spread`; number of pairs."""
        scale, finite = np.where(np.isfinite(spread), 1.0 / spread, 0.0), np.isfinite(spread)
        total = pairs = 0.0
        for key, part in self.patterns.items():
            columns = np.array(key)
            size, weight = scale[columns], part.weight[:-1]
            off = (part.mean[:-1] - expected[:, columns]) * size[:, None]
            within = part.scatter[0] * np.outer(size, size)
            summed, each = off.sum(axis=1), inner_products(off, off).sum(axis=1)
            total += within.sum() - np.trace(within) + float(weight @ (inner_products(summed, summed) - each))
            present = int(finite[columns].sum())
            pairs += float(weight.sum()) * present * (present - 1)
        return total, pairs


def few_enough(experts: int, events: int) -> bool:
    """Whether statistics of `experts` experts are smaller than the forecasts on `events` events, or small anyway."""
    return experts <= max(events, FEW_EXPERTS)


# Positions of classes, in integers of any size.
Codes: TypeAlias = npt.NDArray[np.integer[Any]]
# A mean of log-odds so close to 0 costs no digits.
NEAR = 0.5
# Events for each set of experts, on average, below which rows are faster; and numbers in all moments together.
REPEATED, MOST_MOMENTS = 16, 1 << 22


class _NotHereError(Exception):
    """Error that makes `dense_statistics` return None: input is not probabilities, or needs a slower function."""


class _LogOdds:
    """Reader of an array of binary forecasts (T, N), block by block, as floored log-odds less `origin`."""

    def __init__(self, q: Floats, prior: Array, floor: float) -> None:
        self.q, self.bounds, self.ratios = q, Bounds.of(prior, floor), np.eye(1)
        few = q[:: len(q) // 64 + 1]
        some = floored_log_odds(few, self.bounds, np.empty(few.shape))
        known = some[~np.isnan(some)]
        origin = float(np.median(known)) if known.size else 0.0
        self.origin = origin if abs(origin) > NEAR else 0.0

    def buffer(self, events: int) -> Floats:
        """Return an uninitialised array to read up to `events` events into."""
        return np.empty((events, self.q.shape[1]))

    def read(self, rows: slice, buffer: Floats) -> Floats:
        """Return the floored log-odds of the events `rows` less `origin`, (1, T, N), NaN where missing, in `buffer`."""
        ratios = floored_log_odds(self.q[rows], self.bounds, buffer[: rows.stop - rows.start])
        if self.origin:
            ratios -= self.origin
        return ratios[None]

    def missing(self, rows: slice) -> Mask:
        """Return a mask of missing forecasts among the events `rows`, (T, N)."""
        return np.asarray(np.isnan(self.q[rows]))


class _ClassLevels:
    """Reader of forecasts over K > 2 classes, (T, N, K), block by block, as log-ratios in orthonormal coordinates."""

    origin = 0.0

    def __init__(self, q: Floats, prior: Array, floor: float) -> None:
        k = q.shape[2]
        root = np.linalg.cholesky(metric(k))
        # From log-probabilities; what they have in common, such as their normalisation, drops out.
        self.whitening = np.ascontiguousarray((np.concatenate([-np.ones((1, k - 1)), np.eye(k - 1)]) @ root).T)
        self.q, self.floors, self.ratios = q, class_floors(floor, prior, 100.0), np.asarray(np.linalg.inv(root))

    def buffer(self, events: int) -> Floats:
        return np.empty((events * self.q.shape[1], self.q.shape[2]))

    def read(self, rows: slice, buffer: Floats) -> Floats:
        t, n, k = self.q[rows].shape
        flat, logs = self.q[rows].reshape(t * n, k), buffer[: t * n]
        least, most = float(np.fmin.reduce(flat, axis=None)), float(np.fmax.reduce(flat, axis=None))
        off = np.abs(flat @ np.ones(k) - 1.0) > SUM_TOLERANCE
        if least < 0 or most > 1 or off.any():
            raise _NotHereError
        np.copyto(logs, flat)
        bound = self.floors.max() * (1.0 + 2.0 * SUM_TOLERANCE)
        if least < bound:
            low = np.unique(np.flatnonzero(flat.ravel() < bound) // k)
            logs[low] = raise_to_floors(flat[low] / flat[low].sum(axis=1, keepdims=True), self.floors)
        np.log(logs, out=logs)
        return np.asarray(self.whitening @ logs.T).reshape(k - 1, t, n)

    def missing(self, rows: slice) -> Mask:
        # Some classes only are no forecast, and are refused elsewhere.
        return np.asarray(np.isnan(self.q[rows]).all(axis=2))


_Levels: TypeAlias = _LogOdds | _ClassLevels


def dense_statistics(
    q: Floats, outcomes: Codes, prior: Array, floor: float, experts: tuple[str, ...], threads: int | None = None
) -> Statistics | None:
    """Means and covariances of the log-ratios of `q`, (T, N) or (T, N, K), by outcome and set of experts.

    The result is None if too many different sets of experts answered, or probabilities do not add up to 1. Outcomes are
    positions of classes, -1 if unresolved; the prior, (K,), only sets the floors.
    A ProbabilityError names the first value outside [0, 1]. The number of threads has no influence on the result.

    >>> q, outcomes = np.array([[0.6], [0.5], [0.7], [0.4]]), np.array([1, 0, 1, 0])
    >>> found = dense_statistics(q, outcomes, np.array([0.5, 0.5]), 1e-4, ("ann",))
    >>> found.patterns[0,].mean[:2, 0, 0].round(4)
    array([-0.2027,  0.6264])
    """
    n, groups = len(experts), np.append(np.arange(len(prior)), UNRESOLVED)
    try:
        levels = _LogOdds(q, prior, floor) if q.ndim == 2 else _ClassLevels(q, prior, floor)
        sums = _summed(levels, outcomes, groups, n, threads)
        if enough_digits(sums, n):
            moments = {columns: each.moments(levels.origin, levels.ratios) for columns, each in sums.items()}
            counts = [np.count_nonzero(outcomes == group) for group in groups]
            return Statistics(experts, len(prior), np.array(counts, dtype=np.float64), moments)
    except _NotHereError:
        # What is missing goes another way, and what is wrong is reported here.
        check_probabilities(q)
        return None
    found = Statistics.empty(experts, len(prior))
    for rows in blocks(len(q), q[0].size):
        ratios = logodds.log_ratios(np.asarray(q[rows], dtype=np.float64), prior, floor)
        found = found.add(ratios, outcomes[rows].astype(np.intp))
    return found


def _include(sums: dict[bytes, RawSums], key: bytes, more: RawSums, most: int) -> None:
    """Add `more` to the sums under `key` (a mask, as bytes, of who answered); a _NotHereError beyond `most` keys."""
    if key in sums:
        sums[key].include(more)
    elif len(sums) < most:
        sums[key] = more
    else:
        raise _NotHereError


def _summed(
    levels: _Levels, outcomes: Codes, groups: Index, n: int, threads: int | None
) -> dict[tuple[int, ...], RawSums]:
    """Sums of log-ratios over all events, by the positions of the experts who answered together."""
    t, numbers = len(outcomes), n * (1 if isinstance(levels, _LogOdds) else len(groups) - 1)
    most, total = max(1, min(t // max(n, REPEATED), MOST_MOMENTS // n**2)), dict[bytes, RawSums]()
    work = list(pieces(t, numbers))
    found = partial(_sums, levels, outcomes, groups, n, numbers, most)
    for part in in_order(found, work, threads) if len(work) > 1 else map(found, work):
        for key, sums in part.items():
            _include(total, key, sums, most)
    columns = {key: np.flatnonzero(np.frombuffer(key, dtype=bool)) for key in total}
    return {tuple(c.tolist()): total[key].among(c) for key, c in columns.items() if len(c)}


def _sums(
    levels: _Levels, outcomes: Codes, groups: Index, n: int, numbers: int, most: int, piece: slice
) -> dict[bytes, RawSums]:
    """Sums of log-ratios over the events in `piece`, by a mask of the experts who answered, as bytes."""
    buffer = levels.buffer(min(rows_of_block(numbers), piece.stop - piece.start))
    total, everyone = dict[bytes, RawSums](), np.ones(n, dtype=bool).tobytes()
    for rows in blocks(piece, numbers):
        block, member = levels.read(rows, buffer), (outcomes[rows] == groups[:, None]).astype(np.float64)
        sums = RawSums.of(block, member, None)
        if np.isfinite(sums.total).all():
            _include(total, everyone, sums, most)
            continue
        absent = np.isnan(block[0])
        if not np.array_equal(absent, levels.missing(rows)):
            raise _NotHereError
        # Those who are missing add nothing.
        np.copyto(block, 0.0, where=absent)
        for some, columns in each_pattern(~absent):
            its = slice(None) if len(some) == len(absent) else some
            key = np.isin(np.arange(n), columns).tobytes()
            _include(total, key, RawSums.of(block[:, its], member[:, its], None), most)
    return total
