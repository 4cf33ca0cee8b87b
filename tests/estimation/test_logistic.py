"""Logistic regression: values, separation, what the data leave open, and invariances."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog, minimize
from scipy.special import expit, logsumexp
from sklearn.linear_model import LogisticRegression

from opinionpool.estimation import blockwise as multinomial, logistic as newton
from opinionpool.estimation.blockwise import Likelihood
from opinionpool.estimation.logistic import logistic_fit
from opinionpool.estimation.separation import separating_direction
from opinionpool.logodds import logit


def column(q):
    """Log-odds of one expert."""
    return logit(np.array(q))[:, None]


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


class TestValues:
    def test_closed_form(self):
        fit = logistic_fit(column([0.2] * 4 + [0.8] * 4), [1, 0, 0, 0, 1, 1, 1, 0])
        assert fit.weights == pytest.approx(np.log(3) / np.log(4), abs=1e-8)
        assert fit.intercept == pytest.approx(0, abs=1e-8)
        assert fit.converged
        assert not fit.separated

    def test_no_penalty_by_default(self):
        x, s = column([0.2, 0.3, 0.6, 0.4, 0.7, 0.8, 0.35, 0.65]), [0, 0, 0, 1, 1, 1, 0, 1]
        fit = logistic_fit(x, s)
        assert fit.weights == pytest.approx(2.25860, abs=5e-6)
        assert fit.intercept == pytest.approx(0, abs=1e-8)
        assert expit(fit.log_ratios(column([0.8]))).item() == pytest.approx(0.95816, abs=5e-6)
        assert not fit.penalty.any()
        assert fit.intercept_penalty == 0

    @pytest.mark.parametrize("intercept", [True, False])
    def test_scikit_learn(self, intercept):
        x, s = binary(0, 400, 6)
        fit = logistic_fit(x, s, intercept=intercept)
        peer = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000, fit_intercept=intercept).fit(x, s)
        assert fit.weights == pytest.approx(peer.coef_[0], abs=1e-5)
        assert fit.intercept == pytest.approx(peer.intercept_, abs=1e-5)
        assert fit.gradient_norm <= 1e-8

    def test_offsets_and_frequencies(self):
        rng = np.random.default_rng(1)
        (x, s), offset, frequency = binary(1, 200, 3), rng.normal(size=200), rng.integers(0, 4, 200)
        fit = logistic_fit(x, s, offset, sample_weight=frequency)
        best = minimize(loss, np.zeros(4), args=(x, s, offset[:, None], frequency), options={"gtol": 1e-7})
        assert np.append(fit.weights, fit.intercept) == pytest.approx(best.x, abs=1e-5)

    def test_three_classes(self):
        (x, s), offset = three_classes(2, 300, 4), np.array([0.3, -0.2])
        fit = logistic_fit(x, s, offset)
        best = minimize(loss, np.zeros(6), args=(x, s, offset), options={"gtol": 1e-7})
        assert np.append(fit.weights, fit.intercept) == pytest.approx(best.x, abs=1e-5)
        assert fit.log_ratios(x, offset) == pytest.approx(x.transpose(0, 2, 1) @ fit.weights + fit.intercept + offset)

    def test_recalibration_held_to_the_identity(self):
        x, s = binary(3, 15, 1, signal=2.0)
        fit = logistic_fit(x, s, penalty=1.0, center=1.0, intercept_penalty=1.0)
        best = minimize(lambda c: loss(c, x, s) + 0.5 * ((c[0] - 1) ** 2 + c[1] ** 2), [1.0, 0.0], tol=1e-12)
        assert np.append(fit.weights, fit.intercept) == pytest.approx(best.x, abs=1e-6)
        assert not fit.separated
        nothing = logistic_fit(np.zeros((0, 1)), [], penalty=1.0, center=1.0, intercept_penalty=1.0)
        assert (nothing.weights.item(), nothing.intercept.item(), nothing.separated) == (1.0, 0.0, False)

    def test_penalty_per_expert(self):
        x, s = binary(4, 60, 3)
        penalty, center = np.array([0.0, 2.0, 50.0]), np.array([9.0, 0.5, -0.3])
        fit = logistic_fit(x, s, penalty=penalty, center=center)
        best = minimize(lambda c: loss(c, x, s) + 0.5 * penalty @ (c[:3] - center) ** 2, np.zeros(4), tol=1e-12)
        assert np.append(fit.weights, fit.intercept) == pytest.approx(best.x, abs=1e-5)

    def test_intercept_penalty_is_symmetric_in_the_classes(self):
        x, s = three_classes(5, 40, 2)
        fit = logistic_fit(x, s, penalty=1.0, intercept_penalty=3.0)
        full = np.concatenate([np.zeros((40, 2, 1)), x], axis=2)[:, :, [2, 0, 1]]
        turned = logistic_fit(full[..., 1:] - full[..., :1], (s + 1) % 3, penalty=1.0, intercept_penalty=3.0)
        assert turned.weights == pytest.approx(fit.weights, abs=1e-7)
        a = np.append(0, fit.intercept)[[2, 0, 1]]
        assert turned.intercept == pytest.approx(a[1:] - a[0], abs=1e-7)


class TestStability:
    @pytest.mark.parametrize("scale", [1e-3, 1e3])
    def test_scale(self, scale):
        x, s = binary(6, 300, 3)
        plain, scaled = logistic_fit(x, s), logistic_fit(scale * x, s)
        assert scaled.converged
        assert scaled.weights * scale == pytest.approx(plain.weights, rel=1e-5)

    def test_far_from_zero(self):
        x, s = binary(7, 300, 3)
        plain, moved = logistic_fit(x, s), logistic_fit(x + 1e3, s)
        assert moved.converged
        assert moved.weights == pytest.approx(plain.weights, abs=1e-7)
        assert moved.intercept == pytest.approx(plain.intercept - 1e3 * plain.weights.sum(), abs=1e-5)

    def test_rare_outcome(self):
        x, _ = binary(8, 20_000, 4)
        s = np.zeros(20_000, dtype=int)
        s[:6] = 1
        fit = logistic_fit(x, s)
        assert fit.converged
        assert not fit.separated
        assert expit(fit.log_ratios(x)).mean() == pytest.approx(6 / 20_000, rel=1e-3)

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
        monkeypatch.setattr(multinomial, "_BLOCK_BYTES", 1 << 11)
        parts = logistic_fit(x, s, sample_weight=np.arange(500) % 3)
        assert parts.weights == pytest.approx(whole.weights, abs=1e-12)

    def test_the_first_guess_changes_little_but_time(self, monkeypatch):
        x, s = binary(10, 40_000, 3)
        x = np.column_stack([x, np.zeros(len(x))])
        x[1, 3], x[3, 3] = 1.0, (1.0 if s[1] != s[3] else -1.0)  # among the events that a sample leaves out
        plain, fewer = logistic_fit(x, s), logistic_fit(x[:, :3], s)
        monkeypatch.setattr(newton, "_SAMPLE", 4000)
        assert logistic_fit(x, s).weights == pytest.approx(plain.weights, abs=1e-6)
        guessed = logistic_fit(x[:, :3], s)
        assert guessed.weights == pytest.approx(fewer.weights, abs=1e-6)
        assert guessed.iterations < fewer.iterations

    def test_derivatives(self):
        x, s = three_classes(11, 50, 2)
        data = Likelihood.of(x, s, np.array([[0.1, 0.4]]), np.linspace(0.5, 2, 50), intercept=True)
        at, h = np.array([0.3, -0.2, 0.5, 0.1]), 1e-5
        value = data.value(at)
        for i, direction in enumerate(h * np.eye(4)):
            up, down = data.value(at + direction), data.value(at - direction)
            assert value.gradient[i] == pytest.approx((up.loss - down.loss) / (2 * h), abs=1e-9)
            assert value.hessian[i] == pytest.approx((up.gradient - down.gradient) / (2 * h), abs=1e-9)


class TestSeparation:
    def test_complete(self):
        x, s = column([0.1, 0.3, 0.6, 0.9]), [0, 0, 1, 1]
        fit = logistic_fit(x, s)
        assert fit.separated
        assert fit.converged
        best = minimize(lambda c: loss(c, x, s) + 0.5 * ((c[0] - 1) ** 2 + c[1] ** 2), [1.0, 0.0], tol=1e-12)
        assert np.append(fit.weights, fit.intercept) == pytest.approx(best.x, abs=1e-6)
        p = expit(fit.log_ratios(column([0.5, 0.7]))[:, 0])
        assert p == pytest.approx([0.5226, 0.7952], abs=1e-4)

    def test_the_rule_is_the_penalty_that_it_says(self):
        x, s = binary(12, 10, 12)
        fit = logistic_fit(x, s)
        assert fit.separated
        assert (fit.penalty == 12).all()
        assert fit.intercept_penalty == 1
        assert (fit.center == 1 / 12).all()
        same = logistic_fit(x, s, penalty=12.0, center=1 / 12, intercept_penalty=1.0)
        assert not same.separated
        assert same.weights == pytest.approx(fit.weights, abs=1e-7)

    def test_clones_are_worth_one_expert(self):
        x, s = column([0.1, 0.3, 0.6, 0.9]), [0, 0, 1, 1]
        one, many = logistic_fit(x, s), logistic_fit(np.tile(x, 5), s)
        assert many.weights == pytest.approx(np.full(5, one.weights.item() / 5), abs=1e-7)
        assert many.intercept == pytest.approx(one.intercept, abs=1e-7)

    @pytest.mark.parametrize("events", [0, 1, 30])
    @pytest.mark.parametrize("outcome", [0, 1])
    def test_one_outcome(self, events, outcome):
        x = np.random.default_rng(13).normal(size=(events, 2))
        fit = logistic_fit(x, np.full(events, outcome))
        assert fit.separated
        assert fit.converged
        assert np.abs(fit.weights).max() < 3
        if events:
            assert (np.sign(fit.intercept) == 2 * outcome - 1).all()

    def test_one_event_without_intercept(self):
        assert logistic_fit([[0.5]], [1], intercept=False).separated
        assert not logistic_fit([[0.0]], [1], intercept=False).separated

    def test_a_class_that_never_happened(self):
        x, s = three_classes(14, 60, 2)
        fit = logistic_fit(x, np.minimum(s, 1))
        assert fit.separated
        assert fit.intercept[1] < -1

    def test_an_expert_who_spoke_once(self):
        x, s = binary(15, 3000, 3)
        x = np.column_stack([x, np.zeros(3000)])
        x[7, 3] = 1.5 * (2 * s[7] - 1)
        assert logistic_fit(x, s).separated
        x[8, 3] = -1.5 * (2 * s[8] - 1)
        assert not logistic_fit(x, s).separated

    def test_a_penalty_where_it_is_needed_prevents_it(self):
        x, s = binary(15, 300, 2)
        x = np.column_stack([x, np.zeros(300)])
        x[7, 2] = 1.5 * (2 * s[7] - 1)
        fit = logistic_fit(x, s, penalty=[0.0, 0.0, 1.0])
        assert fit.converged
        assert not fit.separated
        assert logistic_fit(x, s, penalty=[1.0, 1.0, 0.0]).separated
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
        for _ in range(150):
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

    def test_directions(self):
        rng = np.random.default_rng(16)
        for _ in range(150):
            rows = rng.integers(-2, 3, size=(rng.integers(1, 12), rng.integers(1, 4))).astype(float)
            if rng.random() < 0.5:
                rows[:, 0] = np.abs(rows[:, 0])
            found = separating_direction(rows.dot, lambda i, rows=rows: rows[i], rows.sum(axis=0), 4.0)
            assert (found is not None) == separated_by_programme(rows)
            if found is not None:
                assert (rows @ found).min() > -1e-9
                assert (rows @ found).max() > 1e-7

    @pytest.mark.parametrize("eps", [1e-1, 1e-3, 1e-6])
    def test_a_slight_overlap_is_no_separation(self, eps):
        for slack, expected in ((eps, True), (0.0, True), (-eps, False)):
            rows = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0 + slack]])
            found = separating_direction(rows.dot, lambda i, rows=rows: rows[i], rows.sum(axis=0), 2.0)
            assert (found is not None) == expected


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

    def test_louder_clones_share_in_units_of_spread(self):
        x, s = binary(18, 80, 2)
        plain = logistic_fit(x, s)
        fit = logistic_fit(np.column_stack([x, 4 * x[:, 0] + 1]), s)
        assert fit.weights[[0, 2]] * [1, 4] == pytest.approx(np.full(2, plain.weights[0] / 2), abs=1e-7)

    @pytest.mark.parametrize("value", [0.0, 0.1, 1e3])
    def test_a_constant_expert_gets_nothing(self, value):
        x, s = binary(19, 80, 2)
        plain, fit = logistic_fit(x, s), logistic_fit(np.column_stack([x, np.full(80, value)]), s)
        assert fit.weights == pytest.approx([*plain.weights, 0.0], abs=1e-7)
        assert fit.intercept == pytest.approx(plain.intercept, abs=1e-6)

    def test_without_intercept_a_constant_is_one(self):
        x, s = binary(20, 80, 2)
        plain, fit = logistic_fit(x, s), logistic_fit(np.column_stack([x, np.full(80, 2.0)]), s, intercept=False)
        assert 2 * fit.weights[2] == pytest.approx(plain.intercept.item(), abs=1e-7)
        assert (fit.intercept == 0).all()

    def test_clones_of_many_events(self, monkeypatch):
        x, s = binary(21, 4000, 2)
        monkeypatch.setattr(newton, "_SAMPLE", 200)
        plain, fit = logistic_fit(x, s), logistic_fit(np.column_stack([x, x.sum(axis=1)]), s)
        assert fit.weights[:2] + fit.weights[2] == pytest.approx(plain.weights, abs=1e-7)
        spread = np.append(x, x.sum(axis=1, keepdims=True), axis=1).std(axis=0)
        undetermined = np.array([1, 1, -1]) * spread
        assert (fit.weights * spread) @ undetermined == pytest.approx(0, abs=1e-6)

    def test_no_experts(self):
        fit = logistic_fit(np.zeros((8, 0)), [0, 1, 1, 1] * 2)
        assert fit.intercept == pytest.approx(np.log(3))
        assert fit.weights.shape == (0,)


@st.composite
def panels(draw):
    events, experts = draw(st.integers(1, 25)), draw(st.integers(1, 4))
    x, s = binary(draw(st.integers(0, 2**32 - 1)), events, experts, signal=draw(st.sampled_from([0.3, 2.0])))
    return x, s, draw(st.sampled_from([None, 0.1, 5.0]))


class TestProperties:
    @given(panels())
    def test_swapping_outcomes_negates(self, panel):
        x, s, penalty = panel
        fit, swapped = (logistic_fit(sign * x, o, penalty=penalty) for sign, o in ((1, s), (-1, 1 - s)))
        assert swapped.separated == fit.separated
        assert swapped.weights == pytest.approx(fit.weights, abs=1e-5, rel=1e-4)
        assert swapped.intercept == pytest.approx(-fit.intercept, abs=1e-5, rel=1e-4)

    @settings(max_examples=50)
    @given(panels(), st.randoms())
    def test_order_does_not_matter(self, panel, random):
        x, s, penalty = panel
        events, experts = (random.sample(range(n), n) for n in x.shape)
        fit = logistic_fit(x, s, penalty=penalty)
        moved = logistic_fit(x[events][:, experts], s[events], penalty=penalty)
        assert moved.separated == fit.separated
        assert moved.weights == pytest.approx(fit.weights[experts], abs=1e-5, rel=1e-4)

    @settings(max_examples=50)
    @given(panels(), st.data())
    def test_a_frequency_is_a_repetition(self, panel, data):
        x, s, penalty = panel
        times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(s), max_size=len(s))))
        fit = logistic_fit(x, s, sample_weight=times, penalty=penalty)
        repeated = logistic_fit(np.repeat(x, times, axis=0), np.repeat(s, times), penalty=penalty)
        assert repeated.separated == fit.separated
        assert repeated.weights == pytest.approx(fit.weights, abs=1e-5, rel=1e-4)

    @settings(max_examples=50)
    @given(panels())
    def test_a_penalty_draws_to_its_center(self, panel):
        x, s, _ = panel
        hold = partial(logistic_fit, x, s, center=0.7, intercept_penalty=1.0)
        far = [np.abs(hold(penalty=p).weights - 0.7).max() for p in (1e-1, 1e2, 1e8)]
        norms = [np.linalg.norm(hold(penalty=p).weights - 0.7) for p in (1e-1, 1.0, 1e2)]
        assert far[2] < 1e-5
        assert norms[2] <= norms[1] + 1e-7 <= norms[0] + 2e-7

    @settings(max_examples=30)
    @given(panels(), st.floats(-3, 3))
    def test_a_constant_offset_is_intercept(self, panel, offset):
        x, s, _ = panel
        fit, moved = (logistic_fit(x, s, o, penalty=1.0) for o in (0.0, offset))
        if not fit.separated:
            assert moved.intercept + offset == pytest.approx(fit.intercept, abs=1e-5, rel=1e-4)


class TestIterations:
    def test_too_few_iterations_are_told(self):
        x, s = binary(22, 100, 3)
        fit = logistic_fit(x, s, max_iterations=2)
        assert not fit.converged
        assert fit.gradient_norm > 1e-8


class TestFewerEventsThanCoefficients:
    """In terms of the events, against Newton's method by coefficients, and the quick proof against the long one."""

    @pytest.mark.parametrize("intercept", [True, False])
    @pytest.mark.parametrize("weighted", [True, False])
    def test_the_same_minimum(self, intercept, weighted):
        rng = np.random.default_rng(7)
        x, s = 2.0 * rng.normal(size=(30, 45)), rng.integers(0, 2, 30)
        frequency = rng.integers(1, 4, 30) if weighted else None
        offset = rng.normal(size=(30, 1))
        data = Likelihood.of(x[..., None], s, offset, frequency, intercept)
        belief = newton.Belief(np.full(45, 45.0), 1.0, np.full(45, 1 / 45))
        phi, found = newton.minimum_by_events(data, belief, 1e-8)
        direct, other = newton.minimise(newton.Problem(data, belief), np.zeros(data.size), 1e-10, 100)
        assert found.converged
        assert other.converged
        assert phi == pytest.approx(direct, abs=1e-8)

    def test_independent_gains_are_found_by_either_way(self, monkeypatch):
        rng = np.random.default_rng(8)
        x, s = rng.normal(size=(20, 30)), rng.integers(0, 2, 20)
        # Of the second, two gains are opposite, and the others separate the outcomes all the same.
        cases = [(x, s), (np.concatenate([x, x[:1]]), np.append(s, 1 - s[0]))]
        found = [newton._independent(Likelihood.of(x[..., None], s, np.zeros(1), None, True), 0.0) for x, s in cases]
        assert found == [True, False]
        assert logistic_fit(*cases[0]).separated
        monkeypatch.setattr(newton, "_independent", lambda *_: False)
        assert [logistic_fit(*case).separated for case in cases] == [True, True]
