"""Base classes of pools, each a rule to combine the forecasts present, with its parameters, fit and contributions.

* A missing forecast is NaN; on each event the rule is applied to the forecasts present, and without any the answer is
  the prior. Only the logarithmic pool treats missing forecasts otherwise, see `opinionpool.pools.logarithmic.Log`.
* An expert's probability of a class is kept at least ``min(floor, prior / 100)``, an answer at least
  ``min(pool_floor, prior)``.
* The independent, logarithmic, extremised and recalibrated pools combine contrasts L − L° with the prior's log-odds L°
  to the answer L° + g(L − L°), so it does not matter whether the prior is changed before or after pooling. In other
  pools the prior matters only for the floors and for events without a forecast.
* A base rate adds logit(base_rate) − L° to the pooled log-odds of every pool, and changes nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, as_numbers
from opinionpool.errors import ArgumentError, ShapeError
from opinionpool.logodds import FLOOR, POOL_FLOOR
from opinionpool.model.contrasts import AnswerParts, Contrasts, contrasts_in, read_batch
from opinionpool.pools.training import TrainingEvents

Parameters: TypeAlias = dict[str, Any]
NO_INTERCEPT = np.zeros(1)


class Option(NamedTuple):
    """Option of a pool: its default value and its description for users."""

    default: Any
    text: str  # description for users


class Pool(ABC):
    """Abstract base class of all pools; a subclass has a `title`, and a method `combine` that pools forecasts."""

    title: ClassVar[str]  # name of the pool in texts
    options: ClassVar[Mapping[str, Option]] = MappingProxyType({})  # by the name that `fit_pool` takes
    learns: ClassVar[bool] = False  # whether outcomes change more than the prior
    fixed_by: ClassVar[str | None] = None  # option that, if given, leaves nothing to learn
    uses_prior: ClassVar[bool] = True  # whether the prior changes answers to events with forecasts
    weighs: ClassVar[bool] = False  # whether a weight is learned for every expert
    timed: ClassVar[bool] = False  # whether `pool` takes the ages of forecasts, ``ages``
    of_levels: ClassVar[bool] = False  # whether it is for votes and scores, and compared only if there are some
    scale: ClassVar[str | None] = None  # {"log-odds", "probability"}: unit in which the answer is a sum; None if no sum

    def check(self, classes: int, *given: Any, **parameters: Any) -> Parameters:  # noqa: ANN401, ARG002
        """Return the parameters of `combine`, checked; in this class, `weights` as shares if the pool has weights."""
        known = {"weights"} & self.options.keys()
        if unknown := parameters.keys() - known:
            raise TypeError(f"the {self.title} has no parameter {', '.join(sorted(unknown))}")
        weights = parameters.get("weights")
        return dict.fromkeys(known, None if weights is None else check_shares(weights))

    @abstractmethod
    def combine(self, contrast: Contrasts, *given: Any, **parameters: Any) -> Array:  # noqa: ANN401
        """Log-ratios (T, K - 1) of pooled probabilities of T events with forecasts; `parameters` are from `check`."""

    def fit(self, sample: TrainingEvents, *given: Any, **options: Any) -> Parameters:  # noqa: ANN401, ARG002
        """Return the parameters learned from `sample`; in this class the options, as nothing is learned."""
        if options.get("weights") is not None:
            options["weights"] = check_shares(sample.given_weights(options["weights"]))
        return options

    def parts(self, contrast: Contrasts, *given: Any, **parameters: Any) -> AnswerParts:  # noqa: ANN401
        """Return the answer about one event, with at least one forecast, as a sum of experts' contributions."""
        raise NotImplementedError

    def pool(
        self,
        q: npt.ArrayLike,
        *,
        prior: npt.ArrayLike | None = None,
        base_rate: npt.ArrayLike | None = None,
        classes: int = 2,
        floor: float = FLOOR,
        pool_floor: float = POOL_FLOOR,
        ages: npt.ArrayLike | None = None,
        **parameters: Any,  # noqa: ANN401 - each pool has its own
    ) -> Array:
        """Return pooled probabilities, (...), or (..., K), of forecasts (..., N), or (..., N, K), NaN where missing.

        `prior` and `base_rate` are numbers or (...), if K > 2 (K,) or (..., K). `ages` of forecasts (..., N) in any
        unit, NaN where unknown, matter if the pool is `timed`; `parameters` are as for the pool's `check`.
        """
        axes, shape = 1 if classes == 2 else 2, np.shape(q)
        if len(shape) < axes or shape[-axes] == 0:
            raise ShapeError(f"forecasts need an axis of experts, at least one of them, and their shape is {shape}")
        experts, checked = shape[-axes], self.check(classes, **parameters)
        weights = checked.get("weights")
        if weights is not None and len(weights) != experts:
            raise ShapeError(f"{experts} experts need as many weights, and there are {len(weights)}")
        if prior is None:
            prior = 0.5 if classes == 2 else np.full(classes, 1.0 / classes)
        batch = read_batch(q, prior, experts, classes, base_rate, floor, pool_floor)
        of_cells = {}
        if self.timed and ages is not None:
            of_cells["ages"] = np.broadcast_to(np.asarray(ages, float), (*batch.lead, experts)).reshape(-1, experts)
        pooled = batch.reference.copy()
        for rows, contrast in contrasts_in(batch):
            some = {name: values[rows] for name, values in of_cells.items()}
            pooled[rows] = self.combine(contrast, **checked, **some)
        return batch.as_asked(batch.answers(pooled + batch.shift))


