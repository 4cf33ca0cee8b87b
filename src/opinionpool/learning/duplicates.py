"""Experts who repeat another expert, and experts who always give the same forecast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import Note
from opinionpool.estimation.averages import constant_notes
from opinionpool.forecasts import Forecasts
from opinionpool.learning.constants import CORRELATION
from opinionpool.model.correlation import CommonCorrelation, Dependence, MatrixCorrelation
from opinionpool.model.features import Parts
from opinionpool.model.mixed import MixedCorrelation
from opinionpool.model.nested import NestedCorrelation
from opinionpool.text import listed

# So many forecasts, all the same, say nothing.
SEVERAL = 3
# Log-ratios that differ by no more are the same.
ROUNDING = 1e-9
# Experts who agree on at least so many events, with so many different forecasts, are duplicates.
DUPLICATED = 5, 3
CONSTANT, NEW = -1, -2


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Map from experts to the distinct experts whose forecasts they repeat.

    Attributes
    ----------
    source : ndarray of int, shape (N,)
        The distinct expert behind each; `CONSTANT` for constant experts, `NEW` for those without any forecast,
        who are taken to be like the others on average, but for what is believed of them. If all the others
        are constant, each of these is distinct.
    first : ndarray of int, shape (V,)
        The first expert of each group of duplicates.
    notes : tuple of Note
    """

    source: npt.NDArray[np.intp]
    first: npt.NDArray[np.intp]
    notes: tuple[Note, ...]

    @classmethod
    def among(
        cls, forecast: Array, experts: tuple[str, ...], named: Mask | None = None, every: Iterable[Array] = ()
    ) -> Duplicates:
        """Find duplicates in contrasts (T, N, K - 1), NaN where missing; `named` experts (N,) are never constant.

        Of a sample they are checked against the contrasts of all events, in blocks.
        """
        if _all_differ(forecast):
            everybody = np.arange(len(experts))
            return cls(everybody, everybody, ())
        columns = (np.ascontiguousarray(forecast[:, i]) for i in range(len(experts)))
        rows = ((np.flatnonzero(~np.isnan(column[:, 0])), column) for column in columns)
        given = ((row, column if len(row) == len(column) else column[row]) for row, column in rows)
        found = cls._of(given, experts, named)
        more = [] if len(found.first) == len(experts) else [*_witnesses(forecast, found, every)]
        return cls.among(np.concatenate([forecast, *more]), experts, named) if more else found

    @classmethod
    def among_cells(cls, event: Index, expert: Index, contrast: Array, experts: tuple[str, ...]) -> Duplicates:
        """Find duplicates in the contrasts (M, K - 1) of forecasts that are ordered by event."""
        order = np.argsort(expert, kind="stable")
        ends = np.cumsum(np.bincount(expert, minlength=len(experts)))
        cells = (order[end - n : end] for end, n in zip(ends, np.diff(ends, prepend=0), strict=True))
        return cls._of(((event[cell], contrast[cell]) for cell in cells), experts)

    @classmethod
    def in_crowd(
        cls, event: Index, expert: Index, contrast: Array, experts: tuple[str, ...], constant: Mask
    ) -> Duplicates:
        """Find duplicates among many experts; only experts whose forecasts have equal hashes are compared.

        Who is `constant` (N,) says who asks.
        """
        n, likely = len(experts), _alike(event, expert, contrast, len(experts)) & ~constant
        source = np.arange(n)
        if likely.any():
            cells, own = likely[expert], np.cumsum(likely) - 1
            among = tuple(np.array(experts, dtype=object)[likely])
            found = cls.among_cells(event[cells], own[expert[cells]], contrast[cells], among)
            groups = np.where(found.source >= 0, found.source, len(found.first))
            first = np.append(found.first, 0)[groups]
            first = np.where(found.source >= 0, first, np.arange(len(first)))
            source[likely] = np.flatnonzero(likely)[first]
        source[np.bincount(expert, minlength=n) == 0], source[constant] = NEW, CONSTANT
        known = source >= 0
        first, source[known] = np.unique(source[known], return_inverse=True)
        return cls(source, first, _notes(source, experts))

    @classmethod
    def _of(
        cls, columns: Iterable[tuple[Index, Array]], experts: tuple[str, ...], named: Mask | None = None
    ) -> Duplicates:
        """Find duplicates, given the events and contrasts of each expert, `columns`."""
        source = np.full(len(experts), CONSTANT)
        first: list[int] = []
        # By how many there are and what the first ones are; few who differ have these in common.
        alike: dict[tuple[int, bytes], list[tuple[int, Index, Array]]] = {}
        for i, (rows, given) in enumerate(columns):
            if len(given) == 0:
                source[i] = NEW
                continue
            different = _different(given)
            constant = different == 1 or np.abs(given).max() <= ROUNDING
            if constant and len(given) >= SEVERAL and (named is None or not named[i]):
                continue
            source[i] = len(first)
            if len(given) >= DUPLICATED[0] and different >= DUPLICATED[1]:
                others = alike.setdefault((len(given), rows[:FIRST].tobytes() + given[:FIRST].tobytes()), [])
                same = (j for j, *other in others if all(map(np.array_equal, other, (rows, given))))
                source[i] = next(same, len(first))
                if source[i] == len(first):
                    others.append((len(first), rows, given))
            if source[i] == len(first):
                first.append(i)
        if not first:
            # Nobody to be like: each of those without forecasts is distinct, as it is believed to be.
            first = np.flatnonzero(source == NEW).tolist()
            source[first] = np.arange(len(first))
        return cls(source, np.array(first, dtype=np.intp), _notes(source, experts))

    @property
    def new(self) -> npt.NDArray[np.bool_]:
        """Mask of experts without any forecast, (N,)."""
        return np.asarray(self.source == NEW)

    @property
    def counts(self) -> Array:
        """Count of each expert, (N,): 1 / m for m duplicates of each other, 0 for constant experts, 1 for new ones."""
        known, found = self.source >= 0, self.new.astype(np.float64)
        found[known] = 1.0 / np.bincount(self.source[known])[self.source[known]]
        return found

    def parts(self, parts: Parts) -> Parts:
        """Parts of all experts from `parts` of the distinct ones; duplicates share one weight."""
        n = len(self.source)
        if len(self.first) == n:
            return parts
        if len(self.first) == 0:
            return Parts(np.zeros(n), np.full(n, np.nan), CommonCorrelation(n, 0.0))
        spread = np.where(self.source == CONSTANT, np.nan, self.rows(parts.spread))
        # Who repeats nobody, in the order of experts; the others are behind these.
        behind = np.where(self.source >= 0, self.first[np.maximum(self.source, 0)], np.arange(n))
        kept, source = np.unique(behind, return_inverse=True)
        dependence = self._dependence(parts.dependence, self.source[kept])
        return Parts(self.rows(parts.contrast), spread, dependence, source=source if len(kept) < n else None)

    def as_believed(self, values: Array, believed: Array) -> Array:
        """`values` (N,), a new expert's times `believed` of it over the mean of `believed` of distinct experts."""
        if len(self.first) == 0:
            return values
        return np.asarray(np.where(self.new, values * (believed / believed[self.first].mean()), values))

    def _dependence(self, among: Dependence, source: Index) -> Dependence:
        """Return the dependence of P experts from `among`, that of the distinct ones; `source` (P,) maps to these."""
        n, known, new = len(source), source >= 0, source == NEW
        if known.all():
            return among
        if isinstance(among, CommonCorrelation):
            # Of one expert there is no correlation to take over.
            return CommonCorrelation(n, among.rho if among.size > 1 else CORRELATION)
        if isinstance(among, NestedCorrelation):
            signal = np.where(new, among.signal.mean(), 0.0)
            signal[known] = among.signal[source[known]]
            return NestedCorrelation(signal, among.rho)
        if isinstance(among, MixedCorrelation):
            models = tuple(self._dependence(each, source) for each in among.models)
            relative = np.ones((len(models), n))
            if among.signal is not None:
                relative[:, known] = among.signal[:, source[known]]
            return MixedCorrelation(models, among.share, relative)
        r = among.matrix()
        matrix = np.zeros((n, n))
        matrix[np.ix_(known, known)] = r[np.ix_(source[known], source[known])]
        if new.any():
            # A new expert follows the sum of the others, so far that it has their mean correlation.
            towards = r.sum(axis=1) / np.sqrt(r.sum())
            v = len(r)
            mean = (r.sum() - v) / (v * (v - 1)) if v > 1 else CORRELATION
            follows = float(np.clip(mean / towards.mean(), 0.0, 1.0))
            matrix[np.ix_(new, known)] = follows * towards[source[known]]
            matrix[np.ix_(known, new)] = matrix[np.ix_(new, known)].T
            matrix[np.ix_(new, new)] = follows**2
        np.fill_diagonal(matrix, 1.0)
        return MatrixCorrelation(matrix)

    def rows(self, values: Array) -> Array:
        """Values (N, ...) of all experts from those of distinct ones: the mean for new, 0 for constant experts."""
        full = np.zeros((len(self.source), *values.shape[1:]))
        if len(self.first):
            full[self.source >= 0] = values[self.source[self.source >= 0]]
            full[self.new] = values.mean(axis=0)
        return full


