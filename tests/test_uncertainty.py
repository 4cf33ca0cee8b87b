"""Intervals: coverage where the truth is drawn from the beliefs, and the algebra behind them."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import expit, logit

from opinionpool.errors import ArgumentError, LearningError
from opinionpool.filled import fill_as_expected
from opinionpool.forecasts import Forecasts
from opinionpool.learn import learn
from opinionpool.panel import Panel
from opinionpool.uncertainty import Uncertainty

NAN = float("nan")


@pytest.mark.parametrize(("events", "n", "rho"), [(10, 3, 0.5), (30, 10, 0.0), (100, 3, 0.5)])
def test_coverage(study, events, n, rho):
    assert study("coverage").cell(events, n, rho, 60)[0] == pytest.approx(0.9, abs=0.05)


def test_more_events_narrow_the_interval_around_the_answer():
    x, y = Panel.exchangeable(4, correlation=0.4, accuracy=1.0).simulate(400, seed=1)
    widths = []
    for t in (20, 100, 400):
        learned = learn(Forecasts.from_array(x, np.where(np.arange(400) < t, y, NAN)), prior=0.5)
        low, high = learned.interval(x[:20])
        answer = learned.pool(x[:20])
        assert ((low < answer) & (answer < high)).all()
        assert logit(high) - logit(answer) == pytest.approx(logit(answer) - logit(low), abs=1e-6)
        widths.append((logit(high) - logit(low)).mean())
    assert widths == sorted(widths, reverse=True)


def test_nobody_leaves_the_prior_certain():
    learned = learn(Forecasts.from_array([[0.7, 0.6], [0.3, NAN]], [1, 0]))
    low, high = learned.interval([[NAN, NAN]], prior=0.2)
    assert (low[0], high[0]) == pytest.approx((0.2, 0.2))


def test_clones_have_the_interval_of_one():
    x, y = Panel.exchangeable(3, correlation=0.4, accuracy=1.0).simulate(30, seed=5)
    one, two = learn(Forecasts.from_array(x, y)), learn(Forecasts.from_array(x[:, [0, 1, 2, 1]], y))
    assert np.array(two.interval(x[:, [0, 1, 2, 1]])) == pytest.approx(np.array(one.interval(x)), rel=1e-6)
    assert two.doubt.weight_errors(4)[1] == pytest.approx(one.doubt.weight_errors(3)[1] / 2, rel=1e-6)


@given(st.integers(0, 10**6))
def test_expected_contrasts_are_the_exact_sub_panel(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(4, 8))
    sigma, weights = root @ root.T, rng.normal(size=4)
    panel = Panel(sigma @ weights / 2, sigma)
    said = np.where(rng.random(4) < 0.6, rng.normal(size=4), NAN)
    if not np.isnan(said).all():
        full = fill_as_expected(said[None, :, None], panel.parts)[0, :, 0]
        assert weights @ full == pytest.approx(panel.contributions(expit(said)).sum(), abs=1e-8)


def test_weights_move_answers_as_the_gradient_says():
    """With a covariance of one direction, the interval's end is the pool whose weights moved that far."""
    panel = Panel([1.0, 0.5], [[2.0, 0.4], [0.4, 1.0]])
    direction = np.array([0.3, 0.1, -0.2])
    q = np.array([[0.8, 0.3], [0.6, NAN]])
    _, high = Uncertainty(np.outer(direction, direction)).interval(panel, q, level=0.682689492137086)
    for row, end in zip(q, high, strict=True):
        full = fill_as_expected(logit(row)[None, :, None], panel.parts)[0, :, 0]
        moved = logit(panel.pool(row)) + abs(direction[0] + direction[1:] @ full)
        assert logit(end) == pytest.approx(moved, abs=1e-9)


def test_what_has_no_interval_says_so():
    x, y = Panel.exchangeable(2, correlation=0.4, accuracy=1.0).simulate(30, seed=5)
    with pytest.raises(LearningError, match="learned as 'full' does not say how sure it is"):
        learn(Forecasts.from_array(x, y), beliefs=None).interval(x)
    learned = learn(Forecasts.from_array(x, y))
    with pytest.raises(ArgumentError, match=r"strictly between 0 and 1, and it is 1\.5"):
        learned.interval(x, level=1.5)
