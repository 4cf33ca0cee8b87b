"""Probabilities that stand for a rounded 0, for more than two classes.

Who says tenths calls a class 0 that has one chance in forty, or one in ten thousand. Such a 0 counts as a probability
between the floor and h/4, h the least that the expert ever says but 0: the mean of those that
`opinionpool.learning.constants` has between these, by how well the default pool predicts the outcomes with each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.errors import Note
from opinionpool.estimation.newton import posterior_probabilities
from opinionpool.forecasts import Forecasts
from opinionpool.learning.constants import ROUNDED, ROUNDED_PROBABILITIES
from opinionpool.names import places


@dataclass(frozen=True, eq=False)
class Rounding:
    """Probabilities that stand for the zeros of experts who round.

    Attributes
    ----------
    experts : tuple of str
    zero : ndarray, shape (N,)
        0 for experts who do not round, or to less than the floor.
    """

    experts: tuple[str, ...]
    zero: Array

    @classmethod
    def learned(cls, forecasts: Forecasts, floor: float, evidence: Callable[[Forecasts], float]) -> Rounding | None:
        """Rounding, averaged by `evidence` (a log marginal likelihood) of raised forecasts; None if nobody rounds."""
        q, expert, n = forecasts.probabilities, forecasts.expert_index, len(forecasts.experts)
        if q.ndim == 1 or forecasts.options is not None:
            return None
        least = np.full(n, np.inf)
        np.minimum.at(least, expert, np.where(q > 0, q, np.inf).min(axis=1))
        rounds = (np.bincount(expert, (q == 0).any(axis=1), n) > 0) & (least > 4.0 * floor)
        if not rounds.any():
            return None
        ratio = np.where(rounds, least / (4.0 * floor), 0.0)[:, None]
        each = [cls(forecasts.experts, zero) for zero in (floor * ratio ** np.array(ROUNDED)).T]
        found = [evidence(rounding.forecasts(forecasts)) for rounding in each]
        share = posterior_probabilities(found, ROUNDED_PROBABILITIES)
        return cls(forecasts.experts, share @ np.array([rounding.zero for rounding in each]))

    def array(self, q: npt.ArrayLike) -> Array:
        """Probabilities `q` (..., N, K) of all experts, with zeros raised; `q` itself if it has another shape."""
        given = np.asarray(q, dtype=np.float64)
        return _raised(given, self.zero[:, None]) if given.shape[-2:-1] == self.zero.shape else given

    def note(self) -> Note:
        """Note on the probabilities that zeros count as."""
        low, high = (f"{each:.2g}%" for each in (100.0 * np.array([self.zero[self.zero > 0].min(), self.zero.max()])))
        count = low if low == high else f"{low} to {high}"
        number = np.count_nonzero(self.zero)
        return Note("rounding", f"0% counts as {count} where experts round, as outcomes bear out", int(number))

    def forecasts(self, forecasts: Forecasts) -> Forecasts:
        """Forecasts by any of the experts, with zeros raised."""
        zero = self.zero[places(forecasts.experts, self.experts)]
        return replace(forecasts, probabilities=_raised(forecasts.probabilities, zero[forecasts.expert_index, None]))


def _raised(q: Array, zero: Array) -> Array:
    """Probabilities `q` (..., K) with zeros replaced by `zero` (..., 1), rescaled to the sums before."""
    found = np.where(q == 0, zero, q)
    total = np.nansum(found, axis=-1, keepdims=True)
    return np.asarray(found * np.divide(np.nansum(q, axis=-1, keepdims=True), total, out=total.copy(), where=total > 0))
