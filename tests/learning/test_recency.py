"""How fast forecasts go stale: beside formulas, at every door, in simulation; nothing counts before it was made."""

from dataclasses import replace

import numpy as np
import pytest

import opinionpool as op
from opinionpool.learning.recency import Recency, learn_recency
from opinionpool.logodds import expit, logit

NOW = np.datetime64("2025-06-01", "us")


def drawn(rng, events, half_life, experts=4, mean=30.0):
    """What experts knew when they forecast, of what they would know when the event is answered."""
    y = rng.random(events) < 0.5
    age = rng.exponential(mean, (events, experts)).round(6)
    known = 1.5 * 0.5 ** (age / half_life)
    noise = np.sqrt(2.0 * known) * rng.normal(size=known.shape)
    q = expit(np.where(y, 1.0, -1.0)[:, None] * known + noise)
    made = NOW - np.round(age * 86_400e6).astype("timedelta64[us]")
    return q.round(12), y.astype(int), made


def container(q, y, made):
    forecasts = op.Forecasts.from_array(q, y, events=[f"e{t}" for t in range(len(q))])
    present = ~np.isnan(q)
    return replace(forecasts, made=made[present], asked=np.full(len(q), NOW))


def aged(event, contrast, age, events, half_life, *, absolute, correlation=0.6):
    """At one half-life."""
    sure = Recency(np.array([half_life]), np.array([absolute]), np.array([correlation]), np.ones((1, 1)))
    return sure.contrasts(event, contrast, age, events)


def test_a_forecast_that_has_gone_stale_counts_like_one_that_was_never_made():
    # Three experts, one fresh: as the exchangeable panel pools one alone.
    contrast, age = np.array([[1.2], [-0.7], [0.4]]), np.array([0.0, 1e4, 1e4])
    found = aged(np.zeros(3, dtype=int), contrast, age, 1, 10.0, absolute=False)
    three = op.Panel.exchangeable(3, correlation=0.6).weights
    one = op.Panel.exchangeable(1).weights
    np.testing.assert_allclose(three @ found, one * 1.2)


def test_between_none_and_all_of_it():
    event, contrast = np.array([0, 0, 1]), np.array([[1.0], [2.0], [3.0]])
    fresh = aged(event, contrast, np.zeros(3), 2, 5.0, absolute=True)
    np.testing.assert_allclose(fresh, contrast)
    # Alone on its event, a forecast is the newest; by age at the answer it has half of its contrast after a half-life.
    late = aged(event, contrast, np.array([5.0, 5.0, 5.0]), 2, 5.0, absolute=False)
    np.testing.assert_allclose(late, contrast)
    late = aged(event, contrast, np.array([5.0, 5.0, 5.0]), 2, 5.0, absolute=True)
    np.testing.assert_allclose(late, contrast / 2)
    # An unknown age counts as the newest.
    unknown = aged(event, contrast, np.array([np.nan, 7.0, np.nan]), 2, 5.0, absolute=False)
    np.testing.assert_allclose(unknown, aged(event, contrast, np.array([7.0, 7.0, 0.0]), 2, 5.0, absolute=False))


def test_steady_forecasts_stay_as_they_are():
    rng = np.random.default_rng(1)
    q, y, made = drawn(rng, 50, np.inf)
    forecasts = container(q, y, made)
    steady = Recency(np.array([np.inf]), np.array([False]), np.array([0.6]), np.ones((1, 1)))
    kept = steady.forecasts(forecasts, np.full((50, 2), 0.5))
    np.testing.assert_array_equal(kept.probabilities, forecasts.probabilities)
    assert kept.made is None


def test_known_decay_is_found_and_none_costs_little(study):
    drawn_at = study("recency").drawn
    rng = np.random.default_rng(2)
    gains = {np.inf: [], 10.0: []}
    for half_life, kept in gains.items():
        for _ in range(6):
            forecasts = drawn_at(1200, half_life, rng)
            train, test = forecasts.select_events(np.arange(200)), forecasts.select_events(np.arange(200, 1200))
            timed = op.GaussianPool().fit(train)
            plain = op.GaussianPool().fit(replace(train, made=None))
            p = np.array([plain.predict_proba(test)[:, 1], timed.predict_proba(test)[:, 1]])
            loss = -np.log(np.where(test.outcomes == 1, p, 1.0 - p)).mean(axis=1)
            kept.append(loss[0] - loss[1])
    assert np.mean(gains[np.inf]) > -0.003
    assert np.mean(gains[10.0]) > 0.005
    found = learn_recency(drawn_at(1500, 10.0, rng), np.full((1500, 2), 0.5), np.ones(1500))
    assert found.steady < 0.01
    assert 5.0 < found.half_life < 20.0
    assert learn_recency(drawn_at(1500, np.inf, rng), np.full((1500, 2), 0.5), np.ones(1500)).steady > 0.5


