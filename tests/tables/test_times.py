"""Times: one instant whatever the zone, and no guessing at the order of day and month."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionpool.errors import ArgumentError, CellError
from opinionpool.tables.read import read_forecasts
from opinionpool.tables.table import read_frame
from opinionpool.tables.times import as_time, read_times


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2025-03-01", "2025-03-01T00:00"), ("2025-03-01T00:30+02:00", "2025-02-28T22:30"),
        ("2025-03-01 10:00", "2025-03-01T10:00"), ("2025-03-01T10:00:30.25Z", "2025-03-01T10:00:30.25"),
        ("2025-03-01 11:00:00+00", "2025-03-01T11:00"), ("2025-03-01T10:00+0530", "2025-03-01T04:30"),
        ("2025-03-01 10:00 UTC", "2025-03-01T10:00"), ("2025/3/1", "2025-03-01T00:00"),
        ("2025-03-01 20:30 PST", "2025-03-02T04:30"), ("1 March 2025 10:00 CEST", "2025-03-01T08:00"),
        ("2025-03-01 10:00 UTC+2", "2025-03-01T08:00"), ("2025-03-01 10:00 gmt-03:30", "2025-03-01T13:30"),
        ("2025/03/01 9:33:05 pm GMT+1", "2025-03-01T20:33:05"),
        ("2025.03.01 9:05", "2025-03-01T09:05"), ("2025-03-01T10:00:00.123456789", "2025-03-01T10:00:00.123456"),
    ],
)  # fmt: skip
def test_forms_that_are_understood(text, instant):
    assert as_time(text, "as_of") == np.datetime64(instant, "us")


OTHERS = """
2025 | 2025-03 | 1740787200 | 2025-02-30 | 2025-03-01T25:00 | yesterday | 2025-W09-6 | 20250301
| 2025-03-01x10:00 | 2025-03-01 10:00 IST | 0001-01-01T00:00+14:00 | 2025-03-01T10:00+25:00
"""


@pytest.mark.parametrize("text", [text.strip() for text in OTHERS.split("|")])
def test_other_forms_are_refused_with_the_place_and_an_example(text):
    table = read_frame({"time": ["2025-03-01", text]})
    with pytest.raises(
        CellError,
        match=r"the table, row 1, column 'time': .* is not a time: write times as 2025-03-01 .*--column time= ",
    ):
        read_times(table, 0)


@given(
    st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)),
    st.one_of(st.none(), st.integers(-14 * 60, 14 * 60)),
    st.sampled_from(["T", " "]),
)
def test_every_iso_time_is_its_instant(naive, minutes, separator):
    zone = None if minutes is None else timezone(timedelta(minutes=minutes))
    moment = naive.replace(tzinfo=zone)
    expected = moment.replace(tzinfo=UTC) if zone is None else moment.astimezone(UTC)
    assert as_time(moment.isoformat(separator), "as_of") == np.datetime64(expected.replace(tzinfo=None), "us")
    assert as_time(moment, "as_of") == as_time(moment.isoformat(), "as_of")


def test_blank_cells_are_unknown_times():
    times = read_times(read_frame({"time": ["2025-03-01", None, "NA", "NaT"]}), 0)
    assert np.isnat(times).tolist() == [False, True, True, True]


def test_arguments_that_are_times():
    instant = np.datetime64("2025-03-01T00:00", "us")
    for value in ("2025-03-01", date(2025, 3, 1), datetime(2025, 3, 1), np.datetime64("2025-03-01"), instant):
        assert as_time(value, "as_of") == instant
    for value in ("soon", 20250301, None, np.datetime64("NaT", "us")):
        with pytest.raises(ArgumentError, match="as_of must be a time, and"):
            as_time(value, "as_of")


@pytest.mark.parametrize(
    ("text", "dates", "expected"),
    [
        ("21/04/2025", None, "2025-04-21"),
        ("04/21/2025", None, "2025-04-21"),
        ("03/04/2025", "dmy", "2025-04-03"),
        ("03/04/2025", "mdy", "2025-03-04"),
        ("2025-04-03", "dmy", "2025-04-03"),
        ("3.4.2025 14h", "%d.%m.%Y %Hh", "2025-04-03T14"),
        ("2/13/2025 2:01 PM EST", None, "2025-02-13T19:01"),
        ("2/13/2025 14.01 EST", "%m/%d/%Y %H.%M %Z", "2025-02-13T19:01"),
        ("2/13/2025 14.01 EST", "%m/%d/%Y %H.%M EST", "2025-02-13T19:01"),
        ("2025-04-03", "%d.%m.%Y", "2025-04-03"),
    ],
)
def test_arguments_are_read_as_columns_are(text, dates, expected):
    assert as_time(text, "--as-of", dates) == np.datetime64(expected, "us")


def test_an_argument_that_can_be_read_in_two_ways_asks_which():
    with pytest.raises(
        ArgumentError, match=r"--as-of can be read in two ways, and it is '03/04/2025': say --dates dmy"
    ):
        as_time("03/04/2025", "--as-of")


def test_days_of_spreadsheets_are_read_to_the_second():
    moments = [datetime(2026, 1, 18, 23, 0, 0), datetime(2026, 1, 19, 7, 45, 13)]
    for digits in (6, 9, 12):
        days = [f"{(moment - datetime(1899, 12, 30)) / timedelta(days=1):.{digits}f}" for moment in moments]
        found = read_times(read_frame({"time": days}), 0)
        assert found.astype("datetime64[s]").tolist() == moments, digits
        assert (found == found.astype("datetime64[s]")).all()


def test_zones_that_are_named_are_noted():
    table = {"event": ["q", "r"], "a": [0.5, 0.5], "time": ["2025-02-01 20:30 PST", "2/13/2025 2:01 PM CET"]}
    (note,) = [note.text for note in read_forecasts(table).notes if note.code == "dates"]
    assert note == "column 'time' read as dates with months first with CET as UTC+1 and PST as UTC-8"
