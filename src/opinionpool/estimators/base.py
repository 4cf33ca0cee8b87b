"""Base classes of the pools as scikit-learn classifiers, which read X and y, pool and score."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from opinionpool.arrays import Array, Mask, axes
from opinionpool.errors import ArgumentError, Note, OpinionPoolWarning, OutcomeError, ProbabilityError
from opinionpool.estimators.inputs import (
    EVENTS,
    ExpertColumns,
    Given,
    aligned,
    column_names,
    columns_of,
    event_weights,
    experts_by_class,
    experts_of,
    flattened,
    label_array,
    labels_of,
    pair_notes,
    row_keys,
    settled_classes,
    timed,
    times_by_expert,
    without,
)
from opinionpool.forecasts import Forecasts
from opinionpool.labels import Codes, Labels, encode, event_labels, label_text
from opinionpool.learning.fitted import FittedPanel
from opinionpool.logodds import FLOOR, POOL_FLOOR, all_classes, check_probabilities, public_probabilities
from opinionpool.pools.fit import fit_pool
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.priors import own_or_learned
from opinionpool.scales import Scale, own_scales, scales_given, towards, without_ties
from opinionpool.scoring.scores import log_score, mean_score
from opinionpool.streams.stream import Stream
from opinionpool.text import listed

_FLOORS = ("floor", "pool_floor")
# Parameters of a pool that are no options of its rule.
_OUTSIDE = (*_FLOORS, "scale")


@dataclass(frozen=True, eq=False)
class FitState:
    """Everything that an estimator keeps of a fit, such as the columns of X, the classes and the fitted pool.

    The estimator sets all of it in one assignment, so that another thread never sees parts of two fits.
    """

    layout: ExpertColumns  # layout of the columns of X
    classes: Labels  # (K,)
    names: tuple[str, ...] | None  # names of the columns, if they had any
    learned: Fitted | None = None  # None if it is to be fitted to the stream on first use
    events: float = 0.0  # weight of the resolved events
    rounded: int = 0  # number of forecasts that were rescaled to sum to 1 over classes
    notes: tuple[Note, ...] = ()  # notes about X
    stream: Stream | None = None  # stream to which `partial_fit` adds events
    topics: bool = False  # whether topics were given to `fit`
    open_rows: int = 0  # number of rows without an outcome, which a stream ignores
    forgotten: float | None = None  # weight of the events of an earlier `fit`, which are not in the stream


class FittedAttributes(BaseEstimator):  # type: ignore[misc]
    """Base class that holds the options of a pool and gives its fitted attributes, whose names end in _."""

    rule: ClassVar[str]
    floor: float
    pool_floor: float
    scale: object = None
    _fitted: FitState
    # A stream, its version and the pool fitted to it.
    _answers: tuple[Stream, int, Fitted]

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in self.__dict__

    def _known(self) -> FitState:
        """Return the result of `fit`; an AttributeError if the pool is not fitted."""
        if "_fitted" not in self.__dict__:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        return self._fitted

    def _learned(self) -> tuple[FitState, Fitted]:
        """Return the result of `fit` for all experts so far, and the pool, refitted if events have been added since."""
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

    def _scales(self, fitted: FitState | None) -> Mapping[str, Scale]:
        """Return scales by expert: the given ones, else the scales of the forecasts to which the pool was fitted."""
        if self.scale is not None or fitted is None:
            return scales_given(self.scale)
        return scales_given(fitted.layout.scales) if fitted.stream is None else fitted.stream.scales

    @property
    def state_(self) -> Fitted:
        """Fitted panel or pool; after `partial_fit` it is fitted on first access."""
        return self._learned()[1]

    @property
    def classes_(self) -> Labels:
        """Labels of the K classes."""
        return self._known().classes

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X in the fit."""
        return self._columns_known().count

    @property
    def feature_names_in_(self) -> npt.NDArray[np.object_]:
        """Names of the columns of X in the fit. Raises an AttributeError if the columns had no names."""
        names = self._known().names
        if names is None:
            raise AttributeError(f"this {type(self).__name__} was fitted without names of columns")
        columns = self._columns_known()
        own = names if columns is self._known().layout or columns.columns is None else columns.columns
        return np.array(own, dtype=object)

    @property
    def n_events_(self) -> float:
        """Total weight of the resolved events."""
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
        """Return the options of the rule: the constructor's arguments other than floors."""
        kind: Any = type(self)  # mypy takes no class for hashable
        options = {name: getattr(self, name) for name in _parameters(kind) if name not in _OUTSIDE}
        if isinstance(options.get("weights"), Mapping):
            options["weights"] = {str(name): weight for name, weight in options["weights"].items()}
        return options

    @property
    def weights_(self) -> Array:
        """Weights of the experts when all are present, (N,); an AttributeError if the rule has no weights."""
        check_is_fitted(self)
        if self.state_.weights is None:
            raise AttributeError(f"{type(self).__name__} has no weights")
        return self.state_.weights

    @property
    def prior_(self) -> Array | None:
        """Prior probabilities in the order of `classes_`, (K,); None if each event had its own prior."""
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
    """Return the names of the constructor's parameters of a pool class, for scikit-learn."""
    return tuple(kind._get_param_names())


