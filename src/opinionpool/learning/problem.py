"""What is learned from: forecasts, the prior of their events and how often each counts; and the contrasts in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Index, Mask, frequencies
from opinionpool.blocks import blocks
from opinionpool.errors import Note
from opinionpool.estimation.regression import ByTopic, Observations
from opinionpool.estimation.rows import ForecastRows, ResolvedEvents, option_rows
from opinionpool.estimation.statistics import Statistics, few_enough
from opinionpool.forecasts import Forecasts
from opinionpool.labels import UNRESOLVED
from opinionpool.learning.leakage import contrary_events, contrary_note, leaked_experts
from opinionpool.learning.request import Request
from opinionpool.model.contrasts import Extremes, contrasts
from opinionpool.model.features import Parts
from opinionpool.priors import event_priors, outcome_counts, shared_prior


@dataclass(frozen=True, eq=False)
class DenseContrasts:
    """Contrasts of T events and N experts as an array."""

    contrasts: Array  # (T, N, K - 1); L − L°, NaN where missing
    reference: Array  # (T, K - 1); L°
    outcomes: Index  # (T,); -1 where not resolved
    weight: Array  # (T,); frequencies
    experts: tuple[str, ...]
    # (T, K - 1); classes but the first that are no options of their event; None if events share their classes
    absent: Mask | None = None
    # Resolved events of which the reference is Laplace's estimate; None if it is not.
    estimated: float | None = None
    topics: ByTopic | None = None  # None where none are learned
    certain: Mask | None = None  # (T, N); forecasts of 0 and 1 for two classes; None where there are none

    @property
    def free(self) -> int:
        """Number of log-ratios, K - 1."""
        return int(self.contrasts.shape[2])

    @property
    def sizes(self) -> Index | None:
        """How many options each event has, (T,); None if events share their classes."""
        return None if self.absent is None else self.free + 1 - self.absent.sum(axis=1)

    @property
    def resolved(self) -> Mask:
        """Which events are resolved, (T,)."""
        return np.asarray(self.outcomes != UNRESOLVED)


@dataclass(frozen=True, eq=False)
class SparseContrasts:
    """The M contrasts of N experts on T events, forecast by forecast."""

    event: Index  # (M,); ascending
    expert: Index  # (M,)
    contrasts: Array  # (M, K - 1); L − L°
    reference: Array  # (T, K - 1); L°
    outcomes: Index  # (T,); -1 where not resolved
    weight: Array  # (T,); frequencies
    experts: tuple[str, ...]
    # absent, estimated, topics: as for `DenseContrasts`
    absent: Mask | None = None
    estimated: float | None = None
    topics: ByTopic | None = None

    def among(self, used: Mask) -> SparseContrasts:
        """Some of the forecasts (M,), and the events that have one."""
        kept, row = np.unique(self.event[used], return_inverse=True)
        return replace(
            self,
            event=row.ravel(),
            expert=self.expert[used],
            contrasts=self.contrasts[used],
            reference=self.reference[kept],
            outcomes=self.outcomes[kept],
            weight=self.weight[kept],
            absent=None if self.absent is None else self.absent[kept],
            topics=self.topics and self.topics.select(kept),
        )


class Block(Protocol):
    """Block of resolved events, for the likelihood of many."""

    @property
    def contrasts(self) -> Array:
        """Contrasts of the requested experts, (t, N, K - 1), NaN where missing."""

    def observed(self, fill: Parts, extremes: Extremes) -> Observations:
        """Observations for the logistic regression, with missing contrasts imputed by `fill`."""

    def log_likelihoods(self) -> Array:
        """Log-likelihoods of what happened by the average and by each expert, (1 + N,)."""


# Returns all resolved events in blocks, given a floor, positions of distinct experts, and L° less the believed prior.
Blocks: TypeAlias = Callable[[float, Index, Array], Iterator[Block]]


@dataclass(frozen=True, eq=False)
class Seen:
    """Counts over all events of a source, which may give only a sample of them."""

    events: Array  # (K,); weight of the resolved events by outcome
    counts: Array  # (N,); weight of each expert's forecasts on resolved events
    present: Mask  # (N,); who made a forecast, on whatever event
    notes: tuple[Note, ...] = ()  # what is a sample, if anything


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over all events of a source, where these decide."""

    evidence: ResolvedEvents  # log-ratios less the prior's
    prior: Array | None  # (K,); that all events share, None if each has its own
    seen: Seen
    leaked: Mask  # (N,); who was right and nearly certain on every resolved event, see `opinionpool.learning.leakage`

    @staticmethod
    def counted(evidence: ResolvedEvents) -> Seen:
        """Counts of events and forecasts in the statistics."""
        count = evidence.marginals.count
        return Seen(evidence.events, count[:-1].sum(axis=0), count.sum(axis=0) > 0)


