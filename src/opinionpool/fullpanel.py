"""The full model of more than two classes: each has a mean of its own (model.md, section 3).

Given class y, the N(K − 1) contrasts are normal with mean m_y and covariance Ω, which is the same for all classes. So
experts may know some classes better than others, and what is said of one class may bear on another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.blockwise import blocks
from opinionpool.discriminant import Discriminant
from opinionpool.errors import ArgumentError, PanelError, ShapeError
from opinionpool.extremes import Extremes
from opinionpool.features import LARGEST, numbers
from opinionpool.gaussian import Settings
from opinionpool.logodds import FLOOR, POOL_FLOOR, Array
from opinionpool.names import by_name, chosen_positions
from opinionpool.patterns import Mask, Positions
from opinionpool.poolingpanel import PoolingPanel
from opinionpool.simulation import draw_outcomes
from opinionpool.stated import Stated, base_rate_shift, read_stated

__all__ = ["FullPanel"]

BELIEVED = Extremes()
DEFAULT = Settings()
# How far a covariance may be from symmetric and positive, relative to its variances.
ROUNDING = 1e-8


class FullPanel(PoolingPanel):
    """An immutable panel of N experts on events of K classes, each class with its own means.

    The pooled log-odds of two classes are L*_{y:z} = L°_{y:z} + (m_y − m_z)ᵀ Ω⁻¹ x − ½(m_yᵀ Ω⁻¹ m_y − m_zᵀ Ω⁻¹ m_z),
    x the contrasts. Experts therefore have a weight for what they say of each class, which depends on the two classes
    compared: `pair_weights`. `weights`, `calibration` and `accuracy` are averages over the classes that equal those of
    `Panel` wherever the classes are alike.

    Parameters
    ----------
    means : array_like, shape (K, N, K - 1)
        Expected log-ratios against the first class, less those of the prior, given each class.
    covariance : array_like, shape (N, K - 1, N, K - 1), or (N(K - 1), N(K - 1)) expert by expert
        Their covariance Ω within a class; zeros for an expert who says nothing.
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

    __slots__ = ("_bias", "_parts")

    _bias: Array
    _parts: Discriminant

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
        if (np.abs(parts.means[:, ~parts.heard]) > ROUNDING).any():
            raise PanelError("an expert without variance must have the same means for all classes")
        labels = tuple(range(len(given))) if classes is None else classes
        self._set(parts, bias, names, labels, Settings(floor, pool_floor, extremes))

    @classmethod
    def from_parts(
        cls,
        parts: Discriminant,
        bias: Array,
        names: Iterable[object] | None = None,
        classes: Sequence[object] | None = None,
        settings: Settings = DEFAULT,
    ) -> FullPanel:
        """A panel from means, covariance and bias (N, K - 1), taken as they are; what learning uses."""
        panel = cls.__new__(cls)
        panel._set(parts, bias, names, classes, settings)
        return panel

    def _set(
        self,
        parts: Discriminant,
        bias: Array,
        names: Iterable[object] | None,
        classes: Sequence[object] | None,
        settings: Settings,
    ) -> None:
        k = self._label(len(bias), names, classes, settings)
        if k != len(parts.means):
            raise PanelError(f"means of {len(parts.means)} classes do not fit the {k} labels {self._classes}")
        for array in (parts.means, parts.covariance, bias):
            array.flags.writeable = False
        self._hold(bias=bias, parts=parts)

    def __reduce__(self) -> tuple[object, ...]:
        parts = self._parts.means, self._parts.covariance
        return _restored, (*parts, self._bias, self._names, self._classes, self._settings)

    @property
    def parts(self) -> Discriminant:
        """Means from their centroid and covariance, as pooling uses them."""
        return self._parts

    @property
    def heard(self) -> Mask:
        """False for experts whose forecasts never move, (N,)."""
        return self._parts.heard

    @property
    def bias(self) -> Array:
        """The centroid of the K means, each counting the same: log-probabilities centred over the classes, (N, K).

        K = 2: log-odds, (N,).
        """
        return logodds.public_log_odds(self._bias).copy()

    @property
    def means(self) -> Array:
        """Expected log-ratios less those of the prior, given each class, (K, N, K - 1)."""
        return np.asarray(self._bias + self._parts.means)

    @property
    def covariance(self) -> Array:
        """Covariance Omega of the log-ratios within a class, (N, K - 1, N, K - 1)."""
        return self._parts.covariance.copy()

    @property
    def calibration(self) -> Array:
        """The weight that each expert would have alone, (N,) (13); 0 for experts who say nothing."""
        return np.array(
            [self._parts.subset(one).weights_for(np.ones((1, 1), dtype=bool))[0, 0] for one in self._each()]
        )

    @property
    def accuracy(self) -> Array:
        """Accuracy mu* of each expert alone, (N,) (15): between two classes, averaged over pairs."""
        return np.array([self._parts.accuracy(one) if self.heard[one].all() else 0.0 for one in self._each()])

    @property
    def joint_accuracy(self) -> float:
        """Accuracy mu* of the panel together (15): between two classes, averaged over pairs."""
        return self._parts.accuracy(np.flatnonzero(self.heard))

    def _each(self) -> Iterator[Positions]:
        return (np.array([i]) for i in range(len(self)))

    def weights_for(self, present: Mask) -> Array:
        """Weights of the exact sub-panels of those present, averaged over the classes, (T, N), 0 where absent.

        Parameters
        ----------
        present : ndarray of bool, shape (T, N)
        """
        return self._parts.weights_for(present)

    def pair_weights(self, y: object, z: object) -> Array:
        """What multiplies each expert's log-probabilities in the pooled log-odds of class y against z, (N, K).

        Every row adds up to 0, as log-probabilities count up to a constant. In the class-symmetric model a row is w_i
        at y, -w_i at z and 0 at other classes.

        Raises
        ------
        ArgumentError
            If there is no such class.
        """
        for label in (y, z):
            if label not in self._classes:
                raise ArgumentError(f"there is no class {label!r}; the classes are {self._classes}")
        audible = np.flatnonzero(self.heard)
        weights = np.zeros((len(self), len(self._classes)))
        if len(audible):
            rule = self._parts.rule(audible)
            first, second = self._classes.index(y), self._classes.index(z)
            weights[audible, 1:] = rule.direction[:, :, first] - rule.direction[:, :, second]
        weights[:, 0] = 0.0 - weights[:, 1:].sum(axis=1)
        return weights

    @property
    def class_weights(self) -> Array:
        """Weight of what each expert says of a class in the pooled log-probability of that class, (N, K).

        Times K/(K - 1), as both are measured from their means over the classes. Their mean over the classes is
        `weights`, to which all are equal in the class-symmetric model.
        """
        k = len(self._classes)
        gains = np.stack([self.pair_weights(y, self._classes[0]) for y in self._classes])
        apart = gains - gains.mean(axis=0)
        return np.asarray(np.einsum("knk->nk", apart) * k / (k - 1))

    def pool(
        self, probabilities: npt.ArrayLike, prior: npt.ArrayLike = 0.5, base_rate: npt.ArrayLike | None = None
    ) -> Array:
        """The pooled probability, as `Panel.pool`.

        Those who are absent are left out exactly: the others decide by Ω_SS and m_S, with the constant of their own.

        Raises
        ------
        ProbabilityError, ShapeError
            If a probability is outside [0, 1], a prior outside (0, 1), or shapes disagree.
        """
        stated = read_stated(by_name(probabilities, self._names), prior, len(self), len(self._classes))
        ratios = stated.reference + base_rate_shift(base_rate, stated)
        for rows, _, added in self._added(stated):
            ratios[rows] += logodds.uncentred(added.sum(axis=1))
        return stated.shape_answers(logodds.pooled_probabilities(ratios, stated.prior, self._settings.pool_floor))

    def contributions(self, probabilities: npt.ArrayLike, prior: npt.ArrayLike = 0.5) -> Array:
        """What each expert adds to the pooled log-odds, 0 where missing.

        They add up to the pooled log-odds minus the prior's, before the floor on the answer. The constant is among
        them: expert i's part of it is −½ m_kiᵀ (Ω⁻¹ m_k)_i for class k.

        Returns
        -------
        ndarray, shape (..., N), or (..., N, K) when K > 2, centred over the classes
        """
        stated = read_stated(by_name(probabilities, self._names), prior, len(self), len(self._classes))
        full = np.zeros((len(stated.prior), len(self), stated.classes))
        for rows, columns, added in self._added(stated):
            full[np.ix_(rows, columns)] = added
        shown = logodds.public_log_odds(logodds.uncentred(full))
        return shown.reshape(stated.lead + shown.shape[1:])

    def _added(self, stated: Stated) -> Iterator[tuple[Positions, Positions, Array]]:
        """Events (rows), experts present (columns) and what these add to each class, (rows, columns, K)."""
        floor, _, extremes = self._settings
        present = ~np.isnan(stated.q if stated.classes == 2 else stated.q[..., 0])
        for rows, columns, rule in self._parts.rules(present):
            believed, bias = extremes.subset(columns), self._bias[columns]
            for block in blocks(len(rows), len(columns) * stated.classes):
                part = rows[block]
                said = logodds.log_ratios(stated.q[np.ix_(part, columns)], stated.prior[part][:, None], floor)
                contrasts = believed.believed(said - stated.reference[part][:, None]) - bias
                yield part, columns, np.einsum("tnd,ndk->tnk", contrasts, rule.direction) - rule.constant

    def subset(self, experts: Iterable[object]) -> FullPanel:
        """The panel of some of the experts, exactly (model.md, section 2.3).

        Parameters
        ----------
        experts : iterable of str or int
            Names, or positions.

        Raises
        ------
        ExpertError
            If one is unknown, repeated, or none is given.
        """
        positions = chosen_positions(experts, self._names)
        names = [self._names[i] for i in positions]
        settings = self._settings._replace(extremes=self._settings.extremes.subset(positions))
        return FullPanel.from_parts(
            self._parts.subset(positions), self._bias[positions], names, self._classes, settings
        )

    def simulate(
        self, events: int, prior: npt.ArrayLike = 0.5, seed: int | np.random.Generator | None = None
    ) -> tuple[Array, npt.NDArray[np.generic]]:
        """Forecasts and outcomes drawn from the model; see `Panel.simulate`."""
        k = len(self._classes)
        rng = np.random.default_rng(seed)
        p, happened = draw_outcomes(events, prior, k, rng)
        noise = self._parts.noise(rng.standard_normal((len(p), len(self) * (k - 1))))
        said = logodds.softmax(logodds.prior_log_ratios(p)[:, None, :] + self.means[happened] + noise)
        return (said[..., 1] if k == 2 else said), np.array(self._classes)[happened]


