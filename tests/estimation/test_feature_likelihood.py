"""The likelihood of a matrix of coefficients against the one with a design for each of them."""

import numpy as np
import pytest

from opinionpool.estimation.blockwise import Likelihood
from opinionpool.estimation.feature_likelihood import FeatureLikelihood, feature_mode
from opinionpool.estimation.posterior import posterior_mode


def some(k, t, f):
    rng = np.random.default_rng(k + f)
    turn, weight = rng.normal(size=(k - 1, k - 1)), rng.integers(1, 4, t).astype(float)
    return FeatureLikelihood(
        rng.normal(size=(t, f)), turn, rng.integers(0, k, t), rng.normal(size=(t, k - 1)), weight
    ), np.random.default_rng(0).normal(size=f * (k - 1)) / f


def design(likelihood):
    features, turn = likelihood.features, likelihood.turn
    return np.einsum("tf,dk->tfdk", features, turn).reshape(len(features), likelihood.size, len(turn))


@pytest.mark.parametrize(("k", "t", "f"), [(2, 40, 3), (3, 60, 5), (6, 900, 20)])
def test_values_are_those_of_a_design_with_a_column_for_each_coefficient(k, t, f):
    likelihood, at = some(k, t, f)
    plain = Likelihood.of(design(likelihood), likelihood.outcomes, likelihood.offset, likelihood.weight, False)
    found, wanted = likelihood.value(at), plain.value(at)
    assert found.loss == pytest.approx(wanted.loss, rel=1e-12)
    assert found.gradient == pytest.approx(wanted.gradient, abs=1e-12)
    assert found.hessian == pytest.approx(wanted.hessian, abs=1e-12)


@pytest.mark.parametrize(("k", "t", "f"), [(3, 60, 5), (4, 8, 20)])
def test_the_mode_is_that_of_the_design(k, t, f):
    """Also of more features than events."""
    likelihood, start = some(k, t, f)
    found = feature_mode(likelihood, start)
    wanted = posterior_mode(design(likelihood), likelihood.outcomes, likelihood.offset, likelihood.weight)
    assert found.coefficients == pytest.approx(wanted.coefficients, abs=1e-8)
    assert found.evidence == pytest.approx(wanted.evidence, abs=1e-8)
    assert found.covariance == pytest.approx(wanted.covariance, abs=1e-8)
