"""A panel of experts: the Gaussian model of their log-odds and the pool that follows from it.

Kahn (UAI 2004), sections 2 to 4; model.md, sections 1 to 3.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import several, whole_number
from opinionpool.arrays import Array
from opinionpool.errors import AccuracyUnknownError, ExpertError, OpinionPoolWarning, PanelError
from opinionpool.logodds import FLOOR, POOL_FLOOR
from opinionpool.model.contrasts import AnswerParts, Batch, Extremes
from opinionpool.model.correlation import CommonCorrelation, Dependence
from opinionpool.model.features import Parts, bias_ratios, number_of_experts, parts_of_features, parts_of_parameters
from opinionpool.model.pooling import Plan, Settings, Solver, binary_forecasts, one_number, pool_alike
from opinionpool.model.pooling_panel import PoolingPanel

# Below this part of the variance of a mean of independent experts, theirs is left to how they cancel each other.
NEARLY_NONE = 0.1


def _warn_of_weights(panel: Panel, correlation: float) -> None:
    """Say that one correlation lets experts cancel the errors of better ones, or all their errors."""
    weights, n = panel.weights, int(panel.informative.sum())
    if n > 1 and 1.0 + (n - 1.0) * correlation < NEARLY_NONE:
        text = (
            f"the correlation {correlation:.6g} is close to the least of {n} experts, {-1.0 / (n - 1.0):.6g}, where "
            f"their errors cancel: the weights add up to {weights.sum():.3g}, and unanimous experts are believed so far"
        )
        warnings.warn(text, OpinionPoolWarning, stacklevel=3)
    if (weights < 0).any():
        worst = int(weights.argmin())
        unanimous = float(logodds.expit(weights.sum() * logodds.logit(0.7)))
        where_all = f", and where all say 70% the answer is {unanimous:.0%}" if len(panel.classes) == 2 else ""
        text = (
            f"{panel.names[worst]!r} has the weight {weights[worst]:.3g}: one correlation of all pairs lets weak "
            f"experts cancel the errors of better ones{where_all}; if that is not known, dependence='nested' has no "
            "negative weight"
        )
        warnings.warn(text, OpinionPoolWarning, stacklevel=3)


def _one_correlation(dependence: Dependence, given: npt.ArrayLike) -> float | None:
    """The correlation of all pairs, where it is one, given as a number or as a matrix."""
    if isinstance(dependence, CommonCorrelation):
        return dependence.rho
    matrix = np.asarray(given, dtype=np.float64)
    if matrix.ndim != 2 or len(matrix) < 3:
        return None
    pairs = matrix[np.triu_indices(len(matrix), 1)]
    return float(pairs[0]) if (pairs == pairs[0]).all() else None


BELIEVED = Extremes()
DEFAULT = Settings()
MOST_EXPERTS = 10_000_000


class Panel(PoolingPanel):
    """An immutable panel of N experts on events of K classes.

    Parameters
    ----------
    contrast : array_like, shape (N,)
        Contrast means mu, in log-odds (8).
    covariance : array_like, shape (N, N)
        Covariance Sigma of the contrasts within an outcome. Perfectly dependent experts are allowed where
        they are equally accurate: they share their weight.
    bias : float or array_like, shape (N,), or (N, K) when K > 2, default 0.0
        Bias b in log-odds (6); K > 2: in log-probabilities, of which only differences between classes count.
    names : sequence of str, optional
        ``expert_1`` ... if not given.
    classes : sequence, optional
        K labels, ``(0, 1)`` if not given. A binary forecast is the probability of ``classes[1]``.
    floor, pool_floor : float
        The least probability taken from an expert and given as an answer (model.md, section 4).
    extremes : Extremes, optional
        How far extreme statements are believed; entirely if not given.

    Raises
    ------
    PanelError, ShapeError, ExpertError
        If no panel has these parameters.

    Examples
    --------
    Two calibrated experts, the second one more accurate:

    >>> panel = Panel(contrast=[1.0, 2.0], covariance=[[2.0, 1.0], [1.0, 4.0]], names=["ann", "bob"])
    >>> panel.weights.round(4)
    array([0.5714, 0.8571])
    >>> float(panel.pool([0.8, 0.7]).round(4))
    0.8203
    """

    __slots__ = ("_plan",)

    _parts: Parts
    _plan: Plan | None

    def __init__(
        self,
        contrast: npt.ArrayLike,
        covariance: npt.ArrayLike,
        bias: npt.ArrayLike = 0.0,
        names: Iterable[object] | None = None,
        classes: Sequence[object] | None = None,
        *,
        floor: float = FLOOR,
        pool_floor: float = POOL_FLOOR,
        extremes: Extremes = BELIEVED,
    ) -> None:
        self._set(
            parts_of_parameters(contrast, covariance), bias, names, classes, Settings(floor, pool_floor, extremes)
        )

    @classmethod
    def from_features(  # noqa: PLR0913 - each is one thing that may be known
        cls,
        calibration: npt.ArrayLike,
        correlation: npt.ArrayLike,
        relative_accuracy: npt.ArrayLike = 1.0,
        accuracy: npt.ArrayLike | None = None,
        bias: npt.ArrayLike = 0.0,
        names: Iterable[object] | None = None,
        classes: Sequence[object] | None = None,
        *,
        dependence: str = "common",
        floor: float = FLOOR,
        pool_floor: float = POOL_FLOOR,
        extremes: Extremes = BELIEVED,
    ) -> Panel:
        """A panel from what can be assessed (Theorem 3.1).

        Parameters
        ----------
        calibration : float or array_like, shape (N,)
            kappa (13): 1 = take as is, below 1 = overconfident; 0 = says nothing, and gets weight 0.
        correlation : float or array_like, shape (N, N)
            One correlation for all pairs, above -1/(N-1) and at most 1, or the correlation matrix R.
        relative_accuracy : float or array_like, shape (N,), default 1.0
            m (16), above 0; relative to the first expert. Enough for pooling.
        accuracy : float or array_like, shape (N,), optional
            Absolute accuracy mu* (15): of the first expert if one number, else of each expert. Without it,
            whatever depends on absolute accuracy raises `AccuracyUnknownError`.
        bias, names, classes, floor, pool_floor, extremes
            As for `Panel`.
        dependence : {"common", "nested"}, default "common"
            What one correlation means for experts who are not equally accurate. "common" is the paper's (section 4.3),
            the same for all pairs, so that a weak expert beside strong ones can get a negative weight; a warning says
            so. "nested" takes what the weaker of two knows for a blurred copy of what the stronger knows: equally
            accurate experts have this correlation, from 0 to 1, others √(min m / max m) times as much, and no weight is
            negative (model.md, section 8).

        Raises
        ------
        PanelError, ShapeError, ExpertError
            If a calibration is below 0, an accuracy not above 0, a correlation outside its range, or if the
            arguments do not fit together.

        Examples
        --------
        >>> panel = Panel.from_features(calibration=[1.0, 0.8, 0.8], correlation=0.5, relative_accuracy=[1, 1, 0.5])
        >>> panel.weights.round(3)
        array([0.646, 0.517, 0.069])
        >>> few = dict(calibration=1.0, correlation=0.6, relative_accuracy=[1.0, 0.25])
        >>> Panel.from_features(**few, dependence="nested").weights.round(3)
        array([0.934, 0.44 ])
        """
        names = None if names is None else several(names, "names", ExpertError)
        n = number_of_experts(
            calibration=calibration,
            correlation=correlation,
            relative_accuracy=relative_accuracy,
            accuracy=0.0 if accuracy is None else accuracy,
            bias=bias,
            names=0.0 if names is None else names,
        )
        parts = parts_of_features(calibration, correlation, relative_accuracy, accuracy, n, dependence)
        panel = cls.from_parts(parts, bias, names, classes, Settings(floor, pool_floor, extremes))
        rho = _one_correlation(parts.dependence, correlation)
        if rho is not None and rho < 1.0:
            _warn_of_weights(panel, rho)
        return panel

    @classmethod
    def exchangeable(
        cls,
        n: int,
        calibration: float = 1.0,
        correlation: float = 0.0,
        accuracy: float | None = None,
        bias: float = 0.0,
        classes: Sequence[object] | None = None,
        *,
        names: Iterable[object] | None = None,
        floor: float = FLOOR,
        pool_floor: float = POOL_FLOOR,
        extremes: Extremes = BELIEVED,
    ) -> Panel:
        """N exchangeable experts (section 4.3): weights calibration / (1 + (N - 1) correlation).

        Examples
        --------
        >>> panel = Panel.exchangeable(2, calibration=0.9, correlation=0.95)
        >>> panel.weights.round(4), float(panel.pool([0.7, 0.8]).round(3))
        (array([0.4615, 0.4615]), 0.737)
        """
        n = whole_number(n, "n, the number of experts,", 1, MOST_EXPERTS, PanelError)
        parts = parts_of_features(calibration, correlation, 1.0, accuracy, n)
        panel = cls.from_parts(parts, bias, names, classes, Settings(floor, pool_floor, extremes))
        if correlation < 0:
            _warn_of_weights(panel, correlation)
        return panel

    @classmethod
    def from_parts(
        cls,
        parts: Parts,
        bias: npt.ArrayLike = 0.0,
        names: Iterable[object] | None = None,
        classes: Sequence[object] | None = None,
        settings: Settings = DEFAULT,
    ) -> Panel:
        """A panel from contrast, spread and dependence, taken as they are; what learning uses."""
        panel = cls.__new__(cls)
        panel._set(parts, bias, names, classes, settings)
        return panel

    def _set(
        self,
        parts: Parts,
        bias: npt.ArrayLike,
        names: Iterable[object] | None,
        classes: Sequence[object] | None,
        settings: Settings,
    ) -> None:
        n = len(parts.contrast)
        self._hold_parts(parts, bias_ratios(bias, n, self._label(n, names, classes, settings)))

    def _hold_parts(self, parts: Solver, bias: Array) -> None:
        super()._hold_parts(parts, bias)
        self._hold(plan=None)

    def __reduce__(self) -> tuple[object, ...]:
        return Panel.from_parts, (self._parts, self.bias, self._names, self._classes, self._settings)

    def _table(self) -> dict[str, list[Any]]:
        try:
            return super()._table()
        except AccuracyUnknownError:
            # Relative accuracies are all that this panel knows.
            own = {"weight": self.weights, "calibration": self.calibration, "relative_accuracy": self.relative_accuracy}
            return {"expert": list(self.names)} | {name: values.tolist() for name, values in own.items()}

    @property
    def parts(self) -> Parts:
        """Contrast, spread and dependence, as pooling uses them; their scale may be arbitrary."""
        return self._parts

    @property
    def calibration(self) -> Array:
        """Calibration kappa = 2 mu / sigma², (N,) (13); 0 for experts who say nothing."""
        return np.asarray(2.0 * self._parts.signal / self._parts.scale)

    @property
    def correlation(self) -> Array:
        """Correlation R of the contrasts within an outcome, (N, N)."""
        return self._parts.dependence.matrix()

    @property
    def relative_accuracy(self) -> Array:
        """Relative accuracy m = mu*_i / mu*_1, (N,) (16); 0 for experts who say nothing.

        Raises
        ------
        PanelError
            If the first expert, whom the others are measured against, has no accuracy.
        """
        squared = self._parts.signal**2
        if squared[0] == 0:
            raise PanelError(f"relative accuracy is measured against the first expert, and {self._names[0]!r} has none")
        return np.asarray(squared / squared[0])

    @property
    def contrast(self) -> Array:
        """Contrast means mu, (N,) (8). Needs an absolute accuracy."""
        self._parts.check_scale("contrast")
        return self._parts.contrast.copy()

    @property
    def covariance(self) -> Array:
        """Covariance Sigma of the contrasts within an outcome, (N, N). Needs an absolute accuracy."""
        self._parts.check_scale("covariance")
        self._parts.check_spread(self._names)
        return np.asarray(self.correlation * np.outer(self._parts.spread, self._parts.spread))

    @property
    def accuracy(self) -> Array:
        """Accuracy mu* = kappa mu of each expert by itself, (N,) (15). Needs an absolute accuracy."""
        self._parts.check_scale("accuracy")
        return 2.0 * self._parts.signal**2

    @property
    def joint_accuracy(self) -> float:
        """Accuracy mu* = w'mu of the panel together (15). Needs an absolute accuracy."""
        self._parts.check_scale("joint accuracy")
        return float(self.weights @ self._parts.contrast)

    def pool(
        self, probabilities: npt.ArrayLike, prior: npt.ArrayLike = 0.5, base_rate: npt.ArrayLike | None = None
    ) -> Array:
        """The pooled probability (11), see `PoolingPanel.pool`; binary events that share all else take a short way."""
        answers = self._pool_alike(probabilities, one_number(prior), base_rate)
        return super().pool(probabilities, prior, base_rate) if answers is None else answers

    def _pool_alike(
        self, probabilities: npt.ArrayLike, prior: float | None, base_rate: npt.ArrayLike | None
    ) -> Array | None:
        """Binary events that share prior and base rate; None for others, which take longer."""
        rate = one_number(base_rate)
        if len(self._classes) > 2 or prior is None or (rate is None and base_rate is not None):
            return None
        q = binary_forecasts(probabilities, len(self._names))
        if q is None:
            return None
        if self._plan is None:
            self._hold(plan=Plan.of(self._parts, self._bias, self._settings))
        assert self._plan is not None
        return pool_alike(self._plan, q, prior, rate)

    def answer_parts(self, batch: Batch) -> AnswerParts:
        """The answer about one event as a sum; where extremes have a centre, it is each one's bias.

        What then is left of the bias is in the intercept.
        """
        centre = self._settings.extremes.centre
        bias = self._bias if centre is None else centre
        beyond = self._settings.contrasts(batch)[0]
        present = ~np.isnan(beyond[:, :1])
        contrast = np.where(present, beyond - bias, 0.0)
        weights = self.weights_for(present.T)[0]
        intercept = np.asarray(weights @ (bias - self._bias))
        added = weights[:, None] * contrast
        return AnswerParts("log-odds", bias, contrast, weights, added, batch.reference[0], intercept)

    def simulate(
        self, events: int, prior: npt.ArrayLike = 0.5, seed: int | np.random.Generator | None = None
    ) -> tuple[Array, npt.NDArray[np.generic]]:
        """Forecasts and outcomes drawn from the model, see `PoolingPanel.simulate`; needs an absolute accuracy."""
        self._parts.check_scale("simulation")
        self._parts.check_spread(self._names)
        return super().simulate(events, prior, seed)
