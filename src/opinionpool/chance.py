"""How probable findings are by chance: tests that need no more than NumPy, with p-values, and Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, lgamma, log, log1p, sqrt

import numpy as np
import numpy.typing as npt

from opinionpool.logodds import Array
from opinionpool.normal import normal_cdf


def holm(p: Sequence[float], tests: int = 0) -> list[float]:
    """P-values of tests made together, each as probable as to be so small somewhere among them (Holm 1979).

    Where there were more tests than p-values, those left out are taken to be larger.

    >>> holm([0.01, 0.5, 0.02])
    [0.03, 0.5, 0.04]
    """
    order = sorted(range(len(p)), key=p.__getitem__)
    number = max(tests, len(p))
    adjusted, most = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        most = max(most, min(1.0, (number - rank) * p[i]))
        adjusted[i] = most
    return adjusted


def student(t: float, freedom: float) -> float:
    """Two-sided p of a t statistic, to three digits: the incomplete beta function, as a smooth integral.

    >>> round(student(2.228, 10.0), 4)
    0.05
    """
    x, half = freedom / (freedom + t * t), freedom / 2.0
    if x == 0:
        return 0.0
    nodes, weights = np.polynomial.legendre.leggauss(40)
    w = (nodes + 1.0) / 2.0
    inside = float(weights @ (w / np.sqrt(1.0 - x * (1.0 - w * w) ** (1.0 / half))))
    return min(exp(half * log(x) - lgamma(half) - lgamma(0.5) + lgamma(half + 0.5)) * inside / half, 1.0)


def welch(one: Array, two: Array) -> float:
    """Two-sided p of equal means, variances not taken to be equal; 1 where neither sample varies."""
    a, b = float(one.var(ddof=1)) / len(one), float(two.var(ddof=1)) / len(two)
    if a + b == 0:
        return 1.0
    freedom = (a + b) ** 2 / (a * a / (len(one) - 1) + b * b / (len(two) - 1))
    return student(float(one.mean() - two.mean()) / sqrt(a + b), freedom)


def ranks(values: npt.NDArray[np.generic]) -> Array:
    """Ranks from 1, the mean of theirs for equal values.

    >>> ranks(np.array([3.0, 1.0, 3.0]))
    array([2.5, 1. , 2.5])
    """
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2.0)[place])


def rank_correlation(x: npt.NDArray[np.generic], y: npt.NDArray[np.generic]) -> tuple[float, float]:
    """Spearman's correlation and its two-sided p; 0 and 1 where one of the two never changes."""
    a, b = ranks(x), ranks(y)
    a, b = a - a.mean(), b - b.mean()
    size = sqrt(float(a @ a) * float(b @ b))
    if size == 0:
        return 0.0, 1.0
    r, freedom = max(-1.0, min(1.0, float(a @ b) / size)), len(a) - 2
    left = 1.0 - r * r
    return r, student(r * sqrt(freedom / left), freedom) if left > 1e-15 else 0.0


def not_normal(values: Array) -> tuple[float, float, float]:
    """Skewness, excess kurtosis, and p of normality by Anderson and Darling's statistic, mean and variance estimated.

    P as D'Agostino and Stephens (1986) have it. Means of several groups may have been taken off: for large samples that
    makes no difference (Pierce and Kopecky 1979).
    """
    n = len(values)
    z = np.sort(values - values.mean()) / values.std(ddof=1)
    low, high = (np.log(np.maximum(normal_cdf(x), 1e-300)) for x in (z, -z[::-1]))
    a = -n - float(((2.0 * np.arange(1, n + 1) - 1.0) / n) @ (low + high))
    a = min(a * (1.0 + 0.75 / n + 2.25 / n**2), 13.0)
    if a >= 0.6:
        p = exp(1.2937 - 5.709 * a + 0.0186 * a * a)
    elif a >= 0.34:
        p = exp(0.9177 - 4.279 * a - 1.38 * a * a)
    elif a >= 0.2:
        p = 1.0 - exp(-8.318 + 42.796 * a - 59.938 * a * a)
    else:
        p = 1.0 - exp(-13.436 + 101.14 * a - 223.73 * a * a)
    spread = float(np.mean(z**2))
    return float(np.mean(z**3)) / spread**1.5, float(np.mean(z**4)) / spread**2 - 3.0, p


def at_least(successes: int, trials: int, chance: float) -> float:
    """How probable so many successes or more are in trials of a chance.

    >>> round(at_least(2, 3, 0.5), 3)
    0.5
    """
    if successes <= 0:
        return 1.0
    if chance <= 0:
        return 0.0
    if chance >= 1:
        return 1.0
    if successes <= trials * chance:
        # From the other end, where terms do not vanish.
        return 1.0 - at_least(trials - successes + 1, trials, 1.0 - chance)
    odds = log(chance) - log1p(-chance)
    start = lgamma(trials + 1) - lgamma(successes + 1) - lgamma(trials - successes + 1)
    term = exp(start + successes * log(chance) + (trials - successes) * log1p(-chance))
    total = term
    for k in range(successes, trials):
        term *= (trials - k) / (k + 1) * exp(odds)
        total += term
        if term < 1e-17 * total and k > trials * chance:
            break
    return min(total, 1.0)
