"""Tables of every shape to long rows: one for each number that an expert gave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.errors import ExpertError, LayoutError, Note, OpinionPoolError
from opinionpool.findings import finding
from opinionpool.labels import FAMILIES
from opinionpool.names import name_key, unknown_expert
from opinionpool.scales import scale_of
from opinionpool.tables.layout import Layout
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.statements import LongRows, withdrawn_only
from opinionpool.tables.table import BLANK, Numbers, Table, Words, cell_fault, encode
from opinionpool.tables.times import Times, read_times
from opinionpool.tables.units import (
    Coerced,
    NumberRules,
    Written,
    check_experts,
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
    """Long form of a table, with the event and class of each row of the table itself."""

    long_rows: LongRows
    row_events: Index  # (rows,); the event of each row, -1 where it has none
    row_labels: Index  # (rows,); the class of each row of a long table with classes, else 0
    written: list[str]  # the classes that forecasts were given for


@dataclass(frozen=True)
class Reading:
    """Rules for reading the cells of a table, with a log of conversions and notes."""

    options: ReadOptions
    rules: NumberRules
    log: Coerced = field(default_factory=Coerced)
    notes: list[Note] = field(default_factory=list)
    percent: dict[int, bool] = field(default_factory=dict)  # whether unmarked numbers are percentages, by column

    def numbers(self, table: Table, columns: Sequence[int]) -> list[Numbers | None]:
        """Return columns as plain numbers; None for a column with cells other than numbers and words for no answer."""
        return table.numbers(columns, self.rules.missing_words)

    def probabilities(
        self,
        table: Table,
        column: int,
        plain: Numbers | None,
        named: str | None = None,
        units: npt.NDArray[np.int8] | None = None,
    ) -> Array:
        """Return a column as fractions, (rows,); `named` is its only expert, if any, `units` the unit of each row."""
        before = len(self.log.percent)
        values = read_probabilities(table, column, plain, self.rules, self.log, named, units)
        if units is None and not np.isnan(values).all():
            self.percent[column] = len(self.log.percent) > before
        return values

    def written(self, table: Table, column: int, plain: Numbers | None) -> Array | None:
        """Return the numbers of a column as written, before units are applied; None if the unit is known already."""
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

    def times(self, table: Table, layout: Layout, rows: slice | Index, role: str = "time") -> Times | None:
        """Return when the forecasts in `rows` were made, or when they expire, by `role`; None without such a column."""
        if role not in layout.roles:
            return None
        return self.column_times(table, layout.roles[role], role)[rows]

    def column_times(self, table: Table, column: int, role: str) -> Times:
        """Return a column as times, (rows,)."""
        return read_times(table, column, self.rules.missing_words, role, self.options.dates, self.notes)

    def half_units(self, long_rows: LongRows) -> Array:
        """Return half a unit of the last digit that each number is written with, (M,), as a fraction."""
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


def row_events(table: Table, layout: Layout) -> Words:
    """Return the event of each row: its cell, else its row number; blank if columns are events."""
    if layout.events:
        return Words(np.full(table.rows, BLANK), list(layout.events))
    if "event" in layout.roles:
        return table.words(layout.roles["event"])
    return encode([str(table.first + i + 1) for i in range(table.rows)])


def choose(experts: Iterable[str], options: ReadOptions) -> list[str]:
    """Return the experts that `include` and `exclude` leave, in their order."""
    names, include, exclude = list(dict.fromkeys(experts)), options.include, options.exclude
    for name in map(str, (*include, *exclude)):
        if name not in names:
            raise unknown_expert(name, names)
    kept = [name for name in names if name not in exclude and (not include or name in include)]
    if names and not kept:
        included = f"include keeps {listed(include)}, and " if include else ""
        raise ExpertError(f"no expert is left: {included}exclude leaves out {listed(exclude)}")
    return kept


def merged(words: Words) -> Words:
    """Return names with those that differ only in case, white space or Unicode form merged into the most frequent one.

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


def _expert_words(table: Table, column: int, reading: Reading) -> Words:
    """Return the expert of each row, similar names merged if the user asks for it."""
    words = table.words(column)
    if not reading.options.merge_names:
        return words
    found = merged(words)
    if len(found.values) < len(words.values):
        lost = len(words.values) - len(found.values)
        reading.notes.append(finding("merged-names", count=lost))
    return found


def _has_single_labels(event: Index, label: Index) -> bool:
    """Whether each event has a single label in all its rows; blank labels do not count."""
    known = label != BLANK
    pairs = np.unique(np.stack([event[known], label[known]], axis=1), axis=0)
    return len(np.unique(pairs[:, 0])) == len(pairs) > 0


