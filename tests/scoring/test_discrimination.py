"""Areas under the curve of many experts against the one-at-a-time function."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.metrics import roc_auc_score

from opinionpool.errors import ArgumentError
from opinionpool.forecasts import Forecasts
from opinionpool.scoring.reliability import areas


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_against_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    x = rng.choice([0, 0.1, 0.5, 0.9, 1], size=(30, 4))
    x[rng.random(x.shape) < 0.4] = np.nan
    y = rng.choice([0, 1, np.nan], size=30)
    found = areas(Forecasts.from_array(x, y))
    for i in range(4):
        used = ~np.isnan(x[:, i]) & ~np.isnan(y)
        if len(set(y[used])) == 2:
            assert found[i] == pytest.approx(roc_auc_score(y[used], x[used, i]))
        else:
            assert np.isnan(found[i])


def test_nobody_and_more_classes():
    assert np.isnan(areas(Forecasts.from_array([[np.nan], [0.3]]))).all()
    with pytest.raises(ArgumentError, match="there are 3"):
        areas(Forecasts.from_array(np.full((1, 1, 3), 1 / 3), classes="abc"))
