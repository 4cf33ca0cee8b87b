"""What a panel is worth and who stands for others, beside simulated events, quadrature by SciPy, and brute force."""

import itertools
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

import opinionpool as op
from opinionpool import Forecasts, Panel
from opinionpool.analysis.selection import (
    Dendrogram,
    best_subset,
    gain_from,
    gain_from_one_more,
    redundant_groups,
    subset_path,
)
from opinionpool.analysis.value import (
    decision_value,
    effective_number,
    expected_auc,
    expected_brier,
    expected_score,
    hit_rate,
    known_panel,
    learned_value,
    panel_value,
)
from opinionpool.errors import AccuracyUnknownError, ArgumentError, PanelError, ProbabilityError, ShapeError
from opinionpool.pools.fit import fit_pool
from opinionpool.report.panel import together, together_lines

PRIORS = (0.5, 0.1, 0.93)


def random_panel(seed, n, **more):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((n, n + 2))
    return Panel(rng.normal(0.7, 0.5, n), root @ root.T / n, **more)


def integral(f, accuracy, prior):
    """A mean over the pooled log-odds of what happened, by adaptive quadrature."""
    s, start = np.sqrt(2 * accuracy), np.log(prior / (1 - prior))

    def one(c, happened):
        toward = (start + c) * (1 if happened else -1)
        return norm.pdf(c, accuracy if happened else -accuracy, s) * f(toward)

    ends = (-accuracy - 12 * s, accuracy + 12 * s)
    parts = [quad(one, *ends, (h,), limit=400, epsabs=1e-13)[0] for h in (True, False)]
    return prior * parts[0] + (1 - prior) * parts[1]


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("accuracy", [0.02, 0.7, 3.0, 9.0])
def test_expected_scores_are_integrals(accuracy, prior):
    score = integral(lambda x: 1 - np.logaddexp(0, -x) / np.log(2), accuracy, prior)
    brier = integral(lambda x: expit(-x) ** 2, accuracy, prior)
    hits = integral(lambda x: float(x > 0), accuracy, prior)
    assert expected_score(accuracy, prior) == pytest.approx(score, abs=1e-7)
    assert expected_brier(accuracy, prior) == pytest.approx(brier, abs=1e-9)
    assert hit_rate(accuracy, prior) == pytest.approx(hits, abs=1e-6)


def test_values_are_those_of_simulated_events():
    panel, prior, events = random_panel(1, 4), 0.3, 200_000
    x, y = panel.simulate(events, prior, seed=2)
    p = panel.pool(x, prior)
    told = panel_value(panel, prior)
    score = 1 + np.log2(np.where(y == 1, p, 1 - p))
    brier = (p - y) ** 2
    hits = (p > 0.5) == (y == 1)
    for values, expected in ((score, told.joint_score), (brier, told.joint_brier), (hits, told.joint_hit_rate)):
        assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(events)
    ranks = np.argsort(np.argsort(p)) + 1.0
    ones = y.sum()
    auc = (ranks[y == 1].sum() - ones * (ones + 1) / 2) / (ones * (events - ones))
    assert auc == pytest.approx(told.joint_auc, abs=0.004)
    for i in range(4):
        alone = panel.subset([i])
        own = panel_value(alone, prior)
        assert told.score[i] == pytest.approx(own.joint_score)
        assert told.auc[i] == pytest.approx(own.joint_auc)
        assert told.brier[i] == pytest.approx(own.joint_brier)
        assert told.hit_rate[i] == pytest.approx(own.joint_hit_rate)


def test_more_than_two_classes_have_areas_only():
    panel = Panel.exchangeable(3, correlation=0.2, accuracy=1.0, classes="abc")
    told = panel_value(panel)
    assert told.joint_auc == pytest.approx(norm.cdf(np.sqrt(3 / 1.4)))
    assert told.score is told.joint_brier is told.prior is None
    with pytest.raises(ArgumentError, match="area under the curve between two"):
        decision_value(panel, 0.5)
    assert gain_from_one_more(panel).score is None


@settings(max_examples=50)
@given(n=st.integers(1, 40), rho=st.floats(0.0, 0.99), prior=st.floats(0.05, 0.95))
def test_one_more_of_exchangeable_experts(n, rho, prior):
    panel = Panel.exchangeable(n, 0.8, rho, accuracy=0.6)
    gain = gain_from_one_more(panel, prior, rho if n == 1 else None)
    more = panel_value(Panel.exchangeable(n + 1, 0.8, rho, accuracy=0.6), prior)
    assert gain.after == pytest.approx(more.joint_accuracy)
    assert gain.score == pytest.approx(more.joint_score - panel_value(panel, prior).joint_score, abs=1e-9)
    assert effective_number(panel) == pytest.approx(n / (1 + (n - 1) * rho))


