"""Which column holds what, and in which shape a table is.

Four shapes are known: a row per forecast, a row per event with a column per expert, a row per forecast with a column
per class, and a row per expert with a column per event. Columns are recognised by their names, and what they hold has
to go with it; where names say nothing, what columns hold decides, if it can decide in one way only. Where two columns
could play a role the user is asked. A column that plays no role is reported, never silently dropped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from opinionpool.errors import LayoutError
from opinionpool.labels import UNSETTLED, VOID
from opinionpool.tables.candidates import INDEX, OF_ROWS, REMARKS, TIMES, Candidates
from opinionpool.tables.cells import MISSING
from opinionpool.tables.contents import Contents
from opinionpool.tables.layout import Layout
from opinionpool.tables.roles import (
    CONFIDENCE,
    ROLES,
    SYNONYMS,
    TEXT,
    find_roles,
    normal,
    says_outcome,
    single,
    text_column,
)
from opinionpool.text import listed, quoted, shown


def recognise(contents: Contents, columns: Mapping[str, str | None] | None = None, parts: Sequence[str] = ()) -> Layout:
    """The layout of a table of forecasts.

    Parameters
    ----------
    contents : Contents
        Its columns.
    columns : mapping, optional
        Roles to column names, where the user named them; None for "no column plays this role".
    parts : sequence of str
        Columns that are a key together, and play no other role.

    Raises
    ------
    LayoutError
        If the columns do not say what they hold.
    """
    seen = Candidates(contents, dict(columns or {}), parts)
    layout = _recognised(seen)
    if TEXT in seen.given or "event" not in layout.roles:
        return layout
    text = text_column(seen.names, [i for i in layout.unused if contents.kind(i) == "words"])
    if text is None:
        return layout
    return replace(layout, roles={**layout.roles, TEXT: text}, unused=tuple(i for i in layout.unused if i != text))


def _recognised(seen: Candidates) -> Layout:
    experts, probabilities = seen.candidates("expert"), seen.candidates("probability")
    if experts and probabilities:
        return _long(seen)
    if seen.given.get("expert") is None and not experts:
        return _wide(seen) if not _has_expert(seen, probabilities) else _long(seen)
    return _without_probability(seen)


def _has_expert(seen: Candidates, probabilities: Sequence[int]) -> bool:
    """Whether what columns hold shows a row per forecast, though no name says who made it; then it is guessed."""
    look = seen.contents
    events = seen.candidates("event")
    if seen.emptied("expert") or len(events) != 1 or not look.repeats(events):
        return False
    free = seen.free()
    numbers = [i for i in free if look.unit(i) in {"fractions", "percentages"}]
    who = [i for i in free if look.kind(i) == "words" and look.present(i) == 1 and not look.repeats([*events, i])]
    who = [i for i in who if look.repeats([i]) or look.distinct(i) < look.table.rows]
    if len(who) != 1 or len([*probabilities, *numbers]) != 1:
        return False
    seen.guess("expert", who[0])
    if not probabilities:
        seen.guess("probability", numbers[0])
    return True


def _without_probability(seen: Candidates) -> Layout:
    """A table that says who made each forecast, and names no column of probabilities."""
    look = seen.contents
    expert = single(seen.table, seen.names, seen.found, ["expert"])["expert"]
    taken = {i for role in ("outcome", "prior", "group", "topic", *TIMES) for i in seen.candidates(role)}
    numbers = [
        i
        for i in range(len(seen.names))
        if i != expert and i not in taken and i not in seen.aside and look.unit(i) and not look.is_index(i)
    ]
    events = [i for i in seen.candidates("event") if i not in numbers]
    fractions = [i for i in numbers if look.unit(i) in {"fractions", "percentages"}]
    if seen.emptied("probability"):
        fractions = []
    if not events and not seen.emptied("event") and len(numbers) > 1 and not look.repeats([expert]):
        return _respondents(seen, expert, numbers)
    if len(fractions) > 1 and look.rows_sum_to_one(fractions):
        return _class_columns(seen, fractions)
    if len(fractions) == 1:
        seen.guess("probability", fractions[0])
        return _long(seen)
    names = listed(seen.names)
    if seen.named("expert"):
        raise LayoutError(
            f"{seen.table}: column {shown(seen.given['expert'])} was named as the expert's, and none of {names} is "
            "known to hold the probabilities; name it with --column probability=NAME, or name no expert if each has a "
            "column",
            remedies=[{"columns": {"probability": seen.names[i]}} for i in fractions],
        )
    raise LayoutError(
        f"{seen.table}: there is an expert column, {shown(seen.names[expert])}, but none for the probability among "
        f"{names}; name it with --column probability=NAME",
        remedies=[{"columns": {"probability": seen.names[i]}} for i in fractions],
    )


def _respondents(seen: Candidates, expert: int, columns: Sequence[int]) -> Layout:
    """A row per expert, a column per event."""
    roles = {"expert": expert}
    if "time" in seen.found:
        roles |= single(seen.table, seen.names, seen.found, ["time"])
    unused = [i for i in range(len(seen.names)) if i not in (*roles.values(), *columns) and i not in seen.aside]
    cells = tuple((None, None) for _ in columns)
    events = tuple(seen.names[i] for i in columns)
    return Layout(roles, tuple(columns), cells, tuple(unused), events=events, guessed=tuple(seen.guessed))


def _class_columns(seen: Candidates, columns: Sequence[int]) -> Layout:
    """A row per forecast, a column per class."""
    seen.found = {
        role: left
        for role, hits in seen.found.items()
        if (left := [i for i in hits if i not in columns]) and role != "class"
    }
    roles = _row_roles(seen, ("event", "expert"))
    unused = [i for i in range(len(seen.names)) if i not in (*roles.values(), *columns) and i not in seen.aside]
    cells = tuple((None, _class_name(seen.names[i])) for i in columns)
    return Layout(roles, tuple(columns), cells, tuple(unused), guessed=tuple(seen.guessed))


def _class_name(header: str) -> str:
    """The class that a column of probabilities is about."""
    for prefix in ("probability_", "prob_", "p_"):
        if header.lower().startswith(prefix) and len(header) > len(prefix):
            return header[len(prefix) :]
    return header


def _long(seen: Candidates) -> Layout:
    roles = _row_roles(seen, ("event", "expert", "probability"))
    unused = tuple(i for i in range(len(seen.names)) if i not in roles.values() and i not in seen.aside)
    return Layout(roles, unused=unused, guessed=tuple(seen.guessed))


def _row_roles(seen: Candidates, wanted: Sequence[str]) -> dict[str, int]:
    """Roles of a table with a row per forecast."""
    for role in ("expert", "probability"):
        if role in wanted:
            _one_of(seen, role)
    expert = single(seen.table, seen.names, seen.found, ["expert"])["expert"]
    if not seen.candidates("event"):
        _guess_event(seen, expert)
    _one_of(seen, "event")
    roles = single(seen.table, seen.names, seen.found, ["event", *(role for role in wanted if role != "event")])
    if "probability" in roles:
        _find_verdict(seen, roles)
    _find_outcome(seen, [roles["event"]])
    for role in TIMES:
        _one_of(seen, role)
    if "probability" in roles and not seen.candidates("class") and "class" not in seen.given:
        _guess_class(seen, roles)
    return {**single(seen.table, seen.names, seen.found, ROLES)}


def _one_of(seen: Candidates, role: str) -> None:
    """Of columns that say the same in other words, such as an id and a name, leave the first."""
    hits = seen.candidates(role)
    if len(hits) > 1 and role in {"event", "expert"}:
        first, *others = hits
        look = seen.contents
        if not any(look.varies_within(i, [first]) or look.varies_within(first, [i]) for i in others):
            seen.keep(role, [first])


def _guess_event(seen: Candidates, expert: int) -> None:
    """The one column that, with the expert, distinguishes forecasts."""
    look = seen.contents
    if seen.emptied("event"):
        raise LayoutError(
            f"{seen.table}: a table with a row per forecast needs a column that says which event each is about; name "
            "it with --column event=NAME"
        )
    free = [i for i in seen.free() if look.kind(i) == "words" or look.numbers_rows(i)]
    able = [i for i in free if look.present(i) == 1 and look.distinct(i) > 1 and not look.is_index(i)]
    unique = [i for i in able if not look.repeats([i, expert])]
    if len(unique or able) == 1:
        seen.guess("event", (unique or able)[0])
        return
    probability = seen.names[seen.candidates("probability")[0]] if seen.candidates("probability") else None
    has = f", and a probability column, {shown(probability)}," if probability else ""
    raise LayoutError(
        f"{seen.table}: there is an expert column, {shown(seen.names[expert])}{has} but none for the event among "
        f"{listed(seen.names)}; name it with --column event=NAME",
        remedies=[{"columns": {"event": seen.names[i]}} for i in (unique or able)],
    )


def _find_verdict(seen: Candidates, roles: Mapping[str, int]) -> None:
    """The column of verdicts that probabilities say how sure their judges are of, if there is one."""
    look, probability = seen.contents, roles["probability"]
    if seen.named("verdict") or seen.emptied("verdict"):
        return
    outcomes = [] if seen.named("outcome") else seen.candidates("outcome")
    labels = [i for i in outcomes if normal(seen.names[i]) == "label" and len(outcomes) > 1]
    votes = [i for i in outcomes if i in labels or look.varies_within(i, [roles["event"]])]
    votes = [*seen.candidates("verdict"), *votes]
    seen.keep("verdict", [])
    sure = normal(seen.names[probability]) in CONFIDENCE
    votes = [i for i in votes if look.kind(i) == "words" or look.unit(i) == "binary"]
    if not sure or not votes:
        return
    if len(votes) > 1:
        raise seen.ask("verdict", votes, f" that {shown(seen.names[probability])} is about")
    name = seen.names[votes[0]]
    known = look.known(probability)
    least = 50.0 if len(known) and known.max() > 1 and not look.marked(probability) else 0.5
    least = 50.0 if look.marked(probability) else least
    if look.distinct(votes[0]) > 2 or (len(known) and known.min() < least):
        raise LayoutError(
            f"{seen.table}: is {shown(seen.names[probability])} how sure each is of its own {shown(name)}, or the "
            f"probability of one outcome throughout? Say --column verdict={quoted(name)}, or --column verdict= for the "
            "latter",
            remedies=({"columns": {"verdict": name}}, {"columns": {"verdict": None}}),
        )
    seen.keep("outcome", [i for i in seen.candidates("outcome") if i != votes[0]])
    seen.guess("verdict", votes[0])


def _find_outcome(seen: Candidates, events: Sequence[int]) -> None:
    """Leave columns as outcomes that have one value for each event; if none is called so, one that looks like it."""
    look = seen.contents
    if seen.named("outcome") or seen.emptied("outcome"):
        return
    hits = seen.candidates("outcome")
    fixed = [i for i in hits if not events or not look.varies_within(i, events)]
    seen.keep("outcome", fixed or hits)
    if hits:
        return
    taken = {i for role, columns in seen.found.items() if role != "outcome" for i in columns}
    able = [
        i
        for i, name in enumerate(seen.names)
        if i not in taken and says_outcome(name) and (look.unit(i) == "binary" or 0 < look.distinct(i) <= 2)
    ]
    able = [i for i in able if not events or not look.varies_within(i, events)]
    if len(able) == 1:
        seen.guess("outcome", able[0])


def _guess_class(seen: Candidates, roles: Mapping[str, int]) -> None:
    """The column of words over which each forecast adds up to 1, if there is one."""
    look = seen.contents
    base = [roles["event"], roles["expert"], *seen.candidates("time")[:1]]
    if not look.repeats(base) or not look.sums_to_one(roles["probability"], base):
        return
    free = [i for i in seen.free() if look.kind(i) == "words" and look.present(i) == 1]
    able = [i for i in free if not look.repeats([*base, i]) and look.repeats([i])]
    if len(able) > 1:
        raise seen.ask("class", able, ", over which forecasts add up to 1")
    if able:
        seen.guess("class", able[0])


def _wide(seen: Candidates) -> Layout:
    look, names = seen.contents, seen.names
    _refuse_respondents(seen)
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
        _one_of(seen, role)
    _find_outcome(seen, [])
    roles = single(seen.table, names, seen.found, [role for role in ROLES if role not in OF_ROWS])
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
    experts = _wide_experts(seen, free, roles)
    if not experts:
        raise LayoutError(
            f"{seen.table}: no column holds forecasts. A table has a row per forecast, with columns event, expert and "
            f"probability, or a row per event and a column per expert; this one has {listed(names)}"
        )
    unused = tuple(sorted(set(free) - set(experts)))
    cells: tuple[tuple[str | None, str | None], ...] = tuple((names[i], None) for i in experts)
    if _are_classes(look, experts, roles.get("outcome")):
        cells = tuple(("forecast", _class_name(names[i])) for i in experts)
    return Layout(roles, experts, cells, unused, priors, guessed=tuple(seen.guessed))


def _are_classes(look: Contents, columns: Sequence[int], outcome: int | None) -> bool:
    """Whether columns are one forecast over classes, which outcomes name, and no experts."""
    if outcome is None or len(columns) < 2 or not look.rows_sum_to_one(columns):
        return False
    classes = {_class_name(look.table.names[i]).lower() for i in columns}
    words = {word.lower() for word in look.words(outcome).values}
    return bool(words & classes) and words <= classes | VOID | UNSETTLED | MISSING


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
    ids = [
        i
        for i in free
        if re.search(r"(^|_)id$", normal(seen.names[i])) and look.numbers_rows(i) and look.present(i) == 1
    ]
    return next(iter([*unlike, *ids]), None)


def _names_rows(look: Contents, column: int) -> bool:
    return look.kind(column) == "words" and look.present(column) == 1 and not look.repeats([column])


def _wide_experts(seen: Candidates, free: Sequence[int], roles: Mapping[str, int]) -> tuple[int, ...]:
    """The columns that hold forecasts: numbers, but for those that number or count something."""
    look, names = seen.contents, seen.names
    # What happened must not be taken as a forecast, even where another column plays that role.
    taken = {name for role in ("outcome", "prior") if role in roles for name in SYNONYMS[role] if len(name) > 1}
    able = [i for i in free if look.kind(i) != "words" and normal(names[i]) not in taken]
    counting = [i for i in able if _counts(look, names[i], i)]
    likely = [i for i in able if look.unit(i) and i not in counting]
    if not likely:
        return tuple(able)
    empty = [i for i in able if not look.kind(i) and normal(names[i]) in REMARKS]
    return tuple(i for i in able if i in likely or i not in (*counting, *empty))


def _counts(look: Contents, name: str, column: int) -> bool:
    """Whether a column of numbers is plainly no forecasts: an index, a year, an amount."""
    known = look.known(column)
    if not len(known):
        return False
    numbered = look.is_index(column) and (len(known) > 2 or normal(name) in INDEX)
    return numbered or float((np.abs(known) > 100).mean()) > 0.5
