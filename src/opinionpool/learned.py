"""What learning leaves: a panel, the prior that it was learned with, and what is known about both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.errors import LearningError, Note, ProbabilityError
from opinionpool.forecasts import Forecasts
from opinionpool.fullpanel import FullPanel
from opinionpool.logodds import Array
from opinionpool.poolingpanel import PoolingPanel
from opinionpool.priors import own_priors
from opinionpool.shrunk import HeldFeatures
from opinionpool.sparse import pool_cells
from opinionpool.uncertainty import Uncertainty

__all__ = ["LearnedPanel"]


@dataclass(frozen=True, eq=False)
class LearnedPanel:
    """What a fit learned.

    Attributes
    ----------
    panel : PoolingPanel
        A `Panel`, or a `FullPanel` where the classes differ.
    prior : ndarray or None, shape (K,)
        The reference used, as class probabilities; None if each event had its own.
    structure : str
        What was learned: one of `STRUCTURES` but "auto", "default", "crowd", or "assumed" (nothing).
    events : ndarray, shape (K,)
        Weight of the resolved events by outcome.
    counts : ndarray, shape (N,)
        Weight of each expert's forecasts on resolved events.
    present : ndarray of bool, shape (N,)
        Who made a forecast, on whatever event.
    notes : tuple of Note
    alone : HeldFeatures or None
        What the data say of each expert by itself, where the panel's own features follow from its weights.
    doubt : Uncertainty or None
        What is open about the weights, where it is known.
    """

    panel: PoolingPanel
    prior: Array | None
    structure: str
    events: Array
    counts: Array
    present: npt.NDArray[np.bool_]
    notes: tuple[Note, ...] = ()
    alone: HeldFeatures | None = None
    doubt: Uncertainty | None = None

    @property
    def experts(self) -> tuple[str, ...]:
        """N names."""
        return self.panel.names

    @property
    def class_model(self) -> str:
        """Whether experts' weights differ between classes, "full", or not, "symmetric"."""
        return "full" if isinstance(self.panel, FullPanel) else "symmetric"

    @property
    def weights(self) -> Array:
        """Weights when everybody who made a forecast is present, (N,); 0 for the others."""
        return np.asarray(self.panel.weights_for(self.present[None])[0])

    def pool(
        self, q: npt.ArrayLike, prior: npt.ArrayLike | None = None, base_rate: npt.ArrayLike | None = None
    ) -> Array:
        """Pooled probability, as `Panel.pool`, with the prior of the fit unless another is given.

        Raises
        ------
        ProbabilityError
            If each event had its own prior in the fit and none is given now.
        """
        return self.panel.pool(q, self.reference(prior), base_rate)

    def pool_forecasts(
        self, forecasts: Forecasts, prior: npt.ArrayLike | None = None, base_rate: npt.ArrayLike | None = None
    ) -> Array:
        """The same for every event of some forecasts, (T,) or (T, K), without an array of events x experts.

        Forecasts may be by some of the experts, in any order. Their own priors are looked at only where events have
        options of their own, of which even chances are the prior if there is none.

        Raises
        ------
        ExpertError
            If an expert is not among those who were learned.
        ArgumentError
            If events have options of their own, and what was learned holds for classes that all share.
        """
        if prior is None and forecasts.options is not None:
            prior = own_priors(forecasts, None)
        return pool_cells(self.panel, forecasts, self.reference(prior), base_rate)

    def interval(
        self,
        q: npt.ArrayLike,
        prior: npt.ArrayLike | None = None,
        base_rate: npt.ArrayLike | None = None,
        level: float = 0.9,
    ) -> tuple[Array, Array]:
        """Interval for the pooled probability, from what the outcomes left open about the weights.

        Returns
        -------
        low, high : ndarray, shape (...), or (..., K) when K > 2

        Raises
        ------
        LearningError
            If this panel was learned in a way that does not say how sure it is.
        """
        if self.doubt is None:
            raise LearningError(
                f"a panel learned as {self.structure!r} does not say how sure it is; the default pool does"
            )
        return self.doubt.interval(self.panel, q, self.reference(prior), base_rate, level)

    def reference(self, prior: npt.ArrayLike | None = None) -> npt.ArrayLike:
        """The prior to use: the one given, or the one of the fit, in the form that `Panel.pool` takes."""
        if prior is not None:
            return prior
        if self.prior is None:
            raise ProbabilityError("these experts were learned with a prior for each event, so pooling needs one too")
        return logodds.public_probabilities(self.prior)
