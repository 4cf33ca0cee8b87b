"""What a stream shows and teaches, without changing it; other threads wait."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np

from opinionpool.arguments import expect_type
from opinionpool.arrays import Array
from opinionpool.errors import LearningError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.learn import learn_from
from opinionpool.learning.request import Request
from opinionpool.model.pooling import Settings
from opinionpool.pools.fit import fit_from
from opinionpool.pools.fitted_pool import Fitted
from opinionpool.streams.events import event_key
from opinionpool.streams.source import StreamSource
from opinionpool.streams.state import StreamState

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="StreamView")


def exclusive(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method during which no other thread looks at the stream or changes it."""

    @wraps(method)
    def locked(self: S, /, *given: P.args, **options: P.kwargs) -> R:
        with self._lock:
            self._state.recover()
            return method(self, *given, **options)

    return locked


class StreamView:
    """What can be asked of a `opinionpool.streams.stream.Stream`."""

    seed: int
    pool_floor: float
    _state: StreamState
    _lock: threading.RLock

    @property
    def classes(self) -> tuple[object, ...]:
        """K labels."""
        return self._state.classes

    @property
    def half_life(self) -> float | None:
        """After how many events, or how much time, an event counts half."""
        return self._state.clock.half_life

    @property
    def version(self) -> int:
        """Another number after each change."""
        return self._state.version

    @property
    @exclusive
    def experts(self) -> tuple[str, ...]:
        """N names, in order of first appearance."""
        return tuple(self._state.experts)

    @property
    def prior(self) -> Array | None:
        """The prior that was given, as class probabilities, (K,)."""
        return self._state.tally.prior

    @property
    @exclusive
    def count(self) -> int:
        """How many events have been resolved."""
        return self._state.count

    @property
    @exclusive
    def events(self) -> Array:
        """Weight of the resolved events by outcome, (K,)."""
        self._state.flush()
        return self._state.tally.events.copy()

    @property
    @exclusive
    def open(self) -> tuple[str, ...]:
        """Ids of the events with forecasts that are not resolved."""
        return tuple(str(record.event) for record in self._state.open.values())

    @property
    @exclusive
    def fingerprint(self) -> str:
        """64 hexadecimal digits that depend on what is in the stream, event by event, in any order (SHA-256, added up).

        That is forecasts, outcomes, weights, times, topics, groups and superseded forecasts, and open events with
        their forecasts. Rows without ids have no part in it, nor have times, topics, groups and superseded forecasts
        of resolved events that are no longer in the sample.
        """
        return f"{(self._state.fingerprint + self._state.described()) % (1 << 256):064x}"

    def __repr__(self) -> str:
        return f"<Stream of {self.count} resolved and {len(self._state.open)} open events, {len(self.experts)} experts>"

    @exclusive
    def knows(self, event: str) -> bool:
        """Whether a resolved event has been learned from."""
        return self._state.ledger.find(self._key(event)) is not None

    @exclusive
    def copy(self) -> Self:
        """A copy that can change independently."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__, _state=self._state.copy(), _lock=threading.RLock())
        return other

    @exclusive
    def sample(self) -> tuple[Forecasts, Array]:
        """The events from which pools are learned that need rows, and how many events each stands for, (T,).

        Open events are among them.
        """
        if not self.experts:
            raise LearningError("nothing has been added yet, so there is nothing to learn from")
        return self._state.sample()[:2]

    @exclusive
    def forecasts(self) -> Forecasts:
        """The open events, to be pooled."""
        if not self.experts:
            raise LearningError("nothing has been added yet")
        return self._state.forecasts(list(self._state.open.values()))

    def learn(self, structure: str = "auto", beliefs: Beliefs | str | None = "default", **options: Any) -> FittedPanel:  # noqa: ANN401
        """Learn a Gaussian panel from what is known now; options as for `opinionpool.learning.learn.learn`.

        Raises
        ------
        LearningError
            If the data do not determine the panel.
        """
        request = Request(structure, beliefs, **options, settings=self._floors())
        return learn_from(StreamSource(self.copy()._state), request)

    def fit(self, pool: str = "gaussian", **options: Any) -> Fitted:  # noqa: ANN401 - each pool has its own
        """Learn any pool from what is known now; arguments as for `opinionpool.pools.fit.fit_pool`."""
        floors = self._floors()
        return fit_from(
            StreamSource(self.copy()._state), pool, floor=floors.floor, pool_floor=floors.pool_floor, **options
        )

    def _floors(self) -> Settings:
        return Settings(self._state.tally.floor, self.pool_floor)

    def _key(self, event: str) -> int:
        if type(event) is not str:
            expect_type(event, (str, int, np.integer), "event")
        return event_key(str(event), self.seed)
