"""Preparation of files for the engine: their format, encoding, separator and header, and what is wrong with them.

All of this is decided here, from the first bytes, so that the engine guesses nothing. What it cannot read as it stands
(standard input, gzip, another encoding than UTF-8) is copied into a temporary directory first.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, BinaryIO, TypeAlias, cast

from opinionpool.arguments import file_path
from opinionpool.errors import MissingFileError, Note, OpinionPoolError, TableError
from opinionpool.findings import Place, Remedy, fault, finding
from opinionpool.tables.engine import CELL, RATIO, SAVE_AS, SMALL, FileSource, Workspace, check_columns
from opinionpool.tables.roles import SYNONYMS, normal
from opinionpool.text import counted, without_apostrophe

HEAD = 1 << 18  # first bytes of a file, which decide how it is read
_LONGEST_HEADER = 1 << 24  # bytes of the first line, at most
_TITLES = 1 << 14  # characters within which titles stand above the header
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
STREAM = 1 << 32  # most bytes of a stream that are copied
_OLE, _ZIP, _GZIP = b"\xd0\xcf\x11\xe0", b"PK\x03\x04", b"\x1f\x8b"
_SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods", ".numbers")
_FOREIGN = (
    (_OLE, f"a spreadsheet or document of an old Office program: {SAVE_AS}"),
    (_ZIP, "a zip archive: unpack it first"),
    (b"ARROW1", "an Arrow (Feather) file: save it as Parquet"),
    (b"SQLite format 3", "an SQLite database: export the table as CSV"),
    (b"%PDF", "a PDF document: the table in it must be saved as CSV"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: unpack it first, or use gzip"),
    (b"\xfd7zXZ", "compressed with xz: unpack it first, or use gzip"),
    (b"BZh", "compressed with bzip2: unpack it first, or use gzip"),
    (b"\x93NUMPY", "a NumPy file: load it in Python and pass the array"),
)


def prepare(source: object, encoding: str | None, workspace: Workspace) -> FileSource:
    """Return `source` as a file that the engine can read: if necessary, a copy in `workspace`, in UTF-8.

    ``"-"`` is standard input. Text that is UTF-8 throughout is read as UTF-8 even if `encoding` is another.
    """
    name, path = _local(source, workspace)
    head, packed = _head(path, name), ""
    if head.startswith(_GZIP):
        path, packed = _unpacked(path, workspace.path("unpacked"), name), ", gzip"
        head = _head(path, name)
    if not head:
        raise fault("empty", file=name)
    if _is_sheet(head, name):
        return _sheet_source(name, path, workspace)
    if head.startswith(b"PAR1"):
        return FileSource(name, path, "parquet", notes=(finding("format", format="Parquet"),))
    codec, notes = find_codec(head, encoding, name), list[Note]()
    if encoding is not None and codec and one_byte(codec) and _not_utf_8(path) is None:
        # With one --encoding for two files, one of them may well be in order as it is.
        codec = None
        notes.append(finding("encoding", file=name, encoding=encoding))
    if codec or mixed_ends(head):
        path = transcode(path, codec or "utf-8", workspace.path("table.txt"), name)
        head = _head(path, name)
    how = packed + (f", encoding {encoding or codec}" if codec else "")
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if re.match(rb"<(!doctype|html|\?xml)", start, re.IGNORECASE):
        raise fault("web-page", file=name)
    if re.match(rb"\{\s*[\"}]", start):
        found = _object_source(name, path, how, workspace)
    elif re.match(rb"\[\s*[{\]]", start):
        found = FileSource(name, path, "json array", notes=(finding("format", format="a JSON array" + how),))
    else:
        found = csv_source(name, path, head, how)
    return replace(found, notes=(*found.notes, *notes))


def _is_sheet(head: bytes, name: str) -> bool:
    """Whether a file is a spreadsheet, by its first bytes and name; raise if it is of a format that is not read."""
    old, zipped, named = head.startswith(_OLE), head.startswith(_ZIP), name.lower().endswith
    inside = b"xl/" in head or b"opendocument.spreadsheet" in head
    if (old and named(".xls")) or (zipped and (inside or named(_SPREADSHEETS)) and not named(".numbers")):
        return True
    what = next((what for magic, what in _FOREIGN if head.startswith(magic)), None)
    if what is not None:
        spreadsheet = f"a spreadsheet: {SAVE_AS}"
        raise fault("foreign", file=name, what=spreadsheet if zipped and named(".numbers") else what)
    return False


def _sheet_source(name: str, path: str, workspace: Workspace) -> FileSource:
    """Return a spreadsheet as a CSV file in `workspace`."""
    from opinionpool.tables.sheets import sheet_as_csv

    target = workspace.path("sheet.csv")
    notes = sheet_as_csv(name, path, target)
    source = csv_source(name, target, _head(target, name), "")
    return replace(source, notes=(finding("format", format="a spreadsheet"), *notes), sheet=True)


def _object_source(name: str, path: str, how: str, workspace: Workspace) -> FileSource:
    """Return a JSON file that begins with an object, with one row in each line; `how` ends the note on its format."""
    plain = FileSource(name, path, "json", notes=(finding("format", format="JSON lines" + how),))
    try:
        with plain.lines() as text:
            first = _object(next((line for line in text if line.strip()), ""))
            if first is not None and (is_row(first) or any(line.strip() for line in text)):
                return plain
        if os.path.getsize(path) > LARGEST:
            raise fault("large-object", file=name, most=LARGEST)
        with plain.lines() as text:
            document = _object(text.read())
    except UnicodeDecodeError:
        return plain
    if document is None:
        return plain
    known = {name for names in SYNONYMS.values() for name in names if len(name) > 1}
    rows, form = rows_of(name, document, lambda name: normal(name) in known)
    target = workspace.path("rows.json")
    with open(target, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return FileSource(name, target, "json rows", notes=(finding("format", format=f"JSON, {form}{how}"),))


# Ends of the names of files that are read from a folder.
_TABLES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".xlsx", ".xls", ".ods")


def expand(source: object) -> list[object]:
    """Return the files that `source` stands for: itself, a list, the tables in a folder, or what a pattern matches."""
    if isinstance(source, list | tuple):
        found = [each for one in source for each in expand(one)]
        if not found:
            raise fault("no-file")
        return found
    if not isinstance(source, str | os.PathLike) or source == "-" or os.path.isfile(source):
        return [source]
    path = os.fsdecode(file_path(source, "the table's file"))
    if os.path.isdir(path):
        names = sorted(name for name in os.listdir(path) if name.lower().removesuffix(".gz").endswith(_TABLES))
        if not names:
            raise fault("no-table-in-folder", file=path)
        return [os.path.join(path, name) for name in names]
    if re.search(r"[*?\[]", path) and not os.path.exists(path):
        import glob

        matching = sorted(glob.glob(path))
        if matching:
            return [each for one in matching for each in expand(one)]
    return [source]


def _local(source: object, workspace: Workspace) -> tuple[str, str]:
    """Return the name of a source for messages, and the path of a regular file with its content."""
    if isinstance(source, str) and source == "-":
        import sys

        return "standard input", _copy(sys.stdin.buffer, workspace.path("input"), "standard input")
    if hasattr(source, "read"):
        if isinstance(source, io.TextIOBase):
            raise fault("text-mode")
        called = getattr(source, "name", None)
        name = called if isinstance(called, str) else "the file"
        return name, _copy(cast("BinaryIO", source), workspace.path("input"), name)
    source = cast("str | os.PathLike[str]", source)
    path = os.fsdecode(file_path(source, "the table's file"))
    name = path.encode("utf-8", "replace").decode("utf-8")
    try:
        if not os.path.isfile(path):
            kind = os.stat(path).st_mode
            if stat.S_ISCHR(kind) or stat.S_ISBLK(kind):
                raise fault("device", file=name)
            with open(path, "rb") as stream:
                return name, _copy(stream, workspace.path("input"), name)
        path = os.path.abspath(path)
        # The engine would take these for patterns, or could not take the name.
        if re.search(r"[*?\[\]]", path) or name.encode("utf-8") != os.fsencode(source):
            link = workspace.path("input")
            os.symlink(path, link)
            path = link
    except FileNotFoundError:
        raise MissingFileError(f"there is no file {name}") from None
    except OSError as error:
        raise fault("not-readable", file=name, error=error.strerror or str(error)) from None
    return name, path


def _copy(
    stream: BinaryIO, path: str, name: str, most: int | None = None, beyond: OpinionPoolError | None = None
) -> str:
    """Copy a stream called `name` into a file at `path`, and return the path.

    If it has more than `most` bytes (default: `STREAM`), the error `beyond` is raised.
    """
    copied, most = 0, STREAM if most is None else most
    try:
        with open(path, "wb") as file:
            while block := stream.read(1 << 20):
                copied += len(block)
                if copied > most:
                    raise beyond or fault("endless", file=name, most=most >> 30)
                file.write(block)
    except OSError as error:
        if error.errno is None:
            # The stream is damaged, and not the disk full.
            raise
        about = {"folder": os.path.dirname(path), "error": error.strerror or str(error)}
        raise fault("not-copied", None, (), file=name, **about) from None
    return path


def _unpacked(path: str, target: str, name: str) -> str:
    """Write the content of a gzip file to the path `target`, and return that; raise if it is damaged or too large."""
    import gzip
    import zlib

    packed = os.path.getsize(path)
    beyond = fault("unpacks-too-far", file=name, ratio=RATIO, packed=packed)
    try:
        with gzip.open(path, "rb") as file:
            return _copy(cast("BinaryIO", file), target, name, max(SMALL, RATIO * packed), beyond)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise fault("damaged-gzip", file=name, error=str(error)) from None


def _head(path: str, name: str, size: int = HEAD) -> bytes:
    """Return the first `size` bytes of a file."""
    try:
        with open(path, "rb") as file:
            return file.read(size)
    except OSError as error:
        raise fault("not-readable", file=name, error=error.strerror or str(error)) from None


# Most bytes of a JSON document, which is read at once, unlike JSON lines.
LARGEST = 500_000_000
Row: TypeAlias = dict[str, Any]


def _object(text: str) -> Row | None:
    """Return a text parsed as JSON if it is an object (a dict), else None."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def is_row(document: Row) -> bool:
    """Whether a JSON object is one row, and not a whole table: it has a plain value, and no list of objects.

    >>> is_row({"event": "q1", "ann": 0.5}), is_row({"rows": [{"event": "q1"}]}), is_row({"ann": [0.5], "bob": [0.7]})
    (True, False, False)
    """
    return not _row_lists(document) and not all(isinstance(value, list | dict) for value in document.values())


