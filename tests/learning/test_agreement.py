"""What agreement says of experts: against correlations by hand, and what must not change it."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from opinionpool.forecasts import Forecasts
from opinionpool.learning.agreement import Agreement
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.constants import AGREEMENT_WORTH, GUIDE
from opinionpool.learning.learn import learn
from opinionpool.logodds import expit
from opinionpool.model.panel import Panel

NAN = np.nan
ABC = ("a", "b", "c", "d")


def some(t=30, n=4, seed=0, missing=0.2):
    """A panel of experts who know more and less, with gaps."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(t, 1))
    x = expit(truth + rng.normal(size=(t, n)) * np.linspace(0.3, 2.0, n))
    x[rng.random((t, n)) < missing] = NAN
    y = (truth[:, 0] > 0).astype(float)
    return x, y


def log_odds(x):
    return np.log(x / (1 - x))[..., None]


class TestMeasure:
    @pytest.mark.parametrize("missing", [0.0, 0.4])
    def test_correlations_with_the_mean_of_the_others(self, missing):
        x, _ = some(missing=missing)
        found = Agreement.among(log_odds(x), np.ones(len(x)))
        c = np.clip(log_odds(x)[..., 0], -4, 4)
        raw, count = [], []
        for i in range(4):
            others = np.delete(c, i, axis=1)
            rows = ~np.isnan(c[:, i]) & ~np.isnan(others).all(axis=1)
            mean = np.nanmean(others[rows], axis=1)
            raw.append(np.corrcoef(c[rows, i], mean)[0, 1])
            count.append(rows.sum())
        raw, count = np.array(raw), np.array(count)
        r = (count * raw + AGREEMENT_WORTH * (raw @ count / count.sum())) / (count + AGREEMENT_WORTH)
        assert found.correlation == pytest.approx(r, rel=1e-9)
        squared = r**2 + 1 / (count + AGREEMENT_WORTH)
        odds = np.log(squared / (1 + 1 / AGREEMENT_WORTH - squared))
        assert np.log(found.accuracy) == pytest.approx(GUIDE * 2 / 8 * (odds - odds.mean()), rel=1e-9)

    def test_two_classes_in_the_form_of_more(self):
        """Log-ratios of two classes, one of which is split evenly, agree as the two classes do."""
        x, _ = some(missing=0.0)
        two = Agreement.among(log_odds(x) / 4, np.ones(len(x)))
        three = Agreement.among(np.concatenate([log_odds(x) / 4] * 2, axis=2), np.ones(len(x)))
        assert three.correlation == pytest.approx(two.correlation)

    def test_frequencies_are_events_said_again(self):
        x, _ = some()
        weight = np.random.default_rng(1).integers(1, 4, len(x))
        once = Agreement.among(log_odds(x), weight.astype(float))
        again = Agreement.among(np.repeat(log_odds(x), weight, axis=0), np.ones(weight.sum()))
        assert once.accuracy == pytest.approx(again.accuracy)
        assert once.events == again.events

    def test_noise_distinguishes_nobody(self):
        rng = np.random.default_rng(0)
        found = Agreement.among(rng.normal(size=(40, 8, 1)), np.ones(40))
        assert np.ptp(np.log(found.accuracy)) < 0.7

    @pytest.mark.parametrize("events", [1, 2])
    def test_few_events_say_nothing(self, events):
        x, _ = some(t=events, missing=0.0)
        assert not Agreement.among(log_odds(x), np.ones(events)).tells


