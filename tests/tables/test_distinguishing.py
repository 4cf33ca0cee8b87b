"""Rows that say several things of one event: what distinguishes them, and what is offered to keep one."""

import pytest

from opinionpool.errors import DuplicateError
from opinionpool.tables.diagnosis import diagnose

from .reading import read

QUANTILES = "event,expert,quantile,value\n" + "".join(
    f"q{event},{expert},{level},{(level + event) / 4}\n"
    for event in (0, 1, 2)
    for expert in "ab"
    for level in (0.25, 0.5, 0.75)
)
ROW_IDS = (
    "event,expert,forecast_id,p,time,outcome\nq,a,1,.7,2026-01-01,1\nq,a,2,.75,2026-01-01,1\nq,b,3,.2,2026-01-01,1\n"
    "r,a,4,.1,2026-01-01,0\n"
)


@pytest.mark.parametrize(
    ("text", "options", "names", "remedies"),
    [
        (QUANTILES, {}, "'quantile' distinguishes", [{"where": f"quantile = '{q}'"} for q in (0.5, 0.25, 0.75)]),
        (
            QUANTILES.replace("quantile", "round"),
            {},
            "'round'",
            [{"where": f"round = '{q}'"} for q in (0.5, 0.25, 0.75)],
        ),
        # What numbers the rows distinguishes all of them, and says nothing.
        (ROW_IDS, {"duplicates": "last"}, "none is the last", [{"duplicates": "last-row"}, {"duplicates": "mean"}]),
        # A round in which only some answered is not one to keep.
        (
            "event,expert,round,p\nq,a,1,.7\nq,a,2,.6\nq,b,1,.2\n",
            {},
            "'round' distinguishes them",
            [],
        ),
    ],
)
def test_what_distinguishes_rows_of_one_forecast_is_named(text, options, names, remedies):
    with pytest.raises(DuplicateError, match=names) as raised:
        read(text, **options)
    assert list(raised.value.remedies) == remedies


def test_a_way_that_is_offered_leaves_forecasts(tmp_path):
    for text in (QUANTILES, ROW_IDS):
        (tmp_path / "f.csv").write_text(text)
        ways = diagnose(tmp_path / "f.csv").readable
        assert ways
        assert all(len(way.forecasts.probabilities) for way in ways)
