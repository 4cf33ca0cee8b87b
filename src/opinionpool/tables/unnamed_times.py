"""Columns that hold nothing but times under a name that is not known: they may say which forecast is the last."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opinionpool.arrays import Index
from opinionpool.errors import CellError, OpinionPoolError, Remedy as Options
from opinionpool.findings import Place, Remedy, fault
from opinionpool.tables.layout import Layout
from opinionpool.tables.profile import Profile
from opinionpool.tables.table import Table
from opinionpool.tables.times import are_times, read_times
from opinionpool.text import quoted


@dataclass(frozen=True, eq=False)
class UnnamedTimes:
    """Columns of times that play no role in a table none of whose columns says when forecasts were made."""

    table: Table
    columns: tuple[int, ...]  # those whose times differ between rows about one event
    missing: frozenset[str]
    dates: str | None  # the order of days and months, or a format

    @classmethod
    def of(
        cls, table: Table, layout: Layout, profile: Profile, missing: frozenset[str], dates: str | None
    ) -> UnnamedTimes:
        """Those of a table, or of the whole that it is a part of; none where a column says when forecasts were made."""
        event = layout.roles.get("event")
        found = (
            ()
            if "time" in layout.roles
            else tuple(i for i in layout.unused if are_times(profile.columns[i].words.values[:50]))
        )
        if event is not None:
            found = tuple(i for i in found if profile.varies_within(i, [event]))
        return cls(table, found, missing, dates)

    @property
    def names(self) -> list[str]:
        """Their headers."""
        return [self.table.names[i] for i in self.columns]

    @property
    def _option(self) -> str:
        """What says that these are the times of forecasts."""
        return f"--column time={quoted(self.names[0]) if len(self.columns) == 1 else 'NAME'}"

    def ways(self, rule: str) -> tuple[str, list[Options]]:
        """How to have the times counted, in words and as options; nothing where there are none."""
        if not self.columns:
            return "", []
        remedies: list[Options] = [{"columns": {"time": name}, "duplicates": rule} for name in self.names]
        return f"{self._option} --duplicates {rule}", remedies

    def wanted(self) -> OpinionPoolError:
        """The error where something is asked for that depends on when forecasts were made."""
        ways = [Remedy({"columns": {"time": name}}) for name in self.names]
        return fault("unnamed-times", Place(self.table.name), ways, names=self.names, option=self._option)

    def check_last(self, rows: Index, keys: Index) -> list[str]:
        """The columns by which the last row of each key is the latest, too.

        `keys` are what has one number in the end, for each of the rows.
        """
        for column in self.columns:
            if not self._agrees(column, rows, keys):
                _, remedies = self.ways("last")
                ways = map(Remedy, [*remedies, {"duplicates": "last-row"}])
                about = {"table": self.table.name, "names": self.names, "option": self._option}
                raise fault("last-row-not-latest", None, ways, **about)
        return self.names

    def _agrees(self, column: int, rows: Index, keys: Index) -> bool:
        try:
            times = read_times(self.table, column, self.missing, dates=self.dates)[rows].astype(np.int64)
        except CellError:
            return False
        order = np.lexsort((rows, keys))
        keys, times = keys[order], times[order]
        last = np.append(keys[1:] != keys[:-1], True)
        starts = np.flatnonzero(np.append(True, last[:-1]))
        return bool((times[last] == np.maximum.reduceat(times, starts)).all())
