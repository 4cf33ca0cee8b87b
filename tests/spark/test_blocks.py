"""Arrow batches to blocks of events x experts; and what there is without pyspark."""

import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import opinionpool as op
import opinionpool.spark as ops
from opinionpool.scales import Scale
from opinionpool.spark import blocks
from opinionpool.spark.blocks import read_blocks
from opinionpool.spark.layout import Layout
from opinionpool.spark.summary import Summary

WIDE = Layout(("ann", "bob"), (0, 1), False, False, ("event", "outcome"), ())
LONG = Layout(None, (0, 1), False, False, ("event", "outcome"), ("league",))


def wide(layout=WIDE, p0=(0.5, 0.6), p1=(0.4, None), **columns):
    batch = {"p": list(zip(p0, p1, strict=True)), "event": ["a", "b"], "outcome": [1, None]} | columns
    (block,) = read_blocks([pa.RecordBatch.from_pydict(batch)], layout)
    return block


def long(rows, layout=LONG):
    names = ["event", "expert", "probability", "outcome", "k0"]
    kinds = [pa.string(), pa.string(), pa.float64(), pa.int64(), pa.string()]
    batches = [
        pa.RecordBatch.from_arrays(
            [pa.array(values, kind) for values, kind in zip(zip(*part, strict=True), kinds, strict=True)], names
        )
        for part in rows
    ]
    return list(read_blocks(batches, layout))


SCALES = {"ann": Scale.of("1-5"), "bob": Scale.of("no,yes")}


def test_levels():
    layout = replace(WIDE, scales=SCALES)
    np.testing.assert_array_equal(
        wide(layout, p0=["4", "1.0"], p1=["yes", None]).probabilities, [[0.7, 0.75], [0.1, np.nan]]
    )
    with pytest.raises(op.ProbabilityError, match="'6' by ann is no level of the scale 1-5"):
        wide(layout, p0=["4", "6"], p1=["yes", None])
    columns = {"event": ["a", "a", "b", "b"], "expert": ["ann", "cy", "bob", "cy"], "outcome": [1, 1, 0, 0]}
    columns |= {"probability": ["4", "0.3", "no", None], "k0": ["x"] * 4}
    one, two = read_blocks([pa.RecordBatch.from_pydict(columns)], replace(LONG, scales=SCALES))
    assert (one.experts, two.experts) == (("ann", "cy"), ("bob", "cy"))
    np.testing.assert_array_equal(np.concatenate([one.probabilities, two.probabilities]), [[0.7, 0.3], [0.25, np.nan]])


def test_a_tie_is_half_an_event_of_either_outcome():
    words = [["A", "tie"], ["B", "B"], ["A", "A"], ["tie", "B"]]
    happened = ["A", "tie", "B", None]
    scale = Scale.of("B,tie,A")
    layout = Layout(("ann", "bob"), ("B", "A"), False, False, ("event", "outcome"), (), {"*": scale})
    batch = {"p": words, "event": list("abcd"), "outcome": happened}
    (block,) = read_blocks([pa.RecordBatch.from_pydict(batch)], layout)
    assert block.ties.tolist() == [False, True, False, False]
    assert block.facts.outcomes.tolist() == [1, -1, 0, -1]
    summary = Summary(("ann", "bob"), {"classes": ("B", "A")})
    summary.add(block)
    f = op.Forecasts.from_array(
        words, happened, experts=["ann", "bob"], events=list("abcd"), scale=scale, classes=["B", "A"]
    )
    stream = op.Stream(("B", "A"))
    stream.add(f)
    found = summary.stream(by_name=True)
    assert found.events.tolist() == stream.events.tolist() == [1.5, 1.5]
    expected = stream.fit("recalibrated").pool_forecasts(f)
    np.testing.assert_allclose(found.fit("recalibrated").pool_forecasts(f), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("classes", "outcomes", "codes"),
    [
        ((0, 1), pa.array([1.0, float("nan"), 0.0]), [1, -1, 0]),
        ((0, 1), pa.array([True, None, False]), [1, -1, 0]),
        ((0, 1), pa.array(["1", None, "0"]), [1, -1, 0]),
        (("no", "yes"), pa.array(["yes", None, "no"]), [1, -1, 0]),
        ((2, 10), pa.array([10, 2, None], pa.int8()), [1, 0, -1]),
    ],
)
def test_outcomes(classes, outcomes, codes):
    layout = Layout(("ann",), classes, False, False, ("outcome",), ())
    (block,) = read_blocks([pa.RecordBatch.from_pydict({"p": [[0.5]] * 3, "outcome": outcomes})], layout)
    assert block.facts.outcomes.tolist() == codes


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"p1": [0.1, 1.5]}, op.ProbabilityError, "'bob' on event 'b' is 1.5; a percentage must be divided by 100"),
        ({"p0": [-0.1, 0.5]}, op.ProbabilityError, "'ann' on event 'a' is -0.1"),
        ({"p0": [float("inf"), 0.5]}, op.ProbabilityError, "'ann' on event 'a' is inf"),
        ({"outcome": [1, 2]}, op.OutcomeError, "one of 0, 1, and the one of event 'b' is 2"),
        ({"outcome": [0.5, 1.0]}, op.OutcomeError, "the one of event 'a' is 0.5"),
        ({"outcome": ["1", "perhaps"]}, op.OutcomeError, "event 'b' is 'perhaps'"),
        ({"event": ["a", None]}, op.CellError, "1 rows have no event id"),
    ],
)
def test_what_is_wrong_is_named(columns, error, message):
    with pytest.raises(error, match=message):
        wide(**columns)


