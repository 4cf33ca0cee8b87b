"""Intercepts and slopes by topic: beside SciPy and exact refits, at every door, and in simulation."""

import numpy as np
import pytest
from scipy import optimize, stats

import opinionpool as op
from opinionpool.estimation.coefficients import intercept_root
from opinionpool.learning.topics import (
    DEVIATION_PROBABILITIES,
    DEVIATIONS,
    LEVEL_PROBABILITIES,
    LEVELS,
    learn_topics,
    left_out,
)
from opinionpool.logodds import expit, logit, softmax


def drawn(rng, topics, events, intercept=0.0, slope=0.0, experts=3):
    """Forecasts by calibrated experts, and outcomes whose log-odds differ by topic."""
    label = np.repeat(np.arange(topics), events)
    happens = rng.random(len(label)) < 0.5
    shared = rng.normal(size=(len(label), 1))
    contrast = np.where(happens, 1.0, -1.0)[:, None] + shared + rng.normal(size=(len(label), experts))
    common = 2.0 * contrast.mean(axis=1) / (1.0 + 1.0 / experts)
    a, s = rng.normal(0, intercept, topics), rng.normal(0, slope, topics)
    true = a[label] + (1.0 + s[label]) * common
    y = (rng.random(len(label)) < expit(true)).astype(int)
    return expit(contrast), y, np.array([f"t{g}" for g in label]), true, a


def by_scipy(ratios, beyond, y, root, contrasts=None):
    """Mode and log evidence (Laplace) of one topic's coefficients, by a general optimizer."""
    d, free = ratios.shape[1], root.shape[1]

    def cost(theta):
        both = root @ theta
        added = both[:d] + both[d] * beyond
        if contrasts is not None:
            added = added + np.einsum("tnd,n->td", contrasts, both[d + 1 :])
        p = softmax(ratios + added)
        return -np.log(p[np.arange(len(y)), y]).sum() + theta @ theta / 2

    found = optimize.minimize(cost, np.zeros(free), method="BFGS", options={"gtol": 1e-9})
    step = 1e-4
    unit = np.eye(free) * step
    curvature = [
        [(cost(found.x + a + b) - cost(found.x + a - b) - cost(found.x - a + b) + cost(found.x - a - b)) for b in unit]
        for a in unit
    ]
    spread = np.linalg.slogdet(np.array(curvature) / (4 * step**2))[1] / 2
    return root @ found.x, -found.fun - spread


@pytest.mark.parametrize("k", [2, 3])
def test_intercepts_and_slopes_are_those_of_a_general_optimizer(k):
    rng = np.random.default_rng(3)
    topics = np.repeat(["a", "b", "c"], [40, 15, 2])
    beyond = rng.normal(size=(len(topics), k - 1))
    y = rng.integers(0, k, len(topics))
    y[:30] = k - 1
    found = learn_topics(topics, beyond - 0.3, np.full_like(beyond, -0.3), y, np.ones(len(y)))
    values, evidence = np.zeros((4, 3, k)), np.zeros(4)
    for place, (intercept, slope) in enumerate(LEVELS):
        root = np.zeros((k, k))
        root[: k - 1, : k - 1], root[-1, -1] = intercept_root(intercept, k - 1), slope
        for g, name in enumerate("abc"):
            mine = topics == name
            values[place, g], own = by_scipy(beyond[mine] - 0.3, beyond[mine], y[mine], root)
            evidence[place] += own
    levels = np.exp(evidence - evidence.max()) * LEVEL_PROBABILITIES
    levels /= levels.sum()
    expected = np.tensordot(levels, values, 1)
    np.testing.assert_allclose(found.levels, levels, atol=1e-5)
    np.testing.assert_allclose(found.intercept, expected[:, :-1], atol=1e-5)
    np.testing.assert_allclose(found.slope, expected[:, -1], atol=1e-5)


