"""Data frames, Arrow tables, dicts and arrays give what a file with the same cells gives."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pytest

import opinionpool as op
from opinionpool.errors import LayoutError, TableError
from opinionpool.tables.read import read_forecasts
from opinionpool.tables.table import read_frame

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

COLUMNS = {"event": ["007", "08"], "ann": [0.25, None], "bob": [0.5, 0.75], "outcome": [1, 0]}


def cells(table, column):
    words = table.words(column)
    return [words.values[code] if code >= 0 else None for code in words.codes]


@pytest.mark.parametrize(
    "frame",
    [
        COLUMNS,
        pd.DataFrame(COLUMNS),
        pd.DataFrame(COLUMNS).convert_dtypes(),
        pd.DataFrame(COLUMNS).astype({"ann": "float32", "outcome": "category"}),
        pl.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS).lazy(),
        pa.table(COLUMNS),
        np.rec.fromarrays(
            [np.array(["007", "08"]), np.array([0.25, np.nan]), np.array([0.5, 0.75]), np.array([1, 0])],
            names=list(COLUMNS),
        ),
    ],
    ids=["dict", "pandas", "nullable", "category", "polars", "lazy", "arrow", "records"],
)
def test_all_kinds_of_frames_say_the_same(frame):
    found = read_forecasts(frame)
    assert found.events == ("007", "08")
    assert found.experts == ("ann", "bob")
    np.testing.assert_array_equal(found.X, [[0.25, 0.5], [np.nan, 0.75]])
    assert found.X.dtype == np.float64
    assert (found.classes, found.outcomes.tolist()) == ((0, 1), [1, 0])


def test_cells_of_every_type_as_text():
    moment = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    frame = pl.DataFrame(
        {
            "whole": [2**60 + 1, None], "float": [7.0, None], "single": pl.Series([0.33, None], dtype=pl.Float32),
            "money": [Decimal("0.25"), None], "flag": [True, None],
            "kind": pl.Series(["x", None], dtype=pl.Categorical), "day": [dt.date(2024, 1, 1), None],
            "time": [moment, None],
        }
    )  # fmt: skip
    expected = [str(2**60 + 1), "7", "0.33", "0.25", "True", "x", "2024-01-01", "2024-01-01T12:00:00+00:00"]
    for table in (read_frame(frame), read_frame(frame.to_arrow())):
        assert [cells(table, i) for i in range(8)] == [[text, None] for text in expected]
    pandas = read_frame(pd.DataFrame({"na": pd.array([1, None], "Int64"), "b": pd.array([True, None], "boolean")}))
    assert [cells(pandas, i) for i in range(2)] == [["1", None], ["True", None]]
    times = read_frame({"t": np.array(["2024-01-01T00:00", "NaT"], "M8[m]")})
    assert cells(times, 0) == ["2024-01-01T00:00", None]


def test_labels_of_columns_are_text():
    found = read_forecasts(pd.DataFrame({"event": ["q"], 1: [0.5], "B": [0.25]}))
    assert found.experts == ("1", "B")
    with pytest.raises(LayoutError, match="two columns are called '1'"):
        read_forecasts(pd.DataFrame({"event": ["q"], 1: [0.5], "1": [0.25]}))
    with pytest.raises(TableError, match="two columns of the table have the same name"):
        read_forecasts(pd.DataFrame([["q", 0.1, 0.2]], columns=["event", "a", "a"]))


def test_a_pandas_index_that_says_something_is_a_column():
    long = pd.DataFrame({"event": ["q1", "q1", "q2"], "expert": ["a", "b", "a"], "p": [0.1, 0.2, 0.3]})
    wide = long.pivot(index="event", columns="expert", values="p")
    assert read_forecasts(wide).events == ("q1", "q2")
    assert read_forecasts(long.set_index(["event", "expert"])).experts == ("a", "b")
    assert read_forecasts(pd.DataFrame({"a": [0.1]}, index=["q9"])).events == ("q9",)
    assert read_forecasts(pd.DataFrame({"a": [0.1]})).events == ("1",)
    assert "event" not in pd.DataFrame(wide).columns


def test_levels_of_columns_are_experts_and_classes():
    columns = pd.MultiIndex.from_product([["a", "b"], ["home", "draw", "away"]])
    found = read_forecasts(pd.DataFrame([[0.5, 0.25, 0.25, 0.2, 0.2, 0.6]], columns=columns))
    assert found.experts == ("a", "b")
    assert found.classes == ("home", "draw", "away")
    assert found.X.tolist() == [[[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]]]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (object(), "and not from object"),
        ([0.5, 0.2], "and not from list"),
        (pd.Series([0.5]), "and not from Series"),
        (np.zeros(3), r"events x experts, and this one has shape \(3,\)"),
        (np.zeros((1, 2, 3)), "Forecasts.from_array takes events x experts x classes"),
        ({"a": [1, 2], "b": [1]}, r"must be of one length, and they have \[1, 2\] rows"),
        ({"event": ["q"], "a": [[0.5, 0.5]]}, r"one has shape \(1, 2\)"),
        ({}, "the table has no rows"),
        (pd.DataFrame({"event": [], "a": []}), "the table has no rows"),
        # Rows of frames are counted from 0.
        ({"event": ["q", "r"], "a": [0.5, 40]}, "the table, row 1, column 'a': 40 is not between 0 and 1"),
        ({"event": ["q", "r"], "a": [np.inf, 0.4]}, "row 0, column 'a': 'inf' is not between"),
        ({"event": ["q", "r"], "a": [True, 0.5], "outcome": [1, 0]}, "'True' is not a number"),
    ],
)
def test_what_is_no_table(source, told):
    with pytest.raises(TableError, match=told):
        read_forecasts(source)


def test_what_is_read_is_not_changed():
    frame = pd.DataFrame({"event": ["q", "r"], "a": [50.0, 25.0]}, index=["x", "y"])
    before = frame.copy()
    read_forecasts(frame, percent=True)
    pd.testing.assert_frame_equal(frame, before)
    array = np.array([[50.0]])
    assert read_forecasts(array, percent=True).X.tolist() == [[0.5]]
    assert array.tolist() == [[50.0]]


def wide(labels, happened):
    share = [1 / len(labels)] * 2
    return {"event": ["q1", "q2"], **{f"ann:{label}": share for label in labels}, "outcome": happened}


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (["low", "medium", "high"], ("low", "medium", "high")),
        (["1", "-1", "0"], ("-1", "0", "1")),
        (["10", "0.5", "1", "2.5"], ("0.5", "1", "2.5", "10")),
    ],
)
def test_columns_are_in_an_order_that_somebody_chose_and_numbers_in_theirs(labels, order):
    f = op.read_forecasts(wide(labels, [labels[0], labels[-1]]))
    assert f.classes == order
    again = op.read_forecasts(wide(labels, [labels[0], labels[-1]]), classes=order[::-1])
    assert again.classes == order[::-1]


FRAME = pd.DataFrame(
    {"event": list("abcd"), "ann": [0.1, 0.2, 0.3, 0.4], "bob": [0.5, 0.6, 0.7, 0.8], "outcome": [0, 1, 0, 1]}
)


@pytest.mark.parametrize(
    "frame",
    [
        FRAME[FRAME.ann > 0.05],
        FRAME.sort_values("ann", ascending=False),
        pd.concat([FRAME[:2], FRAME[2:].reset_index(drop=True)]),
        FRAME.set_index("event"),
    ],
    ids=["filtered", "sorted", "put together", "by event"],
)
def test_an_index_is_no_expert(frame):
    f = op.read_forecasts(frame)
    assert f.experts == ("ann", "bob")
    assert sorted(f.events) == list("abcd")
    order = [f.events.index(event) for event in "abcd"]
    np.testing.assert_array_equal(f.X[order], FRAME[["ann", "bob"]])
