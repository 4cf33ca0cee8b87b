"""Pools compared: the scores are those of forecasts made without the outcome, and the verdicts follow from them."""

import itertools
import math
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import opinionpool as op
from opinionpool import progress
from opinionpool.errors import ArgumentError, LearningError, ProbabilityError
from opinionpool.estimation.sampling import event_contents
from opinionpool.forecasts import Forecasts
from opinionpool.pools.fit import fit_pool
from opinionpool.pools.registry import POOLS
from opinionpool.report.comparison import verdict_lines
from opinionpool.scoring.compare import compare_pools
from opinionpool.scoring.intervals import Difference
from opinionpool.scoring.scores import brier_score, log_loss, log_score
from opinionpool.scoring.splits import random_splits, time_splits
from tests.panels import panel

# Without times and levels.
USUAL = {name for name, pool in POOLS.items() if not (pool.timed or pool.of_levels)}

NAN = float("nan")
seeds = st.integers(0, 10**6)


crowd = partial(panel, signal=1.5, own=1.5)


def dated(forecasts, days, settled=None):
    times = np.datetime64("2025-01-01", "us") + np.asarray(days).astype("timedelta64[D]")
    return replace(forecasts, times=times, settled=settled)


def grouped(forecasts, labels):
    return replace(forecasts, groups=np.array([str(label) for label in labels]))


def codes(found):
    return [note.code for note in found.notes]


def row(found, name):
    return next(pool for pool in found.pools if pool.pool == name)


class TestRivals:
    def test_scores_are_those_of_cross_val_predict(self):
        forecasts = dated(crowd(events=80), np.arange(80))
        found = compare_pools(forecasts, ["average"], rivals={"stack": LogisticRegression()}, by="time", folds=3)
        x, y = np.log(forecasts.X / (1 - forecasts.X)), forecasts.outcomes
        scores = np.full(80, NAN)
        for start in (20, 40, 60):
            p = LogisticRegression().fit(x[:start], y[:start]).predict_proba(x[start : start + 20])[:, 1]
            scores[start : start + 20] = log_score(p, y[start : start + 20])
        assert found.scores["stack"] == pytest.approx(scores, nan_ok=True)
        assert found.reference == "average"
        assert not hasattr(LogisticRegression(), "coef_")

    def test_three_classes_and_one_that_training_lacks(self):
        rng = np.random.default_rng(3)
        q = rng.dirichlet(np.ones(3), size=(30, 2))
        y = np.append(np.arange(28) % 2, [2, 0])
        forecasts = Forecasts.from_array(q, y, classes=range(3))
        found = compare_pools(forecasts, ["average"], rivals={"trees": GaussianNB()}, repeats=1)
        assert np.isfinite(found.scores["trees"]).all()
        assert np.nansum(found.answers["trees"], axis=1) == pytest.approx(1.0)

    def test_given_answers_are_scored_as_they_are_where_there_are_some(self):
        forecasts = crowd(events=40)
        p = np.where(forecasts.outcomes == 1, 0.8, 0.3)
        p[[3, 7]] = NAN
        found = compare_pools(forecasts, ["average", "linear"], rivals={"market": p}, repeats=1)
        assert found.scores["market"] == pytest.approx(log_score(p, forecasts.outcomes), nan_ok=True)
        assert (found.scored, found.events) == (38, 40)
        assert np.isnan(found.scores["linear"][[3, 7]]).all()
        assert "no-rival" in codes(found)
        assert math.isnan(row(found, "market").in_sample)

    def test_what_cannot_be_fitted_is_left_out(self):
        found = compare_pools(crowd(missing=0.2), ["average"], rivals={"stack": LogisticRegression()}, repeats=1)
        assert [pool.pool for pool in found.pools] == ["average"]
        assert any("stack is left out: stack cannot be fitted" in note.text for note in found.notes)

    @pytest.mark.parametrize(
        ("rivals", "said"),
        [
            ({"average": np.full(60, 0.5)}, "like a pool"),
            ({"x": LogisticRegression}, "must be a classifier"),
            ({"x": "linear"}, "must be a classifier"),
            ({"x": np.full(59, 0.5)}, "as many outcomes"),
            ({"x": np.full((60, 3), 1 / 3)}, "probability of each of 2 classes"),
        ],
    )
    def test_what_is_no_rival_is_refused(self, rivals, said):
        with pytest.raises(ArgumentError, match=said):
            compare_pools(crowd(), ["average"], rivals=rivals)