def _row_lists(document: Row) -> list[str]:
    """Return the keys of `document` whose value is a list of objects."""
    lists = {key: value for key, value in document.items() if isinstance(value, list) and value}
    return [key for key, value in lists.items() if all(isinstance(row, dict) for row in value)]


def rows_of(name: str, document: Row, known: Callable[[str], bool]) -> tuple[list[Row], str]:
    """Return the rows of the table in a JSON object, and words for its form; `known` tells whether a text is a header.

    >>> rows_of("f", {"data": [{"event": "q1"}], "next": None}, bool)
    ([{'event': 'q1'}], "rows under the key 'data'")
    >>> rows_of("f", {"event": {"0": "q1"}, "ann": {"0": 0.5}}, bool)
    ([{'event': 'q1', 'ann': 0.5}], 'an object of columns')
    """
    lists, values = _row_lists(document), list(document.values())
    if len(lists) == 1:
        return document[lists[0]], f"rows under the key {lists[0]!r}"
    if len(lists) > 1:
        raise fault("several-lists", file=name, lists=lists)
    if all(isinstance(value, list) for value in values) and len({*map(len, values)}) == 1:
        rows = [dict(zip(document, row, strict=True)) for row in zip(*values, strict=True)]
        if not any(isinstance(cell, list | dict) for row in rows for cell in row.values()):
            return rows, "an object of columns"
    if all(isinstance(value, dict) and value for value in values):
        inner = list(dict.fromkeys(key for value in values for key in value))
        if all(key.isdecimal() for key in inner) or any(map(known, document)):
            return [{key: of.get(row) for key, of in document.items()} for row in inner], "an object of columns"
        if any(map(known, inner)):
            return [{"": key, **of} for key, of in document.items()], "an object of rows"
    if len(values) == 1 and isinstance(values[0], dict):
        return rows_of(name, values[0], known)
    wanted = '[{"event": "q1", "expert": "A", "probability": 0.7}, ...]'
    raise fault("one-object", file=name, keys=list(document), wanted=wanted)


