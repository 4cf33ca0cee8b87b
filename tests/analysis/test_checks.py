"""Checks of the model: how often they alarm where it holds, what they detect, and what they say."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from opinionpool import Forecasts, Panel
from opinionpool.analysis.checks import CODES, at_least, check_model, holm, not_normal
from opinionpool.pools.fit import fit_pool
from opinionpool.report.check import check_lines


@pytest.fixture(scope="module")
def study(study):
    """The study that measures them."""
    return study("checks")


def of(checks, code, serious=True):
    return [check for check in checks if check.code == code and check.serious == serious]


@pytest.mark.filterwarnings("ignore:.*one correlation of all pairs")
@pytest.mark.parametrize("kind", ["6 experts, 200 events", "the same, 40% missing", "6 experts, 200 events, 4 classes"])
def test_sound_panels_rarely_alarm(study, kind):
    rates = study.alarms(40, lambda rng: study.sound(rng, *study.SOUND[kind]), seed=1)
    # At 1% each, 4 of 40 files would have a chance of 0.0007; at 5% together, 7 one of 0.003.
    assert max(rates[code] for code in CODES) < 4 / 40
    assert rates["any"] < 7 / 40


@pytest.mark.filterwarnings("ignore:.*one correlation of all pairs")
def test_faults_are_detected(study):
    rates = study.detected(8, 200)
    missed = {name: rate for name, rate in rates.items() if rate < 0.5}
    # Long tails are believed as far as extremes are, so that they hardly matter.
    assert all("t distribution" in name for name in missed)
    assert {name.split(":")[0] for name, rate in rates.items() if rate >= 0.75} == set(CODES)


def test_every_check_is_told():
    x, y = Panel.exchangeable(3, 0.9, 0.5, 1.0).simulate(60, seed=0)
    checks = check_model(Forecasts.from_array(x, y))
    assert list(dict.fromkeys(check.code for check in checks)) == list(CODES)
    lines = check_lines(checks)
    assert lines[-1] == "too little to look for: change over time"


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 4),
    k=st.sampled_from([2, 3]),
    t=st.integers(0, 30),
    kind=st.sampled_from(["model", "certain", "even", "same"]),
)
@settings(max_examples=40)
def test_any_forecasts_can_be_checked(seed, n, k, t, kind):
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=t)
    if kind == "model":
        x = rng.dirichlet(np.ones(k), (t, n))
    elif kind == "certain":
        x = np.eye(k)[rng.integers(k, size=(t, n))]
    else:
        x = np.full((t, n, k), 1 / k) if kind == "even" else np.tile(np.arange(1, k + 1) / (k * (k + 1) / 2), (t, n, 1))
    x = x[..., 1] if k == 2 else x
    x[rng.random((t, n)) < 0.2] = np.nan
    f = Forecasts.from_array(x, np.where(rng.random(t) < 0.3, None, y), classes=range(k))
    checks = check_model(f)
    assert {check.code for check in checks} == set(CODES) - ({"complements"} if k > 2 else set())
    for check in checks:
        assert check.p is None or 0 <= check.p <= 1
        assert check.statistic is None or np.isfinite(check.statistic)


def noise(seed, t, n):
    rng = np.random.default_rng(seed)
    return rng, rng.integers(2, size=t), rng.standard_normal((t, n))


def probability(x):
    return 1 / (1 + np.exp(-x))


def test_prior_and_floor_are_those_of_the_fit():
    # With a prior of 0.99, saying 99% is not knowing.
    rng = np.random.default_rng(0)
    y = (rng.random(300) < 0.98).astype(int)
    x = np.where(y == 1, 0.99, 0.01)[:, None] * np.ones((1, 2))
    x[:, 1] = probability(rng.standard_normal(300) + 4)
    f = Forecasts.from_array(x, y)
    assert [check.expert for check in of(check_model(f, prior=0.5), "leakage")] == ["expert_1"]
    x[y == 0, 0] = 0.5
    assert of(check_model(Forecasts.from_array(x, y), fit_pool("gaussian", f, prior=0.98)), "leakage") == []


def test_skewness_is_that_of_the_residuals():
    rng, y, z = noise(1, 200, 2)
    z[:, 0] = rng.exponential(size=200) - 1
    f = Forecasts.from_array(probability(np.where(y == 1, 0.5, -0.5)[:, None] + z), y)
    (check,) = of(check_model(f), "normality")
    assert check.expert == "expert_1"
    assert "a long tail on one side (skewness +2.0" in check.text
    assert check.p < 0.01


def test_drift_by_date(study):
    _, y, z = noise(4, 300, 2)
    z[:, 0] += np.linspace(-1.5, 1.5, 300)
    f = study.forecasts(probability(np.where(y == 1, 1.0, -1.0)[:, None] + z), y)
    drifting = of(check_model(f), "drift")
    assert {check.expert for check in drifting} == {"expert_1"}
    assert any("rise over time, with either outcome" in check.text for check in drifting)
    assert of(check_model(Forecasts.from_array(f.X, y)), "drift") == []


def test_events_of_a_date_count_as_one(study):
    # 20 dates of 20 events that share a surprise: no trend, however many events there are.
    from dataclasses import replace

    alarms = 0
    for seed in range(40):
        rng, y, z = noise(seed, 400, 1)
        z += np.repeat(1.5 * rng.standard_normal(20), 20)[:, None]
        f = study.forecasts(probability(z), y)
        times = np.datetime64("2025-01-01") + np.repeat(np.arange(20), 20).astype("timedelta64[D]")
        alarms += bool(of(check_model(replace(f, times=times.astype("datetime64[us]"))), "drift"))
    assert alarms <= 3


def test_placeholders_beside_coarse_forecasts():
    rng = np.random.default_rng(5)
    tenths = probability(1.5 * rng.standard_normal((200, 2))).round(1)
    assert of(check_model(Forecasts.from_array(tenths)), "placeholders") == []
    # Of many forecasts a little more than their neighbours is significant, and no placeholder.
    many = np.repeat([0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9], [9000, 1500, 1500, 1850, 1500, 1500, 9000])
    assert of(check_model(Forecasts.from_array(many[:, None])), "placeholders") == []
    tenths[:60, 1] = 0.5
    (check,) = of(check_model(Forecasts.from_array(tenths)), "placeholders")
    assert check.expert == "expert_2"
    assert check.statistic == pytest.approx((tenths[:, 1] == 0.5).mean())
    three = rng.dirichlet(np.ones(3), (100, 1)).round(2)
    three[..., 2] = 1 - three[..., :2].sum(axis=-1)
    three[:20] = [0.33, 0.33, 0.34]
    (check,) = of(check_model(Forecasts.from_array(three, classes="abc")), "placeholders")
    assert "says 1/3 of each class 20 times in 100" in check.text


def test_clones_and_complements():
    rng = np.random.default_rng(6)
    x = rng.uniform(size=(60, 5)).round(2)
    x[:, 3], x[:, 4] = x[:, 0], 1 - x[:, 1]
    x[0, 3] = np.nan
    checks = check_model(Forecasts.from_array(x, experts=["ann", "bob", "cy", "dee", "eve"]))
    (clone,), (opposite,) = of(checks, "clones"), of(checks, "complements")
    assert clone.text == "'dee' says the same as 'ann' on 100% of 59 events: one expert, not two"
    assert opposite.text == "'eve' says the opposite of 'bob' on 100% of 60 events: one expert, not two"
    # Always 50% is neither.
    checks = check_model(Forecasts.from_array(np.full((60, 2), 0.5)))
    assert of(checks, "clones") == of(checks, "complements") == []


@pytest.mark.parametrize("code", ["clones", "complements"])
def test_who_says_the_same_but_too_few_different_things_is_not_told_apart(code):
    """Votes of 0 and 1, all alike: too little to call them one voice, nor to say that nobody is like another."""
    votes = np.tile(np.arange(40.0)[:, None] % 2, 3)
    if code == "complements":
        votes[:, 1] = 1 - votes[:, 1]
    (check,) = of(check_model(Forecasts.from_array(votes, np.arange(40) % 2)), code, False)
    assert check.statistic is None
    assert "too few different" in check.text
    assert f"too little to look for: {code}" in "\n".join(check_lines([check]))


def test_lines_name_the_worst_and_count_the_others():
    rng = np.random.default_rng(7)
    x = rng.uniform(size=(100, 4)).round(2)
    x[:40, 1:] = 0.5
    lines = check_lines(check_model(Forecasts.from_array(x)))
    assert "a placeholder? (the same of 2 more)" in lines[0]
    assert lines[1] == "looked for and not found: clones, complements"
    assert lines[2].startswith("too little to look for: long tails")


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12), st.integers(0, 3))
def test_holm(p, more):
    adjusted = holm(np.array(p), len(p) + more)
    # By its definition: the k-th least p times how many are not less, and never less than one before.
    order = np.argsort(p, kind="stable")
    steps = [min(1.0, (len(p) + more - k) * p[i]) for k, i in enumerate(order)]
    assert [adjusted[i] for i in order] == pytest.approx(np.maximum.accumulate(steps))


@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.0, 1.0))
def test_at_least(successes, more, p):
    trials = successes + more
    each = [math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(successes, trials + 1)]
    assert at_least(successes, trials, p) == pytest.approx(math.fsum(each), abs=1e-12)


@pytest.mark.parametrize("n", [20, 100, 400])
def test_normality_is_rejected_as_often_as_is_said(n):
    z = np.random.default_rng(n).standard_normal((4000, n))
    p = np.array([not_normal(row) for row in z])
    for level in (0.05, 0.01):
        assert abs((p < level).mean() - level) < 4 * np.sqrt(level * (1 - level) / len(z)) + 0.002


@pytest.mark.parametrize("seed", range(5))
def test_normality_by_anderson_and_darling(seed):
    pytest.importorskip("scipy", minversion="1.17", reason="older ones give no p-value")
    values = np.random.default_rng(seed).standard_t(6, 80)
    theirs = stats.anderson(values, "norm", method="interpolate")
    p = not_normal(values)
    assert p == pytest.approx(theirs.pvalue, abs=0.02) or (theirs.pvalue in (0.01, 0.15) and (p < 0.013) | (p > 0.14))


def test_the_middle_of_a_scale_is_no_placeholder():
    levels = np.where(np.arange(60)[:, None] % 4, 3, 1 + np.arange(60)[:, None] % 5)
    on_scale = Forecasts.from_array(levels, np.arange(60) % 2, scale="1-5")
    as_numbers = Forecasts.from_array((levels - 1) / 4, np.arange(60) % 2)
    assert [bool(of(check_model(each), "placeholders")) for each in (on_scale, as_numbers)] == [False, True]
