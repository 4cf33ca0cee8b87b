"""Intervals: coverage where the truth is drawn from the beliefs, and the algebra behind them."""

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from scipy.special import logit
from scipy.stats import norm

from opinionpool import logodds
from opinionpool.errors import ArgumentError, LearningError
from opinionpool.estimation.regression import intercept_root
from opinionpool.forecasts import Forecasts
from opinionpool.learning import constants as believed
from opinionpool.learning.class_model import ClassWeights
from opinionpool.learning.learn import learn
from opinionpool.learning.posterior import Posterior, quantile
from opinionpool.learning.prior import believed_slope
from opinionpool.model.contrasts import Extremes
from opinionpool.model.panel import Panel

NAN = float("nan")


def normal(covariance):
    """One normal about the answer."""
    return Posterior(np.ones(1), np.zeros((1, len(covariance))), covariance[None])


def test_coverage(study):
    assert study("coverage").cell(10, 3, 0.5, 100)[0] == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize(("events", "least"), [(30, 0.7), (100, 0.8)])
def test_coverage_where_the_truth_contradicts_what_is_believed(study, events, least):
    assert study("coverage").contradicted(events, 40)[0] >= least


def test_more_events_narrow_the_interval_around_the_answer():
    x, y = Panel.exchangeable(4, correlation=0.4, accuracy=1.0).simulate(400, seed=1)
    widths = []
    for t in (20, 100, 400):
        learned = learn(Forecasts.from_array(x, np.where(np.arange(400) < t, y, NAN)), prior=0.5)
        low, high = learned.interval(x[:20])
        answer = learned.pool(x[:20])
        assert ((low < answer) & (answer < high)).all()
        widths.append((logit(high) - logit(low)).mean())
    assert widths == sorted(widths, reverse=True)


def test_the_first_outcome_hardly_widens_intervals():
    ratio = []
    for seed in range(8):
        x, y = Panel.exchangeable(10, correlation=0.5, accuracy=1.0).simulate(60, seed=seed)
        width = []
        for known in (0, 1, 2):
            learned = learn(Forecasts.from_array(x, np.where(np.arange(60) < known, y, np.nan)), prior=0.5)
            low, high = learned.interval(x[2:])
            width.append(np.median(high - low))
        ratio.append([width[1] / width[0], width[2] / width[0]])
    assert (np.median(ratio, axis=0) < 1.3).all()


def test_what_has_no_interval_says_so():
    x, y = Panel.exchangeable(2, correlation=0.4, accuracy=1.0).simulate(30, seed=5)
    with pytest.raises(LearningError, match="learned as 'full' does not say how sure it is"):
        learn(Forecasts.from_array(x, y), beliefs=None).interval(x)
    learned = learn(Forecasts.from_array(x, y))
    with pytest.raises(ArgumentError, match=r"strictly between 0 and 1, and it is 1\.5"):
        learned.interval(x, level=1.5)


