"""Whatever a fit produces can be saved, and answers with the same bits when it is loaded."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from opinionpool.estimators.files import load, save
from opinionpool.forecasts import Forecasts
from opinionpool.pools.fit import fit_pool

pytestmark = pytest.mark.filterwarnings("ignore::opinionpool.OpinionPoolWarning")


def drawn(seed):
    """Forecasts of a random kind: independent or shared errors, two classes or three, gaps, copies, topics, groups."""
    rng = np.random.default_rng(seed)
    n, t, k = int(rng.integers(1, 9)), int(rng.choice([1, 5, 20, 60, 120, 200])), int(rng.choice([2, 2, 2, 3]))
    y, accuracy = rng.integers(0, k, t), rng.uniform(0.2, 2.0, n)[:, None]
    common = rng.choice([0.0, 0.0, 0.6])
    noise = np.sqrt(1 - common) * rng.normal(size=(t, n, k)) + np.sqrt(common) * rng.normal(size=(t, 1, k))
    q = np.exp(accuracy * (np.arange(k) == y[:, None])[:, None] * 2.0 + np.sqrt(accuracy) * noise)
    q /= q.sum(axis=2, keepdims=True)
    if rng.random() < 0.3:
        q[:, -1] = q[:, 0]
    if rng.random() < 0.3:
        q[rng.random((t, n)) < 0.3] = np.nan
    more = {}
    if rng.random() < 0.2:
        more["topics"] = rng.choice(["a", "b", "c"], t).tolist()
    if rng.random() < 0.2:
        more["groups"] = rng.choice(["x", "y", "z", "w"], t).tolist()
    outcomes = [None if rng.random() < 0.1 else int(label) for label in y]
    return Forecasts.from_array(q[..., 1] if k == 2 else q, outcomes, classes=range(k), **more)


@settings(max_examples=25)
@example(seed=219)
@given(seed=st.integers(0, 2**32 - 1))
def test_it_can_be_saved(seed):
    forecasts = drawn(seed)
    learned = fit_pool("gaussian", forecasts)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pool.json"
        save(learned, path)
        assert load(path).pool_forecasts(forecasts).tobytes() == learned.pool_forecasts(forecasts).tobytes()
