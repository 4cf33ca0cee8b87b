"""Streams against the whole: whatever the order, the batches, the corrections, learning gives what a batch gives."""

import doctest
import itertools
import math
from dataclasses import replace
from datetime import date
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from opinionpool.errors import ArgumentError, LearningError, OutcomeError, ProbabilityError, ShapeError
from opinionpool.forecasts import Forecasts
from opinionpool.learning.learn import learn
from opinionpool.pools.fit import fit_pool
from opinionpool.saving.files import MOST_BYTES
from opinionpool.streams.ledger import ENTRY
from opinionpool.streams.sample import CAPACITY, MOST_NUMBERS
from opinionpool.streams.stream import Stream
from opinionpool.streams.totals import MOST_MOMENTS
from opinionpool.tables.read import read_forecasts
from tests.panels import drawn

EXPERTS = ("ann", "bob", "cy", "dan")


def fed(f, stream=None, order=None, at=None):
    """A stream that was told everything event by event, in some order, outcomes after forecasts."""
    stream = Stream(f.classes) if stream is None else stream
    x = f.X
    for t in range(len(f.events)) if order is None else order:
        said = {name: x[t, i] for i, name in enumerate(f.experts)}
        stream.forecast(f.events[t], said, None if f.prior is None else f.prior[t])
        if f.outcomes[t] >= 0:
            stream.resolve(f.events[t], f.classes[f.outcomes[t]], at=None if at is None else at[t])
    return stream


def same(one, other, tolerance=1e-10):
    """Whether two learned panels are the same."""
    mine = [other.experts.index(name) for name in one.experts]
    assert one.structure == other.structure
    assert one.events == pytest.approx(other.events, abs=tolerance)
    assert one.counts == pytest.approx(other.counts[mine], abs=tolerance)
    assert one.present.tolist() == other.present[mine].tolist()
    assert one.weights == pytest.approx(other.weights[mine], abs=tolerance, rel=tolerance)
    assert one.panel.bias == pytest.approx(other.panel.bias[mine], abs=tolerance, rel=tolerance)
    if one.prior is not None:
        assert one.prior == pytest.approx(other.prior, abs=tolerance)


MOMENTS = [("full", 0.0), ("common", 0.0), ("common", 0.3), ("exchangeable", 0.3), ("independent", 0.3)]


@pytest.mark.parametrize(("structure", "missing"), [*MOMENTS, ("full", 0.3)])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_stream_learns_what_a_batch_learns(structure, missing, classes):
    f = drawn(80, missing=missing, classes=range(classes), unresolved=0.1)
    order = np.random.default_rng(1).permutation(80)
    learned = fed(f, order=order).learn(structure, None)
    same(learned, learn(f, structure=structure, beliefs=None), 1e-10 if structure != "full" or not missing else 1e-7)


class TestOpenEvents:
    """Their forecasts count, those that stand in the end, and once."""

    f = drawn(60, experts=4, seed=5, missing=0.2, unresolved=0.6)

    def test_they_change_the_answers(self):
        x, resolved = drawn(10, experts=4, seed=9).X, np.flatnonzero(self.f.resolved)
        alone, also = (fit_pool("gaussian", each).pool(x) for each in (self.f.select_events(resolved), self.f))
        assert np.abs(alone - also).max() > 1e-3

    def test_a_later_forecast_replaces_the_earlier(self):
        given = ~np.isnan(self.f.X).any(axis=1)
        whole = self.f.select_events(np.flatnonzero(given | self.f.resolved))
        stream = fed(whole, Stream(self.f.classes))
        revised = fed(whole, Stream(self.f.classes))
        for t in np.flatnonzero(given & ~self.f.resolved):
            revised.forecast(self.f.events[t], dict.fromkeys(self.f.experts, 0.37))
            revised.forecast(self.f.events[t], dict(zip(self.f.experts, self.f.X[t], strict=True)))
        same(revised.learn(), stream.learn(), 1e-12)


