"""Reliability tables, decompositions and areas under the curve against scikit-learn, SciPy and published numbers."""

from __future__ import annotations

import csv
import gzip
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from sklearn import metrics
from sklearn.isotonic import IsotonicRegression

from opinionpool.errors import ArgumentError, LearningError, OutcomeError, ShapeError
from opinionpool.forecasts import Forecasts
from opinionpool.scoring import scores
from opinionpool.scoring.reliability import (
    Groups,
    areas,
    auc,
    decompose,
    isotonic,
    reliability_table,
    tied,
    wilson_interval,
)

nan = math.nan
events = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 1), st.integers(0, 3)), min_size=1, max_size=30).filter(
    lambda rows: any(weight for _, _, weight in rows)
)


def arrays(rows):
    p, y, weight = (np.array(column) for column in zip(*rows, strict=True))
    return p / 10, y, weight


# Reliability tables


def test_tied_forecasts_stay_together():
    table = reliability_table([0.3] * 4, [1, 0, 0, 1])
    assert (table.forecast.tolist(), table.frequency.tolist(), table.count.tolist()) == ([0.3], [0.5], [4])
    assert table.gap == pytest.approx(0.2)
    assert table.to_frame()["count"].tolist() == [4]


@pytest.mark.parametrize(
    ("p", "y", "bins"),
    [([0.95, 1.0], [1, 0], [(0.975, 0.5, 2)]), ([0, 0, 1, 1], [0, 0, 1, 1], [(0, 0, 2), (1, 1, 2)])],
)
def test_bins_hold_the_events_there_are(p, y, bins):
    table = reliability_table(p, y)
    found = zip(table.forecast, table.frequency, table.count, strict=True)
    assert list(map(list, found)) == [pytest.approx(each) for each in bins]
    assert table.gap == pytest.approx(0.475 * (len(bins) == 1))


def test_three_events_are_too_few_to_judge():
    table = reliability_table([0.6] * 3, [1, 1, 1])
    assert table.interval_low == pytest.approx([0.4385], abs=5e-5)
    assert table.interval_high.tolist() == [1]
    assert table.too_few.tolist() == [True]


def test_enough_events_are_judged():
    sure = reliability_table([0.6] * 30, [1] * 20 + [0] * 10)
    assert not sure.too_few.any()
    refuted = reliability_table([0.001] * 3, [1, 1, 1])
    assert refuted.interval_low[0] > 0.001
    assert not refuted.too_few.any()
    rare = reliability_table([0.001] * 1000, [1] + [0] * 999)
    assert rare.too_few.all()


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_wilson_interval_against_scipy(level):
    for n in (1, 2, 3, 10, 1000):
        for k in {0, 1, n // 2, n - 1, n}:
            low, high = wilson_interval(np.array([float(k)]), np.array([float(n)]), level)
            expected = stats.binomtest(k, n).proportion_ci(level, method="wilson")
            assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-12)


@given(events)
def test_every_event_is_in_one_bin(rows):
    p, y, weight = arrays(rows)
    table = reliability_table(p, y, sample_weight=weight)
    assert table.count.sum() == weight.sum()
    assert table.count @ table.frequency == pytest.approx(weight @ y)
    assert table.count @ table.forecast == pytest.approx(weight @ p)
    assert (table.count > 0).all()
    for column in ("low", "high", "forecast", "frequency", "interval_low", "interval_high"):
        assert ((getattr(table, column) >= 0) & (getattr(table, column) <= 1)).all()
    assert (table.interval_low <= table.frequency).all()
    assert (table.frequency <= table.interval_high).all()
    assert (table.interval_low < table.interval_high).all()
    assert (table.high[:-1] < table.low[1:]).all()
    assert (np.diff(table.frequency) > 0).all()


def test_intervals_of_isotonic_bins_hold_calibrated_forecasts():
    rng = np.random.default_rng(6)
    for low, high in ((0, 1), (0.3, 0.7), (0.05, 0.15)):
        held = []
        for _ in range(100):
            p = rng.uniform(low, high, 400)
            table = reliability_table(p, rng.random(400) < p)
            held.append((table.interval_low <= table.forecast) & (table.forecast <= table.interval_high))
        assert np.concatenate(held).mean() > 0.91


def test_unresolved_events_are_left_out():
    table = reliability_table([0.2, 0.3, nan, 0.2], [0, None, 1, 1])
    assert table.count.tolist() == [2]
    assert table.forecast.tolist() == [0.2]


