import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.optimize import minimize

from opinionpool import GaussianPool
from opinionpool.estimation.anchor import Anchor
from opinionpool.estimation.coefficients import WeightBeliefs
from opinionpool.estimation.posterior import posterior_mode
from opinionpool.estimation.regression import Observations, Regression
from opinionpool.logodds import logit, softmax

WEIGHTS = WeightBeliefs(np.array([0.7, 0.7]), 0.4, 0.3, lambda deviation: deviation)


def drawn(t, n, classes, seed=0):
    rng = np.random.default_rng(seed)
    design = 2.0 * rng.normal(size=(t, n, classes - 1))
    return design, rng.integers(0, classes, t), rng.normal(size=(t, classes - 1)), rng.integers(1, 3, t).astype(float)


def one_surprise(n):
    """Three experts who agree on n events and are right, except about the first, which they called 78% likely."""
    rng = np.random.default_rng(7)
    level = rng.choice([-1.0, 1.0], size=n) * rng.uniform(2.0, 9.0, size=n)
    level[:2] = 1.27, -2.0
    y = (level > 0).astype(float)
    y[0] = 0.0
    return 1.0 / (1.0 + np.exp(-(level[:, None] + 0.1 * rng.normal(size=(n, 3))))), y


class TestMode:
    @pytest.mark.parametrize("classes", [2, 3])
    @pytest.mark.parametrize("n", [2, 40])
    def test_minimises_loss_and_distances(self, classes, n):
        design, outcomes, offset, weight = drawn(9, n, classes)
        anchor = Anchor.at(offset, offset + 0.5, weight)
        found = posterior_mode(design, outcomes, offset, weight, anchor=anchor)

        def cost(theta):
            moved = np.einsum("tpd,p->td", design, theta)
            full = np.concatenate([np.zeros((9, 1)), offset + moved], axis=1)
            loss = np.logaddexp.reduce(full, axis=1) - full[np.arange(9), outcomes]

            def length(ratios):
                centred = np.concatenate([np.zeros((9, 1)), ratios], axis=1)
                return 2.0 * (centred - centred.mean(axis=1, keepdims=True)) ** 2

            own, common = length(moved).sum(axis=1), length(moved + 0.5).sum(axis=1)
            return weight @ loss + theta @ theta / 2 + (anchor.own @ own + anchor.common @ common) / 2

        best = minimize(cost, np.zeros(n), method="BFGS", options={"gtol": 1e-9})
        assert found.coefficients == pytest.approx(best.x, abs=2e-6)

    def test_precision_is_of_beliefs_and_outcomes_alone(self):
        design, outcomes, offset, weight = drawn(9, 2, 2)
        found = posterior_mode(design, outcomes, offset, weight, anchor=Anchor.at(offset, offset, weight))
        p = softmax(offset + np.einsum("tpd,p->td", design, found.coefficients))[:, 1]
        hessian = np.einsum("tp,t,tq->pq", design[..., 0], weight * p * (1 - p), design[..., 0])
        assert found.precision == pytest.approx(np.eye(2) + hessian, rel=1e-6)


def test_more_coefficients_than_events():
    design, outcomes, offset, weight = drawn(9, 9, 2)
    anchor = Anchor.at(offset, offset + 0.5, weight)
    plain = posterior_mode(design, outcomes, offset, weight, anchor=anchor)
    wide = np.concatenate([design, np.zeros((9, 4, 1))], axis=1)
    found = posterior_mode(wide, outcomes, offset, weight, anchor=anchor)
    assert found.coefficients[:9] == pytest.approx(plain.coefficients, abs=1e-7)
    assert found.evidence == pytest.approx(plain.evidence)
    assert found.covariance[:9, :9] == pytest.approx(plain.covariance, abs=1e-7)


class TestEvidence:
    @pytest.mark.parametrize("t", [1, 3, 8])
    def test_is_the_integral_over_intercept_and_slope(self, t):
        rng = np.random.default_rng(t)
        contrasts = rng.normal(size=(t, 2, 1))
        task = Regression(Observations(contrasts, np.zeros((t, 1)), rng.integers(0, 2, t), np.ones(t)), WEIGHTS)
        sign = 2.0 * task.observed.outcomes - 1.0

        def joint(intercept, slope):
            weights = WEIGHTS.mean * (1.0 + 0.4 / WEIGHTS.mean.sum() * slope)
            answer = 0.3 * intercept + contrasts[..., 0] @ weights
            prior = np.exp(-(intercept**2 + slope**2) / 2.0) / (2.0 * np.pi)
            return prior / np.prod(1.0 + np.exp(-sign * answer))

        whole = dblquad(joint, -8, 8, -8, 8, epsabs=1e-9)[0]
        slope = dblquad(lambda b, a: a * joint(b, a), -8, 8, -8, 8, epsabs=1e-9)[0] / whole
        found = task.fit(0.0)
        assert found.evidence == pytest.approx(np.log(whole), abs=0.01)
        assert found.values[1:].sum() == pytest.approx(1.4 + 0.4 * slope, abs=0.02)


class TestStability:
    @pytest.mark.parametrize("n", [40, 160])
    def test_one_surprise_moves_answers_little(self, n):
        x, y = one_surprise(n)
        new = x[np.argsort(np.abs(logit(x[:, 0])))][:: n // 20]
        without = y.copy()
        without[0] = np.nan
        shift = logit(GaussianPool().fit(x, y).predict_proba(new)[:, 1])
        shift = shift - logit(GaussianPool().fit(x, without).predict_proba(new)[:, 1])
        assert np.abs(shift).mean() <= 15.0 / n

    def test_fades(self):
        rng = np.random.default_rng(3)
        level = 4.0 * rng.normal(size=5_000)
        y = (rng.random(5_000) < 1.0 / (1.0 + np.exp(-2.0 * level))).astype(float)
        found = GaussianPool().fit(1.0 / (1.0 + np.exp(-level))[:, None], y)
        answer = logit(found.predict_proba([[0.6], [0.8]])[:, 1])
        assert answer == pytest.approx(2.0 * logit(np.array([0.6, 0.8])), rel=0.1)
