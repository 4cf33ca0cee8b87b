"""Sources of which a sample is kept in memory: an array, which is used without a copy, and parts of the events."""

from __future__ import annotations

import pickle
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Floats, Index, Mask, axes
from opinionpool.blocks import Bounds, blocks, floored_log_odds
from opinionpool.errors import LearningError
from opinionpool.estimation.regression import Observations
from opinionpool.estimation.sampling import (
    FORECASTS,
    Draw,
    Keys,
    event_keys,
    given_keys,
    mixed,
    name_keys,
    rooms,
    row_contents,
    row_contents_of,
    sample_note,
)
from opinionpool.estimation.statistics import Codes, dense_statistics, few_enough
from opinionpool.forecasts import Forecasts, cells_of
from opinionpool.labels import UNRESOLVED
from opinionpool.learning.leakage import leaked_columns
from opinionpool.learning.levels import raised, rounded_zeros
from opinionpool.learning.problem import Problem, Request, Seen, Sums
from opinionpool.learning.rows import by_average_and_expert
from opinionpool.logodds import check_probabilities, class_probabilities, public_probabilities
from opinionpool.model.contrasts import Extremes
from opinionpool.model.features import Parts
from opinionpool.names import numbered
from opinionpool.priors import laplace_prior

# Events that show who may be a voter.
FIRST = 64


@dataclass(frozen=True, eq=False)
class ArraySource:
    """Source of forecasts in an array, used without a copy: float64, or float32 if K = 2; all events share one prior.

    Examples
    --------
    >>> from opinionpool.learning.learn import learn_from
    >>> q, y = np.array([[0.2], [0.3], [0.6], [0.4], [0.7], [0.8]]), np.array([0, 0, 0, 1, 1, 1])
    >>> source = ArraySource.of(q, y, prior=0.5)
    >>> learn_from(source, Request(beliefs=None)).weights.round(5)
    array([1.44221])
    """

    q: Floats  # (T, N); (T, N, K) for K > 2 classes; NaN where missing
    outcomes: Codes  # (T,); positions of classes, -1 where unresolved
    prior: Array  # (K,)
    classes: tuple[object, ...]
    estimated: bool  # whether the prior is Laplace's estimate
    has_options: bool = False

    @classmethod
    def of(
        cls,
        q: npt.NDArray[np.generic],
        y: npt.NDArray[Any],
        *,
        classes: Sequence[object] | None = None,
        prior: npt.ArrayLike | None = None,
    ) -> ArraySource | None:
        """Source of forecasts `q` (T, N), or (T, N, K) if K > 2, and outcomes `y` (T,); None if they must be copied.

        Outcomes are 0, 1 or NaN (unresolved); if K labels `classes` are given, positions of these or -1 (unresolved).
        """
        k = 2 if classes is None else len(classes)
        if not _fits(q, y, k) or (prior is not None and axes(prior, "prior") > (0 if k == 2 else 1)):
            return None
        outcomes = _zeros_and_ones(y) if classes is None else y
        if outcomes is None:
            return None
        shared = laplace_prior(_counts(outcomes, k)) if prior is None else class_probabilities(prior, k)
        labels = np.array([0, 1], dtype=y.dtype).tolist() if classes is None else classes
        return cls(q, outcomes, shared, tuple(labels), prior is None)

    @cached_property
    def experts(self) -> tuple[str, ...]:
        """Names of the N experts."""
        return numbered(self.q.shape[1])

    def serves(self, request: Request) -> bool:
        """True if the array itself suffices for the fit `request`, by sums over events or by a sample of events."""
        request = request.about(len(self.classes))
        if request.by_moments:
            return self.sums(request) is not None
        first = self.q[:FIRST]
        # Votes count as the panel's, which takes all of them.
        votes = ((first == 0) | (first == 1) | np.isnan(first)).all(axis=0).any()
        return request.believed is not None and len(self.classes) == 2 and self._many and not votes

    @property
    def _many(self) -> bool:
        return bool((_counts(self.outcomes, 2) > self._rooms[:2]).any())

    @property
    def _rooms(self) -> Index:
        return rooms(self.q.shape[1], len(self.classes))

    def sums(self, request: Request) -> Sums | None:
        """Sums over all events for fits by averages; None if too many different sets of experts answered together."""
        floor = request.settings.floor
        if floor not in self._sums:
            found = dense_statistics(self.q, self.outcomes, self.prior, floor, self.experts)
            self._sums[floor] = None
            if found is not None:
                leaked = leaked_columns(self.q, self.outcomes)
                found = found.shift(logodds.prior_log_ratios(self.prior))
                self._sums[floor] = Sums(found, self.prior, Sums.counted(found), leaked)
        return self._sums[floor]

    @cached_property
    def _sums(self) -> dict[float, Sums | None]:
        """Cache of the results of `sums`, by the floor of forecasts."""
        return {}

    def problem(self) -> Problem:
        """Return the sample of events to learn from, the same that `learn` draws; all events if they are few.

        Raises
        ------
        ProbabilityError
            Names the first value outside [0, 1] and its position.
        """
        n, events, outcomes = self.q.shape[1], _counts(self.outcomes, 2), self.outcomes.astype(np.intp)
        keys, counts, present = _keys_and_counts(self.q, outcomes)
        drawn = Draw.of(
            keys, outcomes, np.ones(len(keys)), self._rooms, lambda: row_contents(self.q, name_keys(self.experts))
        )
        kept = drawn.positions
        cells = cells_of(np.asarray(self.q[kept], dtype=np.float64))
        few = Forecasts(numbered(len(kept), "event"), numbered(n), self.classes, *cells, outcomes[kept])
        problem = Problem.of(few, public_probabilities(self.prior), drawn.frequencies(np.ones(len(keys))))
        note = sample_note(int((outcomes[kept] >= 0).sum()), int(events.sum()))
        return replace(
            problem,
            estimated=self.estimated,
            whole=Seen(events, counts, present, (note,)),
            total=float(events.sum()),
            blocks=None if drawn.complete else partial(self._in_blocks, outcomes, few),
        )

    def _in_blocks(self, outcomes: Index, some: Forecasts, floor: float) -> Iterator[_ArrayBlock]:
        """Yield all resolved events in blocks; `outcomes` (T,) are of all events, `some` is a sample of the events."""
        zero = rounded_zeros(some, floor)
        reference, bounds = logodds.prior_log_ratios(self.prior), Bounds.of(self.prior, floor)
        for rows in blocks(self.q.shape[0], self.q.shape[1], self.q.shape[1]):
            codes = outcomes[rows]
            q = raised(np.asarray(self.q[rows], dtype=np.float64), zero)
            if (codes < 0).any():
                q, codes = q[codes >= 0], codes[codes >= 0]
            yield _ArrayBlock(q, codes, bounds, float(reference[0]), reference)


