"""Six language models judge the answers of three systems to the same questions, simulated.

``python examples/systems.py FOLDER`` writes ``systems.csv`` and says what is in it: a row per judged answer, with the
question, the system, the probability that it is good according to each judge, and the column ``outcome``, 1 if people
find it good, for 150 of the old system's answers. ``systems_truth.csv`` has each system's share of good answers, which
nobody knows.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

QUESTIONS, LABELLED, JUDGES = 400, 150, 6
# The share of good answers that each system gives in the long run.
SYSTEMS = {"old": 0.55, "new": 0.7, "cheap": 0.3}
HEADER = ("event", "question", "system", *(f"judge_{i + 1}" for i in range(JUDGES)), "outcome")


def table(seed: int = 4) -> tuple[list[list[str]], dict[str, float]]:
    """The rows of the file, and the share of good answers of each system."""
    rng = np.random.default_rng(seed)
    accuracy, stretch = rng.uniform(0.3, 1.2, JUDGES), np.exp(rng.normal(0.3, 0.3, JUDGES))
    generous = rng.normal(0.4, 0.4, JUDGES)
    hard = rng.normal(size=QUESTIONS)  # the harder a question, the fewer good answers
    misread = 0.6 * rng.normal(size=(QUESTIONS, 1))  # what all judges get wrong about a question
    labelled = set(rng.choice(QUESTIONS, LABELLED, replace=False).tolist())
    rows, truth = [], {}
    for system, share in SYSTEMS.items():
        probability = 1.0 / (1.0 + np.exp(hard - 1.15 * np.log(share / (1.0 - share))))
        good = rng.random(QUESTIONS) < probability
        looks = 0.5 * rng.normal(size=(QUESTIONS, 1)) + misread  # what all judges get wrong about an answer
        own = accuracy * np.where(good, 1.0, -1.0)[:, None] + np.sqrt(1.4 * accuracy) * rng.normal(
            size=(QUESTIONS, JUDGES)
        )
        forecast = 1.0 / (1.0 + np.exp(-(generous + stretch * (own + looks))))
        truth[system] = float(good.mean())
        for q in range(QUESTIONS):
            known = system == "old" and q in labelled
            row = [f"{system}-{q + 1:03}", f"q{q + 1:03}", system, *(f"{p:.2f}" for p in forecast[q])]
            rows.append([*row, str(int(good[q])) if known else ""])
    return rows, truth


def main(folder: Path) -> None:
    """Write the files, and say what is in the first."""
    rows, truth = table()
    with (folder / "systems.csv").open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *rows])
    with (folder / "systems_truth.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("system", "share"), *((name, f"{share:.4f}") for name, share in truth.items())])
    print(f"systems.csv: {len(rows)} answers; it begins with")
    for row in [list(HEADER), *rows[:2]]:
        print("  " + ",".join(row))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
