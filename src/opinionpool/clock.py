"""When the events of a stream were resolved: at given times, or one after the other."""

from __future__ import annotations

from numbers import Real

import numpy as np
import numpy.typing as npt

from opinionpool.errors import ArgumentError, ShapeError
from opinionpool.logodds import Array
from opinionpool.wording import shown

__all__ = ["Clock", "times_of"]

# Beyond this, differences between times may overflow.
LATEST = 1e100


class Clock:
    """Tells the time of events that are resolved; all at once if nothing is forgotten.

    Parameters
    ----------
    half_life : float, optional
        After which an event counts half.

    Attributes
    ----------
    timed : bool or None
        Whether times are given, once that is known.
    count : int
        Events so far.

    Examples
    --------
    >>> clock = Clock(half_life=10.0)
    >>> clock.tell(2, None), clock.tell(1, None)
    (array([0., 1.]), array([2.]))
    """

    def __init__(self, half_life: float | None) -> None:
        if half_life is not None and not (_is_number(half_life) and 0 < half_life < np.inf):
            raise ArgumentError(f"a half-life must be a finite number above 0, and it is {half_life!r}")
        self.half_life = half_life
        self.timed: bool | None = None
        self.count = 0

    def tell(self, events: int, at: Array | None) -> Array:
        """The times of further events, `at` if they are given.

        Raises
        ------
        ArgumentError
            If times are given for some events of the stream and not for others, or have no meaning.
        """
        self.check(events, at)
        if self.half_life is None:
            return np.zeros(events)
        if events:
            self.timed = at is not None
        self.count += events
        return np.arange(self.count - events, self.count, dtype=np.float64) if at is None else at

    def check(self, events: int, at: Array | None) -> None:
        """Whether `tell` could tell these times.

        Raises
        ------
        ArgumentError
            As `tell` does.
        """
        if self.half_life is None and at is not None:
            raise ArgumentError("times of resolution mean something where a half_life is given, and none is")
        if self.half_life is not None and events and self.timed not in {None, at is not None}:
            raise ArgumentError("give at= for every event of a stream, or for none")

    def merged(self, other: Clock, *, both: bool) -> Clock:
        """The clock of two streams together; `both` is whether each has resolved events.

        Raises
        ------
        ArgumentError
            If they forget by counting events, which ran beside each other.
        """
        if self.half_life is not None and both and not (self.timed and other.timed):
            raise ArgumentError("streams that forget can be merged if their events have times: give at= when resolving")
        together = Clock(self.half_life)
        together.timed = self.timed or other.timed
        together.count = max(self.count, other.count)
        return together


def times_of(at: npt.ArrayLike, events: int) -> Array:
    """Times of resolution, one for each event, (T,).

    Raises
    ------
    ShapeError, ArgumentError
        If there is not one for each event, or one is no finite number. A date is none: it has no unit that could be
        that of the half-life.
    """
    given = np.asarray(at)
    if given.shape != (events,):
        raise ShapeError(f"{events} events need as many times, and their shape is {given.shape}")
    for time in [] if given.dtype.kind in "iuf" else given.tolist():
        if not _is_number(time):
            raise ArgumentError(
                "times of resolution are numbers in the unit of the half-life, such as days since a first one, and "
                f"one is {shown(str(time))}"
            )
    times = given.astype(np.float64)
    bad = ~(np.abs(times) <= LATEST)
    if bad.any():
        raise ArgumentError(f"times of resolution must be finite numbers, and one is {times[bad][0]:g}")
    return times


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)
