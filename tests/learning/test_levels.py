"""What levels count as, against sums and a mixed model, and what pools make of them."""

from dataclasses import replace

import numpy as np
import pytest

import opinionpool as op
from opinionpool.estimation import sampling
from opinionpool.forecasts import Forecasts
from opinionpool.learning.constants import ARBITRARY, BASE_RATE, SHIFT
from opinionpool.learning.learn import learn
from opinionpool.learning.levels import Coding
from opinionpool.learning.problem import Problem
from opinionpool.logodds import expit, logit


def judged(seed, events=400, judges=6, signal=0.9):
    """Votes of judges with thresholds of their own, and outcomes."""
    rng = np.random.default_rng(seed)
    y = rng.random(events) < 0.5
    error = np.sqrt(0.5) * rng.normal(size=(events, 1)) + np.sqrt(0.5) * rng.normal(size=(events, judges))
    latent = signal * np.where(y, 1.0, -1.0)[:, None] + error
    return (latent > 0.5 * rng.normal(size=judges)).astype(int), y.astype(int)


def levels_of(forecasts, prior=None):
    return Coding.of(Problem.of(forecasts, prior, None), np.zeros(len(forecasts.experts)))


def counted(p, m):
    """Mean log-odds over the interval of width 1/M about p, by a sum."""
    u = p[..., None] + (np.arange(20_000) + 0.5) / 20_000 / m - 0.5 / m
    return logit(u).mean(axis=-1)


@pytest.mark.parametrize("m", [2, 3, 10])
def test_a_level_is_the_mean_of_its_interval(m):
    y = np.arange(400) % 2
    f = op.Forecasts.from_array(np.tile(np.arange(400) % m, (2, 1)).T, y, scale=f"0-{m - 1}", classes=(0, 1))
    found = levels_of(f)
    np.testing.assert_allclose(logit(found.array(f.X)), counted(f.X, m) - found.shift, atol=1e-3)
    if m > 2:
        between = found.array([[0.45, 0.55]])[0]
        np.testing.assert_allclose(logit(between), counted(np.array([0.45, 0.55]), m) - found.shift, atol=1e-3)


def test_samples_may_say_more_than_the_last_level_and_who_says_0_and_1_may_not():
    f = op.Forecasts.from_array([[0, 0], [1, 1]] * 4, scale={"expert_1": "0-1"})
    low, edge, high, _ = levels_of(f).array([[0.25, 0.25], [0.75, 0.75], [0.9, 0.9], [0.9, 1.0]])
    assert low.tolist() == pytest.approx([0.2, 0.2])
    assert edge.tolist() == pytest.approx([0.8, 0.8])
    assert high[0] > 0.9
    assert high[1] == pytest.approx(0.8)


def test_who_always_says_the_same_counts_for_nothing_and_probabilities_count_as_they_are():
    votes, y = judged(3)
    votes[:, 0] = 1
    x = np.column_stack([votes, expit(np.random.default_rng(0).normal(size=400)), 1 + np.arange(400) % 5])
    scales = {f"expert_{i}": "0-1" for i in range(1, 7)} | {"expert_8": "1-5"}
    f = op.Forecasts.from_array(x, scale=scales)
    found = levels_of(f)
    q = found.array(f.X)
    np.testing.assert_array_equal(q[:, 6], f.X[:, 6])
    assert (q[:, 1] != f.X[:, 1]).all()
    np.testing.assert_array_equal(found.forecasts(f).X, q)
    some = f.select_experts(["expert_3", "expert_2"])
    only = found.array(np.where(np.isin(np.arange(8), (1, 2)), f.X, np.nan))
    np.testing.assert_allclose(found.forecasts(some).X, only[:, [2, 1]])
    assert np.isnan(found.array(np.where(np.arange(8) == 2, np.nan, f.X))[:, 2]).all()
    state = learn(op.Forecasts.from_array(votes, y, scale="0-1"))
    assert state.weights[0] == 0
    assert not levels_of(op.Forecasts.from_array(np.clip(f.X, 0.01, 0.99))).changes


def scored(seed, events=400, judges=5, lift=0.0, levels=10):
    """Scores of judges on one scale that stands too high by `lift` log-odds, and outcomes."""
    rng = np.random.default_rng(seed)
    y = rng.random(events) < 0.4
    signal = np.where(y, 1.0, -1.0)[:, None] + rng.normal(size=(events, 1)) + rng.normal(size=(events, judges))
    return np.floor(expit(signal + lift) * levels), y.astype(int)


