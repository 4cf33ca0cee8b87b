"""Files before the engine reads them: what kind they are, and where their bytes are.

All of it is decided here, from the first bytes, so that the engine guesses nothing. What it cannot read as it stands
(standard input, another encoding than UTF-8) is copied into a temporary directory first.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import BinaryIO, cast

from opinionpool.arguments import file_path
from opinionpool.errors import MissingFileError, Note
from opinionpool.findings import fault, finding
from opinionpool.tables.delimited import HEAD, bad_encoding, csv_source, find_codec, mixed_ends, one_byte, transcode
from opinionpool.tables.engine import RATIO, SAVE_AS, SMALL, FileSource, Workspace, open_binary
from opinionpool.tables.roles import SYNONYMS, normal

# Bytes of a stream that are copied.
STREAM = 1 << 32
_SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods", ".numbers")
_FOREIGN = (
    (b"\xd0\xcf\x11\xe0", f"a spreadsheet or document of an old Office program: {SAVE_AS}"),
    (b"ARROW1", "an Arrow (Feather) file: save it as Parquet"),
    (b"SQLite format 3", "an SQLite database: export the table as CSV"),
    (b"%PDF", "a PDF document: the table in it must be saved as CSV"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: unpack it first, or use gzip"),
    (b"\xfd7zXZ", "compressed with xz: unpack it first, or use gzip"),
    (b"BZh", "compressed with bzip2: unpack it first, or use gzip"),
    (b"\x93NUMPY", "a NumPy file: load it in Python and pass the array"),
)


def prepare(source: object, encoding: str | None, workspace: Workspace) -> FileSource:
    """Return a file as a source that the engine can read, copied or converted to UTF-8 where it must be.

    ``"-"`` is standard input. Text that is UTF-8 throughout is read as such whatever encoding is named.
    """
    name, path = _local(source, workspace)
    head, gzipped = _first_bytes(path, name)
    if is_sheet(head, name):
        return _sheet_source(name, path, workspace)
    _check_kind(head, name)
    if head.startswith(b"PAR1"):
        if gzipped:
            with open_binary(path, True) as stream:
                path = _copy(stream, workspace.path("table.parquet"), name)
        return FileSource(name, path, "parquet", notes=(finding("format", format="Parquet"),))
    codec = find_codec(head, encoding, name)
    notes: tuple[Note, ...] = ()
    if encoding is not None and codec and one_byte(codec):
        # With one --encoding for two files, one of them may well be in order as it is.
        with open_binary(path, gzipped) as lines:
            if bad_encoding(name, lines) is None:
                codec, notes = None, (finding("encoding", file=name, encoding=encoding),)
    how = (", gzip" if gzipped else "") + (f", encoding {encoding or codec}" if codec else "")
    if codec or mixed_ends(head):
        path, gzipped = transcode(path, gzipped, codec or "utf-8", workspace.path("table.txt"), name), False
        with open(path, "rb") as file:
            head = file.read(HEAD)
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if re.match(rb"\{\s*[\"}]|\[\s*[{\]]", start):
        if start[:1] == b"{":
            return _object_source(FileSource(name, path, "json", gzipped, notes=notes), how, workspace)
        return FileSource(
            name, path, "json array", gzipped, notes=(finding("format", format="a JSON array" + how), *notes)
        )
    if re.match(rb"<(!doctype|html|\?xml)", start, re.IGNORECASE):
        raise fault("web-page", file=name)
    source = csv_source(name, path, gzipped, head, how)
    return replace(source, notes=(*source.notes, *notes))


def is_sheet(head: bytes, name: str) -> bool:
    """Whether a file is a spreadsheet, by its first bytes and its name."""
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        return name.lower().endswith(".xls")
    sheet = name.lower().endswith(_SPREADSHEETS) or b"xl/" in head or b"opendocument.spreadsheet" in head
    return head.startswith(b"PK\x03\x04") and sheet and not name.lower().endswith(".numbers")


def _sheet_source(name: str, path: str, workspace: Workspace) -> FileSource:
    """Return the source of a spreadsheet, written as CSV into `workspace`."""
    from opinionpool.tables.sheets import sheet_as_csv

    target = workspace.path("sheet.csv")
    notes = sheet_as_csv(name, path, target)
    with open(target, "rb") as file:
        source = csv_source(name, target, False, file.read(HEAD), "")
    return replace(source, notes=(finding("format", format="a spreadsheet"), *notes), sheet=True)


def _object_source(source: FileSource, how: str, workspace: Workspace) -> FileSource:
    """Return the source of a JSON file that begins with an object: JSON lines, or a document with a table."""
    plain = replace(source, notes=(finding("format", format="JSON lines" + how), *source.notes))
    try:
        with source.lines() as text:
            first = _object(next((line for line in text if line.strip()), ""))
            if first is not None and (is_row(first) or any(line.strip() for line in text)):
                return plain
        if os.path.getsize(source.path) > LARGEST:
            raise fault("large-object", file=source.name, most=LARGEST)
        with source.lines() as text:
            document = _object(text.read())
    except UnicodeDecodeError:
        return plain
    if document is None:
        return plain
    known = {name for names in SYNONYMS.values() for name in names if len(name) > 1}
    rows, shape = rows_of(source.name, document, lambda name: normal(name) in known)
    path = workspace.path("rows.json")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    note = finding("format", format=f"JSON, {shape}{how}")
    return FileSource(source.name, path, "json rows", notes=(note, *source.notes))


# Names of files that a folder is read for.
_TABLES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".xlsx", ".xls", ".ods")


def expand(source: object) -> list[object]:
    """Return the files that a source names: one file, a list, the tables in a folder, or the matches of a pattern."""
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
    """Return the name of a source for messages, and the path of a regular file with its bytes."""
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


def _copy(stream: BinaryIO, path: str, name: str) -> str:
    """Copy a stream into a file at `path`, and return the path."""
    copied = 0
    try:
        with open(path, "wb") as file:
            while block := stream.read(1 << 20):
                copied += len(block)
                if copied > STREAM:
                    raise fault("endless", file=name, most=STREAM >> 30)
                file.write(block)
    except OSError as error:
        about = {"folder": os.path.dirname(path), "error": error.strerror or str(error)}
        raise fault("not-copied", None, (), file=name, **about) from None
    return path


def _first_bytes(path: str, name: str) -> tuple[bytes, bool]:
    """Return the first bytes of a file, decompressed and its check sums verified, and whether it is compressed."""
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        raise fault("not-readable", file=name, error=error.strerror or str(error)) from None
    gzipped = head.startswith(b"\x1f\x8b")
    if gzipped:
        import zlib

        try:
            with open_binary(path, True) as file:
                head = file.read(HEAD)
                packed, unpacked = os.path.getsize(path), len(head)
                while more := len(file.read(1 << 20)):
                    unpacked += more
                    if unpacked > max(SMALL, RATIO * packed):
                        raise fault("unpacks-too-far", file=name, ratio=RATIO, packed=packed)
        except (OSError, EOFError, zlib.error) as error:
            raise fault("damaged-gzip", file=name, error=str(error)) from None
    if not head:
        raise fault("empty", file=name)
    return head, gzipped


def _check_kind(head: bytes, name: str) -> None:
    """Raise if the first bytes are the signature of a file format that is not read as a table."""
    if head.startswith(b"PK\x03\x04"):
        sheet = name.lower().endswith(_SPREADSHEETS)
        what = f"a spreadsheet: {SAVE_AS}" if sheet else "a zip archive: unpack it first"
        raise fault("foreign", file=name, what=what)
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            raise fault("foreign", file=name, what=what)


# What is read at once: a document is one piece, unlike lines.
LARGEST = 500_000_000
Row = dict[str, object]


def _object(text: str) -> Row | None:
    """Return the JSON object that a text is, None if it is anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def is_row(document: Mapping[str, object]) -> bool:
    """Whether an object is one row, and not a table: some of its values are neither lists nor objects.

    >>> is_row({"event": "q1", "ann": 0.5}), is_row({"rows": [{"event": "q1"}]}), is_row({"ann": [0.5], "bob": [0.7]})
    (True, False, False)
    """
    return not _row_lists(document) and not all(isinstance(value, list | dict) for value in document.values())


