"""Shares of events by group: enumerated posteriors, simulated panels with known shares, properties, rivals."""

from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.sparse import eye_array
from scipy.stats import norm

import opinionpool as op
from opinionpool.analysis import shares
from opinionpool.analysis.rates import rates
from opinionpool.analysis.shares import Binned, posterior
from opinionpool.errors import ArgumentError, LearningError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.learn import learn
from opinionpool.logodds import expit
from opinionpool.model.panel import Panel

SIZES, LABELLED = (300, 600, 900), 150


def drawn(seed, *, better=1.0, judges=6):
    """Forecasts on three groups and one with labels, the group of each event, and true shares."""
    rng = np.random.default_rng(seed)
    group = np.repeat(range(4), (*SIZES, LABELLED))
    y = rng.random(len(group)) < np.append(rng.uniform(0.1, 0.9, 3), 0.5)[group]
    accuracy = np.where(group == 1, np.sqrt(better), 1.0)[:, None] * np.exp(0.4 * rng.normal(size=judges)) * 0.8
    error = np.sqrt(0.4) * rng.normal(size=(len(y), 1)) + np.sqrt(0.6) * rng.normal(size=(len(y), judges))
    x = 0.5 * rng.normal(size=judges) + accuracy * np.where(y, 1.0, -1.0)[:, None] + 1.2 * error
    outcomes = [int(happened) if g == 3 else None for happened, g in zip(y, group, strict=True)]
    labels = [f"g{g}" for g in group]
    return (
        Forecasts.from_array(expit(x), outcomes, classes=(0, 1)),
        labels,
        np.array([y[group == g].mean() for g in range(4)]),
    )


def by_true_scores(score, group, outcome, *, answered=None, random=True):
    """Posterior of the only group, of which scores are known to be log-likelihood ratios."""
    data = Binned.of(score, group, outcome, 2, answered=answered)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shares, "INTERCEPT", 1e-5)
        patch.setattr(shares, "SLOPE", 1e-5)
        return posterior(data, (0.0, 1.0), np.ones(1), np.ones(1), eye_array(1), random=random)


@pytest.fixture(scope="module")
def panels():
    """Rates of simulated panels beside their true shares."""
    cases = [drawn(seed) for seed in range(12)]
    return [(rates(learn(f), f, labels), truth) for f, labels, truth in cases]


@pytest.fixture(scope="module")
def one():
    return drawn(0)


@pytest.fixture(scope="module")
def rates_of_one(panels):
    return panels[0][0]


