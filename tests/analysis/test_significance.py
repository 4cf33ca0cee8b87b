"""Tests of significance, beside SciPy's and their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from opinionpool.analysis.significance import at_least, holm, not_normal, rank_correlation, ranks, student, welch


@given(st.integers(0, 10_000), st.integers(4, 60), st.integers(4, 60))
def test_welch(seed, n, m):
    rng = np.random.default_rng(seed)
    one, two = rng.standard_normal(n), 0.5 + 2 * rng.standard_normal(m)
    assert welch(one, two) == pytest.approx(stats.ttest_ind(one, two, equal_var=False).pvalue, rel=0.05, abs=1e-3)
    assert welch(np.ones(n), np.ones(m)) == 1.0


@given(st.lists(st.integers(0, 5), min_size=9, max_size=40), st.integers(0, 10_000))
def test_ranks_and_their_correlation(values, seed):
    x = np.array(values)
    assert ranks(x) == pytest.approx(stats.rankdata(x))
    y = np.random.default_rng(seed).standard_normal(len(x)).round(1)
    r, p = rank_correlation(x, y)
    if len(set(values)) > 1 and len(set(y)) > 1:
        theirs = stats.spearmanr(x, y)
        assert r == pytest.approx(theirs.statistic, abs=1e-12)
        assert p == pytest.approx(theirs.pvalue, rel=0.05, abs=1e-3)
    else:
        assert (r, p) == (0.0, 1.0)


def test_perfect_ranks():
    assert rank_correlation(np.arange(9), np.arange(9) ** 2) == (pytest.approx(1.0), 0.0)


@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.0, 1.0))
def test_at_least(successes, more, p):
    trials = successes + more
    each = [math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(successes, trials + 1)]
    assert at_least(successes, trials, p) == pytest.approx(math.fsum(each), abs=1e-12)


def test_at_least_of_many():
    assert at_least(1, 100_000, 0.5) == pytest.approx(1.0)
    assert at_least(50_500, 100_000, 0.5) == pytest.approx(stats.binom.sf(50_499, 100_000, 0.5), rel=1e-6)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12))
def test_holm(p):
    adjusted = holm(p)
    # By its definition: the k-th least p times how many are not less, and never less than one before.
    order = np.argsort(p, kind="stable")
    steps = [min(1.0, (len(p) - k) * p[i]) for k, i in enumerate(order)]
    assert [adjusted[i] for i in order] == pytest.approx(np.maximum.accumulate(steps))


@pytest.mark.parametrize("n", [20, 100, 400])
def test_normality_is_rejected_as_often_as_is_said(n):
    z = np.random.default_rng(n).standard_normal((4000, n))
    p = np.array([not_normal(row)[2] for row in z])
    for level in (0.05, 0.01):
        assert abs((p < level).mean() - level) < 4 * np.sqrt(level * (1 - level) / len(z)) + 0.002
    skew, tail, _ = not_normal(z[0])
    assert skew == pytest.approx(stats.skew(z[0]))
    assert tail == pytest.approx(stats.kurtosis(z[0]))


@pytest.mark.parametrize("seed", range(5))
def test_normality_by_anderson_and_darling(seed):
    pytest.importorskip("scipy", minversion="1.17", reason="older ones give no p-value")
    values = np.random.default_rng(seed).standard_t(6, 80)
    theirs = stats.anderson(values, "norm", method="interpolate")
    p = not_normal(values)[2]
    assert p == pytest.approx(theirs.pvalue, abs=0.02) or (theirs.pvalue in (0.01, 0.15) and (p < 0.013) | (p > 0.14))


def test_student():
    # Tables; and what hardly varies.
    assert [student(t, df) for t, df in ((12.706, 1), (2.228, 10), (-1.96, 1e9))] == pytest.approx([0.05] * 3, rel=1e-3)
    assert student(1e200, 8.0) == 0.0
    assert student(0.0, 8.0) == 1.0
