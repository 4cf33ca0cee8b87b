"""The likelihood of outcomes given contrasts, a block of events at a time.

Coefficients are the weights of N experts and, if there is an intercept, K − 1 of it. The contrasts are shifted
by about their mean, so that weights and intercept hardly interact; `Likelihood.to_raw` undoes that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index

# A block of the design should stay in the cache.
_BLOCK_BYTES = 1 << 19
# Products of more terms wake BLAS's threads, which on a busy machine costs far more than they bring, unless the
# product is that of few rows.
TERMS = 380_000
_FEW_ROWS = 32
# Events whose mean is near enough to that of all.
_SHIFT_EVENTS = 1 << 12
_TINY = np.finfo(np.float64).tiny


class Value(NamedTuple):
    """Mean loss per event, with its derivatives by the coefficients."""

    loss: float
    gradient: Array
    hessian: Array


# From so many classes on, the intercept is kept out of the design.
MANY_CLASSES = 16


@dataclass(frozen=True, eq=False)
class ManyClasses:
    """The likelihood of outcomes among many classes, with an intercept behind the other coefficients.

    Per step it takes T K² operations for the intercept, where a design for each event takes T K³.
    """

    own: Array  # (T, N, K - 1); the design of all coefficients but the intercept
    outcomes: Index
    offset: Array  # (T, K - 1)
    weight: Array  # (T,)

    @property
    def size(self) -> int:
        """How many coefficients there are."""
        return int(self.own.shape[1] + self.own.shape[2])

    @property
    def events(self) -> float:
        """The sum of the frequencies."""
        return float(self.weight.sum())

    def value(self, coefficients: Array) -> Value:
        """Loss, gradient and Hessian per event."""
        (t, d), n = self.offset.shape, self.own.shape[1]
        ratios = self.ratios(coefficients)
        ratios[:, 1:] += self.offset
        ratios -= ratios.max(axis=1, keepdims=True)
        total = np.exp(ratios).sum(axis=1)
        loss = self.weight @ (np.log(total) - ratios[np.arange(t), self.outcomes])
        p = np.exp(ratios[:, 1:]) / total[:, None]
        surprise = self.weight[:, None] * (p - (self.outcomes[:, None] == np.arange(1, d + 1)))
        gradient = np.empty(self.size)
        gradient[:n] = np.einsum("tqd,td->q", self.own, surprise)
        gradient[n:] = surprise.sum(axis=0)
        events = self.events or 1.0
        return Value(float(loss) / events, gradient / events, self.curvature(p) / events)

    def ratios(self, coefficients: Array) -> Array:
        """Log-ratios without the offset, (T, K), 0 for the first class."""
        n, ratios = self.own.shape[1], np.zeros((len(self.own), self.own.shape[2] + 1))
        ratios[:, 1:] = np.einsum("tqd,q->td", self.own, coefficients[:n]) + coefficients[n:]
        return ratios

    def curvature(self, p: Array) -> Array:
        """The Hessian where the classes but the first have some probabilities, (T, K - 1)."""
        n = self.own.shape[1]
        # Each class less the mean of its event, by the probability of the class.
        turned = self.own * p[:, None] - (self.own @ p[:, :, None]) * p[:, None]
        likely = self.weight[:, None] * p
        spread = -(likely.T @ p)
        spread[np.diag_indices(len(spread))] = (likely * (1.0 - p)).sum(axis=0)
        across = np.einsum("t,tqd->qd", self.weight, turned)
        hessian = np.empty((self.size, self.size))
        hessian[:n, :n] = np.einsum("t,tqd,trd->qr", self.weight, turned, self.own, optimize=True)
        hessian[:n, n:], hessian[n:, :n] = across, across.T
        hessian[n:, n:] = spread
        return hessian


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Outcomes of T events, given the contrasts of N experts."""

    x: Array  # (T, N, K - 1); contrasts
    s: Index  # (T,); outcomes
    offset: Array  # (T, K - 1); log-ratios of the prior
    frequency: Array | None  # (T,); all positive; None where all are 1
    intercept: bool  # whether the coefficients end with an intercept
    shift: Array  # (N, K - 1); what is subtracted from the contrasts

    @classmethod
    def of(
        cls, x: Array, s: npt.ArrayLike, offset: Array, sample_weight: npt.ArrayLike | None, intercept: bool
    ) -> Likelihood:
        """The likelihood without events of frequency 0."""
        outcomes, offset = np.asarray(s, dtype=np.intp), np.broadcast_to(offset, (len(x), x.shape[2]))
        frequency = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if frequency is not None and (frequency == 0).any():
            kept = frequency > 0
            x, outcomes, offset, frequency = x[kept], outcomes[kept], offset[kept], frequency[kept]
        shift = np.zeros(x.shape[1:])
        if intercept and len(x):
            shift = x[:: -(-len(x) // _SHIFT_EVENTS)].mean(axis=0)
        return cls(x, outcomes, offset, frequency, intercept, shift)

    @property
    def classes(self) -> int:
        """K."""
        return int(self.x.shape[2]) + 1

    @property
    def size(self) -> int:
        """How many coefficients there are."""
        return int(self.x.shape[1] + self.intercept * self.x.shape[2])

    @property
    def gains_count(self) -> int:
        """How many gains there are of what happened on what did not."""
        return len(self.s) * (self.classes - 1)

    @cached_property
    def events(self) -> float:
        """The sum of the frequencies, T where all are 1."""
        return float(len(self.s) if self.frequency is None else self.frequency.sum())

    @cached_property
    def extents(self) -> Array:
        """Bounds on the absolute values in each column of the design, (P,)."""
        largest = np.zeros(self.shift.size)
        for rows in self._blocks():
            flat = self.x[rows].reshape(len(self.x[rows]), -1)
            largest = np.maximum(largest, np.maximum(_column_maxima(flat), _column_maxima(-flat)))
        largest = largest.reshape(self.x.shape[1:]) + np.abs(self.shift)
        return np.append(largest.max(axis=1, initial=0.0), np.ones(self.size - len(largest)))

    @cached_property
    def to_raw(self) -> Array:
        """The matrix that turns coefficients here into those of unshifted contrasts, (P, P)."""
        matrix = np.eye(self.size)
        if self.intercept:
            matrix[len(self.shift) :, : len(self.shift)] = -self.shift.T
        return matrix

    @cached_property
    def _many(self) -> ManyClasses | None:
        """The same where there is an intercept for many classes."""
        if not self.intercept or self.classes < MANY_CLASSES:
            return None
        weight = np.ones(len(self.s)) if self.frequency is None else self.frequency
        return ManyClasses(self.x - self.shift, self.s, self.offset, weight)

    def thinned(self, stride: int) -> Likelihood:
        """Each `stride`-th event."""
        frequency = None if self.frequency is None else self.frequency[::stride]
        x, s = np.ascontiguousarray(self.x[::stride]), self.s[::stride]
        return replace(self, x=x, s=s, offset=self.offset[::stride], frequency=frequency)

    def value(self, coefficients: Array) -> Value:
        """Loss, gradient and Hessian in one pass."""
        if self._many is not None:
            return self._many.value(coefficients)
        loss, gradient, hessian = 0.0, np.zeros(self.size), np.zeros((self.size, self.size))
        for rows in self._blocks():
            designs = self._designs(rows)
            if len(designs) == 1:
                loss += self._add_binary(rows, designs[0], coefficients, gradient, hessian)
                continue
            ratios = self._ratios(designs, coefficients)
            ratios[1:] += self.offset[rows].T
            lost, p, residuals = _softmax(ratios, self.s[rows])
            frequency = None if self.frequency is None else self.frequency[rows]
            loss += float(lost.sum() if frequency is None else lost @ frequency)
            for residual, design in zip(residuals, designs, strict=True):
                gradient += (residual if frequency is None else residual * frequency) @ design
            _add_curvature(hessian, designs, p, frequency)
        events = self.events or 1.0
        return Value(loss / events, gradient / events, hessian / events)

    def _add_binary(self, rows: slice, design: Array, coefficients: Array, gradient: Array, hessian: Array) -> float:
        """Add the sums over a block of binary events, by one exponential each; their loss."""
        sign = self._signs[rows]
        margin = sign * (design @ coefficients + self.offset[rows, 0])
        small = np.exp(-np.abs(margin))
        # The probability of what did not happen, precise where it is small.
        other = np.where(margin >= 0, small, 1.0) / (1.0 + small)
        lost = np.log1p(small) - np.minimum(margin, 0.0)
        slope, curvature = sign * other, small / (1.0 + small) ** 2
        if self.frequency is not None:
            frequency = self.frequency[rows]
            lost, slope, curvature = lost * frequency, slope * frequency, curvature * frequency
        gradient -= slope @ design
        design *= np.sqrt(curvature)[:, None]
        add_product(hessian, design)
        return float(lost.sum())

    @cached_property
    def _signs(self) -> Array:
        """1 where the second of two classes happened, else -1, (T,)."""
        return np.where(self.s == 1, 1.0, -1.0)

    def mean_gain(self) -> Array:
        """The mean of all gains, (P,)."""
        total = np.zeros(self.size)
        for rows in self._blocks():
            for k, design in enumerate(self._designs(rows), start=1):
                total += ((self.s[rows] == k) - 1.0 / self.classes) @ design
        return total / max(len(self.s), 1)

    def gram(self) -> Array:
        """The Hessian if all classes were equally probable in all events: what the data can identify."""
        if self._many is not None:
            many = replace(self._many, weight=np.ones(len(self.s)))
            return many.curvature(np.full(many.offset.shape, 1.0 / self.classes)) / max(len(self.s), 1)
        gram = np.zeros((self.size, self.size))
        for rows in self._blocks():
            even = np.full((self.classes, len(self.s[rows])), 1.0 / self.classes)
            _add_curvature(gram, self._designs(rows), even, None)
        return gram / max(len(self.s), 1)

    def gains(self, direction: Array) -> Array:
        """By how much each outcome gains on each of the K classes along a direction, (T K,)."""
        if self._many is not None:
            ratios = self._many.ratios(direction)
            return np.asarray(np.take_along_axis(ratios, self.s[:, None], axis=1) - ratios).ravel()
        gains = np.empty((len(self.s), self.classes))
        for rows in self._blocks():
            ratios = self._ratios(self._designs(rows), direction)
            gains[rows] = (np.take_along_axis(ratios, self.s[rows][None], axis=0) - ratios).T
        return gains.ravel()

    def gain_row(self, position: int) -> Array:
        """One gain as a linear function of the direction, (P,)."""
        event, other = divmod(position, self.classes)
        designs = [np.zeros((1, self.size)), *self._designs(slice(event, event + 1))]
        return np.asarray((designs[self.s[event]] - designs[other])[0])

    def _blocks(self) -> Iterator[slice]:
        step = max(1, _BLOCK_BYTES // (8 * max(1, self.size * self.x.shape[2])))
        for start in range(0, len(self.s), step):
            yield slice(start, start + step)

    def _designs(self, rows: slice) -> list[Array]:
        """What multiplies the coefficients in the log-ratio of each class but the first, (rows, P) each."""
        x, designs = self.x[rows], []
        for k in range(x.shape[2]):
            design = np.empty((len(x), self.size))
            np.subtract(x[:, :, k], self.shift[:, k], out=design[:, : x.shape[1]])
            if self.intercept:
                design[:, x.shape[1] :] = np.arange(x.shape[2]) == k
            designs.append(design)
        return designs

    @staticmethod
    def _ratios(designs: list[Array], coefficients: Array) -> Array:
        """Log-ratios without the offset, (K, rows), 0 for the first class."""
        return np.stack([np.zeros(len(designs[0])), *(design @ coefficients for design in designs)])


def _column_maxima(flat: Array) -> Array:
    """The maximum of each column, several rows side by side because NumPy is slow on short ones."""
    beside = 32
    whole = len(flat) // beside * beside
    maxima = flat[whole:].max(axis=0, initial=0.0)
    if whole:
        wide = flat[:whole].reshape(-1, beside * flat.shape[1]).max(axis=0)
        maxima = np.maximum(maxima, wide.reshape(beside, -1).max(axis=0))
    return np.asarray(maxima)


def _softmax(ratios: Array, outcomes: Index) -> tuple[Array, Array, Array]:
    """Loss of each event, probabilities (K, rows), and those of K - 1 classes less the outcome, (K - 1, rows).

    The last is precise even where the outcome was all but certain.
    """
    ratios -= ratios.max(axis=0)
    happened = [outcomes == k for k in range(len(ratios))]
    lost, other = np.zeros(len(outcomes)), np.zeros(len(outcomes))
    for ratio, hit in zip(ratios, happened, strict=True):
        lost -= np.where(hit, ratio, 0.0)
    p = np.exp(ratios, out=ratios)
    total = p.sum(axis=0)
    lost += np.log(total)
    p /= total
    for share, hit in zip(p, happened, strict=True):
        other += np.where(hit, 0.0, share)
    residuals = np.stack([np.where(hit, -other, share) for share, hit in zip(p[1:], happened[1:], strict=True)])
    return lost, p, residuals


def _add_curvature(hessian: Array, designs: list[Array], p: Array, frequency: Array | None) -> None:
    """Add the covariance over classes of the design, summed over events; `designs` are overwritten.

    Classes are merged one at a time, and each adds what separates it from the earlier ones:
    p_j q/(p_j + q) (z_j − z̄)(z_j − z̄)ᵀ with q the earlier classes' probability and z̄ their mean design. No
    difference of large numbers appears.
    """
    earlier, mean = p[0], None
    for later, design in zip(p[1:], designs, strict=True):
        if mean is not None:
            np.subtract(design, mean, out=design)
        both = np.maximum(earlier + later, _TINY)
        share = later / both
        factor = earlier * share
        if frequency is not None:
            factor *= frequency
        if design is not designs[-1]:
            step = design * share[:, None]
            mean = step if mean is None else mean + step
            earlier = both
        np.multiply(design, np.sqrt(factor)[:, None], out=design)
        add_product(hessian, design)


def add_product(gram: Array, design: Array) -> None:
    """Add a design's inner products, (P, P)."""
    rows, size = design.shape
    step = TERMS // max(1, size * (size + 1))
    if step < _FEW_ROWS:
        step = max(1, rows)
    for start in range(0, rows, step):
        piece = design[start : start + step]
        gram += piece.T @ piece