def test_a_comparison_prints_as_a_table_of_25_lines_at_most():
    found = compare_pools(crowd(experts=30), ["average", "linear"], repeats=1)
    lines = str(found).splitlines()
    assert len(lines) <= 25
    assert [line.split()[0] for line in lines[1:3]] == [pool.pool for pool in found.pools]
    many = replace(found, pools=found.pools * 20)
    assert len(str(many).splitlines()) <= 25


class TestPoolsWithOptions:
    def test_options_count_and_are_in_the_name(self):
        forecasts, weights = crowd(events=40), [4.0, 1.0, 1.0, 0.0]
        found = compare_pools(forecasts, [op.LinearPool(weights), "linear", op.AveragePool()], repeats=1)
        assert {pool.pool for pool in found.pools} == {f"LinearPool(weights={weights})", "linear", "average"}
        by_hand = forecasts.X @ np.array(weights) / 6.0
        assert found.answers[f"LinearPool(weights={weights})"] == pytest.approx(by_hand)
        # Nothing is learned, so there is no score on what was learned from.
        assert math.isnan(row(found, f"LinearPool(weights={weights})").in_sample)
        assert math.isfinite(row(found, "linear").in_sample)

    def test_a_mapping_gives_names_and_experts_stand_beside_the_gaussian_pool(self):
        pools = {"ours": op.GaussianPool(floor=0.01), "theirs": "median"}
        found = compare_pools(crowd(events=40), pools, repeats=1)
        assert {pool.pool for pool in found.pools} == {"average", "ours", "theirs"}
        assert found.reference == "ours"
        assert list(compare_pools(crowd(), "median", repeats=1).scores) == ["average", "median"]

    def test_a_bar_shows_how_far_it_is(self, capsys, monkeypatch):
        monkeypatch.setattr(progress, "PATIENCE", -1.0)
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        compare_pools(crowd(), ["linear"], repeats=1, progress=True)
        assert "comparing pools" in capsys.readouterr().err
        compare_pools(crowd(), ["linear"], repeats=1, progress=False)
        assert capsys.readouterr().err == ""

    def test_a_log_has_few_lines_however_long_it_takes(self, capsys, monkeypatch):
        # Each look at the clock is 10 s after the one before.
        monkeypatch.setattr(progress.time, "monotonic", itertools.count(0, 10).__next__)
        with progress.advancing(True, "comparing") as advance:
            for i in range(1000):
                advance(i / 999)
        lines = capsys.readouterr().err.splitlines()
        assert lines[:2] == ["comparing: 0% done after 30 s", "comparing: 1% done after 1 min 0 s"]
        assert lines[-1] == "comparing: 77% done after 2 h 8 min"
        assert len(lines) == 9


