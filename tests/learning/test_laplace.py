"""The posterior of the nodes against a general optimiser, against brute force, and against itself in fewer numbers."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

import opinionpool as op
from opinionpool.estimation.regression import Observations
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.laplace import fit_nodes, prior_fit
from opinionpool.learning.nodes import prior_nodes
from opinionpool.learning.prior import Believed
from opinionpool.learning.quadratic import Arrow, Levels, Quadratic
from opinionpool.logodds import signature


def observations(t, n=3, k=2, seed=0):
    rng = np.random.default_rng([seed, t, n])
    outcomes, weight = rng.integers(0, k, t), rng.integers(1, 4, t).astype(float)
    contrasts = 0.5 * rng.normal(size=(t, n, k - 1)) + 0.4 * signature(k)[outcomes][:, None]
    return Observations(contrasts, 0.3 * rng.normal(size=(t, k - 1)), outcomes, weight)


def nodes_of(n, k=2, beliefs=None):
    believed = Believed.of(Beliefs() if beliefs is None else beliefs, tuple("abcdefghijklmnopqrstuvwxyz"[:n]))
    return prior_nodes(believed, k - 1, options=False)


def root_of(nodes, b, j, d):
    """Root of the prior covariance of intercept and weights of a node with a sum."""
    n = nodes.direction.shape[1]
    covariance = np.zeros((d + n, d + n))
    covariance[:d, :d] = nodes.sums.intercept[j] ** 2 * nodes.intercept @ nodes.intercept.T
    covariance[d:, d:] = nodes.deviations[b] + nodes.sums.sd[j] ** 2 * np.outer(nodes.direction[b], nodes.direction[b])
    size, vector = np.linalg.eigh(covariance)
    return vector * np.sqrt(np.maximum(size, 0.0))


def exact(observed, nodes, b, j):
    """Mode and log evidence (Laplace) of intercept and weights of a node with a sum, by a general optimiser."""
    d, n = observed.free, observed.contrasts.shape[1]
    root = root_of(nodes, b, j, d)
    mean = np.append(np.zeros(d), nodes.sums.value[j] * nodes.direction[b])

    def ratios(theta):
        values = mean + root @ theta
        return observed.offset + values[:d] + np.einsum("tnd,n->td", observed.contrasts, values[d:])

    def loss(theta):
        full = np.concatenate([np.zeros((len(observed.outcomes), 1)), ratios(theta)], axis=1)
        return observed.weight @ (logsumexp(full, axis=1) - full[np.arange(len(full)), observed.outcomes])

    def cost(theta):
        return float(loss(theta) + theta @ theta / 2)

    found = minimize(cost, np.zeros(d + n), method="BFGS", options={"gtol": 1e-7})
    step, eye = 1e-3, np.eye(d + n)
    bent = np.array([
        [
            sum(s * r * cost(found.x + step * (s * e + r * f)) for s in (-1, 1) for r in (-1, 1)) / (4 * step**2)
            for e in eye
        ]
        for f in eye
    ])  # fmt: skip
    return mean + root @ found.x, -found.fun - np.linalg.slogdet(bent)[1] / 2


@pytest.mark.parametrize("k", [2, 3])
def test_few_events_have_modes_and_evidence_of_a_general_optimiser(k):
    observed, nodes = observations(12, k=k), nodes_of(3, k)
    found = fit_nodes(observed, nodes)
    pairs = [(b, j) for b in range(len(nodes.probability)) for j in range(len(nodes.sums.value))]
    likely = [pair for pair in pairs if found.joint[pair] > 0.02]
    assert len(likely) > 5
    each = [exact(observed, nodes, *pair) for pair in likely]
    prior = [nodes.probability[b] * nodes.sums.probability[j] for b, j in likely]
    score = np.log(prior) + [evidence for _, evidence in each]
    mine = np.log([found.joint[pair] for pair in likely])
    assert mine - mine[0] == pytest.approx(score - score[0], abs=1e-3)


def test_the_quadratic_function_is_exact_where_the_likelihood_is_one():
    """Evidence, means and covariances of every node by the formulas of a linear Gaussian model."""
    rng, nodes = np.random.default_rng(1), nodes_of(4)
    root = rng.normal(size=(5, 7))
    hessian, slope = root @ root.T, 3.0 * rng.normal(size=5)
    levels = Levels.of(Arrow.plain(Quadratic(0.3, slope, hessian), 1), nodes)
    found, pairs = levels.each[0].found, levels.likely(-np.inf, 5, covariances=True)
    for b, j in ((0, 3), (2, 7), (3, 12)):
        own = root_of(nodes, b, j, 1)
        covariance, mean = own @ own.T, np.append(0.0, nodes.sums.value[j] * nodes.direction[b])
        precision = np.linalg.inv(covariance) + hessian
        post = np.linalg.solve(precision, np.linalg.solve(covariance, mean) + slope)
        assert found.mean[b, j] == pytest.approx(post, abs=1e-8)
        (own_covariance,) = pairs.covariance[(pairs.node == b) & (pairs.total == j)]
        assert own_covariance == pytest.approx(np.linalg.inv(precision), abs=1e-8)
        energy = 0.3 + slope @ post - post @ hessian @ post / 2
        energy -= (post - mean) @ np.linalg.solve(covariance, post - mean) / 2
        evidence = energy - np.linalg.slogdet(np.eye(5) + hessian @ covariance)[1] / 2
        prior = np.log(nodes.probability[b] * nodes.sums.probability[j])
        assert found.score[b, j] == pytest.approx(prior + evidence, abs=1e-8)


@pytest.mark.parametrize("k", [2, 3])
def test_more_experts_than_events_see_are_as_all_together(monkeypatch, k):
    observed, nodes = observations(5, n=20, k=k), nodes_of(20, k)
    assert observed.basis_with(nodes.direction) is not None
    one = fit_nodes(observed, nodes)
    monkeypatch.setattr(Observations, "basis_with", lambda *_: None)
    two = fit_nodes(observed, nodes)
    assert one.mean == pytest.approx(two.mean, abs=1e-8)
    assert one.normals.covariance == pytest.approx(two.normals.covariance, abs=1e-8)


@pytest.mark.parametrize(
    "beliefs", [None, Beliefs(correlation=0.4), Beliefs(experts={"a": {"auc": 0.8}, "b": {"auc": 0.7}})]
)
def test_without_events_the_posterior_is_the_prior(beliefs):
    nodes = nodes_of(3, beliefs=beliefs)
    found = prior_fit(nodes)
    assert found.mean[1:] == pytest.approx(nodes.mean)
    normals = found.normals
    assert normals.probability.sum() == pytest.approx(1)
    assert normals.probability @ normals.mean == pytest.approx(found.mean)
    # By all pairs.
    second = np.zeros((4, 4))
    for b, p in enumerate(nodes.probability):
        for j, q in enumerate(nodes.sums.probability):
            root = root_of(nodes, b, j, 1)
            mean = np.append(0.0, nodes.sums.value[j] * nodes.direction[b])
            second += p * q * (root @ root.T + np.outer(mean, mean))
    mine = normals.covariance + normals.mean[:, :, None] * normals.mean[:, None]
    assert np.tensordot(normals.probability, mine, 1) == pytest.approx(second, abs=1e-9)


@pytest.mark.parametrize(("accuracy", "events"), [(0.2, 1500), (1.0, 1000)])
def test_one_quadratic_function_is_used_only_where_it_answers_as_all_modes_do(monkeypatch, accuracy, events):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, events + 200)
    noise = np.sqrt(0.6) * rng.normal(size=(len(y), 1)) + np.sqrt(0.4) * rng.normal(size=(len(y), 20))
    mu = np.sqrt(accuracy) * np.exp(0.3 * rng.normal(size=20))
    p = expit(1.6 * mu * ((2 * y - 1)[:, None] * mu + noise))

    def answers():
        return op.GaussianPool().fit(p[:events], y[:events]).predict_proba(p[events:])[:, 1]

    usual = answers()
    monkeypatch.setattr("opinionpool.learning.laplace.MANY", np.inf)
    assert answers() == pytest.approx(usual, abs=0.01)
