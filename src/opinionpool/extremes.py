"""How far extreme statements are believed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opinionpool.errors import PanelError
from opinionpool.logodds import Array, levelled
from opinionpool.patterns import Positions


@dataclass(frozen=True, eq=False)
class Extremes:
    """A statement counts as if, with a small probability s, the expert knew nothing of the event.

    What is said beyond the prior, as class probabilities in the ratio exp(D − m), is mixed with an even share s of a
    statement that says nothing, m. Statements near the centre m hardly change, and the log-odds between a class that
    is said to be certain and any other class end at c = log(1 + K (1 − s)/s). This acts on what is said beyond the
    prior, so that pools stay externally Bayesian, and treats all classes alike.

    Attributes
    ----------
    limit : float, default inf
        c in log-odds, above 0; infinite to believe everything. s = K/(e^c − 1 + K).
    centre : ndarray or None, shape (N, K - 1)
        m, what each expert says of an event that it knows nothing about; 0 if None.

    Examples
    --------
    >>> import numpy as np
    >>> Extremes(5.0).believed(np.array([[0.1], [9.2]])).ravel().round(3)
    array([0.099, 4.985])
    """

    limit: float = np.inf
    centre: Array | None = None

    def __post_init__(self) -> None:
        if not self.limit > 0 or (self.centre is not None and not np.isfinite(self.centre).all()):
            raise PanelError(f"extremes need a limit above 0 and a finite centre, not {self.limit} and {self.centre}")

    def believed(self, contrasts: Array, absent: npt.NDArray[np.bool_] | None = None) -> Array:
        """Contrasts (..., N, K - 1) as far as they are believed; NaN stays.

        Parameters
        ----------
        contrasts : ndarray, shape (..., N, K - 1)
        absent : ndarray of bool, optional
            Classes that are no options of the event, see `opinionpool.logodds.no_options`; broadcast to `contrasts`.
        """
        if np.isinf(self.limit):
            return contrasts
        held = self.apart(contrasts, absent)
        return held if self.centre is None else np.asarray(held + self.centre)

    def apart(self, contrasts: Array, absent: npt.NDArray[np.bool_] | None = None) -> Array:
        """The same, measured from the centre."""
        apart = contrasts if self.centre is None else np.asarray(contrasts - self.centre)
        if np.isinf(self.limit):
            return apart
        k = contrasts.shape[-1] + 1 if absent is None else 1 + (~absent).sum(axis=-1)
        # A limit past 700 is past all that can be said.
        share = k / (np.expm1(min(self.limit, 700.0)) + k)
        # Classes first: sums over a short last axis are slow.
        ratios = np.moveaxis(apart, -1, 0)
        top = np.maximum(ratios.max(axis=0), 0.0)
        said, base = np.exp(ratios - top), np.exp(-top)
        if absent is not None:
            said = np.where(np.moveaxis(np.broadcast_to(absent, apart.shape), -1, 0), 0.0, said)
        nothing = (share / k) * (said.sum(axis=0) + base)
        believed = np.moveaxis(np.log(((1.0 - share) * said + nothing) / ((1.0 - share) * base + nothing)), 0, -1)
        return np.asarray(believed if absent is None else levelled(believed, absent))

    def subset(self, positions: Positions) -> Extremes:
        """The same for some of the experts."""
        return self if self.centre is None else replace(self, centre=self.centre[positions])
