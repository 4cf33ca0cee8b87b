"""Tables, CSV and JSON as people and programs get them."""

import csv
import io
import json
import math
import random
import re

import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len

from opinionpool.report import listing
from opinionpool.report.listing import (
    Column,
    decimal,
    folded,
    percent,
    printable,
    whole,
    write_csv,
    write_json,
    write_table,
)
from opinionpool.text import without_apostrophe

INSIDE = st.floats(0, 1, exclude_min=True, exclude_max=True)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\t\n\r"), max_size=30)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def table(*columns, out=None):
    out = out or io.StringIO()
    write_table(columns, out)
    return out.getvalue().splitlines()


@given(INSIDE)
def test_a_probability_keeps_its_distance_to_the_nearer_end_and_only_certainty_is_shown_as_such(p):
    left = min(p, 1 - p)
    assert percent(p).endswith("%")
    shown = float(percent(p)[:-1]) / 100
    assert 0 < shown < 1
    assert abs(shown - p) <= 0.00050001
    if left > 1e-12:
        assert abs(min(shown, 1 - shown) - left) <= left / 2 * 1.001
    assert [percent(0.0), percent(1.0)] == ["0%", "100%"]


def test_numbers_for_people():
    assert [decimal(-0.0004), decimal(1.23456), whole(12345.0), whole(0.5)] == ["0.000", "1.235", "12,345", "0.5"]


@given(st.lists(st.tuples(NAMES, st.floats(allow_nan=False), st.none() | st.booleans()), min_size=1))
def test_csv_gives_back_what_went_in(rows):
    names, numbers, flags = map(list, zip(*rows, strict=True))
    out = io.StringIO()
    write_csv([Column("a", names, None), Column("x", numbers, "x", decimal), Column("f", flags, "f")], out)
    first, *back = csv.reader(io.StringIO(out.getvalue(), newline=""))
    assert first == ["a", "x", "f"]
    assert [without_apostrophe(row[0]) for row in back] == names
    assert [float(row[1]) for row in back] == numbers
    assert [row[2] for row in back] == [{None: "", True: "true", False: "false"}[flag] for flag in flags]


@pytest.mark.parametrize("more", [[], ["plain"] * 300])
def test_a_csv_shown_on_a_terminal_does_nothing_to_it(more):
    out = io.StringIO()
    write_csv([Column("name", ["two\nlines, \x1b]0;title\x07\x9b2J", "bell\x07", *more], "name")], out)
    assert csv_rows(out)[:3] == [["name"], ["two\nlines, \\x1b]0;title\\x07\\x9b2J"], ["bell\\x07"]]


def csv_rows(out):
    return list(csv.reader(io.StringIO(out.getvalue(), newline="")))


def test_many_numbers_are_written_as_python_writes_one():
    rng = random.Random(8)
    numbers = [0.0, 1.0, 0.1, 1e-5, 9.999e-5, 1e-4, 123456789012345680.0, 5e-324, 1.7976931348623157e308]
    numbers += [math.nextafter(x, way) for x in numbers for way in (0.0, 2.0)]
    while len(numbers) < 2 * listing.MANY:
        x = rng.random()
        numbers += [x, round(x, 3), x * 10.0 ** -rng.randrange(20), 1.0 - x * 10.0 ** -rng.randrange(17)]
    out = io.StringIO()
    write_csv([Column("x", numbers, "x")], out)
    assert out.getvalue().split() == ["x", *map(repr, numbers)]


def test_texts_that_need_quotes_are_found_wherever_they_stand():
    plain = [f"q{i}" for i in range(300)]
    for text in ("a,b", 'a"b', "a\nb", "a\rb", "=a", "'=a", "-a", "\t", ""):
        for at in (0, 150, 300):
            names = [*plain[:at], text, *plain[at:]]
            out = io.StringIO()
            write_csv([Column("name", names, "name")], out)
            rows = [row[0] if row else "" for row in csv.reader(io.StringIO(out.getvalue()))]
            assert list(map(without_apostrophe, rows[1:])) == names


def test_what_only_people_or_only_programs_see():
    columns = [Column("a", ["x"], None), Column("b", ["y"], "b", machine=False)]
    out = io.StringIO()
    write_csv(columns, out)
    assert out.getvalue() == "a\nx\n"
    assert table(*columns) == ["b", "y"]


def test_decimal_points_stand_below_each_other():
    lines = table(Column("p", [0.5, 0.00042, 1.0, None], "p", percent), Column("e", ["a", "b", "c", "d"], "e"))
    assert lines == ["      p  e", "50.0%    a", " 0.042%  b", "   100%  c", "         d"]


@given(st.lists(NAMES, min_size=1, max_size=5), st.integers(30, 80))
def test_columns_stay_in_line_and_within_the_terminal(names, width):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        patch.setenv("NO_COLOR", "1")
        out = Terminal()
        write_table([Column("e", names, "event"), Column("p", [0.5] * len(names), "probability", percent)], out)
    lines = out.getvalue().split("\n")
    assert all(cell_len(line) <= width for line in lines)
    rows = [line for line in lines if line.endswith("50.0%")]
    assert len(rows) == len(names)
    assert len({cell_len(row) for row in rows}) == 1


def test_a_table_elsewhere_than_on_a_terminal_is_as_wide_as_it_needs(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert table(Column("e", ["x" * 300], "event")) == ["event", "x" * 300]


def test_a_narrow_terminal_leaves_out_what_can_be_spared(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    columns = [
        Column("e", ["x" * 18], "event"),
        Column("a", [1234567], "alpha", whole, spare=2),
        Column("b", [1234567], "beta", whole, spare=1),
        Column("c", [1234567], "gamma", whole),
    ]
    for width, header, lines in [
        (60, "alpha beta gamma", 2),
        (40, "beta gamma", 2),
        (38, "beta gamma", 3),
        (29, "gamma", 2),
        (20, "gamma", 3),
    ]:
        monkeypatch.setenv("COLUMNS", str(width))
        shown = table(*columns, out=Terminal())
        assert shown[0].split()[1:] == header.split()
        assert len(shown) == lines
        assert max(map(len, shown)) <= width


def test_both_ends_of_an_interval_are_left_out_together(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    columns = [
        Column("e", ["x" * 8], "event"),
        Column("low", [0.125], "from", decimal, spare=3),
        Column("high", [0.875], "to", decimal, spare=3),
        Column("n", [1234567], "number", whole, spare=1),
    ]
    for width, header in [(33, "event from to number"), (30, "event number"), (15, "event")]:
        monkeypatch.setenv("COLUMNS", str(width))
        assert table(*columns, out=Terminal())[0].split() == header.split()


@given(NAMES)
def test_nothing_printed_moves_the_cursor(name):
    shown = printable(name)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", shown)
    assert shown == name or "\\" in shown


@given(st.text("ab 漢é ", max_size=60), st.integers(4, 20))
def test_folded_lines_fit_and_keep_every_letter(text, width):
    lines = folded(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_json_is_one_object_with_a_record_in_a_line():
    out = io.StringIO()
    write_json("events", [{"event": 'a"\n', "p": 0.1 + 0.2}, {"event": "é", "p": None}], {"n": 2}, out)
    assert json.loads(out.getvalue()) == {
        "events": [{"event": 'a"\n', "p": 0.1 + 0.2}, {"event": "é", "p": None}],
        "summary": {"n": 2},
    }
    assert len(out.getvalue().splitlines()) == 6


def test_json_never_holds_nan():
    with pytest.raises(ValueError, match=r"not JSON compliant|Out of range"):
        write_json("events", [{"p": math.nan}], {}, io.StringIO())
