"""Learning from crowds: recovery in simulation, closed forms, and pooling without an array of events x experts."""

import numpy as np
import pytest

import opinionpool.learning.learn as learning
from opinionpool.errors import ProbabilityError
from opinionpool.estimators.pools import GaussianPool
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.cells import Cells
from opinionpool.learning.constants import CROWD_WORTH, MEMBERS
from opinionpool.learning.crowd import ROUNDS, _AtLimit, crowd_fit
from opinionpool.learning.hierarchy import Hierarchy
from opinionpool.learning.learn import learn
from opinionpool.learning.prior import Believed
from opinionpool.learning.rows import SparseContrasts
from opinionpool.logodds import expit
from opinionpool.scoring.scores import log_score


class Crowd:
    """Cells of a crowd with known features; the busiest experts have many times as many forecasts as others."""

    def __init__(self, seed, events=4000, experts=600, each=12, rho=0.5, differ=1.0):
        rng = np.random.default_rng(seed)
        chance = rng.pareto(1.5, experts) + 0.2
        expert = rng.choice(experts, size=events * each, p=chance / chance.sum())
        cells = np.unique(np.repeat(np.arange(events), each) * experts + expert)
        self.event, self.expert = cells // experts, cells % experts
        self.bias = 0.1 + 0.3 * differ * rng.normal(size=experts)
        self.contrast = 1.0 + 0.4 * differ * rng.normal(size=experts)
        self.spread = np.sqrt(2) * np.exp(0.3 * differ * rng.normal(size=experts))
        self.y = (rng.random(events) < 0.4).astype(np.intp)
        noise = np.sqrt(rho) * rng.normal(size=events)[self.event] + np.sqrt(1 - rho) * rng.normal(size=len(cells))
        own = self.expert
        self.forecast = self.bias[own] + self.contrast[own] * (2 * self.y[self.event] - 1) + self.spread[own] * noise
        self.experts = tuple(f"e{i}" for i in range(experts))

    def cells(self):
        told = (2.0 * self.y - 1)[self.event, None]
        return Cells(
            self.event, self.expert, self.forecast[:, None], told, np.ones(len(self.forecast)), len(self.y), 600
        )

    def fit(self, kept=slice(None), forecast=None):
        """Learned from some of the forecasts, or others."""
        t, said = len(self.y), self.forecast[:, None] if forecast is None else forecast
        about = {"reference": np.zeros((t, said.shape[1])), "outcomes": self.y, "weight": np.ones(t)}
        cells = {"event": self.event[kept], "expert": self.expert[kept], "contrasts": said[kept]}
        data = SparseContrasts(**cells, **about, experts=self.experts)
        return crowd_fit(data, Believed.of(Beliefs(), self.experts))

    def forecasts(self, outcomes=None):
        events = tuple(f"q{i}" for i in range(len(self.y)))
        y = self.y if outcomes is None else outcomes
        return Forecasts(events, self.experts, (0, 1), self.event, self.expert, expit(self.forecast), y)


@pytest.fixture(scope="module")
def crowd():
    return Crowd(0)


class TestHierarchy:
    def test_recovers_the_crowd(self, crowd):
        found = Hierarchy.learn(crowd.cells(), Believed.of(Beliefs(), crowd.experts), CROWD_WORTH, ROUNDS)
        assert found.centre.bias[0, 0] == pytest.approx(0.1, abs=0.06)
        assert found.centre.contrast[0] == pytest.approx(1.0, abs=0.06)
        assert found.correlation == pytest.approx(0.5, abs=0.04)

    def test_recovers_each_expert_as_far_as_its_forecasts_go(self, crowd):
        found = Hierarchy.learn(crowd.cells(), Believed.of(Beliefs(), crowd.experts), CROWD_WORTH, ROUNDS)
        features = found.features(10.0)
        count = np.bincount(crowd.expert, minlength=600)
        busy = count > 100
        for found, true, most in (
            (features.bias[:, 0], crowd.bias, 0.12),
            (features.contrast, crowd.contrast, 0.12),
            (np.log(features.spread), np.log(crowd.spread), 0.1),
        ):
            assert np.sqrt(np.mean((found - true)[busy] ** 2)) < most
            assert np.std(found[count < 8]) < 0.8 * np.std(found[busy])
            # Held to the crowd's, an expert is nearer to its own features than the crowd's are.
            assert np.mean((found - true) ** 2) < 0.5 * np.var(true)

    @pytest.mark.parametrize("times", [1, 4, 9])
    def test_who_repeats_the_prior_moves_nothing_however_seldom(self, times):
        rng = np.random.default_rng(times)
        y = rng.integers(0, 2, 100)
        forecast = 0.8 * (2 * y - 1)[:, None] + rng.normal(size=(100, 1)) + rng.normal(size=(100, 620))
        x = np.where(rng.random(forecast.shape) < 0.95, np.nan, expit(forecast))
        repeated = np.full((100, 2), np.nan)
        for column in repeated.T:
            column[rng.permutation(100)[:times]] = 0.4
        plain, beside = (learn(Forecasts.from_array(each, y), prior=0.4) for each in (x, np.hstack([x, repeated])))
        assert beside.structure == "crowd"
        assert beside.pool(np.hstack([x, repeated])) == pytest.approx(plain.pool(x), abs=1e-12)
        assert beside.weights[-2:].tolist() == [0.0, 0.0]

    def test_frequencies_are_repetitions(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 150)
        said = 0.8 * (2 * y - 1)[:, None] + rng.normal(size=(150, 1)) + rng.normal(size=(150, 700))
        x = np.where(rng.random(said.shape) < 0.95, np.nan, 1 / (1 + np.exp(-said)))
        weight = rng.integers(1, 4, 150)
        repeated = np.repeat(np.arange(150), weight)
        weighted = learn(Forecasts.from_array(x, y), prior=0.4, sample_weight=weight)
        again = learn(Forecasts.from_array(x[repeated], y[repeated]), prior=0.4)
        assert weighted.structure == "crowd"
        assert weighted.pool(x) == pytest.approx(again.pool(x), abs=1e-9)


