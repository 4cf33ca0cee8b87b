"""Forecasts as contrasts: log-ratios less those of the prior, checked, and moderated where they are extreme."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool import blocks as blockwise, logodds
from opinionpool.arrays import Array, Index, Mask, as_numbers
from opinionpool.blocks import Bounds, floored_log_odds, within
from opinionpool.errors import PanelError, ProbabilityError, ShapeError
from opinionpool.logodds import FLOOR, POOL_FLOOR, levelled
from opinionpool.priors import spread_prior

Rows: TypeAlias = slice | Index
# Rows of cells that are taken together, however wide.
FEWEST = 64


def contrasts(q: Array, prior: Array, floor: float, reference: Array | None = None) -> Array:
    """Log-ratios of floored forecasts `q` less log-ratios `reference`, the prior's if None; NaN where missing."""
    ratios = logodds.log_ratios(q, prior, floor)
    ratios -= logodds.prior_log_ratios(prior) if reference is None else reference
    return ratios


@dataclass(frozen=True, eq=False)
class Reference:
    """Priors of T events, one row for each event or one for all, and the limits of log-odds that follow from them."""

    prior: Array  # (T or 1, K); class probabilities
    floor: float  # least probability taken from an expert
    pool_floor: float  # least probability given as an answer

    @cached_property
    def ratios(self) -> Array:
        """Log-ratios L° of the prior, (T or 1, K - 1): log-odds of each class against the first one."""
        return logodds.prior_log_ratios(self.prior)

    @cached_property
    def absent(self) -> Mask | None:
        """True for classes after the first that are no options, (T or 1, 1, K - 1); None if all classes are options."""
        return None if self.prior.shape[1] == 2 else logodds.no_options(self.prior[:, None, :])

    @cached_property
    def bounds(self) -> Bounds:
        """Lower and upper bounds of the log-odds of forecasts if K = 2, (T or 1, 1) each."""
        ends = np.broadcast_to([0.0, 1.0], (len(self.prior), 2))
        ratios = logodds.log_ratios(ends, self.prior[:, None, :], self.floor)
        return Bounds(ratios[:, 0], ratios[:, 1])

    @cached_property
    def answer_bounds(self) -> Bounds:
        """Lower and upper bounds of pooled probabilities if K = 2, (T or 1,) each."""
        floors = logodds.class_floors(self.pool_floor, self.prior, 1.0)
        return Bounds(floors[:, 1], 1.0 - floors[:, 0])

    def some(self, rows: Rows) -> Reference:
        """Return the priors of the events `rows` only, as a `Reference`."""
        return self if len(self.prior) == 1 else replace(self, prior=self.prior[rows])


@lru_cache(maxsize=256)
def _shared_reference(prior: bytes, classes: int, what: str, floor: float, pool_floor: float) -> Reference:
    """Return the cached `Reference` of a prior that all events share, given as an array's bytes."""
    given = np.frombuffer(prior)
    return Reference(spread_prior(given[0] if classes == 2 else given, (1,), classes, what), floor, pool_floor)


def _reference(
    prior: npt.ArrayLike, lead: tuple[int, ...], classes: int, what: str, floor: float, pool_floor: float
) -> Reference:
    """Return the `Reference` of `prior`, one for all events or one for each; events form an array of shape `lead`."""
    given = as_numbers(prior, what)
    # Floors that are no numbers are refused where they are used.
    if given.ndim == (classes > 2) and isinstance(floor, float | int) and isinstance(pool_floor, float | int):  # type: ignore[redundant-expr]
        return _shared_reference(given.tobytes(), classes, what, floor, pool_floor)
    return Reference(spread_prior(given, lead, classes, what), floor, pool_floor)


