"""What the rules of pools share: weights as users give them, the way from forecasts to an answer, what fits learn from.

What all rules have in common:

* A forecast that is missing is NaN; on each event the rule is applied to those present, and with none the answer
  is the prior. Only the logarithmic pool treats a missing expert otherwise, see `opinionpool.pools.logarithmic.Log`.
* An expert's probability of a class is kept at least ``min(floor, prior / 100)``, an answer at least
  ``min(pool_floor, prior)``.
* Where a rule has a place for the prior, in the independent, logarithmic, extremised and recalibrated pools,
  contrasts with its log-odds L° are combined, and the answer is L° + g(L − L°): changing the prior before or after
  pooling agrees. Elsewhere the prior matters only for the floors and where nobody answered.
* A base rate adds logit(base_rate) − L° to the pooled log-odds of every pool, and changes nothing else.

The keyword arguments that all of them take are in `Settings`. Probabilities have shape (..., N), or (..., N, K) with
K > 2 classes, and answers (...), or (..., K).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

from opinionpool import logodds
from opinionpool.arrays import Array, Index, Mask, as_numbers
from opinionpool.errors import ArgumentError, ExpertError, Note, ShapeError
from opinionpool.estimation.averages import constant_notes, no_forecast_notes
from opinionpool.forecasts import Forecasts
from opinionpool.learning.duplicates import constant_experts
from opinionpool.learning.problem import Problem
from opinionpool.logodds import FLOOR, POOL_FLOOR
from opinionpool.model.contrasts import AnswerParts, Contrasts, contrasts_in, read_batch
from opinionpool.names import unknown_names
from opinionpool.priors import one_outcome_notes
from opinionpool.text import meant, shown

Parameters: TypeAlias = dict[str, Any]


class Option(NamedTuple):
    """An option of a pool: its default, and what it means."""

    default: Any
    text: str


class Pool:
    """A pool before it is fitted; those below say what they need to, and the rest is as here.

    Attributes
    ----------
    title : str
        For people.
    options : mapping of str to Option
        By the name that `opinionpool.pools.fit.fit_pool` takes.
    learns : bool
        Whether resolved events matter for more than the prior.
    fixed_by : str or None
        An option that leaves nothing to learn where it is given.
    uses_prior : bool
        Whether the prior has a part in answers about events on which somebody answered.
    weighs : bool
        Whether a weight is learned for every expert, however many there are.
    timed : bool
        Whether the ages of forecasts matter, where they are known: `pool` then takes them, ``ages``.
    scale : str or None
        What the answer is a sum of, "log-odds" or "probability"; None if it is no sum.
    """

    title: ClassVar[str]
    options: ClassVar[Mapping[str, Option]] = MappingProxyType({})
    learns: ClassVar[bool] = False
    fixed_by: ClassVar[str | None] = None
    uses_prior: ClassVar[bool] = True
    weighs: ClassVar[bool] = False
    timed: ClassVar[bool] = False
    scale: ClassVar[str | None] = None

    def pool(self, q: npt.ArrayLike, *args: Any, **settings: Any) -> Array:  # noqa: ANN401
        """Pooled probability, (..., N) to (...); keyword arguments are the parameters and `Settings`."""
        raise NotImplementedError

    def fit(self, sample: Sample, *args: Any, **options: Any) -> Parameters:  # noqa: ANN401, ARG002
        """What `pool` needs to know; here there is nothing to learn, and the options are it."""
        if options.get("weights") is not None:
            options["weights"] = check_shares(given_weights(sample, options["weights"]))
        return options

    def parts(self, contrast: Contrasts, *args: Any, **parameters: Any) -> AnswerParts:  # noqa: ANN401
        """What each expert adds to the answer about one event, on which somebody answered."""
        raise NotImplementedError


Weights: TypeAlias = Mapping[str, float] | npt.ArrayLike


def matched_weights(weights: Weights, experts: tuple[str, ...]) -> tuple[Array, tuple[str, ...]]:
    """Weights that a user gave, in the experts' order, and the names among them that are not used.

    Parameters
    ----------
    weights : mapping of str to float, or array_like, shape (N,)
        By name; names of experts who are not here are allowed. Or in the order of `experts`.
    experts : tuple of str

    Raises
    ------
    ExpertError
        If an expert has no weight, or a list is not as long as the experts are many.

    Examples
    --------
    >>> matched_weights({"ann": 0.5, "bob": 0.3, "cat": 0.2}, ("cat", "ann"))
    (array([0.2, 0.5]), ('bob',))
    """
    if isinstance(weights, Mapping):
        without = [name for name in experts if name not in weights]
        if without:
            others = unknown_names(map(str, weights), experts)
            other = f"; is it meant by {shown(others[0])}?" if others and meant(without[0], others) else ""
            raise ExpertError(
                f"weights by name need one for each expert, and {without[0]!r} has none; 0 leaves it out{other}"
            )
        unused = tuple(unknown_names(map(str, weights), experts))
        return as_numbers([weights[name] for name in experts], "weight", ArgumentError), unused
    array = as_numbers(weights, "weight", ArgumentError)
    if array.shape != (len(experts),):
        raise ExpertError(
            f"there are {len(experts)} experts ({', '.join(experts[:10])}), and {array.size} weights; "
            "give one for each, or weights by name"
        )
    return array, ()


def check_weights(weights: npt.ArrayLike) -> Array:
    """Weights as a finite vector."""
    w = as_numbers(weights, "weight", ArgumentError)
    if w.ndim != 1 or not np.isfinite(w).all():
        raise ArgumentError(f"weights must be finite numbers, one for each expert, not {w}")
    return w


def check_shares(weights: npt.ArrayLike) -> Array:
    """Weights as shares: at least 0, and 1 together."""
    w = check_weights(weights)
    if (w < 0).any() or not w.any():
        raise ArgumentError(f"weights of this pool must be at least 0, and one of them above it, not {w}")
    shares: Array = w / w.sum()
    return shares


_WEIGHTS = "weights by expert name, or in the experts' order"
LEARNED_WEIGHTS = Option(None, f"{_WEIGHTS}; learned from the resolved events if not given")
EQUAL_WEIGHTS = Option(None, f"{_WEIGHTS}; equal if not given")
SOME_WEIGHTS = Option(None, f"{_WEIGHTS}; if not given, learned where the events are many enough, else equal")


class Settings(TypedDict, total=False):
    """Keyword arguments of every pool."""

    # (...), or (K,), (..., K) when K > 2, default 0.5 (1/K); the reference that the experts share
    prior: npt.ArrayLike | None
    base_rate: npt.ArrayLike | None  # how frequent the event is where the answer is used
    classes: int  # K. More than 2 need a last axis of that length.
    # floor, pool_floor: floors (model.md, section 4)
    floor: float
    pool_floor: float


def apply_rule(
    q: npt.ArrayLike,
    rule: Callable[[Contrasts], Array],
    weights: npt.ArrayLike | None = None,
    *,
    prior: npt.ArrayLike | None = None,
    base_rate: npt.ArrayLike | None = None,
    classes: int = 2,
    floor: float = FLOOR,
    pool_floor: float = POOL_FLOOR,
) -> Array:
    """Pool by a rule that makes log-ratios (T, K - 1) of contrasts; `weights` are here to be counted only."""
    axes = 1 if classes == 2 else 2
    shape = np.shape(q)
    if len(shape) < axes or shape[-axes] == 0:
        raise ShapeError(f"forecasts need an axis of experts, at least one of them, and their shape is {shape}")
    experts = shape[-axes]
    if weights is not None and len(np.atleast_1d(weights)) != experts:
        raise ShapeError(f"{experts} experts need as many weights, and there are {len(np.atleast_1d(weights))}")
    if prior is None:
        prior = 0.5 if classes == 2 else np.full(classes, 1.0 / classes)
    batch = read_batch(q, prior, experts, classes, base_rate, floor, pool_floor)
    pooled = batch.reference.copy()
    for rows, contrast in contrasts_in(batch):
        pooled[rows] = rule(contrast)
    return batch.as_asked(batch.answers(pooled + batch.shift))


def intercept_ratios(intercept: npt.ArrayLike, classes: int) -> Array:
    """An intercept as log-ratios, (K - 1,)."""
    a = as_numbers(intercept, "intercept", ArgumentError)
    if a.shape not in {(), (classes,) if classes > 2 else ()} or not np.isfinite(a).all():
        raise ShapeError(f"the intercept of {classes} classes must be finite and of shape {(classes,)}, not {a}")
    return a.reshape(1) if classes == 2 else logodds.uncentred(np.broadcast_to(a, classes))


def weighted_sums(weights: Array, values: Array) -> Array:
    """Sums over the experts: (N,) or (T, N) weights, (T, N, D) values."""
    shares = np.broadcast_to(weights, values.shape[:2])
    return np.asarray(np.einsum("tn,tnd->td", shares, values))


def shared_parts(contrast: Contrasts, weights: Array | None) -> AnswerParts:
    """Parts of an answer that is a mean of the probabilities of those present."""
    shares = contrast.shares(weights)[0]
    p, none = contrast.probabilities[0], np.zeros_like(contrast.contrasts[0])
    zero = np.zeros(p.shape[1])
    return AnswerParts("probability", none, contrast.contrasts[0], shares, shares[:, None] * p, zero, zero)


def contrast_parts(contrast: Contrasts, weights: Array, intercept: npt.ArrayLike = 0.0) -> AnswerParts:
    """Parts of an answer that is the prior, an intercept and a weighted sum of contrasts; weights (N,)."""
    of_each = contrast.contrasts[0]
    a = np.broadcast_to(intercept_ratios(intercept, of_each.shape[1] + 1), of_each.shape[1])
    added = weights[:, None] * of_each
    return AnswerParts("log-odds", np.zeros_like(of_each), of_each, weights, added, contrast.reference[0], a)


@dataclass(frozen=True, eq=False)
class Sample:
    """The resolved events that somebody forecast, to learn from."""

    problem: Problem
    rows: Index  # (T,); their positions among all events
    floor: float
    notes: list[Note] = field(default_factory=list)

    @classmethod
    def of(cls, problem: Problem, floor: float) -> Sample:
        """The sample among the forecasts of a problem."""
        used = problem.forecasts.resolved & (problem.weight > 0) & (problem.forecasts.crowd > 0)
        return cls(problem, np.flatnonzero(used), floor)

    @property
    def forecasts(self) -> Forecasts:
        """All forecasts."""
        return self.problem.forecasts

    @cached_property
    def weight(self) -> Array:
        """Frequencies, all positive, (T,)."""
        return self.problem.weight[self.rows]

    @property
    def priors(self) -> Array:
        """The reference that all events share, (K,), or that of each event, (T, K)."""
        shared = self.problem.shared
        return self.problem.reference[self.rows] if shared is None else shared

    @property
    def classes(self) -> int:
        """K."""
        return len(self.forecasts.classes)

    @property
    def has_intercept(self) -> bool:
        """Whether an intercept makes sense: classes mean the same in all events."""
        return not self.problem.has_options

    @property
    def experts(self) -> tuple[str, ...]:
        """N names."""
        return self.forecasts.experts

    @property
    def outcomes(self) -> npt.NDArray[np.intp]:
        """What happened, (T,)."""
        return self.forecasts.outcomes[self.rows]

    def collect(self, part: Callable[[Contrasts, npt.NDArray[np.intp]], Array], *shape: int) -> Array:
        """What `part` makes of blocks of events and their outcomes, put together, (T, *shape)."""
        prior = logodds.public_probabilities(self.priors)
        batch = read_batch(self.forecasts.X[self.rows], prior, len(self.experts), self.classes, floor=self.floor)
        result = np.empty((len(self.rows), *shape))
        for rows, contrast in contrasts_in(batch):
            result[rows] = part(contrast, self.outcomes[rows])
        return result

    @property
    def present(self) -> Mask:
        """Who answered, (T, N)."""
        x = self.forecasts.X[self.rows]
        return np.asarray(~np.isnan(x if self.classes == 2 else x[..., 0]))

    @property
    def offset(self) -> Array:
        """L°, (T, K - 1)."""
        return np.broadcast_to(logodds.prior_log_ratios(self.priors), (len(self.rows), self.classes - 1))

    def nothing(self, assumed: str) -> bool:
        """Whether there is nothing to learn from, noting what is assumed; notes a single outcome too."""
        if len(self.rows) == 0:
            what = "resolved event has forecasts" if self.forecasts.resolved.any() else "event is resolved"
            self.notes.append(Note("nothing-learned", f"no {what}, so nothing was learned: {assumed}"))
            return True
        if self.has_intercept:
            self.notes.extend(one_outcome_notes(self.forecasts.classes, self.problem.events))
        return False

    @cached_property
    def constant(self) -> Mask:
        """Who always gave the same forecast, of whom nothing can be learned, (N,)."""
        return constant_experts(self.forecasts)

    @cached_property
    def answered(self) -> Mask:
        """Who has a forecast on one of these events, (N,)."""
        return np.asarray(self.present.any(axis=0))

    def note_constant(self, what: str) -> None:
        """Note who always gave the same forecast, and what follows."""
        self.notes.extend(constant_notes(self.experts, self.constant, what))

    def note_unused(self, what: str) -> None:
        """Note the experts about whom nothing can be learned."""
        self.notes.extend(no_forecast_notes(self.experts, ~self.answered, what))


def given_weights(sample: Sample, weights: Weights) -> Array:
    """Weights that a user gave, (N,); names that are not used are noted."""
    matched, unused = matched_weights(weights, sample.experts)
    if unused:
        text = f"weights for {', '.join(map(repr, unused[:3]))} are not used: no such expert is here"
        sample.notes.append(Note("unused-weights", text, len(unused)))
    return matched
