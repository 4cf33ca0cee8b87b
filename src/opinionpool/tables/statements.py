"""Forecasts as they stand in a table, one number a time, and the rules that make them one per expert and event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.errors import CellError, DuplicateError, Note
from opinionpool.logodds import SUM_TOLERANCE
from opinionpool.tables.cells import Times
from opinionpool.tables.frames import Table, place
from opinionpool.text import counted, listed, quoted, shown

# Sums over classes that are this close to 1 are left as they are.
EXACT = 1e-9


@dataclass(frozen=True, eq=False)
class Statements:
    """M numbers that somebody said.

    Attributes
    ----------
    table : Table
        Where they were read.
    events, experts : sequence of str
        Who said what about what.
    classes : sequence of str
        What each number can be about; empty where a forecast is one number.
    event, expert, label : ndarray of int, shape (M,)
        Index in the three above; `label` is 0 throughout where there are no classes.
    value : ndarray, shape (M,)
        In [0, 1].
    row, column : ndarray of int, shape (M,)
        The cell of each number.
    time : ndarray of datetime64 or None, shape (M,)
        When it was said, NaT where unknown.
    """

    table: Table
    events: Sequence[str]
    experts: Sequence[str]
    classes: Sequence[str]
    event: Index
    expert: Index
    label: Index
    value: Array
    row: Index
    column: Index
    time: Times | None = None

    @property
    def pair(self) -> Index:
        """One number for each expert on each event, (M,)."""
        return self.event * max(len(self.experts), 1) + self.expert

    @property
    def key(self) -> Index:
        """One number for each expert on each event and class, (M,)."""
        return self.pair * max(len(self.classes), 1) + self.label

    def select(self, chosen: npt.NDArray[Any]) -> Statements:
        """Some of the statements: a mask, or positions."""
        kept = {name: getattr(self, name)[chosen] for name in ("event", "expert", "label", "value", "row", "column")}
        return replace(self, **kept, time=None if self.time is None else self.time[chosen])

    def who(self, i: int) -> str:
        """Expert and event of one statement, for people."""
        return f"{shown(self.experts[self.expert[i]])} on event {shown(self.events[self.event[i]])}"


def drop_late(
    said: Statements, as_of: np.datetime64 | None, closes: Times, resolved_at: Times
) -> tuple[Statements, list[Note]]:
    """Statements made in time.

    Parameters
    ----------
    said : Statements
        With times.
    as_of : datetime64 or None
        Nothing later counts; nor does what has no time.
    closes, resolved_at : ndarray of datetime64, shape (events,)
        Nothing said on an event after either counts. NaT where unknown.
    """
    notes: list[Note] = []
    limits = [
        (closes, Note("after-close", "made after the event closed")),
        (resolved_at, Note("after-resolution", "made after the outcome was known")),
    ]
    if as_of is not None and said.time is not None:
        unknown = np.isnat(said.time)
        said = _drop(said, unknown, Note("no-time", "without a time to compare with --as-of"), notes)
        late = said.time > as_of if said.time is not None else unknown
        said = _drop(said, late, Note("as-of", f"later than {_date(as_of)}"), notes)
    for limit, what in limits:
        if said.time is not None:
            said = _drop(said, said.time > limit[said.event], what, notes)
    return said, notes


def _drop(said: Statements, late: npt.NDArray[np.bool_], what: Note, notes: list[Note]) -> Statements:
    if not late.any():
        return said
    count = len(np.unique(said.pair[late])) if said.classes else int(late.sum())
    notes.append(Note(what.code, f"{counted(count, 'forecast')} left out, {what.text}", count))
    return said.select(~late)


def _date(time: np.datetime64) -> str:
    return str(time).removesuffix(".000000")


def one_each(said: Statements, rule: str | None, time_column: str | None) -> tuple[Statements, list[Note]]:
    """One number for each expert, event and class.

    Parameters
    ----------
    said : Statements
    rule : {None, "last", "mean"}
        What to do with several: refuse; keep the latest, by time if there is one, then by position; or average.
    time_column : str or None
        The header of the column that the times are from.

    Raises
    ------
    DuplicateError
        Without a rule, if there are several; lists up to three.
    """
    keys = said.key
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(np.diff(keys[order]) == 0)
    if not len(again):
        return said, []
    pairs = np.unique(said.pair[order[again]])
    if rule is None:
        raise _duplicates(said, pairs, time_column)
    many = f"several forecasts by one expert on one event, {counted(len(pairs), 'time')}"
    if rule == "mean":
        return _mean(said.select(order)), [Note("duplicates", f"{many}: their mean counts", len(pairs))]
    by = (
        f"the last by column {shown(time_column)}"
        if time_column
        else "the last row of the file, since there are no times,"
    )
    return _latest(said), [Note("duplicates", f"{many}: {by} counts", len(pairs))]


def _mean(said: Statements) -> Statements:
    """The average of each expert's numbers on each event and class; statements are in the order of their keys."""
    starts = np.flatnonzero(np.append(True, np.diff(said.key) != 0))
    counts = np.diff(np.append(starts, len(said.key)))
    low, high = np.minimum.reduceat(said.value, starts), np.maximum.reduceat(said.value, starts)
    # Rounding must not carry an average beyond what was averaged.
    means = np.clip(np.add.reduceat(said.value, starts) / counts, low, high)
    return replace(said.select(starts), value=means)


