"""Scores against closed forms, mpmath, scikit-learn and what a proper score must do."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn import metrics

from opinionpool.errors import ArgumentError, OutcomeError, ProbabilityError, ShapeError
from opinionpool.forecasts import Forecasts
from opinionpool.scoring import scores
from opinionpool.scoring.leaderboard import rater_agreement

nan = math.nan
per_event = [
    scores.log_score, scores.log_loss, scores.brier_sum, scores.spherical_score, scores.ranked_probability_score,
]  # fmt: skip


@st.composite
def simplex(draw, classes=None, least=0.001):
    k = classes or draw(st.integers(2, 5))
    raw = np.array(draw(st.lists(st.floats(least, 1), min_size=k, max_size=k)))
    return raw / raw.sum()


@st.composite
def binary(draw, smallest=1):
    t = draw(st.integers(smallest, 30))
    p = draw(st.lists(st.floats(0, 1), min_size=t, max_size=t))
    y = draw(st.lists(st.sampled_from([0, 1]), min_size=t, max_size=t))
    return np.array(p), np.array(y)


# Values


def test_three_classes_against_mpmath():
    q, prior, y = (0.7, 0.2, 0.1), (0.5, 0.3, 0.2), 1
    with mpmath.workdps(40):
        entropy = -sum(mpmath.mpf(v) * mpmath.log(v) for v in prior)
        normalised = float(mpmath.log(mpmath.mpf(q[y]) / mpmath.mpf(prior[y])) / entropy)
        uniform = float(1 + mpmath.log(q[y]) / mpmath.log(3))
        spherical = float(mpmath.mpf(q[y]) / mpmath.sqrt(sum(mpmath.mpf(v) ** 2 for v in q)))
    assert scores.log_score([q], [y], prior)[0] == pytest.approx(normalised, rel=1e-14)
    assert scores.log_score([q], [y])[0] == pytest.approx(uniform, rel=1e-14)
    assert scores.log_loss([q], [y])[0] == pytest.approx(-math.log(q[y]), rel=1e-14)
    assert scores.spherical_score([q], [y])[0] == pytest.approx(spherical, rel=1e-14)
    assert scores.ranked_probability_score([q], [y])[0] == pytest.approx(0.7**2 + 0.1**2, rel=1e-14)


def test_binary_scoring_prior_against_mpmath():
    with mpmath.workdps(40):
        p, q = mpmath.mpf(0.2), mpmath.mpf(0.35)
        entropy = -(p * mpmath.log(p) + (1 - p) * mpmath.log(1 - p))
        expected = [float(mpmath.log(q / p) / entropy), float(mpmath.log((1 - q) / (1 - p)) / entropy)]
    assert scores.log_score([0.35, 0.35], [1, 0], 0.2) == pytest.approx(expected, rel=1e-13)
    assert scores.log_score([0.35, 0.35], [1, 0], [0.2, 0.2]) == pytest.approx(expected, rel=1e-13)


def test_two_conventions_of_the_brier_score():
    assert scores.brier_score([0.7], [1])[0] == pytest.approx(0.09)
    assert scores.brier_score([[0.3, 0.7]], [1])[0] == pytest.approx(0.09)
    assert scores.brier_sum([0.7], [1])[0] == pytest.approx(0.18)
    assert scores.brier_sum([[0.3, 0.7]], [1])[0] == pytest.approx(0.18)
    assert scores.brier_sum([[0.2, 0.7, 0.1]], [1])[0] == pytest.approx(0.14)
    with pytest.raises(ShapeError, match="3 classes; brier_sum"):
        scores.brier_score([[0.2, 0.7, 0.1]], [1])


def test_against_scikit_learn():
    rng = np.random.default_rng(1)
    p, y = rng.random(500), rng.integers(0, 2, 500)
    q, z = rng.dirichlet(np.ones(4), 500), rng.integers(0, 4, 500)
    labels = list(range(4))
    assert scores.log_loss(p, y).mean() == pytest.approx(metrics.log_loss(y, p), rel=1e-13)
    assert scores.brier_score(p, y).mean() == pytest.approx(metrics.brier_score_loss(y, p), rel=1e-13)
    assert scores.log_loss(q, z).mean() == pytest.approx(metrics.log_loss(z, q, labels=labels), rel=1e-13)
    expected = metrics.brier_score_loss(z, q, labels=labels, scale_by_half=False)
    assert scores.brier_sum(q, z).mean() == pytest.approx(expected, rel=1e-13)


def test_ranked_probability_score_adds_up_binary_ones():
    rng = np.random.default_rng(2)
    q, y = rng.dirichlet(np.ones(5), 40), rng.integers(0, 5, 40)
    by_threshold = [scores.brier_score(q[:, k + 1 :].sum(axis=1).clip(0, 1), y > k) for k in range(4)]
    assert scores.ranked_probability_score(q, y) == pytest.approx(sum(by_threshold), abs=1e-14)


# Floors


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_certain_and_wrong_is_finite(dtype):
    q = np.array([1.0], dtype=dtype)
    assert scores.log_loss(q, [0], floor=1e-4)[0] == pytest.approx(9.2103, abs=5e-5)
    assert scores.log_score(q, [0], floor=1e-4)[0] == pytest.approx(-12.2877, abs=5e-5)
    assert scores.log_loss(q, [0])[0] == pytest.approx(8 * math.log(10), rel=1e-14)
    assert scores.log_score(q, [0])[0] == pytest.approx(-25.5754, abs=5e-5)
    assert scores.log_score(1 - q, [1])[0] == scores.log_score(q, [0])[0]


def test_hard_forecasts_are_ranked_and_counted():
    y, hard, soft = [1, 0, 1], [1.0, 0.0, 0.0], [0.6, 0.4, 0.5]
    loss = scores.log_loss(hard, y, floor=1e-4).mean()
    assert loss == pytest.approx(3.07018, abs=5e-6)
    assert scores.log_loss(soft, y, floor=1e-4).mean() == pytest.approx(0.57160, abs=5e-6)
    assert scores.at_floor(hard, y, floor=1e-4).tolist() == [False, False, True]
    assert not scores.at_floor(soft, y, floor=1e-4).any()


def test_floor_never_exceeds_the_scoring_prior():
    assert scores.log_score([1e-10], [1], 1e-10)[0] == 0
    assert scores.log_score([1 - 1e-10], [0], 1 - 1e-10)[0] == pytest.approx(0, abs=1e-12)
    assert scores.log_score([[1e-10, 0.4, 0.6 - 1e-10]], [0], [1e-10, 0.4, 0.6 - 1e-10])[0] == pytest.approx(
        0, abs=1e-12
    )


# What a normalised, proper score does


@given(simplex(), st.data())
def test_zero_for_the_scoring_prior_and_one_expected_for_perfect_knowledge(prior, data):
    k = len(prior)
    y = np.arange(k)
    # Written alike: 1 - (1 - p) is p only to 16 decimals, which is little to a small p.
    given = prior if k > 2 else prior[1]
    repeated = scores.log_score(np.broadcast_to(given, (k, *np.shape(given))), y, given)
    assert repeated == pytest.approx(np.zeros(k), abs=1e-12)
    perfect = scores.log_score(np.eye(k), y, prior if k > 2 else prior[1], floor=1e-15)
    assert prior @ perfect == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("score", per_event)
@given(data=st.data())
@settings(max_examples=40)
def test_expected_score_is_best_at_the_truth(score, data):
    truth = data.draw(simplex())
    said = data.draw(simplex(classes=len(truth)))
    y = np.arange(len(truth))
    sign = 1 if score in (scores.log_score, scores.spherical_score) else -1
    honest, other = (sign * truth @ score(np.repeat(q[None], len(y), axis=0), y) for q in (truth, said))
    assert honest >= other - 1e-12


@pytest.mark.parametrize("score", [*per_event, scores.brier_score, scores.mean_log_score])
@settings(max_examples=50)
@given(pairs=binary())
def test_one_column_is_two_columns(score, pairs):
    p, y = pairs
    assert score(p, y) == pytest.approx(score(np.column_stack([1 - p, p]), y), rel=1e-7, abs=1e-7)


# Forms of the outcomes


@pytest.mark.parametrize(
    "y",
    [
        [1, 0, 0], [1.0, 0.0, 0.0], [True, False, False], np.array([1, 0, 0], dtype=np.uint8),
        np.array([1, 0, 0], dtype=np.float32), np.array([1, False, 0.0], dtype=object),
    ],
)  # fmt: skip
def test_types_of_outcomes(y):
    for score in [*per_event, scores.brier_score, scores.at_floor]:
        assert score([0.8, 0.3, 0.0], y).tolist() == score([0.8, 0.3, 0.0], np.array([1, 0, 0])).tolist()


@pytest.mark.parametrize("missing", [None, nan])
@pytest.mark.parametrize("score", [*per_event, scores.brier_score])
def test_unresolved_events_and_absent_forecasts_have_no_score(score, missing):
    values = score([0.8, 0.3, nan, nan], [missing, 1, 1, missing])
    assert np.isnan(values).tolist() == [True, False, True, True]
    assert values[1] == score([0.3], [1])[0]
    assert np.array_equal(score([0.3, nan], [1, -1]), [values[1], nan], equal_nan=True)
    if score is not scores.brier_score:
        row = [0.2, 0.3, 0.5]
        values = score([row, row, [nan, nan, nan]], [missing, 1, 1])
        assert np.isnan(values).tolist() == [True, False, True]
        assert values[1] == score([row], [1])[0]


@pytest.mark.parametrize("score", [*per_event, scores.brier_score, scores.mean_log_score])
@pytest.mark.parametrize(
    ("p", "y", "error", "message"),
    [
        ([0.7], [0.61], OutcomeError, "outcome 0 is 0.61; an event that settled at a fraction"),
        ([0.7, 0.2], [1, -1], OutcomeError, "0 to 1.*outcome 1 is -1; of Forecasts f"),
        ([0.7, 0.2], [1, 2.0], OutcomeError, "outcome 1 is 2"),
        ([0.7], [math.inf], OutcomeError, "outcome 0 is inf"),
        ([0.7], ["1"], OutcomeError, r"outcomes are '1', .* 2 classes; .*classes\.index"),
        ([0.7] * 3, ["a", "b", "c"], OutcomeError, "outcomes are 'a', 'b', 'c', and the forecasts are about 2 classes"),
        ([0.7, 0.7], [1, "yes"], OutcomeError, "or its label"),
        ([0.7], [1j], OutcomeError, "not 1j"),
        ([0.7, 0.2], [1], ShapeError, "2 forecasts need as many outcomes"),
        ([[[0.7]]], [1], ShapeError, r"\(T, K\)"),
        ([[0.7]], [1], ShapeError, r"not \(1, 1\)"),
        ([0.2, 1.2], [1, 1], ProbabilityError, "position 1 it is 1.2"),
        ([0.2, -0.2], [1, 0], ProbabilityError, "position 1 it is -0.2"),
        ([70.0], [1], ProbabilityError, "percentage"),
        (["a"], [1], ProbabilityError, "must be a number"),
    ],
)
def test_refused(score, p, y, error, message):
    with pytest.raises(error, match=message):
        score(p, y)


@pytest.mark.parametrize("score", per_event)
@pytest.mark.parametrize(
    ("p", "y", "error", "message"),
    [
        ([[0.2, 0.3, 0.4]], [1], ProbabilityError, "row 0 sums to 0.9; score several experts one at a time"),
        ([[0.2, nan, 0.8]], [1], ShapeError, "every class or for none"),
        ([[0.2, 0.3, 0.5]], [3], OutcomeError, "0 to 2.*outcome 0 is 3"),
        ([[0.2, 0.3, 0.5]], [1.5], OutcomeError, "outcome 0 is 1.5; an event that settled"),
    ],
)
def test_refused_with_columns(score, p, y, error, message):
    with pytest.raises(error, match=message):
        score(p, y)


@pytest.mark.parametrize("score", [*per_event, scores.brier_score])
def test_labels_are_numbered_in_sorted_order(score):
    p, labels = [0.8, 0.3, 0.6, 0.9], ["yes", "no", None, "yes"]
    assert np.array_equal(score(p, labels), score(p, [1, 0, nan, 1]), equal_nan=True)
    assert np.array_equal(score(p[:2], np.array(labels[:2])), score(p[:2], [1, 0]))
    if score is not scores.brier_score:
        q = [[0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.1, 0.8, 0.1]]
        assert np.array_equal(score(q, ["home", "away", "draw"]), score(q, [2, 0, 1]))


def test_rows_off_by_rounding_are_normalised():
    assert scores.log_loss([[0.33333, 0.33333, 0.33333]], [2])[0] == pytest.approx(math.log(3), rel=1e-14)


# Means


@settings(max_examples=50)
@given(pairs=binary(), missing=st.sets(st.integers(0, 29)), floor=st.sampled_from([1e-300, 1e-15, 1e-8, 1e-4, 0.3]))
def test_mean_log_score_is_the_mean_of_log_scores(pairs, missing, floor):
    p, y = pairs
    y = np.where(np.isin(np.arange(len(y)), list(missing)), nan, y)
    each = scores.log_score(p, y, floor=floor)
    expected = each[~np.isnan(each)].mean() if not np.isnan(each).all() else nan
    assert scores.mean_log_score(p, y, floor=floor) == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


def test_mean_and_standard_error():
    values = np.array([0.1, -2.0, 0.7, nan, 0.4])
    seen = values[~np.isnan(values)]
    got = scores.mean_score(values)
    assert got.count == 4
    assert got.mean == pytest.approx(seen.mean(), rel=1e-14)
    assert got.standard_error == pytest.approx(seen.std(ddof=1) / 2, rel=1e-14)


@given(st.lists(st.tuples(st.floats(-30, 1), st.integers(0, 4)), min_size=1, max_size=20), st.booleans())
def test_a_weight_is_a_number_of_copies(rows, unresolved):
    values, weight = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    if unresolved:
        values[0] = nan
    weighted = scores.mean_score(values, weight)
    repeated = scores.mean_score(np.repeat(values, weight.astype(int)))
    assert weighted.count == repeated.count
    assert weighted.mean == pytest.approx(repeated.mean, rel=1e-12, abs=1e-12, nan_ok=True)
    assert weighted.standard_error == pytest.approx(repeated.standard_error, rel=1e-9, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("values", [[], [nan], [nan, nan]])
def test_nothing_resolved(values):
    got = scores.mean_score(values)
    assert got.count == 0
    assert math.isnan(got.mean)
    assert math.isnan(got.standard_error)


@pytest.mark.parametrize(
    ("score", "arguments", "error", "message"),
    [
        *((scores.log_score, ([0.5], [1], None, floor), ProbabilityError, "floor") for floor in (0.0, 0.5, 1.0, -1e-8)),
        (scores.log_score, ([0.5, 0.5], [1, 0], [0.5] * 3), ShapeError, "2 events need one scoring prior or as many"),
        (scores.log_score, ([0.5], [1], 1.0), ProbabilityError, "scoring prior must lie strictly between 0 and 1"),
        (scores.log_score, ([[0.2, 0.3, 0.5]], [1], 0.5), ShapeError, "scoring prior of 3 classes"),
        # Scores of several forecasters are averaged one by one, and weights are frequencies.
        (scores.mean_score, ([[0.1, 0.2]],), ShapeError, "one per event"),
        (scores.mean_score, ([0.1, 0.2], [1.0]), ShapeError, "2 events need as many sample weights"),
        (scores.mean_score, ([0.1, 0.2], [1.0, -1.0]), ArgumentError, "weight 1 is -1"),
        (scores.mean_score, ([0.1, 0.2], [nan, 1.0]), ArgumentError, "weight 0 is nan"),
        (scores.mean_score, ([0.1, 0.2], [1.0, math.inf]), ArgumentError, "weight 1 is inf"),
        (scores.mean_score, ([0.1, 0.2], [1.0, 1e18]), ArgumentError, r"from 1e-15 to 1e\+15, and weight 1 is 1e\+18"),
        (scores.mean_score, ([0.1, 0.2], [1e-300, 1.0]), ArgumentError, r"to 1e\+15, and weight 0 is 1e-300"),
        (scores.mean_score, ([0.1, 0.2], ["a", "b"]), ArgumentError, "must be a number"),
    ],
)  # fmt: skip
def test_priors_floors_and_weights_that_do_not_fit(score, arguments, error, message):
    with pytest.raises(error, match=message):
        score(*arguments)


MISSING = float("nan")


def by_pairs(levels):
    """Alpha with the distance of ordered levels, from all pairs of judgements (Krippendorff 2011)."""
    units = [row[~np.isnan(row)] for row in levels]
    units = [unit for unit in units if len(unit) > 1]
    every = np.concatenate(units)
    counts = {level: (every == level).sum() for level in np.unique(every)}

    def distance(a, b):
        low, high = min(a, b), max(a, b)
        between = sum(count for level, count in counts.items() if low <= level <= high)
        return (between - (counts[low] + counts[high]) / 2) ** 2

    def total(values):
        return sum(distance(a, b) for i, a in enumerate(values) for j, b in enumerate(values) if i != j)

    observed = sum(total(unit) / (len(unit) - 1) for unit in units) / len(every)
    expected = total(every) / (len(every) * (len(every) - 1))
    return 1 - observed / expected


@given(st.lists(st.lists(st.sampled_from([1, 2, 3, 4, MISSING]), min_size=3, max_size=3), min_size=3, max_size=8))
def test_alpha_is_that_of_all_pairs(rows):
    levels = np.array(rows)
    found = rater_agreement(Forecasts.from_array(levels, scale="1-4"))
    several = (~np.isnan(levels)).sum(axis=1) > 1
    if found is None:
        assert not several.any()
        return
    assert found.events == several.sum()
    if np.isnan(found.alpha):
        assert len(np.unique(levels[several][~np.isnan(levels[several])])) == 1
    else:
        assert found.alpha == pytest.approx(by_pairs(levels))


def test_fleiss():
    # Ten events, fourteen judges, five levels: the example of Fleiss (1971) as Wikipedia has it, kappa 0.210.
    counts = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    levels = np.array([np.repeat(range(1, 6), row) for row in counts])
    assert rater_agreement(Forecasts.from_array(levels, scale="1-5")).kappa == pytest.approx(0.210, abs=0.0005)


def test_of_judges_with_one_scale_only():
    assert rater_agreement(Forecasts.from_array([[0.2, 0.3], [0.4, 0.5]])) is None
    assert (
        rater_agreement(Forecasts.from_array([[1, 1], [2, 5]], scale={"expert_1": "1-5", "expert_2": "1-10"})) is None
    )
    one = rater_agreement(Forecasts.from_array([[1, 0.2], [2, 0.5]], scale={"expert_1": "1-5"}))
    assert one is None
    same = rater_agreement(Forecasts.from_array([[1, 1], [1, 1]], scale="1-5"))
    assert np.isnan([same.alpha, same.kappa]).all()
