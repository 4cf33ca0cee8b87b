"""The default's full model: held to the symmetric one, chosen by the data, and how sure it is."""

import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from opinionpool import logodds
from opinionpool.errors import ArgumentError
from opinionpool.estimation import sampling
from opinionpool.forecasts import Forecasts
from opinionpool.learning.class_model import ClassPosterior, ClassWeights
from opinionpool.learning.constants import CLASS_SPREADS
from opinionpool.learning.learn import learn
from opinionpool.model.full_panel import FullPanel
from opinionpool.model.panel import Panel

NAN = float("nan")


def truth(rng, k, n, apart):
    """A panel whose classes are alike, and one in which they differ by so much."""
    alike = Panel.exchangeable(n, calibration=0.9, correlation=0.5, accuracy=0.8, classes=range(k), floor=1e-9)
    back = np.linalg.inv(np.linalg.cholesky(logodds.metric(k)))
    shape = logodds.signature(k)
    means = alike.contrast[:, None] * (shape - shape.mean(axis=0))[:, None]
    own = rng.normal(size=(k, n, k - 1)) + rng.normal(size=(k, 1, k - 1))
    spread = np.sqrt(np.diag(alike.covariance))[:, None]
    omega = np.kron(alike.covariance, np.linalg.inv(logodds.metric(k)))
    return FullPanel(means + apart * own @ back * spread, omega)


def drawn(seed, k, n, t, apart, missing=0.0):
    rng = np.random.default_rng(seed)
    panel, prior = truth(rng, k, n, apart), rng.dirichlet(np.full(k, 5.0))
    x, y = panel.simulate(t, prior, seed=rng)
    x[rng.random((t, n)) < missing] = NAN
    return panel, prior, Forecasts.from_array(x, y, classes=range(k))


def repeated(f, rows):
    """Events as often and in the order that rows say."""
    return Forecasts.from_array(f.X[rows], f.outcomes[rows], classes=f.classes)


def score(p, y):
    return float(np.log(p[np.arange(len(y)), y]).mean())


def told(learned):
    return [note.text for note in learned.notes if note.code == "class-model"]


def probability(learned):
    """That weights differ between classes, by the note."""
    (text,) = told(learned)
    return int(re.search(r"probability of (\d+)%", text)[1]) / 100


@pytest.mark.parametrize(("k", "n"), [(3, 5), (5, 4)])
def test_classes_that_differ_are_told_from_those_that_are_alike(k, n):
    """Of eight panels each: that weights differ is improbable where they do not, nearly certain where they do."""
    alike, apart = ([probability(learn(drawn(seed, k, n, 200, each)[2])) for seed in range(8)] for each in (0.0, 0.6))
    assert np.median(alike) < 0.4
    assert max(alike) < 0.8
    assert np.sum(np.array(apart) > 0.9) >= 7


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_where_classes_differ_the_choice_predicts_better(missing):
    panel, prior, f = drawn(1, 3, 5, 1400, 0.6, missing)
    train, test = f.select_events(np.arange(400)), f.select_events(np.arange(400, 1400))
    learned = learn(train)
    assert learned.class_model == "full"
    (text,) = told(learned)
    assert text == "weights differ between classes with a probability of 100%, and count with that"
    best = score(panel.pool(test.X, prior), test.outcomes)
    auto, alike = (score(each.pool(test.X), test.outcomes) for each in (learned, learn(train, class_model="symmetric")))
    # More than two thirds of what the truth is better.
    assert auto - alike > 0.67 * (best - alike) > 0


def test_they_differ_as_far_as_that_is_probable():
    """Class weights of the average lie between one weight and those of the full model, in that proportion."""
    found = []
    for seed in range(12):
        f = drawn(seed, 3, 3, 60, 0.3)[2]
        learned, symmetric, full = (learn(f, class_model=each) for each in ("auto", "symmetric", "full"))
        if learned.class_model == "full" and (share := probability(learned)) < 0.99:
            away, most = (each.panel.class_weights - symmetric.weights[:, None] for each in (learned, full))
            ratio = (away * most).sum() / (most**2).sum()
            assert away == pytest.approx(ratio * most, abs=1e-9)
            assert ratio == pytest.approx(share, abs=0.005)
            found.append(share)
    assert len(found) >= 3


