"""What the engine reads: a file with how to read it, a place for copies, and how large a table may be."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, field
from typing import BinaryIO, cast

from opinionpool.atomic import abandoned, own_name
from opinionpool.errors import Note
from opinionpool.findings import fault

# The engine's work for a column is that for thousands of cells.
COLUMNS = 10_000
CLASSES = 1_000
# Characters of one cell: what the csv module takes, and more than any name or number has.
CELL = 1 << 17
# Tables of forecasts shrink to a tenth, and those with one forecast throughout to a hundredth.
SMALL, RATIO = 1 << 26, 300
# Cells of a table few of whose cells are there, as where every object has keys of its own; bytes of the file for each.
CELLS, SPARSE = 5_000_000, 20


# Bytes of text from which on a file is large, and what one byte of a compressed or a Parquet file makes.
LARGE, UNPACKED = 200_000_000, {b"\x1f\x8b": 5, b"PA": 6}


def is_large(source: object) -> bool:
    """Whether a source is a file that is kept on disk while it is read."""
    if not isinstance(source, str | os.PathLike) or source == "-" or not os.path.isfile(source):
        return False
    size = os.path.getsize(source)
    with open(source, "rb") as file:
        head = file.read(2)
        file.seek(max(0, size - 4))
        # A gzip file ends with how much it holds.
        packed = int.from_bytes(file.read(4), "little") if head == b"\x1f\x8b" else 0
    return max(size * UNPACKED.get(head, 1), packed) > LARGE


def check_columns(name: str, columns: int) -> None:
    """Refuse a table that is too wide.

    >>> check_columns("forecasts.csv", 2000)
    """
    if columns > COLUMNS:
        raise fault("too-many-columns", file=name, columns=columns, most=COLUMNS)


def check_unpacked(name: str, packed: int, unpacked: int) -> None:
    """Raise as soon as a file unpacks to more than `SMALL` bytes and `RATIO` times its compressed size."""
    if unpacked > SMALL and unpacked > RATIO * packed:
        raise fault("unpacks-too-far", file=name, ratio=RATIO, packed=packed)


def check_cells(name: str, rows: int, columns: int, written: int) -> None:
    """Refuse a table that has many cells, and writes few of them: `written` cells or bytes."""
    if rows * columns > max(CELLS, SPARSE * written):
        raise fault("too-many-cells", file=name, rows=rows, columns=columns)


def check_classes(name: str, classes: int) -> None:
    """Refuse a table whose events have too many classes: what pools learn grows with their square."""
    if classes > CLASSES:
        raise fault("too-many-classes", file=name, classes=classes, most=CLASSES)


@dataclass
class Workspace:
    """A temporary directory that exists once it is needed."""

    directory: str | None = None

    def path(self, name: str) -> str:
        """Where a file of that name may be written."""
        if self.directory is None:
            import shutil
            import tempfile

            for left in abandoned(tempfile.gettempdir()):
                shutil.rmtree(left, ignore_errors=True)
            self.directory = tempfile.mkdtemp(prefix=own_name())
        return os.path.join(self.directory, name)

    def close(self) -> None:
        """Remove the directory with its files."""
        if self.directory is not None:
            import shutil

            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory = None


@dataclass(frozen=True)
class FileSource:
    """A file that the engine can read."""

    name: str  # what people call it
    path: str  # what the engine opens
    format: str  # {"csv", "parquet", "json", "json array", "json rows"}
    gzip: bool = False  # whether what stands at `path` is compressed
    delimiter: str = ","  # between the fields of a CSV file
    header: tuple[str, ...] = ()  # column names of a CSV file, trimmed
    skip: int = 0  # lines before the header
    notes: tuple[Note, ...] = field(default=())
    sheet: bool = False  # whether people see rows of a spreadsheet, and not lines
    padded: bool = False  # whether rows may end early

    def open(self) -> BinaryIO:
        """The bytes, decompressed."""
        return open_binary(self.path, self.gzip)

    def lines(self) -> io.TextIOWrapper:
        """The text, its line ends as they are."""
        return io.TextIOWrapper(self.open(), encoding="utf-8-sig", newline="")


def open_binary(path: str, gzipped: bool) -> BinaryIO:
    """The bytes of a file, unpacked."""
    if gzipped:
        import gzip

        return cast("BinaryIO", gzip.open(path, "rb"))
    return open(path, "rb")
