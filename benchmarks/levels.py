"""Levels of simulated judges on anchored and on arbitrary scales: log loss of the default pool, plain and as levels.

    python benchmarks/levels.py [REPEATS]        # 20; a few minutes

24 to 33 judges share errors (correlation .5) and differ in accuracy; two levels are votes. Scales: "anchored", levels
are the judges' calibrated log-odds with slips of their own; "shared", all judges use one arbitrary part of the scale;
"arbitrary", each its own. The last rows are of four ordered classes, as .7/.1/.1/.1 and as levels.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product

import numpy as np

import opinionpool as op
from opinionpool.learning.learn import learn
from opinionpool.logodds import expit, logit

LABELS = (0, 20, 100)


def scores(seed: int, kind: str, levels: int, events: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Scores (T, N) from 0, and outcomes."""
    rng = np.random.default_rng(seed)
    base, judges = rng.choice([0.15, 0.3, 0.45, 0.6]), int(rng.integers(24, 34))
    y = rng.random(events) < base
    accuracy = np.exp(rng.normal(rng.normal(np.log(0.5), 0.3), 0.35, judges))
    error = np.sqrt(0.5) * (rng.normal(size=(events, 1)) + rng.normal(size=(events, judges)))
    evidence = 2 * accuracy * (accuracy * np.where(y, 1, -1)[:, None] + error)
    if kind == "anchored":
        odds = (evidence + logit(base)) * np.exp(rng.normal(0, 0.25, judges)) + rng.normal(0, 0.35, judges)
    else:
        unit = 0.9 * evidence / np.sqrt(4 * accuracy**2 * (1 + accuracy**2))
        shared = kind == "shared"
        unit = unit * np.exp(rng.normal(0, 0.25 if shared else 0.4, None if shared else judges))
        odds = unit + rng.normal(0, 1.0 if shared else 0.5) + rng.normal(0, 0.3 if shared else 0.9, judges)
    return np.clip(np.floor(expit(odds) * levels), 0, levels - 1), y.astype(int)


def loss(forecasts: op.Forecasts, y: np.ndarray, known: int) -> float:
    """Mean log loss on events without a label."""
    p = learn(forecasts).pool_forecasts(forecasts)[known:]
    p = np.stack([1 - p, p], axis=-1) if p.ndim == 1 else p
    return float(-np.log(np.maximum(p[np.arange(len(p)), y[known:]], 1e-6)).mean())


def ordered(seed: int, events: int = 900, judges: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Levels (T, N) of four, and grades."""
    rng = np.random.default_rng(seed)
    latent, edges = 1.3 * rng.normal(size=events) - 0.4, np.array([-0.2, 0.7, 1.5])
    error = np.sqrt(0.5) * (rng.normal(size=(events, 1)) + rng.normal(size=(events, judges)))
    seen = latent[:, None] + np.exp(rng.normal(-0.1, 0.3, judges)) * error + rng.normal(0, 0.4, judges)
    levels = [np.digitize(seen[:, i], np.sort(edges + rng.normal(0, 0.3, 3))) for i in range(judges)]
    return np.stack(levels, axis=1), np.digitize(latent + 0.3 * rng.normal(size=events), edges)


def main(repeats: int = 20) -> None:
    """Print the table."""
    print(f"{'scale':10} levels labels  plain  levels")
    for kind, levels in product(("anchored", "shared", "arbitrary"), (2, 4, 10)):
        for known in LABELS:
            each = []
            for seed in range(repeats):
                given, y = scores(seed, kind, levels)
                labels = [int(o) if t < known else None for t, o in enumerate(y)]
                f = op.Forecasts.from_array(given.astype(int), labels, scale=f"0-{levels - 1}", classes=(0, 1))
                each.append([loss(replace(f, scales={}), y, known), loss(f, y, known)])
            print(f"{kind:10} {levels:6} {known:6}  {np.mean(each, 0)[0]:.4f} {np.mean(each, 0)[1]:.4f}", flush=True)
    print(f"{'classes':10} labels  .7/.1   levels")
    for known in LABELS:
        each = []
        for seed in range(max(repeats // 5, 1)):
            given, y = ordered(seed)
            labels = [int(o) if t < known else None for t, o in enumerate(y)]
            f = op.Forecasts.from_array(given, labels, scale="0-3", classes=(0, 1, 2, 3))
            top = f.probabilities == f.probabilities.max(axis=1, keepdims=True)
            each.append([loss(replace(f, probabilities=np.where(top, 0.7, 0.1)), y, known), loss(f, y, known)])
        print(f"{'four':10} {known:6}  {np.mean(each, 0)[0]:.4f} {np.mean(each, 0)[1]:.4f}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
