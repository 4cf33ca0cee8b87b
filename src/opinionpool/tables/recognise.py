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
from opinionpool.labels import FAMILIES, UNSETTLED, VOID
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
    within,
)
from opinionpool.text import listed, quoted, shown, typed

_ID = re.compile(r"(^|_)id$")


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
    _ask_of_hub(seen)
    experts, probabilities = seen.candidates("expert"), seen.candidates("probability")
    if experts and probabilities:
        return _long(seen)
    if seen.given.get("expert") is None and not experts:
        return _wide(seen) if not _has_expert(seen, probabilities) else _long(seen)
    return _without_probability(seen)


# What forecasting hubs call their columns: which numbers a row holds, of what, and the one number.
_HUB = ("output_type", "output_type_id", "value")


def _ask_of_hub(seen: Candidates) -> None:
    """Where a table is a forecasting hub's, whose events are named by all columns of a task, ask for just that."""
    places = {normal(name): i for i, name in enumerate(seen.names)}
    if not set(_HUB) <= set(places) or seen.named("event") or seen.emptied("event"):
        return
    own = {places[name] for name in _HUB} | set(seen.candidates("expert"))
    look = seen.contents
    task = [i for i in range(len(seen.names)) if i not in own and i not in seen.aside and look.distinct(i) > 1]
    if not task:
        return
    kinds = look.words(places["output_type"])
    mixed = "pmf" in kinds.values and len(kinds.values) > 1
    event = tuple(seen.names[i] for i in task)
    kind, label = (seen.names[places[name]] for name in _HUB[:2])
    columns: dict[str, object] = {"event": event[0] if len(event) == 1 else event, "class": label}
    words = [*(f"--column event={quoted(name)}" for name in event), f"--column class={quoted(label)}"]
    if "target" in places and not seen.named("outcome"):
        # There a target is what is forecast, and not what came of it.
        columns["outcome"] = None
        words.append("--column outcome=")
    remedy: dict[str, object] = {"columns": columns}
    if mixed:
        remedy["where"] = f"{kind} = 'pmf'"
        words.append(f"--where {typed(str(remedy['where']))}")
    together = listed(event) if len(event) == 1 else f"all of {listed(event)} together"
    verb = "says" if len(event) == 1 else "say"
    raise LayoutError(
        f"{seen.table} has the columns of a forecasting hub, where {together} {verb} what a row is about: say "
        f"{' '.join(words)}",
        remedies=[remedy],
    )


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
    outcomes = seen.contents.words(roles["outcome"]).values if "outcome" in roles else []
    cells = tuple((None, label) for label in _class_names([seen.names[i] for i in columns], outcomes))
    return Layout(roles, tuple(columns), cells, tuple(unused), guessed=tuple(seen.guessed))


def _class_names(headers: Sequence[str], outcomes: Sequence[str]) -> list[str]:
    """The classes that columns of probabilities are about, by their headers.

    What all of them begin with is no part of the names where it is an object that holds them, a word for
    probabilities, or where what is left are outcomes.

    >>> _class_names(["probs.safe", "probs.unsafe"], []), _class_names(["model_yes", "model_no"], ["yes", "NO"])
    (['safe', 'unsafe'], ['yes', 'no'])
    >>> _class_names(["model_yes", "model_no"], []), _class_names(["prob_a", "b"], [])
    (['model_yes', 'model_no'], ['a', 'b'])
    """
    names = [_without_prefix(header) for header in headers]
    first, last = min(headers), max(headers)
    same = [one == other for one, other in zip(first, last, strict=False)]
    common = first[: same.index(False) if False in same else len(same)]
    inner = common[: common.rfind(".") + 1]
    if inner:
        names = [header[len(inner) :] for header in headers]
    words = {word.lower() for word in outcomes}
    left = [header[len(common) :] for header in headers]
    # The common beginning must end where a word does, or "pass" and "past" would be "s" and "t".
    if words and re.search(r"[\W_]$", common) and words & {label.lower() for label in left}:
        names = left
    return names


def _without_prefix(header: str) -> str:
    """A header without a word for probabilities before it."""
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
    _find_stretches(seen, roles["event"])
    for role in TIMES:
        _one_of(seen, role)
    if "probability" in roles and not seen.candidates("class") and "class" not in seen.given:
        _guess_class(seen, roles)
    return {**single(seen.table, seen.names, seen.found, ROLES)}


def _one_to_one(look: Contents, one: int, other: int) -> bool:
    """Whether two columns say the same in other words."""
    return not look.varies_within(one, [other]) and not look.varies_within(other, [one])


def _one_of(seen: Candidates, role: str) -> None:
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
        ids = [i for i in able if _ID.search(normal(seen.names[i])) and _one_to_one(look, i, text)]
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


def _find_outcome(seen: Candidates, events: Sequence[int]) -> None:
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
    able = [
        i
        for i, name in enumerate(seen.names)
        if i not in taken
        and (says_outcome(name) or (normal(name) == "resolved" and _is_yes_no(look, i)))
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
    cells = _class_grid(look, experts) or tuple((names[i], None) for i in experts)
    if _are_classes(look, experts, roles.get("outcome")):
        outcomes = look.words(roles["outcome"]).values
        cells = tuple(("forecast", label) for label in _class_names([names[i] for i in experts], outcomes))
    return Layout(roles, experts, cells, unused, priors, guessed=tuple(seen.guessed))


def _class_grid(look: Contents, columns: Sequence[int]) -> tuple[tuple[str | None, str | None], ...] | None:
    """Expert and class of each column, where headers have both and each expert's numbers add up to 1 in every row.

    The class is what follows the last separator, such as ``resnet_prob_cat``; headers with a colon are known anyway.
    """
    headers = [look.table.names[i] for i in columns]
    parts = [re.fullmatch(r"(.*[^\W_])[\W_]+([^\W_]+)", header) for header in headers]
    if not headers or any(part is None or ":" in header for part, header in zip(parts, headers, strict=True)):
        return None
    pairs = [(part[1], part[2]) for part in parts if part is not None]
    of_expert: dict[str, list[int]] = {}
    for (expert, _), column in zip(pairs, columns, strict=True):
        of_expert.setdefault(expert, []).append(column)
    classes = dict.fromkeys(label for _, label in pairs)
    if len(classes) < 2 or len(pairs) != len(set(pairs)) or len(pairs) != len(of_expert) * len(classes):
        return None
    if len(of_expert) < 2 or not all(map(look.rows_sum_to_one, of_expert.values())):
        return None
    return tuple((_SAYS_PROBABILITY.sub("", expert) or expert, label) for expert, label in pairs)


_SAYS_PROBABILITY = re.compile(r"[\W_]+(?:p|prob|probs|proba|probability)$", re.IGNORECASE)


def _are_classes(look: Contents, columns: Sequence[int], outcome: int | None) -> bool:
    """Whether columns are one forecast over classes, which outcomes name, and no experts."""
    if outcome is None or len(columns) < 2 or not look.rows_sum_to_one(columns):
        return False
    outcomes = look.words(outcome).values
    classes = {label.lower() for label in _class_names([look.table.names[i] for i in columns], outcomes)}
    words = {word.lower() for word in outcomes}
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
    ids = [i for i in free if _ID.search(normal(seen.names[i])) and look.numbers_rows(i) and look.present(i) == 1]
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
