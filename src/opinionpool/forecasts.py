"""The container of forecasts: who forecast what for which event, and the outcomes.

A cell is one forecast by one expert for one event. Cells have the given values, including exact 0 and 1; events and
experts without forecasts stay. A dense array, events x experts with NaN where a forecast is missing, is made on demand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arguments import brief, expect_type, labels_given, names_given
from opinionpool.arrays import CELL, EVENT, Array, Index, Mask, cells_at, end_to_end, pairs_increase, read_only, taken
from opinionpool.blocks import blocks
from opinionpool.display import Tabular
from opinionpool.errors import DuplicateError, ExpertError, Note, OutcomeError, ProbabilityError, ShapeError
from opinionpool.labels import (
    UNRESOLVED,
    Options,
    check_options,
    classes_of,
    encode_outcomes,
    event_labels,
    halves,
    option_slots,
    padded,
    read_labels,
    uniform_probabilities,
)
from opinionpool.logodds import LEAST, check_probabilities, normalised
from opinionpool.names import check_distinct, numbered, places, repeated
from opinionpool.scales import Scale, coded, own_scales, scales_given, towards, without_ties
from opinionpool.text import listed, shown

# Numbers in a dense block of events x experts.
BLOCK = 1 << 21

# Label of a tie: an outcome that is half of each of two classes.
TIE = "tie"


class _Distinct(tuple[str, ...]):
    """Event ids known to be all different, so that a copy of the forecasts does not compare them again."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, repr=False)
