"""The full model of more than two classes, each with its own means (model.md, section 3).

Given class y, the N(K − 1) contrasts are normal with mean m_y and covariance Ω, which is the same for all classes. So
experts may know some classes better than others, and the forecast of one class may bear on another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import ArgumentError, PanelError, ShapeError
from opinionpool.logodds import FLOOR, POOL_FLOOR, metric
from opinionpool.model.contrasts import AnswerParts, Batch, Extremes
from opinionpool.model.correlation import SINGULAR, patterns, solve_matrix
from opinionpool.model.features import LARGEST, numbers, scaled
from opinionpool.model.panel import PoolingPanel, class_labels
from opinionpool.model.pooling import Settings


class Rule(NamedTuple):
    """Classification rule: class k scores Σ_i (x_i · direction_ik − constant_ik), x_i the log-ratios of expert i."""

    direction: Array  # (n, K - 1, K); Ω⁻¹ m_k for every class k
    constant: Array  # (n, K); each expert's part of ½ m_kᵀ Ω⁻¹ m_k


@dataclass(frozen=True, eq=False)
class Discriminant:
    """Full model of N experts: K class means and one covariance of their log-ratios less the prior's."""

    means: Array  # (K, N, K - 1); m_k less their mean over classes
    covariance: Array  # (N, K - 1, N, K - 1); Ω; zeros for an expert who says nothing

    @cached_property
    def _scale(self) -> Array:
        """Standard deviation of each expert's log-ratios, (N,): root of their mean variance, classes alike."""
        k, _, d = self.means.shape
        return np.asarray(np.sqrt(np.einsum("nanb,ab->n", self.covariance, metric(k)) / d))

    @property
    def informative(self) -> Mask:
        """True for experts whose forecasts vary, (N,)."""
        return np.asarray(self._scale > 0)

    @cached_property
    def _standard(self) -> tuple[Array, Array, Array]:
        """Matrices (N, K - 1, K - 1) that scale an expert's log-ratios to mean variance 1; scaled means, covariance."""
        scale = np.where(self.informative, self._scale, 1.0)
        turn = np.linalg.cholesky(metric(len(self.means))) / scale[:, None, None]
        means = np.einsum("knd,nda->kna", self.means, turn)
        return turn, means, np.einsum("nimj,nia,mjb->namb", self.covariance, turn, turn, optimize=True)

    def rule(self, who: Index) -> Rule:
        """Return the rule of the informative experts `who`; a `PanelError` if means differ where the variance is 0."""
        turn, means, covariance = self._standard
        (k, _, d), n = means.shape, len(who)
        own, omega = means[:, who], covariance[who][:, :, who].reshape(n * d, n * d)
        solved = solve_matrix(omega, own.reshape(k, n * d).T, SINGULAR).reshape(n, d, k)
        return Rule(turn[who] @ solved, np.einsum("knd,ndk->nk", own, solved) / 2.0)

    @cached_property
    def _whole(self) -> Rule:
        return self.rule(np.flatnonzero(self.informative))

    def _rules(self, present: Mask, experts: Index | None) -> Iterator[tuple[Index, Index, Rule]]:
        """Yield for each set of informative experts present: rows and columns of forecasts, and the set's `Rule`."""
        informative = self.informative if experts is None else self.informative[experts]
        everybody = np.flatnonzero(self.informative)
        for alike in patterns(present & informative, experts):
            for rows, columns, who in zip(*alike, strict=True):
                yield rows, columns, self._whole if np.array_equal(who, everybody) else self.rule(who)

    def weights_for(self, present: Mask, experts: Index | None = None) -> Array:
        """Weight of each present expert, (T, m), the mean of the expert's weights for the K classes; 0 where absent."""
        weights = np.zeros(present.shape)
        for rows, columns, rule in self._rules(present, experts):
            matrix = rule.direction[:, :, 1:] - rule.direction[:, :, :1]
            weights[np.ix_(rows, columns)] = np.trace(matrix, axis1=1, axis2=2) / matrix.shape[2]
        return weights

    @property
    def weights(self) -> Array:
        """Weights of the experts when all are present, (N,): means over the classes."""
        return np.asarray(self.weights_for(np.ones((1, self.means.shape[1]), dtype=bool))[0])

    def accuracy(self, columns: Index) -> float:
        """Joint accuracy mu* of the experts `columns`: half the mean squared Mahalanobis distance of class means."""
        return float(2.0 * self.rule(columns).constant.sum() / (len(self.means) - 1))

    def subset(self, positions: Index) -> Discriminant:
        """Return the means and covariance of the experts at `positions` only."""
        return Discriminant(self.means[:, positions], self.covariance[positions][:, :, positions])

    def added(self, debiased: Array, experts: Index | None = None) -> Array:
        """Each expert's contribution to pooled log-ratios, from own ones `debiased`, (T, m, K - 1); 0 for NaN."""
        full = np.zeros(debiased.shape)
        for rows, columns, rule in self._rules(~np.isnan(debiased[..., 0]), experts):
            cells = np.ix_(rows, columns)
            full[cells] = logodds.uncentred(np.einsum("tnd,ndk->tnk", debiased[cells], rule.direction) - rule.constant)
        return full

    def total(self, levels: Array, origin: Array, experts: Index | None = None) -> Array:
        """Sum of the experts' contributions, (T, K - 1), from forecasts in log-ratios, `levels` less `origin`."""
        return np.asarray(self.added(levels - origin, experts).sum(axis=1))

    def drawn(self, outcomes: Index, classes: int, rng: np.random.Generator) -> Array:
        """Log-ratios less the prior's and the bias, (T, N, K - 1), drawn from the model given `outcomes` (T,)."""
        n, d = self.means.shape[1:]
        values, vectors = np.linalg.eigh(self.covariance.reshape(n * d, n * d))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        noise = rng.standard_normal((len(outcomes), n * (classes - 1))) @ root.T
        return np.asarray(self.means[outcomes] + noise.reshape(len(outcomes), n, d))


