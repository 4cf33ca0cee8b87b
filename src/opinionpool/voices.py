"""Distinct voices among the experts: who repeats whom, and who never says anything else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.believed import CORRELATION
from opinionpool.dependence import CommonCorrelation, Dependence, MatrixCorrelation
from opinionpool.errors import Note
from opinionpool.features import Parts
from opinionpool.logodds import Array
from opinionpool.wording import listed

# So many forecasts, all the same, say nothing.
CONSTANT = 10
# Experts who agree on at least so many events, with so many different statements, are one voice.
CLONED = 5, 3
SILENT, NEW = -1, -2


@dataclass(frozen=True, eq=False)
class Voices:
    """Which voice each expert has.

    Attributes
    ----------
    source : ndarray of int, shape (N,)
        The voice of each expert; `SILENT` for those who always say the same, `NEW` for those without any forecast,
        who are taken to be like the others on average, but for what is believed of them. If none of the others has
        a voice, each of these has one.
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
        source = np.full(len(experts), SILENT)
        first: list[int] = []
        found: dict[bytes, int] = {}
        for i in range(len(experts)):
            column = np.ascontiguousarray(contrasts[:, i])
            said = column[~np.isnan(column[:, 0])]
            if len(said) == 0:
                source[i] = NEW
                continue
            different = len(np.unique(said, axis=0))
            if len(said) >= CONSTANT and different == 1:
                continue
            telling = len(said) >= CLONED[0] and different >= CLONED[1]
            source[i] = found.setdefault(column.tobytes() if telling else i.to_bytes(8, "big"), len(found))
            if source[i] == len(first):
                first.append(i)
        if not first:
            # Nobody to be like: each of those who may still speak is a voice, as it is believed to be.
            first = np.flatnonzero(source == NEW).tolist()
            source[first] = np.arange(len(first))
        return cls(source, np.array(first, dtype=np.intp), _notes(source, experts))

    @property
    def new(self) -> npt.NDArray[np.bool_]:
        """Experts without any forecast, (N,)."""
        return np.asarray(self.source == NEW)

    def parts(self, parts: Parts) -> Parts:
        """Parts of all experts from those of the voices; clones are perfectly dependent, so they share."""
        n = len(self.source)
        if len(self.first) == n:
            return parts
        if len(self.first) == 0:
            return Parts(np.zeros(n), np.full(n, np.nan), CommonCorrelation(n, 0.0))
        spread = np.where(self.source == SILENT, np.nan, self.rows(parts.spread))
        return Parts(self.rows(parts.contrast), spread, self._dependence(parts.dependence))

    def as_believed(self, values: Array, believed: Array) -> Array:
        """Values (N,) in which new experts differ from the voices' mean as positive ones are believed to."""
        if len(self.first) == 0:
            return values
        return np.asarray(np.where(self.new, values * (believed / believed[self.first].mean()), values))

    def _dependence(self, among: Dependence) -> Dependence:
        n, known, new = len(self.source), self.source >= 0, self.new
        if isinstance(among, CommonCorrelation) and known.sum() == len(self.first):
            # Of one expert there is no correlation to take over.
            return CommonCorrelation(n, among.rho if among.size > 1 else CORRELATION)
        r = among.matrix()
        matrix = np.zeros((n, n))
        matrix[np.ix_(known, known)] = r[np.ix_(self.source[known], self.source[known])]
        if new.any():
            # A new expert follows the sum of the others, so far that it has their mean correlation.
            towards = r.sum(axis=1) / np.sqrt(r.sum())
            v = len(r)
            mean = (r.sum() - v) / (v * (v - 1)) if v > 1 else CORRELATION
            follows = float(np.clip(mean / towards.mean(), 0.0, 1.0))
            matrix[np.ix_(new, known)] = follows * towards[self.source[known]]
            matrix[np.ix_(known, new)] = matrix[np.ix_(new, known)].T
            matrix[np.ix_(new, new)] = follows**2
        np.fill_diagonal(matrix, 1.0)
        return MatrixCorrelation(matrix)

    def rows(self, values: Array) -> Array:
        """Rows (N, ...) of all experts from those of the voices: their mean for new ones, 0 for silent ones."""
        full = np.zeros((len(self.source), *values.shape[1:]))
        if len(self.first):
            full[self.source >= 0] = values[self.source[self.source >= 0]]
            full[self.new] = values.mean(axis=0)
        return full


def _notes(source: npt.NDArray[np.intp], experts: tuple[str, ...]) -> tuple[Note, ...]:
    notes = []
    silent = [experts[i] for i in np.flatnonzero(source == SILENT)]
    if silent:
        notes.append(Note("constant", f"{listed(silent, 3)} always said the same and got weight 0", len(silent)))
    for voice in np.flatnonzero(np.bincount(source[source >= 0]) > 1):
        same = [experts[i] for i in np.flatnonzero(source == voice)]
        text = f"{listed(same, 3)} say the same on every event; they share one weight"
        notes.append(Note("clones", text, len(same), serious=True))
    return tuple(notes)
