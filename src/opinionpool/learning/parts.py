"""Forecasts in parts as a source to learn from: a sample of them is kept in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Mask
from opinionpool.earlier import Earlier
from opinionpool.errors import LearningError
from opinionpool.estimation.sampling import (
    content_keys,
    event_contents,
    least,
    rooms,
    sample_note,
    sorted_contents,
    stands_for,
    with_contents,
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
    """The events of least priority, a bounded number of each outcome and of unresolved ones."""

    def __init__(self, first: Forecasts) -> None:
        k = len(first.classes)
        self.rooms = rooms(len(first.experts), k)
        self.limits = np.full(k + 1, np.iinfo(np.uint64).max, dtype=np.uint64)
        self.seen = np.zeros(k + 1, dtype=np.int64)
        self.cells = np.zeros(len(first.experts), dtype=np.int64)
        self.counts = np.zeros(len(first.experts))
        self._before: list[npt.NDArray[np.uint64]] = []
        self._kept: list[tuple[npt.NDArray[np.uint64], Forecasts]] = []

    def add(self, forecasts: Forecasts) -> None:
        """Take in the events of one part."""
        group = np.where(forecasts.resolved, forecasts.outcomes, len(self.limits) - 1)
        contents = event_contents(forecasts)
        keys = content_keys(contents, forecasts.outcomes, self._before)
        self._before = with_contents(self._before, sorted_contents(contents, forecasts.outcomes))
        self.seen += np.bincount(group, minlength=len(self.seen))
        self.cells += forecasts.counts
        resolved = forecasts.expert_index[forecasts.resolved[forecasts.event_index]]
        self.counts += np.bincount(resolved, minlength=len(self.counts))
        kept = np.flatnonzero(keys < self.limits[group])
        self._kept.append((keys[kept], forecasts.select_events(kept)))
        if sum(len(keys) for keys, _ in self._kept) > 1.25 * self.rooms.sum():
            self._thin()

    def forecasts(self) -> Forecasts:
        """The sample: in the order of the file if it is everything, else by key, as a sample of the whole file is."""
        self._thin()
        keys, found = self._kept[0]
        return found if len(keys) == self.seen.sum() else found.select_events(np.argsort(keys))

    def _thin(self) -> None:
        keys = np.concatenate([keys for keys, _ in self._kept])
        together = one_after_another([forecasts for _, forecasts in self._kept])
        group = np.where(together.resolved, together.outcomes, len(self.limits) - 1)
        kept, beyond = least(keys, group, self.rooms)
        self.limits = np.minimum(self.limits, beyond)
        self._kept = [(keys[kept], together if kept.all() else together.select_events(kept))]


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
        events=tuple(event for part in parts for event in part.events),
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
