"""What agreement says of experts: against correlations by hand, and what must not change it."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from opinionpool.forecasts import Forecasts
from opinionpool.learning.agreement import Agreement
from opinionpool.learning.beliefs import Beliefs
from opinionpool.learning.constants import AGREEMENT_WORTH, GUIDE
from opinionpool.learning.learn import learn
from opinionpool.logodds import expit, logit
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


def among(contrasts, weight):
    event, expert = np.nonzero(~np.isnan(contrasts[..., 0]))
    return Agreement.among(event, expert, contrasts[event, expert], weight, contrasts.shape[1])


def log_odds(x):
    return np.log(x / (1 - x))[..., None]


class TestMeasure:
    @pytest.mark.parametrize("missing", [0.0, 0.4])
    def test_correlations_with_the_mean_of_the_others(self, missing):
        x, _ = some(missing=missing)
        found = among(log_odds(x), np.ones(len(x)))
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


class TestDefault:
    def test_nothing_resolved_follows_it_and_says_so(self):
        x, _ = some(t=60)
        z = logit(x) - np.nanmean(logit(x), axis=0)
        x = expit(z / np.nanstd(z, axis=0))  # so that nobody says more than another
        learned = learn(Forecasts.from_array(x, experts=ABC), prior=0.5)
        found = among(log_odds(x), np.ones(60))
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


class TestForecastsWithoutOutcomes:
    """What open forecasts tell beside who agrees: who says much, how far errors are shared, how often things happen."""

    @staticmethod
    def signals(t, rho, areas, seed=0):
        rng = np.random.default_rng(seed)
        y, size = rng.random(t) < 0.5, np.asarray(areas)
        noise = np.sqrt(rho) * rng.normal(size=(t, 1)) + np.sqrt(1 - rho) * rng.normal(size=(t, len(size)))
        return y, expit(2 * size * (size * (2 * y[:, None] - 1) + noise))

    def test_who_says_much_gets_more_weight_where_all_are_calibrated_and_outcomes_confirm_it(self):
        y, q = self.signals(200, 0.3, [1.6] + [0.2] * 9)
        none = learn(Forecasts.from_array(q)).weights
        some = learn(Forecasts.from_array(q, [*y[:5].astype(float), *[np.nan] * 195])).weights
        assert none[0] > 1.5 * none[1:].mean()
        assert some[0] / some.sum() > 1.5 * none[0] / none.sum()

    def test_where_forecasts_agree_nearly_always_errors_do(self):
        _, alike = self.signals(200, 0.95, [0.6] * 8)
        _, apart = self.signals(200, 0.3, [0.6] * 8)
        near, far = (among(log_odds(q), np.ones(200)).least for q in (alike, apart))
        assert 0.8 < near < 1.0
        assert far < 0.3
        assert (
            learn(Forecasts.from_array(alike)).weights.sum() < 0.85 * learn(Forecasts.from_array(apart)).weights.sum()
        )

    def test_how_often_events_happen_is_what_is_forecast_of_them_until_outcomes_tell(self):
        rng = np.random.default_rng(3)
        q = expit(logit(0.1) + 0.7 * rng.normal(size=(200, 1)) + 0.7 * rng.normal(size=(200, 4)))
        free, even = learn(Forecasts.from_array(q)), learn(Forecasts.from_array(q), prior=0.5)
        assert even.panel.pool(q, 0.5).mean() < 0.75 * q.mean()
        assert free.pool(q, prior=0.5).mean() == pytest.approx(q.mean(), rel=0.1)
        assert free.weights == pytest.approx(even.weights)
        one = learn(Forecasts.from_array(q[:1]))
        assert one.pool(q[:1], prior=0.5) == pytest.approx(
            learn(Forecasts.from_array(q[:1]), prior=0.5).pool(q[:1]), abs=0.03
        )

    def test_copies_and_who_always_says_the_same_do_not_tell_how_often_events_happen(self):
        _, q = self.signals(30, 0.3, [0.6] * 4)
        more = np.column_stack([q, q[:, 0], np.full(30, 0.9)])
        panel = learn(Forecasts.from_array(more)).panel
        assert panel.pool(more) == pytest.approx(learn(Forecasts.from_array(q)).panel.pool(q), abs=1e-9)
