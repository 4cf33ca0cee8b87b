"""Maximum likelihood with missing forecasts: against brute force, the textbook's EM, least squares and simulation."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize

from opinionpool.errors import LearningError
from opinionpool.estimation import averages as estimates, em
from opinionpool.estimation.em import maximum_likelihood
from opinionpool.estimation.rows import ForecastRows
from opinionpool.forecasts import Forecasts
from opinionpool.learning.learn import learn
from opinionpool.logodds import expit, metric, signature


def sample(seed, t=120, n=3, k=2, missing=0.4, events_of_each=1):
    """Log-ratios (t, n, k - 1) with missing cells, outcomes and weights; runs of rows may have the same pattern."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, 3 * n))
    sigma = root @ root.T / (3 * n) + 0.3
    y = rng.integers(0, k, t)
    noise = np.einsum("nm,tmk->tnk", np.linalg.cholesky(sigma), rng.normal(size=(t, n, k))) / np.sqrt(2)
    level = rng.normal(size=(n, k)) * 0.3 + rng.uniform(0.4, 1.2, n)[:, None] * np.eye(k)[y][:, None, :] + noise
    x = level[..., 1:] - level[..., :1]
    absent = np.repeat(rng.random((-(-t // events_of_each), n)) < missing, events_of_each, axis=0)[:t]
    x[absent] = np.nan
    return x, y, rng.integers(1, 3, t).astype(float)


def rows_of(x, y, weight=None):
    return ForecastRows.of_array(x, y, np.ones(len(y)) if weight is None else weight)


def fit(evidence):
    n = evidence.marginals.count.shape[1]
    means = estimates.sample_means(evidence)
    return maximum_likelihood(evidence, means.bias, means.square > 0, tuple(f"e{i}" for i in range(n)))


def log_likelihood(x, y, weight, bias, contrast, sigma):
    """From the density of the stacked log-ratios of each event; those by the same experts together."""
    k = x.shape[2] + 1
    between = np.linalg.inv(metric(k))
    answered = ~np.isnan(x[..., 0])
    total = 0.0
    for seen in np.unique(answered[answered.any(axis=1)], axis=0):
        rows = (answered == seen).all(axis=1)
        off = x[rows] - bias - contrast[:, None] * signature(k)[y[rows], None]
        off, w = off[:, seen].reshape(rows.sum(), -1), weight[rows]
        cov = np.kron(sigma[np.ix_(seen, seen)], between)
        total -= (w @ (np.linalg.slogdet(cov)[1] + (off * np.linalg.solve(cov, off.T).T).sum(axis=1))) / 2
        total += w.sum() * seen.sum() * np.linalg.slogdet(between)[1] / 2
    return total


class TestMaximum:
    @pytest.mark.parametrize("seed", [0, 1])
    def test_against_brute_force(self, seed):
        x, y, w = sample(seed, t=60, n=3)
        found = fit(rows_of(x, y, w))
        events = w[~np.isnan(x[..., 0]).all(axis=1)].sum()

        def loss(point):
            root = np.zeros((3, 3))
            root[np.tril_indices(3)] = point[6:]
            return -log_likelihood(x, y, w, point[:3, None], point[3:6], root @ root.T)

        start = np.concatenate([np.zeros(3), np.ones(3), np.eye(3)[np.tril_indices(3)]])
        best = minimize(loss, start, method="BFGS", options={"gtol": 1e-5})
        root = np.zeros((3, 3))
        root[np.tril_indices(3)] = best.x[6:]
        assert found.fit.log_likelihood[-1] >= -best.fun - 1e-7
        assert found.bias[:, 0] == pytest.approx(best.x[:3], abs=1e-4)
        assert found.contrast == pytest.approx(best.x[3:6], abs=1e-4)
        assert found.covariance == pytest.approx(root @ root.T * events / (events - 2), abs=1e-3)

    @given(st.integers(0, 10**6), st.integers(2, 3))
    @settings(max_examples=15, deadline=None)
    def test_likelihood_never_falls(self, seed, k):
        x, y, w = sample(seed, t=60, k=k, missing=0.3)
        values = np.array(fit(rows_of(x, y, w)).fit.log_likelihood)
        assert (np.diff(values) >= -em.ROUNDING * (1 + np.abs(values[1:]))).all()


class TestThroughLearning:
    def test_full_structure_with_missing_cells(self):
        x, y, _ = sample(8, t=300)
        found = learn(Forecasts.from_array(expit(x[..., 0]), y), prior=0.5, structure="full", beliefs=None)
        direct = fit(rows_of(np.clip(x, *np.log([1e-4 / (1 - 1e-4), (1 - 1e-4) / 1e-4])), y))
        assert found.panel.covariance == pytest.approx(direct.covariance, abs=1e-7)
        assert found.panel.weights == pytest.approx(2 * np.linalg.solve(direct.covariance, direct.contrast), abs=1e-6)
        assert [note.code for note in found.notes] == ["maximum-likelihood"]
        same = learn(Forecasts.from_array(expit(x[..., 0]), y), prior=0.5, beliefs=None)
        assert same.structure == "full"
        assert same.weights == pytest.approx(found.weights)


class TestWhatTheDataCannotSay:
    def test_pairs_who_hardly_met(self):
        x, y, _ = sample(12, t=200)
        x[:98, 0], x[100:, 1] = np.nan, np.nan
        x[98:100] = 0.3
        with pytest.raises(LearningError, match=r"at least 4 resolved events .* met only on 2"):
            fit(rows_of(x, y))

    def test_two_who_say_the_same(self):
        x, y, _ = sample(13, t=100)
        x[:, 1] = np.where(np.isnan(x[:, 0]), x[:, 1], x[:, 0])
        with pytest.raises(LearningError, match=r"rises towards a singular one; 'e0' and 'e1' .* of 1.000 on"):
            fit(rows_of(x, y))

    def test_thousands(self):
        rows = ForecastRows(np.array([0, 1]), np.array([0, 2500]), np.ones((2, 1)), np.array([0, 1]), np.ones(2), 2501)
        with pytest.raises(LearningError, match="up to 2000 experts, and there are 2501"):
            fit(rows)

    def test_a_ridge_that_ends_nowhere(self):
        """Steps along it are short, and EM alone needs thousands."""
        x, y, w = sample(3, t=200, n=6, missing=0.6)
        with pytest.raises(LearningError, match="rises towards a singular one"):
            fit(rows_of(x, y, w))
