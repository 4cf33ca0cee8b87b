"""The leaderboard by column, what its columns mean, and as a section of the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opinionpool.report.blocks import Section, long_table, note
from opinionpool.report.comparison import difference_columns
from opinionpool.report.html import sentence
from opinionpool.report.listing import Column
from opinionpool.report.numbers import decimal, finite, whole
from opinionpool.scoring.comparison import LEVEL
from opinionpool.scoring.leaderboard import Standing, leaderboard

if TYPE_CHECKING:
    from opinionpool.report.findings import Findings

# Rows that a page shows at once, and that it has at most.
FIRST, MOST = 10, 500


def leaderboard_columns(found: Sequence[Standing]) -> list[Column]:
    """A row for each expert with a forecast on a resolved event, the largest gain first."""
    return [
        Column("expert", [each.expert for each in found], "expert"),
        Column("events", [each.events for each in found], "events", whole),
        Column("score", [each.score for each in found], "score", decimal),
        Column("brier", [each.brier for each in found], "Brier", decimal, spare=2),
        Column("skill", [finite(each.skill) for each in found], "skill", decimal, spare=1),
        *difference_columns("over_average", "gain", [each.gain for each in found]),
        Column("verdict", [each.gain.verdict for each in found], "verdict", spare=3),
    ]


def leaderboard_section(f: Findings) -> Section | None:
    """How each expert's own forecasts did; None where no event is resolved."""
    found = leaderboard(f.forecasts) if f.measured else []
    if not found:
        return None
    lead = (
        "How well each expert's own forecasts did, on the resolved events that it answered. Experts who answered "
        "different events are compared by the last columns: what each gained over the panel's average on its own ones."
    )
    columns, meaning = leaderboard_columns(found), note(" ".join(map(sentence, leaderboard_lines())))
    return Section("scores", "Leaderboard", [lead, *long_table(columns, "expert", FIRST, MOST), meaning])


def leaderboard_lines() -> list[str]:
    """Explanations of the leaderboard's columns."""
    return [
        "score: 1 - log loss / ln 2 of the expert's own forecasts, on the events that it answered (0 = saying 50%)",
        "skill: the same with 0 = the base rate; Brier: lower is better",
        f"gain: score less that of the panel's average on the same events; {LEVEL:.0%} intervals for all at once",
    ]
