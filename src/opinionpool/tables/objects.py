"""JSON as services and notebooks write it: rows under a key, columns side by side, rows by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TextIO

from opinionpool.findings import fault

# What is read at once: a document is one piece, unlike lines.
LARGEST = 500_000_000
Row = dict[str, object]


def first_object(stream: TextIO) -> tuple[Row | None, bool]:
    """The object in the first line that is not blank, None if that is no whole one, and whether there is more."""
    line = next((line for line in stream if line.strip()), "")
    more = any(line.strip() for line in stream)
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None, more
    return (found if isinstance(found, dict) else None), more


def read_document(stream: TextIO) -> Row | None:
    """The object that a whole text is, None if it is none."""
    try:
        found = json.load(stream)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        return None
    return found if isinstance(found, dict) else None


def is_row(document: Mapping[str, object]) -> bool:
    """Whether an object is one row, and not a table: some of its values are neither lists nor objects.

    >>> is_row({"event": "q1", "ann": 0.5}), is_row({"rows": [{"event": "q1"}]}), is_row({"ann": [0.5], "bob": [0.7]})
    (True, False, False)
    """
    return not _row_lists(document) and not all(isinstance(value, list | dict) for value in document.values())


def _row_lists(document: Mapping[str, object]) -> list[str]:
    """The keys that hold a list of objects."""
    return [
        key
        for key, value in document.items()
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value)
    ]


def rows_of(name: str, document: Mapping[str, object], known: Callable[[str], bool]) -> tuple[list[Row], str]:
    """The rows of a document that is one object, and how they stood there.

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


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """Rows as JSON lines."""
    for row in rows:
        yield json.dumps(row, ensure_ascii=False) + "\n"
