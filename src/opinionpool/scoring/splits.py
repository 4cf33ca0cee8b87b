"""Splits into training and test events: at random, forward in time, or by groups of events.

A split has the positions of training and test events among T events. In a round of splits no event is tested twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from opinionpool.arguments import one_of, whole_number
from opinionpool.arrays import Index
from opinionpool.clusters import Clusters, by_date, by_group, by_settlement
from opinionpool.errors import ArgumentError, LearningError, Note
from opinionpool.estimation.sampling import Keys, event_contents, mixed
from opinionpool.forecasts import Forecasts
from opinionpool.scoring.intervals import FEWEST_CLUSTERS
from opinionpool.tables.times import as_span
from opinionpool.text import counted

Times = npt.NDArray[np.datetime64]

# Fewer events with another outcome than the usual one hardly distinguish pools.
RARE = 5
NO_GAP = np.timedelta64(0, "us")
# More rounds of folds than these tell nothing new.
MOST_REPEATS = 1000


@dataclass(frozen=True, eq=False)
class Split:
    """Positions of training events and of test events, among T events."""

    # train, test: index, increasing
    train: Index
    test: Index


def shuffled(keys: Keys, rng: np.random.Generator) -> Index:
    """A random order, as positions, that depends on the events' hashes `keys` and not on the order they come in."""
    with np.errstate(over="ignore"):
        return np.argsort(mixed(keys + rng.integers(2**63, dtype=np.uint64)), kind="stable")


def random_splits(outcomes: Index, folds: int, rng: np.random.Generator, keys: Keys) -> list[Split]:
    """Random folds of similar sizes and outcome frequencies; by hashes `keys`, independent of the events' order."""
    order = shuffled(keys, rng)
    by_outcome = order[np.argsort(outcomes[order], kind="stable")]
    fold = np.empty(len(outcomes), dtype=np.intp)
    # Dealt like cards, one outcome after the other, in random order.
    fold[by_outcome] = rng.permutation(folds)[np.arange(len(outcomes)) % folds]
    return list(_each_fold(fold))