@dataclass(frozen=True, eq=False)
class Batch:
    """Forecasts of N experts for T events, with the events' priors and base rates, ready for pooling."""

    q: Array  # (T, N), or (T, N, K) when K > 2; probabilities, NaN where missing
    base: Reference  # priors and floors
    start: Array  # (T or 1, K - 1); log-ratios of the base rate, or of the prior if there is none
    lead: tuple[int, ...]  # the shape of the events as they were given
    experts: Index | None = None  # (T, N); positions of the experts in the panel; None: column i is expert i

    @property
    def classes(self) -> int:
        """Number of classes, K."""
        return int(self.base.prior.shape[1])

    @property
    def prior(self) -> Array:
        """Prior probabilities of the classes, (T, K)."""
        return np.broadcast_to(self.base.prior, (len(self.q), self.classes))

    @property
    def reference(self) -> Array:
        """Log-ratios L° of the prior, (T, K - 1): log-odds of each class against the first one."""
        return np.broadcast_to(self.base.ratios, (len(self.q), self.classes - 1))

    @property
    def shift(self) -> Array:
        """Log-ratios of the base rate less the prior's, (T or 1, K - 1); 0 without a base rate (model.md, 2.8)."""
        return np.asarray(self.start - self.base.ratios)

    @property
    def at_prior(self) -> Batch:
        """Return a copy of this batch without base rates, whose answers start from the prior."""
        return replace(self, start=self.base.ratios)

    def blocks(self) -> Iterator[slice]:
        """Yield slices of events, in order, each so small that its forecasts fit into the processor's cache."""
        return blockwise.blocks(len(self.q), math.prod(self.q.shape[1:]))

    def some(self, rows: Rows) -> Batch:
        """Return the events `rows` of this batch, as a `Batch`."""
        return self.of_events(rows, self.q[rows], None if self.experts is None else self.experts[rows])

    def of_events(self, rows: Rows, q: Array, experts: Index | None) -> Batch:
        """Return a `Batch` of the events `rows` with the forecasts `q` by the experts at positions `experts`."""
        start = self.start if len(self.start) == 1 else self.start[rows]
        return Batch(q, self.base.some(rows), start, q.shape[:1], experts)

    def check(self) -> None:
        """Raise a `ProbabilityError` with the position of the first probability outside [0, 1], if there is one."""
        logodds.check_probabilities(self.q.reshape(self.lead + self.q.shape[1:]))

    def log_ratios(self) -> Array:
        """Log-odds of each class against the first, (T, N, K - 1), of floored forecasts; NaN where missing."""
        if self.classes > 2:
            return logodds.log_ratios(self.q, self.base.prior[:, None, :], self.base.floor)
        ratios = floored_log_odds(self.q, self.base.bounds, np.empty(self.q.shape))
        if np.isnan(ratios.min(initial=0.0)):
            self.check()
        return np.asarray(ratios[..., None])

    def contrasts(self) -> Array:
        """Return log-ratios of forecasts less those of the prior, L − L°, (T, N, K - 1), NaN where missing."""
        ratios = self.log_ratios()
        ratios -= self.base.ratios[:, None, :]
        return ratios

    def answered_by(self, experts: Mask) -> Mask:
        """Return for each event, (T,), whether an expert that the mask `experts` (N,) marks has a forecast for it."""
        some = self.q[:, experts]
        return np.asarray(~np.isnan(some).all(axis=tuple(range(1, some.ndim))))

    def answers(self, ratios: Array) -> Array:
        """Probabilities (T,), or (T, K) if K > 2, of pooled log-ratios `ratios` (T, K - 1), raised to the floor."""
        if self.classes > 2:
            return logodds.pooled_probabilities(ratios, self.base.prior, self.base.pool_floor)
        return within(logodds.expit(ratios[:, 0]), *self.base.answer_bounds)

    def as_asked(self, answers: Array) -> Array:
        """Return `answers` (T, ...) with the T events in the array shape in which the user gave them."""
        shaped: Array = answers.reshape(self.lead + answers.shape[1:])
        return shaped[()]


def read_batch(
    probabilities: npt.ArrayLike,
    prior: npt.ArrayLike,
    experts: int,
    classes: int,
    base_rate: npt.ArrayLike | None = None,
    floor: float = FLOOR,
    pool_floor: float = POOL_FLOOR,
) -> Batch:
    """Return the user's forecasts and priors as a `Batch`. Shapes are checked; if K = 2, values are checked later."""
    q = as_numbers(probabilities)
    tail = (experts,) if classes == 2 else (experts, classes)
    if q.shape[q.ndim - len(tail) :] != tail:
        wanted = "(..., " + ", ".join(map(str, tail)) + ")"
        raise ShapeError(f"{experts} experts and {classes} classes need forecasts of shape {wanted}, not {q.shape}")
    lead = q.shape[: q.ndim - len(tail)]
    q = q.reshape((math.prod(lead), *tail))
    if classes > 2:
        q, _ = logodds.normalised(logodds.check_probabilities(q))
    base = _reference(prior, lead, classes, "prior", floor, pool_floor)
    if base.absent is not None:
        _check_options(q, base.absent)
    start = base if base_rate is None else _reference(base_rate, lead, classes, "base rate", floor, pool_floor)
    return Batch(q, base, start.ratios, lead)


