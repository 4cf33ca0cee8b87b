"""Intervals that hold all at once, against closed forms and by how often they hold."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import expit
from scipy.stats import norm, sem, t as student

from opinionpool.scoring.intervals import FEWEST_CLUSTERS, FIRM, ClusterSums, Difference, difference_intervals

NAN = float("nan")
seeds = st.integers(0, 10**6)


class Arrays(NamedTuple):
    """Means and limits of several differences."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def intervals(values, clusters=None, **options):
    clusters = np.arange(len(values)) if clusters is None else clusters
    found = difference_intervals(np.asarray(values, dtype=float), clusters, **options)
    return Arrays(*np.array([(each.mean, each.low, each.high) for each in found]).reshape(-1, 3).T)


class TestSums:
    @given(seeds)
    def test_means_and_errors_of_single_events(self, seed):
        rng = np.random.default_rng(seed)
        values = rng.normal(size=(20, 3))
        values[rng.random(values.shape) < 0.3] = NAN
        values[:2] = [[1.0], [2.0]]
        found = ClusterSums.of(values, rng.permutation(20))
        assert found.mean == pytest.approx(np.nanmean(values, axis=0))
        assert found.error == pytest.approx(sem(values, axis=0, nan_policy="omit"))
        assert found.clusters.tolist() == (~np.isnan(values)).sum(axis=0).tolist()

    @given(seeds, st.integers(2, 5))
    def test_copies_in_a_cluster_add_nothing(self, seed, copies):
        values = np.random.default_rng(seed).normal(size=(12, 2))
        one, many = (
            ClusterSums.of(values, np.arange(12)),
            ClusterSums.of(np.repeat(values, copies, axis=0), np.repeat(range(12), copies)),
        )
        assert many.mean == pytest.approx(one.mean)
        assert many.error == pytest.approx(one.error)


def by_hand(values, against, level=0.95):
    """Student's interval of the sample and the events that would speak against a gain, written out."""
    values = np.asarray(values, dtype=float)
    far = max(0.8 * (values.mean() - values.min()), 2 * values.std(ddof=1), 2 * values.mean())
    sample = np.append(values, [values.mean() - far] * (1 + max(5 - against, 0)))
    return sample.mean() - student.ppf((1 + level) / 2, len(values) - 1) * sem(sample)


def firm_and_changed(events, samples):
    """Of samples of events with a verdict: whether it is firm, and how often two other outcomes change it."""
    rng, found = np.random.default_rng(events), []
    for _ in range(samples):
        spread, happened = rng.uniform(0.5, 4.0), rng.random(events) < 0.4
        odds = (happened - 0.5) * spread + rng.normal(size=events) * np.sqrt(spread)
        bold, timid = expit(odds), expit(odds * rng.uniform(0.4, 1.0))

        def told(y, bold=bold, timid=timid):
            gain = np.where(y, np.log(bold / timid), np.log((1 - bold) / (1 - timid)))
            return difference_intervals(gain[:, None], np.arange(len(y)), each=True)[0]

        first = told(happened)
        if first.verdict in {"better", "worse"}:
            other = [happened ^ np.isin(np.arange(events), rng.choice(events, 2, replace=False)) for _ in range(5)]
            found.append((first.is_firm(events), np.mean([told(y).verdict != first.verdict for y in other])))
    return np.array(found).T


class TestFirm:
    @pytest.mark.parametrize("events", [40, 160, 640])
    def test_a_verdict_is_firm_where_two_outcomes_hardly_ever_change_it(self, events):
        firm, changed = firm_and_changed(events, 100)
        assert changed[firm == 0].mean() > 0.4
        assert not firm.any() if events < FIRM else changed[firm == 1].mean() < 0.25

    def test_what_is_unclear_is_not_sure_of_anything(self):
        assert Difference(0.1, -0.1, 0.3).is_firm(5)
        assert Difference(0.1, NAN, NAN).is_firm(5)
        assert not Difference(0.1, 0.09, 0.11).is_firm(99)
        assert Difference(-0.1, -0.11, -0.09).is_firm(100)
        assert not Difference(-0.1, -0.18, -0.02).is_firm(100)


