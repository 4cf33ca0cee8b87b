"""Learning against plain least squares, scikit-learn's LDA, closed forms and simulation."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from opinionpool import logodds
from opinionpool.errors import ArgumentError, LearningError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.learn import learn
from opinionpool.model.panel import Panel
from opinionpool.priors import event_priors

A = [0.2, 0.3, 0.6, 0.4, 0.7, 0.8]
B = [0.3, 0.2, 0.5, 0.6, 0.4, 0.9]
Y = [0, 0, 0, 1, 1, 1]
NAN = float("nan")


def fit(columns, y=Y, **options):
    options = {"prior": 0.5, "beliefs": None} | options
    return learn(Forecasts.from_array(np.column_stack(columns), y), **options)


def simulated(seed, t=200, n=4, k=2):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, 2 * n))
    panel = Panel(
        rng.normal(0.7, 0.4, n),
        root @ root.T / n,
        bias=rng.normal(size=n) if k == 2 else rng.normal(size=(n, k)),
        classes=range(k),
    )
    prior = 0.3 if k == 2 else rng.dirichlet(np.full(k, 5.0))
    x, y = panel.simulate(t, prior=prior, seed=seed)
    return panel, x, y, prior


class TestSampleAverages:
    def test_weights_are_those_of_lda_up_to_its_divisor(self):
        _, x, y, _ = simulated(2)
        ratios = logit(np.clip(x, 1e-4, 1 - 1e-4))
        lda = LinearDiscriminantAnalysis(solver="lsqr").fit(ratios, y)
        learned = learn(Forecasts.from_array(x, y), beliefs=None)
        assert learned.weights * len(y) / (len(y) - 2) == pytest.approx(lda.coef_[0], rel=1e-9)

    @pytest.mark.parametrize("structure", ["full", "common", "exchangeable", "independent"])
    def test_recovers_a_simulated_panel(self, structure):
        truth = Panel.exchangeable(
            4, calibration=0.8, correlation=0.4 if structure != "independent" else 0.0, accuracy=0.9
        )
        x, y = truth.simulate(40_000, prior=0.3, seed=5)
        learned = learn(Forecasts.from_array(x, y), prior=0.3, structure=structure, beliefs=None)
        assert learned.weights == pytest.approx(truth.weights, abs=0.04)
        assert learned.panel.calibration == pytest.approx(truth.calibration, abs=0.04)
        assert learned.panel.accuracy == pytest.approx(truth.accuracy, abs=0.04)

    def test_exchangeable_is_the_variance_split_of_row_means(self):
        _, x, y, _ = simulated(3, t=60)
        learned = fit(x.T, y, structure="exchangeable")
        ratios = logit(np.clip(x, 1e-4, 1 - 1e-4))
        t, n = ratios.shape
        row = ratios.mean(axis=1)
        m1, m0 = row[y == 1].mean(), row[y == 0].mean()
        v1 = n * ((row - np.where(y == 1, m1, m0)) ** 2).sum() / (t - 2)
        v2 = ((ratios - row[:, None]) ** 2).sum() / (t * (n - 1))
        assert learned.weights == pytest.approx(np.full(n, (m1 - m0) / v1), rel=1e-9)
        assert np.diag(learned.panel.covariance) == pytest.approx(np.full(n, (v1 + (n - 1) * v2) / n), rel=1e-9)
        assert learned.panel.correlation[0, 1] == pytest.approx((v1 - v2) / (v1 + (n - 1) * v2), rel=1e-9)

    def test_common_correlation_is_the_mean_off_the_diagonal(self):
        _, x, y, _ = simulated(4, t=80)
        full, common = fit(x.T, y, structure="full"), fit(x.T, y, structure="common")
        r = full.panel.correlation
        mean = (r.sum() - len(r)) / (len(r) * (len(r) - 1))
        assert common.panel.correlation[0, 1] == pytest.approx(mean, rel=1e-9)
        assert np.diag(common.panel.covariance) == pytest.approx(np.diag(full.panel.covariance), rel=1e-10)

    def test_three_classes_against_least_squares(self):
        """The class-symmetric regression of model.md, section 3, solved as one big least squares."""
        _, x, y, prior = simulated(7, n=2, k=3, t=90)
        learned = learn(Forecasts.from_array(x, y, classes=(0, 1, 2)), prior=prior, beliefs=None)
        shared = logodds.class_probabilities(prior, 3)
        full = logodds.centred(logodds.log_ratios(x, shared) - logodds.prior_log_ratios(shared))
        t = len(y)
        for i in range(2):
            design = np.zeros((3 * t, 4))
            for s in range(t):
                for c in range(3):
                    design[3 * s + c, c] = 1
                    design[3 * s + c, 3] = (c == y[s]) - 1 / 3
            solution, *_ = np.linalg.lstsq(design, full[:, i].reshape(-1), rcond=None)
            residual = full[:, i].reshape(-1) - design @ solution
            assert learned.panel.contrast[i] == pytest.approx(solution[3], rel=1e-9)
            assert learned.panel.bias[i] == pytest.approx(solution[:3] - solution[:3].mean(), abs=1e-10)
            assert learned.panel.covariance[i, i] == pytest.approx(2 * residual @ residual / (2 * t - 3), rel=1e-9)


class TestWhatTheDataCannotSay:
    def test_an_expert_who_is_the_mean_of_others(self):
        _, x, y, _ = simulated(9)
        x = np.clip(x, 0.001, 0.999)
        learned = fit([*x.T, expit(logit(x[:, :2]).mean(axis=1))], y)
        without = fit(x.T, y)
        assert np.abs(learned.weights).max() < 2 * np.abs(without.weights).max()
        answer = learned.pool(np.append(x[0], expit(logit(x[0, :2]).mean())))
        assert answer == pytest.approx(without.pool(x[0]), rel=1e-6)

    @pytest.mark.parametrize("structure", ["independent", "common"])
    def test_constant_expert_with_as_few_forecasts_as_means(self, structure):
        """Two forecasts leave no degree of freedom; that is said by the weight, and by no NumPy warning."""
        learned = fit([A, B, [0.5, NAN, NAN, 0.5, NAN, NAN]], structure=structure)
        assert learned.weights[2] == 0
        assert learned.weights[:2] == pytest.approx(fit([A, B], structure=structure).weights)

    def test_expert_without_forecasts_gets_weight_0(self):
        learned = fit([A, [NAN] * 6], structure="independent")
        assert learned.weights == pytest.approx([1.44221, 0], abs=5e-6)
        assert learned.notes[0].code == "no-forecasts"

    @pytest.mark.parametrize(
        ("columns", "y", "options", "error", "told"),
        [
            ([[0.2, 0.8, 0.7]], [1, 1, 1], {}, LearningError, "no resolved events with outcome 0"),
            ([[0.2, 0.8]], [None, None], {}, LearningError, "no resolved events with forecasts"),
            ([[0.5] * 6], Y, {}, LearningError, "no expert has forecasts that vary"),
            ([[0.5] * 6], Y, {"structure": "exchangeable"}, LearningError, "never vary within an outcome"),
            ([A, [NAN] * 5 + [0.3]], Y, {"structure": "common"}, LearningError,
             r"too few forecasts .* \(0 with outcome 0, 1 with outcome 1\)"),
            # Experts who follow from others are named at the fit.
            ([[0.57, 0.77, 0.49], [0.5, 0.12, 0.67], [0.63, 0.68, 0.37], [0.08, 0.4, 0.05]], [0, 1, 0], {},
             LearningError, "leave their weights open; beliefs, as by default"),
            *(([[0.0, 0.0, 1.0, 1.0]], [0, 0, 1, 1], {"structure": structure, "beliefs": "default"}, LearningError,
               "use structure='auto' with beliefs='default'") for structure in ("full", "common", "independent")),
            ([A], Y, {"structure": "whole"}, ArgumentError, "structure must be one of auto, full"),
            ([A], Y, {"beliefs": "strong"}, ArgumentError, "it is 'strong'"),
            ([A], Y, {"beliefs": {}}, ArgumentError, r"it is \{\}"),
        ],
    )  # fmt: skip
    def test_errors_name_the_cause_and_the_way_out(self, columns, y, options, error, told):
        with pytest.raises(error, match=told):
            fit(columns, y, **options)

    def test_pairwise_covariances_are_never_used_as_they_are(self):
        """Pairs of experts whose pairwise correlations form no correlation matrix."""
        up = np.array([[1, 1, NAN], [2, 2, NAN], [NAN, 1, 1], [NAN, 2, 2], [1, NAN, 2], [2, NAN, 1]])
        x, y = expit(np.vstack([up, -up])), [1] * 6 + [0] * 6
        with pytest.raises(LearningError, match=r"rises towards a singular one.*pairs share 4 to 4"):
            fit(x.T, y, structure="full")
        for structure in ("common", "exchangeable", "independent"):
            r = fit(x.T, y, structure=structure).panel.correlation
            assert np.linalg.eigvalsh(r)[0] > 0


class TestPriors:
    def test_constant_prior_as_one_or_one_per_event(self):
        _, x, y, _ = simulated(10)
        once = learn(Forecasts.from_array(x, y), prior=0.3, beliefs=None)
        each = learn(Forecasts.from_array(x, y), prior=np.full(len(y), 0.3), beliefs=None)
        assert once.panel.bias == pytest.approx(each.panel.bias, abs=1e-10)
        assert once.pool(x) == pytest.approx(each.pool(x, prior=0.3), rel=1e-9)

    def test_a_column_of_priors_that_is_all_blank_is_none(self):
        _, x, y, _ = simulated(12)
        blank, plain = (Forecasts.from_array(x, y, prior=prior) for prior in (NAN, None))
        for prior in (None, 0.3):
            assert event_priors(blank, prior) is None
            assert learn(blank, prior=prior).weights == pytest.approx(learn(plain, prior=prior).weights, rel=1e-12)


def test_tiny_panels_that_are_fitted_answer():
    rng = np.random.default_rng(0)
    answered = refused = 0
    for _ in range(150):
        t, n = rng.integers(2, 8), rng.integers(1, 5)
        q, y = rng.random((t, n)).round(2), rng.integers(2, size=t)
        forecasts = Forecasts.from_array(q, y)
        try:
            learned = learn(forecasts, beliefs=None)
        except LearningError:
            refused += 1
            continue
        assert np.isfinite(learned.pool(q)).all()
        answered += 1
    assert min(answered, refused) > 20
