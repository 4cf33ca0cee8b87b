"""The posterior along the sum of the weights, against the exact one on a grid."""

import numpy as np
import pytest

from opinionpool.estimation.coefficients import WeightBeliefs
from opinionpool.estimation.regression import Observations, Regression, fit_batch
from opinionpool.learning.left_open import along_sum, given_sum


def regression(accuracy, events, classes=2):
    """One expert who is as accurate as that, and whose weight may be anything from -5 to 7."""
    rng = np.random.default_rng(5)
    y = rng.integers(classes, size=events)
    contrast = accuracy * np.eye(classes)[y] + np.sqrt(accuracy) * rng.normal(size=(events, classes))
    contrast = np.clip(contrast[:, 1:] - contrast[:, :1], -6.0, 6.0)
    observed = Observations(contrast[:, None, :], np.zeros((events, classes - 1)), y, np.ones(events))
    return Regression(observed, WeightBeliefs(np.array([1.0]), 3.0, 0.3, lambda _: 0.0), anchored=False)


def exact(task, values):
    """Posterior probabilities of weights and of intercepts on a grid, for two classes, (W, A)."""
    weight, intercept = values[:, None, None], np.linspace(-1.5, 1.5, 61)[None, :, None]
    margin = (2 * task.observed.outcomes - 1) * (intercept + weight * task.observed.contrasts[:, 0, 0])
    log = -np.logaddexp(0.0, -margin).sum(axis=2)
    log = log - ((weight[..., 0] - 1.0) / 3.0) ** 2 / 2.0 - (intercept[..., 0] / 0.3) ** 2 / 2.0
    found = np.exp(log - log.max())
    return found / found.sum()


def halves(weight, probability, about):
    """Second moments of both halves about a value."""
    off = weight - about
    return [float(probability @ np.where(side * off > 0, off, 0.0) ** 2) for side in (-1, 1)]


@pytest.mark.parametrize(("accuracy", "events"), [(0.5, 200), (2.0, 40), (8.0, 40)])
def test_both_halves_are_as_long_as_those_of_the_exact_posterior(accuracy, events):
    task = regression(accuracy, events)
    (found,) = fit_batch([task])
    sums, values = along_sum(task.observed, found), np.linspace(-4.0, 12.0, 801)
    down, up = halves(values, exact(task, values).sum(axis=1), found.values[1])
    # Of the lengths, a tenth.
    assert halves(sums.values[:, 1], sums.probability, found.values[1]) == pytest.approx([down, up], rel=0.2)
    # The normal approximation is not: larger sums are possible, and smaller ones hardly.
    normal = found.covariance()[1, 1] / 2.0
    assert (down < 0.6 * normal and up > normal) == (accuracy > 1.0)


@pytest.mark.parametrize("classes", [2, 4])
def test_of_many_events_it_is_the_normal_approximation(classes):
    task = regression(0.5, 4000, classes)
    (found,) = fit_batch([task])
    sums = along_sum(task.observed, found)
    off = sums.values - found.values
    both = (off.T * sums.probability) @ off + given_sum(found)
    assert both == pytest.approx(found.covariance(), rel=0.02, abs=1e-6)
