from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from opinionpool.errors import LearningError
from opinionpool.estimation import side_by_side
from opinionpool.estimation.anchor import Quadratic
from opinionpool.estimation.binary import BinaryEvents, BinaryLikelihoods, keep_pairs
from opinionpool.estimation.coefficients import WeightBeliefs
from opinionpool.estimation.posterior import modes
from opinionpool.estimation.regression import Observations, Regression
from opinionpool.estimation.side_by_side import Task, fit_all, together
from opinionpool.logodds import signature

DEVIATIONS = (0.0, 0.1, 0.6)
BELIEFS = WeightBeliefs(np.array([0.5, 0.2, 0.3]), 0.4, 0.3, lambda deviation: deviation)


def regression(t, scale, beliefs=BELIEFS, n=3, k=2):
    rng = np.random.default_rng(t)
    outcomes, weight = rng.integers(0, k, t), rng.integers(1, 4, t).astype(float)
    contrasts = scale * (rng.normal(size=(t, n, k - 1)) + signature(k)[outcomes][:, None])
    offset = rng.normal(size=(t, k - 1))
    return Regression(Observations(contrasts, offset, outcomes, weight, beliefs.mean + 0.1), beliefs)


def alike(found, expected):
    assert found.values == pytest.approx(expected.values, abs=1e-8)
    assert found.evidence == pytest.approx(expected.evidence, abs=1e-6)
    assert found.covariance() == pytest.approx(expected.covariance(), abs=1e-6)


def rooted(n):
    root = np.random.default_rng(n).normal(size=(n, n))
    return WeightBeliefs(np.linspace(0.1, 0.5, n), 0.0, 0.3, lambda deviation: deviation * root)


def tasks_of(regressions, starts=None):
    return [
        Task(each, deviation, starts and starts[i])
        for each in regressions
        for i, deviation in enumerate(DEVIATIONS)
        if len(each.beliefs.mean) > 1 or deviation == 0
    ]


class TestSideBySide:
    @pytest.mark.parametrize(
        "beliefs",
        [
            BELIEFS,
            replace(BELIEFS, intercept_spread=0.0),
            replace(BELIEFS, guide=np.array([0.2, -0.3, 0.0])),
            replace(BELIEFS, mean=np.array([0.4]), deviation=lambda _: 0.0),
            rooted(3),
        ],
        ids=["alike", "without intercept", "with a guide", "one expert", "each of its own"],
    )
    @pytest.mark.parametrize("wide", [1, side_by_side._WIDE])
    @pytest.mark.parametrize("k", [2, 3, 7])
    def test_are_the_fits_one_by_one(self, monkeypatch, beliefs, k, wide):
        monkeypatch.setattr(side_by_side, "_WIDE", wide)
        tasks = tasks_of([regression(60, scale, beliefs, len(beliefs.mean), k) for scale in (0.5, 1.0, 8.0)])
        for task, found in zip(tasks, fit_all(tasks), strict=True):
            alike(found, task.regression.fit(task.deviation))

    @pytest.mark.parametrize("k", [2, 4])
    def test_wherever_they_begin(self, k):
        regressions, far = [regression(t, 1.0, k=k) for t in (60, 90)], regression(60, 9.0, k=k)
        starts = [far.fit(deviation) for deviation in DEVIATIONS]
        for given in (starts, [starts[0]] * 3):
            tasks = tasks_of(regressions, given)
            for task, found in zip(tasks, fit_all(tasks), strict=True):
                alike(found, task.regression.fit(task.deviation))

    @pytest.mark.parametrize("t", [5, 60])
    def test_beliefs_may_differ(self, t):
        tasks = [
            Task(
                replace(regression(t, 1.0), beliefs=replace(BELIEFS, mean=size * BELIEFS.mean), anchored=size > 1), 0.2
            )
            for size in (1, 9)
        ]
        for task, found in zip(tasks, fit_all(tasks), strict=True):
            alike(found, task.regression.fit(0.2))

    @pytest.mark.parametrize("wide", [1, 30, side_by_side._WIDE])
    @pytest.mark.parametrize("k", [2, 3])
    def test_so_may_events_and_experts(self, monkeypatch, k, wide):
        """Few and many events, of three, two and forty experts, some with a design of their own."""
        monkeypatch.setattr(side_by_side, "_WIDE", wide)
        several = [
            regression(t, 1.0, replace(BELIEFS, mean=np.full(n, 0.9 / n)), n, k)
            for t, n in ((60, 3), (200, 40), (7, 3), (500, 2), (61, 3))
        ]
        tasks = tasks_of(several)
        for task, found in zip(tasks, fit_all(tasks), strict=True):
            alike(found, task.regression.fit(task.deviation))