def _long_values(table: Table, column: int, experts: Words, reading: Reading) -> Array:
    """Return a column of probabilities by several experts as fractions, (rows,), by the unit of each expert."""
    levels = read_levels(table, column, experts.values, experts.codes, reading.rules)
    if levels is not None:
        return levels
    plain = reading.numbers(table, [column])[0]
    written = reading.written(table, column, plain)
    if written is not None:
        check_experts(table, column, written, experts, reading.rules)
    units = units_of_rows(experts.values, experts.codes, reading.rules)
    return reading.probabilities(table, column, plain, units=units)


def _files(table: Table, layout: Layout, reading: Reading, cells: Sequence[tuple[Index, int]]) -> Words | None:
    """Return the file of each row if a key in `cells` occurs in several files and rows have no times; else None."""
    files = table.files() if reading.options.duplicates is None and "time" not in layout.roles else None
    if files is None:
        return None
    for about, column in cells:
        there = (about != BLANK) & (table.words(column).codes != BLANK)
        pairs = np.unique(np.stack([about[there], files.codes[there]]), axis=1)
        if len(np.unique(pairs[0])) < pairs.shape[1]:
            reading.notes.append(finding("experts-of-files", files=files.values))
            return files
    return None


def _experts_of_files(
    table: Table, layout: Layout, reading: Reading, events: Words, experts: Words, labels: Words
) -> Words:
    """Return the expert of each row, one per file if rows of several files share event, expert and class."""
    if len(table.pieces) < 2:
        return experts
    key = events.codes.astype(np.intp) * len(experts.values) + experts.codes
    key = key * max(len(labels.values), 1) + labels.codes
    key = np.where((events.codes == BLANK) | (experts.codes == BLANK), BLANK, key)
    files = _files(table, layout, reading, [(key, layout.roles["probability"])])
    return experts if files is None else _of_files(experts, files)


def _of_files(experts: Words, files: Words, single: bool = False) -> Words:
    """Return the expert of each row, one for each combination of file and expert; named after the file if `single`."""
    codes = np.where(experts.codes == BLANK, BLANK, files.codes * len(experts.values) + experts.codes)
    used = np.unique(codes[codes != BLANK])
    names = [file if single else f"{file} {expert}" for file in files.values for expert in experts.values]
    position = np.full(len(names) + 1, BLANK)
    position[used] = np.arange(len(used))
    return Words(position[codes], [names[code] for code in used.tolist()], experts.trimmed)


def _labels_of_rows(table: Table, layout: Layout, about: int | None) -> Words:
    """Return the class or the verdict of each row; verdicts that differ only in capitals are the same."""
    if about is None:
        return Words(np.broadcast_to(0, table.rows), [])
    words, spelled = table.words(about), dict[str, str]()
    if "class" in layout.roles:
        return words
    return words.rewritten([spelled.setdefault(word.lower(), word) for word in words.values])


def melt_long(table: Table, layout: Layout, reading: Reading) -> Melted:
    """Return the long form of a table whose rows are forecasts, probabilities of one class, or verdicts."""
    events, column = table.words(layout.roles["event"]), layout.roles["probability"]
    experts = Words(np.broadcast_to(0, table.rows), [table.names[column]])
    if "expert" in layout.roles:
        experts = _expert_words(table, layout.roles["expert"], reading)
    about = layout.roles.get("class", layout.roles.get("verdict"))
    labels = _labels_of_rows(table, layout, about)
    experts = _experts_of_files(table, layout, reading, events, experts, labels)
    value = _long_values(table, column, experts, reading)
    present = ~np.isnan(value)
    given = [("event", events), ("expert", experts), *([] if about is None else [("class", labels)])]
    for role, words in given:
        if words.blank and (lacking := present & (words.codes == BLANK)).any():
            own = layout.roles[role] if role in layout.roles else layout.roles["verdict"]
            name = table.names[own]
            row, count = int(lacking.argmax()), int(lacking.sum())
            if role == "class" and _has_single_labels(events.codes[present], labels.codes[present]):
                # Where each event has one class only, the column may say what events are about.
                ways: list[Mapping[str, object]] = [{"columns": {"topic": name}}, {"columns": {"class": None}}]
                raise cell_fault("without-class", table, row, own, ways, count)
            raise cell_fault("without-name", table, row, own, [_not_blank(name)], count, role=role)
    kept = choose(experts.values, reading.options)
    if not kept:
        header = shown(table.names[layout.roles["expert"]])
        raise LayoutError(f"{table.name}: no row names an expert in column {header}")
    expert = experts.codes
    if kept != experts.values:
        position = {name: i for i, name in enumerate(kept)}
        expert = experts.expand(np.array([position.get(name, BLANK) for name in experts.values], dtype=np.intp), BLANK)
    # A blank may take back what was forecast before, where there are times; what a user calls no answer does not.
    stands = present.copy() if "time" not in layout.roles else np.ones(table.rows, dtype=np.bool_)
    if about is None:
        stands &= ~named_missing(table, column, reading.rules)
    if events.blank:
        stands &= events.codes != BLANK
    if experts.blank or expert is not experts.codes:
        stands &= expert != BLANK
    rows = None if stands.all() else np.flatnonzero(stands)
    chosen: slice | Index = slice(None) if rows is None else rows
    count = table.rows if rows is None else len(rows)
    _note_ids(reading, events, experts)
    long_rows = LongRows(
        table=table,
        events=events.values,
        experts=kept,
        classes=labels.values if len(labels.values) > 1 else (),
        event=events.codes[chosen].astype(np.intp, copy=False),
        expert=expert[chosen].astype(np.intp, copy=False),
        label=np.broadcast_to(0, count) if about is None else np.maximum(labels.codes[chosen], 0),
        value=value[chosen],
        rows=rows,
        column=np.broadcast_to(column, count),
        time=reading.times(table, layout, chosen),
        expires=reading.times(table, layout, chosen, "expires"),
    )
    if "verdict" in layout.roles and "class" not in layout.roles:
        return _with_complements(Melted(long_rows, events.codes, labels.codes, labels.values), layout)
    return Melted(withdrawn_only(long_rows), events.codes, labels.codes, labels.values)


