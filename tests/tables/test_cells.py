"""Cells of numbers: what is understood, in which unit, and what is refused with which words."""

import io
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from opinionpool.errors import ArgumentError, CellError, TableError
from opinionpool.tables.read import read_forecasts
from opinionpool.tables.table import encode, read_frame
from opinionpool.tables.units import Coerced, NumberRules, half_units, looks_numeric, read_probabilities


def read(cells, name="A", **rules):
    """A column of text as fractions, and the log of what was done."""
    table = read_frame({name: cells})
    log = Coerced()
    values = read_probabilities(table, 0, table.numbers([0], frozenset())[0], NumberRules(**rules), log)
    return values.tolist(), log


@pytest.mark.parametrize(
    ("cells", "rules", "expected", "codes"),
    [
        (["0.5", "1", "40"], {"percent": True}, [0.005, 0.01, 0.4], ["percent"]),
        (["45", "7.5"], {"name": "p (%)"}, [0.45, 0.075], ["percent"]),
        (["45", "1"], {"name": "pct_yes"}, [0.45, 0.01], ["percent"]),
        (["0.5"], {"name": "Percentile Labs"}, [0.5], []),
        (["0.5", "1"], {"percent": True}, [0.005, 0.01], ["percent", "percent-tiny"]),
        (["0,5", ",25", "1", "1,0e-1"], {}, [0.5, 0.25, 1.0, 0.1], ["decimal-comma"]),
        (["45,5%", "3 %"], {}, [0.455, 0.03], ["percent", "decimal-comma"]),
        (["0,5", "1"], {"decimal": ","}, [0.5, 1.0], ["decimal-comma"]),
        (["1.0000001", "-1e-9", "0.5"], {}, [1.0, 0.0, 0.5], ["overshoot"]),
    ],
)
def test_the_unit_and_the_decimal_mark_are_decided_for_the_column(cells, rules, expected, codes):
    values, log = read(cells, **rules)
    assert values == expected
    assert [note.code for note in log.notes()] == codes
    assert [note.code for note in log.notes() if note.serious] == [code for code in codes if code == "percent-tiny"]


@pytest.mark.parametrize(
    ("cells", "rules", "told"),
    [
        (["45%", "", "0.2"], {}, r"column 'A' mixes '45%' \(the table, row 0\) and '0.2' \(the table, row 2\)"),
        (["0.5", "1", "40"], {}, r"row 2, column 'A': 40 is not between 0 and 1; correct the cell"),
        (
            ["0.45", "1"],
            {"name": "p_percent"},
            "'p_percent' is about per cent by its name.*--percent if 0.5 means 0.5%",
        ),
        (["0,5", "0.4"], {}, r"mixes '0,5' .* and '0.4' .*decimal commas or decimal points, not both"),
        (["0.5"], {"decimal": ","}, r"'0.5' does not have the decimal mark ',' that was named"),
        (["0,5"], {"decimal": "."}, r"'0,5' does not have the decimal mark '.' that was named"),
        (["0.5"], {"decimal": ";"}, r"decimal mark is '.' or ',', and not ';'"),
    ],
)
def test_a_column_that_mixes_units_or_marks_is_asked_about(cells, rules, told):
    with pytest.raises((CellError, ArgumentError), match=told):
        read(cells, **rules)


def test_percent_is_proposed_only_where_the_whole_column_could_be_one():
    for column in (["0.7", "-1", "99"], ["0.7", "140"]):
        with pytest.raises(CellError) as caught:
            read(column)
        assert "--percent" not in str(caught.value)


@pytest.mark.parametrize("word", ["", " ", "NA", "n/a", "#N/A", "NaN", "null", "None", "-", "--", ".", "–", None])
def test_words_for_no_answer(word):
    values, _ = read(["0.5", word])
    assert values[0] == 0.5
    assert math.isnan(values[1])


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("inf", "'inf' is not between 0 and 1"), ("-Infinity", "'-Infinity' is not between 0 and 1"),
        ("3:1", "'3:1' looks like odds, which may be for or against"), ("1/4", "looks like odds"),
        ("abc", r"'abc' is not a number: write a fraction \(0.45\) or a percentage \(45%\).*--missing-value abc"),
        ("1_0", "'1_0' is not a number"), ("0x1", "is not a number"), ("0.5.1", "is not a number"),
        ("<1%", r"is not a number: write a fraction \(0.45\) or a percentage \(45%\)$"),
        ("about 40%", r"\(45%\)$"), ("don't know", '--missing-value "don\'t know"'),
        ("9" * 400, "999 is not between 0 and 1"), ("1e99999", "1e99999 is not between 0 and 1"),
        ("x" * 500, "'x{57}...' is not a number"),
    ],
)  # fmt: skip
def test_what_is_no_probability_is_refused_with_the_way_out(cell, told):
    with pytest.raises(CellError, match=f"the table, row 1, column 'A': .*{told}"):
        read(["0.5", cell])


