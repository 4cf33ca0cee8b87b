"""What is mixed with the log pool: answers by hand, shares by likelihoods, and when nothing is."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm

import opinionpool as op
from opinionpool.forecasts import Forecasts
from opinionpool.learning.constants import MEMBER_SLOPE_SD, MEMBERS, SLOPE_SD
from opinionpool.learning.learn import learn
from opinionpool.learning.members import AVERAGE_SD
from opinionpool.model.panel import Panel

NAN, INF = float("nan"), float("inf")


def panel(k=2, t=40, seed=0):
    prior = 0.5 if k == 2 else np.full(k, 1 / k)
    return Panel.exchangeable(3, correlation=0.5, accuracy=1.0, classes=range(k)).simulate(t, prior, seed=seed)


@pytest.mark.parametrize("k", [2, 3])
def test_an_answer_is_the_mixture_of_pool_average_and_experts(k):
    x, y = panel(k)
    learned = learn(Forecasts.from_array(x, y, classes=range(k)))
    said = x[:8].copy()
    said[0, 0], said[1, 1:], said[2] = NAN, NAN, NAN
    pooled, members = learned.panel.pool(said, learned.reference()), learned.members
    by_class = said[..., None] if k == 2 else said
    average = np.nanmean(by_class[[0, 1, *range(3, 8)]], axis=1)
    filled = np.where(np.isnan(by_class[[0, 1, *range(3, 8)]]), average[:, None], by_class[[0, 1, *range(3, 8)]])
    follow = np.einsum("i,tik->tk", members.follow, filled)
    mean = members.shares[1] * average + members.shares[2] * follow
    expected = members.shares[0] * pooled[[0, 1, *range(3, 8)]] + (mean[:, 0] if k == 2 else mean)
    found = learned.pool(said)
    np.testing.assert_allclose(found[[0, 1, *range(3, 8)]], expected, rtol=1e-12)
    # Nobody answered.
    np.testing.assert_allclose(found[2], learned.prior[1] if k == 2 else learned.prior)


@pytest.mark.parametrize("k", [2, 3])
def test_shares_go_by_the_likelihood_of_the_outcomes(k):
    x, y = panel(k, 12, seed=3)
    x[4, 1] = NAN
    learned = learn(Forecasts.from_array(x, y, classes=range(k)))
    full = np.stack([1 - x, x], axis=-1) if k == 2 else x
    given = full[np.arange(12), :, y.astype(int)]
    average = np.nanmean(given, axis=1)
    each = np.where(np.isnan(given), average[:, None], given).prod(axis=0)
    found = learned.posterior.shares_
    odds = MEMBERS[1] * average.prod() / (MEMBERS[2] * each.mean())
    assert found["simple average"] / found["one expert"] == pytest.approx(odds)
    assert learned.members.follow == pytest.approx(each / each.sum())
    assert sum(found.values()) == pytest.approx(1)
    assert list(found.values()) == learned.members.shares.tolist()


def test_outcomes_decide_between_members():
    rng = np.random.default_rng(1)
    y = (rng.random(200) < 0.5).astype(float)
    knows = expit(3.0 * (2 * y - 1) + rng.normal(size=200))
    star = np.column_stack([knows, *(0.5 + 0.3 * rng.uniform(-1, 1, size=(8, 200)))])
    before = learn(Forecasts.from_array(star, np.full(200, NAN))).members
    assert tuple(before.shares) == MEMBERS
    members = [learn(Forecasts.from_array(star[:t], y[:t])).members for t in (10, 200)]
    assert [each.follow[0] > 0.9 for each in members] == [True, True]
    assert members[0].shares[2] > MEMBERS[2] > members[0].shares[1]
    # The average of calibrated forecasts that differ in nothing.
    common = expit(rng.normal(size=400))
    alike = common[:, None] + np.array([0.001, -0.001, 0.0])
    learned = learn(Forecasts.from_array(np.clip(alike, 0.01, 0.99), rng.random(400) < common))
    assert learned.members.shares[1] > MEMBERS[1]


def test_nothing_is_mixed_where_there_is_no_choice():
    x, y = panel(t=20)
    assert learn(Forecasts.from_array(x[:, :1], y)).members is None
    assert learn(Forecasts.from_array(x[:, [0, 0]], y)).members is None
    certain = op.Beliefs(calibration=(0.9, INF), accuracy=(1.0, INF), correlation=(0.5, INF))
    learned = learn(Forecasts.from_array(x, y), beliefs=certain)
    assert learned.members is None
    assert learned.pool(x) == pytest.approx(learned.panel.pool(x, learned.reference()))
    options = Forecasts.from_array([[0.5, 0.6], [0.5, 0.4]], options=[["a", "b"], ["c", "d"]])
    assert learn(options).members is None


def test_a_panel_that_somebody_assessed_is_answered_by_its_weights_alone():
    x, y = panel(t=20)
    learned = learn(Forecasts.from_array(x, y), beliefs=op.Beliefs(correlation=0.5))
    assert learned.members is None
    # Of an expert who has forecast nothing much may be believed.
    f = Forecasts.from_array(np.column_stack([x, np.full(20, NAN)]), y)
    newcomer = op.Beliefs(experts={"expert_4": {"auc": 0.9}})
    assert learn(f, beliefs=newcomer).members.shares == pytest.approx(learn(f).members.shares)


def test_a_base_rate_moves_the_mixture():
    x, y = panel(t=20)
    learned = learn(Forecasts.from_array(x, y), prior=0.5)
    moved = logit(learned.pool(x, base_rate=0.2)) - logit(learned.pool(x))
    np.testing.assert_allclose(moved, logit(0.2))


@pytest.mark.parametrize("missing", [False, True])
def test_all_of_many_events_decide_whatever_form_they_have(missing):
    rng = np.random.default_rng(2)
    chance = rng.uniform(0.05, 0.95, size=24_000)
    y = (rng.random(24_000) < chance).astype(float)
    x = np.clip(chance[:, None] + np.array([0.002, -0.002, 0.0]) + 0.002 * rng.normal(size=(24_000, 3)), 0.01, 0.99)
    if missing:
        x[rng.random(x.shape) < 0.2] = NAN
    array, table = op.GaussianPool().fit(x, y), op.GaussianPool().fit(Forecasts.from_array(x, y))
    assert array.posterior_.shares_ == pytest.approx(table.posterior_.shares_, rel=1e-6)
    assert array.state_.members.follow == pytest.approx(table.state_.members.follow, rel=1e-6)
    np.testing.assert_allclose(array.state_.pool(x[:50]), table.state_.pool(x[:50]), rtol=1e-7)


@pytest.mark.parametrize("k", [2, 3])
def test_intervals_are_quantiles_of_all_members(k):
    x, y = panel(k)
    learned = learn(Forecasts.from_array(x, y, classes=range(k)))
    full = (np.stack([1 - x, x], axis=-1) if k == 2 else x)[:5]

    def ends(*shares):
        members = replace(learned.members, shares=np.array(shares))
        found = logit(np.array(replace(learned, members=members).interval(x[:5])))
        return found[..., None] if k == 2 else found

    shown = slice(1, 2) if k == 2 else slice(None)
    start = logit(np.asarray(learned.reference()))
    slopes = np.exp(np.sqrt(3 * (MEMBER_SLOPE_SD**2 - SLOPE_SD**2)) * np.array([-1.0, 0.0, 1.0]))

    def below(ends, mean, sd):
        """Probability that the member's log-odds are below: slopes are about log-normal."""
        away = slopes[:, None, None] * (mean - start)
        return np.array([1, 4, 1]) / 6 @ norm.cdf((ends - start - away) / np.hypot(sd, SLOPE_SD * away)).swapaxes(0, 1)

    average, odds, follow = logit(full.mean(axis=1))[:, shown], logit(full)[..., shown], learned.members.follow
    mean = np.einsum("i,tik->tk", follow, odds)
    sd = np.sqrt(np.einsum("i,tik->tk", follow, (odds - mean[:, None]) ** 2))
    for shares, centre, own in (((0.0, 1.0, 0.0), average, AVERAGE_SD), ((0.0, 0.0, 1.0), mean, sd)):
        low, high = ends(*shares)
        np.testing.assert_allclose(below(low, centre, own), 0.05, atol=2e-4)
        np.testing.assert_allclose(below(high, centre, own), 0.95, atol=2e-4)
    # A member that is far off moves an end only.
    (low, high), (_, most) = ends(1.0, 0.0, 0.0), ends(0.9, 0.1, 0.0)
    assert (np.abs(most - high) < (high - low)).all()
