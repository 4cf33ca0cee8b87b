"""Files before the engine reads them: their format, compression, encoding, field separator and header.

All of it is decided here, from the first bytes, so that the engine guesses nothing. What it cannot read as it stands
(standard input, another encoding than UTF-8) is copied into a temporary directory first.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import BinaryIO, cast

from opinionpool.atomic import abandoned, own_name
from opinionpool.errors import LayoutError, Note, TableError
from opinionpool.tables.roles import SYNONYMS, normal
from opinionpool.text import shown, without_apostrophe

# The engine's work for a column is that for thousands of cells.
COLUMNS = 10_000
CLASSES = 1_000
# Characters of one cell: what the csv module takes, and more than any name or number has.
CELL = 1 << 17
# Tables of forecasts shrink to a tenth, and those with one forecast throughout to a hundredth.
SMALL, RATIO = 1 << 26, 300
# Cells of a table few of whose cells are there, as where every object has keys of its own; bytes of the file for each.
CELLS, SPARSE = 5_000_000, 20


def check_columns(name: str, columns: int) -> None:
    """Refuse a table that is too wide.

    Raises
    ------
    LayoutError
        With the way out.

    Examples
    --------
    >>> check_columns("forecasts.csv", 2000)
    """
    if columns > COLUMNS:
        raise LayoutError(
            f"{name} has {columns:,} columns, and at most {COLUMNS:,} are read; write a row for each forecast, with "
            "the columns event, expert and probability, which may be by any number of experts"
        )


def check_unpacked(name: str, packed: int, unpacked: int) -> None:
    """Refuse a compressed file that grows beyond all measure, as soon as it has."""
    if unpacked > SMALL and unpacked > RATIO * packed:
        raise TableError(
            f"{name} unpacks to more than {RATIO} times its {packed:,} bytes, which no table of forecasts does: it is "
            "damaged or meant to fill the memory; if it is neither, unpack it first"
        )


def check_cells(name: str, rows: int, columns: int, written: int) -> None:
    """Refuse a table that has many cells, and writes few of them: `written` cells or bytes."""
    if rows * columns > max(CELLS, SPARSE * written):
        raise TableError(
            f"{name} has {rows:,} rows and {columns:,} columns, nearly all of whose cells are empty or alike, and "
            "would fill the memory; write a row for each forecast, with the columns event, expert and probability"
        )


def check_classes(name: str, classes: int) -> None:
    """Refuse a table whose events have too many classes: what pools learn grows with their square."""
    if classes > CLASSES:
        raise LayoutError(
            f"{name} has {classes:,} classes, and at most {CLASSES:,} are pooled; if its column holds something else "
            "than classes, say --column class="
        )


_HEAD = 1 << 18
_LONGEST_HEADER = 1 << 24
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods", ".numbers")
_SAVE_AS = "save it as CSV in the program that made it (File, Save As, CSV UTF-8), and read that file"
_FOREIGN = (
    (b"ARROW1", "an Arrow (Feather) file: save it as Parquet"),
    (b"SQLite format 3", "an SQLite database: export the table as CSV"),
    (b"%PDF", "a PDF document: the table in it must be saved as CSV"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: unpack it first, or use gzip"),
    (b"\xfd7zXZ", "compressed with xz: unpack it first, or use gzip"),
    (b"BZh", "compressed with bzip2: unpack it first, or use gzip"),
    (b"\x93NUMPY", "a NumPy file: load it in Python and pass the array"),
)


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
        """Remove it and all that is in it."""
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
        return _open(self.path, self.gzip)

    def lines(self) -> io.TextIOWrapper:
        """The text, its line ends as they are."""
        return io.TextIOWrapper(self.open(), encoding="utf-8-sig", newline="")


def _open(path: str, gzipped: bool) -> BinaryIO:
    if gzipped:
        import gzip

        return cast(BinaryIO, gzip.open(path, "rb"))
    return open(path, "rb")


def prepare(source: object, encoding: str | None, workspace: Workspace) -> FileSource:
    """A file made ready for the engine.

    Parameters
    ----------
    source : str, path or binary file object
        ``"-"`` is standard input.
    encoding : str or None
        The text's encoding; None for UTF-8, or UTF-16 and UTF-32 with a byte-order mark. Text with letters beyond
        ASCII that is UTF-8 from beginning to end is read as such though an encoding of one byte a letter is named.
    workspace : Workspace
        Takes the copies that are needed.

    Raises
    ------
    TableError
        If there is no such file, or it is not a table; says what it is instead.
    LayoutError
        If the first line does not name the columns.
    """
    name, path = _local(source, workspace)
    head, gzipped = _first_bytes(path, name)
    if is_sheet(head, name):
        return _sheet_source(name, path, workspace)
    _check_kind(head, name)
    if head.startswith(b"PAR1"):
        if gzipped:
            with _open(path, True) as stream:
                path = _copy(stream, workspace.path("table.parquet"))
        return FileSource(name, path, "parquet", notes=(Note("format", "Parquet"),))
    codec = _codec(head, encoding, name)
    notes: tuple[Note, ...] = ()
    if encoding is not None and codec and _one_byte(codec) and _is_utf8(path, gzipped):
        # With one --encoding for two files, one of them may well be in order as it is.
        codec, notes = None, (Note("encoding", f"{name} is UTF-8, and not {encoding}, so it is read as that"),)
    how = (", gzip" if gzipped else "") + (f", encoding {encoding or codec}" if codec else "")
    if codec or _mixed_ends(head):
        path, gzipped = _transcode(path, gzipped, codec or "utf-8", workspace.path("table.txt"), name), False
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if re.match(rb"\{\s*[\"}]|\[\s*[{\]]", start):
        if start[:1] == b"{":
            return _object_source(FileSource(name, path, "json", gzipped, notes=notes), how, workspace)
        return FileSource(name, path, "json array", gzipped, notes=(Note("format", "a JSON array" + how), *notes))
    if re.match(rb"<(!doctype|html|\?xml)", start, re.IGNORECASE):
        raise TableError(f"{name} is a web page or XML document, not a table: was it downloaded without logging in?")
    source = _csv_source(name, path, gzipped, head, how)
    return replace(source, notes=(*source.notes, *notes))


def is_sheet(head: bytes, name: str) -> bool:
    """Whether a file is a spreadsheet."""
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        return name.lower().endswith(".xls")
    sheet = name.lower().endswith(_SPREADSHEETS) or b"xl/" in head or b"opendocument.spreadsheet" in head
    return head.startswith(b"PK\x03\x04") and sheet and not name.lower().endswith(".numbers")


def _sheet_source(name: str, path: str, workspace: Workspace) -> FileSource:
    """A spreadsheet as text between commas."""
    from opinionpool.tables.sheets import sheet_as_csv

    target = workspace.path("sheet.csv")
    notes = sheet_as_csv(name, path, target)
    with open(target, "rb") as file:
        source = _csv_source(name, target, False, file.read(_HEAD), "")
    return replace(source, notes=(Note("format", "a spreadsheet"), *notes), sheet=True)


def _object_source(source: FileSource, how: str, workspace: Workspace) -> FileSource:
    """JSON that begins with an object: lines of them, or one that holds a table."""
    from opinionpool.tables.objects import LARGEST, first_object, is_row, lines, read_document, rows_of

    plain = replace(source, notes=(Note("format", "JSON lines" + how), *source.notes))
    try:
        with source.lines() as text:
            first, more = first_object(text)
    except UnicodeDecodeError:
        return plain
    if first is not None and (more or is_row(first)):
        return plain
    if os.path.getsize(source.path) > LARGEST:
        raise TableError(f"{source.name} is one JSON object of more than {LARGEST:,} bytes; save it as JSON lines")
    with source.lines() as text:
        document = read_document(text)
    if document is None:
        return plain
    known = {name for names in SYNONYMS.values() for name in names if len(name) > 1}
    rows, shape = rows_of(source.name, document, lambda name: normal(name) in known)
    path = workspace.path("rows.json")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines(rows))
    note = Note("format", f"JSON, {shape}{how}")
    return FileSource(source.name, path, "json rows", notes=(note, *source.notes))


# Names of files that a folder is read for.
_TABLES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".xlsx", ".xls", ".ods")


def expand(source: object) -> list[object]:
    """The files that are meant: one, several, those in a folder, or those that fit a pattern.

    Raises
    ------
    TableError
        If there is none.
    """
    if isinstance(source, list | tuple):
        found = [each for one in source for each in expand(one)]
        if not found:
            raise TableError("no file is named")
        return found
    if not isinstance(source, str | os.PathLike) or source == "-" or os.path.isfile(source):
        return [source]
    path = os.fsdecode(source)
    if os.path.isdir(path):
        names = sorted(name for name in os.listdir(path) if name.lower().removesuffix(".gz").endswith(_TABLES))
        if not names:
            raise TableError(
                f"{path} is a directory, and no file in it has a name that ends as tables do, such as .csv"
            )
        return [os.path.join(path, name) for name in names]
    if re.search(r"[*?\[]", path) and not os.path.exists(path):
        import glob

        matching = sorted(glob.glob(path))
        if matching:
            return [each for one in matching for each in expand(one)]
    return [source]


def _local(source: object, workspace: Workspace) -> tuple[str, str]:
    """What people call the source, and a regular file with its bytes."""
    if isinstance(source, str) and source == "-":
        import sys

        return "standard input", _copy(sys.stdin.buffer, workspace.path("input"))
    if hasattr(source, "read"):
        if isinstance(source, io.TextIOBase):
            raise TableError("a file object must be opened in binary mode, as in open(path, 'rb')")
        name = getattr(source, "name", None)
        return name if isinstance(name, str) else "the file", _copy(cast(BinaryIO, source), workspace.path("input"))
    source = cast("str | os.PathLike[str]", source)
    path = os.fsdecode(source)
    name = path.encode("utf-8", "replace").decode("utf-8")
    try:
        if not os.path.isfile(path):
            with open(path, "rb") as stream:
                return name, _copy(stream, workspace.path("input"))
        path = os.path.abspath(path)
        # The engine would take these for patterns, or could not take the name.
        if re.search(r"[*?\[\]]", path) or name.encode("utf-8") != os.fsencode(source):
            link = workspace.path("input")
            os.symlink(path, link)
            path = link
    except FileNotFoundError:
        raise TableError(f"there is no file {name}") from None
    except OSError as error:
        raise TableError(f"{name} cannot be read: {error.strerror or error}") from None
    return name, path


def _copy(stream: BinaryIO, path: str) -> str:
    import shutil

    with open(path, "wb") as file:
        shutil.copyfileobj(stream, file, 1 << 20)
    return path


def _first_bytes(path: str, name: str) -> tuple[bytes, bool]:
    """The first bytes, decompressed, and whether they were compressed.

    A compressed file is gone through to its end, since the engine does not compare check sums.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise TableError(f"{name} cannot be read: {error.strerror or error}") from None
    gzipped = head.startswith(b"\x1f\x8b")
    if gzipped:
        import zlib

        try:
            with _open(path, True) as file:
                head = file.read(_HEAD)
                packed, unpacked = os.path.getsize(path), len(head)
                while more := len(file.read(1 << 20)):
                    unpacked += more
                    check_unpacked(name, packed, unpacked)
        except (OSError, EOFError, zlib.error) as error:
            raise TableError(f"{name} is a damaged gzip file ({error}); get it again") from None
    if not head:
        raise TableError(f"{name} is empty")
    return head, gzipped


