"""Where in a file the engine stumbled: its lines gone through once more, for an error that names one."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import islice

from opinionpool.errors import OpinionPoolError, TableError
from opinionpool.findings import Place, fault
from opinionpool.tables.delimited import bad_encoding
from opinionpool.tables.sources import CELL, FileSource

_JSON_LINES = 'JSON lines are wanted, one object in each line: {"event": "q1", "expert": "A", "probability": 0.7}'


def numbered_records(source: FileSource) -> Iterator[tuple[int, list[str]]]:
    """The records of a CSV file, header first, each with the line where it begins."""
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


def csv_short_rows(source: FileSource) -> int:
    """How many rows of a CSV file end before the header does; 0 where some are longer, or not well formed."""
    width, short, cut = len(source.header), 0, (0, 0)
    try:
        for line, record in numbered_records(source):
            cut = (line, len(record))
            if len(record) > width:
                return 0
            # A record of one cell is more likely a line that is no record.
            if 1 < len(record) < width:
                short += 1
            elif len(record) == 1 < width:
                return 0
    except (TableError, UnicodeDecodeError):
        return 0
    if short == 1 and cut[1] < width and not _ends_a_line(source):
        raise _cut_off(source, *cut)
    return short


def _ends_a_line(source: FileSource) -> bool:
    """Whether the last line of a text has a line end."""
    last = ""
    with source.lines() as lines:
        for last in lines:  # noqa: B007 - the last one is used
            pass
    return last.endswith(("\n", "\r"))


def _cut_off(source: FileSource, line: int, cells: int) -> OpinionPoolError:
    """The error for a file whose last row is not complete."""
    return fault("cut-off", file=source.name, line=line, cells=cells, width=len(source.header))


def csv_fault(source: FileSource) -> OpinionPoolError | None:
    """What is wrong with a CSV file that the engine could not read, or None."""
    with source.open() as file:
        wrong = bad_encoding(source.name, file)
    if wrong:
        return wrong
    width = len(source.header)
    short = [name if len(name) <= 30 else name[:27] + "..." for name in source.header[:6]]
    names = ", ".join(short) + (", ..." if width > 6 else "")
    last = 0
    try:
        for last, _ in numbered_records(source):  # noqa: B007 - the last one is used
            pass
        for line, record in numbered_records(source):
            if line == last and 0 < len(record) < width and not _ends_a_line(source):
                return _cut_off(source, line, len(record))
            if len(record) != width and record:
                way = f"a cell that holds a {source.delimiter!r} must stand in double quotes"
                if len(record) == 1:
                    way = "if it is a remark, and no row, take it out"
                about = {"fields": len(record), "width": width, "names": names, "way": way}
                return fault("other-width", Place(source.name, (line,)), (), **about)
    except TableError as error:
        return error
    return None


def json_fault(source: FileSource) -> OpinionPoolError | None:
    """What is wrong with a file of JSON lines that the engine could not read, or None."""
    import json

    with source.open() as file:
        wrong = bad_encoding(source.name, file)
    if wrong:
        return wrong
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
    """The lines of the file where some rows of the table begin, in one pass."""
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
