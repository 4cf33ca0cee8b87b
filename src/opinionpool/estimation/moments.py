"""What resolved events say, in a form that adds up: counts, means and centred cross-products.

One kind of sufficient statistic serves batch, stream and distributed learning (model.md, section 2.5). It is
kept for each set of experts that answered together, so that adding, merging and removing are exact when
experts are absent, join or leave; complete data are one set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Mask, each_pattern, frequencies
from opinionpool.blocks import blocks
from opinionpool.errors import ArgumentError, ShapeError
from opinionpool.labels import UNRESOLVED
from opinionpool.logodds import inner_products, metric
from opinionpool.names import expert_names, places, unknown_names

RESOLVED, OPEN = 0, 1
# The least share of a sum of squares that may lie about the means: below, too many digits are lost.
SAFE = 1e-3


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
        # A first row as origin keeps large offsets out of the sums.
        origin, parts = ratios[0], (group < classes, group == classes)
        mean, about = np.zeros((classes + 1, n, d)), np.zeros((2, n, n))
        for rows in blocks(t, n * d):
            moved = ratios[rows] - origin
            mean += (share[:, rows] @ moved.reshape(len(moved), n * d)).reshape(-1, n, d)
            about += np.stack([_scatter(moved, weight[rows], part[rows]) for part in parts])
        scatter = about - np.stack([_scatter(mean[:-1], total[:-1]), _scatter(mean[-1:], total[-1:])])
        if (np.einsum("gii->gi", scatter) < SAFE * np.einsum("gii->gi", about)).any():
            # Too many digits were lost, so the means are subtracted first.
            residual = ratios - origin - mean[group]
            slip = (share @ residual.reshape(t, n * d)).reshape(-1, n, d)
            residual -= slip[group]
            mean += slip
            scatter = np.stack([_scatter(residual, weight, part) for part in parts])
        return cls(total, np.where(total[:, None, None] > 0, mean + origin, 0.0), scatter)

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


def _scatter(rows: Array, weight: Array, part: Mask | None = None) -> Array:
    """Sum of weight times the outer products of (t, n, K - 1) rows over experts, contracted over classes; of a part."""
    if part is not None and not part.all():
        rows, weight = rows[part], weight[part]
    t, n, d = rows.shape
    if d == 1:
        flat = rows[:, :, 0]
        if t and (weight == weight[0]).all():
            return np.asarray(weight[0] * (flat.T @ flat))
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
                key = tuple(columns.tolist())
                if len(columns) == n and len(rows) == len(ratios):
                    found[key] = PatternMoments.of_rows(ratios, group, weight, self.classes)
                    continue
                kept = np.flatnonzero(used)[rows]
                part = ratios[kept] if len(columns) == n else ratios[np.ix_(kept, columns)]
                found[key] = PatternMoments.of_rows(part, group[kept], weight[kept], self.classes)
        return self._with(Moments(self.experts, self.classes, events, found), 1)

    def merge(self, other: Moments) -> Moments:
        """Both together, over the experts of either; exact, and in any order to rounding."""
        self._check_classes(other)
        experts = self.experts + tuple(unknown_names(other.experts, self.experts))
        return self._over(experts)._with(other._over(experts), 1)

    def remove(self, other: Moments) -> Moments:
        """These moments without events that were added before (a downdate).

        Raises
        ------
        ArgumentError
            If they do not hold that many events.
        """
        self._check_classes(other)
        strange = unknown_names(other.experts, self.experts)
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
        place = places(self.experts, experts)
        moved: dict[tuple[int, ...], PatternMoments] = {}
        for columns, part in self.patterns.items():
            new = place[list(columns)]
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
        between = before * share * inner_products(delta, delta)
        self.square[:, columns] += square + np.stack([between[:-1].sum(axis=0), between[-1]])
        self.mean[:, columns] += share[..., None] * delta
        self.count[:, columns] = total


def _no_marginals(experts: int, classes: int) -> Marginals:
    groups = classes + 1
    return Marginals(np.zeros((groups, experts)), np.zeros((groups, experts, classes - 1)), np.zeros((2, experts)))