def _check_kind(head: bytes, name: str) -> None:
    """Raise for files that are no tables, saying what they are."""
    if head.startswith(b"PK\x03\x04"):
        sheet = name.lower().endswith(_SPREADSHEETS)
        raise TableError(f"{name} is a " + (f"spreadsheet: {_SAVE_AS}" if sheet else "zip archive: unpack it first"))
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        raise TableError(f"{name} is a spreadsheet or document of an old Office program: {_SAVE_AS}")
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            raise TableError(f"{name} is {what}")


def _codec(head: bytes, encoding: str | None, name: str) -> str | None:
    """The encoding to translate from; None if the file is UTF-8."""
    if encoding is not None:
        try:
            info = codecs.lookup(encoding)
            "".encode(encoding)
        except LookupError:
            usual = "utf-8, utf-16, cp1252 and latin-1 are usual"
            raise TableError(f"no text encoding is called {shown(encoding)}; {usual}") from None
        return None if info.name in {"utf-8", "utf-8-sig", "ascii"} else info.name
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
                raise TableError(f"{name} looks like UTF-16 without a byte-order mark: say --encoding {codec}")
        raise TableError(f"{name} is not a text file, nor Parquet: it holds binary data")
    return None


def _one_byte(codec: str) -> bool:
    """Whether an encoding has one byte for each letter, so that every text of it is full of nonsense as UTF-8."""
    return len(bytes(range(128, 256)).decode(codec, "replace")) == 128


