"""The pools as scikit-learn classifiers."""

import json
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import expit, logit
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

import opinionpool as op
from opinionpool.estimators import pools as estimators
from opinionpool.learning.learn import learn
from opinionpool.pools.registry import POOLS

NAN = float("nan")
A = [0.2, 0.3, 0.6, 0.4, 0.7, 0.8]
B = [0.3, 0.2, 0.5, 0.6, 0.4, 0.9]
Y = [0, 0, 0, 1, 1, 1]
# Of the two ways to give columns, those that are meant here say so.
BY_POSITION = "ignore:X (does not have valid|has) feature names:opinionpool.OpinionPoolWarning"
BY_TWO = "ignore:the columns of X add up to 1 by two:opinionpool.OpinionPoolWarning"
CLASSES = [getattr(estimators, name) for name in estimators.__all__]


def every_pool(**options):
    return pytest.mark.parametrize("pool", [made(**options) for made in CLASSES], ids=lambda pool: type(pool).__name__)


def columns(*experts):
    return np.column_stack([np.asarray(said, dtype=float) for said in experts])


def sample_averages(log_odds, y, prior=0.5):
    """Equations (8), (10) and 5.4 by hand: bias, contrast, covariance, weights."""
    d, y = np.asarray(log_odds, float).reshape(len(y), -1) - logit(prior), np.asarray(y)
    ones, zeros = d[y == 1], d[y == 0]
    centred = np.vstack([ones - ones.mean(0), zeros - zeros.mean(0)])
    sigma = centred.T @ centred / (len(y) - 2)
    mu = (ones.mean(0) - zeros.mean(0)) / 2
    return (ones.mean(0) + zeros.mean(0)) / 2, mu, sigma, 2 * np.linalg.solve(sigma, mu)


def data(events=60, experts=3, seed=0, missing=0.0):
    panel = op.Panel.exchangeable(experts, correlation=0.4, accuracy=1.2)
    X, y = panel.simulate(events, prior=0.4, seed=seed)
    if missing:
        X = np.where(np.random.default_rng(seed).random(X.shape) < missing, np.nan, X)
    return X, y


def data_of_classes(events=90, experts=3, seed=0, labels=("a", "b", "c")):
    panel = op.Panel.exchangeable(experts, correlation=0.3, accuracy=2.0, classes=labels)
    return panel.simulate(events, prior=[1 / 3] * 3, seed=seed)


# What is learned and answered, with exact numbers


def test_zeros_and_ones_are_floored_alike_at_both_ends():
    pool = op.GaussianPool(beliefs=None).fit([0, 0.2, 0.6, 1], [0, 0, 1, 1], prior=0.5)
    floored = np.array([-logit(1 - 1e-4), logit(0.2), logit(0.6), logit(1 - 1e-4)])
    bias, mu, sigma, weights = sample_averages(floored, [0, 0, 1, 1])
    np.testing.assert_allclose(pool.weights_, weights, rtol=1e-12)
    np.testing.assert_allclose(pool.panel_.covariance, sigma, rtol=1e-12)
    np.testing.assert_allclose(pool.panel_.bias, bias, rtol=1e-12)
    np.testing.assert_allclose([bias - mu, bias + mu], [[-5.2983], [4.8079]], atol=5e-5)
    assert sigma[0, 0] == pytest.approx(34.6845, abs=5e-5)
    assert pool.weights_[0] == pytest.approx(0.29137, abs=5e-6)
    np.testing.assert_allclose(pool.predict_proba([0.5, 0.9])[:, 1], [0.51785, 0.67077], atol=5e-6)


@pytest.mark.parametrize(("q", "y"), [([0.2, 0.8], [0, 1]), ([0.2, 0.8, 0.8], [0, 1, 1])])
def test_too_few_events_for_the_data_alone_name_what_is_needed(q, y):
    with pytest.raises(op.LearningError, match=r"need at least 3 resolved events and some (variation|within-outcome)"):
        op.GaussianPool(beliefs=None).fit(q, y, prior=0.5)
    p = op.GaussianPool().fit(q, y, prior=0.5).predict_proba(q)[:, 1]
    assert 0.1 < p[0] < 0.5 < p[1] < 0.9


@pytest.mark.filterwarnings(BY_TWO)
@pytest.mark.parametrize(
    ("twin", "said", "weight", "told"),
    [
        (np.array(A), 0.7, 0.72111, "say the same on every resolved event"),
        (np.array(A) * (1 + 1e-12), 0.7, 0.72111, "say the same on every resolved event"),
        (1 - np.array(A), 0.3, -0.72111, "the same or its complement"),
    ],
)
@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_clones_and_complements_share_their_weight_equally(twin, said, weight, told, order):
    with pytest.warns(op.OpinionPoolWarning, match=told):
        pool = op.GaussianPool(beliefs=None).fit(columns(A, twin)[:, order], Y, prior=0.5)
    np.testing.assert_allclose(pool.weights_, np.array([0.72111, weight])[order], atol=5e-6)
    assert pool.predict_proba(np.array([[0.7, said]])[:, order])[0, 1] == pytest.approx(0.77241, abs=5e-6)