@pytest.mark.parametrize("structure", ["full", "common", "auto"])
def test_priors_of_the_events_own(structure):
    f = drawn(60, seed=2)
    prior = np.random.default_rng(0).uniform(0.2, 0.8, 60)
    with_priors = Forecasts.from_array(f.X, list(f.outcomes), events=f.events, experts=f.experts, prior=prior)
    beliefs = "default" if structure == "auto" else None
    same(fed(with_priors).learn(structure, beliefs), learn(with_priors, structure=structure, beliefs=beliefs), 1e-8)
    some = prior.copy()
    some[::3] = np.nan
    blanks = Forecasts.from_array(f.X, list(f.outcomes), events=f.events, experts=f.experts, prior=some)
    stream = Stream(prior=0.3)
    stream.add(blanks)
    same(stream.learn(structure, beliefs), learn(blanks, structure=structure, beliefs=beliefs, prior=0.3), 1e-8)
    stream = Stream()
    with pytest.raises(ProbabilityError, match="fills the blanks"):
        stream.add(blanks)
    assert not stream.count
    assert not stream.experts


def test_floors_follow_from_a_prior_that_is_known_late():
    """Rare events have a floor below 1e-4, which moments with the usual floor have lost: rows are needed."""
    rng = np.random.default_rng(0)
    q = rng.uniform(1e-6, 1e-3, (400, 2))
    y = (np.arange(400) == 7).astype(int) + (np.arange(400) == 9)
    q[y == 1] = 0.2
    q[9, 0] = 0.1
    f = Forecasts.from_array(q, y.tolist(), experts=EXPERTS[:2])
    same(fed(f).learn("common", None), learn(f, structure="common", beliefs=None))
    stream = Stream(prior=0.001)
    stream.add(f)
    same(stream.learn("common", None), learn(f, structure="common", beliefs=None, prior=0.001))


class TestEvents:
    def test_the_fingerprint_is_that_of_all_there_is(self):
        def made(close="2025-03-01", topic="x", time="2025-02-01", p=0.4, group=None):
            stream = Stream()
            stream.forecast("a", {"ann": 0.8, "bob": 0.3}, topic=topic, closes=close, time="2025-01-01", group=group)
            stream.resolve("a", 1)
            stream.forecast("b", {"ann": p}, time=time)
            return stream

        same_as, others = made(), [made("2025-03-02"), made(topic="y"), made(time="2025-02-02"), made(p=0.5)]
        prints = [stream.fingerprint for stream in (same_as, *others, made(group="g"))]
        assert len(set(prints)) == len(prints)
        assert made().fingerprint == prints[0]
        reverse = Stream()
        reverse.forecast("b", {"ann": 0.4}, time="2025-02-01")
        for name, value in (("bob", 0.3), ("ann", 0.8)):
            reverse.forecast("a", {name: value}, topic="x", closes="2025-03-01", time="2025-01-01")
        reverse.resolve("a", 1)
        assert reverse.fingerprint == prints[0]

    @pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
    def test_forecasts_may_arrive_in_any_order_of_their_times(self, order):
        table = pd.DataFrame(
            [("a", "ann", p, f"2025-01-0{day}") for p, day in ((0.2, 1), (0.5, 3), (0.7, 5))]
            + [("a", "bob", 0.4, "2025-01-02")],
            columns=["event", "expert", "probability", "time"],
        )
        expected = read_forecasts(table, duplicates="last")
        stream = Stream()
        stream.forecast("a", {"bob": 0.4}, time="2025-01-02")
        for i in order:
            row = table.iloc[i]
            stream.forecast("a", {"ann": row.probability}, time=row.time)
        found = stream.forecasts()
        cells = [found.experts.index(name) for name in expected.experts]
        np.testing.assert_array_equal(found.X[:, cells], expected.X)
        ann = [each.expert_index == each.experts.index("ann") for each in (found, expected)]
        assert found.made[ann[0]] == expected.made[ann[1]]

    def test_what_is_made_after_an_event_ended_is_no_forecast(self):
        stream = Stream()
        stream.forecast("a", {"ann": 0.5, "bob": 0.6}, time="2025-01-10T12:00", closes="2025-01-10")
        before = stream.fingerprint
        for time, closes in (("2025-01-11", None), ("2025-01-12", "2025-01-11"), ("2025-01-09", "2025-01-08")):
            with pytest.raises(ArgumentError, match=r"'a' by ('ann', )?'bob' were made after it ended"):
                stream.forecast("a", {"bob": 0.9}, time=time, closes=closes)
        with pytest.raises(ArgumentError, match=r"by 'ann', 'bob' were made after it ended \(2025-01-09\)"):
            stream.resolve("a", 1, resolved_at="2025-01-09")
        assert stream.fingerprint == before
        stream.forecast("a", {"ann": None, "bob": None})
        stream.resolve("a", 1, resolved_at="2025-01-09")
        assert stream.count == 1

    def test_weights_are_frequencies_and_are_corrected(self):
        f = drawn(30)
        stream = fed(f)
        stream.resolve("q5", int(f.outcomes[f.events.index("q5")]), weight=3.0)
        weight = np.where(np.array(f.events) == "q5", 3.0, 1.0)
        same(stream.learn("full", None), learn(f, structure="full", beliefs=None, sample_weight=weight))

    def test_withdrawn_events_are_gone(self):
        stream = fed(drawn(10))
        stream.forecast("x", {"eve": 0.2})
        assert stream.learn().present.tolist() == [True] * 4
        stream.withdraw("x")
        assert stream.learn().present.tolist() == [True] * 3 + [False]
        with pytest.raises(ArgumentError, match="not among the open ones"):
            stream.withdraw("x")

    def test_what_is_said_afterwards_is_no_forecast(self):
        stream = fed(drawn(5))
        with pytest.raises(ArgumentError, match=r"resolve\(event, None\)"):
            stream.forecast("q1", {"ann": 0.99})
        with pytest.raises(ArgumentError, match="with other forecasts"):
            stream.resolve("q1", 1, {"ann": 0.99})
        assert "stranger" not in stream.experts
        with pytest.raises(ArgumentError, match="with other forecasts"):
            stream.resolve("q1", 1, {"stranger": 0.99})
        assert "stranger" not in stream.experts

    def test_events_without_forecasts_count_in_laplaces_estimate(self):
        stream = fed(drawn(20))
        stream.resolve("x", 1, {})
        f = drawn(20)
        x = np.vstack([f.X, np.full((1, 3), np.nan)])
        batch = Forecasts.from_array(x, [*f.outcomes.tolist(), 1], events=[*f.events, "x"], experts=f.experts)
        same(stream.learn("common", None), learn(batch, structure="common", beliefs=None))
        same(stream.learn(), learn(batch), 1e-8)


