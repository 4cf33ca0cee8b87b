"""Samples of events that represent all events, and do not depend on the order or the parts in which events came.

Whether an event is drawn depends on a hash of its forecasts' probabilities of the outcome: not on its id or position,
who made which forecast, or the names and order of experts and classes. The sample has room for equally many events with
each outcome, which are weighted so that outcomes are as frequent as in all events.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

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
    """Return a hash (splitmix64) of each number in `keys`."""
    found = np.asarray(keys * GOLDEN)
    flat = found.reshape(-1)
    # Blocks stay in the cache.
    for rows in blocks(len(flat), 1):
        mix(flat[rows])
    return found


def mix(z: Keys) -> None:
    """Apply the last steps of the hash splitmix64 to `z`, in place."""
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)


def name_keys(names: Iterable[str]) -> Keys:
    """Hash of each name, an odd number of 64 bits."""
    digests = [hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest() for name in names]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64) | np.uint64(1)


def _places(of: Keys) -> Array:
    """Return a pseudorandom number from 1 to 2 for each key in `of`."""
    return 1.0 + (mixed(of) >> np.uint64(12)).astype(np.float64) * 2.0**-52


def cell_keys(values: Array, places: Array | float) -> Keys:
    """Hash of each probability in `values` and of the number of its expert or class, `places`; 0 where missing."""
    moved = values + places
    # The bits of a square depend on all those of a probability and on whose it is, in a way that sums do not undo.
    found = np.square(moved, out=moved).view(np.uint64)
    # Much faster where no forecast is missing.
    if np.isnan(np.vdot(values, values)):
        found[np.isnan(values)] = 0
    return found


def row_contents(q: Floats, experts: Keys) -> Keys:
    """Return a hash of all forecasts on each event, (T,), from `q` (T, N) and hashes of the experts' names."""
    found, places = np.empty(len(q), dtype=np.uint64), _places(experts)
    for rows in blocks(len(q), q.shape[1]):
        found[rows] = cell_keys(np.asarray(q[rows], dtype=np.float64), places).sum(axis=1)
    return found


def some_rows(q: Floats, one_in: int) -> Index:
    """Return positions of about one in `one_in` rows of `q`, drawn by the rows' hashes, whatever their order."""
    contents = row_contents(q, name_keys(map(str, range(q.shape[1]))))
    # A part of a part is not the same part again.
    return np.flatnonzero(mixed(contents ^ np.uint64(len(q))) % np.uint64(one_in) == 0)


def event_contents(forecasts: Forecasts) -> Keys:
    """Hash of each event's forecasts, prior, times, group and topic, without its id, (T,)."""
    t = len(forecasts.events)
    if t == 0:
        return np.zeros(0, dtype=np.uint64)
    experts, k = name_keys(forecasts.experts), len(forecasts.classes)
    classes = name_keys(map(str, range(k))) if forecasts.options is None else _option_keys(forecasts)
    with np.errstate(over="ignore"):
        found = _sums_of_cells(forecasts, experts, classes)
        if forecasts.prior is not None:
            places = _places(classes[..., : max(1, forecasts.prior[:1].size)])
            found += cell_keys(forecasts.prior.reshape(t, -1), places).sum(axis=1)
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
    """Sum of hashes of all forecasts on each event, (T,); `experts`, `classes` are hashes of names."""
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
        keys = cell_keys(given, places)
        # Sums of one number each take longer than all the rest.
        keys = keys.sum(axis=1, dtype=np.uint64) if several else keys[:, 0]
        some = forecasts.crowd[events] > 0
        found[events][some] = np.add.reduceat(keys, starts[:-1][events][some] - first)
    return found


def _together(starts: Index, size: int) -> Iterator[slice]:
    """Yield consecutive slices of the events with about `size` forecasts each, up to the last event with a forecast."""
    edges = np.unique(np.searchsorted(starts, [*range(0, starts[-1], size), starts[-1]])).tolist()
    yield from map(slice, edges[:-1], edges[1:])


def _option_keys(forecasts: Forecasts) -> Keys:
    """Hash of each option's name, (T, K); 0 in the positions beyond an event's options."""
    found = np.zeros((len(forecasts.events), len(forecasts.classes)), dtype=np.uint64)
    for row, options in zip(found, forecasts.options or (), strict=True):
        row[: len(options)] = name_keys(map(str, options))
    return found


