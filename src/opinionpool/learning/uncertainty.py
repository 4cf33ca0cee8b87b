"""What outcomes leave open about a pool: the covariance of its intercept and weights, and intervals of its answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import number
from opinionpool.arrays import Array
from opinionpool.estimation.coefficients import covering
from opinionpool.learning.topics import TopicShift
from opinionpool.model.contrasts import Batch, blocks, read_batch
from opinionpool.model.panel import Panel
from opinionpool.model.pooling import fill_as_expected
from opinionpool.model.pooling_panel import PoolingPanel


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """What is not known of L* = L° + a + Σ w_i u_i, u_i the contrasts as far as they are believed."""

    covariance: Array  # (K - 1 + N, K - 1 + N); of the intercept a and the weights w, given the outcomes

    def weight_errors(self, experts: int) -> Array:
        """Standard errors of the weights, (N,)."""
        return np.sqrt(np.diag(self.covariance)[-experts:])

    def spread_over(self, source: npt.NDArray[np.intp]) -> Uncertainty:
        """The same for duplicates; `source` is the distinct expert behind each, -1 for uninformative ones."""
        copies = np.bincount(source[source >= 0], minlength=int(source.max(initial=-1)) + 1)
        d = len(self.covariance) - len(copies)
        share = np.zeros((d + len(source), d + len(copies)))
        share[:d, :d] = np.eye(d)
        for i in np.flatnonzero(source >= 0):
            share[d + i, d + source[i]] = 1.0 / copies[source[i]]
        return Uncertainty(share @ self.covariance @ share.T)

    def interval(
        self,
        panel: PoolingPanel,
        probabilities: npt.ArrayLike,
        prior: npt.ArrayLike = 0.5,
        base_rate: npt.ArrayLike | None = None,
        level: float = 0.9,
        shift: TopicShift | None = None,
    ) -> tuple[Array, Array]:
        """Interval for each pooled probability, as `Panel.pool`; of each class by itself when K > 2.

        `shift` is what topics do to these answers.

        Returns
        -------
        low, high : ndarray, shape (...), or (..., K) when K > 2
            Symmetric around the answer in log-odds of the class against the others, inside the floors.

        Raises
        ------
        ArgumentError
            For a level outside (0, 1).
        """
        level = number(level, "level", 0, 1, between=True)
        k = len(panel.classes)
        batch = read_batch(probabilities, prior, len(panel), k)
        p, error = self._errors(panel, batch, panel.pool(probabilities, prior, base_rate), shift)
        width = NormalDist().inv_cdf((1.0 + level) / 2.0)
        ends = np.empty((2, *p.shape))
        for rows in blocks(batch):
            with np.errstate(divide="ignore"):
                odds = np.log(p[rows]) - np.log(p[rows] @ (1.0 - np.eye(k)))
            floors = logodds.class_floors(panel.settings.pool_floor, batch.prior[rows], 1.0)
            most = 1.0 - floors @ (1.0 - np.eye(k))
            for end, sign in zip(ends, (-1.0, 1.0), strict=True):
                end[rows] = np.clip(logodds.expit(odds + sign * width * error[rows]), floors, most)
        return batch.shape_answers(ends[0]), batch.shape_answers(ends[1])

    def errors(
        self,
        panel: PoolingPanel,
        probabilities: npt.ArrayLike,
        prior: npt.ArrayLike,
        shift: TopicShift | None = None,
    ) -> Array:
        """Standard errors of the log-odds of each class against the others, (T, K); 0 where nobody answered."""
        batch = read_batch(probabilities, prior, len(panel), len(panel.classes))
        return self._errors(panel, batch, panel.pool(probabilities, prior), shift)[1]

    def at_least(self, other: Uncertainty) -> Uncertainty:
        """No combination of intercept and weights is less uncertain than here or there."""
        return replace(self, covariance=covering(self.covariance, other.covariance))

    def scaled(self, factor: float) -> Uncertainty:
        """The same with covariances that are so many times as large."""
        return replace(self, covariance=self.covariance * factor)

    def _errors(
        self, panel: PoolingPanel, batch: Batch, answers: npt.ArrayLike, shift: TopicShift | None = None
    ) -> tuple[Array, Array]:
        """Pooled probabilities of all classes, and the errors of their log-odds, (T, K) both."""
        k = batch.classes
        p = answer_rows(answers, k)
        p = p if shift is None else shift.moved(p, batch.prior, panel.settings.pool_floor)
        error = np.empty(p.shape)
        for rows in blocks(batch):
            others = p[rows] @ (1.0 - np.eye(k))
            covariance = self._covariance(panel, batch, rows)
            covariance = covariance if shift is None else shift.spread(rows, covariance)
            error[rows] = _class_errors(p[rows], others, covariance)
        return p, error

    def _covariance(self, panel: PoolingPanel, batch: Batch, rows: slice) -> Array:
        """Covariance of the pooled log-ratios of some events, (T, K - 1, K - 1); 0 where nobody answered."""
        assert isinstance(panel, Panel)
        d, full = batch.classes - 1, debiased(panel, batch, rows)
        answered = batch.answered_by(panel.informative, rows)
        intercept = np.broadcast_to(np.eye(d)[:, None, :], (d, len(full), d)).swapaxes(0, 1)
        gradient = np.where(answered[:, None, None], np.concatenate([intercept, full], axis=1), 0.0)
        return np.asarray(np.einsum("tia,ij,tjb->tab", gradient, self.covariance, gradient, optimize=True))


def debiased(panel: Panel, batch: Batch, rows: slice) -> Array:
    """Debiased contrasts of some events, as far as extremes are believed, those missing as expected, (T, N, K - 1)."""
    absent = logodds.no_options(batch.prior[rows][:, None, :])
    deviation = panel.settings.extremes.deviation(batch.contrasts(rows, panel.settings.floor), absent)
    return fill_as_expected(deviation, panel.parts)


def answer_rows(answers: npt.ArrayLike, k: int) -> Array:
    """Pooled probabilities of all classes, (T, K), whatever axes they have."""
    return logodds.all_classes(np.asarray(answers).reshape((-1,) if k == 2 else (-1, k)), k)


def _class_errors(p: Array, others: Array, covariance: Array) -> Array:
    """Standard errors of each class's log-odds against the others, (T, K), from those of the log-ratios."""
    # Entry c, j: how the log-odds of class c against the others go with the log-probability of class j.
    slope = np.where(np.eye(p.shape[1], dtype=bool), 1.0, -p[:, None, :] / others[:, :, None])[:, :, 1:]
    variance = np.einsum("tca,tab,tcb->tc", slope, covariance, slope, optimize=True)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))