def _with_complements(melted: Melted, layout: Layout) -> Melted:
    """Return forecasts of two classes: the probability of each verdict, and 1 minus it for the other verdict."""
    rows, verdicts = melted.long_rows, melted.written
    if len(verdicts) > 2:
        name = rows.table.names[layout.roles["verdict"] if layout.long else layout.verdicts[0]]
        raise LayoutError(
            f"{rows.table.name}: column {shown(name)} has {len(verdicts)} verdicts, {listed(verdicts, 4)}, and how "
            "sure somebody is of one says nothing of each of the others: a column is wanted for each of them"
        )
    if len(verdicts) < 2:
        verdicts = [*verdicts, *(_other_of(word) for word in verdicts)]
    other = replace(rows, label=1 - rows.label, value=1.0 - rows.value)
    return replace(melted, long_rows=withdrawn_only(replace(rows.and_also(other), classes=verdicts)), written=verdicts)


def _other_of(word: str) -> str:
    """Return the opposite of a verdict: "no" for "yes", otherwise "not" and the word."""
    family = next((family for family in FAMILIES if word.lower() in family), None)
    return f"not {word}" if family is None else family[1 - family.index(word.lower())]


def melt_columns(table: Table, layout: Layout, reading: Reading) -> Melted:
    """Return the long form of a table with one column of forecasts per expert, class or event."""
    events = row_events(table, layout)
    experts, own = _experts_of_columns(table, layout, reading, events)
    by_row = experts[0] if "expert" in layout.roles else None
    kept = choose([name for each in experts for name in each.values], reading.options)
    position = {name: i for i, name in enumerate(kept)}
    verdicts, classes = _verdicts_of_columns(table, layout, reading.rules)
    classes += dict.fromkeys(label for _, label in layout.cells if label is not None)
    chosen = bool(reading.options.include or reading.options.exclude)
    plain, nobody = reading.numbers(table, layout.forecasts), np.broadcast_to(np.intp(0), table.rows)
    if layout.wide:
        _check_columns(table, layout, plain, position if own else None, reading)
    parts: list[dict[str, npt.NDArray[Any]]] = []
    for i, (column, (expert, label)) in enumerate(zip(layout.forecasts, layout.cells, strict=True)):
        codes = np.array([position.get(name, BLANK) for name in experts[i].values], dtype=np.intp)
        of_row = experts[i].expand(codes, BLANK)
        if by_row is None and (of_row == BLANK).all():
            continue
        named, who = str(expert) if own else None, by_row or Words(nobody, [str(expert)])
        value = None if label else read_levels(table, column, who.values, who.codes, reading.rules)
        if value is None:
            other = by_row or expert != table.names[column]
            units = units_of_rows(who.values, who.codes, reading.rules) if other else None
            value = reading.probabilities(table, column, plain[i], named, units)
        present, plain[i] = ~np.isnan(value), None
        event = np.broadcast_to(np.intp(i), table.rows) if layout.events else events.codes
        # Who is left out has no code, as who is not named.
        checked = [("event", event)] if by_row is None or chosen else [("event", event), ("expert", of_row)]
        checked += [("answer", verdicts[i])] if verdicts else []
        for what, codes in checked:
            lacking = present & (codes == BLANK)
            if lacking.any():
                own_column = table.names[layout.verdicts[i] if what == "answer" else layout.roles[what]]
                raise _nameless(table, column, lacking, what, own_column)
        rows = np.flatnonzero(present & (of_row != BLANK)).astype(np.int32)
        labels = verdicts[i][rows] if verdicts else np.full(len(rows), classes.index(label) if label else 0)
        part = {"rows": rows, "expert": of_row[rows], "event": event[rows].astype(np.intp), "value": value[rows]}
        parts.append({**part, "column": np.full(len(rows), np.int32(column)), "label": labels.astype(np.int32)})
    arrays = {name: _joined(parts, name) for name in ("rows", "expert", "event", "value", "column", "label")}
    _note_ids(reading, events if not layout.events else None, by_row)
    long_rows = LongRows(
        table=table,
        events=events.values,
        experts=kept,
        classes=classes if len(classes) > 1 else (),
        time=reading.times(table, layout, arrays["rows"]),
        expires=reading.times(table, layout, arrays["rows"], "expires"),
        **arrays,
    )
    found = Melted(long_rows, events.codes, nobody, classes)
    return _with_complements(found, layout) if verdicts else found


