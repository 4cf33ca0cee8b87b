"""Estimators of a group's share in use: mean of answers, majority, Rogan-Gladen, prediction-powered inference."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.forecasts import Forecasts
from opinionpool.logodds import all_classes
from opinionpool.pools.verdicts import votes


class Rate(NamedTuple):
    """Shares of G groups, (G,), or (G, K) when K > 2, and bounds of confidence intervals."""

    rate: Array
    low: Array
    high: Array


def rivals(forecasts: Forecasts, answers: Array, group: Index, groups: int, level: float) -> dict[str, Rate]:
    """Shares by other estimators, by name; `answers` are pooled probabilities, (T, K)."""
    k, event, outcome = len(forecasts.classes), forecasts.event_index, forecasts.outcomes
    experts = all_classes(forecasts.probabilities, k)
    crowd, unanswered = np.maximum(forecasts.crowd, 1), (forecasts.crowd == 0) / k
    best = (experts >= experts.max(axis=1, keepdims=True)).T / 1.0
    majority = votes(np.stack([np.bincount(event, each, len(outcome)) + unanswered for each in best], axis=-1))
    size, known = np.bincount(group, minlength=groups), outcome >= 0
    found: dict[str, list[tuple[Array, Array]]] = {}
    for c in range(k) if k > 2 else (1,):
        happened = np.where(known, outcome == c, 0.0)
        answer = np.where(known, happened, answers[:, c])
        mean = _mean(answer, group, size)
        unsure = _mean(answer * (1.0 - answer), group, size) / size
        vote = _mean(majority[:, c], group, size)
        opinion = np.bincount(event, experts[:, c], len(outcome)) / crowd + unanswered
        each = {
            "mean of answers": (mean, unsure),
            "majority": (vote, vote * (1.0 - vote) / size),
            "Rogan-Gladen": _rogan_gladen(vote, size, majority[:, c], happened, known),
            "PPI++": _prediction_powered(opinion, happened, known, group, groups),
        }
        for name, pair in each.items():
            found.setdefault(name, []).append(pair)
    width = NormalDist().inv_cdf((1.0 + level) / 2.0)
    return {name: _rate(parts, width) for name, parts in found.items()}


def _rate(parts: list[tuple[Array, Array]], width: float) -> Rate:
    """Rates and intervals from means and variances by class, (G,) each."""
    mean, error = np.stack([m for m, _ in parts], axis=-1), np.sqrt(np.stack([v for _, v in parts], axis=-1))
    ends = (np.clip(mean + sign * error, 0.0, 1.0) for sign in (0.0, -width, width))
    return Rate(*(end if len(parts) > 1 else end[:, 0] for end in ends))


def _mean(values: Array, group: Index, size: Index) -> Array:
    """Means by group, (G,)."""
    return np.asarray(np.bincount(group, values, len(size)) / size)


def _rogan_gladen(vote: Array, size: Index, majority: Array, happened: Array, known: Mask) -> tuple[Array, Array]:
    """Vote shares corrected for sensitivity and specificity, and variances (Rogan & Gladen 1978); NaN if unknown."""
    counts = np.array([[(known & (happened == y)).sum(), majority[known & (happened == y)].sum()] for y in (0.0, 1.0)])
    if not counts[:, 0].all():
        return np.full_like(vote, np.nan), np.full_like(vote, np.nan)
    false, true = (counts[:, 1] + 0.5) / (counts[:, 0] + 1.0)
    errors = np.array([false * (1.0 - false), true * (1.0 - true)]) / (counts[:, 0] + 1.0)
    gap = true - false
    if gap < 0.02:
        return np.full_like(vote, 0.5), np.full_like(vote, 1.0)
    rate = np.clip((vote - false) / gap, 0.0, 1.0)
    variance = vote * (1.0 - vote) / size + (1.0 - rate) ** 2 * errors[0] + rate**2 * errors[1]
    return rate, variance / gap**2


def _prediction_powered(opinion: Array, happened: Array, known: Mask, group: Index, groups: int) -> tuple[Array, Array]:
    """PPI++ means (Angelopoulos, Duchi & Zrnic 2023), variances; groups with < 3 outcomes use all groups' moments."""
    if known.sum() < 3:
        return np.full(groups, np.nan), np.full(groups, np.nan)
    own = np.bincount(group[known], minlength=groups)
    total = _moments(opinion, happened, known, np.zeros_like(group), 1)
    n, f, y, ff, yy, fy = np.where(own >= 3, _moments(opinion, happened, known, group, groups), total)
    m, g, _, gg, _, _ = _moments(opinion, happened, ~known, group, groups)
    m = np.maximum(m, 1)
    spread = (n * ff + m * gg) / (n + m) + n * m / (n + m) ** 2 * (f - g) ** 2
    power = np.clip(fy * n / (n - 1) / np.maximum((1 + n / m) * spread, 1e-12), 0.0, 1.0)
    rate = np.where(m > 1, power * g + y - power * f, y)
    return np.clip(rate, 0.0, 1.0), power**2 * gg / m + np.maximum(yy - 2 * power * fy + power**2 * ff, 0.0) / n


def _moments(f: Array, y: Array, rows: Mask, group: Index, groups: int) -> Array:
    """By group: count, means of f and y, variances of f and y, covariance, (6, groups), over the events `rows`."""
    n = np.bincount(group, rows, groups)
    size = np.maximum(n, 1)
    mean_f, mean_y, ff, yy, fy = (np.bincount(group, rows * x, groups) / size for x in (f, y, f * f, y * y, f * y))
    return np.stack([n, mean_f, mean_y, ff - mean_f**2, yy - mean_y**2, fy - mean_f * mean_y])
