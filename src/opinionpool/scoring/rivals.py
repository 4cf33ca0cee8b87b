"""Rivals of pools in a comparison: classifiers of scikit-learn, and given probabilities."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import ArgumentError, LearningError, ShapeError
from opinionpool.forecasts import Forecasts
from opinionpool.logodds import FLOOR, all_classes, logit, public_probabilities
from opinionpool.scoring.scores import checked


@dataclass(frozen=True, eq=False)
class Rival:
    """Rival of the pools: a classifier to be fitted to the experts' log-odds, or T given answers."""

    name: str
    classifier: Any = None
    probabilities: Array | None = None  # (T,) or (T, K)

    @classmethod
    def of(cls, name: str, given: object, forecasts: Forecasts) -> Rival:
        """Validated rival from a classifier or probabilities."""
        if forecasts.options is not None:
            raise ArgumentError(f"the rival {name!r} needs classes that all events share, and events have options here")
        if callable(getattr(given, "predict_proba", None)) and not isinstance(given, type):
            return cls(name, classifier=given)
        if callable(given) or isinstance(given, str):
            raise ArgumentError(
                f"the rival {name!r} must be a classifier with fit and predict_proba, or a probability for each event"
            )
        p: npt.ArrayLike = given  # type: ignore[assignment]
        found, _ = checked(p, np.where(forecasts.resolved, forecasts.outcomes, np.nan))
        if found.shape != (len(forecasts.events), *forecasts.probabilities.shape[1:]):
            raise ShapeError(f"the rival {name!r} needs a probability of each of {len(forecasts.classes)} classes")
        return cls(name, probabilities=found)

    @property
    def learns(self) -> bool:
        """Return True if the rival's answers depend on outcomes."""
        return self.probabilities is None

    @property
    def missing(self) -> Mask:
        """Mask of events without an answer, (T,); a single False for a classifier, which answers every event."""
        if self.probabilities is None:
            return np.zeros(1, dtype=bool)
        return np.asarray(np.isnan(self.probabilities.reshape(len(self.probabilities), -1)).any(axis=1))

    def among(self, rows: Index) -> Rival:
        """Rival restricted to the events `rows`."""
        return self if self.probabilities is None else replace(self, probabilities=self.probabilities[rows])

    def answers(self, train: Forecasts, test: Forecasts, events: Index) -> Array:
        """Probabilities of the `test` events, whose positions among the T are `events`, (S,) or (S, K)."""
        if self.probabilities is not None:
            return self.probabilities[events]
        try:
            fitted = deepcopy(self.classifier).fit(_log_odds(train), train.outcomes)
            found = np.zeros((len(test.events), len(test.classes)))
            found[:, np.asarray(fitted.classes_, dtype=np.intp)] = fitted.predict_proba(_log_odds(test))
        except ValueError as error:
            raise LearningError(f"{self.name} cannot be fitted: {error}") from error
        return np.asarray(public_probabilities(found))


def _log_odds(forecasts: Forecasts) -> Array:
    """Log-odds of each expert's probabilities, within the floor for experts, (T, N) or (T, N K); NaN where missing."""
    p = np.clip(all_classes(forecasts.X, 2)[..., 1:] if forecasts.X.ndim == 2 else forecasts.X, FLOOR, 1.0 - FLOOR)
    return logit(p).reshape(len(p), -1)
