"""Which dependence holds among a crowd, copies in it, and experts known from what others say of open events."""

from dataclasses import replace

import numpy as np
import pytest

from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.cells import Cells
from opinionpool.learning.hierarchy import Hierarchy, nested_correlation
from opinionpool.learning.learn import learn
from opinionpool.learning.prior import Believed
from opinionpool.logodds import expit, logit
from opinionpool.model.correlation import CommonCorrelation, MixedCorrelation
from opinionpool.model.nested import NestedCorrelation
from opinionpool.saving.files import POOLS, read, to_bytes, write


class Crowd:
    """Twelve forecasts an event by 600 unequal experts of known features, drawn event by event with a matrix."""

    def __init__(self, seed, *, nested, events=1200, experts=600, each=12, rho=0.4, differ=1.0):
        rng = np.random.default_rng(seed)
        self.contrast = np.exp(-0.3 + 0.5 * differ * rng.normal(size=experts))
        self.spread = np.exp(0.2 + 0.3 * differ * rng.normal(size=experts))
        self.bias = 0.4 * differ * rng.normal(size=experts)
        self.y = (rng.random(events) < 0.5).astype(np.intp)
        own = np.stack([np.sort(rng.choice(experts, each, replace=False)) for _ in range(events)])
        signal = self.contrast / self.spread
        error, self.optimal = np.empty(own.shape), np.empty(events)
        for t, some in enumerate(own):
            low, high = np.minimum.outer(signal[some], signal[some]), np.maximum.outer(signal[some], signal[some])
            r = rho * (low / high if nested else np.ones((each, each)))
            np.fill_diagonal(r, 1.0)
            error[t] = np.linalg.cholesky(r) @ rng.normal(size=each)
            said = signal[some] * (2 * self.y[t] - 1) + error[t]
            self.optimal[t] = 2.0 * np.linalg.solve(r, signal[some]) @ said
        given = self.bias[own] + self.contrast[own] * (2 * self.y - 1)[:, None] + self.spread[own] * error
        self.event, self.expert, self.given = np.repeat(np.arange(events), each), own.ravel(), given.ravel()
        self.experts = tuple(f"e{i}" for i in range(experts))

    def forecasts(self, resolved):
        events = tuple(f"q{i}" for i in range(len(self.y)))
        y = np.where(np.arange(len(self.y)) < resolved, self.y, -1)
        return Forecasts(events, self.experts, (0, 1), self.event, self.expert, expit(self.given), y)

    def loss(self, p, first):
        return -float(np.log(np.where(self.y == 1, p, 1.0 - p))[first:].mean())


@pytest.fixture(scope="module", params=[False, True], ids=["common", "nested"])
def crowd(request):
    return request.param, Crowd(3, nested=request.param)


def of_weights(learned):
    """What weights go with, and how probable each is."""
    found = learned.posterior
    rows = zip(found.hyperparameter, found.value, found.posterior.tolist(), strict=True)
    return {value: p for name, value, p in rows if name == "weights"}


class TestWhichHolds:
    def test_outcomes_tell(self, crowd):
        nested, one = crowd
        shares = of_weights(learn(one.forecasts(1200), prior=0.5))
        assert shares["features, nested evidence" if nested else "features, one correlation"] > 0.9
        assert sum(shares.values()) == pytest.approx(1.0, abs=1e-3)

    def test_the_truth_is_worth_more_on_open_events(self, crowd, monkeypatch):
        nested, one = crowd
        f = one.forecasts(600)
        losses = {}
        for kind in ("common", "nested"):
            believed = (0.3, 1e-300) if kind == "common" else (1e-300, 0.3)
            monkeypatch.setattr("opinionpool.learning.crowd.FEATURES", believed)
            losses[kind] = one.loss(learn(f, prior=0.5).pool_forecasts(f), 600)
        monkeypatch.undo()
        learned = one.loss(learn(f, prior=0.5).pool_forecasts(f), 600)
        true, other = ("nested", "common") if nested else ("common", "nested")
        assert losses[true] < losses[other]
        assert learned < losses[true] + 0.25 * (losses[other] - losses[true])

    def test_nested_correlation_from_pairs(self):
        one = Crowd(1, nested=True)
        s = one.contrast / one.spread
        error = (one.given - one.bias[one.expert]) / one.spread[one.expert] - s[one.expert] * (2 * one.y - 1)[one.event]
        t, n = len(one.y), len(one.experts)
        cells = Cells(one.event, one.expert, error[:, None], error[:, None], np.ones(len(error)), t, n)
        # Ten events' worth of a belief in 0.65.
        assert nested_correlation(cells, error[:, None], s, Believed.of(Beliefs(), one.experts)) == pytest.approx(
            0.4, abs=0.03
        )