def find_codec(head: bytes, encoding: str | None, name: str) -> str | None:
    """Return a file's encoding: `encoding` if given, else by its byte order mark; None if it is UTF-8."""
    if encoding is not None:
        codec = codecs.lookup(encoding).name
        return None if codec in {"utf-8", "utf-8-sig", "ascii"} else codec
    for mark, codec in (
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF32_BE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if head.startswith(mark):
            return codec
    if b"\0" in head:
        for odd, codec in ((1, "utf-16-le"), (0, "utf-16-be")):
            if head[odd::2].count(0) > 0.9 * len(head[odd::2]) and head[1 - odd :: 2].count(0) == 0:
                raise fault("unmarked-utf-16", file=name, codec=codec)
        raise fault("binary", file=name)
    return None


def one_byte(codec: str) -> bool:
    """Return True if an encoding has one byte for each character."""
    return len(bytes(range(128, 256)).decode(codec, "replace")) == 128


def mixed_ends(text: bytes) -> bool:
    """Whether lines of `text` end in several ways, or only in carriage returns, which the engine does not read."""
    both = text.count(b"\r\n")
    return text.count(b"\r") > both or 0 < both < text.count(b"\n")


def transcode(path: str, codec: str, target: str, name: str) -> str:
    """Write a text file as UTF-8 with line feeds to the path `target`, and return the path."""
    number = 0
    try:
        with open(path, encoding=codec) as text, open(target, "w", encoding="utf-8", newline="") as file:
            for number, line in enumerate(text, 1):  # noqa: B007 - for the error below
                file.write(line)
    except UnicodeError as error:
        wrong = bad_encoding(name, path) if codec == "utf-8" else None
        where, reason = f"{name}, after line {number}" if number else name, " ".join(str(error).split())
        raise wrong or fault("not-this-encoding", Place(where), codec=codec, reason=reason) from None
    return target


def with_line_feeds(source: FileSource, workspace: Workspace) -> FileSource:
    """Return a copy of the file, in `workspace`, whose lines all end in a line feed."""
    return replace(source, path=transcode(source.path, "utf-8", workspace.path("lines.txt"), source.name))


def csv_source(name: str, path: str, head: bytes, how: str) -> FileSource:
    """Return a text file with its separator, header and number of lines above the header; `how` ends the note on it."""
    size = HEAD
    if len(head) == size and b"\n" not in head:
        size = _LONGEST_HEADER
        head = _head(path, name, size)
    whole = len(head) < size
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head.removeprefix(codecs.BOM_UTF8), final=whole)
    except UnicodeDecodeError as error:
        raise bad_encoding(name, path) or error from None
    above = re.match(r'(?:"?sep=([,;\t|])"?\r?\n)?(?:[ \t]*\r?\n)*', text)
    assert above is not None
    separators, skip, text = above[1] or "".join(_DELIMITERS), above[0].count("\n"), text[above.end() :]
    delimiter, header, agreeing = _dialect(text, whole, separators)
    if (agreeing < 0.5 or not all(header)) and (titles := _titles(text, separators)):
        skip, text = skip + titles, "".join(text.splitlines(keepends=True)[titles:])
        how += f", below {counted(skip, 'line')} that {'is' if skip == 1 else 'are'} no header"
        delimiter, header, _ = _dialect(text, whole, separators)
    if not header:
        raise fault("endless-header", file=name, most=CELL) if text else fault("no-header-line", file=name)
    check_columns(name, len(header))
    for cell in header:
        if re.fullmatch(r"[+-]?(?:\d*[.,]\d+|\d+(?:[.,]\d+)?\s*%)", cell):
            raise fault("number-in-header", Place(name), cell=cell)
    form = f"CSV, fields separated by {_DELIMITERS[delimiter]}" if len(header) > 1 else "CSV of one column"
    return FileSource(name, path, "csv", delimiter, header, skip, (finding("format", format=form + how),))