def _restored(means: Array, covariance: Array, *rest: object) -> FullPanel:
    """A panel that was pickled."""
    return FullPanel.from_parts(Discriminant(means, covariance), *rest)  # type: ignore[arg-type]


def _checked_covariance(covariance: npt.ArrayLike, n: int, d: int) -> Array:
    """Covariance (N, K - 1, N, K - 1), symmetric and positive."""
    omega = numbers(covariance, "covariance")
    if omega.shape not in {(n, d, n, d), (n * d, n * d)}:
        raise ShapeError(
            f"{n} experts and {d + 1} classes need a covariance of shape {(n, d, n, d)} or {(n * d, n * d)}, not "
            f"{omega.shape}"
        )
    flat = omega.reshape(n * d, n * d)
    variance = np.diag(flat)
    if not np.isfinite(flat).all() or (variance < 0).any() or (variance > LARGEST).any():
        raise PanelError(f"a covariance must be finite, with variances from 0 to {LARGEST:g}; they are {variance}")
    size = np.sqrt(np.where(variance > 0, variance, 1.0))
    scaled = flat / np.outer(size, size)
    if (np.abs(scaled - scaled.T) > ROUNDING).any():
        raise PanelError("a covariance must be symmetric")
    if np.linalg.eigvalsh(scaled)[0] < -ROUNDING * len(scaled) or (np.abs(scaled[variance == 0]) > 0).any():
        raise PanelError("a covariance must be positive definite, and this one is not")
    return np.asarray((flat + flat.T) / 2.0).reshape(n, d, n, d)
