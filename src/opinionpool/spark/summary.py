"""What a partition says: sums, counts and a sample, in a form that merges and travels as bytes.

It depends on the rows of the partition alone, so that a task that is run twice, or twice at once, gives the same; and
merging depends on nothing but what is merged: sums to rounding, the sample to the last bit.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.errors import DuplicateError, ProbabilityError
from opinionpool.estimation.sampling import priorities
from opinionpool.names import places
from opinionpool.spark.blocks import CELLS, Block
from opinionpool.streams.events import Record, event_keys
from opinionpool.streams.reservoir import MOST_NUMBERS
from opinionpool.streams.rows import Rows
from opinionpool.streams.stream import Stream
from opinionpool.text import shown

Keys: TypeAlias = npt.NDArray[np.uint64]


@dataclass(eq=False)
class Events:
    """Resolved events by column; `sizes` says how many of the forecasts are on each."""

    ids: npt.NDArray[np.object_]  # (T,)
    keys: Keys  # (T,)
    # outcomes, sizes: (T,)
    outcomes: Index
    sizes: Index
    experts: npt.NDArray[np.int32]  # (M,)
    probabilities: Array  # (M,), or (M, K) when K > 2
    prior: Array  # (T,), or (T, K) when K > 2; NaN where an event has none of its own
    times: npt.NDArray[np.datetime64]  # (T,)
    groups: npt.NDArray[np.object_]  # (T,)
    topics: npt.NDArray[np.object_]  # (T,)

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def of_block(cls, block: Block, keys: Keys, rows: Index, columns: Index) -> Events:
        """Some events of a block; `columns` are the positions of its experts among all."""
        q = block.probabilities[rows]
        given = ~np.isnan(q if q.ndim == 2 else q[..., 0])
        never = np.datetime64("NaT", "us")
        t, blank = len(rows), np.full((len(rows), *q.shape[2:]), np.nan)
        return cls(
            ids=np.array([block.events[row] for row in rows.tolist()], dtype=object),
            keys=keys,
            outcomes=block.outcomes[rows],
            sizes=given.sum(axis=1),
            experts=np.broadcast_to(columns.astype(np.int32), given.shape)[given],
            probabilities=q[given],
            prior=blank if block.prior is None else block.prior[rows],
            times=np.full(t, never) if block.times is None else block.times[rows],
            groups=np.full(t, None, dtype=object) if block.groups is None else block.groups[rows],
            topics=np.full(t, None, dtype=object) if block.topics is None else block.topics[rows],
        )

    def take(self, rows: Index) -> Events:
        """Some of the events, in this order."""
        sizes = self.sizes[rows]
        starts = (np.cumsum(self.sizes) - self.sizes)[rows]
        cells = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
        parts: dict[str, Any] = {name: getattr(self, name)[rows] for name in _NAMES if name not in _CELLS}
        return Events(**parts, experts=self.experts[cells], probabilities=self.probabilities[cells])

    @classmethod
    def joined(cls, parts: list[Events]) -> Events:
        """Several one after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in _NAMES})

    def records(self, columns: Index) -> Iterator[Record]:
        """The events one by one; `columns` are the positions of the experts among those of the stream."""
        ends = np.cumsum(self.sizes).tolist()
        for i, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
            never, blank = bool(np.isnat(self.times[i])), bool(np.isnan(self.prior[i]).any())
            yield Record(
                str(self.ids[i]),
                int(self.keys[i]),
                columns[self.experts[first:last]],
                self.probabilities[first:last],
                None if blank else np.asarray(self.prior[i]),
                int(self.outcomes[i]),
                time=None if never else self.times[i],
                group=self.groups[i],
                topic=self.topics[i] or None,
            )

    def __getstate__(self) -> dict[str, Any]:
        """Without what goes without saying, in small numbers: this is most of what travels."""
        state = {name: getattr(self, name) for name in _NAMES}
        t = len(self)
        n = int(self.sizes[0]) if t else 0
        if (self.sizes == n).all() and np.array_equal(self.experts, np.tile(np.arange(n), t)):
            state["sizes"], state["experts"] = n, None
        else:
            state["sizes"] = self.sizes.astype(np.int32)
            state["experts"] = self.experts.astype(np.min_scalar_type(int(self.experts.max(initial=0))))
        state["outcomes"] = self.outcomes.astype(np.int32)
        for name, known in (
            ("prior", (~np.isnan(self.prior)).any()),
            ("times", (~np.isnat(self.times)).any()),
            *((name, any(each is not None for each in getattr(self, name).tolist())) for name in ("groups", "topics")),
        ):
            if not known:
                state[name] = state[name].shape
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        t = len(state["keys"])
        if state["experts"] is None:
            n = state["sizes"]
            state |= {"sizes": np.full(t, n), "experts": np.tile(np.arange(n, dtype=np.int32), t)}
        state["sizes"], state["experts"] = state["sizes"].astype(np.intp), state["experts"].astype(np.int32)
        state["outcomes"] = state["outcomes"].astype(np.intp)
        for name, blank in _BLANKS.items():
            if isinstance(state[name], tuple):
                state[name] = np.full(state[name], blank)
        self.__dict__.update(state)


