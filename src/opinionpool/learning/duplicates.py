"""Experts who repeat another expert, and experts who always give the same forecast."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import Note
from opinionpool.estimation.averages import constant_notes
from opinionpool.estimation.sampling import mixed
from opinionpool.forecasts import Forecasts
from opinionpool.learning.constants import CORRELATION
from opinionpool.model.correlation import CommonCorrelation, Dependence, MixedCorrelation
from opinionpool.model.features import Parts
from opinionpool.model.nested import NestedCorrelation
from opinionpool.text import listed

# So many forecasts, all the same, say nothing; nor do so many that repeat the prior.
SEVERAL = 3, 3
# Log-ratios that differ by no more are the same.
ROUNDING = 1e-9
# Experts who agree on at least so many events, with so many different forecasts, are duplicates.
DUPLICATED = 5, 3
CONSTANT, NEW = -1, -2
# Events and forecasts that are looked at first.
FIRST, HEAD = 64, 1 << 16


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Which experts repeat another expert's forecasts: a map from N experts to V distinct ones.

    An expert without forecasts gets the mean features of the others, scaled by the prior beliefs about this expert. If
    all other experts are constant (always say the same), each expert without forecasts is distinct.
    """

    source: npt.NDArray[np.intp]  # (N,); the distinct expert behind each, `CONSTANT` or, without any forecast, `NEW`
    first: npt.NDArray[np.intp]  # (V,); the first expert of each group of duplicates
    notes: tuple[Note, ...]

    @classmethod
    def among(
        cls, forecast: Array, experts: tuple[str, ...], named: Mask | None = None, every: Iterable[Array] = ()
    ) -> Duplicates:
        """Find duplicates in log-ratios (T, N, K - 1), NaN where missing; `named` experts (N,) are never constant.

        If `forecast` is a sample, duplicates are checked on `every`, blocks of the contrasts of all events.
        """
        if _all_differ(forecast):
            everybody = np.arange(len(experts))
            return cls(everybody, everybody, ())
        those = _Statements.of(*_cells(forecast), len(experts))
        found = cls._by(those, experts, named)
        # Who repeats another or says nothing in the sample, with all who are repeated, may differ elsewhere.
        suspects = (found.source < 0) | (found.counts < 1.0)
        start, blocks = 0, every if suspects.any() else ()
        for block in blocks:
            if start == 0:
                those.forget(suspects)
            those.add(*_cells(np.where(suspects[:, None], block, np.nan), start))
            start += len(block)
        return found if start == 0 else cls._by(those, experts, named)

    @classmethod
    def among_cells(
        cls,
        event: Index,
        expert: Index,
        contrast: Array,
        experts: tuple[str, ...],
        several: tuple[int, int] = SEVERAL,
    ) -> Duplicates:
        """Find duplicates in log-ratios (M, K - 1); `several` equal ones, or ones equal to the prior, are constant."""
        return cls._by(_Statements.of(event, expert, contrast, len(experts)), experts, None, several)

    @classmethod
    def _by(
        cls, those: _Statements, experts: tuple[str, ...], named: Mask | None, several: tuple[int, int] = SEVERAL
    ) -> Duplicates:
        """Return duplicates and constant experts, found in `those`, summaries of each expert's forecasts."""
        count, different, behind = those.count, those.different, np.arange(len(experts))
        constant = ((different == 1) & (count >= several[0])) | (~those.beyond & (count >= several[1]))
        constant &= True if named is None else ~named
        many = np.flatnonzero((count >= DUPLICATED[0]) & (different >= DUPLICATED[1]) & ~constant)
        rows = np.stack([count[many], *those.hashes[:, many]], axis=1)
        _, at, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        behind[many] = many[at[which.ravel()]]
        source, known = np.where(constant, CONSTANT, NEW), ~constant & (count > 0)
        if not known.any():
            # Nobody to be like: each of those without forecasts is distinct, as it is believed to be.
            known = count == 0
        first, source[known] = np.unique(behind[known], return_inverse=True)
        return cls(source, first, _notes(source, experts))

    @property
    def new(self) -> npt.NDArray[np.bool_]:
        """Mask of experts without any forecast, (N,)."""
        return np.asarray(self.source == NEW)

    @property
    def counts(self) -> Array:
        """Number of experts that each expert counts as, (N,): 1/m for m duplicates, 0 if constant, 1 if new."""
        known, found = self.source >= 0, self.new.astype(np.float64)
        found[known] = 1.0 / np.bincount(self.source[known])[self.source[known]]
        return found

    def parts(self, parts: Parts) -> Parts:
        """Return the panel parameters of all experts from `parts` of the distinct ones; duplicates share one weight."""
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
        """Return the experts' `values` (N,), scaled by prior beliefs for each expert without forecasts.

        The factor is the expert's `believed` value (N,) over the mean believed value of the experts with forecasts.
        """
        if len(self.first) == 0:
            return values
        return np.asarray(np.where(self.new, values * (believed / believed[self.first].mean()), values))

    def _dependence(self, among: Dependence, source: Index) -> Dependence:
        """Correlation of P experts, from that of the distinct ones, `among`; `source` (P,) says whom each repeats."""
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
        assert isinstance(among, MixedCorrelation)
        models = tuple(self._dependence(each, source) for each in among.models)
        relative = np.ones((len(models), n))
        if among.signal is not None:
            relative[:, known] = among.signal[:, source[known]]
        return MixedCorrelation(models, among.share, relative)

    def rows(self, values: Array) -> Array:
        """Values (N, ...) of all experts from `values` of distinct ones: the mean for new, 0 for constant experts."""
        full = np.zeros((len(self.source), *values.shape[1:]))
        if len(self.first):
            full[self.source >= 0] = values[self.source[self.source >= 0]]
            full[self.new] = values.mean(axis=0)
        return full