def _zeros_and_ones(y: npt.NDArray[Any]) -> Codes | None:
    """Return outcomes `y` in single bytes, (T,): 0, 1, and -1 for NaN; None if `y` has any other number."""
    if y.dtype.kind not in "biuf":
        return None
    happened, unknown = y == 1, y != y
    found = happened.astype(np.int8)
    found[unknown] = UNRESOLVED
    return found if (happened | unknown | (y == 0)).all() else None


def _counts(outcomes: Codes, classes: int) -> Array:
    """Return the number of events with each outcome, (K,)."""
    return np.array([np.count_nonzero(outcomes == k) for k in range(classes)], dtype=np.float64)


class _ArrayBlock(NamedTuple):
    """Block of t resolved events of two classes, with one prior: forecasts (t, N) and outcomes (t,)."""

    q: Array
    codes: Index
    bounds: Bounds  # of log-odds
    reference: float  # L°
    offset: Array  # (1,); log-odds of the believed prior

    def among(self, first: Index, away: Array) -> _ArrayBlock:
        """Return the block with forecasts by only the experts `first`, and with the prior's log-odds less `away`."""
        q = self.q if len(first) == self.q.shape[1] else self.q[:, first]
        return self._replace(q=q, offset=self.offset - away)

    @property
    def in_comparison(self) -> _ArrayBlock:
        """Return the block itself, as its events have the same weight in fits and in comparisons of pools."""
        return self

    @property
    def contrasts(self) -> Array:
        """Log-odds of forecasts less the prior's, (t, N, 1), NaN where missing."""
        return np.asarray(floored_log_odds(self.q, self.bounds, np.empty(self.q.shape)) - self.reference)[..., None]

    def log_likelihoods(self) -> Array:
        """Sums over events of the log-probability of outcomes by the average forecast, and by each expert, (1 + N,)."""
        answered = ~np.isnan(self.q).all(axis=1)
        odds = floored_log_odds(self.q[answered], self.bounds, np.empty((np.count_nonzero(answered), self.q.shape[1])))
        event, expert = np.nonzero(~np.isnan(odds))
        given = logodds.expit(odds[event, expert] * np.where(self.codes[answered] == 1, 1.0, -1.0)[event])
        return by_average_and_expert(event, expert, given, np.ones(len(odds)), odds.shape[1])

    def observed(self, fill: Parts, extremes: Extremes) -> Observations:
        """Data to regress outcomes on moderated log-ratios less the prior's; `fill` imputes missing ones."""
        full = extremes.deviation_of(self.q, self.bounds, self.reference)[..., None]
        offset, weight = np.broadcast_to(self.offset, (len(full), 1)), np.ones(len(full))
        missing = np.isnan(full)
        if missing.any():
            # Events without any forecast are not learned from.
            weight[missing.all(axis=(1, 2))] = 0.0
            full = fill.fill(full)
        return Observations(full, offset, self.codes, weight)


