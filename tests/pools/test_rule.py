"""The plain functions of the pools against worked numbers, brute force and the properties that define them."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from scipy.special import logit
from scipy.stats import gmean, trim_mean

from opinionpool.errors import ArgumentError, ProbabilityError, ShapeError
from opinionpool.pools.registry import POOLS

NAN = float("nan")

# Every function, with parameters that are not their defaults where it has any; n experts.
FUNCTIONS = {
    "average": POOLS["average"].pool,
    "linear": lambda q, **s: POOLS["linear"].pool(q, weights=1.0 + np.arange(experts(q, s)), **s),
    "geometric": lambda q, **s: POOLS["geometric"].pool(q, weights=1.0 + np.arange(experts(q, s)), **s),
    "median": POOLS["median"].pool,
    "recent-median": POOLS["recent-median"].pool,
    "trimmed": lambda q, **s: POOLS["trimmed"].pool(q, trim=0.15, **s),
    "independent": POOLS["independent"].pool,
    "log": lambda q, **s: POOLS["log"].pool(q, weights=0.9 - 0.4 * np.arange(experts(q, s)), **s),
    "extremized": POOLS["extremized"].pool,
    "recalibrated": lambda q, **s: POOLS["recalibrated"].pool(q, slope=0.7, **s),
    "beta-linear": lambda q, **s: POOLS["beta-linear"].pool(q, a=2.0, b=2.0, **s),
}
# For two classes only.
BINARY = {"beta-linear"}
GENERAL = {name: function for name, function in FUNCTIONS.items() if name not in BINARY}
ANONYMOUS = ["average", "median", "trimmed", "independent", "extremized", "recalibrated", "beta-linear"]
MEANS = ["average", "linear", "geometric", "median", "trimmed"]

general = pytest.mark.parametrize("pool", list(GENERAL))
every = pytest.mark.parametrize("pool", list(FUNCTIONS))
# Enough for each of many pools.
few = settings(max_examples=25)
moderate = st.floats(0.02, 0.98)
panels = st.integers(1, 7).flatmap(lambda n: hnp.arrays(float, n, elements=moderate))
gappy = st.integers(1, 7).flatmap(lambda n: hnp.arrays(float, n, elements=moderate | st.just(NAN)))
raw = st.integers(1, 7).flatmap(lambda n: hnp.arrays(float, n, elements=st.floats(0, 1)))


def experts(q, settings):
    return np.shape(q)[-1 if settings.get("classes", 2) == 2 else -2]


def rows_over_classes(q):
    return q / q.sum(axis=-1, keepdims=True)


class TestWorkedNumbers:
    def test_three_independent_experts_count_the_prior_once(self):
        assert POOLS["independent"].pool([0.2, 0.2, 0.2], prior=0.1) == pytest.approx(0.55862, abs=5e-6)
        odds = 0.25**3 / (1 / 9) ** 2
        assert POOLS["independent"].pool([0.2, 0.2, 0.2], prior=0.1) == pytest.approx(odds / (1 + odds), rel=1e-13)

    def test_geometric_mean_is_that_of_odds(self):
        q = np.array([0.9, 0.6, 0.1])
        assert POOLS["geometric"].pool(q) == pytest.approx(0.53374, abs=5e-6)
        assert POOLS["log"].pool(q) == pytest.approx(0.53374, abs=5e-6)
        assert POOLS["average"].pool(q) == pytest.approx(1.6 / 3, rel=1e-14)
        assert POOLS["geometric"].pool(1 - q) == pytest.approx(1 - POOLS["geometric"].pool(q), abs=1e-12)
        assert POOLS["geometric"].pool(1 - q) == pytest.approx(0.46626, abs=5e-6)

    @pytest.mark.parametrize(("said", "answer"), [(0.01, 1e-8), (0.99, 1 - 1e-8)])
    def test_two_hundred_independent_experts_do_not_overflow(self, said, answer):
        assert POOLS["independent"].pool(np.full(200, said)) == answer

    def test_experts_who_each_rule_out_another_class(self):
        q = [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]]
        for function in GENERAL.values():
            p = function(q, classes=3)
            assert p.sum() == pytest.approx(1, abs=1e-15)
        for function in (POOLS["log"].pool, POOLS["geometric"].pool, POOLS["average"].pool, POOLS["independent"].pool):
            assert function(q, classes=3) == pytest.approx(np.full(3, 1 / 3), abs=1e-15)

    def test_three_classes_are_pooled_together(self):
        p = POOLS["log"].pool([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]], classes=3)
        assert p == pytest.approx([0.36285, 0.27429, 0.36285], abs=5e-6)

    def test_recalibration_and_weights_are_about_the_prior(self):
        q = np.array([0.3, 0.6, 0.7])
        contrast = logit(q) - logit(0.4)
        pooled = POOLS["recalibrated"].pool(q, intercept=0.3, slope=0.8, prior=0.4)
        assert logit(pooled) == pytest.approx(logit(0.4) + 0.3 + 0.8 * contrast.mean(), rel=1e-12)
        w = np.array([1.2, -0.3, 0.5])
        pooled = POOLS["log"].pool(q, weights=w, intercept=-0.2, prior=0.4)
        assert logit(pooled) == pytest.approx(logit(0.4) - 0.2 + w @ contrast, rel=1e-12)


class TestBetaLinear:
    q = np.random.default_rng(2).uniform(0.01, 0.99, (50, 4))
    w = np.array([0.4, 0.1, 0.3, 0.2])

    @pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (2.0, 2.0), (0.6, 1.7), (5.0, 3.0)])
    def test_it_is_a_distribution_function_of_the_linear_pool(self, a, b):
        found = POOLS["beta-linear"].pool(self.q, weights=self.w, a=a, b=b)
        assert found == pytest.approx(stats.beta.cdf(self.q @ self.w, a, b), rel=1e-10)

    def test_neither_end_is_lost_to_rounding(self):
        assert POOLS["beta-linear"].pool([1.0], a=60, b=60, prior=0.5) == 1 - 1e-8
        assert POOLS["beta-linear"].pool([0.0], a=1e5, b=1e5, prior=0.5) == 1e-8
        p = POOLS["beta-linear"].pool([1 - 1e-4], a=3, b=3, base_rate=1e-6, pool_floor=1e-300)
        tail = stats.beta.cdf(1e-4, 3, 3)
        assert p / (1 - p) == pytest.approx((1 - tail) / tail * 1e-6 / (1 - 1e-6), rel=1e-9)


class TestTrimmedMeans:
    @pytest.mark.parametrize(("n", "trim"), [(10, 0.1), (20, 0.25), (8, 0.25), (5, 0.2), (7, 0.0)])
    def test_whole_forecasts_are_trimmed_as_usual(self, n, trim):
        q = np.random.default_rng(n).uniform(0.01, 0.99, (4, n))
        assert POOLS["trimmed"].pool(q, trim=trim) == pytest.approx(trim_mean(q, trim + 1e-9, axis=1), rel=1e-13)

    @given(panels, st.floats(0.0, 0.45))
    def test_it_is_the_mean_of_the_middle_of_the_quantile_function(self, q, trim):
        level = trim + (1 - 2 * trim) * (np.arange(20000) + 0.5) / 20000
        middle = np.quantile(q, level, method="inverted_cdf").mean()
        assert POOLS["trimmed"].pool(q, trim=trim) == pytest.approx(middle, abs=2e-4)

    @given(gappy.filter(lambda q: not np.isnan(q).all()))
    def test_a_half_is_the_median(self, q):
        assert POOLS["median"].pool(q) == pytest.approx(np.nanmedian(q), rel=1e-12)
        assert POOLS["trimmed"].pool(q, trim=0.5) == pytest.approx(np.nanmedian(q), rel=1e-12)

    def test_classes_are_trimmed_one_by_one_and_rescaled(self):
        q = rows_over_classes(np.random.default_rng(1).uniform(0.1, 1, (10, 3)))
        one_by_one = trim_mean(q, 0.1, axis=0)
        assert POOLS["trimmed"].pool(q, trim=0.1, classes=3) == pytest.approx(one_by_one / one_by_one.sum(), rel=1e-12)
        one_by_one = np.median(q, axis=0)
        assert POOLS["median"].pool(q, classes=3) == pytest.approx(one_by_one / one_by_one.sum(), rel=1e-12)


class TestManyClasses:
    q = rows_over_classes(np.random.default_rng(5).uniform(0.05, 1, (6, 4, 3)))
    prior = np.array([0.2, 0.5, 0.3])
    w = np.array([0.4, 0.1, 0.3, 0.2])

    def test_linear(self):
        assert POOLS["linear"].pool(self.q, weights=self.w, classes=3) == pytest.approx(
            np.einsum("n,tnk->tk", self.w, self.q)
        )

    def test_geometric(self):
        product = gmean(self.q, axis=1, weights=np.broadcast_to(self.w[:, None], self.q.shape[1:]))
        assert POOLS["geometric"].pool(self.q, weights=self.w, classes=3) == pytest.approx(
            rows_over_classes(product), rel=1e-12
        )

    def test_independent(self):
        product = self.prior * np.prod(self.q / self.prior, axis=1)
        found = POOLS["independent"].pool(self.q, prior=self.prior, classes=3)
        assert found == pytest.approx(rows_over_classes(product), rel=1e-12)

    def test_log_and_recalibrated(self):
        contrast = np.log(self.q / self.prior)
        a = np.array([0.1, -0.3, 0.5])
        w = np.array([0.4, -0.1, 0.9, 0.2])
        wanted = self.prior * np.exp(a + np.einsum("n,tnk->tk", w, contrast))
        found = POOLS["log"].pool(self.q, weights=w, intercept=a, prior=self.prior, classes=3)
        assert found == pytest.approx(rows_over_classes(wanted), rel=1e-12)
        assert POOLS["log"].pool(self.q, weights=w, intercept=a + 7, prior=self.prior, classes=3) == pytest.approx(
            found, rel=1e-12
        )
        wanted = self.prior * np.exp(a + 1.3 * contrast.mean(axis=1))
        found = POOLS["recalibrated"].pool(self.q, intercept=a, slope=1.3, prior=self.prior, classes=3)
        assert found == pytest.approx(rows_over_classes(wanted), rel=1e-12)

    def test_base_rates(self):
        base = np.array([0.6, 0.1, 0.3])
        for function in GENERAL.values():
            plain = function(self.q, prior=self.prior, classes=3)
            moved = function(self.q, prior=self.prior, base_rate=base, classes=3)
            assert moved == pytest.approx(rows_over_classes(plain * base / self.prior), rel=1e-10)

    @general
    def test_the_order_of_the_classes_does_not_matter(self, pool):
        for order in map(list, itertools.permutations(range(3))):
            moved = FUNCTIONS[pool](self.q[..., order], prior=self.prior[order], classes=3)
            plain = FUNCTIONS[pool](self.q, prior=self.prior, classes=3)
            assert moved == pytest.approx(plain[:, order], rel=1e-10)

    @general
    def test_missing_forecasts(self, pool):
        q = self.q.copy()
        q[0, 1], q[1] = NAN, NAN
        found = FUNCTIONS[pool](q, prior=self.prior, classes=3)
        assert found[1] == pytest.approx(self.prior, rel=1e-14)
        assert found[2:] == pytest.approx(FUNCTIONS[pool](self.q, prior=self.prior, classes=3)[2:], rel=1e-14)
        q[0, 1, 0] = 0.5
        with pytest.raises(ShapeError, match="every class or for none"):
            FUNCTIONS[pool](q, prior=self.prior, classes=3)


class TestProperties:
    @given(raw, st.floats(0.01, 0.99), st.data())
    def test_a_linear_pool_stays_inside_the_range_of_the_experts(self, q, prior, data):
        w = data.draw(hnp.arrays(float, len(q), elements=st.floats(0, 5)))
        assume(w.sum() > 1e-3)
        floored = np.clip(q, min(1e-4, prior / 100), 1 - min(1e-4, (1 - prior) / 100))
        low, high = floored.min(), floored.max()
        for p in (
            POOLS["linear"].pool(q, weights=w, prior=prior),
            *(FUNCTIONS[pool](q, prior=prior) for pool in MEANS),
        ):
            assert low - 1e-12 <= p <= high + 1e-12

    @every
    @few
    @given(q=gappy, prior=st.floats(0.001, 0.999), base_rate=st.none() | st.floats(0.01, 0.99))
    def test_complements_are_answered_with_complements(self, pool, q, prior, base_rate):
        other = None if base_rate is None else 1 - base_rate
        p = FUNCTIONS[pool](q, prior=prior, base_rate=base_rate)
        assert FUNCTIONS[pool](1 - q, prior=1 - prior, base_rate=other) == pytest.approx(1 - p, abs=1e-11)

    @pytest.mark.parametrize("function", [POOLS["linear"].pool, POOLS["geometric"].pool, POOLS["log"].pool])
    @few
    @given(q=panels, seed=st.integers(0, 99))
    def test_experts_may_change_places_with_their_weights(self, function, q, seed):
        rng = np.random.default_rng(seed)
        w, order = rng.uniform(0.1, 2, len(q)), rng.permutation(len(q))
        assert function(q[order], weights=w[order], prior=0.3) == pytest.approx(
            function(q, weights=w, prior=0.3), abs=1e-12
        )

    @pytest.mark.parametrize("pool", ANONYMOUS)
    @few
    @given(q=gappy)
    def test_those_present_are_pooled_as_if_they_were_all(self, pool, q):
        here = q[~np.isnan(q)]
        assume(len(here))
        assert FUNCTIONS[pool](q, prior=0.3) == pytest.approx(FUNCTIONS[pool](here, prior=0.3), abs=1e-12)

    @pytest.mark.parametrize("function", [POOLS["linear"].pool, POOLS["geometric"].pool])
    @few
    @given(q=gappy)
    def test_those_present_keep_their_weights_relative_to_each_other(self, function, q):
        here = ~np.isnan(q)
        assume(here.any())
        w = 1.0 + np.arange(len(q))
        assert function(q, weights=w, prior=0.3) == pytest.approx(
            function(q[here], weights=w[here], prior=0.3), abs=1e-12
        )

    @given(gappy, st.floats(0.05, 0.95))
    def test_a_missing_expert_of_the_logarithmic_pool_repeats_the_prior(self, q, prior):
        assume(not np.isnan(q).all())
        filled = np.where(np.isnan(q), prior, q)
        w = 0.9 - 0.4 * np.arange(len(q))
        assert POOLS["log"].pool(q, weights=w, intercept=0.2, prior=prior) == pytest.approx(
            POOLS["log"].pool(filled, weights=w, intercept=0.2, prior=prior), abs=1e-12
        )

    @every
    @few
    @given(n=st.integers(1, 5), prior=st.floats(1e-9, 1 - 1e-9), base_rate=st.none() | st.floats(1e-6, 1 - 1e-6))
    def test_nobody_answers_with_the_prior(self, pool, n, prior, base_rate):
        p = FUNCTIONS[pool](np.full(n, NAN), prior=prior, base_rate=base_rate)
        assert p == pytest.approx(prior if base_rate is None else base_rate, rel=1e-9)

    @every
    @few
    @given(q=raw, prior=st.floats(1e-6, 1 - 1e-6))
    def test_answers_stay_above_their_floor(self, pool, q, prior):
        p = FUNCTIONS[pool](q, prior=prior)
        assert min(1e-8, prior) <= p <= 1 - min(1e-8, 1 - prior) * (1 - 1e-6)

    @every
    def test_many_events_are_pooled_as_each_alone(self, pool):
        rng = np.random.default_rng(3)
        q = rng.uniform(0, 1, (40, 50, 40))
        q[rng.random(q.shape) < 0.3] = NAN
        prior = rng.uniform(0.1, 0.9, (40, 50))
        p = FUNCTIONS[pool](q, prior=prior)
        assert p.shape == (40, 50)
        for where in [(0, 0), (17, 3), (39, 49)]:
            assert FUNCTIONS[pool](q[where], prior=prior[where]) == pytest.approx(p[where], rel=1e-13)


class TestInput:
    def test_an_expert_with_all_the_weight_is_missing(self):
        assert POOLS["linear"].pool([NAN, 0.2, 0.6], weights=[1.0, 0.0, 0.0]) == pytest.approx(0.4, rel=1e-13)
        assert POOLS["geometric"].pool([NAN, 0.2, 0.8], weights=[1.0, 0.0, 0.0]) == pytest.approx(0.5, rel=1e-13)

    def test_floors_are_settable(self):
        assert POOLS["average"].pool([0.0], floor=0.01, prior=0.5) == pytest.approx(0.005)
        assert POOLS["average"].pool([0.0], floor=1e-9, pool_floor=1e-3) == pytest.approx(1e-3)
        with pytest.raises(ProbabilityError, match="floor"):
            POOLS["average"].pool([0.2], floor=0.0)

    def test_no_events(self):
        assert POOLS["average"].pool(np.empty((0, 3))).shape == (0,)
        assert POOLS["average"].pool(np.empty((0, 2, 3)), classes=3).shape == (0, 3)

    @pytest.mark.parametrize(
        ("call", "error", "told"),
        [
            (lambda: POOLS["linear"].pool([0.2, 0.3], weights=[1.0]), ShapeError,
             "2 experts need as many weights, and there are 1"),
            (lambda: POOLS["log"].pool([0.2, 0.3], weights=[1, 2, 3]), ShapeError, "and there are 3"),
            (lambda: POOLS["linear"].pool([0.2, 0.3], weights=[1.5, -0.5]), ArgumentError, "at least 0"),
            (lambda: POOLS["geometric"].pool([0.2, 0.3], weights=[0.0, 0.0]), ArgumentError, "one of them above it"),
            (lambda: POOLS["log"].pool([0.2, 0.3], weights=[NAN, 1.0]), ArgumentError, "finite"),
            (lambda: POOLS["log"].pool([0.2, 0.3], intercept=[0.1, 0.2]), ShapeError, "intercept"),
            (lambda: POOLS["recalibrated"].pool([0.2], slope=np.inf), ArgumentError, "slope"),
            (lambda: POOLS["beta-linear"].pool([0.2], a=0.0), ArgumentError, "above 0"),
            (lambda: POOLS["beta-linear"].pool([[0.2, 0.5, 0.3]], classes=3), ArgumentError, "two classes"),
            (lambda: POOLS["trimmed"].pool([0.2, 0.3], trim=0.6), ArgumentError, "0 to 0.5"),
            (lambda: POOLS["extremized"].pool([0.2, 0.3], factor=-1), ArgumentError, "at least 0"),
            (lambda: POOLS["average"].pool([20, 30]), ProbabilityError, "percentage"),
            (lambda: POOLS["average"].pool([0.2, 0.3], prior=1.0), ProbabilityError, "prior"),
            (lambda: POOLS["average"].pool([0.2, 0.3], base_rate=0.0), ProbabilityError, "base rate"),
            (lambda: POOLS["average"].pool(0.3), ShapeError, "axis of experts"),
            (lambda: POOLS["average"].pool([]), ShapeError, "at least one"),
            (lambda: POOLS["average"].pool([0.2, 0.3], classes=3), ShapeError, "axis of experts"),
            (lambda: POOLS["average"].pool([[0.2, 0.3]], classes=3), ShapeError, "3 classes"),
        ],
    )  # fmt: skip
    def test_errors_say_what_is_wrong(self, call, error, told):
        with pytest.raises(error, match=told):
            call()


def test_recent_median_is_that_of_metaculus():
    rng = np.random.default_rng(1)
    for n in (1, 2, 5, 8):
        q, ages = rng.random((6, n)), rng.permutation(60)[: 6 * n].reshape(6, n).astype(float) if n * 6 <= 60 else None
        found = POOLS["recent-median"].pool(q, ages=ages)
        for row, age, answer in zip(q, ages, found, strict=True):
            # The oldest first; the value at which half of the weight is reached.
            weight = np.exp(np.sqrt(np.arange(1, n + 1)) - np.sqrt(n))
            p = row[np.argsort(-age)]
            order = np.argsort(p)
            reached = np.cumsum(weight[order]) / weight.sum()
            assert answer == pytest.approx(p[order][np.argmax(reached >= 0.5)], rel=1e-12)
    alike = POOLS["recent-median"].pool([[0.2, 0.6, NAN, 0.9, 0.7]], ages=[[3.0, 3.0, 3.0, 3.0, 3.0]])
    assert alike == pytest.approx([0.65])
    of_classes = POOLS["recent-median"].pool([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]], ages=[9.0, 0.0], classes=3)
    assert of_classes == pytest.approx([0.6, 0.2, 0.2])
