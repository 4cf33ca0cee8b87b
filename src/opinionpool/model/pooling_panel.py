"""What every panel offers, whatever stands behind it: a base class, and draws from a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import labels_given, whole_number
from opinionpool.arrays import Array, Mask, seeded
from opinionpool.display import Tabular
from opinionpool.errors import PanelError
from opinionpool.model.contrasts import AnswerParts, Batch
from opinionpool.model.features import Parts
from opinionpool.model.pooling import (
    Settings,
)
from opinionpool.names import expert_names
from opinionpool.priors import spread_prior


class PoolingPanel(Tabular, ABC):
    """An immutable panel of N experts on events of K classes; `Panel` and `FullPanel` are such.

    Weights, calibration and accuracy mean the same for both; where a model has more than one weight for an expert,
    they are averages over the classes.
    """

    __slots__ = ("_classes", "_names", "_settings")

    _names: tuple[str, ...]
    _classes: tuple[object, ...]
    _settings: Settings

    def _hold(self, **values: object) -> None:
        """Fill slots, which cannot be done later."""
        for slot, value in values.items():
            object.__setattr__(self, f"_{slot}", value)

    def _label(
        self, n: int, names: Iterable[object] | None, classes: Sequence[object] | None, settings: Settings
    ) -> int:
        """Check and hold names and classes; K."""
        labels = (0, 1) if classes is None else labels_given(classes, "classes", PanelError)
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise PanelError(f"classes must be at least two different labels, not {labels}")
        for name in ("floor", "pool_floor"):
            logodds.check_floor(getattr(settings, name), name)
        self._hold(classes=labels, names=expert_names(names, n), settings=settings)
        return len(labels)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a panel is immutable; make a new one instead of setting {name!r}")

    def __len__(self) -> int:
        return len(self._names)

    def _table(self) -> dict[str, list[Any]]:
        columns = {"weight": self.weights, "calibration": self.calibration, "accuracy": self.accuracy}
        return {"expert": list(self._names)} | {name: values.tolist() for name, values in columns.items()}

    def __repr__(self) -> str:
        kind = type(self).__name__
        try:
            weights = self.weights.tolist()
        except PanelError:
            return f"<{kind} of {len(self)} experts, whose weights have no limit>"
        shown = ", ".join(f"{name} {weight:.3g}" for name, weight in zip(self._names[:6], weights, strict=False))
        more = f", ... {len(self) - 6} more" if len(self) > 6 else ""
        return f"<{kind} of {len(self)} experts, weights: {shown}{more}>"

    @property
    def names(self) -> tuple[str, ...]:
        """N expert names."""
        return self._names

    @property
    def classes(self) -> tuple[object, ...]:
        """K class labels."""
        return self._classes

    @property
    def settings(self) -> Settings:
        """The floors, and how far extreme statements are believed."""
        return self._settings

    @property
    def weights(self) -> Array:
        """Weights w = 2 Sigma⁻¹ mu when every expert is present, (N,) (10)."""
        return np.asarray(self.weights_for(np.ones((1, len(self)), dtype=bool))[0])

    @property
    def prior_weight(self) -> float:
        """Weight 1 - sum(w) of the prior's log-odds (12)."""
        return float(1.0 - self.weights.sum())

    @property
    @abstractmethod
    def informative(self) -> Mask:
        """False for experts who say nothing, (N,)."""

    @property
    @abstractmethod
    def bias(self) -> Array:
        """Bias b in log-odds, (N,); K > 2: in log-probabilities centred over the classes, (N, K) (6)."""

    @property
    @abstractmethod
    def calibration(self) -> Array:
        """Calibration kappa of each expert by itself, (N,) (13); 0 for uninformative experts."""

    @property
    @abstractmethod
    def accuracy(self) -> Array:
        """Accuracy mu* of each expert by itself, (N,) (15)."""

    @property
    @abstractmethod
    def joint_accuracy(self) -> float:
        """Accuracy mu* of the panel together (15)."""

    @abstractmethod
    def weights_for(self, present: Mask) -> Array:
        """Weights of the exact sub-panels of those present, (T, N), 0 where absent (model.md, section 2.3)."""

    @abstractmethod
    def pool(
        self, probabilities: npt.ArrayLike, prior: npt.ArrayLike = 0.5, base_rate: npt.ArrayLike | None = None
    ) -> Array:
        """The pooled probability (11), (..., N) to (...); K > 2: (..., N, K) to (..., K)."""

    @abstractmethod
    def contributions(self, probabilities: npt.ArrayLike, prior: npt.ArrayLike = 0.5) -> Array:
        """What each expert adds to the pooled log-odds, 0 where missing, (..., N), or (..., N, K) when K > 2."""

    @abstractmethod
    def answer_parts(self, batch: Batch) -> AnswerParts:
        """The answer about one event as a sum, see `AnswerParts`."""

    @abstractmethod
    def subset(self, experts: Iterable[object]) -> PoolingPanel:
        """The panel of some of the experts, exactly (model.md, section 2.3)."""

    @abstractmethod
    def simulate(
        self, events: int, prior: npt.ArrayLike = 0.5, seed: int | np.random.Generator | None = None
    ) -> tuple[Array, npt.NDArray[np.generic]]:
        """Forecasts and outcomes drawn from the model."""


def draw(
    parts: Parts,
    bias: Array,
    classes: Sequence[object],
    events: int,
    prior: npt.ArrayLike,
    seed: int | np.random.Generator | None,
) -> tuple[Array, npt.NDArray[np.generic]]:
    """Forecasts (T, N), or (T, N, K) when K > 2, and outcomes (T,), from contrasts on a known scale.

    Noise is drawn for each class and differenced, so that it does not depend on the reference class.

    Raises
    ------
    ArgumentError, ProbabilityError
        If there is no such number of events, or no such prior.
    """
    k, n = len(classes), len(parts.contrast)
    rng = seeded(seed)
    p, happened = draw_outcomes(events, prior, k, rng)
    noise = parts.dependence.correlate(rng.standard_normal((len(p), k, n))) * (parts.spread / np.sqrt(2.0))
    ratios = logodds.prior_log_ratios(p)[:, None, :] + bias
    ratios = ratios + parts.contrast[:, None] * logodds.signature(k)[happened][:, None, :]
    ratios = ratios + np.swapaxes(noise[:, 1:] - noise[:, :1], 1, 2)
    forecast = logodds.softmax(ratios)
    return (forecast[..., 1] if k == 2 else forecast), np.array(classes)[happened]


def draw_outcomes(
    events: int, prior: npt.ArrayLike, classes: int, rng: np.random.Generator
) -> tuple[Array, npt.NDArray[np.intp]]:
    """The prior of each event, (T, K), and its outcome, (T,)."""
    count = whole_number(events, "events", 0)
    p = spread_prior(prior, (count,), classes)
    happened = (rng.random(count)[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    return p, happened
