"""What votes say: a scale of two levels does not tell how certain a judge is, and the votes of others do.

Judge i votes for an event where z_i = √ρ f + √(1 − ρ) e_i exceeds its threshold; f is common to the judges of it,
and all are standard normal over events. A vote counts as the mean of two log-odds: those of ¼ or ¾, and
location + spread · E[z_i | all votes]. Thresholds are those of a judge's own frequencies, pulled to the panel's;
location and spread are those of the log-odds of ¼ and ¾ over the votes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.forecasts import Forecasts
from opinionpool.logodds import expit, logit

# The correlation of judges that is believed of any panel.
CORRELATION = 0.6
# Votes that the panel's frequency counts as beside a judge's own.
PANEL = 10.0
# Values of the common error.
NODES = np.linspace(-4.0, 4.0, 61)


@dataclass(frozen=True, eq=False)
class LatentVotes:
    """The thresholds of N experts.

    Attributes
    ----------
    experts : tuple of str
    thresholds : ndarray, shape (N,)
        Standard normal quantiles; NaN for experts who do not vote, or always alike, and count as they are.
    location, spread : float
        Mean and standard deviation of log-odds.
    """

    experts: tuple[str, ...]
    thresholds: Array
    location: float
    spread: float

    @classmethod
    def learned(cls, forecasts: Forecasts) -> LatentVotes | None:
        """Those that all forecasts show, resolved or not; None without votes on binary events."""
        if len(forecasts.classes) > 2 or not forecasts.scales:
            return None
        from scipy.special import ndtri

        scales = [forecasts.scales.get(name) for name in forecasts.experts]
        voters = np.array([scale is not None and len(scale.levels) == 2 for scale in scales])
        positive = np.bincount(forecasts.expert_index, forecasts.probabilities > 0.5, len(voters))
        voters &= (positive > 0) & (positive < forecasts.counts)
        if not voters.any():
            return None
        panel = (positive[voters].sum() + 0.5) / (forecasts.counts[voters].sum() + 1.0)
        share = (positive + PANEL * panel) / (forecasts.counts + PANEL)
        weight = float(logit(0.75))
        location = weight * float((2.0 * share[voters] - 1.0).mean())
        spread = 2.0 * weight * float(np.sqrt((share * (1.0 - share))[voters].mean()))
        return cls(forecasts.experts, np.where(voters, ndtri(1.0 - share), np.nan), location, spread)

    def array(self, q: npt.ArrayLike) -> Array:
        """Probabilities (..., N) of all experts, with those that votes count as; NaN where missing."""
        from scipy.special import ndtr

        given = np.asarray(q, dtype=np.float64)
        found = given.reshape(-1, len(self.thresholds)).copy()
        voters: Index = np.flatnonzero(~np.isnan(self.thresholds))
        votes = found[:, voters]
        present, positive = ~np.isnan(votes), (votes > 0.5).astype(np.intp)
        shared, own = np.sqrt(CORRELATION), np.sqrt(1.0 - CORRELATION)
        edge = (self.thresholds[voters, None] - shared * NODES) / own
        # Of votes against and for the event, (n, 2, J): how probable they are, and the mean of e_i.
        probability = np.maximum(np.stack([ndtr(edge), ndtr(-edge)], axis=1), 1e-12)
        density = np.exp(-0.5 * np.square(edge)) / np.sqrt(2.0 * np.pi)
        mean = np.stack([-density, density], axis=1) / probability
        log = np.tile(-0.5 * np.square(NODES), (len(found), 1))
        for i, voted in enumerate(present.T):
            log += np.where(voted[:, None], np.log(probability[i])[positive[:, i]], 0.0)
        weight = np.exp(log - log.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        common = shared * (weight @ NODES)
        for i, voter in enumerate(voters.tolist()):
            z = common + own * (weight * mean[i][positive[:, i]]).sum(axis=1)
            odds = (logit(np.where(positive[:, i] > 0, 0.75, 0.25)) + self.location + self.spread * z) / 2.0
            found[:, voter] = np.where(present[:, i], expit(odds), np.nan)
        return found.reshape(given.shape)

    def forecasts(self, forecasts: Forecasts) -> Forecasts:
        """Forecasts by some of the experts with what votes count as, and without scales."""
        experts = np.array([self.experts.index(name) for name in forecasts.experts], dtype=np.intp)
        values = np.empty_like(forecasts.probabilities)
        starts = forecasts.starts
        for rows, q, _ in forecasts.dense_blocks(self.experts):
            first, last, _ = rows.indices(len(forecasts.events))
            cells = slice(starts[first], starts[last])
            place = forecasts.event_index[cells] - first, experts[forecasts.expert_index[cells]]
            values[cells] = self.array(q)[place]
        return replace(forecasts, probabilities=values, scales={})