class TestPosterior:
    """Against the enumeration of all outcomes of a small group, with the prior's integral done on a fine grid."""

    @pytest.mark.parametrize("resolved", [(), (1,), (1, 0, 0, 1)])
    @pytest.mark.parametrize("random", [True, False])
    def test_one_group(self, resolved, random):
        score = np.array([-2.0, -0.5, 0.3, 1.1, 2.4, 0.0, -1.2])
        # Log-odds of shares as the prior has them, on a fine grid.
        deviation, x = shares.DEVIATIONS, np.linspace(-25.0, 25.0, 4001)
        p = deviation * np.exp(-0.5 * (deviation / shares.WIDTH) ** 2)
        prior = norm.pdf(x[:, None], scale=np.hypot(deviation, shares.WIDTH)) @ p
        prior /= prior.sum()
        known = np.prod([expit(x if y else -x) for y in resolved], axis=0) * prior
        count = np.zeros((len(score) + 1, len(x)))
        for outcomes in product((0, 1), repeat=len(score)):
            y = np.array(outcomes)
            count[y.sum()] += np.exp(y @ score + y.sum() * np.log(expit(x)) + (len(y) - y.sum()) * np.log(expit(-x)))
        # Base rates follow from scores, or from outcomes alone, averaged by how probable these are either way.
        said = count.sum(axis=0)
        by_scores, by_outcomes = said * (known if random else prior), known
        gain = np.log(known.sum()) - np.log((said * known).sum() / (said @ prior))
        other = random * expit(gain - shares.DISBELIEF)
        weight = (1.0 - other) * by_scores / by_scores.sum() + other * by_outcomes / by_outcomes.sum()
        chance = count / said @ weight
        values = np.arange(len(chance)) + sum(resolved)
        total = len(score) + len(resolved)
        mean = chance @ values / total
        error = np.sqrt(chance @ np.square(values / total - mean))

        outcome = np.array([-1] * len(score) + list(resolved))
        events = np.append(score, np.zeros(len(resolved)))
        found = by_true_scores(events, np.zeros(len(events), dtype=int), outcome, random=random)
        assert found.weight @ found.mean[:, 0] == pytest.approx(mean, abs=0.004)
        between = found.weight @ np.square(found.mean[:, 0] - found.weight @ found.mean[:, 0])
        assert np.sqrt(found.deviation[0] ** 2 + between) == pytest.approx(error, rel=0.03)

    def test_open_groups_correct_intercept_and_slope(self):
        # Scores are twice the log-likelihood ratios, and one too large.
        rng = np.random.default_rng(1)
        group = np.repeat(range(4), 1000)
        y = rng.random(4000) < np.array([0.1, 0.4, 0.6, 0.9])[group]
        ratio = np.where(y, 1.5, -1.5) + np.sqrt(3.0) * rng.normal(size=4000)
        data = Binned.of(2 * (ratio - 0.5), group, np.full(4000, -1), 5)
        found = posterior(data, (0.0, 1.0), np.ones(4), np.ones(4), eye_array(4), random=True)
        assert found.line == pytest.approx([0.5, 0.5], abs=0.15)

    def test_events_of_the_fit_give_intercept_and_slope_whichever_happened(self):
        # One group of open events leaves the line open; of those of the fit, nearly all or none happened.
        rng = np.random.default_rng(2)
        for happened, not_ in ((600, 40), (40, 600), (0, 600)):
            y = np.concatenate([rng.random(1000) < 0.4, np.ones(happened, bool), np.zeros(not_, bool)])
            ratio = np.where(y, 1.5, -1.5) + np.sqrt(3.0) * rng.normal(size=len(y))
            group = np.where(np.arange(len(y)) < 1000, 0, 1)
            data = Binned.of(2 * (ratio - 0.5), group, np.where(group == 0, -1, y), 2)
            found = posterior(data, (-1.0, 0.5), np.ones(1), np.ones(1), eye_array(1), random=True)
            assert found.line == pytest.approx([0.5, 0.5], abs=0.2)
            mean = found.weight @ found.mean[:, 0]
            error = np.sqrt(found.weight @ np.square(found.mean[:, 0] - mean) + found.deviation[0] ** 2)
            assert error < 0.06
            assert abs(mean - y[:1000].mean()) < 2 * error


