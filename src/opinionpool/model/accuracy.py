"""What an expert's accuracy may be elicited as: an area under the curve, an expected score, a hit rate.

All are those of the expert's log-odds once bias and calibration are corrected, C given Y = 1 being N(μ*, 2μ*)
(model.md, section 2.4), and rise with μ*, so each determines it. Scores and hit rates are those on events of
probability 1/2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from math import erfc
from statistics import NormalDist
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.errors import PanelError
from opinionpool.logodds import FLOOR, POOL_FLOOR, expit

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
    contrast = np.clip(expit(ratios), FLOOR, 1.0 - FLOOR)
    n = np.arange(1, most + 1)
    score = 1.0 + np.log2(contrast.cumsum(axis=1) / n).mean(axis=0)
    # Sampling error in the experts' own scores, which are known, is that of their average's.
    own = (1.0 + np.log2(contrast).mean(axis=0)).cumsum() / n
    return np.asarray(score - (own - normal_score(1.0, variance)))


_STEPS = 60
# Between these lie all scores that floats tell from 0 and from 1.
_LEAST, _MOST = 1e-9, 1e2


def accuracy_of_auc(auc: float) -> float:
    """Accuracy μ* of the expert whose area under the ROC curve is Φ(√μ*).

    Parameters
    ----------
    auc : float
        Above 0.5 and below 1; for more than two classes, between two of them.

    Raises
    ------
    PanelError
        If it is not.

    Examples
    --------
    >>> round(accuracy_of_auc(0.8), 4)
    0.7083
    """
    _check("an AUC", auc, 0.5)
    return NormalDist().inv_cdf(auc) ** 2


def accuracy_of_hit_rate(rate: float) -> float:
    """Accuracy μ* of the expert who is right on a share Φ(√(μ*/2)) of events of probability 1/2.

    Parameters
    ----------
    rate : float
        Above 0.5 and below 1.

    Raises
    ------
    PanelError
        If it is not.

    Examples
    --------
    >>> round(accuracy_of_hit_rate(0.75), 4)
    0.9099
    """
    _check("a hit rate", rate, 0.5)
    return 2.0 * NormalDist().inv_cdf(rate) ** 2


@lru_cache(maxsize=1024)
def accuracy_of_score(score: float) -> float:
    """Accuracy μ* of the expert with this expected normalised log score (26) on events of probability 1/2.

    Parameters
    ----------
    score : float
        Above 0 and below 1.

    Raises
    ------
    PanelError
        If it is not.

    Examples
    --------
    >>> round(accuracy_of_score(0.2905), 3)
    1.0
    """
    _check("an expected score", score, 0.0)
    low, high = math.log(_LEAST), math.log(_MOST)
    if not _score(math.exp(low)) < score < _score(math.exp(high)):
        raise PanelError(f"an expected score so close to 0 or 1 determines no accuracy, and it is {score!r}")
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _score(math.exp(middle)) < score else (low, middle)
    return math.exp((low + high) / 2.0)


def _score(accuracy: float) -> float:
    return float(normal_score(accuracy, 2.0 * accuracy))


def _check(what: str, value: float, least: float) -> None:
    if not least < value < 1.0:
        raise PanelError(
            f"{what} must lie above {least:g} (guessing) and below 1 (perfect), and it is {value!r}; leave out an "
            "expert who is no better than guessing"
        )


# From what is elicited to an accuracy.
ELICITED: Mapping[str, Callable[[float], float]] = MappingProxyType(
    {"auc": accuracy_of_auc, "score": accuracy_of_score, "hit_rate": accuracy_of_hit_rate}
)


def normal_cdf(x: npt.ArrayLike) -> Array:
    """Φ(x), to the last digits in the lower tail too.

    >>> normal_cdf([-40.0, 0.0, 1.96]).round(4)
    array([0.   , 0.5  , 0.975])
    """
    scaled = -np.asarray(x, dtype=np.float64) / np.sqrt(2.0)
    flat = np.array([0.5 * erfc(each) for each in scaled.ravel().tolist()])
    return np.asarray(flat.reshape(scaled.shape)[()])
