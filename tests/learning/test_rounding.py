"""What experts who round mean by 0."""

from dataclasses import replace

import numpy as np
import pytest

import opinionpool as op
from opinionpool.forecasts import Forecasts
from opinionpool.learning.learn import learn
from opinionpool.logodds import expit, logit


def rounding(classes, lowest=0.0):
    """An expert who says tenths and one who says fifths, and for what is least probable 0, or `lowest`."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 11, (120, 1)) * [0.1, 0.0] + np.array([0.0, 0.2]) * rng.integers(0, 6, (120, 1))
    q = np.stack([first, 1.0 - first, np.zeros((120, 2))][:classes], axis=2)
    y = np.array([rng.choice(classes, p=0.9 * each.mean(axis=0) + 0.1 / classes) for each in q])
    q = np.maximum(q, lowest) / np.maximum(q, lowest).sum(axis=2, keepdims=True)
    return Forecasts.from_array(q[..., 1] if classes == 2 else q, y, classes=range(classes))


@pytest.mark.parametrize("classes", [2, 3])
def test_a_zero_is_the_mean_of_what_is_rounded_to_it(classes, tmp_path):
    f = rounding(classes)
    learned = learn(f)
    below = (np.arange(100_000)[:, None] + 0.5) / 100_000 * [0.05, 0.1]
    zero = expit(logit(below).mean(axis=0))
    assert learned.coding.zero.ravel() == pytest.approx(zero, rel=1e-4)
    meant = np.where(f.X == 0, zero.reshape(2, *[1] * (classes > 2)), f.X)
    meant = meant / meant.sum(axis=2, keepdims=True) if classes > 2 else np.where(f.X == 1, 1.0 - zero, meant)
    assert learned.pool(f.X) == pytest.approx(replace(learned, coding=None).pool(meant), rel=1e-3)
    assert learned.pool(f.X) == pytest.approx(learned.pool_forecasts(f), abs=1e-12)
    op.save(op.GaussianPool().fit(f.X, f.outcomes, classes=range(classes)), tmp_path / "pool.json")
    found = op.load(tmp_path / "pool.json").predict_proba(f.X)
    assert (found[:, 1] if classes == 2 else found) == pytest.approx(learned.pool(f.X), abs=1e-9)
    assert learn(f, beliefs=None).coding is None
    assert learn(rounding(classes, lowest=1e-5)).coding is None
