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

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.learning.constants import BIASES
from opinionpool.learning.posterior import Posterior
from opinionpool.learning.prior import believed_slope
from opinionpool.logodds import metric, uncentred, unwhitened, whitened
from opinionpool.model.contrasts import Batch
from opinionpool.model.full_panel import Discriminant, FullPanel
from opinionpool.model.panel import Panel, PoolingPanel


@dataclass(frozen=True, eq=False)
class ClassWeights:
    """Coefficients by which each expert's weight may differ between classes from its one weight for all classes.

    There are P coefficients: K - 1 for each of the F `features`, which are made from the contrasts (log-ratios less the
    prior's) of V experts: the informative ones without duplicates.
    """

    panel: Panel  # with one weight for each expert

    @property
    def free(self) -> int:
        """Number of log-ratios, K - 1."""
        return len(self.panel.classes) - 1

    @cached_property
    def informative(self) -> Index:
        """Positions of the n informative experts, (n,)."""
        return np.flatnonzero(self.panel.informative)

    @cached_property
    def bias(self) -> Array:
        """Biases of the informative experts as log-ratios, (n, K - 1)."""
        return uncentred(self.panel.bias[self.informative])

    @cached_property
    def source(self) -> Index:
        """Group, 0 .. V - 1, of experts with equal forecasts that each informative expert belongs to, (n,)."""
        source = self.panel.parts.source
        return np.unique(self.informative if source is None else source[self.informative], return_inverse=True)[1]

    @cached_property
    def first(self) -> Index:
        """Position, among the informative experts, of the first expert of each group of duplicates, (V,)."""
        return np.unique(self.source, return_index=True)[1]

    @property
    def size(self) -> int:
        """Number of coefficients, P = F (K - 1)."""
        return (1 + len(self.first) * self.free) * self.free

    def pooled(self, contrasts: Array) -> Array:
        """Return what weights that are equal for all classes add to the prior's log-ratios, (T, K - 1)."""
        own = contrasts[:, self.informative]
        weights = self.panel.weights_for(~np.isnan(contrasts[..., 0]))[:, self.informative]
        deviation = np.where(np.isnan(own), 0.0, own - self.bias)
        return np.asarray(np.einsum("tn,tnd->td", weights, deviation))

    def roots(self, together: float, deviation: float) -> Array:
        """Prior standard deviations, (P,): 1 for the intercept, `together` for mean weights, else `deviation`."""
        d, own = self.free, (len(self.first) - 1) * self.free
        return np.repeat([1.0, together, deviation], [d, d * d, own * d])

    def features(self, contrasts: Array) -> Array:
        """Regressors (T, F) in which the answers' log-ratios are linear; 0 for events that nobody answered.

        They are an intercept, what the experts forecast on average, and how they differ in V - 1 orthonormal
        directions. Coefficients are a matrix (F, K - 1), times `turn`.
        """
        own = contrasts[:, self.informative]
        full = self.panel.parts.subset(self.informative).fill(own - self.bias)[:, self.first]
        answered = np.asarray(~np.isnan(own[..., 0]).all(axis=1))
        (t, n, d), moved = full.shape, whitened(full)
        features = np.empty((t, 1 + n * d))
        features[:, 0] = BIASES[0]
        features[:, 1 : d + 1] = believed_slope(n) * moved.mean(axis=1)
        np.matmul(self.between.T, moved, out=features[:, d + 1 :].reshape(t, n - 1, d))
        return features if answered.all() else features * answered[:, None]

    @cached_property
    def turn(self) -> Array:
        """Matrix (K - 1, K - 1) from orthonormal coordinates, in which all classes are alike, to log-ratios."""
        return unwhitened(np.eye(self.free))

    @cached_property
    def between(self) -> Array:
        """Orthonormal basis of differences between the V distinct (not duplicate) experts, (V, V - 1)."""
        return np.linalg.qr(np.eye(len(self.first))[:, 1:] - 1.0 / len(self.first))[0]

    def matrices(self, coefficients: Array) -> Array:
        """Matrices A_i (V, K - 1, K - 1) by which each of V experts' forecasts adds to the answer's log-ratios."""
        n, d = len(self.first), self.free
        blocks = coefficients[d:].reshape(n, d, d)
        beyond = believed_slope(n) / n * blocks[0] + np.tensordot(self.between, blocks[1:], 1)
        weights = np.bincount(self.source, weights=self.panel.weights[self.informative])
        return np.asarray(weights[:, None, None] * np.eye(d) + whitened(np.eye(d)) @ beyond @ self.turn)

    def full_panel(self, coefficients: Array) -> FullPanel:
        """Return the panel whose weights differ between classes by the `coefficients` (P,)."""
        k, d, n = self.free + 1, self.free, len(self.first)
        sigma = self.panel.subset(self.informative[self.first].tolist()).covariance
        covariance = np.einsum("nm,ab->namb", sigma, np.linalg.inv(metric(k)))
        weights = self.matrices(coefficients).reshape(n * d, d)
        ratios = covariance.reshape(n * d, n * d) @ weights
        means = np.concatenate([np.zeros((1, n * d)), ratios.T])
        parts = Discriminant((means - means.mean(axis=0)).reshape(k, n, d), covariance)
        # Contrasts are measured from where they make up for the constant and leave the intercept.
        owed = BIASES[0] * coefficients[:d] @ self.turn + uncentred(parts.rule(np.arange(n)).constant.sum(axis=0))
        shift = ratios @ np.linalg.pinv(weights.T @ ratios, hermitian=True) @ owed
        return self._among_all(parts.subset(self.source), self.bias - shift.reshape(n, d)[self.source])

    def _among_all(self, parts: Discriminant, bias: Array) -> FullPanel:
        """Full panel of all N experts; `parts` and `bias` are for informative experts, others get weight 0."""
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
    """Posterior of a panel whose weights differ between classes: of mean weights and, independently, of differences.

    Attributes
    ----------
    weights : ClassWeights
    differences : ndarray, shape (P, P)
        Covariance of the coefficients.
    """

    weights: ClassWeights = field(kw_only=True)
    differences: Array = field(kw_only=True)

    def _symmetric(self, panel: PoolingPanel) -> Panel:
        assert isinstance(panel, FullPanel)
        return self.weights.panel

    def _differences(self, panel: PoolingPanel, batch: Batch, rows: slice) -> Array:
        features = self.weights.features(panel.settings.contrasts(batch.some(rows)))
        (t, f), d, turn = features.shape, self.weights.free, self.weights.turn
        half = (features @ self._by_features).reshape(t, d * d, f)
        return np.asarray(turn.T @ np.matmul(half, features[:, :, None]).reshape(t, d, d) @ turn)

    @cached_property
    def _by_features(self) -> Array:
        """Covariance of the F x (K - 1) coefficients, arranged as (F, (K - 1)² F) for products with regressors."""
        d = self.weights.free
        found = self.differences.reshape(len(self.differences) // d, d, -1, d)
        return np.ascontiguousarray(found.transpose(0, 1, 3, 2)).reshape(len(found), -1)
