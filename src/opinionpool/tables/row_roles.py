"""Which columns of a table with a row per forecast play which role: by name, else by what they hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from opinionpool.errors import LayoutError
from opinionpool.labels import FAMILIES
from opinionpool.tables.candidates import TIMES, Candidates
from opinionpool.tables.cells import MISSING
from opinionpool.tables.class_headers import without_prefix
from opinionpool.tables.contents import Contents
from opinionpool.tables.roles import (
    CONFIDENCE,
    ROLES,
    normal,
    says_outcome,
    single,
    text_column,
    within,
)
from opinionpool.text import listed, quoted, shown

ID = re.compile(r"(^|_)id$")


def row_roles(seen: Candidates, wanted: Sequence[str]) -> dict[str, int]:
    """Roles of a table with a row per forecast."""
    for role in ("expert", "probability"):
        if role in wanted:
            one_of(seen, role)
    expert = single(seen.table, seen.names, seen.found, ["expert"])["expert"]
    if not seen.candidates("event"):
        _guess_event(seen, expert)
    seen.keep("event", seen.asked())
    one_of(seen, "event")
    roles = single(seen.table, seen.names, seen.found, ["event", *(role for role in wanted if role != "event")])
    if "probability" in roles:
        _find_verdict(seen, roles)
    find_outcome(seen, [roles["event"]])
    _find_stretches(seen, roles["event"])
    for role in TIMES:
        one_of(seen, role)
    if "probability" in roles and not seen.candidates("class") and "class" not in seen.given:
        _guess_class(seen, roles)
    return {**single(seen.table, seen.names, seen.found, ROLES)}


def _one_to_one(look: Contents, one: int, other: int) -> bool:
    """Whether two columns say the same in other words."""
    return not look.varies_within(one, [other]) and not look.varies_within(other, [one])


def one_of(seen: Candidates, role: str) -> None:
    """Of columns that say the same in other words, such as an id and a name, leave the first."""
    hits = seen.candidates(role)
    if len(hits) > 1 and role in {"event", "expert"}:
        first, *others = hits
        look = seen.contents
        if all(_one_to_one(look, i, first) for i in others):
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
    text = text_column(seen.names, able)
    if text is not None:
        # An id, or else the wording itself.
        ids = [i for i in able if ID.search(normal(seen.names[i])) and _one_to_one(look, i, text)]
        seen.guess("event", next(iter(ids), text))
        return
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


def find_outcome(seen: Candidates, events: Sequence[int]) -> None:
    """Leave columns as outcomes that have one value for each event; if none is called so, one that looks like it."""
    look = seen.contents
    if seen.named("outcome") or seen.emptied("outcome"):
        return
    hits = seen.candidates("outcome")
    fixed = [i for i in hits if not events or not look.varies_within(i, events)]
    if hits and not fixed:
        # What each expert answered may stand beside what is known of the event.
        inner = [i for i in within(seen.names, "outcome") if i not in hits and not look.varies_within(i, events)]
        fixed = inner if len(inner) == 1 else []
    seen.keep("outcome", fixed or hits)
    if hits:
        return
    taken = {i for role, columns in seen.found.items() if role != "outcome" for i in columns}
    # Beside "prob_beat", a column "beat" says what came of it.
    headers = [seen.names[i] for i in seen.candidates("probability")]
    about = {normal(without_prefix(header)) for header in headers} - set(map(normal, headers))
    able = [
        i
        for i, name in enumerate(seen.names)
        if i not in taken
        and (says_outcome(name) or normal(name) in about or (normal(name) == "resolved" and _is_yes_no(look, i)))
        and (look.unit(i) == "binary" or 0 < look.distinct(i) <= 2)
    ]
    able = [i for i in able if not events or not look.varies_within(i, events)]
    if len(able) == 1:
        seen.guess("outcome", able[0])


def _is_yes_no(look: Contents, column: int) -> bool:
    """Whether a column holds both of yes and no, or the like, and blanks: not whether events are resolved."""
    words = {word.lower() for word in look.words(column).values} - MISSING
    both = (look.unit(column) == "binary" and look.distinct(column) > 1) or words in map(set, FAMILIES)
    return look.present(column) < 1 and both


def _find_stretches(seen: Candidates, event: int) -> None:
    """The columns from when to when each forecast stood, where they are called start and end."""
    free = {normal(seen.names[i]): i for i in seen.free()}
    start, end = free.get("start_time"), free.get("end_time")
    # What all forecasts on an event have in common is when it begins itself.
    known = {*seen.found, *seen.given}
    if start is None or not known.isdisjoint({"time", "expires"}) or not seen.contents.varies_within(start, [event]):
        return
    seen.guess("time", start)
    if end is not None:
        seen.guess("expires", end)


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
