"""Partitions that are summed up apart and merged: the same as one process, however the rows were dealt out."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import opinionpool as op
from opinionpool.spark.functions import _answers, _check_about
from opinionpool.spark.layout import Layout
from opinionpool.spark.summary import Summary, merge_states, state_of

EXPERTS = ("ann", "bob", "cy", "dee")
TOLERANCE = 1e-12


class Table:
    """Forecasts as a wide table, from which partitions are taken."""

    def __init__(self, t=3000, prior=False, dated=False):
        rng = np.random.default_rng(1)
        panel = op.Panel.exchangeable(len(EXPERTS), correlation=0.4, accuracy=0.6)
        self.X, self.y = panel.simulate(t, prior=0.5, seed=1)
        self.ids = [f"event {i}" for i in range(t)]
        own = rng.uniform(0.2, 0.8, t)
        self.prior = np.where(rng.random(t) < 0.3, np.nan, own) if prior else None
        self.times = np.datetime64("2024-01-01", "us") + np.arange(t) * np.timedelta64(1, "h") if dated else None
        self.groups = np.array([f"league {i % 5}" for i in range(t)]) if dated else None
        self.topics = np.array(["home", "away", None], object)[np.arange(t) % 3] if dated else None

    def layout(self):
        roles = ["event", "outcome", *["prior"] * (self.prior is not None)]
        roles += ["time", "group", "topic"] if self.times is not None else []
        return Layout(EXPERTS, (0, 1), False, False, tuple(roles), ())

    def batch(self, rows):
        cells = [[None if np.isnan(p).any() else p.tolist() for p in row] for row in self.X[rows]]
        columns = {"p": pa.array(cells)}
        columns["event"] = pa.array([self.ids[i] for i in rows])
        columns["outcome"] = pa.array(self.y[rows])
        if self.prior is not None:
            columns["prior"] = pa.array(self.prior[rows], from_pandas=True)
        if self.times is not None:
            columns["time"] = pa.array(self.times[rows])
            columns["group"] = pa.array(self.groups[rows])
            columns["topic"] = pa.array(self.topics[rows])
        return pa.RecordBatch.from_pydict(columns)

    def summarized(self, parts, **settings):
        """The stream of partitions, each in several batches, and the stages in which they are merged."""
        make = partial(Summary, EXPERTS, settings)
        states = [state_of(map(self.batch, np.array_split(rows, 3)), self.layout(), make) for rows in parts]
        return merged(states).stream(by_name=False)

    def one_process(self, **settings):
        stream = op.Stream(**settings)
        stream.add(op.Forecasts.from_array(self.X, self.y, events=self.ids, experts=EXPERTS, prior=self.prior))
        return stream


def merged(states):
    """The states of all partitions, merged in stages of four."""
    numbered = list(enumerate(states))
    while len(numbered) > 1:
        groups = [numbered[i : i + 4] for i in range(0, len(numbered), 4)]
        numbered = []
        for group in groups:
            rows = pa.RecordBatch.from_pydict(
                {"part": pa.array([part for part, _ in group]), "state": pa.array([s for _, s in group], pa.binary())}
            )
            (row,) = merge_states([rows])
            numbered.append((len(numbered), row.column("state")[0].as_py()))
    found = pickle.loads(numbered[0][1])
    if isinstance(found, op.OpinionPoolError):
        raise found
    return found


def parted(t):
    """Rows by partition, shuffled."""
    return np.array_split(np.random.default_rng(9).permutation(t), 23)


@pytest.mark.parametrize("given", [0.3, None])
def test_priors_of_events(given):
    table = Table(prior=True)
    if given is None:
        table.prior = np.where(np.isnan(table.prior), 0.4, table.prior)
    stream, one = (make(prior=given) for make in (partial(table.summarized, parted(3000)), table.one_process))
    a, b = (s.learn(beliefs=None, structure="independent").pool(table.X[:100], 0.4) for s in (stream, one))
    np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE)


def test_priors_of_some_events_only():
    table = Table(t=200, prior=True)
    with pytest.raises(op.ProbabilityError, match=r"event 'event \d+' has .* give every event one, or none"):
        table.summarized(parted(200))


def test_a_state_is_as_small_as_its_sample():
    rng = np.random.default_rng(0)
    t, n = 25_000, 20
    batch = {"p": rng.uniform(0.1, 0.9, (t, n)).tolist()}
    batch |= {"event": [f"event-{i}" for i in range(t)], "outcome": rng.integers(0, 2, t)}
    names = tuple(f"expert {i}" for i in range(n))
    layout = Layout(names, (0, 1), False, False, ("event", "outcome"), ())
    state = state_of([pa.RecordBatch.from_pydict(batch)], layout, partial(Summary, names, {}))
    # 20,000 events of 20 forecasts and a key, 8 bytes each, ids, and the sums.
    assert 20_000 * 21 * 8 < len(state) < 20_000 * 21 * 8 + 600_000


def test_an_event_that_stands_twice_is_refused():
    table = Table(t=50)
    with pytest.raises(op.DuplicateError, match="'event 7' has several"):
        table.summarized([np.arange(20), np.arange(7, 8), np.arange(20, 50)])


def test_the_first_error_in_the_order_of_partitions_is_raised():
    table = Table(t=100)
    table.X[80, 1], table.X[30, 2] = 1.5, 80.0
    with pytest.raises(op.ProbabilityError, match="'cy' on event 'event 30' is 80; a percentage"):
        table.summarized(np.array_split(np.arange(100), 10))


def test_nothing_resolved_and_nothing_at_all():
    table = Table(t=20)
    make = partial(Summary, EXPERTS, {})
    assert state_of([], table.layout(), make) is None
    batch = table.batch(np.arange(20)).set_column(2, "outcome", pa.nulls(20, pa.int64()))
    stream = pickle.loads(state_of([batch], table.layout(), make)).stream(by_name=False)
    assert (stream.count, stream.experts) == (0, EXPERTS)


def test_topics_are_learned_and_asked_for_as_in_one_process():
    table = Table(t=900, dated=True)
    flip = (table.topics == "home") & (np.arange(900) % 2 == 0)
    table.y = np.where(flip, 1.0, table.y)
    stream = table.summarized(parted(900))
    topics = [each or "" for each in table.topics]
    one = op.Stream()
    forecasts = op.Forecasts.from_array(table.X, table.y.tolist(), events=table.ids, experts=EXPERTS, topics=topics)
    one.add(replace(forecasts, times=table.times, groups=table.groups))
    state, other = stream.learn(), one.learn()
    assert np.abs(other.topics.intercept).max() > 0.3
    expected = other.pool(table.X, topics=topics)
    np.testing.assert_allclose(state.pool(table.X, topics=topics), expected, rtol=0, atol=TOLERANCE)
    layout = Layout(EXPERTS, (0, 1), False, False, ("event", "topic"), ("event",))
    batch = table.batch(np.arange(900)).append_column("k0", pa.array(table.ids))
    (answers,) = _answers([batch], layout=layout, state=other, prior=None, base_rate=None, level=0.9)
    np.testing.assert_array_equal(answers.column("probability"), expected)
    low, high = other.interval(table.X, topics=topics)
    np.testing.assert_array_equal(answers.column("low"), low)
    np.testing.assert_array_equal(answers.column("high"), high)


def test_nothing_that_a_pool_has_learned_is_left_out_without_a_word():
    X, y = Table(t=200).X, Table(t=200).y
    plain = op.GaussianPool().fit(X, y).state_
    topical = op.GaussianPool().fit(X, y, topics=["home", "away"] * 100).state_
    made = np.datetime64("2025-01-01") - np.arange(800).reshape(200, 4).astype("timedelta64[h]")
    timed = op.GaussianPool().fit(X, y, times=made).state_
    _check_about(plain, None)
    _check_about(topical, "league")
    for state, topic, message in (
        (topical, None, "topic= names the column"),
        (plain, "league", "nothing about topics; leave out topic='league'"),
        (timed, None, "go stale, .* no times of forecasts; use one"),
    ):
        with pytest.raises(op.ArgumentError, match=message):
            _check_about(state, topic)
