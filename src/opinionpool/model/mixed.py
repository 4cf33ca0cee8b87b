"""Average over several models of the dependence between experts.

Where data do not decide which of them holds, the answer is the average of their answers in log-odds, so its weights are
the averages of theirs (model.md, section 8). That is not the answer by the average correlation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import PanelError
from opinionpool.model.correlation import Dependence, MatrixCorrelation


@dataclass(frozen=True, eq=False)
class MixedCorrelation:
    """Correlations of N experts by several models, and the share of each model in the answer."""

    models: tuple[Dependence, ...]
    share: Array  # (models,); at least 0; they add up to 1
    signal: Array | None = (
        None  # (models, N); what each takes that of experts to be, relative to that of all; 1 if None
    )

    def __post_init__(self) -> None:
        shaped = self.share.shape == (len(self.models),) and len(self.models) > 0
        if not shaped or not (self.share >= 0).all() or abs(float(self.share.sum()) - 1.0) > 1e-9:
            raise PanelError("models of dependence need one share each, at least 0, and these should add up to 1")
        sizes = {each.size for each in self.models}
        if len(sizes) > 1 or (self.signal is not None and self.signal.shape != (len(self.models), *sizes)):
            raise PanelError("models of dependence should be about the same experts")

    @property
    def size(self) -> int:
        """Number of experts, N."""
        return self.models[0].size

    def average(self, of: Callable[[Dependence], Array]) -> Array:
        """Average of `of(model)` over the models, weighted by their shares."""
        pairs = zip(self.share.tolist(), self.models, strict=True)
        return np.asarray(sum(own * of(each) for own, each in pairs if own > 0))

    def matrix(self) -> Array:
        """The average of the correlation matrices, (N, N)."""
        return self.average(lambda each: each.matrix())

    def times(self, v: Array) -> Array:
        """The average correlation matrix times v."""
        return self.average(lambda each: each.times(v))

    def solve(self, v: Array, present: Mask, experts: Index | None = None, *, strict: bool = True) -> Array:
        """The average over the models of R_SS⁻¹ v_S in each row, (T, m), v times the model's relative signals."""
        if self.signal is None:
            return self.average(lambda each: each.solve(v, present, experts, strict=strict))
        total = np.zeros(present.shape)
        for own, each, signal in zip(self.share.tolist(), self.models, self.signal, strict=True):
            relative = signal if experts is None or v.ndim == 1 else signal[experts]
            total += own * each.solve(v * relative, present, experts, strict=strict)
        return total

    def subset(self, positions: Index) -> MixedCorrelation:
        """The models, restricted to the experts at `positions`."""
        signal = None if self.signal is None else self.signal[:, positions]
        return MixedCorrelation(tuple(each.subset(positions) for each in self.models), self.share, signal)

    def correlate(self, z: Array) -> Array:
        """Normals (..., N) with the average correlation, from independent standard normals `z`."""
        return MatrixCorrelation(self.matrix()).correlate(z)