class TestTogether:
    def test_work_is_done_as_it_would_be_by_itself(self):
        """Each asks as often as it likes, and gets its own fits."""

        def work(events, times):
            task = regression(events, 1.0)
            found = [task.fit(0.1)]
            for _ in range(times):
                found = yield [Task(task, 0.1, found[0]), Task(task, 0.6)]
            return events, [each.values for each in found]

        works = [(60, 2), (61, 0), (62, 1), (5, 3)]
        for (events, values), (t, times) in zip(together([work(*each) for each in works]), works, strict=True):
            assert events == t
            for value, deviation in zip(values, (0.1, 0.6), strict=times > 0):
                assert value == pytest.approx(regression(t, 1.0).fit(deviation).values, abs=1e-8)

    def test_an_error_is_passed_on(self):
        def failing():
            yield [Task(regression(60, 1.0), 0.1)]
            raise LearningError("no")

        with pytest.raises(LearningError, match="no"):
            together([failing()])


@pytest.mark.parametrize(("experts", "events"), [(3, 50), (3, 200_000), (20, 700), (40, 700)])
@pytest.mark.parametrize("kept", [False, True])
def test_products_of_a_design(experts, events, kept):
    """In blocks or at once, with products of pairs made before or not."""
    rng = np.random.default_rng(experts)
    design, size = rng.normal(size=(experts, events)), rng.uniform(size=(3, events))
    size[2] = size[1]
    one = BinaryEvents(design, np.zeros(events), np.ones(events), np.ones(events))
    if kept:
        keep_pairs([one, one])
        assert (one.pairs is not None) == (experts < 40 and events < 100_000)
    for found, each in zip(one.products(size), size, strict=True):
        assert found == pytest.approx((design * each) @ design.T, rel=1e-10, abs=1e-9)


@pytest.mark.parametrize("events", [7, 3_000])
def test_modes_minimise_each_sum(events):
    rng = np.random.default_rng(events)
    design, sign = rng.normal(size=(events, 30)), rng.choice([-1.0, 1.0], events)
    roots, offsets = [rng.normal(size=(30, 2)), 5.0 * rng.normal(size=(30, 2))], rng.normal(size=(2, events))
    weight, slopes = rng.uniform(0.5, 2.0, events), rng.normal(size=(2, 2))
    pulls = Quadratic(np.stack([np.eye(2), 3.0 * np.eye(2)]), slopes)
    sets = [BinaryEvents(design.T, offset, sign, weight) for offset in offsets]
    likelihoods = BinaryLikelihoods(sets, np.arange(2), np.zeros((2, 30)), np.stack(roots))
    found = modes(likelihoods, np.full((2, 2), 4.0), pulls)
    for i, each in enumerate(found):

        def cost(theta, i=i):
            loss = np.logaddexp(0.0, -sign * (offsets[i] + design @ (roots[i] @ theta)))
            return weight @ loss + theta @ (np.eye(2) + pulls.curvature[i]) @ theta / 2 + slopes[i] @ theta

        best = minimize(cost, np.zeros(2), method="BFGS", options={"gtol": 1e-6})
        assert each.coefficients == pytest.approx(best.x, abs=1e-5)