class _Statements:
    """Summary of each expert's forecasts, to find duplicates: number, a few different ones, and hashes."""

    def __init__(self, n: int, d: int) -> None:
        self.count = np.zeros(n, dtype=np.intp)
        self.beyond = np.zeros(n, dtype=bool)  # experts with a forecast that differs from the prior
        self.examples = np.full((DUPLICATED[1], n, d), np.nan)
        self.hashes = np.zeros((2, n))

    @classmethod
    def of(cls, event: Index, expert: Index, contrast: Array, n: int) -> _Statements:
        """Return the summary of the forecasts by n experts, whose log-ratios are `contrast` (M, K - 1)."""
        found = cls(n, contrast.shape[1])
        found.add(event, expert, contrast)
        return found

    @property
    def different(self) -> Index:
        """Number of different forecasts by each expert, (N,), counted up to `DUPLICATED[1]`."""
        return np.asarray(np.count_nonzero(~np.isnan(self.examples[..., 0]), axis=0))

    def forget(self, experts: Mask) -> None:
        """Remove all forecasts by the experts in the mask `experts` (N,)."""
        self.count[experts], self.beyond[experts], self.hashes[:, experts] = 0, False, 0.0
        self.examples[:, experts] = np.nan

    def add(self, event: Index, expert: Index, contrast: Array) -> None:
        """Add the log-ratios `contrast` (M, K - 1) of forecasts on further events."""
        n, given = len(self.count), contrast + 0.0
        self.count += np.bincount(expert, minlength=n)
        self.beyond[expert[np.abs(given).max(axis=1, initial=0.0) > ROUNDING]] = True
        key = mixed(event.astype(np.uint64) + np.uint64(1))
        for column in given.T:
            key = mixed(key ^ np.ascontiguousarray(column).view(np.uint64))
        # Sums of doubles round; those of halves of 26 bits do not.
        halves = (key & np.uint64((1 << 26) - 1)), key >> np.uint64(38)
        self.hashes += [np.bincount(expert, half.astype(np.float64), n) for half in halves]
        for own in self.examples:
            empty = np.isnan(own[expert, 0])
            own[expert[empty]] = given[empty]
            rest = (given != own[expert]).any(axis=1)
            expert, given = expert[rest], given[rest]


def _cells(forecast: Array, start: int = 0) -> tuple[Index, Index, Array]:
    """Numbers of events (from `start` on) and experts, and log-ratios (M, K - 1), of an array's M forecasts."""
    event, expert = np.nonzero(~np.isnan(forecast[..., 0]))
    return event + start, expert, forecast[event, expert]


def _all_differ(forecast: Array) -> bool:
    """Return True if no forecast is missing and the forecasts on the first events rule out duplicates."""
    first = forecast[:FIRST, :, 0]
    if forecast.shape[2] > 1 or len(first) < DUPLICATED[0] or np.isnan(forecast).any():
        return False
    different = 1 + np.count_nonzero(np.diff(np.sort(first, axis=0), axis=0), axis=0)
    moved = (different >= DUPLICATED[1]) & (np.abs(first).max(axis=0) > ROUNDING)
    return bool(moved.all()) and len({own.tobytes() for own in first.T}) == len(moved)


def _notes(source: npt.NDArray[np.intp], experts: tuple[str, ...]) -> tuple[Note, ...]:
    notes = constant_notes(experts, source == CONSTANT)
    for representative in np.flatnonzero(np.bincount(source[source >= 0]) > 1):
        same = [experts[i] for i in np.flatnonzero(source == representative)]
        text = f"{listed(same, 3)} say the same on every event; they share one weight"
        notes.append(Note("clones", text, len(same), serious=True))
    return tuple(notes)


def counted_once(event: Index, expert: Index, source: Index) -> tuple[Array, Index]:
    """Weight of each of M forecasts, 1 / m for m duplicates, and the number of its group of duplicates, (M,) each.

    Duplicates' forecasts on one event count as 1 in total, those of constant experts as 0. `source` (N,) is the number
    of the distinct expert whom each expert repeats; experts without a forecast when duplicates were sought are
    distinct.

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
    """Mask of experts with several forecasts, all of them equal, (N,).

    >>> constant_experts(Forecasts.from_array([[0.2, 0.4, 0.0], [0.2, 0.5, 0.0], [0.3, 0.4, 0.0]])).tolist()
    [False, False, True]
    """
    q = forecasts.probabilities if forecasts.probabilities.ndim > 1 else forecasts.probabilities[:, None]
    one, same = np.empty((len(forecasts.experts), q.shape[1])), np.zeros(0, dtype=bool)
    # Most often the first forecasts show that everybody gave different ones.
    for cells in (slice(HEAD), slice(None)):
        expert, given = forecasts.expert_index[cells], q[cells]
        one[expert] = given
        same = np.bincount(expert[(given != one[expert]).any(axis=1)], minlength=len(one)) == 0
        if not same.any():
            break
    return np.asarray((forecasts.counts >= SEVERAL[0]) & same)
