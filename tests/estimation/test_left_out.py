"""Steps of Newton's method without sets of events, against those of a likelihood without them."""

import numpy as np
import pytest

from opinionpool.estimation.feature_likelihood import FeatureLikelihood
from opinionpool.estimation.left_out import LeftOut


@pytest.mark.parametrize(("k", "t", "f", "kept", "sizes"), [(3, 60, 6, 4, 12), (5, 90, 30, 30, 10), (2, 40, 3, 3, 4)])
def test_a_step_without_each_set(k, t, f, kept, sizes):
    """Also where one set is most of all, and where events are fewer than coefficients."""
    rng, d = np.random.default_rng(k), k - 1
    member = rng.integers(0, sizes, t)
    member[: t // 2] = 0
    likelihood = FeatureLikelihood(
        rng.normal(size=(t, f)), rng.normal(size=(d, d)), rng.integers(0, k, t), rng.normal(size=(t, d)), rng.random(t)
    )
    at, precision = 0.2 * rng.normal(size=f * d), 4.0 * rng.random(kept * d) + 0.1
    at[kept * d :] = 0.0
    sets = [np.flatnonzero(member == g) for g in range(sizes)]
    found = LeftOut(likelihood, sets, at).moved(precision)
    for rows in sets:
        others = np.setdiff1d(np.arange(t), rows)
        some = [part[others] for part in (likelihood.features, likelihood.outcomes, likelihood.offset)]
        without = FeatureLikelihood(some[0], likelihood.turn, *some[1:], likelihood.weight[others])
        value, p = without.value(at), kept * d
        hessian = without.events * value.hessian[:p, :p] + np.diag(precision)
        after = at.copy()
        after[:p] -= np.linalg.solve(hessian, without.events * value.gradient[:p] + precision * at[:p])
        assert found[rows] == pytest.approx(likelihood.ratios(after)[rows], abs=1e-9)
