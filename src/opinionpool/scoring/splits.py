"""What to learn from and what to score: at random, forward in time, or by groups of events.

A split is a pair of positions among T events. In a round of splits no event is scored twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Index
from opinionpool.errors import ArgumentError, LearningError
from opinionpool.estimation.sampling import Keys, mixed
from opinionpool.scoring.occasions import Times
from opinionpool.tables.times import as_span

# Fewer events with another outcome than the usual one hardly distinguish pools.
RARE = 5
NO_GAP = np.timedelta64(0, "us")


@dataclass(frozen=True, eq=False)
class Split:
    """Which events are learned from, and which are scored then."""

    # train, test: index, increasing
    train: Index
    test: Index


def shuffled(keys: Keys, rng: np.random.Generator) -> Index:
    """Positions of events in an order that depends on their numbers, not on their positions."""
    with np.errstate(over="ignore"):
        return np.argsort(mixed(keys + rng.integers(2**63, dtype=np.uint64)), kind="stable")


def random_splits(outcomes: Index, folds: int, rng: np.random.Generator, keys: Keys) -> list[Split]:
    """Folds that are as alike in their outcomes, and in size, as whole events allow.

    Parameters
    ----------
    outcomes : ndarray of int, shape (T,)
        Class numbers.
    folds : int
        From 2 to T.
    rng : Generator
    keys : ndarray of uint64, shape (T,)
        A number of each event, by which it is dealt.

    Examples
    --------
    >>> outcomes, keys = np.array([0, 0, 0, 0, 1, 1]), np.arange(6, dtype=np.uint64)
    >>> [outcomes[split.test].tolist() for split in random_splits(outcomes, 2, np.random.default_rng(0), keys)]
    [[0, 0, 1], [0, 0, 1]]
    """
    order = shuffled(keys, rng)
    by_outcome = order[np.argsort(outcomes[order], kind="stable")]
    fold = np.empty(len(outcomes), dtype=np.intp)
    # Dealt like cards, one outcome after the other, in random order.
    fold[by_outcome] = rng.permutation(folds)[np.arange(len(outcomes)) % folds]
    return list(_each_fold(fold))


def group_splits(outcomes: Index, groups: npt.NDArray[np.generic], folds: int, rng: np.random.Generator) -> list[Split]:
    """Folds of whole groups, as alike in their outcomes as those allow.

    Large groups are dealt first, each to the fold that it makes least uneven; ties are broken at random.

    Parameters
    ----------
    outcomes : ndarray of int, shape (T,)
    groups : ndarray, shape (T,)
        Labels.
    folds : int
        From 2 to the number of groups.
    rng : Generator

    Examples
    --------
    >>> groups = np.array(["a", "b", "a", "c", "b"])
    >>> splits = group_splits(np.array([0, 1, 1, 1, 0]), groups, 3, np.random.default_rng(0))
    >>> sorted(groups[split.test].tolist() for split in splits)
    [['a', 'a'], ['b', 'b'], ['c']]
    """
    labels, member = np.unique(groups, return_inverse=True)
    classes = int(outcomes.max(initial=0)) + 1
    counts = np.bincount(member * classes + outcomes, minlength=len(labels) * classes).reshape(-1, classes)
    order = rng.permutation(len(labels))
    order = order[np.argsort(-counts[order].sum(axis=1), kind="stable")]
    dealt, home = np.zeros((folds, classes)), np.empty(len(labels), dtype=np.intp)
    share = 1.0 / np.maximum(counts.sum(axis=0), 1)
    for group in order:
        # What the squares of all shares grow by. A fold without events comes first, so that none stays empty.
        growth = ((2 * dealt + counts[group]) * counts[group] * share**2).sum(axis=1)
        growth += dealt.sum(axis=1) / len(outcomes) ** 2
        candidates = np.flatnonzero(growth <= growth.min() * (1 + 1e-12))
        home[group] = candidates[rng.integers(len(candidates))]
        dealt[home[group]] += counts[group]
    return list(_each_fold(home[member]))


def time_splits(answered: Times, folds: int, gap: np.timedelta64 = NO_GAP, known: Times | None = None) -> list[Split]:
    """Blocks forward in time: each is scored after learning from outcomes known at least `gap` before its first answer.

    The events are cut into `folds` + 1 blocks of about the same size, of which the first is never scored. Events that
    are answered at the same time stay in one block, so blocks may be fewer.

    Parameters
    ----------
    answered : ndarray of datetime64, shape (T,)
        When each event is answered, none missing.
    folds : int
    gap : timedelta64, default 0
        Time from an outcome that is learned from to the beginning of the block; without a gap it is strictly earlier.
    known : ndarray of datetime64, shape (T,), optional
        When each outcome was known, none missing and none before the answer; as the event is answered if not given.

    Examples
    --------
    >>> times = np.array(["2025-01-01", "2025-01-02", "2025-01-02", "2025-01-05"], dtype="datetime64[us]")
    >>> [(split.train.tolist(), split.test.tolist()) for split in time_splits(times, 3)]
    [([0], [1, 2]), ([0, 1, 2], [3])]

    Outcomes that become known a day late are learned from later:

    >>> late = times + np.timedelta64(1, "D")
    >>> [(split.train.tolist(), split.test.tolist()) for split in time_splits(times, 3, known=late)]
    [([], [1, 2]), ([0, 1, 2], [3])]
    """
    known = answered if known is None else known
    moments, rank = np.unique(answered, return_inverse=True)
    if len(moments) < 2:
        return []
    before = np.concatenate([[0], np.cumsum(np.bincount(rank))])
    # Each cut goes to the change of time that is nearest.
    ideal = np.arange(1, folds + 1) * (len(answered) / (folds + 1))
    later = np.clip(np.searchsorted(before, ideal), 1, len(moments) - 1)
    cuts = np.unique(np.where(ideal - before[later - 1] < before[later] - ideal, np.maximum(later - 1, 1), later))
    splits = []
    for start, end in zip(cuts, [*cuts[1:], len(moments)], strict=True):
        past = (known < moments[start]) & (known <= moments[start] - gap)
        splits.append(Split(np.flatnonzero(past), np.flatnonzero((rank >= start) & (rank < end))))
    return splits


def check_splits(folds: int, units: int, what: str) -> int:
    """The number of folds that so many units, such as events or groups, allow.

    Raises
    ------
    ArgumentError, LearningError
        If fewer than 2 folds are asked for, or there are fewer than 2 units.
    """
    if folds < 2:
        raise ArgumentError(f"out-of-sample scores need at least 2 folds, and there are {folds}")
    if units < 2:
        resolved = "resolved events with forecasts" if what == "events" else f"{what} of resolved events with forecasts"
        raise LearningError(
            f"pools are compared on {what} that they have not learned from, which takes at least 2 {resolved}, and "
            f"there {'is' if units == 1 else 'are'} {units}"
        )
    return min(folds, units)


def read_gap(gap: object) -> np.timedelta64:
    """A span of time: a number of days, or a text such as ``"4w"``, ``"36h"``, ``"90min"``.

    Raises
    ------
    ArgumentError
        If it is none, or negative.

    Examples
    --------
    >>> read_gap("4w").astype("timedelta64[D]"), read_gap(0.5).astype("timedelta64[h]")
    (np.timedelta64(28,'D'), np.timedelta64(12,'h'))
    """
    return as_span(gap, "a gap")


def _each_fold(fold: Index) -> Iterator[Split]:
    """The splits by the fold of each event, without empty ones."""
    for number in np.unique(fold):
        test = fold == number
        yield Split(np.flatnonzero(~test), np.flatnonzero(test))
