"""How experts decide between classes that have a mean each and one covariance (model.md, section 3, the full model)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from opinionpool.dependence import SINGULAR, solve_matrix
from opinionpool.logodds import Array, metric
from opinionpool.patterns import Mask, Positions, each_pattern


class Rule(NamedTuple):
    """What those present make of their contrasts x: class k scores Σ_i x_i · direction_ik − constant_ik.

    Attributes
    ----------
    direction : ndarray, shape (n, K - 1, K)
        Ω⁻¹ m_k for every class k.
    constant : ndarray, shape (n, K)
        Each expert's part of ½ m_kᵀ Ω⁻¹ m_k.
    """

    direction: Array
    constant: Array


@dataclass(frozen=True, eq=False)
class Discriminant:
    """Means of K classes and their covariance, in the log-ratios of N experts.

    Attributes
    ----------
    means : ndarray, shape (K, N, K - 1)
        m_k, measured from their centroid.
    covariance : ndarray, shape (N, K - 1, N, K - 1)
        Ω; zeros for an expert who says nothing.
    """

    means: Array
    covariance: Array

    @cached_property
    def _turn(self) -> Array:
        """What makes of log-ratios coordinates in which no class is special, (K - 1, K - 1)."""
        return np.asarray(np.linalg.cholesky(metric(len(self.means))), dtype=np.float64)

    @cached_property
    def _scale(self) -> Array:
        """Root of each expert's mean variance there, (N,)."""
        k, _, d = self.means.shape
        return np.asarray(np.sqrt(np.einsum("nanb,ab->n", self.covariance, metric(k)) / d))

    @property
    def heard(self) -> Mask:
        """False for experts whose forecasts never move, (N,)."""
        return np.asarray(self._scale > 0)

    @cached_property
    def _scaled_turn(self) -> Array:
        """What turns each expert's log-ratios and makes its mean variance 1, (N, K - 1, K - 1)."""
        return np.asarray(self._turn / np.where(self.heard, self._scale, 1.0)[:, None, None])

    @cached_property
    def standard(self) -> tuple[Array, Array]:
        """Means (K, N, K - 1) and covariance (N, K - 1, N, K - 1) so turned."""
        turn = self._scaled_turn
        means = np.einsum("knd,nda->kna", self.means, turn)
        return means, np.einsum("nimj,nia,mjb->namb", self.covariance, turn, turn, optimize=True)

    def rule(self, columns: Positions) -> Rule:
        """The decision of some experts, all of whom say something.

        Raises
        ------
        PanelError
            If classes differ where the experts have no variance.
        """
        means, covariance = self.standard
        k, n, d = len(means), len(columns), means.shape[2]
        own = means[:, columns]
        omega = covariance[columns][:, :, columns].reshape(n * d, n * d)
        solved = solve_matrix(omega, own.reshape(k, n * d).T, SINGULAR).reshape(n, d, k)
        constant = np.einsum("knd,ndk->nk", own, solved) / 2.0
        return Rule(self._scaled_turn[columns] @ solved, constant)

    def rules(self, present: Mask) -> Iterator[tuple[Positions, Positions, Rule]]:
        """Events (rows) on which the same experts (columns) are present and say something, and how these decide."""
        for rows, columns in each_pattern(present & self.heard):
            if len(columns):
                yield rows, columns, self.rule(columns)

    def weights_for(self, present: Mask) -> Array:
        """Mean weights of those present in each row, (T, N): how the log-ratio of a class goes with what is said of it.

        In the class-symmetric model all are the same; here it is the trace of the matrix weight over K − 1, which is
        the same whatever the reference class.
        """
        weights = np.zeros(present.shape)
        for rows, columns, rule in self.rules(present):
            matrix = rule.direction[:, :, 1:] - rule.direction[:, :, :1]
            weights[np.ix_(rows, columns)] = np.trace(matrix, axis1=1, axis2=2) / matrix.shape[2]
        return weights

    def accuracy(self, columns: Positions) -> float:
        """mu* of some experts together: half the squared distance of two classes in units of Ω, averaged over pairs."""
        return float(2.0 * self.rule(columns).constant.sum() / (len(self.means) - 1))

    def subset(self, positions: Positions) -> Discriminant:
        """The decision among some of the experts: Ω_SS and m_S."""
        return Discriminant(self.means[:, positions], self.covariance[positions][:, :, positions])

    def noise(self, normal: Array) -> Array:
        """Independent standard normals (T, N(K - 1)) to log-ratios (T, N, K - 1) with covariance Ω."""
        n, d = self.means.shape[1:]
        values, vectors = np.linalg.eigh(self.covariance.reshape(n * d, n * d))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return np.asarray((normal @ root.T).reshape(len(normal), n, d))

    def scores(self, contrasts: Array) -> Array:
        """What each class gains from contrasts (T, N, K - 1), NaN where missing; (T, K)."""
        gains = np.zeros((len(contrasts), len(self.means)))
        for rows, columns, rule in self.rules(~np.isnan(contrasts[..., 0])):
            own = contrasts[np.ix_(rows, columns)]
            gains[rows] = np.einsum("tnd,ndk->tk", own, rule.direction, optimize=True) - rule.constant.sum(axis=0)
        return gains