def priorities(keys: npt.NDArray[np.uint64], log_weight: npt.ArrayLike) -> Array:
    """Return a random priority for each item: the items with the lowest priorities are a weighted sample.

    A priority is the log of an exponential time with the rate exp(`log_weight`): the probability of inclusion grows
    with the weight, and a common factor of all weights changes nothing (Cohen and Kaplan 2007, bottom-k sketches).
    """
    return np.asarray(np.log(_exponential(keys)) - log_weight)


def row_keys(numbers: Index, seed: int) -> npt.NDArray[np.uint64]:
    """Hash of each row number, for rows without ids."""
    with np.errstate(over="ignore"):
        return mixed(np.uint64((1 + 0x632BE59BD9B4E019 * (seed + 1)) & _WORD) + numbers.astype(np.uint64))


# Probabilities count to this fraction, so that p and 1 - (1 - p) are the same.
GRID, FACTOR = 2.0**30, np.uint64(0xBF58476D1CE4E5B9)
# Resolved events in a sample, and forecasts in them.
EVENTS, FORECASTS = 20_000, 2_000_000
# Of unresolved events so many times fewer are looked at: they tell who repeats whom, and little else.
FEWER = 5
# A share of different keys from which on copies are not looked for.
DIFFERENT = 0.97
# Different events of one key that are drawn together at most.
TOGETHER = 100


def given_keys(q: Floats, outcomes: Index, *, binary: bool) -> Keys:
    """Return a hash of the probability that each forecast gave to the outcome or, if unknown, of the likeliest class.

    Hashes do not depend on the order of the classes, and are 0 where a forecast is missing.

    Parameters
    ----------
    q : ndarray, shape (T, ...) if `binary`, else (T, ..., K)
    outcomes : ndarray of int, shape (T,)
        -1 where not resolved.

    Examples
    --------
    >>> q = np.array([[0.1, 0.3], [0.9, 0.7], [np.nan, 0.3]])
    >>> np.unique(given_keys(q, np.array([0, 1, 0]), binary=True)).size
    3
    """
    lead = (-1, *(1,) * (q.ndim - 1))
    if binary:
        flipped = outcomes == 0
        given = q * np.where(flipped, -GRID, GRID).reshape(lead)
        given += np.where(flipped, GRID, 0.0).reshape(lead)
        unknown = outcomes < 0
        if unknown.any():
            given[unknown] = np.maximum(given[unknown], GRID - given[unknown])
    else:
        given = np.take_along_axis(q, np.maximum(outcomes, 0).reshape(lead), axis=-1)[..., 0]
        given = GRID * np.where((outcomes < 0).reshape(lead[:-1]), q.max(axis=-1), given)
    np.rint(given, out=given)
    missing = np.isnan(given)
    if missing.any():
        given[missing] = -1.0
    keys = given.astype(np.int64).view(np.uint64)
    keys += np.uint64(1)
    keys *= GOLDEN
    keys ^= keys >> np.uint64(32)
    keys *= FACTOR
    return keys


def event_keys(forecasts: Forecasts) -> Keys:
    """Return a hash of each event, (T,), of the probabilities that forecasts gave to its outcome; 0 without forecasts.

    Names, and the order of experts and classes, have no influence on it.
    """
    cells = given_keys(
        forecasts.probabilities, forecasts.outcomes[forecasts.event_index], binary=forecasts.probabilities.ndim == 1
    )
    keys = _sums(cells, forecasts.starts)
    if forecasts.prior is not None:
        prior = forecasts.prior
        keys[keys != 0] += FACTOR * given_keys(prior, forecasts.outcomes, binary=prior.ndim == 1)[keys != 0]
    return mixed(keys)


def _sums(values: Keys, starts: Index) -> Keys:
    """Return sums of hashes `values` from each position in `starts` to the next, (T,)."""
    total = np.zeros(len(values) + 1, dtype=np.uint64)
    np.cumsum(values, out=total[1:])
    return np.asarray(total[starts[1:]] - total[starts[:-1]])


def row_contents_of(forecasts: Forecasts) -> Keys:
    """Hash of each event's contents and of the times at which its forecasts were made, (T,)."""
    found = event_contents(forecasts)
    if forecasts.made is not None:
        found += _sums(mixed(forecasts.made.astype(np.int64).view(np.uint64)), forecasts.starts)
    return found


