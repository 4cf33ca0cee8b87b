"""Hostile files: whatever stands in them, there is an answer or an error of the project's own. See also `fuzz`."""

import io
import json
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from opinionpool.errors import OpinionPoolError, OpinionPoolWarning
from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import read_beliefs
from opinionpool.learning.learn import learn
from opinionpool.pools.fit import fit_pool
from opinionpool.report import check as describe
from opinionpool.tables.diagnosis import diagnose
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.read import read_forecasts

NAN = float("nan")
FORECASTS = Forecasts.from_array(
    [[0.8, 0.7], [0.2, 0.4], [0.6, NAN], [0.3, 0.1], [0.7, 0.6]], [1, 0, 1, 0, None], experts=["alice", "bob"]
)
WIDE = b"event,ann,bob,outcome\nq1,0.9,80%,1\nq2,0.2,,0\nq3,0.4,0.3,\nq4,0.6,1,1\n"
LONG = (
    b"event;expert;probability;class;time;closes;prior;outcome\nq1;ann;0,45;yes;2025-03-01;2025-03-02;0,5;yes\n"
    b"q1;ann;0,55;no;2025-03-01;2025-03-02;0,5;yes\nq2;bob;0,1;yes;2025-03-03T00:30+02:00;;;\nq2;bob;0,9;no;;;;\n"
)
LINES = b'{"event": "q1", "ann": 0.5, "bob": null, "outcome": true}\n{"event": "q2", "ann": 1e-300, "bob": "20%"}\n'
PIECES = [
    b"\0", b"\xff", b"\xef\xbb\xbf", b'"', b"\r", b"\n", b",", b";", b"{", b"[", b"%", b"'=", b"1e999", b"-", b"NaN",
]  # fmt: skip
PIECES += [b"\xed\xa0\x80", "\u202e\u0301".encode(), b"9" * 400, b"inf", b"0x1p-3", b"1_0", b"\x1f\x8b\x08\0", b"event"]

changes = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from(PIECES) | st.binary(max_size=4)), max_size=5
)
harmless = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def changed(data, edits):
    """The bytes with pieces put in the place of others."""
    for place, removed, piece in edits:
        start = int(place * len(data))
        data = data[:start] + piece + data[start + removed :]
    return data


def answers_or_error(work):
    """Probabilities that somebody's work comes to, if it does not end in an error of ours."""
    try:
        answers = np.asarray(work())
    except OpinionPoolError as error:
        return str(error)
    if not ((answers >= 0) & (answers <= 1)).all():
        raise AssertionError(answers)
    return answers


@pytest.fixture(autouse=True)
def notes_are_no_faults():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", OpinionPoolWarning)
        yield


@harmless
@given(st.sampled_from([WIDE, LONG, LINES]), changes, st.sampled_from([None, "last", "mean"]), st.booleans())
def test_tables(start, edits, duplicates, percent):
    def work():
        data = changed(start, edits)
        describe.examine(diagnose(io.BytesIO(data), options=ReadOptions(duplicates=duplicates, percent=percent)))
        found = read_forecasts(io.BytesIO(data), duplicates=duplicates, percent=percent)
        return fit_pool("average", found).pool(found.X)

    assert len(answers_or_error(work)) < 2000


@harmless
@given(st.binary(max_size=200))
def test_bytes_that_are_no_table(data):
    assert len(answers_or_error(lambda: read_forecasts(io.BytesIO(data)).X[:, :0])) < 2000


KEYS = [
    "calibration", "correlation", "accuracy", "relative_accuracy", "auc", "bias", "worth", "value", "experts", "alice",
    "zoe",
]  # fmt: skip
numbers = st.sampled_from(
    [0, 0.5, 0.9, 1, 1.0, -1, 2, 1e308, -1e308, 1e-300, NAN, float("inf"), 10**30, True, "0.9", [0.5], []]
)
values = st.recursive(numbers, lambda inner: st.dictionaries(st.sampled_from(KEYS), inner, max_size=3), max_leaves=4)


def toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value) if isinstance(value, bool | str) else str(value)


@harmless
@given(st.dictionaries(st.sampled_from(KEYS), values, max_size=4), changes)
def test_files_of_beliefs(tmp_path, stated, edits):
    path = tmp_path / "panel.toml"
    path.write_bytes(changed("".join(f"{key} = {toml(value)}\n" for key, value in stated.items()).encode(), edits))
    assert len(answers_or_error(lambda: learn(FORECASTS, beliefs=read_beliefs(path)).pool(FORECASTS.X))) < 2000