def test_of_many_events_all_count(monkeypatch):
    """From a sample on to all events: the answers of one fit to an array of all."""
    f = drawn(1, 3, 4, 3000, 0.4)[2]
    prior = np.full(3, 1 / 3)
    whole = learn(f, prior=prior, class_model="full")
    monkeypatch.setattr(sampling, "EVENTS", 300)
    again = learn(f, prior=prior, class_model="full")
    some = learn(f.select_events(np.arange(300)), prior=prior, class_model="full")
    off, far = (np.abs(each.pool(f.X) - whole.pool(f.X)).max() for each in (again, some))
    assert off < 0.1 * far
    width, same, wider = (np.median(np.subtract(*each.interval(f.X[:50]))) for each in (whole, again, some))
    assert same == pytest.approx(width, rel=0.1)
    assert wider / width == pytest.approx(np.sqrt(10), rel=0.25)


def test_one_outcome_does_not_tell_how_weights_differ():
    """What calls the only class that was seen the likeliest always predicts best, whatever the experts said."""
    x = np.random.default_rng(0).dirichlet(np.ones(3), (60, 3))
    f = Forecasts.from_array(x, np.zeros(60, dtype=int), classes=(0, 1, 2))
    learned = learn(f)
    assert isinstance(learned.panel, Panel)
    assert learned.weights.tolist() == learn(f, class_model="symmetric").weights.tolist()
    assert any("same outcome" in note.text for note in learned.notes)


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=10)
def test_order_and_frequencies_play_no_part_in_the_choice(seed):
    rng = np.random.default_rng(seed)
    f = drawn(seed, 3, 2, 60, 0.5)[2]
    weight = rng.integers(1, 3, 60)
    order = rng.permutation(np.repeat(np.arange(60), weight))
    one, two = learn(f, sample_weight=weight), learn(repeated(f, order))
    assert one.class_model == two.class_model
    assert told(one) == told(two)
    assert one.pool(f.X) == pytest.approx(two.pool(f.X), rel=1e-5)


@given(st.integers(0, 10**6), st.integers(3, 4))
@settings(deadline=None, max_examples=10)
def test_no_class_is_special(seed, k):
    f = drawn(seed, k, 3, 80, 0.5, missing=0.2)[2]
    order = np.random.default_rng(seed).permutation(k)
    turned = Forecasts.from_array(f.X[..., order], np.argsort(order)[f.outcomes], classes=range(k))
    one, two = learn(f, class_model="full"), learn(turned, class_model="full")
    assert two.pool(turned.X) == pytest.approx(one.pool(f.X)[:, order], rel=1e-4)
    assert two.weights == pytest.approx(one.weights, abs=1e-5)
    low, other = one.interval(f.X)[0], two.interval(turned.X)[0]
    assert other == pytest.approx(low[:, order], rel=1e-3)


def some_weights(seed, k=4, n=3, missing=0.3):
    rng = np.random.default_rng(seed)
    panel = Panel.from_features(
        rng.uniform(0.5, 1.5, n), 0.4, rng.uniform(0.5, 2, n), 0.7, classes=range(k), floor=1e-100, pool_floor=1e-100
    )
    q = rng.dirichlet(np.full(k, 2.0), size=(12, n))
    q[rng.random((12, n)) < missing] = NAN
    weights = ClassWeights(panel)
    return weights, q, rng.normal(size=weights.size) * 0.3


def beyond(weights, contrasts, coefficients):
    """What the coefficients add to the log-ratios, (T, K - 1)."""
    return weights.features(contrasts) @ coefficients.reshape(-1, weights.free) @ weights.turn


