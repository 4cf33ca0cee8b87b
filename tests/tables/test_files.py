"""Files: every format, encoding and dialect that a newcomer brings, and an error with a line for the rest."""

import csv
import gzip
import io
import json
import os
import sys
import threading
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from opinionpool.errors import ArgumentError, LayoutError, TableError
from opinionpool.report.listing import Column, write_csv
from opinionpool.tables.options import ReadOptions
from opinionpool.tables.read import open_file, read_forecasts
from opinionpool.tables.units import MISSING
from opinionpool.text import is_formula

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def table(source, encoding=None):
    """All of a file: its names, its cells as text, and its notes."""
    with open_file(source, ReadOptions(encoding=encoding)) as opened:
        columns = []
        for i in range(len(opened.names)):
            words = opened.words(i)
            columns.append([words.values[code] if code >= 0 else None for code in words.codes])
        return opened.names, [list(row) for row in zip(*columns, strict=True)], [note.text for note in opened.notes]


def read(data, encoding=None):
    return table(io.BytesIO(data if isinstance(data, bytes) else data.encode()), encoding)


def refused(data, told, encoding=None, error=TableError):
    with pytest.raises(error, match=told):
        read(data, encoding)


PLAIN = (("question", "A"), [["007", "0.5"], ["é", None]])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_dialects_of_csv(delimiter, end, mark):
    text = f'{mark}"question"{delimiter}A{end}007{delimiter}0.5{end}é{delimiter}{end}'
    assert read(text)[:2] == PLAIN


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_text_with_a_byte_order_mark_needs_no_name(encoding):
    assert read("question\tA\r\n007\t0.5\r\né\t\r\n".encode(encoding))[:2] == PLAIN


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16-le", "mac-roman", "utf-8-sig"])
def test_other_encodings_are_named(encoding):
    names, rows, notes = read("question,A\n007,0.5\né,\n".encode(encoding), encoding)
    assert (names, rows) == PLAIN
    assert (encoding in notes[0]) == (not encoding.startswith("utf-8"))


def test_encodings_that_are_wrong_or_unknown():
    text = "question,A\n" + "007,0.5\n" * 30_000 + "é,\n"
    refused(text.encode("cp1252"), "line 30002: the byte 0xe9 is not UTF-8. .*--encoding cp1252")
    refused("question,é\n007,1\n".encode("latin-1"), "line 1: the byte 0xe9 is not UTF-8")
    refused("question,A\n007,0.5\n".encode("utf-16-le"), "UTF-16 without a byte-order mark: say --encoding utf-16-le")
    for name in ("latin-17", "hex"):
        with pytest.raises(ArgumentError, match=f"no text encoding is called '{name}'"):
            read_forecasts(io.BytesIO(b"question,A\n"), encoding=name)
    refused("question,é\n", "the file: not utf-16 .*is --encoding right", "utf-16")
    refused(b"question,A\n" + b"x,1\n" * 30_000 + b"y,\x81\n", r"after line \d{5}: not cp1252", "cp1252")


def test_ids_are_text_and_quoted_cells_may_hold_anything():
    text = 'id,A\n"0,1",0.5\n"say ""so""",1e-3\n"two\nlines",007\n 08 ,\n'
    assert read(text)[1] == [["0,1", "0.5"], ['say "so"', "1e-3"], ["two\nlines", "007"], ["08", None]]


def test_what_excel_adds_at_the_top_and_at_line_ends():
    assert read("sep=;\r\nid;A\r\n1;0,5\r\n")[:2] == (("id", "A"), [["1", "0,5"]])
    assert read("\r\n\r\nid,A\r\n1,0.5\r\n\r\n")[:2] == (("id", "A"), [["1", "0.5"]])
    assert read("\n\nid,A\r\n1,0.5\r\n")[:2] == (("id", "A"), [["1", "0.5"]])
    assert read("id,A,\n1,0.5,\n")[:2] == (("id", "A", ""), [["1", "0.5", None]])


def test_lines_that_end_in_several_ways_far_down_the_file():
    text = "id,A\n" + "1,0.5\n" * 60_000 + "2,0.25\r\n3,1\n"
    rows = read(text)[1]
    assert len(rows) == 60_002
    assert rows[-2:] == [["2", "0.25"], ["3", "1"]]


