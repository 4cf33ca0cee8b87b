"""Whatever command is offered keeps every forecast that is not named as at fault, and leaves some."""

import io

import numpy as np
from hypothesis import given, settings, strategies as st

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
