"""Events with options of their own: learned together, pooled as if each were alone."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize

import opinionpool as op
from opinionpool.analysis.checks import correlations, normality, spreads
from opinionpool.analysis.residuals import Residuals
from opinionpool.errors import ArgumentError, LearningError, OutcomeError, ProbabilityError, ShapeError
from opinionpool.estimators.pools import AveragePool, GaussianPool, LogPool
from opinionpool.learning.learn import learn
from opinionpool.logodds import softmax
from opinionpool.model.contrasts import Extremes
from opinionpool.pools.fit import fit_pool
from opinionpool.pools.registry import POOLS
from opinionpool.scoring import scores
from opinionpool.scoring.compare import compare_pools

MU = np.array([1.0, 1.5, 0.7])
SIGMA = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, 0.7], [0.5, 0.7, 1.4]])
RIVALS = [name for name in POOLS if name not in {"gaussian", "beta-linear", "dawid-skene"}]


def simulated(events, sizes=(2, 3, 5), mu=MU, sigma=SIGMA, seed=1, missing=0.0, unresolved=0):
    """Forecasts drawn from the class-symmetric model, and each event's forecasts as (N, K_t)."""
    rng = np.random.default_rng(seed)
    root, n, wide = np.linalg.cholesky(sigma), len(mu), max(sizes)
    x, outcomes, options = np.full((events, n, wide), np.nan), [], []
    for t in range(events):
        k = int(rng.choice(sizes))
        happened = int(rng.integers(k))
        said = (rng.standard_normal((k, n)) @ root.T).T / np.sqrt(2)
        said[:, happened] += mu
        x[t, :, :k] = softmax(said[:, 1:] - said[:, :1])
        options.append([f"{t}-{j}" for j in range(k)])
        outcomes.append(options[-1][happened] if t >= unresolved else None)
    x[rng.random((events, n)) < missing] = np.nan
    wide = max(map(len, options))
    return op.Forecasts.from_array(x[..., :wide] if wide > 2 else x[..., 1], outcomes, options=options)