class LogOddsPool(Pool):
    """Base class of pools that add log-odds: prior L° + intercept + Σ_i w_i (L_i − L°), with weights w."""

    scale: ClassVar[str | None] = "log-odds"

    @abstractmethod
    def weights(self, contrast: Contrasts, *given: Any, **parameters: Any) -> Array:  # noqa: ANN401
        """Return the weight of each expert present, (T, N), 0 where absent."""

    def combine(self, contrast: Contrasts, intercept: Array = NO_INTERCEPT, **parameters: Any) -> Array:  # noqa: ANN401
        """Return the pooled log-ratios L* of each event, (T, K - 1)."""
        added = weighted_sums(self.weights(contrast, **parameters), contrast.contrasts)
        return np.asarray(contrast.reference + intercept + added)

    def parts(self, contrast: Contrasts, intercept: Array = NO_INTERCEPT, **parameters: Any) -> AnswerParts:  # noqa: ANN401
        """Return the answer about one event as prior + intercept + sum of weights times log-odds less the prior's."""
        of_each, weights = contrast.contrasts[0], self.weights(contrast, **parameters)[0]
        a, none = np.broadcast_to(intercept, of_each.shape[1]), np.zeros_like(of_each)
        return AnswerParts("log-odds", none, of_each, weights, weights[:, None] * of_each, contrast.reference[0], a)


class ProbabilityPool(Pool):
    """Base class of pools whose answer is a weighted mean of the experts' probabilities."""

    uses_prior = False
    scale = "probability"

    def combine(self, contrast: Contrasts, weights: Array | None = None) -> Array:
        """Return log-ratios of the weighted mean probabilities, (T, K - 1)."""
        return logodds.prior_log_ratios(weighted_sums(contrast.shares(weights), contrast.probabilities))

    def parts(self, contrast: Contrasts, weights: Array | None = None) -> AnswerParts:
        """Return the answer about one event as the sum of shares (weights with sum 1) times probabilities."""
        shares, p = contrast.shares(weights)[0], contrast.probabilities[0]
        none, zero = np.zeros_like(contrast.contrasts[0]), np.zeros(p.shape[1])
        return AnswerParts("probability", none, contrast.contrasts[0], shares, shares[:, None] * p, zero, zero)


_WEIGHTS = "weights by expert name, or in the experts' order"
LEARNED_WEIGHTS = Option(None, f"{_WEIGHTS}; learned from the resolved events if not given")
EQUAL_WEIGHTS = Option(None, f"{_WEIGHTS}; equal if not given")
SOME_WEIGHTS = Option(None, f"{_WEIGHTS}; if not given, learned where the events are many enough, else equal")


def check_weights(weights: npt.ArrayLike) -> Array:
    """Return `weights` as a vector; an `ArgumentError` unless they are finite numbers."""
    w = as_numbers(weights, "weight", ArgumentError)
    if w.ndim != 1 or not np.isfinite(w).all():
        raise ArgumentError(f"weights must be finite numbers, one for each expert, not {w}")
    return w


def check_shares(weights: npt.ArrayLike) -> Array:
    """Return `weights`, at least 0, rescaled to a sum of 1; an `ArgumentError` if one is negative or all are 0."""
    w = check_weights(weights)
    if (w < 0).any() or not w.any():
        raise ArgumentError(f"weights of this pool must be at least 0, and one of them above it, not {w}")
    shares: Array = w / w.sum()
    return shares


def intercept_ratios(intercept: npt.ArrayLike, classes: int) -> Array:
    """`intercept`, one number in log-odds, or (K,) if K > 2, as log-ratios (K - 1,); a ShapeError if it is neither."""
    a = as_numbers(intercept, "intercept", ArgumentError)
    if a.shape not in {(), (classes,) if classes > 2 else ()} or not np.isfinite(a).all():
        raise ShapeError(f"the intercept of {classes} classes must be finite and of shape {(classes,)}, not {a}")
    return a.reshape(1) if classes == 2 else logodds.uncentred(np.broadcast_to(a, classes))


def weighted_sums(weights: Array, values: Array) -> Array:
    """Return the sums over experts, (T, D), of `values` (T, N, D) times `weights` (N,) or (T, N)."""
    shares = np.broadcast_to(weights, values.shape[:2])
    return np.asarray(np.einsum("tn,tnd->td", shares, values))