class TestSimulated:
    def test_intervals_cover(self, panels):
        ends = [(found.interval_[0] - 1e-9, found.interval_[1] + 1e-9) for found, _ in panels]
        inside = [(low <= truth) & (truth <= high) for (low, high), (_, truth) in zip(ends, panels, strict=True)]
        assert 0.75 <= np.mean([each[:3] for each in inside]) <= 1.0
        assert all(each[3] for each in inside)

    def test_all_events(self, panels):
        for found, _ in panels:
            assert found.total_.difference == pytest.approx(found.events_ @ found.rate_ / found.events_.sum(), abs=1e-3)

    def test_a_group_with_better_experts_is_noted(self, panels):
        noted = []
        for seed in range(6):
            f, labels, _ = drawn(seed, better=6.0)
            noted.append([note.code for note in rates(learn(f), f, labels).notes])
        assert noted.count(["unlike-groups"]) >= 4
        assert not any(found.notes for found, _ in panels[:3])

    def test_outcomes_decide_where_groups_differ_in_how_much_is_known(self):
        # What is forecast is calibrated everywhere, and of half of the groups next to nothing is known.
        errors = {"": [], "Rogan-Gladen": [], "PPI++": []}
        for seed in range(4):
            rng = np.random.default_rng(seed)
            group = np.repeat(range(6), 150)
            p = expit(rng.normal(size=900) * np.where(group < 3, 0.2, 2.0) - 1.5 * (group >= 3))
            y = rng.random(900) < p
            x = expit(np.log(p / (1.0 - p))[:, None] + 0.2 * rng.normal(size=(900, 5)))
            known = np.isin(np.arange(900), rng.choice(900, 200, replace=False))
            f = Forecasts.from_array(x, [int(h) if k else None for h, k in zip(y, known, strict=True)], classes=(0, 1))
            found = rates(learn(f), f, group.astype(str))
            assert found.by_outcomes_ > 0.5
            for name, each in errors.items():
                each.append(
                    (found.rivals_[name].rate if name else found.rate_) - [y[group == g].mean() for g in range(6)]
                )
        size = {name: np.square(each).mean() for name, each in errors.items()}
        assert size[""] < min(size["Rogan-Gladen"], size["PPI++"])

    def test_three_classes(self):
        inside, errors, others = [], [], []
        for seed in range(6):
            rng = np.random.default_rng(seed)
            share, group = rng.dirichlet([1.5] * 3, 3), np.repeat(range(3), 300)
            y = np.array([rng.choice(3, p=share[g]) for g in group])
            log = 0.8 * np.eye(3)[y][:, None] + 0.5 * rng.normal(size=(900, 1, 3)) + 0.8 * rng.normal(size=(900, 5, 3))
            x = np.exp(log) / np.exp(log).sum(axis=-1, keepdims=True)
            outcomes = [int(c) if i % 6 == 0 else None for i, c in enumerate(y)]
            f = Forecasts.from_array(x, outcomes, classes=(0, 1, 2))
            found = rates(learn(f), f, group.astype(str))
            truth = np.array([np.bincount(y[group == g], minlength=3) / 300 for g in range(3)])
            assert found.rate_.sum(axis=1) == pytest.approx(1.0)
            inside.append((found.interval_[0] <= truth) & (truth <= found.interval_[1]))
            errors.append(found.rate_ - truth)
            others.append(found.rivals_["mean of answers"].rate - truth)
        assert np.mean(inside) >= 0.75
        assert np.square(errors).mean() < np.square(others).mean()


class TestProperties:
    @settings(max_examples=8)
    @given(st.integers(0, 1000), st.permutations(range(6)))
    def test_order_of_events_and_experts_does_not_matter(self, one, rates_of_one, seed, experts):
        f, labels, _ = one
        order = np.random.default_rng(seed).permutation(len(labels)).tolist()
        moved = f.select_events(order).select_experts([f.experts[i] for i in experts])
        before, after = rates_of_one, rates(learn(moved), moved, [labels[i] for i in order])
        assert after.rate_ == pytest.approx(before.rate_, abs=1e-6)
        assert np.array(after.interval_) == pytest.approx(np.array(before.interval_), abs=1e-4)

    @pytest.mark.parametrize(("merged", "into"), [(0, 0), (1, 3), (2, 0)])
    def test_resolved_groups_are_counted(self, one, merged, into):
        f, labels, _ = one
        # Everything is known: shares are what happened, whatever the groups are.
        y = np.random.default_rng(0).random(len(labels)) < 0.3
        known = Forecasts.from_array(f.X, y.astype(int), classes=(0, 1))
        by = np.array([f"g{into}" if label == f"g{merged}" else label for label in labels])
        found = rates(learn(f), known, by)
        for name, rate, low, high in zip(found.groups_, found.rate_, *found.interval_, strict=True):
            assert (low, rate, high) == pytest.approx((y[by == name].mean(),) * 3, abs=1e-9)
        assert found.total_.difference == pytest.approx(y.mean(), abs=1e-6)

    def test_selected_labels_say_nothing_about_the_others(self, one):
        f, labels, _ = one
        y = np.array([None if o < 0 else int(o) for o in f.outcomes])
        # Of the events of a group, only some that happened are resolved.
        inside = np.flatnonzero(np.array(labels) == "g0")
        x, rng = f.X, np.random.default_rng(0)
        likely = inside[np.argsort(-x[inside].mean(axis=1))[:60]]
        y[rng.choice(likely, 40, replace=False)] = 1
        g = Forecasts.from_array(x, list(y), classes=(0, 1))
        random, selected = (rates(learn(f), g, labels, labels=kind).rate_[0] for kind in ("random", "selected"))
        assert selected < random


