"""Rows that are people and columns that are questions: how such a table shows what it is."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from opinionpool.errors import LayoutError
from opinionpool.tables.candidates import Candidates
from opinionpool.tables.contents import Contents
from opinionpool.tables.roles import PEOPLE, SYNONYMS, WEIGHTS, normal
from opinionpool.text import listed, quoted

_QUESTION = re.compile(r"(?:q|frage|question|pregunta)_?\d+[a-z]?")

# Headers of what surveys ask of people beside forecasts, or note down.
_PARTICULAR = re.compile(
    r"(?:.*_)?(?:id|nr)|index|row|n|age|alter|edad|jahrgang|geburtsjahr|year_of_birth|duration|dauer"
    r"|experience|experience_years|years_of_experience|berufserfahrung"
)


def is_question(header: str) -> bool:
    """Whether a header reads as that of a question, such as Q1, Frage 2 or one that ends with a question mark.

    >>> [is_question(header) for header in ("Q1", "Frage 2", "Will it rain?", "ann", "Q")]
    [True, True, True, False, False]
    """
    return header.rstrip().endswith("?") or bool(_QUESTION.fullmatch(normal(header)))


def namers(look: Contents, columns: Sequence[int]) -> list[int]:
    """Columns that may name people, one in each row: those with a header that says so, or else all that name rows."""
    words = [i for i in columns if look.kind(i) == "words" and look.present(i) == 1 and not look.repeats([i])]
    words = [i for i in words if not look.times(i)]
    return [i for i in words if normal(look.table.names[i]) in PEOPLE] or words


def refuse_people(seen: Candidates, event: int | None, experts: Sequence[int]) -> None:
    """Where what was taken for experts reads as questions, ask what a row is.

    Raises
    ------
    LayoutError
        With both ways out.
    """
    questions = [i for i in experts if is_question(seen.names[i])]
    if event is None or len(questions) < 2 or 2 * len(questions) < len(experts):
        return
    able = namers(seen.contents, [i for i in range(len(seen.names)) if i not in experts and i not in seen.aside])
    name = seen.names[able[0] if able else event]
    raise LayoutError(
        f"{seen.table}: columns {listed([seen.names[i] for i in questions], 3)} read as questions: if a row is one "
        f"expert's, say --column expert={quoted(name)}; if a row is an event, say --column "
        f"event={quoted(seen.names[event])}",
        remedies=({"columns": {"expert": name}}, {"columns": {"expert": None, "event": seen.names[event]}}),
    )


def person_column(look: Contents, events: Collection[str]) -> str | None:
    """The column that names people, where columns are events that have outcomes; None if none is or a name tells it."""
    names = look.table.names
    columns = [i for i, name in enumerate(names) if name in events]
    others = [i for i in range(len(names)) if i not in columns and names[i]]
    if not columns or any(normal(names[i]) in SYNONYMS["expert"] for i in others):
        return None
    if any(not set(events).isdisjoint(look.words(i).values) for i in others):
        return None
    able = namers(look, others)
    return names[able[0]] if len(able) == 1 else None


def without_particulars(look: Contents, columns: Sequence[int]) -> list[int]:
    """Numbers, but for what is no question: ids, ages, weights, and whole numbers above 1 beside more fractions."""
    names = look.table.names
    kept = [i for i in columns if not _PARTICULAR.fullmatch(normal(names[i])) and normal(names[i]) not in WEIGHTS]
    whole = {i for i in kept if look.unit(i) == "percentages" and (look.known(i) % 1 == 0).all()}
    few = len(whole) < sum(look.unit(i) == "fractions" for i in kept)
    found = [i for i in kept if not (few and i in whole)]
    return found if len(found) > 1 or any(is_question(names[i]) for i in found) else list(columns)