class TestDefault:
    def test_nothing_resolved_follows_it_and_says_so(self):
        x, _ = some(t=60)
        learned = learn(Forecasts.from_array(x, experts=ABC), prior=0.5)
        found = Agreement.among(log_odds(x), np.ones(60))
        assert (np.argsort(learned.weights) == np.argsort(found.accuracy)).all()
        assert learned.weights[:2].min() > learned.weights[2:].max()
        codes = [note.code for note in learned.notes]
        assert codes == ["nothing-learned", "agreement"]
        assert learned.notes[1].text.startswith("agreement on 60 events says who is likely to know more;")
        assert "mean: '" in learned.notes[1].text

    def test_open_events_improve_answers(self):
        """A crowd of whom half know nothing: with open events, nothing resolved, and after few outcomes."""
        gains = []
        for seed in range(8):
            rng = np.random.default_rng(seed)
            kappa, accuracy = np.repeat([1.0, 0.2], 6), np.repeat([1.0, 0.04], 6)
            truth = Panel.from_features(kappa, 0.2, accuracy=accuracy, dependence="nested")
            x, y = truth.simulate(300, seed=rng)
            known = np.where(np.arange(300) < 10, y, NAN)
            for outcomes, closed in ((known, x[:10]), (np.full(300, NAN), x[:1])):
                given = learn(Forecasts.from_array(x, outcomes, classes=[0, 1]), prior=0.5)
                without = learn(Forecasts.from_array(closed, outcomes[: len(closed)], classes=[0, 1]), prior=0.5)
                p, q = given.pool(x[10:]), without.pool(x[10:])
                happened = y[10:] == 1
                gains.append(np.log(np.where(happened, p, 1 - p)).mean() - np.log(np.where(happened, q, 1 - q)).mean())
        assert np.mean(gains) > 0.01

    def test_two_experts_learn_nothing_from_open_events(self):
        x, y = some(t=40, n=2)
        known = np.where(np.arange(40) < 20, y, NAN)
        given = learn(Forecasts.from_array(x, known, classes=[0, 1]), prior=0.5)
        closed = learn(Forecasts.from_array(x[:20], y[:20].astype(int)), prior=0.5)
        assert given.weights == pytest.approx(closed.weights, rel=1e-12)

    @given(st.integers(0, 2**20), st.booleans())
    @settings(max_examples=8, deadline=None)
    def test_swapped_outcomes_permuted_experts_and_copies(self, seed, missing):
        x, y = some(t=24, seed=seed, missing=0.2 * missing)
        y[12:] = NAN
        p = learn(Forecasts.from_array(x, y, classes=[0, 1]), prior=0.4).pool(x, 0.4)
        swapped = learn(Forecasts.from_array(1 - x, 1 - y, classes=[0, 1]), prior=0.6).pool(1 - x, 0.6)
        assert swapped == pytest.approx(1 - p, abs=1e-9)
        order = np.random.default_rng(seed).permutation(4)
        permuted = learn(Forecasts.from_array(x[:, order], y, classes=[0, 1]), prior=0.4).pool(x[:, order], 0.4)
        assert permuted == pytest.approx(p, abs=1e-9)
        copied = learn(Forecasts.from_array(x[:, [0, 1, 2, 3, 1]], y, classes=[0, 1]), prior=0.4)
        assert copied.pool(x[:, [0, 1, 2, 3, 1]], 0.4) == pytest.approx(p, abs=1e-9)
        assert copied.weights[4] == pytest.approx(copied.weights[1])

    @given(st.integers(0, 2**20), st.floats(0.05, 0.95), st.floats(0.05, 0.95))
    @settings(max_examples=20, deadline=None)
    def test_a_unanimous_panel_stays_on_its_side_of_the_prior(self, seed, q, prior):
        x, _ = some(t=20, seed=seed)
        learned = learn(Forecasts.from_array(x), prior=prior)
        assert (learned.weights >= -1e-12).all()
        assert (learned.pool(np.full(4, q)) - prior) * (q - prior) >= -1e-12

    @given(st.integers(0, 2**20), st.booleans())
    @settings(max_examples=8, deadline=None)
    def test_a_more_confident_yes_raises_the_answer(self, seed, resolved):
        x, y = some(t=30, seed=seed, missing=0.0)
        learned = learn(Forecasts.from_array(x, y if resolved else np.full(30, NAN), classes=[0, 1]), prior=0.4)
        for i in np.flatnonzero(learned.weights > 1e-6):
            rising = np.tile(x[0], (7, 1))
            rising[:, i] = [0.001, 0.1, 0.3, 0.5, 0.8, 0.99, 0.9999]
            assert (np.diff(learned.pool(rising)) > 0).all()

    def test_what_is_believed_by_name_takes_its_place(self):
        x, _ = some(t=60)
        named = {name: {"accuracy": 1.0 + 0.5 * i} for i, name in enumerate(ABC)}
        learned = learn(Forecasts.from_array(x, experts=ABC), prior=0.5, beliefs=Beliefs(experts=named))
        assert (np.diff(learned.weights) > 0).all()
        equal = learn(Forecasts.from_array(x, experts=ABC), prior=0.5, beliefs=Beliefs(accuracy=(1.0, np.inf)))
        assert np.ptp(equal.weights) < 1e-6
