"""Distinct voices among the experts: who repeats whom, and who never says anything else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.dependence import CommonCorrelation, Dependence, MatrixCorrelation
from opinionpool.errors import Note
from opinionpool.features import Parts
from opinionpool.logodds import Array
from opinionpool.wording import listed

# So many forecasts, all the same, say nothing.
CONSTANT = 10
# Experts who agree on at least so many events, with so many different statements, are one voice.
CLONED = 5, 3


@dataclass(frozen=True, eq=False)
class Voices:
    """Which voice each expert has.

    Attributes
    ----------
    source : ndarray of int, shape (N,)
        The voice of each expert, -1 for those who say nothing.
    first : ndarray of int, shape (V,)
        The first expert with each voice.
    notes : tuple of Note
    """

    source: npt.NDArray[np.intp]
    first: npt.NDArray[np.intp]
    notes: tuple[Note, ...]

    @classmethod
    def among(cls, contrasts: Array, experts: tuple[str, ...]) -> Voices:
        """Find them in (T, N, K - 1) contrasts, NaN where missing."""
        source = np.full(len(experts), -1)
        first: list[int] = []
        found: dict[bytes, int] = {}
        for i in range(len(experts)):
            column = np.ascontiguousarray(contrasts[:, i])
            said = column[~np.isnan(column[:, 0])]
            different = len(np.unique(said, axis=0))
            if len(said) >= CONSTANT and different == 1:
                continue
            telling = len(said) >= CLONED[0] and different >= CLONED[1]
            source[i] = found.setdefault(column.tobytes() if telling else i.to_bytes(8, "big"), len(found))
            if source[i] == len(first):
                first.append(i)
        return cls(source, np.array(first, dtype=np.intp), _notes(source, experts))

    def parts(self, parts: Parts) -> Parts:
        """Parts of all experts from those of the voices; clones are perfectly dependent, so they share."""
        n = len(self.source)
        if len(self.first) == n:
            return parts
        known = self.source >= 0
        if not known.any():
            return Parts(np.zeros(n), np.full(n, np.nan), CommonCorrelation(n, 0.0))
        contrast = np.where(known, parts.contrast[self.source], 0.0)
        spread = np.where(known, parts.spread[self.source], np.nan)
        dependence: Dependence
        if isinstance(parts.dependence, CommonCorrelation) and known.sum() == len(self.first):
            dependence = CommonCorrelation(n, parts.dependence.rho)
        else:
            matrix = parts.dependence.matrix()[np.ix_(self.source, self.source)]
            matrix[~known] = matrix[:, ~known] = 0.0
            np.fill_diagonal(matrix, 1.0)
            dependence = MatrixCorrelation(matrix)
        return Parts(contrast, spread, dependence)

    def rows(self, values: Array) -> Array:
        """Rows (N, ...) of all experts from those of the voices; 0 for experts who say nothing."""
        if len(self.first) == 0:
            return np.zeros((len(self.source), *values.shape[1:]))
        known = (self.source >= 0).reshape((-1,) + (1,) * (values.ndim - 1))
        return np.asarray(np.where(known, values[self.source], 0.0))


def _notes(source: npt.NDArray[np.intp], experts: tuple[str, ...]) -> tuple[Note, ...]:
    notes = []
    silent = [experts[i] for i in np.flatnonzero(source < 0)]
    if silent:
        notes.append(Note("constant", f"{listed(silent, 3)} always said the same and got weight 0", len(silent)))
    for voice in np.flatnonzero(np.bincount(source[source >= 0]) > 1):
        same = [experts[i] for i in np.flatnonzero(source == voice)]
        text = f"{listed(same, 3)} say the same on every event; they share one weight"
        notes.append(Note("clones", text, len(same), serious=True))
    return tuple(notes)
