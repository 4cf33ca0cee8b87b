"""Forecasts as they stand in a table, one number a time, and the rules that make them one per expert and event.

Where there are several, columns that distinguish them are named, and columns of times that play no role.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, pairs_increase
from opinionpool.errors import Note, OpinionPoolError, Remedy as Options
from opinionpool.findings import Finding, Place, Remedy, fault, finding
from opinionpool.logodds import FLOOR, expit, logit
from opinionpool.tables.layout import Layout
from opinionpool.tables.profile import Profile
from opinionpool.tables.roles import BETWEEN, normal, roles_of, words_of
from opinionpool.tables.table import BLANK, Table, Words, place
from opinionpool.tables.times import Times, are_times, time_text
from opinionpool.tables.units import written_numbers
from opinionpool.tables.where import condition
from opinionpool.text import listed, quoted, shown

# Values of which a condition is offered for each, groups of rows that are looked at, and the share that has a value.
_VALUES, _GROUPS, _SHARE = 3, 200, 0.5


def distinguishing(table: Table, columns: Sequence[int], groups: Sequence[Index]) -> tuple[list[str], list[Remedy]]:
    """Return the columns with a different value in each row of a group, and remedies that use the first such column.

    A column of classes is named as one; of others, whose values come again in most groups, one value is kept. What
    numbers the rows says nothing, and an id is for the user to place: it may be part of what an event is called.
    """
    able = [
        (table.names[column], words)
        for column in columns
        if _comes_again(table.names[column], words := table.words(column))
        and all(len(np.unique(words.codes[rows])) == len(rows) for rows in groups[:_GROUPS])
        and BETWEEN not in table.names[column]
    ]
    found: list[Remedy] = []
    for name, words in able[:1]:
        if normal(name).endswith("_id"):
            break
        if "order" in roles_of(name):
            found = [Remedy({"columns": {"order": name}})]
        elif "class" in roles_of(name) or (np.isnan(written_numbers(words)).all() and "never" not in words_of(name)):
            found = [Remedy({"columns": {"class": name}})]
        else:
            found = [Remedy({"where": condition(name, "=", value)}) for value in _kept(words, groups[:_GROUPS])]
    return [name for name, _ in able], found


def distinguishing_text(names: Sequence[str]) -> str:
    """Return the clause of a message on the columns `names`, which distinguish rows; empty if there are none."""
    return f"; {listed(names, 3)} distinguish{'es' if len(names) == 1 else ''} them" if names else ""


def _comes_again(name: str, words: Words) -> bool:
    """Return True if a column's words are no times, and recur or stand under a header for classes."""
    again = "class" in roles_of(name) or len(words.values) < int((words.codes != BLANK).sum())
    return again and bool(words.values) and not are_times(words.values[:50])