@pytest.mark.parametrize("k", [2, 3])
def test_weights_by_topic_are_those_of_a_general_optimizer(k):
    # Two of four experts are the same; topic c has fewer events than coefficients.
    rng, d = np.random.default_rng(13), k - 1
    topics = np.repeat(["a", "b", "c"], [40, 15, 2])
    contrasts = rng.normal(size=(len(topics), 4, d)) * 2
    contrasts[:, 1] = contrasts[:, 0]
    beyond = 0.3 * contrasts.sum(axis=1)
    shares = np.array([[0.5, 0, 0], [0.5, 0, 0], [0, 1, 0], [0, 0, 1]])
    y = np.where(contrasts[:, 3, 0] + rng.normal(size=len(topics)) > 0, 1, 0)
    y[:4] = k - 1
    found = learn_topics(topics, beyond - 0.3, np.full_like(beyond, -0.3), y, np.ones(len(y)), contrasts, shares)
    shape = len(LEVELS), len(DEVIATIONS)
    values, evidence = np.zeros((*shape, 3, k + 4)), np.zeros(shape)
    for i, (intercept, slope) in enumerate(LEVELS):
        for j, deviation in enumerate(DEVIATIONS):
            root = np.zeros((k + 4, k + 3))
            root[:d, :d], root[d, d] = intercept_root(intercept, d), slope
            root[k:, k:] = deviation * shares @ (np.eye(3) - 1 / 3)
            for g, name in enumerate("abc"):
                mine = topics == name
                values[i, j, g], own = by_scipy(beyond[mine] - 0.3, beyond[mine], y[mine], root, contrasts[mine])
                evidence[i, j] += own
    posterior = np.exp(evidence - evidence.max()) * np.outer(LEVEL_PROBABILITIES, DEVIATION_PROBABILITIES)
    posterior /= posterior.sum()
    np.testing.assert_allclose(found.deviations, posterior.sum(axis=0), atol=1e-3)
    np.testing.assert_allclose(found.levels, posterior.sum(axis=1), atol=1e-3)
    expected = np.einsum("ij,ijgp->gp", posterior, values)
    np.testing.assert_allclose(found.weights, expected[:, k:], atol=1e-3)
    np.testing.assert_allclose(found.slope, expected[:, d], atol=1e-3)
    np.testing.assert_allclose(found.weights.sum(axis=1), 0, atol=1e-9)


def test_who_knows_more_on_a_topic_counts_more_there():
    rng = np.random.default_rng(14)
    t = 600
    label = rng.integers(0, 2, t)
    y = rng.integers(0, 2, t)
    knows = np.where(label[:, None] == 0, [2.0, 0.0], [0.0, 2.0])
    contrast = np.where(y, 1, -1)[:, None] * knows + 2 * rng.normal(size=(t, 2))
    q, topics = expit(contrast), np.where(label == 0, "one", "two")
    state = op.GaussianPool().fit(q, y, topics=topics).state_
    assert state.topics.weights_differ > 0.99
    one, two = state.weights + state.topics.weights
    assert one[0] > one[1] + 0.3
    assert two[1] > two[0] + 0.3
    # Whoever is twice in the panel counts once.
    with pytest.warns(op.OpinionPoolWarning, match="share one weight"):
        both = op.GaussianPool().fit(q[:, [0, 0, 1]], y, topics=topics).state_
    np.testing.assert_allclose(both.pool(q[:, [0, 0, 1]], topics=topics), state.pool(q, topics=topics), atol=0.01)
    plain = op.GaussianPool().fit(q, y).state_
    assert op.log_score(state.pool(q, topics=topics), y).mean() > op.log_score(plain.pool(q), y).mean() + 0.02


def test_weights_are_frequencies():
    rng = np.random.default_rng(4)
    topics, beyond = np.repeat(["a", "b"], 10), rng.normal(size=(20, 1))
    y, weight = rng.integers(0, 2, 20), rng.integers(1, 4, 20)
    one = learn_topics(topics, beyond, 0 * beyond, y, weight.astype(float))
    rows = np.repeat(np.arange(20), weight)
    two = learn_topics(topics[rows], beyond[rows], 0 * beyond[rows], y[rows], np.ones(len(rows)))
    np.testing.assert_allclose(one.intercept, two.intercept, rtol=1e-9)
    np.testing.assert_allclose(one.covariance, two.covariance, rtol=1e-7)


def test_answers_without_an_events_own_outcome_are_those_of_refits():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(60, 3)) * [1.0, 1.5, 0.5]
    y = (rng.random(60) < expit(x @ [1.0, 0.5, 0.0])).astype(int)

    def fit(rows):
        def cost(w):
            return np.logaddexp(0, np.where(y[rows] == 1, -1, 1) * (x[rows] @ w)).sum() + w @ w / 2

        return optimize.minimize(cost, np.zeros(3), method="BFGS", options={"gtol": 1e-10}).x

    every = np.arange(60)
    w = fit(every)
    p = expit(x @ w)
    covariance = np.linalg.inv((x * (p * (1 - p))[:, None]).T @ x + np.eye(3))
    own = np.einsum("ti,ij,tj->t", x, covariance, x)[:, None, None]
    found = left_out((x @ w)[:, None], y, own)[:, 0]
    exact = np.array([x[t] @ fit(every[every != t]) for t in range(60)])
    assert np.abs(found - exact).max() < 0.15 * np.abs(x @ w - exact).max()


