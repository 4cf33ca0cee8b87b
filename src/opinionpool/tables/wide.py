"""A table with a row per event and a column per expert: which columns are whose, and which names the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from opinionpool.errors import LayoutError
from opinionpool.tables.candidates import ASKED, INDEX, OF_ROWS, REMARKS, TIMES, Candidates
from opinionpool.tables.class_headers import are_classes, class_grid, class_names, names_classes
from opinionpool.tables.contents import Contents
from opinionpool.tables.layout import Layout
from opinionpool.tables.people import refuse_people
from opinionpool.tables.roles import (
    ROLES,
    SYNONYMS,
    find_roles,
    normal,
    single,
)
from opinionpool.tables.row_roles import ID, find_outcome, one_of
from opinionpool.text import listed, quoted, shown


def wide_layout(seen: Candidates) -> Layout:
    """The layout of such a table.

    Raises
    ------
    LayoutError
        If no column holds forecasts, or rows may be those of experts.
    """
    _refuse_respondents(seen)
    roles = _wide_roles(seen)
    look, names = seen.contents, seen.names
    free = [i for i in range(len(names)) if i not in roles.values() and i not in seen.aside]
    priors = {}
    for i in free:
        head, colon, label = names[i].partition(":")
        if colon and normal(head) == "prior":
            priors[label.strip()] = i
    free = [i for i in free if i not in priors.values()]
    if "event" not in roles and not seen.emptied("event"):
        event = _wide_event(seen, free)
        if event is not None:
            roles["event"] = event
            free.remove(event)
            seen.guessed.append("event")
        else:
            _ask_for_key(seen, free)
            _ask_of_question(seen, free)
    experts = _wide_experts(seen, free, roles)
    if not experts:
        raise LayoutError(
            f"{seen.table}: no column holds forecasts. A table has a row per forecast, with columns event, expert and "
            f"probability, or a row per event and a column per expert; this one has {listed(names)}"
        )
    if not seen.emptied("expert") and not seen.named("event") and "outcome" not in roles:
        plain = "event" in seen.guessed or normal(names[roles.get("event", 0)]) in INDEX
        refuse_people(seen, roles.get("event") if plain else None, experts)
    unused = tuple(sorted(set(free) - set(experts)))
    cells = class_grid(look, experts) or tuple((names[i], None) for i in experts)
    if are_classes(look, experts, roles.get("outcome")):
        outcomes = look.words(roles["outcome"]).values
        cells = tuple(("forecast", label) for label in class_names([names[i] for i in experts], outcomes))
    if "outcome" not in roles and not seen.emptied("outcome"):
        found = names_classes(look, unused, {str(label).lower() for _, label in cells if label is not None})
        if found is not None:
            seen.guessed.append("outcome")
            roles["outcome"], unused = found, tuple(i for i in unused if i != found)
    return Layout(roles, experts, cells, unused, priors, guessed=tuple(seen.guessed))


def _wide_roles(seen: Candidates) -> dict[str, int]:
    """Roles by names, and by what columns hold where it is what a row per event has."""
    look, names = seen.contents, seen.names
    if "outcome" not in seen.found and "class" in seen.found and not seen.emptied("outcome"):
        seen.found["outcome"] = seen.found["class"]
    for role in OF_ROWS:
        seen.keep(role, [])
    if look.table.rows > 1 and not seen.named("event"):
        odd = [i for i in seen.candidates("event") if look.distinct(i) == 1 or look.present(i) <= 0.5]
        seen.keep("event", [i for i in seen.candidates("event") if i not in odd or normal(names[i]) == "event"])
    if not seen.named("event"):
        # A row is one event, so what stands in several rows is not its key.
        seen.keep("event", [i for i in seen.candidates("event") if not look.repeats([i])] or seen.candidates("event"))
    for role in ("event", *TIMES):
        one_of(seen, role)
    find_outcome(seen, [])
    return single(seen.table, names, seen.found, [role for role in ROLES if role not in OF_ROWS])


def _refuse_respondents(seen: Candidates) -> None:
    """Where a column names respondents and is to play no role, ask what a row is."""
    look = seen.contents
    if not seen.emptied("expert") or seen.candidates("event") or seen.emptied("event"):
        return
    people = find_roles(seen.table, seen.names, {}, ["expert"]).get("expert", [])
    people = [i for i in people if look.kind(i) == "words" and not look.repeats([i])]
    if people:
        name = seen.names[people[0]]
        raise LayoutError(
            f"{seen.table}: each row has a {shown(name)} of its own. If a row is one expert's, with a column per "
            f"event, say --column expert={quoted(name)}; if a row is an event, say --column event={quoted(name)}",
            remedies=({"columns": {"expert": name}}, {"columns": {"expert": None, "event": name}}),
        )


def _wide_event(seen: Candidates, free: Sequence[int]) -> int | None:
    """The column that names the rows of a wide table: without a name, or of words or ids none of which stands twice."""
    look = seen.contents
    for i in free:
        if seen.names[i] == "" and not (look.is_index(i) and any(_names_rows(look, j) for j in free if j != i)):
            return i
    words = [i for i in free if look.kind(i) == "words"]
    unlike = [i for i in words if _names_rows(look, i)]
    ids = [i for i in free if ID.search(normal(seen.names[i])) and look.numbers_rows(i) and look.present(i) == 1]
    # Whole numbers that are no per cent, in the first column, number cases.
    first = [i for i in free[:1] if i == 0 and look.numbers_rows(i) and look.present(i) == 1 and not look.unit(i)]
    return next(iter([*unlike, *ids, *first]), None)


def _names_rows(look: Contents, column: int) -> bool:
    return look.kind(column) == "words" and look.present(column) == 1 and not look.repeats([column])


def _wide_experts(seen: Candidates, free: Sequence[int], roles: Mapping[str, int]) -> tuple[int, ...]:
    """The columns that hold forecasts: numbers, but for those that number or count something."""
    look, names = seen.contents, seen.names
    # What happened must not be taken as a forecast, even where another column plays that role.
    taken = {name for role in ("outcome", "prior") if role in roles for name in SYNONYMS[role] if len(name) > 1}
    able = [i for i in free if look.kind(i) != "words" and normal(names[i]) not in taken and not look.dates(i)]
    counting = [i for i in able if _counts(look, names[i], i) or (normal(names[i]) in _COUNTERS and _whole(look, i))]
    likely = [i for i in able if look.unit(i) and i not in counting]
    if not likely:
        return tuple(able)
    empty = [i for i in able if not look.kind(i) and normal(names[i]) in REMARKS]
    return tuple(i for i in able if i in likely or i not in (*counting, *empty))


# What a column of whole numbers is called that numbers rounds or days, and no forecasts.
_COUNTERS = frozenset(
    {
        *("week", "round", "year", "month", "day", "season", "quarter", "period", "matchday", "woche", "jahr", "runde"),
        *("count", "n_forecasts", "anzahl", "anzahl_prognosen", "effectif"),
    }
)


def _whole(look: Contents, column: int) -> bool:
    """Whether all numbers of a column are whole, and not all of them 0 or 1."""
    known = look.known(column)
    return bool((known == np.round(known)).all()) and look.unit(column) != "binary"


def _ask_for_key(seen: Candidates, free: Sequence[int]) -> None:
    """Where words stand in several rows, and only with the number of a round or day in one, ask for both as the key."""
    look, names = seen.contents, seen.names
    counters = [i for i in free if normal(names[i]) in _COUNTERS and look.present(i) == 1]
    words = [i for i in free if look.kind(i) == "words" and look.present(i) == 1 and look.repeats([i])]
    keys = [(one, other) for one in counters for other in words if not look.repeats([one, other])]
    if len(keys) == 1:
        pair = tuple(names[i] for i in keys[0])
        way = " ".join(f"--column event={quoted(name)}" for name in pair)
        raise LayoutError(
            f"{seen.table}: no column names the events, but {listed(pair)} do together: say {way}, or --column event= "
            "if rows are to be numbered",
            remedies=[{"columns": {"event": pair}}],
        )


def _ask_of_question(seen: Candidates, free: Sequence[int]) -> None:
    """Where one question stands on every row and nothing names rows, ask whether rows are answers at several times."""
    look, names = seen.contents, seen.names
    one = [i for i in free if normal(names[i]) in ASKED and look.distinct(i) == 1 and look.repeats([i])]
    if len(one) == 1:
        name = names[one[0]]
        raise LayoutError(
            f"{seen.table}: column {shown(name)} has one question on every row: say --column event={quoted(name)} if "
            "rows hold forecasts at several times, or --column event= if each row is an event",
            remedies=[{"columns": {"event": name}}, {"columns": {"event": None}}],
        )


def _counts(look: Contents, name: str, column: int) -> bool:
    """Whether a column of numbers is plainly no forecasts: an index, a year, an amount."""
    known = look.known(column)
    if not len(known):
        return False
    numbered = look.is_index(column) and (len(known) > 2 or normal(name) in INDEX)
    return numbered or float((np.abs(known) > 100).mean()) > 0.5
