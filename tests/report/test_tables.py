"""Tables behind the report against brute force and simulated truth, and their drawings on Matplotlib's Axes."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.isotonic import IsotonicRegression

from opinionpool.analysis.explanation import weight_table
from opinionpool.analysis.residuals import shared_errors
from opinionpool.errors import ArgumentError, LearningError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.constants import PAIR_WORTH
from opinionpool.learning.learn import learn
from opinionpool.pools.fit import FitOptions, fit_pool
from opinionpool.scoring.compare import compare_pools
from opinionpool.scoring.learning_curve import learning_curve
from opinionpool.scoring.reliability import reliability_curve
from opinionpool.scoring.splits import Splits
from tests.panels import panel


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 1)), min_size=1, max_size=40))
@settings(max_examples=40)
def test_the_curve_is_isotonic_regression(events):
    p, y = np.array([e[0] for e in events]) / 20, np.array([e[1] for e in events])
    curve = reliability_curve(p, y, draws=3)
    expected = IsotonicRegression(y_min=0, y_max=1).fit(p, y).predict(curve.probability)
    np.testing.assert_allclose(curve.frequency, expected, atol=1e-12)
    assert (curve.probability == np.unique(p)).all()
    assert curve.counts.sum() == curve.events == len(events)


def test_the_band_holds_calibrated_forecasts_as_often_as_it_says():
    rng = np.random.default_rng(3)
    outside = []
    for seed in range(60):
        p = rng.random(80)
        y = (rng.random(80) < p).astype(int)
        outside.append(reliability_curve(p, y, level=0.8, draws=60, seed=seed).outside)
    # Points of one curve go together, so the mean of 60 curves is off by about 0.02.
    assert np.mean(outside) == pytest.approx(0.2, abs=0.06)


def test_classes_are_taken_together_and_what_is_no_option_is_left_out():
    p = np.array([[0.2, 0.3, 0.5], [0.6, 0.4, np.nan], [np.nan] * 3, [0.1, 0.1, 0.8]])
    curve = reliability_curve(p, [2, 0, 1, -1], draws=20)
    assert curve.probability.tolist() == [0.2, 0.3, 0.4, 0.5, 0.6]
    assert curve.frequency.tolist() == [0.0, 0.0, 0.0, 1.0, 1.0]
    assert curve.events == 2


def test_the_last_point_of_a_learning_curve_is_the_score_out_of_sample():
    forecasts = panel(61)
    curve = learning_curve(forecasts, "recalibrated", fit=FitOptions(0.5))
    compared = compare_pools(forecasts, ["recalibrated"], repeats=1, prior=0.5)
    # The folds differ by one event, which the curve leaves out of the larger ones.
    last = next(pool for pool in compared.pools if pool.pool == "recalibrated").score
    assert curve.score[-1] == pytest.approx(last, abs=0.02)
    even = learning_curve(panel(60), "recalibrated", fit=FitOptions(0.5))
    exact = compare_pools(panel(60), ["recalibrated"], repeats=1, prior=0.5)
    assert even.sizes.tolist() == [0, 5, 10, 20, 48]
    assert even.score[-1] == pytest.approx(next(p for p in exact.pools if p.pool == "recalibrated").score, abs=1e-9)
    np.testing.assert_allclose(even.average, exact.average.score, atol=1e-12)


def test_options_of_an_event_are_scored_against_its_own():
    # Who always gives each option the same scores 0, however many options the longest event has.
    rng = np.random.default_rng(4)
    sizes = rng.integers(2, 6, 60)
    q = np.where(np.arange(5) < sizes[:, None, None], 1 / sizes[:, None, None], np.nan).repeat(3, axis=1)
    y = rng.integers(0, sizes)
    options = [[f"{letter}{i}" for letter in "abcde"[:k]] for i, k in enumerate(sizes)]
    f = Forecasts.from_array(q, [own[i] for own, i in zip(options, y, strict=True)], options=options)
    curve = learning_curve(f)
    np.testing.assert_allclose(curve.average, 0, atol=1e-12)
    np.testing.assert_allclose(curve.score, 0, atol=1e-12)


def test_a_pool_learns_along_its_curve():
    # One expert of five knows; the average never finds out.
    rng = np.random.default_rng(1)
    y = np.arange(400) % 2
    odds = np.column_stack([2 * (2 * y - 1) + rng.normal(size=400), rng.normal(size=(400, 4))])
    curve = learning_curve(Forecasts.from_array(1 / (1 + np.exp(-odds)), y))
    assert curve.score[-1] > curve.score[0] + 0.2
    assert curve.low[-1] > 0
    assert (curve.low < curve.high).all()


def test_forward_in_time_the_latest_events_are_learned_from():
    forecasts = panel(40)
    times = np.datetime64("2025-01-01", "us") + np.arange(40)[::-1] * np.timedelta64(86_400_000_000, "us")
    dated = Forecasts(**{**vars_of(forecasts), "times": times})
    curve = learning_curve(dated, splits=Splits.of("time"), fit=FitOptions(0.5))
    # Of six blocks the last is scored, here the first rows, and the rows after them are the latest before it.
    tested = np.arange(curve.scored)
    latest = dated.select_events(np.arange(curve.scored, curve.scored + 5))
    p = fit_pool("gaussian", latest, prior=0.5).pool(dated.X[tested])
    y = dated.outcomes[tested]
    expected = 1 + np.log(np.where(y == 1, p, 1 - p)).mean() / np.log(2)
    assert curve.score[curve.sizes.tolist().index(5)] == pytest.approx(expected, abs=1e-9)


def vars_of(forecasts):
    return {key: getattr(forecasts, key) for key in forecasts.__dataclass_fields__}


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda: reliability_curve([0.3, np.nan], [-1, 1]), LearningError, "there is none"),
        (lambda: reliability_curve([0.3], [1], level=1.0), ArgumentError, "level"),
        (lambda: learning_curve(panel(6)), LearningError, "needs at least"),
        (lambda: learning_curve(panel(), "average"), ArgumentError, "does not learn"),
        (lambda: shared_errors(*learned_from(panel(30, experts=1))), LearningError, "two experts at least"),
    ],
)
def test_what_there_is_nothing_to_draw_of_is_refused(call, error, told):
    with pytest.raises(error, match=told):
        call()


def test_errors_are_correlated_as_by_brute_force():
    forecasts = panel(50, missing=0.3, seed=4)
    # Learned from the data alone, extremes are believed.
    found = shared_errors(forecasts, learn(forecasts, prior=0.5, beliefs=None))
    contrasts = np.log(forecasts.X / (1 - forecasts.X))
    residual = contrasts.copy()
    for label in (0, 1):
        residual[forecasts.outcomes == label] -= np.nanmean(contrasts[forecasts.outcomes == label], axis=0)
    n = len(forecasts.experts)
    raw, shared = np.eye(n), np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            both = ~np.isnan(residual[:, i]) & ~np.isnan(residual[:, j])
            a, b = residual[both, i], residual[both, j]
            raw[i, j], shared[i, j] = (a @ b) / np.sqrt((a @ a) * (b @ b)), both.sum()
    off = ~np.eye(n, dtype=bool)
    common = (raw * shared)[off].sum() / shared[off].sum()
    held = (shared * raw + (PAIR_WORTH + n) * common) / (shared + PAIR_WORTH + n)
    np.fill_diagonal(held, 1.0)
    order = [forecasts.experts.index(expert) for expert in found.experts]
    assert found.common == pytest.approx(common, abs=1e-9)
    np.testing.assert_allclose(found.correlation, held[np.ix_(order, order)], atol=1e-9)


def test_those_who_err_together_stand_together():
    rng = np.random.default_rng(2)
    y = np.arange(300) % 2
    a, b = rng.normal(size=(2, 300, 1))
    shared = np.hstack([a, b, a, b, a, b])
    odds = 2 * y[:, None] - 1 + 2 * shared + 0.7 * rng.normal(size=(300, 6))
    found = shared_errors(*learned_from(Forecasts.from_array(1 / (1 + np.exp(-odds)), y, experts=list("abABxy"))))
    assert {frozenset(found.experts[:3]), frozenset(found.experts[3:])} == {frozenset("aAx"), frozenset("bBy")}
    some = shared_errors(*learned_from(panel(60, experts=9)), most=4)
    assert (len(some.experts), some.left_out) == (4, 5)


def learned_from(forecasts):
    return forecasts, learn(forecasts)


def test_weights_come_with_intervals():
    state = learn(panel(40))
    table = weight_table(state)
    order = np.argsort(-state.weights)
    assert table.experts == tuple(state.experts[i] for i in order)
    np.testing.assert_allclose([table.low, table.high], np.array(state.weight_interval())[:, order])
    assert (table.low < table.weight).all()
    assert (table.weight < table.high).all()
    assert weight_table(fit_pool("median", panel())) is None
    assert np.isnan(weight_table(fit_pool("linear", panel())).low).all()
