"""Rows of one class each, folded to a row per forecast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from opinionpool.arrays import Array, Index
from opinionpool.errors import Note, OpinionPoolError
from opinionpool.findings import Remedy, fault
from opinionpool.logodds import SUM_TOLERANCE
from opinionpool.tables.statements import EXACT, LongRows

# Sums that are so far from 1 may be meant to be 1.
_NEARLY = 0.1
# Below it --normalise would make up most of a forecast.
_LEAST = 0.5


class Slots(Protocol):
    """Where a row of one class belongs in its forecast."""

    def expected(self, event: Index) -> Index | int:
        """How many rows a forecast on each of these events has."""

    def table(self, long_rows: LongRows, counts: Index) -> Array:
        """Rows in the order of their keys as forecasts, so many each, (forecasts, K); 0 where there is no option."""

    def lacking(self, long_rows: LongRows, start: int, count: int) -> OpinionPoolError:
        """The error for the forecast that begins there and lacks one, and for how many others."""


@dataclass(frozen=True)
class SharedClasses:
    """Classes that all events share, in the order wanted."""

    order: Sequence[int]  # their index among the classes of the rows

    def expected(self, event: Index) -> int:
        """The number of classes."""
        del event
        return len(self.order)

    def table(self, long_rows: LongRows, counts: Index) -> Array:
        """Every forecast has all of them."""
        return np.ascontiguousarray(long_rows.value.reshape(len(counts), len(self.order))[:, list(self.order)])

    def lacking(self, long_rows: LongRows, start: int, count: int) -> OpinionPoolError:
        """Names the first class that is not there."""
        about = {"lacking": class_lacking(long_rows, start), "classes": len(long_rows.classes)}
        return fault(
            "class-lacks", None, [Remedy({"drop_incomplete": True})], count=count, **long_rows.about(start), **about
        )


def class_lacking(long_rows: LongRows, start: int) -> str:
    """The first class for which the forecast of a row has no probability."""
    present = long_rows.label[long_rows.pair == long_rows.pair[start]]
    return next(name for i, name in enumerate(long_rows.classes) if i not in present)


def fold_rows(
    long_rows: LongRows,
    slots: Slots,
    half_units: Callable[[LongRows], Array],
    drop_incomplete: bool = False,
    normalise: bool = False,
) -> tuple[LongRows, Array, list[Note]]:
    """Forecasts of several classes or options, one row each.

    `half_units` gives half a unit of the last written digit of rows, which sums may be off by.
    """
    long_rows = long_rows.select(np.argsort(long_rows.key, kind="stable"))
    _, starts, counts = np.unique(long_rows.pair, return_index=True, return_counts=True)
    short = counts != slots.expected(long_rows.event[starts])
    dropped: list[Note] = []
    if short.any():
        if not drop_incomplete:
            raise slots.lacking(long_rows, int(starts[short.argmax()]), int(short.sum()))
        long_rows, starts, counts, dropped = _without_incomplete(long_rows, counts, short)
    table = slots.table(long_rows, counts)
    total = table.sum(axis=1)
    off = np.abs(total - 1.0) > SUM_TOLERANCE
    if off.any():
        slack = np.zeros(len(starts))
        cells = np.flatnonzero(np.repeat(off, counts))
        np.add.at(slack, np.repeat(np.flatnonzero(off), counts[off]), half_units(long_rows.select(cells)))
        beyond = off & ((np.abs(total - 1.0) > slack + 1e-9) | (total <= 0))
        if normalise:
            beyond &= total < _LEAST
        if beyond.any():
            raise _off_sum(long_rows, int(starts[beyond.argmax()]), float(total[beyond.argmax()]), total[beyond])
    uneven = np.abs(total - 1.0) > EXACT
    if uneven.any():
        table = np.where(uneven[:, None], table / np.where(total > 0, total, 1.0)[:, None], table)
    return long_rows.select(starts), table, [*dropped, *_normalised_note(total, uneven, normalise)]


def _without_incomplete(
    long_rows: LongRows, counts: Index, short: npt.NDArray[np.bool_]
) -> tuple[LongRows, Index, Index, list[Note]]:
    """Rows in the order of their keys, without forecasts that lack a class; where each begins, and how long it is."""
    long_rows = long_rows.select(np.repeat(~short, counts))
    counts = counts[~short]
    count = int(short.sum())
    template = "{count:forecast} left out that lack a class or option which others on the event have"
    return long_rows, np.cumsum(counts) - counts, counts, [Note.of("incomplete", template, count)]


def _normalised_note(total: Array, uneven: npt.NDArray[np.bool_], asked: bool) -> list[Note]:
    """What to say of forecasts whose sums were off by rounding, or by more where that was asked for."""
    if not uneven.any():
        return []
    count, worst = int(uneven.sum()), float(np.abs(total - 1).max())
    why = "" if asked else " by rounding"
    template = "{count} of {total:forecast} did not add up to 1" + why + " ({worst:.2g} at most): normalised"
    return [Note.of("normalised", template, count, len(total), worst)]


def _off_sum(long_rows: LongRows, start: int, total: float, totals: Array) -> OpinionPoolError:
    """The error for forecasts whose probabilities do not add up to 1; a remedy is named where they nearly do."""
    way = "--normalise divides such forecasts by their sum, if no class is lacking"
    if total < _LEAST:
        way = f"that is too little for --normalise, which takes sums of {_LEAST:g} and above"
    nearly = bool((np.abs(totals - 1.0) <= _NEARLY).all())
    ways = [Remedy({"normalise": True})] if nearly else []
    return fault("off-sum", None, ways, total=total, way=way, count=len(totals), **long_rows.about(start))
