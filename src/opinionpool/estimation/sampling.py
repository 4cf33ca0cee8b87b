"""A bounded sample of events for what needs rows, the same however they came: at once, in parts, in whatever order.

Of each outcome as many events as there is room for, those of least priority, weighted so that outcomes are as frequent
as they were. The priority of an event is a hash of 64 bits of what was forecast of it, by whom, and what happened, not
of its id or place: a sum over its forecasts of numbers that depend on the probability and on whose it is.
Events of the outcome that the sample has most of count as one each, so that no posterior is narrower than the sample
allows. Copies of an event are drawn each by itself where there are so many that it would matter. On 20,000 events, N
experts are weighed about N / 40,000 nats worse than on any number of them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Floats, Index
from opinionpool.blocks import blocks, rows_of_block
from opinionpool.errors import Note
from opinionpool.forecasts import Forecasts

Keys = npt.NDArray[np.uint64]
_WORD = (1 << 64) - 1
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mixed(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Keys that look drawn at random, the same for the same number (splitmix64)."""
    found = np.asarray(keys * GOLDEN)
    flat = found.reshape(-1)
    # Blocks stay in the cache.
    for rows in blocks(len(flat), 1):
        mix(flat[rows])
    return found


def mix(z: Keys) -> None:
    """What `mixed` does after the first product, in place."""
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)


def name_keys(names: Iterable[str]) -> Keys:
    """Odd numbers of 64 bits that stand for names."""
    digests = [hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest() for name in names]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64) | np.uint64(1)


def _places(of: Keys) -> Array:
    """Numbers from 1 to 2 that stand for experts."""
    return 1.0 + (mixed(of) >> np.uint64(12)).astype(np.float64) * 2.0**-52


def _cell_keys(values: Array, places: Array) -> Keys:
    """A number for each probability, 0 where it is missing; `places` broadcast, and distinguish experts."""
    moved = values + places
    # The bits of a square depend on all those of a probability and on whose it is, in a way that sums do not undo.
    found = np.square(moved, out=moved).view(np.uint64)
    found[np.isnan(values)] = 0
    return found


class RowContents:
    """Keys of all forecasts on each event of an array, block by block, by keys of the experts, (N,)."""

    def __init__(self, experts: Keys) -> None:
        self.experts, rows = experts, rows_of_block(len(experts))
        # As long as a block: loops over single rows are slow.
        self._places = np.tile(_places(experts), (rows, 1))
        self._buffer = np.empty((rows, len(experts)))

    def of(self, block: Floats, *, complete: bool) -> Keys:
        """That of the events of a block, (t, N), in which no forecast is missing if it is `complete`."""
        if not complete:
            values = np.asarray(block, dtype=np.float64)
            return np.asarray(_cell_keys(values, self._places[: len(block)]).sum(axis=1))
        moved = np.add(block, self._places[: len(block)], out=self._buffer[: len(block)])
        np.square(moved, out=moved)
        return np.asarray(np.einsum("tn->t", moved.view(np.uint64)))


def row_contents(q: Floats, experts: Keys) -> Keys:
    """Keys of all forecasts on each event of an array (T, N), (T,), by keys of the experts, (N,)."""
    found, contents = np.empty(len(q), dtype=np.uint64), RowContents(experts)
    for rows in blocks(len(q), q.shape[1]):
        block = q[rows]
        found[rows] = contents.of(block, complete=not np.isnan(block).any())
    return found


def some_rows(q: Floats, one_in: int) -> Index:
    """Index of about one in so many rows of an array, the same rows in whatever order they come."""
    contents = row_contents(q, name_keys(map(str, range(q.shape[1]))))
    # A part of a part is not the same part again.
    return np.flatnonzero(mixed(contents ^ np.uint64(len(q))) % np.uint64(one_in) == 0)


def event_contents(forecasts: Forecasts) -> Keys:
    """What stands for all that is known of each event but its id, (T,)."""
    t = len(forecasts.events)
    if t == 0:
        return np.zeros(0, dtype=np.uint64)
    experts, k = name_keys(forecasts.experts), len(forecasts.classes)
    classes = name_keys(map(str, range(k))) if forecasts.options is None else _option_keys(forecasts)
    with np.errstate(over="ignore"):
        found = _sums_of_cells(forecasts, experts, classes)
        if forecasts.prior is not None:
            places = _places(classes[..., : max(1, forecasts.prior[:1].size)])
            found += _cell_keys(forecasts.prior.reshape(t, -1), places).sum(axis=1)
        for column, values_of in (("times", np.int64), ("groups", None), ("topics", None)):
            known = getattr(forecasts, column)
            if known is not None:
                labels, place = np.unique(known, return_inverse=True)
                codes = (
                    name_keys(map(str, labels.tolist())) if values_of is None else labels.astype(values_of).view("u8")
                )
                found = mixed(found ^ codes[place])
    return found