def _row_lists(document: Mapping[str, object]) -> list[str]:
    """Return the keys whose value is a list of objects."""
    return [
        key
        for key, value in document.items()
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value)
    ]


def rows_of(name: str, document: Mapping[str, object], known: Callable[[str], bool]) -> tuple[list[Row], str]:
    """Return the rows in a document that is one object, and a description of its structure.

    >>> rows_of("f", {"data": [{"event": "q1"}], "next": None}, bool)
    ([{'event': 'q1'}], "rows under the key 'data'")
    >>> rows_of("f", {"event": {"0": "q1"}, "ann": {"0": 0.5}}, bool)
    ([{'event': 'q1', 'ann': 0.5}], 'an object of columns')
    """
    lists = _row_lists(document)
    if len(lists) == 1:
        return [dict(row) for row in _list(document[lists[0]])], f"rows under the key {lists[0]!r}"
    if len(lists) > 1:
        raise fault("several-lists", file=name, lists=lists)
    values = list(document.values())
    if all(isinstance(value, list) for value in values):
        columns = {key: _list(value) for key, value in document.items()}
        lengths = {len(column) for column in columns.values()}
        if len(lengths) == 1 and not any(
            isinstance(cell, list | dict) for column in columns.values() for cell in column
        ):
            cells = zip(*columns.values(), strict=True)
            return [dict(zip(columns, row, strict=True)) for row in cells], "an object of columns"
    if all(isinstance(value, dict) and value for value in values):
        tables = {key: value for key, value in document.items() if isinstance(value, dict)}
        inner = list(dict.fromkeys(key for value in tables.values() for key in value))
        if all(key.isdecimal() for key in inner) or any(map(known, tables)):
            return [{key: tables[key].get(row) for key in tables} for row in inner], "an object of columns"
        if any(map(known, inner)):
            return [{"": key, **value} for key, value in tables.items()], "an object of rows"
    if len(values) == 1 and isinstance(values[0], dict):
        return rows_of(name, values[0], known)
    raise fault(
        "one-object", file=name, keys=list(document), wanted='[{"event": "q1", "expert": "A", "probability": 0.7}, ...]'
    )


def _list(value: object) -> Sequence[Row]:
    return value if isinstance(value, list) else []
