"""Notes on the names of experts and events."""

from __future__ import annotations

from collections.abc import Sequence

from opinionpool.errors import Note
from opinionpool.names import alike
from opinionpool.text import FORMULAS, is_formula, listed, shown


def alike_notes(experts: Sequence[str]) -> list[Note]:
    """Experts whose names hardly differ: one of them, perhaps, written in two ways."""
    groups = alike(experts)
    if not groups:
        return []
    phrase = "; ".join(" and ".join(map(shown, group[:4])) for group in groups[:3])
    text = (
        f"{phrase}{'; ...' if len(groups) > 3 else ''}: names that differ only in case, white space or the form "
        "of their letters count as different experts; if they are one, say --merge-names"
    )
    return [Note("similar-names", text, sum(map(len, groups)), serious=True)]


def formula_notes(names: Sequence[str]) -> list[Note]:
    """Names that a spreadsheet would take for formulas."""
    lines = "\n" + "\n".join(names)
    if not any(sign in lines and "\n" + sign in lines for sign in FORMULAS):
        return []
    odd = [name for name in names if is_formula(name)]
    if not odd:
        return []
    text = (
        f"{listed(odd, 3)} would be a formula in a spreadsheet: CSV has an apostrophe before such names, which is "
        "taken off where they are read; JSON has them as they are"
    )
    return [Note("formulas", text, len(odd))]