def test_of_experts_who_know_different_things_an_old_forecast_is_no_copy():
    rng = np.random.default_rng(6)
    q, y, made = drawn(rng, 1500, 30.0)
    assert learn_recency(container(q, y, made), np.full((1500, 2), 0.5), np.ones(1500)).steady > 0.5


def test_arrays_and_containers_give_the_same_answers():
    rng = np.random.default_rng(3)
    q, y, made = drawn(rng, 150, 10.0)
    q[rng.random(q.shape) < 0.1] = np.nan
    outcomes = [None if t % 10 == 0 else int(each) for t, each in enumerate(y)]
    forecasts = replace(container(q, outcomes, made), asked=None)
    pool = op.GaussianPool().fit(forecasts)
    assert pool.state_.recency is not None
    array = op.GaussianPool().fit(q, outcomes, times=made)
    np.testing.assert_allclose(array.predict_proba(q, times=made), pool.predict_proba(forecasts), rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        array.predict_interval(q, times=made), pool.predict_interval(forecasts), rtol=0, atol=1e-12
    )


def test_the_parts_of_an_answer_add_up_and_show_forecasts_as_they_were_made():
    rng = np.random.default_rng(4)
    q, y, made = drawn(rng, 150, 10.0)
    forecasts = container(q, y, made)
    state = op.GaussianPool().fit(forecasts).state_
    why = op.explain_event(forecasts, 3, state)
    np.testing.assert_array_equal(why.probabilities, q[3])
    np.testing.assert_allclose(why.ages, (NOW - made[3]) / np.timedelta64(1, "D"))
    np.testing.assert_allclose(why.start + why.intercept + why.contributions.sum() + why.members_shift, why.total)
    np.testing.assert_allclose(expit(why.total), state.pool_forecasts(forecasts)[3])


def test_as_of_gives_the_answer_as_it_would_have_been(tmp_path):
    rng = np.random.default_rng(5)
    q, y, made = drawn(rng, 120, 10.0)
    lines = []
    for t in range(len(q)):
        closes = NOW + np.timedelta64(t % 40, "D") - np.timedelta64(20, "D")
        for i in range(q.shape[1]):
            later = made[t, i] + np.timedelta64(int(rng.integers(1, 30)), "D")
            for time, p in ((made[t, i], q[t, i]), (later, expit(logit(q[t, i]) + 0.3))):
                lines.append((time, f"e{t},x{i},{float(p)!r},{time},{closes},{closes},{y[t]}"))
    header = "event,expert,probability,time,closes,resolved_at,outcome\n"
    cut = np.datetime64("2025-05-25", "us")
    whole, early = tmp_path / "whole.csv", tmp_path / "early.csv"
    whole.write_text(header + "\n".join(line for _, line in lines) + "\n")
    early.write_text(header + "\n".join(line for time, line in lines if time <= cut) + "\n")
    one, two = (op.read_forecasts(file, duplicates="last", as_of=str(cut)) for file in (whole, early))
    kept = [one.events.index(event) for event in two.events]
    state = op.GaussianPool().fit(one).state_
    np.testing.assert_allclose(state.pool_forecasts(one)[kept], state.pool_forecasts(two), rtol=0, atol=1e-15)
    # Nobody's forecast counts before it was made, nor after the event closed.
    assert (one.made <= cut).all()
    assert (one.ages >= 0).all()
    assert (one.made <= one.closes[one.event_index]).all()


