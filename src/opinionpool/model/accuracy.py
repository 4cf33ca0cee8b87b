"""Accuracy from elicited measures: an area under the ROC curve, an expected score, a hit rate.

All three measure the expert's log-odds C after bias and calibration are corrected: C given Y = 1 is N(μ*, 2μ*)
(model.md, section 2.4). Each rises with the accuracy μ*, so each determines μ*. Expected scores and hit rates are for
events of probability 1/2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from statistics import NormalDist
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.blocks import blocks
from opinionpool.errors import PanelError
from opinionpool.logodds import POOL_FLOOR, expit

# Nodes of the integral, over so many standard deviations on either side.
NODES, REACH = 4001, 10.0
# Between these accuracies lie all scores that floats tell from 0 and from 1.
LEAST, MOST = 1e-9, 1e2
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def expected(of: Callable[[Array], Array], mean: npt.ArrayLike, variance: npt.ArrayLike) -> Array:
    """Expected value of `of(X)` for a normal X with `mean` and `variance`; numerical, and exact if `of` is smooth."""
    m, v = np.broadcast_arrays(np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64))
    z, found, flat = np.linspace(-REACH, REACH, NODES), np.empty(m.size), (m.reshape(-1, 1), v.reshape(-1, 1))
    density = np.exp(-0.5 * z**2)
    for rows in blocks(m.size, NODES):
        found[rows] = of(flat[0][rows] + np.sqrt(flat[1][rows]) * z) @ (density / density.sum())
    return np.asarray(found.reshape(m.shape)[()])


def normal_score(mean: npt.ArrayLike, variance: npt.ArrayLike) -> Array:
    """Expected log score (equation 26) of normal log-odds: `variance`, and mean `mean` if Y = 1 or −`mean` if Y = 0."""
    return expected(lambda x: 1.0 + np.log2(np.clip(expit(x), POOL_FLOOR, 1.0 - POOL_FLOOR)), mean, variance)


def normal_cdf(x: npt.ArrayLike) -> Array:
    """Return the standard normal distribution function Φ(x), accurate in the lower tail too."""
    return np.asarray(0.5 * _erfc(-np.asarray(x, dtype=np.float64) / np.sqrt(2.0)))


def accuracy_of_auc(auc: float) -> float:
    """Accuracy μ* from `auc` = Φ(√μ*), the probability of a higher forecast if the event happens than if not."""
    _check("an AUC", auc, 0.5)
    return NormalDist().inv_cdf(auc) ** 2


def accuracy_of_hit_rate(rate: float) -> float:
    """Return the accuracy μ* of an expert who is right on a share `rate` = Φ(√(μ*/2)) of events of probability 1/2."""
    _check("a hit rate", rate, 0.5)
    return 2.0 * NormalDist().inv_cdf(rate) ** 2


@lru_cache(maxsize=1024)
def accuracy_of_score(score: float) -> float:
    """Return the accuracy μ* of an expert with the expected log score `score` (equation 26) if the prior is 1/2."""
    from scipy.optimize import brentq

    def beyond(log_accuracy: float) -> float:
        return float(normal_score(np.exp(log_accuracy), 2.0 * np.exp(log_accuracy))) - score

    _check("an expected score", score, 0.0)
    if not beyond(np.log(LEAST)) < 0.0 < beyond(np.log(MOST)):
        raise PanelError(f"an expected score so close to 0 or 1 determines no accuracy, and it is {score!r}")
    return float(np.exp(brentq(beyond, np.log(LEAST), np.log(MOST), xtol=1e-15)))


def _check(what: str, value: float, least: float) -> None:
    """Raise a `PanelError` that names the measure `what` unless `least` (the value of guessing) < `value` < 1."""
    if not least < value < 1.0:
        raise PanelError(
            f"{what} must lie above {least:g} (guessing) and below 1 (perfect), and it is {value!r}; leave out an "
            "expert who is no better than guessing"
        )


# From what is elicited to an accuracy.
ELICITED: Mapping[str, Callable[[float], float]] = MappingProxyType(
    {"auc": accuracy_of_auc, "score": accuracy_of_score, "hit_rate": accuracy_of_hit_rate}
)
