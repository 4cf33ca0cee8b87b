"""What experts state about a batch of events, read and checked once, whatever the shape it came in."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from opinionpool import blocks as blockwise, logodds
from opinionpool.arrays import Array, Index, Mask
from opinionpool.errors import PanelError, ProbabilityError, ShapeError
from opinionpool.logodds import levelled
from opinionpool.priors import spread_prior

Rows: TypeAlias = slice | Index


def contrasts(q: Array, prior: Array, floor: float, reference: Array | None = None) -> Array:
    """What is forecast beyond the prior: floored log-ratios L less those of the prior, L°; bias is still in them.

    Parameters
    ----------
    q : ndarray
        K = 2: probabilities of the second class, shape (...). K > 2: shape (..., K). NaN where missing.
    prior : ndarray, shape (..., K)
        Class probabilities that broadcast against the forecasts.
    floor : float
        As for `opinionpool.logodds.log_ratios`.
    reference : ndarray, shape (..., K - 1), optional
        Log-ratios of the prior, where they are known.

    Returns
    -------
    ndarray, shape (..., K - 1)
        NaN where the forecast is missing.
    """
    ratios = logodds.log_ratios(q, prior, floor)
    ratios -= logodds.prior_log_ratios(prior) if reference is None else reference
    return ratios


@dataclass(frozen=True, eq=False)
class Batch:
    """Forecasts on T events."""

    q: Array  # (T, N), or (T, N, K) when K > 2; probabilities, NaN where missing
    prior: Array  # (T, K); class probabilities of the reference
    reference: Array  # (T, K - 1); its log-ratios
    lead: tuple[int, ...]  # the shape of the events as they were given

    @property
    def classes(self) -> int:
        """K."""
        return int(self.prior.shape[-1])

    def contrasts(self, rows: Rows, floor: float) -> Array:
        """L − L° of some events, NaN where missing, (T, N, K - 1); see `contrasts`."""
        return contrasts(self.q[rows], self.prior[rows][:, None, :], floor, self.reference[rows][:, None, :])

    def answered_by(self, experts: Mask, rows: Rows = slice(None)) -> Mask:
        """Whether any of some experts, (N,), answered, of some events, (T,)."""
        some = self.q[rows][:, experts]
        return np.asarray(~np.isnan(some).all(axis=tuple(range(1, some.ndim))))

    def shape_answers(self, p: Array) -> Array:
        """(T, K) answers in the shape of the question: (...) when K = 2, else (..., K)."""
        if self.classes == 2:
            return np.asarray(p[:, 1].reshape(self.lead)[()])
        return p.reshape((*self.lead, self.classes))


def read_batch(probabilities: npt.ArrayLike, prior: npt.ArrayLike, experts: int, classes: int) -> Batch:
    """Check shapes and ranges, and spread the prior over the events.

    Raises
    ------
    ProbabilityError, ShapeError
        If they are not forecasts by that many experts on events of that many classes.
    """
    q = logodds.check_probabilities(probabilities)
    tail = (experts,) if classes == 2 else (experts, classes)
    if q.shape[q.ndim - len(tail) :] != tail:
        wanted = "(..., " + ", ".join(map(str, tail)) + ")"
        raise ShapeError(f"{experts} experts and {classes} classes need forecasts of shape {wanted}, not {q.shape}")
    lead = q.shape[: q.ndim - len(tail)]
    q = q.reshape((-1, *tail))
    if classes > 2:
        q, _ = logodds.normalised(q)
    p = spread_prior(prior, lead, classes)
    if classes > 2 and logodds.no_options(p) is not None:
        _check_options(q, p)
    return Batch(q, p, logodds.prior_log_ratios(p), lead)


def _check_options(q: Array, p: Array) -> None:
    """Raise where a class with prior 0, which is no option of the event, is given something."""
    strange = (q > 0) & (p == 0)[:, None, :]
    if strange.any():
        event, expert, label = (int(i) for i in np.argwhere(strange)[0])
        raise ProbabilityError(
            f"class {label} has prior 0 in event {event}, so it is no option there, and forecast {expert} gives it "
            f"{q[event, expert, label]:.15g}"
        )


def base_rate_shift(base_rate: npt.ArrayLike | None, batch: Batch) -> Array:
    """logit(base_rate) - L° for every event, (T, K - 1); 0 without a base rate (model.md, section 2.8)."""
    if base_rate is None:
        return np.broadcast_to(0.0, batch.reference.shape)
    wanted = logodds.prior_log_ratios(spread_prior(base_rate, batch.lead, batch.classes, "base rate"))
    return np.asarray(wanted - batch.reference)


def blocks(batch: Batch) -> Iterator[slice]:
    """Slices of events."""
    return blockwise.blocks(len(batch.q), int(np.prod(batch.q.shape[1:])))


@dataclass(frozen=True, eq=False)
class Contrasts:
    """What experts say about T events, on each of which one of them says something."""

    ratios: Array  # (T, N, K - 1); floored log-ratios, NaN where missing
    reference: Array  # (T, K - 1); log-ratios of the prior

    @cached_property
    def present(self) -> Mask:
        """Who answered, (T, N)."""
        return np.asarray(~np.isnan(self.ratios[..., 0]))

    @cached_property
    def count(self) -> npt.NDArray[np.intp]:
        """How many answered, (T,)."""
        return np.asarray(self.present.sum(axis=1))

    @cached_property
    def contrasts(self) -> Array:
        """L − L°, (T, N, K - 1), 0 where missing."""
        contrasts = self.ratios - self.reference[:, None, :]
        return contrasts if self.present.all() else np.where(self.present[..., None], contrasts, 0.0)

    @cached_property
    def probabilities(self) -> Array:
        """Floored probabilities of all classes, (T, N, K), 0 where missing."""
        known = self.ratios if self.present.all() else np.where(self.present[..., None], self.ratios, 0.0)
        if known.shape[2] == 1:
            p = np.concatenate([logodds.expit(-known), logodds.expit(known)], axis=-1)
        else:
            p = logodds.softmax(known)
        p[~self.present] = 0.0
        return p

    @property
    def mean_contrast(self) -> Array:
        """Mean of the contrasts of those present, (T, K - 1)."""
        return np.asarray(self.contrasts.sum(axis=1) / self.count[:, None])

    def shares(self, weights: Array | None) -> Array:
        """Weights of those present that add up to 1, (T, N); equal if none of them has any."""
        if weights is None:
            return self.present / self.count[:, None]
        shares = self.present * weights
        total = shares.sum(axis=1, keepdims=True)
        return np.where(total > 0, shares, self.present) / np.where(total > 0, total, self.count[:, None])


@dataclass(frozen=True, eq=False)
class AnswerParts:
    """An answer as start + intercept + the sum of contributions, before any base rate; N experts, 0 for absent ones."""

    # {"log-odds", "probability"}; of contributions, start and intercept: D = K - 1 log-ratios, or D = K probabilities
    scale: str
    # bias, contrast: (N, K - 1)
    bias: Array
    contrast: Array
    weights: Array | None  # (N,), or None; None where the weight of a contrast is not one number
    contributions: Array  # (N, D)
    # start, intercept: (D,)
    start: Array
    intercept: Array


def contrasts_in(batch: Batch, floor: float) -> Iterator[tuple[Rows, Contrasts]]:
    """Events on which somebody answered, in blocks: which they are, and their contrasts."""
    for block in blocks(batch):
        missing = np.isnan(batch.q[block]).all(axis=tuple(range(1, batch.q.ndim)))
        rows: Rows = block.start + np.flatnonzero(~missing) if missing.any() else block
        if not missing.all():
            ratios = logodds.log_ratios(batch.q[rows], batch.prior[rows][:, None, :], floor)
            # However forecasts lie in memory, sums over experts are the same to the last bit.
            yield rows, Contrasts(np.ascontiguousarray(ratios), batch.reference[rows])


@dataclass(frozen=True, eq=False)
class Extremes:
    """A statement counts as if, with a small probability s, the expert knew nothing of the event.

    The contrast, as class probabilities in the ratio exp(D − m), is mixed with an even share s of a
    statement that says nothing, m. Statements near the centre m hardly change, and the log-odds between a class that
    is called certain and any other class end at c = log(1 + K (1 − s)/s). This acts on the contrast, so that pools stay
    externally Bayesian, and treats all classes alike.

    Examples
    --------
    >>> import numpy as np
    >>> Extremes(5.0).believed(np.array([[0.1], [9.2]])).ravel().round(3)
    array([0.099, 4.985])
    """

    limit: float = np.inf  # c in log-odds, above 0; infinite to believe everything. s = K/(e^c − 1 + K).
    # (N, K - 1); m, what each expert says of an event that it knows nothing about; 0 if None
    centre: Array | None = None

    def __post_init__(self) -> None:
        if not self.limit > 0 or (self.centre is not None and not np.isfinite(self.centre).all()):
            raise PanelError(f"extremes need a limit above 0 and a finite centre, not {self.limit} and {self.centre}")

    def believed(self, contrasts: Array, absent: npt.NDArray[np.bool_] | None = None) -> Array:
        """Contrasts (..., N, K - 1) as far as they are believed; NaN stays.

        Parameters
        ----------
        contrasts : ndarray, shape (..., N, K - 1)
        absent : ndarray of bool, optional
            Classes that are no options of the event, see `opinionpool.logodds.no_options`; broadcast to `contrasts`.
        """
        if np.isinf(self.limit):
            return contrasts
        robust = self.deviation(contrasts, absent)
        return robust if self.centre is None else np.asarray(robust + self.centre)

    def deviation(self, contrasts: Array, absent: npt.NDArray[np.bool_] | None = None) -> Array:
        """The same, measured from the centre."""
        deviation = contrasts if self.centre is None else np.asarray(contrasts - self.centre)
        if np.isinf(self.limit):
            return deviation
        if absent is None:
            return (_limited if contrasts.shape[-1] == 1 else _limited_classes)(deviation, self.limit)
        options = np.broadcast_to(1 + (~absent).sum(axis=-1), deviation.shape[:-1])
        among = np.where(absent, -np.inf, deviation)
        return levelled(_limited_classes(among, self.limit, options.reshape(-1)), absent)

    def subset(self, positions: Index) -> Extremes:
        """The same for some of the experts."""
        return self if self.centre is None else replace(self, centre=self.centre[positions])


def even_share(limit: float) -> float:
    """s/2 of two classes: how much of either class is mixed in; 0 where everything is believed."""
    return 0.0 if math.isinf(limit) else 1.0 / (math.expm1(min(limit, 700.0)) + 2.0)


def _limited(deviation: Array, limit: float) -> Array:
    """The same for one log-odds, by one exponential and one logarithm of each size."""
    even = 1.0 / (math.expm1(min(limit, 700.0)) + 2.0)
    found = np.empty(deviation.shape)
    flat, limited = deviation.reshape(-1), found.reshape(-1)
    for rows in blockwise.blocks(len(flat), 1):
        size = np.abs(flat[rows])
        small = np.exp(np.negative(size, out=size), out=size)
        above = even * small
        above += 1.0 - even
        small *= 1.0 - even
        small += even
        np.divide(above, small, out=above)
        np.copysign(np.log(above, out=above), flat[rows], out=limited[rows])
    return found


def _limited_classes(deviation: Array, limit: float, options: npt.NDArray[np.intp] | None = None) -> Array:
    """The same for several log-ratios of each expert, -inf for classes that are none of its `options`, all flat."""
    d, found = deviation.shape[-1], np.empty(deviation.shape)
    flat, limited = deviation.reshape(-1, d), found.reshape(-1, d)
    # A limit past 700 is past all log-odds that floats allow.
    odds = math.expm1(min(limit, 700.0))
    # Four arrays of a block's size share the cache.
    for rows in blockwise.blocks(len(flat), 4 * d):
        k = d + 1 if options is None else options[rows]
        share = k / (odds + k)
        # Classes first: sums over a short last axis are slow.
        ratios = np.ascontiguousarray(flat[rows].T)
        top = np.maximum(ratios.max(axis=0), 0.0)
        ratios -= top
        contrast, base = np.exp(ratios, out=ratios), np.exp(-top)
        nothing = (share / k) * (contrast.sum(axis=0) + base)
        contrast *= 1.0 - share
        contrast += nothing
        contrast /= (1.0 - share) * base + nothing
        limited[rows] = np.log(contrast, out=contrast).T
    return found
