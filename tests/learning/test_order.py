"""The order of the events plays no part, also where a sample of them is learned from."""

import numpy as np
import pytest
from scipy.special import expit, logit

import opinionpool as op
from opinionpool.estimation.sampling import (
    bounded_sample,
    content_keys,
    distinguished,
    event_contents,
    event_keys,
    row_contents,
)
from opinionpool.forecasts import Forecasts
from opinionpool.learning.array import ArraySource
from opinionpool.learning.learn import learn
from opinionpool.learning.parts import PartsSource
from opinionpool.model.panel import Panel
from opinionpool.pools.fit import fit_from, fit_pool
from opinionpool.pools.registry import POOLS

pytestmark = pytest.mark.filterwarnings("ignore::opinionpool.OpinionPoolWarning")
EVENTS = 900
X, Y = Panel.exchangeable(4, correlation=0.3, accuracy=0.6).simulate(EVENTS, seed=2)
X, Y = X.round(2), Y.astype(int)
GAPS = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
ORDERS = [np.random.default_rng(seed).permutation(EVENTS) for seed in range(2)]


@pytest.fixture
def few(monkeypatch):
    """Samples of 200 events, and linear pools that begin with a part of the rows."""
    monkeypatch.setattr("opinionpool.estimation.sampling.EVENTS", 200)
    monkeypatch.setattr("opinionpool.estimation.simplex.SHORT", 100)


def numbered(rows, start=0):
    """Events called by their places."""
    return Forecasts.from_array(GAPS[rows], Y[rows], events=[f"event {start + i}" for i in range(len(rows))])


@pytest.mark.parametrize("name", POOLS)
def test_forecasts(few, name):
    answers = [fit_pool(name, numbered(rows)).pool(GAPS) for rows in (np.arange(EVENTS), *ORDERS)]
    for other in answers[1:]:
        assert other == pytest.approx(answers[0], abs=1e-9)


@pytest.mark.parametrize("pool", [op.GaussianPool(), op.LinearPool(), op.GaussianPool("common", beliefs=None)])
def test_arrays(few, pool):
    answers = [pool.fit(X[rows], Y[rows].astype(float)).predict_proba(X) for rows in (np.arange(EVENTS), *ORDERS)]
    for other in answers[1:]:
        assert other == pytest.approx(answers[0], abs=1e-9)


@pytest.mark.parametrize("name", ["gaussian", "linear"])
def test_parts(few, name):
    """However a file is cut, and whatever stands first in it."""
    answers = []
    for rows, size in ((np.arange(EVENTS), 300), (ORDERS[0], 300), (ORDERS[1], 130)):
        parts = [numbered(rows[start : start + size], start) for start in range(0, EVENTS, size)]
        answers.append(fit_from(PartsSource.of(parts, 0.5), name).pool(GAPS))
    for other in answers[1:]:
        assert other == pytest.approx(answers[0], abs=1e-9)