def test_classes_in_columns_and_in_arrays():
    q = np.array([[[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], [[0.33, 0.33, 0.33], [np.nan] * 3]])
    flat = q.reshape(2, 6).tolist()
    nested = [[None if np.isnan(p).any() else p.tolist() for p in row] for row in q]
    for cells, arrays in ((flat, False), (nested, True)):
        layout = Layout(("ann", "bob"), ("x", "y", "z"), arrays, not arrays, (), ())
        (block,) = read_blocks([pa.RecordBatch.from_pydict({"p": cells})], layout)
        np.testing.assert_allclose(block.probabilities, q / q.sum(axis=2, keepdims=True))
    flat[0][2] = 0.7
    with pytest.raises(op.ProbabilityError, match="'ann': the probabilities of 3 classes must sum to 1"):
        list(
            read_blocks(
                [pa.RecordBatch.from_pydict({"p": flat})], Layout(("ann", "bob"), ("x", "y", "z"), False, True, (), ())
            )
        )


def test_long_events_across_batches():
    rows = [
        [("a", "ann", 0.5, 1, "x"), ("a", "bob", 0.4, 1, "x"), ("b", "ann", 0.6, None, None)],
        [("b", "cy", 0.7, None, "y")],
        [("b", "dee", None, 0, "y"), ("c", "ann", 0.1, 0, "z")],
    ]
    found = {}
    for block in long(rows):
        for i, event in enumerate(block.facts.ids):
            q = dict(zip(block.experts, block.probabilities[i], strict=True))
            found[event] = (
                {k: p for k, p in q.items() if p == p},
                int(block.facts.outcomes[i]),
                block.kept[0][i].as_py(),
            )
    assert found == {
        "a": ({"ann": 0.5, "bob": 0.4}, 1, "x"),
        "b": ({"ann": 0.6, "cy": 0.7}, 0, "y"),
        "c": ({"ann": 0.1}, 0, "z"),
    }


def test_long_blocks_are_small_where_experts_are_many(monkeypatch):
    rows = [[(f"e{i:02}", f"x{i:02}", 0.5, 1, None) for i in range(20)]]
    assert [block.probabilities.shape for block in long(rows)] == [(19, 19), (1, 1)]
    monkeypatch.setattr(blocks, "CELLS", 40)
    found = long(rows)
    assert max(block.probabilities.size for block in found) <= 20
    assert [event for block in found for event in block.facts.ids] == [event for event, *_ in rows[0]]


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([("a", "ann", 0.5, 1, "x"), ("a", "ann", 0.6, 1, "x")], op.DuplicateError, "'ann' has several on event 'a'"),
        ([("a", "ann", 0.5, 1, "x"), ("a", "bob", 0.6, 0, "x")], op.CellError, "event 'a' have different outcomes"),
        ([("a", "ann", 0.5, 1, "x"), ("a", "bob", 0.6, 1, "y")], op.CellError, "different values in column 'league'"),
        ([("a", None, 0.5, 1, "x")], op.CellError, "a forecast on event 'a' has no expert"),
        ([(None, "ann", 0.5, 1, "x")], op.CellError, "a row has no event id"),
        ([("a", "ann", 5.0, 1, "x")], op.ProbabilityError, "'ann' on event 'a' is 5"),
    ],
)
def test_what_is_wrong_in_a_long_table_is_named(rows, error, message):
    with pytest.raises(error, match=message):
        long([rows])


def test_long_classes():
    layout = Layout(None, ("x", "y", "z"), False, True, ("event",), ())
    rows = {
        "event": ["a"] * 3, "expert": ["ann"] * 3, "class": ["x", "y", "z"], "probability": [0.2, 0.3, 0.5],
    }  # fmt: skip
    (block,) = read_blocks([pa.RecordBatch.from_pydict(rows)], layout)
    assert block.probabilities.tolist() == [[[0.2, 0.3, 0.5]]]
    rows["probability"] = [0.2, 0.3, None]
    with pytest.raises(op.ProbabilityError, match="'ann' on event 'a': a forecast must give a probability for every"):
        list(read_blocks([pa.RecordBatch.from_pydict(rows)], layout))


def test_long_priors_of_classes():
    layout = Layout(None, ("x", "y", "z"), True, False, ("event", "prior"), ())
    rows = {
        "event": ["a", "a", "b"], "expert": ["ann", "bob", "ann"], "probability": [[0.2, 0.3, 0.5]] * 3,
        "prior": pa.array([None, [0.5, 0.25, 0.25], None], pa.list_(pa.float64())),
    }  # fmt: skip
    found = np.concatenate([block.facts.priors for block in read_blocks([pa.RecordBatch.from_pydict(rows)], layout)])
    np.testing.assert_array_equal(found, [[0.5, 0.25, 0.25], [np.nan] * 3])
    rows["prior"] = pa.array([[0.25, 0.5, 0.25], [0.5, 0.25, 0.25], None], pa.list_(pa.float64()))
    with pytest.raises(op.CellError, match="rows about event 'a' have different priors"):
        list(read_blocks([pa.RecordBatch.from_pydict(rows)], layout))


@pytest.mark.parametrize(
    "call",
    [lambda: ops.summarize(None, ["ann"]), lambda: ops.pool(None, None), lambda: ops.scores(None, ["ann"]),
     lambda: ops.rates(None, None, "system"), lambda: ops.PoolEstimator],
)  # fmt: skip
def test_without_pyspark_an_error_names_the_extra(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.delitem(sys.modules, "opinionpool.spark.ml", raising=False)
    with pytest.raises(op.OpinionPoolError, match=r"pip install .*\[spark\]"):
        call()


def test_names():
    assert set(dir(ops)) == {"PoolEstimator", "PoolModel", "pool", "rates", "scores", "summarize"}
    with pytest.raises(AttributeError, match="no attribute 'sumarize'"):
        ops.sumarize  # noqa: B018
