"""Dendrogram of experts: average linkage."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionpool import Panel
from opinionpool.analysis.selection import Dendrogram, redundant_groups
from opinionpool.errors import ArgumentError, ShapeError


def random_correlation(seed, n):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((n, 3)) + 0.3 * rng.standard_normal((n, 3))
    return np.corrcoef(np.hstack([root, 0.2 * rng.standard_normal((n, 4))]))


@given(seed=st.integers(0, 100_000), n=st.integers(2, 9), least=st.floats(-0.5, 0.99))
def test_clusters_by_their_definition(seed, n, least):
    r = random_correlation(seed, n)
    members, heights, kept = [[i] for i in range(n)], [], None
    while len(members) > 1:
        pairs = itertools.combinations(range(len(members)), 2)
        height, i, j = max((r[np.ix_(members[i], members[j])].mean(), i, j) for i, j in pairs)
        if height < least and kept is None:
            kept = [*members]
        heights.append(height)
        members = [group for k, group in enumerate(members) if k not in {i, j}] + [members[i] + members[j]]
    found = Dendrogram.of(r)
    assert found.correlation == pytest.approx(np.array(heights))
    expected = {tuple(sorted(group)) for group in (members if kept is None else kept) if len(group) > 1}
    assert set(found.groups(least)) == expected
    assert sorted(found.order) == list(range(n))


@given(seed=st.integers(0, 100_000), n=st.integers(2, 20))
def test_members_of_a_cluster_stand_together(seed, n):
    found = Dendrogram.of(random_correlation(seed, n))
    place = np.argsort(found.order)
    for least in found.correlation:
        for group in found.groups(least - 1e-12):
            where = place[list(group)]
            assert where.max() - where.min() == len(group) - 1


def test_groups_of_a_panel():
    r = [[1.0, 0.95, 0.3, 0.3], [0.95, 1.0, 0.3, 0.3], [0.3, 0.3, 1.0, 0.93], [0.3, 0.3, 0.93, 1.0]]
    panel = Panel.from_features([1.0, 1.0, 1.0, 0.0], r, names=list("abcd"))
    assert redundant_groups(panel) == [("a", "b")]
    assert redundant_groups(Panel.exchangeable(3, correlation=0.5)) == []
    assert redundant_groups(Panel.exchangeable(3, correlation=0.97)) == [("expert_1", "expert_2", "expert_3")]
    assert redundant_groups(Panel.exchangeable(1)) == []


def test_one_expert_and_bad_matrices():
    for few in ([[1.0]], [[1.0, 0.5]]):
        with pytest.raises(ShapeError):
            Dendrogram.of(few)
    with pytest.raises(ArgumentError):
        Dendrogram.of([[1.0, np.nan], [np.nan, 1.0]])
