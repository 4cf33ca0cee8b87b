"""The panel, and how far extremes are believed: against mpmath, the figures of model.md, brute force, symmetries."""

import math
import warnings

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionpool.errors import (
    AccuracyUnknownError,
    ArgumentError,
    ExpertError,
    OpinionPoolWarning,
    PanelError,
    ProbabilityError,
    ShapeError,
)
from opinionpool.forecasts import Forecasts
from opinionpool.model.contrasts import Extremes
from opinionpool.model.panel import Panel
from opinionpool.model.pooling import Settings
from opinionpool.pools.fit import fit_pool


@pytest.fixture(scope="module", autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield


def logit(p):
    return np.log(p) - np.log1p(-np.asarray(p))


def random_panel(seed, n=4, absolute=True):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n + 3))
    sigma = root @ root.T / n
    mu = rng.normal(size=n)
    return Panel(mu, sigma, bias=rng.normal(size=n))


seeds = st.integers(0, 10**6)


def exact_features(mu, sigma):
    mu, sigma = mpmath.matrix(mu.tolist()), mpmath.matrix(sigma.tolist())
    n = len(mu)
    weights = 2 * mpmath.lu_solve(sigma, mu)
    kappa = [2 * mu[i] / sigma[i, i] for i in range(n)]
    accuracy = [kappa[i] * mu[i] for i in range(n)]
    r = [[sigma[i, j] / mpmath.sqrt(sigma[i, i] * sigma[j, j]) for j in range(n)] for i in range(n)]
    joint = sum(weights[i] * mu[i] for i in range(n))
    return weights, kappa, accuracy, r, joint


@pytest.mark.parametrize("seed", range(8))
def test_features_of_parameters_against_high_precision(seed):
    panel = random_panel(seed)
    weights, kappa, accuracy, r, joint = exact_features(panel.contrast, panel.covariance)
    close = {"rel": 1e-12, "abs": 1e-13}
    assert panel.weights == pytest.approx([float(w) for w in weights], **close)
    assert panel.calibration == pytest.approx([float(k) for k in kappa], **close)
    assert panel.accuracy == pytest.approx([float(a) for a in accuracy], **close)
    assert panel.relative_accuracy == pytest.approx([float(a / accuracy[0]) for a in accuracy], **close)
    assert panel.correlation == pytest.approx(np.array(r, dtype=float), **close)
    assert panel.joint_accuracy == pytest.approx(float(joint), **close)
    assert panel.prior_weight == pytest.approx(float(1 - sum(weights)), **close)


@pytest.mark.parametrize("seed", range(8))
def test_parameters_of_features_against_high_precision(seed):
    rng = np.random.default_rng(seed)
    n = 5
    root = rng.normal(size=(n, n + 3))
    r = np.corrcoef(root)
    kappa, m, accuracy = rng.uniform(0.3, 2, n), rng.uniform(0.2, 3, n), 0.8
    panel = Panel.from_features(kappa, r, relative_accuracy=m, accuracy=accuracy)
    mu = [mpmath.mpf(accuracy) * m[i] / m[0] / kappa[i] for i in range(n)]
    sd = [mpmath.sqrt(2 * mpmath.mpf(accuracy) * m[i] / m[0]) / kappa[i] for i in range(n)]
    assert panel.contrast == pytest.approx([float(x) for x in mu], rel=1e-12)
    sigma = np.array([[float(r[i, j] * sd[i] * sd[j]) for j in range(n)] for i in range(n)])
    assert panel.covariance == pytest.approx(sigma, rel=1e-12, abs=1e-14)
    # Theorem 3.1 with the exponent of model.md, without any accuracy.
    inverse = mpmath.matrix(r.tolist()) ** -1
    theorem = [
        kappa[j] / mpmath.sqrt(m[j]) * sum(mpmath.sqrt(m[i]) * inverse[i, j] for i in range(n)) for j in range(n)
    ]
    relative = Panel.from_features(kappa, r, relative_accuracy=m)
    assert relative.weights == pytest.approx([float(w) for w in theorem], rel=1e-11)
    assert panel.weights == pytest.approx(relative.weights, rel=1e-12)


