"""What all pools share as scikit-learn classifiers: reading X and y, answering, and scoring."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from opinionpool.arrays import Array, as_numbers, frequencies, unmasked
from opinionpool.errors import ArgumentError, Note, OpinionPoolWarning, OutcomeError, ProbabilityError, ShapeError
from opinionpool.estimators.inputs import ExpertColumns, aligned, column_names, event_weights, row_keys
from opinionpool.forecasts import Forecasts
from opinionpool.labels import Labels, classes_of, encode, read_labels
from opinionpool.learning.fitted import FittedPanel
from opinionpool.logodds import check_probabilities, public_probabilities
from opinionpool.pools.registry import Fitted, answering, fit_pool
from opinionpool.priors import event_priors, own_priors
from opinionpool.scoring.scores import log_score, mean_score
from opinionpool.streams.stream import Stream

# Arrays, lists, series and data frames of any library that scikit-learn takes; where it says so, also `Forecasts`.
Given: TypeAlias = Any

_FLOORS = ("floor", "pool_floor")
# More events than this are answered in parts.
EVENTS = 1 << 17


def labels_of(y: Given, events: int, who: str) -> tuple[Labels, npt.NDArray[np.bool_]]:
    """The labels of resolved events, and which of so many events are resolved, (T,).

    Raises
    ------
    OutcomeError, ValueError
        If `y` is not a column of labels, one for each event.
    """
    if y is None:
        raise OutcomeError(f"This {who} estimator requires y to be passed, but the target y is None.")
    y = unmasked(y, None)
    column = column_or_1d(np.asarray(y, dtype=object if isinstance(y, (list, tuple)) else None), warn=True)
    check_consistent_length(np.empty((events, 0)), column)
    return read_labels(column)


class _Read(NamedTuple):
    """What a fit was given: forecasts, in which columns, on which classes, and how many rows were rounded."""

    forecasts: Forecasts
    layout: ExpertColumns
    classes: Labels
    names: tuple[str, ...] | None
    rounded: int


class BasePool(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What all pools share: reading X and y, and answering. Not to be used by itself.

    **X** is events x experts, the probability of ``classes_[1]``, NaN where a forecast is missing; one expert may come
    as a vector. K > 2 classes: events x experts x classes, or the same flattened expert by expert, which is how
    `StackingClassifier` passes it. Columns with names are matched by name, as text and in any order; an expert whose
    column is missing has no forecasts, an unknown column is an error. Without names, columns are matched by position.
    Columns called ``expert:class`` are assigned by these names.

    **y** holds labels, None or NaN for unresolved events, which are pooled and never learned from. Numbers with one
    outcome only are taken to be 0 and 1. Rows of pandas objects are matched by index. Instead of X and y, `fit` takes
    `op.Forecasts`, and the other methods take them for X; then classes keep the order that they have there. (Tools of
    scikit-learn that look into y themselves, stratified folds and `cross_val_predict` among them, want every event
    resolved.)

    **prior** is the reference that the experts share: one, or one per event (K > 2: a vector, or one per event);
    in `fit` Laplace's estimate if not given, afterwards that of the fit. **base_rate** says how frequent the
    event is where the answer is used. Both, and **sample_weight**, which is a frequency, can be routed as metadata.
    """

    rule: ClassVar[str]
    binary_only: ClassVar[bool] = False
    floor: float
    pool_floor: float
    classes_: Labels
    feature_names_in_: npt.NDArray[np.object_]
    n_features_in_: int
    n_events_: float
    state_: Fitted

    def fit(
        self, X: Given, y: Given = None, prior: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Learn from the resolved events.

        Parameters
        ----------
        X : array_like, data frame or Forecasts
            See the class.
        y : array_like, shape (T,)
            Left out with `Forecasts`.
        prior : float or array_like, shape (T,), or (K,), (T, K) when K > 2, optional
        sample_weight : array_like, shape (T,), optional

        Raises
        ------
        OpinionPoolError
            If the arguments break a rule, or the data do not determine what was asked for.
        """
        if sample_weight is None and type(X) is np.ndarray and type(y) is np.ndarray and self._fit_dense(X, y, prior):
            classes = np.array([0, 1], dtype=y.dtype)
            layout = ExpertColumns.of_columns(None, X.shape[1], classes, deep=False)
            return self._keep(layout, classes, float(self.state_.events.sum()), None, 0)
        read = self._read(X, y)
        if self.binary_only and len(read.classes) > 2:
            raise OutcomeError(f"Only binary classification is supported. There are {len(read.classes)} classes.")
        keys, forecasts = row_keys(X), read.forecasts
        weight = event_weights(aligned(sample_weight, keys, "sample_weight"), len(forecasts.events))
        self.state_ = fit_pool(
            self.rule,
            forecasts,
            prior=aligned(prior, keys, "prior"),
            sample_weight=weight,
            floor=self.floor,
            pool_floor=self.pool_floor,
            **self._options(),
        )
        return self._keep(read.layout, read.classes, float(weight[forecasts.resolved].sum()), read.names, read.rounded)

    def _keep(
        self, layout: ExpertColumns, classes: Labels, events: float, names: tuple[str, ...] | None, rounded: int
    ) -> Self:
        """Keep what is known of the input, and say the serious notes."""
        self.classes_, self.n_events_, self.n_features_in_ = classes, events, layout.count
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._layout, self._rounded = layout, rounded
        for note in self.state_.notes:
            if note.serious:
                warnings.warn(note.text, OpinionPoolWarning, stacklevel=3)
        return self

    def _fit_dense(self, X: Given, y: Given, prior: npt.ArrayLike | None) -> bool:  # noqa: ARG002
        """Fit to arrays as they are, if rule and arrays allow it; then outcomes are 0 and 1."""
        return False

    def _read(self, X: Given, y: Given) -> _Read:
        """X and y of a fit as forecasts."""
        if isinstance(X, Forecasts):
            _without(y)
            layout = ExpertColumns.of_forecasts(X)
            return _Read(X, layout, _label_array(X.classes), layout.columns, 0)
        names, q = column_names(X), self._columns(X)
        labels, known = labels_of(aligned(y, row_keys(X), "y"), len(q), type(self).__name__)
        classes = classes_of(labels)
        q, deep = _flattened(q, len(classes))
        layout = ExpertColumns.of_columns(names, q.shape[1], classes, deep)
        q, rounded = layout.forecasts(layout.arrange(q, names, type(self).__name__))
        forecasts = Forecasts.from_array(q, experts=layout.experts, classes=tuple(classes.tolist()))
        return _Read(replace(forecasts, outcomes=encode(labels, known, classes)), layout, classes, names, rounded)

    def _options(self) -> dict[str, Any]:
        """The options of the rule: what the constructor takes beside the floors."""
        kind: Any = type(self)  # mypy takes no class for hashable
        options = {name: getattr(self, name) for name in _parameters(kind) if name not in _FLOORS}
        if isinstance(options.get("weights"), Mapping):
            options["weights"] = {str(name): weight for name, weight in options["weights"].items()}
        return options

    def predict_proba(
        self, X: Given, prior: npt.ArrayLike | None = None, base_rate: npt.ArrayLike | None = None
    ) -> Array:
        """Pooled probabilities of the classes, (T, K); of an event's own options, 0 in the positions it leaves free.

        Parameters
        ----------
        X : array_like, data frame or Forecasts
            See the class.
        prior, base_rate : float or array_like, shape (T,), or (K,), (T, K) when K > 2, optional

        Raises
        ------
        NotFittedError
            Before `fit`.
        OpinionPoolError
            If the arguments break a rule; if each event had its own prior in `fit` and none is given now.
        """
        check_is_fitted(self)
        k = len(self.classes_)
        if isinstance(X, Forecasts):
            self._layout.check(X)
            prior, k = self._own_priors(X, prior), len(X.classes)
            state = self.state_ if X.options is None else answering(self.state_, X.classes)
            if isinstance(state, FittedPanel):
                # Cell by cell, as an array of events x experts may not fit into memory.
                p = state.pool_forecasts(X, prior, base_rate)
            else:
                p = state.pool(self._layout.dense(X), prior, base_rate)
        else:
            q, prior, base_rate = self._asked(X, prior, base_rate)
            if k == 2 and len(q) > EVENTS and _own(prior) and _own(base_rate):
                return self._pool_in_parts(q, prior, base_rate)
            p = np.asarray(self.state_.pool(q, prior, base_rate))
        return np.stack([1.0 - p, p], axis=-1) if k == 2 else p

    def _pool_in_parts(self, q: Array, prior: npt.ArrayLike | None, base_rate: npt.ArrayLike | None) -> Array:
        """Probabilities of two classes, (T, 2), with nothing as long beside them."""
        both = np.empty((len(q), 2))
        try:
            for start in range(0, len(q), EVENTS):
                rows = slice(start, start + EVENTS)
                both[rows, 1] = self.state_.pool(q[rows], prior, base_rate)
        except ProbabilityError:
            check_probabilities(q)
            raise
        np.subtract(1.0, both[:, 1], out=both[:, 0])
        return both

    def _asked(
        self, X: Given, prior: npt.ArrayLike | None, base_rate: npt.ArrayLike | None
    ) -> tuple[Array, npt.ArrayLike | None, npt.ArrayLike | None]:
        """Forecasts of the experts of the fit, (T, N) or (T, N, K), with priors and base rates in the same order."""
        if isinstance(X, Forecasts):
            self._layout.check(X)
            return self._layout.dense(X), self._own_priors(X, prior), base_rate
        if self._layout.own:
            raise ArgumentError(
                "this pool was fitted to events with options of their own, and an array does not say which options its "
                "events have; pass op.Forecasts, as from op.Forecasts.from_array(..., options=...)"
            )
        keys = row_keys(X)
        names, (columns, _) = column_names(X), _flattened(self._columns(X, fitted=True), len(self.classes_))
        q, _ = self._layout.forecasts(self._layout.arrange(columns, names, type(self).__name__))
        return q, aligned(prior, keys, "prior"), aligned(base_rate, keys, "base_rate")

    def predict(self, X: Given, prior: npt.ArrayLike | None = None, base_rate: npt.ArrayLike | None = None) -> Labels:
        """The most probable class of each event, (T,), in the type of y."""
        best = self.predict_proba(X, prior, base_rate).argmax(axis=1)
        if isinstance(X, Forecasts) and X.options is not None:
            return np.array([own[i] for own, i in zip(X.options, best.tolist(), strict=True)], dtype=object)
        return np.asarray(self.classes_[best])

    def score(
        self,
        X: Given,
        y: Given = None,
        sample_weight: npt.ArrayLike | None = None,
        prior: npt.ArrayLike | None = None,
        base_rate: npt.ArrayLike | None = None,
        scoring_prior: npt.ArrayLike | None = None,
    ) -> float:
        """Mean normalised log score over the resolved events (26): 0 for repeating the scoring prior. Higher is better.

        Parameters
        ----------
        X, y, sample_weight, prior, base_rate
            As elsewhere.
        scoring_prior : float or array_like, shape (T,), or (K,), (T, K) when K > 2, optional
            Uniform if not given, over the event's own options if it has such.

        Returns
        -------
        float
            NaN if no event is resolved.
        """
        p = self.predict_proba(X, prior, base_rate)
        if isinstance(X, Forecasts):
            _without(y)
            codes = X.outcomes
            if scoring_prior is None and X.even is not None:
                scoring_prior = public_probabilities(X.even)
        else:
            keys = row_keys(X)
            codes = encode(*labels_of(aligned(y, keys, "y"), len(p), type(self).__name__), self.classes_)
            sample_weight = aligned(sample_weight, keys, "sample_weight")
            scoring_prior = aligned(scoring_prior, keys, "scoring_prior")
        outcomes = np.where(codes < 0, np.nan, codes)
        scores = log_score(p, outcomes, scoring_prior, floor=self.pool_floor)
        return mean_score(scores, sample_weight).mean

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
        """What a user should know about the fit."""
        check_is_fitted(self)
        notes = self.state_.notes
        if self._rounded:
            text = f"{self._rounded} forecasts did not add up to 1 by rounding: normalised"
            notes = (*notes, Note("normalised", text, self._rounded))
        return notes

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        tags.classifier_tags.multi_class = not self.binary_only
        return tags

    def _columns(self, X: Given, fitted: bool = False) -> Array:
        """X as float64, (T, C) or (T, N, K); a vector as one column if there is one expert."""
        if fitted and type(X) is np.ndarray and X.ndim == 2 and X.dtype in (np.float64, np.float32) and X.size > EVENTS:
            # What `check_array` would look for, whoever pools finds too.
            return X
        array = check_array(
            # What scikit-learn says of sparse matrices is what its users know.
            X if hasattr(X, "toarray") else as_numbers(X),
            dtype=np.float64,
            ensure_all_finite="allow-nan",
            ensure_2d=False,
            allow_nd=True,
            ensure_min_samples=0 if fitted else 1,
            estimator=self,
            input_name="X",
        )
        if array.ndim == 1:
            if fitted and self._layout.count > 1:
                raise ShapeError(
                    f"X has one axis, and there are {len(self._layout.experts)} experts. Reshape your data: "
                    "array.reshape(1, -1) if it is a single event"
                )
            array = array.reshape(-1, 1)
        return np.asarray(array)

    def _own_priors(self, forecasts: Forecasts, prior: npt.ArrayLike | None) -> npt.ArrayLike | None:
        """The priors that the forecasts bring, blanks filled by `prior` or that of the fit; else `prior`."""
        if forecasts.options is not None:
            return own_priors(forecasts, prior)
        if forecasts.prior is None:
            return prior
        if prior is None and self.prior_ is not None:
            prior = public_probabilities(self.prior_)
        each = event_priors(forecasts, prior)
        return None if each is None else public_probabilities(each)


@cache
def _parameters(kind: Any) -> tuple[str, ...]:  # noqa: ANN401 - a class of pools
    """The parameters of a pool, which scikit-learn finds by inspection."""
    return tuple(kind._get_param_names())


def _flattened(q: Array, classes: int) -> tuple[Array, bool]:
    """X with its experts and classes on one axis, and whether they had two."""
    if q.ndim == 2:
        return q, False
    if q.ndim != 3 or q.shape[2] != classes:
        raise ShapeError(
            f"X of {classes} classes needs {classes} probabilities on a third axis, if it has one, and its shape is "
            f"{q.shape}; where y lacks a class, op.Forecasts names it"
        )
    return q.reshape(len(q), -1), True


def _own(value: npt.ArrayLike | None) -> bool:
    return value is None or np.ndim(value) == 0


def _without(y: Given) -> None:
    if y is not None:
        raise ArgumentError("forecasts hold their own outcomes; leave out y")


def _label_array(labels: tuple[object, ...]) -> Labels:
    """Labels as an array of their own type if they share one, else of objects."""
    same = len({type(label) for label in labels}) == 1
    return np.array(labels) if same else np.array(labels, dtype=object)


class IncrementalPool(BasePool):
    """What all pools share beyond `BasePool`: `partial_fit` and `save`. Not to be used by itself."""

    stream_: Stream

    @property
    def state_(self) -> Fitted:
        """What was learned; after `partial_fit`, when it is first asked for."""
        if "_state" not in self.__dict__:
            if not hasattr(self, "stream_"):
                raise AttributeError(f"this {type(self).__name__} is not fitted yet")
            self._state: Fitted = self.stream_.fit(self.rule, **self._options())
            for note in self._state.notes:
                if note.serious:
                    warnings.warn(note.text, OpinionPoolWarning, stacklevel=3)
        return self._state

    @state_.setter
    def state_(self, learned: Fitted) -> None:
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
        """Learn from further events; see `opinionpool.streams.stream.Stream`, which `stream_` is.

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
        >>> from opinionpool.estimators.pools import AveragePool
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
        """Write this fitted pool to a file, from which `op.load` makes it again; see `op.save`."""
        from opinionpool.saving.files import save

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
        learned: Fitted,
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