class TestBatches:
    def test_a_file_corrects_outcomes(self):
        f = drawn(50)
        stream = Stream(capacity=4)
        stream.add(f)
        outcomes = f.outcomes.tolist()
        outcomes[7] = 1 - outcomes[7]
        fixed = Forecasts.from_array(f.X, outcomes, events=f.events, experts=f.experts)
        notes = stream.add(fixed)
        assert {note.code: note.count for note in notes} == {"known": 49, "corrected": 1}
        same(stream.learn("full", None), learn(fixed, structure="full", beliefs=None))

    def test_forecasts_that_come_too_late_are_told(self):
        f = drawn(20)
        stream = Stream()
        stream.add(f)
        x = f.X.copy()
        x[3, 0] = 0.999
        notes = stream.add(Forecasts.from_array(x, f.outcomes.tolist(), events=f.events, experts=f.experts))
        assert {note.code: note.count for note in notes} == {"known": 20, "late-forecasts": 1}
        same(stream.learn("full", None), learn(f, structure="full", beliefs=None))

    def test_a_table_corrects_topics_groups_and_dates(self):
        f = drawn(40)
        days = np.datetime64("2025-01-01", "us") + np.arange(40) * np.timedelta64(1, "D")
        known = replace(f, topics=np.array(["a", "b"] * 20), times=days, settled=np.ones(40, dtype=bool))
        other = replace(known, topics=np.array([*["c"] * 20, *["a", "b"] * 10]), times=np.sort(np.roll(days, 3)))
        for before, count in ((f, 40), (known, 40 - sum(known.topics == other.topics))):
            stream = Stream()
            stream.add(before, whole=True)
            notes = stream.add(other, whole=True)
            assert {note.code: note.count for note in notes}.keys() == {"known", "redescribed"}
            assert notes[-1].count >= count
            same(stream.learn(), learn(other))
            assert {note.code for note in stream.add(other, whole=True)} == {"known"}
            # A table without topics and dates says nothing of them.
            assert {note.code for note in stream.add(f, whole=True)} == {"known"}
            same(stream.learn(), learn(other))

    def test_all_or_nothing(self):
        f = drawn(40)
        stream = Stream(capacity=2)
        stream.add(f)
        before = stream.fingerprint
        x = np.column_stack([f.X, np.full(40, 0.5)])
        fixed = Forecasts.from_array(x, (1 - f.outcomes).tolist(), events=f.events, experts=EXPERTS)
        with pytest.raises(ArgumentError, match="no longer in the sample"):
            stream.add(fixed)
        gone = next(event for event in f.events if event not in stream.sample()[0].events)
        with pytest.raises(ArgumentError, match="must come with them"):
            stream.resolve(gone, 1 - int(f.outcomes[f.events.index(gone)]))
        assert stream.fingerprint == before
        assert stream.experts == f.experts
        same(stream.learn("full", None), learn(f, structure="full", beliefs=None))


