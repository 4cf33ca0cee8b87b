"""Weights that differ between classes, held to equal ones: the default's full model (model.md, sections 2.7 and 3).

Around a class-symmetric panel, what expert i says adds C_iᵀ A_i to the log-ratios, with A_i = w_i (I + B) + B_i: its
weight in the symmetric panel, what weights have in common between classes, and what is the expert's own (Σ B_i = 0). B
and the B_i have trace 0, so that mean weights stay what they are, and coefficients that are normal around 0 in
coordinates in which no class is special. With an intercept they are the most probable ones given the outcomes. Missing
contrasts are taken as Σ expects them, which is what exact sub-panels imply. All of this is then one Gaussian panel: Ω
is Σ for any two classes, and the means follow from the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from opinionpool.believed import BIAS
from opinionpool.discriminant import Discriminant
from opinionpool.filled import fill_as_expected
from opinionpool.fullpanel import FullPanel
from opinionpool.logodds import Array, metric, uncentred
from opinionpool.panel import Panel
from opinionpool.patterns import Positions
from opinionpool.regression import intercept_root


class Spreads(NamedTuple):
    """How far weights differ between classes: in proportion to each expert's weight, and by experts of their own."""

    together: float
    apart: float


@dataclass(frozen=True, eq=False)
class ClassWeights:
    """How the weights of a class-symmetric panel may come to differ between classes.

    There are P coefficients: K(K − 2) for all experts together, as many for each of the n experts who say something
    if there are several, and an intercept of K − 1.

    Attributes
    ----------
    panel : Panel
    """

    panel: Panel

    @property
    def free(self) -> int:
        """K - 1."""
        return len(self.panel.classes) - 1

    @cached_property
    def audible(self) -> Positions:
        """Experts who say something, (n,)."""
        return np.flatnonzero(self.panel.heard)

    @cached_property
    def bias(self) -> Array:
        """Of these experts, (n, K - 1)."""
        return uncentred(self.panel.bias[self.audible])

    @cached_property
    def shapes(self) -> Array:
        """Matrices on log-ratios that together are all those of trace 0, (K(K - 2), K - 1, K - 1)."""
        d = self.free
        turn = np.linalg.cholesky(metric(d + 1))
        start = np.concatenate([np.eye(d).reshape(1, -1), np.eye(d * d)])
        rest = np.linalg.qr(start.T)[0][:, 1:].T.reshape(-1, d, d)
        return np.asarray(turn @ rest @ np.linalg.inv(turn))

    def pooled(self, contrasts: Array) -> Array:
        """What the symmetric panel adds to the log-ratios, (T, K - 1), from contrasts (T, N, K - 1) as believed."""
        own = contrasts[:, self.audible]
        weights = self.panel.weights_for(~np.isnan(contrasts[..., 0]))[:, self.audible]
        apart = np.where(np.isnan(own), 0.0, own - self.bias)
        return np.asarray(np.einsum("tn,tnd->td", weights, apart))

    def roots(self, spreads: Spreads) -> Array:
        """Standard deviations of the coefficients, (P,)."""
        several = len(self.audible) > 1
        own = np.full(len(self.shapes) * len(self.audible) * several, spreads.apart)
        return np.concatenate([np.full(len(self.shapes), spreads.together), own, np.ones(self.free)])

    def design(self, contrasts: Array) -> Array:
        """How log-ratios go with the coefficients, (T, P, K - 1); 0 where nobody answered."""
        own = contrasts[:, self.audible]
        full = fill_as_expected(own - self.bias, self.panel.parts.subset(self.audible))
        answered = np.asarray(~np.isnan(own[..., 0]).all(axis=1))
        t, d = len(contrasts), self.free
        columns = [np.einsum("td,pdk->tpk", self.pooled(contrasts), self.shapes)]
        if len(self.audible) > 1:
            level = full - full.mean(axis=1, keepdims=True)
            columns.append(np.einsum("tnd,pdk->tnpk", level, self.shapes).reshape(t, -1, d))
        intercept = intercept_root(BIAS, d).T * np.ones((t, 1, 1))
        return np.asarray(np.concatenate([*columns, intercept], axis=1) * answered[:, None, None])

    def matrices(self, coefficients: Array) -> Array:
        """A_i, what turns an expert's contrasts into what they add, (n, K - 1, K - 1)."""
        p, n, d = len(self.shapes), len(self.audible), self.free
        weights = self.panel.weights[self.audible]
        common = np.eye(d) + np.tensordot(coefficients[:p], self.shapes, 1)
        found = weights[:, None, None] * common
        if n > 1:
            own = np.tensordot(coefficients[p : p + n * p].reshape(n, p), self.shapes, 1)
            found = found + own - own.mean(axis=0)
        return np.asarray(found)

    def full_panel(self, coefficients: Array) -> FullPanel:
        """The panel that has these coefficients."""
        k, d, n = self.free + 1, self.free, len(self.audible)
        sigma = self.panel.subset(self.audible.tolist()).covariance
        covariance = np.einsum("nm,ab->namb", sigma, np.linalg.inv(metric(k)))
        weights = self.matrices(coefficients).reshape(n * d, d)
        ratios = covariance.reshape(n * d, n * d) @ weights
        means = np.concatenate([np.zeros((1, n * d)), ratios.T])
        parts = Discriminant((means - means.mean(axis=0)).reshape(k, n, d), covariance)
        # Contrasts are measured from where they make up for the constant and leave the intercept.
        intercept = intercept_root(BIAS, d) @ coefficients[len(coefficients) - d :]
        owed = intercept + uncentred(parts.rule(np.arange(n)).constant.sum(axis=0))
        shift = ratios @ np.linalg.pinv(weights.T @ ratios, hermitian=True) @ owed
        return self._among_all(parts, self.bias - shift.reshape(n, d))

    def _among_all(self, parts: Discriminant, bias: Array) -> FullPanel:
        """With those who say nothing."""
        n, d, kept = len(self.panel), self.free, self.audible
        means, covariance = np.zeros((d + 1, n, d)), np.zeros((n, d, n, d))
        means[:, kept] = parts.means
        covariance[kept[:, None], :, kept] = parts.covariance.transpose(0, 2, 1, 3)
        biases = uncentred(self.panel.bias)
        biases[kept] = bias
        names, classes, settings = self.panel.names, self.panel.classes, self.panel.settings
        return FullPanel.from_parts(Discriminant(means, covariance), biases, names, classes, settings)
