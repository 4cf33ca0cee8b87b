"""Notes on the names of experts and events."""

from __future__ import annotations

import re
from collections.abc import Sequence
from unicodedata import normalize

from opinionpool.errors import Note
from opinionpool.findings import finding
from opinionpool.names import alike
from opinionpool.text import FORMULAS, is_formula, shown


def alike_notes(experts: Sequence[str]) -> list[Note]:
    """Experts whose names hardly differ: one of them, perhaps, written in two ways."""
    groups = alike(experts)
    if not groups:
        return []
    phrase = "; ".join(" and ".join(map(shown, group[:4])) for group in groups[:3])
    phrase += "; ..." if len(groups) > 3 else ""
    return [finding("similar-names", names=phrase, count=sum(map(len, groups)))]


# Events up to which their names are compared.
_EVENTS = 50_000
_DASH = re.compile(r"\s*[-\u2010-\u2015\u2212]+\s*")


def _event_key(name: str) -> str:
    """What is the same for events that differ only in dashes, blanks, case or the form of letters.

    >>> _event_key("Wird es \u2013  regnen?") == _event_key("wird es -\u00a0Regnen?")
    True
    >>> _event_key("1-1") == _event_key("11")
    False
    """
    folded = name if name.isascii() else normalize("NFKC", name)
    return _DASH.sub("-", " ".join(folded.casefold().split()))


def alike_event_notes(events: Sequence[str]) -> list[Note]:
    """Events whose names hardly differ: one question, perhaps, written in two ways."""
    if len(events) > _EVENTS:
        return []
    groups: dict[str, list[str]] = {}
    for name in events:
        groups.setdefault(_event_key(name), []).append(name)
    found = [group for group in groups.values() if len(group) > 1]
    if not found:
        return []
    phrase = "; ".join(" and ".join(map(shown, group[:3])) for group in found[:2])
    phrase += "; ..." if len(found) > 2 else ""
    return [finding("similar-events", names=phrase, count=sum(map(len, found)))]


def formula_notes(names: Sequence[str]) -> list[Note]:
    """Names that a spreadsheet would take for formulas."""
    lines = "\n" + "\n".join(names)
    if not any(sign in lines and "\n" + sign in lines for sign in FORMULAS):
        return []
    odd = [name for name in names if is_formula(name)]
    return [finding("formulas", names=odd)] if odd else []
