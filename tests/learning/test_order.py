"""The order of the events plays no part, also where a sample of them is learned from."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import logit

import opinionpool as op
from opinionpool.estimation.sampling import sample_of
from opinionpool.forecasts import Forecasts
from opinionpool.learning.learn import learn
from opinionpool.learning.parts import ArraySource, PartsSource
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
    drawn = sample_of(whole, np.ones(EVENTS))
    weight = drawn.frequencies(np.ones(EVENTS))

    def rows(q, outcomes, weight):
        found = np.column_stack([q, outcomes, weight])
        return found[np.lexsort(found.T)]

    for found in (source, array):
        some = found.forecasts
        np.testing.assert_allclose(
            rows(some.X, some.outcomes, found.weight), rows(q[drawn.positions], Y[drawn.positions], weight)
        )


def same_pool(one, two, q, abs=1e-9):
    """Weights, answers and intervals."""
    for each in ("pool", "interval"):
        assert np.asarray(getattr(one, each)(q)) == pytest.approx(np.asarray(getattr(two, each)(q)), abs=abs)
    assert one.weights == pytest.approx(two.weights, abs=abs)


@settings(max_examples=8)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 9]), st.booleans())
def test_names_orders_classes_and_entry_points(seed, digits, gaps):
    """Weights are those of all events, and no sample hangs on how they came."""
    rng = np.random.default_rng(seed)
    x, y = Panel(rng.lognormal(0.0, 0.5, 4), 0.5 + 0.5 * np.eye(4)).simulate(700, seed=seed)
    x = np.clip(x.round(digits), 0.01, 0.99)
    x[(rng.random(x.shape) < 0.2) & gaps] = np.nan
    events, experts = rng.permutation(700), rng.permutation(4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("opinionpool.estimation.sampling.EVENTS", 150)
        whole = Forecasts.from_array(x, y)
        one = learn(whole)
        same_pool(one, learn(Forecasts.from_array(x[events], y[events])), x[:50])
        other = learn(Forecasts.from_array(x[:, experts], y, experts=["zoe", "yan", "xi", "wim"]))
        assert other.pool(x[:50, experts]) == pytest.approx(one.pool(x[:50]), abs=1e-9)
        assert other.weights == pytest.approx(one.weights[experts], abs=1e-9)
        assert learn(Forecasts.from_array(1.0 - x, 1 - y)).pool(1.0 - x[:50]) == pytest.approx(
            1.0 - one.pool(x[:50]), abs=1e-9
        )
        same_pool(one, op.GaussianPool().fit(x, y.astype(float)).state_, x[:50])
        parts = [whole.select_events(rows) for rows in np.array_split(events, 5)]
        patch.setattr("opinionpool.learning.parts.FORECASTS", 1000)
        same_pool(one, fit_from(PartsSource.of(parts, None), "gaussian"), x[:50])


@pytest.mark.parametrize("classes", [2, 3])
def test_a_sample_for_hyperparameters_leaves_weights_to_all_events(classes, monkeypatch):
    rng = np.random.default_rng(classes)
    y = rng.integers(0, classes, 3_000)
    signal = (
        1.2 * np.eye(classes)[y][:, None] + rng.normal(size=(3_000, 5, classes)) + rng.normal(size=(3_000, 1, classes))
    )
    q = np.exp(signal) / np.exp(signal).sum(axis=2, keepdims=True)
    f = Forecasts.from_array(q[..., 1] if classes == 2 else q, y, classes=range(classes))
    whole = learn(f, class_model="symmetric")
    monkeypatch.setattr("opinionpool.estimation.sampling.EVENTS", 600)
    some = learn(f, class_model="symmetric")
    sd = whole.posterior.weight_sd(5)
    assert "hyperparameters" in {note.code for note in some.notes}
    assert (np.abs(some.weights - whole.weights) < 0.1 * sd).all()
    assert some.posterior.weight_sd(5) == pytest.approx(sd, rel=0.05)
    assert some.events.tolist() == whole.events.tolist()


def test_who_differs_from_others_outside_the_sample_has_a_weight_of_its_own(monkeypatch):
    """Someone who seldom answers, and someone who repeats another nearly always, or nearly always says the same."""
    q, y = Panel.exchangeable(6, correlation=0.3, accuracy=0.6).simulate(4_000, seed=3)
    drawn = np.random.default_rng(1).permutation(4_000)
    rare, once, still = drawn[:60], drawn[60:80], drawn[80:100]
    q[:, 3] = np.where(np.isin(np.arange(4_000), rare), q[:, 3], np.nan)
    q[:, 4] = np.where(np.isin(np.arange(4_000), once), q[:, 4], q[:, 0])
    q[:, 5] = np.where(np.isin(np.arange(4_000), still), q[:, 5], 0.3)
    f = Forecasts.from_array(q, y)
    whole = learn(f)
    monkeypatch.setattr("opinionpool.estimation.sampling.EVENTS", 40)
    for found in (learn(f), op.GaussianPool().fit(q, y.astype(float)).state_):
        sd = whole.posterior.weight_sd(6)
        assert (np.abs(found.weights - whole.weights) < sd).all()
        assert {note.code for note in found.notes} == {*(note.code for note in whole.notes), "hyperparameters"}
        assert len(set(found.weights.tolist())) == 6


def test_many_events():
    """One moves others by next to nothing, names and order by nothing, and intervals shrink with their root."""
    q, y = Panel(np.array([0.5, 1.0, 1.0, 2.0]), 1.0 + np.eye(4)).simulate(100_500, seed=1)
    q, y, new = q[:100_000], y[:100_000], q[100_000:]

    def pool(rows, columns=(0, 1, 2, 3)):
        return op.GaussianPool().fit(q[np.ix_(rows, columns)], y[rows].astype(float))

    some = np.arange(25_000)
    one = pool(some)
    answers, width = one.predict_proba(new), np.ptp(one.predict_interval(new), axis=1)
    assert np.abs(pool(some[1:]).predict_proba(new) - answers).max() < 2e-3
    assert pool(some[::-1]).predict_proba(new) == pytest.approx(answers, abs=1e-9)
    columns = [2, 0, 3, 1]
    assert pool(some, columns).predict_proba(new[:, columns]) == pytest.approx(answers, abs=1e-9)
    shrunk = np.ptp(pool(np.arange(100_000)).predict_interval(new), axis=1) / width
    assert np.median(shrunk) == pytest.approx(0.5, abs=0.04)


class TestRounded:
    """Where more events are alike than values are chosen on, none is preferred for its place or its outcome."""

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
