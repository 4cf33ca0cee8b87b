"""Output of columns as tables for people, and as CSV and JSON for programs; formats of numbers.

The table is laid out here rather than by rich, which takes 100 times as long for long tables and pads every line;
rich measures and folds text that is not plain.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from typing import Any, TextIO, cast

from opinionpool.text import FORMULAS, with_apostrophe

# Percentage points below which a difference is shown as 0.
NOTHING = 0.05


def percent(p: float) -> str:
    """Return a probability in per cent with the digits that it needs near 0 and 1; only 0 is 0%, and only 1 is 100%.

    >>> [percent(p) for p in (0.5, 0.9995, 0.00042, 1e-8, 1e-300, 1.0)]
    ['50.0%', '99.950%', '0.042%', '0.000001%', '1.0e-298%', '100%']
    """
    left = 100.0 * min(p, 1.0 - p)
    if left <= 0:
        return f"{100.0 * p:.0f}%"
    first = -math.floor(math.log10(left))
    if first > 15:
        return f"{100.0 * p:.1e}%"
    return f"{100.0 * p:.{max(1, first + (left >= 0.01))}f}%"


def brief(p: float) -> str:
    """Return a probability in whole per cent, with more digits near 0 and 1.

    >>> brief(0.634), brief(0.9928), brief(0.00042), brief(1.0)
    ('63%', '99.3%', '0.042%', '100%')
    """
    if 0.0095 <= p <= 0.9905:
        return f"{100.0 * p:.0f}%"
    return f"{100.0 * p:.1f}%" if 0.00095 <= p <= 0.99905 else percent(p)


def points(p: float) -> str:
    """Return a difference of probabilities, as text in percentage points.

    >>> points(0.0312), points(-0.2), points(1e-9)
    ('+3.1', '-20.0', '0.0')
    """
    return "0.0" if abs(100.0 * p) < NOTHING else f"{100.0 * p:+.1f}"


def whole(count: float) -> str:
    """Return a count as text; a weighted count that is no whole number has decimals.

    >>> whole(1234567.0), whole(2.5)
    ('1,234,567', '2.5')
    """
    return f"{count:,.15g}"


def decimal(x: float, digits: int = 3) -> str:
    """Return a number with `digits` decimals; zero has no sign.

    >>> decimal(-0.12345), decimal(-0.0), hundredths(0.125)
    ('-0.123', '0.000', '0.12')
    """
    return f"{round(x, digits) + 0.0:.{digits}f}"


def signed(x: float, digits: int = 3) -> str:
    """Return a number with `digits` decimals and a sign; zero has no sign."""
    return f"{x:+.{digits}f}" if abs(x) >= 0.5 * 10.0**-digits else decimal(0.0, digits)


def limit(x: float) -> str:
    """Return an interval limit with a sign and three decimals, or up to six where fewer would show 0."""
    return f"{x:+.{next((digits for digits in range(3, 7) if round(x, digits)), 3)}f}"


def gained(mean: float, low: float, high: float) -> str:
    """Return a difference of scores with the limits of its interval, if these are known.

    >>> gained(0.0215, -0.0175, 0.0584), gained(0.0215, float("nan"), float("nan"))
    ('+0.021 (-0.018 to +0.058)', '+0.021')
    """
    return signed(mean) + (f" ({limit(low)} to {limit(high)})" if math.isfinite(low) else "")


hundredths, two_signed = partial(decimal, digits=2), partial(signed, digits=2)


def finite(number: float) -> float | None:
    """Return a number; None in place of NaN and infinities, which JSON cannot have."""
    return number if math.isfinite(number) else None


def as_is(text: str) -> str:
    """Return `text` unchanged; a column with this format is aligned on the right, like numbers, and never folded."""
    return text


GAP = "  "
BLOCK = 1000
# Text columns are folded to the first of these before a table leaves out columns, and to the second afterwards.
COMFORTABLE, NARROWEST = 16, 8
_SPECIAL = re.compile('[",\r\n]')
# Control characters, which no text in CSV needs, and on which a terminal would act if it showed the file.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# First characters of fields that may need an apostrophe.
_LEADING = FORMULAS | {"'"}
# Characters that would move the cursor, colour the screen or turn the direction of writing in a terminal.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class Column:
    """Column of a table: a key, values, a title, and formats for people; programs get the values themselves."""

    key: str  # its header in CSV
    values: Sequence[Any]  # text, numbers, booleans, or None
    title: str | None  # its header in a table; None if tables leave it out
    show: Callable[[Any], str] = str  # the format of values (not None) in a table
    machine: bool = True  # whether CSV has the column
    # a table too wide for its terminal leaves out the columns with the highest `spare`, those with the same value
    # together; never those with 0
    spare: int = 0
    table: Sequence[Any] | None = None  # what a table shows instead of the values
    page: Callable[[Any], str] | None = None  # the format of values on a page, if it differs

    @property
    def numeric(self) -> bool:
        """Whether a table aligns the column on the right, with decimal points below each other."""
        return self.show is not str

    @property
    def shown(self) -> Sequence[Any]:
        """Return the values as texts, as tables and pages show them."""
        return self.values if self.table is None else self.table

    def take(self, rows: Iterable[int]) -> Column:
        """Return the column with the values at positions `rows`, in this order."""
        chosen = list(rows)
        table = None if self.table is None else [self.table[i] for i in chosen]
        return replace(self, values=[self.values[i] for i in chosen], table=table)


def with_limits(
    column: Column, low: Sequence[Any], high: Sequence[Any], show: Callable[[Any], str], spare: int = 0
) -> list[Column]:
    """Return a column, and two columns with lower and upper limits of its values, which `show` formats."""
    key, sign, label = column.key.partition(":")
    ends = ("low", low, "from"), ("high", high, "to")
    return [column, *(Column(f"{key}_{end}{sign}{label}", x, title, show, spare=spare) for end, x, title in ends)]


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def printable(text: str) -> str:
    r"""Return a text with control characters as escapes, safe to send to a terminal.

    >>> print(printable("two" + chr(10) + "lines" + chr(27) + "[31m"))
    two\nlines\x1b[31m
    """
    return _UNPRINTABLE.sub(_escaped, text)


def records(columns: Sequence[Column]) -> Iterator[dict[str, object]]:
    """Yield each row of the columns as a record for JSON."""
    chosen = [column for column in columns if column.machine]
    keys = [column.key for column in chosen]
    for row in zip(*(column.values for column in chosen), strict=True):
        yield dict(zip(keys, row, strict=True))


def write_listing(columns: Sequence[Column], kind: str, out: TextIO, headed: bool = True) -> None:
    """Write columns as ``"table"`` or ``"csv"``; `headed` is False for rows that continue those written before."""
    (write_table if kind == "table" else write_csv)(columns, out, headed)


def write_json(name: str, records: Iterable[Mapping[str, object]], summary: Mapping[str, object], out: TextIO) -> None:
    """Write ``{name: [...], "summary": {...}}`` with a line for each record; raise ValueError for NaN."""
    out.write(f"{{{json.dumps(name)}: [")
    separator = "\n"
    for record in records:
        out.write(separator + json.dumps(record, ensure_ascii=False, allow_nan=False))
        separator = ",\n"
    out.write('\n], "summary": ' + json.dumps(summary, ensure_ascii=False, allow_nan=False, indent=1) + "}\n")


def write_topics(rows: Sequence[tuple[str, str]], out: TextIO) -> None:
    """Write pairs of a topic and a text in two columns; long texts are folded between words."""
    topics, texts = zip(*rows, strict=True)
    once = [topic if topic != before else None for topic, before in zip(topics, (None, *topics), strict=False)]
    write_table([Column("topic", once, ""), Column("text", texts, "")], out, headed=False)


def write_text(text: str, out: TextIO) -> None:
    """Write a sentence, broken between words into lines if the stream has a width."""
    for number, line in enumerate(folded(printable(text), max((_room(out) or 10**9) - len(GAP), 2 * NARROWEST))):
        out.write(f"{GAP if number else ''}{line}\n")


def write_csv(columns: Sequence[Column], out: TextIO, headed: bool = True) -> None:
    """Write the columns as CSV: numbers in full precision, None as an empty field, booleans as ``true``, ``false``.

    A text that a spreadsheet would take for a formula gets an apostrophe in front, which `read_forecasts` removes.
    """
    chosen = [column for column in columns if column.machine]
    if headed:
        out.write(",".join(_field(column.key) for column in chosen) + "\n")
    fields = [_fields(column.values) for column in chosen]
    if len(chosen[0].values) >= MANY:
        out.writelines(_lines_by_engine(fields))
        return
    rows = zip(*fields, strict=True)
    while block := list(map(",".join, islice(rows, BLOCK))):
        out.write("\n".join(block) + "\n")


# Compared by value among its own kind; of few different ones each is written once.
_PLAIN, _FEW = {type(None), bool, int, str}, 100
# Number of rows from which the SQL engine writes lines: it finds the fewest digits of a number sooner than Python.
MANY = 50_000


def _fields(values: Sequence[object]) -> Iterable[Any]:
    """Return the values of a column as CSV fields, texts quoted only where needed; `MANY` floats stay an array."""
    kinds = set(map(type, values))
    if kinds == {float} and len(values) >= MANY:
        return array("d", cast("Sequence[float]", values))
    if float in kinds and kinds <= {int, float}:
        return map(repr, values)
    few = len(kinds - {type(None)}) == 1 and kinds <= _PLAIN and len(set(islice(values, 10 * _FEW))) <= _FEW
    if few and len(different := set(values)) <= _FEW:
        written = {value: _field(value) for value in different}
        return map(written.__getitem__, values)
    if kinds == {int}:
        return map(str, values)
    if kinds == {str} and _is_plain(cast("Sequence[str]", values)):
        return cast("Sequence[str]", values)
    return map(_field, values)


def _lines_by_engine(columns: Sequence[Iterable[Any]]) -> Iterator[str]:
    """Yield columns of fields as lines of CSV, `MANY` rows at a time, with numbers as their shortest decimals."""
    import numpy as np

    cells = [np.asarray(each) if isinstance(each, array) else np.array([*each], dtype=object) for each in columns]
    query = f"SELECT string_agg(concat_ws(',', {', '.join(f'c{i}' for i in range(len(cells)))}), chr(10)) FROM block"
    for start in range(0, len(cells[0]), MANY):
        with _connection().cursor() as cursor:
            cursor.register("block", {f"c{i}": each[start : start + MANY] for i, each in enumerate(cells)})
            yield cursor.execute(query).fetchone()[0] + "\n"


@cache
def _connection() -> Any:  # noqa: ANN401 - of the engine, which tables alone know
    """Return a connection to the SQL engine, opened once, which converts many numbers to text fast."""
    from opinionpool.tables.engine import engine

    return engine().connect(":memory:", config={"threads": 1})


def _is_plain(texts: Sequence[str]) -> bool:
    """Whether no text needs quotes or escapes in CSV; all texts are searched at once."""
    lines = "\n" + "\n".join(texts)
    if any(sign in lines for sign in '",\r') or lines.count("\n") > len(texts) or _CONTROL.search(lines):
        return False
    return not any(sign in lines and "\n" + sign in lines for sign in _LEADING)


def _field(value: object) -> str:
    """Return a text as a CSV field, in quotes if it has a comma, a quote or a line end."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = _CONTROL.sub(_escaped, with_apostrophe(value)) if isinstance(value, str) else str(value)
    return '"' + text.replace('"', '""') + '"' if _SPECIAL.search(text) else text


def write_table(columns: Sequence[Column], out: TextIO, headed: bool = True) -> None:
    """Write columns as a table that fits into the terminal's width if the output is a terminal."""
    chosen = [column for column in columns if column.title is not None]
    room = _room(out)
    while True:
        titles = [column.title or "" for column in chosen]
        cells = [_shown(column) for column in chosen]
        widths = [max(map(_width, (title, *shown))) for title, shown in zip(titles, cells, strict=True)]
        numeric = [column.numeric for column in chosen]
        spare = max(column.spare for column in chosen)
        widths = _fitted(widths, numeric, room, COMFORTABLE if spare else NARROWEST)
        if room is None or not spare or _total(widths) <= room:
            break
        chosen = [column for column in chosen if column.spare != spare]
    bold, plain = ("\x1b[1m", "\x1b[0m") if coloured(out) else ("", "")
    for line in _lines(titles, widths, numeric) if headed else ():
        out.write(f"{bold}{line}{plain}\n")
    rows = zip(*cells, strict=True)
    while block := [line for row in islice(rows, BLOCK) for line in _lines(row, widths, numeric)]:
        out.write("\n".join(block) + "\n")


def coloured(out: TextIO) -> bool:
    """Whether a stream, such as a terminal, shows colours and bold text."""
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _room(out: TextIO) -> int | None:
    """Return the number of characters in a line: that of the terminal or of COLUMNS; None if unlimited."""
    if out.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size().columns
    return None


def _shown(column: Column) -> list[str]:
    """Return the cells of a column as texts of a table, with decimal points aligned."""
    if not column.numeric:
        return ["" if value is None else printable(str(value)) for value in column.shown]
    shown = ["" if value is None else column.show(value) for value in column.shown]
    behind = [len(cell) - cell.find(".") if "." in cell else 0 for cell in shown]
    most = max(behind, default=0)
    return [cell + " " * (most - after) if after else cell for cell, after in zip(shown, behind, strict=True)]


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _fitted(widths: list[int], numeric: Sequence[bool], room: int | None, least: int) -> list[int]:
    """Column widths that fit into `room`: the widest text column is narrowed, again and again, at most to `least`."""
    while room is not None and _total(widths) > room:
        narrowable = [i for i, number in enumerate(numeric) if not number and widths[i] > least]
        if not narrowable:
            break
        widths[max(narrowable, key=widths.__getitem__)] -= 1
    return widths


def _lines(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> Iterator[str]:
    """Yield the lines of a table row, columns with `right` aligned right; text too wide for its column is folded."""
    parts = [folded(cell, width) for cell, width in zip(row, widths, strict=True)]
    for i in range(max(map(len, parts))):
        cells = []
        for part, width, at_right in zip(parts, widths, right, strict=True):
            text = part[i] if i < len(part) else ""
            space = " " * (width - _width(text))
            cells.append(space + text if at_right else text + space)
        yield GAP.join(cells).rstrip()


def folded(text: str, width: int) -> list[str]:
    """Return a text as lines of at most `width` characters, broken between words where possible."""
    if _width(text) <= width:
        return [text]
    from rich.cells import chop_cells

    lines, line = [], ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if _width(longer) <= width:
            line = longer
            continue
        if line:
            lines.append(line)
        *full, line = chop_cells(word, width) or [""]
        lines += full
    return [*lines, line]
