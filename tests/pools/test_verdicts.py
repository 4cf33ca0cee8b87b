"""Pools of verdicts: counts by hand, EM against a search of its likelihood, scores against logistic regression."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

import opinionpool as op
from opinionpool.errors import ArgumentError
from opinionpool.pools.fit import fit_pool

NAN = float("nan")


def judged(seed, events=300, judges=5, known=0.1, missing=0.1):
    """Votes of judges who err independently, with outcomes of some events."""
    rng = np.random.default_rng(seed)
    y = (rng.random(events) < 0.3).astype(int)
    right = np.where(y[:, None] > 0, rng.uniform(0.6, 0.9, judges), rng.uniform(0.7, 0.95, judges))
    votes = np.where(rng.random((events, judges)) < right, y[:, None], 1 - y[:, None]).astype(float)
    votes[rng.random((events, judges)) < missing] = NAN
    return votes, [int(o) if rng.random() < known else None for o in y], y


def test_vote_share_by_hand():
    f = op.Forecasts.from_array([[0.9, 0.6, 0.2], [0.4, 0.5, NAN], [NAN, NAN, NAN]])
    assert fit_pool("vote-share", f, prior=0.3).pool_forecasts(f) == pytest.approx([2.3 / 4, 0.8 / 3, 0.3])
    f = op.Forecasts.from_array([[[0.5, 0.3, 0.2], [0.4, 0.4, 0.2]]], classes=("a", "b", "c"))
    third = 1 / 3
    assert fit_pool("vote-share", f).pool_forecasts(f)[0] == pytest.approx(
        [(1.5 + third) / 3, (0.5 + third) / 3, third / 3]
    )


def test_majority_is_as_sure_as_majorities_were_right():
    f = op.Forecasts.from_array([[1, 1, 0], [0, 0, 1], [1, 1, 1], [1, 0, NAN]], [1, 0, 0, 1], scale="0-1")
    learned = fit_pool("majority", f)
    # Right on two events, wrong on one, tied on one; ¾ as by four events.
    assert learned.parameters["right"] == pytest.approx((2 + 0.5 + 3) / 8)
    assert learned.pool_forecasts(f) == pytest.approx([5.5 / 8, 2.5 / 8, 5.5 / 8, 0.5])
    assert fit_pool("majority", op.Forecasts.from_array([[1, 1, 0]], scale="0-1")).pool([0.75, 0.75, 0.25]) == 0.75


class TestDawidSkene:
    @pytest.mark.parametrize("known", [0.0, 0.3])
    def test_em_reaches_what_a_search_finds(self, known):
        votes, outcomes, _ = judged(0, events=60, judges=3, known=known)
        n = votes.shape[1]
        y = np.array([NAN if o is None else o for o in outcomes])

        def loss(x):
            sensitivity, specificity, rate = expit(x[:n]), expit(x[n : 2 * n]), expit(x[-1])
            yes = np.log(rate) + np.nansum(np.log(np.where(votes > 0, sensitivity, 1 - sensitivity)) + 0 * votes, 1)
            no = np.log1p(-rate) + np.nansum(np.log(np.where(votes > 0, 1 - specificity, specificity)) + 0 * votes, 1)
            each = np.where(y == 1, yes, np.where(y == 0, no, np.logaddexp(yes, no)))
            beliefs = sum(np.log(p * (1 - p)).sum() for p in (sensitivity, specificity, np.array(rate)))
            return -each.sum() - beliefs

        best = minimize(loss, np.append(np.ones(2 * n), 0.0), method="BFGS", options={"gtol": 1e-7}).x
        found = fit_pool(
            "dawid-skene", op.Forecasts.from_array(votes, outcomes, scale="0-1", classes=(0, 1))
        ).parameters
        assert found["sensitivity"] == pytest.approx(expit(best[:n]), abs=1e-4)
        assert found["specificity"] == pytest.approx(expit(best[n : 2 * n]), abs=1e-4)
        assert found["rate"] == pytest.approx(expit(best[-1]), abs=1e-4)

    def test_what_is_true_is_found_without_outcomes(self):
        votes, _, y = judged(1, events=20_000, judges=6, known=0.0)
        f = op.Forecasts.from_array(votes, scale="0-1")
        found = fit_pool("dawid-skene", f)
        said = np.nanmean(np.where(y[:, None] > 0, votes, NAN), axis=0)
        assert found.parameters["sensitivity"] == pytest.approx(said, abs=0.03)
        assert found.parameters["rate"] == pytest.approx(y.mean(), abs=0.02)
        p = found.pool_forecasts(f)
        assert p[p > 0.5].mean() == pytest.approx(y[p > 0.5].mean(), abs=0.02)

    def test_two_classes_only(self):
        f = op.Forecasts.from_array([[[0.5, 0.3, 0.2]]], classes=("a", "b", "c"))
        with pytest.raises(ArgumentError, match="two classes"):
            fit_pool("dawid-skene", f)


def test_mean_score_is_a_logistic_regression_on_the_mean():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 400)
    scores = np.clip(np.round(3 + 0.4 * (2 * y[:, None] - 1) + 1.5 * rng.normal(size=(400, 4))), 1, 5)
    f = op.Forecasts.from_array(scores, y, scale="1-5")
    mean = logit(((scores - 0.5) / 5).mean(axis=1))
    fit = LogisticRegression(C=1e10, tol=1e-9).fit(mean[:, None], y)
    found = fit_pool("mean-score", f, penalty=0, prior=0.5)
    assert found.pool_forecasts(f) == pytest.approx(fit.predict_proba(mean[:, None])[:, 1], abs=1e-5)
    none = op.Forecasts.from_array(scores, scale="1-5")
    assert fit_pool("mean-score", none).pool_forecasts(none) == pytest.approx(expit(mean))


def test_they_are_compared_where_judges_give_levels():
    votes, _, y = judged(3, events=80, judges=4, missing=0.0)
    found = op.compare_pools(op.Forecasts.from_array(votes, y, scale="0-1"), folds=2, repeats=1)
    names = {"vote-share", "majority", "dawid-skene", "mean-score"}
    assert names <= {each.pool for each in found.pools}
    q = np.where(votes > 0, 0.75, 0.25)
    plain = op.compare_pools(op.Forecasts.from_array(q, y), folds=2, repeats=1)
    assert not names & {each.pool for each in plain.pools}
