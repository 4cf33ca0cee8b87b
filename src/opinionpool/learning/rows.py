"""Contrasts of experts on events, as an array or as rows: the data of the default pool and of crowds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, reduce
from typing import Protocol, Self, TypeAlias

import numpy as np

from opinionpool.arrays import CELL, EVENT, Array, Index, Mask, taken
from opinionpool.blocks import in_order
from opinionpool.estimation.regression import ByTopic, Observations
from opinionpool.labels import UNRESOLVED
from opinionpool.learning.agreement import Agreement
from opinionpool.learning.cells import Cells
from opinionpool.learning.constants import PRIOR_EVENTS
from opinionpool.learning.laplace import Likelihood
from opinionpool.learning.quadratic import Arrow
from opinionpool.logodds import expit, levelled, signature, softmax, whitened
from opinionpool.model.contrasts import Extremes
from opinionpool.model.features import Parts


class Block(Protocol):
    """Protocol of a block of resolved events, for likelihoods of more events than are kept in memory."""

    @property
    def contrasts(self) -> Array:
        """Log-ratios of forecasts less the prior's, (t, N, K - 1), NaN where missing."""

    def among(self, first: Index, away: Array) -> Block:
        """Return the block with forecasts by only the experts `first`, and with the prior's log-ratios less `away`."""

    def observed(self, fill: Parts, extremes: Extremes) -> Observations:
        """Data to regress outcomes on moderated log-ratios less the prior's; `fill` imputes missing ones."""

    def log_likelihoods(self) -> Array:
        """Log-likelihood of the outcomes by the average forecast, and by each expert's forecasts, (1 + N,)."""

    @property
    def in_comparison(self) -> Block:
        """The block with the events' weights for comparisons of pools in place of their weights for fits."""


# Returns all resolved events in blocks, of which some are a sample.
Blocks: TypeAlias = Callable[[], Iterator[Block]]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Events(ABC):
    """Facts about T events to learn from, such as outcomes, priors and weights, without the forecasts by N experts."""

    reference: Array = field(metadata=EVENT)  # (T, K - 1); L°
    outcomes: Index = field(metadata=EVENT)  # (T,); -1 where not resolved
    weight: Array = field(metadata=EVENT)  # (T,); frequencies
    # (T,); frequencies for comparisons of answers; None if `weight` is used
    compared: Array | None = field(default=None, metadata=EVENT)
    experts: tuple[str, ...]
    # (T, K - 1); classes but the first that are no options of their event; None if events share their classes
    absent: Mask | None = field(default=None, metadata=EVENT)
    # Resolved events of which the reference is Laplace's estimate; None if it is not.
    estimated: float | None = None
    topics: ByTopic | None = field(default=None, metadata=EVENT)  # None where none are learned
    away: Array | float = 0.0  # (K - 1,); how far L° is from the believed prior

    @property
    def free(self) -> int:
        """Number of log-ratios of an event, K - 1."""
        return int(self.reference.shape[1])

    @property
    def sizes(self) -> Index | None:
        """Number of options of each event, (T,); None if events share their classes."""
        return None if self.absent is None else self.free + 1 - self.absent.sum(axis=1)

    @property
    def resolved(self) -> Mask:
        """Mask of resolved events, (T,)."""
        return np.asarray(self.outcomes != UNRESOLVED)

    @property
    def in_comparison(self) -> Self:
        """The events with their weights for comparisons of pools in place of their weights for fits."""
        return self if self.compared is None else replace(self, weight=self.compared)

    @property
    def offset(self) -> Array:
        """Log-ratios of the prior that is believed, (T, K - 1), from which answers start."""
        return np.asarray(self.reference - self.away)

    def believing(self, away: Array) -> Self:
        """Return a copy whose believed prior has the log-ratios L° − `away`."""
        return replace(self, away=away, topics=self.topics and self.topics._replace(base=-away))

    @cached_property
    @abstractmethod
    def cells(self) -> SparseContrasts:
        """Log-ratios of forecasts less the prior's as rows, one for each forecast."""

    def distrust(self) -> Array:
        """Return the log-ratios of the pool's prior less those of the prior assumed for the experts, (K - 1,).

        The difference is 0 unless the pool's prior is Laplace's estimate from outcomes. For two classes, the prior
        assumed for the experts is the closer to their mean forecast, the fewer the outcomes.
        """
        if self.estimated is None:
            return np.zeros(self.free)
        forecast, doubted = self.cells.frequencies(), PRIOR_EVENTS / (self.estimated + PRIOR_EVENTS)
        number, reference = float(forecast.sum()), self.reference[0]
        if number == 0 or len(forecast) > 2:
            return np.asarray(reference * doubted)
        usual = np.log(forecast[1:] / forecast[0]) * number / (number + PRIOR_EVENTS)
        return np.asarray((reference - usual) * doubted)