_NAMES = tuple(each.name for each in fields(Events))
_CELLS = ("experts", "probabilities")
_NOTHING = np.array(None, dtype=object)
_BLANKS = {"prior": np.array(np.nan), "times": np.datetime64("NaT", "us"), "groups": _NOTHING, "topics": _NOTHING}


class Sample:
    """Of each outcome the events of least priority, as many as there is room for; as `streams.reservoir.Reservoir`.

    Parameters
    ----------
    classes, capacity : int
    """

    def __init__(self, classes: int, capacity: int) -> None:
        self.room, self.numbers = max(1, capacity // classes), max(1, MOST_NUMBERS // classes)
        self.beyond = np.full(classes, np.inf)
        self._parts: list[Events] = []
        self._waiting = 0

    def add(self, block: Block, keys: Keys, rows: Index, columns: Index) -> None:
        """Take in the resolved events of a block, `rows`, with their keys."""
        found = np.flatnonzero(priorities(keys, 0.0) < self.beyond[block.outcomes[rows]])
        if len(found):
            self.join(Events.of_block(block, keys[found], rows[found], columns))

    def join(self, events: Events) -> None:
        """Take in further events."""
        self._parts.append(events)
        self._waiting += len(events)
        if self._waiting > 2 * self.room * len(self.beyond):
            self.events()

    def merge(self, other: Sample, columns: Index) -> None:
        """Take in another sample; `columns` are the positions of its experts among these."""
        self.beyond = np.minimum(self.beyond, other.beyond)
        for part in other._parts:
            part.experts = columns[part.experts].astype(np.int32)
            self.join(part)

    def events(self) -> Events | None:
        """The events that are kept, in the order of their keys; None if there are none.

        Raises
        ------
        DuplicateError
            If an event is among them twice.
        """
        if not self._parts:
            return None
        together = Events.joined(self._parts)
        priority = priorities(together.keys, 0.0)
        chosen = []
        for outcome in range(len(self.beyond)):
            mine = np.flatnonzero((together.outcomes == outcome) & (priority < self.beyond[outcome]))
            mine = mine[np.argsort(priority[mine], kind="stable")]
            numbers = np.cumsum(together.sizes[mine]) * (together.probabilities[:1].size or 1)
            fit = min(self.room, int(np.searchsorted(numbers, self.numbers, side="right")))
            self.beyond[outcome] = min(self.beyond[outcome], priority[mine[fit:]].min(initial=np.inf))
            chosen.append(mine[:fit])
        rows = np.concatenate(chosen)
        rows = rows[np.argsort(together.keys[rows], kind="stable")]
        kept = together.take(rows)
        twice = np.flatnonzero((kept.keys[1:] == kept.keys[:-1]) & (kept.ids[1:] == kept.ids[:-1]))
        if len(twice):
            raise DuplicateError(
                f"each event may have one row, and {shown(kept.ids[twice[0]])} has several; keep one of them"
            )
        self._parts, self._waiting = [kept], 0
        return kept


class Summary:
    """Sums over resolved events, and a sample of them.

    Parameters
    ----------
    experts : sequence of str
        Those that are known beforehand, in their order.
    settings : mapping
        What a `Stream` is made with.
    """

    def __init__(self, experts: Sequence[str], settings: Mapping[str, Any]) -> None:
        self.settings = dict(settings)
        empty = Stream(**self.settings)
        self.tally, self.sample = empty._state.tally, Sample(len(empty.classes), empty.capacity)
        self.seed = empty.seed
        # Resolved events without and with a prior of their own.
        self.priors = np.zeros(2, dtype=np.int64)
        self.tally.join(experts)

    def add(self, block: Block) -> None:
        """Take in a block; events that are not resolved are passed over."""
        rows = np.flatnonzero(block.outcomes >= 0)
        if not len(rows):
            return
        self.tally.join(block.experts)
        columns = places(block.experts, self.tally.experts)
        own = np.zeros(len(rows), dtype=bool)
        if block.prior is not None:
            own = ~np.isnan(block.prior[rows].reshape(len(rows), -1)[:, 0])
        self.priors += len(rows) - own.sum(), own.sum()
        for prior, mine in ((None, rows[~own]), (block.prior, rows[own])):
            size = max(1, CELLS // max(1, len(self.tally.experts)))
            for first in range(0, len(mine), size):
                self._add_up(block, mine[first : first + size], columns, prior)
        keys = event_keys([block.events[row] for row in rows.tolist()], self.seed)
        self.sample.add(block, keys, rows, columns)

    def _add_up(self, block: Block, rows: Index, columns: Index, prior: Array | None) -> None:
        q, tally = block.probabilities, self.tally
        if len(rows) < len(q):
            q = q[rows]
        if len(columns) < len(tally.experts) or (np.diff(columns) != 1).any():
            wide = np.full((len(q), len(tally.experts), *q.shape[2:]), np.nan)
            wide[:, columns] = q
            q = wide
        own = None if prior is None else prior[rows]
        tally.add_rows(Rows(q, block.outcomes[rows], np.ones(len(q)), own))

    def merge(self, other: Summary) -> None:
        """Take in another one, which is used up."""
        self.tally.merge(other.tally)
        self.priors += other.priors
        self.sample.merge(other.sample, places(other.tally.experts, self.tally.experts))

    def to_bytes(self) -> bytes:
        """As it travels between workers."""
        self.sample.events()
        return pickle.dumps(self, pickle.HIGHEST_PROTOCOL)

    def stream(self, *, by_name: bool) -> Stream:
        """As a stream, with the experts in the order of their names if `by_name`.

        Raises
        ------
        ProbabilityError
            If some events have a prior of their own, others not, and there is none that fills the blanks.
        """
        if self.priors.all() and self.settings.get("prior") is None:
            blank, total = int(self.priors[0]), int(self.priors.sum())
            raise ProbabilityError(
                f"{blank:,} of {total:,} resolved events have no prior while others have one: fill the column, or "
                "leave such events out"
            )
        stream = Stream(**self.settings)
        state, names = stream._state, self.tally.experts
        state.join(sorted(names) if by_name else names)
        state.tally.merge(self.tally)
        events = self.sample.events()
        if events is not None:
            priority = priorities(events.keys, 0.0).tolist()
            for record, place in zip(events.records(state.join(names)), priority, strict=True):
                state.reservoir.put(record, place)
        state.reservoir.beyond = self.sample.beyond.copy()
        state.rows = int(state.tally.number.sum())
        return stream