def _sums_of_cells(forecasts: Forecasts, experts: Keys, classes: Keys) -> Keys:
    """The sum of what stands for the forecasts on each event, (T,), some events at a time."""
    values = forecasts.probabilities.reshape(len(forecasts.expert_index), -1)
    several = values.shape[1] > 1
    alike = classes.ndim == 1 or not several
    # Unless classes are those of events, one place for each expert, or expert and class.
    each = _places(experts[:, None] * classes if several else experts[:, None]) if alike else np.empty(0)
    starts, found = forecasts.starts, np.zeros(len(forecasts.events), dtype=np.uint64)
    for events in _together(starts, rows_of_block(values.shape[1])):
        first, stop = starts[events.start], starts[events.stop]
        expert = forecasts.expert_index[first:stop]
        own = forecasts.event_index[first:stop]
        places = each[expert] if alike else _places(experts[expert, None] * classes[own])
        # Rows that were normalised differ in their last digits by the order of the classes.
        given = np.round(values[first:stop], 9) if several else values[first:stop]
        keys = _cell_keys(given, places)
        # Sums of one number each take longer than all the rest.
        keys = keys.sum(axis=1, dtype=np.uint64) if several else keys[:, 0]
        some = forecasts.crowd[events] > 0
        found[events][some] = np.add.reduceat(keys, starts[:-1][events][some] - first)
    return found


def _together(starts: Index, size: int) -> Iterator[slice]:
    """Slices of events with about so many forecasts, in order, without those that are followed by none."""
    edges = np.unique(np.searchsorted(starts, [*range(0, starts[-1], size), starts[-1]])).tolist()
    yield from map(slice, edges[:-1], edges[1:])


def _option_keys(forecasts: Forecasts) -> Keys:
    """What stands for the option in each position, (T, K), 0 where an event has none: their order plays no part."""
    found = np.zeros((len(forecasts.events), len(forecasts.classes)), dtype=np.uint64)
    for row, options in zip(found, forecasts.options or (), strict=True):
        row[: len(options)] = name_keys(map(str, options))
    return found