def test_every_door_gives_the_same_answers(tmp_path):
    rng = np.random.default_rng(6)
    q, y, topics, _, _ = drawn(rng, 4, 40, 0.8, 0.3)
    events, names = [f"e{t}" for t in range(len(y))], ["ann", "bob", "cy"]
    q, outcomes = q.round(12), [None if t % 10 == 0 else int(each) for t, each in enumerate(y)]
    forecasts = op.Forecasts.from_array(q, outcomes, events=events, experts=names, topics=topics)
    pool = op.GaussianPool().fit(forecasts)
    expected = pool.predict_proba(forecasts)
    assert pool.state_.topics is not None
    array = op.GaussianPool().fit(q, outcomes, topics=topics)
    np.testing.assert_allclose(array.predict_proba(q, topics=topics), expected, rtol=0, atol=1e-14)
    rows = [
        f"{events[t]},{name},{p!r},{'' if outcomes[t] is None else outcomes[t]},{topics[t]}"
        for t in range(len(y))
        for name, p in zip(names, q[t].tolist(), strict=True)
    ]
    file = tmp_path / "long.csv"
    file.write_text("event,expert,probability,outcome,kind\n" + "\n".join(rows) + "\n")
    read = op.read_forecasts(file, columns={"topic": "kind"})
    np.testing.assert_array_equal(read.topics, topics)
    np.testing.assert_allclose(op.GaussianPool().fit(read).predict_proba(read), expected, rtol=0, atol=1e-12)
    stream = op.Stream()
    for t in rng.permutation(len(y)).tolist():
        stream.forecast(events[t], dict(zip(names, q[t].tolist(), strict=True)), topic=topics[t])
        if outcomes[t] is not None:
            stream.resolve(events[t], outcomes[t])
    np.testing.assert_allclose(stream.learn().pool(q, topics=topics), expected[:, 1], rtol=0, atol=1e-12)
    half = len(y) // 2
    parts = op.GaussianPool().partial_fit(q[:half], outcomes[:half], classes=[0, 1], topics=topics[:half])
    parts.partial_fit(q[half:], outcomes[half:], topics=topics[half:])
    # Rows of a stream are those with an outcome.
    known = np.array([each is not None for each in outcomes])
    few = op.GaussianPool().fit(q[known], y[known], topics=topics[known])
    np.testing.assert_allclose(
        parts.predict_proba(q, topics=topics), few.predict_proba(q, topics=topics), rtol=0, atol=1e-12
    )
    for kept, name in ((pool, "pool.json"), (stream, "stream.json")):
        op.save(kept, tmp_path / name)
    loaded = op.load(tmp_path / "pool.json")
    np.testing.assert_array_equal(loaded.predict_proba(forecasts), expected)
    np.testing.assert_array_equal(loaded.predict_interval(forecasts), pool.predict_interval(forecasts))
    again = op.load(tmp_path / "stream.json").learn()
    np.testing.assert_array_equal(again.pool(q, topics=topics), stream.learn().pool(q, topics=topics))


def test_new_topics_get_the_common_values_and_are_less_certain():
    rng = np.random.default_rng(7)
    q, y, topics, _, _ = drawn(rng, 4, 60, 0.8)
    state = op.GaussianPool().fit(q, y, topics=topics).state_
    common = op.GaussianPool().fit(q, y).state_
    np.testing.assert_array_equal(state.pool(q), common.pool(q))
    np.testing.assert_array_equal(state.pool(q, topics="another"), common.pool(q))
    np.testing.assert_array_equal(state.pool(q, topics=[""] * len(q)), common.pool(q))
    np.testing.assert_array_equal(state.interval(q, topics=""), common.interval(q))
    width = np.subtract(*(logit(end) for end in state.interval(q, topics="another")))
    assert (np.abs(width) > np.abs(np.subtract(*(logit(end) for end in common.interval(q))))).all()
    # Nobody answered: the prior, as it is.
    nobody = np.full((1, 3), np.nan)
    assert state.pool(nobody, topics="t0") == common.pool(nobody)
    with pytest.raises(op.ArgumentError, match="learned nothing about topics"):
        op.GaussianPool().fit(q, y).predict_proba(q, topics=topics)


