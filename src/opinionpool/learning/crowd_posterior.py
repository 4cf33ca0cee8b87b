"""Posterior of a crowd: which of the alternative panels is right, with what slope, and each expert's features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from opinionpool.arrays import Array, Mask
from opinionpool.learning.constants import Dependent
from opinionpool.learning.duplicates import Duplicates
from opinionpool.learning.laplace import Fit
from opinionpool.learning.nodes import Nodes
from opinionpool.learning.posterior import Posterior, probability_rows, quantile, sum_rows
from opinionpool.model.contrasts import Batch
from opinionpool.model.features import Parts
from opinionpool.model.panel import Panel, PoolingPanel


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CrowdPosterior(Posterior):
    """Posterior of a crowd's pool: how much each of B alternative panels counts, as a mixture of normals."""

    contrast: Array  # (B, N); contrast means of each panel
    nested: Mask  # (B,); whether a panel has the dependence of the second of `parts`, else that of the first
    parts: tuple[Parts, ...]  # for each kind of dependence, the sum of its panels as weighted in the mean answer
    shift: Array  # (K - 1,); part of the biases that is due to the intercept
    # (3, N); variance of a whitened coordinate of each expert's bias, of its contrast, and of its log spread
    variance: Array
    turn: Array  # (K - 1, K - 1); map from whitened coordinates to log-ratios

    @classmethod
    def by(
        cls,
        fit: Fit,
        nodes: Nodes,
        panels: tuple[Array, Mask, tuple[Parts, ...]],
        shift: Array,
        variance: Array,
        turn: Array,
    ) -> CrowdPosterior:
        """Posterior from `fit`; `panels` has B panels' contrasts (B, N), the mask of nested ones, and parameters."""
        names = [_in_words(kind) for kind in nodes.dependence]
        rows = probability_rows("weights", names, nodes.probability, fit.joint.sum(axis=1)) + sum_rows(fit, nodes)
        about = dict(zip(("contrast", "nested", "parts"), panels, strict=True))
        return cls.with_rows(fit, rows, shift=shift, variance=variance, turn=turn, **about)

    def weight_interval(self, experts: int, level: float = 0.9) -> tuple[Array, Array]:
        """Bounds of the credible interval of each weight less the weight's mean, (N,) each, if all experts answer."""
        sd = self.weight_sd(experts)
        low, high = (
            quantile(np.ones(1), np.zeros((1, len(sd))), sd[None], q) for q in ((1 - level) / 2, (1 + level) / 2)
        )
        return low, high

    def weight_sd(self, experts: int) -> Array:  # noqa: ARG002 - those of the crowd
        """Return the posterior standard deviation of each weight if all experts answer, (N,)."""
        weights = np.array([part.weights for part in self._panels])
        covariance = self.whole_covariance[-len(weights) :, -len(weights) :]
        of_panels, (among, scale) = (
            np.einsum("bn,bc,cn->n", weights, covariance, weights),
            (self.parts[0].dependence, self.parts[0].scale),
        )
        left = 1.0 - getattr(among, "rho", 0.0)
        own = self.variance[1] * (2.0 / (left * scale**2)) ** 2 * self.parts[0].informative
        return np.asarray(np.sqrt(np.maximum(of_panels, 0.0) + own))

    def with_duplicates(self, duplicates: Duplicates) -> Self:
        """Return a posterior for all experts; in this one, each group of duplicates is a single expert."""
        contrast, variance = (duplicates.rows(each.T).T.copy() for each in (self.contrast, self.variance))
        parts = tuple(duplicates.parts(part) for part in self.parts)
        return replace(self, contrast=contrast, parts=parts, variance=variance)

    @property
    def _panels(self) -> list[Parts]:
        """Parameters of each of the B alternative panels."""
        pairs = zip(self.contrast, self.nested.tolist(), strict=True)
        return [replace(self.parts[int(nested)], contrast=own) for own, nested in pairs]

    def _gradient(self, panel: Panel, batch: Batch, rows: slice) -> Array:
        """Derivatives of events' log-ratios by the intercept and B panels' slopes, (T, K - 1 + B, K - 1)."""
        beyond, d = self._beyond_bias(panel, batch, rows), batch.classes - 1
        each = np.stack([part.total(beyond, np.zeros((1, 1, 1))) for part in self._panels], axis=1)
        intercept = np.broadcast_to(np.eye(d), (len(each), d, d))
        answered = batch.some(rows).answered_by(panel.informative)
        return np.where(answered[:, None, None], np.concatenate([intercept, each], axis=1), 0.0)

    def _differences(self, panel: PoolingPanel, batch: Batch, rows: slice) -> Array:
        """Covariance of the answers' log-ratios due to uncertain biases, contrasts and spreads, (T, K - 1, K - 1)."""
        symmetric, mean = self._symmetric(panel), self.probability @ self.mean
        beyond = self._beyond_bias(symmetric, batch, rows)
        present, parts = ~np.isnan(beyond[..., 0]) & symmetric.informative, self.parts
        weights = np.asarray(sum(part.weights_for(present) for part in parts))
        slopes = mean[-len(self.nested) :]
        share = np.array([slopes[~self.nested].sum(), slopes[self.nested].sum()]) / slopes.sum()
        seen = np.moveaxis(np.where(present[..., None], beyond, 0.0) / parts[0].scale[:, None], 2, 0)
        by_contrast = np.stack(
            [sum(own * part.solve(column, present) for own, part in zip(share, parts, strict=True)) for column in seen],
            axis=2,
        ) * (2.0 / parts[0].scale[:, None])
        of_bias = np.einsum("tn,n->t", weights**2, self.variance[0])[:, None, None] * (self.turn.T @ self.turn)
        contrast = np.asarray(sum(part.contrast for part in parts))
        by_spread = contrast[:, None] * by_contrast + weights[..., None] * np.where(present[..., None], beyond, 0.0)
        pairs = zip((by_contrast, by_spread), self.variance[1:], strict=True)
        return np.asarray(of_bias + sum(np.einsum("tna,n,tnb->tab", each, own, each) for each, own in pairs))

    def _beyond_bias(self, panel: Panel, batch: Batch, rows: slice) -> Array:
        """Moderated log-ratios less the prior's and less each expert's own bias, (T, N, K - 1)."""
        some = batch.some(rows)
        return np.asarray(
            panel.settings.extremes.believed(some.contrasts(), some.base.absent) - panel.bias_ratios + self.shift
        )


def _in_words(kind: Dependent) -> str:
    """Label of a panel, for users, by what determines its weights."""
    if np.isinf(kind.exponent):
        return "features, " + ("nested evidence" if kind.kind == "nested" else "one correlation")
    return kind.guide if kind.exponent else "experts alike"
