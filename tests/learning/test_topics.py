"""Intercepts, slopes and weights by topic: beside SciPy, at every door, and in simulation."""

import warnings
from functools import partial

import numpy as np
import pytest
from scipy import linalg, optimize, stats

import opinionpool as op
from opinionpool.estimation.regression import ByTopic, Observations
from opinionpool.learning import laplace, quadratic
from opinionpool.learning.constants import Dependent
from opinionpool.learning.nodes import Nodes, Sums
from opinionpool.learning.quadratic import Arrow
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


def by_scipy(design, offset, y, weight, centre, prior):
    """Mode, covariance and log evidence (Laplace) of the coefficients of a design (T, P, K - 1)."""
    t, _, d = design.shape
    precision = np.linalg.inv(prior)

    def cost(theta):
        p = softmax(offset + np.einsum("tpd,p->td", design, theta))
        away = theta - centre
        slope = np.einsum("t,td,tpd->p", weight, p[:, 1:] - np.eye(d + 1)[y][:, 1:], design) + precision @ away
        return -weight @ np.log(p[np.arange(t), y]) + away @ precision @ away / 2, slope

    best = optimize.minimize(cost, centre, jac=True, method="BFGS", options={"gtol": 1e-9})
    p = softmax(offset + np.einsum("tpd,p->td", design, best.x))[:, 1:]
    bent = p[:, :, None] * (np.eye(d) - p[:, None, :]) * weight[:, None, None]
    curvature = np.einsum("tpd,tde,tqe->pq", design, bent, design, optimize=True) + precision
    evidence = -best.fun - np.linalg.slogdet(curvature)[1] / 2 - np.linalg.slogdet(prior)[1] / 2
    return best.x, np.linalg.inv(curvature), evidence


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_all_coefficients_are_those_of_a_general_optimizer(k, few, monkeypatch):
    """At one level of topics and one node of the prior: mode, covariance and evidence of all of them in one vector."""
    rng, d, t, n = np.random.default_rng(3), k - 1, 60, 2
    monkeypatch.setattr(quadratic, "TOPICS", ((0.8, 0.6),))
    monkeypatch.setattr(quadratic, "TOPIC_PROBABILITIES", (1.0,))
    monkeypatch.setattr(laplace, "SMALL", 1e-6)
    monkeypatch.setattr(laplace, "TINY", 1e-6)
    monkeypatch.setattr(laplace, "STEPS", 30)
    member, base = rng.choice([0, 1, 2, -1], t, p=[0.5, 0.3, 0.1, 0.1]), np.full(d, 0.2)
    contrasts, offset, y = rng.normal(size=(t, n, d)), rng.normal(size=(t, d)), rng.integers(0, k, t)
    weight = rng.integers(1, 4, t).astype(float)
    observed = Observations(contrasts, offset, y, weight, ByTopic(("a", "b", "c"), member, base))
    v = np.array([[0.7, 0.3]])
    sums = Sums(np.array([1.2]), np.array([0.3]), np.ones(1), np.array([0.3]))
    nodes = Nodes(np.ones(1), v, np.array([0.4]), sums, (Dependent("common", 0.6, 0.0, 1.0),), np.array([0.4]), d)
    about = partial(Arrow.at, observed, observed.design())
    found = laplace.fit_nodes(observed, nodes) if few else laplace.fit_all(about, nodes, np.zeros(d + n), "abc")
    # What slopes multiply is what is common in the answers, with these coefficients.
    beyond = base + found.mean[:d] + np.einsum("tnd,n->td", contrasts, found.mean[d:])
    own = np.zeros((t, 3, d + 1, d))
    for row, g in enumerate(member):
        if g >= 0:
            own[row, g] = np.vstack([np.eye(d), beyond[row]])
    design = np.concatenate([np.broadcast_to(np.eye(d), (t, d, d)), contrasts, own.reshape(t, 3 * (d + 1), d)], axis=1)
    h = v[0] / np.linalg.norm(v[0])
    level = quadratic.topic_roots(d)[0]
    prior = linalg.block_diag(
        0.3**2 * nodes.intercept @ nodes.intercept.T,
        0.3**2 * np.outer(v, v) + 0.4**2 * (np.eye(n) - np.outer(h, h)),
        *[level @ level.T] * 3,
    )
    centre = np.concatenate([np.zeros(d), 1.2 * v[0], np.zeros(3 * (d + 1))])

    best, covariance, evidence = by_scipy(design, offset, y, weight, centre, prior)
    first = d + n
    effects = np.concatenate([found.topics.intercept, found.topics.slope[:, None]], axis=1)
    np.testing.assert_allclose(np.concatenate([found.mean, effects.ravel()]), best, atol=1e-4)
    np.testing.assert_allclose(found.normals.covariance[0], covariance[:first, :first], atol=1e-4)
    for g in range(3):
        rows = slice(first + g * (d + 1), first + (g + 1) * (d + 1))
        np.testing.assert_allclose(found.topics.covariance[g], covariance[rows, rows], atol=1e-4)
        np.testing.assert_allclose(found.topics.cross[g], covariance[rows, :first], atol=1e-4)
    assert found.evidence == pytest.approx(evidence, abs=1e-4)


