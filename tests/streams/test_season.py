"""A season step by step is as the table that has it all: the default pool of a stream and of a file, to 1e-12."""

import csv
import sys
from dataclasses import replace

import numpy as np
import pytest

import opinionpool as op
from opinionpool.streams.trained import TrainedPool

UNTIL = "2025-06-09T00:00Z"


@pytest.fixture(scope="module")
def table(root):
    sys.path.insert(0, str(root / "examples"))
    try:
        import tournament
    finally:
        sys.path.pop(0)
    return [dict(zip(tournament.HEADER, row, strict=True)) for row in tournament.rows()]


def happenings(table):
    """What happens, in order of time: a forecast, or an outcome."""
    found, resolved = [], set()
    for row in table:
        if row["time"] <= row["closes"]:
            found.append((row["time"], "forecast", row))
        if row["outcome"] and row["question"] not in resolved:
            resolved.add(row["question"])
            found.append((row["resolved_at"], "outcome", row))
    return sorted((each for each in found if each[0] <= UNTIL), key=lambda each: each[:2])


def replayed(table):
    stream = op.Stream(("0", "1"))
    for _, what, row in happenings(table):
        if what == "forecast":
            p = {row["forecaster"]: float(row["probability"])}
            stream.forecast(row["question"], p, closes=row["closes"], time=row["time"])
        elif row["question"] in stream.open:
            stream.resolve(row["question"], row["outcome"], resolved_at=row["resolved_at"])
    return stream


def from_file(table, path):
    """What a fit reads: the table as it was exported then."""
    rows = [row | {"outcome": row["outcome"] * (row["resolved_at"] <= UNTIL)} for row in table if row["time"] <= UNTIL]
    rows = [row | {"resolved_at": row["resolved_at"] if row["outcome"] else ""} for row in rows]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows(rows)
    return op.read_forecasts(path, duplicates="last")


def same(stream, forecasts):
    """The pool, and its answers about open events, are those of a fit to the forecasts."""
    mine, whole = stream.learn(), TrainedPool.fit("gaussian", forecasts).learned
    weights = dict(zip(whole.experts, whole.weights.tolist(), strict=True))
    assert dict(zip(mine.experts, mine.weights.tolist(), strict=True)) == pytest.approx(
        {expert: weights[expert] for expert in mine.experts}, abs=1e-12
    )
    assert mine.prior == pytest.approx(whole.prior, abs=1e-12)
    still = stream.forecasts()
    answered = {
        event: t for t, event in enumerate(forecasts.events) if forecasts.crowd[t] and not forecasts.resolved[t]
    }
    assert set(still.events) == set(answered)
    theirs = whole.pool_forecasts(forecasts)
    expected = [theirs[answered[event]] for event in still.events]
    assert mine.pool_forecasts(still) == pytest.approx(np.array(expected), abs=1e-12)
    return mine


def test_forecasts_and_outcomes_one_by_one(table, tmp_path):
    stream = replayed(table)
    mine = same(stream, from_file(table, tmp_path / "table.csv"))
    assert any(note.code == "shared-events" for note in mine.notes)
    assert stream.count == 47


def test_annulled_and_corrected(table, tmp_path):
    stream = replayed(table)
    assert stream.knows("q041")
    assert "q056" in stream.open
    was = next(row["outcome"] for row in table if row["question"] == "q041")
    other = "1" if was == "0" else "0"
    stream.withdraw("q040")
    stream.withdraw("q056")
    stream.resolve("q041", other)
    outcomes = {"q040": "void", "q056": "void", "q041": other}
    changed = [row | {"outcome": outcomes.get(row["question"], row["outcome"])} for row in table]
    changed = [row | {"resolved_at": row["closes"]} if row["outcome"] == "void" else row for row in changed]
    changed = [row | {"resolved_at": "2025-06-08T00:00Z"} if row["question"] == "q056" else row for row in changed]
    same(stream, from_file(changed, tmp_path / "changed.csv"))


def test_groups_are_known_to_streams():
    rng = np.random.default_rng(1)
    q, y = rng.uniform(0.1, 0.9, (12, 3)), np.arange(12) % 2
    names = [f"g{t // 3}" for t in range(12)]
    forecasts = op.Forecasts.from_array(q, y.tolist(), experts=["a", "b", "c"])

    forecasts = replace(forecasts, groups=np.array(names))
    stream = op.Stream()
    for t, event in enumerate(forecasts.events):
        given = dict(zip("abc", q[t].tolist(), strict=True))
        if t % 2:
            stream.forecast(event, given, group=names[t])
            stream.resolve(event, int(y[t]))
        else:
            stream.resolve(event, int(y[t]), given, group=names[t])
    whole = TrainedPool.fit("gaussian", forecasts).learned
    assert stream.learn().weights == pytest.approx(whole.weights, abs=1e-12)
