"""Spreadsheets, whose first sheet that has cells is written as CSV for the engine."""

from __future__ import annotations

import csv
import datetime
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from posixpath import join, normpath
from typing import IO
from xml.etree.ElementTree import Element, ParseError, iterparse

from opinionpool.errors import Note, TableError
from opinionpool.extras import install
from opinionpool.findings import fault, finding
from opinionpool.tables.engine import SAVE_AS, check_cells

# Most bytes that a workbook may unpack to.
LARGEST = 1 << 30


def sheet_as_csv(name: str, path: str, target: str) -> tuple[Note, ...]:
    """Write the first sheet that has cells to the path `target` as CSV, a line for each row; return the notes."""
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
        for sheet in book.sheet_names:
            rows = book.get_sheet_by_name(sheet).to_python(skip_empty_area=False)
            if any(cell != "" for row in rows for cell in row):
                break
        else:
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
    if not zipfile.is_zipfile(path):
        return {}
    try:
        with zipfile.ZipFile(path) as archive:
            if "content.xml" in archive.namelist():
                with archive.open("content.xml") as content:
                    return _open_document(content)
            return {name: _office(archive, part) for name, part in _office_parts(archive)}
    except (KeyError, ValueError, ParseError, zipfile.BadZipFile):
        # The reader says what is wrong with the file.
        return {}


def _local(name: str) -> str:
    """Return the name of an XML element or attribute without its namespace."""
    return name.rpartition("}")[2]


def _attributes(element: Element) -> dict[str, str]:
    return {_local(name): value for name, value in element.items()}


def _elements(file: IO[bytes], tag: str) -> Iterator[Element]:
    """Yield the XML elements called `tag`, and clear each one afterwards to free memory."""
    for _, element in iterparse(file):
        if _local(element.tag) == tag:
            yield element
            element.clear()


def _office_parts(archive: zipfile.ZipFile) -> list[tuple[str, str]]:
    """Return the name of each sheet of an Office workbook, and the sheet's path in the archive."""
    with archive.open("xl/_rels/workbook.xml.rels") as file:
        targets = {each.get("Id", ""): each.get("Target", "") for each in _elements(file, "Relationship")}
    with archive.open("xl/workbook.xml") as file:
        sheets = [_attributes(each) for each in _elements(file, "sheet")]
    # A target is within the folder of the workbook, or from the root.
    return [(each["name"], normpath(join("/xl", targets[each["id"]])).lstrip("/")) for each in sheets]


def _office(archive: zipfile.ZipFile, part: str) -> _Cells:
    """Size and per cent cells of the sheet at the path `part` in an Office workbook."""
    percent, found, row = _percent_styles(archive), _Cells(), -1
    with archive.open(part) as file:
        for line in _elements(file, "row"):
            row, column = int(line.get("r", row + 2)) - 1, -1
            for cell in line:
                letters = re.match(r"[A-Z]+", cell.get("r", ""))
                column = _column(letters[0]) if letters else column + 1
                if len(cell):
                    found.add(row, column, cell.get("s", "0") in percent)
    return found


def _column(letters: str) -> int:
    """Return the position of a column from its letters.

    >>> _column("A"), _column("AB")
    (0, 27)
    """
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def _percent_styles(archive: zipfile.ZipFile) -> set[str]:
    """Return the positions, as text, of the cell styles with a per cent format; formats 9 and 10 are built in."""
    if "xl/styles.xml" not in archive.namelist():
        return set()
    with archive.open("xl/styles.xml") as file:
        own = {each.get("numFmtId") for each in _elements(file, "numFmt") if "%" in each.get("formatCode", "")}
    with archive.open("xl/styles.xml") as file:
        styles = next(_elements(file, "cellXfs"), ())
        return {str(i) for i, style in enumerate(styles) if style.get("numFmtId") in {"9", "10", *own}}


def _open_document(content: IO[bytes]) -> dict[str, _Cells]:
    """Size and per cent cells of each sheet of an OpenDocument file, by the sheet's name."""
    sheets: dict[str, _Cells] = {}
    for table in _elements(content, "table"):
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
        sheets[_attributes(table)["name"]] = found
    return sheets
