"""Whatever command is offered keeps every forecast that is not named as at fault, and leaves some."""

import io

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from opinionpool import read_forecasts
from opinionpool.errors import CellError, LayoutError
from opinionpool.tables.diagnosis import diagnose

CELLS = st.sampled_from(["0.1", "0.5", "0.25", "0.9", "0.75"])
FAULTY = st.sampled_from(["-1", "8", "55", "n.v.", "?"])


@settings(max_examples=15, derandomize=True, deadline=None)
@given(st.data())
def test_offered_commands_keep_forecasts_that_are_not_at_fault(data):
    events, experts = data.draw(st.integers(4, 8)), ["ann", "bob", "cyd"]
    cells = [[data.draw(CELLS) for _ in experts] for _ in range(events)]
    faults = {
        (data.draw(st.integers(0, events - 1)), data.draw(st.integers(0, 2))): data.draw(FAULTY) for _ in range(2)
    }
    for (i, j), word in faults.items():
        cells[i][j] = word
    lines = [f"q{i},{','.join(row)},{i % 2}" for i, row in enumerate(cells)]
    text = "\n".join([f"event,{','.join(experts)},outcome", *lines]) + "\n"
    for way in diagnose(io.BytesIO(text.encode())).readable:
        found = way.forecasts
        assert found.events == tuple(f"q{i}" for i in range(events))
        for i, row in enumerate(cells):
            for j, cell in enumerate(row):
                if (i, j) not in faults:
                    np.testing.assert_allclose(found.X[i, found.experts.index(experts[j])], float(cell))


def read(text, outcomes=None, **options):
    other = None if outcomes is None else io.BytesIO(outcomes.encode())
    return read_forecasts(io.BytesIO(text.encode()), outcomes=other, **options)


def test_options_are_those_of_the_forecasts_that_count():
    rows = ["q1,ann,a,.5,2026-01-01", "q1,ann,gone,.5,2026-01-01", "q1,ann,a,.4,2026-01-02", "q1,ann,b,.6,2026-01-02"]
    text = "\n".join(["event,expert,option,p,time", *rows, "q2,ann,c,.3,2026-01-01", "q2,ann,d,.7,2026-01-01"])
    found = read(text, duplicates="last", options="event")
    assert found.options == (("a", "b"), ("c", "d"))
    np.testing.assert_allclose(found.probabilities, [0.6, 0.7])
    # What came too late supersedes nothing.
    late = text.replace("time", "time,closes").replace("2026-01-01", "2026-01-01,2026-01-01T12:00")
    late = late.replace("2026-01-02", "2026-01-02,2026-01-01T12:00")
    assert read(late, duplicates="last", options="event").options == (("a", "gone"), ("c", "d"))


FORECASTS = "event,expert,p\nq1,a,.7\nq1,b,.6\nq2,a,.2\nq2,b,.3\n"


def test_a_condition_is_of_the_file_of_outcomes_where_that_alone_has_its_columns():
    outcomes = "event,outcome,version\nq1,1,1\nq1,0,2\nq2,1,2\n"
    with pytest.raises(CellError, match="two outcomes"):
        read(FORECASTS, outcomes)
    assert read(FORECASTS, outcomes, where="version = 2").outcomes.tolist() == [0, 1]
    assert read(FORECASTS, "event,outcome\nq1,1\nq2,0\n", where="expert = 'a'").experts == ("a",)
    with pytest.raises(LayoutError, match="'nothing', which is not there"):
        read(FORECASTS, outcomes, where="nothing = 2")


def test_two_names_of_the_event_are_one_each_of_both_files():
    forecasts, outcomes = FORECASTS.replace("event", "office"), "state,outcome\nq1,1\nq2,0\n"
    found = read(forecasts, outcomes, columns={"event": ["office", "state"]})
    assert (found.events, found.outcomes.tolist()) == (("q1", "q2"), [1, 0])
