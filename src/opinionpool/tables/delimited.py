"""How a CSV file is written, and what is wrong with a text that the engine could not read."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from opinionpool.errors import OpinionPoolError, TableError
from opinionpool.findings import Place, Remedy, fault, finding
from opinionpool.tables.engine import CELL, FileSource, Workspace, check_columns, open_binary
from opinionpool.text import counted, without_apostrophe

HEAD = 1 << 18
_LONGEST_HEADER = 1 << 24
# Characters within which titles stand above the header.
_TITLES = 1 << 14
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def find_codec(head: bytes, encoding: str | None, name: str) -> str | None:
    """Return the codec of a file, by `encoding` or its byte order mark; None if it is UTF-8."""
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
    """Whether lines end in several ways, or only in carriage returns, which the engine does not read."""
    both = text.count(b"\r\n")
    return text.count(b"\r") > both or 0 < both < text.count(b"\n")


def transcode(path: str, gzipped: bool, codec: str, target: str, name: str) -> str:
    """Write a copy of a text to `target`, in UTF-8 with line feeds, and return its path."""
    number = 0
    try:
        with (
            io.TextIOWrapper(open_binary(path, gzipped), encoding=codec) as text,
            open(target, "w", encoding="utf-8", newline="") as file,
        ):
            for number, line in enumerate(text, 1):  # noqa: B007 - for the error below
                file.write(line)
    except UnicodeError as error:
        with open_binary(path, gzipped) as lines:
            wrong = bad_encoding(name, lines) if codec == "utf-8" else None
        where, reason = f"{name}, after line {number}" if number else name, " ".join(str(error).split())
        raise wrong or fault("not-this-encoding", Place(where), codec=codec, reason=reason) from None
    return target


def with_line_feeds(source: FileSource, workspace: Workspace) -> FileSource:
    """Return the source of a copy whose lines all end in a line feed."""
    path = transcode(source.path, source.gzip, "utf-8", workspace.path("lines.txt"), source.name)
    return replace(source, path=path, gzip=False)


def csv_source(name: str, path: str, gzipped: bool, head: bytes, how: str) -> FileSource:
    """Return the source of a delimited text file: its separator, header, and number of lines above the header."""
    whole = len(head) < HEAD
    if not whole and b"\n" not in head:
        with open_binary(path, gzipped) as file:
            head = file.read(_LONGEST_HEADER)
        whole = len(head) < _LONGEST_HEADER
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head.removeprefix(codecs.BOM_UTF8), final=whole)
    except UnicodeDecodeError:
        with open_binary(path, gzipped) as file:
            wrong = bad_encoding(name, file)
        assert wrong is not None
        raise wrong from None
    excel = re.match(r'"?sep=([,;\t|])"?\r?\n', text)
    preamble = re.match(r"(?:[ \t]*\r?\n)*", text[excel.end() :] if excel else text)
    skip = (1 if excel else 0) + (preamble[0].count("\n") if preamble else 0)
    text = text[(excel.end() if excel else 0) + (len(preamble[0]) if preamble else 0) :]
    separator = excel[1] if excel else None
    delimiter, header, agreeing = _dialect(text, whole, separator)
    if agreeing < 0.5 or not all(header):
        titles = _titles(text, separator)
        if titles:
            skip, text = skip + titles, "".join(text.splitlines(keepends=True)[titles:])
            how += f", below {counted(skip, 'line')} that {'is' if skip == 1 else 'are'} no header"
            delimiter, header, _ = _dialect(text, whole, separator)
    if not header:
        if text:
            raise fault("endless-header", file=name, most=CELL)
        raise fault("no-header-line", file=name)
    check_columns(name, len(header))
    for cell in header:
        if re.fullmatch(r"[+-]?(?:\d*[.,]\d+|\d+(?:[.,]\d+)?\s*%)", cell):
            raise fault("number-in-header", Place(name), cell=cell)
    separated = f"CSV, fields separated by {_DELIMITERS[delimiter]}" if len(header) > 1 else "CSV of one column"
    return FileSource(name, path, "csv", gzipped, delimiter, header, skip, (finding("format", format=separated + how),))


def _titles(text: str, separator: str | None) -> int:
    r"""Return the number of lines above the header: titles, which fill few cells, and blank lines.

    >>> _titles("Export of 1 May\n\nevent,ann,bob\nq1,0.5,0.4\n", None)
    2
    >>> _titles("event,ann\nq1,0.5,0.4,0.3,0.2\n", None)
    0
    """
    lines = text[:_TITLES].splitlines()[:20]
    for delimiter in [separator] if separator else _DELIMITERS:
        cells = [[cell.strip(' "') for cell in line.split(delimiter)] for line in lines]
        filled = [sum(map(bool, row)) for row in cells]
        header = next((i for i, count in enumerate(filled) if count >= 3 and not any(map(_is_number, cells[i]))), 0)
        above = filled[:header]
        if above and 2 * max(above) < filled[header] and '"' not in "".join(lines[:header]):
            return header
    return 0


def _is_number(cell: str) -> bool:
    return bool(re.fullmatch(r"[+-]?\d*[.,]?\d+\s*%?", cell))


def _dialect(text: str, whole: bool, separator: str | None) -> tuple[str, tuple[str, ...], float]:
    """Return the separator under which most records are as wide as the header, the header, and their share."""
    best: tuple[tuple[float, int], str, list[str]] = ((-1.0, 0), ",", [])
    for delimiter in [separator] if separator else _DELIMITERS:
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


def bad_encoding(name: str, lines: Iterable[bytes]) -> OpinionPoolError | None:
    """Return the error for the first line that is not UTF-8, None if all are."""
    for number, line in enumerate(lines, 1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            place = Place(name, (number,), value=f"0x{line[error.start]:02x}")
            return fault("not-utf-8", place, [Remedy({"encoding": "cp1252"})])
    return None


_JSON_LINES = 'JSON lines are wanted, one object in each line: {"event": "q1", "expert": "A", "probability": 0.7}'


def numbered_records(source: FileSource) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a CSV file, header first, each with the number of its first line."""
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


