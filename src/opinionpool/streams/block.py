"""Events of a stream: one event, and blocks of events as columns, for sampling, merging, sending and saving."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import CELL, EVENT, Array, Index, Mask, cells_at, end_to_end, taken
from opinionpool.forecasts import Forecasts

Times = npt.NDArray[np.datetime64]
Objects = npt.NDArray[np.object_]
_NEVER = np.datetime64("NaT", "us")
_NAT = np.iinfo(np.int64).min


class Event(NamedTuple):
    """One event with its n forecasts and its outcome."""

    id: str | None  # None for a row that has none
    experts: Index  # (n,), positions of the experts with forecasts
    probabilities: Array  # (n,), or (n, K) when K > 2; NaN withdraws a forecast
    prior: Array | None = None  # (), or (K,) when K > 2; prior of this event, if it has its own
    outcome: int = -1  # -1 where not resolved
    weight: float = 1.0  # number of times that the event counts
    at: float = 0.0  # when it was resolved, in the unit of the stream's half-life
    # time, group, settled, topic, made, asked: as in `opinionpool.forecasts.Forecasts`
    time: np.datetime64 | None = None
    group: str | None = None
    settled: bool = False
    topic: str | None = None
    made: Times | None = None  # (n,)
    asked: np.datetime64 | None = None

    def without_forecasts(self) -> Event:
        """Return a copy of the event without forecasts."""
        return self._replace(experts=self.experts[:0], probabilities=self.probabilities[:0], made=None)

    def revised(self, other: Event, *, by_time: bool = False) -> Event:
        """Return this event updated by `other`; if `by_time`, older forecasts do not replace an expert's later ones."""
        if other is self or not len(other.experts):
            cells = self.experts, self.probabilities, self.made
        elif self.made is not None or other.made is not None:
            cells = _merged_cells(self, other, by_time=by_time)
        elif self.experts is other.experts:
            cells = other.experts, other.probabilities, None
        else:
            kept = ~np.isin(self.experts, other.experts)
            experts = np.concatenate([self.experts[kept], other.experts])
            cells = experts, np.concatenate([self.probabilities[kept], other.probabilities]), None
        new = other._replace(
            experts=cells[0],
            probabilities=cells[1],
            prior=self.prior if other.prior is None else other.prior,
            time=self.time if other.time is None else other.time,
            settled=self.settled if other.time is None else other.settled,
            group=self.group if other.group is None else other.group,
            topic=self.topic if other.topic is None else other.topic,
            made=cells[2],
            asked=self.asked if other.asked is None else other.asked,
        )
        if not math.isnan(np.vdot(new.probabilities, new.probabilities)):
            return new
        return new.select(~np.isnan(new.probabilities.reshape(len(new.experts), -1)[:, 0]))

    def select(self, cells: Mask) -> Event:
        """Return a copy of the event with only the forecasts that the mask `cells` (n,) marks."""
        return self._replace(
            experts=self.experts[cells],
            probabilities=self.probabilities[cells],
            made=None if self.made is None else self.made[cells],
        )

    def times_made(self) -> Times:
        """Return the times at which the forecasts were made, (n,), NaT where unknown."""
        return np.full(len(self.experts), _NEVER) if self.made is None else self.made


def _merged_cells(one: Event, other: Event, *, by_time: bool) -> tuple[Index, Array, Times]:
    """Experts, forecasts and their times, (n,) each, of the event `one` updated by `other`; see `Event.revised`."""
    standing: dict[int, tuple[int, Array]] = {}
    for event in (one, other):
        stamps = event.times_made().astype("datetime64[us]").astype(np.int64).tolist()
        for expert, cell in zip(event.experts.tolist(), zip(stamps, event.probabilities, strict=True), strict=True):
            if by_time and expert in standing and _NAT < cell[0] < standing[expert][0]:
                continue
            standing.pop(expert, None)
            standing[expert] = cell
    made, values = zip(*standing.values(), strict=True)
    stamps = np.array(made, dtype=np.int64).astype("datetime64[us]")
    return np.array(list(standing), dtype=np.intp), np.array(values), stamps


@lru_cache(maxsize=1 << 12)
def event_key(event: str, seed: int) -> int:
    """Return a hash (64 bits) of the event's id, keyed by `seed`."""
    mixed = hashlib.blake2b(event.encode("utf-8", "surrogatepass"), digest_size=8, key=seed.to_bytes(8, "little"))
    return int.from_bytes(mixed.digest(), "little")


