"""Words of long columns, found by the engine, against those found cell by cell."""

import random
from functools import cache

import numpy as np
import pytest

from opinionpool.errors import TableError
from opinionpool.tables import table as table_module
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.read import open_file, read_forecasts
from opinionpool.tables.table import encode

ROWS = 30_000
COLUMNS = ("together", "few", "many", "untidy", "whole", "fraction")


@cache
def cells():
    """The cells of each column."""
    rng = random.Random(3)
    return [
        [f"q{i // 7}" for i in range(ROWS)],
        rng.choices(["ann", "bob", "zoe", ""], k=ROWS),
        [f"w{i}" for i in rng.choices(range(9_000), k=ROWS)],
        rng.choices(["'=a", "=a", " x", "x", "x ", "", "-1", "'-1"], k=ROWS),
        rng.choices(["1", "12", ""], k=ROWS),
        rng.choices(["1.0", "0.5", "2.50", ""], k=ROWS),
    ]


@pytest.fixture(scope="module", params=["csv", "parquet"])
def table(request, tmp_path_factory):
    import duckdb

    csv = tmp_path_factory.mktemp("coded") / "t.csv"
    lines = [",".join(COLUMNS), *map(",".join, zip(*cells(), strict=True))]
    csv.write_text("\n".join(lines) + "\n")
    if request.param == "csv":
        with open_file(str(csv), ReadOptions()) as found:
            yield found
        return
    other = csv.with_suffix(".parquet")
    duckdb.sql(f"COPY (FROM read_csv('{csv}', nullstr='')) TO '{other}'")
    with open_file(str(other), ReadOptions()) as found:
        yield found


def cell_by_cell(table, column):
    return encode(table.select(f"{table.text(column)} AS c")["c"].tolist())


def same(one, other):
    return one.texts() == other.texts() and one.values == other.values and one.trimmed == other.trimmed


@pytest.mark.parametrize("column", range(len(COLUMNS)))
def test_words_are_those_of_the_cells(table, column, monkeypatch):
    assert same(table.words(column), cell_by_cell(table, column))
    part = table.rows_from(101, 25_000)
    assert same(part.words(column), cell_by_cell(part, column))
    # Where hashes do not do, cells are compared by themselves.
    monkeypatch.setattr(table_module.Table, "_places", lambda table, hashed, keys: None)
    assert same(table.rows_from(101, 25_000).words(column), cell_by_cell(part, column))


def test_rows_that_are_looked_at_are_those_of_the_file(table):
    spans = [(0, 300), (12_000, 40), (29_900, 100)]
    for (first, rows), part in zip(spans, table.looks(spans), strict=True):
        other = table.rows_from(first, rows)
        for column in range(len(COLUMNS)):
            assert same(part.words(column), other.words(column))
        assert part.place([0, 7]) == other.place([0, 7])


def test_two_words_of_one_hash_are_noticed(table):
    assert table._places("hash(c1)", np.array([5, 7, 5], np.uint64)) is None


def test_a_file_whose_columns_turn_out_to_be_damaged_is_named(tmp_path):
    import duckdb

    path = tmp_path / "f.parquet"
    duckdb.sql(
        f"COPY (SELECT 'event ' || hash(i) AS event, 'e' || i % 3 AS expert, random() AS probability "
        f"FROM range(50000) AS a(i)) TO '{path}' (COMPRESSION zstd)"
    )
    data = bytearray(path.read_bytes())
    data[2_000:90_000] = bytes(88_000)
    path.write_bytes(data)
    with pytest.raises(TableError, match=r"f\.parquet cannot be read as Parquet"):
        read_forecasts(path)


def test_numbers_of_long_columns_are_those_of_short_ones(table):
    for column in (4, 5):
        (long,) = table.numbers([column], frozenset())
        short = [table.rows_from(first, 10_000).numbers([column], frozenset())[0] for first in range(0, ROWS, 10_000)]
        np.testing.assert_array_equal(long.values, np.concatenate([part.values for part in short]))
        expected = [float(cell or "nan") for cell in cells()[column]]
        np.testing.assert_array_equal(long.values, expected)
    assert table.numbers([0, 3], frozenset()) == [None, None]


def test_words_for_no_answer_among_numbers_are_told_alike_in_long_and_short_columns(tmp_path):
    cells = ["0.5", "NA", "1e-3", "-", "7"]
    cells += [".25"] * (ROWS - len(cells))
    for missing, odd in ((frozenset({"na", "-"}), ""), (frozenset({"na"}), ""), (frozenset({"na", "-"}), "1_0")):
        (tmp_path / "t.csv").write_text(
            "\n".join(["a,b,c,d,e,f,g,h,i,j", *(f"{cell},,,,,,,,," for cell in [*cells, odd])])
        )
        with open_file(str(tmp_path / "t.csv"), ReadOptions()) as long:
            (found,), (short,) = long.numbers([0], missing), long.rows_from(0, 5).numbers([0], missing)
        assert (found is None) == (missing != {"na", "-"} or odd != "")
        if found is not None:
            np.testing.assert_array_equal(found.values[:5], short.values)
            assert found.words == short.words == 2


def _long_file(path, change=list):
    """Three thousand events of eight forecasts each, some without an outcome."""
    outcomes = ["", "yes", "no", "yes"]
    rows = [
        [f"q{i // 8}", "abcdefgh"[i % 8], str(0.1 + i % 7 / 10), outcomes[0 if i < 24 else i // 8 % 4]]
        for i in range(24_000)
    ]
    lines = ["event,expert,probability,outcome", *map(",".join, change(rows))]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def _outcome_changed(rows):
    rows[20_009][3] = "no"
    return rows


def _events_with_blanks(rows):
    rows[20_001][0], rows[20_002][0] = " q2500 ", ""
    rows[20_002][2] = ""
    return rows


def _read(path):
    from opinionpool.errors import CellError

    try:
        f = read_forecasts(path, positive="yes")
    except CellError as error:
        return str(error), error.count
    return f.events, f.outcomes.tolist(), f.expert_index.tolist(), f.probabilities.tolist(), [n.text for n in f.notes]


@pytest.mark.parametrize("change", [list, _outcome_changed, _events_with_blanks, lambda rows: rows[::-1], sorted])
def test_what_stands_together_is_read_as_if_cell_by_cell(tmp_path, monkeypatch, change):
    path = _long_file(tmp_path / "f.csv", change)
    quick = _read(path)
    monkeypatch.setattr(table_module, "_MANY", 1 << 30)
    assert quick == _read(path)