def test_more_experts_than_events_are_refused_by_rank_or_shrunk():
    X, y = columns([0.2, 0.3, 0.7, 0.8], [0.4, 0.1, 0.6, 0.9], [0.3, 0.2, 0.9, 0.6]), [0, 0, 1, 1]
    with pytest.raises(op.LearningError, match="rank 2 < 3 experts; 4 events"):
        op.GaussianPool(beliefs=None).fit(X, y)
    pool = op.GaussianPool().fit(X, y)
    assert (np.abs(pool.weights_) < 1).all()
    assert pool.predict(X).tolist() == y


def test_the_variance_has_divisor_events_less_two():
    log_odds = np.array([-2.0, -1, 0, 0, 1, 2])
    pool = op.GaussianPool(beliefs=None).fit(expit(log_odds), Y, prior=0.5)
    np.testing.assert_allclose(pool.panel_.covariance, [[1.0]], rtol=1e-12)
    np.testing.assert_allclose(pool.weights_, sample_averages(log_odds, Y)[3], rtol=1e-12)
    assert pool.predict_proba([expit(0.5)])[0, 1] == pytest.approx(0.73106, abs=5e-6)


def test_zero_weight_is_no_event_and_weight_two_is_the_event_twice():
    log_odds, y = np.array([-2.0, -1, 0, 0, 1, 2, 5]), [0, 0, 0, 1, 1, 1, 0]
    without = op.GaussianPool(beliefs=None).fit(expit(log_odds), y, sample_weight=[1, 1, 1, 1, 1, 1, 0])
    # The prior is Laplace's for 3 of 6, which is 0.5.
    np.testing.assert_allclose(without.prior_, [0.5, 0.5])
    np.testing.assert_allclose(without.weights_, [2.0], rtol=1e-12)
    assert without.n_events_ == 6
    twice = op.GaussianPool(beliefs=None).fit(expit(log_odds[:6]), y[:6], prior=0.5, sample_weight=[2] * 6)
    np.testing.assert_allclose(twice.panel_.covariance, [[0.8]], rtol=1e-12)
    np.testing.assert_allclose(twice.weights_, [2.5], rtol=1e-12)
    assert twice.n_events_ == 12


def test_one_expert_is_recalibrated():
    series, frame = pd.Series(A, name="ann"), pd.DataFrame({"ann": A})
    for X in (A, np.array(A), np.array(A)[:, None], series, frame):
        pool = op.GaussianPool(beliefs=None).fit(X, Y, prior=0.5)
        assert pool.panel_.calibration[0] == pytest.approx(1.44221, abs=5e-6)
        assert pool.panel_.bias[0] == pytest.approx(0, abs=1e-12)
        assert pool.predict_proba([[0.7]])[0, 1] == pytest.approx(0.77241, abs=5e-6)
    assert op.LinearPool().fit(A, Y).predict_proba([0.7])[0, 1] == pytest.approx(0.7, abs=1e-12)
    np.testing.assert_array_equal(op.GaussianPool().fit(series, Y).feature_names_in_, ["ann"])


def test_the_score_is_higher_for_the_better_forecast():
    pool = op.AveragePool().fit([0.8, 0.5], [1, 0])
    for q, y, expected in ((0.8, 1, 0.67807), (0.5, 1, 0.0), (0.8, 0, -1.32193)):
        assert pool.score([q], [y]) == pytest.approx(expected, abs=5e-6)


def test_a_corrected_outcome_replaces_everything():
    pool = op.AveragePool()
    assert pool.fit([0.8], [0]).score([0.8], [0]) == pytest.approx(-1.32193, abs=5e-6)
    assert pool.fit([0.8], [1]).score([0.8], [1]) == pytest.approx(0.67807, abs=5e-6)
    assert np.isnan(pool.fit([0.8], [None]).score([0.8], [None]))

    X, y = data()
    again = op.GaussianPool().fit(pd.DataFrame(X, columns=list("abc")), np.where(y, "yes", "no"))
    again.fit(X[:, :2], y, prior=np.full(len(y), 0.3))
    fresh = op.GaussianPool().fit(X[:, :2], y, prior=np.full(len(y), 0.3))
    assert not hasattr(again, "feature_names_in_")
    assert again.n_features_in_ == 2
    assert again.prior_ is None
    np.testing.assert_array_equal(again.predict_proba(X[:, :2], prior=0.3), fresh.predict_proba(X[:, :2], prior=0.3))


def test_the_mean_score_counts_resolved_events_by_weight():
    X, y = data(events=8)
    pool = op.GaussianPool().fit(X, y)
    p, weight = pool.predict_proba(X)[:, 1], np.arange(8.0)
    said = np.where(y == 1, p, 1 - p)
    some = [None if i == 7 else v for i, v in enumerate(y)]
    assert pool.score(X, some) == pytest.approx(np.mean(1 + np.log2(said[:7])))
    assert pool.score(X, y, sample_weight=weight) == pytest.approx(weight @ (1 + np.log2(said)) / weight.sum())
    low = pool.predict_proba(X, base_rate=0.1)[:, 1]
    prior = np.where(y == 1, 0.1, 0.9)
    entropy = -(0.1 * np.log(0.1) + 0.9 * np.log(0.9))
    expected = np.mean(np.log(np.where(y == 1, low, 1 - low) / prior) / entropy)
    assert pool.score(X, y, base_rate=0.1, scoring_prior=0.1) == pytest.approx(expected)


