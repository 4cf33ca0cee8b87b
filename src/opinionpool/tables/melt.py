"""Conversion of tables of every shape to long form, with a row for each number that an expert gave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import ExpertError, LayoutError, Note
from opinionpool.findings import finding
from opinionpool.labels import FAMILIES
from opinionpool.names import name_key, unknown_expert
from opinionpool.scales import scale_of
from opinionpool.tables.layout import Layout
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.statements import LongRows, withdrawn_only
from opinionpool.tables.table import BLANK, Numbers, Table, Words, cell_fault
from opinionpool.tables.times import Times, read_times
from opinionpool.tables.units import (
    Coerced,
    NumberRules,
    Written,
    half_units,
    named_missing,
    read_levels,
    read_probabilities,
    units_of_rows,
    unmarked_percent,
    written_numbers,
)
from opinionpool.text import listed, shown


@dataclass
class Melted:
    """Long form of a table, a row for each number that an expert gave; and the class of each row of the table."""

    long_rows: LongRows
    row_labels: Index  # (rows,); the class of each row of a long table with classes, else 0
    written: list[str]  # labels of the classes that forecasts were given for


@dataclass(frozen=True)
class CellReader:
    """Reader of a table's cells by the user's options, units and scales; it logs conversions and collects notes."""

    options: ReadOptions
    rules: NumberRules
    log: Coerced = field(default_factory=Coerced)
    notes: list[Note] = field(default_factory=list)
    percent: dict[int, bool] = field(default_factory=dict)  # whether unmarked numbers are percentages, by column

    def probabilities(
        self,
        table: Table,
        column: int,
        plain: Numbers | None,
        named: str | None = None,
        units: npt.NDArray[np.int8] | None = None,
    ) -> Array:
        """Return a column as fractions, (rows,); arguments as for `read_probabilities`."""
        before = len(self.log.percent)
        values = read_probabilities(table, column, plain, self.rules, self.log, named, units)
        if units is None and not np.isnan(values).all():
            self.percent[column] = len(self.log.percent) > before
        return values

    def written(self, table: Table, column: int, plain: Numbers | None) -> Array | None:
        """Numbers of a column, (rows,), as they are written (70 if 70 per cent); None if the unit is known."""
        name = table.names[column]
        if name in self.rules.units or unmarked_percent(name, self.rules):
            return None
        if plain is not None:
            values = plain.values
        else:
            words = table.words(column)
            if any(word.endswith("%") for word in words.values):
                return None
            values = written_numbers(words)
        codes = self.rules.missing_numbers
        return np.where(np.isin(values, codes), np.nan, values) if codes else values

    def times(self, table: Table, column: int, role: str) -> Times:
        """Return the column at position `column`, whose role is `role`, as times in UTC, (rows,)."""
        return read_times(table, column, self.rules.missing_words, role, self.options.dates, self.notes)

    def half_units(self, long_rows: LongRows) -> Array:
        """Half a unit of the last digit in which each number is written, as a fraction, (M,): 0.005 for 70%."""
        units = np.empty(len(long_rows.value))
        for column in np.unique(long_rows.column).tolist():
            percent = unmarked_percent(long_rows.table.names[column], self.rules)
            here = long_rows.column == column
            words = long_rows.table.words(column)
            units[here] = half_units(words, percent)[long_rows.row[here]]
            own = units_of_rows(long_rows.experts, long_rows.expert, self.rules)
            for unit in () if own is None else (0, 1):
                some = here & (own == unit)
                units[some] = half_units(words, bool(unit))[long_rows.row[some]]
        return units


def choose(experts: Iterable[str], options: ReadOptions) -> list[str]:
    """Distinct `experts` that the options `include` and `exclude` leave; raise an error if nobody is left."""
    names, include, exclude = list(dict.fromkeys(experts)), options.include, options.exclude
    for name in (*include, *exclude):
        if name not in names:
            raise unknown_expert(name, names)
    kept = [name for name in names if name not in exclude and (not include or name in include)]
    if names and not kept:
        included = f"include keeps {listed(include)}, and " if include else ""
        raise ExpertError(f"no expert is left: {included}exclude leaves out {listed(exclude)}")
    return kept


def merged(words: Words) -> Words:
    """Return a column with names that differ only in case, blanks or Unicode form replaced by the most frequent one.

    >>> from opinionpool.tables.table import encode
    >>> merged(encode(["Ann", "bob", "ANN ", "Ann"])).values
    ['Ann', 'bob']
    """
    groups: dict[str, list[int]] = {}
    for code, name in enumerate(words.values):
        groups.setdefault(name_key(name), []).append(code)
    if len(groups) == len(words.values):
        return words
    counts = words.counts
    position = np.empty(len(words.values), dtype=np.intp)
    values: list[str] = []
    for codes in groups.values():
        position[codes] = len(values)
        values.append(words.values[max(codes, key=lambda code: int(counts[code]))])
    return Words(words.expand(position, BLANK), values, words.trimmed)


def _expert_words(table: Table, column: int, reader: CellReader) -> Words:
    """Expert of each row; if the user asks for it, names that hardly differ become one name."""
    words = table.words(column)
    if not reader.options.merge_names:
        return words
    found = merged(words)
    if len(found.values) < len(words.values):
        lost = len(words.values) - len(found.values)
        reader.notes.append(finding("merged-names", count=lost))
    return found


def _of_files(experts: Words, files: Words, single: bool) -> Words:
    """Expert of each row where files have their own: "FILE EXPERT", or "FILE" if all files name a `single` expert."""
    codes = np.where(experts.codes == BLANK, BLANK, files.codes * len(experts.values) + experts.codes)
    used = np.unique(codes[codes != BLANK])
    names = [file if single else f"{file} {expert}" for file in files.values for expert in experts.values]
    position = np.full(len(names) + 1, BLANK)
    position[used] = np.arange(len(used))
    return Words(position[codes], [names[code] for code in used.tolist()], experts.trimmed)


@dataclass(frozen=True)
class _Source:
    """Column of forecasts, with the event, the expert, and the class (or verdict) that each of its rows is about."""

    column: int
    event: Words
    expert: Words
    label: Words
    about: int | None = None  # the column that holds the classes or verdicts

    def repeats(self, table: Table, files: Words) -> bool:
        """Whether two files have a number on the same event by the same expert, about the same class."""
        codes = [each.codes for each in (self.event, self.expert, table.words(self.column))]
        there = np.all([each != BLANK for each in codes], axis=0)
        key = np.stack([each.codes[there] for each in (self.event, self.expert, self.label, files)])
        found = np.unique(key, axis=1)
        return bool(np.unique(found[:-1], axis=1).shape[1] < found.shape[1])

    def check_names(self, table: Table, layout: Layout, present: Mask) -> None:
        """Raise an error if a row in the mask `present` lacks its event, expert, class or verdict."""
        about = "class" if "class" in layout.roles else "verdict"
        places = {"event": layout.roles.get("event"), "expert": layout.roles.get("expert"), about: self.about}
        for (role, place), words in zip(places.items(), (self.event, self.expert, self.label), strict=True):
            if place is None or not words.blank or not (lacking := present & (words.codes == BLANK)).any():
                continue
            name, row, count = table.names[place], int(lacking.argmax()), int(lacking.sum())
            if role == "class" and _has_single_labels(self.event.codes[present], words.codes[present]):
                # Where each event has one class only, the column may say what events are about.
                ways: list[Mapping[str, object]] = [{"columns": {"topic": name}}, {"columns": {"class": None}}]
                raise cell_fault("without-class", table, row, place, ways, count)
            raise cell_fault("without-name", table, row, place, [{"where": f'"{name}" is not blank'}], count, role=role)


def _has_single_labels(event: Index, label: Index) -> bool:
    """Whether each event has only one label in all of its rows, blank labels aside."""
    known = label != BLANK
    pairs = np.unique(np.stack([event[known], label[known]], axis=1), axis=0)
    return len(np.unique(pairs[:, 0])) == len(pairs) > 0


def _sources(table: Table, layout: Layout, events: Words, reader: CellReader) -> tuple[list[_Source], list[str]]:
    """Return the columns of forecasts, each with the event, expert and class of its rows, and all classes' labels.

    Each file has experts of its own if rows of several files, without times, have the same event, expert and class.
    """
    columns, cells = layout.forecasts or (layout.roles["probability"],), layout.cells or ((None, None),)
    constant = partial(np.broadcast_to, shape=table.rows)
    names = [str(expert or table.names[columns[0]]) for expert, _ in cells]
    experts = [Words(constant(np.intp(0)), [name]) for name in names]
    if by_row := "expert" in layout.roles:
        experts = [_expert_words(table, layout.roles["expert"], reader)] * len(columns)
    about = layout.verdicts or [layout.roles[role] for role in ("class", "verdict") if role in layout.roles][:1]
    classes = list(dict.fromkeys(label for _, label in cells if label is not None))
    labels = [Words(constant(np.intp(classes.index(label) if label else 0)), classes) for _, label in cells]
    if about:
        labels = _labels([table.words(column) for column in about], "class" in layout.roles, reader.rules)
        classes = list(labels[0].values)
    of_events = [replace(events, codes=constant(np.intp(i))) if layout.events else events for i in range(len(columns))]
    found = [_Source(*each) for each in zip_longest(columns, of_events, experts, labels, about)]
    files = table.files() if reader.options.duplicates is None and "time" not in layout.roles else None
    if files is not None and any(each.repeats(table, files) for each in found):
        reader.notes.append(finding("experts-of-files", files=files.values))
        single = not by_row and len({*names}) == 1
        found = [replace(each, expert=_of_files(each.expert, files, single)) for each in found]
    return found, classes


def _labels(columns: Sequence[Words], by_class: bool, rules: NumberRules) -> list[Words]:
    """Return columns of classes as they are (`by_class`), or columns of verdicts with one list of words for all."""
    if by_class:
        return list(columns)
    spelled: dict[str, str] = {}
    for word in chain.from_iterable(each.values for each in columns):
        if word.lower() not in rules.missing_words:
            spelled.setdefault(word.lower(), word)
    place = {key: i for i, key in enumerate(spelled)}
    found = [np.array([place.get(word.lower(), BLANK) for word in each.values], dtype=np.intp) for each in columns]
    return [Words(each.expand(own, BLANK), [*spelled.values()]) for each, own in zip(columns, found, strict=True)]


def melt(table: Table, layout: Layout, events: Words, reader: CellReader) -> Melted:
    """Return the long form of a table: a row for each number in its columns of forecasts."""
    sources, classes = _sources(table, layout, events, reader)
    experts = {id(each.expert): each.expert for each in sources}.values()
    kept = choose([name for each in experts for name in each.values], reader.options)
    plain = table.numbers([each.column for each in sources], reader.rules.missing_words)
    if layout.long or layout.wide:
        _check_units(table, layout, sources, plain, kept, reader)
    position = {name: i for i, name in enumerate(kept)}
    parts: list[dict[str, npt.NDArray[Any]]] = []
    for i, source in enumerate(sources):
        who, expert = source.expert, source.expert.codes
        if who.values != kept:
            codes = np.array([position.get(name, BLANK) for name in who.values], dtype=np.intp)
            expert = who.expand(codes, BLANK)
        if who.values and (expert == BLANK).all():
            continue
        value = _values(table, layout, source, plain[i], reader)
        present, plain[i] = ~np.isnan(value), None
        source.check_names(table, layout, present)
        if layout.long and "time" in layout.roles:
            # A blank may take back what was forecast before; what a user calls no answer does not, nor do outcomes.
            present |= ~(named_missing(table, source.column, reader.rules) | _settles(table, layout, present))
        present &= (source.event.codes != BLANK) & (expert != BLANK)
        parts.append(_part(source, expert, value, present, every=len(sources) == 1 and bool(present.all())))
    if not kept and "expert" in layout.roles:
        header = shown(table.names[layout.roles["expert"]])
        raise LayoutError(f"{table.name}: no row names an expert in column {header}")
    arrays = {name: _joined(parts, name) for name in ("event", "expert", "label", "value", "rows", "column")}
    _note_ids(reader, None if layout.events else events, sources[0].expert)
    chosen = arrays.pop("rows")
    rows = chosen if len(chosen) == len(arrays["value"]) else None
    times: dict[str, Any] = {
        role: reader.times(table, layout.roles[role], role)[slice(None) if rows is None else rows]
        for role in ("time", "expires")
        if role in layout.roles
    }
    found = LongRows(table, events.values, kept, classes if len(classes) > 1 else (), rows=rows, **arrays, **times)
    label = sources[0].label.codes if layout.long else np.broadcast_to(0, table.rows)
    if layout.verdicts or ("verdict" in layout.roles and "class" not in layout.roles):
        classes = _both(classes, table, sources[0])
        # The probability of each verdict, and 1 minus it for the other one.
        found = replace(found.and_also(replace(found, label=1 - found.label, value=1.0 - found.value)), classes=classes)
    return Melted(withdrawn_only(found), label, classes)


def _settles(table: Table, layout: Layout, present: Mask) -> Mask:
    """Mask (rows,) of rows of a log that settle an event: they hold outcomes, and no row with a forecast does."""
    place = layout.roles.get("outcome")
    happened = np.zeros(table.rows, dtype=bool) if place is None else table.words(place).codes != BLANK
    return happened & ~(happened & present).any()


def _values(table: Table, layout: Layout, source: _Source, plain: Numbers | None, reader: CellReader) -> Array:
    """Column as fractions, (rows,), NaN if blank; each number is read by the scale or unit of its row's expert."""
    who, column = source.expert, source.column
    if layout.long or not source.label.values or layout.verdicts:
        levels = read_levels(table, column, who.values, who.codes, reader.rules)
        if levels is not None:
            return levels
    named = who.values[0] if layout.wide and len(who.values) == 1 else None
    return reader.probabilities(table, column, plain, named, units_of_rows(who.values, who.codes, reader.rules))


