"""Pooling of adjacent violators against its min-max formula in exact arithmetic and against scikit-learn."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.isotonic import IsotonicRegression

from opinionpool.scoring.reliability import Groups, isotonic, tied

events = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 1), st.integers(1, 3)), min_size=1, max_size=25)


def arrays(rows):
    p, y, weight = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    return p / 8, y, weight


def fitted(fit: Groups, p):
    """The level of the group that each forecast falls in."""
    return fit.frequency[np.searchsorted(fit.high, p)]


def min_max(rows):
    """max over a <= x of min over b >= x of the mean outcome in [a, b], for each row, as fractions."""
    levels = sorted({x for x, _, _ in rows})

    def mean(a, b):
        inside = [(y, w) for x, y, w in rows if a <= x <= b]
        return Fraction(sum(y * w for y, w in inside), sum(w for _, w in inside))

    fit = {x: max(min(mean(a, b) for b in levels if b >= x) for a in levels if a <= x) for x in levels}
    return [fit[x] for x, _, _ in rows]


@given(events)
def test_fit_is_the_min_max_formula(rows):
    p, y, weight = arrays(rows)
    fit = isotonic(tied(p, y, weight))
    exact = min_max(rows)
    assert fitted(fit, p) == pytest.approx([float(value) for value in exact], rel=1e-15)
    assert len(fit.low) == len(set(exact))


@pytest.mark.parametrize("shape", ["one late violator", "sawtooth", "falling", "rising"])
def test_adverse_orders(shape):
    n = 3000
    x = np.arange(n) / n
    y = {
        "one late violator": np.append(x[:-1], -100.0),
        "sawtooth": x + 0.01 * (np.arange(n) % 7 == 0),
        "falling": -x,
        "rising": x,
    }[shape]
    weight = 1 + np.arange(n) % 3.0
    expected = IsotonicRegression().fit(x, y, sample_weight=weight).predict(x)
    assert fitted(isotonic(tied(x, y, weight)), x) == pytest.approx(expected, abs=1e-9)


def test_fractional_weights_leave_certainties_exact():
    weight = np.full(300, 0.1)
    fit = isotonic(tied(np.linspace(0, 1, 300), np.repeat([0.0, 1.0], 150), weight))
    assert fit.frequency.tolist() == [0, 1]
