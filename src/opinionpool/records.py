"""One event of a stream with its forecasts, and the numbers that stand for it."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.logodds import Array

__all__ = ["Record", "content", "event_key", "priorities", "row_keys"]

_WORD = (1 << 64) - 1


class Record(NamedTuple):
    """An event, its forecasts and what happened.

    Attributes
    ----------
    event : str or int
        Its id; the number of a row that has none.
    key : int
        64 bits that stand for the id.
    experts : ndarray of int, shape (n,)
        Positions of those who answered.
    said : ndarray, shape (n,), or (n, K) when K > 2
        Their probabilities.
    prior : ndarray or None, shape (), or (K,) when K > 2
        The event's own reference, if it has one.
    outcome : int
        -1 where not resolved.
    weight : float
        Its frequency.
    at : float
        When it was resolved, in the unit of the stream's half-life.
    time : datetime64 or None
    group : str or None
        As in `opinionpool.forecasts.Forecasts`.
    """

    event: str | int
    key: int
    experts: npt.NDArray[np.intp]
    said: Array
    prior: Array | None = None
    outcome: int = -1
    weight: float = 1.0
    at: float = 0.0
    time: np.datetime64 | None = None
    group: str | None = None

    def revised(self, other: Record) -> Record:
        """The event with forecasts that came later, which take the place of earlier ones by the same experts.

        A NaN withdraws a forecast.
        """
        kept = ~np.isin(self.experts, other.experts)
        experts = np.concatenate([self.experts[kept], other.experts])
        said = np.concatenate([self.said[kept], other.said])
        given = ~np.isnan(said.reshape(len(said), -1)[:, 0]) if len(said) else np.zeros(0, dtype=bool)
        return other._replace(
            experts=experts[given],
            said=said[given],
            prior=self.prior if other.prior is None else other.prior,
            time=self.time if other.time is None else other.time,
            group=self.group if other.group is None else other.group,
        )


def event_key(event: str, seed: int) -> int:
    """64 bits that look random and depend on nothing but an event's id and the seed."""
    mixed = hashlib.blake2b(event.encode("utf-8", "surrogatepass"), digest_size=8, key=seed.to_bytes(8, "little"))
    return int.from_bytes(mixed.digest(), "little")


def row_keys(first: int, count: int, seed: int) -> npt.NDArray[np.uint64]:
    """The same for rows first, first + 1, ... that have no ids (splitmix64)."""
    with np.errstate(over="ignore"):
        start = np.uint64((first + 1 + 0x632BE59BD9B4E019 * (seed + 1)) & _WORD)
        z = (start + np.arange(count, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def priorities(keys: npt.NDArray[np.uint64], log_weight: npt.ArrayLike) -> Array:
    """Logarithms of exponential times with rates `weight`: the least of them are a sample without replacement.

    The chance to be in it grows with the weight; all weights times a constant change nothing (Cohen and Kaplan 2007,
    bottom-k sketches).
    """
    u = ((keys >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.asarray(np.log(-np.log(u)) - log_weight)


def content(record: Record, names: npt.NDArray[np.void]) -> bytes:
    """A digest of who said what about an event with which prior, in any order; `names` are digests of the experts."""
    labels = names[record.experts]
    order = np.argsort(labels, kind="stable")
    parts = [str(record.event).encode("utf-8", "surrogatepass"), labels[order].tobytes(), record.said[order].tobytes()]
    parts.append(b"" if record.prior is None else np.asarray(record.prior).tobytes())
    mixed = hashlib.sha256()
    for part in parts:
        mixed.update(len(part).to_bytes(8, "little"))
        mixed.update(part)
    return mixed.digest()
