"""What topics gain where they differ, and cost where they do not.

    python benchmarks/topics.py [--draws N] [--intervals | --blf blf.csv.gz]

Simulated: five calibrated experts whose errors correlate by .5; on every topic so many resolved events, and 200 to be
forecast. Intercepts of topics are normal about 0 with the spread of the column, and slopes about 1 with half of it; in
the last column, the logarithms of experts' accuracies on a topic are normal instead. A gain is the expected log loss of
the default pool without topics less that with them, in nats, on the 200 new events of each topic. Which levels of
spread are believed, and how much, was chosen by these figures.

With ``--intervals``, which share of the 90% intervals of answers to these events contain the true probability.

With ``--blf``, the forecasts of the agents in that file (columns event, expert, probability, outcome, group, question),
out of fold by question, five folds stratified by outcome, three seeds, answers averaged over seeds; `group`, the source
of a question, is the topic. The difference is paired, with the standard error of sums by question.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import opinionpool as op
from opinionpool.logodds import expit

Array = npt.NDArray[np.float64]

EXPERTS, CORRELATION, NEW = 5, 0.5, 200
TOPICS, EVENTS = (2, 9, 40), (20, 80)
# How far intercepts differ, and the logarithms of accuracies.
SPREADS = ((0.0, 0.0), (0.3, 0.0), (0.6, 0.0), (0.0, 0.5))
# The agents that the panel's authors pool.
FIVE = (
    "pro-high-brave-c1-p1-t1",
    "gpt5-high-brave-c1-p1-t1",
    "sonnet-high-brave-c1-p1-t1",
    "flash-high-brave-c1-p1-t1",
    "kimi-k2.5-high-brave-c1-t1",
)


def drawn(topics: int, events: int, spread: float, differ: float, rng: np.random.Generator) -> tuple[Array, Array, Any]:
    """Forecasts, true probabilities and topics."""
    label = np.repeat(np.arange(topics), events)
    happens = rng.random(len(label)) < 0.4
    noise = np.sqrt(CORRELATION) * rng.normal(size=(len(label), 1))
    noise = noise + np.sqrt(1.0 - CORRELATION) * rng.normal(size=(len(label), EXPERTS))
    intercept, slope = rng.normal(0, spread, topics), 1.0 + rng.normal(0, spread / 2, topics)
    accuracy = np.exp(rng.normal(0, differ, (topics, EXPERTS)))[label]
    contrast = np.where(happens, 1.0, -1.0)[:, None] * accuracy + np.sqrt(2.0 * accuracy) * noise
    # Theorem 3.1 with one correlation.
    root, level = np.sqrt(accuracy), CORRELATION / (1.0 + (EXPERTS - 1) * CORRELATION)
    weights = (root - level * root.sum(axis=1, keepdims=True)) / (1.0 - CORRELATION) / root
    prior = np.log(0.4 / 0.6)
    true = prior + intercept[label] + slope[label] * (weights * contrast).sum(axis=1)
    return expit(prior + contrast), expit(true), label


def gain(topics: int, events: int, spread: float, differ: float, rng: np.random.Generator) -> float:
    """Of one draw."""
    q, p, label = drawn(topics, events + NEW, spread, differ, rng)
    train = np.arange(len(p)) % (events + NEW) < events
    y = (rng.random(len(p)) < p).astype(int)
    plain = op.GaussianPool().fit(q[train], y[train]).predict_proba(q[~train])[:, 1]
    pool = op.GaussianPool().fit(q[train], y[train], topics=label[train])
    found = pool.predict_proba(q[~train], topics=label[~train])[:, 1]
    left = p[~train]
    return float(np.mean(left * np.log(found / plain) + (1.0 - left) * np.log((1.0 - found) / (1.0 - plain))))


def contained(topics: int, events: int, spread: float, differ: float, rng: np.random.Generator) -> float:
    """The share of intervals that contain the truth, in one draw."""
    q, p, label = drawn(topics, events + NEW, spread, differ, rng)
    train = np.arange(len(p)) % (events + NEW) < events
    y = (rng.random(len(p)) < p).astype(int)
    pool = op.GaussianPool().fit(q[train], y[train], topics=label[train])
    low, high = pool.predict_interval(q[~train], topics=label[~train]).T
    return float(np.mean((low <= p[~train]) & (p[~train] <= high)))


def table(draws: int, measure: Callable[..., float], form: str) -> list[str]:
    """The rows of the page."""
    lines = []
    for topics in TOPICS:
        for events in EVENTS:
            cells = []
            for spread, differ in SPREADS:
                rng = np.random.default_rng([topics, events, round(100 * spread), round(100 * differ)])
                few = draws if topics < TOPICS[-1] else max(2, draws // 4)
                found = [measure(topics, events, spread, differ, rng) for _ in range(few)]
                cells.append(format(np.mean(found), form))
            lines.append(f"| {topics} | {events} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return lines


def blf(file: Path) -> None:
    """Out of fold by question."""
    import pandas as pd
    from sklearn.model_selection import StratifiedGroupKFold

    rows = pd.read_csv(file)
    wide = rows.pivot_table(index="event", columns="expert", values="probability")
    facts = rows.groupby("event").first().loc[wide.index]
    y, topic, question = (facts[name].to_numpy() for name in ("outcome", "group", "question"))
    for name, columns in (("five agents", list(FIVE)), (f"all {wide.shape[1]}", list(wide.columns))):
        x, p = wide[columns].to_numpy(), np.zeros((2, len(y)))
        for seed in range(3):
            for a, b in StratifiedGroupKFold(5, shuffle=True, random_state=seed).split(x, y, question):
                p[0, b] += op.GaussianPool().fit(x[a], y[a]).predict_proba(x[b])[:, 1] / 3
                pool = op.GaussianPool().fit(x[a], y[a], topics=topic[a])
                p[1, b] += pool.predict_proba(x[b], topics=topic[b])[:, 1] / 3
        loss = -np.log(np.where(y == 1, p, 1.0 - p))
        better = loss[0] - loss[1]
        by = np.array([better[question == each].sum() for each in np.unique(question)])
        error = np.sqrt(((by - by.mean()) ** 2).sum()) / len(y)
        brier = ((p - y) ** 2).mean(axis=1)
        print(
            f"| {name} | {loss[0].mean():.4f} | {loss[1].mean():.4f} | {better.mean():+.4f} ± {error:.4f} "
            f"| {brier[0]:.4f} | {brier[1]:.4f} |",
            flush=True,
        )


def main() -> None:
    """Print the rows of the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--intervals", action="store_true")
    parser.add_argument("--blf", type=Path)
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    if given.blf is not None:
        blf(given.blf)
        return
    table(given.draws, *((contained, ".2f") if given.intervals else (gain, "+.4f")))


if __name__ == "__main__":
    main()