@dataclass(frozen=True, eq=False)
class SparseContrasts(_Events):
    """Contrasts (log-ratios less the prior's) of M forecasts by N experts on T events, a row for each forecast."""

    event: Index = field(metadata=CELL)  # (M,); ascending
    expert: Index = field(metadata=CELL)  # (M,)
    contrasts: Array = field(metadata=CELL)  # (M, K - 1); L − L°

    def among(self, used: Mask) -> SparseContrasts:
        """Return only the forecasts in the mask `used` (M,), and only the events of these forecasts."""
        kept, row = np.unique(self.event[used], return_inverse=True)
        return replace(self, **taken(self, event=kept, cell=used) | {"event": row.ravel()})

    @cached_property
    def cells(self) -> SparseContrasts:  # noqa: D102 - as of all events
        return self

    def agreement(self) -> Agreement:
        """How much the experts agree with each other."""
        options, n = self.absent is not None, len(self.experts)
        given = self.contrasts if self.absent is None else levelled(self.contrasts, self.absent[self.event])
        return Agreement.among(self.event, self.expert, given, self.weight, n, options=options)

    def signatures(self, outcomes: Index) -> Array:
        """Signature of each of `outcomes`, (T, K - 1), in orthonormal coordinates: the outcome as log-ratios."""
        signs = signature(self.free + 1)[outcomes]
        return whitened(signs if self.absent is None else levelled(signs, self.absent))

    def regressed(self, contrasts: Array) -> Cells:
        """Return rows to regress `contrasts` (M, K - 1) on signatures of outcomes (log-ratios, ±1 for two classes)."""
        return self._regressed.with_contrasts(
            whitened(contrasts if self.absent is None else levelled(contrasts, self.absent[self.event]))
        )

    @cached_property
    def _regressed(self) -> Cells:
        """Rows for `regressed`, with signatures in the place of contrasts, which `regressed` replaces."""
        signs, weight = self.signatures(self.outcomes)[self.event], self.weight[self.event]
        own = None if self.sizes is None else np.asarray(self.sizes - 1.0, dtype=np.float64)
        return Cells(self.event, self.expert, signs, signs, weight, len(self.weight), len(self.experts), own)

    def frequencies(self) -> Array:
        """Sum over all events, resolved or not, of the mean forecast of each class, (K,)."""
        share = (self.weight / np.maximum(np.bincount(self.event, minlength=len(self.weight)), 1))[self.event]
        ratios = self.contrasts + self.reference[self.event]
        if self.free > 1:
            return np.asarray(share @ softmax(ratios))
        second = share @ expit(ratios[:, 0])
        return np.array([share.sum() - second, second])

    def log_likelihoods(self) -> Array:
        """Log-likelihood of the outcomes by the average forecast, and by each expert's forecasts, (1 + N,)."""
        ratios, happened = self.contrasts + self.reference[self.event], self.outcomes[self.event]
        if self.free == 1:
            given = expit(np.where(happened == 1, ratios[:, 0], -ratios[:, 0]))
        else:
            given = softmax(ratios)[np.arange(len(happened)), happened]
        return by_average_and_expert(self.event, self.expert, given, self.weight, len(self.experts))