class TestIntervals:
    @given(seeds, st.integers(10, 60), st.floats(-1, 1))
    def test_one_difference_is_students_with_events_against_it(self, seed, size, shift):
        values = np.random.default_rng(seed).normal(shift, 1.0, size=(size, 1))
        found = intervals(values)
        assert found.low[0] == pytest.approx(by_hand(values[:, 0], (values < 0).sum()))
        assert found.high[0] == pytest.approx(-by_hand(-values[:, 0], (values > 0).sum()))

    def test_independent_differences_are_as_wide_as_sidak(self):
        values = np.random.default_rng(0).normal(size=(20_000, 10))
        found = intervals(values)
        factor = norm.ppf((1 + 0.95**0.1) / 2)
        assert (found.high - found.mean) / sem(values) == pytest.approx(np.full(10, factor), rel=0.03)
        many = intervals(np.random.default_rng(0).normal(size=(2000, 250)))
        assert float(np.median(many.high - many.mean)) == pytest.approx(
            norm.ppf((1 + 0.95**0.004) / 2) / np.sqrt(2000), rel=0.05
        )

    def test_copies_of_a_difference_cost_nothing(self):
        values = np.random.default_rng(0).normal(size=(50, 1))
        assert intervals(np.repeat(values, 8, axis=1)).low == pytest.approx(
            np.repeat(intervals(values).low, 8), rel=0.03
        )

    def test_each_by_itself_is_the_interval_of_one(self):
        values = np.random.default_rng(0).normal(size=(50, 3))
        found = intervals(values, each=True)
        assert found.low == pytest.approx([intervals(values[:, [i]]).low[0] for i in range(3)])

    @settings(max_examples=50)
    @given(seeds, st.integers(10, 40))
    def test_declaring_events_dependent_never_narrows_them(self, seed, groups):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(groups, 120))
        member = np.concatenate([np.arange(groups), rng.integers(groups, size=size - groups)])
        # Opposite within a cluster, by which an error of clusters would come out too small.
        values = rng.standard_t(3, size=(size, 2)) * rng.choice([-1.0, 1.0], size=(size, 1))
        independent, declared = intervals(values), intervals(values, member)
        assert (declared.low <= independent.low).all()
        assert (declared.high >= independent.high).all()

    @pytest.mark.parametrize("size", [15, 100])
    def test_they_hold_all_at_once(self, size):
        rng, covered = np.random.default_rng(1), 0
        for seed in range(200):
            common = rng.normal(size=(size, 1))
            found = intervals(common + rng.normal(size=(size, 6)), seed=seed)
            covered += bool(((found.low <= 0) & (found.high >= 0)).all())
        # 95% would give 190 ± 3.1 of 200, and events against every claim make it more.
        assert covered >= 188

    def test_skewed_differences_worth_nothing_are_rarely_called_a_gain(self):
        """Mostly small gains and now and then a large loss: Student's interval says better twice as often as it may."""
        rng = np.random.default_rng(0)
        students, claimed, most = 0, 0, student.ppf(0.975, 19)
        for _ in range(1500):
            values = 1.0 - rng.exponential(size=20)
            students += values.mean() > most * sem(values)
            claimed += intervals(values[:, None]).low[0] > 0
        assert students > 0.06 * 1500
        assert claimed <= 0.04 * 1500

    def test_nothing_to_say_and_nothing_that_differs(self):
        values = np.zeros((20, 3))
        values[FEWEST_CLUSTERS - 1 :, 0] = NAN
        values[:, 2] = np.random.default_rng(0).normal(size=20)
        found = intervals(values)
        assert np.isnan(found.low).tolist() == [True, False, False]
        assert found.low[1] == found.high[1] == 0.0
        assert found.high[2] == pytest.approx(intervals(values[:, 2:]).high[0])

    @pytest.mark.parametrize(("events", "claimed"), [(10, False), (40, True)])
    def test_the_same_gain_on_every_event_needs_enough_of_them(self, events, claimed):
        found = intervals(np.full((events, 1), 0.1))
        assert bool(found.low[0] > 0) == claimed
        assert found.high[0] == pytest.approx(0.1)
