"""Mixture of the log pool, the simple average and one expert to follow, whoever that is.

P(Y | forecasts) = π₀ P_pool + π₁ Σ_i c_i q_i / Σ_i c_i + π₂ Σ_i e_i q_i, over the experts present; a missing forecast
is replaced by the average. Duplicates have c_i = 1 / (number of duplicates), constant experts c_i = 0. The shares π are
proportional to the prior ones, `constants.MEMBERS`, times the marginal likelihood of the outcomes under each member;
e_i is proportional to c_i times the likelihood of expert i by itself (model.md, 10).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from opinionpool import logodds
from opinionpool.arrays import Array
from opinionpool.estimation.newton import posterior_probabilities
from opinionpool.learning.constants import MEMBER_SLOPE_SD, MEMBERS, SLOPE_SD
from opinionpool.learning.duplicates import Duplicates
from opinionpool.learning.prior import OPEN, Believed
from opinionpool.model.contrasts import Batch

# What is mixed.
NAMES = ("log pool", "simple average", "one expert")
# Standard deviation, in log-odds, by which the simple average, which has no parameters, is smoothed.
AVERAGE_SD = 0.05
# Values of slopes of the average and of experts to follow, each the centre of a normal with the relative standard
# deviation `SLOPE_SD`, and their probabilities (Gauss-Hermite).
SLOPES = np.exp(np.array([-1.0, 0.0, 1.0]) * np.sqrt(3.0 * (MEMBER_SLOPE_SD**2 - SLOPE_SD**2)))
SLOPE_PROBABILITIES = np.array([1.0, 4.0, 1.0]) / 6.0


@dataclass(frozen=True, eq=False)
class Members:
    """Mixture of three answers: the log pool's, the simple average's, and that of one expert to follow.

    Examples
    --------
    >>> import numpy as np
    >>> from opinionpool.learning.beliefs import Beliefs
    >>> found = Members.prior(Believed.of(Beliefs(), ("ann", "bob")))
    >>> found.learned(np.log([0.5, 0.6, 0.4]), np.log(0.8)).shares.round(2)
    array([0.66, 0.23, 0.11])
    """

    shares: Array  # (3,); posterior probabilities of the log pool, the simple average, and one expert to follow
    before: Array  # (3,); prior probabilities of the same
    count: Array  # (N,); how much each expert counts in the average
    follow: Array  # (N,); posterior probability of each expert of being the one to follow

    @classmethod
    def prior(cls, believed: Believed) -> Members | None:
        """Return the mixture before any outcome, without duplicates; None for one expert, or if beliefs were given."""
        n, shares = len(believed), np.array(MEMBERS)
        return cls(shares, shares, np.ones(n), np.full(n, 1.0 / n)) if n > 1 and believed.unassessed else None

    def learned(self, log_likelihoods: Array, evidence: float) -> Members:
        """Mixture after outcomes; `evidence` is the log pool's log-likelihood; the others' are (1 + N,)."""
        average, by_expert = log_likelihoods[0], log_likelihoods[1:]
        score = [evidence, average, np.logaddexp.reduce(by_expert) - np.log(len(by_expert))]
        follow = posterior_probabilities(by_expert, 1.0)
        return replace(self, shares=posterior_probabilities(score, self.before), follow=follow)

    @property
    def decided(self) -> bool:
        """True if one of the three answers has a posterior probability of nearly 1."""
        return bool(self.shares.max() > 1.0 - OPEN)

    def spread_over(self, duplicates: Duplicates) -> Members:
        """Return the mixture for all experts, from a mixture in which each group of `duplicates` is one expert."""
        count = duplicates.counts
        follow = np.where(duplicates.source >= 0, count * self.follow[np.maximum(duplicates.source, 0)], 0.0)
        return replace(self, count=count, follow=follow)

    def mixed(self, p: Array, batch: Batch) -> Array:
        """Return the weighted mean of the log pool's answers `p`, average forecasts and an expert's forecasts, (T, K).

        The weights are `shares`, and `follow` has the probability of each expert to be the one used. `batch` holds the
        forecasts for T events. For an event without forecasts, the answer is the log pool's.
        """
        found = p.copy()
        for rows in batch.blocks():
            average, follow = self._answers(batch.some(rows))
            both = self.shares[0] * p[rows] + self.shares[1] * average + self.shares[2] * follow
            found[rows] = np.where(np.isnan(average), p[rows], both)
        return found

    def _answers(self, batch: Batch) -> tuple[Array, Array]:
        """Answers of the average and of the expert to follow, (T, K) each; NaN where nobody answered."""
        floors, binary = logodds.class_floors(batch.base.floor, batch.prior, 100.0), batch.classes == 2
        if binary:
            q = np.clip(batch.q, floors[:, 1:], 1.0 - floors[:, :1])[..., None]
        else:
            q = logodds.raise_to_floors(batch.q, floors[:, None, :])
        known = ~np.isnan(q[..., 0])
        q = np.where(known[..., None], q, 0.0)
        total = known @ self.count
        average = np.full((len(q), q.shape[2]), np.nan)
        np.divide(_over(self.count, q), total[:, None], out=average, where=total[:, None] > 0)
        follow = _over(self.follow, q) + (~known @ self.follow)[:, None] * average
        if binary:
            return logodds.all_classes(average[:, 0], 2), logodds.all_classes(follow[:, 0], 2)
        return average, follow

    def normals(self, batch: Batch) -> tuple[Array, Array, Array]:
        """Return the mixture as normals of log-odds, for intervals: shares (1 + M,), means and sds (M, T, K).

        The first share is the log pool's, the other M are those of normals about the average or about the expert to
        follow, whose log-odds beyond the prior are uncertain by a log-normal factor. Where nobody answered, normals are
        at the prior, or base rate.
        """
        mean, sd, from_prior = np.empty((3, 2, len(batch.q), batch.classes))
        for rows in batch.blocks():
            some = batch.some(rows)
            average = self._answers(some)[0]
            answered = ~np.isnan(average[:, 0])
            common = logodds.prior_log_ratios(np.where(answered[:, None], average, some.prior))
            each = some.log_ratios()
            each = np.where(np.isnan(each), common[:, None], each) + some.shift[:, None]
            odds = _class_log_odds(each)
            mean[0, rows], sd[0, rows] = _class_log_odds(common + some.shift), AVERAGE_SD * answered[:, None]
            mean[1, rows] = _over(self.follow, odds)
            sd[1, rows] = np.sqrt(_over(self.follow, (odds - mean[1, rows][:, None]) ** 2))
            start = _class_log_odds(logodds.prior_log_ratios(some.prior) + some.shift)
            from_prior[:, rows] = mean[:, rows] - start
        own = np.repeat(np.arange(2), len(SLOPES))
        moved = np.tile(SLOPES, 2)[:, None, None] * from_prior[own]
        share = np.append(self.shares[0], self.shares[1:][own] * np.tile(SLOPE_PROBABILITIES, 2))
        return share, mean[own] - from_prior[own] + moved, np.hypot(sd[own], SLOPE_SD * moved)


def _over(shares: Array, values: Array) -> Array:
    """Return sums over experts, (T, K), of `shares` (N,) times `values` (T, N, K)."""
    return np.asarray(np.swapaxes(values, 1, 2) @ shares)


def _class_log_odds(ratios: Array) -> Array:
    """Log-odds of each class against all others, (..., K), from log-ratios (..., K - 1)."""
    if ratios.shape[-1] == 1:
        return np.concatenate([-ratios, ratios], axis=-1)
    p = logodds.softmax(ratios)
    return np.asarray(np.log(np.maximum(p, logodds.TINY)) - np.log(p @ (1.0 - np.eye(p.shape[-1]))))
