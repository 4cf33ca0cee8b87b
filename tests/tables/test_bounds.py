"""Small files that would fill the memory or take hours are refused before the engine reads them; large ones are not."""

import gzip
import io
import json
import tracemalloc

import pytest

from opinionpool.errors import DuplicateError, LayoutError, TableError
from opinionpool.tables.engine import CELLS, COLUMNS, RATIO, SMALL
from opinionpool.tables.read import read_forecasts

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def wide(columns):
    names = [f"e{i}" for i in range(columns)]
    return ",".join(["event", *names]) + "\n" + ",".join(["q", *["0.5"] * columns]) + "\n"


def packed(start, filler, size):
    """A gzip file of `size` bytes of filler after a start."""
    buffer = io.BytesIO()
    with gzip.open(buffer, "wb", compresslevel=9) as file:
        file.write(start)
        for _ in range(size >> 20):
            file.write(filler * ((1 << 20) // len(filler)))
    return buffer.getvalue()


def parquet(table):
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def refused(data, told, error=TableError):
    with pytest.raises(error, match=told):
        read_forecasts(io.BytesIO(data if isinstance(data, bytes) else data.encode()))


def test_very_many_columns():
    refused(wide(COLUMNS), "10,001 columns, and at most 10,000 are read; write a row for each forecast", LayoutError)
    refused("," * 1_000_000 + "\n", "1,000,001 columns", LayoutError)
    refused(json.dumps(dict.fromkeys(map(str, range(COLUMNS + 1)), 0.5)), "10,001 columns", LayoutError)
    columns = {f"e{i}": [0.5] for i in range(COLUMNS + 1)}
    refused(parquet(pa.table(columns)), "10,001 columns", LayoutError)


def test_very_many_classes():
    rows = "".join(f"q,ann,c{i},0\n" for i in range(1001))
    refused("event,expert,class,p\n" + rows, "1,001 classes, and at most 1,000 are pooled", LayoutError)


def test_objects_with_keys_of_their_own():
    """Each object has one key that no other has, so a table of them has a cell for each pair."""
    rows = "\n".join(json.dumps({"event": i, f"k{i}": 0.5}) for i in range(2500))
    refused(rows, r"2,500 rows and 2,501 columns, nearly all of whose cells are empty")


def test_parquet_that_says_the_same_in_all_rows():
    rows = CELLS // 2 + 1
    alike = pa.array([0.5]).take(pa.array([0] * rows, pa.int8()))
    refused(parquet(pa.table({"event": alike, "ann": alike})), f"{rows:,} rows and 2 columns, nearly all of whose")


@pytest.mark.parametrize(("start", "filler"), [(b"", b"\0"), (b"event,ann\nq,0.5\n", b"\n"), (b"", b"x"), (b"{", b" ")])
def test_compressed_files_that_grow_beyond_measure(start, filler):
    data = packed(start, filler, SMALL + (2 << 20))
    assert len(data) * RATIO < SMALL
    tracemalloc.start()
    refused(data, f"unpacks to more than {RATIO} times its [0-9,]+ bytes")
    assert tracemalloc.get_traced_memory()[1] < SMALL / 4
    tracemalloc.stop()


def test_compressed_forecasts_that_are_all_alike_are_read():
    lines = b"".join(b"q%d,0.5\n" % i for i in range(100_000))
    assert read_forecasts(io.BytesIO(gzip.compress(b"event,ann\n" + lines))).shape == (100_000, 1)


def test_cells_and_lines_without_end():
    long = "x" * 200_000
    refused(f'event,ann\n"{long * 20}",0.5\n', "begins in line 2 has a cell of more than 131,072 characters")
    refused(f"event,ann\nq,{long}\nr,0.5\n", "line 2 has a cell of more than 131,072 characters")
    refused(long, "its first line has a cell of more than 131,072 characters")
    refused('event,ann\n"' + "q,1\n" * 100_000, "is a double quote there that is not closed")


def test_deep_json():
    depth = 100_000
    refused('{"event":' * depth + "1" + "}" * depth, "no column holds forecasts|is not JSON")
    refused('{"event":"q","ann":' + "[" * depth + "]" * depth + "}", "is not a number|no column holds|is not JSON")


def test_an_expert_who_repeats_himself_in_very_many_rows_is_refused_by_the_first(monkeypatch):
    from opinionpool.tables import parse

    monkeypatch.setattr(parse, "_HEAD", 500)
    rows = "".join(f"q{i},ann,0.5\nq{i},bob,0.4\n" for i in range(30_000))
    header = "event,expert,probability\n"
    assert len(read_forecasts(io.BytesIO((header + rows).encode())).events) == 30_000
    again = header + "q1,ann,0.5\n" * 60_000
    with pytest.raises(DuplicateError, match=r"only one forecast on an event.*lines 2, 3, 4, 5, 6") as caught:
        read_forecasts(io.BytesIO(again.encode()))
    assert caught.value.remedies == ({"duplicates": "last"}, {"duplicates": "mean"})
    assert read_forecasts(io.BytesIO(again.encode()), duplicates="last").X.tolist() == [[0.5]]


def test_so_is_one_whose_rows_are_read_in_parts(tmp_path, monkeypatch):
    from opinionpool.tables import parse
    from opinionpool.tables.options import ReadOptions
    from opinionpool.tables.parts import open_parts

    path, read, melt = tmp_path / "long.csv", [], parse.melt
    path.write_text("event,expert,probability\n" + "q1,ann,0.5\n" * 60_000)
    monkeypatch.setattr(parse, "_HEAD", 500)
    monkeypatch.setattr(parse, "melt", lambda table, *more: read.append(table.rows) or melt(table, *more))
    with pytest.raises(DuplicateError, match="only one forecast"), open_parts(path, None, ReadOptions()):
        pass
    assert read == [500]
