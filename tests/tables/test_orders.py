"""The order of classes, what an index says, and True beside numbers."""

import numpy as np
import pandas as pd
import pytest

import opinionpool as op


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
