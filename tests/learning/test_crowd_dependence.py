"""Which dependence holds among a crowd, copies in it, and experts known from what others say of open events."""

from dataclasses import replace
from functools import partial

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


@pytest.fixture(scope="module")
def draw(study):
    """Draws a crowd of unequal experts of known features, event by event with a matrix."""
    return partial(study("crowd_dependence").Simulated.drawn, t=1200, n=600)


def of_weights(learned):
    """What weights go with, and how probable each is."""
    found = learned.posterior
    rows = zip(found.hyperparameter, found.value, found.posterior.tolist(), strict=True)
    return {value: p for name, value, p in rows if name == "weights"}


@pytest.mark.parametrize("nested", [False, True])
class TestWhichHolds:
    def test_outcomes_tell(self, draw, nested):
        shares = of_weights(learn(draw(3, 1200, nested=nested).forecasts, prior=0.5))
        assert shares["features, nested evidence" if nested else "features, one correlation"] > 0.9
        assert sum(shares.values()) == pytest.approx(1.0, abs=1e-3)

    def test_the_truth_is_worth_more_on_open_events(self, draw, study, nested):
        one = draw(3, 600, nested=nested)
        losses = {kind: one.fitted(each)[1] for kind, each in study("crowd_dependence").CHOICES.items()}
        true, other = ("nested", "common") if nested else ("common", "nested")
        assert losses[true] < losses[other]
        assert losses["learned"] < losses[true] + 0.25 * (losses[other] - losses[true])


def test_nested_correlation_from_pairs(draw):
    one = draw(1, 1200, nested=True)
    f, s = one.forecasts, one.contrast / one.spread
    event, expert = f.event_index, f.expert_index
    error = (logit(f.probabilities) - one.bias[expert]) / one.spread[expert]
    error -= s[expert] * (2 * one.outcomes - 1)[event]
    cells = Cells(event, expert, error[:, None], error[:, None], np.ones(len(error)), *f.shape)
    # Ten events' worth of a belief in 0.65.
    found = nested_correlation(cells, error[:, None], s, Believed.of(Beliefs(), f.experts))
    assert found == pytest.approx(0.4, abs=0.03)


class TestProperties:
    @pytest.fixture
    def crowd(self, draw):
        # One in which agreement has no part where outcomes are known.
        f = draw(16, 300, nested=True, t=500).forecasts
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

    def test_saved_and_read(self, draw, tmp_path):
        found = learn(draw(0, 150, nested=False, t=150).forecasts, prior=0.5)
        assert found.structure == "crowd"
        write(found, tmp_path / "pool.json")
        again = read(tmp_path / "pool.json", lambda _: POOLS)
        f = draw(1, 0, nested=False, t=150).forecasts
        assert (again.pool_forecasts(f) == found.pool_forecasts(f)).all()
        assert to_bytes(again) == to_bytes(found)
        assert isinstance(again.panel.parts.dependence, MixedCorrelation)


def test_spread_of_the_next_forecast_has_what_is_open_about_the_expert(draw):
    """Against the ridge regression's covariance, for an expert of few and one of many forecasts."""
    one = draw(11, 400, nested=False, t=400)
    f, expert = one.forecasts, one.forecasts.expert_index
    signs = (2.0 * one.outcomes - 1)[f.event_index, None]
    cells = Cells(f.event_index, expert, logit(f.probabilities)[:, None], signs, np.ones(len(expert)), *f.shape)
    found, worth = Hierarchy.learn(cells, Believed.of(Beliefs(), f.experts), 15.0, 7), 20.0
    for i in (0, int(np.bincount(expert).argmax())):
        x = np.column_stack([np.ones((expert == i).sum()), signs[expert == i, 0]])
        precision = x.T @ x + worth * np.diag([1.0, found.length])
        own = (worth * found.centre.variance[0] + found.own_squares[i]) / (worth + len(x))
        # After what all share, so much of the variance is noise. Two outcomes are equally probable.
        open_ = np.trace(np.linalg.inv(precision)) * (1.0 - found.correlation) * own
        assert found.features(worth).spread[i] == pytest.approx(np.sqrt(own + open_), rel=0.02)


def test_an_exact_copy_of_the_busiest_expert_changes_no_answer(draw):
    f = draw(8, 200, nested=False, t=400).forecasts
    busiest, copy = int(np.bincount(f.expert_index).argmax()), len(f.experts)
    own = f.expert_index == busiest
    event = np.append(f.event_index, f.event_index[own])
    order = np.argsort(event, kind="stable")
    expert = np.append(f.expert_index, np.full(own.sum(), copy))[order]
    q = np.append(f.probabilities, f.probabilities[own])[order]
    more = Forecasts(f.events, (*f.experts, "copy"), (0, 1), event[order], expert, q, f.outcomes)
    without, found = learn(f, prior=0.5), learn(more, prior=0.5)
    assert found.panel.parts.source is not None
    assert [note.code for note in found.notes].count("clones") == 1
    assert logit(found.pool_forecasts(more)) == pytest.approx(logit(without.pool_forecasts(f)), abs=1e-9)
    present = np.zeros((1, copy + 1), dtype=bool)
    present[0, [busiest, copy, busiest - 1]] = True
    weights = found.panel.weights_for(present)[0]
    assert weights[busiest] == pytest.approx(weights[copy], rel=1e-12)
    alone = without.panel.weights_for(present[:, :copy])[0]
    assert weights[busiest] + weights[copy] == pytest.approx(alone[busiest], rel=1e-9)


def test_intervals_hold_the_truth_of_crowds_as_believed(draw):
    """What is open about a crowd, with what somebody who knows everybody's features would say as the truth."""
    inside = []
    for seed, nested in ((0, False), (1, True), (2, True), (3, False)):
        one = draw(seed, 300, nested=nested, t=500, differ=0.5)
        learned, truth = learn(one.forecasts, prior=0.5), expit(one.optimal)
        low, high = learned.forecast_intervals(one.forecasts)
        answers = learned.pool_forecasts(one.forecasts)
        assert ((low <= answers) & (answers <= high)).all()
        inside.append(((low <= truth) & (truth <= high))[300:].mean())
    assert 0.8 < np.mean(inside) < 0.98
