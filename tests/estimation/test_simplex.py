"""Weights on the simplex, against grids, SciPy, the certificate and the properties that they must have."""

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize

from opinionpool.estimation.simplex import simplex_weights

LEAST = 1e-6


def loss(q, w, u=None, present=None):
    """Mean negative log-likelihood, written out."""
    present = np.ones(q.shape) if present is None else present
    some = present.any(axis=1)
    q = np.where(present, q, 0.0)[some]
    pooled = (q * w).sum(axis=1) / (present[some] * w).sum(axis=1)
    return -np.average(np.log(pooled), weights=None if u is None else np.asarray(u)[some])


def certificate(q, w, u=None):
    return max(np.average(q[:, i] / (q * w).sum(axis=1), weights=u) for i in range(q.shape[1])) - 1


def towards(q, w, present, u=None):
    """The largest derivative of the mean log-likelihood towards a corner of what weights may be."""
    u = np.ones(len(q)) if u is None else np.asarray(u)
    rows = present.sum(axis=1) > 1
    total = u[present.any(axis=1)].sum()
    heard = present[rows].any(axis=0)
    n = heard.sum()
    q, m, u, w = np.where(present, q, 0.0)[rows][:, heard], present[rows][:, heard], u[rows], w[heard] / w[heard].sum()
    gradient = ((q / (q @ w)[:, None] - m / (m @ w)[:, None]) * u[:, None]).sum(axis=0) / total
    return max(gradient @ (LEAST / n + (1 - LEAST) * corner - w) for corner in np.eye(n))


