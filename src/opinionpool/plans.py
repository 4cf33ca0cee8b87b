"""Which resolved events pools are compared on, how they are set apart, and which of them stand or fall together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.bootstrap import FEWEST_CLUSTERS
from opinionpool.clusters import by_date, by_group
from opinionpool.errors import ArgumentError, LearningError, Note
from opinionpool.folds import Index, Split, check_splits, group_splits, random_splits, time_splits
from opinionpool.forecasts import Forecasts
from opinionpool.wording import counted

__all__ = ["Plan", "clusters_of"]


@dataclass(frozen=True, eq=False)
class Plan:
    """Which events are compared on, and their splits by the number of the round."""

    rows: Index
    splits: Callable[[int], list[Split]]
    notes: tuple[Note, ...]

    @classmethod
    def of(cls, forecasts: Forecasts, by: str | None, folds: int, gap: np.timedelta64, seed: int) -> Plan:
        """The plan for some forecasts; arguments as for `opinionpool.compare.compare_pools`."""
        usable = forecasts.resolved & (forecasts.crowd > 0)
        notes = _one_outcome(forecasts, usable)
        silent = int((forecasts.resolved & ~usable).sum())
        if silent:
            notes.append(Note("no-forecast", f"{silent} resolved without any forecast: not scored", silent))
        if gap and by != "time":
            raise ArgumentError('a gap is for splits forward in time: by="time" (on the command line --by-time)')
        if by == "time":
            return cls._forward(forecasts, usable, folds, gap, notes)
        rows = np.flatnonzero(usable)
        # Options of their own do not make events alike.
        outcomes = forecasts.outcomes[rows] if forecasts.options is None else np.zeros(len(rows), dtype=np.intp)
        if by is None:
            folds = _fewer(folds, len(rows), "events", notes)
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
                    '(in Python by="time") learns from the past alone'
                )
                notes.append(Note("random-folds", text))

            def deal(number: int) -> list[Split]:
                return random_splits(outcomes, folds, _generator(seed, number))
        elif by == "group":
            grouped = by_group(forecasts)
            if grouped is None:
                raise ArgumentError(
                    "there are no groups to set apart: no column says which events belong together; name it "
                    "with --column group=NAME (in Python, Forecasts.groups)"
                )
            groups = grouped.member[rows]
            folds = _fewer(folds, len(np.unique(groups)), "groups", notes)

            def deal(number: int) -> list[Split]:
                return group_splits(outcomes, groups, folds, _generator(seed, number))
        else:
            raise ArgumentError(f'by must be None, "time" or "group", and it is {by!r}')
        return cls(rows, deal, tuple(notes))

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
        found = time_splits(times[rows], folds, gap)
        splits = [split for split in found if len(split.train)]
        if not splits:
            raise LearningError("the gap leaves no event to learn from before those to be scored; a shorter one would")
        if len(found) < folds:
            notes.append(
                Note("fewer-folds", f"{counted(len(found), 'block')} instead of {folds}: events share their dates")
            )
        first = len(rows) - sum(len(split.test) for split in splits)
        text = (
            f"the first {first} of {len(rows)} events in time are learned from and never scored; the scores are of the "
            f"other {len(rows) - first}"
        )
        notes.append(Note("not-scored", text, first))
        return cls(rows, lambda _: splits, tuple(notes))


def _one_outcome(forecasts: Forecasts, usable: npt.NDArray[np.bool_]) -> list[Note]:
    seen, counts = np.unique(forecasts.outcomes[usable], return_counts=True)
    if len(seen) == 0 or forecasts.options is not None:
        return []
    others = int(counts.sum() - counts.max())
    if 0 < others < FEWEST_CLUSTERS:
        common = forecasts.classes[seen[counts.argmax()]]
        text = (
            f"only {counted(others, 'event')} had another outcome than {common!r}, and what tells pools apart hangs on "
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
    """What is drawn together in the bootstrap, (T,): groups, dates, or single events; and its name."""
    t = len(sample.events)
    candidates = [found for found in (by_group(sample), by_date(sample)) if found is not None]
    if by == "time":
        candidates.reverse()
    for found in candidates:
        size = len(np.unique(found.member[scored]))
        if size == scored.sum():
            continue
        if size >= FEWEST_CLUSTERS:
            return found.member, found.unit, []
        text = (
            f"the scored events share {counted(size, found.unit)}, too few to say how far results would "
            "differ elsewhere; the intervals take the events as independent, and may be too narrow"
        )
        return np.arange(t), "event", [Note("few-clusters", text, size)]
    return np.arange(t), "event", []