def shuffled(forecasts, seed=5):
    """The same with the options of each event in another order, and where each was."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(own)) for own in forecasts.options]
    x = forecasts.X.copy()
    for t, order in enumerate(orders):
        x[t, :, : len(order)] = x[t][:, order]
    options = [[own[i] for i in order] for own, order in zip(forecasts.options, orders, strict=True)]
    return op.Forecasts.from_array(x, forecasts.happened, options=options, experts=forecasts.experts), orders


def own(forecasts, t):
    """The forecasts on one event over its own options, (N, K_t)."""
    return forecasts.X[t][:, : len(forecasts.options[t])]


# The container.


def test_forecasts_hold_the_options_of_each_event():
    f = op.Forecasts.from_array(
        [[[0.5, 0.5, np.nan], [np.nan] * 3], [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]],
        ["no", None],
        options=[["yes", "no"], ["red", "blue", "green"]],
    )
    assert f.classes == ("option 1", "option 2", "option 3")
    assert f.sizes.tolist() == [2, 3]
    assert f.happened == ["no", None]
    assert f.X[0, 0].tolist() == [0.5, 0.5, 0.0]
    assert np.isnan(f.X[0, 1]).all()
    assert f.even.tolist() == [[0.5, 0.5, 0.0], [1 / 3] * 3]
    assert f.select_events([1]).options == (("red", "blue", "green"),)
    assert "options=2 to 3" in repr(f)


@pytest.mark.parametrize(
    ("options", "outcomes", "error", "match"),
    [
        ([["a"]], None, ShapeError, "'event_1' has 1 option only, 'a', and needs two"),
        ([["a", "a"]], None, ShapeError, "an option twice among 'a', 'a'"),
        ([["a", "b"]] * 2, None, ShapeError, "1 events need as many sets"),
        ([["a", "b"]], ["c"], OutcomeError, "outcome of event 'event_1' is 'c', and its options are 'a', 'b'"),
        ([["a", "b"]], ["a", "b"], ShapeError, "as many outcomes"),
    ],
)
def test_options_that_are_none(options, outcomes, error, match):
    with pytest.raises(error, match=match):
        op.Forecasts.from_array([[0.4]], outcomes, options=options)


def test_an_event_gives_nothing_to_an_option_that_it_has_not():
    with pytest.raises(ProbabilityError, match="has 2 options, and a forecast gives something to a 3th"):
        op.Forecasts.from_array([[[0.5, 0.4, 0.1]], [[0.5, 0.4, 0.1]]], options=[["a", "b"], ["a", "b", "c"]])


# Learning.


def gaussian_cost(theta, forecasts, pairs):
    """Minus the log-likelihood of all contrasts with the first option, written out event by event."""
    n = len(forecasts.experts)
    mu, root = theta[:n], np.zeros((n, n))
    root[np.tril_indices(n)] = theta[n:]
    sigma, cost = root @ root.T, 0.0
    for t in np.flatnonzero(forecasts.resolved):
        q = own(forecasts, t)
        present = np.flatnonzero(~np.isnan(q[:, 0]))
        if not len(present):
            continue
        d, y = q.shape[1] - 1, int(forecasts.outcomes[t])
        said = np.log(q[present, 1:] / q[present, :1])
        mean = mu[present, None] * (1.0 * (np.arange(1, d + 1) == y) - (y == 0))
        shared = (np.eye(d) + 1.0) / 2.0
        covariance = np.kron(sigma[np.ix_(present, present)], shared)
        off = (said - mean).ravel()
        cost += np.linalg.slogdet(covariance)[1] / 2 + off @ np.linalg.solve(covariance, off) / 2
    return cost


@pytest.mark.parametrize("missing", [0.0, 0.25])
def test_full_structure_is_maximum_likelihood_written_out(missing):
    f = simulated(45, (2, 3, 4), MU[:2], SIGMA[:2, :2], seed=3, missing=missing, unresolved=3)
    start = np.concatenate([MU[:2], [1.4, 0.5, 1.5]])
    found = minimize(gaussian_cost, start, args=(f, None), method="BFGS", options={"gtol": 1e-7})
    root = np.zeros((2, 2))
    root[np.tril_indices(2)] = found.x[2:]
    heard = f.resolved & (f.crowd > 0)
    rows = (f.sizes[heard] - 1).sum()
    learned = learn(f, structure="full", beliefs=None, floor=1e-12).panel
    np.testing.assert_allclose(learned.contrast, found.x[:2], rtol=2e-5)
    # Sums of squares are divided by the degrees of freedom, and one mean was estimated of each expert.
    np.testing.assert_allclose(learned.covariance, root @ root.T * rows / (rows - 1), rtol=2e-4)


def test_events_with_two_options_are_binary_events_in_either_order():
    f = simulated(60, (2,), seed=4)
    learned = learn(f, structure="full", beliefs=None)
    # A binary event and its mirror image, each counted half: nobody can lean to a class.
    both = op.Forecasts.from_array(
        np.concatenate([f.X, 1.0 - f.X]), np.concatenate([f.outcomes, 1 - f.outcomes]), experts=f.experts
    )
    binary = learn(both, structure="full", beliefs=None, prior=0.5, sample_weight=np.full(120, 0.5))
    np.testing.assert_allclose(learned.panel.contrast, binary.panel.contrast, rtol=1e-10)
    np.testing.assert_allclose(learned.weights / 59, binary.weights / 58, rtol=1e-10)
    halves = learn(both, prior=0.5, sample_weight=np.full(120, 0.5)).weights
    np.testing.assert_allclose(learn(f).weights, halves, rtol=0.03)


@pytest.mark.parametrize("structure", ["full", "common", "auto"])
def test_known_weights_come_back_from_options_of_all_sizes(structure):
    sigma = 1.5 * (0.5 * np.eye(3) + 0.5) if structure == "common" else SIGMA
    f = simulated(4000, (2, 3, 5, 9), MU, sigma, seed=7)
    learned = learn(f, structure=structure, beliefs="default" if structure == "auto" else None)
    truth = 2 * np.linalg.solve(sigma, MU)
    np.testing.assert_allclose(learned.weights, truth, atol=0.05)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", ["gaussian", *RIVALS])
def test_the_order_of_options_means_nothing(name, missing):
    f = simulated(80, seed=10, missing=missing, unresolved=10)
    turned_round, orders = shuffled(f)
    state, again = fit_pool(name, f), fit_pool(name, turned_round)
    if state.weights is not None:
        np.testing.assert_allclose(again.weights, state.weights, rtol=1e-6, atol=1e-9)
    p, q = ((s.pool(x.X, x.even)) for s, x in ((state, f), (again, turned_round)))
    for t, order in enumerate(orders):
        np.testing.assert_allclose(q[t, : len(order)], p[t, order], rtol=1e-6, atol=1e-10)


def test_answers_are_those_of_each_event_alone():
    f = simulated(40, (2, 3, 6), seed=11, missing=0.2)
    learned = learn(f)
    together = learned.pool_forecasts(f)
    alone = op.Panel.from_parts(learned.panel.parts, None, f.experts)
    settings_ = learned.panel.settings._replace(extremes=Extremes(learned.panel.settings.extremes.limit))
    for t in range(40):
        k, q = len(f.options[t]), own(f, t)
        panel = op.Panel.from_parts(alone.parts, None, f.experts, range(k), settings_)
        p = panel.pool(q[:, 1] if k == 2 else q, 0.5 if k == 2 else np.full(k, 1 / k))
        np.testing.assert_allclose(together[t, :k], [1 - p, p] if k == 2 else p, rtol=1e-9)
        assert (together[t, k:] == 0).all()


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_answer_as_on_each_event_alone(name):
    f = simulated(30, (2, 3, 6), seed=12, missing=0.2)
    state = fit_pool(name, f)
    together = state.pool(f.X, f.even)
    rule = POOLS[name].pool
    for t in range(30):
        k, q = len(f.options[t]), own(f, t)
        p = rule(q[:, 1] if k == 2 else q, classes=k, **state.parameters)
        np.testing.assert_allclose(together[t, :k], [1 - p, p] if k == 2 else p, rtol=1e-9)


def test_log_pool_maximises_the_likelihood_over_the_options_there_are():
    f = simulated(60, seed=13)

    def cost(w):
        total = 0.0
        for t in range(60):
            pooled = w @ np.log(own(f, t))
            total -= pooled[f.outcomes[t]] - np.log(np.exp(pooled).sum())
        return total

    best = minimize(cost, np.full(3, 0.3), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(fit_pool("log", f).weights, best.x, atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 12))
def test_few_events_of_any_sizes_have_one_finite_answer(seed, events):
    f = simulated(max(events, 1), (2, 4, 7), seed=seed, unresolved=int(events == 0), missing=0.3)
    p = GaussianPool().fit(f).predict_proba(f)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert ((p > 0) == (f.even > 0)).all()


def test_the_data_alone_need_two_rows():
    with pytest.raises(LearningError, match="2 resolved events with forecasts, or one with 3 options"):
        learn(simulated(1, (2,)), structure="independent", beliefs=None)
    with pytest.raises(LearningError, match=r"rank .* of two options \(one with K counts as K - 1\)"):
        learn(simulated(3, (2,)), structure="full", beliefs=None)


def test_a_crowd_may_choose_among_options():
    rng = np.random.default_rng(14)
    n, t = 600, 50
    crowd = simulated(t, (2, 3, 4), np.linspace(0.6, 1.4, n), 2 * (0.7 * np.eye(n) + 0.3), seed=15)
    keep = rng.random(len(crowd.event_index)) < 0.1
    x = np.full(crowd.X.shape, np.nan)
    x[crowd.event_index[keep], crowd.expert_index[keep]] = crowd.probabilities[keep]
    f = op.Forecasts.from_array(x, crowd.happened, options=crowd.options)
    learned = learn(f)
    assert learned.structure == "crowd"
    # 50 events say little of the correlation, which believed and true lie on either side of, by either model.
    mixed = learned.panel.parts.dependence
    assert mixed.share.min() > 0
    assert all(0.2 < each.rho < 0.7 for each in mixed.models)
    again, orders = shuffled(f)
    p, q = (each.pool_forecasts(g) for each, g in ((learned, f), (learn(again), again)))
    for i, order in enumerate(orders):
        np.testing.assert_allclose(q[i, : len(order)], p[i, order], rtol=1e-6)
    average = fit_pool("average", f).pool(f.X, f.even)
    gain = scores.log_score(p, f.outcomes, f.even) - scores.log_score(average, f.outcomes, f.even)
    assert gain.mean() > 0


# What makes no sense, and what is told.


def test_priors_are_those_of_the_options():
    f = simulated(20, seed=16)
    with pytest.raises(ArgumentError, match="no prior can be shared by all"):
        learn(f, prior=[0.2, 0.2, 0.2, 0.2, 0.2])
    with pytest.raises(ProbabilityError, match="above 0 for each of the event's options"):
        learn(f, prior=np.full((20, 5), 0.2))
    leaning = f.even * np.array([3.0, 1, 1, 1, 1])
    leaning /= leaning.sum(axis=1, keepdims=True)
    nobody = op.Forecasts.from_array(np.full((20, 3, 5), np.nan), options=f.options)
    np.testing.assert_allclose(learn(f, prior=leaning).pool_forecasts(nobody, leaning), leaning, rtol=1e-12)


def test_experts_cannot_lean_to_options():
    with pytest.raises(ArgumentError, match="nobody can be biased towards one of them"):
        learn(simulated(20), beliefs=op.Beliefs(bias=0.3))


def test_a_panel_that_knows_classes_does_not_answer_about_options():
    panel = op.Panel(MU, SIGMA, bias=np.eye(3), classes="abc", names=["expert_1", "expert_2", "expert_3"])
    f = simulated(5, (2, 3))
    with pytest.raises(ArgumentError, match="these events have options of their own"):
        panel.pool_forecasts(f, f.even)


def test_what_is_no_option_gets_nothing_from_an_expert():
    panel = op.Panel(MU, SIGMA, classes="abc")
    prior = [[0.5, 0.5, 0.0]]
    with pytest.raises(ProbabilityError, match=r"class 2 has prior 0 in event 0, .* forecast 1 gives it 0\.1"):
        panel.pool([[[0.5, 0.5, 0], [0.5, 0.4, 0.1], [0.5, 0.5, 0]]], prior)
    added = panel.contributions([[[0.7, 0.3, 0], [0.5, 0.5, 0], [0.4, 0.6, 0]]], prior)
    np.testing.assert_allclose(added[..., 2], 0.0, atol=1e-12)
    assert np.abs(added[..., :2]).max() > 0.1


def test_estimators_take_forecasts_and_refuse_arrays():
    f = simulated(60, seed=17, unresolved=20)
    pool = GaussianPool().fit(f)
    p = pool.predict_proba(f)
    assert p.shape == (60, 5)
    assert pool.predict(f).tolist() == [own_[i] for own_, i in zip(f.options, p.argmax(axis=1), strict=True)]
    assert pool.score(f) == pytest.approx(
        scores.mean_score(scores.log_score(p, np.where(f.outcomes < 0, np.nan, f.outcomes), f.even)).mean
    )
    with pytest.raises(ArgumentError, match="an array does not say which options its events have"):
        pool.predict_proba(f.X)
    with pytest.raises(
        OutcomeError, match="on events that share their classes, and the pool was fitted to events with"
    ):
        pool.predict_proba(op.Forecasts.from_array(f.X, classes="abcde"))
    with pytest.raises(OutcomeError, match="on events with options of their own"):
        AveragePool().fit([[0.2], [0.8]], [0, 1]).predict_proba(f)


@pytest.mark.parametrize("kind", [GaussianPool, AveragePool, LogPool])
def test_pools_answer_about_more_and_fewer_options_than_they_learned_from(kind):
    pool, few, many = (
        kind().fit(simulated(60, (2, 3), seed=18)),
        simulated(5, (2,), seed=19),
        simulated(5, (8,), seed=20),
    )
    assert pool.predict_proba(few).shape == (5, 2)
    p = pool.predict_proba(many)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(kind().fit(simulated(60, (2, 3), seed=18)).predict_proba(many), p)


def test_residuals_are_alike_in_events_of_all_sizes():
    f = simulated(4000, (2, 3, 9), seed=25)
    found = Residuals.of(f, learn(f, structure="full", beliefs=None))
    assert found.values.shape == (12000, 1)
    for i, name in enumerate(f.experts):
        own_ = found.values[found.expert == i, 0]
        assert own_.var() == pytest.approx(SIGMA[i, i], rel=0.06), name
        assert np.mean(own_**4) / own_.var() ** 2 == pytest.approx(3.0, abs=0.3)
    assert not [check for check in normality(found) + spreads(found) + correlations(found) if check.serious]
    shared = found.values[:, 0].reshape(3, -1)
    np.testing.assert_allclose(np.cov(shared), SIGMA, atol=0.15)


# Scores.


def test_scores_are_normalised_by_even_chances_of_the_options_there_are():
    f = simulated(50, seed=22)
    p = fit_pool("geometric", f).pool(f.X, f.even)
    s = scores.log_score(p, f.outcomes, f.even)
    by_hand = 1 + np.log(p[np.arange(50), f.outcomes]) / np.log(f.sizes)
    np.testing.assert_allclose(s, by_hand, rtol=1e-12)
    np.testing.assert_allclose(scores.log_score(f.even, f.outcomes, f.even), 0.0, atol=1e-12)
    with pytest.raises(OutcomeError, match="a scoring prior of 0, so it was no option: outcome 0"):
        scores.log_score([[0.5, 0.5, 0.0]], [2], [[0.5, 0.5, 0.0]])


def test_pools_are_compared_on_options():
    found = compare_pools(simulated(90, seed=23), ["gaussian", "log", "beta-linear"], repeats=1)
    assert {pool.pool for pool in found.pools} == {"average", "gaussian", "log"}
    assert any("beta-linear is left out" in note.text for note in found.notes)
    assert found.best.pool != "average"
    assert all(np.isnan(pool.auc) for pool in found.pools)
    assert len(found.experts) == 3