@pytest.mark.parametrize(
    "data",
    [
        "event,ann,bob,outcome\nq1,.5,.6,1\nq2,.5,.6",
        "event,ann,bob,outcome\nq1,.5,.6,1\nq",
        '{"event":"q1","expert":"a","probability":0.5}\n{"event":"q2","ex',
    ],
)
def test_a_file_that_was_cut_off_is_not_read(data):
    with pytest.raises(TableError, match=r"ends in the middle of .*cut off") as caught:
        read(data)
    assert not caught.value.remedies
    # Rows that end early throughout, or a line that was ended, are as they were meant.
    assert len(read("event,ann,bob,outcome\nq1,.5,.6\nq2,.5,.6")[1]) == 2
    assert len(read("event,ann,bob,outcome\nq1,.5,.6,1\nq2,.5,.6\n")[1]) == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1,2\n3\n", r"line 3: 1 field, and the header has 2 \(a, b\)"),
        ("a,b\n1,2\n3,4,5\n", r"line 3: 3 fields, and the header has 2 \(a, b\)"),
        ('a,b\n"x\ny",2\n\n3,4,5\n', "line 5: 3 fields"),
        ('sep=,\na,b\n"x\ny",2\n3,4,5\n', "line 5: 3 fields"),
        ('a,b\n1,2\n"3,4\n5,6\n', "record that begins in line 3 has a fault in its quotes"),
        ('a,b\n1,2\n"3"x,4\n', "record that begins in line 3 has a fault in its quotes"),
    ],
)
def test_ragged_rows_and_open_quotes_are_found_by_line(text, told):
    refused(text, told)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "is empty"), (b"\n\n", "is empty"), (gzip.compress(b"", mtime=0), "is empty"),
        (bytes(100_000), "is not a text file, nor Parquet"), (b"id,A\n", "has column names and no rows"),
        (b"\x00\x01\x02\x03", "holds binary data"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Office program: save it as CSV"),
        (b"PK\x03\x04....xl/workbook.xml", r"is a spreadsheet: save it as CSV .*File, Save As, CSV UTF-8"),
        (b"PK\x03\x04mimetypeapplication/vnd.oasis.opendocument.spreadsheet", "is a spreadsheet"),
        (b"PK\x03\x04notes.txt", "zip archive: unpack it"), (b"<!DOCTYPE html><html>", "web page"),
        (b"%PDF-1.7", "PDF"), (b"SQLite format 3\0", "SQLite"),
        (b"PAR1xxxxPAR1", "cannot be read as Parquet: .* in file 'it'"),
        (gzip.compress(b"id,A\n1,0.5\n" * 1000, mtime=0)[:-9], "damaged gzip"),
        (gzip.compress(b"id,A\n1,0.5\n", mtime=0)[:-8] + b"\0" * 8, "damaged gzip"),
        (gzip.compress(b"id,A\n1,0.5\n", mtime=0) + b"junk", "damaged gzip"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_called_by_its_name(data, told):
    refused(data, told)


def test_a_first_line_of_data_is_not_taken_for_names():
    refused("q1,0.35\nq2,0.5\n", "first line must name the columns, and it holds '0.35'", error=LayoutError)
    assert read("id,1,2\nq,0.5,1\n")[0] == ("id", "1", "2")


def test_gzip_is_known_by_its_content():
    text = b"question,A\n007,0.5\n\xc3\xa9,\n"
    assert read(gzip.compress(text))[:2] == PLAIN
    assert read(gzip.compress(text[:14]) + gzip.compress(text[14:]))[:2] == PLAIN
    assert read(gzip.compress("question;A\n007;0.5\né;\n".encode("utf-16")))[:2] == PLAIN


def test_objects_within_are_columns_in_the_order_of_the_first():
    rows = ({"id": 1, "p": {"won": 0.5, "lost": 0.5}}, {"id": 2, "p": {"drawn": 0.1, "lost": 0.4, "won": 0.5}})
    assert read("".join(json.dumps(row) + "\n" for row in rows))[0] == ("id", "p.won", "p.lost", "p.drawn")


def test_json_lines_and_arrays():
    rows = [{"question": "007", "A/~x": 0.5}, {"A/~x": "45%", "question": 8, "B": None}, {"question": True, "b": [1]}]
    names, cells, notes = read("\n\n".join(map(json.dumps, rows)))
    assert names == ("question", "A/~x", "B", "b")
    assert cells == [["007", "0.5", None, None], ["8", "45%", None, None], ["true", None, None, "[1]"]]
    assert notes == ["JSON lines"]
    assert read(json.dumps(rows, indent=1))[1] == cells
    assert read(gzip.compress("\n".join(map(json.dumps, rows)).encode()))[1] == cells


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a":1}\n\n{"a":\n', "line 3 is not JSON"),
        ('{"a":1}\n[1]\n', "every line must be one object"),
        ('[{"a":1},\n{"a":2}\n', "cannot be read as a JSON array"),
        ('{"a":1}\n{"a":"\xff"}\n', "line 2: the byte 0xff is not UTF-8"),
        ("[" * 100_000, "JSON|CSV|no rows"),
        ('{"a":1,"b":2}\n{"a":1,"b":2,"a":3}\n', "object 2 has the key 'a' twice"),
        ("{}\n{}\n", "every object in it is empty"),
        ('{"events": [\n{"event": "q1"}\n], "summary": }', "line 1 is not JSON: .*; JSON lines are wanted, one object"),
        ('{"a": [{"event": "q1"}], "b": [{"event": "q1"}]}', "holds several lists of rows, 'a', 'b'"),
    ],
)
def test_faulty_json_is_found_by_line(text, told):
    refused(text.encode("latin-1"), told)