@pytest.mark.filterwarnings("ignore:.*one correlation of all pairs")
@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=20)
def test_a_panel_has_the_weights_that_the_regression_found(seed):
    """Whoever is present: the panel's contributions are the regression's, but for the intercept and the constant."""
    weights, q, coefficients = some_weights(seed)
    coefficients[: weights.free] = 0.0
    full = weights.full_panel(coefficients)
    here = ~np.isnan(q).any(axis=(1, 2))
    contrasts = np.log(q[..., 1:] / q[..., :1])
    found = weights.pooled(contrasts) + beyond(weights, contrasts, coefficients)
    added = logodds.uncentred(full.contributions(q, np.full(4, 0.25)).sum(axis=1))
    assert added[here] == pytest.approx(found[here], abs=1e-8)
    # With forecasts missing, what does not depend on what is said differs; what does, does not.
    for i in np.flatnonzero(~here & ~np.isnan(contrasts[..., 0]).all(axis=1)):
        pair = np.stack([q[i], np.roll(q[i], 1, axis=-1)])
        x = np.log(pair[..., 1:] / pair[..., :1])
        two = weights.pooled(x) + beyond(weights, x, coefficients)
        own = logodds.uncentred(full.contributions(pair, np.full(4, 0.25)).sum(axis=1))
        assert own[1] - own[0] == pytest.approx(two[1] - two[0], abs=1e-8)
    even = np.trace(weights.matrices(coefficients), axis1=1, axis2=2) / weights.free
    assert full.weights == pytest.approx(even, abs=1e-9)


def test_without_outcomes_the_full_model_is_the_symmetric_one():
    x = np.random.default_rng(0).dirichlet(np.ones(3), size=(6, 2))
    f = Forecasts.from_array(x, classes=(0, 1, 2))
    one, full = learn(f), learn(f, class_model="full")
    assert (one.class_model, full.class_model) == ("symmetric", "full")
    assert full.pool(x) == pytest.approx(one.pool(x), abs=1e-9)
    assert np.array(full.interval(x)) == pytest.approx(np.array(one.interval(x)), abs=1e-9)
    assert told(one) == []


def test_clones_and_the_silent():
    f = drawn(6, 3, 3, 200, 0.6)[2]
    x = np.concatenate([f.X, f.X[:, :1], np.full((200, 1, 3), 1 / 3)], axis=1)
    one, two = learn(f), learn(Forecasts.from_array(x, f.outcomes, classes=range(3)))
    assert (one.class_model, two.class_model) == ("full", "full")
    assert two.weights == pytest.approx(one.weights[[0, 1, 2, 0, 0]] * [0.5, 1, 1, 0.5, 0], abs=1e-6)
    assert two.pool(x) == pytest.approx(one.pool(f.X), rel=1e-5)
    assert np.array(two.interval(x)) == pytest.approx(np.array(one.interval(f.X)), rel=1e-4)
    assert isinstance(two.posterior, ClassPosterior)


def test_crowds_and_options_have_one_weight_for_all_classes():
    rng = np.random.default_rng(0)
    x = rng.dirichlet(np.ones(3), size=(60, 1100))
    x[rng.random((60, 1100)) < 0.9] = NAN
    f = Forecasts.from_array(x, rng.integers(0, 3, 60), classes=range(3))
    with pytest.raises(ArgumentError, match="no weights that differ between classes"):
        learn(f, class_model="full")
    assert learn(f).class_model == "symmetric"
    fewer = f.select_experts(f.experts[:40])
    assert learn(fewer).structure == "crowd"
    assert learn(fewer, class_model="full").class_model == "full"


def test_coverage_where_weights_differ():
    """Truth drawn from what is believed of differences; the spreads are chosen by the data."""
    rng, share = np.random.default_rng(0), []
    for spreads in CLASS_SPREADS[1:4]:
        for _ in range(8):
            alike = Panel.exchangeable(3, calibration=0.9, correlation=0.4, accuracy=0.8, classes=range(3))
            weights = ClassWeights(alike)
            matrices = weights.matrices(weights.prior_sds(*spreads) * rng.normal(size=weights.size))
            said = logodds.uncentred(0.75 * (rng.normal(size=(400, 1, 3)) + rng.normal(size=(400, 3, 3))))
            truth = logodds.softmax(np.einsum("tnd,ndk->tk", said, matrices))
            y = (rng.random((400, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
            q = logodds.softmax(said)
            f = Forecasts.from_array(q[:300], y[:300], classes=range(3))
            learned = learn(f, prior=np.full(3, 1 / 3), class_model="full")
            low, high = learned.interval(q[300:])
            share.append(np.mean((low <= truth[300:]) & (truth[300:] <= high)))
    assert np.mean(share) == pytest.approx(0.9, abs=0.06)
