"""Explanations add up to the answer, leaving somebody out is the exact sub-panel; and what an answer depends on."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from opinionpool import Panel
from opinionpool.analysis.explanation import explain, explain_event
from opinionpool.analysis.sensitivity import correlation_range, sensitivity
from opinionpool.errors import ArgumentError, ShapeError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Belief, Beliefs, ExpertBeliefs
from opinionpool.learning.learn import learn
from opinionpool.logodds import POOL_FLOOR
from opinionpool.pools.fit import fit_pool
from opinionpool.pools.registry import POOLS

ADDITIVE = ("gaussian", "linear", "log", "independent", "average", "geometric", "extremized", "recalibrated")


def log_odds(p):
    """Log-odds, or centred log-probabilities."""
    p = np.asarray(p)
    if p.ndim == 0:
        return np.log(p / (1 - p))
    return np.log(p) - np.log(p).mean()


def draws(seed, n, k, events, missing=0.0):
    """Forecasts by n correlated experts on events of k classes, some missing, and outcomes."""
    rng = np.random.default_rng(seed)
    panel = Panel.from_features(
        rng.uniform(0.6, 1.3, n), 0.4 if n > 1 else 0.0, accuracy=rng.uniform(0.5, 2.0, n), classes=range(k)
    )
    x, y = panel.simulate(events, 0.5 if k == 2 else np.full(k, 1 / k), seed=rng)
    away = rng.random(x.shape[:2]) < missing
    x[away] = np.nan
    return x, y


def forecasts(x, y, k, **more):
    return Forecasts.from_array(x, y, classes=range(k), **more)


@pytest.mark.filterwarnings("ignore:.*one correlation of all pairs")
@settings(max_examples=50)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 6),
    k=st.sampled_from([2, 3]),
    missing=st.sampled_from([0.0, 0.4]),
    resolved=st.sampled_from([0, 3, 40]),
    pool=st.sampled_from(ADDITIVE),
    given_prior=st.booleans(),
    rated=st.booleans(),
)
def test_parts_add_up(seed, n, k, missing, resolved, pool, given_prior, rated):
    x, y = draws(seed, n, k, resolved + 1, missing)
    outcomes = [int(c) for c in y[:-1]] + [None]
    f = forecasts(x, outcomes, k)
    prior = (0.3 if k == 2 else [0.2, 0.3, 0.5]) if given_prior else None
    rate = (0.6 if k == 2 else [0.5, 0.3, 0.2]) if rated else None
    state = fit_pool(pool, f, prior=prior)
    why = explain_event(f, resolved, state, prior=prior, base_rate=rate)
    answer = state.pool(x[-1], prior, rate)
    assert why.probability == pytest.approx(answer, abs=1e-14)
    total = why.start + why.intercept + why.contributions.sum(axis=0) + why.shift
    total = total if why.members_shift is None else total + why.members_shift
    assert (why.members_share is None) == (why.members_shift is None)
    assert total == pytest.approx(why.total, abs=1e-12)
    if "at-floor" in {note.code for note in why.notes}:
        # The sum is beyond what an answer may be.
        assert np.min([1 - answer, answer] if k == 2 else answer) == pytest.approx(POOL_FLOOR)
        assert np.abs(total).max() > np.abs(log_odds(answer)).max()
    else:
        assert total == pytest.approx(answer if why.scale == "probability" else log_odds(answer), abs=1e-8)
    if why.scale == "log-odds" and why.weights is not None:
        weights = why.weights if k == 2 else why.weights[:, None]
        assert why.contributions == pytest.approx(weights * why.contrast, abs=1e-12)
    assert set(why.experts) == {name for name, q in zip(f.experts, x[-1].reshape(n, -1)[:, 0], strict=True) if q == q}
    for i, name in enumerate(why.experts):
        row = x[-1].copy()
        row[f.experts.index(name)] = np.nan
        assert why.without[i] == pytest.approx(state.pool(row, prior, rate), abs=1e-12)


@given(seed=st.integers(0, 10_000), k=st.sampled_from([2, 3]))
def test_without_an_expert_is_the_panel_of_the_others(seed, k):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((4, 6))
    panel = Panel(rng.normal(1.0, 0.5, 4), root @ root.T, rng.normal(0, 0.3, (4, k) if k > 2 else 4), classes=range(k))
    x = rng.uniform(0.05, 0.95, 4) if k == 2 else rng.dirichlet(np.ones(k), 4)
    x[3] = np.nan
    prior = 0.2 if k == 2 else [0.2, 0.5, 0.3]
    why = explain(panel, x, prior)
    assert why.experts == panel.names[:3]
    for i in range(3):
        others = [j for j in range(3) if j != i]
        assert why.without[i] == pytest.approx(panel.subset(others).pool(x[others], prior), abs=1e-12)
    present = panel.subset(range(3))
    assert why.weights == pytest.approx(present.weights, rel=1e-9)
    assert why.contributions == pytest.approx(present.contributions(x[:3], prior), rel=1e-9, abs=1e-12)


def test_interval_is_that_of_the_fit_and_only_the_default_pool_has_one():
    x, y = draws(3, 4, 2, 50)
    f = forecasts(x, [*y[:49], None], 2)
    state = fit_pool("gaussian", f)
    why = explain_event(f, 49, state)
    low, high = state.interval(x[49])
    assert why.interval == (float(low), float(high))
    assert low < why.probability < high
    assert explain_event(f, 49, fit_pool("log", f)).interval is None


def test_negative_weights_are_put_in_words():
    r = [[1.0, 0.9, 0.1], [0.9, 1.0, 0.1], [0.1, 0.1, 1.0]]
    panel = Panel.from_features(1.0, r, [1.0, 0.3, 0.5], names=["ann", "bob", "cy"])
    why = explain(panel, [0.7, 0.6, 0.4])
    assert why.weights[1] < 0
    (note,) = why.notes
    assert note.code == "negative-weights"
    assert "'bob'" in note.text
    assert "shared error" in note.text
    assert "from 'ann' (correlation 0.90)" in note.text
    contrary = explain(Panel([-1.0, 2.0], [[2.0, 0.0], [0.0, 2.0]]), [0.7, 0.6])
    assert "what this expert calls likely happens less often" in contrary.notes[0].text


@pytest.mark.filterwarnings("ignore:.*one correlation of all pairs")
def test_many_negative_weights_are_counted():
    # One good expert, and ten who share his error and hardly know anything.
    panel = Panel.from_features(1.0, 0.8, [1.0] + [0.05] * 10)
    notes = explain(panel, np.full(11, 0.6)).notes
    assert len(notes) == 4
    assert notes[-1].text == "7 more weights below 0, by less"
    assert sum(note.count for note in notes) == 10


@pytest.mark.parametrize("pool", sorted(set(POOLS) - set(ADDITIVE)))
def test_pools_that_are_no_sum_are_refused(pool):
    x, y = draws(5, 3, 2, 20)
    f = forecasts(x, y, 2)
    with pytest.raises(ArgumentError, match=f"{pool} pool's answer is not a sum"):
        explain_event(f, 0, fit_pool(pool, f))


def test_unknown_events_and_several_at_once():
    f = forecasts([[0.4], [0.6]], [0, 1], 2, events=["q1", "rain"])
    state = fit_pool("average", f)
    with pytest.raises(ArgumentError, match="no event is called 'rian'; did you mean 'rain'"):
        explain_event(f, "rian", state)
    with pytest.raises(ArgumentError, match="events 0 to 1"):
        explain_event(f, 2, state)
    with pytest.raises(ArgumentError, match="one event is explained at a time"):
        explain(state, [[0.4], [0.6]])
    with pytest.raises(ShapeError):
        explain(state, [0.4, 0.6])


@pytest.mark.parametrize("pool", ["gaussian", "linear", "log"])
def test_events_with_options_of_their_own(pool):
    rng = np.random.default_rng(9)
    sizes = rng.integers(2, 5, 30)
    options = [[f"{t}{label}" for label in "abcd"[:size]] for t, size in enumerate(sizes)]
    x = np.full((30, 3, 4), np.nan)
    for t, size in enumerate(sizes):
        x[t, :, :size] = rng.dirichlet(np.full(size, 2.0), 3)
    outcomes = [rng.choice(own) for own in options[:29]]
    f = Forecasts.from_array(x, [*outcomes, None], options=options)
    state = fit_pool(pool, f)
    for t in range(30):
        why = explain_event(f, t, state)
        size = sizes[t]
        assert why.classes == tuple(options[t])
        assert why.probabilities == pytest.approx(x[t, :, 1] if size == 2 else x[t, :, :size])
        assert size == 2 or why.probability.sum() == pytest.approx(1.0)
        total = why.start + why.intercept + why.contributions.sum(axis=0) + why.shift
        assert total == pytest.approx(why.total, abs=1e-12)
        assert total == pytest.approx(why.probability if pool == "linear" else log_odds(why.probability), abs=1e-8)


def test_a_log_pool_knows_no_shared_errors():
    x, y = draws(12, 3, 2, 40)
    f = forecasts(x, y, 2)
    why = explain_event(f, 0, fit_pool("log", f, weights=[1.0, -0.5, 0.5]))
    assert [note.text for note in why.notes] == [
        "'expert_2' (weight -0.500) counts against its own forecast: given the others' forecasts, "
        "it pointed the other way"
    ]
    f = forecasts([[0.5, 0.7]], [None], 2)
    assert explain_event(f, 0, fit_pool("log", f, prior=0.5, weights=[-1.0, 1.0]), prior=0.5).notes == ()


def pooled(q, prior, kappa, rho):
    """Equal experts (24): the sum of contrasts times kappa over 1 + (n - 1) rho."""
    odds = np.log(np.array(q) / (1 - np.array(q))) - math.log(prior / (1 - prior))
    total = math.log(prior / (1 - prior)) + kappa / (1 + (len(q) - 1) * rho) * odds.sum()
    return 1 / (1 + math.exp(-total))


def test_ends_are_those_of_the_closed_form():
    q, prior = [0.7, 0.6, 0.8], 0.4
    beliefs = Beliefs(correlation=(0.5, 30), calibration=(0.8, 25), extremes=math.inf)
    found = {effect.what: effect for effect in sensitivity(Forecasts.from_array([q], [None]), 0, beliefs, prior)}
    assert set(found) == {"correlation", "calibration"}
    for rho, answer in zip(found["correlation"].values, found["correlation"].answers, strict=True):
        assert answer == pytest.approx(pooled(q, prior, 0.8, rho), abs=1e-9)
    for kappa, answer in zip(found["calibration"].values, found["calibration"].answers, strict=True):
        assert answer == pytest.approx(pooled(q, prior, kappa, 0.5), abs=1e-9)


def test_a_range_is_what_so_many_events_leave_open():
    # A common correlation estimated from n events of N experts, each with K - 1 = 1 coordinate.
    rng, n, experts, rho = np.random.default_rng(0), 200, 4, 0.5
    found = []
    for _ in range(2000):
        x = math.sqrt(rho) * rng.normal(size=(n, 1)) + math.sqrt(1 - rho) * rng.normal(size=(n, experts))
        mean_square, total = (x**2).sum() / experts, (x.sum(axis=1) ** 2).sum()
        found.append((total / mean_square / experts - 1) / (experts - 1))
    low, high = correlation_range(Belief(rho, n), experts)
    assert np.mean((np.array(found) > low) & (np.array(found) < high)) == pytest.approx(0.9, abs=0.03)


def test_the_largest_effect_is_first_and_assessed_ones_are_told_from_assumed_ones():
    f = Forecasts.from_array([[0.7, 0.6, 0.9]], [None], experts=["ann", "bob", "cy"])
    effects = sensitivity(f, 0, Beliefs(experts={"cy": {"auc": (0.9, 30)}}))
    sizes = [effect.size for effect in effects]
    assert sizes == sorted(sizes, reverse=True)
    assert {(effect.what, effect.expert): effect.assessed for effect in effects} == {
        ("correlation", ""): False, ("calibration", ""): False, ("accuracy", "cy"): True, ("prior", ""): False,
    }  # fmt: skip


def test_everything_that_is_assessed_is_varied():
    f = Forecasts.from_array([[0.7, 0.6, 0.9]], [None], experts=["ann", "bob", "cy"])
    beliefs = Beliefs(
        calibration=0.9,
        experts={
            "ann": {"bias": (0.4, 30)},
            "bob": {"relative_accuracy": 1.0},
            "cy": {"calibration": 0.7, "hit_rate": 0.8},
        },
    )
    found = {(effect.what, effect.expert): effect for effect in sensitivity(f, 0, beliefs, prior=0.5)}
    assert set(found) == {
        ("correlation", ""), ("calibration", ""), ("bias", "ann"), ("relative accuracy", "bob"), ("calibration", "cy"),
        ("accuracy", "cy"),
    }  # fmt: skip
    for effect in found.values():
        assert effect.values[0] < effect.values[1]
        assert effect.answers[0] != effect.answers[1]
    # The answer at an end is that of the panel assessed so.
    low = found["bias", "ann"].values[0]
    assessed = replace(beliefs, experts={**beliefs.experts, "ann": ExpertBeliefs(bias=(low, 30))})
    direct = learn(f, prior=0.5, beliefs=assessed).pool([0.7, 0.6, 0.9])
    assert found["bias", "ann"].answers[0] == pytest.approx(float(np.squeeze(direct)), abs=1e-12)


def test_more_classes_are_an_error():
    f = Forecasts.from_array([[[0.5, 0.3, 0.2]]], [None], classes="abc")
    with pytest.raises(ArgumentError, match="two classes"):
        sensitivity(f, 0)


@pytest.mark.parametrize(
    "beliefs",
    [
        Beliefs(auc=(0.501, 5)),
        Beliefs(calibration=(1.0, 1e-5)),
        Beliefs(auc=(0.8, 10), experts={"a": ExpertBeliefs(relative_accuracy=(1e-4, 1e-5))}),
    ],
)
def test_beliefs_that_leave_everything_open_have_answers(beliefs):
    f = Forecasts.from_array([[0.7, 0.6, 0.8]], [None], experts=["a", "b", "c"])
    answers = [answer for effect in sensitivity(f, 0, beliefs) for answer in effect.answers]
    assert len(answers) >= 6
    assert all(0 < answer < 1 for answer in answers)


def test_an_answer_without_forecasts_has_no_interval():
    x, y = draws(3, 4, 2, 30)
    assert explain(learn(Forecasts.from_array(x, y)), np.full(4, np.nan)).interval is None
