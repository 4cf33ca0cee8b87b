"""How far extreme statements are believed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from opinionpool import logodds
from opinionpool.errors import PanelError
from opinionpool.logodds import Array
from opinionpool.patterns import Positions


@dataclass(frozen=True, eq=False)
class Extremes:
    """A contrast C counts as m + c tanh((C − m)/c): as it is near the centre m, and never beyond m ± c.

    It acts on what is said beyond the prior, so that pools stay externally Bayesian. For more than two classes it acts
    on log-probabilities centred over the classes, with c/2, which is the same thing when there are two.

    Attributes
    ----------
    limit : float, default inf
        c in log-odds, above 0; infinite to believe everything.
    centre : ndarray or None, shape (N, K - 1)
        m, what each expert says of an event that it knows nothing about; 0 if None.

    Examples
    --------
    >>> import numpy as np
    >>> Extremes(5.0).believed(np.array([[0.1], [9.2]])).ravel().round(3)
    array([0.1  , 4.754])
    """

    limit: float = np.inf
    centre: Array | None = None

    def __post_init__(self) -> None:
        if not self.limit > 0 or (self.centre is not None and not np.isfinite(self.centre).all()):
            raise PanelError(f"extremes need a limit above 0 and a finite centre, not {self.limit} and {self.centre}")

    def believed(self, contrasts: Array) -> Array:
        """Contrasts (..., N, K - 1) as far as they are believed; NaN stays."""
        if np.isinf(self.limit):
            return contrasts
        held = self.apart(contrasts)
        return held if self.centre is None else np.asarray(held + self.centre)

    def apart(self, contrasts: Array) -> Array:
        """The same, measured from the centre."""
        apart = contrasts if self.centre is None else np.asarray(contrasts - self.centre)
        if np.isinf(self.limit):
            return apart
        if contrasts.shape[-1] == 1:
            return np.asarray(self.limit * np.tanh(apart / self.limit))
        half = self.limit / 2.0
        return logodds.uncentred(half * np.tanh(logodds.centred(apart) / half))

    def subset(self, positions: Positions) -> Extremes:
        """The same for some of the experts."""
        return self if self.centre is None else replace(self, centre=self.centre[positions])