class TestRows:
    def test_experts_join_and_leave(self):
        f = drawn(60, experts=4)
        x = f.X.copy()
        x[:30, 3] = np.nan
        x[30:, 1] = np.nan
        stream = Stream()
        stream.add_rows(x[:30, :3], f.outcomes[:30], experts=EXPERTS[:3])
        stream.add_rows(x[30:][:, [3, 0, 2]], f.outcomes[30:], experts=["dan", "ann", "cy"])
        batch = Forecasts.from_array(x, f.outcomes.tolist(), experts=EXPERTS)
        same(stream.learn("common", None), learn(batch, structure="common", beliefs=None))
        same(stream.learn(), learn(batch), 1e-8)

    @pytest.mark.parametrize("wrong", [0.7, 2, -2, np.nan, None, "1", np.inf])
    def test_outcomes_are_positions_and_not_rounded_to_them(self, wrong):
        stream = Stream()
        with pytest.raises(ArgumentError, match="outcome 1 is"):
            stream.add_rows([[0.3], [0.6]], np.array([0, wrong], dtype=object))
        assert stream.count == 0
        stream.add_rows([[0.3], [0.6], [0.5]], [0.0, 1.0, -1.0])
        assert stream.count == 2


class TestSample:
    @given(st.integers(0, 10_000), st.integers(1, 6))
    @settings(max_examples=40)
    def test_order_batches_and_merging_play_no_part(self, seed, parts):
        f = drawn(60, seed=seed % 7, missing=0.1)
        rng = np.random.default_rng(seed)
        whole = Stream(capacity=10)
        whole.add(f)
        streams = [Stream(capacity=10) for _ in range(parts)]
        for t in rng.permutation(60):
            streams[rng.integers(parts)].add(f.select_events([int(t)]))
        together = Stream(capacity=10)
        for stream in streams:
            together = together.merge(stream) if rng.random() < 0.5 else stream.merge(together)
        (mine, w), (theirs, v) = together.sample(), whole.sample()
        assert mine.events == theirs.events
        assert w == pytest.approx(v)
        assert together.fingerprint == whole.fingerprint
        same(together.learn("common", None), whole.learn("common", None))

    def test_weights_stand_for_all_events_of_each_outcome(self):
        f = drawn(300, seed=1)
        stream = Stream(capacity=40)
        stream.add(f)
        kept, weight = stream.sample()
        assert len(kept.events) == 40
        for outcome in (0, 1):
            mine = kept.outcomes == outcome
            assert mine.sum() == 20
            assert weight[mine].sum() == pytest.approx((f.outcomes == outcome).sum())
        assert {note.code for note in stream.learn().notes} >= {"sampled"}
        assert stream.learn().events == pytest.approx(np.bincount(f.outcomes))

    def test_frequencies_are_sampled_without_bias(self):
        """The mean of a forecast over samples with many seeds is that over all events with their frequencies."""
        f = drawn(200, experts=1, seed=4)
        weight = np.random.default_rng(0).integers(1, 9, 200).astype(float)
        means = []
        for seed in range(150):
            stream = Stream(capacity=60, seed=seed)
            stream.add(f, weight)
            kept, w = stream.sample()
            means.append(float(w @ kept.X[:, 0] / w.sum()))
        true = float(weight @ f.X[:, 0] / weight.sum())
        error = np.std(means) / math.sqrt(len(means))
        assert abs(np.mean(means) - true) < 3.5 * error
        assert error < 0.005

    def test_rows_are_sampled_as_events_are(self):
        f = drawn(500, seed=2)
        one, many = Stream(capacity=50), Stream(capacity=50)
        one.add_rows(f.X, f.outcomes)
        for t in range(0, 500, 7):
            many.add_rows(f.X[t : t + 7], f.outcomes[t : t + 7])
        backwards, named = Stream(capacity=50), Stream(capacity=50)
        for t in reversed(range(500)):
            backwards.add_rows(f.X[[t]][:, ::-1], f.outcomes[[t]], experts=["x", "y", "z"])
        named.add(f)
        for stream in (many, backwards, named):
            kept = stream.sample()[0]
            assert sorted(map(sorted, kept.X.tolist())) == sorted(map(sorted, one.sample()[0].X.tolist()))

    def test_copies_of_an_event_are_drawn_each_by_itself(self):
        """Of 3,000 events 1,000 are the same: their share of the sample is as in the stream, in whatever blocks."""
        rng = np.random.default_rng(0)
        q, y = rng.random((3000, 2)), rng.integers(0, 2, 3000)
        q[::3], y[::3] = 0.5, 1
        f = Forecasts.from_array(q, y.tolist(), events=[f"q{t}" for t in range(3000)])
        streams = [Stream(capacity=600) for _ in range(3)]
        streams[0].add(f)
        streams[1].add_rows(q, y)
        for rows in np.split(np.arange(3000), 30):
            streams[2].add_rows(q[rows], y[rows])
        for stream in streams:
            kept = stream.sample()[0]
            assert np.mean(kept.X[kept.outcomes == 1] == 0.5) == pytest.approx(0.5, abs=0.09)

    def test_forecasts_are_bounded_as_events_are(self, monkeypatch):
        monkeypatch.setattr("opinionpool.streams.sample.MOST_NUMBERS", 60)
        f = drawn(100)
        stream, backwards = Stream(), Stream()
        stream.add(f)
        for t in reversed(range(100)):
            backwards.add(f.select_events([t]))
        assert len(stream.sample()[0].events) == 20
        assert stream.sample()[0].events == backwards.sample()[0].events

    def test_too_many_sets_of_experts_leave_the_sample(self, monkeypatch):
        monkeypatch.setattr("opinionpool.streams.totals.MOST_MOMENTS", 100)
        f = drawn(60, experts=4, missing=0.4)
        same(fed(f).learn("common", None), learn(f, structure="common", beliefs=None))


