"""The beta-transformed linear pool against other software, and its invariances."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize
from scipy.stats import beta as beta_distribution

from opinionpool.errors import ArgumentError
from opinionpool.pools.beta_linear import beta_fit, beta_transform


def forecasts(seed, events, experts):
    """Calibrated experts of unequal accuracy with correlated errors."""
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 2, events)
    accuracy = np.linspace(0.4, 1.6, experts)
    noise = 0.6 * rng.normal(size=(events, 1)) + 0.8 * rng.normal(size=(events, experts))
    log_odds = (2 * s[:, None] - 1) * accuracy + np.sqrt(2 * accuracy) * noise
    return np.clip(1 / (1 + np.exp(-log_odds)), 1e-4, 1 - 1e-4), s


def loss(p, s, frequency=1.0):
    return -(frequency * np.log(np.where(s == 1, p, 1 - p))).sum()


def pooled(q, weights, a, b):
    """Written out anew, with missing forecasts."""
    here = ~np.isnan(q)
    return beta_distribution.cdf((np.where(here, q, 0) * weights).sum(axis=1) / (here * weights).sum(axis=1), a, b)


class TestTransform:
    @pytest.mark.parametrize("a", [0.05, 1.0, 3.7, 80.0])
    @pytest.mark.parametrize("b", [0.3, 1.0, 12.0])
    def test_many_digits(self, a, b):
        p = np.array([1e-8, 1e-4, 0.2, 0.5, 0.9, 1 - 1e-4])
        with mpmath.workdps(50):
            exact = [float(mpmath.betainc(a, b, 0, mpmath.mpf(float(x)), regularized=True)) for x in p]
        assert beta_transform(p, a, b) == pytest.approx(exact, rel=1e-12, abs=1e-300)

    @pytest.mark.parametrize(("a", "b", "told"), [(0.0, 1.0, "parameter a"), (1.0, np.inf, "b"), (np.nan, 1.0, "a")])
    def test_parameters(self, a, b, told):
        with pytest.raises(ArgumentError, match=told):
            beta_transform([0.5], a, b)


class TestFit:
    def test_maximum_likelihood_of_all(self):
        q, s = forecasts(1, 1500, 3)
        fit = beta_fit(q, s, penalty=0.0)

        def total(x):
            weights = np.exp(np.append(x[2:], 0.0))
            return loss(pooled(q, weights / weights.sum(), *np.exp(x[:2])), s)

        options = {"xatol": 1e-9, "fatol": 1e-10, "maxiter": 5000, "maxfev": 5000}
        best = minimize(total, np.zeros(4), method="Nelder-Mead", options=options)
        weights = np.exp(np.append(best.x[2:], 0.0))
        assert fit.learned
        assert fit.converged
        assert loss(pooled(q, fit.weights, fit.a, fit.b), s) == pytest.approx(best.fun, abs=1e-6)
        assert fit.weights == pytest.approx(weights / weights.sum(), abs=1e-3)
        assert [fit.a, fit.b] == pytest.approx(np.exp(best.x[:2]), rel=1e-3)

    def test_the_penalty_with_missing_forecasts_and_frequencies(self):
        rng = np.random.default_rng(2)
        q, s = forecasts(2, 60, 3)
        q[rng.random(q.shape) < 0.4] = np.nan
        q[:3] = np.nan
        frequency = rng.integers(0, 4, 60)
        counted = (frequency > 0) & ~np.isnan(q).all(axis=1)
        fit = beta_fit(q, s, sample_weight=frequency, weights="learned", penalty=2.0)

        def total(x):
            weights = np.exp(x[2:]) / np.exp(x[2:]).sum()
            p = pooled(q[counted], weights, *np.exp(x[:2]))
            return loss(p, s[counted], frequency[counted]) + x[:2] @ x[:2] - 2 * np.log(weights).mean()

        at = np.log([fit.a, fit.b, *fit.weights])
        best = minimize(total, at + 0.3 * rng.normal(size=5), options={"gtol": 1e-5})
        assert total(at) == pytest.approx(best.fun, abs=1e-7)
        assert fit.converged
        assert fit.learned

    def test_weights_are_learned_from_enough_events(self):
        q, s = forecasts(4, 400, 3)
        first = np.concatenate([np.flatnonzero(s == 1)[:40], np.flatnonzero(s == 0)[:40]])
        assert beta_fit(q[first], s[first]).learned
        few = beta_fit(q[first[1:]], s[first[1:]])
        assert not few.learned
        assert few.weights.tolist() == [1 / 3] * 3
        assert beta_fit(q[first[1:]], s[first[1:]], weights="learned").learned
        assert not beta_fit(q[:, :1], s).learned

    def test_separated(self):
        q = np.array([[0.1], [0.3], [0.6], [0.9]])
        fit = beta_fit(q, [0, 0, 1, 1])
        assert fit.converged
        assert 1 < fit.a < 2
        assert 1 < fit.b < 2
        assert beta_fit(q, [0, 0, 1, 1], penalty=0.0).a > 50


@st.composite
def panels(draw):
    q, s = forecasts(draw(st.integers(0, 2**32 - 1)), draw(st.integers(2, 40)), draw(st.integers(1, 4)))
    missing = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).random(q.shape) < draw(st.sampled_from([0, 0.4]))
    return np.where(missing, np.nan, q), s


class TestProperties:
    @settings(max_examples=40)
    @given(panels())
    def test_always_found_and_finite(self, panel):
        q, s = panel
        fit = beta_fit(q, s, weights="learned")
        assert fit.converged
        assert fit.weights.sum() == pytest.approx(1, abs=1e-12)
        assert fit.weights.min() > 0
        assert 0.02 < fit.a < 50
        assert 0.02 < fit.b < 50


@pytest.mark.parametrize("seed", range(6))
def test_the_transform_is_where_a_general_search_ends_wherever_it_starts(seed):
    q, s = forecasts(seed, 40 + 60 * seed, 1 + seed)
    q = np.where(np.random.default_rng(seed).random(q.shape) < 0.1 * seed, np.nan, q) ** (0.5 + seed / 3)
    even = np.full(q.shape[1], 1.0 / q.shape[1])
    fit, there = beta_fit(q, s, weights=even), ~np.isnan(q).all(axis=1)

    def total(x):
        p = np.clip(pooled(q[there], even, *np.exp(x)), 1e-300, 1 - 1e-16)
        return loss(p, s[there]) + 0.5 * x @ x

    for start in ([0.0, 0.0], [1.5, 1.0], [-1.0, 1.0], [3.0, 3.0]):
        best = minimize(total, start, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-13})
        assert np.log([fit.a, fit.b]) == pytest.approx(best.x, abs=1e-5)
