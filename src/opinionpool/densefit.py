"""A panel from an array of complete binary forecasts, in memory that does not grow with the number of events."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opinionpool.blockwise import Floats
from opinionpool.dense import BinaryOutcomes, dense_moments
from opinionpool.densesample import learn_sample
from opinionpool.evidence import FEW_EXPERTS, MomentEvidence
from opinionpool.learn import LearnedPanel, learn_from
from opinionpool.logodds import FLOOR, POOL_FLOOR, class_probabilities
from opinionpool.names import numbered
from opinionpool.priors import laplace_prior

__all__ = ["learn_dense"]


def learn_dense(
    q: npt.NDArray[np.generic],
    y: npt.NDArray[np.generic],
    *,
    prior: npt.ArrayLike | None = None,
    structure: str = "auto",
    beliefs: object = "default",
    floor: float = FLOOR,
    pool_floor: float = POOL_FLOOR,
) -> LearnedPanel | None:
    """What `opinionpool.learn.learn` learns, without a copy of the forecasts; None where that needs one.

    It takes what moments alone decide, a structure, or no beliefs, where every forecast is there; and the default pool
    of so many events that it learns from a sample. Outcomes are 0 and 1, or NaN where not resolved, and there is one
    prior for all events.

    Parameters
    ----------
    q : ndarray, shape (T, N)
        float64, or float32, which is worked on as it is.
    y : ndarray, shape (T,)
    prior, structure, beliefs, floor, pool_floor
        As for `learn`.

    Examples
    --------
    >>> q, y = np.array([[0.2], [0.3], [0.6], [0.4], [0.7], [0.8]]), np.array([0, 0, 0, 1, 1, 1])
    >>> learn_dense(q, y, prior=0.5, beliefs=None).weights.round(5)
    array([1.44221])
    """
    by_moments, by_sample = beliefs is None or (structure != "auto" and beliefs == "default"), structure == "auto"
    if not (by_moments or by_sample) or (prior is not None and np.ndim(prior) > 0) or not _fits(q, y):
        return None
    outcomes = BinaryOutcomes.of(y)
    if outcomes is None:
        return None
    shared = laplace_prior(outcomes.counts[:2]) if prior is None else class_probabilities(prior)
    classes = np.array([0, 1], dtype=y.dtype).tolist()
    if not by_moments:
        options = {"beliefs": beliefs, "floor": floor, "pool_floor": pool_floor}
        return learn_sample(q, outcomes, shared, classes, options)
    experts = numbered(q.shape[1])
    moments = dense_moments(q, outcomes, shared, floor, experts)
    if moments is None:
        return None
    return learn_from(
        MomentEvidence(moments), shared, experts, classes, structure=structure, floor=floor, pool_floor=pool_floor
    )


def _fits(q: Floats, y: Floats) -> bool:
    """Whether these are forecasts of many events and their outcomes."""
    if q.ndim != 2 or q.dtype not in (np.float64, np.float32) or y.shape != q.shape[:1]:
        return False
    return 0 < q.shape[1] <= max(len(q), FEW_EXPERTS) and len(q) > 0
