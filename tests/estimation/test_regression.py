from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from opinionpool.estimation.anchor import Quadratic
from opinionpool.estimation.coefficients import WeightBeliefs
from opinionpool.estimation.posterior import BinaryLikelihoods, modes
from opinionpool.estimation.regression import Regression, fit_each

DEVIATIONS = (0.0, 0.1, 0.6)
BELIEFS = WeightBeliefs(np.array([0.5, 0.2, 0.3]), 0.4, 0.3, lambda deviation: deviation)


def regression(t, scale, beliefs=BELIEFS, n=3):
    rng = np.random.default_rng(t)
    outcomes, weight = rng.integers(0, 2, t), rng.integers(1, 4, t).astype(float)
    contrasts = scale * (rng.normal(size=(t, n, 1)) + 2.0 * outcomes[:, None, None] - 1.0)
    return Regression(contrasts, rng.normal(size=(t, 1)), outcomes, weight, beliefs, beliefs.mean + 0.1)


def alike(found, expected):
    assert found.values == pytest.approx(expected.values, abs=1e-8)
    assert found.evidence == pytest.approx(expected.evidence, abs=1e-6)
    assert found.covariance() == pytest.approx(expected.covariance(), abs=1e-6)


def rooted(n):
    root = np.random.default_rng(n).normal(size=(n, n))
    return WeightBeliefs(np.linspace(0.1, 0.5, n), 0.0, 0.3, lambda deviation: deviation * root)


class TestSideBySide:
    @pytest.mark.parametrize(
        "beliefs",
        [
            BELIEFS,
            replace(BELIEFS, intercept_spread=0.0),
            replace(BELIEFS, mean=np.array([0.4]), deviation=lambda _: 0.0),
            rooted(3),
        ],
        ids=["alike", "without intercept", "one expert", "each of its own"],
    )
    def test_are_the_fits_one_by_one(self, beliefs):
        tasks = [regression(60, scale, beliefs, len(beliefs.mean)) for scale in (0.5, 1.0, 8.0)]
        for task, each in zip(tasks, fit_each(tasks, DEVIATIONS), strict=True):
            for deviation, found in zip(DEVIATIONS, each, strict=True):
                alike(found, task.fit(deviation))

    def test_wherever_they_begin(self):
        task, far = regression(60, 1.0), regression(60, 9.0)
        starts = [far.fit(deviation) for deviation in DEVIATIONS]
        for given in (starts, starts[:1]):
            for found, deviation in zip(next(fit_each([task], DEVIATIONS, given)), DEVIATIONS, strict=True):
                alike(found, task.fit(deviation))

    @pytest.mark.parametrize("t", [5, 60])
    def test_beliefs_may_differ(self, t):
        tasks = [replace(regression(t, 1.0), beliefs=replace(BELIEFS, mean=size * BELIEFS.mean)) for size in (1, 9)]
        for task, (found,) in zip(tasks, fit_each(tasks, (0.25,)), strict=True):
            alike(found, task.fit(0.25))


@pytest.mark.parametrize("events", [7, 3_000])
def test_modes_minimise_each_sum(events):
    rng = np.random.default_rng(events)
    design, sign = rng.normal(size=(events, 30)), rng.choice([-1.0, 1.0], events)
    roots, offsets = [rng.normal(size=(30, 2)), 5.0 * rng.normal(size=(30, 2))], rng.normal(size=(2, events))
    weight, slopes = rng.uniform(0.5, 2.0, events), rng.normal(size=(2, 2))
    pulls = Quadratic(np.stack([np.eye(2), 3.0 * np.eye(2)]), slopes)
    found = modes(BinaryLikelihoods([design, design], roots, offsets, sign, weight), np.full((2, 2), 4.0), pulls)
    for i, each in enumerate(found):

        def cost(theta, i=i):
            loss = np.logaddexp(0.0, -sign * (offsets[i] + design @ (roots[i] @ theta)))
            return weight @ loss + theta @ (np.eye(2) + pulls.curvature[i]) @ theta / 2 + slopes[i] @ theta

        best = minimize(cost, np.zeros(2), method="BFGS", options={"gtol": 1e-6})
        assert each.coefficients == pytest.approx(best.x, abs=1e-5)
