"""The same small data through every door: the same answers and the same notes, or a reason why not."""

import csv
import json
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import opinionpool as op
from opinionpool.cli import app as cli
from opinionpool.learning.parts import PartsSource
from opinionpool.pools.fit import fit_from, fit_pool

pytestmark = pytest.mark.filterwarnings("ignore::opinionpool.OpinionPoolWarning")

EVENTS, EXPERTS = 24, ("ann", "bob", "cat", "dot", "eve")
NAN = float("nan")
ESTIMATORS = {each.rule: each for each in (getattr(op, name) for name in op.__all__ if name.endswith("Pool"))}
POOL_NAMES = tuple(ESTIMATORS)
# Notes on how a table was read: a matter of the door.
READING = {"layout", "positive", "format", "unresolved", "duplicates", "outcomes-layout", "extremes"}
# The command line says of each answer whether its event was learned from, in one note more.
COMMAND = {"in-sample"}
# What a search finds whose steps depend on rounding differs in the last digits where events come in another order.
SEARCHED = {"beta-linear": 1e-9}


def data():
    """Forecasts of five experts, one who never moves and one who knows the outcome, with gaps."""
    x, y = op.Panel.exchangeable(3, calibration=0.8, correlation=0.3, accuracy=0.7).simulate(EVENTS, seed=5)
    x = np.column_stack([x, np.full(EVENTS, 0.25), np.where(y == 1, 0.995, 0.004)]).round(6)
    x[[1, 7, 11, 18], [0, 1, 1, 2]] = NAN
    return x, y.astype(int)


X, Y = data()
NAMES = tuple(f"q{i:02}" for i in range(EVENTS))


def forecasts(rows=slice(None)):
    return op.Forecasts.from_array(X[rows], Y[rows], events=NAMES[rows], experts=EXPERTS)


def columns(outcome=True):
    """The table by column, cells as plain Python."""
    cells = [[None if value != value else float(value) for value in column] for column in X.T]
    table = {"event": list(NAMES), **dict(zip(EXPERTS, cells, strict=True))}
    return table | ({"outcome": Y.tolist()} if outcome else {})


def fitted(name, x, y, q):
    pool = ESTIMATORS[name]().fit(x, y)
    return pool.predict_proba(q)[:, 1], pool.notes_


def table_of(kind):
    cells = {name: columns()[name] for name in EXPERTS}
    if kind == "pandas":
        return pd.DataFrame(X, columns=EXPERTS)
    if kind == "pandas nullable":
        return pd.DataFrame(cells).convert_dtypes()
    if kind == "pandas objects":
        return pd.DataFrame({name: pd.array([pd.NA if c is None else c for c in cells[name]], dtype=object)
                             for name in EXPERTS})  # fmt: skip
    return pl.DataFrame(cells) if kind == "polars" else pa.table(cells)


def door_array(name, tmp_path):
    return fitted(name, X, Y, X)


def door_list(name, tmp_path):
    rows = [[None if value != value else value for value in row] for row in X.tolist()]
    return fitted(name, rows, Y.tolist(), rows)


def door_objects(name, tmp_path):
    cells = X.astype(object)
    cells[np.isnan(X)] = pd.NA
    return fitted(name, cells, pd.array(Y, dtype="Int64"), cells)


def door_masked(name, tmp_path):
    hidden = np.ma.masked_array(np.where(np.isnan(X), 0.99, X), mask=np.isnan(X))
    return fitted(name, hidden, np.ma.masked_array(Y), hidden)


def frame_door(kind):
    def door(name, tmp_path):
        frame = table_of(kind)
        return fitted(name, frame, Y, frame)

    return door


def door_forecasts(name, tmp_path):
    f = forecasts()
    pool = ESTIMATORS[name]().fit(f)
    return pool.predict_proba(f)[:, 1], pool.notes_


def of(name, f):
    learned = fit_pool(name, f)
    return learned.pool(f.X), learned.notes


def read_door(make):
    @cache
    def read(tmp_path):
        return op.read_forecasts(make(columns(), tmp_path))

    return lambda name, tmp_path: of(name, read(tmp_path))


def as_csv(table, folder):
    path = folder / "f.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([table, *zip(*table.values(), strict=True)])
    return path


def as_long_csv(table, folder):
    path = folder / "long.csv"
    rows = [
        (event, expert, table[expert][i], table["outcome"][i])
        for i, event in enumerate(table["event"])
        for expert in EXPERTS
        if table[expert][i] is not None
    ]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("event", "expert", "probability", "outcome"), *rows])
    return path


def as_parquet(table, folder):
    pl.DataFrame(table).write_parquet(folder / "f.parquet")
    return folder / "f.parquet"


