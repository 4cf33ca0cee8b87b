import numpy as np
import pytest

from opinionpool.estimation.sampling import event_contents, name_keys, row_contents
from opinionpool.forecasts import Forecasts


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_rows_of_an_array_are_those_of_forecasts(missing):
    rng = np.random.default_rng(8)
    q = rng.random((7_000, 20))
    q[:3] = 0.0
    q[3:5] = -0.0
    q[rng.random(q.shape) < missing] = np.nan
    found = row_contents(q, name_keys(f"expert_{i + 1}" for i in range(20)))
    np.testing.assert_array_equal(found, event_contents(Forecasts.from_array(q)))
    np.testing.assert_array_equal(
        found, row_contents(np.asfortranarray(q), name_keys(f"expert_{i + 1}" for i in range(20)))
    )
    assert len(np.unique(found)) == len(np.unique(q + 0.0, axis=0))


def test_grids_do_not_collide():
    """Forecasts that are all multiples of a power of two, or of a tenth."""
    keys = name_keys(["ann", "bob", "cyd", "dan", "eve"])
    for values in (np.arange(9) / 8.0, 2.0 ** -np.arange(9), np.arange(9) / 10.0):
        grid = np.array(np.meshgrid(*[values] * 5)).reshape(5, -1).T
        assert len(np.unique(row_contents(grid, keys))) == len(grid)