def _part(source: _Source, expert: Index, value: Array, present: Mask, every: bool) -> dict[str, npt.NDArray[Any]]:
    """Fields of `LongRows`, by name, for the rows in the mask `present`; "rows" is empty if these are `every` row."""
    rows = slice(None) if every else np.flatnonzero(present).astype(np.int32)
    found = {"event": source.event.codes, "expert": expert, "label": source.label.codes, "value": value}
    found = {name: of[rows] for name, of in found.items()}
    found["event"] = found["event"].astype(np.intp, copy=False)
    if source.label.blank:
        found["label"] = np.maximum(found["label"], 0)
    column = np.broadcast_to(np.int32(source.column), len(found["value"]))
    return {**found, "column": column, "rows": np.empty(0, np.int32) if isinstance(rows, slice) else rows}


def _both(verdicts: list[str], table: Table, source: _Source) -> list[str]:
    """Return two verdicts: `verdicts`, with the opposite of a single one added; raise an error if there are more."""
    if len(verdicts) > 2:
        name = table.names[source.column if source.about is None else source.about]
        raise LayoutError(
            f"{table.name}: column {shown(name)} has {len(verdicts)} verdicts, {listed(verdicts, 4)}, and how "
            "sure somebody is of one says nothing of each of the others: a column is wanted for each of them"
        )
    families = {word: next((each for each in FAMILIES if word.lower() in each), None) for word in verdicts[:1]}
    others = [f"not {word}" if of is None else of[1 - of.index(word.lower())] for word, of in families.items()]
    return [*verdicts, *others][:2]


