"""Quadratic problems over x ≥ 0, against SciPy."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import LinearConstraint, minimize, nnls

from opinionpool.estimation.quadratic import least_quadratic, shortest


@pytest.mark.parametrize("size", [1, 2, 5, 20, 80])
@pytest.mark.parametrize("seed", range(5))
def test_the_least_quadratic_is_that_of_nonnegative_least_squares(seed, size):
    g = np.random.default_rng(seed)
    factor, target = g.normal(size=(size + 3, size)), g.normal(size=size + 3)
    x = least_quadratic(factor.T @ factor, factor.T @ target, g.random(size) < 0.5)
    expected, _ = nnls(factor, target)
    assert x == pytest.approx(expected, abs=1e-8)
    assert (x[expected == 0] == 0).all()


@given(st.integers(0, 2**32), st.integers(1, 12), st.floats(-9, 0))
def test_the_conditions_hold_however_alike_the_columns_are(seed, size, exponent):
    g = np.random.default_rng(seed)
    factor = g.random((15, 1)) + 10**exponent * g.random((15, size))
    matrix = factor.T @ factor + 1e-10 * np.eye(size)
    linear = factor.T @ g.random(15)
    x = least_quadratic(matrix, linear, np.ones(size, bool))
    slope = matrix @ x - linear
    assert x.min() >= 0
    assert slope.min() >= -1e-9
    assert abs(slope @ x) <= 1e-9 * max(1, x.max())


def test_many_columns_of_few_rows_are_solved_in_few_steps(monkeypatch):
    """As those of a linear pool with more experts than events are: one by one, in thousands of steps, once."""
    g = np.random.default_rng(1)
    solve, solved = np.linalg.solve, []
    monkeypatch.setattr(np.linalg, "solve", lambda *given: solved.append(1) or solve(*given))
    for size in (100, 300):
        factor = g.beta(2, 1, (30, size)) * (g.random((30, size)) > 0.8)
        matrix = factor.T @ factor + 1e-8 * np.eye(size)
        linear = factor.T @ g.random(30) - 0.1
        solved.clear()
        x = least_quadratic(matrix, linear, g.random(size) < 0.5)
        assert len(solved) <= 150
        slope = matrix @ x - linear
        assert slope.min() >= -1e-8
        assert abs(slope @ x) <= 1e-8


@pytest.mark.parametrize("seed", range(8))
def test_the_shortest_is_that_of_scipy(seed):
    g = np.random.default_rng(seed)
    size = int(g.integers(3, 9))
    rows = np.linalg.qr(g.normal(size=(size, int(g.integers(1, size)))))[0].T
    x = np.where(g.random(size) < 0.5, g.random(size), 0.0)
    y = shortest(x, rows)
    same = LinearConstraint(rows, rows @ x, rows @ x)
    found = minimize(
        lambda z: (z @ z, 2 * z), x, jac=True, method="SLSQP", bounds=[(0, None)] * size, constraints=[same],
        options={"ftol": 1e-15, "maxiter": 500},
    )  # fmt: skip
    assert y == pytest.approx(found.x, abs=1e-6)
    assert rows @ y == pytest.approx(rows @ x, abs=1e-12)
    assert y.min() >= 0
