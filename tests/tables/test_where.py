"""Conditions on rows: what they mean, and that nothing but conditions gets to the engine."""

import io

import pytest

from opinionpool.errors import ArgumentError, LayoutError, TableError
from opinionpool.tables.read import read_forecasts

TEXT = """event,expert,p,kind,stars,my note
q1,ann,0.5,human,3,
q2,bob,0.25,bot,10,x
q3,cy,0.75,,2.5,it's
q4,di,0.1,Bot,,x
"""


def events(where, source=TEXT):
    return read_forecasts(io.BytesIO(source.encode()), where=where).events


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("kind = 'human'", "q1"),
        ("kind == 'human' or kind = 'bot'", "q1 q2"),
        ("kind <> 'bot'", "q1 q3 q4"),  # a blank differs from every value
        ("kind != 'bot' and kind is not blank", "q1 q4"),
        ("kind is blank", "q3"),
        ("not kind is blank and not (stars > 5)", "q1 q4"),
        ("stars >= 3", "q1 q2"),  # as numbers: 10 is more than 3
        ("stars < 3", "q3"),
        ("stars <> 3", "q2 q3 q4"),
        ("stars > -1e3 and stars < .3e1", "q3"),
        ("kind in ('bot', 'Bot')", "q2 q4"),
        ("stars in (3, 2.5)", "q1 q3"),
        ("kind not in ('bot', 'human')", "q3 q4"),
        ("\"my note\" = 'it''s'", "q3"),
        ("`my note` = 'x' AND NOT event > 'q2'", "q2"),
        ("event = expert or KIND = 'human'", "q1"),
        ("stars > p", "q1 q2 q3"),
    ],
)
def test_what_conditions_mean(where, kept):
    assert events(where) == tuple(kept.split())
    table = {name: list(cells) for name, *cells in zip(*(line.split(",") for line in TEXT.splitlines()), strict=True)}
    table["p"] = [float(cell) for cell in table["p"]]
    assert read_forecasts(table, where=where).events == tuple(kept.split())


@pytest.mark.parametrize(
    "where",
    ["event in (SELECT path FROM glob('/*'))", "(SELECT 1) = 1", "read_text('/etc/passwd') = 'x'",
     "event = getenv('HOME')", "lower(kind) = 'bot'", "kind = 'bot'; DROP TABLE t", "kind = 'bot' -- and so on",
     "kind = 'bot' /* */", "kind = 'bot' UNION SELECT 1", "kind LIKE '%b%'", "1 = 1", "kind", "kind =", "kind = ?",
     "kind = $1", "kind::INTEGER = 1", "kind[1] = 'b'", "kind = 'bot", "", "(" * 100 + "kind = 'bot'" + ")" * 100,
     "kind = 'a' or " * 1000 + "kind = 'b'"],
)  # fmt: skip
def test_nothing_else_is_understood(where):
    with pytest.raises((ArgumentError, LayoutError), match="--where"):
        events(where)


@pytest.mark.parametrize(
    ("where", "source", "told"),
    [
        ("kidn = 'bot'", TEXT, "the column 'kidn', which is not there; did you mean 'kind'"),
        ("kind = human", TEXT, "'human', which is not there; .*if it is a value, put it in single quotes"),
        ("stars > 99", TEXT, "no row of the file meets --where stars > 99"),
        # Errors name the lines of the file, whatever rows are left.
        ("kind <> 'human'", TEXT.replace("0.1,Bot", "1.5,Bot"), r"line 5, column 'p': 1\.5 is not between"),
        ("p > 1", "event,p\na,0.5\n", "no row of the file meets --where"),
    ],
)
def test_columns_that_are_not_there_and_rows_that_are_not_left(where, source, told):
    with pytest.raises(TableError, match=told):
        events(where, source)


def test_a_note_counts_the_rows_that_are_left_out():
    frame = {"event": ["q1", "q2", "q3", "q4"], "ann": [0.5, 0.2, 0.7, 0.1], "stars": [3, 10, 2.5, None]}
    file = io.BytesIO(TEXT.encode())
    for found in (read_forecasts(file, where="stars < 9"), read_forecasts(frame, where="stars < 9", exclude=["stars"])):
        assert [note.text for note in found.notes if note.code == "where"] == ["2 of 4 rows left out by --where"]
    every = read_forecasts(frame, where="ann > 0", exclude=["stars"])
    assert "where" not in {note.code for note in every.notes}
