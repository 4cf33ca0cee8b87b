"""Maximum likelihood with missing forecasts: against brute force, the textbook's EM, least squares and simulation."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize

from opinionpool.errors import LearningError
from opinionpool.estimation import averages as estimates, em
from opinionpool.estimation.em import NormalRegression, maximum_likelihood
from opinionpool.estimation.rows import ForecastRows
from opinionpool.estimation.statistics import Statistics
from opinionpool.forecasts import Forecasts
from opinionpool.learning.learn import learn
from opinionpool.logodds import expit, metric, signature, whitened
from opinionpool.model.panel import Panel


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


def moments_of(x, y, weight=None):
    names = [f"e{i}" for i in range(x.shape[1])]
    return Statistics.empty(names, x.shape[2] + 1).add(x, y, weight)


def fit(evidence):
    n = evidence.marginals.count.shape[1]
    means = estimates.sample_means(evidence)
    return maximum_likelihood(evidence, means.bias, means.square > 0, tuple(f"e{i}" for i in range(n)))


def regression(evidence, k=2):
    """Regressors of each outcome and whitened class: an intercept of the class, and the signature."""
    shape = whitened(signature(k))
    z = np.concatenate([np.tile(np.eye(k - 1), (k, 1)), shape.reshape(-1, 1)], axis=1)
    return NormalRegression.of(evidence, np.arange(evidence.marginals.count.shape[1]), z)


def model(coefficients, sigma):
    return np.concatenate([coefficients, sigma], axis=1)


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


def textbook_step(x, y, bias, contrast, sigma):
    """One step of EM for two classes as in Little and Rubin: fill in, and add the conditional covariance."""
    t, n = x.shape
    design = np.column_stack([np.ones(t), 2.0 * y - 1])
    full, extra = np.empty((t, n)), np.zeros((n, n))
    for i, row in enumerate(x):
        mean = bias + contrast * design[i, 1]
        o, m = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
        slope = sigma[np.ix_(m, o)] @ np.linalg.inv(sigma[np.ix_(o, o)])
        full[i, o] = row[o]
        full[i, m] = mean[m] + slope @ (row[o] - mean[o])
        extra[np.ix_(m, m)] += sigma[np.ix_(m, m)] - slope @ sigma[np.ix_(o, m)]
    coefficients = np.linalg.lstsq(design, full, rcond=None)[0]
    off = full - design @ coefficients
    return coefficients[0], coefficients[1], (off.T @ off + extra) / t


class TestLikelihood:
    @pytest.mark.parametrize(("k", "events_of_each"), [(2, 1), (2, 40), (3, 1), (4, 40)])
    def test_against_a_loop_over_events(self, k, events_of_each):
        """Whether patterns repeat or not."""
        x, y, w = sample(1, k=k, events_of_each=events_of_each)
        bias, contrast = np.random.default_rng(0).normal(size=(3, k - 1)), np.array([0.5, 1.0, 0.2])
        sigma = np.array([[1.0, 0.3, 0.2], [0.3, 2.0, 0.1], [0.2, 0.1, 0.7]])
        at = model(np.column_stack([whitened(bias), contrast]), sigma)
        found = regression(rows_of(x, y, w), k).sums(at)[2]
        assert found == pytest.approx(log_likelihood(x, y, w, bias, contrast, sigma))

    @pytest.mark.parametrize("k", [2, 3])
    def test_sums_are_the_gradient(self, k):
        x, y, w = sample(2, k=k)
        held, rng = regression(rows_of(x, y, w), k), np.random.default_rng(3)
        coefficients, sigma = rng.normal(size=(3, k)), np.diag([1.0, 2.0, 0.7]) + 0.4
        curvature, score, _ = held.sums(model(coefficients, sigma))
        change, turn = rng.normal(size=(3, 3)), rng.normal(size=(3, k))
        change = change + change.T
        h = 1e-5
        ends = [held.sums(model(coefficients + s * h * turn, sigma + s * h * change))[2] for s in (1, -1)]
        slope = (score * turn).sum() + (curvature * change).sum() / 2
        assert (ends[0] - ends[1]) / (2 * h) == pytest.approx(slope, rel=1e-6)

    @given(st.integers(0, 10**6), st.sampled_from([2, 3]), st.sampled_from([1, 25]))
    @settings(max_examples=20, deadline=None)
    def test_rows_and_statistics_agree(self, seed, k, events_of_each):
        x, y, w = sample(seed, t=60, n=5, k=k, events_of_each=events_of_each)
        rng = np.random.default_rng(seed)
        at = model(rng.normal(size=(5, k)), np.diag(rng.uniform(0.5, 2, 5)) + 0.3)
        one, two = (regression(each, k) for each in (rows_of(x, y, w), moments_of(x, y, w)))
        for a, b in zip(one.sums(at), two.sums(at), strict=True):
            assert a == pytest.approx(b, rel=1e-9, abs=1e-9)
        seen = ~np.isnan(x[..., 0])
        assert one.overlaps() == pytest.approx((k - 1) * (seen * w[:, None]).T @ seen)

    def test_a_step_is_the_textbooks(self):
        x, y, _ = sample(5, t=80)
        bias, contrast, sigma = np.zeros(3), np.ones(3), np.eye(3) + 0.2
        heard = ~np.isnan(x[..., 0]).all(axis=1)
        held, at = regression(rows_of(x, y)), model(np.column_stack([bias, contrast]), sigma)
        for _ in range(5):
            at = held.step(at, *held.sums(at)[:2])
            bias, contrast, sigma = textbook_step(x[heard, :, 0], y[heard], bias, contrast, sigma)
            assert at == pytest.approx(model(np.column_stack([bias, contrast]), sigma), rel=1e-10)


def steps_alone(held, limit):
    """The model after so many of EM's steps, and its log-likelihood."""
    at = held.start()
    for _ in range(limit):
        at = held.step(at, *held.sums(at)[:2])
    return at, held.sums(at)[2]


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

    def test_accelerated_and_plain_steps_end_alike(self):
        x, y, w = sample(6, t=120, n=3, missing=0.4)
        held = regression(rows_of(x, y, w))
        found, (slow, value) = held.fit(), steps_alone(held, 2000)
        assert len(found.log_likelihood) < 100
        assert found.log_likelihood[-1] == pytest.approx(value, abs=1e-8)
        assert model(found.coefficients, found.covariance) == pytest.approx(slow, abs=1e-6)

    @given(st.integers(0, 10**6), st.integers(2, 3))
    @settings(max_examples=15, deadline=None)
    def test_likelihood_never_falls(self, seed, k):
        x, y, w = sample(seed, t=60, k=k, missing=0.3)
        values = np.array(fit(rows_of(x, y, w)).fit.log_likelihood)
        assert (np.diff(values) >= -em.ROUNDING * (1 + np.abs(values[1:]))).all()

    @given(st.integers(0, 10**6), st.integers(2, 3))
    @settings(max_examples=15, deadline=None)
    def test_complete_data_give_the_sample_averages(self, seed, k):
        """The routes by rows, by moments, and by maximum likelihood are one."""
        x, y, w = sample(seed, t=40, k=k, missing=0.0)
        rows = rows_of(x, y, w)
        means = estimates.sample_means(rows)
        parts, _ = estimates.full_parts(rows, means)
        covariance = parts.dependence.matrix() * np.outer(parts.spread, parts.spread)
        for evidence in (rows, moments_of(x, y, w)):
            found = fit(evidence)
            assert found.covariance == pytest.approx(covariance, rel=1e-10, abs=1e-10)
            assert found.contrast == pytest.approx(means.contrast, rel=1e-10, abs=1e-10)
            assert found.bias == pytest.approx(means.bias, rel=1e-10, abs=1e-10)

    def test_moments_and_rows_give_the_same(self):
        x, y, w = sample(7, k=3)
        by_rows, by_moments = fit(rows_of(x, y, w)), fit(moments_of(x, y, w))
        assert by_rows.covariance == pytest.approx(by_moments.covariance, abs=1e-9)
        assert by_rows.bias == pytest.approx(by_moments.bias, abs=1e-9)

    def test_where_repeated_patterns_do_not_have_every_pair(self):
        """Some events have one forecast, and those of five forecasts do not repeat who made them."""
        x, y, _ = sample(3, t=700, n=8, missing=0.0)
        rng = np.random.default_rng(0)
        for t in range(700):
            x[t, rng.permutation(8)[:3] if t < 300 else np.arange(8) != t % 8] = np.nan
        # EM's own steps come near it slowly, from below.
        value = steps_alone(regression(rows_of(x, y)), 400)[1]
        assert 0 <= fit(rows_of(x, y)).fit.log_likelihood[-1] - value < 0.1

    def test_recovers_what_was_simulated_within_its_errors(self):
        """Estimates over 40 panels are centred."""
        truth = Panel([1.0, 0.6, 0.8], [[2.0, 1.0, 0.5], [1.0, 1.5, 0.3], [0.5, 0.3, 1.0]], bias=[0.2, 0.0, -0.3])
        off = []
        for seed in range(40):
            x, y = truth.simulate(400, seed=seed)
            rng = np.random.default_rng(seed)
            ratios = np.log(x / (1 - x))[..., None]
            ratios[rng.random(x.shape) < 0.5] = np.nan
            found = fit(rows_of(ratios, y))
            off.append([*(found.covariance - truth.covariance).ravel(), *(found.contrast - truth.contrast)])
        assert (np.abs(np.mean(off, axis=0)) < 4 * np.std(off, axis=0) / np.sqrt(40)).all()

    def test_that_it_takes_long_is_said(self, monkeypatch):
        x, y, _ = sample(8)
        assert "seconds" not in fit(rows_of(x, y)).fit.note.text
        monkeypatch.setattr(em, "LONG", 0.0)
        assert "seconds for 7 different sets of experts" in fit(rows_of(x, y)).fit.note.text


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

    def test_prior_is_taken_off_the_bias(self):
        x, y, _ = sample(9, t=300, k=3)
        full = np.exp(np.concatenate([np.zeros((*x.shape[:2], 1)), x], axis=2))
        f = Forecasts.from_array(full / full.sum(axis=2, keepdims=True), y, classes=(0, 1, 2))
        even = learn(f, prior=[1 / 3] * 3, structure="full")
        other = learn(f, prior=[0.2, 0.3, 0.5], structure="full")
        shift = np.log([0.2, 0.3, 0.5])
        assert other.panel.bias == pytest.approx(even.panel.bias - (shift - shift.mean()), abs=1e-6)
        assert other.weights == pytest.approx(even.weights, abs=1e-6)

    def test_a_silent_expert_leaves_the_others_alone(self):
        x, y, _ = sample(10, t=200)
        wide = np.concatenate([x[..., 0], np.full((200, 1), np.nan)], axis=1)
        three = learn(Forecasts.from_array(expit(x[..., 0]), y), prior=0.5, structure="full")
        four = learn(Forecasts.from_array(expit(wide), y), prior=0.5, structure="full")
        assert four.weights == pytest.approx([*three.weights, 0.0], abs=1e-7)

    def test_cells_in_any_order_within_an_event(self):
        """And events without a forecast, so that the others are complete."""
        x, y, _ = sample(15, t=60, missing=0.0)
        x[::7] = np.nan
        f = Forecasts.from_array(expit(x[..., 0]), y)
        backwards = f.select_experts(f.experts[::-1])
        a, b = (learn(each, prior=0.5, structure="full") for each in (f, backwards))
        assert (np.diff(backwards.expert_index) < 0).sum() > (np.diff(f.expert_index) < 0).sum()
        assert a.panel.covariance == pytest.approx(b.panel.covariance[::-1, ::-1], rel=1e-12)


class TestWhatTheDataCannotSay:
    def test_experts_who_never_met(self):
        x, y, _ = sample(11, t=200)
        x[:100, 0], x[100:, 1] = np.nan, np.nan
        with pytest.raises(LearningError, match=r"'e0' and 'e1' met never; use structure='common'"):
            fit(rows_of(x, y))

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
