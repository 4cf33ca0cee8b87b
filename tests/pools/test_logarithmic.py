"""Forecasts that point away from what happened are said to, in every pool that turns them round."""

import numpy as np
import pytest

from opinionpool.forecasts import Forecasts
from opinionpool.pools.fit import fit_pool

RNG = np.random.default_rng(3)
Y = RNG.integers(0, 2, 60)
X = 1 / (1 + np.exp(1.2 * (2 * Y - 1)[:, None] + RNG.normal(size=(60, 2))))


@pytest.mark.filterwarnings("ignore::opinionpool.OpinionPoolWarning")
@pytest.mark.parametrize("name", ["gaussian", "log", "recalibrated"])
def test_inverted_forecasts_are_noted(name):
    learned = fit_pool(name, Forecasts.from_array(X, Y))
    assert "contrary" in {note.code for note in learned.notes}
    assert learned.pool([0.9, 0.9]) < 0.5 < learned.pool([0.1, 0.1])
    assert "contrary" not in {note.code for note in fit_pool(name, Forecasts.from_array(1 - X, Y)).notes}
    assert "contrary" not in {note.code for note in fit_pool(name, Forecasts.from_array(X[:8], Y[:8])).notes}