@pytest.mark.parametrize(("digits", "copies"), [(1, 0), (2, 0), (9, 10), (9, 0)])
def test_parts_arrays_and_forecasts_draw_the_same_events(few, digits, copies):
    """Whether many of them are the same as others, some or none."""
    q = Panel.exchangeable(2, accuracy=0.6).simulate(EVENTS, seed=4)[0].round(digits)
    for outcome in (0, 1):
        same = np.flatnonzero(outcome == Y)[: 2 * (copies // 2)]
        q[same[::2]] = q[same[1::2]]
    whole = Forecasts.from_array(q, Y)
    parts = [whole.select_events(rows) for rows in np.array_split(ORDERS[0], 7)]
    source, array = PartsSource.of(parts, 0.5).problem(), ArraySource.of(q, Y, prior=0.5).problem()
    kept, weight = bounded_sample(whole, np.ones(EVENTS))
    for found in (source, array):
        np.testing.assert_array_equal(found.forecasts.X, q[kept])
        np.testing.assert_array_equal(found.outcomes, Y[kept])
        np.testing.assert_array_equal(found.weight, weight)


def test_classes_priors_and_dates(few):
    q = np.random.default_rng(1).dirichlet(np.ones(3), (EVENTS, 2)).round(3)
    q /= q.sum(axis=2, keepdims=True)
    y = np.random.default_rng(2).integers(0, 3, EVENTS)
    prior = np.random.default_rng(3).dirichlet(np.ones(3) * 9, EVENTS)
    f = [Forecasts.from_array(q[rows], y[rows], classes=(0, 1, 2), prior=prior[rows]) for rows in ORDERS]
    one, two = (fit_pool("gaussian", each, class_model="symmetric").pool(q, prior) for each in f)
    assert one == pytest.approx(two, abs=1e-9)


def test_interval(few):
    one, two = (op.GaussianPool().fit(GAPS[rows], Y[rows]).predict_interval(GAPS) for rows in ORDERS)
    assert one == pytest.approx(two, abs=1e-9)


class TestRounded:
    """Where more events are alike than values are chosen on, none is preferred for its place or its outcome."""

    @pytest.fixture(autouse=True)
    def fewer(self, monkeypatch):
        monkeypatch.setattr("opinionpool.learning.class_model.LARGE", 100 * 18)

    @pytest.mark.parametrize("digits", [1, 2])
    @pytest.mark.parametrize("missing", [False, True])
    def test_order_of_events_and_experts_and_swapped_outcomes(self, digits, missing):
        q = np.clip((GAPS if missing else X).round(digits), 0.01, 0.99)

        def answers(q, y, **weight):
            return logit(op.GaussianPool().fit(q, y, prior=0.5, **weight).predict_proba(q, prior=0.5)[:, 1])

        expected = answers(q, Y)
        for order in ORDERS:
            assert answers(q[order], Y[order]) == pytest.approx(expected[order], abs=1e-10)
        assert answers(q[:, [2, 0, 3, 1]], Y) == pytest.approx(expected, abs=1e-10)
        assert answers(1.0 - q, 1 - Y) == pytest.approx(-expected, abs=1e-10)
        twice = answers(q, Y, sample_weight=np.full(EVENTS, 2.0))
        assert answers(np.r_[q, q], np.r_[Y, Y])[:EVENTS] == pytest.approx(twice, abs=1e-10)

    @pytest.mark.parametrize("model", ["symmetric", "full"])
    def test_order_of_events_and_classes(self, model):
        rng = np.random.default_rng(1)
        y = rng.integers(0, 3, EVENTS)
        # Twentieths that add up to one, some of them on what happened.
        q = (1 + rng.multinomial(14, np.ones(3) / 3, (EVENTS, 2)) + 3 * np.eye(3)[y][:, None]) / 20.0

        def answers(q, y):
            f = Forecasts.from_array(q, y, classes=(0, 1, 2))
            return fit_pool("gaussian", f, prior=np.ones(3) / 3, class_model=model).pool(q, np.ones(3) / 3)

        expected = answers(q, y)
        assert answers(q[ORDERS[0]], y[ORDERS[0]]) == pytest.approx(expected[ORDERS[0]], abs=1e-10)
        classes = np.array([2, 0, 1])
        found = answers(q[..., classes], np.argsort(classes)[y])
        assert found == pytest.approx(expected[..., classes], abs=1e-10)


ROOM = np.array([100, 100, 20])


class TestKeys:
    def test_the_same_events_have_different_keys(self):
        f = numbered(np.zeros(500, dtype=int))
        assert len(np.unique(content_keys(event_contents(f), f.outcomes, ROOM))) == 500

    def test_keys_follow_the_event(self):
        keys = [content_keys(event_contents(numbered(rows)), Y[rows], ROOM) for rows in (np.arange(EVENTS), *ORDERS)]
        for other in keys[1:]:
            np.testing.assert_array_equal(np.sort(other), np.sort(keys[0]))

    def test_keys_of_parts_are_those_of_the_whole(self):
        keys, before, found = event_keys(event_contents(numbered(np.arange(EVENTS))), Y), [], []
        keys[::3] = keys[0]
        for start in range(0, EVENTS, 100):
            found.append(distinguished(keys[start : start + 100], before))
            before.append(np.sort(keys[start : start + 100]))
        np.testing.assert_array_equal(np.sort(np.concatenate(found)), np.sort(distinguished(keys)))

    def test_what_differs_has_other_keys(self):
        base = [[0.5, 0.25, np.nan]]
        experts = ("ann", "bob", "cat")
        variants = [
            Forecasts.from_array(q, [y], experts=names, prior=prior)
            for q, y, names, prior in (
                (base, 1, experts, None),
                (base, 0, experts, None),
                (base, None, experts, None),
                ([[0.25, 0.5, np.nan]], 1, experts, None),
                ([[0.5, np.nan, 0.25]], 1, experts, None),
                ([[0.5, 0.125, np.nan]], 1, experts, None),
                ([[0.5, 0.25, 0.0]], 1, experts, None),
                (base, 1, ("ann", "zoe", "cat"), None),
                (base, 1, experts, 0.3),
            )
        ]
        assert len({int(event_keys(event_contents(f), f.outcomes)[0]) for f in variants}) == len(variants)

    def test_coarse_forecasts_are_told_apart(self):
        """Powers of two have the last bits of their numbers in common."""
        grid = np.array(np.meshgrid(*[[0.5, 0.25, 0.125, 0.0625, 0.0, 1.0]] * 4)).reshape(4, -1).T
        assert len(
            np.unique(row_contents(grid, np.arange(1, 9, 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)))
        ) == len(grid)
        keys = event_keys(event_contents(Forecasts.from_array(grid)), np.zeros(len(grid), int))
        share = [(keys < np.uint64(2**64 * p)).mean() for p in (0.1, 0.5, 0.9)]
        assert share == pytest.approx([0.1, 0.5, 0.9], abs=0.06)


@pytest.mark.parametrize("experts", [3, 8])
def test_one_of_many_events_hardly_moves_answers(experts):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 9_000)
    q = expit(1.2 * (2 * y[:, None] - 1) + 0.7 * rng.normal(size=(9_000, 1)) + rng.normal(size=(9_000, experts)))
    answers = [learn(Forecasts.from_array(q[first:], y[first:])).pool(q[:500]) for first in (0, 1, 2)]
    assert np.abs(np.array(answers) - answers[0]).max() < 2e-3
