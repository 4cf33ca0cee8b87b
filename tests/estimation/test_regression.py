"""Regressions fitted together against a general optimiser of the same posterior, and against one by one."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.optimize import minimize
from scipy.special import log_expit, logsumexp

from opinionpool.estimation import regression as module
from opinionpool.estimation.coefficients import WeightBeliefs, left_open
from opinionpool.estimation.regression import Observations, Regression, fit_batch
from opinionpool.logodds import centred, signature, softmax

DEVIATIONS = (0.0, 0.1, 0.6)
BELIEFS = WeightBeliefs(np.array([0.5, 0.2, 0.3]), 0.4, 0.3, lambda deviation: deviation)


def observations(t, scale=1.0, n=3, k=2, expected=None):
    rng = np.random.default_rng(t)
    outcomes, weight = rng.integers(0, k, t), rng.integers(1, 4, t).astype(float)
    contrasts = scale * (rng.normal(size=(t, n, k - 1)) + signature(k)[outcomes][:, None])
    return Observations(contrasts, rng.normal(size=(t, k - 1)), outcomes, weight, expected)


def rooted(n):
    root = np.random.default_rng(n).normal(size=(n, n))
    return WeightBeliefs(np.linspace(0.1, 0.5, n), 0.0, 0.3, lambda deviation: deviation * root)


def squares(ratios):
    """Squared lengths of log-ratios in their metric."""
    return 2.0 * (centred(ratios) ** 2).sum(axis=1)


def posterior(regression):
    """The logarithm of the posterior of standard normal coefficients, without what anchors them and with it."""
    observed, beliefs = regression.observed, regression.beliefs
    d, root = observed.free, beliefs.root(regression.deviation, observed.free)
    mean = np.append(np.zeros(d), beliefs.mean)
    anchor = observed.anchor(beliefs.mean)

    def ratios(theta):
        values = mean + root @ theta
        return observed.offset + values[:d] + np.einsum("tnd,n->td", observed.contrasts, values[d:])

    def plain(theta):
        full = np.concatenate([np.zeros((len(observed.outcomes), 1)), ratios(theta)], axis=1)
        loss = logsumexp(full, axis=1) - full[np.arange(len(full)), observed.outcomes]
        return -float(observed.weight @ loss) - theta @ theta / 2.0

    def whole(theta):
        if anchor is None or not regression.anchored:
            return plain(theta)
        own, far = squares(ratios(theta) - ratios(0 * theta)), ratios(theta) - observed.answers(observed.expected)
        return plain(theta) - float(anchor.own @ own + anchor.common @ squares(far)) / 2.0

    return plain, whole, mean, root


def check(regression, found, close=1e-4):
    plain, whole, mean, root = posterior(regression)
    best = minimize(lambda theta: -whole(theta), np.zeros(root.shape[1]), method="BFGS", options={"gtol": 1e-5})
    assert found.values == pytest.approx(mean + root @ best.x, abs=close)
    theta = found.mode.coefficients
    assert whole(theta) >= -best.fun - 1e-9
    assert mean + root @ theta == pytest.approx(found.values, abs=1e-12)
    precision = np.linalg.inv(found.mode.covariance)
    score = plain(theta) - np.linalg.slogdet(precision)[1] / 2.0
    assert found.log_marginal_likelihood == pytest.approx(score, abs=1e-6)
    observed = regression.observed
    p = softmax(observed.offset + observed.contributions(found.values))[:, 1:]
    middle = np.einsum("td,de->tde", p, np.eye(observed.free)) - p[:, :, None] * p[:, None, :]
    rows = np.concatenate(
        [np.broadcast_to(np.eye(observed.free), (len(p), observed.free, observed.free)), observed.contrasts], axis=1
    )
    hessian = np.einsum("t,tpd,tde,tqe->pq", observed.weight, rows, middle, rows, optimize=True)
    assert precision == pytest.approx(np.eye(len(theta)) + root.T @ hessian @ root, rel=1e-5, abs=1e-6)


KINDS = {
    "alike": BELIEFS,
    "without intercept": replace(BELIEFS, intercept_spread=0.0),
    "with a guide": replace(BELIEFS, guide=np.array([0.2, -0.3, 0.0])),
    "one expert": replace(BELIEFS, mean=np.array([0.4]), deviation=lambda _: 0.0),
    "each of its own": rooted(3),
}


class TestFit:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("k", [2, 3, 7])
    @pytest.mark.parametrize("scale", [0.5, 8.0])
    def test_is_the_most_probable_one(self, kind, k, scale):
        beliefs = KINDS[kind]
        observed = observations(60, scale, len(beliefs.mean), k, beliefs.mean + 0.1)
        several = [Regression(observed, beliefs, each, each != 0.1) for each in DEVIATIONS[: len(beliefs.mean)]]
        for each, found in zip(several, fit_batch(several), strict=True):
            check(each, found)

    @pytest.mark.parametrize("k", [2, 3])
    @pytest.mark.parametrize("beliefs", [None, rooted(20), "guide"], ids=["alike", "each of its own", "with a guide"])
    @pytest.mark.parametrize("anchored", [False, True])
    def test_of_more_experts_than_events(self, k, beliefs, anchored):
        """Coefficients that no event sees stay as they are believed to be."""
        alike = WeightBeliefs(np.linspace(0.0, 0.1, 20), 0.4, 0.3, lambda deviation: deviation)
        if beliefs == "guide":
            beliefs = replace(alike, guide=np.linspace(-0.1, 0.3, 20))
        beliefs = beliefs or alike
        observed = observations(5, 1.0, 20, k, beliefs.mean + 0.02 if anchored else None)
        assert observed.basis is not None
        several = [Regression(observed, beliefs, each) for each in DEVIATIONS]
        for each, found in zip(several, fit_batch(several), strict=True):
            check(each, found)

    @pytest.mark.parametrize("k", [2, 4])
    @pytest.mark.parametrize("t", [5, 60])
    def test_does_not_depend_on_starts_or_company(self, monkeypatch, k, t):
        observed, far = observations(t, k=k, expected=BELIEFS.mean), observations(60, 9.0, k=k)
        plain = [
            Regression(observed, replace(BELIEFS, mean=s * BELIEFS.mean), each) for s in (1, 9) for each in (0.0, 0.2)
        ]
        alone = [fit_batch([each])[0] for each in plain]
        starts = fit_batch([Regression(far, BELIEFS, each.deviation) for each in plain])
        for begin in (starts, starts[::-1], [3.0] * 4):
            begun = fit_batch([replace(each, start=start) for each, start in zip(plain, begin, strict=True)])
            for one, other in zip(begun, alone, strict=True):
                assert one.values == pytest.approx(other.values, abs=1e-9)
                assert one.log_marginal_likelihood == pytest.approx(other.log_marginal_likelihood, abs=1e-7)
        monkeypatch.setattr(module, "_HESSIANS", 1)
        for one, other in zip(fit_batch(plain), alone, strict=True):
            assert one.values == pytest.approx(other.values, abs=1e-9)


class TestMarginalLikelihood:
    @pytest.mark.parametrize("t", [1, 3, 8])
    def test_is_the_integral_over_intercept_and_slope(self, t):
        rng = np.random.default_rng(t)
        beliefs, contrasts = WeightBeliefs(np.array([0.7, 0.7]), 0.4, 0.3, lambda own: own), rng.normal(size=(t, 2, 1))
        observed = Observations(contrasts, np.zeros((t, 1)), rng.integers(0, 2, t), np.ones(t))
        sign = 2.0 * observed.outcomes - 1.0

        def joint(intercept, slope):
            weights = beliefs.mean * (1.0 + 0.4 / beliefs.mean.sum() * slope)
            answer = 0.3 * intercept + contrasts[..., 0] @ weights
            prior = np.exp(-(intercept**2 + slope**2) / 2.0) / (2.0 * np.pi)
            return prior / np.prod(1.0 + np.exp(-sign * answer))

        whole = dblquad(joint, -8, 8, -8, 8, epsabs=1e-9)[0]
        slope = dblquad(lambda b, a: a * joint(b, a), -8, 8, -8, 8, epsabs=1e-9)[0] / whole
        (found,) = fit_batch([Regression(observed, beliefs)])
        assert found.log_marginal_likelihood == pytest.approx(np.log(whole), abs=0.01)
        assert found.values[1:].sum() == pytest.approx(1.4 + 0.4 * slope, abs=0.02)

    def test_is_the_integral_over_sum_and_guide(self):
        """With mean and spread of the answer to an event, on a grid of the two coefficients."""
        rng = np.random.default_rng(6)
        mean, guide = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.0, -0.2])
        contrasts, y = 1.5 * rng.normal(size=(30, 3)), rng.integers(0, 2, 30)
        beliefs = WeightBeliefs(mean, 0.3, 0.0, lambda deviation: deviation, guide)
        (found,) = fit_batch(
            [Regression(Observations(contrasts[..., None], np.zeros((30, 1)), y, np.ones(30)), beliefs)]
        )
        axis = np.linspace(-5, 5, 201)
        a, b = np.meshgrid(axis, axis)
        weights = mean + 0.3 * a[..., None] * mean + b[..., None] * guide
        density = log_expit((2 * y - 1) * (weights @ contrasts.T)).sum(axis=-1) - (a**2 + b**2) / 2 - np.log(2 * np.pi)
        total = np.exp(density).sum()
        assert found.log_marginal_likelihood == pytest.approx(np.log(total * (axis[1] - axis[0]) ** 2), abs=0.05)
        new = np.array([1.0, -0.5, -1.0])
        answer, share = weights @ new, np.exp(density) / total
        exact = float((share * answer).sum())
        spread = np.sqrt((share * (answer - exact) ** 2).sum())
        assert found.values[1:] @ new == pytest.approx(exact, abs=0.1 * spread)
        assert np.sqrt(new @ found.covariance()[1:, 1:] @ new) == pytest.approx(spread, rel=0.05)
        assert found.rows().T @ found.rows() == pytest.approx(found.covariance(), abs=1e-9)


def test_what_alternatives_leave_open():
    """Less certain ones add what they are less certain of, and where they differ; surer ones where they differ."""
    observed = observations(20)

    def fit(spread):
        beliefs = WeightBeliefs(np.full(3, 0.4), spread, 0.3, lambda deviation: deviation)
        return fit_batch([Regression(observed, beliefs)])[0]

    sure, unsure = fit(0.2), fit(2.0)
    off = np.outer(unsure.values - sure.values, unsure.values - sure.values)
    more, less = (left_open(*pair) for pair in ((sure, [unsure], np.ones(1)), (unsure, [sure], np.ones(1))))
    found, whole = more.T @ more, off + unsure.covariance() - sure.covariance()
    assert (np.linalg.eigvalsh(found - whole) >= -1e-9).all()
    assert np.trace(found) == pytest.approx(np.trace(whole), rel=0.05)
    assert (np.linalg.eigvalsh(less.T @ less - off) >= -1e-9).all()
    assert np.trace(less.T @ less) < np.trace(found)
