"""How fast forecasts go stale, before any outcome: beside formulas, at every door, in simulation."""

from dataclasses import replace

import numpy as np
from scipy import stats

import opinionpool as op
from opinionpool.learning.constants import AGREEMENT, TOGETHER
from opinionpool.learning.recency import WRITTEN, Pairs, agreement, learn_recency
from opinionpool.logodds import expit

NOW = np.datetime64("2025-06-01", "us")
HALF_LIVES = np.array([np.inf, 60.0, 30.0, 15.0, 7.5])


def blurred(rng, pairs, half_life, shared):
    """Older contrasts and the newer ones that they are copies of."""
    days = rng.exponential(30.0, pairs)
    f = shared * 0.5 ** (days / half_life)
    new = 1.5 * rng.normal(size=pairs)
    old = f * new + 1.5 * np.sqrt((1.0 - shared) + f * (1.0 - f)) * rng.normal(size=pairs)
    return Pairs(old[:, None], new[:, None], days, np.ones(pairs))


def test_evidence_is_the_normal_likelihood_of_the_older_forecast():
    pairs = blurred(np.random.default_rng(1), 50, 30.0, 0.9)
    old, new, found = pairs.old[:, 0], pairs.new[:, 0], pairs.evidence(HALF_LIVES)
    expected = np.zeros(len(HALF_LIVES))
    for place, h in enumerate(HALF_LIVES):
        for shared in TOGETHER:
            f = shared * 0.5 ** (pairs.days / h)
            spread = (1.0 - shared) + f * (1.0 - f)
            variance = np.mean((old - f * new) ** 2 / spread) + WRITTEN**2
            # At the best variance, the exponents add up to about one half each.
            constant = -0.5 * np.sum((old - f * new) ** 2 / (variance * spread))
            expected[place] += np.exp(stats.norm(f * new, np.sqrt(variance * spread)).logpdf(old).sum() - constant)
    np.testing.assert_allclose(found - found[0], np.log(expected / expected[0]), rtol=1e-9)


def test_agreement_is_with_the_newest_by_others():
    # On event 0, experts 1 and 2 were last, and expert 3 is a copy of 2; on event 1 nobody knows when.
    event, source = np.array([0, 0, 0, 0, 0, 1]), np.array([0, 1, 2, 2, 3, 0])
    contrast, age = np.array([[1.0], [2.0], [0.5], [0.5], [-1.0], [3.0]]), np.array([9.0, 2.0, 2.0, 6.0, 4.0, np.nan])
    count = np.array([1.0, 1.0, 0.5, 0.5, 1.0, 1.0])
    pairs = agreement(event, source, contrast, age, count, np.ones(2))
    np.testing.assert_array_equal(pairs.old.ravel(), [-1.0, 1.0])
    np.testing.assert_allclose(pairs.new.ravel(), [1.5, 1.5])
    np.testing.assert_array_equal(pairs.days, [2.0, 7.0])


def crowded(rng, events, early):
    """Contrasts, ages and all else of five experts, the first two of them early by so much."""
    event, source = np.repeat(np.arange(events), 5), np.tile(np.arange(5), events)
    age = rng.exponential(10.0, 5 * events) + np.where(source < 2, early, 0.0)
    return event, source, rng.normal(size=(5 * events, 1)), age, np.ones(5 * events), np.ones(events)


def test_agreement_counts_as_far_as_lags_vary_within_pairs_of_experts():
    rng = np.random.default_rng(7)
    assert np.mean([agreement(*crowded(rng, 30, 0.0)).varied for _ in range(20)]) > 0.85
    assert np.mean([agreement(*crowded(rng, 30, 100.0)).varied for _ in range(20)]) < 0.15
    # Nothing is learned from one expert who is always older by 30 days, nor from pairs that are there once.
    event, source = np.repeat(np.arange(30), 2), np.tile(np.arange(2), 30)
    none = agreement(event, source, np.ones((60, 1)), np.tile([30.0, 0.0], 30), np.ones(60), np.ones(30))
    once = agreement(event, np.arange(60), np.ones((60, 1)), rng.exponential(9.0, 60), np.ones(60), np.ones(30))
    assert none.varied == 0.0
    assert once.varied == 0.0


def test_without_outcomes_nothing_is_learned_where_time_goes_with_who_forecasts(study):
    benchmark, rng = study("recency"), np.random.default_rng(9)
    even = np.full((60, 2), 0.5)
    for world in (benchmark.early_group, benchmark.early_different):
        found = world(60, np.inf, rng).forecasts()
        assert learn_recency(replace(found, outcomes=np.full(60, -1)), even, np.ones(60)) is None


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
    assert pool.state_.recency.by_agreement is not None
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


def test_half_lives_are_found_without_any_outcome(study):
    drawn = study("recency").drawn
    rng, even = np.random.default_rng(6), np.full((60, 2), 0.5)
    for half_life, low, high in ((10.0, 5.0, 16.0), (30.0, 18.0, 50.0)):
        found = learn_recency(replace(drawn(60, half_life, rng), outcomes=np.full(60, -1)), even, np.ones(60))
        assert found.steady < 0.3
        assert low < found.half_life < high
    unresolved = [replace(drawn(60, np.inf, rng), outcomes=np.full(60, -1)) for _ in range(4)]
    assert np.mean([learn_recency(each, even, np.ones(60)).steady for each in unresolved]) > 0.7
    assert 0 < AGREEMENT < 1
