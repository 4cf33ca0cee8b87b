"""What levels say of contrasts, against samples from the ordinal probit, and what pools make of it."""

import numpy as np
import pytest

import opinionpool as op
from opinionpool.learning.learn import learn
from opinionpool.learning.levels import CORRELATION, LatentLevels
from opinionpool.logodds import expit, logit


def judged(seed, events=400, judges=6, scale="1-5", signal=0.9):
    """Levels of judges with thresholds of their own, and outcomes."""
    rng = np.random.default_rng(seed)
    y = rng.random(events) < 0.5
    size = 2 if scale == "0-1" else 5
    error = np.sqrt(0.5) * rng.normal(size=(events, 1)) + np.sqrt(0.5) * rng.normal(size=(events, judges))
    latent = signal * np.where(y, 1.0, -1.0)[:, None] + error
    cuts = np.sort(rng.normal(size=(judges, size - 1)), axis=1)
    levels = (latent[:, :, None] > cuts).sum(axis=2)
    return levels + (size == 5), y.astype(int)


@pytest.fixture(scope="module")
def learned():
    levels, _ = judged(0, judges=3)
    return LatentLevels.learned(op.Forecasts.from_array(levels, scale="1-5"))


def test_thresholds_are_those_of_the_frequencies():
    levels, _ = judged(1, events=20_000, judges=2)
    found = LatentLevels.learned(op.Forecasts.from_array(levels, scale="1-5"))
    from scipy.special import ndtr

    for judge in range(2):
        shares = [(levels[:, judge] == level).mean() for level in range(1, 6)]
        assert np.diff(ndtr(found.thresholds[judge])) == pytest.approx(shares, abs=0.001)


def test_expected_contrasts_are_those_of_samples(learned):
    rng = np.random.default_rng(2)
    z = np.sqrt(CORRELATION) * rng.normal(size=(400_000, 1)) + np.sqrt(1 - CORRELATION) * rng.normal(size=(400_000, 3))
    level = np.stack([np.searchsorted(learned.thresholds[i][1:5], z[:, i]) for i in range(3)], axis=1)
    for wanted in ([0, 1, 4], [2, 2, 2], [4, 4, 3]):
        same = (level == wanted).all(axis=1)
        assert same.sum() > 300
        expected = learned.location + learned.spread * z[same].mean(axis=0)
        error = learned.spread * z[same].std(axis=0) / np.sqrt(same.sum())
        found = logit(learned.array((np.array(wanted) + 0.5) / 5))
        assert (np.abs(found - expected) < 4 * error + 0.01).all()


def test_a_missing_level_stays_missing_and_does_not_count(learned):
    q = learned.array([[0.1, np.nan, 0.9], [0.1, 0.5, 0.9]])
    assert np.isnan(q[0, 1])
    alone = learned.array([0.9, np.nan, np.nan])
    assert not np.isclose(alone[0], learned.array([0.9, 0.9, 0.9])[0])


def test_judges_who_say_the_same_are_surer(learned):
    one = [learned.array([q, np.nan, np.nan])[0] for q in (0.1, 0.9)]
    all_ = [learned.array([q, q, q])[0] for q in (0.1, 0.9)]
    assert all_[0] < one[0] < one[1] < all_[1]


def test_who_uses_one_level_only_and_who_gives_probabilities_count_as_they_are():
    levels, y = judged(3)
    levels[:, 0] = 3
    x = np.column_stack([levels, expit(np.random.default_rng(0).normal(size=400))])
    f = op.Forecasts.from_array(x, scale={f"expert_{i}": "1-5" for i in range(1, 7)})
    found = LatentLevels.learned(f)
    q = found.array(f.X)
    np.testing.assert_array_equal(q[:, [0, 6]], f.X[:, [0, 6]])
    assert (q[:, 1] != f.X[:, 1]).all()
    np.testing.assert_array_equal(found.forecasts(f).X, q)
    some = f.select_experts(["expert_3", "expert_2"])
    alone = found.array(np.where(np.isin(np.arange(7), (1, 2)), f.X, np.nan))
    np.testing.assert_allclose(found.forecasts(some).X, alone[:, [2, 1]])
    state = learn(op.Forecasts.from_array(levels, y, scale="1-5"))
    assert state.weights[0] == 0


@pytest.mark.parametrize("scale", ["1-5", "0-1"])
@pytest.mark.parametrize("known", [0, 100])
def test_levels_predict_better_than_as_probabilities(scale, known):
    losses = []
    for seed in range(4):
        levels, y = judged(seed, judges=12, scale=scale, signal=0.7)
        outcomes = [int(o) if t < known else None for t, o in enumerate(y)]
        f = op.Forecasts.from_array(levels, outcomes, scale=scale, classes=(0, 1))
        plain = op.Forecasts.from_array(f.X, outcomes, classes=(0, 1))
        p = [learn(g).pool_forecasts(g)[known:] for g in (f, plain)]
        losses.append([-np.mean(np.log(np.where(y[known:] == 1, each, 1 - each))) for each in p])
    levels_loss, plain_loss = np.mean(losses, axis=0)
    assert levels_loss < plain_loss


def test_every_way_to_ask_gives_one_answer():
    levels, y = judged(5, events=120)
    outcomes = [int(o) if t < 60 else None for t, o in enumerate(y)]
    f = op.Forecasts.from_array(levels, outcomes, scale="1-5", classes=(0, 1))
    state = learn(f)
    expected = state.pool_forecasts(f)
    np.testing.assert_allclose(state.pool(f.X), expected)
    low, high = state.interval(f.X)
    np.testing.assert_allclose(state.forecast_intervals(f), (low, high))
    assert ((low <= expected) & (expected <= high)).all()
    why = op.explain_event(f, 7, state)
    assert float(why.probability) == pytest.approx(expected[7])
    total = float(why.start + why.intercept + why.contributions.sum())
    assert total == pytest.approx(float(logit(expected[7])))
    np.testing.assert_allclose(why.probabilities, f.X[7])
    without = f.X[7].copy()
    without[2] = np.nan
    assert why.without[2] == pytest.approx(float(state.pool(without)))
    assert why.interval == pytest.approx((low[7], high[7]))


def test_saved_with_the_pool(tmp_path):
    levels, y = judged(6, events=80)
    f = op.Forecasts.from_array(levels, y, scale="1-5")
    pool = op.GaussianPool().fit(f)
    op.save(pool, tmp_path / "pool.json")
    np.testing.assert_allclose(op.load(tmp_path / "pool.json").predict_proba(f), pool.predict_proba(f))
