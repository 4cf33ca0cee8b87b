"""Modes in terms of the events: wherever the search begins, the slope is 0 where it ends."""

import numpy as np
import pytest
from scipy.special import expit

from opinionpool.estimation.anchor import Anchor
from opinionpool.estimation.dual import binary_mode


@pytest.mark.parametrize("anchored", [False, True])
def test_the_slope_is_zero_wherever_the_search_begins(anchored):
    rng = np.random.default_rng(3)
    design, y = 2.0 * rng.normal(size=(30, 50)), rng.integers(0, 2, 30)
    offset, weight = rng.normal(size=30), rng.integers(1, 4, 30).astype(float)
    anchor = Anchor.at(offset[:, None] + 1.0, offset[:, None], weight) if anchored else None
    found = [
        binary_mode(design @ design.T, y, offset, weight, start, anchor)
        for start in (None, np.zeros(30), 5.0 * rng.normal(size=30))
    ]
    theta = design.T @ found[0].amounts
    slope = weight * (expit(offset + design @ theta) - y)
    if anchor is not None:
        slope += (anchor.own + anchor.common) * (design @ theta) + anchor.common * anchor.distance[:, 0]
    np.testing.assert_allclose(design.T @ slope + theta, 0.0, atol=1e-9)
    for other in found[1:]:
        np.testing.assert_allclose(other.amounts, found[0].amounts, atol=1e-10)
        assert other.evidence == pytest.approx(found[0].evidence, abs=1e-9)
