"""What a fit is asked: its checked options, and the forecasts to learn from with their priors and frequencies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arguments import brief, one_of
from opinionpool.arrays import EVENT, Array, Index, Mask, frequencies, taken
from opinionpool.blocks import blocks
from opinionpool.errors import ArgumentError, Note
from opinionpool.estimation.regression import ByTopic
from opinionpool.estimation.rows import ForecastRows, ResolvedEvents, option_rows
from opinionpool.estimation.sampling import Draw
from opinionpool.estimation.statistics import Statistics, few_enough
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.leakage import contrary_events, contrary_note, leaked_experts
from opinionpool.learning.rows import Block, DenseContrasts, SparseContrasts
from opinionpool.model.contrasts import contrasts
from opinionpool.model.pooling import Settings
from opinionpool.priors import event_priors, outcome_counts, shared_prior

DEFAULT = Settings()
STRUCTURES = ("auto", "full", "common", "exchangeable", "independent")
CLASS_MODELS = ("auto", "symmetric", "full")


@dataclass(frozen=True)
class Request:
    """Options of a fit, checked; the fields are those of `opinionpool.learning.learn.learn`.

    Raises
    ------
    ArgumentError
        If an option has no such value, or options exclude each other.
    """

    structure: str = "auto"
    beliefs: Beliefs | str | None = "default"
    class_model: str = "auto"
    settings: Settings = DEFAULT
    # Whether the default pool needs no intervals and no marginal features of experts.
    answers_only: bool = False

    def __post_init__(self) -> None:
        one_of(self.structure, "structure", STRUCTURES)
        one_of(self.class_model, "class_model", CLASS_MODELS)
        beliefs: object = self.beliefs
        if isinstance(beliefs, Beliefs):
            if self.structure != "auto" and not beliefs.any_panel:
                raise ArgumentError(f"beliefs meet data with structure='auto', and it is {self.structure!r}")
        elif beliefs is not None and not (isinstance(beliefs, str) and beliefs == "default"):
            raise ArgumentError(
                f'beliefs must be Beliefs, "default" or None, and it is {brief(beliefs)}; op.Beliefs(correlation=0.6) '
                "makes some"
            )

    @property
    def believed(self) -> Beliefs | None:
        """Beliefs that the default pool starts from; None if the fit uses no beliefs."""
        if self.structure != "auto" or self.beliefs is None:
            return None
        return self.beliefs if isinstance(self.beliefs, Beliefs) else Beliefs()

    @property
    def by_moments(self) -> bool:
        """True if the fit needs only averages over all events, for which sums are enough."""
        return self.believed is None and self.class_model != "full"

    @property
    def kind(self) -> str:
        """Correlation structure for fits by averages, which is "full" if the structure is "auto"."""
        return "full" if self.structure == "auto" else self.structure

    def about(self, classes: int, *, options: bool = False) -> Request:
        """Return the request adapted to events with `classes` classes; for two classes, the model is "symmetric".

        `options` is True if each event has its own list of options in place of classes that all events share.

        Raises
        ------
        ArgumentError
            If the class model cannot be used with the structure, or cannot be used for events with their own options.
        """
        if classes == 2:
            return replace(self, class_model="symmetric")
        if options:
            if self.class_model == "full":
                raise ArgumentError(
                    "events have options of their own, which have no order, so no weight can be that of one of them; "
                    "use class_model='symmetric'"
                )
            return replace(self, class_model="symmetric")
        if self.class_model == "full" and self.structure not in {"auto", "full"}:
            raise ArgumentError(
                f"class_model='full' learns a covariance over all classes, and the structure is {self.structure!r}; "
                "use structure='auto'"
            )
        return self


@dataclass(frozen=True, eq=False)
class Seen:
    """Counts of all events and forecasts in a source, even if only a sample of the events is in memory."""

    events: Array  # (K,); weight of the resolved events by outcome
    counts: Array  # (N,); weight of each expert's forecasts on resolved events
    present: Mask  # (N,); which experts made a forecast on any event
    notes: tuple[Note, ...] = ()  # note on the sample, if there is one


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over all events of a source, which are enough for fits by averages."""

    evidence: ResolvedEvents  # log-ratios less the prior's
    prior: Array | None  # (K,); the prior of all events, None if each has its own
    seen: Seen
    leaked: Mask  # (N,); who was right and nearly certain on every resolved event, see `opinionpool.learning.leakage`

    @staticmethod
    def counted(evidence: ResolvedEvents) -> Seen:
        """Return the counts of events and forecasts in the statistics `evidence`."""
        count = evidence.marginals.count
        return Seen(evidence.events, count[:-1].sum(axis=0), count.sum(axis=0) > 0)