@dataclass(frozen=True, eq=False)
class EventBlock:
    """T events as columns, with the columns of their M forecasts, which are ordered by event.

    An optional column is None if it has no values; otherwise a missing value is NaN, NaT, False, or None among texts.

    Examples
    --------
    >>> f = Forecasts.from_array([[0.9, np.nan], [0.2, 0.3]], [1, None], events=["a", "b"])
    >>> block = EventBlock.of(f, np.array([0, 1]))
    >>> block.sizes.tolist(), [event.outcome for event in block]
    ([1, 2], [1, -1])
    """

    ids: Objects = field(metadata=EVENT)  # (T,), None for a row without one
    sizes: Index = field(metadata=EVENT)  # (T,), number of forecasts for each event
    experts: Index = field(metadata=CELL)  # (M,), position of the expert
    probabilities: Array = field(metadata=CELL)  # (M,), or (M, K) when K > 2
    priors: Array | None = field(metadata=EVENT)  # (T,), or (T, K) when K > 2
    outcomes: Index = field(metadata=EVENT)  # (T,), -1 where not resolved
    weights: Array = field(metadata=EVENT)  # (T,), number of times that each event counts
    at: Array = field(metadata=EVENT)  # (T,), when each was resolved, in the unit of the half-life
    # the rest as in `opinionpool.forecasts.Forecasts`
    times: Times | None = field(default=None, metadata=EVENT)
    groups: Objects | None = field(default=None, metadata=EVENT)
    settled: Mask | None = field(default=None, metadata=EVENT)
    topics: Objects | None = field(default=None, metadata=EVENT)
    made: Times | None = field(default=None, metadata=CELL)
    asked: Times | None = field(default=None, metadata=EVENT)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def room_taken(self) -> Index:
        """Number of events, 1, and number of forecast probabilities that each event adds to a sample, (T, 2)."""
        return np.column_stack([np.ones_like(self.sizes), self.sizes * (self.probabilities[:1].size or 1)])

    def __getstate__(self) -> dict[str, Any]:
        """Return the columns for pickling, in small integer types; a column of equal values becomes one number."""
        state: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        t, n = len(self), int(self.sizes[:1].sum())
        if (self.sizes == n).all() and np.array_equal(self.experts, np.tile(np.arange(n), t)):
            state["experts"] = n
        for name, column in state.items():
            if isinstance(column, np.ndarray) and column.dtype.kind == "i" and len(column):
                state[name] = column.astype(np.result_type(*map(np.min_scalar_type, (column.min(), column.max()))))
            elif name in {"weights", "at"} and len(column) and (column == column[0]).all():
                state[name] = float(column[0])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        t = len(state["ids"])
        if isinstance(state["experts"], int):
            state["experts"] = np.tile(np.arange(state["experts"]), t)
        for name, column in state.items():
            if isinstance(column, float):
                state[name] = np.full(t, column)
            elif name in {"sizes", "experts", "outcomes"}:
                state[name] = column.astype(np.intp)
        self.__dict__.update(state)

    @classmethod
    def of(cls, forecasts: Forecasts, columns: Index) -> EventBlock:
        """Return the events of `forecasts` as a block; `columns` (N,) has the experts' positions in the stream."""
        t = len(forecasts.events)
        return cls(
            np.array(forecasts.events, dtype=object), forecasts.crowd, columns[forecasts.expert_index],
            forecasts.probabilities, forecasts.prior, forecasts.outcomes, np.ones(t), np.zeros(t), forecasts.times,
            _objects(forecasts.groups), forecasts.settled, _objects(forecasts.topics), forecasts.made, forecasts.asked,
        )  # fmt: skip

    @classmethod
    def of_events(cls, events: Sequence[Event], classes: int) -> EventBlock:
        """Return a block with the same events as the list `events`."""
        shape = () if classes == 2 else (classes,)
        facts: dict[str, Any] = {
            name: _column([getattr(event, own) for event in events], _BLANKS[name], shape if name == "priors" else ())
            for name, own in _FACTS.items()
        }
        timed = any(event.made is not None for event in events)
        return cls(
            ids=np.array([event.id for event in events], dtype=object),
            sizes=np.array([len(event.experts) for event in events], dtype=np.intp),
            experts=np.concatenate([np.empty(0, np.intp), *(event.experts for event in events)]),
            probabilities=np.concatenate([np.empty((0, *shape)), *(event.probabilities for event in events)]),
            outcomes=np.array([event.outcome for event in events], dtype=np.intp),
            weights=np.array([event.weight for event in events], dtype=np.float64),
            at=np.array([event.at for event in events], dtype=np.float64),
            made=np.concatenate([event.times_made() for event in events]) if timed else None,
            **facts,
        )

    @classmethod
    def facts(cls, ids: Objects, outcomes: Index, weights: Array, like: Array, **columns: Any) -> EventBlock:  # noqa: ANN401
        """Block of T events without forecasts; `like` is an array (T, N), or (T, N, K) for K > 2 classes."""
        t, none = len(ids), np.empty(0, np.intp)
        columns = {"priors": None, "at": np.zeros(t), **columns}
        cells = np.empty((0, *like.shape[2:]))
        return cls(
            ids=ids, sizes=np.zeros(t, np.intp), experts=none, probabilities=cells, outcomes=outcomes, weights=weights,
            **columns,
        )  # fmt: skip

    def with_rows(self, q: Array, columns: Index, made: Times | None = None) -> EventBlock:
        """Return a block of these events with forecasts `q`, (T, N) or (T, N, K), by the experts `columns` (N,)."""
        answered = ~np.isnan(q if q.ndim == 2 else q[..., 0])
        if answered.all():
            sizes, experts, cells = np.full(len(q), q.shape[1]), np.tile(columns, len(q)), q.reshape(-1, *q.shape[2:])
        else:
            sizes, experts, cells = answered.sum(axis=1), columns[answered.nonzero()[1]], q[answered]
        return replace(
            self, sizes=sizes, experts=experts, probabilities=cells, made=None if made is None else made[answered]
        )

    def take(self, rows: Index | Mask) -> EventBlock:
        """Return a block of the events `rows`, which are positions (in this order) or a mask."""
        rows = np.arange(len(self))[rows]
        return EventBlock(**taken(self, event=rows, cell=cells_at(self.sizes, rows)))

    @classmethod
    def joined(cls, parts: Sequence[EventBlock]) -> EventBlock:
        """Return the concatenation of the blocks `parts`."""
        if len(parts) == 1:
            return parts[0]
        sizes = {"event": [len(part) for part in parts], "cell": [len(part.experts) for part in parts]}
        return cls(**end_to_end(parts, **sizes))

    def __iter__(self) -> Iterator[Event]:
        """Yield the events one by one."""
        ends = np.append(0, np.cumsum(self.sizes)).tolist()
        facts = {own: _values(getattr(self, name)) for name, own in _FACTS.items()}
        for t, (name, outcome, weight, at) in enumerate(
            zip(self.ids.tolist(), self.outcomes.tolist(), self.weights.tolist(), self.at.tolist(), strict=True)
        ):
            cells = slice(ends[t], ends[t + 1])
            own = {each: values[t] for each, values in facts.items() if values is not None}
            yield Event(
                name, self.experts[cells], self.probabilities[cells], outcome=outcome, weight=weight, at=at,
                made=None if self.made is None else self.made[cells],
                **own,
            )  # fmt: skip

    def dense(self, experts: int) -> Array:
        """Return the forecasts of all N = `experts` experts, (T, N), or (T, N, K), NaN where missing."""
        found = np.full((len(self), experts, *self.probabilities.shape[1:]), np.nan)
        found[np.repeat(np.arange(len(self)), self.sizes), self.experts] = self.probabilities
        return found

    def forecasts(self, experts: Sequence[str], classes: tuple[object, ...]) -> Forecasts:
        """Return the events as a `Forecasts` by all `experts`."""
        ids = [f"row {t + 1}" if name is None else name for t, name in enumerate(self.ids.tolist())]
        return Forecasts(
            events=tuple(ids),
            experts=tuple(experts),
            classes=classes,
            event_index=np.repeat(np.arange(len(self)), self.sizes),
            expert_index=self.experts,
            probabilities=self.probabilities,
            outcomes=self.outcomes,
            prior=self.priors,
            times=self.times,
            groups=_texts(self.groups),
            settled=self.settled if self.settled is not None and self.settled.any() else None,
            topics=_texts(self.topics),
            made=self.made,
            asked=self.asked,
        )


