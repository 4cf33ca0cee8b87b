"""Statistics against sums over the rows in exact rational arithmetic, and as an algebra."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from opinionpool.errors import ArgumentError, ExpertError, ShapeError
from opinionpool.estimation.rows import ForecastRows
from opinionpool.estimation.statistics import Statistics
from opinionpool.logodds import metric

NAMES = ("ann", "bob", "cy")


def rows(seed, t=30, n=3, d=1, missing=0.3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(t, n, d))
    x[rng.random((t, n)) < missing] = np.nan
    return x, rng.integers(-1, d + 1, t), rng.integers(0, 4, t).astype(float)


def same(a, b, tolerance=1e-10):
    assert a.experts == b.experts
    assert a.totals == pytest.approx(b.totals)
    assert set(a.patterns) == set(b.patterns)
    for key, part in a.patterns.items():
        other = b.patterns[key]
        assert part.weight == pytest.approx(other.weight)
        assert part.mean == pytest.approx(other.mean, abs=tolerance)
        assert part.scatter == pytest.approx(other.scatter, abs=tolerance)


def exact_marginals(x, y, weight, classes=2):
    """Counts, means and squares of each expert in rational arithmetic."""
    t, n, d = x.shape
    inner = [[Fraction(v) for v in row] for row in metric(classes)]
    count, mean, square = np.zeros((classes + 1, n)), np.zeros((classes + 1, n, d)), [[0.0] * n, [0.0] * n]
    for i in range(n):
        totals = [Fraction(0), Fraction(0)]
        for c in range(classes + 1):
            label = -1 if c == classes else c
            used = [s for s in range(t) if y[s] == label and weight[s] > 0 and not np.isnan(x[s, i, 0])]
            w = [Fraction(weight[s]) for s in used]
            count[c, i] = float(sum(w))
            if not used:
                continue
            centre = [sum(a * Fraction(x[s, i, k]) for a, s in zip(w, used, strict=True)) / sum(w) for k in range(d)]
            mean[c, i] = [float(v) for v in centre]
            for a, s in zip(w, used, strict=True):
                off = [Fraction(x[s, i, k]) - centre[k] for k in range(d)]
                totals[int(c == classes)] += a * sum(off[j] * inner[j][k] * off[k] for j in range(d) for k in range(d))
        square[0][i], square[1][i] = float(totals[0]), float(totals[1])
    return count, mean, np.array(square)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_marginals_against_rational_arithmetic(seed, d):
    x, y, w = rows(seed, d=d)
    found = Statistics.empty(NAMES, d + 1).add(x, y, w).marginals
    count, mean, square = exact_marginals(x, y, w, d + 1)
    assert found.count == pytest.approx(count)
    assert found.mean == pytest.approx(mean, abs=1e-13)
    assert found.square == pytest.approx(square, rel=1e-12)


def test_large_offsets_cost_no_precision():
    """At an offset of 1e8 the inputs themselves resolve 1.5e-8; the moments of those inputs keep theirs."""
    x, y, w = rows(1, missing=0.0)
    x = x + 1e8
    found = Statistics.empty(NAMES).add(x, y, w).marginals
    count, mean, square = exact_marginals(x, y, w)
    held = count > 0
    assert found.mean[held] == pytest.approx(mean[held], rel=1e-16, abs=2e-8)
    assert found.square == pytest.approx(square, rel=1e-7)
    halves = (
        Statistics.empty(NAMES).add(x[:13], y[:13], w[:13]).merge(Statistics.empty(NAMES).add(x[13:], y[13:], w[13:]))
    )
    assert halves.marginals.square == pytest.approx(square, rel=1e-7)


seeds = st.integers(0, 10**6)


@settings(max_examples=40)
@given(seeds, st.integers(0, 30), st.integers(1, 2))
def test_merging_is_adding_in_any_order(seed, cut, d):
    x, y, w = rows(seed, d=d)
    empty = Statistics.empty(NAMES, d + 1)
    whole = empty.add(x, y, w)
    first, second = empty.add(x[:cut], y[:cut], w[:cut]), empty.add(x[cut:], y[cut:], w[cut:])
    same(first.merge(second), whole)
    same(second.merge(first), whole)
    same(first.add(x[cut:], y[cut:], w[cut:]), whole)
    order = np.random.default_rng(seed).permutation(len(y))
    same(empty.add(x[order], y[order], w[order]), whole)


@given(seeds, st.integers(1, 29))
def test_removing_undoes_adding(seed, cut):
    x, y, w = rows(seed)
    empty = Statistics.empty(NAMES)
    first, second = empty.add(x[:cut], y[:cut], w[:cut]), empty.add(x[cut:], y[cut:], w[cut:])
    same(first.merge(second).remove(second), first, 1e-9)
    nothing = first.remove(first)
    assert not nothing.totals.any()
    assert not nothing.patterns


def test_errors_state_the_rule():
    moments = Statistics.empty(NAMES)
    x, y, _ = rows(0)
    with pytest.raises(ShapeError, match=r"need log-ratios of shape \(30, 3, 1\)"):
        moments.add(x[:, :2], y)
    with pytest.raises(ArgumentError, match="only events that were added can be removed"):
        moments.remove(moments.add(x, y))
    with pytest.raises(ArgumentError, match="expert 'eve' was never added"):
        moments.remove(Statistics.empty(["eve"]))
    with pytest.raises(ArgumentError, match="2 and of 3 classes"):
        moments.merge(Statistics.empty(NAMES, 3))
    with pytest.raises(ExpertError, match="'a' stands twice"):
        Statistics.empty(["a", "a"])


def both(seed, d=1, missing=0.3, t=25, n=4):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(t, n, d))
    x[rng.random((t, n)) < missing] = np.nan
    y, w = rng.integers(-1, d + 1, t), rng.integers(0, 3, t).astype(float)
    moments = Statistics.empty([f"e{i}" for i in range(n)], d + 1).add(x, y, w)
    return moments, ForecastRows.of_array(x, y, w), (x, y, w)


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