# y


# By coding: what the two classes are called in it, and how a list of them is given, None where there is no outcome.
CODINGS = {
    "int": (0, 1, np.array), "float": (0.0, 1.0, partial(np.array, dtype=float)), "bool": (False, True, np.array),
    "list": (0, 1, list), "text": ("a", "b", np.array), "object": ("a", "b", partial(np.array, dtype=object)),
    "np.str_": (np.str_("a"), np.str_("b"), list), "series": ("a", "b", pd.Series),
    "category": ("a", "b", partial(pd.Series, dtype="category")), "nullable": (0, 1, partial(pd.Series, dtype="Int64")),
    "boolean": (False, True, partial(pd.Series, dtype="boolean")), "polars": ("a", "b", pl.Series),
    "polars bool": (False, True, pl.Series), "arrow": ("a", "b", pa.array), "other numbers": (-3, 7, np.array),
}  # fmt: skip


def coded(y, coding):
    """Outcomes of 0, 1 or not a number, in some coding."""
    no, yes, make = CODINGS[coding]
    return make([None if np.isnan(value) else yes if value else no for value in y])


@pytest.mark.parametrize("coding", CODINGS)
def test_every_coding_of_the_outcomes_gives_the_same_pool(coding):
    X, y = data()
    plain = op.GaussianPool().fit(X, y)
    pool = op.GaussianPool().fit(X, coded(y, coding))
    assert pool.classes_.tolist() == [*CODINGS[coding][:2]]
    assert coding == "np.str_" or type(pool.classes_.tolist()[0]) is type(CODINGS[coding][0])
    np.testing.assert_array_equal(pool.predict_proba(X), plain.predict_proba(X))
    predicted = pool.predict(X)
    assert predicted.dtype == pool.classes_.dtype
    np.testing.assert_array_equal(predicted == pool.classes_[1], plain.predict(X) == 1)
    assert pool.score(X, coded(y, coding)) == plain.score(X, y)


@pytest.mark.parametrize("coding", CODINGS)
def test_unresolved_events_in_every_coding(coding):
    X, y = data(events=20)
    rest = np.arange(20) != 3
    holes = coded(np.where(rest, y, NAN), coding)
    pool = op.GaussianPool().fit(X, holes)
    assert pool.classes_.tolist() == [*CODINGS[coding][:2]]
    assert pool.n_events_ == 19
    # As in numbers, and without beliefs, which forecasts on open events may move, as if the event were not there.
    numbers = op.GaussianPool().fit(X, np.where(rest, y, np.nan))
    np.testing.assert_allclose(pool.predict_proba(X), numbers.predict_proba(X), rtol=1e-12)
    data_alone, without = (
        op.GaussianPool(beliefs=None).fit(X, holes),
        op.GaussianPool(beliefs=None).fit(X[rest], y[rest]),
    )
    np.testing.assert_allclose(data_alone.predict_proba(X), without.predict_proba(X), rtol=1e-12)
    assert pool.score(X, holes) == pytest.approx(pool.score(X[rest], coded(y[rest], coding)))


def test_classes_do_not_depend_on_the_order_of_appearance():
    q, y = np.array([0.1, 0.9, 0.8, 0.2]), np.array(["no", "yes", "yes", "no"])
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2]):
        pool = op.AveragePool().fit(q[order], y[order])
        assert pool.classes_.tolist() == ["no", "yes"]
        assert pool.predict(q).tolist() == y.tolist()
        mean_log = (pool.score(q, y) - 1) * np.log(2)
        assert mean_log == pytest.approx(-0.16425, abs=5e-6)


@pytest.mark.parametrize(
    ("y", "told"),
    [
        ([0, 1, 0.61], "continuous values, and one is 0.61"), ([0, 1, np.inf], "one is inf"),
        (["yes", "yes", "yes"], "one class only, 'yes'"), (["yes", None, None], "one class only, 'yes'"),
        ([5, 5, 5], "one class only, 5"), (["Yes", "No ", "No"], "'No' and 'No ' differ only in case or blanks"),
        (["Yes", "No", "yes"], "'Yes' and 'yes' differ only in case or blanks"),
        (["yes", "no", "nan"], "'nan' looks like a missing one"), (["yes", "no", 1], "there are int, str"),
        (np.array(["2020-01-01", "2020-01-02", "NaT"], "datetime64[D]"), "not datetime64"),
        ([0, 1], "inconsistent numbers of samples"), (None, "requires y to be passed"), (np.eye(3), "1d array"),
    ],
)  # fmt: skip
def test_outcomes_that_are_not_classes_are_refused(y, told):
    with pytest.raises(ValueError, match=told):
        op.GaussianPool().fit([0.2, 0.4, 0.7], y)


# X