def _check_options(q: Array, absent: Mask) -> None:
    """Raise a `ProbabilityError` if a forecast in `q` is positive for a class that is `absent` (prior 0)."""
    strange = (q[..., 1:] > 0) & absent
    if strange.any():
        event, expert, label = (int(i) for i in np.argwhere(strange)[0])
        raise ProbabilityError(
            f"class {label + 1} has prior 0 in event {event}, so it is no option there, and forecast {expert} gives it "
            f"{q[event, expert, label + 1]:.15g}"
        )


def padded_cells(event: Index, events: int) -> Iterator[tuple[Index, Index, Mask]]:
    """Yield batches of t events with similar numbers of forecasts, so that each batch is one rectangular array.

    `event` (M,) has the event of each forecast. Each item has the events, (t,); the positions of their forecasts in
    `event`, (t, m), padded to the largest number of forecasts m; and a mask, (t, m), False at padding.
    """
    by_event, count = np.argsort(event, kind="stable"), np.bincount(event, minlength=events)
    start, width = np.cumsum(count) - count, np.ceil(np.log2(np.maximum(count, 1)))
    for size in np.unique(width):
        group = np.flatnonzero(width == size)
        most = int(count[group].max())
        place, step = np.arange(most), max(blockwise.BLOCK // max(most, 1), FEWEST)
        for rows in (group[first : first + step] for first in range(0, len(group), step)):
            present = place < count[rows, None]
            yield rows, by_event[np.where(present, start[rows, None] + place, 0)], present


@dataclass(frozen=True, eq=False)
class Contrasts:
    """What pools combine: log-ratios of forecasts by N experts, and of the prior, for T events with a forecast."""

    ratios: Array  # (T, N, K - 1); floored log-ratios, NaN where missing
    reference: Array  # (T, K - 1); log-ratios of the prior

    @cached_property
    def present(self) -> Mask:
        """True where an expert has a forecast for an event, (T, N)."""
        return np.asarray(~np.isnan(self.ratios[..., 0]))

    @cached_property
    def count(self) -> npt.NDArray[np.intp]:
        """Number of forecasts for each event, (T,)."""
        return np.asarray(self.present.sum(axis=1))

    @cached_property
    def contrasts(self) -> Array:
        """Contrasts: log-ratios of forecasts less those of the prior, L − L°, (T, N, K - 1), 0 where missing."""
        return np.where(self.present[..., None], self.ratios - self.reference[:, None, :], 0.0)

    @cached_property
    def probabilities(self) -> Array:
        """Floored probabilities of all classes, (T, N, K), 0 where a forecast is missing."""
        p = logodds.softmax(np.where(self.present[..., None], self.ratios, 0.0))
        p[~self.present] = 0.0
        return p

    @property
    def mean_contrast(self) -> Array:
        """Mean over the experts present of their log-ratios less the prior's, L − L°, (T, K - 1)."""
        return np.asarray(self.contrasts.sum(axis=1) / self.count[:, None])

    def shares(self, weights: Array | None) -> Array:
        """Each expert's share of the weight in each event, (T, N), from `weights` (N,); equal if None or all 0."""
        if weights is None:
            return self.present / self.count[:, None]
        shares = self.present * weights
        total = shares.sum(axis=1, keepdims=True)
        return np.where(total > 0, shares, self.present) / np.where(total > 0, total, self.count[:, None])


@dataclass(frozen=True, eq=False)
class AnswerParts:
    """Answer about one event, without base rate, as a sum: start (prior, or 0), intercept, N experts' contributions."""

    # Unit of contributions, start and intercept: "log-odds" (D = K - 1 log-ratios) or "probability" (D = K).
    scale: str
    # bias, contrast: (N, K - 1)
    bias: Array
    contrast: Array
    weights: Array | None  # (N,); None if an expert's weight is not a single number
    contributions: Array  # (N, D); 0 for experts without a forecast
    # start, intercept: (D,)
    start: Array
    intercept: Array


def contrasts_in(batch: Batch) -> Iterator[tuple[Rows, Contrasts]]:
    """Yield, for each block of events, the positions of events with at least one forecast, and their `Contrasts`."""
    for block in batch.blocks():
        missing = np.isnan(batch.q[block]).all(axis=tuple(range(1, batch.q.ndim)))
        rows: Rows = block.start + np.flatnonzero(~missing) if missing.any() else block
        if not missing.all():
            some = batch.some(rows)
            # However forecasts lie in memory, sums over experts are the same to the last bit.
            yield rows, Contrasts(np.ascontiguousarray(some.log_ratios()), some.reference)


@dataclass(frozen=True, eq=False)
class Extremes:
    """Moderation of extreme forecasts: with a small probability s, a forecast has nothing to do with its event.

    The contrast C of a forecast is its log-ratios less the prior's; the centre m is the contrast of the same expert's
    forecast for an event of which the expert knows nothing. C − m is read as probabilities of the classes, in
    proportion to exp(C − m), which are mixed with equal probabilities; these get the share s. Contrasts near m hardly
    change, and the log-odds of a class that is called certain against another class are at most c = log(1 + K (1 −
    s)/s) above the centre. As contrasts are changed, not forecasts, pools stay externally Bayesian; all classes are
    treated alike.
    """

    limit: float = np.inf  # c in log-odds, above 0; infinite to believe everything. s = K/(e^c − 1 + K).
    # (N, K - 1); m, contrast of each expert's forecast for an event of which it knows nothing; 0 if None
    centre: Array | None = None

    def __post_init__(self) -> None:
        if not self.limit > 0 or (self.centre is not None and not np.isfinite(self.centre).all()):
            raise PanelError(f"extremes need a limit above 0 and a finite centre, not {self.limit} and {self.centre}")

    def believed(self, contrasts: Array, absent: Mask | None = None) -> Array:
        """Return `contrasts` (log-ratios less the prior's), moderated; `absent` marks classes that are no options."""
        if np.isinf(self.limit):
            return contrasts
        robust = self.deviation(contrasts, absent)
        return robust if self.centre is None else np.asarray(robust + self.centre)

    def deviation(self, contrasts: Array, absent: Mask | None = None) -> Array:
        """Moderated `contrasts` less those without knowledge, `centre`; `absent` marks classes that are no options."""
        deviation = contrasts if self.centre is None else np.asarray(contrasts - self.centre)
        if np.isinf(self.limit):
            return deviation
        # A limit past 700 is past all log-odds that floats allow.
        odds = math.expm1(min(self.limit, 700.0))
        if absent is None:
            return (_softened if deviation.shape[-1] == 1 else _softened_classes)(deviation, odds)
        options = 1 + (~absent).sum(axis=-1)
        return levelled(_softened_classes(np.where(absent, -np.inf, deviation), odds, options), absent)

    def deviation_of(self, q: Array, bounds: Bounds, reference: Array | float) -> Array:
        """Return contrasts of forecasts `q` for two classes, moderated where extreme, less the centre, (T, N).

        Contrasts are log-odds, kept within `bounds`, less the prior's, `reference`. The one logarithm is taken last:
        odds are moderated, as exp(C − m) is proportional to q / (1 − q), where C is the contrast and m the centre.
        """
        origin = reference if self.centre is None else reference + self.centre[..., 0]
        if np.isinf(self.limit):
            return np.asarray(floored_log_odds(q, bounds, np.empty(q.shape)) - origin)
        # (r + e) / (1 + e r) of r = exp(−origin) q / (1 − q) and e = exp(−limit), times 1 − q.
        found, even = np.clip(q, *map(logodds.expit, bounds), out=np.empty(q.shape)), math.exp(-min(self.limit, 700.0))
        rest = 1.0 - found
        found *= np.exp(-origin)
        above = even * rest
        above += found
        found *= even
        found += rest
        above /= found
        return np.asarray(np.log(above, out=above))

    def subset(self, positions: Index) -> Extremes:
        """Return a copy for the experts at `positions` only."""
        return self if self.centre is None else replace(self, centre=self.centre[positions])


def _softened(deviation: Array, odds: float) -> Array:
    """Log-odds D = `deviation` moderated, log(e^D + e) − log(1 + e e^D), so that odds stay below 1/e = `odds` + 1."""
    even, small = 1.0 / (odds + 1.0), np.abs(deviation)
    np.exp(np.negative(small, out=small), out=small)
    found = even * small
    found += 1.0
    small += even
    found /= small
    return np.asarray(np.copysign(np.log(found, out=found), deviation, out=found))


def _softened_classes(deviation: Array, odds: float, options: int | npt.NDArray[np.intp] | None = None) -> Array:
    """Log-ratios `deviation`, −∞ for no option, with probabilities mixed with 1/k each, at the share k/(`odds` + k)."""
    k = np.asarray(deviation.shape[-1] + 1 if options is None else options)
    share = k / (odds + k)
    # Classes first: sums over a short last axis are slow.
    ratios = np.ascontiguousarray(np.moveaxis(deviation, -1, 0))
    top = np.maximum(ratios.max(axis=0), 0.0)
    contrast, base = np.exp(ratios - top), np.exp(-top)
    nothing = (share / k) * (contrast.sum(axis=0) + base)
    softened = np.log(((1.0 - share) * contrast + nothing) / ((1.0 - share) * base + nothing))
    return np.ascontiguousarray(np.moveaxis(softened, 0, -1))
