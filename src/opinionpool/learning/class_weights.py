"""Weights by class, shrunken towards equal ones: the default's full model (model.md, sections 2.7 and 3).

Around a class-symmetric panel, what expert i says adds C_iᵀ A_i to the log-ratios, with A_i = w_i I + s B/n + B_i: its
weight in the symmetric panel; what weights have in common between classes, in proportion to the sum s of the weights
that is believed of any panel; and what is the expert's own (Σ B_i = 0). B and the B_i have coefficients that are normal
around 0 in coordinates in which no class is special. With an intercept they are the most probable ones given the
outcomes. Missing contrasts are taken as Σ expects them, which is what exact sub-panels imply. All of this is then one
Gaussian panel: Ω is Σ for any two classes, and the means follow from the weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.estimation.regression import intercept_root
from opinionpool.learning.constants import BIASES
from opinionpool.learning.posterior import Posterior
from opinionpool.learning.prior import believed_slope
from opinionpool.logodds import metric, uncentred, unwhitened, whitened
from opinionpool.model.contrasts import Batch
from opinionpool.model.full_panel import Discriminant, FullPanel
from opinionpool.model.panel import Panel, PoolingPanel


class Spreads(NamedTuple):
    """Prior sds of weights' differences between classes: of the sum of all (relative to the sum), and of each."""

    together: float
    deviation: float


@dataclass(frozen=True, eq=False)
class ClassWeights:
    """Coefficients by which each expert's weight may differ between classes from its one weight for all classes.

    There are P coefficients: (K − 1)² for all experts together, as many for each of the V distinct experts among those
    who say something if there are several, and an intercept of K − 1. Constant experts count as one.
    """

    panel: Panel

    @property
    def free(self) -> int:
        """Number of log-ratios, K - 1."""
        return len(self.panel.classes) - 1

    @cached_property
    def informative(self) -> Index:
        """Indices of the informative experts, (n,)."""
        return np.flatnonzero(self.panel.informative)

    @cached_property
    def bias(self) -> Array:
        """Biases of the informative experts as log-ratios, (n, K - 1)."""
        return uncentred(self.panel.bias[self.informative])

    @cached_property
    def source(self) -> Index:
        """For each informative expert, the number of its group of duplicates, (n,)."""
        source = self.panel.parts.source
        return np.unique(self.informative if source is None else source[self.informative], return_inverse=True)[1]

    @cached_property
    def first(self) -> Index:
        """Index among the informative experts of the first of each group of duplicates, (V,)."""
        return np.unique(self.source, return_index=True)[1]

    @cached_property
    def shapes(self) -> Array:
        """Basis of matrices on log-ratios, ((K - 1)², K - 1, K - 1); the first is a multiple of the identity."""
        d = self.free
        turn = whitened(np.eye(d))
        start = np.concatenate([np.eye(d).reshape(1, -1), np.eye(d * d)])
        standard = np.linalg.qr(start.T)[0].T.reshape(-1, d, d)
        return np.asarray(turn @ standard @ np.linalg.inv(turn))

    @property
    def size(self) -> int:
        """Number of coefficients, P."""
        distinct, shapes = len(self.first), len(self.shapes)
        return shapes * (1 + distinct * (distinct > 1)) + self.free

    def pooled(self, contrasts: Array) -> Array:
        """Log-ratios of the symmetric panel beyond the prior, (T, K - 1), from robust contrasts (T, N, K - 1)."""
        own = contrasts[:, self.informative]
        weights = self.panel.weights_for(~np.isnan(contrasts[..., 0]))[:, self.informative]
        deviation = np.where(np.isnan(own), 0.0, own - self.bias)
        return np.asarray(np.einsum("tn,tnd->td", weights, deviation))

    def feature_roots(self, spreads: Spreads) -> Array:
        """Prior sds of the coefficients of `features`, (F (K - 1),), equal for the K - 1 coefficients of a feature."""
        d, own = self.free, (len(self.first) - 1) * self.free
        return np.repeat([1.0, spreads.together, spreads.deviation], [d, d * d, own * d])

    def features(self, contrasts: Array) -> Array:
        """Regressors (T, F) in which the answers' log-ratios are linear; 0 for events that nobody answered.

        Coefficients are a matrix (F, K - 1), times `feature_turn`: an intercept, what the experts say on average, and
        how they differ in V - 1 orthonormal directions.
        """
        own = contrasts[:, self.informative]
        full = self.panel.parts.subset(self.informative).fill(own - self.bias)[:, self.first]
        answered = np.asarray(~np.isnan(own[..., 0]).all(axis=1))
        (t, n, d), moved = full.shape, whitened(full)
        features = np.empty((t, 1 + n * d))
        features[:, 0] = BIASES[0]
        features[:, 1 : d + 1] = believed_slope(n) * moved.mean(axis=1)
        np.matmul(self._differences.T, moved, out=features[:, d + 1 :].reshape(t, n - 1, d))
        return features if answered.all() else features * answered[:, None]

    @cached_property
    def feature_turn(self) -> Array:
        """Map from whitened coordinates to log-ratios, (K - 1, K - 1)."""
        return unwhitened(np.eye(self.free))

    @cached_property
    def _differences(self) -> Array:
        """Orthonormal basis of differences between the distinct experts (vectors with a sum of 0), (V, V - 1)."""
        return np.linalg.qr(np.eye(len(self.first))[:, 1:] - 1.0 / len(self.first))[0]

    @cached_property
    def from_features(self) -> Array:
        """Map from coefficients of features to coefficients, (P, F (K - 1))."""
        d, n = self.free, len(self.first)
        turn, p = whitened(np.eye(d)), d * d
        even = (self.feature_turn @ self.shapes @ turn).reshape(p, p)
        matrix = np.zeros((self.size, (1 + n * d) * d))
        matrix[:p, d : d + p] = even
        matrix[self.size - d :, :d] = np.linalg.solve(intercept_root(1.0, d), self.feature_turn.T)
        if n > 1:
            matrix[p : p + n * p, p + d :] = np.kron(self._differences, even)
        return matrix

    def matrices(self, coefficients: Array) -> Array:
        """Weight matrices A_i of the distinct experts, from contrasts to log-ratios, (V, K - 1, K - 1)."""
        p, n, d = len(self.shapes), len(self.first), self.free
        weights = np.bincount(self.source, weights=self.panel.weights[self.informative])
        common = believed_slope(n) / n * np.tensordot(coefficients[:p], self.shapes, 1)
        found = weights[:, None, None] * np.eye(d) + common
        if n > 1:
            own = np.tensordot(coefficients[p : p + n * p].reshape(n, p), self.shapes, 1)
            found = found + own - own.mean(axis=0)
        return np.asarray(found)

    def full_panel(self, coefficients: Array) -> FullPanel:
        """Full panel with these coefficients."""
        k, d, n = self.free + 1, self.free, len(self.first)
        sigma = self.panel.subset(self.informative[self.first].tolist()).covariance
        covariance = np.einsum("nm,ab->namb", sigma, np.linalg.inv(metric(k)))
        weights = self.matrices(coefficients).reshape(n * d, d)
        ratios = covariance.reshape(n * d, n * d) @ weights
        means = np.concatenate([np.zeros((1, n * d)), ratios.T])
        parts = Discriminant((means - means.mean(axis=0)).reshape(k, n, d), covariance)
        # Contrasts are measured from where they make up for the constant and leave the intercept.
        intercept = intercept_root(BIASES[0], d) @ coefficients[len(coefficients) - d :]
        owed = intercept + uncentred(parts.rule(np.arange(n)).constant.sum(axis=0))
        shift = ratios @ np.linalg.pinv(weights.T @ ratios, hermitian=True) @ owed
        return self._among_all(parts.subset(self.source), self.bias - shift.reshape(n, d)[self.source])

    def _among_all(self, parts: Discriminant, bias: Array) -> FullPanel:
        """Full panel of all N experts; means and covariance of the uninformative experts are 0."""
        n, d, kept = len(self.panel), self.free, self.informative
        means, covariance = np.zeros((d + 1, n, d)), np.zeros((n, d, n, d))
        means[:, kept] = parts.means
        covariance[kept[:, None], :, kept] = parts.covariance.transpose(0, 2, 1, 3)
        biases = uncentred(self.panel.bias)
        biases[kept] = bias
        names, classes, settings = self.panel.names, self.panel.classes, self.panel.settings
        return FullPanel.from_parts(Discriminant(means, covariance), biases, names, classes, settings)


