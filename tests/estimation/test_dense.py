"""Learning and pooling of arrays in blocks, against the same by other ways."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, strategies as st

import opinionpool as op
from opinionpool import blocks as blockwise, logodds
from opinionpool.errors import ProbabilityError
from opinionpool.estimation import sampling
from opinionpool.estimation.statistics import Statistics, dense_statistics
from opinionpool.forecasts import Forecasts
from opinionpool.learning.learn import learn, learn_from
from opinionpool.learning.parts import ArraySource
from opinionpool.learning.problem import Request

EVEN = np.array([0.5, 0.5])


def learn_dense(q, y, request, **about):
    source = ArraySource.of(q, y, **about)
    return learn_from(source, request) if source is not None and source.serves(request) else None


def panel(t: int, n: int, seed: int = 0, level: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and outcomes of a correlated panel."""
    rng = np.random.default_rng(seed)
    y = (rng.random(t) < 0.5).astype(int)
    z = level + rng.normal(size=(t, 1)) + rng.normal(size=(t, n)) + (2 * y - 1)[:, None]
    return logodds.expit(z), y


def names(n: int) -> tuple[str, ...]:
    return tuple(f"expert_{i + 1}" for i in range(n))


def moments(q: np.ndarray, y: np.ndarray, floor: float = 1e-4, threads: int | None = None) -> Statistics:
    found = dense_statistics(q, np.where(np.isnan(y), -1, y).astype(np.int8), EVEN, floor, names(q.shape[1]), threads)
    assert found is not None
    return found


def check_equal(found: Statistics, wanted: Statistics, rtol: float) -> None:
    np.testing.assert_array_equal(found.totals, wanted.totals)
    assert found.patterns.keys() == wanted.patterns.keys()
    size = max(np.abs(other.scatter).max() for other in wanted.patterns.values())
    for experts, other in wanted.patterns.items():
        part = found.patterns[experts]
        np.testing.assert_allclose(part.weight, other.weight)
        np.testing.assert_allclose(part.mean, other.mean, rtol=rtol, atol=rtol)
        np.testing.assert_allclose(part.scatter, other.scatter, rtol=rtol, atol=rtol * size)


def test_neither_threads_nor_blocks_change_the_result(monkeypatch):
    q, y = panel(3000, 4)
    whole = moments(q, y)
    monkeypatch.setattr(blockwise, "BLOCK", 256)
    monkeypatch.setattr(blockwise, "PIECE", 4)
    one, three = moments(q, y, threads=1), moments(q, y, threads=3)
    check_equal(one, three, 0)
    check_equal(one, whole, 1e-13)


@pytest.mark.parametrize("level", [0.0, -2.5, -6.0])
def test_single_precision_is_calculated_with_in_double(level):
    q, y = panel(20000, 6, level=level)
    q = q.astype(np.float32)
    single, double = (learn_dense(each, y, Request(beliefs=None)) for each in (q, q.astype(np.float64)))
    np.testing.assert_allclose(single.weights, double.weights, rtol=1e-13)


def test_missing_forecasts_and_weights_take_the_other_way():
    q, y = panel(60, 2)
    # There is room for all events of the default pool.
    assert learn_dense(q, y, Request()) is None
    assert learn_dense(q, y + 1, Request(beliefs=None)) is None
    assert learn_dense(q, y, Request(beliefs=None), prior=np.full(60, 0.4)) is None
    weighted = op.GaussianPool(beliefs=None).fit(q, y, sample_weight=1 + y)
    twice = op.GaussianPool(beliefs=None).fit(np.concatenate([q, q[y == 1]]), np.concatenate([y, y[y == 1]]))
    np.testing.assert_allclose(weighted.weights_, twice.weights_)
    # So many sets of experts who answered that rows are smaller.
    q, y = panel(60, 6)
    q[np.random.default_rng(0).random(q.shape) < 0.5] = np.nan
    assert learn_dense(q, y, Request(beliefs=None)) is None


