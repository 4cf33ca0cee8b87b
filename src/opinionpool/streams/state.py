"""What a stream holds, and the few ways in which it changes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError, OpinionPoolError
from opinionpool.estimation.moments import Moments
from opinionpool.forecasts import Forecasts
from opinionpool.learning.screening import SURE, SURE_EVENTS
from opinionpool.streams.events import Record, content
from opinionpool.streams.ledger import Entry, Ledger
from opinionpool.streams.moments import Tally
from opinionpool.streams.reservoir import Reservoir

# So many resolved events wait before they are added up together.
WAITING = 512
_WHOLE = 1 << 256


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
    open : dict of int to Record
        By key.
    rows : int
        Resolved events without an id; `next_row` is the number of the next one.
    waiting : list of Record
        Resolved events that are still to be added up.
    """

    def __init__(
        self, classes: tuple[object, ...], floor: float, prior: Array | None, capacity: int, half_life: float | None
    ) -> None:
        pace = 0.0 if half_life is None else math.log(2.0) / half_life
        self.classes = classes
        self.tally = Tally(len(classes), floor, prior, pace)
        self.reservoir = Reservoir(len(classes), capacity, pace)
        self.ledger = Ledger()
        self.open: dict[int, Record] = {}
        self.rows = self.next_row = 0
        self._sum = 0
        self.waiting: list[Record] = []
        self._digests = np.empty(0, dtype="V8")

    def copy(self) -> StreamState:
        """The same, to go on with alone."""
        self.flush()
        other = copy(self)
        other.tally, other.reservoir, other.ledger = self.tally.copy(), self.reservoir.copy(), self.ledger.copy()
        other.open, other.waiting = self.open.copy(), []
        return other

    @property
    def experts(self) -> list[str]:
        """N names, in order of first appearance."""
        return self.tally.experts

    @property
    def fingerprint(self) -> int:
        """The sum of the digests of all resolved events with an id."""
        return self._sum

    @fingerprint.setter
    def fingerprint(self, value: int) -> None:
        self._sum = value

    def join(self, names: Sequence[str]) -> npt.NDArray[np.intp]:
        """Index of experts, who are new or known."""
        before = len(self.experts)
        if not set(names) <= set(self.experts):
            self.flush()
            self.tally.join(names)
            fresh = [
                hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8] for name in self.experts[before:]
            ]
            self._digests = np.concatenate([self._digests, np.array(fresh, dtype="V8")])
        place = {name: i for i, name in enumerate(self.experts)}
        return np.array([place[name] for name in names], dtype=np.intp)

    @contextmanager
    def tentative(self) -> Iterator[None]:
        """Let experts go who joined for something that then failed."""
        self.flush()
        tally = self.tally
        before = tally.experts.copy(), tally.counts, tally.cells, tally.shared, tally.own
        digests = self._digests
        try:
            yield
        except OpinionPoolError:
            tally.experts, tally.counts, tally.cells, tally.shared, tally.own = before
            self._digests = digests
            raise

    def content(self, record: Record) -> int:
        """64 bits that stand for who said what."""
        return int.from_bytes(content(record, self._digests)[:8], "little")

    def learn(self, record: Record) -> None:
        """Add a resolved event."""
        self.open.pop(record.key, None)
        contrast = content(record, self._digests)
        self._sum = (self._sum + self._digest(record, contrast)) % _WHOLE
        self.ledger.put(
            Entry(record.key, int.from_bytes(contrast[:8], "little"), record.outcome, record.weight, record.at)
        )
        self.reservoir.put(record)
        self.waiting.append(record)
        if len(self.waiting) >= WAITING:
            self.flush()

    def unlearn(self, record: Record) -> None:
        """Take a resolved event away, as it was added."""
        self.flush()
        self._sum = (self._sum - self._digest(record, content(record, self._digests))) % _WHOLE
        self.ledger.remove(record.key)
        self.reservoir.remove(record)
        self.tally.add([record], -1)

    def learn_rows(
        self,
        contrast: Array,
        outcomes: npt.NDArray[np.intp],
        weight: Array,
        at: Array | None,
        prior: Array | None,
        keys: npt.NDArray[np.uint64],
        rows: npt.NDArray[np.intp],
        moments: Moments | None,
    ) -> None:
        """Add resolved events without ids, whose columns are all experts; see `Tally.add_dense`."""
        self.flush()
        self.tally.add_dense(contrast, outcomes, weight, at, prior, moments=moments)
        answered = ~np.isnan(contrast if len(self.classes) == 2 else contrast[..., 0])
        everyone = np.arange(contrast.shape[1]) if answered.all() else None
        plain = bool((weight == 1.0).all())
        for outcome in range(len(self.classes)):
            mine = np.flatnonzero((outcomes == outcome) & (weight > 0))

            def make(row: int, mine: npt.NDArray[np.intp] = mine, outcome: int = outcome) -> Record:
                t = int(mine[row])
                experts = np.flatnonzero(answered[t]) if everyone is None else everyone
                own = None if prior is None else np.asarray(prior[t])
                when = 0.0 if at is None else float(at[t])
                return Record(
                    int(rows[t]), int(keys[t]), experts, contrast[t, experts], own, outcome, float(weight[t]), when
                )

            if len(mine):
                self.reservoir.put_rows(
                    keys[mine], outcome, None if plain else weight[mine], None if at is None else at[mine], make
                )
        self.rows += len(outcomes)

    def flush(self) -> None:
        """Add up what is waiting."""
        waiting, self.waiting = self.waiting, []
        self.tally.add(waiting)

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
        self.ledger.merge(other.ledger)
        columns = self.join(other.experts)
        self.tally.merge(other.tally)

        def moved(record: Record) -> Record:
            return record._replace(experts=columns[record.experts])

        self.reservoir.merge(other.reservoir, moved)
        for key, record in other.open.items():
            self.open[key] = self.open[key].revised(moved(record)) if key in self.open else moved(record)
        self.rows += other.rows
        self.next_row = max(self.next_row, other.next_row)
        self._sum = (self._sum + other._sum) % _WHOLE

    def forecasts(self, records: Sequence[Record]) -> Forecasts:
        """Some events, resolved or not, as forecasts by all experts."""
        k = len(self.classes)
        sizes = np.array([len(record.experts) for record in records], dtype=np.intp)
        shape = (0,) if k == 2 else (0, k)
        priors = None
        if any(record.prior is not None for record in records):
            blank = np.full(shape[1:], np.nan)
            priors = np.array([blank if record.prior is None else record.prior for record in records], dtype=np.float64)
        times = groups = None
        if any(record.time is not None for record in records):
            never = np.datetime64("NaT", "us")
            times = np.array([never if record.time is None else record.time for record in records], "datetime64[us]")
        if any(record.group is not None for record in records):
            groups = np.array(["" if record.group is None else record.group for record in records], dtype=np.str_)
        return Forecasts(
            events=tuple(f"row {r.event + 1}" if isinstance(r.event, int) else r.event for r in records),
            experts=tuple(self.experts),
            classes=self.classes,
            event_index=np.repeat(np.arange(len(records)), sizes),
            expert_index=np.concatenate([np.empty(0, np.intp), *(record.experts for record in records)]),
            probabilities=np.concatenate([np.empty(shape), *(record.probabilities for record in records)]),
            outcomes=np.array([record.outcome for record in records], dtype=np.intp),
            prior=priors,
            times=times,
            groups=groups,
        )

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
        for record in self.reservoir:
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

    def _digest(self, record: Record, contrast: bytes) -> int:
        text = f"{record.outcome} {record.weight!r}".encode()
        return int.from_bytes(hashlib.sha256(contrast + text).digest(), "little")
