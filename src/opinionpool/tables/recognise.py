"""Which column holds what, and in which shape a table is.

Four shapes are known: a row per forecast, a row per event with a column per expert, a row per forecast with a column
per class, and a row per expert with a column per event. Columns are recognised by their names, and what they hold has
to go with it; where names say nothing, what columns hold decides, if it can decide in one way only. Where two columns
could play a role the user is asked. A column that plays no role is reported, never silently dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from opinionpool.errors import LayoutError
from opinionpool.tables.candidates import INDEX, REMARKS, TIMES, Candidates
from opinionpool.tables.class_headers import class_names
from opinionpool.tables.contents import Contents
from opinionpool.tables.layout import Layout
from opinionpool.tables.people import without_particulars
from opinionpool.tables.roles import (
    TEXT,
    WEIGHTS,
    normal,
    single,
    text_column,
)
from opinionpool.tables.row_roles import row_roles
from opinionpool.tables.wide import wide_layout
from opinionpool.text import listed, quoted, shown, typed


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
        return wide_layout(seen) if not _has_expert(seen, probabilities) else _long(seen)
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
    """Whether what columns hold shows a row per forecast, though no name says who made it; then it is guessed.

    Raises
    ------
    LayoutError
        If one question stands on every row, and nothing shows who answered it.
    """
    look = seen.contents
    events = seen.asked()
    if seen.emptied("expert") or len(events) != 1 or not look.repeats(events):
        return False
    free = seen.free()
    numbers = [i for i in free if look.unit(i) in {"fractions", "percentages"} and normal(seen.names[i]) not in INDEX]
    # Beside a column of probabilities other numbers are none, unless its name may say how much a row counts.
    able = [i for i in probabilities if normal(seen.names[i]) not in WEIGHTS]
    able = able or [*probabilities, *(i for i in numbers if normal(seen.names[i]) not in WEIGHTS)]
    if len(able) != 1:
        return False
    words = [i for i in free if look.kind(i) == "words" and look.present(i) == 1 and not look.times(i)]
    once = [i for i in words if not look.repeats([*events, i])]
    one_question = look.distinct(events[0]) == 1
    who = [i for i in once if look.repeats([i]) or look.distinct(i) < look.table.rows]
    if one_question and probabilities:
        who = [i for i in once if normal(seen.names[i]) not in REMARKS]
    if len(who) != 1:
        if one_question and not seen.named("event") and normal(seen.names[events[0]]) != "event":
            raise _nobody(seen, events[0], [i for i in words if normal(seen.names[i]) not in REMARKS])
        return False
    seen.keep("event", events)
    seen.guess("expert", who[0])
    if not probabilities:
        seen.guess("probability", able[0])
    return True


def _nobody(seen: Candidates, event: int, words: Sequence[int]) -> LayoutError:
    """The error for answers to one question of which no column says who gave them."""
    able = [i for i in words if seen.contents.distinct(i) > 1]
    who = quoted(seen.names[able[0]]) if len(able) == 1 else "NAME"
    return LayoutError(
        f"{seen.table}: column {shown(seen.names[event])} has one question on every row, so each row is a forecast, "
        f"and no column is known to say whose: name it with --column expert={who}",
        remedies=[{"columns": {"expert": seen.names[i]}} for i in able],
    )


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
    events = [i for i in seen.candidates("event") if i not in numbers and not seen.is_row_id(i)]
    fractions = [i for i in numbers if look.unit(i) in {"fractions", "percentages"}]
    if seen.emptied("probability"):
        fractions = []
    if not events and not seen.emptied("event") and len(numbers) > 1 and not look.repeats([expert]):
        return _respondents(seen, expert, without_particulars(look, numbers))
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
    roles = row_roles(seen, ("event", "expert"))
    unused = [i for i in range(len(seen.names)) if i not in (*roles.values(), *columns) and i not in seen.aside]
    outcomes = seen.contents.words(roles["outcome"]).values if "outcome" in roles else []
    cells = tuple((None, label) for label in class_names([seen.names[i] for i in columns], outcomes))
    return Layout(roles, tuple(columns), cells, tuple(unused), guessed=tuple(seen.guessed))


def _long(seen: Candidates) -> Layout:
    roles = row_roles(seen, ("event", "expert", "probability"))
    unused = tuple(i for i in range(len(seen.names)) if i not in roles.values() and i not in seen.aside)
    return Layout(roles, unused=unused, guessed=tuple(seen.guessed))
