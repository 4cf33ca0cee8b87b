"""Likelihoods of binary outcomes, many at once: several candidates for each of several sets of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, reduce

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.estimation.blockwise import TERMS, add_product
from opinionpool.estimation.event_likelihoods import EventLikelihoods
from opinionpool.estimation.posterior import Values

# Up to so many coefficients, the products of every two rows of a design are made once, if they are no more numbers than
# these: more take longer to read for each candidate than the design itself.
_NARROW, _KEPT = 32, 1 << 18


@dataclass(eq=False)
class BinaryEvents:
    """T events of two classes, whose log-odds are offset + design'coefficients.

    Attributes
    ----------
    design : ndarray, shape (Q, T)
    offset : ndarray, shape (T,)
    sign : ndarray, shape (T,)
        1 where the second class happened, else -1.
    weight : ndarray, shape (T,)
        Frequencies.
    pairs : ndarray or None, shape (Q (Q + 1) / 2, T)
        Products of every two rows of the design, where `keep_pairs` has made them.
    """

    design: Array
    offset: Array
    sign: Array
    weight: Array
    pairs: Array | None = None

    @cached_property
    def _signed(self) -> tuple[Array, Array]:
        """Design and offset of the log-odds of what happened."""
        return self.sign * self.design, self.sign * self.offset

    def along(self, centre: Array, root: Array) -> BinaryEvents:
        """The same by other coefficients, which make these as centre (Q,) + root (Q, P)'coefficients."""
        return BinaryEvents(root.T @ self.design, self.offset + centre @ self.design, self.sign, self.weight)

    def margins(self, along: Array) -> Array:
        """Log-odds of what happened, (F, T), by coefficients (F, Q)."""
        design, offset = self._signed
        found = np.empty((len(along), len(offset)))
        for some in self._blocks(along.size):
            np.matmul(along, design[:, some], out=found[:, some])
        found += offset
        return found

    def slopes(self, slope: Array) -> Array:
        """Derivatives by coefficients, (F, Q), from those by log-odds of what happened, (F, T)."""
        design = self._signed[0]
        return _sum(slope[:, some] @ design[:, some].T for some in self._blocks(len(slope) * len(design)))

    @property
    def narrow(self) -> bool:
        """Whether all sums that Newton's method needs are one product, that with every two rows of the design."""
        q, t = self.design.shape
        return bool(q <= _NARROW and _number(q) * t <= _KEPT)

    def products(self, size: Array) -> Array:
        """Inner products of the rows of the design, (F, Q, Q), in which events count by several sizes, (F, T)."""
        q = len(self.design)
        if not self.narrow:
            found = np.zeros((len(size), q, q))
            for i, (each, root) in enumerate(zip(found, np.sqrt(size), strict=True)):
                # Those that begin at the same log-odds have the same products.
                if i and (size[i] == size[i - 1]).all():
                    each[:] = found[i - 1]
                else:
                    add_product(each, (self.design * root).T)
            return found
        sums = _sum(
            size[:, some] @ (_pairs(self.design[:, some]) if self.pairs is None else self.pairs[:, some]).T
            for some in self._blocks(len(size) * _number(q))
        )
        return np.take(sums, _places(q), axis=1)

    def _blocks(self, terms: int) -> Iterator[slice]:
        """Events in blocks, whose products have `terms` terms an event."""
        t, step = len(self.weight), max(1, TERMS // terms)
        return (slice(first, first + step) for first in range(0, t, step))


def _sum(parts: Iterator[Array]) -> Array:
    """The sum of arrays, of which there is one at least."""
    return reduce(np.add, parts)


def keep_pairs(sets: Iterable[BinaryEvents]) -> None:
    """Make the products of every two rows of some designs, where they serve.

    They are parts of one array: memory that is given back piece by piece goes back to the system, and costs more when
    it is taken again than the products do.
    """
    wanted = {id(each): each for each in sets if each.narrow and each.pairs is None}
    sizes = {i: _number(len(each.design)) * len(each.weight) for i, each in wanted.items()}
    memory, first = np.empty(sum(sizes.values())), 0
    for i, size in sizes.items():
        design = wanted[i].design
        out = memory[first : first + size].reshape(_number(len(design)), design.shape[1])
        wanted[i].pairs, first = _pairs(design, out), first + size


def _number(q: int) -> int:
    """Of pairs of q rows, those of a row with itself among them."""
    return q * (q + 1) // 2


def _pairs(rows: Array, out: Array | None = None) -> Array:
    """Products of every two of Q rows, (Q (Q + 1) / 2, T)."""
    q, t = rows.shape
    found, first = np.empty((_number(q), t)) if out is None else out, 0
    for i, row in enumerate(rows):
        np.multiply(row, rows[i:], out=found[first : first + q - i])
        first += q - i
    return found


@cache
def _places(q: int) -> Index:
    """Where the product of two rows of q is among those of all pairs, (q, q)."""
    found = np.zeros((q, q), dtype=np.intp)
    row, column = np.triu_indices(q)
    found[row, column] = found[column, row] = np.arange(len(row))
    return found


class BinaryLikelihoods(EventLikelihoods[BinaryEvents]):
    """Likelihoods of binary outcomes, by one exponential and one logarithm of an event each."""

    def _plain(self, parts: Sequence[tuple[BinaryEvents, slice]], along: Array) -> Values:
        margin = _together([events.margins(along[rows, : len(events.design)]) for events, rows in parts])
        small = np.abs(margin)
        np.exp(np.negative(small, out=small), out=small)
        likelier = np.reciprocal(small + 1.0)
        # The probability of what did not happen, precise where it is small.
        other = np.where(margin >= 0, small, 1.0)
        other *= likelier
        gained = np.log(likelier)
        gained += np.minimum(margin, 0.0, out=margin)
        curvature = np.multiply(small, likelier, out=small)
        curvature *= likelier
        loss = np.empty(len(along))
        slope, product = np.zeros(along.shape), np.zeros((len(along), *(2 * along.shape[1:])))
        for events, rows in parts:
            q, t = events.design.shape
            loss[rows] = gained[rows, :t] @ -events.weight
            slope[rows, :q] = events.slopes(other[rows, :t] * -events.weight)
            product[rows, :q, :q] = events.products(curvature[rows, :t] * events.weight)
        return Values(loss, slope, product)


def _together(parts: list[Array]) -> Array:
    """Rows below each other, zeros after those that are shorter."""
    if len(parts) == 1:
        return parts[0]
    found, first = np.zeros((sum(map(len, parts)), max(part.shape[1] for part in parts))), 0
    for part in parts:
        found[first : first + len(part), : part.shape[1]] = part
        first += len(part)
    return found