def _latest(said: Statements) -> Statements:
    """The last number of each expert on each event and class; classes are taken from one time."""
    if said.time is not None:
        stamp = np.where(np.isnat(said.time), np.iinfo(np.int64).min, said.time.astype(np.int64))
        _, pair = np.unique(said.pair, return_inverse=True)
        latest = np.full(pair.max() + 1, np.iinfo(np.int64).min)
        np.maximum.at(latest, pair, stamp)
        said = said.select(stamp == latest[pair])
    order = np.lexsort((said.row, said.key))
    last = np.append(np.diff(said.key[order]) != 0, True)
    return said.select(order[last])


def _duplicates(said: Statements, pairs: Index, time_column: str | None) -> DuplicateError:
    examples = []
    for pair in pairs[:3]:
        cells = np.flatnonzero(said.pair == pair)
        examples.append(f"{said.who(int(cells[0]))} ({place(said.table, *np.unique(said.row[cells])[:5].tolist())})")
    more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
    last = f"the last by column {shown(time_column)}" if time_column else "the last in the file"
    return DuplicateError(
        f"an expert may have one forecast on an event, and there are several by {', by '.join(examples)}{more}; "
        f"say which counts: --duplicates last for {last}, or --duplicates mean for their average"
    )


def fold_classes(
    said: Statements, order: Sequence[int], half_units: Callable[[Statements], Array]
) -> tuple[Statements, Array, list[Note]]:
    """Forecasts of K classes, one row each.

    Parameters
    ----------
    said : Statements
        One number for each expert, event and class.
    order : sequence of int
        Index of the classes in the order wanted.
    half_units : callable
        Half a unit of the last written digit of statements, for the tolerance of sums.

    Returns
    -------
    first : Statements
        One statement per forecast.
    probabilities : ndarray, shape (forecasts, K)
        Rows that sum to 1.
    notes : list of Note

    Raises
    ------
    CellError
        If a forecast lacks a class, or its probabilities do not add up to 1.
    """
    size = len(said.classes)
    said = said.select(np.argsort(said.key, kind="stable"))
    _, starts, counts = np.unique(said.pair, return_index=True, return_counts=True)
    if (counts != size).any():
        raise _lacking(said, int(starts[(counts != size).argmax()]))
    table = said.value.reshape(-1, size)
    total = table.sum(axis=1)
    off = np.flatnonzero(np.abs(total - 1) > SUM_TOLERANCE)
    if len(off):
        cells = (off[:, None] * size + np.arange(size)).ravel()
        slack = half_units(said.select(cells)).reshape(-1, size).sum(axis=1)
        beyond = (np.abs(total[off] - 1) > slack + 1e-9) | (total[off] <= 0)
        if beyond.any():
            raise off_sum(said, int(off[beyond.argmax()]) * size, float(total[off[beyond.argmax()]]))
    uneven = np.abs(total - 1) > EXACT
    if uneven.any():
        table = np.where(uneven[:, None], table / total[:, None], table)
    return said.select(starts), np.ascontiguousarray(table[:, list(order)]), normalised_note(total, uneven)


def normalised_note(total: Array, uneven: npt.NDArray[np.bool_]) -> list[Note]:
    """What to say of forecasts whose sums were off by rounding, if there are any."""
    if not uneven.any():
        return []
    count, worst = int(uneven.sum()), float(np.abs(total - 1).max())
    text = f"{count} of {len(total)} forecasts did not add up to 1 by rounding ({worst:.2g} at most): normalised"
    return [Note("normalised", text, count)]