def _joined(parts: Sequence[dict[str, npt.NDArray[Any]]], name: str) -> npt.NDArray[Any]:
    """Return the arrays called `name` in all `parts` as one; they are taken out of `parts` to free memory."""
    found = [part.pop(name) for part in parts]
    return found[0] if len(found) == 1 else np.concatenate(found) if found else np.empty(0, dtype=np.intp)


def _check_units(
    table: Table,
    layout: Layout,
    sources: Sequence[_Source],
    plain: Sequence[Numbers | None],
    kept: Sequence[str],
    reader: CellReader,
) -> None:
    """Raise an error if the experts `kept` whose unit the user does not give have numbers of different units."""
    rules, names = reader.rules, {*kept}
    found, raw = Written(table), replace(reader, rules=replace(reader.rules, percent=False))
    for source, numbers in zip(sources, plain, strict=True):
        written, who = raw.written(table, source.column, numbers), source.expert
        own = [name in names and name not in rules.units and not scale_of(rules.scales, name) for name in who.values]
        if written is not None and any(own):
            found.add(source.column, written, who, own, rules.percent)
    found.check(columns=layout.wide, every=layout.long or not layout.unused, percent=rules.percent)


def _note_ids(reader: CellReader, events: Words | None, experts: Words) -> None:
    trimmed = sum(words.trimmed for words in (events, experts) if words is not None)
    if trimmed:
        reader.notes.append(finding("trimmed", count=trimmed))
    nameless = 0 if events is None else int((events.codes == BLANK).sum())
    if nameless:
        reader.notes.append(finding("no-event", count=nameless))