def _ends_a_line(source: FileSource) -> bool:
    """Whether the last line of a text file ends with a line end."""
    last = ""
    with source.lines() as lines:
        for last in lines:  # noqa: B007 - the last one is used
            pass
    return last.endswith(("\n", "\r"))


def text_fault(source: FileSource) -> OpinionPoolError | int | None:
    """Return the error in a text that the engine rejects, or of CSV the number of rows shorter than the header."""
    with source.open() as file:
        wrong = bad_encoding(source.name, file)
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
    if line == last and 0 < cells < width and not _ends_a_line(source):
        return fault("cut-off", file=source.name, line=line, cells=cells, width=width)
    if not others:
        return short
    names = ", ".join(name if len(name) <= 30 else name[:27] + "..." for name in source.header[:6])
    names += ", ..." if width > 6 else ""
    way = f"a cell that holds a {source.delimiter!r} must stand in double quotes"
    way = "if it is a remark, and no row, take it out" if cells == 1 else way
    return fault("other-width", Place(source.name, (line,)), (), fields=cells, width=width, names=names, way=way)


def _json_fault(source: FileSource) -> OpinionPoolError | None:
    import json

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
    """Return the number of the line on which each of the table's `rows` begins, read in one pass over the file."""
    wanted, found = set(rows), {}
    starts: Iterator[int]
    if source.format == "csv":
        starts = (line for line, _ in islice(numbered_records(source), 1, None))
    else:
        starts = _full_lines(source)
    for row, line in enumerate(starts):
        if row in wanted:
            found[row] = line
            if len(found) == len(wanted):
                break
    return [found[row] for row in rows]


def _full_lines(source: FileSource) -> Iterator[int]:
    with source.lines() as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield number