@dataclass(frozen=True, eq=False, repr=False)
class ClassPosterior(Posterior):
    """Posterior of the symmetric panel and of differences between classes, taken to be independent.

    Attributes
    ----------
    weights : ClassWeights
    differences : ndarray, shape (P, P)
        Covariance of its coefficients.
    """

    weights: ClassWeights = field(kw_only=True)
    differences: Array = field(kw_only=True)

    def _symmetric(self, panel: PoolingPanel) -> Panel:
        assert isinstance(panel, FullPanel)
        return self.weights.panel

    def _differences(self, panel: PoolingPanel, batch: Batch, rows: slice) -> Array:
        features = self.weights.features(panel.settings.contrasts(batch.some(rows)))
        (t, f), d, turn = features.shape, self.weights.free, self.weights.feature_turn
        half = (features @ self._by_features).reshape(t, d * d, f)
        return np.asarray(turn.T @ np.matmul(half, features[:, :, None]).reshape(t, d, d) @ turn)

    @cached_property
    def _by_features(self) -> Array:
        """Covariance of the coefficients of F features x K - 1 log-ratios, arranged as (F, (K - 1)² F)."""
        d, turn = self.weights.free, self.weights.from_features
        found = (turn.T @ self.differences @ turn).reshape(len(turn.T) // d, d, -1, d)
        return np.ascontiguousarray(found.transpose(0, 1, 3, 2)).reshape(len(found), -1)
