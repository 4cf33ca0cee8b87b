"""Rates of groups from partitions that are counted apart and merged: those of one process."""

import pickle
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import opinionpool as op
from opinionpool.spark.layout import Layout
from opinionpool.spark.summary import merge_states, state_of
from opinionpool.spark.tally import Tally

EXPERTS = ("ann", "bob", "cy")


def batch(X, y, groups):
    columns = {"p": pa.array([[None if np.isnan(p) else p for p in row] for row in X])}
    columns["event"] = pa.array([f"e{i}" for i in range(len(X))])
    columns["outcome"] = pa.array(y, from_pandas=True)
    columns["group"] = pa.array(groups)
    return pa.RecordBatch.from_pydict(columns)


@pytest.mark.parametrize("labels", ["random", "selected"])
def test_partitions_are_as_one_process(labels):
    rng = np.random.default_rng(0)
    groups = np.array(["new", "old", "cheap", None])[rng.integers(4, size=1200)]
    X, y = op.Panel.exchangeable(3, correlation=0.3, accuracy=0.8).simulate(1200, prior=0.4, seed=1)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.where(rng.random(1200) < 0.2, y, np.nan)
    f = op.Forecasts.from_array(X, [None if np.isnan(each) else int(each) for each in y], experts=EXPERTS)
    state = op.GaussianPool().fit(f).state_
    one = op.rates(state, f, [each or "(none)" for each in groups], labels=labels)
    layout = Layout(EXPERTS, (0, 1), False, False, ("event", "outcome", "group"), ())
    cuts = np.split(np.arange(1200), [50, 51, 600])
    states = [state_of([batch(X[rows], y[rows], groups[rows])], layout, partial(Tally, state, None)) for rows in cuts]
    rows = pa.RecordBatch.from_arrays([pa.array(range(4)), pa.array(states, pa.binary())], ["part", "state"])
    (merged,) = merge_states([rows])
    found = pickle.loads(merged.column("state")[0].as_py()).rates(labels, 0.9)
    assert found.groups_ == one.groups_ == ("(none)", "cheap", "new", "old")
    assert found.rate_ == pytest.approx(one.rate_, abs=1e-9)
    assert np.array(found.interval_) == pytest.approx(np.array(one.interval_), abs=1e-9)
    assert (found.events_.tolist(), found.resolved_.tolist()) == (one.events_.tolist(), one.resolved_.tolist())
    assert found.difference("new", "old") == pytest.approx(one.difference("new", "old"), abs=1e-9)
