"""What changed between two pools: the parts of a move are those of the steps made by hand, and add up to it."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import opinionpool as op
from opinionpool.analysis.diff import STEPS
from opinionpool.errors import ArgumentError, ExpertError, LearningError
from opinionpool.streams.trained import TrainedPool

EXPERTS = ("ann", "bob", "cy", "dee")


def forecasts_of(rng, classes=2):
    """Forecasts on one event by some of the experts."""
    chosen = [name for name in EXPERTS if rng.random() < 0.8] or [EXPERTS[0]]
    if classes == 2:
        return {name: float(rng.uniform(0.02, 0.98)) for name in chosen}
    return {name: rng.dirichlet(np.ones(classes)) for name in chosen}


def start(rng, classes=2, resolved=8, still_open=5):
    stream = op.Stream(tuple(range(classes)))
    for t in range(resolved + still_open):
        stream.forecast(f"q{t}", forecasts_of(rng, classes))
        if t < resolved:
            stream.resolve(f"q{t}", int(rng.integers(classes)))
    return stream


def steps_by_hand(old, rng, classes=2):
    """The streams after each step, made with the methods that everybody uses."""
    corrected = old.copy()
    corrected.resolve("q0", (int(old.sample()[0].outcomes[old.sample()[0].events.index("q0")]) + 1) % classes)
    corrected.withdraw("q1")
    corrected.withdraw("q12")
    learned = corrected.copy()
    learned.resolve("q8", int(rng.integers(classes)), forecasts_of(rng, classes))
    final = learned.copy()
    final.forecast("q9", forecasts_of(rng, classes))
    final.forecast("new", {"eve": 0.3 if classes == 2 else np.full(classes, 1 / classes), **forecasts_of(rng, classes)})
    return corrected, learned, final


def answer(learned, event, forecasts):
    """A pool's answer on one of some events."""
    return learned.pool_forecasts(forecasts.select_events([forecasts.events.index(event)]))[0]


@settings(max_examples=6)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3]))
def test_parts_are_those_of_the_steps_and_add_up(seed, classes):
    rng = np.random.default_rng(seed)
    old = start(rng, classes)
    corrected, learned, final = steps_by_hand(old, rng, classes)
    found = op.diff(old, final)
    assert set(found.corrections) == {"q0"}
    assert set(found.gone) == {"q1", "q12"}
    assert (found.outcomes, found.opened) == (("q8",), ("new",))
    assert {move.event for move in found.moves} == {"q9", "q10", "q11"}
    before, after = old.forecasts(), final.forecasts()
    fits = [stream.learn() for stream in (old, corrected, learned, final)]
    for move in found.moves:
        k = () if move.label is None else move.label
        chain = [answer(fit, move.event, before)[k] for fit in fits]
        chain.append(answer(fits[-1], move.event, after)[k])
        expected = [*np.diff(chain), 0.0, 0.0]
        assert move.parts == pytest.approx(expected, abs=1e-10)
        assert (move.old, move.new) == pytest.approx((chain[0], chain[-1]), abs=1e-10)
        assert sum(move.parts) == pytest.approx(move.moved, abs=1e-14)
    sizes = {}
    for move in found.moves:
        sizes[move.event] = max(abs(move.moved), sizes.get(move.event, 0.0))
    assert list(sizes.values()) == sorted(sizes.values(), reverse=True)


def test_beliefs_come_last():
    stream = start(np.random.default_rng(2))
    forecasts, _ = stream.sample()
    old = TrainedPool.fit("gaussian", forecasts)
    new = TrainedPool.fit("gaussian", forecasts, beliefs=op.Beliefs(correlation=0.9))
    found = op.diff(old, new)
    assert found.moves
    for move in found.moves:
        assert move.parts[:4] == pytest.approx((0, 0, 0, 0), abs=1e-10)
        assert move.parts[4] == pytest.approx(move.moved, abs=1e-10)
    other = op.diff(old, TrainedPool.fit("average", forecasts))
    assert all(move.parts[4] == pytest.approx(move.moved, abs=1e-10) for move in other.moves)