def _keys_and_counts(q: Floats, codes: Index) -> tuple[Keys, Array, Mask]:
    """Hash of each event (T,); number of each expert's forecasts on resolved events, and whether it has any, (N,)."""
    t, n = q.shape
    counts, anywhere = np.zeros(n), np.zeros(n, dtype=bool)
    keys = np.empty(t, dtype=np.uint64)
    for rows in blocks(t, n):
        block = q[rows]
        # NaN is neither.
        if block.min() >= 0 and block.max() <= 1:
            counts += np.count_nonzero(codes[rows] >= 0)
            anywhere[:] = True
        else:
            if ((block < 0) | (block > 1)).any():
                check_probabilities(q)
            answered_cells = ~np.isnan(block)
            counts += answered_cells[codes[rows] >= 0].sum(axis=0)
            anywhere |= answered_cells.any(axis=0)
        cells = given_keys(np.asarray(block, dtype=np.float64), codes[rows], binary=True)
        keys[rows] = np.einsum("tn->t", cells)
    return mixed(keys), counts, anywhere


def _fits(q: Floats, y: Floats, classes: int) -> bool:
    """True if `q` and `y` have types and shapes that can be read without a copy, and events are many."""
    if q.shape[2:] != (() if classes == 2 else (classes,)) or q.ndim < 2 or y.shape != q.shape[:1]:
        return False
    if q.dtype not in ((np.float64, np.float32) if classes == 2 else (np.float64,)):
        return False
    return q.shape[1] > 0 and few_enough(q.shape[1], len(q)) and len(q) > 0


Kind = TypeVar("Kind", bound=np.generic)


class PartsSource:
    """Source of forecasts that come in several parts, such as files; a sample of all events is kept in memory."""

    @staticmethod
    def of(parts: Iterable[Forecasts], prior: float | Array | None) -> Problem:
        """Return the problem from all parts; those beyond the memory limit are kept in a file while it is in use.

        If the problem is a sample, its function `parts` yields all events.

        Raises
        ------
        LearningError
            If there are no parts.
        """
        kept, keys, contents, outcomes = _Kept(), list[Keys](), list[Keys](), list[Index]()
        counts, present = np.zeros(1), np.zeros(1, dtype=bool)
        for part in parts:
            kept.add(part)
            keys.append(event_keys(part))
            contents.append(row_contents_of(part))
            outcomes.append(part.outcomes)
            counts, present = counts + part.resolved_counts, present | (part.counts > 0)
        if not keys:
            raise LearningError("there are no events")
        outcome, k = _together(outcomes), len(part.classes)
        events = np.bincount(outcome[outcome >= 0], minlength=k).astype(np.float64)
        seen, room, weight = Seen(events, counts, present), rooms(len(part.experts), k), np.ones(len(outcome))
        complete = bool((events <= room[:k]).all()) or part.options is not None
        if complete:
            some = Forecasts.joined([*kept])
        else:
            drawn = Draw.of(_together(keys), outcome, weight, room, lambda: _together(contents))
            some, weight, complete = kept.select(drawn.positions), drawn.frequencies(weight), drawn.complete
            seen = replace(seen, notes=(sample_note(int(some.resolved.sum()), int(events.sum())),))
        estimated = prior is None and (some.prior is None or bool(np.isnan(some.prior).all()))
        if estimated and some.options is None:
            prior = public_probabilities(laplace_prior(events))
        about: dict[str, Any] = {"estimated": estimated, "total": float(events.sum())}

        def all_parts() -> Iterator[Problem]:
            return (replace(Problem.of(part, prior, None), **about) for part in kept)

        return replace(Problem.of(some, prior, weight), whole=seen, parts=None if complete else all_parts, **about)


def _together(parts: list[npt.NDArray[Kind]]) -> npt.NDArray[Kind]:
    """Return the concatenation of the arrays in `parts`, and empty that list, as arrays of all events are large."""
    found = np.concatenate(parts)
    parts.clear()
    return found


class _Kept:
    """Store of parts: in memory, and in a file once they have more forecasts than a sample."""

    def __init__(self) -> None:
        self._parts: list[Forecasts] = []
        self._cells = 0
        self._file: IO[bytes] | None = None

    def add(self, part: Forecasts) -> None:
        """Add a part, and write all parts to a file once there are too many forecasts for memory."""
        self._cells += len(part.probabilities)
        self._parts.append(part)
        if self._cells > FORECASTS:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115
                weakref.finalize(self, self._file.close)
            for each in self._parts:
                pickle.dump(each, self._file, pickle.HIGHEST_PROTOCOL)
            self._parts.clear()

    def __iter__(self) -> Iterator[Forecasts]:
        if self._file is not None:
            size = self._file.tell()
            self._file.seek(0)
            while self._file.tell() < size:
                yield pickle.load(self._file)
        yield from self._parts

    def select(self, positions: Index) -> Forecasts:
        """Return the forecasts on the events at `positions`, in that order, among the events of all parts."""
        order, start, found = np.argsort(positions), 0, list[Forecasts]()
        for part in self:
            stop = start + len(part.events)
            low, high = np.searchsorted(positions, (start, stop), sorter=order)
            found.append(part.select_events(positions[order[low:high]] - start))
            start = stop
        return Forecasts.joined(found).select_events(np.argsort(order))
