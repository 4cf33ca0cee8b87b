"""Groups of experts whose errors are so correlated that one expert of a group nearly suffices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opinionpool.arguments import expect_type, number
from opinionpool.arrays import Array, Index
from opinionpool.errors import ArgumentError, ShapeError
from opinionpool.model.correlation import CommonCorrelation
from opinionpool.model.panel import Panel

# Of two equally accurate experts who are correlated so much, the second makes the accuracy 5% larger.
REDUNDANT = 0.9


@dataclass(frozen=True, eq=False)
class Dendrogram:
    """Experts joined by average linkage (UPGMA) of correlations, (N, N), the most correlated clusters first.

    >>> found = Dendrogram.of([[1.0, 0.1, 0.9], [0.1, 1.0, 0.2], [0.9, 0.2, 1.0]])
    >>> found.order.tolist(), found.groups(0.8), found.correlation.round(2).tolist()
    ([1, 0, 2], [(0, 2)], [0.9, 0.15])
    """

    tree: Array  # (N - 1, 4); SciPy's linkage of the distances 1 - r

    @classmethod
    def of(cls, correlation: npt.ArrayLike) -> Dendrogram:
        """Return the dendrogram of correlations (N, N), for N >= 2."""
        from scipy.cluster.hierarchy import linkage

        near = np.array(correlation, dtype=np.float64)
        if near.ndim != 2 or near.shape[0] != near.shape[1] or len(near) < 2:
            raise ShapeError(f"clusters need a square matrix of correlations, and its shape is {near.shape}")
        if not np.isfinite(near).all():
            raise ArgumentError("clusters need finite correlations, and one is missing or infinite")
        return cls(linkage(1.0 - near[np.triu_indices(len(near), 1)], method="average"))

    @property
    def correlation(self) -> Array:
        """Mean correlation between the two clusters that each row joins, (N - 1,), never increasing."""
        return np.asarray(1.0 - self.tree[:, 2])

    @property
    def order(self) -> Index:
        """Order of the experts, (N,), in which each cluster's members are adjacent, as for a heat map."""
        from scipy.cluster.hierarchy import leaves_list

        return np.asarray(leaves_list(self.tree), dtype=np.intp)

    def groups(self, least: float = REDUNDANT) -> list[tuple[int, ...]]:
        """Positions of experts in clusters of two or more whose mean correlation is at least `least`."""
        from scipy.cluster.hierarchy import fcluster

        label = fcluster(self.tree, 1.0 - least, criterion="distance")
        found = (tuple(np.flatnonzero(label == one).tolist()) for one in np.unique(label))
        return sorted(group for group in found if len(group) > 1)


def redundant_groups(panel: Panel, least: float = REDUNDANT) -> list[tuple[str, ...]]:
    """Groups of experts whose contrasts are so correlated within outcomes that one of them says nearly all.

    Those who say nothing belong to no group. One correlation for all pairs makes one group of all, or none.

    Examples
    --------
    >>> r = [[1.0, 0.95, 0.3], [0.95, 1.0, 0.3], [0.3, 0.3, 1.0]]
    >>> redundant_groups(Panel.from_features(1.0, r, names=["ann", "bob", "cy"]))
    [('ann', 'bob')]
    """
    expect_type(panel, Panel, "panel")
    least = number(least, "least", -1, 1)
    informative = np.flatnonzero(panel.informative)
    if len(informative) < 2:
        return []
    among = panel.parts.dependence
    if isinstance(among, CommonCorrelation) and panel.parts.source is None:
        return [tuple(panel.names[i] for i in informative)] if among.rho >= least else []
    correlation = panel.correlation[np.ix_(informative, informative)]
    if not (np.triu(correlation, 1) >= least).any():
        return []
    found = Dendrogram.of(correlation).groups(least)
    return [tuple(panel.names[informative[i]] for i in group) for group in found]
