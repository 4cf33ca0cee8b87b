"""The section of the report on what changed since a pool was saved."""

from __future__ import annotations

from opinionpool.report.changes import (
    SHOWN,
    causes_of,
    change_lines,
    meaning_lines,
    move_columns,
    points,
)
from opinionpool.report.findings import Findings
from opinionpool.report.html import Html, joined, markup, name, section, sentence, table
from opinionpool.report.listing import Column, whole
from opinionpool.report.waterfall import brief


def changes_section(f: Findings) -> Html | None:
    """Which answers moved since a pool was saved, and why; None where no such pool is given."""
    if f.since is None:
        return None
    title, found = "What changed", f.since.changes
    lines = change_lines(found)[: -1 if found.moves else None]
    words = markup("<p>Since {} was saved: {}</p>", name(f.since.file), f"{'; '.join(lines)}.")
    if not found.moves:
        return section("changes", title, words, markup("<p>No event was open before and is open now.</p>"))
    first = found.moves[0]
    lead = markup('<p class="lead">No answer moved.</p>')
    if points(first.moved) != "0.0":
        about = joined([_event(f, first.event), "" if first.label is None else f" ({first.label})"])
        lead = markup('<p class="lead">{} moved most, {}.</p>', about, causes_of(first))
    columns = [column for column in move_columns(found, SHOWN) if column.title is not None]
    rows = [[_cell(f, column, i) for column in columns] for i in range(len(columns[0].values))]
    numbers = [column.numeric for column in columns]
    shown = table([column.title or "" for column in columns], rows, numbers=numbers, kind="stack")
    notes = [sentence(meaning_lines(found)[0])]
    more = len(found.moves) - SHOWN
    if more > 0:
        notes.append(f"{whole(more)} smaller moves are left out; opinionpool diff has them.")
    return section("changes", title, words, lead, shown, markup('<p class="note">{}</p>', joined(notes, " ")))


def _cell(f: Findings, column: Column, i: int) -> str:
    value = column.values[i]
    if column.key == "event":
        return _event(f, value)
    if column.key == "class":
        return name(str(value))
    return brief(value) if column.key in {"old", "new"} else column.show(value)


def _event(f: Findings, event: str) -> Html:
    """What an event is called; the pool may keep some that the file does not have."""
    events = f.forecasts.events
    return f.event_name(events.index(event)) if event in events else name(event)