def _verdicts_of_columns(table: Table, layout: Layout, rules: NumberRules) -> tuple[list[Index], list[str]]:
    """Return the verdict of each row for each column, as positions in a list of verdicts, and this list."""
    spelled: dict[str, str] = {}
    found = []
    for column in layout.verdicts:
        words = table.words(column)
        known = {word: word.lower() for word in words.values if word.lower() not in rules.missing_words}
        spelled |= {key: word for word, key in reversed(known.items()) if key not in spelled}
        place = {key: i for i, key in enumerate(spelled)}
        found.append(words.expand(np.array([place.get(known.get(word, ""), BLANK) for word in words.values]), BLANK))
    return found, list(spelled.values())


def _experts_of_columns(table: Table, layout: Layout, reading: Reading, events: Words) -> tuple[list[Words], bool]:
    """Return the expert of each row, by column of forecasts, and whether each column is one expert's."""
    if "expert" in layout.roles:
        return [_expert_words(table, layout.roles["expert"], reading)] * len(layout.forecasts), False
    nobody = np.broadcast_to(np.intp(0), table.rows)
    experts = [Words(nobody, [str(expert)]) for expert, _ in layout.cells]
    columns = {expert: column for column, (expert, _) in zip(layout.forecasts, layout.cells, strict=True)}
    cells = [(events.codes, column) for column in columns.values()]
    files = _files(table, layout, reading, cells) if layout.wide else None
    if files is None:
        return experts, layout.wide
    return [_of_files(each, files, single=len(columns) == 1) for each in experts], False


def _joined(parts: Sequence[dict[str, npt.NDArray[Any]]], name: str) -> npt.NDArray[Any]:
    """Return the arrays called `name` of all parts as one, and remove them from the parts to free memory."""
    found = [part.pop(name) for part in parts]
    return np.concatenate(found) if found else np.empty(0, dtype=np.intp)


def _check_columns(
    table: Table,
    layout: Layout,
    plain: Sequence[Numbers | None],
    kept: Mapping[str, int] | None,
    reading: Reading,
) -> None:
    """Raise if some experts' columns are percentages and others' are fractions, where each expert has a column."""
    found, raw = Written(table), replace(reading, rules=replace(reading.rules, percent=False))
    for column, numbers, (expert, _) in zip(layout.forecasts, plain, layout.cells, strict=True):
        known = str(expert) in reading.rules.units or scale_of(reading.rules.scales, str(expert)) is not None
        if (kept is None or str(expert) in kept) and not known:
            written = raw.written(table, column, numbers)
            if written is not None:
                found.add(str(expert), written, column)
    found.check_odd()
    if not reading.rules.percent:
        found.check(columns=True, every=not layout.unused)


def _nameless(table: Table, column: int, lacking: npt.NDArray[np.bool_], what: str, own: str) -> OpinionPoolError:
    """Return the error for forecasts in rows without an event, expert or verdict, which column `own` should hold."""
    row, count = int(lacking.argmax()), int(lacking.sum())
    return cell_fault("nameless", table, row, column, [_not_blank(own)], count, role=what, own=own)


def _not_blank(name: str) -> Mapping[str, object]:
    """Return the remedy that leaves out rows in which the column `name` is blank."""
    return {"where": f'"{name}" is not blank'}


def _note_ids(reading: Reading, events: Words | None, experts: Words | None) -> None:
    trimmed = sum(words.trimmed for words in (events, experts) if words is not None)
    if trimmed:
        reading.notes.append(finding("trimmed", count=trimmed))
    nameless = 0 if events is None else int((events.codes == BLANK).sum())
    if nameless:
        reading.notes.append(finding("no-event", count=nameless))
