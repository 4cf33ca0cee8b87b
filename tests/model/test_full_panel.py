"""The full model's panel: Bayes' rule by brute force, symmetries, sub-panels, and what it has in common with Panel."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import multivariate_normal

from opinionpool import logodds
from opinionpool.errors import ArgumentError, ExpertError, PanelError, ShapeError
from opinionpool.model.contrasts import Extremes
from opinionpool.model.full_panel import FullPanel
from opinionpool.model.panel import Panel

NAN = float("nan")
WIDE = {"floor": 1e-100, "pool_floor": 1e-100}


def some_panel(rng, k, n, **options):
    d = k - 1
    root = rng.normal(size=(n * d, 2 * n * d)) / np.sqrt(2 * n * d)
    return FullPanel(rng.normal(size=(k, n, d)), root @ root.T + 0.3 * np.eye(n * d), **(WIDE | options))


def some_forecasts(rng, t, n, k, missing=0.0):
    q = rng.dirichlet(np.full(k, 2.0), size=(t, n))
    q[rng.random((t, n)) < missing] = NAN
    return q


def by_bayes(panel, q, prior):
    """Posterior of the classes from normal densities of whatever log-ratios are there, one event at a time."""
    k, n, d = panel.means.shape
    answers = []
    for row in q:
        present = np.flatnonzero(~np.isnan(row[:, 0]))
        x = (np.log(row[present, 1:] / row[present, :1]) - np.log(prior[1:] / prior[0])).ravel()
        keep = (present[:, None] * d + np.arange(d)).ravel()
        omega = panel.covariance.reshape(n * d, n * d)[np.ix_(keep, keep)]
        log = np.log(prior).copy()
        if len(keep):
            log += [multivariate_normal(panel.means[c].ravel()[keep], omega).logpdf(x) for c in range(k)]
        answers.append(np.exp(log - np.logaddexp.reduce(log)))
    return np.array(answers)


@pytest.mark.parametrize(("k", "n"), [(3, 1), (3, 4), (5, 3)])
def test_pool_is_bayes_rule_whoever_is_present(k, n):
    rng = np.random.default_rng(k * n)
    panel, prior = some_panel(rng, k, n), rng.dirichlet(np.full(k, 3.0))
    q = some_forecasts(rng, 40, n, k, missing=0.3)
    assert panel.pool(q, prior) == pytest.approx(by_bayes(panel, q, prior), abs=1e-10)


def test_a_panel_of_those_present_is_the_same():
    rng = np.random.default_rng(2)
    panel, q = some_panel(rng, 3, 5, names=list("abcde")), some_forecasts(rng, 8, 5, 3)
    prior = [0.5, 0.3, 0.2]
    gone = q.copy()
    gone[:, [0, 3]] = NAN
    few = panel.subset(["e", "b", "c"])
    assert few.pool(q[:, [4, 1, 2]], prior) == pytest.approx(panel.pool(gone, prior), abs=1e-12)
    present = np.array([[False, True, True, False, True]])
    assert panel.weights_for(present)[0, [4, 1, 2]] == pytest.approx(few.weights)
    assert few.contributions(q[:, [4, 1, 2]], prior) == pytest.approx(panel.contributions(gone, prior)[:, [4, 1, 2]])


@given(st.integers(0, 10**6), st.integers(3, 5), st.integers(1, 4))
@settings(deadline=None, max_examples=40)
def test_no_class_is_special(seed, k, n):
    """Relabelling classes, and so the reference class, relabels the answers and nothing else."""
    rng = np.random.default_rng(seed)
    panel, prior = some_panel(rng, k, n), rng.dirichlet(np.full(k, 3.0))
    q, order, d = some_forecasts(rng, 5, n, k, missing=0.2), rng.permutation(k), k - 1
    # Log-ratios against the new first class from those against the old one.
    full = np.concatenate([np.zeros((1, d)), np.eye(d)])[order]
    turn = full[1:] - full[:1]
    omega = np.einsum("ai,nimj,bj->namb", turn, panel.covariance, turn)
    turned = FullPanel(panel.means[order] @ turn.T, omega, classes=order.tolist(), **WIDE)
    assert turned.pool(q[..., order], prior[order]) == pytest.approx(panel.pool(q, prior)[:, order], abs=1e-9)
    for name in ("weights", "calibration", "accuracy", "joint_accuracy"):
        assert getattr(turned, name) == pytest.approx(getattr(panel, name), abs=1e-9)
    assert turned.bias == pytest.approx(panel.bias[:, order], abs=1e-9)
    assert turned.class_weights == pytest.approx(panel.class_weights[:, order], abs=1e-9)
    y, z = order[0], order[-1]
    assert turned.pair_weights(y, z) == pytest.approx(panel.pair_weights(y, z)[:, order], abs=1e-9)


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=40)
def test_contributions_and_pair_weights_add_up(seed):
    rng = np.random.default_rng(seed)
    panel, prior = some_panel(rng, 4, 3), rng.dirichlet(np.full(4, 3.0))
    q = some_forecasts(rng, 6, 3, 4, missing=0.3)
    log = np.log(panel.pool(q, prior)) - np.log(prior)
    added = panel.contributions(q, prior)
    assert added.sum(axis=1) == pytest.approx(log - log.mean(axis=1, keepdims=True), abs=1e-9)
    assert added.sum(axis=2) == pytest.approx(0.0, abs=1e-9)
    # Between two sets of forecasts by all, the constant cancels.
    a, b = some_forecasts(rng, 2, 3, 4)
    moved = np.log(panel.pool(a, prior)) - np.log(panel.pool(b, prior))
    told = np.sum(panel.pair_weights(1, 3) * (np.log(a) - np.log(b)))
    assert told == pytest.approx(moved[1] - moved[3], abs=1e-9)
    assert panel.class_weights.mean(axis=1) == pytest.approx(panel.weights, abs=1e-9)


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=40)
def test_two_classes_are_the_binary_panel(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    root, mu, b = rng.normal(size=(n, 2 * n)), rng.normal(size=n), rng.normal(size=n)
    sigma = root @ root.T
    settled = Extremes(5.0)
    binary = Panel(mu, sigma, b, extremes=settled)
    full = FullPanel(np.stack([b - mu, b + mu])[..., None], sigma, classes=(0, 1), extremes=settled)
    q = rng.random((6, n))
    q[rng.random((6, n)) < 0.3] = NAN
    rate = rng.random(6) * 0.9 + 0.05
    assert full.pool(q, 0.3, rate) == pytest.approx(binary.pool(q, 0.3, rate), abs=1e-11)
    assert full.contributions(q, 0.3) == pytest.approx(binary.contributions(q, 0.3), abs=1e-9)
    for name in ("weights", "bias", "calibration", "accuracy", "joint_accuracy", "prior_weight"):
        assert getattr(full, name) == pytest.approx(getattr(binary, name), rel=1e-7, abs=1e-9)


def test_classes_that_are_alike_are_the_symmetric_panel():
    rng = np.random.default_rng(5)
    k, n = 4, 3
    symmetric = Panel.from_features(
        [0.8, 1.1, 0.9], 0.4, [1.0, 2.0, 0.5], accuracy=0.7, bias=0.0, classes=range(k), **WIDE
    )
    shape = logodds.signature(k)
    means = symmetric.contrast[:, None] * (shape - shape.mean(axis=0))[:, None]
    omega = np.kron(symmetric.covariance, np.linalg.inv(logodds.metric(k)))
    full = FullPanel(means, omega, **WIDE)
    q = some_forecasts(rng, 20, n, k, missing=0.3)
    assert full.pool(q, [0.4, 0.3, 0.2, 0.1]) == pytest.approx(symmetric.pool(q, [0.4, 0.3, 0.2, 0.1]), abs=1e-11)
    for name in ("weights", "bias", "calibration", "accuracy", "joint_accuracy"):
        assert getattr(full, name) == pytest.approx(getattr(symmetric, name), abs=1e-10)
    assert full.class_weights == pytest.approx(np.tile(symmetric.weights[:, None], k))
    assert full.pair_weights(1, 2) == pytest.approx(np.outer(symmetric.weights, [0, 1, -1, 0]), abs=1e-10)


def test_simulated_means_and_covariance_are_those_of_the_panel():
    panel = some_panel(np.random.default_rng(3), 3, 2, classes=["home", "draw", "away"])
    prior = np.array([0.5, 0.3, 0.2])
    x, y = panel.simulate(60_000, prior, seed=1)
    ratios = np.log(x[..., 1:] / x[..., :1]) - np.log(prior[1:] / prior[0])
    for c, label in enumerate(panel.classes):
        own = ratios[y == label]
        assert len(own) / len(y) == pytest.approx(prior[c], abs=0.01)
        assert own.mean(axis=0) == pytest.approx(panel.means[c], abs=0.04)
        cov = np.cov(own.reshape(len(own), -1).T).reshape(2, 2, 2, 2)
        assert cov == pytest.approx(panel.covariance, abs=0.06)


def test_clones_share_and_the_silent_have_no_weight():
    rng = np.random.default_rng(4)
    one = some_panel(rng, 3, 2)
    source = [0, 1, 1]
    omega = one.covariance[source][:, :, source]
    means = one.means[:, source]
    two = FullPanel(means, omega, **WIDE)
    q = some_forecasts(rng, 5, 2, 3)
    assert two.pool(q[:, source], [0.2, 0.3, 0.5]) == pytest.approx(one.pool(q, [0.2, 0.3, 0.5]), abs=1e-8)
    assert two.weights == pytest.approx(one.weights[source] / [1, 2, 2], abs=1e-7)
    still = FullPanel(np.pad(one.means, [(0, 0), (0, 1), (0, 0)]), np.pad(one.covariance, [(0, 1), (0, 0)] * 2), **WIDE)
    said = np.concatenate([q, some_forecasts(rng, 5, 1, 3)], axis=1)
    assert still.pool(said, [0.2, 0.3, 0.5]) == pytest.approx(one.pool(q, [0.2, 0.3, 0.5]), abs=1e-12)
    assert still.informative.tolist() == [True, True, False]
    assert (still.weights[2], still.calibration[2], still.accuracy[2]) == (0.0, 0.0, 0.0)
    other = means * np.array([1.0, 1.0, 1.5])[:, None]
    with pytest.raises(PanelError, match="equally accurate"):
        FullPanel(other, omega).pool(q[:, source], [0.2, 0.3, 0.5])


def test_pickles_and_cannot_be_changed():
    panel = some_panel(np.random.default_rng(0), 3, 2, names=["ann", "bob"], classes=["a", "b", "c"])
    again = pickle.loads(pickle.dumps(panel))
    q = some_forecasts(np.random.default_rng(1), 3, 2, 3)
    assert (again.pool(q, [0.2, 0.3, 0.5]) == panel.pool(q, [0.2, 0.3, 0.5])).all()
    assert (again.names, again.classes) == (panel.names, panel.classes)
    with pytest.raises(AttributeError, match="immutable"):
        panel.names = ()
    with pytest.raises(ValueError, match="read-only"):
        panel.parts.means[0] = 0.0
    assert repr(panel).startswith("<FullPanel of 2 experts, weights: ann")


@pytest.mark.parametrize(
    ("means", "covariance", "options", "error", "match"),
    [
        (np.zeros((3, 2, 3)), np.eye(4), {}, ShapeError, r"\(K, N, K - 1\)"),
        (np.zeros((3, 2, 2)), np.eye(3), {}, ShapeError, "covariance of shape"),
        (np.full((3, 1, 2), np.inf), np.eye(2), {}, PanelError, "finite"),
        (np.zeros((3, 1, 2)), [[1, 0.5], [0.1, 1]], {}, PanelError, "symmetric"),
        (np.zeros((3, 1, 2)), [[1, 2], [2, 1]], {}, PanelError, r"must lie in \[-1, 1\]"),
        (np.zeros((3, 1, 2)), [[-1, 0], [0, 1]], {}, PanelError, "variances"),
        (logodds.signature(3)[:, None], np.zeros((2, 2)), {}, PanelError, "without variance"),
        (np.zeros((3, 1, 2)), np.eye(2), {"classes": ["a", "b"]}, PanelError, "do not fit the 2 labels"),
        (np.zeros((3, 1, 2)), np.eye(2), {"names": ["a", "b"]}, ExpertError, "1 experts need 1 names"),
        (np.zeros((3, 1, 2)), np.eye(2), {"classes": ["a", "a", "b"]}, PanelError, "different labels"),
    ],
)
def test_no_such_panel(means, covariance, options, error, match):
    with pytest.raises(error, match=match):
        FullPanel(means, covariance, **options)


def test_no_such_class():
    with pytest.raises(ArgumentError, match="no class 'x'"):
        some_panel(np.random.default_rng(0), 3, 2).pair_weights(0, "x")
