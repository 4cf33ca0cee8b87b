"""What a stream adds up: moments, counts, and weights that fade."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Real

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import brief
from opinionpool.arrays import Array, as_array
from opinionpool.errors import ArgumentError, ProbabilityError, ShapeError
from opinionpool.estimation.dense import DenseOutcomes, dense_statistics
from opinionpool.estimation.statistics import Statistics
from opinionpool.names import places
from opinionpool.streams.events import Record
from opinionpool.streams.rows import Rows
from opinionpool.text import shown

# Numbers in an array of events x experts that is worked on at once, and in all moments together.
BLOCK, MOST_MOMENTS = 1 << 20, 1 << 23


class Tally:
    """Sums over the resolved events of a stream, to which events can be added and from which they can be taken.

    Parameters
    ----------
    classes : int
        K.
    floor : float
    prior : ndarray or None, shape (K,)
        The reference that all events share, if it is known.
    pace : float
        How fast weights fade: log 2 / half-life, or 0.

    Attributes
    ----------
    experts : list of str
    events : ndarray, shape (K,)
        Weight by outcome; `number` is how many there are.
    counts : ndarray, shape (N,)
        Weight of each expert's forecasts; `cells` is how many there are.
    shared, own : Statistics or None
        Of log-ratios on events without a prior of their own, and of contrasts on events with one; None if there are
        so many different sets of experts who answered that they were given up.
    lowest : ndarray, shape (K,)
        The least probability of each class ever forecast on an event without a prior of its own.
    origin : float
        The time at which an event's weight is its frequency.
    """

    def __init__(self, classes: int, floor: float, prior: Array | None, pace: float) -> None:
        self.classes, self.floor, self.prior, self.pace = classes, floor, prior, pace
        self.experts: list[str] = []
        self.events, self.number = np.zeros(classes), np.zeros(classes, dtype=np.int64)
        self.counts, self.cells = np.zeros(0), np.zeros(0, dtype=np.int64)
        self.shared: Statistics | None = Statistics.empty((), classes)
        self.own: Statistics | None = Statistics.empty((), classes)
        self.lowest = np.ones(classes)
        self.origin = -np.inf

    def copy(self) -> Tally:
        """A copy that can change independently; arrays and lists are never changed, only replaced."""
        other = Tally.__new__(Tally)
        other.__dict__.update(self.__dict__)
        return other

    def join(self, names: Sequence[str]) -> None:
        """Make room for experts who were not there before."""
        known = set(self.experts)
        fresh = [name for name in names if name not in known]
        if not fresh:
            return
        self.experts = self.experts + fresh
        self.counts = np.concatenate([self.counts, np.zeros(len(fresh))])
        self.cells = np.concatenate([self.cells, np.zeros(len(fresh), dtype=np.int64)])
        if self.shared is not None and self.own is not None:
            more = Statistics.empty(fresh, self.classes)
            self.shared, self.own = self.shared.merge(more), self.own.merge(more)

    def add(self, records: Sequence[Record], sign: int = 1) -> None:
        """Add resolved events, or take them away."""
        for own in (False, True):
            chosen = [record for record in records if (record.prior is not None) == own]
            for part in self._blocks(chosen):
                dense = np.full((len(part), len(self.experts), *(() if self.classes == 2 else (self.classes,))), np.nan)
                alike = part[0].experts
                if all(record.experts is alike for record in part):
                    dense[:, alike] = np.array([record.probabilities for record in part])
                else:
                    for row, record in enumerate(part):
                        dense[row, record.experts] = record.probabilities
                prior = np.array([record.prior for record in part]) if own else None
                outcomes = np.array([record.outcome for record in part], dtype=np.intp)
                weight, at = np.array([record.weight for record in part]), np.array([record.at for record in part])
                self.add_rows(Rows(dense, outcomes, weight, prior, at if self.pace else None), sign)

    def add_rows(self, rows: Rows, sign: int = 1, moments: Statistics | None = None) -> None:
        """Add a block of resolved events, or with sign -1 take it away; with its moments, if they are known."""
        probabilities, outcomes, weight, prior = rows.forecasts, rows.outcomes, rows.weight, rows.prior
        if rows.at is not None:
            self._fade(float(rows.at.max(initial=self.origin)))
            weight = weight * np.exp(self.pace * (rows.at - self.origin))
        answered = None if rows.complete else rows.answered
        known = outcomes >= 0
        number = np.bincount(outcomes[known], minlength=self.classes)
        self.number = self.number + sign * number
        events = self.events + sign * np.bincount(outcomes[known], weights=weight[known], minlength=self.classes)
        self.events = np.where(self.number == 0, 0.0, events)
        self.cells = self.cells + sign * (len(probabilities) if answered is None else answered.sum(axis=0))
        counts = self.counts + sign * (weight.sum() if answered is None else weight @ answered)
        self.counts = np.where(self.cells == 0, 0.0, counts)
        if prior is None and sign > 0:
            self._note_lowest(rows)
        if self.shared is None or self.own is None:
            return
        found = self._moments(probabilities, outcomes, weight, prior) if moments is None else moments
        current = self.own if prior is not None else self.shared
        current = current.merge(found) if sign > 0 else current.remove(found)
        if prior is not None:
            self.own = current
        else:
            self.shared = current
        self._give_up()

    def merge(self, other: Tally) -> None:
        """Add another stream's sums, which has the same settings."""
        self.join(other.experts)
        columns = places(other.experts, self.experts)
        self._fade(max(self.origin, other.origin))
        theirs = other.faded(self.origin)
        self.events, self.number = self.events + theirs * other.events, self.number + other.number
        self.counts, self.cells = self.counts.copy(), self.cells.copy()
        self.counts[columns] += theirs * other.counts
        self.cells[columns] += other.cells
        self.lowest = np.minimum(self.lowest, other.lowest)
        if self.shared is None or self.own is None or other.shared is None or other.own is None:
            self.shared = self.own = None
            return
        self.shared = self.shared.merge(other.shared.decay(theirs))
        self.own = self.own.merge(other.own.decay(theirs))
        self._give_up()

    def faded(self, now: float) -> float:
        """What a weight kept here is worth at another time."""
        return float(np.exp(self.pace * (self.origin - now))) if self.pace and np.isfinite(self.origin) else 1.0

    def evidence(self, prior: Array) -> tuple[Statistics, Array | None] | None:
        """The statistics, and the prior that is still to be subtracted from them; None where they do not do.

        Parameters
        ----------
        prior : ndarray, shape (K,)
            The reference of events without one of their own.

        Raises
        ------
        ProbabilityError
            If some events have a prior of their own, others not, and none was given for these.
        """
        if self.shared is None or self.own is None:
            return None
        if self.shared.totals.any() and not self.floors_hold(prior):
            return None
        if not self.own.totals.any():
            return self.shared, prior
        if not self.shared.totals.any():
            return self.own, None
        if self.prior is None:
            raise ProbabilityError(
                f"{int(self.shared.totals.sum())} events have no prior while others have one; give the stream prior= "
                "to fill the blanks"
            )
        return self.own.merge(self.shared.shift(logodds.prior_log_ratios(prior))), None

    def floors_hold(self, prior: Array) -> bool:
        """Whether floors that follow from this prior would have changed nothing."""
        taken = logodds.class_floors(self.floor, self.reference, 100.0)
        wanted = logodds.class_floors(self.floor, prior, 100.0)
        return bool(((taken == wanted) | (self.lowest >= np.maximum(taken, wanted))).all())

    @property
    def reference(self) -> Array:
        """What floors follow from, (K,): as long as no prior is known, any that is not small."""
        return np.ones(self.classes) if self.prior is None else self.prior

    def _moments(
        self, probabilities: Array, outcomes: npt.NDArray[np.intp], weight: Array, prior: Array | None
    ) -> Statistics:
        if prior is None and (weight == 1.0).all():
            known = DenseOutcomes.of_codes(outcomes, self.classes)
            found = dense_statistics(probabilities, known, self.reference, self.floor, tuple(self.experts), threads=1)
            if found is not None:
                return found
        if prior is None:
            ratios = logodds.log_ratios(probabilities, self.reference, self.floor)
        else:
            own = logodds.class_probabilities(prior, self.classes)[:, None, :]
            ratios = logodds.log_ratios(probabilities, own, self.floor) - logodds.prior_log_ratios(own)
        return Statistics.empty(self.experts, self.classes).add(ratios, outcomes, weight)

    def _note_lowest(self, rows: Rows) -> None:
        probabilities = rows.forecasts
        if not probabilities.size:
            return
        if self.classes > 2:
            found = np.fmin.reduce(probabilities.reshape(-1, self.classes), axis=0)
        elif rows.complete:
            found = np.array([1.0 - rows.bounds[1], rows.bounds[0]])
        else:
            most, least = np.fmax.reduce(probabilities, axis=None), np.fmin.reduce(probabilities, axis=None)
            found = np.array([1.0 - most, least])
        # Not a number where there are no forecasts.
        self.lowest = np.fmin(self.lowest, found)

    def _fade(self, now: float) -> None:
        """Let weights fade until `now`, which is not in the past."""
        if now > self.origin:
            share = self.faded(now)
            self.events, self.counts = self.events * share, self.counts * share
            if self.shared is not None and self.own is not None:
                self.shared, self.own = self.shared.decay(share), self.own.decay(share)
            self.origin = now

    def _give_up(self) -> None:
        if self.shared is None or self.own is None:
            return
        numbers = sum(
            part.scatter.size + part.mean.size
            for moments in (self.shared, self.own)
            for part in moments.patterns.values()
        )
        if numbers > MOST_MOMENTS:
            self.shared = self.own = None

    def _blocks(self, records: Sequence[Record]) -> Iterator[Sequence[Record]]:
        size = max(1, BLOCK // max(1, len(self.experts) * (self.classes - 1)))
        return (records[i : i + size] for i in range(0, len(records), size))


# Beyond this, differences between times may overflow.
LATEST = 1e100


class Clock:
    """Tells the time of events that are resolved; all at once if nothing is forgotten.

    Parameters
    ----------
    half_life : float, optional
        After which an event counts half.

    Attributes
    ----------
    timed : bool or None
        Whether times are given, once that is known.
    count : int
        Events so far.

    Examples
    --------
    >>> clock = Clock(half_life=10.0)
    >>> clock.tell(2, None), clock.tell(1, None)
    (array([0., 1.]), array([2.]))
    """

    def __init__(self, half_life: float | None) -> None:
        if half_life is not None and not (_is_number(half_life) and 0 < half_life < np.inf):
            raise ArgumentError(f"a half-life must be a finite number above 0, and it is {brief(half_life)}")
        self.half_life = half_life
        self.timed: bool | None = None
        self.count = 0

    def copy(self) -> Clock:
        """A copy that can change independently."""
        other = Clock.__new__(Clock)
        other.__dict__.update(self.__dict__)
        return other

    def tell(self, events: int, at: Array | None) -> Array:
        """The times of further events, `at` if they are given.

        Raises
        ------
        ArgumentError
            If times are given for some events of the stream and not for others, or have no meaning.
        """
        self.check(events, at)
        if self.half_life is None:
            return np.zeros(events)
        if events:
            self.timed = at is not None
        self.count += events
        return np.arange(self.count - events, self.count, dtype=np.float64) if at is None else at

    def check(self, events: int, at: Array | None) -> None:
        """Whether `tell` could tell these times.

        Raises
        ------
        ArgumentError
            As `tell` does.
        """
        if self.half_life is None and at is not None:
            raise ArgumentError("times of resolution mean something where a half_life is given, and none is")
        if self.half_life is not None and events and self.timed not in {None, at is not None}:
            raise ArgumentError("give at= for every event of a stream, or for none")

    def merged(self, other: Clock, *, both: bool) -> Clock:
        """The clock of two streams together; `both` is whether each has resolved events.

        Raises
        ------
        ArgumentError
            If they forget by counting events, which ran beside each other.
        """
        if self.half_life is not None and both and not (self.timed and other.timed):
            raise ArgumentError("streams that forget can be merged if their events have times: give at= when resolving")
        together = Clock(self.half_life)
        together.timed = self.timed or other.timed
        together.count = max(self.count, other.count)
        return together


def times_of(at: npt.ArrayLike, events: int) -> Array:
    """Times of resolution, one for each event, (T,).

    Raises
    ------
    ShapeError, ArgumentError
        If there is not one for each event, or one is no finite number. A date is none: it has no unit that could be
        that of the half-life.
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
