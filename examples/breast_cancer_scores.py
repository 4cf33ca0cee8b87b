"""How well the cases held out by ``breast_cancer.py`` were foreseen: by each classifier, by their average, by the pool.

``python examples/breast_cancer_scores.py FOLDER`` reads the files of ``breast_cancer.py`` and ``pooled.csv``, which is
what ``opinionpool pool FOLDER/breast_cancer.csv --format csv`` printed.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

import opinionpool as op


def main(folder: Path) -> None:
    """Print a score for each classifier, their average and the pool: 1 is perfect, 0 is saying 50% every time."""
    truth = {row["event"]: int(row["outcome"]) for row in read(folder / "breast_cancer_truth.csv")}
    cases = {row["event"]: row for row in read(folder / "breast_cancer.csv")}
    pooled = {row["event"]: float(row["probability"]) for row in read(folder / "pooled.csv")}

    experts = [name for name in next(iter(cases.values())) if name not in ("event", "outcome")]
    forecasts = {name: [float(cases[event][name]) for event in truth] for name in experts}
    forecasts["(averaged forecast)"] = np.mean(list(forecasts.values()), axis=0).tolist()
    forecasts["(the pool)"] = [pooled[event] for event in truth]

    print(f"score on the {len(truth)} cases held out")
    for name, probabilities in forecasts.items():
        score = op.log_score(probabilities, list(truth.values()), floor=1e-4).mean()
        print(f"  {name:<20} {score:6.3f}")


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