@dataclass(frozen=True, eq=False)
class DenseContrasts(_Events):
    """Contrasts (log-ratios less the prior's) of N experts' forecasts on T events as an array."""

    contrasts: Array = field(metadata=EVENT)  # (T, N, K - 1); L − L°, NaN where missing

    def on(self, events: Mask) -> DenseContrasts:
        """Return the forecasts on only the events in the mask `events` (T,)."""
        return self if events.all() else replace(self, **taken(self, event=events))

    def by(self, experts: Index) -> DenseContrasts:
        """Return the forecasts by only the experts at the positions `experts`, in that order."""
        if len(experts) == self.contrasts.shape[1]:
            return self
        names = tuple(self.experts[i] for i in experts.tolist())
        return replace(self, contrasts=self.contrasts[:, experts], experts=names)

    def among(self, first: Index, away: Array) -> DenseContrasts:
        """Return the forecasts by only the experts `first`, on events they answered, with the prior L° − `away`."""
        found = self.by(first).believing(away)
        return found.on(found.answered)

    @property
    def answered(self) -> Mask:
        """Mask of events with a forecast, (T,)."""
        return np.asarray(~np.isnan(self.contrasts[..., 0]).all(axis=1))

    @property
    def options(self) -> Mask | None:
        """Mask of classes, but the first, that an event does not have, (T, 1, K - 1); None if classes are shared."""
        return None if self.absent is None else self.absent[:, None, :]

    @cached_property
    def cells(self) -> SparseContrasts:  # noqa: D102 - as of all events
        _, n, d = self.contrasts.shape
        flat = self.contrasts.reshape(-1, d)
        kept = np.flatnonzero(~np.isnan(flat[:, 0]))
        about = {each.name: getattr(self, each.name) for each in fields(_Events)}
        return SparseContrasts(event=kept // n, expert=kept % n, contrasts=flat.take(kept, axis=0), **about)

    def regressed(self, contrasts: Array) -> Cells:
        """Return rows to regress `contrasts` (T, N, K - 1) on signatures of outcomes (log-ratios, ±1 if K = 2)."""
        some, flat = self.cells, contrasts.reshape(-1, self.free)
        complete = len(some.event) == len(flat)
        return some.regressed(flat if complete else flat.take(some.event * len(self.experts) + some.expert, axis=0))

    def log_likelihoods(self) -> Array:
        """Log-likelihood of the outcomes by the average forecast, and by each expert's forecasts, (1 + N,)."""
        return self.cells.log_likelihoods()

    def observed(self, fill: Parts, extremes: Extremes) -> Observations:
        """Data to regress outcomes on moderated log-ratios less the prior's; `fill` imputes missing ones."""
        full = fill.fill(extremes.deviation(self.contrasts, self.options))
        return Observations(full, self.offset, self.outcomes, self.weight, self.topics)


def by_average_and_expert(event: Index, expert: Index, given: Array, weight: Array, experts: int) -> Array:
    """Log-likelihood by the average forecast, and by each expert's forecasts, (1 + N,).

    `given` (M,) are the probabilities that forecasts gave to the outcomes. Where an expert's forecast is missing, the
    average is used instead.
    """
    number = np.maximum(np.bincount(event, minlength=len(weight)), 1)
    average = np.log(np.bincount(event, given, len(weight)) / number)
    beyond = np.bincount(expert, weight[event] * (np.log(given) - average[event]), experts)
    return np.asarray(weight @ average + np.append(0.0, beyond))


def likelihood(every: Blocks, fill: Parts, extremes: Extremes) -> Likelihood:
    """Return a function that expands the log-likelihood of all events about coefficients; see `Block.observed`."""

    def about(point: Array) -> Arrow:
        def some(rows: Block) -> Arrow:
            observed = rows.observed(fill, extremes)
            return Arrow.at(observed, observed.design(), point)

        return reduce(Arrow.and_of, in_order(some, every()))

    return about