@given(order=st.permutations(range(3)), absent=st.sets(st.integers(0, 2), max_size=2), seed=st.integers(0, 5))
@pytest.mark.filterwarnings(BY_POSITION)
def test_columns_are_matched_by_name(order, absent, seed):
    X, y = data(seed=seed)
    names = ["ann", "bob", "cat"]
    fitted = op.GaussianPool(beliefs=None).fit(pd.DataFrame(X, columns=names), y)
    kept = [i for i in order if i not in absent]
    given_ = pd.DataFrame(X[:, kept], columns=[names[i] for i in kept])
    blank = X.copy()
    blank[:, list(absent)] = np.nan
    np.testing.assert_array_equal(fitted.predict_proba(given_), fitted.predict_proba(blank))


THREE = data()[0]


def of_pair(*names):
    """Forecasts in columns of such names."""
    return pd.DataFrame(THREE[:, : len(names)], columns=names)


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda pair, pool: pair.predict_proba(of_pair("ann", "bob", "dan")), op.ExpertError,
         "column 'dan' was not there in fit"),
        (lambda pair, pool: pair.predict_proba(of_pair("ann", "ann")), op.ExpertError, "'ann' stands twice"),
        (lambda pair, pool: pair.fit(of_pair("ann", "ann"), data()[1]), op.ExpertError, "'ann' stands twice"),
        (lambda pair, pool: pool.predict_proba(THREE[:, :2]), op.ShapeError,
         "X has 2 features, but GaussianPool is expecting 3 features as input"),
        (lambda pair, pool: pool.predict_proba(THREE[0]), op.ShapeError, "Reshape your data"),
        (lambda pair, pool: pool.predict_proba([[0.5, np.inf, 0.5]]), ValueError, "infinity"),
        (lambda pair, pool: pool.predict_proba([[0.5, 45, 0.5]]), op.ProbabilityError, "divided by 100"),
        (lambda pair, pool: pool.score(THREE[:3], [1, 7, 7]), op.OutcomeError,
         r"7 is not one of the classes \[0, 1\]; it stands in 2 rows, the first of them 1"),
        (lambda pair, pool: op.BetaLinearPool().fit(*data_of_classes()), op.OutcomeError,
         "Only binary classification is supported"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_pool_is_refused(call, error, told):
    X, y = data()
    pool = op.GaussianPool().fit(X, y)
    assert pool.predict_proba(np.empty((0, 3))).shape == (0, 2)
    with pytest.raises(error, match=told):
        call(op.GaussianPool().fit(of_pair("ann", "bob"), y), pool)


@pytest.mark.parametrize("names", [[1, 2, 3], [1, "B", 3.5], ["1", "2", "3"]])
@pytest.mark.filterwarnings(BY_POSITION)
def test_names_are_matched_as_text(names):
    X, y = data()
    pool = op.GaussianPool().fit(pd.DataFrame(X, columns=names), y)
    assert pool.feature_names_in_.tolist() == [str(name) for name in names]
    np.testing.assert_array_equal(pool.predict_proba(X), op.GaussianPool().fit(X, y).predict_proba(X))
    written = pd.DataFrame(X[:, ::-1], columns=[str(name) for name in names[::-1]])
    np.testing.assert_array_equal(pool.predict_proba(written), pool.predict_proba(X))
    weights = {name: i + 1 for i, name in enumerate(names)}
    np.testing.assert_allclose(op.LinearPool(weights=weights).fit(written, y).weights_, [3 / 6, 2 / 6, 1 / 6])


def test_rows_are_matched_by_index():
    X = pd.DataFrame({"ann": [0.9, 0.8, 0.2, 0.1]}, index=[1, 2, 3, 4])
    y = pd.Series([0, 0, 1, 1], index=[4, 3, 2, 1])
    pool = op.AveragePool().fit(X, y)
    assert (1 - pool.score(X, y)) * np.log(2) == pytest.approx(0.16425, abs=5e-6)
    assert (1 - pool.score(X, y.to_numpy())) * np.log(2) == pytest.approx(1.95601, abs=5e-6)
    np.testing.assert_allclose(op.LogPool(weights=[1]).fit(X, y).prior_, [0.5, 0.5])


@pytest.mark.parametrize(
    ("index", "told"),
    [
        ([1, 2, 3, 5], "4 is in one of them only"),
        ([1, 2, 3], "4 is in one"),
        ([1, 1, 2, 3], "4 is in one"),
        ([1, 2, 2, 1], "3 is in one"),
    ],
)
def test_rows_with_other_keys_are_refused(index, told):
    X = pd.DataFrame({"ann": [0.9, 0.8, 0.2, 0.1]}, index=[1, 2, 3, 4])
    with pytest.raises(op.ShapeError, match=f"the index of y must hold the same keys, and .*{told}"):
        op.AveragePool().fit(X, pd.Series([0] * (len(index) - 1) + [1], index=index))


def test_repeated_keys_in_the_same_order_are_paired():
    X = pd.DataFrame({"ann": [0.9, 0.8, 0.2]}, index=["a", "a", "b"])
    pool = op.AveragePool().fit(X, pd.Series([1, 1, 0], index=X.index))
    assert pool.n_events_ == 3
    with pytest.raises(op.ShapeError, match="some keys are repeated"):
        op.AveragePool().fit(X, pd.Series([0, 1, 1], index=["b", "a", "a"]))


@pytest.fixture(scope="module")
def twelve():
    """Twelve events, with priors and weights, and the pool that is fitted to them in their order."""
    X, y = data(events=12)
    prior, weight = np.linspace(0.2, 0.6, 12), np.arange(12) % 3 + 1
    return X, y, prior, weight, op.GaussianPool().fit(X, y, prior, weight)


@settings(max_examples=30)
@given(order=st.permutations(range(12)))
def test_weights_priors_and_outcomes_follow_the_index(twelve, order):
    X, y, prior, weight, plain = twelve
    frame = pd.DataFrame(X, columns=list("abc"), index=[f"e{i}" for i in range(12)])
    prior, weight = (pd.Series(each, index=frame.index) for each in (prior, weight))
    told = pd.Series(y, index=frame.index)
    pool = op.GaussianPool().fit(frame, told.iloc[order], prior.iloc[order], weight.iloc[order[::-1]])
    np.testing.assert_array_equal(pool.weights_, plain.weights_)
    np.testing.assert_array_equal(
        pool.predict_proba(frame.iloc[order], prior, base_rate=prior), plain.predict_proba(X, prior, prior)[order]
    )
    assert pool.score(frame, told.iloc[order], weight.iloc[order], prior=prior) == pytest.approx(
        plain.score(X, y, weight, prior=prior)
    )


@every_pool()
def test_the_callers_data_stay_as_they_are(pool):
    X, y = data(missing=0.2)
    frame, told, weight, prior = pd.DataFrame(X), pd.Series(y), np.ones(len(y)), np.full(len(y), 0.4)
    kept = [frame.copy(), told.copy(), weight.copy(), prior.copy(), X.copy()]
    pool.fit(frame, told, prior, weight).predict_proba(frame, prior, base_rate=prior)
    pool.fit(X, told, prior, weight).score(X, told, weight, prior=prior)
    pd.testing.assert_frame_equal(frame, kept[0])
    pd.testing.assert_series_equal(told, kept[1])
    for now, then in zip((weight, prior, X), kept[2:], strict=True):
        np.testing.assert_array_equal(now, then)


# Priors


def test_after_a_prior_for_each_event_pooling_needs_one_too():
    X, y = data()
    prior = np.random.default_rng(0).uniform(0.2, 0.7, len(y))
    pool = op.GaussianPool(beliefs=None).fit(X, y, prior=prior)
    assert pool.prior_ is None
    with pytest.raises(op.ProbabilityError, match="a prior for each event"):
        pool.predict_proba(X)
    d = logit(X) - logit(prior)[:, None]
    bias, _, _, weights = sample_averages(d, y)
    np.testing.assert_allclose(pool.weights_, weights, rtol=1e-9)
    np.testing.assert_allclose(
        pool.predict_proba(X, prior)[:, 1], expit(logit(prior) + (d - bias) @ weights), rtol=1e-9
    )
    assert pool.score(X, y, prior=prior) > 0


# Forecasts instead of X and y


def test_containers_keep_the_order_of_their_classes_and_must_agree():
    X, y = data(experts=2)
    classes = ("repaid", "default")
    told = [classes[v] for v in y]
    forecasts = op.Forecasts.from_array(X, told, experts=["ann", "bob"], classes=classes)
    pool = op.GaussianPool().fit(forecasts)
    assert pool.classes_.tolist() == list(classes)
    np.testing.assert_allclose(pool.predict_proba(forecasts), op.GaussianPool().fit(X, y).predict_proba(X), rtol=1e-12)
    assert pool.predict(forecasts).tolist() == [classes[v] for v in op.GaussianPool().fit(X, y).predict(X)]
    turned = op.Forecasts.from_array(1 - X, told, experts=["ann", "bob"], classes=classes[::-1])
    with pytest.raises(op.OutcomeError, match="about the classes"):
        pool.predict_proba(turned)
    other = op.Forecasts.from_array(X, told, experts=["ann", "dan"], classes=classes)
    with pytest.raises(op.ExpertError, match="'dan' was not there in fit"):
        pool.predict_proba(other)
    for method in (pool.fit, pool.score):
        with pytest.raises(op.ArgumentError, match="leave out y"):
            method(forecasts, y)


def test_priors_of_the_container_win_and_blanks_are_filled():
    X, y = data()
    own = np.linspace(0.2, 0.6, len(y))
    own[::4] = NAN
    forecasts = op.Forecasts.from_array(X, y.tolist(), prior=own)
    filled = np.where(np.isnan(own), 0.3, own)
    pool, plain = op.GaussianPool().fit(forecasts, prior=0.3), op.GaussianPool().fit(X, y, prior=filled)
    np.testing.assert_array_equal(pool.weights_, plain.weights_)
    np.testing.assert_allclose(
        pool.predict_proba(forecasts, prior=0.3), plain.predict_proba(X, prior=filled), rtol=1e-13
    )
    with pytest.raises(op.ProbabilityError, match="have no prior while others have one"):
        pool.predict_proba(forecasts)
    # A pool that was fitted with one prior fills the blanks with it.
    common = op.GaussianPool().fit(X, y, prior=0.3)
    np.testing.assert_allclose(common.predict_proba(forecasts), common.predict_proba(X, prior=filled), rtol=1e-13)


# K classes


def test_class_probabilities_deep_flat_and_named_are_the_same():
    X, y = data_of_classes()
    flat = X.reshape(len(y), -1)
    pool = op.GaussianPool().fit(X, y)
    assert pool.classes_.tolist() == ["a", "b", "c"]
    assert pool.n_features_in_ == 9
    state = learn(op.Forecasts.from_array(X, y.tolist(), classes=("a", "b", "c")))
    np.testing.assert_allclose(pool.predict_proba(X), state.pool(X), rtol=1e-12)
    np.testing.assert_array_equal(op.GaussianPool().fit(flat, y).predict_proba(X), pool.predict_proba(flat))

    names = [f"{expert}:{label}" for expert in ("ann", "bob", "cat") for label in "abc"]
    order = np.random.default_rng(0).permutation(9)
    frame = pd.DataFrame(flat[:, order], columns=[names[i] for i in order])
    named = op.GaussianPool().fit(frame, y)
    assert set(named.panel_.names) == {"ann", "bob", "cat"}
    assert named.feature_names_in_.tolist() == frame.columns.tolist()
    np.testing.assert_allclose(named.predict_proba(frame), pool.predict_proba(X), rtol=1e-10)
    without = frame.drop(columns=["bob:a", "bob:b", "bob:c"])
    blank = X.copy()
    blank[:, 1] = NAN
    np.testing.assert_allclose(named.predict_proba(without), pool.predict_proba(blank), rtol=1e-10)
    with pytest.raises(op.ShapeError, match="for every class or for none"):
        named.predict_proba(frame.drop(columns=["bob:a"]))
    forecasts = op.Forecasts.from_array(X, y.tolist(), experts=["ann", "bob", "cat"], classes=("a", "b", "c"))
    contained = op.GaussianPool().fit(forecasts)
    assert contained.feature_names_in_.tolist() == names
    np.testing.assert_allclose(contained.predict_proba(frame), pool.predict_proba(X), rtol=1e-10)


def test_columns_are_matched_to_classes_by_name():
    frame = pd.DataFrame({"m:dog": [0.9, 0.2], "m:cat": [0.1, 0.8]})
    pool = op.AveragePool().fit(frame, ["dog", "cat"])
    assert pool.classes_.tolist() == ["cat", "dog"]
    assert pool.feature_names_in_.tolist() == ["m:dog", "m:cat"]
    np.testing.assert_allclose(pool.predict_proba(frame), [[0.1, 0.9], [0.8, 0.2]])
    np.testing.assert_allclose(pool.predict_proba(frame[["m:cat", "m:dog"]]), [[0.1, 0.9], [0.8, 0.2]])


def test_binary_class_probabilities_may_come_for_both_classes():
    X, y = data()
    deep = np.stack([1 - X, X], axis=2)
    pool = op.GaussianPool().fit(deep, y)
    np.testing.assert_allclose(pool.predict_proba(deep), op.GaussianPool().fit(X, y).predict_proba(X), rtol=1e-9)
    with pytest.raises(op.ProbabilityError, match="must sum to 1"):
        pool.predict_proba(np.stack([X, X], axis=2))


@pytest.mark.filterwarnings(BY_POSITION)
def test_a_class_never_seen_is_said():
    X, y = data_of_classes()
    kept = y != "c"
    with pytest.raises(op.ShapeError, match=r"say which there are, fit\(\.\.\., classes=\[\.\.\.\]\)"):
        op.GaussianPool().fit(X[kept], y[kept])
    assert op.GaussianPool().fit(X[kept], y[kept], classes=["a", "b", "c"]).predict_proba(X).shape == (len(y), 3)
    forecasts = op.Forecasts.from_array(X[kept], y[kept].tolist(), classes=("a", "b", "c"))
    assert op.GaussianPool().fit(forecasts).predict_proba(X).shape == (len(y), 3)
    with pytest.raises(op.ShapeError, match="need 3 columns for each expert, and X has 8 columns"):
        op.GaussianPool().fit(X.reshape(len(y), -1)[:, :8], y)


def test_what_a_mask_hides_is_missing():
    X = np.array([[0.8, 0.7], [0.2, 0.4], [0.6, 99.0], [0.3, 0.1], [0.7, 0.9]])
    y = np.array([1, 0, 1, 0, 7])
    blank = np.where(X > 1, np.nan, X)
    masked = op.GaussianPool().fit(np.ma.array(X, mask=X > 1), np.ma.array(y, mask=y > 1))
    plain = op.GaussianPool().fit(blank, [1, 0, 1, 0, None])
    np.testing.assert_array_equal(masked.predict_proba(np.ma.array(X, mask=X > 1)), plain.predict_proba(blank))
    np.testing.assert_array_equal(
        op.log_score(np.ma.array(X[:, 1], mask=X[:, 1] > 1), np.ma.array(y, mask=y > 1)),
        op.log_score(blank[:, 1], [1, 0, 1, 0, None]),
    )

    np.testing.assert_array_equal(op.read_forecasts(np.ma.array(X, mask=X > 1)).X, blank)


@pytest.mark.parametrize(
    ("values", "options", "error", "told"),
    [
        ([[[0.5, 0.5, 0.5]]], {"classes": "abc"}, op.ProbabilityError, r"in one row they sum to 1\.5"),
        ([[0.5]], {"prior": 0}, op.ProbabilityError, "strictly between 0 and 1, and one is 0"),
        ([[0.5]], {"prior": "often"}, op.ProbabilityError, "each prior must be a number"),
        ([[0.5]], {"prior": [0.1, 0.2]}, op.ShapeError, r"one per event, \(1,\), and its shape is \(2,\)"),
        ([[0.5]], {"outcomes": [[1]]}, op.OutcomeError, r"outcome of event 'event_1' is \[1\]"),
    ],
)
def test_forecasts_that_cannot_be(values, options, error, told):
    with pytest.raises(error, match=told):
        op.Forecasts.from_array(values, **options)


def test_some_of_the_forecasts():
    forecasts = op.Forecasts.from_array([[0.1, 0.2], [0.3, np.nan]], [pd.NA, 1], prior=[0.4, np.nan])
    assert forecasts.outcomes.tolist() == [-1, 1]
    assert forecasts.select_events([]).shape == (0, 2)
    assert forecasts.select_events([1]).events == ("event_2",)
    with pytest.raises(op.ExpertError, match="names must be text, and one is 0"):
        forecasts.select_experts([0])


def test_rounded_rows_are_normalised_and_that_is_said_once():
    X = np.array([[[0.33, 0.33, 0.33]], [[0.7, 0.2, 0.1]], [[0.2, 0.5, 0.3]], [[0.1, 0.1, 0.8]]])
    pool = op.AveragePool().fit(X, ["a", "a", "b", "c"])
    assert [(note.code, note.count) for note in pool.notes_] == [("normalised", 1)]
    np.testing.assert_allclose(pool.predict_proba(X)[0], np.full(3, 1 / 3))
    single = np.float32(X) / np.float32(X).sum(axis=2, keepdims=True)
    assert op.AveragePool().fit(single, ["a", "a", "b", "c"]).notes_ == ()
    for row in ([0.33, 0.33, 0.31], [0.333, 0.333, 0.331], [0.0, 0.0, 0.0], [0.123456, 0.4, 0.4]):
        with pytest.raises(op.ProbabilityError, match="must sum to 1 up to rounding"):
            pool.predict_proba([[row]])


@pytest.mark.parametrize(
    "pool", [made() for made in CLASSES if not made.binary_only], ids=lambda pool: type(pool).__name__
)
def test_priors_of_classes(pool):
    X, y = data_of_classes()
    X = (X + 1 / 3) / 2  # no answer near its floor
    fitted = pool.fit(X, y)
    counts = np.array([np.sum(y == label) for label in "abc"])
    np.testing.assert_allclose(fitted.prior_, (counts + 1) / (len(y) + 3))
    p = fitted.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    rate = np.array([0.2, 0.3, 0.5])
    shifted = p * rate / fitted.prior_
    np.testing.assert_allclose(
        fitted.predict_proba(X, base_rate=rate), shifted / shifted.sum(1, keepdims=True), rtol=1e-6
    )
    each = np.tile(rate, (len(y), 1))
    np.testing.assert_array_equal(fitted.predict_proba(X, prior=each), fitted.predict_proba(X, prior=rate))
    assert fitted.predict_proba(np.full((1, 3, 3), NAN))[0] == pytest.approx(fitted.prior_)


# scikit-learn's tools


def test_constructors_store_their_arguments_and_offer_the_options_of_each_rule():
    weights = [2, 1, 1]
    pool = op.LinearPool(weights=weights)
    assert pool.get_params()["weights"] is weights
    X, y = data()
    np.testing.assert_array_equal(clone(pool).fit(X, y).weights_, [0.5, 0.25, 0.25])
    assert weights == [2, 1, 1]
    np.testing.assert_array_equal(pool.set_params(weights=[0, 0, 1]).fit(X, y).weights_, [0, 0, 1])
    with pytest.raises(op.ExpertError, match=r"3 experts .* and 2 weights"):
        op.LinearPool(weights=[1, 1]).fit(X, y)
    for made in CLASSES:
        assert set(made().get_params()) == {*POOLS[made.rule].options, "floor", "pool_floor", "scale"}
        assert {key: made().get_params()[key] for key in POOLS[made.rule].options} == {
            key: option.default for key, option in POOLS[made.rule].options.items()
        }
    assert {made.rule for made in CLASSES} == {name for name, pool in POOLS.items() if not pool.of_levels}


@every_pool()
def test_a_clone_is_not_fitted(pool):
    again = clone(pool.fit(*data(missing=0.2)))
    for attribute in ("weights_", "prior_", "notes_"):
        with pytest.raises(NotFittedError):
            getattr(again, attribute)


def test_pools_without_weights_have_no_such_attribute():
    X, y = data()
    have = {made.__name__ for made in CLASSES if hasattr(made().fit(X, y), "weights_")}
    assert {"GaussianPool", "LinearPool", "LogPool"} <= have
    assert not have & {"AveragePool", "MedianPool", "TrimmedPool", "IndependentPool", "ExtremizedPool"}


def test_search_over_structures_and_floors():
    X, y = data(events=80)
    grid = {"gaussianpool__structure": ["common", "exchangeable", "independent"], "gaussianpool__floor": [1e-4, 0.05]}
    search = GridSearchCV(make_pipeline(FunctionTransformer(), op.GaussianPool()), grid, cv=3).fit(X, y)
    best = search.best_params_
    folds = list(StratifiedKFold(3).split(X, y))
    pool = op.GaussianPool(best["gaussianpool__structure"], floor=best["gaussianpool__floor"])
    by_hand = np.mean([clone(pool).fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds])
    assert search.best_score_ == pytest.approx(by_hand)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])


