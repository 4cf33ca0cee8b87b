"""Modes in terms of the events: wherever the search begins, the slope is 0 where it ends."""

import numpy as np
import pytest
from scipy.special import expit

from opinionpool.estimation.anchor import Anchor
from opinionpool.estimation.dual import SMALL, binary_mode


# Of few events each step has a factor of its own, of many the first serves for several.
@pytest.mark.parametrize(("t", "p"), [(30, 50), (SMALL + 20, 300)])
@pytest.mark.parametrize("anchored", [False, True])
def test_the_slope_is_zero_wherever_the_search_begins(t, p, anchored):
    rng = np.random.default_rng(3)
    design, y = 2.0 * rng.normal(size=(t, p)), rng.integers(0, 2, t)
    offset, weight = rng.normal(size=t), rng.integers(1, 4, t).astype(float)
    anchor = Anchor.at(offset[:, None] + 1.0, offset[:, None], weight) if anchored else None
    found = [
        binary_mode(design @ design.T, y, offset, weight, start, anchor)
        for start in (None, np.zeros(t), 5.0 * rng.normal(size=t))
    ]
    theta = design.T @ found[0].amounts
    slope = weight * (expit(offset + design @ theta) - y)
    if anchor is not None:
        slope += (anchor.own + anchor.common) * (design @ theta) + anchor.common * anchor.distance[:, 0]
    np.testing.assert_allclose(design.T @ slope + theta, 0.0, atol=1e-9)
    for other in found[1:]:
        np.testing.assert_allclose(other.amounts, found[0].amounts, atol=1e-10)
        assert other.evidence == pytest.approx(found[0].evidence, abs=1e-9)
    # By the coefficients: all curvatures where the mode is.
    probability = expit(offset + design @ theta)
    precision = np.eye(p) + design.T @ (design * (weight * probability * (1.0 - probability))[:, None])
    likelihood = -weight @ np.logaddexp(0.0, np.where(y == 1, -1.0, 1.0) * (offset + design @ theta))
    if anchor is None:
        evidence = likelihood - theta @ theta / 2.0 - np.linalg.slogdet(precision)[1] / 2.0
        assert found[0].evidence == pytest.approx(evidence, abs=1e-8)


def test_from_far_where_events_outnumber_coefficients_and_are_separated():
    """Curvatures then change by orders of magnitude on the way, and some amounts move no log-odds."""
    rng = np.random.default_rng(1)
    t, p = SMALL + 43, 120
    design = 3.0 * rng.normal(size=(t, p)) * np.exp(rng.normal(size=p)) + 4.0 * rng.normal(size=(t, 1))
    y, offset, weight = (design[:, 0] > 0).astype(int), 10.0 * rng.normal(size=t), np.ones(t)
    for start in (None, 30.0 * rng.normal(size=t), np.full(t, 300.0)):
        theta = design.T @ binary_mode(design @ design.T, y, offset, weight, start).amounts
        np.testing.assert_allclose(design.T @ (expit(offset + design @ theta) - y) + theta, 0.0, atol=1e-8)