@settings(max_examples=20)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.sampled_from(["plain", "comma", "percent"]))
def test_numbers_come_back_as_they_were_written(numbers, style):
    written = [repr(number) for number in numbers]
    if style == "comma":
        written = [text.replace(".", ",") for text in written]
    elif style == "percent":
        # Exact in decimal, so that reading may round once when parsing and once when dividing.
        written = [f"{Decimal(text) * 100}%" for text in written]
    values, _ = read(written)
    if style == "percent":
        np.testing.assert_allclose(values, numbers, rtol=4e-16, atol=1e-323)
    else:
        assert values == numbers


@given(st.lists(st.decimals(0, 1, places=3), min_size=1, max_size=6), st.booleans())
def test_half_a_unit_of_the_last_digit_bounds_what_rounding_took_away(numbers, percent):
    written = [f"{number * 100:.1f}%" if percent else f"{number:.3f}" for number in numbers]
    expected = 0.0005
    assert half_units(encode(written)).tolist() == pytest.approx([expected] * len(numbers))


def test_half_units_of_whole_numbers_and_of_unmarked_percentages():
    assert half_units(encode(["1", "0", None, "junk"])).tolist() == [0, 0, 0, 0]
    assert half_units(encode(["33", "33.5"]), percent=True).tolist() == pytest.approx([0.005, 0.0005])


def test_words_are_told_from_unreadable_numbers():
    assert [looks_numeric(word) for word in ("5-10 %", "−0,5", "3 : 1", "inf", "Q1", "2024-01-01")] == [True] * 4 + [
        False
    ] * 2


# Kinds of numbers that are no probabilities: what the error says, and the options that `check` may print.
KINDS = [
    (
        "levels of a scale",
        ["8", "3", "10", "6"],
        "levels in order, 1-10, and no codes of classes, say --scale",
        [{"scale": {"*": "1-10"}}],
    ),
    ("ratings", ["5", "1", "4", "1"], "whole numbers from 1 to 5 are a scale", [{"scale": {"*": "1-5"}}]),
    ("decimal odds", ["1.80", "2.10", "3.4", "15"], "may be decimal odds", []),
    ("one stray number", ["0.2", "0.7", "8", "0.4"], "correct the cell", []),
    ("no answer", ["0.2", "-1", "0.7", "-1", "0.3", "0.9"], "stands for no answer", [{"missing_values": ("-1",)}]),
    ("percentages", ["20", "75", "8", "40"], "holds percentages", [{"percent": True}]),
]


@pytest.mark.parametrize(("numbers", "text", "remedies"), [row[1:] for row in KINDS], ids=[row[0] for row in KINDS])
def test_numbers_that_are_no_probabilities_are_recognised(numbers, text, remedies):
    rows = "".join(f"q{i},{number},{i % 2}\n" for i, number in enumerate(numbers))
    with pytest.raises(CellError, match=text) as caught:
        read_forecasts(io.BytesIO(f"event,ann,outcome\n{rows}".encode()))
    assert [dict(each) for each in caught.value.remedies] == remedies


def test_a_remedy_for_a_half_settled_market_takes_no_forecast_away():
    rows = "event,ann,outcome\na,0.5,1\nb,0.3,0\nc,0.5,0.5\nd,0.6,1\n"
    with pytest.raises(TableError) as caught:
        read_forecasts(io.BytesIO(rows.encode()))
    (remedy,) = caught.value.remedies
    assert remedy == {"void_values": ("0.5",)}
    found = read_forecasts(io.BytesIO(rows.encode()), **remedy)
    assert found.probabilities.tolist() == [0.5, 0.3, 0.6]
    assert found.void.events == ("c",)