@given(seed=st.integers(0, 10_000), n=st.integers(1, 6))
def test_adding_a_certain_expert_is_the_larger_panel(seed, n):
    whole = random_panel(seed, n + 1)
    panel = whole.subset(range(n))
    sign = np.sign(whole.contrast[n])
    gain = gain_from(
        panel, float(whole.accuracy[n]), sign * whole.correlation[n, :n], float(sign * whole.calibration[n])
    )
    assert gain.before == pytest.approx(panel.joint_accuracy)
    assert gain.after == pytest.approx(whole.joint_accuracy)
    assert gain.weight == pytest.approx(sign * whole.weights[n], abs=1e-9)
    assert gain.after >= gain.before - 1e-12


UNKNOWN, KNOWN = Panel.exchangeable(3, correlation=0.2), Panel.exchangeable(3, correlation=0.2, accuracy=1.0)


@pytest.mark.parametrize(
    ("error", "told", "call"),
    [
        *((AccuracyUnknownError, None, partial(f, UNKNOWN)) for f in (panel_value, gain_from_one_more, subset_path)),
        (AccuracyUnknownError, None, partial(gain_from, UNKNOWN, 1.0, 0.2)),
        (AccuracyUnknownError, None, partial(best_subset, UNKNOWN, 2)),
        (PanelError, "no new expert can be so correlated", partial(gain_from, KNOWN, 1.0, [0.9, 0.9, -0.9])),
        (PanelError, "accuracy", partial(gain_from, KNOWN, -1.0, 0.2)),
        (PanelError, "calibration", partial(gain_from, KNOWN, 1.0, 0.2, calibration=0.0)),
        (ArgumentError, "give correlation=", partial(gain_from_one_more, KNOWN.subset([0]))),
        (ArgumentError, "a finite number from 0 to 1", partial(gain_from_one_more, KNOWN, correlation=-0.1)),
        (ArgumentError, "cost-loss", partial(decision_value, 1.0, [0.5, 1.0])),
        (ArgumentError, "accuracy", partial(expected_auc, [1.0, -0.1])),
        (ArgumentError, "accuracy", partial(expected_score, np.nan)),
        (ProbabilityError, None, partial(expected_brier, 1.0, 0.0)),
        (ProbabilityError, None, partial(hit_rate, 1.0, 1.5)),
    ],
)  # fmt: skip
def test_what_cannot_be_asked(error, told, call):
    with pytest.raises(error, match=told):
        call()


@settings(max_examples=50)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 7))
def test_the_best_subset_is_that_of_brute_force(seed, n):
    panel = random_panel(seed, n)
    for k in range(1, n + 1):
        best = max(panel.subset(each).joint_accuracy for each in combinations(range(n), k))
        found = best_subset(panel, k)
        assert found.accuracy == pytest.approx(best)
        assert panel.subset(found.experts).joint_accuracy == pytest.approx(best)
        assert found.share == pytest.approx(best / panel.joint_accuracy)
        assert found.exact


@settings(max_examples=50)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 7))
def test_one_after_the_other_each_adds_most(seed, n):
    panel = random_panel(seed, n)
    chosen = []
    for k, step in enumerate(subset_path(panel), 1):
        rest = [name for name in panel.names if name not in chosen]
        most = max(panel.subset([*chosen, name]).joint_accuracy for name in rest)
        assert step.accuracy == pytest.approx(most)
        chosen = list(step.experts)
        assert len(chosen) == k
        assert panel.subset(chosen).joint_accuracy == pytest.approx(most)
        assert step.accuracy <= best_subset(panel, k).accuracy * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore:.*one correlation of all pairs")
def test_clones_add_nothing_and_many_experts_are_chosen_one_by_one():
    r = [[1.0, 1.0, 0.2], [1.0, 1.0, 0.2], [0.2, 0.2, 1.0]]
    panel = Panel.from_features(1.0, r, accuracy=[1.0, 1.0, 0.5])
    assert [set(step.experts) for step in subset_path(panel, 2)] == [{"expert_1"}, {"expert_1", "expert_3"}]
    assert subset_path(panel)[-1].accuracy == pytest.approx(panel.joint_accuracy)
    many = Panel.from_features(1.0, 0.3, accuracy=np.linspace(0.1, 2.0, 3000))
    found = best_subset(many, 5)
    assert not found.exact
    assert found.experts[0] == "expert_3000"
    with pytest.raises(ArgumentError, match="from 1 to 3"):
        best_subset(panel, 4)
    with pytest.raises(ArgumentError, match="method"):
        best_subset(panel, 1, "best")