def test_folds_with_unresolved_events():
    X, y = data(events=60)
    told = np.where(np.arange(60) % 4 == 0, NAN, y)
    scores = cross_validate(op.GaussianPool(), X, told, cv=KFold(5), error_score="raise")["test_score"]
    assert np.isfinite(scores).all()


MODELS = [("nb", GaussianNB()), ("tree", DecisionTreeClassifier(min_samples_leaf=20, random_state=0))]


@pytest.mark.parametrize(
    ("load", "method"),
    [(load_breast_cancer, "auto"), (load_breast_cancer, "predict_proba"), (load_iris, "auto")],
)
def test_the_final_estimator_of_a_stack(load, method):
    X, y = load(return_X_y=True)
    labels = np.array(["benign", "malignant", "neither"])[y]
    stack = StackingClassifier(MODELS, final_estimator=op.GaussianPool(), stack_method=method, cv=3)
    stack.fit(X[::2], labels[::2])
    assert len(stack.final_estimator_.weights_) == 2
    assert stack.score(X[1::2], labels[1::2]) > 0.85
    experts = np.stack([model.predict_proba(X[1::2]) for model in stack.estimators_], axis=1)
    # Of two classes scikit-learn passes the probability of the second alone.
    experts = experts[..., 1] if experts.shape[2] == 2 else experts
    np.testing.assert_array_equal(stack.predict_proba(X[1::2]), stack.final_estimator_.predict_proba(experts))


