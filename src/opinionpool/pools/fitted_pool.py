"""Result of a fit of any pool other than the Gaussian one (model.md, section 6).

A fit of the Gaussian pool is an `opinionpool.learning.fitted.FittedPanel`; a fit of every other pool is a `FittedPool`,
which has the arguments of the pool's method `pool`. `Fitted` is the union of the two types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array
from opinionpool.errors import ArgumentError, Note
from opinionpool.forecasts import Forecasts
from opinionpool.learning.fitted import FittedPanel
from opinionpool.logodds import FLOOR, POOL_FLOOR
from opinionpool.model.contrasts import AnswerParts, Batch, Contrasts, read_batch
from opinionpool.names import by_name
from opinionpool.pools.registry import POOLS
from opinionpool.priors import own_priors, prior_or_learned


@dataclass(frozen=True, eq=False)
class FittedPool:
    """Fit of any pool but the Gaussian; `rule` is the pool's name, `parameters` are arguments of its method `pool`.

    The other attributes are as in `opinionpool.learning.fitted.FittedPanel`.
    """

    panel: ClassVar[None] = None
    marginal: ClassVar[None] = None
    posterior: ClassVar[None] = None

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
        """True if answers depend on outcomes other than through the prior."""
        return POOLS[self.rule].learns and not any(note.code == "given-weights" for note in self.notes)

    @property
    def weights(self) -> Array | None:
        """Weights of the experts, (N,); None if the pool has no weights."""
        return self.parameters.get("weights")

    def pool(
        self,
        q: npt.ArrayLike,
        prior: npt.ArrayLike | None = None,
        base_rate: npt.ArrayLike | None = None,
        topics: npt.ArrayLike | None = None,  # noqa: ARG002 - as `FittedPanel` has it
        **timed: npt.ArrayLike,
    ) -> Array:
        """The pooled probabilities of forecasts `q`; `prior` is that of the fit if None, `topics` have no influence."""
        return POOLS[self.rule].pool(
            by_name(q, self.experts),
            **self.parameters,
            **timed,
            prior=self.reference(prior),
            base_rate=base_rate,
            classes=len(self.classes),
            floor=self.floor,
            pool_floor=self.pool_floor,
        )

    def pool_forecasts(
        self, forecasts: Forecasts, prior: npt.ArrayLike | None = None, base_rate: npt.ArrayLike | None = None
    ) -> Array:
        """Return the pooled probability of every event of `forecasts`, (T,) or (T, K)."""
        if prior is None and forecasts.options is not None:
            prior = own_priors(forecasts, None)
        answers = np.empty((len(forecasts.events), *forecasts.probabilities.shape[1:]))
        for rows, q, (own, rate) in forecasts.dense_blocks(self.experts, self.reference(prior), base_rate):
            timed = {}
            if POOLS[self.rule].timed and forecasts.made is not None:
                timed = {"ages": forecasts.dense(rows, self.experts, ages=True)}
            answers[rows] = self.pool(q, own, rate, **timed)
        return answers

    def reference(self, prior: npt.ArrayLike | None = None) -> npt.ArrayLike:
        """Return the prior to start from: `prior`, or if that is None the prior of the fit."""
        return prior_or_learned(prior, self.prior)

    def weight_interval(self, level: float = 0.9) -> tuple[Array, Array]:  # noqa: ARG002 - as `FittedPanel` has it
        """Return bounds of the experts' weights, (N,) each: NaN, as these pools have no posterior."""
        unknown = np.full(len(self.experts), np.nan)
        return unknown, unknown

    def forecast_intervals(self, *_: object) -> None:
        """Return None, as these pools have no intervals."""

    def read(self, q: npt.ArrayLike, prior: npt.ArrayLike, base_rate: npt.ArrayLike | None = None) -> Batch:
        """Return the `Batch` of forecasts by all experts; the arguments are those of `pool`."""
        return read_batch(q, prior, len(self.experts), len(self.classes), base_rate, self.floor, self.pool_floor)

    def answer_parts(self, batch: Batch) -> AnswerParts:
        """Return the answer about one event as a sum over experts; an ArgumentError if the pool has no such sum."""
        rule = POOLS[self.rule]
        if rule.scale is None:
            sums = [name for name, pool in POOLS.items() if pool.scale is not None]
            raise ArgumentError(
                f"the {self.rule} pool's answer is not a sum of what each expert adds; explain one of {', '.join(sums)}"
            )
        forecast = Contrasts(batch.log_ratios(), batch.reference)
        if forecast.present.any():
            return rule.parts(forecast, **rule.check(len(self.classes), **self.parameters))
        none, start = forecast.contrasts[0], batch.reference[0] if rule.scale == "log-odds" else batch.prior[0]
        empty = np.zeros((len(none), len(start)))
        return AnswerParts(rule.scale, none, none, np.zeros(len(none)), empty, start, np.zeros_like(start))

    def for_options(self, options: tuple[object, ...]) -> FittedPool:
        """Return a copy with the classes `options`, for events with options of their own, as those of the fit had."""
        return replace(self, classes=options)


# What a fit gives. Both have experts, classes, prior, weights, learned, events, counts, notes, rule, panel, marginal
# and posterior (None where there is none), pool, pool_forecasts, forecast_intervals, reference, answer_parts and
# for_options.
Fitted: TypeAlias = FittedPanel | FittedPool
