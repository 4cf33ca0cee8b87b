"""Floors and log-ratios against their definitions in exact or high-precision arithmetic."""

import itertools
from functools import partial

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionpool import logodds
from opinionpool.errors import ProbabilityError, ShapeError

HALF = np.array([0.5, 0.5])
probability = st.floats(0, 1)
inner = st.floats(1e-12, 1 - 1e-12)


@pytest.fixture(scope="module", autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield


@given(st.floats(-700, 700))
def test_sigmoid_is_exact_at_both_ends(x):
    exact = 1 / (1 + mpmath.exp(-mpmath.mpf(x)))
    assert logodds.expit(x) == pytest.approx(float(exact), rel=1e-14)


@given(probability, inner)
def test_binary_floor_is_plain_clipping(q, prior):
    low, high = min(1e-4, prior / 100), min(1e-4, (1 - prior) / 100)
    clipped = mpmath.mpf(min(max(q, low), 1)) if 1 - q > high else 1 - mpmath.mpf(high)
    found = logodds.log_ratios(np.array(q), np.array([1 - prior, prior]))
    assert found[0] == pytest.approx(float(mpmath.log(clipped / (1 - clipped))), rel=1e-9, abs=1e-12)


def test_one_in_a_million_as_the_prior_says_is_no_evidence():
    prior = np.array([1 - 1e-6, 1e-6])
    said = logodds.log_ratios(np.array(1e-6), prior)
    assert said[0] == pytest.approx(logodds.prior_log_ratios(prior)[0], abs=1e-9)


def test_float32_is_upcast_before_flooring():
    q = logodds.check_probabilities(np.array([1.0], dtype=np.float32))
    assert logodds.log_ratios(q, HALF)[0, 0] == pytest.approx(-np.log(1e-4) + np.log1p(-1e-4))


rows = st.integers(3, 6).flatmap(
    lambda k: st.tuples(st.lists(st.just(0.0) | inner, min_size=k, max_size=k), st.just(k))
)


@given(rows.filter(lambda row: sum(row[0]) > 0), st.floats(1e-6, 0.15))
def test_floors_of_many_classes_meet_their_definition(row, floor):
    q = np.array(row[0]) / sum(row[0])
    k = row[1]
    prior = np.full(k, 1 / k)
    raised = np.exp(logodds.log_ratios(q, prior, floor))
    raised = np.append(1.0, raised) / (1 + raised.sum())
    f = min(floor, 1 / k / 100)
    assert raised.sum() == pytest.approx(1)
    assert (raised >= f * (1 - 1e-9)).all()
    free = raised > f * (1 + 1e-6)
    assert free.any()
    scale = raised[free] / q[free]
    assert scale == pytest.approx(np.full(free.sum(), scale[0]), rel=1e-6)
    assert (q[~free] * scale[0] <= f * (1 + 1e-6)).all()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_floors_do_not_depend_on_the_order_of_classes(order):
    q, prior = np.array([0.0, 1e-9, 1 - 1e-9]), np.array([0.2, 0.3, 0.5])
    full = logodds.centred(logodds.log_ratios(q, prior))
    moved = logodds.centred(logodds.log_ratios(q[list(order)], prior[list(order)]))
    assert moved == pytest.approx(full[list(order)], abs=1e-12)


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=5))
def test_metric_is_that_of_centred_log_probabilities(ratios):
    a = np.array(ratios)
    full = logodds.centred(a)
    assert a @ logodds.metric(len(a) + 1) @ a == pytest.approx(2 * (full**2).sum(), rel=1e-9, abs=1e-9)
    assert logodds.uncentred(full) == pytest.approx(a, abs=1e-9)


@given(st.floats(-2000, 2000), inner)
def test_answers_keep_their_floor(ratio, prior):
    p = np.array([1 - prior, prior])
    answer = logodds.pooled_probabilities(np.array([ratio]), p)
    assert (answer >= np.minimum(1e-8, p)).all()
    assert answer.sum() == pytest.approx(1)


def test_answer_of_the_prior_is_the_prior_however_small():
    p = np.array([1 - 1e-12, 1e-12])
    answer = logodds.pooled_probabilities(logodds.prior_log_ratios(p), p)
    assert answer[1] == pytest.approx(1e-12, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        *((partial(logodds.check_probabilities, bad), ProbabilityError, r"must lie in \[0, 1\]")
          for bad in (-0.1, 1.5, np.inf)),
        (partial(logodds.check_probabilities, ["often"]), ProbabilityError, "'often'"),
        (partial(logodds.check_probabilities, [0.5, 45]), ProbabilityError,
         "at position 1 it is 45; a percentage must be divided by 100"),
        *((partial(logodds.class_probabilities, prior), ProbabilityError, "strictly between 0 and 1")
          for prior in (0, 1, -0.2, np.nan, [0.5, 1.0])),
        (partial(logodds.class_probabilities, 1e-301), ProbabilityError, "at least 1e-300"),
        (partial(logodds.class_probabilities, [5e-324, 0.5, 0.5], 3), ProbabilityError, "at least 1e-300"),
        (partial(logodds.class_probabilities, [0.3, 0.3, 0.3], 3), ProbabilityError, r"sums to 0\.9"),
        (partial(logodds.class_probabilities, [0.5, 0.5], 3), ShapeError, "needs 3 values"),
        *((partial(logodds.log_ratios, np.array(0.5), HALF, floor), ProbabilityError, "a floor must lie strictly")
          for floor in (0, 1, -1e-4, 1e-310, np.nan, None, "0.1", [0.1, 0.2])),
        (partial(logodds.pooled_probabilities, np.array([0.0]), HALF, 0.7), ProbabilityError,
         "floors must sum to less than 1"),
        *((partial(logodds.normalised, np.array([row])), ProbabilityError, "must sum to 1 up to rounding")
          for row in ([0.5, 0.5, 0.5], [0.0, 0.0, 0.0], [0.21234, 0.3, 0.5])),
    ],
)  # fmt: skip
def test_what_is_out_of_range_is_named(call, error, told):
    with pytest.raises(error, match=told):
        call()


def test_the_least_prior_overflows_nowhere():
    ratios = logodds.log_ratios(np.eye(3), logodds.class_probabilities([logodds.LEAST, 0.5, 0.5], 3))
    assert np.isfinite(ratios).all()


def test_rows_over_classes_add_up_to_1_up_to_rounding():
    rows, off = logodds.normalised(np.array([[0.33, 0.33, 0.33], [0.2, 0.3, 0.5], [np.nan] * 3]))
    np.testing.assert_allclose(rows, [[1 / 3] * 3, [0.2, 0.3, 0.5], [np.nan] * 3])
    assert off == 1
