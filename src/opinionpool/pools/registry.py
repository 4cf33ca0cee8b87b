"""Every pool by its name: its options, what a fit learns, and a small state object that pools (model.md, section 6).

The Gaussian pool's state is `opinionpool.learning.fitted.FittedPanel`; the state of every other pool is a `FittedPool`,
the keyword arguments of its rule. `Fitted` is one or the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.arguments import chosen_name
from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError, LearningError, Note, ProbabilityError
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
from opinionpool.forecasts import Forecasts, Totals
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.fitted import FittedPanel
from opinionpool.learning.learn import learn
from opinionpool.learning.screening import leakage_notes
from opinionpool.logodds import FLOOR, POOL_FLOOR, log_ratios, public_probabilities
from opinionpool.model.contrasts import AnswerParts, Batch, Contrasts
from opinionpool.names import by_name
from opinionpool.pools import NAMES
from opinionpool.pools.averages import Average, Geometric, Median, Trimmed
from opinionpool.pools.beta_linear import BetaLinear
from opinionpool.pools.linear import Linear
from opinionpool.pools.logarithmic import Extremized, Independent, Log, Recalibrated
from opinionpool.pools.rule import Option, Pool, Sample
from opinionpool.priors import laplace_prior, own_priors
from opinionpool.text import suggestion


class Gaussian(Pool):
    """The panel of experts that `opinionpool.learning.learn` learns."""

    title = "Gaussian pool"
    options = MappingProxyType(
        {
            "structure": Option("auto", "full, common, exchangeable, independent or auto"),
            "beliefs": Option(
                "default", 'beliefs beforehand: Beliefs, "default", or None to learn from the data alone'
            ),
            "class_model": Option("auto", "symmetric, full or auto, for more than two classes"),
        }
    )
    learns = True
    scale = "log-odds"


POOLS: Mapping[str, Pool] = MappingProxyType(
    dict(
        zip(
            NAMES,
            (
                Gaussian(),
                Linear(),
                Log(),
                Independent(),
                Average(),
                Geometric(),
                Median(),
                Trimmed(),
                Extremized(),
                Recalibrated(),
                BetaLinear(),
            ),
            strict=True,
        )
    )
)


@dataclass(frozen=True, eq=False)
class FittedPool:
    """What a fit of any pool but the Gaussian learned.

    Attributes
    ----------
    rule : str
        The pool's name in `POOLS`.
    parameters : mapping
        Keyword arguments of the rule's `pool`, learned or given: ``weights``, ``intercept``, ``slope``, ...
    experts, classes : tuple
    prior, events, counts, notes
        As for `opinionpool.learning.fitted.FittedPanel`.
    floor, pool_floor : float
    """

    panel: ClassVar[None] = None
    marginal: ClassVar[None] = None
    uncertainty: ClassVar[None] = None

    rule: str
    parameters: Mapping[str, Any]
    experts: tuple[str, ...]
    classes: tuple[object, ...]
    prior: Array | None
    events: Array
    counts: Array
    notes: tuple[Note, ...] = ()
    floor: float = FLOOR
    pool_floor: float = POOL_FLOOR

    @property
    def learned(self) -> bool:
        """Whether its answers depend on outcomes by more than the prior."""
        return POOLS[self.rule].learns and not any(note.code == "given-weights" for note in self.notes)

    @property
    def weights(self) -> Array | None:
        """Weights of the experts, (N,); None if the rule has none of its own."""
        return self.parameters.get("weights")

    def pool(
        self,
        q: npt.ArrayLike,
        prior: npt.ArrayLike | None = None,
        base_rate: npt.ArrayLike | None = None,
        topics: npt.ArrayLike | None = None,  # noqa: ARG002 - as `FittedPanel` has it
    ) -> Array:
        """Pooled probability, with the prior of the fit unless another is given; topics play no part.

        Raises
        ------
        ProbabilityError, ShapeError
            If each event had its own prior in the fit and none is given now, or if arguments do not fit together.
        """
        return POOLS[self.rule].pool(
            by_name(q, self.experts),
            **self.parameters,
            prior=self.reference(prior),
            base_rate=base_rate,
            classes=len(self.classes),
            floor=self.floor,
            pool_floor=self.pool_floor,
        )

    def pool_forecasts(
        self, forecasts: Forecasts, prior: npt.ArrayLike | None = None, base_rate: npt.ArrayLike | None = None
    ) -> Array:
        """The same for every event of some forecasts, as `opinionpool.learning.fitted.FittedPanel` does."""
        if prior is None and forecasts.options is not None:
            prior = own_priors(forecasts, None)
        answers = np.empty((len(forecasts.events), *forecasts.probabilities.shape[1:]))
        for rows, q, (own, rate) in forecasts.dense_blocks(self.experts, self.reference(prior), base_rate):
            answers[rows] = self.pool(q, own, rate)
        return answers

    def reference(self, prior: npt.ArrayLike | None = None) -> npt.ArrayLike:
        """The prior to use: the one given, or the one of the fit, in the form that `pool` takes."""
        if prior is not None:
            return prior
        if self.prior is None:
            raise ProbabilityError("this pool was learned with a prior for each event, so pooling needs one too")
        return public_probabilities(self.prior)

    def forecast_intervals(self, *_: object) -> None:
        """There are no intervals."""

    def answer_parts(self, batch: Batch) -> AnswerParts:
        """The answer about one event as a sum, see `AnswerParts`.

        Raises
        ------
        ArgumentError
            If it is none: median, trimmed and beta-linear.
        """
        rule = POOLS[self.rule]
        if rule.scale is None:
            sums = [name for name, pool in POOLS.items() if pool.scale is not None]
            raise ArgumentError(
                f"the {self.rule} pool's answer is not a sum of what each expert adds; explain one of {', '.join(sums)}"
            )
        forecast = Contrasts(log_ratios(batch.q, batch.prior[:, None, :], self.floor), batch.reference)
        if forecast.present.any():
            return rule.parts(forecast, **self.parameters)
        none, start = forecast.contrasts[0], batch.reference[0] if rule.scale == "log-odds" else batch.prior[0]
        empty = np.zeros((len(none), len(start)))
        return AnswerParts(rule.scale, none, none, np.zeros(len(none)), empty, start, np.zeros_like(start))

    def for_options(self, options: tuple[object, ...]) -> FittedPool:
        """The same, learned from events with options of their own, for events with these options."""
        return replace(self, classes=options)


class HasSettings(Protocol):
    """A pool with options: `Configured`, or one of `opinionpool.estimators`."""

    @property
    def rule(self) -> str:
        """Its name in `POOLS`."""

    def settings(self) -> dict[str, Any]:
        """What `fit_pool` is called with."""


# A pool as users give it: by its name, or with options.
PoolLike: TypeAlias = str | HasSettings


@dataclass(frozen=True)
class Configured:
    """A pool with options of its own, as `opinionpool.scoring.comparison.compare_pools` takes it."""

    rule: str  # a name in `POOLS`
    options: Mapping[str, Any] = field(default_factory=dict)

    def settings(self) -> dict[str, Any]:
        """What `fit_pool` is called with."""
        return dict(self.options)

    @property
    def learns(self) -> bool:
        """Whether its answers depend on outcomes."""
        pool = POOLS[self.rule]
        return pool.learns and (pool.fixed_by is None or self.options.get(pool.fixed_by) is None)


def configured(pool: PoolLike, beliefs: Beliefs | None = None) -> Configured:
    """A pool by its name, which may be given beliefs, or one that brings its own options.

    Raises
    ------
    ArgumentError
        If it is neither.
    """
    if isinstance(pool, str):
        chosen_name(pool, "pool", tuple(POOLS))
        return Configured(pool, {} if beliefs is None or "beliefs" not in POOLS[pool].options else {"beliefs": beliefs})
    if isinstance(pool, type) or not callable(getattr(pool, "settings", None)):
        raise ArgumentError(
            f"a pool is a name such as 'linear' or one of opinionpool's such as op.LinearPool(), not {pool!r}"
        )
    return Configured(pool.rule, pool.settings())


# What a fit gives. Both have experts, classes, prior, weights, learned, events, counts, notes, rule, panel, marginal
# and uncertainty (None where there is none), pool, pool_forecasts, forecast_intervals, reference, answer_parts and
# for_options.
Fitted: TypeAlias = FittedPanel | FittedPool


def fit_pool(
    name: str,
    forecasts: Forecasts,
    *,
    prior: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    floor: float = FLOOR,
    pool_floor: float = POOL_FLOOR,
    **options: Any,  # noqa: ANN401 - each pool has its own
) -> Fitted:
    """Fit a pool to the resolved events among some forecasts.

    Parameters
    ----------
    name : str
        One of `POOLS`.
    forecasts : Forecasts
        Its own priors win over `prior`, which fills their blanks.
    prior : float or array_like, shape (T,), or (K,), (T, K) when K > 2, optional
        The reference that the experts share; Laplace's estimate if not given.
    sample_weight : array_like, shape (T,), optional
        Frequencies.
    floor, pool_floor : float
        Floors (model.md, section 4).
    **options
        Those of the pool, see ``POOLS[name].options``.

    Raises
    ------
    ArgumentError, LearningError, ProbabilityError, ExpertError, ShapeError
        If there is no such pool or option, or the data or arguments do not allow it.

    Examples
    --------
    >>> f = Forecasts.from_array([[0.7, 0.6], [0.2, 0.3], [0.9, None]], [1, 0, 1], experts=["ann", "bob"])
    >>> learned = fit_pool("linear", f, prior=0.5)
    >>> learned.weights.round(5), float(learned.pool([0.8, 0.5]).round(5))
    (array([1., 0.]), 0.8)
    """
    pool = POOLS[chosen_name(name, "pool", tuple(POOLS))]
    for option in options:
        if option not in pool.options:
            known = ", ".join(pool.options) or "none"
            raise ArgumentError(
                f"the {name} pool has no option {option!r}; "
                + suggestion(option, tuple(pool.options), f"its options are: {known}")
            )
    if isinstance(pool, Gaussian):
        return learn(forecasts, prior=prior, sample_weight=sample_weight, floor=floor, pool_floor=pool_floor, **options)
    sample = Sample.of(forecasts, prior, sample_weight, floor)
    defaults = {key: option.default for key, option in pool.options.items()}
    parameters = pool.fit(sample, **defaults | options)
    if not any(note.code == "constant" for note in sample.notes):
        sample.note_constant("which counts like that of anybody else in this pool")
    fixed = pool.learns and not Configured(name, options).learns
    more = [Note("given-weights", "weights as they were given, not learned")] if fixed else []
    more += leakage_notes(forecasts) if pool.learns and not fixed else []
    learned = FittedPool(
        rule=name,
        parameters=parameters,
        experts=forecasts.experts,
        classes=forecasts.classes,
        prior=sample.prior,
        events=sample.events,
        counts=sample.counts,
        notes=(*sample.notes, *more),
        floor=floor,
        pool_floor=pool_floor,
    )
    # One event is enough to find options that the pool does not allow.
    n, k = len(forecasts.experts), len(forecasts.classes)
    even = 0.5 if k == 2 else np.full(k, 1.0 / k)
    learned.pool(np.full(n, 0.5) if k == 2 else np.full((n, k), 1.0 / k), prior=even)
    return learned


@dataclass(frozen=True)
class LearnedParts:
    """What was learned from parts."""

    state: Fitted
    totals: Totals  # of all parts
    sample: Forecasts  # what it was learned from
    notes: tuple[Note, ...]


class _Sample:
    """The events of least priority, a bounded number of each outcome and of unresolved ones."""

    def __init__(self, first: Forecasts) -> None:
        k = len(first.classes)
        self.rooms = rooms(len(first.experts), k)
        self.limits = np.full(k + 1, np.iinfo(np.uint64).max, dtype=np.uint64)
        self.seen = np.zeros(k + 1, dtype=np.int64)
        self._before: list[npt.NDArray[np.uint64]] = []
        self._kept: list[tuple[npt.NDArray[np.uint64], Forecasts]] = []

    def add(self, forecasts: Forecasts) -> None:
        """Take in the events of one part."""
        group = np.where(forecasts.resolved, forecasts.outcomes, len(self.limits) - 1)
        contents = event_contents(forecasts)
        keys = content_keys(contents, forecasts.outcomes, self._before)
        self._before = with_contents(self._before, sorted_contents(contents, forecasts.outcomes))
        self.seen += np.bincount(group, minlength=len(self.seen))
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
        notes=(),
    )


def _times_of_cells(parts: Sequence[Forecasts]) -> npt.NDArray[np.datetime64] | None:
    """When each forecast of several parts was made; None if nobody knows."""
    if all(part.made is None for part in parts):
        return None
    never = np.datetime64("NaT", "us")
    return np.concatenate([np.full(len(p.event_index), never) if p.made is None else p.made for p in parts])


def learn_parts(
    name: str, parts: Iterable[Forecasts], prior: float | Array | None, options: dict[str, Any]
) -> LearnedParts:
    """Fit a pool to forecasts in parts, by the same experts on different events.

    Parameters
    ----------
    name : str
        One of `opinionpool.pools.registry.POOLS`.
    parts : iterable of Forecasts
    prior : float or ndarray, shape (K,), or None
    options : dict
        Those of the pool.

    Raises
    ------
    OpinionPoolError
        As for `opinionpool.pools.registry.fit_pool`.
    """
    sample: _Sample | None = None
    totals: Totals | None = None
    for part in parts:
        sample = _Sample(part) if sample is None else sample
        sample.add(part)
        totals = Totals.of(part) if totals is None else totals + Totals.of(part)
    if sample is None or totals is None:
        raise LearningError("there are no events")
    taken = sample.forecasts()
    counts = np.array(totals.outcomes, dtype=np.float64)
    drawn = np.bincount(taken.outcomes[taken.resolved], minlength=len(counts))
    if drawn.sum() == totals.resolved:
        return LearnedParts(fit_pool(name, taken, prior=prior, **options), totals, taken, ())
    weight = stands_for(taken.outcomes, counts)
    reference = prior
    if prior is None and (taken.prior is None or np.isnan(taken.prior).all()):
        reference = public_probabilities(laplace_prior(counts))
    state = fit_pool(name, taken, prior=reference, sample_weight=weight, **options)
    return LearnedParts(state, totals, taken, (sample_note(int(drawn.sum()), totals.resolved),))