def test_files_take_the_place_of_what_the_pools_keep():
    stream = start(np.random.default_rng(3))
    one = op.Forecasts.from_array([[0.4, 0.5], [0.1, 0.2]], events=["x", "y"], experts=["bob", "ann"])
    two = op.Forecasts.from_array([[0.6, 0.7], [0.1, 0.2]], [None, 1], events=["x", "y"], experts=["ann", "bob"])
    (move,) = op.diff(stream, stream, one, two).moves
    learned = stream.learn()
    assert move.old == pytest.approx(learned.pool_forecasts(one)[0])
    assert move.new == pytest.approx(learned.pool_forecasts(two)[0])
    assert move.parts == pytest.approx((0, 0, 0, move.moved, 0, 0))
    with pytest.raises(ArgumentError, match="give the forecasts of both"):
        op.diff(stream, stream, one)
    stranger = op.Forecasts.from_array([[0.6]], events=["x"], experts=["zoe"])
    with pytest.raises(ExpertError, match="'zoe' is unknown to the new pool"):
        op.diff(stream, stream, one, stranger)


def test_priors_of_events_belong_to_their_forecasts():
    stream = op.Stream(prior=0.4)
    for t, outcome in enumerate((1, 0, 1, 0)):
        stream.forecast(f"q{t}", {"ann": 0.3 + 0.1 * t, "bob": 0.6})
        stream.resolve(f"q{t}", outcome)
    one = op.Forecasts.from_array([[0.5, 0.6]], events=["x"], experts=["ann", "bob"], prior=0.2)
    two = op.Forecasts.from_array([[0.5, 0.6]], events=["x"], experts=["ann", "bob"], prior=0.3)
    (move,) = op.diff(stream, stream, one, two).moves
    learned = stream.learn()
    assert (move.old, move.new) == pytest.approx((learned.pool([0.5, 0.6], 0.2), learned.pool([0.5, 0.6], 0.3)))
    assert move.parts[3] == pytest.approx(move.moved)


def test_more_events_than_are_kept_are_not_told_apart():
    rng = np.random.default_rng(4)
    old = op.Stream(capacity=4)
    for t in range(12):
        old.forecast(f"q{t}", forecasts_of(rng))
        old.resolve(f"q{t}", t % 2)
    old.forecast("x", {"ann": 0.7, "bob": 0.4})
    new = old.copy()
    for t in range(12, 20):
        new.resolve(f"q{t}", t % 2, forecasts_of(rng))
    found = op.diff(old, new)
    (move,) = found.moves
    assert [note.code for note in found.notes] == ["not-split"]
    assert move.parts == pytest.approx((0, move.moved, 0, 0, 0, 0), abs=1e-10)


def test_pools_that_cannot_be_compared():
    x, y = [[0.8, 0.7], [0.2, 0.4], [0.6, 0.7], [0.3, 0.1]], [1, 0, 1, 0]
    fitted = op.GaussianPool().fit(x, y)
    found = op.diff(fitted, op.GaussianPool().fit(x, [1, 0, 1, 1]))
    assert found.moves == ()
    assert list(found.to_frame().columns[:3]) == ["expert", "weight_old", "weight"]
    forecasts = op.Forecasts.from_array([[0.6, 0.5]])
    with pytest.raises(LearningError, match="saved without what it learned from"):
        op.diff(fitted, fitted, forecasts, forecasts)
    with pytest.raises(ArgumentError, match="the old pool is about classes"):
        op.diff(fitted, start(np.random.default_rng(5), 3))


