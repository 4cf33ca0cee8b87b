import time

import numpy as np
import pytest

from opinionpool.forecasts import Forecasts
from opinionpool.learning.duplicates import CONSTANT, FIRST, NEW, Duplicates
from opinionpool.pools.fit import fit_pool


@pytest.mark.parametrize("free", [1, 2])
@pytest.mark.parametrize("in_cells", [False, True])
def test_the_same_forecasts_on_the_same_events(free, in_cells):
    """By comparing all with all."""
    rng = np.random.default_rng(free)
    t, n = 3 * FIRST, 40
    base = rng.choice([-1.0, 0.0, 1.0, 2.0], (t, 6, free))
    base[rng.random((t, 6)) < 0.2] = np.nan
    q = base[:, rng.integers(0, 6, n)]
    # Some differ late, in a forecast or in the event that it is on; one never changes, one is silent.
    for i in range(0, n, 4):
        known = np.flatnonzero(~np.isnan(q[:, i, 0]))
        q[known[-1], i] += i % 3
    late = np.flatnonzero(~np.isnan(q[:, 1, 0]))[-1]
    q[[late, late - 1], 1] = q[[late - 1, late], 1]
    q[:, 5], q[:, 6] = 0.5, np.nan
    q[:, 7] = np.where(np.arange(t)[:, None] < 4, q[:, 7], np.nan)
    q[:, 8] = q[:, 7]
    names = tuple(map(str, range(n)))
    if in_cells:
        event, expert = np.nonzero(~np.isnan(q[..., 0]))
        found = Duplicates.among_cells(event, expert, q[event, expert], names)
    else:
        found = Duplicates.among(q, names)
    assert found.source[5] == CONSTANT
    assert found.source[6] == NEW
    # On fewer than five events nobody repeats anybody.
    assert found.source[7] != found.source[8]
    whole = [i for i in range(n) if i not in (5, 6, 7, 8)]
    for i in whole:
        for j in whole:
            assert (found.source[i] == found.source[j]) == np.array_equal(q[:, i], q[:, j], equal_nan=True)
    np.testing.assert_array_equal(found.source[found.first], np.arange(len(found.first)))
    assert 6 < len(found.first) < 30


def test_thousands_of_copies_and_constant_experts_take_no_time():
    """Copies share one weight without a matrix of all pairs of experts, whoever else is constant or new."""
    rng = np.random.default_rng(0)
    q = np.round(rng.random((5, 2000)) * 3) / 3
    q[rng.random(q.shape) < 0.05] = np.nan
    q[:, 0] = np.nan
    forecasts = Forecasts.from_array(q, [0, 1, 0, 1, 1])
    start = time.process_time()
    learned = fit_pool("gaussian", forecasts)
    learned.pool(np.where(rng.random((50, 2000)) < 0.1, np.nan, 0.3))
    assert time.process_time() - start < 2.0
    same = np.flatnonzero(Duplicates.among(q[..., None], forecasts.experts).source == 0)
    assert len(same) > 1
    np.testing.assert_allclose(learned.weights[same], learned.weights[same[0]], rtol=1e-12)