# Columns of facts about events, and what an `Event` calls them.
_FACTS = {
    "priors": "prior", "times": "time", "groups": "group", "settled": "settled", "topics": "topic", "asked": "asked",
}  # fmt: skip
_BLANKS: Mapping[str, Any] = {
    "priors": np.nan, "times": _NEVER, "groups": None, "settled": False, "topics": None, "made": _NEVER,
    "asked": _NEVER,
}  # fmt: skip


def _column(values: Sequence[Any], blank: Any, shape: tuple[int, ...]) -> Any:  # noqa: ANN401 - an array or None
    """Return `values` as an array with one value for each event, `blank` for None; None if all values are None."""
    if all(value is None or value is False for value in values):
        return None
    kind: Any = {float: np.float64, bool: bool, np.datetime64: "datetime64[us]"}.get(type(blank), object)
    filler = np.full(shape, blank) if shape else blank
    return np.array([filler if value is None else value for value in values], dtype=kind)


def _values(column: npt.NDArray[Any] | None) -> Sequence[Any] | None:
    """Return the values of a column as a list, None where missing; None if there is no column."""
    if column is None or column.dtype.kind in "bO":
        return None if column is None else column.tolist()
    missing = (np.isnat(column) if column.dtype.kind == "M" else np.isnan(column)).reshape(len(column), -1).any(axis=1)
    return [None if blank else np.asarray(each)[()] if column.dtype.kind == "M" else np.asarray(each)
            for each, blank in zip(column, missing.tolist(), strict=True)]  # fmt: skip


def _objects(texts: npt.NDArray[np.str_] | None) -> Objects | None:
    """Return texts as Python objects, with None for an empty text; None if there is no column."""
    if texts is None:
        return None
    return np.array([str(text) or None for text in texts.tolist()], dtype=object)


def _texts(column: Objects | None) -> npt.NDArray[np.str_] | None:
    """Return a column of Python objects as texts, empty where None; None if all are missing."""
    if column is None or not any(column):
        return None
    return np.array([text or "" for text in column.tolist()], dtype="str")