def _is_utf8(path: str, gzipped: bool) -> bool:
    """Whether there are letters beyond ASCII, and all of the text is UTF-8."""
    beyond = False
    with _open(path, gzipped) as file:
        for line in file:
            if not line.isascii():
                beyond = True
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError:
                    return False
    return beyond


def _mixed_ends(text: bytes) -> bool:
    """Whether lines end in several ways, or only in carriage returns, which the engine does not read."""
    both = text.count(b"\r\n")
    return text.count(b"\r") > both or 0 < both < text.count(b"\n")


def _transcode(path: str, gzipped: bool, codec: str, target: str, name: str) -> str:
    """A copy in UTF-8, with line feeds."""
    number = 0
    try:
        with (
            io.TextIOWrapper(_open(path, gzipped), encoding=codec) as text,
            open(target, "w", encoding="utf-8", newline="") as file,
        ):
            for number, line in enumerate(text, 1):  # noqa: B007 - for the error below
                file.write(line)
    except UnicodeError as error:
        reason = " ".join(str(error).split())
        place = f"{name}, after line {number}" if number else name
        raise TableError(f"{place}: not {codec} ({reason}); is --encoding right?") from None
    return target


def with_line_feeds(source: FileSource, workspace: Workspace) -> FileSource:
    """The same text in a copy whose lines all end in the same way."""
    path = _transcode(source.path, source.gzip, "utf-8", workspace.path("lines.txt"), source.name)
    return replace(source, path=path, gzip=False)