def test_priors_and_weights_are_routed_as_metadata():
    X, y = data(events=80)
    rng = np.random.default_rng(0)
    prior, weight = rng.uniform(0.2, 0.6, 80), rng.integers(1, 4, 80)
    folds = KFold(4)
    pool = op.GaussianPool()
    by_hand = []
    for train, test in folds.split(X):
        fitted = clone(pool).fit(X[train], y[train], prior=prior[train], sample_weight=weight[train])
        by_hand.append(
            fitted.score(X[test], y[test], sample_weight=weight[test], prior=prior[test], base_rate=prior[test])
        )
    with config_context(enable_metadata_routing=True):
        routed = (
            op.GaussianPool()
            .set_fit_request(prior=True, sample_weight=True)
            .set_score_request(prior=True, base_rate=True, sample_weight=True)
            .set_predict_proba_request(prior=True)
            .set_predict_request(prior=True)
        )
        params = {"prior": prior, "sample_weight": weight, "base_rate": prior}
        for estimator in (routed, make_pipeline(FunctionTransformer(), routed)):
            found = cross_validate(estimator, X, y, cv=folds, params=params)["test_score"]
            np.testing.assert_allclose(found, by_hand)
        line = make_pipeline(FunctionTransformer(), routed).fit(X, y, prior=prior, sample_weight=weight)
        plain = clone(pool).fit(X, y, prior, weight)
        np.testing.assert_array_equal(line.predict_proba(X, prior=prior), plain.predict_proba(X, prior))
        np.testing.assert_array_equal(line.predict(X, prior=prior), plain.predict(X, prior))


