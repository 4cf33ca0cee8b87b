"""Splits: every event is scored once at most, by what has not seen it."""

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.model_selection import TimeSeriesSplit

from opinionpool.errors import ArgumentError, LearningError
from opinionpool.estimation.sampling import event_contents
from opinionpool.forecasts import Forecasts
from opinionpool.scoring.splits import group_splits, possible_folds, random_splits, time_splits
from opinionpool.tables.times import as_span

seeds = st.integers(0, 10**6)


def read_gap(gap):
    return as_span(gap, "a gap")


def generator(seed):
    return np.random.default_rng(seed)


def days(*numbers):
    return np.datetime64("2025-01-01", "us") + np.array(numbers).astype("timedelta64[D]")


def partition(splits, events):
    """Each event is scored once, and learned from in all other splits."""
    assert sorted(np.concatenate([split.test for split in splits])) == list(range(events))
    for split in splits:
        assert sorted([*split.train, *split.test]) == list(range(events))


class TestRandom:
    @given(seeds, st.lists(st.integers(0, 3), min_size=2, max_size=60), st.data())
    def test_outcomes_and_sizes_are_even(self, seed, outcomes, data):
        outcomes = np.array(outcomes)
        folds = data.draw(st.integers(2, len(outcomes)))
        keys = generator(seed + 1).integers(2**63, size=len(outcomes), dtype=np.uint64)
        splits = random_splits(outcomes, folds, generator(seed), keys)
        partition(splits, len(outcomes))
        assert len(splits) == folds
        assert np.ptp([len(split.test) for split in splits]) <= 1
        for outcome in range(4):
            assert np.ptp([(outcomes[split.test] == outcome).sum() for split in splits]) <= 1

    @given(seeds)
    def test_events_are_dealt_by_their_forecasts_whatever_their_order(self, seed):
        rng = generator(seed)
        x = rng.uniform(size=(30, 3, 3))
        x[rng.random((30, 3)) < 0.3] = np.nan
        x /= x.sum(axis=2, keepdims=True)
        x[0, 0] = 0.2, 0.3, 0.5
        f = Forecasts.from_array(x, rng.choice(list("abc"), size=30), classes="abc", experts=["ann", "bob", "cyd"])
        order = rng.permutation(30)
        keys, other = event_contents(f), event_contents(f.select_events(order).select_experts(["cyd", "ann", "bob"]))
        assert other.tolist() == keys[order].tolist()
        told = ~np.isnan(x[:, :, 0]).all(axis=1)
        assert len(np.unique(keys[told])) == told.sum()
        one = random_splits(f.outcomes, 5, generator(seed), keys)
        two = random_splits(f.outcomes[order], 5, generator(seed), keys[order])
        if told.sum() >= 29:
            for a, b in zip(one, two, strict=True):
                assert sorted(order[b.test]) == a.test.tolist()


class TestGroups:
    @given(seeds, st.integers(2, 12), st.data())
    def test_a_group_is_never_cut(self, seed, number, data):
        rng = generator(seed)
        groups = np.concatenate([np.arange(number), rng.integers(number, size=40)])
        folds = data.draw(st.integers(2, number))
        splits = group_splits(rng.integers(0, 3, size=len(groups)), groups, folds, rng)
        partition(splits, len(groups))
        assert len(splits) == folds
        for split in splits:
            assert not set(groups[split.train]) & set(groups[split.test])

    def test_large_groups_are_spread(self):
        sizes = [20, 19, 18, 3, 2, 1]
        groups = np.repeat(np.arange(6), sizes)
        splits = group_splits(np.zeros(len(groups), dtype=np.intp), groups, 3, generator(0))
        assert [len(split.test) for split in splits] == [21, 21, 21]


