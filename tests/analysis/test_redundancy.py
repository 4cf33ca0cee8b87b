"""Clusters of experts, beside SciPy's average linkage."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from opinionpool import Panel
from opinionpool.analysis.selection import clusters, redundant_groups
from opinionpool.errors import ArgumentError, ShapeError


def random_correlation(seed, n):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((n, 3)) + 0.3 * rng.standard_normal((n, 3))
    return np.corrcoef(np.hstack([root, 0.2 * rng.standard_normal((n, 4))]))


@given(seed=st.integers(0, 100_000), n=st.integers(2, 30), least=st.floats(-0.5, 0.99))
def test_clusters_are_those_of_scipy(seed, n, least):
    r = random_correlation(seed, n)
    tree = linkage(squareform(1 - r, checks=False), "average")
    found = clusters(r)
    assert found.correlation == pytest.approx(1 - tree[:, 2])
    labels = fcluster(tree, 1 - least, "distance")
    theirs = {tuple(np.flatnonzero(labels == label)) for label in set(labels) if (labels == label).sum() > 1}
    assert set(found.groups(least)) == theirs
    assert sorted(found.order) == list(range(n))


@given(seed=st.integers(0, 100_000), n=st.integers(2, 20))
def test_members_of_a_cluster_stand_together(seed, n):
    found = clusters(random_correlation(seed, n))
    place = np.argsort(found.order)
    for least in found.correlation:
        for group in found.groups(least - 1e-12):
            where = place[list(group)]
            assert where.max() - where.min() == len(group) - 1


def test_groups_of_a_panel():
    r = [[1.0, 0.95, 0.3, 0.3], [0.95, 1.0, 0.3, 0.3], [0.3, 0.3, 1.0, 0.93], [0.3, 0.3, 0.93, 1.0]]
    panel = Panel.from_features([1.0, 1.0, 1.0, 0.0], r, names="abcd")
    assert redundant_groups(panel) == [("a", "b")]
    assert redundant_groups(Panel.exchangeable(3, correlation=0.5)) == []
    assert redundant_groups(Panel.exchangeable(3, correlation=0.97)) == [("expert_1", "expert_2", "expert_3")]
    assert redundant_groups(Panel.exchangeable(1)) == []


def test_one_expert_and_bad_matrices():
    alone = clusters([[1.0]])
    assert (alone.order.tolist(), alone.groups()) == ([0], [])
    with pytest.raises(ShapeError):
        clusters([[1.0, 0.5]])
    with pytest.raises(ArgumentError):
        clusters([[1.0, np.nan], [np.nan, 1.0]])