def test_ordinary_use_warns_of_nothing_and_the_core_never_loads_scikit_learn():
    code = """
import json, sys
import numpy as np
import opinionpool as op
panel = op.Panel.exchangeable(3, accuracy=1.0)
X, y = panel.simulate(50, seed=0)
panel.pool(X)
op.Forecasts.from_array(X, y.tolist())
core = [name for name in ("sklearn", "scipy", "pandas", "narwhals") if name in sys.modules]
pool = op.GaussianPool().fit(X, y)
pool.predict(X), pool.score(X, y)
print(json.dumps([core, "sklearn" in sys.modules]))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[], True]
    assert done.stderr == ""


def test_rows_without_an_outcome_are_left_out_and_counted():
    x, y = [[0.2, 0.3], [0.7, 0.6], [0.4, 0.9]], [0.0, 1.0, np.nan]
    pool = op.GaussianPool().partial_fit(x, y).partial_fit(x[:2], [np.nan, 1.0]).partial_fit(x[:1], [np.nan])
    (note,) = [note for note in pool.notes_ if note.code == "open-rows-left-out"]
    assert (note.count, pool.n_events_) == (3, 3.0)
    resolved = op.GaussianPool().partial_fit([x[0], x[1], x[1]], [0, 1, 1])
    assert pool.predict_proba(x) == pytest.approx(resolved.predict_proba(x), abs=1e-12)
    assert not [note for note in resolved.notes_ if note.code == "open-rows-left-out"]
