import numpy as np
import pytest

from opinionpool.estimation.sampling import (
    Keys,
    _copies,
    content_keys,
    drawn,
    many_copies,
    size_ranks,
    spread_evenly,
    tally,
)


def random_keys(seed: int, count: int) -> Keys:
    return np.random.default_rng(seed).integers(0, 2**63, count, dtype=np.uint64) * np.uint64(2)


class TestCopies:
    @pytest.mark.parametrize("different", [1, 7, 400, 5_000])
    def test_are_numbered(self, different):
        keys = random_keys(1, different)[np.random.default_rng(2).integers(0, different, 3_000)]
        number = np.zeros(3_000, dtype=int)
        index, number_of = _copies(keys)
        number[index] = number_of
        for key in np.unique(keys):
            assert sorted(number[keys == key]) == list(range((keys == key).sum()))

    def test_none_where_all_differ(self):
        keys = np.unique(random_keys(3, 20_000))
        assert not len(_copies(np.random.default_rng(4).permutation(keys))[0])
        # Of these, the leading bits are the same.
        assert not len(_copies(np.arange(5_000, dtype=np.uint64))[0])

    def test_of_nothing(self):
        assert not len(_copies(np.zeros(0, dtype=np.uint64))[0])


class TestManyCopies:
    """By counting in places what can be counted exactly: what a sample loses in which copies are drawn together."""

    OUTCOMES = np.random.default_rng(10).choice([0, 1, -1], 60_000, p=[0.5, 0.4, 0.1])
    ROOM = np.array([500, 500, 100])

    def found(self, keys):
        return many_copies(tally(keys, self.OUTCOMES, 2), self.ROOM)

    @pytest.mark.parametrize("seed", range(5))
    def test_none(self, seed):
        assert not self.found(random_keys(seed, 60_000))

    @pytest.mark.parametrize(
        ("share", "times", "expected"),
        # They cost share * (times - 1) of what the sample tells.
        [(0.01, 2, False), (0.1, 2, True), (0.001, 10, False), (0.01, 10, True), (0.01, 300, True)],
    )
    @pytest.mark.parametrize("outcome", [0, 1, -1])
    def test_of_one_outcome(self, share, times, expected, outcome):
        keys = random_keys(11, 60_000)
        mine = np.flatnonzero(outcome == self.OUTCOMES)
        mine = mine[: max(int(share * len(mine)) // times, 1) * times].reshape(-1, times)
        keys[mine] = keys[mine[:, :1]]
        assert self.found(keys) == expected

    def test_where_all_find_room_it_does_not_matter(self):
        assert not many_copies(tally(random_keys(12, 1)[np.zeros(400, dtype=int)], np.zeros(400, int), 2), self.ROOM)

    def test_counts_are_those_of_a_histogram(self):
        keys = random_keys(13, 60_000)
        for outcome, found in zip((0, 1, -1), tally(keys, self.OUTCOMES, 2), strict=True):
            own = keys[outcome == self.OUTCOMES].astype(float)
            np.testing.assert_array_equal(found, np.histogram(own, len(found), (0.0, 2.0**64))[0])

    @pytest.mark.parametrize("share", [0.3, 0.8])
    def test_an_event_that_stands_often_is_in_the_sample_as_often(self, share):
        contents = random_keys(14, 60_000)
        same = np.random.default_rng(15).random(60_000) < share
        contents[same] = contents[0]
        counts = np.array([(outcome == self.OUTCOMES).sum() for outcome in (0, 1, -1)])
        kept = drawn(content_keys(contents, self.OUTCOMES, self.ROOM), self.OUTCOMES, counts, self.ROOM)
        for outcome, size in zip((0, 1), self.ROOM[:2], strict=True):
            drawn_here = same[kept[self.OUTCOMES[kept] == outcome]]
            assert len(drawn_here) == size
            assert abs(drawn_here.mean() - share) < 4 * np.sqrt(share * (1 - share) / size)


class TestDrawn:
    @pytest.mark.parametrize("spread", [1.0, 1e-9])
    def test_are_the_least_of_each_group(self, spread):
        keys = (random_keys(5, 4_000) * spread).astype(np.uint64)
        group, room = np.random.default_rng(6).choice(3, 4_000, p=[0.9, 0.095, 0.005]), np.array([200, 500, 100])
        expected = np.concatenate(
            [np.flatnonzero(group == g)[np.argsort(keys[group == g])][:size] for g, size in enumerate(room)]
        )
        # The last group is that of unresolved events.
        found = drawn(keys, np.where(group == 2, -1, group), np.bincount(group), room)
        assert set(found) == set(expected)
        assert (np.diff(keys[found].astype(float)) >= 0).all()

    def test_every_event_is_as_likely(self):
        outcomes, counts, room = np.zeros(200, dtype=int), np.array([200, 0]), np.array([40, 1])
        times = np.bincount(
            np.concatenate([drawn(random_keys(seed, 200), outcomes, counts, room) for seed in range(500)]),
            minlength=200,
        )
        assert times.sum() == 20_000
        assert np.abs(times - 100).max() < 5 * np.sqrt(500 * 0.2 * 0.8)


class TestSpreadEvenly:
    RNG = np.random.default_rng(9)
    # Squares of tenths, of which many are the same, and some differ by rounding.
    SIZE = (RNG.integers(0, 40, 3_000) / 10.0) ** 2
    WEIGHT = RNG.integers(1, 4, 3_000).astype(float)

    @staticmethod
    def shares(size, weight, count):
        found = np.zeros(len(size))
        kept, share = spread_evenly(size, weight, count)
        assert (np.diff(kept) > 0).all()
        found[kept] = share
        return found

    @pytest.mark.parametrize("count", [7, 64, 500, 3_000])
    def test_events_of_one_size_share_the_steps_that_fall_on_them(self, count):
        expected, below = np.zeros(3_000), 0.0
        steps = (np.arange(count) + 0.5) / count * self.WEIGHT.sum()
        for size in np.unique(self.SIZE):
            same = size == self.SIZE
            worth = self.WEIGHT[same].sum()
            # A step that falls on the end belongs to what ends there.
            steps_here = ((steps > below) & (steps <= below + worth)).sum()
            expected[same], below = steps_here * self.WEIGHT[same] / worth, below + worth
        found = self.shares(self.SIZE, self.WEIGHT, count)
        assert found == pytest.approx(expected, abs=1e-12)
        assert found.sum() == pytest.approx(count, abs=1e-9)

    def test_sizes_that_all_differ_are_drawn_at_equal_steps(self):
        size = self.RNG.permutation(3_000) + 1.0
        kept, share = spread_evenly(size, np.ones(3_000), 1_000)
        assert sorted(size[kept]) == list(range(2, 3_000, 3))
        assert (share == 1.0).all()

    def test_the_mean_is_that_of_all_to_a_step(self):
        found = self.shares(self.SIZE, self.WEIGHT, 500) @ self.SIZE / 500
        # Means over quantiles differ by no more than the range over twice the number of steps.
        assert found == pytest.approx(np.average(self.SIZE, weights=self.WEIGHT), abs=self.SIZE.max() / 1_000)

    def test_order_rounding_and_repeated_rows_move_nothing(self):
        found, order = self.shares(self.SIZE, self.WEIGHT, 500), self.RNG.permutation(3_000)
        noise = 1.0 + 1e-14 * self.RNG.standard_normal(3_000)
        moved = self.shares((self.SIZE * noise)[order], self.WEIGHT[order] / 10.0, 500)
        assert moved == pytest.approx(found[order], abs=1e-12)
        rows = np.repeat(np.arange(3_000), self.WEIGHT.astype(int))
        each = self.shares(self.SIZE[rows], np.ones(len(rows)), 500)
        assert np.bincount(rows, weights=each) == pytest.approx(found, abs=1e-12)

    def test_an_event_without_weight_has_no_part(self):
        weight = np.where(np.arange(3_000) % 3 == 0, 0.0, self.WEIGHT)
        assert 0 not in spread_evenly(self.SIZE, weight, 500)[0] % 3

    def test_ranks(self):
        expected = np.unique(self.SIZE, return_inverse=True)[1]
        np.testing.assert_array_equal(size_ranks(self.SIZE * (1.0 - 1e-15)), expected)
        assert not len(size_ranks(np.zeros(0)))
