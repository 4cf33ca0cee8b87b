"""Six classifiers' probabilities that a tumour is malignant, as a file of forecasts.

``python examples/breast_cancer.py FOLDER`` writes two files from the 569 cases that come with scikit-learn:

``breast_cancer.csv``
    A row per case and a column per classifier, the probability of *malignant*. The column ``outcome`` is 1 for
    malignant, 0 for benign, and blank for 169 cases whose outcome is held out.
``breast_cancer_truth.csv``
    The outcomes of the cases held out.

Where the outcome is known, each probability comes from a classifier that did not see the case (five folds); the
cases held out are judged by the classifiers fitted to all others, so that their outcomes are used nowhere.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

HELD_OUT = 169
EXPERTS = {
    "logistic_regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "linear_discriminant": LinearDiscriminantAnalysis(),
    "naive_bayes": GaussianNB(),
    "nearest_neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(n_neighbors=10)),
    "decision_tree": DecisionTreeClassifier(min_samples_leaf=10, random_state=0),
    "random_forest": RandomForestClassifier(n_estimators=100, random_state=0),
}


def main(folder: Path) -> None:
    """Write the two files into `folder`."""
    X, benign = load_breast_cancer(return_X_y=True)
    malignant = 1 - benign
    held_out = np.zeros(len(X), dtype=bool)
    held_out[np.random.default_rng(0).choice(len(X), HELD_OUT, replace=False)] = True

    probabilities = np.empty((len(X), len(EXPERTS)))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    known = X[~held_out], malignant[~held_out]
    for column, expert in enumerate(EXPERTS.values()):
        probabilities[~held_out, column] = cross_val_predict(expert, *known, cv=folds, method="predict_proba")[:, 1]
        probabilities[held_out, column] = expert.fit(*known).predict_proba(X[held_out])[:, 1]

    cases = [f"case_{i + 1:03}" for i in range(len(X))]
    outcomes = ["" if hidden else str(outcome) for outcome, hidden in zip(malignant, held_out, strict=True)]
    shown = [[f"{p:.6g}" for p in row] for row in probabilities]
    write(
        folder / "breast_cancer.csv",
        ["event", *EXPERTS, "outcome"],
        ([case, *row, outcome] for case, row, outcome in zip(cases, shown, outcomes, strict=True)),
    )
    write(
        folder / "breast_cancer_truth.csv",
        ["event", "outcome"],
        ([cases[i], str(malignant[i])] for i in np.flatnonzero(held_out)),
    )


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a CSV file."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
