"""Learning from a stream: forecasts are revised, outcomes arrive late and are corrected, experts come and go."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import expect_type, labels_given, names_given, number, whole_number
from opinionpool.arrays import Array, frequencies, is_blank
from opinionpool.errors import ArgumentError, ExpertError, LearningError, Note, ShapeError
from opinionpool.forecasts import Forecasts
from opinionpool.labels import encode_outcomes
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.learn import learn_from
from opinionpool.learning.problem import Request
from opinionpool.logodds import FLOOR, POOL_FLOOR
from opinionpool.model.pooling import Settings
from opinionpool.names import check_distinct, numbered
from opinionpool.pools.fit import fit_from
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.scales import in_classes, scales_about
from opinionpool.streams.block import EventBlock
from opinionpool.streams.changes import (
    NOTHING,
    About,
    Changes,
    ExpertForecasts,
    annulled,
    as_learned,
    check_in_time,
    event_given,
    facts_of_rows,
)
from opinionpool.streams.ledger import Columns
from opinionpool.streams.sample import CAPACITY, EventSample
from opinionpool.streams.state import Change, StreamSource, StreamState
from opinionpool.streams.totals import Clock, Totals, times_of
from opinionpool.text import shown

P = ParamSpec("P")
R = TypeVar("R")


# That what release 0.1 began goes on by the method of this one.
NEWER = (
    Note(
        "newer-method",
        "learned until now by the method of release 0.1, and now by that of this one, from what was kept",
    ),
)


def exclusive(method: Callable[Concatenate[Stream, P], R]) -> Callable[Concatenate[Stream, P], R]:
    """Return `method` wrapped in a lock, so that no other thread changes the stream while it runs."""

    @wraps(method)
    def locked(self: Stream, /, *given: P.args, **options: P.kwargs) -> R:
        with self._lock:
            return method(self, *given, **options)

    return locked


class Stream:
    """Learner from forecasts and outcomes that arrive one by one, in batches, or both.

    Events are known by id, experts by name. Merging with an empty stream changes nothing.

    Moments of all resolved events are kept, so structures that are estimated from them ("full" if there are no missing
    forecasts, "common", "exchangeable", "independent") are learned from all events. The default pool and all other
    pools are learned from a sample: all events as long as no outcome has more than `capacity` / K events, then that
    many events of each outcome, weighted to represent all. The choice depends on the events' contents and the seed, not
    on order or batches. Unresolved events are kept until they are resolved or withdrawn.

    Every change is made by one assignment, so entirely or not at all if it is interrupted. Threads may share a stream:
    each waits until the change of another one is made.

    Parameters
    ----------
    classes : sequence, default (0, 1)
        K labels. A binary forecast is the probability of ``classes[1]``.
    prior : float or array_like, shape (K,), optional
        Prior that all experts start from; Laplace's estimate from the outcomes if not given. Events may have their
        own.
    half_life : float, optional
        Number of further events after which an event's weight is half; if `resolve` gets ``at``, a time in that unit.
        Weights do not decay if not given.
    capacity : int, default 20000
        Greatest number of resolved events in the sample, which has at most 4,000,000 probabilities.
    seed : int, default 0
        Seed of the sample.
    floor, pool_floor : float
        Least probability of experts and of answers (model.md, section 4).
    scale : str, sequence or mapping, optional
        Scale of levels that are given instead of probabilities, except in `add`; as for `opinionpool.read_forecasts`.

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
        scale: object = None,
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
        clock = Clock.of(half_life)
        given = None if prior is None else logodds.class_probabilities(prior, len(labels))
        if given is not None and given.ndim > 1:
            raise ShapeError(f"the prior of a stream is one for all events, and its shape is {given.shape}")
        logodds.class_floors(floor, np.full(len(labels), 1.0 / len(labels)), 100.0)
        self.capacity, self.seed = int(capacity), int(seed)
        self.floor, self.pool_floor = float(floor), float(pool_floor)
        self.levels = self.scales = scales_about(scale, labels)  # of what is given, and of all experts
        self.older = False  # whether it comes from a file of release 0.1, which learned by another method
        self._codes = {label: code for code, label in enumerate(labels)}
        totals = Totals.empty(len(labels), self.floor, given, clock.pace)
        sample = EventSample.empty(len(labels), self.capacity, clock.pace, self.seed)
        self._state = StreamState(labels, self.seed, clock, totals, sample, Columns())
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    def __repr__(self) -> str:
        return f"<Stream of {self.count} resolved and {len(self.open)} open events, {len(self.experts)} experts>"

    @property
    def classes(self) -> tuple[object, ...]:
        """Labels of the K classes."""
        return self._state.classes

    @property
    def half_life(self) -> float | None:
        """Number of events, or time, after which an event's weight is half; None if weights do not decay."""
        return self._state.clock.half_life

    @property
    def version(self) -> int:
        """Number that is different after each change of the stream."""
        return self._state.version

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the N experts, in order of first appearance."""
        return self._state.experts

    @property
    def prior(self) -> Array | None:
        """Prior that was given, as class probabilities, (K,); None if none was given."""
        return self._state.totals.prior

    @property
    def count(self) -> int:
        """Number of resolved events."""
        return self._state.resolved

    @property
    def events(self) -> Array:
        """Weight of the resolved events by outcome, (K,)."""
        return self._added_up().totals.events.copy()

    @property
    def open(self) -> tuple[str, ...]:
        """Ids of the unresolved events with forecasts."""
        return tuple(self._state.opened)

    @property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the content of the stream, independent of its order, as 64 hexadecimal digits.

        The content is the forecasts, outcomes and weights of open and resolved events, and the times, topics and groups
        of open events and of resolved events in the sample. Events without ids are left out.
        """
        return self._settled().fingerprint()

    def knows(self, event: str) -> bool:
        """Return True if the stream has learned from the resolved event with the id `event`."""
        return self._state.entry(_id(event)) is not None

    def copy(self) -> Stream:
        """Return a copy, which changes independently of this stream."""
        return self._with(self._state)

    def sample(self) -> tuple[Forecasts, Array]:
        """The open and the sampled events, to which most pools are fitted, and how many each represents, (T,)."""
        return StreamSource(self._settled()).rows()[:2]

    def forecasts(self) -> Forecasts:
        """Return the open events, to be pooled."""
        state = self._state
        if not state.experts:
            raise LearningError("nothing has been added yet")
        return EventBlock.of_events(list(state.opened.values()), len(state.classes)).forecasts(
            state.experts, state.classes
        )

    def learn(self, structure: str = "auto", beliefs: Beliefs | str | None = "default", **options: Any) -> FittedPanel:  # noqa: ANN401
        """Return a Gaussian panel learned from all events so far; options as for `opinionpool.learning.learn.learn`.

        Raises
        ------
        LearningError
            If the data do not determine the panel.
        """
        request = Request(structure, beliefs, **options, settings=Settings(self.floor, self.pool_floor))
        found = learn_from(StreamSource(self._added_up(), self.scales), request)
        return replace(found, notes=(*found.notes, *(NEWER if self.older else ())))

    def fit(self, pool: str = "gaussian", **options: Any) -> Fitted:  # noqa: ANN401 - each pool has its own
        """Return the fit of any pool to all events so far; arguments as for `opinionpool.pools.fit.fit_pool`."""
        source = StreamSource(self._added_up(), self.scales)
        found = fit_from(source, pool, floor=self.floor, pool_floor=self.pool_floor, **options)
        return replace(found, notes=(*found.notes, *NEWER)) if self.older and pool == "gaussian" else found

    @exclusive
    def _added_up(self) -> StreamState:
        """Add all pending changes to the stream's sums, and return the new state."""
        self._state = self._state.added_up()
        return self._state

    @exclusive
    def _settled(self) -> StreamState:
        """Add pending changes to the sums, cut the sample down to its greatest size, and return the new state."""
        self._state = self._state.settled()
        return self._state

    def _with(self, state: StreamState) -> Stream:
        """Return a stream with this one's settings and the given `state`."""
        other = Stream.__new__(Stream)
        other.__dict__.update(self.__dict__, _state=state, _lock=threading.RLock())
        return other

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
        """Record forecasts on an unresolved event; they replace earlier forecasts by the same experts.

        Parameters
        ----------
        event : str
            Id of the event.
        forecasts : mapping of str to float, or to array_like, shape (K,), when K > 2
            Probabilities by expert. None or NaN withdraws a forecast.
        prior : float or array_like, shape (K,), optional
            Prior of this event.
        topic : str, optional
            What the event is about.
        closes : str, date, datetime or datetime64, optional
            Time when the event closes. Events that close or are resolved on one day may depend on each other.
        group : str, optional
            Label of a group of events that may depend on each other.
        time : str, date, datetime or datetime64, optional
            Time when the forecasts were made. A forecast does not replace one that the expert made later.

        Raises
        ------
        ArgumentError
            If the event is resolved, or closed before the forecasts were made.
        ShapeError
            If a probability is outside [0, 1], or there is not one for each class.
        """
        name, state = _id(event), self._state
        if state.entry(name) is not None:
            raise ArgumentError(
                f"event {shown(event)} is resolved, and what comes later is no forecast; to correct forecasts that "
                "were entered wrongly, take the outcome back first: resolve(event, None)"
            )
        about = About.of(closes, "closes", group, topic)
        state, given = event_given(state, name, forecasts, prior, about, time, levels=self.levels)
        new = (state.find_open(name) or given).revised(given, by_time=True)
        check_in_time(new, state.experts)
        self._state = state.changed([Change(name, None, new)])

    @exclusive
    def withdraw(self, event: str) -> None:
        """Remove an annulled event, open or resolved, as if it had never been there.

        Raises
        ------
        ArgumentError
            If the event is unknown, or it is resolved and no longer in the sample.
        """
        state, given = event_given(self._state, _id(event), {}, None)
        change = annulled(state, given, complete=False)
        if change is None:
            raise ArgumentError(f"event {shown(event)} is not among the open ones, nor was it learned from")
        self._state = state.changed([change])

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
        """Record the outcome of an event, for the first time or as a correction; None removes the outcome.

        Parameters
        ----------
        event : str
        outcome : object
            One of the classes, or None.
        forecasts : mapping, optional
            Required for an event without forecasts so far; further forecasts of an open event. To correct an event that
            is no longer in the sample: all its forecasts, unchanged.
        prior : float or array_like, shape (K,), optional
            Prior of this event, given with its forecasts.
        weight : float, optional
            Number of times that the event counts; if not given 1, or in a correction the earlier weight.
        at : float, optional
            Time of resolution, in the unit of the half-life; a correction keeps the first one.
        topic : str, optional
            What the event is about, given with its forecasts.
        resolved_at : str, date, datetime or datetime64, optional
            Time of the outcome, which replaces the time when the event closed.
        group : str, optional
            As for `forecast`.

        Raises
        ------
        ArgumentError
            If the event is unknown and no forecasts are given, if the forecasts of a correction differ from those
            learned from, or if a forecast was made after `resolved_at`.
        OutcomeError
            If the outcome is not one of the classes.
        """
        if forecasts is not None:
            expect_type(forecasts, Mapping, "forecasts")
        weight = None if weight is None else number(weight, "weight", error=ArgumentError)
        name = _id(event)
        code = self._code(name, outcome)
        if weight is not None and not frequencies([weight], 1)[0] > 0:
            raise ArgumentError("the weight of an event is its frequency, above 0")
        time = None if at is None else times_of([np.nan if is_blank(at) else at], 1)
        about = About.of(resolved_at, "resolved_at", group, topic)
        state = self._state
        entry, current = state.entry(name), state.find_open(name)
        if entry is None and current is None and forecasts is None:
            raise ArgumentError(
                f"no forecast on event {shown(event)} is known; give them with its outcome, or {{}} if there were none"
            )
        # An outcome alone adds nothing else to what is known.
        if current is not None and forecasts is None and prior is None and about is NOTHING:
            given = new = current
        else:
            state, given = event_given(state, name, forecasts or {}, prior, about, levels=self.levels)
            new = (current or given).revised(given)
        if entry is None:
            check_in_time(new, state.experts)
            ends = [known.time for known in (current, about) if known is not None and known.settled]
            asked = min((end for end in ends if end is not None), default=new.asked)
            new = new._replace(outcome=code, weight=1.0 if weight is None else float(weight), asked=asked)
            change = Change(name, None, new)
        else:
            if forecasts is not None and state.content(given.revised(given)) != entry.content:
                raise ArgumentError(
                    f"event {shown(event)} was learned from with other forecasts; to correct those, take its outcome "
                    "back first: resolve(event, None)"
                )
            if entry.outcome == code and weight in {None, entry.weight}:
                return
            old = as_learned(state, given.revised(given), entry, complete=forecasts is not None)
            new = old._replace(outcome=code, weight=old.weight if weight is None else float(weight))
            change = Change(name, old, new)
        self._commit(state, [change], None if time is None else {name: float(time[0])})

    @exclusive
    def add(
        self,
        forecasts: Forecasts,
        sample_weight: npt.ArrayLike | None = None,
        at: npt.ArrayLike | None = None,
        *,
        whole: bool = False,
    ) -> tuple[Note, ...]:
        """Learn from forecasts with known outcomes, all of them or, on an error, none; no event is learned from twice.

        Parameters
        ----------
        forecasts : Forecasts
            Forecasts on events with the classes of the stream. On open events they replace earlier forecasts by the
            same experts; on resolved events they are ignored, with a note. Outcomes that differ are corrections, and
            annulled events (`Forecasts.void`) are removed.
        sample_weight : array_like, shape (T,), optional
            Number of times that each event counts; events of weight 0 are left out.
        at : array_like, shape (T,), optional
            Time when each event was resolved, in the unit of the half-life.
        whole : bool, default False
            True if `forecasts` has all forecasts of each event in it, as a full export of a table does: earlier
            forecasts on open events that it lacks are then withdrawn.

        Returns
        -------
        tuple of Note
            Numbers of events that were known, corrected, annulled, or forecast too late.

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
        if len(set(forecasts.events)) < len(forecasts.events):
            raise ArgumentError("events of a batch must have different ids")
        weights = frequencies(sample_weight, len(forecasts.events))
        when = None if at is None else times_of(at, len(forecasts.events))
        forecasts, event, share = forecasts.halved()
        weights = weights[event] * share
        times = None if when is None else dict(zip(forecasts.events, when[event].tolist(), strict=True))
        state, columns = self._state.joined(forecasts.experts)
        found = Changes(state, table=forecasts if whole else None)
        for i, given in enumerate(EventBlock.of(forecasts, columns)):
            found.plan(given, None if sample_weight is None and share[i] == 1.0 else float(weights[i]))
        void = forecasts.void
        if void is not None:
            state, columns = state.joined(void.experts)
            for given in EventBlock.of(void, columns):
                found.plan_void(given)
        notes = found.notes()
        self._commit(state, found.made, times)
        self.scales = {**self.scales, **forecasts.scales}
        return notes

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
        topics: npt.ArrayLike | None = None,
        times: npt.ArrayLike | None = None,
    ) -> None:
        """Learn from events without ids, quickly; they cannot be corrected, and repeated events are not noticed.

        Parameters
        ----------
        probabilities : array_like, shape (T, N), or (T, N, K) when K > 2
            NaN where missing.
        outcomes : array_like of int, shape (T,)
            Position in `classes`, -1 for unresolved events, which are left out.
        sample_weight : array_like, shape (T,), optional
        prior : array_like, shape (T,), or (T, K) when K > 2, optional
            Prior of each event.
        at : array_like, shape (T,), optional
        experts : sequence of str, optional
            ``expert_1`` ... if not given.
        topics : array_like of str, shape (T,), optional
            Topics of the events.
        times : array_like of datetime64, shape (T, N), optional
            When each forecast was made.

        Raises
        ------
        ShapeError, ArgumentError
            If the arguments do not fit together or are out of range.
        """
        if self.levels:
            own = numbered(np.shape(probabilities)[-1]) if experts is None else experts
            probabilities = in_classes(probabilities, own, self.levels, self.classes)
        q, facts, made = facts_of_rows(probabilities, outcomes, sample_weight, prior, len(self.classes), topics, times)
        n, state = q.shape[1], self._state
        names = numbered(n) if experts is None else experts
        if not isinstance(names, tuple) or names not in state.columns.sets:
            names = names_given(names, "experts", ExpertError)
            check_distinct(names)
        if len(names) != n:
            raise ShapeError(f"{n} columns need as many names of experts, not {len(names)}")
        if self.half_life is not None or at is not None:
            known = facts.outcomes >= 0
            given = None if at is None else times_of(at, len(q))[known]
            clock, facts.at[known] = state.clock.tell(int(known.sum()), given)
            state = state._replace(clock=clock)
        self._state = state.with_rows(q, names, facts, made)

    def merge(self, other: Stream) -> Stream:
        """Return a stream with the events of both; their order and division between the two have no influence.

        Raises
        ------
        ArgumentError
            If their settings differ, they share a resolved event, or the half-life is a number of events, which is
            undefined for two streams in parallel (give times of resolution instead).
        """
        if not isinstance(other, Stream):
            raise ArgumentError(f"a stream is merged with another one, and not with a {type(other).__name__}")
        if self._settings() != other._settings():
            raise ArgumentError(
                "streams can be merged if they have the same classes, prior, half-life, capacity, seed and floors"
            )
        merged = self._with(self._settled().merge(other._settled()))
        merged.scales = {**self.scales, **other.scales}
        return merged

    def with_classes(self, classes: Sequence[object]) -> Stream:
        """Copy whose K classes have the names `classes`, in order; with the old names unless there are K new ones."""
        other, labels = self.copy(), labels_given(classes, "classes")
        if len(labels) == len(self.classes):
            other._codes = {label: code for code, label in enumerate(labels)}
            other._state = other._state._replace(classes=labels)
        return other

    def _commit(self, state: StreamState, changes: Sequence[Change], at: Mapping[str, float] | None) -> None:
        """Assign `state` after `changes`; newly resolved events get their time from `at`, else from the clock."""
        if at is not None or self.half_life is not None:
            fresh = [change.id for change in changes if change.resolves]
            times = None if at is None else np.array([at[name] for name in fresh], dtype=np.float64)
            clock, moments = state.clock.tell(len(fresh), times)
            when = dict(zip(fresh, moments.tolist(), strict=True))
            changes = [c._replace(new=c.new and c.new._replace(at=when.get(c.id, c.new.at))) for c in changes]
            state = state._replace(clock=clock)
        self._state = state.changed(changes)

    def _code(self, event: str, outcome: object) -> int:
        """Return the outcome of an event as a position among the classes, -1 for None."""
        try:
            return self._codes[outcome]
        except (KeyError, TypeError):
            return int(encode_outcomes([outcome], [self.classes], [event])[0])

    def _settings(self) -> tuple[object, ...]:
        prior = None if self.prior is None else self.prior.tolist()
        return self.classes, prior, self.half_life, self.capacity, self.seed, self.floor, self.pool_floor


def _id(event: object) -> str:
    """Return the id of an event, checked to be a text."""
    if type(event) is not str:
        expect_type(event, (str, int, np.integer), "event")
    return str(event)
