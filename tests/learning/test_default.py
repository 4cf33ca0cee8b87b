"""The default pool: it always answers, sits with the averages without data, and keeps the model's symmetries."""

import time

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from scipy.special import expit, logit

from opinionpool.forecasts import Forecasts
from opinionpool.learning import default
from opinionpool.learning.beliefs import Beliefs, ExpertBeliefs
from opinionpool.learning.duplicates import CONSTANT, FIRST, NEW, Duplicates
from opinionpool.learning.learn import learn
from opinionpool.learning.prior import Believed
from opinionpool.learning.rows import DenseContrasts
from opinionpool.model.panel import Panel
from opinionpool.model.pooling import Settings
from opinionpool.pools.fit import fit_pool

NAN = float("nan")
ABC = ("a", "b", "c")
ANY_PANEL = Believed.of(Beliefs(), ABC)
seeds = st.integers(0, 10**6)


def messy(seed, t, n, missing):
    rng = np.random.default_rng(seed)
    x = rng.choice([0, 0.01, 0.3, 0.5, 0.9, 1], size=(t, n))
    x[rng.random((t, n)) < missing] = NAN
    return x, rng.choice([0, 1, NAN], size=t)


class TestAnswers:
    def test_nothing_resolved(self):
        learned = learn(Forecasts.from_array([[0.7, 0.8], [0.2, NAN]]))
        assert learned.structure == "assumed"
        assert [note.code for note in learned.notes] == ["nothing-learned"]
        assert 0.7 < learned.pool([0.7, 0.7]) < 0.78
        assert learned.pool([NAN, NAN]) == pytest.approx(0.5)

    @pytest.mark.parametrize("n", [1, 2, 3, 10, 100, 1000])
    def test_nothing_resolved_sits_near_the_average_of_log_odds(self, n):
        learned = learn(Forecasts.from_array(np.full((1, n), 0.6)))
        assert 0.9 < logit(learned.pool(np.full(n, 0.6))) / logit(0.6) < 1.6

    @settings(max_examples=25)
    @example(450660, 10, 8, 0.8)  # one expert whose only forecast is the prior
    @given(seeds, st.sampled_from([1, 2, 3, 10, 60]), st.sampled_from([1, 3, 8]), st.sampled_from([0, 0.8]))
    def test_any_data_give_an_answer_that_keeps_the_symmetries(self, seed, t, n, missing):
        x, y = messy(seed, t, n, missing)
        learned = learn(Forecasts.from_array(x, y))
        answers = learned.pool(x)
        assert np.isfinite(learned.weights).all()
        assert ((answers > 0) & (answers < 1)).all()
        rng = np.random.default_rng(seed)
        order, columns = rng.permutation(t), rng.permutation(n)
        assert learn(Forecasts.from_array(x[order], y[order])).pool(x) == pytest.approx(answers, rel=1e-5)
        assert learn(Forecasts.from_array(x[:, columns], y)).pool(x[:, columns]) == pytest.approx(answers, rel=1e-5)
        swapped = learn(Forecasts.from_array(1 - x, 1 - y))
        assert 1 - swapped.pool(1 - x) == pytest.approx(answers, rel=1e-5, abs=1e-8)

    @settings(max_examples=10)
    @given(seeds)
    def test_external_bayesianity(self, seed):
        rng = np.random.default_rng(seed)
        prior = rng.uniform(0.1, 0.9, 30)
        x, y = Panel.exchangeable(3, correlation=0.5, accuracy=1.0).simulate(30, prior=prior, seed=seed)
        learned = learn(Forecasts.from_array(x, y), prior=prior)
        other = rng.uniform(0.1, 0.9, 30)
        moved = expit(logit(x) + (logit(other) - logit(prior))[:, None])
        shift = logit(learned.panel.pool(moved, other)) - logit(learned.panel.pool(x, prior))
        assert shift == pytest.approx(logit(other) - logit(prior), abs=1e-6)


