"""What a fit leaves, and the attributes that show it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from opinionpool.arrays import Array
from opinionpool.errors import Note, OpinionPoolWarning
from opinionpool.estimators.inputs import ExpertColumns
from opinionpool.labels import Labels
from opinionpool.logodds import FLOOR, POOL_FLOOR
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.streams.stream import Stream

_FLOORS = ("floor", "pool_floor")
# Parameters of a pool that are no options of its rule.
_OUTSIDE = (*_FLOORS, "scale")


@dataclass(frozen=True, eq=False)
class FitState:
    """Result of a fit, set by one assignment, so that no thread meets parts of two fits."""

    layout: ExpertColumns
    classes: Labels  # (K,)
    names: tuple[str, ...] | None  # of the columns, if they had any
    learned: Fitted | None = None  # None where it is learned from the stream when it is asked for
    events: float = 0.0  # weight of the resolved events
    rounded: int = 0  # forecasts that were normalised
    notes: tuple[Note, ...] = ()  # about X
    stream: Stream | None = None  # what further batches are added to
    topics: bool = False  # whether the fit was given any
    open_rows: int = 0  # rows without an outcome, which a stream does not keep
    forgotten: float | None = None  # weight of the events of a fit before, from which a stream does not learn


class FittedAttributes(BaseEstimator):  # type: ignore[misc]
    """Base class with the options of a pool and its fitted attributes, whose names end in _."""

    rule: ClassVar[str]
    floor: float
    pool_floor: float
    _fitted: FitState
    # A stream, its version and what was learned from it.
    _answers: tuple[Stream, int, Fitted]

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in self.__dict__

    def _known(self) -> FitState:
        """Return the result of the fit; AttributeError if the pool is not fitted."""
        if "_fitted" not in self.__dict__:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        return self._fitted

    def _learned(self) -> tuple[FitState, Fitted]:
        """Return the result of the fit, with columns for all experts, and the pool, refitted if the stream changed."""
        fitted = self._known()
        if fitted.stream is None:
            assert fitted.learned is not None
            return fitted, fitted.learned
        stream, version, learned = self.__dict__.get("_answers", (None, -1, None))
        if stream is not fitted.stream or version != fitted.stream.version:
            now = fitted.stream.copy()
            learned = now.fit(self.rule, **self._options())
            self._answers = fitted.stream, now.version, learned
            for note in learned.notes:
                if note.serious:
                    warnings.warn(note.text, OpinionPoolWarning, stacklevel=4)
        layout = fitted.layout.widened(learned.experts)
        names = layout.columns if layout is not fitted.layout else fitted.names
        return replace(fitted, layout=layout, names=names), learned

    @property
    def state_(self) -> Fitted:
        """Fitted panel or pool; after `partial_fit` it is learned on first access."""
        return self._learned()[1]

    @property
    def classes_(self) -> Labels:
        """The labels, (K,)."""
        return self._known().classes

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return self._columns_known().count

    @property
    def feature_names_in_(self) -> npt.NDArray[np.object_]:
        """Names of the columns, if they had any."""
        names = self._known().names
        if names is None:
            raise AttributeError(f"this {type(self).__name__} was fitted without names of columns")
        columns = self._columns_known()
        own = names if columns is self._known().layout or columns.columns is None else columns.columns
        return np.array(own, dtype=object)

    @property
    def n_events_(self) -> float:
        """Weight of the resolved events."""
        fitted = self._known()
        return fitted.events if fitted.stream is None else float(fitted.stream.events.sum())

    def _columns_known(self) -> ExpertColumns:
        fitted = self._known()
        return fitted.layout if fitted.stream is None else fitted.layout.widened(fitted.stream.experts)

    def settings(self) -> dict[str, Any]:
        """Options of the pool, and floors that differ from the defaults, as arguments for `op.compare_pools`."""
        usual = {"floor": FLOOR, "pool_floor": POOL_FLOOR}
        return self._options() | {name: getattr(self, name) for name in _FLOORS if getattr(self, name) != usual[name]}

    def _options(self) -> dict[str, Any]:
        """The options of the rule: what the constructor takes beside the floors."""
        kind: Any = type(self)  # mypy takes no class for hashable
        options = {name: getattr(self, name) for name in _parameters(kind) if name not in _OUTSIDE}
        if isinstance(options.get("weights"), Mapping):
            options["weights"] = {str(name): weight for name, weight in options["weights"].items()}
        return options

    @property
    def weights_(self) -> Array:
        """Weights of the experts when all are present, (N,); only where the rule has weights."""
        check_is_fitted(self)
        if self.state_.weights is None:
            raise AttributeError(f"{type(self).__name__} has no weights")
        return self.state_.weights

    @property
    def prior_(self) -> Array | None:
        """The reference prior in the order of `classes_`, (K,); None if each event had its own."""
        check_is_fitted(self)
        return self.state_.prior

    @property
    def notes_(self) -> tuple[Note, ...]:
        """Notes for the user on the fit and its data."""
        check_is_fitted(self)
        fitted, learned = self._learned()
        notes = (*learned.notes, *fitted.notes)
        if fitted.rounded:
            text = f"{fitted.rounded} forecasts did not add up to 1 by rounding: normalised"
            notes = (*notes, Note("normalised", text, fitted.rounded))
        return notes


@cache
def _parameters(kind: Any) -> tuple[str, ...]:  # noqa: ANN401 - a class of pools
    """The parameters of a pool, which scikit-learn finds by inspection."""
    return tuple(kind._get_param_names())