class Forecasts(Tabular):
    """Forecasts by N experts on T events with K classes: M forecasts, each of which is a cell.

    Attributes
    ----------
    events : tuple of str
        T event ids, in input order.
    experts : tuple of str
        N expert names, in order of first appearance.
    classes : tuple
        K labels. A binary forecast is the probability of ``classes[1]``. Where events have options of their own, names
        of positions among the options, such as "option 1".
    event_index, expert_index : ndarray of int, shape (M,)
        The event and the expert of each cell, ordered by event.
    probabilities : ndarray, shape (M,), or (M, K) when K > 2
        The forecasts.
    outcomes : ndarray of int, shape (T,)
        Position in `classes` of what happened, -1 where not resolved.
    prior : ndarray or None, shape (T,), or (T, K) when K > 2
        The reference prior of each event, NaN where blank; None if no event has one.
    times : ndarray of datetime64 or None, shape (T,)
        Time when each outcome is known: when the event was resolved, if not known when it closed, else when the last
        forecast was made; NaT where unknown.
    settled : ndarray of bool or None, shape (T,)
        True if `times` is when the event closed or was resolved (events that share such a day may depend on each
        other), False if it is when forecasts were made. None: False for all events.
    groups : ndarray of str or None, shape (T,)
        Group of each event, for grouped evaluation.
    texts : tuple of str or None, length T
        Text of each event for people, such as the wording of a question; empty if not given.
    topics : ndarray of str or None, shape (T,)
        Topic of each event, "" where unknown: pools may learn how topics differ.
    made : ndarray of datetime64 or None, shape (M,)
        Time when each forecast was made, NaT where unknown.
    asked : ndarray of datetime64 or None, shape (T,)
        Time as of which each event is answered; NaT or None: time of its newest forecast. Forward evaluation learns
        only from outcomes known before the earlier of `asked` and `times`.
    notes : tuple of Note
        Notes on values that were converted or dropped.
    options : tuple of tuple or None
        Labels of each event's own options, two to K of them; None if all events have the same classes. If an event has
        fewer than K options, the last positions are 0.
    closes : ndarray of datetime64 or None, shape (T,)
        Time when each event closes; NaT where unknown.
    void : Forecasts or None
        Annulled events, which are not among the T events, with their forecasts.
    history : History or None
        Forecasts at every moment until the events closed, if requested.
    scales : mapping of str to Scale
        Scales of experts who give levels, which were converted to `probabilities`.
    ties : ndarray of bool or None, shape (T,)
        True if the outcome is half of each of two classes, such as a preference for neither of A and B.

    Examples
    --------
    >>> f = Forecasts.from_array([[0.9, 0.7], [0.2, float("nan")]], [1, None], experts=["ann", "bob"])
    >>> f.shape, f.resolved.tolist(), f.counts.tolist()
    ((2, 2), [True, False], [2, 1])
    """

    events: tuple[str, ...] = field(metadata=EVENT)
    experts: tuple[str, ...]
    classes: tuple[object, ...]
    event_index: Index = field(metadata=CELL)
    expert_index: Index = field(metadata=CELL)
    probabilities: Array = field(metadata=CELL)
    outcomes: npt.NDArray[np.intp] = field(metadata=EVENT)
    prior: Array | None = field(default=None, metadata=EVENT)
    times: npt.NDArray[np.datetime64] | None = field(default=None, metadata=EVENT)
    groups: npt.NDArray[np.str_] | None = field(default=None, metadata=EVENT)
    notes: tuple[Note, ...] = field(default=())
    options: Options | None = field(default=None, metadata=EVENT)
    settled: npt.NDArray[np.bool_] | None = field(default=None, metadata=EVENT)
    closes: npt.NDArray[np.datetime64] | None = field(default=None, metadata=EVENT)
    void: Forecasts | None = None
    texts: tuple[str, ...] | None = field(default=None, metadata=EVENT)
    topics: npt.NDArray[np.str_] | None = field(default=None, metadata=EVENT)
    history: History | None = field(default=None, metadata=EVENT)
    made: npt.NDArray[np.datetime64] | None = field(default=None, metadata=CELL)
    asked: npt.NDArray[np.datetime64] | None = field(default=None, metadata=EVENT)
    scales: Mapping[str, Scale] = field(default_factory=dict)
    ties: Mask | None = field(default=None, metadata=EVENT)

    def __post_init__(self) -> None:
        if not self.experts:
            raise ExpertError("forecasts need at least one expert, and there is none")
        check_distinct(self.experts)
        cells = len(self.event_index)
        expected = (cells,) if len(self.classes) == 2 else (cells, len(self.classes))
        if self.probabilities.shape != expected or len(self.expert_index) != cells:
            raise ShapeError(
                f"{cells} cells of {len(self.classes)} classes need probabilities of shape {expected}, "
                f"not {self.probabilities.shape}"
            )
        if not isinstance(self.events, _Distinct):
            twice = repeated(self.events)
            if twice is not None:
                raise DuplicateError(f"event ids must differ, and {shown(twice)} stands twice")
            object.__setattr__(self, "events", _Distinct(self.events))
        if self.made is not None and len(self.made) != cells:
            raise ShapeError(f"{cells} forecasts need as many times, not {len(self.made)}")
        if len(self.outcomes) != len(self.events):
            raise ShapeError(f"{len(self.events)} events need as many outcomes, not {len(self.outcomes)}")
        increasing = pairs_increase(self.event_index, self.expert_index)
        if not increasing and (self.event_index[1:] < self.event_index[:-1]).any():
            raise ShapeError("cells must be ordered by event")
        check_probabilities(self.probabilities)
        if self.options is not None:
            check_options(self.options, self.events)
        if increasing:
            return
        keys = self.event_index.astype(np.int64) * max(len(self.experts), 1) + self.expert_index
        unique, counts = np.unique(keys, return_counts=True)
        if len(unique) != cells:
            event, expert = divmod(int(unique[counts > 1][0]), len(self.experts))
            raise DuplicateError(
                f"each expert may have one forecast per event, and expert {self.experts[expert]!r} has "
                f"{int(counts.max())} on event {self.events[event]!r}"
            )

    def _table(self) -> dict[str, list[Any]]:
        """Return columns with a row for each forecast, or if K > 2 for each forecast and class."""
        several = self.probabilities.ndim > 1
        k = self.probabilities.shape[1] if several else 1
        happened = self.happened
        table: dict[str, list[Any]] = {
            "event": [self.events[t] for t in self.event_index.tolist() for _ in range(k)],
            "expert": [self.experts[i] for i in self.expert_index.tolist() for _ in range(k)],
        }
        if several:
            own = [self.classes if self.options is None else self.options[t] for t in self.event_index.tolist()]
            table["class"] = [label for labels in own for label in (*labels, *[None] * (k - len(labels)))]
        outcomes = [happened[t] for t in self.event_index.tolist() for _ in range(k)]
        return table | {"probability": self.probabilities.ravel().tolist(), "outcome": outcomes}

    def __repr__(self) -> str:
        t, n = self.shape
        cells, resolved = len(self.event_index), int(self.resolved.sum())
        classes = f"classes=({listed(self.classes)})"
        if self.options is not None:
            classes = f"options={self.sizes.min(initial=len(self.classes))} to {len(self.classes)}"
        return f"Forecasts(events={t}, resolved={resolved}, experts={n}, {classes}, forecasts={cells})"

    @classmethod
    def from_array(  # noqa: PLR0913 - what each event or expert has
        cls,
        probabilities: npt.ArrayLike,
        outcomes: Sequence[object] | npt.ArrayLike | None = None,
        *,
        events: Sequence[str] | None = None,
        experts: Sequence[str] | None = None,
        classes: Sequence[object] | None = None,
        prior: npt.ArrayLike | None = None,
        options: Sequence[Sequence[object]] | None = None,
        topics: Sequence[object] | npt.ArrayLike | None = None,
        groups: Sequence[object] | npt.ArrayLike | None = None,
        times: npt.ArrayLike | None = None,
        scale: object = None,
    ) -> Forecasts:
        """Return forecasts from a dense array.

        Parameters
        ----------
        probabilities : array_like or data frame, shape (T, N); when K > 2 (T, N, K), or (T, N K) expert by expert
            NaN where a forecast is missing.
        outcomes : sequence, length T, optional
            Members of `classes`, or of the event's options; None or NaN where not resolved. All unresolved if not
            given.
        events, experts : sequence of str, optional
            Names; ``event_1`` ... and ``expert_1`` ... if not given. The columns of a data frame name its experts.
        classes : sequence, optional
            The K labels. If not given, the sorted distinct outcomes; 0 and 1 if no other outcome occurs, or none is
            known.
        prior : array_like, shape (), (T,), or (K,), (T, K) when K > 2, optional
            The reference prior of each event.
        options : sequence of sequences, length T, optional
            Labels of each event's own options, where events do not share their classes. K is then the length of the
            longest; positions that an event does not use hold 0 or NaN.
        topics : sequence of str, length T, optional
            What each event is about; None or NaN where unknown.
        groups : sequence of str, length T, optional
            What events share that may make their outcomes dependent; None or NaN where nothing.
        times : array_like of datetime64, shape (T,), optional
            When each event closed or was resolved; NaT where unknown.
        scale : str, sequence or mapping, optional
            Levels that experts give in place of probabilities, such as ``"1-10"`` or ``("no", "unsure", "yes")``; if
            only some experts give levels, a mapping such as ``{"judge_a": "1-5"}``.

        Raises
        ------
        ShapeError, ProbabilityError, OutcomeError, ExpertError
            If there is no expert, or the arguments do not fit together or are out of range.
        """
        columns = getattr(probabilities, "columns", None) if experts is None and np.ndim(probabilities) == 2 else None
        scales, ties = scales_given(scale), None
        if scales:
            experts, columns = experts if columns is None else [*map(str, columns)], None
            experts = names_given(experts or numbered(np.shape(probabilities)[-1]), "experts", ExpertError)
            own_scales(scales, experts)
            outcomes, ties = without_ties(outcomes, scales)
            seen = _seen_classes(outcomes, 2) if classes is None else labels_given(classes, "classes", OutcomeError)
            probabilities = coded(probabilities, experts, scales)
            probabilities, classes, scales = towards(probabilities, experts, scales, seen)
        array = check_probabilities(probabilities)
        sets = None if options is None else _sets(options)
        if sets is not None:
            classes = option_slots(sets)
        elif classes is None:
            classes = _seen_classes(outcomes, array.ndim)
        else:
            classes = labels_given(classes, "classes", OutcomeError)
        if len(classes) < 2 or len(set(classes)) < len(classes):
            raise OutcomeError(f"classes must be at least two different labels, not {brief(classes)}")
        wanted = 2 if len(classes) == 2 else 3
        if wanted == 3 and array.ndim == 2 and array.shape[1] % len(classes) == 0:
            array, columns = array.reshape(len(array), -1, len(classes)), None
        experts = [str(name) for name in columns] if columns is not None else experts
        if array.ndim != wanted or (wanted == 3 and array.shape[2] != len(classes)):
            raise ShapeError(f"forecasts of {len(classes)} classes need {wanted} axes, not shape {array.shape}")
        t, n = array.shape[:2]
        names = names_given(events, "events", ShapeError) if events is not None else numbered(t, "event")
        if sets is not None:
            check_options(sets, names)
        if wanted == 3:
            array, _ = normalised(array if sets is None else padded(array, _lengths(sets), names))
        rows, columns, cells = cells_of(array)
        if prior is not None:
            prior = _spread(prior, (t,) if wanted == 2 else (t, len(classes)))
        when = None if times is None else _event_times(times, t)
        return cls(
            events=names,
            experts=names_given(experts, "experts", ExpertError) if experts is not None else numbered(n),
            classes=classes,
            event_index=rows,
            expert_index=columns,
            probabilities=cells,
            outcomes=encode_outcomes(outcomes, repeat(classes) if sets is None else sets, names),
            prior=prior,
            options=sets,
            topics=None if topics is None else event_labels(topics, t, "topics"),
            groups=None if groups is None else event_labels(groups, t, "groups"),
            times=when,
            settled=None if when is None else ~np.isnat(when),
            scales=scales,
            ties=ties,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of events and experts, (T, N)."""
        return len(self.events), len(self.experts)

    @property
    def resolved(self) -> npt.NDArray[np.bool_]:
        """True for events whose outcome is known, (T,)."""
        return np.asarray(self.outcomes != UNRESOLVED)

    @property
    def sizes(self) -> Index:
        """Number of options or classes of each event, (T,)."""
        if self.options is None:
            return np.full(len(self.events), len(self.classes))
        return _lengths(self.options)

    @property
    def even(self) -> Array | None:
        """Equal probabilities of each event's own options, (T, K), 0 elsewhere; None if all events share classes."""
        return None if self.options is None else uniform_probabilities(self.sizes, len(self.classes))

    @property
    def happened(self) -> list[object]:
        """Label of each event's outcome, None if not resolved."""
        codes = (self.outcomes if self.ties is None else np.where(self.ties, len(self.classes), self.outcomes)).tolist()
        if self.options is None:
            labels = [*self.classes, TIE, None]
            return [labels[code] for code in codes]
        return [own[code] if code >= 0 else None for own, code in zip(self.options, codes, strict=True)]

    @property
    def ended(self) -> Mask:
        """True for events that are resolved or tied, (T,)."""
        return self.resolved if self.ties is None else self.resolved | self.ties

    def halved(self) -> tuple[Forecasts, Index, Array]:
        """Copy in which each tie is two events of weight ½, and each new event's old position and weight, (S,)."""
        t = len(self.events)
        if self.ties is None or not self.ties.any():
            return self, np.arange(t), np.ones(t)
        event, outcomes, share = halves(self.outcomes, self.ties)
        again = [*np.append(False, event[1:] == event[:-1]).tolist()]
        names = tuple(f"{self.events[t]} ½" if two else self.events[t] for t, two in zip(event, again, strict=True))
        return self._on(event, events=names, outcomes=outcomes, ties=None), event, share

    def question(self, t: int) -> str:
        """Return the text of event `t`, or its id if it has no text."""
        return (self.texts[t] if self.texts else "") or self.events[t]

    @cached_property
    def counts(self) -> npt.NDArray[np.intp]:
        """Number of forecasts by each expert, (N,)."""
        return read_only(np.bincount(self.expert_index, minlength=len(self.experts)))

    @cached_property
    def resolved_counts(self) -> npt.NDArray[np.intp]:
        """Number of forecasts by each expert for resolved events, (N,)."""
        found = np.zeros(len(self.experts), dtype=np.intp)
        resolved = self.resolved
        for cells in blocks(len(self.event_index), 1):
            expert = self.expert_index[cells][resolved[self.event_index[cells]]]
            found += np.bincount(expert, minlength=len(found))
        return read_only(found)

    @cached_property
    def crowd(self) -> npt.NDArray[np.intp]:
        """Number of forecasts on each event, (T,)."""
        return read_only(np.bincount(self.event_index, minlength=len(self.events)))

    @property
    def starts(self) -> npt.NDArray[np.intp]:
        """Position of each event's first forecast, and the number of all forecasts at the end, (T + 1,)."""
        return np.append(0, np.cumsum(self.crowd))

    @property
    def ages(self) -> Array:
        """Age in days of each forecast, (M,), at the time for which its event is answered; NaN where unknown."""
        if self.made is None:
            return np.full(len(self.event_index), np.nan)
        newest = np.full(len(self.events), np.iinfo(np.int64).min)
        np.maximum.at(newest, self.event_index, self.made.astype("datetime64[us]").astype(np.int64))
        # The smallest integer is NaT.
        asked = newest.astype("datetime64[us]")
        if self.asked is not None:
            asked = np.where(np.isnat(self.asked), asked, self.asked)
        return np.asarray((asked[self.event_index] - self.made) / np.timedelta64(1, "D"), dtype=np.float64)

    @cached_property
    def X(self) -> Array:
        """Forecasts as a dense array (T, N), or (T, N, K) if K > 2; NaN where missing."""
        return read_only(self.dense())

    def dense(self, rows: slice = slice(None), experts: Sequence[str] | None = None, *, ages: bool = False) -> Array:
        """Return forecasts on the events `rows`, or their `ages`, as an array (T, N) or (T, N, K); NaN if missing."""
        expect_type(rows, slice, "rows")
        if rows.indices(len(self.events))[2] != 1:
            raise ShapeError(f"rows must be a run of events, one after the other, and it is {rows}")
        if experts is not None and (experts := names_given(experts, "experts", ExpertError)) != self.experts:
            known = set(experts)
            lacking = [name for name in self.experts if name not in known]
            if lacking:
                raise ExpertError(
                    f"experts must name all who have forecasts, and {shown(lacking[0])} is not among them"
                )
        values, experts = self.ages if ages else self.probabilities, self.experts if experts is None else experts
        first, last, _ = rows.indices(len(self.events))
        cells = slice(*np.searchsorted(self.event_index, (first, last)))
        column = self.expert_index[cells]
        if experts != self.experts:
            column = places(self.experts, experts)[column]
        size = (last - first, len(experts))
        if len(column) == size[0] * size[1] and (column.reshape(size) == np.arange(size[1])).all():
            # Nothing is missing.
            return values[cells].reshape(*size, *values.shape[1:]).copy()
        found = np.full((*size, *values.shape[1:]), np.nan)
        found[self.event_index[cells] - first, column] = values[cells]
        return found

    def dense_blocks(
        self, experts: Sequence[str], *values: npt.ArrayLike | None, numbers: int = BLOCK
    ) -> Iterator[tuple[slice, Array, list[npt.ArrayLike | None]]]:
        """Yield for each block of events: its slice, its `dense` array of at most `numbers` numbers, and its `values`.

        Each of `values` is a prior or base rate: one for all events, one for each event, or None.
        """
        axes = self.probabilities.ndim
        size = max(1, numbers // (len(experts) * len(self.classes)))
        for start in range(0, len(self.events), size):
            rows = slice(start, start + size)
            own = [value if value is None or np.ndim(value) < axes else np.asarray(value)[rows] for value in values]
            yield rows, self.dense(rows, experts), own

    @classmethod
    def joined(cls, parts: Sequence[Forecasts]) -> Forecasts:
        """Return `parts`, by the same experts on different events, as one object; its `void` and `history` are None."""
        events, cells = ([len(part.events) for part in parts], [len(part.event_index) for part in parts])
        found = end_to_end(parts, event=events, cell=cells)
        starts = np.repeat(np.cumsum([0, *events[:-1]]), cells)
        found |= {"event_index": found["event_index"] + starts, "void": None, "notes": ()}
        return replace(parts[0], **found)

    def select_events(self, keep: npt.ArrayLike) -> Forecasts:
        """Return the forecasts for the events `keep`: a mask, or positions in the order wanted."""
        return self._on(_kept(keep, len(self.events)))

    def _on(self, positions: Index, **changes: Any) -> Forecasts:  # noqa: ANN401 - fields
        """Return the forecasts on the events at `positions`, with the fields in `changes` replaced."""
        chosen = taken(self, event=positions, cell=cells_at(self.crowd, positions))
        index = np.repeat(np.arange(len(positions)), self.crowd[positions])
        return replace(self, **chosen | {"event_index": index} | changes)

    def select_experts(self, names: Sequence[str]) -> Forecasts:
        """Return the forecasts by the experts `names`, in this order; all events stay.

        Raises
        ------
        ExpertError
            If `names` is empty, or has an unknown expert.
        """
        names = names_given(names, "names", ExpertError)
        new = np.full(len(self.experts), -1)
        new[places(names, self.experts)] = np.arange(len(names))
        kept = new[self.expert_index] >= 0
        history = self.history and replace(self.history, forecasts=self.history.forecasts.select_experts(names))
        chosen = taken(self, cell=kept) | {"expert_index": new[self.expert_index[kept]]}
        return replace(self, experts=tuple(names), history=history, **chosen)

    def by_experts(self, names: Sequence[str]) -> Forecasts:
        """Return the forecasts with the experts `names`, in this order, some of whom may have no forecasts."""
        return replace(self, experts=tuple(names), expert_index=places(self.experts, names)[self.expert_index])


@dataclass(frozen=True, eq=False)
class History:
    """Forecasts over time: S intervals in the lives of events, during which no forecast on the event changes.

    Attributes
    ----------
    forecasts : Forecasts
        Forecasts in each interval; its "events" are the S intervals.
    event : ndarray of int, shape (S,)
        Position of the event of each interval.
    share : ndarray, shape (S,)
        Length of each interval, as a share of the time from the event's first forecast until it closed or was resolved.
    begin : ndarray of datetime64, shape (S,)
        Time when each interval begins.
    """

    forecasts: Forecasts
    event: Index
    share: Array
    begin: npt.NDArray[np.datetime64]

    def select(self, positions: Index) -> History:
        """Return the history of the events at `positions`, in this order."""
        place = np.full(max(self.event.max(initial=-1), positions.max(initial=-1)) + 1, -1)
        place[positions] = np.arange(len(positions))
        kept = np.flatnonzero(place[self.event] >= 0)
        kept = kept[np.argsort(place[self.event[kept]], kind="stable")]
        forecasts = self.forecasts.select_events(kept)
        return History(forecasts, place[self.event[kept]], self.share[kept], self.begin[kept])


def cells_of(array: Array) -> tuple[Index, Index, Array]:
    """Return the event (M,), expert (M,) and value of each forecast in an array (T, N) or (T, N, K), NaN left out.

    >>> [each.tolist() for each in cells_of(np.array([[0.5, np.nan], [0.25, 0.75]]))]
    [[0, 1, 1], [0, 0, 1], [0.5, 0.25, 0.75]]
    """
    t, n = array.shape[:2]
    absent = np.isnan(array if array.ndim == 2 else array[..., 0])
    if absent.any():
        rows, columns = np.nonzero(~absent)
        return rows, columns, array[rows, columns]
    return np.repeat(np.arange(t), n), np.tile(np.arange(n), t), array.reshape(t * n, *array.shape[2:]).copy()


def _lengths(options: Options) -> Index:
    return np.fromiter(map(len, options), np.intp, len(options))


def _seen_classes(outcomes: Sequence[object] | npt.ArrayLike | None, axes: int) -> tuple[object, ...]:
    """Return the sorted classes of `outcomes`; (0, 1) if none is known, or all are 0 or 1; `axes`: of the forecasts."""
    if outcomes is None:
        return (0, 1)
    given = np.asarray(outcomes, dtype=object if isinstance(outcomes, list | tuple) else None).ravel()
    labels, _ = read_labels(given)
    classes = classes_of(labels, coded=axes == 2).tolist()
    return (0, 1) if classes == [0, 1] else tuple(classes)


def _event_times(times: npt.ArrayLike, events: int) -> npt.NDArray[np.datetime64]:
    """Return the times of the events as datetime64 in microseconds, (T,)."""
    try:
        found = np.asarray(times, dtype="datetime64[us]")
    except (TypeError, ValueError) as error:
        raise ShapeError(f"times must be dates, such as '2025-03-01' or datetime64: {error}") from None
    if found.shape != (events,):
        raise ShapeError(f"{events} events need as many times, not shape {found.shape}")
    return found


def _spread(prior: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return a prior, given once or for each event, as an array of `shape`; NaN for an event without a prior."""
    given = check_probabilities(prior, "prior")
    outside = ~(np.isnan(given) | ((given >= LEAST) & (given < 1)))
    if outside.any():
        raise ProbabilityError(f"a prior must lie strictly between 0 and 1, and one is {given[outside].flat[0]:.15g}")
    try:
        return np.broadcast_to(given, shape).copy()
    except ValueError:
        raise ShapeError(f"the prior must be one or one per event, {shape}, and its shape is {given.shape}") from None


def _sets(options: object) -> Options:
    """Return `options`, the labels of each event's own options, as a tuple of tuples."""
    found = labels_given(options, "options", ShapeError) if not isinstance(options, (list, tuple)) else options
    return tuple(labels_given(labels, "options of each event", ShapeError) for labels in found)


def _kept(keep: npt.ArrayLike, events: int) -> Index:
    """Return the positions of the events `keep`, which is a mask of `events` events, or positions."""
    try:
        chosen = np.asarray(keep)
        positions = np.arange(events)[chosen if chosen.size else chosen.astype(np.intp)]
    except (IndexError, TypeError, ValueError):
        positions = np.zeros(())
    if positions.ndim != 1:
        raise ShapeError(f"keep must be a mask of {events} events, or positions among them, and it is {brief(keep)}")
    return np.asarray(positions, dtype=np.intp)