class Source(Protocol):
    """Protocol of what a pool can be learned from: forecasts in memory, an array, parts of a file, a stream."""

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the N experts."""

    @property
    def classes(self) -> tuple[object, ...]:
        """Labels of the K classes."""

    @property
    def has_options(self) -> bool:
        """True if events have options of their own."""

    def sums(self, request: Request) -> Sums | None:
        """Return sums over all events; None if the fit `request` needs the events themselves."""

    def problem(self) -> Problem:
        """Return the forecasts to learn from, on all events or on a sample."""


@dataclass(frozen=True, eq=False)
class Problem:
    """What to learn from: forecasts, with the prior and weight of each event; it is also a `Source`."""

    forecasts: Forecasts
    reference: Array = field(metadata=EVENT)  # (T, K); the prior of each event
    shared: Array | None  # (K,); the prior of all events; None if each has its own
    weight: Array = field(metadata=EVENT)  # (T,); frequencies
    estimated: bool = False  # whether the prior is Laplace's estimate from these outcomes
    whole: Seen | None = None  # counts over all events, if these are a sample; else None
    total: float | None = None  # weight of all resolved events, if these are a sample
    # Function of a floor that yields all resolved events in blocks, if these are a sample; else None.
    blocks: Callable[[float], Iterator[Block]] | None = None
    parts: Callable[[], Iterator[Problem]] | None = None  # yields all events in parts, if they are not in memory
    topics: tuple[str, ...] = ()  # names of the topics that are learned
    # (T,); frequencies for comparisons of answers; None if `weight` is used
    compared: Array | None = field(default=None, metadata=EVENT)

    @classmethod
    def of(cls, forecasts: Forecasts, prior: npt.ArrayLike | None, sample_weight: npt.ArrayLike | None) -> Problem:
        """Return the problem of these forecasts; the arguments are those of `opinionpool.learning.learn.learn`."""
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
        """Names of the N experts."""
        return self.forecasts.experts

    @property
    def classes(self) -> tuple[object, ...]:
        """Labels of the K classes."""
        return self.forecasts.classes

    @property
    def outcomes(self) -> Index:
        """Position of each event's outcome, -1 where not resolved, (T,)."""
        return self.forecasts.outcomes

    @property
    def has_options(self) -> bool:
        """True if events have options of their own."""
        return self.forecasts.options is not None

    @cached_property
    def events(self) -> Array:
        """Number of resolved events by outcome, weighted, (K,)."""
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
        """Counts of all events and forecasts of the source, of which this problem may be a sample."""
        return self.whole or Seen(self.events, self.counts, self.present)

    @cached_property
    def leaked(self) -> Mask:
        """Mask of experts who were right and nearly certain on every resolved event, (N,)."""
        return leaked_experts(self.forecasts)

    @property
    def contrary_notes(self) -> tuple[Note, ...]:
        """Note that forecasts speak against the outcomes, as if classes were swapped; () if they do not."""
        events = 0 if self.has_options else contrary_events(self.forecasts)
        return (contrary_note(events, self.classes),) if events else ()

    def problem(self) -> Problem:
        """The problem itself, as it is its own source."""
        return self

    @cached_property
    def expected(self) -> Array:
        """Log-ratios L° of each event's prior, which an uninformed forecast would have, (T, K - 1)."""
        return logodds.prior_log_ratios(self.reference)

    @property
    def absent(self) -> Mask | None:
        """Mask of classes 1 to K - 1 that are no options of an event, (T, K - 1); None if classes are shared."""
        return np.asarray(self.reference[:, 1:] == 0) if self.has_options else None

    def select(self, kept: Index | Mask) -> Problem:
        """Return the problem with only the events `kept`."""
        return replace(self, forecasts=self.forecasts.select_events(kept), **taken(self, event=kept))

    def dense(self, floor: float) -> DenseContrasts:
        """Return log-ratios of all forecasts less the prior's as an array, events x experts."""
        prior, q = self.shared if self.shared is not None else self.reference[:, None, :], self.forecasts.dense()
        beyond = contrasts(q, prior, floor, self.expected[:, None, :])
        return DenseContrasts(contrasts=beyond, **self._events)

    def sparse(self, floor: float) -> SparseContrasts:
        """Return log-ratios of all forecasts less the prior's as rows, one for each forecast."""
        event, expert = self.forecasts.event_index, self.forecasts.expert_index
        one = self.shared is not None
        prior, expected = (each[:1] if one else each[event] for each in (self.reference, self.expected))
        beyond = contrasts(self.forecasts.probabilities, prior, floor, expected)
        return SparseContrasts(event=event, expert=expert, contrasts=beyond, **self._events)

    @property
    def _events(self) -> dict[str, Any]:
        """Fields about events of `DenseContrasts` and `SparseContrasts`, as keyword arguments."""
        estimated, topics = None, None
        if self.estimated and not self.has_options:
            estimated = float(self.events.sum()) if self.total is None else self.total
        if self.topics and self.forecasts.topics is not None:
            place = {name: g for g, name in enumerate(self.topics)}
            member = np.array([place.get(name, -1) for name in self.forecasts.topics.tolist()], dtype=np.intp)
            topics = ByTopic(self.topics, member, np.zeros(self.expected.shape[1]))
        return {
            "reference": self.expected,
            "outcomes": self.outcomes,
            "weight": self.weight,
            "compared": self.compared,
            "experts": self.experts,
            "absent": self.absent,
            "estimated": estimated,
            "topics": topics,
        }

    def sampled(self, sample: Draw) -> Problem:
        """Return the problem with the events of `sample` only, and with a function that yields all events in blocks."""
        total = float(self.weight[self.forecasts.resolved].sum())
        every = replace(self, total=total)
        return replace(
            self.select(sample.positions),
            weight=sample.frequencies(self.weight),
            compared=None if self.compared is None else sample.frequencies(self.compared),
            total=total,
            blocks=None if sample.complete else every.in_blocks,
        )

    def in_blocks(self, floor: float) -> Iterator[DenseContrasts]:
        """Yield the resolved events in blocks, as arrays of log-ratios less the prior's."""
        used = np.flatnonzero(self.forecasts.resolved & (self.weight > 0))
        numbers = self.forecasts.shape[1] * (len(self.classes) - 1)
        # A Hessian takes as much as so many events.
        for rows in blocks(len(used), numbers, numbers):
            yield self.select(used[rows]).dense(floor)

    @property
    def learnable_topics(self) -> tuple[str, ...]:
        """Names of the topics of resolved events with forecasts; () if all these events have one topic."""
        forecasts = self.forecasts
        if forecasts.topics is None or forecasts.options is not None:
            return ()
        names = np.unique(forecasts.topics[forecasts.resolved & (forecasts.crowd > 0) & (self.weight > 0)]).tolist()
        return tuple(name for name in names if name) if len(names) > 1 else ()

    def sums(self, request: Request) -> Sums:
        """Return sums over the events of the problem, for the fit `request`."""
        return Sums(self._evidence(request.settings.floor), self.shared, self.seen, self.leaked)

    def _evidence(self, floor: float) -> ResolvedEvents:
        """Resolved events for estimates by averages: as statistics if every expert answered all, else as rows."""
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