def group_splits(outcomes: Index, groups: npt.NDArray[np.generic], folds: int, rng: np.random.Generator) -> list[Split]:
    """Return folds of whole groups, large groups first, each added to the fold whose outcomes it balances best."""
    labels, member = np.unique(groups, return_inverse=True)
    outcomes = outcomes - outcomes.min(initial=0)
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
    """Return blocks forward in time, each tested after training on outcomes known before its first forecast.

    The events are cut into `folds` + 1 blocks of similar sizes by `answered` (T,), the time of each event's forecasts;
    the first block is never tested. Events with one such time stay in one block, so there may be fewer. `known` (T,) is
    the time of each outcome, `answered` if None; a fit uses outcomes known at least `gap` before the block's forecasts.

    >>> times = np.array(["2025-01-01", "2025-01-02", "2025-01-02", "2025-01-05"], dtype="datetime64[us]")
    >>> [(split.train.tolist(), split.test.tolist()) for split in time_splits(times, 3)]
    [([0], [1, 2]), ([0, 1, 2], [3])]
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


def _each_fold(fold: Index) -> Iterator[Split]:
    """Yield the split of each non-empty fold; `fold` (T,) is the fold in which each event is tested."""
    for number in np.unique(fold):
        test = fold == number
        yield Split(np.flatnonzero(~test), np.flatnonzero(test))


def first_answered(forecasts: Forecasts, known: Times) -> Times:
    """Time of the first forecast for each event, (T,), at most the time `known` of its outcome; NaT if unknown."""
    answered = known if forecasts.asked is None else np.fmin(forecasts.asked, known)
    if forecasts.history is not None:
        answered = answered.copy()
        np.fmin.at(answered, forecasts.history.event, forecasts.history.begin)
    return answered


@dataclass(frozen=True, eq=False)
class Splits:
    """Settings of the splits of events; the fields are arguments of `opinionpool.scoring.compare.compare_pools`."""

    by: str | None = None
    folds: int = 5
    repeats: int | None = None
    gap: np.timedelta64 = NO_GAP
    seed: int = 0

    @classmethod
    def of(
        cls, by: str | None = None, folds: int = 5, repeats: int | None = None, gap: object = 0, seed: int = 0
    ) -> Splits:
        """Return the settings of the splits, after checking the arguments, which are those of `compare_pools`."""
        if repeats is not None:
            repeats = whole_number(repeats, "repeats", 1, MOST_REPEATS)
        folds, seed = whole_number(folds, "folds", 1), whole_number(seed, "seed", 0, 2**63)
        return cls(
            by if by is None else one_of(by, "by", ("time", "group")), folds, repeats, as_span(gap, "a gap"), seed
        )

    @property
    def rounds(self) -> int | None:
        """Number of rounds: 1 forward in time, else `repeats`; None to repeat until scores hardly change."""
        return 1 if self.by == "time" else self.repeats


@dataclass(frozen=True)
class Plan:
    """Plan of cross-validation: the events on which pools are compared, and their splits in each round."""

    rows: Index  # positions of the T events among all events
    splits: Callable[[int], list[Split]]  # splits of the T events, from the number of the round
    notes: tuple[Note, ...]

    @classmethod
    def of(cls, forecasts: Forecasts, wanted: Splits) -> Plan:
        """Return the plan of cross-validation of `forecasts`, by the method, folds and gap in `wanted`."""
        by, gap = wanted.by, wanted.gap
        usable = forecasts.ended & (forecasts.crowd > 0)
        notes = _one_outcome(forecasts, usable & forecasts.resolved)
        unanswered = int((forecasts.ended & ~usable).sum())
        if unanswered:
            notes.append(Note("no-forecast", f"{unanswered} resolved without any forecast: not scored", unanswered))
        if gap and by != "time":
            raise ArgumentError('a gap is for splits forward in time: by="time" (on the command line --by-time)')
        if by == "time":
            return cls._forward(forecasts, usable, wanted.folds, gap, notes)
        return cls._folded(forecasts, np.flatnonzero(usable), wanted, notes)

    @classmethod
    def _folded(cls, forecasts: Forecasts, rows: Index, wanted: Splits, notes: list[Note]) -> Plan:
        """Plan with folds balanced by outcome; whole groups of events stay in one fold if `wanted` asks for it."""
        # Options of their own do not make events alike.
        outcomes = forecasts.outcomes[rows] if forecasts.options is None else np.zeros(len(rows), dtype=np.intp)
        grouped = by_group(forecasts)
        if wanted.by == "group":
            if grouped is None:
                raise ArgumentError(
                    "there are no groups to split by: no column says which events belong together; name it "
                    "with --column group=NAME (in Python, Forecasts.groups)"
                )
            member = grouped.member[rows]
            folds = possible_folds(wanted.folds, len(np.unique(member)), "groups", notes)
            deal = partial(group_splits, outcomes, member, folds)
        else:
            folds = possible_folds(wanted.folds, len(rows), "events", notes)
            if grouped is not None and len(np.unique(grouped.member[rows])) < len(rows):
                text = (
                    "the events come in groups, and random folds learn from the scored events' own groups; --by-group "
                    '(in Python by="group") does not'
                )
                notes.append(Note("random-folds", text))
            # When forecasts were made does not tell which outcomes were known by then.
            settled = by_settlement(forecasts)
            if settled is not None and settled.shared > 1:
                text = (
                    "the events have dates of closing or resolving, and random folds learn from later ones too; "
                    '--by-time (in Python by="time") learns only from the past'
                )
                notes.append(Note("random-folds", text))
            keys = event_contents(forecasts.select_events(rows))
            deal = partial(random_splits, outcomes, folds, keys=keys)
        return cls(rows, lambda number: deal(np.random.default_rng([wanted.seed, number])), tuple(notes))

    @classmethod
    def _forward(
        cls, forecasts: Forecasts, usable: npt.NDArray[np.bool_], folds: int, gap: np.timedelta64, notes: list[Note]
    ) -> Plan:
        times = forecasts.times
        if not usable.any():
            possible_folds(2, 0, "events", notes)
        if times is None or np.isnat(times[usable]).all():
            raise ArgumentError(
                "events cannot be ordered in time: no column says when they belong; name it with --column time=NAME, "
                "closes=NAME or resolved_at=NAME (in Python, Forecasts.times)"
            )
        settled = np.zeros_like(usable) if forecasts.settled is None else forecasts.settled
        early = int((usable & ~settled & ~np.isnat(times)).sum())
        if early:
            text = (
                f"{early} without a time of closing or resolving: their outcomes are taken as known when the last "
                "forecast was made, which may be too early"
            )
            notes.append(Note("outcome-dates", text, early, serious=True))
        undated = int((usable & np.isnat(times)).sum())
        if undated:
            notes.append(Note("undated", f"{undated} without a time: neither learned from nor scored", undated))
        rows = np.flatnonzero(usable & ~np.isnat(times))
        possible_folds(2, len(np.unique(times[rows])), "dates", notes)
        known, answered = times[rows], first_answered(forecasts, times)[rows]
        found = time_splits(answered, folds, gap, known)
        splits = [split for split in found if len(split.train)]
        if not splits:
            raise LearningError(_nothing_known(known, answered, gap))
        if len(found) < folds:
            notes.append(
                Note("fewer-folds", f"{counted(len(found), 'block')} instead of {folds}: events share their dates")
            )
        first = len(rows) - sum(len(split.test) for split in splits)
        text = (
            f"the first {first} of {len(rows)} events in time are learned from and never scored; the scores are of the "
            f"other {len(rows) - first}"
        )
        early = sum(len(split.test) for split in found if not len(split.train))
        if early:
            text += f"; when {early} of the first were answered, no outcome was known early enough to learn from"
        notes.append(Note("not-scored", text, first))
        return cls(rows, lambda _: splits, tuple(notes))


def _nothing_known(known: Times, answered: Times, gap: np.timedelta64) -> str:
    """Return the error message that no outcome is known early enough before later forecasts to learn from it."""
    if gap and known.min() < answered.max():
        return "the gap leaves no event to learn from before those to be scored; a shorter one would"
    return (
        "forward in time there is nothing to learn from: no outcome was known (resolved_at, else closes) before the "
        "events to be scored were answered: when they closed, with --horizon so long before, with --time-averaged at "
        "their first forecast"
    )


def _one_outcome(forecasts: Forecasts, usable: npt.NDArray[np.bool_]) -> list[Note]:
    seen, counts = np.unique(forecasts.outcomes[usable], return_counts=True)
    if len(seen) == 0 or forecasts.options is not None:
        return []
    others = int(counts.sum() - counts.max())
    if 0 < others < RARE:
        common = forecasts.classes[seen[counts.argmax()]]
        text = (
            f"only {counted(others, 'event')} had another outcome than {common!r}: differences may be chance even "
            "where the intervals exclude 0"
        )
        return [Note("rare-outcome", text, others)]
    if len(seen) > 1:
        return []
    text = (
        f"every resolved event has outcome {forecasts.classes[seen[0]]!r}, so what scores best is what always calls it "
        "most likely"
    )
    return [Note("one-outcome", text)]


def possible_folds(folds: int, units: int, what: str, notes: list[Note]) -> int:
    """Return the number of folds, at most `units` (events or groups); add a note to `notes` if it is reduced."""
    if folds < 2:
        raise ArgumentError(f"out-of-sample scores need at least 2 folds, and there are {folds}")
    if units < 2:
        resolved = "resolved events with forecasts" if what == "events" else f"{what} of resolved events with forecasts"
        raise LearningError(
            f"pools are compared on {what} that they have not learned from, which takes at least 2 {resolved}, and "
            f"there {'is' if units == 1 else 'are'} {units}"
        )
    if units < folds:
        notes.append(Note("fewer-folds", f"{units} folds instead of {folds}: there are no more {what}", units))
    return min(folds, units)


def clusters_of(sample: Forecasts, scored: npt.NDArray[np.bool_], by: str | None) -> tuple[Index, str, list[Note]]:
    """Return each event's cluster for intervals, (T,), what clusters are ("group", "date" or "event"), and notes.

    Clusters are the events of a group, or those that closed on one date; else those with forecasts of one day, if there
    are enough such days; else single events.
    """
    candidates: list[Clusters | None] = [by_group(sample), by_settlement(sample)]
    if by == "time":
        candidates.reverse()
    for found in candidates:
        if found is None:
            continue
        size = len(np.unique(found.member[scored]))
        if size == scored.sum():
            continue
        if size >= FEWEST_CLUSTERS:
            return found.member, found.unit, []
        text = (
            f"the scored events share {counted(size, found.unit)}, too few to say how far results would differ "
            f"elsewhere: at least {FEWEST_CLUSTERS} are needed"
        )
        return found.member, found.unit, [Note("few-clusters", text, size)]
    made = by_date(sample)
    if made is not None and FEWEST_CLUSTERS <= len(np.unique(made.member[scored])) < scored.sum():
        return made.member, made.unit, []
    return np.arange(len(sample.events)), "event", []