class TestDependence:
    @staticmethod
    def repeated(copies):
        """Each event so many times, in a group of its own."""
        panel = Panel.exchangeable(4, correlation=0.2, accuracy=1.0)
        x, y = panel.simulate(300, seed=3)
        rows = np.repeat(range(300), copies)
        outcomes = [int(y[t]) if t < 100 else None for t in rows]
        return Forecasts.from_array(x[rows], outcomes, classes=(0, 1), groups=[f"q{t}" for t in rows])

    def test_events_that_are_copies_tell_no_more(self):
        single, double = self.repeated(1), self.repeated(4)
        state = learn(single)
        widths = [np.diff(rates(state, f).interval_, axis=0).item() for f in (single, double)]
        assert widths[1] > 0.85 * widths[0]
        assert np.diff(rates(state, self.without(double)).interval_, axis=0).item() < 0.75 * widths[0]

    @staticmethod
    def without(f):
        outcomes = [None if o < 0 else int(o) for o in f.outcomes]
        return Forecasts.from_array(f.X, outcomes, classes=(0, 1))

    def test_differences_on_the_same_items_are_paired(self):
        rng = np.random.default_rng(2)
        item = rng.normal(size=(400, 1))
        parts, outcomes, labels, items = [], [], [], []
        for name, share in (("a", 0.4), ("b", 0.5)):
            y = rng.random(400) < share
            log = np.where(y, 0.8, -0.8)[:, None] + 1.2 * item + 0.4 * rng.normal(size=(400, 5))
            parts.append(expit(log))
            outcomes += [int(h) if t < 60 else None for t, h in enumerate(y)]
            labels += [name] * 400
            items += [f"i{t}" for t in range(400)]
        x = np.concatenate(parts)
        alone = Forecasts.from_array(x, outcomes, classes=(0, 1))
        paired = Forecasts.from_array(x, outcomes, classes=(0, 1), groups=items)
        state = learn(alone)
        widths = [d.high - d.low for d in (rates(state, f, labels).difference("b", "a") for f in (alone, paired))]
        assert widths[1] < 0.95 * widths[0]


class TestRivals:
    def test_by_hand(self):
        x = np.array([[0.9], [0.2], [0.6], [0.7], [0.8], [0.1], [0.9], [0.3]])
        y = [1, 0, 0, 1, None, None, None, None]
        f = Forecasts.from_array(x, y, classes=(0, 1))
        found = rates(learn(f), f)
        vote = 5 / 8
        # Two of two who happened have the majority, and one of two who did not; half an event is added to each.
        true, false = 2.5 / 3, 1.5 / 3
        rate = (vote - false) / (true - false)
        error = np.sqrt(
            vote * (1 - vote) / 8 + (1 - rate) ** 2 * false * (1 - false) / 3 + rate**2 * true * (1 - true) / 3
        )
        width = NormalDist().inv_cdf(0.95) * error / (true - false)
        own = found.rivals_["Rogan-Gladen"]
        assert (own.rate, own.low, own.high) == pytest.approx((rate, max(rate - width, 0), min(rate + width, 1)))
        assert found.rivals_["majority"].rate == pytest.approx(vote)

        known, open_ = x[:4, 0], x[4:, 0]
        labels = np.array([1.0, 0.0, 0.0, 1.0])
        power = np.cov(known, labels)[0, 1] / ((1 + 4 / 4) * np.var(x))
        value = power * open_.mean() + (labels - power * known).mean()
        variance = power**2 * np.var(open_) / 4 + np.var(labels - power * known) / 4
        ppi = found.rivals_["PPI++"]
        assert ppi.rate == pytest.approx(value)
        assert ppi.high - ppi.rate == pytest.approx(min(NormalDist().inv_cdf(0.95) * np.sqrt(variance), 1 - value))

    def test_without_outcomes_there_are_none(self):
        f = Forecasts.from_array(np.full((20, 3), 0.4) + np.arange(20)[:, None] / 50)
        found = rates(learn(f), f)
        assert np.isnan(found.rivals_["PPI++"].rate).all()
        assert np.isnan(found.rivals_["Rogan-Gladen"].rate).all()
        assert np.isfinite(found.rate_).all()


