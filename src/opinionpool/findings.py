"""What checks find: by expert, corrected for how many tests there are, in words with a number each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opinionpool.chance import holm

# Of each family of tests.
LEVEL = 0.01
CODES = ("normality", "spreads", "correlations", "drift", "leakage", "placeholders", "clones", "complements")


@dataclass(frozen=True)
class Check:
    """One finding.

    Attributes
    ----------
    code : str
        One of `CODES`.
    expert : str or None
        Whom it is about; None for all.
    statistic : float or None
        What was measured; the text says what it is.
    p : float or None
        How probable so much is by chance somewhere among the experts; None where it is no test.
    text : str
        One sentence, for people.
    serious : bool
        Whether it departs from the model by more than chance explains, and so far that it matters. False: looked at and
        found in order, or too little to look at.
    """

    code: str
    expert: str | None
    statistic: float | None
    p: float | None
    text: str
    serious: bool


@dataclass(frozen=True)
class Finding:
    """One test of one expert, before it is known how many there are."""

    expert: str | None
    statistic: float
    p: float
    matters: bool
    text: str


def concluded(code: str, findings: Sequence[Finding], fine: str, idle: str, tests: int = 0) -> list[Check]:
    """The checks of a family: those that alarm, the least probable first, else that all is in order.

    `tests` is how many there were, if more than are given because the others are in order by far.
    """
    if not findings:
        return [Check(code, None, None, None, idle, False)]
    adjusted = holm([each.p for each in findings], tests)
    order = sorted(range(len(findings)), key=lambda i: adjusted[i])
    alarms = [
        Check(code, each.expert, each.statistic, adjusted[i], each.text, True)
        for i in order
        if (each := findings[i]).matters and adjusted[i] < LEVEL
    ]
    if alarms:
        return alarms
    least = findings[order[0]]
    return [Check(code, None, least.statistic, adjusted[order[0]], fine, False)]
