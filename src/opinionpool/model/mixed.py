"""Several models of how experts depend on each other, averaged.

Where data do not decide which of them holds, the answer is the average of their answers in log-odds, so its weights are
the averages of theirs (model.md, section 8). That is not the answer by the average correlation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import PanelError
from opinionpool.model.correlation import CellWise, Dependence, MatrixCorrelation


@dataclass(frozen=True, eq=False)
class MixedCorrelation:
    """Correlations of N experts by several models, and the share of each in the answer.

    Attributes
    ----------
    models : tuple of Dependence
    share : ndarray, shape (models,)
        At least 0; they add up to 1.

    Examples
    --------
    >>> from opinionpool.model.correlation import CommonCorrelation
    >>> some = MixedCorrelation((CommonCorrelation(2, 0.0), CommonCorrelation(2, 0.5)), np.array([0.5, 0.5]))
    >>> some.solve(np.ones(2)).round(4)
    array([0.8333, 0.8333])
    """

    models: tuple[Dependence, ...]
    share: Array

    def __post_init__(self) -> None:
        shaped = self.share.shape == (len(self.models),) and len(self.models) > 0
        if not shaped or not (self.share >= 0).all() or abs(float(self.share.sum()) - 1.0) > 1e-9:
            raise PanelError("models of dependence need one share each, at least 0, and these should add up to 1")
        if len({each.size for each in self.models}) > 1:
            raise PanelError("models of dependence should be about the same experts")

    @property
    def size(self) -> int:
        """N."""
        return self.models[0].size

    def matrix(self) -> Array:
        """The average of the correlation matrices, (N, N)."""
        return np.asarray(sum(own * each.matrix() for own, each in self._parts))

    def times(self, v: Array) -> Array:
        """That average times v."""
        return np.asarray(sum(own * each.times(v) for own, each in self._parts))

    def solve(self, v: Array) -> Array:
        """The average of R⁻¹ v."""
        return np.asarray(sum(own * each.solve(v) for own, each in self._parts))

    def solve_present(self, v: Array, present: Mask) -> Array:
        """The average of R_SS⁻¹ v_S row by row, (T, N)."""
        return np.asarray(sum(own * each.solve_present(v, present) for own, each in self._parts))

    def solve_cells(self, event: Index, expert: Index, v: Array, events: int) -> Array:
        """The average of R_SS⁻¹ v_S by forecast, (M,), if all models have that."""
        parts = [own * cast(CellWise, each).solve_cells(event, expert, v, events) for own, each in self._parts]
        return np.asarray(sum(parts))

    def subset(self, positions: Index) -> MixedCorrelation:
        """The same among some of the experts."""
        return MixedCorrelation(tuple(each.subset(positions) for each in self.models), self.share)

    def expected(self, values: Array, present: Mask) -> Array:
        """Values (T, N) where present, and the average of what is expected of the others given these."""
        return np.asarray(sum(own * each.expected(values, present) for own, each in self._parts))

    def correlate(self, z: Array) -> Array:
        """Independent standard normals (..., N) to ones with the average correlation."""
        return MatrixCorrelation(self.matrix()).correlate(z)

    @property
    def _parts(self) -> list[tuple[float, Dependence]]:
        return [(float(own), each) for own, each in zip(self.share, self.models, strict=True) if own > 0]