@pytest.mark.parametrize("judge", [reliability_table, decompose, auc])
def test_refused_events(judge):
    with pytest.raises(LearningError, match="nothing can be judged"):
        judge([0.5, nan], [None, 1])
    with pytest.raises(LearningError, match="nothing can be judged"):
        judge([0.5], [1], sample_weight=[0])
    with pytest.raises(ShapeError, match="3 classes; judge one class against the rest"):
        judge([[0.2, 0.3, 0.5]], [1])
    with pytest.raises(OutcomeError, match=r"0\.61"):
        judge([0.5], [0.61])


@pytest.mark.parametrize(
    ("judge", "outcomes", "options", "error", "told"),
    [
        (auc, [0, 0], {}, LearningError, "both outcomes"), (auc, [1, 1], {}, LearningError, "both outcomes"),
        (decompose, [0, 1], {"score": "crps"}, ArgumentError, "one of brier, log, and it is 'crps'"),
        (reliability_table, [0, 1], {"level": 1.0}, ArgumentError, "strictly between 0 and 1"),
    ],
)  # fmt: skip
def test_refused(judge, outcomes, options, error, told):
    with pytest.raises(error, match=told):
        judge([0.5, 0.2], outcomes, **options)


# Decompositions


@pytest.mark.parametrize("score", ["brier", "log"])
@given(rows=events)
def test_parts_add_up_and_are_never_negative(score, rows):
    p, y, weight = arrays(rows)
    parts = decompose(p, y, score, weight)
    each = scores.brier_score(p, y) if score == "brier" else scores.log_loss(p, y)
    assert parts.score == pytest.approx(scores.mean_score(each, weight).mean, rel=1e-13)
    assert parts.miscalibration - parts.discrimination + parts.uncertainty == pytest.approx(parts.score, abs=1e-14)
    assert parts.miscalibration >= 0
    assert parts.discrimination >= 0
    assert parts.count == weight.sum()


@pytest.mark.parametrize("score", ["brier", "log"])
def test_parts_against_scikit_learn(score):
    rng = np.random.default_rng(7)
    p = rng.beta(0.5, 0.5, 800).round(2)
    y = (rng.random(800) < 0.2 + 0.6 * p).astype(int)
    recalibrated = IsotonicRegression().fit(p, y).predict(p)
    frequency = np.full(800, y.mean())
    if score == "brier":
        loss = metrics.brier_score_loss
    else:
        p = p.clip(1e-8, 1 - 1e-8)
        loss = metrics.log_loss
    parts = decompose(p, y, score)
    assert parts.miscalibration == pytest.approx(loss(y, p) - loss(y, recalibrated), abs=1e-9)
    assert parts.discrimination == pytest.approx(loss(y, frequency) - loss(y, recalibrated), abs=1e-9)
    assert parts.uncertainty == pytest.approx(loss(y, frequency), abs=1e-12)