def slsqp(q, u=None):
    u = np.full(len(q), 1 / len(q)) if u is None else np.asarray(u) / np.sum(u)

    def value(w):
        p = q @ w
        return -u @ np.log(p), -(u / p) @ q

    n = q.shape[1]
    total = {"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(n)}
    options = {"ftol": 1e-15, "maxiter": 1000}
    start = np.full(n, 1 / n)
    found = minimize(value, start, jac=True, method="SLSQP", bounds=[(0, 1)] * n, constraints=[total], options=options)
    w = np.clip(found.x, 0, 1)
    return w / w.sum()


def gaussian(t, n, seed, floor=1e-4):
    """Experts of unequal accuracy who share error, and what they gave to what happened."""
    g = np.random.default_rng(seed)
    accuracy = np.exp(g.normal(-0.7, 0.5, n))
    noise = 0.5 * g.normal(size=(t, 1)) + 0.9 * g.normal(size=(t, n))
    return np.clip(1 / (1 + np.exp(-accuracy - np.sqrt(2 * accuracy) * noise)), floor, 1 - floor)


def proper(fit):
    assert fit.converged
    assert fit.gap <= 1e-8
    assert fit.weights.min() >= 0
    assert fit.weights.sum() == pytest.approx(1, abs=1e-14)
    return fit.weights


@pytest.mark.parametrize("seed", range(8))
def test_scipy_finds_the_same(seed):
    g = np.random.default_rng(seed)
    q = gaussian(int(g.integers(20, 300)), int(g.integers(2, 12)), seed)
    u = g.integers(1, 5, len(q)) if seed % 2 else None
    fit = simplex_weights(q, u, tolerance=1e-11)
    assert certificate(q, fit.weights, u) <= 1e-11
    assert fit.gap == pytest.approx(certificate(q, fit.weights, u), abs=1e-14)
    assert loss(q, fit.weights, u) <= loss(q, slsqp(q, u), u) + 1e-14
    assert fit.weights == pytest.approx(slsqp(q, u), abs=2e-4)


def near_twins(g):
    q = gaussian(200, 6, 1)
    return np.hstack([q, q * (1 + 1e-7 * g.normal(size=q.shape))])


DIFFICULT = {
    "scales": lambda g: 10 ** g.uniform(-4, 0, (300, 12)),
    "wide": lambda g: 10 ** g.uniform(-8, 0, (100, 10)),
    "all or nothing": lambda g: np.where(g.random((300, 12)) < 0.5, 1e-8, 1 - 1e-8),
    "one great miss": lambda g: np.vstack([np.tile([0.99, 0.01], (2000, 1)), [[1e-8, g.random()]]]),
    "near twins": near_twins,
    "low rank": lambda g: np.exp(g.normal(size=(500, 3))) @ g.random((3, 40)),
    "more experts than events": lambda g: gaussian(40, 300, int(g.integers(99))),
    "one event": lambda g: g.random((1, 30)) + 1e-8,
    "one expert": lambda g: g.random((30, 1)) + 1e-8,
    "all the same": lambda g: np.repeat(g.random((30, 1)) + 1e-8, 7, axis=1),
}


@pytest.mark.parametrize("kind", DIFFICULT)
@pytest.mark.parametrize("seed", range(3))
def test_the_certificate_is_met_on_difficult_arrays(kind, seed):
    q = DIFFICULT[kind](np.random.default_rng(seed))
    fit = simplex_weights(q)
    assert certificate(q, proper(fit)) <= 1e-8
    assert fit.passes <= 25


@pytest.mark.parametrize("seed", range(6))
def test_ties_are_broken_by_the_least_sum_of_squares(seed):
    g = np.random.default_rng(seed)
    base = gaussian(12, 3, seed)
    q = np.hstack([base, base @ g.dirichlet(np.ones(3), 4).T, base[:, :1]])
    w = proper(simplex_weights(q, tolerance=1e-11))
    pooled = q @ w
    bounds = [(0, 1)] * 8
    same = {"type": "eq", "fun": lambda x: base.T @ (q @ x - pooled), "jac": lambda x: base.T @ q}
    start = np.zeros(8)
    start[:3] = simplex_weights(base, tolerance=1e-11).weights
    found = minimize(
        lambda x: (x @ x, 2 * x), start, jac=True, method="SLSQP", bounds=bounds, constraints=[same],
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert pooled == pytest.approx(base @ start[:3], abs=1e-9)
    # Older releases of SciPy stop at the start for one of the seeds.
    assert w @ w <= found.fun + 1e-9
    if found.fun <= w @ w + 1e-9:
        assert w == pytest.approx(found.x, abs=1e-5)


TENTHS = st.sampled_from([0.0001, 0.05, 0.1, 0.2, 0.3, 0.45, 0.5, 0.6, 0.75, 0.9, 0.9999])


@st.composite
def arrays(draw, least=1, most_experts=5):
    shape = draw(st.integers(least, 12)), draw(st.integers(least, most_experts))
    return draw(hnp.arrays(np.float64, shape, elements=TENTHS))


# At the maximum, who says .9 once has weight 0 and a derivative of 0: what a little weight loses is quadratic in it.
ONCE = np.array([[0.9, 0.3, 0.3], [0.3, 0.9, 0.3]] + [[0.3, 0.3, 0.9]] * 3 + [[0.3] * 3] * 5)


@example(np.array([[0.9], [0.3], [0.3], [0.3], [0.3], [0.3]]), 1, 0)
@example(ONCE, 1, 0)
@example(ONCE, 2, 1)
@given(arrays(most_experts=4), st.integers(1, 3), st.integers(0, 3))
def test_twins_share(q, copies, who):
    who %= q.shape[1]
    fit = simplex_weights(np.hstack([q, *[q[:, [who]]] * copies]), tolerance=1e-11)
    shares = proper(fit)[[who, *range(q.shape[1], q.shape[1] + copies)]]
    assert len(set(shares.tolist())) == 1
    alone = simplex_weights(q, tolerance=1e-11)
    pooled = fit.weights[: q.shape[1]].copy()
    pooled[who] = shares.sum()
    assert q @ pooled == pytest.approx(q @ proper(alone), rel=1e-6)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["alike", "every 16th differs"])
def test_long_arrays_meet_the_certificate_too(kind, order):
    q = gaussian(30000, 8, 11)
    if kind != "alike":
        q[::16] = 1e-4
        q[::16, 7] = 0.9999
        q[:, 7] = np.where(np.arange(len(q)) % 16, 1e-3, q[:, 7])
    fit = simplex_weights(np.asarray(q, order=order))
    assert certificate(q, proper(fit)) <= 1e-8
    assert fit.passes <= 25
    assert fit.passes % 1 > 0  # some reads were of some rows
    assert fit.weights == pytest.approx(slsqp(q), abs=2e-4)


def test_very_long_arrays_are_thinned_twice():
    q = gaussian(270_000, 8, 5)
    fit = simplex_weights(q)
    assert certificate(q, proper(fit)) <= 1e-8
    assert fit.passes <= 25
    assert fit.passes * 16 % 1 > 0
    assert fit.weights == pytest.approx(slsqp(q), abs=2e-4)


def test_a_fit_that_was_stopped_says_so():
    q = gaussian(100, 5, 1)
    fit = simplex_weights(q, max_iterations=0)
    assert not fit.converged
    assert fit.gap == pytest.approx(certificate(q, np.full(5, 0.2)))
    assert fit.gap > 1e-2
    stopped = simplex_weights(q, max_iterations=1)
    assert not stopped.converged
    assert loss(q, stopped.weights) < loss(q, fit.weights)


def test_without_the_quadratic_problem_it_is_slow_and_honest(monkeypatch):
    q = gaussian(100, 4, 6)
    best = simplex_weights(q)

    def stopped(*_, **__):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr("scipy.optimize.nnls", stopped)
    fits = [simplex_weights(q, max_iterations=count) for count in (0, 1, 5, 40)]
    losses = [loss(q, fit.weights) for fit in fits]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] == pytest.approx(loss(q, best.weights), abs=1e-3)
    assert [fit.converged for fit in fits] == [fit.gap <= 1e-8 for fit in fits]
    assert fits[-1].gap == pytest.approx(certificate(q, fits[-1].weights), abs=1e-14)


