"""How far extreme statements are believed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opinionpool import logodds
from opinionpool.errors import PanelError
from opinionpool.logodds import Array


@dataclass(frozen=True)
class Extremes:
    """A contrast C counts as m + c tanh((C − m)/c): as it is near the centre m, and never beyond m ± c.

    It acts on what is said beyond the prior, so that pools stay externally Bayesian. For more than two classes it acts
    on log-probabilities centred over the classes, with c/2, which is the same thing when there are two.

    Attributes
    ----------
    limit : float, default inf
        c in log-odds, above 0; infinite to believe everything.
    centre : tuple of float, default ()
        m, K - 1 log-ratios; 0 if empty. Where the prior itself is a guess from few events, extremes are
        measured from a more cautious one.

    Examples
    --------
    >>> import numpy as np
    >>> Extremes(5.0).believed(np.array([[0.1], [9.2]])).ravel().round(3)
    array([0.1  , 4.754])
    """

    limit: float = np.inf
    centre: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.limit > 0 or not np.isfinite(self.centre).all():
            raise PanelError(f"extremes need a limit above 0 and a finite centre, not {self.limit} and {self.centre}")

    def believed(self, contrasts: Array) -> Array:
        """Contrasts (..., K - 1) as far as they are believed; NaN stays."""
        if np.isinf(self.limit):
            return contrasts
        centre = np.array(self.centre) if self.centre else np.zeros(1)
        apart = contrasts - centre
        if contrasts.shape[-1] == 1:
            return np.asarray(centre + self.limit * np.tanh(apart / self.limit))
        half = self.limit / 2.0
        return np.asarray(centre + logodds.uncentred(half * np.tanh(logodds.centred(apart) / half)))
