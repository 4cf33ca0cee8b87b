"""Learning as it happens: forecasts are revised, outcomes arrive late and are corrected, experts come and go."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import expect_type, labels_given, names_given, number, whole_number
from opinionpool.arrays import Array, frequencies, is_blank
from opinionpool.errors import ArgumentError, ExpertError, Note, ShapeError
from opinionpool.estimation.statistics import Statistics
from opinionpool.forecasts import Forecasts
from opinionpool.labels import UNRESOLVED, encode_outcomes
from opinionpool.logodds import FLOOR, POOL_FLOOR
from opinionpool.names import check_distinct, numbered
from opinionpool.streams.changes import Change, Changes, annulled, corrected
from opinionpool.streams.events import Record
from opinionpool.streams.given import NOTHING, About, ExpertForecasts, batch_records, check_in_time, event_record
from opinionpool.streams.moments import Clock, times_of
from opinionpool.streams.reservoir import CAPACITY
from opinionpool.streams.rows import Rows
from opinionpool.streams.state import StreamState
from opinionpool.streams.view import StreamView, exclusive
from opinionpool.text import shown


class Stream(StreamView):
    """What there is to learn from forecasts and outcomes that arrive one by one, in batches, or both.

    Everything is keyed by event id and expert name. An empty stream is the identity of `merge`.

    Moments of all resolved events are kept, so structures that are estimated from them ("full" where all answered,
    "common", "exchangeable", "independent") are learned as from the whole. What needs rows, the default pool and all
    other pools, is learned from a sample: everything as long as no outcome has more than `capacity` / K events, then
    that many events of each outcome, weighted so that they stand for all. Which ones depends on their ids and the seed
    alone, not on order or batches. Events that are not resolved are kept until they are, or are withdrawn.

    Every change is made entirely or not at all, whatever interrupts it, and threads may share a stream: each waits
    until the change of another one is made.

    Parameters
    ----------
    classes : sequence, default (0, 1)
        K labels. A binary forecast is the probability of ``classes[1]``.
    prior : float or array_like, shape (K,), optional
        The reference that the experts share; Laplace's estimate when learning, if not given. Events may have their
        own.
    half_life : float, optional
        After so many further events an event counts half; with ``at`` when resolving, after so much time, in its unit.
        Nothing is forgotten if not given.
    capacity : int, default 20000
        Resolved events in the sample; at most 4,000,000 probabilities, too.
    seed : int, default 0
        Of the sample.
    floor, pool_floor : float
        Floors (model.md, section 4).

    Examples
    --------
    >>> stream = Stream()
    >>> stream.forecast("q1", {"ann": 0.8, "bob": 0.6})
    >>> stream.forecast("q1", {"ann": 0.9})
    >>> stream.resolve("q1", 0)
    >>> stream.resolve("q1", 1)
    >>> stream.count, stream.learn().experts
    (1, ('ann', 'bob'))
    """

    def __init__(
        self,
        classes: Sequence[object] = (0, 1),
        *,
        prior: npt.ArrayLike | None = None,
        half_life: float | None = None,
        capacity: int = CAPACITY,
        seed: int = 0,
        floor: float = FLOOR,
        pool_floor: float = POOL_FLOOR,
    ) -> None:
        capacity, seed = whole_number(capacity, "capacity", 1), whole_number(seed, "seed", 0, (1 << 63) - 1)
        floor, pool_floor = number(floor, "floor", 0, 1), number(pool_floor, "pool_floor", 0, 1)
        labels = labels_given(classes, "classes")
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise ArgumentError(f"classes must be at least two different labels, not {labels}")
        if any(label is None or label != label for label in labels):
            raise ArgumentError(
                f"None and NaN stand for events that are not resolved, so they are no classes: {labels}"
            )
        Clock(half_life)
        given = None if prior is None else logodds.class_probabilities(prior, len(labels))
        if given is not None and given.ndim > 1:
            raise ShapeError(f"the prior of a stream is one for all events, and its shape is {given.shape}")
        logodds.class_floors(floor, np.full(len(labels), 1.0 / len(labels)), 100.0)
        self.capacity, self.seed = int(capacity), int(seed)
        self.floor, self.pool_floor = float(floor), float(pool_floor)
        self._codes = {label: code for code, label in enumerate(labels)}
        self._state = StreamState(labels, self.floor, given, self.capacity, half_life, self.seed)
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: value for name, value in self.copy().__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    @exclusive
    def forecast(
        self,
        event: str,
        forecasts: ExpertForecasts,
        prior: npt.ArrayLike | None = None,
        *,
        topic: str | None = None,
        closes: object = None,
        group: str | None = None,
        time: object = None,
    ) -> None:
        """Forecasts on an event that is not resolved; they take the place of earlier ones by the same experts.

        Parameters
        ----------
        event : str
            Its id.
        forecasts : mapping of str to float, or to array_like, shape (K,), when K > 2
            By expert. None or NaN withdraws a forecast.
        prior : float or array_like, shape (K,), optional
            The event's own reference.
        topic : str, optional
            What the event is about.
        closes : str, date, datetime or datetime64, optional
            When the event closes: those that close or are resolved on one day may depend on each other.
        group : str, optional
            A label that events may share which may depend on each other.
        time : str, date, datetime or datetime64, optional
            When the forecasts were made. One made before the expert's forecast that stands does not take its place.

        Raises
        ------
        ArgumentError
            If the event is resolved, or closed before the forecasts were made: what comes afterwards is no forecast.
        ShapeError
            If a probability is outside [0, 1], or there is not one for each class.
        """
        key = self._key(event)
        if self._state.ledger.find(key) is not None:
            raise ArgumentError(
                f"event {shown(event)} is resolved, and what comes later is no forecast; to correct forecasts that "
                "were entered wrongly, take the outcome back first: resolve(event, None)"
            )
        with self._state.all_or_nothing():
            about = About.of(closes, "closes", group, topic)
            record = event_record(self._state, self.seed, event, forecasts, prior, about, time, key=key)
            current = self._state.open.get(record.key)
            new = record.revised(record) if current is None else current.updated(record)
            check_in_time(new, self._state.experts)
            self._state.put_open(new)

    @exclusive
    def withdraw(self, event: str) -> None:
        """Forget an event that was annulled: an open one, or a resolved one, whose outcome is taken back.

        Raises
        ------
        ArgumentError
            If there is no such event, or it is resolved and no longer in the sample.
        """
        with self._state.all_or_nothing():
            record = event_record(self._state, self.seed, event, {}, None)
            change = annulled(self._state, record, complete=False)
            if change is None:
                raise ArgumentError(f"event {shown(event)} is not among the open ones, nor was it learned from")
            self._apply([change], None)

    @exclusive
    def resolve(
        self,
        event: str,
        outcome: object,
        forecasts: ExpertForecasts | None = None,
        *,
        prior: npt.ArrayLike | None = None,
        weight: float | None = None,
        at: float | None = None,
        topic: str | None = None,
        resolved_at: object = None,
        group: str | None = None,
    ) -> None:
        """What happened, for the first time or corrected; None takes an outcome back.

        Parameters
        ----------
        event : str
        outcome : object
            One of the classes, or None.
        forecasts : mapping, optional
            Needed for an event without forecasts so far; for open events, further ones. To correct an event that is no
            longer in the sample, all its forecasts, as they were.
        prior : float or array_like, shape (K,), optional
            The event's own reference, given with its forecasts.
        weight : float, optional
            Its frequency; 1, or in a correction the one it had, if not given.
        at : float, optional
            When it was resolved, in the unit of the half-life; a correction keeps the first one.
        topic : str, optional
            What the event is about, given with its forecasts.
        resolved_at : str, date, datetime or datetime64, optional
            When that was; instead of the time when the event closed.
        group : str, optional
            As for `forecast`.

        Raises
        ------
        ArgumentError
            If the event is unknown and no forecasts are given, or if its forecasts are needed and not these; if one was
            made after `resolved_at`.
        OutcomeError
            If the outcome is not one of the classes.
        """
        if forecasts is not None:
            expect_type(forecasts, Mapping, "forecasts")
        weight = None if weight is None else number(weight, "weight", error=ArgumentError)
        code = self._code(outcome)
        if weight is not None and not frequencies([weight], 1)[0] > 0:
            raise ArgumentError("the weight of an event is its frequency, above 0")
        time = None if at is None else times_of([np.nan if is_blank(at) else at], 1)
        with self._state.all_or_nothing():
            about = About.of(resolved_at, "resolved_at", group, topic)
            change = self._resolution(event, code, forecasts, prior, weight, about)
            if change is None:
                return
            if time is None and self.half_life is None:
                change.made(self._state)
                return
            self._state.clock.check(int(change.fresh), time)
            self._apply([change], None if time is None else float(time[0]))

    def _resolution(
        self,
        event: str,
        code: int,
        forecasts: ExpertForecasts | None,
        prior: npt.ArrayLike | None,
        weight: float | None,
        about: About,
    ) -> Change | None:
        """What an outcome changes, None if nothing."""
        state, key = self._state, self._key(event)
        entry, current = state.ledger.find(key), state.open.get(key)
        if entry is None and current is None and forecasts is None:
            raise ArgumentError(
                f"no forecast on event {shown(event)} is known; give them with its outcome, or {{}} if there were none"
            )
        if entry is None:
            return Change(None, self._outcome_of(event, key, code, forecasts, prior, weight, about))
        record = event_record(state, self.seed, event, forecasts or {}, prior, about, key=key)._replace(outcome=code)
        if forecasts is not None and state.content(record.revised(record)) != entry.content:
            raise ArgumentError(
                f"event {shown(event)} was learned from with other forecasts; to correct those, take its outcome back "
                "first: resolve(event, None)"
            )
        if entry.outcome == code and weight in {None, entry.weight}:
            return None
        return corrected(state, record.revised(record), entry, weight, complete=forecasts is not None)

    def _outcome_of(
        self,
        event: str,
        key: int,
        code: int,
        forecasts: ExpertForecasts | None,
        prior: npt.ArrayLike | None,
        weight: float | None,
        about: About,
    ) -> Record:
        """An event that is resolved for the first time."""
        current = self._state.open.get(key)
        if current is not None and forecasts is None and prior is None and about is NOTHING:
            asked = current.time if current.settled and current.time is not None else current.asked
            return current.resolved(code, 1.0 if weight is None else float(weight), asked)
        record = event_record(self._state, self.seed, event, forecasts or {}, prior, about, key=key)
        new = (record if current is None else current).revised(record)
        check_in_time(new, self._state.experts)
        ends = [known.time for known in (current, about) if known is not None and known.settled]
        asked = min((end for end in ends if end is not None), default=new.asked)
        return new.resolved(code, 1.0 if weight is None else float(weight), asked)

    @exclusive
    def add(
        self,
        forecasts: Forecasts,
        sample_weight: npt.ArrayLike | None = None,
        at: npt.ArrayLike | None = None,
        *,
        whole: bool = False,
    ) -> tuple[Note, ...]:
        """Forecasts with the outcomes that are known, all or nothing; what was learned before is not learned again.

        Parameters
        ----------
        forecasts : Forecasts
            Of events with these classes. On open events they take the place of earlier ones by the same experts; on
            resolved ones they come too late, which a note says. Other outcomes are corrections, and events that are
            void (`Forecasts.void`) are taken back.
        sample_weight : array_like, shape (T,), optional
            Frequencies; events of weight 0 are left out.
        at : array_like, shape (T,), optional
            When each event was resolved, in the unit of the half-life.
        whole : bool, default False
            Whether an open event that comes with forecasts comes with all of them, as in a table that is exported again
            and again: earlier ones by experts who have none any more are then withdrawn.

        Returns
        -------
        tuple of Note
            How many events were known, corrected, annulled, or forecast too late.

        Raises
        ------
        ArgumentError
            If the classes are others, or a corrected event is no longer in the sample and came with other forecasts.
        """
        if not isinstance(forecasts, Forecasts):
            raise ArgumentError(
                f"a batch is op.Forecasts, as op.read_forecasts makes them, and not a {type(forecasts).__name__}"
            )
        if forecasts.options is not None:
            raise ArgumentError("a stream is of events that share their classes, and these have options of their own")
        if tuple(map(str, forecasts.classes)) != tuple(map(str, self.classes)):
            raise ArgumentError(
                f"the classes of this stream are {self.classes}, and those of these forecasts {forecasts.classes}"
            )
        t = len(forecasts.events)
        if len(set(forecasts.events)) < t:
            raise ArgumentError("events of a batch must have different ids")
        weight = None if sample_weight is None else frequencies(sample_weight, t).tolist()
        with self._state.all_or_nothing():
            found = Changes(self._state, table=forecasts if whole else None)
            for i, record in enumerate(batch_records(self._state, self.seed, forecasts)):
                found.plan(record, None if weight is None else weight[i])
            for record in () if forecasts.void is None else batch_records(self._state, self.seed, forecasts.void):
                found.plan_void(record)
            self._apply(found.made, None if at is None else dict(zip(forecasts.events, times_of(at, t), strict=True)))
        return found.notes()

    @exclusive
    def add_rows(
        self,
        probabilities: npt.ArrayLike,
        outcomes: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        *,
        prior: npt.ArrayLike | None = None,
        at: npt.ArrayLike | None = None,
        experts: Sequence[str] | None = None,
        first: int | None = None,
        moments: Statistics | None = None,
        topics: npt.ArrayLike | None = None,
        times: npt.ArrayLike | None = None,
    ) -> None:
        """A block of events without ids, fast; they cannot be corrected, and nothing tells if they come twice.

        Parameters
        ----------
        probabilities : array_like, shape (T, N), or (T, N, K) when K > 2
            NaN where missing; taken as they are.
        outcomes : array_like of int, shape (T,)
            Index in `classes`, -1 where not resolved; those are left out.
        sample_weight : array_like, shape (T,), optional
        prior : array_like, shape (T,), or (T, K) when K > 2, optional
            The events' own references.
        at : array_like, shape (T,), optional
        experts : sequence of str, optional
            ``expert_1`` ... if not given.
        first : int, optional
            The number of the first row, which decides which rows are in the sample; they go on if not given. Rows
            that are added in parallel, to be merged, need numbers of their own.
        moments : Statistics, optional
            Those of the resolved rows, if they are known: of log-ratios with the floors of this stream.
        topics : array_like of str, shape (T,), optional
            What the events are about.
        times : array_like of datetime64, shape (T, N), optional
            When each forecast was made.

        Raises
        ------
        ShapeError, ArgumentError
            If the arguments do not fit together or are out of range.
        """
        rows = Rows.of(probabilities, outcomes, sample_weight, prior, len(self.classes), topics, times)
        n = rows.forecasts.shape[1]
        first = None if first is None else whole_number(first, "first", 0, 1 << 62)
        names = numbered(n) if experts is None else experts
        if not isinstance(names, tuple) or self._state.together(names) is None:
            names = names_given(names, "experts", ExpertError)
            check_distinct(names)
        if len(names) != n:
            raise ShapeError(f"{n} columns need as many names of experts, not {len(names)}")
        with self._state.all_or_nothing():
            self._learn_rows(rows, names, at, first, moments)

    def _learn_rows(
        self,
        rows: Rows,
        names: tuple[str, ...],
        at: npt.ArrayLike | None,
        first: int | None,
        moments: Statistics | None,
    ) -> None:
        """What `add_rows` changes."""
        state = self._state
        if self.half_life is not None or at is not None:
            known = rows.outcomes != UNRESOLVED
            times = np.full(len(rows), np.nan)
            given = None if at is None else times_of(at, len(rows))[known]
            times[known] = state.tell(int(known.sum()), given)
            rows = replace(rows, at=times)
        columns = state.join(names)
        if len(columns) < len(state.experts) or (columns[1:] < columns[:-1]).any():
            rows, moments = rows.placed(columns, len(state.experts)), None
        start = state.numbering.stop if first is None else first
        state.numbering = state.numbering.added(len(rows), first)
        state.learn_rows(rows.resolved(start, None if moments is not None else state.memory), moments)

    def merge(self, other: Stream) -> Stream:
        """Both together; their order and how events were dealt out between them play no part.

        Raises
        ------
        ArgumentError
            If they have different settings, share a resolved event, or forget by counting events, which has no meaning
            for streams that ran beside each other (give times of resolution instead).
        """
        if not isinstance(other, Stream):
            raise ArgumentError(f"a stream is merged with another one, and not with a {type(other).__name__}")
        if self._settings() != other._settings() or not _same(self.prior, other.prior):
            raise ArgumentError(
                "streams can be merged if they have the same classes, prior, half-life, capacity, seed and floors"
            )
        mine, theirs = self.copy(), other.copy()
        if mine._state.numbering.meets(theirs._state.numbering) and not theirs._state.movable:
            # Whose rows can be counted on from the other's, comes second.
            mine, theirs = theirs, mine
        clock = mine._state.clock.merged(theirs._state.clock, both=bool(mine.count and theirs.count))
        with mine._state.all_or_nothing():
            mine._state.merge(theirs._state)
            mine._state.clock = clock
        return mine

    def _apply(self, changes: Sequence[Change], at: float | Mapping[str, float] | None) -> None:
        """Make changes; events that are resolved for the first time get their time."""
        if at is None and self.half_life is None:
            for change in changes:
                change.made(self._state)
            return
        fresh = [change for change in changes if change.fresh]
        times = None
        if at is not None:
            times = np.array([at[str(c.new.event)] if isinstance(at, Mapping) else at for c in fresh], dtype=np.float64)
        when = iter(self._state.tell(len(fresh), times).tolist())
        for change in changes:
            timed = Change(None, change.new._replace(at=next(when))) if change.fresh else change
            timed.made(self._state)

    @exclusive
    def with_classes(self, classes: Sequence[object]) -> Stream:
        """A copy whose classes have other names, in the same order; of as many classes, or it is as it was."""
        other, labels = self.copy(), labels_given(classes, "classes")
        if len(labels) != len(self.classes):
            return other
        other._codes = {label: code for code, label in enumerate(labels)}
        other._state.classes = labels
        return other

    def _code(self, outcome: object) -> int:
        """The position of an outcome among the classes, -1 if it is none."""
        try:
            return self._codes[outcome]
        except (KeyError, TypeError):
            return int(encode_outcomes([outcome], self.classes, 1)[0])

    def _settings(self) -> tuple[object, ...]:
        return self.classes, self.half_life, self.capacity, self.seed, self.floor, self.pool_floor


def _same(one: Array | None, other: Array | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))
