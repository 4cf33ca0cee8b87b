"""Many classes: the same likelihood without a design of their own for each event."""

import numpy as np
import pytest

from opinionpool.estimation import blockwise
from opinionpool.estimation.blockwise import Likelihood, ManyClasses
from opinionpool.forecasts import Forecasts
from opinionpool.logodds import inner_products, metric
from opinionpool.pools.fit import fit_pool


def drawn(t=12, n=2, k=20, seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(t, n, k - 1)), rng.integers(k, size=t)
    return x, y, rng.normal(size=(t, k - 1)), rng.integers(1, 4, size=t).astype(float), rng


def test_value_is_that_of_softmax_in_full():
    x, y, offset, weight, rng = drawn()
    t, _, d = x.shape
    many = ManyClasses(x, y, offset, weight)
    theta = rng.normal(size=many.size)
    design = np.concatenate([x, np.broadcast_to(np.eye(d), (t, d, d))], axis=1)
    ratios = np.concatenate([np.zeros((t, 1)), offset + np.einsum("tpd,p->td", design, theta)], axis=1)
    p = np.exp(ratios) / np.exp(ratios).sum(axis=1, keepdims=True)
    each = [np.diag(q[1:]) - np.outer(q[1:], q[1:]) for q in p]
    hessian = sum(w * z @ c @ z.T for w, z, c in zip(weight, design, each, strict=True))
    gradient = sum(
        w * z @ (q[1:] - (np.arange(1, d + 1) == s)) for w, z, q, s in zip(weight, design, p, y, strict=True)
    )
    found = many.value(theta)
    assert found.loss == pytest.approx(-(weight @ np.log(p[np.arange(t), y])) / weight.sum(), abs=1e-12)
    assert found.gradient == pytest.approx(gradient / weight.sum(), abs=1e-12)
    assert found.hessian == pytest.approx(hessian / weight.sum(), abs=1e-12)


def test_an_intercept_is_the_same_either_way(monkeypatch):
    x, y, offset, weight, rng = drawn()
    theta = rng.normal(size=x.shape[1] + x.shape[2])
    found = []
    for most in (16, 10**9):
        monkeypatch.setattr(blockwise, "MANY_CLASSES", most)
        one = Likelihood.of(x, y, offset, weight, intercept=True)
        value = one.value(theta)
        found.append((value.loss, value.gradient, value.hessian, one.gram(), one.gains(theta)))
    for many, few in zip(*found, strict=True):
        assert many == pytest.approx(few, abs=1e-12)


@pytest.mark.parametrize("pool", ["log", "recalibrated"])
def test_pools_answer_the_same_either_way(monkeypatch, pool):
    rng = np.random.default_rng(1)
    q, y = rng.dirichlet(np.ones(18), size=(25, 2)), rng.integers(18, size=25)
    q[3, 1] = np.nan
    forecasts, answers = Forecasts.from_array(q, y, classes=range(18)), []
    for most in (16, 10**9):
        monkeypatch.setattr(blockwise, "MANY_CLASSES", most)
        answers.append(fit_pool(pool, forecasts).pool(forecasts.X))
    assert answers[0] == pytest.approx(answers[1], abs=1e-9)


def test_a_thousand_classes():
    rng = np.random.default_rng(2)
    q, y = rng.dirichlet(np.ones(1000), size=(4, 1)), rng.integers(1000, size=4)
    learned = fit_pool("log", Forecasts.from_array(q, y, classes=range(1000)))
    assert learned.pool(q).sum(axis=1) == pytest.approx(1.0)


def test_inner_products_are_those_of_the_metric():
    rng = np.random.default_rng(3)
    for k in (2, 3, 20):
        a, b = rng.normal(size=(2, 7, k - 1))
        assert inner_products(a, b) == pytest.approx(np.einsum("nd,de,ne->n", a, metric(k), b), abs=1e-12)