def _kept(words: Words, groups: Sequence[Index]) -> list[str]:
    """Return the values that occur in half of the groups, the middle one first; only the middle if they are many."""
    counts = np.bincount(np.concatenate([np.unique(words.codes[rows]) for rows in groups]), minlength=len(words.values))
    able = [value for value, count in zip(words.values, counts, strict=True) if count >= _SHARE * len(groups)]
    numbers = written_numbers(Words(np.arange(len(able)), able))
    able = [able[i] for i in np.argsort(numbers, kind="stable").tolist()]
    middle = able[(len(able) - 1) // 2 : (len(able) + 1) // 2]
    return middle + [value for value in able if value not in middle and len(able) <= _VALUES]


@dataclass(frozen=True, eq=False)
class UnnamedTimes:
    """Unused columns of times in a table without a column for the times of forecasts."""

    table: Table
    columns: tuple[int, ...]  # those whose times differ between rows about one event

    @classmethod
    def of(cls, table: Table, layout: Layout, profile: Profile) -> UnnamedTimes:
        """Return the unused time columns that vary within events; none if the layout has a column of times."""
        event = layout.roles.get("event")
        found = (
            ()
            if "time" in layout.roles
            else tuple(i for i in layout.unused if are_times(profile.columns[i].words.values[:50]))
        )
        if event is not None:
            found = tuple(i for i in found if profile.varies_within(i, [event]))
        return cls(table, found)

    @property
    def names(self) -> list[str]:
        """Headers of the columns of times."""
        return [self.table.names[i] for i in self.columns]

    @property
    def _option(self) -> str:
        """Command-line option that declares a column to be the times of forecasts."""
        return f"--column time={quoted(self.names[0]) if len(self.columns) == 1 else 'NAME'}"

    def ways(self, rule: str) -> tuple[str, list[Options]]:
        """Return the options by which a column of times decides among duplicates under `rule`, as text and remedies."""
        if not self.columns:
            return "", []
        remedies: list[Options] = [{"columns": {"time": name}, "duplicates": rule} for name in self.names]
        return f"{self._option} --duplicates {rule}", remedies

    def wanted(self) -> OpinionPoolError:
        """Return the error for an option that needs the times of forecasts, which an unused column may have."""
        ways = [Remedy({"columns": {"time": name}}) for name in self.names]
        return fault("unnamed-times", Place(self.table.name), ways, names=self.names, option=self._option)

    def last(self) -> OpinionPoolError:
        """Return the error for --duplicates last where an unused column may have the times of forecasts."""
        ways = map(Remedy, [*self.ways("last")[1], {"duplicates": "last-row"}])
        return fault("last-without-times", None, ways, table=self.table.name, names=self.names, option=self._option)


# Two samples by one judge correlate by so much at least, as few of them say little of that.
LEAST_ALIKE = 0.3
# Sums over classes that are this close to 1 are left as they are.
EXACT = 1e-9
# Characters of examples in a message, about.
_LONG = 120


_BY_ROW = ("event", "expert", "label", "value", "rows", "column", "time", "expires")


@dataclass(frozen=True, eq=False)
class LongRows:
    """Long form of a table: M numbers that experts gave, each with its expert, event and cell."""

    table: Table  # where they were read
    # events, experts: names that the indices below refer to
    events: Sequence[str]
    experts: Sequence[str]
    classes: Sequence[str]  # what each number can be about; empty where a forecast is one number
    # event, expert, label: (M,); index in the three above; `label` is 0 throughout where there are no classes
    event: Index
    expert: Index
    label: Index
    value: Array  # (M,); in [0, 1]; NaN where a blank may take back an earlier forecast
    # rows, column: (M,); the cell of each number; rows are None where each row of the table has one number
    rows: Index | None
    column: Index
    # time, expires: (M,); when it was given, and until when it holds; NaT where unknown
    time: Times | None = None
    expires: Times | None = None

    @cached_property
    def row(self) -> Index:
        """Row of each number in the table, (M,)."""
        return np.arange(len(self.value)) if self.rows is None else self.rows

    @property
    def pair(self) -> Index:
        """Integer that identifies the event and expert of each number, (M,)."""
        return self.event * max(len(self.experts), 1) + self.expert

    @property
    def key(self) -> Index:
        """Integer that identifies the event, expert and class of each number, (M,)."""
        return self.pair * len(self.classes) + self.label if len(self.classes) else self.pair

    @cached_property
    def in_order(self) -> bool:
        """Whether numbers are sorted by event, expert and class, with one for each combination."""
        if not len(self.classes):
            return pairs_increase(self.event, self.expert)
        key = self.key
        return bool((key[1:] > key[:-1]).all())

    def select(self, chosen: npt.NDArray[Any]) -> LongRows:
        """Return the rows that `chosen` selects, as a mask or as positions."""
        return self._with({name: of[chosen] for name, of in self._by_row().items()})

    def and_also(self, other: LongRows) -> LongRows:
        """Return these rows followed by those of `other`, from the same table."""
        others = other._by_row()
        return self._with({name: np.concatenate([of, others[name]]) for name, of in self._by_row().items()})

    def _by_row(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays with one value per row, by name."""
        given = {name: of for name in _BY_ROW if (of := getattr(self, name)) is not None}
        return given | {"rows": self.row}

    def _with(self, columns: Mapping[str, Any]) -> LongRows:
        return replace(self, **columns)

    def about(self, i: int) -> dict[str, Any]:
        """Return expert, event and place of the number at position `i`, as messages quote them."""
        return {"who": self.who(i), "where": place(self.table, int(self.row[i]))}

    def who(self, i: int) -> str:
        """Return expert and event of the number at position `i`, as text."""
        return f"{shown(self.experts[self.expert[i]])} on event {shown(self.events[self.event[i]])}"


def drop_late(
    long_rows: LongRows, as_of: np.datetime64 | None, closes: Times, resolved_at: Times
) -> tuple[LongRows, list[Note]]:
    """Return the forecasts made in time, and the notes on late ones.

    Late is: made after the event closed or was resolved, or after --as-of; with --as-of also without a time.
    """
    notes: list[Note] = []
    if as_of is not None and long_rows.time is not None:
        unknown = np.isnat(long_rows.time)
        long_rows = _drop(long_rows, unknown, finding("no-time", count=1), notes)
        late = long_rows.time > as_of if long_rows.time is not None else unknown
        long_rows = _drop(long_rows, late, finding("as-of", count=1, time=time_text(as_of)), notes)
    limits = (closes, finding("after-close", count=1)), (resolved_at, finding("after-resolution", count=1))
    for limit, one in limits:
        if long_rows.time is not None:
            long_rows = _drop(long_rows, long_rows.time > limit[long_rows.event], one, notes)
    return long_rows, notes


def _drop(long_rows: LongRows, late: npt.NDArray[np.bool_], one: Finding, notes: list[Note]) -> LongRows:
    """Return the rows outside the mask `late`, and add a note on the others; `one` is the note on a single forecast."""
    if not late.any():
        return long_rows
    count = len(np.unique(long_rows.pair[late])) if long_rows.classes else int(late.sum())
    notes.append(finding(one.code, **{**one.params, "count": count}))
    return long_rows.select(~late)


def withdrawn_only(long_rows: LongRows) -> LongRows:
    """Return the rows without blanks, but with withdrawals: blanks of experts who also have a forecast on the event."""
    blank = np.isnan(long_rows.value)
    if not blank.any():
        return long_rows
    pairs = long_rows.pair
    return long_rows.select(~blank | np.isin(pairs, np.unique(pairs[~blank])))


def drop_expired(
    long_rows: LongRows, as_of: np.datetime64 | None, closes: Times, resolved_at: Times
) -> tuple[LongRows, list[Note]]:
    """Return the forecasts that had not expired when their event closed or was resolved, or at --as-of, and a note."""
    if long_rows.expires is None:
        return long_rows, []
    until = np.fmin(closes, resolved_at)
    until = until if as_of is None else np.fmin(until, as_of)
    notes: list[Note] = []
    expired = long_rows.expires < until[long_rows.event]
    return _drop(long_rows, expired, finding("expired", count=1), notes), notes


def one_each(
    long_rows: LongRows,
    rule: str | None,
    time_column: str | None,
    unused: Sequence[int] = (),
    until: Times | None = None,
    unnamed: UnnamedTimes | None = None,
    levels: Mapping[str, str] | None = None,
) -> tuple[LongRows, list[Note]]:
    """Return one number for each expert, event and class, by the duplicates `rule`, and notes; raise without a rule.

    `unused` are columns that may distinguish duplicates, `until` when an event's last forecasts end (NaT: at the newest
    one), `unnamed` unused columns of times, `levels` columns by role, where some forecasts are levels of a scale.
    """
    notes: list[Note] = []
    blank = np.isnan(long_rows.value)
    if blank.any():
        back = _taken_back(long_rows, blank)
        if rule is None and back.any():
            raise _duplicates(long_rows, np.unique(long_rows.pair[back]), time_column, (), unnamed, levels)
        count = len(np.unique(long_rows.pair[back]))
        if count:
            notes.append(finding("withdrawn", count=count))
        long_rows = long_rows.select(~blank & ~back)
    if long_rows.in_order:
        return long_rows, notes
    keys = long_rows.key
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(np.diff(keys[order]) == 0)
    if not len(again):
        return long_rows, notes
    pairs = np.unique(long_rows.pair[order[again]])
    if rule is None:
        raise _duplicates(long_rows, pairs, time_column, unused, unnamed, levels)
    many = len(pairs)
    if rule == "mean":
        return _mean(long_rows.select(order)), [*notes, finding("duplicates", count=many, how="their mean counts")]
    if rule == "samples":
        samples = _samples(long_rows.select(order))
        return samples, [*notes, finding("duplicates", count=many, how="they count as samples of one statement")]
    if rule == "time-weighted":
        mean = _over_time(long_rows.select(order), time_column, unused, until, unnamed)
        return mean, [*notes, finding("duplicates", count=many, how="their mean over time counts")]
    if time_column:
        by = f"the last by column {shown(time_column)}{', and of one time the last row,' if rule == 'last-row' else ''}"
    else:
        there = unnamed is not None and bool(unnamed.columns)
        if unnamed is not None and there and rule == "last":
            raise unnamed.last()
        by = f"the last row of the file{'' if there else ', since there are no times,'}"
    note = finding("duplicates", count=many, how=f"{by} counts")
    return latest_rows(long_rows, time_column if rule == "last" else None, unused), [*notes, note]


def _stamps(long_rows: LongRows) -> Index:
    """Return times as integers; the smallest integer stands for no time."""
    if long_rows.time is None:
        return np.full(len(long_rows.value), np.iinfo(np.int64).min)
    return np.where(np.isnat(long_rows.time), np.iinfo(np.int64).min, long_rows.time.astype(np.int64))


def latest_of_pair(long_rows: LongRows) -> npt.NDArray[np.bool_]:
    """Return the mask of the rows with the latest time of their expert and event."""
    stamp = _stamps(long_rows)
    _, pair = np.unique(long_rows.pair, return_inverse=True)
    latest = np.full(pair.max(initial=-1) + 1, np.iinfo(np.int64).min)
    np.maximum.at(latest, pair, stamp)
    return np.asarray(stamp == latest[pair])


def _taken_back(long_rows: LongRows, blank: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the mask of rows of withdrawn forecasts: the latest row of their expert and event is blank."""
    latest = latest_of_pair(long_rows)
    pairs = long_rows.pair
    timed = np.zeros(len(pairs), dtype=bool) if long_rows.time is None else ~np.isnat(long_rows.time)
    answered = np.isin(pairs, pairs[latest & ~blank])
    return ~answered & np.isin(pairs, pairs[latest & blank & timed])


def _starts(long_rows: LongRows) -> Index:
    """Return the first row of each expert, event and class, in rows sorted by key."""
    return np.flatnonzero(np.append(True, np.diff(long_rows.key) != 0)[: len(long_rows.value)])


def _mean(long_rows: LongRows) -> LongRows:
    """Return the mean of each expert's numbers on each event and class, from rows sorted by key."""
    starts = _starts(long_rows)
    # Sums of numbers in the order of their size are the same, to the last bit, in whichever order rows come.
    value = long_rows.value[np.lexsort((long_rows.value, long_rows.key))]
    return _averaged(long_rows, np.add.reduceat(value, starts) / np.diff(np.append(starts, len(value))))


def _averaged(long_rows: LongRows, means: Array) -> LongRows:
    """Return one row for each expert, event and class with its mean, without a time if several rows are averaged."""
    starts = _starts(long_rows)
    # Rounding must not carry an average beyond what was averaged.
    low, high = np.minimum.reduceat(long_rows.value, starts), np.maximum.reduceat(long_rows.value, starts)
    found, several = long_rows.select(starts), np.diff(np.append(starts, len(long_rows.value))) > 1
    time = None if found.time is None else np.where(several, np.datetime64("NaT", "us"), found.time)
    return replace(found, value=np.clip(means, low, high), time=time)


def _samples(long_rows: LongRows) -> LongRows:
    """Return one forecast per expert and event from its samples: rescaled mean log-odds, for classes the mean.

    Of n samples with mean log-odds m, the mean of all m by the expert being μ, it is μ + (m − μ) / (λ + (1 − λ)/n),
    λ the correlation of two samples on one event, of all experts together. One sample counts as it is.
    """
    long_rows = long_rows.select(np.lexsort((long_rows.value, long_rows.key)))
    means = _mean(long_rows)
    if long_rows.classes:
        return means
    starts = _starts(long_rows)
    counts = np.diff(np.append(starts, len(long_rows.value)))
    odds = logit(np.clip(long_rows.value, FLOOR, 1.0 - FLOOR))
    mean = np.add.reduceat(odds, starts) / counts
    within = np.square(odds - np.repeat(mean, counts)).sum() / (len(odds) - len(starts))
    expert = means.expert
    own = np.bincount(expert)
    centre = (np.bincount(expert, mean) / np.maximum(own, 1))[expert]
    total = np.square(mean - centre).sum() / max(len(starts) - np.count_nonzero(own), 1)
    between = max(float(total - within * (1.0 / counts).mean()), 0.0)
    alike = max(between / (between + within), LEAST_ALIKE) if between + within > 0 else 1.0
    found = expit(centre + (mean - centre) / (alike + (1.0 - alike) / counts))
    return replace(means, value=np.where(counts > 1, found, means.value))


def _over_time(
    long_rows: LongRows,
    time_column: str | None,
    unused: Sequence[int],
    until: Times | None,
    unnamed: UnnamedTimes | None,
) -> LongRows:
    """Return time-weighted means of each expert's numbers by event and class, the last number if no time passes."""
    if long_rows.time is None or np.isnat(long_rows.time).any():
        what = "no column is known to hold times" if long_rows.time is None else "some forecasts have no time"
        way, remedies = ("", []) if unnamed is None else unnamed.ways("time-weighted")
        way = way.partition(" --")[0] + ", or " if way else ""
        raise fault("no-times-to-weight", Place(long_rows.table.name), map(Remedy, remedies), what=what, way=way)
    ordered = long_rows.select(np.lexsort((long_rows.row, long_rows.time, long_rows.key)))
    assert ordered.time is not None
    last = np.append(np.diff(ordered.key) != 0, True)
    newest = np.full(len(ordered.events), np.datetime64("NaT", "us"))
    np.fmax.at(newest, ordered.event, ordered.time)
    ends = newest if until is None else np.where(np.isnat(until), newest, until)
    following = np.where(last, ends[ordered.event], np.append(ordered.time[1:], ordered.time[-1:]))
    stood = np.maximum((following - ordered.time).astype(np.int64), 0).astype(np.float64)
    starts = _starts(ordered)
    total = np.add.reduceat(stood, starts)
    group = np.cumsum(np.append(True, last[:-1])) - 1
    last_rows = latest_rows(ordered, time_column, unused) if (total == 0).any() else None
    weight = np.where(total[group] > 0, stood / np.where(total > 0, total, 1.0)[group], last)
    means = np.add.reduceat(weight * ordered.value, starts)
    return _averaged(ordered, means if last_rows is None else np.where(total > 0, means, last_rows.value))


def latest_rows(long_rows: LongRows, time_column: str | None, unused: Sequence[int]) -> LongRows:
    """Return the last number of each expert on each event and class; all classes are taken from one time."""
    if long_rows.time is not None:
        long_rows = long_rows.select(latest_of_pair(long_rows))
    order = np.lexsort((long_rows.row, long_rows.key))
    ordered = long_rows.select(order)
    last = np.append(np.diff(ordered.key) != 0, True)
    if time_column is not None:
        starts = _starts(ordered)
        low, high = np.minimum.reduceat(ordered.value, starts), np.maximum.reduceat(ordered.value, starts)
        if (low < high).any():
            raise _tied(ordered, starts, low < high, time_column, unused)
    return ordered.select(last)


def _tied(
    ordered: LongRows, starts: Index, tied: npt.NDArray[np.bool_], time_column: str, unused: Sequence[int]
) -> OpinionPoolError:
    """Return the error for different numbers at one time, with the columns that distinguish them."""
    ends = np.append(starts[1:], len(ordered.key))
    spans = list(zip(starts[tied].tolist(), ends[tied].tolist(), strict=True))
    each = []
    for first, end in spans[:3]:
        numbers = " and ".join(f"{value:g}" for value in ordered.value[first:end][:3])
        each.append(f"{ordered.who(first)}, {numbers} ({place(ordered.table, *ordered.row[first:end][:5].tolist())})")
    groups = [ordered.row[first:end] for first, end in spans]
    able, ways = distinguishing(ordered.table, unused, groups)
    ways = [Remedy({**way.options, "duplicates": "last"}) for way in ways]
    # What an id distinguishes is no repetition.
    ways += [Remedy({"duplicates": rule}) for rule in ("last-row", "mean") if not able]
    return fault(
        "same-time",
        None,
        ways,
        column=time_column,
        examples="; ".join(each),
        left=f"; and {len(spans) - 3} more" if len(spans) > 3 else "",
        distinguished=distinguishing_text(able),
        count=len(spans),
    )


def _duplicates(
    long_rows: LongRows,
    pairs: Index,
    time_column: str | None,
    unused: Sequence[int],
    unnamed: UnnamedTimes | None,
    levels: Mapping[str, str] | None,
) -> OpinionPoolError:
    """Return the error for several forecasts by one expert on one event, with the columns that distinguish them."""
    again = [place for place in unused if "again" in words_of(long_rows.table.names[place])]
    unused = [place for place in unused if place not in again]
    examples: list[str] = []
    for pair in pairs[:3]:
        if sum(map(len, examples)) < _LONG:
            cells = np.flatnonzero(long_rows.pair == pair)
            where = place(long_rows.table, *np.unique(long_rows.row[cells])[:5].tolist())
            examples.append(f"{long_rows.who(int(cells[0]))} ({where})")
    left = len(pairs) - len(examples)
    _, by_time = ("", []) if unnamed is None else unnamed.ways("last")
    able, ways = ([], []) if time_column or by_time else distinguishing(long_rows.table, unused, _groups(long_rows))
    if levels and ways and "columns" in ways[0].options and not {"class", "order"} & roles_of(able[0]):
        # A score is of no class: the judge is another by each criterion, or it is another thing that is judged.
        keys = {role: (*levels[role].split(BETWEEN), able[0]) for role in ("expert", "event") if role in levels}
        ways = [Remedy({"columns": {role: key}}) for role, key in keys.items()]
    if able and len(long_rows.experts) == 1 and not {"never", "again"} & words_of(able[0]):
        ways = [Remedy({"columns": {"expert": able[0]}}), *ways]
    if not (ways or able) and (again or levels is not None) and not (time_column or by_time):
        ways = [Remedy({"duplicates": rule}) for rule in ("samples", "mean")]
    elif not (ways or able):
        last = [Remedy(way) for way in by_time] or [Remedy({"duplicates": "last"})]
        ways = last if time_column else [*last, Remedy({"duplicates": "mean"})]
    by = f"the last by column {shown(time_column)}" if time_column else "the last in the file"
    return fault(
        "several-forecasts",
        None,
        ways,
        examples=", by ".join(examples),
        left=f" and {left} more" if left else "",
        distinguished=distinguishing_text(able),
        by=f"the last by {listed(unnamed.names)}" if by_time and unnamed is not None else by,
        count=len(pairs),
    )


def _groups(long_rows: LongRows) -> list[Index]:
    """Return the rows of each expert, event and class that has more than one row."""
    ordered = long_rows.select(np.argsort(long_rows.key, kind="stable"))
    return [rows for rows in np.split(ordered.row, _starts(ordered)[1:]) if len(rows) > 1]