class TestScores:
    def test_every_pool_is_scored_on_every_event(self):
        found = compare_pools(crowd(events=90, missing=0.2), repeats=1)
        assert {pool.pool for pool in found.pools} == USUAL
        assert found.scored == found.events == 90
        scores = [pool.score for pool in found.pools]
        assert scores == sorted(scores, reverse=True)
        assert found.notes == ()

    @pytest.mark.parametrize("name", ["gaussian", "beta-linear"])
    def test_scores_are_of_fits_to_the_other_folds(self, name):
        forecasts = crowd(events=40)
        expected = np.full((2, 40), NAN)
        for number in range(2):
            for split in random_splits(
                forecasts.outcomes, 4, np.random.default_rng([7, number]), event_contents(forecasts)
            ):
                learned = fit_pool(name, forecasts.select_events(split.train))
                expected[number, split.test] = learned.pool(forecasts.X[split.test])
        scores = np.mean([log_score(p, forecasts.outcomes) for p in expected], axis=0)
        found = compare_pools(forecasts, [name], folds=4, repeats=2, seed=7)
        assert found.scores[name] == pytest.approx(scores)
        pool = row(found, name)
        assert pool.score == pytest.approx(scores.mean())
        assert pool.log_loss == pytest.approx(np.mean([log_loss(p, forecasts.outcomes) for p in expected]))
        assert pool.brier == pytest.approx(np.mean([brier_score(p, forecasts.outcomes) for p in expected]))
        assert pool.standard_error == pytest.approx(scores.std(ddof=1) / math.sqrt(40))
        inside = fit_pool(name, forecasts).pool(forecasts.X)
        assert pool.in_sample == pytest.approx(log_score(inside, forecasts.outcomes).mean())

    def test_the_base_rate_is_estimated_without_the_scored_events(self):
        f = crowd(events=50, unresolved=3)
        f = replace(f, outcomes=np.where((f.outcomes == 0) & (np.arange(50) % 3 == 0), 1, f.outcomes))
        found = compare_pools(f, ["linear"], repeats=1, seed=4)
        rows = np.flatnonzero(f.resolved)
        y, rate = f.outcomes[rows], np.empty(len(rows))
        keys = event_contents(f.select_events(rows))
        for split in random_splits(y, 5, np.random.default_rng([4, 0]), keys):
            rate[split.test] = (y[split.train].sum() + 1) / (len(split.train) + 2)
        loss = -np.log(np.where(y == 1, rate, 1 - rate))
        assert found.base.log_loss == pytest.approx(loss.mean())
        assert found.base.score == pytest.approx(1 - loss.mean() / math.log(2))
        assert found.base.brier == pytest.approx(((rate - y) ** 2).mean())
        for pool in found.pools:
            assert pool.skill == pytest.approx(1 - pool.log_loss / loss.mean())
            assert pool.skill == pytest.approx((pool.score - found.base.score) / (1 - found.base.score))

    def test_priors_of_events_are_their_base_rates(self):
        f = crowd(events=20)
        rng = np.random.default_rng(1)
        own = rng.uniform(0.1, 0.9, 20)
        found = compare_pools(replace(f, prior=own), ["average"], repeats=1)
        assert found.base.log_loss == pytest.approx(log_loss(own, f.outcomes).mean())
        same = compare_pools(f, ["average"], prior=0.3, repeats=1)
        assert same.base.log_loss == pytest.approx(log_loss(np.full(20, 0.3), f.outcomes).mean())

    @settings(max_examples=5)
    @given(seeds)
    def test_forward_in_time_an_outcome_says_nothing_about_itself(self, seed):
        forecasts = dated(crowd(24, seed=seed), range(24))
        pools = ["gaussian", "linear", "log"]
        one = compare_pools(forecasts, pools, by="time", folds=3)
        flipped = forecasts.outcomes.copy()
        flipped[-1] = 1 - flipped[-1]
        other = compare_pools(replace(forecasts, outcomes=flipped), pools, by="time", folds=3)
        for name in pools:
            assert other.scores[name][:-1] == pytest.approx(one.scores[name][:-1], nan_ok=True)
            # What the outcome and its opposite were given adds up to 1.
            assert 2.0 ** (one.scores[name][-1] - 1) + 2.0 ** (other.scores[name][-1] - 1) == pytest.approx(1)

    def test_unresolved_events_are_not_scored_and_teach_nothing(self):
        forecasts = crowd(unresolved=10)
        found = compare_pools(forecasts, ["gaussian"], repeats=2)
        without = compare_pools(forecasts.select_events(forecasts.resolved), ["gaussian"], repeats=2)
        assert found.scored == found.events == 50
        assert found.scores["gaussian"][10:].tolist() == without.scores["gaussian"].tolist()
        assert np.isnan(found.scores["gaussian"][:10]).all()

    def test_resolved_events_without_forecasts_are_not_scored(self):
        forecasts = Forecasts.from_array(np.vstack([crowd().X, [[NAN] * 4]]), [*crowd().outcomes.tolist(), 1])
        found = compare_pools(forecasts, ["geometric"], repeats=1)
        assert (found.events, found.scored) == (61, 60)
        assert "no-forecast" in codes(found)

    def test_priors_of_events_are_used(self):
        forecasts = crowd(events=40)
        prior = np.random.default_rng(1).uniform(0.2, 0.8, size=40)
        found = compare_pools(forecasts, ["independent"], prior=prior, repeats=1)
        expected = log_score(op.pools.registry.POOLS["independent"].pool(forecasts.X, prior=prior), forecasts.outcomes)
        assert found.scores["independent"] == pytest.approx(expected)
        own = replace(forecasts, prior=np.where(np.arange(40) < 10, NAN, prior))
        with pytest.raises(ProbabilityError, match="have no prior"):
            compare_pools(own, ["independent"])
        filled = compare_pools(own, ["independent"], prior=0.3, repeats=1)
        assert filled.scores["independent"][10:] == pytest.approx(expected[10:])

    def test_more_than_two_classes(self):
        rng = np.random.default_rng(0)
        y = rng.integers(3, size=50)
        q = rng.dirichlet(np.ones(3), size=(50, 3)) + 0.5 * np.eye(3)[y][:, None, :]
        q /= q.sum(axis=2, keepdims=True)
        found = compare_pools(Forecasts.from_array(q, y, classes=(0, 1, 2)), repeats=1)
        assert {pool.pool for pool in found.pools} == USUAL - {"beta-linear"}
        assert "left-out" in codes(found)
        assert math.isnan(found.best.auc)
        assert row(found, "average").brier == pytest.approx(op.brier_sum(q.mean(axis=1), y).mean(), abs=1e-3)
        assert len(found.experts) == 3

    def test_rounds_end_when_dealing_hardly_matters(self):
        forecasts = crowd()
        given, alone = compare_pools(forecasts, ["log"]), compare_pools(forecasts, ["median"])
        assert 3 <= given.rounds <= 20
        assert alone.rounds == 3  # nothing is learned, so nothing depends on the dealing


