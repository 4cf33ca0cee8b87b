import numpy as np
import pytest

from opinionpool import GaussianPool
from opinionpool.logodds import logit


def one_surprise(n):
    """Three experts who agree on n events and are right, except about the first, which they called 78% likely."""
    rng = np.random.default_rng(7)
    level = rng.choice([-1.0, 1.0], size=n) * rng.uniform(2.0, 9.0, size=n)
    level[:2] = 1.27, -2.0
    y = (level > 0).astype(float)
    y[0] = 0.0
    return 1.0 / (1.0 + np.exp(-(level[:, None] + 0.1 * rng.normal(size=(n, 3))))), y


class TestStability:
    @pytest.mark.parametrize("n", [40, 160])
    def test_one_surprise_moves_answers_little(self, n):
        x, y = one_surprise(n)
        new = x[np.argsort(np.abs(logit(x[:, 0])))][:: n // 20]
        without = y.copy()
        without[0] = np.nan
        shift = logit(GaussianPool().fit(x, y).predict_proba(new)[:, 1])
        shift = shift - logit(GaussianPool().fit(x, without).predict_proba(new)[:, 1])
        assert np.abs(shift).mean() <= 15.0 / n

    def test_fades(self):
        rng = np.random.default_rng(3)
        level = 4.0 * rng.normal(size=5_000)
        y = (rng.random(5_000) < 1.0 / (1.0 + np.exp(-2.0 * level))).astype(float)
        found = GaussianPool().fit(1.0 / (1.0 + np.exp(-level))[:, None], y)
        answer = logit(found.predict_proba([[0.6], [0.8]])[:, 1])
        assert answer == pytest.approx(2.0 * logit(np.array([0.6, 0.8])), rel=0.1)
