"""Which events are scored, and what is learned from for each: how users say it, and the notes on that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.arguments import one_of, whole_number
from opinionpool.arrays import Index
from opinionpool.clusters import Clusters, by_date, by_group, by_settlement
from opinionpool.errors import ArgumentError, LearningError, Note
from opinionpool.estimation.sampling import event_contents
from opinionpool.forecasts import Forecasts
from opinionpool.scoring.intervals import FEWEST_CLUSTERS
from opinionpool.scoring.occasions import Times, first_answered
from opinionpool.scoring.splits import (
    NO_GAP,
    RARE,
    Split,
    check_splits,
    group_splits,
    random_splits,
    read_gap,
    time_splits,
)
from opinionpool.text import counted

# More rounds of folds than these tell nothing new.
MOST_REPEATS = 1000


@dataclass(frozen=True, eq=False)
class Splits:
    """How events are split to score pools; the fields are those of `opinionpool.scoring.compare.compare_pools`."""

    by: str | None = None
    folds: int = 5
    repeats: int | None = None
    gap: np.timedelta64 = NO_GAP
    seed: int = 0

    @classmethod
    def of(
        cls,
        by: str | None = None,
        folds: int = 5,
        repeats: int | None = None,
        gap: object = 0,
        seed: int = 0,
    ) -> Splits:
        """The same, checked.

        Raises
        ------
        ArgumentError
            If an argument breaks a rule.
        """
        if repeats is not None:
            repeats = whole_number(repeats, "repeats", 1, MOST_REPEATS)
        folds, seed = whole_number(folds, "folds", 1), whole_number(seed, "seed", 0, 2**63)
        return cls(by if by is None else one_of(by, "by", ("time", "group")), folds, repeats, read_gap(gap), seed)

    @property
    def rounds(self) -> int | None:
        """How often events are split: once forward in time; None until it hardly matters."""
        return 1 if self.by == "time" else self.repeats


@dataclass(frozen=True)
class Plan:
    """Which events are compared on, and their splits by the number of the round."""

    rows: Index
    splits: Callable[[int], list[Split]]
    notes: tuple[Note, ...]

    @classmethod
    def of(cls, forecasts: Forecasts, wanted: Splits) -> Plan:
        """The plan for some forecasts."""
        by, gap = wanted.by, wanted.gap
        usable = forecasts.resolved & (forecasts.crowd > 0)
        notes = _one_outcome(forecasts, usable)
        unanswered = int((forecasts.resolved & ~usable).sum())
        if unanswered:
            notes.append(Note("no-forecast", f"{unanswered} resolved without any forecast: not scored", unanswered))
        if gap and by != "time":
            raise ArgumentError('a gap is for splits forward in time: by="time" (on the command line --by-time)')
        if by == "time":
            return cls._forward(forecasts, usable, wanted.folds, gap, notes)
        rows = np.flatnonzero(usable)
        # Options of their own do not make events alike.
        outcomes = forecasts.outcomes[rows] if forecasts.options is None else np.zeros(len(rows), dtype=np.intp)
        folded = cls._at_random if by is None else cls._by_group
        return folded(forecasts, rows, outcomes, wanted, notes)

    @classmethod
    def _at_random(cls, forecasts: Forecasts, rows: Index, outcomes: Index, wanted: Splits, notes: list[Note]) -> Plan:
        """Folds of all events, with outcomes spread evenly."""
        folds = _fewer(wanted.folds, len(rows), "events", notes)
        grouped = by_group(forecasts)
        if grouped is not None and len(np.unique(grouped.member[rows])) < len(rows):
            text = (
                "the events come in groups, and random folds learn from the scored events' own groups; --by-group "
                '(in Python by="group") does not'
            )
            notes.append(Note("random-folds", text))
        if forecasts.times is not None and len(np.unique(_days(forecasts.times[rows]))) > 1:
            text = (
                "the events are dated, and random folds learn from later ones too; --by-time "
                '(in Python by="time") learns only from the past'
            )
            notes.append(Note("random-folds", text))
        keys = event_contents(forecasts.select_events(rows))
        return cls(
            rows, lambda number: random_splits(outcomes, folds, _generator(wanted.seed, number), keys), tuple(notes)
        )

    @classmethod
    def _by_group(cls, forecasts: Forecasts, rows: Index, outcomes: Index, wanted: Splits, notes: list[Note]) -> Plan:
        """Folds that do not share a group."""
        grouped = by_group(forecasts)
        if grouped is None:
            raise ArgumentError(
                "there are no groups to split by: no column says which events belong together; name it "
                "with --column group=NAME (in Python, Forecasts.groups)"
            )
        groups = grouped.member[rows]
        folds = _fewer(wanted.folds, len(np.unique(groups)), "groups", notes)
        return cls(
            rows, lambda number: group_splits(outcomes, groups, folds, _generator(wanted.seed, number)), tuple(notes)
        )

    @classmethod
    def _forward(
        cls,
        forecasts: Forecasts,
        usable: npt.NDArray[np.bool_],
        folds: int,
        gap: np.timedelta64,
        notes: list[Note],
    ) -> Plan:
        times = forecasts.times
        if not usable.any():
            check_splits(2, 0, "events")
        if times is None or np.isnat(times[usable]).all():
            raise ArgumentError(
                "events cannot be ordered in time: no column says when they belong; name it with --column time=NAME, "
                "closes=NAME or resolved_at=NAME (in Python, Forecasts.times)"
            )
        undated = int((usable & np.isnat(times)).sum())
        if undated:
            notes.append(Note("undated", f"{undated} without a time: neither learned from nor scored", undated))
        rows = np.flatnonzero(usable & ~np.isnat(times))
        if folds < 1:
            raise ArgumentError(f"out-of-sample scores need at least 1 block to score, and there are {folds}")
        _fewer(2, len(np.unique(times[rows])), "dates", notes)
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
    """Why there is nothing to learn from forward in time."""
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
            f"only {counted(others, 'event')} had another outcome than {common!r}, and all differences rest on "
            f"{'it' if others == 1 else 'them'}: the differences may be chance even where the intervals exclude 0"
        )
        return [Note("rare-outcome", text, others)]
    if len(seen) > 1:
        return []
    text = (
        f"every resolved event has outcome {forecasts.classes[seen[0]]!r}, so what scores best is what always calls it "
        "most likely"
    )
    return [Note("one-outcome", text)]


def _fewer(folds: int, units: int, what: str, notes: list[Note]) -> int:
    """The folds that can be had, with a note if they are fewer."""
    possible = check_splits(folds, units, what)
    if possible < folds:
        notes.append(Note("fewer-folds", f"{possible} folds instead of {folds}: there are no more {what}", possible))
    return possible


def _generator(seed: int, number: int) -> np.random.Generator:
    """The same for the same round, whatever came before."""
    return np.random.default_rng([seed, number])


def _days(times: npt.NDArray[np.datetime64]) -> npt.NDArray[np.datetime64]:
    return times[~np.isnat(times)].astype("datetime64[D]")


def clusters_of(sample: Forecasts, scored: npt.NDArray[np.bool_], by: str | None) -> tuple[Index, str, list[Note]]:
    """Which events the intervals take together, (T,): groups, dates, or single events; and its name.

    Days on which forecasts were made make no events dependent, but where there are enough of them it costs little to
    allow for what they may have in common.
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