@pytest.mark.filterwarnings("ignore:.*one correlation of all pairs")
@given(seeds, st.integers(2, 12))
def test_common_correlation_agrees_with_its_matrix(seed, n):
    rng = np.random.default_rng(seed)
    rho = rng.uniform(-0.9 / (n - 1), 0.95)
    kappa, m = rng.uniform(0.2, 2, n), rng.uniform(0.2, 3, n)
    matrix = np.full((n, n), rho) + (1 - rho) * np.eye(n)
    short = Panel.from_features(kappa, rho, relative_accuracy=m)
    long = Panel.from_features(kappa, matrix, relative_accuracy=m)
    assert short.weights == pytest.approx(long.weights, rel=1e-9, abs=1e-9)
    total = np.sqrt(m).sum()
    closed = kappa / np.sqrt(m) * (np.sqrt(m) - rho * total / (1 + (n - 1) * rho)) / (1 - rho)
    assert short.weights == pytest.approx(closed, rel=1e-9, abs=1e-9)
    assert short.correlation == pytest.approx(matrix)
    q = rng.uniform(size=(5, n))
    q[rng.random(q.shape) < 0.4] = np.nan
    assert short.pool(q) == pytest.approx(long.pool(q), rel=1e-9, abs=1e-12)


def test_exchangeable_experts_have_the_weights_of_24_and_the_accuracy_of_25():
    for n, rho in ((1, 0.3), (2, 0.95), (10, 0.0), (10, 0.5), (4, -0.2)):
        panel = Panel.exchangeable(n, calibration=0.9, correlation=rho, accuracy=0.7)
        assert panel.weights == pytest.approx(np.full(n, 0.9 / (1 + (n - 1) * rho)), rel=1e-12)
        assert panel.joint_accuracy == pytest.approx(0.7 * n / (1 + (n - 1) * rho), rel=1e-12)


def test_example_of_section_4_3():
    close = Panel.exchangeable(2, calibration=0.9, correlation=0.95)
    assert close.weights == pytest.approx([0.46154] * 2, abs=5e-6)
    assert close.pool([0.7, 0.8]) == pytest.approx(0.73709, abs=5e-6)
    apart = Panel.exchangeable(2, calibration=0.9, correlation=0.0)
    assert apart.weights == pytest.approx([0.9, 0.9])
    assert apart.pool([0.7, 0.8]) == pytest.approx(0.882, abs=5e-4)
    # What the paper prints needs a calibration of 1.
    printed = Panel.exchangeable(2, calibration=1.0, correlation=0.95)
    assert printed.weights == pytest.approx([0.51282] * 2, abs=5e-6)
    assert printed.pool([0.7, 0.8]) == pytest.approx(0.75868, abs=5e-6)


def test_redundant_experts_of_unequal_accuracy_have_no_limit():
    with pytest.raises(PanelError, match="perfectly dependent experts must be equally accurate"):
        _ = Panel.from_features([1, 1], 1.0, relative_accuracy=[1, 2]).weights
    with pytest.raises(PanelError, match="perfectly dependent experts must be equally accurate"):
        _ = Panel([1, 2], [[1, 1], [1, 1]]).weights


def test_forecasts_in_named_columns_go_by_name():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    panel = Panel.from_features([1.0, 0.8], 0.3, [1.0, 2.0], names=["ann", "bob"])
    learned = fit_pool("linear", Forecasts.from_array([[0.9, 0.2]], experts=["ann", "bob"]), weights=[3, 1])
    right = panel.pool([[0.9, 0.2], [np.nan, 0.4]])
    swapped = {"bob": [0.2, 0.4], "ann": [0.9, None]}
    for frame in (pd.DataFrame(swapped), pl.DataFrame(swapped)):
        np.testing.assert_array_equal(panel.pool(frame), right)
        np.testing.assert_array_equal(panel.contributions(frame), panel.contributions([[0.9, 0.2], [np.nan, 0.4]]))
        assert learned.pool(frame)[0] == pytest.approx(0.725)
    assert panel.pool(pd.Series({"bob": 0.2, "ann": 0.9})) == right[0]
    # Columns that name nobody are taken in their order.
    np.testing.assert_array_equal(panel.pool(pd.DataFrame([[0.9, 0.2], [np.nan, 0.4]])), right)
    for columns in (["ann", "cat"], ["bob"], ["ann", "bob", "bob"], ["ann", "bob", "cat"]):
        with pytest.raises(ExpertError, match="must name each of them once"):
            panel.pool(pd.DataFrame([[0.5] * len(columns)], columns=columns))