@pytest.mark.parametrize(("known", "prior"), [(15, None), (60, None), (0, 0.2)])
def test_the_shift_is_the_mean_of_its_posterior(known, prior):
    scores, y = scored(0, lift=1.5)
    outcomes = [int(o) if t < known else None for t, o in enumerate(y)]
    f = op.Forecasts.from_array(scores, outcomes, scale="0-9", classes=(0, 1))
    found = levels_of(f, prior).shift
    base = np.linspace(-6, 6, 4001)
    happened, centre = sum(y[:known]), logit(0.5 if prior is None else prior)
    log = happened * np.log(expit(base)) + (known - happened) * np.log(expit(-base))
    weight = np.exp(log - log.max() - 0.5 * ((base - centre) / BASE_RATE) ** 2)
    scored_as = counted(f.X, 10).mean()
    gap = scored_as - base
    # The mean of the scores is the base rate and the shift together.
    anywhere = ARBITRARY * np.exp(-0.5 * (gap / SHIFT) ** 2) / SHIFT / np.sqrt(2 * np.pi)
    at_zero = (1 - ARBITRARY) * np.interp(scored_as, base, weight)
    step = base[1] - base[0]
    expected = (weight * anywhere * gap).sum() * step / ((weight * anywhere).sum() * step + at_zero)
    assert found == pytest.approx(np.full(5, expected), rel=0.1 if known else 1e-3)


def test_a_scale_that_stands_too_high_is_moved_and_probabilities_are_not():
    high, y = scored(1, lift=2.5)
    anchored, _ = scored(1)
    assert levels_of(op.Forecasts.from_array(high, scale="0-9")).shift[0] > 0.2
    assert abs(levels_of(op.Forecasts.from_array(anchored, scale="0-9")).shift[0]) < 0.1
    p = expit(np.random.default_rng(0).normal(size=400))
    p[0] = 0.0
    scales = {f"expert_{i}": "0-9" for i in range(1, 6)}
    f = op.Forecasts.from_array(np.column_stack([high, p]), scale=scales)
    found = levels_of(f)
    assert found.shift[5] == 0
    q = found.array(f.X)
    np.testing.assert_array_equal(q[:, 5], p)
    assert (q[:, :5] < f.X[:, :5]).all()
    np.testing.assert_allclose(found.forecasts(f).X, q, atol=1e-15)
    losses = []
    for known in (0, 20):
        outcomes = [int(o) if t < known else None for t, o in enumerate(y)]
        g = op.Forecasts.from_array(high, outcomes, scale="0-9", classes=(0, 1))
        plain = op.Forecasts.from_array(g.X, outcomes, classes=(0, 1))
        each = [learn(x).pool_forecasts(x)[known:] for x in (g, plain)]
        losses.append([-np.mean(np.log(np.where(y[known:] == 1, answer, 1 - answer))) for answer in each])
    assert all(mine < other for mine, other in losses)


@pytest.mark.parametrize("known", [0, 60])
def test_who_says_0_and_1_only_votes(known):
    votes, y = judged(7, events=120)
    outcomes = [int(o) if t < known else None for t, o in enumerate(y)]
    f = op.Forecasts.from_array(votes, outcomes, scale="0-1", classes=(0, 1))
    expected = learn(f).pool_forecasts(f)
    pool = op.GaussianPool().fit(votes.astype(float), np.array([np.nan if o is None else o for o in outcomes]))
    np.testing.assert_allclose(pool.predict_proba(votes.astype(float))[:, 1], expected)
    probabilities = votes.astype(float)
    probabilities[0] = 0.5
    assert not levels_of(op.Forecasts.from_array(probabilities)).changes