class TestTime:
    @given(st.integers(2, 6), st.integers(2, 6), seeds)
    def test_distinct_times_are_cut_as_scikit_learn_does(self, folds, size, seed):
        order = generator(seed).permutation(size * (folds + 1))
        found = time_splits(days(*order), folds)
        expected = list(TimeSeriesSplit(folds).split(order[:, None]))
        assert len(found) == folds
        for split, (train, test) in zip(found, expected, strict=True):
            assert sorted(order[split.train]) == train.tolist()
            assert sorted(order[split.test]) == test.tolist()

    @given(st.lists(st.integers(0, 12), min_size=2, max_size=60), st.integers(1, 8), st.integers(0, 4))
    def test_nothing_is_learned_from_the_future_or_the_gap(self, numbers, folds, gap):
        if len(set(numbers)) < 2:
            return
        times = days(*numbers)
        splits = time_splits(times, folds, np.timedelta64(gap, "D"))
        assert 1 <= len(splits) <= folds
        scored = np.concatenate([split.test for split in splits])
        assert len(set(scored)) == len(scored) < len(times)
        assert times[scored].min() > np.delete(times, scored).max()
        for split in splits:
            start = times[split.test].min()
            assert not set(times[split.test]) & set(np.delete(times, split.test))
            learned = (times < start) & (times + np.timedelta64(gap, "D") <= start)
            assert split.train.tolist() == np.flatnonzero(learned).tolist()

    @given(seeds, st.integers(2, 40), st.integers(1, 6), st.integers(0, 4))
    def test_outcomes_are_learned_from_once_they_are_known(self, seed, events, folds, gap):
        rng = generator(seed)
        answered = rng.integers(0, 20, events)
        known = answered + rng.integers(0, 30, events) * (rng.random(events) < 0.5)
        splits = time_splits(days(*answered), folds, np.timedelta64(gap, "D"), days(*known))
        alike = time_splits(days(*answered), folds)
        assert [split.test.tolist() for split in splits] == [split.test.tolist() for split in alike]
        for split in splits:
            start = min(answered[t] for t in split.test)
            expected = [t for t in range(events) if known[t] < start and known[t] + gap <= start]
            assert split.train.tolist() == expected

    def test_events_answered_at_one_time_have_no_past(self):
        assert time_splits(days(3, 3, 3), 2, known=days(3, 4, 5)) == []


@pytest.mark.parametrize(
    ("gap", "hours"),
    [(0, 0), (2, 48), (0.5, 12), ("3", 72), ("4w", 672), ("36h", 36), ("1.5 D", 36), ("90min", 1.5), ("60s", 1 / 60),
     (timedelta(days=1), 24), (np.timedelta64(1, "D"), 24)],
)  # fmt: skip
def test_gaps(gap, hours):
    assert read_gap(gap) == np.timedelta64(round(hours * 3600), "s")


@pytest.mark.parametrize("gap", ["9" * 14, "9" * 400, 10**30, timedelta.max, np.timedelta64(2**62, "s")])
def test_gaps_longer_than_history_are_only_long(gap):
    times = np.datetime64("1000-01-01", "us") + np.arange(4).astype("timedelta64[D]")
    assert read_gap(gap) > np.timedelta64(3000 * 365, "D")
    assert all(len(split.train) == 0 for split in time_splits(times, 2, read_gap(gap)))


@pytest.mark.parametrize(
    "gap",
    [
        -1, "-1d", "4 months", "", "soon", None, True, float("nan"),
        timedelta(-1), np.timedelta64("NaT", "s"), np.timedelta64(1, "Y"),
    ],
)  # fmt: skip
def test_no_gaps(gap):
    with pytest.raises(ArgumentError, match="a gap is a span of time"):
        read_gap(gap)


def test_few_units():
    notes = []
    assert possible_folds(5, 100, "events", notes) == 5
    assert notes == []
    assert possible_folds(5, 3, "events", notes) == 3
    assert [note.code for note in notes] == ["fewer-folds"]
    with pytest.raises(LearningError, match="at least 2 groups of resolved events with forecasts, and there is 1"):
        possible_folds(5, 1, "groups", [])
    with pytest.raises(ArgumentError, match="at least 2 folds"):
        possible_folds(1, 100, "events", [])
