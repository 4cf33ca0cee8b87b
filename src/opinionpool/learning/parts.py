"""Forecasts in parts as a source to learn from: a sample of them is kept in memory."""

from __future__ import annotations

import pickle
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import IO, TypeVar

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.errors import LearningError
from opinionpool.estimation.sampling import FORECASTS, Draw, Keys, event_keys, rooms, row_contents_of, sample_note
from opinionpool.forecasts import Forecasts
from opinionpool.learning.problem import Problem, Seen
from opinionpool.learning.request import Request
from opinionpool.logodds import public_probabilities
from opinionpool.priors import laplace_prior

Kind = TypeVar("Kind", bound=np.generic)


@dataclass(frozen=True, eq=False)
class PartsSource:
    """Source of forecasts that come in several parts, such as files, of which a sample is kept in memory."""

    sample: Forecasts  # events that are kept in memory
    prior: float | Array | None  # shared by all events; None if it is estimated or each event has its own
    seen: Seen  # counts over all events
    frequencies: Array  # (S,); how often each event of the sample counts
    parts: Callable[[], Iterator[Forecasts]] | None  # all events; None if they are the sample

    @classmethod
    def of(cls, parts: Iterable[Forecasts], prior: float | Array | None) -> PartsSource:
        """Return the source from all parts; those beyond the memory limit are kept in a file while it is in use.

        Raises
        ------
        LearningError
            If there are no parts.
        """
        kept, keys, contents, outcomes = _Kept(), list[Keys](), list[Keys](), list[Index]()
        counts, present = np.zeros(1), np.zeros(1, dtype=bool)
        for part in parts:
            kept.add(part)
            keys.append(event_keys(part))
            contents.append(row_contents_of(part))
            outcomes.append(part.outcomes)
            counts, present = counts + part.resolved_counts, present | (part.counts > 0)
        if not keys:
            raise LearningError("there are no events")
        outcome, k = _together(outcomes), len(part.classes)
        events = np.bincount(outcome[outcome >= 0], minlength=k).astype(np.float64)
        seen, room = Seen(events, counts, present), rooms(len(part.experts), k)
        weight = np.ones(len(outcome))
        if (events <= room[:k]).all() or part.options is not None:
            return cls(Forecasts.joined([*kept]), prior, seen, weight, None)
        drawn = Draw.of(_together(keys), outcome, weight, room, lambda: _together(contents))
        some = kept.select(drawn.positions)
        note = sample_note(int(some.resolved.sum()), int(events.sum()))
        parts_again = None if drawn.complete else kept.__iter__
        return cls(some, prior, replace(seen, notes=(note,)), drawn.frequencies(weight), parts_again)

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the N experts."""
        return self.sample.experts

    @property
    def classes(self) -> tuple[object, ...]:
        """Labels of the K classes."""
        return self.sample.classes

    @property
    def has_options(self) -> bool:
        """True if events have options of their own."""
        return self.sample.options is not None

    def sums(self, request: Request) -> None:
        """Return None, as moments are not computed from parts."""

    def problem(self) -> Problem:
        """Return what to learn from: the sampled events; `parts` of it gives all events, if these are more."""
        taken, prior, events = self.sample, self.prior, self.seen.events
        estimated = prior is None and (taken.prior is None or bool(np.isnan(taken.prior).all()))
        if estimated and not self.has_options:
            prior = public_probabilities(laplace_prior(events))
        problem = replace(
            Problem.of(taken, prior, self.frequencies), estimated=estimated, whole=self.seen, total=float(events.sum())
        )
        if self.parts is None:
            return problem
        parts = self.parts

        def all_parts() -> Iterator[Problem]:
            for part in parts():
                yield replace(Problem.of(part, prior, None), estimated=estimated, total=problem.total)

        return replace(problem, parts=all_parts)


def _together(parts: list[npt.NDArray[Kind]]) -> npt.NDArray[Kind]:
    """Return the concatenation of the arrays in `parts`, and empty that list, as arrays of all events are large."""
    found = np.concatenate(parts)
    parts.clear()
    return found


class _Kept:
    """Store of parts: in memory, and in a file once they have more forecasts than a sample."""

    def __init__(self) -> None:
        self._parts: list[Forecasts] = []
        self._cells = 0
        self._file: IO[bytes] | None = None

    def add(self, part: Forecasts) -> None:
        """Add a part, and write all parts to a file once there are too many forecasts for memory."""
        self._cells += len(part.probabilities)
        self._parts.append(part)
        if self._cells > FORECASTS:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115
                weakref.finalize(self, self._file.close)
            for each in self._parts:
                pickle.dump(each, self._file, pickle.HIGHEST_PROTOCOL)
            self._parts.clear()

    def __iter__(self) -> Iterator[Forecasts]:
        if self._file is not None:
            size = self._file.tell()
            self._file.seek(0)
            while self._file.tell() < size:
                yield pickle.load(self._file)
        yield from self._parts

    def select(self, positions: Index) -> Forecasts:
        """Return the forecasts on the events at `positions`, in that order, among the events of all parts."""
        order, start, found = np.argsort(positions), 0, list[Forecasts]()
        for part in self:
            stop = start + len(part.events)
            low, high = np.searchsorted(positions, (start, stop), sorter=order)
            found.append(part.select_events(positions[order[low:high]] - start))
            start = stop
        return Forecasts.joined(found).select_events(np.argsort(order))