BELIEVED = Extremes()
# How far a covariance may be from symmetric and positive, relative to its variances.
ROUNDING = 1e-8


class FullPanel(PoolingPanel):
    """An immutable panel of N experts on events of K classes, where experts may know some classes better than others.

    Each class y has its own means m_y of the experts' contrasts x (log-ratios less those of the prior), whose
    covariance Ω all classes share. The pooled log-odds of two classes are L*_{y:z} = L°_{y:z} + (m_y − m_z)ᵀ Ω⁻¹ x −
    ½(m_yᵀ Ω⁻¹ m_y − m_zᵀ Ω⁻¹ m_z). So an expert has a weight for its forecast of each class, and it depends on the two
    classes compared: `pair_weights`. `weights`, `calibration` and `accuracy` are averages over the classes, equal to
    those of `Panel` if all classes have the same parameters.

    Parameters
    ----------
    means : array_like, shape (K, N, K - 1)
        Expected log-ratios against the first class, less those of the prior, given each class.
    covariance : array_like, shape (N, K - 1, N, K - 1), or (N(K - 1), N(K - 1)) expert by expert
        Covariance Ω of the log-ratios given the class; zeros for an expert whose forecasts never vary.
    names, classes, floor, pool_floor, extremes
        As for `Panel`; K classes ``0 ... K - 1`` if not given.

    Raises
    ------
    PanelError, ShapeError, ExpertError
        If no panel has these parameters.

    Examples
    --------
    An expert who can tell "home" from the rest, and no more:

    >>> means = [[[-2.0, -2.0]], [[1.0, 1.0]], [[1.0, 1.0]]]
    >>> panel = FullPanel(means, [[3.0, 1.5], [1.5, 3.0]], classes=["home", "draw", "away"])
    >>> panel.pool([[0.6, 0.3, 0.1]], [1 / 3, 1 / 3, 1 / 3]).round(3)
    array([0.574, 0.213, 0.213])
    >>> panel.pair_weights("home", "draw").round(3), panel.pair_weights("draw", "away").round(3)
    (array([[ 1.333, -0.667, -0.667]]), array([[0., 0., 0.]]))
    """

    __slots__ = ()

    parts: Discriminant

    def __init__(
        self,
        means: npt.ArrayLike,
        covariance: npt.ArrayLike,
        names: Iterable[object] | None = None,
        classes: Sequence[object] | None = None,
        *,
        floor: float = FLOOR,
        pool_floor: float = POOL_FLOOR,
        extremes: Extremes = BELIEVED,
    ) -> None:
        given = numbers(means, "mean")
        if given.ndim != 3 or given.shape[1] == 0 or len(given) < 2 or given.shape[2] != len(given) - 1:
            raise ShapeError(f"means need the shape (K, N, K - 1) of K classes and N experts, not {given.shape}")
        if not (np.abs(given) <= LARGEST).all():
            raise PanelError(f"each mean must be finite, and at most {LARGEST:g}")
        bias = given.mean(axis=0)
        parts = Discriminant(given - bias, _checked_covariance(covariance, *bias.shape))
        if (np.abs(parts.means[:, ~parts.informative]) > ROUNDING).any():
            raise PanelError("an expert without variance must have the same means for all classes")
        labels = class_labels(range(len(given)) if classes is None else classes)
        if len(labels) != len(given):
            raise PanelError(f"means of {len(given)} classes do not fit the {len(labels)} labels {labels}")
        self._set(parts, bias, names, labels, Settings(floor, pool_floor, extremes))

    @property
    def means(self) -> Array:
        """Expected log-ratios less the prior's, given each class, (K, N, K - 1)."""
        return np.asarray(self.bias_ratios + self.parts.means)

    @property
    def covariance(self) -> Array:
        """Covariance Omega of the log-ratios given the class, (N, K - 1, N, K - 1)."""
        return self.parts.covariance.copy()

    @property
    def calibration(self) -> Array:
        """Mean over classes of each expert's weight in a panel of one, (N,) (equation 13); 0 if uninformative."""
        return np.diag(self.parts.weights_for(np.eye(len(self), dtype=bool))).copy()

    @property
    def accuracy(self) -> Array:
        """Accuracy mu* of each expert by itself, (N,) (paper, equation 15): mean over pairs of the K classes."""
        known = self.informative.tolist()
        return np.array([self.parts.accuracy(np.array([i])) if own else 0.0 for i, own in enumerate(known)])

    @property
    def joint_accuracy(self) -> float:
        """Accuracy mu* of the panel's pooled forecast (paper, equation 15): mean over pairs of the K classes."""
        return self.parts.accuracy(np.flatnonzero(self.informative))

    def pair_weights(self, y: object, z: object) -> Array:
        """Weights of each expert's log-probabilities in the pooled log-odds of class y against z, (N, K).

        Every row adds up to 0, as only differences of log-probabilities matter. In `Panel`, where all classes are
        alike, a row is w_i at y, -w_i at z and 0 at other classes. An `ArgumentError` if the panel has no class y or z.
        """
        for label in (y, z):
            if label not in self.classes:
                raise ArgumentError(f"there is no class {label!r}; the classes are {self.classes}")
        informative = np.flatnonzero(self.informative)
        weights = np.zeros((len(self), len(self.classes)))
        if len(informative):
            rule = self.parts.rule(informative)
            first, second = self.classes.index(y), self.classes.index(z)
            weights[informative, 1:] = rule.direction[:, :, first] - rule.direction[:, :, second]
        weights[:, 0] = 0.0 - weights[:, 1:].sum(axis=1)
        return weights

    @property
    def class_weights(self) -> Array:
        """Weight of each expert's log-probability of a class in the pooled log-probability of that class, (N, K).

        Log-probabilities are taken less their means over classes. Weights are multiplied by K/(K - 1), so that an
        expert's mean weight over classes is the expert's weight in `weights`.
        """
        k = len(self.classes)
        gains = np.stack([self.pair_weights(y, self.classes[0]) for y in self.classes])
        centred = gains - gains.mean(axis=0)
        return np.asarray(np.einsum("knk->nk", centred) * k / (k - 1))

    def answer_parts(self, batch: Batch) -> AnswerParts:
        """Answer about the one event of `batch` as a sum over experts; `weights` is None, as an expert has several."""
        beyond = self.settings.contrasts(batch)[0]
        contrast = np.where(np.isnan(beyond), 0.0, beyond - self.bias_ratios)
        added = self.parts.added((beyond - self.bias_ratios)[None])[0]
        start = batch.reference[0]
        return AnswerParts("log-odds", self.bias_ratios, contrast, None, added, start, np.zeros_like(start))


def _checked_covariance(covariance: npt.ArrayLike, n: int, d: int) -> Array:
    """`covariance` as (N, K - 1, N, K - 1), after checking that it is symmetric and semi-definite; `d` is K - 1."""
    omega = numbers(covariance, "covariance")
    if omega.shape not in {(n, d, n, d), (n * d, n * d)}:
        raise ShapeError(
            f"{n} experts and {d + 1} classes need a covariance of shape {(n, d, n, d)} or {(n * d, n * d)}, not "
            f"{omega.shape}"
        )
    flat = omega.reshape(n * d, n * d)
    scaled(flat)
    return np.asarray((flat + flat.T) / 2.0).reshape(n, d, n, d)
