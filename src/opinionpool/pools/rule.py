"""Base classes of pools: a rule for the forecasts present, its parameters and their fit, and contributions.

* A forecast that is missing is NaN; on each event the rule is applied to those present, and with none the answer
  is the prior. Only the logarithmic pool treats a missing expert otherwise, see `opinionpool.pools.logarithmic.Log`.
* An expert's probability of a class is kept at least ``min(floor, prior / 100)``, an answer at least
  ``min(pool_floor, prior)``.
* Where a rule has a place for the prior, in the independent, logarithmic, extremised and recalibrated pools,
  contrasts with its log-odds L° are combined, and the answer is L° + g(L − L°): changing the prior before or after
  pooling agrees. Elsewhere the prior matters only for the floors and where nobody answered.
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
    """Option of a pool: default and description."""

    default: Any
    text: str


class Pool(ABC):
    """Abstract base class of all pools; a subclass needs a `title` and `combine`."""

    title: ClassVar[str]  # for people
    options: ClassVar[Mapping[str, Option]] = MappingProxyType({})  # by the name that `fit_pool` takes
    learns: ClassVar[bool] = False  # whether resolved events matter for more than the prior
    fixed_by: ClassVar[str | None] = None  # an option that leaves nothing to learn where it is given
    uses_prior: ClassVar[bool] = True  # whether the prior matters on events on which somebody answered
    weighs: ClassVar[bool] = False  # whether a weight is learned for every expert, however many there are
    timed: ClassVar[bool] = False  # whether `pool` takes the ages of forecasts, ``ages``
    of_levels: ClassVar[bool] = (
        False  # whether it is meant for votes and scores, and compared only where there are some
    )
    scale: ClassVar[str | None] = None  # {"log-odds", "probability"}, what the answer is a sum of; None if it is none

    def check(self, classes: int, *given: Any, **parameters: Any) -> Parameters:  # noqa: ANN401, ARG002
        """Checked parameters of `pool`, as `fit` returns them; by default only weights, as shares, are allowed."""
        known = {"weights"} & self.options.keys()
        if unknown := parameters.keys() - known:
            raise TypeError(f"the {self.title} has no parameter {', '.join(sorted(unknown))}")
        weights = parameters.get("weights")
        return dict.fromkeys(known, None if weights is None else check_shares(weights))

    @abstractmethod
    def combine(self, contrast: Contrasts, *given: Any, **parameters: Any) -> Array:  # noqa: ANN401
        """Log-ratios (T, K - 1) of the answers about T events with at least one forecast each."""

    def fit(self, sample: TrainingEvents, *given: Any, **options: Any) -> Parameters:  # noqa: ANN401, ARG002
        """Parameters for `pool`, learned from `sample`; by default the options, as there is nothing to learn."""
        if options.get("weights") is not None:
            options["weights"] = check_shares(sample.given_weights(options["weights"]))
        return options

    def parts(self, contrast: Contrasts, *given: Any, **parameters: Any) -> AnswerParts:  # noqa: ANN401
        """Contributions of the experts to the answer about one event, with at least one forecast."""
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
        """Pooled probabilities, (...), or (..., K), of forecasts (..., N), or (..., N, K), NaN where missing.

        Priors and base rates are numbers or (...); K > 2: (K,) or (..., K). `ages`, (..., N), are for pools that are
        `timed`, in any unit, NaN where unknown; parameters are those of the pool's `check`.
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
    """A pool whose answer is L* = L° + a + Σ_i w_i (L_i − L°)."""

    scale: ClassVar[str | None] = "log-odds"

    @abstractmethod
    def weights(self, contrast: Contrasts, *given: Any, **parameters: Any) -> Array:  # noqa: ANN401
        """Weights w of the experts present, (T, N), 0 where absent."""

    def combine(self, contrast: Contrasts, intercept: Array = NO_INTERCEPT, **parameters: Any) -> Array:  # noqa: ANN401
        """L* of each event, (T, K - 1)."""
        added = weighted_sums(self.weights(contrast, **parameters), contrast.contrasts)
        return np.asarray(contrast.reference + intercept + added)

    def parts(self, contrast: Contrasts, intercept: Array = NO_INTERCEPT, **parameters: Any) -> AnswerParts:  # noqa: ANN401
        """Contributions to the answer about one event: prior, intercept, and each weight times its contrast."""
        of_each, weights = contrast.contrasts[0], self.weights(contrast, **parameters)[0]
        a, none = np.broadcast_to(intercept, of_each.shape[1]), np.zeros_like(of_each)
        return AnswerParts("log-odds", none, of_each, weights, weights[:, None] * of_each, contrast.reference[0], a)


class ProbabilityPool(Pool):
    """A pool whose answer is a weighted mean of probabilities."""

    uses_prior = False
    scale = "probability"

    def combine(self, contrast: Contrasts, weights: Array | None = None) -> Array:
        """Log-ratios of the mean, (T, K - 1)."""
        return logodds.prior_log_ratios(weighted_sums(contrast.shares(weights), contrast.probabilities))

    def parts(self, contrast: Contrasts, weights: Array | None = None) -> AnswerParts:
        """Contributions of the experts to the answer: each share times the expert's probability."""
        shares, p = contrast.shares(weights)[0], contrast.probabilities[0]
        none, zero = np.zeros_like(contrast.contrasts[0]), np.zeros(p.shape[1])
        return AnswerParts("probability", none, contrast.contrasts[0], shares, shares[:, None] * p, zero, zero)


_WEIGHTS = "weights by expert name, or in the experts' order"
LEARNED_WEIGHTS = Option(None, f"{_WEIGHTS}; learned from the resolved events if not given")
EQUAL_WEIGHTS = Option(None, f"{_WEIGHTS}; equal if not given")
SOME_WEIGHTS = Option(None, f"{_WEIGHTS}; if not given, learned where the events are many enough, else equal")


def check_weights(weights: npt.ArrayLike) -> Array:
    """Checked weights, a finite vector."""
    w = as_numbers(weights, "weight", ArgumentError)
    if w.ndim != 1 or not np.isfinite(w).all():
        raise ArgumentError(f"weights must be finite numbers, one for each expert, not {w}")
    return w


def check_shares(weights: npt.ArrayLike) -> Array:
    """Checked weights, at least 0, scaled to a sum of 1."""
    w = check_weights(weights)
    if (w < 0).any() or not w.any():
        raise ArgumentError(f"weights of this pool must be at least 0, and one of them above it, not {w}")
    shares: Array = w / w.sum()
    return shares


def intercept_ratios(intercept: npt.ArrayLike, classes: int) -> Array:
    """Log-ratios (K - 1,) of an `intercept` in log-odds, or of one of each class, (K,), if K > 2; else ShapeError."""
    a = as_numbers(intercept, "intercept", ArgumentError)
    if a.shape not in {(), (classes,) if classes > 2 else ()} or not np.isfinite(a).all():
        raise ShapeError(f"the intercept of {classes} classes must be finite and of shape {(classes,)}, not {a}")
    return a.reshape(1) if classes == 2 else logodds.uncentred(np.broadcast_to(a, classes))


def weighted_sums(weights: Array, values: Array) -> Array:
    """Sums over the experts, (T, D), of `values` (T, N, D) times `weights` (N,) or (T, N)."""
    shares = np.broadcast_to(weights, values.shape[:2])
    return np.asarray(np.einsum("tn,tnd->td", shares, values))
