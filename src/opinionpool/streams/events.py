"""One event of a stream with its forecasts, the numbers that stand for it, and many of them as a container."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Mask
from opinionpool.earlier import Earlier
from opinionpool.forecasts import Forecasts
from opinionpool.streams.columns import Columns


class Record(NamedTuple):
    """An event, its forecasts and what happened."""

    event: str | int  # its id; the number of a row that has none
    key: int  # 64 bits that stand for the id
    experts: npt.NDArray[np.intp]  # (n,); index of those who answered
    probabilities: Array  # (n,), or (n, K) when K > 2; their probabilities
    prior: Array | None = None  # (), or (K,) when K > 2; the event's own reference, if it has one
    outcome: int = -1  # -1 where not resolved
    weight: float = 1.0  # its frequency
    at: float = 0.0  # when it was resolved, in the unit of the stream's half-life
    # time, group, settled, topic: as in `opinionpool.forecasts.Forecasts`
    time: np.datetime64 | None = None
    group: str | None = None
    settled: bool = False
    topic: str | None = None
    made: npt.NDArray[np.datetime64] | None = None  # (n,); when the forecasts were made
    asked: np.datetime64 | None = None  # as of when the event is answered
    earlier: Earlier | None = None  # as in `opinionpool.forecasts.Forecasts`

    def resolved(self, outcome: int, weight: float, asked: np.datetime64 | None) -> Record:
        """The event with what happened."""
        return Record._make((*self[:5], outcome, weight, *self[7:13], asked, self.earlier))

    def without_forecasts(self) -> Record:
        """The event alone."""
        return self._replace(experts=self.experts[:0], probabilities=self.probabilities[:0], made=None, earlier=None)

    def revised(self, other: Record) -> Record:
        """The event with forecasts that came later, which take the place of earlier ones by the same experts.

        A NaN withdraws a forecast.
        """
        if other is self and not self._blank():
            return self
        made, earlier = None, other.earlier
        if other is self or not len(other.experts):
            experts, probabilities, made, earlier = self.experts, self.probabilities, self.made, self.earlier
        elif self.experts is other.experts and self.made is None:
            experts, probabilities, made = other.experts, other.probabilities, other.made
        else:
            kept = ~np.isin(self.experts, other.experts)
            experts = np.concatenate([self.experts[kept], other.experts])
            probabilities = np.concatenate([self.probabilities[kept], other.probabilities])
            if self.made is not None or other.made is not None:
                made = np.concatenate([self.times_made()[kept], other.times_made()])
                earlier = self._earlier(other, kept)
        if other._blank():
            given = ~np.isnan(probabilities.reshape(len(probabilities), -1)[:, 0])
            experts, probabilities = experts[given], probabilities[given]
            made = None if made is None else made[given]
            earlier = None if earlier is None else earlier.select(given)
        return other._replace(
            experts=experts,
            probabilities=probabilities,
            prior=self.prior if other.prior is None else other.prior,
            time=self.time if other.time is None else other.time,
            settled=self.settled if other.time is None else other.settled,
            group=self.group if other.group is None else other.group,
            topic=self.topic if other.topic is None else other.topic,
            made=made,
            earlier=earlier,
            asked=self.asked if other.asked is None else other.asked,
        )

    def updated(self, other: Record) -> Record:
        """As `revised`, except that a forecast made before the one that stands is only what was forecast earlier."""
        if self.made is None or other.made is None:
            return self.revised(other)
        order = np.argsort(self.experts)
        known = np.isin(other.experts, self.experts)
        place = order[np.searchsorted(self.experts, other.experts[known], sorter=order)]
        late = np.flatnonzero(known)[other.made[known] < self.made[place]]
        if not len(late):
            return self.revised(other)
        standing = self.revised(other.select(np.setdiff1d(np.arange(len(other.experts)), late)))
        return standing.after(other.select(late))

    def after(self, other: Record) -> Record:
        """The event with forecasts by the same experts that were made before those that stand."""
        assert other.made is not None
        there = ~np.isnan(other.probabilities.reshape(len(other.probabilities), -1)[:, 0])
        other = other.select(np.flatnonzero(there))
        order, size = np.argsort(self.experts), len(self.experts)
        place = order[np.searchsorted(self.experts, other.experts, sorter=order)]
        before = [Earlier(other.probabilities, other.times_made())]
        before += [] if other.earlier is None else [other.earlier]
        mine = self.earlier or Earlier.none(self.probabilities)
        return self._replace(earlier=mine.before(self.times_made(), *(each.placed(place, size) for each in before)))

    def select(self, cells: npt.NDArray[np.intp]) -> Record:
        """The event with some of its forecasts."""
        return self._replace(
            experts=self.experts[cells],
            probabilities=self.probabilities[cells],
            made=None if self.made is None else self.made[cells],
            earlier=None if self.earlier is None else self.earlier.select(cells),
        )

    def _earlier(self, other: Record, kept: Mask) -> Earlier | None:
        """What was forecast before those that are kept, and before the other ones, here or there."""
        rest = None if self.earlier is None else self.earlier.select(kept)
        mine = self.earlier or Earlier.none(self.probabilities)
        order = np.argsort(self.experts)
        places = np.searchsorted(self.experts, other.experts, sorter=order)
        known = np.flatnonzero(np.isin(other.experts, self.experts))
        place = order[places[known]]
        current = Earlier(self.probabilities, self.times_made()).select(place)
        size = len(other.experts)
        found = (other.earlier or Earlier.none(other.probabilities)).before(
            other.times_made(), current.placed(known, size), mine.select(place).placed(known, size)
        )
        return Earlier.joined([(rest, self.probabilities[kept]), (found, other.probabilities)])

    def _blank(self) -> bool:
        """Whether a forecast is withdrawn."""
        return math.isnan(np.vdot(self.probabilities, self.probabilities))

    def supersedes_same(self, other: Record) -> bool:
        """Whether its forecasts took the place of the same ones as those of another record."""
        both = []
        for record in (self, other):
            order = np.argsort(record.experts)
            earlier = record.earlier or Earlier.none(record.probabilities)
            both.append((record.experts[order], earlier.probabilities[order], earlier.made[order]))
        return all(
            np.array_equal(mine, theirs, equal_nan=mine.dtype.kind != "i") for mine, theirs in zip(*both, strict=True)
        )

    def times_made(self) -> npt.NDArray[np.datetime64]:
        """When the forecasts were made, NaT where unknown."""
        return np.full(len(self.experts), np.datetime64("NaT", "us")) if self.made is None else self.made


@lru_cache(maxsize=1 << 12)
def event_key(event: str, seed: int) -> int:
    """64 bits that look random and depend on nothing but an event's id and the seed."""
    mixed = hashlib.blake2b(event.encode("utf-8", "surrogatepass"), digest_size=8, key=seed.to_bytes(8, "little"))
    return int.from_bytes(mixed.digest(), "little")