class TestThroughLearning:
    def test_beats_the_average_on_new_events(self, crowd):
        hidden = np.where(np.arange(len(crowd.y)) < 3000, crowd.y, -1)
        found = learn(crowd.forecasts(hidden))
        assert (found.structure, found.notes[0].code) == ("crowd", "crowd")
        assert found.counts.sum() == (crowd.event < 3000).sum()
        new = crowd.forecasts().select_events(np.arange(3000, 4000))
        p = found.pool_forecasts(new)
        mean = np.bincount(new.event_index, new.probabilities) / new.crowd
        assert log_score(p, new.outcomes).mean() > log_score(mean, new.outcomes).mean() + 0.1

    def test_open_events_tell_of_features(self, crowd):
        y = np.where(np.arange(len(crowd.y)) < 800, crowd.y, -1)
        forecasts = crowd.forecasts(y)
        alone = learn(forecasts.select_events(np.flatnonzero(y >= 0)), prior=0.5)
        also = learn(forecasts, prior=0.5)
        truth = crowd.y[800:]
        loss = [
            -float(np.log(np.where(truth == 1, p, 1.0 - p)).mean())
            for p in (each.pool_forecasts(forecasts)[800:].ravel() for each in (alone, also))
        ]
        assert loss[1] < loss[0] - 0.003
        for name in ("bias", "contrast"):
            true, found = (
                getattr(crowd, name),
                [np.asarray(getattr(each.panel, name)).ravel() for each in (alone, also)],
            )
            assert np.corrcoef(true, found[1])[0, 1] > np.corrcoef(true, found[0])[0, 1] + 0.05

    def test_few_or_thorough_experts_are_no_crowd(self, crowd):
        f = crowd.forecasts()
        assert learning.is_crowd(f, np.ones(4000))
        assert not learning.is_crowd(f.select_experts(crowd.experts[:30]), np.ones(4000))
        assert not learning.is_crowd(crowd.forecasts(np.full(4000, -1)), np.ones(4000))
        x = np.random.default_rng(0).uniform(0.1, 0.9, (50, 600))
        assert not learning.is_crowd(Forecasts.from_array(x, [0, 1] * 25), np.ones(50))

    def test_few_events_are_no_crowd_unless_an_array_would_be_too_large(self, crowd, monkeypatch):
        few = np.where(np.arange(len(crowd.y)) < 39, crowd.y, -1)
        assert not learning.is_crowd(crowd.forecasts(few), np.ones(4000))
        monkeypatch.setattr(learning, "LARGE", 10**6)
        assert learning.is_crowd(crowd.forecasts(few), np.ones(4000))

    def test_the_average_is_a_member_of_a_crowd(self):
        rng = np.random.default_rng(4)
        y = (rng.random(160) < 0.5).astype(float)
        noise = rng.normal(size=(160, 1)) + 1.4 * rng.normal(size=(160, 100))
        q = np.where(rng.random(noise.shape) < 0.15, expit(0.4 * (2 * y - 1)[:, None] + noise), np.nan)
        f = Forecasts.from_array(q, [*y[:60].tolist(), *[None] * 100], classes=(0, 1))
        learned = learn(f)
        assert learned.structure == "crowd"
        given = np.where(y[:60, None] == 1, q[:60], 1.0 - q[:60])
        average = np.nanmean(given, axis=1)
        each = np.log(np.where(np.isnan(given), average[:, None], given)).sum(axis=0)
        found = learned.posterior.shares_
        odds = found["simple average"] / found["one expert"]
        expected = MEMBERS[1] / MEMBERS[2] * np.exp(np.log(average).sum()) / np.exp(each).mean()
        assert odds == pytest.approx(expected)
        log_pool = learned.panel.pool_forecasts(f, learned.reference())
        mixed = learned.members.shares[0] * log_pool + learned.members.shares[1] * np.nanmean(q, axis=1)
        follow = np.where(np.isnan(q), np.nanmean(q, axis=1, keepdims=True), q) @ learned.members.follow
        assert learned.pool_forecasts(f) == pytest.approx(mixed + learned.members.shares[2] * follow)

    def test_one_expert_more_moves_answers_little(self):
        """Neither at the number from which weights follow from features, nor where all were learned alike before."""
        for n, panels, most in ((30, 4, 0.08), (500, 1, 0.01)):
            moved = []
            for seed in range(panels):
                rng = np.random.default_rng([n, seed])
                y = rng.integers(0, 2, 120)
                accuracy = np.exp(0.5 * rng.normal(size=n + 1))
                noise = 0.6 * rng.normal(size=(120, 1)) + 0.8 * rng.normal(size=(120, n + 1))
                said = 0.5 * accuracy * (2 * y - 1)[:, None] + noise
                q = np.where(rng.random(said.shape) < max(0.02, 6 / n), expit(said), np.nan)
                outcomes = [*y[:40].tolist(), *[None] * 80]
                answers = [
                    learn(Forecasts.from_array(q[:, :m], outcomes, classes=(0, 1))).pool_forecasts(
                        Forecasts.from_array(q[:, :m])
                    )
                    for m in (n, n + 1)
                ]
                moved.append(np.abs(answers[1] - answers[0])[40:].mean())
            assert np.mean(moved) < most

    def test_no_resolved_event_of_many(self, crowd, monkeypatch):
        monkeypatch.setattr(learning, "LARGE", 10**6)
        f = crowd.forecasts(np.full(len(crowd.y), -1))
        found = learn(f, prior=0.5)
        assert "X" not in vars(f)
        assert found.structure == "assumed"
        assert found.present.sum() == len(np.unique(crowd.expert))
        assert np.isfinite(found.pool_forecasts(f)).all()

    def test_priors_of_each_event(self, crowd):
        """L − L° is what is learned from: moving both alike changes nothing but the offset of the last regression."""
        f = crowd.forecasts()
        rng = np.random.default_rng(2)
        shift = rng.normal(size=4000)
        moved = Forecasts(
            f.events, f.experts, f.classes, f.event_index, f.expert_index, expit(crowd.forecast + shift[f.event_index]),
            f.outcomes, prior=expit(shift),
        )  # fmt: skip
        a, b = learn(f, prior=0.5, floor=1e-12), learn(moved, floor=1e-12)
        assert b.prior is None
        assert np.corrcoef(a.panel.parts.contrast, b.panel.parts.contrast)[0, 1] > 0.99
        assert np.corrcoef(a.panel.bias, b.panel.bias)[0, 1] > 0.99
        with pytest.raises(ProbabilityError, match="a prior for each event"):
            b.pool_forecasts(moved)
        assert b.pool_forecasts(moved, prior=moved.prior).shape == (4000,)


def test_an_event_is_judged_with_features_that_its_outcome_has_no_part_in(monkeypatch):
    """Neither directly nor by what open events stand for, on which the same experts gave forecasts."""
    rng, judged = np.random.default_rng(0), []
    cues, taken = rng.normal(size=(160, 15)), rng.dirichlet(np.full(15, 0.3), size=100)
    q = expit(2.0 * (cues @ taken.T + 0.5 * rng.normal(size=(160, 100))))
    q[rng.random(q.shape) < 0.85] = np.nan
    panel = _AtLimit.panel

    def watched(self):
        judged.append(self.features_otherwise(1.0).contrast[self.cells.event == 0])
        return panel(self)

    monkeypatch.setattr(_AtLimit, "panel", watched)
    for outcome in (0, 1):
        GaussianPool().fit(q, np.r_[outcome, np.arange(39) % 2, np.full(120, np.nan)], prior=0.5)
    np.testing.assert_allclose(judged[0], judged[1], atol=1e-3)
    assert judged[0].std() > 0.01
