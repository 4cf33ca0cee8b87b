"""Likelihoods of the same outcomes at many coefficients against one likelihood each, with a design written out."""

import numpy as np
import pytest

from opinionpool.estimation.blockwise import Likelihood
from opinionpool.estimation.class_events import ClassEvents
from opinionpool.logodds import metric


def some(k, t, n):
    rng = np.random.default_rng(k * t)
    weight = rng.integers(0, 3, t) * 0.5
    events = ClassEvents(rng.normal(size=(t, n, k - 1)), rng.normal(size=(t, k - 1)), rng.integers(0, k, t), weight)
    design = np.concatenate([np.broadcast_to(np.eye(k - 1), (t, k - 1, k - 1)), events.contrasts], axis=1)
    return events, design, rng


@pytest.mark.parametrize(("k", "t", "n"), [(2, 30, 3), (3, 40, 1), (5, 4500, 4), (12, 60, 3)])
def test_values_are_those_of_each_likelihood(k, t, n):
    events, design, rng = some(k, t, n)
    along = rng.normal(size=(4, events.size))
    # Some begin at the same place; some answers are next to certain.
    along[2], along[3] = along[1], 30.0 * along[3]
    plain = Likelihood.of(design, events.outcomes, events.offset, events.weight, False)
    found = events.values(along)
    for i, at in enumerate(along):
        wanted = plain.value(at)
        assert found.loss[i] / plain.events == pytest.approx(wanted.loss, rel=1e-11)
        assert found.gradient[i] / plain.events == pytest.approx(wanted.gradient, abs=1e-12)
        assert found.hessian[i] / plain.events == pytest.approx(wanted.hessian, abs=1e-12)


@pytest.mark.parametrize(("k", "t", "n"), [(3, 40, 2), (5, 5000, 3)])
def test_products_are_in_the_metric_of_log_ratios(k, t, n):
    events, design, rng = some(k, t, n)
    size = rng.random((2, t))
    wanted = np.einsum("ft,tqi,ij,trj->fqr", size, design, metric(k), design, optimize=True)
    assert events.products(size) == pytest.approx(wanted, rel=1e-9, abs=1e-9)
