"""What levels of a scale say of the contrast behind them: an ordinal probit with an error that judges share.

Judge i reports level l where z_i = √ρ f + √(1 − ρ) e_i lies between the thresholds of l; f is common to the judges of
an event, and all are standard normal over events. What counts is location + spread · E[z_i | levels of all judges]:
many judges who agree are more certain than one, whatever the scale. Thresholds are those of a judge's own frequencies,
pulled to the panel's; location and spread are those of levels taken as the probabilities (l + ½)/M.
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
# Events that the panel's frequencies count as beside a judge's own, and each level beside the panel's.
PANEL, LEVEL = 10.0, 0.5
# Values of the common error.
NODES = np.linspace(-4.0, 4.0, 61)


@dataclass(frozen=True, eq=False)
class LatentLevels:
    """The thresholds of N experts.

    Attributes
    ----------
    experts : tuple of str
    sizes : ndarray of int, shape (N,)
        Levels of each scale; 0 for experts who give probabilities, or one level only, which count as they are.
    thresholds : ndarray, shape (N, M + 1)
        Standard normal quantiles between levels, from -inf to inf; inf beyond the expert's own levels.
    location, spread : float
        Mean and standard deviation of log-odds.
    """

    experts: tuple[str, ...]
    sizes: Index
    thresholds: Array
    location: float
    spread: float

    @classmethod
    def learned(cls, forecasts: Forecasts) -> LatentLevels | None:
        """Those that all forecasts show, resolved or not; None without levels of binary events."""
        from scipy.special import ndtri

        if not forecasts.scales or len(forecasts.classes) > 2:
            return None
        scales = [forecasts.scales.get(name) for name in forecasts.experts]
        sizes = np.array([0 if scale is None else len(scale.levels) for scale in scales], dtype=np.intp)
        n, most = len(sizes), int(sizes.max())
        level = np.clip((forecasts.probabilities * sizes[forecasts.expert_index]).astype(np.intp), 0, most - 1)
        counts = (
            np.bincount(forecasts.expert_index * most + level, minlength=n * most).reshape(n, most).astype(np.float64)
        )
        sizes[(counts > 0).sum(axis=1) < 2] = 0
        if not sizes.any():
            return None
        own = np.arange(most) < sizes[:, None]
        shares, thresholds = np.zeros((n, most)), np.full((n, most + 1), np.inf)
        for scale in dict.fromkeys(scale for scale, size in zip(scales, sizes.tolist(), strict=True) if size):
            same = np.array([each == scale for each in scales]) & (sizes > 0)
            panel = (counts[same].sum(axis=0) + LEVEL) * own[same][0]
            shares[same] = counts[same] * own[same] + PANEL * panel / panel.sum()
        shares[sizes > 0] /= shares[sizes > 0].sum(axis=1, keepdims=True)
        below = np.concatenate([np.zeros((n, 1)), np.cumsum(shares, axis=1)], axis=1)
        inside = np.arange(most + 1) < sizes[:, None]
        thresholds[inside] = ndtri(below[inside])
        odds = logit(np.clip((np.arange(most) + 0.5) / np.maximum(sizes, 1)[:, None], 0.0, 1.0 - 1e-9))
        mean = (shares * odds).sum(axis=1)
        variance = (shares * np.square(odds)).sum(axis=1) - mean**2
        judges = sizes > 0
        return cls(
            forecasts.experts, sizes, thresholds, float(mean[judges].mean()), float(np.sqrt(variance[judges].mean()))
        )

    def array(self, q: npt.ArrayLike) -> Array:
        """Probabilities (..., N) of all experts with those of levels as E[z_i | levels] has them; NaN where missing."""
        from scipy.special import ndtr

        given = np.asarray(q, dtype=np.float64)
        rows = given.reshape(-1, len(self.sizes))
        found = rows.copy()
        judges = np.flatnonzero(self.sizes)
        level = np.clip(np.nan_to_num(rows[:, judges] * self.sizes[judges]).astype(np.intp), 0, self.sizes[judges] - 1)
        there = ~np.isnan(rows[:, judges])
        shared, specific = np.sqrt(CORRELATION), np.sqrt(1.0 - CORRELATION)
        edge = (self.thresholds[judges, :, None] - shared * NODES) / specific
        density = np.exp(-0.5 * np.square(edge)) / np.sqrt(2.0 * np.pi)
        probability = np.maximum(np.diff(ndtr(edge), axis=1), 1e-12)
        own = -np.diff(density, axis=1) / probability
        log = np.tile(-0.5 * np.square(NODES), (len(rows), 1))
        for i, known in enumerate(there.T):
            log += np.where(known[:, None], np.log(probability[i])[level[:, i]], 0.0)
        weight = np.exp(log - log.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        common = shared * (weight @ NODES)
        for i, judge in enumerate(judges.tolist()):
            z = common + specific * np.einsum("tj,tj->t", weight, own[i][level[:, i]])
            found[there[:, i], judge] = expit(self.location + self.spread * z)[there[:, i]]
        return found.reshape(given.shape)

    def forecasts(self, forecasts: Forecasts) -> Forecasts:
        """Forecasts by some of the experts with levels so taken, and without scales."""
        experts = np.array([self.experts.index(name) for name in forecasts.experts], dtype=np.intp)
        values = np.empty_like(forecasts.probabilities)
        starts = forecasts.starts
        for rows, q, _ in forecasts.dense_blocks(self.experts):
            first, last, _ = rows.indices(len(forecasts.events))
            cells = slice(starts[first], starts[last])
            own = forecasts.event_index[cells] - first, experts[forecasts.expert_index[cells]]
            values[cells] = self.array(q)[own]
        return replace(forecasts, probabilities=values, scales={})
