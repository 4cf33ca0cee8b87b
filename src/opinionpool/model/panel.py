"""A panel of experts: the Gaussian model of their log-odds and the pool that follows from it.

Kahn (UAI 2004), sections 2 to 4; model.md, sections 1 to 3. `PoolingPanel` is what `Panel`, in which all classes are
alike, and `opinionpool.model.full_panel.FullPanel` have in common.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import labels_given, several, whole_number
from opinionpool.arrays import Array, Mask, seeded
from opinionpool.display import Tabular
from opinionpool.errors import ArgumentError, ExpertError, OpinionPoolWarning, PanelError
from opinionpool.forecasts import Forecasts
from opinionpool.logodds import FLOOR, POOL_FLOOR
from opinionpool.model.contrasts import AnswerParts, Batch, Extremes, padded_cells, read_batch
from opinionpool.model.features import Parts, bias_ratios, number_of_experts, parts_of_features, parts_of_parameters
from opinionpool.model.pooling import Settings, Solver, contributions, pooled
from opinionpool.names import by_name, chosen_positions, expert_names, places
from opinionpool.priors import spread_prior


def class_labels(classes: Sequence[object] | None) -> tuple[object, ...]:
    """Return the checked labels of the classes, 0 and 1 if `classes` is None."""
    labels = (0, 1) if classes is None else labels_given(classes, "classes", PanelError)
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise PanelError(f"classes must be at least two different labels, not {labels}")
    return labels


class PoolingPanel(Tabular, ABC):
    """An immutable panel of N experts on events of K classes; the base class of `Panel` and `FullPanel`.

    Weights, calibration and accuracy have one meaning in both; where a model has more than one weight for an expert,
    the attributes are averages over the classes.
    """

    __slots__ = {
        "bias_ratios": "Bias as log-ratios, (N, K - 1).",
        "classes": "K class labels.",
        "names": "N expert names.",
        "parts": "Parameters of the model, from which the weights follow.",
        "settings": "Floors of probabilities, and the moderation of extreme forecasts.",
    }

    parts: Solver  # the model: features of the experts, or class means
    bias_ratios: Array  # (N, K - 1); biases as log-ratios
    names: tuple[str, ...]
    classes: tuple[object, ...]
    settings: Settings

    def _set(
        self,
        parts: Solver,
        bias: Array | None,
        names: Iterable[object] | None,
        classes: Sequence[object] | None,
        settings: Settings,
    ) -> None:
        """Check and set the attributes; `parts` are the model's parameters. Arrays become read-only."""
        labels, n = class_labels(classes), len(parts.informative)
        for name in ("floor", "pool_floor"):
            logodds.check_floor(getattr(settings, name), name)
        bias = np.zeros((n, len(labels) - 1)) if bias is None else np.array(bias)
        for array in (*vars(parts).values(), bias):
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
        values = {"parts": parts, "bias_ratios": bias, "names": expert_names(names, n), "classes": labels}
        for slot, value in (values | {"settings": settings}).items():
            object.__setattr__(self, slot, value)

    @classmethod
    def from_parts(
        cls,
        parts: Any,  # noqa: ANN401 - `Parts` of a `Panel`, the `Discriminant` of a `FullPanel`
        bias: Array | None = None,
        names: Iterable[object] | None = None,
        classes: Sequence[object] | None = None,
        settings: Settings = Settings(),  # noqa: B008 - it does not change
    ) -> Self:
        """Return a panel from a model's `parts` and `bias` as log-ratios (N, K - 1), neither of which is checked."""
        panel = cls.__new__(cls)
        panel._set(parts, bias, names, classes, settings)
        return panel

    def __reduce__(self) -> tuple[object, ...]:
        return type(self).from_parts, (self.parts, self.bias_ratios, self.names, self.classes, self.settings)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a panel is immutable; make a new one instead of setting {name!r}")

    def __len__(self) -> int:
        return len(self.names)

    def _table(self) -> dict[str, list[Any]]:
        columns = {"weight": self.weights, "calibration": self.calibration, **self._accuracies()}
        return {"expert": list(self.names)} | {name: values.tolist() for name, values in columns.items()}

    def _accuracies(self) -> dict[str, Array]:
        return {"accuracy": self.accuracy}

    def __repr__(self) -> str:
        kind = type(self).__name__
        try:
            weights = self.weights.tolist()
        except PanelError:
            return f"<{kind} of {len(self)} experts, whose weights have no limit>"
        shown = ", ".join(f"{name} {weight:.3g}" for name, weight in zip(self.names[:6], weights, strict=False))
        more = f", ... {len(self) - 6} more" if len(self) > 6 else ""
        return f"<{kind} of {len(self)} experts, weights: {shown}{more}>"

    @property
    def weights(self) -> Array:
        """Weights of the experts when all are present, w = 2 Sigma⁻¹ mu, (N,) (paper, equation 10)."""
        return self.parts.weights.copy()

    @property
    def prior_weight(self) -> float:
        """Weight 1 - sum(w) of the prior's log-odds (paper, equation 12)."""
        return float(1.0 - self.weights.sum())

    @property
    def informative(self) -> Mask:
        """True for experts with an influence, (N,); False for calibration 0 and for forecasts that never vary."""
        return self.parts.informative

    @property
    def bias(self) -> Array:
        """Bias b in log-odds, (N,); when K > 2, in log-probabilities less their mean over classes, (N, K)."""
        return logodds.public_log_odds(self.bias_ratios).copy()

    @property
    @abstractmethod
    def calibration(self) -> Array:
        """Calibration kappa of each expert, (N,) (paper, equation 13); 0 for uninformative experts."""

    @property
    @abstractmethod
    def accuracy(self) -> Array:
        """Accuracy mu* of each expert by itself, in log-odds, (N,) (paper, equation 15)."""

    @property
    @abstractmethod
    def joint_accuracy(self) -> float:
        """Accuracy mu* of the panel's pooled forecast, in log-odds (paper, equation 15)."""

    def weights_for(self, present: Mask) -> Array:
        """Return the weights of the experts that `present` (T, N) marks in each row, (T, N), 0 for the others."""
        return self.parts.weights_for(present)

    def read(self, probabilities: npt.ArrayLike, prior: npt.ArrayLike, base_rate: npt.ArrayLike | None = None) -> Batch:
        """Return the `Batch` of forecasts by all experts; the arguments are those of `pool`."""
        floor, pool_floor, _ = self.settings
        q = by_name(probabilities, self.names)
        return read_batch(q, prior, len(self.names), len(self.classes), base_rate, floor, pool_floor)

    def pool(
        self, probabilities: npt.ArrayLike, prior: npt.ArrayLike = 0.5, base_rate: npt.ArrayLike | None = None
    ) -> Array:
        """Return the pooled probability of each event (paper, equation 11).

        Parameters
        ----------
        probabilities : array_like, shape (..., N), or (..., N, K) when K > 2
            NaN where a forecast is missing: the experts present get the weights of a panel without the others.
            For an event without a forecast the answer is the prior.
        prior : float or array_like, shape (...), or (K,), (..., K) when K > 2, default 0.5
            Prior probability of the event (or of its classes), which all experts start from.
        base_rate : same as `prior`, optional
            Frequency of such events where the answer is used; adds logit(base_rate) - logit(prior).

        Returns
        -------
        ndarray, shape (...), or (..., K) when K > 2

        Raises
        ------
        ProbabilityError, ShapeError
            If a probability is outside [0, 1], a prior outside (0, 1), or shapes disagree.
        """
        batch = self.read(probabilities, prior, base_rate)
        return batch.as_asked(self.answers(batch))

    def answers(self, batch: Batch) -> Array:
        """Return the pooled probabilities of a batch, (T,), or (T, K) when K > 2."""
        return pooled(self.parts, self.bias_ratios, self.settings, batch)

    def pool_forecasts(
        self, forecasts: Forecasts, prior: npt.ArrayLike = 0.5, base_rate: npt.ArrayLike | None = None
    ) -> Array:
        """Return the pooled probability of every event, (T,) or (T, K), as `pool` does for an array of the forecasts.

        The forecasts may be by some of the experts, in any order; priors in `forecasts` are ignored.

        Raises
        ------
        ExpertError, ArgumentError
            If an expert is not in the panel, or events have options of their own and the panel has biases.

        Examples
        --------
        >>> panel = Panel.exchangeable(3, correlation=0.5, names=["ann", "bob", "cat"])
        >>> f = Forecasts.from_array([[0.7, 0.8], [float("nan"), 0.6]], experts=["cat", "ann"])
        >>> panel.pool_forecasts(f).round(4)
        array([0.8159, 0.6   ])
        """
        experts = places(forecasts.experts, self.names)[forecasts.expert_index]
        panel = self if forecasts.options is None else self.for_options(forecasts.classes)
        floor, pool_floor, _ = self.settings
        answers = np.empty((len(forecasts.events), *forecasts.probabilities.shape[1:]))
        nothing = np.empty((len(answers), 0, *answers.shape[1:]))
        events = read_batch(nothing, prior, 0, len(panel.classes), base_rate, floor, pool_floor)
        for rows, cells, present in padded_cells(forecasts.event_index, len(answers)):
            q = forecasts.probabilities[cells]
            q[~present] = np.nan
            batch = events.of_events(rows, q, experts[cells])
            answers[rows] = pooled(panel.parts, panel.bias_ratios, panel.settings, batch)
        return answers

    def for_options(self, slots: tuple[object, ...]) -> Panel:  # noqa: ARG002 - of panels without classes of their own
        """Copy for events with options of their own, classes replaced by `slots`; an ArgumentError if it has biases."""
        raise ArgumentError(
            f"this panel has biases for the classes {self.classes}, and these events have options of their own"
        )

    def contributions(self, probabilities: npt.ArrayLike, prior: npt.ArrayLike = 0.5) -> Array:
        """Return the experts' contributions to the pooled log-odds, (..., N), or (..., N, K) if K > 2.

        A contribution is the expert's weight times (log-odds of the forecast − prior log-odds − bias), 0 where the
        forecast is missing. Contributions add up to the pooled log-odds, before the answer's floor, less the prior's.
        If K > 2 they are centred over the classes.
        """
        batch = self.read(probabilities, prior)
        return batch.as_asked(
            logodds.public_log_odds(contributions(self.parts, self.bias_ratios, self.settings, batch))
        )

    @abstractmethod
    def answer_parts(self, batch: Batch) -> AnswerParts:
        """The answer about the one event of `batch` as a sum: start, intercept and contributions; see `AnswerParts`."""

    def subset(self, experts: Iterable[object]) -> Self:
        """Return the panel of some of the experts, with the weights that the model implies (model.md, section 2.3).

        Parameters
        ----------
        experts : iterable of str or int
            Names or positions; an `ExpertError` if it is empty, or an expert is unknown or repeated.
        """
        at = chosen_positions(experts, self.names)
        settings = self.settings._replace(extremes=self.settings.extremes.subset(at))
        names = tuple(self.names[i] for i in at)
        return self.from_parts(self.parts.subset(at), self.bias_ratios[at], names, self.classes, settings)

    def simulate(
        self, events: int, prior: npt.ArrayLike = 0.5, seed: int | np.random.Generator | None = None
    ) -> tuple[Array, npt.NDArray[np.generic]]:
        """Return forecasts and outcomes drawn from the model (paper, equations 5 and 9); needs an absolute accuracy.

        Parameters
        ----------
        events : int
            Number of events, T.
        prior : float or array_like, shape (T,), or (K,), (T, K) when K > 2
            The probability with which each event is drawn, shared by the experts.
        seed : int or numpy Generator, optional

        Returns
        -------
        X : ndarray, shape (T, N), or (T, N, K) when K > 2
        y : ndarray, shape (T,)
            Members of `classes`.

        Raises
        ------
        ArgumentError, ProbabilityError
            If `events` is no whole number from 0, or a prior is outside (0, 1).
        """
        k, rng, count = len(self.classes), seeded(seed), whole_number(events, "events", 0)
        p = spread_prior(prior, (count,), k)
        happened = (rng.random(count)[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
        ratios = logodds.prior_log_ratios(p)[:, None, :] + self.bias_ratios + self.parts.drawn(happened, k, rng)
        return logodds.public_probabilities(logodds.softmax(ratios)), np.array(self.classes)[happened]


# Below this part of the variance of a mean of independent experts, theirs is left to how they cancel each other.
NEARLY_NONE = 0.1


def _warn_of_weights(panel: Panel, given: npt.ArrayLike) -> None:
    """Warn if one correlation `given` for all pairs makes a weight negative, or is near the least one possible."""
    r = np.asarray(given, dtype=np.float64)
    pairs = np.unique(r[np.triu_indices(len(r), 1)]) if r.ndim else r[None]
    if len(pairs) != 1 or (r.ndim and len(r) < 3) or pairs[0] >= 1.0:
        return
    weights, n, rho = panel.weights, int(panel.informative.sum()), float(pairs[0])
    if n > 1 and 1.0 + (n - 1.0) * rho < NEARLY_NONE:
        text = (
            f"the correlation {rho:.6g} is close to the least of {n} experts, {-1.0 / (n - 1.0):.6g}, where "
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


BELIEVED = Extremes()
MOST_EXPERTS = 10_000_000


class Panel(PoolingPanel):
    """An immutable panel of N experts on events of K classes.

    Parameters
    ----------
    contrast : array_like, shape (N,)
        Means mu of contrasts: mean log-odds less the prior's if the event happens (paper, equation 8).
    covariance : array_like, shape (N, N)
        Covariance Sigma of the contrasts given the outcome. Perfectly dependent experts must be equally accurate,
        and share one weight.
    bias : float or array_like, shape (N,), or (N, K) when K > 2, default 0.0
        Bias b in log-odds (6), or if K > 2 in log-probabilities, of which only differences between classes matter.
    names : sequence of str, optional
        ``expert_1`` ... if not given.
    classes : sequence, optional
        K labels, ``(0, 1)`` if not given. A binary forecast is the probability of ``classes[1]``.
    floor, pool_floor : float
        The least probability taken from an expert and given as an answer (model.md, section 4).
    extremes : Extremes, optional
        Moderation of extreme forecasts; no moderation if not given.

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

    __slots__ = ()

    parts: Parts

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
        parts, labels = parts_of_parameters(contrast, covariance), class_labels(classes)
        ratios = bias_ratios(bias, len(parts.contrast), len(labels))
        self._set(parts, ratios, names, labels, Settings(floor, pool_floor, extremes))

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
        """Return a panel from assessed calibration, correlation, accuracy and bias of the experts (Theorem 3.1).

        Parameters
        ----------
        calibration : float or array_like, shape (N,)
            kappa (equation 13): 1 = use as it is, below 1 = overconfident, 0 = uninformative, with weight 0.
        correlation : float or array_like, shape (N, N)
            One correlation for all pairs, above -1/(N-1) and at most 1, or the correlation matrix R.
        relative_accuracy : float or array_like, shape (N,), default 1.0
            Accuracy relative to the first expert's, m (equation 16), above 0; enough for pooling.
        accuracy : float or array_like, shape (N,), optional
            Absolute accuracy mu* (equation 15): of the first expert if one number, else of each expert. Without it,
            attributes and methods that depend on absolute accuracy raise `AccuracyUnknownError`.
        bias, names, classes, floor, pool_floor, extremes
            As for `Panel`.
        dependence : {"common", "nested"}, default "common"
            Meaning of one `correlation` for experts of unequal accuracy. "common" (paper, section 4.3): all pairs have
            it, so that a weak expert beside strong ones can get a negative weight, with a warning. "nested": what the
            weaker of two experts knows is a blurred copy of what the stronger one knows. Equally accurate experts have
            the correlation, from 0 to 1, others √(min m / max m) times as much, and no weight is negative
            (model.md, section 8).

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
        ratios = bias_ratios(bias, n, len(class_labels(classes)))
        panel = cls.from_parts(parts, ratios, names, classes, Settings(floor, pool_floor, extremes))
        _warn_of_weights(panel, correlation)
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
        """Return a panel of `n` equal experts (paper, 4.3), with weights calibration / (1 + (n - 1) correlation).

        Examples
        --------
        >>> panel = Panel.exchangeable(2, calibration=0.9, correlation=0.95)
        >>> panel.weights.round(4), float(panel.pool([0.7, 0.8]).round(3))
        (array([0.4615, 0.4615]), 0.737)
        """
        n = whole_number(n, "n, the number of experts,", 1, MOST_EXPERTS, PanelError)
        return cls.from_features(
            calibration, correlation, np.ones(n), accuracy, bias, expert_names(names, n), classes, floor=floor,
            pool_floor=pool_floor, extremes=extremes,
        )  # fmt: skip

    def _accuracies(self) -> dict[str, Array]:
        return super()._accuracies() if self.parts.absolute else {"relative_accuracy": self.relative_accuracy}

    @property
    def calibration(self) -> Array:
        """Calibration kappa = 2 mu / sigma², (N,) (paper, equation 13); 0 for uninformative experts."""
        return np.asarray(2.0 * self.parts.signal / self.parts.scale)

    @property
    def correlation(self) -> Array:
        """Correlation matrix R of the experts' log-odds given the outcome, (N, N)."""
        return self.parts.matrix()

    @property
    def relative_accuracy(self) -> Array:
        """Relative accuracy m = mu*_i / mu*_1, (N,) (paper, equation 16); 0 for uninformative experts.

        Raises
        ------
        PanelError
            If the first expert, by whose accuracy the others are divided, is uninformative.
        """
        squared = self.parts.signal**2
        if squared[0] == 0:
            raise PanelError(f"relative accuracy is measured against the first expert, and {self.names[0]!r} has none")
        return np.asarray(squared / squared[0])

    @property
    def contrast(self) -> Array:
        """Mean of each expert's log-odds less the prior's log-odds if the event happens, mu, (N,) (equation 8).

        Raises AccuracyUnknownError if only ratios between the experts' accuracies are known.
        """
        self.parts.check_scale("contrast")
        return self.parts.contrast.copy()

    @property
    def covariance(self) -> Array:
        """Covariance Sigma of the experts' log-odds given the outcome, (N, N). Needs an absolute accuracy."""
        self.parts.check_scale("covariance")
        self.parts.check_spread(self.names)
        return np.asarray(self.correlation * np.outer(self.parts.spread, self.parts.spread))

    @property
    def accuracy(self) -> Array:
        """Accuracy mu* = kappa mu of each expert, (N,) (paper, equation 15). Needs an absolute accuracy."""
        self.parts.check_scale("accuracy")
        return 2.0 * self.parts.signal**2

    @property
    def joint_accuracy(self) -> float:
        """Accuracy mu* = w'mu of the panel's pooled forecast (paper, equation 15). Needs an absolute accuracy."""
        self.parts.check_scale("joint accuracy")
        return float(self.weights @ self.parts.contrast)

    def for_options(self, slots: tuple[object, ...]) -> Panel:
        """Copy for events with options of their own, classes replaced by `slots`; an ArgumentError if it has biases."""
        if self.bias_ratios.any():
            return super().for_options(slots)
        if slots == self.classes:
            return self
        settings = self.settings._replace(extremes=replace(self.settings.extremes, centre=None))
        return Panel.from_parts(self.parts, None, self.names, slots, settings)

    def answer_parts(self, batch: Batch) -> AnswerParts:
        """The answer about the one event of `batch` as a sum over experts; learned null forecasts replace biases.

        An expert's null forecast is the one that it gives when it knows nothing. The part of the biases that null
        forecasts do not explain is in the intercept.
        """
        centre = self.settings.extremes.centre
        bias = self.bias_ratios if centre is None else centre
        beyond = self.settings.contrasts(batch)[0] - bias
        present = ~np.isnan(beyond)
        weights, added = self.weights_for(present[:, 0][None])[0], self.parts.added(beyond[None])[0]
        contrast, intercept = np.where(present, beyond, 0.0), np.asarray(weights @ (bias - self.bias_ratios))
        return AnswerParts("log-odds", bias, contrast, weights, added, batch.reference[0], intercept)

    def simulate(
        self, events: int, prior: npt.ArrayLike = 0.5, seed: int | np.random.Generator | None = None
    ) -> tuple[Array, npt.NDArray[np.generic]]:
        """Return forecasts and outcomes drawn from the model, see `PoolingPanel.simulate`."""
        self.parts.check_scale("simulation")
        self.parts.check_spread(self.names)
        return super().simulate(events, prior, seed)
