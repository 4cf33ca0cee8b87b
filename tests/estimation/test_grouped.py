"""Modes of shared coefficients and those of groups, beside one dense design."""

import numpy as np
import pytest

from opinionpool.estimation.anchor import Anchor
from opinionpool.estimation.grouped import Both, GroupedEvents
from opinionpool.estimation.likelihood import Design
from opinionpool.estimation.newton import Quadratic, posterior_modes
from opinionpool.logodds import metric

# K - 1, shared coefficients, those of a group, events, groups, events in none.
SHAPES = [(1, 3, 2, 40, 3, 5), (2, 4, 3, 30, 4, 0), (1, 6, 2, 5, 3, 0), (1, 0, 2, 50, 4, 3), (1, 3, 0, 20, 2, 1)]
SHAPES += [(1, 7, 8, 300, 9, 0), (3, 5, 4, 100, 9, 3), (1, 4, 0, 30, 1, 10), (2, 4, 0, 30, 1, 5), (1, 4, 2, 30, 1, 10)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("anchored", [False, True])
def test_mode_and_covariance_are_those_of_one_design(shape, anchored):
    d, p, q, t, groups, outside = shape
    rng = np.random.default_rng([*shape, anchored])
    sizes = rng.multinomial(t - outside - groups, np.full(groups, 1 / groups)) + 1
    first = outside + np.r_[0, np.cumsum(sizes)[:-1]]
    shared, own = rng.normal(size=(t, d, p)), rng.normal(size=(t, d, q))
    outcomes, offset = rng.integers(0, d + 1, t), rng.normal(size=(t, d))
    weight = rng.integers(1, 4, t).astype(float)
    anchor = Anchor(*rng.random((2, t)) * 0.1, rng.normal(size=(t, d))) if anchored else None
    events = GroupedEvents(shared, own, first, outcomes, offset, weight, anchor)
    found = events.mode()
    design = np.zeros((t, p + groups * q, d))
    design[:, :p] = shared.swapaxes(1, 2)
    for g in range(groups):
        rows = slice(first[g], first[g] + sizes[g])
        design[rows, p + g * q : p + (g + 1) * q] = own[rows].swapaxes(1, 2)
    pull = None
    if anchor is not None:
        inner, both = metric(d + 1), anchor.own + anchor.common
        curvature = np.einsum("t,tpk,kl,tql->pq", both, design, inner, design)
        pull = Quadratic(
            curvature[None], np.einsum("t,tpk,kl,tl->p", anchor.common, design, inner, anchor.distance)[None]
        )
    (dense,) = posterior_modes(Design.of(design, outcomes, offset, weight), pull=pull)
    both = np.r_[found.coefficients.shared, found.coefficients.own.ravel()]
    np.testing.assert_allclose(both, dense.coefficients, atol=1e-9)
    assert found.evidence == pytest.approx(dense.log_marginal_likelihood, abs=1e-5)
    common, beside, covariance = found.precision.covariance
    np.testing.assert_allclose(common, dense.covariance[:p, :p], atol=1e-6)
    for g in range(groups):
        mine = slice(p + g * q, p + (g + 1) * q)
        np.testing.assert_allclose(beside[g], dense.covariance[mine, :p], atol=1e-6)
        np.testing.assert_allclose(covariance[g], dense.covariance[mine, mine], atol=1e-6)
    begun = events.mode(Both(rng.normal(size=p), rng.normal(size=(groups, q))))
    np.testing.assert_allclose(begun.coefficients.own, found.coefficients.own, atol=1e-8)


def test_many_small_groups_are_summed_in_parts(monkeypatch):
    rng = np.random.default_rng(1)
    t, groups = 400, 90
    first = np.sort(rng.choice(np.arange(1, t), groups, replace=False))
    data = rng.normal(size=(t, 1, 4)), rng.normal(size=(t, 1, 3)), first, rng.integers(0, 2, t)
    events = GroupedEvents(*data, np.zeros((t, 1)), np.ones(t))
    whole = events.mode()
    monkeypatch.setattr("opinionpool.estimation.grouped._PRODUCTS", 200)
    parts = events.mode()
    np.testing.assert_allclose(parts.coefficients.own, whole.coefficients.own, atol=1e-12)
    assert parts.evidence == pytest.approx(whole.evidence, abs=1e-10)