class Read(NamedTuple):
    """Checked arguments of `fit`: forecasts by expert, outcomes, topics, times, and what columns and levels mean."""

    q: Array  # (T, N), or (T, N, K) when K > 2
    outcomes: Codes  # (T,); -1 where not resolved
    about: FitState  # columns and classes, without a fitted pool
    topics: npt.ArrayLike | None
    made: npt.NDArray[np.datetime64] | None  # (T, N); time when each forecast was made
    scales: dict[str, Scale]
    ties: Mask | None  # (T,); True if the outcome is a tie of preferences

    def forecasts(self) -> Forecasts:
        """Return the data as a `Forecasts`."""
        experts, classes = self.about.layout.experts, tuple(self.about.classes.tolist())
        found = Forecasts.from_array(self.q, experts=experts, classes=classes, topics=self.topics)
        made = None if self.made is None else self.made[found.event_index, found.expert_index]
        return replace(found, outcomes=self.outcomes, scales=self.scales, ties=self.ties, made=made)


@dataclass(eq=False, repr=False)
class BasePool(ClassifierMixin, FittedAttributes):  # type: ignore[misc]
    """Abstract base class of all pools, which reads X and y, pools and scores.

    **X** is events x experts, the probability of ``classes_[1]``, NaN where a forecast is missing; for one expert it
    may be a vector. K > 2 classes: events x experts x classes, or (events, experts * classes) as `StackingClassifier`
    passes it. Columns with names are matched by name, as text and in any order; an expert whose column is missing has
    no forecasts, an unknown column is an error. Without names, columns are matched by position. Columns called
    ``expert:class`` are assigned by these names.

    **y** holds labels, None or NaN for unresolved events, which are pooled and never learned from. Numbers with one
    outcome only are taken to be 0 and 1. Rows of pandas objects are matched by index. Instead of X and y, `fit` takes
    `op.Forecasts`, and the other methods take them for X; then classes keep the order that they have there. (Tools of
    scikit-learn that look into y themselves, stratified folds and `cross_val_predict` among them, want every event
    resolved.)

    **prior** is the reference that the experts share: one, or one per event (K > 2: a vector, or one per event);
    in `fit` Laplace's estimate if not given, afterwards that of the fit. **base_rate** says how frequent the
    event is where the answer is used. Both, and **sample_weight**, which is a frequency, can be routed as metadata.
    """

    binary_only: ClassVar[bool] = False

    _: KW_ONLY
    floor: float = FLOOR
    pool_floor: float = POOL_FLOOR
    scale: object = None

    def fit(
        self,
        X: Given,
        y: Given = None,
        prior: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        classes: npt.ArrayLike | None = None,
        topics: npt.ArrayLike | None = None,
        times: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit the pool to the resolved events.

        Parameters
        ----------
        X : array_like, data frame or Forecasts
            Probability of ``classes_[1]`` by N experts on T events, (T, N), or of each class, (T, N, K) or a column
            ``expert:class`` each; NaN where missing. If the estimator has a `scale`, levels.
        y : array_like, shape (T,)
            Outcomes, None or NaN where an event is not resolved; not given if X is a `Forecasts`.
        prior : float or array_like, shape (T,), or (K,), (T, K) when K > 2, optional
            Probability of ``classes_[1]``, or of each class, before any forecast; estimated if not given.
        sample_weight : array_like, shape (T,), optional
            How many events each event counts as.
        classes : array_like, optional
            All labels, if `y` may lack one. If not given, the classes in names of columns, ``expert:class``, else the
            labels in `y`.
        topics : array_like of str, shape (T,), optional
            Topic of each event; None or NaN where unknown. The default Gaussian pool learns how topics differ, and
            other pools ignore them.
        times : array_like, shape (T, N), optional
            Time when each forecast was made, in the order of the columns of X, as datetime64 or in days; NaT or NaN
            where unknown. The default Gaussian pool learns how forecasts lose value with age.

        Raises
        ------
        OpinionPoolError
            If an argument is invalid, or the data do not determine the fit.
        """
        plain = all(each is None for each in (classes, self.scale, sample_weight, topics, times))
        dense = self._fit_dense(X, y, prior) if plain and type(X) is type(y) is np.ndarray else None
        if dense is not None:
            labels, learned = dense
            flat = X.reshape(len(X), -1)
            layout = ExpertColumns.of_columns(None, flat.shape[1], labels, deep=X.ndim == 3)
            notes = pair_notes(X) if len(labels) == 2 else ()
            return self._keep(FitState(layout, labels, None, learned, float(learned.events.sum()), notes=notes))
        keys = row_keys(X)
        if isinstance(X, Forecasts):
            without(y=y, classes=classes, topics=topics, times=times)
            forecasts, layout = X, ExpertColumns.of_forecasts(X)
            empty = FitState(layout, label_array(X.classes), layout.columns)
        else:
            read = self._read(X, y, classes, topics, times)
            forecasts, empty = read.forecasts(), read.about
        if self.binary_only and len(empty.classes) > 2:
            raise OutcomeError(f"Only binary classification is supported. There are {len(empty.classes)} classes.")
        weight = event_weights(aligned(sample_weight, keys, "sample_weight"), len(forecasts.events))
        learned = fit_pool(
            self.rule,
            forecasts,
            prior=aligned(prior, keys, "prior"),
            sample_weight=weight,
            floor=self.floor,
            pool_floor=self.pool_floor,
            **self._options(),
        )
        events = float(weight[forecasts.resolved].sum())
        about = forecasts.topics is not None
        return self._keep(replace(empty, learned=learned, events=events, topics=about))

    def _keep(self, fitted: FitState) -> Self:
        """Set the result of the fit, and warn of its serious notes; return the estimator."""
        self._fitted = fitted
        assert fitted.learned is not None
        for note in (*fitted.learned.notes, *fitted.notes):
            if note.serious:
                warnings.warn(note.text, OpinionPoolWarning, stacklevel=3)
        return self

    def _fit_dense(self, X: Given, y: Given, prior: npt.ArrayLike | None) -> tuple[Labels, Fitted] | None:  # noqa: ARG002
        """Classes and fitted pool directly from arrays, which is faster; None if pool or arguments do not permit it."""
        return None

    def _read(
        self, X: Given, y: Given, given: Given, topics: Given, times: Given, begun: FitState | None = None
    ) -> Read:
        """X and y of a fit, or of a further batch after the fit `begun`, checked; `given` are all classes or None."""
        names, keys, who = column_names(X), row_keys(X), type(self).__name__
        scales, known_columns = self._scales(begun), self._columns_known() if begun else None
        if scales:
            axes(X, "X")
            own_scales(scales, experts_of(X, known_columns))
        columns = columns_of(X, self, scales)
        y, ties = without_ties(aligned(y, keys, "y"), scales)
        labels, known = labels_of(y, len(columns), who, given if begun is None else begun.classes)
        classes = settled_classes(labels, given, names, columns) if begun is None else begun.classes
        pairs = begun is None and not scales and len(classes) == 2 and not experts_by_class(names)[1]
        notes = pair_notes(columns) if pairs else ()
        names, columns, classes, faced = _without_levels(names, columns, classes, scales, known_columns)
        flat, deep = flattened(columns, len(classes))
        layout = known_columns or ExpertColumns.of_columns(names, flat.shape[1], classes, deep)
        q, rounded = layout.forecasts(layout.arrange(flat, names, who))
        topics, when = aligned(topics, keys, "topics"), aligned(times, keys, "times")
        made = None if times is None else times_by_expert(when, q, layout, names, who)
        outcomes = encode(labels, known, classes)
        return Read(q, outcomes, FitState(layout, classes, names, None, 0.0, rounded, notes), topics, made, faced, ties)

    def predict_proba(
        self,
        X: Given,
        prior: npt.ArrayLike | None = None,
        base_rate: npt.ArrayLike | None = None,
        topics: npt.ArrayLike | None = None,
        times: npt.ArrayLike | None = None,
    ) -> Array:
        """Return pooled probabilities of the classes, (T, K); 0 for classes that are no options of an event.

        Parameters
        ----------
        X : array_like, data frame or Forecasts
            Forecasts, as described for the class.
        prior, base_rate : float or array_like, shape (T,), or (K,), (T, K) when K > 2, optional
            What all experts start from, and how frequent such events are here, if that differs; as for the class.
        topics : array_like of str, shape () or (T,), optional
            Topic of each event, as in `fit`; for new topics, or if not given, weights are those common to all topics.
        times : array_like, shape (T, N), optional
            Time when each forecast was made, as in `fit`; ages are counted back from the newest forecast of an event.

        Raises
        ------
        NotFittedError
            Before `fit`.
        OpinionPoolError
            If an argument is invalid, or each event had its own prior in `fit` and no prior is given now.
        """
        check_is_fitted(self)
        fitted, state = self._learned()
        k = len(fitted.classes)
        if isinstance(X, Forecasts):
            fitted.layout.check(X)
            without(topics=topics, times=times)
            prior, k = own_or_learned(X, prior, state.prior), len(X.classes)
            state = state if X.options is None else state.for_options(X.classes)
            p = state.pool_forecasts(X, prior, base_rate)
        else:
            q, prior, base_rate = self._asked(X, prior, base_rate, fitted, state)
            about = self._topics(X, topics, len(q), state, fitted)
            if times is not None:
                timed = self._with_times(X, q, about, times, fitted)
                p = state.pool_forecasts(timed, prior, base_rate)
            elif k == 2 and len(q) > EVENTS and about is None and _own(prior) and _own(base_rate):
                return _pool_in_parts(state, q, prior, base_rate)
            else:
                p = state.pool(q, prior, base_rate, about)
        return all_classes(np.asarray(p), k)

    def _asked(
        self,
        X: Given,
        prior: npt.ArrayLike | None,
        base_rate: npt.ArrayLike | None,
        fitted: FitState,
        learned: Fitted,
    ) -> tuple[Array, npt.ArrayLike | None, npt.ArrayLike | None]:
        """Forecasts of X, (T, N) or (T, N, K), experts as in the fit and rows as in X; and the prior and base rate."""
        if isinstance(X, Forecasts):
            fitted.layout.check(X)
            return fitted.layout.dense(X), own_or_learned(X, prior, learned.prior), base_rate
        if fitted.layout.own:
            raise ArgumentError(
                "this pool was fitted to events with options of their own, and an array does not say which options its "
                "events have; pass op.Forecasts, as from op.Forecasts.from_array(..., options=...)"
            )
        keys, who = row_keys(X), type(self).__name__
        scales, layout = self._scales(fitted), fitted.layout
        columns = columns_of(X, self, scales, layout)
        names, columns, *_ = _without_levels(column_names(X), columns, fitted.classes, scales, layout)
        columns, _ = flattened(columns, len(fitted.classes))
        if fitted.layout.count > 1 and (names is None) != (fitted.names is None):
            warnings.warn(_names_note(who, fitted.names), OpinionPoolWarning, stacklevel=4)
        q, _ = fitted.layout.forecasts(fitted.layout.arrange(columns, names, who))
        return q, aligned(prior, keys, "prior"), aligned(base_rate, keys, "base_rate")

    def _topics(
        self, X: Given, topics: Given, events: int, learned: Fitted, fitted: FitState
    ) -> npt.NDArray[np.str_] | None:
        """Return the events' topics, (T,), or None; an ArgumentError if given to a pool that was fitted without any."""
        if isinstance(X, Forecasts):
            without(topics=topics)
            return X.topics
        if topics is None:
            return None
        # Topics that are all alike or blank teach nothing, but were given.
        given = fitted.topics or fitted.stream is not None
        if isinstance(learned, FittedPanel) and learned.topics is None and not given:
            raise ArgumentError("this pool has learned nothing about topics: give them to fit, or leave them out")
        return event_labels(aligned(topics, row_keys(X), "topics"), events, "topics")

    def _with_times(self, X: Given, q: Array, topics: Given, times: Given, fitted: FitState) -> Forecasts:
        """Return the arranged forecasts `q` as a `Forecasts` with the times at which they were made."""
        classes = tuple(fitted.classes.tolist())
        forecasts = Forecasts.from_array(q, experts=fitted.layout.experts, classes=classes, topics=topics)
        given = aligned(times, row_keys(X), "times")
        return timed(forecasts, fitted.layout, column_names(X), given, type(self).__name__)

    def _pooled(self, X: Given, prior: Given, base_rate: Given, topics: Given, times: Given) -> Array:
        """Return the pooled probabilities, (T, K); topics and times are passed on only if given."""
        about = {name: v for name, v in (("topics", topics), ("times", times)) if v is not None}
        return self.predict_proba(X, prior, base_rate, **about)

    def predict(
        self,
        X: Given,
        prior: npt.ArrayLike | None = None,
        base_rate: npt.ArrayLike | None = None,
        topics: npt.ArrayLike | None = None,
        times: npt.ArrayLike | None = None,
    ) -> Labels:
        """Return the most probable class of each event, (T,), in the type of y."""
        best = self._pooled(X, prior, base_rate, topics, times).argmax(axis=1)
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
        topics: npt.ArrayLike | None = None,
        times: npt.ArrayLike | None = None,
    ) -> float:
        """Mean normalised log score over resolved events: 0 for repeating the scoring prior; higher is better.

        Parameters
        ----------
        X, y, sample_weight, prior, base_rate, topics, times
            As for `fit` and `predict_proba`.
        scoring_prior : float or array_like, shape (T,), or (K,), (T, K) when K > 2, optional
            Uniform if not given, over the event's own options if it has its own.

        Returns
        -------
        float
            NaN if no event is resolved.
        """
        p = self._pooled(X, prior, base_rate, topics, times)
        if isinstance(X, Forecasts):
            without(y=y)
            codes = X.outcomes
            if scoring_prior is None and X.even is not None:
                scoring_prior = public_probabilities(X.even)
        else:
            keys = row_keys(X)
            labels, known = labels_of(aligned(y, keys, "y"), len(p), type(self).__name__, self.classes_)
            codes = encode(labels, known, self.classes_)
            sample_weight = aligned(sample_weight, keys, "sample_weight")
            scoring_prior = aligned(scoring_prior, keys, "scoring_prior")
        outcomes = np.where(codes < 0, np.nan, codes)
        scores = log_score(p, outcomes, scoring_prior, floor=self.pool_floor)
        return mean_score(scores, sample_weight).mean

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        tags.classifier_tags.multi_class = not self.binary_only
        return tags


