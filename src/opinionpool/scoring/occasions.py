"""When answers are scored: once for each event, or at every moment of its life."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.forecasts import Forecasts

Times = npt.NDArray[np.datetime64]


@dataclass(frozen=True, eq=False)
class Occasions:
    """S occasions on which answers about T events are scored.

    Attributes
    ----------
    forecasts : Forecasts
        What stood then; an occasion is an event of it.
    event : ndarray of int, shape (S,)
        Increasing.
    share : ndarray, shape (S,)
        What each counts for in its event's score.
    events : int
        T.
    over_life : bool
        Whether they are the stretches of the events' lives.
    """

    forecasts: Forecasts
    event: Index
    share: Array
    events: int
    over_life: bool

    @classmethod
    def of(cls, sample: Forecasts) -> Occasions:
        """One for each event; or the stretches of the events' lives, where forecasts have a history."""
        t, history = len(sample.events), sample.history
        if history is None:
            return cls(sample, np.arange(t), np.ones(t), t, over_life=False)
        # Blanks among the events' own priors have been filled since they were read.
        prior = None if sample.prior is None else sample.prior[history.event]
        return cls(replace(history.forecasts, prior=prior), history.event, history.share, t, over_life=True)

    def among(self, rows: Index) -> Index:
        """The occasions of some events."""
        chosen = np.zeros(self.events, dtype=bool)
        chosen[rows] = True
        return np.flatnonzero(chosen[self.event])

    def mean(self, values: Array) -> Array:
        """Values by occasion, (S, ...), as means by event, (T, ...); NaN where there is none."""
        if not self.over_life:
            return values
        return self.sums(values) / self.sums(np.ones(len(values))).reshape(-1, *[1] * (values.ndim - 1))

    def sums(self, values: Array) -> Array:
        """Values by occasion, (S, ...), added up by event with their shares, (T, ...); NaN where there is none."""
        total = np.zeros((self.events, *values.shape[1:]))
        np.add.at(total, self.event, values * self.share.reshape(-1, *[1] * (values.ndim - 1)))
        total[self.without] = np.nan
        return total

    @property
    def without(self) -> npt.NDArray[np.bool_]:
        """Events without an occasion, (T,)."""
        return np.asarray(np.bincount(self.event, minlength=self.events) == 0)


def first_answered(forecasts: Forecasts, known: Times) -> Times:
    """When each event is answered for the first time, (T,); NaT where that is unknown.

    Parameters
    ----------
    forecasts : Forecasts
    known : ndarray of datetime64, shape (T,)
        When each outcome was known: no event is answered later.
    """
    answered = known if forecasts.asked is None else np.fmin(forecasts.asked, known)
    if forecasts.history is not None:
        answered = answered.copy()
        np.fmin.at(answered, forecasts.history.event, forecasts.history.begin)
    return answered