class TestLearns:
    def test_groups_who_answer_different_events_learn_the_base_rate_alike(self):
        """Six events that happened move the answers of any group as they move those of all together."""
        rng = np.random.default_rng(0)
        x = expit(0.7 * rng.normal(size=(40, 1)) + rng.normal(size=(40, 40)))
        group, event = np.arange(40) // 10, np.arange(40) % 4
        x[group != event[:, None]] = NAN
        learned = learn(Forecasts.from_array(x, [1] * 6 + [None] * 34, classes=(0, 1)))
        one_group = np.where(group == np.arange(4)[:, None], 0.5, NAN)
        together = logit(learned.pool(np.full((1, 40), 0.5)))
        assert logit(learned.pool(one_group)) == pytest.approx(np.repeat(together, 4), abs=0.2)

    def test_much_data_overrule_what_is_believed(self):
        truth = Panel.from_features([0.7, 1.2, 0.9], 0.3, accuracy=[1.5, 0.4, 0.8], bias=[0.5, -0.5, 0.0])
        x, y = truth.simulate(20_000, prior=0.3, seed=1)
        learned = learn(Forecasts.from_array(x, y), prior=0.3)
        assert learned.structure == "default"
        z, happened = truth.simulate(20_000, prior=0.3, seed=2)

        def loss(p):
            return -np.log(np.where(happened == 1, p, 1 - p)).mean()

        assert loss(learned.pool(z)) < loss(truth.pool(z, prior=0.3)) + 0.002

    @pytest.mark.parametrize("hole", [False, True])
    def test_a_blank_expert_changes_nothing(self, hole):
        x, y = Panel.exchangeable(3, correlation=0.4, accuracy=1.0).simulate(30, seed=5)
        if hole:
            x[0, 0] = NAN
        blank = np.column_stack([x, np.full(30, NAN)])
        alone, beside = learn(Forecasts.from_array(x, y)), learn(Forecasts.from_array(blank, y))
        assert beside.pool(blank) == pytest.approx(alone.pool(x), rel=1e-12)
        assert np.array(beside.interval(blank)) == pytest.approx(np.array(alone.interval(x)), rel=1e-9)

    @pytest.mark.parametrize("hole", [False, True])
    def test_a_new_expert_is_like_the_others(self, hole):
        """Heard for the first time, it moves the answer as one more of them would, and no covariance is broken."""
        x, y = Panel.exchangeable(6, correlation=0.4, accuracy=1.0).simulate(60, seed=6)
        if hole:
            x[0, 0] = NAN
        learned = learn(Forecasts.from_array(np.column_stack([x, np.full((60, 2), NAN)]), y))
        assert np.linalg.eigvalsh(learned.panel.correlation)[0] > 0
        said = np.array([[0.7, 0.7, 0.7, 0.7, 0.7, 0.7, NAN, NAN], [0.7] * 8])
        without, with_both = logit(learned.pool(said, prior=0.5))
        assert without < with_both < 1.3 * without

    def test_thousands_of_experts_on_a_few_events(self):
        rng = np.random.default_rng(0)
        learned = learn(Forecasts.from_array(rng.random((5, 3000)), [0, 1, 1, 0, None]))
        assert learned.posterior is None
        assert np.isfinite(learned.weights).all()

    def test_clones_add_nothing(self):
        x, y = Panel.exchangeable(3, correlation=0.4, accuracy=1.0).simulate(30, seed=5)
        one, two = learn(Forecasts.from_array(x, y)), learn(Forecasts.from_array(x[:, [0, 1, 2, 1]], y))
        assert two.weights[[1, 3]] == pytest.approx([one.weights[1] / 2] * 2, rel=1e-6)
        assert two.posterior.weight_sd(4)[1] == pytest.approx(one.posterior.weight_sd(3)[1] / 2, rel=1e-6)
        assert two.members.follow[[1, 3]] == pytest.approx(one.members.follow[1] / 2)
        assert two.pool(x[:, [0, 1, 2, 1]]) == pytest.approx(one.pool(x), rel=1e-6)
        assert np.array(two.interval(x[:, [0, 1, 2, 1]])) == pytest.approx(np.array(one.interval(x)), rel=1e-6)
        assert [note.code for note in two.notes] == ["clones"]

    @pytest.mark.parametrize("digits", [1, 2])
    def test_calibration_and_accuracy_of_who_rounds_are_about_those_before_rounding(self, digits):
        rng = np.random.default_rng(3)
        y = rng.integers(0, 2, 1000)
        q = expit((2 * y - 1)[:, None] * 1.3 + rng.normal(0, 1.2, (1000, 3)))
        rounded = q.round(digits)
        assert (rounded == 0).any()
        exact, tenths = (learn(Forecasts.from_array(each, y)).marginal for each in (q, rounded))
        assert tenths.calibration == pytest.approx(exact.calibration, rel=0.1)
        assert tenths.accuracy == pytest.approx(exact.accuracy, rel=0.1)

    @pytest.mark.parametrize("resolved", [0, 1, 20])
    def test_one_forecast_that_repeats_the_prior_counts_like_one_beside_it(self, resolved):
        x, y = Panel.exchangeable(3, correlation=0.4, accuracy=1.0).simulate(30, seed=6)
        y = np.where(np.arange(30) < resolved, y, np.nan)

        def answer(forecast):
            once = np.where(np.arange(30) == 0, forecast, np.nan)
            return learn(Forecasts.from_array(np.column_stack([x, once]), y), prior=0.5).pool([*x[1], forecast])

        least, exactly, most = (answer(forecast) for forecast in (0.4999, 0.5, 0.5001))
        assert least < exactly < most < least + 1e-3

    def test_an_expert_assessed_by_name_keeps_a_weight_whatever_the_forecasts(self):
        x = np.column_stack([[0.3, 0.6, 0.8], [0.6] * 3])
        assessed = Beliefs(experts={"expert_2": ExpertBeliefs(auc=0.9)})
        for beliefs, counts in ((Beliefs(), False), (assessed, True)):
            assert (learn(Forecasts.from_array(x), prior=0.5, beliefs=beliefs).weights[1] > 0) == counts

    def test_three_classes(self):
        truth = Panel([1.0, 1.5], [[2.0, 0.8], [0.8, 3.0]], classes="abc")
        x, y = truth.simulate(3000, prior=[0.5, 0.3, 0.2], seed=3)
        learned = learn(Forecasts.from_array(x, y, classes="abc"), prior=[0.5, 0.3, 0.2])
        z, happened = truth.simulate(5000, prior=[0.5, 0.3, 0.2], seed=4)
        code = np.searchsorted(["a", "b", "c"], happened)

        def loss(p):
            return -np.log(p[np.arange(len(code)), code]).mean()

        assert loss(learned.pool(z)) < loss(truth.pool(z, prior=[0.5, 0.3, 0.2])) + 0.01

    @pytest.mark.parametrize("structure", [(-1.0, 0.0), (1.0, -4.0), (1.0, 6.0)])
    def test_contrary_or_heavily_biased_experts_are_put_right(self, structure):
        """Reversed or shifted log-odds carry the same information, so the pool should lose nothing."""
        turn, shift = structure
        truth = Panel.exchangeable(5, correlation=0.4, accuracy=1.5)
        x, y = truth.simulate(1500, prior=0.3, seed=8)
        z, happened = truth.simulate(3000, prior=0.3, seed=9)

        def loss(train, test):
            p = learn(Forecasts.from_array(train, y)).pool(test)
            return -np.log(np.where(happened == 1, p, 1 - p)).mean()

        def moved(q):
            return expit(turn * logit(q) + shift)

        assert loss(moved(x), moved(z)) < loss(x, z) + 0.015

    @pytest.mark.parametrize("order", [[0, 1], [1, 0]])
    def test_when_all_always_say_the_same_the_prior_stays(self, order):
        x = np.tile([0.7, 0.2], (20, 1))[:, order]
        learned = learn(Forecasts.from_array(x, np.arange(20) % 2))
        assert learned.weights.tolist() == [0, 0]
        assert learned.pool(x[0]) == pytest.approx(0.5)

    def test_common_correlation_does_not_grow_with_the_classes(self):
        for k in (2, 3, 4):
            truth = Panel.exchangeable(6, correlation=0.3, accuracy=1.0, classes=range(k))
            x, y = truth.simulate(3000, prior=0.5 if k == 2 else np.full(k, 1 / k), seed=k)
            x[np.arange(3000), np.arange(3000) % 6] = NAN
            learned = learn(Forecasts.from_array(x, y, classes=range(k)))
            assert learned.marginal.correlation == pytest.approx(0.3, abs=0.05)

    def test_panel_answers_as_the_regression_does(self):
        """On complete events the panel is the regression, whatever the sign and size of the weights."""
        for seed in range(5):
            x, y = Panel([1.0, -0.5, 0.2], np.diag([2.0, 1.0, 3.0]), bias=[0.5, 2.0, -1.0]).simulate(60, seed=seed)
            contrasts, reference = logit(np.clip(x, 1e-4, 1 - 1e-4))[..., None], np.zeros((60, 1))
            data = DenseContrasts(contrasts=contrasts, reference=reference, outcomes=y, weight=np.ones(60), experts=ABC)
            found = default.default_fit(data, ANY_PANEL)
            panel = Panel.from_parts(found.parts, found.bias, settings=Settings(1e-4, 1e-12, found.extremes))
            u = found.extremes.believed(contrasts) - found.extremes.centre
            direct = (u[..., 0] - found.bias[:, 0] + found.extremes.centre[:, 0]) @ panel.weights
            assert logit(panel.pool(x)) == pytest.approx(direct, abs=1e-6)


