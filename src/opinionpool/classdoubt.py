"""How sure a pool is whose weights differ between classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opinionpool import logodds
from opinionpool.classweights import ClassWeights
from opinionpool.logodds import Array
from opinionpool.poolingpanel import PoolingPanel
from opinionpool.stated import Stated
from opinionpool.uncertainty import Uncertainty


@dataclass(frozen=True, eq=False)
class ClassDoubt(Uncertainty):
    """What is open about the symmetric panel, and about differences between classes, taken to be independent.

    Attributes
    ----------
    covariance : ndarray, shape (K - 1 + N, K - 1 + N)
    weights : ClassWeights
    differences : ndarray, shape (P, P)
        Covariance of its coefficients.
    """

    weights: ClassWeights
    differences: Array

    def _covariance(self, panel: PoolingPanel, stated: Stated, rows: slice) -> Array:
        prior, settings = stated.prior[rows][:, None, :], panel.settings
        said = logodds.log_ratios(stated.q[rows], prior, settings.floor) - stated.reference[rows][:, None, :]
        design = self.weights.design(settings.extremes.believed(said))
        own = np.einsum("tia,ij,tjb->tab", design, self.differences, design, optimize=True)
        return np.asarray(super()._covariance(self.weights.panel, stated, rows) + own)
