"""Forecasts that speak against what happened."""

import numpy as np
import pytest

from opinionpool.forecasts import Forecasts
from opinionpool.learning.leakage import contrary_events
from opinionpool.pools.fit import fit_pool
from opinionpool.pools.registry import POOLS

LABELS = {2: ("ok", "fraud"), 3: ("negative", "neutral", "positive"), 5: tuple("abcde")}


def simulated(rng, events, classes, truth=1.3, beside=0.0):
    """Three experts' probabilities, (T, 3, K), and outcomes; the first class is `beside` too likely, in log-odds."""
    y = rng.integers(0, classes, events)
    logs = rng.normal(size=(events, 3, classes)) + truth * np.eye(classes)[y][:, None]
    logs[..., 0] += beside
    q = np.exp(logs)
    return q / q.sum(axis=2, keepdims=True), y


def forecasts(q, y, labels=None):
    k = q.shape[2]
    y = y if labels is None else [labels[code] for code in y]
    return Forecasts.from_array(q[..., 1] if k == 2 else q, y, classes=labels or tuple(range(k)))


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        (name, k)
        for name, pool in POOLS.items()
        if not pool.timed
        for k in (2, 3)
        if (name, k) not in {("beta-linear", 3), ("dawid-skene", 3)}
    ],
)
def test_every_pool_notes_labels_in_another_order(name, classes):
    q, y = simulated(np.random.default_rng(1), 200, classes)
    right = forecasts(q, y, LABELS[classes])
    wrong = forecasts(q[..., [1, 0, 2][:classes]], y, LABELS[classes])
    assert "contrary" not in {note.code for note in fit_pool(name, right).notes}
    assert "contrary" in {note.code for note in fit_pool(name, wrong).notes}


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_neither_chance_nor_bias_is_taken_for_another_order(classes):
    rng = np.random.default_rng(2)
    for _ in range(200):
        events = int(rng.integers(4, 100))
        assert not contrary_events(forecasts(*simulated(rng, events, classes, truth=0.0)))
        assert not contrary_events(forecasts(*simulated(rng, events, classes, truth=0.5, beside=3.0)))


def test_of_many_classes_there_are_more_orders_than_floats_count():
    rng = np.random.default_rng(0)
    f = Forecasts.from_array(rng.dirichlet(np.ones(200), (30, 2)), rng.integers(0, 200, 30), classes=range(200))
    assert contrary_events(f) == 0


@pytest.mark.parametrize("events", [4, 5, 6, 10, 15, 30, 100])
def test_two_values_that_happen_to_be_wrong_each_time_are_no_evidence_until_that_is_improbable(events):
    rng = np.random.default_rng(events)
    alarms = 0
    for _ in range(1000):
        y = rng.integers(0, 2, events)
        alarms += contrary_events(Forecasts.from_array(rng.choice([0.1, 0.9], (events, 1)), y, classes=(0, 1))) > 0
    assert alarms <= 3
    y = np.arange(12) % 2
    assert contrary_events(Forecasts.from_array(np.where(y == 1, 0.1, 0.9)[:, None], y)) == 12


def test_forecasts_that_speak_against_outcomes_are_seen_in_any_order_of_events():
    q = np.tile([0.9, 0.1], 3000)
    y = np.where(np.arange(6000) % 3 == 0, q > 0.5, q < 0.5).astype(int)
    order = np.random.default_rng(0).permutation(6000)
    for rows in (np.arange(6000), order):
        assert contrary_events(Forecasts.from_array(q[rows, None], y[rows])) == 6000
