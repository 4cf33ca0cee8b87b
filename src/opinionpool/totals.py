"""How many events, experts, outcomes and forecasts there are, also where they are not in memory together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opinionpool.forecasts import Forecasts


@dataclass(frozen=True)
class Totals:
    """Counts of some forecasts.

    Attributes
    ----------
    classes : tuple
    events, experts, cells : int
    outcomes : tuple of int
        Resolved events by class.

    Examples
    --------
    >>> f = Forecasts.from_array([[0.9, 0.7], [0.2, float("nan")]], [1, None])
    >>> Totals.of(f) + Totals.of(f)
    Totals(classes=(0, 1), events=4, experts=2, cells=6, outcomes=(0, 2))
    """

    classes: tuple[object, ...]
    events: int
    experts: int
    cells: int
    outcomes: tuple[int, ...]

    @classmethod
    def of(cls, forecasts: Forecasts) -> Totals:
        """Those of forecasts in memory."""
        t, n = forecasts.shape
        known = forecasts.outcomes[forecasts.resolved]
        counts = np.bincount(known, minlength=len(forecasts.classes)).tolist()
        return cls(forecasts.classes, t, n, len(forecasts.event_index), tuple(counts))

    def __add__(self, other: Totals) -> Totals:
        """Both together, by the same experts on other events."""
        counts = tuple(a + b for a, b in zip(self.outcomes, other.outcomes, strict=True))
        return Totals(self.classes, self.events + other.events, self.experts, self.cells + other.cells, counts)

    @property
    def resolved(self) -> int:
        """Resolved events."""
        return sum(self.outcomes)
