"""How far extremes are believed, against mixing probabilities with an even share."""

from __future__ import annotations

import numpy as np
import pytest

from opinionpool.model.contrasts import Extremes


@pytest.mark.parametrize("limit", [0.5, 2.5, 12.0, 20.0])
@pytest.mark.parametrize("classes", [2, 3, 6])
def test_believed_is_the_mixture_of_probabilities(limit, classes):
    rng = np.random.default_rng(classes)
    contrasts = rng.normal(scale=4.0, size=(50, 3, classes - 1))
    contrasts[0, 0], contrasts[1, 1] = np.nan, 0.0
    full = np.concatenate([np.zeros((50, 3, 1)), contrasts], axis=2)
    p = np.exp(full) / np.exp(full).sum(axis=2, keepdims=True)
    share = classes / (np.expm1(limit) + classes)
    mixed = (1.0 - share) * p + share / classes
    expected = np.log(mixed[..., 1:] / mixed[..., :1])
    np.testing.assert_allclose(Extremes(limit).believed(contrasts), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("limit", [2.5, 700.0, 1e6])
def test_certainties_end_at_the_limit(limit):
    found = Extremes(limit).believed(np.array([[1e5], [-1e5], [1.0]]))
    assert found[:2, 0] == pytest.approx([min(limit, 700.0), -min(limit, 700.0)], rel=1e-12)
    assert np.abs(found[2, 0]) <= 1.0