@given(st.integers(1, 8), st.integers(0, 1000), st.sampled_from([2, 3, 5]), st.booleans())
def test_missing_forecasts_are_added_up_by_who_answered(n, seed, k, some_open):
    rng = np.random.default_rng(seed)
    t = 200
    q = rng.random((t, n)) if k == 2 else rng.dirichlet(np.ones(k), (t, n))
    q[seed % t] = 0.0 if k == 2 else np.eye(k)[seed % k]
    for _ in range(seed % 4):
        q[rng.integers(0, t) : rng.integers(0, t), rng.integers(0, n)] = np.nan
    y = rng.integers(-1 if some_open else 0, k, t)
    prior = rng.dirichlet(np.full(k, 5.0))
    found = dense_statistics(q, y, prior, 1e-3, names(n))
    assert found is not None
    wanted = Statistics.empty(names(n), k).add(logodds.log_ratios(q, prior, 1e-3), y)
    check_equal(found, wanted, 1e-9)


@pytest.mark.parametrize("structure", ["full", "common", "exchangeable", "independent"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_estimator_learns_the_same_where_forecasts_are_missing(structure, classes):
    q, y = panel(400, 4)
    rng = np.random.default_rng(1)
    if classes == 3:
        y = rng.integers(0, 3, 400)
        q = rng.dirichlet(np.ones(3), (400, 4)) + 0.4 * np.eye(3)[y][:, None]
        q /= q.sum(axis=2, keepdims=True)
    q[17, 1], q[100:200, 2], q[150:300, 0] = np.nan, np.nan, np.nan
    labels = np.array(["a", "b", "c"])[y] if classes == 3 else y
    dense = op.GaussianPool(structure, beliefs=None).fit(q, labels)
    given = Forecasts.from_array(q, y.tolist(), classes=range(classes))
    other = learn(given, structure=structure, beliefs=None)
    np.testing.assert_allclose(dense.weights_, other.weights, rtol=1e-6)
    np.testing.assert_allclose(dense.panel_.bias, other.panel.bias, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(dense.state_.counts, other.counts)
    np.testing.assert_allclose(dense.prior_, other.prior)
    assert dense.n_events_ == 400
    assert dense.classes_.tolist() == sorted(set(labels.tolist()))
    flat = op.GaussianPool(structure, beliefs=None).fit(q.reshape(400, -1).tolist(), labels, classes=dense.classes_)
    np.testing.assert_allclose(dense.predict_proba(q), flat.predict_proba(q.reshape(400, -1)), rtol=1e-6)


def test_whoever_is_always_right_is_found_where_others_are_missing():
    q, y = panel(200, 3)
    q[:, 0] = np.where(y == 1, 0.999 + 1e-4 * q[:, 1], 0.001 - 1e-4 * q[:, 1])
    q[50:90, 0] = np.nan
    # Too few to say so.
    q[:, 2] = np.where(np.arange(200) < 6, np.where(y == 1, 0.999, 0.001) + 1e-4 * q[:, 1], np.nan)
    dense = learn_dense(q, y, Request(structure="independent"))
    other = learn(Forecasts.from_array(q, y.tolist()), structure="independent")
    found = [[note.text for note in each.notes if note.code == "leakage"] for each in (dense, other)]
    assert found[0] == found[1] != []
    assert "expert_3" not in found[0][0]


@pytest.mark.parametrize("wrong", [[0.5, 0.5, np.nan], [0.6, 0.6, 0.6], [-0.1, 0.5, 0.6], [1.2, -0.1, -0.1]])
def test_what_is_no_forecast_over_classes_is_refused_as_ever(wrong):
    rng = np.random.default_rng(0)
    q, y = rng.dirichlet(np.ones(3), (60, 2)), rng.integers(0, 3, 60)
    q[4, 1] = wrong
    assert _refusal(q, y, beliefs=None) == _refusal(q.tolist(), y, beliefs=None)


def _refusal(q: object, y: np.ndarray, **options: object) -> str:
    with pytest.raises(op.OpinionPoolError) as error:
        op.GaussianPool(**options).fit(q, y)
    return str(error.value)


@pytest.mark.parametrize("wrong", [1.5, -0.1, np.inf])
def test_a_wrong_value_is_named_with_its_place(wrong, monkeypatch):
    monkeypatch.setattr(blockwise, "BLOCK", 64)
    q, y = panel(500, 2)
    fitted = op.GaussianPool(beliefs=None).fit(q, y).panel_
    q[400, 1] = wrong
    for work in (lambda: learn_dense(q, y, Request(beliefs=None)), lambda: fitted.pool(q)):
        with pytest.raises(ProbabilityError, match=r"at position \(400, 1\)"):
            work()


@pytest.mark.parametrize("extremes", [np.inf, 3.0])
@pytest.mark.parametrize("base_rate", [None, 0.2])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_pooled_in_blocks_as_one_by_one(extremes, base_rate, kind, monkeypatch):
    monkeypatch.setattr(blockwise, "BLOCK", 64)
    monkeypatch.setattr(blockwise, "PIECE", 2)
    rng = np.random.default_rng(3)
    q = rng.random((200, 4)).astype(kind)
    q[0], q[1], q[2, 1:], q[3] = 0.0, 1.0, np.nan, np.nan
    q[rng.random(q.shape) < 0.1] = np.nan
    dependence = 0.4 * np.ones((4, 4)) + 0.6 * np.eye(4)
    believed = op.Panel.exchangeable(1).settings.extremes
    believed = type(believed)(extremes, None if np.isinf(extremes) else np.linspace(-0.2, 0.2, 4)[:, None])
    panel = op.Panel([1.0, 0.5, 0.2, -0.1], dependence, bias=[0.1, 0.0, -0.3, 0.2], extremes=believed)
    # A prior for each event goes the general way.
    prior = np.full(200, 0.3)
    rate = None if base_rate is None else np.full(200, base_rate)
    wanted = panel.pool(q, prior, rate)
    np.testing.assert_allclose(panel.pool(q, 0.3, base_rate), wanted, rtol=1e-12)
    one_by_one = [float(panel.pool(row, 0.3, base_rate)) for row in q]
    np.testing.assert_allclose(one_by_one, wanted, rtol=1e-12)
    np.testing.assert_allclose(panel.pool(q.reshape(10, 20, 4), 0.3, base_rate), wanted.reshape(10, 20), rtol=1e-12)


def test_answers_in_parts(monkeypatch):
    q, y = panel(500, 3)
    pool = op.GaussianPool(beliefs=None).fit(q, y)
    whole = pool.predict_proba(q)
    monkeypatch.setattr("opinionpool.estimators.base.EVENTS", 64)
    np.testing.assert_allclose(pool.predict_proba(q), whole, rtol=1e-13)
    q[300, 2] = 2.0
    with pytest.raises(ProbabilityError, match=r"at position \(300, 2\)"):
        pool.predict_proba(q)


def test_memory_does_not_grow_with_the_events():
    q, y = panel(200_000, 10)
    # Libraries are looked for once.
    op.GaussianPool(beliefs=None).fit(q, y)
    tracemalloc.start()
    pool = op.GaussianPool(beliefs=None).fit(q, y)
    fitting = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    answers = pool.panel_.pool(q)
    pooling = tracemalloc.get_traced_memory()[1] - answers.nbytes
    tracemalloc.stop()
    assert fitting < 8e6
    assert pooling < 8e6


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("prior", [None, 0.3])
def test_the_default_pool_draws_the_same_sample_from_arrays(missing, prior, monkeypatch):
    monkeypatch.setattr(sampling, "EVENTS", 200)
    q, y = panel(900, 3)
    q[np.random.default_rng(5).random(q.shape) < missing] = np.nan
    outcomes = np.where(np.arange(900) % 9 == 0, np.nan, y)
    drawn = op.GaussianPool().fit(q, outcomes, prior=prior)
    other = op.GaussianPool().fit(q.tolist(), outcomes.tolist(), prior=prior)
    np.testing.assert_allclose(drawn.weights_, other.weights_, rtol=1e-9)
    np.testing.assert_allclose(drawn.panel_.bias, other.panel_.bias, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(drawn.prior_, other.prior_)
    np.testing.assert_array_equal(drawn.state_.counts, other.state_.counts)
    np.testing.assert_array_equal(drawn.state_.events, other.state_.events)
    assert [note.code for note in drawn.notes_].count("hyperparameters") == 1
    assert {note.text for note in drawn.notes_} == {note.text for note in other.notes_}
    q[700, 1] = 1.5
    with pytest.raises(ProbabilityError, match=r"at position \(700, 1\)"):
        op.GaussianPool().fit(q, outcomes)