class TestSplits:
    def test_the_first_block_in_time_stays_without_a_score(self):  # case 75
        forecasts = dated(crowd(events=6), range(6))
        found = compare_pools(forecasts, ["average"], by="time", folds=2)
        assert np.isnan(found.scores["average"]).tolist() == [True, True, False, False, False, False]
        assert found.scored == 4
        assert found.best.score == pytest.approx(found.scores["average"][2:].mean())
        assert any("the first 2 of 6 events" in note.text and "other 4" in note.text for note in found.notes)

    def test_a_gap_keeps_events_from_teaching(self):
        forecasts = dated(crowd(events=40), range(40))
        splits = time_splits(forecasts.times, 3, np.timedelta64(5, "D"))
        expected = np.full(40, NAN)
        for split in splits:
            assert len(split.train) == split.test[0] - 4
            learned = fit_pool("linear", forecasts.select_events(split.train))
            expected[split.test] = log_score(learned.pool(forecasts.X[split.test]), forecasts.outcomes[split.test])
        found = compare_pools(forecasts, ["linear"], by="time", folds=3, gap="5d")
        assert found.scores["linear"] == pytest.approx(expected, nan_ok=True)
        with pytest.raises(LearningError, match="the gap leaves no event"):
            compare_pools(forecasts, ["linear"], by="time", gap="100d")

    @pytest.mark.parametrize("early", [{}, {"horizon": "9d"}, {"history": True}], ids=["closing", "horizon", "life"])
    def test_outcomes_that_were_not_known_change_no_score(self, early):
        rng = np.random.default_rng(8)
        events, experts, pools = 48, 3, ["gaussian", "recalibrated", "linear"]
        closes = rng.permutation(events) * 3 + 20
        # Every other outcome comes late, and by different times.
        known = closes + np.where(rng.random(events) < 0.5, rng.integers(5, 90, events), 1)
        made = closes[:, None] - rng.integers(10, 16, (events, experts))
        answered = made.min(axis=1) if "history" in early else closes - (9 if early else 0)
        y = rng.random(events) < 0.5
        q = np.round(1 / (1 + np.exp(-(2.0 * y[:, None] - 1 + rng.normal(size=(events, experts))))), 3)

        def scores(outcomes):
            date = np.datetime64("2025-01-01")
            rows = {
                "event": np.repeat([f"q{t:02}" for t in range(events)], experts),
                "expert": np.tile(["ann", "bob", "cyd"], events),
                "probability": q.ravel(),
                "time": np.datetime_as_string(date + made.ravel()),
                "closes": np.repeat(np.datetime_as_string(date + closes), experts),
                "resolved_at": np.repeat(np.datetime_as_string(date + known), experts),
                "outcome": np.repeat(outcomes.astype(int), experts),
            }
            forecasts = op.read_forecasts({name: column.tolist() for name, column in rows.items()}, **early)
            return compare_pools(forecasts, pools, by="time", folds=4, prior=0.5)

        found = scores(y)
        scored = np.flatnonzero(~np.isnan(found.scores["linear"]))
        order = scored[np.argsort(answered[scored])]
        assert len(order) >= 20
        for t in order[:: len(order) // 3]:
            later = (known >= answered[t]) & (np.arange(events) != t)
            assert later.any()
            other = scores(y ^ later)
            for name in pools:
                assert other.scores[name][t] == found.scores[name][t]
        # What was known before any of the last ones was answered counts.
        last = order[-len(order) // 4 :]
        other = scores(y ^ (known < answered[last].min()))
        assert other.scores["recalibrated"][order[-1]] != found.scores["recalibrated"][order[-1]]

    def test_no_outcome_known_in_time(self):
        rows = {
            "event": [f"q{t}" for t in range(30)], "expert": ["ann"] * 30, "probability": [0.3, 0.6, 0.8] * 10,
            "time": ["2025-01-01"] * 30, "closes": [f"2025-06-{t + 1:02}" for t in range(30)],
            "outcome": [0, 1, 1] * 10,
        }  # fmt: skip
        early = op.read_forecasts(rows, horizon="40d")
        with pytest.raises(LearningError, match="no outcome was known"):
            compare_pools(early, ["linear"], by="time")
        with pytest.raises(LearningError, match="no outcome was known"):
            compare_pools(op.read_forecasts(rows, history=True), ["linear"], by="time")
        found = compare_pools(op.read_forecasts(rows, horizon="8d"), ["linear"], by="time")
        # Blocks of five, answered on days 6, 11 ... less 8: the second block has day 2 to learn from.
        assert found.scored == 20
        (note,) = (note for note in found.notes if note.code == "not-scored")
        assert "the first 10 of 30" in note.text
        assert "when 5 of the first were answered, no outcome was known" in note.text

    def test_dates_with_random_folds_are_noted(self):
        forecasts = crowd(events=20)
        for days, noted in [(range(20), True), ([0] * 20, False)]:
            closed = dated(forecasts, days, settled=np.ones(20, dtype=bool))
            found = compare_pools(closed, ["median"], repeats=1)
            assert ("random-folds" in codes(found)) == noted

    def test_dates_of_forecasts_do_not_say_which_outcomes_were_known(self):
        made = dated(crowd(events=20), range(20))
        closed = replace(made, settled=np.ones(20, dtype=bool))
        assert "random-folds" not in codes(compare_pools(made, ["median"], repeats=1))
        assert "outcome-dates" in codes(compare_pools(made, ["median"], by="time"))
        assert "outcome-dates" not in codes(compare_pools(closed, ["median"], by="time"))

    def test_undated_events_have_no_part_forward_in_time(self):
        forecasts = dated(crowd(events=20), range(20))
        times = forecasts.times.copy()
        times[3] = "NaT"
        found = compare_pools(replace(forecasts, times=times), ["median"], by="time")
        assert "undated" in codes(found)
        assert np.isnan(found.scores["median"][3])

    def test_groups_are_learned_about_from_the_others(self):
        forecasts = crowd(events=30)
        labels = np.arange(30) % 3
        expected = np.full(30, NAN)
        for label in range(3):
            learned = fit_pool("linear", forecasts.select_events(labels != label))
            inside = labels == label
            expected[inside] = log_score(learned.pool(forecasts.X[inside]), forecasts.outcomes[inside])
        found = compare_pools(grouped(forecasts, labels), ["linear"], by="group", repeats=1)
        assert found.scores["linear"] == pytest.approx(expected)
        assert {"fewer-folds", "few-clusters"} <= set(codes(found))
        assert (found.unit, found.units) == ("group", 3)
        assert {pool.over_average.verdict for pool in found.pools if pool.pool != "average"} == {"too few events"}

    def test_events_that_share_a_date_or_group_stand_and_fall_together(self):
        forecasts = crowd(events=60)
        assert compare_pools(forecasts, ["median"], repeats=1).unit == "event"
        days = compare_pools(dated(forecasts, np.arange(60) // 5), ["median"], repeats=1)
        assert (days.unit, days.units) == ("date", 12)
        groups = compare_pools(grouped(forecasts, np.arange(60) // 6), ["median"], repeats=1)
        assert (groups.unit, groups.units) == ("group", 10)
        sums = groups.scores["median"] - groups.scores["median"].mean()
        assert row(groups, "median").standard_error == pytest.approx(
            math.sqrt((sums.reshape(10, 6).sum(axis=1) ** 2).sum() * 10 / 9) / 60
        )

    def test_blank_groups_are_groups_of_their_own(self):
        forecasts = grouped(crowd(events=20), [""] * 18 + ["a", "a"])
        assert compare_pools(forecasts, ["median"], by="group", repeats=1).units == 19

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            ({"pools": ["mean"]}, "no pool is called 'mean'"),
            ({"pools": [op.LinearPool]}, r"such as op\.LinearPool\(\), not"),
            ({"pools": {"average": "median"}}, "two pools are called 'average'"),
            ({"by": "time"}, "no column says when they belong; name it with --column time=NAME"),
            ({"by": "group"}, "no column says which"), ({"by": "month"}, "by must be"), ({"gap": 3}, "forward in time"),
            ({"folds": 1}, "at least 2 folds"), ({"repeats": 0}, "from 1 to 1,000"),
            ({"repeats": 10**9}, "from 1 to 1,000"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_asked_for(self, arguments, told):
        with pytest.raises(ArgumentError, match=told):
            compare_pools(crowd(events=10), **arguments)

    @pytest.mark.parametrize("known", [0, 1])
    def test_too_few_events(self, known):
        with pytest.raises(LearningError, match="takes at least 2"):
            compare_pools(Forecasts.from_array([[0.2, 0.4], [0.3, 0.3]], [1, None][:known] + [None] * (2 - known)))

    @pytest.mark.parametrize("events", [2, 9])
    def test_few_events_are_scored_and_nothing_is_claimed(self, events):
        found = compare_pools(crowd(events=events), repeats=4)
        assert ("fewer-folds" in codes(found)) == (events < 5)
        assert {pool.over_average.verdict for pool in found.pools if pool.pool != "average"} == {"too few events"}

    def test_one_outcome_only(self):
        forecasts = Forecasts.from_array(crowd(events=12).X, [1] * 12)
        found = compare_pools(forecasts, repeats=1)
        assert "one-outcome" in codes(found)
        assert all(math.isfinite(pool.score) and math.isnan(pool.auc) for pool in found.pools)

    @pytest.mark.parametrize(("rare", "noted"), [(1, True), (4, True), (5, False)])
    def test_an_outcome_that_hardly_happened_is_noted(self, rare, noted):
        x = np.random.default_rng(0).uniform(0.01, 0.2, size=(40, 2))
        found = compare_pools(Forecasts.from_array(x, (np.arange(40) < rare).astype(int)), ["linear"], repeats=1)
        assert ("rare-outcome" in codes(found)) == noted
        assert "one-outcome" not in codes(found)

    def test_no_expert_of_a_crowd_gets_a_weight_of_its_own_unless_asked_for(self):
        forecasts = crowd(events=60, experts=600, missing=0.9)
        found = compare_pools(forecasts, repeats=1, folds=2)
        assert {pool.pool for pool in found.pools} == USUAL - {"linear", "log"}
        (note,) = (note for note in found.notes if note.code == "left-out")
        assert note.text.startswith("linear and log are left out: they would learn a weight for each of 600 experts")
        asked = compare_pools(forecasts, ["log"], repeats=1, folds=2)
        assert {pool.pool for pool in asked.pools} == {"average", "log"}
        assert "left-out" not in codes(asked)


def test_the_gaussian_pool_against_the_average_is_what_a_report_has():
    forecasts = crowd(events=40)
    found = compare_pools(forecasts, ["gaussian", "median", "linear"], repeats=1)
    single = compare_pools(forecasts, "gaussian", repeats=1)
    assert single.single is None
    assert found.single == row(single, "gaussian").over_average
    together = row(found, "gaussian").over_average
    assert together.low < found.single.low < found.single.high < together.high
    assert not any("a single comparison" in line for line in verdict_lines(replace(found, single=None)))
    clear = replace(found, single=Difference(0.1, 0.05, 0.2))
    unclear = [replace(pool, over_average=Difference(0.1, -0.05, 0.3)) for pool in found.pools]
    (line,) = [each for each in verdict_lines(replace(clear, pools=tuple(unclear))) if "a single comparison" in each]
    assert "is better: +0.100 (+0.050 to +0.200)" in line


def test_the_order_of_events_and_experts_plays_no_part():
    forecasts = crowd(events=40, missing=0.2)
    rng = np.random.default_rng(3)
    order = rng.permutation(40)
    other = forecasts.select_events(order).select_experts(["expert_3", "expert_1", "expert_4", "expert_2"])
    one, two = (compare_pools(f, ["gaussian", "linear", "log"], repeats=2) for f in (forecasts, other))
    for name, scores in one.scores.items():
        assert two.scores[name] == pytest.approx(scores[order], abs=1e-7)
    for a, b in zip(one.pools, two.pools, strict=True):
        assert a.pool == b.pool
        assert b.over_average.low == pytest.approx(a.over_average.low, abs=1e-7)
        assert b.over_best.low == pytest.approx(a.over_best.low, abs=1e-7)
    best = {e.expert: e.over_pool for e in one.experts}
    for expert in two.experts:
        assert expert.over_pool.high == pytest.approx(best[expert.expert].high, abs=1e-7)


def test_days_of_forecasting_widen_intervals_only_where_there_are_many():
    forecasts = crowd(events=60)
    few = compare_pools(dated(forecasts, np.arange(60) // 20), ["median"], repeats=1)
    assert (few.unit, few.units) == ("event", 60)
    closed = replace(dated(forecasts, np.arange(60) // 20), settled=np.ones(60, dtype=bool))
    found = compare_pools(closed, ["median"], repeats=1)
    assert (found.unit, found.units) == ("date", 3)
    assert row(found, "median").over_average.verdict == "too few events"


class TestVerdicts:
    @pytest.mark.parametrize(
        ("low", "high", "verdict"),
        [
            (0.1, 0.3, "better"), (-0.3, -0.1, "worse"), (-0.1, 0.1, "unclear"), (0.0, 0.0, "the same"),
            (NAN, NAN, "too few events"),
        ],
    )  # fmt: skip
    def test_of_a_difference(self, low, high, verdict):
        assert Difference((low + high) / 2, low, high).verdict == verdict

    def test_pools_that_do_not_differ_are_rarely_told_apart(self):
        """Of two halves of one crowd neither is better; with 95% intervals, few of 40 comparisons may say so."""
        wrong = 0
        for seed in range(40):
            found = compare_pools(panel(40, 2, seed=seed, signal=1.0, shared=0.0), ["average"], repeats=1)
            wrong += found.experts[0].over_pool.verdict == "better"
        assert wrong <= 5


class TestExperts:
    def test_an_expert_is_scored_on_what_it_answered(self):  # case 44
        forecasts = Forecasts.from_array([[0.9, 0.9], [NAN, 0.4], [NAN, 0.6]], [1, 0, 1], experts=["A", "B"])
        found = compare_pools(forecasts, ["average"], repeats=1)
        a, b = (next(e for e in found.experts if e.expert == name) for name in "AB")
        assert (a.events, b.events) == (1, 3)
        assert a.score == pytest.approx(1 + math.log2(0.9))
        assert b.score == pytest.approx(1 + np.mean(np.log2([0.9, 0.6, 0.6])))
        assert a.pool_score == pytest.approx(a.score)  # they tie on the question that both answered
        assert a.over_pool.mean == pytest.approx(0.0)
        assert a.over_pool.verdict == "too few events"

    def test_a_pool_is_scored_on_the_same_events(self):
        forecasts = crowd(missing=0.4)
        found = compare_pools(forecasts, ["gaussian", "linear"], repeats=1)
        assert found.reference == "gaussian"
        for expert in found.experts:
            column = forecasts.X[:, forecasts.experts.index(expert.expert)]
            answered = ~np.isnan(column)
            assert expert.events == answered.sum()
            assert expert.score == pytest.approx(np.nanmean(log_score(column, forecasts.outcomes, floor=1e-4)))
            assert expert.pool_score == pytest.approx(found.scores["gaussian"][answered].mean())
            assert expert.over_pool.mean == pytest.approx(expert.score - expert.pool_score)

    def test_hard_zeros_count_as_the_floor(self):  # case 3
        forecasts = Forecasts.from_array([[1, 0.6], [0, 0.4], [0, 0.5]], [1, 0, 1], experts=["K", "L"])
        found = compare_pools(forecasts, ["average"], repeats=1)
        hard, soft = (next(e for e in found.experts if e.expert == name) for name in "KL")
        assert (hard.score - 1) * math.log(2) == pytest.approx((2 * math.log(1 - 1e-4) + math.log(1e-4)) / 3)
        assert (hard.at_floor, soft.at_floor) == (1, 0)

    def test_experts_who_cannot_be_wrong_are_noted(self):  # case 79
        rng = np.random.default_rng(0)
        y = np.arange(20) % 2
        human = np.where(rng.permutation(20) < 15, y, 1 - y) * 0.4 + 0.3
        model = np.where(y == 1, 0.999, 0.001)
        found = compare_pools(Forecasts.from_array(np.stack([model, human], axis=1), y, experts=["M", "H"]))
        note = next(note for note in found.notes if note.code == "leakage")
        assert "'M'" in note.text
        assert "'H'" not in note.text
        once_wrong = model.copy()
        once_wrong[0] = 0.999
        for other in (once_wrong, np.where(y == 1, 0.97, 0.03)):
            found = compare_pools(Forecasts.from_array(np.stack([other, human], axis=1), y), ["median"])
            assert "leakage" not in codes(found)


@pytest.mark.parametrize(
    ("events", "experts", "missing", "topics"), [(60, 4, 0.2, None), (30, 40, 0.5, None), (60, 3, 0.0, 3)]
)
def test_what_fits_share_changes_no_answer(events, experts, missing, topics):
    """Answers without what else fits find out, and pools fitted once for each prior, against fits by themselves."""
    forecasts = crowd(events=events, experts=experts, missing=missing)
    if topics is not None:
        forecasts = replace(forecasts, topics=np.array([f"t{i % topics}" for i in range(events)]))
    found = compare_pools(forecasts, repeats=1)
    splits = random_splits(forecasts.outcomes, 5, np.random.default_rng([0, 0]), event_contents(forecasts))
    for split in splits:
        train, test = forecasts.select_events(split.train), forecasts.select_events(split.test)
        for name, answers in found.answers.items():
            alone = fit_pool(name, train).pool_forecasts(test)
            np.testing.assert_allclose(answers[split.test], alone, rtol=1e-12, atol=0, err_msg=name)


def test_progress_never_goes_back():
    seen = []
    compare_pools(crowd(events=60, experts=4), ["gaussian", "linear", "median"], repeats=1, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def ageless(forecasts):
    """The same without times of forecasts, so that what stands does not go stale."""
    plain = replace(forecasts, made=None, asked=None)
    if plain.history is None:
        return plain
    return replace(plain, history=replace(plain.history, forecasts=ageless(plain.history.forecasts)))


class TestOverLives:
    @staticmethod
    def revised(rng, events=24, experts=3):
        """A table of forecasts at hours 0 to 9 of events that close at hour 10."""
        rows = {name: [] for name in ("event", "expert", "probability", "time", "closes", "outcome")}
        for t in range(events):
            for i in range(experts):
                for at in sorted(set(rng.integers(0, 10, rng.integers(1, 4)).tolist())):
                    p = 1 / (1 + np.exp(-(2 * (t % 2) - 1 + rng.normal())))
                    values = (f"q{t}", f"e{i}", p, f"2025-03-01T{at:02}:00", "2025-03-01T10:00", t % 2)
                    for name, value in zip(rows, values, strict=True):
                        rows[name].append(value)
        return rows

    def test_scores_are_averages_over_the_hours(self):
        rows = self.revised(np.random.default_rng(2))
        f = ageless(op.read_forecasts(rows, duplicates="last", history=True))
        found = compare_pools(f, ["gaussian"], repeats=1, seed=3)
        at = [op.read_forecasts(rows, duplicates="last", as_of=f"2025-03-01T{hour:02}:30") for hour in range(10)]
        t = len(f.events)
        total, hours = {"gaussian": np.zeros(t), "average": np.zeros(t)}, np.zeros(t)
        expert, own, time = np.zeros(f.shape), np.zeros(f.shape), np.zeros(f.shape)
        for split in random_splits(f.outcomes, 5, np.random.default_rng([3, 0]), event_contents(f)):
            train = f.select_events(split.train)
            fits = {name: fit_pool(name, train) for name in total}
            for each in at:
                assert each.events == f.events
                x = each.by_experts(f.experts).X
                for k in split.test:
                    if np.isnan(x[k]).all():
                        continue
                    scores = {name: log_score(fit.pool(x[[k]]), f.outcomes[[k]])[0] for name, fit in fits.items()}
                    hours[k] += 1
                    for name, score in scores.items():
                        total[name][k] += score
                    for i in np.flatnonzero(~np.isnan(x[k])):
                        expert[k, i] += log_score(x[k, [i]], f.outcomes[[k]], floor=1e-4)[0]
                        own[k, i] += scores["gaussian"]
                        time[k, i] += 1
        for name, sums in total.items():
            assert found.scores[name] == pytest.approx(sums / hours)
            assert row(found, name).score == pytest.approx((sums / hours).mean())
        with np.errstate(invalid="ignore"):
            mean, beside = expert / time, own / time
        for each in found.experts:
            i = f.experts.index(each.expert)
            assert each.score == pytest.approx(np.nanmean(mean[:, i]))
            assert each.pool_score == pytest.approx(np.nanmean(beside[:, i]))
            assert each.coverage == pytest.approx((time[:, i] / hours).mean())
        assert found.time_averaged

    def test_events_without_a_known_end_are_not_scored(self):
        rows = self.revised(np.random.default_rng(4))
        rows["closes"] = [
            "" if event in {"q0", "q1"} else end for event, end in zip(rows["event"], rows["closes"], strict=True)
        ]
        f = op.read_forecasts(rows, duplicates="last", history=True)
        found = compare_pools(f, ["average"], repeats=1)
        assert (found.events, found.scored) == (24, 22)
        assert "no-life" in codes(found)

    def test_nothing_revised_is_scored_as_ever(self):
        rows = self.revised(np.random.default_rng(5))
        first = {}
        for k, pair in enumerate(zip(rows["event"], rows["expert"], strict=True)):
            first.setdefault(pair, k)
        once = {name: [values[k] for k in first.values()] for name, values in rows.items()}
        once["time"] = ["2025-03-01T00:00"] * len(once["time"])
        plain = compare_pools(ageless(op.read_forecasts(once)), ["gaussian", "median"], repeats=2)
        over = compare_pools(ageless(op.read_forecasts(once, history=True)), ["gaussian", "median"], repeats=2)
        for mine, other in zip(over.pools, plain.pools, strict=True):
            assert mine.score == pytest.approx(other.score)
            assert mine.over_average.low == pytest.approx(other.over_average.low, nan_ok=True)
        assert {each.coverage for each in over.experts} == {1.0}
