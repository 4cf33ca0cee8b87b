"""Forecasts in parts as a source to learn from: a sample of them is kept in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index, Mask
from opinionpool.earlier import Earlier
from opinionpool.errors import LearningError
from opinionpool.estimation.sampling import (
    Keys,
    distinguished,
    event_contents,
    event_keys,
    least,
    many_copies,
    rooms,
    sample_note,
    stands_for,
    tally,
    with_keys,
)
from opinionpool.forecasts import Forecasts
from opinionpool.learning.problem import Problem, Seen
from opinionpool.learning.request import Request
from opinionpool.logodds import public_probabilities
from opinionpool.priors import laplace_prior


@dataclass(frozen=True, eq=False)
class PartsSource:
    """Forecasts in parts, by the same experts on different events, read once."""

    sample: Forecasts
    prior: float | Array | None  # of all events
    events: Array  # (K,); resolved events by outcome
    counts: Array  # (N,); each expert's forecasts on resolved events
    present: Mask  # (N,); who made a forecast, on whatever event

    @classmethod
    def of(cls, parts: Iterable[Forecasts], prior: float | Array | None) -> PartsSource:
        """Read all parts.

        Raises
        ------
        LearningError
            If there are none.
        """
        sample: _Sample | None = None
        for part in parts:
            sample = _Sample(part) if sample is None else sample
            sample.add(part)
        if sample is None:
            raise LearningError("there are no events")
        return cls(
            sample.forecasts(), prior, sample.seen[:-1].astype(np.float64), sample.counts, np.asarray(sample.cells > 0)
        )

    @property
    def experts(self) -> tuple[str, ...]:
        """N names."""
        return self.sample.experts

    @property
    def classes(self) -> tuple[object, ...]:
        """K labels."""
        return self.sample.classes

    @property
    def has_options(self) -> bool:
        """Whether events have options of their own."""
        return self.sample.options is not None

    def sums(self, request: Request) -> None:
        """There are none."""

    def problem(self) -> Problem:
        """The sample."""
        taken, resolved = self.sample, int(self.events.sum())
        used = int(taken.resolved.sum())
        if used == resolved:
            return Problem.of(taken, self.prior, None)
        prior = self.prior
        if prior is None and (taken.prior is None or np.isnan(taken.prior).all()):
            prior = public_probabilities(laplace_prior(self.events))
        problem = Problem.of(taken, prior, stands_for(taken.outcomes, self.events))
        seen = Seen(self.events, self.counts, self.present, (sample_note(used, resolved),))
        return replace(problem, whole=seen)


class _Sample:
    """The events of least priority, a bounded number of each outcome and of unresolved ones.

    Whether copies are to have keys of their own is known at the end, so it has what would be drawn either way.
    """

    def __init__(self, first: Forecasts) -> None:
        k = len(first.classes)
        self.rooms = rooms(len(first.experts), k)
        # Of keys as they are, and of those that distinguish copies.
        self.limits = np.full((2, k + 1), np.iinfo(np.uint64).max, dtype=np.uint64)
        self.tally = tally(np.empty(0, np.uint64), np.empty(0, np.intp), k)
        self.cells = np.zeros(len(first.experts), dtype=np.int64)
        self.counts = np.zeros(len(first.experts))
        self._before: list[Keys] = []
        self._kept: list[tuple[Keys, Forecasts]] = []
        self._most = 1.25 * float(self.rooms.sum())

    @property
    def seen(self) -> Index:
        """Events by outcome, and unresolved ones, (K + 1,)."""
        return np.asarray(self.tally.sum(axis=1))

    def add(self, forecasts: Forecasts) -> None:
        """Take in the events of one part."""
        plain = event_keys(event_contents(forecasts), forecasts.outcomes)
        keys = np.stack([plain, distinguished(plain, self._before)])
        self._before = with_keys(self._before, np.sort(plain))
        self.tally += tally(plain, forecasts.outcomes, len(forecasts.classes))
        self.cells += forecasts.counts
        self.counts += forecasts.resolved_counts
        # The last limit is that of unresolved events.
        kept = np.flatnonzero((keys < self.limits[:, forecasts.outcomes]).any(axis=0))
        self._kept.append((keys[:, kept], forecasts.select_events(kept)))
        if sum(len(some.events) for _, some in self._kept) > self._most:
            self._thin()

    def forecasts(self) -> Forecasts:
        """The sample: in the order of the file if it is everything, else by key, as a sample of the whole file is."""
        self._thin()
        (both, found), which = self._kept[0], int(many_copies(self.tally, self.rooms))
        if both.shape[1] == self.seen.sum():
            return found
        kept = np.flatnonzero(least(both[which], found.outcomes, self.rooms)[0])
        return found.select_events(kept[np.argsort(both[which, kept])])

    def _thin(self) -> None:
        both = np.concatenate([keys for keys, _ in self._kept], axis=1)
        together = one_after_another([forecasts for _, forecasts in self._kept])
        kept = np.zeros(both.shape[1], dtype=bool)
        for keys, limits in zip(both, self.limits, strict=True):
            drawn, beyond = least(keys, together.outcomes, self.rooms)
            kept |= drawn
            np.minimum(limits, beyond, out=limits)
        self._kept = [(both[:, kept], together if kept.all() else together.select_events(np.flatnonzero(kept)))]
        self._most = max(np.count_nonzero(kept), self.rooms.sum()) + 0.25 * float(self.rooms.sum())


def one_after_another(parts: Sequence[Forecasts]) -> Forecasts:
    """The forecasts of several parts, by the same experts on different events, as one."""
    first = parts[0]
    starts = np.cumsum([0, *(len(part.events) for part in parts[:-1])])
    t = sum(len(part.events) for part in parts)

    def column(name: str, blank: Any) -> Any:  # noqa: ANN401 - arrays of several types
        values = [getattr(part, name) for part in parts]
        if all(value is None for value in values):
            return None
        like = next(value for value in values if value is not None)
        filled = [
            np.full((len(part.events), *like.shape[1:]), blank, dtype=like.dtype) if value is None else value
            for part, value in zip(parts, values, strict=True)
        ]
        return np.concatenate(filled) if t else like

    return replace(
        first,
        events=tuple(chain.from_iterable(part.events for part in parts)),
        event_index=np.concatenate([part.event_index + start for part, start in zip(parts, starts, strict=True)]),
        expert_index=np.concatenate([part.expert_index for part in parts]),
        probabilities=np.concatenate([part.probabilities for part in parts]),
        outcomes=np.concatenate([part.outcomes for part in parts]),
        prior=column("prior", np.nan),
        times=column("times", np.datetime64("NaT", "us")),
        groups=column("groups", ""),
        settled=column("settled", False),
        closes=column("closes", np.datetime64("NaT", "us")),
        void=None,
        texts=None,
        topics=column("topics", ""),
        asked=column("asked", np.datetime64("NaT", "us")),
        made=_times_of_cells(parts),
        earlier=Earlier.joined([(part.earlier, part.probabilities) for part in parts]),
        notes=(),
    )


def _times_of_cells(parts: Sequence[Forecasts]) -> npt.NDArray[np.datetime64] | None:
    """When each forecast of several parts was made; None if nobody knows."""
    if all(part.made is None for part in parts):
        return None
    never = np.datetime64("NaT", "us")
    return np.concatenate([np.full(len(p.event_index), never) if p.made is None else p.made for p in parts])
