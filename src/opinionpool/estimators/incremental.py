"""Base class of all pools with `partial_fit` and `save`."""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import axes, frequencies
from opinionpool.errors import ArgumentError, Note, OpinionPoolWarning, OutcomeError
from opinionpool.estimators.base import BasePool, FitState
from opinionpool.estimators.inputs import ExpertColumns, Given, aligned, label_array, row_keys, without
from opinionpool.findings import finding
from opinionpool.forecasts import Forecasts
from opinionpool.labels import Labels, halves, label_text
from opinionpool.learning.fitted import FittedPanel
from opinionpool.pools.fitted_pool import Fitted, FittedPool
from opinionpool.saving.codec import Kind, Kinds, Label, demand
from opinionpool.saving.files import write
from opinionpool.saving.kinds import KINDS
from opinionpool.scales import written
from opinionpool.streams.stream import Stream
from opinionpool.text import listed


class IncrementalPool(BasePool):
    """Abstract base class of all pools that adds `partial_fit` and `save` to `BasePool`."""

    @property
    def stream_(self) -> Stream:
        """Stream to which `partial_fit` adds events; an AttributeError before `partial_fit`."""
        stream = self._known().stream
        if stream is None:
            raise AttributeError(f"this {type(self).__name__} was fitted at once, and has no stream")
        return stream

    @property
    def notes_(self) -> tuple[Note, ...]:
        """Notes for the user on the fit and its data."""
        notes, known = super().notes_, self._known()
        if known.forgotten is not None:
            notes = (*notes, _began_anew(known.forgotten))
        if known.open_rows:
            notes = (*notes, finding("open-rows-left-out", count=known.open_rows))
        return notes

    def partial_fit(
        self,
        X: Given,
        y: Given = None,
        classes: npt.ArrayLike | None = None,
        prior: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        topics: npt.ArrayLike | None = None,
        times: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from further events, which are added to the stream `stream_`; see `opinionpool.streams.stream.Stream`.

        After `fit`, which does not keep its events, it starts without them, with a note in `notes_`. Rows of arrays are
        new events each time; rows without an outcome are left out, with a note in `notes_`. Events in `op.Forecasts`
        have ids: unresolved events are kept until they are resolved, known events are not learned from again, and
        outcomes that differ are corrections. A batch is added entirely or, if interrupted, not at all.

        Parameters
        ----------
        X : array_like, data frame or Forecasts
            As for `fit`; data frames and `Forecasts` may have new experts.
        y : array_like, shape (T,)
            Outcomes; not given if X is a `Forecasts`.
        classes : array_like, optional
            All labels, for the first batch; the labels in its `y` if not given.
        prior : float or array_like, shape (T,), or (K,), (T, K) when K > 2, optional
            Prior of each event, or in the first batch of all events of all batches. Laplace's estimate if not given.
        sample_weight : array_like, shape (T,), optional
        topics : array_like of str, shape (T,), optional
        times : array_like, shape (T, N), optional
            As for `fit`.

        Raises
        ------
        OpinionPoolError
            If the arguments break a rule.

        Examples
        --------
        >>> from opinionpool.estimators.pools import AveragePool
        >>> pool = AveragePool().partial_fit([[0.9, 0.6]], [1], classes=[0, 1]).partial_fit([[0.2, 0.3]], [0])
        >>> pool.n_events_, pool.predict_proba([[0.4, 0.6]])
        (2.0, array([[0.5, 0.5]]))
        """
        # Two threads may not both begin.
        with self.__dict__.setdefault("_lock", threading.RLock()):
            if isinstance(X, Forecasts):
                without(topics=topics, times=times)
                self._add_forecasts(X, y, classes, prior, sample_weight)
            else:
                self._add_rows(X, y, classes, prior, sample_weight, topics, times)
        return self

    def _add_forecasts(
        self, forecasts: Forecasts, y: Given, classes: Given, prior: Given, sample_weight: Given
    ) -> None:
        without(y=y, classes=classes)
        if self._begun is None:
            layout = ExpertColumns.of_forecasts(forecasts)
            stream = self._stream(label_array(forecasts.classes), prior)
            stream.add(forecasts, sample_weight)
            self._begin(FitState(layout, label_array(forecasts.classes), layout.columns, stream=stream))
            return
        if prior is not None:
            raise ArgumentError("op.Forecasts bring priors of events, and one for all is given with the first batch")
        self._begun.add(forecasts, sample_weight)

    def _add_rows(
        self, X: Given, y: Given, classes: Given, prior: Given, sample_weight: Given, topics: Given, times: Given
    ) -> None:
        keys, begun = row_keys(X), self._known() if self._begun is not None else None
        read = self._read(X, y, classes, topics, times, begun)
        found = read.about.classes
        prior = aligned(prior, keys, "prior")
        shared = prior is not None and axes(prior, "prior") < (1 if len(found) == 2 else 2)
        weight = aligned(sample_weight, keys, "sample_weight")
        if weight is not None:
            frequencies(weight, len(read.q))
        if begun is not None:
            _check_further(found, classes, shared=shared)
        fitted = begun or replace(read.about, rounded=0)
        stream = fitted.stream or self._stream(found, prior if shared else None)
        stream.scales = {**stream.scales, **read.scales}
        outcomes = read.outcomes
        columns: list[Given] = [read.q, None if shared else prior, read.topics, read.made]
        if read.ties is not None:
            rows, outcomes, share = halves(outcomes, read.ties)
            columns = [None if each is None else np.asarray(each)[rows] for each in columns]
            weight = share if weight is None else share * np.asarray(weight)[rows]
        q, prior, topics, made = columns
        stream.add_rows(q, outcomes, weight, prior=prior, experts=read.about.layout.experts, topics=topics, times=made)
        fitted = replace(fitted, open_rows=fitted.open_rows + int((outcomes < 0).sum()))
        if begun is None:
            self._begin(replace(fitted, stream=stream))
        else:
            self._fitted = fitted

    @property
    def _begun(self) -> Stream | None:
        return self._known().stream if "_fitted" in self.__dict__ else None

    def _stream(self, classes: Labels, prior: Given) -> Stream:
        """Return an empty stream with the classes, prior and floors of the pool."""
        if self.binary_only and len(classes) > 2:
            raise OutcomeError(f"Only binary classification is supported. There are {len(classes)} classes.")
        self._options()
        return Stream(classes.tolist(), prior=prior, floor=self.floor, pool_floor=self.pool_floor)

    def _begin(self, fitted: FitState) -> None:
        """Replace the result of an earlier `fit` by `fitted`, which records the total weight of the earlier events."""
        forgotten = self._fitted.events if "_fitted" in self.__dict__ else None
        self._fitted = replace(fitted, forgotten=forgotten)
        if forgotten is not None:
            warnings.warn(_began_anew(forgotten).text, OpinionPoolWarning, stacklevel=4)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this fitted pool to a file, from which `op.load` restores it; see `op.save`."""
        write(self, path, estimator_kinds(type(self)))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_lock", None)
        return state

    def _saved(self) -> dict[str, Any]:
        """Return the fields to save, by name, all from one state of the stream even if other threads change it."""
        kept = self._known()
        if kept.stream is not None:
            now = type(self)(**self.get_params(deep=False))
            now._fitted = replace(kept, stream=kept.stream.copy())
            answers = self.__dict__.get("_answers")
            if answers is not None and answers[1] == now.stream_.version:
                now._answers = (now.stream_, *answers[1:])
            self = now  # noqa: PLW0642 - a copy to read from
        fitted, learned = self._learned()
        return {
            "parameters": self.get_params(deep=False) | {"scale": written(self.scale)},
            "learned": learned,
            "stream": fitted.stream,
            "classes": tuple(fitted.classes.tolist()),
            "labels": fitted.classes.dtype.str,
            "layout": fitted.layout,
            "names": fitted.names,
            "events": self.n_events_,
            "rounded": fitted.rounded,
        }


def _began_anew(forgotten: float) -> Note:
    """Note that `partial_fit` does not learn from the events of an earlier `fit`, whose total weight is `forgotten`."""
    return finding("began-anew", events=f"{forgotten:,.15g}")


def _check_further(found: Labels, classes: Given, *, shared: bool) -> None:
    """Raise an error if a batch after the first one has other classes, or (`shared`) one prior for all events."""
    again = classes is None or np.array_equal(classes, found)
    if not again and not np.array_equal(np.unique(np.asarray(classes)), found):
        raise OutcomeError(f"the classes are {found.tolist()} since the first batch, and cannot change")
    if shared:
        raise ArgumentError("a prior for all events is given with the first batch; later ones are one per event")


_FIELDS: Mapping[str, Any] = {
    "parameters": Mapping[str, Any],
    "learned": FittedPanel | FittedPool,
    "stream": Stream | None,
    "classes": tuple[Label, ...],
    "labels": str,
    "layout": ExpertColumns,
    "names": tuple[str, ...] | None,
    "events": float,
    "rounded": int,
}


def _check_layout(layout: ExpertColumns) -> None:
    n, k, width = len(layout.experts), len(layout.classes), layout.width
    right = len(set(layout.experts)) == n > 0 and (width == k or (width == 1 and k == 2))
    demand(right, "there should be experts with different names, with a column each or one for each class")
    right = layout.columns is None or len(set(layout.columns)) == layout.count
    demand(right, f"{layout.count} columns should have different names")


def _maker(kind: type[Any]) -> Callable[..., Any]:
    def make(
        parameters: dict[str, Any], learned: Fitted, stream: Stream | None, classes: tuple[object, ...], labels: str,
        layout: ExpertColumns, names: tuple[str, ...] | None, **counts: Any,  # noqa: ANN401 - as `_FIELDS` says
    ) -> object:  # fmt: skip
        rule, name = learned.rule, kind.__name__
        demand(rule == kind.rule, f"a {name} should have learned as the {kind.rule} pool, and this is {rule}")
        right = tuple(map(label_text, classes)) == layout.classes and len(learned.classes) == len(classes)
        demand(right, f"the classes {classes} do not fit the columns, or what was learned")
        right = layout.experts == learned.experts and (names is None or len(names) == layout.count)
        demand(right, "the columns do not fit the experts that were learned")
        # Files of older releases know no scales.
        parameters = {"scale": None} | parameters
        strange = sorted(set(parameters) ^ set(kind().get_params(deep=False)))
        demand(not strange, f"the parameters of a {name} do not have {listed(strange)}, or lack it")
        pool = kind(**parameters)
        # A file does not say whether topics that taught nothing were given.
        labelled = _labels(classes, labels)
        pool._fitted = FitState(layout, labelled, names, learned, stream=stream, topics=True, **counts)
        if stream is not None:
            pool._answers = stream, stream.version, learned
        return pool

    return make


_TYPE = re.compile(r"[<>|=]?(?:[biuf][1-8]?|U\d*|O8?)")


def _labels(classes: tuple[object, ...], kind: str) -> np.ndarray:
    """Return class labels as an array of the type `kind`; a SavedPoolError if they have another type."""
    array = np.empty(0)
    with suppress(TypeError, ValueError, OverflowError):
        # Text takes as much room as it needs, whatever the file says.
        array = np.array(classes, dtype="U" if "U" in kind else np.dtype(kind)) if _TYPE.fullmatch(kind) else array
    demand(tuple(array.tolist()) == classes, f"the classes {classes} are not of type {kind[:20]!r}")
    return array


def estimator_kinds(*estimators: type[Any]) -> Kinds:
    """Return the description, for saving and loading, of the classes `estimators`."""
    return Kinds(
        *KINDS,
        replace(Kind.of("columns", ExpertColumns, _check_layout), optional=("scales",)),
        *(
            Kind(f"estimator-{kind.rule}", kind, _FIELDS, lambda pool: pool._saved(), _maker(kind))
            for kind in estimators
        ),
    )