def test_parquet_keeps_ids_and_gives_up_its_types(tmp_path):
    path = tmp_path / "forecasts.parquet"
    columns = {
        "event": pa.array(["007", "08"]),
        "number": pa.array([7, None], pa.int64()),
        "float": pa.array([7.0, 0.25]),
        "single": pa.array([0.33, float("nan")], pa.float32()),
        "flag": pa.array([True, None]),
        "kind": pa.array(["x", None]).dictionary_encode(),
        "time": pa.array([0, None], pa.timestamp("us", "Europe/Berlin")),
        "raw": pa.array([b"u", b"v"], pa.binary()),
    }
    pq.write_table(pa.table(columns), path)
    with open_file(path, ReadOptions()) as opened:
        single, flag, number = opened.numbers([3, 4, 1], frozenset())
        assert single.values.dtype == np.float64
        assert single.values[0] == np.float64(np.float32(0.33))
        assert flag is None
        np.testing.assert_array_equal(number.values, [7, np.nan])
        assert str(opened.place([1])) == f"{path}, row 2"
    _, rows, notes = table(path)
    assert rows == [
        ["007", "7", "7", "0.33", "true", "x", "1970-01-01 00:00:00+00", "u"],
        ["08", None, "0.25", None, None, None, None, "v"],
    ]
    assert notes == ["Parquet"]
    assert read(gzip.compress(path.read_bytes()))[1] == rows


