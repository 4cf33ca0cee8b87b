"""Spreadsheets: the cells of the first sheet that has some, as text between commas."""

from __future__ import annotations

import csv
import datetime
import zipfile

from opinionpool.errors import Note, TableError
from opinionpool.extras import install
from opinionpool.findings import finding

_SAVE_AS = "save it as CSV in the program that made it (File, Save As, CSV UTF-8), and read that file"
# What a workbook may unpack to.
LARGEST = 1 << 30


def sheet_as_csv(name: str, path: str, target: str) -> tuple[Note, ...]:
    """Write the first sheet with cells to `target`, a line for each of its rows.

    Raises
    ------
    TableError
        If there is no reader, or it cannot read the file.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise TableError(f"{name} is a spreadsheet: to read it, {install('excel')}; or {_SAVE_AS}") from None
    _check_size(name, path)
    try:
        book = CalamineWorkbook.from_path(path)
        for sheet in book.sheet_names:
            rows = book.get_sheet_by_name(sheet).to_python(skip_empty_area=False)
            if any(cell != "" for row in rows for cell in row):
                break
        else:
            raise TableError(f"{name} is a spreadsheet without cells")
    except (CalamineError, OSError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{name} is a spreadsheet: {_SAVE_AS} ({error})") from None
    with open(target, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for row in rows:
            cells = [_text(cell) for cell in row]
            if any(cells):
                writer.writerow(cells)
            else:
                file.write("\n")
    others = [other for other in book.sheet_names if other != sheet]
    return (finding("sheet", file=name, sheet=sheet, others=others),)


def _check_size(name: str, path: str) -> None:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > LARGEST:
            raise TableError(f"{name} unpacks to {size:,} bytes, which no table of forecasts does; save it as CSV")


def _text(cell: object) -> str:
    """A cell as it would stand in CSV."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return cell.date().isoformat()
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return " ".join(str(cell).split())