class TestForgetting:
    @pytest.mark.parametrize("structure", ["full", "common", "auto"])
    def test_older_events_count_less(self, structure):
        f = drawn(90, seed=5)
        beliefs = "default" if structure == "auto" else None
        learned = fed(f, Stream(half_life=20.0)).learn(structure, beliefs)
        weight = 0.5 ** ((89 - np.arange(90)) / 20.0)
        same(learned, learn(f, structure=structure, beliefs=beliefs, sample_weight=weight), 1e-8)

    def test_times_decide_and_not_the_order(self):
        f = drawn(90, seed=6)
        days = np.random.default_rng(0).uniform(0, 900, 90)
        weight = 0.5 ** ((days.max() - days) / 90.0)
        one = fed(f, Stream(half_life=90.0), at=days)
        two = [Stream(half_life=90.0), Stream(half_life=90.0)]
        for t in reversed(range(90)):
            two[t % 2].add(f.select_events([t]), at=[days[t]])
        for stream in (one, two[0].merge(two[1]), two[1].merge(two[0])):
            same(stream.learn("common", None), learn(f, structure="common", beliefs=None, sample_weight=weight), 1e-9)

    @pytest.mark.parametrize("at", [None, np.arange(60.0)])
    def test_corrections_keep_their_time(self, at):
        f = drawn(60, seed=7)
        outcomes = f.outcomes.tolist()
        wrong = [1 - y if t in {5, 50} else y for t, y in enumerate(outcomes)]
        stream = fed(Forecasts.from_array(f.X, wrong, events=f.events, experts=f.experts), Stream(half_life=15), at=at)
        for t in (5, 50):
            stream.resolve(f.events[t], outcomes[t])
        weight = 0.5 ** ((59 - np.arange(60)) / 15.0)
        same(stream.learn("full", None), learn(f, structure="full", beliefs=None, sample_weight=weight), 1e-9)

    def test_a_long_past_does_not_overflow(self):
        f = drawn(60, seed=8)
        stream = fed(f, Stream(half_life=1.0), at=np.arange(60) * 1000.0)
        assert np.isfinite(stream.learn().weights).all()
        assert stream.learn().events.sum() == pytest.approx(1.0)

    def test_recent_events_fill_the_sample(self):
        f = drawn(2000, seed=9)
        stream = Stream(half_life=50.0, capacity=60)
        stream.add(f)
        place = {event: t for t, event in enumerate(f.events)}
        ages = [1999 - place[event] for event in stream.sample()[0].events]
        assert np.median(ages) < 150

    @pytest.mark.parametrize(
        "time",
        [
            np.nan, np.inf, 1e308, "2024-01-05", True, date(2024, 1, 5), np.datetime64("2024-01-05"),
            np.datetime64("NaT", "us"),
        ],
    )  # fmt: skip
    def test_times_are_numbers(self, time):
        stream = Stream(half_life=30.0)
        stream.resolve("a", 1, {"ann": 0.7}, at=3.0)
        with pytest.raises(ArgumentError, match="times of resolution"):
            stream.resolve("b", 1, {"ann": 0.7, "zed": 0.6}, at=time)
        with pytest.raises(ArgumentError, match="times of resolution"):
            stream.add_rows([[0.7]], [1], at=[time], experts=["zed"])
        assert (stream.count, stream.experts) == (1, ("ann",))

    def test_nothing_is_left_of_what_is_refused(self):
        stream = fed(drawn(5), Stream(half_life=5))
        for other, at in ((stream, 3.0), (Stream(), 3.0)):
            before = other.experts
            with pytest.raises(ArgumentError, match=r"at=|half_life"):
                other.resolve("y", 1, {"zed": 0.3}, at=at)
            assert other.experts == before

    def test_counting_streams_cannot_be_merged(self):
        one, two = fed(drawn(5), Stream(half_life=5)), Stream(half_life=5)
        two.resolve("x", 1, {"ann": 0.3})
        with pytest.raises(ArgumentError, match="give at="):
            one.merge(two)
        assert one.merge(Stream(half_life=5)).count == 5
        with pytest.raises(ArgumentError, match="or for none"):
            one.resolve("y", 1, {"ann": 0.3}, at=3.0)


