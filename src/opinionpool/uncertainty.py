"""How sure a learned pool is: what the outcomes left open about its intercept and weights, and so about its answers."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.errors import ArgumentError
from opinionpool.filled import fill_as_expected
from opinionpool.logodds import Array
from opinionpool.panel import Panel
from opinionpool.stated import base_rate_shift, blocks, read_stated


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """What is not known of L* = L° + a + Σ w_i u_i, u_i the contrasts as far as they are believed.

    Attributes
    ----------
    covariance : ndarray, shape (K - 1 + N, K - 1 + N)
        Of the intercept a and the weights w, given the outcomes.
    """

    covariance: Array

    def weight_errors(self, experts: int) -> Array:
        """Standard errors of the weights, (N,)."""
        return np.sqrt(np.diag(self.covariance)[-experts:])

    def spread_over(self, source: npt.NDArray[np.intp]) -> Uncertainty:
        """The same for experts who share voices; `source` is the voice of each, -1 for those who say nothing."""
        voices = np.bincount(source[source >= 0], minlength=int(source.max(initial=-1)) + 1)
        d = len(self.covariance) - len(voices)
        share = np.zeros((d + len(source), d + len(voices)))
        share[:d, :d] = np.eye(d)
        for i in np.flatnonzero(source >= 0):
            share[d + i, d + source[i]] = 1.0 / voices[source[i]]
        return Uncertainty(share @ self.covariance @ share.T)

    def interval(
        self,
        panel: Panel,
        probabilities: npt.ArrayLike,
        prior: npt.ArrayLike = 0.5,
        base_rate: npt.ArrayLike | None = None,
        level: float = 0.9,
    ) -> tuple[Array, Array]:
        """Interval for the pooled probability of binary events, as `Panel.pool`.

        Returns
        -------
        low, high : ndarray, shape (...)
            Symmetric around the answer in log-odds, inside the floors.

        Raises
        ------
        ArgumentError
            For more than two classes, or a level outside (0, 1).
        """
        if len(panel.classes) > 2:
            raise ArgumentError(f"intervals are for two classes, and there are {len(panel.classes)}")
        if not 0 < level < 1:
            raise ArgumentError(f"a level must lie strictly between 0 and 1, and it is {level!r}")
        stated = read_stated(probabilities, prior, len(panel), 2)
        middle = logodds.logit(np.asarray(panel.pool(stated.q, stated.prior[:, 1])).reshape(-1))
        width = NormalDist().inv_cdf((1.0 + level) / 2.0)
        shift = base_rate_shift(base_rate, stated)
        ends = np.empty((2, len(middle), 2))
        for rows in blocks(stated):
            said = logodds.log_ratios(stated.q[rows], stated.prior[rows][:, None, :], panel.settings.floor)
            gradient = _gradient(panel, said - stated.reference[rows][:, None, :])
            error = np.sqrt(np.maximum(np.einsum("ti,ij,tj->t", gradient, self.covariance, gradient), 0.0))
            for end, sign in zip(ends, (-1.0, 1.0), strict=True):
                moved = middle[rows, None] + sign * width * error[:, None] + shift[rows]
                end[rows] = logodds.pooled_probabilities(moved, stated.prior[rows], panel.settings.pool_floor)
        return stated.shape_answers(ends[0]), stated.shape_answers(ends[1])


def _gradient(panel: Panel, contrasts: Array) -> Array:
    """How the pooled log-odds change with intercept and weights, (T, 1 + N); 0 where nobody answered."""
    apart = panel.settings.extremes.apart(contrasts)
    answered = np.asarray(~np.isnan(apart[..., 0]).all(axis=1))
    full = np.where(answered[:, None], fill_as_expected(apart, panel.parts)[..., 0], 0.0)
    return np.concatenate([answered[:, None].astype(np.float64), full], axis=1)