# Forecasts that are looked at first: of an expert, and of all.
FIRST, HEAD = 64, 1 << 16


def _different(given: Array) -> int:
    """Number of different forecasts in `given` (n, K - 1), or in its first `FIRST` rows if these have enough."""
    found = len(set(map(tuple, given[:FIRST].tolist())))
    if len(given) <= FIRST or found >= DUPLICATED[1]:
        return found
    # One number each is much faster to compare than a row.
    return len(np.unique(given[:, 0]) if given.shape[1] == 1 else np.unique(given, axis=0))


def _witnesses(sample: Array, found: Duplicates, blocks: Iterable[Array]) -> Iterator[Array]:
    """Yield contrasts (m, N, K - 1) of events on which an expert differs from the expert that it repeats in the sample.

    Of those who always say the same, or have no forecast in the sample, events on which they say something.
    """
    first = np.array([*found.first, 0])[found.source]
    pairs = [(i, j) for i, j in enumerate(first.tolist()) if found.source[i] >= 0 and i != j]
    # Forecasts by each of the others so far, until these are enough.
    others = {i: sample[~np.isnan(sample[:, i, 0]), i][:1] for i in np.flatnonzero(found.source < 0).tolist()}
    for block in blocks:
        if not pairs and not others:
            return
        rows = set[int]()
        for i, j in pairs.copy():
            a, b = block[:, i], block[:, j]
            (differ,) = np.nonzero(((a != b) & ~(np.isnan(a) & np.isnan(b))).any(axis=1))
            if len(differ):
                rows.add(int(differ[0]))
                pairs.remove((i, j))
        for i, given in list(others.items()):
            mine = np.flatnonzero(~np.isnan(block[:, i, 0]))
            known = np.concatenate([given, block[mine, i]])
            other = mine[(np.abs(block[mine, i] - known[:1]) > ROUNDING).any(axis=1)][:1]
            more = [*mine[: max(SEVERAL - len(given), 0)].tolist(), *other.tolist()]
            rows.update(more)
            others[i] = np.concatenate([given, block[more, i]])
            if len(other) and len(others[i]) >= SEVERAL:
                del others[i]
        if rows:
            yield block[sorted(rows)]


