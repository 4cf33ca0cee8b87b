"""Sums over the resolved events of a stream: moments, counts, and weights that decay."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import brief
from opinionpool.arrays import Array, Index, as_array
from opinionpool.errors import ArgumentError, ProbabilityError, ShapeError
from opinionpool.estimation.statistics import Statistics, dense_statistics
from opinionpool.names import places
from opinionpool.streams.block import EventBlock
from opinionpool.text import shown

# Numbers in an array of events x experts that is worked on at once, and in all moments together.
BLOCK, MOST_MOMENTS = 1 << 20, 1 << 23


@dataclass(frozen=True, eq=False)
class Totals:
    """Immutable sums over the resolved events of a stream: weights, counts and moments; methods return new ones."""

    floor: float  # least probability taken from an expert
    prior: Array | None  # (K,); prior that all events share, if it is known
    pace: float  # rate at which weights decay: log 2 / half-life, or 0
    experts: tuple[str, ...]
    events: Array  # (K,); total weight of events by outcome
    number: npt.NDArray[np.int64]  # (K,); number of events by outcome
    counts: Array  # (N,); total weight of each expert's forecasts
    cells: npt.NDArray[np.int64]  # (N,); number of each expert's forecasts
    # shared, own: statistics of log-ratios on events without a prior of their own, and of contrasts on events with one;
    # None if there are too many different sets of experts with forecasts on an event
    shared: Statistics | None
    own: Statistics | None
    lowest: Array  # (K,); least probability forecast for each class on events without a prior of their own
    origin: float = -np.inf  # the time to which all weights have decayed

    @classmethod
    def empty(cls, classes: int, floor: float, prior: Array | None, pace: float) -> Totals:
        """Return sums over no events."""
        number, none = np.zeros(classes, dtype=np.int64), np.zeros(0, dtype=np.int64)
        nothing = Statistics.empty((), classes)
        return cls(
            floor, prior, pace, (), number.astype(float), number, none.astype(float), none, nothing, nothing,
            np.ones(classes),
        )  # fmt: skip

    def over(self, experts: tuple[str, ...]) -> Totals:
        """The sums with room for all `experts`, which begin with the present ones; new ones have no forecasts."""
        fresh = experts[len(self.experts) :]
        if not fresh:
            return self
        more = Statistics.empty(fresh, len(self.events))
        return replace(
            self,
            experts=experts,
            counts=np.append(self.counts, np.zeros(len(fresh))),
            cells=np.append(self.cells, np.zeros(len(fresh), dtype=np.int64)),
            shared=None if self.shared is None else self.shared.merge(more),
            own=None if self.own is None else self.own.merge(more),
        )

    def add(self, block: EventBlock, sign: int = 1) -> Totals:
        """Return sums with the resolved events of `block` added, or if `sign` is -1 removed."""
        own = np.zeros(len(block), dtype=bool)
        if block.priors is not None:
            own[:] = ~np.isnan(block.priors.reshape(len(block), -1)).any(axis=1)
        found = self
        size = max(1, BLOCK // max(1, len(self.experts) * (len(self.events) - 1)))
        for mine, has_prior in ((np.flatnonzero(~own), False), (np.flatnonzero(own), True)):
            for first in range(0, len(mine), size):
                part = block.take(mine[first : first + size])
                found = found.add_rows(
                    part.dense(len(self.experts)), part.outcomes, part.weights, part.priors if has_prior else None,
                    part.at if self.pace else None, sign,
                )  # fmt: skip
        return found

    def add_rows(
        self,
        q: Array,
        outcomes: Index,
        weight: Array,
        prior: Array | None = None,
        at: Array | None = None,
        sign: int = 1,
    ) -> Totals:
        """Sums with resolved events, given as forecasts `q`, (T, N) or (T, N, K), added, or if `sign` is -1 removed."""
        faded = self if at is None else self.faded(float(at.max(initial=self.origin)))
        if at is not None:
            weight = weight * np.exp(self.pace * (at - faded.origin))
        k, answered = len(self.events), ~np.isnan(q if q.ndim == 2 else q[..., 0])
        number = self.number + sign * np.bincount(outcomes, minlength=k)
        events = faded.events + sign * np.bincount(outcomes, weights=weight, minlength=k)
        whole = bool(answered.all())
        cells = self.cells + sign * (len(q) if whole else answered.sum(axis=0))
        counts = faded.counts + sign * (weight.sum() if whole else weight @ answered)
        shared, own = faded.shared, faded.own
        if shared is not None and own is not None:
            found = self._moments(q, outcomes, weight, prior)
            current = own if prior is not None else shared
            current = current.merge(found) if sign > 0 else current.remove(found)
            shared, own = (shared, current) if prior is not None else (current, own)
        return replace(
            faded,
            number=number,
            events=np.where(number == 0, 0.0, events),
            cells=cells,
            counts=np.where(cells == 0, 0.0, counts),
            lowest=self._lowest(q, whole=whole) if prior is None and sign > 0 else self.lowest,
        )._with_moments(shared, own)

    def merge(self, other: Totals) -> Totals:
        """Return sums over the events of two streams with equal settings; this one has all experts of `other`."""
        columns = places(other.experts, self.experts)
        mine = self.faded(max(self.origin, other.origin))
        theirs = other.faded(mine.origin)
        counts, cells = mine.counts.copy(), mine.cells.copy()
        counts[columns] += theirs.counts
        cells[columns] += theirs.cells
        parts = (mine.shared, theirs.shared), (mine.own, theirs.own)
        shared, own = (None if one is None or two is None else one.merge(two) for one, two in parts)
        return replace(
            mine,
            events=mine.events + theirs.events,
            number=mine.number + theirs.number,
            counts=counts,
            cells=cells,
            lowest=np.minimum(mine.lowest, theirs.lowest),
        )._with_moments(shared, own)

    def _with_moments(self, shared: Statistics | None, own: Statistics | None) -> Totals:
        """Copy with moments of events that share a prior, and of others; without any if they take too much memory."""
        if shared is None or own is None:
            return replace(self, shared=None, own=None)
        parts = [part for moments in (shared, own) for part in moments.patterns.values()]
        if sum(part.scatter.size + part.mean.size for part in parts) > MOST_MOMENTS:
            return replace(self, shared=None, own=None)
        return replace(self, shared=shared, own=own)

    def faded(self, now: float) -> Totals:
        """Return the sums with weights decayed to the time `now`; the same sums if they have decayed so far already."""
        if not now > self.origin:
            return self
        share = math.exp(self.pace * (self.origin - now))
        return replace(
            self,
            events=self.events * share,
            counts=self.counts * share,
            shared=None if self.shared is None else self.shared.decay(share),
            own=None if self.own is None else self.own.decay(share),
            origin=now,
        )

    def evidence(self, prior: Array) -> tuple[Statistics, Array | None] | None:
        """Statistics of log-odds less the prior's, and the prior (K,) if events share it; None if sums do not suffice.

        Raises ProbabilityError if some events have a prior of their own, others have none, and the stream has none.
        """
        if self.shared is None or self.own is None:
            return None
        if self.shared.totals.any() and not self._floors_hold(prior):
            return None
        contrasts = self.shared.shift(logodds.prior_log_ratios(prior))
        if not self.own.totals.any():
            return contrasts, prior
        if not self.shared.totals.any():
            return self.own, None
        if self.prior is None:
            raise ProbabilityError(
                f"{int(self.shared.totals.sum())} events have no prior while others have one; give the stream prior= "
                "to fill the blanks"
            )
        return self.own.merge(contrasts), None

    def _floors_hold(self, prior: Array) -> bool:
        """True if all forecasts so far are above the floors that follow from `prior`, so that none is raised."""
        taken = logodds.class_floors(self.floor, self._reference, 100.0)
        wanted = logodds.class_floors(self.floor, prior, 100.0)
        return bool(((taken == wanted) | (self.lowest >= np.maximum(taken, wanted))).all())

    @property
    def _reference(self) -> Array:
        """Prior (K,) from which floors on forecasts follow; if it is unknown, ones, from which the highest follow."""
        return np.ones(len(self.events)) if self.prior is None else self.prior

    def _moments(self, q: Array, outcomes: Index, weight: Array, prior: Array | None) -> Statistics:
        k = len(self.events)
        if prior is None and (weight == 1.0).all():
            found = dense_statistics(q, outcomes, self._reference, self.floor, self.experts, threads=1)
            if found is not None:
                return found
        if prior is None:
            ratios = logodds.log_ratios(q, self._reference, self.floor)
        else:
            own = logodds.class_probabilities(prior, k)[:, None, :]
            ratios = logodds.log_ratios(q, own, self.floor) - logodds.prior_log_ratios(own)
        return Statistics.empty(self.experts, k).add(ratios, outcomes, weight)

    def _lowest(self, q: Array, *, whole: bool) -> Array:
        """Least probability forecast for each class, (K,), so far or in `q`; if `whole`, `q` has no blanks."""
        if not q.size:
            return self.lowest
        if q.ndim > 2:
            found = np.fmin.reduce(q.reshape(-1, q.shape[2]), axis=0)
        else:
            # Much faster where no forecast is missing.
            least, most = (q.min(), q.max()) if whole else (np.fmin.reduce(q, axis=None), np.fmax.reduce(q, axis=None))
            found = np.array([1.0 - most, least])
        # Not a number where there are no forecasts.
        return np.asarray(np.fmin(self.lowest, found))


# Beyond this, differences between times may overflow.
LATEST = 1e100


class Clock(NamedTuple):
    """Clock for the decay of weights: times of events' resolution, as given, or events' numbers; 0 without decay.

    >>> clock, times = Clock(half_life=10.0).tell(2, None)
    >>> times, clock.tell(1, None)[1]
    (array([0., 1.]), array([2.]))
    """

    half_life: float | None  # time after which an event's weight is half
    timed: bool | None = None  # whether users give times; None before the first event
    events: int = 0  # number of events so far

    @classmethod
    def of(cls, half_life: float | None) -> Clock:
        """Return the clock of an empty stream; in the time `half_life`, an event's weight halves. None: no decay.

        Raises an ArgumentError if `half_life` is invalid.
        """
        if half_life is not None and not (_is_number(half_life) and 0 < half_life < np.inf):
            raise ArgumentError(f"a half-life must be a finite number above 0, and it is {brief(half_life)}")
        return cls(half_life)

    @property
    def pace(self) -> float:
        """Rate at which weights decay: log 2 / half-life, or 0."""
        return 0.0 if self.half_life is None else math.log(2.0) / self.half_life

    def tell(self, events: int, at: Array | None) -> tuple[Clock, Array]:
        """Return the clock after `events` more events, and their times of resolution: `at` if given.

        Raises ArgumentError if times are given for only some events of the stream, or without a half-life.
        """
        if self.half_life is None:
            if at is not None:
                raise ArgumentError("times of resolution mean something where a half_life is given, and none is")
            return self, np.zeros(events)
        if not events:
            return self, np.zeros(0)
        if self.timed not in {None, at is not None}:
            raise ArgumentError("give at= for every event of a stream, or for none")
        later = Clock(self.half_life, at is not None, self.events + events)
        return later, np.arange(self.events, later.events, dtype=np.float64) if at is None else at

    def merged(self, other: Clock, *, both: bool) -> Clock:
        """Clock of two merged streams; an ArgumentError if `both` have events and time is the number of events."""
        if self.half_life is not None and both and not (self.timed and other.timed):
            raise ArgumentError("streams that forget can be merged if their events have times: give at= when resolving")
        return Clock(self.half_life, self.timed or other.timed, max(self.events, other.events))


def times_of(at: npt.ArrayLike, events: int) -> Array:
    """Return the times of resolution `at` of the events as an array, checked, (T,).

    Raises ShapeError or ArgumentError unless there is a finite number for each event. Dates are refused, as they do not
    have the unit of the half-life.
    """
    given = as_array(at, "at")
    if given.shape != (events,):
        raise ShapeError(f"{events} events need as many times, and their shape is {given.shape}")
    for time in [] if given.dtype.kind in "iuf" else given.tolist():
        if not _is_number(time):
            raise ArgumentError(
                "times of resolution are numbers in the unit of the half-life, such as days since a first one, and "
                f"one is {shown(str(time))}"
            )
    times = given.astype(np.float64)
    bad = ~(np.abs(times) <= LATEST)
    if bad.any():
        raise ArgumentError(f"times of resolution must be finite numbers, and one is {times[bad][0]:g}")
    return times


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)