def covered_classes(study, rng, events, n, k):
    """The same for K classes: the share of their true probabilities inside the intervals."""
    d = k - 1
    slope, weights = believed_slope(n), study("coverage").drawn_weights(rng, n)
    limit = rng.choice(believed.LIMITS, p=believed.LIMIT_PROBABILITIES)
    noise = rng.normal(size=(events + 100, 1, k)) + rng.normal(size=(events + 100, n, k))
    contrasts = logodds.uncentred(0.75 * noise)
    intercept = intercept_root(rng.choice(believed.BIASES, p=believed.BIAS_PROBABILITIES) * slope, d) @ rng.normal(
        size=d
    )
    alike = ClassWeights(Panel.exchangeable(n, calibration=1.0, correlation=0.4, accuracy=0.8, classes=range(k)))
    roots = alike.prior_sds(*rng.choice(believed.CLASS_SPREADS, p=believed.CLASS_PROBABILITIES))
    by_class = alike.matrices(roots * rng.normal(size=len(roots)))
    by_class -= alike.matrices(np.zeros(alike.size))
    by_class += weights[:, None, None] * np.eye(d)
    truth = logodds.softmax(intercept + np.einsum("tnd,nde->te", Extremes(limit).believed(contrasts), by_class))
    y = (rng.random((events + 100, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    said = logodds.softmax(contrasts)
    learned = learn(Forecasts.from_array(said[:events], y[:events], classes=range(k)), prior=np.full(k, 1 / k))
    low, high = learned.interval(said[events:])
    return np.mean((truth[events:] >= low) & (truth[events:] <= high))


def test_coverage_of_classes(study):
    rng = np.random.default_rng(2)
    assert np.mean([covered_classes(study, rng, 20, 3, 3) for _ in range(60)]) == pytest.approx(0.9, abs=0.06)


def test_each_class_moves_as_its_gradient_says():
    """With a small covariance of one direction, ends are where the pool goes if its weights move that far."""
    rng = np.random.default_rng(3)
    sigma = np.array([[2.0, 0.4], [0.4, 1.0]])
    weights, direction = np.array([0.5, 0.3]), np.array([1e-5, -2e-5])
    q, prior = rng.dirichlet(np.ones(4), size=(5, 2)), [0.4, 0.3, 0.2, 0.1]
    q[0, 1] = NAN

    def pool(w):
        return logit(Panel(sigma @ w / 2, sigma, classes=range(4)).pool(q, prior))

    covariance = np.zeros((5, 5))
    covariance[3:, 3:] = np.outer(direction, direction)
    panel = Panel(sigma @ weights / 2, sigma, classes=range(4))
    low, high = normal(covariance).interval(panel, panel.read(q, prior), level=0.682689492137086)
    assert logit(high) - pool(weights) == pytest.approx(np.abs(pool(weights + direction) - pool(weights)), abs=1e-8)
    assert logit(high) + logit(low) == pytest.approx(2 * pool(weights), abs=1e-9)


def test_nobody_leans_to_an_option_whether_anything_was_learned_or_not():
    f = Forecasts.from_array([[0.5, 0.5], [0.5, 0.5]], options=[["a", "b"], ["c", "d"]])
    low, high = learn(f).interval(f.X, 0.5)
    assert low == pytest.approx(0.5, abs=1e-12)
    assert high == pytest.approx(0.5, abs=1e-12)


def test_options_of_an_event_have_intervals_and_other_positions_none():
    said, prior = np.array([[[0.5, 0.3, 0.2]] * 2, [[0.6, 0.4, 0.0]] * 2]), [[1 / 3] * 3, [0.5, 0.5, 0.0]]
    learned = learn(Forecasts.from_array(said[:1], [0], classes=range(3)))
    low, high = learned.interval(said, prior)
    assert (low[1, 2], high[1, 2]) == (0.0, 0.0)
    assert low[1, 0] < learned.pool(said, prior)[1, 0] < high[1, 0]
    # Two options are each other's complement.
    assert low[1, 0] == pytest.approx(1 - high[1, 1])


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("own", [False, True])
def test_intervals_of_forecasts_are_those_of_their_array(monkeypatch, k, own):
    x, y = Panel.exchangeable(4, correlation=0.4, accuracy=1.0, classes=range(k)).simulate(
        50, prior=0.5 if k == 2 else [1 / 3] * 3, seed=7
    )
    x[np.random.default_rng(0).random(x.shape[:2]) < 0.3] = NAN
    f = Forecasts.from_array(x, y, classes=range(k))
    learned = learn(f, prior=None if not own else 0.3 if k == 2 else [0.2, 0.3, 0.5])
    prior = np.linspace(0.1, 0.6, 50) if k == 2 else np.random.default_rng(1).dirichlet(np.ones(3), 50)
    given, rate = (prior, 0.2 if k == 2 else prior[::-1]) if own else (None, None)
    expected = learned.interval(f.X, given, rate, level=0.8)
    # In seven blocks; and by fewer experts, in another order.
    monkeypatch.setattr("opinionpool.forecasts.BLOCK", 4 * k * 8)
    np.testing.assert_allclose(learned.forecast_intervals(f, given, rate, level=0.8), expected, rtol=1e-10)
    some = f.select_experts([f.experts[2], f.experts[0]])
    x[:, [1, 3]] = NAN
    expected = learned.interval(x, given, rate)
    np.testing.assert_allclose(learned.forecast_intervals(some, given, rate), expected, rtol=1e-10)


def test_accurate_experts_leave_more_open_outwards_than_towards_even_chances():
    """Outcomes that almost follow from forecasts tell how little is certain at least, and not how much at most."""
    x, y = Panel.exchangeable(3, correlation=0.5, accuracy=9.0).simulate(200, seed=3)
    learned = learn(Forecasts.from_array(x[:100], y[:100]), prior=0.5)
    low, high = learned.interval(x[100:])
    answer = learned.pool(x[100:])
    sure = answer > 0.99
    assert sure.sum() > 20
    assert (logit(high) - logit(answer) > logit(answer) - logit(low))[sure].all()
    assert np.median(low[sure]) > 0.9
    weights, (down, up) = learned.panel.weights, learned.weight_interval()
    assert (up - weights > weights - down).all()


@pytest.mark.parametrize(("accuracy", "events"), [(4.0, 100), (9.0, 50), (16.0, 300)])
def test_intervals_hold_the_truth_where_experts_are_very_accurate(study, accuracy, events):
    found = study("coverage").accurate(accuracy, events, 3, 12, seed=7)
    assert found.inside >= 0.8
    assert found.weights >= 0.9
    assert found.width < 0.2


@example(8, 0.5, 3.0)
@given(st.integers(0, 10**6), st.floats(0.01, 0.99), st.sampled_from([0.3, 1.0, 3.0]))
def test_quantiles_are_where_the_mixture_has_that_probability(seed, q, spread):
    """Of normals as wide as each other or not, some of them points."""
    rng = np.random.default_rng(seed)
    probability, mean = rng.dirichlet(np.ones(4) * 5), 3.0 * rng.normal(size=(4, 50))
    sd = rng.lognormal(sigma=spread, size=(4, 50)) * (rng.random((4, 50)) > 0.1)
    x, wide = quantile(probability, mean, sd, q), np.maximum(sd, 1e-12)
    least, most = (probability @ norm.cdf((x + step - mean) / wide) for step in (-1e-9, 1e-9))
    assert (least <= q + 2e-3).all()
    assert (most >= q - 2e-3).all()