def _lacking(said: Statements, start: int) -> CellError:
    present = said.label[said.pair == said.pair[start]]
    lacking = next(name for i, name in enumerate(said.classes) if i not in present)
    return CellError(
        f"the forecast by {said.who(start)} has no probability for class {shown(lacking)} "
        f"({place(said.table, int(said.row[start]))}); a forecast must give one for each of {len(said.classes)} classes"
    )


def off_sum(said: Statements, start: int, total: float) -> CellError:
    """The error for a forecast whose probabilities do not add up to 1."""
    return CellError(
        f"the probabilities by {said.who(start)} add up to {total:.6g} over the classes, and not to 1 "
        f"({place(said.table, int(said.row[start]))})"
    )


# On fewer events, 0 and 1 alone mean nothing.
_VOTES = 5


@dataclass(frozen=True, eq=False)
class SaidCounts:
    """How often who said what, which can be added up over parts of a table.

    Attributes
    ----------
    experts : sequence of str
    by_class : bool
        Whether numbers are about classes.
    events : int
    halves : int
    every, zeros, ones, extreme : ndarray of int, shape (experts,)
        Numbers, exact ones, and those beyond 5% or 95% that are not 0.
    """

    experts: Sequence[str]
    by_class: bool
    events: int
    halves: int
    every: Index
    zeros: Index
    ones: Index
    extreme: Index

    @classmethod
    def of(cls, said: Statements) -> SaidCounts:
        """Those of some statements."""
        size, zero = len(said.experts), said.value == 0
        every, zeros, ones, extreme = (
            np.bincount(experts, minlength=size)
            for experts in (
                said.expert,
                said.expert[zero],
                said.expert[said.value == 1],
                said.expert[((said.value < 0.05) & ~zero) | (said.value > 0.95)],
            )
        )
        halves = int((said.value == 0.5).sum())
        return cls(said.experts, bool(said.classes), len(said.events), halves, every, zeros, ones, extreme)

    def __add__(self, other: SaidCounts) -> SaidCounts:
        """Both together, of the same experts on other events."""
        return replace(
            self,
            events=self.events + other.events,
            halves=self.halves + other.halves,
            every=self.every + other.every,
            zeros=self.zeros + other.zeros,
            ones=self.ones + other.ones,
            extreme=self.extreme + other.extreme,
        )

    def extreme_notes(self) -> list[Note]:
        """Many forecasts of exactly 0, 1 or one half, and zeros that may mean "no answer"."""
        notes = []
        total = int(self.every.sum())
        counts = [(int(self.zeros.sum()), 0, "zeros"), (int(self.ones.sum()), 1, "ones"), (self.halves, 0.5, "halves")]
        for count, value, code in counts:
            if count >= max(5, 0.01 * total) and not (value == 0.5 and self.by_class):
                notes.append(Note(code, f"{count} of {total} probabilities are exactly {value:g}", count))
        suspect = (self.zeros >= 3) & (self.zeros >= 0.1 * self.every) & (self.zeros < self.every) & (self.extreme == 0)
        odd = [self.experts[i] for i in np.flatnonzero(suspect).tolist()]
        if odd and not self.by_class:
            text = (
                f"{listed(odd, 3)} said exactly 0 beside moderate numbers: if 0 means no answer, say --missing-value 0"
            )
            notes.append(Note("zeros-as-missing", text, len(odd)))
        return notes

    def vote_notes(self, outcome: bool) -> list[Note]:
        """Columns of a wide table with 0 and 1 on nearly every event, and nothing else: outcomes, it seems.

        Where no column is the outcome, a single one may be blank more often: these events are open.
        """
        several = (self.ones > 0) & (self.ones < self.every) & (self.every >= _VOTES)
        votes = several & (self.zeros + self.ones == self.every)
        if outcome or votes.sum() > 1:
            votes &= self.every >= 0.9 * self.events
        if self.by_class or not votes.any() or (outcome and votes.all()):
            return []
        names = [self.experts[i] for i in np.flatnonzero(votes).tolist()]
        name = quoted(names[0]) if len(names) == 1 else "NAME"
        what = f"column {listed(names)} holds" if len(names) == 1 else f"columns {listed(names, 4)} hold"
        way = f"if that is no forecast, say --exclude {name}"
        if not outcome:
            way = f"an outcome? say --column outcome={name} or --exclude {name}"
        return [Note("only-0-and-1", f"{what} only 0 and 1: {way}", len(names))]