@pytest.mark.parametrize("apart", [1e-6, 1e-9, 1e-11, 1e-13])
@pytest.mark.parametrize("contrast", [(1.0, 1.0, 0.5), (1.0, 1.0 + 1e-7, 0.5), (2.0, 1.0, -1.0)])
def test_nearly_dependent_experts_are_weighted_as_the_model_says(apart, contrast):
    """Against 60 digits, to what the condition of the covariance leaves."""
    sigma = np.array([[2.0, 2.0 - apart, 0.6], [2.0 - apart, 2.0, 0.6], [0.6, 0.6, 1.0]])
    with mpmath.workdps(60):
        right = np.array([float(w) for w in 2 * mpmath.lu_solve(mpmath.matrix(sigma), mpmath.matrix(contrast))])
    weights = Panel(contrast, sigma).weights
    assert np.linalg.norm(weights - right) < 1e-14 / apart * np.linalg.norm(right)
    # Of those present, each is exact too.
    present = Panel(contrast, sigma).weights_for(np.array([[True, True, False]]))[0]
    assert present[:2].sum() == pytest.approx(sum(contrast[:2]) / (2.0 - apart / 2), rel=1e-14 / apart)


@given(seeds)
def test_a_clone_adds_nothing(seed):
    panel = random_panel(seed)
    with_clone = [0, 1, 2, 3, 2]
    cloned = Panel(panel.contrast[with_clone], panel.covariance[np.ix_(with_clone, with_clone)], panel.bias[with_clone])
    assert cloned.weights[[2, 4]] == pytest.approx([panel.weights[2] / 2] * 2, rel=1e-7, abs=1e-9)
    q = np.random.default_rng(seed).uniform(0.1, 0.9, 4)
    assert cloned.pool(q[with_clone]) == pytest.approx(panel.pool(q), rel=1e-7)


@given(seeds, st.integers(1, 14))
def test_missing_forecasts_use_the_exact_sub_panel(seed, pattern):
    panel = random_panel(seed)
    present = np.array([bool(pattern >> i & 1) for i in range(4)])
    q = np.random.default_rng(seed).uniform(0.05, 0.95, 4)
    mu, sigma = panel.contrast[present], panel.covariance[np.ix_(present, present)]
    contrast = logit(q[present]) - logit(0.3) - panel.bias[present]
    exact = logit(0.3) + 2 * np.linalg.solve(sigma, mu) @ contrast
    answer = panel.pool(np.where(present, q, np.nan), prior=0.3)
    assert answer == pytest.approx(np.clip(1 / (1 + np.exp(-exact)), 1e-8, 1 - 1e-8), rel=1e-9)
    assert panel.subset(np.flatnonzero(present)).pool(q[present], prior=0.3) == pytest.approx(answer, rel=1e-9)


def test_one_forecast_of_a_correlated_pair_is_taken_as_if_alone():
    assert Panel.exchangeable(2, correlation=0.5).pool([0.8, np.nan]) == pytest.approx(0.8)


def test_no_forecast_gives_the_prior():
    panel = random_panel(0)
    assert panel.pool(np.full((2, 4), np.nan), prior=[0.2, 0.9]) == pytest.approx([0.2, 0.9], rel=1e-12)


