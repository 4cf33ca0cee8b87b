"""Spreadsheets: what the format of a cell says of its number, and sheets that would fill the memory."""

import io
import zipfile

import numpy as np
import pytest

from opinionpool.errors import TableError
from opinionpool.tables.read import read_forecasts

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