def test_copies_and_who_repeats_the_prior_move_nothing():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        q, y, topics, _, _ = drawn(rng, 2, 9, 0.5)
        q[rng.random(q.shape) < 0.4] = np.nan
        # Few events are resolved, so that only open ones show who is a copy.
        outcomes = np.where(np.arange(len(y)) % 3 > 0, np.nan, y)
        kept = {"prior": 0.4, "topics": topics}
        plain = op.GaussianPool().fit(q, outcomes, **kept)
        for more in (q[:, :1], np.full((len(y), 1), 0.4)):
            both = np.concatenate([q, more], axis=1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", op.OpinionPoolWarning)
                pool = op.GaussianPool().fit(both, outcomes, **kept)
            found, expected = pool.predict_proba(both, **kept), plain.predict_proba(q, **kept)
            np.testing.assert_allclose(logit(found[:, 1]), logit(expected[:, 1]), atol=1e-10)
            ends = pool.predict_interval(both, **kept), plain.predict_interval(q, **kept)
            np.testing.assert_allclose(*(logit(each) for each in ends), atol=1e-6)


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
    common = state.pool(q)
    np.testing.assert_array_equal(state.pool(q, topics="another"), common)
    np.testing.assert_array_equal(state.pool(q, topics=[""] * len(q)), common)
    np.testing.assert_array_equal(state.interval(q, topics=""), state.interval(q))
    width = np.subtract(*(logit(end) for end in state.interval(q, topics="another")))
    assert (np.abs(width) > np.abs(np.subtract(*(logit(end) for end in state.interval(q))))).all()
    # Nobody answered: the prior, as it is.
    nobody = np.full((1, 3), np.nan)
    assert state.pool(nobody, topics="t0") == state.pool(nobody)
    assert state.pool(nobody, prior=0.3, topics="t0") == 0.3
    with pytest.raises(op.ArgumentError, match="learned nothing about topics"):
        op.GaussianPool().fit(q, y).predict_proba(q, topics=topics)


@pytest.mark.parametrize("given", [["a"] * 8, [None] * 8, ["a"] * 4 + ["b"] * 4])
def test_topics_that_teach_nothing_are_taken_when_predicting(given, tmp_path):
    """All alike, all blank, or different only where events are open."""
    q = np.array([[0.8, 0.7], [0.3, 0.1], [0.6, 0.9], [0.4, 0.3], [0.5, 0.6], [0.9, 0.2], [0.2, 0.4], [0.7, 0.7]])
    y = [1, 0, 1, 0, None, None, None, None]
    pool = op.GaussianPool().fit(q, y, topics=given)
    plain = op.GaussianPool().fit(q, y)
    path = tmp_path / "pool.json"
    op.save(pool, path)
    grown = op.GaussianPool().partial_fit(q[:4], y[:4], topics=given[:4])
    # A stream of rows knows resolved events only.
    for each, same in ((pool, plain), (op.load(path), plain), (grown, op.GaussianPool().fit(q[:4], y[:4]))):
        np.testing.assert_allclose(each.predict_proba(q, topics=given), same.predict_proba(q), rtol=1e-12)
        np.testing.assert_allclose(each.predict_interval(q, topics=given), same.predict_interval(q), rtol=1e-12)
    with pytest.raises(op.ArgumentError, match="learned nothing about topics"):
        plain.predict_proba(q, topics=given)


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
    total = why.start + why.intercept + why.contributions.sum(axis=0) + why.topic_shift + why.shift + why.members_shift
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
    moved = np.array([order.index(each) for each in y])
    for about in ({"topics": topics}, {}):
        one = op.GaussianPool(class_model="symmetric").fit(q, y, **about)
        two = op.GaussianPool(class_model="symmetric").fit(q[..., order], moved, **about)
        answers = one.predict_proba(q, **about)[:, order], two.predict_proba(q[..., order], **about)
        np.testing.assert_allclose(*answers, atol=1e-11)
        ends = one.predict_interval(q, **about)[:, order], two.predict_interval(q[..., order], **about)
        np.testing.assert_allclose(*(logit(each) for each in ends), atol=1e-8)


def test_topics_that_do_not_differ_cost_little_and_those_that_do_are_found():
    rng = np.random.default_rng(10)
    cost, gain = [], []
    for spread, kept, panels in ((0.0, cost, 8), (0.8, gain, 20)):
        for _ in range(panels):
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


def crowded(rng, accuracy, scale, shift, events):
    """Outcomes, forecasts by a crowd of whom few answer, and topics that do not differ."""
    y, experts = (rng.random(events) < 0.4).astype(int), len(accuracy)
    errors = np.sqrt(0.4) * rng.normal(size=(events, 1)) + np.sqrt(0.6) * rng.normal(size=(events, experts))
    contrast = ((2 * y[:, None] - 1) * accuracy + np.sqrt(2 * accuracy) * errors) * scale + shift
    q = np.where(rng.random((events, experts)) < 0.012, expit(logit(0.4) + contrast).clip(0.002, 0.998), np.nan)
    return y, q, rng.choice(["a", "b"], events)


@pytest.mark.filterwarnings("ignore:.*right and nearly certain")
def test_in_a_crowd_topics_that_do_not_differ_have_slopes_of_1():
    """Answers on events that features were learned from are too sure: the best slope for them is 1.3."""
    slopes, extra = [], []
    for seed in range(2):
        rng, n, known = np.random.default_rng(300 + seed), 620, 600
        crowd = rng.lognormal(0, 0.8, n), rng.lognormal(0, 0.4, n), 0.5 * rng.normal(size=n)
        y, q, topics = crowded(rng, *crowd, 1600)
        outcomes = np.where(np.arange(1600) < known, y, np.nan)
        state = op.GaussianPool().fit(q, outcomes, prior=0.4, topics=topics).state_
        assert state.structure == "crowd"
        slopes.append(1.0 + state.topics.slope.mean())
        y, q, topics = crowded(rng, *crowd, 3000)
        losses = [-op.log_score(state.pool(q, topics=about), y).mean() for about in (topics, None)]
        extra.append(losses[0] - losses[1])
    assert np.abs(np.array(slopes) - 1.0).max() < 0.06
    assert np.mean(extra) < 0.001
    assert np.max(extra) < 0.005


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