def rooms(experts: int, classes: int) -> Index:
    """Return how many events a sample may have: with each outcome and, in the last place, unresolved; (K + 1,)."""
    room = max(1, min(EVENTS, FORECASTS // experts) // classes)
    return np.array([*[room] * classes, max(1, room // FEWER)], dtype=np.intp)


class Draw(NamedTuple):
    """Weighted sample of S of T events, which does not depend on the order of the events.

    Frequencies are scaled so that events likeliest to be drawn count once: posteriors are as wide as the sample allows.
    """

    positions: Index  # (S,); positions of the sampled events, one of several equal events
    times: Array  # (S,); factor on the summed weight of each event and its copies
    place: Index  # (T,); place of each event, or of its copy, in the sample; S for events outside
    complete: bool  # whether all resolved events with a forecast are in the sample

    def frequencies(self, weight: Array) -> Array:
        """Return how many events each sampled event stands for, (S,), from the weights of all events, (T,)."""
        return np.asarray(np.bincount(self.place, weight, len(self.positions) + 1)[:-1] * self.times)

    @classmethod
    def of(
        cls, keys: Keys, outcomes: Index, weight: Array, room: Index, contents: Callable[[], Keys] | None = None
    ) -> Draw:
        """Draw a sample, stratified by outcome, with frequencies that keep the share of each outcome.

        Events with one key are drawn together, up to `TOGETHER` different ones. The probability of this grows with
        their weight, and frequencies are divided by the probability. The key 0, for events without forecasts, is left
        out. `room` (K + 1,) is the largest number of different events with each outcome, and of unresolved ones;
        `contents` returns numbers (T,) that are equal for equal events.

        >>> keys = mixed(np.arange(1, 6, dtype=np.uint64))
        >>> found = Draw.of(keys, np.zeros(5, dtype=int), np.ones(5), np.array([3, 1]))
        >>> found.positions.tolist(), found.frequencies(np.ones(5)).tolist()
        ([3, 0, 1], [1.0, 1.0, 1.0])
        """
        last = len(room) - 1
        outcome = np.where(outcomes < 0, last, outcomes)
        strata = [np.flatnonzero((outcome == g) & (weight > 0) & (keys != 0)) for g in range(last + 1)]
        same = None
        if contents is not None and _different(keys) < DIFFERENT * sum(map(len, strata)):
            same = contents()
            keys = _few_together(keys, same)
        found = [_ordered(keys, weight, same, mine, most) for mine, most in zip(strata, room.tolist(), strict=True)]
        events = np.concatenate(found)
        if not len(events):
            return cls(events, np.empty(0), np.zeros(len(keys), dtype=np.intp), complete=True)
        starts = np.append(True, (np.diff(keys[events]) != 0) | (np.diff(outcome[events]) != 0))
        different = np.ones(len(events), dtype=bool)
        if same is not None:
            different = starts | np.append(True, np.diff(same[events]) != 0)
        first, group = np.flatnonzero(starts), np.cumsum(starts) - 1
        total, size = np.bincount(group, weight[events]).astype(np.float64), np.bincount(group[different])
        stratum, log_rate = outcome[events[first]], np.log(total)
        priority = priorities(keys[events[first]], log_rate)
        beyond, drawn = np.full(last + 1, np.inf), list[Index]()
        for g, most in enumerate(room.tolist()):
            kept, beyond[g] = least(priority, size[:, None], np.flatnonzero(stratum == g), np.array([most]))
            drawn.append(kept)
        kept, whole = np.concatenate(drawn), np.array([weight[mine].sum() for mine in strata])
        own, known = total[kept], stratum[kept] < last
        times = standing_for(beyond, own, log_rate[kept], stratum[kept], whole) / own
        # Places of the groups that are kept, and of the different events in them.
        place = np.full(len(first), -1)
        place[kept] = np.cumsum(size[kept]) - size[kept]
        inside = place[group] >= 0
        within = np.cumsum(different) - 1 - (np.cumsum(size) - size)[group]
        places = np.full(len(keys), int(size[kept].sum()))
        places[events[inside]] = (place[group] + within)[inside]
        firsts = events[inside & different]
        times = np.where(known, times / times[known].min(initial=np.inf), 1.0).repeat(size[kept])
        return cls(firsts[np.argsort(places[firsts])], times, places, bool(np.isinf(beyond[:last]).all()))


def least(priority: Array, taking: Index, mine: Index, room: Index) -> tuple[Index, float]:
    """Return the items of least priority among `mine` for which there is room, and the next item's priority.

    Item m needs `taking[m]` (L,) of the `room` (L,) for L kinds, at least 1 of the first kind. At least one item is
    returned; of items with equal priority, all or none.
    """
    if len(mine) > room[0] + 1:
        # No more find room; sorting all would take longer.
        mine = np.sort(mine[np.argpartition(priority[mine], room[0])[: room[0] + 1]])
    mine = mine[np.argsort(priority[mine], kind="stable")]
    fit = max(1, int((np.cumsum(taking[mine], axis=0) <= room).all(axis=1).sum()))
    beyond = float(priority[mine[fit:]].min(initial=np.inf))
    return mine[priority[mine] < beyond], beyond


def standing_for(beyond: Array, own: Array, log_rate: Array, stratum: Index, totals: Array) -> Array:
    """Weight that each of S sampled items stands for, (S,); those of a stratum add up to its entry in `totals` (G,).

    `own` are the items' weights, which are divided by the probabilities of being sampled. These follow from the
    logarithm of an item's rate, `log_rate`, and from `beyond` (G,), the least priority that found no room.
    """
    found = own.copy()
    for group in np.flatnonzero(~np.isinf(beyond)).tolist():
        mine = stratum == group
        with np.errstate(over="ignore"):
            share = own[mine] / -np.expm1(-np.exp(log_rate[mine] + beyond[group]))
        found[mine] = share * (totals[group] / share.sum()) if share.any() else share
    return found


def _few_together(keys: Keys, same: Keys) -> Keys:
    """Return `keys`, each mixed with the hash of contents, `same`, if over `TOGETHER` different events have that key.

    Votes have few keys, one for each number of right votes; hashes of contents also depend on who voted.
    """
    # Sorting one array of numbers takes a third of the time of sorting pairs.
    pairs = mixed(keys ^ same)
    order = np.argsort(pairs)
    different = order[np.append(True, np.diff(pairs[order]) != 0)]
    found, count = np.unique(keys[different], return_counts=True)
    many = found[(count > TOGETHER) & (found != 0)]
    if not len(many):
        return keys
    return np.where(many[np.searchsorted(many[:-1], keys)] == keys, pairs, keys)


def _different(keys: Keys) -> int:
    """Return the number of distinct keys."""
    return 1 + int(np.count_nonzero(np.diff(np.sort(keys))))


def _ordered(keys: Keys, weight: Array, same: Keys | None, mine: Index, most: int) -> Index:
    """Return the events `mine`, of one outcome, ordered by key and contents, without events of weight 0."""
    keys, weight = keys[mine], weight[mine]
    if same is not None:
        return mine[np.lexsort((same[mine], keys))]
    if len(keys) > most + 1 and np.ptp(weight) == 0 and _different(keys) == len(keys):
        # The largest keys are those of the least ranks.
        likely = np.argpartition(keys, len(keys) - most - 1)[-most - 1 :]
        mine, keys = mine[likely], keys[likely]
    return mine[np.argsort(keys)]


def _exponential(keys: Keys) -> Array:
    """Pseudorandom exponential number with rate 1 for each key."""
    return -np.log(((keys >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)


def sample_of(forecasts: Forecasts, weight: Array) -> Draw | None:
    """Return a sample of the events, stratified by outcome; None if all fit, or events have options of their own."""
    k = len(forecasts.classes)
    room = rooms(len(forecasts.experts), k)
    counts = np.bincount(np.where(forecasts.resolved, forecasts.outcomes, k), minlength=k + 1)
    if forecasts.options is not None or (counts[:k] <= room[:k]).all():
        return None
    return Draw.of(event_keys(forecasts), forecasts.outcomes, weight, room, lambda: row_contents_of(forecasts))


def sample_note(used: int, resolved: int) -> Note:
    """Return the note that the pool was learned from a sample of `used` of `resolved` events."""
    text = f"{used:,} of {resolved:,} resolved events were used to learn whom to believe; the prior is from all of them"
    return Note("sample", text, used)