@given(seeds)
def test_contributions_add_up_before_the_floor(seed):
    panel = random_panel(seed)
    rng = np.random.default_rng(seed)
    q = rng.uniform(0.2, 0.8, size=(7, 4))
    q[rng.random(q.shape) < 0.3] = np.nan
    added = panel.contributions(q, prior=0.3)
    assert added.shape == q.shape
    assert (added[np.isnan(q)] == 0).all()
    answer = panel.pool(q, prior=0.3)
    inside = (answer > 1e-7) & (answer < 1 - 1e-7)
    assert (added.sum(axis=1) + logit(0.3))[inside] == pytest.approx(logit(answer[inside]), rel=1e-6, abs=1e-6)


def test_simulation_has_the_moments_it_was_asked_for():
    panel = Panel([1.0, 2.0], [[2.0, 1.0], [1.0, 4.0]], bias=[0.3, -0.2])
    x, y = panel.simulate(200_000, prior=0.3, seed=7)
    ratios = logit(x) - logit(0.3)
    assert y.mean() == pytest.approx(0.3, abs=0.005)
    assert ratios[y == 1].mean(axis=0) == pytest.approx([1.3, 1.8], abs=0.03)
    assert ratios[y == 0].mean(axis=0) == pytest.approx([-0.7, -2.2], abs=0.03)
    assert np.cov(ratios[y == 1].T) == pytest.approx(panel.covariance, rel=0.03)
    assert np.cov(ratios[y == 0].T) == pytest.approx(panel.covariance, rel=0.03)
    assert panel.simulate(5, seed=1)[0].tolist() == panel.simulate(5, seed=1)[0].tolist()


def test_expert_with_calibration_0_is_dropped():
    panel = Panel.from_features([1.0, 0.0, 1.0], 0.5, relative_accuracy=[1, 1, 2], accuracy=1.0)
    pair = Panel.from_features([1.0, 1.0], 0.5, relative_accuracy=[1, 2])
    assert panel.weights == pytest.approx([pair.weights[0], 0, pair.weights[1]])
    assert panel.calibration == pytest.approx([1, 0, 1])
    assert panel.pool([0.7, 0.01, 0.8]) == pytest.approx(pair.pool([0.7, 0.8]))
    assert panel.contrast == pytest.approx([1, 0, 2])
    with pytest.raises(AccuracyUnknownError, match="'expert_2' was assessed with calibration 0"):
        _ = panel.covariance


@pytest.mark.parametrize("what", ["contrast", "covariance", "accuracy", "joint_accuracy"])
def test_what_needs_an_absolute_accuracy_says_so(what):
    panel = Panel.exchangeable(2)
    with pytest.raises(AccuracyUnknownError, match="needs an absolute accuracy"):
        getattr(panel, what)
    with pytest.raises(AccuracyUnknownError, match="give accuracy="):
        panel.simulate(3)


def test_relative_accuracy_needs_a_first_expert_who_has_some():
    with pytest.raises(PanelError, match="'expert_1' has none"):
        _ = Panel([0.0, 1.0], np.eye(2)).relative_accuracy


def test_learned_zero_keeps_its_weight():
    panel = Panel([0.0, 1.0], [[1.0, 0.5], [0.5, 1.0]])
    assert panel.weights == pytest.approx(2 * np.linalg.solve(panel.covariance, [0.0, 1.0]))
    assert panel.weights[0] < 0