def as_lines(table, folder):
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    (folder / "f.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "f.jsonl"


def batches_door(sizes, kind):
    def door(name, tmp_path):
        pool, start = ESTIMATORS[name](), 0
        for size in sizes:
            rows = slice(start, start + size)
            if kind == "forecasts":
                pool.partial_fit(forecasts(rows))
            else:
                pool.partial_fit(pd.DataFrame(X[rows], columns=EXPERTS), Y[rows], classes=[0, 1])
            start += size
        return pool.predict_proba(pd.DataFrame(X, columns=EXPERTS))[:, 1], pool.notes_

    return door


def stream_door(fill):
    def door(name, tmp_path):
        learned = fill(tmp_path).fit(name)
        return learned.pool(X), learned.notes

    return door


def added(tmp_path, rows=slice(None)):
    stream = op.Stream()
    stream.add(forecasts(rows))
    return stream


def added_rows(tmp_path, rows=slice(None), **options):
    stream = op.Stream()
    stream.add_rows(X[rows], Y[rows], experts=EXPERTS, **options)
    return stream


def one_by_one(tmp_path):
    stream = op.Stream()
    for i, event in enumerate(NAMES):
        stream.forecast(event, dict(zip(EXPERTS, X[i].tolist(), strict=True)))
    for i, event in enumerate(NAMES):
        stream.resolve(event, int(Y[i]))
    return stream


def merged(tmp_path):
    return added(tmp_path, slice(10, None)).merge(added(tmp_path, slice(10)))


def merged_rows(tmp_path):
    return added_rows(tmp_path, slice(10)).merge(added_rows(tmp_path, slice(10, None)))


def saved_stream(tmp_path):
    op.save(added(tmp_path), tmp_path / "stream.json")
    return op.load(tmp_path / "stream.json")


def door_saved(name, tmp_path):
    frame = table_of("pandas")
    ESTIMATORS[name]().fit(frame, Y).save(tmp_path / "pool.json")
    pool = op.load(tmp_path / "pool.json")
    return pool.predict_proba(frame)[:, 1], pool.notes_


def door_saved_incremental(name, tmp_path):
    frame = table_of("pandas")
    begun = ESTIMATORS[name]().partial_fit(frame[:9], Y[:9])
    begun.predict_proba(frame)
    begun.save(tmp_path / "pool.json")
    pool = op.load(tmp_path / "pool.json").partial_fit(frame[9:], Y[9:])
    return pool.predict_proba(frame)[:, 1], pool.notes_


def door_parts(name, tmp_path):
    source = PartsSource.of([forecasts(slice(9)), forecasts(slice(9, None))], None)
    found = fit_from(source, name)
    return found.pool(X), found.notes


def door_command(name, tmp_path):
    out = tmp_path / "answers.json"
    path = as_csv(columns(), tmp_path)
    assert cli.run(["pool", str(path), "--pool", name, "--format", "json", "-o", str(out)]) == 0
    found = json.loads(out.read_text())
    notes = [op.Note(note["code"], note["text"]) for note in found["summary"]["notes"]]
    return np.array([event["probability"] for event in found["events"]]), notes


DOORS = {
    "array": door_array,
    "list": door_list,
    "array of objects with pandas' NA": door_objects,
    "masked array": door_masked,
    "pandas": frame_door("pandas"),
    "pandas nullable": frame_door("pandas nullable"),
    "pandas objects": frame_door("pandas objects"),
    "polars": frame_door("polars"),
    "arrow": frame_door("arrow"),
    "forecasts": door_forecasts,
    "dict": read_door(lambda table, _: table),
    "table pandas": read_door(lambda table, _: pd.DataFrame(table)),
    "table pandas nullable": read_door(lambda table, _: pd.DataFrame(table).convert_dtypes()),
    "table pandas filtered": read_door(lambda table, _: pd.DataFrame(table).iloc[::-1].sort_values("event")),
    "table polars": read_door(lambda table, _: pl.DataFrame(table)),
    "table arrow": read_door(lambda table, _: pa.table(table)),
    "csv": read_door(as_csv),
    "long csv": read_door(as_long_csv),
    "parquet": read_door(as_parquet),
    "json lines": read_door(as_lines),
    "partial_fit, one batch": batches_door([EVENTS], "frames"),
    "partial_fit, three batches": batches_door([5, 1, 18], "frames"),
    "partial_fit of forecasts": batches_door([5, 1, 18], "forecasts"),
    "stream": stream_door(added),
    "stream of rows": stream_door(added_rows),
    "stream, event by event": stream_door(one_by_one),
    "merged streams": stream_door(merged),
    "merged streams of rows": stream_door(merged_rows),
    "saved stream": stream_door(saved_stream),
    "saved and loaded": door_saved,
    "saved, loaded and taught more": door_saved_incremental,
    "in parts": door_parts,
    "command line": door_command,
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_every_door_gives_the_same_answers_and_notes(door, tmp_path):
    for name in POOL_NAMES:
        answers, notes = DOORS[door](name, tmp_path)
        wanted, codes = expected(name)
        assert np.abs(answers - wanted).max() <= SEARCHED.get(name, 1e-12), (door, name)
        assert {note.code for note in notes} - READING - COMMAND == codes, (door, name)


SEEN = {}


def expected(name):
    """Answers and codes of notes as arrays give them."""
    if name not in SEEN:
        answers, notes = door_array(name, None)
        SEEN[name] = answers, {note.code for note in notes}
    return SEEN[name]
