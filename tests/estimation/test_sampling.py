import numpy as np
import pytest

from opinionpool.estimation.sampling import Draw, Keys, event_keys, name_keys, row_contents
from opinionpool.forecasts import Forecasts


def random_keys(seed: int, count: int) -> Keys:
    return np.random.default_rng(seed).integers(0, 2**63, count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


class TestDraw:
    OUTCOMES = np.random.default_rng(10).choice([0, 1, -1], 6_000, p=[0.7, 0.2, 0.1])
    ROOM = np.array([200, 200, 40])

    def drawn(self, keys, weight=None, contents=None):
        return Draw.of(keys, self.OUTCOMES, np.ones(6_000) if weight is None else weight, self.ROOM, contents)

    def test_outcomes_are_as_frequent_as_among_all_and_no_event_counts_less_than_once(self):
        found = self.drawn(random_keys(1, 6_000))
        happened, counts = self.OUTCOMES[found.positions], found.frequencies(np.ones(6_000))
        assert [(happened == g).sum() for g in (0, 1, -1)] == self.ROOM.tolist()
        ratio = counts[happened == 0].sum() / counts[happened == 1].sum()
        assert ratio == pytest.approx((self.OUTCOMES == 0).sum() / (self.OUTCOMES == 1).sum())
        assert counts.min() == pytest.approx(1.0)
        assert not found.complete

    @pytest.mark.parametrize("copied", [False, True])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_means_are_those_of_all_over_many_draws(self, copied, weighted):
        """Whatever weighs how much, and how many events are the same."""
        rng = np.random.default_rng(2)
        value, weight = rng.lognormal(size=6_000), np.ones(6_000)
        if weighted:
            weight = rng.lognormal(0.0, 1.0, 6_000)
        same = np.arange(6_000)
        if copied:
            same = np.minimum(rng.pareto(0.7, 6_000) * 20.0, 5_999.0).astype(int) * 3 + self.OUTCOMES
        value = value[same % 6_000]
        resolved = self.OUTCOMES >= 0
        expected, errors = np.average(value[resolved], weights=weight[resolved]), []
        for seed in range(60):
            contents = random_keys(seed, 6_000 * 4)[same]
            found = self.drawn(contents, weight, lambda contents=contents: contents)
            some = found.positions[self.OUTCOMES[found.positions] >= 0]
            counts = found.frequencies(weight)[: len(some)]
            errors.append(np.average(value[some], weights=counts) - expected)
        assert abs(np.mean(errors)) < 4.0 * np.std(errors) / np.sqrt(60) + 1e-12

    def test_events_of_one_key_come_together_and_are_told_by_their_contents(self):
        contents = random_keys(5, 3_000)[np.random.default_rng(6).integers(0, 3_000, 6_000)]
        keys = contents // np.uint64(2**52)
        keys[:500] = 0
        found = self.drawn(keys, contents=lambda: contents)
        inside = found.place < len(found.positions)
        for outcome in (0, 1, -1):
            mine = (outcome == self.OUTCOMES) & (keys != 0)
            assert not np.intersect1d(keys[mine & inside], keys[mine & ~inside]).size
        assert not inside[:500].any()
        for place in (0, 100):
            assert len(set(contents[found.place == place])) == 1
        assert (found.place[found.positions] == np.arange(len(found.positions))).all()

    def test_frequencies_are_as_good_as_copies(self):
        keys = random_keys(11, 6_000)
        often = np.random.default_rng(12).integers(1, 4, 6_000)
        one = self.drawn(keys, often.astype(float))
        repeated = np.repeat(keys, often)
        two = Draw.of(repeated, np.repeat(self.OUTCOMES, often), np.ones(len(repeated)), self.ROOM, lambda: repeated)
        np.testing.assert_array_equal(keys[one.positions], repeated[two.positions])
        found = two.frequencies(np.ones(len(repeated)))
        assert found == pytest.approx(one.frequencies(often.astype(float)))


class TestEventKeys:
    BASE = ((0.5, 0.25, np.nan),)

    @staticmethod
    def key(q, y=1, names=("ann", "bob", "cat"), prior=None):
        f = Forecasts.from_array(q, [y], experts=names, prior=prior)
        return int(event_keys(f)[0])

    def test_what_differs_has_other_keys(self):
        found = [
            self.key(self.BASE), self.key(self.BASE, 0), self.key([[0.5, 0.125, np.nan]]), self.key([[0.5, 0.25, 0.0]]),
            self.key([[0.375, 0.375, np.nan]]), self.key(self.BASE, prior=0.3),
        ]  # fmt: skip
        assert len(set(found)) == len(found)

    def test_events_without_forecasts_have_none(self):
        keys = event_keys(Forecasts.from_array([[0.5, np.nan], [np.nan, np.nan]], [1, 0]))
        assert keys[0] != 0
        assert keys[1] == 0


def test_grids_do_not_collide():
    """Forecasts that are all multiples of a power of two, or of a tenth."""
    keys = name_keys(["ann", "bob", "cyd", "dan", "eve"])
    for values in (np.arange(9) / 8.0, 2.0 ** -np.arange(9), np.arange(9) / 10.0):
        grid = np.array(np.meshgrid(*[values] * 5)).reshape(5, -1).T
        assert len(np.unique(row_contents(grid, keys))) == len(grid)
