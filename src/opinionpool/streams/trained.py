"""A fitted pool with its options and the stream of its events, with which it can go on learning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.errors import LayoutError, LearningError, Note, SavedPoolError
from opinionpool.forecasts import Forecasts
from opinionpool.labels import label_text
from opinionpool.logodds import all_classes
from opinionpool.pools.fit import fit_pool
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.priors import own_or_learned
from opinionpool.scales import scale_texts
from opinionpool.streams.stream import NEWER, Stream
from opinionpool.text import listed
from opinionpool.version import __version__


@dataclass(frozen=True, eq=False)
class TrainedPool:
    """Fitted pool, its options and its stream, as ``opinionpool pool --save`` writes and `op.load` reads them.

    `predict_proba` answers as an estimator of scikit-learn does, and `updated` goes on learning. Intervals of answers
    are those of ``learned.forecast_intervals(forecasts)``.

    Attributes
    ----------
    name : str
        Name of the pool in `opinionpool.pools.registry.POOLS`.
    learned : FittedPanel or FittedPool
    stream : Stream or None
        Events that it learned from, to which further ones are added; None if it cannot go on learning.
    options : mapping
        Options of the pool.
    release : str or None
        Release of opinionpool that fitted it; None if the file does not have it.
    duplicates : str or None
        Rule by which one of several forecasts of an expert was chosen in its files, if known.
    scales : mapping of str to str, or None
        Scales of experts who gave levels, as texts.
    at_least : str or None
        Lowest grade at which an event happened, if outcomes were grades.
    """

    name: str
    learned: Fitted
    stream: Stream | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    release: str | None = __version__
    duplicates: str | None = None
    scales: Mapping[str, Any] | None = None
    at_least: str | None = None

    @classmethod
    def fit(
        cls,
        name: str,
        forecasts: Forecasts,
        *,
        prior: npt.ArrayLike | None = None,
        **options: Any,  # noqa: ANN401
    ) -> TrainedPool:
        """Fit a pool, with a stream of its events so that it can go on learning.

        Parameters
        ----------
        name, forecasts
            As for `opinionpool.pools.fit.fit_pool`.
        prior : float or array_like, shape (K,), optional
            Prior of all events without one of their own.
        **options
            Options of the pool.

        Examples
        --------
        >>> f = Forecasts.from_array([[0.8], [0.3]], [1, 0], events=["a", "b"])
        >>> trained = TrainedPool.fit("average", f)
        >>> more = Forecasts.from_array([[0.8], [0.6]], [1, 1], events=["a", "c"])
        >>> trained, notes = trained.updated(more)
        >>> trained.learned.events, notes[0].text
        (array([1., 2.]), '1 resolved event learned from before, and not again')
        """
        stream = Stream(forecasts.classes, prior=prior)
        stream.add(forecasts)
        learned, scales = fit_pool(name, forecasts, prior=prior, **options), scale_texts(forecasts.scales)
        return cls(name, learned, stream, options, scales=scales or None)

    @classmethod
    def of(cls, saved: object) -> TrainedPool:
        """Return the trained pool in a saved object, which is a fitted estimator, panel or pool, or a stream.

        Raises
        ------
        SavedPoolError
            If the object is not fitted.
        """
        if isinstance(saved, cls):
            return saved
        if isinstance(saved, Stream):
            return cls("gaussian", saved.learn(), saved, scales=scale_texts(saved.scales) or None)
        if isinstance(saved, Fitted):
            return cls(saved.rule, saved)
        learned, rule = getattr(saved, "state_", None), getattr(saved, "rule", None)
        if learned is None or not isinstance(rule, str):
            raise SavedPoolError(f"a {type(saved).__name__} is saved there, which has not learned from any events")
        options = saved._options()  # type: ignore[attr-defined]
        scales = scale_texts(saved._scales(saved._known()))  # type: ignore[attr-defined]
        return cls(rule, learned, getattr(saved, "stream_", None), options, scales=scales or None)

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the N experts."""
        return self.learned.experts

    @property
    def classes(self) -> tuple[object, ...]:
        """Labels of the K classes."""
        return self.learned.classes

    @property
    def unnamed(self) -> bool:
        """True if the classes are called 0 and 1 because no outcome has given their names yet."""
        return self.stream is not None and self.stream.count == 0 and list(map(label_text, self.classes)) == ["0", "1"]

    def named(self, classes: Sequence[object]) -> TrainedPool:
        """Copy refitted with two classes named `classes`, if its classes are without names; else this pool itself."""
        if self.stream is None or not self.unnamed or len(classes) != 2 or tuple(classes) == self.classes:
            return self
        stream = self.stream.with_classes(classes)
        return replace(self, stream=stream, learned=stream.fit(self.name, **self.options), release=__version__)

    def updated(self, forecasts: Forecasts) -> tuple[TrainedPool, tuple[Note, ...]]:
        """Return the pool refitted after further events, and notes for the user about the events; see `Stream.add`.

        Earlier forecasts on open events in `forecasts` are withdrawn if `forecasts` lacks them.

        Raises
        ------
        LearningError
            If the pool has no stream.
        """
        if self.stream is None:
            raise LearningError(
                "this pool was saved without what it learned from, so it cannot go on learning: fit all events again, "
                "or save one that learned by partial_fit"
            )
        stream = self.stream.with_classes(forecasts.classes) if self.unnamed else self.stream.copy()
        notes, stream.older = stream.add(forecasts, whole=True), False
        learned = stream.fit(self.name, **self.options)
        if any(note.code == "older-method" for note in self.learned.notes):
            notes = (*notes, *NEWER)
        return replace(self, stream=stream, learned=learned, release=__version__), notes

    def fitted_now(self) -> Fitted:
        """Pool fitted to its stream by this release; the saved fit, if that is of this release or has no stream."""
        if self.stream is None or self.release == __version__:
            return self.learned
        return self.stream.fit(self.name, **self.options)

    def predict_proba(self, X: npt.ArrayLike | Forecasts) -> Array:
        """Return pooled probabilities of all classes, (T, K), as the estimators do.

        Parameters
        ----------
        X : array_like, shape (T, N), or (T, N, K) when K > 2, or Forecasts
            An array has the experts in the order of `experts`, `Forecasts` have them by name, and priors of events.

        Examples
        --------
        >>> f = Forecasts.from_array([[0.9, 0.7], [0.2, 0.4]], [1, 0], experts=["ann", "bob"])
        >>> TrainedPool.fit("average", f).predict_proba([[0.8, 0.6]]).round(2)
        array([[0.3, 0.7]])
        """
        if not isinstance(X, Forecasts):
            return all_classes(self.pool(X), len(self.classes))
        state = self.learned if X.options is None else self.learned.for_options(X.classes)
        return all_classes(state.pool_forecasts(X, own_or_learned(X, None, state.prior)), len(X.classes))

    def pool(
        self,
        q: npt.ArrayLike,
        prior: npt.ArrayLike | None = None,
        base_rate: npt.ArrayLike | None = None,
        topics: npt.ArrayLike | None = None,
    ) -> Array:
        """Return the pooled probabilities, as `Panel.pool`, with the prior of the fit if `prior` is None."""
        return self.learned.pool(q, prior, base_rate, topics)


def matched(forecasts: Forecasts, trained: TrainedPool, file: str) -> Forecasts:
    """Return `forecasts` with the class labels of the pool, or with their own if the pool's classes are not named yet.

    Raises
    ------
    LayoutError
        If the classes are not those of the pool.
    """
    mine, theirs = ([label_text(label) for label in labels] for labels in (forecasts.classes, trained.classes))
    if trained.unnamed and forecasts.options is None and len(mine) == 2:
        return forecasts
    if mine != theirs or forecasts.options is not None:
        turned = forecasts.options is None and len(mine) == 2 and mine == theirs[::-1]
        way = f"; say --positive {theirs[1]} (in Python positive={theirs[1]!r}), as for the pool" if turned else ""
        raise LayoutError(
            f"the forecasts are about classes {listed(mine)}, and the pool in {file} about {listed(theirs)}{way}"
        )
    return replace(forecasts, classes=trained.classes)
