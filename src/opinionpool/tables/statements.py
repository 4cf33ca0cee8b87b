"""Long form of a table, one number per row, and the rules that leave one forecast per expert and event.

Errors on several forecasts name the columns that distinguish them, and columns of times without a role.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask, pairs_increase
from opinionpool.errors import Note, OpinionPoolError
from opinionpool.findings import Place, Remedy, fault, finding
from opinionpool.logodds import FLOOR, SUM_TOLERANCE, expit, logit
from opinionpool.tables.classes import TRUTH, EventOptions
from opinionpool.tables.profile import Column
from opinionpool.tables.roles import BETWEEN
from opinionpool.tables.table import BLANK, Table, Words, place
from opinionpool.tables.times import Times, are_times
from opinionpool.tables.units import add_up, written_numbers
from opinionpool.tables.where import condition
from opinionpool.text import listed, quoted, shown

# Most values that conditions are offered for, and most groups of rows looked at.
_VALUES, _GROUPS = 3, 200


@dataclass(frozen=True, eq=False)
class Distinctions:
    """Columns that may say which of several forecasts, by one expert on one event, is the one that counts."""

    table: Table
    time: str | None = None  # the column of times of forecasts
    unused: Sequence[Column] = ()  # columns without a role
    names: Sequence[str] = ()  # those of `unused` with times, if `time` is None and rows on one event differ
    keys: Mapping[str, str] = field(default_factory=dict)  # headers of the columns of event and expert, by role
    levels: bool = False  # whether forecasts are levels of a scale

    @property
    def option(self) -> str:
        """Command-line option that gives an unused column of times the role of the time of forecasts."""
        return f"--column time={quoted(self.names[0]) if len(self.names) == 1 else 'NAME'}"

    def by_time(self, **more: object) -> list[Remedy]:
        """Remedies, one for each unused column of times: it becomes the time of forecasts, with the options `more`."""
        return [Remedy({"columns": {"time": name}, **more}) for name in self.names]

    def wanted(self) -> OpinionPoolError:
        """Error for an option that needs forecasts' times, if no column has that role but unused ones may hold them."""
        return fault("unnamed-times", Place(self.table.name), self.by_time(), names=self.names, option=self.option)

    def last(self) -> OpinionPoolError:
        """Error for --duplicates last, if no column has the role of time; it names the columns that may have it."""
        ways = [*self.by_time(duplicates="last"), Remedy({"duplicates": "last-row"})]
        about = {"table": self.table.name, "names": self.names, "option": self.option}
        return fault("last-without-times", None, ways, **about)

    def tied(self, ordered: LongRows, starts: Index, tied: Mask) -> OpinionPoolError:
        """Error for an expert's different forecasts on one event at one time, with columns that distinguish them."""
        ends = np.append(starts[1:], len(ordered.key))
        spans = list(zip(starts[tied].tolist(), ends[tied].tolist(), strict=True))
        each = []
        for first, end in spans[:3]:
            numbers = " and ".join(f"{value:g}" for value in ordered.value[first:end][:3])
            each.append(f"{ordered.who(first)}, {numbers} ({place(self.table, *ordered.row[first:end][:5].tolist())})")
        able, ways = self.distinguishing(ordered, [np.arange(*span) for span in spans])
        ways = [Remedy({**way.options, "duplicates": "last"}) for way in ways]
        ways += [Remedy({"duplicates": rule}) for rule in ("last-row", "mean") if not able]
        left = f"; and {len(spans) - 3} more" if len(spans) > 3 else ""
        about = {"examples": "; ".join(each), "left": left, "distinguished": _distinguish(able)}
        return fault("same-time", None, ways, column=self.time, count=len(spans), **about)

    def several(self, long_rows: LongRows, pairs: Index) -> OpinionPoolError:
        """Error for several forecasts by an expert on an event (`pairs`), with the columns that distinguish them."""
        examples: list[str] = []
        for pair in pairs[:3]:
            if sum(map(len, examples)) < _LONG:
                cells = np.flatnonzero(long_rows.pair == pair)
                where = place(self.table, *np.unique(long_rows.row[cells])[:5].tolist())
                examples.append(f"{long_rows.who(int(cells[0]))} ({where})")
        able, ways = self.distinguishing(long_rows, _groups(long_rows, self._stamps(long_rows)))
        if not able:
            # Names that differ say that rows are about different things, though not which one counts.
            groups = _groups(long_rows, ())
            texts = [c for c in self._subjects(adds=False) if c.kind != "number"]
            able = [c.name for c in texts if self._differs(c, long_rows, groups, every=bool(self.time))]
        days = [] if able else self._days(long_rows)
        again = any("again" in column.hints for column in self.unused)
        if days:
            ways = [way for name in days for way in self._parts(name, ("event",))]
        elif not able and (again or (self.levels and not (self.time or self.names))):
            ways = [Remedy({"duplicates": rule}) for rule in ("samples", "mean")]
        elif not able:
            ways = self.by_time(duplicates="last") or [Remedy({"duplicates": "last"})]
            ways += [] if self.time else [Remedy({"duplicates": "mean"})]
        by = "the last in the file"
        if self.time or self.names:
            by = f"the last by {f'column {shown(self.time)}' if self.time else listed(self.names)}"
        left, rules = len(pairs) - len(examples), "mean their average, and samples takes all as one statement"
        return fault(
            "several-forecasts",
            None,
            ways,
            examples=", by ".join(examples),
            left=f" and {left} more" if left else "",
            distinguished=_distinguish(able),
            rules="" if able else f"; last is {by}, {rules}, by their mean and spread",
            count=len(pairs),
        )

    def _stamps(self, long_rows: LongRows) -> list[Index]:
        """Times of forecasts as integers, (M,), in a list; if unknown, words' codes of each unused column of times."""
        if self.time is not None and long_rows.time is not None:
            return [long_rows.time.astype(np.int64)]
        return [self.table.words(c.place).codes[long_rows.row] for c in self.unused if c.name in self.names]

    def _subjects(self, adds: bool) -> list[Column]:
        """Unused columns that may say what rows are about; columns of outcomes only if numbers add up to 1 (`adds`)."""
        able = [c for c in self.unused if (c.is_key and c.present == 1) or "order" in c.roles]
        return [c for c in able if adds or not ({"outcome"} & c.roles or "unsure" in c.hints or c.folded <= TRUTH)]

    def _differs(self, column: Column, long_rows: LongRows, groups: Sequence[Index], every: bool = False) -> bool:
        """Whether a column differs in any two rows of most groups (of all, if `every`), and has words that recur."""
        words = self.table.words(column.place)
        codes = [words.codes[long_rows.row[group]] for group in groups]
        number = sum(len(np.unique(own)) == len(own) for own in codes)
        recurs = len(words.values) < int((words.codes != BLANK).sum()) or "class" in column.roles
        return recurs and number > 0 and (number == len(codes) if every else 2 * number >= len(codes))

    def distinguishing(self, long_rows: LongRows, groups: Sequence[Index]) -> tuple[list[str], list[Remedy]]:
        """Return the unused columns that differ in any two rows of a group, and remedies that use the first of them.

        A remedy gives the column the role of class, expert or order, makes it part of a key, or keeps the rows with one
        of its values.
        """
        adds = add_up(np.array([long_rows.value[group].sum() for group in groups]))
        able = [c for c in self._subjects(adds) if self._differs(c, long_rows, groups, every=True)]
        return [c.name for c in able], [way for column in able[:1] for way in self._ways(column, long_rows, adds)]

    def _ways(self, column: Column, long_rows: LongRows, adds: bool) -> Iterator[Remedy]:
        """Yield remedies by `column`, which differs among rows of one expert and event; `adds`: such rows sum to 1."""
        name, text = column.name, column.kind in {"text", "mixed"}
        if role := next((role for role in ("expert", "order", "class") if role in column.roles), ""):
            yield Remedy({"columns": {role: name}})
        elif text and adds:
            yield Remedy({"columns": {"class": name}})
        else:
            if len(long_rows.experts) == 1 and text and "never" not in column.hints:
                yield Remedy({"columns": {"expert": name}})
            if text or column.is_part:
                # A judge is another by each criterion, or it is another thing that is judged.
                yield from self._parts(name, ("expert", "event") if self.levels else ("event",))
            if not self.levels and "round" in column.hints:
                yield from (Remedy({"where": condition(name, "=", value)}) for value in self._kept(column, long_rows))

    def _kept(self, column: Column, long_rows: LongRows) -> list[str]:
        """Values of a column, the last of whole numbers or the middle one first; none if they are many or drop names.

        A value drops a name if an event or an expert has no forecast in the rows with this value.
        """
        words, ends = self.table.words(column.place), (long_rows.event, long_rows.expert)
        codes, size = words.codes[long_rows.row], len(words.values)
        if size > _VALUES or any(
            len(np.unique(of[codes == i])) < len(np.unique(of)) for i in range(size) for of in ends
        ):
            return []
        numbers = written_numbers(Words(np.arange(size), words.values))
        able = [words.values[i] for i in np.argsort(numbers, kind="stable").tolist()]
        middle = able[-1:] if column.whole == 1 else able[(size - 1) // 2 : (size + 1) // 2]
        return middle + [value for value in able if value not in middle]

    def _days(self, long_rows: LongRows) -> list[str]:
        """Columns of dates that may be part of an event's name, if another column has both yes and no in one event."""
        event = long_rows.event
        for words in (self.table.words(c.place) for c in self.unused if c.folded <= TRUTH):
            codes = words.codes[long_rows.row]
            pairs = np.unique(np.stack([event, codes])[:, codes != BLANK], axis=1)[0]
            if len(pairs) > len(np.unique(pairs)):
                able = [self.time] if self.time else self.names
                found = {name: self.table.words(self.table.names.index(name)).values for name in able}
                return [name for name, times in found.items() if are_times(times) and ":" not in "".join(times)]
        return []

    def _parts(self, name: str, roles: Sequence[str]) -> list[Remedy]:
        """Remedies, one for each of `roles` (event, expert), that add the column `name` to those that identify it."""
        return [
            Remedy({"columns": {role: (*self.keys[role].split(BETWEEN), name)}}) for role in roles if role in self.keys
        ]


def _distinguish(names: Sequence[str]) -> str:
    """Clause for messages that the columns `names` distinguish rows; "" if there are none."""
    return f"; {listed(names, 3)} distinguish{'es' if len(names) == 1 else ''} them" if names else ""


# Least correlation assumed between two samples by one judge, as few samples do not show it well.
LEAST_ALIKE = 0.3
# Approximate number of characters of examples in a message.
_LONG = 120


_BY_ROW = ("event", "expert", "label", "value", "rows", "column", "time", "expires")  # fields of `LongRows`, (M,)


@dataclass(frozen=True, eq=False)
class LongRows:
    """Long form of a table: M numbers that experts gave, each with its expert, event, class and cell."""

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
        """Row of the table that each number is from, (M,)."""
        return np.arange(len(self.value)) if self.rows is None else self.rows

    @property
    def pair(self) -> Index:
        """Integer for each number, (M,), that is equal for numbers by the same expert on the same event."""
        return self.event * max(len(self.experts), 1) + self.expert

    @property
    def key(self) -> Index:
        """Integer for each number, (M,), that is equal for the same event, expert and class."""
        return self.pair * len(self.classes) + self.label if len(self.classes) else self.pair

    @cached_property
    def in_order(self) -> bool:
        """Whether numbers are sorted by event, expert and class, and no two have the same event, expert and class."""
        if not len(self.classes):
            return pairs_increase(self.event, self.expert)
        key = self.key
        return bool((key[1:] > key[:-1]).all())

    def select(self, chosen: npt.NDArray[Any]) -> LongRows:
        """Return a copy with only the rows that `chosen`, a mask or positions, selects."""
        return replace(self, **{name: of[chosen] for name, of in self._by_row().items()})

    def and_also(self, other: LongRows) -> LongRows:
        """Return a copy to which the rows of `other`, from the same table, are added at the end."""
        others = other._by_row()
        both: dict[str, Any] = {name: np.concatenate([of, others[name]]) for name, of in self._by_row().items()}
        return replace(self, **both)

    def _by_row(self) -> dict[str, Any]:
        """Fields that have a value for each number, (M,), by name."""
        given = {name: of for name in _BY_ROW if (of := getattr(self, name)) is not None}
        return given | {"rows": self.row}

    def about(self, i: int) -> dict[str, Any]:
        """Expert, event and place of the number at position `i`, by name, as messages quote them."""
        return {"who": self.who(i), "where": place(self.table, int(self.row[i]))}

    def who(self, i: int) -> str:
        """Expert and event of the number at position `i`, as text."""
        return f"{shown(self.experts[self.expert[i]])} on event {shown(self.events[self.event[i]])}"


def withdrawn_only(long_rows: LongRows) -> LongRows:
    """Return the rows without blanks, except blanks of experts who have a forecast on the event, to withdraw it."""
    blank = np.isnan(long_rows.value)
    if not blank.any():
        return long_rows
    pairs = long_rows.pair
    return long_rows.select(~blank | np.isin(pairs, np.unique(pairs[~blank])))


def one_each(
    long_rows: LongRows, rule: str | None, by: Distinctions, until: Times | None = None
) -> tuple[LongRows, list[Note]]:
    """Return one number per expert, event and class, and notes; by `rule` if there are several (None: an error).

    `until` is when each event's last forecasts cease to hold, for weights by time; NaT: at the time of the newest one.
    """
    notes: list[Note] = []
    blank = np.isnan(long_rows.value)
    if blank.any():
        back = _taken_back(long_rows, blank)
        if rule is None and back.any():
            raise replace(by, unused=()).several(long_rows, np.unique(long_rows.pair[back]))
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
        raise by.several(long_rows, pairs)
    if rule == "last" and by.names:
        raise by.last()
    if rule == "mean":
        found, how = _mean(long_rows.select(order)), "their mean counts"
    elif rule == "samples":
        found, how = _samples(long_rows.select(order)), "they count as samples of one statement"
    elif rule == "time-weighted":
        found, how = _over_time(long_rows, until, by), "their mean over time counts"
    else:
        found = latest_rows(long_rows, by if rule == "last" else None)
        how = f"the last row of the file{'' if by.names else ', since there are no times,'} counts"
        if by.time:
            last = ", and of one time the last row," if rule == "last-row" else ""
            how = f"the last by column {shown(by.time)}{last} counts"
    return found, [*notes, finding("duplicates", count=len(pairs), how=how)]


def _stamps(long_rows: LongRows) -> Index:
    """Time of each row as an integer, (M,); the smallest integer if it has none."""
    if long_rows.time is None:
        return np.full(len(long_rows.value), np.iinfo(np.int64).min)
    return np.where(np.isnat(long_rows.time), np.iinfo(np.int64).min, long_rows.time.astype(np.int64))


def latest_of_pair(long_rows: LongRows) -> Mask:
    """Return the mask (M,) of rows with the latest time among the rows of their expert and event."""
    stamp = _stamps(long_rows)
    _, pair = np.unique(long_rows.pair, return_inverse=True)
    latest = np.full(pair.max(initial=-1) + 1, np.iinfo(np.int64).min)
    np.maximum.at(latest, pair, stamp)
    return np.asarray(stamp == latest[pair])


def _taken_back(long_rows: LongRows, blank: Mask) -> Mask:
    """Mask (M,) of the rows of withdrawn forecasts: the latest row of their expert and event is `blank`."""
    latest = latest_of_pair(long_rows)
    pairs = long_rows.pair
    timed = np.zeros(len(pairs), dtype=bool) if long_rows.time is None else ~np.isnat(long_rows.time)
    answered = np.isin(pairs, pairs[latest & ~blank])
    return ~answered & np.isin(pairs, pairs[latest & blank & timed])


def _starts(long_rows: LongRows) -> Index:
    """Position of the first row of each expert, event and class, in rows that are sorted by `key`."""
    return np.flatnonzero(np.append(True, np.diff(long_rows.key) != 0)[: len(long_rows.value)])


def _mean(long_rows: LongRows) -> LongRows:
    """Return one row for each expert, event and class, with the mean of its numbers; the rows are sorted by `key`."""
    starts = _starts(long_rows)
    # Sums of numbers in the order of their size are the same, to the last bit, in whichever order rows come.
    value = long_rows.value[np.lexsort((long_rows.value, long_rows.key))]
    return _averaged(long_rows, np.add.reduceat(value, starts) / np.diff(np.append(starts, len(value))))


def _averaged(long_rows: LongRows, means: Array) -> LongRows:
    """One row for each expert, event and class, with its value in `means`; time is NaT if several rows are averaged."""
    starts = _starts(long_rows)
    # Rounding must not carry an average beyond what was averaged.
    low, high = np.minimum.reduceat(long_rows.value, starts), np.maximum.reduceat(long_rows.value, starts)
    found, several = long_rows.select(starts), np.diff(np.append(starts, len(long_rows.value))) > 1
    time = None if found.time is None else np.where(several, np.datetime64("NaT", "us"), found.time)
    return replace(found, value=np.clip(means, low, high), time=time)


def _samples(long_rows: LongRows) -> LongRows:
    """Return one forecast per expert and event from repeated answers: rescaled mean log-odds or, by class, the mean.

    For n samples with mean log-odds m, it is μ + (m − μ) / (λ + (1 − λ)/n): μ is the mean of m over the expert's
    events, λ the correlation of two samples on one event, the same for all experts. One sample counts as it is.
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


def _over_time(long_rows: LongRows, until: Times | None, by: Distinctions) -> LongRows:
    """Mean of each expert's numbers on an event and class, each weighted by the time for which it was in force."""
    if long_rows.time is None or np.isnat(long_rows.time).any():
        what = "no column is known to hold times" if long_rows.time is None else "some forecasts have no time"
        way = f"{by.option}, or " if by.names else ""
        ways = by.by_time(duplicates="time-weighted")
        raise fault("no-times-to-weight", Place(long_rows.table.name), ways, what=what, way=way)
    ordered = long_rows.select(np.argsort(long_rows.key, kind="stable"))
    assert ordered.time is not None
    newest = np.full(len(ordered.events), np.datetime64("NaT", "us"))
    np.fmax.at(newest, ordered.event, ordered.time)
    ends = newest if until is None else np.where(np.isnat(until), newest, until)
    # Numbers that stood no time, as they expired at once, count equally.
    stood = np.maximum(active_until(ordered, ends) - ordered.time.astype(np.int64), 1e-6)
    starts = _starts(ordered)
    return _averaged(ordered, np.add.reduceat(stood * ordered.value, starts) / np.add.reduceat(stood, starts))


def active_until(rows: LongRows, ends: Times) -> Index:
    """Time until which each forecast is in force, (M,), in microseconds: the expert's next, its expiry, or the end."""
    assert rows.time is not None
    begin = rows.time.astype(np.int64)
    order = np.lexsort((begin, rows.pair))
    pair, start = rows.pair[order], begin[order]
    # The first later time of the same pair; numbers of one time stand side by side.
    new, never = np.append(True, (np.diff(pair) != 0) | (np.diff(start) != 0))[: len(pair)], np.iinfo(np.int64).max
    first, following = pair[new], np.append(start[new][1:], never)
    later = np.where(np.append(first[1:], -1)[: len(first)] == first, following[: len(first)], never)
    until = np.empty(len(begin), dtype=np.int64)
    until[order] = later[np.cumsum(new) - 1]
    # The last moment counts too, so that a forecast made when the event closes stands for one.
    until = np.minimum(until, ends.astype(np.int64)[rows.event] + 1)
    if rows.expires is not None:
        expires = rows.expires.astype(np.int64)
        until = np.where(np.isnat(rows.expires), until, np.minimum(until, expires))
    return np.maximum(until, begin)


def latest_rows(long_rows: LongRows, by: Distinctions | None) -> LongRows:
    """Return each expert's last number on each event and class; with `by`, an error if several of one time differ."""
    if long_rows.time is not None:
        long_rows = long_rows.select(latest_of_pair(long_rows))
    order = np.lexsort((long_rows.row, long_rows.key))
    ordered = long_rows.select(order)
    last = np.append(np.diff(ordered.key) != 0, True)
    if by is not None and by.time is not None:
        starts = _starts(ordered)
        low, high = np.minimum.reduceat(ordered.value, starts), np.maximum.reduceat(ordered.value, starts)
        if (low < high).any():
            raise by.tied(ordered, starts, low < high)
    return ordered.select(last)


def _groups(long_rows: LongRows, stamps: Sequence[Index]) -> list[Index]:
    """Positions of rows with equal expert, event, class and times (`stamps`), in groups; at most `_GROUPS` groups."""
    order = np.lexsort((*stamps, long_rows.key))
    change = [np.diff(of[order]) != 0 for of in (*stamps, long_rows.key)]
    starts = np.concatenate([[0], np.flatnonzero(np.any(change, axis=0)) + 1, [len(order)]])
    several = np.flatnonzero(np.diff(starts) > 1)[:_GROUPS]
    return [order[starts[i] : starts[i + 1]] for i in several.tolist()]


# Sums over classes that are this close to 1 are left as they are.
EXACT = 1e-9
# Sums that are so far from 1 may be meant to be 1.
_NEARLY = 0.1
# Least sum that --normalise takes; below it, division would make up most of a forecast.
_LEAST = 0.5


def class_lacking(long_rows: LongRows, start: int, labels: Sequence[object] | None = None) -> str:
    """Return the first of `labels` (default: all classes) without a probability in the forecast in row `start`."""
    present = {long_rows.classes[code] for code in long_rows.label[long_rows.pair == long_rows.pair[start]]}
    return next(str(label) for label in labels or long_rows.classes if label not in present)


def fold_rows(
    long_rows: LongRows,
    options: EventOptions,
    half_units: Callable[[LongRows], Array],
    drop_incomplete: bool = False,
    normalise: bool = False,
) -> tuple[LongRows, Array, list[Note]]:
    """Return one row for each forecast, its probabilities of all classes or options, (M, K), and notes.

    `half_units` gives half a unit of the last digit written in each row, by which sums may be off.
    """
    long_rows = long_rows.select(np.argsort(long_rows.key, kind="stable"))
    _, starts, counts = np.unique(long_rows.pair, return_index=True, return_counts=True)
    short = counts != options.sizes[long_rows.event[starts]]
    notes: list[Note] = []
    if short.any():
        if not drop_incomplete:
            raise _lacking(long_rows, options, int(starts[short.argmax()]), int(short.sum()))
        long_rows, counts = long_rows.select(np.repeat(~short, counts)), counts[~short]
        starts, notes = np.cumsum(counts) - counts, [finding("incomplete", count=int(short.sum()))]
    table = np.zeros((len(counts), int(options.sizes.max(initial=2))))
    table[np.repeat(np.arange(len(counts)), counts), options.slot(long_rows.event, long_rows.label)] = long_rows.value
    total = table.sum(axis=1)
    off = np.abs(total - 1.0) > SUM_TOLERANCE
    if off.any():
        slack = np.zeros(len(starts))
        cells = np.flatnonzero(np.repeat(off, counts))
        np.add.at(slack, np.repeat(np.flatnonzero(off), counts[off]), half_units(long_rows.select(cells)))
        beyond = off & ((np.abs(total - 1.0) > slack + 1e-9) | (total <= 0))
        if normalise:
            beyond &= total < _LEAST
        if beyond.any():
            raise _off_sum(long_rows, int(starts[beyond.argmax()]), float(total[beyond.argmax()]), total[beyond])
    uneven = np.abs(total - 1.0) > EXACT
    if uneven.any():
        table = np.where(uneven[:, None], table / np.where(total > 0, total, 1.0)[:, None], table)
        about = {"total": len(total), "why": "" if normalise else " by rounding", "worst": np.abs(total - 1).max()}
        notes.append(finding("normalised", count=int(uneven.sum()), **about))
    return long_rows.select(starts), table, notes


def _lacking(long_rows: LongRows, options: EventOptions, start: int, count: int) -> OpinionPoolError:
    """Error for `count` forecasts that lack a class; the message quotes the first, in row `start`."""
    shared, ways = options.keys is None, [Remedy({"drop_incomplete": True})]
    labels = long_rows.classes if shared else options.of_events[long_rows.event[start]]
    about = {"lacking": class_lacking(long_rows, start, labels), "size": len(labels), **long_rows.about(start)}
    about |= {"count": count}
    return fault("class-lacks", None, ways, **about) if shared else fault("option-lacks", None, ways, **about)


def _off_sum(long_rows: LongRows, start: int, total: float, totals: Array) -> OpinionPoolError:
    """Error for forecasts with sums `totals` other than 1, the first, in row `start`, with the sum `total`."""
    way = "--normalise divides such forecasts by their sum, if no class is lacking"
    if total < _LEAST:
        way = f"that is too little for --normalise, which takes sums of {_LEAST:g} and above"
    nearly = bool((np.abs(totals - 1.0) <= _NEARLY).all())
    ways = [Remedy({"normalise": True})] if nearly else []
    return fault("off-sum", None, ways, total=total, way=way, count=len(totals), **long_rows.about(start))