def _titles(text: str, separators: str) -> int:
    r"""Return the number of lines above the header: titles, which fill few cells, and blank lines.

    >>> _titles("Export of 1 May\n\nevent,ann,bob\nq1,0.5,0.4\n", ",;")
    2
    >>> _titles("event,ann\nq1,0.5,0.4,0.3,0.2\n", ",;")
    0
    """
    lines, is_number = text[:_TITLES].splitlines()[:20], re.compile(r"[+-]?\d*[.,]?\d+\s*%?").fullmatch
    for delimiter in separators:
        cells = [[cell.strip(' "') for cell in line.split(delimiter)] for line in lines]
        filled = [sum(map(bool, row)) for row in cells]
        header = next((i for i, count in enumerate(filled) if count >= 3 and not any(map(is_number, cells[i]))), 0)
        if header and 2 * max(filled[:header]) < filled[header] and '"' not in "".join(lines[:header]):
            return header
    return 0


def _dialect(text: str, whole: bool, separators: str) -> tuple[str, tuple[str, ...], float]:
    """Separator by which most records have as many fields as the header; the header; and the share of such records."""
    best: tuple[tuple[float, int], str, list[str]] = ((-1.0, 0), ",", [])
    for delimiter in separators:
        records: list[list[str]] = []
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
        try:
            for record in reader:
                if record:
                    records.append(record)
                if len(records) == 200:
                    break
            else:
                if not whole and len(records) > 1:
                    records.pop()
        except csv.Error:
            pass
        if not records:
            continue
        width = len(records[0])
        agreeing = sum(len(record) == width for record in records) / len(records) if width > 1 else 0.0
        best = max(best, ((agreeing, width), delimiter, records[0]), key=lambda candidate: candidate[0])
    return best[1], tuple(without_apostrophe(cell.strip()) for cell in best[2]), best[0][0]