def _without_levels(
    names: tuple[str, ...] | None,
    q: Array,
    classes: Labels,
    scales: Mapping[str, Scale],
    fitted: ExpertColumns | None,
) -> tuple[tuple[str, ...] | None, Array, Labels, dict[str, Scale]]:
    """Return column names, forecasts and classes after turning levels in `q` into probabilities of classes; scales."""
    if not scales:
        return names, q, classes, {}
    q, labels, faced = towards(q, names or experts_of(q, fitted), scales, classes.tolist())
    if q.ndim == 2:
        return names, q, classes, faced
    columns = None if names is None else tuple(f"{name}:{label_text(label)}" for name in names for label in labels)
    return columns, q, label_array(tuple(labels)), faced


def _pool_in_parts(state: Fitted, q: Array, prior: npt.ArrayLike | None, base_rate: npt.ArrayLike | None) -> Array:
    """Return probabilities of two classes, (T, 2), computed in parts so that no further array of T rows is needed."""
    both = np.empty((len(q), 2))
    try:
        for start in range(0, len(q), EVENTS):
            rows = slice(start, start + EVENTS)
            both[rows, 1] = state.pool(q[rows], prior, base_rate)
    except ProbabilityError:
        check_probabilities(q)
        raise
    np.subtract(1.0, both[:, 1], out=both[:, 0])
    return both


def _names_note(who: str, names: tuple[str, ...] | None) -> str:
    """Return scikit-learn's warning that `who` matches columns by position, as only X or only the fit has names."""
    if names is None:
        return f"X has feature names, but {who} was fitted without feature names: columns are taken in the order of fit"
    return (
        f"X does not have valid feature names, but {who} was fitted with feature names: columns are taken in the order "
        f"{listed(names)}"
    )


def _own(value: npt.ArrayLike | None) -> bool:
    return value is None or np.ndim(value) == 0