class TestMerging:
    def test_an_event_counts_once(self):
        f = drawn(10)
        with pytest.raises(ArgumentError, match="none may count twice"):
            fed(f).merge(fed(f.select_events([3])))

    def test_half_an_event_is_refused(self):
        one, two = Stream(), Stream()
        one.forecast("x", {"ann": 0.4})
        two.resolve("x", 1, {"bob": 0.4})
        with pytest.raises(ArgumentError, match="open in the other"):
            one.merge(two)

    def test_other_settings_are_refused(self):
        for other in (Stream(prior=0.2), Stream(capacity=7), Stream((0, 1, 2)), Stream(floor=0.01), Stream(seed=1)):
            with pytest.raises(ArgumentError, match="can be merged if"):
                Stream().merge(other)

    def test_open_events_are_put_together(self):
        one, two = Stream(), Stream()
        one.forecast("x", {"ann": 0.4})
        two.forecast("x", {"bob": 0.6})
        assert one.merge(two).forecasts().X.tolist() == [[0.4, 0.6]]


# So few that they are met again and again.
EVENTS = st.integers(0, 9).map("q{}".format)
SAID = st.dictionaries(st.sampled_from(EXPERTS), st.floats(0.01, 0.99), min_size=1)


class Machine(RuleBasedStateMachine):
    """Events, revisions, corrections and joins in any order, against a dictionary of what is true in the end."""

    @initialize(
        capacity=st.sampled_from([4, 20_000]),
        resolved=st.lists(st.tuples(SAID, st.integers(0, 1), st.booleans()), min_size=4, max_size=8),
    )
    def start(self, capacity, resolved):
        self.stream = Stream(capacity=capacity)
        self.other = Stream(capacity=capacity)
        self.latest, self.happened, self.where = {}, {}, {}
        for i, (said, outcome, side) in enumerate(resolved):
            self.forecast(f"q{i}", said, side)
            self.resolve(f"q{i}", outcome)

    def _of(self, event):
        return self.other if self.where.get(event) else self.stream

    @rule(event=EVENTS, said=SAID, side=st.booleans())
    def forecast(self, event, said, side):
        if event in self.happened:
            with pytest.raises(ArgumentError):
                self._of(event).forecast(event, said)
            return
        self.where.setdefault(event, side)
        self._of(event).forecast(event, said)
        self.latest.setdefault(event, {}).update(said)

    @rule(event=EVENTS, expert=st.sampled_from(EXPERTS))
    def withdraw(self, event, expert):
        if event in self.latest and event not in self.happened and expert in self.latest[event]:
            self._of(event).forecast(event, {expert: None})
            del self.latest[event][expert]

    @rule(event=EVENTS, outcome=st.integers(0, 1))
    def resolve(self, event, outcome):
        if event in self.latest:
            corrected = event in self.happened
            self._of(event).resolve(event, outcome, self.latest[event] if corrected else None)
            self.happened[event] = outcome

    @rule(event=EVENTS)
    def take_back(self, event):
        if event in self.happened:
            self._of(event).resolve(event, None, self.latest[event])
            del self.happened[event]

    @rule(event=EVENTS)
    def again(self, event):
        if event in self.happened:
            names = list(self.latest[event]) or ["ann"]
            values = [self.latest[event].get(name, math.nan) for name in names]
            f = Forecasts.from_array([values], [self.happened[event]], events=[event], experts=names)
            (note,) = self._of(event).add(f)
            assert note.code == "known"

    @rule()
    def merge(self):
        self.stream = self.stream.merge(self.other)
        self.other = Stream(capacity=self.stream.capacity)
        self.where = dict.fromkeys(self.where, False)

    @invariant()
    @precondition(lambda self: len(self.happened) > 3)
    def as_from_the_whole(self):
        together = self.stream.merge(self.other)
        assert together.count == len(self.happened)
        assert sorted(together.open) == sorted(set(self.latest) - set(self.happened))
        events = sorted(self.latest)
        x = [[self.latest[event].get(name, math.nan) for name in EXPERTS] for event in events]
        outcomes = [self.happened.get(event) for event in events]
        whole = Stream(capacity=self.stream.capacity)
        whole.add(Forecasts.from_array(x, outcomes, events=events, experts=EXPERTS))
        assert together.fingerprint == whole.fingerprint
        mine, theirs = together._settled().totals, whole._settled().totals
        assert mine.number.tolist() == theirs.number.tolist()
        order = [mine.experts.index(name) for name in EXPERTS if name in mine.experts]
        assert mine.cells[order].tolist() == [int(theirs.cells[i]) for i, e in enumerate(EXPERTS) if e in mine.experts]
        batch = Forecasts.from_array(x, outcomes, events=events, experts=EXPERTS)
        try:
            expected = learn(batch, structure="independent", beliefs=None)
        except LearningError:
            return
        found = together.learn("independent", None)
        order = [EXPERTS.index(name) for name in found.experts]
        assert found.weights == pytest.approx(expected.weights[order], rel=1e-6, abs=1e-8)


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=20, stateful_step_count=30)