# Encodings that a text may have, the more usual first, and where they are in use.
_ENCODINGS = {"cp1252": "Windows, western Europe", "cp932": "Japanese", "gb18030": "Chinese"}


def bad_encoding(name: str, path: str) -> OpinionPoolError | None:
    """Return the error for the first line of the file that is not UTF-8; None if all lines are."""
    wrong = _not_utf_8(path)
    if wrong is None:
        return None
    codec = next((codec for codec in _ENCODINGS if _decodes(path, codec)), None)
    ways = [] if codec is None else [Remedy({"encoding": codec})]
    place = Place(name, wrong[:1], value=f"0x{wrong[1]:02x}")
    return fault("not-utf-8", place, ways, use="" if codec is None else _ENCODINGS[codec])


def _not_utf_8(path: str) -> tuple[int, int] | None:
    """Number of the first line of a file that is not UTF-8, from 1, and the byte that is not; None if all lines are."""
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return number, line[error.start]
    return None


def _decodes(path: str, codec: str) -> bool:
    """Whether the whole file is text in the encoding `codec`."""
    try:
        with open(path, encoding=codec) as text:
            return all(text)
    except UnicodeDecodeError:
        return False


_JSON_LINES = 'JSON lines are wanted, one object in each line: {"event": "q1", "expert": "A", "probability": 0.7}'


