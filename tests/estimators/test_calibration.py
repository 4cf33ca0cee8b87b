"""Recalibration of a single expert, and of covariates into log-odds."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import opinionpool as op

NAN = float("nan")

finite = st.floats(-3, 3)


def covariates(events=40, columns=3, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(events) % 3 == 0).astype(int)
    x = rng.normal(size=(events, columns)) * [1, 20, 0.01] + y[:, None] * [0.7, -9, 0.004] + [0, 50, -1]
    return np.where(rng.random(x.shape) < missing, NAN, x), y


# One expert


@given(q=st.floats(0.001, 0.999), kappa=st.just(0.0) | st.floats(1e-6, 5), bias=finite, prior=st.floats(0.01, 0.99))
def test_equation_14(q, kappa, bias, prior):
    expected = expit(kappa * (logit(q) - bias) + (1 - kappa) * logit(prior))
    found = float(op.recalibrate(q, kappa, bias, prior))
    assert found == pytest.approx(np.clip(expected, 1e-8, 1 - 1e-8), rel=1e-9)
    panel = op.Panel.exchangeable(1, kappa, bias=bias)
    assert found == pytest.approx(float(panel.pool([q], prior)), rel=1e-9)


def test_the_curves_of_the_figure():
    q = np.linspace(0.01, 0.99, 99)
    curves = op.calibration_curve([0.0, 0.5, 1.0, 2.0], 0.3, q)
    assert curves.shape == (4, 99)
    np.testing.assert_allclose(curves[0], 0.3)
    np.testing.assert_allclose(curves[2], q)
    np.testing.assert_allclose(curves[:, 29], 0.3)  # all curves meet where the expert repeats the prior
    assert (np.diff(curves[1:], axis=1) > 0).all()
    extremes = np.abs(logit(curves) - logit(0.3))
    assert (np.diff(np.delete(extremes, 29, axis=1), axis=0) > 0).all()


# Covariates


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("prior", [None, 0.2])
def test_bayes_rule_with_normal_densities(missing, prior):
    x, y = covariates(missing=missing)
    learned = op.LogOddsTransformer().fit(x, y, prior=prior)
    p = (y.sum() + 1) / (len(y) + 2) if prior is None else prior
    assert learned.prior_ == pytest.approx(p)
    for i in range(3):
        column = x[~np.isnan(x[:, i]), i]
        told = y[~np.isnan(x[:, i])]
        ones, zeros = column[told == 1], column[told == 0]
        squares = ((ones - ones.mean()) ** 2).sum() + ((zeros - zeros.mean()) ** 2).sum()
        sd = np.sqrt(squares / (len(column) - 2))
        new = np.linspace(column.min(), column.max(), 9)
        expected = logit(p) + norm.logpdf(new, ones.mean(), sd) - norm.logpdf(new, zeros.mean(), sd)
        np.testing.assert_allclose(learned.transform(np.tile(new[:, None], 3))[:, i], expected, rtol=1e-9, atol=1e-9)
        assert learned.variance_[i] == pytest.approx(sd**2)
        assert learned.contrast_[i] == pytest.approx((ones.mean() - zeros.mean()) / 2)
        assert learned.bias_[i] == pytest.approx((ones.mean() + zeros.mean()) / 2 - logit(p))


@given(
    seed=st.integers(0, 20),
    missing=st.sampled_from([0.0, 0.4]),
    weighted=st.booleans(),
    prior=st.sampled_from([None, 0.5, 0.03, "each"]),
)
def test_the_result_is_unbiased_and_calibrated(seed, missing, weighted, prior):
    x, y = covariates(seed=seed, missing=missing)
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 3, len(y)) if weighted else np.ones(len(y))
    if prior == "each":
        prior = rng.uniform(0.1, 0.9, len(y))
    transformer = op.LogOddsTransformer()
    updated = transformer.fit_transform(x, y, prior, weight)
    np.testing.assert_array_equal(np.isnan(updated), np.isnan(x))
    reference = logit(transformer.prior_ if prior is None else prior)
    for i in range(3):
        heard = ~np.isnan(updated[:, i])
        d, told, w = (updated[:, i] - reference)[heard], y[heard], weight[heard]
        one, zero = (np.average(d[told == c], weights=w[told == c]) for c in (1, 0))
        squares = w @ (d - np.where(told == 1, one, zero)) ** 2
        scale = max(1.0, abs(one))
        assert (one + zero) / 2 == pytest.approx(0, abs=1e-10 * scale)  # (21)
        assert (one - zero) / (squares / (w.sum() - 2)) == pytest.approx(1, rel=1e-9)  # kappa* = 2 mu* / sigma*²


def test_columns_that_say_nothing_become_the_prior():
    x, y = covariates()
    frame = pd.DataFrame({"good": x[:, 0], "same": 7.3, "none": NAN})
    with pytest.warns(op.OpinionPoolWarning, match="'same', 'none' never varied"):
        learned = op.LogOddsTransformer(output="probability").fit(frame, y, prior=0.3)
    p = learned.transform(pd.DataFrame({"good": [0.5, NAN], "same": [7.3, 900.0], "none": [2.0, NAN]}))
    np.testing.assert_allclose(p[:, 1], 0.3)
    assert p[0, 2] == pytest.approx(0.3)
    assert np.isnan(p[1, [0, 2]]).all()
    alone = op.LogOddsTransformer(output="probability").fit(x[:, :1], y, prior=0.3)
    np.testing.assert_array_equal(p[0, 0], alone.transform([[0.5]])[0, 0])
    assert learned.calibration_[1:].tolist() == [0, 0]


def fitted(x, y, weight=None, **options):
    return op.LogOddsTransformer(**options).fit(np.reshape(x, (len(x), -1)), y, sample_weight=weight)


X, Y = covariates()


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (partial(op.recalibrate, 1.2, 1.0), op.ProbabilityError, None),
        (partial(op.recalibrate, 0.5, NAN), op.ArgumentError, None),
        (partial(op.recalibrate, 0.5, 1.0, np.inf), op.ArgumentError, None),
        (partial(op.recalibrate, 0.5, 1.0, 0.0, 1.0), op.ProbabilityError, None),
        (partial(fitted, [1.0, 2.0], [0, 1]), op.LearningError, "at least 3 resolved events and both outcomes"),
        (partial(fitted, [1.0, 2.0, 3.0], [1, 1, 1]), op.LearningError,
         "0 with outcome 0 and 3 with outcome 1, one class at most"),
        (partial(fitted, [1.0, 2.0, 2.0], [0, 1, 1]), op.LearningError,
         "some within-outcome variation for 'x0', and it has 1 and 2"),
        (partial(fitted, [1.0, NAN, NAN, 2.0, 3.0], [0, 1, 0, 0, 0]), op.LearningError, "for 'x0', and it has 3 and 0"),
        (partial(fitted, X, np.arange(len(Y)) % 3), op.OutcomeError,
         r"Only binary classification is supported\. There are 3 classes"),
        (partial(fitted, X, Y, output="odds"), op.ArgumentError, "output must be one of log-odds, probability"),
        (partial(fitted, X, Y, np.zeros(len(Y))), op.ArgumentError, "weight above zero"),
        (partial(op.LogOddsTransformer().transform, X), NotFittedError, None),
    ],
)  # fmt: skip
def test_what_cannot_be_recalibrated_is_refused(call, error, told):
    with pytest.raises(error, match=told):
        call()


def test_unresolved_events_and_weight_zero_teach_nothing():
    x, y = covariates()
    told = np.where(np.arange(len(y)) % 4 == 0, NAN, y)
    kept = ~np.isnan(told)
    rest = op.LogOddsTransformer().fit(x[kept], y[kept])
    for learned in (
        op.LogOddsTransformer().fit(x, told),
        op.LogOddsTransformer().fit(x, y, sample_weight=kept),
        op.LogOddsTransformer().fit(np.repeat(x, 2, axis=0), np.repeat(told, 2), sample_weight=np.tile([1, 0], len(y))),
    ):
        np.testing.assert_allclose(learned.transform(x), rest.transform(x), rtol=1e-10)
        assert learned.prior_ == rest.prior_


def test_a_prior_for_each_event():
    x, y = covariates()
    index = [f"e{i}" for i in range(len(y))]
    prior = pd.Series(np.linspace(0.2, 0.7, len(y)), index=index)
    frame = pd.DataFrame(x, index=index)
    transformer = op.LogOddsTransformer()
    updated = transformer.fit_transform(frame, pd.Series(y, index=index)[::-1], prior[::-1])
    assert transformer.prior_ is None
    np.testing.assert_array_equal(transformer.transform(frame[::-1], prior), updated[::-1])
    plain = op.LogOddsTransformer().fit_transform(x, y, prior.to_numpy())
    np.testing.assert_allclose(updated, plain, rtol=1e-9)
    with pytest.raises(op.ProbabilityError, match="a prior for each event"):
        transformer.transform(frame)


def test_names_clones_pickles_and_frames():
    x, y = covariates()
    frame = pd.DataFrame(x, columns=["age", "dose", "mass"])
    transformer = op.LogOddsTransformer(output="probability").set_output(transform="pandas")
    p = transformer.fit_transform(frame, np.where(y, "ill", "well"))
    assert p.columns.tolist() == ["age", "dose", "mass"]
    assert transformer.classes_.tolist() == ["ill", "well"]
    assert clone(transformer).get_params() == {"output": "probability"}
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(transformer)).transform(frame), p)
    well = op.LogOddsTransformer(output="probability").fit_transform(x, 1 - y)
    np.testing.assert_allclose(p, well, rtol=1e-12)
    np.testing.assert_allclose(op.LogOddsTransformer(output="probability").fit_transform(x, y), 1 - well, rtol=1e-9)