class TestProperties:
    @pytest.fixture
    def crowd(self, monkeypatch):
        """More events than shares and dependence are judged by."""
        monkeypatch.setattr("opinionpool.learning.crowd.JUDGING", 128)
        one = Crowd(12, nested=True, events=500)
        f = one.forecasts(300)
        return f, logit(learn(f, prior=0.5).pool_forecasts(f))

    def test_rounded_forecasts(self, crowd):
        """Many of the events are alike."""
        f = replace(crowd[0], probabilities=crowd[0].probabilities.round(1).clip(0.1, 0.9))
        answers = logit(learn(f, prior=0.5).pool_forecasts(f))
        order = np.random.default_rng(0).permutation(500)
        events = f.select_events(order)
        found = logit(learn(events, prior=0.5).pool_forecasts(events))
        assert found == pytest.approx(answers[order], abs=1e-9)
        experts = f.select_experts(tuple(np.random.default_rng(1).permutation(f.experts)))
        assert logit(learn(experts, prior=0.5).pool_forecasts(experts)) == pytest.approx(answers, abs=1e-9)
        y = np.where(f.outcomes < 0, -1, 1 - f.outcomes)
        swapped = replace(f, probabilities=1.0 - f.probabilities, outcomes=y)
        found = logit(learn(swapped, prior=0.5).pool_forecasts(swapped))
        assert found == pytest.approx(-answers, abs=1e-6)

    def test_answers_on_open_events_are_no_larger_than_experts_known_without_them_warrant(self, crowd):
        """Without the last step, answers on open events, which had a part in the fit, would be larger."""
        f, answers = crowd
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("opinionpool.learning.crowd._AtLimit.reuse_correction", lambda _: 1.0)
            larger = logit(learn(f, prior=0.5).pool_forecasts(f))
        # Panels by agreement, which are known without outcomes, keep their small part.
        ratio = answers / larger
        assert 0.6 < np.median(ratio) < 1.0
        assert (np.abs(answers) <= np.abs(larger) + 0.01).all()
        resolved = f.select_events(np.arange(300))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("opinionpool.learning.crowd._AtLimit.reuse_correction", lambda _: 0.5)
            halved = learn(resolved, prior=0.5).pool_forecasts(resolved)
        closed = learn(resolved, prior=0.5).pool_forecasts(resolved)
        # Within the floor of answers.
        inside = np.abs(logit(halved)) < 9.0
        assert inside.mean() > 0.8
        assert logit(halved)[inside] == pytest.approx(0.5 * logit(closed)[inside], abs=1e-6)


class TestMixture:
    def test_answers_are_averaged_in_log_odds(self):
        rng = np.random.default_rng(2)
        signal, z = rng.uniform(0.2, 2.0, 5), rng.normal(size=5)
        models, share = (CommonCorrelation(5, 0.3), NestedCorrelation(signal, 0.6)), np.array([0.3, 0.7])
        among = MixedCorrelation(models, share)
        one, other = (np.linalg.solve(each.matrix(), signal) @ z for each in models)
        assert among.solve(signal, np.ones((1, 5), dtype=bool))[0] @ z == pytest.approx(
            0.3 * one + 0.7 * other, rel=1e-12
        )
        some = np.array([0, 2, 3])
        present = np.isin(np.arange(5), some)[None]
        part = among.subset(some).solve(signal[some], np.ones((1, len(some)), dtype=bool))
        assert part[0] == pytest.approx(among.solve(signal, present)[0, some], rel=1e-12)
        assert among.times(z) == pytest.approx(among.matrix() @ z, rel=1e-12)

    def test_saved_and_read(self, tmp_path):
        found = learn(Crowd(0, nested=False, events=150).forecasts(150), prior=0.5)
        assert found.structure == "crowd"
        write(found, tmp_path / "pool.json")
        again = read(tmp_path / "pool.json", lambda _: POOLS)
        f = Crowd(1, nested=False, events=150).forecasts(0)
        assert (again.pool_forecasts(f) == found.pool_forecasts(f)).all()
        assert to_bytes(again) == to_bytes(found)
        assert isinstance(again.panel.parts.dependence, MixedCorrelation)


