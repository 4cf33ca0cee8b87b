"""Intervals that hold all at once, against closed forms and by how often they hold."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import norm, sem, t as student

from opinionpool.scoring.bootstrap import MOST_CLUSTERS, Sums, simultaneous_intervals

NAN = float("nan")
seeds = st.integers(0, 10**6)


def intervals(values, clusters=None, **options):
    clusters = np.arange(len(values)) if clusters is None else clusters
    return simultaneous_intervals(Sums.of(np.asarray(values, dtype=float), clusters), **options)


class TestSums:
    @given(seeds)
    def test_means_and_errors_of_single_events(self, seed):
        rng = np.random.default_rng(seed)
        values = rng.normal(size=(20, 3))
        values[rng.random(values.shape) < 0.3] = NAN
        values[:2] = [[1.0], [2.0]]
        found = Sums.of(values, rng.permutation(20))
        assert found.mean == pytest.approx(np.nanmean(values, axis=0))
        assert found.error == pytest.approx(sem(values, axis=0, nan_policy="omit"))
        assert found.clusters.tolist() == (~np.isnan(values)).sum(axis=0).tolist()

    @given(seeds, st.integers(2, 5))
    def test_copies_in_a_cluster_add_nothing(self, seed, copies):
        values = np.random.default_rng(seed).normal(size=(12, 2))
        one, many = (
            Sums.of(values, np.arange(12)),
            Sums.of(np.repeat(values, copies, axis=0), np.repeat(range(12), copies)),
        )
        assert many.mean == pytest.approx(one.mean)
        assert many.error == pytest.approx(one.error)

    def test_many_clusters_are_bundled(self):
        values = np.random.default_rng(0).normal(size=(MOST_CLUSTERS * 5 + 7, 2))
        found = Sums.of(values, np.arange(len(values)))
        assert len(found.total) == MOST_CLUSTERS
        assert found.mean == pytest.approx(values.mean(axis=0))
        assert found.error == pytest.approx(sem(values, axis=0), rel=0.05)

    def test_no_value_at_all(self):
        found = Sums.of(np.array([[NAN, 1.0], [NAN, 2.0]]), np.arange(2))
        assert np.isnan(found.mean).tolist() == np.isnan(found.error).tolist() == [True, False]


class TestIntervals:
    def test_one_difference_of_many_events_is_textbook(self):
        values = np.random.default_rng(0).normal(0.2, 1.0, size=(1000, 1))
        found = intervals(values, resamples=20_000)
        half = norm.ppf(0.975) * sem(values)
        assert found.high - found.mean == pytest.approx(half, rel=0.02)
        assert found.mean - found.low == pytest.approx(half, rel=0.02)

    def test_independent_differences_are_as_wide_as_sidak(self):
        values = np.random.default_rng(0).normal(size=(1000, 10))
        found = intervals(values, resamples=20_000)
        factor = norm.ppf((1 + 0.95**0.1) / 2)
        assert (found.high - found.mean) / sem(values) == pytest.approx(np.full(10, factor), rel=0.02)

    def test_copies_of_a_difference_cost_nothing(self):
        values = np.random.default_rng(0).normal(size=(50, 1))
        assert intervals(np.repeat(values, 8, axis=1)).low == pytest.approx(np.repeat(intervals(values).low, 8))

    def test_few_clusters_are_as_wide_as_student(self):
        values = np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [7.0]])
        found = intervals(values, resamples=20_000)
        # The normal bootstrap is too narrow by about √(n/(n − 1)) before it is widened.
        half = float((found.high - found.mean)[0]) / float(sem(values)[0])
        assert norm.ppf(0.975) < half < 1.05 * student.ppf(0.975, 5)

    @pytest.mark.parametrize("size", [15, 100])
    def test_they_hold_all_at_once(self, size):
        rng, held = np.random.default_rng(1), 0
        for seed in range(200):
            shared = rng.normal(size=(size, 1))
            found = intervals(shared + rng.normal(size=(size, 6)), resamples=400, seed=seed)
            held += bool(((found.low <= 0) & (found.high >= 0)).all())
        # 95% give 190 ± 3.1 of 200.
        assert 180 <= held <= 199

    def test_clusters_make_them_wider(self):
        rng = np.random.default_rng(0)
        values = np.repeat(rng.normal(size=(30, 1)), 20, axis=0) + 0.1 * rng.normal(size=(600, 1))
        alone, together = intervals(values), intervals(values, np.repeat(range(30), 20))
        ratio = (together.high - together.low) / (alone.high - alone.low)
        assert 4 < float(ratio[0]) < 5.2

    def test_nothing_to_say_and_nothing_that_differs(self):
        values = np.zeros((20, 3))
        values[4:, 0] = NAN
        values[:, 2] = np.random.default_rng(0).normal(size=20)
        found = intervals(values)
        assert np.isnan(found.low).tolist() == [True, False, False]
        assert found.low[1] == found.high[1] == 0.0
        assert found.high[2] - found.low[2] == pytest.approx(
            intervals(values[:, 2:]).high[0] - intervals(values[:, 2:]).low[0]
        )

    def test_the_seed_decides(self):
        values = np.random.default_rng(0).normal(size=(50, 3))
        assert intervals(values, seed=1).low.tolist() == intervals(values, seed=1).low.tolist()
        assert intervals(values, seed=1).low.tolist() != intervals(values, seed=2).low.tolist()
