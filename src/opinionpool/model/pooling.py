"""From forecasts to answers, for arrays, cells and single events (paper, equations 10 and 11)."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, Self

import numpy as np

from opinionpool.arrays import Array, Index, Mask
from opinionpool.blocks import BLOCK, blocks, in_order, pieces, rows_of_block
from opinionpool.errors import ProbabilityError
from opinionpool.logodds import FLOOR, POOL_FLOOR
from opinionpool.model.contrasts import Batch, Extremes


class Settings(NamedTuple):
    """Bounds of forecasts before pooling and of answers after it, and the moderation of extreme forecasts."""

    floor: float = FLOOR  # least probability taken from an expert
    pool_floor: float = POOL_FLOOR  # least probability given as an answer
    extremes: Extremes = Extremes()  # moderation of extreme forecasts

    def contrasts(self, batch: Batch) -> Array:
        """Moderated contrasts: log-ratios of forecasts less the prior's, L − L°, (T, N, K - 1); NaN where missing."""
        return np.asarray(np.subtract(*self.levels(batch)))

    def levels(self, batch: Batch) -> tuple[Array, Array]:
        """Forecasts' log-ratios a, (T, N, K - 1), and b to subtract from these: a − b are the moderated contrasts."""
        extremes = self.extremes if batch.experts is None else self.extremes.subset(batch.experts)
        if batch.classes > 2:
            return extremes.believed(batch.contrasts(), batch.base.absent), np.zeros((1, 1, 1))
        if math.isinf(extremes.limit):
            return batch.log_ratios(), batch.base.ratios[:, None, :]
        batch.check()
        deviation = extremes.deviation_of(batch.q, batch.base.bounds, batch.base.ratios)[..., None]
        centre = np.zeros((1, 1)) if extremes.centre is None else extremes.centre
        return deviation, -centre if centre.ndim == 3 else -centre[None]


class Solver(Protocol):
    """Interface of a model that weighs experts: `Parts` (classes alike) or `Discriminant` (means for each class).

    `experts` (T, m) says which expert each column of a row is; if None, column i is expert i.
    """

    @property
    def informative(self) -> Mask:
        """True for experts with an influence, (N,)."""

    @property
    def weights(self) -> Array:
        """Weights of the experts when all are present, (N,)."""

    def weights_for(self, present: Mask, experts: Index | None = None) -> Array:
        """Return the weights of the experts that `present` marks in each row, (T, m), 0 for others (model.md, 2.3)."""

    def added(self, debiased: Array, experts: Index | None = None) -> Array:
        """Each expert's contribution to pooled log-ratios, from own ones `debiased`, (T, m, K - 1); 0 for NaN."""

    def total(self, levels: Array, origin: Array, experts: Index | None = None) -> Array:
        """Sum of the experts' contributions, (T, K - 1), from forecasts in log-ratios, `levels` less `origin`."""

    def drawn(self, outcomes: Index, classes: int, rng: np.random.Generator) -> Array:
        """Log-ratios less the prior's and the bias, (T, N, K - 1), drawn from the model given `outcomes` (T,)."""

    def subset(self, positions: Index) -> Self:
        """Return the model of the experts at `positions` only."""


def pooled(solver: Solver, bias: Array, settings: Settings, batch: Batch) -> Array:
    """Pooled probabilities of `batch`, (T,), or (T, K) if K > 2: of log-ratios L° + Σ w_i (L_i − L° − bias_i)."""

    def answer(some: Batch) -> Array:
        levels, origin = settings.levels(some)
        own = bias if some.experts is None else bias[some.experts]
        return some.answers(some.start + solver.total(levels, origin + own, some.experts))

    if batch.q.size <= BLOCK:
        return answer(batch)
    answers, width = np.empty((len(batch.q), *batch.q.shape[2:])), math.prod(batch.q.shape[1:])

    def fill(piece: slice) -> None:
        # Twice a block: only the contrasts are as large, and what is done once a block is much of the work.
        for rows in blocks(piece, width, 2 * rows_of_block(width)):
            answers[rows] = answer(batch.some(rows))

    try:
        for _ in in_order(fill, pieces(len(batch.q), width)):
            pass
    except ProbabilityError:
        batch.check()
        raise
    return answers


def contributions(solver: Solver, bias: Array, settings: Settings, batch: Batch) -> Array:
    """Return each expert's contribution to the pooled log-ratios of T events, (T, N, K - 1), 0 without a forecast."""
    added = np.empty((*batch.q.shape[:2], batch.classes - 1))
    for rows in batch.blocks():
        added[rows] = solver.added(settings.contrasts(batch.some(rows)) - bias)
    return added
