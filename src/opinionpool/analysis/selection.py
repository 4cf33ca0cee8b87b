"""Selection of experts: the gain from one more expert, and the best k experts of a panel.

The accuracy of a panel is μ* = 2 s'R⁻¹s with s = μ/σ (model.md, section 2.1), so an expert with signal t, correlated r
with the others, makes it larger by 2 (t − r'R⁻¹s)²/(1 − r'R⁻¹r): never smaller, and by 0 if the others' forecasts imply
the expert's. An absolute accuracy is needed, and the panel's parameters are taken as true.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
import numpy.typing as npt

from opinionpool.analysis.value import effective_number, expected_auc, expected_brier, expected_score
from opinionpool.arguments import expect_type, number, one_of, whole_number
from opinionpool.arrays import Array, Index
from opinionpool.errors import ArgumentError, PanelError, ShapeError
from opinionpool.model.correlation import SINGULAR, CommonCorrelation
from opinionpool.model.features import LARGEST, vector
from opinionpool.model.panel import Panel

# All subsets are tried of so many experts.
EXHAUSTIVE = 15
# Subsets solved at once.
BATCH = 4096


@dataclass(frozen=True)
class Gain:
    """Gain of a panel from one more expert: how far area under the curve and expected scores change.

    Attributes
    ----------
    before, after : float
        Joint accuracy mu*.
    auc, score, brier : float
        Changes of the area under the curve, the expected score and the expected Brier score (below 0: better).
        Score and Brier are None for more than two classes.
    weight : float or None
        Weight of the new expert; None from `gain_from_one_more`.
    """

    before: float
    after: float
    auc: float
    score: float | None
    brier: float | None
    weight: float | None = None


def gain_from_one_more(panel: Panel, prior: float = 0.5, correlation: float | None = None) -> Gain:
    """Gain from one more expert, as accurate and as dependent as the panel's experts are on average.

    The correlation ρ is by default that of the effective number N/(1 + (N − 1)ρ) (paper, equation 24), or 0 if that
    is negative.

    Parameters
    ----------
    panel : Panel
    prior : float, default 0.5
    correlation : float, optional
        ρ; needed for a panel of one.

    Raises
    ------
    AccuracyUnknownError
        If the panel knows relative accuracies only.
    ArgumentError
        If the correlation is not in [0, 1], or is not given for a panel of one expert.

    Examples
    --------
    >>> gain = gain_from_one_more(Panel.exchangeable(4, correlation=0.5, accuracy=1.0))
    >>> round(gain.before, 4), round(gain.after, 4), round(gain.score, 4)
    (1.6, 1.6667, 0.0123)
    """
    expect_type(panel, Panel, "panel")
    informative = np.flatnonzero(panel.informative)
    before, n = panel.joint_accuracy, len(informative)
    mean = float(panel.accuracy[informative].mean()) if n else 0.0
    if mean == 0:
        return _gain(before, before, prior, panel)
    if correlation is None:
        if n == 1:
            raise ArgumentError("one expert does not say how dependent another would be; give correlation=")
        correlation = max((n / effective_number(panel) - 1.0) / (n - 1.0), 0.0)
    correlation = number(correlation, "correlation", 0, 1)
    together = n / (1.0 + (n - 1.0) * correlation)
    more = (n + 1.0) / (1.0 + n * correlation)
    return _gain(before, before + mean * (more - together), prior, panel)


def gain_from(
    panel: Panel, accuracy: float, correlation: npt.ArrayLike, calibration: float = 1.0, prior: float = 0.5
) -> Gain:
    """Gain from adding an expert with the given accuracy and correlations to the panel.

    Parameters
    ----------
    panel : Panel
    accuracy : float
        mu* of the new expert by itself, at least 0.
    correlation : float or array_like, shape (N,)
        Correlation with each of the panel's experts, within an outcome.
    calibration : float, default 1.0
        kappa. It changes the new expert's weight, not what it adds.
    prior : float, default 0.5

    Raises
    ------
    AccuracyUnknownError
        If the panel knows relative accuracies only.
    PanelError, ShapeError
        If no expert can have these correlations, or a value is out of range.

    Examples
    --------
    >>> panel = Panel.exchangeable(4, correlation=0.5, accuracy=1.0)
    >>> gain = gain_from(panel, accuracy=1.0, correlation=0.0)
    >>> round(gain.after, 4), round(gain.score, 3), round(gain.weight, 3)
    (2.6, 0.158, 1.0)
    """
    expect_type(panel, Panel, "panel")
    accuracy = number(accuracy, "accuracy", 0, LARGEST, error=PanelError)
    informative = np.flatnonzero(panel.informative)
    r = vector(correlation, len(panel), "correlation with the new expert")[informative]
    calibration = number(calibration, "calibration", 0, LARGEST, error=PanelError)
    if not calibration:
        raise PanelError("the calibration of a new expert must be above 0, and it is 0")
    before = panel.joint_accuracy
    own, known = np.sqrt(accuracy / 2.0), panel.parts.signal[informative]
    onto = r
    if len(informative):
        onto = panel.parts.subset(informative).solve(r, np.ones((1, len(r)), dtype=bool))[0]
    left = 1.0 - float(r @ onto)
    if left < SINGULAR:
        raise PanelError(
            "no new expert can be so correlated with these, because what it says would follow from what they say; "
            "give smaller correlations"
        )
    new = (float(own) - float(onto @ known)) / left
    # Signal over spread, for the contrast mu*/kappa and the spread sqrt(2 mu*)/kappa.
    weight = 2.0 * new * calibration / float(np.sqrt(2.0 * accuracy)) if accuracy else 0.0
    return _gain(before, before + 2.0 * new**2 * left, prior, panel, weight)


def _gain(before: float, after: float, prior: float, panel: Panel, weight: float | None = None) -> Gain:
    both = np.array([before, after])
    score = brier = None
    if len(panel.classes) == 2:
        score, brier = (float(np.diff(f(both, prior))[0]) for f in (expected_score, expected_brier))
    return Gain(before, after, float(np.diff(expected_auc(both))[0]), score, brier, weight)


@dataclass(frozen=True, eq=False)
class Subset:
    """Subset of a panel's experts, with its joint accuracy.

    Attributes
    ----------
    experts : tuple of str
        Experts, the best first if they were chosen one by one.
    accuracy : float
        Their joint accuracy mu*.
    share : float
        Their joint accuracy as a share of the whole panel's.
    exact : bool
        Whether all subsets of this size were tried.
    """

    experts: tuple[str, ...]
    accuracy: float
    share: float
    exact: bool


def best_subset(panel: Panel, k: int, method: str = "auto") -> Subset:
    """Subset of `k` experts of a panel with the largest joint accuracy.

    Parameters
    ----------
    panel : Panel
    k : int
        From 1 to the number of experts.
    method : {"auto", "exhaustive", "greedy"}
        All subsets, or the best next expert, one by one; "auto" is "exhaustive" for panels of up to 15 experts.

    Raises
    ------
    AccuracyUnknownError
        If the panel knows relative accuracies only.
    ArgumentError
        If `k` or `method` is none of these values.

    Examples
    --------
    The second and the third repeat each other:

    >>> r = [[1.0, 0.2, 0.2], [0.2, 1.0, 0.95], [0.2, 0.95, 1.0]]
    >>> panel = Panel.from_features(1.0, r, accuracy=[0.9, 1.0, 1.1], names=["ann", "bob", "cy"])
    >>> best_subset(panel, 2).experts
    ('ann', 'cy')
    """
    expect_type(panel, Panel, "panel")
    k = whole_number(k, "k, the number of experts,", 1, len(panel))
    one_of(method, "method", ("auto", "exhaustive", "greedy"))
    if method == "greedy" or (method == "auto" and len(panel) > EXHAUSTIVE):
        return subset_path(panel, k)[-1]
    panel.parts.check_scale("the best subset")
    most, chosen = -1.0, np.zeros(0, dtype=np.intp)
    every = combinations(range(len(panel)), k)
    while batch := list(islice(every, BATCH)):
        present = np.zeros((len(batch), len(panel)), dtype=bool)
        np.put_along_axis(present, np.array(batch), True, axis=1)
        found = panel.weights_for(present) @ panel.parts.contrast
        if found.max() > most:
            most, chosen = float(found.max()), np.array(batch[int(found.argmax())])
    return _subset(panel, chosen, most, exact=True)


def subset_path(panel: Panel, most: int | None = None) -> list[Subset]:
    """Greedy subsets of 1, 2, ... `most` experts; each adds the expert that increases joint accuracy most.

    It takes O(N k²) operations, k being `most`, and k columns of the correlation matrix.
    """
    expect_type(panel, Panel, "panel")
    panel.parts.check_scale("the best subset")
    n = len(panel)
    k = n if most is None else whole_number(most, "most", 1, n)
    informative = panel.informative
    rest, left = np.where(informative, panel.parts.signal, 0.0), np.where(informative, 1.0, 0.0)
    rows, chosen, total = np.zeros((k, n)), [], 0.0
    path = []
    free = np.ones(n, dtype=bool)
    for step in range(k):
        # What each adds to those chosen: its signal beyond theirs, over its variance beyond theirs.
        adding = free & (left > SINGULAR)
        adds = np.where(adding, 2.0 * rest**2 / np.where(adding, left, 1.0), 0.0)
        best = int(np.where(free, adds, -1.0).argmax())
        free[best] = False
        chosen.append(best)
        total += float(adds[best])
        if adding[best]:
            unit = np.zeros(n)
            unit[best] = 1.0
            column = panel.parts.times(unit) - rows[:step].T @ rows[:step, best]
            rows[step] = np.where(informative, column / np.sqrt(left[best]), 0.0)
            rest = rest - rows[step] * (rest[best] / np.sqrt(left[best]))
            left = left - rows[step] ** 2
        path.append(_subset(panel, np.array(chosen), total, exact=len(chosen) in {1, n}))
    return path


def _subset(panel: Panel, chosen: npt.NDArray[np.intp], accuracy: float, *, exact: bool) -> Subset:
    whole = panel.joint_accuracy
    names = tuple(panel.names[i] for i in chosen.tolist())
    return Subset(names, accuracy, accuracy / whole if whole else 1.0, exact)


# Of two equally accurate experts who are correlated so much, the second makes the accuracy 5% larger.
REDUNDANT = 0.9


@dataclass(frozen=True, eq=False)
class Dendrogram:
    """Tree of clusters of experts, the most correlated joined first: average linkage (UPGMA) of correlations, (N, N).

    >>> found = Dendrogram.of([[1.0, 0.1, 0.9], [0.1, 1.0, 0.2], [0.9, 0.2, 1.0]])
    >>> found.order.tolist(), found.groups(0.8), found.correlation.round(2).tolist()
    ([1, 0, 2], [(0, 2)], [0.9, 0.15])
    """

    tree: Array  # (N - 1, 4); SciPy's linkage of the distances 1 - r

    @classmethod
    def of(cls, correlation: npt.ArrayLike) -> Dendrogram:
        """Return the dendrogram of N >= 2 experts with correlations (N, N)."""
        from scipy.cluster.hierarchy import linkage

        near = np.array(correlation, dtype=np.float64)
        if near.ndim != 2 or near.shape[0] != near.shape[1] or len(near) < 2:
            raise ShapeError(f"clusters need a square matrix of correlations, and its shape is {near.shape}")
        if not np.isfinite(near).all():
            raise ArgumentError("clusters need finite correlations, and one is missing or infinite")
        return cls(linkage(1.0 - near[np.triu_indices(len(near), 1)], method="average"))

    @property
    def correlation(self) -> Array:
        """Mean correlation between the two clusters joined at each of N - 1 steps, (N - 1,), never increasing."""
        return np.asarray(1.0 - self.tree[:, 2])

    @property
    def order(self) -> Index:
        """Order of the experts, (N,), in which the members of each cluster are adjacent, as for a heat map."""
        from scipy.cluster.hierarchy import leaves_list

        return np.asarray(leaves_list(self.tree), dtype=np.intp)

    def groups(self, least: float = REDUNDANT) -> list[tuple[int, ...]]:
        """Positions of experts in clusters of two or more whose mean correlation is at least `least`."""
        from scipy.cluster.hierarchy import fcluster

        label = fcluster(self.tree, 1.0 - least, criterion="distance")
        found = (tuple(np.flatnonzero(label == one).tolist()) for one in np.unique(label))
        return sorted(group for group in found if len(group) > 1)


def redundant_groups(panel: Panel, least: float = REDUNDANT) -> list[tuple[str, ...]]:
    """Groups of experts whose log-odds are so correlated given the outcome that one expert has nearly all information.

    Uninformative experts belong to no group. If all pairs have the same correlation, either all experts are one group,
    or there is no group.

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