def test_published_decomposition_of_rain_forecasts(shared):
    """The summary printed in the documentation of reliabilitydiag, whose data these are."""
    published = {
        "Logistic": (0.206, 0.0171, 0.0555, 0.244),
        "EMOS": (0.232, 0.0183, 0.0305, 0.244),
        "ENS": (0.266, 0.0661, 0.0441, 0.244),
        "EPC": (0.234, 0.0223, 0.0323, 0.244),
    }
    with gzip.open(shared / "data" / "niamey_precip.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    for expert, expected in published.items():
        said = [row for row in rows if row["expert"] == expert]
        parts = decompose([float(row["probability"]) for row in said], [int(row["outcome"]) for row in said])
        found = (parts.score, parts.miscalibration, parts.discrimination, parts.uncertainty)
        assert found == pytest.approx(expected, abs=5.5e-4)
        assert found[1:3] == pytest.approx(expected[1:3], abs=5.5e-5)


def test_floor_of_the_log_loss_enters_first():
    parts = decompose([0.0, 1e-5, 0.9, 0.2], [1, 0, 1, 0], "log", floor=1e-4)
    assert parts.score == pytest.approx(-(math.log(1e-4) + math.log1p(-1e-4) + math.log(0.9) + math.log(0.8)) / 4)
    assert parts == decompose([1e-4, 1e-4, 0.9, 0.2], [1, 0, 1, 0], "log")


# Area under the curve


@settings(max_examples=50)
@given(events.filter(lambda rows: len({y for _, y, weight in rows if weight}) == 2))
def test_area_against_scikit_learn(rows):
    p, y, weight = arrays(rows)
    expected = metrics.roc_auc_score(y, p, sample_weight=weight)
    found = auc(p, y, weight)
    assert found.area == pytest.approx(expected, abs=1e-12)
    repeated = auc(np.repeat(p, weight), np.repeat(y, weight))
    assert found.area == pytest.approx(repeated.area, abs=1e-12)
    assert found.standard_error == pytest.approx(repeated.standard_error, abs=1e-12, nan_ok=True)
    assert (found.happened, found.failed) == (weight @ y, weight @ (1 - y))


def test_standard_error_is_delongs():
    rng = np.random.default_rng(9)
    y = rng.integers(0, 2, 60)
    p = (rng.random(60) + 0.5 * y).clip(0, 1).round(1)
    positive, negative = p[y == 1], p[y == 0]
    wins = np.array([[(a > b) + 0.5 * (a == b) for b in negative] for a in positive])
    variance = wins.mean(axis=1).var(ddof=1) / len(positive) + wins.mean(axis=0).var(ddof=1) / len(negative)
    found = auc(p, y)
    assert found.area == pytest.approx(wins.mean(), rel=1e-13)
    assert found.standard_error == pytest.approx(math.sqrt(variance), rel=1e-12)


@pytest.mark.parametrize(("p", "y"), [([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]), ([0.2, 0.6, 0.4], [0, 1, 0])])
def test_no_standard_error_where_there_is_none(p, y):
    found = auc(p, y)
    assert found.area == 1
    assert math.isnan(found.standard_error)


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_areas_of_many_experts_against_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    x = rng.choice([0, 0.1, 0.5, 0.9, 1], size=(30, 4))
    x[rng.random((30, 4)) < 0.4] = nan
    y = rng.choice([0, 1, nan], size=30)
    found = areas(Forecasts.from_array(x, y))
    for i in range(4):
        used = ~np.isnan(x[:, i]) & ~np.isnan(y)
        if len(set(y[used])) == 2:
            assert found[i] == pytest.approx(metrics.roc_auc_score(y[used], x[used, i]))
        else:
            assert np.isnan(found[i])


def test_areas_of_nobody_and_of_more_classes():
    assert np.isnan(areas(Forecasts.from_array([[nan], [0.3]]))).all()
    with pytest.raises(ArgumentError, match="there are 3"):
        areas(Forecasts.from_array(np.full((1, 1, 3), 1 / 3), classes="abc"))


# Isotonic regression

weighed = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 1), st.integers(1, 3)), min_size=1, max_size=25)


def fitted(fit: Groups, p):
    """The level of the group that each forecast falls in."""
    return fit.frequency[np.searchsorted(fit.high, p)]


def min_max(rows):
    """max over a <= x of min over b >= x of the mean outcome in [a, b], for each row, as fractions."""
    levels = sorted({x for x, _, _ in rows})

    def mean(a, b):
        inside = [(y, w) for x, y, w in rows if a <= x <= b]
        return Fraction(sum(y * w for y, w in inside), sum(w for _, w in inside))

    fit = {x: max(min(mean(a, b) for b in levels if b >= x) for a in levels if a <= x) for x in levels}
    return [fit[x] for x, _, _ in rows]


@given(weighed)
def test_fit_is_the_min_max_formula(rows):
    p, y, weight = arrays(rows)
    fit = isotonic(tied(p, y, weight))
    exact = min_max(rows)
    assert fitted(fit, p) == pytest.approx([float(value) for value in exact], rel=1e-15)
    assert len(fit.low) == len(set(exact))


@pytest.mark.parametrize("shape", ["one late violator", "sawtooth", "falling", "rising"])
def test_adverse_orders(shape):
    n = 3000
    x = np.arange(n) / n
    y = {
        "one late violator": np.append(x[:-1], -100.0),
        "sawtooth": x + 0.01 * (np.arange(n) % 7 == 0),
        "falling": -x,
        "rising": x,
    }[shape]
    weight = 1 + np.arange(n) % 3.0
    expected = IsotonicRegression().fit(x, y, sample_weight=weight).predict(x)
    assert fitted(isotonic(tied(x, y, weight)), x) == pytest.approx(expected, abs=1e-9)


def test_fractional_weights_leave_certainties_exact():
    weight = np.full(300, 0.1)
    fit = isotonic(tied(np.linspace(0, 1, 300), np.repeat([0.0, 1.0], 150), weight))
    assert fit.frequency.tolist() == [0, 1]