@pytest.mark.parametrize(
    ("call", "error", "rule"),
    [
        (lambda: Panel.exchangeable(3, correlation=-0.5), PanelError, r"above -1/\(N-1\) = -0.5 .* it is -0.5"),
        (lambda: Panel.exchangeable(3, correlation=1.1), PanelError, "at most 1, and it is 1.1"),
        (lambda: Panel.exchangeable(0), PanelError, "from 1 to .* and it is 0"),
        (lambda: Panel.exchangeable(2.5), PanelError, "whole number.* and it is 2.5"),
        (lambda: Panel([1, 1], [[1, 2], [2, 1]]), PanelError, r"must lie in \[-1, 1\], and it has 2"),
        (lambda: Panel([1, 1, 1], np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])), PanelError,
         "positive definite, and its smallest eigenvalue is -0.8"),
        (lambda: Panel([1, 1], [[1, 0.5], [0.2, 1]]), PanelError, "must be symmetric"),
        (lambda: Panel([1, 1], [[1, 0], [0, -1]]), PanelError, "variances above 0"),
        (lambda: Panel([1, 1], [[1, 0], [0, 0]]), PanelError, "an expert without variance must have contrast 0"),
        (lambda: Panel([1, np.nan], np.eye(2)), PanelError, "contrast must be finite, and one is nan"),
        (lambda: Panel([1, 1e200], np.eye(2)), PanelError, r"contrast must be at most 1e\+100, and one is 1e\+200"),
        (lambda: Panel([1, 1], np.eye(2) * 1e-300), PanelError, r"variances must lie between 1e-100 and 1e\+100"),
        (lambda: Panel([1, 1], [["a", 0], [0, 1]]), PanelError, "each covariance must be a number, .*'a'"),
        (lambda: Panel([1, 1], np.eye(2) * 1j), PanelError, "Complex"),
        (lambda: Panel([1, 1], [[1, 0], [0]]), ShapeError, "rows must be of one length"),
        (lambda: Panel([1, 1], np.eye(2), names=5), ExpertError, "names must be a sequence, .* not a single 5"),
        (lambda: Panel.from_features([1, 1], "high"), PanelError, "each correlation must be a number"),
        (lambda: Panel.from_features([1, 1], 0.2, [1e-300, 1e100]), PanelError, "differ by too much"),
        (lambda: Panel([1, 1], np.eye(2), "x", classes="abc"), PanelError, "each bias must be a number"),
        (lambda: Panel([1, 1], np.eye(2)).simulate(-1), ArgumentError, "whole number, at least 0, and it is -1"),
        (lambda: Panel([1, 1], np.eye(2)).simulate(2.5), ArgumentError, "whole number, at least 0, and it is 2.5"),
        (lambda: Panel([1, 1], np.eye(2)).simulate(3, prior=[0.1, 0.2]), ShapeError, "one value or one per event"),
        (lambda: Panel([1], [[2]], classes="abc").pool([[0.5, 0.5, 0.5]], prior=[0.2, 0.3, 0.5]), ProbabilityError,
         "must sum to 1 up to rounding, and in one row they sum to 1.5"),
        (lambda: Panel([1], [[2]], classes="abc").contributions([[0, 0, 0]], prior=[0.2, 0.3, 0.5]), ProbabilityError,
         "must sum to 1 up to rounding, and in one row they sum to 0"),
        (lambda: Panel([1, 1], np.eye(3)), ShapeError, r"need a covariance of shape \(2, 2\), not \(3, 3\)"),
        (lambda: Panel.from_features([1, -0.1], 0.5), PanelError, "calibration must be at least 0, and one is -0.1"),
        (lambda: Panel.from_features([1, 1], 0.5, relative_accuracy=[1, 0]), PanelError, "above 0, and one is 0"),
        (lambda: Panel.from_features([1, 1], 0.5, accuracy=-1), PanelError,
         "an accuracy must be above 0, and one is -1"),
        (lambda: Panel.from_features([1, 1], 0.5, relative_accuracy=[1, 2], accuracy=[1, 2]), PanelError, "not both"),
        (lambda: Panel.from_features([1, 1], 0.5, relative_accuracy=[1, 2, 3]), ShapeError,
         "calibration 2, relative accuracy 3"),
        (lambda: Panel.from_features(1, 0.5), ShapeError, "does not say how many experts"),
        (lambda: Panel.from_features([1, 1], np.eye(3)), ShapeError, "calibration 2, correlation 3"),
        (lambda: Panel.from_features([1, 1], [[1, 0.2], [0.2, 2]]), PanelError, "ones on its diagonal"),
        (lambda: Panel.exchangeable(2, names=["a", "a"]), ExpertError, "'a' stands twice"),
        (lambda: Panel.exchangeable(2, names=["a"]), ExpertError, "2 experts need 2 names, not 1"),
        (lambda: Panel.exchangeable(2, names="ab"), ExpertError, "names must be a sequence, .* not a single 'ab'"),
        (lambda: Panel.exchangeable(2, classes=["x"]), PanelError, "at least two different labels"),
        (lambda: Panel.exchangeable(2).pool([0.5]), ShapeError, r"need forecasts of shape \(..., 2\), not \(1,\)"),
        (lambda: Panel.exchangeable(2).pool([0.5, 1.2]), ProbabilityError, "position 1 it is 1.2"),
        (lambda: Panel.exchangeable(2).pool([0.5, 0.5], prior=1), ProbabilityError, "the prior must lie strictly"),
        (lambda: Panel.exchangeable(2).pool([0.5, 0.5], base_rate=0), ProbabilityError,
         "the base rate must lie strictly"),
        (lambda: Panel.exchangeable(2).pool([[0.5, 0.5]], prior=[0.5, 0.5]), ShapeError, "one value or one per event"),
        (lambda: Panel.exchangeable(2).subset(["nobody"]), ExpertError, "no expert is called 'nobody'"),
        (lambda: Panel.exchangeable(np.nan), PanelError, "whole number.* and it is nan"),
        (lambda: Panel.exchangeable(np.inf), PanelError, "whole number.* and it is inf"),
        (lambda: Panel.exchangeable(2, names=["a", "b"]).subset("ab"), ExpertError, "not a single 'ab'"),
        (lambda: Panel.exchangeable(2).subset(0), ExpertError, "experts must be a sequence, .* not a single 0"),
        (lambda: Panel.exchangeable(2).subset([]), ExpertError, "at least one expert"),
        (lambda: Panel.exchangeable(2).subset([0, 0]), ExpertError, "each of them once"),
        (lambda: Panel.exchangeable(2).subset([2]), ExpertError, "experts 0 to 1, and no 2"),
    ],
)  # fmt: skip
def test_errors_state_the_rule_and_the_value(call, error, rule):
    with pytest.raises(error, match=rule):
        call()