def test_the_page_on_streams(root):
    page = root / "docs" / "streams.md"
    done = doctest.testfile(str(page), module_relative=False)
    assert done.attempted > 8
    assert done.failed == 0
    text = page.read_text(encoding="utf-8")
    assert f"{CAPACITY:,} / K by default" in text
    assert f"{MOST_NUMBERS:,} probabilities" in text
    assert f"{MOST_MOMENTS * 8 // 2**20} MB" in text
    assert f"up to {MOST_BYTES // 2**20} MB" in text
    assert f"{ENTRY.itemsize + 8} bytes" in text


def test_a_sample_is_no_surer_than_it_may_be():
    """From 40 of 4,000 events the weights are as uncertain as from 40, and the outcomes as frequent as in all."""
    f = drawn(4000, seed=11)
    y = np.where(np.random.default_rng(0).random(4000) < 0.5, 0, f.outcomes)
    f = replace(f, outcomes=y)
    few, all_of_them = Stream(capacity=40), Stream()
    few.add(f)
    all_of_them.add(f)
    one, whole = few.learn(), all_of_them.learn()
    errors = [learned.posterior.weight_sd(3) for learned in (one, whole)]
    assert (errors[0] > 2 * errors[1]).all()
    assert one.prior == pytest.approx(whole.prior)
    assert one.events.tolist() == whole.events.tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((partial(Stream, **{name: x}), f"{name} must be a")
          for name, x in (("classes", 3), ("capacity", "x"), ("seed", "x"), ("floor", "x"), ("pool_floor", None))),
        *((partial(Stream, half_life=x), "half-life") for x in ("x", True, 0, -1.0, np.nan, np.inf)),
        *((partial(Stream, [label, 1]), "no classes") for label in (None, np.nan)),
        *((partial(Stream().forecast, "x", given), "by the names of experts") for given in ([0.3], 0.3, "ann", None)),
        *((partial(Stream().merge, x), "merged with another one") for x in (None, [[0.3]], {"ann": 0.3})),
        *((partial(Stream().add, x), r"op\.Forecasts") for x in (None, [[0.3]], {"ann": 0.3})),
    ],
)  # fmt: skip
def test_arguments_of_another_type_are_named(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_plain_numbers_by_known_experts_are_taken_as_any_others():
    """The short way of an event is the long one: of other types, in another order, with arguments that say nothing."""
    rng = np.random.default_rng(4)
    short, long = Stream(capacity=60), Stream(capacity=60)
    for i in range(200):
        q = dict(zip("abcde", rng.uniform(size=5).tolist(), strict=True))
        for stream in (short, long):
            stream.forecast(f"q{i}", q if stream is short else {k: np.float32(0.5) for k in q})
        long.forecast(f"q{i}", {k: np.float64(q[k]) for k in reversed("abcde")}, topic="")
        short.resolve(f"q{i}", i % 2)
        long.resolve(f"q{i}", np.int64(i % 2), {}, weight=1.0, group="")
    assert short.fingerprint == long.fingerprint
    assert short.sample()[0].events == long.sample()[0].events
    assert np.array_equal(short.events, long.events)
    for pool in ("gaussian", "log"):
        x = rng.uniform(size=(3, 5))
        assert short.fit(pool).pool(x) == pytest.approx(long.fit(pool).pool(x), abs=1e-12)


def test_experts_who_join_in_a_change_that_fails_leave_nothing():
    stream = Stream()
    stream.forecast("q", {"ann": 0.3})
    with pytest.raises(ProbabilityError):
        stream.resolve("r", 1, {"zoe": 0.2}, prior=0.4)
    stream.resolve("r", 1, {"yan": 0.2})
    stream.resolve("q", 0, {"zoe": 0.6})
    other = Stream()
    other.resolve("r", 1, {"yan": 0.2})
    other.resolve("q", 0, {"zoe": 0.6, "ann": 0.3})
    assert stream.experts == ("ann", "yan", "zoe")
    assert stream.fingerprint == other.fingerprint


def test_arrays_that_are_used_again_were_copied():
    stream, alike, buffer, weight = Stream(), Stream(), np.empty((30, 3)), np.empty(30)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        q, y, w = rng.random((30, 3)), rng.integers(0, 2, 30), rng.integers(1, 5, 30).astype(float)
        buffer[:], weight[:] = q, w
        stream.add_rows(buffer, y, weight)
        alike.add_rows(q, y, w)
    np.testing.assert_array_equal(stream.events, alike.events)
    np.testing.assert_array_equal(stream.learn().weights, alike.learn().weights)


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda stream: stream.resolve("x", 1), ArgumentError, "no forecast on event 'x' is known"),
        (lambda stream: stream.resolve("x", "Yes", {}), OutcomeError, "'Yes'"),
        (lambda stream: stream.forecast("x", {"ann": [0.3, 0.3, 0.4]}), ShapeError, "one probability"),
        (lambda stream: stream.resolve("x", 1, {}, weight=0), ArgumentError, "above 0"),
        (lambda stream: stream.resolve("x", 1, {}, at=3), ArgumentError, "half_life"),
        (lambda stream: stream.learn(), LearningError, "nothing has been added"),
        (lambda stream: stream.add(drawn(3, classes="abc")), ArgumentError, "classes"),
        (lambda stream: stream.add_rows([[0.5], [0.4]], [1]), ShapeError, "do not fit"),
        (lambda stream: stream.add_rows([[0.5]], [2]), ArgumentError, "positions"),
        (lambda stream: stream.add_rows([[0.5], [0.4]], [1, 0], prior=0.3), ShapeError, "as many priors"),
        (lambda stream: stream.add_rows([[0.5]], [1], experts=["a", "b"]), ShapeError, "names"),
    ],
)
def test_what_is_refused_leaves_nothing(call, error, told):
    stream = Stream()
    with pytest.raises(error, match=told):
        call(stream)
    assert (stream.count, stream.experts, stream.open) == (0, (), ())


def test_forecasts_on_three_classes_are_probabilities_of_three():
    stream = Stream("abc")
    with pytest.raises(ShapeError, match="3 probabilities"):
        stream.forecast("x", {"ann": 0.3})
    with pytest.raises(ProbabilityError):
        stream.forecast("x", {"ann": [0.3, 0.3, 0.1]})
    assert (stream.count, stream.experts, stream.open) == (0, (), ())
