"""A forecasting tournament, simulated: a sparse crowd, late and revised forecasts, questions that resolve over time.

``python examples/tournament.py FOLDER`` writes ``tournament.csv`` and says what is in it. It has a row per forecast:

``question, forecaster, probability``
    Each forecast, to the whole per cent.
``time, closes, resolved_at``
    When it was made, until when forecasts count, and when the outcome was known. Some forecasts come too late.
``outcome``
    1 if it happened, 0 if not, blank while that is open.
"""

from __future__ import annotations

import csv
import datetime
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

QUESTIONS, FORECASTERS, OPEN = 120, 30, 12
START = datetime.datetime(2025, 1, 6)
HEADER = ("question", "forecaster", "probability", "time", "closes", "resolved_at", "outcome")


def rows(seed: int = 1) -> Iterator[tuple[str, ...]]:
    """The rows of the table, in the order in which the forecasts were made."""
    rng = np.random.default_rng(seed)
    skill = rng.gamma(2.0, 0.35, FORECASTERS)  # how much somebody's signal tells
    bias = rng.normal(0.0, 0.5, FORECASTERS)
    stretch = np.exp(rng.normal(0.3, 0.3, FORECASTERS))  # above 1: too sure
    zeal = rng.beta(1.2, 3.0, FORECASTERS)  # how many questions somebody answers
    opens = np.sort(rng.uniform(0.0, 330.0, QUESTIONS))
    closes = opens + rng.uniform(10.0, 40.0, QUESTIONS)
    resolved = closes + rng.exponential(10.0, QUESTIONS)
    happened = rng.random(QUESTIONS) < 0.4
    shared = rng.normal(0.0, 0.8, QUESTIONS)  # what all have read, right or wrong
    last = np.sort(resolved)[-OPEN]
    made = []
    for q in range(QUESTIONS):
        side = 1.0 if happened[q] else -1.0
        for f in np.flatnonzero(rng.random(FORECASTERS) < zeal):
            own = rng.normal(side * skill[f], np.sqrt(2.0 * skill[f]))
            for _ in range(rng.choice([1, 2], p=[0.8, 0.2])):
                at = opens[q] + (closes[q] - opens[q]) * rng.beta(1.0, 1.05) * 1.03
                own += rng.normal(0.1 * side, 0.2)
                log_odds = np.log(0.4 / 0.6) + bias[f] + stretch[f] * (own + shared[q])
                made.append((at, q, int(f), min(max(1.0 / (1.0 + np.exp(-log_odds)), 0.01), 0.99)))
    for at, q, f, p in sorted(made):
        known = resolved[q] < last
        yield (
            f"q{q + 1:03}",
            f"f{f + 1:02}",
            f"{p:.2f}",
            when(at),
            when(closes[q]),
            when(resolved[q]) if known else "",
            str(int(happened[q])) if known else "",
        )


def when(day: float) -> str:
    """A day since the start, as a time to the minute."""
    return (START + datetime.timedelta(days=float(day))).strftime("%Y-%m-%dT%H:%MZ")


def main(folder: Path) -> None:
    """Write the file, and say what is in it."""
    table = list(rows())
    with (folder / "tournament.csv").open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *table])
    print(f"tournament.csv: {len(table):,} forecasts; it begins with")
    for row in [HEADER, *table[:3]]:
        print("  " + ",".join(row))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
