"""What a stream holds, and the few ways in which it changes, each of them entirely or not at all."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from copy import copy
from functools import lru_cache
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError, ProbabilityError
from opinionpool.estimation.sampling import row_keys
from opinionpool.estimation.statistics import Statistics
from opinionpool.forecasts import Forecasts
from opinionpool.learning.leakage import SURE, SURE_EVENTS
from opinionpool.streams.columns import Columns
from opinionpool.streams.events import Record, content, forecasts_of, particulars
from opinionpool.streams.journal import Journal
from opinionpool.streams.ledger import Entry, Ledger
from opinionpool.streams.moments import BLOCK, Clock, Tally
from opinionpool.streams.numbering import Numbering
from opinionpool.streams.reservoir import Reservoir
from opinionpool.streams.rows import Memory, Rows
from opinionpool.text import shown

# So many resolved events wait before they are added up together.
WAITING = 512
_WHOLE = 1 << 256


class _Whole:
    """A block of changes that are made entirely or not at all."""

    __slots__ = ("_learns", "_state")

    def __init__(self, state: StreamState, learns: bool) -> None:
        self._state, self._learns = state, learns

    def __enter__(self) -> None:
        """Remember what there is."""
        self._state.begin()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if kind is None:
                self._state.keep(learns=self._learns)
        finally:
            # Nothing is left to take back of what was made.
            self._state.recover()


class StreamState:
    """Open events, sums over the resolved ones, a sample of them, and which ones they are.

    Attributes
    ----------
    classes : tuple
        K labels.
    tally : Tally
    reservoir : Reservoir
    ledger : Ledger
        Of resolved events with an id.
    clock : Clock
    open : dict of int to Record
        By key.
    rows : int
        Resolved events without an id.
    numbering : Numbering
        The numbers of those rows.
    waiting : list of Record
        Resolved events that are still to be added up.
    waiting_rows : tuple of Rows
        The same without ids, all with the same columns.
    version : int
        Another one after each change.
    """

    def __init__(
        self,
        classes: tuple[object, ...],
        floor: float,
        prior: Array | None,
        capacity: int,
        half_life: float | None,
        seed: int,
    ) -> None:
        pace = 0.0 if half_life is None else math.log(2.0) / half_life
        self.classes, self.seed = classes, seed
        self.tally = Tally(len(classes), floor, prior, pace)
        self.journal = Journal()
        self.reservoir = Reservoir(len(classes), capacity, pace, self.journal)
        self.ledger = Ledger(journal=self.journal)
        self.clock = Clock(half_life)
        self.open: dict[int, Record] = {}
        self.rows, self.numbering = 0, Numbering()
        self._sum = 0
        self.waiting: list[Record] = []
        self.waiting_rows: tuple[Rows, ...] = ()
        # Where forecasts of rows are kept until they are added up.
        self.memory = Memory(BLOCK)
        self._columns = Columns()
        self.version = 0
        self._before: dict[str, Any] | None = None

    def copy(self) -> StreamState:
        """A copy that can change independently."""
        self.recover()
        other = copy(self)
        other.journal, other.clock = Journal(), self.clock.copy()
        other.tally = self.tally.copy()
        other.reservoir, other.ledger = self.reservoir.copy(other.journal), self.ledger.copy(other.journal)
        other.open, other.waiting = self.open.copy(), self.waiting.copy()
        other.memory = Memory(BLOCK)
        return other

    @property
    def experts(self) -> list[str]:
        """N names, in order of first appearance."""
        return self.tally.experts

    @property
    def fingerprint(self) -> int:
        """The sum of the digests of all resolved events with an id, without their times, topics and groups."""
        return self._sum

    @fingerprint.setter
    def fingerprint(self, value: int) -> None:
        self._sum = value

    def described(self) -> int:
        """The sum of the digests of what else there is: open events, times, topics, groups, superseded forecasts.

        Of resolved events that are no longer in the sample, and so of no account in learning, nothing of it is kept.
        """
        columns = self._columns if self._columns.names is self.tally.experts else Columns().renewed(self.tally.experts)
        opened = [record for record in self.open.values() if len(record.experts)]
        known = [record for record in self.reservoir.settled() if isinstance(record.event, str)]
        digests = (particulars(record, columns) for record in (*opened, *known))
        return sum(int.from_bytes(digest, "little") for digest in digests if digest is not None) % _WHOLE

    def together(self, names: tuple[object, ...]) -> npt.NDArray[np.intp] | None:
        """Index of experts who answered together before, in this order; None if they did not."""
        return self._columns.sets.get(names) if self._columns.names is self.tally.experts else None

    def join(self, names: Sequence[str]) -> npt.NDArray[np.intp]:
        """Index of experts, who are new or known; not to be changed."""
        if self._columns.names is not self.tally.experts:
            self._columns = self._columns.renewed(self.tally.experts)
        try:
            return self._columns.of(names)
        except KeyError:
            self.flush()
            self._sums().join(names)
        return self.join(names)

    def all_or_nothing(self, *, learns: bool = True) -> _Whole:
        """Make the changes of a block entirely, or not at all if anything interrupts it.

        Parameters
        ----------
        learns : bool
            Whether there is something new, and not only the same in another form.
        """
        return _Whole(self, learns)

    def begin(self) -> None:
        """From here on changes can be taken back; whatever is not in the journal is replaced and never changed."""
        self.recover()
        self.journal.forget()
        self._before = {
            "tally": self.tally, "clock": self.clock, "waiting": self.waiting, "rows": self.rows,
            "waiting_rows": self.waiting_rows, "numbering": self.numbering, "_sum": self._sum,
            "_columns": self._columns, "version": self.version,
            "reservoir": self.reservoir.before, "ledger": self.ledger.entries, "count": len(self.waiting),
        }  # fmt: skip

    def keep(self, *, learns: bool) -> None:
        """Make all changes since `begin` for good."""
        self.version += learns
        # From here on it is made.
        self._before = None
        self.journal.forget()

    def recover(self) -> None:
        """Take back what an interrupted change left, if one was interrupted before it could do so itself."""
        before = self._before
        if before is None:
            return
        self.ledger.entries = before["ledger"]
        self.journal.take_back()
        self.reservoir.restore(before["reservoir"])
        del before["waiting"][before["count"] :]
        separate = {"reservoir", "ledger", "count"}
        self.__dict__.update({name: value for name, value in before.items() if name not in separate})
        self._before = None

    def _sums(self) -> Tally:
        """The sums, to be changed: in a copy, which an interrupted change leaves behind."""
        self.tally = self.tally.copy()
        return self.tally

    def tell(self, events: int, at: Array | None) -> Array:
        """The times of further events, see `Clock.tell`."""
        if self.half_life is not None:
            self.clock = self.clock.copy()
        return self.clock.tell(events, at)

    @property
    def half_life(self) -> float | None:
        """After how many events, or how much time, an event counts half."""
        return self.clock.half_life

    def check_prior(self, record: Record) -> None:
        """Refuse an event with a prior of its own among events without one, and the other way round.

        Raises
        ------
        ProbabilityError
            Unless there is a prior for all events, which fills the blanks.
        """
        if self.tally.prior is not None:
            return
        other = self._other(record.key)
        if other is None or (other.prior is None) == (record.prior is None):
            return
        name = f"row {record.event}" if isinstance(record.event, int) else f"event {shown(record.event)}"
        has, have = ("no prior of its own", "have one") if record.prior is None else ("a prior of its own", "have none")
        raise ProbabilityError(
            f"{name} has {has}, and the events before it in this stream {have}; give every event one, or none, or "
            "begin the stream with prior=, which fills the blanks"
        )

    def _other(self, key: int) -> Record | None:
        """Some event with another key, if there is any."""
        for records in (self.open.values(), self.waiting):
            for each in records:
                if each.key != key:
                    return each
        other = self.waiting_rows[0].record(0) if self.waiting_rows else self.reservoir.example
        return None if other is None or other.key == key else other

    def put_open(self, record: Record) -> None:
        """Keep an event that is not resolved, with all that is known of it."""
        self.check_prior(record)
        self.journal.put(self.open, record.key, record)

    def drop_open(self, key: int) -> Record | None:
        """Let an open event go; None if there is no such event."""
        dropped: Record | None = self.journal.pop(self.open, key)
        return dropped

    def content(self, record: Record) -> int:
        """64 bits that stand for the forecasts."""
        return int.from_bytes(content(record, self._columns)[:8], "little")

    def learn(self, record: Record) -> None:
        """Add a resolved event."""
        self.drop_open(record.key)
        self.check_prior(record)
        digest = content(record, self._columns)
        self._sum = (self._sum + self._digest(record, digest)) % _WHOLE
        self.ledger.put(
            Entry(record.key, int.from_bytes(digest[:8], "little"), record.outcome, record.weight, record.at)
        )
        self.reservoir.put(record)
        self.waiting.append(record)
        if len(self.waiting) >= WAITING:
            self.flush()

    def unlearn(self, record: Record) -> None:
        """Take a resolved event away, as it was added."""
        self.flush()
        self._sum = (self._sum - self._digest(record, content(record, self._columns))) % _WHOLE
        self.ledger.remove(record.key)
        self.reservoir.remove(record)
        self._sums().add([record], -1)

    def learn_rows(self, rows: Rows, moments: Statistics | None) -> None:
        """Add resolved events without ids, whose columns are all experts and whose arrays are not changed any more.

        `moments` are theirs, if they are known.
        """
        if not len(rows):
            return
        alike = bool(self.waiting_rows) and self.waiting_rows[0].joins(rows)
        if not alike:
            self.check_prior(rows.record(0))
        self.rows += len(rows)
        if moments is not None:
            self.reservoir.put_rows(rows.keyed(self.seed))
            self._sums().add_rows(rows, moments=moments)
            return
        if not alike:
            self.flush()
        self.waiting_rows = (*self.waiting_rows, rows)
        if rows.forecasts.size * len(self.waiting_rows) >= BLOCK:
            self.flush()

    def flush(self) -> None:
        """Add up what is waiting."""
        if not self.waiting and not self.waiting_rows:
            return
        if self._before is None:
            with self.all_or_nothing(learns=False):
                self.flush()
            return
        waiting, self.waiting = self.waiting, []
        blocks, self.waiting_rows = self.waiting_rows, ()
        sums = self._sums()
        sums.add(waiting)
        if blocks:
            rows = Rows.joined(blocks).keyed(self.seed)
            self.reservoir.put_rows(rows)
            sums.add_rows(rows)

    @property
    def count(self) -> int:
        """How many events have been resolved."""
        return int(self.tally.number.sum()) + len(self.waiting) + sum(map(len, self.waiting_rows))

    @property
    def movable(self) -> bool:
        """Whether rows can be given other numbers: none was given, and none decided what is in the sample."""
        self.flush()
        return not self.numbering.given and self.reservoir.complete

    def merge(self, other: StreamState) -> None:
        """Take in another stream's state.

        Raises
        ------
        ArgumentError
            If an event was learned from by both, or is open in one of them only.
        """
        self.flush()
        other.flush()
        for mine, theirs in ((self, other), (other, self)):
            half = next((record for key, record in mine.open.items() if theirs.ledger.find(key)), None)
            if half is not None:
                raise ArgumentError(
                    f"event {half.event!r} is resolved in one stream and open in the other: merge before it is resolved"
                )
        example = next(iter(other.open.values()), other.reservoir.example)
        if example is not None:
            self.check_prior(example)
        renumbered = self._renumbered(other)
        self.ledger.merge(other.ledger)
        columns = self.join(other.experts)
        self._sums().merge(other.tally)

        def moved(record: Record) -> Record:
            return renumbered(record._replace(experts=columns[record.experts]))

        self.reservoir.merge(other.reservoir, moved)
        for key, record in other.open.items():
            own = self.open.get(key)
            self.put_open(moved(record) if own is None else own.updated(moved(record)))
        self.rows += other.rows
        self._sum = (self._sum + other._sum) % _WHOLE

    def _renumbered(self, other: StreamState) -> Callable[[Record], Record]:
        """What gives the rows of another stream numbers of their own, where both counted from the same one.

        Raises
        ------
        ArgumentError
            If that cannot be done, as the numbers were given, or decided which rows are in its sample.
        """
        if not self.numbering.meets(other.numbering):
            self.numbering = self.numbering.union(other.numbering)
            return lambda record: record
        by = self.numbering.stop
        if not other.movable:
            raise ArgumentError(
                f"both streams have rows with the numbers {self.numbering.meeting(other.numbering)}, and numbers "
                "decide which rows are in the sample: give rows that are added beside each other numbers of their own, "
                "add_rows(..., first=)"
            )
        self.numbering = self.numbering.union(other.numbering.moved(by))

        def later(record: Record) -> Record:
            if not isinstance(record.event, int):
                return record
            number = record.event + by
            return record._replace(event=number, key=int(row_keys(np.array([number]), self.seed)[0]))

        return later

    def forecasts(self, records: Sequence[Record]) -> Forecasts:
        """Some events, resolved or not, as forecasts by all experts."""
        return forecasts_of(records, tuple(self.experts), self.classes)

    def sample(self) -> tuple[Forecasts, Array, float]:
        """The events that are kept, open ones too; how many each stands for, (T,), and the least that one stands for.

        The least is relative to what an event counts by itself.
        """
        self.flush()
        kept = list(self.reservoir.records())
        stands, own = self.reservoir.weights(kept, self.tally.events, self.tally.origin)
        opened = [self.open[key] for key in sorted(self.open)]
        weight = np.concatenate([stands, [record.weight for record in opened]])
        counts = own > 0
        least = 1.0 if self.reservoir.complete else float((stands[counts] / own[counts]).min(initial=np.inf))
        return self.forecasts([*kept, *opened]), weight, least

    def always_right(self) -> npt.NDArray[np.bool_]:
        """Whose forecasts in the sample were all right and nearly certain, see `leakage_notes`, (N,)."""
        suspect = self.tally.cells >= SURE_EVENTS
        count = np.zeros(len(suspect))
        for outcome, rows in self.reservoir.loose():
            if not suspect.any():
                return suspect
            q = rows.forecasts
            given = q[..., outcome] if q.ndim > 2 else q if outcome == 1 else 1.0 - q
            # Experts who joined since are not among their columns.
            count[: given.shape[1]] += rows.answered.sum(axis=0)
            suspect[: given.shape[1]] &= ~(given <= SURE).any(axis=0)
        for record in self.reservoir.settled():
            if not suspect.any():
                break
            q = record.probabilities
            given = q[:, record.outcome] if q.ndim > 1 else q if record.outcome == 1 else 1.0 - q
            count[record.experts] += 1
            suspect[record.experts[given <= SURE]] = False
        return suspect & (count >= SURE_EVENTS)

    def present(self) -> npt.NDArray[np.bool_]:
        """Who made a forecast, on whatever event, (N,)."""
        found = self.tally.cells > 0
        for record in self.open.values():
            found[record.experts] = True
        return np.asarray(found)

    def _digest(self, record: Record, content: bytes) -> int:
        return int.from_bytes(hashlib.sha256(content + _ending(record.outcome, record.weight)).digest(), "little")


@lru_cache(maxsize=1 << 10, typed=True)
def _ending(outcome: int, weight: float) -> bytes:
    """What of an outcome is digested."""
    return f"{outcome} {weight!r}".encode()
