"""Outcomes that stand in a file of their own, joined to the events."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opinionpool.arrays import Index
from opinionpool.errors import LayoutError, Note
from opinionpool.findings import Place, Remedy, fault, finding
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.profile import Profile
from opinionpool.tables.roles import SYNONYMS, TEXT, Columns, normal
from opinionpool.tables.shapes import Beside
from opinionpool.tables.table import BLANK, Table
from opinionpool.tables.times import are_times
from opinionpool.text import listed, quoted, shown

_ROLES = ("event", "outcome", "closes", "resolved_at")


@dataclass(frozen=True)
class Joined:
    """A table of outcomes joined to the events of a table of forecasts."""

    table: Table
    roles: Mapping[str, int]  # from event, outcome, closes, resolved_at and text to columns, as far as there are such
    row_events: Index  # (rows,); which of the forecasts' events each row is about, -1 for none
    notes: list[Note]  # what did not match


def join_outcomes(table: Table, columns: Columns, events: Sequence[str], forecasts: str, header: str | None) -> Joined:
    """A table of outcomes beside the events that it is about.

    Columns are those that the user named, by role; `forecasts` is the table of forecasts, as errors call it, and
    `header` that of its column of events, if it has one.
    """
    roles = _roles(table, columns, () if header is None else (header,))
    words = table.words(roles["event"])
    position = {event: i for i, event in enumerate(events)}
    matched = np.array([position.get(word, BLANK) for word in words.values], dtype=np.intp)
    strangers = [word for word, at in zip(words.values, matched, strict=True) if at == BLANK]
    there = set(words.values)
    lacking = [event for event in events if event not in there]
    if len(lacking) == len(events):
        about = {"table": table.name, "forecasts": forecasts, "hint": _hint(words.values, events)}
        raise fault("no-common-event", None, (), ids=words.values[:3], events=events[:3], **about)
    used = ", ".join(f"{role} {shown(table.names[column])}" for role, column in roles.items())
    how = "".join(f" ({note.text})" for note in table.notes)
    notes = [finding("outcomes-layout", table=table.name, how=how, used=used), *_unused(table, roles)]
    if strangers:
        notes.append(finding("outcomes-unmatched", table=table.name, count=len(strangers), names=strangers))
    if lacking:
        notes.append(finding("outcomes-lacking", table=table.name, count=len(lacking), names=lacking))
    return Joined(table, roles, words.expand(matched, BLANK), notes)


def beside(table: Table, request: ReadOptions, names: Sequence[str]) -> Beside:
    """Return headers, events and outcomes of a table of outcomes; headers only if its columns are unclear."""
    try:
        roles = _roles(table, request.keys, names)
    except LayoutError:
        return Beside(set(table.names))
    happened = {word.lower() for word in table.words(roles["outcome"]).values}
    return Beside(set(table.names), set(table.words(roles["event"]).values), happened - request.no_outcome.every)


def _unused(table: Table, roles: Mapping[str, int]) -> list[Note]:
    """The columns that play no role, and which of them may say when outcomes were known."""
    left = [i for i in range(len(table.names)) if i not in roles.values() and table.names[i]]
    if not left:
        return []
    times = [] if "resolved_at" in roles else [table.names[i] for i in left if are_times(table.words(i).values[:50])]
    way = quoted(times[0]) if len(times) == 1 else "NAME"
    names, what = [table.names[i] for i in left], f" of {table.name}"
    known = f"; {listed(times)} {'holds' if len(times) == 1 else 'hold'} times: if outcomes were known then, say "
    known = f"{known}--column resolved_at={way}" if times else ""
    return [finding("unused-columns", what=what, names=names, times=known)]


def _roles(table: Table, columns: Columns, names: Sequence[str] = ()) -> dict[str, int]:
    """Return the column of each role in a table of outcomes; `names` are the headers of the forecasts' table."""
    # That there are no times holds for both tables; that there are no outcomes, for the other one.
    given = {
        role: name
        for role, name in columns.items()
        if role in _ROLES and (name in table.names or (name is None and role in {"closes", "resolved_at"}))
    }
    roles = {role: table.names.index(str(name)) for role, name in given.items() if name is not None}
    profile = Profile(table)
    for role in (*_ROLES, TEXT):
        if role not in given:
            found = _candidates(profile, role, {*roles.values()}, names)
            if len(found) > 1:
                names = [table.names[place] for place in found]
                ways = [Remedy({"columns": {role: name}}) for name in names]
                raise fault("several-columns", Place(table.name), ways, names=names, role=role)
            roles |= {role: found[0]} if found else {}
    for role in ("event", "outcome"):
        free = [place for place in range(len(table.names)) if place not in roles.values()]
        if role not in roles and len(table.names) == 2 and free:
            roles[role] = free[0]
        elif role not in roles:
            raise fault("no-such-column", Place(table.name), names=table.names, role=role)
    if TEXT in columns:
        roles.pop(TEXT, None)
        roles |= {TEXT: table.names.index(str(columns[TEXT]))} if columns[TEXT] in table.names else {}
    return roles


def _candidates(profile: Profile, role: str, taken: Collection[int], names: Sequence[str]) -> list[int]:
    """Return the candidate columns for a role, by header; columns equal to the first one are dropped."""
    words = ("outcome", "class", "verdict") if role == "outcome" else (role,)
    for word in words:
        found = [c for c in profile.columns if word in c.roles and c.place not in taken]
        found = [c for c in found if normal(c.name) == SYNONYMS[word][0]] or found
        ids = [c for c in found if c.is_id]
        if role == "event":
            # What both tables call the same comes before what either may be called.
            found = [c for c in found if c.name in names] or (ids if len(ids) == 1 else found)
        if found:
            return [c.place for c in found[:1] if role == TEXT] or [
                c.place for c in found if c is found[0] or not profile.same(c.place, found[0].place)
            ]
    shared = [place for place, name in enumerate(profile.table.names) if name in names and place not in taken]
    return shared if role == "event" and len(shared) == 1 else []


def _hint(there: Sequence[str], here: Sequence[str]) -> str:
    plain = {event.lstrip("0").lower() for event in here}
    if any(word.lstrip("0").lower() in plain for word in there):
        return "; some would match without regard to case and leading zeros"
    return ""
