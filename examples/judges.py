"""Five language models as judges of the same answers, simulated.

``python examples/judges.py FOLDER`` writes ``judges.csv`` and says what is in it: a row per judged answer, the
probability that it is correct according to each judge, and the column ``correct``, by people, for the first half.
``large`` is good and somewhat too sure, ``medium`` less good, ``medium-t1`` is ``medium`` asked again, ``small`` says
0.5 where it has no idea, and ``strict`` says 0 or 1 mostly, and sometimes nothing that can be read.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

ANSWERS, LABELLED = 300, 150
HEADER = ("item", "large", "medium", "medium-t1", "small", "strict", "correct")


def table(seed: int = 2) -> list[list[str]]:
    """The rows of the file."""
    rng = np.random.default_rng(seed)
    correct = rng.random(ANSWERS) < 0.6
    side = np.where(correct, 1.0, -1.0)
    looks = rng.normal(0.0, 0.9, ANSWERS)  # answers that look right and are not, to all judges

    def signal(accuracy: float) -> np.ndarray:
        return accuracy * side + np.sqrt(2.0 * accuracy) * rng.normal(size=ANSWERS) + looks

    large, medium, small = 1.4 * signal(1.6), 1.2 * signal(0.8), signal(0.4)
    again = medium + rng.normal(0.0, 0.3, ANSWERS)
    strict = 5.0 * signal(0.6)
    clueless = np.abs(small) < 0.6
    unreadable = rng.random(ANSWERS) < 0.1
    rows = []
    for i in range(ANSWERS):
        row = [probability(x[i], 2) for x in (large, medium, again)]
        row.append("0.5" if clueless[i] else probability(small[i], 1))
        row.append("" if unreadable[i] else probability(strict[i], 1))
        rows.append([f"a{i + 1:03}", *row, str(int(correct[i])) if i < LABELLED else ""])
    return rows


def probability(log_odds: float, digits: int) -> str:
    """What a judge writes."""
    return f"{1.0 / (1.0 + np.exp(-log_odds)):.{digits}f}"


def main(folder: Path) -> None:
    """Write the file, and say what is in it."""
    rows = table()
    with (folder / "judges.csv").open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *rows])
    print(f"judges.csv: {len(rows)} answers; it begins with")
    for row in [list(HEADER), *rows[:3]]:
        print("  " + ",".join(row))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