@pytest.mark.parametrize("k", [2, 3])
def test_the_parts_of_an_answer_add_up(k):
    rng = np.random.default_rng(8)
    t = 120
    y = rng.integers(0, k, t)
    says = np.eye(k)[y][:, None] * 1.5 + rng.normal(size=(t, 2, k))
    q = np.exp(says) / np.exp(says).sum(axis=2, keepdims=True)
    topics = np.where(y == 0, rng.choice(["a", "b"], t, p=[0.8, 0.2]), rng.choice(["a", "b"], t))
    forecasts = op.Forecasts.from_array(q[..., 1] if k == 2 else q, y, classes=tuple(range(k)), topics=topics)
    state = op.GaussianPool().fit(forecasts).state_
    why = op.explain_event(forecasts, 5, state, base_rate=0.2 if k == 2 else [0.2, 0.5, 0.3])
    total = why.start + why.intercept + why.contributions.sum(axis=0) + why.topic_shift + why.shift
    np.testing.assert_allclose(total, why.total, atol=1e-9)
    p = expit(total) if k == 2 else np.exp(total) / np.exp(total).sum()
    np.testing.assert_allclose(p, why.probability, atol=1e-9)
    assert why.topic == topics[5]


def test_classes_in_another_order_give_the_same_answers():
    rng = np.random.default_rng(9)
    y = rng.integers(0, 3, 150)
    says = np.eye(3)[y][:, None] + rng.normal(size=(150, 2, 3))
    q = np.exp(says) / np.exp(says).sum(axis=2, keepdims=True)
    topics = np.where(rng.random(150) < 0.3 + 0.4 * (y == 2), "a", "b")
    order = [2, 0, 1]
    one = op.GaussianPool(class_model="symmetric").fit(q, y, topics=topics).predict_proba(q, topics=topics)
    moved = np.array([order.index(each) for each in y])
    two = op.GaussianPool(class_model="symmetric").fit(q[..., order], moved, topics=topics)
    np.testing.assert_allclose(two.predict_proba(q[..., order], topics=topics), one[:, order], atol=1e-7)


def test_topics_that_do_not_differ_cost_little_and_those_that_do_are_found():
    rng = np.random.default_rng(10)
    cost, gain = [], []
    for spread, kept in ((0.0, cost), (0.8, gain)):
        for _ in range(20):
            q, y, topics, true, _ = drawn(rng, 10, 60, spread, spread / 2)
            train = np.arange(len(y)) % 60 < 20
            plain = op.GaussianPool().fit(q[train], y[train])
            with_topics = op.GaussianPool().fit(q[train], y[train], topics=topics[train])
            p, test = expit(true), ~train
            losses = [
                -(p * np.log(each) + (1 - p) * np.log1p(-each))[test].mean()
                for each in (plain.predict_proba(q)[:, 1], with_topics.predict_proba(q, topics=topics)[:, 1])
            ]
            kept.append(losses[0] - losses[1])
    assert np.mean(cost) > -0.001
    assert stats.ttest_1samp(gain, 0.01, alternative="greater").pvalue < 0.01


def test_topics_are_not_looked_at_where_they_are_all_the_same():
    rng = np.random.default_rng(11)
    q, y, _, _, _ = drawn(rng, 1, 60)
    assert op.GaussianPool().fit(q, y, topics="all").state_.topics is None


def test_one_topic_an_event():
    with pytest.raises(op.ShapeError, match="3 events need one of the topics each"):
        op.GaussianPool().fit([0.2, 0.6, 0.7], [0, 1, 1], topics=["a", "b"])


def test_what_is_open_about_the_model_does_not_make_topics_of_one_kind_differ():
    """With few events and strong experts intervals are wide, yet answers without an outcome are near those with it."""
    extra = []
    for seed in range(1000, 1012):
        rng = np.random.default_rng(seed)
        y = rng.random(220) < 0.5
        noise = np.sqrt(0.3) * rng.normal(size=(220, 1)) + np.sqrt(0.7) * rng.normal(size=(220, 5))
        q = expit(4.0 * np.where(y, 1.0, -1.0)[:, None] / 2.0 + 2.0 * noise)
        topics, y = np.array(["a", "b"] * 110), y.astype(int)
        pools = op.GaussianPool().fit(q[:20], y[:20], prior=0.5, topics=topics[:20], classes=[0, 1])
        plain = op.GaussianPool().fit(q[:20], y[:20], prior=0.5, classes=[0, 1])
        answers = pools.predict_proba(q[20:], prior=0.5, topics=topics[20:]), plain.predict_proba(q[20:], prior=0.5)
        one, two = (-np.log(p[np.arange(200), y[20:]]).mean() for p in answers)
        extra.append(one - two)
    assert np.mean(extra) <= 0.001
    assert np.max(extra) <= 0.02
