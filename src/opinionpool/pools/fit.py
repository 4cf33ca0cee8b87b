"""Fits of any pool, which is given by its name or with options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.arguments import chosen_name
from opinionpool.arrays import Array, Mask
from opinionpool.errors import ArgumentError, Note
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.leakage import leakage_notes
from opinionpool.learning.learn import learn_from
from opinionpool.learning.problem import Problem, Request, Source
from opinionpool.logodds import FLOOR, POOL_FLOOR, check_floor
from opinionpool.model.pooling import Settings
from opinionpool.pools.fitted_pool import Fitted, FittedPool
from opinionpool.pools.registry import POOLS, Gaussian
from opinionpool.pools.training import TrainingEvents
from opinionpool.text import suggestion


class HasSettings(Protocol):
    """Interface of a pool with options: `Configured`, or a pool of `opinionpool.estimators`."""

    @property
    def rule(self) -> str:
        """Name of the pool in `POOLS`."""

    def settings(self) -> dict[str, Any]:
        """Return the options to pass to `fit_pool`."""


# A pool as users give it: by its name, or with options.
PoolLike: TypeAlias = str | HasSettings


@dataclass(frozen=True)
class Configured:
    """An unfitted pool: its name and its options, as `opinionpool.scoring.compare.compare_pools` takes them."""

    rule: str  # a name in `POOLS`
    options: Mapping[str, Any] = field(default_factory=dict)  # arguments of `fit_pool`

    def settings(self) -> dict[str, Any]:
        """Return the options to pass to `fit_pool`."""
        return dict(self.options)

    @property
    def learns(self) -> bool:
        """True if answers depend on outcomes of the events that the pool is fitted to."""
        pool = POOLS[self.rule]
        return pool.learns and (pool.fixed_by is None or self.options.get(pool.fixed_by) is None)


@dataclass(frozen=True, eq=False)
class FitOptions:
    """Prior and beliefs that all fits share when pools are compared."""

    prior: npt.ArrayLike | None = None  # prior for events without their own
    beliefs: Beliefs | None = None  # beliefs about experts, for the Gaussian pool


def configured(pool: PoolLike, beliefs: Beliefs | None = None) -> Configured:
    """`pool` as a `Configured`: a name, with `beliefs` as an option if the pool takes them, or an unfitted pool."""
    if isinstance(pool, str):
        chosen_name(pool, "pool", tuple(POOLS))
        return Configured(pool, {} if beliefs is None or "beliefs" not in POOLS[pool].options else {"beliefs": beliefs})
    if isinstance(pool, type) or not callable(getattr(pool, "settings", None)):
        raise ArgumentError(
            f"a pool is a name such as 'linear' or one of opinionpool's such as op.LinearPool(), not {pool!r}"
        )
    return Configured(pool.rule, pool.settings())


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
    """Fit a pool to the resolved events among `forecasts`.

    An unknown pool or option, or data or arguments that do not allow the fit, raise an ArgumentError, LearningError,
    ProbabilityError, ExpertError or ShapeError.

    Parameters
    ----------
    name : str
        Name of a pool, a key of `POOLS`.
    forecasts : Forecasts
        Events' own priors in it are used before `prior`, which is for events without one.
    prior : float or array_like, shape (T,), or (K,), (T, K) when K > 2, optional
        Prior probability that all experts start from; Laplace's estimate from the outcomes if not given.
    sample_weight : array_like, shape (T,), optional
        Number of times that each event counts.
    floor, pool_floor : float
        Least probability of experts and of answers (model.md, section 4).
    **options
        Options of the pool, see ``POOLS[name].options``.

    Examples
    --------
    >>> f = Forecasts.from_array([[0.7, 0.6], [0.2, 0.3], [0.9, None]], [1, 0, 1], experts=["ann", "bob"])
    >>> learned = fit_pool("linear", f, prior=0.5)
    >>> learned.weights.round(5), float(learned.pool([0.8, 0.5]).round(5))
    (array([1., 0.]), 0.8)
    """
    problem = Problem.of(forecasts, prior, sample_weight)
    return fit_from(problem, name, floor=floor, pool_floor=pool_floor, **options)


def fit_from(
    source: Source,
    name: str,
    *,
    floor: float = FLOOR,
    pool_floor: float = POOL_FLOOR,
    answers_only: bool = False,
    **options: Any,  # noqa: ANN401 - each pool has its own
) -> Fitted:
    """Fit a pool to the resolved events of `source`; other arguments and errors as for `fit_pool`.

    If `answers_only`, intervals and the experts' marginal accuracy and calibration are not computed.
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
        return learn_from(source, Request(**options, settings=Settings(floor, pool_floor), answers_only=answers_only))
    for what, value in (("floor", floor), ("pool_floor", pool_floor)):
        check_floor(value, what)
    problem = source.problem()
    sample = TrainingEvents.of(problem, floor)
    parameters = pool.fit(sample, **{key: option.default for key, option in pool.options.items()} | options)
    pool.check(len(problem.classes), **parameters)
    learns = Configured(name, options).learns
    return FittedPool(
        name, parameters, problem.experts, problem.classes, problem.shared, problem.seen.events, problem.seen.counts,
        _notes(sample, fixed=pool.learns and not learns, learns=learns, answers_only=answers_only), floor, pool_floor,
    )  # fmt: skip


def _notes(sample: TrainingEvents, *, fixed: bool, learns: bool, answers_only: bool) -> tuple[Note, ...]:
    """Notes for users on constant experts, contrary forecasts, given weights (if `fixed`), leakage (if `learns`)."""
    problem = sample.problem
    if not any(note.code == "constant" for note in sample.notes):
        sample.note_constant("which counts like that of anybody else in this pool")
    given = (Note("given-weights", "weights as they were given, not learned"),) if fixed else ()
    leaks = tuple(leakage_notes(problem.experts, problem.leaked)) if learns else ()
    contrary = () if answers_only else tuple(problem.contrary_notes)
    return (*sample.notes, *given, *leaks, *contrary, *problem.seen.notes)


def in_sample(known: Mask, forecasts: Forecasts, pool: str, state: Fitted, prior: float | Array | None) -> Mask:
    """Return True for each event whose answer may depend on its own outcome, (T,).

    `known` (T,) marks events whose outcomes were known at the fit. If the pool learned from a sample of them, the
    events outside the sample are marked too, as their outcomes can change the prior. The prior is estimated from the
    outcomes if `prior`, the argument of the fit, is None, for events without a prior of their own.
    """
    answered = np.asarray(forecasts.crowd > 0)
    taught = answered & state.learned
    if prior is None and forecasts.options is None:
        # Where options are an event's own, they are equally probable.
        t = len(answered)
        own = np.full((t, 1), np.nan) if forecasts.prior is None else forecasts.prior.reshape(t, -1)
        blank = np.asarray(np.isnan(own).any(axis=1))
        taught = taught | (blank & (~answered | POOLS[pool].uses_prior))
    return np.asarray(known & taught)


def sample_size(state: Fitted) -> int | None:
    """Number of resolved events in the sample that a pool was fitted to; None if it was fitted to all events."""
    return next((note.count for note in state.notes if note.code in {"sample", "sampled"}), None)


def in_sample_note(state: Fitted) -> Note:
    """Return the note that an answer is in-sample: the fit may have used the event's own outcome."""
    used = sample_size(state)
    text = "the pool has learned from its outcome"
    if used is not None:
        text = f"the pool knew its outcome, which may be among the {used:,} that it has learned from"
    return Note("in-sample", f"this answer is in-sample: {text}")
