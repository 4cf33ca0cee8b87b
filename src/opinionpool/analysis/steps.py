"""One answer step by step: how the probability moves from the prior, expert by expert."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from opinionpool import logodds
from opinionpool.analysis.explanation import Explanation
from opinionpool.arrays import Array


def by_effect(why: Explanation) -> list[int]:
    """Index of the experts, those who add most, of either sign, first."""
    size = np.abs(why.contributions)
    size = size if size.ndim == 1 else size.max(axis=1)
    return [int(i) for i in np.argsort(-size, kind="stable")]


class Step(NamedTuple):
    """One bar of a waterfall: from where to where the probability moves, by whom."""

    name: str
    before: float
    after: float


def steps(why: Explanation, at: int) -> list[Step]:
    """How the probability of class `at` moves from the prior to the answer, the largest contributions first.

    Only for pools that are sums of log-odds. With more than two classes each step is what the sum so far makes of the
    class beside the others.
    """
    parts = [why.contributions[i] for i in by_effect(why)]
    names = [why.experts[i] for i in by_effect(why)]
    if np.any(why.intercept != 0):
        parts, names = [why.intercept, *parts], ["intercept", *names]
    if why.topic_shift is not None:
        parts, names = [*parts, why.topic_shift], [*names, f"topic {why.topic}"]
    if np.any(why.shift != 0):
        parts, names = [*parts, why.shift], [*names, "base rate"]
    total, found = np.asarray(why.start), []
    before = _class_probability(total, at)
    for name, part in zip(names, parts, strict=True):
        total = total + part
        after = _class_probability(total, at)
        found.append(Step(name, before, after))
        before = after
    return found


def _class_probability(total: Array, at: int) -> float:
    """Of class `at`, from log-odds, or from centred log-probabilities."""
    return of_class(
        np.asarray(logodds.expit(total) if total.ndim == 0 else logodds.softmax(logodds.uncentred(total))), at
    )


def of_class(p: Array, at: int) -> float:
    """The probability of class `at`, from one number for two classes or one for each."""
    if p.ndim == 0:
        return float(p) if at == 1 else 1.0 - float(p)
    return float(p[at])
