"""Results as data frames, and as tables in notebooks."""

from __future__ import annotations

import html
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from opinionpool.errors import OpinionPoolError

# Rows that a notebook shows.
SHOWN = 20


class Tabular:
    """Base class of results with a table: `to_frame`, and a view in notebooks."""

    __slots__ = ()

    @abstractmethod
    def _table(self) -> Mapping[str, Sequence[Any]]:
        """Return columns by name, all with the same number of values."""

    def to_frame(self) -> Any:  # noqa: ANN401 - of whichever library is installed
        """Return the table as a data frame, of pandas if it is installed, else of polars.

        Raises
        ------
        OpinionPoolError
            If neither is installed.
        """
        columns = {name: list(values) for name, values in self._table().items()}
        for library in ("pandas", "polars"):
            try:
                return import_module(library).DataFrame(columns)
            except ImportError:
                continue
        raise OpinionPoolError("a data frame needs pandas or polars; get one with pip install pandas")

    def _repr_html_(self) -> str:
        """Return the first rows as HTML, for notebooks."""
        columns = self._table()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
        rows = list(zip(*columns.values(), strict=True))
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:SHOWN])
        more = f"<p>{len(rows) - SHOWN:,} more rows</p>" if len(rows) > SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "<td></td>"
    if isinstance(value, float):
        return f'<td style="text-align: right">{value:.3f}</td>'
    return f"<td>{html.escape(str(value))}</td>"
