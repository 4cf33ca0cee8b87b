"""Steps of Newton's method without sets of events, against those of a likelihood without them."""

from dataclasses import replace

import numpy as np
import pytest

from opinionpool.estimation.left_out import LeftOut
from opinionpool.estimation.likelihood import Design, value


@pytest.mark.parametrize(("k", "t", "f", "kept", "sizes"), [(3, 60, 6, 4, 12), (5, 90, 30, 30, 10), (2, 40, 3, 3, 4)])
def test_a_step_without_each_set(k, t, f, kept, sizes):
    """Also where one set is most of all, and where events are fewer than coefficients."""
    rng, d = np.random.default_rng(k), k - 1
    member = rng.integers(0, sizes, t)
    member[: t // 2] = 0
    design = Design(
        np.empty((0, d, t)),
        rng.normal(size=(f, t)),
        rng.normal(size=(d, t)),
        rng.integers(0, k, t),
        rng.random(t),
        basis=rng.normal(size=(d, d)),
    )
    at, precision = 0.2 * rng.normal(size=f * d), 4.0 * rng.random(kept * d) + 0.1
    at[kept * d :] = 0.0
    sets = [np.flatnonzero(member == g) for g in range(sizes)]
    found = LeftOut(design, sets, at).moved(precision)
    for rows in sets:
        p, weight = kept * d, design.weight.copy()
        weight[rows] = 0.0
        without = value(replace(design, weight=weight), at[None])
        hessian = without.hessian[0, :p, :p] + np.diag(precision)
        after = at.copy()
        after[:p] -= np.linalg.solve(hessian, without.gradient[0, :p] + precision * at[:p])
        assert found[rows] == pytest.approx(design.ratios(after[None])[0].T[rows], abs=1e-9)
