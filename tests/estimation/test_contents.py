import numpy as np

from opinionpool.estimation.sampling import name_keys, row_contents


def test_grids_do_not_collide():
    """Forecasts that are all multiples of a power of two, or of a tenth."""
    keys = name_keys(["ann", "bob", "cyd", "dan", "eve"])
    for values in (np.arange(9) / 8.0, 2.0 ** -np.arange(9), np.arange(9) / 10.0):
        grid = np.array(np.meshgrid(*[values] * 5)).reshape(5, -1).T
        assert len(np.unique(row_contents(grid, keys))) == len(grid)