def test_a_panel_is_immutable():
    mu = np.array([1.0, 2.0])
    panel = Panel(mu, np.eye(2))
    mu[0] = 9.0
    assert panel.contrast.tolist() == [1, 2]
    panel.contrast[0] = 9.0
    panel.weights[0] = 9.0
    assert panel.contrast.tolist() == [1, 2]
    with pytest.raises(AttributeError, match="immutable"):
        panel.names = ("x", "y")


def test_subset_by_name_or_position():
    panel = Panel([1.0, 2.0, 3.0], np.eye(3), names=["a", "b", "c"])
    assert panel.subset(["c", "a"]).names == ("c", "a")
    assert panel.subset([-1]).names == ("c",)
    assert len(panel) == 3
    assert "a 2, b 4, c 6" in repr(panel)


class TestManyClasses:
    """The class-symmetric model through the same panel (model.md, section 3)."""

    classes = ("home", "draw", "away")

    def panel(self):
        return Panel([1.0, 0.7], [[2.0, 0.6], [0.6, 1.5]], bias=[[0.2, 0.1, -0.3], [0, 0, 0]], classes=self.classes)

    def test_pool_is_the_log_pool_with_one_weight_per_expert(self):
        panel, prior = self.panel(), np.array([0.5, 0.3, 0.2])
        q = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]])
        w = 2 * np.linalg.solve(panel.covariance, panel.contrast)
        contrast = np.log(q) - np.log(prior) - panel.bias
        exact = prior * np.exp(w @ contrast)
        assert panel.pool(q, prior=prior) == pytest.approx(exact / exact.sum(), rel=1e-12)

    def test_bayes_rule_by_simulation(self):
        """Among simulated events with a given pooled forecast, classes happen as often as it says."""
        x, y = self.panel().simulate(60_000, prior=[0.5, 0.3, 0.2], seed=5)
        answer = self.panel().pool(x, prior=[0.5, 0.3, 0.2])
        happened = y[:, None] == np.array(self.classes)
        for low, high in ((0, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 0.9), (0.9, 1)):
            inside = (answer >= low) & (answer < high)
            assert happened[inside].mean() == pytest.approx(answer[inside].mean(), abs=0.01)

    def test_half_a_forecast_is_refused(self):
        with pytest.raises(ShapeError, match="for every class or for none"):
            self.panel().pool([[0.6, np.nan, 0.4], [0.2, 0.5, 0.3]])