@pytest.mark.parametrize("prior", PRIORS)
def test_savings_are_those_of_simulated_decisions(prior):
    panel, events = random_panel(5, 3), 200_000
    x, y = panel.simulate(events, prior, seed=4)
    p = panel.pool(x, prior)
    ratio = np.array([0.05, 0.3, 0.8])
    told = decision_value(panel, ratio, prior)
    for i, c in enumerate(ratio):
        paid = np.where(p > c, c, (y == 1) * 1.0)
        assert abs(paid.mean() - told.expense[i]) < 4 * paid.std() / np.sqrt(events)
        assert told.climatology[i] == pytest.approx(min(c, prior))
        assert told.perfect[i] == pytest.approx(c * prior)
    assert ((told.value > 0) & (told.value < 1)).all()
    assert told.saving == pytest.approx(told.value * (told.climatology - told.perfect))


@pytest.mark.filterwarnings("ignore:.*one correlation of all pairs")
def test_what_was_learned_is_worth_what_new_events_show():
    rng = np.random.default_rng(8)
    told, found = [], []
    for _ in range(10):
        true = Panel.from_features(rng.uniform(0.6, 1.1, 8), 0.6, accuracy=rng.uniform(0.3, 1.5, 8))
        x, y = true.simulate(200, seed=rng)
        state = fit_pool("gaussian", Forecasts.from_array(x, y))
        x, y = true.simulate(20_000, seed=rng)
        p = state.pool(x)
        value = learned_value(state)
        told.append((value.joint_auc, value.joint_score, value.effective))
        found.append((roc_auc_score(y, p), (1 + np.log2(np.where(y == 1, p, 1 - p))).mean(), effective_number(true)))
    apart = np.mean(told, axis=0) - np.mean(found, axis=0)
    assert abs(apart[0]) < 0.01
    assert abs(apart[1]) < 0.03
    assert abs(apart[2]) < 0.3


def test_what_was_learned_of_several_classes():
    panel = Panel.exchangeable(4, correlation=0.3, accuracy=1.0, classes="abc")
    x, y = panel.simulate(300, [0.2, 0.3, 0.5], seed=9)
    f = Forecasts.from_array(x, y, classes="abc")
    for model in ("symmetric", "full"):
        state = fit_pool("gaussian", f, class_model=model)
        value = learned_value(state)
        assert value.joint_auc == pytest.approx(panel_value(panel).joint_auc, abs=0.05)
        assert value.joint_score is None
        told = together(state)
        shown = f"all 4 together, if the model holds: implied AUC between two classes {value.joint_auc:.3f}"
        assert together_lines(told)[0].startswith(shown)
    with pytest.raises(ArgumentError, match="class_model='symmetric'"):
        known_panel(state)


def test_assumptions_are_not_worth_telling():
    assert together(fit_pool("gaussian", Forecasts.from_array([[0.4, 0.6]]))) is None
    assert together(fit_pool("average", Forecasts.from_array([[0.4, 0.6]], [1]))) is None
    assert together_lines(None) == []


def test_arguments_of_another_type_are_named():
    x, y = [[0.7, 0.6], [0.2, 0.4], [0.6, 0.9]], [1, 0, 1]
    pool, f = op.GaussianPool().fit(x, y), op.Forecasts.from_array(x, y)
    for call, message in (
        (lambda: op.learned_value(pool), r"state must be of type FittedPanel.*pool\.state_"),
        (lambda: op.panel_value(pool), r"panel must be of type Panel or FullPanel.*pool\.panel_"),
        (lambda: op.compare_pools(x), "forecasts must be of type Forecasts, and this is a list; .*from_array"),
        (lambda: op.explain_event(f, "event_1", pool), r"state must be of type .*pool\.state_"),
        (lambda: op.explain_event(pool, "event_1", pool.state_), "forecasts must be of type Forecasts"),
        (lambda: op.check_model(x), "forecasts must be of type Forecasts"),
        (lambda: op.make_report({"event": []}), "forecasts must be of type Forecasts, and this is a dict"),
    ):
        with pytest.raises(op.ArgumentError, match=message):
            call()


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