class Source(Protocol):
    """Source of resolved events: forecasts in memory, an array, parts of a file, a stream."""

    @property
    def experts(self) -> tuple[str, ...]:
        """N names."""

    @property
    def classes(self) -> tuple[object, ...]:
        """K labels."""

    @property
    def has_options(self) -> bool:
        """Whether events have options of their own."""

    def sums(self, request: Request) -> Sums | None:
        """Sums over all events if the request can be met by them; None if it needs the events."""

    def problem(self) -> Problem:
        """The events, or a sample of them."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Forecasts to learn from, the prior of each event, and how often each counts: a source by itself."""

    forecasts: Forecasts
    reference: Array  # (T, K); the prior of each event
    shared: Array | None  # (K,); the prior of all events; None if each has its own
    weight: Array  # (T,); frequencies
    estimated: bool = False  # whether the prior is Laplace's estimate from these outcomes
    whole: Seen | None = None  # what these are a sample of; None if they are everything
    total: float | None = None  # weight of all resolved events of which these are a sample
    blocks: Blocks | None = None  # all events of which these are a sample; None where this is as good
    parts: Callable[[], Iterator[Problem]] | None = None  # the same as they are, where they are not in memory
    topics: tuple[str, ...] = ()  # names of the topics that are learned

    @classmethod
    def of(cls, forecasts: Forecasts, prior: npt.ArrayLike | None, sample_weight: npt.ArrayLike | None) -> Problem:
        """The problem that some forecasts pose; arguments as for `opinionpool.learning.learn.learn`."""
        t, k = len(forecasts.events), len(forecasts.classes)
        weight, own = frequencies(sample_weight, t), event_priors(forecasts, prior)
        if forecasts.ties is not None:
            forecasts, event, share = forecasts.halved()
            weight, own = weight[event] * share, None if own is None else own[event]
        if own is not None:
            return cls(forecasts, own, None, weight)
        shared = shared_prior(forecasts, prior, weight)
        return cls(forecasts, np.broadcast_to(shared, (len(weight), k)), shared, weight, prior is None)

    @property
    def experts(self) -> tuple[str, ...]:
        """N names."""
        return self.forecasts.experts

    @property
    def classes(self) -> tuple[object, ...]:
        """K labels."""
        return self.forecasts.classes

    @property
    def outcomes(self) -> Index:
        """Position of each event's outcome, -1 where not resolved, (T,)."""
        return self.forecasts.outcomes

    @property
    def has_options(self) -> bool:
        """Whether events have options of their own."""
        return self.forecasts.options is not None

    @cached_property
    def events(self) -> Array:
        """Weight of the resolved events by outcome, (K,)."""
        return outcome_counts(self.forecasts, self.weight)

    @cached_property
    def counts(self) -> Array:
        """Number of resolved events that each expert forecast, each event counted by its weight, (N,)."""
        forecasts, (t, n) = self.forecasts, self.forecasts.shape
        weight = np.where(forecasts.resolved, self.weight, 0.0)
        if len(forecasts.event_index) == t * n:
            return np.full(n, float(weight.sum()))
        counted = weight[forecasts.event_index]
        counts = np.bincount(forecasts.expert_index, weights=counted, minlength=len(forecasts.experts))
        return counts.astype(np.float64, copy=False)

    @property
    def present(self) -> Mask:
        """Mask of experts with a forecast on any event, (N,)."""
        return np.asarray(self.forecasts.counts > 0)

    @cached_property
    def seen(self) -> Seen:
        """Counts over all events of the source, or of these if they are all."""
        return self.whole or Seen(self.events, self.counts, self.present)

    @cached_property
    def leaked(self) -> Mask:
        """Mask of experts who were right and nearly certain on every resolved event, (N,)."""
        return leaked_experts(self.forecasts)

    @property
    def contrary_notes(self) -> tuple[Note, ...]:
        """Note that forecasts speak against the outcomes, if they do."""
        events = 0 if self.has_options else contrary_events(self.forecasts)
        return (contrary_note(events, self.classes),) if events else ()

    def problem(self) -> Problem:
        """Problem itself, as it is its own source."""
        return self

    @cached_property
    def expected(self) -> Array:
        """Log-ratios of the prior, L°, (T, K - 1)."""
        return logodds.prior_log_ratios(self.reference)

    @property
    def absent(self) -> Mask | None:
        """Classes that are no options of their event, (T, K - 1); None if events share their classes."""
        return np.asarray(self.reference[:, 1:] == 0) if self.has_options else None

    def select(self, kept: Index | Mask, times: Array | float = 1.0) -> Problem:
        """Problem with some of the events, their weights multiplied by `times`."""
        forecasts = self.forecasts.select_events(kept)
        return replace(self, forecasts=forecasts, reference=self.reference[kept], weight=self.weight[kept] * times)

    def dense(self, floor: float) -> DenseContrasts:
        """Contrasts as an array."""
        prior, q = self.shared if self.shared is not None else self.reference[:, None, :], self.forecasts.dense()
        beyond = contrasts(q, prior, floor, self.expected[:, None, :])
        certain = (q == 0) | (q == 1) if q.ndim == 2 else np.zeros(0, dtype=bool)
        return DenseContrasts(beyond, *self._about, certain if certain.any() else None)

    def sparse(self, floor: float) -> SparseContrasts:
        """Contrasts forecast by forecast."""
        event, expert = self.forecasts.event_index, self.forecasts.expert_index
        one = self.shared is not None
        prior, expected = (each[:1] if one else each[event] for each in (self.reference, self.expected))
        beyond = contrasts(self.forecasts.probabilities, prior, floor, expected)
        return SparseContrasts(event, expert, beyond, *self._about)

    @property
    def _about(self) -> tuple[Array, Index, Array, tuple[str, ...], Mask | None, float | None, ByTopic | None]:
        """What contrasts have beside them, as `DenseContrasts` has it."""
        estimated = None
        if self.estimated and not self.has_options:
            estimated = float(self.events.sum()) if self.total is None else self.total
        about = self.expected, self.outcomes, self.weight, self.experts, self.absent, estimated
        if not self.topics or self.forecasts.topics is None:
            return *about, None
        place = {name: g for g, name in enumerate(self.topics)}
        member = np.array([place.get(name, -1) for name in self.forecasts.topics.tolist()], dtype=np.intp)
        return *about, ByTopic(self.topics, member, np.zeros(self.expected.shape[1]))

    @property
    def learnable_topics(self) -> tuple[str, ...]:
        """Names of the topics of resolved events with forecasts; none where there are fewer than two kinds."""
        forecasts = self.forecasts
        if forecasts.topics is None or forecasts.options is not None:
            return ()
        names = np.unique(forecasts.topics[forecasts.resolved & (forecasts.crowd > 0) & (self.weight > 0)]).tolist()
        return tuple(name for name in names if name) if len(names) > 1 else ()

    def sums(self, request: Request) -> Sums:
        """Sums over these events."""
        return Sums(self._evidence(request.settings.floor), self.shared, self.seen, self.leaked)

    def _evidence(self, floor: float) -> ResolvedEvents:
        """Statistics of contrasts where every expert answered everything, else their rows."""
        forecasts = self.forecasts
        event, expert = forecasts.event_index, forecasts.expert_index
        t, n = forecasts.shape
        order = np.lexsort((expert, event))

        def ratios_of(cells: Index) -> Array:
            prior = self.reference[:1] if self.shared is not None else self.reference[event[cells]]
            return contrasts(forecasts.probabilities[cells], prior, floor)

        rows = event[order], expert[order]
        if forecasts.options is not None:
            return option_rows(*rows, ratios_of(order), self.outcomes, self.weight, forecasts.sizes, n)
        if len(event) < t * n or not few_enough(n, t):
            return ForecastRows(*rows, ratios_of(order), self.outcomes, self.weight, n)
        d = len(forecasts.classes) - 1
        found = Statistics.empty(forecasts.experts, d + 1)
        for part in blocks(t, n * d):
            ratios = ratios_of(order[part.start * n : part.stop * n]).reshape(-1, n, d)
            found = found.add(ratios, self.outcomes[part], self.weight[part])
        return found