def priorities(keys: npt.NDArray[np.uint64], log_weight: npt.ArrayLike) -> Array:
    """Logarithms of exponential times with rates `weight`: the least of them are a sample without replacement.

    The inclusion probability grows with the weight; all weights times a constant change nothing (Cohen and Kaplan 2007,
    bottom-k sketches).
    """
    u = ((keys >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.asarray(np.log(-np.log(u)) - log_weight)


def priority_of(key: int, log_weight: float) -> float:
    """The same of one key, to rounding."""
    return math.log(max(-math.log(((key >> 11) + 0.5) * 2.0**-53), math.ulp(0.0))) - log_weight


def row_keys(numbers: Index, seed: int) -> npt.NDArray[np.uint64]:
    """Keys that look drawn at random, of rows that have no ids, by their numbers from 0 on."""
    with np.errstate(over="ignore"):
        return mixed(np.uint64((1 + 0x632BE59BD9B4E019 * (seed + 1)) & _WORD) + numbers.astype(np.uint64))


def content_keys(contents: Keys, outcomes: Index, room: Index) -> Keys:
    """Keys that decide which events are in a sample, (T,), whatever their order, in place of `contents`."""
    keys = event_keys(contents, outcomes)
    return distinguished(keys) if many_copies(tally(keys, outcomes, len(room) - 1), room) else keys


def event_keys(contents: Keys, outcomes: Index) -> Keys:
    """Keys of events that are the same where forecasts and outcomes are, (T,), in place of the contents."""
    # For each outcome what is added; that of unresolved events is the last.
    added = (np.append(np.arange(outcomes.max(initial=-1) + 1), -1) + 2).astype(np.uint64) * GOLDEN
    for rows in blocks(len(contents), 1):
        part = contents[rows]
        part += added[outcomes[rows]]
        part *= GOLDEN
        mix(part)
    return contents


# Keys are counted in so many places; and copies are few that make a sample tell as little as so much fewer events.
PLACES, FEW_COPIES = 1 << 16, 0.03


def tally(keys: Keys, outcomes: Index, classes: int) -> Index:
    """How many keys of each outcome, and of unresolved events, fall in each place, (K + 1, `PLACES`)."""
    found, shift = np.zeros((classes + 1, PLACES), dtype=np.intp), np.uint64(65 - PLACES.bit_length())
    for rows in blocks(len(keys), 1):
        place = (keys[rows] >> shift).astype(np.intp)
        place += outcomes[rows] * PLACES
        # Those of unresolved events are counted from the end.
        np.add.at(found.reshape(-1), place, 1)
    return found


def many_copies(found: Index, room: Index) -> bool:
    """Whether so many events are the same as others that it would matter to draw these together, given their tally.

    A sample in which m copies come or stay away together tells as little as one of Σm / Σm² times as many events. Keys
    that differ meet in a place as often as chance has it, which gives Σm (m − 1) to within a standard error of .006 Σm.
    """
    events = found.sum(axis=1)
    twice = (found.astype(np.float64) ** 2).sum(axis=1) - events - events * (events - 1.0) / PLACES
    return bool(((twice > FEW_COPIES * events) & (events > room)).any())


def distinguished(keys: Keys, before: Sequence[Keys] = ()) -> Keys:
    """The keys, but those of copies are all different; `before` has sorted keys of earlier events, for counting on."""
    again, times = _copies(keys)
    if before:
        number = np.zeros(len(keys), dtype=np.uint64)
        number[again] = times
        for earlier in before:
            first = np.searchsorted(earlier, keys)
            (known,) = np.nonzero(earlier[np.minimum(first, len(earlier) - 1)] == keys)
            after = np.searchsorted(earlier, keys[known], "right")
            number[known] += (after - first[known]).astype(np.uint64)
        (again,) = np.nonzero(number)
        times = number[again]
    found = keys.copy()
    with np.errstate(over="ignore"):
        found[again] = mixed(keys[again] + times * GOLDEN)
    return found


def _copies(keys: Keys) -> tuple[Index, Keys]:
    """Those of some keys that are the same as another one, but one of each; numbered from 1 on."""
    firsts, others = [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.intp)]
    left, rest = None, keys
    # In each round one of those with the same place stands for all that are the same; the others go on.
    while len(rest):
        later, winner = _same_place(rest)
        same = rest.take(winner) == rest.take(later)
        for found, each in ((firsts, winner[same]), (others, later[same])):
            found.append(each if left is None else left[each])
        later = later[~same]
        left, rest = later if left is None else left[later], mixed(rest.take(later))
    first, index = np.concatenate(firsts), np.concatenate(others)
    order = np.argsort(first, kind="stable")
    start = np.flatnonzero(np.diff(first[order], prepend=-1))
    number = 1 + np.arange(len(order)) - np.repeat(start, np.diff(start, append=len(order)))
    return index[order], number.astype(np.uint64)


def _same_place(keys: Keys) -> tuple[Index, Index]:
    """Those of some keys whose place, of about as many as there are keys, is that of another one; and these."""
    t, parts = len(keys), list(blocks(len(keys), 2))
    bits, buffer = t.bit_length(), np.empty(len(keys[parts[0]]), dtype=np.uint64)
    shift, last = np.uint64(64 - bits), np.empty(1 << bits, dtype=np.int32)

    def places(rows: slice) -> npt.NDArray[np.int64]:
        part = keys[rows]
        return np.right_shift(part, shift, out=buffer[: len(part)]).view(np.int64)

    for rows in parts:
        last[places(rows)] = np.arange(rows.start, rows.stop)
    later, winner = list[Index](), list[Index]()
    for rows in parts:
        found = last.take(places(rows))
        (others,) = np.nonzero(found != np.arange(rows.start, rows.stop))
        later.append(others + rows.start)
        winner.append(found[others].astype(np.intp))
    return np.concatenate(later), np.concatenate(winner)


def with_keys(before: Sequence[Keys], more: Keys) -> list[Keys]:
    """Sorted keys of earlier events and of further ones, in few arrays: none is less than twice the next one."""
    arrays = [*before, *([more] if len(more) else [])]
    while len(arrays) > 1 and len(arrays[-2]) < 2 * len(arrays[-1]):
        # Two sorted ones, one behind the other, are merged.
        arrays[-2:] = [np.sort(np.concatenate(arrays[-2:]), kind="stable")]
    return arrays


# Resolved events that are learned from, and forecasts in them.
EVENTS, FORECASTS = 20_000, 2_000_000
# Of unresolved events so many times fewer are looked at: they tell who repeats whom, and little else.
FEWER = 5
# Sizes of events that differ by no more than this, relative to their size, are the same but for rounding.
SAME = 1e-9


def rooms(experts: int, classes: int) -> Index:
    """How many events of each outcome there is room for, and last of unresolved ones, (K + 1,)."""
    room = max(1, min(EVENTS, FORECASTS // experts) // classes)
    return np.array([*[room] * classes, max(1, room // FEWER)], dtype=np.intp)


def least(keys: Keys, outcomes: Index, room: Index) -> tuple[npt.NDArray[np.bool_], Keys]:
    """Which events are kept, and for each outcome, last for unresolved events, the least key that found no room.

    >>> kept, beyond = least(np.array([5, 3, 9], dtype=np.uint64), np.array([0, 0, 0]), np.array([2, 1]))
    >>> kept.tolist(), int(beyond[0])
    ([True, True, False], 9)
    """
    kept = np.ones(len(keys), dtype=bool)
    beyond = np.full(len(room), np.iinfo(np.uint64).max, dtype=np.uint64)
    for g, size in enumerate(room.tolist()):
        mine = np.flatnonzero(outcomes == (g if g < len(room) - 1 else -1))
        if len(mine) > size:
            out = mine[np.argpartition(keys[mine], size)[size:]]
            kept[out] = False
            beyond[g] = keys[out].min()
    return kept, beyond


def drawn(keys: Keys, outcomes: Index, counts: Index, room: Index) -> Index:
    """Index of the events that are kept, by key; how many there are of each outcome, and unresolved ones, is known.

    >>> drawn(np.array([5, 3, 9], dtype=np.uint64), np.array([0, 0, 0]), np.array([3, 0]), np.array([2, 1])).tolist()
    [1, 0]
    """
    # Keys are spread evenly, so that nearly all that find room are among the least of so large a share.
    share = np.minimum(1.5 * room / np.maximum(counts, 1), 1.0)
    limit = np.where(share < 1.0, share * 2.0**64, 2.0**64 - 2048).astype(np.uint64)
    highest = limit[counts > 0].max(initial=0)
    some = np.concatenate([np.flatnonzero(keys[rows] <= highest) + rows.start for rows in blocks(len(keys), 1)])
    some = some[keys[some] <= limit[outcomes[some]]]
    found = np.bincount(np.where(outcomes[some] < 0, len(room) - 1, outcomes[some]), minlength=len(room))
    if (found < np.minimum(room, counts)).any():
        some = np.arange(len(keys))
    few = keys[some]
    kept = np.flatnonzero(least(few, outcomes[some], room)[0])
    return np.asarray(some[kept[np.argsort(few[kept])]])


def stands_for(outcomes: Index, counts: Array) -> Array:
    """How often each event of a sample counts, (T,), by the numbers of all events by outcome, (K,); 1 if unresolved."""
    shrunken = np.bincount(outcomes[outcomes >= 0], minlength=len(counts))
    each = counts / np.maximum(shrunken, 1)
    return np.asarray(np.append(each / each[shrunken > 0].min(initial=np.inf), 1.0)[outcomes])


def bounded_sample(forecasts: Forecasts, weight: Array) -> tuple[Index, Array] | None:
    """Index of the events to learn from, by key, and how often each counts; None for all, as if they have weights."""
    k = len(forecasts.classes)
    room = rooms(len(forecasts.experts), k)
    counts = np.bincount(np.where(forecasts.resolved, forecasts.outcomes, k), minlength=k + 1)
    if forecasts.options is not None or (counts[:k] <= room[:k]).all() or (weight != weight[0]).any():
        return None
    keys = content_keys(event_contents(forecasts), forecasts.outcomes, room)
    kept = drawn(keys, forecasts.outcomes, counts, room)
    return kept, stands_for(forecasts.outcomes[kept], counts[:k].astype(np.float64))


def sample_note(used: int, resolved: int) -> Note:
    """The note on a sample."""
    text = f"{used:,} of {resolved:,} resolved events were used to learn whom to believe; the prior is from all of them"
    return Note("sample", text, used)


def size_ranks(size: Array) -> Index:
    """Ranks from 0 on, (T,), the same for sizes that differ by no more than rounding."""
    order = np.argsort(size)
    ordered = size[order]
    higher = np.diff(ordered) > SAME * (1e-3 + ordered[1:])
    found = np.empty(len(size), dtype=np.intp)
    found[order] = np.append(0, np.cumsum(higher))[: len(size)]
    return found


def spread_evenly(size: Array, weight: Array, count: int) -> tuple[npt.NDArray[np.intp], Array]:
    """Index of events that stand for all, in order, and how many of `count` equal parts each stands for.

    It depends on neither the order and the frequencies in which events came nor on which class is named first: events
    of one size, (T,), have what is drawn of them in common, however many they are.

    >>> import numpy as np
    >>> spread_evenly(np.array([3.0, 1.0, 1.0, 4.0]), np.ones(4), 2)
    (array([0, 1, 2]), array([1. , 0.5, 0.5]))
    """
    rank = size_ranks(size)
    worth = np.bincount(rank, weights=weight)
    behind = np.cumsum(worth)
    # A step that ends where the weights of a size do is not moved beyond it by rounding.
    places = (np.arange(count) + 0.5 - SAME) / count * behind[-1]
    drawn = np.bincount(np.searchsorted(behind, places), minlength=len(worth))
    kept = np.flatnonzero((drawn > 0)[rank] & (weight > 0))
    return kept, np.asarray((drawn / np.where(drawn > 0, worth, 1.0))[rank[kept]] * weight[kept])
