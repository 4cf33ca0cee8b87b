"""Statistics and rows give the same numbers, those of a plain loop."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionpool.estimation.rows import ForecastRows
from opinionpool.estimation.statistics import Statistics
from opinionpool.logodds import metric


def both(seed, d=1, missing=0.3, t=25, n=4):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(t, n, d))
    x[rng.random((t, n)) < missing] = np.nan
    y, w = rng.integers(-1, d + 1, t), rng.integers(0, 3, t).astype(float)
    moments = Statistics.empty([f"e{i}" for i in range(n)], d + 1).add(x, y, w)
    return moments, ForecastRows.of_array(x, y, w), (x, y, w)


seeds = st.integers(0, 10**6)


@given(seeds, st.integers(1, 2), st.sampled_from([0.0, 0.4]))
def test_all_agree(seed, d, missing):
    moments, other, (x, _, _) = both(seed, d, missing)
    rng = np.random.default_rng(seed + 1)
    expected, spread = rng.normal(size=(d + 1, 4, d)), rng.uniform(0.5, 2, 4)
    spread[0] = np.inf
    assert moments.classes == other.classes == d + 1
    assert moments.events == pytest.approx(other.events)
    assert moments.answered == pytest.approx(other.answered)
    assert moments.complete == other.complete
    assert moments.marginals.count == pytest.approx(other.marginals.count)
    assert moments.marginals.mean == pytest.approx(other.marginals.mean, abs=1e-12)
    assert moments.marginals.square == pytest.approx(other.marginals.square, abs=1e-11)
    assert moments.shared(expected, spread) == pytest.approx(other.shared(expected, spread), abs=1e-9)
    if other.complete and not np.isnan(x).any():
        assert moments.scatter() == pytest.approx(other.scatter(), abs=1e-11)


@pytest.mark.parametrize("d", [1, 2])
def test_shared_products_against_a_loop(d):
    _, rows, (x, y, w) = both(3, d)
    rng = np.random.default_rng(9)
    expected, spread = rng.normal(size=(d + 1, 4, d)), rng.uniform(0.5, 2, 4)
    total = pairs = 0.0
    for t in range(len(y)):
        for i in range(4):
            for j in range(4):
                if i != j and y[t] >= 0 and not np.isnan(x[t, [i, j], 0]).any():
                    a = (x[t, i] - expected[y[t], i]) / spread[i]
                    b = (x[t, j] - expected[y[t], j]) / spread[j]
                    total += w[t] * (a @ metric(d + 1) @ b)
                    pairs += w[t]
    assert rows.shared(expected, spread) == pytest.approx((total, pairs))
