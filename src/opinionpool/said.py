"""What experts say about a batch of events, as every pool and every fit of one sees it: floored, gaps known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.logodds import Array
from opinionpool.patterns import Mask
from opinionpool.stated import Stated, blocks

__all__ = ["Said", "said_in"]


@dataclass(frozen=True, eq=False)
class Said:
    """What experts say about T events, on each of which one of them says something.

    Attributes
    ----------
    ratios : ndarray, shape (T, N, K - 1)
        Floored log-ratios, NaN where missing.
    reference : ndarray, shape (T, K - 1)
        Log-ratios of the prior.
    """

    ratios: Array
    reference: Array

    @cached_property
    def present(self) -> Mask:
        """Who answered, (T, N)."""
        return np.asarray(~np.isnan(self.ratios[..., 0]))

    @cached_property
    def count(self) -> npt.NDArray[np.intp]:
        """How many answered, (T,)."""
        return np.asarray(self.present.sum(axis=1))

    @cached_property
    def contrasts(self) -> Array:
        """L − L°, (T, N, K - 1), 0 where missing."""
        return np.where(self.present[..., None], self.ratios - self.reference[:, None, :], 0.0)

    @cached_property
    def probabilities(self) -> Array:
        """Floored probabilities of all classes, (T, N, K), 0 where missing."""
        known = self.ratios if self.present.all() else np.where(self.present[..., None], self.ratios, 0.0)
        if known.shape[2] == 1:
            p = np.concatenate([logodds.expit(-known), logodds.expit(known)], axis=-1)
        else:
            p = logodds.softmax(known)
        p[~self.present] = 0.0
        return p

    @property
    def mean_contrast(self) -> Array:
        """Mean of the contrasts of those present, (T, K - 1)."""
        return np.asarray(self.contrasts.sum(axis=1) / self.count[:, None])

    def shares(self, weights: Array | None) -> Array:
        """Weights of those present that add up to 1, (T, N); equal if none of them has any."""
        shares = self.present * (1.0 if weights is None else weights)
        total = shares.sum(axis=1, keepdims=True)
        return np.where(total > 0, shares, self.present) / np.where(total > 0, total, self.count[:, None])


def said_in(stated: Stated, floor: float) -> Iterator[tuple[npt.NDArray[np.intp], Said]]:
    """Events on which somebody answered, in blocks: their positions, and what was said."""
    for block in blocks(stated):
        missing = np.isnan(stated.q[block]).all(axis=tuple(range(1, stated.q.ndim)))
        rows = block.start + np.flatnonzero(~missing)
        if len(rows):
            ratios = logodds.log_ratios(stated.q[rows], stated.prior[rows][:, None, :], floor)
            yield rows, Said(ratios, stated.reference[rows])
