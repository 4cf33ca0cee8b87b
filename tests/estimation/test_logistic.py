"""Logistic regression: values, separation, what the data leave open, invariances, and modes of its likelihood."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import expit, logsumexp

from opinionpool.estimation import likelihood, logistic
from opinionpool.estimation.likelihood import Design, value
from opinionpool.estimation.logistic import logistic_fit
from opinionpool.estimation.newton import Near, Prior, modes_near, posterior_modes
from opinionpool.forecasts import Forecasts
from opinionpool.pools.fit import fit_pool


def binary(seed, events, experts, signal=0.5):
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 2, events)
    shared = rng.normal(size=(events, 1))
    return signal * (2 * s[:, None] - 1) + 0.6 * shared + rng.normal(size=(events, experts)), s


def three_classes(seed, events, experts):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(events, experts, 2))
    ratios = np.column_stack([np.zeros(events), 0.5 * x.sum(axis=1)])
    return x, (ratios + rng.gumbel(size=ratios.shape)).argmax(axis=1)


def loss(coefficients, x, s, offset=0.0, frequency=None):
    """Total loss, written out anew: weights first, then the intercepts."""
    x = x if x.ndim == 3 else x[..., None]
    n = x.shape[1]
    ratios = np.einsum("tnk,n->tk", x, coefficients[:n]) + coefficients[n:] + offset
    full = np.column_stack([np.zeros(len(x)), ratios])
    lost = logsumexp(full, axis=1) - full[np.arange(len(x)), s]
    return lost @ (np.ones(len(x)) if frequency is None else frequency)


def gain_rows(x, s, intercept):
    """What every outcome gains on every other class, per coefficient."""
    x = x if x.ndim == 3 else x[..., None]
    t, n, free = x.shape
    z = np.zeros((t, free + 1, n + free))
    z[:, 1:, :n] = x.transpose(0, 2, 1)
    z[:, np.arange(1, free + 1), np.arange(n, n + free)] = 1.0
    z = z if intercept else z[..., :n]
    rows = (z[np.arange(t), s][:, None] - z).reshape(t * (free + 1), -1)
    return rows[(rows != 0).any(axis=1)]


def separated_by_programme(rows):
    """Linear programme of Konis (2007): the largest total gain within a box, none negative."""
    if not len(rows):
        return False
    found = linprog(-rows.sum(axis=0), A_ub=-rows, b_ub=np.zeros(len(rows)), bounds=[(-1, 1)] * rows.shape[1])
    return -found.fun > 1e-7


def log_ratios(fit, x, offset=0.0):
    return np.einsum("tnk,n->tk", x if x.ndim == 3 else x[..., None], fit.weights) + fit.intercept + offset


class TestValues:
    @pytest.mark.parametrize(("penalty", "intercept_penalty"), [(2.0, 0.0), (0.0, 2.0), (2.0, 3.0)])
    @pytest.mark.parametrize("experts", [3, 70])
    def test_penalties(self, penalty, intercept_penalty, experts):
        x, s = binary(4, 60, experts, signal=0.1)
        fit = logistic_fit(x, s, penalty=penalty, center=-0.3, intercept_penalty=intercept_penalty)
        if fit.separated:
            assert (experts, penalty) == (70, 0.0)
            penalty = 70.0
        held = np.append(np.full(experts, penalty), intercept_penalty)
        center = np.append(np.full(experts, -0.3), 0.0)
        theta = np.append(fit.weights, fit.intercept)
        one = np.column_stack([x, np.ones(60)])
        slope = one.T @ (expit(one @ theta) - s) + held * (theta - center)
        assert slope == pytest.approx(0, abs=1e-9)


class TestStability:
    @pytest.mark.parametrize("scale", [1e-3, 1e3])
    def test_scale(self, scale):
        x, s = binary(6, 300, 3)
        plain, scaled = logistic_fit(x, s), logistic_fit(scale * x, s)
        assert scaled.converged
        assert scaled.weights * scale == pytest.approx(plain.weights, rel=1e-5)

    def test_steep_but_not_separated(self):
        x = np.linspace(-5, 5, 100)[:, None]
        s = (x[:, 0] > 0).astype(int)
        x[49], x[50] = 1e-4, -1e-4
        fit = logistic_fit(x, s)
        assert fit.converged
        assert not fit.separated
        assert fit.weights.item() > 10

    def test_blocks_change_nothing(self, monkeypatch):
        x, s = three_classes(9, 500, 3)
        whole = logistic_fit(x, s, sample_weight=np.arange(500) % 3)
        monkeypatch.setattr(likelihood, "_BLOCK", 1 << 8)
        monkeypatch.setattr(likelihood, "_TERMS", 1 << 8)
        parts = logistic_fit(x, s, sample_weight=np.arange(500) % 3)
        assert parts.weights == pytest.approx(whole.weights, abs=1e-12)

    def test_a_first_guess_changes_nothing(self, monkeypatch):
        x, s = binary(10, 40_000, 3)
        x = np.column_stack([x, np.zeros(len(x))])
        x[1, 3], x[3, 3] = 1.0, (1.0 if s[1] != s[3] else -1.0)  # among the events that a sample leaves out
        plain = [logistic_fit(x, s).weights, logistic_fit(x[:, :3], s).weights]
        monkeypatch.setattr(logistic, "_MANY", 4000)
        guessed = [logistic_fit(x, s).weights, logistic_fit(x[:, :3], s).weights]
        for one, other in zip(plain, guessed, strict=True):
            assert one == pytest.approx(other, abs=1e-9)

    def test_many_classes(self):
        """An intercept for each of many classes, against the slope of the loss."""
        rng = np.random.default_rng(0)
        x, s, offset = rng.normal(size=(200, 2, 17)), rng.integers(18, size=200), rng.normal(size=(200, 17))
        fit = logistic_fit(x, s, offset, penalty=1.0, center=0.0, intercept_penalty=1.0)
        full = np.column_stack([np.zeros(200), log_ratios(fit, x, offset)])
        p = np.exp(full - logsumexp(full, axis=1, keepdims=True))[:, 1:]
        surprise = p - (s[:, None] == np.arange(1, 18))
        assert np.einsum("tnk,tk->n", x, surprise) + fit.weights == pytest.approx(0, abs=1e-9)
        pulled = 2 * (fit.intercept - fit.intercept.sum() / 18)
        assert surprise.sum(axis=0) + pulled == pytest.approx(0, abs=1e-9)

    def test_hundreds_of_classes(self):
        rng = np.random.default_rng(2)
        q, y = rng.dirichlet(np.ones(200), size=(4, 1)), rng.integers(200, size=4)
        learned = fit_pool("log", Forecasts.from_array(q, y, classes=range(200)))
        assert learned.pool(q).sum(axis=1) == pytest.approx(1.0)


class TestSeparation:
    def test_the_rule_is_the_penalty_that_it_says(self):
        x, s = binary(12, 10, 12)
        fit = logistic_fit(x, s)
        assert fit.separated
        same = logistic_fit(x, s, penalty=12.0, center=1 / 12, intercept_penalty=1.0)
        assert not same.separated
        assert same.weights == pytest.approx(fit.weights, abs=1e-7)

    def test_one_event_without_intercept(self):
        assert logistic_fit([[0.5]], [1], intercept=False).separated
        assert not logistic_fit([[0.0]], [1], intercept=False).separated

    def test_a_penalty_where_it_is_needed_prevents_it(self):
        x, s = binary(15, 300, 2)
        x = np.column_stack([x, np.zeros(300)])
        x[7, 2] = 1.5 * (2 * s[7] - 1)
        fit = logistic_fit(x, s, penalty=1.0)
        assert fit.converged
        assert not fit.separated
        assert logistic_fit(x, s, intercept_penalty=1.0).separated
        assert logistic_fit(x, np.ones(300), penalty=1.0).separated
        assert not logistic_fit(x, np.ones(300), penalty=1.0, intercept_penalty=1.0).separated

    @pytest.mark.parametrize("kind", ["normal", "ties", "silent", "scales", "clones", "signs"])
    def test_linear_programme(self, kind):
        rng = np.random.default_rng(sum(map(ord, kind)))
        seen = set()
        for _ in range(60):
            t, n, k = rng.integers(1, 40), rng.integers(1, 7), rng.choice([2, 2, 3])
            x = rng.normal(size=(t, n, k - 1))
            signal = rng.choice([0, 1, 5])
            latent = np.column_stack([np.zeros(t), signal * x.sum(axis=1)]) + rng.gumbel(size=(t, k))
            s = latent.argmax(axis=1)
            x = {
                "normal": lambda x: x,
                "ties": np.round,
                "silent": lambda x: x * (rng.random((len(x), x.shape[1], 1)) < 0.2),
                "scales": lambda x: x * 10 ** rng.uniform(-3, 3, size=(1, x.shape[1], 1)),
                "clones": lambda x: np.concatenate([x, x[:, :1], -x[:, -1:]], axis=1),
                "signs": np.sign,
            }[kind](x)
            intercept = bool(rng.integers(2))
            expected = separated_by_programme(gain_rows(x, s, intercept))
            fit = logistic_fit(x, s, intercept=intercept)
            assert fit.separated == expected
            assert fit.converged
            assert np.abs(fit.weights).max() < 1e7
            seen.add(expected)
        assert seen == {True, False}

    def test_surprising_priors(self):
        rng = np.random.default_rng(23)
        seen = set()
        for _ in range(60):
            t, n, k = rng.integers(1, 30), rng.integers(1, 4), rng.choice([2, 3])
            x = np.round(rng.normal(size=(t, n, k - 1)) * 3, 1) * (rng.random((t, n, 1)) < 0.3)
            s, frequency = rng.integers(0, k, t), rng.integers(0, 3, t)
            fit = logistic_fit(x, s, 6 * rng.normal(size=(t, k - 1)), sample_weight=frequency)
            kept = frequency > 0
            expected = not kept.any() or separated_by_programme(gain_rows(x[kept], s[kept], True))
            assert fit.separated == expected
            assert fit.converged
            assert np.abs(fit.weights).max() < 1e4
            seen.add(expected)
        assert seen == {True, False}

    @pytest.mark.parametrize("eps", [1e-1, 1e-3, 1e-6])
    def test_a_slight_overlap_is_no_separation(self, eps):
        for slack, expected in ((eps, True), (0.0, True), (-eps, False)):
            rows = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0 + slack]])
            assert logistic_fit(rows, np.ones(3), intercept=False).separated == expected

    def test_many_events_of_which_a_few_overlap(self, monkeypatch):
        """More gains than a linear programme is given at a time."""
        rng = np.random.default_rng(5)
        x = rng.normal(size=(3000, 4))
        s = (x @ [1.0, 2.0, 0.5, -1.0] > 0.3).astype(int)
        monkeypatch.setattr(logistic, "_GAINS", 100)
        assert logistic_fit(x, s).separated
        edge = np.abs(x @ [1.0, 2.0, 0.5, -1.0] - 0.3).argsort()[:8]
        for events in (edge[:1], edge):
            other = s.copy()
            other[events] = 1 - other[events]
            assert logistic_fit(x, other).separated == separated_by_programme(gain_rows(x, other, True))


class TestUndetermined:
    def test_clones_and_complements_share(self):
        x, s = binary(17, 80, 3)
        plain = logistic_fit(x, s)
        fit = logistic_fit(np.column_stack([x, x[:, 0], -x[:, 1]]), s)
        half = plain.weights / 2
        expected = [half[0], half[1], plain.weights[2], half[0], -half[1]]
        assert fit.weights == pytest.approx(expected, abs=1e-7)
        assert fit.intercept == pytest.approx(plain.intercept, abs=1e-7)
        assert fit.converged

    def test_clones_of_many_events(self, monkeypatch):
        x, s = binary(21, 4000, 2)
        monkeypatch.setattr(logistic, "_MANY", 2000)
        plain, fit = logistic_fit(x, s), logistic_fit(np.column_stack([x, x.sum(axis=1)]), s)
        assert fit.weights[:2] + fit.weights[2] == pytest.approx(plain.weights, abs=1e-7)
        spread = np.append(x, x.sum(axis=1, keepdims=True), axis=1).std(axis=0)
        undetermined = np.array([1, 1, -1]) * spread
        assert (fit.weights * spread) @ undetermined == pytest.approx(0, abs=1e-6)


def drawn(t=60, n=3, classes=3, features=0, seed=0):
    """Random events; the coefficients of two features have a basis."""
    rng = np.random.default_rng(seed)
    d = classes - 1
    offset = rng.normal(size=(d, t))
    return Design(
        rng.normal(size=(n, d, t)),
        rng.normal(size=(features, t)),
        offset,
        rng.integers(0, classes, t),
        rng.integers(1, 3, t).astype(float),
        basis=rng.normal(size=(d, d)) if features == 2 else None,
    )


def loss_of(design, theta):
    """The loss, event by event, without any of what the module does."""
    d, total = design.columns.shape[1], 0.0
    own = theta[: len(design.features) * d].reshape(-1, d)
    own = own if design.basis is None else own @ design.basis
    for t, outcome in enumerate(design.outcomes):
        ratios = design.offset[:, t] + own.T @ design.features[:, t] + theta[own.size :] @ design.columns[..., t]
        full = np.append(0.0, ratios)
        total += design.weight[t] * (np.log(np.exp(full).sum()) - full[outcome])
    return total


def slopes(function, theta, step=1e-5):
    ends = [theta + sign * step * each for each in np.eye(len(theta)) for sign in (1, -1)]
    found = np.array([function(end) for end in ends])
    return (found[::2] - found[1::2]) / (2 * step)


@pytest.mark.parametrize("features", [0, 1, 2])
@pytest.mark.parametrize("classes", [2, 3, 5])
class TestValue:
    def test_is_the_loss_with_its_derivatives(self, classes, features):
        design = drawn(classes=classes, features=features)
        theta = np.random.default_rng(1).normal(size=(2, design.size))
        found = value(design, theta)
        for i, each in enumerate(theta):
            assert found.loss[i] == pytest.approx(loss_of(design, each), rel=1e-12)
            assert found.gradient[i] == pytest.approx(slopes(lambda at: loss_of(design, at), each), abs=1e-6)
            bent = slopes(lambda at: value(design, at[None]).gradient[0], each)
            assert found.hessian[i] == pytest.approx(bent, abs=1e-6)

    def test_blocks_change_nothing(self, monkeypatch, classes, features):
        design = drawn(t=300, classes=classes, features=features)
        theta = np.random.default_rng(1).normal(size=(2, design.size))
        whole = value(design, theta)
        monkeypatch.setattr(likelihood, "_BLOCK", 1)
        for one, other in zip(value(design, theta), whole, strict=True):
            assert one == pytest.approx(other, rel=1e-12)


class TestModes:
    @pytest.mark.parametrize("far", [0.1, 3.0])
    @pytest.mark.parametrize("classes", [2, 3])
    def test_near_another_point_are_the_same(self, classes, far):
        """From quadratic functions about points that are near or far, with priors that leave some directions known."""
        design, rng = drawn(30, 4, classes), np.random.default_rng(6)
        mean, root = rng.normal(size=(12, 4)), 2.0 * rng.normal(size=(12, 4, 3))
        plain = posterior_modes(design, Prior(mean, root))
        at = value(design, far * rng.normal(size=(1, 4)))
        bent, covariance = at.hessian[0], np.empty((12, 4, 4))
        for i in range(12):
            covariance[i] = root[i] @ np.linalg.solve(np.eye(3) + root[i].T @ bent @ root[i], root[i].T)
        off = far * rng.normal(size=(12, 3))
        # Only Λ's products with what the root reaches matter.
        pull = np.array([np.linalg.pinv(each.T) @ own for each, own in zip(root, off, strict=True)])
        start = mean + (root @ off[..., None])[..., 0]
        found = modes_near(design, Near(start, pull, covariance.copy(), bent))
        own = found.covariance(np.ones(12, dtype=bool))
        for i, mode in enumerate(plain):
            assert found.theta[i] == pytest.approx(mean[i] + root[i] @ mode.coefficients, abs=1e-8)
            assert own[i] == pytest.approx(root[i] @ np.linalg.inv(mode.precision) @ root[i].T, abs=1e-7)
            assert found.loss[i] == pytest.approx(loss_of(design, found.theta[i]), abs=1e-9)
            size = np.linalg.slogdet(np.eye(3) + root[i].T @ bent @ root[i])[1] / 2
            whole = np.linalg.slogdet(mode.precision)[1] / 2
            assert size + found.half_log_determinant[i] == pytest.approx(whole, abs=1e-7)