def _all_differ(forecast: Array) -> bool:
    """Return True if nobody's forecast is missing and the forecasts on the first events rule out duplicates."""
    first = forecast[:FIRST, :, 0]
    if forecast.shape[2] > 1 or len(first) < DUPLICATED[0] or np.isnan(forecast).any():
        return False
    different = 1 + np.count_nonzero(np.diff(np.sort(first, axis=0), axis=0), axis=0)
    moved = (different >= DUPLICATED[1]) & (np.abs(first).max(axis=0) > ROUNDING)
    return bool(moved.all()) and len({own.tobytes() for own in first.T}) == len(moved)


def _alike(event: Index, expert: Index, contrast: Array, n: int) -> npt.NDArray[np.bool_]:
    """Mask of likely duplicates, (n,): experts with enough forecasts whose hashes have the sum of another expert's."""
    key = event.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        for column in contrast.T:
            bits = np.ascontiguousarray(column).view(np.uint64)
            key = (key ^ bits ^ (key >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(32)
    # Sums of doubles round; those of halves of 26 bits do not.
    halves = (key & np.uint64((1 << 26) - 1)), key >> np.uint64(38)
    sums = [np.bincount(expert, half.astype(np.float64), n) for half in halves]
    count = np.bincount(expert, minlength=n)
    many = np.flatnonzero(count >= DUPLICATED[0])
    rows = np.stack([count[many], *(each[many] for each in sums)], axis=1)
    _, which, number = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    alike = np.zeros(n, dtype=bool)
    alike[many[number[which.ravel()] > 1]] = True
    return alike


def _notes(source: npt.NDArray[np.intp], experts: tuple[str, ...]) -> tuple[Note, ...]:
    notes = constant_notes(experts, source == CONSTANT)
    for representative in np.flatnonzero(np.bincount(source[source >= 0]) > 1):
        same = [experts[i] for i in np.flatnonzero(source == representative)]
        text = f"{listed(same, 3)} say the same on every event; they share one weight"
        notes.append(Note("clones", text, len(same), serious=True))
    return tuple(notes)


def counted_once(event: Index, expert: Index, source: Index) -> tuple[Array, Index]:
    """Count of each of M forecasts, 1 / m for m duplicates, and index of its distinct forecast, (M,) each.

    Duplicates on an event count for one together, constant experts for none, and those without a forecast when
    duplicates were looked for are each by themselves. `source` is the distinct expert behind each expert.

    >>> counted_once(np.array([0, 0, 0, 1]), np.array([0, 1, 2, 0]), np.array([0, 0, CONSTANT]))[0].tolist()
    [0.5, 0.5, 0.0, 1.0]
    """
    distinct = np.where(source < CONSTANT, source.max(initial=0) + 1 + np.arange(len(source)), source)
    behind = distinct[expert]
    count, which = np.asarray(behind != CONSTANT, dtype=np.float64), np.arange(len(event))
    if len(np.unique(distinct)) < len(distinct):
        place = event * (distinct.max() + 2) + behind + 1
        _, which, size = np.unique(place, return_inverse=True, return_counts=True)
        which = which.ravel()
        count /= size[which]
    return count, which


def constant_experts(forecasts: Forecasts) -> npt.NDArray[np.bool_]:
    """Mask of experts with at least `SEVERAL` forecasts, all of them equal, (N,).

    >>> constant_experts(Forecasts.from_array([[0.2, 0.4, 0.0], [0.2, 0.5, 0.0], [0.3, 0.4, 0.0]])).tolist()
    [False, False, True]
    """
    q = forecasts.probabilities if forecasts.probabilities.ndim > 1 else forecasts.probabilities[:, None]
    n, other = len(forecasts.experts), np.zeros(0, dtype=np.intp)
    # Most often the first forecasts show that everybody gave different ones.
    for cells in (slice(HEAD), slice(None)):
        other = differing(forecasts.expert_index[cells], q[cells], n)
        if other.all():
            break
    return np.asarray((forecasts.counts >= SEVERAL) & (other == 0))


def differing(expert: Index, given: Array, n: int) -> Index:
    """Number of each expert's forecasts, (N,), of some (M, ...), that differ from one of them."""
    one = np.empty((n, given.shape[1]))
    one[expert] = given
    return np.bincount(expert[(given != one[expert]).any(axis=1)], minlength=n)
