"""Spreadsheets, whose first sheet that has a row of several cells is written as CSV for the engine."""

from __future__ import annotations

import csv
import datetime
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from posixpath import join, normpath
from xml.etree.ElementTree import Element, ParseError, iterparse

from opinionpool.errors import Note, TableError
from opinionpool.extras import install
from opinionpool.findings import fault, finding
from opinionpool.tables.engine import SAVE_AS, check_cells

# Most bytes that a workbook may unpack to.
LARGEST = 1 << 30


def sheet_as_csv(name: str, path: str, target: str) -> tuple[Note, ...]:
    """Write the first sheet with several cells in a row, or with any, to the path `target` as CSV; return the notes."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise fault("needs-reader", file=name, install=install("excel"), save=SAVE_AS) from None
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > LARGEST:
            raise fault("sheet-too-large", file=name, size=size)
    written = _written_cells(path)
    for each in written.values():
        check_cells(name, each.rows, each.columns, each.count)
    try:
        book = CalamineWorkbook.from_path(path)
        found: list[tuple[str, Sequence[Sequence[object]], int]] = [("", [], 0)]
        for own in book.sheet_names:
            lines = book.get_sheet_by_name(own).to_python(skip_empty_area=False)
            found.append((own, lines, max((sum(cell != "" for cell in line) for line in lines), default=0)))
            if found[-1][2] > 1:
                break
        # A sheet of remarks has one cell in a row.
        sheet, rows, most = max(found, key=lambda one: min(one[2], 2))
        if not most:
            raise fault("no-cells", file=name)
    except (CalamineError, OSError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        raise fault("unreadable-sheet", file=name, save=SAVE_AS, error=str(error)) from None
    percent = written[sheet].percent if sheet in written else set()
    with open(target, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for i, row in enumerate(rows):
            cells = [_text(cell, (i, j) in percent) for j, cell in enumerate(row)]
            if any(cells):
                writer.writerow(cells)
            else:
                file.write("\n")
    others = [other for other in book.sheet_names if other != sheet]
    return (finding("sheet", file=name, sheet=sheet, others=others),)


def _text(cell: object, percent: bool) -> str:
    """Return a cell as text for CSV, with a per cent sign if its format has one."""
    if percent and isinstance(cell, float):
        return f"{Decimal(repr(cell)).scaleb(2):f}%"
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return cell.date().isoformat()
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return " ".join(str(cell).split())


@dataclass
class _Cells:
    """Size of a sheet, in rows and columns, its number of written cells, and the positions of per cent cells."""

    rows: int = 0
    columns: int = 0
    count: int = 0
    percent: set[tuple[int, int]] = field(default_factory=set)

    def add(self, row: int, column: int, percent: bool, rows: int = 1, columns: int = 1) -> None:
        """Add a cell, or `rows` x `columns` equal cells from `row` and `column` on, in per cent if `percent`."""
        self.rows, self.columns = max(self.rows, row + rows), max(self.columns, column + columns)
        self.count += 1
        if percent and rows * columns == 1:
            self.percent.add((row, column))


def _written_cells(path: str) -> dict[str, _Cells]:
    """Size and per cent cells of each sheet, by its name, from the file's XML; empty if the file has no XML."""
    try:
        with zipfile.ZipFile(path) as archive:
            return dict((_open_document if "content.xml" in archive.namelist() else _office)(archive))
    except (KeyError, ValueError, ParseError, zipfile.BadZipFile):
        # The reader says what is wrong with the file.
        return {}


def _elements(archive: zipfile.ZipFile, path: str, tag: str) -> Iterator[tuple[Element, dict[str, str]]]:
    """Yield the XML elements called `tag` in the file at `path`, with their attributes, and clear each one afterwards.

    Names are without their namespaces.
    """
    with archive.open(path) as file:
        for _, element in iterparse(file):
            if _local(element.tag) == tag:
                yield element, _attributes(element)
                element.clear()


def _attributes(element: Element) -> dict[str, str]:
    return {_local(name): value for name, value in element.items()}


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _office(archive: zipfile.ZipFile) -> Iterator[tuple[str, _Cells]]:
    """Yield name, size and per cent cells of each sheet of an Office workbook."""
    percent = _percent_styles(archive)
    targets = {of["Id"]: of["Target"] for _, of in _elements(archive, "xl/_rels/workbook.xml.rels", "Relationship")}
    for _, sheet in _elements(archive, "xl/workbook.xml", "sheet"):
        found, row = _Cells(), -1
        # A target is within the folder of the workbook, or from the root.
        for line, at in _elements(archive, normpath(join("/xl", targets[sheet["id"]])).lstrip("/"), "row"):
            row, column = int(at.get("r", row + 2)) - 1, -1
            for cell in line:
                letters = re.match(r"[A-Z]+", cell.get("r", ""))
                column = _column(letters[0]) if letters else column + 1
                if len(cell):
                    found.add(row, column, cell.get("s", "0") in percent)
        yield sheet["name"], found


def _column(letters: str) -> int:
    """Return the position of a column from its letters.

    >>> _column("A"), _column("AB")
    (0, 27)
    """
    return reduce(lambda number, letter: 26 * number + ord(letter) - ord("A") + 1, letters, 0) - 1


def _percent_styles(archive: zipfile.ZipFile) -> set[str]:
    """Return the positions, as text, of the cell styles with a per cent format; formats 9 and 10 are built in."""
    path = "xl/styles.xml"
    if path not in archive.namelist():
        return set()
    formats = (of for _, of in _elements(archive, path, "numFmt"))
    own = {"9", "10", *(of.get("numFmtId", "") for of in formats if "%" in of.get("formatCode", ""))}
    styles = next((list(each) for each, _ in _elements(archive, path, "cellXfs")), [])
    return {str(i) for i, style in enumerate(styles) if style.get("numFmtId") in own}


def _open_document(archive: zipfile.ZipFile) -> Iterator[tuple[str, _Cells]]:
    """Yield name, size and per cent cells of each sheet of an OpenDocument file."""
    for table, sheet in _elements(archive, "content.xml", "table"):
        found, row = _Cells(), 0
        for line in (line for line in table.iter() if _local(line.tag) == "table-row"):
            rows, column = int(_attributes(line).get("number-rows-repeated", 1)), 0
            for cell in line:
                kind = _attributes(cell)
                columns = int(kind.get("number-columns-repeated", 1))
                if len(cell):
                    found.add(row, column, kind.get("value-type") == "percentage", rows, columns)
                column += columns
            row += rows
        yield sheet["name"], found