def event_keys(events: Iterable[str], seed: int) -> npt.NDArray[np.uint64]:
    """`event_key` of many events, (T,).

    >>> event_keys(["a", "b"], 0)[1] == event_key("b", 0)
    np.True_
    """
    key, mixed = seed.to_bytes(8, "little"), hashlib.blake2b
    digests = [mixed(event.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest() for event in events]
    return np.frombuffer(b"".join(digests), dtype="<u8")


def content(record: Record, columns: Columns) -> bytes:
    """A digest of the forecasts of an event and its prior, in any order."""
    order, labels = columns.sorted(record.experts)
    event = str(record.event).encode("utf-8", "surrogatepass")
    given = record.probabilities[order].tobytes()
    own = b"" if record.prior is None else np.asarray(record.prior).tobytes()
    sized = _size(len(event)), event, _size(len(labels)), labels, _size(len(given)), given, _size(len(own)), own
    return hashlib.sha256(b"".join(sized)).digest()


def particulars(record: Record, columns: Columns) -> bytes | None:
    """A digest of what is known of an event beside its forecasts and outcome; None where nothing is.

    Times, topic, group, when each forecast was made and what it superseded; of an event that is not resolved, its
    forecasts too.
    """
    order, labels = columns.sorted(record.experts)
    made = b"" if record.made is None or np.isnat(record.made).all() else _stamps(record.made[order])
    moments = np.array([record.time or _NEVER, record.asked or _NEVER], dtype="datetime64[us]")
    names = [name.encode("utf-8", "surrogatepass") for name in (record.topic or "", record.group or "")]
    if record.outcome >= 0 and not (made or any(names) or record.settled or not np.isnat(moments).all()):
        return None
    event = content(record, columns) if record.outcome < 0 else str(record.event).encode("utf-8", "surrogatepass")
    parts = [event, labels, made, _stamps(moments), bytes([record.settled]), *names]
    if record.earlier is not None:
        parts += _superseded(record.earlier.select(order))
    return hashlib.sha256(b"".join(piece for part in parts for piece in (_size(len(part)), part))).digest()


def _superseded(earlier: Earlier) -> list[bytes]:
    """What some forecasts superseded, as it is digested; nothing where there is nothing."""
    known = earlier.known
    if not known.any():
        return []
    return [known.tobytes(), earlier.probabilities[known].tobytes(), _stamps(earlier.made[known])]


_NEVER = np.datetime64("NaT", "us")


def _stamps(times: npt.NDArray[np.datetime64]) -> bytes:
    return times.astype("datetime64[us]").astype("<i8").tobytes()


# How long a part of what is digested is.
_size = struct.Struct("<q").pack


def forecasts_of(records: Sequence[Record], experts: tuple[str, ...], classes: tuple[object, ...]) -> Forecasts:
    """Some events, resolved or not, as forecasts by all experts."""
    shape, never = (0,) if len(classes) == 2 else (0, len(classes)), np.datetime64("NaT", "us")
    sizes = np.array([len(record.experts) for record in records], dtype=np.intp)
    settled = np.array([record.settled for record in records], dtype=bool)
    return Forecasts(
        events=tuple(f"row {r.event + 1}" if isinstance(r.event, int) else r.event for r in records),
        experts=experts,
        classes=classes,
        event_index=np.repeat(np.arange(len(records)), sizes),
        expert_index=np.concatenate([np.empty(0, np.intp), *(record.experts for record in records)]),
        probabilities=np.concatenate([np.empty(shape), *(record.probabilities for record in records)]),
        outcomes=np.array([record.outcome for record in records], dtype=np.intp),
        prior=_column([record.prior for record in records], np.full(shape[1:], np.nan), "float64"),
        times=_column([record.time for record in records], never, "datetime64[us]"),
        groups=_column([record.group for record in records], "", "str"),
        settled=settled if settled.any() else None,
        topics=_column([record.topic or None for record in records], "", "str"),
        made=np.concatenate([record.times_made() for record in records])
        if any(record.made is not None for record in records)
        else None,
        asked=_column([record.asked for record in records], never, "datetime64[us]"),
        earlier=Earlier.joined([(record.earlier, record.probabilities) for record in records]),
    )


def _column(values: Sequence[Any], blank: object, kind: str) -> npt.NDArray[Any] | None:
    """A value for each event; None where none has one."""
    if all(value is None for value in values):
        return None
    return np.array([blank if value is None else value for value in values], dtype=kind)
