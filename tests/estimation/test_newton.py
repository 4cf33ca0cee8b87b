"""The likelihood and its modes against finite differences, SciPy's minimiser and integrals on a grid."""

import numpy as np
import pytest

from opinionpool.estimation import likelihood
from opinionpool.estimation.likelihood import Design, value
from opinionpool.estimation.newton import Near, Prior, modes_near, posterior_modes


def drawn(t=60, n=3, classes=3, features=0, seed=0):
    """Random events; the coefficients of two features have a basis."""
    rng = np.random.default_rng(seed)
    d = classes - 1
    offset = rng.normal(size=(d, t))
    return Design(
        rng.normal(size=(n, d, t)),
        rng.normal(size=(features, t)),
        offset,
        rng.integers(0, classes, t),
        rng.integers(1, 3, t).astype(float),
        basis=rng.normal(size=(d, d)) if features == 2 else None,
    )


def loss(design, theta):
    """The loss, event by event, without any of what the module does."""
    d, total = design.columns.shape[1], 0.0
    own = theta[: len(design.features) * d].reshape(-1, d)
    own = own if design.basis is None else own @ design.basis
    for t, outcome in enumerate(design.outcomes):
        ratios = design.offset[:, t] + own.T @ design.features[:, t] + theta[own.size :] @ design.columns[..., t]
        full = np.append(0.0, ratios)
        total += design.weight[t] * (np.log(np.exp(full).sum()) - full[outcome])
    return total


def slopes(function, theta, step=1e-5):
    ends = [theta + sign * step * each for each in np.eye(len(theta)) for sign in (1, -1)]
    found = np.array([function(end) for end in ends])
    return (found[::2] - found[1::2]) / (2 * step)


@pytest.mark.parametrize("features", [0, 1, 2])
@pytest.mark.parametrize("classes", [2, 3, 5])
class TestValue:
    def test_is_the_loss_with_its_derivatives(self, classes, features):
        design = drawn(classes=classes, features=features)
        theta = np.random.default_rng(1).normal(size=(2, design.size))
        found = value(design, theta)
        for i, each in enumerate(theta):
            assert found.loss[i] == pytest.approx(loss(design, each), rel=1e-12)
            assert found.gradient[i] == pytest.approx(slopes(lambda at: loss(design, at), each), abs=1e-6)
            bent = slopes(lambda at: value(design, at[None]).gradient[0], each)
            assert found.hessian[i] == pytest.approx(bent, abs=1e-6)

    def test_blocks_change_nothing(self, monkeypatch, classes, features):
        design = drawn(t=300, classes=classes, features=features)
        theta = np.random.default_rng(1).normal(size=(2, design.size))
        whole = value(design, theta)
        monkeypatch.setattr(likelihood, "_BLOCK", 1)
        for one, other in zip(value(design, theta), whole, strict=True):
            assert one == pytest.approx(other, rel=1e-12)


class TestModes:
    @pytest.mark.parametrize("far", [0.1, 3.0])
    @pytest.mark.parametrize("classes", [2, 3])
    def test_near_another_point_are_the_same(self, classes, far):
        """From quadratic functions about points that are near or far, with priors that leave some directions known."""
        design, rng = drawn(30, 4, classes), np.random.default_rng(6)
        mean, root = rng.normal(size=(12, 4)), 2.0 * rng.normal(size=(12, 4, 3))
        plain = posterior_modes(design, Prior(mean, root))
        at = value(design, far * rng.normal(size=(1, 4)))
        bent, covariance = at.hessian[0], np.empty((12, 4, 4))
        for i in range(12):
            covariance[i] = root[i] @ np.linalg.solve(np.eye(3) + root[i].T @ bent @ root[i], root[i].T)
        off = far * rng.normal(size=(12, 3))
        # Only Λ's products with what the root reaches matter.
        pull = np.array([np.linalg.pinv(each.T) @ own for each, own in zip(root, off, strict=True)])
        start = mean + (root @ off[..., None])[..., 0]
        found = modes_near(design, Near(start, pull, covariance.copy(), bent))
        own = found.covariance(np.ones(12, dtype=bool))
        for i, mode in enumerate(plain):
            assert found.theta[i] == pytest.approx(mean[i] + root[i] @ mode.coefficients, abs=1e-8)
            assert own[i] == pytest.approx(root[i] @ np.linalg.inv(mode.precision) @ root[i].T, abs=1e-7)
            assert found.loss[i] == pytest.approx(loss(design, found.theta[i]), abs=1e-9)
            size = np.linalg.slogdet(np.eye(3) + root[i].T @ bent @ root[i])[1] / 2
            whole = np.linalg.slogdet(mode.precision)[1] / 2
            assert size + found.half_log_determinant[i] == pytest.approx(whole, abs=1e-7)