class TestOneOutcome:
    @pytest.mark.parametrize("n", [40, 160])
    def test_one_surprise_moves_the_probabilities_of_others_by_less_than_1_in_n(self, n):
        """Three experts who agree on n events and are right, except about the first, which they called 78% likely."""
        rng = np.random.default_rng(7)
        level = rng.choice([-1.0, 1.0], size=n) * rng.uniform(2.0, 9.0, size=n)
        level[:2] = 1.27, -2.0
        y = (level > 0).astype(float)
        y[0] = 0.0
        x = expit(level[:, None] + 0.1 * rng.normal(size=(n, 3)))
        answers = []
        for first in (0.0, NAN):
            y[0] = first
            answers.append(learn(Forecasts.from_array(x, y, classes=[0, 1])).pool(x))
        assert n * np.abs(answers[1] - answers[0]).mean() < 1.0


@pytest.mark.parametrize("free", [1, 2])
@pytest.mark.parametrize("in_cells", [False, True])
def test_the_same_forecasts_on_the_same_events(free, in_cells):
    """By comparing all with all."""
    rng = np.random.default_rng(free)
    t, n = 3 * FIRST, 40
    base = rng.choice([-1.0, 0.0, 1.0, 2.0], (t, 6, free))
    base[rng.random((t, 6)) < 0.2] = np.nan
    q = base[:, rng.integers(0, 6, n)]
    # Some differ late, in a forecast or in the event that it is on; one never changes, one is silent.
    for i in range(0, n, 4):
        known = np.flatnonzero(~np.isnan(q[:, i, 0]))
        q[known[-1], i] += i % 3
    late = np.flatnonzero(~np.isnan(q[:, 1, 0]))[-1]
    q[[late, late - 1], 1] = q[[late - 1, late], 1]
    q[:, 5], q[:, 6] = 0.5, np.nan
    q[:, 7] = np.where(np.arange(t)[:, None] < 4, q[:, 7], np.nan)
    q[:, 8] = q[:, 7]
    names = tuple(map(str, range(n)))
    if in_cells:
        event, expert = np.nonzero(~np.isnan(q[..., 0]))
        found = Duplicates.among_cells(event, expert, q[event, expert], names)
    else:
        found = Duplicates.among(q, names)
    assert found.source[5] == CONSTANT
    assert found.source[6] == NEW
    # On fewer than five events nobody repeats anybody.
    assert found.source[7] != found.source[8]
    whole = [i for i in range(n) if i not in (5, 6, 7, 8)]
    for i in whole:
        for j in whole:
            assert (found.source[i] == found.source[j]) == np.array_equal(q[:, i], q[:, j], equal_nan=True)
    np.testing.assert_array_equal(found.source[found.first], np.arange(len(found.first)))
    assert 6 < len(found.first) < 30


def test_thousands_of_copies_and_constant_experts_take_no_time():
    """Copies share one weight without a matrix of all pairs of experts, whoever else is constant or new."""
    rng = np.random.default_rng(0)
    q = np.round(rng.random((5, 2000)) * 3) / 3
    q[rng.random(q.shape) < 0.05] = np.nan
    q[:, 0] = np.nan
    forecasts = Forecasts.from_array(q, [0, 1, 0, 1, 1])
    start = time.process_time()
    learned = fit_pool("gaussian", forecasts)
    learned.pool(np.where(rng.random((50, 2000)) < 0.1, np.nan, 0.3))
    assert time.process_time() - start < 2.0
    same = np.flatnonzero(Duplicates.among(q[..., None], forecasts.experts).source == 0)
    assert len(same) > 1
    np.testing.assert_allclose(learned.weights[same], learned.weights[same[0]], rtol=1e-12)