def test_leniency_is_a_mixed_model_of_judges_and_events():
    rng = np.random.default_rng(8)
    t, n = 400, 6
    lenient = rng.normal(0, 0.6, n)
    scores = rng.normal(size=(t, 1)) + lenient + 0.7 * rng.normal(size=(t, n))
    scores[rng.random((t, n)) > 0.4] = np.nan
    levels = np.where(np.isnan(scores), np.nan, np.digitize(np.nan_to_num(scores), np.linspace(-2, 2, 9)))
    f = op.Forecasts.from_array(levels, scale="0-9")
    found = levels_of(f).leniency
    design = np.zeros((len(f.probabilities), t + n))
    cells = np.arange(len(design))
    design[cells, f.event_index] = design[cells, t + f.expert_index] = 1
    odds = counted(f.probabilities, 10)
    fixed = np.linalg.lstsq(design, odds, rcond=None)[0]
    error = odds - design @ fixed
    own = fixed[t:] - fixed[t:].mean()
    worth = np.bincount(f.expert_index, 1 - 1 / f.crowd[f.event_index])
    noise = error @ error / (len(odds) - (f.crowd > 0).sum() - n + 1) / worth
    variance = (own**2 - noise).mean()
    np.testing.assert_allclose(found, own * variance / (variance + noise), atol=1e-3)
    freed = levels_of(f).forecasts(f)
    present = ~np.isnan(f.X)
    mean = np.where(present, found, 0).sum(axis=1) / np.maximum(present.sum(axis=1), 1)
    shift = levels_of(f).shift
    np.testing.assert_allclose(logit(freed.X), counted(f.X, 10) - shift - mean[:, None], atol=1e-3)


def test_who_judged_an_event_matters_less():
    losses = []
    for seed in range(3):
        scores, y = scored(seed, judges=6, levels=10)
        rng = np.random.default_rng(seed)
        moved = np.clip(scores + np.array([-3, 3, -2, 2, 0, 0]), 0, 9)
        moved[rng.random(moved.shape) < 0.6] = np.nan
        f = op.Forecasts.from_array(
            moved, [int(o) if t < 20 else None for t, o in enumerate(y)], scale="0-9", classes=(0, 1)
        )
        plain = op.Forecasts.from_array(f.X, [int(o) if t < 20 else None for t, o in enumerate(y)], classes=(0, 1))
        each = [learn(x).pool_forecasts(x)[20:] for x in (f, plain)]
        losses.append([-np.mean(np.log(np.where(y[20:] == 1, answer, 1 - answer))) for answer in each])
    mine, other = np.mean(losses, axis=0)
    assert mine < other - 0.01


def test_levels_go_stale_too():
    rng = np.random.default_rng(0)
    y = rng.random(300) < 0.5
    age = rng.integers(0, 40, (300, 4)).astype(float)
    signal = np.where(y, 1, -1)[:, None] * np.exp(-age / 15) + 0.7 * rng.normal(size=(300, 4))
    levels = np.digitize(signal, [-0.8, -0.2, 0.2, 0.8]) + 1
    levels[:, 3] = signal[:, 3] > 0
    outcomes = [int(v) if t < 200 else None for t, v in enumerate(y)]
    scales = {"expert_1": "1-5", "expert_2": "1-5", "expert_3": "1-5", "expert_4": "0-1"}
    f = op.Forecasts.from_array(levels, outcomes, scale=scales, classes=(0, 1))
    now = np.datetime64("2025-03-01", "us")
    made = now - (age * 86400e6).astype("timedelta64[us]")
    timed = replace(f, made=made[f.event_index, f.expert_index], asked=np.full(300, now))
    state = learn(timed)
    assert state.recency is not None
    p, plain = state.pool_forecasts(timed), learn(f).pool_forecasts(f)
    mine, other = (-np.mean(np.log(np.where(y[200:], q[200:], 1 - q[200:]))) for q in (p, plain))
    assert mine < other
    low, high = state.forecast_intervals(timed)
    why = op.explain_event(timed, 250, state)
    assert float(why.probability) == pytest.approx(p[250])
    assert why.interval == pytest.approx((low[250], high[250]))
    np.testing.assert_allclose(why.probabilities, f.X[250])


