"""What some rows have beyond others."""

import numpy as np
from hypothesis import given, settings, strategies as st

from opinionpool.estimation.coefficients import excess


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_excess_is_a_bound_whichever_class_is_first(seed):
    rng = np.random.default_rng(seed)
    classes, experts = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    size = classes - 1 + experts
    more, less = (rng.normal(size=(int(rng.integers(1, 8)), size)) for _ in range(2))
    found = excess(more, less, classes - 1)
    part = found.T @ found
    # At least as much as both, in every direction.
    assert np.linalg.eigvalsh(less.T @ less + part - more.T @ more).min() > -1e-9
    # Log-ratios against another class: log p_j - log p_c = (log p_j - log p_0) - (log p_c - log p_0).
    full = np.concatenate([np.zeros((classes - 1, 1)), np.eye(classes - 1)], axis=1)[:, rng.permutation(classes)]
    turn = np.eye(size)
    turn[: classes - 1, : classes - 1] = full[:, 1:] - full[:, :1]
    turned = excess(more @ turn, less @ turn, classes - 1)
    np.testing.assert_allclose(turned.T @ turned, turn.T @ part @ turn, atol=1e-10)


def test_nothing_is_in_excess_of_more():
    rows = np.random.default_rng(2).normal(size=(4, 3))
    np.testing.assert_allclose(excess(rows, 2 * rows, 1), 0, atol=1e-7)
    found = excess(2 * rows, rows, 1)
    np.testing.assert_allclose(found.T @ found, 3 * rows.T @ rows, atol=1e-12)
    # Along one direction, of which the others say nothing.
    found = excess(np.array([[1.0, 1.0]]), np.array([[1.0, -1.0]]), 1)
    np.testing.assert_allclose(found.T @ found, [[1, 1], [1, 1]], atol=1e-12)
