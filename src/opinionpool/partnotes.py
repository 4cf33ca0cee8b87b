"""Notes on the parts of a table as notes on the whole."""

from __future__ import annotations

import re
from collections.abc import Iterable

from opinionpool.errors import Note

# On columns, which all parts share.
_SHARED = {"format", "layout", "unused-columns", "encoding", "positive", "percent", "percent-tiny", "decimal-comma"}
_OF = re.compile(r"( of )([\d,]+)")
_SPAN = re.compile(r"(.+?) (\d{4}-\S+)(?: to (\d{4}-\S+))?$")


class PartNotes:
    """Adds up what was said of each part.

    Examples
    --------
    >>> notes = PartNotes()
    >>> notes.add([Note("no-event", "1 row without an event left out", 1)])
    >>> notes.add([Note("no-event", "3 rows without an event left out", 3)])
    >>> [note.text for note in notes.all()]
    ['4 rows without an event left out']
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Note] = {}

    def add(self, notes: Iterable[Note]) -> None:
        """Take in the notes on one part."""
        for note in notes:
            before = self._found.get(key := (note.code, _kind(note)))
            if before is None:
                self._found[key] = note
            elif note.code == "times":
                self._found[key] = Note("times", _spans(before.text, note.text))
            elif note.count and note.code not in _SHARED:
                self._found[key] = _sum(before, note)

    def all(self, **totals: int) -> tuple[Note, ...]:
        """The notes on the whole; by code, of how many things in all a note tells how many there are."""
        return tuple(_of_all(note, totals[note.code]) if note.code in totals else note for note in self._found.values())


def _of_all(note: Note, total: int) -> Note:
    """A note whose parts were not all there are."""
    head, number, tail = _at_count(note)
    text = _OF.sub(rf"\g<1>{total:,}", tail, count=1)
    return Note(note.code, f"{head}{number}{text}", note.count, note.serious)


def _kind(note: Note) -> str:
    """What tells notes of one code apart: those about values of several kinds, not about how many there are."""
    return "" if note.code in _SHARED | {"times"} else re.sub(r"[\d,]+|s\b", "", note.text)[-24:]


def _sum(before: Note, note: Note) -> Note:
    """One note with the counts of both, in the words of the one that is about more."""
    total = before.count + note.count
    words, other = (before, note) if before.count > note.count else (note, before)
    head, number, tail = _at_count(words)
    if number and (found := _OF.match(tail)):
        rest = _OF.match(_at_count(other)[2])
        every = _number(found[2]) + (_number(rest[2]) if rest else 0)
        tail = f" of {every:,}{tail[found.end() :]}"
    elif words.count == 1 < total:
        tail = re.sub(r"^ (\w+)", r" \1s", tail)
    return Note(note.code, f"{head}{total:,}{tail}" if number else words.text, total, note.serious)


def _at_count(note: Note) -> tuple[str, str, str]:
    """The text before the count, the count, and the text behind it."""
    found = re.search(rf"(?<![\d,.])({note.count:,}|{note.count})(?![\d,]*\d)", note.text)
    return (note.text, "", "") if found is None else (note.text[: found.start()], found[0], note.text[found.end() :])


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _spans(before: str, after: str) -> str:
    """From when to when, over both."""
    ends: dict[str, list[str]] = {}
    for told in (*before.split("; "), *after.split("; ")):
        found = _SPAN.match(told)
        if found:
            ends.setdefault(found[1], []).extend(time for time in found.groups()[1:] if time)
    return "; ".join(
        f"{what} {min(times)}" + (f" to {max(times)}" if max(times) > min(times) else "")
        for what, times in ends.items()
    )
