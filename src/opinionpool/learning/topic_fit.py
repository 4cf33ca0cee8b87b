"""What outcomes say of topics, beyond what they say of all events.

The log-ratios of an event on topic g are those of the common answer L*, plus a_g + s_g (L* − L°). Intercepts and slopes
are normal about 0 with spreads that are the same for all topics; their most probable values are averaged over a few
levels of these spreads, by how well each predicts the outcomes (evidence). One level is that topics do not differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.estimation.likelihood import Design
from opinionpool.estimation.newton import Prior, posterior_modes, posterior_probabilities
from opinionpool.estimation.regression import intercept_root
from opinionpool.learning.constants import TOPIC_PROBABILITIES, TOPICS
from opinionpool.learning.topics import TopicEffects

Labels: TypeAlias = npt.NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class TopicEvents:
    """Resolved events with their topics, common answers and outcomes.

    Attributes
    ----------
    topics : ndarray of str, shape (T,)
        "" where an event has none.
    offset : ndarray, shape (T, K - 1)
        Log-ratios of the common answers.
    beyond : ndarray, shape (T, K - 1)
        L* − L°: what slopes multiply.
    outcomes : ndarray of int, shape (T,)
    weight : ndarray, shape (T,)
        Frequencies.
    """

    topics: Labels
    offset: Array
    beyond: Array
    outcomes: Index
    weight: Array


def learn_topics(events: TopicEvents) -> TopicEffects:
    """For each topic, the intercept and slope that correct the pooled log-odds of its events.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> topics, nothing = np.repeat(["fair", "high"], 200), np.zeros((400, 1))
    >>> y = (rng.random(400) < np.repeat([0.5, 0.75], 200)).astype(int)
    >>> found = learn_topics(TopicEvents(topics, nothing, nothing, y, np.ones(400)))
    >>> (found.intercept.round(1) + 0.0).ravel().tolist(), bool(found.levels[0] < 0.01)
    ([0.0, 1.2], True)
    """
    labels, d = np.asarray(events.topics, dtype=np.str_), events.offset.shape[1]
    root = np.zeros((len(TOPICS), d + 1, d + 1))
    for own, (intercept, slope) in zip(root, TOPICS, strict=True):
        own[:d, :d], own[d, d] = intercept_root(intercept, d), slope
    prior = Prior(np.zeros((len(root), d + 1)), root)
    names = [name for name in np.unique(labels).tolist() if name]
    modes, weight = [], []
    for name in names:
        rows = np.flatnonzero(labels == name)
        seen, offset = events.beyond[rows][:, None], events.offset[rows]
        design = Design.of(seen, events.outcomes[rows], offset, events.weight[rows], intercept=True)
        modes.append(posterior_modes(design, prior))
        weight.append(float(events.weight[rows].sum()))
    scores = np.array([[mode.log_marginal_likelihood for mode in each] for each in modes])
    levels = posterior_probabilities(scores.sum(axis=0), TOPIC_PROBABILITIES)
    each = np.array([[own @ mode.coefficients for own, mode in zip(root, some, strict=True)] for some in modes])
    effect = np.einsum("l,glp->gp", levels, each)
    away = each - effect[:, None]
    within = np.array([[own @ mode.covariance @ own.T for own, mode in zip(root, some, strict=True)] for some in modes])
    return TopicEffects(
        topics=tuple(names),
        events=np.array(weight),
        intercept=effect[:, :d],
        slope=effect[:, d],
        covariance=np.einsum("l,glpq->gpq", levels, within + away[..., :, None] * away[..., None, :]),
        new=np.einsum("l,lpr,lqr->pq", levels, root, root),
        levels=levels,
    )
