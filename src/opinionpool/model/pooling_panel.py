"""What every panel offers, whatever weighs its experts: a base class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import labels_given, whole_number
from opinionpool.arrays import Array, Mask, seeded
from opinionpool.display import Tabular
from opinionpool.errors import PanelError
from opinionpool.model.contrasts import AnswerParts, Batch, base_rate_shift, read_batch
from opinionpool.model.pooling import Settings, Solver, contributions, pooled
from opinionpool.names import by_name, chosen_positions, expert_names
from opinionpool.priors import spread_prior


class PoolingPanel(Tabular, ABC):
    """An immutable panel of N experts on events of K classes; `Panel` and `FullPanel` are such.

    Weights, calibration and accuracy mean the same for both; where a model has more than one weight for an expert,
    they are averages over the classes.
    """

    __slots__ = ("_bias", "_classes", "_names", "_parts", "_settings")

    _parts: Solver
    _bias: Array  # (N, K - 1)
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

    def _hold_parts(self, parts: Solver, bias: Array) -> None:
        """Hold what pooling uses, read-only."""
        for array in (*vars(parts).values(), bias):
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
        self._hold(parts=parts, bias=bias)

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
    def parts(self) -> Solver:
        """What weighs the experts."""
        return self._parts

    @property
    def informative(self) -> Mask:
        """False for experts who say nothing: calibration assessed as 0, or forecasts that never move, (N,)."""
        return self._parts.informative

    @property
    def bias(self) -> Array:
        """Bias b in log-odds, (N,); K > 2: in log-probabilities centred over the classes, (N, K) (6)."""
        return logodds.public_log_odds(self._bias).copy()

    @property
    def bias_ratios(self) -> Array:
        """The same as log-ratios, (N, K - 1)."""
        return self._bias

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

    def weights_for(self, present: Mask) -> Array:
        """Weights of the exact sub-panels of those present, (T, N), 0 where absent (model.md, section 2.3).

        Parameters
        ----------
        present : ndarray of bool, shape (T, N)
        """
        return self._parts.weights_for(present)

    def _read(self, probabilities: npt.ArrayLike, prior: npt.ArrayLike) -> Batch:
        return read_batch(by_name(probabilities, self._names), prior, len(self), len(self._classes))

    def pool(
        self, probabilities: npt.ArrayLike, prior: npt.ArrayLike = 0.5, base_rate: npt.ArrayLike | None = None
    ) -> Array:
        """The pooled probability (11).

        Parameters
        ----------
        probabilities : array_like, shape (..., N), or (..., N, K) when K > 2
            NaN where a forecast is missing; the others are weighted as the sub-panel they are. With none at
            all the answer is the prior.
        prior : float or array_like, shape (...), or (K,), (..., K) when K > 2, default 0.5
            The reference that the experts share.
        base_rate : same as `prior`, optional
            How frequent the event is where the answer is used; adds logit(base_rate) - logit(prior).

        Returns
        -------
        ndarray, shape (...), or (..., K) when K > 2

        Raises
        ------
        ProbabilityError, ShapeError
            If a probability is outside [0, 1], a prior outside (0, 1), or shapes disagree.
        """
        batch = self._read(probabilities, prior)
        shift = base_rate_shift(base_rate, batch)
        return batch.shape_answers(pooled(self._parts, self._bias, batch, shift, self._settings))

    def contributions(self, probabilities: npt.ArrayLike, prior: npt.ArrayLike = 0.5) -> Array:
        """What each expert adds to the pooled log-odds, 0 where missing: w_i C_i in the class-symmetric model.

        They add up to the pooled log-odds minus the prior's, before the floor on the answer.

        Returns
        -------
        ndarray, shape (..., N), or (..., N, K) when K > 2, centred over the classes
        """
        batch = self._read(probabilities, prior)
        full = logodds.public_log_odds(contributions(self._parts, self._bias, batch, self._settings))
        return full.reshape(batch.lead + full.shape[1:])

    @abstractmethod
    def answer_parts(self, batch: Batch) -> AnswerParts:
        """The answer about one event as a sum, see `AnswerParts`."""

    def subset(self, experts: Iterable[object]) -> Self:
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
        settings = self._settings._replace(extremes=self._settings.extremes.subset(positions))
        panel = type(self).__new__(type(self))
        panel._hold(names=tuple(self._names[i] for i in positions), classes=self._classes, settings=settings)
        panel._hold_parts(self._parts.subset(positions), self._bias[positions])
        return panel

    def simulate(
        self, events: int, prior: npt.ArrayLike = 0.5, seed: int | np.random.Generator | None = None
    ) -> tuple[Array, npt.NDArray[np.generic]]:
        """Forecasts and outcomes drawn from the model (5), (9). Needs an absolute accuracy.

        Parameters
        ----------
        events : int
            T.
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
            If there is no such number of events, or no such prior.
        """
        k, rng = len(self._classes), seeded(seed)
        p, happened = _outcomes(events, prior, k, rng)
        ratios = logodds.prior_log_ratios(p)[:, None, :] + self._bias + self._parts.drawn(happened, k, rng)
        forecast = logodds.softmax(ratios)
        return (forecast[..., 1] if k == 2 else forecast), np.array(self._classes)[happened]


def _outcomes(
    events: int, prior: npt.ArrayLike, classes: int, rng: np.random.Generator
) -> tuple[Array, npt.NDArray[np.intp]]:
    """The prior of each event, (T, K), and its outcome, (T,)."""
    count = whole_number(events, "events", 0)
    p = spread_prior(prior, (count,), classes)
    happened = (rng.random(count)[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    return p, happened