def test_names_that_the_engine_would_misread(tmp_path):
    # Not every file system takes a name that is not UTF-8.
    odd = ("caf\udce9.csv",) if sys.platform == "linux" else ()
    for name in ("a[1].csv", "a*.csv", "k=v.csv", "it's.csv", *odd):
        path = os.path.join(tmp_path, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("id,A\n1,0.5\n")
        assert table(path)[:2] == (("id", "A"), [["1", "0.5"]])
    nested = tmp_path / "year=2024"
    nested.mkdir()
    (nested / "f.csv").write_text("id,A\n1,0.5\n")
    assert table(nested / "f.csv")[0] == ("id", "A")


def test_paths_that_lead_nowhere(tmp_path):
    for source, told in ((tmp_path / "no.csv", r"there is no file .*no.csv"), (tmp_path, "is a directory")):
        with pytest.raises(TableError, match=told):
            table(source)
    with pytest.raises(FileNotFoundError):
        read_forecasts(tmp_path / "no.csv")
    with pytest.raises(TableError, match="opened in binary mode"):
        table(io.StringIO("id,A\n"))


def test_standard_input_and_pipes(tmp_path, monkeypatch):
    data = gzip.compress(b"id,A\n1,0.5\n", mtime=0)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert table("-")[1] == [["1", "0.5"]]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    assert table(pipe)[1] == [["1", "0.5"]]
    writer.join()


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    read("id,A\r1,0.5\r".encode("utf-16"))
    refused("id,A\r1\r", "1 field")
    assert list(tmp_path.iterdir()) == []


def test_the_engine_opens_one_file_only(tmp_path):
    (tmp_path / "a.csv").write_text("id,A\n1,0.5\n")
    (tmp_path / "b.csv").write_text("id,A\n1,0.5\n")
    with open_file(tmp_path / "a.csv", ReadOptions()) as opened, pytest.raises(Exception, match="disabled by config"):
        opened.connection.execute(f"SELECT * FROM read_csv('{tmp_path / 'b.csv'}')")


def test_progress_is_reported_to_its_end(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("id,A\n" + "1,0.5\n" * 200_000)
    seen = []
    with open_file(path, ReadOptions(), seen.append):
        pass
    assert seen[-1] == 1.0
    assert all(0 < share <= 1 for share in seen)


CELL = st.text(st.characters(codec="utf-8", exclude_characters="\r\0", exclude_categories=("Cs",)), max_size=8)


@settings(max_examples=25)
@given(
    st.lists(st.tuples(CELL, CELL), min_size=1, max_size=10),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_every_table_comes_back_as_the_csv_module_wrote_it(rows, delimiter, end, quote_all):
    buffer = io.StringIO()
    quoting = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerows([("first name", "B"), *rows, ("last", "1")])
    names, cells, _ = read(buffer.getvalue())
    assert names == ("first name", "B")
    expected = [[cell.strip() or None for cell in row] for row in [*rows, ("last", "1")]]
    assert [[cell and cell.replace("\r\n", "\n") for cell in row] for row in cells] == expected


def test_apostrophes_before_formulas_are_taken_off():
    """In text; what the formats with types hold is as it is."""
    rows = ["=1+1", "'=1+1", "''=1+1", "'@x", "'-x", "'a'", "-5", "'+\t", "it's"]
    right = ["=1+1", "=1+1", "'=1+1", "@x", "-x", "'a'", "-5", "+", "it's"]
    names, cells, _ = read("id,'=b\n" + "".join(f"{row},1\n" for row in rows))
    assert names == ("id", "=b")
    assert [cell for cell, _ in cells] == right
    assert read("\n".join(json.dumps({"id": row}) for row in rows[:3]))[1] == [[row] for row in rows[:3]]


# Many names to a file: opening one costs much more than a name.
@settings(max_examples=25)
@given(st.lists(st.text(st.sampled_from("'=+-@a1. \t"), min_size=1, max_size=5), min_size=1, max_size=40))
def test_names_go_through_csv_and_back(names):
    out = io.StringIO()
    write_csv([Column("id", ["first", *names], None), Column("x", [0] * (len(names) + 1), None)], out)
    for field in out.getvalue().splitlines()[1:]:
        text = next(csv.reader([field]))[0]
        assert not is_formula(text)
    assert [row[0] for row in read(out.getvalue())[1]] == ["first", *(name.strip() or None for name in names)]


def test_words_for_no_answer_leave_the_rows_in_their_order():
    """In so many rows that the engine's threads share them."""
    values = np.random.default_rng(0).integers(0, 1000, 150_000) / 1000
    cells = ["NA" if i % 1000 == 7 else str(value) for i, value in enumerate(values)]
    with open_file(
        io.BytesIO(("id,A\n" + "".join(f"{i},{c}\n" for i, c in enumerate(cells))).encode()), ReadOptions()
    ) as t:
        found = t.numbers([0, 1], MISSING)
    np.testing.assert_array_equal(found[0].values, np.arange(150_000))
    np.testing.assert_array_equal(found[1].values, [np.nan if c == "NA" else float(c) for c in cells])
    assert found[1].words == 150


def test_parquet_columns_that_stand_twice_have_their_own_names(tmp_path):
    # The engine calls the second one ann_1, in whatever case it is, which nobody would take for a copy.
    path = tmp_path / "twice.parquet"
    columns = [["q1", "q2"], [0.5, 0.6], [0.7, 0.8]]
    pq.write_table(pa.table(columns, names=["event", "ann", "Ann"]), path)
    assert table(path)[0] == ("event", "ann", "Ann")
    nested = pa.table({"event": ["q1"], "odd": [{"a": [1, 2], "b": 2}], "ann": [0.5]})
    pq.write_table(nested, path)
    assert table(path)[0] == ("event", "odd", "ann")
    pq.write_table(pa.table(columns, names=["event", "ann", "ann"]), path)
    with pytest.raises(LayoutError, match="two columns are called 'ann'"):
        read_forecasts(path)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there are no devices")
@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null"])
def test_devices_are_no_files(path):
    with pytest.raises(TableError, match="is a device, and no file"):
        read_forecasts(path)


def test_streams_without_end_are_refused(monkeypatch):
    class Endless(io.RawIOBase):
        def read(self, size=-1):
            return b"q1,ann,0.5\n" * (size // 11)

    monkeypatch.setattr("opinionpool.tables.files.STREAM", 1 << 24)
    with pytest.raises(TableError, match=r"the file has more than .* or no end; save it in a file"):
        read_forecasts(Endless())


openpyxl = pytest.importorskip("openpyxl")

SPREADSHEET = "application/vnd.oasis.opendocument.spreadsheet"
NAMES = "urn:oasis:names:tc:opendocument:xmlns"


def book(rows, formats=(), beyond=None):
    """A workbook with cells of some number formats, and one cell somewhere else."""
    made = openpyxl.Workbook()
    sheet = made.active
    for row in rows:
        sheet.append(row)
    for cell, shape in formats:
        sheet[cell].number_format = shape
    if beyond:
        sheet[beyond] = 1
    target = io.BytesIO()
    made.save(target)
    target.seek(0)
    return target


def document(rows):
    """An OpenDocument spreadsheet of rows of cells as they are written."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("mimetype", SPREADSHEET)
        archive.writestr(
            "META-INF/manifest.xml",
            f'<manifest:manifest xmlns:manifest="{NAMES}:manifest:1.0"><manifest:file-entry manifest:full-path="/" '
            f'manifest:media-type="{SPREADSHEET}"/></manifest:manifest>',
        )
        archive.writestr(
            "content.xml",
            f'<office:document-content xmlns:office="{NAMES}:office:1.0" xmlns:table="{NAMES}:table:1.0" '
            f'xmlns:text="{NAMES}:text:1.0"><office:body><office:spreadsheet><table:table table:name="S">'
            + "".join(f"<table:table-row{more}>{''.join(row)}</table:table-row>" for more, row in rows)
            + "</table:table></office:spreadsheet></office:body></office:document-content>",
        )
    target.seek(0)
    return target


def cell(value, kind="float", more=""):
    own = f'office:value="{value}"' if kind != "string" else ""
    return f'<table:table-cell office:value-type="{kind}" {own}{more}><text:p>{value}</text:p></table:table-cell>'


ROWS = [["event", "ann", "bob"], ["q1", 0.07, 0.5], ["q2", 1, "3%"], ["q3", 0.125, 0.29]]


@pytest.mark.parametrize("shape", ["0%", "0.00%", "0.0%", '0.0%;[Red]-0.0%;"-"'])
def test_a_format_in_per_cent_says_what_the_number_is(shape):
    """A workbook stores 7% as 0.07 and a format; a text of 3% beside it is the same kind of number."""
    cells = [f"{column}{row}" for column in "BC" for row in (2, 3, 4)]
    found = read_forecasts(book(ROWS, [(name, shape) for name in cells]))
    np.testing.assert_array_equal(found.X, [[0.07, 0.5], [1.0, 0.03], [0.125, 0.29]])


def test_a_number_without_that_format_is_what_it_is():
    with pytest.raises(TableError, match=r"mixes '3%'.* and '0\.5'"):
        read_forecasts(book(ROWS, [("B2", "0%"), ("B3", "0%"), ("B4", "0%")]))
    plain = [[row[0], row[1]] for row in ROWS]
    np.testing.assert_array_equal(read_forecasts(book(plain, [("B3", "0.00")])).X, [[0.07], [1.0], [0.125]])


def test_percentages_of_open_document_sheets():
    rows = [
        ("", [cell(name, "string") for name in ("event", "ann", "bob")]),
        ("", [cell("q1", "string"), cell(0.07, "percentage"), cell("3%", "string")]),
        ("", [cell("q2", "string"), cell(1, "percentage"), cell(0.5, "percentage")]),
    ]
    np.testing.assert_array_equal(read_forecasts(document(rows)).X, [[0.07, 0.03], [1.0, 0.5]])


@pytest.mark.parametrize("beyond", ["XFD1048576", "XFD400"])
def test_a_stray_cell_far_away_fills_no_memory(beyond):
    with pytest.raises(TableError, match=r"rows and 16,384 columns, nearly all of whose cells are empty"):
        read_forecasts(book(ROWS, beyond=beyond))


def test_cells_that_are_written_once_and_repeated_fill_no_memory():
    many = ' table:number-columns-repeated="16000"'
    rows = [
        ("", [cell("event", "string"), cell("ann", "string")]),
        (' table:number-rows-repeated="1000000"', [cell("q1", "string"), cell(0.5, more=many)]),
    ]
    with pytest.raises(TableError, match="nearly all of whose cells are empty"):
        read_forecasts(document(rows))
