"""Expected scores at known parameters: what unlimited training data would give in figure 3.

Experts are exchangeable with contrast mean 1, the prior is ½ and so is the scoring prior, so both outcomes count
alike. The Gaussian and the independent pool have normal log-odds, and their score is an integral (model.md, section
2.4). By symmetry and concavity the best linear pool of exchangeable experts is their average; its score is simulated.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opinionpool.logodds import FLOOR, POOL_FLOOR, Array, expit

__all__ = ["average_scores", "gaussian_scores", "independent_scores", "normal_score"]

DRAWS = 100_000
# Nodes of the integral, over so many standard deviations on either side.
NODES, REACH = 20_001, 12.0


def normal_score(mean: npt.ArrayLike, variance: npt.ArrayLike) -> Array:
    """Expected score (26) of pooled log-odds that are normal about `mean` given Y = 1 and about −`mean` given Y = 0.

    >>> normal_score([0.0, 1.0], [0.0, 2.0]).round(4)
    array([0.    , 0.2905])
    """
    z = np.linspace(-REACH, REACH, NODES)
    density = np.exp(-0.5 * z**2)
    m, s = np.asarray(mean, dtype=np.float64), np.sqrt(np.asarray(variance, dtype=np.float64))
    given = np.clip(expit(m[..., None] + s[..., None] * z), POOL_FLOOR, 1.0 - POOL_FLOOR)
    return np.asarray(1.0 + np.log2(given) @ (density / density.sum()))


def gaussian_scores(numbers: npt.ArrayLike, correlation: float, variance: float) -> Array:
    """Expected scores of the Gaussian pool of N experts: C* given Y = 1 is N(μ*, 2μ*), (25).

    Parameters
    ----------
    numbers : array_like, shape (P,)
        N.
    correlation, variance : float
        ρ and σ².

    Examples
    --------
    >>> gaussian_scores([10], 0.5, 1.0).round(3), gaussian_scores([10], 0.5, 2.0).round(3)
    (array([0.689]), array([0.455]))
    """
    n = np.asarray(numbers, dtype=np.float64)
    accuracy = n / (1.0 + (n - 1.0) * correlation) * 2.0 / variance
    return normal_score(accuracy, 2.0 * accuracy)


def independent_scores(numbers: npt.ArrayLike, correlation: float, variance: float) -> Array:
    """Expected scores of the independent pool (23), whose log-odds are the sum of the experts'.

    Examples
    --------
    As good as the Gaussian pool where its weights happen to be 1, as at σ² = 1 with N = 1 + 1/ρ:

    >>> independent_scores([3], 0.5, 1.0) - gaussian_scores([3], 0.5, 1.0)
    array([0.])
    """
    n = np.asarray(numbers, dtype=np.float64)
    return normal_score(n, variance * n * (1.0 + (n - 1.0) * correlation))


def average_scores(most: int, correlation: float, variance: float, draws: int = DRAWS, seed: int = 0) -> Array:
    """Expected scores of the average of 1 .. `most` experts, simulated, (most,).

    Examples
    --------
    >>> average_scores(10, 0.5, 1.0, draws=20_000)[-1].round(2)
    np.float64(0.45)
    """
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((draws // 2, most + 1))
    z = np.concatenate([half, -half])
    spread = np.sqrt(variance)
    ratios = 1.0 + spread * (np.sqrt(correlation) * z[:, :1] + np.sqrt(1.0 - correlation) * z[:, 1:])
    said = np.clip(expit(ratios), FLOOR, 1.0 - FLOOR)
    n = np.arange(1, most + 1)
    score = 1.0 + np.log2(said.cumsum(axis=1) / n).mean(axis=0)
    # What chance did to the experts' own scores, which are known, it did to their average's.
    own = (1.0 + np.log2(said).mean(axis=0)).cumsum() / n
    return np.asarray(score - (own - normal_score(1.0, variance)))
