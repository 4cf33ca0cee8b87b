"""Which experts say the same thing: hierarchical clusters by correlation, with average linkage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.dependence import CommonCorrelation
from opinionpool.errors import ArgumentError, ShapeError
from opinionpool.logodds import Array
from opinionpool.panel import Panel

__all__ = ["REDUNDANT", "Clusters", "clusters", "redundant_groups"]

# Of two equally accurate experts who are correlated so much, the second makes the accuracy 5% larger.
REDUNDANT = 0.9


@dataclass(frozen=True, eq=False)
class Clusters:
    """N experts joined two clusters at a time, the most correlated first.

    Attributes
    ----------
    joined : ndarray of int, shape (N - 1, 2)
        Experts are clusters 0 .. N - 1, and row s makes cluster N + s.
    correlation : ndarray, shape (N - 1,)
        Mean correlation between members of the two, never increasing.
    """

    joined: npt.NDArray[np.intp]
    correlation: Array

    @property
    def order(self) -> npt.NDArray[np.intp]:
        """Positions of the experts so that each cluster stands together, (N,); what a heat map is drawn in."""
        n = len(self.joined) + 1
        members = [[i] for i in range(n)]
        for a, b in self.joined.tolist():
            # The cluster with the earlier expert goes first.
            one, two = sorted((members[a], members[b]), key=min)
            members.append(one + two)
        return np.array(members[-1], dtype=np.intp)

    def groups(self, least: float = REDUNDANT) -> list[tuple[int, ...]]:
        """Positions of experts in clusters of two or more whose mean correlation is at least so much."""
        n = len(self.joined) + 1
        members: dict[int, list[int]] = {i: [i] for i in range(n)}
        for step, ((a, b), r) in enumerate(zip(self.joined.tolist(), self.correlation.tolist(), strict=True)):
            if r < least:
                break
            members[n + step] = members.pop(a) + members.pop(b)
        return sorted(tuple(sorted(group)) for group in members.values() if len(group) > 1)


def clusters(correlation: npt.ArrayLike) -> Clusters:
    """Join experts by average linkage (UPGMA), in O(N²) steps on an N x N array.

    Parameters
    ----------
    correlation : array_like, shape (N, N)

    Raises
    ------
    ShapeError, ArgumentError
        If this is not a square array of finite numbers.

    Examples
    --------
    >>> found = clusters([[1.0, 0.1, 0.9], [0.1, 1.0, 0.2], [0.9, 0.2, 1.0]])
    >>> found.order.tolist(), found.groups(0.8), found.correlation.round(2).tolist()
    ([0, 2, 1], [(0, 2)], [0.9, 0.15])
    """
    near = np.array(correlation, dtype=np.float64)
    if near.ndim != 2 or near.shape[0] != near.shape[1]:
        raise ShapeError(f"clusters need a square matrix of correlations, and its shape is {near.shape}")
    if not np.isfinite(near).all():
        raise ArgumentError("clusters need finite correlations, and one is missing or infinite")
    n = len(near)
    np.fill_diagonal(near, -np.inf)
    size = np.ones(n)
    merges: list[tuple[float, int, int]] = []
    chain: list[int] = []
    alive = np.ones(n, dtype=bool)
    # Along a chain of nearest neighbours, two that are each other's nearest are joined; average linkage allows it.
    while len(merges) < n - 1:
        if not chain:
            chain.append(int(alive.argmax()))
        here = chain[-1]
        nearest = int(near[here].argmax())
        if len(chain) > 1 and near[here, chain[-2]] >= near[here, nearest]:
            nearest = chain[-2]
            del chain[-2:]
            keep, gone = min(here, nearest), max(here, nearest)
            merges.append((float(near[here, nearest]), keep, gone))
            row = (size[keep] * near[keep] + size[gone] * near[gone]) / (size[keep] + size[gone])
            size[keep] += size[gone]
            alive[gone] = False
            row[~alive] = -np.inf
            row[keep] = -np.inf
            near[keep], near[:, keep] = row, row
            near[gone], near[:, gone] = -np.inf, -np.inf
        else:
            chain.append(nearest)
    return _sorted(merges, n)


def _sorted(merges: list[tuple[float, int, int]], n: int) -> Clusters:
    """Merges from the closest to the farthest, clusters numbered in that order."""
    order = sorted(range(len(merges)), key=lambda step: -merges[step][0])
    root, name = list(range(n)), list(range(n))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    joined = np.empty((n - 1, 2), dtype=np.intp)
    for number, step in enumerate(order):
        a, b = find(merges[step][1]), find(merges[step][2])
        joined[number] = sorted((name[a], name[b]))
        root[b] = a
        name[a] = n + number
    return Clusters(joined, np.array([merges[step][0] for step in order]))


def redundant_groups(panel: Panel, least: float = REDUNDANT) -> list[tuple[str, ...]]:
    """Experts whose contrasts are so correlated within outcomes that one of them says nearly all.

    Those who say nothing belong to no group. One correlation for all pairs makes one group of all, or none.

    Examples
    --------
    >>> r = [[1.0, 0.95, 0.3], [0.95, 1.0, 0.3], [0.3, 0.3, 1.0]]
    >>> redundant_groups(Panel.from_features(1.0, r, names=["ann", "bob", "cy"]))
    [('ann', 'bob')]
    """
    heard = np.flatnonzero(panel.heard)
    if len(heard) < 2:
        return []
    if isinstance(panel.parts.dependence, CommonCorrelation):
        return [tuple(panel.names[i] for i in heard)] if panel.parts.dependence.rho >= least else []
    found = clusters(panel.correlation[np.ix_(heard, heard)]).groups(least)
    return [tuple(panel.names[heard[i]] for i in group) for group in found]
