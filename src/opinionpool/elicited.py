"""What an expert's accuracy may be elicited as: an area under the curve, an expected score, a hit rate.

All are those of the expert's log-odds once bias and calibration are mended, C given Y = 1 being N(μ*, 2μ*) (model.md,
section 2.4), and rise with μ*, so each determines it. Scores and hit rates are those on events with even chances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from statistics import NormalDist
from types import MappingProxyType

from opinionpool.errors import PanelError
from opinionpool.expected import normal_score

__all__ = ["ELICITED", "accuracy_of_auc", "accuracy_of_hit_rate", "accuracy_of_score"]

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
    """Accuracy μ* of the expert who is right on a share Φ(√(μ*/2)) of events with even chances.

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
    """Accuracy μ* of the expert with this expected normalised log score (26) on events with even chances.

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
            f"{what} must lie above {least:g}, which is what guessing has, and below 1, and it is {value!r}; "
            "leave out an expert who knows nothing"
        )


# From what is elicited to an accuracy.
ELICITED: Mapping[str, Callable[[float], float]] = MappingProxyType(
    {"auc": accuracy_of_auc, "score": accuracy_of_score, "hit_rate": accuracy_of_hit_rate}
)