def test_experts_who_left_say_nothing_to_the_new_pool():
    one = op.Forecasts.from_array([[0.8, 0.7, 0.3], [0.6, 0.5, 0.9]], [1, None], experts=["a", "b", "c"])
    two = op.Forecasts.from_array([[0.8, 0.7], [0.6, 0.5]], [1, None], experts=["a", "b"])
    old, new = TrainedPool.fit("gaussian", one), TrainedPool.fit("gaussian", two)
    (move,) = op.diff(old, new).moves
    assert move.new == pytest.approx(new.learned.pool([0.6, 0.5]))
    assert sum(move.parts) == pytest.approx(move.moved, abs=1e-14)
    (back,) = op.diff(new, old).moves
    assert back.moved == pytest.approx(-move.moved)
    with pytest.raises(ArgumentError, match="no expert in common"):
        op.diff(old, TrainedPool.fit("gaussian", op.Forecasts.from_array([[0.8], [0.6]], [1, None], experts=["z"])))


def test_pools_and_files_in_the_wrong_order_are_noticed():
    old = start(np.random.default_rng(21))
    new = old.copy()
    new.resolve("q8", 1)
    new.resolve("q9", 0)
    assert not op.diff(old, new).notes
    (note,) = op.diff(new, old).notes
    assert note.code == "order"
    assert "learned from 10 resolved events, and the new one from 8" in note.text
    files = [
        op.Forecasts.from_array(
            [[0.4, 0.6]] * 10, [*[1, 0] * 4, *last], events=[f"q{i}" for i in range(10)], experts=EXPERTS[:2]
        )
        for last in ([None, None], [1, None])
    ]
    assert not op.diff(old, new, *files).notes
    (note,) = op.diff(old, new, *files[::-1]).notes
    assert "outcomes of 9 events, and those of the new one of 8: are the files in the wrong order?" in note.text


def dated(day, topic="x"):
    """Some forecasts, of which the first event was resolved on some day."""
    rng = np.random.default_rng(8)
    p = rng.uniform(0.1, 0.9, (12, 3))
    days = np.array(["2025-03-01"] * 4 + ["2025-03-05"] * 8, dtype="datetime64[us]")
    days[0] = np.datetime64(day)
    outcomes = [*(rng.random(10) < p[:10, 0]).astype(int).tolist(), None, None]
    forecasts = op.Forecasts.from_array(p, outcomes, times=days, topics=[topic, *("y" * 11)])
    return dataclasses.replace(forecasts, settled=np.ones(12, dtype=bool))


def test_topics_that_come_in_or_go_are_corrections():
    rng = np.random.default_rng(4)
    topics = np.array(["a", "b"] * 30)
    p = rng.uniform(0.2, 0.8, (60, 3))
    outcomes = [*((topics[:50] == "a") ^ (rng.random(50) < 0.1)).astype(int).tolist(), *[None] * 10]
    with_topics = op.Forecasts.from_array(p, outcomes, topics=topics)
    ends = [TrainedPool.fit("gaussian", each) for each in (dataclasses.replace(with_topics, topics=None), with_topics)]
    for old, new in (ends, ends[::-1]):
        moves = op.diff(old, new).moves
        assert abs(moves[0].moved) > 0.1
        for move in moves:
            parts = dict(zip(STEPS, move.parts, strict=True))
            assert parts.pop("corrections") == pytest.approx(move.moved, abs=1e-9)
            assert list(parts.values()) == pytest.approx([0.0] * 5, abs=1e-9)


def test_what_another_release_made_of_the_same_is_its_part():
    old = TrainedPool.fit("gaussian", dated("2025-03-01"))
    # As if an older release had learned less from the same events.
    other = TrainedPool.fit("gaussian", dated("2025-03-01"), beliefs=op.Beliefs(calibration=0.5))
    earlier = dataclasses.replace(other, stream=old.stream, options={}, release="0.0.9")
    found = op.diff(earlier, old)
    assert max(abs(move.moved) for move in found.moves) > 0.001
    for move in found.moves:
        parts = dict(zip(STEPS, move.parts, strict=True))
        assert parts["software"] == pytest.approx(move.moved, abs=1e-9)
        assert sum(move.parts) == pytest.approx(move.moved, abs=1e-12)
    back = op.diff(old, earlier).moves[0]
    assert back.parts[-1] == pytest.approx(back.moved, abs=1e-9)
