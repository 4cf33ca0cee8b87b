"""Tests of one number each, and their correction for how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, sqrt

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array


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
    """Two-sided p of a t statistic.

    >>> round(student(2.228, 10.0), 4)
    0.05
    """
    from scipy.special import stdtr

    return float(2.0 * stdtr(freedom, -abs(t)))


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
    from scipy.special import log_ndtr

    n = len(values)
    z = np.sort(values - values.mean()) / values.std(ddof=1)
    a = -n - float(((2.0 * np.arange(1, n + 1) - 1.0) / n) @ (log_ndtr(z) + log_ndtr(-z[::-1])))
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


def at_least(successes: int, trials: int, probability: float) -> float:
    """The probability of so many successes or more in so many trials.

    >>> round(at_least(2, 3, 0.5), 3)
    0.5
    """
    from scipy.special import bdtrc

    return float(bdtrc(successes - 1, trials, probability)) if successes > 0 else 1.0
