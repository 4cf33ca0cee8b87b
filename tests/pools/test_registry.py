"""What a fit of each pool learns, against optimisers that share no code with it, and how little it can do with."""

import importlib.util
import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit, softmax
from sklearn.linear_model import LogisticRegression

from opinionpool.errors import ArgumentError, ExpertError, ProbabilityError, ShapeError
from opinionpool.forecasts import Forecasts
from opinionpool.model.panel import Panel
from opinionpool.pools.fit import fit_pool
from opinionpool.pools.registry import POOLS
from opinionpool.priors import laplace_prior

NAN = float("nan")
LEARNED = ["linear", "log", "recalibrated", "beta-linear"]
BINARY = ["beta-linear", "dawid-skene"]
# EM learns from all votes, those on open events too.
RESOLVED_ONLY = [name for name in POOLS if name not in {"gaussian", "dawid-skene"}]

every = pytest.mark.parametrize("name", list(POOLS))
rivals = pytest.mark.parametrize("name", [name for name in POOLS if name != "gaussian"])


def made_up(events=60, experts=4, missing=0.0, unresolved=0.0, seed=0, classes=2):
    """Overconfident, correlated experts of different worth."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, events)
    signal = rng.normal(size=(events, 1, classes)) + 1.2 * rng.normal(size=(events, experts, classes))
    signal += np.linspace(0.4, 1.5, experts)[:, None] * np.eye(classes)[y][:, None, :]
    q = softmax(signal, axis=-1)
    q[rng.random((events, experts)) < missing] = NAN
    known = rng.random(events) >= unresolved
    outcomes = [int(c) if k else None for c, k in zip(y, known, strict=True)]
    return (q[..., 1] if classes == 2 else q), outcomes


def table(q, y, **more):
    q = np.asarray(q, dtype=float)
    return Forecasts.from_array(q if q.ndim > 1 else q[:, None], y, **more)


def codes(state):
    return {note.code for note in state.notes}


class TestProtocol:
    @every
    def test_every_state_says_the_same_things(self, name):
        q, y = made_up(unresolved=0.2, missing=0.2)
        f = table(q, y, experts=["ann", "bob", "cat", "dan"])
        weight = np.arange(60) % 3.0
        state = fit_pool(name, f, sample_weight=weight)
        known = np.array([o is not None for o in y])
        ones = np.array([o == 1 for o in y])
        assert state.experts == ("ann", "bob", "cat", "dan")
        assert state.events == pytest.approx([(weight * (known & ~ones)).sum(), (weight * ones).sum()])
        assert state.counts == pytest.approx((weight * known) @ ~np.isnan(q))
        assert state.prior == pytest.approx(laplace_prior(state.events))
        assert state.notes == ()
        assert state.weights is None or state.weights.shape == (4,)
        p = state.pool(q)
        assert p.shape == (60,)
        assert ((p > 0) & (p < 1)).all()
        assert state.pool(q[7]) == pytest.approx(p[7], rel=1e-13)

    @every
    def test_the_registry_describes_what_a_fit_takes(self, name):
        q, y = made_up()
        assert POOLS[name].title
        defaults = {key: option.default for key, option in POOLS[name].options.items()}
        assert all(option.text for option in POOLS[name].options.values())
        plain, spelled = fit_pool(name, table(q, y)), fit_pool(name, table(q, y), **defaults)
        assert spelled.pool(q).tolist() == plain.pool(q).tolist()
        other = fit_pool(name, table(q, [1 - o for o in y]), prior=0.5)
        same = other.pool(q) == pytest.approx(fit_pool(name, table(q, y), prior=0.5).pool(q), abs=1e-9)
        assert same != POOLS[name].learns


class TestWorkedNumbers:
    def test_an_impossible_event_that_happened(self):
        f = table(np.array([[0, 0], [0.2, 0.3], [0.7, 0.6]]), [1, 0, 1])
        state = fit_pool("linear", f)
        assert state.weights == pytest.approx([1, 0], abs=1e-7)
        p = state.pool(f.X)
        assert -np.log(np.where([True, False, True], p, 1 - p)).mean() == pytest.approx(3.26339, abs=5e-6)

    def test_maximum_likelihood_of_the_log_pool_is_not_penalised(self):
        state = fit_pool("log", table([0.2] * 4 + [0.8] * 4, [1, 0, 0, 0, 1, 1, 1, 0]), prior=0.5)
        assert state.weights == pytest.approx([2 * np.log(3) / (2 * 1.38629436)], abs=1e-7)
        assert state.parameters["intercept"] == pytest.approx(0, abs=1e-9)
        assert state.pool([[0.2], [0.8]]) == pytest.approx([0.25, 0.75], rel=1e-8)
        q = [0.2, 0.3, 0.6, 0.4, 0.7, 0.8, 0.35, 0.65]
        state = fit_pool("log", table(q, [0, 0, 0, 1, 1, 1, 0, 1]), prior=0.5)
        assert state.weights == pytest.approx([2.25860], abs=5e-6)
        assert state.pool([0.8]) == pytest.approx(0.95816, abs=5e-6)

    def test_separated_outcomes(self):
        f = table([0.1, 0.3, 0.6, 0.9], [0, 0, 1, 1])
        state = fit_pool("log", f, prior=0.5)
        assert [note.code for note in state.notes if note.serious] == ["separated"]
        assert "outcomes perfectly separated; maximum-likelihood weights are infinite" in state.notes[0].text
        # The stated rule: the most probable weights if weight 1 ± 1 and intercept 0 ± 1 are believed.
        x, s = logit([0.1, 0.3, 0.6, 0.9]), np.array([-1, -1, 1, 1])
        stated = minimize(
            lambda t: np.logaddexp(0, -s * (t[0] + t[1] * x)).sum() + t[0] ** 2 / 2 + (t[1] - 1) ** 2 / 2, [0, 1]
        )
        assert state.weights == pytest.approx(stated.x[1:], abs=1e-5)
        assert 0.5 < state.pool([0.7]) < 0.95
        gaussian = fit_pool("gaussian", f, prior=0.5, beliefs=None)
        assert gaussian.weights == pytest.approx([2.24421], abs=5e-6)
        assert gaussian.pool([[0.5], [0.7]]) == pytest.approx([0.56166, 0.89561], abs=5e-6)

    def test_weights_by_name_when_an_expert_is_left_out(self):
        f = table([[0.9, 0.4, 0.1]], [None], experts=["A", "B", "C"]).select_experts(["A", "C"])
        state = fit_pool("linear", f, weights={"A": 0.5, "B": 0.3, "C": 0.2})
        assert state.pool([0.9, 0.1]) == pytest.approx(0.47 / 0.7, rel=1e-13)
        assert codes(state) == {"unused-weights", "given-weights"}
        assert not state.learned
        with pytest.raises(ExpertError, match=r"there are 2 experts \(A, C\), and 3 weights"):
            fit_pool("linear", f, weights=[0.5, 0.3, 0.2])

    @rivals
    def test_a_base_rate_leaves_the_weights_alone(self, name):
        q, y = made_up()
        state = fit_pool(name, table(q, y), prior=0.5, pool_floor=1e-300)
        plain = state.pool(q)
        inside = np.abs(logit(plain)) < 12
        assert inside.sum() > 30
        moved = logit(state.pool(q, base_rate=0.01))
        assert moved[inside] == pytest.approx(logit(plain[inside]) + logit(0.01), abs=1e-8)


@pytest.mark.parametrize("name", list(POOLS))
def test_an_expert_who_cannot_have_been_wrong_is_told_wherever_something_is_learned(name):  # case 79
    y = np.arange(20) % 2
    human = np.where(np.random.default_rng(0).permutation(20) < 15, y, 1 - y) * 0.4 + 0.3
    model = np.where(y == 1, 0.999, 0.001)
    state = fit_pool(name, table(np.stack([model, human], axis=1), y, experts=["M", "H"]))
    told = [note for note in state.notes if note.code == "leakage"]
    assert len(told) == POOLS[name].learns
    assert all("'M'" in note.text and "'H'" not in note.text and note.serious for note in told)
    model[0] = 0.999  # wrong once
    assert "leakage" not in codes(fit_pool(name, table(np.stack([model, human], axis=1), y)))


class TestLinear:
    def likelihood(self, w, q, y):
        here = ~np.isnan(q)
        happened = np.where(np.array(y)[:, None] == 1, q, 1 - q)
        return np.log((np.where(here, happened, 0) @ w) / (here @ w)).mean()

    @pytest.mark.parametrize("missing", [0.0, 0.3])
    @pytest.mark.parametrize("seed", range(3))
    def test_no_weights_on_a_grid_are_better(self, seed, missing):
        q, y = made_up(experts=3, missing=missing, seed=seed)
        state = fit_pool("linear", table(q, y))
        kept = ~np.isnan(q).all(axis=1)
        q, y = q[kept], np.array(y)[kept]
        found = self.likelihood(state.weights, q, y)
        grid = [np.array([i, j, 60 - i - j]) / 60 for i, j in itertools.product(range(61), repeat=2) if i + j <= 60]
        best = max(self.likelihood(w + 1e-9, q, y) for w in grid)
        assert best - 1e-9 <= found <= best + 2e-3
        assert state.weights.sum() == pytest.approx(1, abs=1e-14)
        assert state.weights.min() >= 0

    def test_three_classes(self):
        q, y = made_up(experts=3, classes=3, events=80)
        state = fit_pool("linear", Forecasts.from_array(q, y, classes=(0, 1, 2)))
        happened = q[np.arange(80), :, y]
        slack = (happened / (happened @ state.weights)[:, None]).mean(axis=0)
        assert slack.max() <= 1 + 1e-8
        assert state.pool(q) == pytest.approx(np.einsum("n,tnk->tk", state.weights, q), rel=1e-9)

    def test_an_expert_without_resolved_forecasts(self):
        q, y = made_up(experts=3)
        q[:50, 2], y[50:] = NAN, [None] * 10
        state = fit_pool("linear", table(q, y))
        assert state.weights[2] == pytest.approx(1 / 3, abs=1e-6)
        alone = fit_pool("linear", table(q[:, :2], y)).weights
        assert state.weights[:2] / state.weights[:2].sum() == pytest.approx(alone, abs=1e-5)
        assert codes(state) == {"no-forecasts"}
        assert state.pool([NAN, NAN, 0.3]) == pytest.approx(0.3, rel=1e-12)


class TestLog:
    def test_complete_forecasts_are_plain_logistic_regression(self):
        q, y = made_up(events=150)
        state = fit_pool("log", table(q, y))
        fitted = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10000).fit(logit(q), y)
        assert state.weights == pytest.approx(fitted.coef_[0], abs=1e-5)
        assert state.pool(q) == pytest.approx(fitted.predict_proba(logit(q))[:, 1], abs=1e-6)
        assert fit_pool("log", table(q, y), prior=0.2).pool(q) == pytest.approx(state.pool(q), abs=1e-9)

    def test_event_priors_are_an_offset(self):
        q, y = made_up(events=150, missing=0.2)
        prior = np.random.default_rng(1).uniform(0.2, 0.8, 150)
        x, s = np.nan_to_num(logit(q) - logit(prior)[:, None]), 2 * np.array(y) - 1

        def loss(t):
            return np.logaddexp(0, -s * (logit(prior) + t[0] + x @ t[1:])).sum()

        best = minimize(loss, np.zeros(5), tol=1e-10)
        for f, stated in ((table(q, y), prior), (table(q, y, prior=prior), None)):
            state = fit_pool("log", f, prior=stated)
            assert state.prior is None
            assert [state.parameters["intercept"], *state.weights] == pytest.approx(best.x, abs=1e-4)
            wanted = expit(logit(prior) + best.x[0] + x @ best.x[1:])
            assert state.pool(q, prior) == pytest.approx(wanted, abs=1e-4)
            with pytest.raises(ProbabilityError, match="a prior for each event"):
                state.pool(q)

    def test_three_classes(self):
        q, y = made_up(experts=2, classes=3, events=120)
        state = fit_pool("log", Forecasts.from_array(q, y, classes=(0, 1, 2)), prior=[0.2, 0.3, 0.5])
        x = np.log(q) - np.log([0.2, 0.3, 0.5])

        def loss(t):
            pooled = np.log([0.2, 0.3, 0.5]) + np.array([0.0, t[0], t[1]]) + np.einsum("n,tnk->tk", t[2:], x)
            return (np.logaddexp.reduce(pooled, axis=1) - pooled[np.arange(120), y]).sum()

        best = minimize(loss, np.zeros(4), tol=1e-10)
        assert state.weights == pytest.approx(best.x[2:], abs=1e-4)
        a = state.parameters["intercept"]
        assert a - a[0] == pytest.approx([0.0, *best.x[:2]], abs=1e-4)


class TestRecalibrated:
    @pytest.mark.parametrize("missing", [0.0, 0.3])
    def test_against_a_general_optimiser(self, missing):
        q, y = made_up(missing=missing)
        kept = ~np.isnan(q).all(axis=1)
        x, s = np.nanmean(logit(q[kept]), axis=1), 2 * np.array(y)[kept] - 1

        def loss(t):
            return np.logaddexp(0, -s * (t[0] + t[1] * x)).sum() + 0.5 * (t[0] ** 2 + (t[1] - 1) ** 2)

        best = minimize(loss, [0, 1], tol=1e-10).x
        state = fit_pool("recalibrated", table(q, y), prior=0.5)
        assert [state.parameters["intercept"], state.parameters["slope"]] == pytest.approx(best, abs=1e-5)
        assert logit(state.pool(q[kept])) == pytest.approx(best[0] + best[1] * x, abs=1e-4)

    def test_the_penalty_decides_how_far_from_the_identity(self):
        q, y = made_up()
        slopes = [fit_pool("recalibrated", table(q, y), penalty=v).parameters["slope"] for v in (0.0, 1.0, 10.0, 1e9)]
        assert slopes == sorted(slopes)
        assert slopes[-1] == pytest.approx(1, abs=1e-6)
        with pytest.raises(ArgumentError, match="penalty"):
            fit_pool("recalibrated", table(q, y), penalty=-1.0)

    def test_without_penalty_separation_is_told(self):
        state = fit_pool("recalibrated", table([0.1, 0.3, 0.6, 0.9], [0, 0, 1, 1]), penalty=0.0)
        assert codes(state) == {"separated"}
        assert np.isfinite(state.parameters["slope"])


class TestBetaLinear:
    def test_the_penalty_holds_to_the_linear_pool(self):
        q, y = made_up()
        state = fit_pool("beta-linear", table(q, y), penalty=1e9, weights=[1, 1, 1, 1])
        assert state.pool(q) == pytest.approx(POOLS["average"].pool(q), abs=1e-6)


class TestLittleToLearnFrom:
    @pytest.mark.parametrize("name", LEARNED)
    @pytest.mark.parametrize("what", ["unresolved", "silent", "weightless"])
    def test_nothing_at_all(self, name, what):
        q, y = made_up(events=5, experts=3)
        weight = None
        if what == "unresolved":
            y = [None] * 5
        elif what == "silent":
            q[:3], y[3:] = NAN, [None, None]
        else:
            weight = np.zeros(5)
        state = fit_pool(name, table(q, y), prior=0.4, sample_weight=weight)
        assert codes(state) == {"nothing-learned"}
        assert not state.notes[0].serious
        plain = POOLS["average"].pool if "linear" in name else POOLS["geometric"].pool
        assert state.pool([0.3, 0.6, 0.7]) == pytest.approx(plain([0.3, 0.6, 0.7]), rel=1e-12)

    @pytest.mark.parametrize("name", LEARNED)
    @pytest.mark.parametrize("outcome", [0, 1])
    def test_one_outcome_only(self, name, outcome):
        q, _ = made_up(events=12, experts=3)
        state = fit_pool(name, table(q, [outcome] * 12))
        assert "one-outcome" in codes(state)
        assert repr(outcome) in state.notes[0].text
        p = state.pool(np.full((2, 3), 0.5))
        assert ((p > 0.005) & (p < 0.995)).all()
        parameters = [np.asarray(v) for v in state.parameters.values()]
        assert all(np.isfinite(v).all() and np.abs(v).max() < 10 for v in parameters)

    @every
    def test_one_class_seen_of_three(self, name):
        q, _ = made_up(events=6, experts=2, classes=3)
        if name in BINARY:
            with pytest.raises(ArgumentError, match="for two classes, and these forecasts have 3"):
                fit_pool(name, Forecasts.from_array(q, ["b"] * 6, classes=("a", "b", "c")))
            return
        state = fit_pool(name, Forecasts.from_array(q, ["b"] * 6, classes=("a", "b", "c")))
        assert state.pool(q).sum(axis=-1) == pytest.approx(np.ones(6))


class TestProperties:
    @every
    @settings(max_examples=8)
    @given(seed=st.integers(0, 999))
    def test_frequencies_are_repetitions(self, name, seed):
        q, y = made_up(events=30, missing=0.15, unresolved=0.1, seed=seed)
        times = np.random.default_rng(seed).integers(0, 4, 30)
        weighed = fit_pool(name, table(q, y), sample_weight=times)
        repeated = fit_pool(
            name,
            table(
                np.repeat(q, times, axis=0),
                list(itertools.chain.from_iterable([o] * n for o, n in zip(y, times, strict=True))),
            ),
        )
        assert weighed.prior == pytest.approx(repeated.prior)
        assert weighed.counts == pytest.approx(repeated.counts)
        assert weighed.pool(q) == pytest.approx(repeated.pool(q), abs=1e-6)

    @pytest.mark.parametrize("name", RESOLVED_ONLY)
    @settings(max_examples=8)
    @given(seed=st.integers(0, 999))
    def test_unresolved_events_teach_nothing(self, name, seed):
        q, y = made_up(events=30, unresolved=0.4, missing=0.1, seed=seed)
        known = [o is not None for o in y]
        alone = fit_pool(name, table(q[known], [o for o in y if o is not None]))
        assert fit_pool(name, table(q, y)).pool(q) == pytest.approx(alone.pool(q), abs=1e-9)

    @every
    @settings(max_examples=8)
    @given(seed=st.integers(0, 999))
    def test_experts_may_change_places(self, name, seed):
        q, y = made_up(events=40, missing=0.1, seed=seed)
        order = np.random.default_rng(seed).permutation(4)
        moved = fit_pool(name, table(q[:, order], y))
        assert moved.pool(q[:, order]) == pytest.approx(fit_pool(name, table(q, y)).pool(q), abs=1e-6)

    @every
    @settings(max_examples=8)
    @given(seed=st.integers(0, 999))
    def test_swapping_the_outcomes_answers_complements(self, name, seed):
        q, y = made_up(events=40, missing=0.1, seed=seed)
        swapped = fit_pool(name, table(1 - q, [1 - o for o in y]))
        assert swapped.pool(1 - q) == pytest.approx(1 - fit_pool(name, table(q, y)).pool(q), abs=1e-6)

    @pytest.mark.parametrize("name", ["gaussian", "log", "independent", "geometric", "extremized", "recalibrated"])
    @settings(max_examples=8)
    @given(seed=st.integers(0, 999), evidence=st.floats(-1, 1))
    def test_the_prior_may_be_updated_before_or_after(self, name, seed, evidence):
        q, y = made_up(events=40, missing=0.1, seed=seed)
        q = np.clip(q, 0.01, 0.99)
        state = fit_pool(name, table(q, y), prior=0.45)
        # Of the default pool, the part that is a logarithmic pool.
        pooled = state.panel if name == "gaussian" else state
        before = logit(pooled.pool(expit(logit(q) + evidence), expit(logit(0.45) + evidence)))
        after = logit(pooled.pool(q, 0.45)) + evidence
        inside = np.abs(after) < 15
        assert before[inside] == pytest.approx(after[inside], abs=1e-6)


class TestErrors:
    def test_an_unknown_pool_or_option(self):
        f = table([[0.2]], [1])
        with pytest.raises(ArgumentError, match="no pool is called 'mean'; did you mean 'median'"):
            fit_pool("mean", f)
        with pytest.raises(ArgumentError, match="the trimmed pool has no option 'weights'; its options are: trim"):
            fit_pool("trimmed", f, weights=[1.0])
        with pytest.raises(ArgumentError, match="the average pool has no option 'trim'; its options are: none"):
            fit_pool("average", f, trim=0.1)

    @every
    def test_frequencies_are_checked(self, name):
        with pytest.raises(ShapeError, match="sample weights"):
            fit_pool(name, table([[0.2]], [1]), sample_weight=[1, 1])


@pytest.fixture(scope="module")
def rivals(shared):
    """Plain versions of the rules, and the first events of each set of binary forecasts."""
    spec = importlib.util.spec_from_file_location("regret", shared / "bench" / "regret.py")
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    loaded = [bench.load(path) for path in sorted(shared.glob("data/*.csv.gz"))]
    return bench, [(x[:150], y[:150]) for x, y in filter(None, loaded)]


class TestRealForecasts:
    @pytest.mark.parametrize("name", ["average", "median", "geometric", "independent", "linear"])
    def test_plain_versions_of_the_rules_agree(self, rivals, name):
        bench, binary = rivals
        assert binary
        for x, y in binary:
            mine = fit_pool(name, table(x, y.tolist())).pool(x)
            if name == "linear":
                # The same floors, which the plain version has only where it learns; its iterations end early.
                rate = (y.sum() + 1) / (len(y) + 2)
                kept = np.clip(x, min(1e-4, rate / 100), 1 - min(1e-4, (1 - rate) / 100))
                plain = bench.RIVALS[name](x, y, kept)
                assert bench.log_loss(mine, y) <= bench.log_loss(plain, y) + 1e-6
            else:
                # The average and the median are not floored there.
                plain = bench.RIVALS[name](x, y, x)
                assert np.abs(mine - plain).max() < 1.01e-4


SAMPLE_X, SAMPLE_Y = Panel.exchangeable(3, accuracy=0.7, correlation=0.3).simulate(40, seed=4)
LEARNING = ("gaussian", "linear", "log", "beta-linear")


@pytest.mark.filterwarnings("ignore::opinionpool.OpinionPoolWarning")
@pytest.mark.parametrize("events", [3, 6, 9, 10, 40])
@pytest.mark.parametrize("value", [0.0, 0.5, 0.3, 1.0])
@pytest.mark.parametrize("name", POOLS)
def test_nothing_is_learned_from_who_never_moves(name, value, events):
    """At any number of forecasts, answers are those of the others, where weights are learned; elsewhere it is said."""
    x, y = SAMPLE_X[:events], SAMPLE_Y[:events].astype(int)
    y[:2] = 0, 1
    constant = np.column_stack([x, np.full(events, value)])
    alone = fit_pool(name, Forecasts.from_array(x, y), prior=0.5)
    beside = fit_pool(name, Forecasts.from_array(constant, y), prior=0.5)
    assert [note.text for note in beside.notes if note.code == "constant"]
    assert not [note for note in alone.notes if note.code == "constant"]
    if name in LEARNING:
        assert beside.weights[3] == 0
        assert beside.pool(constant) == pytest.approx(alone.pool(x), abs=1e-9)


@pytest.mark.filterwarnings("ignore::opinionpool.OpinionPoolWarning")
@pytest.mark.parametrize("name", ["log", "linear", "beta-linear"])
def test_who_never_answered_changes_nothing(name):
    """Twenty empty columns, with outcomes that are separated and ones that are not."""
    for events in (6, 40):
        x, y = SAMPLE_X[:events], SAMPLE_Y[:events].astype(int)
        y[:2] = 0, 1
        empty = np.column_stack([x, np.full((events, 20), np.nan)])
        alone, beside = (fit_pool(name, Forecasts.from_array(q, y), prior=0.5) for q in (x, empty))
        assert beside.pool(empty) == pytest.approx(alone.pool(x), abs=1e-9)


@pytest.mark.parametrize(("shared", "told"), [(0.0, False), (0.7, True)])
def test_the_independent_pool_says_when_errors_are_correlated(shared, told):
    rng = np.random.default_rng(2)
    y = np.arange(400) % 2
    common = np.sqrt(shared) * rng.normal(size=(400, 1))
    z = (2 * y[:, None] - 1) * 0.8 + common + np.sqrt(1 - shared) * rng.normal(size=(400, 4))
    z[rng.random(z.shape) < 0.3] = np.nan
    state = fit_pool("independent", table(expit(z), y.tolist()))
    (note,) = [note for note in state.notes if note.code == "correlated-errors"] or [None]
    assert (note is not None) == told
    if told:
        assert float(re.search(r"at (0\.\d\d) on average", note.text)[1]) == pytest.approx(shared, abs=0.06)


@pytest.mark.parametrize(
    ("q", "count"),
    [
        (np.full((1, 21), 0.55), 21),
        (np.array([[0.2, 0.2, 0.4], [NAN, NAN, 0.4], [0.6, 0.6, 0.9], [0.7, 0.7, 0.9], [0.1, 0.1, 0.9], [0, 0, 0.1]]),
         2),
        (np.array([[0.55, 0.55]]), None),
        (np.array([[0.2, 0.2]] * 6 + [[0.3, NAN]]), None),
        (np.stack([np.full((3, 3), p) for p in (0.2, 0.3, 0.5)], axis=2), 3),
        (np.linspace(0.1, 0.9, 30).reshape(10, 3), None),
    ],
)  # fmt: skip
def test_the_independent_pool_says_who_says_the_same_without_any_outcome(q, count):
    f = Forecasts.from_array(q, [None] * len(q), classes=(0, 1) if q.ndim == 2 else "abc")
    counts = [note.count for note in fit_pool("independent", f).notes if note.code == "equal-experts"]
    assert counts == ([] if count is None else [count])
    assert not [note for note in fit_pool("gaussian", f).notes if note.code == "equal-experts"]