THREE = Forecasts.from_array(np.full((4, 2, 3), 1 / 3), classes=("x", "y", "z"))
OWN = Forecasts.from_array([[0.5, 0.5], [0.2, 0.3]], options=[("a", "b"), ("c", "d")], outcomes=["a", None])


class TestWhatIsGiven:
    def test_pools_of_all_kinds(self, one, tmp_path):
        f, labels, _ = one
        f = Forecasts.from_array(f.X, [None if o < 0 else int(o) for o in f.outcomes], classes=(0, 1), topics=labels)
        stream = op.Stream()
        stream.add(f)
        expected = rates(stream, f, "topic")
        op.save(stream, tmp_path / "pool.json")
        assert rates(op.load(tmp_path / "pool.json"), f, "topic").rate_ == pytest.approx(expected.rate_)
        pool = op.GaussianPool().fit(f)
        assert rates(pool, f, labels).rate_ == pytest.approx(rates(pool.state_, f, "topic").rate_)
        # A pool that has learned how topics differ has their base rates, too; they are taken out.
        assert rates(pool, f, "topic").rate_ == pytest.approx(expected.rate_, abs=0.03)

    def test_a_table_by_one_of_its_columns(self):
        x, y = Panel.exchangeable(3, accuracy=1.0).simulate(60, seed=1)
        table = {"event": [f"e{t}" for t in range(60)], "system": ["old", "new"] * 30}
        table |= {f"judge {i}": x[:, i] for i in range(3)} | {"outcome": [*map(int, y[:40]), *[None] * 20]}
        pool = op.GaussianPool().fit(op.read_forecasts(table, columns={"topic": "system"}))
        found = op.rates(pool, table, by="system")
        assert found.groups_ == ("new", "old")
        frame = found.to_frame()
        assert list(frame["group"]) == ["new", "old"]
        assert frame["rate"].to_numpy() == pytest.approx(found.rate_)

    def test_it_shows_as_a_short_table(self, one):
        f, labels, _ = one
        state = learn(f)
        lines = repr(rates(state, f, labels)).splitlines()
        assert lines[0] == "Rates of 4 groups, 90% intervals"
        assert lines[1].split() == ["group", "rate", "low", "high", "events", "resolved"]
        assert lines[2].split()[0] == "'g0'"
        assert len(lines) == 6
        assert len(repr(rates(state, f, [str(t % 100) for t in range(len(labels))])).splitlines()) <= 25

    def test_what_is_known_is_no_guess(self, one):
        f = one[0]
        known = Forecasts.from_array(f.X[:12], [1, 0, 0, 0, 0, 0] * 2, classes=(0, 1))
        found = rates(learn(f), known, ["a"] * 6 + ["b"] * 6)
        assert found.difference("a", "b") == found.difference("a", "a") == (0.0, 0.0, 0.0, 0.5)
        assert found.total_ == pytest.approx((1 / 6, 1 / 6, 1 / 6, 1.0))
        every = Forecasts.from_array(f.X[:12], [1] * 12, classes=(0, 1))
        assert rates(learn(f), every).rate_.tolist() == [1.0]
        assert rates(learn(f), known).difference("all", "all", of=np.int64(1)).above == 0.5
        words = Forecasts.from_array(f.X[:12], np.array(["no", "yes"] * 6))
        assert rates(learn(words), words).difference("all", "all", of="no").above == 0.5

    def test_priors_of_events_are_moved_and_not_counted_twice(self):
        prior = np.where(np.arange(200) % 2, 0.8, 0.2)
        x, y = Panel.exchangeable(3, accuracy=1.0).simulate(200, prior=prior, seed=1)
        f = Forecasts.from_array(x, [*map(int, y[:60]), *[None] * 140], classes=(0, 1), prior=prior)
        found = rates(learn(f), f, (np.arange(200) % 2).astype(str))
        assert found.rate_ == pytest.approx([y[::2].mean(), y[1::2].mean()], abs=0.08)

    @pytest.mark.parametrize(
        ("call", "error", "told"),
        [
            (lambda state, f, by: rates(state, f, "system"), ArgumentError, "no column 'system'"),
            (lambda state, f, by: rates(state, f, by, labels="some"), ArgumentError, "labels"),
            (lambda state, f, by: rates(state, f, by).difference("g0", "g9"), ArgumentError, "group"),
            (lambda state, f, by: rates(op.GaussianPool(), f, by), LearningError, "GaussianPool is not fitted yet"),
            (lambda state, f, by: rates(state, THREE), ArgumentError,
             "of the classes 'x', 'y', 'z', and the pool is of 0, 1"),
            (lambda state, f, by: rates(state, {"event": ["e1"], "ann": [0.5]}, np.array(["a"])), ArgumentError,
             "name of a column"),
            (lambda state, f, by: rates(op.LinearPool().fit(f), f, by), LearningError, "does not say how sure"),
            (lambda state, f, by: rates(op.GaussianPool(beliefs=None).fit(f), f, by), LearningError, "how sure"),
            (lambda state, f, by: rates("gaussian", f, by), ArgumentError, "pool must be"),
            (lambda state, f, by: rates(state, OWN), ArgumentError, "options of their own"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_is_refused(self, one, call, error, told):
        f, labels, _ = one
        with pytest.raises(error, match=told):
            call(learn(f), f, labels)


def test_another_prior_than_that_of_the_fit_is_refused():
    x, y = Panel.exchangeable(5, correlation=0.3, accuracy=1.0).simulate(60, seed=1)
    f = Forecasts.from_array(x, [*y[:20], *[None] * 40])
    with pytest.raises(ArgumentError, match="a prior is where experts start from"):
        rates(learn(f), f, prior=0.1)
    plain, same = rates(learn(f), f), rates(learn(f), f, prior=learn(f).prior[1])
    assert same.rate_ == pytest.approx(plain.rate_, rel=1e-9)


def test_intervals_of_few_events_hold_counts():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(4), 20)
    y = rng.random(80) < np.array([0.05, 0.3, 0.6, 0.9])[group]
    x = expit(0.7 * np.where(y, 1, -1)[:, None] + rng.normal(size=(80, 1)) + rng.normal(size=(80, 5)))
    f = Forecasts.from_array(x, [int(v) if rng.random() < 0.3 else None for v in y], classes=(0, 1))
    found = rates(learn(f), f, group.astype(str))
    for end in (*found.interval_, np.array([found.total_.low * 4, found.total_.high * 4])):
        assert end * 20 == pytest.approx(np.round(end * 20), abs=1e-9)
    assert (found.interval_[0] <= found.rate_).all()
    assert (found.rate_ <= found.interval_[1]).all()


def test_the_outcome_is_no_group(tmp_path):
    rows = [f"q{i},{0.3 + i / 50},{i % 2}" for i in range(10)]
    path = tmp_path / "f.csv"
    path.write_text("\n".join(["event,ann,outcome", *rows]) + "\n", encoding="utf-8")
    with pytest.raises(ArgumentError, match="'outcome' says what happened"):
        rates(op.GaussianPool().fit(op.read_forecasts(path)), path, by="outcome")