@pytest.mark.parametrize("kind", ["votes", "scores", "mixed"])
def test_every_way_to_ask_gives_one_answer(kind):
    votes, y = judged(5, events=120)
    scores, _ = scored(5, events=120, judges=6, lift=1.0)
    own = {f"expert_{i}": "0-1" if i < 4 or kind == "votes" else "0-9" for i in range(1, 7) if i < 6 or kind != "mixed"}
    given = {"votes": votes, "scores": scores, "mixed": np.where(np.arange(6) < 3, votes, scores)}[kind]
    if kind == "mixed":
        given = np.where(np.arange(6) == 5, (given + 0.5) / 11, given)
    outcomes = [int(o) if t < 60 else None for t, o in enumerate(y)]
    f = op.Forecasts.from_array(given, outcomes, scale="0-9" if kind == "scores" else own, classes=(0, 1))
    state = learn(f)
    expected = state.pool_forecasts(f)
    np.testing.assert_allclose(state.pool(f.X), expected)
    low, high = state.interval(f.X)
    np.testing.assert_allclose(state.forecast_intervals(f), (low, high))
    assert ((low <= expected) & (expected <= high)).all()
    why = op.explain_event(f, 7, state)
    assert float(why.probability) == pytest.approx(expected[7])
    total = float(why.start + why.intercept + why.contributions.sum() + why.members_shift)
    assert total == pytest.approx(float(logit(expected[7])))
    np.testing.assert_allclose(why.probabilities, f.X[7])
    without = f.X[7].copy()
    without[2] = np.nan
    assert why.without[2] == pytest.approx(float(state.pool(without)))
    assert why.interval == pytest.approx((low[7], high[7]))


def test_a_sample_of_many_votes_stands_for_all(monkeypatch):
    """As many were right on most events, so that who voted tells the events apart; an array is as its forecasts."""
    monkeypatch.setattr(sampling, "EVENTS", 1000)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 6000)
    votes = (rng.random((6000, 16)) < np.where(y == 1, 0.7, 0.3)[:, None]).astype(float)
    forecasts = op.Forecasts.from_array(votes, y)
    drawn, right = sampling.sample_of(forecasts, np.ones(6000)), (votes.mean(axis=1) > 0.5) == y
    weight = drawn.frequencies(np.ones(6000))
    assert np.average(right[drawn.positions], weights=weight) == pytest.approx(right.mean(), abs=0.02)
    found = [op.GaussianPool().fit(x, z).predict_proba(x)[:, 1] for x, z in ((votes, y), (forecasts, None))]
    np.testing.assert_allclose(found[0], found[1], atol=1e-12)
    # Each vote is worth the log-odds of .7.
    meant = expit(np.log(7 / 3) * (2 * votes - 1).sum(axis=1))
    assert np.abs(found[0] - meant).mean() < 0.03


def rounding(classes, lowest=0.0):
    """An expert who says tenths and one who says fifths, and for what is least probable 0, or `lowest`."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 11, (120, 1)) * [0.1, 0.0] + np.array([0.0, 0.2]) * rng.integers(0, 6, (120, 1))
    q = np.stack([first, 1.0 - first, np.zeros((120, 2))][:classes], axis=2)
    y = np.array([rng.choice(classes, p=0.9 * each.mean(axis=0) + 0.1 / classes) for each in q])
    q = np.maximum(q, lowest) / np.maximum(q, lowest).sum(axis=2, keepdims=True)
    return Forecasts.from_array(q[..., 1] if classes == 2 else q, y, classes=range(classes))


@pytest.mark.parametrize("classes", [2, 3])
def test_a_zero_is_the_mean_of_what_is_rounded_to_it(classes, tmp_path):
    f = rounding(classes)
    learned = learn(f)
    below = (np.arange(100_000)[:, None] + 0.5) / 100_000 * [0.05, 0.1]
    zero = expit(logit(below).mean(axis=0))
    assert learned.coding.zero.ravel() == pytest.approx(zero, rel=1e-4)
    meant = np.where(f.X == 0, zero.reshape(2, *[1] * (classes > 2)), f.X)
    meant = meant / meant.sum(axis=2, keepdims=True) if classes > 2 else np.where(f.X == 1, 1.0 - zero, meant)
    assert learned.pool(f.X) == pytest.approx(replace(learned, coding=None).pool(meant), rel=1e-3)
    assert learned.pool(f.X) == pytest.approx(learned.pool_forecasts(f), abs=1e-12)
    op.save(op.GaussianPool().fit(f.X, f.outcomes, classes=range(classes)), tmp_path / "pool.json")
    found = op.load(tmp_path / "pool.json").predict_proba(f.X)
    assert (found[:, 1] if classes == 2 else found) == pytest.approx(learned.pool(f.X), abs=1e-9)
    assert learn(f, beliefs=None).coding is None
    assert learn(rounding(classes, lowest=1e-5)).coding is None
