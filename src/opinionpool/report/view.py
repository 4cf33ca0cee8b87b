"""A result as a view: rows by column, facts, sentences and notes, which every format shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from opinionpool.errors import Note
from opinionpool.forecasts import Forecasts
from opinionpool.report.answers import about
from opinionpool.report.listing import (
    Column,
    printable,
    records,
    write_csv,
    write_json,
    write_table,
    write_text,
    write_topics,
)
from opinionpool.text import counted

# Notes on what is in a file rather than on what was done to it; `check` has a place of its own for them.
DESCRIPTIVE = ("format", "layout", "positive", "times", "unresolved")
# Codes of notes on how answers came about, which change nothing that one would do: they come last.
EXPLAINING = (
    "recency", "topics", "shared-days", "shared-events", "crowd", "sample", "sampled", "class-model", "in-sample",
    "at-floor", "no-forecast", "normalised", "checked-sample", "closing-days", "texts", "sorted", "sheet", "encoding",
    "negative-weights", "believed-below", "undated", "hyperparameters",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class View:
    """The result of a command, in a form that every output format shows.

    Attributes
    ----------
    rows : str
        What JSON calls the rows.
    columns : sequence of Column
        The rows, for CSV and the table.
    facts : mapping
        What JSON has beside the rows.
    lines : sequence of str
        What people read beside the table, on standard error.
    notes : sequence of Note
        What was coerced, dropped or assumed, and what to beware of.
    below : sequence of sequences of Column, or str
        Further tables and sentences of the table format; a line that begins with two spaces is never folded.
    table : sequence of Column or None
        The columns as the table format shows them, where it leaves out rows.
    nested : iterable of mapping or None
        The rows for JSON, where a column of CSV is a number for each class there.
    forecasts : Forecasts or None
        What the notes are about.
    above : sequence of pairs of str
        Topics and what is to say about each, over the table format's table.
    """

    rows: str
    columns: Sequence[Column]
    facts: Mapping[str, object] = field(default_factory=dict)
    lines: Sequence[str] = ()
    notes: Sequence[Note] = ()
    below: Sequence[Sequence[Column] | str] = ()
    table: Sequence[Column] | None = None
    nested: Iterable[Mapping[str, object]] | None = None
    forecasts: Forecasts | None = None
    above: Sequence[tuple[str, str]] = ()


def write_view(view: View, kind: str, out: TextIO) -> None:
    """Write a view as ``"json"``, ``"csv"`` or ``"table"``."""
    if kind == "json":
        rows = records(view.columns) if view.nested is None else view.nested
        write_json(view.rows, rows, dict(view.facts) | {"notes": note_records(view.notes)}, out)
    elif kind == "csv":
        write_csv(view.columns, out)
    else:
        if view.above:
            write_topics(view.above, out)
        columns = view.columns if view.table is None else view.table
        if columns:
            out.write("\n" if view.above else "")
            write_table(columns, out)
        for part in view.below:
            if isinstance(part, str) and part.startswith("  "):
                # What is typed is one line, however long.
                out.write(f"{printable(part)}\n")
            elif isinstance(part, str):
                write_text(part, out)
            elif part:
                out.write("\n")
                write_table(part, out)


def note_records(notes: Iterable[Note]) -> list[dict[str, object]]:
    """Notes for JSON."""
    return [{"code": note.code, "text": note.text, "count": int(note.count)} for note in notes]


def remarkable(forecasts: Forecasts | None, note: Note) -> bool:
    """Whether people should read a note."""
    if note.code == "positive":
        return forecasts is not None and about(forecasts) is not None
    if note.code == "layout":
        # What was recognised by its name is no surprise.
        return "by what it holds" in note.text
    if note.code == "unresolved":
        # Blank outcomes are no surprise; words that were read as "not resolved" may be.
        return "marked" in note.text
    return note.code not in DESCRIPTIVE


def note_lines(notes: Iterable[Note], forecasts: Forecasts | None, most: int | None) -> list[str]:
    """Lines of the notes for people: at most `most` of them, the most important first, and the number of the others."""
    first, rest = ranked(notes, forecasts, most)
    more = [f"{counted(len(rest), 'more note')}: -v"] if rest and most else []
    return [f"note: {printable(each.text)}" for each in first] + more


def ranked(notes: Iterable[Note], forecasts: Forecasts | None, most: int | None) -> tuple[list[Note], list[Note]]:
    """The `most` most important notes and the remaining ones; all notes and none for None."""
    notes = [each for each in notes if remarkable(forecasts, each)]
    if most is None or len(notes) <= most:
        return notes, []
    notes.sort(key=lambda each: (not each.serious, each.code in EXPLAINING))
    return notes[:most], notes[most:]