def test_mean_over_the_time_that_each_forecast_stood():
    table = {
        "event": ["q", "q", "q", "r", "r"],
        "expert": ["ann"] * 5,
        "probability": [0.2, 0.6, 0.9, 0.3, 0.5],
        "time": ["2025-01-01", "2025-01-03", "2025-01-09", "2025-01-01", "2025-01-05"],
        "closes": ["2025-01-11"] * 3 + ["2025-01-06"] * 2,
        "outcome": [1, 1, 1, 0, 0],
    }
    found = op.read_forecasts(table, duplicates="time-weighted")
    np.testing.assert_allclose(found.probabilities, [(2 * 0.2 + 6 * 0.6 + 2 * 0.9) / 10, (4 * 0.3 + 0.5) / 5])
    early = op.read_forecasts(table, duplicates="time-weighted", as_of="2025-01-05")
    np.testing.assert_allclose(early.probabilities, [(2 * 0.2 + 2 * 0.6) / 4, 0.3])
    assert found.made is None
    with pytest.raises(op.LayoutError, match="no column is known to hold times"):
        op.read_forecasts({name: of for name, of in table.items() if name != "time"}, duplicates="time-weighted")


def test_times_that_are_none_are_refused():
    with pytest.raises(op.ArgumentError, match="times are datetime64"):
        op.GaussianPool().fit([[0.2], [0.6]], [0, 1], times=[["soon"], ["later"]])
    with pytest.raises(op.ShapeError):
        op.GaussianPool().fit([[0.2], [0.6]], [0, 1], times=[["2025-01-01"]])


def test_who_repeats_the_prior_or_always_says_the_same_moves_nothing():
    rng = np.random.default_rng(7)
    q, y, made = drawn(rng, 60, 10.0)
    outcomes = [None if t % 10 == 0 else int(each) for t, each in enumerate(y)]
    pool = op.GaussianPool().fit(q, outcomes, prior=0.4, times=made)
    answers, ends = (f(q, prior=0.4, times=made) for f in (pool.predict_proba, pool.predict_interval))
    assert pool.state_.recency.steady < 0.5
    # Always the newest, so that ages would all change.
    both = np.concatenate([made, np.full((60, 1), NOW + np.timedelta64(9, "D"))], axis=1)
    for same in (0.4, 0.7):
        more = np.concatenate([q, np.full((60, 1), same)], axis=1)
        larger = op.GaussianPool().fit(more, outcomes, prior=0.4, times=both)
        assert larger.weights_[-1] == 0
        np.testing.assert_allclose(larger.predict_proba(more, prior=0.4, times=both), answers, rtol=0, atol=1e-10)
        np.testing.assert_allclose(larger.predict_interval(more, prior=0.4, times=both), ends, rtol=0, atol=1e-10)


@pytest.mark.parametrize("later", [0, 1])
def test_a_copy_shares_one_weight_and_moves_nothing_also_if_it_was_made_later(later, tmp_path):
    rng = np.random.default_rng(8)
    q, y, made = drawn(rng, 60, 10.0)
    pool = op.GaussianPool().fit(q, y, prior=0.5, times=made)
    answers, ends = (f(q, prior=0.5, times=made) for f in (pool.predict_proba, pool.predict_interval))
    days = later * (1 + np.arange(60) % 7)[:, None] * np.timedelta64(1, "D")
    more = np.concatenate([q, q[:, [1, 1]]], axis=1)
    times = np.concatenate([made, made[:, [1]] + days, made[:, [1]] + 2 * days], axis=1)
    with pytest.warns(op.OpinionPoolWarning, match="share one weight"):
        larger = op.GaussianPool().fit(more, y, prior=0.5, times=times)
    np.testing.assert_allclose(larger.predict_proba(more, prior=0.5, times=times), answers, rtol=0, atol=1e-10)
    np.testing.assert_allclose(larger.predict_interval(more, prior=0.5, times=times), ends, rtol=0, atol=1e-9)
    np.testing.assert_allclose(larger.weights_[[1, 4, 5]], pool.weights_[1] / 3, rtol=1e-8)
    op.save(larger, tmp_path / "pool.json")
    again = op.load(tmp_path / "pool.json")
    np.testing.assert_array_equal(
        again.predict_proba(more, prior=0.5, times=times), larger.predict_proba(more, prior=0.5, times=times)
    )


