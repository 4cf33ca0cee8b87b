"""An array of forecasts as a source to learn from, without a copy of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Floats, Index, Mask, axes
from opinionpool.blocks import blocks
from opinionpool.estimation.dense import DenseOutcomes, dense_statistics
from opinionpool.estimation.sampling import (
    Keys,
    RowContents,
    content_keys,
    drawn,
    name_keys,
    rooms,
    sample_note,
    stands_for,
)
from opinionpool.estimation.statistics import few_enough
from opinionpool.forecasts import Forecasts, cells_of
from opinionpool.learning.leakage import leaked_columns
from opinionpool.learning.problem import Problem, Seen, Sums
from opinionpool.learning.request import Request
from opinionpool.logodds import check_probabilities, class_probabilities, public_probabilities
from opinionpool.names import numbered
from opinionpool.priors import laplace_prior


@dataclass(frozen=True, eq=False)
class ArraySource:
    """Forecasts as float64, or binary float32, which is worked on as it is; all events have one prior.

    Examples
    --------
    >>> from opinionpool.learning.learn import learn_from
    >>> q, y = np.array([[0.2], [0.3], [0.6], [0.4], [0.7], [0.8]]), np.array([0, 0, 0, 1, 1, 1])
    >>> source = ArraySource.of(q, y, prior=0.5)
    >>> learn_from(source, Request(beliefs=None)).weights.round(5)
    array([1.44221])
    """

    q: Floats  # (T, N); (T, N, K) for K > 2 classes; NaN where missing
    happened: DenseOutcomes
    prior: Array  # (K,)
    classes: tuple[object, ...]
    has_options: bool = False

    @classmethod
    def of(
        cls,
        q: npt.NDArray[np.generic],
        y: npt.NDArray[Any],
        *,
        classes: Sequence[object] | None = None,
        prior: npt.ArrayLike | None = None,
    ) -> ArraySource | None:
        """The source of these forecasts; None where they need another form.

        Parameters
        ----------
        q : ndarray, shape (T, N); (T, N, K) for K > 2 classes
        y : ndarray, shape (T,)
            0 and 1, or NaN where not resolved; with `classes` their positions, or -1.
        classes : sequence, optional
            K labels.
        prior : float or array_like, shape (K,), optional
            As for `opinionpool.learning.learn.learn`.
        """
        k = 2 if classes is None else len(classes)
        if not _fits(q, y, k) or (prior is not None and axes(prior, "prior") > (0 if k == 2 else 1)):
            return None
        outcomes = DenseOutcomes.of(y) if classes is None else DenseOutcomes.of_codes(y, k)
        if outcomes is None:
            return None
        shared = laplace_prior(outcomes.counts[:-1]) if prior is None else class_probabilities(prior, k)
        labels = np.array([0, 1], dtype=y.dtype).tolist() if classes is None else classes
        return cls(q, outcomes, shared, tuple(labels))

    @cached_property
    def experts(self) -> tuple[str, ...]:
        """N names."""
        return numbered(self.q.shape[1])

    def serves(self, request: Request) -> bool:
        """Whether it can be met from here: by moments, or by a sample of so many binary events."""
        request = request.about(len(self.classes))
        if request.by_moments:
            return self.sums(request) is not None
        return request.believed is not None and len(self.classes) == 2 and self._many

    @property
    def _many(self) -> bool:
        return bool((self.happened.counts[:2] > self._rooms[:2]).any())

    @property
    def _rooms(self) -> Index:
        return rooms(self.q.shape[1], len(self.classes))

    def sums(self, request: Request) -> Sums | None:
        """Statistics, where not too many different sets of experts answered."""
        floor = request.settings.floor
        if floor not in self._sums:
            found = dense_statistics(self.q, self.happened, self.prior, floor, self.experts)
            self._sums[floor] = None
            if found is not None:
                leaked = leaked_columns(self.q, self.happened)
                self._sums[floor] = Sums(found, self.prior, Sums.counted(found), leaked)
        return self._sums[floor]

    @cached_property
    def _sums(self) -> dict[float, Sums | None]:
        """Those that were found, by floor."""
        return {}

    def problem(self) -> Problem:
        """A sample of many binary events, the one that `opinionpool.learning.learn.learn` draws of the same forecasts.

        Raises
        ------
        ProbabilityError
            Names the first value outside [0, 1] and its position.
        """
        q, outcomes, n = self.q, self.happened, self.q.shape[1]
        codes, room = outcomes.codes(slice(0, len(q))), self._rooms
        contents, counts, present = _looked_at(q, codes)
        kept = drawn(content_keys(contents, codes, room), codes, outcomes.counts.astype(np.intp), room)
        codes = codes[kept]
        cells = cells_of(np.asarray(q[kept], dtype=np.float64))
        few = Forecasts(numbered(len(kept), "event"), numbered(n), self.classes, *cells, codes)
        events = outcomes.counts[:2]
        note = sample_note(int((codes >= 0).sum()), int(events.sum()))
        problem = Problem.of(few, public_probabilities(self.prior), stands_for(codes, events))
        return replace(problem, whole=Seen(events.copy(), counts, present, (note,)))


def _looked_at(q: Floats, codes: Index) -> tuple[Keys, Array, Mask]:
    """What stands for each event, (T,); forecasts of each expert on resolved events, and who made one on any, (N,).

    Every value is looked at once.
    """
    t, n = q.shape
    counts, anywhere = np.zeros(n), np.zeros(n, dtype=bool)
    contents, of_rows = np.empty(t, dtype=np.uint64), RowContents(name_keys(numbered(n)))
    for rows in blocks(t, n):
        block = q[rows]
        complete = _complete(block)
        if complete:
            counts += np.count_nonzero(codes[rows] >= 0)
            anywhere[:] = True
        else:
            if ((block < 0) | (block > 1)).any():
                check_probabilities(q)
            answered_cells = ~np.isnan(block)
            counts += answered_cells[codes[rows] >= 0].sum(axis=0)
            anywhere |= answered_cells.any(axis=0)
        contents[rows] = of_rows.of(block, complete=complete)
    return contents, counts, anywhere


# The bits of 1; those of negative numbers, of what is above 1 and of NaN are larger.
_ONE = np.ones(1).view(np.uint64)[0]


def _complete(block: Floats) -> bool:
    """Whether none of some forecasts is missing, or no probability; not where one is -0."""
    if block.dtype == np.float64 and block.flags.c_contiguous:
        return bool(block.view(np.uint64).max() <= _ONE)
    # NaN is neither.
    return bool(block.min() >= 0 and block.max() <= 1)


def _fits(q: Floats, y: Floats, classes: int) -> bool:
    """Whether these are forecasts of many events and their outcomes."""
    if q.shape[2:] != (() if classes == 2 else (classes,)) or q.ndim < 2 or y.shape != q.shape[:1]:
        return False
    if q.dtype not in ((np.float64, np.float32) if classes == 2 else (np.float64,)):
        return False
    return q.shape[1] > 0 and few_enough(q.shape[1], len(q)) and len(q) > 0
