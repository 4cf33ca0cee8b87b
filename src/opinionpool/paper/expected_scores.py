"""Expected scores of pools at known parameters: experts with one correlation ρ and one variance σ² of log-odds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.logodds import FLOOR, expit
from opinionpool.model.accuracy import normal_score

DRAWS = 100_000


def gaussian_scores(numbers: npt.ArrayLike, correlation: float, variance: float) -> Array:
    """Scores of the Gaussian pool of N experts, (P,): C* given Y = 1 is N(μ*, 2μ*), (25).

    >>> gaussian_scores([10], 0.5, 1.0).round(3), gaussian_scores([10], 0.5, 2.0).round(3)
    (array([0.689]), array([0.455]))
    """
    n = np.asarray(numbers, dtype=np.float64)
    accuracy = n / (1.0 + (n - 1.0) * correlation) * 2.0 / variance
    return normal_score(accuracy, 2.0 * accuracy)


def independent_scores(numbers: npt.ArrayLike, correlation: float, variance: float) -> Array:
    """Scores of the independent pool (23), whose log-odds are the sum of the experts', (P,).

    As good as the Gaussian pool where its weights happen to be 1, as at σ² = 1 with N = 1 + 1/ρ:

    >>> independent_scores([3], 0.5, 1.0) - gaussian_scores([3], 0.5, 1.0)
    array([0.])
    """
    n = np.asarray(numbers, dtype=np.float64)
    return normal_score(n, variance * n * (1.0 + (n - 1.0) * correlation))


def average_scores(most: int, correlation: float, variance: float, draws: int = DRAWS, seed: int = 0) -> Array:
    """Scores of the average of 1 .. `most` experts, simulated, (most,).

    >>> average_scores(10, 0.5, 1.0, draws=20_000)[-1].round(2)
    np.float64(0.45)
    """
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((draws // 2, most + 1))
    z = np.concatenate([half, -half])
    spread = np.sqrt(variance)
    ratios = 1.0 + spread * (np.sqrt(correlation) * z[:, :1] + np.sqrt(1.0 - correlation) * z[:, 1:])
    contrast = np.clip(expit(ratios), FLOOR, 1.0 - FLOOR)
    n = np.arange(1, most + 1)
    score = 1.0 + np.log2(contrast.cumsum(axis=1) / n).mean(axis=0)
    # Sampling error in the experts' own scores, which are known, is that of their average's.
    own = (1.0 + np.log2(contrast).mean(axis=0)).cumsum() / n
    return np.asarray(score - (own - normal_score(1.0, variance)))