def test_before_outcomes_half_lives_have_their_prior_probabilities(study):
    found = study("recency").drawn(60, 10.0, np.random.default_rng(9))
    some = replace(found, outcomes=np.full(60, -1))
    recency = learn_recency(some, np.full((60, 2), 0.5), np.ones(60))
    np.testing.assert_allclose(recency.by_half_life, [0.5, *[0.05] * 10], rtol=1e-12)
    seconds = replace(some, made=some.asked.repeat(5) - (some.asked.repeat(5) - some.made) // 10**6)
    assert learn_recency(seconds, np.full((60, 2), 0.5), np.ones(60)).half_lives[1:].min() == 0.25 / 24
    assert learn_recency(replace(some, made=None), np.full((60, 2), 0.5), np.ones(60)) is None


def lives(rng, events, experts=4, half_life=10.0):
    """Three forecasts by each expert on each event: log-odds, times and outcomes."""
    y = rng.random(events) < 0.5
    age = np.sort(rng.exponential(20.0, (events, experts, 3)), axis=2)[..., ::-1] + np.array([2e-3, 1e-3, 0.0])
    known = 1.5 * 0.5 ** (age / half_life)
    steps = np.diff(known, axis=2, prepend=0.0)
    walk = np.cumsum(np.sqrt(2.0 * steps) * rng.normal(size=age.shape), axis=2)
    q = expit(np.where(y, 1.0, -1.0)[:, None, None] * known + walk).round(9)
    return q, NOW - np.round(age * 86_400e6).astype("timedelta64[us]"), y.astype(int)


def written(path, q, made, outcomes, which=(0, 1, 2)):
    rows = [
        f"e{t},expert_{i + 1},{float(q[t, i, k])!r},{made[t, i, k]},{'' if outcomes[t] is None else outcomes[t]}"
        for t in range(len(q))
        for k in which
        for i in range(q.shape[1])
    ]
    path.write_text("event,expert,probability,time,outcome\n" + "\n".join(rows) + "\n")
    return op.read_forecasts(path, duplicates="last")


def test_every_door_learns_the_same_half_lives(tmp_path):
    rng = np.random.default_rng(4)
    q, made, y = lives(rng, 60)
    outcomes = [None if t % 3 == 0 else int(each) for t, each in enumerate(y)]
    read = written(tmp_path / "all.csv", q, made, outcomes)
    np.testing.assert_array_equal(read.X, q[..., 2])
    pool = op.GaussianPool().fit(read)
    assert pool.state_.recency is not None
    expected, close = pool.predict_proba(read)[:, 1], {"rtol": 0, "atol": 1e-12}
    stream = op.Stream()
    for t in rng.permutation(60).tolist():
        for i in range(4):
            for k in range(3):
                stream.forecast(f"e{t}", {f"expert_{i + 1}": q[t, i, k]}, time=made[t, i, k])
        if outcomes[t] is not None:
            stream.resolve(f"e{t}", outcomes[t])
    np.testing.assert_allclose(stream.learn().pool_forecasts(read), expected, **close)
    op.save(stream, tmp_path / "stream.json")
    again = op.load(tmp_path / "stream.json")
    np.testing.assert_array_equal(again.learn().pool_forecasts(read), stream.learn().pool_forecasts(read))
    batch, other = op.Stream(), op.Stream()
    batch.add(read.select_events(np.arange(20)))
    other.add(read.select_events(np.arange(20, 60)))
    np.testing.assert_allclose(batch.merge(other).learn().pool_forecasts(read), expected, **close)
    op.save(pool, tmp_path / "pool.json")
    loaded = op.load(tmp_path / "pool.json")
    np.testing.assert_array_equal(loaded.predict_proba(read)[:, 1], expected)
    assert [note.text for note in loaded.state_.notes] == [note.text for note in pool.state_.notes]


def test_the_same_table_again_and_tables_of_what_stands_each_week(tmp_path):
    q, made, y = lives(np.random.default_rng(5), 60)
    none, outcomes = [None] * 60, y.tolist()
    whole = written(tmp_path / "whole.csv", q, made, outcomes)
    expected = op.GaussianPool().fit(whole).predict_proba(whole)[:, 1]
    again, weekly = op.Stream(), op.Stream()
    for week in ((0,), (0, 1), (0, 1), (0, 1, 2)):
        again.add(written(tmp_path / "again.csv", q, made, none, week), whole=True)
    for week in (0, 1, 1, 2):
        weekly.add(written(tmp_path / "weekly.csv", q, made, none, (week,)), whole=True)
    for stream in (again, weekly):
        for _ in range(2):
            stream.add(whole, whole=True)
            np.testing.assert_allclose(stream.learn().pool_forecasts(whole), expected, rtol=0, atol=1e-12)
