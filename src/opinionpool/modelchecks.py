"""What the checks of a model found, in short for people and whole for JSON."""

from __future__ import annotations

from collections.abc import Sequence

from opinionpool.findings import Check
from opinionpool.render import printable

# What each check looks for, where it finds nothing.
LOOKED_FOR = {
    "normality": "long tails",
    "spreads": "unequal spreads",
    "correlations": "unequal correlations",
    "drift": "change over time",
    "leakage": "leaked outcomes",
    "placeholders": "placeholders",
    "clones": "clones",
    "complements": "complements",
}


def check_lines(checks: Sequence[Check]) -> list[str]:
    """A line for each code that alarms, about the expert who departs most; then what was not found or looked for."""
    lines = []
    codes = list(dict.fromkeys(check.code for check in checks))
    alarming = {check.code for check in checks if check.serious}
    for code in codes:
        found = [check for check in checks if check.code == code and check.serious]
        if found:
            more = f" (so for {len(found) - 1:,} more)" if len(found) > 1 else ""
            lines.append(printable(found[0].text + more))
    fine = [LOOKED_FOR[check.code] for check in checks if not check.serious and check.statistic is not None]
    if fine:
        lines.append(f"looked for and not found: {', '.join(fine)}")
    tried = {check.code for check in checks if check.statistic is not None}
    idle = [LOOKED_FOR[code] for code in codes if code not in tried | alarming]
    if idle:
        lines.append(f"too little to look for: {', '.join(idle)}")
    return lines


def check_records(checks: Sequence[Check]) -> list[dict[str, object]]:
    """All findings for JSON."""
    return [
        {
            "code": check.code,
            "expert": check.expert,
            "statistic": check.statistic,
            "p": check.p,
            "text": check.text,
            "serious": check.serious,
        }
        for check in checks
    ]
