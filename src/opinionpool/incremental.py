"""Pools that learn batch by batch, and that can be kept in a file."""

from __future__ import annotations

import os
import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from opinionpool.basepool import BasePool, Given, labels_of
from opinionpool.errors import ArgumentError, Note, OpinionPoolWarning, OutcomeError
from opinionpool.forecasts import Forecasts
from opinionpool.frequencies import frequencies
from opinionpool.inputs import ExpertColumns, aligned, column_names, row_keys
from opinionpool.labels import Labels, classes_of, encode, read_labels
from opinionpool.online import Stream
from opinionpool.rules import Learned

__all__ = ["IncrementalPool"]


class IncrementalPool(BasePool):
    """What all pools share beyond `BasePool`: `partial_fit` and `save`. Not to be used by itself."""

    stream_: Stream

    @property
    def state_(self) -> Learned:
        """What was learned; after `partial_fit`, when it is first asked for."""
        if "_state" not in self.__dict__:
            if not hasattr(self, "stream_"):
                raise AttributeError(f"this {type(self).__name__} is not fitted yet")
            self._state: Learned = self.stream_.fit(self.rule, **self._options())
            for note in self._state.notes:
                if note.serious:
                    warnings.warn(note.text, OpinionPoolWarning, stacklevel=3)
        return self._state

    @state_.setter
    def state_(self, learned: Learned) -> None:
        # A fit forgets what was learned before.
        for name in ("stream_", "_forgotten"):
            self.__dict__.pop(name, None)
        self._state = learned

    @property
    def notes_(self) -> tuple[Note, ...]:
        """What a user should know about the fit."""
        notes = super().notes_
        forgotten = self.__dict__.get("_forgotten")
        if forgotten is not None:
            text = f"partial_fit began anew: the {forgotten:,.15g} events of the fit before it are not learned from"
            notes = (*notes, Note("began-anew", text))
        return notes

    def partial_fit(
        self,
        X: Given,
        y: Given = None,
        classes: npt.ArrayLike | None = None,
        prior: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from further events; see `opinionpool.online.Stream`, which `stream_` is.

        It begins anew after `fit`, which does not keep what it learned from; then `notes_` says so. Rows are new events
        each time. Events in `op.Forecasts` have ids: those that are not resolved are kept until
        they are, those that were learned before are not learned again, and other outcomes are corrections.

        Parameters
        ----------
        X : array_like, data frame or Forecasts
            As for `fit`; experts may join in data frames and forecasts.
        y : array_like, shape (T,)
            Left out with `Forecasts`.
        classes : array_like, optional
            All labels, for the first batch; those in its `y` if not given.
        prior : float or array_like, shape (T,), or (K,), (T, K) when K > 2, optional
            One per event, or in the first batch one for all events of all batches. Laplace's estimate if not given.
        sample_weight : array_like, shape (T,), optional

        Raises
        ------
        OpinionPoolError
            If the arguments break a rule.

        Examples
        --------
        >>> from opinionpool.estimators import AveragePool
        >>> pool = AveragePool().partial_fit([[0.9, 0.6]], [1], classes=[0, 1]).partial_fit([[0.2, 0.3]], [0])
        >>> pool.n_events_, pool.predict_proba([[0.4, 0.6]])
        (2.0, array([[0.5, 0.5]]))
        """
        if hasattr(self, "classes_") and not hasattr(self, "stream_"):
            self._forgotten = self.n_events_
        if isinstance(X, Forecasts):
            self._add_forecasts(X, y, prior, sample_weight)
        else:
            self._add_rows(X, y, classes, prior, sample_weight)
        self.__dict__.pop("_state", None)
        self.n_events_ = float(self.stream_.events.sum())
        return self

    def _add_forecasts(self, forecasts: Forecasts, y: Given, prior: Given, sample_weight: Given) -> None:
        if y is not None:
            raise ArgumentError("forecasts hold their own outcomes; leave out y")
        if not hasattr(self, "stream_"):
            self._begin(np.array(forecasts.classes), ExpertColumns.of_forecasts(forecasts), prior, True)
        elif prior is not None:
            raise ArgumentError("forecasts bring the priors of their events; one for all is given with the first batch")
        self.stream_.add(forecasts, sample_weight)
        experts = dict.fromkeys((*self._layout.experts, *forecasts.experts))
        self._widen(tuple(experts))

    def _add_rows(self, X: Given, y: Given, classes: Given, prior: Given, sample_weight: Given) -> None:
        names, keys, columns = column_names(X), row_keys(X), self._columns(X)
        labels, known = labels_of(aligned(y, keys, "y"), len(columns), type(self).__name__)
        prior = aligned(prior, keys, "prior")
        first = not hasattr(self, "stream_")
        found = (
            classes_of(labels if classes is None else read_labels(np.asarray(classes))[0]) if first else self.classes_
        )
        shared = prior is not None and np.ndim(prior) < (1 if len(found) == 2 else 2)
        if not first and classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise OutcomeError(f"the classes are {self.classes_.tolist()} since the first batch, and cannot change")
        if not first and shared:
            raise ArgumentError("a prior for all events is given with the first batch; later ones are one per event")
        deep = columns.ndim == 3
        flat = columns.reshape(len(columns), -1) if deep else columns
        if first:
            layout = ExpertColumns.of_columns(names, flat.shape[1], found, deep)
            arranged, _ = layout.forecasts(layout.arrange(flat, names, type(self).__name__))
            codes = encode(labels, known, found)
            frequencies(sample_weight, len(columns))
            self._begin(found, layout, prior if shared else None, names is not None)
        else:
            arranged, _ = self._layout.forecasts(self._layout.arrange(flat, names, type(self).__name__))
            codes = encode(labels, known, found)
        self.stream_.add_rows(
            arranged,
            codes,
            aligned(sample_weight, keys, "sample_weight"),
            prior=None if shared else prior,
            experts=self._layout.experts,
        )

    def _begin(self, classes: Labels, layout: ExpertColumns, prior: Given, named: bool) -> None:
        if self.binary_only and len(classes) > 2:
            raise OutcomeError(f"Only binary classification is supported. There are {len(classes)} classes.")
        self._options()
        stream = Stream(classes.tolist(), prior=prior, floor=self.floor, pool_floor=self.pool_floor)
        self.classes_, self.n_features_in_, self._layout, self._rounded = classes, layout.count, layout, 0
        if named and layout.columns is not None:
            self.feature_names_in_ = np.array(layout.columns, dtype=object)
        self.stream_ = stream

    def _widen(self, experts: tuple[str, ...]) -> None:
        """Make room for experts who joined."""
        if experts != self._layout.experts:
            own = self._layout
            columns = experts if own.width == 1 else tuple(f"{e}:{label}" for e in experts for label in own.classes)
            self._layout = ExpertColumns(experts, columns, own.classes, own.width)
            self.feature_names_in_ = np.array(columns, dtype=object)
            self.n_features_in_ = self._layout.count

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this fitted pool to a file, from which `op.load` makes it again; see `opinionpool.saved.save`."""
        from opinionpool.saved import save

        save(self, path)

    def _saved(self) -> dict[str, Any]:
        """What is written."""
        names = getattr(self, "feature_names_in_", None)
        return {
            "parameters": self.get_params(deep=False),
            "learned": self.state_,
            "stream": getattr(self, "stream_", None),
            "classes": tuple(self.classes_.tolist()),
            "labels": self.classes_.dtype.str,
            "layout": self._layout,
            "names": None if names is None else tuple(names.tolist()),
            "events": self.n_events_,
            "rounded": self._rounded,
        }

    @classmethod
    def _restored(
        cls,
        parameters: dict[str, Any],
        learned: Learned,
        stream: Stream | None,
        classes: Labels,
        layout: ExpertColumns,
        names: tuple[str, ...] | None,
        events: float,
        rounded: int,
    ) -> Self:
        """A fitted pool from what was written."""
        pool = cls(**parameters)
        pool.state_ = learned
        pool.classes_, pool._layout, pool.n_features_in_ = classes, layout, layout.count
        pool.n_events_, pool._rounded = events, rounded
        if names is not None:
            pool.feature_names_in_ = np.array(names, dtype=object)
        if stream is not None:
            pool.stream_ = stream
        return pool