# Missing forecasts.


@st.composite
def holes(draw):
    q = draw(arrays(least=2))
    present = draw(hnp.arrays(np.bool_, q.shape))
    present[0], present[1, 0] = True, False
    return np.where(present, q, np.nan), present


@given(holes())
def test_with_holes_the_answer_is_stationary_and_no_worse_than_equal_weights(holed):
    q, present = holed
    fit = simplex_weights(q, present=present)
    assert fit.converged
    assert fit.weights.min() >= 0.999 * LEAST / q.shape[1]
    assert fit.weights.sum() == pytest.approx(1, abs=1e-12)
    assert towards(q, fit.weights, present) <= 2e-8
    equal = np.full(q.shape[1], 1 / q.shape[1])
    assert loss(q, fit.weights, present=present) <= loss(q, equal, present=present) + 1e-12


def test_where_all_with_weight_are_absent_the_others_are_pooled():
    q = np.array([[0.9, 0.2, 0.3]] * 20 + [[0.9, 0.6, 0.2]])
    present = np.ones(q.shape, bool)
    present[20, 0] = False
    fit = simplex_weights(q, present=present)
    assert fit.converged
    assert fit.weights[0] > 0.999
    assert fit.weights[1] > 10 * fit.weights[2] > 0
    assert np.exp(-loss(q[20:], fit.weights, present=present[20:])) == pytest.approx(0.6, abs=0.1)


def test_who_shares_no_event_gets_an_equal_share():
    q = gaussian(40, 2, 1)
    both = simplex_weights(q).weights
    q = np.vstack([np.column_stack([q, np.full(40, np.nan)]), [[np.nan, np.nan, 0.9]] * 3])
    fit = simplex_weights(q, present=~np.isnan(q))
    assert fit.weights[2] == pytest.approx(1 / 3)
    assert fit.weights[:2] * 1.5 == pytest.approx(both, abs=1e-5)
    alone = simplex_weights(q[40:], present=~np.isnan(q[40:]))
    assert alone.converged
    assert alone.weights.tolist() == [1 / 3] * 3


def test_long_arrays_with_holes():
    q = gaussian(30000, 8, 3)
    present = np.random.default_rng(3).random(q.shape) < 0.6
    fit = simplex_weights(q, present=present)
    assert fit.converged
    assert towards(q, fit.weights, present) <= 2e-8
    assert fit.passes % 1 > 0
    assert loss(q, fit.weights, present=present) < loss(q, np.full(8, 1 / 8), present=present)


@pytest.mark.parametrize("missing", [False, True])
def test_a_long_array_of_equal_rows_is_solved(missing):
    """Whichever of the first rows stand for all, they are not all again."""
    for events in range(100_000, 100_024):
        q = np.tile([0.6, 0.7, 0.5], (events, 1))
        present = np.broadcast_to([True, True, not missing], q.shape) if missing else None
        assert simplex_weights(q, present=present).weights.argmax() == 1
