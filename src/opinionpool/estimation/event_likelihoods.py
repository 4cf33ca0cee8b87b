"""Likelihoods of several candidates for each of several sets of events, by what each makes of the same coefficients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from opinionpool.arrays import Array, Index
from opinionpool.estimation.posterior import Values

Events = TypeVar("Events")


class RootForm(NamedTuple):
    """Q x P roots, of which the last N columns may be σ(I − 11'/N), with zeros above: weights that differ alike."""

    rows: int  # Q
    columns: int  # P
    alike: int  # N; 0 where that is not so


def turned(root: Array, product: Array, form: RootForm, spread: Array) -> Array:
    """Products (S, Q, Q) by other coefficients: RᵀAR for roots (S, Q, P) with these σ (S,), (S, P, P).

    >>> root = np.array([[[1.0, 0.3, -0.3], [2.0, -0.3, 0.3]]])
    >>> product = np.array([[[2.0, 1.0], [1.0, 3.0]]])
    >>> found = turned(root, product, RootForm(2, 3, 2), np.array([0.6]))
    >>> np.allclose(found, np.swapaxes(root, 1, 2) @ product @ root)
    True
    """
    q, p, n = form
    if not n:
        return np.asarray(np.swapaxes(root, 1, 2) @ product @ root)
    found, first, own = np.empty((len(root), p, p)), p - n, slice(q - n, None)
    for out, one, other, each in zip(found, product, root[:, :, :first], spread.tolist(), strict=True):
        beside = one @ other
        out[:first, :first] = other.T @ beside
        out[first:, :first] = each * (beside[own] - beside[own].mean(axis=0))
        out[:first, first:] = out[first:, :first].T
        mean = one[own, own].mean(axis=0)
        within = np.subtract(one[own, own], mean, out=out[first:, first:])
        within += (mean.mean() - mean)[:, None]
        within *= each**2
    return found


@dataclass(frozen=True, eq=False)
class Forms:
    """What is known of roots that are large.

    Attributes
    ----------
    each : sequence of RootForm
        Of the roots of each of G sets of events.
    spread : ndarray, shape (S,)
        σ of each root, 0 where there is none.
    """

    each: Sequence[RootForm]
    spread: Array


@dataclass(frozen=True, eq=False)
class EventLikelihoods(ABC, Generic[Events]):
    """S likelihoods by P coefficients each, which make Q of the events' as centre + root'coefficients.

    Attributes
    ----------
    events : sequence
        G sets of events.
    group : ndarray of int, shape (S,)
        Which of them each is about, in ascending order.
    centre : ndarray, shape (S, Q)
        Where events have fewer coefficients, the last are 0.
    root : ndarray, shape (S, Q, P)
    forms : Forms or None
        Theirs, where they are large.
    """

    events: Sequence[Events]
    group: Index
    centre: Array
    root: Array
    forms: Forms | None = None

    def values(self, which: Index, at: Array) -> Values:
        """Those of s of them, in ascending order."""
        centre, root = self.centre, self.root
        if len(which) < len(root):
            centre, root = centre[which], root[which]
        parts = self._parts(which)
        each = [(self.events[i], rows) for i, rows in parts]
        loss, slope, product = self._plain(each, centre + (root @ at[..., None])[..., 0])
        if self.forms is None:
            hessian = np.swapaxes(root, 1, 2) @ product @ root
        else:
            hessian = np.zeros((*at.shape, at.shape[1]))
            for i, rows in parts:
                form, spread = self.forms.each[i], self.forms.spread[which[rows]]
                q, p, _ = form
                hessian[rows, :p, :p] = turned(root[rows, :q, :p], product[rows, :q, :q], form, spread)
        return Values(loss, (slope[:, None] @ root)[:, 0], hessian)

    @abstractmethod
    def _plain(self, parts: Sequence[tuple[Events, slice]], along: Array) -> Values:
        """The same by the coefficients of the events, (s, Q), which are about each set by parts."""

    def _parts(self, which: Index) -> list[tuple[int, slice]]:
        """The sets of events that some are about, by their number, and which of these are about each."""
        if len(self.events) == 1:
            return [(0, slice(None))]
        ends = np.searchsorted(self.group[which], np.arange(len(self.events) + 1)).tolist()
        return [(i, slice(first, end)) for i, (first, end) in enumerate(pairwise(ends)) if end > first]