class TestOthers:
    def test_spread_of_the_next_forecast_has_what_is_open_about_the_expert(self):
        """Against the ridge regression's covariance, for an expert of few and one of many forecasts."""
        one = Crowd(11, nested=False, events=400)
        signs = (2.0 * one.y - 1)[one.event, None]
        cells = Cells(one.event, one.expert, one.given[:, None], signs, np.ones(len(one.given)), 400, 600)
        found, worth = Hierarchy.learn(cells, Believed.of(Beliefs(), one.experts), 15.0, 7), 20.0
        for i in (0, int(np.bincount(one.expert).argmax())):
            x = np.column_stack([np.ones((one.expert == i).sum()), signs[one.expert == i, 0]])
            precision = x.T @ x + worth * np.diag([1.0, found.length])
            own = (worth * found.centre.variance[0] + found.own_squares[i]) / (worth + len(x))
            # After what all share, so much of the variance is noise. Two outcomes are equally probable.
            open_ = np.trace(np.linalg.inv(precision)) * (1.0 - found.correlation) * own
            assert found.features(worth).spread[i] == pytest.approx(np.sqrt(own + open_), rel=0.02)


class TestCopies:
    def test_an_exact_copy_of_the_busiest_expert_changes_no_answer(self):
        one = Crowd(8, nested=False, events=400)
        busiest = int(np.bincount(one.expert).argmax())
        own, copy = one.expert == busiest, len(one.experts)
        event = np.append(one.event, one.event[own])
        order = np.argsort(event, kind="stable")
        expert = np.append(one.expert, np.full(own.sum(), copy))[order]
        q = expit(np.append(one.given, one.given[own]))[order]
        f = one.forecasts(200)
        more = Forecasts(f.events, (*f.experts, "copy"), (0, 1), event[order], expert, q, f.outcomes)
        without, found = learn(f, prior=0.5), learn(more, prior=0.5)
        assert found.panel.parts.source is not None
        assert [note.code for note in found.notes].count("clones") == 1
        assert logit(found.pool_forecasts(more)) == pytest.approx(logit(without.pool_forecasts(f)), abs=1e-9)
        one_event = np.flatnonzero(one.event[own] == one.event[own][0])
        assert len(one_event) == 1
        present = np.zeros((1, copy + 1), dtype=bool)
        present[0, [busiest, copy, busiest - 1]] = True
        weights = found.panel.weights_for(present)[0]
        assert weights[busiest] == pytest.approx(weights[copy], rel=1e-12)
        alone = without.panel.weights_for(present[:, :copy])[0]
        assert weights[busiest] + weights[copy] == pytest.approx(alone[busiest], rel=1e-9)


class TestIntervals:
    """What is open about a crowd, with what somebody who knows everybody's features would say as the truth."""

    def test_they_hold_the_truth_of_crowds_as_believed(self):
        inside, events = [], 500
        for seed, nested in ((0, False), (1, True), (2, True), (3, False)):
            one = Crowd(seed, nested=nested, events=events, differ=0.5)
            f = one.forecasts(300)
            learned = learn(f, prior=0.5)
            low, high = learned.forecast_intervals(f)
            assert ((low <= learned.pool_forecasts(f)) & (learned.pool_forecasts(f) <= high)).all()
            truth = expit(one.optimal)
            inside.append(((low <= truth) & (truth <= high))[300:].mean())
        assert 0.8 < np.mean(inside) < 0.98
