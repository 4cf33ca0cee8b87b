"""What experts who round mean by 0, of more than two classes."""

import numpy as np
import pytest

import opinionpool as op
from opinionpool.forecasts import Forecasts
from opinionpool.learning.learn import learn


def rounding(happens, *, events=120, tenths=True, seed=0):
    """Two experts of three classes; what both call 0 has this chance."""
    rng = np.random.default_rng(seed)
    p = np.where(rng.random((events, 1)) < 0.5, [[0.7, 0.3, 0.0]], [[0.3, 0.7, 0.0]]) * (1.0 - happens)
    p[:, 2] = happens
    y = np.array([rng.choice(3, p=each) for each in p])
    q = p[:, None] + np.where(rng.random((events, 2, 1)) < 0.3, [[[0.1, -0.1, 0.0]]], 0.0)
    q[..., 2] = 0.0 if tenths else 1e-6
    return Forecasts.from_array(q / q.sum(axis=-1, keepdims=True), y, classes=range(3))


@pytest.mark.parametrize(("happens", "low", "high"), [(0.04, 0.008, 0.1), (0.0, 0.0, 0.01)])
def test_zeros_of_experts_who_round_count_as_outcomes_bear_out(happens, low, high, tmp_path):
    f = rounding(happens)
    learned = learn(f)
    assert low <= learned.pool([[0.7, 0.3, 0.0], [0.7, 0.3, 0.0]])[2] <= high
    assert [note.count for note in learned.notes if note.code == "rounding"] == [2]
    assert learned.pool(f.X) == pytest.approx(learned.pool_forecasts(f), abs=1e-12)
    op.save(op.GaussianPool().fit(f.X, f.outcomes, classes=range(3)), tmp_path / "pool.json")
    assert op.load(tmp_path / "pool.json").predict_proba(f.X) == pytest.approx(learned.pool(f.X), abs=1e-9)


def test_zeros_stay_where_nobody_rounds_or_classes_are_two():
    assert learn(rounding(0.04, tenths=False)).votes is None
    f = rounding(0.04)
    two = Forecasts.from_array(f.X[..., 0], (f.outcomes == 0).astype(int))
    assert learn(two).votes is None
