"""Beliefs: what they say, how they meet data, and that what is worth events weighs as events would."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import norm

import opinionpool as op
from opinionpool.errors import ArgumentError, OpinionPoolError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Belief, Beliefs, ExpertBeliefs
from opinionpool.learning.constants import ACCURACY, CALIBRATION, CORRELATION, WORTH
from opinionpool.learning.laplace import prior_fit
from opinionpool.learning.learn import learn
from opinionpool.learning.nodes import prior_nodes
from opinionpool.learning.prior import Believed
from opinionpool.learning.weight_beliefs import weight_beliefs
from opinionpool.model.accuracy import accuracy_of_auc, accuracy_of_hit_rate, accuracy_of_score
from opinionpool.model.panel import Panel

INF, NAN = float("inf"), float("nan")
ABC = ("a", "b", "c")
seeds = st.integers(0, 10**6)


def some(seed=0, t=20, n=3, missing=0.0):
    rng = np.random.default_rng(seed)
    x, y = Panel.exchangeable(n, correlation=0.4, accuracy=1.0).simulate(t, seed=seed)
    x[rng.random((t, n)) < missing] = NAN
    return x, y


def fit(x, y=None, beliefs="default", **options):
    names = [*ABC, *"defghij"][: x.shape[1]]
    return learn(Forecasts.from_array(x, y, experts=names), beliefs=beliefs, **options)


NEGATIVE = "ignore:.*one correlation of all pairs"


def told(calibration, relative, bias, rho, worth=INF, **common):
    """Beliefs about three experts, each of that worth."""
    features = zip(ABC, calibration, relative, bias, strict=True)
    return Beliefs(
        correlation=(rho, worth),
        experts={
            name: {"calibration": (k, worth), "relative_accuracy": (m, worth), "bias": (b, worth)}
            for name, k, m, b in features
        },
        **common,
    )


class TestSaying:
    def test_a_belief_in_every_form(self):
        forms = [0.9, Belief(0.9), (0.9, WORTH), [0.9, WORTH], {"value": 0.9}, {"value": 0.9, "worth": WORTH}]
        assert {Beliefs(calibration=form).calibration for form in forms} == {Belief(0.9, 20.0)}

    def test_what_it_looks_like(self):
        beliefs = Beliefs(correlation=(0.6, INF), extremes=5, experts={"ann": {"auc": 0.8}, "bob": {}})
        assert str(beliefs) == "correlation 0.6 (assessed), extremes 5 (assessed); 'ann': auc 0.8 (worth 20)"

    def test_copies_are_equal_and_nothing_can_be_set(self):
        beliefs = op.Beliefs(correlation=0.6, experts={"ann": {"bias": 0.1}})
        assert copy.deepcopy(beliefs) == beliefs == pickle.loads(pickle.dumps(beliefs))
        assert hash(copy.deepcopy(beliefs)) == hash(beliefs)
        assert beliefs != op.Beliefs(correlation=0.6)
        with pytest.raises(AttributeError):
            beliefs.correlation = 0.5
        with pytest.raises(TypeError):
            beliefs.experts["bob"] = {}

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"calibration": True}, "calibration: a belief must be a number, and it is true"),
            ({"calibration": NAN}, "it is nan; leave out what is not known"),
            ({"calibration": "0.9"}, "it is '0.9'; write 0.6, without quotes"),
            ({"calibration": 10**400}, "hundreds of digits"),
            ({"calibration": (1, 2, 3)}, "this has 3"),
            ({"calibration": (0.9, 0)}, "a worth must be above 0 events, and it is 0"),
            ({"calibration": (0.9, True)}, "a worth must be a number, and it is true"),
            ({"calibration": {"worth": 3}}, "there is a worth and no value"),
            ({"calibration": {"value": 1, "wort": 3}}, "there is no key 'wort'; did you mean 'worth'?"),
            ({"calibration": 0}, r"calibration: a value must be at least 0\.01 and at most 100, and it is 0"),
            ({"correlation": -1}, r"correlation: a value must be above -1 and at most 1, and it is -1"),
            ({"accuracy": INF}, "accuracy: a value must be at least"),
            ({"auc": 0.5}, r"auc: an AUC must lie above 0\.5 .* it is 0\.5"),
            ({"hit_rate": 1}, "hit_rate: a hit rate must lie above"),
            ({"score": 0}, "score: an expected score must lie above 0"),
            ({"score": 1e-12}, "so close to 0 or 1"),
            ({"accuracy": 1, "auc": 0.8}, "accuracy and auc both say how accurate"),
            ({"relative_accuracy": 2}, "of all experts it can only be 1, and it is 2"),
            ({"extremes": (5, 10)}, "their worth cannot be 10"),
            ({"extremes": 0}, "extremes: a value must be at least"),
            ({"experts": [1]}, r"as in \[experts.alice\], and it is a list"),
            ({"experts": {"ann": 1}}, "experts.ann: must be beliefs by their names.*it is 1"),
            ({"experts": {"ann": {"relativ_accuracy": 1}}}, "experts.ann: .*did you mean 'relative_accuracy'?"),
            ({"experts": {"ann": {"auc": 2}}}, "experts.ann: auc: an AUC must lie"),
            ({"experts": {"an\nn": {"auc": 2}}}, r"experts.'an\\nn': auc"),
            ({"experts": {"ann": {"correlation": 0.5}}}, "there is no key 'correlation'"),
        ],
    )
    def test_what_cannot_be_said(self, given, message):
        with pytest.raises(OpinionPoolError, match=message):
            Beliefs(**given)


class TestElicited:
    """Simulation-free: the integrals that define each quantity."""

    @pytest.mark.parametrize("accuracy", [0.05, 0.7, 3.0])
    def test_inverts_what_an_expert_of_that_accuracy_has(self, accuracy):
        root = np.sqrt(2 * accuracy)
        area = quad(lambda z: norm.pdf(z) * norm.cdf((2 * accuracy + root * z) / root), -12, 12)[0]
        hits = norm.cdf(accuracy / root)
        score = quad(lambda z: norm.pdf(z) * (1 + np.log2(expit(accuracy + root * z))), -12, 12)[0]
        assert accuracy_of_auc(area) == pytest.approx(accuracy, rel=1e-6)
        assert accuracy_of_hit_rate(hits) == pytest.approx(accuracy, rel=1e-9)
        assert accuracy_of_score(score) == pytest.approx(accuracy, rel=1e-5)


class TestLimits:
    @pytest.mark.filterwarnings(NEGATIVE)
    @given(seeds)
    @settings(max_examples=20)
    def test_all_assessed_is_the_panel_with_these_features(self, seed):
        rng = np.random.default_rng(seed)
        kappa, m, b = rng.uniform(0.5, 2, 3), rng.uniform(0.3, 3, 3), rng.normal(size=3)
        rho, prior = float(rng.uniform(-0.4, 0.95)), float(rng.uniform(0.1, 0.9))
        x, y = some(seed, missing=0.2)
        meant = "nested" if rho >= 0 else "common"
        panel = Panel.from_features(kappa, rho, m, bias=b, names=ABC, dependence=meant)
        for outcomes in (y, None):
            learned = fit(x, outcomes, told(kappa, m, b, rho), prior=prior)
            assert learned.pool(x) == pytest.approx(panel.pool(x, prior=prior), rel=1e-12)
            assert learned.weights == pytest.approx(panel.weights, rel=1e-12)
            assert learned.structure == "assumed"
            low, high = learned.interval(x)
            assert low == pytest.approx(high, rel=1e-12)
        assert [note.code for note in learned.notes] == ["assessed"]

    def test_saying_nothing_is_the_default(self):
        x, y = some(missing=0.2)
        for beliefs in (Beliefs(), Beliefs(experts={"a": {}})):
            assert fit(x, y, beliefs).pool(x).tolist() == fit(x, y).pool(x).tolist()
            assert fit(x, beliefs=beliefs).pool(x).tolist() == fit(x).pool(x).tolist()

    @pytest.mark.parametrize("n", [1, 2, 6])
    def test_saying_what_is_assumed_at_next_to_no_worth_is_the_default(self, n):
        x, y = some(n=n)
        assumed = {"accuracy": (ACCURACY, 1e-9), "bias": (0.0, 1e-9)}
        for beliefs in (Beliefs(**assumed), Beliefs(experts={"a": assumed})):
            for outcomes in (y, None):
                default, said = fit(x, outcomes), fit(x, outcomes, beliefs)
                assert said.weights == pytest.approx(default.weights, rel=1e-6)
                assert said.posterior.covariance == pytest.approx(default.posterior.covariance, abs=1e-7)
        # Where no calibration is said, that by which experts' own features are reported is 1.
        said = fit(x, y, Beliefs(calibration=(CALIBRATION, 1e-9)))
        default = fit(x, y).weights
        assert said.weights == pytest.approx(default, abs=0.005 * np.abs(default).mean())

    @pytest.mark.parametrize("missing", [0.0, 0.3])
    def test_saying_it_of_each_is_saying_it_of_all(self, missing):
        """The form for experts who differ gives what the form for equal ones does."""
        x, y = some(missing=missing)
        each = {"calibration": (0.8, 30), "accuracy": (0.7, 50), "bias": (0.1, 10)}
        of_all = fit(x, y, Beliefs(correlation=(0.3, 10), **each))
        of_each = fit(x, y, Beliefs(correlation=(0.3, 10), experts=dict.fromkeys(ABC, each)))
        assert of_each.weights == pytest.approx(of_all.weights, rel=1e-8)
        assert of_each.posterior.covariance == pytest.approx(of_all.posterior.covariance, abs=1e-9)
        assert of_each.marginal.accuracy == pytest.approx(of_all.marginal.accuracy, rel=1e-8)


class TestWorth:
    def test_openness_is_what_moments_of_events_leave(self):
        """Weights by moments (5.4) of n simulated events scatter as a belief worth n says, differences aside.

        Beside what is assumed anyway, so it is looked at where that is next to nothing: at a large n.
        """
        n, k, events, prior = 4, 4, 2000 // 3, np.full(4, 0.25)
        truth = Panel.exchangeable(n, correlation=0.3, accuracy=1.0, classes=range(k))
        beliefs = Beliefs(calibration=(1.0, events), correlation=(0.3, events), accuracy=(1.0, events))
        open_ = weight_beliefs(Believed.of(beliefs, tuple("abcd")), 0.3, k - 1)
        found = []
        for seed in range(400):
            f = Forecasts.from_array(*truth.simulate(events, prior, seed=seed), classes=range(k))
            learned = learn(f, prior=prior, beliefs=None, structure="exchangeable", class_model="symmetric", floor=1e-9)
            found.append(learned.weights.sum())
        assert np.std(found) == pytest.approx(open_.slope_spread, rel=0.1)

    @pytest.mark.parametrize("worth", [(20, 20), (20, 20.0001)])
    def test_beliefs_that_hardly_differ_leave_as_much_open_as_equal_ones(self, worth):
        """Of two experts, whose agreement does not show who is more accurate."""
        x, y = some(n=2, missing=0.2)
        each = {name: {"calibration": (0.9, worth[i]), "accuracy": (1 + 1e-6 * i, 20)} for i, name in enumerate("ab")}
        of_all = Beliefs(correlation=(0.5, 20), calibration=(0.9, 20), accuracy=(1, 20))
        for outcomes in (y, None):
            equal, apart = (fit(x, outcomes, b) for b in (of_all, Beliefs(correlation=(0.5, 20), experts=each)))
            assert apart.weights == pytest.approx(equal.weights, abs=1e-4)
            assert np.array(apart.interval(x)) == pytest.approx(np.array(equal.interval(x)), abs=1e-4)

    def test_beliefs_and_events_are_worth_about_as_much_as_the_events_alone(self):
        """Worth n and T events leave weights about as open as n + T events do.

        The worth is that of events by their moments, of which outcomes given the forecasts tell somewhat less.
        """
        truth = Panel.exchangeable(4, correlation=0.3, accuracy=1.0)
        names, n, t = tuple("abcd"), 200, 40

        def beliefs(worth):
            return Beliefs(calibration=(1.0, worth), correlation=(0.3, worth), accuracy=(1.0, worth), bias=(0.0, worth))

        ratios = []
        for seed in range(10):
            x, y = truth.simulate(n + t, seed=seed)
            believed = learn(Forecasts.from_array(x[:t], y[:t], experts=names), prior=0.5, beliefs=beliefs(n))
            data = learn(Forecasts.from_array(x, y, experts=names), prior=0.5, beliefs=beliefs(1e-6))
            ratios.append((believed.posterior.weight_sd(4) / data.posterior.weight_sd(4)).mean())
        assert 0.7 < np.mean(ratios) < 1.1

    @pytest.mark.parametrize("said", ["calibration", "accuracy", "correlation"])
    def test_a_belief_worth_nothing_is_as_none_and_more_worth_leaves_less_open(self, said):
        """Whatever the others are worth: an error seen in few events tells next to nothing of that in many."""
        values = {"calibration": CALIBRATION, "accuracy": ACCURACY, "correlation": CORRELATION}

        def covariance(worth):
            beliefs = {name: (value, worth if name == said else 20) for name, value in values.items()}
            if not worth:
                del beliefs[said]
            fit = prior_fit(prior_nodes(Believed.of(Beliefs(**beliefs), tuple("abcd")), 1, options=False))
            away = fit.normals.mean - fit.mean
            return np.tensordot(fit.normals.probability, fit.normals.covariance + away[:, :, None] * away[:, None], 1)

        # What nobody speaks of is open by itself where the correlation was said.
        least = 1e-9 if said == "correlation" else 0
        found = [covariance(worth) for worth in (least, 1e-9, 0.1, 2, 20, 200)]
        assert found[1] == pytest.approx(found[0], abs=1e-6)
        for more, less in itertools.pairwise(found):
            assert np.linalg.eigvalsh(more - less).min() > -1e-7

    def test_a_bias_that_is_known_plays_no_part_in_what_is_open(self):
        """Who is known to lie b too high leaves the same answer and interval as an unbiased expert without b."""
        x, bias = np.array([[0.9, 0.3, NAN], [0.5, 0.5, 0.5], [0.999, NAN, 0.9]]), np.array([2.0, -1.0, 0.5])
        plain = Beliefs(bias=(0, INF), correlation=0.4)
        shifted = Beliefs(correlation=0.4, experts={n: {"bias": (b, INF)} for n, b in zip(ABC, bias, strict=True)})
        found = []
        for beliefs, said in ((plain, x), (shifted, expit(logit(x) + bias))):
            # The last expert has made no forecast before.
            learned = fit(np.array([[0.5, 0.5, NAN]]), None, beliefs, prior=0.5, floor=1e-9)
            found.append(np.array([learned.pool(said), *learned.interval(said)]))
        assert found[1] == pytest.approx(found[0], abs=1e-12)
        assert found[1][1, 1] < found[1][0, 1] == pytest.approx(0.5)

    @pytest.mark.parametrize("which", ["panel", "named"])
    def test_the_more_it_is_worth_the_nearer_the_answer(self, which):
        x, y = some(t=60)
        goal = np.array([0.9 / 1.8] * 3) if which == "panel" else None
        distances, widths = [], []
        for worth in (1, 10, 100, 1000, INF):
            beliefs = Beliefs(calibration=(0.9, worth), correlation=(0.4, worth), relative_accuracy=(1, worth))
            if which == "named":
                beliefs = told([0.6, 0.9, 1.2], [3, 1, 0.5], [0, 0, 0], 0.4, worth)
                goal = Panel.from_features([0.6, 0.9, 1.2], 0.4, [3, 1, 0.5], dependence="nested").weights
            learned = fit(x, y, beliefs, prior=0.5)
            distances.append(np.abs(learned.weights - goal).max())
            widths.append(learned.posterior.weight_sd(3).max())
        assert distances == sorted(distances, reverse=True)
        assert widths == sorted(widths, reverse=True)
        assert distances[-1] < 1e-6
        assert widths[-1] < 1e-4

    def test_data_overrule_what_is_worth_less(self):
        truth = Panel.exchangeable(3, correlation=0.3, accuracy=1.0)
        x, y = truth.simulate(20_000, seed=1)
        # How far extremes are believed is known here: from a part of the events it is learned only roughly.
        learned = fit(x, y, told([2.0] * 3, [4, 1, 1], [0.5] * 3, 0.0, 20, extremes=INF), prior=0.5)
        assert learned.weights == pytest.approx(truth.weights, abs=0.08)
        assert learned.marginal.calibration == pytest.approx([1.0] * 3, abs=0.06)
        assert learned.marginal.accuracy == pytest.approx([1.0] * 3, abs=0.08)

    def test_features_are_reported_between_belief_and_data(self):
        x, y = some(t=300)
        free = fit(x, y).marginal.calibration[0]
        found = [
            fit(x, y, Beliefs(experts={"a": {"calibration": (2.0, worth)}})).marginal.calibration[0]
            for worth in (10, 100, 1000, INF)
        ]
        assert [free, *found] == sorted([free, *found])
        assert found[-1] == pytest.approx(2.0)
        assert fit(x, y, Beliefs(accuracy=(3.0, INF))).marginal.accuracy == pytest.approx([3.0] * 3)


class TestSymmetries:
    @given(seeds, st.sampled_from([0, 0.3]))
    @settings(max_examples=15)
    def test_experts_and_outcomes_have_no_order(self, seed, missing):
        rng = np.random.default_rng(seed)
        x, y = some(seed, missing=missing)
        named = {name: {"bias": (float(rng.normal()), 20), "auc": float(rng.uniform(0.6, 0.95))} for name in "ab"}
        beliefs = Beliefs(calibration=(0.8, 30), experts=named)
        learned = fit(x, y, beliefs)
        order = rng.permutation(3)
        turned = Forecasts.from_array(x[:, order], y, experts=[ABC[i] for i in order])
        assert learn(turned, beliefs=beliefs).weights == pytest.approx(learned.weights[order], abs=1e-6)
        mirrored = {name: own | {"bias": (-own["bias"][0], 20)} for name, own in named.items()}
        other = fit(1 - x, 1 - y, Beliefs(calibration=(0.8, 30), experts=mirrored))
        assert 1 - other.pool(1 - x) == pytest.approx(learned.pool(x), abs=1e-6)


class TestPlaces:
    def test_no_event_resolved_says_what_it_rests_on(self):
        x, _ = some(t=2)
        learned = fit(x, beliefs=Beliefs(calibration=0.9, experts={"a": {"auc": 0.9}}))
        (note,) = learned.notes
        assert note.text == (
            "no event is resolved, so the weights follow from the beliefs; assumed where none is given: "
            "no bias; accuracy 1 (an AUC of 0.84); correlation 0.6; extremes moderated, to 99.4% at most where the "
            "prior is 50%"
        )
        accuracy = [accuracy_of_auc(0.9), ACCURACY, ACCURACY]
        meant = Panel.from_features([0.9] * 3, CORRELATION, accuracy, dependence="nested")
        assert learned.weights == pytest.approx(meant.weights)
        assert learned.marginal.accuracy == pytest.approx(accuracy)

    def test_somebody_believed_in_who_says_nothing_yet(self):
        """The weight of an expert without forecasts is what is believed of it, and changes nothing where it is not."""
        x, y = some(t=40)
        blank = np.column_stack([x, np.full(40, NAN)])
        for outcomes in (y, None):
            without, learned = (
                fit(blank, outcomes, Beliefs(experts={"d": told}))
                for told in ({}, {"relative_accuracy": 5.0, "calibration": 1.0, "bias": 0.7})
            )
            assert learned.pool(blank) == pytest.approx(without.pool(blank), rel=1e-12)
            assert learned.panel.weights[3] > 2 * learned.panel.weights[:3].max()
            assert learned.panel.bias[3] - learned.panel.bias[:3].mean() == pytest.approx(0.7)
            relative = learned.panel.accuracy / learned.panel.accuracy[:3].mean()
            assert relative[3] == pytest.approx(5.0, rel=0.1)

    def test_strangers_are_named(self):
        x, y = some()
        learned = fit(x, y, Beliefs(experts={"zed": {"auc": 0.8}}))
        assert learned.notes[-1].text == (
            "something is believed of 'zed', who made no forecast; there are 'a', 'b', 'c'"
        )
        assert learned.weights.tolist() == fit(x, y).weights.tolist()

    def test_more_classes(self):
        x, y = Panel.exchangeable(3, correlation=0.4, accuracy=1.0, classes=range(3)).simulate(30, [1 / 3] * 3, seed=1)
        f = Forecasts.from_array(x, y, experts=ABC, classes=range(3))
        prior = [1 / 3] * 3
        kappa, m = [0.8, 1.0, 1.2], [2.0, 1.0, 0.5]
        learned = learn(f, prior=prior, beliefs=told(kappa, m, [0] * 3, 0.4))
        panel = Panel.from_features(kappa, 0.4, m, classes=range(3), dependence="nested")
        assert learned.pool(x) == pytest.approx(panel.pool(x, prior), rel=1e-12)
        assert np.isfinite(learn(f, beliefs=told(kappa, m, [0] * 3, 0.4, 20)).weights).all()
        with pytest.raises(ArgumentError, match=r"that of two classes, and there are 3; leave it out, or say 0"):
            learn(f, beliefs=Beliefs(bias=0.1))

    def test_extremes(self):
        x, y = some()
        for outcomes in (y, None):
            assert fit(x, outcomes, Beliefs(extremes=3.0)).panel.settings.extremes.limit == 3.0
            assert fit(x, outcomes, Beliefs(extremes=INF)).panel.settings.extremes.limit == INF

    @pytest.mark.parametrize(
        ("beliefs", "message"),
        [
            (Beliefs(correlation=-0.6), r"that of 3 experts must lie above -1/\(N-1\) = -0\.5, and it is -0\.6"),
            (Beliefs(correlation=1), "say less than 1, or inf for the worth of every belief"),
        ],
    )
    def test_what_these_experts_cannot_be(self, beliefs, message):
        with pytest.raises(ArgumentError, match=message):
            fit(some()[0], beliefs=beliefs)

    def test_structures_and_crowds_take_none(self):
        x, y = some()
        with pytest.raises(ArgumentError, match="beliefs meet data with structure='auto', and it is 'full'"):
            fit(x, y, Beliefs(calibration=1), structure="full")
        rng = np.random.default_rng(0)
        q = np.where(rng.random((60, 900)) < 0.1, rng.random((60, 900)), NAN)
        crowd = Forecasts.from_array(q, rng.integers(0, 2, 60))
        assert learn(crowd, beliefs=Beliefs()).structure == "crowd"
        by_name = Beliefs(experts={"expert_1": ExpertBeliefs(calibration=1)})
        assert learn(crowd.select_experts(crowd.experts[:100]), beliefs=by_name).structure == "default"
        many = Forecasts.from_array(np.hstack([q, q]), rng.integers(0, 2, 60))
        with pytest.raises(ArgumentError, match="no beliefs about experts by name"):
            learn(many, beliefs=by_name)

    def test_crowds_take_those_about_any_expert(self):
        rng = np.random.default_rng(1)
        y = rng.integers(0, 2, 120)
        said = 0.7 * (2 * y - 1)[:, None] + rng.normal(size=(120, 1)) + rng.normal(size=(120, 800))
        q = np.where(rng.random(said.shape) < 0.03, expit(said), NAN)
        crowd = Forecasts.from_array(q, [*y[:40].tolist(), *[None] * 80], classes=(0, 1))

        def size(**beliefs):
            learned = learn(crowd, beliefs=Beliefs(**beliefs), prior=0.5)
            assert learned.structure == "crowd"
            return logit(learned.pool_forecasts(crowd))[40:]

        timid, bold = (np.abs(size(calibration=Belief(kappa, 1000))).mean() for kappa in (2.0, 0.5))
        assert bold < 0.95 * timid
        close, far = (np.abs(size(correlation=Belief(rho, 1000))).mean() for rho in (0.95, 0.2))
        assert close < 0.95 * far
        high, none = (size(bias=Belief(bias, 1000)).mean() for bias in (0.5, 0.0))
        assert high < none - 0.1
        assert learn(crowd, beliefs=Beliefs(extremes=3)).panel.settings.extremes.limit == 3


class TestSilence:
    """Before anybody has made a forecast, experts are as they are believed to be, as after some without outcomes."""

    @pytest.mark.parametrize("beliefs", ["default", told([0.8, 1.0, 1.2], [2, 1, 0.5], [0.5, -0.3, 0.0], 0.4, 20)])
    @pytest.mark.parametrize("y", [[NAN, NAN], [1, NAN]])
    def test_nobody_has_spoken(self, beliefs, y):
        before, x = fit(np.full((2, 3), NAN), y, beliefs, prior=0.3), some(t=6, missing=0.3)[0]
        after = fit(np.vstack([some(t=2)[0], np.full((2, 3), NAN)]), [NAN, NAN, *y], beliefs, prior=0.3)
        assert before.pool(x) == pytest.approx(after.pool(x), abs=1e-12)
        assert np.array(before.interval(x)) == pytest.approx(np.array(after.interval(x)), abs=1e-12)
        assert np.ptp(before.pool(x)) > 0.1

    def test_who_always_says_the_same_still_has_no_weight(self):
        x = np.column_stack([np.full((10, 2), NAN), np.full(10, 0.7)])
        weights = fit(x, None, prior=0.5).panel.weights
        assert weights == pytest.approx([CALIBRATION / (1 + CORRELATION)] * 2 + [0.0])


class TestEstimator:
    def test_intervals(self):
        x, y = some()
        pool = op.GaussianPool().fit(x, y)
        state = fit(x, y)
        low, high = state.interval(x, level=0.5)
        assert pool.predict_interval(x, level=0.5) == pytest.approx(np.stack([low, high], axis=1))
        assert pool.predict_interval(Forecasts.from_array(x), level=0.5) == pytest.approx(np.stack([low, high], axis=1))
        normals = state.posterior
        sd = np.sqrt(np.diagonal(normals.covariance, axis1=1, axis2=2))[:, 1:]
        for end, q in zip(pool.weight_intervals_.T, (0.05, 0.95), strict=True):
            below = normals.probability @ norm.cdf((end - normals.mean[:, 1:]) / sd)
            assert below == pytest.approx(q, abs=2e-3)
        assert np.isnan(op.GaussianPool(beliefs=None).fit(x, y).weight_intervals_).all()
