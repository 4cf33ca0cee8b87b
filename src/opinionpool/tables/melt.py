"""Long and wide tables to statements: one row for each number that an expert gave."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.errors import ExpertError, LayoutError, Note
from opinionpool.names import unknown_expert
from opinionpool.tables.cells import (
    Coerced,
    NumberRules,
    Times,
    half_units,
    is_text,
    read_probabilities,
    read_times,
    unmarked_percent,
)
from opinionpool.tables.frames import BLANK, Numbers, Table, Words, cell_error, encode
from opinionpool.tables.layout import Layout
from opinionpool.tables.statements import ForecastCounts, LongRows
from opinionpool.text import counted, listed, quoted, shown


@dataclass
class Melted:
    """What a table says.

    Attributes
    ----------
    long_rows : Statements
    row_events : ndarray of int, shape (rows,)
        The event of each row, -1 where it has none.
    row_labels : ndarray of int, shape (rows,)
        The class of each row of a long table with classes, else 0.
    written : list of str
        The classes that forecasts were given for.
    """

    long_rows: LongRows
    row_events: Index
    row_labels: Index
    written: list[str]


@dataclass(frozen=True)
class Reading:
    """How the cells of a table are read, and what was done to them.

    Attributes
    ----------
    rules : NumberRules
    include, exclude : sequence of str
        Experts to keep, all if empty, and to leave out.
    log : Coerced
    notes : list of Note
    long_rows : list of ForecastCounts
        Of what was read.
    """

    rules: NumberRules
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    log: Coerced = field(default_factory=Coerced)
    notes: list[Note] = field(default_factory=list)
    long_rows: list[ForecastCounts] = field(default_factory=list)

    def numbers(self, table: Table, columns: Sequence[int]) -> list[Numbers | None]:
        """Columns as plain numbers, None for those that are not."""
        return table.numbers(columns, self.rules.missing_words)

    def probabilities(self, table: Table, column: int, plain: Numbers | None, hint: str = "") -> Array:
        """A column as fractions, (rows,)."""
        return read_probabilities(table, column, plain, self.rules, self.log, hint)

    def times(self, table: Table, layout: Layout, rows: Index) -> Times | None:
        """When the forecasts in some rows were made, None if there is no such column."""
        if "time" not in layout.roles:
            return None
        return read_times(table, layout.roles["time"], self.rules.missing_words)[rows]

    def half_units(self, long_rows: LongRows) -> Array:
        """Half a unit of the last written digit of each statement."""
        units = np.empty(len(long_rows.value))
        for column in np.unique(long_rows.column).tolist():
            percent = unmarked_percent(long_rows.table.names[column], self.rules)
            here = long_rows.column == column
            units[here] = half_units(long_rows.table.words(column), percent)[long_rows.row[here]]
        return units


def row_events(table: Table, layout: Layout) -> Words:
    """The event of each row; rows are numbered if no column says it."""
    if "event" in layout.roles:
        return table.words(layout.roles["event"])
    return encode([str(table.first + i + 1) for i in range(table.rows)])


class Contents:
    """What the columns of a table hold, looked at once, when somebody asks."""

    def __init__(self, table: Table, reading: Reading) -> None:
        self._table, self._reading = table, reading

    @cached_property
    def plain(self) -> list[Numbers | None]:
        """All columns as plain numbers, None for those that are not."""
        return self._reading.numbers(self._table, range(len(self._table.names)))

    def kind(self, column: int) -> str:
        """``"numbers"``, readable or not, ``"words"``, or nothing: ``""``."""
        numbers = self.plain[column]
        if numbers is not None:
            return "" if np.isnan(numbers.values).all() else "numbers"
        return "words" if is_text(self._table.words(column)) else "numbers"

    def numbers_rows(self, column: int) -> bool:
        """Whether a column holds whole numbers, none of them twice."""
        numbers = self.plain[column]
        if numbers is None or len(numbers.values) < 2:
            return False
        return bool((numbers.values == np.round(numbers.values)).all()) and len(np.unique(numbers.values)) == len(
            numbers.values
        )


def choose(experts: Iterable[str], reading: Reading) -> list[str]:
    """The experts that are kept, in their order.

    Raises
    ------
    ExpertError
        If a name that was given is not among them, or nobody is kept.
    """
    names = list(dict.fromkeys(experts))
    for name in (*reading.include, *reading.exclude):
        if name not in names:
            raise unknown_expert(name, names)
    kept = [name for name in names if name not in reading.exclude and (not reading.include or name in reading.include)]
    if names and not kept:
        included = f"include keeps {listed(reading.include)}, and " if reading.include else ""
        raise ExpertError(f"no expert is left: {included}exclude leaves out {listed(reading.exclude)}")
    return kept


def melt_long(table: Table, layout: Layout, reading: Reading) -> Melted:
    """A row per forecast, or per forecast and class."""
    events, experts = table.words(layout.roles["event"]), table.words(layout.roles["expert"])
    labels = table.words(layout.roles["class"]) if "class" in layout.roles else Words(np.zeros(table.rows, np.intp), [])
    column = layout.roles["probability"]
    value = reading.probabilities(table, column, reading.numbers(table, [column])[0])
    present = ~np.isnan(value)
    for role, words in (("event", events), ("expert", experts), ("class", labels)):
        lacking = present & (words.codes == BLANK)
        if lacking.any():
            raise cell_error(table, int(lacking.argmax()), layout.roles[role], f"a forecast without its {role}")
    kept = choose(experts.values, reading)
    if not kept:
        header = shown(table.names[layout.roles["expert"]])
        raise LayoutError(f"{table.name}: no row names an expert in column {header}")
    position = {name: i for i, name in enumerate(kept)}
    expert = experts.expand(np.array([position.get(name, BLANK) for name in experts.values], dtype=np.intp), BLANK)
    rows = np.flatnonzero(present & (expert != BLANK))
    _note_ids(reading, events, experts)
    long_rows = LongRows(
        table=table,
        events=events.values,
        experts=kept,
        classes=labels.values if len(labels.values) > 1 else (),
        event=events.codes[rows],
        expert=expert[rows],
        label=labels.codes[rows],
        value=value[rows],
        row=rows,
        column=np.full(len(rows), column),
        time=reading.times(table, layout, rows),
    )
    return Melted(long_rows, events.codes, labels.codes, labels.values)


def melt_wide(table: Table, layout: Layout, contents: Contents, reading: Reading) -> Melted:
    """A row per event, a column per expert, or per expert and class."""
    events = row_events(table, layout)
    kept = choose((expert for expert, _ in layout.cells), reading)
    position = {name: i for i, name in enumerate(kept)}
    classes = list(dict.fromkeys(label for _, label in layout.cells if label is not None))
    parts: list[tuple[Index, int, int, int, Array]] = []
    for column, (expert, label) in zip(layout.experts, layout.cells, strict=True):
        if expert not in position:
            continue
        hint = f"if column {shown(table.names[column])} is not an expert's, say --exclude {quoted(expert)}"
        if "event" not in layout.roles and contents.numbers_rows(column):
            hint = f"if it says which event a row is about, say --column event={quoted(table.names[column])}; {hint}"
        value = reading.probabilities(table, column, contents.plain[column], hint)
        rows = np.flatnonzero(~np.isnan(value))
        lacking = rows[events.codes[rows] == BLANK]
        if len(lacking):
            raise cell_error(table, int(lacking[0]), column, "a forecast in a row without an event")
        parts.append((rows, column, position[expert], classes.index(label) if label else 0, value[rows]))
    row = np.concatenate([np.empty(0, np.intp), *(rows for rows, *_ in parts)])
    column_of, expert_of, label_of = (
        np.repeat(np.array([part[i] for part in parts], np.intp), [len(part[0]) for part in parts]) for i in (1, 2, 3)
    )
    _note_ids(reading, events)
    long_rows = LongRows(
        table=table,
        events=events.values,
        experts=kept,
        classes=classes if len(classes) > 1 else (),
        event=events.codes[row],
        expert=expert_of,
        label=label_of,
        value=np.concatenate([np.empty(0), *(value for *_, value in parts)]),
        row=row,
        column=column_of,
        time=reading.times(table, layout, row),
    )
    return Melted(long_rows, events.codes, np.zeros(table.rows, np.intp), classes)


def _note_ids(reading: Reading, *ids: Words) -> None:
    trimmed = sum(words.trimmed for words in ids)
    if trimmed:
        text = f"blanks around the names of events and experts cut off in {counted(trimmed, 'cell')}"
        reading.notes.append(Note("trimmed", text, trimmed))
    nameless = int((ids[0].codes == BLANK).sum())
    if nameless:
        text = f"{counted(nameless, 'row')} without an event left out"
        reading.notes.append(Note("no-event", text, nameless))