def _csv_source(name: str, path: str, gzipped: bool, head: bytes, how: str) -> FileSource:
    """A text file with a header and fields between delimiters."""
    whole = len(head) < _HEAD
    if not whole and b"\n" not in head:
        with _open(path, gzipped) as file:
            head = file.read(_LONGEST_HEADER)
        whole = len(head) < _LONGEST_HEADER
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head.removeprefix(codecs.BOM_UTF8), final=whole)
    except UnicodeDecodeError:
        with _open(path, gzipped) as file:
            fault = bad_encoding(name, file)
        raise fault or TableError(f"{name} is not UTF-8") from None
    excel = re.match(r'"?sep=([,;\t|])"?\r?\n', text)
    preamble = re.match(r"(?:[ \t]*\r?\n)*", text[excel.end() :] if excel else text)
    skip = (1 if excel else 0) + (preamble[0].count("\n") if preamble else 0)
    text = text[(excel.end() if excel else 0) + (len(preamble[0]) if preamble else 0) :]
    delimiter, header = _dialect(text, whole, excel[1] if excel else None)
    if not header:
        if text:
            raise TableError(f"{name} is not a table: its first line has a cell of more than {CELL:,} characters")
        raise TableError(f"{name} is empty: it has no line that names its columns")
    check_columns(name, len(header))
    for cell in header:
        if re.fullmatch(r"[+-]?(?:\d*[.,]\d+|\d+(?:[.,]\d+)?\s*%)", cell):
            raise LayoutError(f"{name}: the first line must name the columns, and it holds {shown(cell)}")
    separated = f"CSV, fields separated by {_DELIMITERS[delimiter]}" if len(header) > 1 else "CSV of one column"
    return FileSource(name, path, "csv", gzipped, delimiter, header, skip, (Note("format", separated + how),))


def _dialect(text: str, whole: bool, separator: str | None) -> tuple[str, tuple[str, ...]]:
    """The field separator under which the first records have as many fields as the header, and the header."""
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
    return best[1], tuple(without_apostrophe(cell.strip()) for cell in best[2])


def bad_encoding(name: str, lines: Iterable[bytes]) -> TableError | None:
    """The first line that is not UTF-8, as an error, or None."""
    for number, line in enumerate(lines, 1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            return TableError(
                f"{name}, line {number}: byte 0x{line[error.start]:02x} is not UTF-8; say which encoding the file "
                "has, as in --encoding cp1252 (Windows, western Europe) or --encoding latin-1",
                remedies=[{"encoding": "cp1252"}],
            )
    return None
