"""The full model from the data alone: discriminant analysis, recovery of the truth, missing forecasts, and errors."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import opinionpool as op
from opinionpool import logodds
from opinionpool.errors import ArgumentError, LearningError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.learn import learn
from opinionpool.model.full_panel import FullPanel
from opinionpool.model.panel import Panel

NAN = float("nan")
PRIORS = {3: [0.6, 0.3, 0.1], 5: [0.4, 0.25, 0.2, 0.1, 0.05]}


def full_panel(rng, k, n, **options):
    d = k - 1
    root = rng.normal(size=(n * d, 3 * n * d)) / np.sqrt(3 * n * d)
    return FullPanel(0.8 * rng.normal(size=(k, n, d)), root @ root.T + 0.2 * np.eye(n * d), **options)


def drawn(seed, k, n, t, missing=0.0):
    rng = np.random.default_rng(seed)
    panel = full_panel(rng, k, n)
    x, y = panel.simulate(t, PRIORS[k], seed=rng)
    x[rng.random((t, n)) < missing] = NAN
    return panel, Forecasts.from_array(x, y, classes=panel.classes)


def alone(forecasts, **options):
    return learn(forecasts, beliefs=None, class_model="full", **options)


def ratios(q):
    return np.log(q[..., 1:] / q[..., :1])


@pytest.mark.parametrize("k", [3, 5])
def test_recovers_the_panel_that_forecasts_were_drawn_from(k):
    panel, f = drawn(1, k, 3, 40_000)
    learned = alone(f, prior=PRIORS[k], floor=1e-100)
    assert (learned.class_model, learned.structure) == ("full", "full")
    # What forecasts are in each class is drawn, so that they may well suit other classes better.
    assert {note.code for note in learned.notes} <= {"contrary"}
    assert learned.panel.means == pytest.approx(panel.means, abs=0.08)
    assert learned.panel.covariance == pytest.approx(panel.covariance, abs=0.04)
    q = f.X[:500]
    assert np.abs(learned.pool(q) - panel.pool(q, PRIORS[k])).mean() < 0.01


@pytest.mark.parametrize("k", [3, 5])
def test_symmetric_model_recovers_its_panel(k):
    panel = Panel.from_features([0.8, 1.1, 0.9], 0.4, [1.0, 2.0, 0.5], accuracy=0.7, bias=0.0, classes=range(k))
    x, y = panel.simulate(20_000, PRIORS[k], seed=1)
    learned = learn(Forecasts.from_array(x, y, classes=range(k)), prior=PRIORS[k], beliefs=None)
    assert learned.class_model == "symmetric"
    assert learned.weights == pytest.approx(panel.weights, abs=0.04)
    assert learned.panel.bias == pytest.approx(panel.bias, abs=0.04)
    full = alone(Forecasts.from_array(x, y, classes=range(k)), prior=PRIORS[k])
    assert full.weights == pytest.approx(panel.weights, abs=0.05)
    assert full.panel.class_weights == pytest.approx(np.tile(panel.weights[:, None], k), abs=0.12)


@pytest.mark.parametrize("k", [3, 5])
def test_is_linear_discriminant_analysis_up_to_divisor_and_prior(k):
    _, f = drawn(2, k, 3, 300)
    x, y = ratios(f.X).reshape(300, -1), f.outcomes
    prior = np.array(PRIORS[k])[::-1].copy()
    learned = alone(f, prior=prior)
    lda = LinearDiscriminantAnalysis(solver="lsqr").fit(x, y)
    inverse = np.linalg.inv(lda.covariance_ * 300 / (300 - k))
    score = lda.means_ @ inverse @ x.T - 0.5 * np.einsum("ci,ij,cj->c", lda.means_, inverse, lda.means_)[:, None]
    log = score.T + np.log(prior)
    log -= np.logaddexp.reduce(log, axis=1)[:, None]
    assert np.log(learned.pool(f.X)) == pytest.approx(np.maximum(log, np.log(1e-8)), abs=1e-6)


def test_each_event_may_have_its_own_prior():
    """What is learned from contrasts does not care where they start from."""
    panel, f = drawn(5, 3, 2, 200)
    rng = np.random.default_rng(0)
    own = rng.dirichlet([5, 5, 5], size=200)
    moved = logodds.softmax(ratios(f.X) - ratios(np.array(PRIORS[3])) + ratios(own)[:, None])
    one = alone(f, prior=PRIORS[3], floor=1e-100)
    two = alone(Forecasts.from_array(moved, f.outcomes, classes=panel.classes), prior=own, floor=1e-100)
    assert two.panel.means == pytest.approx(one.panel.means, abs=1e-9)
    assert two.prior is None


def likelihood(means, omega, x, y):
    """Log-likelihood of rows with NaN, one at a time."""
    total = 0.0
    for row, c in zip(x, y, strict=True):
        here = ~np.isnan(row)
        total += multivariate_normal(means[c, here], omega[np.ix_(here, here)]).logpdf(row[here])
    return total


def test_missing_forecasts_are_left_to_maximum_likelihood():
    _, f = drawn(6, 3, 2, 60, missing=0.25)
    f = f.select_events(f.crowd > 0)
    t, learned = len(f.events), alone(f, prior=PRIORS[3])
    assert [note.code for note in learned.notes] == ["maximum-likelihood"]
    x = (ratios(f.X) - ratios(np.array(PRIORS[3]))).reshape(t, -1)
    omega = learned.panel.covariance.reshape(4, 4) * (t - 3) / t
    means = learned.panel.means.reshape(3, 4)
    best = likelihood(means, omega, x, f.outcomes)
    lower = np.tril_indices(4)

    def other(p):
        root = np.zeros((4, 4))
        root[lower] = p[12:]
        return -likelihood(p[:12].reshape(3, 4), root @ root.T, x, f.outcomes)

    start = np.concatenate([means.ravel(), np.linalg.cholesky(omega)[lower]])
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert other(start + 0.01 * rng.normal(size=start.size)) > -best
    slope = minimize(other, start, options={"maxiter": 0}).jac
    assert np.abs(slope).max() < 2e-3


def refused(x, y, match, error=LearningError, **options):
    with pytest.raises(error, match=match):
        alone(Forecasts.from_array(x, y, classes=(0, 1, 2)), **options)


def test_what_the_data_do_not_determine_is_said():
    _, f = drawn(9, 3, 2, 60)
    x, y = f.X, f.outcomes
    refused(x, np.where(y == 2, 1, y), "no resolved event with a forecast has outcome 2")
    refused(x[:6], [0, 1, 2, 0, 1, 2], "at least 7 resolved events with forecasts, and there are 6")
    refused(np.full((60, 2, 3), 1 / 3), y, "no expert has forecasts that vary")
    few = x.copy()
    few[y == 2, 1] = NAN
    refused(few, y, "'expert_2' has no forecast on a resolved event with outcome 2")
    never = x.copy()
    never[::2, 0], never[1::2, 1] = NAN, NAN
    refused(never, y, "'expert_1' and 'expert_2' met never")
    sure = np.eye(3)[y][:, None] * 0.7 + 0.1
    refused(sure, y, "never varies within an outcome")
    refused(x, y, "structure is 'common'", ArgumentError, structure="common")


def test_options():
    _, f = drawn(10, 3, 2, 60)
    with pytest.raises(ArgumentError, match="class_model must be one of auto, symmetric, full, and it is 'half'"):
        learn(f, class_model="half")
    options = Forecasts.from_array(f.X, f.outcomes, classes=(0, 1, 2))
    assert learn(options, beliefs=None).class_model == "symmetric"
    pool = op.GaussianPool(beliefs=None, class_model="full").fit(f.X, f.outcomes)
    assert pool.predict_proba(f.X) == pytest.approx(alone(f).pool(f.X))
    assert isinstance(pool.panel_, FullPanel)
    assert pool.weights_.shape == (2,)


def test_two_classes_are_the_binary_path():
    x, y = Panel.exchangeable(3, correlation=0.4, accuracy=1.0).simulate(60, 0.3, seed=1)
    f = Forecasts.from_array(x, y)
    for beliefs in (None, "default"):
        one, two = learn(f, beliefs=beliefs), learn(f, beliefs=beliefs, class_model="full")
        assert isinstance(two.panel, Panel)
        assert (one.pool(x) == two.pool(x)).all()
        assert one.notes == two.notes


def test_a_class_that_never_happened_keeps_its_laplace_prior():
    rng = np.random.default_rng(11)
    q = rng.dirichlet(np.ones(3), size=(40, 2))
    # Forecasts that know something, so that they are believed whichever beliefs are averaged.
    both = q.mean(axis=1)[:, :2]
    y = (rng.random(40) < both[:, 1] / both.sum(axis=1)).astype(int)
    f = Forecasts.from_array(q, y, classes=(0, 1, 2))
    for options in ({"beliefs": None}, {}, {"class_model": "symmetric"}, {"class_model": "full"}):
        learned = learn(f, **options)
        assert learned.prior[2] == pytest.approx(1 / 43)
        assert learned.pool(np.full((2, 3), NAN)) == pytest.approx(learned.prior)
        said = learned.pool([[[0.1, 0.1, 0.8]] * 2])[0, 2]
        assert learned.prior[2] < said < 1.0