def test_a_panel_without_weights_can_be_shown():
    panel = Panel([1.0, 2.0], np.ones((2, 2)))
    with pytest.raises(PanelError, match="no limit"):
        _ = panel.weights
    assert repr(panel) == "<Panel of 2 experts, whose weights have no limit>"


def test_correlations_near_their_least_are_said():
    with pytest.warns(OpinionPoolWarning, match=r"close to the least of 5 experts, -0\.25.*add up to 1\.25e\+06"):
        Panel.exchangeable(5, correlation=-0.25 + 1e-6)
    with pytest.warns(OpinionPoolWarning, match="close to the least of 3 experts"):
        Panel.from_features([1.0, 1.0, 1.0], -0.499)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Panel.exchangeable(5, correlation=-0.1)


def test_weights_below_0_say_what_becomes_of_unanimous_experts():
    with pytest.warns(OpinionPoolWarning, match="where all say 70% the answer is 25%"):
        panel = Panel.from_features([1.0, 1.0, 1.0], 0.6, relative_accuracy=[4.0, 1.0, 0.2])
    assert float(panel.pool([0.7, 0.7, 0.7])) == pytest.approx(0.25, abs=0.005)


@pytest.mark.parametrize("limit", [math.inf, 5.0, 700.0])
@pytest.mark.parametrize("n", [1, 20, 60])
def test_one_event_is_pooled_as_many_are(limit, n):
    """Number by number or in arrays, with extremes believed so far and centred somewhere, and forecasts of 0 and 1."""
    rng = np.random.default_rng(n)
    q = rng.uniform(size=(40, n))
    q[0], q[1], q[2, 0] = 0.0, 1.0, 1e-7
    for prior, rate in ((0.5, None), (1e-6, 0.2), (0.97, None)):
        for centre in (None, rng.normal(size=(n, 1))):
            root = rng.normal(size=(n, n))
            plain = Panel(rng.normal(size=n), root @ root.T + np.eye(n), bias=rng.normal(size=n))
            believed = Settings(1e-4, 1e-8, Extremes(limit, centre))
            panel = Panel.from_parts(plain.parts, plain.bias_ratios, plain.names, (0, 1), believed)
            together = panel.pool(q, prior, rate)
            singly = np.array([panel.pool(row, prior, rate) for row in q])
            assert np.abs(np.log(singly / together)).max() < 1e-10
            assert np.abs(np.log1p(-singly) - np.log1p(-together)).max() < 1e-10


@pytest.mark.parametrize("limit", [0.5, 2.5, 12.0, 20.0])
@pytest.mark.parametrize("classes", [2, 3, 6])
def test_believed_is_the_mixture_of_probabilities(limit, classes):
    rng = np.random.default_rng(classes)
    contrasts = rng.normal(scale=4.0, size=(50, 3, classes - 1))
    contrasts[0, 0], contrasts[1, 1] = np.nan, 0.0
    full = np.concatenate([np.zeros((50, 3, 1)), contrasts], axis=2)
    p = np.exp(full) / np.exp(full).sum(axis=2, keepdims=True)
    share = classes / (np.expm1(limit) + classes)
    mixed = (1.0 - share) * p + share / classes
    expected = np.log(mixed[..., 1:] / mixed[..., :1])
    np.testing.assert_allclose(Extremes(limit).believed(contrasts), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("limit", [2.5, 700.0, 1e6])
def test_certainties_end_at_the_limit(limit):
    found = Extremes(limit).believed(np.array([[1e5], [-1e5], [1.0]]))
    assert found[:2, 0] == pytest.approx([min(limit, 700.0), -min(limit, 700.0)], rel=1e-12)
    assert np.abs(found[2, 0]) <= 1.0
