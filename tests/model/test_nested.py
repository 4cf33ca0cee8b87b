"""Nested evidence against brute force, at high precision, and in its limits."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from mpmath import matrix as mp_matrix, mp

from opinionpool.errors import PanelError
from opinionpool.forecasts import Forecasts
from opinionpool.model.correlation import MatrixCorrelation
from opinionpool.model.features import Parts
from opinionpool.model.nested import NestedCorrelation
from opinionpool.model.panel import Panel

NAN = np.nan
seeds = st.integers(0, 2**32)


def some(seed, rho=None):
    """Experts who tie, point the other way, or know nothing."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    signal = rng.lognormal(0, 1, n) * rng.choice([-1, 1, 1], n)
    if n > 3:
        signal[1], signal[2] = signal[0], -signal[0]
    if n > 4:
        signal[3] = 0.0
    return rng, NestedCorrelation(signal, float(rng.choice([0.0, 0.3, 0.9, 0.999])) if rho is None else rho)


def exact_weights(size, rho):
    """R⁻¹√m to fifty digits."""
    with mp.workdps(50):
        a = [mp.mpf(float(each)) for each in size]
        r = mp_matrix(len(a), len(a))
        for i, x in enumerate(a):
            for j, y in enumerate(a):
                r[i, j] = 1 if i == j else mp.mpf(rho) * min(x, y) / max(x, y)
        return [float(z) for z in mp.lu_solve(r, mp_matrix(a))]


def solved(dependence, v):
    """R⁻¹ v where everybody is present."""
    return dependence.solve(v, np.ones((1, len(v)), dtype=bool))[0]


class TestAlgebra:
    @given(seeds)
    @settings(max_examples=60)
    def test_everything_agrees_with_its_matrix(self, seed):
        rng, nested = some(seed)
        r, n = nested.matrix(), nested.size
        low, high = np.minimum.outer(*[abs(nested.signal)] * 2), np.maximum.outer(*[abs(nested.signal)] * 2)
        signs = np.sign(np.outer(nested.signal, nested.signal))
        expected = nested.rho * signs * low / np.where(high > 0, high, 1.0)
        assert r == pytest.approx(np.where(np.eye(n), 1.0, expected))
        assert np.linalg.eigvalsh(r)[0] > 0
        v, z = rng.normal(size=n), rng.normal(size=(4, n))
        present, brute = rng.random((4, n)) < 0.6, MatrixCorrelation(r)
        assert solved(nested, v) == pytest.approx(np.linalg.solve(r, v), rel=1e-8, abs=1e-10)
        assert nested.times(v) == pytest.approx(r @ v, abs=1e-12)
        assert nested.solve(v, present) == pytest.approx(brute.solve(v, present), rel=1e-8, abs=1e-10)
        ones = np.ones(len(v))
        filled, exact = (Parts(ones, ones, each).expected(z, present) for each in (nested, brute))
        assert filled == pytest.approx(exact, rel=1e-8, abs=1e-10)
        root = nested.correlate(np.eye(n))
        assert root.T @ root == pytest.approx(r, abs=1e-12)
        some_ = rng.permutation(n)[: (n + 1) // 2]
        assert nested.subset(some_).matrix() == pytest.approx(r[np.ix_(some_, some_)])

    @pytest.mark.parametrize("gap", [0.0, 1e-15, 1e-12, 1e-6, 0.1])
    @pytest.mark.parametrize("rho", [0.0, 0.5, 1 - 1e-6])
    def test_ties_and_near_ties_to_the_last_digits(self, gap, rho):
        size = np.array([0.7, 0.7 * (1 + gap), 2.0, 2.0 * (1 + gap), 1.0])
        assert solved(NestedCorrelation(size, rho), size) == pytest.approx(exact_weights(size, rho), rel=1e-6, abs=1e-9)

    @pytest.mark.parametrize("gap", [0.0, 1e-15, 1e-12])
    def test_at_one_the_most_accurate_present_says_all_and_ties_share(self, gap):
        nested = NestedCorrelation(np.array([1.0, 2.0, 2.0 * (1 + gap), 0.5]), 1.0)
        present = np.array([[True] * 4, [True, False, True, True], [True, False, False, True], [False] * 4])
        expected = [[0, 1, 1, 0], [0, 0, 2, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
        assert nested.solve(nested.signal, present) == pytest.approx(np.array(expected), abs=1e-9)

    def test_at_one_weights_without_a_limit_are_refused(self):
        with pytest.raises(PanelError, match="their weights have no limit"):
            solved(NestedCorrelation(np.array([1.0, 1.0]), 1.0), np.array([1.0, 2.0]))

    @pytest.mark.parametrize("rho", [-0.1, 1.1, NAN])
    def test_other_correlations_are_refused(self, rho):
        with pytest.raises(PanelError, match="nested evidence must lie between 0 and 1"):
            NestedCorrelation(np.ones(2), rho)


class TestWeights:
    @given(seeds, st.floats(0, 0.99))
    @settings(max_examples=60)
    def test_weights_lie_between_nothing_and_calibration(self, seed, rho):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 12))
        kappa, m = rng.lognormal(0, 0.5, n), np.round(rng.lognormal(0, 1.5, n), 1) + 0.1
        weights = Panel.from_features(kappa, rho, m, dependence="nested").weights
        assert (weights >= -1e-12).all()
        assert (weights <= kappa * (1 + 1e-12)).all()
        total = Panel.from_features(np.ones(n), rho, m, dependence="nested").weights.sum()
        assert 1 - 1e-9 <= total <= n + 1e-9

    def test_a_unanimous_panel_stays_on_its_side_of_the_prior(self):
        rng = np.random.default_rng(0)
        m = np.exp(rng.normal(0, 0.5, 40))
        panel = Panel.from_features(np.ones(40), 0.6, m, dependence="nested")
        assert panel.pool(np.full(40, 0.7)) > 0.7
        with pytest.warns(match="one correlation of all pairs"):
            common = Panel.from_features(np.ones(40), 0.6, m)
        assert common.weights.min() < 0

    @pytest.mark.parametrize("classes", [2, 3])
    def test_cells_pool_as_the_array_does(self, classes):
        rng = np.random.default_rng(classes)
        q = rng.dirichlet(np.ones(classes), (30, 6))
        q[rng.random((30, 6)) < 0.5] = NAN
        q = q[..., 1] if classes == 2 else q
        panel = Panel.from_features(1.0, 0.7, rng.lognormal(0, 1, 6), classes=range(classes), dependence="nested")
        f = Forecasts.from_array(q, experts=panel.names, classes=range(classes))
        prior = 0.4 if classes == 2 else [0.5, 0.3, 0.2]
        assert panel.pool_forecasts(f, prior) == pytest.approx(panel.pool(q, prior), rel=1e-10)

    def test_what_is_not_so_is_refused(self):
        with pytest.raises(PanelError, match="dependence must be one of common, nested, and it is 'other'"):
            Panel.from_features([1, 1], 0.5, dependence="other")
        with pytest.raises(PanelError, match="nested evidence has one correlation"):
            Panel.from_features([1, 1], np.eye(2), dependence="nested")


class TestElsewhere:
    def test_simulated_forecasts_have_the_correlation(self):
        panel = Panel.from_features(1.0, 0.6, accuracy=[2.0, 1.0, 0.5], dependence="nested")
        x, y = panel.simulate(40_000, seed=1)
        residual = np.log(x / (1 - x)) - np.where(y == 1, 1, -1)[:, None] * panel.contrast
        assert np.corrcoef(residual.T) == pytest.approx(panel.correlation, abs=0.02)