def numbered_records(source: FileSource) -> Iterator[tuple[int, list[str]]]:
    """Yield each record of a CSV file, the header first, with the number of the line on which it begins."""
    with source.lines() as lines:
        for _ in range(source.skip):
            next(lines)
        reader = csv.reader(lines, delimiter=source.delimiter, strict=True, skipinitialspace=True)
        line = source.skip + 1
        try:
            for record in reader:
                if record or len(source.header) == 1:
                    yield line, record
                line = source.skip + reader.line_num + 1
        except csv.Error as error:
            if "field limit" in str(error):
                raise fault("endless-cell", Place(source.name), line=line, most=CELL) from None
            raise fault("quotes", Place(source.name), line=line, error=str(error)) from None


def text_fault(source: FileSource) -> OpinionPoolError | int | None:
    """Error in a text file that the engine rejects; if a CSV file has none, the number of rows that are too short."""
    wrong = bad_encoding(source.name, source.path)
    if wrong or source.format not in {"csv", "json"}:
        return wrong
    return _csv_fault(source) if source.format == "csv" else _json_fault(source)


def _csv_fault(source: FileSource) -> OpinionPoolError | int:
    width = len(source.header)
    last, odd, short, others = 0, (0, 0), 0, False
    try:
        for last, record in numbered_records(source):
            if record and len(record) != width:
                odd = odd if odd[0] else (last, len(record))
                short += 1
                # A record of one cell is more likely a line that is no record.
                others |= not 1 < len(record) < width
    except TableError as error:
        return error
    line, cells = odd
    if line == last and 0 < cells < width and not _ends_a_line(source.path):
        return fault("cut-off", file=source.name, line=line, cells=cells, width=width)
    if not others:
        return short
    names = ", ".join(name if len(name) <= 30 else name[:27] + "..." for name in source.header[:6])
    names += ", ..." if width > 6 else ""
    way = f"a cell that holds a {source.delimiter!r} must stand in double quotes"
    way = "if it is a remark, and no row, take it out" if cells == 1 else way
    return fault("other-width", Place(source.name, (line,)), (), fields=cells, width=width, names=names, way=way)


def _ends_a_line(path: str) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() in b"\r\n"


def _json_fault(source: FileSource) -> OpinionPoolError | None:
    with source.lines() as lines:
        for number, line in enumerate(lines, 1):
            try:
                is_object = isinstance(json.loads(line), dict) if line.strip() else True
            except (ValueError, RecursionError) as error:
                if number > 1 and not line.endswith("\n") and line.lstrip().startswith("{"):
                    return fault("json-cut-off", file=source.name, line=number)
                return fault("not-json", file=source.name, line=number, error=str(error), wanted=_JSON_LINES)
            if not is_object:
                return fault("not-an-object", Place(source.name, (number,)), wanted=_JSON_LINES)
    return None


def lines_of(source: FileSource, rows: Sequence[int]) -> list[int]:
    """Return the number of the line on which each of the table's `rows` begins."""
    wanted = {*rows}
    with source.lines() as lines:
        starts: Iterator[int] = (number for number, line in enumerate(lines, 1) if line.strip())
        if source.format == "csv":
            starts = (line for line, _ in islice(numbered_records(source), 1, None))
        found = {row: line for row, line in enumerate(islice(starts, max(rows, default=-1) + 1)) if row in wanted}
    return [found[row] for row in rows]
